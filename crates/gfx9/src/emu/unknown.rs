//! Values that are not known, followed from register to register.
//!
//! A load that nothing orders and a write, or of what nothing wrote, gives bits that could be
//! others ([`super::suspects`]). They do no harm as long as nothing depends on them that shows:
//! what is stored, an address, a branch, which lanes run. Until then they are followed bit by bit
//! through moves, selections and bit operations; of anything else that reads one of them the whole
//! result is not known. So a use may be found that does not matter, and none is missed.

use rustc_hash::FxHashMap;

use crate::asm::{Access, Instruction, Operand, Register, RegisterFile, Registers};
use crate::isa::{Encoding, Flags, Format, Opcode, Ty};

use super::block::Block;
use super::fault::Fault;
use super::order::Operation;
use super::queue::Pending;
use super::suspects::Cell;
use super::transfer;
use super::valu::keeps_high_half;
use super::wave::{LANES, Lanes, Wave, active};

/// The finding that a value which is not known stands for, of the run's suspects.
type Origin = u32;

/// The bits of a wave's registers that are not known.
#[derive(Clone, Debug, Default)]
pub(super) struct Unknown {
    vector: FxHashMap<Register, (Box<Lanes>, Origin)>,
    /// Registers of the whole wave, SCC among them.
    scalar: FxHashMap<Register, (u32, Origin)>,
}

const SCC: Register = Register {
    file: RegisterFile::Scc,
    index: 0,
};

impl Block<'_> {
    /// Follows what is not known through an instruction that is about to run.
    pub(super) fn follow(&mut self, w: usize, at: usize, i: &Instruction) {
        let access = &self.shared.code.accesses[at];
        let running = &mut self.waves[w];
        if let Some(origin) = running.unknown.step(&running.wave, i, access) {
            self.used(at, i, origin);
        }
    }

    /// What a load gave is used by an instruction.
    fn used(&mut self, at: usize, i: &Instruction, origin: Origin) {
        let suspects = self.shared.suspects.map(|s| s.findings());
        let Some(finding) = suspects.and_then(|list| list.get(origin as usize)) else {
            return;
        };
        let mut finding = finding.clone();
        if at != finding.at {
            let text = format!(", and `{}` of line {} uses it", i.text, i.line);
            finding.reason += &text;
        }
        self.findings.push(finding);
    }

    /// Registers are loaded anew.
    pub(super) fn know_registers(&mut self, w: usize, registers: Registers, exec: u64) {
        let unknown = &mut self.waves[w].unknown;
        if unknown.any() {
            for register in registers.iter() {
                unknown.set_some(register, &[0; LANES], exec, 0);
            }
        }
    }

    /// What a lane loaded is not known as far as the run has suspects of it: a cell for each byte.
    pub(super) fn unknown_load(
        &mut self,
        w: usize,
        op: &Operation,
        registers: Registers,
        ty: Ty,
        lane: usize,
        cells: impl Iterator<Item = Cell>,
    ) -> Result<(), Fault> {
        let Some(suspects) = self.shared.suspects else {
            return Ok(());
        };
        let found: Vec<Option<Origin>> = cells
            .map(|cell| suspects.of(self.id, op.stamp, cell))
            .collect();
        let Some(origin) = found.iter().copied().flatten().next() else {
            return Ok(());
        };
        let bytes: Vec<u8> = found.iter().map(|f| f.map_or(0, |_| u8::MAX)).collect();
        let unknown = &mut self.waves[w].unknown;
        for (index, register) in (0..).zip(registers.iter()) {
            let mut bits = unknown.lanes(register);
            bits[lane] = transfer::loaded(ty, index, &bytes, bits[lane])?;
            unknown.set_some(register, &bits, 1 << lane, origin);
        }
        Ok(())
    }

    /// The same where lanes get what others loaded.
    pub(super) fn unknown_tile(
        &mut self,
        w: usize,
        op: &Operation,
        registers: Registers,
        exec: u64,
        mut cells: impl Iterator<Item = Cell>,
    ) {
        let Some(suspects) = self.shared.suspects else {
            return;
        };
        let Some(origin) = cells.find_map(|cell| suspects.of(self.id, op.stamp, cell)) else {
            return;
        };
        for register in registers.iter() {
            let unknown = &mut self.waves[w].unknown;
            unknown.set_some(register, &[u32::MAX; LANES], exec, origin);
        }
    }

    /// What a lane loaded from global memory.
    pub(super) fn unknown_fetch(
        &mut self,
        w: usize,
        pending: &Pending,
        registers: Registers,
        ty: Ty,
        lane: usize,
    ) -> Result<(), Fault> {
        if self.shared.suspects.is_none() {
            return Ok(());
        }
        let first = pending.addresses[lane];
        let memory = self.shared.memory();
        let element = |byte: u64| memory.elements(byte, 1).next().unwrap_or(byte);
        let cells: Vec<Cell> = (first..first + u64::from(ty.bytes()))
            .map(|byte| Cell::Memory(element(byte)))
            .collect();
        drop(memory);
        self.unknown_load(w, &pending.op, registers, ty, lane, cells.into_iter())
    }

    /// A word that a scalar load gave.
    pub(super) fn unknown_scalar(
        &mut self,
        w: usize,
        op: &Operation,
        registers: Registers,
        index: u16,
        address: u64,
    ) {
        let Some(suspects) = self.shared.suspects else {
            return;
        };
        let mut elements = self.shared.memory().elements(address, 4);
        let found = elements.find_map(|e| suspects.of(self.id, op.stamp, Cell::Memory(e)));
        let register = Register {
            file: registers.file,
            index: registers.first + index,
        };
        let bits = found.map_or(0, |_| u32::MAX);
        self.waves[w]
            .unknown
            .set_word(register, bits, found.unwrap_or(0));
    }
}

