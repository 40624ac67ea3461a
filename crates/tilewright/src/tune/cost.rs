//! An estimate of a call's cycles from its tile IR alone, for leaving out what is not worth
//! compiling, and for choosing where nothing can be timed.
//!
//! Of one block, in the middle of the grid:
//!
//! - *memory*: bytes that it moves from or to global memory, at the rate at which a multiprocessor
//!   takes them from L2, and bytes of shared memory at the rate of its banks;
//! - *arithmetic*: products at the rate of the machine's best matrix instruction for their type
//!   (a lane each where there is none), and every other element that a statement touches on a lane;
//! - a loop that is not pipelined waits for memory in each turn, then computes; a pipelined one of
//!   two stages or more, or one of several blocks that fit a multiprocessor, does both at once, and
//!   pays the first turn's memory.
//!
//! Blocks are dealt out to the multiprocessors in rounds, and rounds follow each other. It knows
//! nothing of what lowering makes of the kernel: it orders tiles, stages and threads, roughly.

use crate::call;
use rustc_hash::FxHashMap;
use tilewright_ir::touched::{Part, touched};
use tilewright_ir::visit::{stmt_exprs, walk_stmts};
use tilewright_ir::{
    Block, Buffer, DType, Expr, Func, GemmOp, Kernel, Loop, LoopKind, Machine, Region, Scope, Stmt,
    StmtKind, TileOp, Var,
};
use tilewright_sim::Resolved;

/// Cycles until the first byte of a load comes: some hundreds on every machine.
const LATENCY: f64 = 600.0;
/// Turns of a loop whose bounds are not known.
const UNKNOWN_TRIPS: f64 = 8.0;

/// The estimate for a call, in cycles. None where the sizes do not say how many blocks there are.
pub fn cost(func: &Func, call: &Resolved, machine: &Machine) -> Option<f64> {
    let mut cycles = 0.0;
    for kernel in &func.kernels {
        let mut walk = Walk {
            func,
            call,
            machine,
            values: FxHashMap::default(),
            resident: resident(func, kernel, machine),
        };
        cycles += walk.kernel(kernel)?;
    }
    Some(cycles)
}

/// Blocks that a multiprocessor holds at a time.
fn resident(func: &Func, kernel: &Kernel, machine: &Machine) -> u32 {
    let mut bytes = 0u64;
    walk_stmts(&kernel.body, &mut |stmt| {
        if let StmtKind::Alloc(buffer) = stmt.kind
            && func.buffers[buffer].scope == Scope::Shared
        {
            let data = &func.buffers[buffer];
            let extents = data
                .shape
                .iter()
                .map(|e| e.as_int().unwrap_or(1).max(0) as u64);
            bytes += extents.product::<u64>() * u64::from(data.dtype.bits()) / 8;
        }
    });
    // Versions of pipelined loops.
    let mut stages = 1;
    walk_stmts(&kernel.body, &mut |stmt| {
        if let StmtKind::For(l) = &stmt.kind
            && let LoopKind::Pipelined(spec) = &l.kind
        {
            stages = stages.max(spec.stages);
        }
    });
    let threads: u32 = kernel.threads.iter().product();
    let waves = threads.div_ceil(machine.warp_size).max(1);
    let by_waves = machine.simds * machine.waves_per_simd / waves;
    let by_memory = u64::from(machine.shared.bytes) / (bytes * u64::from(stages)).max(1);
    by_waves.min(by_memory.min(64) as u32).max(1)
}

/// What a block takes of each kind, in cycles.
#[derive(Clone, Copy, Default)]
struct Cycles {
    memory: f64,
    arithmetic: f64,
    /// What nothing else runs beside.
    alone: f64,
}

impl Cycles {
    fn add(&mut self, other: Cycles) {
        self.memory += other.memory;
        self.arithmetic += other.arithmetic;
        self.alone += other.alone;
    }

    fn times(self, n: f64) -> Cycles {
        Cycles {
            memory: self.memory * n,
            arithmetic: self.arithmetic * n,
            alone: self.alone * n,
        }
    }

    fn one_after_another(self) -> f64 {
        self.memory + self.arithmetic + self.alone
    }

    fn at_once(self) -> f64 {
        self.memory.max(self.arithmetic) + self.alone
    }
}

struct Walk<'a> {
    func: &'a Func,
    call: &'a Resolved,
    machine: &'a Machine,
    values: FxHashMap<Var, i128>,
    resident: u32,
}

