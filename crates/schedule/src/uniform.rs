//! Which values are the same in all threads of the block.
//!
//! Thread indices, what a thread keeps for itself (local arrays, variables written with
//! varying values) and results that differ by lane are *varying*; everything computed from
//! uniform values is uniform. A load of shared or global memory at a uniform place is uniform:
//! all threads read one element.

use rustc_hash::FxHashSet;
use tilewright_ir::visit::{child_blocks, stmt_exprs};
use tilewright_ir::{
    Block, Buffer, Expr, ExprKind, Func, Kernel, Scope, StmtKind, ThreadOp, Var, VoteKind,
};

/// The varying variables and private buffers of a kernel.
#[derive(Debug)]
pub struct Uniformity<'f> {
    func: &'f Func,
    vars: FxHashSet<Var>,
    buffers: FxHashSet<Buffer>,
}

impl<'f> Uniformity<'f> {
    /// Finds what varies, by growing the set until nothing is added.
    pub fn of(func: &'f Func, kernel: &Kernel) -> Uniformity<'f> {
        let mut found = Uniformity {
            func,
            vars: FxHashSet::default(),
            buffers: FxHashSet::default(),
        };
        for (axis, &var) in kernel.thread_vars.iter().enumerate() {
            if kernel.threads[axis] > 1 {
                found.vars.insert(var);
            }
        }
        loop {
            let before = (found.vars.len(), found.buffers.len());
            found.grow(&kernel.body, false);
            if before == (found.vars.len(), found.buffers.len()) {
                return found;
            }
        }
    }

    /// Whether threads may disagree on the value.
    pub fn varies(&self, e: &Expr) -> bool {
        let mut varies = false;
        e.walk(&mut |node| match node.kind() {
            ExprKind::Var(var) => varies |= self.vars.contains(var),
            ExprKind::Load { buffer, .. } => {
                let root = root(self.func, *buffer);
                varies |= self.buffers.contains(&root);
            }
            _ => {}
        });
        varies
    }

    pub fn var_varies(&self, var: Var) -> bool {
        self.vars.contains(&var)
    }

    fn grow(&mut self, block: &Block, divergent: bool) {
        for stmt in block {
            let mut inside = divergent;
            match &stmt.kind {
                StmtKind::Let { var, value } if self.varies(value) => {
                    self.vars.insert(*var);
                }
                StmtKind::Store {
                    buffer,
                    indices,
                    value,
                } => {
                    let varies =
                        divergent || self.varies(value) || indices.iter().any(|i| self.varies(i));
                    if varies {
                        self.mark_private(*buffer);
                    }
                }
                StmtKind::For(l) => {
                    let mut bounds = false;
                    stmt_exprs(stmt, &mut |e| bounds |= self.varies(e));
                    if bounds {
                        self.vars.extend(l.axes.iter().map(|a| a.var));
                    }
                    inside |= bounds;
                }
                StmtKind::While { cond, .. } | StmtKind::If { cond, .. } => {
                    inside |= self.varies(cond);
                }
                StmtKind::Micro(m) => {
                    // Registers hold what each thread loaded for itself.
                    self.mark_private(m.dest.region.buffer);
                }
                StmtKind::Thread(op) => self.grow_thread_op(op),
                _ => {}
            }
            for child in child_blocks(stmt) {
                self.grow(child, inside);
            }
        }
    }

    fn grow_thread_op(&mut self, op: &ThreadOp) {
        match op {
            // The whole block receives one answer.
            ThreadOp::Vote {
                kind: VoteKind::BlockOr | VoteKind::BlockAnd | VoteKind::BlockCount,
                ..
            } => {}
            ThreadOp::AllReduce { dst, .. } => self.mark_private(*dst),
            ThreadOp::Dp4a { c, .. } => self.mark_private(*c),
            _ => self.vars.extend(op.result()),
        }
    }

    fn mark_private(&mut self, buffer: Buffer) {
        let root = root(self.func, buffer);
        if matches!(
            self.func.buffers[root].scope,
            Scope::Local | Scope::Var | Scope::Fragment
        ) {
            self.buffers.insert(root);
        }
    }
}

/// The buffer that owns the storage of a view.
pub fn root(func: &Func, mut buffer: Buffer) -> Buffer {
    // A chain of views is never longer than the number of buffers.
    for _ in 0..func.buffers.len() {
        match func.buffers[buffer].origin {
            tilewright_ir::BufferOrigin::View(base) => buffer = base,
            _ => break,
        }
    }
    buffer
}
