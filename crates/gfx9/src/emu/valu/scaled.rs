//! Conversions with a scale (gfx950): a power of two, the exponent of a float of 32 bits, that
//! numbers are divided by on their way to a small type and multiplied by on their way back.

use crate::asm::Instruction;
use crate::isa::{Opcode, Ty};

use super::super::fault::Fault;
use super::super::float::{Small, bf16_bits, bf16_value, f16_from_f32, f16_value, scaled};
use super::super::wave::{LANES, Lanes, Wave};

/// The types on the wide side.
#[derive(Clone, Copy)]
enum Large {
    F32,
    F16,
    Bf16,
}

/// How many numbers, and where they lie.
#[derive(Clone, Copy)]
enum Shape {
    /// One, in a byte of its register.
    One,
    /// Two, in a half or a byte of their register.
    Two,
    /// 32, in as many registers as they take.
    Many,
    /// 32, of two runs of 16 in turns.
    Interleaved,
}

#[derive(Clone, Copy)]
enum Way {
    ToSmall,
    FromSmall,
}

impl Wave {
    /// Conversions with a scale. `None`: none of these.
    pub(super) fn convert_scaled(
        &mut self,
        instruction: &Instruction,
    ) -> Result<Option<()>, Fault> {
        let Some((way, shape, large, small)) = plan(instruction.op) else {
            return Ok(None);
        };
        let last = instruction.op.sources().len() - 1;
        let scales = self.lanes(instruction.source_operand(last)?, Ty::f32, 0)?;
        match way {
            Way::ToSmall => self.encode_small(instruction, shape, large, small, &scales)?,
            Way::FromSmall => self.decode_small(instruction, shape, large, small, &scales)?,
        }
        Ok(Some(()))
    }

    fn encode_small(
        &mut self,
        instruction: &Instruction,
        shape: Shape,
        large: Large,
        small: Small,
        scales: &Lanes,
    ) -> Result<(), Fault> {
        let saturate = self.saturates();
        let encode = |lane: usize, bits: u32| {
            let value = match exponent(scales[lane]) {
                Some(exponent) => scaled(large.value(bits), -exponent),
                None => f32::NAN,
            };
            u64::from(small.encode(value, saturate))
        };
        let destination = instruction.destination(0)?;
        if let Shape::One | Shape::Two = shape {
            let [a, b] = match large {
                Large::F32 => [self.source(instruction, 0)?, self.source(instruction, 1)?],
                _ => {
                    let words = self.source(instruction, 0)?;
                    [words, words.map(|word| word >> 16)]
                }
            };
            // A byte or a half of the register is written.
            let width = 2 * small.bits();
            let at = match width {
                8 => 8 * u32::from(instruction.modifiers.op_sel >> 2 & 3),
                _ => {
                    16 * u32::from(
                        instruction.modifiers.op_sel >> (instruction.op.sources().len()) & 1,
                    )
                }
            };
            let mask = ((1u32 << width) - 1) << at;
            let mut values = self.lanes(destination, Ty::b32, 0)?;
            for (lane, value) in values.iter_mut().enumerate() {
                let pair = encode(lane, a[lane]) | encode(lane, b[lane]) << small.bits();
                *value = *value & !mask | (pair as u32) << at;
            }
            return self.set_lanes(destination, 0, &values);
        }
        // 32 numbers of 6 bits.
        let mut words = [[0u32; LANES]; 6];
        for item in 0..32u16 {
            let values = match shape {
                Shape::Interleaved => {
                    let run = instruction.source_operand(usize::from(item & 1))?;
                    self.lanes(run, Ty::f32, item >> 1)?
                }
                _ => self.item(instruction.source_operand(0)?, large, item)?,
            };
            let bit = 6 * usize::from(item);
            for (lane, value) in values.iter().enumerate() {
                let code = encode(lane, *value) << (bit % 32);
                words[bit / 32][lane] |= code as u32;
                if bit % 32 > 26 {
                    words[bit / 32 + 1][lane] |= (code >> 32) as u32;
                }
            }
        }
        for (index, word) in (0..).zip(&words) {
            self.set_lanes(destination, index, word)?;
        }
        Ok(())
    }

