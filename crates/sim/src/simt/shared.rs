//! Memory of a block with a shadow that says who touched each byte last: shared memory, and the
//! parts of global memory that the block writes.
//!
//! Two accesses race when they come from different warps, at least one writes, and no chain of
//! barriers orders them. Order is kept by vector clocks over warps: warp `w` starts at 1 on its
//! own clock, and goes one on each time it signals others; an access `(w, c)` happened before
//! what warp `v` does now when `v` has heard of `w`'s clock `c`. A barrier of the whole block
//! orders everything before it, so accesses older than the last one need no look-up.
//!
//! Choices:
//! - Lanes of one warp are ordered by the warp's barriers ([`LaneShadow`]); where they run in
//!   lockstep, and in global memory, by the program. Lanes of *one instruction* conflict when they
//!   write different values to one byte.
//! - Threads that write equal values to one byte without order do not race, and each may read
//!   it back: replicated values are stored by all their holders.
//! - Where buffers overlap, a byte belongs to the one it was last written through; a read through
//!   another one is a read of what nothing wrote.
//! - Bytes of an asynchronous operation under way are *held*: any conflicting access until it
//!   is waited for is reported, whenever the data really moves. Only LDS operations of one wave
//!   are in order among each other.
//! - Where LDS operations are counted an access without a counter is *loose* until its wave has
//!   waited for all of them: a bare barrier tells the other waves nothing about it.

use super::lanes::LaneShadow;
use super::proxy::Proxies;

/// Bytes of a block's memory and what happened to them.
#[derive(Debug)]
pub(super) struct Shared {
    pub bytes: Vec<u8>,
    flags: Vec<u8>,
    /// The last write of each byte, as a stamp; zero for none.
    write: Vec<u32>,
    /// Warps that wrote the byte's value without order among each other.
    writers: Vec<u32>,
    /// Warps that read the byte since it was written.
    readers: Vec<u32>,
    /// By warp, the last read of each byte; made when the warp first reads.
    reads: Vec<Vec<u32>>,
    /// Warps that updated the byte atomically since it was written: they are not ordered among
    /// each other, so all of them count.
    updaters: Vec<u32>,
    /// By warp, the last atomic update of each byte; made when the warp first does one.
    updates: Vec<Vec<u32>>,
    /// Through which buffer each byte was last written, where buffers overlap; else empty.
    owners: Vec<u16>,
    /// Through which buffer accesses come now.
    owner: u16,
    held_reads: Vec<u8>,
    held_writes: Vec<u8>,
    held: Vec<Held>,
    /// What lanes of one warp did, where that is looked at.
    lanes: Option<LaneShadow>,
    /// What has been shown to the async proxy, where something reads by it.
    pub proxies: Option<Proxies>,
    /// By warp, the instances that are loose.
    loose: Vec<Vec<u32>>,
    /// Accesses since the last barrier of the whole block.
    instances: Vec<Instance>,
    /// Loop indices of the instances.
    iterations: Vec<i64>,
    /// The number of `instances[0]`.
    first: u32,
}

const WRITTEN: u8 = 1;
const HELD: u8 = 2;

/// Lanes of a stamp: its low bits.
const LANE_BITS: u32 = 6;

/// The number of an instance must fit a stamp.
const MAX_INSTANCE: u32 = 1 << (32 - LANE_BITS);

fn lane_of(stamp: u32) -> u32 {
    stamp & ((1 << LANE_BITS) - 1)
}

/// The stamp of another lane of the same instance.
fn with_lane(stamp: u32, lane: u32) -> u32 {
    stamp >> LANE_BITS << LANE_BITS | lane
}

/// One instruction that one warp executed on shared memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instance {
    pub stmt: u32,
    pub warp: u32,
    /// Whose clock it is: the warp's, or that of who a barrier's bulk loads are.
    by: u32,
    pub clock: u32,
    pub atomic: bool,
    pub writes: bool,
    /// Whether it is one of the warp's own operations on shared memory, which are in order; a
    /// copy that does not go through registers is not.
    pub in_order: bool,
    /// Where its loop indices are.
    iteration: u32,
}

/// The clock of an access that other warps do not hear of.
const NEVER: u32 = u32::MAX;

impl Instance {
    /// Whether its warp has yet to wait for it.
    pub fn is_loose(&self) -> bool {
        self.clock == NEVER
    }
}

/// An asynchronous operation under way.
#[derive(Clone, Debug)]
struct Held {
    token: u64,
    writes: bool,
    instance: Instance,
    iteration: Vec<i64>,
    ranges: Vec<Range>,
}

