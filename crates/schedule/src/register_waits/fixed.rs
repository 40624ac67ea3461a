//! The order that a wait counts on.
//!
//! A wait that leaves operations in flight says that all older ones are complete: to this wave, and before a
//! bare barrier to others. That holds only where the machine scheduler leaves the younger ones behind the
//! older, which a fence of its own says. Without it clang would add waits of its own for this wave.
//!
//! Before:
//! ```text
//! s2r … a … counter=lgkmcnt
//! s2r … b … counter=lgkmcnt
//! wait lgkmcnt(1)
//! barrier bare
//! ```
//! After:
//! ```text
//! s2r … a … counter=lgkmcnt
//! sched_barrier 0
//! s2r … b … counter=lgkmcnt
//! wait lgkmcnt(1)
//! barrier bare
//! ```

use tilewright_ir::visit::child_blocks_mut;
use tilewright_ir::{Block, Counter, DeviceOp, Stmt, StmtKind};

/// Fences the operations that waits leave in flight.
pub(super) fn fix_order(block: &mut Block) {
    for stmt in block.iter_mut() {
        for child in child_blocks_mut(stmt) {
            fix_order(child);
        }
    }
    let mut relied: Vec<usize> = (0..block.len())
        .filter_map(|at| last_relied_on(block, at))
        .collect();
    relied.sort_unstable();
    relied.dedup();
    for at in relied.into_iter().rev() {
        let fence = StmtKind::Device(DeviceOp::SchedBarrier(0));
        let span = block[at].span;
        block.insert(at + 1, Stmt::new(fence, span));
    }
}

/// The youngest operation that a wait waits for, where it leaves younger ones.
fn last_relied_on(block: &Block, wait: usize) -> Option<usize> {
    let StmtKind::Device(DeviceOp::Wait {
        counter: Counter::Lgkmcnt,
        at_most: left @ 1..,
    }) = block[wait].kind
    else {
        return None;
    };
    let mut younger = 0;
    for (at, stmt) in block[..wait].iter().enumerate().rev() {
        match &stmt.kind {
            StmtKind::Micro(op) if op.counter == Some(Counter::Lgkmcnt) => {
                if younger >= left {
                    return Some(at);
                }
                younger += op.count();
            }
            StmtKind::Device(DeviceOp::Wait {
                counter: Counter::Lgkmcnt,
                at_most: 0,
            }) => return None,
            _ => {}
        }
    }
    None
}
