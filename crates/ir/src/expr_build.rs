//! Typed construction of expressions.
//!
//! Two ways in: the checked functions ([`binary`], [`cast`], [`select`]) return a [`TypeError`]
//! for the front end to locate, and the operators (`a + b`) that Rust users and passes write.
//! An operator on types that do not mix builds the node unconverted; the verifier reports it.
//! Nothing is folded here: `arith` simplifies.

use std::fmt;
use std::ops;

use crate::diag::Span;
use crate::dtype::{DType, Scalar, promote};
use crate::expr::{BinOp, Expr, ExprKind, F64, MathFn, UnOp};
use crate::ids::{Buffer, Var};

/// Why an operation has no meaning on its operands' types.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeError {
    pub message: String,
    pub help: Option<String>,
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl TypeError {
    fn new(message: impl Into<String>) -> TypeError {
        TypeError {
            message: message.into(),
            help: None,
        }
    }

    fn help(mut self, help: impl Into<String>) -> TypeError {
        self.help = Some(help.into());
        self
    }
}

impl Expr {
    /// An integer or bool constant; the value is wrapped into the type's range.
    pub fn int(value: i128, dtype: DType) -> Expr {
        let e = Expr::new(
            ExprKind::Int(dtype.scalar.wrap(value)),
            dtype.with_lanes(1),
            Span::NONE,
        );
        e.broadcast(dtype.lanes)
    }

    pub fn i32(value: i32) -> Expr {
        Expr::int(value as i128, DType::I32)
    }

    pub fn bool(value: bool) -> Expr {
        Expr::int(value as i128, DType::BOOL)
    }

    /// A float constant, as given: round it to the type first where that matters.
    pub fn float(value: f64, dtype: DType) -> Expr {
        let e = Expr::new(ExprKind::Float(F64(value)), dtype.with_lanes(1), Span::NONE);
        e.broadcast(dtype.lanes)
    }

    /// Zero of any arithmetic type.
    pub fn zero(dtype: DType) -> Expr {
        if dtype.scalar.is_float() {
            Expr::float(0.0, dtype)
        } else {
            Expr::int(0, dtype)
        }
    }

    pub fn var(var: Var, dtype: DType) -> Expr {
        Expr::new(ExprKind::Var(var), dtype, Span::NONE)
    }

    /// An element load; `dtype` is the buffer's element type.
    pub fn load(buffer: Buffer, indices: Vec<Expr>, dtype: DType) -> Expr {
        let lanes = indices.last().map_or(1, |i| i.dtype().lanes);
        let dtype = dtype.with_lanes(dtype.lanes.saturating_mul(lanes));
        Expr::new(ExprKind::Load { buffer, indices }, dtype, Span::NONE)
    }

    /// The operation on operands that already have one type.
    pub fn bin(op: BinOp, a: Expr, b: Expr) -> Expr {
        let dtype = op.result(a.dtype());
        let span = a.span().to(b.span());
        Expr::new(ExprKind::Binary(op, a, b), dtype, span)
    }

    pub fn math(f: MathFn, args: Vec<Expr>) -> Expr {
        let arg = args.first().map_or(DType::F32, Expr::dtype);
        let dtype = if f.is_predicate() {
            DType::BOOL.with_lanes(arg.lanes)
        } else {
            arg
        };
        let span = args.iter().fold(Span::NONE, |s, a| s.to(a.span()));
        Expr::new(ExprKind::Math(f, args), dtype, span)
    }

    /// Conversion; the identity when the type is the same already.
    pub fn cast_to(self, dtype: DType) -> Expr {
        if self.dtype() == dtype {
            return self;
        }
        let span = self.span();
        if self.dtype().lanes == 1 && dtype.lanes > 1 {
            return self.cast_to(dtype.with_lanes(1)).broadcast(dtype.lanes);
        }
        Expr::new(ExprKind::Cast(self), dtype, span)
    }

    pub fn reinterpret_as(self, dtype: DType) -> Expr {
        let span = self.span();
        Expr::new(ExprKind::Reinterpret(self), dtype, span)
    }

    /// The scalar in `lanes` lanes; one lane changes nothing.
    pub fn broadcast(self, lanes: u16) -> Expr {
        if lanes == 1 {
            return self;
        }
        let (dtype, span) = (self.dtype().with_lanes(lanes), self.span());
        Expr::new(ExprKind::Broadcast(self), dtype, span)
    }

    pub fn floor_div(self, other: impl IntoOperand) -> Expr {
        infix(BinOp::FloorDiv, self, other)
    }

