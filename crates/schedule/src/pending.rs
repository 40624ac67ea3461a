//! The accesses that no barrier has closed, as ThreadSync's walk carries them along.

use crate::conflicts::Class;
use crate::outline::GroupSet;
use crate::ways::Place;

/// The accesses that no barrier has closed, each once.
#[derive(Clone, Default, Debug)]
pub struct Open {
    pub list: Vec<Pending>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pending {
    pub class: Class,
    pub at: Place,
    /// Whether each warp has synchronised since.
    pub in_warp: bool,
    /// The warp groups in whose region it was done; none where the whole block did it.
    pub groups: GroupSet,
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

    /// What places are computed from is something else from here on.
    pub fn rewrite_places(&mut self) {
        let mut changed = Open::default();
        for mut pending in std::mem::take(&mut self.list) {
            pending.at.rewritten = true;
            changed.add(pending);
        }
        *self = changed;
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
