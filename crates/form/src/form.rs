//! The closed form of a map between index boxes: weighted digits plus weighted parities.
//!
//! Each output is `offset + Σ weight · value(row)`. A row selects digits of the input
//! ([`Radix`]): a row of one digit has that digit's value, a row of several *bits* (digits of
//! extent two) has their parity. One-digit rows alone are a mixed-radix map; rows of bits with
//! powers of two as weights are a matrix over GF(2), XOR swizzles among them; and both may
//! stand side by side, as in a swizzled tile of 192 rows.
//!
//! Parities are the characters of the bit vectors, and characters are linearly independent. So
//! over one radix the weights of a function are unique, and two forms are the same function
//! exactly when their weights agree: equality needs no evaluation.

use crate::radix::{Cut, Digit, MAX_DIGITS, Radix, ones};

/// One summand of an output.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Term {
    /// The digits whose parity counts, as bits; a single digit counts with its value.
    pub row: u64,
    pub weight: i64,
}

/// One output: `offset + Σ weight · value(row)`; rows are distinct and sorted, weights nonzero.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Sum {
    pub offset: i64,
    pub terms: Vec<Term>,
}

impl Sum {
    pub fn constant(offset: i64) -> Sum {
        Sum {
            offset,
            terms: Vec::new(),
        }
    }

    /// The weight of a row; zero when it does not occur.
    pub fn weight(&self, row: u64) -> i64 {
        let found = self.terms.binary_search_by_key(&row, |t| t.row);
        found.map_or(0, |at| self.terms[at].weight)
    }

    /// Adds `weight · value(row)`.
    pub fn add(&mut self, row: u64, weight: i64) {
        match self.terms.binary_search_by_key(&row, |t| t.row) {
            Ok(at) => {
                self.terms[at].weight += weight;
                if self.terms[at].weight == 0 {
                    self.terms.remove(at);
                }
            }
            Err(at) if weight != 0 && row != 0 => self.terms.insert(at, Term { row, weight }),
            Err(_) => {}
        }
    }

    /// Adds another sum, scaled.
    pub fn add_scaled(&mut self, other: &Sum, scale: i64) {
        self.offset += other.offset * scale;
        for t in &other.terms {
            self.add(t.row, t.weight * scale);
        }
    }

    /// The digits that occur in any row.
    pub fn support(&self) -> u64 {
        self.terms.iter().fold(0, |acc, t| acc | t.row)
    }

    /// The digits that occur in a row with another one.
    pub fn mixed(&self) -> u64 {
        let rows = self.terms.iter().map(|t| t.row);
        rows.filter(|r| r.count_ones() > 1)
            .fold(0, |acc, r| acc | r)
    }
}

/// A map from the indices of a box to tuples of integers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Form {
    pub radix: Radix,
    pub outs: Vec<Sum>,
}

impl Form {
    /// The map whose outputs are the input dimensions.
    pub fn identity(shape: &[i64]) -> Form {
        let radix = Radix::new(shape);
        let outs = (0..shape.len()).map(|dim| Form::dimension(&radix, dim));
        Form {
            outs: outs.collect(),
            radix,
        }
    }

    /// One output: the sum of the dimensions times their strides.
    pub fn strided(shape: &[i64], strides: &[i64]) -> Form {
        let radix = Radix::new(shape);
        let mut sum = Sum::default();
        for (at, d) in radix.digits().iter().enumerate() {
            sum.add(1 << at, strides[d.dim]);
        }
        Form {
            radix,
            outs: vec![sum],
        }
    }

    /// The value of one dimension, as a sum over its digits.
    pub fn dimension(radix: &Radix, dim: usize) -> Sum {
        let mut sum = Sum::default();
        for (at, d) in radix.digits().iter().enumerate() {
            if d.dim == dim {
                sum.add(1 << at, d.div);
            }
        }
        sum
    }

