//! Where groups wait for each other: barriers of the block, named and arrival barriers, and what
//! each group knows of the others after them.

use tilewright_ir::{Buffer, BufferOrigin};

use super::Run;
use crate::hazard::clash::{Memory, Remedy, Side};
use crate::hazard::conditions::Under;
use crate::hazard::event::EventKind;
use crate::hazard::report::HazardKind;
use crate::hazard::scan::MAX_GROUPS;
use crate::hazard::state::{Group, Phase, State};

impl Run<'_, '_> {
    /// Opens the barrier of the block when every group is there.
    pub(super) fn release_barrier(&mut self) -> bool {
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

    pub(super) fn try_named(&mut self, id: u32, count: u32) {
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

    pub(super) fn arrive(&mut self, g: usize, barrier: (Buffer, i64), threads: u32, whole: bool) {
        self.settle(g, &Under::default());
        let (mut knows, clock) = (self.groups[g].knows, self.groups[g].clock);
        if whole {
            knows[g] = knows[g].max(clock);
            self.proxies.hand_over(g);
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
    pub(super) fn wake_waiting(&mut self) -> bool {
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
}
