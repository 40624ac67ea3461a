//! Scalar and vector types, their names and ranges, and the promotion rules of the language.

use std::fmt;

/// An element type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Scalar {
    /// Stored as one byte, 0 or 1.
    Bool,
    I4,
    I8,
    I16,
    I32,
    I64,
    U4,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
    BF16,
    /// float32 storage whose products use a 10-bit mantissa in matrix instructions.
    TF32,
    F8E4M3FN,
    F8E4M3FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    /// Powers of two only: a block scale.
    F8E8M0,
    F6E2M3,
    F6E3M2,
    F4E2M1,
    /// An address. Never an operand of arithmetic.
    Handle,
}

/// A scalar type with a lane count; one lane is a plain scalar.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DType {
    pub scalar: Scalar,
    pub lanes: u16,
}

/// Which family of arithmetic a scalar belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    Bool,
    Int,
    Uint,
    /// float16, float32, float64: the promotion rules treat these apart from the other floats.
    Ieee,
    Bf16,
    Tf32,
    F8,
    F6,
    F4,
    Handle,
}

impl Scalar {
    /// Every scalar, in the order of declaration.
    pub const ALL: [Scalar; 25] = [
        Scalar::Bool,
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
        Scalar::F16,
        Scalar::F32,
        Scalar::F64,
        Scalar::BF16,
        Scalar::TF32,
        Scalar::F8E4M3FN,
        Scalar::F8E4M3FNUZ,
        Scalar::F8E5M2,
        Scalar::F8E5M2FNUZ,
        Scalar::F8E8M0,
        Scalar::F6E2M3,
        Scalar::F6E3M2,
        Scalar::F4E2M1,
        Scalar::Handle,
    ];

    /// The name in the text form and in the tile language.
    pub const fn name(self) -> &'static str {
        match self {
            Scalar::Bool => "bool",
            Scalar::I4 => "int4",
            Scalar::I8 => "int8",
            Scalar::I16 => "int16",
            Scalar::I32 => "int32",
            Scalar::I64 => "int64",
            Scalar::U4 => "uint4",
            Scalar::U8 => "uint8",
            Scalar::U16 => "uint16",
            Scalar::U32 => "uint32",
            Scalar::U64 => "uint64",
            Scalar::F16 => "float16",
            Scalar::F32 => "float32",
            Scalar::F64 => "float64",
            Scalar::BF16 => "bfloat16",
            Scalar::TF32 => "tfloat32",
            Scalar::F8E4M3FN => "float8_e4m3fn",
            Scalar::F8E4M3FNUZ => "float8_e4m3fnuz",
            Scalar::F8E5M2 => "float8_e5m2",
            Scalar::F8E5M2FNUZ => "float8_e5m2fnuz",
            Scalar::F8E8M0 => "float8_e8m0fnu",
            Scalar::F6E2M3 => "float6_e2m3fn",
            Scalar::F6E3M2 => "float6_e3m2fn",
            Scalar::F4E2M1 => "float4_e2m1fn",
            Scalar::Handle => "handle",
        }
    }

    /// The scalar of this exact name.
    pub fn from_name(name: &str) -> Option<Scalar> {
        Scalar::ALL.into_iter().find(|s| s.name() == name)
    }

    /// The width in bits of one stored element. A bool takes a byte, an address eight.
    #[inline]
    pub const fn bits(self) -> u32 {
        match self {
            Scalar::I4 | Scalar::U4 | Scalar::F4E2M1 => 4,
            Scalar::F6E2M3 | Scalar::F6E3M2 => 6,
            Scalar::Bool
            | Scalar::I8
            | Scalar::U8
            | Scalar::F8E4M3FN
            | Scalar::F8E4M3FNUZ
            | Scalar::F8E5M2
            | Scalar::F8E5M2FNUZ
            | Scalar::F8E8M0 => 8,
            Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::BF16 => 16,
            Scalar::I32 | Scalar::U32 | Scalar::F32 | Scalar::TF32 => 32,
            Scalar::I64 | Scalar::U64 | Scalar::F64 | Scalar::Handle => 64,
        }
    }

    pub const fn class(self) -> Class {
        match self {
            Scalar::Bool => Class::Bool,
            Scalar::I4 | Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => Class::Int,
            Scalar::U4 | Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => Class::Uint,
            Scalar::F16 | Scalar::F32 | Scalar::F64 => Class::Ieee,
            Scalar::BF16 => Class::Bf16,
            Scalar::TF32 => Class::Tf32,
            Scalar::F8E4M3FN
            | Scalar::F8E4M3FNUZ
            | Scalar::F8E5M2
            | Scalar::F8E5M2FNUZ
            | Scalar::F8E8M0 => Class::F8,
            Scalar::F6E2M3 | Scalar::F6E3M2 => Class::F6,
            Scalar::F4E2M1 => Class::F4,
            Scalar::Handle => Class::Handle,
        }
    }

    /// Signed or unsigned integer; bool is not one.
    pub const fn is_int(self) -> bool {
        matches!(self.class(), Class::Int | Class::Uint)
    }

    pub const fn is_signed_int(self) -> bool {
        matches!(self.class(), Class::Int)
    }

    pub const fn is_float(self) -> bool {
        !matches!(
            self.class(),
            Class::Bool | Class::Int | Class::Uint | Class::Handle
        )
    }

    /// Smallest and largest value of an integer or bool type.
    pub const fn int_range(self) -> Option<(i128, i128)> {
        match self.class() {
            Class::Bool => Some((0, 1)),
            Class::Int => Some((-(1 << (self.bits() - 1)), (1 << (self.bits() - 1)) - 1)),
            Class::Uint => Some((0, (1 << self.bits()) - 1)),
            _ => None,
        }
    }

    /// The value modulo 2^bits, in the range of this integer or bool type.
    /// Other types return the value unchanged.
    pub const fn wrap(self, value: i128) -> i128 {
        match self.class() {
            Class::Bool => (value != 0) as i128,
            Class::Int => {
                let shift = 128 - self.bits();
                (value << shift) >> shift
            }
            Class::Uint => value & ((1 << self.bits()) - 1),
            _ => value,
        }
    }
}

