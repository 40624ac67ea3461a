//! Reductions of tiles along one dimension.

use tilewright_ir::{
    BinOp, Expr, MathFn, ReduceKind, ReduceOp, Region, Scalar, Scope, StmtKind, TileOp,
};

use super::extents::{shapes_equal, show_extents};
use super::limits::identity;
use super::{CallArgs, LangFn, ParamSpec, Ty, func, opt, req, threads};
use crate::record::Recorder;
use crate::record::convert::Tile;
use crate::value::Value;
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func(
        "reduce",
        &[
            BUFFER,
            OUT,
            req("reduce_type", Ty::Str),
            req("dim", Ty::Int),
            req("clear", Ty::Bool),
            BATCH,
            NAN,
            ANNOTATIONS,
        ],
        reduce_named,
    ),
    func("reduce_sum", PLAIN, |s, a| reduce(s, a, ReduceKind::Sum)),
    func("reduce_max", WITH_NAN, |s, a| reduce(s, a, ReduceKind::Max)),
    func("reduce_min", WITH_NAN, |s, a| reduce(s, a, ReduceKind::Min)),
    func("reduce_absmax", WITH_NAN, |s, a| {
        reduce(s, a, ReduceKind::AbsMax)
    }),
    func(
        "reduce_abssum",
        &[BUFFER, OUT, DIM, BATCH, ANNOTATIONS],
        |s, a| reduce(s, a, ReduceKind::AbsSum),
    ),
    func("reduce_bitand", PLAIN, |s, a| {
        reduce(s, a, ReduceKind::BitAnd)
    }),
    func("reduce_bitor", PLAIN, |s, a| {
        reduce(s, a, ReduceKind::BitOr)
    }),
    func("reduce_bitxor", PLAIN, |s, a| {
        reduce(s, a, ReduceKind::BitXor)
    }),
];

const BUFFER: ParamSpec = req("buffer", Ty::Tile);
const OUT: ParamSpec = req("out", Ty::Tile);
const DIM: ParamSpec = opt("dim", Ty::Int);
const CLEAR: ParamSpec = opt("clear", Ty::Bool);
const BATCH: ParamSpec = opt("batch", Ty::Int);
const NAN: ParamSpec = opt("nan_propagate", Ty::Bool);
const ANNOTATIONS: ParamSpec = opt("annotations", Ty::Any);
const PLAIN: &[ParamSpec] = &[BUFFER, OUT, DIM, CLEAR, BATCH, ANNOTATIONS];
const WITH_NAN: &[ParamSpec] = &[BUFFER, OUT, DIM, CLEAR, BATCH, NAN, ANNOTATIONS];

fn reduce_named(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let name = args.str("reduce_type").unwrap_or_default();
    match ReduceKind::from_name(name) {
        Some(kind) => reduce(rec, args, kind),
        None => {
            let names: Vec<&str> = ReduceKind::ALL.iter().map(|k| k.name()).collect();
            Err(rec
                .error(
                    codes::BAD_OPTION,
                    args.span_of("reduce_type"),
                    format!("`{name}` is no kind of reduction"),
                )
                .help(format!("use one of {}", names.join(", ")))
                .into())
        }
    }
}

fn reduce(rec: &mut Recorder, args: &CallArgs, kind: ReduceKind) -> Result<Value> {
    let what = format!("T.reduce_{}", kind.name());
    let (src_tile, dst_tile) = (args.tile(rec, "buffer")?, args.tile(rec, "out")?);
    for (tile, name) in [(&src_tile, "buffer"), (&dst_tile, "out")] {
        let is_var = rec.buffer(tile.buffer()).scope == Scope::Var;
        if matches!(tile, Tile::Element(_)) && !is_var {
            return Err(rec
                .error(
                    codes::WRONG_TYPE,
                    args.span_of(name),
                    format!("{what} works on whole buffers, this is one element"),
                )
                .help("pass the buffer without an index")
                .into());
        }
    }
    let (src, dst) = (src_tile.region(rec), dst_tile.region(rec));
    let batch = args.int_or(rec, "batch", 1)?;
    if batch < 1 {
        return Err(rec
            .error(
                codes::NON_POSITIVE,
                args.span_of("batch"),
                format!("`batch` must be at least 1, this is {batch}"),
            )
            .help("it is a hint; leave it out")
            .into());
    }
    check_scopes(rec, args, &what, &src, &dst)?;
    check_dtypes(rec, args, &what, kind, &src, &dst)?;
    let rank = src.dims.len();
    let dim = dimension(rec, args, args.int_or(rec, "dim", -1)?, rank, &what)?;
    check_shape(rec, args, &what, &src, &dst, dim)?;
    let has = |name: &str| args.is_param(name);
    let clear = if has("clear") {
        args.bool_or(rec, "clear", true)?
    } else {
        true
    };
    let op = ReduceOp {
        kind,
        src,
        dst,
        dim: dim as u32,
        clear,
        nan_propagate: has("nan_propagate") && args.bool_or(rec, "nan_propagate", false)?,
    };
    if threads::is_private(rec, op.src.buffer) {
        reduce_by_thread(rec, &op)?;
    } else {
        rec.emit_tile(TileOp::Reduce(op))?;
    }
    Ok(Value::None)
}

