//! Copies between tiles: `T.copy`, the asynchronous ones, `T.transpose` and `T.im2col`.

use tilewright_ir::{
    ArriveAt, BinOp, Buffer, CopyHints, CopyKind, CopyOp, Diagnostic, EvictionPolicy, Expr,
    Im2colOp, Region, Scalar, Scope, StmtKind, ThreadOp, TileOp,
};

use super::barrier::barrier_element;
use super::extents::{Sides, extents_equal, pair, show_extents};
use super::threads;
use super::{CallArgs, LangFn, Ty, func, kw, opt, req};
use crate::record::Recorder;
use crate::record::convert::Tile;
use crate::record::emit::BlockKind;
use crate::value::{Element, Value};
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func(
        "copy",
        &[
            req("src", Ty::Tile),
            req("dst", Ty::Tile),
            kw("coalesced_width", Ty::Int),
            kw("disable_tma", Ty::Bool),
            kw("eviction_policy", Ty::Str),
            kw("prefer_instruction", Ty::Str),
            kw("annotations", Ty::Any),
            kw("loop_layout", Ty::Any),
        ],
        copy,
    ),
    func(
        "async_copy",
        &[
            req("src", Ty::Tile),
            req("dst", Ty::Tile),
            kw("coalesced_width", Ty::Int),
            kw("annotations", Ty::Any),
            kw("loop_layout", Ty::Any),
        ],
        async_copy,
    ),
    func(
        "tma_copy",
        &[
            req("src", Ty::Tile),
            req("dst", Ty::Tile),
            kw("barrier", Ty::Any),
            kw("cluster_mask", Ty::Any),
            kw("leader_scope_threads", Ty::Int),
            kw("eviction_policy", Ty::Str),
            kw("annotations", Ty::Any),
        ],
        tma_copy,
    ),
    func(
        "copy_cluster",
        &[
            req("src", Ty::Tile),
            req("dst", Ty::Tile),
            kw("dst_block", Ty::Any),
            kw("cluster_mask", Ty::Any),
            kw("remote_barrier", Ty::Any),
            kw("eviction_policy", Ty::Str),
            kw("coalesced_width", Ty::Int),
            kw("annotations", Ty::Any),
            kw("loop_layout", Ty::Any),
        ],
        copy_cluster,
    ),
    func(
        "transpose",
        &[
            req("src", Ty::Tile),
            req("dst", Ty::Tile),
            opt("annotations", Ty::Any),
        ],
        transpose,
    ),
    func("im2col", IM2COL, im2col),
    func("c2d_im2col", IM2COL, im2col),
];

const IM2COL: &[super::ParamSpec] = &[
    req("img", Ty::Tile),
    req("col", Ty::Tile),
    req("nhw_step", Ty::Scalar),
    req("c_step", Ty::Scalar),
    req("kernel", Ty::Int),
    req("stride", Ty::Int),
    req("dilation", Ty::Int),
    req("pad", Ty::Int),
    opt("eviction_policy", Ty::Str),
    opt("annotations", Ty::Any),
];

fn copy(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let hints = CopyHints {
        coalesced_width: super::positive(rec, args, "coalesced_width")?,
        disable_tma: args.bool_or(rec, "disable_tma", false)?,
        eviction: eviction(rec, args)?,
        prefer_instruction: args.str("prefer_instruction").map(|s| s.to_string()),
    };
    copy_wishing(rec, args, hints)
}

/// The copy of the operands, with these wishes.
fn copy_wishing(rec: &mut Recorder, args: &CallArgs, hints: CopyHints) -> Result<Value> {
    let (src, dst) = (args.tile(rec, "src")?, args.tile(rec, "dst")?);
    check_copyable(rec, args, &src, &dst)?;
    let Some((src, dst)) = pair(rec, sides("T.copy", args, &src, &dst))? else {
        return assign(rec, args, &src, &dst);
    };
    if rec.buffer(src.buffer).scope == Scope::Reducer {
        return super::reducer::copy(rec, args, &src, &dst);
    }
    if threads::is_private(rec, src.buffer) || threads::is_private(rec, dst.buffer) {
        return copy_by_thread(rec, args, src, dst);
    }
    rec.emit_tile(TileOp::Copy(CopyOp {
        src,
        dst,
        kind: CopyKind::Sync,
        hints,
    }))?;
    Ok(Value::None)
}

