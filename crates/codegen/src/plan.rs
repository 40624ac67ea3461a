//! What a kernel needs around its body, found before it is printed.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::uniform::{Among, Points, Uniformity};
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{
    BarrierKind, Buffer, DeviceOp, FenceKind, Func, Kernel, Machine, StmtKind, ThreadOp, Var,
};

use crate::group_mma::registers_of;
use crate::kernel::Emitter;
use crate::late_sums::{Late, late_sums};
use crate::numbered::{Numbered, computed, numbered};
use crate::source::TensorMap;

/// What a kernel needs besides its body.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Barriers of some threads: number and threads.
    named: Vec<(u32, u32)>,
    names: FxHashMap<u32, String>,
    /// Whether shared memory may be taken that is no buffer of the kernel.
    pub needs_shared: bool,
    /// The names of the tensors that buffer instructions read ([`crate::tensors`]).
    pub tensors: FxHashMap<Buffer, String>,
    /// Variables on which threads may disagree.
    pub varying: FxHashSet<Var>,
    /// The name of the number of the wave's first thread.
    pub wave: String,
    pub thread_vars: Option<[Var; 3]>,
    /// The maps of tensors that bulk copies read, with their names ([`crate::bulk`]).
    pub maps: Vec<(TensorMap, String)>,
    /// The name of the warp group's number, where the kernel has products of warp groups.
    pub warp_group: Option<String>,
    /// The register arrays of warp groups' products.
    pub group_registers: Vec<Buffer>,
    /// Sums whose registers have numbers.
    pub numbered: Vec<Numbered>,
    /// Where there are such: the arrays that vector instructions put together.
    pub computed: FxHashSet<Buffer>,
    /// Sums that are read a wait state later than clang takes for enough.
    pub late: Vec<Late>,
    /// Threads show other blocks what was written before.
    pub releases: bool,
}

impl Plan {
    pub fn of(func: &Func, kernel: &Kernel, machine: &Machine) -> Plan {
        let numbered = numbered(func, kernel, machine);
        let mut plan = Plan {
            thread_vars: Some(kernel.thread_vars),
            group_registers: registers_of(kernel, |b| func.buffers[b].scope),
            late: late_sums(func, kernel, machine, &numbered),
            numbered,
            ..Plan::default()
        };
        if !plan.numbered.is_empty() {
            plan.computed = computed(func, kernel);
        }
        walk_stmts(&kernel.body, &mut |stmt| match &stmt.kind {
            StmtKind::Device(DeviceOp::Barrier(BarrierKind::Named { id, count }))
            | StmtKind::Thread(ThreadOp::SyncThreads {
                named: Some((id, count)),
            }) if !plan.named.contains(&(*id, *count)) => plan.named.push((*id, *count)),
            StmtKind::Thread(ThreadOp::Vote { kind, .. }) if kind.is_of_block() => {
                plan.needs_shared = true;
            }
            StmtKind::Thread(
                ThreadOp::AtomicRmw { order, .. } | ThreadOp::AtomicStore { order, .. },
            ) if order.releases() => plan.releases = true,
            StmtKind::Device(DeviceOp::Fence(FenceKind::Device)) => plan.releases = true,
            _ => {}
        });
        plan.needs_shared |= !plan.named.is_empty();
        plan
    }

    /// Finds the variables on which threads may disagree.
    pub fn find_varying(&mut self, func: &Func, kernel: &Kernel) {
        let uniformity = Uniformity::of(func, kernel, Points::OfThreads);
        let all = func.vars.keys();
        self.varying = all
            .filter(|v| uniformity.of_var(*v) < Among::Block)
            .collect();
    }

    /// The C name of a barrier of some threads.
    pub fn named_name(&self, id: u32) -> String {
        self.names
            .get(&id)
            .cloned()
            .unwrap_or_else(|| format!("named_{id}"))
    }
}

impl Emitter<'_> {
    /// Shared memory for the kernel's barriers of some threads, where the machine has none; gives
    /// names and arrivals.
    pub(crate) fn named_barriers(&mut self) -> Vec<(String, Vec<u32>)> {
        let mut list = Vec::new();
        if self.machine.barrier.named {
            return list;
        }
        for (id, count) in self.plan.named.clone() {
            let name = self.names.take(&format!("named_{id}"));
            let offset = self.scratch(8);
            self.out.line(format!(
                "unsigned long long* const {name} = (unsigned long long*)(shared_memory + {offset});"
            ));
            self.plan.names.insert(id, name.clone());
            // One lane of each wave arrives.
            list.push((name, vec![count.div_ceil(self.machine.warp_size)]));
        }
        list
    }
}
