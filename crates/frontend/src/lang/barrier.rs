//! Arrival barriers (mbarriers).

use tilewright_ir::{ArriveAt, BinOp, Buffer, Expr, ExprKind, Scope, Span, ThreadOp};

use super::{CallArgs, LangFn, ParamSpec, Ty, func, opt, req};
use crate::eval::Stage;
use crate::value::Value;
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func("mbarrier_wait_parity", WAIT, wait),
    func("barrier_wait", WAIT, wait),
    func(
        "mbarrier_arrive",
        &[BARRIER, opt("cta_id", Ty::Any)],
        |stage, args| match args.has("cta_id") {
            true => arrive_in(stage, args),
            false => arrive(stage, args),
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

fn wait(stage: &mut Stage, args: &CallArgs) -> Result<Value> {
    let (barrier, index) = operand(stage, args)?;
    let span = args.span_of("parity");
    let value = args.required("parity").clone();
    let parity = stage.to_expr(&value, span)?;
    super::check_index(stage, &parity, span, "a parity")?;
    let parity = modulo_two(stage, parity, span)?;
    stage.emit_thread(ThreadOp::BarrierWait {
        barrier,
        index,
        parity,
    })?;
    Ok(Value::None)
}

fn arrive(stage: &mut Stage, args: &CallArgs) -> Result<Value> {
    let (barrier, index) = operand(stage, args)?;
    stage.emit_thread(ThreadOp::BarrierArrive {
        at: ArriveAt::Own,
        barrier,
        index,
        warp: false,
    })?;
    Ok(Value::None)
}

/// At the barrier of a block of the cluster.
fn arrive_in(stage: &mut Stage, args: &CallArgs) -> Result<Value> {
    let (barrier, index) = operand(stage, args)?;
    let rank = super::cluster::block(stage, args, "cta_id")?;
    let span = args.span_of("mbarrier");
    super::cluster::check_reached(stage, barrier, span, "the arrival")?;
    stage.emit_thread(ThreadOp::BarrierArrive {
        at: ArriveAt::Block(rank),
        barrier,
        index,
        warp: false,
    })?;
    Ok(Value::None)
}

fn expect(stage: &mut Stage, args: &CallArgs, arrive: bool) -> Result<Value> {
    let (barrier, index) = operand(stage, args)?;
    let span = args.span_of("tx");
    let value = args.required("tx").clone();
    let bytes = stage.to_expr(&value, span)?;
    super::check_index(stage, &bytes, span, "a number of bytes")?;
    if let Some(n) = stage.const_int(&bytes)
        && n < 0
    {
        return Err(stage
            .error(
                codes::WRONG_VALUE,
                span,
                format!("a number of bytes cannot be negative, this is {n}"),
            )
            .into());
    }
    stage.emit_thread(ThreadOp::BarrierExpect {
        barrier,
        index,
        bytes,
        arrive,
    })?;
    Ok(Value::None)
}

fn operand(stage: &mut Stage, args: &CallArgs) -> Result<(Buffer, Expr)> {
    let value = args.required("mbarrier").clone();
    barrier_element(stage, &value, args.span_of("mbarrier"))
}

/// One barrier: an element of a barrier buffer, or the first when only the buffer is named.
pub(super) fn barrier_element(
    stage: &mut Stage,
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
            return Err(stage
                .error(
                    codes::BARRIER,
                    span,
                    "one barrier is meant, this is several",
                )
                .help("index it: `bars[i]`")
                .into());
        }
        other => {
            return Err(stage
                .error(
                    codes::BARRIER,
                    span,
                    format!("a barrier is meant, this is {}", other.type_name()),
                )
                .help("allocate one with `T.alloc_barrier(arrive_count)`")
                .into());
        }
    };
    let scope = stage.buffer(buffer).scope;
    if scope != Scope::Barrier {
        return Err(stage
            .error(
                codes::BARRIER,
                span,
                format!(
                    "{} is {} memory, not a barrier",
                    stage.buffer_name(buffer),
                    scope.name()
                ),
            )
            .help("allocate one with `T.alloc_barrier(arrive_count)`")
            .into());
    }
    Ok((buffer, index))
}

/// The last bit of a parity; most are written `… % 2` already.
fn modulo_two(stage: &Stage, parity: Expr, span: Span) -> Result<Expr> {
    let is_bit = stage
        .range_of(&parity)
        .is_some_and(|(lo, hi)| lo >= 0 && hi <= 1)
        || matches!(parity.kind(), ExprKind::Binary(BinOp::BitAnd, a, b) if a.is_int(1) || b.is_int(1));
    if is_bit {
        return Ok(parity);
    }
    let one = Expr::int(1, parity.dtype());
    stage.binary_expr(BinOp::BitAnd, parity, one, span)
}
