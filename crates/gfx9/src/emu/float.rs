//! Small floats and their bits, and sums that are rounded once.

/// The value of a float of 16 bits.
pub fn f16_value(bits: u16) -> f32 {
    const EXPONENTS: u32 = 0x7c00 << 13;
    // 2^112: the difference of the two types' biases.
    const SCALE: f32 = f32::from_bits((112 + 127) << 23);
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7fff) << 13;
    // Subnormals come out normal by the product; infinities and NaN have no product.
    let finite = (f32::from_bits(magnitude) * SCALE).to_bits();
    let other = magnitude | 0x7f80_0000;
    f32::from_bits(sign | if magnitude < EXPONENTS { finite } else { other })
}

/// The nearest float of 16 bits, ties to even.
pub fn f16_from_f32(value: f32) -> u16 {
    let sign = (value.to_bits() >> 16) & 0x8000;
    let magnitude = value.to_bits() & 0x7fff_ffff;
    // From 2^-14 on: round away 13 bits; a carry runs into the exponent by itself.
    let odd = magnitude >> 13 & 1;
    let normal = (magnitude.wrapping_add(0xfff + odd) >> 13).wrapping_sub(112 << 10);
    // Below: the sum's last bit is 2^-24, the smallest subnormal.
    let small = (f32::from_bits(magnitude) + 0.5)
        .to_bits()
        .wrapping_sub(0.5f32.to_bits());
    let finite = if magnitude < 0x3880_0000 {
        small
    } else {
        normal
    };
    let bounded = if magnitude < 0x477f_f000 {
        finite
    } else {
        0x7c00
    };
    let bits = if magnitude > 0x7f80_0000 {
        0x7e00
    } else {
        bounded
    };
    (sign | bits) as u16
}

/// The nearest float of 16 bits, ties to even.
pub fn f16_bits(value: f64) -> u16 {
    f16_from_f32(f32_to_odd(value))
}

/// The float of 16 bits next to zero from a value: what is past the largest is the largest.
pub fn f16_toward_zero(value: f32) -> u16 {
    let nearest = f16_from_f32(value);
    if value.is_infinite() || value.is_nan() || f16_value(nearest).abs() <= value.abs() {
        nearest
    } else {
        nearest - 1
    }
}

/// The value of a bfloat16.
pub fn bf16_value(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// The nearest bfloat16, ties to even.
pub fn bf16_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    // A NaN stays one, and quiet.
    let nan = bits >> 16 | 0x40;
    (if bits & 0x7fff_ffff > 0x7f80_0000 {
        nan
    } else {
        rounded
    }) as u16
}

/// The float of 32 bits that a value is rounded to so that rounding it again is as rounding once:
/// what is between two floats goes to the one whose last bit is set.
pub fn f32_to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let back = f64::from(nearest);
    let bits = nearest.to_bits();
    let exact = back == value || nearest.is_nan() || value.is_infinite();
    let odd = if back.abs() > value.abs() {
        bits.wrapping_sub(1)
    } else {
        bits | 1
    };
    f32::from_bits(if exact || bits & 1 == 1 { bits } else { odd })
}

/// `a * b + c`, rounded once to odd: a double whose own rounding to fewer bits is right.
pub fn fma_to_odd(a: f32, b: f32, c: f32) -> f64 {
    // The product has 48 bits, and is exact.
    let product = f64::from(a) * f64::from(b);
    let addend = f64::from(c);
    let sum = product + addend;
    // What the sum lost.
    let part = sum - product;
    let error = (product - (sum - part)) + (addend - part);
    let bits = sum.to_bits();
    let away = (error > 0.0) == (sum > 0.0);
    let odd = if away {
        bits.wrapping_add(1)
    } else {
        bits.wrapping_sub(1)
    };
    // Of what is no number there is no error to tell.
    let exact = error == 0.0 || !sum.is_finite();
    f64::from_bits(if exact || bits & 1 == 1 { bits } else { odd })
}

/// `a * b + c`, rounded once.
pub fn fma(a: f32, b: f32, c: f32) -> f32 {
    fma_to_odd(a, b, c) as f32
}

/// `value * 2^exponent`, rounded once.
pub fn scaled(value: f32, exponent: i32) -> f32 {
    // Beyond these nothing changes, and a double holds every product in between.
    let exponent = exponent.clamp(-300, 300);
    (f64::from(value) * power_of_two(exponent)) as f32
}

/// `2^exponent`, of an exponent that a normal double has.
pub fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// A float too small to be normal as a zero of its sign.
pub fn flush(bits: u32) -> u32 {
    if bits & 0x7f80_0000 == 0 {
        bits & 0x8000_0000
    } else {
        bits
    }
}

/// Floats of 8 bits and fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Small {
    /// e4m3 with NaN and without infinities, as gfx950 has it.
    Fp8,
    /// e5m2 as IEEE would have it, of gfx950.
    Bf8,
    /// e4m3 and e5m2 of gfx942: one zero, one NaN (0x80), biases of 8 and 16.
    Fp8Fnuz,
    Bf8Fnuz,
    /// e2m3, e3m2 and e2m1: numbers alone.
    Fp6,
    Bf6,
    Fp4,
}

