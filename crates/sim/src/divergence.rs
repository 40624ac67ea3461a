//! Which variables, private buffers and loops threads may disagree about.
//!
//! A kernel body mixes what the block does as one with what each thread does. Everything that
//! is provably the same for all threads is evaluated once; the rest for each active thread in
//! lockstep. Thread indices are where disagreement starts; it spreads through values, through
//! private memory, and through control flow that only some threads take. The analysis runs to
//! a fixpoint and errs on the side of disagreement.

use rustc_hash::FxHashSet;
use tilewright_ir::visit::{child_blocks, stmt_exprs};
use tilewright_ir::{
    Block, Buffer, BufferOrigin, Expr, ExprKind, Func, Kernel, LoopKind, Region, Scope, Stmt,
    StmtKind, ThreadOp, TileOp, Var, VoteKind,
};

/// The result of the analysis of one kernel.
#[derive(Debug)]
pub(crate) struct Divergence<'f> {
    func: &'f Func,
    threads: [u32; 3],
    vars: FxHashSet<Var>,
    /// Private buffers, by what views are views of.
    buffers: FxHashSet<Buffer>,
    /// Loops that threads may leave at different times.
    loops: FxHashSet<*const Stmt>,
    changed: bool,
}

impl<'f> Divergence<'f> {
    pub fn of(func: &'f Func, kernel: &'f Kernel) -> Divergence<'f> {
        let mut this = Divergence {
            func,
            threads: kernel.threads,
            vars: FxHashSet::default(),
            buffers: FxHashSet::default(),
            loops: FxHashSet::default(),
            changed: true,
        };
        for (&var, &extent) in kernel.thread_vars.iter().zip(&kernel.threads) {
            if extent > 1 {
                this.vars.insert(var);
            }
        }
        while this.changed {
            this.changed = false;
            this.block(&kernel.body, false);
        }
        this
    }

    pub fn expr(&self, e: &Expr) -> bool {
        match e.kind() {
            ExprKind::Var(v) => self.vars.contains(v),
            ExprKind::Load { buffer, .. } if self.buffer(*buffer) => true,
            _ => e.operands().into_iter().any(|o| self.expr(o)),
        }
    }

    pub fn var(&self, var: Var) -> bool {
        self.vars.contains(&var)
    }

    /// Whether threads may hold different contents of this private buffer.
    pub fn buffer(&self, buffer: Buffer) -> bool {
        self.buffers.contains(&root(self.func, buffer))
    }

    pub fn loop_exit(&self, stmt: &Stmt) -> bool {
        self.loops.contains(&std::ptr::from_ref(stmt))
    }

    fn block(&mut self, block: &Block, control: bool) {
        for stmt in block {
            self.stmt(stmt, control);
        }
    }

    fn stmt(&mut self, stmt: &Stmt, control: bool) {
        match &stmt.kind {
            StmtKind::Let { var, value } => {
                if self.expr(value) {
                    self.mark_var(*var);
                }
            }
            StmtKind::Store {
                buffer,
                indices,
                value,
            } => {
                if control || self.expr(value) || self.any(indices) {
                    self.mark_buffer(*buffer);
                }
            }
            StmtKind::For(l) => {
                let points = matches!(l.kind, LoopKind::Parallel { .. });
                let mut bounds = false;
                for axis in &l.axes {
                    if self.expr(&axis.start) || self.expr(&axis.step) {
                        self.mark_var(axis.var);
                        bounds = true;
                    }
                    bounds |= self.expr(&axis.stop);
                }
                if points {
                    // Points are not threads: nothing in the body makes threads disagree
                    // that did not before.
                    self.block(&l.body, control);
                    return;
                }
                let leaves = bounds || self.leaves(&l.body, false);
                self.loop_body(stmt, &l.body, control, leaves);
            }
            StmtKind::While { cond, body } => {
                let leaves = self.expr(cond) || self.leaves(body, false);
                self.loop_body(stmt, body, control, leaves);
            }
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                let control = control || self.expr(cond);
                self.block(then, control);
                self.block(otherwise, control);
            }
            StmtKind::WarpGroup { body, .. } => self.block(body, control),
            StmtKind::Tile(op) => self.tile(stmt, op, control),
            StmtKind::Thread(op) => self.thread(stmt, op, control),
            StmtKind::Alloc(_)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Assert { .. }
            | StmtKind::Assume(_)
            | StmtKind::Micro(_)
            | StmtKind::Device(_) => {}
        }
    }

    fn loop_body(&mut self, stmt: &Stmt, body: &Block, control: bool, leaves: bool) {
        if leaves && self.loops.insert(std::ptr::from_ref(stmt)) {
            self.changed = true;
        }
        self.block(body, control || leaves);
    }

    /// Whether some threads may leave this loop's body, or an iteration, before others.
    fn leaves(&self, block: &Block, control: bool) -> bool {
        block.iter().any(|stmt| match &stmt.kind {
            StmtKind::Break | StmtKind::Continue => control,
            StmtKind::If { cond, .. } => {
                let control = control || self.expr(cond);
                child_blocks(stmt).iter().any(|b| self.leaves(b, control))
            }
            StmtKind::WarpGroup { body, .. } => self.leaves(body, control),
            _ => false,
        })
    }

    fn tile(&mut self, stmt: &Stmt, op: &TileOp, control: bool) {
        let mut varying = control;
        stmt_exprs(stmt, &mut |e| varying |= self.expr(e));
        let regions = tile_regions(op);
        varying |= regions.iter().any(|r| self.buffer(r.buffer));
        if varying {
            for region in regions {
                self.mark_buffer(region.buffer);
            }
        }
    }

    fn thread(&mut self, stmt: &Stmt, op: &ThreadOp, control: bool) {
        let mut varying = false;
        stmt_exprs(stmt, &mut |e| varying |= self.expr(e));
        match op {
            ThreadOp::AtomicRmw { result, buffer, .. } => {
                // Each thread gets another old value even when all do the same.
                if let Some(var) = result {
                    self.mark_var(*var);
                }
                self.mark_buffer(*buffer);
            }
            ThreadOp::AtomicLoad { result, buffer, .. } => {
                if varying || self.buffer(*buffer) {
                    self.mark_var(*result);
                }
            }
            ThreadOp::AtomicStore { buffer, .. } => {
                if varying || control {
                    self.mark_buffer(*buffer);
                }
            }
            ThreadOp::AtomicVecAdd { dst, .. } => self.mark_buffer(*dst),
            ThreadOp::Shuffle { result, .. } | ThreadOp::WarpReduce { result, .. } => {
                if varying {
                    self.mark_var(*result);
                }
            }
            ThreadOp::Vote { kind, result, .. } => {
                let warp = matches!(kind, VoteKind::Any | VoteKind::All | VoteKind::Ballot);
                if warp && (varying || control) {
                    self.mark_var(*result);
                }
            }
            ThreadOp::AllReduce { dst, axes, .. } => {
                let all =
                    (0..3).all(|axis| self.threads[axis] == 1 || axes.contains(&(axis as u8)));
                if control || (varying && !all) {
                    self.mark_buffer(*dst);
                }
            }
            ThreadOp::Dp4a { c, a, b, .. } => {
                if varying || control || self.buffer(*a) || self.buffer(*b) {
                    self.mark_buffer(*c);
                }
            }
            ThreadOp::Extern {
                result: Some(var), ..
            } => self.mark_var(*var),
            ThreadOp::Extern { result: None, .. }
            | ThreadOp::SyncThreads { .. }
            | ThreadOp::SyncWarp
            | ThreadOp::SyncGrid
            | ThreadOp::BarrierArrive { .. }
            | ThreadOp::BarrierWait { .. }
            | ThreadOp::BarrierExpect { .. }
            | ThreadOp::Print { .. }
            | ThreadOp::SetMaxRegs { .. } => {}
        }
    }

    fn any(&self, list: &[Expr]) -> bool {
        list.iter().any(|e| self.expr(e))
    }

    fn mark_var(&mut self, var: Var) {
        self.changed |= self.vars.insert(var);
    }

    /// Only private memory can differ from thread to thread.
    fn mark_buffer(&mut self, buffer: Buffer) {
        let root = root(self.func, buffer);
        if is_private(self.func.buffers[root].scope) {
            self.changed |= self.buffers.insert(root);
        }
    }
}

