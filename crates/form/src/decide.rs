//! Decisions about closed forms: equality, collisions, ranges, images.
//!
//! Each answer comes from weights and ranks alone. Forms outside that reach (weights that
//! neither nest nor are few, parities of bits that a ragged dimension never sets together)
//! return [`Verdict::Open`], and the caller looks at the points; no layout that this crate
//! builds itself is such a form.

use crate::bits;
use crate::compose::Pieces;
use crate::form::Form;
use crate::radix::ones;

/// What a closed-form decision found out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict<T> {
    Known(T),
    /// The closed form does not tell; evaluate.
    Open,
}

/// Two different inputs with one image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Collision {
    pub a: Vec<i64>,
    pub b: Vec<i64>,
}

impl Form {
    /// Whether both are the same function of the same box.
    pub fn equals(&self, other: &Form) -> Verdict<bool> {
        if self == other {
            return Verdict::Known(true);
        }
        if self.radix.shape() != other.radix.shape() || self.outs.len() != other.outs.len() {
            return Verdict::Known(false);
        }
        let (mut a, mut b) = (self.clone(), other.clone());
        if a.align(&mut b).is_none() {
            return Verdict::Open;
        }
        if a.outs == b.outs {
            return Verdict::Known(true);
        }
        // Different weights are different functions if every parity in play is reached by an
        // index: then each row has a monomial that no smaller row can make up for.
        let all = a.outs.iter().chain(&b.outs);
        let mut rows = all.flat_map(|o| o.terms.iter().map(|t| t.row));
        if rows.all(|r| a.radix.realises(r)) {
            Verdict::Known(false)
        } else {
            Verdict::Open
        }
    }

    /// Two inputs with equal outputs, where there are some.
    pub fn collision(&self) -> Verdict<Option<Collision>> {
        let used = self.outs.iter().fold(0, |m, o| m | o.support());
        let count = self.radix.digits().len();
        if let Some(unused) = (0..count).find(|at| used & 1 << at == 0) {
            return Verdict::Known(Some(self.apart(1 << unused)));
        }
        let mut rows = Vec::new();
        let mut nested = true;
        for out in 0..self.outs.len() {
            // The offset does not matter here, so a sum that may be negative is no obstacle.
            let mut only = self.only(out);
            only.outs[0].offset = i64::MAX / 4;
            let Some(pieces) = Pieces::of(&only, 0) else {
                return Verdict::Open;
            };
            nested &= pieces.nested();
            rows.extend(pieces.list.iter().map(|p| p.row));
        }
        if nested {
            // The outputs determine every row's value; so they determine the input exactly if
            // the rows of bits have full rank. Longer digits have rows of their own.
            let collision = bits::kernel_vector(&rows, self.bit_digits());
            return Verdict::Known(collision.map(|v| self.apart(v)));
        }
        if rows.iter().all(|r| r.is_power_of_two()) {
            return self.additive_collision();
        }
        Verdict::Open
    }

    /// Two inputs whose bits differ in exactly the digits of `row`.
    fn apart(&self, row: u64) -> Collision {
        let rank = self.radix.shape().len();
        let (mut a, mut b) = (vec![0; rank], vec![0; rank]);
        for at in ones(row) {
            let d = self.radix.digits()[at];
            // The topmost differing digit of a dimension goes to one side and the others to
            // the other: below the topmost they cannot add up to it, so both are indices.
            let is_last = ones(row)
                .filter(|&o| self.radix.digits()[o].dim == d.dim)
                .last();
            if is_last == Some(at) {
                a[d.dim] += d.div;
            } else {
                b[d.dim] += d.div;
            }
        }
        Collision { a, b }
    }

