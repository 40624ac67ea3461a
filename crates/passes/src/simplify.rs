//! Simplify: index arithmetic and conditions by proved laws.
//!
//! Walks each kernel with the facts of every place (ranges of indices, conditions around it)
//! and rewrites every expression. What a fact decides is decided: a branch whose condition is
//! known is replaced by its arm, a loop that runs no iteration goes.
//!
//! Before:
//! ```text
//! for k in serial(0, 4) {
//!   if k < 4 { A[(k * 8 + 3) // 8] = 1.0 }
//! }
//! ```
//! After:
//! ```text
//! for k in serial(0, 4) {
//!   A[k] = 1.0
//! }
//! ```
//!
//! Needs nothing. It never changes a value, moves a load, or changes the type of a node.

use tilewright_arith::Analyzer;
use tilewright_ir::visit::{block_exprs_mut, rewrite_block, stmt_exprs_mut};
use tilewright_ir::{
    Axis, Block, Diagnostics, Expr, Func, Level, Loop, Stmt, StmtKind, Target, Var,
};

use crate::Changed;

/// Rewrites every expression of the function.
pub fn simplify(func: &mut Func, _target: Target, _diags: &mut Diagnostics) -> Changed {
    let mut analyzer = Analyzer::for_func(func);
    for at in 0..func.kernels.len() {
        let body = std::mem::take(&mut func.kernels[at].body);
        for n in 0..func.kernels[at].grid.len() {
            let extent = analyzer.simplify(&func.kernels[at].grid[n].1);
            func.kernels[at].grid[n].1 = extent;
        }
        let mut body = body;
        // At tile level a start that is written for any block is not one for block zero alone:
        // constants must lie inside.
        if func.level != Level::Tile {
            name_only_block(&func.kernels[at].grid, &mut body);
        }
        analyzer.enter_kernel(func, &func.kernels[at]);
        let mut walk = Simplifier {
            func,
            analyzer: &mut analyzer,
        };
        let body = walk.block(body);
        analyzer.pop();
        func.kernels[at].body = body;
    }
    // Every expression is rebuilt; telling whether one changed would cost as much again.
    Changed::Yes
}

/// Along an axis of one block, the block is number zero.
fn name_only_block(grid: &[(Var, Expr)], body: &mut Block) {
    let only: Vec<Var> = grid
        .iter()
        .filter(|(_, extent)| extent.is_int(1))
        .map(|(var, _)| *var)
        .collect();
    if only.is_empty() {
        return;
    }
    block_exprs_mut(body, &mut |e| {
        *e = e.rewrite(&mut |node| {
            let named = node.as_var().is_some_and(|v| only.contains(&v));
            named.then(|| Expr::int(0, node.dtype()).with_span(node.span()))
        });
    });
}

struct Simplifier<'a> {
    func: &'a Func,
    analyzer: &'a mut Analyzer,
}

impl Simplifier<'_> {
    /// The statements of a block; facts found on the way hold to its end.
    fn block(&mut self, block: Block) -> Block {
        self.analyzer.push();
        let out = rewrite_block(block, |stmt, out| self.stmt(stmt, out));
        self.analyzer.pop();
        out
    }

    fn stmt(&mut self, mut stmt: Stmt, out: &mut Block) {
        if let StmtKind::While { cond, body } = stmt.kind {
            // The condition is evaluated again after the body, so nothing known now helps it.
            let body = self.block(body);
            out.push(Stmt::new(StmtKind::While { cond, body }, stmt.span));
            return;
        }
        stmt_exprs_mut(&mut stmt, &mut |e| *e = self.analyzer.simplify(e));
        match stmt.kind {
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => match cond.as_int() {
                Some(0) => self.arm(otherwise, out),
                Some(_) => self.arm(then, out),
                None => {
                    self.analyzer.push();
                    self.analyzer.assume(&cond);
                    let then = self.block(then);
                    self.analyzer.pop();
                    self.analyzer.push();
                    self.analyzer.refute(&cond);
                    let otherwise = self.block(otherwise);
                    self.analyzer.pop();
                    if !then.is_empty() || !otherwise.is_empty() {
                        let kind = StmtKind::If {
                            cond,
                            then,
                            otherwise,
                        };
                        self.plain(Stmt::new(kind, stmt.span), out);
                    }
                }
            },
            StmtKind::For(l) => {
                if l.axes.iter().any(|a| self.never_runs(a)) {
                    return;
                }
                self.analyzer.enter_loop(self.func, &l);
                // Inside, every axis has an iteration, which decides loops further in.
                for axis in l.axes.iter().filter(|a| a.const_trip_count().is_none()) {
                    if axis.step.as_int().is_some_and(|step| step > 0) {
                        let runs = axis.start.clone().lt(axis.stop.clone());
                        self.analyzer.assume(&runs);
                    }
                }
                let body = self.block(l.body);
                self.analyzer.pop();
                let kind = StmtKind::For(Loop { body, ..l });
                out.push(Stmt::new(kind, stmt.span));
            }
            StmtKind::WarpGroup { groups, body } => {
                let body = self.block(body);
                let kind = StmtKind::WarpGroup { groups, body };
                out.push(Stmt::new(kind, stmt.span));
            }
            // What is known to hold need not be said or checked.
            StmtKind::Assume(cond) | StmtKind::Assert { cond, .. } if cond.is_int(1) => {}
            kind => self.plain(Stmt::new(kind, stmt.span), out),
        }
    }

    /// Whether a loop over the axis has no iteration, whatever else happens. Below tile level a
    /// loop stays where only a proof would take it: the steady loop of a pipeline says which trip
    /// counts its prologue and epilogue are for.
    fn never_runs(&mut self, axis: &Axis) -> bool {
        if let Some(count) = axis.const_trip_count() {
            return count == 0;
        }
        if self.func.level != Level::Tile {
            return false;
        }
        let proof = match axis.step.as_int() {
            Some(step) if step > 0 => self.analyzer.prove_le(&axis.stop, &axis.start),
            Some(step) if step < 0 => self.analyzer.prove_ge(&axis.stop, &axis.start),
            _ => return false,
        };
        proof.is_yes()
    }

    /// A finished statement, and what it says about the rest of its block.
    fn plain(&mut self, stmt: Stmt, out: &mut Block) {
        self.analyzer.after(&stmt);
        out.push(stmt);
    }

    /// The statements of a decided branch, in place of it.
    fn arm(&mut self, block: Block, out: &mut Block) {
        for stmt in block {
            self.stmt(stmt, out);
        }
    }
}
