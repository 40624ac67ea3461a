//! Truth, comparisons, `and` and `or`.

use std::cmp::Ordering;
use std::rc::Rc;

use tilewright_ir::{BinOp, Expr as IrExpr, Scope, Span};

use crate::Result;
use crate::codes;
use crate::eval::Stage;
use crate::lang::dtypes;
use crate::syntax::ast::{BoolOp, CmpOp, Expr};
use crate::value::Value;

impl Stage {
    /// The value as a run-time operand of `and`, `or`, `not`; `None` for Python values.
    pub(crate) fn runtime_bool(&self, value: &Value) -> Result<Option<IrExpr>> {
        match value {
            Value::Expr(e) if e.as_int().is_some() => Ok(None),
            Value::Expr(e) => Ok(Some(e.clone())),
            Value::Element(e) => Ok(Some(self.rec.load(e)?)),
            Value::Buffer(b) if self.rec.buffer(*b).scope == Scope::Var => {
                Ok(Some(self.rec.to_expr(value, self.rec.span)?))
            }
            _ => Ok(None),
        }
    }

    /// A constant run-time bool as a Python bool.
    pub(crate) fn python_bool(&self, e: IrExpr) -> Value {
        match e.as_int() {
            Some(v) if e.dtype() == tilewright_ir::DType::BOOL => Value::Bool(v != 0),
            _ => Value::Expr(e),
        }
    }

    /// `a and b`, `a or b`.
    ///
    /// A run-time left side makes a run-time operation. A Python left side decides: in a traced
    /// body it counts as its truth (so `3 or 7` is `True`), elsewhere as in Python.
    pub(crate) fn bool_op(&mut self, op: BoolOp, values: &[Expr], span: Span) -> Result<Value> {
        let Some((first, rest)) = values.split_first() else {
            return Ok(Value::None);
        };
        let mut left = self.eval(first)?;
        let mut left_span = first.span;
        for next in rest {
            if let Some(a) = self.runtime_bool(&left)? {
                let right = self.pure_arm(next)?;
                let b = match self.runtime_bool(&right)? {
                    Some(b) => b,
                    None => IrExpr::bool(self.rec.truth(&right, next.span)?).with_span(next.span),
                };
                // A constant right side decides or vanishes.
                let ir_op = match op {
                    BoolOp::And => BinOp::LogicalAnd,
                    BoolOp::Or => BinOp::LogicalOr,
                };
                let neutral = i128::from(op == BoolOp::And);
                left = if b.is_int(neutral) && a.dtype() == b.dtype() {
                    Value::Expr(a)
                } else {
                    Value::Expr(self.rec.binary_expr(ir_op, a, b, span)?)
                };
                left_span = span;
                continue;
            }
            let truth = self.rec.truth(&left, left_span)?;
            let decided = truth == (op == BoolOp::Or);
            if self.traced {
                left = Value::Bool(truth);
            }
            if decided {
                return Ok(left);
            }
            left = self.eval(next)?;
            left_span = next.span;
        }
        Ok(left)
    }

    /// `a < b <= c`: the conjunction of the pairs.
    pub(crate) fn compare_chain(
        &mut self,
        first: &Expr,
        rest: &[(CmpOp, Expr)],
        span: Span,
    ) -> Result<Value> {
        let mut left = self.eval(first)?;
        let mut runtime: Option<IrExpr> = None;
        for (op, right) in rest {
            let right = self.eval(right)?;
            let result = self.compare(*op, &left, &right, span)?;
            match self.runtime_bool(&result)? {
                Some(e) => {
                    runtime = Some(match runtime {
                        Some(before) => self.rec.binary_expr(BinOp::LogicalAnd, before, e, span)?,
                        None => e,
                    });
                }
                None if !self.rec.truth(&result, span)? => return Ok(Value::Bool(false)),
                None => {}
            }
            left = right;
        }
        Ok(runtime.map_or(Value::Bool(true), Value::Expr))
    }

