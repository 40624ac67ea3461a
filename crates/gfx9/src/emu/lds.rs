//! LDS: loads, stores, atomics, and exchanges between lanes, which use its crossbar.

use crate::asm::{Instruction, Operand};
use crate::isa::{Format, Opcode, Ty};

use super::atomics::Update;
use super::block::Block;
use super::fault::Fault;
use super::order::{Clash, Knowledge, Operation, Unit};
use super::queue::Pending;
use super::report::Kind;
use super::suspects::{Cell, Reads};
use super::transfer;
use super::wave::{LANES, Lanes, Wave, active};

impl Block<'_> {
    /// Issues an LDS instruction: addresses and data are read from registers now.
    pub(super) fn lds_access(&mut self, w: usize, at: usize, i: &Instruction) -> Result<(), Fault> {
        if i.op == Opcode::ds_nop {
            return Ok(());
        }
        let atomic = Update::of(i.op).is_some() || self.shared.code.atomic_loads[at];
        let running = &mut self.waves[w];
        let stamp = running.queues.stamp(Unit::Lds);
        let op = running.knows.operation(stamp, at, atomic);
        let mut pending = Pending::new(op, running.wave.exec);
        let wave = &running.wave;
        let sources = i.operands.get(i.destinations()..).unwrap_or_default();
        if let Some(lanes) = exchange(wave, i, sources)? {
            pending.data.push(lanes);
            self.issue(w, Unit::Lds, pending);
            return Ok(());
        }
        for (operand, ty) in sources.iter().zip(i.op.sources()) {
            if *ty == Ty::addr {
                let lanes = wave.lanes(operand, Ty::b32, 0)?;
                for (address, lane) in pending.addresses.iter_mut().zip(lanes) {
                    *address = u64::from(lane);
                }
            } else {
                for index in 0..ty.registers() {
                    pending.data.push(wave.lanes(operand, *ty, index)?);
                }
            }
        }
        self.issue(w, Unit::Lds, pending);
        Ok(())
    }

    /// Does what an LDS instruction does.
    pub(super) fn land_lds(
        &mut self,
        w: usize,
        pending: &mut Pending,
        i: &Instruction,
    ) -> Result<(), Fault> {
        if pending.op.atomic {
            pending.learned = Some(self.exchange_knowledge(pending, i));
        }
        let pending = &*pending;
        let result = i.operands.first().filter(|_| i.destinations() > 0);
        let registers = result.and_then(Operand::registers);
        let op = &pending.op;
        if i.op.format() == Format::Ds && !i.is_lds_access() {
            let (Some(registers), Some(data)) = (registers, pending.data.first()) else {
                return Err(Fault::Operand);
            };
            let register = self.waves[w].wave.vector_mut(registers, 0)?;
            for lane in active(pending.exec) {
                register[lane] = data[lane];
            }
            return Ok(());
        }
        if let Some(registers) = registers {
            self.know_registers(w, registers, pending.exec);
        }
        if let Some((update, bytes)) = Update::of(i.op) {
            return self.lds_update(w, pending, i, update, bytes);
        }
        if let Some(bits) = i.op.transposed_bits() {
            let registers = registers.ok_or(Fault::Operand)?;
            return self.lds_transposed(w, pending, i, registers, bits as usize);
        }
        let (first, second) = offsets(i);
        let mut buffer = [0; 16];
        if let Some(registers) = registers {
            let ty = *i.op.results().first().ok_or(Fault::Operand)?;
            let size = ty.bytes() as usize / if second.is_some() { 2 } else { 1 };
            for lane in active(pending.exec) {
                let base = pending.addresses[lane];
                let places = [Some(at(base, first)), second.map(|second| at(base, second))];
                for (place, bytes) in places.into_iter().flatten().zip(buffer.chunks_mut(size)) {
                    self.lds_read(w, op, place, bytes);
                }
                let bytes = &buffer[..ty.bytes() as usize];
                transfer::load(&mut self.waves[w].wave, registers, ty, lane, bytes)?;
                let places = places.into_iter().flatten();
                let cells = places.flat_map(|place| (place..).take(size));
                let cells = cells.map(|byte| Cell::Lds(byte as u32));
                self.unknown_load(w, op, registers, ty, lane, cells)?;
            }
        } else {
            let ty = *i.op.sources().get(1).ok_or(Fault::Operand)?;
            let size = ty.bytes() as usize;
            let words = usize::from(ty.registers());
            for lane in active(pending.exec) {
                let base = pending.addresses[lane];
                transfer::stored(&pending.data[..words], ty, lane, &mut buffer[..size]);
                self.lds_write(w, op, at(base, first), &buffer[..size]);
                if let Some(second) = second {
                    transfer::stored(&pending.data[words..], ty, lane, &mut buffer[..size]);
                    self.lds_write(w, op, at(base, second), &buffer[..size]);
                }
            }
        }
        Ok(())
    }

    /// What an atomic operation hands on: who asks a place learns what those knew who changed it.
    fn exchange_knowledge(&mut self, pending: &Pending, i: &Instruction) -> Knowledge {
        let mut learned = pending.op.knows.clone();
        let changes = Update::of(i.op).is_some();
        for lane in active(pending.exec) {
            let address = at(pending.addresses[lane], i.modifiers.offset as u64);
            let known = self
                .handed
                .entry(address)
                .or_insert_with(|| pending.op.knows.clone());
            learned.join(known);
            if changes {
                known.join(&pending.op.knows);
                // Its wave's LDS operations before it are done in their order.
                known.learn(pending.op.stamp);
            }
        }
        learned
    }

    fn lds_update(
        &mut self,
        w: usize,
        pending: &Pending,
        i: &Instruction,
        update: Update,
        bytes: u32,
    ) -> Result<(), Fault> {
        let size = bytes as usize;
        let words = size / 4;
        let registers = i.operands.first().filter(|_| i.destinations() > 0);
        let registers = registers.and_then(Operand::registers);
        let ty = if bytes == 4 { Ty::b32 } else { Ty::b64 };
        for lane in active(pending.exec) {
            let address = at(pending.addresses[lane], i.modifiers.offset as u64);
            let mut buffer = [0; 8];
            self.lds_read(w, &pending.op, address, &mut buffer[..size]);
            let memory = u64::from_le_bytes(buffer);
            let first = transfer::value(&pending.data[..words], lane);
            let second = pending.data.get(words..2 * words);
            let second = second.map(|data| transfer::value(data, lane));
            // A compare-and-swap of LDS names what it looks for first, the others last.
            let new = match second {
                Some(new) if i.op.format() == Format::Ds => update.apply(bytes, memory, new, first),
                Some(compared) => update.apply(bytes, memory, first, compared),
                None => update.apply(bytes, memory, first, 0),
            };
            self.lds_write(w, &pending.op, address, &new.to_le_bytes()[..size]);
            if let Some(registers) = registers {
                let old = &buffer[..size];
                transfer::load(&mut self.waves[w].wave, registers, ty, lane, old)?;
            }
        }
        Ok(())
    }

    /// A load that turns a tile: of 16 lanes the four that name row `r` bring its 16 elements, four
    /// each, and lane `c` gets element `c` of the four rows.
    fn lds_transposed(
        &mut self,
        w: usize,
        pending: &Pending,
        i: &Instruction,
        registers: crate::asm::Registers,
        bits: usize,
    ) -> Result<(), Fault> {
        if 64 % bits != 0 {
            return Err(Fault::Unsupported);
        }
        let each = 64 / bits;
        let mut chunks = [0u64; LANES];
        let mut cells = Vec::new();
        for lane in active(pending.exec) {
            let mut bytes = [0; 8];
            let address = at(pending.addresses[lane], i.modifiers.offset as u64);
            self.lds_read(w, &pending.op, address, &mut bytes);
            chunks[lane] = u64::from_le_bytes(bytes);
            cells.extend((address..address + 8).map(|byte| Cell::Lds(byte as u32)));
        }
        let mask = (1u64 << bits) - 1;
        let wave = &mut self.waves[w].wave;
        for lane in active(pending.exec) {
            let (group, column) = (lane / 16 * 16, lane % 16);
            // A row of 16 elements is in as many lanes as it takes.
            let lanes_a_row = 16 / each;
            let mut result = 0;
            for row in 0..each {
                let from = group + row * lanes_a_row + column / each;
                let element = chunks[from] >> (column % each * bits) & mask;
                result |= element << (row * bits);
            }
            transfer::load(wave, registers, Ty::b64, lane, &result.to_le_bytes())?;
        }
        self.unknown_tile(w, &pending.op, registers, pending.exec, cells.into_iter());
        Ok(())
    }

    fn lds_read(&mut self, w: usize, op: &Operation, address: u64, into: &mut [u8]) {
        let at = address as usize;
        let Some(bytes) = self.lds.get(at..at + into.len()) else {
            into.fill(0);
            return self.lds_outside(w, op, address, into.len());
        };
        into.copy_from_slice(bytes);
        for byte in at..at + into.len() {
            if let Some(clash) = self.shadow.read(byte, op) {
                self.lds_clash(w, op, byte, clash);
            }
        }
    }

    pub(super) fn lds_write(&mut self, w: usize, op: &Operation, address: u64, from: &[u8]) {
        let at = address as usize;
        if at + from.len() > self.lds.len() {
            return self.lds_outside(w, op, address, from.len());
        }
        for (byte, value) in (at..).zip(from) {
            let again = self.shadow.wrote(byte, op) && !op.atomic;
            if again && self.lds[byte] != *value {
                let reason = format!("two lanes write different values to LDS byte {byte}");
                self.find(w, Kind::LaneConflict, op.at, None, reason);
            }
            for clash in self.shadow.write(byte, op) {
                self.lds_clash(w, op, byte, clash);
            }
            self.lds[byte] = *value;
        }
    }

    fn lds_outside(&mut self, w: usize, op: &Operation, address: u64, bytes: usize) {
        let end = address + bytes as u64;
        let reason = format!(
            "LDS bytes {address} to {end} are touched, the block has {}",
            self.lds.len()
        );
        self.find(w, Kind::OutOfBounds, op.at, None, reason);
    }

    fn lds_clash(&mut self, w: usize, op: &Operation, byte: usize, clash: Clash) {
        let order =
            |wave| format!("nothing orders this and what wave {wave} does at LDS byte {byte}");
        let (kind, other, reason) = match clash {
            Clash::Written { at, wave } => (Kind::Race, Some(at), order(wave)),
            Clash::Read { at, reads } => (Kind::Race, Some(at), order(reads.agent.wave())),
            Clash::Unwritten => (
                Kind::Unwritten,
                None,
                format!("LDS byte {byte} is read, and nothing has written it"),
            ),
        };
        let (load, reads) = match clash {
            Clash::Read { at, reads } => (at, reads),
            _ => (op.at, Reads::one(op.stamp)),
        };
        let finding = self.finding(w, kind, op.at, other, reason);
        self.suspect(load, self.id, reads, Cell::Lds(byte as u32), finding);
    }
}

