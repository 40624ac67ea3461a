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

mod barriers;
mod phases;

use std::hash::{Hash, Hasher};
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use tilewright_ir::{Buffer, Counter, FenceKind, Machine};

use super::alias::Aliases;
use super::clash::{Clash, Memory, Remedy, Side};
use super::conditions::{Conditions, Under, contradict, either};
use super::event::{EventKind, Trace};
use super::knows::Barrier;
use super::places::{Meeting, Places};
use super::proxy::Proxies;
use super::report::HazardKind;
use super::scan::{Key, Scan};
use super::state::{Group, Open, Pending, Phase, State, fingerprint};
use super::touch::{RegisterTouch, Touch, Touches};

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
                self.settle(g, &Under::default());
                self.note_barrier(g);
                self.groups[g].state = State::Cluster;
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
            EventKind::SyncWarp => self.groups[g].warp_sync = self.moment,
            EventKind::Bulk {
                touches,
                barrier,
                bytes,
                twice,
                multicast,
            } => {
                if *twice {
                    let kind = HazardKind::WriteAfterWrite;
                    self.clash(kind, side, side, Memory::default(), Remedy::AwaitLoad);
                }
                for rank in self.reached_by(g, *multicast) {
                    self.bulk_load(g, touches, side, (rank, barrier.0, barrier.1), *bytes);
                }
            }
            EventKind::Expect { barrier, bytes } => {
                self.expect(g, (self.rank(g), barrier.0, barrier.1), *bytes);
            }
            EventKind::Arrive {
                barrier,
                count,
                cluster,
            } => {
                for rank in self.reached_by(g, *cluster) {
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

    /// The blocks that an operation of a group reaches: its own, or all of the cluster.
    fn reached_by(&self, g: usize, cluster: bool) -> std::ops::Range<usize> {
        match cluster {
            true => 0..self.scan.ranks,
            false => self.rank(g)..self.rank(g) + 1,
        }
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
        sum.wrapping_add(self.groups[g].trail)
    }

    /// Looks for clashes of accesses to a block's memory with the open ones, then adds them.
    fn touch(
        &mut self,
        g: usize,
        rank: usize,
        touches: &Rc<Touches>,
        side: Side,
        op: Option<(u32, Counter)>,
    ) {
        let product = op.is_some_and(|(_, counter)| counter == Counter::Wgmma);
        for r in &touches.registers {
            self.check_register(g, r, side, product);
        }
        for touch in &touches.shared {
            self.check_proxy(rank, touch, side, op);
        }
        let unseen = self.inside.insert((Rc::as_ptr(touches) as usize, g));
        for (at, touch) in touches.shared.iter().enumerate() {
            self.check_shared((g, rank), touch, side, op);
            if op.is_none() && unseen {
                self.check_inside(g, &touches.shared[at..], side);
            }
            self.check_content((g, rank), touch, side);
        }
        let (clock, time, at) = (self.groups[g].clock, self.moment, self.groups[g].at);
        let counted = self.machine.shared.counter.is_some();
        for touch in &touches.shared {
            let list = self.open.entry((rank, touch.root)).or_default();
            let mut under = self.groups[g].under.clone();
            // What comes after the newer one comes after the older one too.
            if op.is_none() {
                list.retain(|o| {
                    let known = o.done.is_some() || o.op.is_none();
                    let older = known && o.group == g && o.touch.repeats(touch);
                    if older {
                        // From now on this one stands for both.
                        under = either(&under, &o.under);
                    }
                    !older
                });
            }
            list.push(Open {
                touch: touch.clone(),
                group: g,
                moment: side.moment,
                at,
                clock,
                op,
                // Waves of a block share a cache that keeps the order of what they do to tensors.
                done: (op.is_none() && (!counted || touch.tensor)).then_some(clock),
                bulk: None,
                time,
                at_barrier: None,
                under,
                partly: Vec::new(),
            });
        }
    }

    /// Whether what a read means is still there: another buffer may lie over it.
    fn check_content(&mut self, (g, rank): (usize, usize), touch: &Touch, side: Side) {
        let under = self.groups[g].under.clone();
        if touch.write {
            let side = Side {
                stmt: touch.stmt,
                ..side
            };
            self.aliases[rank].write(touch, side, &under);
            return;
        }
        for gone in self.aliases[rank].gone(touch) {
            if self.places.covered(touch.set, &gone.written(&under)) {
                continue;
            }
            let second = Side {
                stmt: touch.stmt,
                ..side
            };
            let memory = Memory {
                root: Some(touch.root),
                slot: touch.slot,
                over: Some(gone.over),
            };
            let kind = HazardKind::Overwritten;
            self.clash(kind, gone.by, second, memory, Remedy::Apart);
        }
    }

    fn check_shared(
        &mut self,
        (g, rank): (usize, usize),
        touch: &Touch,
        side: Side,
        op: Option<(u32, Counter)>,
    ) {
        let in_order = |op: Option<(u32, Counter)>| match op {
            None => self.machine.shared.counter.is_some(),
            Some((_, counter)) => counter == Counter::Lgkmcnt,
        };
        let others = self.aliases[rank].others(touch.root);
        let lists = std::iter::once(&touch.root).chain(others);
        let lists = lists.filter_map(|b| self.open.get(&(rank, *b)));
        let lists: Vec<&Vec<Open>> = lists.collect();
        let mut found = Vec::new();
        for open in lists.into_iter().flatten() {
            let same = open.touch.root == touch.root;
            let apart = match (open.touch.slot, touch.slot) {
                _ if !same => !self.aliases[rank].meet(&open.touch, touch),
                (Some(a), Some(b)) => a != b,
                _ => false,
            };
            let atomic = same && open.touch.atomic && touch.atomic;
            if !(open.touch.write || touch.write) || atomic || apart {
                continue;
            }
            let under = &self.groups[g].under;
            if contradict(&open.under, under) {
                continue;
            }
            let done = open.done_under(under);
            if open.is_known(&self.groups[g].knows, done.map(|(clock, _)| clock)) {
                continue;
            }
            // Different layouts: any threads may meet.
            let mut met = match same {
                true => self.places.meeting(open.touch.set, touch.set),
                false => Meeting::ANY,
            };
            if self.rank(open.group) != self.rank(g) {
                met.across = met.overlap;
            }
            let pair = 1u64 << (8 * self.in_block(open.group) + self.in_block(g));
            let remedy = match done {
                None if in_order(open.op) && in_order(op) && met.across & pair == 0 => continue,
                None if met.overlap & pair != 0 => self.remedy(open, g),
                None => continue,
                Some(_) if met.across & pair != 0 => match (open.op, open.at_barrier) {
                    (Some((_, counter)), Some(left)) => Remedy::WaitBeforeBarrier(counter, left),
                    _ => Remedy::Barrier,
                },
                Some((_, time))
                    if !self.machine.lockstep
                        && open.group == g
                        && met.in_warp >> self.in_block(g) & 1 == 1
                        && self.groups[g].warp_sync < time =>
                {
                    Remedy::WarpBarrier
                }
                Some(_) => continue,
            };
            let mut first = Side {
                stmt: open.touch.stmt,
                group: open.group,
                moment: open.moment,
            };
            let mut second = Side {
                stmt: touch.stmt,
                ..side
            };
            let (mut writes, mut remedy) = ((open.touch.write, touch.write), remedy);
            if open.at > self.groups[g].at {
                // The other group is ahead: in the program its access comes later.
                (first, second) = (second, first);
                writes = (writes.1, writes.0);
                remedy = Remedy::Barrier;
            }
            let kind = match writes {
                (true, false) => HazardKind::ReadAfterWrite,
                (false, _) => HazardKind::WriteAfterRead,
                (true, true) => HazardKind::WriteAfterWrite,
            };
            let memory = Memory {
                root: Some(touch.root),
                slot: match same {
                    true => open.touch.slot.or(touch.slot),
                    false => touch.slot,
                },
                over: (!same).then_some(open.touch.root),
            };
            found.push((kind, first, second, memory, remedy));
        }
        for (kind, first, second, memory, remedy) in found {
            self.clash(kind, first, second, memory, remedy);
        }
    }

    /// What a wait for an operation that is under way would have to say.
    fn remedy(&self, open: &Open, g: usize) -> Remedy {
        if open.bulk.is_some() {
            return Remedy::AwaitLoad;
        }
        let Some((op, counter)) = open.op else {
            let passed = self.groups[open.group].clock > open.clock;
            return match passed {
                true => Remedy::WaitBeforeBarrier(Counter::Lgkmcnt, 0),
                false => Remedy::Barrier,
            };
        };
        let queue = &self.groups[open.group].queue;
        let Some(at) = queue.iter().position(|p| p.op == op) else {
            return Remedy::Barrier;
        };
        // Where groups run a barrier apart, what holds for this one must hold for the lagging one
        // too, which has passed one barrier fewer.
        let apart = self.groups.len() > 1 && open.group == g;
        match queue[at].at_barrier[usize::from(apart)] {
            Some(left) if apart => Remedy::WaitTwoBarriersBefore(counter, left),
            Some(left) => Remedy::WaitBeforeBarrier(counter, left),
            None => Remedy::WaitAndBarrier(counter, self.groups[open.group].younger(at, &[])),
        }
    }

    /// Accesses of one unit: no thread waits for another between them.
    fn check_inside(&mut self, g: usize, touches: &[Touch], side: Side) {
        let Some((a, others)) = touches.split_first() else {
            return;
        };
        let rank = self.rank(g);
        let g = self.in_block(g);
        let pair = 1u64 << (9 * g);
        let strict = !self.machine.lockstep;
        // Points of a tensor that a parallel loop writes twice are its author's affair.
        if a.write && !a.atomic && !a.tensor {
            let met = self.places.meeting_itself(a.set);
            self.inside(
                a,
                a,
                side,
                met.across & pair != 0,
                strict && met.in_warp >> g & 1 == 1,
            );
        }
        for b in others {
            if !(a.write || b.write) || a.excludes(b) {
                continue;
            }
            if a.root != b.root {
                // Threads are in no order, and each may be anywhere.
                if self.aliases[rank].meet(a, b) {
                    self.inside(a, b, side, true, false);
                }
                continue;
            }
            let apart = matches!((a.slot, b.slot), (Some(x), Some(y)) if x != y);
            if (a.atomic && b.atomic) || apart {
                continue;
            }
            let met = self.places.meeting(a.set, b.set);
            let across = met.across & pair != 0;
            let in_warp = strict && met.in_warp >> g & 1 == 1;
            // Code that speaks of threads and data may know what it does; that is not proved then.
            let certain = self.places.is_certain(a.set) && self.places.is_certain(b.set);
            if a.tensor && !certain && (across || in_warp) {
                self.places.unknown.push(a.root);
                continue;
            }
            self.inside(a, b, side, across, in_warp);
        }
    }

    fn inside(&mut self, a: &Touch, b: &Touch, side: Side, across: bool, in_warp: bool) {
        if !across && !in_warp {
            return;
        }
        let kind = match (a.write, b.write) {
            (true, true) => HazardKind::WriteAfterWrite,
            (true, false) => HazardKind::ReadAfterWrite,
            (false, _) => HazardKind::WriteAfterRead,
        };
        let remedy = if across {
            Remedy::Barrier
        } else {
            Remedy::WarpBarrier
        };
        let (first, second) = (
            Side {
                stmt: a.stmt,
                ..side
            },
            Side {
                stmt: b.stmt,
                ..side
            },
        );
        let memory = Memory {
            root: Some(a.root),
            slot: a.slot,
            over: (a.root != b.root).then_some(b.root),
        };
        self.clash(kind, first, second, memory, remedy);
    }

    /// A read through the async proxy sees what it was shown, and a write through it comes after
    /// that; what others write it is yet to see.
    fn check_proxy(&mut self, rank: usize, touch: &Touch, side: Side, op: Option<(u32, Counter)>) {
        match op {
            None => self.proxies[rank].wrote(touch, side),
            Some((_, Counter::Wgmma | Counter::Mbarrier | Counter::TmaStore)) => {
                let Some(first) = self.proxies[rank].unseen(touch) else {
                    return;
                };
                let second = Side {
                    stmt: touch.stmt,
                    ..side
                };
                let memory = Memory {
                    root: Some(touch.root),
                    slot: touch.slot,
                    over: None,
                };
                let remedy = Remedy::Fence(FenceKind::AsyncProxy);
                self.clash(HazardKind::MissingFence, first, second, memory, remedy);
            }
            // Written when it is waited for.
            Some(_) => {}
        }
    }

    fn check_register(&mut self, g: usize, touch: &RegisterTouch, side: Side, product: bool) {
        let memory = Memory {
            root: Some(touch.root),
            slot: touch.slot,
            over: None,
        };
        let second = Side {
            stmt: touch.stmt,
            ..side
        };
        if !product {
            self.groups[g].fenced.touched(touch);
        } else if self.groups[g].fenced.lacks(touch, &self.groups[g].under) {
            let remedy = Remedy::Fence(FenceKind::Wgmma);
            self.clash(HazardKind::MissingFence, second, second, memory, remedy);
        }
        let (queue, under) = (&self.groups[g].queue, &self.groups[g].under);
        let found = queue.iter().position(|p| {
            let meets = |r: &RegisterTouch| {
                // Products that add to the same registers are in order.
                let in_order = product && p.counter == Counter::Wgmma && r.write && touch.write;
                r.meets(touch) && (r.write || touch.write) && !in_order
            };
            p.registers.iter().any(meets) && p.may_meet(under)
        });
        let Some(at) = found else { return };
        let pending = &queue[at];
        let first = Side {
            stmt: pending.stmt,
            group: g,
            moment: pending.moment,
        };
        let remedy = Remedy::Wait(pending.counter, self.groups[g].younger(at, under));
        let kind = HazardKind::RegisterBeforeWait;
        self.clash(kind, first, second, memory, remedy);
    }

    fn issue(
        &mut self,
        g: usize,
        touches: &Rc<Touches>,
        side: Side,
        counter: Counter,
        count: u32,
        certain: bool,
    ) {
        self.next_op += 1;
        let op = self.next_op;
        self.touch(g, self.rank(g), touches, side, Some((op, counter)));
        // A product reads registers while it is in flight; a store has read them when it is issued.
        let reads = counter == Counter::Wgmma;
        let registers = touches.registers.iter();
        let registers = registers.filter(|r| r.write || reads).cloned();
        let under = self.groups[g].under.clone();
        if !certain && under.is_empty() {
            self.supersede(g, touches);
        }
        self.groups[g].queue.push(Pending {
            op,
            stmt: side.stmt,
            moment: side.moment,
            counter,
            count,
            certain,
            group: None,
            at_barrier: [None; 2],
            registers: registers.collect(),
            touches: touches.clone(),
            under,
            partly: Vec::new(),
        });
        // A counter that is full holds the wave back. This is so for operations that come with
        // enough others, whatever the condition here: lanes may disagree on that.
        if let Some(most) = counter.most_in_flight() {
            self.wait(g, counter, most, &Under::default());
        }
    }

    /// Forgets earlier issues of an operation that no count relies on and that is issued again:
    /// they are complete no later, so that whatever meets one of them meets the new one. Else a
    /// loop that never waits would have ever more under way.
    fn supersede(&mut self, g: usize, touches: &Rc<Touches>) {
        let is_same = |p: &Pending| {
            let always = p.under.is_empty() && p.partly.is_empty();
            !p.certain && always && Rc::ptr_eq(&p.touches, touches)
        };
        let queue = &mut self.groups[g].queue;
        let old: Vec<u32> = queue.iter().filter(|p| is_same(p)).map(|p| p.op).collect();
        if old.is_empty() {
            return;
        }
        queue.retain(|p| !old.contains(&p.op));
        for list in self.open.values_mut() {
            list.retain(|o| o.op.is_none_or(|(op, _)| !old.contains(&op)));
        }
    }

    /// A wait under a condition. What is complete in some cases only stays under way.
    fn wait(&mut self, g: usize, counter: Counter, at_most: u32, under: &Under) {
        let (done, partly) = self.groups[g].waited(counter, at_most, under, |_| true);
        self.waited(g, under, &done, &partly);
        if (counter, at_most) == (Counter::Lgkmcnt, 0) {
            self.settle(g, under);
        }
    }

    /// A wait for what bulk stores read.
    fn wait_read(&mut self, g: usize, at_most: u32, under: &Under) {
        let counter = Counter::TmaStore;
        let (done, partly) =
            self.groups[g].waited(counter, at_most, under, Pending::reads_to_store);
        self.waited(g, under, &done, &partly);
    }

    fn waited(&mut self, g: usize, under: &Under, done: &[u32], partly: &[u32]) {
        if !partly.is_empty() {
            self.complete_partly(g, under, partly);
        }
        if !done.is_empty() {
            self.complete(g, |op| done.contains(&op));
        }
    }

    /// Under a condition, what the group has done without a counter is complete.
    fn settle(&mut self, g: usize, under: &Under) {
        let (clock, time) = (self.groups[g].clock, self.moment);
        for open in self.open.values_mut().flatten() {
            if open.group == g && open.op.is_none() && open.done.is_none() {
                open.settle(under, clock, time);
            }
        }
    }

    /// Under a condition these operations are complete.
    fn complete_partly(&mut self, g: usize, under: &Under, ops: &[u32]) {
        let (clock, time) = (self.groups[g].clock, self.moment);
        for open in self.open.values_mut().flatten() {
            if open.op.is_some_and(|(op, _)| ops.contains(&op)) {
                open.complete_partly(under, clock, time);
            }
        }
    }

    fn complete(&mut self, g: usize, which: impl Fn(u32) -> bool) {
        let (clock, time) = (self.groups[g].clock, self.moment);
        let mut at_barrier = FxHashMap::default();
        self.groups[g].queue.retain(|p| {
            let done = which(p.op);
            if done {
                at_barrier.insert(p.op, p.at_barrier[0]);
            }
            !done
        });
        if at_barrier.is_empty() {
            return;
        }
        let rank = self.rank(g);
        for list in self.open.values_mut() {
            let mut newly: Vec<(Touch, Under)> = Vec::new();
            for open in list.iter_mut() {
                if let Some((op, _)) = open.op
                    && let Some(left) = at_barrier.get(&op)
                {
                    open.done = Some(clock);
                    open.time = time;
                    open.at_barrier = *left;
                    open.partly.clear();
                    let by = Side {
                        stmt: open.touch.stmt,
                        group: g,
                        moment: open.moment,
                    };
                    self.proxies[rank].wrote(&open.touch, by);
                    newly.push((open.touch.clone(), open.under.clone()));
                }
            }
            if newly.is_empty() {
                continue;
            }
            // Older ones of the same statement at the same places say nothing more: the newer one
            // stands for them.
            list.retain(|o| {
                let older = o.done.is_some() && o.time < time && o.group == g;
                let mut repeated = false;
                for (touch, under) in newly.iter_mut().filter(|_| older) {
                    if touch.repeats(&o.touch) {
                        *under = either(under, &o.under);
                        repeated = true;
                    }
                }
                !repeated
            });
            let mut newly = newly.into_iter();
            for open in list.iter_mut() {
                if open.op.is_some_and(|(op, _)| at_barrier.contains_key(&op))
                    && let Some((_, under)) = newly.next()
                {
                    open.under = under;
                }
            }
        }
    }

    /// Remembers what a wait before this barrier would have had to say.
    fn note_barrier(&mut self, g: usize) {
        let rank = self.rank(g);
        self.proxies[rank].hand_over(g);
        for at in 0..self.groups[g].queue.len() {
            let left = self.groups[g].younger(at, &[]);
            let [latest, _] = self.groups[g].queue[at].at_barrier;
            self.groups[g].queue[at].at_barrier = [Some(left), latest];
        }
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
