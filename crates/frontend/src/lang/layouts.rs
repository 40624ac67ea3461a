//! Layouts as values: `T.Layout`, `T.Fragment`, and the ready-made ones of `tilelang.layout`.

use std::any::Any;
use std::rc::Rc;

use tilewright_ir::{DType, Expr, FragmentMap, IndexMap, LayoutAttr, Scope, Span, Var, VarKind};

use super::{CallArgs, LangFn, ParamSpec, Ty, func, kwrest, opt, req};
use crate::eval::Stage;
use crate::value::{Object, Value};
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func(
        "Layout",
        &[req("shape", Ty::Shape), req("forward_fn", Ty::Callable)],
        layout,
    ),
    func(
        "Fragment",
        &[
            req("shape", Ty::Shape),
            opt("forward_fn", Ty::Callable),
            opt("forward_thread_fn", Ty::Callable),
            opt("replicate", Ty::Int),
            opt("forward_index_fn", Ty::Callable),
        ],
        fragment,
    ),
    func("make_swizzled_layout", READY, |s, a| {
        ready(s, a, LayoutAttr::Swizzled)
    }),
    func("make_wgmma_swizzled_layout", READY, |s, a| {
        ready(s, a, LayoutAttr::Swizzled)
    }),
    func("make_full_bank_swizzled_layout", READY, |s, a| {
        ready(s, a, LayoutAttr::Swizzled)
    }),
    func("make_half_bank_swizzled_layout", READY, |s, a| {
        ready(s, a, LayoutAttr::Swizzled)
    }),
    func("make_quarter_bank_swizzled_layout", READY, |s, a| {
        ready(s, a, LayoutAttr::Swizzled)
    }),
    func("make_mma_swizzle_layout", READY, |s, a| {
        ready(s, a, LayoutAttr::Swizzled)
    }),
    func("make_mfma_swizzle_layout", READY, |s, a| {
        ready(s, a, LayoutAttr::Swizzled)
    }),
    func("make_linear_layout", READY, |s, a| {
        ready(s, a, LayoutAttr::Linear)
    }),
];

const READY: &[ParamSpec] = &[req("buffer", Ty::Buffer), kwrest("options")];

/// A placement in shared memory.
#[derive(Debug)]
pub struct LayoutValue {
    /// The shape it is for, where it says one.
    pub shape: Option<Vec<Expr>>,
    pub attr: LayoutAttr,
}

