//! The hot loop of a kernel in device IR: which one it is, and what its compiled form holds.

use std::collections::BTreeMap;

use tilewright_gfx9::asm::{Wait, weight};
use tilewright_gfx9::audit::{Mark, OwnWaits, Step};
use tilewright_ir::visit::{child_blocks, stmt_exprs, walk_stmts};
use tilewright_ir::{
    BarrierKind, Block, Buffer, Counter, DeviceOp, ExprKind, Func, Inst, Loop, LoopKind, MicroOp,
    MmaInst, Scalar, Scope, Stmt, StmtKind, ThreadOp,
};

use super::Expected;

/// The loop with the most matrix instructions in no loop inside it, weighed by the loops around it: the
/// one that the audit finds in the assembly, which weighs them alike ([`weight`]). Without matrix
/// instructions it is the only innermost one.
pub(super) fn hot_loop(body: &Block) -> Result<&Block, &'static str> {
    let mut loops = Vec::new();
    weighed(body, 0, &mut loops);
    // Of equal ones the last, as in the assembly.
    let hot = loops.iter().max_by_key(|(_, matrix, _)| *matrix);
    match hot {
        Some((body, matrix, _)) if *matrix > 0 => Ok(body),
        Some(_) => {
            let mut innermost = loops.iter().filter(|(_, _, inner)| !inner);
            match (innermost.next(), innermost.next()) {
                (Some((body, ..)), None) => Ok(body),
                _ => Err("the kernel has several loops, and none has matrix instructions"),
            }
        }
        None => Err("the kernel has no loop"),
    }
}

/// The loops of a block, outer first: the weight of their own matrix instructions, and whether there are
/// loops inside.
fn weighed<'b>(block: &'b Block, around: usize, loops: &mut Vec<(&'b Block, usize, bool)>) {
    for stmt in block {
        let body = match &stmt.kind {
            StmtKind::For(l) if stays(l) => Some(&l.body),
            StmtKind::While { body, .. } => Some(body),
            _ => None,
        };
        if let Some(body) = body {
            let (mut matrix, mut inner) = (0, false);
            own_matrix(body, 1, &mut matrix, &mut inner);
            loops.push((body, weight(matrix as usize, around), inner));
        }
        for child in child_blocks(stmt) {
            weighed(child, around + usize::from(body.is_some()), loops);
        }
    }
}

/// How many loops of a kernel stay loops.
pub(super) fn loops(body: &Block) -> usize {
    let mut count = 0;
    walk_stmts(body, &mut |stmt| {
        count += usize::from(match &stmt.kind {
            StmtKind::For(l) => stays(l),
            StmtKind::While { .. } => true,
            _ => false,
        });
    });
    count
}

/// Matrix instructions of a block outside of the loops in it; says whether it has such loops.
fn own_matrix(block: &Block, times: u32, matrix: &mut u32, inner: &mut bool) {
    for stmt in block {
        let times = match &stmt.kind {
            StmtKind::For(l) if stays(l) => {
                *inner = true;
                continue;
            }
            StmtKind::While { .. } => {
                *inner = true;
                continue;
            }
            StmtKind::For(l) => times.saturating_mul(trips(l)),
            StmtKind::Micro(op) if matches!(op.inst, Inst::Mma(_)) => {
                *matrix += op.count() * times;
                continue;
            }
            _ => times,
        };
        for child in child_blocks(stmt) {
            own_matrix(child, times, matrix, inner);
        }
    }
}

/// Whether a loop is one in the compiled code too.
pub(super) fn stays(l: &Loop) -> bool {
    let once = l.axes.first().and_then(|a| a.const_trip_count()) == Some(1);
    let written_out = matches!(
        l.kind,
        LoopKind::Unroll { factor: None } | LoopKind::Vectorized
    );
    !once && !written_out
}

pub(super) fn trips(l: &Loop) -> u32 {
    let trips = l.axes.first().and_then(|a| a.const_trip_count());
    trips.and_then(|t| u32::try_from(t).ok()).unwrap_or(1)
}

/// Adds what the loop's body holds, its barriers where they are in the code too.
pub(super) fn describe(func: &Func, body: &Block, barriers: bool, expected: &mut Expected) {
    let mut walk = Expectation {
        func,
        barriers,
        steps: Vec::new(),
        clusters: Some(Vec::new()),
        mfma: BTreeMap::new(),
        half_rate: false,
        own: OwnWaits::default(),
        why: None,
        uncompared: None,
    };
    walk.block(body);
    let compiled = &mut expected.compiled;
    compiled.steps = walk.steps;
    compiled.clusters = walk.clusters.unwrap_or_default();
    compiled.mfma = walk.mfma;
    compiled.half_rate = walk.half_rate;
    compiled.own_waits = walk.own;
    expected.own_waits = walk.why.map(str::to_string);
    expected.uncompared = walk.uncompared.map(str::to_string);
}