/// Bytes that a lane touches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub lane: u32,
    pub start: usize,
    pub len: usize,
}

/// Who accesses: an instance, the lane, and what its warp knows of the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Who<'c> {
    pub id: u32,
    pub lane: u32,
    /// The lanes that it stands for: all that do the same.
    pub lanes: u64,
    pub warp: u32,
    pub clock: &'c [u32],
    pub atomic: bool,
}

/// What an access ran into. Mostly nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Trouble {
    /// The stamp of an access that it races with, and the byte.
    pub race: Option<(u32, usize)>,
    /// The stamp of an access by another lane of the warp that no warp barrier orders, the byte,
    /// and the lane that comes to it now.
    pub unordered_lane: Option<(u32, usize, u32)>,
    /// The stamp of another lane of the same instruction that wrote something else.
    pub conflict: Option<(u32, usize)>,
    /// A byte that an asynchronous operation holds.
    pub held: Option<usize>,
    /// A byte that nothing wrote.
    pub unwritten: Option<usize>,
    /// A byte that was last written through another buffer at the same place.
    pub foreign: Option<usize>,
}

impl Trouble {
    pub fn is_none(&self) -> bool {
        *self == Trouble::default()
    }
}

/// An access as reports need it.
#[derive(Clone, Debug)]
pub(super) struct Past {
    pub instance: Instance,
    pub lane: u32,
    pub iteration: Vec<i64>,
}

impl Shared {
    /// Makes room for more bytes.
    pub fn grow(&mut self, len: usize) {
        self.bytes.resize(len, crate::tensor::UNWRITTEN);
        self.flags.resize(len, 0);
        self.write.resize(len, 0);
        self.writers.resize(len, 0);
        self.readers.resize(len, 0);
        self.held_reads.resize(len, 0);
        self.held_writes.resize(len, 0);
        self.updaters.resize(len, 0);
        if let Some(proxies) = &mut self.proxies {
            proxies.grow(len);
        }
        let lists = self.reads.iter_mut().chain(&mut self.updates);
        lists
            .filter(|l| !l.is_empty())
            .for_each(|l| l.resize(len, 0));
    }

    pub fn new(len: usize, warps: usize) -> Shared {
        Shared {
            bytes: vec![crate::tensor::UNWRITTEN; len],
            flags: vec![0; len],
            write: vec![0; len],
            writers: vec![0; len],
            readers: vec![0; len],
            reads: vec![Vec::new(); warps],
            updaters: vec![0; len],
            updates: vec![Vec::new(); warps],
            owners: Vec::new(),
            owner: 0,
            held_reads: vec![0; len],
            held_writes: vec![0; len],
            held: Vec::new(),
            lanes: None,
            proxies: None,
            loose: vec![Vec::new(); warps],
            instances: Vec::new(),
            iterations: Vec::new(),
            first: 1,
        }
    }

    /// Remembers through which buffer a byte was written, so that a read through another one
    /// finds nothing of its own.
    pub fn with_owners(mut self, wanted: bool) -> Shared {
        if wanted {
            self.owners = vec![0; self.bytes.len()];
        }
        self
    }

    /// Looks at what lanes of one warp do to each other, where they are not in step.
    pub fn with_lanes(mut self, wanted: bool) -> Shared {
        self.lanes = wanted.then(|| LaneShadow::new(self.bytes.len(), self.reads.len()));
        self
    }

    /// Looks at what the async proxy sees.
    pub fn with_proxies(mut self, wanted: bool) -> Shared {
        self.proxies = wanted.then(|| Proxies::new(self.bytes.len(), self.reads.len()));
        self
    }

    /// The lanes of a warp synchronise.
    pub fn sync_warp(&mut self, warp: u32) {
        let next = self.first + self.instances.len() as u32;
        if let Some(lanes) = &mut self.lanes {
            lanes.sync(warp, next);
        }
    }

    /// The accesses that follow are of this buffer.
    pub fn through(&mut self, owner: u16) {
        self.owner = owner;
    }

    /// The buffer of the accesses at hand.
    pub fn owner(&self) -> u16 {
        self.owner
    }

    /// Through which buffer a byte was last written.
    pub fn owner_of(&self, at: usize) -> Option<u16> {
        self.owners.get(at).copied()
    }

