//! The body of a planned loop as units, and the schedule engine's view of them.

use std::cell::RefCell;

use rustc_hash::FxHashSet;
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{
    Block, Buffer, Counter, Func, Kernel, Loop, LoopKind, PipelineSpec, Scope, Span, Stmt,
    StmtKind, Target, Var,
};
use tilewright_schedule::access::{Collector, Lets};
use tilewright_schedule::conflicts::{Class, Conflicts, Relation};
use tilewright_schedule::footprint::Meeting;
use tilewright_schedule::order::{
    Completion, Op, Order, OrderError, Resource, Schedule, Space, Step, Tail, Touch, derive,
};
use tilewright_schedule::uniform::{Uniformity, root};

use super::super::effects::Effects;
use super::copies::{Copy, Staged, Way, convert};
use super::direct::Refusal;

/// What stands at one place of a steady iteration.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub stmt: Stmt,
    pub distance: u32,
    /// Its place in the body as it was written.
    pub program: usize,
    pub completion: Completion,
    /// The second half of a copy through registers: it goes to the end of an iteration, unless
    /// the iteration itself needs it.
    pub late: bool,
}

/// A planned loop, taken apart.
#[derive(Clone, Debug)]
pub(super) struct Units {
    /// In the order of a steady iteration.
    pub units: Vec<Unit>,
    /// The names of the body, for the units that use them.
    pub lets: Block,
    /// Registers of copies, to be allocated before the loop.
    pub allocs: Block,
    pub spec: PipelineSpec,
    /// Copies that waves cannot do, and why.
    pub refused: Vec<(Span, Refusal)>,
    /// Whether waves copy straight to LDS.
    pub direct: bool,
}

impl Units {
    /// Takes the loop apart and makes its copies asynchronous.
    pub fn of(func: &mut Func, way: Way<'_>, l: &Loop, spec: &PipelineSpec) -> Units {
        let deepest = spec.stage.iter().copied().max().unwrap_or(0);
        let mut all = Units {
            units: Vec::new(),
            lets: Vec::new(),
            allocs: Vec::new(),
            spec: spec.clone(),
            refused: Vec::new(),
            direct: false,
        };
        let mut placed: Vec<(i32, Unit)> = Vec::new();
        let mut listed = 0;
        for stmt in &l.body {
            if !PipelineSpec::lists(stmt) {
                match stmt.kind {
                    StmtKind::Alloc(_) => all.allocs.push(stmt.clone()),
                    _ => all.lets.push(stmt.clone()),
                }
                continue;
            }
            let (place, stage) = (spec.order[listed], spec.stage[listed]);
            let unit = Unit {
                stmt: stmt.clone(),
                distance: (deepest - stage).max(0) as u32,
                program: 2 * listed,
                completion: Completion::Sync,
                late: false,
            };
            listed += 1;
            let effects = Effects::of(func, stmt);
            let brings = effects.writes.iter().all(|b| spec.versioned.contains(b));
            if !brings {
                placed.push((place, unit));
                continue;
            }
            let (copy, refusal) = convert(func, way, stmt.clone());
            all.refused.extend(refusal.map(|r| (stmt.span, r)));
            match copy {
                Copy::Plain(stmt) => placed.push((place, Unit { stmt, ..unit })),
                Copy::Tracked {
                    stmt,
                    counter,
                    instructions,
                } => {
                    all.direct |= counter == Counter::Vmcnt;
                    let completion = Completion::Counted {
                        counter,
                        instructions,
                    };
                    placed.push((
                        place,
                        Unit {
                            stmt,
                            completion,
                            ..unit
                        },
                    ));
                }
                Copy::Staged(staged) => {
                    let Staged {
                        load,
                        store,
                        alloc,
                        counter,
                        instructions,
                    } = *staged;
                    all.allocs.push(alloc);
                    let completion = match counter {
                        Some(counter) => Completion::Counted {
                            counter,
                            instructions,
                        },
                        None => Completion::Sync,
                    };
                    placed.push((
                        place,
                        Unit {
                            stmt: load,
                            completion,
                            ..unit.clone()
                        },
                    ));
                    placed.push((
                        place,
                        Unit {
                            stmt: store,
                            program: unit.program + 1,
                            late: true,
                            ..unit
                        },
                    ));
                }
            }
        }
        placed.sort_by_key(|(place, _)| *place);
        all.units = placed.into_iter().map(|(_, unit)| unit).collect();
        all.place_late(func);
        all
    }