    pub(crate) fn compare(&mut self, op: CmpOp, a: &Value, b: &Value, span: Span) -> Result<Value> {
        if matches!(a, Value::Host(_)) || matches!(b, Value::Host(_)) {
            let answer = match op {
                CmpOp::Is | CmpOp::IsNot => None,
                // A Python container knows how its items compare with an object.
                CmpOp::In | CmpOp::NotIn if !matches!(b, Value::Host(_)) => None,
                _ => Some(self.host_compare(op, a, b, span)?),
            };
            if let Some(answer) = answer {
                return Ok(answer);
            }
        }
        match op {
            CmpOp::Is => return Ok(Value::Bool(is_same(a, b))),
            CmpOp::IsNot => return Ok(Value::Bool(!is_same(a, b))),
            CmpOp::In | CmpOp::NotIn => {
                let found = self.contains(b, a, span)?;
                return Ok(Value::Bool(found == (op == CmpOp::In)));
            }
            CmpOp::Eq | CmpOp::Ne | CmpOp::Lt | CmpOp::Le | CmpOp::Gt | CmpOp::Ge => {}
        }
        if self.compares_at_runtime(a, b) {
            let ir_op = match op {
                CmpOp::Eq => BinOp::Eq,
                CmpOp::Ne => BinOp::Ne,
                CmpOp::Lt => BinOp::Lt,
                CmpOp::Le => BinOp::Le,
                CmpOp::Gt => BinOp::Gt,
                _ => BinOp::Ge,
            };
            let x = self.rec.to_expr(a, span)?;
            let y = self.rec.to_expr(b, span)?;
            let e = self.rec.binary_expr(ir_op, x, y, span)?;
            return Ok(self.python_bool(e));
        }
        match op {
            CmpOp::Eq => return Ok(Value::Bool(self.equal(a, b))),
            CmpOp::Ne => return Ok(Value::Bool(!self.equal(a, b))),
            _ => {}
        }
        let order = self.order(a, b, span, op.text())?;
        Ok(Value::Bool(match (op, order) {
            (_, None) => false,
            (CmpOp::Lt, Some(o)) => o == Ordering::Less,
            (CmpOp::Le, Some(o)) => o != Ordering::Greater,
            (CmpOp::Gt, Some(o)) => o == Ordering::Greater,
            (_, Some(o)) => o != Ordering::Less,
        }))
    }

    /// Whether a comparison involves a run-time number on one side and a number on the other.
    fn compares_at_runtime(&self, a: &Value, b: &Value) -> bool {
        let number = |v: &Value| self.is_runtime_number(v) || v.as_float().is_some();
        (self.is_runtime_number(a) && number(b)) || (self.is_runtime_number(b) && number(a))
    }

    fn is_runtime_number(&self, v: &Value) -> bool {
        match v {
            Value::Expr(_) | Value::Element(_) => true,
            Value::Buffer(b) => self.rec.buffer(*b).scope == Scope::Var,
            Value::Loop(spec) => matches!(**spec, crate::value::LoopSpec::Bound(_)),
            _ => false,
        }
    }

    /// Python equality of compile-time values; run-time expressions are equal when they are
    /// the same expression.
    pub(crate) fn equal(&self, a: &Value, b: &Value) -> bool {
        self.equal_within(a, b, MAX_COMPARE_DEPTH)
    }

    fn equal_within(&self, a: &Value, b: &Value, depth: u32) -> bool {
        let Some(depth) = depth.checked_sub(1) else {
            return false;
        };
        if let (Some(x), Some(y)) = (a.as_int(), b.as_int()) {
            return x == y;
        }
        if let (Some(x), Some(y)) = (a.as_float(), b.as_float()) {
            return x == y;
        }
        match (a, b) {
            (Value::Str(x), Value::Str(y)) => x == y,
            (Value::DType(x), Value::DType(y)) => x == y,
            (Value::DType(d), Value::Str(s)) | (Value::Str(s), Value::DType(d)) => {
                dtypes::from_name(s) == Some(*d)
            }
            (Value::Host(object), other) | (other, Value::Host(object)) => object.equals(other),
            (Value::DType(d), Value::Opaque(o)) | (Value::Opaque(o), Value::DType(d)) => {
                o.name.rsplit('.').next().and_then(dtypes::from_name) == Some(*d)
            }
            (Value::Tuple(x), Value::Tuple(y)) => self.all_equal(x, y, depth),
            (Value::List(x), Value::List(y)) => self.all_equal(&x.borrow(), &y.borrow(), depth),
            (Value::Dict(x), Value::Dict(y)) | (Value::Set(x), Value::Set(y)) => {
                let (x, y) = (x.borrow(), y.borrow());
                x.len() == y.len()
                    && x.iter().all(|(k, v)| {
                        y.get(k)
                            .is_some_and(|other| self.equal_within(&v.value, &other.value, depth))
                    })
            }
            (Value::Expr(x), Value::Expr(y)) => x == y,
            (Value::Range(x), Value::Range(y)) => {
                (x.start, x.stop, x.step) == (y.start, y.stop, y.step)
            }
            _ => is_same(a, b),
        }
    }

    fn all_equal(&self, x: &[Value], y: &[Value], depth: u32) -> bool {
        x.len() == y.len() && x.iter().zip(y).all(|(a, b)| self.equal_within(a, b, depth))
    }

