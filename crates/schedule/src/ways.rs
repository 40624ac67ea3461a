//! An access that is carried along: on which way it was done, and what that means by now.
//!
//! ThreadSync and RegisterWaits walk a kernel with the accesses that something is still to happen
//! to. Where ways part and meet, and where loops go on and end, what is known of such an access is
//! put in terms of the place that the walk has come to.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::Var;

use crate::conflicts::{Class, Conflicts};
use crate::facts::{FactSets, Facts};
use crate::outline::Index;
use crate::slots::{Slot, Slots};

/// Where an access was done, in terms of the variables' values by now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The version that it touched; `None` may be any.
    pub slot: Option<Slot>,
    /// What held there and on the way here.
    pub facts: Facts,
    /// The variables that have other values by now: those of the loops that have gone on to a
    /// later iteration since.
    pub changed: Changed,
    /// Of those, the index that certainly has another value: that of the outermost loop that has
    /// gone on.
    pub moved: Option<Var>,
    /// Whether memory has been written since that places are computed from.
    pub rewritten: bool,
}

/// A loop as an access is carried through it.
#[derive(Clone, Copy, Debug)]
pub struct Around<'i> {
    /// Its number.
    pub at: usize,
    /// The variables that have other values in the next iteration.
    pub changed: &'i FxHashSet<Var>,
    pub index: Option<&'i Index>,
}

/// How long ago an iteration was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Age {
    One,
    Any,
}

/// What the walk knows.
#[derive(Debug, Default)]
pub struct Ways {
    known: FactSets,
    changed: ChangedSets,
    /// What holds where the walk stands.
    pub here: Facts,
}

impl Ways {
    /// An access that is done here.
    pub fn here(&self, slot: Option<Slot>) -> Place {
        Place {
            slot,
            facts: self.here,
            changed: Changed::default(),
            moved: None,
            rewritten: false,
        }
    }

    /// What holds here where these facts do too; `None` where that is never.
    pub fn inside(&mut self, slots: &Slots, facts: &[Slot]) -> Option<Facts> {
        self.known.with(slots, self.here, facts)
    }

    /// The place with more facts; `None` where these say that the access was not done.
    pub fn with(&mut self, slots: &Slots, place: Place, facts: &[Slot]) -> Option<Place> {
        let facts = self.known.with(slots, place.facts, facts)?;
        Some(Place { facts, ..place })
    }

    /// The place in terms of the next iteration; `None` where there is none then.
    pub fn carried(
        &mut self,
        slots: &mut Slots,
        l: Around<'_>,
        mut place: Place,
        age: Age,
    ) -> Option<Place> {
        let outer = place.moved.is_some_and(|var| l.changed.contains(&var));
        if place.changed == Changed::default() || outer {
            place.moved = l.index.map(|index| index.var);
        }
        place.changed = self.changed.union(place.changed, l.at, l.changed);
        let kept = l.index.map(|i| i.var).filter(|_| age == Age::One);
        let next = |slots: &mut Slots, form: Slot| {
            if slots.mentions(form, |v| Some(v) != kept && l.changed.contains(&v)) {
                return None;
            }
            match kept {
                // What the index was is one less than what it is.
                Some(var) => slots.shifted(form, var, -1),
                None => Some(form),
            }
        };
        place.slot = place.slot.and_then(|s| next(slots, s));
        place.facts = self.known.changed(slots, place.facts, next)?;
        let later = l.index.map(|index| index.later);
        self.with(slots, place, later.as_slice())
    }

    /// The place behind a loop that has run: its index is the last one, and what else changes in
    /// it means nothing any more.
    pub fn behind(&mut self, slots: &mut Slots, l: Around<'_>, mut place: Place) -> Option<Place> {
        let own = l.index.map(|index| index.var);
        let last = |slots: &mut Slots, form: Slot| {
            if slots.mentions(form, |v| Some(v) != own && l.changed.contains(&v)) {
                return None;
            }
            match l.index {
                Some(index) => slots.with_value(form, index.var, index.last, index.residue),
                None => Some(form),
            }
        };
        place.slot = place.slot.and_then(|s| last(slots, s));
        place.facts = self.known.changed(slots, place.facts, last)?;
        let runs = l.index.map(|index| index.runs);
        self.with(slots, place, runs.as_slice())
    }

    /// Whether the access is never done where the walk stands.
    pub fn is_elsewhere(&mut self, slots: &mut Slots, place: Place) -> bool {
        self.known.zeros(slots, place.facts, self.here).is_none()
    }

    /// Whether the access is never done where the walk stands, or to another version than this.
    pub fn is_apart(&mut self, slots: &mut Slots, place: Place, slot: Option<Slot>) -> bool {
        let Some(zeros) = self.known.zeros(slots, place.facts, self.here) else {
            return true;
        };
        matches!((place.slot, slot), (Some(then), Some(now)) if slots.differ(then, now, zeros))
    }

    /// Whether no two threads meet in a tensor: the places of both classes have moved apart by
    /// now, or each thread keeps to its own in one dimension.
    pub fn are_parted(
        &self,
        conflicts: &mut Conflicts<'_>,
        place: Place,
        [a, b]: [Class; 2],
    ) -> bool {
        let changed = self.changed.vars(place.changed);
        let moved = place.moved;
        conflicts.is_tensor(a)
            && (moved.is_some_and(|moved| conflicts.parted(a, b, moved, changed))
                || conflicts.separated(a, b, changed))
    }

    /// Whether the places of either class are others by now.
    pub fn moves(&self, conflicts: &Conflicts<'_>, place: Place, classes: [Class; 2]) -> bool {
        let changed = self.changed.vars(place.changed);
        let rewritten = place.rewritten || !changed.is_empty();
        classes
            .iter()
            .any(|c| conflicts.moves(*c, changed, rewritten))
    }
}

/// A set of variables, by number; zero is the empty one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Changed(usize);

/// The sets of variables that the walk has seen, so that a set is compared by its number.
#[derive(Debug)]
struct ChangedSets {
    sets: Vec<FxHashSet<Var>>,
    /// A set and the loop whose variables were added to it.
    unions: FxHashMap<(Changed, usize), Changed>,
}

impl ChangedSets {
    fn new() -> ChangedSets {
        ChangedSets {
            sets: vec![FxHashSet::default()],
            unions: FxHashMap::default(),
        }
    }

    fn vars(&self, set: Changed) -> &FxHashSet<Var> {
        &self.sets[set.0]
    }

    /// The set with the variables of the loop at a place.
    fn union(&mut self, set: Changed, at: usize, more: &FxHashSet<Var>) -> Changed {
        if let Some(known) = self.unions.get(&(set, at)) {
            return *known;
        }
        let all: FxHashSet<Var> = self.sets[set.0].union(more).copied().collect();
        let number = self.sets.iter().position(|s| *s == all);
        let number = number.unwrap_or_else(|| {
            self.sets.push(all);
            self.sets.len() - 1
        });
        self.unions.insert((set, at), Changed(number));
        Changed(number)
    }
}

impl Default for ChangedSets {
    fn default() -> ChangedSets {
        ChangedSets::new()
    }
}
