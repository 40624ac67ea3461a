//! Operations on constants, exactly as the machine would compute them.
//!
//! Integers wrap in their type. Floats are computed in float64 and rounded once to the type,
//! which is the correctly rounded result for every type of at most 24 significant bits: float64
//! has more than twice as many, so its own rounding never tips the second one. Left alone are:
//! constants that are not values of their type, operations that give or take a NaN (its payload
//! is the machine's business), tfloat32 (rounded by matrix instructions only) and e8m0 (a scale,
//! not a number to compute with).

use tilewright_ir::small_float::{self, round_to};
use tilewright_ir::{BinOp, Scalar};

use crate::interval::{floor_div, floor_mod};

/// `a op b` for integers or bools; `None` where it is undefined or not an operation on the type.
pub fn fold_int(op: BinOp, a: i128, b: i128, scalar: Scalar) -> Option<i128> {
    let integer = scalar.is_int();
    if !integer && scalar != Scalar::Bool {
        return None;
    }
    let value = match op {
        BinOp::Add => a.wrapping_add(b),
        BinOp::Sub => a.wrapping_sub(b),
        BinOp::Mul => a.wrapping_mul(b),
        BinOp::FloorDiv if integer && b != 0 => floor_div(a, b),
        BinOp::FloorMod if integer && b != 0 => floor_mod(a, b),
        BinOp::TruncDiv if integer && b != 0 => a.wrapping_div(b),
        BinOp::TruncMod if integer && b != 0 => a.wrapping_rem(b),
        BinOp::Min => a.min(b),
        BinOp::Max => a.max(b),
        BinOp::BitAnd => a & b,
        BinOp::BitOr => a | b,
        BinOp::BitXor => a ^ b,
        BinOp::Shl if integer && shift_in_range(b, scalar) => a << b,
        BinOp::Shr if integer && shift_in_range(b, scalar) => a >> b,
        BinOp::LogicalAnd if !integer => a & b,
        BinOp::LogicalOr if !integer => a | b,
        BinOp::Eq => return Some((a == b) as i128),
        BinOp::Ne => return Some((a != b) as i128),
        BinOp::Lt => return Some((a < b) as i128),
        BinOp::Le => return Some((a <= b) as i128),
        BinOp::Gt => return Some((a > b) as i128),
        BinOp::Ge => return Some((a >= b) as i128),
        _ => return None,
    };
    Some(scalar.wrap(value))
}

/// Whether a shift by this much is defined.
pub(crate) fn shift_in_range(amount: i128, scalar: Scalar) -> bool {
    (0..scalar.bits() as i128).contains(&amount)
}

/// What a float operation gives.
pub(crate) enum Folded {
    Float(f64),
    Bool(bool),
}

/// `a op b` for floats of the type, or `None` where the machine's result is not certain here.
pub(crate) fn fold_float(op: BinOp, a: f64, b: f64, scalar: Scalar) -> Option<Folded> {
    if !is_value(a, scalar) || !is_value(b, scalar) {
        return None;
    }
    let rounded = |exact: f64| {
        let value = round_to(scalar, exact);
        (!exact.is_nan() && !value.is_nan()).then_some(Folded::Float(value))
    };
    match op {
        BinOp::Add => rounded(a + b),
        BinOp::Sub => rounded(a - b),
        BinOp::Mul => rounded(a * b),
        BinOp::Div => rounded(a / b),
        // Which zero comes out of min(0.0, -0.0) is not specified.
        BinOp::Min if a != b => Some(Folded::Float(a.min(b))),
        BinOp::Max if a != b => Some(Folded::Float(a.max(b))),
        BinOp::Eq => Some(Folded::Bool(a == b)),
        BinOp::Ne => Some(Folded::Bool(a != b)),
        BinOp::Lt => Some(Folded::Bool(a < b)),
        BinOp::Le => Some(Folded::Bool(a <= b)),
        BinOp::Gt => Some(Folded::Bool(a > b)),
        BinOp::Ge => Some(Folded::Bool(a >= b)),
        _ => None,
    }
}

/// The integer as a float of the type, rounded once.
pub(crate) fn int_to_float(value: i128, scalar: Scalar) -> Option<f64> {
    is_computed(scalar).then(|| small_float::int_to_float(scalar, value))
}

/// The float as a float of another type, rounded once.
pub(crate) fn float_to_float(value: f64, from: Scalar, to: Scalar) -> Option<f64> {
    let value = (is_value(value, from) && is_computed(to)).then(|| round_to(to, value));
    value.filter(|v| !v.is_nan())
}

/// The float truncated to an integer of the type; `None` where it is out of range, which
/// machines do not agree on.
pub(crate) fn float_to_int(value: f64, from: Scalar, to: Scalar) -> Option<i128> {
    let (lo, hi) = to.int_range()?;
    if !value.is_finite() || !is_value(value, from) || !to.is_int() {
        return None;
    }
    // Every integer type's range is far inside i128, so the conversion saturates safely.
    let whole = value.trunc() as i128;
    (lo <= whole && whole <= hi).then_some(whole)
}

/// Whether the constant is a value of the type, and one to compute with.
fn is_value(value: f64, scalar: Scalar) -> bool {
    is_computed(scalar) && round_to(scalar, value).to_bits() == value.to_bits() && !value.is_nan()
}

