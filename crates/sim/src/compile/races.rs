//! Which memory two points of a parallel loop might both touch.
//!
//! Most loops store every element from exactly one point, in a way that can be read off the
//! indices. Storages for which that cannot be seen are followed while the loop runs.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::visit::{stmt_exprs, walk_stmts};
use tilewright_ir::{Axis, BinOp, Buffer, Expr, ExprKind, Func, Loop, Scope, StmtKind, Var};

/// The buffers (by what views are views of) that the race check must follow in the loop.
pub(crate) fn suspects(func: &Func, l: &Loop) -> FxHashSet<Buffer> {
    let mut scan = Scan {
        axes: l
            .axes
            .iter()
            .filter(|a| a.const_trip_count() != Some(1))
            .map(|a| (a.var, reach(a)))
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
            StmtKind::Thread(op) => scan.inner.extend(op.result()),
            _ => {}
        }
        if let StmtKind::Store {
            buffer, indices, ..
        } = &stmt.kind
        {
            let at = stores.entry(func.root(*buffer)).or_default();
            at.push((*buffer, indices));
        }
        stmt_exprs(stmt, &mut |e| {
            e.walk(&mut |e| {
                if let ExprKind::Load { buffer, indices } = e.kind() {
                    let at = loads.entry(func.root(*buffer)).or_default();
                    at.push((*buffer, indices.clone()));
                }
            });
        });
    });
    let mut suspects = FxHashSet::default();
    for (base, writes) in stores {
        let scope = func.buffers[base].scope;
        // A private array is one instance a point; a reducer exists to be met by many.
        if scope.is_private() || scope == Scope::Reducer {
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
    /// Indices with more than one value, and how far apart their values are at most.
    axes: Vec<(Var, Option<i128>)>,
    lets: FxHashMap<Var, &'f Expr>,
    /// Indices of loops inside, and results of thread operations: a point has several values.
    inner: FxHashSet<Var>,
}

/// The distance of the first value of a constant range from its last.
fn reach(axis: &Axis) -> Option<i128> {
    let trips = i128::from(axis.const_trip_count()?);
    Some((trips - 1).max(0) * axis.step.as_int()?.abs())
}

/// `Σ coefficient · axis`, plus something that is the same for all points.
type Linear = FxHashMap<Var, i128>;

impl Scan<'_> {
    /// Whether the indices differ for any two points: each axis can be read off one of them.
    fn tells_points_apart(&self, indices: &[Expr]) -> bool {
        let mut told: FxHashSet<Var> = FxHashSet::default();
        for index in indices {
            if let Some(linear) = self.linear(index)
                && self.is_injective(&linear)
            {
                told.extend(linear.keys());
            }
        }
        self.axes.iter().all(|(axis, _)| told.contains(axis))
    }

    /// Whether different points give different sums: sorted by coefficient, each step is longer
    /// than all shorter ones together, like digits of a number.
    fn is_injective(&self, linear: &Linear) -> bool {
        if linear.len() == 1 {
            return linear.values().all(|c| *c != 0);
        }
        let mut terms = Vec::new();
        for (axis, coefficient) in linear {
            let reach = self.axes.iter().find(|(a, _)| a == axis);
            match reach {
                Some((_, Some(reach))) => terms.push((coefficient.abs(), *reach)),
                _ => return false,
            }
        }
        terms.sort_unstable();
        let mut span = 0i128;
        for (coefficient, reach) in terms {
            if coefficient <= span {
                return false;
            }
            span += coefficient * reach;
        }
        // A sum that wraps around may meet another one.
        span < 1 << 31
    }

    fn linear(&self, e: &Expr) -> Option<Linear> {
        match e.kind() {
            ExprKind::Int(_) => Some(Linear::default()),
            ExprKind::Var(v) if self.axes.iter().any(|(a, _)| a == v) => {
                Some(Linear::from_iter([(*v, 1)]))
            }
            ExprKind::Var(v) if self.inner.contains(v) => None,
            ExprKind::Var(v) => match self.lets.get(v) {
                Some(value) => self.linear(value),
                None => Some(Linear::default()),
            },
            ExprKind::Binary(op @ (BinOp::Add | BinOp::Sub), a, b) => {
                let mut sum = self.linear(a)?;
                let sign = if *op == BinOp::Add { 1 } else { -1 };
                for (axis, coefficient) in self.linear(b)? {
                    *sum.entry(axis).or_insert(0) += sign * coefficient;
                }
                sum.retain(|_, c| *c != 0);
                Some(sum)
            }
            ExprKind::Binary(BinOp::Mul, a, b) => {
                let (factor, other) = match (a.as_int(), b.as_int()) {
                    (Some(c), _) => (c, b),
                    (_, Some(c)) => (c, a),
                    _ => return self.fixed(e),
                };
                let mut product = self.linear(other)?;
                for c in product.values_mut() {
                    *c = c.checked_mul(factor)?;
                }
                product.retain(|_, c| *c != 0);
                Some(product)
            }
            // Widening keeps values apart.
            ExprKind::Cast(a)
                if a.dtype().scalar.is_int()
                    && e.dtype().scalar.is_int()
                    && e.dtype().scalar.bits() >= a.dtype().scalar.bits() =>
            {
                self.linear(a)
            }
            _ => self.fixed(e),
        }
    }

    /// The form without axes, if the expression has one value for all points. Loads may not
    /// have one: the loop may store.
    fn fixed(&self, e: &Expr) -> Option<Linear> {
        let mut fixed = true;
        e.walk(&mut |e| {
            fixed &= match e.kind() {
                ExprKind::Load { .. } => false,
                ExprKind::Var(v) => {
                    !self.inner.contains(v)
                        && !self.lets.contains_key(v)
                        && self.axes.iter().all(|(a, _)| a != v)
                }
                _ => true,
            };
        });
        fixed.then(Linear::default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::{FileId, text};

    /// How many buffers are followed in the first loop of this body.
    fn followed(axes: &str, body: &str) -> usize {
        let source = format!(
            "func @k level=tile {{\nparam A: int32[64]\nparam B: int32[8, 8]\n\
             kernel grid(bx: 1) threads(tx: 1, ty: 1, tz: 1) {{\n\
             for {axes} {{\n{body}\n}}\n}}\n}}"
        );
        let func = text::parse(&source, FileId(0)).expect("a function");
        match &func.kernels[0].body[0].kind {
            StmtKind::For(l) => suspects(&func, l).len(),
            _ => panic!("a loop"),
        }
    }

    #[test]
    fn indices_that_tell_points_apart_are_not_followed() {
        let one = "i in parallel(8)";
        let two = "i, j in parallel(8, 8)";
        for (axes, body) in [
            (one, "A[i] = A[i] + 1"),
            (one, "A[bx * 8 + i] = B[0, i]"),
            (one, "let k: int32 = i + 3\nA[63 - k] = 0"),
            (one, "A[i * 3] = 0"),
            (two, "B[j, i] = 0"),
            (two, "A[i * 8 + j] = 0"),
            (two, "A[(j + 1) * 8 - i] = 0"),
            (one, "for k in serial(0, 8) {\nB[i, k] = 0\n}"),
        ] {
            assert_eq!(followed(axes, body), 0, "{axes}: {body}");
        }
        for (axes, body) in [
            (one, "A[0] = i"),
            (one, "A[i // 2] = i"),
            (one, "A[i % 8] = i"),
            (one, "A[A[i]] = i"),
            (one, "A[i] = A[i + 1]"),
            (one, "A[i - i] = 0"),
            (two, "A[i * 7 + j] = 0"),
            (two, "A[i] = j"),
            (one, "for k in serial(0, 8) {\nA[i + k] = 0\n}"),
        ] {
            assert_eq!(followed(axes, body), 1, "{axes}: {body}");
        }
    }
}
