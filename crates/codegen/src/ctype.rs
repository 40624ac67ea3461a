//! C types and constants of the language's scalars.

use tilewright_ir::{Scalar, small_float};

use crate::device::Piece;

/// The C type of a value.
pub(crate) const fn ctype(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "bool",
        Scalar::I4 => "tw::i4",
        Scalar::I8 => "signed char",
        Scalar::I16 => "short",
        Scalar::I32 => "int",
        Scalar::I64 => "long long",
        Scalar::U4 => "tw::u4",
        Scalar::U8 => "unsigned char",
        Scalar::U16 => "unsigned short",
        Scalar::U32 => "unsigned",
        Scalar::U64 | Scalar::Handle => "unsigned long long",
        Scalar::F16 => "tw::f16",
        Scalar::F32 | Scalar::TF32 => "float",
        Scalar::F64 => "double",
        Scalar::BF16 => "tw::bf16",
        Scalar::F8E4M3FN => "tw::e4m3",
        Scalar::F8E4M3FNUZ => "tw::e4m3fnuz",
        Scalar::F8E5M2 => "tw::e5m2",
        Scalar::F8E5M2FNUZ => "tw::e5m2fnuz",
        Scalar::F8E8M0 => "tw::e8m0",
        Scalar::F6E2M3 => "tw::e2m3",
        Scalar::F6E3M2 => "tw::e3m2",
        Scalar::F4E2M1 => "tw::e2m1",
    }
}

/// The header piece that defines the type.
pub(crate) const fn piece_of(scalar: Scalar) -> Option<Piece> {
    match scalar {
        Scalar::I4 | Scalar::U4 => Some(Piece::Int4),
        Scalar::F16 => Some(Piece::F16),
        Scalar::BF16 => Some(Piece::Bf16),
        Scalar::F8E4M3FN | Scalar::F8E5M2 => Some(Piece::Fp8),
        Scalar::F8E4M3FNUZ | Scalar::F8E5M2FNUZ => Some(Piece::Fnuz),
        Scalar::F8E8M0 | Scalar::F6E2M3 | Scalar::F6E3M2 | Scalar::F4E2M1 => Some(Piece::Small),
        Scalar::Bool
        | Scalar::I8
        | Scalar::I16
        | Scalar::I32
        | Scalar::I64
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::U64
        | Scalar::F32
        | Scalar::TF32
        | Scalar::F64
        | Scalar::Handle => None,
    }
}

/// Whether arithmetic of the type goes through float32 and is rounded back.
pub(crate) const fn is_narrow_float(scalar: Scalar) -> bool {
    scalar.is_float() && !matches!(scalar, Scalar::F32 | Scalar::F64)
}

/// Whether register arrays of the type are packed words rather than C arrays.
pub(crate) const fn is_packed(scalar: Scalar) -> bool {
    scalar.bits() < 32
}

/// An integer constant.
pub(crate) fn int_constant(scalar: Scalar, value: i128) -> String {
    match scalar {
        Scalar::Bool => (value != 0).to_string(),
        Scalar::I64 if value == i64::MIN.into() => "(-9223372036854775807ll - 1)".to_string(),
        Scalar::I64 => format!("{value}ll"),
        Scalar::U32 => format!("{value}u"),
        Scalar::U64 | Scalar::Handle => format!("{value}ull"),
        Scalar::I32 if value == i32::MIN.into() => "(-2147483647 - 1)".to_string(),
        Scalar::I4 | Scalar::U4 => format!("{}({value})", ctype(scalar)),
        Scalar::I8 | Scalar::U8 | Scalar::I16 | Scalar::U16 => {
            format!("({}){value}", ctype(scalar))
        }
        _ => value.to_string(),
    }
}

/// A float constant.
pub(crate) fn float_constant(scalar: Scalar, value: f64) -> String {
    match scalar {
        Scalar::F64 if value.is_finite() => format!("{value:?}"),
        Scalar::F64 => format!("(double){}", special(value)),
        Scalar::F32 | Scalar::TF32 if !value.is_finite() => special(value).to_string(),
        Scalar::F32 | Scalar::TF32 => format!("{:?}f", value as f32),
        _ => {
            let bits = small_float::float_to_bits(scalar, value);
            let name = ctype(scalar);
            format!("tw::from_bits<{name}>({bits:#x} /* {value} */)")
        }
    }
}

fn special(value: f64) -> &'static str {
    match value {
        v if v.is_nan() => "tw::nan()",
        v if v > 0.0 => "tw::inf()",
        _ => "-tw::inf()",
    }
}
