//! What a run remembers: groups of waves with their operations under way, accesses that are
//! open, arrival barriers.

use std::hash::{Hash, Hasher};
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHasher};
use tilewright_ir::{Buffer, Counter};

use super::clash::Side;
use super::conditions::{
    Conditions, Literal, Under, contradict, fewest, follows, possible, remember,
};
use super::knows::{Barrier, Knows};
use super::proxy::Fenced;
use super::scan::Key;
use super::touch::{RegisterTouch, Touch, Touches};

/// The number of a group that a commit under a condition closes.
const UNCOUNTED: u32 = u32::MAX;

/// A group that lags so many phases behind does not wait for them.
const FAR_BEHIND: u32 = 4;

/// How many conditions are tried both ways to count what was issued.
const TRIES: u32 = 5;

pub struct Group {
    pub at: usize,
    pub state: State,
    pub clock: u32,
    pub knows: Knows,
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
    /// The condition under which it is here.
    pub under: Under,
    /// Iterations of all loops that it has begun.
    pub iterations: u32,
    /// The registers of its products.
    pub fenced: Fenced,
    /// It has come to the barrier of the cluster, and not waited there: how often that had opened.
    pub half: Option<u32>,
}

/// The barrier of the cluster, where groups come and wait at different places.
#[derive(Default)]
pub struct Halves {
    /// How often it has opened.
    pub number: u32,
    /// Groups that have come.
    pub arrived: usize,
    /// What those know, and what those knew who opened it last.
    pub gathering: Knows,
    pub done: Knows,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    Ready,
    Barrier,
    Named(u32),
    Await,
    Cluster,
    /// Waits for the others to come to the barrier of the cluster, where it has been itself.
    Half,
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
    pub touches: Rc<Touches>,
    /// The condition under which it was issued.
    pub under: Under,
    /// The conditions under which it has been waited for.
    pub partly: Vec<Under>,
}

/// A wait under a condition that an access does not always come with.
pub struct Partly {
    pub under: Under,
    pub clock: u32,
    pub time: u64,
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
    /// Of a bulk load, the phase that hears of it: it is complete for who knows of that.
    pub bulk: Option<(Barrier, u32)>,
    /// When it was complete, in events of the run.
    pub time: u64,
    pub at_barrier: Option<u32>,
    /// The condition under which it happens.
    pub under: Under,
    /// Where it is not complete in every case, those where it is.
    pub partly: Vec<Partly>,
}

impl Open {
    /// Whether a group knows that it was complete at a clock of its own group, or with its phase.
    pub fn is_known(&self, knows: &Knows, done: Option<u32>) -> bool {
        match self.bulk {
            Some((barrier, phase)) => knows.phases_of(barrier) > phase,
            None => done.is_some_and(|clock| clock <= knows.of(self.group)),
        }
    }

    /// The clock and time at which it was complete, in the cases in which something is done
    /// under a condition.
    pub fn done_under(&self, under: &[Literal]) -> Option<(u32, u64)> {
        if let Some(clock) = self.done {
            return Some((clock, self.time));
        }
        if self.partly.is_empty() || may_be_under_way(&self.under, under, &self.waits()) {
            return None;
        }
        // Which of them it was is not known.
        let clock = self.partly.iter().map(|p| p.clock).max()?;
        let time = self.partly.iter().map(|p| p.time).max()?;
        Some((clock, time))
    }

    /// Under a condition it is complete from now on.
    pub fn complete_partly(&mut self, under: &Under, clock: u32, time: u64) {
        let under = under.clone();
        remember(&mut self.partly, Partly { under, clock, time });
    }

    /// Its wave has waited for it under a condition, which may be all cases by now.
    pub fn settle(&mut self, under: &Under, clock: u32, time: u64) {
        if contradict(&self.under, under) {
            return;
        }
        if !follows(under, &self.under, &[]) {
            self.complete_partly(under, clock, time);
            if may_be_under_way(&self.under, &[], &self.waits()) {
                return;
            }
        }
        (self.done, self.time) = (Some(clock), time);
        self.partly.clear();
    }

