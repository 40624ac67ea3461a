//! Indices of accesses as places: which elements each thread takes at each point.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{Access, BinOp, Buffer, Expr, ExprKind, Region, Var};

use super::places::{Lanes, Shape};
use super::units::{Units, Way};
use super::value::{Env, evaluate, is_of_integers};

/// How far apart the rows of a tensor are taken to lie at least. Its sizes may not be known, nor
/// the guards that keep indices inside; equal indices are equal places whatever it is.
const SOME_EXTENT: i64 = 1 << 13;

impl Units<'_> {
    /// From the first to the last register that a thread's loads or stores take.
    pub(super) fn own_range(
        &self,
        access: &Access,
        axes: &[(Var, Vec<i64>)],
        width: i64,
        env: &Env,
    ) -> Option<(i64, i64)> {
        const MOST: usize = 256;
        let [at] = &access.at[..] else {
            return None;
        };
        let at = env.fold(at);
        let points: usize = axes.iter().map(|(_, values)| values.len()).product();
        if points == 0 || points > MOST {
            return None;
        }
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        for point in 0..points {
            let mut left = point;
            let mut env = FxHashMap::default();
            for (var, values) in axes {
                env.insert(*var, values[left % values.len()]);
                left /= values.len();
            }
            let index = evaluate(&at, &|v| env.get(&v).copied())?;
            (first, last) = (first.min(index), last.max(index + width));
        }
        Some((first, last))
    }

    /// The range of elements of a rectangle with known bounds.
    pub(super) fn region_range(&self, region: &Region, env: &Env) -> Option<(i64, i64)> {
        let data = &self.scan.func.buffers[region.buffer];
        if matches!(data.origin, tilewright_ir::BufferOrigin::View(_)) {
            return None;
        }
        let (mut first, mut last, mut stride) = (0i64, 0i64, 1i64);
        for (dim, extent) in region.dims.iter().zip(&data.shape).rev() {
            let (start, length) = (env.value(&dim.start)?, env.value(&dim.extent)?);
            first += start * stride;
            last += (start + length - 1) * stride;
            stride = stride.checked_mul(env.value(extent)?)?;
        }
        Some((first, last + 1))
    }

    pub(super) fn shape(
        &self,
        buffer: Buffer,
        at: &[Expr],
        width: i64,
        lanes: Lanes,
        way: &Way,
        env: &Env,
    ) -> Shape {
        let root = self.scan.root(buffer);
        let anywhere = Shape::Anywhere(root);
        let data = &self.scan.func.buffers[buffer];
        if at.len() != data.shape.len() {
            return anywhere;
        }
        let element = i64::from(data.dtype.bits());
        let (mut stride, mut constant) = (element, 0i64);
        let mut sum = Vec::new();
        let tensor = self.scan.is_exchanged(root);
        if tensor && root != buffer {
            return anywhere;
        }
        for (dim, (index, extent)) in at.iter().zip(&data.shape).enumerate().rev() {
            let index = match index.kind() {
                ExprKind::Ramp { base, stride } if stride.is_int(1) => base,
                ExprKind::Ramp { .. } | ExprKind::Broadcast(_) => return anywhere,
                _ => index,
            };
            linear(&env.fold(index), stride, &mut constant, &mut sum);
            let extent = match tensor {
                true => Some(SOME_EXTENT.max(env.value(extent).unwrap_or(0))),
                false => env.value(extent),
            };
            let next = extent.and_then(|e| stride.checked_mul(e));
            let Some(next) = next.or((dim == 0).then_some(stride)) else {
                return anywhere;
            };
            stride = next;
        }
        let (terms, rest): (Vec<_>, Vec<_>) = sum
            .into_iter()
            .partition(|(e, _)| self.countable(e, &way.axes));
        let fixed = tensor && rest.iter().all(|(e, _)| self.is_fixed(e));
        if !rest.is_empty() && !fixed {
            return anywhere;
        }
        let mut base: Vec<(Expr, i64)> = Vec::new();
        for (e, factor) in rest {
            match base.iter_mut().find(|(known, _)| *known == e) {
                Some((_, sum)) => *sum = sum.wrapping_add(factor),
                None => base.push((e, factor)),
            }
        }
        let all: Vec<&Expr> = way.guards.iter().flat_map(Expr::conjuncts).collect();
        let countable = all.iter().filter(|g| self.countable(g, &way.axes));
        let guards: Vec<Expr> = countable.map(|g| (*g).clone()).collect();
        let mut used = FxHashSet::default();
        for e in terms.iter().map(|(e, _)| e).chain(&guards) {
            e.walk(&mut |node| used.extend(node.as_var()));
        }
        let axes = way.axes.iter().filter(|(var, _)| used.contains(var));
        Shape::Places {
            root,
            base,
            constant,
            terms,
            bits: element * width,
            axes: axes.cloned().collect(),
            always: guards.len() == all.len(),
            guards,
            lanes,
        }
    }

    /// Whether the value is one for the whole block, from beginning to end.
    pub(super) fn is_fixed(&self, e: &Expr) -> bool {
        let mut fixed = self.scan.reads_constants(e);
        e.walk(&mut |node| {
            fixed &= node.as_var().is_none_or(|v| self.scan.is_fixed(v));
        });
        fixed
    }

    /// Whether the value is known from thread indices and axes.
    pub(super) fn countable(&self, e: &Expr, axes: &[(Var, Vec<i64>)]) -> bool {
        let mut known = is_of_integers(e);
        e.walk(&mut |node| {
            known &= node.as_var().is_none_or(|var| {
                self.scan.kernel.thread_vars.contains(&var)
                    || axes.iter().any(|(axis, _)| *axis == var)
            });
        });
        known
    }
}

/// Adds `factor · e` to a sum.
fn linear(e: &Expr, factor: i64, constant: &mut i64, terms: &mut Vec<(Expr, i64)>) {
    match e.kind() {
        ExprKind::Int(value) => {
            let value = i64::try_from(*value).unwrap_or(i64::MAX);
            *constant = constant.wrapping_add(value.wrapping_mul(factor));
        }
        ExprKind::Binary(BinOp::Add, a, b) => {
            linear(a, factor, constant, terms);
            linear(b, factor, constant, terms);
        }
        ExprKind::Binary(BinOp::Sub, a, b) => {
            linear(a, factor, constant, terms);
            linear(b, factor.wrapping_neg(), constant, terms);
        }
        ExprKind::Binary(BinOp::Mul, a, b) => {
            let small = |e: &Expr| i64::try_from(e.as_int()?).ok();
            match (small(a), small(b)) {
                (_, Some(c)) => linear(a, factor.wrapping_mul(c), constant, terms),
                (Some(c), _) => linear(b, factor.wrapping_mul(c), constant, terms),
                (None, None) => terms.push((e.clone(), factor)),
            }
        }
        _ => terms.push((e.clone(), factor)),
    }
}
