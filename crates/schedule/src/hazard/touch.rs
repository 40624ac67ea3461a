//! Which memory a unit touches: its accesses as data.
//!
//! A *unit* is a statement without synchronisation inside: all its iterations by all threads
//! may happen in any order, so one set of places for each of its accesses says everything.

use std::rc::Rc;

use tilewright_ir::{Buffer, Var};

use super::scan::Key;

/// One access of a unit to a shared buffer or an exchanged tensor.
#[derive(Clone, Debug)]
pub struct Touch {
    pub stmt: Key,
    pub root: Buffer,
    /// Whether that is a tensor, not shared memory.
    pub tensor: bool,
    /// The version; `None` may be any.
    pub slot: Option<i64>,
    pub write: bool,
    pub atomic: bool,
    /// The set of places, of [`Places`].
    pub set: u32,
    /// The iteration of a pipelined loop that it belongs to, where the program says so.
    pub iteration: Option<Iteration>,
    /// The branches of the unit that it is in and that all threads take the same way.
    pub arms: Rc<[Arm]>,
}

/// One way of a branch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Arm {
    pub branch: Key,
    pub holds: bool,
}

/// An iteration of a pipelined loop.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Iteration {
    pub number: i64,
    /// The loop whose index it is counted from; none in a prologue or an epilogue.
    pub from: Option<Var>,
}

impl Touch {
    /// The set, as far as the steady state of a loop depends on it: an iteration goes on in a
    /// tensor where the one before left off. What no barrier has closed by then adds up.
    pub fn steady_set(&self) -> Option<u32> {
        (!self.tensor).then_some(self.set)
    }

    /// The same so many iterations later.
    pub fn counted_on(&self, later: i64) -> Touch {
        let iteration = self.iteration.map(|i| Iteration {
            number: i.number + later,
            ..i
        });
        Touch {
            iteration,
            ..self.clone()
        }
    }

    /// Whether this is the same access to the same places.
    pub fn repeats(&self, other: &Touch) -> bool {
        (self.stmt, self.set, self.slot, self.write)
            == (other.stmt, other.set, other.slot, other.write)
    }

    /// Whether the two are on different ways of one branch, so that only one is done.
    pub fn excludes(&self, other: &Touch) -> bool {
        let mut other = other.arms.iter();
        other.any(|o| {
            let mut own = self.arms.iter();
            own.any(|a| a.branch == o.branch && a.holds != o.holds)
        })
    }

    /// Which way of a branch it is on.
    pub(super) fn way_of(&self, branch: Key) -> Option<bool> {
        let arm = self.arms.iter().find(|a| a.branch == branch);
        arm.map(|a| a.holds)
    }
}

/// One access of a unit to a register array that asynchronous loads write.
#[derive(Clone, Debug)]
pub struct RegisterTouch {
    pub stmt: Key,
    pub root: Buffer,
    pub slot: Option<i64>,
    /// The elements, from and to; all of the array where the index is not known.
    pub range: Option<(i64, i64)>,
    pub write: bool,
}

impl RegisterTouch {
    pub fn meets(&self, other: &RegisterTouch) -> bool {
        let apart = |a: Option<(i64, i64)>, b: Option<(i64, i64)>| match (a, b) {
            (Some(a), Some(b)) => a.1 <= b.0 || b.1 <= a.0,
            _ => false,
        };
        let slots = match (self.slot, other.slot) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        };
        self.root == other.root && slots && !apart(self.range, other.range)
    }
}

/// All accesses of a unit.
#[derive(Clone, Default, Debug)]
pub struct Touches {
    pub shared: Vec<Touch>,
    pub registers: Vec<RegisterTouch>,
}

impl Touches {
    pub fn is_empty(&self) -> bool {
        self.shared.is_empty() && self.registers.is_empty()
    }
}

/// What a unit that is a branch touches, taken apart.
#[derive(Clone, Debug)]
pub struct Ways {
    /// On either way.
    pub always: Rc<Touches>,
    /// Where the condition holds, and where it does not.
    pub arms: [Rc<Touches>; 2],
    /// The unit's own, kept so that its address stays its name.
    pub(super) _whole: Rc<Touches>,
}