impl Small {
    /// Bits of the exponent and of the fraction, and the exponent's bias.
    const fn shape(self) -> (u32, u32, i32) {
        match self {
            Small::Fp8 => (4, 3, 7),
            Small::Bf8 => (5, 2, 15),
            Small::Fp8Fnuz => (4, 3, 8),
            Small::Bf8Fnuz => (5, 2, 16),
            Small::Fp6 => (2, 3, 1),
            Small::Bf6 => (3, 2, 3),
            Small::Fp4 => (2, 1, 1),
        }
    }

    /// How many bits it has.
    pub const fn bits(self) -> u32 {
        let (exponent, fraction, _) = self.shape();
        1 + exponent + fraction
    }

    /// The largest number, without its sign.
    const fn largest(self) -> u8 {
        match self {
            Small::Fp8 => 0x7e,
            Small::Bf8 => 0x7b,
            Small::Fp8Fnuz | Small::Bf8Fnuz => 0x7f,
            Small::Fp6 | Small::Bf6 => 0x1f,
            Small::Fp4 => 0x7,
        }
    }

    /// The values of all bit patterns; bits above the type's own are not looked at.
    pub const fn values(self) -> &'static [f32; 256] {
        const fn table(small: Small) -> [f32; 256] {
            let mut values = [0.0; 256];
            let mut bits = 0;
            while bits < 256 {
                values[bits] = small.decode(bits as u8);
                bits += 1;
            }
            values
        }
        static FP8: [f32; 256] = table(Small::Fp8);
        static BF8: [f32; 256] = table(Small::Bf8);
        static FP8_FNUZ: [f32; 256] = table(Small::Fp8Fnuz);
        static BF8_FNUZ: [f32; 256] = table(Small::Bf8Fnuz);
        static FP6: [f32; 256] = table(Small::Fp6);
        static BF6: [f32; 256] = table(Small::Bf6);
        static FP4: [f32; 256] = table(Small::Fp4);
        match self {
            Small::Fp8 => &FP8,
            Small::Bf8 => &BF8,
            Small::Fp8Fnuz => &FP8_FNUZ,
            Small::Bf8Fnuz => &BF8_FNUZ,
            Small::Fp6 => &FP6,
            Small::Bf6 => &BF6,
            Small::Fp4 => &FP4,
        }
    }

    const fn decode(self, bits: u8) -> f32 {
        let (exponents, fractions, bias) = self.shape();
        let sign = bits >> (self.bits() - 1) & 1;
        let magnitude = bits & ((1 << (exponents + fractions)) - 1);
        match self {
            Small::Fp8Fnuz | Small::Bf8Fnuz if bits == 0x80 => return f32::NAN,
            Small::Fp8 if magnitude == 0x7f => return f32::NAN,
            Small::Bf8 if magnitude > 0x7c => return f32::NAN,
            Small::Bf8 if magnitude == 0x7c => {
                return if sign == 1 {
                    f32::NEG_INFINITY
                } else {
                    f32::INFINITY
                };
            }
            _ => {}
        }
        let exponent = (magnitude >> fractions) as i32;
        let fraction = (magnitude & ((1 << fractions) - 1)) as i32;
        let (units, exponent) = match exponent {
            0 => (fraction, 1),
            exponent => (fraction + (1 << fractions), exponent),
        };
        let unit = f32::from_bits(((exponent - bias - fractions as i32 + 127) as u32) << 23);
        let value = units as f32 * unit;
        if sign == 1 { -value } else { value }
    }

    /// The nearest, ties to even. Past the largest is the largest where that is asked for or there
    /// is nothing else; otherwise infinity or NaN, whichever the type has.
    pub fn encode(self, value: f32, saturate: bool) -> u8 {
        let (exponents, fractions, bias) = self.shape();
        let fnuz = matches!(self, Small::Fp8Fnuz | Small::Bf8Fnuz);
        let sign = (value.is_sign_negative() as u8) << (exponents + fractions);
        if value.is_nan() {
            return match self {
                Small::Fp8 | Small::Bf8 => sign | 0x7f,
                Small::Fp8Fnuz | Small::Bf8Fnuz => 0x80,
                Small::Fp6 | Small::Bf6 | Small::Fp4 => self.largest(),
            };
        }
        // No type's largest number is near this.
        let magnitude = f64::from(value.abs().min(1e6));
        let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(1 - bias);
        let units =
            (magnitude * power_of_two(fractions as i32 - exponent)).round_ties_even() as i32;
        // A carry of the units runs into the exponent by itself.
        let code = ((exponent + bias - 1) << fractions) + units;
        let past = code > i32::from(self.largest());
        match self {
            _ if !past && fnuz && code == 0 => 0,
            _ if !past => sign | code as u8,
            _ if saturate => sign | self.largest(),
            Small::Fp8 => sign | 0x7f,
            Small::Bf8 => sign | 0x7c,
            Small::Fp8Fnuz | Small::Bf8Fnuz => 0x80,
            Small::Fp6 | Small::Bf6 | Small::Fp4 => sign | self.largest(),
        }
    }
}
