//! Statements, loops and blocks.

use crate::buffer::LayoutAttr;
use crate::device_op::DeviceOp;
use crate::diag::Span;
use crate::expr::Expr;
use crate::ids::{Buffer, Var};
use crate::micro_op::MicroOp;
use crate::thread_op::ThreadOp;
use crate::tile_op::TileOp;

/// A sequence of statements; a `let` or an allocation is visible to its end.
pub type Block = Vec<Stmt>;

#[derive(Clone, Debug)]
pub struct Stmt {
    pub kind: StmtKind,
    pub span: Span,
}

/// Equality ignores spans, as for expressions.
impl PartialEq for Stmt {
    fn eq(&self, other: &Stmt) -> bool {
        self.kind == other.kind
    }
}
impl Eq for Stmt {}

impl Stmt {
    pub fn new(kind: StmtKind, span: Span) -> Stmt {
        Stmt { kind, span }
    }

    /// Whether this allocates a variable and the next statement stores its initial value.
    pub fn is_initialised_by(&self, next: &Stmt) -> bool {
        match (&self.kind, &next.kind) {
            (
                StmtKind::Alloc(allocated),
                StmtKind::Store {
                    buffer, indices, ..
                },
            ) => allocated == buffer && indices.is_empty(),
            _ => false,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StmtKind {
    /// `let x: float32 = A[i]`
    /// Names a value for the rest of the block; loads happen here, once.
    Let {
        var: Var,
        value: Expr,
    },
    /// `A[i, j] = v`
    /// Thread level: every thread that reaches it stores (inside a parallel loop, each point).
    /// Stores outside global memory's bounds are dropped.
    Store {
        buffer: Buffer,
        indices: Vec<Expr>,
        value: Expr,
    },
    /// `alloc S: shared float16[128, 32]`
    /// Storage until the end of the block. In a loop it is the same storage each time, with
    /// contents that must not be relied on.
    Alloc(Buffer),
    /// `for k in pipelined(0, n) stages=3 { … }`
    For(Loop),
    /// `while x[] < 10 { … }`
    While {
        cond: Expr,
        body: Block,
    },
    /// `if c { … } else { … }`
    If {
        cond: Expr,
        then: Block,
        otherwise: Block,
    },
    /// `break`: leaves the innermost loop.
    Break,
    /// `continue`: goes on with the innermost loop's next iteration.
    Continue,
    /// `assert c, "message"`: a false condition is an error at run time.
    Assert {
        cond: Expr,
        message: String,
    },
    /// `assume c`: a fact for the rest of the block; false is undefined.
    Assume(Expr),
    /// `warp_group 0, 1 { … }`
    /// The body is run by the warp groups listed ([`crate::target::WARP_GROUP`] threads each); such
    /// regions run concurrently.
    WarpGroup {
        groups: Vec<u32>,
        body: Block,
    },
    Tile(TileOp),
    Thread(ThreadOp),
    Micro(MicroOp),
    Device(DeviceOp),
}

/// A loop. Only `parallel` and `persistent` loops have more than one axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loop {
    pub kind: LoopKind,
    pub axes: Vec<Axis>,
    pub body: Block,
}

/// One index and its range: `start`, `start + step`, … as long as it has not reached `stop`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    pub var: Var,
    pub start: Expr,
    pub stop: Expr,
    /// A constant other than zero, or an expression taken to be positive.
    pub step: Expr,
}

impl Axis {
    /// `0 .. stop`, step one.
    pub fn upto(var: Var, stop: Expr) -> Axis {
        Axis {
            var,
            start: Expr::zero(stop.dtype()),
            step: Expr::int(1, stop.dtype()),
            stop,
        }
    }