    /// Exact injectivity of a sum of digits whose weights overlap: looks for differences of
    /// digits, not all zero, that add up to nothing. The search visits only differences that
    /// the smaller weights can still repair, which are few; a budget bounds the rest.
    fn additive_collision(&self) -> Verdict<Option<Collision>> {
        let digits = self.radix.digits();
        // One number for all outputs: scaled so far apart that they cannot make up for
        // each other.
        let mut weights = vec![0i128; digits.len()];
        let mut scale = 1i128;
        for out in &self.outs {
            let mut reach = 0i128;
            for t in &out.terms {
                let at = t.row.trailing_zeros() as usize;
                weights[at] += scale * t.weight as i128;
                reach += (t.weight.abs() * (digits[at].extent - 1)) as i128;
            }
            scale = match scale.checked_mul(2 * reach + 1) {
                Some(s) if s < 1 << 100 => s,
                _ => return Verdict::Open,
            };
        }
        let mut order: Vec<usize> = (0..digits.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(weights[at].abs()));
        let mut reach = vec![0i128; order.len() + 1];
        for i in (0..order.len()).rev() {
            let at = order[i];
            reach[i] = reach[i + 1] + weights[at].abs() * (digits[at].extent - 1) as i128;
        }
        let mut search = DifferenceSearch {
            form: self,
            weights: &weights,
            order: &order,
            reach: &reach,
            differences: vec![0; digits.len()],
            budget: 20_000,
        };
        match search.run(0, 0) {
            Some(found) => Verdict::Known(found.then(|| search.collision())),
            None => Verdict::Open,
        }
    }

    /// The smallest and largest value of an output.
    pub fn range(&self, out: usize) -> Verdict<(i64, i64)> {
        let sum = &self.outs[out];
        let rows: Vec<u64> = sum.terms.iter().map(|t| t.row).collect();
        let ragged_dims = (0..self.radix.shape().len()).filter(|&d| self.radix.is_ragged(d));
        let ragged: Vec<usize> = ragged_dims.collect();
        let single = rows.iter().all(|r| r.is_power_of_two());
        let in_ragged =
            |row: u64| ones(row).any(|at| ragged.contains(&self.radix.digits()[at].dim));
        let ragged_rows = rows.iter().any(|&r| in_ragged(r));
        if !single && (ragged_rows || bits::rank(rows.iter().copied()) != rows.len()) {
            return Verdict::Open;
        }
        // Independent rows take all combinations of values.
        let (mut low, mut high) = (sum.offset, sum.offset);
        for t in sum.terms.iter().filter(|t| !in_ragged(t.row)) {
            let reach = t.weight * (self.extent(t.row) - 1);
            low += reach.min(0);
            high += reach.max(0);
        }
        for dim in ragged {
            let (l, h) = self.ragged_range(out, dim);
            low += l;
            high += h;
        }
        Verdict::Known((low, high))
    }

    /// The range of what one ragged dimension adds to an output. The indices below the extent
    /// are boxes of digits: those that agree with the last index down to some digit, are
    /// smaller there, and free below.
    fn ragged_range(&self, out: usize, dim: usize) -> (i64, i64) {
        let digits = self.radix.digits().iter().enumerate();
        let digits: Vec<_> = digits.filter(|(_, d)| d.dim == dim).collect();
        let mut last = vec![0; self.radix.shape().len()];
        last[dim] = self.radix.shape()[dim] - 1;
        let weight = |at: usize| self.outs[out].weight(1 << at);
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        let mut agreed = 0;
        for (i, (at, _)) in digits.iter().enumerate().rev() {
            let here = self.radix.value(*at, &last);
            if here > 0 {
                let reach = weight(*at) * (here - 1);
                let (mut l, mut h) = (agreed + reach.min(0), agreed + reach.max(0));
                for (below, d) in &digits[..i] {
                    let reach = weight(*below) * (d.extent - 1);
                    l += reach.min(0);
                    h += reach.max(0);
                }
                low = low.min(l);
                high = high.max(h);
            }
            agreed += weight(*at) * here;
        }
        (low.min(agreed), high.max(agreed))
    }

