//! An interval and a congruence of one value, each making the other sharper.

use tilewright_ir::Scalar;

use crate::congruence::Congruence;
use crate::interval::Interval;

/// What is known of an integer or bool value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Domain {
    pub interval: Interval,
    pub congruence: Congruence,
}

impl Domain {
    /// Nothing is known; also stands for values that are not integers.
    pub const ALL: Domain = Domain {
        interval: Interval::ALL,
        congruence: Congruence::ANY,
    };

    pub const fn point(value: i128) -> Domain {
        Domain {
            interval: Interval::point(value),
            congruence: Congruence::exactly(value),
        }
    }

    pub const fn of(scalar: Scalar) -> Domain {
        Domain::within(Interval::of(scalar))
    }

    pub const fn within(interval: Interval) -> Domain {
        Domain {
            interval,
            congruence: Congruence::ANY,
        }
    }

    /// Both facts at once: the ends of the interval move to members of the congruence. `None`
    /// when no value satisfies both.
    pub fn new(interval: Interval, congruence: Congruence) -> Option<Domain> {
        if congruence.modulus == 0 {
            let value = congruence.residue;
            return interval.contains(value).then_some(Domain::point(value));
        }
        let mut interval = interval;
        if congruence.modulus > 1 && interval != Interval::ALL {
            let Congruence { modulus, residue } = congruence;
            interval.lo += (residue - interval.lo).rem_euclid(modulus);
            interval.hi -= (interval.hi - residue).rem_euclid(modulus);
        }
        if interval.lo > interval.hi {
            return None;
        }
        if interval.is_point() {
            return Some(Domain::point(interval.lo));
        }
        Some(Domain {
            interval,
            congruence,
        })
    }

    /// The values in both, or `None` when there are none.
    pub fn meet(self, other: Domain) -> Option<Domain> {
        let interval = self.interval.meet(other.interval)?;
        let congruence = self.congruence.meet(other.congruence)?;
        Domain::new(interval, congruence)
    }

    /// What holds of a value that is in one or the other.
    pub fn join(self, other: Domain) -> Domain {
        Domain {
            interval: self.interval.join(other.interval),
            congruence: self.congruence.join(other.congruence),
        }
    }

    pub fn contains(self, value: i128) -> bool {
        self.interval.contains(value) && self.congruence.contains(value)
    }

    pub fn as_point(self) -> Option<i128> {
        self.interval.is_point().then_some(self.interval.lo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_half_sharpens_the_other() {
        let d = Domain::new(Interval::new(1, 30), Congruence::new(8, 3));
        assert_eq!(d.map(|d| d.interval), Some(Interval::new(3, 27)));
        let d = Domain::new(Interval::new(4, 18), Congruence::new(8, 3));
        assert_eq!(d, Some(Domain::point(11)));
        assert_eq!(
            Domain::new(Interval::new(4, 10), Congruence::new(8, 3)),
            None
        );
    }

    #[test]
    fn meet_finds_contradictions() {
        let even = Domain {
            interval: Interval::new(0, 10),
            congruence: Congruence::new(2, 0),
        };
        let odd = Domain {
            interval: Interval::new(0, 10),
            congruence: Congruence::new(2, 1),
        };
        assert_eq!(even.meet(odd), None);
        assert_eq!(even.join(odd).congruence, Congruence::ANY);
    }
}
