//! All groups of waves together: who waits for whom, and what nothing orders.
//!
//! Every group has a clock that goes on at each of its barriers. An access of group `p` that is
//! complete at `p`'s clock `c` comes before what group `x` does now when `x` *knows* `p` up to
//! `c`: by a barrier that both took part in, or by a chain of arrivals and waits. The waves of
//! one group know each other no better than that. An asynchronous access is complete when its
//! own wave has waited for it; until then whatever touches its place, in any wave, is a hazard.
//! Only LDS operations of one wave are in order among each other. Where the machine counts them an
//! access without a counter is one of them, and *loose* for the other waves until its own has
//! waited for all of them: a bare barrier says nothing about it.

mod accesses;
mod barriers;
mod phases;
mod waits;

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use tilewright_ir::{Buffer, FenceKind, Machine};

use super::alias::Aliases;
use super::clash::{Clash, Memory, Remedy, Side};
use super::conditions::{Conditions, Under};
use super::event::{Blocks, EventKind, Trace};
use super::knows::Barrier;
use super::places::Places;
use super::proxy::Proxies;
use super::report::HazardKind;
use super::scan::{Key, Scan};
use super::state::{Group, Halves, Open, Phase, State, fingerprint};

/// What a run found.
#[derive(Default, Debug)]
pub struct Outcome {
    pub clashes: Vec<Clash>,
    /// Loops whose state did not repeat.
    pub unsteady: Vec<Key>,
    /// The events of groups that touch memory or leave iterations out, as they came.
    pub order: Vec<(usize, usize)>,
}

pub struct Run<'f, 'p> {
    scan: &'f Scan<'f>,
    places: &'p mut Places<'f>,
    machine: &'static Machine,
    conditions: &'p Conditions,
    traces: &'p [Trace],
    groups: Vec<Group>,
    /// By the block of the cluster whose memory it is, and buffer.
    open: FxHashMap<(usize, Buffer), Vec<Open>>,
    phases: FxHashMap<Barrier, Phase>,
    halves: Halves,
    named: FxHashMap<(usize, u32), Vec<usize>>,
    /// The last arrival of a group at a barrier of another block: its clock and where it was.
    reached: FxHashMap<(usize, usize), (u32, Side)>,
    next_op: u32,
    moment: u64,
    outcome: Outcome,
    known: FxHashSet<(HazardKind, Key, Key, Option<i64>)>,
    /// Units looked at by themselves, by address and group: the traces keep them alive.
    inside: FxHashSet<(usize, usize)>,
    /// By block of the cluster.
    aliases: Vec<Aliases>,
    proxies: Vec<Proxies>,
}

impl<'f, 'p> Run<'f, 'p> {
    pub fn of(
        scan: &'f Scan<'f>,
        places: &'p mut Places<'f>,
        machine: &'static Machine,
        conditions: &'p Conditions,
        traces: &'p [Trace],
    ) -> Outcome {
        let mut run = Run {
            scan,
            places,
            machine,
            conditions,
            traces,
            groups: traces.iter().map(|_| Group::new()).collect(),
            open: FxHashMap::default(),
            phases: FxHashMap::default(),
            halves: Halves::default(),
            named: FxHashMap::default(),
            reached: FxHashMap::default(),
            next_op: 0,
            moment: 0,
            outcome: Outcome::default(),
            known: FxHashSet::default(),
            inside: FxHashSet::default(),
            aliases: (0..scan.ranks)
                .map(|_| Aliases::of(scan.func, scan.kernel))
                .collect(),
            proxies: (0..scan.ranks)
                .map(|_| Proxies::new(scan.by_proxy.clone()))
                .collect(),
        };
        run.run();
        run.outcome
    }

    fn run(&mut self) {
        loop {
            let mut moved = false;
            for g in 0..self.groups.len() {
                while self.groups[g].state == State::Ready {
                    moved = true;
                    self.step(g);
                }
            }
            for rank in 0..self.scan.ranks {
                moved |= self.release_barrier(rank);
            }
            moved |= self.release_cluster();
            moved |= self.wake_halves();
            moved |= self.wake_waiting();
            if !moved {
                break;
            }
        }
        let stuck: Vec<usize> = (0..self.groups.len())
            .filter(|&g| self.groups[g].state != State::Done)
            .collect();
        if let Some(&g) = stuck.first() {
            // Who waits for a phase that has begun is nearest to what is missing.
            let lacks = stuck.iter().filter_map(|g| Some((*g, self.lacks(*g)?)));
            let lacks: Vec<(usize, Remedy)> = lacks.collect();
            let nearest = lacks.iter().find(|(_, lack)| lack.has_begun());
            let (g, remedy) = nearest
                .or(lacks.first())
                .copied()
                .unwrap_or((g, Remedy::Converge));
            let side = self.side(g);
            let other = self.side(*stuck.last().unwrap_or(&g));
            let (kind, nothing) = (HazardKind::Deadlock, Memory::default());
            self.clash(kind, side, other, nothing, remedy);
        }
        self.end_of_phases();
        if stuck.is_empty() {
            self.end_of_stores();
            self.end_of_blocks();
        }
    }

