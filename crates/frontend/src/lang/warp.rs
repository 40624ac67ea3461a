//! Warps: indices, shuffles, votes, reductions, and other things threads do together.

use tilewright_ir::{
    BinOp, Buffer, DType, Expr, ReduceKind, Scalar, Scope, ShuffleKind, Span, ThreadOp, VoteKind,
};

use super::{CallArgs, LangFn, ParamSpec, Ty, func, opt, req};
use crate::record::Recorder;
use crate::value::Value;
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func("get_lane_idx", &[opt("warp_size", Ty::Int)], |s, a| {
        thread_part(s, a, BinOp::FloorMod, 1)
    }),
    func("get_warp_idx", &[opt("warp_size", Ty::Int)], |s, a| {
        thread_part(s, a, BinOp::FloorDiv, 1)
    }),
    func("get_warp_idx_sync", &[opt("warp_size", Ty::Int)], |s, a| {
        thread_part(s, a, BinOp::FloorDiv, 1)
    }),
    func(
        "get_warp_group_idx",
        &[opt("warp_size", Ty::Int), opt("warps_per_group", Ty::Int)],
        |s, a| {
            let warps = super::positive(s, a, "warps_per_group")?.unwrap_or(4);
            thread_part(s, a, BinOp::FloorDiv, warps)
        },
    ),
    func(
        "shuffle_elect",
        &[req("thread_extent", Ty::Int)],
        shuffle_elect,
    ),
    func(
        "shfl_sync",
        &[VALUE, req("srcLane", Ty::Scalar), WIDTH, MASK],
        |s, a| shuffle(s, a, ShuffleKind::Index, "srcLane"),
    ),
    func("shfl_xor", SHUFFLE, |s, a| {
        shuffle(s, a, ShuffleKind::Xor, "delta")
    }),
    func("shfl_up", SHUFFLE, |s, a| {
        shuffle(s, a, ShuffleKind::Up, "delta")
    }),
    func("shfl_down", SHUFFLE, |s, a| {
        shuffle(s, a, ShuffleKind::Down, "delta")
    }),
    func("tvm_warp_shuffle", TVM_SHUFFLE, |s, a| {
        shuffle(s, a, ShuffleKind::Index, "warp_id")
    }),
    func("tvm_warp_shuffle_up", TVM_SHUFFLE_BY, |s, a| {
        shuffle(s, a, ShuffleKind::Up, "offset")
    }),
    func("tvm_warp_shuffle_down", TVM_SHUFFLE_BY, |s, a| {
        shuffle(s, a, ShuffleKind::Down, "offset")
    }),
    func("any_sync", VOTE, |s, a| vote(s, a, VoteKind::Any)),
    func("all_sync", VOTE, |s, a| vote(s, a, VoteKind::All)),
    func("ballot_sync", VOTE, |s, a| vote(s, a, VoteKind::Ballot)),
    func("ballot", &[req("predicate", Ty::Scalar)], |s, a| {
        vote(s, a, VoteKind::Ballot)
    }),
    func("warp_reduce_sum", &[VALUE], |s, a| {
        reduce(s, a, ReduceKind::Sum)
    }),
    func("warp_reduce_max", &[VALUE], |s, a| {
        reduce(s, a, ReduceKind::Max)
    }),
    func("warp_reduce_min", &[VALUE], |s, a| {
        reduce(s, a, ReduceKind::Min)
    }),
    func("warp_reduce_bitand", &[VALUE], |s, a| {
        reduce(s, a, ReduceKind::BitAnd)
    }),
    func("warp_reduce_bitor", &[VALUE], |s, a| {
        reduce(s, a, ReduceKind::BitOr)
    }),
    func(
        "dp4a",
        &[req("A", Ty::Tile), req("B", Ty::Tile), req("C", Ty::Tile)],
        dp4a,
    ),
];

const VALUE: ParamSpec = req("value", Ty::Scalar);
const WIDTH: ParamSpec = opt("width", Ty::Int);
const MASK: ParamSpec = opt("mask", Ty::Any);
const SHUFFLE: &[ParamSpec] = &[VALUE, req("delta", Ty::Scalar), WIDTH, MASK];
const TVM_SHUFFLE: &[ParamSpec] = &[
    req("mask", Ty::Any),
    VALUE,
    req("warp_id", Ty::Scalar),
    req("width", Ty::Int),
    req("warp_size", Ty::Int),
];
const TVM_SHUFFLE_BY: &[ParamSpec] = &[
    req("mask", Ty::Any),
    VALUE,
    req("offset", Ty::Scalar),
    req("width", Ty::Int),
    req("warp_size", Ty::Int),
];
const VOTE: &[ParamSpec] = &[req("predicate", Ty::Scalar), MASK];

