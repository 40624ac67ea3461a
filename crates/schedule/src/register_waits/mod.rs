//! RegisterWaits: operations on registers and shared memory by their counter, and the waits that
//! they need. [`Counted`] says which: LDS operations of AMD's waves, products of warp groups, or bulk
//! stores.
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
//! walked again ([`seen`]). It never moves a statement, and fences those that a machine scheduler
//! must not move ([`fixed`]).

mod fixed;
mod handed;
mod outline;
mod registers;
mod seen;
mod state;
mod walk;

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::visit::{child_blocks_mut, walk_stmts};
use tilewright_ir::{
    BarrierKind, Block, Buffer, Counter, DeviceOp, FenceKind, Func, Kernel, MicroKind, Span, Stmt,
    StmtKind,
};

use crate::conflicts::Conflicts;
use crate::order::wait_limit;
use crate::ways::Ways;
use outline::{Item, Kind, outline};
use seen::Seen;
use state::State;
use walk::{Mode, WaitWalk};

/// What is counted, and what else is in flight.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    pub counter: Counter,
    /// Threads of a warp or wave.
    warp: u32,
    /// Whether accesses of shared memory without a counter are in flight, too, when a barrier comes.
    plain: bool,
    /// Whether the barrier of a block waits for what is in flight.
    drained_by_barriers: bool,
}

impl Counted {
    /// Reads and writes of LDS.
    pub const LDS: Counted = Counted {
        counter: Counter::Lgkmcnt,
        warp: 64,
        plain: true,
        drained_by_barriers: true,
    };
    /// Products of warp groups: each micro-op is a group, which a commit behind it closes, and a
    /// fence before it orders its registers. They read shared memory until they are waited for.
    pub const PRODUCTS: Counted = Counted {
        counter: Counter::Wgmma,
        warp: 32,
        plain: false,
        drained_by_barriers: false,
    };
    /// Bulk stores whose group is closed right behind them: they read shared memory until their
    /// thread has waited for that, of which other threads know behind a barrier, those of its warp
    /// behind one of the warp.
    pub const STORES: Counted = Counted {
        counter: Counter::TmaStore,
        warp: 32,
        plain: false,
        drained_by_barriers: false,
    };

    /// Whether operations are single threads'.
    fn is_of_threads(&self) -> bool {
        matches!(self.counter, Counter::TmaStore)
    }

    fn wait(&self, at_most: u32) -> DeviceOp {
        match self.counter {
            Counter::TmaStore => DeviceOp::WaitRead { at_most },
            counter => DeviceOp::Wait { counter, at_most },
        }
    }
}

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
        let waits = derive(func, &func.kernels[at], Counted::LDS);
        inserted += waits.len();
        let insertion = Insertion {
            counted: Counted::LDS,
            waits,
            dropped: FxHashSet::default(),
            divergent,
        };
        insertion.insert(&mut func.kernels[at].body, &mut 0, false);
        fixed::fix_order(&mut func.kernels[at].body);
    }
    inserted
}

/// Gives products of warp groups their fences, commits and waits. Returns how many waits.
pub fn product_waits(func: &mut Func) -> usize {
    let mut inserted = 0;
    for at in 0..func.kernels.len() {
        let mut any = false;
        walk_stmts(&func.kernels[at].body, &mut |s| {
            any |= s.as_group_product().is_some()
        });
        if !any {
            continue;
        }
        // Beside groups that the user waits for, each other product is waited for at once.
        let by_hand = closes_groups(&func.kernels[at]);
        let mut waits = Waits::new();
        let mut dropped = FxHashSet::default();
        if !by_hand {
            let sums = sums(func, &func.kernels[at]);
            let mut ends = FxHashSet::default();
            wait_at_ends(&mut func.kernels[at].body, &sums, &mut 0, &mut ends);
            waits = derive(func, &func.kernels[at], Counted::PRODUCTS);
            dropped = needless(func, &func.kernels[at], &waits, ends);
        }
        inserted += waits.len();
        let insertion = Insertion {
            counted: Counted::PRODUCTS,
            waits,
            dropped,
            divergent: outline::divergent(func, &func.kernels[at]),
        };
        insertion.insert(&mut func.kernels[at].body, &mut 0, by_hand);
    }
    inserted
}

/// The register arrays that products of warp groups add to.
fn sums(func: &Func, kernel: &Kernel) -> FxHashSet<Buffer> {
    let mut found = FxHashSet::default();
    walk_stmts(&kernel.body, &mut |stmt| {
        if let Some(product) = stmt.as_group_product() {
            found.insert(func.root(product.dest.region.buffer));
        }
    });
    found
}

