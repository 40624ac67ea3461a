//! RegisterWaits: reads and writes of LDS by their counter, and the waits that they need.
//!
//! A wave's LDS instructions complete in order and are counted by lgkmcnt. Each `s2r` and `r2s`
//! gets the counter; a wait stands before a statement that uses registers which an `s2r` still
//! fills, before a plain access of what is still being read or written, and before a bare
//! barrier, which itself waits for nothing: there also for accesses that no counter follows.
//! Code that not all threads run together has no waits inside for what was issued before it, nor
//! has a loop that issues no such operation itself or has barriers: they are waited for before it. A wait leaves as many operations
//! in flight as were certainly issued after the last one that is needed; of accesses that the
//! compiler joins none is certain.
//!
//! Before:
//! ```text
//! s2r for c < 4 do A_shared[…] -> a[0 +: 16] at [c * 4] …
//! s2r for c < 8 do B_shared[…] -> b[0 +: 8] at [c] …
//! mma … a[0 +: 16] at [mi * 4], b[0 +: 8] at [ni * 4] -> C[…] …
//! ```
//! After:
//! ```text
//! s2r for c < 4 do A_shared[…] -> a[0 +: 16] at [c * 4] … counter=lgkmcnt
//! s2r for c < 8 do B_shared[…] -> b[0 +: 8] at [c] … counter=lgkmcnt
//! wait lgkmcnt(0)
//! mma … a[0 +: 16] at [mi * 4], b[0 +: 8] at [ni * 4] -> C[…] …
//! ```
//!
//! The walk carries what may be in flight: for each operation, how many others were certainly
//! issued after it on every way here. Ways that join keep the smaller number, and a loop is
//! walked until nothing changes. An operation of a buffer with versions keeps its slot, in terms
//! of the iteration that the walk is in, so that other versions are used meanwhile. It never
//! moves a statement.

mod plain;

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::visit::{child_blocks, child_blocks_mut, stmt_exprs, walk_stmts};
use tilewright_ir::visit_ids::{Id, stmt_buffers, stmt_ids};
use tilewright_ir::{
    Axis, BarrierKind, Block, Buffer, Counter, DeviceOp, Func, Kernel, MicroKind, Span, Stmt,
    StmtKind, ThreadOp, Var, VoteKind,
};

use crate::order::wait_limit;
use crate::slots::{Slot, Slots};
use crate::uniform::{Uniformity, root};
use plain::{is_bare, is_narrow, touches};

/// Gives LDS operations their counter and inserts the waits. Returns how many.
pub fn register_waits(func: &mut Func) -> usize {
    let mut inserted = 0;
    for at in 0..func.kernels.len() {
        let mut divergent = FxHashSet::default();
        let uniformity = Uniformity::of(func, &func.kernels[at]);
        find_divergent(&func.kernels[at].body, &uniformity, &mut 0, &mut divergent);
        let mut body = std::mem::take(&mut func.kernels[at].body);
        mark(&mut body, &mut 0, &divergent, false);
        let mut walk = Walk::new(func, divergent);
        walk.block(&body, &mut 0, &mut InFlight::default());
        let waits = walk.waits;
        inserted += waits.len();
        insert(&mut body, &mut 0, &waits);
        func.kernels[at].body = body;
    }
    inserted
}

/// The first bare barrier that LDS accesses without a counter may still be under way at: the
/// function has not been through [`register_waits`].
pub fn open_barrier(func: &Func) -> Option<Span> {
    let open = |kernel: &Kernel| {
        let mut walk = Walk::new(func, FxHashSet::default());
        walk.block(&kernel.body, &mut 0, &mut InFlight::default());
        walk.open_barrier
    };
    func.kernels.iter().find_map(open)
}

/// The statements, by number, whose blocks not all threads run together.
fn find_divergent(
    block: &[Stmt],
    uniformity: &Uniformity<'_>,
    number: &mut usize,
    found: &mut FxHashSet<usize>,
) {
    for stmt in block {
        let own = *number;
        *number += 1;
        let blocks = child_blocks(stmt);
        if !blocks.is_empty() {
            let mut varies = false;
            stmt_exprs(stmt, &mut |e| varies |= uniformity.varies(e));
            if varies {
                found.insert(own);
            }
        }
        for child in blocks {
            find_divergent(child, uniformity, number, found);
        }
    }
}

