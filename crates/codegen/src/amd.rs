//! What AMD machines do otherwise: waits by counts, barriers in LDS, votes of 64 lanes.
//!
//! Waits and barriers are printed as the IR has them.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{
    BarrierKind, Buffer, Counter, DeviceOp, FenceKind, Func, Kernel, Scalar, Span, StmtKind,
    ThreadOp, Var, VoteKind,
};
use tilewright_schedule::uniform::Uniformity;

use crate::device::Piece;
use crate::kernel::Emitter;
use crate::{Emit, unsupported};

/// The declaration of a kernel's LDS, and the mark in it that its size takes the place of.
pub(crate) const LDS_BYTES: &str = "@lds_bytes@";
pub(crate) const LDS_ARRAY: &str =
    "__shared__ __attribute__((aligned(1024))) unsigned char shared_memory[@lds_bytes@];";

/// Counts that wait for nothing.
const ANY_VMCNT: u32 = 63;
const ANY_LGKMCNT: u32 = 15;

/// What a kernel needs besides its body.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Barriers of some threads: number and threads.
    named: Vec<(u32, u32)>,
    names: FxHashMap<u32, String>,
    /// LDS that is not a buffer of the kernel.
    pub needs_lds: bool,
    /// The names of the tensors that buffer instructions read ([`crate::tensors`]).
    pub tensors: FxHashMap<Buffer, String>,
    /// Variables on which threads may disagree.
    pub varying: FxHashSet<Var>,
    /// The name of the number of the wave's first thread.
    pub wave: String,
    pub thread_vars: Option<[Var; 3]>,
    /// Conditions around the statement that is printed.
    pub conditions: u32,
}

impl Plan {
    pub fn of(kernel: &Kernel) -> Plan {
        let mut plan = Plan {
            thread_vars: Some(kernel.thread_vars),
            ..Plan::default()
        };
        walk_stmts(&kernel.body, &mut |stmt| match &stmt.kind {
            StmtKind::Device(DeviceOp::Barrier(BarrierKind::Named { id, count }))
            | StmtKind::Thread(ThreadOp::SyncThreads {
                named: Some((id, count)),
            }) if !plan.named.contains(&(*id, *count)) => plan.named.push((*id, *count)),
            StmtKind::Thread(ThreadOp::Vote {
                kind: VoteKind::BlockOr | VoteKind::BlockAnd | VoteKind::BlockCount,
                ..
            }) => plan.needs_lds = true,
            _ => {}
        });
        plan.needs_lds |= !plan.named.is_empty();
        plan
    }

