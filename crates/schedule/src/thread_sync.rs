//! ThreadSync: block barriers where threads hand data to each other through shared memory.
//!
//! Walks the program once with the accesses that no barrier has closed yet. A statement that
//! conflicts with one of them gets a barrier before it, which closes them all. A loop is
//! walked a second time, starting from what its first iteration leaves open, so hazards
//! between iterations are seen. A barrier stands only where all threads of the block go
//! together: before a thread-dependent `if`, never in it. Where only threads of one warp meet,
//! a warp barrier does.
//!
//! Before:
//! ```text
//! S[tx] = A[tx]
//! B[tx] = S[127 - tx]
//! ```
//! After:
//! ```text
//! S[tx] = A[tx]
//! barrier block
//! B[tx] = S[127 - tx]
//! ```
//!
//! Needs loop IR: one thread's view. It never moves a statement, and never puts a barrier
//! where the model proves that no two threads meet.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::visit::{child_blocks, child_blocks_mut, walk_stmts};
use tilewright_ir::{
    BarrierKind, Block, Code, DeviceOp, Diagnostic, Diagnostics, Expr, Func, Kernel, Level, Span,
    Stmt, StmtKind, ThreadOp, Var, VoteKind,
};

use crate::access::{Access, Collector, bind_let};
use crate::footprint::{Between, Meeting, certain_conflict, conflict};
use crate::uniform::Uniformity;

const DIVERGENT_HAZARD: Code = Code("divergent-hazard");

/// Inserts the block barriers that a function's kernels need. Returns how many.
///
/// `warp` is the number of threads that run together: where only threads of one warp meet, they
/// synchronise among themselves.
pub fn thread_sync(func: &mut Func, warp: u32, diags: &mut Diagnostics) -> usize {
    debug_assert_ne!(func.level, Level::Tile);
    let mut inserted = 0;
    for at in 0..func.kernels.len() {
        let body = func.kernels[at].body.clone();
        let own = count_barriers(&body);
        let (mut body, _) = walk(func, at, warp, body, Mode::Insert, diags);
        if own == 0 {
            remove_redundant(func, at, warp, &mut body);
        }
        inserted += count_barriers(&body) - own;
        func.kernels[at].body = body;
    }
    inserted
}

/// Walks a body of a kernel and returns it with barriers inserted, or in check mode as it is, and
/// the number of hazards found.
fn walk(
    func: &Func,
    at: usize,
    warp: u32,
    body: Block,
    mode: Mode,
    diags: &mut Diagnostics,
) -> (Block, usize) {
    let kernel = &func.kernels[at];
    let uniformity = Uniformity::of(func, kernel);
    let mut walk = Walk {
        func,
        kernel,
        warp,
        collector: Collector {
            func,
            kernel,
            uniformity: &uniformity,
        },
        uniformity: &uniformity,
        diags,
        hazards: 0,
        mode,
        scope: Scope::Block,
    };
    let mut open = Open::default();
    let body = walk.block(body, &mut open, &mut FxHashMap::default());
    (body, walk.hazards)
}

/// A barrier put in for the first iteration may be covered by one that a later iteration needed;
/// each barrier without which the walk finds no hazard goes.
fn remove_redundant(func: &Func, at: usize, warp: u32, body: &mut Block) {
    let mut nth = 0;
    while nth < count_barriers(body) {
        let mut fewer = body.clone();
        remove_barrier(&mut fewer, &mut nth.clone());
        let mut unheard = Diagnostics::new();
        let (fewer, hazards) = walk(func, at, warp, fewer, Mode::Check, &mut unheard);
        if hazards == 0 {
            *body = fewer;
        } else {
            nth += 1;
        }
    }
}

fn is_block_barrier(stmt: &Stmt) -> bool {
    matches!(
        stmt.kind,
        StmtKind::Device(DeviceOp::Barrier(
            BarrierKind::Block | BarrierKind::Named { .. }
        ))
    )
}

fn count_barriers(block: &Block) -> usize {
    let mut count = 0;
    walk_stmts(block, &mut |stmt| count += is_block_barrier(stmt) as usize);
    count
}