pub(crate) fn is_private(scope: Scope) -> bool {
    matches!(scope, Scope::Local | Scope::Var)
}

/// What a view is a view of, itself for other buffers.
pub(crate) fn root(func: &Func, buffer: Buffer) -> Buffer {
    let mut at = buffer;
    // A chain of views is never longer than the list of buffers.
    for _ in 0..func.buffers.len() {
        match func.buffers[at].origin {
            BufferOrigin::View(base) => at = base,
            _ => break,
        }
    }
    at
}

/// The regions that a tile operation reads or writes.
pub(crate) fn tile_regions(op: &TileOp) -> Vec<&Region> {
    use tilewright_ir::AtomicSource;
    match op {
        TileOp::Copy(c) => vec![&c.src, &c.dst],
        TileOp::Fill { dst, .. } => vec![dst],
        TileOp::Gemm(g) => vec![&g.a, &g.b, &g.c],
        TileOp::Reduce(r) => vec![&r.src, &r.dst],
        TileOp::Scan(s) => vec![&s.src, &s.dst],
        TileOp::Atomic { dst, value, .. } => match value {
            AtomicSource::Region(src) => vec![dst, src],
            AtomicSource::Value(_) => vec![dst],
        },
        TileOp::Transpose { src, dst } => vec![src, dst],
        TileOp::Im2col(i) => vec![&i.dst],
        TileOp::ReducerInit { .. } | TileOp::ReducerUpdate { .. } => Vec::new(),
        TileOp::ReducerFinalize { dst, .. } => dst.iter().collect(),
    }
}
