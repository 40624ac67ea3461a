//! Floats of 64 bits.

use crate::asm::Instruction;
use crate::isa::{Opcode, Ty};

use super::super::fault::Fault;
use super::super::float::power_of_two;
use super::super::wave::{LANES, Wave, Wide};
use super::float::{exponent, mantissa};
use super::map::{double_one, double_three, double_two};

impl Wave {
    /// Operations on doubles, conversions from and to them. `None`: none of these.
    pub(super) fn double(&mut self, instruction: &Instruction) -> Result<Option<()>, Fault> {
        use Opcode::*;
        let op = instruction.op;
        let wide = |index: usize| match op.sources().get(index) {
            Some(Ty::f64) => self.wide_source(instruction, index),
            _ => Ok([0; LANES]),
        };
        let (a, b, c) = (wide(0)?, wide(1)?, wide(2)?);
        let word = |f: &dyn Fn(f64) -> u32| a.map(|value| f(f64::from_bits(value)));
        let narrow = match op {
            v_cvt_f32_f64 => Some(word(&|a| (a as f32).to_bits())),
            v_cvt_i32_f64 => Some(word(&|a| a as i32 as u32)),
            v_cvt_u32_f64 => Some(word(&|a| a as u32)),
            v_frexp_exp_i32_f64 => Some(word(&|a| exponent(a) as u32)),
            _ => None,
        };
        if let Some(values) = narrow {
            self.put(instruction, values)?;
            return Ok(Some(()));
        }
        let values: Wide = match op {
            v_add_f64 => double_two(&a, &b, |a, b| a + b),
            v_mul_f64 => double_two(&a, &b, |a, b| a * b),
            v_min_f64 => double_two(&a, &b, min),
            v_max_f64 => double_two(&a, &b, max),
            v_fma_f64 => double_three(&a, &b, &c, f64::mul_add),
            v_fmac_f64 => {
                let sum = self.wide(instruction.destination(0)?, Ty::f64)?;
                double_three(&a, &b, &sum, f64::mul_add)
            }
            v_ldexp_f64 => {
                let exponents = self.source(instruction, 1)?;
                let mut out = [0; LANES];
                for lane in 0..LANES {
                    let value = scaled(f64::from_bits(a[lane]), exponents[lane] as i32);
                    out[lane] = value.to_bits();
                }
                out
            }
            v_fract_f64 => {
                let below_one = f64::from_bits(0x3fef_ffff_ffff_ffff);
                double_one(&a, |a| (a - a.floor()).min(below_one))
            }
            v_trunc_f64 => double_one(&a, f64::trunc),
            v_ceil_f64 => double_one(&a, f64::ceil),
            v_rndne_f64 => double_one(&a, f64::round_ties_even),
            v_floor_f64 => double_one(&a, f64::floor),
            v_frexp_mant_f64 => double_one(&a, mantissa),
            v_rcp_f64 => double_one(&a, |a| 1.0 / a),
            v_rsq_f64 => double_one(&a, |a| 1.0 / a.sqrt()),
            v_sqrt_f64 => double_one(&a, f64::sqrt),
            v_cvt_f64_f32 | v_cvt_f64_i32 | v_cvt_f64_u32 => {
                self.source(instruction, 0)?.map(|value| {
                    let value = match op {
                        v_cvt_f64_f32 => f64::from(f32::from_bits(value)),
                        v_cvt_f64_i32 => f64::from(value as i32),
                        _ => f64::from(value),
                    };
                    value.to_bits()
                })
            }
            _ => return Ok(None),
        };
        self.put_wide(instruction, values)?;
        Ok(Some(()))
    }
}

/// The smaller; of a number and a NaN the number, of two zeros the negative one.
fn min(a: f64, b: f64) -> f64 {
    match a {
        _ if a.is_nan() => b,
        _ if b.is_nan() || a < b || (a == b && a.is_sign_negative()) => a,
        _ => b,
    }
}

fn max(a: f64, b: f64) -> f64 {
    match a {
        _ if a.is_nan() => b,
        _ if b.is_nan() || a > b || (a == b && b.is_sign_negative()) => a,
        _ => b,
    }
}

/// `value * 2^exponent`, rounded once.
pub(super) fn scaled(value: f64, exponent: i32) -> f64 {
    // A step down leaves 53 bits above the smallest normal double: only a last step, or one whose
    // result is zero, meets smaller ones.
    const DOWN: i32 = 1022 - 53;
    let (mut value, mut exponent) = (value, exponent.clamp(-3000, 3000));
    while exponent > 1023 {
        value *= power_of_two(1023);
        exponent -= 1023;
    }
    while exponent < -1022 {
        value *= power_of_two(-DOWN);
        exponent += DOWN;
    }
    value * power_of_two(exponent)
}
