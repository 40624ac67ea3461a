//! A kernel's body as ThreadSync walks it: what each statement touches, and nothing else.
//!
//! Every statement is an item, in the order and nesting of the body. A statement without a
//! hazard inside is a *unit*, whatever loops it holds; one with a hazard is opened where a barrier
//! can stand in it. None of that depends on where barriers are put, so it is found out once.

use rustc_hash::FxHashSet;
use tilewright_arith::{Analyzer, Congruence};
use tilewright_ir::touched::written;
use tilewright_ir::uniform::{Points, Uniformity};
use tilewright_ir::visit::{child_blocks, walk_stmts};
use tilewright_ir::{
    Axis, BarrierKind, Block, Buffer, Code, DeviceOp, Diagnostic, Diagnostics, Expr, Func, Kernel,
    Loop, Span, Stmt, StmtKind, ThreadOp, Var, WARP_GROUP,
};

use crate::access::{Collector, Lets, in_groups};
use crate::conflicts::{Class, Conflicts};
use crate::exchange::exchanged;
use crate::facts::facts_of;
use crate::footprint::Meeting;
use crate::slots::{Slot, Slots};

const DIVERGENT_HAZARD: Code = Code("divergent-hazard");

/// One statement.
#[derive(Debug)]
pub struct Item {
    /// Its place among all items, outer first.
    pub at: usize,
    /// What a unit touches; what an opened statement reads before its blocks run.
    pub classes: Vec<Class>,
    /// The memory of any kind that a unit writes.
    pub writes: Vec<Buffer>,
    pub jumps: Jumps,
    pub kind: ItemKind,
}

/// Where a statement without items of its own goes on, in the innermost loop around it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Jumps {
    /// Behind itself.
    No,
    /// There, or in some threads behind the loop or with its next iteration.
    Perhaps,
    Break,
    Continue,
}

#[derive(Debug)]
pub enum ItemKind {
    Unit,
    /// Every thread of the block waits for all others.
    WaitsForBlock,
    WaitsForWarp,
    Loop {
        body: Vec<Item>,
        trips: Trips,
        /// The variables that have other values in the next iteration.
        changed: FxHashSet<Var>,
        /// The index, if it goes up by ones.
        index: Option<Index>,
    },
    Branch {
        then: Vec<Item>,
        otherwise: Vec<Item>,
        /// Not below zero where the first way is taken.
        when: Vec<Slot>,
        /// Not below zero where the other way is taken.
        unless: Vec<Slot>,
    },
    /// A region of some warp groups.
    Groups {
        body: Vec<Item>,
        groups: GroupSet,
        /// Whether it meets other regions at arrival barriers, so that they run side by side.
        meets: bool,
    },
}

/// Warp groups of 128 threads, as a set of bits; the empty one stands for the whole block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GroupSet(u32);

impl GroupSet {
    fn of(groups: &[u32]) -> GroupSet {
        let bits = groups.iter().filter_map(|g| 1u32.checked_shl(*g));
        GroupSet(bits.fold(0, |all, bit| all | bit))
    }

    pub fn is_block(self) -> bool {
        self.0 == 0
    }

    /// Whether a group is in both.
    pub fn meets(self, other: GroupSet) -> bool {
        self.0 & other.0 != 0
    }

    pub fn first(self) -> u32 {
        self.0.trailing_zeros()
    }

    pub fn threads(self) -> u32 {
        WARP_GROUP * self.0.count_ones()
    }
}

/// An index that goes up by ones, and what is known of it and of its loop.
#[derive(Clone, Copy, Debug)]
pub struct Index {
    pub var: Var,
    pub first: Slot,
    pub last: Slot,
    /// What is known of the last value's remainders.
    pub residue: Congruence,
    /// Not below zero inside the loop: the index less its first value.
    pub above: Slot,
    /// Not below zero in the first iteration.
    pub at_first: Slot,
    /// Not below zero from the second iteration on.
    pub later: Slot,
    /// Not below zero exactly where the loop runs.
    pub runs: Slot,
    /// Not below zero exactly where it does not.
    pub skips: Slot,
}

