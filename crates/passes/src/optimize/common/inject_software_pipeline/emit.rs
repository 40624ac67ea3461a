//! The sections of a pipelined loop as statements.
//!
//! Iteration `it` of a section runs a piece of distance `d` for loop iteration `it + d`: the loop's
//! index becomes its value there, and buffers are accessed in version `(it + d) % versions`.

use rustc_hash::FxHashMap;
use tilewright_ir::{
    Axis, BarrierKind, Block, Buffer, Counter, DType, DeviceOp, Expr, Func, Loop, LoopKind, Span,
    Stmt, StmtKind, Target, ThreadOp, Var, VarKind,
};
use tilewright_schedule::order::{Completion, Section, Step, Tail};

use super::super::effects::Effects;
use super::super::fresh::refresh;
use super::derive::Scheduled;
use super::pieces::{Piece, Pieces};
use super::slots::add_slots;
use super::weave::{self, Strand};

/// Writes the loop out.
pub(super) fn emit(
    func: &mut Func,
    target: Target,
    l: &Loop,
    pieces: &Pieces,
    scheduled: &Scheduled,
    span: Span,
) -> Block {
    let axis = &l.axes[0];
    let dtype = axis.stop.dtype();
    let mut out = pieces.allocs.clone();
    let trips = match axis.const_trip_count() {
        Some(n) => Trips::Known(i128::from(n)),
        None => Trips::Computed(trip_count(func, axis, span, &mut out)),
    };
    let plain = axis.start.is_int(0) && axis.step.is_int(1);
    let steady = if plain {
        axis.var
    } else {
        let name = func.vars[axis.var].name.clone();
        func.add_var(name, dtype, VarKind::Loop)
    };
    let depth = i128::from(scheduled.schedule.depth);
    let mut buffers = scheduled.buffers.iter();
    let versioned = buffers.any(|b| func.buffers[*b].versions > 1);
    let mut emit = Emit {
        func,
        target,
        axis,
        dtype,
        pieces,
        scheduled,
        trips,
        priority: 0,
        at: At::Before,
        span,
        out,
    };
    for (at, section) in scheduled.schedule.prologue.iter().enumerate() {
        emit.prologue(section, at as i128 - depth);
    }
    emit.at = At::Loop;
    emit.shift(1);
    emit.steady(steady);
    emit.at = At::Behind;
    for (at, section) in scheduled.schedule.epilogue.iter().enumerate() {
        emit.epilogue(section, depth - at as i128);
    }
    let mut drain = Scope::default();
    for step in &scheduled.schedule.drain {
        emit.step(*step, &mut drain);
    }
    emit.out.append(&mut drain.stmts);
    emit.shift(0);
    if versioned {
        let end = StmtKind::Device(DeviceOp::Iteration(None));
        emit.out.push(Stmt::new(end, span));
    }
    emit.out
}

/// How often the loop runs.
#[derive(Clone)]
enum Trips {
    Known(i128),
    /// May be below zero, which means none.
    Computed(Expr),
}

fn trip_count(func: &mut Func, axis: &Axis, span: Span, out: &mut Block) -> Expr {
    let mut count = axis.stop.clone();
    if !axis.start.is_int(0) {
        count = count - axis.start.clone();
    }
    if !axis.step.is_int(1) {
        count = count.ceil_div(&axis.step);
    }
    if count.as_var().is_some() {
        return count;
    }
    let name = format!("{}_trips", func.vars[axis.var].name);
    let var = func.add_var(name, count.dtype(), VarKind::Let);
    out.push(Stmt::new(StmtKind::Let { var, value: count }, span));
    func.var_expr(var)
}

/// Where the emitter stands. Before the loop nobody multiplies whom others would be in the way of; outside
/// of it instructions that stand by themselves would only take registers for their addresses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Before,
    Loop,
    Behind,
}

struct Emit<'a> {
    func: &'a mut Func,
    target: Target,
    axis: &'a Axis,
    dtype: DType,
    pieces: &'a Pieces,
    scheduled: &'a Scheduled,
    trips: Trips,
    /// Of the instructions where the emitter stands.
    priority: u8,
    at: At,
    span: Span,
    out: Block,
}

