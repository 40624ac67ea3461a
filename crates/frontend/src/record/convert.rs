//! Python values to IR: scalars, dtypes, shapes, tile operands.

use std::rc::Rc;

use tilewright_ir::small_float::Number;
use tilewright_ir::{Buffer, DType, Expr, Region, RegionDim, Scalar, Scope, Span};

use crate::codes;
use crate::lang::dtypes;
use crate::record::Recorder;
use crate::record::elsewhere;
use crate::record::ops::constant;
use crate::value::{AxisSpec, Dim, Element, Opaque, OpaqueReason, RegionValue, Value};
use crate::{Error, Result};

/// An operand of a tile operation.
#[derive(Clone, Debug)]
pub enum Tile {
    Buffer(Buffer),
    Region(Rc<RegionValue>),
    /// A start point, whose extents the other operand gives.
    Element(Rc<Element>),
}

impl Tile {
    pub fn buffer(&self) -> Buffer {
        match self {
            Tile::Buffer(b) => *b,
            Tile::Region(r) => r.region.buffer,
            Tile::Element(e) => e.buffer,
        }
    }

    /// The extents that the operand itself states; none for a start point.
    pub fn extents(&self, rec: &Recorder) -> Option<Vec<Expr>> {
        match self {
            Tile::Buffer(b) => Some(rec.buffer(*b).shape.clone()),
            Tile::Region(r) => Some(r.region.dims.iter().map(|d| d.extent.clone()).collect()),
            Tile::Element(_) => None,
        }
    }

    /// The region as written; a start point has extents one.
    pub fn region(&self, rec: &Recorder) -> Region {
        match self {
            Tile::Buffer(b) => Region::whole(*b, rec.buffer(*b)),
            Tile::Region(r) => r.region.clone(),
            Tile::Element(e) => Region {
                buffer: e.buffer,
                dims: e
                    .indices
                    .iter()
                    .map(|start| RegionDim {
                        start: start.clone(),
                        extent: Expr::int(1, start.dtype()),
                    })
                    .collect(),
            },
        }
    }
}

impl Recorder {
    /// The value as a run-time scalar: ints become int32 (int64 when they need it), floats
    /// float32, elements are loaded.
    pub fn to_expr(&self, value: &Value, span: Span) -> Result<Expr> {
        match value {
            Value::Bool(b) => Ok(Expr::bool(*b).with_span(span)),
            Value::Int(v) | Value::Dim(Dim { value: v, .. }) => self.int_expr(*v, span),
            Value::Float(f) => Ok(float_expr(*f).with_span(span)),
            Value::Expr(e) => Ok(e.clone()),
            Value::Element(e) => self.load(e),
            Value::Buffer(b) if self.buffer(*b).scope == Scope::Var => {
                let dtype = self.buffer(*b).dtype;
                Ok(Expr::load(*b, Vec::new(), dtype).with_span(span))
            }
            Value::Buffer(b) => Err(self
                .error(
                    codes::WRONG_TYPE,
                    span,
                    format!("{} is a whole buffer, not one value", self.buffer_name(*b)),
                )
                .help("index an element of it, or use a tile operation such as `T.copy`")
                .into()),
            Value::Region(r) => Err(self
                .error(
                    codes::WRONG_TYPE,
                    span,
                    format!(
                        "a region of {} is not one value",
                        self.buffer_name(r.region.buffer)
                    ),
                )
                .help("index one element inside `T.Parallel`, or use a tile operation")
                .into()),
            Value::Loop(spec) => match &**spec {
                crate::value::LoopSpec::Bound(indices) if indices.len() == 1 => {
                    Ok(indices[0].clone())
                }
                _ => Err(self.wrong_type("a number", value, span)),
            },
            Value::Host(object) => match object.number() {
                Some(number) => self.to_expr(&number, span),
                None => Err(self.wrong_type("a number", value, span)),
            },
            _ => Err(self.wrong_type("a number", value, span)),
        }
    }

    /// The value as a scalar of this type. Literals take the type; other values are cast.
    pub fn to_expr_as(&self, value: &Value, dtype: DType, span: Span) -> Result<Expr> {
        if let Value::Host(object) = value
            && let Some(number) = object.number()
        {
            return self.to_expr_as(&number, dtype, span);
        }
        let number = match value {
            Value::Float(f) => Some(Number::Float(*f)),
            _ => value.as_int().map(Number::Int),
        };
        if let Some(number) = number
            && dtype.scalar != Scalar::Handle
        {
            return Ok(constant(number, dtype).with_span(span));
        }
        let expr = self.to_expr(value, span)?;
        self.cast_expr(expr, dtype, span)
    }

