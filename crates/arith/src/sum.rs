//! Sums and products: the canonical linear form.
//!
//! Everything here is an identity of the ring of integers modulo `2^bits`, so it holds whether
//! or not anything wraps. That includes gathering `c · (y // c) + y % c` into `y`, which is an
//! equation between integers and therefore between their remainders.

use tilewright_ir::{BinOp, DType};

use crate::analyzer::Analyzer;
use crate::linear::{Lin, MAX_TERMS, signed};
use crate::rules::Rule;
use crate::term::{Node, Term};

/// More factors than this stay nested as they were written.
const MAX_FACTORS: usize = 8;

impl Analyzer {
    pub(crate) fn add(&mut self, a: Term, b: Term) -> Term {
        self.add_scaled(a, b, 1, BinOp::Add)
    }

    pub(crate) fn sub(&mut self, a: Term, b: Term) -> Term {
        self.add_scaled(a, b, -1, BinOp::Sub)
    }

    fn add_scaled(&mut self, a: Term, b: Term, factor: i128, op: BinOp) -> Term {
        let dtype = self.dtype(a);
        let mut sum = self.ring_form(a);
        let right = self.ring_form(b);
        if sum.terms.len() + right.terms.len() > MAX_TERMS {
            return self.arena.intern(Node::Binary(op, a, b), dtype);
        }
        sum.ring_add_scaled(&right, factor);
        self.sum(sum, dtype)
    }

    /// `factor · a`.
    pub(crate) fn scaled(&mut self, a: Term, factor: i128) -> Term {
        let dtype = self.dtype(a);
        let mut sum = Lin::default();
        sum.ring_add_scaled(&self.ring_form(a), factor);
        self.sum(sum, dtype)
    }

    /// `a + constant`.
    pub(crate) fn offset(&mut self, a: Term, constant: i128) -> Term {
        let c = self.int(constant, self.dtype(a));
        self.add(a, c)
    }

    /// The term of an integer type whose value is congruent to the form modulo `2^bits`. Atoms
    /// may have other integer types; they are cast.
    pub(crate) fn reify(&mut self, form: &Lin, dtype: DType) -> Term {
        let mut sum = Lin::constant(form.constant);
        for &(t, c) in form.terms.iter() {
            let atom = self.convert(t, dtype);
            sum.ring_add_scaled(&self.ring_form(atom), c);
        }
        self.sum(sum, dtype)
    }

    /// The term with another type, each lane's value modulo `2^bits`.
    fn convert(&mut self, t: Term, dtype: DType) -> Term {
        let from = self.dtype(t);
        if from == dtype {
            return t;
        }
        let t = self.cast(t, dtype.with_lanes(from.lanes));
        if from.lanes == 1 && dtype.lanes > 1 {
            return self.broadcast(t, dtype);
        }
        t
    }

    /// The term of a ring form whose atoms have the type.
    pub(crate) fn sum(&mut self, mut form: Lin, dtype: DType) -> Term {
        let bits = dtype.scalar.bits();
        form.wrap(bits);
        if form.terms.len() > 1 {
            // Each round joins two terms, so the number of terms bounds the rounds.
            for _ in 0..form.terms.len() {
                if !self.recombine(&mut form, dtype) {
                    break;
                }
                form.wrap(bits);
            }
        }
        if dtype.lanes > 1 {
            self.gather_ramps(&mut form, dtype);
            form.wrap(bits);
        }
        match *form.terms {
            [] => self.int(form.constant, dtype),
            [(t, 1)] if form.constant == 0 => t,
            _ => {
                let node = Node::Sum(form.terms.as_ref().into(), form.constant);
                self.arena.intern(node, dtype)
            }
        }
    }

    /// Applies one of the rules that join a quotient with its remainder.
    fn recombine(&mut self, form: &mut Lin, dtype: DType) -> bool {
        for index in 0..form.terms.len() {
            let (atom, k) = form.terms[index];
            let Node::Binary(op, y, m) = *self.node(atom) else {
                continue;
            };
            let Some(m) = self.constant(m).filter(|&m| m > 1) else {
                continue;
            };
            let done = match op {
                BinOp::FloorMod => self.recombine_mod(form, atom, k, y, m, dtype),
                BinOp::FloorDiv => self.recombine_div(form, atom, k, y, m),
                _ => None,
            };
            if done.is_some() {
                return true;
            }
        }
        false
    }