    /// Finds the variables on which threads may disagree.
    pub fn find_varying(&mut self, func: &Func, kernel: &Kernel) {
        let uniformity = Uniformity::of(func, kernel);
        let all = func.vars.keys();
        self.varying = all.filter(|v| uniformity.var_varies(*v)).collect();
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
    /// `extern "C" __global__ …(…) {`
    pub(crate) fn amd_signature(
        &mut self,
        kernel: &Kernel,
        name: &str,
        params: &[String],
    ) -> Emit<String> {
        if kernel.attrs.cluster.is_some_and(|c| c != [1, 1, 1]) {
            return unsupported(
                kernel.span,
                format!("{} has no clusters of blocks", self.target),
            );
        }
        let threads: u32 = kernel.threads.iter().product();
        let waves = threads.div_ceil(64);
        // Waves of one SIMD, of four: what the kernel asks for, at least its own block.
        let blocks = kernel.attrs.min_blocks_per_sm.unwrap_or(1);
        let waves_per_simd = (waves * blocks).div_ceil(4).clamp(1, 8);
        let lines = params.join(", ");
        let lines = match lines.len() > 60 {
            true => format!("\n    {}", params.join(",\n    ")),
            false => lines,
        };
        Ok(format!(
            "extern \"C\" __global__ __attribute__((amdgpu_flat_work_group_size({threads}, \
             {threads}), amdgpu_waves_per_eu({waves_per_simd})))\nvoid {name}({lines}) {{"
        ))
    }

    /// LDS for the kernel's barriers of some threads; gives names and arrivals.
    pub(crate) fn named_barriers(&mut self) -> Vec<(String, Vec<u32>)> {
        let mut list = Vec::new();
        if !self.target.is_amd() {
            return list;
        }
        for (id, count) in self.amd.named.clone() {
            let name = self.names.take(&format!("named_{id}"));
            let offset = self.scratch(8);
            self.out.line(format!(
                "unsigned long long* const {name} = (unsigned long long*)(shared_memory + {offset});"
            ));
            self.amd.names.insert(id, name.clone());
            // One lane of each wave arrives.
            list.push((name, vec![count.div_ceil(64)]));
        }
        list
    }

    pub(crate) fn amd_vote(
        &mut self,
        kind: VoteKind,
        value: &str,
        result: Var,
        span: Span,
    ) -> Emit<()> {
        self.needs.piece(Piece::Warp);
        let threads: u32 = self.threads.iter().product();
        let thread = self.linear_thread();
        let count = |e: &mut Self, value: String| {
            let offset = e.scratch(4);
            format!("tw::block_count((unsigned*)(shared_memory + {offset}), {thread}, {value})")
        };
        let call = match kind {
            VoteKind::Any => format!("tw::any({value})"),
            VoteKind::All => format!("tw::all({value})"),
            VoteKind::Ballot => {
                if self.func.vars[result].dtype.scalar.bits() != Scalar::U64.bits() {
                    return unsupported(span, "a ballot of 64 lanes in fewer bits");
                }
                format!("tw::ballot({value})")
            }
            VoteKind::BlockOr => count(self, value.to_string()) + " > 0",
            VoteKind::BlockAnd => count(self, value.to_string()) + &format!(" == {threads}"),
            VoteKind::BlockCount => count(self, value.to_string()),
        };
        self.result(Some(result), &call);
        Ok(())
    }

    pub(crate) fn amd_device_op(&mut self, op: &DeviceOp, span: Span) -> Emit<()> {
        match op {
            DeviceOp::Wait {
                counter: Counter::Vmcnt,
                at_most,
            } => self.wait((*at_most).min(ANY_VMCNT), ANY_LGKMCNT),
            DeviceOp::Wait {
                counter: Counter::Lgkmcnt,
                at_most,
            } => self.wait(ANY_VMCNT, (*at_most).min(ANY_LGKMCNT)),
            // Instructions are counted one by one: there are no groups to close.
            DeviceOp::Commit(Counter::Vmcnt | Counter::Lgkmcnt) => {}
            DeviceOp::Wait { counter, .. } | DeviceOp::Commit(counter) => {
                return unsupported(
                    span,
                    format!("{} has no counter `{}`", self.target, counter.name()),
                );
            }
            DeviceOp::Barrier(BarrierKind::Block) => self.out.line("__syncthreads();"),
            DeviceOp::Barrier(BarrierKind::Bare) => {
                self.needs.piece(Piece::Waits);
                self.out.line("tw::barrier();");
            }
            DeviceOp::Barrier(BarrierKind::Named { id, count }) => {
                return self.named_barrier(*id, *count);
            }
            // The machine counts waves, not which: the condition is the branch around it.
            DeviceOp::Barrier(BarrierKind::Cond(cond)) => {
                let cond = self.scalar(cond)?;
                self.needs.piece(Piece::Waits);
                self.out.line(format!("if ({cond}) tw::barrier();"));
            }
            DeviceOp::Fence(FenceKind::Block | FenceKind::BarrierInit) => {
                self.out.line("__threadfence_block();");
            }
            DeviceOp::Fence(FenceKind::Device) => self.out.line("__threadfence();"),
            DeviceOp::Fence(FenceKind::Wgmma) => {
                return unsupported(span, format!("{} has no wgmma", self.target));
            }
            // There is no asynchronous proxy to order; the other is for the checker alone.
            DeviceOp::Fence(FenceKind::AsyncProxy) | DeviceOp::Iteration(_) => {}
            DeviceOp::SetPrio(level) => {
                self.out
                    .line(format!("__builtin_amdgcn_s_setprio({level});"));
            }
            DeviceOp::SchedBarrier(mask) => {
                self.out
                    .line(format!("__builtin_amdgcn_sched_barrier({mask});"));
            }
            DeviceOp::SchedGroupBarrier { mask, size, group } => self.out.line(format!(
                "__builtin_amdgcn_sched_group_barrier({mask}, {size}, {group});"
            )),
            DeviceOp::BarrierInit {
                barrier,
                index,
                count,
            } => return self.barrier_init(*barrier, index, *count, span),
        }
        Ok(())
    }

    fn wait(&mut self, vmcnt: u32, lgkmcnt: u32) {
        self.needs.piece(Piece::Waits);
        self.out.line(format!("tw::wait<{vmcnt}, {lgkmcnt}>();"));
    }
}
