//! Barriers that leave loads under way.
//!
//! Where the block's barrier waits for all memory operations of a wave, loads for a later
//! iteration are among them: what a pipelined loop has fetched ahead would be waited for at each
//! barrier around it. A kernel whose loads are counted has every wait written down, so its barriers
//! need not wait themselves; RegisterWaits puts the waits before them that what goes through LDS
//! needs.
//!
//! Before:
//! ```text
//! g2r for c < 4 do A[…] at […] -> staged[0 +: 16] at [c * 4] inst="load" width=4 counter=vmcnt
//! barrier block
//! wait vmcnt(0)
//! r2s for c < 4 do staged[0 +: 16] at [c * 4] -> A_shared[…] at […] inst="store" width=4
//! ```
//! After: the same with `barrier bare`.

use tilewright_ir::visit::{child_blocks_mut, walk_stmts};
use tilewright_ir::{BarrierKind, Block, Counter, DeviceOp, Func, StmtKind};

/// Makes the barriers of kernels with counted loads bare.
pub fn bare_barriers(func: &mut Func) {
    for kernel in &mut func.kernels {
        let mut counted = false;
        walk_stmts(&kernel.body, &mut |stmt| {
            if let StmtKind::Micro(m) = &stmt.kind {
                counted |= m.counter == Some(Counter::Vmcnt);
            }
        });
        if counted {
            make_bare(&mut kernel.body);
        }
    }
}

fn make_bare(block: &mut Block) {
    for stmt in block {
        if let StmtKind::Device(DeviceOp::Barrier(kind @ BarrierKind::Block)) = &mut stmt.kind {
            *kind = BarrierKind::Bare;
        }
        for child in child_blocks_mut(stmt) {
            make_bare(child);
        }
    }
}
