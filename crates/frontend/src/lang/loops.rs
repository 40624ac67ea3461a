//! Loop objects: what a `for` goes over.

use std::rc::Rc;

use tilewright_ir::{Diagnostic, Expr, LayoutAttr, LoopKind, Span};

use super::layouts::{FragmentValue, LayoutValue};
use super::{CallArgs, LangFn, ParamSpec, Ty, func, kw, opt, req, rest};
use crate::record::Recorder;
use crate::value::{AxisSpec, LoopSpec, Value};
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func("serial", STEPPED, |s, a| {
        stepped(s, a, LoopKind::Serial, "T.serial")
    }),
    func("Serial", STEPPED, |s, a| {
        stepped(s, a, LoopKind::Serial, "T.Serial")
    }),
    func("unroll", UNROLL, unroll),
    func("Unroll", UNROLL, unroll),
    func("vectorized", RANGE, |s, a| {
        range(s, a, LoopKind::Vectorized, "T.vectorized")
    }),
    func("Vectorized", RANGE, |s, a| {
        range(s, a, LoopKind::Vectorized, "T.Vectorized")
    }),
    func("parallel", RANGE, |s, a| {
        s.kernel("`T.parallel`")?;
        range(s, a, plain_parallel(), "T.parallel")
    }),
    func(
        "Parallel",
        &[
            rest("extents", Ty::Scalar),
            kw("coalesced_width", Ty::Int),
            kw("loop_layout", Ty::Any),
            kw("prefer_async", Ty::Bool),
            kw("annotations", Ty::Any),
        ],
        parallel,
    ),
    func(
        "Pipelined",
        &[
            req("start", Ty::Scalar),
            opt("stop", Ty::Scalar),
            opt("num_stages", Ty::Int),
            opt("order", Ty::Any),
            opt("stage", Ty::Any),
            opt("sync", Ty::Any),
            opt("group", Ty::Any),
            opt("annotations", Ty::Any),
            kw("schedule", Ty::Str),
        ],
        super::pipelined::pipelined,
    ),
    func(
        "Persistent",
        &[
            req("domain", Ty::Any),
            req("wave_size", Ty::Scalar),
            req("index", Ty::Scalar),
            opt("group_size", Ty::Scalar),
        ],
        persistent,
    ),
    func("grid", &[rest("extents", Ty::Scalar)], grid),
    func(
        "thread_binding",
        &[
            req("start", Ty::Scalar),
            opt("stop", Ty::Scalar),
            opt("thread", Ty::Str),
            kw("annotations", Ty::Any),
        ],
        thread_binding,
    ),
    LangFn::calling("loop_break", &[], |program, args| {
        program.leave_loop(args.span())?;
        Ok(Value::None)
    }),
];

const RANGE: &[ParamSpec] = &[
    req("start", Ty::Scalar),
    opt("stop", Ty::Scalar),
    kw("annotations", Ty::Any),
];
const STEPPED: &[ParamSpec] = &[
    req("start", Ty::Scalar),
    opt("stop", Ty::Scalar),
    opt("step", Ty::Scalar),
    kw("annotations", Ty::Any),
];
const UNROLL: &[ParamSpec] = &[
    req("start", Ty::Scalar),
    opt("stop", Ty::Scalar),
    opt("step", Ty::Scalar),
    kw("explicit", Ty::Bool),
    kw("unroll_factor", Ty::Int),
    kw("annotations", Ty::Any),
];

fn stepped(rec: &mut Recorder, args: &CallArgs, kind: LoopKind, what: &str) -> Result<Value> {
    let mut axis = bounds(rec, args, what)?;
    if let Some(step) = args.value("step").cloned() {
        let span = args.span_of("step");
        let step = rec.to_expr(&step, span)?;
        super::check_index(rec, &step, span, "a step")?;
        match rec.const_int(&step) {
            Some(0) => {
                return Err(rec
                    .error(codes::BAD_LOOP, span, format!("{what}: the step is zero"))
                    .help("use a positive step, or a negative one to count down")
                    .into());
            }
            Some(_) => {}
            None => rec.warn(
                Diagnostic::warning(
                    codes::BAD_LOOP,
                    span,
                    "the step is only known at run time and is taken to be positive",
                )
                .help("loop over `T.ceildiv(stop - start, step)` and multiply inside"),
            ),
        }
        axis.step = step;
    }
    let axis = one_dtype(rec, axis, args.span())?;
    Ok(Value::Loop(Rc::new(LoopSpec::new(kind, vec![axis]))))
}

