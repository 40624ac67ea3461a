//! Which memory two points of a parallel loop might both touch.
//!
//! Most loops store every element from exactly one point, in a way that can be read off the
//! indices. Storages for which that cannot be seen are followed while the loop runs.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::visit::{stmt_exprs, walk_stmts};
use tilewright_ir::{BinOp, Buffer, Expr, ExprKind, Func, Loop, Scope, StmtKind, ThreadOp, Var};

use crate::divergence::{is_private, root};

/// The buffers (by what views are views of) that the race check must follow in the loop.
pub(crate) fn suspects(func: &Func, l: &Loop) -> FxHashSet<Buffer> {
    let mut scan = Scan {
        axes: l
            .axes
            .iter()
            .filter(|a| a.const_trip_count() != Some(1))
            .map(|a| a.var)
            .collect(),
        lets: FxHashMap::default(),
        inner: FxHashSet::default(),
    };
    let mut stores: FxHashMap<Buffer, Vec<(Buffer, &[Expr])>> = FxHashMap::default();
    let mut loads: FxHashMap<Buffer, Vec<(Buffer, Vec<Expr>)>> = FxHashMap::default();
    walk_stmts(&l.body, &mut |stmt| {
        match &stmt.kind {
            StmtKind::Let { var, value } => {
                scan.lets.insert(*var, value);
            }
            StmtKind::For(inner) => scan.inner.extend(inner.axes.iter().map(|a| a.var)),
            StmtKind::Thread(op) => scan.inner.extend(result_of(op)),
            _ => {}
        }
        if let StmtKind::Store {
            buffer, indices, ..
        } = &stmt.kind
        {
            let at = stores.entry(root(func, *buffer)).or_default();
            at.push((*buffer, indices));
        }
        stmt_exprs(stmt, &mut |e| {
            e.walk(&mut |e| {
                if let ExprKind::Load { buffer, indices } = e.kind() {
                    let at = loads.entry(root(func, *buffer)).or_default();
                    at.push((*buffer, indices.clone()));
                }
            });
        });
    });
    let mut suspects = FxHashSet::default();
    for (base, writes) in stores {
        let scope = func.buffers[base].scope;
        // A private array is one instance a point; a reducer exists to be met by many.
        if is_private(scope) || scope == Scope::Reducer {
            continue;
        }
        let (buffer, indices) = writes[0];
        let same = writes.iter().all(|w| *w == (buffer, indices))
            && loads.get(&base).is_none_or(|l| {
                l.iter()
                    .all(|(b, i)| *b == buffer && i.as_slice() == indices)
            });
        if !(same && scan.tells_points_apart(indices)) {
            suspects.insert(base);
        }
    }
    suspects
}

struct Scan<'f> {
    axes: Vec<Var>,
    lets: FxHashMap<Var, &'f Expr>,
    /// Indices of loops inside, and results of thread operations: a point has several values.
    inner: FxHashSet<Var>,
}

/// The variable that a thread operation binds.
fn result_of(op: &ThreadOp) -> Option<Var> {
    match op {
        ThreadOp::AtomicRmw { result, .. } | ThreadOp::Extern { result, .. } => *result,
        ThreadOp::AtomicLoad { result, .. }
        | ThreadOp::Shuffle { result, .. }
        | ThreadOp::Vote { result, .. }
        | ThreadOp::WarpReduce { result, .. } => Some(*result),
        ThreadOp::AtomicVecAdd { .. }
        | ThreadOp::AtomicStore { .. }
        | ThreadOp::AllReduce { .. }
        | ThreadOp::SyncThreads { .. }
        | ThreadOp::SyncWarp
        | ThreadOp::SyncGrid
        | ThreadOp::BarrierArrive { .. }
        | ThreadOp::BarrierWait { .. }
        | ThreadOp::BarrierExpect { .. }
        | ThreadOp::Dp4a { .. }
        | ThreadOp::Print { .. }
        | ThreadOp::SetMaxRegs { .. } => None,
    }
}

impl Scan<'_> {
    /// Whether the indices differ for any two points: each axis is, up to something the same
    /// for all points, an index by itself.
    fn tells_points_apart(&self, indices: &[Expr]) -> bool {
        self.axes
            .iter()
            .all(|&axis| indices.iter().any(|i| self.is_shifted_axis(i, axis)))
    }

    /// Whether the expression is `axis + c` or `axis - c` with `c` the same for all points.
    fn is_shifted_axis(&self, e: &Expr, axis: Var) -> bool {
        match e.kind() {
            ExprKind::Var(v) if *v == axis => true,
            ExprKind::Var(v) => self
                .lets
                .get(v)
                .is_some_and(|value| self.is_shifted_axis(value, axis)),
            ExprKind::Binary(BinOp::Add, a, b) => {
                (self.is_shifted_axis(a, axis) && self.is_fixed(b))
                    || (self.is_fixed(a) && self.is_shifted_axis(b, axis))
            }
            ExprKind::Binary(BinOp::Sub, a, b) => self.is_shifted_axis(a, axis) && self.is_fixed(b),
            ExprKind::Cast(a) => {
                // Widening keeps values apart.
                let (from, to) = (a.dtype().scalar, e.dtype().scalar);
                from.is_int()
                    && to.is_int()
                    && to.bits() >= from.bits()
                    && self.is_shifted_axis(a, axis)
            }
            _ => false,
        }
    }

    /// Whether the expression has one value for all points. Loads may not: the loop may store.
    fn is_fixed(&self, e: &Expr) -> bool {
        match e.kind() {
            ExprKind::Int(_) => true,
            ExprKind::Var(v) if self.axes.contains(v) || self.inner.contains(v) => false,
            ExprKind::Var(v) => match self.lets.get(v) {
                Some(value) => self.is_fixed(value),
                None => true,
            },
            ExprKind::Load { .. } => false,
            _ => e.operands().into_iter().all(|o| self.is_fixed(o)),
        }
    }
}