    fn waits(&self) -> Vec<&[Literal]> {
        self.partly.iter().map(|p| &p.under[..]).collect()
    }
}

impl Pending {
    /// Whether it is what a bulk store reads.
    pub fn reads_to_store(&self) -> bool {
        self.counter == Counter::TmaStore && self.touches.shared.iter().all(|touch| !touch.write)
    }

    /// Whether it may be under way where something is done under a condition.
    pub fn may_meet(&self, under: &[Literal]) -> bool {
        let waits: Vec<&[Literal]> = self.partly.iter().map(|u| &u[..]).collect();
        !contradict(&self.under, under) && may_be_under_way(&self.under, under, &waits)
    }
}

/// Whether an operation, under a condition and waited for under others, may be under way where
/// another condition holds as well.
fn may_be_under_way(own: &[Literal], under: &[Literal], waits: &[&[Literal]]) -> bool {
    let both: Vec<Literal> = own.iter().chain(under).copied().collect();
    possible(&both, waits)
}

/// The present phase of an arrival barrier.
pub struct Phase {
    /// Its number: so many have completed.
    pub number: u32,
    pub needed: u32,
    pub arrived: u32,
    /// Bytes that were announced, and those of bulk loads that it will hear of.
    pub announced: i64,
    pub issued: i64,
    /// Who spoke of bytes, at which clock and where: nobody has arrived since who knows of it.
    pub unheld: Vec<(u32, Side)>,
    /// What is known by those who arrived.
    pub gathering: Knows,
    /// What is known with each phase that has completed, and whether a load had to land for it.
    pub done: Vec<(Knows, bool)>,
    /// Groups that have waited for the phase before: their clocks and where that was.
    pub waited: Vec<(u32, Side)>,
}

impl Phase {
    /// How many phases a group knows to be complete: it was told so, or knows of all arrivals. Of
    /// its own it does where it is a single wave.
    pub fn known(&self, barrier: Barrier, group: (usize, bool), knows: &Knows) -> u32 {
        let told = knows.phases_of(barrier);
        let own = group.1.then_some(group.0);
        let later = self.done.iter().skip(told as usize);
        let known = later.take_while(|(done, loads)| !loads && knows.covers(done, own));
        told + known.count() as u32
    }
}

impl Group {
    pub fn new() -> Group {
        Group {
            at: 0,
            state: State::Ready,
            clock: 1,
            knows: Knows::default(),
            queue: Vec::new(),
            closed: [0; Counter::ALL.len()],
            warp_sync: 0,
            loops: Vec::new(),
            trail: 0,
            under: Under::default(),
            iterations: 0,
            fenced: Fenced::default(),
            half: None,
        }
    }

    /// Closes a group. Under a condition it closes what was issued under the same, and counts for
    /// nothing else.
    pub fn commit(&mut self, counter: Counter) {
        let closed = &mut self.closed[counter as usize];
        let number = match self.under.is_empty() {
            true => *closed,
            false => UNCOUNTED,
        };
        *closed += u32::from(self.under.is_empty());
        for p in &mut self.queue {
            let open = p.counter == counter && p.group.is_none();
            if open && follows(&self.under, &p.under, &[]) {
                p.group = Some(number);
            }
        }
    }

    /// What a wait under a condition completes: operations, and those that are complete in some
    /// cases only.
    pub fn waited(
        &mut self,
        counter: Counter,
        at_most: u32,
        under: &Under,
        which: impl Fn(&Pending) -> bool,
    ) -> (Vec<u32>, Vec<u32>) {
        let queue = &self.queue;
        let mut waited: Vec<usize> = Vec::new();
        // What came later, where it did under no condition.
        let mut later = (!counter.counts_groups()).then_some(0);
        for (at, p) in queue.iter().enumerate().rev() {
            if p.counter != counter {
                continue;
            }
            if which(p)
                && (!counter.counts_groups() || p.group.is_some())
                && !contradict(&p.under, under)
                && later.unwrap_or_else(|| self.younger(at, under)) >= at_most
            {
                waited.push(at);
            }
            later = later.filter(|_| !p.certain || p.under.is_empty());
            later = later.map(|count| count + if p.certain { p.count } else { 0 });
        }
        waited.reverse();
        let (mut done, mut partly) = (Vec::new(), Vec::new());
        for at in waited {
            let pending = &mut self.queue[at];
            if !follows(under, &pending.under, &[]) {
                remember(&mut pending.partly, under.clone());
                if pending.may_meet(&[]) {
                    partly.push(pending.op);
                    continue;
                }
            }
            done.push(pending.op);
        }
        (done, partly)
    }

