//! Mathematical functions.
//!
//! Arguments are floats; integers are refused where the function is not defined on them, and
//! pass through where it is the identity. Python numbers are computed at compile time.

use tilewright_ir::{BinOp, DType, Expr, MathFn, Scalar, Span};

use super::{CallArgs, LangFn, ParamSpec, Ty, func, opt, req};
use crate::record::Recorder;
use crate::value::Value;
use crate::{Result, codes};

/// Whether the language has a function of elements by this name.
pub(crate) fn is_function(name: &str) -> bool {
    FNS.iter().any(|f| f.name == name)
}

pub(super) static FNS: &[LangFn] = &[
    func("exp", X, |s, a| unary(s, a, "T.exp", MathFn::Exp)),
    func("exp2", X, |s, a| unary(s, a, "T.exp2", MathFn::Exp2)),
    func("exp10", X, |s, a| unary(s, a, "T.exp10", MathFn::Exp10)),
    func("expm1", X, |s, a| unary(s, a, "T.expm1", MathFn::Expm1)),
    func("log", X, |s, a| unary(s, a, "T.log", MathFn::Log)),
    func("log2", X, |s, a| unary(s, a, "T.log2", MathFn::Log2)),
    func("log10", X, |s, a| unary(s, a, "T.log10", MathFn::Log10)),
    func("log1p", X, |s, a| unary(s, a, "T.log1p", MathFn::Log1p)),
    func("sqrt", X, |s, a| unary(s, a, "T.sqrt", MathFn::Sqrt)),
    func("rsqrt", X, |s, a| unary(s, a, "T.rsqrt", MathFn::Rsqrt)),
    func("sin", X, |s, a| unary(s, a, "T.sin", MathFn::Sin)),
    func("cos", X, |s, a| unary(s, a, "T.cos", MathFn::Cos)),
    func("tan", X, |s, a| unary(s, a, "T.tan", MathFn::Tan)),
    func("asin", X, |s, a| unary(s, a, "T.asin", MathFn::Asin)),
    func("acos", X, |s, a| unary(s, a, "T.acos", MathFn::Acos)),
    func("atan", X, |s, a| unary(s, a, "T.atan", MathFn::Atan)),
    func("sinh", X, |s, a| unary(s, a, "T.sinh", MathFn::Sinh)),
    func("cosh", X, |s, a| unary(s, a, "T.cosh", MathFn::Cosh)),
    func("tanh", X, |s, a| unary(s, a, "T.tanh", MathFn::Tanh)),
    func("asinh", X, |s, a| unary(s, a, "T.asinh", MathFn::Asinh)),
    func("acosh", X, |s, a| unary(s, a, "T.acosh", MathFn::Acosh)),
    func("atanh", X, |s, a| unary(s, a, "T.atanh", MathFn::Atanh)),
    func("erf", X, |s, a| unary(s, a, "T.erf", MathFn::Erf)),
    func("sigmoid", X, |s, a| {
        unary(s, a, "T.sigmoid", MathFn::Sigmoid)
    }),
    func("floor", X, |s, a| unary(s, a, "T.floor", MathFn::Floor)),
    func("ceil", X, |s, a| unary(s, a, "T.ceil", MathFn::Ceil)),
    func("trunc", X, |s, a| unary(s, a, "T.trunc", MathFn::Trunc)),
    func("nearbyint", X, |s, a| {
        unary(s, a, "T.nearbyint", MathFn::Round)
    }),
    func(
        "round",
        &[req("x", Ty::Scalar), opt("rounding_mode", Ty::Str)],
        round,
    ),
    func("abs", X, |s, a| unary(s, a, "T.abs", MathFn::Abs)),
    func("fabs", X, |s, a| unary(s, a, "T.fabs", MathFn::Abs)),
    func("isnan", X, |s, a| unary(s, a, "T.isnan", MathFn::IsNan)),
    func("isinf", X, |s, a| unary(s, a, "T.isinf", MathFn::IsInf)),
    func("isfinite", X, |s, a| {
        unary(s, a, "T.isfinite", MathFn::IsFinite)
    }),
    func("popcount", X, |s, a| {
        bits(s, a, "T.popcount", MathFn::Popcount)
    }),
    func("clz", X, |s, a| bits(s, a, "T.clz", MathFn::Clz)),
    func("__ffs", &[req("value", Ty::Scalar)], find_first_set),
    func("pow", XY, pow),
    func("power", XY, pow),
    func("fmod", XY, |s, a| binary(s, a, "T.fmod", MathFn::Fmod)),
    func("atan2", X1X2, |s, a| binary(s, a, "T.atan2", MathFn::Atan2)),
    func("hypot", X1X2, |s, a| binary(s, a, "T.hypot", MathFn::Hypot)),
    func("copysign", X1X2, |s, a| {
        binary(s, a, "T.copysign", MathFn::Copysign)
    }),
    func("nextafter", X1X2, |s, a| {
        binary(s, a, "T.nextafter", MathFn::Nextafter)
    }),
    func("ldexp", X1X2, ldexp),
    // Fast approximations have the same mathematical meaning.
    func("__exp", X, |s, a| unary(s, a, "T.__exp", MathFn::Exp)),
    func("__exp10", X, |s, a| unary(s, a, "T.__exp10", MathFn::Exp10)),
    func("__log", X, |s, a| unary(s, a, "T.__log", MathFn::Log)),
    func("__log2", X, |s, a| unary(s, a, "T.__log2", MathFn::Log2)),
    func("__log10", X, |s, a| unary(s, a, "T.__log10", MathFn::Log10)),
    func("__sin", X, |s, a| unary(s, a, "T.__sin", MathFn::Sin)),
    func("__cos", X, |s, a| unary(s, a, "T.__cos", MathFn::Cos)),
    func("__tan", X, |s, a| unary(s, a, "T.__tan", MathFn::Tan)),
    func("fast_rcp", X, |s, a| {
        unary(s, a, "T.fast_rcp", MathFn::Recip)
    }),
];