/// Gives operations their counter. Under a condition that threads disagree on an operation stays
/// one that is complete when the next statement starts: waits stand where all threads are.
fn mark(block: &mut Block, number: &mut usize, divergent: &FxHashSet<usize>, apart: bool) {
    for stmt in block {
        let apart = apart || divergent.contains(number);
        *number += 1;
        if let StmtKind::Micro(m) = &mut stmt.kind
            && matches!(m.kind, MicroKind::S2r | MicroKind::R2s)
            && m.counter.is_none()
            && !apart
        {
            m.counter = Some(Counter::Lgkmcnt);
        }
        for child in child_blocks_mut(stmt) {
            mark(child, number, divergent, apart);
        }
    }
}

fn insert(block: &mut Block, number: &mut usize, waits: &BTreeMap<usize, u32>) {
    let stmts = std::mem::take(block);
    for mut stmt in stmts {
        let own = *number;
        *number += 1;
        if let Some(&at_most) = waits.get(&own) {
            let wait = DeviceOp::Wait {
                counter: Counter::Lgkmcnt,
                at_most,
            };
            block.push(Stmt::new(StmtKind::Device(wait), stmt.span));
        }
        for child in child_blocks_mut(&mut stmt) {
            insert(child, number, waits);
        }
        block.push(stmt);
    }
}

/// What an LDS operation leaves open until it is complete.
#[derive(Clone, Copy, Debug)]
struct Operation {
    /// The registers that it fills.
    registers: Option<Buffer>,
    shared: Buffer,
    writes: bool,
}

/// What may be under way.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct InFlight {
    counted: BTreeMap<usize, Open>,
    /// LDS accesses that no counter follows.
    plain: bool,
}

/// An operation under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Open {
    /// How many others were certainly issued after it.
    younger: u32,
    /// The version of its buffer, by the loop indices of where the walk is.
    slot: Option<Slot>,
}

impl InFlight {
    fn issue(&mut self, op: usize, slot: Option<Slot>, count: u32) {
        for open in self.counted.values_mut() {
            // More than the counter holds tells nothing more.
            open.younger = (open.younger + count).min(64);
        }
        // The one of an earlier iteration, which may be under way too, used another version.
        let slot = slot.filter(|_| self.counted.get(&op).is_none_or(|o| o.slot == slot));
        self.counted.insert(op, Open { younger: 0, slot });
    }

    fn wait(&mut self, at_most: u32) {
        self.counted.retain(|_, open| open.younger < at_most);
        self.plain &= at_most > 0;
    }

    /// What may be in flight on either of two ways.
    fn join(&mut self, other: &InFlight) {
        for (op, open) in &other.counted {
            let known = self.counted.entry(*op).or_insert(*open);
            known.younger = known.younger.min(open.younger);
            known.slot = known.slot.filter(|s| Some(*s) == open.slot);
        }
        self.plain |= other.plain;
    }

    /// Puts every slot in other terms.
    fn map_slots(&mut self, mut f: impl FnMut(Slot) -> Option<Slot>) {
        for open in self.counted.values_mut() {
            open.slot = open.slot.and_then(&mut f);
        }
    }
}

struct Walk<'a> {
    func: &'a Func,
    divergent: FxHashSet<usize>,
    ops: Vec<Operation>,
    /// The operation of a statement, by the statement's number.
    numbers: FxHashMap<usize, usize>,
    /// The wait before a statement.
    waits: BTreeMap<usize, u32>,
    slots: Slots,
    /// A bare barrier that plain accesses reach.
    open_barrier: Option<Span>,
}

impl<'a> Walk<'a> {
    fn new(func: &'a Func, divergent: FxHashSet<usize>) -> Self {
        Self {
            func,
            divergent,
            ops: Vec::new(),
            numbers: FxHashMap::default(),
            waits: BTreeMap::new(),
            slots: Slots::default(),
            open_barrier: None,
        }
    }

    fn block(&mut self, block: &[Stmt], number: &mut usize, open: &mut InFlight) {
        for stmt in block {
            self.stmt(stmt, number, open);
        }
    }

