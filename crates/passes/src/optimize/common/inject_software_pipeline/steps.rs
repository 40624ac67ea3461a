//! Loops that are written out anyway, as the micro-ops of each of their steps.
//!
//! `for ks in unroll(0, 4) { let w = …; s2r -> a; s2r -> b; mma a, b }` has four steps of three
//! micro-ops. Each of them names what it touches, so an order can give each a place of its own.

use rustc_hash::FxHashMap;
use tilewright_ir::visit::stmt_exprs_mut;
use tilewright_ir::{
    Access, Buffer, Expr, Func, LoopKind, MicroKind, MicroOp, Scope, Span, Stmt, StmtKind, Var,
};

use super::super::fresh::refresh;

/// The micro-ops of a loop's step, over the index of the step.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    /// Of the step along K; a copy has none.
    index: Option<Var>,
    pub count: u32,
    /// Of one step, in order.
    pub ops: Vec<MicroOp>,
    /// Where each of them is in the product, in parts along M and N.
    pub within: Vec<Within>,
    span: Span,
}

/// Which part along M and N, or of a copy, where there are parts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Within {
    pub m: Option<u32>,
    pub n: Option<u32>,
    pub p: Option<u32>,
}

impl Within {
    /// Whether a part of an operand is for a part of the product.
    pub fn is_of(self, product: Within) -> bool {
        let fits = |own: Option<u32>, part: Option<u32>| own.is_none() || own == part;
        fits(self.m, product.m) && fits(self.n, product.n)
    }
}

/// Registers of a step that are filled together: slots of an array from the first on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Array {
    pub buffer: Buffer,
    /// Absent for all of them.
    pub part: Option<(i128, i128)>,
}

impl Array {
    /// The registers of an access.
    pub fn of(func: &Func, access: &Access) -> Option<Array> {
        let buffer = access.region.buffer;
        if access.region.is_whole(&func.buffers[buffer]) {
            return Some(Array { buffer, part: None });
        }
        let [dim] = &access.region.dims[..] else {
            return None;
        };
        let part = Some((dim.start.as_int()?, dim.extent.as_int()?));
        Some(Array { buffer, part })
    }
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
            index: Some(axis.var),
            count: u32::try_from(axis.stop.as_int()?).ok()?,
            within: vec![Within::default(); ops.len()],
            ops,
            span: stmt.span,
        })
    }

    /// The parts of a copy.
    pub fn of_copy(parts: Vec<MicroOp>, span: Span) -> Steps {
        let within = (0..parts.len() as u32).map(|part| Within {
            p: Some(part),
            ..Within::default()
        });
        Steps {
            index: None,
            count: 1,
            within: within.collect(),
            ops: parts,
            span,
        }
    }

    /// A step's number, where there are steps along K.
    pub fn along_k(&self, step: u32) -> Option<u32> {
        self.index.map(|_| step)
    }

    /// The same steps of these ops.
    pub fn with_ops(&self, ops: Vec<(MicroOp, Within)>) -> Steps {
        let (ops, within) = ops.into_iter().unzip();
        Steps {
            ops,
            within,
            ..self.clone()
        }
    }

    /// How many of the ops are of a kind.
    pub fn of_kind(&self, kind: MicroKind) -> usize {
        self.ops.iter().filter(|m| m.kind == kind).count()
    }

    /// The register arrays that each step fills before it uses them, so that steps may have
    /// arrays of their own.
    pub fn own_registers(&self, func: &Func) -> Vec<Array> {
        let mut own: Vec<Array> = Vec::new();
        let mut others: Vec<Buffer> = Vec::new();
        for op in &self.ops {
            for source in &op.sources {
                let used = Array::of(func, source);
                if !used.is_some_and(|array| own.contains(&array)) {
                    others.push(source.region.buffer);
                }
            }
            let dest = op.dest.region.buffer;
            let array = Array::of(func, &op.dest);
            let fills = op.kind != MicroKind::Mma
                && func.buffers[dest].scope == Scope::Local
                && (op.pred.is_none() || op.otherwise.is_some());
            match array.filter(|_| fills) {
                Some(array) if own.contains(&array) => {}
                Some(array) if !others.contains(&dest) => own.push(array),
                _ => others.push(dest),
            }
        }
        own.retain(|array| !others.contains(&array.buffer));
        own
    }

    /// A micro-op of a step as a statement of its own, on the registers that `renamed` says.
    pub fn op(
        &self,
        func: &mut Func,
        step: u32,
        op: usize,
        renamed: &dyn Fn(Array) -> Option<Buffer>,
    ) -> Stmt {
        let mut stmt = Stmt::new(StmtKind::Micro(self.ops[op].clone()), self.span);
        if let Some(index) = self.index {
            let at = Expr::int(step.into(), func.vars[index].dtype);
            stmt_exprs_mut(&mut stmt, &mut |e| {
                *e = e.rewrite(&mut |node| (node.as_var()? == index).then(|| at.clone()));
            });
        }
        if let StmtKind::Micro(m) = &mut stmt.kind {
            for access in std::iter::once(&mut m.dest).chain(&mut m.sources) {
                let array = Array::of(func, access);
                if let Some((array, buffer)) = array.and_then(|a| Some((a, renamed(a)?))) {
                    access.region.buffer = buffer;
                    move_to_start(access, array);
                }
            }
        }
        let mut fresh = vec![stmt];
        refresh(func, &mut fresh);
        fresh.remove(0)
    }
}

/// An access of a part of an array becomes one of an array that is this part.
fn move_to_start(access: &mut Access, array: Array) {
    let Some((first, _)) = array.part else {
        return;
    };
    for dim in &mut access.region.dims {
        dim.start = Expr::int(0, dim.start.dtype());
    }
    for at in access.at.iter_mut().filter(|_| first > 0) {
        *at = at.clone() - Expr::int(first, at.dtype());
    }
}
