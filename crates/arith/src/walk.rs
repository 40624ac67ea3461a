//! Walks over functions with the facts of each place.
//!
//! What holds where: symbols are not below zero, and may be zero, for calls may bring empty tensors;
//! block and thread indices are below their extents; a loop index is in its range and congruent to its
//! start modulo a constant step; the arms of an `if` know its condition; an `assume` and an `assert` hold
//! for the rest of their block; a `let` has its value for the rest of its block; after
//! `if c { continue }` (or `break`) `c` is false.

use tilewright_ir::visit::child_blocks;
use tilewright_ir::{Axis, Block, DType, Func, Kernel, Loop, Stmt, StmtKind, VarKind};

use crate::analyzer::Analyzer;
use crate::congruence::Congruence;
use crate::interval::Interval;
use crate::linear::Lin;

/// Whether a rewrite goes on inside of a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inside {
    Rewrite,
    Done,
}

impl Analyzer {
    /// An analyzer that knows what holds everywhere in the function.
    pub fn for_func(func: &Func) -> Analyzer {
        let mut analyzer = Analyzer::new();
        for (var, data) in func.vars.iter() {
            if data.kind == VarKind::Symbol && data.dtype.scalar.is_int() {
                let max = Interval::of(data.dtype.scalar).hi;
                analyzer.bind_interval(var, data.dtype, Interval::new(0, max));
            }
        }
        analyzer
    }

    /// Opens the scope of a kernel: its block and thread indices have their ranges.
    pub fn enter_kernel(&mut self, func: &Func, kernel: &Kernel) {
        self.push();
        for (var, extent) in &kernel.grid {
            let extent = self.term(extent);
            let extent = self.integer_form(extent);
            self.bind_forms(
                *var,
                func.vars[*var].dtype,
                &Lin::constant(0),
                Some(&extent),
            );
        }
        let ranks = kernel
            .attrs
            .rank
            .map(|rank| (rank, kernel.cluster_blocks()));
        let threads = kernel.thread_vars.into_iter().zip(kernel.threads);
        for (var, extent) in ranks.into_iter().chain(threads) {
            let range = Interval::new(0, (extent as i128 - 1).max(0));
            self.bind_interval(var, func.vars[var].dtype, range);
        }
    }

    /// Opens the scope of a loop's body: its indices have their ranges.
    pub fn enter_loop(&mut self, func: &Func, l: &Loop) {
        self.push();
        for axis in &l.axes {
            self.bind_axis(axis, func.vars[axis.var].dtype);
        }
    }

    fn bind_axis(&mut self, axis: &Axis, dtype: DType) {
        let (start, stop, step) = (
            self.term(&axis.start),
            self.term(&axis.stop),
            self.term(&axis.step),
        );
        let step = self.constant(step);
        let residue = self.domain(start).congruence;
        let (first, last) = (self.integer_form(start), self.integer_form(stop));
        if step.is_some_and(|s| s < 0) {
            // stop < var <= start
            let var = self.var(axis.var, dtype);
            let mut above = last;
            if above.add_constant(1).is_some() && above.add_term(var, -1).is_some() {
                self.add_fact(above, 0);
            }
            let mut below = Lin::atom(var);
            if below.add_scaled(&first, -1).is_some() {
                self.add_fact(below, 0);
            }
        } else {
            self.bind_forms(axis.var, dtype, &first, Some(&last));
        }
        if let Some(step) = step
            && step.abs() > 1
        {
            let var = self.var(axis.var, dtype);
            let known = residue.plus(Congruence::new(step, 0));
            self.refine(var, Interval::of(dtype.scalar), known);
        }
    }

    /// Calls `f` on every statement of every kernel, outer first, in program order, with the
    /// facts of its place.
    pub fn walk_func(&mut self, func: &Func, f: &mut dyn FnMut(&mut Analyzer, &Stmt)) {
        for kernel in &func.kernels {
            self.enter_kernel(func, kernel);
            self.walk_block(func, &kernel.body, f);
            self.pop();
        }
    }

    /// Calls `f` on every statement of the block and the blocks inside it.
    pub fn walk_block(
        &mut self,
        func: &Func,
        block: &Block,
        f: &mut dyn FnMut(&mut Analyzer, &Stmt),
    ) {
        self.push();
        for stmt in block {
            f(self, stmt);
            self.walk_children(func, stmt, f);
            self.after(stmt);
        }
        self.pop();
    }

    fn walk_children(&mut self, func: &Func, stmt: &Stmt, f: &mut dyn FnMut(&mut Analyzer, &Stmt)) {
        match &stmt.kind {
            StmtKind::For(l) => {
                self.enter_loop(func, l);
                self.walk_block(func, &l.body, f);
                self.pop();
            }
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                self.with_assumption(cond, |s| s.walk_block(func, then, f));
                self.with_refutation(cond, |s| s.walk_block(func, otherwise, f));
            }
            StmtKind::While { cond, body } => {
                self.with_assumption(cond, |s| s.walk_block(func, body, f));
            }
            _ => {
                for block in child_blocks(stmt) {
                    self.walk_block(func, block, f);
                }
            }
        }
    }

    /// Rewrites every statement of the block in place, outer first: `f` sees each one with the
    /// facts of its place, then the walk goes on inside of what `f` left there, where `f` says so.
    /// What `f` put a statement into must not be walked into, or `f` would see it again.
    pub fn rewrite_block(
        &mut self,
        func: &Func,
        block: &mut Block,
        f: &mut dyn FnMut(&mut Analyzer, &mut Stmt) -> Inside,
    ) {
        self.push();
        for stmt in block.iter_mut() {
            if f(self, stmt) == Inside::Done {
                self.after(stmt);
                continue;
            }
            match &mut stmt.kind {
                StmtKind::For(l) => {
                    self.enter_loop(func, l);
                    self.rewrite_block(func, &mut l.body, f);
                    self.pop();
                }
                StmtKind::If {
                    cond,
                    then,
                    otherwise,
                } => {
                    self.with_assumption(cond, |s| s.rewrite_block(func, then, f));
                    self.with_refutation(cond, |s| s.rewrite_block(func, otherwise, f));
                }
                StmtKind::While { cond, body } => {
                    self.with_assumption(cond, |s| s.rewrite_block(func, body, f));
                }
                _ => {
                    for child in tilewright_ir::visit::child_blocks_mut(stmt) {
                        self.rewrite_block(func, child, f);
                    }
                }
            }
            self.after(stmt);
        }
        self.pop();
    }

    /// What a statement says about the rest of its block.
    pub fn after(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Let { var, value } => self.bind_value(*var, value),
            StmtKind::Assume(cond) | StmtKind::Assert { cond, .. } => self.assume(cond),
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                let leaves = |b: &Block| {
                    b.last()
                        .is_some_and(|s| matches!(s.kind, StmtKind::Break | StmtKind::Continue))
                };
                if leaves(then) && otherwise.is_empty() {
                    self.refute(cond);
                }
            }
            _ => {}
        }
    }
}
