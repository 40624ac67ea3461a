//! Every number format bit by bit: rounding, encoding and decoding.
//!
//! The formats narrower than float32 are described by one table ([`Format`]) and share one
//! encoder that rounds an f64 once, to nearest even. Going through float32 first would round
//! twice, and the `half` crate's conversion from f64 drops low bits, so neither is used.
//!
//! What happens at the edges:
//!
//! | format | too large, or infinite | NaN | largest |
//! |---|---|---|---|
//! | float16, bfloat16, tfloat32 | infinity | NaN, upper payload bits kept | 65504, 3.39e38, 3.40e38 |
//! | e5m2 | largest | NaN | 57344 |
//! | e4m3fn | largest | NaN (0x7f) | 448 |
//! | e4m3fnuz, e5m2fnuz | largest | NaN (0x80, the only one; there is no −0) | 240, 57344 |
//! | e8m0 | largest | NaN (0xff) | 2^127 |
//! | e2m3, e3m2, e2m1 | largest | +largest: there is no NaN | 7.5, 28, 6 |
//!
//! e8m0 holds powers of two from 2^−127 only: zero, negative and smaller values become 2^−127.

use crate::dtype::Scalar;

/// A number of the language outside of its storage: integers and bools, or floats.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Number {
    Int(i128),
    Float(f64),
}

/// A binary float format of at most 19 significant bits in total.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    pub exponent_bits: u32,
    pub mantissa_bits: u32,
    pub bias: i32,
    pub specials: Specials,
}

/// Which codes are not finite numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Specials {
    /// The largest exponent is infinity and NaN; overflow gives infinity.
    Ieee,
    /// As `Ieee`, but conversion saturates to the largest finite value.
    IeeeSaturating,
    /// Only the code with all bits set, of either sign, is NaN.
    AllOnesNan,
    /// Only the code of −0 is NaN.
    NegativeZeroNan,
    /// Every code is a finite number.
    None,
    /// No sign and no zero: the code is the exponent, all ones is NaN.
    Exponent,
}

impl Format {
    /// The format of a float type, if it is one of this table: not float32 and float64.
    #[inline]
    pub const fn of(scalar: Scalar) -> Option<Format> {
        let (exponent_bits, mantissa_bits, bias, specials) = match scalar {
            Scalar::F16 => (5, 10, 15, Specials::Ieee),
            Scalar::BF16 => (8, 7, 127, Specials::Ieee),
            Scalar::TF32 => (8, 10, 127, Specials::Ieee),
            Scalar::F8E5M2 => (5, 2, 15, Specials::IeeeSaturating),
            Scalar::F8E4M3FN => (4, 3, 7, Specials::AllOnesNan),
            Scalar::F8E4M3FNUZ => (4, 3, 8, Specials::NegativeZeroNan),
            Scalar::F8E5M2FNUZ => (5, 2, 16, Specials::NegativeZeroNan),
            Scalar::F8E8M0 => (8, 0, 127, Specials::Exponent),
            Scalar::F6E2M3 => (2, 3, 1, Specials::None),
            Scalar::F6E3M2 => (3, 2, 3, Specials::None),
            Scalar::F4E2M1 => (2, 1, 1, Specials::None),
            Scalar::Bool
            | Scalar::I4
            | Scalar::I8
            | Scalar::I16
            | Scalar::I32
            | Scalar::I64
            | Scalar::U4
            | Scalar::U8
            | Scalar::U16
            | Scalar::U32
            | Scalar::U64
            | Scalar::F32
            | Scalar::F64
            | Scalar::Handle => return None,
        };
        Some(Format {
            exponent_bits,
            mantissa_bits,
            bias,
            specials,
        })
    }

    /// Bits of a code, the sign included where there is one.
    pub const fn width(self) -> u32 {
        let sign = !matches!(self.specials, Specials::Exponent) as u32;
        sign + self.exponent_bits + self.mantissa_bits
    }

