//! The steps of a division: scale what would leave the range of normal floats, and put the
//! quotient right at the end.
//!
//! A quotient is computed from a reciprocal by products and fused sums. `v_div_scale` moves the
//! denominator or the numerator by a power of two where a step would meet a float too small to be
//! normal, and says in a mask where the quotient is off by that power. `v_div_fmas` does the last
//! sum and moves it back, up where it is large and down where it is small, rounding once.
//! `v_div_fixup` gives the sign, and the results of infinities, zeros and NaN.

use crate::asm::Instruction;
use crate::isa::{Opcode, Ty};

use super::super::fault::Fault;
use super::super::float::{fma_to_odd, power_of_two, scaled};
use super::super::wave::{LANES, Wave, marks};
use super::double;
use super::map::{double_three, float_three, half_three};

impl Wave {
    /// The steps of a division. `None`: none of these.
    pub(super) fn divide(&mut self, instruction: &Instruction) -> Result<Option<()>, Fault> {
        use Opcode::*;
        match instruction.op {
            v_div_scale_f32 => {
                let s = self.sources(instruction)?;
                let mut values = [0; LANES];
                let mut mask = 0;
                for lane in 0..LANES {
                    let [value, denominator, numerator] = s.map(|s| f32::from_bits(s[lane]));
                    let (value, off) = scale(value, denominator, numerator);
                    values[lane] = value.to_bits();
                    mask |= u64::from(off) << lane;
                }
                self.put(instruction, values)?;
                self.set_mask(instruction.destination(1)?, mask)?;
            }
            v_div_scale_f64 => {
                let [value, denominator, numerator] =
                    [0, 1, 2].map(|index| self.wide_source(instruction, index));
                let (value, denominator, numerator) = (value?, denominator?, numerator?);
                let mut values = [0; LANES];
                let mut mask = 0;
                for lane in 0..LANES {
                    let (value, off) = scale_double(
                        f64::from_bits(value[lane]),
                        f64::from_bits(denominator[lane]),
                        f64::from_bits(numerator[lane]),
                    );
                    values[lane] = value.to_bits();
                    mask |= u64::from(off) << lane;
                }
                self.put_wide(instruction, values)?;
                self.set_mask(instruction.destination(1)?, mask)?;
            }
            v_div_fmas_f32 => {
                // Small floats are never taken for zeros here.
                let mut s = [[0; LANES]; 3];
                for (index, values) in s.iter_mut().enumerate() {
                    *values = self.unflushed(instruction, index)?;
                }
                let vcc = self.vcc;
                let mut values = [0; LANES];
                for lane in 0..LANES {
                    let [a, b, c] = s.map(|s| f32::from_bits(s[lane]));
                    let exponent = match vcc >> lane & 1 {
                        0 => 0,
                        _ if c.abs() >= 2.0 => 64,
                        _ => -64,
                    };
                    // A double holds the sum and its product, so this rounds once.
                    let sum = fma_to_odd(a, b, c) * power_of_two(exponent);
                    values[lane] = (sum as f32).to_bits();
                }
                self.put(instruction, values)?;
            }
            v_div_fmas_f64 => {
                let [a, b, c] = [0, 1, 2].map(|index| self.wide_source(instruction, index));
                let (a, b, c) = (a?, b?, c?);
                let vcc = self.vcc;
                let mut values = [0; LANES];
                for lane in 0..LANES {
                    let [a, b, c] = [a, b, c].map(|s| f64::from_bits(s[lane]));
                    let value = match vcc >> lane & 1 {
                        0 => a.mul_add(b, c),
                        _ if c.abs() >= 2.0 => a.mul_add(b, c) * power_of_two(128),
                        _ => fma_scaled_down(a, b, c),
                    };
                    values[lane] = value.to_bits();
                }
                self.put_wide(instruction, values)?;
            }
            v_div_fixup_f32 => {
                let s = self.sources(instruction)?;
                self.put(instruction, float_three(&s, fix_up))?;
            }
            v_div_fixup_f16 => {
                let s = self.sources(instruction)?;
                self.put(instruction, half_three(&s, fix_up_half))?;
            }
            v_div_fixup_f64 => {
                let [a, b, c] = [0, 1, 2].map(|index| self.wide_source(instruction, index));
                let values = double_three(&a?, &b?, &c?, fix_up_double);
                self.put_wide(instruction, values)?;
            }
            _ => return Ok(None),
        }
        Ok(Some(()))
    }

    /// A float source with its sign marks and nothing else done to it.
    fn unflushed(&self, instruction: &Instruction, index: usize) -> Result<[u32; LANES], Fault> {
        let operand = instruction.source_operand(index)?;
        let marks = marks(operand);
        let values = self.lanes(operand, Ty::f32, 0)?;
        Ok(values.map(|value| {
            let value = if marks.abs {
                value & 0x7fff_ffff
            } else {
                value
            };
            if marks.neg {
                value ^ 0x8000_0000
            } else {
                value
            }
        }))
    }
}

/// The biased exponent of a float's bits.
fn exponent(value: f32) -> i32 {
    (value.to_bits() >> 23 & 0xff) as i32
}

fn exponent_double(value: f64) -> i32 {
    (value.to_bits() >> 52 & 0x7ff) as i32
}

