//! Layouts as values: `T.Layout`, `T.Fragment`, and the ready-made ones of `tilelang.layout`.

use std::any::Any;
use std::rc::Rc;

use tilewright_ir::{DType, Expr, FragmentMap, IndexMap, LayoutAttr, Scope, Span, Var, VarKind};

use super::{CallArgs, LangFn, ParamSpec, Ty, func, kwrest, opt, req};
use crate::record::{Program, Recorder};
use crate::value::{Object, Value};
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    LangFn::calling(
        "Layout",
        &[req("shape", Ty::Shape), req("forward_fn", Ty::Callable)],
        layout,
    ),
    LangFn::calling(
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

fn layout(program: &mut dyn Program, args: &CallArgs) -> Result<Value> {
    let shape = args.shape(program.recorder(), "shape")?;
    let f = args.required("forward_fn").clone();
    let map = index_map(program, &shape, &f, args.span_of("forward_fn"))?;
    Ok(Value::Object(Rc::new(LayoutValue {
        shape: Some(shape),
        attr: LayoutAttr::Map(map),
    })))
}

/// The map that a function of logical indices describes.
pub(super) fn index_map(
    program: &mut dyn Program,
    shape: &[Expr],
    f: &Value,
    span: Span,
) -> Result<IndexMap> {
    let rec = program.recorder();
    let inputs = inputs(rec, shape, span);
    let values = indices(rec, &inputs);
    let result = program.call_value(f, values, span)?;
    let rec = program.recorder();
    let outputs = outputs(rec, &result, span)?;
    if outputs.is_empty() {
        return Err(rec
            .error(codes::LAYOUT, span, "the layout function gives no index")
            .into());
    }
    Ok(IndexMap { inputs, outputs })
}

fn fragment(program: &mut dyn Program, args: &CallArgs) -> Result<Value> {
    const WHAT: &str = "T.Fragment";
    let rec = program.recorder();
    let shape = args.shape(rec, "shape")?;
    let span = args.span();
    let replicas = args.int_or(rec, "replicate", 1)?;
    let replicas = u32::try_from(replicas)
        .ok()
        .filter(|n| (1..=1024).contains(n))
        .ok_or_else(|| {
            crate::Error::from(rec.error(
                codes::NON_POSITIVE,
                args.span_of("replicate"),
                format!("`replicate` is between 1 and 1024, this is {replicas}"),
            ))
        })?;
    let inputs = inputs(rec, &shape, span);
    let replica = (replicas > 1).then(|| {
        let var = rec.new_var("rep", DType::I32, VarKind::Bound, span);
        rec.var_bounds.insert(var, (0, i128::from(replicas) - 1));
        var
    });
    let logical = indices(rec, &inputs);
    let mut with_replica = logical.clone();
    with_replica.extend(replica.map(|v| Value::Expr(rec.var_expr(v))));
    let call =
        |program: &mut dyn Program, name: &str, values: Vec<Value>| -> Result<Option<Vec<Expr>>> {
            match args.value(name).cloned() {
                None => Ok(None),
                Some(f) => {
                    let at = args.span_of(name);
                    let result = program.call_value(&f, values, at)?;
                    outputs(program.recorder(), &result, at).map(Some)
                }
            }
        };
    let (thread, slots) = match call(program, "forward_fn", with_replica.clone())? {
        Some(mut both) if both.len() >= 2 => (both.remove(0), both),
        Some(_) => {
            return Err(program
                .recorder()
                .error(
                    codes::LAYOUT,
                    args.span_of("forward_fn"),
                    format!("{WHAT}: `forward_fn` gives the thread and the register index"),
                )
                .help("write `lambda i, j: (thread, slot)`")
                .into());
        }
        None => {
            let thread = call(program, "forward_thread_fn", with_replica)?;
            let slots = call(program, "forward_index_fn", logical)?;
            match thread {
                Some(mut thread) if thread.len() == 1 => {
                    let slots = slots.unwrap_or_else(|| vec![Expr::i32(0)]);
                    (thread.remove(0), slots)
                }
                _ => {
                    return Err(program.recorder()
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

fn ready(rec: &mut Recorder, args: &CallArgs, attr: LayoutAttr) -> Result<Value> {
    let buffer = args.buffer(rec, "buffer")?;
    let data = rec.buffer(buffer);
    if data.scope != Scope::Shared {
        return Err(rec
            .error(
                codes::LAYOUT,
                args.span_of("buffer"),
                format!(
                    "this layout is for shared memory; {} is {}",
                    rec.buffer_name(buffer),
                    data.scope.name()
                ),
            )
            .into());
    }
    let shape = Some(data.shape.clone());
    Ok(Value::Object(Rc::new(LayoutValue { shape, attr })))
}

/// One variable a dimension, with its range.
fn inputs(rec: &mut Recorder, shape: &[Expr], span: Span) -> Vec<Var> {
    shape
        .iter()
        .enumerate()
        .map(|(i, extent)| {
            let name = ["i", "j", "k", "l"].get(i).copied().unwrap_or("m");
            let var = rec.new_var(name, DType::I32, VarKind::Bound, span);
            if let Some(n) = rec.const_int(extent) {
                rec.var_bounds.insert(var, (0, n - 1));
            }
            var
        })
        .collect()
}

fn indices(rec: &Recorder, vars: &[Var]) -> Vec<Value> {
    vars.iter().map(|v| Value::Expr(rec.var_expr(*v))).collect()
}

fn outputs(rec: &Recorder, result: &Value, span: Span) -> Result<Vec<Expr>> {
    let items = result.sequence().unwrap_or_else(|| vec![result.clone()]);
    items
        .iter()
        .map(|item| {
            let e = rec.to_expr(item, span)?;
            super::check_index(rec, &e, span, "what a layout function gives")?;
            Ok(e)
        })
        .collect()
}
