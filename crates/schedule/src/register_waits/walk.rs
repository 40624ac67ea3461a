//! The walk over a kernel's items that finds the waits which are missing.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::Counter;

use super::outline::{Item, Kind, Operation, Repeated};
use super::registers::Registers;
use super::seen::{Seen, holds};
use super::state::{Before, Pending, State};
use super::{Counted, Waits};
use crate::conflicts::{Class, Conflicts, Relation};
use crate::footprint::Meeting;
use crate::order::wait_limit;
use crate::outline::Jumps;
use crate::slots::Slot;
use crate::ways::{Age, Around, Ways};

/// After so many iterations an access may have touched any version.
const OLD: u8 = 4;

/// So many statements without blocks are walked as fast as they are looked up.
const SHORT: usize = 4;

pub struct WaitWalk<'i, 'k> {
    pub counted: Counted,
    pub conflicts: Conflicts<'k>,
    /// What each operation fills, by its statement's number.
    pub operations: FxHashMap<usize, &'i Operation>,
    pub waits: Waits,
    /// The wait that the walk is to do without, or with less of.
    pub tried: Option<usize>,
    /// What came of runs of items that have no part in the try.
    pub seen: Seen,
    pub mode: Mode,
    /// The first wait that is missing.
    pub missing: Option<Before>,
    /// Whether a wait was put in behind the walk's back: earlier than where it was needed.
    pub again: bool,
    /// Whether something was under way at a bare barrier.
    pub crossed: bool,
    /// The waits in the program at which something was under way, by their statements' numbers.
    pub waited: FxHashSet<usize>,
    /// Whether groups of waves run a barrier apart.
    pub apart: bool,
    pub ways: Ways,
    /// What is pending where the innermost loop is left early.
    pub left: State,
    /// What is pending where its next iteration is begun early.
    pub next: State,
}

/// What the walk does where a wait is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Insert,
    /// Says so and stops.
    Check,
    /// The same for accesses without a counter only.
    CheckPlain,
}

impl WaitWalk<'_, '_> {
    pub fn block(&mut self, items: &[Item], state: &mut State) {
        if self.tried.is_some() {
            self.run(items, state);
            return;
        }
        for item in items {
            if self.missing.is_some() && self.mode != Mode::Insert {
                return;
            }
            self.item(item, state);
        }
    }

    /// Walks a run of items by halves, and takes from what was seen what came of those that the
    /// tried wait does not stand in.
    fn run(&mut self, items: &[Item], state: &mut State) {
        if self.missing.is_some() {
            return;
        }
        if items.len() <= SHORT && items.iter().all(|item| !item.is_opened()) {
            for item in items {
                if self.missing.is_none() {
                    self.item(item, state);
                }
            }
            return;
        }
        let is_tried = self.tried.is_some_and(|number| holds(items, number));
        if !is_tried && self.seen.recall(items, self.ways.here, state) {
            return;
        }
        let before = (!is_tried).then(|| state.clone());
        match items {
            [] => {}
            [item] => self.item(item, state),
            _ => {
                let (first, second) = items.split_at(items.len() / 2);
                self.run(first, state);
                self.run(second, state);
            }
        }
        if let Some(before) = before.filter(|_| self.missing.is_none()) {
            self.seen.note(items, self.ways.here, before, state);
        }
    }

    fn item(&mut self, item: &Item, state: &mut State) {
        if let Some(&at_most) = self.waits.get(&item.number) {
            state.wait(at_most);
        }
        self.wait_for_use(item, state);
        if self.counted.plain && !matches!(item.kind, Kind::Issue(_) | Kind::Elsewhere) {
            for &class in &item.touches {
                let at = self.ways.here(self.conflicts.slot(class));
                state.add(Pending::new(class, None, at));
            }
        }
        if self.counted.counter == Counter::Wgmma && item.jumps != Jumps::No {
            // Behind the loop, or in its next iteration, registers of sums may be others'.
            self.wait_for_all(item, state, |p| p.op.is_some());
        }
        match item.jumps {
            Jumps::No => {}
            Jumps::Perhaps => {
                self.left.join(state.clone());
                self.next.join(state.clone());
            }
            Jumps::Break => {
                self.left.join(std::mem::take(state));
            }
            Jumps::Continue => {
                self.next.join(std::mem::take(state));
            }
        }
        match &item.kind {
            Kind::Plain | Kind::Elsewhere => {}
            Kind::Issue(operation) => {
                state.count(operation.count);
                for &class in &item.touches {
                    let at = self.ways.here(self.conflicts.slot(class));
                    state.add(Pending::new(class, Some(item.number), at));
                }
            }
            Kind::Wait(at_most) => {
                if state.list.iter().any(|p| p.younger.is_some()) {
                    self.waited.insert(item.number);
                }
                state.wait(*at_most);
            }
            Kind::Drains if self.apart => {
                state.complete(|_| true);
                state.cross_apart(item.number);
            }
            Kind::Drains => state.list.clear(),
            Kind::Bare => {
                self.crossed |= state.is_busy();
                match self.apart {
                    true => state.cross_apart(item.number),
                    false => state.cross(item.number),
                }
            }
            Kind::Warp => state.cross_in_warp(item.number),
            Kind::Meets => {
                // Those without a counter of their own, too: who comes later finds them complete.
                self.wait_for_all(item, state, |_| true);
                state.complete(|_| true);
            }
            Kind::Loop(l) => self.repeated(item.number, l, state),
            Kind::Unrolled(iterations) => self.unrolled(item.number, iterations, state),
            Kind::Branch {
                then,
                otherwise,
                when,
                unless,
            } => {
                let taken = self.way(then, when, state.clone());
                let other = self.way(otherwise, unless, std::mem::take(state));
                self.join(state, &taken, when, &other);
                self.join(state, &other, unless, &taken);
            }
            Kind::Some(body) => {
                let before = state.clone();
                self.block(body, state);
                state.join(before);
            }
        }
    }

