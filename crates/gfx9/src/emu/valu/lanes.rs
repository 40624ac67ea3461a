//! Values that go from lane to lane, or between a lane and the wave.

use crate::asm::{Instruction, RegisterFile};
use crate::isa::{Opcode, Ty};

use super::super::fault::Fault;
use super::super::wave::{LANES, Wave};

impl Wave {
    /// Reads and writes of one lane, and swaps of registers. `None`: none of these.
    pub(super) fn lane_moves(&mut self, instruction: &Instruction) -> Result<Option<()>, Fault> {
        use Opcode::*;
        match instruction.op {
            v_nop => {}
            v_readfirstlane_b32 => {
                let lane = match self.exec {
                    0 => 0,
                    exec => exec.trailing_zeros() as usize,
                };
                let values = self.lanes(instruction.source_operand(0)?, Ty::b32, 0)?;
                self.set_scalar32(instruction.destination(0)?, values[lane])?;
            }
            v_readlane_b32 => {
                let lane = self.scalar32(instruction.source_operand(1)?, Ty::b32)? as usize;
                let values = self.lanes(instruction.source_operand(0)?, Ty::b32, 0)?;
                self.set_scalar32(instruction.destination(0)?, values[lane % LANES])?;
            }
            v_writelane_b32 => {
                let value = self.scalar32(instruction.source_operand(0)?, Ty::b32)?;
                let lane = self.scalar32(instruction.source_operand(1)?, Ty::b32)? as usize;
                let registers = instruction.destination(0)?.registers();
                let register = self.vector_mut(registers.ok_or(Fault::Operand)?, 0)?;
                register[lane % LANES] = value;
            }
            // Each operand is read and written.
            v_swap_b32 => self.exchange(instruction, |first, second| {
                std::mem::swap(first, second);
            })?,
            v_permlane16_swap_b32 => self.exchange(instruction, |first, second| {
                // The odd rows of the first with the even rows of the second.
                for row in [0, 32] {
                    first[row + 16..row + 32].swap_with_slice(&mut second[row..row + 16]);
                }
            })?,
            v_permlane32_swap_b32 => self.exchange(instruction, |first, second| {
                first[32..].swap_with_slice(&mut second[..32]);
            })?,
            _ => return Ok(None),
        }
        Ok(Some(()))
    }

    fn exchange(
        &mut self,
        instruction: &Instruction,
        swap: impl Fn(&mut [u32; LANES], &mut [u32; LANES]),
    ) -> Result<(), Fault> {
        let (first, second) = (instruction.destination(0)?, instruction.destination(1)?);
        let vector = |operand: &crate::asm::Operand| {
            operand.registers().is_some_and(|registers| {
                matches!(
                    registers.file,
                    RegisterFile::Vector | RegisterFile::Accumulator
                )
            })
        };
        if !vector(first) || !vector(second) {
            return Err(Fault::Operand);
        }
        let mut a = self.lanes(first, Ty::b32, 0)?;
        let mut b = self.lanes(second, Ty::b32, 0)?;
        swap(&mut a, &mut b);
        self.set_lanes(first, 0, &a)?;
        self.set_lanes(second, 0, &b)
    }
}
