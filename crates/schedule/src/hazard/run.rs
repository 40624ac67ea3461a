//! All groups of waves together: who waits for whom, and what nothing orders.
//!
//! Every group has a clock that goes on at each of its barriers. An access of group `p` that is
//! complete at `p`'s clock `c` comes before what group `x` does now when `x` *knows* `p` up to
//! `c`: by a barrier that both took part in, or by a chain of arrivals and waits. The waves of
//! one group know each other no better than that. An asynchronous access is complete when its
//! own wave has waited for it; until then whatever touches its place, in any wave, is a hazard.
//! Only LDS operations of one wave are in order among each other. On AMD an access without a
//! counter is one of them, and *loose* for the other waves until its own has waited for all of
//! them: a bare barrier says nothing about it.

use std::hash::{Hash, Hasher};
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use tilewright_ir::{Buffer, BufferOrigin, Counter};

use super::alias::Aliases;
use super::places::{Meeting, Places};
use super::report::HazardKind;
use super::scan::{Key, MAX_GROUPS, Scan, counts_groups, most_in_flight};
use super::state::{Group, Open, Pending, Phase, State, fingerprint};
use super::touch::{RegisterTouch, Touch, Touches};
use super::trace::{EventKind, Trace};

/// Two operations in no order, found in a run.
#[derive(Clone, Debug)]
pub struct Clash {
    pub kind: HazardKind,
    pub first: Side,
    pub second: Side,
    pub memory: Memory,
    pub remedy: Remedy,
}

/// What two operations meet in.
#[derive(Clone, Copy, Default, Debug)]
pub struct Memory {
    pub root: Option<Buffer>,
    pub slot: Option<i64>,
    /// The buffer of the other operation, where it lies over the first.
    pub over: Option<Buffer>,
}

#[derive(Clone, Copy, Debug)]
pub struct Side {
    pub stmt: Key,
    pub group: usize,
    pub moment: u32,
}

/// What would order them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remedy {
    /// A barrier between the two.
    Barrier,
    /// A barrier of each warp.
    WarpBarrier,
    /// A wait that leaves this many in flight, before the last barrier that lies between.
    WaitBeforeBarrier(Counter, u32),
    /// The same, a barrier earlier.
    WaitTwoBarriersBefore(Counter, u32),
    /// A wait, and a barrier after it.
    WaitAndBarrier(Counter, u32),
    /// A wait before the use of a register.
    Wait(Counter, u32),
    /// All waves must come to the barrier.
    Converge,
    /// Another slot index.
    Version,
    /// The buffers need storage of their own.
    Apart,
}

/// What a run found.
#[derive(Default, Debug)]
pub struct Outcome {
    pub clashes: Vec<Clash>,
    /// Loops whose state did not repeat.
    pub unsteady: Vec<Key>,
}

pub struct Run<'f, 'p> {
    scan: &'f Scan<'f>,
    places: &'p mut Places<'f>,
    amd: bool,
    traces: &'p [Trace],
    groups: Vec<Group>,
    open: FxHashMap<Buffer, Vec<Open>>,
    phases: FxHashMap<(Buffer, i64), Phase>,
    named: FxHashMap<u32, Vec<usize>>,
    next_op: u32,
    moment: u64,
    outcome: Outcome,
    known: FxHashSet<(HazardKind, Key, Key, Option<i64>)>,
    /// Units looked at by themselves, by address and group: the traces keep them alive.
    inside: FxHashSet<(usize, usize)>,
    aliases: Aliases,
}