    pub fn floor_mod(self, other: impl IntoOperand) -> Expr {
        infix(BinOp::FloorMod, self, other)
    }

    /// `(self + other - 1) // other`, right for positive divisors.
    pub fn ceil_div(self, other: impl IntoOperand) -> Expr {
        let other = other.operand(self.dtype());
        (self + (other.clone() - 1)).floor_div(other)
    }

    pub fn min(self, other: impl IntoOperand) -> Expr {
        infix(BinOp::Min, self, other)
    }

    pub fn max(self, other: impl IntoOperand) -> Expr {
        infix(BinOp::Max, self, other)
    }

    pub fn lt(self, other: impl IntoOperand) -> Expr {
        infix(BinOp::Lt, self, other)
    }

    pub fn le(self, other: impl IntoOperand) -> Expr {
        infix(BinOp::Le, self, other)
    }

    pub fn gt(self, other: impl IntoOperand) -> Expr {
        infix(BinOp::Gt, self, other)
    }

    pub fn ge(self, other: impl IntoOperand) -> Expr {
        infix(BinOp::Ge, self, other)
    }

    pub fn equal(self, other: impl IntoOperand) -> Expr {
        infix(BinOp::Eq, self, other)
    }

    pub fn and(self, other: Expr) -> Expr {
        infix(BinOp::LogicalAnd, self, other)
    }

    pub fn or(self, other: Expr) -> Expr {
        infix(BinOp::LogicalOr, self, other)
    }
}

/// What may stand beside an [`Expr`]: another one, or a literal that takes its type.
pub trait IntoOperand {
    fn operand(self, beside: DType) -> Expr;
}

impl IntoOperand for Expr {
    fn operand(self, _: DType) -> Expr {
        self
    }
}

impl IntoOperand for &Expr {
    fn operand(self, _: DType) -> Expr {
        self.clone()
    }
}

macro_rules! int_operands {
    ($($t:ty)*) => {$(
        impl IntoOperand for $t {
            /// An integer literal takes the other side's type.
            fn operand(self, beside: DType) -> Expr {
                if beside.scalar.is_float() {
                    Expr::float(self as f64, beside)
                } else {
                    Expr::int(self as i128, beside)
                }
            }
        }
    )*};
}
int_operands!(i32 i64 u32 usize);

impl IntoOperand for f64 {
    /// A float literal takes the other side's float type, else float32.
    fn operand(self, beside: DType) -> Expr {
        if beside.scalar.is_float() {
            Expr::float(self, beside)
        } else {
            Expr::float(self, DType::F32)
        }
    }
}

fn infix(op: BinOp, a: Expr, b: impl IntoOperand) -> Expr {
    let b = b.operand(a.dtype());
    match unify(&a, &b) {
        Some((a, b)) => Expr::bin(op, a, b),
        None => Expr::bin(op, a, b),
    }
}

/// Both operands in their common type.
fn unify(a: &Expr, b: &Expr) -> Option<(Expr, Expr)> {
    let common = promote(a.dtype(), b.dtype())?;
    Some((a.clone().cast_to(common), b.clone().cast_to(common)))
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident;)*) => {$(
        impl<R: IntoOperand> ops::$trait<R> for Expr {
            type Output = Expr;
            fn $method(self, rhs: R) -> Expr {
                infix(BinOp::$op, self, rhs)
            }
        }
        impl<R: IntoOperand> ops::$trait<R> for &Expr {
            type Output = Expr;
            fn $method(self, rhs: R) -> Expr {
                infix(BinOp::$op, self.clone(), rhs)
            }
        }
    )*};
}
operators! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    Div div Div;
    Rem rem FloorMod;
    BitAnd bitand BitAnd;
    BitOr bitor BitOr;
    BitXor bitxor BitXor;
    Shl shl Shl;
    Shr shr Shr;
}

impl ops::Not for Expr {
    type Output = Expr;

    /// The logical complement of a bool.
    fn not(self) -> Expr {
        let (dtype, span) = (self.dtype(), self.span());
        Expr::new(ExprKind::Unary(UnOp::Not, self), dtype, span)
    }
}

