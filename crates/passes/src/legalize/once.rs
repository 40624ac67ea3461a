//! Loops of one iteration: what stands in them runs as if it stood where they stand, at one value of their
//! variable.

use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{Expr, Loop, LoopKind, StmtKind, Var};

/// Variables that have one value, each with it.
pub type Values = Vec<(Var, Expr)>;

/// The variable of a loop of which all of the body runs, and that once, with its value.
pub fn once(l: &Loop) -> Option<(Var, Expr)> {
    let [axis] = &l.axes[..] else { return None };
    let plain = matches!(l.kind, LoopKind::Serial | LoopKind::Unroll { .. });
    if !plain || axis.const_trip_count() != Some(1) {
        return None;
    }
    let mut leaves = false;
    walk_stmts(&l.body, &mut |stmt| {
        leaves |= matches!(stmt.kind, StmtKind::Break | StmtKind::Continue);
    });
    (!leaves).then(|| (axis.var, axis.start.clone()))
}

/// An expression with their values in place of variables.
pub fn at_values(e: &Expr, values: &[(Var, Expr)]) -> Expr {
    e.rewrite(&mut |node| {
        let var = node.as_var()?;
        let of = values.iter().find(|(v, _)| *v == var);
        of.map(|(_, value)| value.clone())
    })
}
