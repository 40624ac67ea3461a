//! Reducers: many points contribute to one value, which is read when all have.
//!
//! Two spellings mean the same: `T.reducer_init`, `T.reducer_update`, `T.finalize_reducer(acc,
//! dst)`; and the older `T.clear(acc)`, `acc[i] += v`, `T.finalize_reducer(acc)`, then reading
//! `acc`. The older one is recorded as the newer.

use tilewright_ir::{
    Axis, BinOp, Buffer, BufferOrigin, DType, Expr, ExprKind, Loop, LoopKind, ReduceKind, Region,
    Scope, Span, StmtKind, TileOp, VarKind,
};

use super::extents::{shapes_equal, show_extents};
use super::limits::identity;
use super::{CallArgs, LangFn, Ty, func, opt, req, threads};
use crate::record::Recorder;
use crate::record::convert::Tile;
use crate::record::emit::BlockKind;
use crate::value::Value;
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func(
        "reducer_init",
        &[req("reducer", Ty::Buffer), opt("init", Ty::Scalar)],
        init,
    ),
    func(
        "reducer_update",
        &[req("target", Ty::Tile), req("value", Ty::Scalar)],
        update,
    ),
    func(
        "finalize_reducer",
        &[
            req("reducer", Ty::Buffer),
            opt("dst", Ty::Tile),
            opt("batch", Ty::Int),
            opt("annotations", Ty::Any),
        ],
        finalize,
    ),
];

/// The kinds that a reducer may fold with.
pub(super) const KINDS: [ReduceKind; 6] = [
    ReduceKind::Sum,
    ReduceKind::Max,
    ReduceKind::Min,
    ReduceKind::BitAnd,
    ReduceKind::BitOr,
    ReduceKind::BitXor,
];

fn init(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let (reducer, _) = reducer(rec, args.buffer(rec, "reducer")?, args.span_of("reducer"))?;
    let dtype = rec.buffer(reducer).dtype;
    let span = args.span_of("init");
    let init = match args.value("init").cloned() {
        None => None,
        Some(value) => {
            if let Value::Expr(e) = &value
                && e.dtype() != dtype
                && e.as_int().is_none()
                && e.as_float().is_none()
            {
                return Err(rec
                    .error(
                        codes::OPERAND_TYPES,
                        span,
                        format!("the reducer holds {dtype}, this value is {}", e.dtype()),
                    )
                    .help(format!("cast it: `T.cast(value, \"{dtype}\")`"))
                    .into());
            }
            Some(rec.to_expr_as(&value, dtype, span)?)
        }
    };
    rec.emit_tile(TileOp::ReducerInit { reducer, init })?;
    Ok(Value::None)
}

fn update(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let span = args.span_of("target");
    let Tile::Element(target) = args.tile(rec, "target")? else {
        return Err(rec
            .error(
                codes::WRONG_TYPE,
                span,
                "T.reducer_update contributes to one element",
            )
            .help("index it: `T.reducer_update(acc[i], value)`")
            .into());
    };
    let (buffer, _) = reducer(rec, target.buffer, span)?;
    let dtype = rec.buffer(buffer).dtype;
    let value = args.required("value").clone();
    let value = rec.to_expr_as(&value, dtype, args.span_of("value"))?;
    contribute(rec, buffer, target.indices.clone(), value, args.span())?;
    Ok(Value::None)
}

fn finalize(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let (reducer, _) = reducer(rec, args.buffer(rec, "reducer")?, args.span_of("reducer"))?;
    super::positive(rec, args, "batch")?;
    let dst = match args.has("dst") {
        true => Some(destination(rec, args, reducer)?),
        false => None,
    };
    rec.emit_tile(TileOp::ReducerFinalize { reducer, dst })?;
    Ok(Value::None)
}

