//! Annotations: layouts, block order, safe values, facts, hints. None changes what a correct
//! kernel computes.

use std::rc::Rc;

use tilewright_ir::compile_flags;
use tilewright_ir::{
    AttrValue, Buffer, Diagnostic, F64, LayoutAttr, RasterOrder, Scope, Span, StmtKind, Swizzle,
};

use super::extents::{shapes_equal, show_extents};
use super::layouts::{FragmentValue, LayoutValue, index_map};
use super::{CallArgs, LangFn, Ty, func, opt, req, rest};
use crate::record::{Program, Recorder};
use crate::value::{Frame, Value};
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    LangFn::calling(
        "annotate_layout",
        &[req("layout_map", Ty::Any)],
        annotate_layout,
    ),
    func(
        "use_swizzle",
        &[
            req("panel_size", Ty::Int),
            opt("order", Ty::Str),
            opt("enable", Ty::Bool),
        ],
        use_swizzle,
    ),
    func(
        "annotate_safe_value",
        &[req("safe_value_map", Ty::Any)],
        annotate_safe_value,
    ),
    func(
        "annotate_l2_hit_ratio",
        &[req("l2_hit_ratio_map", Ty::Any)],
        annotate_l2_hit_ratio,
    ),
    func(
        "annotate_min_blocks_per_sm",
        &[req("n", Ty::Int)],
        |rec, args| {
            let n = super::positive(rec, args, "n")?;
            rec.kernel_mut("`T.annotate_min_blocks_per_sm`")?
                .attrs
                .min_blocks_per_sm = n;
            Ok(Value::None)
        },
    ),
    func(
        "annotate_restrict_buffers",
        &[rest("buffers", Ty::Buffer)],
        annotate_restrict_buffers,
    ),
    func(
        "annotate_compile_flags",
        &[req("flags", Ty::Any)],
        annotate_compile_flags,
    ),
    func(
        "annotate_pass_configs",
        &[req("configs", Ty::Any)],
        annotate_pass_configs,
    ),
    func("assume", &[req("cond", Ty::Scalar)], |rec, args| {
        let value = args.required("cond").clone();
        let cond = rec.condition(&value, args.span_of("cond"))?;
        if cond.is_int(0) {
            return Err(rec
                .error(
                    codes::ASSERTION,
                    args.span_of("cond"),
                    "this is assumed, but it is always false",
                )
                .help("an assumption is a fact about sizes that the compiler cannot know")
                .into());
        }
        if !cond.is_int(1) {
            rec.emit(StmtKind::Assume(cond))?;
        }
        Ok(Value::None)
    }),
    func(
        "attr",
        &[
            req("node", Ty::Any),
            req("attr_key", Ty::Str),
            opt("value", Ty::Any),
        ],
        attr,
    ),
    func("evaluate", &[req("value", Ty::Any)], |_, _| {
        // Effects were recorded when the argument was evaluated; a pure value has none.
        Ok(Value::None)
    }),
    func("func_attr", &[req("attrs", Ty::Any)], |_, _| {
        Ok(Value::None)
    }),
    func("ws_op", &[req("op_id", Ty::Any)], |_, _| Ok(Value::None)),
];

fn annotate_layout(program: &mut dyn Program, args: &CallArgs) -> Result<Value> {
    let span = args.span_of("layout_map");
    let map = buffer_map(program.recorder(), args, "T.annotate_layout", "layout_map")?;
    for (buffer, value) in map {
        let rec = program.recorder();
        if rec.buffer(buffer).scope == Scope::Global {
            let name = rec.buffer_name(buffer);
            rec.warn(
                Diagnostic::warning(
                    codes::LAYOUT,
                    span,
                    format!("the layout of the global tensor {name} is ignored"),
                )
                .note("its elements stay where the caller has them; values are unaffected"),
            );
            continue;
        }
        let layout = layout_for(program, buffer, &value, span)?;
        program.recorder().buffer_mut(buffer).layout = Some(layout);
    }
    Ok(Value::None)
}