fn range(rec: &mut Recorder, args: &CallArgs, kind: LoopKind, what: &str) -> Result<Value> {
    let axis = bounds(rec, args, what)?;
    let axis = one_dtype(rec, axis, args.span())?;
    Ok(Value::Loop(Rc::new(LoopSpec::new(kind, vec![axis]))))
}

fn unroll(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let factor = super::positive(rec, args, "unroll_factor")?;
    if factor.is_some() && args.bool_or(rec, "explicit", false)? {
        return Err(rec
            .error(
                codes::BAD_LOOP,
                args.span(),
                "T.unroll: `explicit` unrolls wholly, `unroll_factor` in part; both is a contradiction",
            )
            .help("leave one of them out")
            .into());
    }
    stepped(rec, args, LoopKind::Unroll { factor }, "T.unroll")
}

fn plain_parallel() -> LoopKind {
    LoopKind::Parallel {
        coalesced_width: None,
        layout: None,
    }
}

fn parallel(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    rec.kernel("`T.Parallel`")?;
    let coalesced_width = super::positive(rec, args, "coalesced_width")?;
    let layout = match args.value("loop_layout") {
        None => None,
        Some(value) => Some(loop_layout(rec, value, args.span_of("loop_layout"))?),
    };
    let axes = extents(rec, args, "T.Parallel")?;
    let kind = LoopKind::Parallel {
        coalesced_width,
        layout,
    };
    Ok(Value::Loop(Rc::new(LoopSpec::new(kind, axes))))
}

fn loop_layout(rec: &Recorder, value: &Value, span: Span) -> Result<LayoutAttr> {
    if let Some(fragment) = value.object::<FragmentValue>() {
        return Ok(LayoutAttr::FragmentMap(fragment.map.clone()));
    }
    if let Some(layout) = value.object::<LayoutValue>() {
        return Ok(layout.attr.clone());
    }
    Err(rec
        .error(
            codes::LAYOUT,
            span,
            format!(
                "`loop_layout` must be a T.Fragment, this is {}",
                value.type_name()
            ),
        )
        .into())
}

fn grid(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let axes = extents(rec, args, "T.grid")?;
    Ok(Value::Loop(Rc::new(LoopSpec::new(LoopKind::Serial, axes))))
}

/// The axes `0 .. extent` of a loop over several dimensions.
fn extents(rec: &mut Recorder, args: &CallArgs, what: &str) -> Result<Vec<AxisSpec>> {
    if args.rest().is_empty() {
        return Err(rec
            .error(
                codes::WRONG_ARITY,
                args.span(),
                format!("{what} needs at least one extent"),
            )
            .help(format!("write `{what}(rows, columns)`"))
            .into());
    }
    let mut axes = Vec::with_capacity(args.rest().len());
    for arg in args.rest() {
        let extent = rec.to_expr(&arg.value.clone(), arg.span)?;
        super::check_index(rec, &extent, arg.span, "an extent")?;
        if let Some(n) = rec.const_int(&extent)
            && n <= 0
        {
            return Err(rec
                .error(
                    codes::NON_POSITIVE,
                    arg.span,
                    format!("{what}: an extent must be positive, this is {n}"),
                )
                .help("leave the loop out, or compute the extent with `T.ceildiv`")
                .into());
        }
        axes.push(AxisSpec::upto(extent));
    }
    Ok(axes)
}

fn persistent(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    const WHAT: &str = "T.Persistent";
    let span = args.span_of("domain");
    let Some(domain) = args.required("domain").sequence().filter(|d| !d.is_empty()) else {
        return Err(rec
            .error(
                codes::WRONG_TYPE,
                span,
                format!("{WHAT}: the domain is a list of extents"),
            )
            .help("write `T.Persistent([tiles_m, tiles_n], wave_size, index)`")
            .into());
    };
    let mut axes = Vec::with_capacity(domain.len());
    for extent in &domain {
        let extent = rec.to_expr(extent, span)?;
        super::check_index(rec, &extent, span, "an extent")?;
        if let Some(n) = rec.const_int(&extent)
            && n <= 0
        {
            return Err(rec
                .error(
                    codes::NON_POSITIVE,
                    span,
                    format!("{WHAT}: an extent must be positive, this is {n}"),
                )
                .into());
        }
        axes.push(AxisSpec::upto(extent));
    }
    let scalar = |name: &str, default: i128| -> Result<Expr> {
        let value = args.value(name).cloned().unwrap_or(Value::Int(default));
        let span = args.span_of(name);
        let e = rec.to_expr(&value, span)?;
        super::check_index(rec, &e, span, name)?;
        let least = i128::from(name != "index");
        if let Some(n) = rec.const_int(&e)
            && n < least
        {
            return Err(rec
                .error(
                    codes::NON_POSITIVE,
                    span,
                    format!("{WHAT}: `{name}` must be at least {least}, this is {n}"),
                )
                .into());
        }
        Ok(e)
    };
    let kind = LoopKind::Persistent {
        wave_size: scalar("wave_size", 1)?,
        index: scalar("index", 0)?,
        group_size: scalar("group_size", 8)?,
    };
    Ok(Value::Loop(Rc::new(LoopSpec::new(kind, axes))))
}

