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

/// A source as doubles: of each block, of each `k`, the elements of all rows of A or columns of B.
/// It has as many elements as 64 lanes have items. Rows begin where cache lines do.
#[repr(align(64))]
struct Matrix<const ITEMS: usize>([[f64; LANES]; ITEMS]);

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
        let narrow = matches!(instruction.op.sources(), [Ty::mx, ..]);
        let [a_lanes, b_lanes] = match narrow {
            true => [None, None],
            false => broadcast(shape, modifiers)?,
        };
        let mut a = self.matrix::<ITEMS>(instruction, 0, shape, shape.a, a_lanes)?;
        let mut b = self.matrix::<ITEMS>(instruction, 1, shape, shape.b, b_lanes)?;
        if instruction.op.sources().len() > 3 {
            let high = modifiers.op_sel_hi.unwrap_or(u8::MAX);
            for (index, matrix) in [(0, &mut a), (1, &mut b)] {
                let byte = (high >> index & 1) << 1 | modifiers.op_sel >> index & 1;
                self.scale(matrix, shape, instruction.source_operand(3 + index)?, byte)?;
            }
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

    /// The elements of a source, in the order of the sums. `from` names the lane that each lane's
    /// are read from.
    fn matrix<const ITEMS: usize>(
        &self,
        instruction: &Instruction,
        index: usize,
        shape: Shape,
        element: Element,
        from: Option<[u8; LANES]>,
    ) -> Result<Matrix<ITEMS>, Fault> {
        let operand = instruction.source_operand(index)?;
        let registers = operand.registers().ok_or(Fault::Operand)?;
        let bits = element.bits() as usize;
        if usize::from(registers.count) * 32 != (bits * ITEMS).next_multiple_of(32) {
            return Err(Fault::Operand);
        }
        let Shape {
            size,
            depth,
            blocks,
            ..
        } = shape;
        let mut matrix = Matrix([[0.0; LANES]; ITEMS]);
        let elements = matrix.0.as_flattened_mut();
        for item in 0..ITEMS {
            let (register, shift) = (bits * item / 32, (bits * item % 32) as u32);
            let words = self.vector(registers, register as u16)?;
            // An element of 6 bits may begin in one register and end in the next.
            let next = match shift as usize + bits > 32 {
                true => self.vector(registers, register as u16 + 1)?,
                false => words,
            };
            let mut values = [0.0; LANES];
            decode(element, words, next, shift, &mut values);
            if let Some(from) = from {
                values = from.map(|lane| values[usize::from(lane)]);
            }
            for (run, values) in values.chunks_exact(size).enumerate() {
                let (block, group) = (run % blocks, run / blocks);
                let at = size * (depth * block + shape.k::<ITEMS>(element, item, group));
                elements[at..at + size].copy_from_slice(values);
            }
        }
        Ok(matrix)
    }

    /// Multiplies elements by the scales of their rows or columns: one for 32 of the depth, in a
    /// byte of a lane: all rows of the first 32, then all of the next.
    fn scale<const ITEMS: usize>(
        &self,
        matrix: &mut Matrix<ITEMS>,
        shape: Shape,
        operand: &Operand,
        byte: u8,
    ) -> Result<(), Fault> {
        // Of a constant the exponent counts, whatever byte is named.
        let shift = match operand.registers() {
            Some(_) => 8 * u32::from(byte),
            None => 23,
        };
        let scales = self.lanes(operand, Ty::f32, 0)?;
        let scales = scales.map(|word| match word >> shift & 0xff {
            0xff => f64::NAN,
            exponent => power_of_two(exponent as i32 - 127),
        });
        let parts = matrix
            .0
            .as_flattened_mut()
            .chunks_exact_mut(32 * shape.size);
        for (part, scales) in parts.zip(scales.chunks_exact(shape.size)) {
            for elements in part.chunks_exact_mut(shape.size) {
                for (element, scale) in elements.iter_mut().zip(scales) {
                    *element *= scale;
                }
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
    a: &Matrix<ITEMS>,
    b: &Matrix<ITEMS>,
    shape: Shape,
    sums: &mut [Lanes; REGISTERS],
    finish: impl Fn(f64, u32) -> u32,
) {
    let Shape { size, depth, .. } = shape;
    let a = a.0.as_flattened().chunks_exact(size * depth);
    let b = b.0.as_flattened().chunks_exact(size * depth);
    for (block, (a, b)) in a.zip(b).enumerate() {
        for row in 0..size {
            let (register, lane) = shape.row(block, row);
            for column in (0..size).step_by(WIDTH) {
                let mut sum = [0.0; WIDTH];
                for (a, b) in a.chunks_exact(size).zip(b.chunks_exact(size)) {
                    let (a, b) = (a[row], &b[column..column + WIDTH]);
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
            let (table, mask) = (small.values(), ((1 << small.bits()) - 1) as u8);
            for (value, (low, high)) in values.iter_mut().zip(words.iter().zip(next)) {
                // An element that ends in this register has nothing of the next below its mask.
                let bits = (low >> shift) as u8 | ((high << 1) << (31 - shift)) as u8;
                *value = f64::from(table[usize::from(bits & mask)]);
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

/// The lanes that the elements of A and of B are read from, as `cbsz` and `abid` say of A and
/// `blgp` of B, where these are not their own.
fn broadcast(shape: Shape, modifiers: &Modifiers) -> Result<[Option<[u8; LANES]>; 2], Fault> {
    let lanes = |from: &dyn Fn(u8) -> u8| Some(std::array::from_fn(|lane| from(lane as u8)));
    let Modifiers {
        cbsz, abid, blgp, ..
    } = *modifiers;
    let a = match cbsz {
        0 => None,
        1..=4 if 1 << cbsz <= shape.blocks && abid < 1 << cbsz => {
            let count = 64 >> cbsz;
            lanes(&|lane| lane % count + count * abid)
        }
        _ => return Err(Fault::Operand),
    };
    let b = match blgp {
        0 => None,
        1 => lanes(&|lane| lane % 32),
        2 => lanes(&|lane| lane % 32 + 32),
        3 => lanes(&|lane| (lane + 16) % 64),
        4..=7 => lanes(&|lane| lane % 16 + 16 * (blgp - 4)),
        _ => return Err(Fault::Operand),
    };
    Ok([a, b])
}
