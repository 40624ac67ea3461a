//! LDS accesses that no count stands for.
//!
//! A statement without a counter is complete when the next one starts, and the compiler sees to
//! that for the thread itself. A bare barrier waits for nothing, so what such a statement wrote
//! must be waited for before it. A narrow access has a counter, but the compiler joins
//! neighbours into one instruction, which the machine counts once.

use tilewright_ir::visit::stmt_exprs;
use tilewright_ir::{
    BarrierKind, Buffer, DeviceOp, ExprKind, Func, MicroOp, Scope, Stmt, StmtKind, ThreadOp,
};

/// The widest access, in bits, that the compiler joins with a neighbour.
const JOINED_BITS: u32 = 64;

/// Whether a statement itself, without the blocks inside it, accesses LDS without a counter.
pub(super) fn touches(func: &Func, stmt: &Stmt) -> bool {
    let shared = |buffer: Buffer| func.buffers[buffer].scope == Scope::Shared;
    let mut found = match &stmt.kind {
        StmtKind::Micro(op) if op.counter.is_none() => {
            let mut ends = op.sources.iter().chain([&op.dest]);
            ends.any(|a| shared(a.region.buffer))
        }
        StmtKind::Store { buffer, .. } => shared(*buffer),
        StmtKind::Thread(op) => match op {
            ThreadOp::AtomicRmw { buffer, .. }
            | ThreadOp::AtomicLoad { buffer, .. }
            | ThreadOp::AtomicStore { buffer, .. } => shared(*buffer),
            ThreadOp::AtomicVecAdd { dst, src, .. } => shared(*dst) || shared(*src),
            ThreadOp::Dp4a { a, b, c, .. } => shared(*a) || shared(*b) || shared(*c),
            ThreadOp::AllReduce { .. } => true,
            _ => false,
        },
        _ => false,
    };
    stmt_exprs(stmt, &mut |e| {
        e.walk_distinct(&mut |node| {
            if let ExprKind::Load { buffer, .. } = node.kind() {
                found |= shared(*buffer);
            }
        });
    });
    found
}

/// Whether the compiler may join the pieces of an LDS operation, so that fewer instructions than
/// pieces are certain.
pub(super) fn is_narrow(func: &Func, op: &MicroOp) -> bool {
    let mut ends = op.sources.iter().chain([&op.dest]).map(|a| a.region.buffer);
    let data = ends.find(|&b| func.buffers[b].scope == Scope::Shared);
    data.is_some_and(|b| op.width * func.buffers[b].dtype.bits() <= JOINED_BITS)
}

/// Whether a statement is a barrier that waits for no memory.
pub(super) fn is_bare(stmt: &Stmt) -> bool {
    matches!(
        stmt.kind,
        StmtKind::Device(DeviceOp::Barrier(BarrierKind::Bare | BarrierKind::Cond(_)))
    )
}
