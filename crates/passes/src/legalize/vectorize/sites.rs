//! What the iterations of a loop touch: every access of memory in its body, in order.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::visit::{stmt_exprs, walk_stmts};
use tilewright_ir::visit_ids::stmt_buffers;
use tilewright_ir::{
    AtomicOp, BinOp, Block, Buffer, Expr, ExprKind, Func, LoopKind, MemoryOrder, Scope, Span, Stmt,
    StmtKind, Target, ThreadOp, Var,
};

/// An access of global or shared memory.
#[derive(Clone, Debug)]
pub struct Site {
    pub buffer: Buffer,
    /// The storage: the buffer, or what it is a view of.
    pub root: Buffer,
    /// Over the loop's index and what is known outside of it.
    pub indices: Vec<Expr>,
    /// What must hold for the access to happen.
    pub conds: Vec<Expr>,
    pub write: bool,
    /// Statements before it.
    pub position: usize,
    pub span: Span,
}

const NO_VECTOR_FORM: &str = "a statement in it has no vector form";

/// The accesses of a body.
#[derive(Debug, Default)]
pub struct Sites {
    pub sites: Vec<Site>,
    /// Additions to memory that the machine does for several elements at once. Each is
    /// the only thing that the body does to its storage.
    pub adds: Vec<Site>,
    /// Storage that is touched in ways that stay as they are: atomics, loops inside.
    pub other_reads: FxHashSet<Buffer>,
    pub other_writes: FxHashSet<Buffer>,
    /// The values of `let`s that load nothing.
    pub lets: FxHashMap<Var, Expr>,
    /// Variables that the body binds and that have no such value.
    pub bound: FxHashSet<Var>,
    /// Why the body can be no vector code at all.
    pub refused: Option<(Span, &'static str)>,
}

impl Sites {
    pub fn of(func: &Func, target: Target, block: &Block) -> Sites {
        let mut found = Sites::default();
        let mut walk = SiteFinder {
            func,
            target,
            found: &mut found,
            position: 0,
            inner: false,
        };
        walk.block(block, &[]);
        found.lone_adds();
        found
    }

    /// Only additions to storage that nothing else touches can wait for the last iteration; the
    /// others stay where they are.
    fn lone_adds(&mut self) {
        let count = |root: Buffer| self.adds.iter().filter(|a| a.root == root).count();
        let alone = |add: &Site| {
            count(add.root) == 1
                && !self.sites.iter().any(|s| s.root == add.root)
                && !self.other_reads.contains(&add.root)
                && !self.other_writes.contains(&add.root)
        };
        let (adds, others): (Vec<Site>, Vec<Site>) = self.adds.iter().cloned().partition(alone);
        self.adds = adds;
        self.other_writes.extend(others.iter().map(|a| a.root));
    }

    /// Whether the body adds to an element in a way that can be joined.
    pub fn is_add(&self, buffer: Buffer, indices: &[Expr]) -> bool {
        let place: Vec<Expr> = indices.iter().map(|i| self.outside(i)).collect();
        let mut adds = self.adds.iter();
        adds.any(|a| a.buffer == buffer && a.indices == place)
    }

    /// The expression over what is known outside of the loop, and the loop's index.
    pub fn outside(&self, e: &Expr) -> Expr {
        substitute(e, &self.lets)
    }

    /// Whether an expression can be evaluated before the loop, once its index is replaced.
    pub fn is_known_before(&self, e: &Expr) -> bool {
        let mut known = true;
        e.walk(&mut |node| match node.kind() {
            ExprKind::Load { .. } | ExprKind::AddressOf { .. } => known = false,
            ExprKind::Var(var) => known &= !self.bound.contains(var),
            _ => {}
        });
        known
    }
}

struct SiteFinder<'a> {
    func: &'a Func,
    target: Target,
    found: &'a mut Sites,
    position: usize,
    /// Inside a loop of the body.
    inner: bool,
}