    /// The outputs at an index.
    pub fn eval(&self, index: &[i64]) -> Vec<i64> {
        let mut outs = Vec::with_capacity(self.outs.len());
        self.eval_each(index, |value| outs.push(value));
        outs
    }

    /// Calls `f` on the outputs at an index, in order.
    pub fn eval_each(&self, index: &[i64], mut f: impl FnMut(i64)) {
        let mut values = [0; MAX_DIGITS];
        let mut odd = 0u64;
        let count = self.radix.digits().len();
        for (at, value) in values[..count].iter_mut().enumerate() {
            *value = self.radix.value(at, index);
            odd |= ((*value & 1) as u64) << at;
        }
        for out in &self.outs {
            let terms = out.terms.iter().map(|t| {
                let value = if t.row.is_power_of_two() {
                    values[t.row.trailing_zeros() as usize]
                } else {
                    ((t.row & odd).count_ones() & 1) as i64
                };
                t.weight * value
            });
            f(out.offset + terms.sum::<i64>());
        }
    }

    /// The digits of an index.
    pub fn digit_values(&self, index: &[i64]) -> Vec<i64> {
        let count = self.radix.digits().len();
        (0..count).map(|at| self.radix.value(at, index)).collect()
    }

    /// How many values a row takes.
    pub fn extent(&self, row: u64) -> i64 {
        if row.is_power_of_two() {
            self.radix.digits()[row.trailing_zeros() as usize].extent
        } else {
            2
        }
    }

    /// The digits of extent two.
    pub fn bit_digits(&self) -> u64 {
        let digits = self.radix.digits().iter().enumerate();
        digits.fold(0, |m, (at, d)| m | ((d.extent == 2) as u64) << at)
    }

    /// Makes `position` a cut of the dimension, rewriting the rows. `None` when the digits
    /// cannot be cut there.
    pub fn cut(&mut self, dim: usize, position: i64) -> Option<()> {
        let Cut::Split { at, low } = self.radix.cut(dim, position)? else {
            return Some(());
        };
        // The split digit was longer than a bit, so it occurs only in rows of its own.
        let keep = (1u64 << at << 1).wrapping_sub(1);
        for out in &mut self.outs {
            let mut high_weight = 0;
            for t in &mut out.terms {
                if t.row == 1 << at {
                    high_weight = t.weight * low;
                }
                t.row = (t.row & keep) | ((t.row & !keep) << 1);
            }
            out.add(1 << (at + 1), high_weight);
        }
        Some(())
    }

    /// Joins neighbouring digits that always move together, so that equal functions tend to
    /// look equal and evaluation is short.
    pub fn coalesce(&mut self) {
        let mixed = self.outs.iter().fold(0, |m, out| m | out.mixed());
        // From the top down: joining two digits neither moves the ones below nor changes whether
        // the joined digit goes together with the one above.
        for hi in (1..self.radix.digits().len()).rev() {
            let lo = hi - 1;
            let Digit { dim, extent, .. } = self.radix.digits()[lo];
            let counts_on = |o: &Sum| o.weight(1 << hi) == extent * o.weight(1 << lo);
            let together = self.radix.digits()[hi].dim == dim
                && mixed & (1u64 << lo | 1 << hi) == 0
                && self.outs.iter().all(counts_on);
            if !together {
                continue;
            }
            self.radix.join(lo);
            let keep = (1u64 << hi) - 1;
            for out in &mut self.outs {
                out.terms.retain(|t| t.row != 1 << hi);
                for t in &mut out.terms {
                    t.row = (t.row & keep) | ((t.row & !keep) >> 1);
                }
            }
        }
    }

    /// Brings two forms over the same box to one set of digits. `None` when their cuts do not
    /// fit one chain.
    pub fn align(&mut self, other: &mut Form) -> Option<()> {
        if self.radix == other.radix {
            return Some(());
        }
        for d in other.radix.digits().to_vec() {
            self.cut(d.dim, d.div)?;
        }
        for d in self.radix.digits().to_vec() {
            other.cut(d.dim, d.div)?;
        }
        Some(())
    }