    fn decode_small(
        &mut self,
        instruction: &Instruction,
        shape: Shape,
        large: Large,
        small: Small,
        scales: &Lanes,
    ) -> Result<(), Fault> {
        let table = small.values();
        let mask = (1u32 << small.bits()) - 1;
        let decode = |lane: usize, bits: u32| {
            let value = table[(bits & mask) as usize];
            large.bits(value, exponent(scales[lane]))
        };
        let operand = instruction.source_operand(0)?;
        let destination = instruction.destination(0)?;
        let op_sel = instruction.modifiers.op_sel;
        match shape {
            Shape::One => {
                let words = self.lanes(operand, Ty::b32, 0)?;
                let at = 8 * u32::from(op_sel & 3);
                let old = self.lanes(destination, Ty::b32, 0)?;
                let mut values = [0; LANES];
                for lane in 0..LANES {
                    let value = decode(lane, words[lane] >> at);
                    values[lane] = match large {
                        Large::F32 => value,
                        _ if op_sel >> 2 & 1 == 1 => old[lane] & 0xffff | value << 16,
                        _ => old[lane] & 0xffff_0000 | value,
                    };
                }
                self.set_lanes(destination, 0, &values)
            }
            Shape::Two => {
                let words = self.lanes(operand, Ty::b32, 0)?;
                let at = match small.bits() {
                    8 => 16 * u32::from(op_sel & 1),
                    _ => 8 * u32::from(op_sel & 3),
                };
                let mut first = [0; LANES];
                let mut second = [0; LANES];
                for lane in 0..LANES {
                    first[lane] = decode(lane, words[lane] >> at);
                    second[lane] = decode(lane, words[lane] >> at >> small.bits());
                }
                self.set_items(destination, large, 0, &first, &second)
            }
            Shape::Many | Shape::Interleaved => {
                // All is read before the first register is written.
                let mut words = [[0; LANES]; 7];
                for (index, word) in (0..6).zip(&mut words) {
                    *word = self.lanes(operand, Ty::b32, index)?;
                }
                let code = |lane: usize, item: usize| {
                    let bit = small.bits() as usize * item;
                    let (low, high) = (words[bit / 32][lane], words[bit / 32 + 1][lane]);
                    ((u64::from(low) | u64::from(high) << 32) >> (bit % 32)) as u32
                };
                for pair in 0..16u16 {
                    let item = 2 * usize::from(pair);
                    let first = std::array::from_fn(|lane| decode(lane, code(lane, item)));
                    let second = std::array::from_fn(|lane| decode(lane, code(lane, item + 1)));
                    self.set_items(destination, large, pair, &first, &second)?;
                }
                Ok(())
            }
        }
    }

    /// One of many numbers.
    fn item(&self, operand: &crate::asm::Operand, large: Large, item: u16) -> Result<Lanes, Fault> {
        match large {
            Large::F32 => self.lanes(operand, Ty::f32, item),
            _ => {
                let words = self.lanes(operand, Ty::b32, item / 2)?;
                Ok(words.map(|word| word >> (16 * (item & 1))))
            }
        }
    }

    /// Writes two numbers beside each other.
    fn set_items(
        &mut self,
        destination: &crate::asm::Operand,
        large: Large,
        pair: u16,
        first: &Lanes,
        second: &Lanes,
    ) -> Result<(), Fault> {
        match large {
            Large::F32 => {
                self.set_lanes(destination, 2 * pair, first)?;
                self.set_lanes(destination, 2 * pair + 1, second)
            }
            _ => {
                let words = std::array::from_fn(|lane| first[lane] | second[lane] << 16);
                self.set_lanes(destination, pair, &words)
            }
        }
    }
}

impl Large {
    fn value(self, bits: u32) -> f32 {
        match self {
            Large::F32 => f32::from_bits(bits),
            Large::F16 => f16_value(bits as u16),
            Large::Bf16 => bf16_value(bits as u16),
        }
    }

    /// A small number times a power of two. A float of 32 bits holds the product, or it is past
    /// either end of all three types.
    fn bits(self, value: f32, exponent: Option<i32>) -> u32 {
        let value = match exponent {
            Some(exponent) => scaled(value, exponent),
            None => f32::NAN,
        };
        match self {
            Large::F32 => value.to_bits(),
            Large::F16 => u32::from(f16_from_f32(value)),
            Large::Bf16 => u32::from(bf16_bits(value)),
        }
    }
}

