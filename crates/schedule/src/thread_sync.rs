//! ThreadSync: block barriers where threads hand data to each other, through shared memory or
//! through a tensor.
//!
//! Walks the program once with the accesses that no barrier has closed yet. A statement that
//! conflicts with one of them gets a barrier before it, which closes them all. A loop is
//! walked a second time, starting from what its first iteration leaves open, so hazards
//! between iterations are seen. A barrier stands only where all threads of the block go
//! together: before a thread-dependent `if`, never in it. Where only threads of one warp meet,
//! a warp barrier does. Warp groups in regions of their own meet each other at the user's barriers
//! only; a barrier in a region is one of its groups, and what is done there stays open to the
//! rest of the block. Regions that follow each other run side by side, so the block waits for what
//! any of them needs before the first. Then each barrier without which no hazard is left goes, and
//! one in a loop goes before it where that is enough.
//!
//! Accesses meet only where the conditions of both can hold ([`crate::facts`]): the epilogue of a
//! pipelined loop that was skipped reads what the prologue wrote, and no barrier stands there for
//! what the loop would have written.
//!
//! The [walk](crate::walk) is over the body's [`outline`], and what two accesses do to each other
//! is remembered in [`Conflicts`], so walking again costs little.
//!
//! Before:
//! ```text
//! S[tx] = A[tx]
//! B[tx] = S[127 - tx]
//! ```
//! After:
//! ```text
//! S[tx] = A[tx]
//! barrier block
//! B[tx] = S[127 - tx]
//! ```
//!
//! Needs loop IR: one thread's view. It never moves a statement, and never puts a barrier
//! where the model proves that no two threads meet.

use tilewright_ir::visit::child_blocks_mut;
use tilewright_ir::{
    BarrierKind, Block, DeviceOp, Diagnostics, Func, Level, Stmt, StmtKind, ThreadOp,
};

use crate::conflicts::Conflicts;
use crate::outline::{Item, ItemKind, outline};
use crate::walk::{Waits, derive};

/// Inserts the block barriers that a function's kernels need. Returns how many.
///
/// `warp` is the number of threads that run together: where only threads of one warp meet, they
/// synchronise among themselves.
pub fn thread_sync(func: &mut Func, warp: u32, diags: &mut Diagnostics) -> usize {
    debug_assert_ne!(func.level, Level::Tile);
    let mut inserted = 0;
    for at in 0..func.kernels.len() {
        let kernel = &func.kernels[at];
        let mut conflicts = Conflicts::new(func, kernel, warp);
        let items = outline(func, kernel, &mut conflicts, diags);
        let waits = derive(&items, &mut conflicts);
        inserted += waits.iter().filter(|w| w.all).count();
        let mut body = std::mem::take(&mut func.kernels[at].body);
        insert(&mut body, &items, &waits, BarrierKind::Block);
        func.kernels[at].body = body;
    }
    inserted
}

/// Writes the waits into the body that the items were made from.
fn insert(block: &mut Block, items: &[Item], waits: &[Waits], barrier: BarrierKind) {
    let stmts = std::mem::take(block);
    block.reserve(stmts.len());
    for (mut stmt, item) in stmts.into_iter().zip(items) {
        let wait = waits[item.at];
        if wait.warp {
            let kind = StmtKind::Thread(ThreadOp::SyncWarp);
            block.push(Stmt::new(kind, stmt.span));
        }
        if wait.all {
            let kind = StmtKind::Device(DeviceOp::Barrier(barrier.clone()));
            block.push(Stmt::new(kind, stmt.span));
        }
        let mut children = child_blocks_mut(&mut stmt).into_iter();
        let mut inner = |items: &[Item], barrier: BarrierKind| {
            if let Some(child) = children.next() {
                insert(child, items, waits, barrier);
            }
        };
        match &item.kind {
            ItemKind::Unit | ItemKind::WaitsForBlock | ItemKind::WaitsForWarp => {}
            ItemKind::Loop { body, .. } => inner(body, barrier.clone()),
            ItemKind::Branch {
                then, otherwise, ..
            } => {
                inner(then, barrier.clone());
                inner(otherwise, barrier.clone());
            }
            ItemKind::Groups { body, groups, .. } => {
                let named = BarrierKind::Named {
                    id: 1 + groups.first(),
                    count: groups.threads(),
                };
                inner(body, named);
            }
        }
        block.push(stmt);
    }
}