/// What is known of how often a loop runs.
#[derive(Clone, Copy, Debug)]
pub struct Trips {
    pub runs_again: bool,
    pub may_skip: bool,
    /// Its iterations are blocks of the program: what they do to tensors is in no order.
    pub are_blocks: bool,
}

/// The items of a kernel's body. Says where threads meet in a branch that not all take.
pub fn outline(
    func: &Func,
    kernel: &Kernel,
    conflicts: &mut Conflicts<'_>,
    diags: &mut Diagnostics,
) -> Vec<Item> {
    let uniformity = Uniformity::of(func, kernel, Points::OfThreads);
    let tensors = exchanged(func, kernel);
    let mut facts = Analyzer::for_func(func);
    facts.enter_kernel(func, kernel);
    let mut outliner = Outliner {
        kernel,
        collector: Collector {
            func,
            kernel,
            uniformity: &uniformity,
            tensors: &tensors,
        },
        conflicts,
        diags,
        facts,
        items: 0,
        loops: 0,
    };
    outliner.block(&kernel.body, &mut Lets::default())
}

struct Outliner<'f, 'c, 'k, 'd> {
    kernel: &'f Kernel,
    collector: Collector<'f>,
    conflicts: &'c mut Conflicts<'k>,
    diags: &'d mut Diagnostics,
    /// What is known of the grid and of the loops around.
    facts: Analyzer,
    items: usize,
    /// Loops around.
    loops: u32,
}

impl Outliner<'_, '_, '_, '_> {
    fn block(&mut self, block: &Block, lets: &mut Lets) -> Vec<Item> {
        let mark = lets.mark();
        let mut items = Vec::with_capacity(block.len());
        for (at, stmt) in block.iter().enumerate() {
            let jumps = self.collector.uniformity.jumps(stmt);
            if jumps.continues.is_divergent() {
                items.extend(self.apart(&block[at..], lets));
                break;
            }
            items.push(self.stmt(stmt, lets));
        }
        lets.forget(mark);
        items
    }

    /// The rest of an iteration from where some threads go on to the next one: the others do it
    /// alone, so that the block can wait before it only.
    fn apart(&mut self, stmts: &[Stmt], lets: &mut Lets) -> Vec<Item> {
        let mut accesses = Vec::new();
        let mut items = Vec::with_capacity(stmts.len());
        for stmt in stmts {
            accesses.extend(self.collector.unit(stmt, lets));
            if let StmtKind::Let { var, value } = &stmt.kind {
                lets.bind(*var, value);
            }
            items.push(Item {
                at: self.items,
                classes: Vec::new(),
                writes: writes(stmt),
                jumps: jumps(stmt),
                kind: ItemKind::Unit,
            });
            self.items += 1;
        }
        let classes = self.conflicts.classes(accesses);
        if self.has_exchange(&classes) {
            self.refuse(
                stmts[0].span,
                "threads exchange data through memory in an iteration that some of them have left",
                "end the exchange before the thread-dependent `continue`, or make its condition the same for all threads",
            );
        }
        items[0].classes = classes;
        items
    }

    fn stmt(&mut self, stmt: &Stmt, lets: &mut Lets) -> Item {
        let at = self.items;
        self.items += 1;
        let mut item = Item {
            at,
            classes: Vec::new(),
            writes: Vec::new(),
            jumps: Jumps::No,
            kind: ItemKind::Unit,
        };
        if closes_all(stmt, self.kernel) {
            item.kind = ItemKind::WaitsForBlock;
            return item;
        }
        if matches!(stmt.kind, StmtKind::Thread(ThreadOp::SyncWarp)) {
            item.kind = ItemKind::WaitsForWarp;
            return item;
        }
        if let Some(classes) = self.as_unit(stmt, lets) {
            item.classes = classes;
            item.writes = writes(stmt);
            item.jumps = jumps(stmt);
            if let StmtKind::Let { var, value } = &stmt.kind {
                lets.bind(*var, value);
            }
            return item;
        }
        let head = self.collector.head(stmt, lets);
        item.classes = self.conflicts.classes(head);
        item.kind = self.open(stmt, lets);
        item
    }