    /// The constant number of iterations, where range and step are constant.
    pub fn const_trip_count(&self) -> Option<u64> {
        let (start, stop, step) = (
            self.start.as_int()?,
            self.stop.as_int()?,
            self.step.as_int()?,
        );
        let distance = match step {
            0 => return None,
            s if s > 0 => stop - start,
            _ => start - stop,
        };
        let step = step.abs();
        u64::try_from((distance.max(0) + step - 1) / step).ok()
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoopKind {
    /// In order.
    Serial,
    /// In order; written out by the compiler, wholly or by a factor.
    Unroll { factor: Option<u32> },
    /// Independent iterations that may become vector lanes.
    Vectorized,
    /// All points once, in no order; afterwards the block goes on.
    Parallel {
        coalesced_width: Option<u32>,
        layout: Option<LayoutAttr>,
    },
    /// The serial loop's result, with copies of later iterations under way.
    Pipelined(PipelineSpec),
    /// Coordinates of a domain dealt out in waves: iteration `w` handles the tile of linear
    /// number `w · wave_size + index`, last axis grouped by `group_size`.
    Persistent {
        wave_size: Expr,
        index: Expr,
        group_size: Expr,
    },
}

/// What the user asked of a pipelined loop, then what PipelinePlanning made of it. Empty lists
/// leave the choice to the compiler.
///
/// `order` and `stage` have an entry for each *listed* statement of the body
/// ([`PipelineSpec::lists`]): its place in a steady iteration, and its stage. A statement of
/// stage `t` runs `max stage - t` iterations ahead of the loop's index.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PipelineSpec {
    pub stages: u32,
    /// The named schedule that the loop shall have; absent leaves the choice to the compiler.
    pub schedule: Option<String>,
    pub order: Vec<i32>,
    pub stage: Vec<i32>,
    pub sync: Vec<Vec<i32>>,
    pub group: Vec<Vec<i32>>,
    /// Shared buffers that each iteration writes before it reads them, and that nothing reads
    /// after the loop: iterations may have versions of their own.
    pub versioned: Vec<Buffer>,
}

impl PipelineSpec {
    /// Whether the lists have an entry for the statement. Names, storage and facts have none:
    /// they go with the statements that use them.
    pub fn lists(stmt: &Stmt) -> bool {
        !matches!(
            stmt.kind,
            StmtKind::Let { .. } | StmtKind::Alloc(_) | StmtKind::Assume(_)
        )
    }

    /// Which statements of a body the user's lists have entries for. The initial value of a
    /// variable is stored by its allocation for him, until PipelinePlanning gives it a place.
    pub fn lists_of_user(body: &[Stmt]) -> Vec<bool> {
        let before = std::iter::once(None).chain(body.iter().map(Some));
        let mut listed = Vec::with_capacity(body.len());
        for (stmt, before) in body.iter().zip(before) {
            let initial = before.is_some_and(|before| before.is_initialised_by(stmt));
            listed.push(PipelineSpec::lists(stmt) && !initial);
        }
        listed
    }

    /// Whether PipelinePlanning has given every statement its place.
    pub fn is_planned(&self) -> bool {
        !self.stage.is_empty()
    }

    /// Rewrites the body of the loop, statement by statement, and keeps the lists in step.
    pub fn spread_over(
        mut self,
        body: Block,
        out: &mut Block,
        mut rewrite: impl FnMut(Stmt, &mut Block),
    ) -> PipelineSpec {
        let of_user = PipelineSpec::lists_of_user;
        let planned = |body: &[Stmt]| body.iter().map(PipelineSpec::lists).collect::<Vec<_>>();
        let entries = |listed: &[bool]| listed.iter().filter(|l| **l).count();
        // Lists that fit without the initial values are still the user's.
        let lists = if entries(&of_user(&body)) == self.order.len() {
            of_user
        } else {
            planned
        };
        let mut counts = Vec::new();
        let listed = lists(&body);
        for (stmt, listed) in body.into_iter().zip(listed) {
            let first = out.len();
            rewrite(stmt, out);
            if listed {
                counts.push(entries(&lists(&out[first..])));
            }
        }
        self.spread(&counts);
        self
    }

    /// Keeps the lists in step with a body in which listed statement `i` has become `counts[i]`
    /// statements, which stay together.
    pub fn spread(&mut self, counts: &[usize]) {
        if counts.len() != self.order.len() || counts.len() != self.stage.len() {
            return;
        }
        // A place of -1 is still to be chosen.
        let mut by_place: Vec<usize> = (0..counts.len()).collect();
        by_place.retain(|&i| self.order[i] >= 0);
        by_place.sort_by_key(|&i| self.order[i]);
        let mut first = vec![None; counts.len()];
        let mut next = 0;
        for i in by_place {
            first[i] = Some(next);
            next += counts[i];
        }
        let places = counts.iter().zip(&first);
        let order = places
            .flat_map(|(&n, &at)| (0..n).map(move |piece| at.map_or(-1, |at| (at + piece) as i32)));
        let stages = counts.iter().zip(&self.stage);
        let stage = stages.flat_map(|(&n, &stage)| std::iter::repeat_n(stage, n));
        (self.order, self.stage) = (order.collect(), stage.collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreading_keeps_the_order() {
        let mut spec = PipelineSpec {
            order: vec![2, 0, 1, -1],
            stage: vec![1, 0, 0, -1],
            ..PipelineSpec::default()
        };
        spec.spread(&[2, 1, 0, 1]);
        assert_eq!(spec.order, [1, 2, 0, -1]);
        assert_eq!(spec.stage, [1, 1, 0, -1]);
    }
}
