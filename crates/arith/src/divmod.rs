//! Integer division and remainder.
//!
//! Quotients and remainders are about integers, so every rule here works on the integer form of
//! the dividend ([`facts`](crate::facts)): it exists only if the dividend does not wrap. The one
//! exception is the remainder by a power of two, which divides `2^bits`: it is the same for all
//! values congruent modulo `2^bits`, so the ring form is enough.
//!
//! When a dividend is split, the parts that go on to be divided must be values of the type
//! themselves; their bounds are checked before they are built.

use tilewright_ir::{BinOp, DType};

use crate::analyzer::Analyzer;
use crate::interval::Interval;
use crate::linear::Lin;
use crate::rules::Rule;
use crate::term::{Node, Term};

impl Analyzer {
    pub(crate) fn floor_div(&mut self, a: Term, b: Term) -> Term {
        match self.constant(b) {
            Some(c) if c != 0 => self.floor_div_constant(a, c),
            Some(_) => self.raw(BinOp::FloorDiv, a, b),
            None => self.div_by_term(BinOp::FloorDiv, a, b),
        }
    }

    pub(crate) fn floor_mod(&mut self, a: Term, b: Term) -> Term {
        match self.constant(b) {
            Some(c) if c != 0 => self.floor_mod_constant(a, c),
            Some(_) => self.raw(BinOp::FloorMod, a, b),
            None => self.div_by_term(BinOp::FloorMod, a, b),
        }
    }

    /// The node as it is; the operands have one type.
    pub(crate) fn raw(&mut self, op: BinOp, a: Term, b: Term) -> Term {
        let dtype = op.result(self.dtype(a));
        self.arena.intern(Node::Binary(op, a, b), dtype)
    }

    fn raw_constant(&mut self, op: BinOp, a: Term, c: i128) -> Term {
        let c = self.int(c, self.dtype(a));
        self.raw(op, a, c)
    }

    fn floor_div_constant(&mut self, a: Term, c: i128) -> Term {
        let dtype = self.dtype(a);
        if let Some(value) = self.constant(a) {
            return self.int(crate::interval::floor_div(value, c), dtype);
        }
        match c {
            1 => {
                self.hit(Rule::DivByOne);
                return a;
            }
            // The smallest value divided by -1 wraps to itself, as its negation does.
            -1 => {
                self.hit(Rule::DivByOne);
                return self.scaled(a, -1);
            }
            c if c < 0 => return self.raw_constant(BinOp::FloorDiv, a, c),
            _ => {}
        }
        let quotient = self.interval(a).floor_div(c);
        if quotient.is_point() {
            self.hit(Rule::DivBounded);
            return self.int(quotient.lo, dtype);
        }
        if let Node::Binary(op, x, m) = *self.node(a)
            && let Some(m) = self.constant(m).filter(|&m| m > 0)
        {
            match op {
                BinOp::FloorDiv => {
                    // Both are below 2^64.
                    let product = c.wrapping_mul(m);
                    if product > 0 && dtype.scalar.wrap(product) == product {
                        self.hit(Rule::DivDiv);
                        return self.floor_div_constant(x, product);
                    }
                }
                BinOp::FloorMod if m % c == 0 => {
                    self.hit(Rule::ModDiv);
                    let q = self.floor_div_constant(x, c);
                    return self.floor_mod_constant(q, m / c);
                }
                _ => {}
            }
        }
        let form = self.integer_form(a);
        self.div_form(a, &form, c, dtype)
    }

    /// `form // c`, where `form` is the integer form of `a`.
    fn div_form(&mut self, a: Term, form: &Lin, c: i128, dtype: DType) -> Term {
        let range = Interval::of(dtype.scalar);
        let (quotient, rest) = form.split(c);
        if !quotient.is_zero() && self.fits(&rest, range) {
            self.hit(Rule::DivSplit);
            let q = self.reify(&quotient, dtype);
            let r = self.reify(&rest, dtype);
            let r = self.floor_div_constant(r, c);
            return self.add(q, r);
        }
        for g in form.shared_divisors(c) {
            let (quotient, rest) = form.split(g);
            if self.fits(&rest, Interval::new(0, g - 1)) && self.fits(&quotient, range) {
                self.hit(Rule::DivCommonFactor);
                let q = self.reify(&quotient, dtype);
                return self.floor_div_constant(q, c / g);
            }
        }
        if let Some(t) = self.ramp_div(a, c, dtype) {
            return t;
        }
        self.raw_constant(BinOp::FloorDiv, a, c)
    }