    /// A literal of the language: int32, or int64 outside its range.
    pub fn int_expr(&self, value: i128, span: Span) -> Result<Expr> {
        let dtype = [DType::I32, DType::I64, DType::U64]
            .into_iter()
            .find(|d| in_range(d.scalar, value));
        match dtype {
            Some(dtype) => Ok(Expr::int(value, dtype).with_span(span)),
            None => Err(self
                .error(
                    codes::INT_OVERFLOW,
                    span,
                    format!("{value} does not fit a 64-bit integer"),
                )
                .into()),
        }
    }

    /// The element's value at the place it is read.
    pub(crate) fn load(&self, element: &Element) -> Result<Expr> {
        let data = self.buffer(element.buffer);
        match data.scope {
            Scope::Barrier => Err(self
                .error(
                    codes::BUFFER_SCOPE,
                    element.span,
                    format!(
                        "{} is a barrier and holds no data",
                        self.buffer_name(element.buffer)
                    ),
                )
                .help("use `T.mbarrier_wait_parity` and `T.mbarrier_arrive` on it")
                .into()),
            Scope::Tmem => Err(self
                .error(
                    codes::BUFFER_SCOPE,
                    element.span,
                    format!(
                        "{} is tensor memory and has no readable elements",
                        self.buffer_name(element.buffer)
                    ),
                )
                .help("copy it into a fragment first")
                .into()),
            Scope::Global
            | Scope::Shared
            | Scope::Fragment
            | Scope::Local
            | Scope::Var
            | Scope::Reducer => {
                let load = Expr::load(element.buffer, element.indices.clone(), data.dtype);
                Ok(load.with_span(element.span))
            }
        }
    }

    /// A compile-time int; `what` names it in the message.
    pub fn to_int(&self, value: &Value, span: Span, what: &str) -> Result<i128> {
        if let Some(v) = value.as_int() {
            return Ok(v);
        }
        if let Value::Expr(e) = value
            && let Some(v) = self.const_int(e)
        {
            return Ok(v);
        }
        if let Value::Host(object) = value
            && let Some(v) = object.number().and_then(|number| number.as_int())
        {
            return Ok(v);
        }
        let message = if value.is_runtime() {
            format!("{what} must be known at compile time")
        } else {
            format!("{what} must be an int, this is {}", value.type_name())
        };
        Err(self.error(codes::WRONG_TYPE, span, message).into())
    }

    pub fn to_dtype(&self, value: &Value, span: Span) -> Result<DType> {
        match value {
            Value::DType(d) => Ok(*d),
            Value::Str(name) => dtypes::from_name(name).ok_or_else(|| {
                let mut d = self.error(
                    codes::WRONG_VALUE,
                    span,
                    format!("`{name}` is not the name of a dtype"),
                );
                if let Some(near) = tilewright_ir::nearest::suggestion(name, dtypes::names()) {
                    d = d.help(near);
                }
                Error::from(d)
            }),
            Value::Builtin(b) => {
                dtypes::of_builtin(b.0.name).ok_or_else(|| self.wrong_type("a dtype", value, span))
            }
            Value::Lang(f) if f.name == "ptr" => Ok(DType::HANDLE),
            Value::Host(object) => object
                .dtype()
                .ok_or_else(|| self.wrong_type("a dtype", value, span)),
            Value::Opaque(o) => {
                // `torch.float16` names the same type.
                let last = o.name.rsplit('.').next().unwrap_or_default();
                dtypes::from_name(last).ok_or_else(|| self.wrong_type("a dtype", value, span))
            }
            _ => Err(self.wrong_type("a dtype", value, span)),
        }
    }

