//! Composition, inversion and XOR of closed forms.
//!
//! All three read the *digits of an output*: a sum whose terms nest (each weight at least as
//! large as everything below it can add up to) can be cut at a position when the terms below
//! never carry into it and the terms above are multiples of it. What lies between two cuts is
//! then again a small sum. Where a cut would carry, the result is no closed form and these
//! functions say `None`; [`Layout`](crate::Layout) then tabulates.

use crate::bits;
use crate::form::{Form, Sum};
use crate::radix::{Digit, Radix, ones, row_major_strides};

/// A term with a positive weight; a reversed one counts `extent - 1 - value(row)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    pub row: u64,
    pub weight: i64,
    pub extent: i64,
    pub reversed: bool,
}

/// `offset + Σ weight · value`, all of it non-negative.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pieces {
    pub offset: i64,
    /// By rising weight.
    pub list: Vec<Piece>,
}

impl Pieces {
    /// An output with its negative weights turned around. `None` when it may be negative.
    pub fn of(form: &Form, out: usize) -> Option<Pieces> {
        let sum = &form.outs[out];
        let mut offset = sum.offset;
        let mut list = Vec::with_capacity(sum.terms.len());
        for t in &sum.terms {
            let extent = form.extent(t.row);
            let reversed = t.weight < 0;
            if reversed {
                offset += t.weight * (extent - 1);
            }
            list.push(Piece {
                row: t.row,
                weight: t.weight.abs(),
                extent,
                reversed,
            });
        }
        list.sort_by_key(|p| p.weight);
        (offset >= 0).then_some(Pieces { offset, list })
    }

    /// The largest value if all pieces move freely: never too small.
    pub fn max(&self) -> i64 {
        let reach = self.list.iter().map(|p| p.weight * (p.extent - 1));
        self.offset + reach.sum::<i64>()
    }

    /// Whether the value determines every piece: each weight exceeds all that is below it.
    pub fn nested(&self) -> bool {
        let mut reach = 0;
        self.list.iter().all(|p| {
            let apart = p.weight > reach;
            reach += p.weight * (p.extent - 1);
            apart
        })
    }

    /// The row and inversion of a value that is zero or one.
    fn as_bit(&self) -> Option<(u64, bool)> {
        match (self.list.as_slice(), self.offset) {
            ([], 0 | 1) => Some((0, self.offset == 1)),
            ([p], 0) if p.weight == 1 && p.extent == 2 => Some((p.row, p.reversed)),
            _ => None,
        }
    }

    fn add_to(&self, sum: &mut Sum, scale: i64) {
        sum.offset += scale * self.offset;
        for p in &self.list {
            add_piece(sum, p, scale * p.weight);
        }
    }
}

/// Adds `weight` times the piece's value, whatever the piece's own weight.
fn add_piece(sum: &mut Sum, p: &Piece, weight: i64) {
    if p.reversed {
        sum.offset += weight * (p.extent - 1);
        sum.add(p.row, -weight);
    } else {
        sum.add(p.row, weight);
    }
}

/// Adds `weight` times a parity.
fn add_parity(sum: &mut Sum, (row, inverted): (u64, bool), weight: i64) {
    if inverted {
        sum.offset += weight;
        sum.add(row, -weight);
    } else {
        sum.add(row, weight);
    }
}

impl Form {
    /// Cuts input digits so that no term of the output straddles the position.
    fn expose(&mut self, out: usize, position: i64) -> Option<()> {
        loop {
            let straddles = |row: u64, weight: i64| {
                weight < position && weight * (self.extent(row) - 1) >= position
            };
            let terms = &self.outs[out].terms;
            let Some(t) = terms.iter().find(|t| straddles(t.row, t.weight.abs())) else {
                return Some(());
            };
            let weight = t.weight.abs();
            if !t.row.is_power_of_two() || position % weight != 0 {
                return None;
            }
            let digit = self.radix.digits()[t.row.trailing_zeros() as usize];
            let low = position / weight;
            // A reversed digit splits into reversed digits only where the cut divides it.
            if t.weight < 0 && digit.extent % low != 0 {
                return None;
            }
            self.cut(digit.dim, digit.div * low)?;
        }
    }

