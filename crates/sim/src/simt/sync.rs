//! Barriers of a block, with the order that they make.

use rustc_hash::FxHashMap;

use super::warp::{Warp, join};
use crate::barrier::Mbarrier;

/// All barriers of a block, apart from the one of the whole block, which is a state of warps.
#[derive(Debug)]
pub(super) struct Barriers {
    pub phases: Vec<Phase>,
    pub named: FxHashMap<u32, Named>,
    /// A phase completed: warps that wait for one should look again.
    pub woken: bool,
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
            gathering: vec![0; warps],
            done: vec![0; warps],
        };
        Barriers {
            phases: counts.iter().map(phase).collect(),
            named: FxHashMap::default(),
            woken: false,
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

    fn settle(&mut self, number: usize, parity: u8) {
        let phase = &mut self.phases[number];
        if phase.state.parity != parity {
            join(&mut phase.done, &phase.gathering);
            phase.gathering.fill(0);
            self.woken = true;
        }
    }

    /// Whether the phase of this parity has completed; then the warp knows what its arrivals
    /// knew.
    pub fn passed(&self, number: usize, parity: i64) -> bool {
        self.phases[number].state.passed(parity)
    }

    pub fn pass(&self, number: usize, warp: &mut Warp) {
        warp.hear(&self.phases[number].done);
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
