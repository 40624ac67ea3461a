//! Scalar operations that Python has no operator for, or that the language also spells as
//! functions: division in all roundings, extremes, shifts, bits, choices, coordinates.

use tilewright_ir::{BinOp, Expr, ExprKind, Scalar};

use super::{CallArgs, LangFn, ParamSpec, Ty, func, req};
use crate::record::Recorder;
use crate::value::Value;
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func("max", AB, |s, a| binary(s, a, BinOp::Max)),
    func("min", AB, |s, a| binary(s, a, BinOp::Min)),
    func("floordiv", AB, |s, a| binary(s, a, BinOp::FloorDiv)),
    func("floormod", AB, |s, a| binary(s, a, BinOp::FloorMod)),
    func("truncdiv", AB, |s, a| binary(s, a, BinOp::TruncDiv)),
    func("truncmod", AB, |s, a| binary(s, a, BinOp::TruncMod)),
    func("shift_left", XY, |s, a| binary(s, a, BinOp::Shl)),
    func("shift_right", XY, |s, a| binary(s, a, BinOp::Shr)),
    func("bitwise_and", XY, |s, a| binary(s, a, BinOp::BitAnd)),
    func("bitwise_or", XY, |s, a| binary(s, a, BinOp::BitOr)),
    func("bitwise_xor", XY, |s, a| binary(s, a, BinOp::BitXor)),
    func("bitwise_not", &[req("x", Ty::Scalar)], |rec, args| {
        let value = args.required("x").clone();
        if let Some(v) = value.as_int() {
            return Ok(Value::Int(!v));
        }
        let x = rec.to_expr(&value, args.span_of("x"))?;
        rec.invert(x, args.span()).map(Value::Expr)
    }),
    func("ceildiv", LHS_RHS, |s, a| ceildiv(s, a, "T.ceildiv")),
    func("cdiv", LHS_RHS, |s, a| ceildiv(s, a, "T.cdiv")),
    func("align_up", XY, |rec, args| {
        let count = ceildiv(rec, args, "T.align_up")?;
        let (_, y) = operands(args);
        rec.binary(BinOp::Mul, &count, &y, args.span())
    }),
    func(
        "clamp",
        &[
            req("dst", Ty::Scalar),
            req("min_val", Ty::Scalar),
            req("max_val", Ty::Scalar),
        ],
        clamp,
    ),
    func("if_then_else", CHOICE, if_then_else),
    func(
        "Select",
        &[
            req("condition", Ty::Scalar),
            req("true_value", Ty::Scalar),
            req("false_value", Ty::Scalar),
        ],
        select,
    ),
    func("likely", &[req("cond", Ty::Scalar)], |_, args| {
        Ok(args.required("cond").clone())
    }),
    func(
        "index_to_coordinates",
        &[req("index", Ty::Scalar), req("shape", Ty::Any)],
        index_to_coordinates,
    ),
    func(
        "Broadcast",
        &[req("value", Ty::Scalar), req("lanes", Ty::Int)],
        broadcast,
    ),
    func(
        "Ramp",
        &[
            req("base", Ty::Scalar),
            req("stride", Ty::Scalar),
            req("lanes", Ty::Int),
        ],
        ramp,
    ),
    func(
        "extract_lane",
        &[req("vector", Ty::Scalar), req("lane", Ty::Int)],
        extract_lane,
    ),
];

const AB: &[ParamSpec] = &[req("a", Ty::Scalar), req("b", Ty::Scalar)];
const XY: &[ParamSpec] = &[req("x", Ty::Scalar), req("y", Ty::Scalar)];
const LHS_RHS: &[ParamSpec] = &[req("lhs", Ty::Scalar), req("rhs", Ty::Scalar)];
const CHOICE: &[ParamSpec] = &[
    req("cond", Ty::Scalar),
    req("t", Ty::Scalar),
    req("f", Ty::Scalar),
];

fn binary(rec: &mut Recorder, args: &CallArgs, op: BinOp) -> Result<Value> {
    let (a, b) = operands(args);
    rec.binary(op, &a, &b, args.span())
}

