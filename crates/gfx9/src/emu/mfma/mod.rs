//! The matrix unit: products of small matrices that lie in the registers of all lanes.
//!
//! Each element of the result is one sum: products in the order of `k`, each exact, added in
//! doubles, then the element of C, then one rounding to the result's type, to nearest. Hardware
//! adds in an order and with roundings of its own, so that sums of floats may differ in the last
//! bits; sums that floats of 32 bits hold exactly do not. Integers wrap. Elements too small to be
//! normal count, whatever MODE says of others. `xf32` elements are rounded to their 10 bits, to
//! nearest.
//!
//! [`Fault::Unsupported`]: `v_mfma_f64_4x4x4_4b_f64`, of whose result the manual shows no picture,
//! and `clamp`.

mod formats;

use crate::asm::{Instruction, Operand};
use crate::isa::{Modifiers, Opcode, Ty};

use super::Arch;
use super::fault::Fault;
use super::float::{bf16_value, f16_value, power_of_two};
use super::wave::{LANES, Lanes, Wave};
use formats::{Element, Shape, shape};

/// The most that a row is multiplied along.
const DEEPEST: usize = 128;

/// A source's elements as doubles: for each item of a lane, that of all lanes.
type Items<const N: usize> = [[f64; LANES]; N];

impl Wave {
    pub(super) fn mfma(&mut self, instruction: &Instruction, arch: Arch) -> Result<(), Fault> {
        if self.exec != u64::MAX {
            return Err(Fault::InactiveLanes);
        }
        if instruction.modifiers.clamp {
            return Err(Fault::Unsupported);
        }
        let Some(shape) = shape(instruction.op, &instruction.modifiers, arch)? else {
            return match instruction.op {
                Opcode::v_mfma_f64_16x16x4_f64 => self.mfma_double(instruction),
                _ => Err(Fault::Unsupported),
            };
        };
        // As many items a lane, and as many registers of the result, as there are.
        match (shape.items(), shape.registers()) {
            (1, 4) => self.multiply::<1, 4>(instruction, shape),
            (1, 16) => self.multiply::<1, 16>(instruction, shape),
            (1, 32) => self.multiply::<1, 32>(instruction, shape),
            (2, 4) => self.multiply::<2, 4>(instruction, shape),
            (2, 16) => self.multiply::<2, 16>(instruction, shape),
            (4, 4) => self.multiply::<4, 4>(instruction, shape),
            (4, 16) => self.multiply::<4, 16>(instruction, shape),
            (4, 32) => self.multiply::<4, 32>(instruction, shape),
            (8, 4) => self.multiply::<8, 4>(instruction, shape),
            (8, 16) => self.multiply::<8, 16>(instruction, shape),
            (16, 4) => self.multiply::<16, 4>(instruction, shape),
            (16, 16) => self.multiply::<16, 16>(instruction, shape),
            (32, 4) => self.multiply::<32, 4>(instruction, shape),
            (32, 16) => self.multiply::<32, 16>(instruction, shape),
            _ => Err(Fault::Unsupported),
        }
    }

    fn multiply<const ITEMS: usize, const REGISTERS: usize>(
        &mut self,
        instruction: &Instruction,
        shape: Shape,
    ) -> Result<(), Fault> {
        let modifiers = &instruction.modifiers;
        let mut a = self.elements::<ITEMS>(instruction, 0, shape.a)?;
        let mut b = self.elements::<ITEMS>(instruction, 1, shape.b)?;
        if instruction.op.sources().len() > 3 {
            let high = modifiers.op_sel_hi.unwrap_or(u8::MAX);
            for (index, element, items) in [(0, shape.a, &mut a), (1, shape.b, &mut b)] {
                let byte = (high >> index & 1) << 1 | modifiers.op_sel >> index & 1;
                let operand = instruction.source_operand(3 + index)?;
                self.scale(items, shape, element, operand, byte)?;
            }
        } else if !matches!(instruction.op.sources(), [Ty::mx, ..]) {
            broadcast(&mut a, &mut b, shape, modifiers)?;
        }
        let integer = shape.a == Element::I8;
        let mut sums = [[0; LANES]; REGISTERS];
        let c = instruction.source_operand(2)?;
        let ty = if integer { Ty::b32 } else { Ty::f32 };
        for (register, sums) in (0..).zip(&mut sums) {
            *sums = self.lanes(c, ty, register)?;
        }
        let finish = |sum: f64, c: u32| match integer {
            true => c.wrapping_add(sum as i32 as u32),
            false => ((sum + f64::from(f32::from_bits(c))) as f32).to_bits(),
        };
        match shape.size {
            4 => add_products::<ITEMS, REGISTERS, 4>(&a, &b, shape, &mut sums, finish),
            _ => add_products::<ITEMS, REGISTERS, 16>(&a, &b, shape, &mut sums, finish),
        }
        let destination = instruction.destination(0)?;
        for (register, sums) in (0..).zip(&sums) {
            self.set_lanes(destination, register, sums)?;
        }
        Ok(())
    }