/// Removes the barrier that has `left` others before it.
fn remove_barrier(block: &mut Block, left: &mut usize) -> bool {
    for at in 0..block.len() {
        if is_block_barrier(&block[at]) {
            if *left == 0 {
                block.remove(at);
                return true;
            }
            *left -= 1;
        }
        for child in child_blocks_mut(&mut block[at]) {
            if remove_barrier(child, left) {
                return true;
            }
        }
    }
    false
}

/// What is known of how often a loop runs.
#[derive(Clone, Copy)]
struct Trips {
    runs_again: bool,
    may_skip: bool,
}

/// What the walk does where threads meet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Insert,
    Check,
}

/// Who waits at an inserted barrier.
#[derive(Clone, PartialEq, Eq)]
enum Scope {
    Block,
    /// The warp groups of the region that the walk is in.
    Groups {
        first: u32,
        count: u32,
    },
}

/// The accesses that no barrier has closed, each once.
#[derive(Clone, Default)]
struct Open {
    list: Vec<Pending>,
}

#[derive(Clone)]
struct Pending {
    access: Rc<Access>,
    /// The variables that have other values by now: those of the loops that have gone on to a
    /// later iteration since.
    changed: Rc<FxHashSet<Var>>,
    /// Whether each warp has synchronised since.
    in_warp: bool,
}

impl Open {
    fn add(&mut self, accesses: Vec<Access>) {
        let changed = Rc::new(FxHashSet::default());
        for access in accesses {
            self.list.push(Pending {
                access: Rc::new(access),
                changed: changed.clone(),
                in_warp: false,
            });
        }
    }

    fn merge(&mut self, other: Open) {
        for pending in other.list {
            let known = self
                .list
                .iter()
                .any(|p| Rc::ptr_eq(&p.access, &pending.access) && p.changed == pending.changed);
            if !known {
                self.list.push(pending);
            }
        }
    }
}

struct Walk<'f, 'd> {
    func: &'f Func,
    kernel: &'f Kernel,
    warp: u32,
    collector: Collector<'f>,
    uniformity: &'f Uniformity<'f>,
    diags: &'d mut Diagnostics,
    hazards: usize,
    mode: Mode,
    scope: Scope,
}