/// The exponent that a scale stands for; none where it is NaN.
fn exponent(scale: u32) -> Option<i32> {
    match scale >> 23 & 0xff {
        0xff => None,
        exponent => Some(exponent as i32 - 127),
    }
}

/// What a conversion's name says.
fn plan(op: Opcode) -> Option<(Way, Shape, Large, Small)> {
    use Large::{Bf16, F16, F32};
    use Opcode::*;
    use Shape::{Interleaved, Many, One, Two};
    use Small::{Bf6, Bf8, Fp4, Fp6, Fp8};
    use Way::{FromSmall, ToSmall};
    Some(match op {
        v_cvt_scalef32_pk_fp8_f32 => (ToSmall, Two, F32, Fp8),
        v_cvt_scalef32_pk_bf8_f32 => (ToSmall, Two, F32, Bf8),
        v_cvt_scalef32_pk_fp4_f32 => (ToSmall, Two, F32, Fp4),
        v_cvt_scalef32_pk_fp8_f16 => (ToSmall, Two, F16, Fp8),
        v_cvt_scalef32_pk_fp8_bf16 => (ToSmall, Two, Bf16, Fp8),
        v_cvt_scalef32_pk_bf8_f16 => (ToSmall, Two, F16, Bf8),
        v_cvt_scalef32_pk_bf8_bf16 => (ToSmall, Two, Bf16, Bf8),
        v_cvt_scalef32_pk_fp4_f16 => (ToSmall, Two, F16, Fp4),
        v_cvt_scalef32_pk_fp4_bf16 => (ToSmall, Two, Bf16, Fp4),
        v_cvt_scalef32_pk32_fp6_f16 => (ToSmall, Many, F16, Fp6),
        v_cvt_scalef32_pk32_fp6_bf16 => (ToSmall, Many, Bf16, Fp6),
        v_cvt_scalef32_pk32_bf6_f16 => (ToSmall, Many, F16, Bf6),
        v_cvt_scalef32_pk32_bf6_bf16 => (ToSmall, Many, Bf16, Bf6),
        v_cvt_scalef32_2xpk16_fp6_f32 => (ToSmall, Interleaved, F32, Fp6),
        v_cvt_scalef32_2xpk16_bf6_f32 => (ToSmall, Interleaved, F32, Bf6),
        v_cvt_scalef32_f32_fp8 => (FromSmall, One, F32, Fp8),
        v_cvt_scalef32_f32_bf8 => (FromSmall, One, F32, Bf8),
        v_cvt_scalef32_f16_fp8 => (FromSmall, One, F16, Fp8),
        v_cvt_scalef32_f16_bf8 => (FromSmall, One, F16, Bf8),
        v_cvt_scalef32_pk_f32_fp8 => (FromSmall, Two, F32, Fp8),
        v_cvt_scalef32_pk_f32_bf8 => (FromSmall, Two, F32, Bf8),
        v_cvt_scalef32_pk_f32_fp4 => (FromSmall, Two, F32, Fp4),
        v_cvt_scalef32_pk_f16_fp8 => (FromSmall, Two, F16, Fp8),
        v_cvt_scalef32_pk_bf16_fp8 => (FromSmall, Two, Bf16, Fp8),
        v_cvt_scalef32_pk_f16_bf8 => (FromSmall, Two, F16, Bf8),
        v_cvt_scalef32_pk_bf16_bf8 => (FromSmall, Two, Bf16, Bf8),
        v_cvt_scalef32_pk_f16_fp4 => (FromSmall, Two, F16, Fp4),
        v_cvt_scalef32_pk_bf16_fp4 => (FromSmall, Two, Bf16, Fp4),
        v_cvt_scalef32_pk32_f32_fp6 => (FromSmall, Many, F32, Fp6),
        v_cvt_scalef32_pk32_f32_bf6 => (FromSmall, Many, F32, Bf6),
        v_cvt_scalef32_pk32_f16_fp6 => (FromSmall, Many, F16, Fp6),
        v_cvt_scalef32_pk32_bf16_fp6 => (FromSmall, Many, Bf16, Fp6),
        v_cvt_scalef32_pk32_f16_bf6 => (FromSmall, Many, F16, Bf6),
        v_cvt_scalef32_pk32_bf16_bf6 => (FromSmall, Many, Bf16, Bf6),
        _ => return None,
    })
}
