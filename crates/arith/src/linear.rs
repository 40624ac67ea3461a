//! Linear forms: `Σ coefficient · atom + constant`.
//!
//! The same structure is read in two ways, and keeping them apart is what makes rewriting sound:
//!
//! * as a **ring form** it stands for a value modulo `2^bits`. Addition, subtraction and
//!   multiplication by constants are identities there whether or not anything wraps.
//! * as an **integer form** it stands for the integer itself, with nothing wrapped. Division,
//!   ordering and bounds are about integers, so they look at integer forms only.
//!
//! A ring form turns into an integer form only through
//! [`Analyzer::integer_form`](crate::Analyzer), which checks the bounds. Arithmetic on integer
//! forms that would leave `i128` gives `None`: nothing is then known.

use crate::congruence::gcd;
use crate::term::Term;

/// More terms than this are not gathered into one form, so that a sum of thousands of terms
/// costs linear time.
pub(crate) const MAX_TERMS: usize = 48;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Lin {
    /// By ascending term, coefficients not zero.
    pub terms: Vec<(Term, i128)>,
    pub constant: i128,
}

impl Lin {
    pub fn constant(constant: i128) -> Lin {
        Lin {
            terms: Vec::new(),
            constant,
        }
    }

    pub fn atom(t: Term) -> Lin {
        Lin {
            terms: vec![(t, 1)],
            constant: 0,
        }
    }

    pub fn as_constant(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.constant)
    }

    pub fn is_zero(&self) -> bool {
        self.as_constant() == Some(0)
    }

    /// The atom, where the form is nothing else.
    pub fn as_atom(&self) -> Option<Term> {
        match *self.terms.as_slice() {
            [(t, 1)] if self.constant == 0 => Some(t),
            _ => None,
        }
    }

    pub fn coefficient(&self, t: Term) -> i128 {
        match self.terms.binary_search_by_key(&t, |&(a, _)| a) {
            Ok(i) => self.terms[i].1,
            Err(_) => 0,
        }
    }

    pub fn add_constant(&mut self, c: i128) -> Option<()> {
        self.constant = self.constant.checked_add(c)?;
        Some(())
    }

    pub fn add_term(&mut self, t: Term, c: i128) -> Option<()> {
        if c == 0 {
            return Some(());
        }
        match self.terms.binary_search_by_key(&t, |&(a, _)| a) {
            Ok(i) => {
                let sum = self.terms[i].1.checked_add(c)?;
                if sum == 0 {
                    self.terms.remove(i);
                } else {
                    self.terms[i].1 = sum;
                }
            }
            Err(i) => self.terms.insert(i, (t, c)),
        }
        Some(())
    }

    /// Adds `factor` times `other`, over the integers.
    pub fn add_scaled(&mut self, other: &Lin, factor: i128) -> Option<()> {
        for &(t, c) in &other.terms {
            self.add_term(t, c.checked_mul(factor)?)?;
        }
        self.add_constant(other.constant.checked_mul(factor)?)
    }

    /// Adds `factor` times `other` in the ring: products and sums modulo `2^128` are right
    /// modulo every `2^bits`. [`Lin::wrap`] has to follow.
    pub fn ring_add_scaled(&mut self, other: &Lin, factor: i128) {
        for &(t, c) in &other.terms {
            self.ring_add_term(t, c.wrapping_mul(factor));
        }
        let constant = other.constant.wrapping_mul(factor);
        self.constant = self.constant.wrapping_add(constant);
    }

    /// Adds `c · t` in the ring.
    pub fn ring_add_term(&mut self, t: Term, c: i128) {
        match self.terms.binary_search_by_key(&t, |&(a, _)| a) {
            Ok(i) => self.terms[i].1 = self.terms[i].1.wrapping_add(c),
            Err(i) => self.terms.insert(i, (t, c)),
        }
        // A coefficient may be zero here; `wrap` removes it.
    }

    /// `self - other`.
    pub fn minus(&self, other: &Lin) -> Option<Lin> {
        let mut result = self.clone();
        result.add_scaled(other, -1)?;
        Some(result)
    }

    /// The greatest common divisor of the coefficients; zero without terms.
    pub fn content(&self) -> i128 {
        self.terms.iter().fold(0, |g, &(_, c)| gcd(g, c))
    }

    /// `self = g · quotient + rest` for a positive `g`: terms that `g` divides are in the
    /// quotient, the others in the rest, whose constant is in `0..g`.
    pub fn split(&self, g: i128) -> (Lin, Lin) {
        let mut quotient = Lin::constant(self.constant.div_euclid(g));
        let mut rest = Lin::constant(self.constant.rem_euclid(g));
        for &(t, c) in &self.terms {
            if c % g == 0 {
                quotient.terms.push((t, c / g));
            } else {
                rest.terms.push((t, c));
            }
        }
        (quotient, rest)
    }

    /// The divisors of `c` that coefficients share with it, largest first, without 1 and `c`.
    pub fn shared_divisors(&self, c: i128) -> Vec<i128> {
        let shared = self.terms.iter().map(|&(_, k)| gcd(k, c));
        let mut divisors: Vec<i128> = shared.filter(|&g| g > 1 && g < c).collect();
        divisors.sort_unstable_by(|a, b| b.cmp(a));
        divisors.dedup();
        divisors
    }

    /// Every coefficient and the constant modulo `2^bits`, in the signed range.
    pub fn wrap(&mut self, bits: u32) {
        self.constant = signed(self.constant, bits);
        self.terms.retain_mut(|(_, c)| {
            *c = signed(*c, bits);
            *c != 0
        });
    }
}

/// The value modulo `2^bits` in the signed range.
pub(crate) fn signed(value: i128, bits: u32) -> i128 {
    let shift = 128 - bits;
    (value << shift) >> shift
}
