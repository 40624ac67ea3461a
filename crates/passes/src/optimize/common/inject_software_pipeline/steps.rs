//! Loops that are written out anyway, as the micro-ops of each of their steps.
//!
//! `for ks in unroll(0, 4) { let w = …; s2r -> a; s2r -> b; mma a, b }` has four steps of three
//! micro-ops. Each of them names what it touches, so an order can give each a place of its own.

use rustc_hash::FxHashMap;
use tilewright_ir::visit::stmt_exprs_mut;
use tilewright_ir::{
    Buffer, Expr, Func, LoopKind, MicroKind, MicroOp, Scope, Span, Stmt, StmtKind, Var,
};

use super::super::fresh::refresh;

/// The micro-ops of a loop's step, over the index of the step.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    index: Var,
    pub count: u32,
    /// Of one step, in order.
    pub ops: Vec<MicroOp>,
    span: Span,
}

impl Steps {
    /// The steps of a statement, if it is nothing else.
    pub fn of(stmt: &Stmt) -> Option<Steps> {
        let StmtKind::For(l) = &stmt.kind else {
            return None;
        };
        let [axis] = &l.axes[..] else {
            return None;
        };
        let written_out = matches!(l.kind, LoopKind::Unroll { factor: None });
        if !written_out || !axis.start.is_int(0) || !axis.step.is_int(1) {
            return None;
        }
        let mut names: FxHashMap<Var, Expr> = FxHashMap::default();
        let mut ops = Vec::new();
        for stmt in &l.body {
            match &stmt.kind {
                StmtKind::Let { var, value } => {
                    let value = value.rewrite(&mut |node| names.get(&node.as_var()?).cloned());
                    names.insert(*var, value);
                }
                StmtKind::Micro(m) => {
                    let mut stmt = Stmt::new(StmtKind::Micro(m.clone()), stmt.span);
                    stmt_exprs_mut(&mut stmt, &mut |e| {
                        *e = e.rewrite(&mut |node| names.get(&node.as_var()?).cloned());
                    });
                    if let StmtKind::Micro(m) = stmt.kind {
                        ops.push(m);
                    }
                }
                _ => return None,
            }
        }
        Some(Steps {
            index: axis.var,
            count: u32::try_from(axis.stop.as_int()?).ok()?,
            ops,
            span: stmt.span,
        })
    }

    /// How many of the ops are of a kind.
    pub fn of_kind(&self, kind: MicroKind) -> usize {
        self.ops.iter().filter(|m| m.kind == kind).count()
    }

    /// The register arrays that each step fills before it uses them, so that steps may have
    /// arrays of their own.
    pub fn own_registers(&self, func: &Func) -> Vec<Buffer> {
        let mut own: Vec<Buffer> = Vec::new();
        let mut others: Vec<Buffer> = Vec::new();
        for op in &self.ops {
            for source in &op.sources {
                let buffer = source.region.buffer;
                if !own.contains(&buffer) {
                    others.push(buffer);
                }
            }
            let buffer = op.dest.region.buffer;
            let data = &func.buffers[buffer];
            let fills = op.kind != MicroKind::Mma
                && data.scope == Scope::Local
                && op.dest.region.is_whole(data)
                && (op.pred.is_none() || op.otherwise.is_some());
            if fills && !others.contains(&buffer) {
                own.push(buffer);
            } else if !own.contains(&buffer) {
                others.push(buffer);
            }
        }
        own.sort();
        own.dedup();
        own
    }

    /// A micro-op of a step as a statement of its own, on the registers that `renamed` says.
    pub fn op(
        &self,
        func: &mut Func,
        step: u32,
        op: usize,
        renamed: &dyn Fn(Buffer) -> Buffer,
    ) -> Stmt {
        let at = Expr::int(step.into(), func.vars[self.index].dtype);
        let mut stmt = Stmt::new(StmtKind::Micro(self.ops[op].clone()), self.span);
        stmt_exprs_mut(&mut stmt, &mut |e| {
            *e = e.rewrite(&mut |node| (node.as_var()? == self.index).then(|| at.clone()));
        });
        if let StmtKind::Micro(m) = &mut stmt.kind {
            for access in std::iter::once(&mut m.dest).chain(&mut m.sources) {
                access.region.buffer = renamed(access.region.buffer);
            }
        }
        let mut fresh = vec![stmt];
        refresh(func, &mut fresh);
        fresh.remove(0)
    }
}