/// Waits for all products where the block ends in which their sum lives: behind it the registers may
/// hold anything else. Lists the waits by their statements' numbers.
fn wait_at_ends(
    block: &mut Block,
    sums: &FxHashSet<Buffer>,
    number: &mut usize,
    ends: &mut FxHashSet<usize>,
) {
    let mut span = None;
    for stmt in block.iter_mut() {
        if matches!(&stmt.kind, StmtKind::Alloc(buffer) if sums.contains(buffer)) {
            span = Some(stmt.span);
        }
        *number += 1;
        for child in child_blocks_mut(stmt) {
            wait_at_ends(child, sums, number, ends);
        }
    }
    if let Some(span) = span {
        let wait = StmtKind::Device(Counted::PRODUCTS.wait(0));
        block.push(Stmt::new(wait, span));
        ends.insert(*number);
        *number += 1;
    }
}

/// Those of the waits at ends at which nothing is in flight.
fn needless(
    func: &Func,
    kernel: &Kernel,
    waits: &Waits,
    mut ends: FxHashSet<usize>,
) -> FxHashSet<usize> {
    let counted = Counted::PRODUCTS;
    let mut conflicts = Conflicts::new(func, kernel, counted.warp);
    let items = outline(func, kernel, counted, &mut conflicts);
    let mut walk = walk_of(&items, counted, conflicts, kernel);
    walk.waits = waits.clone();
    walk.mode = Mode::Check;
    walk.block(&items, &mut State::default());
    ends.retain(|number| !walk.waited.contains(number));
    ends
}

/// Waits until bulk stores whose group is closed right behind them have read what they store: before
/// that is written again, and before the kernel ends. Returns how many waits there are.
pub fn store_waits(func: &mut Func) -> usize {
    let mut inserted = 0;
    for at in 0..func.kernels.len() {
        let mut any = false;
        walk_stmts(&func.kernels[at].body, &mut |s| any |= outline::stores(s));
        if !any {
            continue;
        }
        let waits = derive(func, &func.kernels[at], Counted::STORES);
        inserted += waits.len() + 1;
        let insertion = Insertion {
            counted: Counted::STORES,
            waits,
            dropped: FxHashSet::default(),
            divergent: FxHashSet::default(),
        };
        let body = &mut func.kernels[at].body;
        insertion.insert(body, &mut 0, false);
        wait_at_end(body);
    }
    inserted
}

/// Waits for all bulk stores where the last of those threads end that issue them.
fn wait_at_end(body: &mut Block) {
    let issues = |stmt: &&mut Stmt| {
        let mut any = false;
        walk_stmts(std::slice::from_ref(&**stmt), &mut |s| {
            any |= outline::stores(s)
        });
        any
    };
    let mut issuers: Vec<&mut Stmt> = body.iter_mut().filter(issues).collect();
    if let [one] = &mut issuers[..]
        && let StmtKind::WarpGroup { body, .. } = &mut one.kind
    {
        return wait_at_end(body);
    }
    let span = issuers.first().map_or(Span::NONE, |stmt| stmt.span);
    let wait = StmtKind::Device(Counted::STORES.wait(0));
    body.push(Stmt::new(wait, span));
}

/// Whether a kernel closes groups of products itself.
fn closes_groups(kernel: &Kernel) -> bool {
    let mut found = false;
    walk_stmts(&kernel.body, &mut |stmt| found |= closes_group(stmt));
    found
}

fn closes_group(stmt: &Stmt) -> bool {
    matches!(
        &stmt.kind,
        StmtKind::Device(DeviceOp::Commit(Counter::Wgmma))
    )
}

/// The first statement that lacks a wait for LDS accesses without a counter before it: the
/// function has not been through [`register_waits`].
pub fn open_barrier(func: &Func) -> Option<Span> {
    func.kernels.iter().find_map(|kernel| {
        let counted = Counted::LDS;
        let mut conflicts = Conflicts::new(func, kernel, counted.warp);
        let items = outline(func, kernel, counted, &mut conflicts);
        let mut walk = walk_of(&items, counted, conflicts, kernel);
        walk.mode = Mode::CheckPlain;
        walk.block(&items, &mut State::default());
        span_of(&items, walk.missing?.number)
    })
}

