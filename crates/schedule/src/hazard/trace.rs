//! One group's way through the kernel, as a list of events.
//!
//! Control flow is the same for all threads of a group, so its way is known once the unknown
//! values it depends on are supposed: trip counts and conditions that are not constants. Where
//! one is met the walk stops and says what it needs ([`Need`]); the caller supposes each value
//! in turn and starts again.
//!
//! A condition around waits and accesses alone is not supposed. Its branches are walked one after
//! the other, and the events say under which condition they are ([`EventKind::Under`]).

mod branches;
mod loops;
mod need;
mod sync;

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{Block, Counter, DeviceOp, Expr, Inst, Machine, Span, Stmt, StmtKind, Var};

use super::conditions::{Conditions, Under, with};
use super::event::{Event, EventKind, Trace};
use super::report::Reason;
use super::scan::{Key, Scan, key};
use super::touch::{RegisterTouch, Touches};
use super::units::{Units, bound};
use super::value::{Bound, Env};

/// What decides among the ways.
#[derive(Clone, Default, Debug)]
pub struct Choice {
    /// Values that are not known.
    pub supposed: FxHashMap<Expr, i64>,
    /// Which pattern conditions follow that change from iteration to iteration.
    pub turn: u32,
    /// Loops of which nothing is left out.
    pub whole: FxHashSet<Key>,
}

/// An unknown value that decides the way, and the values it must be tried with.
#[derive(Debug)]
pub struct Need {
    pub expr: Expr,
    pub values: Vec<i64>,
}

#[derive(Debug)]
pub enum Stop {
    Need(Need),
    /// The program assumes that this does not happen.
    Impossible,
    Undecided(Reason),
}

/// The most events of a group's way.
const MAX_EVENTS: usize = 60_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

pub struct Tracer<'f, 'p> {
    scan: &'f Scan<'f>,
    units: &'p mut Units<'f>,
    conditions: &'p mut Conditions,
    group: usize,
    machine: &'static Machine,
    env: Env,
    loops: Vec<(Var, i64)>,
    /// By loop that the walk is in, how far its index has jumped.
    skipped: FxHashMap<Var, i64>,
    /// Iterations of all loops so far.
    iterations: u32,
    trace: Trace,
    /// How often each condition without a supposed value was met.
    met: FxHashMap<Key, u32>,
    turn: u32,
    whole: &'p FxHashSet<Key>,
    /// The branches around that may not be taken.
    under: Under,
    moment_stale: bool,
}

impl<'f, 'p> Tracer<'f, 'p> {
    /// The way of a group of a block of the cluster.
    pub fn of(
        scan: &'f Scan<'f>,
        units: &'p mut Units<'f>,
        conditions: &'p mut Conditions,
        (rank, group): (usize, usize),
        machine: &'static Machine,
        choice: &'p Choice,
    ) -> Result<Trace, Stop> {
        let mut env = Env::of(&choice.supposed);
        if let Some(var) = scan.kernel.attrs.rank {
            env.vars.insert(var, Bound::Known(rank as i64));
        }
        for (axis, &var) in scan.kernel.thread_vars.iter().enumerate() {
            if scan.kernel.threads[axis] == 1 {
                env.vars.insert(var, Bound::Known(0));
            }
        }
        let mut walk = Tracer {
            scan,
            units,
            conditions,
            group,
            machine,
            env,
            loops: Vec::new(),
            skipped: FxHashMap::default(),
            iterations: 0,
            trace: Trace::default(),
            met: FxHashMap::default(),
            turn: choice.turn,
            whole: &choice.whole,
            under: Under::default(),
            moment_stale: true,
        };
        walk.units.iteration = None;
        walk.units.around.clear();
        // Which version a block means must be known even where no loop asks for it.
        for slot in &scan.block_slots {
            if let Some(need) = walk.block_index(&walk.env.fold(slot)) {
                return Err(Stop::Need(need));
            }
        }
        walk.block(&scan.kernel.body)?;
        Ok(walk.trace)
    }

    fn emit(&mut self, stmt: &Stmt, kind: EventKind) -> Result<(), Stop> {
        self.iterations += u32::from(matches!(kind, EventKind::Iteration));
        if self.moment_stale {
            self.trace.moments.push(self.loops.clone().into());
            self.moment_stale = false;
        }
        if self.trace.events.len() >= MAX_EVENTS {
            return Err(undecided(stmt.span, "the program runs too long to follow"));
        }
        self.trace.events.push(Event {
            kind,
            stmt: key(stmt),
            moment: self.trace.moments.len() as u32 - 1,
        });
        Ok(())
    }

    fn block(&mut self, block: &'f Block) -> Result<Flow, Stop> {
        let around = self.units.iteration;
        let mut flow = Flow::Next;
        for stmt in block {
            flow = self.stmt(stmt)?;
            if flow != Flow::Next {
                break;
            }
        }
        self.units.iteration = around;
        self.end_of_sums(block)?;
        Ok(flow)
    }

    /// Behind the block in which the sum of warp groups' products lives its registers may hold
    /// anything else: no product may be adding to them.
    fn end_of_sums(&mut self, block: &'f Block) -> Result<(), Stop> {
        for stmt in block {
            let StmtKind::Alloc(buffer) = stmt.kind else {
                continue;
            };
            if self.scan.sums.contains(&buffer) {
                let ends = RegisterTouch {
                    stmt: key(stmt),
                    root: buffer,
                    slot: None,
                    range: None,
                    write: true,
                };
                let touches = Touches {
                    shared: Vec::new(),
                    registers: vec![ends],
                };
                self.emit(stmt, EventKind::Touch(Rc::new(touches)))?;
            }
        }
        Ok(())
    }

