//! Compilation of a kernel for one call and one target: names become registers and addresses,
//! structure becomes jumps.
//!
//! Values that depend on nothing but constants, block and thread indices are computed once,
//! when a warp starts; everything else where it stands. Inside a statement equal values are
//! computed once.

mod buffers;
mod expr;
mod micro;
mod stmt;

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tilewright_ir::small_float::Number;
use tilewright_ir::text::NamesInText;
use tilewright_ir::{Buffer, Func, Kernel, Machine, SharedPlace, Span, Target, Var};

use super::alu;
use super::program::{Fn1, Fn2, Fn3, Op, Pc, Program, Slot, StmtInfo};
use crate::compile::names::{Bound, Compiled, Names};
use crate::error::{RunError, codes};
use crate::grid;

/// Compiles one kernel of the function for the bound arguments.
pub(super) fn compile(
    func: &Func,
    kernel: &Kernel,
    bound: &Bound,
    target: Target,
) -> Compiled<Program> {
    let machine = target.machine();
    let product = |list: &[u32; 3]| list.iter().try_fold(1u32, |n, &t| n.checked_mul(t));
    match product(&kernel.threads) {
        Some(n) if (1..=machine.max_threads).contains(&n) => {}
        _ => {
            return Err(RunError::new(
                codes::LAUNCH_EXTENT,
                kernel.span,
                format!(
                    "a block has 1 to {} threads on {target}, not {:?}",
                    machine.max_threads, kernel.threads
                ),
            ));
        }
    }
    let mut c = Compiler::new(func, bound, target);
    c.program.threads = kernel.threads;
    c.program.traffic.read = vec![false; bound.sizes.len()];
    c.program.traffic.written = vec![false; bound.sizes.len()];
    c.program.grid = c.grid(kernel)?;
    for (var, _) in &kernel.grid {
        let slot = c.fresh_one();
        c.invariant.insert(slot, ());
        c.program.block_slots.push(slot);
        c.vars.insert(*var, vec![Slot::One(slot)]);
    }
    if let Some(rank) = kernel.attrs.rank {
        let slot = c.fresh_one();
        c.invariant.insert(slot, ());
        c.program.rank_slot = Some(slot);
        c.vars.insert(rank, vec![Slot::One(slot)]);
    }
    c.program.cluster = cluster(kernel, &c.program.grid, machine)?;
    for axis in 0..3 {
        c.program.thread_slots[axis] = c.program.fixed;
        c.program.fixed += 1;
        let slot = if kernel.threads[axis] > 1 {
            Slot::Fixed(c.program.thread_slots[axis])
        } else {
            c.constant_slot(0)
        };
        c.vars.insert(kernel.thread_vars[axis], vec![slot]);
    }
    c.statement(kernel.span, "kernel".to_string());
    c.block(&kernel.body)?;
    c.emit(Op::Halt);
    let placed = c.placed.iter().map(|p| p.end() as usize).max();
    c.shared_needed += placed.unwrap_or(0);
    if c.shared_needed > machine.shared.bytes as usize {
        return Err(RunError::new(
            super::codes::SHARED_SIZE,
            kernel.span,
            format!(
                "the block needs {} bytes of shared memory; {target} has {}",
                c.shared_needed, machine.shared.bytes
            ),
        ));
    }
    if c.program.cluster.is_some() {
        c.program.shared_bytes = c.program.shared_bytes.next_multiple_of(CLUSTER_ALIGN);
    }
    Ok(c.program)
}

/// What the shared memory of each block of a cluster starts at a multiple of here.
const CLUSTER_ALIGN: usize = 1024;

/// The blocks along each axis that run together, where they reach each other's memory.
fn cluster(kernel: &Kernel, grid: &[u64], machine: &Machine) -> Compiled<Option<[u64; 3]>> {
    let Some(sizes) = grid::cluster(kernel, grid)? else {
        return Ok(None);
    };
    // The shadow of shared memory has a bit for each.
    const MOST_WARPS: u64 = 32;
    let warps = u64::from(kernel.num_threads().div_ceil(machine.warp_size));
    if sizes.iter().product::<u64>() * warps > MOST_WARPS {
        let message = format!("a cluster of more than {MOST_WARPS} warps is not simulated");
        return Err(RunError::new(codes::UNSUPPORTED, kernel.span, message));
    }
    Ok(Some(sizes))
}

/// Values kept for the life of a warp, at most; the rest is computed where it is used.
const MAX_FIXED: u32 = 4096;