impl Object for LayoutValue {
    fn type_name(&self) -> &'static str {
        "a layout"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A placement over threads and their registers.
#[derive(Debug)]
pub struct FragmentValue {
    pub shape: Vec<Expr>,
    pub map: FragmentMap,
}

impl Object for FragmentValue {
    fn type_name(&self) -> &'static str {
        "a fragment layout"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn layout(stage: &mut Stage, args: &CallArgs) -> Result<Value> {
    let shape = args.shape(stage, "shape")?;
    let f = args.required("forward_fn").clone();
    let map = index_map(stage, &shape, &f, args.span_of("forward_fn"))?;
    Ok(Value::Object(Rc::new(LayoutValue {
        shape: Some(shape),
        attr: LayoutAttr::Map(map),
    })))
}

/// The map that a function of logical indices describes.
pub(super) fn index_map(
    stage: &mut Stage,
    shape: &[Expr],
    f: &Value,
    span: Span,
) -> Result<IndexMap> {
    let inputs = inputs(stage, shape, span);
    let values = indices(stage, &inputs);
    let result = stage.call_value(f, values, span)?;
    let outputs = outputs(stage, &result, span)?;
    if outputs.is_empty() {
        return Err(stage
            .error(codes::LAYOUT, span, "the layout function gives no index")
            .into());
    }
    Ok(IndexMap { inputs, outputs })
}

fn fragment(stage: &mut Stage, args: &CallArgs) -> Result<Value> {
    const WHAT: &str = "T.Fragment";
    let shape = args.shape(stage, "shape")?;
    let span = args.span();
    let replicas = args.int_or(stage, "replicate", 1)?;
    let replicas = u32::try_from(replicas)
        .ok()
        .filter(|n| (1..=1024).contains(n))
        .ok_or_else(|| {
            crate::Error::from(stage.error(
                codes::NON_POSITIVE,
                args.span_of("replicate"),
                format!("`replicate` is between 1 and 1024, this is {replicas}"),
            ))
        })?;
    let inputs = inputs(stage, &shape, span);
    let replica = (replicas > 1).then(|| {
        let var = stage.new_var("rep", DType::I32, VarKind::Bound, span);
        stage.var_bounds.insert(var, (0, i128::from(replicas) - 1));
        var
    });
    let logical = indices(stage, &inputs);
    let mut with_replica = logical.clone();
    with_replica.extend(replica.map(|v| Value::Expr(stage.var_expr(v))));
    let call = |stage: &mut Stage, name: &str, values: Vec<Value>| -> Result<Option<Vec<Expr>>> {
        match args.value(name).cloned() {
            None => Ok(None),
            Some(f) => {
                let at = args.span_of(name);
                let result = stage.call_value(&f, values, at)?;
                outputs(stage, &result, at).map(Some)
            }
        }
    };
    let (thread, slots) = match call(stage, "forward_fn", with_replica.clone())? {
        Some(mut both) if both.len() >= 2 => (both.remove(0), both),
        Some(_) => {
            return Err(stage
                .error(
                    codes::LAYOUT,
                    args.span_of("forward_fn"),
                    format!("{WHAT}: `forward_fn` gives the thread and the register index"),
                )
                .help("write `lambda i, j: (thread, slot)`")
                .into());
        }
        None => {
            let thread = call(stage, "forward_thread_fn", with_replica)?;
            let slots = call(stage, "forward_index_fn", logical)?;
            match thread {
                Some(mut thread) if thread.len() == 1 => {
                    let slots = slots.unwrap_or_else(|| vec![Expr::i32(0)]);
                    (thread.remove(0), slots)
                }
                _ => {
                    return Err(stage
                        .error(
                            codes::LAYOUT,
                            span,
                            format!("{WHAT} needs `forward_fn`, or `forward_thread_fn` and `forward_index_fn`"),
                        )
                        .help("say which thread holds each element, and in which register")
                        .into());
                }
            }
        }
    };
    Ok(Value::Object(Rc::new(FragmentValue {
        shape,
        map: FragmentMap {
            inputs,
            replica,
            replicas,
            thread,
            slots,
        },
    })))
}

fn ready(stage: &mut Stage, args: &CallArgs, attr: LayoutAttr) -> Result<Value> {
    let buffer = args.buffer(stage, "buffer")?;
    let data = stage.buffer(buffer);
    if data.scope != Scope::Shared {
        return Err(stage
            .error(
                codes::LAYOUT,
                args.span_of("buffer"),
                format!(
                    "this layout is for shared memory; {} is {}",
                    stage.buffer_name(buffer),
                    data.scope.name()
                ),
            )
            .into());
    }
    let shape = Some(data.shape.clone());
    Ok(Value::Object(Rc::new(LayoutValue { shape, attr })))
}

/// One variable a dimension, with its range.
fn inputs(stage: &mut Stage, shape: &[Expr], span: Span) -> Vec<Var> {
    shape
        .iter()
        .enumerate()
        .map(|(i, extent)| {
            let name = ["i", "j", "k", "l"].get(i).copied().unwrap_or("m");
            let var = stage.new_var(name, DType::I32, VarKind::Bound, span);
            if let Some(n) = stage.const_int(extent) {
                stage.var_bounds.insert(var, (0, n - 1));
            }
            var
        })
        .collect()
}

fn indices(stage: &Stage, vars: &[Var]) -> Vec<Value> {
    vars.iter()
        .map(|v| Value::Expr(stage.var_expr(*v)))
        .collect()
}

fn outputs(stage: &Stage, result: &Value, span: Span) -> Result<Vec<Expr>> {
    let items = result.sequence().unwrap_or_else(|| vec![result.clone()]);
    items
        .iter()
        .map(|item| {
            let e = stage.to_expr(item, span)?;
            super::check_index(stage, &e, span, "what a layout function gives")?;
            Ok(e)
        })
        .collect()
}