impl Walk<'_, '_> {
    fn block(&mut self, block: Block, open: &mut Open, lets: &mut FxHashMap<Var, Expr>) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for stmt in block {
            self.stmt(stmt, open, lets, &mut out);
        }
        out
    }

    fn stmt(
        &mut self,
        mut stmt: Stmt,
        open: &mut Open,
        lets: &mut FxHashMap<Var, Expr>,
        out: &mut Block,
    ) {
        if closes_all(&stmt, self.kernel) {
            open.list.clear();
            out.push(stmt);
            return;
        }
        if matches!(stmt.kind, StmtKind::Thread(ThreadOp::SyncWarp)) {
            for pending in &mut open.list {
                pending.in_warp = true;
            }
            out.push(stmt);
            return;
        }
        if !self.must_descend(&stmt, lets) {
            let accesses = self.collector.unit(&stmt, lets);
            self.barrier_if_needed(&accesses, stmt.span, open, out);
            open.add(accesses);
            if let StmtKind::Let { var, value } = &stmt.kind {
                bind_let(*var, value, lets);
            }
            out.push(stmt);
            return;
        }
        // What the statement itself reads (bounds, conditions) comes before its blocks.
        let header = Stmt::new(StmtKind::Break, stmt.span);
        let mut head = Vec::new();
        tilewright_ir::visit::stmt_exprs(&stmt, &mut |e| {
            let probe = Stmt::new(StmtKind::Assume(e.clone()), header.span);
            head.extend(self.collector.unit(&probe, lets));
        });
        self.barrier_if_needed(&head, stmt.span, open, out);
        open.add(head);
        match &mut stmt.kind {
            StmtKind::For(l) => {
                let body = std::mem::take(&mut l.body);
                let changed: FxHashSet<Var> = l.axes.iter().map(|a| a.var).collect();
                let runs_again = l
                    .axes
                    .iter()
                    .all(|a| a.const_trip_count().is_none_or(|n| n > 1));
                let may_skip = l
                    .axes
                    .iter()
                    .any(|a| a.const_trip_count().is_none_or(|n| n == 0));
                let trips = Trips {
                    runs_again,
                    may_skip,
                };
                l.body = self.repeated(body, changed, trips, open, lets);
            }
            StmtKind::While { body, .. } => {
                let taken = std::mem::take(body);
                let trips = Trips {
                    runs_again: true,
                    may_skip: true,
                };
                *body = self.repeated(taken, FxHashSet::default(), trips, open, lets);
            }
            StmtKind::If {
                then, otherwise, ..
            } => {
                let mut other = open.clone();
                *then = self.block(std::mem::take(then), open, &mut lets.clone());
                *otherwise = self.block(std::mem::take(otherwise), &mut other, &mut lets.clone());
                open.merge(other);
            }
            StmtKind::WarpGroup { groups, body } => {
                let scope = Scope::Groups {
                    first: groups.first().copied().unwrap_or(0),
                    count: 128 * groups.len() as u32,
                };
                let before = std::mem::replace(&mut self.scope, scope);
                // Regions run beside each other and meet only at the user's barriers.
                let mut inside = open.clone();
                *body = self.block(std::mem::take(body), &mut inside, &mut lets.clone());
                self.scope = before;
                open.merge(inside);
            }
            _ => {}
        }
        out.push(stmt);
    }

    /// A loop body: once from the outside, once from its own end.
    fn repeated(
        &mut self,
        body: Block,
        mut changed: FxHashSet<Var>,
        trips: Trips,
        open: &mut Open,
        lets: &mut FxHashMap<Var, Expr>,
    ) -> Block {
        walk_stmts(&body, &mut |stmt| bound_vars(stmt, &mut changed));
        let before = open.clone();
        let mut body = self.block(body, open, &mut lets.clone());
        if trips.runs_again {
            let mut carried = Open::default();
            for pending in &open.list {
                let mut all: FxHashSet<Var> = (*pending.changed).clone();
                all.extend(changed.iter().copied());
                carried.list.push(Pending {
                    access: pending.access.clone(),
                    changed: Rc::new(all),
                    in_warp: pending.in_warp,
                });
            }
            body = self.block(body, &mut carried, &mut lets.clone());
            open.merge(carried);
        }
        if trips.may_skip {
            open.merge(before);
        }
        body
    }

    /// Whether barriers may be needed inside the statement, and can stand there.
    fn must_descend(&mut self, stmt: &Stmt, lets: &FxHashMap<Var, Expr>) -> bool {
        let blocks = child_blocks(stmt);
        if blocks.is_empty() {
            return false;
        }
        let mut has_barrier = false;
        for block in &blocks {
            walk_stmts(block, &mut |s| has_barrier |= is_sync(s));
        }
        let divergent = self.is_divergent(stmt);
        if matches!(stmt.kind, StmtKind::If { .. }) && !divergent {
            // All threads take the branch or none: a barrier inside is waited at only if taken.
            return true;
        }
        let hazard = has_barrier || self.has_inner_hazard(stmt, lets);
        if divergent && !has_barrier && self.has_certain_hazard(stmt, lets) {
            self.diags.push(
                Diagnostic::error(
                    DIVERGENT_HAZARD,
                    stmt.span,
                    "threads exchange data through shared memory inside a thread-dependent branch",
                )
                .help("move the exchange out of the branch, or make its condition the same for all threads"),
            );
            return false;
        }
        hazard && !divergent
    }

    fn is_divergent(&self, stmt: &Stmt) -> bool {
        let mut varies = false;
        tilewright_ir::visit::stmt_exprs(stmt, &mut |e| varies |= self.uniformity.varies(e));
        varies
    }

    /// Whether two accesses inside the statement conflict, in one iteration or between two.
    fn has_inner_hazard(&self, stmt: &Stmt, lets: &FxHashMap<Var, Expr>) -> bool {
        let accesses = self.collector.unit(stmt, lets);
        if !accesses.iter().any(|a| a.write) {
            return false;
        }
        for (at, a) in accesses.iter().enumerate() {
            for b in &accesses[at..] {
                let met = conflict(self.func, self.kernel, self.warp, a, b, Between::Nothing);
                if met != Meeting::Nowhere {
                    return true;
                }
            }
        }
        false
    }

    /// Whether two threads certainly meet inside the statement. Where that is not known, code
    /// that speaks of threads is taken to know what it does.
    fn has_certain_hazard(&self, stmt: &Stmt, lets: &FxHashMap<Var, Expr>) -> bool {
        let accesses = self.collector.unit(stmt, lets);
        accesses.iter().enumerate().any(|(at, a)| {
            accesses[at..]
                .iter()
                .any(|b| certain_conflict(self.func, self.kernel, a, b))
        })
    }

    fn barrier_if_needed(
        &mut self,
        accesses: &[Access],
        span: Span,
        open: &mut Open,
        out: &mut Block,
    ) {
        let mut needed = Meeting::Nowhere;
        for pending in &open.list {
            for access in accesses {
                let changes = |e: &Expr| {
                    let mut found = false;
                    e.walk(&mut |node| {
                        found |= node.as_var().is_some_and(|v| pending.changed.contains(&v));
                        // Memory may hold something else by then.
                        found |= !pending.changed.is_empty()
                            && matches!(node.kind(), tilewright_ir::ExprKind::Load { .. });
                    });
                    found
                };
                let met = conflict(
                    self.func,
                    self.kernel,
                    self.warp,
                    &pending.access,
                    access,
                    Between::LaterIteration(&changes),
                );
                if !(met == Meeting::InWarp && pending.in_warp) {
                    needed = needed.max(met);
                }
            }
            if needed == Meeting::AcrossWarps {
                break;
            }
        }
        if needed != Meeting::Nowhere {
            self.hazards += 1;
            if self.mode == Mode::Check {
                return;
            }
        }
        match needed {
            Meeting::Nowhere => return,
            Meeting::InWarp => {
                let sync = StmtKind::Thread(ThreadOp::SyncWarp);
                out.push(Stmt::new(sync, span));
                for pending in &mut open.list {
                    pending.in_warp = true;
                }
                return;
            }
            Meeting::AcrossWarps => {}
        }
        let kind = match self.scope {
            Scope::Block => BarrierKind::Block,
            Scope::Groups { first, count } => BarrierKind::Named {
                id: 1 + first,
                count,
            },
        };
        out.push(Stmt::new(StmtKind::Device(DeviceOp::Barrier(kind)), span));
        open.list.clear();
    }
}

