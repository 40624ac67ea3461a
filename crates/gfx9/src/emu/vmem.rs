//! Vector memory: through a buffer's resource, by an address, private, and copies to LDS.

use crate::asm::{Instruction, Operand, RegisterFile};
use crate::isa::{Flags, Format, Opcode, Ty};

use super::atomics::Update;
use super::block::Block;
use super::fault::Fault;
use super::memory::{Hands, Trouble, Troubles};
use super::order::{Operation, Unit};
use super::queue::Pending;
use super::report::Kind;
use super::suspects::{Cell, Reads};
use super::transfer;
use super::wave::{LANES, LDS_APERTURE, PRIVATE_APERTURE, Wave, active};

impl Block<'_> {
    /// Issues an instruction: addresses and data are read from registers now.
    pub(super) fn vector_memory(
        &mut self,
        w: usize,
        at: usize,
        i: &Instruction,
    ) -> Result<(), Fault> {
        if i.op.format() == Format::Flat {
            return self.flat(w, at, i);
        }
        self.vector_operation(w, at, i, self.waves[w].wave.exec)
    }

    fn vector_operation(
        &mut self,
        w: usize,
        at: usize,
        i: &Instruction,
        exec: u64,
    ) -> Result<(), Fault> {
        let running = &mut self.waves[w];
        let stamp = running.queues.stamp(Unit::Vector);
        let op = running.knows.operation(stamp, at, is_atomic(i));
        running.knows.issue(stamp);
        let mut pending = Pending::new(op, exec);
        if i.op.is_cache() {
            let for_device = i.modifiers.sc1;
            match i.op {
                Opcode::buffer_wbl2 if for_device => {
                    let mut knows = running.knows.clone();
                    knows.write_back(self.id, stamp);
                    pending.learned = Some(knows);
                }
                Opcode::buffer_inv if for_device => running.knows.drop_cache(),
                _ => {}
            }
            self.issue(w, Unit::Vector, pending);
            return Ok(());
        }
        let wave = &running.wave;
        match i.op.format() {
            Format::Mubuf => by_resource(wave, i, &mut pending)?,
            _ => by_address(wave, i, &mut pending)?,
        }
        if i.is_lds_copy() {
            let base = (wave.m0 & 0x3_ffff).wrapping_add(i.modifiers.offset as u32);
            pending.lds = base;
        }
        if let Some((operand, ty)) = data(i) {
            for index in 0..ty.registers() {
                pending.data.push(wave.lanes(operand, ty, index)?);
            }
        }
        self.issue(w, Unit::Vector, pending);
        Ok(())
    }

    /// An address that may be of LDS, or of global memory: what lanes have in LDS is done in the
    /// order of LDS operations, the rest in that of vector memory. Both counters count it. The one
    /// of LDS counts what is not there in no order, as it does scalar loads.
    fn flat(&mut self, w: usize, at: usize, i: &Instruction) -> Result<(), Fault> {
        let wave = &self.waves[w].wave;
        let operand = i.address_operand().and_then(|index| i.operands.get(index));
        let addresses = wave.wide(operand.ok_or(Fault::Operand)?, Ty::b64)?;
        let exec = wave.exec;
        let lanes_in = |aperture: u32| {
            let lanes = active(exec).filter(|lane| (addresses[*lane] >> 32) as u32 == aperture);
            lanes.fold(0u64, |mask, lane| mask | 1 << lane)
        };
        if lanes_in(PRIVATE_APERTURE) != 0 {
            return Err(Fault::Unsupported);
        }
        let lds = lanes_in(LDS_APERTURE);
        match lds {
            0 => self.count_flat(w, at, Unit::Scalar),
            _ => self.flat_lds(w, at, i, lds, &addresses)?,
        }
        match exec & !lds {
            0 if lds != 0 => self.count_flat(w, at, Unit::Vector),
            rest => self.vector_operation(w, at, i, rest)?,
        }
        Ok(())
    }

    /// The lanes of it that are in LDS.
    fn flat_lds(
        &mut self,
        w: usize,
        at: usize,
        i: &Instruction,
        lanes: u64,
        addresses: &[u64; LANES],
    ) -> Result<(), Fault> {
        let running = &mut self.waves[w];
        let stamp = running.queues.stamp(Unit::Lds);
        let op = running.knows.operation(stamp, at, i.op.is(Flags::ATOMIC));
        let mut pending = Pending::new(op, lanes);
        for (address, lane) in pending.addresses.iter_mut().zip(addresses) {
            *address = lane & 0xffff_ffff;
        }
        if let Some((operand, ty)) = data(i) {
            for index in 0..ty.registers() {
                pending.data.push(running.wave.lanes(operand, ty, index)?);
            }
        }
        self.issue(w, Unit::Lds, pending);
        Ok(())
    }

    fn count_flat(&mut self, w: usize, at: usize, unit: Unit) {
        let running = &mut self.waves[w];
        let stamp = running.queues.stamp(unit);
        let mut counted = Pending::new(running.knows.operation(stamp, at, false), 0);
        counted.landed = true;
        self.count(w, unit, counted);
    }

    /// Does what an instruction of vector memory does.
    pub(super) fn land_vector(
        &mut self,
        w: usize,
        pending: &mut Pending,
        i: &Instruction,
    ) -> Result<(), Fault> {
        if i.op.is_cache() {
            return Ok(());
        }
        let result = i.operands.first().filter(|_| i.destinations() > 0);
        let registers = result.and_then(Operand::registers);
        if pending.op.atomic {
            self.hand_over(pending, i, registers.is_some());
        }
        if let Some(registers) = registers {
            self.know_registers(w, registers, pending.exec);
        }
        let pending = &*pending;
        let op = &pending.op;
        let mut buffer = [0; 16];
        if i.is_lds_copy() {
            // Less than a word is copied as one.
            let size = copied_bytes(i) as usize;
            for lane in active(pending.exec) {
                self.fetch(w, pending, lane, &mut buffer[..size]);
                let place = u64::from(pending.lds) + (lane * size) as u64;
                self.lds_write(w, op, place, &buffer[..size]);
            }
        } else if let Some((update, bytes)) = Update::of(i.op) {
            let ty = if bytes == 4 { Ty::b32 } else { Ty::b64 };
            let size = bytes as usize;
            let words = size / 4;
            for lane in active(pending.exec) {
                if pending.valid.as_ref().is_some_and(|v| v[lane] < bytes) {
                    continue;
                }
                let brought = transfer::value(&pending.data[..words], lane);
                let compared = match pending.data.get(words..) {
                    Some(rest) if !rest.is_empty() => transfer::value(rest, lane),
                    _ => 0,
                };
                let new = |old| update.apply(bytes, old, brought, compared);
                let old = self.update(w, pending, lane, size, new).to_le_bytes();
                if let Some(registers) = registers {
                    let wave = &mut self.waves[w].wave;
                    transfer::load(wave, registers, ty, lane, &old[..size])?;
                }
            }
        } else if let Some(registers) = registers {
            let ty = *i.op.results().first().ok_or(Fault::Operand)?;
            let size = ty.bytes() as usize;
            for lane in active(pending.exec) {
                match i.is_scratch() {
                    true => self.private(w, pending, lane, size)?.copy_to(&mut buffer),
                    false => self.fetch(w, pending, lane, &mut buffer[..size]),
                }
                let wave = &mut self.waves[w].wave;
                transfer::load(wave, registers, ty, lane, &buffer[..size])?;
                if !i.is_scratch() {
                    self.unknown_fetch(w, pending, registers, ty, lane)?;
                }
            }
        } else if let Some((_, ty)) = data(i) {
            let size = ty.bytes() as usize;
            for lane in active(pending.exec) {
                transfer::stored(&pending.data, ty, lane, &mut buffer[..size]);
                match i.is_scratch() {
                    true => self
                        .private(w, pending, lane, size)?
                        .0
                        .copy_from_slice(&buffer[..size]),
                    false => self.put(w, pending, lane, &buffer[..size]),
                }
            }
        }
        Ok(())
    }

    /// Reads a lane's bytes. What a resource does not let through is zero, word by word.
    fn fetch(&mut self, w: usize, pending: &Pending, lane: usize, into: &mut [u8]) {
        let valid = pending
            .valid
            .as_ref()
            .map_or(into.len(), |v| v[lane] as usize);
        let valid = valid.min(into.len());
        into[valid..].fill(0);
        if valid == 0 {
            return;
        }
        let address = pending.addresses[lane];
        let block = self.id;
        let troubles = {
            let mut memory = self.shared.memory();
            memory.read(address, &mut into[..valid], block, &pending.op)
        };
        self.troubles(w, &pending.op, troubles);
    }

    /// Writes a lane's bytes, as far as a resource lets them through.
    fn put(&mut self, w: usize, pending: &Pending, lane: usize, from: &[u8]) {
        let valid = pending
            .valid
            .as_ref()
            .map_or(from.len(), |v| v[lane] as usize);
        let valid = valid.min(from.len());
        if valid == 0 {
            return;
        }
        let address = pending.addresses[lane];
        let block = self.id;
        let troubles = {
            let mut memory = self.shared.memory();
            memory.write(address, &from[..valid], block, &pending.op)
        };
        self.troubles(w, &pending.op, troubles);
    }

    /// Replaces a lane's bytes and gives what was there; no other block comes between.
    fn update(
        &mut self,
        w: usize,
        pending: &Pending,
        lane: usize,
        size: usize,
        new: impl FnOnce(u64) -> u64,
    ) -> u64 {
        let (address, block) = (pending.addresses[lane], self.id);
        let mut bytes = [0; 8];
        let mut memory = self.shared.memory();
        let read = memory.read(address, &mut bytes[..size], block, &pending.op);
        let old = u64::from_le_bytes(bytes);
        let written = new(old).to_le_bytes();
        let write = memory.write(address, &written[..size], block, &pending.op);
        drop(memory);
        for troubles in [read, write] {
            self.troubles(w, &pending.op, troubles);
        }
        old
    }

    fn private(
        &mut self,
        w: usize,
        pending: &Pending,
        lane: usize,
        size: usize,
    ) -> Result<Private<'_>, Fault> {
        let scratch = &mut self.waves[w].scratch;
        let room = scratch.len() / LANES;
        let address = pending.addresses[lane];
        let at = address as usize;
        if at + size > room {
            return Err(Fault::Address(address));
        }
        let start = lane * room + at;
        Ok(Private(&mut scratch[start..start + size]))
    }

    /// What other blocks showed, handed on through a place by atomic operations.
    fn hand_over(&mut self, pending: &mut Pending, i: &Instruction, reads: bool) {
        let hands = match (Update::of(i.op).is_some(), reads) {
            (true, _) => Hands::More,
            (false, true) => Hands::Nothing,
            (false, false) => Hands::Instead,
        };
        let mut learned = pending.op.knows.clone();
        let mut memory = self.shared.memory();
        for lane in active(pending.exec) {
            let told = memory.hand(pending.addresses[lane], &pending.op, hands);
            if reads {
                learned.see(&told);
            }
        }
        pending.learned = Some(learned);
    }

    pub(super) fn troubles(&mut self, w: usize, op: &Operation, troubles: Troubles) {
        for (address, trouble) in troubles {
            self.trouble(w, op, address, trouble);
        }
    }

    fn trouble(&mut self, w: usize, op: &Operation, address: u64, trouble: Trouble) {
        let place = self.shared.memory().describe(address);
        let (kind, other, reason) = match trouble {
            Trouble::Unordered(other) if other.block == self.id => (
                Kind::Race,
                Some(other.at),
                format!(
                    "nothing orders this and what wave {} does at {place}",
                    other.wave
                ),
            ),
            Trouble::Unordered(other) => (
                Kind::BlockRace,
                Some(other.at),
                format!(
                    "nothing orders this and what block {} does at {place}",
                    other.block
                ),
            ),
            Trouble::Unwritten => (
                Kind::Unwritten,
                None,
                format!("{place} is read, and nothing has written it"),
            ),
            Trouble::Outside => (Kind::OutOfBounds, None, format!("it touches {place}")),
            Trouble::ReadOnly => (
                Kind::OutOfBounds,
                None,
                format!("{place} is written, and the kernel has it to read"),
            ),
        };
        let finding = self.finding(w, kind, op.at, other, reason);
        let (load, block, reads) = match trouble {
            Trouble::Unordered(other) => match other.reads {
                Some(reads) => (other.at, other.block, reads),
                None => (op.at, self.id, Reads::one(op.stamp)),
            },
            Trouble::Unwritten => (op.at, self.id, Reads::one(op.stamp)),
            Trouble::Outside | Trouble::ReadOnly => return self.findings.push(finding),
        };
        self.suspect(load, block, reads, Cell::Memory(address), finding);
    }
}

