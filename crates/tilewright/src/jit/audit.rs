//! The compiled code of AMD kernels against the device IR it comes from.
//!
//! [`expectation`] says what a kernel's hot loop must hold: its waits and barriers as the IR has
//! them, its matrix instructions. [`audit`] compares a kernel's assembly with it. Where the IR
//! leaves something to the compiler (loads without a counter, elements that are packed), waits
//! cannot be foretold; they are then not compared, and the reason is said.

use std::collections::BTreeMap;

use tilewright_gfx9::asm::{self, Wait};
use tilewright_gfx9::audit::{self as gfx9, Expectation, Finding, Kind, Report, Step};
use tilewright_ir::visit::{child_blocks, stmt_exprs, walk_stmts};
use tilewright_ir::{
    BarrierKind, Block, Buffer, Counter, DeviceOp, ExprKind, Func, Inst, Kernel, Loop, LoopKind,
    MicroOp, MmaInst, Scalar, Scope, Stmt, StmtKind, Target, ThreadOp,
};

/// A kernel's audit.
#[derive(Clone, Debug)]
pub struct KernelAudit {
    pub name: String,
    pub report: Report,
    /// Why the waits of the loop were not compared; none where they were.
    pub uncompared: Option<String>,
}

impl KernelAudit {
    pub fn passed(&self) -> bool {
        self.report.passed()
    }
}

/// Audits every kernel of a device-level function in the assembly it was compiled to. `names`
/// are the kernels' names in it.
pub fn audit(
    func: &Func,
    target: Target,
    names: &[String],
    assembly: &str,
) -> Result<Vec<KernelAudit>, String> {
    let program = asm::parse(assembly).map_err(|e| e.to_string())?;
    let mut list = Vec::new();
    for (kernel, name) in func.kernels.iter().zip(names) {
        let compiled = program
            .function(name)
            .ok_or_else(|| format!("the assembly has no kernel `{name}`"))?;
        let (expected, uncompared) = expectation(func, kernel);
        let mut report = gfx9::audit(compiled, target.name(), &expected);
        if uncompared.is_some() {
            report.findings.retain(|f| !compares_loop(f));
        }
        list.push(KernelAudit {
            name: name.clone(),
            report,
            uncompared,
        });
    }
    Ok(list)
}

/// Whether a finding rests on the expected steps and counts of the loop.
fn compares_loop(finding: &Finding) -> bool {
    match finding.kind {
        Kind::ExtraWait
        | Kind::MissingWait
        | Kind::WrongWait
        | Kind::ExtraBarrier
        | Kind::MissingBarrier
        | Kind::MovedWork
        | Kind::Count
        | Kind::HalfRate
        | Kind::Shape => true,
        Kind::Pending
        | Kind::Hazard
        | Kind::Scratch
        | Kind::Spill
        | Kind::AccumulatorMove
        | Kind::AddressArithmetic
        | Kind::LaneRead
        | Kind::Registers => false,
    }
}

/// What a kernel's hot loop must hold, and why its waits cannot be foretold where that is so.
pub fn expectation(func: &Func, kernel: &Kernel) -> (Expectation, Option<String>) {
    let threads: u32 = kernel.threads.iter().product();
    let waves = threads.div_ceil(64);
    let blocks = kernel.attrs.min_blocks_per_sm.unwrap_or(1);
    let mut expected = Expectation {
        vgprs: Some(gfx9::vgprs_at((waves * blocks).div_ceil(4).clamp(1, 8))),
        // Addresses are left to the compiler; how many it computes is in the report.
        address_arithmetic: u32::MAX,
        lane_reads: u32::MAX,
        ..Expectation::default()
    };
    let Some(hot) = hot_loop(&kernel.body) else {
        return (expected, Some("the kernel has no loop".to_string()));
    };
    let mut walk = Walk {
        func,
        steps: Vec::new(),
        mfma: BTreeMap::new(),
        half_rate: false,
        reason: None,
    };
    walk.block(&hot.body, 1);
    expected.steps = walk.steps;
    expected.mfma = walk.mfma;
    expected.half_rate = walk.half_rate;
    (expected, walk.reason)
}

/// Whether a loop is one in the compiled code too.
fn stays(l: &Loop) -> bool {
    !matches!(
        l.kind,
        LoopKind::Unroll { factor: None } | LoopKind::Vectorized
    ) && l.axes.first().and_then(|a| a.const_trip_count()) != Some(1)
}

/// The innermost loop with the most matrix instructions, then with the most statements: the one
/// that the audit finds in the assembly.
fn hot_loop(body: &Block) -> Option<&Loop> {
    let mut best: Option<(&Loop, (u32, usize))> = None;
    walk_stmts(body, &mut |stmt| {
        let StmtKind::For(l) = &stmt.kind else { return };
        if !stays(l) {
            return;
        }
        let (mut matrix, mut size, mut inner) = (0, 0, false);
        walk_stmts(&l.body, &mut |s| {
            size += 1;
            match &s.kind {
                StmtKind::For(l) => inner |= stays(l),
                StmtKind::While { .. } => inner = true,
                StmtKind::Micro(op) if matches!(op.inst, Inst::Mma(_)) => matrix += op.count(),
                _ => {}
            }
        });
        if !inner && best.is_none_or(|(_, seen)| (matrix, size) > seen) {
            best = Some((l, (matrix, size)));
        }
    });
    best.map(|(l, _)| l)
}