const X: &[ParamSpec] = &[req("x", Ty::Scalar)];
const XY: &[ParamSpec] = &[req("x", Ty::Scalar), req("y", Ty::Scalar)];

const X1X2: &[ParamSpec] = &[req("x1", Ty::Scalar), req("x2", Ty::Scalar)];

/// Exponents up to which a power is a chain of products.
const MAX_PRODUCTS: i128 = 64;

fn unary(rec: &mut Recorder, args: &CallArgs, what: &str, f: MathFn) -> Result<Value> {
    let value = args.required("x").clone();
    apply(rec, f, what, &value, args.span())
}

/// A function of one argument on any number.
pub(super) fn apply(
    rec: &mut Recorder,
    f: MathFn,
    what: &str,
    value: &Value,
    span: Span,
) -> Result<Value> {
    if let Some(folded) = fold(f, value) {
        return Ok(folded);
    }
    let x = rec.to_expr(value, span)?;
    let dtype = x.dtype();
    if !dtype.scalar.is_float() {
        return on_integer(rec, f, what, x, span);
    }
    Ok(Value::Expr(Expr::math(f, vec![x]).with_span(span)))
}

/// What a function of floats means on an integer or bool.
fn on_integer(rec: &Recorder, f: MathFn, what: &str, x: Expr, span: Span) -> Result<Value> {
    let s = x.dtype().scalar;
    let lanes = DType::BOOL.with_lanes(x.dtype().lanes);
    Ok(Value::Expr(match f {
        MathFn::Floor | MathFn::Ceil | MathFn::Trunc | MathFn::Round | MathFn::RoundAway
            if s.is_int() =>
        {
            x
        }
        MathFn::Abs if s.is_signed_int() => Expr::math(f, vec![x]).with_span(span),
        MathFn::Abs if s.is_int() => x,
        MathFn::IsNan | MathFn::IsInf if s.is_int() => Expr::int(0, lanes),
        MathFn::IsFinite if s.is_int() => Expr::int(1, lanes),
        _ => return Err(needs_float(rec, what, x.dtype(), span)),
    }))
}

fn needs_float(rec: &Recorder, what: &str, dtype: DType, span: Span) -> crate::Error {
    rec.error(
        codes::MATH_ARGUMENT,
        span,
        format!("{what} is a function of floats, this is {dtype}"),
    )
    .help("cast it first: `T.cast(x, \"float32\")`")
    .into()
}

fn bits(rec: &mut Recorder, args: &CallArgs, what: &str, f: MathFn) -> Result<Value> {
    let value = args.required("x").clone();
    let x = rec.to_expr(&value, args.span_of("x"))?;
    if !x.dtype().scalar.is_int() {
        return Err(rec
            .error(
                codes::MATH_ARGUMENT,
                args.span_of("x"),
                format!(
                    "{what} counts the bits of an integer, this is {}",
                    x.dtype()
                ),
            )
            .help("`T.reinterpret` a float as an integer of the same width")
            .into());
    }
    Ok(Value::Expr(Expr::math(f, vec![x]).with_span(args.span())))
}