    fn stmt(&mut self, stmt: &Stmt, number: &mut usize, open: &mut InFlight) {
        let own = *number;
        *number += 1;
        self.wait_before(stmt, own, open);
        open.plain |= touches(self.func, stmt);
        match &stmt.kind {
            StmtKind::For(l) => {
                let trips = l.axes.iter().map(|a| a.const_trip_count());
                let runs = trips.clone().all(|n| n.is_some_and(|n| n > 0));
                let again = trips.clone().all(|n| n.is_none_or(|n| n > 1));
                self.repeated(&l.body, &l.axes, (runs, again), number, open);
            }
            StmtKind::While { body, .. } => {
                self.repeated(body, &[], (false, true), number, open);
            }
            StmtKind::If {
                then, otherwise, ..
            } => {
                let mut other = open.clone();
                self.block(then, number, open);
                self.block(otherwise, number, &mut other);
                open.join(&other);
            }
            StmtKind::WarpGroup { body, .. } => {
                let before = open.clone();
                self.block(body, number, open);
                open.join(&before);
            }
            StmtKind::Micro(m) if m.counter == Some(Counter::Lgkmcnt) => {
                let (end, registers) = match m.kind {
                    MicroKind::R2s => (&m.dest, None),
                    _ => (&m.sources[0], Some(root(self.func, m.dest.region.buffer))),
                };
                let slot = end.slot.as_ref().and_then(|s| self.slots.of(s));
                let operation = Operation {
                    registers,
                    shared: root(self.func, end.region.buffer),
                    writes: m.kind == MicroKind::R2s,
                };
                let next = self.ops.len();
                let op = *self.numbers.entry(own).or_insert(next);
                if op == next {
                    self.ops.push(operation);
                }
                // A wave none of whose lanes act may not issue it.
                let certain = m.pred.is_none() && !is_narrow(self.func, m);
                open.issue(op, slot, if certain { m.count() } else { 0 });
            }
            StmtKind::Device(DeviceOp::Wait {
                counter: Counter::Lgkmcnt,
                at_most,
            }) => open.wait(*at_most),
            // The block's barrier waits for the wave's memory operations itself.
            StmtKind::Device(DeviceOp::Barrier(BarrierKind::Block)) => {
                *open = InFlight::default();
            }
            _ => {}
        }
    }

    /// A body that certainly runs, and may run again.
    fn repeated(
        &mut self,
        body: &[Stmt],
        axes: &[Axis],
        (runs, again): (bool, bool),
        number: &mut usize,
        open: &mut InFlight,
    ) {
        let first = *number;
        let is_index = |v: Var| axes.iter().any(|a| a.var == v);
        let bound = bound_inside(body);
        let mut before = open.clone();
        loop {
            *number = first;
            let mut after = before.clone();
            self.block(body, number, &mut after);
            // What the end of an iteration leaves, in terms of the next one.
            let mut next = after.clone();
            let slots = &mut self.slots;
            next.map_slots(|slot| match axes {
                _ if slots.mentions(slot, |v| bound.contains(&v)) => None,
                [axis] => {
                    let step = i64::try_from(axis.step.as_int()?).ok()?;
                    slots.shifted(slot, axis.var, step.checked_neg()?)
                }
                _ => Some(slot).filter(|s| !slots.mentions(*s, is_index)),
            });
            let mut joined = before.clone();
            joined.join(&next);
            if !again || joined == before {
                // Outside the loop its index means nothing.
                let slots = &self.slots;
                let ends = |v: Var| is_index(v) || bound.contains(&v);
                after.map_slots(|s| (!slots.mentions(s, ends)).then_some(s));
                if !runs {
                    after.join(open);
                }
                *open = after;
                return;
            }
            before = joined;
        }
    }

    /// Puts a wait before the statement where it needs one, and takes it.
    fn wait_before(&mut self, stmt: &Stmt, own: usize, open: &mut InFlight) {
        let whole = self.divergent.contains(&own) || starts_clear(stmt);
        let mut needed = None;
        for (op, state) in &open.counted {
            let op = self.ops[*op];
            if self.needs(stmt, op, state.slot) || whole && self.needs_inside(stmt, op) {
                needed = Some(needed.unwrap_or(u32::MAX).min(state.younger));
            }
        }
        if open.plain && is_bare(stmt) {
            self.open_barrier.get_or_insert(stmt.span);
            needed = Some(0);
        }
        if let Some(younger) = needed {
            let at_most = younger.min(wait_limit(Counter::Lgkmcnt));
            let known = self.waits.entry(own).or_insert(at_most);
            *known = (*known).min(at_most);
        }
        if let Some(&at_most) = self.waits.get(&own) {
            open.wait(at_most);
        }
    }

