//! Two results at once: halves of registers, and pairs of registers. For each source `op_sel`
//! says what the low result takes and `op_sel_hi` what the high one does; `neg_lo` and `neg_hi`
//! turn their signs.

use crate::asm::Instruction;
use crate::isa::{Modifiers, Opcode, Ty};

use super::super::fault::Fault;
use super::super::float::{f16_bits, f16_from_f32, f16_value, flush, fma, fma_to_odd};
use super::super::wave::{LANES, Lanes, Wave, constant32, marks};
use super::float::{dot, fma_half, max, maximum, min, minimum, normal_bf16, normal_f16};
use super::int::{dot_bytes, dot_halves, dot_nibbles};
use super::map::{Sources, half_three, half_two, three, two};
use super::sources::clamp;

impl Wave {
    pub(super) fn packed(&mut self, instruction: &Instruction) -> Result<(), Fault> {
        use Opcode::*;
        match instruction.op {
            v_pk_add_f32 | v_pk_mul_f32 | v_pk_fma_f32 | v_pk_mov_b32 => self.pairs(instruction),
            v_fma_mix_f32 | v_fma_mixlo_f16 | v_fma_mixhi_f16 => self.mixed(instruction),
            v_dot2_f32_f16 | v_dot2_f32_bf16 | v_dot2_i32_i16 | v_dot2_u32_u16 | v_dot4_i32_i8
            | v_dot4_u32_u8 | v_dot8_i32_i4 | v_dot8_u32_u4 => self.dots(instruction),
            _ => self.halves(instruction),
        }
    }

    /// Results in both halves of a register.
    fn halves(&mut self, instruction: &Instruction) -> Result<(), Fault> {
        let modifiers = &instruction.modifiers;
        let float = instruction.op.results().first() == Some(&Ty::p16);
        let (low, high) = self.half_sources(instruction, float)?;
        let each = |s: &Sources| match float {
            true => float_halves(instruction.op, s, modifiers.clamp),
            false => integer_halves(instruction.op, s, modifiers.clamp),
        };
        let (low, high) = (each(&low), each(&high));
        let (low, high) = (
            low.ok_or(Fault::Unsupported)?,
            high.ok_or(Fault::Unsupported)?,
        );
        let values = std::array::from_fn(|lane| low[lane] & 0xffff | high[lane] << 16);
        self.set_lanes(instruction.destination(0)?, 0, &values)
    }

    /// What the low and the high results take, each at the low end of a word.
    fn half_sources(
        &self,
        instruction: &Instruction,
        float: bool,
    ) -> Result<(Sources, Sources), Fault> {
        let modifiers = &instruction.modifiers;
        let mut low = [[0; LANES]; 3];
        let mut high = [[0; LANES]; 3];
        let count = instruction.op.sources().len();
        for index in 0..count.min(3) {
            let ty = instruction.op.sources()[index];
            let words = self.lanes(instruction.source_operand(index)?, ty, 0)?;
            let pick = |upper: bool, negative: bool| {
                let sign = if negative && float { 0x8000 } else { 0 };
                words.map(|word| (if upper { word >> 16 } else { word & 0xffff }) ^ sign)
            };
            low[index] = pick(bit(modifiers.op_sel, index), bit(modifiers.neg_lo, index));
            high[index] = pick(
                bit(selected_high(modifiers), index),
                bit(modifiers.neg_hi, index),
            );
        }
        Ok((low, high))
    }

