//! Element types. Every value of a program is a whole number that its type holds exactly, so all
//! of them are kept as `i64`.

/// An element type of the tile language.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Type {
    Bool,
    I8,
    U8,
    I16,
    I32,
    I64,
    F16,
    BF16,
    F32,
    F64,
    E4M3,
    E5M2,
}

use Type::*;

impl Type {
    pub const ALL: [Type; 12] = [Bool, I8, U8, I16, I32, I64, F16, BF16, F32, F64, E4M3, E5M2];

    pub const fn name(self) -> &'static str {
        match self {
            Bool => "bool",
            I8 => "int8",
            U8 => "uint8",
            I16 => "int16",
            I32 => "int32",
            I64 => "int64",
            F16 => "float16",
            BF16 => "bfloat16",
            F32 => "float32",
            F64 => "float64",
            E4M3 => "float8_e4m3fn",
            E5M2 => "float8_e5m2",
        }
    }

    pub const fn bits(self) -> u32 {
        match self {
            Bool | I8 | U8 | E4M3 | E5M2 => 8,
            I16 | F16 | BF16 => 16,
            I32 | F32 => 32,
            I64 | F64 => 64,
        }
    }

    pub const fn is_float(self) -> bool {
        matches!(self, F16 | BF16 | F32 | F64 | E4M3 | E5M2)
    }

    pub const fn is_int(self) -> bool {
        !self.is_float() && !matches!(self, Bool)
    }

    const fn is_ieee(self) -> bool {
        matches!(self, F16 | F32 | F64)
    }

    /// The whole numbers that are exact in this type, sums and differences included: all of an
    /// integer type, those up to the first gap of a float type.
    pub const fn range(self) -> (i64, i64) {
        match self {
            Bool => (0, 1),
            I8 => (-128, 127),
            U8 => (0, 255),
            I16 => (-32768, 32767),
            I32 => (-(1 << 31), (1 << 31) - 1),
            I64 => (i64::MIN, i64::MAX),
            F16 => (-2048, 2048),
            BF16 => (-256, 256),
            F32 => (-(1 << 24), 1 << 24),
            F64 => (-(1 << 53), 1 << 53),
            E4M3 => (-16, 16),
            E5M2 => (-8, 8),
        }
    }

    pub const fn holds(self, value: i64) -> bool {
        let (low, high) = self.range();
        low <= value && value <= high
    }

    /// The number modulo two to the bits of an integer type.
    pub const fn wrap(self, value: i128) -> i64 {
        match self {
            I8 => value as i8 as i64,
            U8 => value as u8 as i64,
            I16 => value as i16 as i64,
            I32 => value as i32 as i64,
            _ => value as i64,
        }
    }

    /// The type that an operation on two operands is done in.
    pub fn promote(self, other: Type) -> Type {
        let (a, b) = (self, other);
        if a == b {
            return a;
        }
        for wins in [F64, F32, F16, BF16, E4M3, E5M2] {
            // Two IEEE floats: the wider. Any IEEE float before the others; then bfloat16, fp8.
            if a == wins || b == wins {
                debug_assert!(wins.is_ieee() || !a.is_ieee() && !b.is_ieee());
                return wins;
            }
        }
        match (a, b) {
            (Bool, t) | (t, Bool) => t,
            _ if a.bits() != b.bits() => {
                if a.bits() > b.bits() {
                    a
                } else {
                    b
                }
            }
            _ => U8,
        }
    }
}
