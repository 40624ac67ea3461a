//! What a group does on its way: the events that a run is made of.

use std::rc::Rc;

use tilewright_ir::{Buffer, Counter, FenceKind, Var};

use super::conditions::Under;
use super::scan::Key;
use super::touch::Touches;

#[derive(Clone, Debug)]
pub struct Event {
    pub kind: EventKind,
    pub stmt: Key,
    /// Where the loops stand: a number of [`Trace::moments`].
    pub moment: u32,
}

/// Blocks of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blocks {
    Own,
    All,
    /// A bit for each.
    Some(u16),
}

impl Blocks {
    /// Whether one of so many is among them, for a group of block `own`.
    pub fn contains(self, rank: usize, own: usize) -> bool {
        match self {
            Blocks::Own => rank == own,
            Blocks::All => true,
            Blocks::Some(mask) => u32::from(mask).checked_shr(rank as u32).unwrap_or(0) & 1 == 1,
        }
    }
}

#[derive(Clone, Debug)]
pub enum EventKind {
    /// Accesses that are done when the next event comes.
    Touch(Rc<Touches>),
    /// What follows happens under this condition.
    Under(Under),
    /// An asynchronous operation starts: so many instructions of a counter. One that is not
    /// certain may not be there at all, whatever the condition.
    Issue {
        touches: Rc<Touches>,
        counter: Counter,
        count: u32,
        certain: bool,
    },
    /// A bulk load starts: an arrival barrier hears of so many bytes when they have landed.
    Bulk {
        touches: Rc<Touches>,
        barrier: (Buffer, i64),
        bytes: i64,
        /// Whether two of its boxes lie over each other.
        twice: bool,
        /// The blocks of the cluster that it goes to.
        to: Blocks,
    },
    Commit(Counter),
    Wait(Counter, u32),
    /// All but so many groups of bulk stores have read what they store.
    WaitRead(u32),
    /// All waves of the block; `drains` waits for the wave's own operations first, `bare`
    /// ones may meet at different statements.
    Barrier {
        bare: bool,
        drains: bool,
    },
    Named {
        id: u32,
        count: u32,
    },
    /// All waves of all blocks of the cluster.
    Cluster,
    /// The two halves of that.
    ClusterArrive,
    ClusterAwait,
    SyncWarp,
    Fence(FenceKind),
    Nothing,
    /// So many arrivals of the group, in each of these blocks of the cluster.
    Arrive {
        barrier: (Buffer, i64),
        count: u32,
        at: Blocks,
    },
    /// Bytes are announced to the present phase.
    Expect {
        barrier: (Buffer, i64),
        bytes: i64,
    },
    Await {
        barrier: (Buffer, i64),
        parity: i64,
    },
    /// The next iteration of a loop begins.
    Iteration,
    /// So many steps of a loop's index are left out.
    Skip(Var, i64),
    /// A loop begins, whose states are compared or not.
    EnterLoop(bool),
    /// A loop ends. With a place and a period the state there must have been the one a period
    /// before, so that iterations left out change nothing.
    LeaveLoop(Option<(usize, usize)>),
}

impl Event {
    /// The loop of which iterations are left out here, and how far its index jumps.
    pub fn skips(&self) -> Option<(Var, i64)> {
        match self.kind {
            EventKind::Skip(var, by) => Some((var, by)),
            _ => None,
        }
    }
}

impl EventKind {
    /// Whether a group of block `own` writes memory of block `rank` of the cluster by it.
    pub fn writes_in(&self, rank: usize, own: usize) -> bool {
        match self {
            EventKind::Bulk { to, .. } => to.contains(rank, own),
            _ => rank == own,
        }
    }

    /// The accesses of the event, done at once or later.
    pub fn touches(&self) -> Option<&Rc<Touches>> {
        match self {
            EventKind::Touch(touches)
            | EventKind::Issue { touches, .. }
            | EventKind::Bulk { touches, .. } => Some(touches),
            _ => None,
        }
    }
}

/// A group's way.
#[derive(Default, Debug)]
pub struct Trace {
    pub events: Vec<Event>,
    /// Values of the loops around an event, outermost first.
    pub moments: Vec<Rc<[(Var, i64)]>>,
    /// Patterns of conditions that change from iteration to iteration.
    pub turns: u32,
}
