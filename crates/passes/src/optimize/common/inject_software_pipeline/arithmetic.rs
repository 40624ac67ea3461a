//! How long a SIMD's vector unit computes for a wave, read off statements.
//!
//! Instructions of floats and comparisons are counted; a product that is added to is one with the sum.
//! What makes indices is constant once loops are written out.

use tilewright_ir::visit::child_blocks;
use tilewright_ir::{BinOp, Expr, ExprKind, Stmt, StmtKind, ThreadOp};

/// Cycles of a vector instruction (`docs/amd-cycles.md`: measured).
pub(super) const PLAIN: u64 = 4;
/// Of a mathematical function (the same: that of gfx950).
const FUNCTION: u64 = 8;
/// Of a value of another lane, which takes instructions to bring it there.
const EXCHANGE: u64 = 3 * PLAIN;

/// The cycles of a statement.
pub(super) fn cycles(stmt: &Stmt) -> u64 {
    let inside = child_blocks(stmt);
    let blocks = inside.iter().map(|block| block.iter().map(cycles).sum());
    match &stmt.kind {
        StmtKind::For(l) => {
            let axes = l.axes.iter().map(|a| a.const_trip_count().unwrap_or(1));
            axes.product::<u64>() * blocks.sum::<u64>()
        }
        // All waves may take either way.
        StmtKind::If { .. } => blocks.max().unwrap_or(0),
        StmtKind::Store { value, .. } => of_expr(value),
        StmtKind::Let { value, .. } => of_expr(value),
        StmtKind::Thread(ThreadOp::Shuffle { .. }) => EXCHANGE,
        _ => blocks.sum(),
    }
}

fn of_expr(e: &Expr) -> u64 {
    let mut sum = 0;
    e.walk(&mut |node| sum += of_node(node));
    sum
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
        ExprKind::Binary(op, ..) if float || op.is_comparison() => PLAIN,
        ExprKind::Select { .. } | ExprKind::IfThenElse { .. } | ExprKind::Cast(_) if float => PLAIN,
        ExprKind::Math(..) if float => FUNCTION,
        _ => 0,
    }
}