impl Unknown {
    pub fn any(&self) -> bool {
        !self.vector.is_empty() || !self.scalar.is_empty()
    }

    fn lanes(&self, register: Register) -> Lanes {
        match register.file {
            RegisterFile::Vector | RegisterFile::Accumulator => self
                .vector
                .get(&register)
                .map_or([0; LANES], |(bits, _)| **bits),
            _ => [self.word(register); LANES],
        }
    }

    fn word(&self, register: Register) -> u32 {
        self.scalar.get(&register).map_or(0, |(bits, _)| *bits)
    }

    /// Two words of the whole wave, as a number; nothing of what is no register.
    fn wide(&self, operand: Option<&Operand>) -> u64 {
        let Some(registers) = operand.and_then(Operand::registers) else {
            return 0;
        };
        let mut words = registers.iter().map(|r| u64::from(self.word(r)));
        words.next().unwrap_or(0) | words.next().unwrap_or(0) << 32
    }

    /// An operand's `index`th register, in every lane.
    fn source(&self, operand: Option<&Operand>, index: u16) -> Lanes {
        let registers = operand.and_then(Operand::registers);
        let register = registers.and_then(|r| r.iter().nth(usize::from(index)));
        register.map_or([0; LANES], |register| self.lanes(register))
    }

    /// The finding behind what some of these registers hold.
    fn origin(&self, registers: &[Register]) -> Option<Origin> {
        registers.iter().find_map(|register| {
            let vector = self.vector.get(register).map(|(_, origin)| *origin);
            vector.or(self.scalar.get(register).map(|(_, origin)| *origin))
        })
    }

    fn set_word(&mut self, register: Register, bits: u32, origin: Origin) {
        match bits {
            0 => self.scalar.remove(&register),
            _ => self.scalar.insert(register, (bits, origin)),
        };
    }

    fn set_some(&mut self, register: Register, bits: &Lanes, lanes: u64, origin: Origin) {
        let mut all = self.lanes(register);
        for lane in active(lanes) {
            all[lane] = bits[lane];
        }
        if all.iter().all(|bits| *bits == 0) {
            self.vector.remove(&register);
            return;
        }
        let entry = self.vector.entry(register);
        let (held, from) = entry.or_insert_with(|| (Box::new([0; LANES]), origin));
        **held = all;
        if active(lanes).any(|lane| bits[lane] != 0) {
            *from = origin;
        }
    }

