//! Scalar loads.

use crate::asm::{Instruction, Operand};
use crate::isa::{Opcode, Ty};

use super::block::Block;
use super::fault::Fault;
use super::order::Unit;
use super::queue::{Pending, SCALAR_MOST};

impl Block<'_> {
    pub(super) fn scalar_memory(
        &mut self,
        w: usize,
        at: usize,
        i: &Instruction,
    ) -> Result<(), Fault> {
        if i.op.is_cache() {
            return Ok(());
        }
        let running = &mut self.waves[w];
        if running.queues.scalar.len() >= SCALAR_MOST {
            return Err(Fault::Unwaited);
        }
        let stamp = running.queues.stamp(Unit::Scalar);
        let op = running.knows.operation(stamp, at, false);
        let mut pending = Pending::new(op, running.wave.exec);
        if !matches!(i.op, Opcode::s_memtime | Opcode::s_memrealtime) {
            let wave = &running.wave;
            let operand = |index: usize| i.operands.get(index).ok_or(Fault::Operand);
            if i.op.sources().first() == Some(&Ty::b128) {
                return Err(Fault::Unsupported);
            }
            let base = wave.scalar64(operand(1)?, Ty::b64)?;
            let offset = match operand(2)? {
                Operand::Integer(value) => *value as u64,
                register => u64::from(wave.scalar32(register, Ty::b32)?),
            };
            let more = i64::from(i.modifiers.offset) as u64;
            pending.addresses[0] = base.wrapping_add(offset).wrapping_add(more) & !3;
        }
        self.issue(w, Unit::Scalar, pending);
        Ok(())
    }

    pub(super) fn land_scalar(
        &mut self,
        w: usize,
        pending: &Pending,
        i: &Instruction,
    ) -> Result<(), Fault> {
        let Some(registers) = i.operands.first().and_then(Operand::registers) else {
            return Err(Fault::Operand);
        };
        if matches!(i.op, Opcode::s_memtime | Opcode::s_memrealtime) {
            // Time that goes on, and is the same in every run.
            let time = u64::from(pending.op.stamp.time) << 8;
            let wave = &mut self.waves[w].wave;
            wave.set_scalar_word(registers, 0, time as u32)?;
            return wave.set_scalar_word(registers, 1, (time >> 32) as u32);
        }
        let ty = *i.op.results().first().ok_or(Fault::Operand)?;
        for index in 0..ty.registers() {
            let address = pending.addresses[0] + u64::from(index) * 4;
            let mut bytes = [0; 4];
            let block = self.id;
            let troubles = {
                let mut memory = self.shared.memory();
                memory.read(address, &mut bytes, block, &pending.op)
            };
            self.troubles(w, &pending.op, troubles);
            let word = u32::from_le_bytes(bytes);
            self.waves[w].wave.set_scalar_word(registers, index, word)?;
            self.unknown_scalar(w, &pending.op, registers, index, address);
        }
        Ok(())
    }
}
