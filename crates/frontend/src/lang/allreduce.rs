//! Reductions over the threads of a block with an operation of the user's:
//! `T.comm_reducer` and `T.tvm_thread_allreduce`.

use std::any::Any;
use std::rc::Rc;

use tilewright_ir::{Combiner, Expr, Scope, Span, ThreadOp, VarKind};

use super::{CallArgs, LangFn, Ty, func, kw, req, rest};
use crate::record::convert::Tile;
use crate::record::{Program, Recorder};
use crate::value::{Object, Value};
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func(
        "comm_reducer",
        &[req("combiner", Ty::Callable), req("identity", Ty::Any)],
        comm_reducer,
    ),
    LangFn::calling(
        "tvm_thread_allreduce",
        &[rest("args", Ty::Any), kw("dtype", Ty::Any)],
        thread_allreduce,
    ),
];

/// What `T.comm_reducer` makes: an operation and what it starts from.
#[derive(Debug)]
pub struct CommReducer {
    combiner: Value,
    identity: Value,
    span: Span,
}

impl Object for CommReducer {
    fn type_name(&self) -> &'static str {
        "a reducer"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn comm_reducer(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let identity = args.required("identity").clone();
    let mut items = identity.sequence().unwrap_or_else(|| vec![identity]);
    if items.len() != 1 {
        return Err(super::not_supported(
            rec,
            args.span_of("identity"),
            &format!("a reducer of {} values at once", items.len()),
            "reduce one value at a time: `T.comm_reducer(lambda x, y: x + y, [identity])`",
        ));
    }
    Ok(Value::Object(Rc::new(CommReducer {
        combiner: args.required("combiner").clone(),
        identity: items.remove(0),
        span: args.span(),
    })))
}

fn thread_allreduce(program: &mut dyn Program, args: &CallArgs) -> Result<Value> {
    let rec = program.recorder();
    const WHAT: &str = "T.tvm_thread_allreduce";
    let [count, value, cond, dst, axes @ ..] = args.rest() else {
        return Err(rec
            .error(
                codes::WRONG_ARITY,
                args.span(),
                format!("{WHAT} takes a count, a value, a condition, a destination and thread axes"),
            )
            .help("write `T.tvm_thread_allreduce(T.uint32(1), value, True, dst[0], tx, dtype=\"handle\")`")
            .into());
    };
    let n = rec.to_int(&count.value.clone(), count.span, "the number of values")?;
    if n != 1 {
        return Err(super::not_supported(
            rec,
            count.span,
            &format!("{WHAT} of {n} values"),
            "reduce one value at a time",
        ));
    }
    let Some(reducer) = rec.lang.reducers.last().cloned() else {
        return Err(rec
            .error(
                codes::ALLREDUCE,
                args.span(),
                format!("{WHAT} does not know what to reduce with"),
            )
            .help("put it into `with T.attr(T.comm_reducer(lambda x, y: x + y, [0]), \"reduce_scope\", ...):`")
            .into());
    };
    let (buffer, dst_indices) = destination(rec, &dst.value.clone(), dst.span)?;
    let dtype = rec.buffer(buffer).dtype;
    let value = rec.to_expr_as(&value.value.clone(), dtype, value.span)?;
    let cond = rec.condition(&cond.value.clone(), cond.span)?;
    let axes = thread_axes(rec, axes, args.span())?;
    if rec.in_parallel() {
        return Err(rec
            .error(
                codes::ALLREDUCE,
                args.span(),
                format!("{WHAT} inside `T.Parallel`: it is done by all threads together"),
            )
            .into());
    }
    let combiner = combiner(program, &reducer, dtype, args.span())?;
    program.recorder().emit_thread(ThreadOp::AllReduce {
        combiner,
        value,
        cond,
        dst: buffer,
        dst_indices,
        axes,
    })?;
    Ok(Value::None)
}

/// The user's operation on two values of the type.
fn combiner(
    program: &mut dyn Program,
    reducer: &Value,
    dtype: tilewright_ir::DType,
    span: Span,
) -> Result<Combiner> {
    let Some(CommReducer {
        combiner,
        identity,
        span: made_at,
    }) = reducer.object::<CommReducer>()
    else {
        return Err(program.recorder().wrong_type("a reducer", reducer, span));
    };
    let rec = program.recorder();
    let lhs = rec.new_var("x", dtype, VarKind::Bound, *made_at);
    let rhs = rec.new_var("y", dtype, VarKind::Bound, *made_at);
    let operands = [lhs, rhs].map(|v| Value::Expr(rec.var_expr(v)));
    let mut body = program.call_value(combiner, operands.to_vec(), *made_at)?;
    if let Some(items) = body.sequence()
        && let [only] = &items[..]
    {
        body = only.clone();
    }
    let rec = program.recorder();
    Ok(Combiner {
        lhs,
        rhs,
        body: rec.to_expr_as(&body, dtype, *made_at)?,
        identity: rec.to_expr_as(identity, dtype, *made_at)?,
    })
}

fn destination(
    rec: &Recorder,
    value: &Value,
    span: Span,
) -> Result<(tilewright_ir::Buffer, Vec<Expr>)> {
    let place = match value {
        Value::Buffer(b) => Some((*b, Tile::Buffer(*b))),
        Value::Element(e) => Some((e.buffer, Tile::Element(e.clone()))),
        _ => None,
    };
    let Some((buffer, tile)) = place else {
        return Err(rec.wrong_type("an element to receive the result", value, span));
    };
    let scope = rec.buffer(buffer).scope;
    if !matches!(scope, Scope::Local | Scope::Var) {
        return Err(rec
            .error(
                codes::ALLREDUCE,
                span,
                format!(
                    "each thread receives the result, so {} memory cannot",
                    scope.name()
                ),
            )
            .help("allocate the destination with `T.alloc_local((1,), dtype)`")
            .into());
    }
    let region = tile.region(rec);
    Ok((buffer, region.dims.into_iter().map(|d| d.start).collect()))
}

/// The numbers of the thread axes, ascending.
fn thread_axes(rec: &Recorder, args: &[super::Arg], span: Span) -> Result<Vec<u8>> {
    let mut axes = Vec::new();
    for arg in args {
        let e = rec.to_expr(&arg.value, arg.span)?;
        let axis = e.as_var().and_then(|var| rec.thread_axis(var));
        let Some(axis) = axis else {
            return Err(rec
                .error(
                    codes::ALLREDUCE,
                    arg.span,
                    "a thread index is meant: the axis to reduce over",
                )
                .help("pass what `T.get_thread_binding(dim)` gave, unchanged")
                .into());
        };
        if axes.contains(&axis) {
            return Err(rec
                .error(
                    codes::ALLREDUCE,
                    arg.span,
                    "this thread axis is named twice",
                )
                .into());
        }
        axes.push(axis);
    }
    if axes.is_empty() {
        return Err(rec
            .error(
                codes::ALLREDUCE,
                span,
                "T.tvm_thread_allreduce names no thread axis to reduce over",
            )
            .help("pass `T.get_thread_binding(0)` after the destination")
            .into());
    }
    axes.sort_unstable();
    Ok(axes)
}

impl Recorder {
    /// Which thread axis a variable is, looking through names for it.
    fn thread_axis(&self, var: tilewright_ir::Var) -> Option<u8> {
        match self.func.vars[var].kind {
            VarKind::ThreadIdx(axis) => Some(axis),
            _ => None,
        }
    }
}
