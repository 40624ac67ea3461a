//! Barriers that leave loads under way.
//!
//! On AMD the block's barrier waits for all memory operations of a wave, loads for a later
//! iteration too: what a pipelined loop has fetched ahead would be waited for at each barrier
//! around it. Where such loads may be under way the waves meet at a bare barrier; RegisterWaits
//! puts the waits before it that what goes through LDS needs.
//!
//! Before:
//! ```text
//! g2r for c < 4 do A[…] at […] -> staged[0 +: 16] at [c * 4] inst="load" width=4 counter=vmcnt
//! barrier block
//! wait vmcnt(0)
//! r2s for c < 4 do staged[0 +: 16] at [c * 4] -> A_shared[…] at […] inst="store" width=4
//! ```
//! After: the same with `barrier bare`.

use tilewright_ir::{BarrierKind, Block, Counter, DeviceOp, Func, StmtKind};

/// Makes barriers bare where loads are under way.
pub fn bare_barriers(func: &mut Func) {
    for kernel in &mut func.kernels {
        block(&mut kernel.body, false);
    }
}

/// Says whether loads may be under way behind the statements, given whether they are before.
fn block(stmts: &mut Block, mut under_way: bool) -> bool {
    for stmt in stmts {
        match &mut stmt.kind {
            StmtKind::Micro(m) => under_way |= m.counter == Some(Counter::Vmcnt),
            StmtKind::Device(DeviceOp::Wait {
                counter: Counter::Vmcnt,
                at_most: 0,
            }) => under_way = false,
            StmtKind::Device(DeviceOp::Barrier(kind @ BarrierKind::Block)) => {
                if under_way {
                    *kind = BarrierKind::Bare;
                }
            }
            StmtKind::For(l) => under_way = repeated(&mut l.body, under_way),
            StmtKind::While { body, .. } => under_way = repeated(body, under_way),
            StmtKind::If {
                then, otherwise, ..
            } => under_way = block(then, under_way) | block(otherwise, under_way),
            StmtKind::WarpGroup { body, .. } => under_way |= block(body, under_way),
            _ => {}
        }
    }
    under_way
}

/// The end of one iteration is the start of the next.
fn repeated(body: &mut Block, under_way: bool) -> bool {
    let after = block(body, under_way);
    if after && !under_way {
        return block(body, true);
    }
    after | under_way
}
