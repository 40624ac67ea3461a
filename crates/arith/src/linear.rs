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

use std::ops::{Deref, DerefMut};

use crate::congruence::gcd;
use crate::term::Term;

/// More terms than this are not gathered into one form, so that a sum of thousands of terms
/// costs linear time.
pub(crate) const MAX_TERMS: usize = 48;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Lin {
    /// By ascending term, coefficients not zero.
    pub terms: Terms,
    pub constant: i128,
}

/// This many terms need no allocation; index expressions rarely have more.
const INLINE: usize = 6;

/// The terms of a form: a vector that keeps a few elements in place.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    inline: [(Term, i128); INLINE],
    /// How many of `inline` are in use, unless the terms have moved to `heap`.
    used: usize,
    /// All terms, once there were too many for `inline`.
    heap: Vec<(Term, i128)>,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms {
            inline: [(Term::FIRST, 0); INLINE],
            used: 0,
            heap: Vec::new(),
        }
    }
}

impl Terms {
    pub fn push(&mut self, term: (Term, i128)) {
        self.insert(self.len(), term);
    }

    fn insert(&mut self, index: usize, term: (Term, i128)) {
        if self.heap.is_empty() && self.used < INLINE {
            self.inline.copy_within(index..self.used, index + 1);
            self.inline[index] = term;
            self.used += 1;
            return;
        }
        if self.heap.is_empty() {
            self.heap.reserve(2 * INLINE);
            self.heap.extend_from_slice(&self.inline);
        }
        self.heap.insert(index, term);
    }

    pub fn remove(&mut self, index: usize) {
        if self.heap.is_empty() {
            self.inline.copy_within(index + 1..self.used, index);
            self.used -= 1;
            return;
        }
        self.heap.remove(index);
        // An empty heap means that the terms are in place.
        if self.heap.is_empty() {
            self.used = 0;
        }
    }

    pub fn retain(&mut self, mut keep: impl FnMut(&mut (Term, i128)) -> bool) {
        let mut index = 0;
        while index < self.len() {
            if keep(&mut self[index]) {
                index += 1;
            } else {
                self.remove(index);
            }
        }
    }
}

impl Deref for Terms {
    type Target = [(Term, i128)];
    fn deref(&self) -> &[(Term, i128)] {
        if self.heap.is_empty() {
            &self.inline[..self.used]
        } else {
            &self.heap
        }
    }
}

impl DerefMut for Terms {
    fn deref_mut(&mut self) -> &mut [(Term, i128)] {
        if self.heap.is_empty() {
            &mut self.inline[..self.used]
        } else {
            &mut self.heap
        }
    }
}

impl PartialEq for Terms {
    fn eq(&self, other: &Terms) -> bool {
        **self == **other
    }
}
impl Eq for Terms {}

impl FromIterator<(Term, i128)> for Terms {
    fn from_iter<I: IntoIterator<Item = (Term, i128)>>(iter: I) -> Terms {
        let mut terms = Terms::default();
        iter.into_iter().for_each(|t| terms.push(t));
        terms
    }
}

impl Lin {
    pub fn constant(constant: i128) -> Lin {
        Lin {
            terms: Terms::default(),
            constant,
        }
    }

    pub fn atom(t: Term) -> Lin {
        let mut form = Lin::default();
        form.terms.push((t, 1));
        form
    }

    pub fn as_constant(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.constant)
    }

    pub fn is_zero(&self) -> bool {
        self.as_constant() == Some(0)
    }

    /// The atom, where the form is nothing else.
    pub fn as_atom(&self) -> Option<Term> {
        match *self.terms {
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
        for &(t, c) in other.terms.iter() {
            self.add_term(t, c.checked_mul(factor)?)?;
        }
        self.add_constant(other.constant.checked_mul(factor)?)
    }

    /// Adds `factor` times `other` in the ring: products and sums modulo `2^128` are right
    /// modulo every `2^bits`. [`Lin::wrap`] has to follow.
    pub fn ring_add_scaled(&mut self, other: &Lin, factor: i128) {
        for &(t, c) in other.terms.iter() {
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
        for &(t, c) in self.terms.iter() {
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
        self.terms.retain(|(_, c)| {
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