impl DType {
    pub const BOOL: DType = DType::scalar(Scalar::Bool);
    pub const I8: DType = DType::scalar(Scalar::I8);
    pub const I32: DType = DType::scalar(Scalar::I32);
    pub const I64: DType = DType::scalar(Scalar::I64);
    pub const U8: DType = DType::scalar(Scalar::U8);
    pub const U32: DType = DType::scalar(Scalar::U32);
    pub const U64: DType = DType::scalar(Scalar::U64);
    pub const F16: DType = DType::scalar(Scalar::F16);
    pub const BF16: DType = DType::scalar(Scalar::BF16);
    pub const F32: DType = DType::scalar(Scalar::F32);
    pub const F64: DType = DType::scalar(Scalar::F64);
    pub const HANDLE: DType = DType::scalar(Scalar::Handle);

    pub const fn scalar(scalar: Scalar) -> DType {
        DType { scalar, lanes: 1 }
    }

    pub const fn vector(scalar: Scalar, lanes: u16) -> DType {
        DType { scalar, lanes }
    }

    /// The same element type with another lane count.
    pub const fn with_lanes(self, lanes: u16) -> DType {
        DType {
            scalar: self.scalar,
            lanes,
        }
    }

    /// Bits of all lanes together.
    pub const fn bits(self) -> u32 {
        self.scalar.bits() * self.lanes as u32
    }

    /// The most elements that one access takes: 16 bytes of them. Of six bits, of which no power of two
    /// fills these, it is 16 in 12 bytes.
    pub const fn widest_access(self) -> u32 {
        match 128 / self.bits() {
            0 => 1,
            n => 1 << n.ilog2(),
        }
    }

    /// Whether so many elements fill whole bytes, from a multiple of as many on.
    pub const fn fills_bytes(self, elements: u32) -> bool {
        (elements * self.bits()).is_multiple_of(8)
    }

    pub const fn is_scalar(self) -> bool {
        self.lanes == 1
    }