    /// Whether runs of `width` along a dimension, which is cut there, are counted by the last
    /// output from a multiple of `width` on and leave the other outputs alone.
    pub fn runs_along(&self, dim: usize, width: i64) -> bool {
        let digits = self.radix.digits().iter().enumerate();
        let run = digits.filter(|(_, d)| d.dim == dim && d.div < width);
        let run: Vec<(u64, i64)> = run.map(|(at, d)| (1 << at, d.div)).collect();
        let mask = run.iter().fold(0, |m, (row, _)| m | row);
        let Some((counted, others)) = self.outs.split_last() else {
            return false;
        };
        others.iter().all(|out| out.support() & mask == 0)
            && counted.offset % width == 0
            && run.iter().all(|&(row, div)| counted.weight(row) == div)
            && counted.terms.iter().all(|t| {
                let counts = t.row.is_power_of_two() && t.row & mask != 0;
                counts || (t.row & mask == 0 && t.weight % width == 0)
            })
    }

    /// Whether runs along a dimension, which is cut at `width` and at `width * count`, are dealt out
    /// in turn: each `width` neighbours are counted by the last output, the `count` of these by the
    /// first, both from multiples on.
    pub fn deals_along(&self, dim: usize, [width, count]: [i64; 2]) -> bool {
        let [dealt, counted] = &self.outs[..] else {
            return false;
        };
        let digits = self.radix.digits().iter().enumerate();
        let run = digits.filter(|(_, d)| d.dim == dim && d.div < width * count);
        let run: Vec<(u64, i64)> = run.map(|(at, d)| (1 << at, d.div)).collect();
        let mask = run.iter().fold(0, |m, (row, _)| m | row);
        // The weights that the digits of a run have in each output, and what divides the others.
        let is_right = |out: &Sum, every: i64, weight: &dyn Fn(i64) -> i64| {
            out.offset % every == 0
                && run.iter().all(|&(row, div)| out.weight(row) == weight(div))
                && out.terms.iter().all(|t| {
                    let counts = t.row.is_power_of_two() && t.row & mask != 0;
                    counts || (t.row & mask == 0 && t.weight % every == 0)
                })
        };
        let own = |div: i64| if div < width { div } else { 0 };
        let turn = |div: i64| if div < width { 0 } else { div / width };
        is_right(counted, width, &own) && is_right(dealt, count, &turn)
    }

    /// Forgets all outputs but one.
    pub fn only(&self, out: usize) -> Form {
        Form {
            radix: self.radix.clone(),
            outs: vec![self.outs[out].clone()],
        }
    }

    /// Reorders the input dimensions: `order[i]` is the old number of the new dimension `i`.
    pub fn permute_inputs(&self, order: &[usize]) -> Form {
        let old = self.radix.shape();
        let shape: Vec<i64> = order.iter().map(|&d| old[d]).collect();
        let mut radix = Radix::new(&shape);
        let mut moved = vec![0usize; self.radix.digits().len()];
        for (new, &dim) in order.iter().enumerate() {
            for d in self.radix.digits().iter().filter(|d| d.dim == dim) {
                // Cutting at cuts of a valid chain, lowest first, always succeeds.
                let _ = radix.cut(new, d.div);
            }
        }
        for (at, d) in self.radix.digits().iter().enumerate() {
            let new = order.iter().position(|&o| o == d.dim);
            moved[at] = new.and_then(|n| radix.position(n, d.div)).unwrap_or(at);
        }
        self.relabel(radix, &moved)
    }