struct Expectation<'f> {
    barriers: bool,
    func: &'f Func,
    steps: Vec<Step>,
    /// Unknown where products are under a condition.
    clusters: Option<Vec<Mark>>,
    mfma: BTreeMap<String, u32>,
    half_rate: bool,
    own: OwnWaits,
    why: Option<&'static str>,
    uncompared: Option<&'static str>,
}

const VMCNT: OwnWaits = OwnWaits {
    vmcnt: true,
    lgkmcnt: false,
};
const LGKMCNT: OwnWaits = OwnWaits {
    vmcnt: false,
    lgkmcnt: true,
};
const BOTH: OwnWaits = OwnWaits {
    vmcnt: true,
    lgkmcnt: true,
};

impl Expectation<'_> {
    fn block(&mut self, block: &Block) {
        for stmt in block {
            self.stmt(stmt);
        }
    }

    /// The compiler waits for something itself.
    fn own(&mut self, waits: OwnWaits, why: &'static str) {
        self.own.vmcnt |= waits.vmcnt;
        self.own.lgkmcnt |= waits.lgkmcnt;
        self.why.get_or_insert(why);
    }

    fn mark(&mut self, mark: Mark) {
        if let Some(clusters) = &mut self.clusters {
            clusters.push(mark);
        }
    }

    fn leave(&mut self, reason: &'static str) {
        self.uncompared.get_or_insert(reason);
    }

    fn scope(&self, buffer: Buffer) -> Scope {
        self.func.buffers[buffer].scope
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let (mut shared, mut global) = (false, false);
        stmt_exprs(stmt, &mut |e| {
            e.walk_distinct(&mut |node| {
                if let ExprKind::Load { buffer, .. } = node.kind() {
                    shared |= self.scope(*buffer) == Scope::Shared;
                    global |= self.scope(*buffer) == Scope::Global;
                }
            });
        });
        let why = "the loop reads memory without a counter";
        if shared {
            self.own(LGKMCNT, why);
        }
        if global {
            // A load that all lanes share goes through the scalar unit, by the other counter.
            self.own(BOTH, why);
        }
        match &stmt.kind {
            StmtKind::For(l) => {
                let times = match stays(l) {
                    true => 1,
                    false => trips(l),
                };
                for _ in 0..times {
                    self.block(&l.body);
                }
            }
            // The body is in the text once.
            StmtKind::While { body, .. } => self.block(body),
            StmtKind::Micro(op) => self.micro(op),
            StmtKind::Device(op) => self.device(op),
            StmtKind::Thread(op) => self.thread(op),
            StmtKind::If { .. } | StmtKind::WarpGroup { .. } => {
                let before = self.steps.len();
                let marks = self.clusters.as_ref().map(Vec::len);
                for child in child_blocks(stmt) {
                    self.block(child);
                }
                if self.clusters.as_ref().map(Vec::len) != marks {
                    self.clusters = None;
                }
                if self.steps.len() > before {
                    self.leave("waits or barriers of the loop are under a condition");
                }
            }
            _ => {}
        }
    }

    fn device(&mut self, op: &DeviceOp) {
        match op {
            DeviceOp::Wait { counter, at_most } => {
                let count = u8::try_from(*at_most).unwrap_or(u8::MAX);
                self.steps.push(Step::Wait(match counter {
                    Counter::Vmcnt => Wait::vm(count),
                    _ => Wait::lgkm(count),
                }));
            }
            DeviceOp::Barrier(BarrierKind::Bare) => self.barrier(),
            DeviceOp::Barrier(BarrierKind::Block) => {
                self.own(BOTH, "the loop has a barrier with a fence");
                self.barrier();
            }
            DeviceOp::Barrier(BarrierKind::Named { .. } | BarrierKind::Cond(_)) => {
                self.leave("barriers of the loop are for some waves");
            }
            DeviceOp::Fence(_) => self.own(BOTH, "the loop has a fence"),
            DeviceOp::SetPrio(level) => self.mark(Mark::Priority(*level)),
            _ => {}
        }
    }

    fn barrier(&mut self) {
        if !self.barriers {
            return;
        }
        self.steps.push(Step::Barrier);
        self.mark(Mark::Barrier);
    }

    fn thread(&mut self, op: &ThreadOp) {
        let exchange = "lanes exchange values in the loop";
        match op {
            ThreadOp::AllReduce { .. } => self.leave("the block exchanges values in the loop"),
            ThreadOp::Vote { kind, .. } if kind.is_of_block() => {
                self.leave("the block exchanges values in the loop");
            }
            ThreadOp::SyncThreads { named: Some(_) }
            | ThreadOp::BarrierArrive { .. }
            | ThreadOp::BarrierWait { .. }
            | ThreadOp::BarrierExpect { .. }
            | ThreadOp::SyncGrid
            | ThreadOp::SyncCluster
            | ThreadOp::ClusterArrive
            | ThreadOp::ClusterWait => self.leave("barriers of the loop are for some waves"),
            ThreadOp::SyncThreads { named: None } => {
                self.own(BOTH, "the loop has a barrier with a fence");
                self.barrier();
            }
            ThreadOp::Shuffle { .. } | ThreadOp::WarpReduce { .. } | ThreadOp::Vote { .. } => {
                self.own(LGKMCNT, exchange);
            }
            ThreadOp::SyncWarp | ThreadOp::Print { .. } | ThreadOp::SetMaxRegs { .. } => {}
            // Whatever it compiles to may have waits of its own.
            _ => self.own(BOTH, "the loop has atomics or calls"),
        }
    }

    fn micro(&mut self, op: &MicroOp) {
        let source = op.sources.first().map(|s| self.scope(s.region.buffer));
        match op.inst {
            Inst::Mma(inst) => {
                *self.mfma.entry(mnemonic(&inst)).or_default() += op.count();
                self.mark(Mark::Products(op.count()));
                self.half_rate |= half_rate(&inst);
            }
            Inst::BufferLoadLds => self.steps.push(Step::Copies(op.count())),
            Inst::Load => {
                let own = match source {
                    Some(Scope::Shared) => LGKMCNT,
                    Some(Scope::Global) => VMCNT,
                    _ => OwnWaits::default(),
                };
                if op.counter.is_none() && own.any() {
                    self.own(own, "the loop has loads without a counter");
                }
                if op.pred.is_some() && own.any() {
                    self.own(own, "loads of the loop are under a condition");
                }
                let bits = self.func.buffers[op.dest.region.buffer].dtype.bits();
                let packed = op.width * bits < 32 || op.apart > 1 && bits < 32;
                if source == Some(Scope::Shared) && packed {
                    let why = "elements smaller than a register are read from LDS and packed";
                    self.own(LGKMCNT, why);
                }
            }
            _ => {}
        }
    }
}

