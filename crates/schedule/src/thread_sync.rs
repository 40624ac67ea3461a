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

use tilewright_ir::target::NAMED_BARRIERS;
use tilewright_ir::visit::{child_blocks_mut, walk_stmts};
use tilewright_ir::{
    BarrierKind, Block, Code, DeviceOp, Diagnostic, Diagnostics, Func, Level, Span, Stmt, StmtKind,
    ThreadOp,
};

use crate::conflicts::Conflicts;
use crate::outline::{GroupSet, Item, ItemKind, outline};
use crate::walk::{Waits, derive};

const NAMED_BARRIERS_USED_UP: Code = Code("named-barriers");

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
        let mut named = NamedBarriers::of(&kernel.body);
        let mut body = std::mem::take(&mut func.kernels[at].body);
        insert(&mut body, &items, &waits, GroupSet::default(), &mut named);
        func.kernels[at].body = body;
        if let Some(span) = named.missing {
            let text = "the kernel has more sets of warp groups that wait for each other than there \
                        are barriers for them";
            let error = Diagnostic::error(NAMED_BARRIERS_USED_UP, span, text);
            let most = NAMED_BARRIERS - 1;
            diags.push(error.help(format!(
                "a block has {most} of them, those that the kernel names among them; use fewer \
                 sets of groups in `T.ws`"
            )));
        }
    }
    inserted
}

/// Which barrier is whose, of those that some threads of a block can wait at.
struct NamedBarriers {
    /// Those that the kernel names itself.
    taken: Vec<u32>,
    sets: Vec<(GroupSet, u32)>,
    /// Where there was none left.
    missing: Option<Span>,
}

impl NamedBarriers {
    fn of(body: &Block) -> NamedBarriers {
        let mut taken = Vec::new();
        walk_stmts(body, &mut |stmt| {
            if let StmtKind::Thread(ThreadOp::SyncThreads {
                named: Some((id, _)),
            })
            | StmtKind::Device(DeviceOp::Barrier(BarrierKind::Named { id, .. })) = stmt.kind
            {
                taken.push(id);
            }
        });
        NamedBarriers {
            taken,
            sets: Vec::new(),
            missing: None,
        }
    }

    /// The barrier of the block, or of a set of its warp groups. Groups of one set may come to it
    /// while others are still at that of another, so each set has its own.
    fn barrier(&mut self, groups: GroupSet, span: Span) -> BarrierKind {
        if groups.is_block() {
            return BarrierKind::Block;
        }
        let known = self.sets.iter().find(|(set, _)| *set == groups);
        let id = known.map(|(_, id)| *id).unwrap_or_else(|| {
            let own = 1 + groups.first();
            let free = |id: &u32| {
                !self.taken.contains(id) && !self.sets.iter().any(|(_, used)| used == id)
            };
            let id = std::iter::once(own).chain(1..NAMED_BARRIERS).find(free);
            if id.is_none() {
                self.missing.get_or_insert(span);
            }
            let id = id.unwrap_or(own);
            self.sets.push((groups, id));
            id
        });
        let count = groups.threads();
        BarrierKind::Named { id, count }
    }
}

/// Writes the waits into the body that the items were made from, which these groups run.
fn insert(
    block: &mut Block,
    items: &[Item],
    waits: &[Waits],
    groups: GroupSet,
    named: &mut NamedBarriers,
) {
    let stmts = std::mem::take(block);
    block.reserve(stmts.len());
    for (mut stmt, item) in stmts.into_iter().zip(items) {
        let wait = waits[item.at];
        if wait.warp {
            let kind = StmtKind::Thread(ThreadOp::SyncWarp);
            block.push(Stmt::new(kind, stmt.span));
        }
        if wait.all {
            let kind = StmtKind::Device(DeviceOp::Barrier(named.barrier(groups, stmt.span)));
            block.push(Stmt::new(kind, stmt.span));
        }
        let mut children = child_blocks_mut(&mut stmt).into_iter();
        let mut inner = |items: &[Item], groups: GroupSet| {
            if let Some(child) = children.next() {
                insert(child, items, waits, groups, named);
            }
        };
        match &item.kind {
            ItemKind::Unit | ItemKind::WaitsForBlock | ItemKind::WaitsForWarp => {}
            ItemKind::Loop { body, .. } => inner(body, groups),
            ItemKind::Branch {
                then, otherwise, ..
            } => {
                inner(then, groups);
                inner(otherwise, groups);
            }
            ItemKind::Groups { body, groups, .. } => inner(body, *groups),
        }
        block.push(stmt);
    }
}
