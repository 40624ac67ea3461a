//! Index expressions of closed forms, for the passes that lower accesses.
//!
//! Digits become `x // div % extent`, neighbouring parities one XOR of bit fields: the 128-byte
//! swizzle of f16 prints as `i * 64 + ((j // 8) ^ (i % 8)) * 8 + j % 8`.

use tilewright_ir::{DType, Expr, FragmentMap, IndexMap, LayoutAttr, Var};

use crate::compose::{Guard, Pieces};
use crate::decide::Verdict;
use crate::form::{Form, Sum, Term};
use crate::fragment::{Fragment, FragmentInverse};
use crate::layout::Layout;
use crate::radix::{Digit, ones, row_major_strides};

impl Layout {
    /// The outputs as expressions over the index, one expression a dimension, all of one
    /// integer type. `None` when the layout has no closed form over its shape.
    pub fn to_exprs(&self, index: &[Expr]) -> Option<Vec<Expr>> {
        if index.len() != self.shape().len() || index.is_empty() {
            return None;
        }
        if let Some(form) = self.form() {
            return Some(form.to_exprs(index));
        }
        // The form may only exist over another box, often the flattened index.
        let raw = self.raw_form()?;
        let flat = flattened(index, self.shape());
        let flat = flat.unwrap_or_else(|| Expr::int(0, index[0].dtype()));
        Some(raw.to_exprs(&unflattened(&flat, raw.radix.shape())))
    }

    /// The layout as an attribute of a buffer, over these variables (int32), one a dimension.
    pub fn to_attr(&self, inputs: &[Var]) -> Option<LayoutAttr> {
        let index: Vec<Expr> = inputs.iter().map(|&v| Expr::var(v, DType::I32)).collect();
        Some(LayoutAttr::Map(IndexMap {
            inputs: inputs.to_vec(),
            outputs: self.to_exprs(&index)?,
        }))
    }
}

impl Fragment {
    /// The thread and slot of an element's copy. `None` without a closed form.
    pub fn to_exprs(&self, index: &[Expr], replica: Option<Expr>) -> Option<[Expr; 2]> {
        let first = index.first()?;
        let replica = replica.unwrap_or_else(|| Expr::int(0, first.dtype()));
        let all: Vec<Expr> = index.iter().cloned().chain([replica]).collect();
        self.layout().to_exprs(&all)?.try_into().ok()
    }

    /// The fragment as an attribute of a buffer, over these variables (int32): one a dimension,
    /// and one for the copy.
    pub fn to_attr(&self, inputs: &[Var], replica: Var) -> Option<LayoutAttr> {
        let index: Vec<Expr> = inputs.iter().map(|&v| Expr::var(v, DType::I32)).collect();
        let [thread, slot] = self.to_exprs(&index, Some(Expr::var(replica, DType::I32)))?;
        Some(LayoutAttr::Fragment(FragmentMap {
            inputs: inputs.to_vec(),
            replica: (self.replicas() > 1).then_some(replica),
            replicas: u32::try_from(self.replicas()).ok()?,
            thread,
            slots: vec![slot],
        }))
    }
}

impl FragmentInverse {
    /// The index that a thread has in a slot, one expression a dimension (the copy last), and
    /// the condition under which it has one; without a condition it always does.
    pub fn to_exprs(&self, thread: &Expr, slot: &Expr) -> (Vec<Expr>, Option<Expr>) {
        let place = [thread.clone(), slot.clone()];
        let own = self.form.to_exprs(&place);
        let guards = self.guards.iter().map(|Guard { digit, below }| {
            let top = digit.div * digit.extent >= self.form.radix.shape()[digit.dim];
            field(&place, digit, digit.extent, top).lt(*below)
        });
        let may_leave = |(out, &extent): (usize, &i64)| {
            let (low, high) = match (self.form.range(out), Pieces::of(&self.form, out)) {
                (Verdict::Known(range), _) => range,
                (Verdict::Open, Some(pieces)) => (0, pieces.max()),
                (Verdict::Open, None) => (i64::MIN, i64::MAX),
            };
            let below = (high >= extent).then(|| own[out].clone().lt(extent));
            let above = (low < 0).then(|| own[out].clone().ge(0));
            above.into_iter().chain(below).reduce(Expr::and)
        };
        let ranges = self.domain.iter().enumerate().filter_map(may_leave);
        let condition = guards.chain(ranges).reduce(Expr::and);
        if self.domain == self.full {
            return (own, condition);
        }
        // Through the row-major position: flatten, then cut at the strides of the shape.
        let flat = flattened(&own, &self.domain);
        let flat = flat.unwrap_or_else(|| Expr::int(0, thread.dtype()));
        (unflattened(&flat, &self.full), condition)
    }
}

