//! Scalar arithmetic of the language, one rounding after every operation.
//!
//! Integers, bools and addresses are an `i64` in the range of their type; a `uint64` is kept as
//! the same bits. Floats are an `f64` that is a value of their type: an f64 carries more than
//! twice the bits of a float32, so rounding the f64 result of `+ - * /` and `sqrt` once more
//! gives the correctly rounded result of the narrow type.

use tilewright_ir::small_float::{self, Number};
use tilewright_ir::{BinOp, MathFn, Scalar};

/// Why an integer operation has no result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trap {
    Division,
    Shift(i64),
    /// The operation does not exist on the type; the verifier should have refused it.
    Undefined,
}

/// The value modulo the width of the type.
#[inline]
pub(crate) fn wrap(scalar: Scalar, v: i64) -> i64 {
    match scalar {
        Scalar::I32 => v as i32 as i64,
        Scalar::I64 | Scalar::U64 | Scalar::Handle => v,
        Scalar::U32 => v as u32 as i64,
        Scalar::Bool => (v != 0) as i64,
        Scalar::I16 => v as i16 as i64,
        Scalar::U16 => v as u16 as i64,
        Scalar::I8 => v as i8 as i64,
        Scalar::U8 => v as u8 as i64,
        Scalar::I4 => (v << 60) >> 60,
        Scalar::U4 => v & 15,
        _ => v,
    }
}

/// The number that the representation stands for.
#[inline]
pub(crate) fn wide(scalar: Scalar, v: i64) -> i128 {
    match scalar {
        Scalar::U64 | Scalar::Handle => v as u64 as i128,
        _ => v as i128,
    }
}

/// The representation of a number of the type; the inverse of [`wide`].
#[inline]
pub(crate) fn narrow(scalar: Scalar, v: i128) -> i64 {
    wrap(scalar, v as i64)
}

/// An arithmetic or bitwise operation on integers or bools.
#[inline]
pub(crate) fn int_binary(op: BinOp, scalar: Scalar, a: i64, b: i64) -> Result<i64, Trap> {
    // Wrapping i64 arithmetic is exact modulo 2^64, so these are right for every width.
    let v = match op {
        BinOp::Add => a.wrapping_add(b),
        BinOp::Sub => a.wrapping_sub(b),
        BinOp::Mul => a.wrapping_mul(b),
        BinOp::BitAnd => a & b,
        BinOp::BitOr => a | b,
        BinOp::BitXor => a ^ b,
        BinOp::Shl | BinOp::Shr => {
            let amount = wide(scalar, b);
            if !(0..scalar.bits() as i128).contains(&amount) {
                return Err(Trap::Shift(b));
            }
            if op == BinOp::Shl {
                a << amount
            } else {
                return Ok(narrow(scalar, wide(scalar, a) >> amount));
            }
        }
        BinOp::FloorDiv
        | BinOp::FloorMod
        | BinOp::TruncDiv
        | BinOp::TruncMod
        | BinOp::Min
        | BinOp::Max => return wide_binary(op, scalar, a, b),
        BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => {
            return Ok(int_compare(op, scalar, a, b) as i64);
        }
        BinOp::LogicalAnd => (a != 0 && b != 0) as i64,
        BinOp::LogicalOr => (a != 0 || b != 0) as i64,
        BinOp::Div => return Err(Trap::Undefined),
    };
    Ok(wrap(scalar, v))
}