    /// Follows an instruction; gives the finding of what is used so that it shows.
    fn step(&mut self, wave: &Wave, i: &Instruction, access: &Access) -> Option<Origin> {
        let Some(origin) = self.origin(&access.reads) else {
            self.overwrite(wave, i, access);
            return None;
        };
        let shows = match i.op.format() {
            Format::Sopp => self.decides(wave, i),
            Format::Smem => true,
            Format::Ds if !i.is_lds_access() => {
                self.exchange(wave, i, origin);
                false
            }
            Format::Ds | Format::Mubuf | Format::Global | Format::Scratch | Format::Flat => {
                self.reaches_memory(wave, i)
            }
            _ if i.op.is_salu() => self.scalar_step(wave, i, access, origin),
            _ if i.op.is_mfma() => {
                for register in &access.writes {
                    self.set_some(*register, &[u32::MAX; LANES], u64::MAX, origin);
                }
                false
            }
            _ => self.vector_step(wave, i, access, origin),
        };
        shows.then_some(origin)
    }

    /// Known values are written over registers.
    fn overwrite(&mut self, wave: &Wave, i: &Instruction, access: &Access) {
        // What memory gives is written when it lands.
        let exchange = i.op.format() == Format::Ds && !i.is_lds_access();
        if access.counter.is_some() && !exchange {
            return;
        }
        let lanes = match exchange {
            true => wave.exec,
            false => written(wave, i),
        };
        for register in &access.writes {
            match register.file {
                RegisterFile::Vector | RegisterFile::Accumulator => {
                    let mut bits = [0; LANES];
                    if keeps_half(i) {
                        bits = self.lanes(*register).map(|bits| bits & 0xffff_0000);
                    }
                    self.set_some(*register, &bits, lanes, 0);
                }
                _ => self.set_word(*register, 0, 0),
            }
        }
    }

    /// Whether a branch could go another way.
    fn decides(&self, wave: &Wave, i: &Instruction) -> bool {
        match i.op {
            Opcode::s_cbranch_scc0 | Opcode::s_cbranch_scc1 => self.word(SCC) != 0,
            Opcode::s_cbranch_vccz | Opcode::s_cbranch_vccnz => {
                let word = |index| {
                    let file = RegisterFile::Vcc;
                    u64::from(self.word(Register { file, index }))
                };
                let bits = word(0) | word(1) << 32;
                bits != 0 && wave.vcc & !bits == 0
            }
            _ => true,
        }
    }

    /// Whether an address, or what is stored, is not known in a lane that is active.
    fn reaches_memory(&self, wave: &Wave, i: &Instruction) -> bool {
        // An atomic through a resource names its data once, for both ways.
        let shared = i.op.format() == Format::Mubuf && i.op.is(Flags::ATOMIC);
        let skipped = if shared { 0 } else { i.destinations() };
        let sources = i.operands.iter().skip(skipped);
        let registers = sources
            .filter_map(Operand::registers)
            .flat_map(Registers::iter);
        let mut lanes = registers.map(|register| self.lanes(register));
        lanes.any(|bits| active(wave.exec).any(|lane| bits[lane] != 0))
    }

    /// Lanes get values of each other.
    fn exchange(&mut self, wave: &Wave, i: &Instruction, origin: Origin) {
        let Some(register) = i.operands.first().and_then(Operand::registers) else {
            return;
        };
        let index = self.source(i.operands.get(1), 0);
        let mut bits = [u32::MAX; LANES];
        if i.op == Opcode::ds_bpermute_b32
            && let Some(operand) = i.operands.get(1)
            && let Ok(from) = wave.lanes(operand, Ty::b32, 0)
        {
            let data = self.source(i.operands.get(2), 0);
            for lane in 0..LANES {
                let place = from[lane].wrapping_add(i.modifiers.offset as u32) / 4;
                let other = place as usize % LANES;
                bits[lane] = match (index[lane], wave.exec >> other & 1) {
                    (0, 0) => 0,
                    (0, _) => data[other],
                    _ => u32::MAX,
                };
            }
        }
        for register in register.iter() {
            self.set_some(register, &bits, wave.exec, origin);
        }
    }

    /// The scalar unit. Gives whether lanes are chosen by what is not known.
    fn scalar_step(
        &mut self,
        wave: &Wave,
        i: &Instruction,
        access: &Access,
        origin: Origin,
    ) -> bool {
        let bits = self.scalar_bits(wave, i).unwrap_or(ScalarBits {
            result: u64::MAX,
            condition: true,
            lanes: u64::MAX,
        });
        let mut index = 0;
        let mut chooses = false;
        for register in &access.writes {
            match register.file {
                RegisterFile::Scc => {
                    let bit = u32::from(bits.condition);
                    self.set_word(SCC, bit, origin);
                }
                RegisterFile::Exec if i.op.is(Flags::EXEC_OUT) => chooses |= bits.lanes != 0,
                RegisterFile::Exec => {
                    chooses |= (bits.result >> (32 * index)) as u32 != 0;
                    index += 1;
                }
                _ => {
                    self.set_word(*register, (bits.result >> (32 * index)) as u32, origin);
                    index += 1;
                }
            }
        }
        chooses
    }

