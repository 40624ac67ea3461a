//! A kernel's body as RegisterWaits walks it: operations on LDS, and whatever meets them.
//!
//! Every statement has a number, outer first. A statement with blocks is *opened* where an
//! operation with a counter (any counter: a copy that another one follows is no access of LDS
//! without one), a wait or a barrier stands in it and all threads take it together; any other is
//! a unit: waits stand before it.

use rustc_hash::FxHashSet;
use tilewright_arith::Analyzer;
use tilewright_ir::uniform::{Points, Uniformity};
use tilewright_ir::visit::{child_blocks, walk_stmts};
use tilewright_ir::{
    Access, BarrierKind, Block, Counter, DeviceOp, Expr, Func, Kernel, Loop, LoopKind, MicroKind,
    MicroOp, Scope, Span, Stmt, StmtKind, ThreadOp, Var,
};

use super::Counted;
use super::handed::{Given, Handed, handed};
use super::registers::{Registers, used_by};
use crate::access::{Access as Touch, Collector, Lets};
use crate::conflicts::{Class, Conflicts};
use crate::outline::{Index, Jumps, bound_vars, index_of, jumps, known_of};
use crate::slots::Slot;

/// The most iterations of a loop that are looked at one by one.
const MOST_UNROLLED: u64 = 16;

/// One statement.
#[derive(Debug)]
pub struct Item {
    pub number: usize,
    /// The number of the statement behind it and all that is in it.
    pub end: usize,
    pub span: Span,
    /// What it touches; of an opened statement, what it reads before its blocks run.
    pub touches: Vec<Class>,
    /// The registers that it uses. Those to which an operation in flight adds are in order with
    /// others that do.
    pub registers: Vec<Registers>,
    pub adds_to: Option<Registers>,
    pub jumps: Jumps,
    /// Whether it or something in it may leave a loop, or its iteration, early.
    pub leaves: bool,
    pub kind: Kind,
}

impl Item {
    /// Whether what is in it is walked.
    pub fn is_opened(&self) -> bool {
        let mut opened = false;
        self.blocks(&mut |_| opened = true);
        opened
    }

    /// The blocks in it, each iteration of an unrolled loop for itself.
    pub fn blocks<'i>(&'i self, f: &mut dyn FnMut(&'i [Item])) {
        self.kind.blocks(f);
    }
}

#[derive(Debug)]
pub enum Kind {
    /// Its accesses have no counter.
    Plain,
    /// Another counter follows it.
    Elsewhere,
    Issue(Operation),
    /// Until so many operations are left.
    Wait(u32),
    /// A barrier of the block that waits for no memory.
    Bare,
    /// A barrier of the block that waits for the wave's memory operations itself.
    Drains,
    /// Other waves may go on from here, by what this one has done.
    Meets,
    /// The lanes of a warp know from here what each has done.
    Warp,
    Loop(Repeated),
    /// A loop by its iterations; they have the same numbers.
    Unrolled(Vec<Vec<Item>>),
    Branch {
        then: Vec<Item>,
        otherwise: Vec<Item>,
        /// Not below zero where the first way is taken.
        when: Vec<Slot>,
        /// Not below zero where the other way is taken.
        unless: Vec<Slot>,
    },
    /// Some waves do it.
    Some(Vec<Item>),
}

impl Kind {
    fn blocks<'i>(&'i self, f: &mut dyn FnMut(&'i [Item])) {
        match self {
            Kind::Loop(l) => f(&l.body),
            Kind::Unrolled(iterations) => iterations.iter().for_each(|items| f(items)),
            Kind::Branch {
                then, otherwise, ..
            } => {
                f(then);
                f(otherwise);
            }
            Kind::Some(body) => f(body),
            Kind::Plain
            | Kind::Elsewhere
            | Kind::Issue(_)
            | Kind::Wait(_)
            | Kind::Bare
            | Kind::Drains
            | Kind::Warp
            | Kind::Meets => {}
        }
    }
}

/// An operation that is counted.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The registers that it fills.
    pub fills: Option<Registers>,
    /// The registers that it reads while it is in flight.
    pub reads: Option<Registers>,
    /// How many instructions are certainly counted, or groups.
    pub count: u32,
}

#[derive(Debug)]
pub struct Repeated {
    pub body: Vec<Item>,
    /// Whether it may have no iteration.
    pub may_skip: bool,
    /// Whether it may have a second one.
    pub again: bool,
    /// The variables that have other values in the next iteration.
    pub changed: FxHashSet<Var>,
    pub index: Option<Index>,
}