    /// The value of a code; bits above [`Format::width`] are ignored.
    #[inline]
    pub fn decode(self, code: u32) -> f64 {
        let code = code & mask(self.width());
        if self.specials == Specials::Exponent {
            return match code {
                0xff => f64::NAN,
                _ => power_of_two(code as i32 - self.bias),
            };
        }
        let magnitude = code & mask(self.width() - 1);
        let negative = magnitude != code;
        let fraction = magnitude & mask(self.mantissa_bits);
        let exponent = (magnitude >> self.mantissa_bits) as i32;
        let value = match self.specials {
            Specials::Ieee | Specials::IeeeSaturating if magnitude >= self.infinity() => {
                f64::from_bits(F64_INF | (fraction as u64) << (52 - self.mantissa_bits))
            }
            Specials::AllOnesNan if magnitude == mask(self.width() - 1) => f64::NAN,
            Specials::NegativeZeroNan if negative && magnitude == 0 => return f64::NAN,
            _ if exponent == 0 => {
                fraction as f64 * power_of_two(1 - self.bias - self.mantissa_bits as i32)
            }
            _ => {
                let significand = fraction | 1 << self.mantissa_bits;
                significand as f64 * power_of_two(exponent - self.bias - self.mantissa_bits as i32)
            }
        };
        if negative { -value } else { value }
    }

    /// The code of the nearest value, ties to even; see the module's table for the edges.
    #[inline]
    pub fn encode(self, value: f64) -> u32 {
        let bits = value.to_bits();
        let magnitude = bits & !F64_SIGN;
        let negative = bits != magnitude;
        if self.specials == Specials::Exponent {
            return self.encode_exponent(value);
        }
        let sign = (negative as u32) << (self.width() - 1);
        if magnitude > F64_INF {
            return self.nan(sign, magnitude);
        }
        let code = self.round(magnitude).min(u32::MAX as u64) as u32;
        if code > self.max_code() {
            return match self.specials {
                Specials::Ieee => sign | self.infinity(),
                _ => sign | self.max_code(),
            };
        }
        match self.specials {
            Specials::NegativeZeroNan if code == 0 => 0,
            _ => sign | code,
        }
    }

    pub fn max_finite(self) -> f64 {
        self.decode(self.max_code())
    }

    /// The code of the largest finite value.
    #[inline]
    pub const fn max_code(self) -> u32 {
        match self.specials {
            Specials::Ieee | Specials::IeeeSaturating => self.infinity() - 1,
            Specials::AllOnesNan => mask(self.width() - 1) - 1,
            Specials::NegativeZeroNan | Specials::None => mask(self.width() - 1),
            Specials::Exponent => 0xfe,
        }
    }

    /// The code of +∞ in the formats that have one.
    const fn infinity(self) -> u32 {
        mask(self.exponent_bits) << self.mantissa_bits
    }

    /// The code of a NaN, with what of its payload fits.
    fn nan(self, sign: u32, magnitude: u64) -> u32 {
        match self.specials {
            Specials::Ieee | Specials::IeeeSaturating => {
                let kept = (magnitude >> (52 - self.mantissa_bits)) as u32;
                let quiet = 1 << (self.mantissa_bits - 1);
                match kept & mask(self.mantissa_bits) {
                    0 => sign | self.infinity() | quiet,
                    payload => sign | self.infinity() | payload,
                }
            }
            Specials::AllOnesNan => sign | mask(self.width() - 1),
            Specials::NegativeZeroNan => 1 << (self.width() - 1),
            Specials::None => self.max_code(),
            Specials::Exponent => 0xff,
        }
    }

    /// The code of a non-negative number given by its f64 bits, as if exponents had no limit.
    fn round(self, magnitude: u64) -> u64 {
        let lost = 52 - self.mantissa_bits;
        let smallest_normal = 1 - self.bias;
        let exponent = (magnitude >> 52) as i32 - 1023;
        if exponent >= smallest_normal {
            // Exponent and fraction are rounded as one integer, so a carry out of the
            // fraction moves to the next exponent by itself.
            let rebiased = magnitude - (((1023 - self.bias) as u64) << 52);
            return shift_to_even(rebiased, lost);
        }
        let implicit = if exponent > -1023 { 1 << 52 } else { 0 };
        let significand = (magnitude & (implicit_bit() - 1)) | implicit;
        let shift = lost as i32 + smallest_normal - exponent.max(-1022);
        // Past 54 bits not even half of the last place is left.
        if shift >= 55 {
            0
        } else {
            shift_to_even(significand, shift as u32)
        }
    }