    /// Two floats of 32 bits.
    fn pairs(&mut self, instruction: &Instruction) -> Result<(), Fault> {
        let modifiers = &instruction.modifiers;
        let op = instruction.op;
        let mut low = [[0; LANES]; 3];
        let mut high = [[0; LANES]; 3];
        for index in 0..op.sources().len().min(3) {
            let words = self.wide(instruction.source_operand(index)?, Ty::f32x2)?;
            let pick = |upper: bool, negative: bool| {
                let sign = if negative { 0x8000_0000 } else { 0 };
                let shift = if upper { 32 } else { 0 };
                let flushed = self.flush_32 && op != Opcode::v_pk_mov_b32;
                words.map(|word| {
                    let word = (word >> shift) as u32 ^ sign;
                    if flushed { flush(word) } else { word }
                })
            };
            low[index] = pick(bit(modifiers.op_sel, index), bit(modifiers.neg_lo, index));
            high[index] = pick(
                bit(selected_high(modifiers), index),
                bit(modifiers.neg_hi, index),
            );
        }
        if op == Opcode::v_pk_mov_b32 {
            // The first source gives the low result, the second the high one, both by `op_sel`.
            let words = self.wide(instruction.source_operand(1)?, Ty::f32x2)?;
            let shift = if bit(modifiers.op_sel, 1) { 32 } else { 0 };
            let destination = instruction.destination(0)?;
            self.set_lanes(destination, 0, &low[0])?;
            return self.set_lanes(destination, 1, &words.map(|word| (word >> shift) as u32));
        }
        let float = f32::from_bits;
        let each = |s: &Sources| {
            let mut values = match op {
                Opcode::v_pk_add_f32 => two(s, |a, b| (float(a) + float(b)).to_bits()),
                Opcode::v_pk_mul_f32 => two(s, |a, b| (float(a) * float(b)).to_bits()),
                _ => three(s, |a, b, c| fma(float(a), float(b), float(c)).to_bits()),
            };
            if modifiers.clamp {
                values = values.map(|value| clamp(float(value)).to_bits());
            }
            if self.flush_32 {
                values = values.map(flush);
            }
            values
        };
        let (low, high) = (each(&low), each(&high));
        let destination = instruction.destination(0)?;
        self.set_lanes(destination, 0, &low)?;
        self.set_lanes(destination, 1, &high)
    }

    /// A fused sum of floats of 32 bits and halves: `op_sel_hi` says which are halves, `op_sel`
    /// which half, and `neg_hi` takes magnitudes.
    fn mixed(&mut self, instruction: &Instruction) -> Result<(), Fault> {
        let modifiers = &instruction.modifiers;
        let mut s = [[0; LANES]; 3];
        for (index, values) in s.iter_mut().enumerate() {
            let operand = instruction.source_operand(index)?;
            let half = bit(modifiers.op_sel_hi.unwrap_or(0), index);
            let upper = bit(modifiers.op_sel, index);
            let ty = if half { Ty::f16 } else { Ty::f32 };
            let words = match operand.registers() {
                Some(_) => self.lanes(operand, ty, 0)?,
                None => [constant32(operand, ty)?; LANES],
            };
            let marks = marks(operand);
            let magnitude = marks.abs || bit(modifiers.neg_hi, index);
            let negative = marks.neg || bit(modifiers.neg_lo, index);
            let shift = if half && upper { 16 } else { 0 };
            *values = words.map(|word| {
                let value = match half {
                    true => f16_value((word >> shift) as u16).to_bits(),
                    false if self.flush_32 => flush(word),
                    false => word,
                };
                let value = if magnitude {
                    value & 0x7fff_ffff
                } else {
                    value
                };
                if negative { value ^ 0x8000_0000 } else { value }
            });
        }
        let float = f32::from_bits;
        let destination = instruction.destination(0)?;
        if instruction.op == Opcode::v_fma_mix_f32 {
            let values = three(&s, |a, b, c| {
                let sum = fma(float(a), float(b), float(c));
                let sum = if modifiers.clamp { clamp(sum) } else { sum };
                if self.flush_32 {
                    flush(sum.to_bits())
                } else {
                    sum.to_bits()
                }
            });
            return self.set_lanes(destination, 0, &values);
        }
        let sums = three(&s, |a, b, c| {
            let bits = f16_bits(fma_to_odd(float(a), float(b), float(c)));
            let clamped = || f16_from_f32(clamp(f16_value(bits)));
            u32::from(if modifiers.clamp { clamped() } else { bits })
        });
        let mut values = self.lanes(destination, Ty::b32, 0)?;
        for (value, sum) in values.iter_mut().zip(sums) {
            *value = match instruction.op {
                Opcode::v_fma_mixlo_f16 => *value & 0xffff_0000 | sum,
                _ => *value & 0xffff | sum << 16,
            };
        }
        self.set_lanes(destination, 0, &values)
    }