impl SiteFinder<'_> {
    fn block(&mut self, block: &Block, conds: &[Expr]) {
        for stmt in block {
            self.position += 1;
            self.stmt(stmt, conds);
        }
    }

    fn stmt(&mut self, stmt: &Stmt, conds: &[Expr]) {
        match &stmt.kind {
            StmtKind::Let { var, value } => {
                self.expr(value, stmt.span, conds);
                let value = self.found.outside(value);
                if self.found.is_known_before(&value) {
                    self.found.lets.insert(*var, value);
                } else {
                    self.found.bound.insert(*var);
                }
            }
            StmtKind::Store {
                buffer,
                indices,
                value,
            } => {
                for e in indices.iter().chain([value]) {
                    self.expr(e, stmt.span, conds);
                }
                self.push(*buffer, indices, true, stmt.span, conds);
            }
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                self.expr(cond, stmt.span, conds);
                let cond = self.found.outside(cond);
                self.block(then, &with(conds, cond.clone()));
                self.block(otherwise, &with(conds, !cond));
            }
            StmtKind::For(l) => {
                if matches!(
                    l.kind,
                    LoopKind::Parallel { .. }
                        | LoopKind::Persistent { .. }
                        | LoopKind::Pipelined(_)
                ) {
                    return self.refuse(stmt.span, "a loop of the whole block stands in it");
                }
                stmt_exprs(stmt, &mut |e| self.expr(e, stmt.span, conds));
                self.found.bound.extend(l.axes.iter().map(|a| a.var));
                let outer = std::mem::replace(&mut self.inner, true);
                self.block(&l.body, conds);
                self.inner = outer;
            }
            StmtKind::Assert { cond, .. } | StmtKind::Assume(cond) => {
                self.expr(cond, stmt.span, conds);
            }
            StmtKind::Thread(ThreadOp::AtomicRmw {
                op: AtomicOp::Add,
                buffer,
                indices,
                value,
                order: MemoryOrder::Relaxed,
                result: None,
            }) if self.joins(*buffer) => {
                for e in indices.iter().chain([value]) {
                    self.expr(e, stmt.span, conds);
                }
                let site = self.site(*buffer, indices, true, stmt.span, conds);
                self.found.adds.push(site);
            }
            StmtKind::Thread(ThreadOp::Extern { .. } | ThreadOp::SetMaxRegs { .. }) => {
                self.refuse(stmt.span, NO_VECTOR_FORM);
            }
            StmtKind::Thread(op) if !op.meets() => {
                self.found.bound.extend(op.result());
                self.opaque(stmt);
            }
            StmtKind::Break | StmtKind::Continue if self.inner => {}
            StmtKind::Break | StmtKind::Continue => {
                self.refuse(stmt.span, "iterations are left before their end");
            }
            StmtKind::Alloc(_)
            | StmtKind::While { .. }
            | StmtKind::WarpGroup { .. }
            | StmtKind::Tile(_)
            | StmtKind::Thread(_)
            | StmtKind::Micro(_)
            | StmtKind::Device(_) => {
                self.refuse(stmt.span, NO_VECTOR_FORM);
            }
        }
    }

    fn refuse(&mut self, span: Span, why: &'static str) {
        self.found.refused.get_or_insert((span, why));
    }

    /// A statement that stays one for each iteration.
    fn opaque(&mut self, stmt: &Stmt) {
        let mut touched = Vec::new();
        stmt_buffers(stmt, &mut |b| touched.push(b));
        for buffer in touched {
            self.found.other_writes.insert(self.func.root(buffer));
        }
    }

    fn expr(&mut self, e: &Expr, span: Span, conds: &[Expr]) {
        match e.kind() {
            ExprKind::Load { buffer, indices } => {
                for index in indices {
                    self.expr(index, span, conds);
                }
                let span = if e.span().is_none() { span } else { e.span() };
                self.push(*buffer, indices, false, span, conds);
            }
            ExprKind::AddressOf { buffer, indices } => {
                for index in indices {
                    self.expr(index, span, conds);
                }
                self.found.other_writes.insert(self.func.root(*buffer));
            }
            ExprKind::IfThenElse {
                cond,
                then,
                otherwise,
            } => {
                self.expr(cond, span, conds);
                let cond = self.found.outside(cond);
                self.expr(then, span, &with(conds, cond.clone()));
                self.expr(otherwise, span, &with(conds, !cond));
            }
            ExprKind::Binary(op @ (BinOp::LogicalAnd | BinOp::LogicalOr), a, b) => {
                self.expr(a, span, conds);
                let first = self.found.outside(a);
                let reached = match op {
                    BinOp::LogicalAnd => first,
                    _ => !first,
                };
                self.expr(b, span, &with(conds, reached));
            }
            _ => {
                for operand in e.operands() {
                    self.expr(operand, span, conds);
                }
            }
        }
    }

    fn push(&mut self, buffer: Buffer, indices: &[Expr], write: bool, span: Span, conds: &[Expr]) {
        let data = &self.func.buffers[buffer];
        if !matches!(data.scope, Scope::Global | Scope::Shared) {
            return;
        }
        let vector = indices.iter().any(|i| i.dtype().lanes > 1);
        if self.inner || vector {
            let others = match write {
                true => &mut self.found.other_writes,
                false => &mut self.found.other_reads,
            };
            others.insert(self.func.root(buffer));
            return;
        }
        let site = self.site(buffer, indices, write, span, conds);
        self.found.sites.push(site);
    }

    fn site(
        &self,
        buffer: Buffer,
        indices: &[Expr],
        write: bool,
        span: Span,
        conds: &[Expr],
    ) -> Site {
        Site {
            buffer,
            root: self.func.root(buffer),
            indices: indices.iter().map(|i| self.found.outside(i)).collect(),
            conds: conds.to_vec(),
            write,
            position: self.position,
            span,
        }
    }

    /// Whether the machine adds to neighbours in this buffer at once.
    fn joins(&self, buffer: Buffer) -> bool {
        let data = &self.func.buffers[buffer];
        let machine = self.target.machine();
        !self.inner
            && data.dtype.lanes == 1
            && machine.atomic_add_lanes(data.scope, data.dtype.scalar) > 1
    }
}

/// Whether a loop for vectors stands in the statement.
pub fn has_vectorized(stmt: &Stmt) -> bool {
    let mut found = is_vectorized(stmt);
    for child in tilewright_ir::visit::child_blocks(stmt) {
        walk_stmts(child, &mut |s| found |= is_vectorized(s));
    }
    found
}

fn is_vectorized(stmt: &Stmt) -> bool {
    matches!(&stmt.kind, StmtKind::For(l) if l.kind == LoopKind::Vectorized)
}

pub fn substitute(e: &Expr, values: &FxHashMap<Var, Expr>) -> Expr {
    if values.is_empty() {
        return e.clone();
    }
    e.rewrite(&mut |node| values.get(&node.as_var()?).cloned())
}

fn with(conds: &[Expr], cond: Expr) -> Vec<Expr> {
    let mut all = conds.to_vec();
    all.push(cond);
    all
}