    /// `outer` over tiles of the shape of `inner`, which is inside each: output by output,
    /// `outer · extent + inner`. `None` when `inner` has digits that do not fill a tile.
    pub fn product(outer: &Form, inner: &Form, extents: &[i64]) -> Option<Form> {
        let tile = inner.radix.shape();
        let shape: Vec<i64> = outer
            .radix
            .shape()
            .iter()
            .zip(tile)
            .map(|(a, b)| a * b)
            .collect();
        let (mut of_inner, mut of_outer, mut digits) = (Vec::new(), Vec::new(), Vec::new());
        for (dim, &extent) in tile.iter().enumerate() {
            if inner.radix.is_ragged(dim) && outer.radix.shape()[dim] > 1 {
                return None;
            }
            for d in inner.radix.digits().iter().filter(|d| d.dim == dim) {
                of_inner.push(digits.len());
                digits.push(*d);
            }
            for d in outer.radix.digits().iter().filter(|d| d.dim == dim) {
                of_outer.push(digits.len());
                digits.push(Digit::new(dim, d.div * extent, d.extent));
            }
        }
        let radix = Radix::from_digits(shape, digits)?;
        let mut all = inner.relabel(radix.clone(), &of_inner);
        let outer = outer.relabel(radix, &of_outer);
        for ((sum, o), &extent) in all.outs.iter_mut().zip(&outer.outs).zip(extents) {
            sum.add_scaled(o, extent);
        }
        all.coalesce();
        Some(all)
    }

    /// Both side by side: the dimensions and the outputs of `a`, then those of `b`.
    pub fn concat(a: &Form, b: &Form) -> Option<Form> {
        let (rank, count) = (a.radix.shape().len(), a.radix.digits().len());
        let shape = [a.radix.shape(), b.radix.shape()].concat();
        let mut digits = a.radix.digits().to_vec();
        let moved = b.radix.digits().iter();
        digits.extend(moved.map(|d| Digit::new(d.dim + rank, d.div, d.extent)));
        let radix = Radix::from_digits(shape, digits)?;
        let keep: Vec<usize> = (0..count).collect();
        let shift: Vec<usize> = (count..radix.digits().len()).collect();
        let mut all = a.relabel(radix.clone(), &keep);
        all.outs.append(&mut b.relabel(radix, &shift).outs);
        Some(all)
    }

    /// The same rows over another radix; `moved[at]` is the new position of the digit `at`.
    pub fn relabel(&self, radix: Radix, moved: &[usize]) -> Form {
        let outs = self.outs.iter().map(|out| {
            let mut sum = Sum::constant(out.offset);
            for t in &out.terms {
                let row = ones(t.row).fold(0, |r, at| r | 1 << moved[at]);
                sum.add(row, t.weight);
            }
            sum
        });
        Form {
            outs: outs.collect(),
            radix,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radix::indices;

    #[test]
    fn cutting_changes_no_value_and_coalescing_undoes_it() {
        let whole = Form::strided(&[6, 40], &[41, 1]);
        let mut cut = whole.clone();
        for (dim, at) in [(1, 8), (1, 2), (0, 3), (1, 4)] {
            assert!(cut.cut(dim, at).is_some());
        }
        assert_eq!(cut.radix.digits().len(), 6);
        for i in indices(&[6, 40]) {
            assert_eq!(cut.eval(&i), whole.eval(&i));
        }
        cut.coalesce();
        assert_eq!(cut, whole);
    }

    #[test]
    fn parities_are_xor() {
        // (i, j) -> i * 8 + (j ^ i) over 8 x 8.
        let mut f = Form::strided(&[8, 8], &[8, 1]);
        for (dim, at) in [(0, 2), (0, 4), (1, 2), (1, 4)] {
            assert!(f.cut(dim, at).is_some());
        }
        for b in 0..3 {
            f.outs[0].add(1 << (3 + b), -(1 << b));
            f.outs[0].add(1 << (3 + b) | 1 << b, 1 << b);
        }
        for i in indices(&[8, 8]) {
            assert_eq!(f.eval(&i), [i[0] * 8 + (i[1] ^ i[0])]);
        }
        let transposed = f.permute_inputs(&[1, 0]);
        for i in indices(&[8, 8]) {
            assert_eq!(transposed.eval(&i), f.eval(&[i[1], i[0]]));
        }
    }
}