    fn floor_mod_constant(&mut self, a: Term, c: i128) -> Term {
        let dtype = self.dtype(a);
        if let Some(value) = self.constant(a) {
            return self.int(crate::interval::floor_mod(value, c), dtype);
        }
        match c {
            1 | -1 => {
                self.hit(Rule::ModByOne);
                return self.int(0, dtype);
            }
            c if c < 0 => return self.raw_constant(BinOp::FloorMod, a, c),
            _ => {}
        }
        let domain = self.domain(a);
        let quotient = domain.interval.floor_div(c);
        if quotient.is_point() {
            self.hit(Rule::ModBounded);
            return self.offset(a, quotient.lo.wrapping_mul(-c));
        }
        if let Some(r) = domain.congruence.remainder(c) {
            self.hit(Rule::ModKnown);
            return self.int(r, dtype);
        }
        if let Node::Binary(BinOp::FloorMod, x, m) = *self.node(a)
            && let Some(m) = self.constant(m)
            && m > 0
            && m % c == 0
        {
            self.hit(Rule::ModMod);
            return self.floor_mod_constant(x, c);
        }
        let power_of_two = c & (c - 1) == 0;
        let mut form = self.integer_form(a);
        // Not an integer form, but congruent to one modulo every power of two in question.
        if power_of_two && form.as_atom() == Some(a) {
            form = self.ring_form(a);
        }
        self.mod_form(a, &form, c, power_of_two, dtype)
    }

    /// `form % c`. For a power of two the form need only be congruent to `a` modulo `c`.
    fn mod_form(&mut self, a: Term, form: &Lin, c: i128, power_of_two: bool, dtype: DType) -> Term {
        let range = Interval::of(dtype.scalar);
        let reduced = self.reduce_modulo(form, c);
        if let Some(reduced) = reduced
            && (power_of_two || self.fits(&reduced, range))
        {
            let r = self.reify(&reduced, dtype);
            if r != a {
                self.hit(Rule::ModReduce);
                return self.floor_mod_constant(r, c);
            }
        }
        if let Some(bounds) = self.bounds(form)
            && bounds.floor_div(c).is_point()
        {
            self.hit(Rule::ModBounded);
            let mut rest = form.clone();
            if rest
                .add_constant(bounds.floor_div(c).lo.wrapping_mul(-c))
                .is_some()
            {
                return self.reify(&rest, dtype);
            }
        }
        for g in form.shared_divisors(c) {
            let (quotient, rest) = form.split(g);
            let exact = power_of_two || self.fits(&quotient, range);
            if exact && self.fits(&rest, Interval::new(0, g - 1)) {
                self.hit(Rule::ModCommonFactor);
                let q = self.reify(&quotient, dtype);
                let q = self.floor_mod_constant(q, c / g);
                let q = self.scaled(q, g);
                let r = self.reify(&rest, dtype);
                return self.add(q, r);
            }
        }
        if let Some(t) = self.ramp_mod(a, c, dtype) {
            return t;
        }
        self.raw_constant(BinOp::FloorMod, a, c)
    }

    /// A form congruent modulo `c` with smaller coefficients, if there is one: coefficients and
    /// constant are reduced, and remainders by multiples of `c` are opened.
    fn reduce_modulo(&mut self, form: &Lin, c: i128) -> Option<Lin> {
        let mut reduced = Lin::constant(form.constant.rem_euclid(c));
        for &(t, k) in form.terms.iter() {
            let k = k % c;
            if k == 0 {
                continue;
            }
            match *self.node(t) {
                Node::Binary(BinOp::FloorMod, x, m)
                    if form.as_atom().is_none()
                        && self.constant(m).is_some_and(|m| m > 0 && k * m % c == 0) =>
                {
                    let inner = self.integer_form(x);
                    reduced.add_scaled(&inner, k)?;
                }
                _ => reduced.add_term(t, k)?,
            }
        }
        reduced.constant = reduced.constant.rem_euclid(c);
        reduced.terms.iter_mut().for_each(|(_, k)| *k %= c);
        reduced.terms.retain(|&mut (_, k)| k != 0);
        (reduced != *form).then_some(reduced)
    }

