//! Operators on run-time values: promotion, constant folding, located type errors.

use tilewright_ir::expr_build::{self, TypeError};
use tilewright_ir::small_float::{self, Number};
use tilewright_ir::{BinOp, DType, Diagnostic, Expr, ExprKind, MathFn, Scalar, Span, UnOp};

use crate::codes;
use crate::record::Recorder;
use crate::value::Value;
use crate::{Error, Result};

impl Recorder {
    /// `a op b` on any two values: Python values stay Python values, run-time values follow the
    /// promotion rules, constants are folded.
    pub fn binary(&mut self, op: BinOp, a: &Value, b: &Value, span: Span) -> Result<Value> {
        if let Some(value) = fold_python(op, a, b) {
            return value.ok_or_else(|| {
                let message = format!("`{}` has no result on these numbers", op_text(op));
                self.error(codes::PYTHON_ERROR, span, message).into()
            });
        }
        let a = self.to_expr(a, span)?;
        let b = self.to_expr(b, span)?;
        Ok(Value::Expr(self.binary_expr(op, a, b, span)?))
    }

    /// `a op b` on run-time values.
    pub fn binary_expr(&self, op: BinOp, a: Expr, b: Expr, span: Span) -> Result<Expr> {
        let (ta, tb) = (a.dtype(), b.dtype());
        // Constants take the common type at once, so that `x * 2` holds no cast.
        let (a, b) = match tilewright_ir::dtype::promote(ta, tb) {
            Some(common) => (fold_cast(a, common), fold_cast(b, common)),
            None => (a, b),
        };
        let result =
            expr_build::binary(op, a, b).map_err(|e| self.type_error(op_text(op), e, span))?;
        self.checked(fold(result).with_span(span), span)
    }

    /// `-x`, which the language defines as `x * -1`.
    pub fn negate(&self, x: Expr, span: Span) -> Result<Expr> {
        let dtype = x.dtype();
        if dtype.scalar == Scalar::Bool || dtype.scalar == Scalar::Handle {
            return Err(self
                .error(
                    codes::OPERAND_TYPES,
                    span,
                    format!("`-` is not defined on {dtype}"),
                )
                .into());
        }
        if let Some(v) = x.as_float() {
            return Ok(Expr::float(-v, dtype).with_span(span));
        }
        let minus_one = if dtype.scalar.is_float() {
            Expr::float(-1.0, dtype)
        } else {
            Expr::int(-1, dtype)
        };
        self.binary_expr(BinOp::Mul, x, minus_one, span)
    }

    /// `~x` of an integer or bool.
    pub fn invert(&self, x: Expr, span: Span) -> Result<Expr> {
        let dtype = x.dtype();
        let op = match dtype.scalar {
            Scalar::Bool => UnOp::Not,
            s if s.is_int() => UnOp::BitNot,
            _ => {
                return Err(self
                    .error(
                        codes::OPERAND_TYPES,
                        span,
                        format!("`~` is not defined on {dtype}"),
                    )
                    .into());
            }
        };
        Ok(fold(Expr::new(ExprKind::Unary(op, x), dtype, span)))
    }

    /// `not x` of a bool.
    pub fn logical_not(&self, x: Expr, span: Span) -> Result<Expr> {
        let dtype = x.dtype();
        if dtype.scalar != Scalar::Bool {
            return Err(self
                .error(
                    codes::OPERAND_TYPES,
                    span,
                    format!("`not` needs a bool, this is {dtype}"),
                )
                .help("compare first: `x == 0`")
                .into());
        }
        Ok(fold(Expr::new(ExprKind::Unary(UnOp::Not, x), dtype, span)))
    }

    /// `value` converted to `dtype`; constants are converted now where that is exact.
    pub fn cast_expr(&self, value: Expr, dtype: DType, span: Span) -> Result<Expr> {
        if value.dtype() == dtype {
            return Ok(value);
        }
        let folded = fold_cast(value, dtype);
        if folded.dtype() == dtype {
            return Ok(folded);
        }
        let cast = expr_build::cast(folded, dtype).map_err(|e| self.type_error("cast", e, span))?;
        Ok(cast.with_span(span))
    }

    /// `then` where `cond` holds, else `otherwise`; only the chosen one is evaluated.
    pub fn if_then_else(
        &self,
        cond: Expr,
        then: Expr,
        otherwise: Expr,
        span: Span,
    ) -> Result<Expr> {
        self.choose(true, cond, then, otherwise, span)
    }

