//! Elements of buffers: addresses of all lanes at once, bounds, loads and stores.

use super::alu::Value;
use super::banks;
use super::counts::InstKind;
use super::env::{Env, Which, who};
use super::program::{Access, BufferInfo, Slot, Space};
use super::report::FindingKind;
use super::shared::Who;
use super::warp::{HELD, Lanes, MAX_LANES, WRITTEN, Warp};
use crate::exec::{decode, encode, tuple};
use crate::memory::{read_bits, write_bits};

/// Where each lane's first scalar is, counted in scalars from the start of the storage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses {
    pub at: [usize; MAX_LANES],
    /// Lanes whose address is inside the buffer.
    pub mask: u64,
    /// All lanes have the same address.
    pub uniform: bool,
}

impl Addresses {
    /// The lanes that a worker stands for.
    pub fn done_by(&self, worker: u32) -> u64 {
        if self.uniform { self.mask } else { 1 << worker }
    }

    /// The lanes that do the work: one where all would do the same.
    pub fn workers(&self) -> Lanes {
        Lanes(if self.uniform {
            self.mask & self.mask.wrapping_neg()
        } else {
            self.mask
        })
    }
}

/// The first byte of a scalar in its storage.
#[inline]
pub(super) fn byte_of(info: &BufferInfo, at: usize) -> usize {
    let base = match info.space {
        Space::Shared(base) | Space::Local(base) => base as usize,
        Space::Global(_) | Space::Barrier(_) => 0,
    };
    base + at * info.bits() as usize / 8
}

/// The bytes that scalars in a row touch.
#[inline]
pub(super) fn byte_len(info: &BufferInfo, at: usize, width: u32) -> usize {
    let bits = info.bits() as usize;
    (at * bits + width as usize * bits).div_ceil(8) - at * bits / 8
}

