//! What a vector instruction reads and where its result goes: signs and magnitudes, parts of
//! registers, other lanes.

use crate::asm::{Instruction, Operand};
use crate::isa::{Dpp, DstUnused, Encoding, Format, Opcode, OutputScale, Select, Ty};

use super::super::fault::Fault;
use super::super::float::{f16_from_f32, f16_value, flush};
use super::super::wave::{LANES, Lanes, Wave, Wide, marks};

impl Wave {
    /// A source of up to 32 bits, as the operation sees it. Parts of a register lie at its low end.
    pub(super) fn source(&self, instruction: &Instruction, index: usize) -> Result<Lanes, Fault> {
        let op = instruction.op;
        let ty = *op.sources().get(index).ok_or(Fault::Operand)?;
        let operand = instruction.source_operand(index)?;
        let mut values = self.lanes(operand, ty, 0)?;
        if index == 0
            && let Some(dpp) = instruction.modifiers.dpp
        {
            values = self.read_across(dpp, |lane| values[lane]);
        }
        let marks = marks(operand);
        let half = matches!(ty, Ty::f16 | Ty::b16);
        if instruction.encoding == Encoding::Sdwa {
            let select = match index {
                0 => instruction.modifiers.src0_sel,
                1 => instruction.modifiers.src1_sel,
                _ => Select::Dword,
            };
            select_part(&mut values, select, marks.sext);
        } else if half
            && op.format() != Format::Vop3p
            && instruction.modifiers.op_sel >> index & 1 == 1
        {
            values = values.map(|value| value >> 16);
        }
        let sign = if half { 0x8000 } else { 0x8000_0000 };
        if marks.abs {
            values = values.map(|value| value & !sign);
        }
        if marks.neg {
            values = values.map(|value| value ^ sign);
        }
        if self.flush_32 && ty == Ty::f32 {
            values = values.map(flush);
        }
        Ok(values)
    }

    /// All sources of up to 32 bits; what an instruction has no source for is zero. Where the
    /// destination is a source too, it is the third.
    pub(super) fn sources(&self, instruction: &Instruction) -> Result<[Lanes; 3], Fault> {
        let mut sources = [[0; LANES]; 3];
        for (index, ty) in instruction.op.sources().iter().take(3).enumerate() {
            if *ty != Ty::mask {
                sources[index] = self.source(instruction, index)?;
            }
        }
        if instruction.op.sources().len() < 3 && instruction.op.is(crate::isa::Flags::KEEPS) {
            sources[2] = self.lanes(instruction.destination(0)?, Ty::b32, 0)?;
            if self.flush_32 && instruction.op.results().first() == Some(&Ty::f32) {
                sources[2] = sources[2].map(flush);
            }
        }
        Ok(sources)
    }

    /// A source of 64 bits.
    pub(super) fn wide_source(
        &self,
        instruction: &Instruction,
        index: usize,
    ) -> Result<Wide, Fault> {
        let ty = *instruction.op.sources().get(index).ok_or(Fault::Operand)?;
        let operand = instruction.source_operand(index)?;
        let mut values = self.wide(operand, ty)?;
        if index == 0
            && let Some(dpp) = instruction.modifiers.dpp
        {
            values = self.read_across(dpp, |lane| values[lane]);
        }
        let marks = marks(operand);
        let sign = 1 << 63;
        if marks.abs {
            values = values.map(|value| value & !sign);
        }
        if marks.neg {
            values = values.map(|value| value ^ sign);
        }
        Ok(values)
    }

    /// What each lane reads by way of another; zero where that one is none.
    fn read_across<T: Copy + Default>(&self, dpp: Dpp, of: impl Fn(usize) -> T) -> [T; LANES] {
        std::array::from_fn(|lane| match self.other_lane(dpp, lane) {
            Some(other) => of(other),
            None => T::default(),
        })
    }

    /// The lane that a lane reads from, where there is one and it is active.
    fn other_lane(&self, dpp: Dpp, lane: usize) -> Option<usize> {
        let (row, at) = (lane & !15, lane & 15);
        let other = match dpp {
            Dpp::QuadPerm(order) => (lane & !3) + usize::from(order[lane & 3] & 3),
            Dpp::RowShl(count) => {
                let from = at + usize::from(count);
                (from < 16).then_some(row + from)?
            }
            Dpp::RowShr(count) => row + at.checked_sub(usize::from(count))?,
            Dpp::RowRor(count) => row + ((at + 16 - usize::from(count & 15)) & 15),
            Dpp::WaveShl => (lane < 63).then_some(lane + 1)?,
            Dpp::WaveRol => (lane + 1) & 63,
            Dpp::WaveShr => lane.checked_sub(1)?,
            Dpp::WaveRor => (lane + 63) & 63,
            Dpp::RowMirror => row + (15 - at),
            Dpp::RowHalfMirror => (lane & !7) + (7 - (lane & 7)),
            Dpp::RowBcast15 => row.checked_sub(1)?,
            Dpp::RowBcast31 => (lane >= 32).then_some(31)?,
            Dpp::RowNewbcast(from) => row + usize::from(from & 15),
        };
        (self.exec >> other & 1 == 1).then_some(other)
    }

    /// The lanes that a vector instruction writes.
    pub(in crate::emu) fn written(&self, instruction: &Instruction) -> u64 {
        let modifiers = &instruction.modifiers;
        let Some(dpp) = modifiers.dpp else {
            return self.exec;
        };
        let written = |lane: usize| {
            modifiers.row_mask >> (lane >> 4) & 1 == 1
                && modifiers.bank_mask >> (lane >> 2 & 3) & 1 == 1
                && (modifiers.bound_ctrl || self.other_lane(dpp, lane).is_some())
        };
        (0..LANES).fold(0, |mask, lane| mask | u64::from(written(lane)) << lane) & self.exec
    }