/// The statements of a section, and what they have named so far.
#[derive(Default)]
struct Scope {
    stmts: Block,
    /// By distance: what stands for the loop's index and for names of the body.
    names: FxHashMap<u32, FxHashMap<Var, Expr>>,
    /// Pieces under one condition that have not been closed yet.
    guarded: Option<(Expr, Box<Scope>)>,
    /// Pieces of a woven cluster that have not been written yet, with their iterations.
    woven: Vec<(usize, Expr)>,
    /// The counters that the pieces here add to.
    counters: Vec<Counter>,
    /// The iteration that was named last.
    iteration: Option<Expr>,
}

impl Scope {
    /// Ends the condition that the last pieces stand under.
    fn close(&mut self, span: Span) {
        if let Some((cond, inner)) = self.guarded.take() {
            let kind = StmtKind::If {
                cond,
                then: inner.stmts,
                otherwise: Vec::new(),
            };
            self.stmts.push(Stmt::new(kind, span));
            // Where the condition turns out to hold always, its block becomes a part of this one.
            self.iteration = None;
        }
    }

    /// Puts a wait before pieces under a condition that add nothing to its counter, so that they
    /// can stay together with those after it.
    fn wait_before(&mut self, counter: Counter, at_most: u32, span: Span) -> bool {
        let Some((_, inner)) = &self.guarded else {
            return false;
        };
        if inner.counters.contains(&counter) {
            return false;
        }
        let mut at_most = at_most;
        if let Some(last) = self.stmts.last()
            && let StmtKind::Device(DeviceOp::Wait {
                counter: own,
                at_most: most,
            }) = last.kind
            && own == counter
        {
            at_most = at_most.min(most);
            self.stmts.pop();
        }
        let wait = StmtKind::Device(DeviceOp::Wait { counter, at_most });
        self.stmts.push(Stmt::new(wait, span));
        true
    }
}

