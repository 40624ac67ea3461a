//! Barriers of a block, with the order that they make.

use rustc_hash::FxHashMap;

use super::report::FindingPlace;
use super::warp::{Warp, join};
use crate::barrier::Mbarrier;

/// All barriers of a block, apart from the one of the whole block, which is a state of warps.
#[derive(Debug)]
pub(super) struct Barriers {
    pub phases: Vec<Phase>,
    /// By block of the cluster, and the barrier's number.
    pub named: FxHashMap<(u32, u32), Named>,
    /// A phase completed: warps that wait for one should look again.
    pub woken: bool,
    /// Bulk loads whose phase completed: the token, and whose write it is at which clock.
    pub released: Vec<(u64, u32, u32)>,
    /// Statements, and warps, that wait for a phase where the next one may complete before they
    /// have looked: they would wait for the one after that.
    pub overtaken: Vec<(u32, u32)>,
    warps: usize,
    halves: Halves,
    /// What was published at addresses that atomics with release order wrote.
    published: FxHashMap<Address, Vec<u32>>,
}

/// A byte of shared memory, or a scalar of a global storage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Address {
    Shared(usize),
    Global(u32, usize),
}

/// An arrival barrier and what its arrivals know.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    pub state: Mbarrier,
    /// The clocks of those who arrived in the current phase.
    gathering: Vec<u32>,
    /// The clocks of those who completed the phases before it.
    done: Vec<u32>,
    /// Phases that have completed.
    pub completed: u64,
    /// Bulk loads that the current phase has heard of.
    landed: Vec<u64>,
    /// The clock at which these are written.
    landing: u32,
    /// Waits that the phase before it let through: the warp, its clock and the statement.
    waited: Vec<(u32, u32, u32)>,
    /// The last statement that spoke of bytes.
    pub told: Option<(u32, FindingPlace)>,
}

/// The barrier of the cluster, where warps come and wait at different places.
#[derive(Clone, Debug, Default)]
struct Halves {
    /// How often it has opened.
    opened: u64,
    /// Warps that have come.
    arrived: usize,
    /// The clocks of those, and of those who opened it last.
    gathering: Vec<u32>,
    done: Vec<u32>,
}

/// A barrier of some threads.
#[derive(Clone, Debug, Default)]
pub(super) struct Named {
    pub arrived: u32,
    pub needed: u32,
    pub warps: Vec<u32>,
}

impl Barriers {
    pub fn new(counts: &[u32], warps: usize) -> Barriers {
        let phase = |&count: &u32| Phase {
            state: Mbarrier::new(count),
            gathering: vec![0; warps + counts.len()],
            done: vec![0; warps + counts.len()],
            completed: 0,
            landed: Vec::new(),
            landing: 1,
            waited: Vec::new(),
            told: None,
        };
        Barriers {
            phases: counts.iter().map(phase).collect(),
            named: FxHashMap::default(),
            woken: false,
            released: Vec::new(),
            overtaken: Vec::new(),
            warps,
            halves: Halves::default(),
            published: FxHashMap::default(),
        }
    }

    /// `threads` of a warp arrive, one after another. `false` when the phase needed fewer.
    pub fn arrive(&mut self, number: usize, warp: &mut Warp, threads: u32) -> bool {
        let mut fits = true;
        for _ in 0..threads {
            let phase = &mut self.phases[number];
            join(&mut phase.gathering, &warp.clock);
            let parity = phase.state.parity;
            fits &= phase.state.arrive();
            self.settle(number, parity);
        }
        // What the warp does next is not part of what the others wait for.
        warp.tick();
        fits
    }

    /// Announces bytes, or with a negative number takes them back.
    pub fn expect(&mut self, number: usize, bytes: i64) {
        let parity = self.phases[number].state.parity;
        self.phases[number].state.expect(bytes);
        self.settle(number, parity);
    }

