//! Operators on Python values.

use tilewright_ir::{BinOp as IrOp, Expr, Span};

use crate::codes;
use crate::eval::Stage;
use crate::record::ops::floor_div;
use crate::syntax::ast::{BinOp, UnaryOp};
use crate::value::Value;
use crate::{Error, Result};

impl Stage {
    /// `a op b` as written in the source, on values of any kind.
    pub(crate) fn binop(&mut self, op: BinOp, a: &Value, b: &Value, span: Span) -> Result<Value> {
        if let (Some(x), Some(y)) = (a.as_int(), b.as_int()) {
            // `|`, `&` and `^` of two bools stay bools.
            if let (Value::Bool(x), Value::Bool(y)) = (a, b) {
                match op {
                    BinOp::BitOr => return Ok(Value::Bool(x | y)),
                    BinOp::BitAnd => return Ok(Value::Bool(x & y)),
                    BinOp::BitXor => return Ok(Value::Bool(x ^ y)),
                    _ => {}
                }
            }
            return self.int_op(op, x, y, span);
        }
        if let (Some(x), Some(y)) = (a.as_float(), b.as_float()) {
            return self.float_op(op, x, y, span);
        }
        if matches!(a, Value::Host(_)) || matches!(b, Value::Host(_)) {
            return self.host_binop(op, a, b, span);
        }
        if self.rec.is_ir_operand(a) || self.rec.is_ir_operand(b) {
            return self.operator(op, a, b, span);
        }
        // A dtype is its name beside text.
        match (op, a, b) {
            (BinOp::Add, Value::DType(d), Value::Str(_)) => {
                self.container_op(op, &Value::str(d.to_string()), b, span)
            }
            (BinOp::Add, Value::Str(_), Value::DType(d)) => {
                self.container_op(op, a, &Value::str(d.to_string()), span)
            }
            _ => self.container_op(op, a, b, span),
        }
    }

    /// A binary operator as written in the source.
    pub(crate) fn operator(
        &mut self,
        op: BinOp,
        a: &Value,
        b: &Value,
        span: Span,
    ) -> Result<Value> {
        let ir_op = match op {
            BinOp::Add => IrOp::Add,
            BinOp::Sub => IrOp::Sub,
            BinOp::Mul => IrOp::Mul,
            BinOp::Div => IrOp::Div,
            BinOp::FloorDiv => IrOp::FloorDiv,
            BinOp::Mod => IrOp::FloorMod,
            BinOp::Shl => IrOp::Shl,
            BinOp::Shr => IrOp::Shr,
            BinOp::BitOr => IrOp::BitOr,
            BinOp::BitXor => IrOp::BitXor,
            BinOp::BitAnd => IrOp::BitAnd,
            BinOp::Pow | BinOp::MatMul => {
                let help = match op {
                    BinOp::Pow => "write `T.pow(x, n)`",
                    _ => "write `T.gemm(A, B, C)`",
                };
                return Err(self
                    .error(
                        codes::OPERAND_TYPES,
                        span,
                        format!("`{}` is not defined on run-time values", op.text()),
                    )
                    .help(help)
                    .into());
            }
        };
        let a = self.operand(a, op.text(), span)?;
        let b = self.operand(b, op.text(), span)?;
        Ok(Value::Expr(self.rec.binary_expr(ir_op, a, b, span)?))
    }

    fn operand(&self, value: &Value, op: &str, span: Span) -> Result<Expr> {
        self.rec.to_expr(value, span).map_err(|mut e| {
            let named = matches!(value, Value::Buffer(_) | Value::Region(_));
            if e.code == codes::WRONG_TYPE
                && !named
                && self.rec.unnamed_indices(value, span).is_none()
            {
                e.message = format!(
                    "`{op}` is not defined on {} and a run-time value",
                    value.type_name()
                );
            }
            e
        })
    }

