//! What a run remembers: groups of waves with their operations under way, accesses that are
//! open, arrival barriers.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use tilewright_ir::{Buffer, Counter};

use super::scan::{Key, MAX_GROUPS, counts_groups};
use super::touch::{RegisterTouch, Touch};

pub struct Group {
    pub at: usize,
    pub state: State,
    pub clock: u32,
    pub knows: [u32; MAX_GROUPS],
    /// Operations under way, oldest first.
    pub queue: Vec<Pending>,
    /// Groups of operations closed so far, by counter.
    pub closed: [u32; Counter::ALL.len()],
    /// When the warps last synchronised, each in itself.
    pub warp_sync: u64,
    /// By loop that the group is in, the states at the start of its iterations.
    pub loops: Vec<Option<Vec<u64>>>,
    /// What the group has done since its last iteration began.
    pub trail: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    Ready,
    Barrier,
    Named(u32),
    Await,
    Done,
}

pub struct Pending {
    pub op: u32,
    pub stmt: Key,
    pub moment: u32,
    pub counter: Counter,
    pub count: u32,
    pub certain: bool,
    /// The closed group it belongs to.
    pub group: Option<u32>,
    /// What a wait had to leave in flight at the group's last barriers since it was issued,
    /// the latest first.
    pub at_barrier: [Option<u32>; 2],
    pub registers: Vec<RegisterTouch>,
}

/// An access that some group may not know of yet.
pub struct Open {
    pub touch: Touch,
    pub group: usize,
    pub moment: u32,
    /// Its place in the group's list of events.
    pub at: usize,
    /// The clock at which it was issued.
    pub clock: u32,
    pub op: Option<(u32, Counter)>,
    /// The clock at which it was complete.
    pub done: Option<u32>,
    /// When it was complete, in events of the run.
    pub time: u64,
    pub at_barrier: Option<u32>,
}

/// An arrival barrier.
pub struct Phase {
    pub needed: u32,
    pub arrived: u32,
    pub parity: i64,
    pub gathering: [u32; MAX_GROUPS],
    pub done: [u32; MAX_GROUPS],
}

impl Group {
    pub fn new() -> Group {
        Group {
            at: 0,
            state: State::Ready,
            clock: 1,
            knows: [0; MAX_GROUPS],
            queue: Vec::new(),
            closed: [0; Counter::ALL.len()],
            warp_sync: 0,
            loops: Vec::new(),
            trail: 0,
        }
    }

    /// How many operations (or closed groups) of the same counter certainly came after the one
    /// at this place of the queue: a wait that leaves so many completes it.
    pub fn younger(&self, at: usize) -> u32 {
        let p = &self.queue[at];
        if counts_groups(p.counter) {
            let closed = self.closed[p.counter as usize];
            return p.group.map_or(0, |own| closed - own - 1);
        }
        let later = self.queue[at + 1..].iter();
        later
            .filter(|q| q.counter == p.counter && q.certain)
            .map(|q| q.count)
            .sum()
    }
}

/// What decides all that comes, apart from the indices of loops: operations under way, accesses
/// that are open and who knows of them. The order of the lists does not matter.
pub fn fingerprint(
    groups: &[Group],
    open: &FxHashMap<Buffer, Vec<Open>>,
    phases: &FxHashMap<(Buffer, i64), Phase>,
) -> u64 {
    let mut sum = 0u64;
    for group in groups {
        for (at, p) in group.queue.iter().enumerate() {
            let mut h = FxHasher::default();
            let distance = group.queue.len() - at;
            let closed = group.closed[p.counter as usize];
            let groups = p.group.map(|own| closed - own);
            (
                p.stmt,
                p.count,
                p.certain,
                distance,
                groups,
                p.counter as u8,
            )
                .hash(&mut h);
            for r in &p.registers {
                (r.root, r.slot, r.range).hash(&mut h);
            }
            sum = sum.wrapping_add(h.finish());
        }
    }
    for access in open.values().flatten() {
        let mut h = FxHasher::default();
        let touch = &access.touch;
        (touch.stmt, touch.set, touch.slot, touch.write, access.group).hash(&mut h);
        access.done.is_some().hash(&mut h);
        if let Some(done) = access.done {
            for group in groups {
                (group.knows[access.group] >= done).hash(&mut h);
            }
            (groups[access.group].warp_sync < access.time).hash(&mut h);
        }
        sum = sum.wrapping_add(h.finish());
    }
    for (barrier, phase) in phases {
        let mut h = FxHasher::default();
        (barrier, phase.arrived).hash(&mut h);
        sum = sum.wrapping_add(h.finish());
    }
    sum
}
