//! The walk over a kernel's items that finds the waits which are missing.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{Counter, Var};

use super::Waits;
use super::outline::{Item, Kind, Operation, Repeated};
use super::state::{Before, Pending, State};
use crate::conflicts::{Class, Conflicts, Relation};
use crate::footprint::Meeting;
use crate::order::wait_limit;
use crate::slots::{Slot, Slots};

/// After so many iterations an access may have touched any version.
const OLD: u8 = 4;

pub struct Walk<'i, 'k> {
    pub conflicts: Conflicts<'k>,
    /// What each operation fills, by its statement's number.
    pub operations: FxHashMap<usize, &'i Operation>,
    pub waits: Waits,
    pub mode: Mode,
    /// The first wait that is missing.
    pub missing: Option<Before>,
    /// Whether a wait was put in behind the walk's back: earlier than where it was needed.
    pub again: bool,
    /// Whether something was under way at a bare barrier.
    pub crossed: bool,
    /// Whether each barrier waits for all before it, because wave groups run barriers apart.
    pub strict: bool,
    /// By loop, the variables that have other values in its next iteration.
    pub changed: FxHashMap<usize, &'i FxHashSet<Var>>,
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

impl Walk<'_, '_> {
    pub fn block(&mut self, items: &[Item], state: &mut State) {
        for item in items {
            if self.missing.is_some() && self.mode != Mode::Insert {
                return;
            }
            self.item(item, state);
        }
    }

