//! Compilation of thread operations and of the device operations that tile IR may contain.

use tilewright_ir::{BarrierKind, Buffer, Combiner, DeviceOp, Expr, Span, ThreadOp};

use crate::compile::names::Compiled;
use crate::compile::stmt::Builder;
use crate::compile::{expr, tile};
use crate::error::{RunError, codes};
use crate::program::{Access, AllReduceCode, Int, Num, Op, Place, Thread, ThreadKind};

pub(crate) fn thread(b: &mut Builder<'_, '_>, op: &ThreadOp, span: Span) -> Compiled<()> {
    if b.names.in_point && needs_threads(op) {
        return Err(RunError::new(
            codes::THREAD_IN_PARALLEL,
            span,
            "threads meet here, but a parallel loop has points, not threads",
        )
        .help("move it out of the parallel loop"));
    }
    let (kind, varying) = match op {
        ThreadOp::AtomicRmw {
            op,
            buffer,
            indices,
            value,
            result,
            ..
        } => {
            let scalar = b.names.func.buffers[*buffer].dtype.scalar;
            let target = b.store_target(*buffer, indices, 0, span)?;
            if result.is_some() {
                b.names.reads(target.buffer);
            }
            let value = expr::cast(b.names, value, 0, scalar)?;
            let result = match result {
                Some(var) => Some(b.names.define_scalar(*var, span)?),
                None => None,
            };
            let kind = ThreadKind::AtomicRmw {
                op: *op,
                target,
                value,
                result,
            };
            (kind, true)
        }
        ThreadOp::AtomicVecAdd {
            dst,
            dst_indices,
            src,
            src_indices,
            lanes,
        } => {
            let to = consecutive(b, *dst, dst_indices, *lanes, true, span)?;
            let from = consecutive(b, *src, src_indices, *lanes, false, span)?;
            (ThreadKind::AtomicVecAdd { dst: to, src: from }, true)
        }
        ThreadOp::AtomicLoad {
            buffer,
            indices,
            result,
            ..
        } => {
            let dtype = b.names.func.buffers[*buffer].dtype;
            let load = Expr::load(*buffer, indices.clone(), dtype).with_span(span);
            let varying = b.var_varies(*result);
            let value = expr::num(b.names, &load, 0)?;
            let place = b.names.define_scalar(*result, span)?;
            b.emit(Op::Let {
                place,
                value,
                varying,
            });
            return Ok(());
        }
        ThreadOp::AtomicStore {
            buffer,
            indices,
            value,
            ..
        } => {
            let op = b.store(*buffer, indices, value, span)?;
            b.emit(op);
            return Ok(());
        }
        ThreadOp::Shuffle {
            kind,
            value,
            lane,
            width,
            result,
        } => {
            if *width > 64 || !width.is_power_of_two() {
                return Err(b.invalid("the width of a shuffle is a power of two up to 64"));
            }
            let varying = b.var_varies(*result);
            let kind = ThreadKind::Shuffle {
                kind: *kind,
                value: expr::num(b.names, value, 0)?,
                lane: expr::int(b.names, lane, 0)?,
                width: *width,
                result: b.names.define_scalar(*result, span)?,
            };
            (kind, varying)
        }
        ThreadOp::Vote {
            kind,
            value,
            result,
        } => {
            let varying = b.var_varies(*result);
            let condition = condition(b, value)?;
            let kind = ThreadKind::Vote {
                kind: *kind,
                value: condition,
                result: b.names.define_scalar(*result, span)?,
            };
            (kind, varying)
        }
        ThreadOp::WarpReduce {
            kind,
            value,
            result,
        } => {
            let varying = b.var_varies(*result);
            let scalar = value.dtype().scalar;
            if kind.is_bitwise() && scalar.is_float() {
                return Err(b.invalid("a bitwise reduction of floats"));
            }
            let kind = ThreadKind::WarpReduce {
                kind: *kind,
                scalar,
                value: expr::num(b.names, value, 0)?,
                result: b.names.define_scalar(*result, span)?,
            };
            (kind, varying)
        }
        ThreadOp::AllReduce {
            combiner,
            value,
            cond,
            dst,
            dst_indices,
            axes,
        } => {
            let code = all_reduce(b, combiner, value, cond, (*dst, dst_indices), axes, span)?;
            (ThreadKind::AllReduce(Box::new(code)), true)
        }
        ThreadOp::SyncThreads { named: None } => (ThreadKind::Sync { id: 0, count: None }, false),
        ThreadOp::SyncThreads {
            named: Some((id, count)),
        } => {
            let kind = ThreadKind::Sync {
                id: *id,
                count: Some(*count),
            };
            (kind, false)
        }
        // Threads of a warp run in lockstep here, so they are always in step.
        ThreadOp::SyncWarp => (ThreadKind::Nop, false),
        ThreadOp::SyncGrid => {
            b.names.traffic.sync_grid = true;
            (ThreadKind::SyncGrid, false)
        }
        ThreadOp::BarrierArrive { barrier, index } => {
            let varying = b.varies(index);
            let kind = ThreadKind::Arrive {
                barrier: tile::barrier(b, *barrier, index)?,
                bytes: None,
                arrive: true,
            };
            (kind, varying)
        }
        ThreadOp::BarrierWait {
            barrier,
            index,
            parity,
        } => {
            let varying = b.varies(index) || b.varies(parity);
            let kind = ThreadKind::Wait {
                barrier: tile::barrier(b, *barrier, index)?,
                parity: expr::int(b.names, parity, 0)?,
            };
            (kind, varying)
        }
        ThreadOp::BarrierExpect {
            barrier,
            index,
            bytes,
            arrive,
        } => {
            let varying = b.varies(index) || b.varies(bytes);
            let kind = ThreadKind::Arrive {
                barrier: tile::barrier(b, *barrier, index)?,
                bytes: Some(expr::int(b.names, bytes, 0)?),
                arrive: *arrive,
            };
            (kind, varying)
        }
        ThreadOp::Dp4a {
            a,
            a_indices,
            b: second,
            b_indices,
            c,
            c_indices,
        } => {
            let varying = !b.names.in_point
                && (b.names.any_varying(a_indices)
                    || b.names.any_varying(b_indices)
                    || b.names.any_varying(c_indices)
                    || [a, second, c].iter().any(|x| b.names.buffer_varies(**x)));
            let from_a = consecutive(b, *a, a_indices, 4, false, span)?;
            let from_b = consecutive(b, *second, b_indices, 4, false, span)?;
            let target = b.store_target(*c, c_indices, 0, span)?;
            b.names.reads(target.buffer);
            let kind = ThreadKind::Dp4a {
                a: from_a,
                b: from_b,
                c: target,
            };
            (kind, varying)
        }
        ThreadOp::Extern { name, .. } => {
            return Err(RunError::new(
                codes::FOREIGN_CODE,
                span,
                format!("`{name}` is foreign source: only a GPU can run it"),
            )
            .help("run this kernel on a GPU"));
        }
        ThreadOp::Print { message, args } => {
            let varying = !b.names.in_point && b.names.any_varying(args);
            let args: Compiled<Vec<_>> = args
                .iter()
                .map(|e| Ok((expr::num(b.names, e, 0)?, e.dtype().scalar)))
                .collect();
            let kind = ThreadKind::Print {
                message: message.clone(),
                args: args?,
            };
            (kind, varying)
        }
        ThreadOp::SetMaxRegs { .. } => (ThreadKind::Nop, false),
    };
    push(b, kind, varying);
    Ok(())
}

