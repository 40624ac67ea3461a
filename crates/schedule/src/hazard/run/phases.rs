//! Arrival barriers: a phase completes when enough have arrived and all the bytes that were
//! announced are those of bulk loads, which have landed by then.
//!
//! A wait tells a phase from the next one by its parity alone. So a phase must not complete before
//! all have seen the one before that wait for it, and nobody may arrive for a phase, or announce
//! bytes to it, who does not know that the one before is over. Who announces bytes has the phase held
//! open by an arrival behind that. What a wait says is what the first
//! phase of its parity says that the group does not know to be complete: more may have completed by
//! then in the order that is run, but not in every one.

use std::rc::Rc;

use tilewright_ir::{BufferOrigin, Counter};

use super::Run;
use crate::hazard::clash::{Memory, Remedy, Side};
use crate::hazard::conditions::Under;
use crate::hazard::event::EventKind;
use crate::hazard::knows::{Barrier, Knows};
use crate::hazard::report::HazardKind;
use crate::hazard::state::{Open, Phase, State};
use crate::hazard::touch::Touches;

impl Run<'_, '_> {
    fn phase(&mut self, barrier: Barrier) -> &mut Phase {
        let (_, buffer, index) = barrier;
        let origin = &self.scan.func.buffers[buffer].origin;
        let needed = match origin {
            BufferOrigin::Barriers(counts) => usize::try_from(index)
                .ok()
                .and_then(|i| counts.get(i))
                .copied(),
            _ => None,
        };
        self.phases.entry(barrier).or_insert(Phase {
            number: 0,
            needed: needed.unwrap_or(u32::MAX),
            arrived: 0,
            announced: 0,
            issued: 0,
            unheld: Vec::new(),
            gathering: Knows::default(),
            done: Vec::new(),
            waited: Vec::new(),
        })
    }

    /// The phases of a barrier that a group knows to be complete.
    fn known_phases(&mut self, g: usize, barrier: Barrier) -> u32 {
        let alone = self.scan.warps_in(self.in_block(g)) == 1;
        self.phase(barrier);
        self.phases[&barrier].known(barrier, (g, alone), &self.groups[g].knows)
    }

    /// The group takes part in the present phase: it must know that the ones before are over.
    fn take_part(&mut self, g: usize, barrier: Barrier) {
        let known = self.known_phases(g, barrier);
        if known < self.phases[&barrier].number {
            let side = self.side(g);
            self.phase_clash(side, side);
        }
        let mut knows = self.groups[g].knows.clone();
        knows.learn(g, self.groups[g].clock);
        self.phase(barrier).gathering.join(&knows);
    }

    fn phase_clash(&mut self, first: Side, second: Side) {
        let kind = HazardKind::Phase;
        self.clash(kind, first, second, Memory::default(), Remedy::Phases);
    }

    pub(super) fn arrive(&mut self, g: usize, barrier: Barrier, count: u32) {
        self.settle(g, &Under::default());
        let rank = self.rank(g);
        self.proxies[rank].hand_over(g);
        self.take_part(g, barrier);
        let knows = self.groups[g].knows.clone();
        let phase = self.phase(barrier);
        // The phase could not complete before this, nor before what this comes behind.
        let held = |(clock, by): &(u32, Side)| by.group == g || knows.of(by.group) >= *clock;
        phase.unheld.retain(|spoken| !held(spoken));
        phase.arrived = phase.arrived.saturating_add(count);
        let (came, needed) = (phase.arrived, phase.needed);
        if came > needed {
            let (side, nothing) = (self.side(g), Memory::default());
            let remedy = Remedy::Arrivals { needed, came };
            self.clash(HazardKind::Phase, side, side, nothing, remedy);
        }
        self.advance(g, barrier);
        self.groups[g].clock += 1;
    }

    pub(super) fn expect(&mut self, g: usize, barrier: Barrier, bytes: i64) {
        self.take_part(g, barrier);
        let spoken = (self.groups[g].clock, self.side(g));
        let phase = self.phase(barrier);
        phase.announced += bytes;
        phase.unheld.push(spoken);
    }