    fn int_op(&mut self, op: BinOp, x: i128, y: i128, span: Span) -> Result<Value> {
        let overflow = |stage: &Stage| -> Error {
            let message = format!("`{x} {} {y}` needs more than 127 bits", op.text());
            stage.error(codes::INT_OVERFLOW, span, message).into()
        };
        let by_zero = |stage: &Stage| -> Error {
            let message = format!("division by zero in `{x} {} {y}`", op.text());
            stage.error(codes::PYTHON_ERROR, span, message).into()
        };
        let value = match op {
            BinOp::Add => x.checked_add(y),
            BinOp::Sub => x.checked_sub(y),
            BinOp::Mul => x.checked_mul(y),
            BinOp::Div if y == 0 => return Err(by_zero(self)),
            BinOp::Div => return Ok(Value::Float(x as f64 / y as f64)),
            BinOp::FloorDiv | BinOp::Mod if y == 0 => return Err(by_zero(self)),
            BinOp::FloorDiv => floor_div(x, y),
            BinOp::Mod => floor_div(x, y).and_then(|q| x.checked_sub(q.checked_mul(y)?)),
            BinOp::Pow if y < 0 && x == 0 => return Err(by_zero(self)),
            BinOp::Pow if y < 0 => return Ok(Value::Float((x as f64).powf(y as f64))),
            BinOp::Pow => u32::try_from(y).ok().and_then(|y| x.checked_pow(y)),
            BinOp::Shl | BinOp::Shr if y < 0 => {
                let message = format!("shift by the negative amount {y}");
                return Err(self.error(codes::PYTHON_ERROR, span, message).into());
            }
            BinOp::Shl => u32::try_from(y)
                .ok()
                .filter(|&s| s < 127)
                .and_then(|s| x.checked_mul(1i128 << s)),
            BinOp::Shr => Some(x >> y.min(127)),
            BinOp::BitOr => Some(x | y),
            BinOp::BitXor => Some(x ^ y),
            BinOp::BitAnd => Some(x & y),
            BinOp::MatMul => return Err(self.no_operator(op, "an int", "an int", span)),
        };
        value.map(Value::Int).ok_or_else(|| overflow(self))
    }

    fn float_op(&mut self, op: BinOp, x: f64, y: f64, span: Span) -> Result<Value> {
        if matches!(op, BinOp::Div | BinOp::FloorDiv | BinOp::Mod) && y == 0.0 {
            let message = format!("division by zero in `{x} {} {y}`", op.text());
            return Err(self.error(codes::PYTHON_ERROR, span, message).into());
        }
        Ok(Value::Float(match op {
            BinOp::Add => x + y,
            BinOp::Sub => x - y,
            BinOp::Mul => x * y,
            BinOp::Div => x / y,
            BinOp::FloorDiv => (x / y).floor(),
            BinOp::Mod => x - (x / y).floor() * y,
            BinOp::Pow => x.powf(y),
            _ => return Err(self.no_operator(op, "a float", "a number", span)),
        }))
    }

    fn container_op(&mut self, op: BinOp, a: &Value, b: &Value, span: Span) -> Result<Value> {
        match (op, a, b) {
            (BinOp::Add, Value::Str(x), Value::Str(y)) => {
                self.rec.check_items(x.len() + y.len(), span)?;
                Ok(Value::str(format!("{x}{y}")))
            }
            (BinOp::Add, Value::List(x), Value::List(y)) => {
                let mut items = x.borrow().clone();
                items.extend(y.borrow().iter().cloned());
                self.rec.check_items(items.len(), span)?;
                Ok(Value::list(items))
            }
            (BinOp::Add, Value::Tuple(x), Value::Tuple(y)) => {
                self.rec.check_items(x.len() + y.len(), span)?;
                Ok(Value::tuple(x.iter().chain(y.iter()).cloned().collect()))
            }
            (BinOp::Mul, Value::Str(_) | Value::List(_) | Value::Tuple(_), n)
                if n.as_int().is_some() =>
            {
                self.repeat(a, n.as_int().unwrap_or(0), span)
            }
            (BinOp::Mul, n, Value::Str(_) | Value::List(_) | Value::Tuple(_))
                if n.as_int().is_some() =>
            {
                self.repeat(b, n.as_int().unwrap_or(0), span)
            }
            (BinOp::BitOr, Value::Dict(x), Value::Dict(y)) => {
                let mut dict = x.borrow().clone();
                dict.extend(y.borrow().iter().map(|(k, v)| (k.clone(), v.clone())));
                self.rec.check_items(dict.len(), span)?;
                Ok(Value::Dict(std::rc::Rc::new(dict.into())))
            }
            (BinOp::Mod, Value::Str(format), args) => self.percent_format(format, args, span),
            // `int | None` in an annotation.
            (
                BinOp::BitOr,
                Value::Builtin(_) | Value::None | Value::DType(_),
                Value::Builtin(_) | Value::None | Value::DType(_),
            ) => Ok(Value::None),
            _ => {
                for value in [a, b] {
                    if let Value::Opaque(o) = value {
                        return Err(self.rec.opaque_error(o, span));
                    }
                }
                Err(self.no_operator(op, a.type_name(), b.type_name(), span))
            }
        }
    }

