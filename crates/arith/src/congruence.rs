//! Congruences: what is known of a value modulo something.
//!
//! A [`Congruence`] `(m, r)` says "the value leaves remainder `r` modulo `m`". `m == 1` says
//! nothing; `m == 0` says that the value is `r` itself, which makes constants ordinary members.
//!
//! Wrap-around in an `n`-bit type subtracts a multiple of `2^n`. A congruence therefore survives
//! arithmetic that may wrap only modulo `gcd(m, 2^n)`: [`Congruence::wrapped`].

/// `value ≡ residue (mod modulus)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Congruence {
    /// Zero: the value is `residue`.
    pub modulus: i128,
    /// In `0..modulus`, except when `modulus` is zero.
    pub residue: i128,
}

impl Congruence {
    /// Nothing is known.
    pub const ANY: Congruence = Congruence {
        modulus: 1,
        residue: 0,
    };

    pub const fn exactly(value: i128) -> Congruence {
        Congruence {
            modulus: 0,
            residue: value,
        }
    }

    /// `value ≡ residue (mod modulus)`, brought to normal form.
    pub fn new(modulus: i128, residue: i128) -> Congruence {
        // i128::MIN has no absolute value; knowing nothing is always right.
        let Some(modulus) = modulus.checked_abs() else {
            return Congruence::ANY;
        };
        if modulus == 0 {
            return Congruence::exactly(residue);
        }
        Congruence {
            modulus,
            residue: residue.rem_euclid(modulus),
        }
    }

    /// The remainder modulo `divisor`, where it is always the same one.
    pub fn remainder(self, divisor: i128) -> Option<i128> {
        if divisor <= 0 || self.modulus % divisor != 0 {
            return None;
        }
        Some(self.residue.rem_euclid(divisor))
    }

    pub fn is_multiple_of(self, divisor: i128) -> bool {
        self.remainder(divisor) == Some(0)
    }

    pub fn contains(self, value: i128) -> bool {
        match self.modulus {
            0 => value == self.residue,
            m => value.rem_euclid(m) == self.residue,
        }
    }

    /// What holds of a value that satisfies one or the other.
    pub fn join(self, other: Congruence) -> Congruence {
        let difference = self.residue.wrapping_sub(other.residue);
        let m = gcd(gcd(self.modulus, other.modulus), difference);
        Congruence::new(m, self.residue)
    }

    /// What holds of a value that satisfies both, or `None` when no value does.
    pub fn meet(self, other: Congruence) -> Option<Congruence> {
        if self.modulus == 0 {
            return other.contains(self.residue).then_some(self);
        }
        if other.modulus == 0 {
            return self.contains(other.residue).then_some(other);
        }
        let g = gcd(self.modulus, other.modulus);
        if (self.residue - other.residue) % g != 0 {
            return None;
        }
        let (a, b) = if self.modulus >= other.modulus {
            (self, other)
        } else {
            (other, self)
        };
        // Small moduli are searched; beyond that the stronger one alone is kept.
        if b.modulus / g > 4096 {
            return Some(a);
        }
        let Some(modulus) = a.modulus.checked_mul(b.modulus / g) else {
            return Some(a);
        };
        let steps = (0..b.modulus / g).map(|k| a.residue + k * a.modulus);
        let residue = steps.into_iter().find(|&r| b.contains(r))?;
        Some(Congruence::new(modulus, residue))
    }

    pub fn plus(self, other: Congruence) -> Congruence {
        let m = gcd(self.modulus, other.modulus);
        match self.residue.checked_add(other.residue) {
            Some(r) => Congruence::new(m, r),
            None => Congruence::ANY,
        }
    }

    pub fn scale(self, factor: i128) -> Congruence {
        let m = self.modulus.checked_mul(factor);
        let r = self.residue.checked_mul(factor);
        match (m, r) {
            (Some(m), Some(r)) => Congruence::new(m, r),
            _ => Congruence::ANY,
        }
    }

    /// `(m k + r)(n l + s) = mn kl + ms k + nr l + rs`.
    pub fn times(self, other: Congruence) -> Congruence {
        let product = || {
            let mn = self.modulus.checked_mul(other.modulus)?;
            let ms = self.modulus.checked_mul(other.residue)?;
            let nr = other.modulus.checked_mul(self.residue)?;
            let rs = self.residue.checked_mul(other.residue)?;
            Some(Congruence::new(gcd(gcd(mn, ms), nr), rs))
        };
        product().unwrap_or(Congruence::ANY)
    }

    /// What is left after arithmetic modulo `2^bits`.
    pub fn wrapped(self, bits: u32) -> Congruence {
        Congruence::new(gcd(self.modulus, 1 << bits), self.residue)
    }

    /// Of `value // divisor` for a positive divisor.
    pub fn floor_div(self, divisor: i128) -> Congruence {
        if self.modulus % divisor != 0 {
            return Congruence::ANY;
        }
        Congruence::new(self.modulus / divisor, self.residue.div_euclid(divisor))
    }
}

/// The greatest common divisor of the absolute values; `gcd(0, a) == |a|`.
pub(crate) fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    // Nearly all operands are small, and 64-bit remainders are several times faster.
    while b != 0 {
        (a, b) = match (u64::try_from(a), u64::try_from(b)) {
            (Ok(x), Ok(y)) => (b, (x % y) as u128),
            _ => (b, a % b),
        };
    }
    i128::try_from(a).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(c: Congruence) -> impl Iterator<Item = i128> {
        (-40..40).filter(move |&v| c.contains(v))
    }

    #[test]
    fn operations_keep_every_member() {
        let all: Vec<Congruence> = (0..7)
            .flat_map(|m| (0..7).map(move |r| Congruence::new(m, r - 3)))
            .collect();
        for &a in &all {
            for &b in &all {
                let (sum, product, join) = (a.plus(b), a.times(b), a.join(b));
                for x in members(a) {
                    assert!(join.contains(x));
                    assert!(a.scale(-6).contains(-6 * x));
                    assert!(a.floor_div(3).contains(x.div_euclid(3)));
                    assert!(a.wrapped(3).contains(x - 8));
                    for y in members(b) {
                        assert!(sum.contains(x + y), "{a:?} + {b:?}");
                        assert!(product.contains(x * y), "{a:?} * {b:?}");
                    }
                }
                for x in members(a).filter(|&x| b.contains(x)) {
                    assert!(a.meet(b).is_some_and(|m| m.contains(x)), "{a:?} {b:?} {x}");
                }
                if let Some(m) = a.meet(b) {
                    for x in members(m) {
                        assert!(a.contains(x) && b.contains(x));
                    }
                }
            }
        }
    }

    #[test]
    fn wrap_keeps_powers_of_two_only() {
        assert_eq!(Congruence::new(12, 5).wrapped(32), Congruence::new(4, 1));
        assert_eq!(Congruence::new(3, 1).wrapped(32), Congruence::ANY);
    }
}