    /// As [`Recorder::if_then_else`], but `lazy` says whether only the chosen arm is evaluated.
    pub fn choose(
        &self,
        lazy: bool,
        cond: Expr,
        then: Expr,
        otherwise: Expr,
        span: Span,
    ) -> Result<Expr> {
        let (then, otherwise) = match tilewright_ir::dtype::promote(then.dtype(), otherwise.dtype())
        {
            Some(common) => (fold_cast(then, common), fold_cast(otherwise, common)),
            None => (then, otherwise),
        };
        let result = expr_build::select(lazy, cond, then, otherwise)
            .map_err(|e| self.type_error("if_then_else", e, span))?;
        self.checked(result.with_span(span), span)
    }

    /// A mathematical function on floats.
    pub fn math(&self, f: MathFn, args: Vec<Expr>, span: Span) -> Result<Expr> {
        if let Some(bad) = args.iter().find(|a| !a.dtype().scalar.is_float()) {
            return Err(self
                .error(
                    codes::OPERAND_TYPES,
                    span,
                    format!("`{}` needs a float, this is {}", f.name(), bad.dtype()),
                )
                .help("cast it first: `T.cast(x, T.float32)`")
                .into());
        }
        self.checked(Expr::math(f, args).with_span(span), span)
    }

    /// A value as a condition: bool as it is, an integer as `x != 0`.
    pub fn condition(&self, value: &Value, span: Span) -> Result<Expr> {
        if let Value::Buffer(b) = value
            && self.buffer(*b).scope != tilewright_ir::Scope::Var
        {
            return Err(self
                .error(
                    codes::CONDITION,
                    span,
                    format!("{} is a buffer, not a condition", self.buffer_name(*b)),
                )
                .help("compare an element of it")
                .into());
        }
        let expr = self.to_expr(value, span)?;
        let dtype = expr.dtype();
        match dtype.scalar {
            Scalar::Bool => Ok(expr),
            s if s.is_int() => self.binary_expr(BinOp::Ne, expr, Expr::int(0, dtype), span),
            _ => Err(self
                .error(
                    codes::CONDITION,
                    span,
                    format!("a condition must be bool, this is {dtype}"),
                )
                .help("compare it: `x != 0.0`")
                .into()),
        }
    }

    pub(crate) fn type_error(&self, what: &str, error: TypeError, span: Span) -> Error {
        let message = if error.message.contains(what) {
            error.message
        } else {
            format!("`{what}`: {}", error.message)
        };
        let mut d = Diagnostic::error(codes::OPERAND_TYPES, span, message);
        if let Some(help) = error.help {
            d = d.help(help);
        }
        d.into()
    }
}

/// The operation on two Python numbers; the inner `None` is a failure such as a division by
/// zero.
fn fold_python(op: BinOp, a: &Value, b: &Value) -> Option<Option<Value>> {
    let compare = op.is_comparison();
    if let (Some(x), Some(y)) = (a.as_int(), b.as_int()) {
        if op == BinOp::Div {
            return Some((y != 0).then(|| Value::Float(x as f64 / y as f64)));
        }
        let folded = fold_ints(op, x, y);
        return Some(folded.map(|v| match compare || op.is_logical() {
            true => Value::Bool(v != 0),
            false => Value::Int(v),
        }));
    }
    let (x, y) = (a.as_float()?, b.as_float()?);
    Some(Some(match op {
        BinOp::Add => Value::Float(x + y),
        BinOp::Sub => Value::Float(x - y),
        BinOp::Mul => Value::Float(x * y),
        BinOp::Div if y != 0.0 => Value::Float(x / y),
        BinOp::Min => Value::Float(x.min(y)),
        BinOp::Max => Value::Float(x.max(y)),
        BinOp::Eq => Value::Bool(x == y),
        BinOp::Ne => Value::Bool(x != y),
        BinOp::Lt => Value::Bool(x < y),
        BinOp::Le => Value::Bool(x <= y),
        BinOp::Gt => Value::Bool(x > y),
        BinOp::Ge => Value::Bool(x >= y),
        _ => return Some(None),
    }))
}