/// Lanes of a warp as the language counts them, on every target.
const WARP: i64 = 32;

/// The thread's number in the block: x + y·ex + z·ex·ey.
pub(super) fn linear_thread(rec: &Recorder, what: &str) -> Result<Expr> {
    let kernel = rec.kernel(what)?;
    let mut stride = 1i32;
    let mut sum: Option<Expr> = None;
    for (var, extent) in kernel.thread_vars.iter().zip(kernel.threads) {
        if extent > 1 {
            let index = rec.var_expr(*var);
            let term = if stride == 1 { index } else { index * stride };
            sum = Some(match sum {
                None => term,
                Some(sum) => sum + term,
            });
        }
        stride *= extent as i32;
    }
    Ok(sum.unwrap_or_else(|| Expr::i32(0)))
}

/// The linear thread number divided by a multiple of the warp size, or the rest.
fn thread_part(rec: &mut Recorder, args: &CallArgs, op: BinOp, warps: u32) -> Result<Value> {
    let warp = super::positive(rec, args, "warp_size")?.unwrap_or(WARP as u32);
    let by = warp.saturating_mul(warps).min(1 << 20);
    let thread = linear_thread(rec, "a warp index")?;
    let by = Expr::i32(by as i32);
    rec.binary_expr(op, thread, by, args.span())
        .map(Value::Expr)
}

/// True for one thread of each group of that size, or of the block when the size is zero.
fn shuffle_elect(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let extent = args.int_or(rec, "thread_extent", 0)?;
    if !(0..=1024).contains(&extent) {
        return Err(rec
            .error(
                codes::WRONG_VALUE,
                args.span_of("thread_extent"),
                format!("a group has 0 (the block) to 1024 threads, this is {extent}"),
            )
            .help("use 128 for one thread of each warp group")
            .into());
    }
    let span = args.span();
    let mut thread = linear_thread(rec, "`T.shuffle_elect`")?;
    if extent > 0 {
        let by = Expr::i32(extent as i32);
        thread = rec.binary_expr(BinOp::FloorMod, thread, by, span)?;
    }
    let zero = Expr::i32(0);
    rec.binary_expr(BinOp::Eq, thread, zero, span)
        .map(Value::Expr)
}

fn shuffle(
    rec: &mut Recorder,
    args: &CallArgs,
    kind: ShuffleKind,
    lane_name: &str,
) -> Result<Value> {
    if let Some(mask) = args.value("mask").cloned() {
        check_full_mask(rec, &mask, args.span_of("mask"))?;
    }
    let width = args.int_or(rec, "width", WARP)?;
    if !(1..=WARP).contains(&width) || !(width as u64).is_power_of_two() {
        return Err(rec
            .error(
                codes::WRONG_VALUE,
                args.span_of("width"),
                format!("the width of a shuffle is 1, 2, 4, 8, 16 or 32, this is {width}"),
            )
            .help("leave it out to exchange over the whole warp")
            .into());
    }
    let value = args.required("value").clone();
    let value = rec.to_expr(&value, args.span_of("value"))?;
    check_shuffled(rec, args, &value)?;
    let span = args.span_of(lane_name);
    let lane = args.required(lane_name).clone();
    let lane = rec.to_expr(&lane, span)?;
    super::check_index(rec, &lane, span, "a lane")?;
    rec.kernel("a shuffle")?;
    let result = rec.result_var(value.dtype());
    rec.emit_thread(ThreadOp::Shuffle {
        kind,
        value,
        lane,
        width: width as u32,
        result,
    })?;
    Ok(Value::Expr(rec.var_expr(result).with_span(args.span())))
}

fn check_shuffled(rec: &Recorder, args: &CallArgs, value: &Expr) -> Result<()> {
    let dtype = value.dtype();
    let fits = dtype.scalar != Scalar::Handle && matches!(dtype.bits(), 8 | 16 | 32 | 64);
    if fits {
        return Ok(());
    }
    Err(rec
        .error(
            codes::OPERAND_TYPES,
            args.span_of("value"),
            format!("{dtype} cannot be exchanged between lanes"),
        )
        .help("use a value of 8, 16, 32 or 64 bits")
        .into())
}