    /// Whether every point of the box `codomain` is an output; the outputs lie in it.
    pub fn surjective(&self, codomain: &[i64]) -> Verdict<bool> {
        let size: i64 = codomain.iter().product();
        if self.radix.size() < size {
            return Verdict::Known(false);
        }
        match self.collision() {
            Verdict::Known(None) => return Verdict::Known(self.radix.size() == size),
            Verdict::Known(Some(_)) => {}
            Verdict::Open => return Verdict::Open,
        }
        // Not injective: every combination of pieces must occur, and the pieces must be all
        // the digits of the codomain.
        let mut rows = Vec::new();
        for (out, &extent) in codomain.iter().enumerate() {
            let Some(pieces) = Pieces::of(self, out) else {
                return Verdict::Open;
            };
            let mut next = 1;
            for p in &pieces.list {
                if p.weight != next {
                    return Verdict::Open;
                }
                next *= p.extent;
                rows.push(p.row);
            }
            if next < extent && pieces.offset == 0 {
                return Verdict::Known(false);
            }
            if next != extent || pieces.offset != 0 {
                return Verdict::Open;
            }
        }
        let used = rows.iter().fold(0, |m, r| m | r);
        for dim in (0..self.radix.shape().len()).filter(|&d| self.radix.is_ragged(d)) {
            let digits = self.radix.digits().iter().enumerate();
            let top = digits
                .filter(|(_, d)| d.dim == dim)
                .map(|(at, _)| at)
                .next_back();
            if top.is_some_and(|top| used & 1 << top != 0) {
                return Verdict::Open;
            }
        }
        let bit_rows = rows.iter().copied().filter(|r| r & self.bit_digits() != 0);
        let long = rows.iter().filter(|&r| r & self.bit_digits() == 0);
        let mut seen = 0;
        for &row in long {
            if seen & row != 0 {
                return Verdict::Known(false);
            }
            seen |= row;
        }
        let count = bit_rows.clone().count();
        Verdict::Known(bits::rank(bit_rows) == count)
    }
}

struct DifferenceSearch<'a> {
    form: &'a Form,
    weights: &'a [i128],
    order: &'a [usize],
    reach: &'a [i128],
    differences: Vec<i64>,
    budget: u32,
}

impl DifferenceSearch<'_> {
    /// Whether the digits from `depth` on can bring `partial` back to zero, with some
    /// difference nonzero. `None` when the budget ran out.
    fn run(&mut self, depth: usize, partial: i128) -> Option<bool> {
        if self.budget == 0 {
            return None;
        }
        self.budget -= 1;
        let Some(&at) = self.order.get(depth) else {
            let moved = self.differences.iter().any(|&d| d != 0);
            return Some(partial == 0 && moved && self.is_realised());
        };
        let weight = self.weights[at].abs();
        let rest = self.reach[depth + 1];
        let limit = (self.form.radix.digits()[at].extent - 1) as i128;
        let signed = self.weights[at].signum();
        // |partial + signed * δ * weight| <= rest
        let center = -partial * signed;
        let low = (center - rest + weight - 1).div_euclid(weight).max(-limit);
        let high = (center + rest).div_euclid(weight).min(limit);
        for delta in low..=high {
            self.differences[at] = delta as i64;
            if self.run(depth + 1, partial + delta * self.weights[at])? {
                return Some(true);
            }
        }
        self.differences[at] = 0;
        Some(false)
    }

    /// Whether both ends of the difference are indices: the smallest pair puts each digit's
    /// difference on one side.
    fn is_realised(&self) -> bool {
        let Collision { a, b } = self.collision();
        let shape = self.form.radix.shape();
        let inside = |x: &[i64]| x.iter().zip(shape).all(|(i, e)| i < e);
        inside(&a) && inside(&b)
    }

    fn collision(&self) -> Collision {
        let rank = self.form.radix.shape().len();
        let (mut a, mut b) = (vec![0; rank], vec![0; rank]);
        for (d, &delta) in self.form.radix.digits().iter().zip(&self.differences) {
            let side = if delta > 0 { &mut a } else { &mut b };
            side[d.dim] += d.div * delta.abs();
        }
        Collision { a, b }
    }
}
