//! Extreme values of types: `T.infinity`, `T.max_value`, `T.min_value`, and the values that
//! reductions start from.

use tilewright_ir::{DType, Expr, ReduceKind, Scalar};

use super::{CallArgs, LangFn, Ty, func, req};
use crate::record::Recorder;
use crate::value::Value;
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func("infinity", &[req("dtype", Ty::DType)], infinity),
    func("max_value", &[req("dtype", Ty::DType)], |rec, args| {
        limit(rec, args, "T.max_value", true)
    }),
    func("min_value", &[req("dtype", Ty::DType)], |rec, args| {
        limit(rec, args, "T.min_value", false)
    }),
];

fn infinity(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let dtype = super::required_dtype(rec, args, "dtype")?;
    if dtype.is_scalar() && has_infinity(dtype.scalar) {
        return Ok(Value::Expr(
            Expr::float(f64::INFINITY, dtype).with_span(args.span()),
        ));
    }
    let mut error = rec.error(
        codes::NO_INFINITY,
        args.span(),
        format!("{dtype} has no infinity"),
    );
    if largest(dtype.scalar).is_some() {
        error = error.help(format!(
            "use `T.max_value(\"{dtype}\")` or `T.min_value(\"{dtype}\")`"
        ));
    }
    Err(error.into())
}

fn limit(rec: &mut Recorder, args: &CallArgs, what: &str, upper: bool) -> Result<Value> {
    let dtype = super::required_dtype(rec, args, "dtype")?;
    let value = if upper {
        largest(dtype.scalar)
    } else {
        smallest(dtype.scalar)
    };
    match value {
        Some(number) if dtype.is_scalar() => {
            Ok(Value::Expr(number.expr(dtype).with_span(args.span())))
        }
        _ => Err(rec
            .error(
                codes::WRONG_VALUE,
                args.span(),
                format!("{what} is not defined for {dtype}"),
            )
            .help("use the type of one element")
            .into()),
    }
}

/// A constant of either kind.
#[derive(Clone, Copy, Debug)]
enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    fn expr(self, dtype: DType) -> Expr {
        match self {
            Number::Int(v) => Expr::int(v, dtype),
            Number::Float(v) => Expr::float(v, dtype),
        }
    }
}

pub fn has_infinity(s: Scalar) -> bool {
    matches!(
        s,
        Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64 | Scalar::TF32 | Scalar::F8E5M2
    )
}

/// The largest finite value.
fn largest(s: Scalar) -> Option<Number> {
    if let Some((_, hi)) = s.int_range() {
        return Some(Number::Int(hi));
    }
    Some(Number::Float(match s {
        Scalar::F16 => 65504.0,
        // The largest bfloat16 has the exponent of float32 and seven bits of fraction.
        Scalar::BF16 => f64::from(f32::from_bits(0x7F7F_0000)),
        Scalar::F32 | Scalar::TF32 => f64::from(f32::MAX),
        Scalar::F64 => f64::MAX,
        Scalar::F8E4M3FN => 448.0,
        Scalar::F8E4M3FNUZ => 240.0,
        Scalar::F8E5M2 | Scalar::F8E5M2FNUZ => 57344.0,
        Scalar::F8E8M0 => 2f64.powi(127),
        Scalar::F6E2M3 => 7.5,
        Scalar::F6E3M2 => 28.0,
        Scalar::F4E2M1 => 6.0,
        _ => return None,
    }))
}

/// The smallest finite value. The scale type has no sign; its smallest is its least power.
fn smallest(s: Scalar) -> Option<Number> {
    if let Some((lo, _)) = s.int_range() {
        return Some(Number::Int(lo));
    }
    match (s, largest(s)?) {
        (Scalar::F8E8M0, _) => Some(Number::Float(2f64.powi(-127))),
        (_, Number::Float(v)) => Some(Number::Float(-v)),
        (_, Number::Int(_)) => None,
    }
}

/// What a reduction starts from: folding it in changes nothing. `None` for types that the
/// reduction is not defined on.
pub fn identity(kind: ReduceKind, dtype: DType) -> Option<Expr> {
    let s = dtype.scalar;
    if s == Scalar::Handle || !dtype.is_scalar() {
        return None;
    }
    let number = match kind {
        ReduceKind::Sum | ReduceKind::AbsSum | ReduceKind::AbsMax => {
            return Some(Expr::zero(dtype));
        }
        ReduceKind::Max if has_infinity(s) => Number::Float(f64::NEG_INFINITY),
        ReduceKind::Min if has_infinity(s) => Number::Float(f64::INFINITY),
        ReduceKind::Max => smallest(s)?,
        ReduceKind::Min => largest(s)?,
        ReduceKind::BitAnd | ReduceKind::BitOr | ReduceKind::BitXor if s.is_float() => return None,
        ReduceKind::BitAnd => Number::Int(-1),
        ReduceKind::BitOr | ReduceKind::BitXor => Number::Int(0),
    };
    Some(number.expr(dtype))
}