/// The machine's name of a matrix instruction.
fn mnemonic(inst: &MmaInst) -> String {
    let (m, n, k) = (inst.m, inst.n, inst.k);
    let small = u32::from(m) * u32::from(k) * inst.a.bits() / 64 == 64;
    let (result, kind) = match inst.a {
        Scalar::F16 => ("f32", "f16"),
        Scalar::BF16 => ("f32", "bf16"),
        Scalar::F32 | Scalar::TF32 => ("f32", "f32"),
        Scalar::F64 => ("f64", "f64"),
        Scalar::I8 => ("i32", "i8"),
        Scalar::F8E4M3FN | Scalar::F8E4M3FNUZ if small => ("f32", "fp8_fp8"),
        Scalar::F8E5M2 | Scalar::F8E5M2FNUZ if small => ("f32", "bf8_bf8"),
        _ => ("f32", "f8f6f4"),
    };
    let scale = if inst.scaled { "scale_" } else { "" };
    format!("v_mfma_{scale}{result}_{m}x{n}x{k}_{kind}")
}

/// Whether gfx950 has a form of twice the rate with twice the K.
fn half_rate(inst: &MmaInst) -> bool {
    inst.a != Scalar::F64 && u32::from(inst.m) * u32::from(inst.k) * inst.a.bits() / 64 == 64
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_gfx9::isa::Opcode;
    use tilewright_ir::{MmaFamily, Target};

    /// Each matrix instruction of the table has a name that the machine knows, and takes as long as the
    /// emulator's clock says.
    #[test]
    fn matrix_instructions_are_the_machines() {
        for target in [Target::Gfx942, Target::Gfx950] {
            for facts in target.machine().mma {
                let inst = facts.inst;
                assert_eq!(inst.family, MmaFamily::Mfma);
                let name = mnemonic(&inst);
                let op = Opcode::named(&name).unwrap_or_else(|| panic!("{target} has no {name}"));
                let small = inst.a.bits() < 8 && inst.b.bits() < 8;
                let passes = op.mfma_passes(target == Target::Gfx950, small);
                assert_eq!(passes.map(|n| 4 * n), Some(facts.cycles), "{target} {name}");
            }
        }
    }
}
