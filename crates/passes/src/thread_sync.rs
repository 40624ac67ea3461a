//! ThreadSync: block barriers where threads hand data to each other through shared memory.
//!
//! Nothing is implicit at device level, so a pipelined loop that no pass has taken up becomes
//! the serial loop it means.
//!
//! Where the machine has bare barriers, one that loads for a later iteration are in flight at is
//! bare: it must not wait for them.
//!
//! The work is done by the schedule engine's dependence model; see
//! [`tilewright_schedule::thread_sync`] for the before and after.

use tilewright_ir::visit::child_blocks_mut;
use tilewright_ir::{Block, Diagnostics, Func, Level, LoopKind, StmtKind, Target};

use crate::Changed;

/// Inserts the barriers; the function is at device level afterwards.
pub fn thread_sync(func: &mut Func, target: Target, diags: &mut Diagnostics) -> Changed {
    let inserted = tilewright_schedule::thread_sync(func, target.machine().warp_size, diags);
    for kernel in &mut func.kernels {
        serial_loops(&mut kernel.body);
    }
    if target.machine().barrier.bare {
        tilewright_schedule::bare_barriers(func);
    }
    func.level = Level::Device;
    if inserted > 0 {
        Changed::Yes
    } else {
        Changed::No
    }
}

fn serial_loops(block: &mut Block) {
    for stmt in block {
        if let StmtKind::For(l) = &mut stmt.kind
            && matches!(l.kind, LoopKind::Pipelined(_))
        {
            l.kind = LoopKind::Serial;
            l.drop_turns();
        }
        for child in child_blocks_mut(stmt) {
            serial_loops(child);
        }
    }
}
