//! Which values are the same in all threads of the block.
//!
//! Thread indices, what a thread keeps for itself (local arrays, variables written with
//! varying values) and results that differ by lane are *varying*; everything computed from
//! uniform values is uniform. A load of shared or global memory at a uniform place is uniform:
//! all threads read one element.
//!
//! Control flow is *divergent* where only some threads come, or not all at one time: under a
//! varying condition, and in a loop that threads leave at different times. A variable that is
//! written there varies; so does one that a region of some warp groups writes and others use.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::visit::{child_blocks, stmt_exprs};
use tilewright_ir::visit_ids::stmt_buffers;
use tilewright_ir::{
    Block, Buffer, Expr, ExprKind, Func, Kernel, Scope, Stmt, StmtKind, ThreadOp, Var, VoteKind,
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
        found.mark_group_variables(&kernel.body);
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

    /// Whether threads may come to the blocks of the statement at different times, or only some
    /// of them: its own condition or range varies, or they leave a loop apart.
    pub fn is_divergent(&self, stmt: &Stmt) -> bool {
        let mut varies = false;
        stmt_exprs(stmt, &mut |e| varies |= self.varies(e));
        varies || self.leaves_apart(stmt)
    }

    /// Whether some threads may leave the loop by a `break` and others go on.
    pub fn leaves_apart(&self, stmt: &Stmt) -> bool {
        match &stmt.kind {
            StmtKind::For(_) | StmtKind::While { .. } => child_blocks(stmt)
                .into_iter()
                .flatten()
                .any(|inner| self.parts(inner, &StmtKind::Break, false)),
            _ => false,
        }
    }

    /// Whether some threads may begin the next iteration of the loop around at this statement of
    /// its body, and others go on with this one.
    pub fn skips_apart(&self, stmt: &Stmt) -> bool {
        self.parts(stmt, &StmtKind::Continue, false)
    }

    /// Whether this jump of the loop around is done by some threads in the statement, not by all.
    fn parts(&self, stmt: &Stmt, jump: &StmtKind, divergent: bool) -> bool {
        match &stmt.kind {
            StmtKind::For(_) | StmtKind::While { .. } => false,
            kind if kind == jump => divergent,
            StmtKind::WarpGroup { body, .. } => body.iter().any(|s| self.parts(s, jump, true)),
            StmtKind::If { cond, .. } => {
                let divergent = divergent || self.varies(cond);
                let mut inner = child_blocks(stmt).into_iter().flatten();
                inner.any(|s| self.parts(s, jump, divergent))
            }
            _ => false,
        }
    }

    fn grow(&mut self, block: &Block, divergent: bool) {
        // Behind a thread's `continue` come the others only.
        let mut divergent = divergent;
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
            if self.leaves_apart(stmt) {
                inside = true;
                if let StmtKind::For(l) = &stmt.kind {
                    self.vars.extend(l.axes.iter().map(|a| a.var));
                }
            }
            for child in child_blocks(stmt) {
                self.grow(child, inside);
            }
            divergent |= self.skips_apart(stmt);
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

    /// Marks the variables that a region of some warp groups writes and other code uses.
    fn mark_group_variables(&mut self, body: &Block) {
        let mut uses = GroupUses::default();
        uses.block(self.func, body, None);
        for (buffer, users) in uses.users {
            if users.len() > 1 && uses.written.contains(&buffer) {
                self.mark_private(buffer);
            }
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

/// Which warp groups use which buffers.
#[derive(Default)]
struct GroupUses<'b> {
    /// By buffer, the groups of each region that uses it; none where all threads do.
    users: FxHashMap<Buffer, FxHashSet<Option<&'b [u32]>>>,
    /// What is written in regions.
    written: FxHashSet<Buffer>,
}

impl<'b> GroupUses<'b> {
    fn block(&mut self, func: &Func, block: &'b Block, groups: Option<&'b [u32]>) {
        for stmt in block {
            if !matches!(stmt.kind, StmtKind::Alloc(_)) {
                stmt_buffers(stmt, &mut |b| {
                    self.users.entry(root(func, b)).or_default().insert(groups);
                });
            }
            if let (StmtKind::Store { buffer, .. }, Some(_)) = (&stmt.kind, groups) {
                self.written.insert(root(func, *buffer));
            }
            let inside = match &stmt.kind {
                StmtKind::WarpGroup { groups, .. } => Some(&groups[..]),
                _ => groups,
            };
            for child in child_blocks(stmt) {
                self.block(func, child, inside);
            }
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