pub(super) struct Compiler<'f> {
    pub(super) func: &'f Func,
    pub(super) target: Target,
    /// Finds constants and the storage of global buffers.
    names: Names<'f>,
    bound: &'f Bound,
    pub(super) program: Program,
    pub(super) vars: FxHashMap<Var, Vec<Slot>>,
    numbers: FxHashMap<Buffer, u32>,
    /// What findings call buffers.
    spelling: NamesInText,
    /// Constants by value, and values by slot.
    constants: FxHashMap<u64, u32>,
    values: FxHashMap<u32, u64>,
    /// Shared words that do not change while a warp runs.
    invariant: FxHashMap<u32, ()>,
    /// The next free register with a word a lane.
    pub(super) next: u32,
    /// Computed in the prelude.
    known_fixed: FxHashMap<Key, Slot>,
    /// Computed in this statement, in the order they were.
    known: FxHashMap<Key, Slot>,
    known_log: Vec<Key>,
    loads: FxHashMap<LoadKey, Box<[Slot]>>,
    loads_log: Vec<LoadKey>,
    stmt: u32,
    loops: Vec<(String, Slot)>,
    loop_list: Arc<[(String, Slot)]>,
    /// Instructions that go to the end of the innermost block, by nesting.
    block_ends: Vec<Vec<usize>>,
    depth: usize,
    loop_depth: usize,
    /// Bytes of shared memory without the gaps that the simulator leaves.
    shared_needed: usize,
    /// Shared buffers that name their place.
    placed: Vec<SharedPlace>,
    /// Shared buffers so far.
    owners: u16,
}

/// What was computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Key {
    One(Fn1, Slot),
    Two(Fn2, Slot, Slot),
    Three(Fn3, Slot, Slot, Slot),
}

/// What was loaded: buffer, indices, width.
type LoadKey = (u32, Option<Slot>, Box<[Slot]>, u32);

/// How much was known at a point of the program.
#[derive(Clone, Copy, Debug)]
struct Mark {
    known: usize,
    loads: usize,
}