impl Walk<'_> {
    fn kernel(&mut self, kernel: &Kernel) -> Option<f64> {
        let mut blocks = 1i128;
        for (var, extent) in &kernel.grid {
            let extent = self.value(extent)?;
            blocks = blocks.saturating_mul(extent.max(0));
            self.values.insert(*var, extent / 2);
        }
        let block = self.block(&kernel.body);
        let cycles = match self.resident {
            1 => block.one_after_another(),
            _ => block.at_once(),
        };
        let units = i128::from(self.machine.multiprocessors.max(1));
        let rounds = (blocks + units - 1) / units;
        Some(rounds as f64 * (cycles + LATENCY))
    }

    fn block(&mut self, block: &Block) -> Cycles {
        let mut all = Cycles::default();
        for stmt in block {
            all.add(self.stmt(stmt));
        }
        all
    }

    fn stmt(&mut self, stmt: &Stmt) -> Cycles {
        let mut own = self.own(stmt);
        match &stmt.kind {
            StmtKind::Let { var, value } => {
                match self.value(value) {
                    Some(v) => self.values.insert(*var, v),
                    None => self.values.remove(var),
                };
            }
            StmtKind::For(l) => own.add(self.repeated(l)),
            StmtKind::While { body, .. } => own.add(self.block(body).times(UNKNOWN_TRIPS)),
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                let taken = match self.value(cond) {
                    Some(0) => otherwise,
                    Some(_) => then,
                    None if then.len() >= otherwise.len() => then,
                    None => otherwise,
                };
                own.add(self.block(taken));
            }
            StmtKind::WarpGroup { body, .. } => own.add(self.block(body)),
            _ => {}
        }
        own
    }

    fn repeated(&mut self, l: &Loop) -> Cycles {
        let mut trips = 1.0;
        for axis in &l.axes {
            let (start, stop) = (self.value(&axis.start), self.value(&axis.stop));
            let step = self.value(&axis.step).unwrap_or(1);
            let count = match (start, stop) {
                (Some(start), Some(stop)) if step != 0 => {
                    let distance = if step > 0 { stop - start } else { start - stop };
                    (distance.max(0) + step.abs() - 1) / step.abs()
                }
                _ => UNKNOWN_TRIPS as i128,
            };
            trips *= count as f64;
            self.values
                .insert(axis.var, start.unwrap_or(0) + count / 2 * step);
        }
        if let LoopKind::Persistent { wave_size, .. } = &l.kind {
            let wave = self.value(wave_size).unwrap_or(1).max(1);
            trips = (trips / wave as f64).ceil();
        }
        let turn = self.block(&l.body);
        match &l.kind {
            LoopKind::Parallel { .. } | LoopKind::Vectorized => turn.times(trips),
            LoopKind::Pipelined(spec) if spec.stages >= 2 => Cycles {
                // More stages hide more of the latency.
                alone: trips * turn.at_once()
                    + turn.memory
                    + trips * LATENCY / f64::from(spec.stages * self.resident),
                ..Cycles::default()
            },
            _ if turn.memory > 0.0 => Cycles {
                alone: trips * (turn.one_after_another() + LATENCY / f64::from(self.resident)),
                ..Cycles::default()
            },
            _ => turn.times(trips),
        }
    }

    /// What a statement does itself.
    fn own(&mut self, stmt: &Stmt) -> Cycles {
        let mut cycles = Cycles::default();
        if let StmtKind::Tile(TileOp::Gemm(op)) = &stmt.kind {
            cycles.arithmetic += self.gemm(op);
            return cycles;
        }
        let lanes = f64::from(self.machine.simds * self.machine.warp_size);
        touched(stmt, &mut |access| {
            let count = match access.part {
                Part::Elements(_, n) => f64::from(n),
                Part::Region(region) => self.elements(region),
                _ => return,
            };
            cycles.memory += self.moved(access.buffer, count);
            cycles.arithmetic += count / lanes;
        });
        stmt_exprs(stmt, &mut |expr| {
            expr.walk_loads(&mut |buffer, _| cycles.memory += self.moved(buffer, 1.0));
            expr.walk_distinct(&mut |_| cycles.arithmetic += 1.0 / lanes);
        });
        cycles
    }

    /// Cycles of memory for elements of a buffer.
    fn moved(&self, buffer: Buffer, elements: f64) -> f64 {
        let data = &self.func.buffers[buffer];
        let bytes = elements * f64::from(data.dtype.bits()) / 8.0;
        match data.scope {
            Scope::Global => bytes / f64::from(self.machine.l2_rate.max(1)),
            Scope::Shared => bytes / f64::from(self.machine.shared.banks.max(1) * 4),
            _ => 0.0,
        }
    }

    fn gemm(&self, op: &GemmOp) -> f64 {
        let (m, n) = self.matrix(&op.c);
        // Not of A, which may have half of its elements.
        let (rows, columns) = self.matrix(&op.b);
        let k = if op.trans_b { columns } else { rows };
        m * n * k / self.rate(self.func.buffers[op.a.buffer].dtype)
    }

    /// Multiplications and additions a cycle of a multiprocessor.
    fn rate(&self, dtype: DType) -> f64 {
        let Machine {
            simds, warp_size, ..
        } = *self.machine;
        let by_lanes = simds * warp_size;
        let rate = self.machine.mma_rate(dtype.scalar).unwrap_or(0);
        f64::from(rate.max(by_lanes))
    }

    fn matrix(&self, region: &Region) -> (f64, f64) {
        let extent = |at: usize| {
            let dim = region.dims.len().checked_sub(at).map(|at| &region.dims[at]);
            dim.and_then(|d| self.value(&d.extent)).unwrap_or(1) as f64
        };
        (extent(2), extent(1))
    }

    fn elements(&self, region: &Region) -> f64 {
        let extents = region
            .dims
            .iter()
            .map(|d| self.value(&d.extent).unwrap_or(1));
        extents.map(|e| e.max(0) as f64).product()
    }

    /// The value of an expression over sizes and the indices around it.
    fn value(&self, e: &Expr) -> Option<i128> {
        call::value(self.func, self.call, &self.values, e)
    }
}