impl Emit<'_> {
    fn int(&self, value: i128) -> Expr {
        Expr::int(value, self.dtype)
    }

    /// One half of the waves comes to a barrier more than the other, where the order has them run a
    /// barrier apart: the second before the loop, the first behind it.
    fn shift(&mut self, which: i32) {
        if let Some(half) = &self.scheduled.half {
            let cond = half.clone().equal(Expr::i32(which));
            let barrier = DeviceOp::Barrier(BarrierKind::Cond(cond));
            self.out
                .push(Stmt::new(StmtKind::Device(barrier), self.span));
        }
    }

    /// The instructions behind this have so high a priority.
    fn prioritise(&mut self, priority: u8, scope: &mut Scope) {
        if self.priority != priority && self.at != At::Before {
            scope.close(self.span);
            let kind = StmtKind::Device(DeviceOp::SetPrio(priority));
            scope.stmts.push(Stmt::new(kind, self.span));
            self.priority = priority;
        }
    }

    /// Ends a section.
    fn close(&mut self, scope: &mut Scope) {
        self.weave(scope);
        self.prioritise(0, scope);
        scope.close(self.span);
    }

    /// Iteration `it`, below zero.
    fn prologue(&mut self, section: &Section, it: i128) {
        let mut scope = Scope::default();
        for step in &section.steps {
            let Step::Run(piece) = *step else {
                self.step(*step, &mut scope);
                continue;
            };
            let iteration = it + i128::from(self.pieces.list[piece].distance);
            let guard = match &self.trips {
                Trips::Known(n) if iteration >= *n => continue,
                Trips::Known(_) => None,
                Trips::Computed(n) => Some(n.clone().gt(self.int(iteration))),
            };
            self.run(piece, self.int(iteration), guard, &mut scope);
        }
        self.close(&mut scope);
        self.out.append(&mut scope.stmts);
    }

    fn steady(&mut self, var: Var) {
        let depth = i128::from(self.scheduled.schedule.depth);
        let stop = match (self.scheduled.tail, &self.trips) {
            (Tail::Guard, Trips::Known(n)) => self.int(*n),
            (Tail::Guard, Trips::Computed(n)) => n.clone(),
            (Tail::Peel, Trips::Known(n)) => self.int((n - depth).max(0)),
            (Tail::Peel, Trips::Computed(n)) if depth == 0 => n.clone(),
            (Tail::Peel, Trips::Computed(n)) => n.clone() - self.int(depth),
        };
        if stop.is_int(0) {
            return;
        }
        let it = Expr::var(var, self.dtype);
        let mut scope = Scope::default();
        for step in &self.scheduled.schedule.steady.steps {
            let Step::Run(piece) = *step else {
                self.step(*step, &mut scope);
                continue;
            };
            let distance = i128::from(self.pieces.list[piece].distance);
            let iteration = plus(it.clone(), distance);
            let guard = match (self.scheduled.tail, &self.trips) {
                _ if distance == 0 => None,
                (Tail::Peel, _) => None,
                (Tail::Guard, Trips::Known(n)) => Some(iteration.clone().lt(self.int(*n))),
                (Tail::Guard, Trips::Computed(n)) => Some(iteration.clone().lt(n)),
            };
            self.run(piece, iteration, guard, &mut scope);
        }
        self.close(&mut scope);
        let l = Loop {
            kind: LoopKind::Serial,
            axes: vec![Axis::upto(var, stop)],
            body: scope.stmts,
        };
        self.out.push(Stmt::new(StmtKind::For(l), self.span));
    }

    /// Iteration `n - back`.
    fn epilogue(&mut self, section: &Section, back: i128) {
        let whole = match &self.trips {
            Trips::Known(n) if *n < back => return,
            Trips::Known(_) => None,
            Trips::Computed(n) => Some(n.clone().ge(self.int(back))),
        };
        let mut scope = Scope::default();
        for step in &section.steps {
            let Step::Run(piece) = *step else {
                self.step(*step, &mut scope);
                continue;
            };
            let distance = i128::from(self.pieces.list[piece].distance);
            let iteration = match &self.trips {
                Trips::Known(n) => self.int(n - back + distance),
                Trips::Computed(n) => plus(n.clone(), distance - back),
            };
            self.run(piece, iteration, None, &mut scope);
        }
        self.close(&mut scope);
        match whole {
            None => self.out.append(&mut scope.stmts),
            Some(cond) => {
                let kind = StmtKind::If {
                    cond,
                    then: scope.stmts,
                    otherwise: Vec::new(),
                };
                self.out.push(Stmt::new(kind, self.span));
            }
        }
    }

    /// A piece at an iteration of the loop.
    fn run(&mut self, piece: usize, iteration: Expr, guard: Option<Expr>, scope: &mut Scope) {
        let woven_into = |piece: usize| self.pieces.list[piece].woven;
        let weaves = guard.is_none() && self.at == At::Loop;
        let woven = woven_into(piece).filter(|_| weaves);
        let last = scope.woven.last().map(|(last, _)| woven_into(*last));
        if last.is_some_and(|last| last != woven) {
            self.weave(scope);
        }
        if woven.is_some() {
            scope.woven.push((piece, iteration));
            return;
        }
        self.prioritise(self.pieces.list[piece].priority, scope);
        let Some(guard) = guard else {
            scope.close(self.span);
            let stmt = self.pieces.list[piece].stmt.clone();
            return self.place(piece, stmt, &iteration, scope);
        };
        if scope
            .guarded
            .as_ref()
            .is_none_or(|(cond, _)| *cond != guard)
        {
            scope.close(self.span);
            scope.guarded = Some((guard, Box::default()));
        }
        if let Some((_, inner)) = &mut scope.guarded {
            let stmt = self.pieces.list[piece].stmt.clone();
            self.place(piece, stmt, &iteration, inner);
        }
    }

    /// Writes the pieces of a woven cluster, instruction by instruction.
    fn weave(&mut self, scope: &mut Scope) {
        let held = std::mem::take(&mut scope.woven);
        let Some((first, _)) = held.first() else {
            return;
        };
        self.prioritise(self.pieces.list[*first].priority, scope);
        scope.close(self.span);
        let pieces = self.pieces;
        let stmts = held.iter().map(|(piece, _)| &pieces.list[*piece].stmt);
        let mut before: Option<Strand> = None;
        for (at, strand, stmt) in weave::instructions(stmts) {
            if before
                .replace(strand)
                .is_some_and(|before| before != strand)
            {
                let fence = StmtKind::Device(DeviceOp::SchedBarrier(0));
                scope.stmts.push(Stmt::new(fence, self.span));
            }
            let (piece, iteration) = &held[at];
            self.place(*piece, stmt, iteration, scope);
        }
    }

    /// Copies a piece, or an instruction of it, to the end of a scope.
    fn place(&mut self, piece: usize, stmt: Stmt, iteration: &Expr, scope: &mut Scope) {
        let pieces = self.pieces;
        let piece = &pieces.list[piece];
        let mut names = scope.names.remove(&piece.distance).unwrap_or_default();
        if names.is_empty() {
            names.insert(self.axis.var, self.index(iteration));
            names.extend(pieces.iteration.map(|var| (var, self.count(iteration))));
        }
        let mut stmts = Vec::new();
        for (var, value, span) in self.needed(piece) {
            if names.contains_key(&var) {
                continue;
            }
            let value = renamed(&value, &names);
            let data = self.func.vars[var].clone();
            let new = self.func.vars.push(data);
            names.insert(var, self.func.var_expr(new));
            stmts.push(Stmt::new(StmtKind::Let { var: new, value }, span));
        }
        let mut copy = vec![stmt];
        tilewright_ir::visit::block_exprs_mut(&mut copy, &mut |e| *e = renamed(e, &names));
        refresh(self.func, &mut copy);
        stmts.append(&mut copy);
        let count = self.count(iteration);
        let func: &Func = self.func;
        let scheduled = self.scheduled;
        let dtype = self.dtype;
        let effects = Effects::of(func, &piece.stmt);
        let mut touched = effects.reads.iter().chain(&effects.writes);
        let versioned = touched.any(|b| func.buffers[*b].versions > 1);
        if versioned && scope.iteration.as_ref() != Some(iteration) {
            let kind = StmtKind::Device(DeviceOp::Iteration(Some(iteration.clone())));
            stmts.insert(0, Stmt::new(kind, self.span));
            scope.iteration = Some(iteration.clone());
        }
        add_slots(func, &mut stmts, &|buffer: Buffer| {
            let versions = i128::from(scheduled.versions(func.root(buffer)));
            match count.as_int() {
                _ if versions == 1 => Expr::int(0, dtype),
                Some(i) => Expr::int(i % versions, dtype),
                None => count.clone().floor_mod(Expr::int(versions, dtype)),
            }
        });
        scope.stmts.append(&mut stmts);
        scope.names.insert(piece.distance, names);
        if let Completion::Counted { counter, .. } = piece.completion {
            scope.counters.push(counter);
        }
    }

    /// The names that a piece uses, with their values, in order.
    fn needed(&self, piece: &Piece) -> Vec<(Var, Expr, Span)> {
        let mut vars = Effects::of(self.func, &piece.stmt).vars;
        let mut needed = Vec::new();
        for stmt in self.pieces.lets.iter().rev() {
            if let StmtKind::Let { var, value } = &stmt.kind
                && vars.contains(var)
            {
                vars.extend(Effects::of_expr(self.func, value).vars);
                needed.push((*var, value.clone(), stmt.span));
            }
        }
        needed.reverse();
        needed
    }

    /// An iteration's number among those of all runs of the loop.
    fn count(&self, iteration: &Expr) -> Expr {
        match &self.pieces.before {
            Some(before) => before.clone() + iteration.clone(),
            None => iteration.clone(),
        }
    }

    /// The loop's index at an iteration.
    fn index(&self, iteration: &Expr) -> Expr {
        let mut index = iteration.clone();
        if !self.axis.step.is_int(1) {
            index = index * self.axis.step.clone();
        }
        if !self.axis.start.is_int(0) {
            index = self.axis.start.clone() + index;
        }
        index
    }

    fn step(&mut self, step: Step, scope: &mut Scope) {
        self.weave(scope);
        let kind = match step {
            Step::Run(_) => return,
            Step::Commit(counter) => StmtKind::Device(DeviceOp::Commit(counter)),
            Step::Wait { counter, at_most } if scope.wait_before(counter, at_most, self.span) => {
                return;
            }
            Step::Wait { counter, at_most } => {
                StmtKind::Device(DeviceOp::Wait { counter, at_most })
            }
            // Every wait is written down, so the barrier itself need wait for nothing.
            Step::Barrier if self.target.machine().barrier.bare => {
                StmtKind::Device(DeviceOp::Barrier(BarrierKind::Bare))
            }
            Step::Barrier => StmtKind::Device(DeviceOp::Barrier(BarrierKind::Block)),
            Step::WarpSync => StmtKind::Thread(ThreadOp::SyncWarp),
        };
        self.prioritise(0, scope);
        scope.close(self.span);
        scope.stmts.push(Stmt::new(kind, self.span));
    }
}

/// `e + n`.
fn plus(e: Expr, n: i128) -> Expr {
    let dtype = e.dtype();
    match n {
        0 => e,
        n if n < 0 => e - Expr::int(-n, dtype),
        n => e + Expr::int(n, dtype),
    }
}

fn renamed(e: &Expr, names: &FxHashMap<Var, Expr>) -> Expr {
    e.rewrite(&mut |node| names.get(&node.as_var()?).cloned())
}