    /// The digits of an output between the positions `1, cuts…`; the last has no upper end.
    /// The input digits must have been [exposed](Self::expose) at the cuts.
    fn output_digits(&self, out: usize, cuts: &[i64]) -> Option<Vec<Pieces>> {
        let pieces = Pieces::of(self, out)?;
        let starts: Vec<i64> = std::iter::once(1).chain(cuts.iter().copied()).collect();
        let mut digits = vec![Pieces::default(); starts.len()];
        for &cut in cuts {
            let below = pieces.list.iter().filter(|p| p.weight < cut);
            let reach: i64 = below.map(|p| p.weight * (p.extent - 1)).sum();
            if reach + pieces.offset % cut >= cut {
                return None;
            }
        }
        for p in &pieces.list {
            let at = starts.partition_point(|&s| s <= p.weight) - 1;
            // A multiple of its own start is a multiple of all starts below.
            if p.weight % starts[at] != 0 {
                return None;
            }
            digits[at].list.push(Piece {
                weight: p.weight / starts[at],
                ..*p
            });
        }
        for (at, digit) in digits.iter_mut().enumerate() {
            digit.offset = pieces.offset / starts[at];
            if let Some(next) = starts.get(at + 1) {
                digit.offset %= next / starts[at];
            }
        }
        Some(digits)
    }

    /// `outer(self(x))`; the outputs of `self` are the inputs of `outer` and lie in its box.
    pub fn then(&self, outer: &Form) -> Option<Form> {
        let mut inner = self.clone();
        for d in outer.radix.digits().iter().filter(|d| d.div > 1) {
            inner.expose(d.dim, d.div)?;
        }
        // The value of each of outer's digits, in order.
        let mut values: Vec<Pieces> = Vec::with_capacity(outer.radix.digits().len());
        for dim in 0..outer.radix.shape().len() {
            let of_dim = outer.radix.digits().iter().filter(|d| d.dim == dim);
            let starts: Vec<i64> = of_dim.map(|d| d.div).collect();
            if let Some(cuts) = starts.get(1..) {
                values.extend(inner.output_digits(dim, cuts)?);
            }
        }
        let mut outs = Vec::with_capacity(outer.outs.len());
        for out in &outer.outs {
            let mut sum = Sum::constant(out.offset);
            for t in &out.terms {
                if t.row.is_power_of_two() {
                    values[t.row.trailing_zeros() as usize].add_to(&mut sum, t.weight);
                    continue;
                }
                let mut parity = (0, false);
                for at in ones(t.row) {
                    let (row, inverted) = values[at].as_bit()?;
                    parity = (parity.0 ^ row, parity.1 ^ inverted);
                }
                add_parity(&mut sum, parity, t.weight);
            }
            outs.push(sum);
        }
        let mut result = Form {
            radix: inner.radix,
            outs,
        };
        result.coalesce();
        Some(result)
    }

    /// The row-major position of the outputs in a box of this shape.
    pub fn flattened(&self, shape: &[i64]) -> Form {
        let mut sum = Sum::default();
        for (out, stride) in self.outs.iter().zip(row_major_strides(shape)) {
            sum.add_scaled(out, stride);
        }
        let mut flat = Form {
            radix: self.radix.clone(),
            outs: vec![sum],
        };
        flat.coalesce();
        flat
    }

