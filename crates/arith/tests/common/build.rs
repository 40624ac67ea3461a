//! Nodes as they are, and expressions as text for failure messages.

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

/// An expression as text, for failure messages.
pub fn show(e: &Expr) -> String {
    let t = e.dtype().scalar.name();
    match e.kind() {
        ExprKind::Int(v) => format!("{v}"),
        ExprKind::Var(v) => format!("{v}"),
        ExprKind::Unary(op, a) => format!("{op:?}({})", show(a)),
        ExprKind::Cast(a) => format!("{t}({})", show(a)),
        ExprKind::Select {
            cond,
            then,
            otherwise,
        } => {
            format!(
                "select({}, {}, {})",
                show(cond),
                show(then),
                show(otherwise)
            )
        }
        ExprKind::IfThenElse {
            cond,
            then,
            otherwise,
        } => {
            format!("if({}, {}, {})", show(cond), show(then), show(otherwise))
        }
        ExprKind::Binary(op, a, b) => {
            let word = match op {
                BinOp::Add => "+",
                BinOp::Sub => "-",
                BinOp::Mul => "*",
                BinOp::FloorDiv => "//",
                BinOp::FloorMod => "%",
                BinOp::BitAnd => "&",
                BinOp::BitOr => "|",
                BinOp::BitXor => "^",
                BinOp::Shl => "<<",
                BinOp::Shr => ">>",
                BinOp::Eq => "==",
                BinOp::Ne => "!=",
                BinOp::Lt => "<",
                BinOp::Le => "<=",
                BinOp::Gt => ">",
                BinOp::Ge => ">=",
                BinOp::LogicalAnd => "&&",
                BinOp::LogicalOr => "||",
                _ => return format!("{op:?}({}, {})", show(a), show(b)),
            };
            format!("({} {word} {})", show(a), show(b))
        }
        _ => format!("{e:?}"),
    }
}