    /// Bit by bit, where that can be said.
    fn scalar_bits(&self, wave: &Wave, i: &Instruction) -> Option<ScalarBits> {
        use Opcode::*;
        let ty = match i.op.results().first() {
            Some(ty) if ty.registers() == 2 => Ty::b64,
            _ => Ty::b32,
        };
        let value = |operand: &Operand| match ty {
            Ty::b64 => wave.scalar64(operand, Ty::b64).ok(),
            _ => wave.scalar32(operand, Ty::b32).ok().map(u64::from),
        };
        let source = |index: usize| {
            let operand = i.operands.get(index)?;
            Some((value(operand)?, self.wide(Some(operand))))
        };
        let exec = (wave.exec, 0);
        let flip = |(value, bits): (u64, u64)| (!value, bits);
        let plain = |(result, bits): (u64, u64)| {
            Some(ScalarBits {
                result: bits,
                condition: bits != 0 && result & !bits == 0,
                lanes: 0,
            })
        };
        let saves = |(lanes, bits): (u64, u64)| {
            Some(ScalarBits {
                result: 0,
                condition: bits != 0 && lanes & !bits == 0,
                lanes: bits,
            })
        };
        match i.op {
            s_mov_b32 | s_mov_b64 => plain(source(1)?),
            s_not_b32 | s_not_b64 => plain(flip(source(1)?)),
            s_and_b32 | s_and_b64 => plain(and(source(1)?, source(2)?)),
            s_andn2_b32 | s_andn2_b64 => plain(and(source(1)?, flip(source(2)?))),
            s_or_b32 | s_or_b64 => plain(or(source(1)?, source(2)?)),
            s_orn2_b32 | s_orn2_b64 => plain(or(source(1)?, flip(source(2)?))),
            s_xor_b32 | s_xor_b64 => plain(xor(source(1)?, source(2)?)),
            s_cselect_b32 | s_cselect_b64 if self.word(SCC) == 0 => {
                plain(source(if wave.scc { 1 } else { 2 })?)
            }
            s_and_saveexec_b64 => saves(and(source(1)?, exec)),
            s_or_saveexec_b64 => saves(or(source(1)?, exec)),
            s_xor_saveexec_b64 => saves(xor(source(1)?, exec)),
            s_andn2_saveexec_b64 => saves(and(source(1)?, flip(exec))),
            s_andn1_saveexec_b64 => saves(and(flip(source(1)?), exec)),
            _ => None,
        }
    }

    /// The vector unit. Gives whether lanes are chosen by what is not known.
    fn vector_step(
        &mut self,
        wave: &Wave,
        i: &Instruction,
        access: &Access,
        origin: Origin,
    ) -> bool {
        if let Some(register) = to_scalar(i) {
            let lane = self.read_lane(wave, i);
            let bits = match lane {
                Some(lane) => self.source(i.operands.get(1), 0)[lane],
                None => u32::MAX,
            };
            self.set_word(register, bits, origin);
            return false;
        }
        let lanes = match i.op {
            Opcode::v_writelane_b32 => u64::MAX,
            _ => written(wave, i),
        };
        let exact = self.vector_bits(wave, i);
        // Lanes of which any source is not known.
        let mut some: u64 = 0;
        for register in &access.reads {
            let bits = self.lanes(*register);
            some |= match register.file {
                RegisterFile::Vector | RegisterFile::Accumulator => mask_of(&bits),
                _ if is_mask(i, *register) => {
                    u64::from(bits[0]) << (32 * u32::from(register.index & 1))
                }
                _ if bits[0] != 0 => u64::MAX,
                _ => 0,
            };
        }
        let crosses = i.modifiers.dpp.is_some() || is_lane_move(i.op);
        if crosses && some != 0 {
            some = u64::MAX;
        }
        let mut chooses = false;
        let mut vector_index = 0;
        for register in &access.writes {
            match register.file {
                RegisterFile::Vector | RegisterFile::Accumulator => {
                    let bits = match &exact {
                        Some(exact) => exact[vector_index],
                        None => {
                            let kept = match keeps_half(i) {
                                true => 0xffff_0000,
                                false => 0,
                            };
                            let mut bits = self.lanes(*register).map(|bits| bits & kept);
                            for lane in active(some) {
                                bits[lane] = u32::MAX;
                            }
                            bits
                        }
                    };
                    self.set_some(*register, &bits, lanes, origin);
                    vector_index += 1;
                }
                RegisterFile::Exec => chooses |= some & wave.exec != 0,
                _ => {
                    let bits = (some & wave.exec) >> (32 * u32::from(half_of(i, *register)));
                    self.set_word(*register, bits as u32, origin);
                }
            }
        }
        chooses
    }