/// The items of a kernel's body.
pub fn outline(
    func: &Func,
    kernel: &Kernel,
    counted: Counted,
    conflicts: &mut Conflicts<'_>,
) -> Vec<Item> {
    let uniformity = Uniformity::of(func, kernel, Points::OfThreads);
    let mut known = Analyzer::for_func(func);
    known.enter_kernel(func, kernel);
    let handed = handed(func, kernel);
    let mut outliner = Outliner {
        handed: &handed,
        collector: Collector {
            func,
            kernel,
            uniformity: &uniformity,
            // What is counted lies in shared memory.
            tensors: &FxHashSet::default(),
        },
        conflicts,
        counted,
        known,
        next: 0,
    };
    outliner.block(&kernel.body, &mut Lets::default())
}

/// The numbers of statements whose blocks not all threads run together.
pub fn divergent(func: &Func, kernel: &Kernel) -> FxHashSet<usize> {
    fn find(
        block: &[Stmt],
        uniformity: &Uniformity<'_>,
        number: &mut usize,
        found: &mut FxHashSet<usize>,
    ) {
        for stmt in block {
            let own = *number;
            *number += 1;
            let blocks = child_blocks(stmt);
            if !blocks.is_empty() && uniformity.inside(stmt).is_divergent() {
                found.insert(own);
            }
            for child in blocks {
                find(child, uniformity, number, found);
            }
        }
    }
    let mut found = FxHashSet::default();
    let uniformity = Uniformity::of(func, kernel, Points::OfThreads);
    find(&kernel.body, &uniformity, &mut 0, &mut found);
    found
}

struct Outliner<'f, 'c, 'k> {
    /// What arrivals hand over, where that is known.
    handed: &'f Handed<'f>,
    collector: Collector<'f>,
    conflicts: &'c mut Conflicts<'k>,
    counted: Counted,
    /// What is known of the grid and of the loops around.
    known: Analyzer,
    next: usize,
}