/// Device operations mean little where everything happens at once; barriers still do.
pub(crate) fn device(b: &mut Builder<'_, '_>, op: &DeviceOp) -> Compiled<()> {
    if b.names.in_point {
        return Err(b.invalid("a device operation in a parallel loop"));
    }
    let kind = match op {
        DeviceOp::Wait { .. }
        | DeviceOp::Commit(_)
        | DeviceOp::Fence(_)
        | DeviceOp::SetPrio(_)
        | DeviceOp::SchedBarrier(_)
        | DeviceOp::SchedGroupBarrier { .. }
        | DeviceOp::Iteration(_) => ThreadKind::Nop,
        DeviceOp::Barrier(BarrierKind::Block | BarrierKind::Bare) => {
            ThreadKind::Sync { id: 0, count: None }
        }
        DeviceOp::Barrier(BarrierKind::Named { id, count }) => ThreadKind::Sync {
            id: *id,
            count: Some(*count),
        },
        DeviceOp::Barrier(BarrierKind::Cond(_)) => {
            return Err(RunError::new(
                codes::NOT_TILE_IR,
                b.span,
                "a conditional barrier belongs to device IR",
            ));
        }
        DeviceOp::BarrierInit {
            barrier,
            index,
            count,
        } => ThreadKind::SetCount {
            barrier: tile::barrier(b, *barrier, index)?,
            count: *count,
        },
    };
    push(b, kind, false);
    Ok(())
}

