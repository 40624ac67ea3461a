//! Operations on constants, exactly as the machine would compute them.
//!
//! Integers wrap in their type. Floats are folded only where the rounding is certain: float32
//! and float64 in the host's arithmetic, float16 and bfloat16 through float32 (whose 24 bits
//! make the second rounding harmless, except for results below the normal range, which are left
//! alone). A NaN is never produced, and no other float type is computed with.

use half::{bf16, f16};
use tilewright_ir::{BinOp, Scalar};

use crate::interval::{floor_div, floor_mod};

/// `a op b` for integers or bools; `None` where it is undefined or not an operation on the type.
pub(crate) fn fold_int(op: BinOp, a: i128, b: i128, scalar: Scalar) -> Option<i128> {
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
    if !is_representable(a, scalar) || !is_representable(b, scalar) || a.is_nan() || b.is_nan() {
        return None;
    }
    let arithmetic = |exact: fn(f64, f64) -> f64, single: fn(f32, f32) -> f32| {
        let value = match scalar {
            Scalar::F64 => exact(a, b),
            Scalar::F32 => single(a as f32, b as f32) as f64,
            Scalar::F16 => f16::from_f32(single(a as f32, b as f32)).to_f64(),
            Scalar::BF16 => {
                let value = single(a as f32, b as f32);
                // A subnormal may have been rounded already, and a zero may hide one.
                let certain =
                    value.is_normal() || (value == 0.0 && matches!(op, BinOp::Add | BinOp::Sub));
                if !certain && value.is_finite() && a != 0.0 && b != 0.0 {
                    return None;
                }
                bf16::from_f32(value).to_f64()
            }
            _ => return None,
        };
        (!value.is_nan()).then_some(Folded::Float(value))
    };
    match op {
        BinOp::Add => arithmetic(|a, b| a + b, |a, b| a + b),
        BinOp::Sub => arithmetic(|a, b| a - b, |a, b| a - b),
        BinOp::Mul => arithmetic(|a, b| a * b, |a, b| a * b),
        BinOp::Div => arithmetic(|a, b| a / b, |a, b| a / b),
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

/// Whether the constant is a value of the type; `false` for types not computed with here.
pub(crate) fn is_representable(value: f64, scalar: Scalar) -> bool {
    match scalar {
        Scalar::F64 => true,
        Scalar::F32 => (value as f32) as f64 == value || value.is_nan(),
        Scalar::F16 | Scalar::BF16 => round_exactly(value, scalar).is_some(),
        _ => false,
    }
}

/// The integer as a float of the type, where the rounding is certain.
pub(crate) fn int_to_float(value: i128, scalar: Scalar) -> Option<f64> {
    match scalar {
        Scalar::F64 => Some(value as f64),
        Scalar::F32 => Some((value as f32) as f64),
        Scalar::F16 | Scalar::BF16 if value.unsigned_abs() < 1 << 24 => {
            round_exactly(value as f64, scalar)
        }
        _ => None,
    }
}

/// The float as a float of another type, where the rounding is certain.
pub(crate) fn float_to_float(value: f64, from: Scalar, to: Scalar) -> Option<f64> {
    if value.is_nan() || !is_representable(value, from) {
        return None;
    }
    match to {
        Scalar::F64 => Some(value),
        Scalar::F32 => Some((value as f32) as f64),
        Scalar::F16 | Scalar::BF16 => round_exactly(value, to),
        _ => None,
    }
}

/// The float truncated to an integer of the type; `None` where it is out of range.
pub(crate) fn float_to_int(value: f64, from: Scalar, to: Scalar) -> Option<i128> {
    let (lo, hi) = to.int_range()?;
    if !value.is_finite() || !is_representable(value, from) || !to.is_int() {
        return None;
    }
    let whole = value.trunc();
    // Every integer type's range is far inside i128, so the conversion saturates safely.
    let whole = whole as i128;
    (lo <= whole && whole <= hi).then_some(whole)
}

/// The value as float16 or bfloat16 if it is one, sign of zero and infinities included.
fn round_exactly(value: f64, scalar: Scalar) -> Option<f64> {
    if (value as f32) as f64 != value {
        return None;
    }
    let rounded = match scalar {
        Scalar::F16 => f16::from_f32(value as f32).to_f64(),
        _ => bf16::from_f32(value as f32).to_f64(),
    };
    (rounded == value).then_some(rounded)
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
            float(BinOp::Mul, 1e300, 1e300, Scalar::F64),
            Some(f64::INFINITY)
        );
    }

    #[test]
    fn uncertain_floats_are_left_alone() {
        // 0.1 is not a float32, 1e-30 squared is not a normal bfloat16.
        assert_eq!(float(BinOp::Add, 0.1, 0.2, Scalar::F32), None);
        let tiny = 2f64.powi(-70);
        assert_eq!(float(BinOp::Mul, tiny, tiny, Scalar::BF16), None);
        assert_eq!(float(BinOp::Div, 0.0, 0.0, Scalar::F32), None);
        assert_eq!(float(BinOp::Add, 1.0, 1.0, Scalar::F8E4M3FN), None);
        assert_eq!(float(BinOp::Min, 0.0, -0.0, Scalar::F32), None);
    }

    #[test]
    fn conversions() {
        assert_eq!(float_to_int(-2.9, Scalar::F64, Scalar::I32), Some(-2));
        assert_eq!(float_to_int(3e9, Scalar::F64, Scalar::I32), None);
        assert_eq!(int_to_float(16_777_217, Scalar::F32), Some(16_777_216.0));
        assert_eq!(int_to_float(2049, Scalar::F16), None);
        assert_eq!(
            float_to_float(1.0 / 3.0, Scalar::F64, Scalar::F32),
            Some((1.0f64 / 3.0) as f32 as f64)
        );
        assert_eq!(float_to_float(1.0 / 3.0, Scalar::F64, Scalar::F16), None);
    }
}