    /// Scales, clamps and writes the first result, of up to 32 bits.
    pub(super) fn put(
        &mut self,
        instruction: &Instruction,
        mut values: Lanes,
    ) -> Result<(), Fault> {
        let modifiers = &instruction.modifiers;
        let ty = *instruction.op.results().first().ok_or(Fault::Operand)?;
        let destination = instruction.destination(0)?;
        match ty {
            Ty::f32 => {
                let scale = output_scale(modifiers.omod);
                if scale != 1.0 {
                    values = values.map(|value| (f32::from_bits(value) * scale).to_bits());
                }
                if modifiers.clamp {
                    values = values.map(|value| clamp(f32::from_bits(value)).to_bits());
                }
                if self.flush_32 {
                    values = values.map(flush);
                }
            }
            Ty::f16 if modifiers.clamp || modifiers.omod != OutputScale::One => {
                let scale = output_scale(modifiers.omod);
                values = values.map(|value| {
                    let value = f16_value(value as u16) * scale;
                    let value = if modifiers.clamp { clamp(value) } else { value };
                    u32::from(f16_from_f32(value))
                });
            }
            _ => {}
        }
        let mask = self.written(instruction);
        let half = matches!(ty, Ty::f16 | Ty::b16);
        let part = if instruction.encoding == Encoding::Sdwa {
            Some((modifiers.dst_sel, modifiers.dst_unused))
        } else if half && modifiers.op_sel >> instruction.op.sources().len() & 1 == 1 {
            Some((Select::Word(1), DstUnused::Preserve))
        } else if half && keeps_high_half(instruction.op) {
            Some((Select::Word(0), DstUnused::Preserve))
        } else if half {
            Some((Select::Word(0), DstUnused::Pad))
        } else {
            None
        };
        if let Some((select, unused)) = part
            && select != Select::Dword
        {
            let old = self.lanes(destination, Ty::b32, 0)?;
            for (value, old) in values.iter_mut().zip(old) {
                *value = place_part(*value, old, select, unused);
            }
        }
        self.set_some_lanes(destination, 0, &values, mask)
    }

    /// Scales, clamps and writes the first result, of 64 bits.
    pub(super) fn put_wide(
        &mut self,
        instruction: &Instruction,
        mut values: Wide,
    ) -> Result<(), Fault> {
        let modifiers = &instruction.modifiers;
        if instruction.op.results().first() == Some(&Ty::f64) {
            let scale = f64::from(output_scale(modifiers.omod));
            if scale != 1.0 {
                values = values.map(|value| (f64::from_bits(value) * scale).to_bits());
            }
            if modifiers.clamp {
                values = values.map(|value| clamp_wide(f64::from_bits(value)).to_bits());
            }
        }
        let destination = instruction.destination(0)?;
        match modifiers.dpp {
            Some(_) => self.set_some_wide(destination, &values, self.written(instruction)),
            None => self.set_wide(destination, &values),
        }
    }
}

impl Instruction {
    /// A source, by its place among the row's.
    pub(in crate::emu) fn source_operand(&self, index: usize) -> Result<&Operand, Fault> {
        let at = self.op.results().len() + index;
        self.operands.get(at).ok_or(Fault::Operand)
    }

    pub(in crate::emu) fn destination(&self, index: usize) -> Result<&Operand, Fault> {
        self.operands.get(index).ok_or(Fault::Operand)
    }
}

/// Operations of 16 bits that leave the upper half of a register alone: those that came with
/// gfx9. The others write zeros there, as do those that gfx9 kept under a new name.
pub(in crate::emu) fn keeps_high_half(op: Opcode) -> bool {
    use Opcode::*;
    let legacy = matches!(
        op,
        v_mad_legacy_u16
            | v_mad_legacy_i16
            | v_mad_legacy_f16
            | v_fma_legacy_f16
            | v_div_fixup_legacy_f16
    );
    op.format() == Format::Vop3 && !legacy
}

fn output_scale(omod: OutputScale) -> f32 {
    match omod {
        OutputScale::One => 1.0,
        OutputScale::Two => 2.0,
        OutputScale::Four => 4.0,
        OutputScale::Half => 0.5,
    }
}

/// Between 0 and 1; a NaN is 0.
pub(super) fn clamp(value: f32) -> f32 {
    if value > 0.0 { value.min(1.0) } else { 0.0 }
}

fn clamp_wide(value: f64) -> f64 {
    if value > 0.0 { value.min(1.0) } else { 0.0 }
}

fn select_part(values: &mut Lanes, select: Select, sext: bool) {
    let (shift, bits) = match select {
        Select::Dword => return,
        Select::Word(at) => (16 * u32::from(at), 16),
        Select::Byte(at) => (8 * u32::from(at), 8),
    };
    let (up, down) = (32 - bits - shift, 32 - bits);
    for value in values {
        *value = match sext {
            true => ((*value << up) as i32 >> down) as u32,
            false => *value << up >> down,
        };
    }
}

/// A part of a register written, and what becomes of the rest.
fn place_part(value: u32, old: u32, select: Select, unused: DstUnused) -> u32 {
    let (shift, mask) = match select {
        Select::Dword => (0, u32::MAX),
        Select::Word(at) => (16 * u32::from(at), 0xffff),
        Select::Byte(at) => (8 * u32::from(at), 0xff),
    };
    let part = (value & mask) << shift;
    match unused {
        DstUnused::Pad => part,
        DstUnused::Preserve => old & !(mask << shift) | part,
        // The sign above, zeros below.
        DstUnused::Sext => {
            let top = (mask << shift).leading_zeros();
            ((part << top) as i32 >> top) as u32
        }
    }
}