    fn encode_exponent(self, value: f64) -> u32 {
        if value.is_nan() {
            return 0xff;
        }
        let smallest = power_of_two(-self.bias);
        if value <= smallest {
            return 0;
        }
        // Between 2^e and 2^(e+1) the middle, 1.5 · 2^e, belongs to the upper neighbour,
        // whose significand is even in units of 2^e.
        let magnitude = value.to_bits() + (1 << 51);
        let exponent = (magnitude >> 52) as i64 - 1023;
        (exponent + self.bias as i64).clamp(0, 0xfe) as u32
    }
}

/// The value rounded to the type, as a cast does it: nearest even, once. Types that are not
/// floats leave it as it is.
#[inline]
pub fn round_to(scalar: Scalar, value: f64) -> f64 {
    match scalar {
        Scalar::F64 => value,
        Scalar::F32 => value as f32 as f64,
        _ => match Format::of(scalar) {
            Some(format) => format.decode(format.encode(value)),
            None => value,
        },
    }
}

/// The stored bits of a float of this type. For types that are not floats the value is
/// converted to an integer first, as by [`float_to_int`].
#[inline]
pub fn float_to_bits(scalar: Scalar, value: f64) -> u64 {
    match scalar {
        Scalar::F64 => value.to_bits(),
        Scalar::F32 => (value as f32).to_bits() as u64,
        // tfloat32 lies in the upper 19 bits of a float32.
        Scalar::TF32 => (TF32.encode(value) as u64) << 13,
        _ => match Format::of(scalar) {
            Some(format) => format.encode(value) as u64,
            None => int_to_bits(scalar, float_to_int(scalar, value)),
        },
    }
}

/// The value that stored bits have as a float. A tfloat32 is read like the float32 it is
/// stored as; only matrix products and conversions look at 10 bits of its mantissa.
#[inline]
pub fn float_from_bits(scalar: Scalar, bits: u64) -> f64 {
    match scalar {
        Scalar::F64 => f64::from_bits(bits),
        Scalar::F32 | Scalar::TF32 => f32::from_bits(bits as u32) as f64,
        // The two formats that whole tiles are made of take a short way.
        Scalar::F16 => f16_to_f64(bits as u16),
        Scalar::BF16 => f32::from_bits((bits as u32 & 0xffff) << 16) as f64,
        _ => match Format::of(scalar) {
            Some(format) => format.decode(bits as u32),
            None => int_from_bits(scalar, bits) as f64,
        },
    }
}

/// The stored bits of an integer, bool or address, modulo its width.
#[inline]
pub fn int_to_bits(scalar: Scalar, value: i128) -> u64 {
    match scalar {
        Scalar::Bool => (value != 0) as u64,
        _ => (value as u64) & (u64::MAX >> (64 - scalar.bits())),
    }
}

/// The value of the stored bits of an integer, bool or address.
#[inline]
pub fn int_from_bits(scalar: Scalar, bits: u64) -> i128 {
    match scalar {
        Scalar::Handle => bits as i128,
        _ => scalar.wrap(bits as i128),
    }
}

/// The stored bits of a number, which is converted to the type first where it has to be.
pub fn to_bits(scalar: Scalar, value: Number) -> u64 {
    match convert(scalar, value) {
        Number::Float(v) => float_to_bits(scalar, v),
        Number::Int(v) => int_to_bits(scalar, v),
    }
}

/// The number that stored bits are.
pub fn from_bits(scalar: Scalar, bits: u64) -> Number {
    if scalar.is_float() {
        Number::Float(float_from_bits(scalar, bits))
    } else {
        Number::Int(int_from_bits(scalar, bits))
    }
}

/// A cast: integers wrap, floats round once to nearest even, float to integer truncates and
/// saturates with NaN as zero, anything but zero is true.
pub fn convert(scalar: Scalar, value: Number) -> Number {
    match (value, scalar.is_float()) {
        (Number::Int(v), false) => Number::Int(scalar.wrap(v)),
        (Number::Int(v), true) => Number::Float(int_to_float(scalar, v)),
        (Number::Float(v), false) => Number::Int(float_to_int(scalar, v)),
        (Number::Float(v), true) => Number::Float(round_to(scalar, v)),
    }
}

/// The integer rounded to the float type, once.
pub fn int_to_float(scalar: Scalar, value: i128) -> f64 {
    match scalar {
        Scalar::F64 => value as f64,
        Scalar::F32 => value as f32 as f64,
        _ => round_to(scalar, int_to_odd(value)),
    }
}

