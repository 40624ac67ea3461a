//! Compilation of tile operations.

use tilewright_ir::touched::{Part, touched};
use tilewright_ir::visit::stmt_exprs;
use tilewright_ir::{
    AtomicSource, Buffer, BufferOrigin, GemmOp, Im2colOp, ReduceKind, Span, Stmt, StmtKind, TileOp,
};

use crate::compile::expr;
use crate::compile::names::Compiled;
use crate::compile::stmt::Builder;
use crate::error::{RunError, codes};
use crate::program::{
    AtomicValue, BarrierRef, GemmCode, Im2colCode, Op, Rect, Space, Tile, TileKind,
};

pub(crate) fn tile(b: &mut Builder<'_, '_>, stmt: &Stmt, op: &TileOp) -> Compiled<()> {
    let span = stmt.span;
    let update = matches!(op, TileOp::ReducerUpdate { .. });
    if b.names.in_point && !update {
        return Err(RunError::new(
            codes::INVALID_IR,
            span,
            "a tile operation in a parallel loop",
        )
        .help("move it out of the loop: the whole block does it at once"));
    }
    if update && !b.names.in_point {
        return Err(RunError::new(
            codes::REDUCER,
            span,
            "a reducer is updated outside of a parallel loop",
        ));
    }
    let mut buffers = Vec::new();
    touched(stmt, &mut |access| {
        if let Part::Region(_) = access.part {
            buffers.push(access.buffer);
        }
    });
    let func = b.names.func;
    let is_private = |buffer: &Buffer| func.buffers[func.root(*buffer)].scope.is_private();
    let private = buffers.iter().any(is_private);
    let varying = private && !b.names.in_point && varies(b, stmt, &buffers);
    let before = b.begin_uniform();
    let kind = kind(b, op, span);
    let uniform = b.end_uniform(before);
    let kind = kind?;
    if update {
        // Inside a parallel loop what the update reads counts for the loop.
        for lane in uniform.lanes {
            if !b.names.uniform.lanes.contains(&lane) {
                b.names.uniform.lanes.push(lane);
            }
        }
        b.names.uniform.buffers.extend(uniform.buffers);
        let tile = Box::new(Tile {
            kind,
            uniform: Default::default(),
        });
        b.emit(Op::PerThread {
            tile,
            varying: false,
        });
        return Ok(());
    }
    let tile = Box::new(Tile { kind, uniform });
    b.emit(if private {
        Op::PerThread { tile, varying }
    } else {
        Op::Collective {
            tile,
            groups: b.groups,
        }
    });
    Ok(())
}

/// Whether threads do the operation on the buffers one by one.
fn varies(b: &Builder<'_, '_>, stmt: &Stmt, buffers: &[Buffer]) -> bool {
    // An update of shared memory by every thread is as many updates as there are threads.
    let mut varying = matches!(stmt.kind, StmtKind::Tile(TileOp::Atomic { .. }));
    stmt_exprs(stmt, &mut |e| varying |= b.names.varying(e));
    varying || buffers.iter().any(|buffer| b.names.buffer_varies(*buffer))
}

fn kind(b: &mut Builder<'_, '_>, op: &TileOp, span: Span) -> Compiled<TileKind> {
    let names = &mut *b.names;
    Ok(match op {
        TileOp::Copy(c) => {
            let (src, dst) = (names.rect(&c.src, span)?, names.rect(&c.dst, span)?);
            names.reads(src.buffer);
            names.writes(dst.buffer);
            TileKind::Copy { src, dst }
        }
        TileOp::Fill { dst, value } => {
            let scalar = names.func.buffers[dst.buffer].dtype.scalar;
            let dst = names.rect(dst, span)?;
            names.writes(dst.buffer);
            let value = expr::cast(names, value, 0, scalar)?;
            TileKind::Fill { dst, value }
        }
        TileOp::Gemm(g) => TileKind::Gemm(Box::new(gemm(b, g, span)?)),
        TileOp::Reduce(r) => {
            let (src, dst) = (names.rect(&r.src, span)?, names.rect(&r.dst, span)?);
            names.reads(src.buffer);
            names.writes(dst.buffer);
            if !r.clear {
                names.reads(dst.buffer);
            }
            let float = names.buffers[dst.buffer as usize].is_float();
            if r.kind.is_bitwise() && float {
                return Err(b.invalid("a bitwise reduction of floats"));
            }
            TileKind::Reduce {
                kind: r.kind,
                dim: dimension(b, r.dim, &src)?,
                src,
                dst,
                clear: r.clear,
                nan_propagate: r.nan_propagate,
            }
        }
        TileOp::Scan(s) => {
            let (src, dst) = (names.rect(&s.src, span)?, names.rect(&s.dst, span)?);
            names.reads(src.buffer);
            names.writes(dst.buffer);
            TileKind::Scan {
                kind: s.kind,
                dim: dimension(b, s.dim, &src)?,
                src,
                dst,
                reverse: s.reverse,
            }
        }
        TileOp::Atomic { op, dst, value, .. } => {
            let scalar = names.func.buffers[dst.buffer].dtype.scalar;
            let dst = names.rect(dst, span)?;
            names.writes(dst.buffer);
            let value = match value {
                AtomicSource::Region(src) => {
                    let src = names.rect(src, span)?;
                    names.reads(src.buffer);
                    AtomicValue::Rect(src)
                }
                AtomicSource::Value(e) => AtomicValue::Value(expr::cast(names, e, 0, scalar)?),
            };
            TileKind::Atomic {
                op: *op,
                dst,
                value,
            }
        }
        TileOp::Transpose { src, dst } => {
            let (src, dst) = (names.rect(src, span)?, names.rect(dst, span)?);
            names.reads(src.buffer);
            names.writes(dst.buffer);
            TileKind::Transpose { src, dst }
        }
        TileOp::Im2col(i) => TileKind::Im2col(Box::new(im2col(b, i, span)?)),
        TileOp::ReducerInit { reducer, init } => {
            let (kind, number) = fold_of(b, *reducer)?;
            let scalar = b.names.func.buffers[*reducer].dtype.scalar;
            let init = match init {
                Some(e) => Some(expr::cast(b.names, e, 0, scalar)?),
                None => None,
            };
            TileKind::ReducerInit {
                reducer: number,
                kind,
                init,
            }
        }
        TileOp::ReducerUpdate {
            reducer,
            indices,
            value,
        } => {
            let (kind, _) = fold_of(b, *reducer)?;
            let scalar = b.names.func.buffers[*reducer].dtype.scalar;
            TileKind::ReducerUpdate {
                kind,
                target: b.names.access(*reducer, indices, 0, span)?,
                value: expr::cast(b.names, value, 0, scalar)?,
            }
        }
        TileOp::ReducerFinalize { reducer, dst } => {
            let (_, number) = fold_of(b, *reducer)?;
            let dst = match dst {
                Some(region) => {
                    let dst = b.names.rect(region, span)?;
                    b.names.writes(dst.buffer);
                    Some(dst)
                }
                None => None,
            };
            TileKind::ReducerFinalize {
                reducer: number,
                dst,
            }
        }
    })
}