/// A lane's private bytes.
struct Private<'a>(&'a mut [u8]);

impl Private<'_> {
    fn copy_to(self, into: &mut [u8]) {
        into[..self.0.len()].copy_from_slice(self.0);
    }
}

/// Whether an operation is atomic: those that read and write at once, and loads and stores for the
/// whole device.
fn is_atomic(i: &Instruction) -> bool {
    i.op.is(Flags::ATOMIC) || (i.modifiers.sc1 && !i.op.is_cache() && !i.is_lds_copy())
}

/// What an instruction stores or brings to memory.
fn data(i: &Instruction) -> Option<(&Operand, Ty)> {
    let is_data = |ty: &Ty| !matches!(ty, Ty::vaddr | Ty::saddr);
    let position = match i.op.format() {
        // Data, address, resource, offset.
        Format::Mubuf if i.op.sources().len() == 4 => 0,
        Format::Mubuf => return None,
        // Address, data.
        Format::Flat => 1,
        _ => i.op.sources().iter().position(is_data)?,
    };
    let shared = i.op.format() == Format::Mubuf;
    let skipped = if shared { 0 } else { i.destinations() };
    let operand = i.operands.get(position + skipped)?;
    Some((operand, *i.op.sources().get(position)?))
}

/// The bytes that a lane copies to LDS: whole words.
pub(super) fn copied_bytes(i: &Instruction) -> u32 {
    use crate::isa::Opcode::*;
    match i.op {
        buffer_load_dwordx3 | global_load_lds_dwordx3 => 12,
        buffer_load_dwordx4 | global_load_lds_dwordx4 => 16,
        _ => 4,
    }
}

