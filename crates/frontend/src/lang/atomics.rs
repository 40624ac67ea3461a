//! Atomic updates of elements and of tiles, atomic loads and stores.

use tilewright_ir::{
    AtomicOp, AtomicSource, Buffer, DType, Diagnostic, Expr, MemoryOrder, Scalar, Scope, Span,
    ThreadOp, TileOp,
};

use super::extents::{Sides, check_inside, const_product, pair};
use super::{CallArgs, LangFn, ParamSpec, Ty, func, opt, req};
use crate::record::Recorder;
use crate::record::convert::Tile;
use crate::value::Value;
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func("atomic_add", ADD, |s, a| atomic(s, a, AtomicOp::Add)),
    func("atomic_max", UPDATE, |s, a| atomic(s, a, AtomicOp::Max)),
    func("atomic_min", UPDATE, |s, a| atomic(s, a, AtomicOp::Min)),
    func("atomic_or", &[DST, VALUE, ORDER], |s, a| {
        atomic(s, a, AtomicOp::Or)
    }),
    func("atomic_addx2", VECTOR, |s, a| vector_add(s, a, 2)),
    func("atomic_addx4", VECTOR, |s, a| vector_add(s, a, 4)),
    func("atomic_load", &[req("src", Ty::Tile), ORDER], load),
    func("atomic_store", &[DST, req("src", Ty::Scalar), ORDER], store),
];

const DST: ParamSpec = req("dst", Ty::Tile);
const VALUE: ParamSpec = req("value", Ty::Any);
const ORDER: ParamSpec = opt("memory_order", Ty::Str);
const RETURN: ParamSpec = opt("return_prev", Ty::Bool);
const ANNOTATIONS: ParamSpec = opt("annotations", Ty::Any);
const UPDATE: &[ParamSpec] = &[DST, VALUE, ORDER, RETURN, ANNOTATIONS];
const ADD: &[ParamSpec] = &[
    DST,
    VALUE,
    ORDER,
    RETURN,
    opt("use_tma", Ty::Bool),
    ANNOTATIONS,
];
const VECTOR: &[ParamSpec] = &[DST, req("value", Ty::Tile), RETURN];

const ORDERS: [(&str, MemoryOrder); 6] = [
    ("relaxed", MemoryOrder::Relaxed),
    ("consume", MemoryOrder::Consume),
    ("acquire", MemoryOrder::Acquire),
    ("release", MemoryOrder::Release),
    ("acq_rel", MemoryOrder::AcqRel),
    ("seq_cst", MemoryOrder::SeqCst),
];

fn atomic(rec: &mut Recorder, args: &CallArgs, op: AtomicOp) -> Result<Value> {
    let what = format!("T.atomic_{}", name(op));
    let order = order(rec, args, MemoryOrder::Relaxed, &ORDERS.map(|(_, o)| o))?;
    let return_prev = args.is_param("return_prev") && args.bool_or(rec, "return_prev", false)?;
    if args.is_param("use_tma") && args.bool_or(rec, "use_tma", false)? {
        rec.warn(Diagnostic::warning(
            codes::NO_EFFECT,
            args.span_of("use_tma"),
            "`use_tma` has no effect: elements are added by atomic operations",
        ));
    }
    let dst = args.tile(rec, "dst")?;
    let buffer = dst.buffer();
    check_memory(rec, &what, buffer, args.span_of("dst"))?;
    check_dtype(rec, &what, op, buffer, args.span_of("dst"))?;
    let value = args.required("value").clone();
    let source = match &value {
        Value::Buffer(b) if rec.buffer(*b).scope != Scope::Var => Some(Tile::Buffer(*b)),
        Value::Region(r) => Some(Tile::Region(r.clone())),
        // As in a copy, an element beside a tile is the start of one.
        Value::Element(e) if !matches!(dst, Tile::Element(_)) => Some(Tile::Element(e.clone())),
        _ => None,
    };
    if let (Tile::Element(element), None) = (&dst, &source) {
        let dtype = rec.buffer(buffer).dtype;
        let value = rec.to_expr_as(&value, dtype, args.span_of("value"))?;
        let result = return_prev.then(|| rec.result_var(dtype));
        rec.emit_thread(ThreadOp::AtomicRmw {
            op,
            buffer,
            indices: element.indices.clone(),
            value,
            order,
            result,
        })?;
        return Ok(match result {
            Some(var) => Value::Expr(rec.var_expr(var).with_span(args.span())),
            None => Value::None,
        });
    }
    if return_prev {
        return Err(rec
            .error(
                codes::ATOMIC_FORM,
                args.span_of("return_prev"),
                format!("{what} of a tile has no single old value to return"),
            )
            .help("update one element, `T.atomic_add(C[i], v, return_prev=True)`, inside `T.Parallel`")
            .into());
    }
    tile_atomic(rec, args, &what, op, order, dst, source, &value)
}

