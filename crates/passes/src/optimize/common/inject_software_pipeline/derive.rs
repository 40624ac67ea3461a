//! What the schedule engine makes of pieces in an order.

use std::cell::RefCell;

use rustc_hash::FxHashSet;
use tilewright_ir::uniform::Uniformity;
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{Block, Buffer, Expr, Func, Kernel, Loop, Stmt, StmtKind, Target, Var};
use tilewright_schedule::access::{Collector, Lets};
use tilewright_schedule::conflicts::{Class, Conflicts, Relation};
use tilewright_schedule::footprint::Meeting;
use tilewright_schedule::order::{self, OrderError, Schedule, Tail};

use super::super::effects::Effects;
use super::super::order_of::{Placed, order_of};
use super::pieces::Pieces;
use crate::threads::thread_number;

/// The engine's answer.
#[derive(Clone, Debug)]
pub(super) struct Scheduled {
    pub schedule: Schedule,
    /// The buffers of the schedule's resources.
    pub buffers: Vec<Buffer>,
    pub tail: Tail,
    /// Iterations that are in hand at a time.
    pub stages: u32,
    /// Where the second half of the block's waves is a barrier behind the first: which half a thread
    /// is in, 0 or 1.
    pub half: Option<Expr>,
}

/// What an order itself asks for.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    /// Barriers before each piece.
    pub barriers: &'a [u32],
    /// Versions of what is copied, beyond those that it needs.
    pub spare: u32,
    /// By how many barriers the second half of the waves is behind the first.
    pub lag: u32,
}

impl Scheduled {
    /// How many versions the loop keeps of a buffer.
    pub fn versions(&self, buffer: Buffer) -> u32 {
        let at = self.buffers.iter().position(|b| *b == buffer);
        at.map_or(1, |at| self.schedule.versions[at])
    }
}

/// Where a loop stands.
pub(super) struct Site<'a> {
    pub func: &'a Func,
    pub kernel: &'a Kernel,
    pub uniformity: &'a Uniformity<'a>,
    pub target: Target,
    /// The names around the loop.
    pub lets: &'a Lets,
}

/// Derives versions, waits and barriers of the pieces in their order. `meet` says how threads of two
/// of them meet in a buffer. The error names two pieces and the buffer between them.
pub(super) fn derive(
    site: &Site<'_>,
    l: &Loop,
    pieces: &Pieces,
    asked: Asked<'_>,
    meet: &dyn Fn(usize, usize, Buffer) -> Meeting,
) -> Result<Scheduled, (OrderError, Buffer)> {
    let func = site.func;
    let stmts = pieces.list.iter().map(|p| &p.stmt);
    let effects: Vec<Effects> = stmts.map(|s| with_names(func, s, &pieces.lets)).collect();
    let placed = pieces.list.iter().zip(&effects);
    let placed: Vec<Placed<'_>> = placed
        .map(|(piece, effects)| Placed {
            effects,
            distance: piece.distance,
            program: piece.program,
            completion: piece.completion,
        })
        .collect();
    // Empty groups keep a guarded loop's counts as they are. Loads that are counted one by one would
    // be missing from them.
    let tail = match site.target.machine().load_counter {
        Some(_) => Tail::Peel,
        None => Tail::Guard,
    };
    let (mut order, buffers) = order_of(func, &placed, &pieces.versioned, tail);
    order.trip = l.axes[0].const_trip_count();
    order.barriers = asked.barriers.to_vec();
    order.spare = asked.spare;
    order.lag = asked.lag;
    let meets = |a: usize, touch: usize, b: usize, _: usize| {
        meet(a, b, buffers[order.ops[a].touches[touch].resource])
    };
    match order::derive(&order, &meets) {
        Ok(schedule) => Ok(Scheduled {
            stages: schedule.depth + 1,
            schedule,
            buffers,
            tail,
            half: (asked.lag > 0).then(|| half(func, site.kernel)),
        }),
        Err(error) => {
            let (OrderError::Breaks { resource, .. }
            | OrderError::RegisterVersions { resource, .. }) = error;
            Err((error, buffers[resource]))
        }
    }
}

