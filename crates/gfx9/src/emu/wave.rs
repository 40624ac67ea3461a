//! One wave: 64 lanes, their registers, and what is shared by them.

use crate::asm::{Marks, Operand, PRIVATE_BASE, RegisterFile, Registers, SHARED_BASE};
use crate::isa::Ty;

use super::fault::Fault;
use super::float::f16_bits;

pub const LANES: usize = 64;

/// A register of every lane.
pub type Lanes = [u32; LANES];
/// A pair of registers of every lane.
pub type Wide = [u64; LANES];

/// The upper words of addresses of LDS and of private memory, where an address may be of either.
pub(super) const LDS_APERTURE: u32 = 0x0001_0000;
pub(super) const PRIVATE_APERTURE: u32 = 0x0002_0000;

/// A wave's registers.
#[derive(Clone, Debug)]
pub struct Wave {
    /// Its number in the block.
    pub id: u32,
    /// The next instruction.
    pub pc: usize,
    pub sgpr: Vec<u32>,
    pub vgpr: Vec<Lanes>,
    pub agpr: Vec<Lanes>,
    pub vcc: u64,
    pub exec: u64,
    pub m0: u32,
    pub scc: bool,
    pub priority: u8,
    pub ended: bool,
    /// Floats of 32 bits too small to be normal are zeros, as the descriptor says.
    pub flush_32: bool,
    /// MODE, but for what [`Self::flush_32`] says.
    mode: u32,
}

/// The bits of MODE that say what becomes of small floats of 32 bits: both set keep them.
const MODE_SMALL_32: u32 = 0x30;
/// Small doubles and halves are kept, clamping makes NaN zero, and NaN is as IEEE has it.
const MODE_START: u32 = 0x3c0;
/// Conversions to floats of 16 and 8 bits end at the largest.
const MODE_SATURATE: u32 = 1 << 23;

impl Wave {
    pub fn new(id: u32, sgprs: usize, vgprs: usize, agprs: usize) -> Self {
        Self {
            id,
            pc: 0,
            sgpr: vec![0; sgprs],
            vgpr: vec![[0; LANES]; vgprs],
            agpr: vec![[0; LANES]; agprs],
            vcc: 0,
            exec: u64::MAX,
            m0: 0,
            scc: false,
            priority: 0,
            ended: false,
            flush_32: false,
            mode: MODE_START,
        }
    }

    pub(super) fn mode(&self) -> u32 {
        self.mode | if self.flush_32 { 0 } else { MODE_SMALL_32 }
    }

    /// Sets MODE. Small floats of 32 bits are kept as sources and results alike, or not at all.
    pub(super) fn set_mode(&mut self, mode: u32) -> Result<(), Fault> {
        self.flush_32 = match mode & MODE_SMALL_32 {
            0 => true,
            MODE_SMALL_32 => false,
            _ => return Err(Fault::Unsupported),
        };
        self.mode = mode & !MODE_SMALL_32;
        Ok(())
    }

    /// Whether conversions to small floats end at the largest of them.
    pub(super) fn saturates(&self) -> bool {
        self.mode & MODE_SATURATE != 0
    }

    /// One word that all lanes share: `index` words behind the first of a run.
    pub(super) fn scalar_word(&self, registers: Registers, index: u16) -> Result<u32, Fault> {
        let at = registers.first + index;
        let half = |value: u64| (value >> (32 * u32::from(at & 1))) as u32;
        match registers.file {
            RegisterFile::Scalar => {
                let word = self.sgpr.get(usize::from(at)).copied();
                word.ok_or(Fault::Register(registers.file, at))
            }
            RegisterFile::Vcc => Ok(half(self.vcc)),
            RegisterFile::Exec => Ok(half(self.exec)),
            RegisterFile::M0 => Ok(self.m0),
            RegisterFile::Scc => Ok(u32::from(self.scc)),
            RegisterFile::Other if at == SHARED_BASE + 1 => Ok(LDS_APERTURE),
            RegisterFile::Other if at == PRIVATE_BASE + 1 => Ok(PRIVATE_APERTURE),
            RegisterFile::Other if at == SHARED_BASE || at == PRIVATE_BASE => Ok(0),
            RegisterFile::Other | RegisterFile::Vector | RegisterFile::Accumulator => {
                Err(Fault::Register(registers.file, at))
            }
        }
    }