    /// The bits of each register that an instruction writes, where that can be said.
    fn vector_bits(&self, wave: &Wave, i: &Instruction) -> Option<Vec<Lanes>> {
        use Opcode::*;
        if matches!(i.encoding, Encoding::Sdwa | Encoding::Dpp) || i.modifiers.dpp.is_some() {
            return None;
        }
        let bits = |index: usize| self.source(i.operands.get(index), 0);
        let values = |index: usize| wave.lanes(i.operands.get(index)?, Ty::b32, 0).ok();
        let pair = |index: usize| Some((values(index)?, bits(index)));
        let each = |f: &dyn Fn(usize) -> u32| Some(vec![std::array::from_fn(f)]);
        // Amounts of a shift must be known.
        let amount = |index: usize| {
            let known = bits(index).iter().all(|bits| *bits == 0);
            values(index).filter(|_| known)
        };
        match i.op {
            v_mov_b32 | v_accvgpr_read_b32 | v_accvgpr_write_b32 => Some(vec![bits(1)]),
            v_mov_b64 => Some(vec![bits(1), self.source(i.operands.get(1), 1)]),
            v_not_b32 => Some(vec![bits(1)]),
            v_cndmask_b32 => {
                let mask = i.operands.get(3)?;
                let (chosen, open) = (wave.mask(mask).ok()?, self.wide(Some(mask)));
                let (no, yes) = (bits(1), bits(2));
                each(&|lane| match (open >> lane & 1, chosen >> lane & 1) {
                    (1, _) => u32::MAX,
                    (_, 1) => yes[lane],
                    _ => no[lane],
                })
            }
            v_and_b32 => {
                let (a, b) = (pair(1)?, pair(2)?);
                each(&|lane| narrow(and(at(&a, lane), at(&b, lane))))
            }
            v_or_b32 => {
                let (a, b) = (pair(1)?, pair(2)?);
                each(&|lane| narrow(or(at(&a, lane), at(&b, lane))))
            }
            v_xor_b32 => {
                let (a, b) = (bits(1), bits(2));
                each(&|lane| a[lane] | b[lane])
            }
            v_and_or_b32 => {
                let (a, b, c) = (pair(1)?, pair(2)?, pair(3)?);
                each(&|lane| narrow(or(and(at(&a, lane), at(&b, lane)), at(&c, lane))))
            }
            v_or3_b32 => {
                let (a, b, c) = (pair(1)?, pair(2)?, pair(3)?);
                each(&|lane| narrow(or(or(at(&a, lane), at(&b, lane)), at(&c, lane))))
            }
            v_lshlrev_b32 => {
                let (by, a) = (amount(1)?, bits(2));
                each(&|lane| a[lane] << (by[lane] & 31))
            }
            v_lshrrev_b32 => {
                let (by, a) = (amount(1)?, bits(2));
                each(&|lane| a[lane] >> (by[lane] & 31))
            }
            v_lshl_or_b32 => {
                let (a, by, c) = (pair(1)?, amount(2)?, pair(3)?);
                each(&|lane| {
                    let (value, open) = at(&a, lane);
                    let by = by[lane] & 31;
                    let shifted = (value << by & 0xffff_ffff, open << by & 0xffff_ffff);
                    narrow(or(shifted, at(&c, lane)))
                })
            }
            v_bfe_u32 => {
                let (a, from, count) = (bits(1), amount(2)?, amount(3)?);
                each(&|lane| {
                    let field = (1u64 << (count[lane] & 31)) as u32;
                    a[lane] >> (from[lane] & 31) & field.wrapping_sub(1)
                })
            }
            v_perm_b32 => {
                let (high, low, order) = (bits(1), bits(2), amount(3)?);
                each(&|lane| {
                    let both = u64::from(high[lane]) << 32 | u64::from(low[lane]);
                    let byte = |index: u32| match order[lane] >> (8 * index) & 0xff {
                        from @ 0..8 => (both >> (8 * from)) as u32 & 0xff,
                        // Signs of bytes.
                        8..12 if both != 0 => 0xff,
                        _ => 0,
                    };
                    (0..4).fold(0, |word, index| word | byte(index) << (8 * index))
                })
            }
            _ => None,
        }
    }

