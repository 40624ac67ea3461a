//! Atomics on single elements, and the order they make.

use tilewright_ir::{AtomicOp, MemoryOrder, Span, ThreadOp, thread_ops};

use super::{ThreadCode, stray};
use crate::compile::names::Compiled;
use crate::exec::{cast_slot, combine, decode, encode};
use crate::memory::{read_bits, write_bits};
use crate::simt::access::{byte_len, byte_of};
use crate::simt::compile::Compiler;
use crate::simt::counts::InstKind;
use crate::simt::env::{Env, Which, who};
use crate::simt::memory::Memory;
use crate::simt::program::{Access, Op, Slot, Space};
use crate::simt::report::FindingKind;
use crate::simt::step::Pause;
use crate::simt::sync::Address;
use crate::simt::warp::{Lanes, WRITTEN, Warp};

#[derive(Clone, Debug)]
pub(in crate::simt) enum Code {
    Rmw {
        op: AtomicOp,
        access: u32,
        value: Slot,
        order: MemoryOrder,
        result: Option<Slot>,
    },
    VecAdd {
        dst: u32,
        src: u32,
    },
    Load {
        access: u32,
        order: MemoryOrder,
        result: Slot,
    },
}

pub(super) fn compile(c: &mut Compiler<'_>, op: &ThreadOp, span: Span) -> Compiled<Op> {
    let code = match op {
        ThreadOp::AtomicRmw {
            op,
            buffer,
            indices,
            value,
            order,
            result,
        } => {
            let scalar = c.func.buffers[*buffer].dtype.scalar;
            if result.is_some() {
                let number = c.buffer(*buffer)?;
                c.note_traffic(number, false);
            }
            Code::Rmw {
                op: *op,
                value: c.cast(value, scalar)?,
                access: c.element(*buffer, indices, 1, true, span)?,
                order: *order,
                result: result.map(|var| c.result(var)),
            }
        }
        ThreadOp::AtomicVecAdd {
            dst,
            dst_indices,
            src,
            src_indices,
            lanes,
        } => {
            let lanes = u32::from(*lanes);
            Code::VecAdd {
                dst: c.element(*dst, dst_indices, lanes, true, span)?,
                src: c.element(*src, src_indices, lanes, false, span)?,
            }
        }
        ThreadOp::AtomicLoad {
            buffer,
            indices,
            order,
            result,
        } => Code::Load {
            access: c.element(*buffer, indices, 1, false, span)?,
            order: *order,
            result: c.result(*result),
        },
        ThreadOp::AtomicStore {
            buffer,
            indices,
            value,
            order,
        } => {
            let scalar = c.func.buffers[*buffer].dtype.scalar;
            Code::Rmw {
                op: AtomicOp::Exchange,
                value: c.cast(value, scalar)?,
                access: c.element(*buffer, indices, 1, true, span)?,
                order: *order,
                result: None,
            }
        }
        thread_ops!(lanes barriers plain) => return Err(stray(span)),
    };
    Ok(Op::Thread(Box::new(ThreadCode::Atomic(code))))
}

impl Env<'_> {
    pub(super) fn atomic_op(&mut self, warp: &mut Warp, code: &Code) -> Pause {
        match *code {
            Code::Rmw {
                op,
                access,
                value,
                order,
                result,
            } => {
                let access = &self.program.accesses[access as usize];
                let values = |warp: &Warp, lane: u32| warp.regs.lane(value, lane as usize);
                self.atomic(warp, access, 0, op, order, result, values);
            }
            Code::VecAdd { dst, src } => self.atomic_vec_add(warp, dst, src),
            Code::Load {
                access,
                order,
                result,
            } => self.atomic_load(warp, access, order, result),
        }
        Pause::Turn
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
                        && matches!(self.globals, Memory::Direct(_))
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
                    warp.local.set_flags(lane, start, len, WRITTEN);
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
                words[lane as usize] = cast_slot(from.scalar, to, word);
            }
            let values = |_: &Warp, lane: u32| words[lane as usize];
            let add = AtomicOp::Add;
            self.atomic(warp, dst, i, add, MemoryOrder::Relaxed, None, values);
        }
        warp.mask = saved;
    }
}

fn note(list: &mut Vec<Address>, at: Address) {
    if list.last() != Some(&at) {
        list.push(at);
    }
}