    /// Numbers an access. `iteration` appends the values of the loops around it.
    pub fn instance(
        &mut self,
        (stmt, warp, clock): (u32, u32, u32),
        atomic: bool,
        writes: bool,
        iteration: impl FnOnce(&mut Vec<i64>),
    ) -> u32 {
        if self.first + self.instances.len() as u32 >= MAX_INSTANCE {
            self.restart();
        }
        let at = self.iterations.len() as u32;
        iteration(&mut self.iterations);
        self.instances.push(Instance {
            stmt,
            warp,
            by: warp,
            clock,
            atomic,
            writes,
            in_order: false,
            iteration: at,
        });
        self.first + self.instances.len() as u32 - 1
    }

    /// The access is one of the warp's own operations on shared memory.
    pub fn keep_order(&mut self, id: u32) {
        let at = (id - self.first) as usize;
        self.instances[at].in_order = true;
    }

    /// Numbers an access that other warps do not hear of before [`Shared::settle`].
    pub fn loose_instance(
        &mut self,
        (stmt, warp): (u32, u32),
        atomic: bool,
        writes: bool,
        iteration: impl FnOnce(&mut Vec<i64>),
    ) -> u32 {
        let id = self.instance((stmt, warp, NEVER), atomic, writes, iteration);
        self.loose[warp as usize].push(id);
        id
    }

    /// What the warp has done is complete, by this clock of its own.
    pub fn settle(&mut self, warp: u32, clock: u32) {
        for id in std::mem::take(&mut self.loose[warp as usize]) {
            let at = id.checked_sub(self.first).map(|at| at as usize);
            if let Some(instance) = at.and_then(|at| self.instances.get_mut(at)) {
                instance.clock = clock;
            }
        }
    }

    /// A barrier of the whole block: all that happened so far is ordered before what comes.
    pub fn all_ordered(&mut self) {
        // Clocks tell what is loose from what is not.
        if self.loose.iter().any(|list| !list.is_empty()) {
            return;
        }
        self.first += self.instances.len() as u32;
        self.instances.clear();
        self.iterations.clear();
        if self.first > MAX_INSTANCE / 2 {
            self.restart();
        }
    }

    /// Forgets all accesses, because the numbers of instances ran out.
    fn restart(&mut self) {
        self.first = 1;
        self.loose.iter_mut().for_each(Vec::clear);
        self.instances.clear();
        self.iterations.clear();
        self.write.fill(0);
        self.writers.fill(0);
        self.readers.fill(0);
        self.updaters.fill(0);
        let lists = self.reads.iter_mut().chain(&mut self.updates);
        lists.for_each(Vec::clear);
        if let Some(lanes) = &mut self.lanes {
            lanes.restart();
        }
    }

    /// Notes a read and says what is wrong with it.
    pub fn read(&mut self, who: Who<'_>, start: usize, len: usize) -> Trouble {
        let mut trouble = Trouble::default();
        let (stamp, me) = (who.id << LANE_BITS | who.lane, 1u32 << who.warp);
        let total = self.bytes.len();
        if self.reads[who.warp as usize].is_empty() {
            self.reads[who.warp as usize] = vec![0; total];
        }
        let mut fine = 0;
        for at in start..start + len {
            let flags = self.flags[at];
            if flags != WRITTEN {
                if flags & HELD != 0 {
                    if trouble.held.is_none() && self.is_held_from(at, who, false) {
                        trouble.held.get_or_insert(at);
                    }
                } else {
                    trouble.unwritten.get_or_insert(at);
                }
            } else if self.owners.get(at).is_some_and(|o| *o != self.owner) {
                trouble.foreign.get_or_insert(at);
            }
            let id = self.write[at] >> LANE_BITS;
            if flags & HELD == 0 && id >= self.first && id != fine && self.writers[at] & me == 0 {
                if self.at_peace(id, who) {
                    fine = id;
                } else {
                    trouble.race.get_or_insert((self.write[at], at));
                }
            }
            if flags & HELD == 0
                && self.updaters[at] != 0
                && let Some(stamp) = self.unordered(&self.updates, self.updaters[at], at, who)
            {
                trouble.race.get_or_insert((stamp, at));
            }
            if flags & HELD == 0
                && let Some((lane, stamp)) = self.lane_before_read(at, who)
            {
                trouble.unordered_lane.get_or_insert((stamp, at, lane));
            }
            self.readers[at] |= me;
            // The read of an atomic update is no lane's own.
            let lanes = if who.atomic { 0 } else { who.lanes };
            self.note_read(at, stamp, who.warp, lanes);
        }
        trouble
    }