/// The position of the lowest set bit, counted from one; zero when there is none.
fn find_first_set(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let span = args.span();
    let value = args.required("value").clone();
    let x = rec.to_expr(&value, args.span_of("value"))?;
    if !matches!(x.dtype().scalar, Scalar::I32 | Scalar::U32) || !x.dtype().is_scalar() {
        return Err(rec
            .error(
                codes::MATH_ARGUMENT,
                args.span_of("value"),
                format!("T.__ffs looks at a 32-bit integer, this is {}", x.dtype()),
            )
            .help("cast it first: `T.cast(x, \"uint32\")`")
            .into());
    }
    // `x & -x` is the lowest set bit alone; with none set there are 32 leading zeros.
    let lowest = rec.binary_expr(BinOp::BitAnd, x.clone(), rec.negate(x, span)?, span)?;
    let zeros = Expr::math(MathFn::Clz, vec![lowest]);
    let width = Expr::int(32, zeros.dtype());
    rec.binary_expr(BinOp::Sub, width, zeros, span)
        .map(Value::Expr)
}

fn round(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let mode = args.str("rounding_mode");
    let f = match mode {
        None | Some("ties-to-even") => MathFn::Round,
        Some("ties-away-from-zero") => MathFn::RoundAway,
        Some(other) => {
            return Err(rec
                .error(
                    codes::BAD_OPTION,
                    args.span_of("rounding_mode"),
                    format!("T.round has no mode \"{other}\""),
                )
                .help("use \"ties-to-even\" or \"ties-away-from-zero\"")
                .into());
        }
    };
    unary(rec, args, "T.round", f)
}

/// The names of a function's two parameters.
fn two(args: &CallArgs) -> (&'static str, &'static str) {
    match args.is_param("x1") {
        true => ("x1", "x2"),
        false => ("x", "y"),
    }
}

fn binary(rec: &mut Recorder, args: &CallArgs, what: &str, f: MathFn) -> Result<Value> {
    let (x_name, y_name) = two(args);
    let (x, y) = (args.required(x_name).clone(), args.required(y_name).clone());
    if let (Some(x), Some(y)) = (x.as_float(), y.as_float())
        && let Some(v) = fold_binary(f, x, y)
    {
        return Ok(Value::Float(v));
    }
    let x = rec.to_expr(&x, args.span_of(x_name))?;
    let y = rec.to_expr(&y, args.span_of(y_name))?;
    let span = args.span();
    let common =
        tilewright_ir::dtype::promote(x.dtype(), y.dtype()).filter(|d| d.scalar.is_float());
    let Some(common) = common else {
        let bad = if x.dtype().scalar.is_float() { &y } else { &x };
        return Err(needs_float(rec, what, bad.dtype(), span));
    };
    let x = rec.cast_expr(x, common, span)?;
    let y = rec.cast_expr(y, common, span)?;
    Ok(Value::Expr(Expr::math(f, vec![x, y]).with_span(span)))
}

/// `x · 2^y` in the type of `x`, whatever integer or float `y` is.
fn ldexp(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let (x, y) = (args.required("x1").clone(), args.required("x2").clone());
    if let (Some(x), Some(y)) = (x.as_float(), y.as_float()) {
        return Ok(Value::Float(x * y.exp2()));
    }
    let span = args.span();
    let x = rec.to_expr(&x, args.span_of("x1"))?;
    if !x.dtype().scalar.is_float() {
        return Err(needs_float(rec, "T.ldexp", x.dtype(), span));
    }
    let y = rec.to_expr_as(&y, x.dtype(), args.span_of("x2"))?;
    Ok(Value::Expr(
        Expr::math(MathFn::Ldexp, vec![x, y]).with_span(span),
    ))
}