fn thread_binding(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    const WHAT: &str = "T.thread_binding";
    let axis = bounds(rec, args, WHAT)?;
    let name = args.str("thread").unwrap_or_default();
    let kernel = rec.kernel("`T.thread_binding`")?;
    let letter = |name: &str| "xyz".find(name).filter(|_| name.len() == 1);
    let place = match name.split_once('.') {
        Some(("threadIdx", axis)) => letter(axis).map(|i| {
            let extent = Expr::i32(kernel.threads[i] as i32);
            (kernel.thread_vars[i], extent)
        }),
        Some(("blockIdx", axis)) => letter(axis).and_then(|i| kernel.grid.get(i).cloned()),
        _ => None,
    };
    let Some((var, extent)) = place else {
        return Err(rec
            .error(
                codes::THREAD_AXIS,
                args.span_of("thread"),
                format!("{WHAT}: \"{name}\" is no index of this launch"),
            )
            .help("use thread=\"threadIdx.x\" (y, z) or \"blockIdx.x\" (y, z)")
            .into());
    };
    let starts_at_zero = rec.const_int(&axis.start) == Some(0);
    if !starts_at_zero || !super::extents::extents_equal(rec, &axis.stop, &extent) {
        let show = |e: &Expr| super::extents::show_expr(rec, e);
        return Err(rec
            .error(
                codes::THREAD_AXIS,
                args.span(),
                format!(
                    "{WHAT}: {name} goes from 0 to {} in this launch, not from {} to {}",
                    show(&extent),
                    show(&axis.start),
                    show(&axis.stop)
                ),
            )
            .help("make the extents equal, or guard the body with an `if`")
            .into());
    }
    Ok(Value::Loop(Rc::new(LoopSpec::Bound(vec![
        rec.var_expr(var),
    ]))))
}

/// `(stop)` or `(start, stop)`, step one.
pub(super) fn bounds(rec: &mut Recorder, args: &CallArgs, what: &str) -> Result<AxisSpec> {
    let first = args.required("start").clone();
    let first_span = args.span_of("start");
    let first = rec.to_expr(&first, first_span)?;
    check_bound(rec, &first, first_span, what)?;
    let Some(stop) = args.value("stop").cloned() else {
        return Ok(AxisSpec::upto(first));
    };
    let span = args.span_of("stop");
    let stop = rec.to_expr(&stop, span)?;
    check_bound(rec, &stop, span, what)?;
    Ok(AxisSpec {
        step: Expr::int(1, stop.dtype()),
        start: first,
        stop,
    })
}

fn check_bound(rec: &Recorder, bound: &Expr, span: Span, what: &str) -> Result<()> {
    super::check_index(rec, bound, span, &format!("a bound of {what}")).map_err(|mut error| {
        error.code = codes::BAD_LOOP;
        error
    })
}

/// Start, stop and step in one type.
pub(super) fn one_dtype(rec: &Recorder, axis: AxisSpec, span: Span) -> Result<AxisSpec> {
    let dtype = [&axis.stop, &axis.step]
        .into_iter()
        .try_fold(axis.start.dtype(), |d, e| {
            tilewright_ir::dtype::promote(d, e.dtype())
        });
    let Some(dtype) = dtype else {
        return Ok(axis);
    };
    Ok(AxisSpec {
        start: rec.cast_expr(axis.start, dtype, span)?,
        stop: rec.cast_expr(axis.stop, dtype, span)?,
        step: rec.cast_expr(axis.step, dtype, span)?,
    })
}
