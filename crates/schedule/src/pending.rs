//! The accesses that no barrier has closed, as ThreadSync's walk carries them along.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::Var;

use crate::conflicts::Class;
use crate::facts::Facts;
use crate::slots::Slot;

/// The accesses that no barrier has closed, each once.
#[derive(Clone, Default, Debug)]
pub struct Open {
    pub list: Vec<Pending>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pending {
    pub class: Class,
    /// The version that it touched, in terms of the variables' values by now; `None` may be any.
    pub slot: Option<Slot>,
    /// What held there and on the way here, in terms of the variables' values by now.
    pub facts: Facts,
    /// The variables that have other values by now: those of the loops that have gone on to a
    /// later iteration since.
    pub changed: Changed,
    /// Whether each warp has synchronised since.
    pub in_warp: bool,
    /// Whether it was done in a region of some warp groups.
    pub in_region: bool,
}

impl Open {
    pub fn add(&mut self, pending: Pending) {
        match self.list.iter_mut().find(|p| p.is(&pending)) {
            // On one of the ways here the warps have not synchronised.
            Some(known) => known.in_warp &= pending.in_warp,
            None => self.list.push(pending),
        }
    }

    pub fn merge(&mut self, other: Open) {
        for pending in other.list {
            self.add(pending);
        }
    }

    pub fn has(&self, pending: &Pending) -> bool {
        self.list.iter().any(|p| p.is(pending))
    }

    /// Whether what follows for the access follows from what is open here.
    pub fn covers(&self, pending: &Pending) -> bool {
        let mut same = self.list.iter().filter(|p| p.is(pending));
        same.any(|p| pending.in_warp || !p.in_warp)
    }

    pub fn sync_warps(&mut self) {
        for pending in &mut self.list {
            pending.in_warp = true;
        }
    }
}

impl Pending {
    /// Whether it is the same access, wherever warps have synchronised.
    fn is(&self, other: &Pending) -> bool {
        let in_warp = self.in_warp;
        *self == Pending { in_warp, ..*other }
    }
}

/// A set of variables, by number; zero is the empty one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Changed(usize);

/// The sets of variables that the walk has seen, so that a set is compared by its number.
#[derive(Debug)]
pub struct ChangedSets {
    sets: Vec<FxHashSet<Var>>,
    /// A set and the loop whose variables were added to it.
    unions: FxHashMap<(Changed, usize), Changed>,
}

impl ChangedSets {
    pub fn new() -> ChangedSets {
        ChangedSets {
            sets: vec![FxHashSet::default()],
            unions: FxHashMap::default(),
        }
    }

    pub fn vars(&self, set: Changed) -> &FxHashSet<Var> {
        &self.sets[set.0]
    }

    /// The set with the variables of the loop at a place.
    pub fn union(&mut self, set: Changed, at: usize, more: &FxHashSet<Var>) -> Changed {
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
