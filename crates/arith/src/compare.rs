//! Comparisons of integers.
//!
//! Order is about integers: `<` and `<=` are decided and rewritten on integer forms, so a side
//! that may wrap is an atom and `x + 1 > x` stays. Equality is about remainders modulo `2^bits`
//! as well: equal terms cancel on both sides whether or not anything wraps, and only dividing by
//! an even factor needs to know that nothing does.
//!
//! Normal forms: positive terms stand on the left and negative ones on the right; a constant
//! alone stands on the right, as `p < c` or `p >= c`; `>` does not occur.

use tilewright_ir::{BinOp, DType};

use crate::analyzer::Analyzer;
use crate::interval::Interval;
use crate::linear::Lin;
use crate::rules::Rule;
use crate::term::{Node, Term};

impl Analyzer {
    /// `a < b`, or `a <= b`.
    pub(crate) fn less(&mut self, a: Term, b: Term, strict: bool) -> Term {
        let dtype = self.dtype(a);
        let op = if strict { BinOp::Lt } else { BinOp::Le };
        let (left, right) = (self.integer_form(a), self.integer_form(b));
        let Some(mut goal) = left.minus(&right) else {
            return self.raw(op, a, b);
        };
        if goal.add_constant(strict as i128).is_none() {
            return self.raw(op, a, b);
        }
        if let Some(value) = self.decide_nonpositive(&goal) {
            self.hit(Rule::CompareDecide);
            return self.boolean(value, dtype);
        }
        let result = self.normal_nonpositive(goal, dtype);
        let result = result.unwrap_or_else(|| self.raw(op, a, b));
        self.known_or(result)
    }

    /// Whether `goal <= 0` always or never holds.
    pub(crate) fn decide_nonpositive(&mut self, goal: &Lin) -> Option<bool> {
        if let Some(b) = self.bounds(goal) {
            if b.hi <= 0 {
                return Some(true);
            }
            if b.lo > 0 {
                return Some(false);
            }
        }
        if !self.has_facts() && !self.has_relations(goal) {
            return None;
        }
        if self.proves_nonpositive(goal) {
            return Some(true);
        }
        // goal >= 1.
        let mut negated = Lin::constant(1);
        negated.add_scaled(goal, -1)?;
        self.proves_nonpositive(&negated).then_some(false)
    }

    /// `goal <= 0` in normal form, or `None` where a side could not be computed without
    /// wrapping, or not in one type.
    fn normal_nonpositive(&mut self, goal: Lin, operands: DType) -> Option<Term> {
        let dtype = self.common_dtype(&goal, operands)?;
        let range = Interval::of(dtype.scalar);
        let mut goal = self.drop_small_terms(goal);
        let g = goal.content();
        if g > 1 {
            self.hit(Rule::CompareDivide);
            goal.terms.iter_mut().for_each(|(_, c)| *c /= g);
            // g p + c <= 0 is p <= floor(-c / g).
            goal.constant = -(goal.constant.checked_neg()?.div_euclid(g));
        }
        let (mut left, mut right) = sides(&goal);
        let c = goal.constant;
        if right.terms.is_empty() {
            // left <= -c
            let bound = 1i128.checked_sub(c)?;
            if !range.contains(bound) || !self.fits(&left, range) {
                return None;
            }
            let (left, bound) = (self.reify(&left, dtype), self.int(bound, dtype));
            return Some(self.raw(BinOp::Lt, left, bound));
        }
        if left.terms.is_empty() {
            // c <= right
            if !range.contains(c) || !self.fits(&right, range) {
                return None;
            }
            let (right, bound) = (self.reify(&right, dtype), self.int(c, dtype));
            return Some(self.raw(BinOp::Ge, right, bound));
        }
        let op = if c == 0 { BinOp::Le } else { BinOp::Lt };
        // left + c <= right is left + (c - 1) < right.
        match c {
            0 => {}
            c if c > 0 => left.constant = c - 1,
            c => right.constant = 1i128.checked_sub(c)?,
        }
        if !self.fits(&left, range) || !self.fits(&right, range) {
            return None;
        }
        let (left, right) = (self.reify(&left, dtype), self.reify(&right, dtype));
        Some(self.raw(op, left, right))
    }