    fn unrolled(&mut self, number: usize, iterations: &[Vec<Item>], state: &mut State) {
        state.enter(number);
        for items in iterations {
            self.block(items, state);
        }
        for pending in std::mem::take(&mut state.list) {
            state.add(pending.left(number));
        }
    }

    /// What one way of a branch leaves pending.
    fn way(&mut self, items: &[Item], facts: &[Slot], mut state: State) -> State {
        let Some(inside) = self.ways.inside(&self.conflicts.slots, facts) else {
            // It is never taken.
            return State::default();
        };
        let outside = std::mem::replace(&mut self.ways.here, inside);
        self.block(items, &mut state);
        self.ways.here = outside;
        state
    }

    /// Adds what one way has left pending. What the other one completed came this way.
    fn join(&mut self, state: &mut State, way: &State, facts: &[Slot], other: &State) {
        for pending in &way.list {
            let more = if other.has(pending) { &[] } else { facts };
            self.add_known(state, *pending, more);
        }
    }

    /// Adds an access with more facts, unless these say that it was not done. Returns whether
    /// that changes anything.
    fn add_known(&mut self, state: &mut State, pending: Pending, facts: &[Slot]) -> bool {
        match self.ways.with(&self.conflicts.slots, pending.at, facts) {
            Some(at) => state.add(Pending { at, ..pending }),
            None => false,
        }
    }

    /// A loop: from the outside, and from its own end until nothing new comes up.
    fn repeated(&mut self, number: usize, l: &Repeated, state: &mut State) {
        let skipped = l.may_skip.then(|| state.clone());
        let around = Around {
            at: number,
            changed: &l.changed,
            index: l.index.as_ref(),
        };
        let outside = self.ways.here;
        let mut before = State::default();
        state.enter(number);
        let entering = l.index.map(|i| [i.runs, i.above, i.at_first]);
        for pending in std::mem::take(&mut state.list) {
            self.add_known(&mut before, pending, entering.as_ref().map_or(&[], |e| e));
        }
        if let Some(index) = l.index {
            let inside = [index.runs, index.above];
            match self.ways.inside(&self.conflicts.slots, &inside) {
                Some(inside) => self.ways.here = inside,
                None => {
                    // It never runs.
                    *state = skipped.unwrap_or_default();
                    return;
                }
            }
        }
        let left_outside = std::mem::take(&mut self.left);
        let next_outside = std::mem::take(&mut self.next);
        let after = loop {
            let mut after = before.clone();
            self.block(&l.body, &mut after);
            after.join(std::mem::take(&mut self.next));
            let mut more = false;
            for pending in after.list.iter().filter(|_| l.again) {
                let carried = self.carried(around, *pending);
                more |= carried.is_some_and(|pending| before.add(pending));
            }
            if !more {
                break after;
            }
        };
        self.ways.here = outside;
        self.next = next_outside;
        for pending in after.list {
            let slots = &mut self.conflicts.slots;
            if let Some(at) = self.ways.behind(slots, around, pending.at) {
                state.add(Pending { at, ..pending }.left(number));
            }
        }
        for pending in std::mem::replace(&mut self.left, left_outside).list {
            state.add(pending.left(number));
        }
        let skips = l.index.map(|index| index.skips);
        for pending in skipped.unwrap_or_default().list {
            self.add_known(state, pending, skips.as_slice());
        }
    }

    /// A pending access in terms of the next iteration.
    fn carried(&mut self, around: Around<'_>, mut pending: Pending) -> Option<Pending> {
        pending.age = (pending.age + 1).min(OLD);
        let age = if pending.age < OLD {
            Age::One
        } else {
            Age::Any
        };
        let slots = &mut self.conflicts.slots;
        pending.at = self.ways.carried(slots, around, pending.at, age)?;
        Some(pending)
    }

