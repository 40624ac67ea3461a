//! Where groups wait for each other: barriers of the block and named ones, and what each group knows
//! of the others after them.

use super::Run;
use crate::hazard::clash::{Memory, Remedy, Side};
use crate::hazard::conditions::Under;
use crate::hazard::event::EventKind;
use crate::hazard::knows::Knows;
use crate::hazard::report::HazardKind;
use crate::hazard::state::{Group, Open, State};

impl Run<'_, '_> {
    /// Opens the barrier of a block when every group of it is there.
    pub(super) fn release_barrier(&mut self, rank: usize) -> bool {
        let waits = |g: &Group| g.state == State::Barrier;
        let ended = |g: &Group| g.state == State::Done;
        let block = rank * self.scan.groups..(rank + 1) * self.scan.groups;
        let own = &self.groups[block.clone()];
        if !own.iter().any(waits) || !own.iter().all(|g| waits(g) || ended(g)) {
            return false;
        }
        let members = block.filter(|&g| waits(&self.groups[g]));
        let members: Vec<usize> = members.collect();
        let sides: Vec<Side> = members.iter().map(|&g| self.side(g)).collect();
        let bare = members.iter().any(|&g| {
            let event = &self.traces[g].events[self.groups[g].at];
            matches!(event.kind, EventKind::Barrier { bare: true, .. })
        });
        let missing = members.len() < self.scan.groups;
        let other = sides.iter().find(|s| s.stmt != sides[0].stmt).copied();
        if missing || (other.is_some() && !bare) {
            let kind = HazardKind::DivergentBarrier;
            let other = other.unwrap_or(sides[0]);
            self.clash(kind, sides[0], other, Memory::default(), Remedy::Converge);
        }
        self.meet(&members);
        true
    }

    /// Opens the barrier of the cluster when every group of it is there.
    pub(super) fn release_cluster(&mut self) -> bool {
        let waits = |g: &Group| g.state == State::Cluster;
        let ended = |g: &Group| g.state == State::Done;
        if !self.groups.iter().any(waits) || !self.groups.iter().all(|g| waits(g) || ended(g)) {
            return false;
        }
        let members = (0..self.groups.len()).filter(|&g| waits(&self.groups[g]));
        let members: Vec<usize> = members.collect();
        if members.len() < self.groups.len() {
            let side = self.side(members[0]);
            let (kind, nothing) = (HazardKind::DivergentBarrier, Memory::default());
            self.clash(kind, side, side, nothing, Remedy::Converge);
        }
        self.meet(&members);
        true
    }

    /// A group comes to the barrier of the cluster and goes on.
    pub(super) fn cluster_arrive(&mut self, g: usize, side: Side) {
        self.settle(g, &Under::default());
        self.note_barrier(g);
        if self.groups[g].half.is_some() {
            return self.out_of_turn(side);
        }
        let group = &mut self.groups[g];
        group.half = Some(self.halves.number);
        self.halves.gathering.join(&group.knows);
        self.halves.gathering.learn(g, group.clock);
        group.clock += 1;
        self.halves.arrived += 1;
        if self.halves.arrived == self.groups.len() {
            self.halves.arrived = 0;
            self.halves.number += 1;
            self.halves.done = std::mem::take(&mut self.halves.gathering);
        }
    }

    /// Lets groups go on that wait for the others to have come there.
    pub(super) fn wake_halves(&mut self) -> bool {
        let mut moved = false;
        for g in 0..self.groups.len() {
            let group = &mut self.groups[g];
            if group.state != State::Half || group.half == Some(self.halves.number) {
                continue;
            }
            let arrived = group.half.take().is_some();
            if arrived {
                group.knows.join(&self.halves.done);
            } else {
                let side = self.side(g);
                self.out_of_turn(side);
            }
            self.groups[g].state = State::Ready;
            self.groups[g].at += 1;
            moved = true;
        }
        if moved {
            self.forget();
        }
        moved
    }

    /// A group comes twice to a barrier of the cluster, or waits where it has not come.
    pub(super) fn out_of_turn(&mut self, side: Side) {
        let (kind, nothing) = (HazardKind::DivergentBarrier, Memory::default());
        self.clash(kind, side, side, nothing, Remedy::Converge);
    }

    pub(super) fn try_named(&mut self, barrier: (usize, u32), count: u32) {
        let members = self.named.get(&barrier).cloned().unwrap_or_default();
        let own = members
            .iter()
            .map(|g| self.scan.threads_in(self.in_block(*g)));
        let arrived: u32 = own.sum();
        if arrived < count {
            return;
        }
        self.named.remove(&barrier);
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
        let mut all = Knows::default();
        for &m in members {
            all.join(&self.groups[m].knows);
            all.learn(m, self.groups[m].clock);
        }
        for &m in members {
            let group = &mut self.groups[m];
            group.knows = all.clone();
            group.clock += 1;
            group.state = State::Ready;
            group.at += 1;
        }
        self.forget();
    }

    /// Whether the block is one warp and no other reaches its memory.
    pub(super) fn is_of_one_warp(&self) -> bool {
        self.groups.len() == 1 && self.scan.kernel.num_threads() <= self.scan.warp
    }

    /// The lanes of the only warp know of each other all that happened so far.
    pub(super) fn meet_lanes(&mut self, g: usize) {
        let group = &mut self.groups[g];
        group.knows.learn(g, group.clock);
        group.clock += 1;
        self.forget();
    }

    /// Drops accesses that every group knows of.
    pub(super) fn forget(&mut self) {
        let groups = &self.groups;
        let all_know = |o: &Open| {
            let mut going = groups.iter().filter(|g| g.state != State::Done);
            going.all(|g| o.is_known(&g.knows, o.done))
        };
        for list in self.open.values_mut() {
            list.retain(|o| !all_know(o));
        }
    }
}