/// A dimension counted from either end.
pub(super) fn dimension(
    rec: &Recorder,
    args: &CallArgs,
    dim: i64,
    rank: usize,
    what: &str,
) -> Result<usize> {
    let from_start = if dim < 0 { dim + rank as i64 } else { dim };
    match usize::try_from(from_start) {
        Ok(d) if d < rank => Ok(d),
        _ => Err(rec
            .error(
                codes::REDUCE_DIM,
                args.span_of("dim"),
                format!("{what}: there is no dimension {dim}; the buffer has {rank}"),
            )
            .help(format!(
                "`dim` is between -{rank} and {}",
                rank.saturating_sub(1)
            ))
            .into()),
    }
}

fn check_scopes(
    rec: &Recorder,
    args: &CallArgs,
    what: &str,
    src: &Region,
    dst: &Region,
) -> Result<()> {
    let scope = |r: &Region| rec.buffer(r.buffer).scope;
    let in_block = |s: Scope| matches!(s, Scope::Shared | Scope::Fragment);
    let in_thread = |s: Scope| matches!(s, Scope::Local | Scope::Var);
    let (s, d) = (scope(src), scope(dst));
    if in_block(s) && in_block(d) {
        if src.buffer == dst.buffer {
            return Err(rec
                .error(
                    codes::REDUCE_SCOPE,
                    args.span_of("out"),
                    format!("{what} cannot write into the buffer it reads"),
                )
                .help("reduce into another buffer")
                .into());
        }
        return Ok(());
    }
    if in_thread(s) && in_thread(d) {
        let (a, b) = (rec.buffer(src.buffer).dtype, rec.buffer(dst.buffer).dtype);
        if a != b {
            return Err(rec
                .error(
                    codes::REDUCE_DTYPE,
                    args.span(),
                    format!(
                        "{what} of each thread's own memory needs one dtype, these are {a} and {b}"
                    ),
                )
                .into());
        }
        return Ok(());
    }
    let help = match (s, d) {
        (Scope::Global, _) => "copy the tile to a fragment first: `T.copy(A[...], fragment)`",
        (_, Scope::Global) => "reduce into a fragment and copy that out",
        _ => "reduce shared or fragment buffers into each other, or local ones into local ones",
    };
    Err(rec
        .error(
            codes::REDUCE_SCOPE,
            args.span(),
            format!("{what} cannot go from {} to {}", s.name(), d.name()),
        )
        .help(help)
        .into())
}

fn check_dtypes(
    rec: &Recorder,
    args: &CallArgs,
    what: &str,
    kind: ReduceKind,
    src: &Region,
    dst: &Region,
) -> Result<()> {
    for (region, name) in [(src, "buffer"), (dst, "out")] {
        let dtype = rec.buffer(region.buffer).dtype;
        let is_bits = dtype.scalar.is_int() || dtype.scalar == Scalar::Bool;
        if kind.is_bitwise() && !is_bits {
            return Err(rec
                .error(
                    codes::REDUCE_DTYPE,
                    args.span_of(name),
                    format!("{what} works on integers and bools, this is {dtype}"),
                )
                .help("use `T.reduce_sum`, `T.reduce_max` or `T.reduce_min` on floats")
                .into());
        }
        if identity(kind, dtype).is_none() {
            return Err(rec
                .error(
                    codes::REDUCE_DTYPE,
                    args.span_of(name),
                    format!("{what} is not defined on {dtype}"),
                )
                .into());
        }
    }
    Ok(())
}