    /// One of the warps' last accesses to a byte that nothing orders before this one.
    fn unordered(&self, list: &[Vec<u32>], warps: u32, at: usize, who: Who<'_>) -> Option<u32> {
        let mut warps = warps & !(1 << who.warp);
        while warps != 0 {
            let warp = warps.trailing_zeros();
            warps &= warps - 1;
            let stamp = list[warp as usize][at];
            let id = stamp >> LANE_BITS;
            if id >= self.first && !self.at_peace(id, who) {
                return Some(stamp);
            }
        }
        None
    }

    /// Stores bytes, and says what is wrong with that.
    pub fn store(&mut self, who: Who<'_>, start: usize, new: &[u8]) -> Trouble {
        let trouble = self.note_write(who, start, new.len(), Some(new));
        self.bytes[start..start + new.len()].copy_from_slice(new);
        self.flags[start..start + new.len()]
            .iter_mut()
            .for_each(|f| *f |= WRITTEN);
        if let Some(proxies) = &mut self.proxies {
            proxies.wrote((who.warp, who.lanes), start, new.len());
        }
        trouble
    }

    /// Notes a write whose data comes later, and says what is wrong with it.
    pub fn announce_write(&mut self, who: Who<'_>, start: usize, len: usize) -> Trouble {
        self.note_write(who, start, len, None)
    }

    /// Stores part of a byte: the bits of an element narrower than that. Another thread's
    /// write of the other bits is a race where either is not atomic, for memory is written by whole bytes.
    /// The place is a first byte, a width in bits and the number of elements after that byte.
    pub fn store_packed(
        &mut self,
        who: Who<'_>,
        (base, bits, index): (usize, u32, usize),
        value: u64,
    ) -> Trouble {
        let first = index * bits as usize / 8;
        let len = (index * bits as usize + bits as usize).div_ceil(8) - first;
        let start = base + first;
        let mut whole = self.bytes[start..start + len].to_vec();
        let shift = index * bits as usize % 8;
        let mask = ((1u64 << bits) - 1) << shift;
        let value = value << shift & mask;
        for (i, byte) in whole.iter_mut().enumerate() {
            let part = (mask >> (8 * i)) as u8;
            *byte = *byte & !part | (value >> (8 * i)) as u8;
        }
        self.store(who, start, &whole)
    }

    fn note_write(
        &mut self,
        who: Who<'_>,
        start: usize,
        len: usize,
        new: Option<&[u8]>,
    ) -> Trouble {
        let mut trouble = Trouble::default();
        let (stamp, me) = (who.id << LANE_BITS | who.lane, 1u32 << who.warp);
        let total = self.bytes.len();
        if who.atomic && self.updates[who.warp as usize].is_empty() {
            self.updates[who.warp as usize] = vec![0; total];
        }
        if let Some(owners) = self.owners.get_mut(start..start + len) {
            owners.fill(self.owner);
        }
        let mut fine = 0;
        for at in start..start + len {
            // One byte of an access says enough; to look for who holds the others takes long.
            let held = (self.flags[at] & HELD != 0 || self.held_reads[at] > 0)
                && (trouble.held.is_some() || self.is_held_from(at, who, true));
            if held {
                trouble.held.get_or_insert(at);
            }
            let last = self.write[at];
            let id = last >> LANE_BITS;
            let equal = new.is_some_and(|new| new[at - start] == self.bytes[at]);
            // Whether an equal value was written without order to this write, or by it.
            let mut together = false;
            if id == who.id {
                // Another lane of this instruction was here.
                together = equal;
                if last != stamp && !equal {
                    trouble.conflict.get_or_insert((last, at));
                }
            } else if id >= self.first && id != fine {
                if self.at_peace(id, who) {
                    fine = id;
                } else {
                    together = equal && !held;
                    if !equal && !held {
                        trouble.race.get_or_insert((last, at));
                    }
                }
            }
            if !together
                && !held
                && let Some((lane, stamp)) = self.lane_before_write(at, who)
            {
                together = equal;
                if !equal {
                    trouble.unordered_lane.get_or_insert((stamp, at, lane));
                }
            }
            let mut readers = self.readers[at];
            if together {
                readers &= !self.writers[at];
            }
            if !held {
                let read = self.unordered(&self.reads, readers, at, who);
                let update = self.unordered(&self.updates, self.updaters[at], at, who);
                if let Some(stamp) = read.or(update) {
                    trouble.race.get_or_insert((stamp, at));
                }
                if readers & me != 0
                    && let Some((lane, stamp)) = self.lane_that_read(at, who)
                {
                    trouble.unordered_lane.get_or_insert((stamp, at, lane));
                }
            }
            if who.atomic {
                self.updaters[at] |= me;
                self.updates[who.warp as usize][at] = stamp;
                continue;
            }
            self.updaters[at] = 0;
            self.note_write_by(at, stamp, (who.warp, who.lanes), together);
            if together {
                self.writers[at] |= me;
            } else {
                self.writers[at] = me;
                self.readers[at] = 0;
            }
        }
        trouble
    }