    /// Parses `float16`, `int8x4`, … Aliases of the tile language (`half`, `float`) are the
    /// front end's business.
    pub fn from_name(name: &str) -> Option<DType> {
        if let Some(scalar) = Scalar::from_name(name) {
            return Some(DType::scalar(scalar));
        }
        let (base, lanes) = name.rsplit_once('x')?;
        let lanes: u16 = lanes.parse().ok()?;
        (lanes >= 2).then_some(DType::vector(Scalar::from_name(base)?, lanes))
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scalar.name())?;
        if self.lanes != 1 {
            write!(f, "x{}", self.lanes)?;
        }
        Ok(())
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The common type of two operands, or `None` when the language has none.
///
/// Equal types stay; a scalar is broadcast to a vector; two IEEE floats take the wider; an
/// IEEE float wins over everything else; then bfloat16, fp8, fp6, fp4; bool becomes the
/// integer; integers take the wider, and the unsigned one at equal width.
pub fn promote(a: DType, b: DType) -> Option<DType> {
    let lanes = match (a.lanes, b.lanes) {
        (x, y) if x == y => x,
        (1, y) => y,
        (x, 1) => x,
        _ => return None,
    };
    promote_scalar(a.scalar, b.scalar).map(|s| DType::vector(s, lanes))
}

fn promote_scalar(a: Scalar, b: Scalar) -> Option<Scalar> {
    if a == b {
        return Some(a);
    }
    let (ca, cb) = (a.class(), b.class());
    if ca == Class::Handle || cb == Class::Handle {
        return None;
    }
    if ca == Class::Ieee && cb == Class::Ieee {
        return Some(if a.bits() >= b.bits() { a } else { b });
    }
    // In this order the float families absorb whatever stands on the other side.
    for class in [
        Class::Ieee,
        Class::Tf32,
        Class::Bf16,
        Class::F8,
        Class::F6,
        Class::F4,
    ] {
        match (ca == class, cb == class) {
            (true, true) => return None,
            (true, false) => return Some(a),
            (false, true) => return Some(b),
            (false, false) => {}
        }
    }
    match (ca, cb) {
        (Class::Bool, _) => Some(b),
        (_, Class::Bool) => Some(a),
        _ if a.bits() > b.bits() => Some(a),
        _ if b.bits() > a.bits() => Some(b),
        _ => Some(if ca == Class::Uint { a } else { b }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for s in Scalar::ALL {
            for lanes in [1, 2, 4, 16] {
                let t = DType::vector(s, lanes);
                assert_eq!(DType::from_name(&t.to_string()), Some(t));
            }
        }
        assert_eq!(DType::from_name("float16x1"), None);
        assert_eq!(DType::from_name("floaty"), None);
    }

    #[test]
    fn promotion_follows_the_language() {
        let p = |a, b| promote(DType::scalar(a), DType::scalar(b)).map(|t| t.scalar);
        assert_eq!(p(Scalar::F16, Scalar::F32), Some(Scalar::F32));
        assert_eq!(p(Scalar::F16, Scalar::I32), Some(Scalar::F16));
        assert_eq!(p(Scalar::BF16, Scalar::F16), Some(Scalar::F16));
        assert_eq!(p(Scalar::BF16, Scalar::I64), Some(Scalar::BF16));
        assert_eq!(p(Scalar::I8, Scalar::I32), Some(Scalar::I32));
        assert_eq!(p(Scalar::U8, Scalar::I32), Some(Scalar::I32));
        assert_eq!(p(Scalar::I32, Scalar::U32), Some(Scalar::U32));
        assert_eq!(p(Scalar::Bool, Scalar::U8), Some(Scalar::U8));
        assert_eq!(p(Scalar::F8E4M3FN, Scalar::F8E5M2), None);
        assert_eq!(p(Scalar::Handle, Scalar::I64), None);
        assert_eq!(
            promote(DType::F16, DType::vector(Scalar::F16, 4)),
            Some(DType::vector(Scalar::F16, 4))
        );
        assert_eq!(
            promote(DType::vector(Scalar::F16, 2), DType::vector(Scalar::F16, 4)),
            None
        );
    }

    #[test]
    fn wrapping_keeps_values_in_range() {
        assert_eq!(Scalar::I8.wrap(200), -56);
        assert_eq!(Scalar::U8.wrap(-1), 255);
        assert_eq!(Scalar::I64.wrap(1 << 63), -(1 << 63));
        assert_eq!(Scalar::U64.wrap(-1), (1 << 64) - 1);
        assert_eq!(Scalar::I4.wrap(8), -8);
        for s in Scalar::ALL {
            if let Some((lo, hi)) = s.int_range() {
                assert_eq!((s.wrap(lo), s.wrap(hi)), (lo, hi));
            }
        }
    }
}
