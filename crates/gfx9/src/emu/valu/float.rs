//! Floats of 32 and 16 bits. What hardware computes to one unit in the last place is rounded
//! right here, from doubles.

use std::f64::consts::TAU;

use crate::isa::Opcode;

use super::super::float::{
    bf16_value, f16_bits, f16_value, f32_to_odd, flush, fma, power_of_two, scaled,
};
use super::super::wave::Lanes;
use super::map::{
    Sources, float_one, float_three, float_two, half_one, half_three, half_two, one, three, two,
};

/// Operations whose result is a float of 32 bits, or of one's parts.
pub(super) fn single(op: Opcode, s: &Sources) -> Option<Lanes> {
    use Opcode::*;
    Some(match op {
        v_add_f32 => float_two(s, |a, b| a + b),
        v_sub_f32 => float_two(s, |a, b| a - b),
        v_subrev_f32 => float_two(s, |a, b| b - a),
        v_mul_f32 => float_two(s, |a, b| a * b),
        v_mul_legacy_f32 => float_two(s, |a, b| if a == 0.0 || b == 0.0 { 0.0 } else { a * b }),
        v_min_f32 => float_two(s, min),
        v_max_f32 => float_two(s, max),
        v_fmac_f32 | v_fma_f32 | v_fmamk_f32 | v_fmaak_f32 => float_three(s, fma),
        v_min3_f32 => float_three(s, |a, b, c| min(min(a, b), c)),
        v_max3_f32 => float_three(s, |a, b, c| max(max(a, b), c)),
        v_med3_f32 => float_three(s, med3),
        v_minimum3_f32 => float_three(s, |a, b, c| minimum(minimum(a, b), c)),
        v_maximum3_f32 => float_three(s, |a, b, c| maximum(maximum(a, b), c)),
        v_ldexp_f32 => two(s, |a, b| scaled(f32::from_bits(a), b as i32).to_bits()),
        v_fract_f32 => float_one(s, |a| (a - a.floor()).min(f32::from_bits(0x3f7f_ffff))),
        v_trunc_f32 => float_one(s, f32::trunc),
        v_ceil_f32 => float_one(s, f32::ceil),
        v_rndne_f32 => float_one(s, f32::round_ties_even),
        v_floor_f32 => float_one(s, f32::floor),
        v_frexp_mant_f32 => float_one(s, |a| mantissa(f64::from(a)) as f32),
        v_frexp_exp_i32_f32 => one(s, |a| exponent(f64::from(f32::from_bits(a))) as u32),
        v_rcp_f32 | v_rcp_iflag_f32 => transcendental(s, |a| 1.0 / a),
        v_rsq_f32 => transcendental(s, |a| 1.0 / a.sqrt()),
        v_sqrt_f32 => transcendental(s, f64::sqrt),
        v_exp_f32 | v_exp_legacy_f32 => transcendental(s, f64::exp2),
        v_log_f32 | v_log_legacy_f32 => transcendental(s, f64::log2),
        v_sin_f32 => float_one(s, |a| sine(f64::from(a)) as f32),
        v_cos_f32 => float_one(s, |a| cosine(f64::from(a)) as f32),
        v_dot2c_f32_f16 => three(s, |a, b, c| dot(a, b, c, normal_f16)),
        v_dot2c_f32_bf16 => three(s, |a, b, c| dot(a, b, c, normal_bf16)),
        _ => return None,
    })
}

/// Operations whose result is a float of 16 bits, or of one's parts.
pub(super) fn half(op: Opcode, s: &Sources) -> Option<Lanes> {
    use Opcode::*;
    // Sums, products and roots in 24 bits round to 11 as if rounded once.
    Some(match op {
        v_add_f16 => half_two(s, |a, b| a + b),
        v_sub_f16 => half_two(s, |a, b| a - b),
        v_subrev_f16 => half_two(s, |a, b| b - a),
        v_mul_f16 => half_two(s, |a, b| a * b),
        v_min_f16 => half_two(s, min),
        v_max_f16 => half_two(s, max),
        v_fma_f16 => half_three(s, fma_half),
        v_min3_f16 => half_three(s, |a, b, c| min(min(a, b), c)),
        v_max3_f16 => half_three(s, |a, b, c| max(max(a, b), c)),
        v_med3_f16 => half_three(s, med3),
        v_ldexp_f16 => two(s, |a, b| {
            let power = power_of_two(i32::from(b as i16).clamp(-100, 100));
            u32::from(f16_bits(f64::from(f16_value(a as u16)) * power))
        }),
        v_fract_f16 => half_one(s, |a| (a - a.floor()).min(f16_value(0x3bff))),
        v_trunc_f16 => half_one(s, f32::trunc),
        v_ceil_f16 => half_one(s, f32::ceil),
        v_rndne_f16 => half_one(s, f32::round_ties_even),
        v_floor_f16 => half_one(s, f32::floor),
        v_frexp_mant_f16 => half_one(s, |a| mantissa(f64::from(a)) as f32),
        v_frexp_exp_i16_f16 => one(s, |a| {
            exponent(f64::from(f16_value(a as u16))) as u16 as u32
        }),
        v_rcp_f16 => half_double(s, |a| 1.0 / a),
        v_rsq_f16 => half_double(s, |a| 1.0 / a.sqrt()),
        v_sqrt_f16 => half_double(s, f64::sqrt),
        v_exp_f16 => half_double(s, f64::exp2),
        v_log_f16 => half_double(s, f64::log2),
        v_sin_f16 => half_double(s, sine),
        v_cos_f16 => half_double(s, cosine),
        _ => return None,
    })
}