/// Whether every thread of the block waits for all others here.
fn closes_all(stmt: &Stmt, kernel: &Kernel) -> bool {
    match &stmt.kind {
        StmtKind::Thread(ThreadOp::SyncThreads { named }) => {
            named.is_none_or(|(_, count)| count == kernel.num_threads())
        }
        StmtKind::Thread(ThreadOp::SyncGrid) => true,
        StmtKind::Thread(ThreadOp::Vote { kind, .. }) => matches!(
            kind,
            VoteKind::BlockOr | VoteKind::BlockAnd | VoteKind::BlockCount
        ),
        StmtKind::Device(DeviceOp::Barrier(BarrierKind::Block)) => true,
        StmtKind::Device(DeviceOp::Barrier(BarrierKind::Named { count, .. })) => {
            *count == kernel.num_threads()
        }
        _ => false,
    }
}

fn is_sync(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Thread(op) => matches!(
            op,
            ThreadOp::SyncThreads { .. }
                | ThreadOp::SyncGrid
                | ThreadOp::BarrierWait { .. }
                | ThreadOp::Vote {
                    kind: VoteKind::BlockOr | VoteKind::BlockAnd | VoteKind::BlockCount,
                    ..
                }
        ),
        StmtKind::Device(op) => matches!(op, DeviceOp::Barrier(_)),
        _ => false,
    }
}

/// The variables that a statement gives new values each time it runs.
fn bound_vars(stmt: &Stmt, out: &mut FxHashSet<Var>) {
    match &stmt.kind {
        StmtKind::Let { var, .. } => {
            out.insert(*var);
        }
        StmtKind::For(l) => out.extend(l.axes.iter().map(|a| a.var)),
        StmtKind::Thread(op) => out.extend(op.result()),
        _ => {}
    }
}