impl<'f> Compiler<'f> {
    fn new(func: &'f Func, bound: &'f Bound, target: Target) -> Compiler<'f> {
        Compiler {
            func,
            target,
            names: Names::new(func, bound),
            bound,
            program: Program::default(),
            vars: FxHashMap::default(),
            numbers: FxHashMap::default(),
            spelling: NamesInText::of(func),
            constants: FxHashMap::default(),
            values: FxHashMap::default(),
            invariant: FxHashMap::default(),
            next: 0,
            known_fixed: FxHashMap::default(),
            known: FxHashMap::default(),
            known_log: Vec::new(),
            loads: FxHashMap::default(),
            loads_log: Vec::new(),
            stmt: 0,
            loops: Vec::new(),
            loop_list: Arc::new([]),
            block_ends: Vec::new(),
            depth: 0,
            loop_depth: 0,
            shared_needed: 0,
            placed: Vec::new(),
            owners: 0,
        }
    }

    fn grid(&mut self, kernel: &Kernel) -> Compiled<Vec<u64>> {
        let mut grid = Vec::new();
        for (_, extent) in &kernel.grid {
            match self.names.constant(extent)? {
                Number::Int(n) if (0..1 << 31).contains(&n) => grid.push(n as u64),
                _ => {
                    return Err(RunError::new(
                        codes::LAUNCH_EXTENT,
                        extent.span(),
                        "a grid extent is negative or too large",
                    ));
                }
            }
        }
        Ok(grid)
    }

    /// Opens a statement: what follows belongs to it.
    pub(super) fn statement(&mut self, span: Span, what: String) {
        self.stmt = self.program.stmts.len() as u32;
        self.program.stmts.push(StmtInfo {
            span,
            what,
            loops: Arc::clone(&self.loop_list),
        });
        self.forget(Mark { known: 0, loads: 0 });
    }

    fn enter_loop(&mut self, name: String, var: Slot) {
        self.loops.push((name, var));
        self.loop_list = self.loops.as_slice().into();
    }

    fn leave_loop(&mut self) {
        self.loops.pop();
        self.loop_list = self.loops.as_slice().into();
    }

    fn pc(&self) -> Pc {
        self.program.ops.len() as Pc
    }

    pub(super) fn emit(&mut self, op: Op) -> usize {
        self.program.ops.push(op);
        self.program.stmt_of.push(self.stmt);
        self.program.ops.len() - 1
    }

    /// A word of its own for all lanes.
    fn fresh_one(&mut self) -> u32 {
        self.program.ones.push(0);
        self.program.ones.len() as u32 - 1
    }

    /// A register with a word a lane, free again when the statement or block ends.
    pub(super) fn fresh_lanes(&mut self) -> Slot {
        let slot = Slot::Lanes(self.next);
        self.next += 1;
        self.program.lanes = self.program.lanes.max(self.next);
        slot
    }

    fn constant_slot(&mut self, value: u64) -> Slot {
        if let Some(&slot) = self.constants.get(&value) {
            return Slot::One(slot);
        }
        let slot = self.fresh_one();
        self.program.ones[slot as usize] = value;
        self.constants.insert(value, slot);
        self.values.insert(slot, value);
        self.invariant.insert(slot, ());
        Slot::One(slot)
    }

    /// The value of a constant's slot.
    fn constant_of(&self, slot: Slot) -> Option<u64> {
        match slot {
            Slot::One(i) => self.values.get(&i).copied(),
            _ => None,
        }
    }

    fn is_invariant(&self, slot: Slot) -> bool {
        match slot {
            Slot::One(i) => self.invariant.contains_key(&i),
            Slot::Fixed(_) => true,
            Slot::Lanes(_) => false,
        }
    }

    fn mark(&self) -> Mark {
        Mark {
            known: self.known_log.len(),
            loads: self.loads_log.len(),
        }
    }

    /// Forgets what was computed since the mark.
    fn forget(&mut self, mark: Mark) {
        for key in self.known_log.drain(mark.known..) {
            self.known.remove(&key);
        }
        for key in self.loads_log.drain(mark.loads..) {
            self.loads.remove(&key);
        }
    }

    fn alu1(&mut self, f: Fn1, a: Slot) -> Slot {
        if let Some(v) = self.constant_of(a)
            && let Ok(v) = alu::apply1(f, v)
        {
            return self.constant_slot(v);
        }
        self.alu(Key::One(f, a), &[a], false, |dst| Op::Alu1 { f, dst, a })
    }

    fn alu2(&mut self, f: Fn2, a: Slot, b: Slot) -> Slot {
        let constants = (self.constant_of(a), self.constant_of(b));
        if let (Some(x), Some(y)) = constants
            && let Ok(v) = alu::apply2(f, x, y)
        {
            return self.constant_slot(v);
        }
        // A constant divisor or shift amount in range always has a result.
        let traps = alu::may_trap(f) && constants.1.is_none_or(|y| alu::apply2(f, 1, y).is_err());
        let op = |dst| Op::Alu2 { f, dst, a, b };
        self.alu(Key::Two(f, a, b), &[a, b], traps, op)
    }

    fn alu3(&mut self, f: Fn3, a: Slot, b: Slot, c: Slot) -> Slot {
        if let (Fn3::Select, Some(cond)) = (f, self.constant_of(a)) {
            return if cond != 0 { b } else { c };
        }
        let op = |dst| Op::Alu3 { f, dst, a, b, c };
        self.alu(Key::Three(f, a, b, c), &[a, b, c], false, op)
    }

    /// Computes something: not again where it is known, in the prelude where it can be.
    fn alu(
        &mut self,
        key: Key,
        operands: &[Slot],
        traps: bool,
        op: impl FnOnce(Slot) -> Op,
    ) -> Slot {
        let uniform = operands.iter().all(|s| s.is_one());
        let early = !traps
            && self.program.fixed < MAX_FIXED
            && operands.iter().all(|&s| self.is_invariant(s));
        if early {
            if let Some(&slot) = self.known_fixed.get(&key) {
                return slot;
            }
            let slot = if uniform {
                let one = self.fresh_one();
                self.invariant.insert(one, ());
                Slot::One(one)
            } else {
                self.program.fixed += 1;
                Slot::Fixed(self.program.fixed - 1)
            };
            self.program.prelude.push(op(slot));
            self.known_fixed.insert(key, slot);
            return slot;
        }
        if let Some(&slot) = self.known.get(&key) {
            return slot;
        }
        let slot = if uniform {
            Slot::One(self.fresh_one())
        } else {
            self.fresh_lanes()
        };
        self.emit(op(slot));
        if !traps {
            self.known.insert(key, slot);
            self.known_log.push(key);
        }
        slot
    }
}
