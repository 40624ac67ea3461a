//! The executor: runs the strands of a block instruction by instruction.
//!
//! A strand goes on until it is done, has to wait, or its share of steps is used up; it can be
//! resumed at any instruction, because all its state is in [`Strand`]. That is what makes
//! warp groups and grid barriers plain: the scheduler just takes turns.

mod access;
mod areas;
mod control;
pub(crate) mod mask;
mod points;
mod races;
pub(crate) mod state;
pub(crate) mod threads;
pub(crate) mod tiles;

use rustc_hash::FxHashMap;
use tilewright_ir::{Diagnostic, Span};

use crate::barrier::Counting;
use crate::cluster::Sent;
use crate::error::{Eval, Fault, Stop, codes};
use crate::eval::{self, Env};
use crate::program::{Int, Num, Op, Parallel, Pc, Place, Program, Space, Uniform};
use crate::value::Trap;
pub(crate) use access::{combine, decode, encode, tuple};
use mask::Mask;
use races::Tracker;
use state::{BlockMem, Globals, Strand, Wait};
pub(crate) use threads::Thread;
pub(crate) use tiles::{Term, Tile, cast_slot, fold, identity, multiply_row};

/// What the evaluator looks out for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Checks {
    /// Reading memory nothing wrote is an error.
    pub uninitialised: bool,
    /// Two points or threads meeting at one element is an error.
    pub races: bool,
}

/// What does not depend on the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// The most instructions a strand may do in all.
    pub steps: u64,
    /// Lanes of a warp, for shuffles and votes.
    pub warp: usize,
}

/// Why a strand stopped running.
#[derive(Debug)]
pub(crate) enum Outcome {
    Done,
    Blocked(Wait),
    /// The share of steps is used up.
    Fuel,
    Failed(Box<Diagnostic>),
}

/// What a kernel printed and the like, gathered on the side.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub prints: Vec<String>,
    /// For other blocks of the cluster.
    pub sent: Vec<Sent>,
}

/// How many lines a block may print; more are dropped.
const MAX_PRINTS: usize = 10_000;

/// A strand at work.
pub(crate) struct Exec<'a, 'g> {
    pub program: &'a Program,
    pub checks: Checks,
    pub limits: Limits,
    pub globals: &'a mut Globals<'g>,
    pub block: &'a mut BlockMem,
    pub strand: &'a mut Strand,
    pub grid_barrier: &'a mut Counting,
    pub cluster_barrier: &'a mut Counting,
    pub output: &'a mut Output,
    pub block_index: [u64; 3],
    /// The number of the block in its cluster.
    pub rank: usize,
    /// The thread that expressions are evaluated for.
    lane: usize,
    /// Whether that thread matters: the statement is done thread by thread.
    by_lane: bool,
    /// The current instruction.
    site: Pc,
    fault: Option<Box<Fault>>,
    /// The parallel loop that is running.
    points: Option<&'a Parallel>,
    tracker: Option<Tracker>,
    /// Writes of one statement by several threads, to see whether they agree.
    lane_writes: FxHashMap<(Space, usize), u64>,
    /// Values computed and not stored yet.
    pending: Vec<Pending>,
    /// The scheduler has all groups at the collective and lets this strand do it.
    granted: bool,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    space: Space,
    bits: u32,
    index: usize,
    value: u64,
}

/// Where execution goes on.
enum Next {
    At(Pc),
    EndPoint,
    Halt,
    Wait(Wait),
}

/// The parts of a block that a strand works on.
pub(crate) struct Workplace<'a, 'g> {
    pub program: &'a Program,
    pub checks: Checks,
    pub limits: Limits,
    pub globals: &'a mut Globals<'g>,
    pub block: &'a mut BlockMem,
    pub grid_barrier: &'a mut Counting,
    pub cluster_barrier: &'a mut Counting,
    pub output: &'a mut Output,
    pub block_index: [u64; 3],
    pub rank: usize,
}

/// Runs a strand for at most `fuel` instructions.
pub(crate) fn run(work: Workplace<'_, '_>, strand: &mut Strand, fuel: u64) -> Outcome {
    let mut exec = Exec::new(work, strand);
    for _ in 0..fuel {
        let pc = exec.strand.pc;
        exec.lane = exec.strand.active.first();
        match exec.step(pc) {
            Ok(Next::At(next)) => exec.strand.pc = next,
            Ok(Next::Halt | Next::EndPoint) => {
                exec.strand.done = true;
                return Outcome::Done;
            }
            Ok(Next::Wait(wait)) => return Outcome::Blocked(wait),
            Err(Stop) => return Outcome::Failed(Box::new(exec.diagnostic())),
        }
        if exec.count().is_err() {
            return Outcome::Failed(Box::new(exec.diagnostic()));
        }
    }
    Outcome::Fuel
}

