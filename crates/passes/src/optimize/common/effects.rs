//! What a statement reads and writes, by the buffer that owns the storage.
//!
//! Regions do not count: this says which statements can depend on each other at all. It works
//! on tile IR and on loop IR.

use rustc_hash::FxHashSet;
use tilewright_ir::visit::{child_blocks, stmt_exprs};
use tilewright_ir::{
    AtomicSource, Buffer, Expr, ExprKind, Func, Scope, Stmt, StmtKind, ThreadOp, TileOp, Var,
};
use tilewright_schedule::uniform::root;

/// The buffers and variables that statements touch.
#[derive(Clone, Default, Debug)]
pub(super) struct Effects {
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
        match &stmt.kind {
            StmtKind::Store { buffer, .. } => self.write(func, *buffer),
            StmtKind::Tile(op) => self.tile_op(func, op),
            StmtKind::Thread(op) => self.thread_op(func, op),
            StmtKind::Micro(m) => {
                for source in &m.sources {
                    self.read(func, source.region.buffer);
                }
                if m.kind == tilewright_ir::MicroKind::Mma {
                    self.read(func, m.dest.region.buffer);
                }
                self.write(func, m.dest.region.buffer);
            }
            StmtKind::Let { .. }
            | StmtKind::Alloc(_)
            | StmtKind::For(_)
            | StmtKind::While { .. }
            | StmtKind::If { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Assert { .. }
            | StmtKind::Assume(_)
            | StmtKind::WarpGroup { .. }
            | StmtKind::Device(_) => {}
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
        self.reads.insert(root(func, buffer));
    }

    fn write(&mut self, func: &Func, buffer: Buffer) {
        self.writes.insert(root(func, buffer));
    }

    fn update(&mut self, func: &Func, buffer: Buffer) {
        self.read(func, buffer);
        self.write(func, buffer);
    }

    fn expr(&mut self, func: &Func, e: &Expr) {
        e.walk_distinct(&mut |node| match node.kind() {
            ExprKind::Load { buffer, .. } => self.read(func, *buffer),
            ExprKind::Var(var) => {
                self.vars.insert(*var);
            }
            // Whoever has the address may do anything with it.
            ExprKind::AddressOf { buffer, .. } => self.update(func, *buffer),
            _ => {}
        });
    }

    fn tile_op(&mut self, func: &Func, op: &TileOp) {
        match op {
            TileOp::Copy(c) => {
                self.read(func, c.src.buffer);
                self.write(func, c.dst.buffer);
            }
            TileOp::Fill { dst, .. } => self.write(func, dst.buffer),
            TileOp::Gemm(g) => {
                self.read(func, g.a.buffer);
                self.read(func, g.b.buffer);
                if !g.clear.is_int(1) {
                    self.read(func, g.c.buffer);
                }
                self.write(func, g.c.buffer);
            }
            TileOp::Reduce(r) => {
                self.read(func, r.src.buffer);
                if !r.clear {
                    self.read(func, r.dst.buffer);
                }
                self.write(func, r.dst.buffer);
            }
            TileOp::Scan(s) => {
                self.read(func, s.src.buffer);
                self.write(func, s.dst.buffer);
            }
            TileOp::Atomic { dst, value, .. } => {
                self.update(func, dst.buffer);
                if let AtomicSource::Region(r) = value {
                    self.read(func, r.buffer);
                }
            }
            TileOp::Transpose { src, dst } => {
                self.read(func, src.buffer);
                self.write(func, dst.buffer);
            }
            TileOp::Im2col(i) => {
                self.read(func, i.image);
                self.write(func, i.dst.buffer);
            }
            TileOp::ReducerInit { reducer, .. } => self.write(func, *reducer),
            TileOp::ReducerUpdate { reducer, .. } => self.update(func, *reducer),
            TileOp::ReducerFinalize { reducer, dst } => {
                self.update(func, *reducer);
                if let Some(dst) = dst {
                    self.write(func, dst.buffer);
                }
            }
        }
    }

    fn thread_op(&mut self, func: &Func, op: &ThreadOp) {
        match op {
            ThreadOp::AtomicRmw { buffer, .. } => self.update(func, *buffer),
            ThreadOp::AtomicVecAdd { dst, src, .. } => {
                self.read(func, *src);
                self.update(func, *dst);
            }
            ThreadOp::AtomicLoad { buffer, .. } => self.read(func, *buffer),
            ThreadOp::AtomicStore { buffer, .. } => self.write(func, *buffer),
            ThreadOp::AllReduce { dst, .. } => self.write(func, *dst),
            ThreadOp::BarrierArrive { barrier, .. }
            | ThreadOp::BarrierWait { barrier, .. }
            | ThreadOp::BarrierExpect { barrier, .. } => self.update(func, *barrier),
            ThreadOp::Dp4a { a, b, c, .. } => {
                self.read(func, *a);
                self.read(func, *b);
                self.update(func, *c);
            }
            ThreadOp::Extern { pure, .. } => self.opaque |= !pure,
            ThreadOp::Shuffle { .. }
            | ThreadOp::Vote { .. }
            | ThreadOp::WarpReduce { .. }
            | ThreadOp::SyncThreads { .. }
            | ThreadOp::SyncWarp
            | ThreadOp::SyncGrid
            | ThreadOp::Print { .. }
            | ThreadOp::SetMaxRegs { .. } => {}
        }
    }
}

/// Whether the buffer's storage is of this scope.
pub(super) fn is_in(func: &Func, buffer: Buffer, scope: Scope) -> bool {
    func.buffers[root(func, buffer)].scope == scope
}
