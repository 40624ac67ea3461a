//! Arithmetic that is spelled out: `T.ieee_*` with a rounding mode, and the packed `*2` forms.

use tilewright_ir::{BinOp, Expr, MathFn};

use super::{CallArgs, LangFn, ParamSpec, Ty, func, math, opt, req};
use crate::record::Recorder;
use crate::value::Value;
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func("ieee_add", XY_MODE, |s, a| {
        floats(s, a, "T.ieee_add", BinOp::Add)
    }),
    func("ieee_sub", XY_MODE, |s, a| {
        floats(s, a, "T.ieee_sub", BinOp::Sub)
    }),
    func("ieee_mul", XY_MODE, |s, a| {
        floats(s, a, "T.ieee_mul", BinOp::Mul)
    }),
    func("ieee_fdiv", XY_MODE, |s, a| {
        floats(s, a, "T.ieee_fdiv", BinOp::Div)
    }),
    func("ieee_fmaf", &[X, Y, req("z", Ty::Scalar), MODE], |s, a| {
        fma(s, a, "T.ieee_fmaf")
    }),
    func("ieee_frcp", &[X, MODE], |s, a| {
        one(s, a, "T.ieee_frcp", MathFn::Recip)
    }),
    func("ieee_fsqrt", &[X, MODE], |s, a| {
        one(s, a, "T.ieee_fsqrt", MathFn::Sqrt)
    }),
    func("ieee_frsqrt", &[X], |s, a| {
        one(s, a, "T.ieee_frsqrt", MathFn::Rsqrt)
    }),
    func("add2", &[X, Y], |s, a| packed(s, a, BinOp::Add)),
    func("sub2", &[X, Y], |s, a| packed(s, a, BinOp::Sub)),
    func("mul2", &[X, Y], |s, a| packed(s, a, BinOp::Mul)),
    func("max2", &[X, Y], |s, a| packed(s, a, BinOp::Max)),
    func("min2", &[X, Y], |s, a| packed(s, a, BinOp::Min)),
    func("fma2", &[X, Y, req("z", Ty::Scalar)], |s, a| {
        fma(s, a, "T.fma2")
    }),
    func("abs2", &[X], |s, a| one(s, a, "T.abs2", MathFn::Abs)),
];

const X: ParamSpec = req("x", Ty::Scalar);
const Y: ParamSpec = req("y", Ty::Scalar);
const MODE: ParamSpec = opt("rounding_mode", Ty::Str);
const XY_MODE: &[ParamSpec] = &[X, Y, MODE];

fn floats(rec: &mut Recorder, args: &CallArgs, what: &str, op: BinOp) -> Result<Value> {
    nearest_only(rec, args, what)?;
    let [x, y] = ["x", "y"].map(|n| args.required(n).clone());
    let x = float(rec, args, "x", &x, what)?;
    let y = float(rec, args, "y", &y, what)?;
    rec.binary_expr(op, x, y, args.span()).map(Value::Expr)
}

fn fma(rec: &mut Recorder, args: &CallArgs, what: &str) -> Result<Value> {
    nearest_only(rec, args, what)?;
    let span = args.span();
    let mut operands = Vec::with_capacity(3);
    for name in ["x", "y", "z"] {
        let value = args.required(name).clone();
        operands.push(float(rec, args, name, &value, what)?);
    }
    let common = operands[1..].iter().try_fold(operands[0].dtype(), |d, e| {
        tilewright_ir::dtype::promote(d, e.dtype())
    });
    let Some(common) = common else {
        return Err(rec
            .error(
                codes::OPERAND_TYPES,
                span,
                format!("{what}: the operands have no common type"),
            )
            .into());
    };
    let operands = operands
        .into_iter()
        .map(|e| rec.cast_expr(e, common, span))
        .collect::<Result<Vec<_>>>()?;
    Ok(Value::Expr(
        Expr::math(MathFn::Fma, operands).with_span(span),
    ))
}

fn one(rec: &mut Recorder, args: &CallArgs, what: &str, f: MathFn) -> Result<Value> {
    nearest_only(rec, args, what)?;
    let value = args.required("x").clone();
    math::apply(rec, f, what, &value, args.span())
}

/// The same operation on every lane of two-lane vectors, or on scalars.
fn packed(rec: &mut Recorder, args: &CallArgs, op: BinOp) -> Result<Value> {
    let (x, y) = (args.required("x").clone(), args.required("y").clone());
    rec.binary(op, &x, &y, args.span())
}

fn float(rec: &Recorder, args: &CallArgs, name: &str, value: &Value, what: &str) -> Result<Expr> {
    let value = match value.as_float() {
        Some(v) if value.as_int().is_some() => Value::Float(v),
        _ => value.clone(),
    };
    let e = rec.to_expr(&value, args.span_of(name))?;
    if e.dtype().scalar.is_float() {
        return Ok(e);
    }
    Err(rec
        .error(
            codes::MATH_ARGUMENT,
            args.span_of(name),
            format!("{what} is a function of floats, this is {}", e.dtype()),
        )
        .help("cast it first: `T.cast(x, \"float32\")`")
        .into())
}

/// Expressions round to nearest even; another direction has no form here.
fn nearest_only(rec: &Recorder, args: &CallArgs, what: &str) -> Result<()> {
    if !args.is_param("rounding_mode") {
        return Ok(());
    }
    match args.str("rounding_mode") {
        None | Some("rn") => Ok(()),
        Some(mode @ ("rz" | "ru" | "rd")) => Err(super::not_supported(
            rec,
            args.span_of("rounding_mode"),
            &format!("the rounding mode \"{mode}\" of {what}"),
            "use \"rn\" (to nearest, ties to even)",
        )),
        Some(other) => Err(rec
            .error(
                codes::BAD_OPTION,
                args.span_of("rounding_mode"),
                format!("{what} has no rounding mode \"{other}\""),
            )
            .help("the modes are rn, rz, ru, rd; only rn is supported")
            .into()),
    }
}