/// Does the collective that the strand stands at, for all groups that came there.
pub(crate) fn run_collective(work: Workplace<'_, '_>, strand: &mut Strand) -> Outcome {
    let mut exec = Exec::new(work, strand);
    exec.granted = true;
    let pc = exec.strand.pc;
    exec.lane = exec.strand.active.first();
    match exec.step(pc) {
        Ok(Next::At(next)) => {
            exec.strand.pc = next;
            exec.strand.steps += 1;
            Outcome::Fuel
        }
        Ok(Next::Halt | Next::EndPoint) => Outcome::Done,
        Ok(Next::Wait(wait)) => Outcome::Blocked(wait),
        Err(Stop) => Outcome::Failed(Box::new(exec.diagnostic())),
    }
}

impl<'a, 'g> Exec<'a, 'g> {
    fn new(work: Workplace<'a, 'g>, strand: &'a mut Strand) -> Exec<'a, 'g> {
        Exec {
            program: work.program,
            checks: work.checks,
            limits: work.limits,
            globals: work.globals,
            block: work.block,
            grid_barrier: work.grid_barrier,
            cluster_barrier: work.cluster_barrier,
            output: work.output,
            block_index: work.block_index,
            rank: work.rank,
            strand,
            lane: 0,
            by_lane: false,
            site: 0,
            fault: None,
            points: None,
            tracker: None,
            lane_writes: FxHashMap::default(),
            pending: Vec::new(),
            granted: false,
        }
    }

    /// Does one instruction.
    fn step(&mut self, pc: Pc) -> Eval<Next> {
        self.site = pc;
        let program = self.program;
        match &program.ops[pc] {
            Op::Let {
                place,
                value,
                varying: false,
            } => {
                let value = self.num(value)?;
                self.set(*place, value);
            }
            Op::Let { place, value, .. } => self.each_lane(|this| {
                let value = this.num(value)?;
                this.set(*place, value);
                Ok(())
            })?,
            Op::Store { stores, varying } => self.store_op(stores, *varying)?,
            Op::Alloc {
                buffer,
                zero,
                varying,
            } => self.alloc(*buffer, *zero, *varying)?,
            Op::Assert {
                cond,
                message,
                varying,
            } => self.assert(cond, message.as_deref(), *varying)?,
            Op::Parallel(p) => {
                if let Some(wait) = self.collective(p.groups)? {
                    return Ok(Next::Wait(wait));
                }
                self.parallel(p, pc + 1)?;
                return Ok(Next::At(p.end));
            }
            Op::EndPoint => return Ok(Next::EndPoint),
            Op::Collective { tile, groups } => {
                if let Some(wait) = self.collective(*groups)? {
                    return Ok(Next::Wait(wait));
                }
                self.check_uniform(&tile.uniform)?;
                self.tile(tile)?;
            }
            Op::PerThread { tile, varying } => {
                if *varying {
                    self.each_lane(|this| this.tile(tile))?;
                } else {
                    self.tile(tile)?;
                }
            }
            Op::Thread(thread) => {
                if let Some(wait) = self.thread(thread)? {
                    return Ok(Next::Wait(wait));
                }
            }
            Op::Halt => return Ok(Next::Halt),
            op => return self.control(op, pc).map(Next::At),
        }
        Ok(Next::At(pc + 1))
    }

    /// Counts an instruction against the limit.
    #[inline]
    fn count(&mut self) -> Eval<()> {
        self.strand.steps += 1;
        if self.strand.steps > self.limits.steps {
            let message = format!("a block did more than {} steps", self.limits.steps);
            let fault = Fault::new(codes::STEP_LIMIT, message);
            return Err(self.fail(fault.help(codes::STEP_LIMIT_HELP)));
        }
        Ok(())
    }

    fn int(&mut self, e: &Int) -> Eval<i64> {
        eval::int(self, e)
    }

    fn num(&mut self, e: &Num) -> Eval<u64> {
        eval::num(self, e)
    }

    fn set(&mut self, place: Place, value: u64) {
        let at = match place {
            Place::Slot(slot) => slot as usize,
            Place::Lane(first) => first as usize + self.lane,
        };
        self.strand.slots[at] = value;
    }

    fn get(&self, place: Place) -> u64 {
        match place {
            Place::Slot(slot) => self.strand.slots[slot as usize],
            Place::Lane(first) => self.strand.slots[first as usize + self.lane],
        }
    }

    /// Does something for every active thread.
    fn each_lane(&mut self, mut f: impl FnMut(&mut Self) -> Eval<()>) -> Eval<()> {
        let active = self.strand.active;
        self.by_lane = true;
        for lane in active.iter() {
            self.lane = lane;
            f(self)?;
        }
        self.by_lane = false;
        self.lane = active.first();
        Ok(())
    }

    /// What a collective needs: all threads of the strand, and the other groups with it.
    fn collective(&mut self, groups: u64) -> Eval<Option<Wait>> {
        if self.strand.active != self.strand.all {
            let active = self.strand.active.len();
            let all = self.strand.all.len();
            return Err(self.fail(
                Fault::new(
                    codes::DIVERGENT_COLLECTIVE,
                    "the whole block must do this, but only some of its threads are here",
                )
                .note(format!("{active} of {all} threads took this way"))
                .help("a condition around a tile operation must be the same for all threads"),
            ));
        }
        if self.granted || !self.program.grouped || groups == self.strand.group {
            return Ok(None);
        }
        Ok(Some(Wait::Collective { groups }))
    }