    /// A bulk load has landed, which a thread issued that knew this.
    pub fn land(&mut self, number: usize, token: u64, bytes: i64, clock: &[u32]) {
        let agent = self.agent(number);
        let phase = &mut self.phases[number];
        join(&mut phase.gathering, clock);
        phase.gathering[agent] = phase.landing;
        phase.landed.push(token);
        self.expect(number, -bytes);
    }

    /// Who a barrier's bulk loads are in clocks.
    fn agent(&self, number: usize) -> usize {
        self.warps + number
    }

    /// The same, and the clock of the last of them.
    pub fn last_landing(&self, number: usize) -> (usize, u32) {
        let phase = &self.phases[number];
        let open = u32::from(!phase.landed.is_empty());
        (self.agent(number), phase.landing - 1 + open)
    }

    /// Whether a clock has heard of all bulk loads whose phases completed.
    pub fn all_heard(&self, clock: &[u32]) -> bool {
        let phases = self.phases.iter().enumerate();
        let mut landed = phases.map(|(number, p)| (self.agent(number), p.landing - 1));
        landed.all(|(agent, last)| clock[agent] >= last)
    }

    fn settle(&mut self, number: usize, parity: u8) {
        let agent = self.agent(number) as u32;
        let phase = &mut self.phases[number];
        if phase.state.parity != parity {
            let waited = phase.waited.drain(..);
            let unseen = waited.filter(|(warp, clock, _)| phase.gathering[*warp as usize] < *clock);
            self.overtaken
                .extend(unseen.map(|(warp, _, stmt)| (stmt, warp)));
            join(&mut phase.done, &phase.gathering);
            phase.gathering.fill(0);
            phase.completed += 1;
            if !phase.landed.is_empty() {
                let clock = phase.landing;
                let landed = phase.landed.drain(..);
                self.released
                    .extend(landed.map(|token| (token, agent, clock)));
                phase.landing += 1;
            }
            self.woken = true;
        }
    }

    /// Whether the phase of this parity has completed; then the warp knows what its arrivals
    /// knew.
    pub fn passed(&self, number: usize, parity: i64) -> bool {
        self.phases[number].state.passed(parity)
    }

    /// A wait at this statement goes on.
    pub fn pass(&mut self, number: usize, warp: &mut Warp, stmt: u32) {
        let phase = &mut self.phases[number];
        warp.hear(&phase.done);
        phase.waited.retain(|(other, ..)| *other != warp.index);
        phase.waited.push((warp.index, warp.own_clock(), stmt));
    }

    /// A warp comes to the barrier of the cluster and goes on. `false` where it has not waited since it
    /// came there last.
    pub fn cluster_arrive(&mut self, warp: &mut Warp) -> bool {
        if warp.half.is_some() {
            return false;
        }
        let halves = &mut self.halves;
        warp.half = Some(halves.opened);
        halves.gathering.resize(warp.clock.len(), 0);
        join(&mut halves.gathering, &warp.clock);
        warp.tick();
        halves.arrived += 1;
        if halves.arrived == self.warps {
            halves.arrived = 0;
            halves.opened += 1;
            halves.done = std::mem::take(&mut halves.gathering);
            self.woken = true;
        }
        true
    }

    /// A warp waits for the others to have come there: whether they have, or it has not itself.
    pub fn cluster_wait(&mut self, warp: &mut Warp) -> Option<bool> {
        if self.halves.opened <= warp.half? {
            return Some(false);
        }
        warp.half = None;
        warp.hear(&self.halves.done);
        Some(true)
    }

    /// A write with release order.
    pub fn publish(&mut self, at: Address, warp: &mut Warp) {
        let clock = self
            .published
            .entry(at)
            .or_insert_with(|| vec![0; warp.clock.len()]);
        join(clock, &warp.clock);
        warp.tick();
    }

    /// A read with acquire order.
    pub fn acquire(&self, at: Address, warp: &mut Warp) {
        if let Some(clock) = self.published.get(&at) {
            warp.hear(clock);
        }
    }
}
