//! Thread operations: atomics, and what lanes of a warp do together.

use tilewright_ir::{AtomicOp, MemoryOrder, ReduceKind, Scalar, ShuffleKind, VoteKind};

use super::access::{byte_len, byte_of};
use super::counts::InstKind;
use super::env::{Env, Which, who};
use super::program::{Access, Slot, Space, ThreadCode};
use super::report::FindingKind;
use super::sync::Address;
use super::warp::{Lanes, Warp};
use crate::exec::{combine, decode, encode, fold, identity};
use crate::memory::{read_bits, write_bits};
use crate::value;

/// What became of a thread operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Done {
    /// The warp goes on.
    Next,
    /// It waits for all threads of the block.
    Block,
    /// It waits for a phase of an arrival barrier, and will look again.
    Mbarrier,
    /// It waits for all blocks.
    Grid,
}

/// Lanes that vote and reduce together, on every target as far as the language is concerned.
const GROUP: u32 = 32;

impl Env<'_> {
    pub fn thread(&mut self, warp: &mut Warp, code: &ThreadCode) -> Done {
        match code {
            ThreadCode::AtomicRmw {
                op,
                access,
                value,
                order,
                result,
            } => {
                let program = self.program;
                let access = &program.accesses[*access as usize];
                let value = *value;
                let values = |warp: &Warp, lane: u32| warp.regs.lane(value, lane as usize);
                self.atomic(warp, access, 0, *op, *order, *result, values);
            }
            ThreadCode::AtomicVecAdd { dst, src } => self.atomic_vec_add(warp, *dst, *src),
            ThreadCode::AtomicLoad {
                access,
                order,
                result,
            } => self.atomic_load(warp, *access, *order, *result),
            ThreadCode::AtomicStore {
                access,
                value,
                order,
            } => {
                let program = self.program;
                let access = &program.accesses[*access as usize];
                let value = *value;
                let values = |warp: &Warp, lane: u32| warp.regs.lane(value, lane as usize);
                self.atomic(warp, access, 0, AtomicOp::Exchange, *order, None, values);
            }
            ThreadCode::Shuffle {
                kind,
                value,
                lane,
                width,
                result,
            } => self.shuffle(warp, *kind, *value, *lane, *width, *result),
            ThreadCode::Vote {
                kind,
                value,
                result,
            } => {
                self.count(warp, InstKind::Vote);
                if kind.is_of_block() {
                    return Done::Block;
                }
                self.converged(warp, "a vote");
                self.vote(warp, *kind, *value, *result);
            }
            ThreadCode::WarpReduce {
                kind,
                scalar,
                value,
                result,
            } => {
                self.converged(warp, "a warp reduction");
                self.warp_reduce(warp, *kind, *scalar, *value, *result);
            }
            ThreadCode::AllReduce(_) => {
                self.count(warp, InstKind::Shuffle);
                return Done::Block;
            }
            ThreadCode::SyncWarp => {
                self.converged(warp, "a warp barrier");
                self.shared.sync_warp(warp.index);
            }
            ThreadCode::SyncGrid => return Done::Grid,
            ThreadCode::Arrive { barrier, index } => {
                self.count(warp, InstKind::Barrier);
                for lane in Lanes(warp.mask) {
                    if let Some(number) = self.barrier(warp, *barrier, *index, lane) {
                        self.arrive(warp, number, lane);
                    }
                }
            }
            ThreadCode::Expect {
                barrier,
                index,
                bytes,
                arrive,
            } => {
                for lane in Lanes(warp.mask) {
                    let Some(number) = self.barrier(warp, *barrier, *index, lane) else {
                        continue;
                    };
                    let bytes = warp.regs.lane(*bytes, lane as usize) as i64;
                    self.barriers.expect(number, bytes);
                    if *arrive {
                        self.arrive(warp, number, lane);
                    }
                }
            }
            ThreadCode::Wait {
                barrier,
                index,
                parity,
            } => {
                let mut numbers = Vec::new();
                for lane in Lanes(warp.mask) {
                    let Some(number) = self.barrier(warp, *barrier, *index, lane) else {
                        continue;
                    };
                    let parity = warp.regs.lane(*parity, lane as usize) as i64;
                    if !self.barriers.passed(number, parity) {
                        return Done::Mbarrier;
                    }
                    if !numbers.contains(&number) {
                        numbers.push(number);
                    }
                }
                for number in numbers {
                    self.barriers.pass(number, warp);
                }
                self.shared.sync_warp(warp.index);
                self.count(warp, InstKind::Wait);
            }
            ThreadCode::Dp4a { a, b, c } => self.dp4a(warp, *a, *b, *c),
            ThreadCode::Print { message, args } => {
                for lane in Lanes(warp.mask) {
                    let values: Vec<String> = args
                        .iter()
                        .map(|&(slot, scalar)| {
                            let word = warp.regs.lane(slot, lane as usize);
                            match value::number(scalar, word) {
                                tilewright_ir::small_float::Number::Int(v) => v.to_string(),
                                tilewright_ir::small_float::Number::Float(v) => v.to_string(),
                            }
                        })
                        .collect();
                    let thread = warp.thread(lane);
                    let line = match values.is_empty() {
                        true => format!("thread {thread}: {message}"),
                        false => format!("thread {thread}: {message} {}", values.join(", ")),
                    };
                    self.print(line);
                }
            }
        }
        Done::Next
    }

    /// Reports a collective that some threads of the warp do not take part in.
    fn converged(&mut self, warp: &Warp, what: &str) {
        if !warp.converged() {
            self.report(warp, FindingKind::DivergentCollective, None, || {
                format!(
                    "{what} in divergent control flow: {} of {} threads of the warp are here",
                    warp.mask.count_ones(),
                    warp.all.count_ones()
                )
            });
        }
    }

    /// An atomic update of one scalar of an access in every active lane, in lane order.
    #[expect(
        clippy::too_many_arguments,
        reason = "the operands of one operation, passed once"
    )]
    fn atomic(
        &mut self,
        warp: &mut Warp,
        access: &Access,
        scalar_number: usize,
        op: AtomicOp,
        order: MemoryOrder,
        result: Option<Slot>,
        values: impl Fn(&Warp, u32) -> u64,
    ) {
        if warp.mask == 0 {
            return;
        }
        self.count(warp, InstKind::Atomic);
        let info = &self.program.buffers[access.buffer as usize];
        let addresses = self.addresses(warp, access, warp.mask);
        let (bits, scalar) = (info.bits(), info.scalar);
        let id = match info.space {
            Space::Shared(_) => self.instance(warp, Which::Shared, true, true),
            Space::Global(n) => self.instance(warp, Which::Global(n), true, true),
            Space::Local(_) | Space::Barrier(_) => 0,
        };
        self.shared.through(info.owner);
        let mut touched = Vec::new();
        for lane in Lanes(addresses.mask) {
            let at = addresses.at[lane as usize] + scalar_number;
            let value = values(warp, lane);
            let old = match info.space {
                Space::Shared(base) => {
                    let (start, len) = (byte_of(info, at), byte_len(info, at, 1));
                    let raw = read_bits(&self.shared.bytes[base as usize..], bits, at);
                    let old = decode(scalar, raw);
                    let new = encode(scalar, combine(op, scalar, old, value));
                    let me = who(warp, id, lane, true);
                    let mut trouble = if op == AtomicOp::Exchange {
                        Default::default()
                    } else {
                        self.shared.read(me, start, len)
                    };
                    let stored = if bits < 8 {
                        self.shared.store_packed(me, (base as usize, bits, at), new)
                    } else {
                        self.shared.store(me, start, &new.to_le_bytes()[..len])
                    };
                    trouble.race = trouble.race.or(stored.race);
                    trouble.unordered_lane = trouble.unordered_lane.or(stored.unordered_lane);
                    trouble.held = trouble.held.or(stored.held);
                    if !trouble.is_none() {
                        self.trouble(warp, Which::Shared, lane, true, trouble);
                    }
                    note(&mut touched, Address::Shared(start));
                    old
                }
                Space::Global(n) => {
                    let fresh = op != AtomicOp::Exchange
                        && matches!(self.globals, super::memory::Memory::Direct(_))
                        && !self.globals.storage(n).is_written(bits, at, 1);
                    if fresh {
                        self.report(warp, FindingKind::Uninitialised, Some(lane), || {
                            format!("`{}` is updated but nothing wrote it", info.name)
                        });
                    }
                    let site = self.stmt(warp);
                    note(&mut touched, Address::Global(n, at));
                    let (start, len) = (byte_of(info, at), byte_len(info, at, 1));
                    // What it becomes does not matter: atomics do not race with each other.
                    let new = vec![0; len];
                    let me = who(warp, id, lane, true);
                    let trouble = self.global_shadow.store(me, n, start, &new);
                    if trouble.race.is_some() {
                        self.trouble(warp, Which::Global(n), lane, true, trouble);
                    }
                    self.globals.atomic((n, site), op, scalar, at, value)
                }
                Space::Local(base) => {
                    let (start, len) = (byte_of(info, at), byte_len(info, at, 1));
                    let range = warp
                        .local
                        .range(lane, base as usize, start + len - base as usize);
                    let bytes = &mut warp.local.bytes[range];
                    let old = decode(scalar, read_bits(bytes, bits, at));
                    let new = encode(scalar, combine(op, scalar, old, value));
                    write_bits(bytes, bits, at, new);
                    warp.local.set_flags(lane, start, len, super::warp::WRITTEN);
                    old
                }
                Space::Barrier(_) => 0,
            };
            if let Some(slot) = result {
                warp.regs.set_lane(slot, lane as usize, old);
            }
        }
        if let Some(slot) = result {
            for lane in Lanes(warp.mask & !addresses.mask) {
                warp.regs.set_lane(slot, lane as usize, 0);
            }
        }
        self.order(warp, order, &touched);
    }

    /// The order that atomics make with those of other warps at the same addresses.
    fn order(&mut self, warp: &mut Warp, order: MemoryOrder, touched: &[Address]) {
        use MemoryOrder::{AcqRel, Acquire, Consume, Release, SeqCst};
        if matches!(order, Acquire | Consume | AcqRel | SeqCst) {
            for &at in touched {
                self.barriers.acquire(at, warp);
            }
        }
        if matches!(order, Release | AcqRel | SeqCst) {
            self.settle(warp);
            for &at in touched {
                self.barriers.publish(at, warp);
            }
        }
    }

    fn atomic_load(&mut self, warp: &mut Warp, access: u32, order: MemoryOrder, result: Slot) {
        if warp.mask == 0 {
            return;
        }
        self.count(warp, InstKind::Atomic);
        let access = &self.program.accesses[access as usize];
        let info = &self.program.buffers[access.buffer as usize];
        let addresses = self.addresses(warp, access, warp.mask);
        let id = match info.space {
            Space::Shared(_) => self.instance(warp, Which::Shared, true, false),
            Space::Global(n) => self.instance(warp, Which::Global(n), true, false),
            Space::Local(_) | Space::Barrier(_) => 0,
        };
        let mut touched = Vec::new();
        // What this load sees is ordered after what was published there, so that comes first.
        for lane in Lanes(addresses.mask) {
            let at = addresses.at[lane as usize];
            note(
                &mut touched,
                match info.space {
                    Space::Global(n) => Address::Global(n, at),
                    _ => Address::Shared(byte_of(info, at)),
                },
            );
        }
        self.order(warp, order, &touched);
        self.shared.through(info.owner);
        for lane in Lanes(addresses.mask) {
            let at = addresses.at[lane as usize];
            let raw = match info.space {
                Space::Shared(base) => {
                    let (start, len) = (byte_of(info, at), byte_len(info, at, 1));
                    let trouble = self.shared.read(who(warp, id, lane, true), start, len);
                    if !trouble.is_none() {
                        self.trouble(warp, Which::Shared, lane, false, trouble);
                    }
                    read_bits(&self.shared.bytes[base as usize..], info.bits(), at)
                }
                Space::Global(n) => {
                    let (start, len) = (byte_of(info, at), byte_len(info, at, 1));
                    let me = who(warp, id, lane, true);
                    let trouble = self.global_shadow.read(me, n, start, len);
                    if !trouble.is_none() {
                        self.trouble(warp, Which::Global(n), lane, false, trouble);
                    }
                    read_bits(&self.globals.storage(n).bytes, info.bits(), at)
                }
                Space::Local(_) | Space::Barrier(_) => 0,
            };
            let word = decode(info.scalar, raw);
            warp.regs.set_lane(result, lane as usize, word);
        }
    }

    fn atomic_vec_add(&mut self, warp: &mut Warp, dst: u32, src: u32) {
        if warp.mask == 0 {
            return;
        }
        let program = self.program;
        let (dst, src) = (
            &program.accesses[dst as usize],
            &program.accesses[src as usize],
        );
        let (to, from) = (
            program.buffers[dst.buffer as usize].scalar,
            &program.buffers[src.buffer as usize],
        );
        let addresses = self.addresses(warp, src, warp.mask);
        self.check_read(warp, src, &addresses);
        let saved = warp.mask;
        warp.mask &= addresses.mask;
        for i in 0..src.width as usize {
            let mut words = vec![0; warp.width as usize];
            for lane in Lanes(warp.mask) {
                let at = addresses.at[lane as usize] + i;
                let word = decode(from.scalar, self.raw(warp, src, lane, at));
                words[lane as usize] = crate::exec::cast_slot(from.scalar, to, word);
            }
            let values = |_: &Warp, lane: u32| words[lane as usize];
            let add = AtomicOp::Add;
            self.atomic(warp, dst, i, add, MemoryOrder::Relaxed, None, values);
        }
        warp.mask = saved;
    }

    /// The stored bits of a scalar.
    fn raw(&self, warp: &Warp, access: &Access, lane: u32, at: usize) -> u64 {
        let info = &self.program.buffers[access.buffer as usize];
        let bits = info.bits();
        match info.space {
            Space::Shared(base) => read_bits(&self.shared.bytes[base as usize..], bits, at),
            Space::Global(n) => read_bits(&self.globals.storage(n).bytes, bits, at),
            Space::Local(base) => {
                let (start, len) = (byte_of(info, at), byte_len(info, at, 1));
                let bytes = warp
                    .local
                    .load(lane, base as usize, start + len - base as usize);
                read_bits(bytes, bits, at)
            }
            Space::Barrier(_) => 0,
        }
    }

    fn shuffle(
        &mut self,
        warp: &mut Warp,
        kind: ShuffleKind,
        value: Slot,
        lane: Slot,
        width: u32,
        result: Slot,
    ) {
        self.count(warp, InstKind::Shuffle);
        self.converged(warp, "a shuffle");
        let mut words = vec![0; warp.width as usize];
        for own in Lanes(warp.mask) {
            let asked = warp.regs.lane(lane, own as usize) as i64;
            let (first, place) = (own - own % width, i64::from(own % width));
            let from = match kind {
                ShuffleKind::Index => asked.rem_euclid(i64::from(width)),
                ShuffleKind::Up => place - asked,
                ShuffleKind::Down => place + asked,
                ShuffleKind::Xor => place ^ asked,
            };
            let from = if (0..i64::from(width)).contains(&from) {
                first + from as u32
            } else {
                own
            };
            if warp.mask >> from & 1 == 0 {
                self.report(warp, FindingKind::DivergentCollective, Some(own), || {
                    format!("a shuffle asks lane {from} of the warp, which is not here")
                });
                continue;
            }
            words[own as usize] = warp.regs.lane(value, from as usize);
        }
        for own in Lanes(warp.mask) {
            warp.regs
                .set_lane(result, own as usize, words[own as usize]);
        }
    }

    /// The votes of one warp's groups.
    fn vote(&mut self, warp: &mut Warp, kind: VoteKind, value: Slot, result: Slot) {
        let yes = warp.regs.truth(value, warp.mask);
        for lane in Lanes(warp.mask) {
            let first = lane - lane % GROUP;
            let group = u64::from(u32::MAX) << first;
            let (here, for_it) = (warp.mask & group, yes & group);
            let v = match kind {
                VoteKind::Any => u64::from(for_it != 0),
                VoteKind::All => u64::from(for_it == here),
                VoteKind::Ballot => for_it >> first,
                // Those are decided when the block has come together.
                VoteKind::BlockOr | VoteKind::BlockAnd | VoteKind::BlockCount => 0,
            };
            warp.regs.set_lane(result, lane as usize, v);
        }
    }

    fn warp_reduce(
        &mut self,
        warp: &mut Warp,
        kind: ReduceKind,
        scalar: Scalar,
        value: Slot,
        result: Slot,
    ) {
        self.count(warp, InstKind::Shuffle);
        let mut first = 0;
        while first < warp.width {
            let group = warp.mask & u64::from(u32::MAX) << first;
            let total = Lanes(group).fold(identity(kind, scalar), |acc, lane| {
                fold(
                    kind,
                    scalar,
                    acc,
                    warp.regs.lane(value, lane as usize),
                    false,
                )
            });
            for lane in Lanes(group) {
                warp.regs.set_lane(result, lane as usize, total);
            }
            first += GROUP;
        }
    }

    /// The number of the barrier that a lane means; a bad index is reported.
    pub fn barrier(&mut self, warp: &Warp, buffer: u32, index: Slot, lane: u32) -> Option<usize> {
        let info = &self.program.buffers[buffer as usize];
        let Space::Barrier(first) = info.space else {
            return None;
        };
        let count = info.shape.iter().product::<i64>().max(0);
        let at = warp.regs.lane(index, lane as usize) as i64;
        if (0..count).contains(&at) {
            return Some(first as usize + at as usize);
        }
        self.report(warp, FindingKind::OutOfBounds, Some(lane), || {
            format!("`{}` has no barrier {at}: there are {count}", info.name)
        });
        None
    }

    fn arrive(&mut self, warp: &mut Warp, number: usize, lane: u32) {
        self.settle(warp);
        self.hand_over(warp.index);
        if !self.barriers.arrive(number, warp, 1) {
            self.report(warp, FindingKind::BarrierMisuse, Some(lane), || {
                "more threads arrive at a barrier than its count, or it was never initialised"
                    .to_string()
            });
        }
    }

    fn dp4a(&mut self, warp: &mut Warp, a: u32, b: u32, c: u32) {
        if warp.mask == 0 {
            return;
        }
        let program = self.program;
        let [a, b, c] = [a, b, c].map(|i| &program.accesses[i as usize]);
        let scalar = |x: &Access| program.buffers[x.buffer as usize].scalar;
        let from_a = self.addresses(warp, a, warp.mask);
        self.check_read(warp, a, &from_a);
        let from_b = self.addresses(warp, b, warp.mask);
        self.check_read(warp, b, &from_b);
        let to = self.addresses(warp, c, warp.mask);
        self.check_read(warp, c, &to);
        let mut words = vec![0; warp.width as usize];
        let lanes = from_a.mask & from_b.mask & to.mask;
        for lane in Lanes(lanes) {
            let l = lane as usize;
            let mut sum = decode(scalar(c), self.raw(warp, c, lane, to.at[l])) as i64;
            for i in 0..4 {
                let x = decode(scalar(a), self.raw(warp, a, lane, from_a.at[l] + i)) as i64;
                let y = decode(scalar(b), self.raw(warp, b, lane, from_b.at[l] + i)) as i64;
                sum = sum.wrapping_add(x.wrapping_mul(y));
            }
            words[l] = encode(scalar(c), value::wrap(scalar(c), sum) as u64);
        }
        let mut addresses = to;
        addresses.mask = lanes;
        addresses.uniform = false;
        self.store_raw(warp, c, &addresses, |_, _, lane| words[lane as usize]);
    }
}

fn note(list: &mut Vec<Address>, at: Address) {
    if list.last() != Some(&at) {
        list.push(at);
    }
}