/// The fused sum of halves. A double holds it exactly, or else so nearly that it rounds alike.
pub(super) fn fma_half(a: f32, b: f32, c: f32) -> f32 {
    f32_to_odd(f64::from(a) * f64::from(b) + f64::from(c))
}

/// The smaller; of a number and a NaN the number, of two zeros the negative one.
pub(super) fn min(a: f32, b: f32) -> f32 {
    if a.is_nan() {
        b
    } else if b.is_nan() || a < b || (a == b && a.is_sign_negative()) {
        a
    } else {
        b
    }
}

/// The larger; of a number and a NaN the number, of two zeros the positive one.
pub(super) fn max(a: f32, b: f32) -> f32 {
    if a.is_nan() {
        b
    } else if b.is_nan() || a > b || (a == b && b.is_sign_negative()) {
        a
    } else {
        b
    }
}

/// The smaller, or NaN where there is one.
pub(super) fn minimum(a: f32, b: f32) -> f32 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => a,
        (_, true) => b,
        _ => min(a, b),
    }
}

/// The larger, or NaN where there is one.
pub(super) fn maximum(a: f32, b: f32) -> f32 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => a,
        (_, true) => b,
        _ => max(a, b),
    }
}

/// The one in the middle; the least where one is NaN.
fn med3(a: f32, b: f32, c: f32) -> f32 {
    if a.is_nan() || b.is_nan() || c.is_nan() {
        return min(min(a, b), c);
    }
    let largest = max(max(a, b), c);
    if largest == a {
        max(b, c)
    } else if largest == b {
        max(a, c)
    } else {
        max(a, b)
    }
}

/// The unit of transcendental functions takes and gives no float too small to be normal.
fn transcendental(s: &Sources, f: impl Fn(f64) -> f64) -> Lanes {
    one(s, |a| {
        let a = f32::from_bits(flush(a));
        flush((f(f64::from(a)) as f32).to_bits())
    })
}

fn half_double(s: &Sources, f: impl Fn(f64) -> f64) -> Lanes {
    one(s, |a| {
        u32::from(f16_bits(f(f64::from(f16_value(a as u16)))))
    })
}

/// The sine of so many turns.
fn sine(turns: f64) -> f64 {
    let part = turns - turns.trunc();
    // A multiple of a half turn is a zero of the argument's sign.
    if (2.0 * part).fract() == 0.0 {
        0.0f64.copysign(turns)
    } else {
        (part * TAU).sin()
    }
}

/// The cosine of so many turns.
fn cosine(turns: f64) -> f64 {
    let part = turns - turns.trunc();
    if part.abs() == 0.25 || part.abs() == 0.75 {
        0.0
    } else {
        (part * TAU).cos()
    }
}

/// The fraction of `fraction * 2^exponent`, at least a half and less than 1.
pub(super) fn mantissa(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let bits = normal(value).0.to_bits();
    f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52)
}

/// The exponent of `fraction * 2^exponent`; 0 of what has none.
pub(super) fn exponent(value: f64) -> i32 {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    let (value, scale) = normal(value);
    (value.to_bits() >> 52 & 0x7ff) as i32 - 1022 - scale
}

/// A double made normal, and by which power of two.
fn normal(value: f64) -> (f64, i32) {
    match value.is_subnormal() {
        true => (value * power_of_two(64), 64),
        false => (value, 0),
    }
}

/// Two products added to a sum: in doubles, and rounded once. The unit that does this takes and
/// gives no float too small to be normal.
pub(super) fn dot(a: u32, b: u32, c: u32, value: impl Fn(u16) -> f32) -> u32 {
    let part = |word: u32, at: u32| f64::from(value((word >> (16 * at)) as u16));
    let products = part(a, 0) * part(b, 0) + part(a, 1) * part(b, 1);
    let sum = f64::from(f32::from_bits(flush(c))) + products;
    flush((sum as f32).to_bits())
}

/// The value of a float of 16 bits that is normal, or else zero.
pub(super) fn normal_f16(bits: u16) -> f32 {
    f16_value(if bits & 0x7c00 == 0 { 0 } else { bits })
}

pub(super) fn normal_bf16(bits: u16) -> f32 {
    bf16_value(if bits & 0x7f80 == 0 { 0 } else { bits })
}
