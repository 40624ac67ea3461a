//! The body of a planned loop in pieces: what an order gives places to.

use std::rc::Rc;

use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{
    Block, Buffer, Counter, Expr, Func, Loop, LoopKind, PipelineSpec, Span, Stmt, StmtKind, Var,
};
use tilewright_schedule::order::Completion;

use super::super::effects::Effects;
use super::super::stage::Staged;
use super::bulk::bulk;
use super::copies::{Copy, Way, convert};
use super::direct::Refusal;
use super::schedules::Why;
use super::steps::Steps;
use crate::legalize::boxes::Bulk;

/// A statement of the body, or a part of one.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub stmt: Stmt,
    /// Iterations ahead of the loop's index at which it runs.
    pub distance: u32,
    /// Its place in the body as it was written.
    pub program: usize,
    pub completion: Completion,
    /// Of its instructions, where waves compete to issue theirs.
    pub priority: u8,
    /// The cluster that its instructions are woven into.
    pub woven: Option<usize>,
    /// The second half of a copy through registers, which need not run before its data is used.
    pub late: bool,
    /// The parts that it can be taken into.
    pub steps: Option<Rc<Steps>>,
    /// For a copy, where the machine has an engine for those: it as the engine's, or why it is not.
    pub bulk: Option<Rc<Result<Bulk, Why>>>,
}

impl Piece {
    /// Whether it is a product that runs while the program goes on.
    pub fn is_product_in_flight(&self) -> bool {
        let mut found = false;
        walk_stmts(std::slice::from_ref(&self.stmt), &mut |s| {
            found |= s.as_group_product().is_some();
        });
        found
    }
}

/// A planned loop, taken apart.
#[derive(Clone, Debug)]
pub(super) struct Pieces {
    /// In the order that was planned.
    pub list: Vec<Piece>,
    /// The names of the body, for the pieces that use them.
    pub lets: Block,
    /// Registers of copies, to be allocated before the loop.
    pub allocs: Block,
    /// The buffers of which iterations may have versions of their own.
    pub versioned: Vec<Buffer>,
    /// Copies that waves cannot do, and why.
    pub refused: Vec<(Span, Refusal)>,
    /// Whether waves copy straight to LDS.
    pub direct: bool,
    /// What stands for the number of the iteration in the pieces, where something does.
    pub iteration: Option<Var>,
    /// Iterations before this run of the loop, where barriers and versions go on from run to run.
    pub before: Option<Expr>,
}

impl Pieces {
    /// Takes the loop apart and makes its copies asynchronous. Nothing runs further ahead than
    /// `cap` iterations.
    pub fn of(func: &mut Func, way: Way<'_>, l: &Loop, spec: &PipelineSpec, cap: u32) -> Pieces {
        let stages = l.body.iter().filter_map(|stmt| stmt.turn?.stage);
        let deepest = stages.max().unwrap_or(0);
        let mut all = Pieces {
            list: Vec::new(),
            lets: Vec::new(),
            allocs: Vec::new(),
            versioned: spec.versioned.clone(),
            refused: Vec::new(),
            direct: false,
            iteration: None,
            before: None,
        };
        let mut placed: Vec<(Option<u32>, Piece)> = Vec::new();
        for (at, stmt) in l.body.iter().enumerate() {
            let mut stmt = stmt.clone();
            let Some(turn) = stmt.turn.take() else {
                match stmt.kind {
                    StmtKind::Alloc(_) => all.allocs.push(stmt),
                    _ => all.lets.push(stmt),
                }
                continue;
            };
            let place = turn.order;
            let piece = Piece {
                stmt,
                distance: turn.stage.map_or(0, |stage| deepest - stage).min(cap),
                program: 2 * at,
                completion: Completion::Sync,
                priority: 0,
                woven: None,
                late: false,
                steps: None,
                bulk: None,
            };
            let effects = Effects::of(func, &piece.stmt);
            let brings = effects.writes.iter().all(|b| spec.versioned.contains(b));
            if !brings {
                let steps = Steps::of(&piece.stmt).map(Rc::new);
                placed.push((place, Piece { steps, ..piece }));
                continue;
            }
            let engine = way.target.machine().bulk_copies && piece.distance > 0;
            let piece = Piece {
                bulk: engine.then(|| Rc::new(bulk(func, way.kernel, l, &piece.stmt))),
                ..piece
            };
            let (copy, refusal) = convert(func, way, piece.stmt.clone());
            all.refused.extend(refusal.map(|r| (piece.stmt.span, r)));
            let halves = all.copy(copy, piece);
            placed.extend(halves.into_iter().map(|half| (place, half)));
        }
        placed.sort_by_key(|(place, _)| *place);
        all.list = placed.into_iter().map(|(_, piece)| piece).collect();
        all
    }

    /// The pieces of a copy: itself, or a load to registers and a store from them.
    fn copy(&mut self, copy: Copy, piece: Piece) -> Vec<Piece> {
        match copy {
            Copy::Plain(stmt) => vec![Piece { stmt, ..piece }],
            Copy::Tracked {
                stmt,
                counter,
                instructions,
            } => {
                self.direct |= counter == Counter::Vmcnt;
                let completion = Completion::Counted {
                    counter,
                    instructions,
                };
                vec![Piece {
                    stmt,
                    completion,
                    ..piece
                }]
            }
            Copy::Staged(staged) => {
                let Staged {
                    load,
                    store,
                    alloc,
                    counter,
                    instructions,
                } = *staged;
                self.allocs.push(alloc);
                let completion = counter.map_or(Completion::Sync, |counter| Completion::Counted {
                    counter,
                    instructions,
                });
                let load = Piece {
                    stmt: load,
                    completion,
                    ..piece.clone()
                };
                let store = Piece {
                    stmt: store,
                    program: piece.program + 1,
                    late: true,
                    ..piece
                };
                vec![load, store]
            }
        }
    }
}

/// The loop's plan, if it has one.
pub(super) fn plan_of(l: &Loop) -> Option<&PipelineSpec> {
    match &l.kind {
        LoopKind::Pipelined(spec) if l.has_turns() => Some(spec),
        _ => None,
    }
}

/// The versioned buffers and all views of them.
pub(super) fn set_versions(func: &mut Func, buffer: Buffer, versions: u32) {
    let all: Vec<Buffer> = func.buffers.keys().collect();
    for b in all {
        if func.root(b) == buffer {
            func.buffers[b].versions = func.buffers[b].versions.max(versions);
        }
    }
}