    pub(super) fn set_scalar_word(
        &mut self,
        registers: Registers,
        index: u16,
        word: u32,
    ) -> Result<(), Fault> {
        let at = registers.first + index;
        let put = |value: &mut u64| {
            let shift = 32 * u32::from(at & 1);
            *value = *value & !(0xffff_ffff << shift) | u64::from(word) << shift;
        };
        match registers.file {
            RegisterFile::Scalar => {
                let place = self.sgpr.get_mut(usize::from(at));
                *place.ok_or(Fault::Register(registers.file, at))? = word;
            }
            RegisterFile::Vcc => put(&mut self.vcc),
            RegisterFile::Exec => put(&mut self.exec),
            RegisterFile::M0 => self.m0 = word,
            _ => return Err(Fault::Register(registers.file, at)),
        }
        Ok(())
    }

    /// A scalar source of 32 bits.
    pub(super) fn scalar32(&self, operand: &Operand, ty: Ty) -> Result<u32, Fault> {
        match operand {
            Operand::Registers(registers, _) => self.scalar_word(*registers, 0),
            other => constant32(other, ty),
        }
    }

    /// A scalar source of 64 bits: a pair of registers, or a constant with its sign.
    pub(super) fn scalar64(&self, operand: &Operand, ty: Ty) -> Result<u64, Fault> {
        match operand {
            Operand::Registers(registers, _) => {
                let low = self.scalar_word(*registers, 0)?;
                let high = self.scalar_word(*registers, 1)?;
                Ok(u64::from(low) | u64::from(high) << 32)
            }
            other => constant64(other, ty),
        }
    }

    pub(super) fn set_scalar32(&mut self, operand: &Operand, word: u32) -> Result<(), Fault> {
        let registers = operand.registers().ok_or(Fault::Operand)?;
        self.set_scalar_word(registers, 0, word)
    }

    pub(super) fn set_scalar64(&mut self, operand: &Operand, value: u64) -> Result<(), Fault> {
        let registers = operand.registers().ok_or(Fault::Operand)?;
        self.set_scalar_word(registers, 0, value as u32)?;
        self.set_scalar_word(registers, 1, (value >> 32) as u32)
    }

    /// A vector register, from either half of the file.
    pub(super) fn vector(&self, registers: Registers, index: u16) -> Result<&Lanes, Fault> {
        let at = registers.first + index;
        let file = match registers.file {
            RegisterFile::Vector => &self.vgpr,
            RegisterFile::Accumulator => &self.agpr,
            file => return Err(Fault::Register(file, at)),
        };
        file.get(usize::from(at))
            .ok_or(Fault::Register(registers.file, at))
    }

    pub(super) fn vector_mut(
        &mut self,
        registers: Registers,
        index: u16,
    ) -> Result<&mut Lanes, Fault> {
        let at = registers.first + index;
        let file = match registers.file {
            RegisterFile::Vector => &mut self.vgpr,
            RegisterFile::Accumulator => &mut self.agpr,
            file => return Err(Fault::Register(file, at)),
        };
        file.get_mut(usize::from(at))
            .ok_or(Fault::Register(registers.file, at))
    }

    /// A source of a vector instruction, one word a lane, without its marks: registers of the
    /// lanes, or what they share, in every lane.
    pub(super) fn lanes(&self, operand: &Operand, ty: Ty, index: u16) -> Result<Lanes, Fault> {
        match operand {
            Operand::Registers(registers, _) => match registers.file {
                RegisterFile::Vector | RegisterFile::Accumulator => {
                    self.vector(*registers, index).copied()
                }
                _ => Ok([self.scalar_word(*registers, index)?; LANES]),
            },
            other => Ok([constant32(other, ty)?; LANES]),
        }
    }