/// The operations that look at the sign. Values that fit i64 take the short way.
fn wide_binary(op: BinOp, scalar: Scalar, a: i64, b: i64) -> Result<i64, Trap> {
    let divides = !matches!(op, BinOp::Min | BinOp::Max);
    if divides && b == 0 {
        return Err(Trap::Division);
    }
    if scalar != Scalar::U64 && !(divides && b == -1) {
        return Ok(match op {
            BinOp::FloorDiv => a.div_euclid(b) - (b < 0 && a.rem_euclid(b) != 0) as i64,
            BinOp::FloorMod => {
                let r = a % b;
                if r != 0 && (r < 0) != (b < 0) {
                    r + b
                } else {
                    r
                }
            }
            BinOp::TruncDiv => a / b,
            BinOp::TruncMod => a % b,
            BinOp::Min => a.min(b),
            _ => a.max(b),
        });
    }
    let (x, y) = (wide(scalar, a), wide(scalar, b));
    let v = match op {
        BinOp::FloorDiv | BinOp::TruncDiv if y == -1 => -x,
        BinOp::FloorMod | BinOp::TruncMod if y == -1 => 0,
        // Only uint64 is left, where floor and truncation agree.
        BinOp::FloorDiv | BinOp::TruncDiv => x / y,
        BinOp::FloorMod | BinOp::TruncMod => x % y,
        BinOp::Min => x.min(y),
        _ => x.max(y),
    };
    Ok(narrow(scalar, v))
}

/// A comparison of integers.
#[inline]
pub(crate) fn int_compare(op: BinOp, scalar: Scalar, a: i64, b: i64) -> bool {
    let order = match scalar {
        Scalar::U64 | Scalar::Handle => (a as u64).cmp(&(b as u64)),
        _ => a.cmp(&b),
    };
    match op {
        BinOp::Eq => order.is_eq(),
        BinOp::Ne => order.is_ne(),
        BinOp::Lt => order.is_lt(),
        BinOp::Le => order.is_le(),
        BinOp::Gt => order.is_gt(),
        _ => order.is_ge(),
    }
}

/// A comparison of floats: IEEE, so NaN is unequal to everything.
#[inline]
pub(crate) fn float_compare(op: BinOp, a: f64, b: f64) -> bool {
    match op {
        BinOp::Eq => a == b,
        BinOp::Ne => a != b,
        BinOp::Lt => a < b,
        BinOp::Le => a <= b,
        BinOp::Gt => a > b,
        _ => a >= b,
    }
}

/// An arithmetic operation on floats of the type. Of min and max, a NaN operand loses.
#[inline]
pub(crate) fn float_binary(op: BinOp, scalar: Scalar, a: f64, b: f64) -> Option<f64> {
    Some(match op {
        BinOp::Add => round(scalar, a + b),
        BinOp::Sub => round(scalar, a - b),
        BinOp::Mul => round(scalar, a * b),
        BinOp::Div => round(scalar, a / b),
        BinOp::Min => a.min(b),
        BinOp::Max => a.max(b),
        _ => return None,
    })
}

/// The f64 rounded to the type, once, to nearest even.
#[inline]
pub(crate) fn round(scalar: Scalar, v: f64) -> f64 {
    match scalar {
        Scalar::F32 => v as f32 as f64,
        Scalar::F64 => v,
        Scalar::F16 => round_normal(v, 42, 1023 - 14, 1023 + 15)
            .unwrap_or_else(|| small_float::round_to(scalar, v)),
        Scalar::BF16 => round_normal(v, 45, 1023 - 126, 1023 + 127)
            .unwrap_or_else(|| small_float::round_to(scalar, v)),
        _ => small_float::round_to(scalar, v),
    }
}

/// Rounds off `lost` mantissa bits of a number whose biased exponent is in `low..high`, where
/// neither subnormals nor overflow can occur.
#[inline]
fn round_normal(v: f64, lost: u32, low: u64, high: u64) -> Option<f64> {
    let bits = v.to_bits();
    let exponent = (bits >> 52) & 0x7ff;
    if exponent < low || exponent >= high {
        return None;
    }
    let odd = (bits >> lost) & 1;
    let rounded = bits + (1 << (lost - 1)) - 1 + odd;
    Some(f64::from_bits(rounded & !((1 << lost) - 1)))
}