fn async_copy(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let hints = CopyHints {
        coalesced_width: super::positive(rec, args, "coalesced_width")?,
        ..CopyHints::default()
    };
    let (src, dst) = (args.tile(rec, "src")?, args.tile(rec, "dst")?);
    check_scopes(
        rec,
        args,
        "T.async_copy",
        &src,
        &dst,
        &[(Scope::Global, Scope::Shared)],
    )?;
    check_same_dtype(rec, args, "T.async_copy", src.buffer(), dst.buffer())?;
    let Some((src, dst)) = pair(rec, sides("T.async_copy", args, &src, &dst))? else {
        return Err(no_extents(rec, args, "T.async_copy"));
    };
    rec.emit_tile(TileOp::Copy(CopyOp {
        src,
        dst,
        kind: CopyKind::Async,
        hints,
    }))?;
    Ok(Value::None)
}

fn tma_copy(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    const WHAT: &str = "T.tma_copy";
    let hints = CopyHints {
        eviction: eviction(rec, args)?,
        ..CopyHints::default()
    };
    let multicast = super::cluster::mask(rec, args)?;
    let (src, dst) = (args.tile(rec, "src")?, args.tile(rec, "dst")?);
    let pairs = [
        (Scope::Global, Scope::Shared),
        (Scope::Shared, Scope::Global),
    ];
    check_scopes(rec, args, WHAT, &src, &dst, &pairs)?;
    check_same_dtype(rec, args, WHAT, src.buffer(), dst.buffer())?;
    let is_load = rec.buffer(src.buffer()).scope == Scope::Global;
    let barrier = match (args.value("barrier"), is_load) {
        (Some(value), true) => {
            let value = value.clone();
            Some(barrier_element(rec, &value, args.span_of("barrier"))?)
        }
        (None, true) => {
            return Err(rec
                .error(
                    codes::TMA_BARRIER,
                    args.span(),
                    "a bulk load needs the barrier that its bytes complete",
                )
                .help("allocate one with `T.alloc_barrier(arrive_count)` and pass `barrier=`, or use `T.copy`")
                .into());
        }
        (Some(_), false) => {
            return Err(rec
                .error(
                    codes::TMA_BARRIER,
                    args.span_of("barrier"),
                    "a bulk store completes no barrier",
                )
                .help("leave `barrier` out and wait with `T.tma_store_wait()`")
                .into());
        }
        (None, false) => None,
    };
    if multicast.is_some() {
        let span = args.span_of("cluster_mask");
        let Some((barrier, _)) = &barrier else {
            return Err(rec
                .error(codes::CLUSTER, span, "a bulk store goes to no other block")
                .help("leave `cluster_mask` out")
                .into());
        };
        super::cluster::rank(rec, "`cluster_mask`", span)?;
        let span = args.span_of("barrier");
        super::cluster::check_reached(rec, *barrier, span, "the copy")?;
    }
    let Some((src, dst)) = pair(rec, sides(WHAT, args, &src, &dst))? else {
        return Err(no_extents(rec, args, WHAT));
    };
    rec.emit_tile(TileOp::Copy(CopyOp {
        src,
        dst,
        kind: CopyKind::Tma {
            barrier,
            multicast,
            alone: false,
        },
        hints,
    }))?;
    Ok(Value::None)
}

