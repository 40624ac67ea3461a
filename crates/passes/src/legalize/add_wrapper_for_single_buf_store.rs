//! AddWrapperForSingleBufStore: a store to one element of a fragment becomes a parallel loop
//! of one point, so that layout inference sees only loops.
//!
//! Before:
//! ```text
//! m[0] = 1.0
//! ```
//! After:
//! ```text
//! for u in parallel(1) { m[0] = 1.0 }
//! ```
//!
//! Needs tile IR. It never wraps what already stands in a parallel loop.

use tilewright_ir::visit::child_blocks_mut;
use tilewright_ir::{
    Axis, Block, DType, Diagnostics, Expr, Func, Loop, LoopKind, Scope, StmtKind, Target, VarKind,
};

use crate::Changed;

/// Wraps all single stores to fragments.
pub fn add_wrapper_for_single_buf_store(
    func: &mut Func,
    _target: Target,
    _diags: &mut Diagnostics,
) -> Changed {
    let mut changed = Changed::No;
    for at in 0..func.kernels.len() {
        let mut body = std::mem::take(&mut func.kernels[at].body);
        wrap(func, &mut body, &mut changed);
        func.kernels[at].body = body;
    }
    changed
}

fn wrap(func: &mut Func, block: &mut Block, changed: &mut Changed) {
    for stmt in block {
        match &stmt.kind {
            StmtKind::For(l) if matches!(l.kind, LoopKind::Parallel { .. }) => continue,
            StmtKind::Store { buffer, .. } if func.buffers[*buffer].scope == Scope::Fragment => {
                let var = func.add_var("u", DType::I32, VarKind::Loop);
                stmt.wrap(|inner| {
                    StmtKind::For(Loop {
                        kind: LoopKind::Parallel {
                            coalesced_width: None,
                            layout: None,
                        },
                        axes: vec![Axis::upto(var, Expr::i32(1))],
                        body: vec![inner],
                    })
                });
                *changed = Changed::Yes;
                continue;
            }
            _ => {}
        }
        for child in child_blocks_mut(stmt) {
            wrap(func, child, changed);
        }
    }
}