/// A cast of a float to an integer type: toward zero, saturating, NaN to zero.
#[inline]
pub(crate) fn float_to_int(scalar: Scalar, v: f64) -> i64 {
    match scalar {
        Scalar::I32 => v as i32 as i64,
        Scalar::I64 => v as i64,
        _ => small_float::float_to_int(scalar, v) as i64,
    }
}

/// A cast of an integer of type `from` to a float type, rounded once.
#[inline]
pub(crate) fn int_to_float(to: Scalar, from: Scalar, v: i64) -> f64 {
    // Small integers are floats; of the bits of a uint64 only the non-negative ones are small.
    const EXACT: i64 = 1 << 24;
    let small = (-EXACT..=EXACT).contains(&v) && (v >= 0 || from != Scalar::U64);
    match to {
        Scalar::F32 | Scalar::F64 if small => v as f64,
        _ => small_float::int_to_float(to, wide(from, v)),
    }
}

/// What stored bits are, as an integer representation.
#[inline]
pub(crate) fn int_from_bits(scalar: Scalar, bits: u64) -> i64 {
    wrap(scalar, bits as i64)
}

/// The bits to store for an integer representation.
#[inline]
pub(crate) fn int_to_bits(scalar: Scalar, v: i64) -> u64 {
    match scalar {
        Scalar::Bool => (v != 0) as u64,
        _ => v as u64 & (u64::MAX >> (64 - scalar.bits())),
    }
}

/// A function of an integer argument that gives an integer.
pub(crate) fn int_math(f: MathFn, scalar: Scalar, v: i64) -> Option<i64> {
    let bits = int_to_bits(scalar, v);
    Some(match f {
        MathFn::Popcount => bits.count_ones() as i64,
        MathFn::Clz => (bits.leading_zeros() - (64 - scalar.bits())) as i64,
        MathFn::Abs if scalar.is_signed_int() => wrap(scalar, v.wrapping_abs()),
        MathFn::Abs
        | MathFn::Floor
        | MathFn::Ceil
        | MathFn::Trunc
        | MathFn::Round
        | MathFn::RoundAway => v,
        MathFn::IsNan | MathFn::IsInf => 0,
        MathFn::IsFinite => 1,
        _ => return None,
    })
}

