//! RegisterWaits: reads and writes of LDS by their counter, and the waits that they need.
//!
//! A wave's LDS instructions complete in order and are counted by lgkmcnt. Each `s2r` and `r2s`
//! gets the counter; a wait stands before a statement that uses registers which an `s2r` still
//! fills or a place that is still being read or written, and before a bare barrier, which itself
//! waits for nothing, where other waves go on to touch such a place behind it. There accesses
//! that no counter follows are waited for too. Waits stand where all threads are, and before a
//! loop rather than in it where they are for what was issued before it. A wait leaves as many
//! operations in flight as were certainly issued after the last one that is needed; of accesses
//! that the compiler joins none is certain.
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
//! The [`walk`] carries what may be under way ([`state`]) through the [`outline`] of the kernel,
//! with the same model of places as ThreadSync, until no wait is missing. Then each wait is
//! taken away or loosened as far as that stays so; what such a try leaves as it was is not
//! walked again ([`seen`]). It never moves a statement.

mod outline;
mod registers;
mod seen;
mod state;
mod walk;

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::visit::{child_blocks_mut, walk_stmts};
use tilewright_ir::{
    BarrierKind, Block, Counter, DeviceOp, Func, Kernel, MicroKind, Span, Stmt, StmtKind,
};

use crate::conflicts::Conflicts;
use crate::order::wait_limit;
use crate::ways::Ways;
use outline::{Item, Kind, outline};
use seen::Seen;
use state::State;
use walk::{Mode, WaitWalk};

/// Threads of a wave.
const WAVE: u32 = 64;

/// What a wait before a statement leaves in flight, by the statement's number.
type Waits = BTreeMap<usize, u32>;

/// Gives LDS operations their counter and inserts the waits. Returns how many.
pub fn register_waits(func: &mut Func) -> usize {
    let mut inserted = 0;
    for at in 0..func.kernels.len() {
        let divergent = outline::divergent(func, &func.kernels[at]);
        let mut body = std::mem::take(&mut func.kernels[at].body);
        mark(&mut body, &mut 0, &divergent, false);
        func.kernels[at].body = body;
        let waits = derive(func, &func.kernels[at]);
        inserted += waits.len();
        insert(&mut func.kernels[at].body, &mut 0, &waits);
    }
    inserted
}

/// The first statement that lacks a wait for LDS accesses without a counter before it: the
/// function has not been through [`register_waits`].
pub fn open_barrier(func: &Func) -> Option<Span> {
    func.kernels.iter().find_map(|kernel| {
        let mut conflicts = Conflicts::new(func, kernel, WAVE);
        let items = outline(func, kernel, &mut conflicts);
        let mut walk = walk_of(&items, conflicts, kernel);
        walk.mode = Mode::CheckPlain;
        walk.block(&items, &mut State::default());
        span_of(&items, walk.missing?.number)
    })
}

/// Whether all that a wave does with LDS is complete wherever it comes to a bare barrier.
pub fn is_drained(func: &Func, kernel: &Kernel) -> bool {
    let mut conflicts = Conflicts::new(func, kernel, WAVE);
    let items = outline(func, kernel, &mut conflicts);
    let mut walk = walk_of(&items, conflicts, kernel);
    walk.mode = Mode::Check;
    is_enough(&mut walk, &items) && !walk.crossed
}

fn span_of(items: &[Item], number: usize) -> Option<Span> {
    items.iter().find_map(|item| {
        if item.number == number {
            return Some(item.span);
        }
        match &item.kind {
            Kind::Loop(l) => span_of(&l.body, number),
            Kind::Branch {
                then, otherwise, ..
            } => span_of(then, number).or_else(|| span_of(otherwise, number)),
            Kind::Unrolled(iterations) => span_of(iterations.first()?, number),
            Kind::Some(body) => span_of(body, number),
            _ => None,
        }
    })
}

/// The waits of a kernel whose operations have their counter.
fn derive(func: &Func, kernel: &Kernel) -> Waits {
    let mut conflicts = Conflicts::new(func, kernel, WAVE);
    let items = outline(func, kernel, &mut conflicts);
    let mut walk = walk_of(&items, conflicts, kernel);
    loop {
        walk.again = false;
        walk.block(&items, &mut State::default());
        if !walk.again {
            break;
        }
    }
    // A wait that was found first may be covered by one that was found later.
    walk.mode = Mode::Check;
    for (number, at_most) in walk.waits.clone() {
        walk.tried = Some(number);
        walk.waits.remove(&number);
        if !is_enough(&mut walk, &items) {
            let mut left = at_most;
            while left < wait_limit(Counter::Lgkmcnt) {
                walk.waits.insert(number, left + 1);
                if !is_enough(&mut walk, &items) {
                    break;
                }
                left += 1;
            }
            walk.waits.insert(number, left);
        }
        if walk.waits.get(&number) != Some(&at_most) {
            walk.seen.forget(&items, number);
        }
    }
    walk.waits
}

/// Whether no wait is missing.
fn is_enough(walk: &mut WaitWalk<'_, '_>, items: &[Item]) -> bool {
    walk.missing = None;
    walk.block(items, &mut State::default());
    walk.missing.is_none()
}

fn walk_of<'i, 'k>(
    items: &'i [Item],
    conflicts: Conflicts<'k>,
    kernel: &Kernel,
) -> WaitWalk<'i, 'k> {
    let mut walk = WaitWalk {
        conflicts,
        operations: FxHashMap::default(),
        waits: Waits::new(),
        tried: None,
        seen: Seen::default(),
        mode: Mode::Insert,
        missing: None,
        again: false,
        crossed: false,
        strict: false,
        ways: Ways::default(),
        left: State::default(),
        next: State::default(),
    };
    note(items, &mut walk);
    walk_stmts(&kernel.body, &mut |stmt| {
        let cond = |kind: &BarrierKind| matches!(kind, BarrierKind::Cond(_));
        walk.strict |=
            matches!(&stmt.kind, StmtKind::Device(DeviceOp::Barrier(kind)) if cond(kind));
    });
    walk
}

/// Lists operations by number.
fn note<'i>(items: &'i [Item], walk: &mut WaitWalk<'i, '_>) {
    for item in items {
        if let Kind::Issue(operation) = &item.kind {
            walk.operations.insert(item.number, operation);
        }
        item.blocks(&mut |items| note(items, walk));
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

fn insert(block: &mut Block, number: &mut usize, waits: &Waits) {
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