/// Addresses by a resource: its base, an offset of the wave, one of each lane, and the
/// instruction's. Past the resource's end a word is not let through.
fn by_resource(wave: &Wave, i: &Instruction, pending: &mut Pending) -> Result<(), Fault> {
    let address = i.address_operand().ok_or(Fault::Operand)?;
    let operand = |index: usize| i.operands.get(index).ok_or(Fault::Operand);
    let resource = operand(address + 1)?.registers().ok_or(Fault::Operand)?;
    let word = |index: u16| wave.scalar_word(resource, index);
    let base = u64::from(word(0)?) | u64::from(word(1)? & 0xffff) << 32;
    let records = u64::from(word(2)?);
    let swizzled = word(1)? >> 31 == 1;
    if i.modifiers.idxen || swizzled || word(3)? >> 23 & 1 == 1 {
        return Err(Fault::Unsupported);
    }
    let scalar = u64::from(wave.scalar32(operand(address + 2)?, Ty::b32)?);
    let lanes = match (i.modifiers.offen, operand(address)?) {
        (true, operand) => wave.lanes(operand, Ty::b32, 0)?,
        (false, _) => [0; LANES],
    };
    let mut valid = Box::new([0; LANES]);
    for lane in 0..LANES {
        let offset = u64::from(lanes[lane]) + i.modifiers.offset as u64;
        pending.addresses[lane] = base + scalar + offset;
        let end = records.saturating_sub(scalar);
        valid[lane] = u32::try_from(end.saturating_sub(offset)).unwrap_or(u32::MAX);
    }
    // Words are let through as a whole.
    let bytes = i.op.results().first().or(i.op.sources().first());
    if bytes.is_some_and(|ty| ty.bytes() >= 4) {
        for bytes in valid.iter_mut() {
            *bytes &= !3;
        }
    }
    pending.valid = Some(valid);
    Ok(())
}