impl<'f, 'p> Run<'f, 'p> {
    pub fn of(
        scan: &'f Scan<'f>,
        places: &'p mut Places<'f>,
        amd: bool,
        traces: &'p [Trace],
    ) -> Outcome {
        let mut run = Run {
            scan,
            places,
            amd,
            traces,
            groups: traces.iter().map(|_| Group::new()).collect(),
            open: FxHashMap::default(),
            phases: FxHashMap::default(),
            named: FxHashMap::default(),
            next_op: 0,
            moment: 0,
            outcome: Outcome::default(),
            known: FxHashSet::default(),
            inside: FxHashSet::default(),
            aliases: Aliases::of(scan.func, scan.kernel),
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
            moved |= self.release_barrier();
            moved |= self.wake_waiting();
            if !moved {
                break;
            }
        }
        let stuck: Vec<usize> = (0..self.groups.len())
            .filter(|&g| self.groups[g].state != State::Done)
            .collect();
        if let Some(&g) = stuck.first() {
            let side = self.side(g);
            let other = self.side(*stuck.last().unwrap_or(&g));
            let (kind, nothing) = (HazardKind::Deadlock, Memory::default());
            self.clash(kind, side, other, nothing, Remedy::Converge);
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
        if let EventKind::Touch(touches) | EventKind::Issue { touches, .. } = &event.kind {
            let mut h = FxHasher::default();
            (self.groups[g].trail, event.stmt).hash(&mut h);
            for touch in &touches.shared {
                (touch.set, touch.slot).hash(&mut h);
            }
            for touch in &touches.registers {
                (touch.range, touch.slot).hash(&mut h);
            }
            self.groups[g].trail = h.finish();
        }
        match &event.kind {
            EventKind::Touch(touches) => self.touch(g, touches, side, None),
            EventKind::Issue {
                touches,
                counter,
                count,
                certain,
            } => {
                self.issue(g, touches, side, *counter, *count, *certain);
            }
            EventKind::Commit(counter) => {
                let group = &mut self.groups[g];
                let number = group.closed[*counter as usize];
                group.closed[*counter as usize] += 1;
                for p in &mut group.queue {
                    if p.counter == *counter && p.group.is_none() {
                        p.group = Some(number);
                    }
                }
            }
            EventKind::Wait(counter, at_most) => self.wait(g, *counter, *at_most),
            EventKind::Barrier { drains, .. } => {
                if *drains {
                    self.complete(g, |_| true);
                    self.settle(g);
                }
                self.note_barrier(g);
                self.groups[g].state = State::Barrier;
                return;
            }
            EventKind::Named { id, count } => {
                self.settle(g);
                self.note_barrier(g);
                self.groups[g].state = State::Named(*id);
                self.named.entry(*id).or_default().push(g);
                self.try_named(*id, *count);
                return;
            }
            EventKind::Nothing | EventKind::Skip(..) => {}
            EventKind::SyncWarp => self.groups[g].warp_sync = self.moment,
            EventKind::Arrive {
                barrier,
                threads,
                whole,
            } => self.arrive(g, *barrier, *threads, *whole),
            EventKind::Await { .. } => {
                self.groups[g].state = State::Await;
                return;
            }
            EventKind::EnterLoop(compared) => {
                self.groups[g].loops.push(compared.then(Vec::new));
            }
            EventKind::Iteration => {
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

    /// The state, and what the group has done since its last iteration began.
    fn state(&self, g: usize) -> u64 {
        fingerprint(&self.groups, &self.open, &self.phases)
            .wrapping_add(self.aliases.fingerprint())
            .wrapping_add(self.groups[g].trail)
    }

    /// Looks for clashes of accesses with the open ones, then adds them.
    fn touch(&mut self, g: usize, touches: &Rc<Touches>, side: Side, op: Option<(u32, Counter)>) {
        for r in &touches.registers {
            self.check_register(g, r, side);
        }
        let unseen = self.inside.insert((Rc::as_ptr(touches) as usize, g));
        for (at, touch) in touches.shared.iter().enumerate() {
            self.check_shared(g, touch, side, op);
            if op.is_none() && unseen {
                self.check_inside(g, &touches.shared[at..], side);
            }
            self.check_content(touch, side);
        }
        let (clock, time, at) = (self.groups[g].clock, self.moment, self.groups[g].at);
        for touch in &touches.shared {
            let list = self.open.entry(touch.root).or_default();
            // What comes after the newer one comes after the older one too.
            if op.is_none() {
                list.retain(|o| {
                    let known = o.done.is_some() || o.op.is_none();
                    !(known && o.group == g && o.touch.repeats(touch))
                });
            }
            list.push(Open {
                touch: touch.clone(),
                group: g,
                moment: side.moment,
                at,
                clock,
                op,
                done: (op.is_none() && !self.amd).then_some(clock),
                time,
                at_barrier: None,
            });
        }
    }

    /// Whether what a read means is still there: another buffer may lie over it.
    fn check_content(&mut self, touch: &Touch, side: Side) {
        if touch.write {
            let side = Side {
                stmt: touch.stmt,
                ..side
            };
            self.aliases.write(touch, side);
            return;
        }
        for gone in self.aliases.gone(touch) {
            if self.places.covered(touch.set, &gone.written) {
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

    fn check_shared(&mut self, g: usize, touch: &Touch, side: Side, op: Option<(u32, Counter)>) {
        let in_order = |op: Option<(u32, Counter)>| match op {
            None => self.amd,
            Some((_, counter)) => counter == Counter::Lgkmcnt,
        };
        let others = self.aliases.others(touch.root);
        let lists = std::iter::once(&touch.root).chain(others);
        let lists: Vec<&Vec<Open>> = lists.filter_map(|b| self.open.get(b)).collect();
        let mut found = Vec::new();
        for open in lists.into_iter().flatten() {
            let same = open.touch.root == touch.root;
            let apart = match (open.touch.slot, touch.slot) {
                _ if !same => !self.aliases.meet(&open.touch, touch),
                (Some(a), Some(b)) => a != b,
                _ => false,
            };
            let atomic = same && open.touch.atomic && touch.atomic;
            if !(open.touch.write || touch.write) || atomic || apart {
                continue;
            }
            let knows = self.groups[g].knows[open.group];
            if open.done.is_some_and(|done| done <= knows) {
                continue;
            }
            // Different layouts: any threads may meet.
            let met = match same {
                true => self.places.meeting(open.touch.set, touch.set),
                false => Meeting::ANY,
            };
            let pair = 1u64 << (8 * open.group + g);
            let remedy = match open.done {
                None if in_order(open.op) && in_order(op) && met.across & pair == 0 => continue,
                None if met.overlap & pair != 0 => self.remedy(open, g),
                None => continue,
                Some(_) if met.across & pair != 0 => match (open.op, open.at_barrier) {
                    (Some((_, counter)), Some(left)) => Remedy::WaitBeforeBarrier(counter, left),
                    _ => Remedy::Barrier,
                },
                Some(_)
                    if !self.amd
                        && open.group == g
                        && met.in_warp >> g & 1 == 1
                        && self.groups[g].warp_sync < open.time =>
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
            None => Remedy::WaitAndBarrier(counter, self.groups[open.group].younger(at)),
        }
    }

    /// Accesses of one unit: no thread waits for another between them.
    fn check_inside(&mut self, g: usize, touches: &[Touch], side: Side) {
        let Some((a, others)) = touches.split_first() else {
            return;
        };
        let pair = 1u64 << (9 * g);
        let strict = !self.amd;
        if a.write && !a.atomic {
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
            if !(a.write || b.write) {
                continue;
            }
            if a.root != b.root {
                // Threads are in no order, and each may be anywhere.
                if self.aliases.meet(a, b) {
                    self.inside(a, b, side, true, false);
                }
                continue;
            }
            let apart = matches!((a.slot, b.slot), (Some(x), Some(y)) if x != y);
            if (a.atomic && b.atomic) || apart {
                continue;
            }
            let met = self.places.meeting(a.set, b.set);
            self.inside(
                a,
                b,
                side,
                met.across & pair != 0,
                strict && met.in_warp >> g & 1 == 1,
            );
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

    fn check_register(&mut self, g: usize, touch: &RegisterTouch, side: Side) {
        let queue = &self.groups[g].queue;
        let found = queue
            .iter()
            .position(|p| p.registers.iter().any(|r| r.meets(touch)));
        let Some(at) = found else { return };
        let pending = &queue[at];
        let first = Side {
            stmt: pending.stmt,
            group: g,
            moment: pending.moment,
        };
        let second = Side {
            stmt: touch.stmt,
            ..side
        };
        let remedy = Remedy::Wait(pending.counter, self.groups[g].younger(at));
        let kind = HazardKind::RegisterBeforeWait;
        let memory = Memory {
            root: Some(touch.root),
            slot: touch.slot,
            over: None,
        };
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
        self.touch(g, touches, side, Some((op, counter)));
        let registers = touches.registers.iter().filter(|r| r.write).cloned();
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
        });
        // A counter that is full holds the wave back.
        if let Some(most) = most_in_flight(counter) {
            self.wait(g, counter, most);
        }
    }

    fn wait(&mut self, g: usize, counter: Counter, at_most: u32) {
        let queue = &self.groups[g].queue;
        let done: Vec<u32> = (0..queue.len())
            .filter(|&at| queue[at].counter == counter)
            .filter(|&at| !counts_groups(counter) || queue[at].group.is_some())
            .filter(|&at| self.groups[g].younger(at) >= at_most)
            .map(|at| queue[at].op)
            .collect();
        if !done.is_empty() {
            self.complete(g, |op| done.contains(&op));
        }
        if (counter, at_most) == (Counter::Lgkmcnt, 0) {
            self.settle(g);
        }
    }

    /// What the group has done without a counter is complete.
    fn settle(&mut self, g: usize) {
        let (clock, time) = (self.groups[g].clock, self.moment);
        for open in self.open.values_mut().flatten() {
            if open.group == g && open.op.is_none() && open.done.is_none() {
                (open.done, open.time) = (Some(clock), time);
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
        for list in self.open.values_mut() {
            let mut newly: Vec<Touch> = Vec::new();
            for open in list.iter_mut().rev() {
                if let Some((op, _)) = open.op
                    && let Some(left) = at_barrier.get(&op)
                {
                    open.done = Some(clock);
                    open.time = time;
                    open.at_barrier = *left;
                    newly.push(open.touch.clone());
                }
            }
            if newly.is_empty() {
                continue;
            }
            // Older ones of the same statement at the same places say nothing more.
            list.retain(|o| {
                let older = o.done.is_some() && o.time < time && o.group == g;
                !(older && newly.iter().any(|t| t.repeats(&o.touch)))
            });
        }
    }

    /// Remembers what a wait before this barrier would have had to say.
    fn note_barrier(&mut self, g: usize) {
        for at in 0..self.groups[g].queue.len() {
            let left = self.groups[g].younger(at);
            let [latest, _] = self.groups[g].queue[at].at_barrier;
            self.groups[g].queue[at].at_barrier = [Some(left), latest];
        }
    }

    /// Opens the barrier of the block when every group is there.
    fn release_barrier(&mut self) -> bool {
        let waits = |g: &Group| g.state == State::Barrier;
        let ended = |g: &Group| g.state == State::Done;
        if !self.groups.iter().any(waits) || !self.groups.iter().all(|g| waits(g) || ended(g)) {
            return false;
        }
        let members: Vec<usize> = (0..self.groups.len())
            .filter(|&g| waits(&self.groups[g]))
            .collect();
        let sides: Vec<Side> = members.iter().map(|&g| self.side(g)).collect();
        let bare = members.iter().any(|&g| {
            let event = &self.traces[g].events[self.groups[g].at];
            matches!(event.kind, EventKind::Barrier { bare: true, .. })
        });
        let missing = members.len() < self.groups.len();
        let other = sides.iter().find(|s| s.stmt != sides[0].stmt).copied();
        if missing || (other.is_some() && !bare) {
            let kind = HazardKind::DivergentBarrier;
            let other = other.unwrap_or(sides[0]);
            self.clash(kind, sides[0], other, Memory::default(), Remedy::Converge);
        }
        self.meet(&members);
        true
    }

    fn try_named(&mut self, id: u32, count: u32) {
        let members = self.named.get(&id).cloned().unwrap_or_default();
        let threads = |g: &usize| {
            let own = self.scan.group_of.iter();
            own.filter(|o| usize::from(**o) == *g).count() as u32
        };
        let arrived: u32 = members.iter().map(threads).sum();
        if arrived < count {
            return;
        }
        self.named.remove(&id);
        if arrived > count
            && let Some(&g) = members.last()
        {
            let side = self.side(g);
            let kind = HazardKind::DivergentBarrier;
            self.clash(kind, side, side, Memory::default(), Remedy::Converge);
        }
        self.meet(&members);
    }

    /// The groups know of each other all that happened so far, and go on.
    fn meet(&mut self, members: &[usize]) {
        let mut all = [0u32; MAX_GROUPS];
        for &m in members {
            for (known, own) in all.iter_mut().zip(self.groups[m].knows) {
                *known = (*known).max(own);
            }
            all[m] = all[m].max(self.groups[m].clock);
        }
        for &m in members {
            let group = &mut self.groups[m];
            group.knows = all;
            group.clock += 1;
            group.state = State::Ready;
            group.at += 1;
        }
        self.forget();
    }

    /// Drops accesses that every group knows of.
    fn forget(&mut self) {
        let mut known = [u32::MAX; MAX_GROUPS];
        for group in self.groups.iter().filter(|g| g.state != State::Done) {
            for (least, own) in known.iter_mut().zip(group.knows) {
                *least = (*least).min(own);
            }
        }
        for list in self.open.values_mut() {
            list.retain(|o| o.done.is_none_or(|done| done > known[o.group]));
        }
    }

    fn phase(&mut self, barrier: (Buffer, i64)) -> &mut Phase {
        let origin = &self.scan.func.buffers[barrier.0].origin;
        let needed = match origin {
            BufferOrigin::Barriers(counts) => usize::try_from(barrier.1)
                .ok()
                .and_then(|i| counts.get(i))
                .copied(),
            _ => None,
        };
        self.phases.entry(barrier).or_insert(Phase {
            needed: needed.unwrap_or(u32::MAX),
            arrived: 0,
            parity: 0,
            gathering: [0; MAX_GROUPS],
            done: [0; MAX_GROUPS],
        })
    }

    fn arrive(&mut self, g: usize, barrier: (Buffer, i64), threads: u32, whole: bool) {
        self.settle(g);
        let (mut knows, clock) = (self.groups[g].knows, self.groups[g].clock);
        if whole {
            knows[g] = knows[g].max(clock);
        }
        let phase = self.phase(barrier);
        for (all, own) in phase.gathering.iter_mut().zip(knows) {
            *all = (*all).max(own);
        }
        phase.arrived += threads;
        while phase.arrived >= phase.needed {
            phase.arrived -= phase.needed;
            phase.parity ^= 1;
            let gathered = phase.gathering;
            for (all, own) in phase.done.iter_mut().zip(gathered) {
                *all = (*all).max(own);
            }
            phase.gathering = [0; MAX_GROUPS];
        }
        self.groups[g].clock += 1;
    }

    /// Lets groups go on whose phase has completed.
    fn wake_waiting(&mut self) -> bool {
        let mut moved = false;
        for g in 0..self.groups.len() {
            if self.groups[g].state != State::Await {
                continue;
            }
            let event = &self.traces[g].events[self.groups[g].at];
            let EventKind::Await { barrier, parity } = event.kind else {
                continue;
            };
            // The phase of this parity has completed when the current one has the other.
            let phase = self.phase(barrier);
            if phase.parity == parity & 1 {
                continue;
            }
            let done = phase.done;
            let group = &mut self.groups[g];
            for (known, own) in group.knows.iter_mut().zip(done) {
                *known = (*known).max(own);
            }
            group.state = State::Ready;
            group.at += 1;
            moved = true;
        }
        if moved {
            self.forget();
        }
        moved
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