/// Whether all that a wave does with LDS is complete wherever it comes to a bare barrier.
pub fn is_drained(func: &Func, kernel: &Kernel) -> bool {
    let counted = Counted::LDS;
    let mut conflicts = Conflicts::new(func, kernel, counted.warp);
    let items = outline(func, kernel, counted, &mut conflicts);
    let mut walk = walk_of(&items, counted, conflicts, kernel);
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
fn derive(func: &Func, kernel: &Kernel, counted: Counted) -> Waits {
    let mut conflicts = Conflicts::new(func, kernel, counted.warp);
    let items = outline(func, kernel, counted, &mut conflicts);
    let mut walk = walk_of(&items, counted, conflicts, kernel);
    loop {
        walk.again = false;
        walk.block(&items, &mut State::default());
        if !walk.again {
            break;
        }
    }
    // A wait that was found first may be covered by one that was found later.
    walk.mode = Mode::Check;
    let mut found: Vec<(usize, u32)> = walk.waits.iter().map(|(n, left)| (*n, *left)).collect();
    // Stores of one iteration are waited for in the next, as far behind them as it goes.
    if counted.is_of_threads() {
        found.reverse();
    }
    for (number, at_most) in found {
        walk.tried = Some(number);
        let most = wait_limit(counted.counter);
        let mut enough_with = |left: Option<u32>| {
            match left {
                Some(left) => walk.waits.insert(number, left),
                None => walk.waits.remove(&number),
            };
            is_enough(&mut walk, &items)
        };
        // Most are needed as they are: where one more in flight is too many, all are.
        let mut left = Some(at_most);
        if at_most >= most || enough_with(Some(at_most + 1)) {
            left = match enough_with(None) {
                true => None,
                false => (at_most..most)
                    .find(|more| !enough_with(Some(more + 1)))
                    .or(Some(most)),
            };
        }
        match left {
            Some(left) => walk.waits.insert(number, left),
            None => walk.waits.remove(&number),
        };
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
    counted: Counted,
    conflicts: Conflicts<'k>,
    kernel: &Kernel,
) -> WaitWalk<'i, 'k> {
    let mut walk = WaitWalk {
        counted,
        conflicts,
        operations: FxHashMap::default(),
        waits: Waits::new(),
        tried: None,
        seen: Seen::default(),
        mode: Mode::Insert,
        missing: None,
        again: false,
        crossed: false,
        waited: FxHashSet::default(),
        apart: false,
        ways: Ways::default(),
        left: State::default(),
        next: State::default(),
    };
    note(items, &mut walk);
    walk_stmts(&kernel.body, &mut |stmt| {
        let cond = |kind: &BarrierKind| matches!(kind, BarrierKind::Cond(_));
        walk.apart |= matches!(&stmt.kind, StmtKind::Device(DeviceOp::Barrier(kind)) if cond(kind));
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

/// What is written into a kernel.
struct Insertion {
    counted: Counted,
    waits: Waits,
    /// Statements that are left out.
    dropped: FxHashSet<usize>,
    /// Statements whose blocks not all threads run together.
    divergent: FxHashSet<usize>,
}

impl Insertion {
    fn insert(&self, block: &mut Block, number: &mut usize, apart: bool) {
        let mut stmts = std::mem::take(block).into_iter().peekable();
        let counter = self.counted.counter;
        while let Some(mut stmt) = stmts.next() {
            let own = *number;
            *number += 1;
            let span = stmt.span;
            let device = |op: DeviceOp| Stmt::new(StmtKind::Device(op), span);
            if self.dropped.contains(&own) {
                continue;
            }
            if let Some(&at_most) = self.waits.get(&own) {
                block.push(device(self.counted.wait(at_most)));
            }
            let inside = apart || self.divergent.contains(&own);
            for child in child_blocks_mut(&mut stmt) {
                self.insert(child, number, inside);
            }
            let closed = stmts.peek().is_some_and(closes_group);
            let is_product = counter == Counter::Wgmma && stmt.as_group_product().is_some();
            if !is_product || closed {
                block.push(stmt);
                continue;
            }
            block.push(device(DeviceOp::Fence(FenceKind::Wgmma)));
            block.push(stmt);
            block.push(device(DeviceOp::Commit(counter)));
            // Who waits stands where all threads are. What the user waits for stays as it is.
            let wait = DeviceOp::Wait {
                counter,
                at_most: 0,
            };
            let waited = |next: &Stmt| matches!(&next.kind, StmtKind::Device(op) if *op == wait);
            if apart && !stmts.peek().is_some_and(waited) {
                block.push(device(wait));
            }
        }
    }
}
