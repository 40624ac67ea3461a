//! UnswitchMasks: a mask that hides nothing of most tiles is asked for once a tile.
//!
//! Before, in a pipelined loop:
//! ```text
//! for s in unroll(0, 64) {
//!   acc_s[s] = if_then_else(k * 128 + j <= bx * 128 + i, 0.0, -inf)
//! }
//! ```
//! After:
//! ```text
//! if k * 128 + 127 <= bx * 128 {
//!   for s in unroll(0, 64) {
//!     acc_s[s] = if_then_else(true, 0.0, -inf)
//!   }
//! } else {
//!   for s in unroll(0, 64) {
//!     acc_s[s] = if_then_else(k * 128 + j <= bx * 128 + i, 0.0, -inf)
//!   }
//! }
//! ```
//!
//! Needs loop IR with planned loops. The condition that is asked once is the same for all threads and
//! holds only where the mask does for each of them at each point; where that cannot be said without
//! overflow the loop stays as it is, and where it loads from global memory, which it waits for
//! anyway. Comparing is worth it where products are fast beside what stands
//! between them: of warp groups, and of waves whose SIMDs have matrix units.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_arith::{Analyzer, Inside, Interval};
use tilewright_ir::uniform::{Points, Uniformity};
use tilewright_ir::visit::{block_exprs_mut, stmt_exprs, walk_stmts};
use tilewright_ir::{
    BinOp, DType, Diagnostics, Expr, ExprKind, Func, Kernel, Scope, Stmt, StmtKind, Target, Var,
};

use super::fresh::refresh;
use crate::Changed;

/// Unswitches the masks of all kernels.
pub fn unswitch_masks(func: &mut Func, _target: Target, _diags: &mut Diagnostics) -> Changed {
    let mut changed = Changed::No;
    for at in 0..func.kernels.len() {
        if !masks(&func.kernels[at]) {
            continue;
        }
        let read = func.clone();
        let kernel = &read.kernels[at];
        let uniformity = Uniformity::of(&read, kernel, Points::OfThreads);
        let mut analyzer = Analyzer::for_func(&read);
        analyzer.enter_kernel(&read, kernel);
        let mut body = std::mem::take(&mut func.kernels[at].body);
        analyzer.rewrite_block(&read, &mut body, &mut |analyzer, stmt| {
            if stmt.turn.is_none() {
                return Inside::Rewrite;
            }
            if let Some(split) = unswitched(func, &uniformity, analyzer, stmt) {
                *stmt = split;
                changed = Changed::Yes;
            }
            Inside::Done
        });
        func.kernels[at].body = body;
    }
    changed
}

/// Whether a statement of a planned loop chooses.
fn masks(kernel: &Kernel) -> bool {
    let mut found = false;
    walk_stmts(&kernel.body, &mut |stmt| {
        if stmt.turn.is_some() {
            walk_stmts(std::slice::from_ref(stmt), &mut |inner| {
                stmt_exprs(inner, &mut |e| {
                    e.walk(&mut |n| found |= choice(n).is_some())
                });
            });
        }
    });
    found
}

/// What an expression chooses by.
fn choice(e: &Expr) -> Option<&Expr> {
    match e.kind() {
        ExprKind::IfThenElse { cond, .. } | ExprKind::Select { cond, .. } => Some(cond),
        _ => None,
    }
}

/// What is the same for all threads, and for all points of the statement that is looked at.
struct Fixed<'a> {
    uniformity: &'a Uniformity<'a>,
    /// Variables that the statement binds.
    inside: FxHashSet<Var>,
}

impl Fixed<'_> {
    fn is_fixed(&self, e: &Expr) -> bool {
        let mut fixed = !self.uniformity.varies(e);
        e.walk(&mut |node| match node.kind() {
            ExprKind::Var(var) => fixed &= !self.inside.contains(var),
            // It may hold something else by the time it is asked.
            ExprKind::Load { .. } => fixed = false,
            _ => {}
        });
        fixed
    }
}