    /// From a row-major position to the index it is in a box of this shape.
    pub fn unflatten(shape: &[i64]) -> Option<Form> {
        let size = shape.iter().product();
        let mut form = Form {
            radix: Radix::new(&[size]),
            outs: Vec::new(),
        };
        let strides = row_major_strides(shape);
        for &s in strides.iter().rev() {
            form.cut(0, s)?;
        }
        for (&stride, &extent) in strides.iter().zip(shape) {
            let mut sum = Sum::default();
            if extent > 1 {
                sum.add(1 << form.radix.position(0, stride)?, 1);
            }
            form.outs.push(sum);
        }
        Some(form)
    }

    /// The same function of an index box of another shape with the same row-major order.
    pub fn reshaped(&self, shape: &[i64]) -> Option<Form> {
        if self.radix.shape() == shape {
            return Some(self.clone());
        }
        let flat = Form::strided(shape, &row_major_strides(shape));
        flat.then(&Form::unflatten(self.radix.shape())?)?.then(self)
    }

    /// The inverse of a bijection onto the box `codomain`. `None` when the outputs are not
    /// exactly the digits of that box.
    pub fn inverse(&self, codomain: &[i64]) -> Option<Form> {
        let (form, guards) = self.left_inverse(codomain)?;
        let exact = guards.is_empty() && self.radix.size() == codomain.iter().product();
        exact.then_some(form)
    }

    /// A map from the box `codomain` that takes each output back to its input, with the digits
    /// that must be small for an output to have an input at all. Where the guards hold, an
    /// output is an image exactly if the result lies in the input box.
    pub fn left_inverse(&self, codomain: &[i64]) -> Option<(Form, Vec<Guard>)> {
        let mut radix = Radix::new(codomain);
        let mut guards = Vec::new();
        // (digit of the codomain, piece that is its value)
        let mut found: Vec<(usize, Digit, Piece)> = Vec::new();
        for (out, &extent) in codomain.iter().enumerate() {
            let pieces = Pieces::of(self, out)?;
            if pieces.offset != 0 || !pieces.nested() {
                return None;
            }
            for p in &pieces.list {
                if p.weight >= extent {
                    return None;
                }
                radix.cut(out, p.weight)?;
            }
            let weights = pieces.list.iter().map(|p| p.weight);
            let ends = weights.clone().skip(1).chain([extent]);
            if pieces.list.first().is_none_or(|p| p.weight > 1) && extent > 1 {
                let end = pieces.list.first().map_or(extent, |p| p.weight);
                guards.push(Guard {
                    digit: Digit::new(out, 1, end),
                    below: 1,
                });
            }
            for ((p, start), end) in pieces.list.iter().zip(weights).zip(ends) {
                let room = (end + start - 1) / start;
                // Two pieces may share a digit's room only by nesting, which `cut` checked.
                let digit = Digit::new(out, start, room);
                if room < p.extent {
                    return None;
                }
                let overflow_shows = p.row.is_power_of_two() && !p.reversed && {
                    self.radix.is_top(p.row.trailing_zeros() as usize)
                };
                if room > p.extent && !overflow_shows {
                    guards.push(Guard {
                        digit,
                        below: p.extent,
                    });
                }
                found.push((radix.digits().len(), digit, *p));
            }
        }
        for (at, digit, _) in &mut found {
            *at = radix.position(digit.dim, digit.div)?;
        }
        let mut outs = vec![Sum::default(); self.radix.shape().len()];
        // Digits longer than a bit stand alone and go straight back.
        let bits = self.bit_digits();
        let mut seen = 0u64;
        for (at, _, p) in found.iter().filter(|(_, _, p)| p.row & bits == 0) {
            if seen & p.row != 0 {
                return None;
            }
            seen |= p.row;
            let d = self.radix.digits()[p.row.trailing_zeros() as usize];
            let piece = Piece { row: 1 << at, ..*p };
            add_piece(&mut outs[d.dim], &piece, d.div);
        }
        // Bits are a linear system; its inverse gives each input bit as a parity of output bits.
        let parities: Vec<_> = found.iter().filter(|(_, _, p)| p.row & bits != 0).collect();
        let rows: Vec<u64> = parities.iter().map(|(_, _, p)| p.row).collect();
        let columns: Vec<u32> = ones(bits).map(|b| b as u32).collect();
        let inverse = bits::invert(&rows, &columns)?;
        for (&column, selected) in columns.iter().zip(inverse) {
            let d = self.radix.digits()[column as usize];
            seen |= 1 << column;
            // One digit, of which a guard keeps all but two values out, goes straight back.
            if selected.is_power_of_two() {
                let (at, _, p) = parities[selected.trailing_zeros() as usize];
                add_piece(&mut outs[d.dim], &Piece { row: 1 << at, ..*p }, d.div);
                continue;
            }
            let mut parity = (0u64, false);
            for (at, digit, p) in ones(selected).map(|i| parities[i]) {
                // A parity of several output digits needs them to be bits of the codomain too.
                if digit.extent != 2 {
                    return None;
                }
                parity = (parity.0 ^ 1 << at, parity.1 ^ p.reversed);
            }
            add_parity(&mut outs[d.dim], parity, d.div);
        }
        let all = self.radix.digits().len();
        let complete = seen.count_ones() as usize == all;
        let mut form = Form { radix, outs };
        form.coalesce();
        complete.then_some((form, guards))
    }