struct Walk<'f> {
    func: &'f Func,
    steps: Vec<Step>,
    mfma: BTreeMap<String, u32>,
    half_rate: bool,
    reason: Option<String>,
}

impl Walk<'_> {
    fn block(&mut self, block: &Block, times: u32) {
        for stmt in block {
            self.stmt(stmt, times);
        }
    }

    fn leave(&mut self, reason: &str) {
        self.reason.get_or_insert_with(|| reason.to_string());
    }

    fn stmt(&mut self, stmt: &Stmt, times: u32) {
        let shared = |b: Buffer| self.func.buffers[b].scope == Scope::Shared;
        let memory = |b: Buffer| {
            let scope = self.func.buffers[b].scope;
            matches!(scope, Scope::Shared | Scope::Global)
        };
        let mut loads = false;
        stmt_exprs(stmt, &mut |e| {
            e.walk_distinct(&mut |node| {
                if let ExprKind::Load { buffer, .. } = node.kind() {
                    loads |= memory(*buffer);
                }
            });
        });
        if loads {
            self.leave("the loop reads memory without a counter");
        }
        match &stmt.kind {
            StmtKind::For(l) => {
                let trips = l.axes.first().and_then(|a| a.const_trip_count());
                match trips.and_then(|t| u32::try_from(t).ok()) {
                    // Waits are not repeated where the loop has none.
                    Some(trips) => {
                        for _ in 0..trips.min(64) {
                            self.block(&l.body, times);
                        }
                        if trips > 64 {
                            self.leave("the loop has long unrolled parts");
                        }
                    }
                    None => self.leave("the loop has parts of unknown length"),
                }
            }
            StmtKind::Micro(op) => self.micro(op, times),
            StmtKind::Device(DeviceOp::Wait { counter, at_most }) => {
                let count = u8::try_from(*at_most).unwrap_or(u8::MAX);
                let mut wait = Wait {
                    vmcnt: None,
                    lgkmcnt: None,
                };
                match counter {
                    Counter::Vmcnt => wait.vmcnt = Some(count),
                    _ => wait.lgkmcnt = Some(count),
                }
                self.steps.push(Step::Wait(wait));
            }
            StmtKind::Device(DeviceOp::Barrier(BarrierKind::Bare)) => {
                self.steps.push(Step::Barrier);
            }
            StmtKind::Device(DeviceOp::Barrier(_)) => {
                self.leave("the loop has a barrier with a fence");
            }
            StmtKind::Store { buffer, .. } if shared(*buffer) => {}
            StmtKind::Thread(
                ThreadOp::Shuffle { .. }
                | ThreadOp::WarpReduce { .. }
                | ThreadOp::AllReduce { .. }
                | ThreadOp::AtomicRmw { .. }
                | ThreadOp::AtomicLoad { .. },
            ) => self.leave("lanes exchange values in the loop"),
            StmtKind::If { .. } | StmtKind::While { .. } | StmtKind::WarpGroup { .. } => {
                self.leave("the loop has branches");
                for child in child_blocks(stmt) {
                    self.block(child, times);
                }
            }
            _ => {}
        }
    }

    fn micro(&mut self, op: &MicroOp, times: u32) {
        let count = op.count() * times;
        let bits = |b: Buffer| self.func.buffers[b].dtype.bits();
        match op.inst {
            Inst::Mma(inst) => {
                *self.mfma.entry(mnemonic(&inst)).or_default() += count;
                self.half_rate |= half_rate(&inst);
            }
            Inst::BufferLoadLds => self.steps.push(Step::Copies(count)),
            Inst::Load => {
                if op.counter.is_none() {
                    self.leave("the loop has loads without a counter");
                }
                if op.pred.is_some() {
                    self.leave("loads of the loop are under a condition");
                }
                let from_lds = op
                    .sources
                    .first()
                    .is_some_and(|s| self.func.buffers[s.region.buffer].scope == Scope::Shared);
                if from_lds && op.width * u32::from(bits(op.dest.region.buffer) as u16) < 32 {
                    self.leave("elements smaller than a register are read from LDS and packed");
                }
            }
            _ => {}
        }
    }
}

/// The machine's name of a matrix instruction.
fn mnemonic(inst: &MmaInst) -> String {
    let (m, n, k) = (inst.m, inst.n, inst.k);
    let small = u32::from(m) * u32::from(k) * inst.ab.bits() / 64 == 64;
    let (result, kind) = match inst.ab {
        Scalar::F16 => ("f32", "f16"),
        Scalar::BF16 => ("f32", "bf16"),
        Scalar::F32 | Scalar::TF32 => ("f32", "f32"),
        Scalar::I8 => ("i32", "i8"),
        Scalar::F8E4M3FN | Scalar::F8E4M3FNUZ if small => ("f32", "fp8_fp8"),
        Scalar::F8E5M2 | Scalar::F8E5M2FNUZ if small => ("f32", "bf8_bf8"),
        _ => ("f32", "f8f6f4"),
    };
    format!("v_mfma_{result}_{m}x{n}x{k}_{kind}")
}

/// Whether gfx950 has a form of twice the rate with twice the K.
fn half_rate(inst: &MmaInst) -> bool {
    u32::from(inst.m) * u32::from(inst.k) * inst.ab.bits() / 64 == 64
}
