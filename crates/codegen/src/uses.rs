//! What a kernel reads, writes and needs: decided once, before anything is printed.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::operand::{Atomic, Operand};
use tilewright_ir::touched::touched;
use tilewright_ir::visit::{child_blocks, stmt_exprs, walk_stmts};
use tilewright_ir::visit_ids::buffer_exprs;
use tilewright_ir::{
    Block, Buffer, BufferOrigin, DeviceOp, Expr, ExprKind, Func, Kernel, Stmt, StmtKind, ThreadOp,
    Var,
};

use crate::bulk::bulk_copy;

/// What a kernel uses.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// Variables that printed code mentions; a `let` of another one is left out.
    pub vars: FxHashSet<Var>,
    /// Buffers that printed code mentions, and whether it writes them. A view counts for itself
    /// and for what it is a view of.
    pub buffers: FxHashMap<Buffer, bool>,
    pub sync_grid: bool,
}

impl Uses {
    pub fn of(func: &Func, kernel: &Kernel) -> Uses {
        let mut uses = Uses::default();
        // A `let` is needed if something needed mentions it, so this grows until it is whole.
        loop {
            let before = uses.vars.len();
            uses.block(&kernel.body);
            if uses.vars.len() == before {
                break;
            }
        }
        uses.find_buffers(func, &kernel.body);
        uses
    }

    fn block(&mut self, block: &Block) {
        for stmt in block {
            if !self.is_dead(stmt) {
                printed_exprs(stmt, &mut |e| self.expr(e));
                if let StmtKind::Thread(op) = &stmt.kind {
                    op.operands(&mut |operand| {
                        if let Operand::Bound(var) = operand {
                            self.vars.insert(*var);
                        }
                    });
                }
            }
            for child in child_blocks(stmt) {
                self.block(child);
            }
        }
    }

    /// Whether the statement only names a value that nobody uses.
    pub fn is_dead(&self, stmt: &Stmt) -> bool {
        matches!(&stmt.kind, StmtKind::Let { var, .. } if !self.vars.contains(var))
    }

    fn expr(&mut self, e: &Expr) {
        e.walk_distinct(&mut |node| {
            if let ExprKind::Var(var) = node.kind() {
                self.vars.insert(*var);
            }
        });
    }

    fn find_buffers(&mut self, func: &Func, body: &Block) {
        walk_stmts(body, &mut |stmt| {
            if self.is_dead(stmt) {
                return;
            }
            if matches!(stmt.kind, StmtKind::Thread(ThreadOp::SyncGrid)) {
                self.sync_grid = true;
            }
            if let StmtKind::Thread(ThreadOp::Print { .. }) = &stmt.kind
                && let Some(prints) = &func.attrs.prints
            {
                self.touch(func, prints.buffer, true);
            }
            let fetch = matches!(stmt.kind, StmtKind::Device(DeviceOp::Prefetch { .. }));
            printed_exprs(stmt, &mut |e| {
                for (buffer, written) in mentioned(e) {
                    self.touch(func, buffer, written && !fetch);
                }
            });
            // Of a tensor that the copy engine reads the kernel has a map, not the address.
            let bulk = match &stmt.kind {
                StmtKind::Micro(op) => bulk_copy(op).map(|(_, tensor, _)| tensor.region.buffer),
                _ => None,
            };
            // What is loaded atomically is never read through the read-only path.
            touched(stmt, &mut |access| {
                if bulk == Some(access.buffer) {
                    return;
                }
                let written = access.mode.writes() || access.atomic != Atomic::No;
                self.touch(func, access.buffer, written);
            });
            if let StmtKind::Device(DeviceOp::BarrierInit { barrier, .. }) = &stmt.kind {
                self.touch(func, *barrier, true);
            }
        });
    }

    fn touch(&mut self, func: &Func, buffer: Buffer, written: bool) {
        let known = self.buffers.insert(buffer, written);
        if known == Some(true) {
            self.buffers.insert(buffer, true);
        }
        let data = &func.buffers[buffer];
        if let BufferOrigin::View(base) = data.origin {
            self.touch(func, base, written);
        }
        if known.is_none() {
            // An address may come from a table of them.
            let mut read = Vec::new();
            buffer_exprs(data, &mut |e| {
                self.expr(e);
                read.extend(mentioned(e));
            });
            for (buffer, written) in read {
                self.touch(func, buffer, written);
            }
        }
    }
}

/// The buffers that an expression mentions, and whether they may be written: what happens at an
/// address is not seen here.
fn mentioned(e: &Expr) -> Vec<(Buffer, bool)> {
    let mut found = Vec::new();
    e.walk_distinct(&mut |node| match node.kind() {
        ExprKind::Load { buffer, .. } => found.push((*buffer, false)),
        ExprKind::AddressOf { buffer, .. } => found.push((*buffer, true)),
        _ => {}
    });
    found
}

/// The expressions of a statement that are printed: of a micro-op what each thread does, not
/// what the block touches together.
fn printed_exprs<'a>(stmt: &'a Stmt, f: &mut impl FnMut(&'a Expr)) {
    match &stmt.kind {
        StmtKind::Micro(op) => {
            for access in op.sources.iter().chain([&op.dest]) {
                access.at.iter().for_each(&mut *f);
                access.slot.iter().for_each(&mut *f);
            }
            op.pred.iter().for_each(&mut *f);
            op.arrives.iter().for_each(|arrival| f(&arrival.index));
            op.otherwise.iter().for_each(f);
        }
        _ => stmt_exprs(stmt, f),
    }
}