    /// Whether a loop's axis may have no iteration.
    fn may_skip(&mut self, axis: &Axis, lets: &Lets) -> bool {
        match axis.const_trip_count() {
            Some(count) => count == 0,
            None => {
                let (start, stop) = (lets.substitute(&axis.start), lets.substitute(&axis.stop));
                axis.step.as_int().is_none_or(|step| step <= 0)
                    || !self.facts.prove_lt(&start, &stop).is_yes()
            }
        }
    }

    /// The items inside a statement.
    fn open(&mut self, stmt: &Stmt, lets: &mut Lets) -> ItemKind {
        match &stmt.kind {
            StmtKind::For(l) => {
                let trips = Trips {
                    runs_again: l
                        .axes
                        .iter()
                        .all(|a| a.const_trip_count().is_none_or(|n| n > 1)),
                    may_skip: l.axes.iter().any(|a| self.may_skip(a, lets)),
                    are_blocks: self.kernel.attrs.resident && self.loops == 0,
                };
                let func = self.collector.func;
                let slots = &mut self.conflicts.slots;
                let index = index_of(slots, &mut self.facts, func, l, lets);
                self.facts.enter_loop(self.collector.func, l);
                let mut changed: FxHashSet<Var> = l.axes.iter().map(|a| a.var).collect();
                walk_stmts(&l.body, &mut |stmt| bound_vars(stmt, &mut changed));
                self.loops += 1;
                let body = self.block(&l.body, lets);
                self.loops -= 1;
                self.facts.pop();
                ItemKind::Loop {
                    body,
                    trips,
                    changed,
                    index,
                }
            }
            StmtKind::While { body, .. } => {
                let mut changed = FxHashSet::default();
                walk_stmts(body, &mut |stmt| bound_vars(stmt, &mut changed));
                ItemKind::Loop {
                    body: self.block(body, lets),
                    trips: Trips {
                        runs_again: true,
                        may_skip: true,
                        are_blocks: false,
                    },
                    changed,
                    index: None,
                }
            }
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                let cond = lets.substitute(cond);
                let slots = &mut self.conflicts.slots;
                ItemKind::Branch {
                    when: known_of(&cond, true, slots, &mut self.facts),
                    unless: known_of(&cond, false, slots, &mut self.facts),
                    then: self.block(then, lets),
                    otherwise: self.block(otherwise, lets),
                }
            }
            StmtKind::WarpGroup { groups, body } => {
                let mut meets = false;
                walk_stmts(body, &mut |s| meets |= is_sync(s) || is_arrival(s));
                let accesses = self.collector.unit(stmt, lets);
                let classes = self.conflicts.classes(accesses);
                let inside = in_groups(self.collector.func, self.collector.kernel, groups);
                lets.threads.push(inside);
                let body = self.block(body, lets);
                lets.threads.pop();
                ItemKind::Groups {
                    meets: meets || self.has_hazard(&classes),
                    groups: GroupSet::of(groups),
                    body,
                }
            }
            // Nothing else has blocks.
            _ => ItemKind::Unit,
        }
    }

    /// What the statement touches, unless barriers may be needed inside it and can stand there.
    fn as_unit(&mut self, stmt: &Stmt, lets: &mut Lets) -> Option<Vec<Class>> {
        let blocks = child_blocks(stmt);
        if blocks.is_empty() {
            let accesses = self.collector.unit(stmt, lets);
            return Some(self.conflicts.classes(accesses));
        }
        let divergent = self.collector.uniformity.inside(stmt).is_divergent();
        if matches!(stmt.kind, StmtKind::If { .. }) && !divergent {
            // All threads take the branch or none: a barrier inside is waited at only if taken.
            return None;
        }
        if matches!(stmt.kind, StmtKind::WarpGroup { .. }) {
            return None;
        }
        let mut has_barrier = false;
        for block in &blocks {
            walk_stmts(block, &mut |s| has_barrier |= is_sync(s));
        }
        if has_barrier && !divergent {
            return None;
        }
        let accesses = self.collector.unit(stmt, lets);
        let classes = self.conflicts.classes(accesses);
        if !divergent {
            return (!self.has_hazard(&classes)).then_some(classes);
        }
        if has_barrier {
            return Some(classes);
        }
        let jumps = self.collector.uniformity.jumps_inside(stmt);
        if jumps.breaks.is_divergent() {
            // Its iterations look like the block's own work, which the block would wait for.
            if self.has_exchange(&classes) {
                self.refuse(
                    stmt.span,
                    "threads exchange data through memory in a loop that some of them leave before others",
                    "make the condition of the `break` the same for all threads, or let every thread run all iterations and guard the work in them",
                );
            }
        } else if self.has_certain_hazard(&classes) {
            self.refuse(
                stmt.span,
                "threads exchange data through memory inside a thread-dependent branch",
                "move the exchange out of the branch, or make its condition the same for all threads",
            );
        }
        Some(classes)
    }

    fn refuse(&mut self, span: Span, why: &str, help: &str) {
        let error = Diagnostic::error(DIVERGENT_HAZARD, span, why).help(help);
        self.diags.push(error);
    }

    /// Whether two of the accesses conflict, in one iteration or between two.
    fn has_hazard(&mut self, classes: &[Class]) -> bool {
        let meets = |relation: Option<crate::conflicts::Relation>| {
            relation.is_some_and(|r| r.meeting() > Meeting::InThread)
        };
        // One answer suffices, so those that take no counting come first.
        let conflicts = &mut *self.conflicts;
        let asked = pairs(classes).filter(|(a, b)| !conflicts.is_same_scatter(*a, *b));
        let asked: Vec<(Class, Class)> = asked.collect();
        let (mut first, mut again) = (asked.iter(), asked.iter());
        first.any(|(a, b)| meets(conflicts.known_relation(*a, *b)))
            || again.any(|(a, b)| meets(Some(conflicts.relation(*a, *b))))
    }

    /// Whether threads exchange data where no barrier can stand. Of tensors only what is certain
    /// counts: their places often depend on data.
    fn has_exchange(&mut self, classes: &[Class]) -> bool {
        let conflicts = &*self.conflicts;
        let shared = classes.iter().copied();
        let shared: Vec<Class> = shared.filter(|c| !conflicts.is_tensor(*c)).collect();
        self.has_hazard(&shared) || self.has_certain_hazard(classes)
    }

    /// Whether two threads certainly meet inside the statement. Where that is not known, code
    /// that speaks of threads is taken to know what it does.
    fn has_certain_hazard(&mut self, classes: &[Class]) -> bool {
        pairs(classes).any(|(a, b)| self.conflicts.certain(a, b))
    }
}

