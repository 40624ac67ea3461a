//! Tensor types and what declares the signature: `Tensor`, `StridedTensor`, `const`,
//! `dynamic`, `empty`, `dtype`, `ptr`.

use std::any::Any;
use std::rc::Rc;

use tilewright_ir::{DType, Expr};

use crate::Result;
use crate::codes;
use crate::lang::{CallArgs, LangFn, Ty, kw, opt, req, rest};
use crate::record::Recorder;
use crate::value::{Object, Value};

pub(super) static FNS: &[LangFn] = &[
    LangFn::with_subscript("Tensor", TENSOR, tensor),
    LangFn::with_subscript("Buffer", TENSOR, tensor),
    LangFn::with_subscript(
        "StridedTensor",
        &[
            req("shape", Ty::Shape),
            req("strides", Ty::Shape),
            opt("dtype", Ty::DType),
        ],
        tensor,
    ),
    LangFn::new("const", &[req("names", Ty::Str)], |rec, args| {
        let names = args.str("names").unwrap_or_default().to_string();
        rec.declare_consts(&names, args.span())
    }),
    LangFn::new("dynamic", DYNAMIC, dynamic),
    LangFn::new("symbolic", DYNAMIC, dynamic),
    LangFn::new(
        "empty",
        &[rest("shape", Ty::Any), kw("dtype", Ty::DType)],
        empty,
    ),
    LangFn::new("dtype", DTYPE, dtype),
    LangFn::new("DataType", DTYPE, dtype),
    LangFn::with_subscript(
        "ptr",
        &[opt("dtype", Ty::DType), opt("scope", Ty::Str)],
        |_, _| Ok(Value::DType(DType::HANDLE)),
    ),
    // Annotations of macro parameters; they say how an argument is passed.
    LangFn::with_subscript("Ref", &[rest("args", Ty::Any)], |_, _| Ok(Value::None)),
    LangFn::with_subscript("Var", &[rest("args", Ty::Any)], |_, _| Ok(Value::None)),
];

const TENSOR: &[crate::lang::ParamSpec] = &[
    req("shape", Ty::Shape),
    opt("dtype", Ty::DType),
    opt("data", Ty::Scalar),
    kw("strides", Ty::Shape),
    kw("scope", Ty::Str),
];

const DTYPE: &[crate::lang::ParamSpec] = &[req("name", Ty::DType)];
const DYNAMIC: &[crate::lang::ParamSpec] = &[req("names", Ty::Str), opt("dtype", Ty::DType)];

/// The type of a tensor parameter.
#[derive(Debug)]
pub struct TensorType {
    pub shape: Vec<Expr>,
    pub strides: Option<Vec<Expr>>,
    pub dtype: DType,
}

impl Object for TensorType {
    fn type_name(&self) -> &'static str {
        "a tensor type"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn tensor(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let shape = args.shape(rec, "shape")?;
    let dtype = args.dtype(rec, "dtype")?.unwrap_or(DType::F32);
    let strides = match args.has("strides") {
        true => Some(args.shape(rec, "strides")?),
        false => None,
    };
    if strides.as_ref().is_some_and(|s| s.len() != shape.len()) {
        return Err(rec
            .error(
                codes::SHAPE,
                args.span_of("strides"),
                "a tensor has one stride a dimension",
            )
            .into());
    }
    if args.is_param("data") && args.has("data") {
        return super::views::tensor_at(rec, args, shape, strides, dtype);
    }
    Ok(Value::Object(Rc::new(TensorType {
        shape,
        strides,
        dtype,
    })))
}

fn dtype(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let dtype = rec.to_dtype(args.required("name"), args.span_of("name"))?;
    Ok(Value::DType(dtype))
}

fn dynamic(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let names = args.str("names").unwrap_or_default().to_string();
    let dtype = args.dtype(rec, "dtype")?.unwrap_or(DType::I32);
    rec.declare_symbols(&names, dtype, args.span())
}

/// `T.empty(shape, dtype)`, `T.empty(m, n, dtype=…)`
fn empty(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let mut dtype = args.dtype(rec, "dtype")?;
    let shape = match args.rest() {
        [shape, given] if shape.value.sequence().is_some() && dtype.is_none() => {
            dtype = Some(rec.to_dtype(&given.value, given.span)?);
            rec.to_shape(&shape.value, shape.span)?
        }
        [shape] if shape.value.sequence().is_some() => rec.to_shape(&shape.value, shape.span)?,
        dims => {
            let dims = dims.iter().map(|d| d.value.clone()).collect();
            rec.to_shape(&Value::tuple(dims), args.span())?
        }
    };
    if shape.is_empty() {
        let message = "an output needs at least one dimension";
        return Err(rec.error(codes::SHAPE, args.span(), message).into());
    }
    rec.declare_output(shape, dtype.unwrap_or(DType::F32), args.span())
}
