//! What single threads do with effects or together: atomics, shuffles, votes, barriers.
//!
//! A thread op is executed by every thread that reaches it (inside a parallel loop, once for
//! each point). Those with a result bind it to a fresh variable, so expressions stay pure.
//! The text form of each is the first line of its comment.

use crate::dtype::DType;
use crate::expr::Expr;
use crate::ids::{Buffer, Var};
use crate::tile_op::ReduceKind;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ThreadOp {
    /// `old = atomic_rmw add C[i], v relaxed` (the result may be left out)
    /// Updates one element; out-of-bounds elements of global memory are skipped and the
    /// result is the safe value.
    AtomicRmw {
        op: AtomicOp,
        buffer: Buffer,
        indices: Vec<Expr>,
        value: Expr,
        order: MemoryOrder,
        result: Option<Var>,
    },
    /// `atomic_vec_add C[4], V[0] lanes=4`
    /// Adds consecutive elements, each atomic on its own.
    AtomicVecAdd {
        dst: Buffer,
        dst_indices: Vec<Expr>,
        src: Buffer,
        src_indices: Vec<Expr>,
        lanes: u16,
    },
    /// `x = atomic_load C[i] acquire`
    AtomicLoad {
        buffer: Buffer,
        indices: Vec<Expr>,
        order: MemoryOrder,
        result: Var,
    },
    /// `atomic_store C[i], v release`
    AtomicStore {
        buffer: Buffer,
        indices: Vec<Expr>,
        value: Expr,
        order: MemoryOrder,
    },
    /// `x = shuffle xor v, 16 width=32`
    /// The value of another lane of the segment; outside it, the own value.
    Shuffle {
        kind: ShuffleKind,
        value: Expr,
        lane: Expr,
        width: u32,
        result: Var,
    },
    /// `x = vote any p`
    Vote {
        kind: VoteKind,
        value: Expr,
        result: Var,
    },
    /// `x = warp_reduce sum v`
    /// Over groups of 32 lanes on every target.
    WarpReduce {
        kind: ReduceKind,
        value: Expr,
        result: Var,
    },
    /// `allreduce (x: float32, y: float32) -> x + y, identity=0.0, v if c -> dst[0] axes=[x]`
    /// Folds the values of the threads that differ only in the listed axes; each thread
    /// receives the result.
    AllReduce {
        combiner: Combiner,
        value: Expr,
        cond: Expr,
        dst: Buffer,
        dst_indices: Vec<Expr>,
        /// Thread axes, 0 to 2, in ascending order.
        axes: Vec<u8>,
    },
    /// `sync_threads` / `sync_threads id=1 count=128`
    SyncThreads { named: Option<(u32, u32)> },
    /// `sync_warp`
    SyncWarp,
    /// `sync_grid`
    SyncGrid,
    /// `mbarrier_arrive bar[0]`
    /// Each executing thread counts one.
    BarrierArrive { barrier: Buffer, index: Expr },
    /// `mbarrier_wait bar[0] parity=p`
    /// Blocks until the phase of that parity has completed.
    BarrierWait {
        barrier: Buffer,
        index: Expr,
        parity: Expr,
    },
    /// `mbarrier_expect_tx bar[0] bytes=n` / `mbarrier_expect_tx bar[0] bytes=n arrive`
    BarrierExpect {
        barrier: Buffer,
        index: Expr,
        bytes: Expr,
        arrive: bool,
    },
    /// `dp4a A[0], B[0] -> C[0]`
    /// Adds the product of four consecutive int8 pairs to an int32.
    Dp4a {
        a: Buffer,
        a_indices: Vec<Expr>,
        b: Buffer,
        b_indices: Vec<Expr>,
        c: Buffer,
        c_indices: Vec<Expr>,
    },
    /// `x = extern "name"(a, b): float32 pure`
    /// Foreign code: opaque, only a GPU can run it.
    Extern {
        name: String,
        args: Vec<Expr>,
        dtype: DType,
        pure: bool,
        result: Option<Var>,
    },
    /// `print "msg", x`
    Print { message: String, args: Vec<Expr> },
    /// `set_max_nreg 240 inc`
    SetMaxRegs { count: u32, increase: bool },
}

impl ThreadOp {
    /// The variable that the op binds.
    pub fn result(&self) -> Option<Var> {
        match self {
            ThreadOp::AtomicRmw { result, .. } | ThreadOp::Extern { result, .. } => *result,
            ThreadOp::AtomicLoad { result, .. }
            | ThreadOp::Shuffle { result, .. }
            | ThreadOp::Vote { result, .. }
            | ThreadOp::WarpReduce { result, .. } => Some(*result),
            ThreadOp::AtomicVecAdd { .. }
            | ThreadOp::AtomicStore { .. }
            | ThreadOp::AllReduce { .. }
            | ThreadOp::SyncThreads { .. }
            | ThreadOp::SyncWarp
            | ThreadOp::SyncGrid
            | ThreadOp::BarrierArrive { .. }
            | ThreadOp::BarrierWait { .. }
            | ThreadOp::BarrierExpect { .. }
            | ThreadOp::Dp4a { .. }
            | ThreadOp::Print { .. }
            | ThreadOp::SetMaxRegs { .. } => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AtomicOp {
    Add,
    Max,
    Min,
    Or,
    And,
    Xor,
    Exchange,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemoryOrder {
    Relaxed,
    Consume,
    Acquire,
    Release,
    AcqRel,
    SeqCst,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ShuffleKind {
    /// From the given lane of the segment.
    Index,
    /// From `lane` below.
    Up,
    /// From `lane` above.
    Down,
    /// From the own lane xor `lane`.
    Xor,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VoteKind {
    /// Any lane of the warp; bool.
    Any,
    /// All lanes of the warp; bool.
    All,
    /// A bit a lane; uint32.
    Ballot,
    /// Any thread of the block, with a block barrier; int32.
    BlockOr,
    /// All threads of the block, with a block barrier; int32.
    BlockAnd,
    /// How many threads of the block, with a block barrier; int32.
    BlockCount,
}

/// A commutative fold given by the user: `(lhs, rhs) -> body`, starting at `identity`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Combiner {
    pub lhs: Var,
    pub rhs: Var,
    pub body: Expr,
    pub identity: Expr,
}