#[expect(
    clippy::too_many_arguments,
    reason = "the pieces of one call, already taken apart"
)]
fn tile_atomic(
    rec: &mut Recorder,
    args: &CallArgs,
    what: &str,
    op: AtomicOp,
    order: MemoryOrder,
    dst: Tile,
    source: Option<Tile>,
    value: &Value,
) -> Result<Value> {
    let (dst, value) = match source {
        Some(source) => {
            check_source(rec, what, source.buffer(), args.span_of("value"))?;
            let sides = Sides {
                what,
                src: &source,
                src_span: args.span_of("value"),
                dst: &dst,
                dst_span: args.span_of("dst"),
            };
            let Some((src, dst)) = pair(rec, sides)? else {
                return Ok(Value::None);
            };
            (dst, AtomicSource::Region(src))
        }
        None => {
            let region = dst.region(rec);
            let written = matches!(dst, Tile::Region(_));
            check_inside(rec, &region, args.span_of("dst"), written)?;
            warn_single(rec, args, what, &dst);
            let dtype = rec.buffer(region.buffer).dtype;
            let value = rec.to_expr_as(value, dtype, args.span_of("value"))?;
            (region, AtomicSource::Value(value))
        }
    };
    rec.emit_tile(TileOp::Atomic {
        op,
        dst,
        value,
        order,
    })?;
    Ok(Value::None)
}

/// A one-element buffer named as a whole is updated once by the block, which is rarely meant.
fn warn_single(rec: &mut Recorder, args: &CallArgs, what: &str, dst: &Tile) {
    let Tile::Buffer(buffer) = dst else {
        return;
    };
    if const_product(rec, &rec.buffer(*buffer).shape.clone()) != Some(1) {
        return;
    }
    let name = rec.buffer_name(*buffer);
    rec.warn(
        Diagnostic::warning(
            codes::ATOMIC_FORM,
            args.span(),
            format!("{what} on the whole of {name} updates it once for the block, not once for each thread"),
        )
        .help("index the element, `[0]`, for an update by each thread"),
    );
}

fn vector_add(rec: &mut Recorder, args: &CallArgs, lanes: u16) -> Result<Value> {
    let what = format!("T.atomic_addx{lanes}");
    let return_prev = args.bool_or(rec, "return_prev", false)?;
    let (dst, dst_indices) = start(rec, args, "dst")?;
    let (src, src_indices) = start(rec, args, "value")?;
    let dst_span = args.span_of("dst");
    check_memory(rec, &what, dst, dst_span)?;
    check_source(rec, &what, src, args.span_of("value"))?;
    let (d, s) = (rec.buffer(dst).dtype, rec.buffer(src).dtype);
    let small = matches!(d.scalar, Scalar::F16 | Scalar::BF16);
    if !d.is_scalar() || !(small || d.scalar == Scalar::F32) {
        return Err(rec
            .error(
                codes::ATOMIC_DTYPE,
                dst_span,
                format!("{what} works on float16, bfloat16 and float32, this is {d}"),
            )
            .help("use `T.atomic_add` on each element")
            .into());
    }
    if s != d && !(small && s == DType::F32) {
        return Err(rec
            .error(
                codes::ATOMIC_DTYPE,
                args.span_of("value"),
                format!("{what} adds {s} to {d}"),
            )
            .help(format!("make the source {d}"))
            .into());
    }
    for (buffer, indices, span) in [
        (dst, &dst_indices, dst_span),
        (src, &src_indices, args.span_of("value")),
    ] {
        check_vector(rec, &what, buffer, indices, lanes, span)?;
    }
    if return_prev {
        let at = (dst, dst_indices.as_slice());
        let from = (src, src_indices.as_slice());
        return old_values(rec, args, at, from, lanes);
    }
    rec.emit_thread(ThreadOp::AtomicVecAdd {
        dst,
        dst_indices,
        src,
        src_indices,
        lanes,
    })?;
    Ok(Value::None)
}