/// `a op b` with the language's promotion, or why it has no meaning.
pub fn binary(op: BinOp, a: Expr, b: Expr) -> Result<Expr, TypeError> {
    let (ta, tb) = (a.dtype(), b.dtype());
    let Some((a, b)) = unify(&a, &b) else {
        return Err(TypeError::new(format!("{ta} and {tb} have no common type"))
            .help("cast one side, for example with `T.cast`"));
    };
    let s = a.dtype().scalar;
    let refuse = |what: &str| {
        Err(TypeError::new(format!(
            "{what} is not defined on {ta} and {tb}"
        )))
    };
    match op {
        BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Min | BinOp::Max => {
            if s == Scalar::Handle {
                return refuse("arithmetic");
            }
        }
        BinOp::Div if !s.is_float() => {
            return Err(TypeError::new(format!("`/` on {ta} and {tb} is ambiguous"))
                .help("write `//` for floor division, `T.truncdiv`, or cast to a float first"));
        }
        BinOp::FloorDiv | BinOp::FloorMod | BinOp::TruncDiv | BinOp::TruncMod => {
            if !s.is_int() {
                return Err(TypeError::new(format!(
                    "integer division is not defined on {ta} and {tb}"
                ))
                .help("use `/` and `T.floor`, or `T.fmod`, on floats"));
            }
            if b.is_int(0) {
                return Err(TypeError::new("division by the constant zero")
                    .help("check where the divisor comes from"));
            }
        }
        BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor => {
            if !s.is_int() && s != Scalar::Bool {
                return refuse("a bitwise operation").map_err(|e: TypeError| {
                    e.help("use integers or bools; `T.reinterpret` gives the bits of a float")
                });
            }
        }
        BinOp::Shl | BinOp::Shr => {
            if !s.is_int() {
                return refuse("a shift").map_err(|e: TypeError| {
                    e.help("shift integers; `T.reinterpret` gives the bits of a float")
                });
            }
            if let Some(amount) = b.as_int()
                && !(0..s.bits() as i128).contains(&amount)
            {
                return Err(TypeError::new(format!(
                    "shift of {} by {amount}: the amount must be in 0..{}",
                    a.dtype(),
                    s.bits()
                ))
                .help("shift by less than the width of the type, or cast to a wider one"));
            }
        }
        BinOp::LogicalAnd | BinOp::LogicalOr => {
            if s != Scalar::Bool {
                return Err(TypeError::new(format!(
                    "`and`/`or` need bool operands, these are {ta} and {tb}"
                ))
                .help("compare first: `x != 0`"));
            }
        }
        BinOp::Div | BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => {}
    }
    Ok(Expr::bin(op, a, b))
}

/// `value` as `dtype`, or why there is no such conversion.
pub fn cast(value: Expr, dtype: DType) -> Result<Expr, TypeError> {
    let from = value.dtype();
    if from == dtype {
        return Ok(value);
    }
    if (from.scalar == Scalar::Handle) != (dtype.scalar == Scalar::Handle) {
        return Err(TypeError::new(format!("{from} cannot be cast to {dtype}")));
    }
    if from.lanes != dtype.lanes && from.lanes != 1 {
        return Err(TypeError::new(format!(
            "{from} cannot be cast to {dtype}: the lane counts differ"
        )));
    }
    Ok(value.cast_to(dtype))
}

/// `then` or `otherwise` by a bool; lazily when `lazy`.
pub fn select(lazy: bool, cond: Expr, then: Expr, otherwise: Expr) -> Result<Expr, TypeError> {
    if cond.dtype().scalar != Scalar::Bool {
        return Err(TypeError::new(format!(
            "the condition must be bool, it is {}",
            cond.dtype()
        ))
        .help("compare first: `x != 0`"));
    }
    let (tt, to) = (then.dtype(), otherwise.dtype());
    let Some((then, otherwise)) = unify(&then, &otherwise) else {
        return Err(TypeError::new(format!("{tt} and {to} have no common type")));
    };
    let dtype = then.dtype();
    let span = cond.span().to(otherwise.span());
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
    Ok(Expr::new(kind, dtype, span))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_take_the_operands_type() {
        let h = Expr::var(Var::from_u32(0), DType::F16);
        let e = binary(BinOp::Mul, h.clone(), Expr::float(2.0, DType::F32));
        assert_eq!(e.map(|e| e.dtype()), Ok(DType::F32));
        assert_eq!((h * 2).dtype(), DType::F16);
    }

    #[test]
    fn meaningless_operations_are_refused() {
        let i = Expr::i32(1);
        let f = Expr::float(1.0, DType::F32);
        for (op, a, b) in [
            (BinOp::Div, &i, &i),
            (BinOp::FloorDiv, &f, &f),
            (BinOp::FloorDiv, &i, &Expr::i32(0)),
            (BinOp::Shl, &i, &Expr::i32(32)),
            (BinOp::LogicalAnd, &i, &i),
            (BinOp::BitAnd, &f, &i),
        ] {
            assert!(binary(op, a.clone(), b.clone()).is_err(), "{op:?}");
        }
    }
}
