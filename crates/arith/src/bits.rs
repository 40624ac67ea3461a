//! Bit operations and shifts, as arithmetic wherever that is exact.
//!
//! In two's complement the low `k` bits of a value are its remainder by `2^k` and the others its
//! quotient, rounded down, for negative values as well. Masks and shifts by constants therefore
//! become division and remainder, where the other rules meet them; code generation turns
//! divisions by powers of two back. Bits that cannot overlap are added.

use tilewright_ir::{BinOp, Scalar, UnOp};

use crate::analyzer::Analyzer;
use crate::facts::low_zeros;
use crate::fold::shift_in_range;
use crate::interval::Interval;
use crate::rules::Rule;
use crate::term::{Node, Term};

impl Analyzer {
    /// `~x` is `-1 - x`.
    pub(crate) fn bit_not(&mut self, a: Term) -> Term {
        let dtype = self.dtype(a);
        if !dtype.scalar.is_int() {
            if dtype.scalar == Scalar::Bool {
                return self.not(a);
            }
            return self.arena.intern(Node::Unary(UnOp::BitNot, a), dtype);
        }
        self.hit(Rule::BitNotLinear);
        let minus = self.scaled(a, -1);
        self.offset(minus, -1)
    }

    pub(crate) fn bit_and(&mut self, a: Term, b: Term) -> Term {
        let (a, b) = self.constant_last(a, b);
        let dtype = self.dtype(a);
        if a == b {
            self.hit(Rule::BitsSame);
            return a;
        }
        if let Some(mask) = self.constant(b) {
            let ones = dtype.scalar.wrap(-1);
            if mask == 0 || mask == ones {
                self.hit(Rule::BitsConstant);
                return if mask == 0 { b } else { a };
            }
            // 2^k - 1, where 2^k is a value of the type.
            if mask & (mask + 1) == 0 && dtype.scalar.wrap(mask + 1) == mask + 1 {
                self.hit(Rule::AndMask);
                let modulus = self.int(mask + 1, dtype);
                return self.floor_mod(a, modulus);
            }
            // -2^k: all but the low bits.
            let low = ones.wrapping_sub(mask) & ((1 << dtype.scalar.bits()) - 1);
            if low & (low + 1) == 0 && dtype.scalar.wrap(low + 1) == low + 1 {
                self.hit(Rule::AndHighMask);
                let modulus = self.int(low + 1, dtype);
                let rest = self.floor_mod(a, modulus);
                return self.sub(a, rest);
            }
            if let Node::Binary(BinOp::BitAnd, x, inner) = *self.node(a)
                && let Some(inner) = self.constant(inner)
            {
                self.hit(Rule::BitsConstant);
                let both = self.int(mask & inner, dtype);
                return self.bit_and(x, both);
            }
        }
        if self.bits_disjoint(a, b) {
            self.hit(Rule::AndDisjoint);
            return self.int(0, dtype);
        }
        self.commutative(BinOp::BitAnd, a, b)
    }

    pub(crate) fn bit_or(&mut self, a: Term, b: Term) -> Term {
        let (a, b) = self.constant_last(a, b);
        let dtype = self.dtype(a);
        if a == b {
            self.hit(Rule::BitsSame);
            return a;
        }
        if let Some(bits) = self.constant(b) {
            if bits == 0 || bits == dtype.scalar.wrap(-1) {
                self.hit(Rule::BitsConstant);
                return if bits == 0 { a } else { b };
            }
            if let Node::Binary(BinOp::BitOr, x, inner) = *self.node(a)
                && let Some(inner) = self.constant(inner)
            {
                self.hit(Rule::BitsConstant);
                let both = self.int(bits | inner, dtype);
                return self.bit_or(x, both);
            }
        }
        if self.bits_disjoint(a, b) {
            self.hit(Rule::OrDisjoint);
            return self.add(a, b);
        }
        self.commutative(BinOp::BitOr, a, b)
    }