    /// The block of the cluster that a group is of.
    fn rank(&self, g: usize) -> usize {
        g / self.scan.groups
    }

    /// The group's number in its block.
    fn in_block(&self, g: usize) -> usize {
        g % self.scan.groups
    }

    /// A block ends: all that others do to its barriers was before.
    fn end_of_blocks(&mut self) {
        let mut early = Vec::new();
        for (&(rank, by), &(clock, side)) in &self.reached {
            let own = (0..self.groups.len()).filter(|g| self.rank(*g) == rank);
            let mut own = own.map(|g| &self.groups[g].knows);
            if !own.any(|knows| knows.of(by) >= clock) {
                early.push(side);
            }
        }
        early.sort_by_key(|side| (side.stmt, side.group));
        for side in early {
            let (kind, nothing) = (HazardKind::EndsBefore, Memory::default());
            self.clash(kind, side, side, nothing, Remedy::SyncCluster);
        }
    }

    /// The kernel ends: its bulk stores have read what they store.
    fn end_of_stores(&mut self) {
        let mut open = Vec::new();
        for (g, group) in self.groups.iter().enumerate() {
            for pending in group.queue.iter().filter(|p| p.reads_to_store()) {
                let side = Side {
                    stmt: pending.stmt,
                    group: g,
                    moment: pending.moment,
                };
                let root = pending.touches.shared.first().map(|touch| touch.root);
                open.push((side, root));
            }
        }
        for (side, root) in open {
            let memory = Memory {
                root,
                ..Memory::default()
            };
            let kind = HazardKind::EndsBefore;
            self.clash(kind, side, side, memory, Remedy::WaitRead);
        }
    }

    fn side(&self, g: usize) -> Side {
        let events = &self.traces[g].events;
        let event = events.get(self.groups[g].at).or(events.last());
        Side {
            stmt: event.map_or(0, |e| e.stmt),
            group: g,
            moment: event.map_or(0, |e| e.moment),
        }
    }

