//! What a kernel reads, writes and needs: decided once, before anything is printed.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::operand::{Atomic, Operand};
use tilewright_ir::visit::{child_blocks, stmt_exprs, walk_stmts};
use tilewright_ir::visit_ids::buffer_exprs;
use tilewright_ir::{
    Block, Buffer, BufferOrigin, DeviceOp, Expr, ExprKind, Func, Kernel, Loop, LoopKind, MicroOp,
    Scope, Stmt, StmtKind, ThreadOp, Var,
};

/// A loop of at most so many iterations is unrolled when its index is a subscript of registers;
/// registers of a longer one go to memory.
const MAX_UNROLL: u64 = 128;

/// The loops of a kernel that are printed to be unrolled wholly, by their indices.
pub fn unrolled_loops(func: &Func, kernel: &Kernel) -> FxHashSet<Var> {
    let uses = Uses::of(func, kernel);
    let mut found = FxHashSet::default();
    walk_stmts(&kernel.body, &mut |stmt| {
        if let StmtKind::For(l) = &stmt.kind
            && uses.unrolls(l)
        {
            found.extend(l.axes.iter().map(|a| a.var));
        }
    });
    found
}

/// What a kernel uses.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// Variables that printed code mentions; a `let` of another one is left out.
    pub vars: FxHashSet<Var>,
    /// Buffers that printed code mentions, and whether it writes them. A view counts for itself
    /// and for what it is a view of.
    pub buffers: FxHashMap<Buffer, bool>,
    /// Loop indices that are subscripts of registers: such loops are unrolled.
    pub register_indices: FxHashSet<Var>,
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

    /// Whether a loop is unrolled wholly: it says so, or its index is a subscript of registers.
    pub fn unrolls(&self, l: &Loop) -> bool {
        let index = l.axes.first();
        match l.kind {
            LoopKind::Unroll { factor: None } | LoopKind::Vectorized => true,
            LoopKind::Unroll { factor: Some(_) } => false,
            _ => index.is_some_and(|axis| {
                let few = axis.const_trip_count().is_some_and(|n| n <= MAX_UNROLL);
                few && self.register_indices.contains(&axis.var)
            }),
        }
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
            printed_exprs(stmt, &mut |e| {
                e.walk_distinct(&mut |node| {
                    if let ExprKind::Load { buffer, indices }
                    | ExprKind::AddressOf { buffer, indices } = node.kind()
                    {
                        // What happens at an address is not seen here.
                        let written = matches!(node.kind(), ExprKind::AddressOf { .. });
                        self.touch(func, *buffer, written);
                        self.note_subscripts(func, *buffer, indices);
                    }
                });
            });
            accesses(stmt, &mut |buffer, indices, written| {
                self.touch(func, buffer, written);
                self.note_subscripts(func, buffer, indices);
            });
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
            buffer_exprs(data, &mut |e| self.expr(e));
        }
    }

    fn note_subscripts(&mut self, func: &Func, buffer: Buffer, indices: &[Expr]) {
        if !matches!(func.buffers[buffer].scope, Scope::Local | Scope::Fragment) {
            return;
        }
        for index in indices {
            index.walk_distinct(&mut |node| {
                if let ExprKind::Var(var) = node.kind() {
                    self.register_indices.insert(*var);
                }
            });
        }
    }
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
            op.otherwise.iter().for_each(f);
        }
        _ => stmt_exprs(stmt, f),
    }
}

/// The elements that a statement touches outside of expressions, and whether it writes them.
fn accesses(stmt: &Stmt, f: &mut impl FnMut(Buffer, &[Expr], bool)) {
    match &stmt.kind {
        StmtKind::Store {
            buffer, indices, ..
        } => f(*buffer, indices, true),
        StmtKind::Micro(MicroOp { dest, sources, .. }) => {
            f(dest.region.buffer, &dest.at, true);
            for source in sources {
                f(source.region.buffer, &source.at, false);
            }
        }
        // What is atomic is read as volatile, and never through the read-only path.
        StmtKind::Thread(op) => op.operands(&mut |operand| match operand {
            Operand::Elements {
                buffer,
                indices,
                how,
                ..
            } => f(
                *buffer,
                indices,
                how.mode.writes() || how.atomic != Atomic::No,
            ),
            Operand::Region { region, .. } => f(region.buffer, &[], true),
            Operand::Whole { buffer, .. } | Operand::Barrier { buffer, .. } => {
                f(*buffer, &[], true);
            }
            Operand::Value(_) | Operand::Result(_) | Operand::Bound(_) => {}
        }),
        StmtKind::Device(DeviceOp::BarrierInit { barrier, .. }) => f(*barrier, &[], true),
        _ => {}
    }
}