    /// Marks the bytes of an asynchronous operation as held until [`Shared::release`].
    pub fn hold(&mut self, token: u64, id: u32, writes: bool, ranges: Vec<Range>) {
        for range in &ranges {
            for at in range.start..range.start + range.len {
                if writes {
                    self.flags[at] |= HELD;
                    self.held_writes[at] = self.held_writes[at].saturating_add(1);
                } else {
                    self.held_reads[at] = self.held_reads[at].saturating_add(1);
                }
            }
        }
        let past = self.past(id << LANE_BITS);
        let Some(past) = past else { return };
        self.held.push(Held {
            token,
            writes,
            instance: past.instance,
            iteration: past.iteration,
            ranges,
        });
    }

    /// The operation is complete: from here on it is an access of the warp that waited for it,
    /// at the clock that the warp has now; of who a barrier's bulk loads are, at their clock, where
    /// it is one of these.
    pub fn release(&mut self, token: u64, by: Option<u32>, clock: u32) {
        let Some(at) = self.held.iter().position(|h| h.token == token) else {
            return;
        };
        let held = self.held.remove(at);
        let Instance { stmt, warp, .. } = held.instance;
        let id = self.instance((stmt, warp, clock), false, held.writes, |out| {
            out.extend(&held.iteration);
        });
        if let Some(by) = by {
            let at = (id - self.first) as usize;
            self.instances[at].by = by;
        }
        let total = self.bytes.len();
        if !held.writes && self.reads[warp as usize].is_empty() {
            self.reads[warp as usize] = vec![0; total];
        }
        for range in &held.ranges {
            if let Some(proxies) = self.proxies.as_mut().filter(|_| held.writes) {
                match by {
                    Some(_) => proxies.shown(range.start, range.len),
                    None => proxies.wrote((warp, 1 << range.lane), range.start, range.len),
                }
            }
            let stamp = id << LANE_BITS | range.lane;
            for at in range.start..range.start + range.len {
                if held.writes {
                    self.held_writes[at] = self.held_writes[at].saturating_sub(1);
                    let still = self.held_writes[at] > 0;
                    self.flags[at] = if still { WRITTEN | HELD } else { WRITTEN };
                    let together = self.write[at] >> LANE_BITS == id;
                    self.note_write_by(at, stamp, (warp, 1 << range.lane), together);
                    // A bulk load is no warp's own write.
                    self.writers[at] = if by.is_some() { 0 } else { 1 << warp };
                    self.readers[at] = 0;
                } else {
                    self.held_reads[at] = self.held_reads[at].saturating_sub(1);
                    self.readers[at] |= 1 << warp;
                    self.note_read(at, stamp, warp, 1 << range.lane);
                }
            }
        }
    }

    /// The access of a stamp, where it is not long past.
    pub fn past(&self, stamp: u32) -> Option<Past> {
        let at = (stamp >> LANE_BITS).checked_sub(self.first)? as usize;
        let instance = *self.instances.get(at)?;
        let end = match self.instances.get(at + 1) {
            Some(next) => next.iteration as usize,
            None => self.iterations.len(),
        };
        Some(Past {
            instance,
            lane: lane_of(stamp),
            iteration: self.iterations[instance.iteration as usize..end].to_vec(),
        })
    }

    /// The asynchronous operation that holds a byte.
    pub fn holder(&self, at: usize) -> Option<Past> {
        self.held.iter().find_map(|held| {
            let range = |r: &&Range| (r.start..r.start + r.len).contains(&at);
            let range = held.ranges.iter().find(range)?;
            Some(Past {
                instance: held.instance,
                lane: range.lane,
                iteration: held.iteration.clone(),
            })
        })
    }

    /// The first instance that the warp's lanes are not ordered after.
    fn lanes_since(&self, warp: u32) -> Option<u32> {
        let lanes = self.lanes.as_ref()?;
        Some(lanes.since(warp).max(self.first))
    }