    /// Python's order; `None` when a NaN is involved.
    pub(crate) fn order(
        &self,
        a: &Value,
        b: &Value,
        span: Span,
        op: &str,
    ) -> Result<Option<Ordering>> {
        self.order_within(a, b, span, op, MAX_COMPARE_DEPTH)
    }

    fn order_within(
        &self,
        a: &Value,
        b: &Value,
        span: Span,
        op: &str,
        depth: u32,
    ) -> Result<Option<Ordering>> {
        let Some(depth) = depth.checked_sub(1) else {
            return Ok(None);
        };
        if let (Some(x), Some(y)) = (a.as_int(), b.as_int()) {
            return Ok(Some(x.cmp(&y)));
        }
        if let (Some(x), Some(y)) = (a.as_float(), b.as_float()) {
            return Ok(x.partial_cmp(&y));
        }
        if let (Value::Str(x), Value::Str(y)) = (a, b) {
            return Ok(Some(x.cmp(y)));
        }
        let sequences = match (a, b) {
            (Value::Tuple(_), Value::Tuple(_)) | (Value::List(_), Value::List(_)) => {
                a.sequence().zip(b.sequence())
            }
            _ => None,
        };
        if let Some((x, y)) = sequences {
            for (p, q) in x.iter().zip(&y) {
                if !self.equal(p, q) {
                    return self.order_within(p, q, span, op, depth);
                }
            }
            return Ok(Some(x.len().cmp(&y.len())));
        }
        for value in [a, b] {
            if let Value::Opaque(o) = value {
                return Err(self.rec.opaque_error(o, span));
            }
        }
        Err(self
            .error(
                codes::OPERAND_TYPES,
                span,
                format!(
                    "`{op}` is not defined on {} and {}",
                    a.type_name(),
                    b.type_name()
                ),
            )
            .into())
    }

    /// `item in container`.
    fn contains(&mut self, container: &Value, item: &Value, span: Span) -> Result<bool> {
        match container {
            Value::DType(d) => match item {
                Value::Str(part) => Ok(d.to_string().contains(&**part)),
                _ => Err(self.rec.wrong_type("a string", item, span)),
            },
            Value::Str(text) => match item {
                Value::Str(part) => Ok(text.contains(&**part)),
                Value::DType(d) => Ok(text.contains(&d.to_string())),
                _ => Err(self.rec.wrong_type("a string", item, span)),
            },
            Value::Dict(items) | Value::Set(items) => {
                let key = self.hash(item, span)?;
                Ok(items.borrow().contains_key(&key))
            }
            Value::Range(r) => Ok(item.as_int().is_some_and(|v| {
                let offset = v - r.start;
                offset % r.step == 0 && (0..r.len()).contains(&(offset / r.step))
            })),
            _ => {
                let items = self.iterate(container, span)?;
                self.rec.charge(items.len() as u64, span)?;
                Ok(items.iter().any(|i| self.equal(i, item)))
            }
        }
    }
}

/// Levels of nested containers that a comparison looks at; a list may contain itself.
const MAX_COMPARE_DEPTH: u32 = 100;

/// Object identity, as far as values here have one.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::None, Value::None) | (Value::Ellipsis, Value::Ellipsis) => true,
        (Value::Bool(x), Value::Bool(y)) => x == y,
        (Value::Int(_) | Value::Dim(_), Value::Int(_) | Value::Dim(_)) => a.as_int() == b.as_int(),
        (Value::Str(x), Value::Str(y)) => x == y,
        (Value::DType(x), Value::DType(y)) => x == y,
        (Value::Buffer(x), Value::Buffer(y)) => x == y,
        (Value::Builtin(x), Value::Builtin(y)) => x == y,
        (Value::Module(x), Value::Module(y)) => x == y,
        (Value::Lang(x), Value::Lang(y)) => std::ptr::eq(*x, *y),
        (Value::List(x), Value::List(y)) => Rc::ptr_eq(x, y),
        (Value::Tuple(x), Value::Tuple(y)) => Rc::ptr_eq(x, y),
        (Value::Dict(x), Value::Dict(y)) | (Value::Set(x), Value::Set(y)) => Rc::ptr_eq(x, y),
        (Value::Function(x), Value::Function(y)) => Rc::ptr_eq(x, y),
        (Value::Staged(x), Value::Staged(y)) => Rc::ptr_eq(x, y),
        (Value::Object(x), Value::Object(y)) => std::ptr::addr_eq(Rc::as_ptr(x), Rc::as_ptr(y)),
        (Value::Expr(x), Value::Expr(y)) => x.same_node(y),
        (Value::Opaque(x), Value::Opaque(y)) => x.name == y.name,
        (Value::Host(x), Value::Host(y)) => x.is(&**y),
        _ => false,
    }
}
