//! Micro-ops: what each machine instruction moves between memories.
//!
//! An instruction is first a list of moves of a few bytes. Without a counter they are carried
//! out on the spot. With one the operation is under way until its wait; the queue keeps it, and
//! the landing mode says whether the bytes move now or then.

use tilewright_ir::{Counter, Inst};

use super::access::{Addresses, byte_len, byte_of};
use super::banks;
use super::counts::InstKind;
use super::env::{Env, Which, who};
use super::program::{Access, MicroCode, Space};
use super::queue::{Dest, Move, Pending, Source, When};
use super::report::FindingKind;
use super::shared::Range;
use super::warp::{HELD, Lanes, WRITTEN, Warp};
use crate::exec::encode;

impl Env<'_> {
    /// One machine instruction of a warp.
    pub fn micro(&mut self, warp: &mut Warp, code: &MicroCode) {
        if warp.mask == 0 {
            return;
        }
        let taken = match code.pred {
            Some(pred) => warp.regs.truth(pred, warp.mask),
            None => warp.mask,
        };
        let dest = &self.program.accesses[code.dest as usize];
        let into_shared = matches!(
            self.program.buffers[dest.buffer as usize].space,
            Space::Shared(_)
        );
        match code.inst {
            Inst::CpAsync => self.cp_async(warp, code, taken),
            Inst::Load if into_shared => self.cp_async(warp, code, taken),
            Inst::Load | Inst::Store => self.plain(warp, code, taken),
            Inst::BufferLoadLds => self.buffer_load_lds(warp, code, taken),
            Inst::LdMatrix { tiles, .. } => self.matrix(warp, code, taken, tiles, true),
            Inst::StMatrix { tiles, .. } => self.matrix(warp, code, taken, tiles, false),
            Inst::DsReadTr => self.ds_read_tr(warp, code, taken),
            Inst::Mma(_) => {
                if let Some(table) = &code.mma {
                    self.mma(warp, code, taken, table);
                }
            }
            Inst::GroupMma { .. } => self.group_mma(warp, code, taken),
            Inst::Tma(_) if into_shared => self.bulk_load(warp, code, taken),
            Inst::Tma(_) => self.bulk_store(warp, code, taken),
        }
    }

    /// Each lane loads or stores elements in a row.
    fn plain(&mut self, warp: &mut Warp, code: &MicroCode, taken: u64) {
        let program = self.program;
        let source = &program.accesses[code.sources[0] as usize];
        let dest = &program.accesses[code.dest as usize];
        let from = self.addresses(warp, source, taken);
        self.check_read(warp, source, &from);
        // A load writes something in every lane, a store only where the predicate holds.
        let reached = match code.inst {
            Inst::Load => warp.mask,
            _ => taken,
        };
        let to = self.addresses(warp, dest, reached);
        let info = &program.buffers[dest.buffer as usize];
        match info.space {
            Space::Shared(_) => {
                self.count(warp, InstKind::SharedStore);
                self.shared_cost(warp, dest, &to, banks::Kind::Write);
            }
            Space::Global(_) => self.count(warp, InstKind::GlobalStore),
            Space::Local(_) | Space::Barrier(_) => {}
        }
        let mut moves = Vec::with_capacity(32);
        for lane in Lanes(to.mask & from.mask & taken) {
            let whole = self.element_move(source, dest, &from, &to, lane);
            self.spread_out(code, whole, (source, dest), &mut moves);
        }
        if code.inst == Inst::Load {
            self.fill_moves(warp, code, dest, &to, to.mask & !taken, &mut moves);
        }
        self.carry_out(warp, code, moves);
    }

    /// A move of elements that stand apart in registers, one by one.
    fn spread_out(
        &self,
        code: &MicroCode,
        whole: Move,
        (source, dest): (&Access, &Access),
        moves: &mut Vec<Move>,
    ) {
        if code.apart == 1 {
            return moves.push(whole);
        }
        let info = &self.program.buffers[dest.buffer as usize];
        let bytes = info.bits() * info.lanes / 8;
        let elements = source.width.min(dest.width) / info.lanes;
        moves.extend((0..elements).map(|e| {
            let (together, apart) = (e * bytes, e * bytes * code.apart);
            Move {
                source: match whole.source {
                    Source::Global(n, at) => Source::Global(n, at + together as usize),
                    Source::Shared(at) => Source::Shared(at + together as usize),
                    Source::Local(lane, at) => Source::Local(lane, at + apart),
                    fill @ Source::Fill(..) => fill,
                },
                dest: match whole.dest {
                    Dest::Global(n, at) => Dest::Global(n, at + together as usize),
                    Dest::Shared(at) => Dest::Shared(at + together as usize),
                    Dest::Local(lane, at) => Dest::Local(lane, at + apart),
                },
                len: bytes,
                ..whole
            }
        }));
    }

    fn element_move(
        &self,
        source: &Access,
        dest: &Access,
        from: &Addresses,
        to: &Addresses,
        lane: u32,
    ) -> Move {
        let from_info = &self.program.buffers[source.buffer as usize];
        let to_info = &self.program.buffers[dest.buffer as usize];
        let (at, target) = (from.at[lane as usize], to.at[lane as usize]);
        let first = byte_of(from_info, at);
        Move {
            lane,
            source: match from_info.space {
                Space::Global(n) => Source::Global(n, first),
                Space::Shared(_) | Space::Barrier(_) => Source::Shared(first),
                Space::Local(_) => Source::Local(lane, first as u32),
            },
            dest: self.dest(dest, lane, target),
            len: byte_len(to_info, target, dest.width) as u32,
        }
    }

    fn dest(&self, dest: &Access, lane: u32, at: usize) -> Dest {
        let info = &self.program.buffers[dest.buffer as usize];
        let first = byte_of(info, at);
        match info.space {
            Space::Global(n) => Dest::Global(n, first),
            Space::Shared(_) | Space::Barrier(_) => Dest::Shared(first),
            Space::Local(_) => Dest::Local(lane, first as u32),
        }
    }

    /// What lanes get whose predicate is false.
    fn fill_moves(
        &self,
        warp: &Warp,
        code: &MicroCode,
        dest: &Access,
        to: &Addresses,
        lanes: u64,
        moves: &mut Vec<Move>,
    ) {
        let Some(otherwise) = code.otherwise else {
            return;
        };
        let info = &self.program.buffers[dest.buffer as usize];
        for lane in Lanes(lanes) {
            let value = encode(info.scalar, warp.regs.lane(otherwise, lane as usize));
            // Elements narrower than a byte fill it by their pattern.
            let (value, bytes) = match info.bits() {
                4 => (value & 15 | (value & 15) << 4, 1),
                6 => {
                    let value = value & 63;
                    (value | value << 6 | value << 12 | value << 18, 3)
                }
                bits => (value, bits / 8),
            };
            let at = to.at[lane as usize];
            let whole = Move {
                lane,
                source: Source::Fill(value, bytes),
                dest: self.dest(dest, lane, at),
                len: byte_len(info, at, dest.width) as u32,
            };
            let source = &self.program.accesses[code.sources[0] as usize];
            self.spread_out(code, whole, (source, dest), moves);
        }
    }

    fn cp_async(&mut self, warp: &mut Warp, code: &MicroCode, taken: u64) {
        let program = self.program;
        let source = &program.accesses[code.sources[0] as usize];
        let dest = &program.accesses[code.dest as usize];
        self.count(warp, InstKind::AsyncCopy);
        let from = self.addresses(warp, source, taken);
        self.check_global_read(warp, source, &from);
        // Where the predicate is false the destination is filled, if the instruction says so.
        let reached = if code.otherwise.is_some() {
            warp.mask
        } else {
            taken
        };
        let to = self.addresses(warp, dest, reached);
        self.shared_cost(warp, dest, &to, banks::Kind::Write);
        let mut moves = Vec::with_capacity(32);
        for lane in Lanes(to.mask & from.mask & taken) {
            moves.push(self.element_move(source, dest, &from, &to, lane));
        }
        self.fill_moves(warp, code, dest, &to, to.mask & !taken, &mut moves);
        self.carry_out(warp, code, moves);
    }

    /// The lanes' data land one after another from the wave's base, whatever the lanes say;
    /// outside the global buffer they bring zeros, as do lanes whose predicate is false where the
    /// instruction fills.
    fn buffer_load_lds(&mut self, warp: &mut Warp, code: &MicroCode, taken: u64) {
        let program = self.program;
        let source = &program.accesses[code.sources[0] as usize];
        let dest = &program.accesses[code.dest as usize];
        self.count(warp, InstKind::AsyncCopy);
        let reached = match code.otherwise {
            Some(_) => warp.mask,
            None => taken,
        };
        let to = self.addresses(warp, dest, reached);
        let info = &program.buffers[dest.buffer as usize];
        let Some(first) = Lanes(to.mask).next() else {
            return;
        };
        let len = (dest.width * info.bits()).div_ceil(8) as usize;
        let place = |lane: u32| byte_of(info, to.at[lane as usize]);
        let base = place(first).wrapping_sub(first as usize * len);
        let lands = |lane: u32| base.wrapping_add(lane as usize * len);
        if let Some(lane) = Lanes(to.mask).find(|&lane| place(lane) != lands(lane)) {
            let (at, wanted) = (lands(lane), place(lane));
            self.report(warp, FindingKind::LdsDestination, Some(lane), || {
                format!(
                    "the data of lane {lane} lands at byte {at} of shared memory, \
                     not at {wanted}: lanes follow each other from lane {first}"
                )
            });
        }
        self.shared_cost(warp, dest, &to, banks::Kind::Write);
        let from_info = &program.buffers[source.buffer as usize];
        let Space::Global(storage) = from_info.space else {
            return;
        };
        let size = self.globals.storage(storage).bytes.len() as i64;
        let mut moves = Vec::with_capacity(64);
        for lane in Lanes(to.mask) {
            let at = lands(lane);
            if at + len > self.shared.bytes.len() {
                continue;
            }
            let mut start = 0i64;
            for (d, &slot) in source.indices.iter().enumerate() {
                let i = warp.regs.lane(slot, lane as usize) as i64;
                start = start.wrapping_add(i.wrapping_mul(from_info.strides[d]));
            }
            let bits = i64::from(from_info.lanes * from_info.bits());
            let start = start.wrapping_mul(bits) / 8;
            let inside = if taken >> lane & 1 == 1 && (0..size).contains(&start) {
                (size - start).min(len as i64) as usize
            } else {
                0
            };
            if inside > 0 {
                self.check_global_bytes(warp, lane, storage, start as usize, inside);
                moves.push(Move {
                    lane,
                    source: Source::Global(storage, start as usize),
                    dest: Dest::Shared(at),
                    len: inside as u32,
                });
            }
            if inside < len {
                moves.push(Move {
                    lane,
                    source: Source::Fill(0, 1),
                    dest: Dest::Shared(at + inside),
                    len: (len - inside) as u32,
                });
            }
        }
        self.carry_out(warp, code, moves);
    }

    /// `ldmatrix` and `stmatrix`: rows of 16 bytes in shared memory, spread over the warp.
    fn matrix(&mut self, warp: &mut Warp, code: &MicroCode, taken: u64, tiles: u8, load: bool) {
        if !self.whole_warp(warp, taken, &code.inst) {
            return;
        }
        let program = self.program;
        let (memory, registers) = if load {
            (code.sources[0], code.dest)
        } else {
            (code.dest, code.sources[0])
        };
        let memory = &program.accesses[memory as usize];
        let registers = &program.accesses[registers as usize];
        // Only the lanes of these matrices give addresses.
        let givers = u64::MAX >> (64 - 8 * u32::from(tiles));
        let rows = self.addresses(warp, memory, warp.mask & givers);
        let held = self.addresses(warp, registers, warp.mask);
        if rows.mask != givers || held.mask != warp.mask {
            return;
        }
        let info = &program.buffers[memory.buffer as usize];
        let register_info = &program.buffers[registers.buffer as usize];
        let starts: Vec<u32> = (0..8 * usize::from(tiles))
            .map(|lane| byte_of(info, rows.at[lane]) as u32)
            .collect();
        if load {
            self.count(warp, InstKind::MatrixLoad);
            self.check_shared_read(warp, memory, &rows.every(givers));
        } else {
            self.count(warp, InstKind::MatrixStore);
            self.check_read(warp, registers, &held);
        }
        self.count_matrix(warp, &starts);
        let mut moves = Vec::with_capacity(128);
        for piece in code.spread.iter().flat_map(|table| &table.pieces) {
            let own = byte_of(register_info, held.at[usize::from(piece.lane)]) as u32;
            let at = (starts[usize::from(piece.giver)] + u32::from(piece.from)) as usize;
            let register = (u32::from(piece.lane), own + u32::from(piece.to));
            let (source, dest) = if load {
                (Source::Shared(at), Dest::Local(register.0, register.1))
            } else {
                (Source::Local(register.0, register.1), Dest::Shared(at))
            };
            moves.push(Move {
                lane: u32::from(piece.giver),
                source,
                dest,
                len: u32::from(piece.len),
            });
        }
        self.carry_out(warp, code, moves);
    }

    /// gfx950's reads that transpose across lanes.
    fn ds_read_tr(&mut self, warp: &mut Warp, code: &MicroCode, taken: u64) {
        if !self.whole_warp(warp, taken, &code.inst) {
            return;
        }
        let program = self.program;
        let source = &program.accesses[code.sources[0] as usize];
        let dest = &program.accesses[code.dest as usize];
        self.count(warp, InstKind::MatrixLoad);
        let from = self.addresses(warp, source, warp.mask);
        let to = self.addresses(warp, dest, warp.mask);
        if from.mask != warp.mask || to.mask != warp.mask {
            return;
        }
        let from = from.every(warp.mask);
        self.check_shared_read(warp, source, &from);
        self.shared_cost(warp, source, &from, banks::Kind::ReadTransposed);
        let info = &program.buffers[source.buffer as usize];
        let register_info = &program.buffers[dest.buffer as usize];
        let mut moves = Vec::with_capacity(256);
        for piece in code.spread.iter().flat_map(|table| &table.pieces) {
            let own = byte_of(register_info, to.at[usize::from(piece.lane)]) as u32;
            let at = byte_of(info, from.at[usize::from(piece.giver)]);
            moves.push(Move {
                lane: u32::from(piece.giver),
                source: Source::Shared(at + usize::from(piece.from)),
                dest: Dest::Local(u32::from(piece.lane), own + u32::from(piece.to)),
                len: u32::from(piece.len),
            });
        }
        self.carry_out(warp, code, moves);
    }

    /// Reports an instruction of whole warps that some lanes do not take part in.
    pub fn whole_warp(&mut self, warp: &Warp, taken: u64, inst: &Inst) -> bool {
        let whole = warp.whole() && taken == warp.mask;
        if !whole {
            self.report(warp, FindingKind::DivergentCollective, None, || {
                format!(
                    "`{inst}` is executed by {} of {} lanes",
                    taken.count_ones(),
                    warp.width
                )
            });
        }
        whole
    }

    /// Notes reads of shared memory and reports what is wrong with them.
    fn check_shared_read(&mut self, warp: &Warp, access: &Access, addresses: &Addresses) {
        let info = &self.program.buffers[access.buffer as usize];
        let id = self.instance(warp, Which::Shared, false, false);
        self.shared.through(info.owner);
        for lane in Lanes(addresses.mask) {
            let at = addresses.at[lane as usize];
            let (start, len) = (byte_of(info, at), byte_len(info, at, access.width));
            let trouble = self.shared.read(who(warp, id, lane, false), start, len);
            if !trouble.is_none() {
                self.trouble(warp, Which::Shared, lane, false, trouble);
            }
        }
    }

    /// Carries out an instruction's moves, or puts it on its way.
    fn carry_out(&mut self, warp: &mut Warp, code: &MicroCode, moves: Vec<Move>) {
        let dest = &self.program.accesses[code.dest as usize];
        let owner = self.program.buffers[dest.buffer as usize].owner;
        self.shared.through(owner);
        let Some(counter) = code.counter else {
            self.move_now(warp, &moves);
            return;
        };
        // A wave whose lanes are all switched off may not issue the instruction: it is not counted.
        let switched_off =
            |m: &Move| matches!((m.source, m.dest), (Source::Fill(..), Dest::Local(..)));
        if moves.iter().all(switched_off) {
            self.move_now(warp, &moves);
            return;
        }
        let mut op = Pending::new(counter);
        op.joined = code.joined;
        let mut writes = Vec::new();
        let mut reads = Vec::new();
        let mut global = false;
        for m in &moves {
            let len = m.len as usize;
            let lane = m.lane;
            match m.dest {
                Dest::Shared(start) => writes.push(Range { lane, start, len }),
                Dest::Local(lane, offset) => op.registers.push((lane, offset, m.len)),
                Dest::Global(..) => global = true,
            }
            if let Source::Shared(start) = m.source {
                reads.push(Range { lane, start, len });
            }
        }
        // Registers are read when an instruction is issued: what is stored is decided here.
        let from_registers = moves.iter().any(|m| matches!(m.source, Source::Local(..)));
        let when = if global {
            When::Early
        } else {
            self.landing.of(counter)
        };
        let writes_shared = !writes.is_empty();
        let ranges = if writes_shared { writes } else { reads };
        let id = self.instance(warp, Which::Shared, false, writes_shared);
        match when {
            When::Early => self.move_now(warp, &moves),
            When::Late => {
                if writes_shared {
                    for r in &ranges {
                        let who = who(warp, id, r.lane, false);
                        let trouble = self.shared.announce_write(who, r.start, r.len);
                        if !trouble.is_none() {
                            self.trouble(warp, Which::Shared, r.lane, true, trouble);
                        }
                    }
                }
                op.moves = if from_registers {
                    captured(warp, &moves)
                } else {
                    moves
                };
            }
        }
        if !ranges.is_empty() {
            self.next_token += 1;
            op.token = Some(self.next_token);
            self.shared.hold(self.next_token, id, writes_shared, ranges);
        }
        for &(lane, offset, len) in &op.registers {
            warp.local
                .set_flags(lane, offset as usize, len as usize, HELD);
        }
        if let Some(full) = warp.queue.push(op) {
            self.land(warp, full);
        }
    }

    /// Moves bytes and looks at what they overwrite.
    fn move_now(&mut self, warp: &mut Warp, moves: &[Move]) {
        // All moves of an instruction go to one memory.
        let id = match moves.first().map(|m| m.dest) {
            Some(Dest::Shared(_)) => self.instance(warp, Which::Shared, false, true),
            Some(Dest::Global(n, _)) => self.instance(warp, Which::Global(n), false, true),
            Some(Dest::Local(..)) | None => 0,
        };
        let mut bytes = [0u8; MAX_MOVE];
        for m in moves {
            let bytes = self.fetch(warp, m, &mut bytes);
            match m.dest {
                Dest::Shared(at) => {
                    let who = who(warp, id, m.lane, false);
                    let trouble = self.shared.store(who, at, bytes);
                    if !trouble.is_none() {
                        self.trouble(warp, Which::Shared, m.lane, true, trouble);
                    }
                }
                Dest::Local(lane, offset) => {
                    let len = bytes.len();
                    if !warp.queue.is_empty() && warp.local.flag(lane, offset as usize, len) == HELD
                    {
                        self.report(warp, FindingKind::NotWaitedFor, Some(lane), || {
                            "registers are written while a load into them is under way".to_string()
                        });
                    }
                    warp.local.store(lane, offset as usize, bytes);
                }
                Dest::Global(storage, at) => {
                    self.store_global(warp, id, m.lane, (storage, at), bytes);
                }
            }
        }
    }

    /// The bytes that a move brings.
    fn fetch<'b>(&self, warp: &Warp, m: &Move, out: &'b mut [u8; MAX_MOVE]) -> &'b [u8] {
        let len = (m.len as usize).min(MAX_MOVE);
        let out = &mut out[..len];
        match m.source {
            Source::Global(storage, at) => {
                out.copy_from_slice(&self.globals.storage(storage).bytes[at..at + len]);
            }
            Source::Shared(at) => out.copy_from_slice(&self.shared.bytes[at..at + len]),
            Source::Local(lane, offset) => {
                out.copy_from_slice(warp.local.load(lane, offset as usize, len));
            }
            Source::Fill(value, bytes) => {
                let pattern = value.to_le_bytes();
                for (i, b) in out.iter_mut().enumerate() {
                    *b = pattern[i % bytes as usize];
                }
            }
        }
        out
    }

    /// Moves what the warp's operations on shared memory have yet to move, before an access of
    /// its own that comes after them. They stay under way for everybody else.
    pub fn catch_up(&mut self, warp: &mut Warp) {
        if warp.queue.is_empty() {
            return;
        }
        for (moves, registers) in warp.queue.take_moves(Counter::Lgkmcnt) {
            self.carry(warp, &moves);
            for (lane, offset, len) in registers {
                warp.local
                    .set_flags(lane, offset as usize, len as usize, HELD);
            }
        }
    }

    /// Notes that global memory is written, by moves that come later.
    pub(super) fn announce_global(&mut self, warp: &Warp, moves: &[Move]) {
        let Some(Dest::Global(storage, _)) = moves.first().map(|m| m.dest) else {
            return;
        };
        let id = self.instance(warp, Which::Global(storage), false, true);
        let mut bytes = [0u8; MAX_MOVE];
        for m in moves.iter().flat_map(|m| m.parts(MAX_MOVE)) {
            let bytes = self.fetch(warp, &m, &mut bytes);
            if let Dest::Global(storage, at) = m.dest {
                let me = who(warp, id, m.lane, false);
                let trouble = self.global_shadow.store(me, storage, at, bytes);
                if !trouble.is_none() {
                    self.trouble(warp, Which::Global(storage), m.lane, true, trouble);
                }
            }
        }
    }

    pub(super) fn carry(&mut self, warp: &mut Warp, moves: &[Move]) {
        let mut bytes = [0u8; MAX_MOVE];
        for m in moves.iter().flat_map(|m| m.parts(MAX_MOVE)) {
            let bytes = self.fetch(warp, &m, &mut bytes);
            match m.dest {
                Dest::Shared(at) => self.shared.bytes[at..at + bytes.len()].copy_from_slice(bytes),
                Dest::Local(lane, offset) => warp.local.store(lane, offset as usize, bytes),
                Dest::Global(storage, at) => {
                    let site = self.stmt(warp);
                    self.globals.store_bytes(storage, site, at, bytes);
                }
            }
        }
    }

    /// An operation is complete.
    pub fn land(&mut self, warp: &mut Warp, op: Pending) {
        self.carry(warp, &op.moves);
        if let Some(product) = &op.product {
            self.add_product(warp, product);
        }
        if let Some(token) = op.token {
            self.shared.release(token, None, warp.own_clock());
        }
        for &(lane, offset, len) in &op.registers {
            warp.local
                .set_flags(lane, offset as usize, len as usize, WRITTEN);
        }
        // A product after it may add to the same registers.
        for &(lane, offset, len) in warp.queue.registers() {
            warp.local
                .set_flags(lane, offset as usize, len as usize, HELD);
        }
    }

    /// Waits until at most so many operations (or groups) of a counter are under way.
    pub fn wait(&mut self, warp: &mut Warp, counter: Counter, at_most: u32) {
        for op in warp.queue.wait(counter, at_most, warp.mask) {
            self.land(warp, op);
        }
        if (counter, at_most) == (Counter::Lgkmcnt, 0) {
            self.settle(warp);
        }
    }

    /// Completes everything that is under way.
    pub fn drain(&mut self, warp: &mut Warp) {
        for op in warp.queue.drain() {
            self.land(warp, op);
        }
        self.settle(warp);
    }

    fn count_matrix(&mut self, warp: &Warp, rows: &[u32]) {
        let cost = banks::matrix_cost(rows);
        let stmt = self.stmt(warp) as usize;
        self.counts[stmt].add_cost(cost);
    }
}