    /// Dot products of parts of registers, added to the third source.
    fn dots(&mut self, instruction: &Instruction) -> Result<(), Fault> {
        use Opcode::*;
        let modifiers = &instruction.modifiers;
        if modifiers.clamp {
            return Err(Fault::Unsupported);
        }
        let op = instruction.op;
        let mut s = self.sources(instruction)?;
        let float = matches!(op, v_dot2_f32_f16 | v_dot2_f32_bf16);
        if float || matches!(op, v_dot2_i32_i16 | v_dot2_u32_u16) {
            let (low, high) = self.half_sources(instruction, float)?;
            for index in 0..2 {
                for lane in 0..LANES {
                    s[index][lane] = low[index][lane] & 0xffff | high[index][lane] << 16;
                }
            }
        }
        if float && bit(modifiers.neg_lo, 2) {
            s[2] = s[2].map(|word| word ^ 0x8000_0000);
        }
        let values = match op {
            v_dot2_f32_f16 => three(&s, |a, b, c| dot(a, b, c, normal_f16)),
            v_dot2_f32_bf16 => three(&s, |a, b, c| dot(a, b, c, normal_bf16)),
            v_dot2_i32_i16 => three(&s, |a, b, c| dot_halves(a, b, c, false)),
            v_dot2_u32_u16 => three(&s, |a, b, c| dot_halves(a, b, c, true)),
            v_dot4_i32_i8 => three(&s, |a, b, c| dot_bytes(a, b, c, false)),
            v_dot4_u32_u8 => three(&s, |a, b, c| dot_bytes(a, b, c, true)),
            v_dot8_i32_i4 => three(&s, |a, b, c| dot_nibbles(a, b, c, false)),
            _ => three(&s, |a, b, c| dot_nibbles(a, b, c, true)),
        };
        self.set_lanes(instruction.destination(0)?, 0, &values)
    }
}

/// What the high result takes: every source's high half where nothing is said.
fn selected_high(modifiers: &Modifiers) -> u8 {
    modifiers.op_sel_hi.unwrap_or(u8::MAX)
}

fn bit(bits: u8, index: usize) -> bool {
    bits >> index & 1 == 1
}

/// An operation on both halves of its sources, as they are.
pub(super) fn both_halves(op: Opcode, s: &Sources, clamped: bool) -> Option<Lanes> {
    let low = float_halves(op, s, clamped)?;
    let high = float_halves(op, &s.map(|words| words.map(|word| word >> 16)), clamped)?;
    Some(std::array::from_fn(|lane| low[lane] | high[lane] << 16))
}

/// One half of a result of floats.
fn float_halves(op: Opcode, s: &Sources, clamped: bool) -> Option<Lanes> {
    use Opcode::*;
    let values = match op {
        v_pk_add_f16 => half_two(s, |a, b| a + b),
        v_pk_mul_f16 => half_two(s, |a, b| a * b),
        v_pk_min_f16 => half_two(s, min),
        v_pk_max_f16 => half_two(s, max),
        v_pk_fma_f16 | v_pk_fmac_f16 => half_three(s, fma_half),
        v_pk_minimum3_f16 => half_three(s, |a, b, c| minimum(minimum(a, b), c)),
        v_pk_maximum3_f16 => half_three(s, |a, b, c| maximum(maximum(a, b), c)),
        _ => return None,
    };
    Some(match clamped {
        true => values.map(|value| u32::from(f16_from_f32(clamp(f16_value(value as u16))))),
        false => values,
    })
}

/// One half of a result of integers. Clamping makes sums end at the ends of their type.
fn integer_halves(op: Opcode, s: &Sources, clamped: bool) -> Option<Lanes> {
    use Opcode::*;
    let signed = |value: i16| u32::from(value as u16);
    Some(match op {
        v_pk_add_i16 if clamped => two(s, |a, b| signed((a as i16).saturating_add(b as i16))),
        v_pk_sub_i16 if clamped => two(s, |a, b| signed((a as i16).saturating_sub(b as i16))),
        v_pk_add_u16 if clamped => two(s, |a, b| u32::from((a as u16).saturating_add(b as u16))),
        v_pk_sub_u16 if clamped => two(s, |a, b| u32::from((a as u16).saturating_sub(b as u16))),
        _ if clamped => return None,
        v_pk_add_i16 | v_pk_add_u16 => two(s, u32::wrapping_add),
        v_pk_sub_i16 | v_pk_sub_u16 => two(s, u32::wrapping_sub),
        v_pk_mul_lo_u16 => two(s, u32::wrapping_mul),
        v_pk_mad_i16 | v_pk_mad_u16 => three(s, |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        v_pk_lshlrev_b16 => two(s, |a, b| b << (a & 15)),
        v_pk_lshrrev_b16 => two(s, |a, b| (b & 0xffff) >> (a & 15)),
        v_pk_ashrrev_i16 => two(s, |a, b| signed(b as i16 >> (a & 15))),
        v_pk_max_i16 => two(s, |a, b| signed((a as i16).max(b as i16))),
        v_pk_min_i16 => two(s, |a, b| signed((a as i16).min(b as i16))),
        v_pk_max_u16 => two(s, |a, b| (a & 0xffff).max(b & 0xffff)),
        v_pk_min_u16 => two(s, |a, b| (a & 0xffff).min(b & 0xffff)),
        _ => return None,
    })
}
