//! One group's way through the kernel, as a list of events.
//!
//! Control flow is the same for all threads of a group, so its way is known once the unknown
//! values it depends on are supposed: trip counts and conditions that are not constants. Where
//! one is met the walk stops and says what it needs ([`Need`]); the caller supposes each value
//! in turn and starts again.
//!
//! A condition around waits and accesses alone is not supposed. Its branches are walked one after
//! the other, and the events say under which condition they are ([`EventKind::Under`]).

use std::collections::BTreeSet;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{
    Arrival, BarrierKind, Block, Buffer, Counter, DeviceOp, Expr, ExprKind, FenceKind, Inst, Loop,
    LoopKind, Machine, MicroOp, Span, Stmt, StmtKind, ThreadOp, TmaBox, Var,
};

use super::conditions::{Around, Conditions, Literal, Under, with};
use super::event::{Event, EventKind, Trace};
use super::report::Reason;
use super::rhythm::{core, solve};
use super::scan::{Key, Scan, key};
use super::touch::{Touch, Touches};
use super::units::{Units, bound, trip_count};
use super::value::{Bound, Env, evaluate};

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
/// Loops up to this many iterations are run as they are.
const FULL: i64 = 8;

/// All windows of four choices come up in this circle of sixteen.
const CIRCLE: u16 = 0b1111_0101_1001_0000;

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
        Ok(flow)
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
            StmtKind::WarpGroup { body, .. }
                if self.scan.group_takes(stmt, self.group) == Some(true) =>
            {
                return self.block(body);
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

    fn device(&mut self, stmt: &'f Stmt, op: &'f DeviceOp) -> Result<(), Stop> {
        match op {
            DeviceOp::Wait { counter, at_most } => {
                self.emit(stmt, EventKind::Wait(*counter, *at_most))
            }
            DeviceOp::WaitRead { at_most } => self.emit(stmt, EventKind::WaitRead(*at_most)),
            DeviceOp::Commit(counter) => self.emit(stmt, EventKind::Commit(*counter)),
            DeviceOp::Barrier(kind) => match kind {
                BarrierKind::Block => self.barrier(stmt, false),
                BarrierKind::Bare => self.barrier(stmt, true),
                BarrierKind::Named { id, count } => self.named(stmt, *id, *count),
                BarrierKind::Cond(_) => {
                    if self.scan.group_takes(stmt, self.group) == Some(true) {
                        return self.barrier(stmt, true);
                    }
                    // Keeps the places of events the same in all groups.
                    self.emit(stmt, EventKind::Nothing)
                }
            },
            DeviceOp::BarrierInit { .. } => Err(undecided(
                stmt.span,
                "arrival barriers initialised in the program are not modelled",
            )),
            DeviceOp::Fence(kind @ (FenceKind::AsyncProxy | FenceKind::Wgmma)) => {
                self.emit(stmt, EventKind::Fence(*kind))
            }
            DeviceOp::Fence(_)
            | DeviceOp::SetPrio(_)
            | DeviceOp::SchedBarrier(_)
            | DeviceOp::SchedGroupBarrier { .. }
            | DeviceOp::Iteration(_) => Ok(()),
        }
    }

    fn barrier(&mut self, stmt: &Stmt, bare: bool) -> Result<(), Stop> {
        let drains = self.machine.barrier.drains && !bare;
        self.emit(stmt, EventKind::Barrier { bare, drains })
    }

    fn named(&mut self, stmt: &Stmt, id: u32, count: u32) -> Result<(), Stop> {
        self.emit(stmt, EventKind::Named { id, count })
    }

    fn thread(&mut self, stmt: &'f Stmt, op: &'f ThreadOp) -> Result<(), Stop> {
        match op {
            ThreadOp::SyncThreads { named: None } | ThreadOp::SyncGrid => self.barrier(stmt, false),
            ThreadOp::SyncThreads {
                named: Some((id, count)),
            } => self.named(stmt, *id, *count),
            ThreadOp::Vote { kind, .. } if kind.is_of_block() => self.barrier(stmt, false),
            ThreadOp::AllReduce { .. } => {
                self.barrier(stmt, false)?;
                let touches = self.units.unit(stmt, &self.env);
                self.emit(stmt, EventKind::Touch(touches))
            }
            ThreadOp::SyncCluster => self.emit(stmt, EventKind::Cluster),
            ThreadOp::SyncWarp => self.emit(stmt, EventKind::SyncWarp),
            ThreadOp::BarrierArrive {
                barrier,
                index,
                warp,
                cluster,
            } => {
                let barrier = self.mbarrier(stmt, *barrier, index)?;
                let cluster = *cluster;
                let count = match warp {
                    true => self.scan.warps_in(self.group),
                    false => self.scan.threads_in(self.group),
                };
                let kind = EventKind::Arrive {
                    barrier,
                    count,
                    cluster,
                };
                self.emit(stmt, kind)
            }
            ThreadOp::BarrierWait {
                barrier,
                index,
                parity,
            } => {
                let barrier = self.mbarrier(stmt, *barrier, index)?;
                let Some(parity) = self.env.value(parity) else {
                    return Err(undecided(stmt.span, "the parity waited for is not known"));
                };
                self.emit(stmt, EventKind::Await { barrier, parity })
            }
            ThreadOp::BarrierExpect {
                barrier,
                index,
                bytes,
                arrive,
            } => {
                let barrier = self.mbarrier(stmt, *barrier, index)?;
                let Some(bytes) = self.env.value(bytes) else {
                    return Err(undecided(stmt.span, "the bytes announced are not known"));
                };
                let count = self.scan.threads_in(self.group);
                let bytes = bytes.saturating_mul(count.into());
                self.emit(stmt, EventKind::Expect { barrier, bytes })?;
                let arrival = EventKind::Arrive {
                    barrier,
                    count,
                    cluster: false,
                };
                match arrive {
                    true => self.emit(stmt, arrival),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Each thread of the group has a box loaded for each point.
    fn bulk_load(
        &mut self,
        stmt: &'f Stmt,
        m: &'f MicroOp,
        tile: TmaBox,
        arrival: &'f Arrival,
    ) -> Result<(), Stop> {
        if !self.is_issued(stmt, m)? {
            return Ok(());
        }
        let barrier = self.mbarrier(stmt, arrival.barrier, &arrival.index)?;
        let dtype = self.scan.func.buffers[m.dest.region.buffer].dtype;
        let bits = i64::from(tile.elements()) * i64::from(dtype.bits());
        let boxes = i64::from(m.count()) * i64::from(self.scan.threads_in(self.group));
        let kind = EventKind::Bulk {
            touches: self.units.micro(stmt, &self.env),
            barrier,
            bytes: boxes * bits / 8,
            twice: self.units.boxes_meet(m, &tile, &self.env),
            multicast: arrival.multicast,
        };
        self.emit(stmt, kind)
    }

    /// Each thread of the group has a box stored for each point. What is read and what is written
    /// are waited for apart.
    fn bulk_store(&mut self, stmt: &'f Stmt, m: &'f MicroOp, counter: Counter) -> Result<(), Stop> {
        if counter != Counter::TmaStore {
            return Err(undecided(stmt.span, "a bulk copy that nothing hears of"));
        }
        if !self.is_issued(stmt, m)? {
            return Ok(());
        }
        let touches = self.units.micro(stmt, &self.env);
        let (writes, reads): (Vec<Touch>, Vec<Touch>) = touches
            .shared
            .iter()
            .cloned()
            .partition(|touch| touch.write);
        for shared in [reads, writes] {
            if shared.is_empty() {
                continue;
            }
            let touches = Rc::new(Touches {
                shared,
                registers: Vec::new(),
            });
            let kind = EventKind::Issue {
                touches,
                counter,
                count: m.count(),
                certain: true,
            };
            self.emit(stmt, kind)?;
        }
        Ok(())
    }

    /// Whether a bulk copy is issued here.
    fn is_issued(&mut self, stmt: &Stmt, m: &MicroOp) -> Result<bool, Stop> {
        let decided = match &m.pred {
            Some(pred) => self.units.decides(pred, &self.env),
            None => Some(true),
        };
        decided.ok_or_else(|| undecided(stmt.span, "a bulk copy that may not be issued"))
    }

    fn mbarrier(&self, stmt: &Stmt, barrier: Buffer, index: &Expr) -> Result<(Buffer, i64), Stop> {
        match self.env.value(index) {
            Some(index) => Ok((self.scan.root(barrier), index)),
            None => Err(undecided(
                stmt.span,
                "which arrival barrier is meant is not known",
            )),
        }
    }

    fn branch(
        &mut self,
        stmt: &'f Stmt,
        cond: &'f Expr,
        then: &'f Block,
        otherwise: &'f Block,
    ) -> Result<Flow, Stop> {
        let taken = match self.scan.group_takes(stmt, self.group) {
            Some(taken) => Some(taken),
            None => self.units.decides(cond, &self.env),
        };
        if let Some(taken) = taken {
            return self.block(if taken { then } else { otherwise });
        }
        if !self.scan.is_blocking(stmt) {
            return self.both_ways(stmt, cond, then, otherwise);
        }
        let folded = self.env.fold(cond);
        if let Some(need) = self.block_index(&folded) {
            return Err(Stop::Need(need));
        }
        let expanded = self.scan.expand(cond);
        let fixed = self.is_fixed(&expanded);
        if !fixed && !self.scan.is_meeting(stmt) {
            return self.both_ways(stmt, cond, then, otherwise);
        }
        if fixed || self.is_fixed_there(&expanded) {
            return Err(Stop::Need(Need {
                expr: folded,
                values: vec![1, 0],
            }));
        }
        self.trace.turns = 16;
        let first = self.met.is_empty();
        if !first && !self.met.contains_key(&key(stmt)) {
            // Each pattern of one is tried, but not each pattern of both.
            return Err(undecided(
                stmt.span,
                "several conditions around barriers change from iteration to iteration",
            ));
        }
        let met = self.met.entry(key(stmt)).or_insert(0);
        let taken = CIRCLE >> ((*met + self.turn) % 16) & 1 == 1;
        *met += 1;
        self.block(if taken { then } else { otherwise })
    }

    /// A branch that no other wave takes part in: one way after the other, each under its
    /// condition.
    fn both_ways(
        &mut self,
        stmt: &'f Stmt,
        cond: &'f Expr,
        then: &'f Block,
        otherwise: &'f Block,
    ) -> Result<Flow, Stop> {
        let ways = self.literals(stmt, cond);
        let before = self.under.clone();
        let cond = self.env.fold(cond);
        let varies = self.scan.varies(&cond);
        for ((holds, block), literal) in [(true, then), (false, otherwise)].into_iter().zip(ways) {
            if block.is_empty() {
                continue;
            }
            // The same condition may be around already.
            let Some(under) = with(&before, literal) else {
                continue;
            };
            self.enter(stmt, under)?;
            let around = self.units.around.len();
            if varies {
                let guard = if holds { cond.clone() } else { !cond.clone() };
                self.units.around.push(guard);
            }
            self.block(block)?;
            self.units.around.truncate(around);
            self.enter(stmt, before.clone())?;
        }
        Ok(Flow::Next)
    }

    /// The literals of both ways of a branch.
    fn literals(&mut self, stmt: &Stmt, cond: &Expr) -> [Literal; 2] {
        let around = self.loops.iter().map(|&(var, value)| Around {
            var,
            value: value - self.skipped.get(&var).copied().unwrap_or(0),
            counted: self.env.vars.contains_key(&var),
        });
        let around: Vec<Around> = around.collect();
        let scan = self.scan;
        let conditions = &mut self.conditions;
        conditions.literals(scan, stmt, cond, &around, self.iterations)
    }

    fn enter(&mut self, stmt: &Stmt, under: Under) -> Result<(), Stop> {
        self.under = under.clone();
        self.emit(stmt, EventKind::Under(under))
    }

    /// The block index behind a value, where it alone is and has few values, or else the value
    /// itself, where it has few: then all are tried.
    fn block_index(&self, e: &Expr) -> Option<Need> {
        const MOST: usize = 32;
        const MOST_BLOCKS: i64 = 1 << 12;
        let mut vars = FxHashSet::default();
        let mut loads = false;
        e.walk(&mut |node| {
            vars.extend(node.as_var());
            loads |= matches!(node.kind(), ExprKind::Load { .. });
        });
        let (1, Some(var), false) = (vars.len(), vars.iter().next(), loads) else {
            return None;
        };
        let (_, extent) = self.scan.kernel.grid.iter().find(|(v, _)| v == var)?;
        let extent = i64::try_from(extent.as_int()?).ok()?;
        if extent <= MOST as i64 {
            let dtype = self.scan.func.vars[*var].dtype;
            return Some(Need {
                expr: Expr::new(ExprKind::Var(*var), dtype, Span::NONE),
                values: (0..extent).collect(),
            });
        }
        let (core, _) = core(e);
        let at = |index: i64| evaluate(&core, &|v| (v == *var).then_some(index));
        let blocks = (extent <= MOST_BLOCKS).then_some(0..extent)?;
        let values: BTreeSet<i64> = blocks.map(at).collect::<Option<_>>()?;
        (values.len() <= MOST).then(|| Need {
            expr: core,
            values: values.into_iter().collect(),
        })
    }

    /// Whether the value is the same whenever it is asked for.
    fn is_fixed(&self, e: &Expr) -> bool {
        let mut fixed = true;
        e.walk(&mut |node| match node.kind() {
            ExprKind::Load { .. } => fixed = false,
            ExprKind::Var(var) => fixed &= self.scan.is_fixed(*var),
            _ => {}
        });
        fixed
    }

    /// The same of a value that is read from memory which the kernel leaves as it is.
    fn is_fixed_there(&self, e: &Expr) -> bool {
        let mut fixed = self.scan.reads_constants(e);
        e.walk(&mut |node| {
            if let ExprKind::Var(var) = node.kind() {
                fixed &= self.scan.is_fixed(*var);
            }
        });
        fixed
    }

    /// A `for`.
    fn counted(&mut self, stmt: &'f Stmt, l: &'f Loop) -> Result<Flow, Stop> {
        let [axis] = &l.axes[..] else {
            return self.uncounted(stmt, &l.body);
        };
        if matches!(
            l.kind,
            LoopKind::Persistent { .. } | LoopKind::Parallel { .. }
        ) {
            return self.uncounted(stmt, &l.body);
        }
        let (start, stop) = (self.env.fold(&axis.start), self.env.fold(&axis.stop));
        let Some(step) = self.env.value(&axis.step) else {
            return Err(undecided(stmt.span, "the step of this loop is not known"));
        };
        if self.scan.varies(&start) || self.scan.varies(&stop) {
            return Err(undecided(
                stmt.span,
                "threads may leave a loop with a barrier at different times",
            ));
        }
        let (rhythm, conditions) = self.units.rhythm(stmt, l, axis.var);
        let known = |e: &Expr| i64::try_from(e.as_int()?).ok();
        let Some(first) = known(&start) else {
            let values = (0..rhythm.period).map(|r| r * step).collect();
            return Err(self.need(&start, values, stmt.span));
        };
        let Some(last) = known(&stop) else {
            // The longest ones must show that more iterations change nothing.
            let counts = 0..rhythm.lead() + rhythm.rest() + rhythm.period;
            let values = counts.map(|n| first + n * step).collect();
            return Err(self.need(&stop, values, stmt.span));
        };
        let Some(count) = trip_count(first, last, step) else {
            return Err(undecided(stmt.span, "a loop with the step zero"));
        };
        let mut constant = true;
        self.scan.expand(&axis.stop).walk(&mut |node| {
            constant &= !matches!(node.kind(), ExprKind::Var(_) | ExprKind::Load { .. });
        });
        let supposed = !constant && !self.env.supposed.is_empty();
        let longest = rhythm.lead() + rhythm.rest();
        let rhythm = rhythm.measured(&conditions, &self.env, (axis.var, first, step, count));
        let mut steady = None;
        let mut skipped = None;
        let (head, tail) = (rhythm.lead(), rhythm.rest());
        let whole = !rhythm.regular || self.whole.contains(&key(stmt));
        let long = count > FULL && !whole && head + tail + rhythm.period < count;
        // Left out: whole periods in the middle.
        let room = if long { count - head - tail } else { 0 };
        let jump = match rhythm.meets() {
            true => self.units.leaps.of(count, room, rhythm.period),
            false => room / rhythm.period * rhythm.period,
        };
        if jump > 0 {
            skipped = Some((head, jump));
            steady = Some((head as usize, rhythm.period as usize));
        } else if supposed && count >= head + tail {
            let at = count - tail;
            steady = Some((at as usize, rhythm.period as usize));
            if !rhythm.regular {
                // More iterations touch other places.
                steady = Some((0, 1));
            }
        }
        if steady.is_none() && supposed && count >= longest {
            return Err(undecided(
                stmt.span,
                "conditions over this loop's index decide differently far from its ends",
            ));
        }
        self.emit(stmt, EventKind::EnterLoop(steady.is_some()))?;
        let mut n = 0;
        while n < count {
            if let Some((at, jump)) = skipped
                && n == at
            {
                n += jump;
                self.skipped.insert(axis.var, jump * step);
                self.emit(stmt, EventKind::Skip(axis.var, jump * step))?;
            }
            if self.iteration(stmt, &l.body, axis.var, first + n * step)? == Flow::Break {
                break;
            }
            n += 1;
        }
        self.moment_stale = true;
        self.env.vars.remove(&axis.var);
        self.skipped.remove(&axis.var);
        // Where conditions follow patterns no state repeats; the patterns are all there are.
        let steady = steady.filter(|_| self.met.is_empty());
        self.emit(stmt, EventKind::LeaveLoop(steady))?;
        Ok(Flow::Next)
    }

    fn iteration(
        &mut self,
        stmt: &Stmt,
        body: &'f Block,
        var: Var,
        value: i64,
    ) -> Result<Flow, Stop> {
        self.loops.push((var, value));
        self.moment_stale = true;
        self.env.vars.insert(var, Bound::Known(value));
        let flow = self
            .emit(stmt, EventKind::Iteration)
            .and_then(|()| self.block(body));
        self.loops.pop();
        self.moment_stale = true;
        flow
    }

    /// A `while` as long as its condition is known.
    fn repeated(&mut self, stmt: &'f Stmt, cond: &'f Expr, body: &'f Block) -> Result<Flow, Stop> {
        const MOST: usize = 1 << 12;
        if self.env.value(cond).is_none() {
            return self.uncounted(stmt, body);
        }
        self.emit(stmt, EventKind::EnterLoop(false))?;
        for _ in 0..MOST {
            match self.env.value(cond) {
                Some(0) => {
                    self.emit(stmt, EventKind::LeaveLoop(None))?;
                    return Ok(Flow::Next);
                }
                Some(_) => {}
                None => return Err(undecided(stmt.span, "this condition is not always known")),
            }
            self.emit(stmt, EventKind::Iteration)?;
            if self.block(body)? == Flow::Break {
                self.emit(stmt, EventKind::LeaveLoop(None))?;
                return Ok(Flow::Next);
            }
        }
        Err(undecided(stmt.span, "this loop runs too long to follow"))
    }

    /// A loop whose index and number of iterations are not known: none, one, and so many that
    /// the state repeats.
    fn uncounted(&mut self, stmt: &'f Stmt, body: &'f Block) -> Result<Flow, Stop> {
        const MOST: i64 = 4;
        let mut varies = false;
        tilewright_ir::visit::stmt_exprs(stmt, &mut |e| varies |= self.scan.varies(e));
        if varies {
            return Err(undecided(
                stmt.span,
                "threads may leave a loop with a barrier at different times",
            ));
        }
        // The statement's own address makes a name for the count.
        let name = Expr::new(
            ExprKind::Int((key(stmt) as i128) & i128::from(i64::MAX)),
            tilewright_ir::DType::I64,
            Span::NONE,
        );
        let Some(&count) = self.env.supposed.get(&name) else {
            return Err(Stop::Need(Need {
                expr: name,
                values: (0..=MOST).collect(),
            }));
        };
        let var = match &stmt.kind {
            StmtKind::For(l) => l.axes.first().map(|a| a.var),
            _ => None,
        };
        for buffer in self.scan.written_scalars(stmt) {
            self.env.scalars.remove(buffer);
        }
        self.emit(stmt, EventKind::EnterLoop(count == MOST))?;
        for n in 0..count {
            self.moment_stale = true;
            if let Some(var) = var {
                self.loops.push((var, n));
            }
            self.emit(stmt, EventKind::Iteration)?;
            let flow = self.block(body)?;
            if var.is_some() {
                self.loops.pop();
            }
            if flow == Flow::Break {
                break;
            }
        }
        self.moment_stale = true;
        let steady = (count == MOST && self.met.is_empty()).then_some((MOST as usize - 1, 1));
        self.emit(stmt, EventKind::LeaveLoop(steady))?;
        Ok(Flow::Next)
    }

    /// An unknown bound: the part of it that is not plain arithmetic with constants, so that
    /// guards over the same part follow; where a single variable is behind it, that variable.
    fn need(&self, e: &Expr, wanted: Vec<i64>, span: Span) -> Stop {
        if let Some(need) = self.block_index(e) {
            return Stop::Need(need);
        }
        let (core, offset) = core(e);
        if core.as_int().is_some() {
            return undecided(span, "the bounds of this loop are not known");
        }
        let wanted = wanted.iter().filter_map(|w| w.checked_sub(offset));
        let mut wanted: Vec<i64> = wanted.collect();
        // What comes before or after a loop that was cut short depends on counts too small for
        // the loop itself.
        let least = wanted.iter().copied().min().unwrap_or(0);
        wanted.extend(0..least.min(16));
        wanted.sort_unstable();
        let mut vars = FxHashSet::default();
        core.walk(&mut |node| vars.extend(node.as_var()));
        if let (1, Some(&var)) = (vars.len(), vars.iter().next())
            && self.is_fixed(&core)
        {
            let values: Vec<i64> = wanted
                .iter()
                .filter_map(|&w| solve(&core, var, w))
                .collect();
            if values.len() * 2 > wanted.len() {
                let dtype = self.scan.func.vars[var].dtype;
                let expr = Expr::new(ExprKind::Var(var), dtype, Span::NONE);
                return Stop::Need(Need { expr, values });
            }
        }
        Stop::Need(Need {
            expr: core,
            values: wanted,
        })
    }
}

fn undecided(span: Span, text: &str) -> Stop {
    Stop::Undecided(Reason {
        span,
        text: text.to_string(),
    })
}