impl Env<'_> {
    /// Elements of a buffer from the first block's shared memory to that of another one of the
    /// cluster.
    pub fn of_rank(&self, rank: u32, info: &BufferInfo) -> i64 {
        let bits = (info.bits() * info.lanes) as usize;
        (rank as usize * self.program.shared_bytes * 8 / bits) as i64
    }

    /// The addresses of an access for the lanes of a mask. Lanes outside the buffer are
    /// reported and dropped.
    pub fn addresses(&mut self, warp: &Warp, access: &Access, mask: u64) -> Addresses {
        let program = self.program;
        let info = &program.buffers[access.buffer as usize];
        let elements = i64::from(access.width / info.lanes);
        let last = access.indices.len().wrapping_sub(1);
        let mut sums = [0i64; MAX_LANES];
        let mut common = 0i64;
        let mut outside = 0u64;
        let mut uniform = true;
        let width = warp.width as usize;
        for (d, &slot) in access.indices.iter().enumerate() {
            // The last index has to leave room for the elements after the first.
            let room = if d == last { elements - 1 } else { 0 };
            let (end, stride) = (info.shape[d] - room, info.strides[d]);
            match warp.regs.get(slot) {
                Value::One(v) => {
                    let i = v as i64;
                    if i < 0 || i >= end {
                        outside = u64::MAX;
                    }
                    common = common.wrapping_add(i.wrapping_mul(stride));
                }
                Value::Lanes(v) => {
                    uniform = false;
                    for (lane, (sum, &v)) in sums[..width].iter_mut().zip(v).enumerate() {
                        let i = v as i64;
                        *sum = sum.wrapping_add(i.wrapping_mul(stride));
                        outside |= u64::from(i < 0 || i >= end) << lane;
                    }
                }
            }
        }
        if last == usize::MAX && elements > 1 {
            outside = u64::MAX;
        }
        let mut version = 0;
        if let Some(slot) = access.version {
            let lane = mask.trailing_zeros().min(warp.width - 1) as usize;
            version = warp.regs.lane(slot, lane) as i64;
            if version < 0 || version >= i64::from(info.versions) {
                outside = u64::MAX;
            }
        }
        if outside & mask != 0 {
            self.outside(warp, access, outside & mask, version);
        }
        let mut result = Addresses {
            at: [0; MAX_LANES],
            mask: mask & !outside,
            uniform,
        };
        let mut shift = version * info.version_elements;
        if matches!(info.space, Space::Shared(_)) {
            shift += self.of_rank(warp.rank, info);
        }
        for lane in result.workers() {
            let mut at = common + sums[lane as usize];
            if let Some(places) = &info.places {
                let first = i64::from(places[at as usize]);
                let spread =
                    (1..elements).any(|i| i64::from(places[(at + i) as usize]) != first + i);
                if spread {
                    result.mask &= !(1 << lane);
                    self.report(warp, FindingKind::Misaligned, Some(lane), || {
                        format!(
                            "{elements} elements of `{}` in one access do not lie next to each \
                             other",
                            info.name
                        )
                    });
                }
                at = first;
            }
            result.at[lane as usize] = ((at + shift) * i64::from(info.lanes)) as usize;
        }
        if uniform && result.mask != 0 {
            let first = result.at[result.mask.trailing_zeros() as usize];
            result.at[..width].fill(first);
        }
        // Private memory is different in each lane even where the address is the same.
        result.uniform &= !matches!(info.space, Space::Local(_));
        if access.width > 1 && (info.bits() < 8 || !matches!(info.space, Space::Local(_))) {
            self.check_alignment(warp, access, &result);
        }
        result
    }

    #[cold]
    fn outside(&mut self, warp: &Warp, access: &Access, lanes: u64, version: i64) {
        let info = &self.program.buffers[access.buffer as usize];
        let lane = lanes.trailing_zeros();
        let index: Vec<i64> = access
            .indices
            .iter()
            .map(|&slot| warp.regs.lane(slot, lane as usize) as i64)
            .collect();
        self.report(warp, FindingKind::OutOfBounds, Some(lane), || {
            if version < 0 || version >= i64::from(info.versions) {
                return format!(
                    "`{}` has no version {version}: there are {}",
                    info.name, info.versions
                );
            }
            let elements = match access.width / info.lanes {
                1 => "element".to_string(),
                n => format!("{n} elements from"),
            };
            format!(
                "`{}` has no {elements} {}: its shape is {}",
                info.name,
                tuple(&index),
                tuple(&info.shape)
            )
        });
    }

    /// Vector accesses are aligned to their size, up to 16 bytes.
    fn check_alignment(&mut self, warp: &Warp, access: &Access, addresses: &Addresses) {
        let info = &self.program.buffers[access.buffer as usize];
        let bytes = (access.width * info.bits()).div_ceil(8) as usize;
        let align = match info.space {
            Space::Local(_) => 1,
            _ => (bytes & bytes.wrapping_neg()).min(16),
        };
        let bad = addresses.workers().find(|&lane| {
            let at = addresses.at[lane as usize];
            !byte_of(info, at).is_multiple_of(align)
                || !(at * info.bits() as usize).is_multiple_of(8)
        });
        if let Some(lane) = bad {
            let at = byte_of(info, addresses.at[lane as usize]);
            self.report(warp, FindingKind::Misaligned, Some(lane), || {
                format!(
                    "{bytes} bytes of `{}` at address {at}, which is not a multiple of {align}",
                    info.name
                )
            });
        }
    }

    /// Loads into registers, one for each scalar.
    pub fn load(&mut self, warp: &mut Warp, access: &Access, dst: &[Slot]) {
        if warp.mask == 0 {
            return;
        }
        let info = &self.program.buffers[access.buffer as usize];
        let addresses = self.addresses(warp, access, warp.mask);
        self.check_read(warp, access, &addresses);
        let (bits, scalar) = (info.bits(), info.scalar);
        for (i, &slot) in dst.iter().enumerate() {
            // A lane outside reads zero.
            for lane in Lanes(warp.mask & !addresses.mask) {
                warp.regs.set_lane(slot, lane as usize, 0);
            }
            for lane in addresses.workers() {
                let at = addresses.at[lane as usize] + i;
                let raw = match info.space {
                    Space::Local(base) => {
                        let start = base as usize;
                        let len = warp.local.bytes.len() / warp.width as usize - start;
                        read_bits(warp.local.load(lane, start, len), bits, at)
                    }
                    Space::Shared(base) => read_bits(&self.shared.bytes[base as usize..], bits, at),
                    Space::Global(n) => read_bits(&self.globals.storage(n).bytes, bits, at),
                    Space::Barrier(_) => 0,
                };
                warp.regs.set_lane(slot, lane as usize, decode(scalar, raw));
            }
        }
    }

    /// Stores registers, one for each scalar.
    pub fn store(&mut self, warp: &mut Warp, access: &Access, values: &[Slot]) {
        if warp.mask == 0 {
            return;
        }
        let info = &self.program.buffers[access.buffer as usize];
        let mut addresses = self.addresses(warp, access, warp.mask);
        // Lanes with one address and different values still conflict.
        addresses.uniform &= values.iter().all(|v| v.is_one());
        let scalar = info.scalar;
        let raw = |warp: &Warp, i: usize, lane: u32| {
            encode(scalar, warp.regs.lane(values[i], lane as usize))
        };
        self.store_raw(warp, access, &addresses, raw);
    }

    /// Stores the bits of scalars, lane by lane.
    pub fn store_raw(
        &mut self,
        warp: &mut Warp,
        access: &Access,
        addresses: &Addresses,
        raw: impl Fn(&Warp, usize, u32) -> u64,
    ) {
        let info = &self.program.buffers[access.buffer as usize];
        let bits = info.bits();
        let width = access.width as usize;
        match info.space {
            Space::Local(base) => {
                let start = base as usize;
                let room = warp.local.bytes.len() / warp.width as usize - start;
                let mut in_flight = None;
                for lane in Lanes(addresses.mask) {
                    let at = addresses.at[lane as usize];
                    let (first, len) = (byte_of(info, at), byte_len(info, at, access.width));
                    if !warp.queue.is_empty() && warp.local.flag(lane, first, len) == HELD {
                        in_flight = Some(lane);
                    }
                    for i in 0..width {
                        let value = raw(warp, i, lane);
                        let range = warp.local.range(lane, start, room);
                        write_bits(&mut warp.local.bytes[range], bits, at + i, value);
                    }
                    warp.local.set_flags(lane, first, len, WRITTEN);
                    warp.local.note_touch(first);
                }
                if let Some(lane) = in_flight {
                    self.held_register(warp, lane, info, "written");
                }
            }
            Space::Shared(base) => {
                self.count(warp, InstKind::SharedStore);
                self.shared_cost(warp, access, addresses, banks::Kind::Write);
                // Compiled code changes parts of bytes atomically, so that another thread may have the rest.
                let halves = !(width as u32 * bits).is_multiple_of(8);
                let id = self.instance(warp, Which::Shared, halves, true);
                self.shared.through(info.owner);
                let mut buffer = Vec::with_capacity(width * 8);
                for lane in addresses.workers() {
                    let at = addresses.at[lane as usize];
                    let trouble = if bits < 8 {
                        let mut all = super::shared::Trouble::default();
                        for i in 0..width {
                            let value = raw(warp, i, lane);
                            let who = Who {
                                lanes: addresses.done_by(lane),
                                ..who(warp, id, lane, halves)
                            };
                            let at = (base as usize, bits, at + i);
                            let one = self.shared.store_packed(who, at, value);
                            if !one.is_none() {
                                all = one;
                            }
                        }
                        all
                    } else {
                        buffer.clear();
                        for i in 0..width {
                            let value = raw(warp, i, lane).to_le_bytes();
                            buffer.extend_from_slice(&value[..bits as usize / 8]);
                        }
                        let start = byte_of(info, at);
                        let who = Who {
                            lanes: addresses.done_by(lane),
                            ..who(warp, id, lane, false)
                        };
                        self.shared.store(who, start, &buffer)
                    };
                    if !trouble.is_none() {
                        self.trouble(warp, Which::Shared, lane, true, trouble);
                    }
                }
            }
            Space::Global(n) => {
                self.count(warp, InstKind::GlobalStore);
                let site = self.stmt(warp);
                let id = self.instance(warp, Which::Global(n), false, true);
                let mut buffer = Vec::with_capacity(width * 8);
                for lane in addresses.workers() {
                    buffer.clear();
                    let at = addresses.at[lane as usize];
                    for i in 0..width {
                        let value = raw(warp, i, lane);
                        if bits < 8 {
                            self.globals.store(n, site, bits, at + i, value);
                        } else {
                            buffer.extend_from_slice(&value.to_le_bytes()[..bits as usize / 8]);
                        }
                    }
                    if bits >= 8 {
                        self.store_global(warp, id, lane, (n, byte_of(info, at)), &buffer);
                    }
                }
            }
            Space::Barrier(_) => {}
        }
    }

    /// Stores bytes to global memory and looks at what they overwrite.
    pub fn store_global(
        &mut self,
        warp: &Warp,
        id: u32,
        lane: u32,
        (storage, at): (u32, usize),
        bytes: &[u8],
    ) {
        let me = who(warp, id, lane, false);
        let trouble = self.global_shadow.store(me, storage, at, bytes);
        if !trouble.is_none() {
            self.trouble(warp, Which::Global(storage), lane, true, trouble);
        }
        let site = self.stmt(warp);
        self.globals.store_bytes(storage, site, at, bytes);
    }

    /// An ordinary instruction reads.
    pub fn check_read(&mut self, warp: &mut Warp, access: &Access, addresses: &Addresses) {
        let info = &self.program.buffers[access.buffer as usize];
        if matches!(info.space, Space::Local(_)) && warp.local.watches() {
            for lane in addresses.workers() {
                let at = addresses.at[lane as usize];
                warp.local.note_touch(byte_of(info, at));
            }
        }
        self.check_content(warp, access, addresses);
    }

    /// Looks at what is read, whatever becomes of it: races, what nothing wrote, banks.
    pub fn check_content(&mut self, warp: &Warp, access: &Access, addresses: &Addresses) {
        let info = &self.program.buffers[access.buffer as usize];
        match info.space {
            Space::Local(_) => {
                for lane in addresses.workers() {
                    let at = addresses.at[lane as usize];
                    let (first, len) = (byte_of(info, at), byte_len(info, at, access.width));
                    let flag = warp.local.flag(lane, first, len);
                    if flag != WRITTEN {
                        self.bad_register(warp, lane, info, flag);
                        break;
                    }
                }
            }
            Space::Shared(_) => {
                self.count(warp, InstKind::SharedLoad);
                self.shared_cost(warp, access, addresses, banks::Kind::Read);
                let id = self.instance(warp, Which::Shared, false, false);
                self.shared.through(info.owner);
                for lane in addresses.workers() {
                    let at = addresses.at[lane as usize];
                    let (start, len) = (byte_of(info, at), byte_len(info, at, access.width));
                    let who = Who {
                        lanes: addresses.done_by(lane),
                        ..who(warp, id, lane, false)
                    };
                    let trouble = self.shared.read(who, start, len);
                    if !trouble.is_none() {
                        self.trouble(warp, Which::Shared, lane, false, trouble);
                    }
                }
            }
            Space::Global(_) => {
                self.count(warp, InstKind::GlobalLoad);
                self.check_global_read(warp, access, addresses);
            }
            Space::Barrier(_) => {}
        }
    }

    /// Notes reads of global memory, and reports races and what nothing wrote.
    pub fn check_global_read(&mut self, warp: &Warp, access: &Access, addresses: &Addresses) {
        let info = &self.program.buffers[access.buffer as usize];
        let Space::Global(n) = info.space else {
            return;
        };
        for lane in addresses.workers() {
            let at = addresses.at[lane as usize];
            let (start, len) = (byte_of(info, at), byte_len(info, at, access.width));
            self.check_global_bytes(warp, lane, n, start, len);
        }
    }

    /// Notes a lane's read of global memory.
    pub fn check_global_bytes(&mut self, warp: &Warp, lane: u32, n: u32, start: usize, len: usize) {
        // What the kernel does not write cannot be raced for.
        if self.program.traffic.written[n as usize] {
            let site = self.stmt(warp);
            self.globals.note_read(n, site, start, len);
            let id = self.instance(warp, Which::Global(n), false, false);
            let trouble = self
                .global_shadow
                .read(who(warp, id, lane, false), n, start, len);
            if !trouble.is_none() {
                self.trouble(warp, Which::Global(n), lane, false, trouble);
            }
        }
        let storage = self.globals.storage(n);
        if storage.written.is_some() && !storage.is_written(8, start, len) {
            let name = self.buffer_name(Space::Global(n)).to_string();
            self.report(warp, FindingKind::Uninitialised, Some(lane), || {
                format!("`{name}` is read but nothing wrote it")
            });
        }
    }

    #[cold]
    pub fn bad_register(&mut self, warp: &Warp, lane: u32, info: &BufferInfo, flag: u8) {
        if flag == HELD {
            return self.held_register(warp, lane, info, "read");
        }
        self.report(warp, FindingKind::Uninitialised, Some(lane), || {
            format!("`{}` is read but nothing wrote it", info.name)
        });
    }

    #[cold]
    pub fn held_register(&mut self, warp: &Warp, lane: u32, info: &BufferInfo, verb: &str) {
        self.report(warp, FindingKind::NotWaitedFor, Some(lane), || {
            format!(
                "`{}` is {verb} while a load into it is under way",
                info.name
            )
        });
    }

    /// Counts what an access to shared memory costs its banks.
    pub fn shared_cost(
        &mut self,
        warp: &Warp,
        access: &Access,
        addresses: &Addresses,
        kind: banks::Kind,
    ) {
        let info = &self.program.buffers[access.buffer as usize];
        let mut lanes = [None; MAX_LANES];
        for lane in Lanes(addresses.mask) {
            lanes[lane as usize] = Some(byte_of(info, addresses.at[lane as usize]) as u32);
        }
        let bytes = (access.width * info.bits()).div_ceil(8);
        self.count_banks(warp, kind, bytes, &lanes[..warp.width as usize]);
    }
}
