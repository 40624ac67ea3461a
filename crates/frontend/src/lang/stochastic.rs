//! `T.cast(x, dtype, round="rs", rbits=r)`: rounding up or down as random bits decide.
//!
//! Of the two neighbours of `x` in the type, in magnitude, the upper one is taken where the
//! distance to the lower one, in units of the distance between both and cut to 24 bits, and the
//! upper 24 bits of `r` make one or more. It is written out as arithmetic on the bits of float32.

use tilewright_ir::{BinOp, DType, Expr, MathFn, Scalar, Span};

use super::CallArgs;
use crate::record::Recorder;
use crate::value::Value;
use crate::{Result, codes};

const U32: DType = DType::scalar(Scalar::U32);
const SIGN: i128 = 1 << 31;
const INFINITY: i128 = 0x7f80_0000;
/// Bits of a float32 behind the point, and what its exponents are off by.
const FRACTION: i128 = 23;
const BIAS: i128 = 127;

/// Bits behind the point and the exponent of the smallest normal value.
fn format(dtype: DType) -> Option<(i128, i128)> {
    if !dtype.is_scalar() {
        return None;
    }
    Some(match dtype.scalar {
        Scalar::F16 => (10, -14),
        Scalar::BF16 => (7, -126),
        Scalar::F8E4M3FN => (3, -6),
        Scalar::F8E5M2 => (2, -14),
        _ => return None,
    })
}

/// The cast with its random bits.
pub(super) fn cast(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let span = args.span();
    let to = rec.to_dtype(args.required("dtype"), args.span_of("dtype"))?;
    let Some((fraction, least)) = format(to) else {
        return Err(rec
            .error(
                codes::OPERAND_TYPES,
                args.span_of("dtype"),
                format!("T.cast does not round to {to} by random bits"),
            )
            .help("this is for float16, bfloat16, float8_e4m3fn and float8_e5m2")
            .into());
    };
    let Some(random) = args.value("rbits").cloned() else {
        return Err(rec
            .error(
                codes::WRONG_ARITY,
                span,
                "T.cast with round=\"rs\" needs the random bits, `rbits`",
            )
            .help("pass 32 random bits, such as `T.rng_rand()`")
            .into());
    };
    let random = rec.to_expr(&random, args.span_of("rbits"))?;
    if !matches!(random.dtype(), U32 | DType::I32) {
        return Err(rec
            .error(
                codes::OPERAND_TYPES,
                args.span_of("rbits"),
                format!("`rbits` is uint32 or int32, this is {}", random.dtype()),
            )
            .into());
    }
    let value = args.required("value").clone();
    let value = rec.to_expr(&value, args.span_of("value"))?;
    if !matches!(value.dtype(), DType::F32 | DType::F16 | DType::BF16) {
        return Err(rec
            .error(
                codes::OPERAND_TYPES,
                args.span_of("value"),
                format!("T.cast does not round {} by random bits", value.dtype()),
            )
            .help("cast it to float32 first")
            .into());
    }
    rec.kernel("a cast with random bits")?;
    let value = rec.cast_expr(value, DType::F32, span)?;
    let value = rec.let_value("x", value, span)?;
    let random = rec.cast_expr(random, U32, span)?;
    let random = rec.let_value("random", random, span)?;
    let rounded = round(rec, value, random, fraction, least, span)?;
    rec.cast_expr(rounded, to, span).map(Value::Expr)
}

/// The float32 that the type holds.
fn round(
    rec: &mut Recorder,
    value: Expr,
    random: Expr,
    fraction: i128,
    least: i128,
    span: Span,
) -> Result<Expr> {
    let bits = value.clone().reinterpret_as(U32);
    let bits = rec.let_value("bits", bits, span)?;
    let sign = word(rec, BinOp::BitAnd, &bits, SIGN, span)?;
    let size = word(rec, BinOp::BitAnd, &bits, SIGN - 1, span)?;
    let size = rec.let_value("size", size, span)?;
    // Normal values: what is dropped carries into what stays.
    let dropped = FRACTION - fraction;
    let chance = word(rec, BinOp::Shr, &random, 32 - dropped, span)?;
    let sum = rec.binary_expr(BinOp::Add, size.clone(), chance, span)?;
    let kept = word(rec, BinOp::Shr, &sum, dropped, span)?;
    let mut kept = word(rec, BinOp::Shl, &kept, dropped, span)?;
    // Smaller ones have a fixed distance; that of bfloat16 is float32's own.
    if least > 1 - BIAS {
        let unit = 2f64.powi((fraction - least) as i32);
        let small = size.clone().reinterpret_as(DType::F32);
        let scaled = times(rec, small, unit, span)?;
        let scaled = rec.let_value("scaled", scaled, span)?;
        let below = Expr::math(MathFn::Floor, vec![scaled.clone()]);
        let below = rec.let_value("below", below, span)?;
        let rest = rec.binary_expr(BinOp::Sub, scaled, below.clone(), span)?;
        let rest = times(rec, rest, f64::from(1 << 24), span)?;
        let rest = rec.cast_expr(rest, U32, span)?;
        let chance = word(rec, BinOp::Shr, &random, 8, span)?;
        let sum = rec.binary_expr(BinOp::Add, rest, chance, span)?;
        let up = word(rec, BinOp::Shr, &sum, 24, span)?;
        let up = rec.cast_expr(up, DType::F32, span)?;
        let units = rec.binary_expr(BinOp::Add, below, up, span)?;
        let units = times(rec, units, 1.0 / unit, span)?;
        let units = units.reinterpret_as(U32);
        let first = Expr::int((least + BIAS) << FRACTION, U32);
        let is_small = rec.binary_expr(BinOp::Lt, size.clone(), first, span)?;
        kept = rec.choose(false, is_small, units, kept, span)?;
    }
    let signed = rec.binary_expr(BinOp::BitOr, kept, sign, span)?;
    let rounded = signed.reinterpret_as(DType::F32);
    // What is no number, or no end, stays.
    let end = Expr::int(INFINITY, U32);
    let finite = rec.binary_expr(BinOp::Lt, size, end, span)?;
    rec.choose(false, finite, rounded, value, span)
}

fn word(rec: &mut Recorder, op: BinOp, a: &Expr, b: i128, span: Span) -> Result<Expr> {
    rec.binary_expr(op, a.clone(), Expr::int(b, U32), span)
}

fn times(rec: &mut Recorder, a: Expr, factor: f64, span: Span) -> Result<Expr> {
    rec.binary_expr(BinOp::Mul, a, Expr::float(factor, DType::F32), span)
}