/// The public form of a representation.
pub(crate) fn number(scalar: Scalar, slot: u64) -> Number {
    if scalar.is_float() {
        Number::Float(f64::from_bits(slot))
    } else {
        Number::Int(wide(scalar, slot as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn division_floors_and_truncates() {
        let d = |op, a: i64, b: i64| int_binary(op, Scalar::I32, a, b);
        assert_eq!(d(BinOp::FloorDiv, -7, 2), Ok(-4));
        assert_eq!(d(BinOp::FloorMod, -7, 2), Ok(1));
        assert_eq!(d(BinOp::FloorMod, 7, -2), Ok(-1));
        assert_eq!(d(BinOp::FloorDiv, 7, -2), Ok(-4));
        assert_eq!(d(BinOp::TruncDiv, -7, 2), Ok(-3));
        assert_eq!(d(BinOp::TruncMod, -7, 2), Ok(-1));
        assert_eq!(d(BinOp::FloorDiv, 1, 0), Err(Trap::Division));
        assert_eq!(
            d(BinOp::TruncDiv, i32::MIN as i64, -1),
            Ok(i32::MIN as i64),
            "wraps"
        );
        assert_eq!(
            int_binary(BinOp::FloorDiv, Scalar::I64, i64::MIN, -1),
            Ok(i64::MIN)
        );
    }

    #[test]
    fn unsigned_64_bit_values_use_all_bits() {
        let max = -1i64; // the bits of 2^64 - 1
        let u = Scalar::U64;
        assert_eq!(int_binary(BinOp::FloorDiv, u, max, 2), Ok(i64::MAX));
        assert_eq!(int_binary(BinOp::Max, u, max, 2), Ok(max));
        assert_eq!(int_binary(BinOp::Shr, u, max, 63), Ok(1));
        assert!(int_compare(BinOp::Lt, u, 2, max));
        assert_eq!(int_to_float(Scalar::F64, u, max), 2f64.powi(64));
        assert_eq!(float_to_int(u, 2f64.powi(64)), max);
    }

    #[test]
    fn shifts_trap_outside_the_width() {
        assert_eq!(
            int_binary(BinOp::Shl, Scalar::I32, 1, 32),
            Err(Trap::Shift(32))
        );
        assert_eq!(
            int_binary(BinOp::Shr, Scalar::I32, 1, -1),
            Err(Trap::Shift(-1))
        );
        assert_eq!(int_binary(BinOp::Shr, Scalar::I8, -128, 7), Ok(-1));
        assert_eq!(int_binary(BinOp::Shr, Scalar::U8, 128, 7), Ok(1));
    }

    #[test]
    fn bits_functions_count_in_the_width_of_the_type() {
        assert_eq!(int_math(MathFn::Clz, Scalar::I8, 1), Some(7));
        assert_eq!(int_math(MathFn::Popcount, Scalar::I16, -1), Some(16));
        assert_eq!(int_math(MathFn::Abs, Scalar::I8, -128), Some(-128));
    }

    const INTS: [Scalar; 10] = [
        Scalar::I4,
        Scalar::I8,
        Scalar::I16,
        Scalar::I32,
        Scalar::I64,
        Scalar::U4,
        Scalar::U8,
        Scalar::U16,
        Scalar::U32,
        Scalar::U64,
    ];

    proptest! {
        /// Every integer operation agrees with the mathematical one done in i128.
        #[test]
        fn integers_agree_with_wide_arithmetic(
            s in proptest::sample::select(&INTS[..]),
            a in any::<i64>(),
            b in prop_oneof![any::<i64>(), -3i64..4],
        ) {
            let (a, b) = (wrap(s, a), wrap(s, b));
            let (x, y) = (wide(s, a), wide(s, b));
            let floor = |x: i128, y: i128| {
                let q = x / y;
                if x % y != 0 && (x < 0) != (y < 0) { q - 1 } else { q }
            };
            for (op, expected) in [
                (BinOp::Add, Some(x + y)),
                (BinOp::Sub, Some(x - y)),
                (BinOp::Mul, Some(x.wrapping_mul(y))),
                (BinOp::Min, Some(x.min(y))),
                (BinOp::Max, Some(x.max(y))),
                (BinOp::FloorDiv, (y != 0).then(|| floor(x, y))),
                (BinOp::FloorMod, (y != 0).then(|| x - y * floor(x, y))),
                (BinOp::TruncDiv, x.checked_div(y)),
                (BinOp::TruncMod, x.checked_rem(y)),
            ] {
                let got = int_binary(op, s, a, b).ok().map(|v| wide(s, v));
                prop_assert_eq!(got, expected.map(|v| s.wrap(v)), "{:?} {} {} {}", op, s, x, y);
            }
        }

        /// The short rounding agrees with the bit-exact one.
        #[test]
        fn short_rounding_agrees(bits in any::<u64>(), exponent in 980u64..1050, v in any::<f64>()) {
            let near = f64::from_bits((bits & !(0x7ff << 52)) | exponent << 52);
            for s in [Scalar::F16, Scalar::BF16] {
                for v in [v, near] {
                    prop_assert_eq!(round(s, v).to_bits(), small_float::round_to(s, v).to_bits());
                }
            }
        }

        /// Casts of float32 values agree with the `half` crate.
        #[test]
        fn casts_agree_with_half(v in any::<f32>()) {
            let f16 = half::f16::from_f32(v).to_f64();
            let bf16 = half::bf16::from_f32(v).to_f64();
            prop_assert!(round(Scalar::F16, v as f64) == f16 || v.is_nan());
            prop_assert!(round(Scalar::BF16, v as f64) == bf16 || v.is_nan());
        }
    }
}