    /// The elements of a source.
    fn elements<const ITEMS: usize>(
        &self,
        instruction: &Instruction,
        index: usize,
        element: Element,
    ) -> Result<Items<ITEMS>, Fault> {
        let operand = instruction.source_operand(index)?;
        let registers = operand.registers().ok_or(Fault::Operand)?;
        let bits = element.bits() as usize;
        if usize::from(registers.count) * 32 != (bits * ITEMS).next_multiple_of(32) {
            return Err(Fault::Operand);
        }
        let mut items = [[0.0; LANES]; ITEMS];
        for (item, values) in items.iter_mut().enumerate() {
            let (register, shift) = (bits * item / 32, (bits * item % 32) as u32);
            let words = self.vector(registers, register as u16)?;
            // An element of 6 bits may begin in one register and end in the next.
            let next = match shift as usize + bits > 32 {
                true => self.vector(registers, register as u16 + 1)?,
                false => words,
            };
            decode(element, words, next, shift, values);
        }
        Ok(items)
    }

    /// Multiplies elements by the scales of their rows or columns: one for 32 of the depth, in a
    /// byte of the lane whose elements these would be if every lane held 32 that follow.
    fn scale<const ITEMS: usize>(
        &self,
        items: &mut Items<ITEMS>,
        shape: Shape,
        element: Element,
        operand: &Operand,
        byte: u8,
    ) -> Result<(), Fault> {
        // Of a constant the exponent counts, whatever byte is named.
        let shift = match operand.registers() {
            Some(_) => 8 * u32::from(byte),
            None => 23,
        };
        let words = self.lanes(operand, Ty::f32, 0)?;
        for k in 0..shape.depth {
            let (item, group) = shape.place::<ITEMS>(element, k);
            for row in 0..shape.size {
                let exponent = words[row + shape.size * (k / 32)] >> shift & 0xff;
                items[item][row + shape.size * group] *= match exponent {
                    0xff => f64::NAN,
                    exponent => power_of_two(exponent as i32 - 127),
                };
            }
        }
        Ok(())
    }

    /// `v_mfma_f64_16x16x4_f64`: rows lie one behind the other, fused sums in the order of `k`.
    fn mfma_double(&mut self, instruction: &Instruction) -> Result<(), Fault> {
        let wide = |index: usize, register: u16| {
            let operand = instruction.source_operand(index)?;
            let mut values = [0.0; LANES];
            if operand.registers().is_none() {
                let constant = self.wide(operand, Ty::f64)?;
                return Ok(constant.map(f64::from_bits));
            }
            let low = self.lanes(operand, Ty::f64, register)?;
            let high = self.lanes(operand, Ty::f64, register + 1)?;
            for (lane, value) in values.iter_mut().enumerate() {
                *value = f64::from_bits(u64::from(low[lane]) | u64::from(high[lane]) << 32);
            }
            Ok::<_, Fault>(values)
        };
        // Here this field turns signs.
        let signs = [0, 1, 2].map(|bit| match instruction.modifiers.blgp >> bit & 1 {
            0 => 1.0,
            _ => -1.0,
        });
        let (a, b) = (wide(0, 0)?, wide(1, 0)?);
        let mut sums = [[0.0; LANES]; 4];
        for (pair, sums) in (0..4).zip(&mut sums) {
            *sums = wide(2, 2 * pair)?.map(|value| value * signs[2]);
        }
        for (pair, sums) in sums.iter_mut().enumerate() {
            for (lane, sum) in sums.iter_mut().enumerate() {
                let (row, column) = (4 * pair + lane / 16, lane % 16);
                for k in 0..4 {
                    let (a, b) = (a[row + 16 * k] * signs[0], b[column + 16 * k] * signs[1]);
                    *sum = a.mul_add(b, *sum);
                }
            }
        }
        let destination = instruction.destination(0)?;
        for (pair, sums) in (0..4).zip(sums) {
            let bits = sums.map(f64::to_bits);
            self.set_lanes(destination, 2 * pair, &bits.map(|bits| bits as u32))?;
            self.set_lanes(
                destination,
                2 * pair + 1,
                &bits.map(|bits| (bits >> 32) as u32),
            )?;
        }
        Ok(())
    }
}