/// One load for several blocks of a cluster, complete when it ends: a bulk copy with a barrier of its
/// own, behind a barrier of the cluster.
fn copy_cluster(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    const WHAT: &str = "T.copy_cluster";
    for name in ["dst_block", "remote_barrier"] {
        if args.has(name) {
            return Err(super::not_supported(
                rec,
                args.span_of(name),
                "a copy to the shared memory of another block",
                "hand the data over through a tensor, with `T.cluster_sync()` between",
            ));
        }
    }
    let hints = CopyHints {
        coalesced_width: super::positive(rec, args, "coalesced_width")?,
        eviction: eviction(rec, args)?,
        ..CopyHints::default()
    };
    let Some(multicast) = super::cluster::mask(rec, args)? else {
        super::cluster::blocks(rec, "`T.copy_cluster`", args.span())?;
        return copy_wishing(rec, args, hints);
    };
    super::sync::check_uniform(rec, args, WHAT)?;
    if !rec.once() {
        return Err(rec
            .error(
                codes::CLUSTER,
                args.span(),
                "T.copy_cluster with a mask in a loop, a branch or a warp group",
            )
            .note("it waits for its own barrier, of which each copy is one phase")
            .help(
                "allocate one with `T.alloc_cluster_barrier(1)` before it and use `T.tma_copy(src, \
                 dst, barrier=b, cluster_mask=m)`, an arrival and a wait",
            )
            .into());
    }
    let (src, dst) = (args.tile(rec, "src")?, args.tile(rec, "dst")?);
    let pairs = [(Scope::Global, Scope::Shared)];
    check_scopes(rec, args, WHAT, &src, &dst, &pairs)?;
    check_same_dtype(rec, args, WHAT, src.buffer(), dst.buffer())?;
    let Some((src, dst)) = pair(rec, sides(WHAT, args, &src, &dst))? else {
        return Err(no_extents(rec, args, WHAT));
    };
    super::cluster::rank(rec, "`cluster_mask`", args.span_of("cluster_mask"))?;
    let barrier = super::alloc::barriers(rec, vec![1], args.span())?;
    rec.lang.cluster_barriers.push(barrier);
    let first = Expr::i32(0);
    // What was in the tiles of all blocks is used up.
    rec.emit_thread(ThreadOp::SyncCluster)?;
    rec.emit_tile(TileOp::Copy(CopyOp {
        src,
        dst,
        kind: CopyKind::Tma {
            barrier: Some((barrier, first.clone())),
            multicast: Some(multicast),
            alone: false,
        },
        hints,
    }))?;
    let span = rec.span();
    let me = super::warp::linear_thread(rec, "`T.copy_cluster`")?;
    let zero = Expr::zero(me.dtype());
    let cond = rec.binary_expr(BinOp::Eq, me, zero, span)?;
    rec.open_block(BlockKind::Branch, span)?;
    let arrived = rec.emit_thread(ThreadOp::BarrierArrive {
        at: ArriveAt::Own,
        barrier,
        index: first.clone(),
        warp: false,
    });
    let then = rec.close_block();
    arrived?;
    rec.emit(StmtKind::If {
        cond,
        then,
        otherwise: Vec::new(),
    })?;
    rec.emit_thread(ThreadOp::BarrierWait {
        barrier,
        index: first.clone(),
        parity: first,
    })?;
    Ok(Value::None)
}

fn transpose(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let (src, dst) = (args.tile(rec, "src")?, args.tile(rec, "dst")?);
    let pairs = [(Scope::Shared, Scope::Shared)];
    check_scopes(rec, args, "T.transpose", &src, &dst, &pairs)?;
    let (src, dst) = (src.region(rec), dst.region(rec));
    let (s, d) = (src.non_unit_extents(), dst.non_unit_extents());
    let (rows_cols, cols_rows) = match (&src.dims[..], &dst.dims[..]) {
        ([a, b], [c, d]) => ((&a.extent, &b.extent), (&d.extent, &c.extent)),
        _ => match (&s[..], &d[..]) {
            ([a, b], [c, d]) => ((*a, *b), (*d, *c)),
            _ => return Err(transpose_shapes(rec, args, &src, &dst)),
        },
    };
    if !extents_equal(rec, rows_cols.0, cols_rows.0)
        || !extents_equal(rec, rows_cols.1, cols_rows.1)
    {
        return Err(transpose_shapes(rec, args, &src, &dst));
    }
    if src.buffer == dst.buffer {
        return Err(rec
            .error(
                codes::COPY_OVERLAP,
                args.span(),
                "T.transpose cannot work in place",
            )
            .help("transpose into another buffer")
            .into());
    }
    rec.emit_tile(TileOp::Transpose { src, dst })?;
    Ok(Value::None)
}

fn transpose_shapes(rec: &Recorder, args: &CallArgs, src: &Region, dst: &Region) -> crate::Error {
    let show = |r: &Region| show_extents(rec, r.dims.iter().map(|d| &d.extent));
    rec.error(
        codes::SHAPE,
        args.span(),
        format!(
            "T.transpose: {} is not the transpose of {}",
            show(dst),
            show(src)
        ),
    )
    .help("source and destination are matrices, (m, n) and (n, m)")
    .into()
}