    /// Whether a stamp is another instruction of the warp, since its lanes synchronised.
    fn is_of_warp(&self, stamp: u32, since: u32, who: Who<'_>) -> bool {
        let id = stamp >> LANE_BITS;
        id >= since && id != who.id && self.instance_of(id).by == who.warp
    }

    /// A lane that reads what another one wrote, with nothing to order them, and that write.
    fn lane_before_read(&self, at: usize, who: Who<'_>) -> Option<(u32, u32)> {
        let since = self.lanes_since(who.warp)?;
        let other = self.lanes.as_ref()?.read_from_other(at, who.lanes);
        self.lane_pair(other, self.write[at], since, who)
            .or_else(|| self.lane_that_updated(at, since, who))
    }

    /// A lane that writes what another one wrote, with nothing to order them, and that write.
    fn lane_before_write(&self, at: usize, who: Who<'_>) -> Option<(u32, u32)> {
        let since = self.lanes_since(who.warp)?;
        let other = self.lanes.as_ref()?.other_writer(at, who.lanes);
        self.lane_pair(other, self.write[at], since, who)
            .or_else(|| self.lane_that_updated(at, since, who))
    }

    /// The lane and the other one's stamp, where that is of another instruction of the warp.
    fn lane_pair(
        &self,
        pair: Option<(u32, u32)>,
        stamp: u32,
        since: u32,
        who: Who<'_>,
    ) -> Option<(u32, u32)> {
        let (lane, other) = pair?;
        let found = self.is_of_warp(stamp, since, who);
        found.then(|| (lane, with_lane(stamp, other)))
    }

    /// A lane that does no atomic update, and the last one, by another lane.
    fn lane_that_updated(&self, at: usize, since: u32, who: Who<'_>) -> Option<(u32, u32)> {
        if who.atomic || self.updaters[at] & 1 << who.warp == 0 {
            return None;
        }
        let update = self.updates[who.warp as usize][at];
        let others = who.lanes & !(1 << lane_of(update));
        let found = others != 0 && self.is_of_warp(update, since, who);
        found.then(|| (others.trailing_zeros(), update))
    }

    /// A lane that writes what another one read, with nothing to order them, and that read.
    fn lane_that_read(&self, at: usize, who: Who<'_>) -> Option<(u32, u32)> {
        let since = self.lanes_since(who.warp)?;
        let (lane, other) = self.lanes.as_ref()?.other_reader(who.warp, at, who.lanes)?;
        let read = self.reads[who.warp as usize][at];
        (read >> LANE_BITS >= since).then(|| (lane, with_lane(read, other)))
    }

    fn note_write_by(&mut self, at: usize, stamp: u32, (warp, lanes): (u32, u64), together: bool) {
        let before = self.write[at] >> LANE_BITS;
        let again = together && before >= self.first && self.instance_of(before).warp == warp;
        self.write[at] = stamp;
        if let Some(shadow) = &mut self.lanes {
            shadow.write(at, lanes, again);
        }
    }

    fn note_read(&mut self, at: usize, stamp: u32, warp: u32, lanes: u64) {
        let before = std::mem::replace(&mut self.reads[warp as usize][at], stamp);
        if let Some(shadow) = &mut self.lanes {
            let since = shadow.since(warp).max(self.first);
            let again = before >> LANE_BITS >= since;
            shadow.read(warp, at, lanes, again);
        }
    }

    /// Whether an operation holds the byte that this access must not come before: one that is not
    /// in order with it, and writes, or reads what is written now.
    fn is_held_from(&self, at: usize, who: Who<'_>, writes: bool) -> bool {
        let in_order = self.instance_of(who.id).in_order;
        self.held.iter().any(|held| {
            let own = in_order && held.instance.in_order && held.instance.warp == who.warp;
            let covers = |r: &Range| (r.start..r.start + r.len).contains(&at);
            !own && (writes || held.writes) && held.ranges.iter().any(covers)
        })
    }

    fn instance_of(&self, id: u32) -> &Instance {
        &self.instances[(id - self.first) as usize]
    }

    /// Whether the access `id`, not older than the last block barrier, happened before what
    /// `who` does now, or both are atomic.
    fn at_peace(&self, id: u32, who: Who<'_>) -> bool {
        let past = self.instance_of(id);
        let ordered = past.by == who.warp || who.clock[past.by as usize] >= past.clock;
        ordered || (who.atomic && past.atomic)
    }
}

#[cfg(test)]
mod tests;