fn destination(rec: &mut Recorder, args: &CallArgs, reducer: Buffer) -> Result<Region> {
    let span = args.span_of("dst");
    let dst = args.tile(rec, "dst")?.region(rec);
    let (from, to) = (rec.buffer(reducer), rec.buffer(dst.buffer));
    if !matches!(
        to.scope,
        Scope::Fragment | Scope::Shared | Scope::Global | Scope::Local
    ) {
        return Err(rec
            .error(
                codes::BUFFER_SCOPE,
                span,
                format!("a reducer cannot be folded into {} memory", to.scope.name()),
            )
            .help("fold it into a fragment")
            .into());
    }
    let extents: Vec<Expr> = dst.dims.iter().map(|d| d.extent.clone()).collect();
    if !shapes_equal(rec, &from.shape, &extents) {
        return Err(rec
            .error(
                codes::REDUCE_SHAPE,
                span,
                format!(
                    "the reducer has the shape {}, the destination {}",
                    show_extents(rec, &from.shape),
                    show_extents(rec, &extents)
                ),
            )
            .help("the destination has one element for each of the reducer's")
            .into());
    }
    Ok(dst)
}

/// A copy of what a reducer holds once it is finished: each point reads its element.
pub(super) fn copy(
    rec: &mut Recorder,
    args: &CallArgs,
    src: &Region,
    dst: &Region,
) -> Result<Value> {
    let span = args.span();
    if rec.in_parallel() {
        let message = "a tile operation cannot stand inside `T.Parallel`";
        return Err(rec.error(codes::BAD_LOOP, span, message).into());
    }
    let extents = src.dims.iter().map(|d| d.extent.clone());
    let extents: Vec<Expr> = extents.filter(|e| !e.is_int(1)).collect();
    let mut axes = Vec::new();
    let mut offsets = Vec::new();
    for extent in extents {
        let name = ["i", "j", "k", "l"].get(axes.len()).copied();
        let var = rec.new_var(name.unwrap_or("m"), extent.dtype(), VarKind::Loop, span);
        offsets.push(rec.var_expr(var));
        axes.push(Axis::upto(var, extent));
    }
    if axes.is_empty() {
        let var = rec.new_var("i", DType::I32, VarKind::Loop, span);
        axes.push(Axis::upto(var, Expr::i32(1)));
    }
    let (from, to) = (rec.buffer(src.buffer).dtype, rec.buffer(dst.buffer).dtype);
    let value = Expr::load(src.buffer, threads::point_of_non_unit(src, &offsets), from);
    let value = rec.cast_expr(value.with_span(args.span_of("src")), to, span)?;
    rec.open_block(BlockKind::Parallel, span)?;
    rec.emit(StmtKind::Store {
        buffer: dst.buffer,
        indices: threads::point_of_non_unit(dst, &offsets),
        value,
    })?;
    let body = rec.close_block();
    let kind = LoopKind::Parallel {
        coalesced_width: None,
        layout: None,
    };
    rec.emit(StmtKind::For(Loop { kind, axes, body }))?;
    Ok(Value::None)
}

/// The older spelling of `T.reducer_init`: `T.clear(acc)` and `T.fill(acc, value)`.
pub(super) fn fill(rec: &mut Recorder, args: &CallArgs, tile: &Tile, value: Expr) -> Result<Value> {
    let span = args.span_of("buffer");
    let Tile::Buffer(buffer) = tile else {
        return Err(rec
            .error(
                codes::REDUCER_ACCESS,
                span,
                "a reducer is filled as a whole, not in parts",
            )
            .help("write `T.clear(acc)` or `T.fill(acc, value)`")
            .into());
    };
    let (reducer, kind) = reducer(rec, *buffer, span)?;
    let dtype = rec.buffer(reducer).dtype;
    let init = match identity(kind, dtype) {
        Some(same) if same == value => None,
        _ if matches!(kind, ReduceKind::Max | ReduceKind::Min) => Some(value),
        _ => {
            return Err(rec
                .error(
                    codes::REDUCER_ACCESS,
                    args.span(),
                    format!(
                        "a {} reducer can only be filled with the value that changes nothing",
                        kind.name()
                    ),
                )
                .help("start from a value with `T.reducer_init(acc, value)`")
                .into());
        }
    };
    rec.emit_tile(TileOp::ReducerInit { reducer, init })?;
    Ok(Value::None)
}

