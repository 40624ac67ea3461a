//! Conversions: `T.cast`, `T.Cast`, `T.reinterpret`.

use super::{CallArgs, LangFn, Ty, func, opt, req};
use crate::record::Recorder;
use crate::value::Value;
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func(
        "cast",
        &[
            req("value", Ty::Any),
            req("dtype", Ty::Any),
            opt("round", Ty::Str),
            opt("sat", Ty::Bool),
            opt("rbits", Ty::Any),
        ],
        |rec, args| {
            if args.str("round") == Some("rs") {
                return super::stochastic::cast(rec, args);
            }
            check_rounding(rec, args)?;
            convert(rec, args, "T.cast", Recorder::cast_value)
        },
    ),
    func(
        "Cast",
        &[req("dtype", Ty::Any), req("value", Ty::Any)],
        |rec, args| convert(rec, args, "T.Cast", Recorder::cast_value),
    ),
    func(
        "reinterpret",
        &[req("value", Ty::Any), req("dtype", Ty::Any)],
        |rec, args| convert(rec, args, "T.reinterpret", reinterpret),
    ),
];

type Conversion =
    fn(&mut Recorder, &Value, tilewright_ir::DType, tilewright_ir::Span) -> Result<Value>;

/// Older programs write the type first; whichever argument is a type is taken as the type.
fn convert(rec: &mut Recorder, args: &CallArgs, what: &str, f: Conversion) -> Result<Value> {
    let is_dtype = |v: &Value| {
        matches!(
            v,
            Value::DType(_) | Value::Str(_) | Value::Opaque(_) | Value::Builtin(_)
        )
    };
    let (mut value, mut dtype) = ("value", "dtype");
    if is_dtype(args.required(value)) && !is_dtype(args.required(dtype)) {
        (value, dtype) = (dtype, value);
    }
    let to = args.required(dtype).clone();
    if !is_dtype(&to) {
        return Err(rec
            .error(
                codes::WRONG_TYPE,
                args.span_of(dtype),
                format!("{what} needs a dtype here, this is {}", to.type_name()),
            )
            .help(format!("write `{what}(x, \"float16\")`"))
            .into());
    }
    let to = rec.to_dtype(&to, args.span_of(dtype))?;
    let from = args.required(value).clone();
    f(rec, &from, to, args.span())
}

impl Recorder {
    /// The value converted to the type.
    pub fn cast_value(
        &mut self,
        value: &Value,
        dtype: tilewright_ir::DType,
        span: tilewright_ir::Span,
    ) -> Result<Value> {
        let e = self.to_expr(value, span)?;
        self.cast_expr(e, dtype, span).map(Value::Expr)
    }
}

fn reinterpret(
    rec: &mut Recorder,
    value: &Value,
    dtype: tilewright_ir::DType,
    span: tilewright_ir::Span,
) -> Result<Value> {
    let e = rec.to_expr(value, span)?;
    let from = e.dtype();
    if from == dtype {
        return Ok(Value::Expr(e));
    }
    if from.bits() != dtype.bits() {
        return Err(rec
            .error(
                codes::REINTERPRET_WIDTH,
                span,
                format!(
                    "T.reinterpret keeps the bits: {from} has {}, {dtype} has {}",
                    from.bits(),
                    dtype.bits()
                ),
            )
            .help("use `T.cast` to convert the value")
            .into());
    }
    Ok(Value::Expr(e.reinterpret_as(dtype).with_span(span)))
}

fn check_rounding(rec: &Recorder, args: &CallArgs) -> Result<()> {
    let mode = args.str("round");
    let span = args.span_of("round");
    match mode {
        None | Some("" | "rn") => {}
        Some(mode @ ("rz" | "rp" | "rm")) => {
            return Err(super::not_supported(
                rec,
                span,
                &format!("the rounding mode \"{mode}\" of T.cast"),
                "leave `round` out: casts round to nearest, ties to even",
            ));
        }
        Some(other) => {
            return Err(rec
                .error(
                    codes::BAD_OPTION,
                    span,
                    format!("T.cast has no rounding mode \"{other}\""),
                )
                .help("leave `round` out: casts round to nearest, ties to even; \"rs\" rounds by random bits")
                .into());
        }
    }
    if args.has("rbits") {
        return Err(rec
            .error(
                codes::BAD_OPTION,
                args.span_of("rbits"),
                "T.cast: `rbits` belongs to stochastic rounding, round=\"rs\"",
            )
            .into());
    }
    Ok(())
}
