//! Arrival barriers (mbarriers).

use tilewright_ir::{ArriveAt, BinOp, Buffer, Expr, ExprKind, Scope, Span, ThreadOp};

use super::{CallArgs, LangFn, ParamSpec, Ty, func, opt, req};
use crate::record::Recorder;
use crate::value::Value;
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func("mbarrier_wait_parity", WAIT, wait),
    func("barrier_wait", WAIT, wait),
    func(
        "mbarrier_arrive",
        &[BARRIER, opt("cta_id", Ty::Any)],
        |rec, args| match args.has("cta_id") {
            true => arrive_in(rec, args),
            false => arrive(rec, args),
        },
    ),
    func(
        "ptx_arrive_cluster_barrier",
        &[BARRIER, req("cta_id", Ty::Any)],
        arrive_in,
    ),
    func("barrier_arrive", &[BARRIER], arrive),
    func("mbarrier_expect_tx", EXPECT, |s, a| expect(s, a, false)),
    func("mbarrier_arrive_expect_tx", EXPECT, |s, a| {
        expect(s, a, true)
    }),
    func("ptx_arrive_barrier", &[BARRIER], arrive),
    func(
        "ptx_arrive_barrier_expect_tx",
        &[req("mbarrier", Ty::Any), req("tx", Ty::Scalar)],
        |s, a| expect(s, a, true),
    ),
];

const BARRIER: ParamSpec = req("mbarrier", Ty::Any);
const WAIT: &[ParamSpec] = &[BARRIER, req("parity", Ty::Scalar)];
const EXPECT: &[ParamSpec] = &[BARRIER, req("tx", Ty::Scalar)];

fn wait(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let (barrier, index) = operand(rec, args)?;
    let span = args.span_of("parity");
    let value = args.required("parity").clone();
    let parity = rec.to_expr(&value, span)?;
    super::check_index(rec, &parity, span, "a parity")?;
    let parity = modulo_two(rec, parity, span)?;
    rec.emit_thread(ThreadOp::BarrierWait {
        barrier,
        index,
        parity,
    })?;
    Ok(Value::None)
}

fn arrive(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let (barrier, index) = operand(rec, args)?;
    rec.emit_thread(ThreadOp::BarrierArrive {
        at: ArriveAt::Own,
        barrier,
        index,
        warp: false,
    })?;
    Ok(Value::None)
}

/// At the barrier of a block of the cluster.
fn arrive_in(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let (barrier, index) = operand(rec, args)?;
    let rank = super::cluster::block(rec, args, "cta_id")?;
    let span = args.span_of("mbarrier");
    super::cluster::check_reached(rec, barrier, span, "the arrival")?;
    rec.emit_thread(ThreadOp::BarrierArrive {
        at: ArriveAt::Block(rank),
        barrier,
        index,
        warp: false,
    })?;
    Ok(Value::None)
}

fn expect(rec: &mut Recorder, args: &CallArgs, arrive: bool) -> Result<Value> {
    let (barrier, index) = operand(rec, args)?;
    let span = args.span_of("tx");
    let value = args.required("tx").clone();
    let bytes = rec.to_expr(&value, span)?;
    super::check_index(rec, &bytes, span, "a number of bytes")?;
    if let Some(n) = rec.const_int(&bytes)
        && n < 0
    {
        return Err(rec
            .error(
                codes::WRONG_VALUE,
                span,
                format!("a number of bytes cannot be negative, this is {n}"),
            )
            .into());
    }
    rec.emit_thread(ThreadOp::BarrierExpect {
        barrier,
        index,
        bytes,
        arrive,
    })?;
    Ok(Value::None)
}

fn operand(rec: &mut Recorder, args: &CallArgs) -> Result<(Buffer, Expr)> {
    let value = args.required("mbarrier").clone();
    barrier_element(rec, &value, args.span_of("mbarrier"))
}

/// One barrier: an element of a barrier buffer, or the first when only the buffer is named.
pub(super) fn barrier_element(
    rec: &mut Recorder,
    value: &Value,
    span: Span,
) -> Result<(Buffer, Expr)> {
    let (buffer, index) = match value {
        Value::Buffer(b) => (*b, Expr::i32(0)),
        Value::Element(e) => (
            e.buffer,
            e.indices.first().cloned().unwrap_or_else(|| Expr::i32(0)),
        ),
        Value::List(_) | Value::Tuple(_) => {
            return Err(rec
                .error(
                    codes::BARRIER,
                    span,
                    "one barrier is meant, this is several",
                )
                .help("index it: `bars[i]`")
                .into());
        }
        other => {
            return Err(rec
                .error(
                    codes::BARRIER,
                    span,
                    format!("a barrier is meant, this is {}", other.type_name()),
                )
                .help("allocate one with `T.alloc_barrier(arrive_count)`")
                .into());
        }
    };
    let scope = rec.buffer(buffer).scope;
    if scope != Scope::Barrier {
        return Err(rec
            .error(
                codes::BARRIER,
                span,
                format!(
                    "{} is {} memory, not a barrier",
                    rec.buffer_name(buffer),
                    scope.name()
                ),
            )
            .help("allocate one with `T.alloc_barrier(arrive_count)`")
            .into());
    }
    Ok((buffer, index))
}

/// The last bit of a parity; most are written `… % 2` already.
fn modulo_two(rec: &Recorder, parity: Expr, span: Span) -> Result<Expr> {
    let is_bit = rec
        .range_of(&parity)
        .is_some_and(|(lo, hi)| lo >= 0 && hi <= 1)
        || matches!(parity.kind(), ExprKind::Binary(BinOp::BitAnd, a, b) if a.is_int(1) || b.is_int(1));
    if is_bit {
        return Ok(parity);
    }
    let one = Expr::int(1, parity.dtype());
    rec.binary_expr(BinOp::BitAnd, parity, one, span)
}
