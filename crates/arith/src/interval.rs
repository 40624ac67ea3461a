//! Closed intervals of integers.
//!
//! Ends are `i128`, wide enough for the values of every integer type; an operation whose exact
//! result might not fit says so with `None`, and the caller then knows nothing.

use std::fmt;

use tilewright_ir::Scalar;

/// The integers from `lo` to `hi`, both included; never empty.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interval {
    pub lo: i128,
    pub hi: i128,
}

impl Interval {
    /// What is known of a value that is not an integer, or of nothing at all.
    pub const ALL: Interval = Interval {
        lo: i128::MIN,
        hi: i128::MAX,
    };
    pub const BOOL: Interval = Interval { lo: 0, hi: 1 };

    pub const fn new(lo: i128, hi: i128) -> Interval {
        Interval { lo, hi }
    }

    pub const fn point(value: i128) -> Interval {
        Interval {
            lo: value,
            hi: value,
        }
    }

    /// The values of an integer or bool type; everything for the other types.
    pub const fn of(scalar: Scalar) -> Interval {
        match scalar.int_range() {
            Some((lo, hi)) => Interval { lo, hi },
            None => Interval::ALL,
        }
    }

    pub const fn is_point(self) -> bool {
        self.lo == self.hi
    }

    pub const fn contains(self, value: i128) -> bool {
        self.lo <= value && value <= self.hi
    }

    pub const fn is_within(self, other: Interval) -> bool {
        other.lo <= self.lo && self.hi <= other.hi
    }

    /// The common part, or `None` when there is none.
    pub fn meet(self, other: Interval) -> Option<Interval> {
        let (lo, hi) = (self.lo.max(other.lo), self.hi.min(other.hi));
        (lo <= hi).then_some(Interval { lo, hi })
    }

    /// The smallest interval around both.
    pub fn join(self, other: Interval) -> Interval {
        Interval::new(self.lo.min(other.lo), self.hi.max(other.hi))
    }

    pub fn plus(self, other: Interval) -> Option<Interval> {
        Some(Interval::new(
            self.lo.checked_add(other.lo)?,
            self.hi.checked_add(other.hi)?,
        ))
    }

    /// Every value times a constant.
    pub fn scale(self, factor: i128) -> Option<Interval> {
        let (a, b) = (self.lo.checked_mul(factor)?, self.hi.checked_mul(factor)?);
        Some(Interval::new(a.min(b), a.max(b)))
    }

    pub fn times(self, other: Interval) -> Option<Interval> {
        let (a, b) = (self.scale(other.lo)?, self.scale(other.hi)?);
        Some(a.join(b))
    }

    /// Floor division by a positive constant.
    pub const fn floor_div(self, divisor: i128) -> Interval {
        Interval {
            lo: self.lo.div_euclid(divisor),
            hi: self.hi.div_euclid(divisor),
        }
    }

    /// How many integers lie between the ends; saturates.
    pub fn width(self) -> u128 {
        self.hi.abs_diff(self.lo)
    }
}

impl fmt::Debug for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {}]", self.lo, self.hi)
    }
}

/// Floor division that never overflows for the values of our types: `i128::MIN / -1` is the one
/// case the caller rules out by working with at most 65-bit values.
pub(crate) fn floor_div(a: i128, b: i128) -> i128 {
    let q = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && (a < 0) != (b < 0) {
        q - 1
    } else {
        q
    }
}

/// The remainder with the divisor's sign.
pub(crate) fn floor_mod(a: i128, b: i128) -> i128 {
    let r = a.wrapping_rem(b);
    if r != 0 && (r < 0) != (b < 0) {
        r + b
    } else {
        r
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_cover_exactly_the_results() {
        let values = -5i128..=5;
        for lo in values.clone() {
            for hi in lo..=5 {
                let i = Interval::new(lo, hi);
                for k in [-3, -1, 0, 2] {
                    let all: Vec<i128> = (lo..=hi).map(|v| v * k).collect();
                    let (min, max) = (all.iter().min(), all.iter().max());
                    let s = i.scale(k);
                    assert_eq!(
                        (s.map(|s| s.lo).as_ref(), s.map(|s| s.hi).as_ref()),
                        (min, max)
                    );
                }
                for c in 1..4 {
                    let d = i.floor_div(c);
                    assert_eq!((d.lo, d.hi), (floor_div(lo, c), floor_div(hi, c)));
                }
                for lo2 in values.clone() {
                    let j = Interval::new(lo2, 5);
                    let m = i.times(j).map(|m| (m.lo, m.hi));
                    let all = || (lo..=hi).flat_map(|a| (lo2..=5).map(move |b| a * b));
                    assert_eq!(m, all().min().zip(all().max()));
                }
            }
        }
    }

    #[test]
    fn overflow_is_unknown_not_wrong() {
        assert_eq!(Interval::ALL.plus(Interval::point(1)), None);
        assert_eq!(Interval::ALL.scale(2), None);
        assert_eq!(Interval::new(0, 3).meet(Interval::new(4, 5)), None);
    }

    #[test]
    fn floor_semantics() {
        for (a, b, q, r) in [
            (7, 2, 3, 1),
            (-7, 2, -4, 1),
            (7, -2, -4, -1),
            (-7, -2, 3, -1),
            (-8, 2, -4, 0),
        ] {
            assert_eq!((floor_div(a, b), floor_mod(a, b)), (q, r));
        }
    }
}