    /// Division or remainder by something other than a constant.
    fn div_by_term(&mut self, op: BinOp, a: Term, b: Term) -> Term {
        let dtype = self.dtype(a);
        let zero = self.int(0, dtype);
        let below = |s: &mut Analyzer| {
            let (form, divisor) = (s.integer_form(a), s.integer_form(b));
            s.interval(a).lo >= 0 && s.proves_less(&form, &divisor)
        };
        if below(self) {
            self.hit(Rule::DivBelowDivisor);
            return if op == BinOp::FloorDiv { zero } else { a };
        }
        if !self.is_nonzero(b) {
            return self.raw(op, a, b);
        }
        if a == zero {
            self.hit(Rule::DivOfZero);
            return zero;
        }
        if a == b {
            self.hit(Rule::DivBySelf);
            return if op == BinOp::FloorDiv {
                self.int(1, dtype)
            } else {
                zero
            };
        }
        if let Some(t) = self.div_of_multiple(op, a, b) {
            return t;
        }
        self.raw(op, a, b)
    }

    /// `(b · q + r) / b` where no product wraps.
    fn div_of_multiple(&mut self, op: BinOp, a: Term, b: Term) -> Option<Term> {
        let dtype = self.dtype(a);
        let range = Interval::of(dtype.scalar);
        let form = self.integer_form(a);
        let (mut quotient, mut rest) = (Lin::default(), Lin::constant(form.constant));
        for &(t, c) in form.terms.iter() {
            if t == b {
                quotient.add_constant(c)?;
                continue;
            }
            match self.exact_cofactor(t, b) {
                Some(factor) => quotient.add_term(factor, c)?,
                None => rest.add_term(t, c)?,
            }
        }
        if quotient.is_zero() || self.interval(b).lo < 1 {
            return None;
        }
        let divisor = self.integer_form(b);
        let small =
            self.bounds(&rest).is_some_and(|r| r.lo >= 0) && self.proves_less(&rest, &divisor);
        if !small || !self.fits(&rest, range) {
            return None;
        }
        self.hit(Rule::DivMultiple);
        Some(match op {
            BinOp::FloorDiv => self.reify(&quotient, dtype),
            _ => self.reify(&rest, dtype),
        })
    }

    /// `x` where `t` is the product `b · x` and the product does not wrap.
    fn exact_cofactor(&mut self, t: Term, b: Term) -> Option<Term> {
        let Node::Binary(BinOp::Mul, x, y) = *self.node(t) else {
            return None;
        };
        let cofactor = if x == b {
            y
        } else if y == b {
            x
        } else {
            return None;
        };
        let range = Interval::of(self.dtype(t).scalar);
        let product = self.interval(x).times(self.interval(y))?;
        product.is_within(range).then_some(cofactor)
    }

    pub(crate) fn is_nonzero(&mut self, t: Term) -> bool {
        if !self.domain(t).contains(0) {
            return true;
        }
        let dtype = self.dtype(t);
        let zero = self.int(0, dtype);
        let differs = self.equality(BinOp::Ne, t, zero);
        self.constant(differs) == Some(1)
    }

    pub(crate) fn trunc_div(&mut self, a: Term, b: Term) -> Term {
        if self.truncation_is_floor(a, b) {
            self.hit(Rule::TruncToFloor);
            return self.floor_div(a, b);
        }
        self.raw(BinOp::TruncDiv, a, b)
    }

    pub(crate) fn trunc_mod(&mut self, a: Term, b: Term) -> Term {
        if self.truncation_is_floor(a, b) {
            self.hit(Rule::TruncToFloor);
            return self.floor_mod(a, b);
        }
        self.raw(BinOp::TruncMod, a, b)
    }

    /// Rounding toward zero and rounding down agree on quotients that are whole or positive.
    fn truncation_is_floor(&mut self, a: Term, b: Term) -> bool {
        let (x, y) = (self.domain(a), self.interval(b));
        if let Some(c) = self.constant(b)
            && c > 0
            && x.congruence.is_multiple_of(c)
        {
            return true;
        }
        (x.interval.lo >= 0 && y.lo > 0) || (x.interval.hi <= 0 && y.hi < 0)
    }
}
