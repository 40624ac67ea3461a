//! Orders: what a pipelined loop does when, and all that follows from it.
//!
//! An [`Order`] lists the ops of one steady iteration and says how many iterations ahead of its
//! use each of them runs. Everything that makes it correct is derived from that:
//!
//! 1. **Legality and versions** ([`dependences`]): which pairs of ops depend on each other at
//!    which distance, how many versions of a buffer the order keeps alive, and whether the order
//!    breaks what the loop means.
//! 2. **Barriers** ([`barriers`]): the fewest places of the steady iteration at which the waves
//!    must meet, each as late as it can be.
//! 3. **Waits** ([`waits`]): before which barrier (or op) each counter must have fallen to which
//!    number, as loosely as the dependences allow.
//! 4. **Prologue and epilogue**: the steady iteration with everything outside the loop's range
//!    left out, and the waits of those sections counted for themselves ([`trace`]).
//!
//! Worked example: two copies and a gemm at `num_stages=3` on sm_80. The copies run two
//! iterations ahead and stand first, so each buffer has three versions. The gemm of iteration
//! `it` reads what was copied two iterations before; the copies overwrite what the gemm of the
//! iteration before has read. One barrier at the top serves both, and one wait before it that
//! leaves the younger group in flight:
//!
//! ```text
//! it = -2   copy A(0), copy B(0), commit
//! it = -1   copy A(1), copy B(1), commit
//! it        wait cp_async(1); barrier; copy A(it+2), copy B(it+2), commit; gemm(it)
//! ```
//!
//! Nothing here knows statements or instructions: the passes translate a loop body into ops and
//! the steps of the [`Schedule`] back into statements.

mod barriers;
mod dependences;
mod served;
pub mod streams;
mod trace;
mod waits;

use tilewright_ir::Counter;

use crate::footprint::Meeting;

/// One op of the body: a statement, or one micro-op.
#[derive(Clone, Debug)]
pub struct Op {
    /// Iterations ahead of the loop index at which it runs.
    pub distance: u32,
    pub touches: Vec<Touch>,
    pub completion: Completion,
    /// Its place in the body as it was written, which says what the loop means.
    pub program: usize,
}

/// When the effects of an op are done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// Before the next statement starts.
    Sync,
    /// When its counter says so. `instructions` is how many each wave certainly issues, zero
    /// under a condition; for a counter of groups, an op is (a part of) one group.
    Counted { counter: Counter, instructions: u32 },
}

/// An op reads or writes a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Touch {
    /// Index into [`Order::resources`].
    pub resource: usize,
    pub write: bool,
}

/// Storage that ops depend on each other through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resource {
    pub space: Space,
    /// Whether every iteration writes all of it before reading it, so that iterations may have
    /// versions of their own.
    pub private: bool,
}

/// Where a resource is, which says who else sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Space {
    /// Seen by all threads of the block.
    Shared,
    /// A thread's own.
    Register,
    /// Ordered between threads by no barrier that this engine sets.
    Global,
}

/// How the loop ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tail {
    /// The steady iteration runs to the end; ops beyond it are left out under a condition, and
    /// their groups are committed empty, so counts stay as they are.
    Guard,
    /// The last iterations are written out, with counts of their own.
    Peel,
}

/// An order of ops with all that the derivation needs to know of them.
#[derive(Clone, Debug)]
pub struct Order {
    /// In the order of a steady iteration.
    pub ops: Vec<Op>,
    pub resources: Vec<Resource>,
    /// Barriers that the order sets itself: how many before each op.
    pub barriers: Vec<u32>,
    /// How many barriers one half of the waves is behind the other: 0 or 1.
    pub lag: u32,
    pub tail: Tail,
    /// How often the loop runs, where that is constant.
    pub trip: Option<u64>,
    /// Versions of what is copied beyond those that the order keeps alive: whoever reads one may
    /// take so many iterations longer.
    pub spare: u32,
}

/// How threads meet when both ops touch the same version: op, its touch, op, its touch.
pub type Meets<'a> = &'a dyn Fn(usize, usize, usize, usize) -> Meeting;

/// What each section of the pipelined loop does. Iteration `it` of the steady section runs op `c` for
/// loop iteration `it + distance(c)`, in version `(it + distance(c)) % versions`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// By resource.
    pub versions: Vec<u32>,
    /// The largest distance.
    pub depth: u32,
    /// Iterations `-depth .. 0`; ops of loop iterations below zero are left out.
    pub prologue: Vec<Section>,
    /// Iterations `0 .. max(0, n - depth)`, or `0 .. n` with [`Tail::Guard`].
    pub steady: Section,
    /// Iterations `n - depth .. n`, those below zero skipped; empty with [`Tail::Guard`]. Ops of
    /// loop iterations beyond `n` are left out.
    pub epilogue: Vec<Section>,
    /// After everything: waits for what is still in flight.
    pub drain: Vec<Step>,
    /// What the waits and barriers of the steady section are for.
    pub served: Vec<Served>,
}

/// A step serves a need: op `later` needs op `earlier`, of its iteration or one before, to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Served {
    /// Index into the steady section's steps.
    pub step: usize,
    pub earlier: usize,
    pub later: usize,
}

/// The steps of one iteration, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Section {
    pub steps: Vec<Step>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Runs an op, by its index in the order.
    Run(usize),
    /// Closes a group.
    Commit(Counter),
    Wait {
        counter: Counter,
        at_most: u32,
    },
    Barrier,
    WarpSync,
}

/// Why an order cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OrderError {
    /// `later` depends on `earlier` of `iterations` before through the resource, and would run
    /// first.
    Breaks {
        earlier: usize,
        later: usize,
        resource: usize,
        iterations: u32,
    },
    /// The order keeps more than one version of a register resource alive.
    RegisterVersions { resource: usize, versions: u32 },
}

/// The most operations in flight that a wait leaves. What groups and phases count to has no end
/// that a kernel comes near; a wait for them leaves so many all the same.
pub fn wait_limit(counter: Counter) -> u32 {
    const MOST_GROUPS: u32 = 63;
    // A full counter does not tell how many there are: clang waits for one less, too.
    counter
        .most_in_flight()
        .map_or(MOST_GROUPS, |most| most - 1)
}

/// Derives versions, barriers, waits, prologue and epilogue of an order.
pub fn derive(order: &Order, meets: Meets<'_>) -> Result<Schedule, OrderError> {
    let versions = dependences::versions(order, meets)?;
    let needs = dependences::needs(order, &versions, meets);
    let steady = barriers::place(order, &needs);
    let longest = versions.iter().copied().max().unwrap_or(1);
    let mut plan = trace::Plan::new(order, &needs, steady, longest);
    plan.prune_barriers();
    waits::derive(&mut plan);
    Ok(plan.schedule(versions))
}