fn layout_for(
    program: &mut dyn Program,
    buffer: Buffer,
    value: &Value,
    span: Span,
) -> Result<LayoutAttr> {
    let rec = program.recorder();
    let (scope, shape) = {
        let data = rec.buffer(buffer);
        (data.scope, data.shape.clone())
    };
    let name = rec.buffer_name(buffer);
    let fits = |rec: &Recorder, of: &[tilewright_ir::Expr]| -> Result<()> {
        if shapes_equal(rec, of, &shape) {
            return Ok(());
        }
        Err(rec
            .error(
                codes::LAYOUT,
                span,
                format!(
                    "the layout is for the shape {}, {name} is {}",
                    show_extents(rec, of),
                    show_extents(rec, &shape)
                ),
            )
            .help(format!("make the layout for {name}'s shape"))
            .into())
    };
    match scope {
        Scope::Fragment => match value.object::<FragmentValue>() {
            Some(fragment) => {
                fits(rec, &fragment.shape)?;
                Ok(LayoutAttr::FragmentMap(fragment.map.clone()))
            }
            None => Err(rec
                .error(
                    codes::LAYOUT,
                    span,
                    format!("{name} is a fragment and needs a T.Fragment, this is {}", value.type_name()),
                )
                .help("`T.Fragment(shape, forward_fn=lambda i, j: (thread, slot))` says which thread holds what")
                .into()),
        },
        Scope::Shared => {
            if let Some(layout) = value.object::<LayoutValue>() {
                if let Some(of) = &layout.shape {
                    fits(rec, of)?;
                }
                return Ok(layout.attr.clone());
            }
            if matches!(value, Value::Function(_) | Value::Lang(_) | Value::Staged(_)) {
                return Ok(LayoutAttr::Map(index_map(program, &shape, value, span)?));
            }
            Err(rec
                .error(
                    codes::LAYOUT,
                    span,
                    format!("the layout of {name} is {}", value.type_name()),
                )
                .help("give a `T.Layout(shape, lambda i, j: ...)`, a function, or `tilelang.layout.make_swizzled_layout(buffer)`")
                .into())
        }
        Scope::Global | Scope::Local | Scope::Var | Scope::Barrier | Scope::Tmem | Scope::Reducer => {
            Err(rec
                .error(
                    codes::LAYOUT,
                    span,
                    format!("{name} is {} memory, whose layout is fixed", scope.name()),
                )
                .help("annotate shared memory and fragments")
                .into())
        }
    }
}

fn use_swizzle(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let order = args.str("order").unwrap_or("row");
    let raster = match order {
        "row" => RasterOrder::Row,
        "column" => RasterOrder::Column,
        "mlx" => {
            return Err(super::not_supported(
                rec,
                args.span_of("order"),
                "the block order \"mlx\"",
                "use \"row\" or \"column\"",
            ));
        }
        other => {
            return Err(rec
                .error(
                    codes::SWIZZLE,
                    args.span_of("order"),
                    format!("\"{other}\" is no order of blocks"),
                )
                .help("use order=\"row\" or order=\"column\"")
                .into());
        }
    };
    let panel = super::positive(rec, args, "panel_size")?;
    let Some(panel) = panel else {
        return Ok(Value::None);
    };
    if !args.bool_or(rec, "enable", true)? {
        return Ok(Value::None);
    }
    let swizzle = Swizzle {
        panel,
        order: raster,
    };
    let attrs = &mut rec.kernel_mut("`T.use_swizzle`")?.attrs;
    if attrs.swizzle.is_some_and(|old| old != swizzle) {
        return Err(rec
            .error(
                codes::SWIZZLE,
                args.span(),
                "the kernel already has another order of blocks",
            )
            .help("call T.use_swizzle once")
            .into());
    }
    attrs.swizzle = Some(swizzle);
    Ok(Value::None)
}

fn annotate_safe_value(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let span = args.span_of("safe_value_map");
    for (buffer, value) in buffer_map(rec, args, "T.annotate_safe_value", "safe_value_map")? {
        let (scope, dtype) = (rec.buffer(buffer).scope, rec.buffer(buffer).dtype);
        let name = rec.buffer_name(buffer);
        if scope != Scope::Global {
            return Err(rec
                .error(
                    codes::BUFFER_SCOPE,
                    span,
                    format!(
                        "{name} is {} memory; only global buffers have a safe value",
                        scope.name()
                    ),
                )
                .help("annotate the tensor that the tile is loaded from")
                .into());
        }
        let value = rec.to_expr_as(&value, dtype, span)?;
        if rec
            .buffer(buffer)
            .safe_value
            .as_ref()
            .is_some_and(|old| *old != value)
        {
            return Err(rec
                .error(
                    codes::BAD_OPTION,
                    span,
                    format!("{name} already has another safe value"),
                )
                .help("give a buffer one safe value in the whole function")
                .into());
        }
        rec.buffer_mut(buffer).safe_value = Some(value);
    }
    Ok(Value::None)
}

fn annotate_l2_hit_ratio(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let span = args.span_of("l2_hit_ratio_map");
    for (buffer, value) in buffer_map(rec, args, "T.annotate_l2_hit_ratio", "l2_hit_ratio_map")? {
        if let Some(ratio) = value.as_float()
            && !(0.0..=1.0).contains(&ratio)
        {
            return Err(rec
                .error(
                    codes::BAD_OPTION,
                    span,
                    format!("a hit ratio is between 0 and 1, this is {ratio}"),
                )
                .help("write a fraction, such as 0.8")
                .into());
        }
        let ratio = rec.to_expr_as(&value, tilewright_ir::DType::F32, span)?;
        let attrs = &mut rec.kernel_mut("`T.annotate_l2_hit_ratio`")?.attrs;
        attrs.l2_hit_ratio.push((buffer, ratio));
    }
    Ok(Value::None)
}