/// The two operands, whatever the function calls them.
fn operands(args: &CallArgs) -> (Value, Value) {
    let pairs = [("a", "b"), ("x", "y"), ("lhs", "rhs")];
    let found = pairs.into_iter().find(|(a, _)| args.is_param(a));
    let (a, b) = found.unwrap_or(("a", "b"));
    (args.required(a).clone(), args.required(b).clone())
}

/// `(a + b - 1) // b`, which is the quotient rounded up for positive `b`.
fn ceildiv(rec: &mut Recorder, args: &CallArgs, what: &str) -> Result<Value> {
    let (a, b) = operands(args);
    let divisor = b.as_int().or_else(|| match &b {
        Value::Expr(e) => rec.const_int(e),
        _ => None,
    });
    if let Some(d) = divisor
        && d <= 0
    {
        return Err(rec
            .error(
                codes::WRONG_VALUE,
                args.span(),
                format!("{what}: the divisor must be positive, this is {d}"),
            )
            .help("check where the divisor comes from; it is usually a tile size")
            .into());
    }
    if a.as_int().is_none() && a.as_float().is_some()
        || b.as_int().is_none() && b.as_float().is_some()
    {
        return Err(rec
            .error(
                codes::OPERAND_TYPES,
                args.span(),
                format!("{what} is a division of integers, this is a float"),
            )
            .help("divide with `//` where the number is computed")
            .into());
    }
    let span = args.span();
    if let (Some(x), Some(y)) = (a.as_int(), b.as_int()) {
        // The sum may be larger than an int can be; the quotient is not.
        return Ok(Value::Int(
            x.div_euclid(y) + i128::from(x.rem_euclid(y) != 0),
        ));
    }
    let less_one = rec.binary(BinOp::Sub, &b, &Value::Int(1), span)?;
    let sum = rec.binary(BinOp::Add, &a, &less_one, span)?;
    rec.binary(BinOp::FloorDiv, &sum, &b, span)
}

fn clamp(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let [x, lo, hi] = ["dst", "min_val", "max_val"].map(|n| args.required(n).clone());
    let span = args.span();
    let raised = rec.binary(BinOp::Max, &x, &lo, span)?;
    rec.binary(BinOp::Min, &raised, &hi, span)
}

fn if_then_else(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let [cond, t, f] = ["cond", "t", "f"].map(|n| args.required(n).clone());
    let span = args.span();
    // The type is that of both arms even where one is chosen already.
    let known = cond.as_int().map(|c| c != 0);
    if let Some(c) = known
        && ![&t, &f].into_iter().any(|v| rec.is_ir_operand(v))
    {
        return Ok(if c { t } else { f });
    }
    let cond = match known {
        Some(c) => Expr::bool(c),
        None => condition(rec, &cond, args, "cond", "T.if_then_else")?,
    };
    let t = rec.to_expr(&t, args.span_of("t"))?;
    let f = rec.to_expr(&f, args.span_of("f"))?;
    rec.if_then_else(cond, t, f, span).map(Value::Expr)
}

fn select(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let names = ["condition", "true_value", "false_value"];
    let [cond, t, f] = names.map(|n| args.required(n).clone());
    let cond = condition(rec, &cond, args, "condition", "T.Select")?;
    let mut t_expr = rec.to_expr(&t, args.span_of("true_value"))?;
    let mut f_expr = rec.to_expr(&f, args.span_of("false_value"))?;
    // A literal takes the other side's type; two run-time values must agree.
    if !t.is_runtime() {
        t_expr = rec.cast_expr(t_expr, f_expr.dtype(), args.span())?;
    } else if !f.is_runtime() {
        f_expr = rec.cast_expr(f_expr, t_expr.dtype(), args.span())?;
    }
    if t_expr.dtype() != f_expr.dtype() {
        return Err(rec
            .error(
                codes::OPERAND_TYPES,
                args.span(),
                format!(
                    "T.Select needs two values of one dtype, these are {} and {}",
                    t_expr.dtype(),
                    f_expr.dtype()
                ),
            )
            .help("cast one of them, or use `T.if_then_else`, which converts")
            .into());
    }
    rec.choose(false, cond, t_expr, f_expr, args.span())
        .map(Value::Expr)
}

