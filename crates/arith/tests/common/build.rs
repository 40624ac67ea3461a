//! Nodes as they are, with nothing converted or folded.

use tilewright_ir::{BinOp, DType, Expr, ExprKind};

pub fn bin(op: BinOp, a: Expr, b: Expr) -> Expr {
    Expr::bin(op, a, b)
}

pub fn cast(a: Expr, dtype: DType) -> Expr {
    let span = a.span();
    Expr::new(ExprKind::Cast(a), dtype, span)
}

pub fn choose(lazy: bool, cond: Expr, then: Expr, otherwise: Expr) -> Expr {
    let dtype = then.dtype();
    let kind = if lazy {
        ExprKind::IfThenElse {
            cond,
            then,
            otherwise,
        }
    } else {
        ExprKind::Select {
            cond,
            then,
            otherwise,
        }
    };
    Expr::new(kind, dtype, tilewright_ir::Span::NONE)
}