fn gemm(b: &mut Builder<'_, '_>, g: &GemmOp, span: Span) -> Compiled<GemmCode> {
    let (a, bb, c) = (
        b.names.rect(&g.a, span)?,
        b.names.rect(&g.b, span)?,
        b.names.rect(&g.c, span)?,
    );
    b.names.reads(a.buffer);
    b.names.reads(bb.buffer);
    b.names.reads(c.buffer);
    b.names.writes(c.buffer);
    for rect in [&a, &bb, &c] {
        if rect.start.len() < 2 {
            return Err(b.invalid("a gemm operand of fewer than two dimensions"));
        }
    }
    let float = |rect: &Rect| b.names.buffers[rect.buffer as usize].is_float();
    if float(&a) != float(&bb) || float(&a) != float(&c) {
        return Err(b.invalid("a gemm of floats and integers"));
    }
    let barrier = match &g.barrier {
        Some((buffer, index)) => Some(barrier(b, *buffer, index)?),
        None => None,
    };
    Ok(GemmCode {
        a,
        b: bb,
        c,
        trans_a: g.trans_a,
        trans_b: g.trans_b,
        clear: expr::int(b.names, &g.clear, 0)?,
        barrier,
    })
}

fn im2col(b: &mut Builder<'_, '_>, i: &Im2colOp, span: Span) -> Compiled<Im2colCode> {
    let image = b.names.buffer(i.image)?;
    b.names.reads(image);
    let dst = b.names.rect(&i.dst, span)?;
    b.names.writes(dst.buffer);
    let image_rank = b.names.buffers[image as usize].shape.len();
    if image_rank != 4 || dst.start.len() < 2 || i.stride == 0 {
        return Err(b.invalid("im2col gathers from an NHWC image into a matrix"));
    }
    Ok(Im2colCode {
        image,
        dst,
        m_step: expr::int(b.names, &i.m_step, 0)?,
        k_step: expr::int(b.names, &i.k_step, 0)?,
        kernel: i.kernel as i64,
        stride: i.stride as i64,
        dilation: i.dilation as i64,
        pad: i.pad as i64,
    })
}

/// A barrier element.
pub(crate) fn barrier(
    b: &mut Builder<'_, '_>,
    buffer: Buffer,
    index: &tilewright_ir::Expr,
) -> Compiled<BarrierRef> {
    let number = b.names.buffer(buffer)?;
    if !matches!(b.names.buffers[number as usize].space, Space::Barrier(_)) {
        return Err(b.invalid("this buffer holds data, not barriers"));
    }
    Ok(BarrierRef {
        buffer: number,
        index: expr::int(b.names, index, 0)?,
    })
}

fn fold_of(b: &mut Builder<'_, '_>, reducer: Buffer) -> Compiled<(ReduceKind, u32)> {
    let number = b.names.buffer(reducer)?;
    match b.names.func.buffers[reducer].origin {
        BufferOrigin::Reducer(kind) => Ok((kind, number)),
        _ => Err(b.invalid("this buffer is not a reducer")),
    }
}

fn dimension(b: &Builder<'_, '_>, dim: u32, src: &Rect) -> Compiled<usize> {
    if (dim as usize) < src.start.len() {
        Ok(dim as usize)
    } else {
        Err(b.invalid("the dimension to fold does not exist"))
    }
}
