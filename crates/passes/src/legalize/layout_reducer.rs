//! LayoutReducer: reducers become shared memory that points update atomically.
//!
//! Opening an epoch fills the buffer with the value or the identity, a contribution is one
//! atomic update, closing it copies the result out. Every later pass sees ordinary buffers.
//!
//! Before:
//! ```text
//! alloc acc: reducer float32[4] op=sum
//! reducer_init acc
//! for i in parallel(256) { reducer_update acc[i % 4], x[i] }
//! reducer_finalize acc -> out[0 +: 4]
//! ```
//! After:
//! ```text
//! alloc acc: shared float32[4]
//! fill acc[0 +: 4], 0.0
//! for i in parallel(256) { atomic_rmw add acc[i % 4], x[i] relaxed }
//! copy acc[0 +: 4] -> out[0 +: 4]
//! ```
//!
//! Needs tile IR. It never changes how often a point contributes: once.

use rustc_hash::FxHashMap;
use tilewright_ir::visit::child_blocks_mut;
use tilewright_ir::{
    AtomicOp, Block, Buffer, BufferOrigin, CopyHints, CopyKind, CopyOp, Diagnostics, Expr, Func,
    MemoryOrder, ReduceKind, Region, Scope, Stmt, StmtKind, Target, ThreadOp, TileOp,
};

use super::lower_tile_op::identity;
use crate::Changed;

/// Rewrites all reducers of the function.
pub fn layout_reducer(func: &mut Func, _target: Target, _diags: &mut Diagnostics) -> Changed {
    let mut kinds: FxHashMap<Buffer, ReduceKind> = FxHashMap::default();
    for (buffer, data) in func.buffers.iter_mut() {
        if let BufferOrigin::Reducer(kind) = data.origin {
            kinds.insert(buffer, kind);
            data.scope = Scope::Shared;
            data.origin = BufferOrigin::Alloc;
        }
    }
    if kinds.is_empty() {
        return Changed::No;
    }
    for at in 0..func.kernels.len() {
        let mut body = std::mem::take(&mut func.kernels[at].body);
        rewrite(func, &kinds, &mut body);
        func.kernels[at].body = body;
    }
    Changed::Yes
}

fn rewrite(func: &Func, kinds: &FxHashMap<Buffer, ReduceKind>, block: &mut Block) {
    block.retain(|stmt| {
        // Without a destination the reducer itself is read from now on.
        !matches!(
            &stmt.kind,
            StmtKind::Tile(TileOp::ReducerFinalize { dst: None, .. })
        )
    });
    for stmt in block {
        rewrite_stmt(func, kinds, stmt);
        for child in child_blocks_mut(stmt) {
            rewrite(func, kinds, child);
        }
    }
}

fn rewrite_stmt(func: &Func, kinds: &FxHashMap<Buffer, ReduceKind>, stmt: &mut Stmt) {
    let StmtKind::Tile(op) = &stmt.kind else {
        return;
    };
    let kind_of = |buffer: &Buffer| kinds.get(buffer).copied().unwrap_or(ReduceKind::Sum);
    let new = match op {
        TileOp::ReducerInit { reducer, init } => {
            let data = &func.buffers[*reducer];
            let value: Expr = init
                .clone()
                .unwrap_or_else(|| identity(kind_of(reducer), data.dtype));
            StmtKind::Tile(TileOp::Fill {
                dst: Region::whole(*reducer, data),
                value,
            })
        }
        TileOp::ReducerUpdate {
            reducer,
            indices,
            value,
        } => StmtKind::Thread(ThreadOp::AtomicRmw {
            op: match kind_of(reducer) {
                ReduceKind::Sum | ReduceKind::AbsSum => AtomicOp::Add,
                ReduceKind::Max | ReduceKind::AbsMax => AtomicOp::Max,
                ReduceKind::Min => AtomicOp::Min,
                ReduceKind::BitAnd => AtomicOp::And,
                ReduceKind::BitOr => AtomicOp::Or,
                ReduceKind::BitXor => AtomicOp::Xor,
            },
            buffer: *reducer,
            indices: indices.clone(),
            value: value.clone().cast_to(func.buffers[*reducer].dtype),
            order: MemoryOrder::Relaxed,
            result: None,
        }),
        TileOp::ReducerFinalize {
            reducer,
            dst: Some(dst),
        } => StmtKind::Tile(TileOp::Copy(CopyOp {
            src: Region::whole(*reducer, &func.buffers[*reducer]),
            dst: dst.clone(),
            kind: CopyKind::Sync,
            hints: CopyHints::default(),
        })),
        _ => return,
    };
    stmt.kind = new;
}
