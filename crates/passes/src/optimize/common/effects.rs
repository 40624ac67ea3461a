//! What a statement reads and writes, by the buffer that owns the storage.
//!
//! Regions do not count: this says which statements can depend on each other at all. It works
//! on tile IR and on loop IR.

use rustc_hash::FxHashSet;
use tilewright_ir::touched::touched;
use tilewright_ir::visit::{child_blocks, stmt_exprs};
use tilewright_ir::{
    Buffer, BufferOrigin, Expr, ExprKind, Func, Kernel, Scope, Stmt, StmtKind, ThreadOp, Var,
};

/// The buffers and variables that statements touch.
#[derive(Clone, Default, Debug)]
pub(in crate::optimize) struct Effects {
    pub reads: FxHashSet<Buffer>,
    pub writes: FxHashSet<Buffer>,
    /// Variables that occur in its expressions.
    pub vars: FxHashSet<Var>,
    /// Foreign code, whose effects on global memory are not known.
    pub opaque: bool,
}

impl Effects {
    /// The effects of a statement and of the blocks inside it.
    pub fn of(func: &Func, stmt: &Stmt) -> Effects {
        let mut effects = Effects::default();
        effects.add(func, stmt);
        effects
    }

    /// The effects of all statements of a block.
    pub fn of_block(func: &Func, block: &[Stmt]) -> Effects {
        let mut effects = Effects::default();
        for stmt in block {
            effects.add(func, stmt);
        }
        effects
    }

    /// What the value of an expression depends on.
    pub fn of_expr(func: &Func, e: &Expr) -> Effects {
        let mut effects = Effects::default();
        effects.expr(func, e);
        effects
    }

    pub fn add(&mut self, func: &Func, stmt: &Stmt) {
        stmt_exprs(stmt, &mut |e| self.expr(func, e));
        touched(stmt, &mut |access| {
            if access.mode.reads() {
                self.read(func, access.buffer);
            }
            if access.mode.writes() {
                self.write(func, access.buffer);
            }
        });
        if let StmtKind::Thread(ThreadOp::Extern { pure, .. }) = &stmt.kind {
            self.opaque |= !pure;
        }
        for child in child_blocks(stmt) {
            for stmt in child {
                self.add(func, stmt);
            }
        }
    }

    pub fn touches(&self, buffer: Buffer) -> bool {
        self.reads.contains(&buffer) || self.writes.contains(&buffer)
    }

    fn read(&mut self, func: &Func, buffer: Buffer) {
        self.reads.insert(func.root(buffer));
    }

    fn write(&mut self, func: &Func, buffer: Buffer) {
        self.writes.insert(func.root(buffer));
    }

    fn expr(&mut self, func: &Func, e: &Expr) {
        e.walk_distinct(&mut |node| match node.kind() {
            ExprKind::Load { buffer, .. } => self.read(func, *buffer),
            ExprKind::Var(var) => {
                self.vars.insert(*var);
            }
            // Whoever has the address may do anything with it.
            ExprKind::AddressOf { buffer, .. } => {
                self.read(func, *buffer);
                self.write(func, *buffer);
            }
            _ => {}
        });
    }
}

/// The tensors that nothing in a kernel may change: by their name or an address of theirs, as another tensor
/// that may overlap, or through a pointer to anywhere.
pub(crate) fn unchanged(func: &Func, kernel: &Kernel) -> FxHashSet<Buffer> {
    let written = Effects::of_block(func, &kernel.body).writes;
    if written.iter().any(|b| is_anywhere(func, *b)) {
        return FxHashSet::default();
    }
    let own = |b: &Buffer| {
        let data = &func.buffers[*b];
        let named = matches!(data.origin, BufferOrigin::Param | BufferOrigin::Workspace);
        data.scope == Scope::Global && named
    };
    let aliases = &kernel.attrs.may_alias;
    let all = func.buffers.keys().filter(own);
    all.filter(|b| !written.contains(b) && !aliases.contains(b))
        .collect()
}

/// Whether the buffer is a tensor at an address that the kernel was given or worked out.
pub(crate) fn is_anywhere(func: &Func, buffer: Buffer) -> bool {
    let origin = &func.buffers[func.root(buffer)].origin;
    matches!(origin, BufferOrigin::Pointer(_))
}

/// Whether the buffer's storage is of this scope.
pub(super) fn is_in(func: &Func, buffer: Buffer, scope: Scope) -> bool {
    func.buffers[func.root(buffer)].scope == scope
}
