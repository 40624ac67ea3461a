//! How long a SIMD's vector unit computes for a wave, read off statements.
//!
//! Instructions of floats and comparisons are counted; a product that is added to is one with the sum.
//! What makes indices is constant once loops are written out.

use tilewright_ir::visit::child_blocks;
use tilewright_ir::{BinOp, Expr, ExprKind, Stmt, StmtKind, ThreadOp, Var};

/// Cycles of a vector instruction (`docs/amd-cycles.md`: measured).
const PLAIN: u64 = 4;
/// Of an operation that one instruction does two of: the larger of three values, two values made narrower.
const PAIR: u64 = PLAIN / 2;
/// Of a mathematical function (the same: that of gfx950).
const FUNCTION: u64 = 8;
/// Of a value of another lane, which takes instructions to bring it there.
const EXCHANGE: u64 = 3 * PLAIN;

/// The cycles of a statement.
pub(super) fn cycles(stmt: &Stmt) -> u64 {
    within(stmt, &mut Vec::new())
}

/// The same inside of loops over so many points.
fn within(stmt: &Stmt, around: &mut Vec<(Var, u64)>) -> u64 {
    let outside = around.len();
    if let StmtKind::For(l) = &stmt.kind {
        let points = l
            .axes
            .iter()
            .map(|a| (a.var, a.const_trip_count().unwrap_or(1)));
        around.extend(points);
    }
    let inside = child_blocks(stmt);
    let blocks = inside.iter().map(|block| {
        let cycles = block.iter().map(|stmt| within(stmt, around));
        cycles.sum::<u64>()
    });
    let blocks: Vec<u64> = blocks.collect();
    let cycles = match &stmt.kind {
        // All waves may take either way.
        StmtKind::If { .. } => blocks.iter().copied().max().unwrap_or(0),
        StmtKind::Store { value, .. } => of_expr(value, around),
        StmtKind::Let { value, .. } => of_expr(value, around),
        StmtKind::Thread(ThreadOp::Shuffle { .. }) => {
            EXCHANGE * around.iter().map(|(_, points)| points).product::<u64>()
        }
        _ => blocks.iter().sum(),
    };
    around.truncate(outside);
    cycles
}

/// What is the same at all points of a loop is computed once.
fn of_expr(e: &Expr, around: &[(Var, u64)]) -> u64 {
    let mut sum = 0;
    e.walk(&mut |node| {
        let cycles = of_node(node);
        if cycles > 0 {
            let differs = around.iter().filter(|(var, _)| mentions(node, *var));
            sum += cycles * differs.map(|(_, points)| points).product::<u64>();
        }
    });
    sum
}

fn mentions(e: &Expr, var: Var) -> bool {
    let mut found = false;
    e.walk(&mut |node| found |= node.as_var() == Some(var));
    found
}

fn of_node(node: &Expr) -> u64 {
    let is_product = |e: &Expr| matches!(e.kind(), ExprKind::Binary(BinOp::Mul, ..));
    let float = node.dtype().scalar.is_float();
    match node.kind() {
        ExprKind::Binary(BinOp::Add | BinOp::Sub, a, b) if float => {
            match is_product(a) || is_product(b) {
                true => 0,
                false => PLAIN,
            }
        }
        ExprKind::Binary(BinOp::Max | BinOp::Min, ..) if float => PAIR,
        ExprKind::Binary(op, ..) if float || op.is_comparison() => PLAIN,
        ExprKind::Cast(_) if float && node.dtype().bits() < 32 => PAIR,
        ExprKind::Select { .. } | ExprKind::IfThenElse { .. } | ExprKind::Cast(_) if float => PLAIN,
        ExprKind::Math(..) if float => FUNCTION,
        _ => 0,
    }
}