    /// Puts the late units before the first later unit of their iteration that touches what they
    /// write, or last.
    fn place_late(&mut self, func: &Func) {
        let units = std::mem::take(&mut self.units);
        let (late, mut placed): (Vec<Unit>, Vec<Unit>) = units.into_iter().partition(|u| u.late);
        for unit in late {
            let writes = Effects::of(func, &unit.stmt).writes;
            let needed = placed.iter().position(|other| {
                let effects = Effects::of(func, &other.stmt);
                other.distance >= unit.distance
                    && other.program > unit.program
                    && writes.iter().any(|b| effects.touches(*b))
            });
            placed.insert(needed.unwrap_or(placed.len()), unit);
        }
        self.units = placed;
    }

    /// The same with no distance above `cap`.
    pub fn capped(&self, func: &Func, cap: u32) -> Units {
        let mut capped = self.clone();
        for unit in &mut capped.units {
            unit.distance = unit.distance.min(cap);
        }
        capped.place_late(func);
        capped
    }

    /// All variables that get a new value in each iteration.
    fn changing(&self, index: Var) -> FxHashSet<Var> {
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
        for stmt in &self.lets {
            add(stmt);
        }
        for unit in &self.units {
            walk_stmts(&vec![unit.stmt.clone()], &mut |s| add(s));
        }
        vars
    }
}

/// What the engine made of the units.
#[derive(Clone, Debug)]
pub(super) struct Scheduled {
    pub schedule: Schedule,
    /// The buffers of the schedule's resources.
    pub buffers: Vec<Buffer>,
    pub tail: Tail,
}

impl Scheduled {
    /// How many versions the loop keeps of a buffer.
    pub fn versions(&self, buffer: Buffer) -> u32 {
        let at = self.buffers.iter().position(|b| *b == buffer);
        at.map_or(1, |at| self.schedule.versions[at])
    }
}

/// Where a loop stands.
pub(super) struct Place<'a> {
    pub func: &'a Func,
    pub kernel: &'a Kernel,
    pub uniformity: &'a Uniformity<'a>,
    pub target: Target,
    /// The names around the loop.
    pub lets: &'a Lets,
}

/// Derives the schedule of the units; the error names two units and the buffer between them.
pub(super) fn schedule(
    place: &Place<'_>,
    l: &Loop,
    units: &Units,
) -> Result<Scheduled, (OrderError, Buffer)> {
    let func = place.func;
    let effects: Vec<Effects> = units
        .units
        .iter()
        .map(|u| with_names(func, &u.stmt, &units.lets))
        .collect();
    let mut buffers: Vec<Buffer> = effects
        .iter()
        .flat_map(|e| e.reads.iter().chain(&e.writes).copied())
        .collect();
    buffers.sort();
    buffers.dedup();
    // What the loop only reads orders nothing.
    buffers.retain(|b| effects.iter().any(|e| e.writes.contains(b)));
    let resources = buffers.iter().map(|b| {
        let scope = func.buffers[*b].scope;
        Resource {
            space: match scope {
                Scope::Shared => Space::Shared,
                Scope::Global => Space::Global,
                _ => Space::Register,
            },
            private: units.spec.versioned.contains(b),
        }
    });
    let ops = units.units.iter().zip(&effects).map(|(unit, effects)| {
        let touches = buffers
            .iter()
            .enumerate()
            .filter(|(_, b)| effects.touches(**b));
        let touches = touches.map(|(resource, b)| Touch {
            resource,
            write: effects.writes.contains(b),
        });
        Op {
            distance: unit.distance,
            touches: touches.collect(),
            completion: unit.completion,
            program: unit.program,
        }
    });
    // Empty groups keep a guarded loop's counts as they are. Loads that are counted one by one would
    // be missing from them.
    let tail = match place.target.machine().load_counter {
        Some(_) => Tail::Peel,
        None => Tail::Guard,
    };
    let mut order = Order {
        ops: ops.collect(),
        resources: resources.collect(),
        barriers: vec![0; units.units.len()],
        lag: 0,
        tail,
        trip: l.axes[0].const_trip_count(),
    };
    let meetings = Meetings::new(place, l.axes[0].var, units);
    let meets = |a: usize, touch: usize, b: usize, _: usize| {
        meetings.between(a, b, buffers[order.ops[a].touches[touch].resource])
    };
    let mut derived = derive(&order, &meets);
    if let Ok(schedule) = &derived
        && drains(schedule)
        && let Some(reader) = first_reader(&order)
    {
        // The fewest barriers put the wait for a tile where its successor is not under way yet.
        // One more, just before the tile is read, and the wait leaves the successor in flight.
        order.barriers[reader] = 1;
        let looser = derive(&order, &meets).ok();
        if let Some(looser) = looser.filter(|s| !drains(s)) {
            derived = Ok(looser);
        }
    }
    match derived {
        Ok(schedule) => Ok(Scheduled {
            schedule,
            buffers,
            tail,
        }),
        Err(error) => {
            let (OrderError::Breaks { resource, .. }
            | OrderError::RegisterVersions { resource, .. }) = error;
            Err((error, buffers[resource]))
        }
    }
}

