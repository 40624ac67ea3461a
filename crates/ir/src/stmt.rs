//! Statements, loops and blocks.

use crate::buffer::LayoutAttr;
use crate::device_op::DeviceOp;
use crate::diag::Span;
use crate::expr::Expr;
use crate::ids::{Buffer, Var};
use crate::micro_op::{Inst, MicroOp};
use crate::thread_op::ThreadOp;
use crate::tile_op::TileOp;

/// A sequence of statements; a `let` or an allocation is visible to its end.
pub type Block = Vec<Stmt>;

#[derive(Clone, Debug)]
pub struct Stmt {
    pub kind: StmtKind,
    /// When it runs, for a statement of a pipelined loop's body that is or shall be planned.
    pub turn: Option<Turn>,
    pub span: Span,
}

/// `@(stage=0, order=2)`: when a statement of a pipelined loop runs. What is absent is to be
/// chosen by PipelinePlanning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Turn {
    /// A statement of stage `t` runs `max stage - t` iterations ahead of the loop's index.
    pub stage: Option<u32>,
    /// Its place in a steady iteration. Statements of one place follow each other as written.
    pub order: Option<u32>,
}

/// Equality ignores spans, as for expressions.
impl PartialEq for Stmt {
    fn eq(&self, other: &Stmt) -> bool {
        self.kind == other.kind && self.turn == other.turn
    }
}
impl Eq for Stmt {}

impl Stmt {
    pub fn new(kind: StmtKind, span: Span) -> Stmt {
        Stmt {
            kind,
            turn: None,
            span,
        }
    }

    /// The product of a warp group that it is, if it is one: in flight from here on.
    pub fn as_group_product(&self) -> Option<&MicroOp> {
        match &self.kind {
            StmtKind::Micro(op) if matches!(op.inst, Inst::GroupMma { .. }) => Some(op),
            _ => None,
        }
    }

    /// Whether it is this loop, by its index.
    pub fn is_loop(&self, l: &Loop) -> bool {
        matches!(&self.kind, StmtKind::For(own) if own.axes[0].var == l.axes[0].var)
    }

    /// Puts the statement into another one, which has its turn.
    pub fn wrap(&mut self, around: impl FnOnce(Stmt) -> StmtKind) {
        let kind = std::mem::replace(&mut self.kind, StmtKind::Break);
        self.kind = around(Stmt::new(kind, self.span));
    }

    /// Whether it can have a turn. Names, storage and facts have none: they go with the
    /// statements that use them.
    pub fn takes_turn(&self) -> bool {
        !matches!(
            self.kind,
            StmtKind::Let { .. } | StmtKind::Alloc(_) | StmtKind::Assume(_)
        )
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

impl Loop {
    /// Whether its statements have turns: from the user, or from PipelinePlanning.
    pub fn has_turns(&self) -> bool {
        self.body.iter().any(|stmt| stmt.turn.is_some())
    }

    /// Leaves its statements to run as they are written.
    pub fn drop_turns(&mut self) {
        self.body.iter_mut().for_each(|stmt| stmt.turn = None);
    }
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

/// What the user asked of a pipelined loop, then what PipelinePlanning made of it. When each
/// statement runs stands with the statement ([`Turn`]).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PipelineSpec {
    pub stages: u32,
    /// The named schedule that the loop shall have; absent leaves the choice to the compiler.
    pub schedule: Option<String>,
    pub sync: Vec<Vec<i32>>,
    /// Shared buffers that each iteration writes before it reads them, and that nothing reads
    /// after the loop: iterations may have versions of their own.
    pub versioned: Vec<Buffer>,
}