/// The statement under a condition that its masks do not hide anything, and as it is.
fn unswitched(
    func: &mut Func,
    uniformity: &Uniformity<'_>,
    analyzer: &mut Analyzer,
    stmt: &Stmt,
) -> Option<Stmt> {
    let StmtKind::For(l) = &stmt.kind else {
        return None;
    };
    let mut fixed = Fixed {
        uniformity,
        inside: FxHashSet::default(),
    };
    let mut lets: FxHashMap<Var, Expr> = FxHashMap::default();
    let mut conditions: Vec<Expr> = Vec::new();
    let mut plain = true;
    let mut scopes = 0;
    walk_stmts(std::slice::from_ref(stmt), &mut |inner| {
        match &inner.kind {
            StmtKind::For(inner) => {
                analyzer.enter_loop(func, inner);
                scopes += 1;
                fixed.inside.extend(inner.axes.iter().map(|a| a.var));
            }
            StmtKind::Let { var, value } => {
                fixed.inside.insert(*var);
                lets.insert(*var, expanded(value, &lets));
            }
            StmtKind::Store { .. } | StmtKind::Alloc(_) => {}
            _ => plain = false,
        }
        stmt_exprs(inner, &mut |e| {
            e.walk_loads(&mut |from, _| plain &= func.buffers[from].scope != Scope::Global);
            e.walk(&mut |node| {
                if let Some(cond) = choice(node)
                    && !conditions.contains(cond)
                {
                    conditions.push(cond.clone());
                }
            });
        });
    });
    let mut hidden_by: Vec<Expr> = Vec::new();
    let mut once: Option<Expr> = None;
    for cond in conditions.iter().filter(|_| plain) {
        if let Some(asked) = nothing_hidden(analyzer, &fixed, &expanded(cond, &lets)) {
            once = Some(once.map_or(asked.clone(), |all| all.and(asked)));
            hidden_by.push(cond.clone());
        }
    }
    for _ in 0..scopes {
        analyzer.pop();
    }
    let once = once?;
    let mut shown = vec![Stmt::new(StmtKind::For(l.clone()), stmt.span)];
    block_exprs_mut(&mut shown, &mut |e| {
        *e = e.rewrite(&mut |node| hidden_by.contains(node).then(|| Expr::bool(true)));
    });
    refresh(func, &mut shown);
    let mut masked = stmt.clone();
    masked.turn = None;
    let kind = StmtKind::If {
        cond: once,
        then: shown,
        otherwise: vec![masked],
    };
    let mut split = stmt.clone();
    split.kind = kind;
    Some(split)
}

fn expanded(e: &Expr, lets: &FxHashMap<Var, Expr>) -> Expr {
    e.rewrite(&mut |node| lets.get(&node.as_var()?).cloned())
}

/// A condition that is the same for all threads and points, and under which `cond` holds for all.
fn nothing_hidden(analyzer: &mut Analyzer, fixed: &Fixed<'_>, cond: &Expr) -> Option<Expr> {
    let ExprKind::Binary(op, a, b) = cond.kind() else {
        return None;
    };
    match op {
        BinOp::LogicalAnd => match (analyzer.prove(a).is_yes(), analyzer.prove(b).is_yes()) {
            (true, true) => None,
            (true, false) => nothing_hidden(analyzer, fixed, b),
            (false, true) => nothing_hidden(analyzer, fixed, a),
            (false, false) => {
                let a = nothing_hidden(analyzer, fixed, a)?;
                Some(a.and(nothing_hidden(analyzer, fixed, b)?))
            }
        },
        BinOp::Lt | BinOp::Le => below(analyzer, fixed, *op, a, b),
        BinOp::Gt => below(analyzer, fixed, BinOp::Lt, b, a),
        BinOp::Ge => below(analyzer, fixed, BinOp::Le, b, a),
        _ => None,
    }
}

/// The same for `a < b` or `a <= b`.
fn below(
    analyzer: &mut Analyzer,
    fixed: &Fixed<'_>,
    op: BinOp,
    a: &Expr,
    b: &Expr,
) -> Option<Expr> {
    let dtype = a.dtype();
    if !dtype.scalar.is_int() || b.dtype() != dtype || !fits(analyzer, a) || !fits(analyzer, b) {
        return None;
    }
    let mut parts = Parts {
        fixed,
        low: Expr::zero(dtype),
        high: Expr::zero(dtype),
        varying: Expr::zero(dtype),
    };
    parts.add(a, false);
    parts.add(b, true);
    // What differs between threads and points counts with the most it comes to.
    let most = fits(analyzer, &parts.varying).then(|| analyzer.const_bounds(&parts.varying).hi)?;
    let low = analyzer.simplify(&(parts.low + Expr::int(most, dtype)));
    let high = analyzer.simplify(&parts.high);
    if !fits(analyzer, &low) || !fits(analyzer, &high) {
        return None;
    }
    let cond = match op {
        BinOp::Lt => low.lt(high),
        _ => low.le(high),
    };
    let known = analyzer.prove(&cond);
    (!known.is_yes() && !known.is_no()).then_some(cond)
}

/// Whether the value is known to lie inside of its type's range, so that nothing has wrapped.
fn fits(analyzer: &mut Analyzer, e: &Expr) -> bool {
    let all = Interval::of(e.dtype().scalar);
    let bounds = analyzer.const_bounds(e);
    bounds.lo > all.lo && bounds.hi < all.hi
}

/// `low + varying` against `high`.
struct Parts<'a> {
    fixed: &'a Fixed<'a>,
    low: Expr,
    high: Expr,
    varying: Expr,
}

impl Parts<'_> {
    fn add(&mut self, e: &Expr, right: bool) {
        match e.kind() {
            ExprKind::Binary(BinOp::Add, a, b) => {
                self.add(a, right);
                self.add(b, right);
            }
            ExprKind::Binary(BinOp::Sub, a, b) => {
                self.add(a, right);
                self.add(b, !right);
            }
            _ => {
                let to = match (self.fixed.is_fixed(e), right) {
                    (true, false) => &mut self.low,
                    (true, true) => &mut self.high,
                    (false, _) => &mut self.varying,
                };
                let sum = std::mem::replace(to, Expr::zero(DType::I32));
                *to = match right && !self.fixed.is_fixed(e) {
                    true => sum - e.clone(),
                    false => sum + e.clone(),
                };
            }
        }
    }
}