    pub(crate) fn bit_xor(&mut self, a: Term, b: Term) -> Term {
        let (a, b) = self.constant_last(a, b);
        let dtype = self.dtype(a);
        if a == b {
            self.hit(Rule::BitsSame);
            return self.int(0, dtype);
        }
        if let Some(bits) = self.constant(b) {
            if bits == 0 {
                self.hit(Rule::BitsConstant);
                return a;
            }
            if bits == dtype.scalar.wrap(-1) {
                return self.bit_not(a);
            }
        }
        for (x, y) in [(a, b), (b, a)] {
            let Node::Binary(BinOp::BitXor, p, q) = *self.node(x) else {
                continue;
            };
            if p == y || q == y {
                self.hit(Rule::XorCancel);
                return if p == y { q } else { p };
            }
            if let (Some(c), Some(d)) = (self.constant(q), self.constant(y)) {
                self.hit(Rule::BitsConstant);
                let both = self.int(c ^ d, dtype);
                return self.bit_xor(p, both);
            }
        }
        if self.bits_disjoint(a, b) {
            self.hit(Rule::XorDisjoint);
            return self.add(a, b);
        }
        for (x, y) in [(a, b), (b, a)] {
            if let Some(t) = self.xor_split(x, y) {
                return t;
            }
        }
        self.commutative(BinOp::BitXor, a, b)
    }

    /// `(g p + r) ^ (g q)` is `g (p ^ q) + r` for a power of two `g` and `0 <= r < g`.
    fn xor_split(&mut self, a: Term, b: Term) -> Option<Term> {
        let dtype = self.dtype(a);
        let range = Interval::of(dtype.scalar);
        let (x, y) = (self.integer_form(a), self.integer_form(b));
        let shared = crate::congruence::gcd(y.content(), y.constant);
        let g = 1i128 << shared.trailing_zeros().min(dtype.scalar.bits() - 2);
        if g == 1 {
            return None;
        }
        let (p, r) = x.split(g);
        let (q, rest) = y.split(g);
        if !rest.is_zero() || p.is_zero() || !self.fits(&r, Interval::new(0, g - 1)) {
            return None;
        }
        if !self.fits(&p, range) || !self.fits(&q, range) {
            return None;
        }
        self.hit(Rule::XorSplit);
        let (p, q) = (self.reify(&p, dtype), self.reify(&q, dtype));
        let high = self.binary(BinOp::BitXor, p, q, dtype);
        let high = self.scaled(high, g);
        let low = self.reify(&r, dtype);
        Some(self.add(high, low))
    }

    /// Whether one value has only bits below the lowest bit that the other one can have.
    fn bits_disjoint(&mut self, a: Term, b: Term) -> bool {
        let (a, b) = (self.domain(a), self.domain(b));
        let below = |low: crate::Domain, high: crate::Domain| {
            low.interval.lo >= 0 && low.interval.hi < low_zeros(high.congruence)
        };
        below(a, b) || below(b, a)
    }

    pub(crate) fn shl(&mut self, a: Term, b: Term) -> Term {
        let scalar = self.dtype(a).scalar;
        match self.constant(b) {
            Some(k) if shift_in_range(k, scalar) => {
                self.hit(Rule::ShiftLeft);
                self.scaled(a, 1 << k)
            }
            _ => self.raw(BinOp::Shl, a, b),
        }
    }

    pub(crate) fn shr(&mut self, a: Term, b: Term) -> Term {
        let dtype = self.dtype(a);
        match self.constant(b) {
            Some(k) if shift_in_range(k, dtype.scalar) && dtype.scalar.wrap(1 << k) == 1 << k => {
                self.hit(Rule::ShiftRight);
                let divisor = self.int(1 << k, dtype);
                self.floor_div(a, divisor)
            }
            _ => self.raw(BinOp::Shr, a, b),
        }
    }

    /// Constants stand on the right.
    pub(crate) fn constant_last(&self, a: Term, b: Term) -> (Term, Term) {
        if self.constant(a).is_some() {
            (b, a)
        } else {
            (a, b)
        }
    }

    /// The node with its operands in order, a constant last.
    pub(crate) fn commutative(&mut self, op: BinOp, a: Term, b: Term) -> Term {
        if self.constant(b).is_none() && self.arena.order(b) < self.arena.order(a) {
            return self.raw(op, b, a);
        }
        self.raw(op, a, b)
    }
}