fn im2col(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    const WHAT: &str = "T.im2col";
    eviction(rec, args)?;
    let (image, col) = (args.tile(rec, "img")?, args.tile(rec, "col")?);
    let Tile::Buffer(image) = image else {
        return Err(rec
            .error(
                codes::SHAPE,
                args.span_of("img"),
                "T.im2col gathers from a whole image tensor, not from a part of one",
            )
            .into());
    };
    let rank = rec.buffer(image).shape.len();
    if rank != 4 || rec.buffer(image).scope != Scope::Global {
        return Err(rec
            .error(
                codes::SHAPE,
                args.span_of("img"),
                format!(
                    "T.im2col needs a global tensor of shape (N, H, W, C); {} is {} and has {rank} dimensions",
                    rec.buffer_name(image),
                    rec.buffer(image).scope.name(),
                ),
            )
            .into());
    }
    let dst = col.region(rec);
    if !matches!(
        rec.buffer(dst.buffer).scope,
        Scope::Shared | Scope::Fragment
    ) {
        return Err(scope_error(
            rec,
            args.span_of("col"),
            WHAT,
            dst.buffer,
            "shared",
        ));
    }
    let leading = dst.dims.len().saturating_sub(2);
    if dst.dims.len() < 2 || dst.dims[..leading].iter().any(|d| !d.extent.is_int(1)) {
        let shown = show_extents(rec, dst.dims.iter().map(|d| &d.extent));
        return Err(rec
            .error(
                codes::SHAPE,
                args.span_of("col"),
                format!("T.im2col writes a matrix (BM, BK); this has the extents {shown}"),
            )
            .into());
    }
    check_same_dtype(rec, args, WHAT, image, dst.buffer)?;
    let at_least = |rec: &mut Recorder, name: &str, least: i128| -> Result<u32> {
        let value = args.value(name).cloned().unwrap_or(Value::None);
        let v = rec.to_int(&value, args.span_of(name), name)?;
        u32::try_from(v).ok().filter(|_| v >= least).ok_or_else(|| {
            rec.error(
                codes::WRONG_VALUE,
                args.span_of(name),
                format!("`{name}` must be at least {least}, this is {v}"),
            )
            .into()
        })
    };
    let op = Im2colOp {
        image,
        dst,
        m_step: rec.to_expr(args.required("nhw_step"), args.span_of("nhw_step"))?,
        k_step: rec.to_expr(args.required("c_step"), args.span_of("c_step"))?,
        kernel: at_least(rec, "kernel", 1)?,
        stride: at_least(rec, "stride", 1)?,
        dilation: at_least(rec, "dilation", 1)?,
        pad: at_least(rec, "pad", 0)?,
    };
    for (name, step) in [("nhw_step", &op.m_step), ("c_step", &op.k_step)] {
        super::check_index(rec, step, args.span_of(name), name)?;
    }
    rec.emit_tile(TileOp::Im2col(op))?;
    Ok(Value::None)
}

/// Two single elements: an assignment by each thread.
fn assign(rec: &mut Recorder, args: &CallArgs, src: &Tile, dst: &Tile) -> Result<Value> {
    let (Tile::Element(src), Tile::Element(dst)) = (src, dst) else {
        return Ok(Value::None);
    };
    if !rec.in_parallel() {
        rec.warn(
            Diagnostic::warning(
                codes::COPY_ONE_ELEMENT,
                args.span(),
                "T.copy between two elements copies one element",
            )
            .note("an element takes the extents of the other side, and neither side has any")
            .help("slice a side, `A[i:i + n]`, or copy to or from a tile; `B[j] = A[i]` for one element"),
        );
    }
    let value = rec.load(src)?;
    store(rec, args, dst, value)?;
    Ok(Value::None)
}

fn store(rec: &mut Recorder, args: &CallArgs, dst: &Element, value: Expr) -> Result<()> {
    rec.store(dst, &Value::Expr(value), args.span())
}

/// A copy where one side belongs to each thread alone.
fn copy_by_thread(rec: &mut Recorder, args: &CallArgs, src: Region, dst: Region) -> Result<Value> {
    for (private, other, name) in [(&src, &dst, "dst"), (&dst, &src, "src")] {
        let scope = rec.buffer(other.buffer).scope;
        if threads::is_private(rec, private.buffer) && scope == Scope::Fragment {
            return Err(rec
                .error(
                    codes::COPY_SCOPE,
                    args.span_of(name),
                    format!(
                        "T.copy between {}, which each thread has of its own, and the fragment {}",
                        rec.buffer_name(private.buffer),
                        rec.buffer_name(other.buffer)
                    ),
                )
                .note("a fragment is one tensor spread over the threads; no thread holds all of it")
                .help("go through shared memory, or make both sides fragments")
                .into());
        }
    }
    let dtype = rec.buffer(dst.buffer).dtype;
    let src_dtype = rec.buffer(src.buffer).dtype;
    let extents: Vec<Expr> = dst.non_unit_extents().into_iter().cloned().collect();
    threads::nest(rec, &extents, |rec, offsets| {
        let from = threads::point_of_non_unit(&src, offsets);
        let indices = threads::point_of_non_unit(&dst, offsets);
        let value = Expr::load(src.buffer, from, src_dtype).with_span(args.span_of("src"));
        rec.emit(StmtKind::Store {
            buffer: dst.buffer,
            indices,
            value: value.cast_to(dtype),
        })
    })?;
    Ok(Value::None)
}