    /// How many operations of a counter are under way at most.
    pub fn under_way(&self, counter: Counter) -> u32 {
        let own = self.queue.iter().filter(|p| p.counter == counter);
        own.map(|p| p.count).sum()
    }

    /// How many operations (or closed groups) of the same counter certainly came after the one
    /// at this place of the queue, where it and a condition hold: a wait under that condition
    /// that leaves so many completes it.
    pub fn younger(&self, at: usize, under: &[Literal]) -> u32 {
        let p = &self.queue[at];
        if p.counter.counts_groups() {
            let closed = self.closed[p.counter as usize];
            let counted = p.group.filter(|own| *own != UNCOUNTED);
            return counted.map_or(0, |own| closed - own - 1);
        }
        let later = self.queue[at + 1..].iter();
        let later = later.filter(|q| q.counter == p.counter && q.certain);
        let later: Vec<(&[Literal], u32)> = later.map(|q| (&q.under[..], q.count)).collect();
        let known: Vec<Literal> = p.under.iter().chain(under).copied().collect();
        fewest(&later, &known, TRIES)
    }
}

/// What decides all that comes, apart from the indices of loops: operations under way, accesses
/// that are open and who knows of them. The order of the lists does not matter.
pub fn fingerprint(
    groups: &[Group],
    open: &FxHashMap<(usize, Buffer), Vec<Open>>,
    phases: &FxHashMap<Barrier, Phase>,
    (conditions, iterations): (&Conditions, u32),
) -> u64 {
    let mut sum = 0u64;
    let relative = |under: &Under| conditions.relative(under, iterations);
    for group in groups {
        sum = sum.wrapping_add(group.fenced.fingerprint());
        for (at, p) in group.queue.iter().enumerate() {
            let mut h = FxHasher::default();
            let distance = group.queue.len() - at;
            let closed = group.closed[p.counter as usize];
            let groups = p.group.map(|own| closed.wrapping_sub(own));
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
            relative(&p.under).hash(&mut h);
            // Which others come with it.
            let first = group.queue.iter().position(|q| q.under == p.under);
            first.map(|first| group.queue.len() - first).hash(&mut h);
            p.partly.iter().for_each(|u| relative(u).hash(&mut h));
            sum = sum.wrapping_add(h.finish());
        }
    }
    let accesses = open
        .iter()
        .flat_map(|(at, list)| list.iter().map(|o| (at.0, o)));
    for (rank, access) in accesses {
        let mut h = FxHasher::default();
        rank.hash(&mut h);
        let touch = &access.touch;
        let set = touch.steady_set();
        (touch.stmt, set, touch.slot, touch.write, access.group).hash(&mut h);
        access.done.is_some().hash(&mut h);
        if access.done.is_some() || access.bulk.is_some() {
            for group in groups {
                access.is_known(&group.knows, access.done).hash(&mut h);
            }
            (groups[access.group].warp_sync < access.time).hash(&mut h);
        }
        relative(&access.under).hash(&mut h);
        for partly in &access.partly {
            relative(&partly.under).hash(&mut h);
            for group in groups {
                (group.knows.of(access.group) >= partly.clock).hash(&mut h);
            }
        }
        sum = sum.wrapping_add(h.finish());
    }
    for (barrier, phase) in phases {
        let mut h = FxHasher::default();
        let bytes = phase.announced - phase.issued;
        (barrier, phase.arrived, phase.number % 2, bytes).hash(&mut h);
        for group in groups.iter().filter(|g| g.state != State::Done) {
            let behind = phase.number - group.knows.phases_of(*barrier);
            behind.min(FAR_BEHIND).hash(&mut h);
        }
        sum = sum.wrapping_add(h.finish());
    }
    sum
}