impl Outliner<'_, '_, '_> {
    fn block(&mut self, block: &Block, lets: &mut Lets) -> Vec<Item> {
        let mark = lets.mark();
        let items = block.iter().map(|stmt| self.stmt(stmt, lets)).collect();
        lets.forget(mark);
        items
    }

    fn stmt(&mut self, stmt: &Stmt, lets: &mut Lets) -> Item {
        let func = self.collector.func;
        let number = self.next;
        self.next += 1;
        let opened = self.is_opened(stmt);
        let mut accesses = match opened {
            true => self.collector.head(stmt, lets),
            false => self.collector.unit(stmt, lets),
        };
        let handed = match opened {
            true => None,
            false => self.hands_over(stmt, lets),
        };
        let is_handed = handed.is_some();
        accesses.extend(handed.unwrap_or_default());
        if let StmtKind::Let { var, value } = &stmt.kind {
            lets.bind(*var, value);
        }
        let touches = self.conflicts.classes(accesses);
        let kind = match opened {
            true => self.open(stmt, lets),
            false => {
                for block in child_blocks(stmt) {
                    walk_stmts(block, &mut |_| self.next += 1);
                }
                match is_handed {
                    // Others go on to touch that, and nothing else.
                    true => Kind::Plain,
                    false if arrives_inside(stmt) => Kind::Meets,
                    false => kind(func, self.counted, stmt),
                }
            }
        };
        let jumps = if opened { Jumps::No } else { jumps(stmt) };
        let mut leaves = jumps != Jumps::No;
        kind.blocks(&mut |items| leaves |= items.iter().any(|item| item.leaves));
        let adds_to = match (&stmt.kind, &kind) {
            (StmtKind::Micro(m), Kind::Issue(op)) if m.kind == MicroKind::Mma => op.fills,
            _ => None,
        };
        let mut registers = used_by(func, stmt, !opened);
        registers.retain(|r| Some(*r) != adds_to);
        Item {
            number,
            end: self.next,
            span: stmt.span,
            touches,
            registers,
            adds_to,
            jumps,
            leaves,
            kind,
        }
    }

    /// What the arrivals of a statement hand over; `None` where it has none, or that is not known.
    fn hands_over(&self, stmt: &Stmt, lets: &mut Lets) -> Option<Vec<Touch>> {
        let mut arrivals = Vec::new();
        walk_stmts(std::slice::from_ref(stmt), &mut |s| {
            if let StmtKind::Thread(ThreadOp::BarrierArrive { barrier, index, .. }) = &s.kind {
                arrivals.push((*barrier, index.clone()));
            }
        });
        let mut found = Vec::new();
        for (barrier, index) in &arrivals {
            match self.handed.get(barrier)? {
                Given::Versions(copies) => {
                    for copy in copies {
                        let mut copy = (*copy).clone();
                        copy.sources.clear();
                        copy.dest.slot = Some(index.clone());
                        let copy = Stmt::new(StmtKind::Micro(copy), stmt.span);
                        found.extend(self.collector.unit(&copy, lets));
                    }
                }
                Given::Written(buffers) => {
                    let written = buffers.iter();
                    found.extend(written.flat_map(|b| self.collector.anywhere(*b, stmt.span)));
                }
            }
        }
        (!arrivals.is_empty()).then_some(found)
    }

    fn is_opened(&self, stmt: &Stmt) -> bool {
        let blocks = child_blocks(stmt);
        if blocks.is_empty() || self.collector.uniformity.inside(stmt).is_divergent() {
            return false;
        }
        let mut found = false;
        for block in blocks {
            walk_stmts(block, &mut |s| {
                let kind = kind(self.collector.func, self.counted, s);
                found |= !matches!(kind, Kind::Plain);
            });
        }
        found
    }

    fn open(&mut self, stmt: &Stmt, lets: &mut Lets) -> Kind {
        match &stmt.kind {
            StmtKind::For(l) => self.counted(l, lets),
            StmtKind::While { body, .. } => Kind::Loop(Repeated {
                may_skip: true,
                again: true,
                changed: changed(body, &[]),
                index: None,
                body: self.block(body, lets),
            }),
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                let cond = lets.substitute(cond);
                let slots = &mut self.conflicts.slots;
                Kind::Branch {
                    when: known_of(&cond, true, slots, &mut self.known),
                    unless: known_of(&cond, false, slots, &mut self.known),
                    then: self.block(then, lets),
                    otherwise: self.block(otherwise, lets),
                }
            }
            StmtKind::WarpGroup { body, .. } => Kind::Some(self.block(body, lets)),
            // Nothing else has blocks.
            _ => Kind::Plain,
        }
    }

    fn counted(&mut self, l: &Loop, lets: &mut Lets) -> Kind {
        if let Some(iterations) = self.unrolled(l, lets) {
            return Kind::Unrolled(iterations);
        }
        let trips = l.axes.iter().map(|a| a.const_trip_count());
        let may_skip = !trips.clone().all(|n| n.is_some_and(|n| n > 0));
        let again = trips.clone().all(|n| n.is_none_or(|n| n > 1));
        let vars: Vec<Var> = l.axes.iter().map(|a| a.var).collect();
        let func = self.collector.func;
        let index = index_of(&mut self.conflicts.slots, &mut self.known, func, l, lets);
        self.known.enter_loop(func, l);
        let body = self.block(&l.body, lets);
        self.known.pop();
        Kind::Loop(Repeated {
            body,
            may_skip,
            again,
            changed: changed(&l.body, &vars),
            index,
        })
    }
}

impl Outliner<'_, '_, '_> {
    /// The iterations of a short loop, each with its own index: what they touch is often apart.
    fn unrolled(&mut self, l: &Loop, lets: &mut Lets) -> Option<Vec<Vec<Item>>> {
        let [axis] = &l.axes[..] else {
            return None;
        };
        let count = axis.const_trip_count().filter(|n| *n <= MOST_UNROLLED)?;
        let (start, step) = (axis.start.as_int()?, axis.step.as_int()?);
        let mut leaves = false;
        walk_stmts(&l.body, &mut |s| {
            leaves |= matches!(s.kind, StmtKind::Break | StmtKind::Continue);
        });
        if leaves || !matches!(l.kind, LoopKind::Unroll { .. }) {
            return None;
        }
        let first = self.next;
        let mut iterations = Vec::new();
        for n in 0..i128::from(count) {
            self.next = first;
            let mark = lets.mark();
            lets.bind(axis.var, &Expr::int(start + n * step, axis.start.dtype()));
            iterations.push(self.block(&l.body, lets));
            lets.forget(mark);
        }
        if count == 0 {
            walk_stmts(&l.body, &mut |_| self.next += 1);
        }
        Some(iterations)
    }
}

