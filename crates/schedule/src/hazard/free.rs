//! What the places of a unit depend on from outside.

use rustc_hash::FxHashSet;
use tilewright_ir::visit::{stmt_exprs, walk_stmts};
use tilewright_ir::visit_ids::stmt_buffers;
use tilewright_ir::{BinOp, Buffer, Expr, ExprKind, Stmt, StmtKind, Var};

use super::scan::Scan;

/// What a unit's places depend on from outside.
#[derive(Debug)]
pub(super) struct Free {
    pub vars: Vec<Var>,
    pub scalars: Vec<Buffer>,
    /// Whether it touches a buffer with versions.
    pub versions: bool,
}

pub(super) fn free_vars(scan: &Scan<'_>, stmt: &Stmt) -> Free {
    fn walk(
        scan: &Scan<'_>,
        stmt: &Stmt,
        bound: &mut FxHashSet<Var>,
        used: &mut FxHashSet<Var>,
        scalars: &mut FxHashSet<Buffer>,
    ) {
        stmt_exprs(stmt, &mut |e| {
            e.walk(&mut |node| match node.kind() {
                ExprKind::Var(var) if scan.relevant.contains(var) => {
                    used.insert(*var);
                }
                ExprKind::Load { buffer, .. } if scan.is_scalar(*buffer) => {
                    scalars.insert(*buffer);
                }
                _ => {}
            });
        });
        match &stmt.kind {
            StmtKind::Let { var, .. } => {
                bound.insert(*var);
            }
            StmtKind::For(l) => bound.extend(l.axes.iter().map(|a| a.var)),
            StmtKind::Micro(m) => bound.extend(m.axes.iter().map(|(v, _)| *v)),
            StmtKind::Thread(op) => bound.extend(op.result()),
            _ => {}
        }
        for child in tilewright_ir::visit::child_blocks(stmt) {
            for inner in child {
                walk(scan, inner, bound, used, scalars);
            }
        }
    }
    let (mut bound, mut used) = (FxHashSet::default(), FxHashSet::default());
    let mut scalars = FxHashSet::default();
    walk(scan, stmt, &mut bound, &mut used, &mut scalars);
    let threads = &scan.kernel.thread_vars;
    let free = used.difference(&bound).filter(|v| !threads.contains(v));
    let mut vars: Vec<Var> = free.copied().collect();
    vars.sort_unstable();
    let mut scalars: Vec<Buffer> = scalars.into_iter().collect();
    scalars.sort_unstable();
    let mut versions = false;
    let mut note = |s: &Stmt| {
        stmt_buffers(s, &mut |b| {
            versions |= scan.func.buffers[scan.root(b)].versions > 1;
        });
    };
    note(stmt);
    for child in tilewright_ir::visit::child_blocks(stmt) {
        walk_stmts(child, &mut note);
    }
    Free {
        vars,
        scalars,
        versions,
    }
}

/// Whether the expression reads memory on a side that is not always evaluated.
pub(super) fn reads_under_condition(e: &Expr) -> bool {
    let reads = |side: &Expr| {
        let mut any = false;
        side.walk_loads(&mut |_, _| any = true);
        any
    };
    if !reads(e) {
        return false;
    }
    let mut found = false;
    e.walk_distinct(&mut |node| {
        found |= match node.kind() {
            ExprKind::IfThenElse {
                then, otherwise, ..
            } => reads(then) || reads(otherwise),
            ExprKind::Binary(BinOp::LogicalAnd | BinOp::LogicalOr, _, b) => reads(b),
            _ => false,
        };
    });
    found
}