    fn repeat(&mut self, value: &Value, n: i128, span: Span) -> Result<Value> {
        if let Some(error) = self.rec.unnamed_indices(value, span) {
            return Err(error);
        }
        let n = usize::try_from(n.max(0)).unwrap_or(usize::MAX);
        let len = match value {
            Value::Str(s) => s.len(),
            Value::List(items) => items.borrow().len(),
            Value::Tuple(items) => items.len(),
            _ => 0,
        };
        self.rec.check_items(len.saturating_mul(n), span)?;
        Ok(match value {
            Value::Str(s) => Value::str(s.repeat(n)),
            Value::List(items) => {
                let items = items.borrow();
                Value::list(
                    std::iter::repeat_n(items.iter().cloned(), n)
                        .flatten()
                        .collect(),
                )
            }
            Value::Tuple(items) => Value::tuple(
                std::iter::repeat_n(items.iter().cloned(), n)
                    .flatten()
                    .collect(),
            ),
            _ => Value::None,
        })
    }

    fn no_operator(&self, op: BinOp, a: &str, b: &str, span: Span) -> Error {
        self.error(
            codes::OPERAND_TYPES,
            span,
            format!("`{}` is not defined on {a} and {b}", op.text()),
        )
        .into()
    }

    pub(crate) fn unary(&mut self, op: UnaryOp, value: &Value, span: Span) -> Result<Value> {
        if op == UnaryOp::Not {
            return match self.runtime_bool(value)? {
                Some(e) => Ok(self.python_bool(self.rec.logical_not(e, span)?)),
                None => Ok(Value::Bool(!self.rec.truth(value, span)?)),
            };
        }
        match (op, value) {
            (UnaryOp::Plus, Value::Float(_)) => Ok(value.clone()),
            (UnaryOp::Minus, Value::Float(f)) => Ok(Value::Float(-f)),
            _ if value.as_int().is_some() => {
                let v = value.as_int().unwrap_or(0);
                let result = match op {
                    UnaryOp::Plus => Some(v),
                    UnaryOp::Minus => v.checked_neg(),
                    UnaryOp::Invert | UnaryOp::Not => Some(!v),
                };
                result.map(Value::Int).ok_or_else(|| {
                    let message = "the integer needs more than 127 bits";
                    self.error(codes::INT_OVERFLOW, span, message).into()
                })
            }
            _ if self.rec.is_ir_operand(value) => {
                let expr = self.rec.to_expr(value, span)?;
                Ok(Value::Expr(match op {
                    UnaryOp::Plus => expr,
                    UnaryOp::Minus => self.rec.negate(expr, span)?,
                    UnaryOp::Invert | UnaryOp::Not => self.rec.invert(expr, span)?,
                }))
            }
            (_, Value::Opaque(o)) => Err(self.rec.opaque_error(o, span)),
            (_, Value::Host(_)) => self.host_unary(op, value, span),
            _ => Err(self
                .error(
                    codes::OPERAND_TYPES,
                    span,
                    format!("`{}` is not defined on {}", op.text(), value.type_name()),
                )
                .into()),
        }
    }
}
