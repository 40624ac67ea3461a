//! RegisterWaits: reads and writes of LDS by their counter, and the waits that they need.
//!
//! A wave's LDS instructions complete in order and are counted by lgkmcnt. Each `s2r` and `r2s`
//! gets the counter; a wait stands before a statement that uses registers which an `s2r` still
//! fills, before a plain access of what is still being read or written, and before a bare
//! barrier, which itself waits for nothing. Code that not all threads run together has no waits
//! inside: what it needs is waited for before it. A wait leaves as many operations in flight as were
//! certainly issued after the last one that is needed.
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
//! issued after it on every way here, and which version of a buffer it touches. Ways that join
//! keep the smaller number, and a loop is walked until nothing changes. It never moves a
//! statement.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::visit::{child_blocks, child_blocks_mut, stmt_exprs, walk_stmts};
use tilewright_ir::visit_ids::stmt_buffers;
use tilewright_ir::{
    BarrierKind, Block, Buffer, Counter, DeviceOp, Expr, ExprKind, Func, Loop, MicroKind, Stmt,
    StmtKind, ThreadOp, Var, VoteKind,
};

use crate::order::wait_limit;
use crate::slots::{Slot, Slots};
use crate::uniform::{Uniformity, root};

/// Gives LDS operations their counter and inserts the waits. Returns how many.
pub fn register_waits(func: &mut Func) -> usize {
    let mut inserted = 0;
    for at in 0..func.kernels.len() {
        let mut divergent = FxHashSet::default();
        let uniformity = Uniformity::of(func, &func.kernels[at]);
        find_divergent(&func.kernels[at].body, &uniformity, &mut 0, &mut divergent);
        let mut body = std::mem::take(&mut func.kernels[at].body);
        mark(&mut body, &mut 0, &divergent, false);
        let mut walk = Walk {
            func,
            divergent,
            ops: Vec::new(),
            numbers: FxHashMap::default(),
            waits: BTreeMap::new(),
            slots: Slots::default(),
        };
        walk.block(&body, &mut 0, &mut InFlight::default());
        let waits = walk.waits;
        inserted += waits.len();
        insert(&mut body, &mut 0, &waits);
        func.kernels[at].body = body;
    }
    inserted
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

/// The operations that may be in flight.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct InFlight(BTreeMap<usize, Flight>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Flight {
    /// How many others were certainly issued after it.
    younger: u32,
    /// The version that it touches, in terms of the variables' values by now; `None` may be any.
    slot: Option<Slot>,
    /// What loop indices are by now, where that is known.
    values: Vec<(Var, Slot)>,
}

impl InFlight {
    fn issue(&mut self, op: usize, count: u32, slot: Option<Slot>) {
        for flight in self.0.values_mut() {
            // More than the counter holds tells nothing more.
            flight.younger = (flight.younger + count).min(64);
        }
        // The one of an earlier iteration may have touched another version.
        let slot = slot.filter(|_| !self.0.contains_key(&op));
        let flight = Flight {
            younger: 0,
            slot,
            values: Vec::new(),
        };
        self.0.insert(op, flight);
    }

    fn wait(&mut self, at_most: u32) {
        self.0.retain(|_, flight| flight.younger < at_most);
    }

    /// What may be in flight on either of two ways.
    fn join(&mut self, other: &InFlight) {
        for (op, flight) in &other.0 {
            let Some(known) = self.0.get_mut(op) else {
                self.0.insert(*op, flight.clone());
                continue;
            };
            known.younger = known.younger.min(flight.younger);
            known.slot = known.slot.filter(|slot| flight.slot == Some(*slot));
            known.values.retain(|value| flight.values.contains(value));
        }
    }
}

/// The index of a loop that goes up by ones.
#[derive(Clone, Copy, Debug)]
struct Index {
    var: Var,
    first: Slot,
    last: Slot,
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
}