/// The index at a row-major position.
fn unflattened(flat: &Expr, shape: &[i64]) -> Vec<Expr> {
    let strides = row_major_strides(shape);
    let mut top = true;
    let digits = shape.iter().zip(strides).map(|(&extent, stride)| {
        if extent == 1 {
            return Expr::int(0, flat.dtype());
        }
        let digit = Digit::new(0, stride, extent);
        let top = std::mem::replace(&mut top, false);
        field(std::slice::from_ref(flat), &digit, extent, top)
    });
    digits.collect()
}

/// The row-major position of an index, dimensions of extent one left out.
fn flattened(index: &[Expr], shape: &[i64]) -> Option<Expr> {
    let long = index.iter().zip(shape).filter(|(_, e)| **e > 1);
    long.fold(None, |flat: Option<Expr>, (x, &e)| {
        Some(match flat {
            None => x.clone(),
            Some(f) => f * e + x,
        })
    })
}

impl Form {
    /// The outputs as expressions over the input dimensions.
    pub fn to_exprs(&self, index: &[Expr]) -> Vec<Expr> {
        self.outs
            .iter()
            .map(|out| self.sum_expr(out, index))
            .collect()
    }

    fn sum_expr(&self, sum: &Sum, index: &[Expr]) -> Expr {
        let dtype = index[0].dtype();
        // Heavy terms first, as people write them.
        let mut terms = sum.terms.clone();
        terms.sort_by_key(|t| (std::cmp::Reverse(t.weight.abs()), t.row));
        let mut parts: Vec<(Expr, i64)> = Vec::new();
        let mut done = vec![false; terms.len()];
        for i in 0..terms.len() {
            if done[i] {
                continue;
            }
            done[i] = true;
            let t = terms[i];
            if t.row.is_power_of_two() {
                let (digit, weight) = self.run_below(&t, &terms, &mut done);
                let top = self.radix.is_top(t.row.trailing_zeros() as usize);
                parts.push((field(index, &digit, digit.extent, top), weight));
                continue;
            }
            // Parities of lower weight whose bits are each one place below join this one.
            let mut low = t;
            let mut length = 1;
            while let Some(next) = self.one_below(&low, &terms, &done) {
                done[next] = true;
                low = terms[next];
                length += 1;
            }
            let fields = ones(low.row).map(|at| {
                let digit = self.radix.digits()[at];
                let highest = at + length - 1;
                field(index, &digit, 1 << length, self.radix.is_top(highest))
            });
            let xor = fields.reduce(|a, b| a ^ b);
            parts.extend(xor.map(|x| (x, low.weight)));
        }
        let mut total: Option<Expr> = None;
        for (e, weight) in parts {
            let magnitude = weight.abs();
            let scaled = if magnitude == 1 { e } else { e * magnitude };
            total = Some(match total {
                None if weight < 0 => Expr::int(sum.offset.into(), dtype) - scaled,
                None => scaled,
                Some(sum) if weight < 0 => sum - scaled,
                Some(sum) => sum + scaled,
            });
        }
        let starts_negative = terms.first().is_some_and(|t| t.weight < 0);
        match total {
            None => Expr::int(sum.offset.into(), dtype),
            Some(total) if sum.offset == 0 || starts_negative => total,
            Some(total) => total + sum.offset,
        }
    }

    /// The digit of a term joined with the digits right below it that count on with it, and the
    /// weight of the lowest.
    fn run_below(&self, t: &Term, terms: &[Term], done: &mut [bool]) -> (Digit, i64) {
        let mut at = t.row.trailing_zeros() as usize;
        let (mut run, mut weight) = (self.radix.digits()[at], t.weight);
        while let Some(below) = at.checked_sub(1) {
            let digit = self.radix.digits()[below];
            let counts_on = |i: &usize| {
                let t = terms[*i];
                !done[*i] && t.row == 1 << below && t.weight * digit.extent == weight
            };
            match (0..terms.len()).find(counts_on) {
                Some(next) if digit.dim == run.dim => {
                    done[next] = true;
                    weight = terms[next].weight;
                    run = Digit::new(run.dim, digit.div, digit.extent * run.extent);
                    at = below;
                }
                _ => break,
            }
        }
        (run, weight)
    }

    /// The parity that is this one shifted down by one bit in every digit, if it has half the
    /// weight.
    fn one_below(&self, t: &Term, terms: &[Term], done: &[bool]) -> Option<usize> {
        let digits = self.radix.digits();
        let mut row = 0u64;
        for at in ones(t.row) {
            let below = at.checked_sub(1)?;
            if digits[below].dim != digits[at].dim || digits[below].extent != 2 {
                return None;
            }
            row |= 1 << below;
        }
        let fits =
            |i: &usize| !done[*i] && terms[*i].row == row && terms[*i].weight * 2 == t.weight;
        (0..terms.len()).find(fits)
    }
}

/// `x // div % extent`, without what does nothing.
fn field(index: &[Expr], digit: &Digit, extent: i64, top: bool) -> Expr {
    let x = index[digit.dim].clone();
    let shifted = if digit.div == 1 {
        x
    } else {
        x.floor_div(digit.div)
    };
    if top {
        shifted
    } else {
        shifted.floor_mod(extent)
    }
}