/// Whether constants of the type are computed with here.
pub(crate) fn is_computed(scalar: Scalar) -> bool {
    scalar.is_float() && !matches!(scalar, Scalar::TF32 | Scalar::F8E8M0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(op: BinOp, a: f64, b: f64, s: Scalar) -> Option<f64> {
        match fold_float(op, a, b, s) {
            Some(Folded::Float(v)) => Some(v),
            _ => None,
        }
    }

    #[test]
    fn integers_wrap_in_their_type() {
        assert_eq!(fold_int(BinOp::Add, 127, 1, Scalar::I8), Some(-128));
        assert_eq!(fold_int(BinOp::Sub, 0, 1, Scalar::U4), Some(15));
        assert_eq!(
            fold_int(BinOp::Mul, (1 << 64) - 1, (1 << 64) - 1, Scalar::U64),
            Some(1)
        );
        assert_eq!(fold_int(BinOp::FloorDiv, -128, -1, Scalar::I8), Some(-128));
        assert_eq!(fold_int(BinOp::TruncMod, -7, 2, Scalar::I32), Some(-1));
        assert_eq!(fold_int(BinOp::FloorMod, -7, 2, Scalar::I32), Some(1));
        assert_eq!(fold_int(BinOp::Shl, 3, 7, Scalar::I8), Some(-128));
        assert_eq!(fold_int(BinOp::Shr, -3, 1, Scalar::I8), Some(-2));
        assert_eq!(fold_int(BinOp::Shr, 253, 1, Scalar::U8), Some(126));
    }

    #[test]
    fn undefined_operations_are_not_folded() {
        for op in [
            BinOp::FloorDiv,
            BinOp::FloorMod,
            BinOp::TruncDiv,
            BinOp::TruncMod,
        ] {
            assert_eq!(fold_int(op, 1, 0, Scalar::I32), None);
        }
        assert_eq!(fold_int(BinOp::Shl, 1, 32, Scalar::I32), None);
        assert_eq!(fold_int(BinOp::Shr, 1, -1, Scalar::I32), None);
        assert_eq!(fold_int(BinOp::Div, 1, 1, Scalar::I32), None);
    }

    #[test]
    fn floats_round_in_their_type() {
        let third32 = (1.0f32 / 3.0f32) as f64;
        assert_eq!(float(BinOp::Div, 1.0, 3.0, Scalar::F32), Some(third32));
        assert_eq!(float(BinOp::Add, 2048.0, 1.0, Scalar::F16), Some(2048.0));
        assert_eq!(
            float(BinOp::Mul, 65504.0, 2.0, Scalar::F16),
            Some(f64::INFINITY)
        );
        assert_eq!(float(BinOp::Add, 256.0, 1.0, Scalar::BF16), Some(256.0));
        assert_eq!(
            float(BinOp::Mul, 448.0, 2.0, Scalar::F8E4M3FN),
            Some(448.0),
            "saturates"
        );
        assert_eq!(
            float(BinOp::Mul, 1e300, 1e300, Scalar::F64),
            Some(f64::INFINITY)
        );
        // Below the normal range of bfloat16: 2^-133 is its smallest value.
        let tiny = 2f64.powi(-70);
        assert_eq!(float(BinOp::Mul, tiny, tiny, Scalar::BF16), Some(0.0));
        assert_eq!(
            float(BinOp::Mul, tiny, 2f64.powi(-63), Scalar::BF16),
            Some(2f64.powi(-133))
        );
    }

    #[test]
    fn float32_is_what_the_host_computes() {
        let mut state = 1u64;
        let mut next = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            f32::from_bits((state >> 32) as u32)
        };
        for _ in 0..20_000 {
            let (a, b) = (next(), next());
            let all = [
                (BinOp::Add, a + b),
                (BinOp::Sub, a - b),
                (BinOp::Mul, a * b),
                (BinOp::Div, a / b),
            ];
            for (op, want) in all {
                if let Some(got) = float(op, a as f64, b as f64, Scalar::F32) {
                    assert_eq!(got.to_bits(), (want as f64).to_bits(), "{a:e} {op:?} {b:e}");
                } else {
                    assert!(a.is_nan() || b.is_nan() || want.is_nan());
                }
            }
        }
    }

    #[test]
    fn uncertain_floats_are_left_alone() {
        // 0.1 is not a float32.
        assert_eq!(float(BinOp::Add, 0.1, 0.2, Scalar::F32), None);
        assert_eq!(float(BinOp::Div, 0.0, 0.0, Scalar::F32), None);
        assert_eq!(float(BinOp::Add, f64::NAN, 1.0, Scalar::F32), None);
        assert_eq!(float(BinOp::Add, 1.0, 1.0, Scalar::TF32), None);
        assert_eq!(float(BinOp::Mul, 2.0, 2.0, Scalar::F8E8M0), None);
        assert_eq!(float(BinOp::Min, 0.0, -0.0, Scalar::F32), None);
    }

    #[test]
    fn conversions() {
        let third = 1.0f64 / 3.0;
        assert_eq!(float_to_int(-2.9, Scalar::F64, Scalar::I32), Some(-2));
        assert_eq!(float_to_int(3e9, Scalar::F64, Scalar::I32), None);
        assert_eq!(int_to_float(16_777_217, Scalar::F32), Some(16_777_216.0));
        assert_eq!(int_to_float(2049, Scalar::F16), Some(2048.0));
        assert_eq!(
            float_to_float(third, Scalar::F64, Scalar::F32),
            Some(third as f32 as f64)
        );
        assert_eq!(
            float_to_float(third, Scalar::F64, Scalar::BF16),
            Some(0.333984375)
        );
        assert_eq!(
            float_to_float(third, Scalar::F32, Scalar::BF16),
            None,
            "not a float32"
        );
    }
}