    /// The same for the blocks inside it.
    fn needs_inside(&mut self, stmt: &Stmt, op: Operation) -> bool {
        let mut stmts = child_blocks(stmt).into_iter().flatten();
        // Indices of loops inside are not those that the operation's slot is given by.
        stmts.any(|s| self.needs(s, op, None) || self.needs_inside(s, op))
    }

    /// Whether the statement itself, without the blocks inside it, must not run before the
    /// operation is complete, which uses this version of its buffer.
    fn needs(&mut self, stmt: &Stmt, op: Operation, slot: Option<Slot>) -> bool {
        if is_meeting(stmt) {
            return true;
        }
        let mut found = false;
        let mut meets = false;
        stmt_buffers(stmt, &mut |buffer| {
            let root = root(self.func, buffer);
            found |= Some(root) == op.registers;
            // Whoever writes has to wait for readers, and the other way round.
            meets |= root == op.shared && (op.writes || writes_to(self.func, stmt, root));
        });
        found || meets && !self.is_apart(stmt, op, slot)
    }

    /// Whether a micro-op uses other versions of the operation's buffer only.
    fn is_apart(&mut self, stmt: &Stmt, op: Operation, slot: Option<Slot>) -> bool {
        let (StmtKind::Micro(m), Some(slot)) = (&stmt.kind, slot) else {
            return false;
        };
        let mut ends = m.sources.iter().chain([&m.dest]);
        ends.all(|end| {
            if root(self.func, end.region.buffer) != op.shared {
                return true;
            }
            let own = end.slot.as_ref().and_then(|s| self.slots.of(s));
            own.is_some_and(|own| self.slots.differ(own, slot, &[]))
        })
    }
}

/// Whether what a loop needs of operations before it is waited for before it: it certainly runs
/// and issues none itself, or it has barriers, which wait for all. Inside, such waits would be for
/// the first iteration alone.
fn starts_clear(stmt: &Stmt) -> bool {
    let StmtKind::For(l) = &stmt.kind else {
        return false;
    };
    let runs = |a: &Axis| a.const_trip_count().is_some_and(|n| n > 0);
    let mut quiet = l.axes.iter().all(runs);
    let mut meets = false;
    walk_stmts(&l.body, &mut |s| {
        meets |= is_meeting(s);
        if let StmtKind::Micro(m) = &s.kind {
            quiet &= m.counter != Some(Counter::Lgkmcnt);
        }
    });
    quiet || meets
}

/// The variables that get a value inside a block, another one each time it runs.
fn bound_inside(block: &[Stmt]) -> FxHashSet<Var> {
    let mut bound = FxHashSet::default();
    for stmt in block {
        // Outside of expressions a statement names only the variables that it binds.
        stmt_ids(stmt, &mut |id| {
            if let Id::Var(v) = id {
                bound.insert(v);
            }
        });
        for child in child_blocks(stmt) {
            bound.extend(bound_inside(child));
        }
    }
    bound
}

/// Whether other waves may go on from here, by what this one has done.
fn is_meeting(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Device(DeviceOp::Barrier(kind)) => *kind != BarrierKind::Block,
        StmtKind::Thread(op) => matches!(
            op,
            ThreadOp::SyncThreads { .. }
                | ThreadOp::SyncGrid
                | ThreadOp::SyncWarp
                | ThreadOp::BarrierArrive { .. }
                | ThreadOp::Vote {
                    kind: VoteKind::BlockOr | VoteKind::BlockAnd | VoteKind::BlockCount,
                    ..
                }
        ),
        _ => false,
    }
}

/// Whether the statement may write to a shared buffer.
fn writes_to(func: &Func, stmt: &Stmt, shared: Buffer) -> bool {
    match &stmt.kind {
        StmtKind::Store { buffer, .. } => root(func, *buffer) == shared,
        StmtKind::Micro(m) => root(func, m.dest.region.buffer) == shared,
        StmtKind::Thread(_) => true,
        _ => false,
    }
}