    /// The waits that the item itself needs.
    fn wait_for_use(&mut self, item: &Item, state: &mut State) {
        for at in (0..state.list.len()).rev() {
            // A wait may have completed more than one.
            let Some(pending) = state.list.get(at) else {
                continue;
            };
            if let Some(before) = self.needed(item, pending) {
                self.need(before, item.number, at, state);
            }
        }
    }

    /// All of these must be complete before the item.
    fn wait_for_all(&mut self, item: &Item, state: &mut State, which: impl Fn(&Pending) -> bool) {
        for at in (0..state.list.len()).rev() {
            let Some(pending) = state.list.get(at).filter(|p| which(p)) else {
                continue;
            };
            if let Some(before) = pending.wait_before(item.number) {
                self.need(before, item.number, at, state);
            }
        }
    }

    /// The wait that a pending access needs before an item uses the same.
    fn needed(&mut self, item: &Item, pending: &Pending) -> Option<Before> {
        let slots = &mut self.conflicts.slots;
        if self.ways.is_elsewhere(slots, pending.at) {
            return None;
        }
        let op = pending.op.and_then(|op| self.operations.get(&op));
        let used = |r: &Registers| item.registers.iter().any(|u| u.meet(r));
        let added_to = |r: &Registers| item.adds_to.is_some_and(|u| u.meet(r));
        let waits_for_registers = pending.younger.is_some()
            && op.is_some_and(|op| {
                let (fills, reads) = (op.fills.as_ref(), op.reads.as_ref());
                fills.is_some_and(used) || reads.is_some_and(|r| used(r) || added_to(r))
            });
        if self.counted.is_of_threads() {
            return self.needed_of_thread(item, pending);
        }
        let (mut across, mut here) = (false, false);
        // The LDS operations of a wave are in order; a copy that does not go through registers is
        // not one of them. Where plain accesses are not counted they are not either.
        let elsewhere = match item.kind {
            Kind::Issue(_) => false,
            Kind::Elsewhere => true,
            _ => !self.counted.plain,
        };
        let asks_here = pending.younger.is_some() && elsewhere;
        let missed = pending.missed_by_others();
        if missed.is_some() || asks_here {
            for &class in &item.touches {
                let met = self.meeting(pending, class);
                across |= met == Meeting::AcrossWarps;
                here |= met != Meeting::Nowhere;
            }
        }
        match missed.filter(|_| across) {
            Some(before) => Some(before),
            None if waits_for_registers || here && asks_here => pending.wait_before(item.number),
            None => None,
        }
    }

    /// The same where a single thread waits: before the last barrier by which those who meet the
    /// access know of that.
    fn needed_of_thread(&mut self, item: &Item, pending: &Pending) -> Option<Before> {
        let classes = item.touches.iter();
        let met = classes.map(|&class| self.meeting(pending, class));
        let known = match met.max().unwrap_or(Meeting::Nowhere) {
            Meeting::Nowhere => return None,
            Meeting::InThread => None,
            Meeting::InWarp => pending.crossed_in_warp,
            // Where no barrier of the block lies between, ThreadSync has found lanes of a warp alone.
            Meeting::AcrossWarps => pending.crossed.or(pending.crossed_in_warp),
        };
        known.or_else(|| pending.wait_before(item.number))
    }

    /// A wait is missing.
    fn need(&mut self, before: Before, here: usize, at: usize, state: &mut State) {
        if self.mode == Mode::CheckPlain && state.list[at].op.is_some() {
            return;
        }
        let before = Before {
            at_most: before.at_most.min(wait_limit(self.counted.counter)),
            ..before
        };
        self.missing.get_or_insert(before);
        if self.mode != Mode::Insert {
            return;
        }
        let known = self.waits.entry(before.number).or_insert(before.at_most);
        *known = (*known).min(before.at_most);
        if before.number == here {
            state.wait(before.at_most);
        } else {
            // What else the wait completes is seen when the program is walked again.
            self.again = true;
            state.list.remove(at);
        }
    }

    fn meeting(&mut self, pending: &Pending, class: Class) -> Meeting {
        if self.conflicts.known_relation(pending.class, class) == Some(Relation::Apart) {
            return Meeting::Nowhere;
        }
        let slot = self.conflicts.slot(class);
        let slots = &mut self.conflicts.slots;
        if self.ways.is_apart(slots, pending.at, slot) {
            return Meeting::Nowhere;
        }
        let both = [pending.class, class];
        match self.ways.moves(&self.conflicts, pending.at, both) {
            true => Meeting::AcrossWarps,
            false => self.conflicts.relation(pending.class, class).meeting(),
        }
    }
}
