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
//! issued after it on every way here. Ways that join keep the smaller number, and a loop is
//! walked until nothing changes. It never moves a statement.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::visit::{child_blocks, child_blocks_mut, stmt_exprs};
use tilewright_ir::visit_ids::stmt_buffers;
use tilewright_ir::{
    BarrierKind, Block, Buffer, Counter, DeviceOp, Func, MicroKind, Stmt, StmtKind, ThreadOp,
    VoteKind,
};

use crate::order::wait_limit;
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

/// By operation: how many others were certainly issued after it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct InFlight(BTreeMap<usize, u32>);

impl InFlight {
    fn issue(&mut self, op: usize, count: u32) {
        for younger in self.0.values_mut() {
            // More than the counter holds tells nothing more.
            *younger = (*younger + count).min(64);
        }
        self.0.insert(op, 0);
    }

    fn wait(&mut self, at_most: u32) {
        self.0.retain(|_, younger| *younger < at_most);
    }

    /// What may be in flight on either of two ways.
    fn join(&mut self, other: &InFlight) {
        for (op, younger) in &other.0 {
            let known = self.0.entry(*op).or_insert(*younger);
            *known = (*known).min(*younger);
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
                self.repeated(&l.body, (runs, again), number, open);
            }
            StmtKind::While { body, .. } => {
                self.repeated(body, (false, true), number, open);
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
                let (shared, registers) = match m.kind {
                    MicroKind::R2s => (m.dest.region.buffer, None),
                    _ => (
                        m.sources[0].region.buffer,
                        Some(root(self.func, m.dest.region.buffer)),
                    ),
                };
                let operation = Operation {
                    registers,
                    shared: root(self.func, shared),
                    writes: m.kind == MicroKind::R2s,
                };
                let next = self.ops.len();
                let op = *self.numbers.entry(own).or_insert(next);
                if op == next {
                    self.ops.push(operation);
                }
                // A wave none of whose lanes act may not issue it.
                open.issue(op, if m.pred.is_some() { 0 } else { m.count() });
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

    /// A body that certainly runs, and may run again.
    fn repeated(
        &mut self,
        body: &[Stmt],
        (runs, again): (bool, bool),
        number: &mut usize,
        open: &mut InFlight,
    ) {
        let first = *number;
        let mut before = open.clone();
        loop {
            *number = first;
            let mut after = before.clone();
            self.block(body, number, &mut after);
            let mut joined = before.clone();
            joined.join(&after);
            if !again || joined == before {
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
        let needed = open
            .0
            .iter()
            .filter(|(op, _)| {
                let op = self.ops[**op];
                let whole = self.divergent.contains(&own);
                self.needs(stmt, op) || whole && self.needs_inside(stmt, op)
            })
            .map(|(_, younger)| *younger)
            .min();
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
    fn needs_inside(&self, stmt: &Stmt, op: Operation) -> bool {
        let mut stmts = child_blocks(stmt).into_iter().flatten();
        stmts.any(|s| self.needs(s, op) || self.needs_inside(s, op))
    }

    /// Whether the statement itself, without the blocks inside it, must not run before the
    /// operation is complete.
    fn needs(&self, stmt: &Stmt, op: Operation) -> bool {
        if is_meeting(stmt) {
            return true;
        }
        let mut found = false;
        stmt_buffers(stmt, &mut |buffer| {
            let root = root(self.func, buffer);
            found |= Some(root) == op.registers;
            // Whoever writes has to wait for readers, and the other way round.
            found |= root == op.shared && (op.writes || writes_to(self.func, stmt, root));
        });
        found
    }
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