fn annotate_restrict_buffers(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let mut buffers = Vec::new();
    for arg in args.rest() {
        if let Value::Buffer(b) = arg.value {
            buffers.push(b);
        }
    }
    if !rec.building {
        return Err(rec.outside_kernel("`T.annotate_restrict_buffers`", args.span()));
    }
    // Before the first kernel it speaks of all that follow.
    match rec.in_kernel() {
        true => {
            let attrs = &mut rec.kernel_mut("`T.annotate_restrict_buffers`")?.attrs;
            attrs.may_alias.extend(buffers);
        }
        false => rec.lang.may_alias.extend(buffers),
    }
    Ok(Value::None)
}

fn annotate_compile_flags(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let value = args.required("flags").clone();
    let items = match &value {
        Value::Str(_) => vec![value.clone()],
        _ => value.sequence().unwrap_or_default(),
    };
    for item in items {
        match item.as_str() {
            Some(flag) if !compile_flags::is_allowed(flag) => {
                let message = format!("`{flag}` is not passed to the target's compiler");
                return Err(rec
                    .error(codes::COMPILE_FLAG, args.span_of("flags"), message)
                    .note("flags come with a kernel, and must not load code or run programs")
                    .help(format!("what may be given: {}", compile_flags::ALLOWED))
                    .into());
            }
            Some(flag) => rec.func.attrs.compile_flags.push(flag.to_string()),
            None => {
                return Err(rec.wrong_type("a string as a flag", &item, args.span_of("flags")));
            }
        }
    }
    Ok(Value::None)
}

fn annotate_pass_configs(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let span = args.span_of("configs");
    let value = args.required("configs").clone();
    let Value::Dict(items) = &value else {
        return Err(rec.wrong_type("a dict of settings", &value, span));
    };
    for entry in items.borrow().values() {
        let Some(key) = entry.key.as_str() else {
            return Err(rec.wrong_type("a string as the name of a setting", &entry.key, span));
        };
        let setting = attr_value(&entry.value).ok_or_else(|| {
            rec.wrong_type("a bool, number or string as a setting", &entry.value, span)
        })?;
        rec.func.attrs.pass_configs.insert(key.to_string(), setting);
    }
    Ok(Value::None)
}

fn attr_value(value: &Value) -> Option<AttrValue> {
    Some(match value {
        Value::None => AttrValue::None,
        Value::Bool(b) => AttrValue::Bool(*b),
        Value::Int(_) | Value::Dim(_) => AttrValue::Int(i64::try_from(value.as_int()?).ok()?),
        Value::Float(f) => AttrValue::Float(F64(*f)),
        Value::Str(s) => AttrValue::Str(s.to_string()),
        Value::DType(d) => AttrValue::DType(*d),
        Value::Tuple(_) | Value::List(_) => AttrValue::List(
            value
                .sequence()?
                .iter()
                .map(attr_value)
                .collect::<Option<_>>()?,
        ),
        _ => return None,
    })
}

/// `T.attr(node, key, value)`: the one key with a meaning makes a reducer current.
fn attr(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let key = args.str("attr_key").unwrap_or_default();
    let node = args.required("node").clone();
    let reducer = match key {
        "reduce_scope" => {
            if node.object::<super::allreduce::CommReducer>().is_none() {
                return Err(rec
                    .error(
                        codes::WRONG_TYPE,
                        args.span_of("node"),
                        format!(
                            "\"reduce_scope\" is for a reducer, this is {}",
                            node.type_name()
                        ),
                    )
                    .help("make one with `T.comm_reducer(lambda x, y: x + y, [identity])`")
                    .into());
            }
            Some(node)
        }
        _ => {
            if !key.starts_with("pragma") {
                rec.warn(Diagnostic::warning(
                    codes::BAD_OPTION,
                    args.span_of("attr_key"),
                    format!("the attribute \"{key}\" has no meaning here and is ignored"),
                ));
            }
            None
        }
    };
    Ok(Value::Frame(Rc::new(AttrFrame { reducer })))
}

#[derive(Debug)]
struct AttrFrame {
    reducer: Option<Value>,
}

impl Frame for AttrFrame {
    fn enter(&self, rec: &mut Recorder, _: Span) -> Result<Value> {
        rec.lang.reducers.extend(self.reducer.clone());
        Ok(Value::None)
    }

    fn exit(&self, rec: &mut Recorder, _: Span) -> Result<()> {
        if self.reducer.is_some() {
            rec.lang.reducers.pop();
        }
        Ok(())
    }
}

/// The entries of a dict from buffers to something.
fn buffer_map(
    rec: &Recorder,
    args: &CallArgs,
    what: &str,
    name: &str,
) -> Result<Vec<(Buffer, Value)>> {
    let span = args.span_of(name);
    let value = args.required(name);
    let Value::Dict(items) = value else {
        return Err(rec.wrong_type(&format!("a dict from buffers for {what}"), value, span));
    };
    items
        .borrow()
        .values()
        .map(|entry| match &entry.key {
            Value::Buffer(b) => Ok((*b, entry.value.clone())),
            other => Err(rec.wrong_type(&format!("a buffer as a key of {what}"), other, span)),
        })
        .collect()
}