    /// A source of two words a lane, without its marks.
    pub(super) fn wide(&self, operand: &Operand, ty: Ty) -> Result<Wide, Fault> {
        let mut wide = [0; LANES];
        match operand {
            Operand::Registers(..) => {
                let (low, high) = (self.lanes(operand, ty, 0)?, self.lanes(operand, ty, 1)?);
                for (value, (low, high)) in wide.iter_mut().zip(low.iter().zip(high)) {
                    *value = u64::from(*low) | u64::from(high) << 32;
                }
            }
            other => wide = [constant64(other, ty)?; LANES],
        }
        Ok(wide)
    }

    /// Writes the active lanes of a register.
    pub(super) fn set_lanes(
        &mut self,
        operand: &Operand,
        index: u16,
        values: &Lanes,
    ) -> Result<(), Fault> {
        self.set_some_lanes(operand, index, values, self.exec)
    }

    /// Writes the lanes of a mask, active or not.
    pub(super) fn set_some_lanes(
        &mut self,
        operand: &Operand,
        index: u16,
        values: &Lanes,
        mask: u64,
    ) -> Result<(), Fault> {
        let registers = operand.registers().ok_or(Fault::Operand)?;
        let register = self.vector_mut(registers, index)?;
        if mask == u64::MAX {
            *register = *values;
        } else {
            for lane in active(mask) {
                register[lane] = values[lane];
            }
        }
        Ok(())
    }

    pub(super) fn set_wide(&mut self, operand: &Operand, values: &Wide) -> Result<(), Fault> {
        self.set_some_wide(operand, values, self.exec)
    }

    pub(super) fn set_some_wide(
        &mut self,
        operand: &Operand,
        values: &Wide,
        mask: u64,
    ) -> Result<(), Fault> {
        self.set_some_lanes(operand, 0, &values.map(|value| value as u32), mask)?;
        self.set_some_lanes(operand, 1, &values.map(|value| (value >> 32) as u32), mask)
    }

    /// A mask of lanes: a pair of scalar registers.
    pub(super) fn mask(&self, operand: &Operand) -> Result<u64, Fault> {
        self.scalar64(operand, Ty::mask)
    }

    /// Writes a mask: lanes that are not active get zero.
    pub(super) fn set_mask(&mut self, operand: &Operand, mask: u64) -> Result<(), Fault> {
        self.set_scalar64(operand, mask & self.exec)
    }
}

/// The lanes of a mask.
pub(super) fn active(mask: u64) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        let lane = left.trailing_zeros() as usize;
        left &= left.wrapping_sub(1);
        (lane < LANES).then_some(lane)
    })
}

/// The marks of an operand; none on a constant.
pub(super) fn marks(operand: &Operand) -> Marks {
    match operand {
        Operand::Registers(_, marks) => *marks,
        _ => Marks::default(),
    }
}

/// A constant of 32 bits, as an instruction of this type reads it.
pub(super) fn constant32(operand: &Operand, ty: Ty) -> Result<u32, Fault> {
    match operand {
        Operand::Integer(value) => Ok(*value as u32),
        Operand::Float(value) => Ok(match ty {
            Ty::f16 | Ty::b16 => u32::from(f16_bits(*value)),
            // Of a pair of halves a constant is the lower one.
            Ty::p16 | Ty::i16x2 => u32::from(f16_bits(*value)),
            _ => (*value as f32).to_bits(),
        }),
        _ => Err(Fault::Operand),
    }
}

/// A constant of 64 bits. A literal of a double is its upper word.
fn constant64(operand: &Operand, ty: Ty) -> Result<u64, Fault> {
    match (operand, ty) {
        (Operand::Integer(value), Ty::f64) if operand.is_literal() => {
            Ok((*value as u64 & 0xffff_ffff) << 32)
        }
        (Operand::Integer(value), Ty::f32x2) => {
            let word = u64::from(*value as u32);
            Ok(word | word << 32)
        }
        (Operand::Float(value), Ty::f32x2) => {
            let word = u64::from((*value as f32).to_bits());
            Ok(word | word << 32)
        }
        (Operand::Integer(value), _) => Ok(*value as u64),
        (Operand::Float(value), _) => Ok(value.to_bits()),
        _ => Err(Fault::Operand),
    }
}