/// Toward zero, saturating; NaN is zero. To bool, anything but zero is true.
pub fn float_to_int(scalar: Scalar, value: f64) -> i128 {
    match (scalar, scalar.int_range()) {
        (Scalar::Bool, _) => (value != 0.0) as i128,
        (_, Some((low, high))) => (value as i128).clamp(low, high),
        (_, None) => (value as i128).clamp(0, u64::MAX as i128),
    }
}

const TF32: Format = Format {
    exponent_bits: 8,
    mantissa_bits: 10,
    bias: 127,
    specials: Specials::Ieee,
};

const F64_SIGN: u64 = 1 << 63;
const F64_INF: u64 = 0x7ff << 52;

const fn implicit_bit() -> u64 {
    1 << 52
}

/// That many low bits set; at most 31.
const fn mask(bits: u32) -> u32 {
    (1 << bits) - 1
}

/// Two to an exponent in the range of normal f64 numbers.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// `value / 2^shift`, to nearest even; `shift` is 1 to 54 and `value` below 2^63.
fn shift_to_even(value: u64, shift: u32) -> u64 {
    let odd = (value >> shift) & 1;
    (value + (1 << (shift - 1)) - 1 + odd) >> shift
}

/// An f64 near the integer whose last bit says whether anything was lost, so that rounding it
/// again to fewer bits gives the same as rounding the integer.
fn int_to_odd(value: i128) -> f64 {
    let magnitude = value.unsigned_abs();
    let excess = (128 - magnitude.leading_zeros()).saturating_sub(53);
    let kept = magnitude >> excess;
    let lost = (kept << excess) != magnitude;
    let rounded = (kept | lost as u128) as f64 * power_of_two(excess as i32);
    if value < 0 { -rounded } else { rounded }
}