    /// A shape: a tuple or list of extents, or one extent.
    pub fn to_shape(&mut self, value: &Value, span: Span) -> Result<Vec<Expr>> {
        let items = match (value.sequence(), value) {
            (Some(items), _) => items,
            (None, _) => vec![value.clone()],
        };
        let mut shape = Vec::with_capacity(items.len());
        for item in &items {
            if let Value::Dim(dim) = item {
                self.signature.seen_dims.insert(dim.id);
            }
            if let Value::Float(f) = item {
                return Err(self
                    .error(
                        codes::WRONG_TYPE,
                        span,
                        format!("an extent must be an int, this is the float {f}"),
                    )
                    .help("divide with `//`")
                    .into());
            }
            let extent = self.to_expr(item, span)?;
            if !extent.dtype().scalar.is_int() {
                return Err(self
                    .error(
                        codes::WRONG_TYPE,
                        span,
                        format!("an extent must be an integer, this is {}", extent.dtype()),
                    )
                    .into());
            }
            if let Some(v) = self.const_int(&extent) {
                if v <= 0 {
                    return Err(self
                        .error(
                            codes::NON_POSITIVE,
                            span,
                            format!("an extent must be positive, this is {v}"),
                        )
                        .into());
                }
                shape.push(self.int_expr(v, span)?);
            } else {
                shape.push(extent);
            }
        }
        Ok(shape)
    }

    /// An operand of a tile operation: a buffer, a region, or an element as start point.
    pub fn to_tile(&self, value: &Value, span: Span) -> Result<Tile> {
        match value {
            Value::Buffer(b) => Ok(Tile::Buffer(*b)),
            Value::Region(r) => Ok(Tile::Region(r.clone())),
            Value::Element(e) => Ok(Tile::Element(e.clone())),
            // A name that stands for an element can still be a start point.
            Value::Expr(e) => match e.as_var().and_then(|v| self.let_elements.get(&v)) {
                Some(element) => Ok(Tile::Element(element.clone())),
                None => Err(self.wrong_type("a buffer, a region or an element", value, span)),
            },
            _ => Err(self.wrong_type("a buffer, a region or an element", value, span)),
        }
    }

    /// `(stop)`, `(start, stop)` or `(start, stop, step)` as an axis of a loop.
    pub fn axis(&mut self, bounds: &[Value], span: Span) -> Result<AxisSpec> {
        let mut exprs = Vec::with_capacity(3);
        for bound in bounds {
            let e = self.to_expr(bound, span)?;
            if !e.dtype().scalar.is_int() {
                return Err(self
                    .error(
                        codes::BAD_LOOP,
                        span,
                        format!("a loop bound must be an integer, this is {}", e.dtype()),
                    )
                    .into());
            }
            exprs.push(e);
        }
        let common = exprs
            .iter()
            .map(Expr::dtype)
            .reduce(|a, b| tilewright_ir::dtype::promote(a, b).unwrap_or(a))
            .unwrap_or(DType::I32);
        let mut exprs = exprs
            .into_iter()
            .map(|e| self.cast_expr(e, common, span))
            .collect::<Result<Vec<_>>>()?
            .into_iter();
        let zero = Expr::int(0, common);
        let one = Expr::int(1, common);
        let (start, stop, step) = match (exprs.next(), exprs.next(), exprs.next()) {
            (Some(stop), None, None) => (zero, stop, one),
            (Some(start), Some(stop), None) => (start, stop, one),
            (Some(start), Some(stop), Some(step)) => (start, stop, step),
            _ => {
                return Err(self
                    .error(codes::BAD_LOOP, span, "a loop without a bound")
                    .into());
            }
        };
        if step.is_int(0) {
            return Err(self
                .error(codes::BAD_LOOP, span, "a loop with step zero")
                .into());
        }
        Ok(AxisSpec { start, stop, step })
    }

    /// "expected …, this is …", with a hint where the mistake is a known one.
    pub fn wrong_type(&self, expected: &str, value: &Value, span: Span) -> Error {
        if let Value::Opaque(o) = value {
            return self.opaque_error(o, span);
        }
        if let Some(error) = self.unnamed_indices(value, span) {
            return error;
        }
        self.error(
            codes::WRONG_TYPE,
            span,
            format!("expected {expected}, this is {}", self.what_is(value)),
        )
        .into()
    }

    /// A grid of several dimensions that one name was bound to, used as one index.
    pub(crate) fn unnamed_indices(&self, value: &Value, span: Span) -> Option<Error> {
        let Value::Tuple(items) = value else {
            return None;
        };
        let grid = &self.kernel.as_ref()?.grid;
        let is_index = |v: &Value| match v {
            Value::Expr(e) => e
                .as_var()
                .is_some_and(|v| grid.iter().any(|(g, _)| *g == v)),
            _ => false,
        };
        if items.is_empty() || !items.iter().all(is_index) {
            return None;
        }
        let names = ["bx", "by", "bz"];
        let names = names.get(..grid.len()).unwrap_or(&names).join(", ");
        let message = format!(
            "the grid has {} dimensions, and this name stands for all their indices",
            grid.len()
        );
        let error = self.error(codes::WRONG_TYPE, span, message);
        Some(
            error
                .help(format!("write `with T.Kernel(...) as ({names})`"))
                .into(),
        )
    }

