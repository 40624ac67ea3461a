//! Tensors through which threads of one block hand data to each other.
//!
//! Most tensors need no order inside a block: a kernel reads them only, or writes each element
//! once. Those that it writes and touches again, in another statement or in a later iteration,
//! are exchanged like shared memory. What other blocks see of them is not a barrier's affair.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_arith::{Analyzer, Interval};
use tilewright_ir::touched::touched;
use tilewright_ir::visit::child_blocks;
use tilewright_ir::visit_ids::stmt_buffers;
use tilewright_ir::{Block, Buffer, Expr, ExprKind, Func, Kernel, Scope, Stmt, StmtKind, Var};

use crate::access::Steps;
use crate::uniform::root;

/// The tensors that a kernel writes and touches more than once.
pub fn exchanged(func: &Func, kernel: &Kernel) -> FxHashSet<Buffer> {
    let mut found = Found::default();
    found.block(func, &kernel.body, 1);
    let Found { times, written } = found;
    written.into_iter().filter(|b| times[b] > 1).collect()
}

#[derive(Default)]
struct Found {
    /// By tensor, how often it is touched; twice stands for more.
    times: FxHashMap<Buffer, usize>,
    written: FxHashSet<Buffer>,
}

impl Found {
    fn block(&mut self, func: &Func, block: &Block, times: usize) {
        for stmt in block {
            let global = |b: Buffer| Some(root(func, b)).filter(|r| is_tensor(func, *r));
            stmt_buffers(stmt, &mut |b| {
                if let Some(root) = global(b) {
                    *self.times.entry(root).or_default() += times;
                }
            });
            own_writes(stmt, &mut |b| self.written.extend(global(b)));
            let again = match &stmt.kind {
                StmtKind::For(_) | StmtKind::While { .. } => 2,
                _ => times,
            };
            for child in child_blocks(stmt) {
                self.block(func, child, again);
            }
        }
    }
}

fn is_tensor(func: &Func, root: Buffer) -> bool {
    func.buffers[root].scope == Scope::Global
}

/// The buffers that the statement itself may write, without the blocks inside it.
pub fn own_writes(stmt: &Stmt, f: &mut impl FnMut(Buffer)) {
    touched(stmt, &mut |access| {
        if access.mode.writes() {
            f(access.buffer);
        }
    });
}

/// An index along one dimension of a tensor: terms that are the same for all threads, and the
/// rest, which threads and the unit's own loops decide.
#[derive(Clone, Default, Debug)]
pub struct Along {
    pub uniform: FxHashMap<Expr, i64>,
    pub constant: i64,
    pub varying: Vec<(Expr, i64)>,
    /// Elements touched from each index on.
    pub width: i64,
}

impl Along {
    /// From the least index to the end of the last one, the uniform terms left out.
    pub fn reach(&self, vars: &[(Var, Steps)], func: &Func) -> Option<(i128, i128)> {
        let mut known = Analyzer::new();
        for (var, steps) in vars {
            let last = steps.start + steps.step * (steps.count - 1).max(0);
            let (low, high) = (steps.start.min(last), steps.start.max(last));
            let range = Interval::new(low.into(), high.into());
            known.bind_interval(*var, func.vars[*var].dtype, range);
        }
        let mut sum = Interval::point(self.constant.into());
        for (e, factor) in &self.varying {
            let own = known.const_bounds(e).scale(i128::from(*factor))?;
            sum = sum.plus(own)?;
        }
        Some((sum.lo, sum.hi.checked_add(self.width.into())?))
    }

    /// How far one step of the variable moves the index, if nothing else that has changed does.
    pub fn step_of(&self, var: Var, changed: &FxHashSet<Var>) -> Option<i64> {
        let moves = |e: &Expr| e.as_var() != Some(var) && !is_lasting(e, changed);
        let step = self.uniform.iter().find(|(e, _)| e.as_var() == Some(var));
        let alone = !self.uniform.keys().any(moves);
        step.filter(|_| alone).map(|(_, factor)| *factor)
    }

    /// Whether the uniform terms have the values they had.
    pub fn stays(&self, changed: &FxHashSet<Var>) -> bool {
        self.uniform.keys().all(|e| is_lasting(e, changed))
    }
}

/// Whether the value depends on no variable that has changed, and on no memory, which may hold
/// something else by then.
fn is_lasting(e: &Expr, changed: &FxHashSet<Var>) -> bool {
    let mut lasting = true;
    e.walk(&mut |node| {
        lasting &= match node.kind() {
            ExprKind::Load { .. } => false,
            ExprKind::Var(var) => !changed.contains(var),
            _ => true,
        };
    });
    lasting
}