fn push(b: &mut Builder<'_, '_>, kind: ThreadKind, varying: bool) {
    let in_point = b.names.in_point;
    b.emit(Op::Thread(Box::new(Thread {
        kind,
        varying,
        in_point,
    })));
}

/// Whether the operation is about threads as such, so that a point cannot do it.
fn needs_threads(op: &ThreadOp) -> bool {
    match op {
        ThreadOp::Shuffle { .. }
        | ThreadOp::Vote { .. }
        | ThreadOp::WarpReduce { .. }
        | ThreadOp::AllReduce { .. }
        | ThreadOp::SyncThreads { .. }
        | ThreadOp::SyncWarp
        | ThreadOp::SyncGrid
        | ThreadOp::BarrierArrive { .. }
        | ThreadOp::BarrierWait { .. }
        | ThreadOp::BarrierExpect { .. } => true,
        ThreadOp::AtomicRmw { .. }
        | ThreadOp::AtomicVecAdd { .. }
        | ThreadOp::AtomicLoad { .. }
        | ThreadOp::AtomicStore { .. }
        | ThreadOp::Dp4a { .. }
        | ThreadOp::Extern { .. }
        | ThreadOp::Print { .. }
        | ThreadOp::SetMaxRegs { .. } => false,
    }
}

/// Elements side by side along the last dimension.
fn consecutive(
    b: &mut Builder<'_, '_>,
    buffer: Buffer,
    indices: &[Expr],
    lanes: u16,
    written: bool,
    span: Span,
) -> Compiled<Vec<Access>> {
    let mut list = Vec::new();
    for lane in 0..lanes {
        let mut indices = indices.to_vec();
        if let Some(last) = indices.last_mut() {
            *last = last.clone() + i32::from(lane);
        }
        let access = if written {
            b.store_target(buffer, &indices, 0, span)?
        } else {
            let access = b.names.access(buffer, &indices, 0, span)?;
            b.names.reads(access.buffer);
            access
        };
        list.push(access);
    }
    Ok(list)
}

fn all_reduce(
    b: &mut Builder<'_, '_>,
    combiner: &Combiner,
    value: &Expr,
    cond: &Expr,
    (dst, dst_indices): (Buffer, &[Expr]),
    axes: &[u8],
    span: Span,
) -> Compiled<AllReduceCode> {
    let scalar = b.names.func.buffers[dst].dtype.scalar;
    let lhs = Place::Slot(b.names.fresh());
    let rhs = Place::Slot(b.names.fresh());
    b.names.place_at(combiner.lhs, lhs);
    b.names.place_at(combiner.rhs, rhs);
    Ok(AllReduceCode {
        lhs,
        rhs,
        body: expr::cast(b.names, &combiner.body, 0, scalar)?,
        identity: expr::cast(b.names, &combiner.identity, 0, scalar)?,
        value: expr::cast(b.names, value, 0, scalar)?,
        cond: expr::int(b.names, cond, 0)?,
        dst: b.store_target(dst, dst_indices, 0, span)?,
        axes: axes.to_vec(),
    })
}

/// Votes take any number that is zero or not.
fn condition(b: &mut Builder<'_, '_>, value: &Expr) -> Compiled<Int> {
    match expr::cast(b.names, value, 0, tilewright_ir::Scalar::Bool)? {
        Num::I(node) => Ok(node),
        Num::F(_) => Err(b.invalid("a vote on a float")),
    }
}