/// Adds lane by lane, each atomic on its own, and gives the vector of what was there.
fn old_values(
    rec: &mut Recorder,
    args: &CallArgs,
    (dst, dst_indices): (Buffer, &[Expr]),
    (src, src_indices): (Buffer, &[Expr]),
    lanes: u16,
) -> Result<Value> {
    let span = args.span();
    let (to, from) = (rec.buffer(dst).dtype, rec.buffer(src).dtype);
    let mut old = Vec::with_capacity(usize::from(lanes));
    for lane in 0..lanes {
        let at = |indices: &[Expr]| {
            let mut indices = indices.to_vec();
            if let Some(last) = indices.last_mut() {
                *last = &*last + &Expr::int(i128::from(lane), last.dtype());
            }
            indices
        };
        let value = Expr::load(src, at(src_indices), from).with_span(args.span_of("value"));
        let result = rec.result_var(to);
        rec.emit_thread(ThreadOp::AtomicRmw {
            op: AtomicOp::Add,
            buffer: dst,
            indices: at(dst_indices),
            value: rec.cast_expr(value, to, span)?,
            order: MemoryOrder::Relaxed,
            result: Some(result),
        })?;
        old.push(rec.var_expr(result));
    }
    super::vectors::vector(rec, &old, span).map(Value::Expr)
}

/// Constant indices must leave room for the vector and be aligned to it.
fn check_vector(
    rec: &Recorder,
    what: &str,
    buffer: Buffer,
    indices: &[Expr],
    lanes: u16,
    span: Span,
) -> Result<()> {
    let data = rec.buffer(buffer);
    let (Some(size), Some(index)) = (
        data.shape.last().and_then(|e| rec.const_int(e)),
        indices.last().and_then(|e| rec.const_int(e)),
    ) else {
        return Ok(());
    };
    let lanes = i128::from(lanes);
    if index + lanes > size {
        return Err(rec
            .error(
                codes::OUT_OF_BOUNDS,
                span,
                format!(
                    "{what} reaches elements {index} to {} of a dimension of {size}",
                    index + lanes - 1
                ),
            )
            .help("start earlier, or add single elements with `T.atomic_add`")
            .into());
    }
    let global = data.scope == Scope::Global;
    if global && index % lanes != 0 {
        return Err(rec
            .error(
                codes::ATOMIC_FORM,
                span,
                format!("{what} needs a start that is a multiple of {lanes}, this is {index}"),
            )
            .help("add single elements with `T.atomic_add`")
            .into());
    }
    Ok(())
}

fn load(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    use MemoryOrder::{Acquire, Consume, Relaxed, SeqCst};
    let order = order(
        rec,
        args,
        MemoryOrder::SeqCst,
        &[Relaxed, Consume, Acquire, SeqCst],
    )?;
    let (buffer, indices) = start(rec, args, "src")?;
    let span = args.span_of("src");
    check_memory(rec, "T.atomic_load", buffer, span)?;
    check_word(rec, "T.atomic_load", buffer, span)?;
    let result = rec.result_var(rec.buffer(buffer).dtype);
    rec.emit_thread(ThreadOp::AtomicLoad {
        buffer,
        indices,
        order,
        result,
    })?;
    Ok(Value::Expr(rec.var_expr(result).with_span(args.span())))
}

fn store(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    use MemoryOrder::{Relaxed, Release, SeqCst};
    let order = order(rec, args, MemoryOrder::SeqCst, &[Relaxed, Release, SeqCst])?;
    let (buffer, indices) = start(rec, args, "dst")?;
    let span = args.span_of("dst");
    check_memory(rec, "T.atomic_store", buffer, span)?;
    check_word(rec, "T.atomic_store", buffer, span)?;
    let dtype = rec.buffer(buffer).dtype;
    let value = args.required("src").clone();
    let value = rec.to_expr_as(&value, dtype, args.span_of("src"))?;
    rec.emit_thread(ThreadOp::AtomicStore {
        buffer,
        indices,
        value,
        order,
    })?;
    Ok(Value::None)
}

