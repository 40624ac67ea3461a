//! Tensors through which threads of one block hand data to each other.
//!
//! Most tensors need no order inside a block: a kernel reads them only, or writes each element
//! once. Those that it writes and touches again, in another statement or in a later iteration,
//! are exchanged like shared memory. What other blocks see of them is not a barrier's affair.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_arith::{Analyzer, Interval};
use tilewright_ir::touched::written;
use tilewright_ir::visit::child_blocks;
use tilewright_ir::visit_ids::stmt_buffers;
use tilewright_ir::{Block, Buffer, Expr, ExprKind, Func, Kernel, Scope, StmtKind, Var};

use crate::access::Steps;

/// The tensors that a kernel writes and touches more than once, by their [owners](owner).
pub fn exchanged(func: &Func, kernel: &Kernel) -> FxHashSet<Buffer> {
    let mut found = Found::default();
    found.block(func, kernel, &kernel.body, 1);
    let Found { times, written } = found;
    written.into_iter().filter(|b| times[b] > 1).collect()
}

/// The tensor that owns a buffer's storage, if one does. Tensors that may overlap are one.
pub fn owner(func: &Func, kernel: &Kernel, buffer: Buffer) -> Option<Buffer> {
    let root = func.root(buffer);
    let aliases = &kernel.attrs.may_alias;
    match func.buffers[root].scope {
        Scope::Global if aliases.contains(&root) => aliases.first().copied(),
        Scope::Global => Some(root),
        _ => None,
    }
}

#[derive(Default)]
struct Found {
    /// By tensor, how often it is touched; twice stands for more.
    times: FxHashMap<Buffer, usize>,
    written: FxHashSet<Buffer>,
}

impl Found {
    fn block(&mut self, func: &Func, kernel: &Kernel, block: &Block, times: usize) {
        for stmt in block {
            stmt_buffers(stmt, &mut |b| {
                if let Some(owner) = owner(func, kernel, b) {
                    *self.times.entry(owner).or_default() += times;
                }
            });
            written(stmt, &mut |b| self.written.extend(owner(func, kernel, b)));
            let again = match &stmt.kind {
                StmtKind::For(_) | StmtKind::While { .. } => 2,
                _ => times,
            };
            for child in child_blocks(stmt) {
                self.block(func, kernel, child, again);
            }
        }
    }
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