    /// A bulk load is under way until its phase completes, and may have landed at once.
    pub(super) fn bulk_load(
        &mut self,
        g: usize,
        touches: &Rc<Touches>,
        side: Side,
        barrier: Barrier,
        bytes: i64,
    ) {
        self.next_op += 1;
        let op = (self.next_op, Counter::Mbarrier);
        self.touch(g, barrier.0, touches, side, Some(op));
        self.take_part(g, barrier);
        let number = self.phase(barrier).number;
        let knows = &self.groups[g].knows;
        for list in self.open.values_mut() {
            let own = list.iter_mut().filter(|o| o.op == Some(op));
            own.for_each(|o| o.bulk = Some((barrier, number)));
            // Who knows of this one knows of the same one before.
            let new: Vec<_> = list.iter().filter(|o| o.op == Some(op)).collect();
            let new: Vec<_> = new.iter().map(|o| o.touch.clone()).collect();
            let old = |o: &Open| o.bulk.is_some_and(|(b, n)| b == barrier && n < number);
            list.retain(|o| {
                let again = old(o) && new.iter().any(|t| o.touch.repeats(t));
                !(again && o.is_known(knows, None))
            });
        }
        self.phase(barrier).issued += bytes;
        self.advance(g, barrier);
        // What the group does next is not part of what the barrier tells.
        self.groups[g].clock += 1;
    }

    /// What the phase lacks that a group waits for.
    pub(super) fn lacks(&mut self, g: usize) -> Option<Remedy> {
        let event = self.traces[g].events.get(self.groups[g].at)?;
        let EventKind::Await { barrier, .. } = event.kind else {
            return None;
        };
        let barrier = (self.rank(g), barrier.0, barrier.1);
        let phase = self.phase(barrier);
        Some(match phase.arrived < phase.needed {
            true => Remedy::Arrivals {
                needed: phase.needed,
                came: phase.arrived,
            },
            false => Remedy::Bytes {
                announced: phase.announced,
                landed: phase.issued,
            },
        })
    }

    /// Completes phases that have all that they need.
    fn advance(&mut self, g: usize, barrier: Barrier) {
        loop {
            let phase = self.phase(barrier);
            let full = phase.needed > 0 && phase.arrived >= phase.needed;
            if !full || phase.announced != phase.issued {
                return;
            }
            phase.arrived -= phase.needed;
            phase.number += 1;
            let loads = phase.issued != 0;
            (phase.announced, phase.issued) = (0, 0);
            let mut done = std::mem::take(&mut phase.gathering);
            done.learn_phases(barrier, phase.number);
            let waited = std::mem::take(&mut phase.waited);
            let missed = waited.into_iter().filter(|w| done.of(w.1.group) < w.0);
            let mut missed: Vec<Side> = missed.map(|w| w.1).collect();
            // The phase may have completed before bytes were announced to it.
            missed.extend(std::mem::take(&mut phase.unheld).into_iter().map(|u| u.1));
            phase.done.push((done, loads));
            // Who still waits for the phase before has not seen it.
            let number = i64::from(phase.number);
            missed.extend(self.waiting_for(barrier, number).map(|h| self.side(h)));
            let by = self.side(g);
            for first in missed {
                self.phase_clash(first, by);
            }
        }
    }

    /// Groups that wait for a phase of this barrier and parity.
    fn waiting_for(&self, barrier: Barrier, parity: i64) -> impl Iterator<Item = usize> {
        let waits = move |&g: &usize| {
            let group = &self.groups[g];
            let event = self.traces[g].events.get(group.at);
            let awaited = event.map(|e| &e.kind);
            group.state == State::Await
                && matches!(awaited, Some(EventKind::Await { barrier: b, parity: p })
                    if (self.rank(g), b.0, b.1) == barrier && (p ^ parity) & 1 == 0)
        };
        (0..self.groups.len()).filter(waits)
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
            let barrier = (self.rank(g), barrier.0, barrier.1);
            let side = self.side(g);
            let known = self.known_phases(g, barrier);
            let clock = self.groups[g].clock;
            let phase = self.phase(barrier);
            // The phase of this parity has completed when the present one has the other.
            if (i64::from(phase.number) ^ parity) & 1 == 0 {
                continue;
            }
            phase.waited.retain(|w| w.1.group != g);
            phase.waited.push((clock, side));
            let says = phase.done.get(known as usize).cloned();
            let group = &mut self.groups[g];
            if (i64::from(known) ^ parity) & 1 == 0
                && let Some((done, _)) = says
            {
                group.knows.join(&done);
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

    /// The kernel ends: bytes match, and somebody has waited for each load.
    pub(super) fn end_of_phases(&mut self) {
        // By the block that they are for.
        let heard = |o: &&Open| {
            let rank = o.bulk.map(|(barrier, _)| barrier.0);
            let own = (0..self.groups.len()).filter(|g| Some(self.rank(*g)) == rank);
            let mut own = own.map(|g| &self.groups[g].knows);
            own.any(|knows| o.is_known(knows, None))
        };
        let open = self.open.values().flatten().filter(|o| o.bulk.is_some());
        let open = open.filter(|o| !heard(o)).map(|o| Side {
            stmt: o.touch.stmt,
            group: o.group,
            moment: o.moment,
        });
        let left: Vec<Side> = open.collect();
        for side in left {
            self.phase_clash(side, side);
        }
    }
}