fn sides<'a>(what: &'a str, args: &CallArgs, src: &'a Tile, dst: &'a Tile) -> Sides<'a> {
    Sides {
        what,
        src,
        src_span: args.span_of("src"),
        dst,
        dst_span: args.span_of("dst"),
    }
}

/// Refuses what holds no copyable data: barriers, reducers, addresses.
fn check_copyable(rec: &Recorder, args: &CallArgs, src: &Tile, dst: &Tile) -> Result<()> {
    for (tile, name) in [(src, "src"), (dst, "dst")] {
        let data = rec.buffer(tile.buffer());
        let help = match data.scope {
            Scope::Barrier => {
                "a barrier holds no data; use `T.mbarrier_arrive` and `T.mbarrier_wait_parity`"
            }
            Scope::Reducer if name == "src" && !threads::is_private(rec, dst.buffer()) => {
                continue;
            }
            Scope::Reducer => "finish it with `T.finalize_reducer(acc, dst)` and copy `dst`",
            Scope::Global
            | Scope::Shared
            | Scope::Fragment
            | Scope::Local
            | Scope::Var
            | Scope::Tmem => continue,
        };
        return Err(rec
            .error(
                codes::COPY_SCOPE,
                args.span_of(name),
                format!(
                    "T.copy cannot work on {}, which is a {}",
                    rec.buffer_name(tile.buffer()),
                    data.scope.name()
                ),
            )
            .help(help)
            .into());
    }
    let (s, d) = (
        rec.buffer(src.buffer()).dtype,
        rec.buffer(dst.buffer()).dtype,
    );
    if (s.scalar == Scalar::Handle) != (d.scalar == Scalar::Handle) {
        return Err(rec
            .error(
                codes::OPERAND_TYPES,
                args.span(),
                format!("T.copy cannot convert {s} to {d}"),
            )
            .into());
    }
    Ok(())
}

fn check_scopes(
    rec: &Recorder,
    args: &CallArgs,
    what: &str,
    src: &Tile,
    dst: &Tile,
    allowed: &[(Scope, Scope)],
) -> Result<()> {
    let scope = |t: &Tile| rec.buffer(t.buffer()).scope;
    if allowed.contains(&(scope(src), scope(dst))) {
        return Ok(());
    }
    let ways: Vec<String> = allowed
        .iter()
        .map(|(a, b)| format!("{} to {}", a.name(), b.name()))
        .collect();
    Err(rec
        .error(
            codes::COPY_SCOPE,
            args.span(),
            format!(
                "{what} works from {}; this goes from {} to {}",
                ways.join(" or "),
                scope(src).name(),
                scope(dst).name()
            ),
        )
        .help("use `T.copy`, which finds the way between any two scopes")
        .into())
}

fn check_same_dtype(
    rec: &Recorder,
    args: &CallArgs,
    what: &str,
    src: Buffer,
    dst: Buffer,
) -> Result<()> {
    let (s, d) = (rec.buffer(src).dtype, rec.buffer(dst).dtype);
    if s == d {
        return Ok(());
    }
    Err(rec
        .error(
            codes::OPERAND_TYPES,
            args.span(),
            format!("{what} moves bytes and cannot convert {s} to {d}"),
        )
        .help("use equal dtypes, or `T.copy`, which converts")
        .into())
}

fn scope_error(
    rec: &Recorder,
    span: tilewright_ir::Span,
    what: &str,
    buffer: Buffer,
    wanted: &str,
) -> crate::Error {
    rec.error(
        codes::COPY_SCOPE,
        span,
        format!(
            "{what} needs {wanted} memory here; {} is {}",
            rec.buffer_name(buffer),
            rec.buffer(buffer).scope.name()
        ),
    )
    .into()
}

fn no_extents(rec: &Recorder, args: &CallArgs, what: &str) -> crate::Error {
    rec.error(
        codes::COPY_EXTENTS,
        args.span(),
        format!("{what}: both sides are single elements, so the size of the tile is not known"),
    )
    .help("give one side as a whole buffer or with slices")
    .into()
}

fn eviction(rec: &Recorder, args: &CallArgs) -> Result<Option<EvictionPolicy>> {
    let Some(name) = args.str("eviction_policy") else {
        return Ok(None);
    };
    match name {
        "evict_normal" => Ok(Some(EvictionPolicy::Normal)),
        "evict_first" => Ok(Some(EvictionPolicy::First)),
        "evict_last" => Ok(Some(EvictionPolicy::Last)),
        _ => Err(rec
            .error(
                codes::BAD_OPTION,
                args.span_of("eviction_policy"),
                format!("`{name}` is no eviction policy"),
            )
            .help("use \"evict_normal\", \"evict_first\" or \"evict_last\"")
            .into()),
    }
}