/// What is known where a condition holds or does not. The condition as it stands speaks of the
/// same things as those around it; simplified it may say more.
pub fn known_of(cond: &Expr, holds: bool, slots: &mut Slots, facts: &mut Analyzer) -> Vec<Slot> {
    let mut known = facts_of(cond, holds, slots, facts);
    let simple = facts.simplify(cond);
    known.extend(facts_of(&simple, holds, slots, facts));
    known
}

/// The buffers that a statement may write, in the blocks inside it too.
fn writes(stmt: &Stmt) -> Vec<Buffer> {
    let mut found = Vec::new();
    written(stmt, &mut |b| found.push(b));
    found.extend(child_blocks(stmt).into_iter().flatten().flat_map(writes));
    found
}

/// How a unit leaves its block: jumps out of loops inside it do not count.
pub fn jumps(stmt: &Stmt) -> Jumps {
    fn inside(stmt: &Stmt) -> bool {
        match &stmt.kind {
            StmtKind::Break | StmtKind::Continue => true,
            StmtKind::For(_) | StmtKind::While { .. } => false,
            _ => child_blocks(stmt).into_iter().flatten().any(inside),
        }
    }
    match &stmt.kind {
        StmtKind::Break => Jumps::Break,
        StmtKind::Continue => Jumps::Continue,
        _ if inside(stmt) => Jumps::Perhaps,
        _ => Jumps::No,
    }
}

