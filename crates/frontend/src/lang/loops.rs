//! Loops.

use std::rc::Rc;

use tilewright_ir::LoopKind;

use crate::Result;
use crate::codes;
use crate::eval::Stage;
use crate::lang::{CallArgs, LangFn, Ty, kw, rest};
use crate::value::{AxisSpec, LoopSpec, Value};

pub(super) static FNS: &[LangFn] = &[
    LangFn::new("serial", SERIAL, |s, a| serial(s, a, LoopKind::Serial)),
    LangFn::new("Serial", SERIAL, |s, a| serial(s, a, LoopKind::Serial)),
    LangFn::new("Parallel", PARALLEL, parallel),
];

const SERIAL: &[crate::lang::ParamSpec] = &[rest("bounds", Ty::Scalar), kw("annotations", Ty::Any)];
const PARALLEL: &[crate::lang::ParamSpec] = &[
    rest("extents", Ty::Scalar),
    kw("coalesced_width", Ty::Int),
    kw("loop_layout", Ty::Any),
    kw("prefer_async", Ty::Any),
    kw("annotations", Ty::Any),
];

fn serial(stage: &mut Stage, args: &CallArgs, kind: LoopKind) -> Result<Value> {
    if args.rest().is_empty() || args.rest().len() > 3 {
        let message = format!("`{}` takes one to three bounds", args.name());
        return Err(stage.error(codes::WRONG_ARITY, args.span(), message).into());
    }
    let bounds: Vec<Value> = args.rest().iter().map(|a| a.value.clone()).collect();
    let axes = vec![stage.axis(&bounds, args.span())?];
    Ok(Value::Loop(Rc::new(LoopSpec::Axes { kind, axes })))
}

fn parallel(stage: &mut Stage, args: &CallArgs) -> Result<Value> {
    if args.rest().is_empty() {
        let message = "`T.Parallel` needs an extent";
        return Err(stage.error(codes::WRONG_ARITY, args.span(), message).into());
    }
    let mut axes = Vec::new();
    for arg in args.rest() {
        let axis = stage.axis(std::slice::from_ref(&arg.value), arg.span)?;
        if let Some(v) = stage.const_int(&axis.stop)
            && v <= 0
        {
            let message = format!("an extent must be positive, this is {v}");
            return Err(stage.error(codes::NON_POSITIVE, arg.span, message).into());
        }
        axes.push(AxisSpec::upto(axis.stop));
    }
    let coalesced_width = args.int(stage, "coalesced_width")?;
    Ok(Value::Loop(Rc::new(LoopSpec::Axes {
        kind: LoopKind::Parallel {
            coalesced_width: coalesced_width.and_then(|w| u32::try_from(w).ok()),
            layout: None,
        },
        axes,
    })))
}
