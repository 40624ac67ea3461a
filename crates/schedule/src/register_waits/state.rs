//! What may be under way at a point of the program.
//!
//! An operation is *pending* until its wave has waited for it. If it is still under way when
//! the wave passes a bare barrier, it has *crossed* it: other waves go on as if it were complete,
//! and what they do may come before it. It stays pending for them, also after a wait, until the
//! next barrier of the block finds it complete. Where groups of waves run a barrier apart, a wave
//! that is ahead is a barrier further than others: then the one after that must find it so, too.

use crate::conflicts::Class;
use crate::ways::Place;

/// More than a counter holds tells nothing more.
const MOST: u32 = 64;

/// The pending accesses, each once.
#[derive(Clone, Default, Debug)]
pub struct State {
    pub list: Vec<Pending>,
}

/// An access that other waves, or registers, may meet too early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pending {
    pub class: Class,
    /// The operation, by its statement's number; none for an access without a counter, which is
    /// in order for its own wave and is waited for with everything else.
    pub op: Option<usize>,
    pub at: Place,
    /// How many iterations of loops around it have gone by since.
    pub age: u8,
    /// While it is under way: how many others were certainly issued after it.
    pub younger: Option<u32>,
    /// The wait before the last barrier that it crossed, which would have held it up; where groups
    /// of waves run a barrier apart, before the last but one.
    pub crossed: Option<Before>,
    /// Where groups of waves run a barrier apart: the wait before the last one.
    pub crossed_last: Option<Before>,
    /// The same for barriers of its warp alone, too.
    pub crossed_in_warp: Option<Before>,
    /// The wait before the outermost loop that is entered since and has not been left: inside,
    /// a wait would be for the first iteration alone.
    pub entered: Option<Before>,
}

/// A wait before a statement that leaves so many in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Before {
    pub number: usize,
    pub at_most: u32,
}

impl Pending {
    pub fn new(class: Class, op: Option<usize>, at: Place) -> Pending {
        Pending {
            class,
            op,
            at,
            age: 0,
            younger: Some(0),
            crossed: None,
            crossed_last: None,
            crossed_in_warp: None,
            entered: None,
        }
    }

    /// The wait that other waves miss which come to the same behind a barrier.
    pub fn missed_by_others(&self) -> Option<Before> {
        self.crossed.or(self.crossed_last)
    }

    /// The wait that completes it, where it is needed before this statement.
    pub fn wait_before(&self, number: usize) -> Option<Before> {
        let at_most = self.younger?;
        Some(self.entered.unwrap_or(Before { number, at_most }))
    }

    /// The same behind a loop that was entered since: waits are for what happens here.
    pub fn left(mut self, number: usize) -> Pending {
        self.entered = self.entered.filter(|e| e.number != number);
        self
    }

    /// Whether somebody may still meet it too early.
    fn is_open(&self) -> bool {
        self.younger.is_some()
            || self.missed_by_others().is_some()
            || self.crossed_in_warp.is_some()
    }

    /// Whether both are the same in all but how much came after them.
    fn is_like(&self, other: &Pending) -> bool {
        let place = |b: Option<Before>| b.map(|b| b.number);
        self.class == other.class
            && self.op == other.op
            && self.at == other.at
            && self.age == other.age
            && self.younger.is_some() == other.younger.is_some()
            && place(self.crossed) == place(other.crossed)
            && place(self.crossed_last) == place(other.crossed_last)
            && place(self.crossed_in_warp) == place(other.crossed_in_warp)
            && place(self.entered) == place(other.entered)
    }

    /// Keeps of both what was surely issued. Returns whether that is less than before.
    fn weaken(&mut self, other: &Pending) -> bool {
        let mut changed = false;
        if let (Some(own), Some(other)) = (&mut self.younger, other.younger) {
            changed |= other < *own;
            *own = other.min(*own);
        }
        for (own, other) in [
            (&mut self.crossed, other.crossed),
            (&mut self.crossed_last, other.crossed_last),
            (&mut self.crossed_in_warp, other.crossed_in_warp),
            (&mut self.entered, other.entered),
        ] {
            if let (Some(own), Some(other)) = (own, other) {
                changed |= other.at_most < own.at_most;
                own.at_most = own.at_most.min(other.at_most);
            }
        }
        changed
    }
}

impl State {
    /// Adds an access. Returns whether that changes anything.
    pub fn add(&mut self, pending: Pending) -> bool {
        match self.list.iter_mut().find(|p| p.is_like(&pending)) {
            Some(known) => known.weaken(&pending),
            None => {
                self.list.push(pending);
                true
            }
        }
    }

    pub fn has(&self, pending: &Pending) -> bool {
        self.list.iter().any(|p| p.is_like(pending))
    }

    /// What may be pending on either of two ways. Returns whether that is more.
    pub fn join(&mut self, other: State) -> bool {
        let mut changed = false;
        for pending in other.list {
            changed |= self.add(pending);
        }
        changed
    }

    /// A loop is entered.
    pub fn enter(&mut self, number: usize) {
        for pending in &mut self.list {
            if let (None, Some(at_most)) = (pending.entered, pending.younger) {
                pending.entered = Some(Before { number, at_most });
            }
        }
    }

    /// So many more instructions are counted.
    pub fn count(&mut self, instructions: u32) {
        for pending in &mut self.list {
            if let (Some(younger), Some(_)) = (&mut pending.younger, pending.op) {
                *younger = (*younger + instructions).min(MOST);
            }
        }
    }

    /// The wave waits until so many are left.
    pub fn wait(&mut self, at_most: u32) {
        self.complete(|p| p.younger.is_some_and(|younger| younger >= at_most));
    }

    /// These are complete; who has crossed a barrier stays pending for others.
    pub fn complete(&mut self, which: impl Fn(&Pending) -> bool) {
        self.list.retain_mut(|pending| {
            if which(pending) {
                pending.younger = None;
            }
            pending.is_open()
        });
    }

    /// A barrier of the block that waits for nothing, at this statement.
    pub fn cross(&mut self, number: usize) {
        self.list.retain(|p| p.younger.is_some());
        for pending in &mut self.list {
            pending.crossed = pending.wait_before(number);
            pending.crossed_in_warp = pending.crossed;
        }
    }

    /// The same where groups of waves run a barrier apart.
    pub fn cross_apart(&mut self, number: usize) {
        for pending in &mut self.list {
            pending.crossed = pending.crossed_last;
            pending.crossed_last = pending.wait_before(number);
            pending.crossed_in_warp = None;
        }
        self.list.retain(Pending::is_open);
    }

    /// Whether something is under way.
    pub fn is_busy(&self) -> bool {
        self.list.iter().any(|p| p.younger.is_some())
    }

    /// A barrier of each warp.
    pub fn cross_in_warp(&mut self, number: usize) {
        for pending in &mut self.list {
            pending.crossed_in_warp = pending.wait_before(number);
        }
        self.list.retain(Pending::is_open);
    }
}
