//! ThreadSync: block barriers where threads hand data to each other through shared memory.
//!
//! Walks the program once with the accesses that no barrier has closed yet. A statement that
//! conflicts with one of them gets a barrier before it, which closes them all. A loop is
//! walked a second time, starting from what its first iteration leaves open, so hazards
//! between iterations are seen. A barrier stands only where all threads of the block go
//! together: before a thread-dependent `if`, never in it.
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
use tilewright_ir::visit::{child_blocks, walk_stmts};
use tilewright_ir::{
    BarrierKind, Block, Code, DeviceOp, Diagnostic, Diagnostics, Expr, Func, Kernel, Level, Span,
    Stmt, StmtKind, ThreadOp, Var, VoteKind,
};

use crate::access::{Access, Collector, bind_let};
use crate::footprint::{Between, certain_conflict, conflict};
use crate::uniform::Uniformity;

const DIVERGENT_HAZARD: Code = Code("divergent-hazard");

/// Inserts the block barriers that a function's kernels need. Returns how many.
pub fn thread_sync(func: &mut Func, diags: &mut Diagnostics) -> usize {
    debug_assert_ne!(func.level, Level::Tile);
    let mut inserted = 0;
    for at in 0..func.kernels.len() {
        let body = {
            let kernel = &func.kernels[at];
            let uniformity = Uniformity::of(func, kernel);
            let mut walk = Walk {
                func,
                kernel,
                collector: Collector {
                    func,
                    kernel,
                    uniformity: &uniformity,
                },
                uniformity: &uniformity,
                diags,
                inserted: 0,
                scope: Scope::Block,
            };
            let mut open = Open::default();
            let mut lets = FxHashMap::default();
            let body = walk.block(kernel.body.clone(), &mut open, &mut lets);
            inserted += walk.inserted;
            body
        };
        func.kernels[at].body = body;
    }
    inserted
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
}

impl Open {
    fn add(&mut self, accesses: Vec<Access>) {
        let changed = Rc::new(FxHashSet::default());
        for access in accesses {
            self.list.push(Pending {
                access: Rc::new(access),
                changed: changed.clone(),
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
    collector: Collector<'f>,
    uniformity: &'f Uniformity<'f>,
    diags: &'d mut Diagnostics,
    inserted: usize,
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
                l.body = self.repeated(body, changed, runs_again, open, lets);
            }
            StmtKind::While { body, .. } => {
                let taken = std::mem::take(body);
                *body = self.repeated(taken, FxHashSet::default(), true, open, lets);
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
        runs_again: bool,
        open: &mut Open,
        lets: &mut FxHashMap<Var, Expr>,
    ) -> Block {
        walk_stmts(&body, &mut |stmt| bound_vars(stmt, &mut changed));
        let before = open.clone();
        let mut body = self.block(body, open, &mut lets.clone());
        if runs_again {
            let mut carried = Open::default();
            for pending in &open.list {
                let mut all: FxHashSet<Var> = (*pending.changed).clone();
                all.extend(changed.iter().copied());
                carried.list.push(Pending {
                    access: pending.access.clone(),
                    changed: Rc::new(all),
                });
            }
            body = self.block(body, &mut carried, &mut lets.clone());
            open.merge(carried);
        }
        // The loop may run no iteration at all.
        open.merge(before);
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
                if conflict(self.func, self.kernel, a, b, Between::Nothing) {
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
        let needed = open.list.iter().any(|pending| {
            accesses.iter().any(|access| {
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
                let between = Between::LaterIteration(&changes);
                conflict(self.func, self.kernel, &pending.access, access, between)
            })
        });
        if !needed {
            return;
        }
        let kind = match self.scope {
            Scope::Block => BarrierKind::Block,
            Scope::Groups { first, count } => BarrierKind::Named {
                id: 1 + first,
                count,
            },
        };
        out.push(Stmt::new(StmtKind::Device(DeviceOp::Barrier(kind)), span));
        self.inserted += 1;
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