    /// Checks that threads agree about what a collective reads.
    fn check_uniform(&mut self, uniform: &Uniform) -> Eval<()> {
        let active = self.strand.active;
        let one = active.first();
        for (first, name) in &uniform.lanes {
            let slots = &self.strand.slots[*first as usize..];
            if active.iter().any(|lane| slots[lane] != slots[one]) {
                let fault = Fault::new(
                    codes::NOT_UNIFORM,
                    format!("`{name}` differs from thread to thread"),
                );
                return Err(self.fail(fault.note("the whole block does this as one")));
            }
        }
        for &buffer in &uniform.buffers {
            let info = &self.program.buffers[buffer as usize];
            let Space::Private(number) = info.space else {
                continue;
            };
            let stride = self.program.private_storages[number as usize].stride;
            let bytes = &self.strand.privates[number as usize].bytes;
            let copy = |lane: usize| &bytes[lane * stride..(lane + 1) * stride];
            if active.iter().any(|lane| copy(lane) != copy(one)) {
                let fault = Fault::new(
                    codes::NOT_UNIFORM,
                    format!("`{}` differs from thread to thread", info.name),
                );
                return Err(self.fail(fault.note("the whole block does this as one")));
            }
        }
        Ok(())
    }

    fn assert(&mut self, cond: &Int, message: Option<&str>, varying: bool) -> Eval<()> {
        let check = |this: &mut Self| {
            if this.int(cond)? != 0 {
                return Ok(());
            }
            Err(this.fail(match message {
                Some("") => Fault::new(codes::ASSERTION, "an assertion does not hold"),
                Some(text) => Fault::new(codes::ASSERTION, text),
                None => Fault::new(codes::ASSUMPTION, "an assumption does not hold"),
            }))
        };
        if varying {
            self.each_lane(check)
        } else {
            check(self)
        }
    }

    fn print(&mut self, line: String) {
        if self.output.prints.len() < MAX_PRINTS {
            self.output.prints.push(line);
        }
    }

    /// Stops with this fault.
    fn fail(&mut self, fault: Fault) -> Stop {
        self.fault = Some(Box::new(fault));
        Stop
    }

    /// The fault with the place where it happened.
    fn diagnostic(&mut self) -> Diagnostic {
        let fault = match self.fault.take() {
            Some(fault) => *fault,
            None => Fault::new(codes::INVALID_IR, "evaluation stopped"),
        };
        let span = match fault.span {
            Span::NONE => self.program.spans[self.site],
            span => span,
        };
        let mut d = Diagnostic::error(fault.code, span, fault.message);
        let mut at = format!("in block ({})", self.block_coordinates());
        if let Some(points) = self.points {
            let point: Vec<String> = points
                .axes
                .iter()
                .map(|a| format!("{} = {}", a.name, self.get(a.var) as i64))
                .collect();
            at += &format!(" at the point {}", point.join(", "));
        } else if self.by_lane {
            at += &format!(", thread {}", self.lane);
        } else if self.program.grouped {
            at += &format!(", warp group {}", self.strand.group.trailing_zeros());
        }
        d.notes.push(at);
        d.notes.extend(fault.notes);
        d.help.extend(fault.help.map(str::to_string));
        d
    }

    fn block_coordinates(&self) -> String {
        let rank = self.program.grid.len();
        let parts: Vec<String> = self.block_index[..rank]
            .iter()
            .map(u64::to_string)
            .collect();
        parts.join(", ")
    }

    fn mask_where(&mut self, cond: &Int) -> Eval<Mask> {
        let mut mask = Mask::default();
        self.each_lane(|this| {
            if this.int(cond)? != 0 {
                mask.insert(this.lane);
            }
            Ok(())
        })?;
        Ok(mask)
    }
}

impl Env for Exec<'_, '_> {
    #[inline]
    fn slot(&self, slot: u32) -> u64 {
        self.strand.slots[slot as usize]
    }

    #[inline]
    fn lane(&self, first: u32) -> u64 {
        self.strand.slots[first as usize + self.lane]
    }

    #[inline]
    fn load(&mut self, access: &crate::program::Access) -> Eval<u64> {
        self.load_element(access)
    }

    #[cold]
    fn trap(&mut self, trap: Trap) -> Stop {
        self.fail(match trap {
            Trap::Division => Fault::new(codes::DIVISION, "division by zero"),
            Trap::Shift(amount) => Fault::new(
                codes::SHIFT,
                format!("a shift by {amount}, outside of the operand's width"),
            ),
            Trap::Undefined => Fault::new(
                codes::INVALID_IR,
                "an operation that does not exist on this type",
            ),
        })
    }
}