    /// `g p + r <= k` is `p <= q` when `r` is too small to matter: when `(k - r) // g` is `q`
    /// for every `r`.
    fn drop_small_terms(&mut self, goal: Lin) -> Lin {
        if goal.terms.len() < 2 {
            return goal;
        }
        let mut candidates: Vec<i128> = goal.terms.iter().map(|&(_, c)| c.abs()).collect();
        candidates.sort_unstable();
        candidates.dedup();
        for g in candidates.into_iter().filter(|&g| g > 1).rev() {
            let (large, small): (Vec<_>, Vec<_>) =
                goal.terms.iter().partition(|&&(_, c)| c % g == 0);
            if small.is_empty() {
                continue;
            }
            let small = Lin {
                terms: small.into_iter().collect(),
                constant: goal.constant,
            };
            let Some(bounds) = self.bounds(&small).and_then(|b| b.scale(-1)) else {
                continue;
            };
            let bounds = bounds.floor_div(g);
            if bounds.is_point()
                && let Some(constant) = bounds.lo.checked_mul(-g)
            {
                self.hit(Rule::CompareDropSmall);
                return Lin {
                    terms: large.into_iter().collect(),
                    constant,
                };
            }
        }
        goal
    }

    /// The type that both sides of a comparison can be computed in: that of all atoms, which
    /// drops casts to a wider type.
    fn common_dtype(&mut self, form: &Lin, operands: DType) -> Option<DType> {
        let (&(first, _), rest) = form.terms.split_first()?;
        let dtype = self.dtype(first);
        let uniform = rest.iter().all(|&(t, _)| self.dtype(t) == dtype);
        (uniform && dtype.scalar.is_int() && dtype.lanes == operands.lanes).then_some(dtype)
    }

    /// `a == b` or `a != b`.
    pub(crate) fn equality(&mut self, op: BinOp, a: Term, b: Term) -> Term {
        let dtype = self.dtype(a);
        let bits = dtype.scalar.bits();
        let verdict = |s: &mut Analyzer, equal: bool| {
            s.hit(Rule::EqualDecide);
            s.boolean(equal == (op == BinOp::Eq), dtype)
        };
        let mut difference = self.ring_form(a);
        difference.ring_add_scaled(&self.ring_form(b), -1);
        difference.wrap(bits);
        if let Some(c) = difference.as_constant() {
            return verdict(self, c == 0);
        }
        // Zero modulo 2^bits only where a multiple of it is among the values.
        let modulus = 1i128 << bits;
        let bounds = self.bounds(&difference);
        let congruence = self.congruence_of(&difference).wrapped(bits);
        if !congruence.contains(0) {
            return verdict(self, false);
        }
        if let Some(bounds) = bounds
            && crate::interval::floor_div(bounds.hi, modulus)
                == crate::interval::floor_div(bounds.lo.saturating_sub(1), modulus)
        {
            // No multiple of 2^bits lies between the bounds.
            return verdict(self, false);
        }
        let (left, right) = (self.integer_form(a), self.integer_form(b));
        if let Some(goal) = left.minus(&right)
            && let Some(equal) = self.decide_zero(&goal)
        {
            return verdict(self, equal);
        }
        let exact = bounds.is_some_and(|b| b.is_within(Interval::new(1 - modulus, modulus - 1)));
        let result = self.normal_equality(op, difference, exact, dtype);
        self.known_or(result)
    }

    /// Whether an integer form is always or never zero.
    pub(crate) fn decide_zero(&mut self, goal: &Lin) -> Option<bool> {
        if let Some(c) = goal.as_constant() {
            return Some(c == 0);
        }
        if !self.congruence_of(goal).contains(0) {
            return Some(false);
        }
        if let Some(b) = self.bounds(goal) {
            if !b.contains(0) {
                return Some(false);
            }
            if b.is_point() {
                return Some(true);
            }
        }
        if !self.has_facts() && !self.has_relations(goal) {
            return None;
        }
        let mut negated = Lin::default();
        negated.add_scaled(goal, -1)?;
        let (at_most, at_least) = (
            self.proves_nonpositive(goal),
            self.proves_nonpositive(&negated),
        );
        if at_most && at_least {
            return Some(true);
        }
        let mut below = goal.clone();
        below.add_constant(1)?;
        negated.add_constant(1)?;
        (self.proves_nonpositive(&below) || self.proves_nonpositive(&negated)).then_some(false)
    }