/// Adds the products to the rows of the result, so many columns at a time.
fn add_products<const ITEMS: usize, const REGISTERS: usize, const WIDTH: usize>(
    a: &Items<ITEMS>,
    b: &Items<ITEMS>,
    shape: Shape,
    sums: &mut [Lanes; REGISTERS],
    finish: impl Fn(f64, u32) -> u32,
) {
    let Shape {
        size,
        depth,
        blocks,
        ..
    } = shape;
    // Where the elements of each `k` are: the item, and the lane of row and column 0 of block 0.
    let mut places = [[(0, 0); 2]; DEEPEST];
    let places = &mut places[..depth.min(DEEPEST)];
    for (k, places) in places.iter_mut().enumerate() {
        *places = [shape.a, shape.b].map(|element| {
            let (item, group) = shape.place::<ITEMS>(element, k);
            (item, size * blocks * group)
        });
    }
    for block in 0..blocks {
        for row in 0..size {
            let (register, lane) = shape.row(block, row);
            for column in (0..size).step_by(WIDTH) {
                let mut sum = [0.0; WIDTH];
                for [(a_item, a_lane), (b_item, b_lane)] in places.iter() {
                    let a = a[*a_item][a_lane + size * block + row];
                    let first = b_lane + size * block + column;
                    let b = &b[*b_item][first..first + WIDTH];
                    for (sum, b) in sum.iter_mut().zip(b) {
                        *sum += a * b;
                    }
                }
                let first = lane + column;
                let row = &mut sums[register][first..first + WIDTH];
                for (c, sum) in row.iter_mut().zip(sum) {
                    *c = finish(sum, *c);
                }
            }
        }
    }
}

/// One item of every lane.
fn decode(element: Element, words: &Lanes, next: &Lanes, shift: u32, values: &mut [f64; LANES]) {
    match element {
        Element::F32 => {
            for (value, word) in values.iter_mut().zip(words) {
                *value = f64::from(f32::from_bits(*word));
            }
        }
        Element::Xf32 => {
            for (value, word) in values.iter_mut().zip(words) {
                *value = f64::from(f32::from_bits(xf32(*word)));
            }
        }
        Element::F16 => {
            for (value, word) in values.iter_mut().zip(words) {
                *value = f64::from(f16_value((word >> shift) as u16));
            }
        }
        Element::Bf16 => {
            for (value, word) in values.iter_mut().zip(words) {
                *value = f64::from(bf16_value((word >> shift) as u16));
            }
        }
        Element::I8 => {
            for (value, word) in values.iter_mut().zip(words) {
                *value = f64::from((word >> shift) as i8);
            }
        }
        Element::Small(small) => {
            let (table, mask) = (small.values(), (1 << small.bits()) - 1);
            for (value, (low, high)) in values.iter_mut().zip(words.iter().zip(next)) {
                let bits = (u64::from(*low) | u64::from(*high) << 32) >> shift;
                *value = f64::from(table[bits as usize & mask]);
            }
        }
    }
}

/// A float with 10 bits of fraction, to nearest, ties to even.
fn xf32(bits: u32) -> u32 {
    if bits & 0x7f80_0000 == 0x7f80_0000 {
        return bits;
    }
    bits.wrapping_add(0xfff + (bits >> 13 & 1)) & !0x1fff
}

/// Has lanes read elements of other lanes, as `cbsz` and `abid` say of A and `blgp` of B.
fn broadcast<const ITEMS: usize>(
    a: &mut Items<ITEMS>,
    b: &mut Items<ITEMS>,
    shape: Shape,
    modifiers: &Modifiers,
) -> Result<(), Fault> {
    let (cbsz, abid) = (modifiers.cbsz, usize::from(modifiers.abid));
    if cbsz != 0 {
        if cbsz > 4 || 1 << cbsz > shape.blocks || abid >= 1 << cbsz {
            return Err(Fault::Operand);
        }
        let lanes = LANES >> cbsz;
        permute(a, |lane| lane % lanes + lanes * abid);
    }
    match modifiers.blgp {
        0 => {}
        1 => permute(b, |lane| lane % 32),
        2 => permute(b, |lane| lane % 32 + 32),
        3 => permute(b, |lane| (lane + 16) % 64),
        4..=7 => permute(b, |lane| lane % 16 + 16 * usize::from(modifiers.blgp - 4)),
        _ => return Err(Fault::Operand),
    }
    Ok(())
}

fn permute<const ITEMS: usize>(items: &mut Items<ITEMS>, from: impl Fn(usize) -> usize) {
    for values in items {
        let old = *values;
        *values = std::array::from_fn(|lane| old[from(lane)]);
    }
}