/// The variables that get other values each time the block runs.
fn changed(block: &Block, indices: &[Var]) -> FxHashSet<Var> {
    let mut changed: FxHashSet<Var> = indices.iter().copied().collect();
    walk_stmts(block, &mut |stmt| bound_vars(stmt, &mut changed));
    changed
}

/// Whether some threads arrive somewhere in a block of the statement.
fn arrives_inside(stmt: &Stmt) -> bool {
    let mut found = false;
    for block in child_blocks(stmt) {
        walk_stmts(block, &mut |s| {
            let arrives = |op: &ThreadOp| matches!(op, ThreadOp::BarrierArrive { .. });
            found |= matches!(&s.kind, StmtKind::Thread(op) if arrives(op));
        });
    }
    found
}

/// Whether a thread starts bulk stores here, and closes their group.
pub fn stores(stmt: &Stmt) -> bool {
    let StmtKind::If { then, .. } = &stmt.kind else {
        return false;
    };
    let is_store =
        |s: &Stmt| matches!(&s.kind, StmtKind::Micro(m) if m.kind == MicroKind::TmaStore);
    let commit = DeviceOp::Commit(Counter::TmaStore);
    let closes = |s: &Stmt| matches!(&s.kind, StmtKind::Device(op) if *op == commit);
    then.windows(2).any(|w| is_store(&w[0]) && closes(&w[1]))
}

/// What a statement without opened blocks is.
fn kind(func: &Func, counted: Counted, stmt: &Stmt) -> Kind {
    match &stmt.kind {
        // How many groups others have closed is not known.
        _ if counted.is_of_threads() && stores(stmt) => Kind::Issue(Operation {
            fills: None,
            reads: None,
            count: 0,
        }),
        StmtKind::Thread(ThreadOp::SyncWarp) if counted.is_of_threads() => Kind::Warp,
        StmtKind::Device(DeviceOp::WaitRead { at_most }) if counted.is_of_threads() => {
            Kind::Wait(*at_most)
        }
        StmtKind::Device(DeviceOp::Barrier(BarrierKind::Named { .. }))
        | StmtKind::Thread(ThreadOp::SyncCluster)
            if counted.is_of_threads() =>
        {
            Kind::Bare
        }
        StmtKind::Micro(m) if m.counter == Some(counted.counter) => {
            Kind::Issue(operation(func, counted, m))
        }
        StmtKind::Micro(m) if m.counter.is_some() => Kind::Elsewhere,
        StmtKind::Device(DeviceOp::Wait { counter, at_most }) if *counter == counted.counter => {
            Kind::Wait(*at_most)
        }
        StmtKind::Device(DeviceOp::Barrier(BarrierKind::Block)) if counted.drained_by_barriers => {
            Kind::Drains
        }
        StmtKind::Device(DeviceOp::Barrier(BarrierKind::Block)) => Kind::Bare,
        StmtKind::Device(DeviceOp::Barrier(BarrierKind::Bare)) => Kind::Bare,
        StmtKind::Device(DeviceOp::Barrier(_)) => Kind::Meets,
        StmtKind::Thread(
            ThreadOp::SyncThreads { .. }
            | ThreadOp::SyncGrid
            | ThreadOp::SyncCluster
            | ThreadOp::ClusterArrive
            | ThreadOp::BarrierArrive { .. },
        ) => Kind::Meets,
        StmtKind::Thread(ThreadOp::Vote { kind, .. }) if kind.is_of_block() => Kind::Meets,
        _ => Kind::Plain,
    }
}

fn operation(func: &Func, counted: Counted, m: &MicroOp) -> Operation {
    let registers = |end: &Access| Registers {
        root: func.root(end.region.buffer),
        range: super::registers::range(func, end),
    };
    let fills = (m.kind != MicroKind::R2s).then(|| registers(&m.dest));
    if counted.counter.counts_groups() {
        let in_registers = |end: &&Access| func.buffers[end.region.buffer].scope != Scope::Shared;
        let reads = m.sources.iter().find(in_registers).map(registers);
        // Each is a group of its own.
        return Operation {
            fills,
            reads,
            count: 1,
        };
    }
    // A wave none of whose lanes act may not issue it.
    let certain = m.pred.is_none() && !m.may_be_joined(func);
    Operation {
        fills,
        reads: None,
        count: if certain { m.count() } else { 0 },
    }
}