impl Walk<'_> {
    fn block(&mut self, block: &[Stmt], number: &mut usize, open: &mut InFlight) {
        for stmt in block {
            self.stmt(stmt, number, open);
        }
    }

    fn stmt(&mut self, stmt: &Stmt, number: &mut usize, open: &mut InFlight) {
        let own = *number;
        *number += 1;
        self.wait_before(stmt, own, open);
        match &stmt.kind {
            StmtKind::For(l) => {
                let trips = l.axes.iter().map(|a| a.const_trip_count());
                let runs = trips.clone().all(|n| n.is_some_and(|n| n > 0));
                let again = trips.clone().all(|n| n.is_none_or(|n| n > 1));
                let index = self.index(l);
                self.repeated(&l.body, index, (runs, again), number, open);
            }
            StmtKind::While { body, .. } => {
                self.repeated(body, None, (false, true), number, open);
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
                let (access, registers) = match m.kind {
                    MicroKind::R2s => (&m.dest, None),
                    _ => (&m.sources[0], Some(root(self.func, m.dest.region.buffer))),
                };
                let operation = Operation {
                    registers,
                    shared: root(self.func, access.region.buffer),
                    writes: m.kind == MicroKind::R2s,
                };
                let slot = access.slot.as_ref().and_then(|s| self.slots.of(s));
                let next = self.ops.len();
                let op = *self.numbers.entry(own).or_insert(next);
                if op == next {
                    self.ops.push(operation);
                }
                // A wave none of whose lanes act may not issue it.
                open.issue(op, if m.pred.is_some() { 0 } else { m.count() }, slot);
            }
            StmtKind::Device(DeviceOp::Wait {
                counter: Counter::Lgkmcnt,
                at_most,
            }) => open.wait(*at_most),
            // The block's barrier waits for the wave's memory operations itself.
            StmtKind::Device(DeviceOp::Barrier(BarrierKind::Block)) => open.0.clear(),
            _ => {}
        }
    }

    /// The index of a loop, if it goes up by ones to its end.
    fn index(&mut self, l: &Loop) -> Option<Index> {
        let [axis] = &l.axes[..] else {
            return None;
        };
        let mut leaves = false;
        walk_stmts(&l.body, &mut |s| {
            leaves |= matches!(s.kind, StmtKind::Break)
        });
        if leaves || !axis.step.is_int(1) {
            return None;
        }
        let (first, stop) = (self.slots.of(&axis.start)?, self.slots.of(&axis.stop)?);
        Some(Index {
            var: axis.var,
            first,
            last: self.slots.less(stop, 1)?,
        })
    }

    /// A body that certainly runs, and may run again.
    fn repeated(
        &mut self,
        body: &Block,
        index: Option<Index>,
        (runs, again): (bool, bool),
        number: &mut usize,
        open: &mut InFlight,
    ) {
        let mut changed = FxHashSet::default();
        walk_stmts(body, &mut |s| match &s.kind {
            StmtKind::Let { var, .. } => {
                changed.insert(*var);
            }
            StmtKind::For(l) => changed.extend(l.axes.iter().map(|a| a.var)),
            StmtKind::Thread(op) => changed.extend(op.result()),
            _ => {}
        });
        let first = *number;
        let mut before = open.clone();
        if let Some(index) = index {
            for flight in before.0.values_mut() {
                flight.values.push((index.var, index.first));
            }
        }
        loop {
            *number = first;
            let mut after = before.clone();
            self.block(body, number, &mut after);
            let mut carried = after.clone();
            for flight in carried.0.values_mut() {
                self.carry(flight, index, &changed);
            }
            let mut joined = before.clone();
            joined.join(&carried);
            if !again || joined == before {
                for flight in after.0.values_mut() {
                    self.leave(flight, index, &changed);
                }
                if !runs {
                    after.join(open);
                }
                *open = after;
                return;
            }
            before = joined;
        }
    }

    /// What is in flight, in terms of the next iteration.
    fn carry(&mut self, flight: &mut Flight, index: Option<Index>, changed: &FxHashSet<Var>) {
        let slots = &mut self.slots;
        flight.values.clear();
        flight.slot = flight
            .slot
            .filter(|s| !slots.mentions(*s, |v| changed.contains(&v)));
        if let Some(index) = index {
            // What the index was is one less than what it is.
            flight.slot = flight.slot.and_then(|s| slots.shifted(s, index.var, -1));
        }
    }

    /// What is in flight behind a loop: its index is the last one.
    fn leave(&mut self, flight: &mut Flight, index: Option<Index>, changed: &FxHashSet<Var>) {
        let slots = &mut self.slots;
        flight.values.clear();
        flight.slot = flight
            .slot
            .filter(|s| !slots.mentions(*s, |v| changed.contains(&v)));
        if let Some(index) = index {
            flight.slot = flight
                .slot
                .and_then(|s| slots.with_value(s, index.var, index.last));
        }
    }

    /// Puts a wait before the statement where it needs one, and takes it.
    fn wait_before(&mut self, stmt: &Stmt, own: usize, open: &mut InFlight) {
        let mut needed: Option<u32> = None;
        let whole = self.divergent.contains(&own);
        for (op, flight) in &open.0 {
            let op = self.ops[*op];
            if self.needs(stmt, op, flight) || whole && self.needs_inside(stmt, op, flight) {
                needed = Some(needed.map_or(flight.younger, |n| n.min(flight.younger)));
            }
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
    fn needs_inside(&mut self, stmt: &Stmt, op: Operation, flight: &Flight) -> bool {
        let mut stmts = child_blocks(stmt).into_iter().flatten();
        stmts.any(|s| self.needs(s, op, flight) || self.needs_inside(s, op, flight))
    }

    /// Whether the statement itself, without the blocks inside it, must not run before the
    /// operation is complete.
    fn needs(&mut self, stmt: &Stmt, op: Operation, flight: &Flight) -> bool {
        if is_meeting(stmt) {
            return true;
        }
        let (mut registers, mut shared) = (false, false);
        stmt_buffers(stmt, &mut |buffer| {
            let root = root(self.func, buffer);
            registers |= Some(root) == op.registers;
            shared |= root == op.shared;
        });
        // Whoever writes has to wait for readers, and the other way round.
        shared &= op.writes || writes_to(self.func, stmt, op.shared);
        registers || shared && !self.is_apart(stmt, op, flight)
    }

    /// Whether the statement touches other versions of the buffer than the operation does.
    fn is_apart(&mut self, stmt: &Stmt, op: Operation, flight: &Flight) -> bool {
        let (Some(own), Some(touched)) = (flight.slot, versions_of(self.func, stmt, op.shared))
        else {
            return false;
        };
        touched.iter().all(|e| {
            let slot = self.slots.of(e);
            slot.is_some_and(|s| self.slots.differ(own, s, &flight.values))
        })
    }
}

/// The versions of a shared buffer that the statement names, itself; `None` where an access
/// names none.
fn versions_of(func: &Func, stmt: &Stmt, shared: Buffer) -> Option<Vec<Expr>> {
    let mut found: Option<Vec<Expr>> = Some(Vec::new());
    let mut note = |version: Option<&Expr>| match (version, &mut found) {
        (Some(version), Some(list)) => list.push(version.clone()),
        _ => found = None,
    };
    // A plain access names the version before the place.
    let first = |buffer: Buffer, indices: &'_ [Expr]| -> Option<Expr> {
        let named = indices.len() > func.buffers[buffer].shape.len();
        indices.first().filter(|_| named).cloned()
    };
    match &stmt.kind {
        StmtKind::Micro(m) => {
            for access in m.sources.iter().chain([&m.dest]) {
                if root(func, access.region.buffer) == shared {
                    note(access.slot.as_ref());
                }
            }
        }
        StmtKind::Store {
            buffer, indices, ..
        } if root(func, *buffer) == shared => note(first(*buffer, indices).as_ref()),
        StmtKind::Thread(_) => note(None),
        _ => {}
    }
    stmt_exprs(stmt, &mut |e| {
        e.walk(&mut |node| match node.kind() {
            ExprKind::Load { buffer, indices } if root(func, *buffer) == shared => {
                note(first(*buffer, indices).as_ref());
            }
            ExprKind::AddressOf { buffer, .. } if root(func, *buffer) == shared => note(None),
            _ => {}
        });
    });
    found
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