    /// `a ^ b` of two one-output forms over the same box.
    pub fn xor(a: &Form, b: &Form) -> Option<Form> {
        Form::bitwise(a, b, |a, b| Some((a.0 ^ b.0, a.1 ^ b.1)))
    }

    /// `a | b`, where no bit may be set in both.
    pub fn or(a: &Form, b: &Form) -> Option<Form> {
        Form::bitwise(a, b, |a, b| match (a, b) {
            ((0, false), other) | (other, (0, false)) => Some(other),
            ((0, true), _) | (_, (0, true)) => Some((0, true)),
            _ => None,
        })
    }

    /// `a & b`, where each bit of one side is constant.
    pub fn and(a: &Form, b: &Form) -> Option<Form> {
        Form::bitwise(a, b, |a, b| match (a, b) {
            ((0, false), _) | (_, (0, false)) => Some((0, false)),
            ((0, true), other) | (other, (0, true)) => Some(other),
            (a, b) => (a == b).then_some(a),
        })
    }

    fn bitwise(
        a: &Form,
        b: &Form,
        op: impl Fn((u64, bool), (u64, bool)) -> Option<(u64, bool)>,
    ) -> Option<Form> {
        let (mut a, mut b) = (a.clone(), b.clone());
        let reach = Pieces::of(&a, 0)?.max().min(Pieces::of(&b, 0)?.max());
        let width = 64 - (reach as u64).leading_zeros();
        let cuts: Vec<i64> = (1..=width).map(|b| 1i64 << b).collect();
        for &cut in &cuts {
            a.expose(0, cut)?;
            b.expose(0, cut)?;
        }
        a.align(&mut b)?;
        let digits_a = a.output_digits(0, &cuts)?;
        let digits_b = b.output_digits(0, &cuts)?;
        let mut sum = Sum::default();
        for bit in 0..width as usize {
            let (x, y) = (digits_a[bit].as_bit()?, digits_b[bit].as_bit()?);
            add_parity(&mut sum, op(x, y)?, 1 << bit);
        }
        // One side ends here; what the other has above meets zeros.
        let keeps_the_rest = op((0, true), (0, false))? == (0, true);
        if keeps_the_rest {
            for rest in [&digits_a[width as usize], &digits_b[width as usize]] {
                rest.add_to(&mut sum, 1 << width);
            }
        }
        let mut result = Form {
            radix: a.radix,
            outs: vec![sum],
        };
        result.coalesce();
        Some(result)
    }
}

/// `value[dim] / div % extent < below`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guard {
    pub digit: Digit,
    pub below: i64,
}