/// Addresses by themselves, or as an offset to what a pair of scalar registers holds.
fn by_address(wave: &Wave, i: &Instruction, pending: &mut Pending) -> Result<(), Fault> {
    let private = i.is_scratch();
    let at = i.address_operand().ok_or(Fault::Operand)?;
    let vaddr = i.operands.get(at).ok_or(Fault::Operand)?;
    let saddr = i.operands.last().filter(|_| i.op.format() != Format::Flat);
    let scalar = saddr.and_then(Operand::registers);
    let scalar = scalar.filter(|r| matches!(r.file, RegisterFile::Scalar | RegisterFile::Vcc));
    let base = match scalar {
        Some(registers) if private => Some(u64::from(wave.scalar_word(registers, 0)?)),
        Some(registers) => {
            let (low, high) = (
                wave.scalar_word(registers, 0)?,
                wave.scalar_word(registers, 1)?,
            );
            Some(u64::from(low) | u64::from(high) << 32)
        }
        None => None,
    };
    let lanes = match vaddr.registers() {
        Some(_) if base.is_none() && !private => wave.wide(vaddr, Ty::b64)?,
        Some(_) => wave.lanes(vaddr, Ty::b32, 0)?.map(u64::from),
        None => [0; LANES],
    };
    let offset = i64::from(i.modifiers.offset) as u64;
    for (address, lane) in pending.addresses.iter_mut().zip(lanes) {
        *address = base.unwrap_or(0).wrapping_add(lane).wrapping_add(offset);
        if private {
            *address &= 0xffff_ffff;
        }
    }
    Ok(())
}
