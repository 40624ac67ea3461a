//! Collectives must be reached by all threads together.
//!
//! A tile operation, a parallel loop or a block barrier under a condition that differs between
//! threads would wait for threads that never come, or do its work in part. Checked on the
//! finished body of a kernel: first which variables and thread-private buffers differ between
//! threads (a fixed point, since loops feed values back), then where collectives stand.

use std::collections::BTreeSet;

use tilewright_ir::{
    Block, Buffer, Expr, ExprKind, LoopKind, Scope, Span, Stmt, StmtKind, ThreadOp, TileOp, Var,
    VarKind, VoteKind, visit,
};

use crate::eval::Stage;
use crate::{Result, codes};

/// Checks every collective of a kernel's body.
pub(super) fn check(stage: &Stage, threads: [u32; 3], body: &Block) -> Result<()> {
    let mut divergence = Divergence {
        stage,
        threads,
        vars: BTreeSet::new(),
        buffers: BTreeSet::new(),
        changed: true,
    };
    while std::mem::take(&mut divergence.changed) {
        divergence.block(body, false);
    }
    divergence.collectives(body, None)
}

/// What differs between the threads of a block.
struct Divergence<'a> {
    stage: &'a Stage,
    threads: [u32; 3],
    vars: BTreeSet<Var>,
    /// Memory that each thread has of its own, with contents that differ.
    buffers: BTreeSet<Buffer>,
    changed: bool,
}