#[inline]
fn f16_to_f64(code: u16) -> f64 {
    let magnitude = (code & 0x7fff) as u32;
    if magnitude >= 0x7c00 {
        const F16: Format = Format {
            exponent_bits: 5,
            mantissa_bits: 10,
            bias: 15,
            specials: Specials::Ieee,
        };
        return F16.decode(code as u32);
    }
    // As float32 bits the number is 2^112 too small, subnormal ones included.
    let value = f32::from_bits(magnitude << 13) * f32::from_bits((127 + 112) << 23);
    if code & 0x8000 != 0 {
        -value as f64
    } else {
        value as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: [Scalar; 8] = [
        Scalar::F8E4M3FN,
        Scalar::F8E4M3FNUZ,
        Scalar::F8E5M2,
        Scalar::F8E5M2FNUZ,
        Scalar::F8E8M0,
        Scalar::F6E2M3,
        Scalar::F6E3M2,
        Scalar::F4E2M1,
    ];
    const NARROW: [Scalar; 11] = [
        Scalar::F8E4M3FN,
        Scalar::F8E4M3FNUZ,
        Scalar::F8E5M2,
        Scalar::F8E5M2FNUZ,
        Scalar::F8E8M0,
        Scalar::F6E2M3,
        Scalar::F6E3M2,
        Scalar::F4E2M1,
        Scalar::F16,
        Scalar::BF16,
        Scalar::TF32,
    ];

    fn format(scalar: Scalar) -> Format {
        Format::of(scalar).expect("a narrow float")
    }

    /// Codes and values of all finite non-negative numbers, in order of code.
    fn finite(f: Format) -> Vec<(u32, f64)> {
        (0..=f.max_code()).map(|c| (c, f.decode(c))).collect()
    }

    #[test]
    fn every_code_survives_decoding() {
        for scalar in NARROW {
            let f = format(scalar);
            for code in 0..1u32 << f.width() {
                let value = f.decode(code);
                let back = f.encode(value);
                let saturating = f.specials == Specials::IeeeSaturating;
                if saturating && value.is_infinite() {
                    assert_eq!(
                        back & mask(f.width() - 1),
                        f.max_code(),
                        "{scalar} {code:#x}"
                    );
                } else if value.is_nan() && f.specials == Specials::AllOnesNan {
                    assert!(f.decode(back).is_nan());
                    assert_eq!(back & 0x7f, 0x7f);
                } else {
                    assert_eq!(back, code, "{scalar} {code:#x} is {value}");
                }
            }
        }
    }

    #[test]
    fn codes_are_in_the_order_of_their_values() {
        for scalar in NARROW {
            let values = finite(format(scalar));
            for pair in values.windows(2) {
                assert!(pair[0].1 < pair[1].1, "{scalar} {pair:?}");
                assert!(pair[1].1.is_finite());
            }
        }
    }

    #[test]
    fn nearest_even_between_all_neighbours() {
        for scalar in NARROW {
            let f = format(scalar);
            for pair in finite(f).windows(2) {
                let ((low_code, low), (high_code, high)) = (pair[0], pair[1]);
                let middle = low / 2.0 + high / 2.0;
                // With no mantissa bit every tie goes to the next power of two.
                let even = if f.mantissa_bits == 0 || low_code % 2 == 1 {
                    high_code
                } else {
                    low_code
                };
                assert_eq!(f.encode(middle), even, "{scalar} {middle}");
                assert_eq!(
                    f.encode(middle.next_down()),
                    low_code,
                    "{scalar} below {middle}"
                );
                assert_eq!(
                    f.encode(middle.next_up()),
                    high_code,
                    "{scalar} above {middle}"
                );
                if f.specials != Specials::Exponent && low_code > 0 {
                    assert_eq!(f.decode(f.encode(-middle)), -f.decode(even));
                }
            }
        }
    }

    #[test]
    fn known_constants() {
        let max = |s| format(s).max_finite();
        assert_eq!(max(Scalar::F8E4M3FN), 448.0);
        assert_eq!(max(Scalar::F8E4M3FNUZ), 240.0);
        assert_eq!(max(Scalar::F8E5M2), 57344.0);
        assert_eq!(max(Scalar::F8E5M2FNUZ), 57344.0);
        assert_eq!(max(Scalar::F8E8M0), 2f64.powi(127));
        assert_eq!(max(Scalar::F6E2M3), 7.5);
        assert_eq!(max(Scalar::F6E3M2), 28.0);
        assert_eq!(max(Scalar::F4E2M1), 6.0);
        assert_eq!(max(Scalar::F16), 65504.0);
        assert_eq!(max(Scalar::BF16), 3.389_531_389_251_535_5e38);
        let e2m1: Vec<f64> = finite(format(Scalar::F4E2M1)).iter().map(|p| p.1).collect();
        assert_eq!(e2m1, [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]);
        for code in 0..0xffu32 {
            let value = format(Scalar::F8E8M0).decode(code);
            assert_eq!(value, 2f64.powi(code as i32 - 127));
        }
        assert_eq!(format(Scalar::F8E4M3FN).decode(1), 2f64.powi(-9));
        assert_eq!(format(Scalar::F8E5M2).decode(1), 2f64.powi(-16));
        assert_eq!(format(Scalar::F8E4M3FNUZ).decode(1), 2f64.powi(-10));
        assert_eq!(format(Scalar::F8E5M2FNUZ).decode(1), 2f64.powi(-17));
    }

    #[test]
    fn overflow_nan_and_zero() {
        for s in SMALL {
            let f = format(s);
            for large in [f.max_finite() * 1.01, 1e300, f64::INFINITY] {
                assert_eq!(f.encode(large), f.max_code(), "{s} {large}");
                if s != Scalar::F8E8M0 {
                    assert_eq!(round_to(s, -large), -f.max_finite());
                }
            }
        }
        for s in [
            Scalar::F8E4M3FN,
            Scalar::F8E4M3FNUZ,
            Scalar::F8E5M2,
            Scalar::F8E8M0,
        ] {
            assert!(round_to(s, f64::NAN).is_nan(), "{s}");
        }
        for s in [Scalar::F6E2M3, Scalar::F6E3M2, Scalar::F4E2M1] {
            assert_eq!(round_to(s, f64::NAN), format(s).max_finite());
        }
        assert_eq!(format(Scalar::F8E5M2).decode(0x7c), f64::INFINITY);
        assert_eq!(format(Scalar::F8E4M3FNUZ).encode(-0.0), 0);
        assert_eq!(format(Scalar::F8E4M3FN).encode(-0.0), 0x80);
        assert_eq!(round_to(Scalar::F8E8M0, 0.0), 2f64.powi(-127));
        assert_eq!(round_to(Scalar::F8E8M0, -3.0), 2f64.powi(-127));
        assert_eq!(round_to(Scalar::F16, 65519.99), 65504.0);
        assert_eq!(round_to(Scalar::F16, 65520.0), f64::INFINITY);
        assert_eq!(round_to(Scalar::BF16, -1e39), f64::NEG_INFINITY);
        assert_eq!(round_to(Scalar::F16, f64::MIN_POSITIVE / 4.0), 0.0);
    }

    #[test]
    fn rounds_once_only() {
        // Just above a tie of float16, by less than float32 can hold.
        let above = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        assert_eq!(round_to(Scalar::F16, above), 1.0 + 2f64.powi(-10));
        assert_eq!(round_to(Scalar::F16, 1.0 + 2f64.powi(-11)), 1.0);
        assert_eq!(
            int_to_float(Scalar::F16, (1 << 11) + 1),
            2048.0,
            "a tie of integers goes to even"
        );
        assert_eq!(int_to_float(Scalar::BF16, (1 << 60) + (1 << 52) + 1), {
            2f64.powi(60) + 2f64.powi(53)
        });
        assert_eq!(int_to_float(Scalar::F32, (1 << 60) + (1 << 36) + 1), {
            2f64.powi(60) + 2f64.powi(37)
        });
    }

    #[test]
    fn agrees_with_half_where_half_is_exact() {
        // From float32 the crate rounds correctly; take a spread of all float32 numbers.
        for i in 0..200_000u32 {
            let x = f32::from_bits(i.wrapping_mul(21_473) ^ (i << 13));
            if x.is_nan() {
                continue;
            }
            let h = half::f16::from_f32(x);
            assert_eq!(
                float_to_bits(Scalar::F16, x as f64),
                h.to_bits() as u64,
                "{x:e}"
            );
            let b = half::bf16::from_f32(x);
            assert_eq!(
                float_to_bits(Scalar::BF16, x as f64),
                b.to_bits() as u64,
                "{x:e}"
            );
        }
        for code in 0..=u16::MAX {
            let h = half::f16::from_bits(code).to_f64();
            let b = half::bf16::from_bits(code).to_f64();
            let ours = float_from_bits(Scalar::F16, code as u64);
            assert!(h == ours || h.is_nan() && ours.is_nan(), "{code:#x}");
            let ours = float_from_bits(Scalar::BF16, code as u64);
            assert!(b == ours || b.is_nan() && ours.is_nan(), "{code:#x}");
        }
    }

    #[test]
    fn tf32_keeps_ten_bits_in_float32_storage() {
        let bits = float_to_bits(Scalar::TF32, 1.0 + 2f64.powi(-10) + 2f64.powi(-12));
        assert_eq!(bits, (1.0 + 2f32.powi(-10)).to_bits() as u64);
        assert_eq!(float_from_bits(Scalar::TF32, bits), 1.0 + 2f64.powi(-10));
    }

    #[test]
    fn stored_bits_round_trip() {
        for scalar in Scalar::ALL {
            let top = u64::MAX >> (64 - scalar.bits());
            for bits in [0, 1, 5, top / 2, top / 2 + 1, top - 1, top] {
                let bits = match scalar {
                    Scalar::Bool => bits & 1,
                    Scalar::TF32 => bits & !0x1fff,
                    _ => bits,
                };
                let back = to_bits(scalar, from_bits(scalar, bits));
                let nan = matches!(from_bits(scalar, bits), Number::Float(v) if v.is_nan());
                assert!(
                    nan || back == bits,
                    "{scalar} {bits:#x} came back {back:#x}"
                );
            }
        }
    }

    #[test]
    fn casts_follow_the_language() {
        use Number::{Float, Int};
        assert_eq!(convert(Scalar::I8, Int(200)), Int(-56));
        assert_eq!(convert(Scalar::I8, Float(-1e9)), Int(-128));
        assert_eq!(convert(Scalar::U8, Float(-1.0)), Int(0));
        assert_eq!(convert(Scalar::I32, Float(f64::NAN)), Int(0));
        assert_eq!(convert(Scalar::I32, Float(-1.9)), Int(-1));
        assert_eq!(convert(Scalar::Bool, Float(0.5)), Int(1));
        assert_eq!(convert(Scalar::F8E4M3FN, Int(1000)), Float(448.0));
        assert_eq!(convert(Scalar::F16, Int(100_000)), Float(f64::INFINITY));
    }
}