    /// Python's truth of a compile-time value.
    pub(crate) fn truth(&self, value: &Value, span: Span) -> Result<bool> {
        Ok(match value {
            Value::None => false,
            Value::Bool(_) | Value::Int(_) | Value::Dim(_) => value.as_int() != Some(0),
            Value::Float(f) => *f != 0.0,
            Value::Str(s) => !s.is_empty(),
            Value::Tuple(items) => !items.is_empty(),
            Value::List(items) => !items.borrow().is_empty(),
            Value::Dict(items) | Value::Set(items) => !items.borrow().is_empty(),
            Value::Range(r) => !r.is_empty(),
            Value::Expr(e) => match e.as_int() {
                Some(v) => v != 0,
                None => return Err(self.not_python_bool(span)),
            },
            Value::Element(_) | Value::Ref(_) | Value::Region(_) => {
                return Err(self.not_python_bool(span));
            }
            Value::Buffer(b) => {
                return Err(self
                    .error(
                        codes::CONDITION,
                        span,
                        format!("{} is a buffer, not a condition", self.buffer_name(*b)),
                    )
                    .help("compare an element of it, or write `is not None`")
                    .into());
            }
            Value::Opaque(o) => return Err(self.opaque_error(o, span)),
            Value::Host(object) => object.truth(span)?,
            Value::Ellipsis
            | Value::Slice(_)
            | Value::DType(_)
            | Value::Loop(_)
            | Value::Frame(_)
            | Value::Object(_)
            | Value::Function(_)
            | Value::Staged(_)
            | Value::Decorator(_)
            | Value::Builtin(_)
            | Value::Method(_)
            | Value::Lang(_)
            | Value::Module(_)
            | Value::Class(_) => true,
        })
    }

    fn not_python_bool(&self, span: Span) -> Error {
        self.error(
            codes::CONDITION,
            span,
            "this value is known at run time only, and a Python value is needed here",
        )
        .into()
    }

    /// Whether an operator on the value is recorded.
    pub(crate) fn is_ir_operand(&self, value: &Value) -> bool {
        match value {
            Value::Expr(_) | Value::Element(_) | Value::Buffer(_) | Value::Region(_) => true,
            Value::Loop(spec) => matches!(**spec, crate::value::LoopSpec::Bound(_)),
            _ => false,
        }
    }

    /// What messages call a value.
    pub(crate) fn what_is(&self, value: &Value) -> String {
        match value {
            Value::Host(object) => format!("a Python object of the type `{}`", object.class()),
            other => other.type_name().to_string(),
        }
    }

    pub(crate) fn opaque_error(&self, o: &Opaque, span: Span) -> Error {
        match o.reason {
            OpaqueReason::ForeignModule => self
                .error(
                    codes::OPAQUE_VALUE,
                    span,
                    format!("`{}` exists only in a running Python", o.name),
                )
                .help(
                    match self.in_kernel() {
                        true => elsewhere::function(&o.name),
                        false => None,
                    }
                    .unwrap_or_else(|| {
                        "pass its value as a parameter of the factory and set it with `--set`"
                            .to_string()
                    }),
                ),
            OpaqueReason::Tensor => self
                .error(
                    codes::PARAM_ANNOTATION,
                    span,
                    format!(
                        "the parameter `{}` is used before its shape is stated",
                        o.name
                    ),
                )
                .help(format!(
                    "annotate it first: `{}: T.Tensor[[M, N], T.float16]`, or give it a value \
                     with `--set {}=…`",
                    o.name, o.name
                )),
        }
        .into()
    }
}

/// A literal of the language: float32, or float64 when float32 has no such magnitude.
pub fn float_expr(value: f64) -> Expr {
    let single = value as f32;
    if single.is_infinite() && value.is_finite() {
        Expr::float(value, DType::F64)
    } else {
        Expr::float(f64::from(single), DType::F32)
    }
}

fn in_range(scalar: Scalar, value: i128) -> bool {
    scalar
        .int_range()
        .is_some_and(|(lo, hi)| (lo..=hi).contains(&value))
}