/// All lanes take part: a partial mask has no form here.
pub(super) fn check_full_mask(rec: &Recorder, mask: &Value, span: Span) -> Result<()> {
    let constant = mask.as_int().or_else(|| match mask {
        Value::Expr(e) => rec.const_int(e),
        _ => None,
    });
    // The low 32 bits, so that -1 is a full mask too.
    if constant.is_some_and(|v| v & 0xFFFF_FFFF == 0xFFFF_FFFF) {
        return Ok(());
    }
    Err(super::not_supported(
        rec,
        span,
        "a mask that leaves lanes out",
        "use 0xFFFFFFFF: all lanes of the warp take part",
    ))
}

/// A vote of the warp or of the block.
pub(super) fn vote(rec: &mut Recorder, args: &CallArgs, kind: VoteKind) -> Result<Value> {
    if args.is_param("mask")
        && let Some(mask) = args.value("mask").cloned()
    {
        check_full_mask(rec, &mask, args.span_of("mask"))?;
    }
    let value = args.required("predicate").clone();
    let value = rec.condition(&value, args.span_of("predicate"))?;
    rec.kernel("a vote")?;
    let dtype = kind.result_type();
    if rec.in_parallel() && dtype == DType::I32 {
        return Err(rec
            .error(
                codes::BARRIER,
                args.span(),
                "a vote of the block inside `T.Parallel`: the points do not pass together",
            )
            .help("vote outside the loop")
            .into());
    }
    let result = rec.result_var(dtype);
    rec.emit_thread(ThreadOp::Vote {
        kind,
        value,
        result,
    })?;
    Ok(Value::Expr(rec.var_expr(result).with_span(args.span())))
}

fn reduce(rec: &mut Recorder, args: &CallArgs, kind: ReduceKind) -> Result<Value> {
    let what = format!("T.warp_reduce_{}", kind.name());
    let span = args.span_of("value");
    let value = args.required("value").clone();
    let value = rec.to_expr(&value, span)?;
    check_shuffled(rec, args, &value)?;
    if kind.is_bitwise() && value.dtype().scalar.is_float() {
        return Err(rec
            .error(
                codes::REDUCE_DTYPE,
                span,
                format!("{what} works on integers, this is {}", value.dtype()),
            )
            .help("`T.reinterpret` the float as an integer first")
            .into());
    }
    rec.kernel(&format!("`{what}`"))?;
    let result = rec.result_var(value.dtype());
    rec.emit_thread(ThreadOp::WarpReduce {
        kind,
        value,
        result,
    })?;
    Ok(Value::Expr(rec.var_expr(result).with_span(args.span())))
}

fn dp4a(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let (a, a_indices) = dp4a_operand(rec, args, "A", DType::I8)?;
    let (b, b_indices) = dp4a_operand(rec, args, "B", DType::I8)?;
    let (c, c_indices) = dp4a_operand(rec, args, "C", DType::I32)?;
    rec.emit_thread(ThreadOp::Dp4a {
        a,
        a_indices,
        b,
        b_indices,
        c,
        c_indices,
    })?;
    Ok(Value::None)
}

fn dp4a_operand(
    rec: &mut Recorder,
    args: &CallArgs,
    name: &str,
    wanted: DType,
) -> Result<(Buffer, Vec<Expr>)> {
    let region = args.tile(rec, name)?.region(rec);
    let data = rec.buffer(region.buffer);
    if data.dtype != wanted {
        return Err(rec
            .error(
                codes::OPERAND_TYPES,
                args.span_of(name),
                format!("T.dp4a: {name} must be {wanted}, this is {}", data.dtype),
            )
            .help("it adds four int8 products to an int32")
            .into());
    }
    if !matches!(data.scope, Scope::Global | Scope::Shared | Scope::Local) {
        return Err(rec
            .error(
                codes::BUFFER_SCOPE,
                args.span_of(name),
                format!("T.dp4a cannot address {} memory", data.scope.name()),
            )
            .help("use `T.alloc_local` arrays")
            .into());
    }
    let indices = region.dims.into_iter().map(|d| d.start).collect();
    Ok((region.buffer, indices))
}