/// The half of the block's waves that a thread is in.
fn half(func: &Func, kernel: &Kernel) -> Expr {
    let threads = Expr::i32((kernel.num_threads() / 2) as i32);
    thread_number(func, kernel).floor_div(&threads)
}

/// The effects of a statement and of the names that it uses.
fn with_names(func: &Func, stmt: &Stmt, lets: &Block) -> Effects {
    let mut effects = Effects::of(func, stmt);
    for stmt in lets.iter().rev() {
        if let StmtKind::Let { var, value } = &stmt.kind
            && effects.vars.contains(var)
        {
            let own = Effects::of_expr(func, value);
            effects.reads.extend(own.reads);
            effects.vars.extend(own.vars);
        }
    }
    effects
}

/// How the threads of two pieces meet in a buffer.
pub(super) struct Meetings<'a> {
    conflicts: RefCell<Conflicts<'a>>,
    classes: Vec<Vec<Class>>,
    changing: FxHashSet<Var>,
}

impl<'a> Meetings<'a> {
    pub fn new(site: &Site<'a>, index: Var, pieces: &Pieces) -> Meetings<'a> {
        let collector = Collector {
            func: site.func,
            kernel: site.kernel,
            uniformity: site.uniformity,
            // A copy never runs ahead of a write to its tensor; ThreadSync orders the rest.
            tensors: &FxHashSet::default(),
        };
        let mut lets = site.lets.clone();
        for stmt in &pieces.lets {
            if let StmtKind::Let { var, value } = &stmt.kind {
                lets.bind(*var, value);
            }
        }
        let mut conflicts = Conflicts::new(site.func, site.kernel, site.target.machine().warp_size);
        let classes = pieces.list.iter().map(|piece| {
            let accesses = collector.unit(&piece.stmt, &mut lets);
            conflicts.classes(accesses)
        });
        Meetings {
            classes: classes.collect(),
            conflicts: RefCell::new(conflicts),
            changing: changing(pieces, index),
        }
    }

    /// Whether threads meet when one piece runs for some iteration and the other for any.
    pub fn between(&self, a: usize, b: usize, buffer: Buffer) -> Meeting {
        let mut conflicts = self.conflicts.borrow_mut();
        let mut met = Meeting::Nowhere;
        for &first in &self.classes[a] {
            for &second in &self.classes[b] {
                if conflicts.root(first) != buffer || conflicts.root(second) != buffer {
                    continue;
                }
                // More cannot be.
                if met == Meeting::AcrossWarps {
                    return met;
                }
                if conflicts.known_relation(first, second) == Some(Relation::Apart) {
                    continue;
                }
                let again = !self.changing.is_empty();
                let moves = |class| conflicts.moves(class, &self.changing, again);
                met = met.max(match moves(first) || moves(second) {
                    true => Meeting::AcrossWarps,
                    false => conflicts.relation(first, second).meeting(),
                });
            }
        }
        met
    }
}

/// All variables that get a new value in each iteration.
fn changing(pieces: &Pieces, index: Var) -> FxHashSet<Var> {
    let mut vars = FxHashSet::default();
    vars.insert(index);
    let mut add = |stmt: &Stmt| match &stmt.kind {
        StmtKind::Let { var, .. } => {
            vars.insert(*var);
        }
        StmtKind::For(l) => vars.extend(l.axes.iter().map(|a| a.var)),
        StmtKind::Thread(op) => vars.extend(op.result()),
        _ => {}
    };
    for stmt in &pieces.lets {
        add(stmt);
    }
    for piece in &pieces.list {
        walk_stmts(std::slice::from_ref(&piece.stmt), &mut |s| add(s));
    }
    vars
}
