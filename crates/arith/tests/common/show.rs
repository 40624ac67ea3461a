//! Expressions as text, for failure messages.

use tilewright_ir::{BinOp, Expr, ExprKind};

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