/// The operator as the user writes it.
pub fn op_text(op: BinOp) -> &'static str {
    match op {
        BinOp::Add => "+",
        BinOp::Sub => "-",
        BinOp::Mul => "*",
        BinOp::Div => "/",
        BinOp::FloorDiv => "//",
        BinOp::FloorMod => "%",
        BinOp::TruncDiv => "T.truncdiv",
        BinOp::TruncMod => "T.truncmod",
        BinOp::Min => "T.min",
        BinOp::Max => "T.max",
        BinOp::BitAnd => "&",
        BinOp::BitOr => "|",
        BinOp::BitXor => "^",
        BinOp::Shl => "<<",
        BinOp::Shr => ">>",
        BinOp::LogicalAnd => "and",
        BinOp::LogicalOr => "or",
        BinOp::Eq => "==",
        BinOp::Ne => "!=",
        BinOp::Lt => "<",
        BinOp::Le => "<=",
        BinOp::Gt => ">",
        BinOp::Ge => ">=",
    }
}

/// A constant in another type, converted as a cast would; anything else unchanged.
pub fn fold_cast(e: Expr, dtype: DType) -> Expr {
    if e.dtype() == dtype || e.dtype().lanes != 1 || dtype.scalar == Scalar::Handle {
        return e;
    }
    let number = match (e.as_int(), e.as_float()) {
        (Some(v), _) => Number::Int(v),
        (_, Some(f)) => Number::Float(f),
        _ => return e,
    };
    constant(number, dtype).with_span(e.span())
}

/// The constant of a type that a number converts to.
pub fn constant(number: Number, dtype: DType) -> Expr {
    match small_float::convert(dtype.scalar, number) {
        Number::Int(v) => Expr::int(v, dtype),
        Number::Float(f) => Expr::float(f, dtype),
    }
}

/// Folds integer operations on constants; wraps at the type, as the kernel would.
fn fold(e: Expr) -> Expr {
    let dtype = e.dtype();
    let value = match e.kind() {
        ExprKind::Binary(op, a, b) => match (a.as_int(), b.as_int()) {
            (Some(x), Some(y)) => fold_ints(*op, x, y),
            _ => return simplify_units(e),
        },
        ExprKind::Unary(UnOp::Not, a) => a.as_int().map(|x| i128::from(x == 0)),
        ExprKind::Unary(UnOp::BitNot, a) => a.as_int().map(|x| !x),
        _ => None,
    };
    match value {
        Some(v) if dtype.lanes == 1 => Expr::int(v, dtype),
        _ => e,
    }
}

/// `x + 0`, `x - 0`, `x * 1`, `x // 1` of integers are `x`: index arithmetic of factories is
/// full of them.
fn simplify_units(e: Expr) -> Expr {
    let ExprKind::Binary(op, a, b) = e.kind() else {
        return e;
    };
    if !e.dtype().scalar.is_int() || e.dtype().lanes != 1 {
        return e;
    }
    match op {
        BinOp::Add if a.is_int(0) => b.clone(),
        BinOp::Add | BinOp::Sub if b.is_int(0) => a.clone(),
        BinOp::Mul if a.is_int(1) => b.clone(),
        BinOp::Mul | BinOp::FloorDiv if b.is_int(1) => a.clone(),
        _ => e,
    }
}

fn fold_ints(op: BinOp, x: i128, y: i128) -> Option<i128> {
    Some(match op {
        BinOp::Add => x.checked_add(y)?,
        BinOp::Sub => x.checked_sub(y)?,
        BinOp::Mul => x.checked_mul(y)?,
        BinOp::FloorDiv => floor_div(x, y)?,
        BinOp::FloorMod => x.checked_sub(floor_div(x, y)?.checked_mul(y)?)?,
        BinOp::TruncDiv => x.checked_div(y)?,
        BinOp::TruncMod => x.checked_rem(y)?,
        BinOp::Min => x.min(y),
        BinOp::Max => x.max(y),
        BinOp::BitAnd => x & y,
        BinOp::BitOr => x | y,
        BinOp::BitXor => x ^ y,
        BinOp::Shl => x.checked_shl(u32::try_from(y).ok()?)?,
        BinOp::Shr => x.checked_shr(u32::try_from(y).ok()?)?,
        BinOp::LogicalAnd => i128::from(x != 0 && y != 0),
        BinOp::LogicalOr => i128::from(x != 0 || y != 0),
        BinOp::Eq => i128::from(x == y),
        BinOp::Ne => i128::from(x != y),
        BinOp::Lt => i128::from(x < y),
        BinOp::Le => i128::from(x <= y),
        BinOp::Gt => i128::from(x > y),
        BinOp::Ge => i128::from(x >= y),
        BinOp::Div => return None,
    })
}

/// Division rounding down, as Python's `//`.
pub fn floor_div(x: i128, y: i128) -> Option<i128> {
    let q = x.checked_div(y)?;
    Some(if x % y != 0 && (x < 0) != (y < 0) {
        q - 1
    } else {
        q
    })
}