    fn stmt(&mut self, stmt: &'f Stmt) -> Result<Flow, Stop> {
        if let StmtKind::Let { var, value } = &stmt.kind
            && self.scan.relevant.contains(var)
        {
            let value = self.env.fold(value);
            self.env.vars.insert(*var, bound(value));
        }
        if let StmtKind::Assume(cond) = &stmt.kind
            && self.env.value(cond) == Some(0)
            && self.under.is_empty()
        {
            return Err(Stop::Impossible);
        }
        if let StmtKind::Device(DeviceOp::Iteration(iteration)) = &stmt.kind {
            self.units.begin_iteration(iteration.as_ref(), &self.env);
            return Ok(Flow::Next);
        }
        if !self.scan.is_sync(stmt) {
            let written = self.scan.written_scalars(stmt);
            let value = match written {
                [] => None,
                _ => self.written_value(stmt),
            };
            if !written.is_empty() && !matches!(stmt.kind, StmtKind::Store { .. }) {
                self.env.scalars.retain(|b, _| !written.contains(b));
            }
            let touches = self.units.unit(stmt, &self.env);
            if !touches.is_empty() {
                self.touch(stmt, touches)?;
            }
            for buffer in written {
                match value {
                    Some(value) => self.env.scalars.insert(*buffer, value),
                    None => self.env.scalars.remove(buffer),
                };
            }
            return Ok(Flow::Next);
        }
        if !matches!(stmt.kind, StmtKind::Micro(_)) {
            let header = self.units.header(stmt, &self.env);
            if !header.is_empty() {
                self.emit(stmt, EventKind::Touch(Rc::new(header)))?;
            }
        }
        match &stmt.kind {
            StmtKind::For(l) => return self.counted(stmt, l),
            StmtKind::While { cond, body } => return self.repeated(stmt, cond, body),
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => return self.branch(stmt, cond, then, otherwise),
            StmtKind::WarpGroup { groups, body }
                if self.scan.group_takes(stmt, self.group) == Some(true) =>
            {
                return self.guarded(self.scan.is_of(groups), body);
            }
            StmtKind::Break => return Ok(Flow::Break),
            StmtKind::Continue => return Ok(Flow::Continue),
            StmtKind::Micro(m) => {
                let Some(counter) = m.counter else {
                    return Ok(Flow::Next);
                };
                if let (Inst::Tma(tile), Some(arrival)) = (m.inst, &m.arrives) {
                    self.bulk_load(stmt, m, tile, arrival)?;
                    return Ok(Flow::Next);
                }
                if matches!(m.inst, Inst::Tma(_)) {
                    self.bulk_store(stmt, m, counter)?;
                    return Ok(Flow::Next);
                }
                let modelled = match counter {
                    Counter::Vmcnt | Counter::Lgkmcnt | Counter::CpAsync => true,
                    Counter::Wgmma => matches!(m.inst, Inst::GroupMma { .. }),
                    Counter::TmaStore | Counter::Mbarrier => false,
                };
                if !modelled {
                    let what = format!("`{}` operations are not modelled", counter.name());
                    return Err(undecided(stmt.span, &what));
                }
                let touches = self.units.micro(stmt, &self.env);
                // A wave whose lanes are all switched off may not issue it; lanes that fill in zeros
                // on the way to LDS are not.
                let fills = m.inst == Inst::BufferLoadLds && m.otherwise.is_some();
                let skipped = m.pred.is_some() && !fills;
                let kind = EventKind::Issue {
                    touches,
                    counter,
                    count: m.count(),
                    certain: !skipped && !m.may_be_joined(self.scan.func),
                };
                self.emit(stmt, kind)?;
            }
            StmtKind::Device(op) => self.device(stmt, op)?,
            StmtKind::Thread(op) => self.thread(stmt, op)?,
            _ => {}
        }
        Ok(Flow::Next)
    }

    /// What a unit touches; if it is a branch as a whole, under its condition.
    fn touch(&mut self, stmt: &'f Stmt, touches: Rc<Touches>) -> Result<(), Stop> {
        let StmtKind::If {
            cond, otherwise, ..
        } = &stmt.kind
        else {
            return self.emit(stmt, EventKind::Touch(touches));
        };
        if self.units.decides(cond, &self.env).is_some()
            || self.scan.varies(cond)
            || !self.scan.reads_constants(cond)
        {
            return self.emit(stmt, EventKind::Touch(touches));
        }
        let literals = self.literals(stmt, cond);
        let arms = if otherwise.is_empty() {
            [touches, Rc::default()]
        } else {
            let ways = self.units.ways(stmt, &touches);
            if !ways.always.is_empty() {
                self.emit(stmt, EventKind::Touch(ways.always))?;
            }
            ways.arms
        };
        let before = self.under.clone();
        for (literal, touches) in literals.into_iter().zip(arms) {
            let Some(under) = with(&before, literal) else {
                continue;
            };
            if touches.is_empty() {
                continue;
            }
            let same = under == before;
            if !same {
                self.enter(stmt, under)?;
            }
            self.emit(stmt, EventKind::Touch(touches))?;
            if !same {
                self.enter(stmt, before.clone())?;
            }
        }
        Ok(())
    }

    /// What a statement that writes one followed scalar certainly writes.
    fn written_value(&self, stmt: &Stmt) -> Option<i64> {
        if !self.under.is_empty() {
            return None;
        }
        match &stmt.kind {
            StmtKind::Store { value, .. } => self.env.value(value),
            _ => None,
        }
    }
}

fn undecided(span: Span, text: &str) -> Stop {
    Stop::Undecided(Reason {
        span,
        text: text.to_string(),
    })
}