fn condition(
    rec: &Recorder,
    value: &Value,
    args: &CallArgs,
    name: &str,
    what: &str,
) -> Result<Expr> {
    let span = args.span_of(name);
    let cond = rec.to_expr(value, span)?;
    if cond.dtype().scalar == Scalar::Bool {
        return Ok(cond);
    }
    Err(rec
        .error(
            codes::CONDITION,
            span,
            format!(
                "{what}: the condition must be bool, this is {}",
                cond.dtype()
            ),
        )
        .help("compare first: `x != 0`")
        .into())
}

/// Row-major coordinates; the first is taken modulo its extent too.
fn index_to_coordinates(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let span = args.span();
    let Some(shape) = args.required("shape").sequence() else {
        return Err(rec
            .error(
                codes::WRONG_TYPE,
                args.span_of("shape"),
                "T.index_to_coordinates needs the shape as a tuple or a list",
            )
            .into());
    };
    let mut rest = args.required("index").clone();
    let mut coordinates = Vec::with_capacity(shape.len());
    for extent in shape.iter().rev() {
        coordinates.push(rec.binary(BinOp::FloorMod, &rest, extent, span)?);
        rest = rec.binary(BinOp::FloorDiv, &rest, extent, span)?;
    }
    coordinates.reverse();
    Ok(Value::list(coordinates))
}

fn lane_count(rec: &mut Recorder, args: &CallArgs, name: &str) -> Result<u16> {
    let n = args.int_or(rec, name, 0)?;
    u16::try_from(n)
        .ok()
        .filter(|n| (2..=64).contains(n))
        .ok_or_else(|| {
            rec.error(
                codes::WRONG_VALUE,
                args.span_of(name),
                format!("a vector has 2 to 64 lanes, this is {n}"),
            )
            .into()
        })
}

fn broadcast(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let lanes = lane_count(rec, args, "lanes")?;
    let value = args.required("value").clone();
    let value = scalar_operand(rec, args, "value", &value)?;
    Ok(Value::Expr(value.broadcast(lanes).with_span(args.span())))
}

fn ramp(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let lanes = lane_count(rec, args, "lanes")?;
    let [base, stride] = ["base", "stride"].map(|n| args.required(n).clone());
    let base = scalar_operand(rec, args, "base", &base)?;
    let stride = rec.to_expr_as(&stride, base.dtype(), args.span_of("stride"))?;
    let dtype = base.dtype().with_lanes(lanes);
    Ok(Value::Expr(Expr::new(
        ExprKind::Ramp { base, stride },
        dtype,
        args.span(),
    )))
}

fn scalar_operand(rec: &Recorder, args: &CallArgs, name: &str, value: &Value) -> Result<Expr> {
    let e = rec.to_expr(value, args.span_of(name))?;
    if e.dtype().is_scalar() {
        return Ok(e);
    }
    Err(rec
        .error(
            codes::OPERAND_TYPES,
            args.span_of(name),
            format!("`{name}` must be a scalar, this is {}", e.dtype()),
        )
        .into())
}

fn extract_lane(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let value = args.required("vector").clone();
    let vector = rec.to_expr(&value, args.span_of("vector"))?;
    let lanes = vector.dtype().lanes;
    let lane = args.int_or(rec, "lane", 0)?;
    let lane = u16::try_from(lane)
        .ok()
        .filter(|l| *l < lanes)
        .ok_or_else(|| {
            crate::Error::from(rec.error(
                codes::OUT_OF_BOUNDS,
                args.span_of("lane"),
                format!("{} has no lane {lane}", vector.dtype()),
            ))
        })?;
    if lanes == 1 {
        return Ok(Value::Expr(vector));
    }
    let dtype = vector.dtype().with_lanes(1);
    Ok(Value::Expr(Expr::new(
        ExprKind::Lane { vector, lane },
        dtype,
        args.span(),
    )))
}