/// One of a division's operands as its steps take it, and whether the quotient is off for that.
fn scale(value: f32, denominator: f32, numerator: f32) -> (f32, bool) {
    let is_denominator = value == denominator;
    let is_numerator = value == numerator;
    // What 1/d and n/d would be too small for.
    let small_reciprocal = denominator.abs() > 2f32.powi(126);
    let quotient = (f64::from(numerator) / f64::from(denominator)).abs();
    let small_quotient = quotient < f64::from(f32::MIN_POSITIVE) && quotient > 0.0;
    if numerator == 0.0 || denominator == 0.0 {
        (f32::NAN, false)
    } else if exponent(numerator) - exponent(denominator) >= 96 {
        // The quotient is near the largest float.
        let moved = if is_denominator {
            scaled(value, 64)
        } else {
            value
        };
        (moved, true)
    } else if denominator.is_subnormal() {
        (scaled(value, 64), false)
    } else if small_reciprocal && small_quotient {
        let moved = if is_denominator {
            scaled(value, -64)
        } else {
            value
        };
        (moved, true)
    } else if small_reciprocal {
        (scaled(value, -64), false)
    } else if small_quotient {
        let moved = if is_numerator {
            scaled(value, 64)
        } else {
            value
        };
        (moved, true)
    } else if exponent(numerator) <= 23 {
        (scaled(value, 64), false)
    } else {
        (value, false)
    }
}

/// The same of doubles, with other bounds.
fn scale_double(value: f64, denominator: f64, numerator: f64) -> (f64, bool) {
    let is_denominator = value == denominator;
    let is_numerator = value == numerator;
    let small_reciprocal = denominator.abs() > power_of_two(1022);
    let quotient = (numerator / denominator).abs();
    let small_quotient = quotient < f64::MIN_POSITIVE;
    if numerator == 0.0 || denominator == 0.0 {
        (f64::NAN, false)
    } else if exponent_double(numerator) - exponent_double(denominator) >= 768 {
        let moved = if is_denominator {
            double::scaled(value, 128)
        } else {
            value
        };
        (moved, true)
    } else if denominator.is_subnormal() {
        (double::scaled(value, 128), false)
    } else if small_reciprocal && small_quotient {
        let moved = if is_denominator {
            double::scaled(value, -128)
        } else {
            value
        };
        (moved, true)
    } else if small_reciprocal {
        (double::scaled(value, -128), false)
    } else if small_quotient {
        let moved = if is_numerator {
            double::scaled(value, 128)
        } else {
            value
        };
        (moved, true)
    } else if exponent_double(numerator) <= 53 {
        (double::scaled(value, 128), false)
    } else {
        (value, false)
    }
}

/// `(a * b + c) * 2^-128`, rounded once, where the sum is a normal double.
fn fma_scaled_down(a: f64, b: f64, c: f64) -> f64 {
    let sum = a.mul_add(b, c);
    let down = sum * power_of_two(-128);
    if !sum.is_normal() || down.is_normal() {
        return down;
    }
    // What the sum lost, by its sign: the product in two parts, then sums in two parts.
    let product = a * b;
    let product_low = a.mul_add(b, -product);
    let (low, low_rest) = two_sum(c, product_low);
    let (high, high_rest) = two_sum(product, low);
    let error = ((high - sum) + high_rest) + low_rest;
    // The fraction and how many of its bits go.
    let bits = sum.to_bits();
    let fraction = bits & ((1 << 52) - 1) | 1 << 52;
    let gone = (1 + 128 - exponent_double(sum)).clamp(1, 60) as u32;
    let rest = fraction & ((1 << gone) - 1);
    let half = 1 << (gone - 1);
    let kept = fraction >> gone;
    // The error has the sum's sign where it makes the magnitude larger.
    let larger = if sum > 0.0 { error } else { -error };
    let up = rest > half || (rest == half && (larger > 0.0 || (larger == 0.0 && kept & 1 == 1)));
    f64::from_bits(bits & 1 << 63 | (kept + u64::from(up)))
}

/// A sum and what it lost.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

fn fix_up(quotient: f32, denominator: f32, numerator: f32) -> f32 {
    // A quotient below half of the smallest float.
    if exponent(numerator) - exponent(denominator) < -150
        && numerator.is_finite()
        && denominator.is_finite()
    {
        let sign = denominator.is_sign_negative() ^ numerator.is_sign_negative();
        return if sign { -0.0 } else { 0.0 };
    }
    fix_up_double(
        f64::from(quotient),
        f64::from(denominator),
        f64::from(numerator),
    ) as f32
}

fn fix_up_half(quotient: f32, denominator: f32, numerator: f32) -> f32 {
    fix_up_double(
        f64::from(quotient),
        f64::from(denominator),
        f64::from(numerator),
    ) as f32
}

fn fix_up_double(quotient: f64, denominator: f64, numerator: f64) -> f64 {
    let sign = denominator.is_sign_negative() ^ numerator.is_sign_negative();
    let signed = |magnitude: f64| if sign { -magnitude } else { magnitude };
    let nan = f64::from_bits(0xfff8_0000_0000_0000);
    if numerator.is_nan() {
        numerator
    } else if denominator.is_nan() {
        denominator
    } else if (numerator == 0.0 && denominator == 0.0)
        || (numerator.is_infinite() && denominator.is_infinite())
    {
        nan
    } else if denominator == 0.0 || numerator.is_infinite() {
        signed(f64::INFINITY)
    } else if denominator.is_infinite()
        || numerator == 0.0
        || exponent_double(numerator) - exponent_double(denominator) < -1075
    {
        signed(0.0)
    } else if quotient.is_nan() {
        // Steps make NaN of numbers only where the quotient is past the largest by far.
        signed(f64::INFINITY)
    } else {
        signed(quotient.abs())
    }
}