    fn step(&mut self, g: usize) {
        let traces = self.traces;
        let Some(event) = traces[g].events.get(self.groups[g].at) else {
            self.groups[g].state = State::Done;
            return;
        };
        self.moment += 1;
        let side = self.side(g);
        if event.kind.touches().is_some() || event.skips().is_some() {
            self.outcome.order.push((g, self.groups[g].at));
        }
        if let Some(touches) = event.kind.touches() {
            let mut h = FxHasher::default();
            (self.groups[g].trail, event.stmt).hash(&mut h);
            for touch in &touches.shared {
                (touch.steady_set(), touch.slot).hash(&mut h);
            }
            for touch in &touches.registers {
                (touch.range, touch.slot).hash(&mut h);
            }
            self.groups[g].trail = h.finish();
        }
        match &event.kind {
            EventKind::Under(under) => self.groups[g].under = under.clone(),
            EventKind::Touch(touches) => self.touch(g, self.rank(g), touches, side, None),
            EventKind::Issue {
                touches,
                counter,
                count,
                certain,
            } => {
                self.issue(g, touches, side, *counter, *count, *certain);
            }
            EventKind::Commit(counter) => {
                self.groups[g].commit(*counter);
            }
            EventKind::Wait(counter, at_most) => {
                let under = self.groups[g].under.clone();
                self.wait(g, *counter, *at_most, &under);
            }
            EventKind::WaitRead(at_most) => {
                let under = self.groups[g].under.clone();
                self.wait_read(g, *at_most, &under);
            }
            EventKind::Barrier { drains, .. } => {
                if *drains {
                    self.complete(g, |_| true);
                    self.settle(g, &Under::default());
                }
                self.note_barrier(g);
                self.groups[g].state = State::Barrier;
                return;
            }
            EventKind::Named { id, count } => {
                self.settle(g, &Under::default());
                self.note_barrier(g);
                self.groups[g].state = State::Named(*id);
                let barrier = (self.rank(g), *id);
                self.named.entry(barrier).or_default().push(g);
                self.try_named(barrier, *count);
                return;
            }
            EventKind::Cluster => {
                if self.groups[g].half.is_some() {
                    self.out_of_turn(side);
                }
                self.settle(g, &Under::default());
                self.note_barrier(g);
                self.groups[g].state = State::Cluster;
                return;
            }
            EventKind::ClusterArrive => self.cluster_arrive(g, side),
            EventKind::ClusterAwait => {
                self.groups[g].state = State::Half;
                return;
            }
            // A fence that may not be there shows nothing.
            EventKind::Fence(FenceKind::AsyncProxy) => {
                if self.groups[g].under.is_empty() {
                    let rank = self.rank(g);
                    self.proxies[rank].fence(g);
                }
            }
            EventKind::Fence(FenceKind::Wgmma) => {
                let group = &mut self.groups[g];
                group.fenced.fence(&group.under);
            }
            EventKind::Fence(_) | EventKind::Nothing | EventKind::Skip(..) => {}
            // Lanes of other warps learn nothing: what they touch is in no order with this.
            EventKind::SyncWarp => {
                self.groups[g].warp_sync = self.moment;
                if self.groups[g].under.is_empty() {
                    let rank = self.rank(g);
                    self.proxies[rank].hand_over(g);
                    if self.is_of_one_warp() {
                        self.meet_lanes(g);
                    }
                }
            }
            EventKind::Bulk {
                touches,
                barrier,
                bytes,
                twice,
                to,
            } => {
                if *twice {
                    let kind = HazardKind::WriteAfterWrite;
                    self.clash(kind, side, side, Memory::default(), Remedy::AwaitLoad);
                }
                for rank in self.reached_by(g, *to) {
                    self.bulk_load(g, touches, side, (rank, barrier.0, barrier.1), *bytes);
                }
            }
            EventKind::Expect { barrier, bytes } => {
                self.expect(g, (self.rank(g), barrier.0, barrier.1), *bytes);
            }
            EventKind::Arrive { barrier, count, at } => {
                for rank in self.reached_by(g, *at) {
                    if rank != self.rank(g) {
                        let clock = self.groups[g].clock;
                        self.reached.insert((rank, g), (clock, side));
                    }
                    self.arrive(g, (rank, barrier.0, barrier.1), *count);
                }
            }
            EventKind::Await { .. } => {
                self.groups[g].state = State::Await;
                return;
            }
            EventKind::EnterLoop(compared) => {
                self.groups[g].loops.push(compared.then(Vec::new));
            }
            EventKind::Iteration => {
                self.groups[g].iterations += 1;
                if let Some(Some(_)) = self.groups[g].loops.last() {
                    let state = self.state(g);
                    if let Some(Some(list)) = self.groups[g].loops.last_mut() {
                        list.push(state);
                    }
                    self.groups[g].trail = 0;
                }
            }
            EventKind::LeaveLoop(steady) => {
                let mut list = self.groups[g].loops.pop().flatten().unwrap_or_default();
                if let Some((at, period)) = *steady {
                    if list.len() == at {
                        list.push(self.state(g));
                    }
                    // Every iteration of the last period is like the one a period before.
                    let repeats = |back: usize| {
                        let now = at.checked_sub(back).and_then(|i| list.get(i));
                        let then = at.checked_sub(back + period).and_then(|i| list.get(i));
                        now.is_some() && now == then
                    };
                    if !(0..period).all(repeats) {
                        self.outcome.unsteady.push(event.stmt);
                    }
                }
            }
        }
        self.groups[g].at += 1;
    }

    /// The blocks that an operation of a group reaches.
    fn reached_by(&self, g: usize, to: Blocks) -> impl Iterator<Item = usize> + use<> {
        let own = self.rank(g);
        (0..self.scan.ranks).filter(move |rank| to.contains(*rank, own))
    }

    /// The state, and what the group has done since its last iteration began.
    fn state(&self, g: usize) -> u64 {
        let when = (self.conditions, self.groups[g].iterations);
        let mut sum = fingerprint(&self.groups, &self.open, &self.phases, when);
        for (rank, (aliases, proxies)) in self.aliases.iter().zip(&self.proxies).enumerate() {
            let own = aliases.fingerprint(&|u| when.0.relative(u, when.1));
            let own = own.wrapping_add(proxies.fingerprint());
            // What one block holds another one does not.
            sum = sum.wrapping_add(own.rotate_left(rank as u32));
        }
        for (at, group) in self.groups.iter().enumerate() {
            let mut h = FxHasher::default();
            let half = group.half.map(|number| number < self.halves.number);
            (at, half).hash(&mut h);
            sum = sum.wrapping_add(h.finish());
        }
        sum.wrapping_add(self.groups[g].trail)
    }

    fn clash(
        &mut self,
        kind: HazardKind,
        first: Side,
        second: Side,
        memory: Memory,
        remedy: Remedy,
    ) {
        let new = (kind, first.stmt, second.stmt, memory.slot);
        if !self.known.insert(new) {
            return;
        }
        self.outcome.clashes.push(Clash {
            kind,
            first,
            second,
            memory,
            remedy,
        });
    }
}