    /// The lane that a value is taken from for all.
    fn read_lane(&self, wave: &Wave, i: &Instruction) -> Option<usize> {
        match i.op {
            Opcode::v_readfirstlane_b32 => match wave.exec {
                0 => Some(0),
                exec => Some(exec.trailing_zeros() as usize),
            },
            _ => {
                let lane = i.operands.get(2)?;
                let known = self.wide(Some(lane)) == 0;
                let lane = wave.scalar32(lane, Ty::b32).ok().filter(|_| known)?;
                Some(lane as usize % LANES)
            }
        }
    }
}

/// What a scalar instruction makes of bits that are not known.
struct ScalarBits {
    result: u64,
    /// SCC could be another.
    condition: bool,
    /// Of EXEC.
    lanes: u64,
}

/// A value and its bits that are not known.
type Bits = (u64, u64);

fn and((a, open_a): Bits, (b, open_b): Bits) -> Bits {
    (a & b, open_a & open_b | open_a & b | open_b & a)
}

fn or((a, open_a): Bits, (b, open_b): Bits) -> Bits {
    (a | b, open_a & open_b | open_a & !b | open_b & !a)
}

fn xor((a, open_a): Bits, (b, open_b): Bits) -> Bits {
    (a ^ b, open_a | open_b)
}

fn at(pair: &(Lanes, Lanes), lane: usize) -> Bits {
    (u64::from(pair.0[lane]), u64::from(pair.1[lane]))
}

fn narrow((_, bits): Bits) -> u32 {
    bits as u32
}

/// The lanes in which some bit is set.
fn mask_of(bits: &Lanes) -> u64 {
    let set = |(lane, bits): (usize, &u32)| u64::from(*bits != 0) << lane;
    bits.iter()
        .enumerate()
        .map(set)
        .fold(0, |mask, bit| mask | bit)
}

/// The lanes that an instruction writes.
fn written(wave: &Wave, i: &Instruction) -> u64 {
    match i.op.is_valu() {
        true => wave.written(i),
        false => u64::MAX,
    }
}

/// Whether an instruction writes a half of a register and leaves the other.
fn keeps_half(i: &Instruction) -> bool {
    let half = matches!(i.op.results().first(), Some(Ty::f16 | Ty::b16));
    half && i.op.is_valu() && keeps_high_half(i.op)
}

/// The register of the whole wave that an instruction takes a lane's value to.
fn to_scalar(i: &Instruction) -> Option<Register> {
    match i.op {
        Opcode::v_readfirstlane_b32 | Opcode::v_readlane_b32 => {
            i.operands.first()?.registers()?.iter().next()
        }
        _ => None,
    }
}

/// Whether lanes get other lanes' values.
fn is_lane_move(op: Opcode) -> bool {
    use Opcode::*;
    matches!(
        op,
        v_permlane16_swap_b32 | v_permlane32_swap_b32 | v_writelane_b32 | v_swap_b32
    )
}

/// Whether a register that an instruction reads has a bit for each lane.
fn is_mask(i: &Instruction, register: Register) -> bool {
    if i.op.is(Flags::VCC_IN) && register.file == RegisterFile::Vcc {
        return true;
    }
    let sources = i.operands.iter().skip(i.op.results().len());
    let mut masks = sources
        .zip(i.op.sources())
        .filter(|(_, ty)| **ty == Ty::mask);
    masks.any(|(operand, _)| operand.registers().is_some_and(|r| r.has(register)))
}

/// Which word of a mask a register is that an instruction writes.
fn half_of(i: &Instruction, register: Register) -> u16 {
    let written = i.operands.iter().take(i.op.results().len());
    let holding = written
        .filter_map(Operand::registers)
        .find(|r| r.has(register));
    holding.map_or(register.index & 1, |r| register.index - r.first)
}