/// A constant whole exponent makes a chain of products in the base's type.
fn pow(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let (x, y) = (args.required("x").clone(), args.required("y").clone());
    let span = args.span();
    if let (Some(base), Some(exponent)) = (x.as_float(), y.as_float()) {
        if let (Some(b), Some(e)) = (x.as_int(), y.as_int())
            && let Ok(e) = u32::try_from(e)
            && let Some(v) = b.checked_pow(e)
        {
            return Ok(Value::Int(v));
        }
        return Ok(Value::Float(base.powf(exponent)));
    }
    let exponent = y.as_int().or_else(|| match &y {
        Value::Expr(e) => e.as_int(),
        _ => None,
    });
    let base = rec.to_expr(&x, args.span_of("x"))?;
    match exponent {
        Some(0) => {
            let dtype = base.dtype();
            let one = if dtype.scalar.is_float() {
                Expr::float(1.0, dtype)
            } else {
                Expr::int(1, dtype)
            };
            Ok(Value::Expr(one.with_span(span)))
        }
        Some(n) if (1..=MAX_PRODUCTS).contains(&n) => {
            if matches!(base.dtype().scalar, Scalar::Bool | Scalar::Handle) {
                return Err(needs_float(rec, "T.pow", base.dtype(), span));
            }
            // The base is used many times; it is computed once where there is a place to.
            let base = match rec.in_kernel() && n > 1 && base.as_var().is_none() {
                true => rec.let_value("base", base, span)?,
                false => base,
            };
            let product = (1..n).fold(base.clone(), |product, _| product * &base);
            Ok(Value::Expr(product.with_span(span)))
        }
        _ => binary(rec, args, "T.pow", MathFn::Pow),
    }
}

/// The function of a Python number; `None` where it is better left to the kernel.
fn fold(f: MathFn, value: &Value) -> Option<Value> {
    let whole = value.as_int();
    let x = value.as_float()?;
    Some(match f {
        MathFn::Floor | MathFn::Ceil | MathFn::Trunc | MathFn::Round | MathFn::RoundAway
            if whole.is_some() =>
        {
            Value::Int(whole?)
        }
        MathFn::Abs if whole.is_some() => Value::Int(whole?.checked_abs()?),
        MathFn::Abs => Value::Float(x.abs()),
        MathFn::IsNan => Value::Bool(x.is_nan()),
        MathFn::IsInf => Value::Bool(x.is_infinite()),
        MathFn::IsFinite => Value::Bool(x.is_finite()),
        MathFn::Exp => Value::Float(x.exp()),
        MathFn::Exp2 => Value::Float(x.exp2()),
        MathFn::Exp10 => Value::Float(10f64.powf(x)),
        MathFn::Expm1 => Value::Float(x.exp_m1()),
        MathFn::Log => Value::Float(x.ln()),
        MathFn::Log2 => Value::Float(x.log2()),
        MathFn::Log10 => Value::Float(x.log10()),
        MathFn::Log1p => Value::Float(x.ln_1p()),
        MathFn::Sqrt => Value::Float(x.sqrt()),
        MathFn::Rsqrt => Value::Float(1.0 / x.sqrt()),
        MathFn::Recip => Value::Float(1.0 / x),
        MathFn::Sin => Value::Float(x.sin()),
        MathFn::Cos => Value::Float(x.cos()),
        MathFn::Tan => Value::Float(x.tan()),
        MathFn::Asin => Value::Float(x.asin()),
        MathFn::Acos => Value::Float(x.acos()),
        MathFn::Atan => Value::Float(x.atan()),
        MathFn::Sinh => Value::Float(x.sinh()),
        MathFn::Cosh => Value::Float(x.cosh()),
        MathFn::Tanh => Value::Float(x.tanh()),
        MathFn::Asinh => Value::Float(x.asinh()),
        MathFn::Acosh => Value::Float(x.acosh()),
        MathFn::Atanh => Value::Float(x.atanh()),
        MathFn::Sigmoid => Value::Float(1.0 / (1.0 + (-x).exp())),
        MathFn::Floor => Value::Float(x.floor()),
        MathFn::Ceil => Value::Float(x.ceil()),
        MathFn::Trunc => Value::Float(x.trunc()),
        MathFn::Round => Value::Float(x.round_ties_even()),
        MathFn::RoundAway => Value::Float(x.round()),
        // The standard library has no error function, and the rest take more arguments.
        MathFn::Erf
        | MathFn::Popcount
        | MathFn::Clz
        | MathFn::Pow
        | MathFn::Fmod
        | MathFn::Atan2
        | MathFn::Hypot
        | MathFn::Copysign
        | MathFn::Nextafter
        | MathFn::Ldexp
        | MathFn::Fma => return None,
    })
}

fn fold_binary(f: MathFn, x: f64, y: f64) -> Option<f64> {
    Some(match f {
        MathFn::Pow => x.powf(y),
        MathFn::Fmod => x % y,
        MathFn::Atan2 => x.atan2(y),
        MathFn::Hypot => x.hypot(y),
        MathFn::Copysign => x.copysign(y),
        _ => return None,
    })
}
