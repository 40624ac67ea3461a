//! An evaluator that shares no code with the crate under test: it computes with unbounded
//! integers and reduces after every operation.

use tilewright_ir::{BinOp, Expr, ExprKind, Scalar, UnOp, Var};

/// The representative of `value` modulo `2^bits` in the range of the type.
fn reduce(value: i128, scalar: Scalar) -> i128 {
    if scalar == Scalar::Bool {
        return (value != 0) as i128;
    }
    let bits = scalar.bits();
    let m = value.rem_euclid(1 << bits);
    if scalar.is_signed_int() && m >= 1 << (bits - 1) {
        m - (1 << bits)
    } else {
        m
    }
}

/// The value of a scalar integer or bool expression, or `None` where it is undefined.
pub fn eval(e: &Expr, value_of: &dyn Fn(Var) -> i128) -> Option<i128> {
    let scalar = e.dtype().scalar;
    let value = match e.kind() {
        ExprKind::Int(v) => *v,
        ExprKind::Var(v) => value_of(*v),
        ExprKind::Unary(UnOp::Not, a) => 1 - eval(a, value_of)?,
        ExprKind::Unary(UnOp::BitNot, a) => -1 - eval(a, value_of)?,
        ExprKind::Cast(a) => eval(a, value_of)?,
        ExprKind::Select {
            cond,
            then,
            otherwise,
        } => {
            let (c, t, o) = (
                eval(cond, value_of)?,
                eval(then, value_of)?,
                eval(otherwise, value_of)?,
            );
            if c != 0 { t } else { o }
        }
        ExprKind::IfThenElse {
            cond,
            then,
            otherwise,
        } => {
            let arm = if eval(cond, value_of)? != 0 {
                then
            } else {
                otherwise
            };
            eval(arm, value_of)?
        }
        ExprKind::Binary(BinOp::LogicalAnd, a, b) => match eval(a, value_of)? {
            0 => 0,
            _ => eval(b, value_of)?,
        },
        ExprKind::Binary(BinOp::LogicalOr, a, b) => match eval(a, value_of)? {
            0 => eval(b, value_of)?,
            _ => 1,
        },
        ExprKind::Binary(op, a, b) => {
            let bits = a.dtype().scalar.bits() as i128;
            let (a, b) = (eval(a, value_of)?, eval(b, value_of)?);
            match op {
                BinOp::Add => a + b,
                BinOp::Sub => a - b,
                BinOp::Mul => a.wrapping_mul(b),
                BinOp::FloorDiv => whole(a, b)?.0,
                BinOp::FloorMod => whole(a, b)?.1,
                BinOp::TruncDiv => a.checked_div(b)?,
                BinOp::TruncMod => a.checked_rem(b)?,
                BinOp::Min => a.min(b),
                BinOp::Max => a.max(b),
                BinOp::BitAnd => a & b,
                BinOp::BitOr => a | b,
                BinOp::BitXor => a ^ b,
                BinOp::Shl if (0..bits).contains(&b) => a << b,
                BinOp::Shr if (0..bits).contains(&b) => a >> b,
                BinOp::Shl | BinOp::Shr => return None,
                BinOp::Eq => (a == b) as i128,
                BinOp::Ne => (a != b) as i128,
                BinOp::Lt => (a < b) as i128,
                BinOp::Le => (a <= b) as i128,
                BinOp::Gt => (a > b) as i128,
                BinOp::Ge => (a >= b) as i128,
                BinOp::Div | BinOp::LogicalAnd | BinOp::LogicalOr => return None,
            }
        }
        _ => return None,
    };
    Some(reduce(value, scalar))
}

/// Quotient rounded down and the remainder that belongs to it.
fn whole(a: i128, b: i128) -> Option<(i128, i128)> {
    if b == 0 {
        return None;
    }
    let (mut q, mut r) = (a / b, a % b);
    if r != 0 && (r > 0) != (b > 0) {
        q -= 1;
        r += b;
    }
    Some((q, r))
}