/// The destination has the source's shape without the dimension, or with one there.
fn check_shape(
    rec: &Recorder,
    args: &CallArgs,
    what: &str,
    src: &Region,
    dst: &Region,
    dim: usize,
) -> Result<()> {
    let extents = |r: &Region| -> Vec<Expr> { r.dims.iter().map(|d| d.extent.clone()).collect() };
    let (whole, out) = (extents(src), extents(dst));
    let mut removed = whole.clone();
    removed.remove(dim);
    let mut kept = whole.clone();
    kept[dim] = Expr::i32(1);
    if shapes_equal(rec, &out, &removed) || shapes_equal(rec, &out, &kept) {
        return Ok(());
    }
    let expected = if removed.is_empty() {
        show_extents(rec, &kept)
    } else {
        format!(
            "{} or {}",
            show_extents(rec, &removed),
            show_extents(rec, &kept)
        )
    };
    Err(rec
        .error(
            codes::REDUCE_SHAPE,
            args.span_of("out"),
            format!(
                "{what} of {} along dimension {dim} gives {expected}, but {} is {}",
                show_extents(rec, &whole),
                rec.buffer_name(dst.buffer),
                show_extents(rec, &out)
            ),
        )
        .help("change the shape of `out`, or the dimension")
        .into())
}

/// The reduction of memory that each thread has of its own, as loops.
fn reduce_by_thread(rec: &mut Recorder, op: &ReduceOp) -> Result<()> {
    let dim = op.dim as usize;
    let dtype = rec.buffer(op.dst.buffer).dtype;
    let outer: Vec<Expr> = op
        .src
        .dims
        .iter()
        .enumerate()
        .map(|(i, d)| {
            if i == dim {
                Expr::i32(1)
            } else {
                d.extent.clone()
            }
        })
        .collect();
    let inner = [op.src.dims[dim].extent.clone()];
    let start = identity(op.kind, dtype).unwrap_or_else(|| Expr::zero(dtype));
    threads::nest(rec, &outer, |rec, outer| {
        let mut out_offsets = outer.to_vec();
        if op.dst.dims.len() < op.src.dims.len() {
            out_offsets.remove(dim);
        }
        let out = threads::point(&op.dst, &out_offsets);
        let store = |rec: &mut Recorder, value: Expr| {
            rec.emit(StmtKind::Store {
                buffer: op.dst.buffer,
                indices: out.clone(),
                value,
            })
        };
        if op.clear {
            store(rec, start)?;
        }
        let loops = outer_loops(outer);
        threads::nest_inside(rec, loops, &inner, |rec, along| {
            let mut offsets = outer.to_vec();
            offsets[dim] = along[0].clone();
            let value = Expr::load(op.src.buffer, threads::point(&op.src, &offsets), dtype);
            let so_far = Expr::load(op.dst.buffer, out.clone(), dtype);
            let value = fold(op.kind, op.nan_propagate, so_far, value);
            store(rec, value)
        })
    })
}

/// How many of the indices are loop indices.
fn outer_loops(indices: &[Expr]) -> usize {
    indices.iter().filter(|i| i.as_var().is_some()).count()
}

/// One step of a reduction: what was folded so far with the next value.
pub(super) fn fold(kind: ReduceKind, nan_propagate: bool, acc: Expr, value: Expr) -> Expr {
    let magnitude = |v: Expr| {
        if v.dtype().scalar.is_float() || v.dtype().scalar.is_signed_int() {
            Expr::math(MathFn::Abs, vec![v])
        } else {
            v
        }
    };
    let (op, value) = match kind {
        ReduceKind::Sum => (BinOp::Add, value),
        ReduceKind::AbsSum => (BinOp::Add, magnitude(value)),
        ReduceKind::Max => (BinOp::Max, value),
        ReduceKind::Min => (BinOp::Min, value),
        ReduceKind::AbsMax => (BinOp::Max, magnitude(value)),
        ReduceKind::BitAnd => (BinOp::BitAnd, value),
        ReduceKind::BitOr => (BinOp::BitOr, value),
        ReduceKind::BitXor => (BinOp::BitXor, value),
    };
    let folded = Expr::bin(op, acc.clone(), value.clone());
    if !nan_propagate || !value.dtype().scalar.is_float() || !matches!(op, BinOp::Max | BinOp::Min)
    {
        return folded;
    }
    // NaN is the value that differs from itself; the sum of anything with it is NaN again.
    let dtype = value.dtype();
    let is_nan = |v: &Expr| Expr::math(MathFn::IsNan, vec![v.clone()]);
    let either = is_nan(&acc).or(is_nan(&value));
    Expr::new(
        tilewright_ir::ExprKind::Select {
            cond: either,
            then: Expr::bin(BinOp::Add, acc, value),
            otherwise: folded,
        },
        dtype,
        tilewright_ir::Span::NONE,
    )
}