impl Divergence<'_> {
    /// Spreads divergence through the statements; `control` says whether the way here differs.
    fn block(&mut self, block: &Block, control: bool) {
        for stmt in block {
            match &stmt.kind {
                StmtKind::Let { var, value } => {
                    if self.differs(value) {
                        self.mark_var(*var);
                    }
                }
                StmtKind::Store {
                    buffer,
                    indices,
                    value,
                } => {
                    if control || self.differs(value) || indices.iter().any(|i| self.differs(i)) {
                        self.mark_buffer(*buffer);
                    }
                }
                StmtKind::Thread(op) => self.thread_op(op, control),
                StmtKind::For(l) => {
                    let bounds = l.axes.iter().flat_map(|a| [&a.start, &a.stop, &a.step]);
                    let differs = bounds.into_iter().any(|e| self.differs(e));
                    // The points of a parallel loop are dealt out to the threads.
                    if differs || matches!(l.kind, LoopKind::Parallel { .. }) {
                        for axis in &l.axes {
                            self.mark_var(axis.var);
                        }
                    }
                    let control = control || differs || self.parting(&l.body, None).is_some();
                    self.block(&l.body, control);
                }
                StmtKind::While { cond, body } => {
                    let parts = self.parting(body, None).is_some();
                    let control = control || self.differs(cond) || parts;
                    self.block(body, control);
                }
                StmtKind::If {
                    cond,
                    then,
                    otherwise,
                } => {
                    let control = control || self.differs(cond);
                    self.block(then, control);
                    self.block(otherwise, control);
                }
                StmtKind::WarpGroup { body, .. } => self.block(body, control),
                StmtKind::Alloc(_)
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Assert { .. }
                | StmtKind::Assume(_)
                | StmtKind::Tile(_)
                | StmtKind::Micro(_)
                | StmtKind::Device(_) => {}
            }
        }
    }

    fn thread_op(&mut self, op: &ThreadOp, control: bool) {
        match op {
            // Each thread finds what the ones before it left.
            ThreadOp::AtomicRmw {
                result: Some(var), ..
            } => self.mark_var(*var),
            ThreadOp::AtomicLoad {
                indices, result, ..
            } => {
                if indices.iter().any(|i| self.differs(i)) {
                    self.mark_var(*result);
                }
            }
            ThreadOp::Shuffle {
                value,
                lane,
                result,
                ..
            } => {
                if self.differs(value) || self.differs(lane) {
                    self.mark_var(*result);
                }
            }
            ThreadOp::Vote {
                kind,
                value,
                result,
            } => {
                // A vote of a warp still differs between warps.
                let of_warp = match kind {
                    VoteKind::Any | VoteKind::All | VoteKind::Ballot => true,
                    VoteKind::BlockOr | VoteKind::BlockAnd | VoteKind::BlockCount => false,
                };
                if of_warp && self.differs(value) {
                    self.mark_var(*result);
                }
            }
            ThreadOp::WarpReduce { value, result, .. } => {
                if self.differs(value) {
                    self.mark_var(*result);
                }
            }
            ThreadOp::AllReduce { dst, axes, .. } => {
                let whole = (0u8..3)
                    .all(|axis| self.threads[usize::from(axis)] == 1 || axes.contains(&axis));
                if control || !whole {
                    self.mark_buffer(*dst);
                }
            }
            ThreadOp::Extern {
                args,
                result: Some(var),
                ..
            } => {
                if args.iter().any(|a| self.differs(a)) {
                    self.mark_var(*var);
                }
            }
            ThreadOp::Dp4a { c, .. } => self.mark_buffer(*c),
            ThreadOp::AtomicRmw { result: None, .. }
            | ThreadOp::Extern { result: None, .. }
            | ThreadOp::AtomicVecAdd { .. }
            | ThreadOp::AtomicStore { .. }
            | ThreadOp::SyncThreads { .. }
            | ThreadOp::SyncWarp
            | ThreadOp::SyncGrid
            | ThreadOp::BarrierArrive { .. }
            | ThreadOp::BarrierWait { .. }
            | ThreadOp::BarrierExpect { .. }
            | ThreadOp::Print { .. }
            | ThreadOp::SetMaxRegs { .. } => {}
        }
    }

    fn mark_var(&mut self, var: Var) {
        self.changed |= self.vars.insert(var);
    }

    fn mark_buffer(&mut self, buffer: Buffer) {
        if matches!(self.stage.buffer(buffer).scope, Scope::Local | Scope::Var) {
            self.changed |= self.buffers.insert(buffer);
        }
    }

    /// Whether the value differs between threads that compute it.
    fn differs(&self, e: &Expr) -> bool {
        let mut found = false;
        e.walk(&mut |e| match e.kind() {
            ExprKind::Var(var) => {
                let kind = self.stage.func.vars[*var].kind;
                let many = |axis: u8| self.threads[usize::from(axis.min(2))] > 1;
                found |= self.vars.contains(var)
                    || matches!(kind, VarKind::ThreadIdx(axis) if many(axis));
            }
            ExprKind::Load { buffer, .. } => found |= self.buffers.contains(buffer),
            _ => {}
        });
        found
    }

    /// Refuses collectives where `under` says that only some threads come.
    fn collectives(&self, block: &Block, under: Option<Span>) -> Result<()> {
        for stmt in block {
            if let (Some(what), Some(cond)) = (collective(stmt), under) {
                return Err(self
                    .stage
                    .error(
                        codes::DIVERGENT_COLLECTIVE,
                        stmt.span,
                        format!("{what} is done by all threads together, but only some come here"),
                    )
                    .also(cond, "this differs between threads")
                    .help("move it out of the condition, or give it warp groups of its own with `with T.ws(...)`")
                    .into());
            }
            let differs = |e: &Expr| self.differs(e).then_some(e.span());
            let mut under = match &stmt.kind {
                // What is inside a parallel loop is single points' work.
                StmtKind::For(l) if matches!(l.kind, LoopKind::Parallel { .. }) => continue,
                StmtKind::For(l) => under.or_else(|| {
                    let mut bounds = l.axes.iter().flat_map(|a| [&a.start, &a.stop, &a.step]);
                    bounds.find_map(|e| differs(e).map(|s| or(s, stmt.span)))
                }),
                StmtKind::While { cond, .. } | StmtKind::If { cond, .. } => {
                    under.or_else(|| differs(cond).map(|s| or(s, stmt.span)))
                }
                _ => under,
            };
            if let StmtKind::For(_) | StmtKind::While { .. } = &stmt.kind {
                let mut children = visit::child_blocks(stmt).into_iter();
                under = under.or_else(|| children.find_map(|body| self.parting(body, None)));
            }
            for child in visit::child_blocks(stmt) {
                self.collectives(child, under)?;
            }
        }
        Ok(())
    }

    /// The condition under which some threads leave this iteration of a loop and others stay.
    fn parting(&self, block: &Block, under: Option<Span>) -> Option<Span> {
        block.iter().find_map(|stmt| match &stmt.kind {
            StmtKind::Break | StmtKind::Continue => under,
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                let differs = || self.differs(cond).then(|| or(cond.span(), stmt.span));
                let under = under.or_else(differs);
                self.parting(then, under)
                    .or_else(|| self.parting(otherwise, under))
            }
            StmtKind::WarpGroup { body, .. } => self.parting(body, under),
            _ => None,
        })
    }
}

/// The span, or the other where there is none.
fn or(span: Span, other: Span) -> Span {
    if span.is_none() { other } else { span }
}

/// What the statement is called, when all threads must reach it.
fn collective(stmt: &Stmt) -> Option<&'static str> {
    match &stmt.kind {
        StmtKind::Tile(TileOp::ReducerUpdate { .. }) => None,
        StmtKind::Tile(_) => Some("a tile operation"),
        StmtKind::For(l) if matches!(l.kind, LoopKind::Parallel { .. }) => Some("a parallel loop"),
        StmtKind::Thread(op) => match op {
            ThreadOp::SyncThreads { named: None } | ThreadOp::SyncGrid => Some("a barrier"),
            ThreadOp::AllReduce { .. } => Some("a reduction over the threads"),
            ThreadOp::Vote { kind, .. } => match kind {
                VoteKind::BlockOr | VoteKind::BlockAnd | VoteKind::BlockCount => {
                    Some("a vote of the block")
                }
                VoteKind::Any | VoteKind::All | VoteKind::Ballot => None,
            },
            _ => None,
        },
        _ => None,
    }
}