    fn item(&mut self, item: &Item, state: &mut State) {
        if let Some(&at_most) = self.waits.get(&item.number) {
            state.wait(at_most);
        }
        self.wait_for_use(item, state);
        if !matches!(item.kind, Kind::Issue(_) | Kind::Elsewhere) {
            for &class in &item.touches {
                state.add(Pending::new(class, None, self.conflicts.slot(class)));
            }
        }
        match &item.kind {
            Kind::Plain | Kind::Elsewhere => {}
            Kind::Issue(operation) => {
                state.count(operation.count);
                for &class in &item.touches {
                    let slot = self.conflicts.slot(class);
                    state.add(Pending::new(class, Some(item.number), slot));
                }
            }
            Kind::Wait(at_most) => state.wait(*at_most),
            Kind::Drains => state.list.clear(),
            Kind::Bare if self.strict => {
                self.wait_for_all(item, state, |_| true);
                state.list.clear();
            }
            Kind::Bare => {
                state.cross(item.number);
                self.crossed |= !state.list.is_empty();
            }
            Kind::Meets => {
                self.wait_for_all(item, state, |p| p.op.is_some());
                state.complete(|_| true);
            }
            Kind::Loop(l) => self.repeated(item.number, l, state),
            Kind::Unrolled(iterations) => self.unrolled(item.number, iterations, state),
            Kind::Branch { then, otherwise } => {
                let mut other = state.clone();
                self.block(then, state);
                self.block(otherwise, &mut other);
                state.join(other);
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
        for mut pending in std::mem::take(&mut state.list) {
            pending.entered = pending.entered.filter(|e| e.number != number);
            state.add(pending);
        }
    }

    /// A loop: from the outside, and from its own end until nothing new comes up.
    fn repeated(&mut self, number: usize, l: &Repeated, state: &mut State) {
        let skipped = l.may_skip.then(|| state.clone());
        for pending in &mut state.list {
            if let Some(index) = l.index {
                pending.values.push((index.var, index.first));
            }
        }
        state.enter(number);
        let mut before = State::default();
        before.join(std::mem::take(state));
        loop {
            let mut after = before.clone();
            self.block(&l.body, &mut after);
            let mut more = false;
            if l.again {
                for pending in &after.list {
                    more |= before.add(self.carried(number, l, pending.clone()));
                }
            }
            if !more {
                *state = after;
                break;
            }
        }
        for mut pending in std::mem::take(&mut state.list) {
            self.leave(number, l, &mut pending);
            state.add(pending);
        }
        if let Some(skipped) = skipped {
            state.join(skipped);
        }
    }

    /// A pending access in terms of the next iteration.
    fn carried(&mut self, number: usize, l: &Repeated, mut pending: Pending) -> Pending {
        if !pending.moved.contains(&number) {
            pending.moved.push(number);
            pending.moved.sort_unstable();
        }
        pending.age = (pending.age + 1).min(OLD);
        if pending.age == OLD {
            pending.slot = None;
            pending.values.clear();
            return pending;
        }
        let slots = &mut self.conflicts.slots;
        let own = l.index.map(|index| index.var);
        pending.slot = pending
            .slot
            .filter(|s| !is_lost(slots, *s, own, &l.changed));
        if let Some(var) = own {
            // What the index was is one less than what it is.
            pending.slot = pending.slot.and_then(|s| slots.shifted(s, var, -1));
        }
        pending
            .values
            .retain(|(_, value)| !is_lost(slots, *value, own, &l.changed));
        pending.values.retain_mut(|(var, value)| {
            if Some(*var) != own {
                return !l.changed.contains(var);
            }
            let next = slots.less(*value, -1);
            *value = next.unwrap_or(*value);
            next.is_some()
        });
        pending
    }

    /// Behind a loop its index is the last one, and waits are for what happens here.
    fn leave(&mut self, number: usize, l: &Repeated, pending: &mut Pending) {
        let slots = &mut self.conflicts.slots;
        pending.entered = pending.entered.filter(|e| e.number != number);
        match l.index {
            Some(index) => {
                pending.values.retain(|(var, _)| *var != index.var);
                let last = |s: Slot| slots.with_value(s, index.var, index.last, index.residue);
                pending.slot = pending.slot.and_then(last);
            }
            None => {
                pending.slot = pending
                    .slot
                    .filter(|s| !is_lost(slots, *s, None, &l.changed));
            }
        }
        let inner = |v: Var| l.changed.contains(&v) && l.index.is_none_or(|i| i.var != v);
        pending.slot = pending.slot.filter(|s| !slots.mentions(*s, inner));
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
        let op = pending.op.and_then(|op| self.operations.get(&op));
        let filled = op.and_then(|op| op.fills);
        let used = |r: &super::registers::Registers| item.registers.iter().any(|u| u.meet(r));
        let waits_for_registers = pending.younger.is_some() && filled.as_ref().is_some_and(used);
        let (mut across, mut here) = (false, false);
        // The LDS operations of a wave are in order; a copy that does not go through registers is
        // not one of them.
        let elsewhere = matches!(item.kind, Kind::Elsewhere);
        let asks_here = pending.younger.is_some() && elsewhere;
        if pending.crossed.is_some() || asks_here {
            for &class in &item.touches {
                let met = self.meeting(pending, class);
                across |= met == Meeting::AcrossWarps;
                here |= met != Meeting::Nowhere;
            }
        }
        match pending.crossed.filter(|_| across) {
            Some(before) => Some(before),
            None if waits_for_registers || here && asks_here => pending.wait_before(item.number),
            None => None,
        }
    }

    /// A wait is missing.
    fn need(&mut self, before: Before, here: usize, at: usize, state: &mut State) {
        if self.mode == Mode::CheckPlain && state.list[at].op.is_some() {
            return;
        }
        let before = Before {
            at_most: before.at_most.min(wait_limit(Counter::Lgkmcnt)),
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
        if let (Some(then), Some(now)) = (pending.slot, self.conflicts.slot(class))
            && let Some(now) = self.conflicts.slots.with_values(now, &pending.values)
            && self.conflicts.slots.differ(then, now, &[])
        {
            return Meeting::Nowhere;
        }
        let moved = pending.moved.iter().any(|l| {
            self.changed.get(l).is_some_and(|changed| {
                let moves = |class: Class| self.conflicts.moves(class, changed);
                moves(pending.class) || moves(class)
            })
        });
        match moved {
            true => Meeting::AcrossWarps,
            false => self.conflicts.relation(pending.class, class).meeting(),
        }
    }
}

/// Whether a form means something else after variables have changed, other than the index.
fn is_lost(slots: &Slots, slot: Slot, own: Option<Var>, changed: &FxHashSet<Var>) -> bool {
    slots.mentions(slot, |v| Some(v) != own && changed.contains(&v))
}