/// The longest move: a vector of a register file's row.
const MAX_MOVE: usize = 256;

/// Moves out of registers, with the bytes they have now.
fn captured(warp: &Warp, moves: &[Move]) -> Vec<Move> {
    with_bytes(moves, |m| match m.source {
        Source::Local(lane, offset) => Some(warp.local.load(lane, offset as usize, m.len as usize)),
        _ => None,
    })
}

/// Moves out of shared memory, with the bytes it has now.
pub(super) fn captured_shared(shared: &[u8], moves: &[Move]) -> Vec<Move> {
    with_bytes(moves, |m| match m.source {
        Source::Shared(at) => Some(&shared[at..at + m.len as usize]),
        _ => None,
    })
}

/// Moves with the bytes that they bring, where these are known.
fn with_bytes<'b>(moves: &[Move], of: impl Fn(&Move) -> Option<&'b [u8]>) -> Vec<Move> {
    let mut list = Vec::with_capacity(moves.len());
    for m in moves {
        let Some(bytes) = of(m) else {
            list.push(*m);
            continue;
        };
        for (i, chunk) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let shift = 8 * i;
            list.push(Move {
                lane: m.lane,
                source: Source::Fill(u64::from_le_bytes(word), 8),
                dest: match m.dest {
                    Dest::Shared(at) => Dest::Shared(at + shift),
                    Dest::Global(n, at) => Dest::Global(n, at + shift),
                    Dest::Local(l, at) => Dest::Local(l, at + shift as u32),
                },
                len: chunk.len() as u32,
            });
        }
    }
    list
}

impl Addresses {
    /// The same with every lane on its own, even where all say the same.
    fn every(&self, lanes: u64) -> Addresses {
        Addresses {
            mask: self.mask & lanes,
            uniform: false,
            ..*self
        }
    }
}