    /// `difference == 0` with equal terms cancelled and a common factor divided out. `exact`
    /// says that the form is above `-2^bits` and below `2^bits`, so that it is zero modulo
    /// `2^bits` only if it is zero.
    fn normal_equality(
        &mut self,
        op: BinOp,
        mut difference: Lin,
        exact: bool,
        dtype: DType,
    ) -> Term {
        let g = difference.content();
        if g > 1 && exact {
            if difference.constant % g != 0 {
                self.hit(Rule::EqualDecide);
                return self.boolean(op == BinOp::Ne, dtype);
            }
            self.hit(Rule::EqualDivide);
            difference.terms.iter_mut().for_each(|(_, c)| *c /= g);
            difference.constant /= g;
        }
        // The structurally first term stands on the left.
        let first = difference
            .terms
            .iter()
            .min_by_key(|&&(t, _)| self.arena.order(t));
        if first.is_some_and(|&(_, c)| c < 0) {
            let mut negated = Lin::default();
            negated.ring_add_scaled(&difference, -1);
            negated.wrap(dtype.scalar.bits());
            difference = negated;
        }
        let (left, mut right) = sides(&difference);
        right.constant = -difference.constant;
        let (left, right) = (self.reify(&left, dtype), self.reify(&right, dtype));
        self.raw(op, left, right)
    }

    pub(crate) fn min_max(&mut self, op: BinOp, a: Term, b: Term) -> Term {
        if a == b {
            self.hit(Rule::MinMaxSame);
            return a;
        }
        let difference = self.integer_form(a).minus(&self.integer_form(b));
        if let Some(a_first) = difference.and_then(|d| self.decide_order(&d)) {
            self.hit(Rule::MinMaxDecide);
            return if a_first == (op == BinOp::Min) { a } else { b };
        }
        for (x, y) in [(a, b), (b, a)] {
            if let Some(t) = self.min_max_nested(op, x, y) {
                return t;
            }
        }
        let (a, b) = self.constant_last(a, b);
        self.commutative(op, a, b)
    }

    /// `Some(true)` if the form is never positive, `Some(false)` if it is never negative.
    fn decide_order(&mut self, form: &Lin) -> Option<bool> {
        let mut negated = Lin::default();
        negated.add_scaled(form, -1)?;
        if self.decide_nonpositive(form) == Some(true) {
            return Some(true);
        }
        (self.decide_nonpositive(&negated) == Some(true)).then_some(false)
    }

    /// `outer(inner(p, q), y)` where `y` is one of `p`, `q` or in a known order with one.
    fn min_max_nested(&mut self, op: BinOp, x: Term, y: Term) -> Option<Term> {
        let Node::Binary(inner @ (BinOp::Min | BinOp::Max), p, q) = *self.node(x) else {
            return None;
        };
        if p == y || q == y {
            self.hit(Rule::MinMaxAbsorb);
            return Some(if inner == op { x } else { y });
        }
        if inner != op {
            return None;
        }
        for (keep, other) in [(p, q), (q, p)] {
            let difference = self.integer_form(other).minus(&self.integer_form(y))?;
            match self.decide_order(&difference) {
                // `other` wins over `y`, so `y` never matters.
                Some(first) if first == (op == BinOp::Min) => {
                    self.hit(Rule::MinMaxAbsorb);
                    return Some(x);
                }
                Some(_) => {
                    self.hit(Rule::MinMaxAbsorb);
                    return Some(self.min_max(op, keep, y));
                }
                None => {}
            }
        }
        None
    }
}

/// `form = left - right + constant`, with positive coefficients on both sides.
fn sides(form: &Lin) -> (Lin, Lin) {
    let (mut left, mut right) = (Lin::default(), Lin::default());
    for &(t, c) in form.terms.iter() {
        if c > 0 {
            left.terms.push((t, c));
        } else {
            right.terms.push((t, -c));
        }
    }
    (left, right)
}