/// An address behind a lane's: they are added as words.
fn at(base: u64, offset: u64) -> u64 {
    u64::from((base as u32).wrapping_add(offset as u32))
}

/// What is added to a lane's address, for one place or for two.
fn offsets(i: &Instruction) -> (u64, Option<u64>) {
    let Some(unit) = i.op.pair_unit() else {
        return (i.modifiers.offset as u64, None);
    };
    let of = |offset: u8| u64::from(offset) * u64::from(unit);
    (of(i.modifiers.offset0), Some(of(i.modifiers.offset1)))
}

/// What lanes get from each other, where the instruction touches no memory.
fn exchange(wave: &Wave, i: &Instruction, sources: &[Operand]) -> Result<Option<Lanes>, Fault> {
    let source = |index: usize| {
        let operand = sources.get(index).ok_or(Fault::Operand)?;
        wave.lanes(operand, Ty::b32, 0)
    };
    let offset = i.modifiers.offset as u32;
    let mut result = [0; LANES];
    match i.op {
        Opcode::ds_bpermute_b32 => {
            let (from, data) = (source(0)?, source(1)?);
            for lane in 0..LANES {
                let other = (from[lane].wrapping_add(offset) / 4) as usize % LANES;
                if wave.exec >> other & 1 == 1 {
                    result[lane] = data[other];
                }
            }
        }
        Opcode::ds_permute_b32 => {
            let (to, data) = (source(0)?, source(1)?);
            for lane in active(wave.exec) {
                result[(to[lane].wrapping_add(offset) / 4) as usize % LANES] = data[lane];
            }
        }
        Opcode::ds_swizzle_b32 => {
            let data = source(0)?;
            for (lane, value) in result.iter_mut().enumerate() {
                let other = match offset & 0x8000 {
                    0 => {
                        let within = lane & 31;
                        let (and, or, xor) = (offset & 31, offset >> 5 & 31, offset >> 10 & 31);
                        lane & 32 | ((within & and as usize | or as usize) ^ xor as usize)
                    }
                    _ => lane & !3 | (offset >> (2 * (lane & 3)) & 3) as usize,
                };
                if wave.exec >> other & 1 == 1 {
                    *value = data[other];
                }
            }
        }
        _ => return Ok(None),
    }
    Ok(Some(result))
}