/// The index of a loop, if it goes up by ones; `known` says what arithmetic does not wrap.
pub fn index_of(
    slots: &mut Slots,
    known: &mut Analyzer,
    func: &Func,
    l: &Loop,
    lets: &Lets,
) -> Option<Index> {
    let [axis] = &l.axes[..] else {
        return None;
    };
    // A loop that is left early is left at any index.
    let mut leaves = false;
    walk_stmts(&l.body, &mut |s| leaves |= s.kind == StmtKind::Break);
    if leaves || !axis.step.is_int(1) {
        return None;
    }
    let (start, stop) = (lets.substitute(&axis.start), lets.substitute(&axis.stop));
    let residue = known.congruence(&stop).plus(Congruence::exactly(-1));
    let at = slots.of(&func.var_expr(axis.var))?;
    let first = slots.value(&start, known)?;
    let stop = slots.value(&stop, known)?;
    let last = slots.less(stop, 1)?;
    let above = slots.minus(at, first)?;
    Some(Index {
        var: axis.var,
        first,
        last,
        residue,
        above,
        at_first: slots.minus(first, at)?,
        later: slots.less(above, 1)?,
        runs: slots.minus(last, first)?,
        skips: slots.minus(first, stop)?,
    })
}

/// Every pair, a class with itself included: two runs of one access may meet.
fn pairs(classes: &[Class]) -> impl Iterator<Item = (Class, Class)> {
    classes
        .iter()
        .enumerate()
        .flat_map(|(at, a)| classes[at..].iter().map(|b| (*a, *b)))
}

/// Whether every thread of the block waits for all others here.
fn closes_all(stmt: &Stmt, kernel: &Kernel) -> bool {
    match &stmt.kind {
        StmtKind::Thread(ThreadOp::SyncThreads { named }) => {
            named.is_none_or(|(_, count)| count == kernel.num_threads())
        }
        StmtKind::Thread(ThreadOp::SyncGrid | ThreadOp::SyncCluster) => true,
        StmtKind::Thread(ThreadOp::Vote { kind, .. }) => kind.is_of_block(),
        // A bare barrier waits for no memory; where it stands, the waits stand too.
        StmtKind::Device(DeviceOp::Barrier(BarrierKind::Block | BarrierKind::Bare)) => true,
        StmtKind::Device(DeviceOp::Barrier(BarrierKind::Named { count, .. })) => {
            *count == kernel.num_threads()
        }
        _ => false,
    }
}

fn is_arrival(stmt: &Stmt) -> bool {
    let arrives = |op: &ThreadOp| {
        matches!(
            op,
            ThreadOp::BarrierArrive { .. }
                | ThreadOp::BarrierExpect { .. }
                | ThreadOp::ClusterArrive
        )
    };
    matches!(&stmt.kind, StmtKind::Thread(op) if arrives(op))
}

fn is_sync(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Thread(op) => match op {
            ThreadOp::SyncThreads { .. }
            | ThreadOp::SyncGrid
            | ThreadOp::SyncCluster
            | ThreadOp::ClusterWait
            | ThreadOp::BarrierWait { .. } => true,
            ThreadOp::Vote { kind, .. } => kind.is_of_block(),
            _ => false,
        },
        StmtKind::Device(op) => matches!(op, DeviceOp::Barrier(_)),
        _ => false,
    }
}

/// The variables that a statement gives new values each time it runs.
pub fn bound_vars(stmt: &Stmt, out: &mut FxHashSet<Var>) {
    match &stmt.kind {
        StmtKind::Let { var, .. } => {
            out.insert(*var);
        }
        StmtKind::For(l) => out.extend(l.axes.iter().map(|a| a.var)),
        StmtKind::Thread(op) => out.extend(op.result()),
        _ => {}
    }
}
