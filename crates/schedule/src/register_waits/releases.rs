//! What is overwritten behind an arrival barrier: who waits for it goes on to write the version of
//! a tile that its index stands for.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::touched::written;
use tilewright_ir::visit::{child_blocks, walk_stmts};
use tilewright_ir::{Block, Buffer, Expr, Func, Kernel, MicroOp, Scope, Stmt, StmtKind, ThreadOp};

/// By arrival barrier, the operations that write tiles behind a wait for it. Empty where something
/// else may write these, too.
#[derive(Default, Debug)]
pub struct Releases(FxHashMap<Buffer, Vec<MicroOp>>);

impl Releases {
    /// Of tiles that products of warp groups read.
    pub fn of_products(func: &Func, kernel: &Kernel) -> Releases {
        let mut read: FxHashSet<Buffer> = FxHashSet::default();
        walk_stmts(&kernel.body, &mut |stmt| {
            let sources = stmt.as_group_product().map(|m| &m.sources);
            read.extend(
                sources
                    .into_iter()
                    .flatten()
                    .map(|s| func.root(s.region.buffer)),
            );
        });
        read.retain(|b| func.buffers[*b].scope == Scope::Shared);
        let mut found = Releases::default();
        match found.block(func, &kernel.body, &read) {
            true => found,
            false => Releases::default(),
        }
    }

    /// Whether all that is written to these buffers stands behind a wait for its version.
    fn block(&mut self, func: &Func, block: &Block, read: &FxHashSet<Buffer>) -> bool {
        block.iter().enumerate().all(|(at, stmt)| {
            let mut writes = false;
            written(stmt, &mut |b| writes |= read.contains(&func.root(b)));
            (!writes || self.write(&block[..at], stmt))
                && child_blocks(stmt)
                    .into_iter()
                    .all(|inner| self.block(func, inner, read))
        })
    }

    fn write(&mut self, before: &[Stmt], stmt: &Stmt) -> bool {
        let StmtKind::Micro(m) = &stmt.kind else {
            return false;
        };
        let mut guarded = false;
        for stmt in before {
            if let StmtKind::Thread(ThreadOp::BarrierWait { barrier, index, .. }) = &stmt.kind
                && m.dest.slot.as_ref().is_none_or(|slot| slot == index)
            {
                self.0.entry(*barrier).or_default().push(m.clone());
                guarded = true;
            }
        }
        guarded
    }

    /// What others go on to write when a statement arrives: operations, and the index of the
    /// barrier, which is that of the version. `None` where that is not known.
    pub fn by<'a>(&'a self, stmt: &'a Stmt) -> Option<(&'a [MicroOp], &'a Expr)> {
        match &stmt.kind {
            StmtKind::Thread(ThreadOp::BarrierArrive { barrier, index, .. }) => {
                Some((self.0.get(barrier)?, index))
            }
            _ => None,
        }
    }
}