/// Whether an iteration waits until no copy of a wave is in flight.
fn drains(schedule: &Schedule) -> bool {
    let drain = Step::Wait {
        counter: Counter::Vmcnt,
        at_most: 0,
    };
    schedule.steady.steps.contains(&drain)
}

/// The first op that uses what waves copied to LDS for it.
fn first_reader(order: &Order) -> Option<usize> {
    let copied = |resource: usize| {
        order.resources[resource].space == Space::Shared
            && order.ops.iter().any(|op| {
                let counted = matches!(
                    op.completion,
                    Completion::Counted {
                        counter: Counter::Vmcnt,
                        ..
                    }
                );
                let writes = |t: &Touch| t.write && t.resource == resource;
                counted && op.touches.iter().any(writes)
            })
    };
    order
        .ops
        .iter()
        .position(|op| op.touches.iter().any(|t| !t.write && copied(t.resource)))
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

/// How the threads of two units meet in a buffer.
struct Meetings<'a> {
    conflicts: RefCell<Conflicts<'a>>,
    classes: Vec<Vec<Class>>,
    changing: FxHashSet<Var>,
}

impl<'a> Meetings<'a> {
    fn new(place: &Place<'a>, index: Var, units: &Units) -> Meetings<'a> {
        let collector = Collector {
            func: place.func,
            kernel: place.kernel,
            uniformity: place.uniformity,
            // A copy never runs ahead of a write to its tensor; ThreadSync orders the rest.
            tensors: &FxHashSet::default(),
        };
        let mut lets = place.lets.clone();
        for stmt in &units.lets {
            if let StmtKind::Let { var, value } = &stmt.kind {
                lets.bind(*var, value);
            }
        }
        let mut conflicts =
            Conflicts::new(place.func, place.kernel, place.target.machine().warp_size);
        let classes = units.units.iter().map(|u| {
            let accesses = collector.unit(&u.stmt, &mut lets);
            conflicts.classes(accesses)
        });
        Meetings {
            classes: classes.collect(),
            conflicts: RefCell::new(conflicts),
            changing: units.changing(index),
        }
    }

    /// Whether threads meet when one unit runs for some iteration and the other for any.
    fn between(&self, a: usize, b: usize, buffer: Buffer) -> Meeting {
        let mut conflicts = self.conflicts.borrow_mut();
        let mut met = Meeting::Nowhere;
        for &first in &self.classes[a] {
            for &second in &self.classes[b] {
                if conflicts.root(first) != buffer || conflicts.root(second) != buffer {
                    continue;
                }
                let relation = conflicts.relation(first, second);
                let again = !self.changing.is_empty();
                let moves = |class| conflicts.moves(class, &self.changing, again);
                met = met.max(match relation {
                    Relation::Apart => Meeting::Nowhere,
                    _ if moves(first) || moves(second) => Meeting::AcrossWarps,
                    relation => relation.meeting(),
                });
            }
        }
        met
    }
}

/// The loop's plan, if it has one.
pub(super) fn plan_of(l: &Loop) -> Option<&PipelineSpec> {
    match &l.kind {
        LoopKind::Pipelined(spec) if spec.is_planned() && spec.order.len() == spec.stage.len() => {
            let listed = l.body.iter().filter(|s| PipelineSpec::lists(s)).count();
            (listed == spec.stage.len()).then_some(spec)
        }
        _ => None,
    }
}

/// The versioned buffers and all views of them.
pub(super) fn set_versions(func: &mut Func, buffer: Buffer, versions: u32) {
    let all: Vec<Buffer> = func.buffers.keys().collect();
    for b in all {
        if root(func, b) == buffer {
            func.buffers[b].versions = func.buffers[b].versions.max(versions);
        }
    }
}