/// The element that an operand names or starts at.
fn start(rec: &mut Recorder, args: &CallArgs, name: &str) -> Result<(Buffer, Vec<Expr>)> {
    let region = args.tile(rec, name)?.region(rec);
    let indices = region.dims.into_iter().map(|d| d.start).collect();
    Ok((region.buffer, indices))
}

fn check_memory(rec: &Recorder, what: &str, buffer: Buffer, span: Span) -> Result<()> {
    let scope = rec.buffer(buffer).scope;
    if matches!(scope, Scope::Global | Scope::Shared) {
        return Ok(());
    }
    Err(rec
        .error(
            codes::ATOMIC_FORM,
            span,
            format!(
                "{what} works on global and shared memory; {} is {}",
                rec.buffer_name(buffer),
                scope.name()
            ),
        )
        .help(
            "what belongs to one thread needs no atomics; sums over a fragment are `T.reduce_sum`",
        )
        .into())
}

fn check_source(rec: &Recorder, what: &str, buffer: Buffer, span: Span) -> Result<()> {
    let scope = rec.buffer(buffer).scope;
    if !matches!(scope, Scope::Barrier | Scope::Reducer | Scope::Tmem) {
        return Ok(());
    }
    Err(rec
        .error(
            codes::ATOMIC_FORM,
            span,
            format!("{what} cannot read from {} memory", scope.name()),
        )
        .into())
}

/// Plain atomic loads and stores move 1, 2, 4 or 8 bytes.
fn check_word(rec: &Recorder, what: &str, buffer: Buffer, span: Span) -> Result<()> {
    let dtype = rec.buffer(buffer).dtype;
    if matches!(dtype.bits(), 8 | 16 | 32 | 64) && dtype.scalar != Scalar::Handle {
        return Ok(());
    }
    Err(rec
        .error(
            codes::ATOMIC_DTYPE,
            span,
            format!("{what} is not defined on {dtype}"),
        )
        .into())
}

fn check_dtype(rec: &Recorder, what: &str, op: AtomicOp, buffer: Buffer, span: Span) -> Result<()> {
    let dtype = rec.buffer(buffer).dtype;
    let word = matches!(
        dtype.scalar,
        Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64
    );
    let float = matches!(
        dtype.scalar,
        Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64
    );
    let (fits, help) = match op {
        AtomicOp::Add | AtomicOp::Max | AtomicOp::Min | AtomicOp::Exchange => (
            word || float,
            "use a 32 or 64 bit integer, float16, bfloat16, float32 or float64",
        ),
        AtomicOp::Or | AtomicOp::And | AtomicOp::Xor => (word, "use a 32 or 64 bit integer"),
    };
    if fits && dtype.is_scalar() {
        return Ok(());
    }
    Err(rec
        .error(
            codes::ATOMIC_DTYPE,
            span,
            format!("{what} is not defined on {dtype}"),
        )
        .help(help)
        .into())
}

fn name(op: AtomicOp) -> &'static str {
    match op {
        AtomicOp::Add => "add",
        AtomicOp::Max => "max",
        AtomicOp::Min => "min",
        AtomicOp::Or => "or",
        AtomicOp::And => "and",
        AtomicOp::Xor => "xor",
        AtomicOp::Exchange => "exchange",
    }
}

fn order(
    rec: &Recorder,
    args: &CallArgs,
    default: MemoryOrder,
    allowed: &[MemoryOrder],
) -> Result<MemoryOrder> {
    let Some(name) = args.str("memory_order") else {
        return Ok(default);
    };
    let found = ORDERS.iter().find(|(n, _)| *n == name).map(|(_, o)| *o);
    match found {
        Some(order) if allowed.contains(&order) => Ok(order),
        _ => {
            let names: Vec<&str> = ORDERS
                .iter()
                .filter(|(_, o)| allowed.contains(o))
                .map(|(n, _)| *n)
                .collect();
            Err(rec
                .error(
                    codes::MEMORY_ORDER,
                    args.span_of("memory_order"),
                    format!("\"{name}\" is no memory order for this operation"),
                )
                .help(format!("use one of {}", names.join(", ")))
                .into())
        }
    }
}