    /// `k · (y % m)` with `k · m · (y // m)`, or with `k · m · ((y // m) % n)`.
    fn recombine_mod(
        &mut self,
        form: &mut Lin,
        atom: Term,
        k: i128,
        y: Term,
        m: i128,
        dtype: DType,
    ) -> Option<()> {
        let bits = dtype.scalar.bits();
        let km = signed(k.checked_mul(m)?, bits);
        // The quotient of an atom is a quotient or remainder again; only that of a sum can be
        // anything.
        let any = matches!(self.node(y), Node::Sum(..));
        let partner = form.terms.iter().find(|&&(t, c)| {
            let quotient = matches!(
                self.node(t),
                Node::Binary(BinOp::FloorDiv | BinOp::FloorMod, ..)
            );
            c == km && t != atom && (any || quotient)
        });
        partner?;
        let divisor = self.int(m, dtype);
        let q = self.floor_div(y, divisor);
        // The whole quotient is there: y itself.
        let quotient = self.ring_form(q);
        let mut rest = form.clone();
        if !quotient.terms.is_empty() && self.take(&mut rest, &quotient, km, bits) {
            rest.ring_add_term(atom, -k);
            rest.ring_add_scaled(&self.ring_form(y), k);
            *form = rest;
            self.hit(Rule::DivModRecombine);
            return Some(());
        }
        // The quotient is there modulo n: y modulo m n.
        let found = form.terms.iter().find_map(|&(t, c)| match *self.node(t) {
            Node::Binary(BinOp::FloorMod, inner, n) if c == km && inner == q => {
                Some((t, self.constant(n)?))
            }
            _ => None,
        });
        let (partner, n) = found?;
        let modulus = m.checked_mul(n).filter(|&p| p > 0)?;
        if dtype.scalar.wrap(modulus) != modulus {
            return None;
        }
        let modulus = self.int(modulus, dtype);
        let whole = self.floor_mod(y, modulus);
        form.ring_add_term(atom, -k);
        form.ring_add_term(partner, -km);
        form.ring_add_scaled(&self.ring_form(whole), k);
        self.hit(Rule::ModModRecombine);
        Some(())
    }

    /// `k · y - k · m · (y // m)`, where `d = -k · m` is the coefficient of the quotient.
    fn recombine_div(
        &mut self,
        form: &mut Lin,
        atom: Term,
        d: i128,
        y: Term,
        m: i128,
    ) -> Option<()> {
        if d % m != 0 {
            return None;
        }
        let k = -d / m;
        let bits = self.dtype(atom).scalar.bits();
        let y_form = self.ring_form(y);
        let mut rest = form.clone();
        rest.ring_add_term(atom, -d);
        if !self.take(&mut rest, &y_form, k, bits) {
            return None;
        }
        let divisor = self.int(m, self.dtype(atom));
        let remainder = self.floor_mod(y, divisor);
        rest.ring_add_scaled(&self.ring_form(remainder), k);
        *form = rest;
        self.hit(Rule::SubDivToMod);
        Some(())
    }

    /// Takes `factor · part` out of the form if all of its terms are there with exactly these
    /// coefficients.
    fn take(&self, form: &mut Lin, part: &Lin, factor: i128, bits: u32) -> bool {
        let mut scaled = Lin::default();
        scaled.ring_add_scaled(part, factor);
        scaled.wrap(bits);
        if scaled.terms.is_empty() || !scaled.terms.iter().all(|&(t, c)| form.coefficient(t) == c) {
            return false;
        }
        form.ring_add_scaled(&scaled, -1);
        true
    }

    pub(crate) fn mul(&mut self, a: Term, b: Term) -> Term {
        if let Some(c) = self.constant(b) {
            return self.scaled(a, c);
        }
        if let Some(c) = self.constant(a) {
            return self.scaled(b, c);
        }
        let dtype = self.dtype(a);
        if let Some(ramp) = self.ramp_times(a, b, dtype) {
            return ramp;
        }
        let (a, ca) = self.primitive(a);
        let (b, cb) = self.primitive(b);
        let mut factors = Vec::new();
        self.factors(a, &mut factors);
        self.factors(b, &mut factors);
        let product = if factors.len() > MAX_FACTORS {
            self.arena.intern(Node::Binary(BinOp::Mul, a, b), dtype)
        } else {
            factors.sort_unstable_by_key(|&t| self.arena.order(t));
            let first = factors[0];
            factors[1..].iter().fold(first, |product, &f| {
                self.arena
                    .intern(Node::Binary(BinOp::Mul, product, f), dtype)
            })
        };
        // Both factors are below 2^63, so the product fits.
        let c = ca.wrapping_mul(cb);
        if c != 1 {
            self.hit(Rule::MulPullConstant);
        }
        self.scaled(product, c)
    }

    /// `t = c · result` with the greatest common divisor of a sum's parts pulled out.
    fn primitive(&mut self, t: Term) -> (Term, i128) {
        let Node::Sum(..) = self.node(t) else {
            return (t, 1);
        };
        let mut form = self.ring_form(t);
        let mut g = crate::congruence::gcd(form.content(), form.constant);
        // One sign for each pair of opposite sums: the structurally first term is positive.
        let first = form.terms.iter().min_by_key(|&&(t, _)| self.arena.order(t));
        if first.is_some_and(|&(_, c)| c < 0) {
            g = -g;
        }
        if g == 1 || g == 0 {
            return (t, 1);
        }
        form.terms.iter_mut().for_each(|(_, c)| *c /= g);
        form.constant /= g;
        let dtype = self.dtype(t);
        (self.sum(form, dtype), g)
    }

    fn factors(&self, t: Term, out: &mut Vec<Term>) {
        match *self.node(t) {
            Node::Binary(BinOp::Mul, a, b) if out.len() < MAX_FACTORS => {
                self.factors(a, out);
                self.factors(b, out);
            }
            _ => out.push(t),
        }
    }
}