/// A store to an element of a reducer, which must be a contribution: `acc[i] += v` for a sum,
/// `acc[i] = T.max(acc[i], v)` for a maximum, and so on. `value` is the whole right side.
pub(crate) fn reducer_store(
    rec: &mut Recorder,
    buffer: Buffer,
    indices: Vec<Expr>,
    value: &Expr,
    span: Span,
) -> Result<()> {
    let (_, kind) = reducer(rec, buffer, span)?;
    let dtype = rec.buffer(buffer).dtype;
    let op = match kind {
        ReduceKind::Max => BinOp::Max,
        ReduceKind::Min => BinOp::Min,
        ReduceKind::BitAnd => BinOp::BitAnd,
        ReduceKind::BitOr => BinOp::BitOr,
        ReduceKind::BitXor => BinOp::BitXor,
        ReduceKind::Sum | ReduceKind::AbsSum | ReduceKind::AbsMax => BinOp::Add,
    };
    // Promotion may have wrapped the sum and the old value in casts.
    let is_old = |e: &Expr| match strip_casts(e).kind() {
        ExprKind::Load {
            buffer: b,
            indices: i,
        } => *b == buffer && *i == indices,
        _ => false,
    };
    let contribution = match strip_casts(value).kind() {
        ExprKind::Binary(o, a, b) if *o == op && is_old(a) => Some(b),
        ExprKind::Binary(o, a, b) if *o == op && is_old(b) => Some(a),
        _ => None,
    };
    let Some(contribution) = contribution else {
        let name = rec.buffer_name(buffer);
        let form = match op {
            BinOp::Add => "acc[i] += value",
            BinOp::Max => "acc[i] = T.max(acc[i], value)",
            BinOp::Min => "acc[i] = T.min(acc[i], value)",
            BinOp::BitAnd => "acc[i] &= value",
            BinOp::BitOr => "acc[i] |= value",
            _ => "acc[i] ^= value",
        };
        return Err(rec
            .error(
                codes::REDUCER_ACCESS,
                span,
                format!(
                    "{name} folds with {}; this store is no contribution to it",
                    kind.name()
                ),
            )
            .help(format!(
                "write `{form}` or `T.reducer_update(acc[i], value)`"
            ))
            .into());
    };
    let contribution = rec.cast_expr(contribution.clone(), dtype, span)?;
    contribute(rec, buffer, indices, contribution, span)
}

fn contribute(
    rec: &mut Recorder,
    reducer: Buffer,
    indices: Vec<Expr>,
    value: Expr,
    span: Span,
) -> Result<()> {
    if !rec.in_parallel() {
        return Err(rec
            .error(
                codes::REDUCER_LIFECYCLE,
                span,
                format!(
                    "a contribution to {} outside `T.Parallel`",
                    rec.buffer_name(reducer)
                ),
            )
            .note("each point of the parallel loop contributes once; outside, every thread would")
            .help("contribute inside a `for … in T.Parallel(...)` loop")
            .into());
    }
    rec.emit_tile(TileOp::ReducerUpdate {
        reducer,
        indices,
        value,
    })
}

/// The buffer as a reducer, with its operation.
fn reducer(rec: &Recorder, buffer: Buffer, span: Span) -> Result<(Buffer, ReduceKind)> {
    match &rec.buffer(buffer).origin {
        BufferOrigin::Reducer(kind) => Ok((buffer, *kind)),
        _ => Err(rec
            .error(
                codes::REDUCER_ACCESS,
                span,
                format!(
                    "{} is {} memory, not a reducer",
                    rec.buffer_name(buffer),
                    rec.buffer(buffer).scope.name()
                ),
            )
            .help("allocate it with `T.alloc_reducer(shape, dtype, op)`")
            .into()),
    }
}

fn strip_casts(e: &Expr) -> &Expr {
    match e.kind() {
        ExprKind::Cast(inner) => strip_casts(inner),
        _ => e,
    }
}
