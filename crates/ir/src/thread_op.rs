//! What single threads do with effects or together: atomics, shuffles, votes, barriers.
//!
//! A thread op is executed by every thread that reaches it (inside a parallel loop, once for
//! each point). Those with a result bind it to a fresh variable, so expressions stay pure.
//! The text form of each is the first line of its comment.

use crate::dtype::DType;
use crate::expr::Expr;
use crate::func::Func;
use crate::ids::{Buffer, Var};
use crate::operand::{Atomic, How, Mode, Operand, OperandMut, op_words};
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
    /// `sync_cluster`
    /// All threads of all blocks of a cluster wait for each other.
    SyncCluster,
    /// `cluster_arrive`
    /// All threads of the block come to the barrier of the cluster, and go on.
    ClusterArrive,
    /// `cluster_wait`
    /// They wait until those of all its blocks have come there.
    ClusterWait,
    /// `mbarrier_arrive bar[0]`
    /// Each executing thread counts one.
    BarrierArrive {
        barrier: Buffer,
        index: Expr,
        /// `mbarrier_arrive bar[0] warp`
        /// The lanes of each warp come together, and one arrives for all.
        warp: bool,
        at: ArriveAt,
    },
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

/// Whose barrier an arrival is at, of the blocks of a cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ArriveAt {
    Own,
    /// `mbarrier_arrive bar[0] cluster`
    /// That of every block.
    All,
    /// `mbarrier_arrive bar[0] block=1`
    /// That of the block of this number in the cluster.
    Block(Expr),
}

impl ArriveAt {
    /// Whether it may be another block's.
    pub fn reaches_others(&self) -> bool {
        *self != ArriveAt::Own
    }
}

/// The ops of some families, as a pattern. An executor has one file a family; its `match` names the
/// other families, so that the compiler says which file does not know a new op.
#[macro_export]
macro_rules! thread_ops {
    (atomics) => {
        $crate::ThreadOp::AtomicRmw { .. }
            | $crate::ThreadOp::AtomicVecAdd { .. }
            | $crate::ThreadOp::AtomicLoad { .. }
            | $crate::ThreadOp::AtomicStore { .. }
    };
    (lanes) => {
        $crate::ThreadOp::Shuffle { .. }
            | $crate::ThreadOp::Vote { .. }
            | $crate::ThreadOp::WarpReduce { .. }
            | $crate::ThreadOp::AllReduce { .. }
    };
    (barriers) => {
        $crate::ThreadOp::SyncThreads { .. }
            | $crate::ThreadOp::SyncWarp
            | $crate::ThreadOp::SyncGrid
            | $crate::ThreadOp::SyncCluster
            | $crate::ThreadOp::ClusterArrive
            | $crate::ThreadOp::ClusterWait
            | $crate::ThreadOp::BarrierArrive { .. }
            | $crate::ThreadOp::BarrierWait { .. }
            | $crate::ThreadOp::BarrierExpect { .. }
    };
    (plain) => {
        $crate::ThreadOp::Dp4a { .. }
            | $crate::ThreadOp::Extern { .. }
            | $crate::ThreadOp::Print { .. }
            | $crate::ThreadOp::SetMaxRegs { .. }
    };
    ($first:ident $($other:ident)+) => {
        $crate::thread_ops!($first) $(| $crate::thread_ops!($other))+
    };
}

/// The operands of each op, in the order of its text form, for the shared and the mutable walk.
macro_rules! thread_operands {
    ($self:ident, $f:ident, $Operand:ident) => {{
        match $self {
            ThreadOp::AtomicRmw {
                op,
                buffer,
                indices,
                value,
                result,
                ..
            } => {
                let how = How::atomic(Mode::Update, op.order());
                $f($Operand::elements(buffer, indices, 1, how));
                $f($Operand::Value(value));
                result.into_iter().for_each(|var| $f($Operand::Result(var)));
            }
            ThreadOp::AtomicVecAdd {
                dst,
                dst_indices,
                src,
                src_indices,
                lanes,
            } => {
                let count = u32::from(*lanes);
                let how = How::atomic(Mode::Update, Atomic::AnyOrder);
                $f($Operand::elements(dst, dst_indices, count, how));
                let how = How::READ;
                $f($Operand::elements(src, src_indices, count, how));
            }
            ThreadOp::AtomicLoad {
                buffer,
                indices,
                result,
                ..
            } => {
                let how = How::atomic(Mode::Read, Atomic::AnyOrder);
                $f($Operand::elements(buffer, indices, 1, how));
                $f($Operand::Result(result));
            }
            ThreadOp::AtomicStore {
                buffer,
                indices,
                value,
                ..
            } => {
                let how = How::atomic(Mode::Write, Atomic::AnyOrder);
                $f($Operand::elements(buffer, indices, 1, how));
                $f($Operand::Value(value));
            }
            ThreadOp::Shuffle {
                value,
                lane,
                result,
                ..
            } => {
                $f($Operand::Value(value));
                $f($Operand::Value(lane));
                $f($Operand::Result(result));
            }
            ThreadOp::Vote { value, result, .. } | ThreadOp::WarpReduce { value, result, .. } => {
                $f($Operand::Value(value));
                $f($Operand::Result(result));
            }
            ThreadOp::AllReduce {
                combiner,
                value,
                cond,
                dst,
                dst_indices,
                ..
            } => {
                let Combiner {
                    lhs,
                    rhs,
                    body,
                    identity,
                } = combiner;
                $f($Operand::Bound(lhs));
                $f($Operand::Bound(rhs));
                for e in [body, identity, value, cond] {
                    $f($Operand::Value(e));
                }
                let how = How::WRITE;
                $f($Operand::elements(dst, dst_indices, 1, how));
            }
            ThreadOp::BarrierArrive {
                barrier, index, at, ..
            } => {
                $f($Operand::Barrier {
                    buffer: barrier,
                    index,
                });
                if let ArriveAt::Block(rank) = at {
                    $f($Operand::Value(rank));
                }
            }
            ThreadOp::BarrierWait {
                barrier,
                index,
                parity: e,
            }
            | ThreadOp::BarrierExpect {
                barrier,
                index,
                bytes: e,
                ..
            } => {
                $f($Operand::Barrier {
                    buffer: barrier,
                    index,
                });
                $f($Operand::Value(e));
            }
            ThreadOp::Dp4a {
                a,
                a_indices,
                b,
                b_indices,
                c,
                c_indices,
            } => {
                let how = How::READ;
                $f($Operand::elements(a, a_indices, 4, how));
                $f($Operand::elements(b, b_indices, 4, how));
                let how = How::UPDATE;
                $f($Operand::elements(c, c_indices, 1, how));
            }
            ThreadOp::Extern { args, result, .. } => {
                args.into_iter().for_each(|e| $f($Operand::Value(e)));
                result.into_iter().for_each(|var| $f($Operand::Result(var)));
            }
            ThreadOp::Print { args, .. } => {
                args.into_iter().for_each(|e| $f($Operand::Value(e)));
            }
            ThreadOp::SyncThreads { .. }
            | ThreadOp::SyncWarp
            | ThreadOp::SyncGrid
            | ThreadOp::SyncCluster
            | ThreadOp::ClusterArrive
            | ThreadOp::ClusterWait
            | ThreadOp::SetMaxRegs { .. } => {}
        }
    }};
}

impl ThreadOp {
    op_words! {
        AtomicRmw "atomic_rmw",
        AtomicVecAdd "atomic_vec_add",
        AtomicLoad "atomic_load",
        AtomicStore "atomic_store",
        Shuffle "shuffle",
        Vote "vote",
        WarpReduce "warp_reduce",
        AllReduce "allreduce",
        SyncThreads "sync_threads",
        SyncWarp "sync_warp",
        SyncGrid "sync_grid",
        SyncCluster "sync_cluster",
        ClusterArrive "cluster_arrive",
        ClusterWait "cluster_wait",
        BarrierArrive "mbarrier_arrive",
        BarrierWait "mbarrier_wait",
        BarrierExpect "mbarrier_expect_tx",
        Dp4a "dp4a",
        Extern "extern",
        Print "print",
        SetMaxRegs "set_max_nreg",
    }

    /// Calls `f` on every operand.
    pub fn operands<'a>(&'a self, f: &mut dyn FnMut(Operand<'a>)) {
        thread_operands!(self, f, Operand);
    }

    /// Calls `f` on every operand.
    pub fn operands_mut(&mut self, f: &mut dyn FnMut(OperandMut<'_>)) {
        thread_operands!(self, f, OperandMut);
    }

    /// Whether threads exchange values or wait for each other, so that one alone cannot do it.
    pub const fn meets(&self) -> bool {
        matches!(self, thread_ops!(lanes barriers))
    }

    /// Whether it computes and does nothing else, so that it may run earlier.
    pub const fn only_computes(&self) -> bool {
        use ThreadOp::{Dp4a, Shuffle, WarpReduce};
        matches!(self, Shuffle { .. } | WarpReduce { .. } | Dp4a { .. })
    }

    /// How far threads agree on its result, if all do it.
    pub const fn agreement(&self) -> Agreement {
        match self {
            ThreadOp::Vote { kind, .. } if kind.is_of_block() => Agreement::Block,
            // What is one value is one value from any lane.
            ThreadOp::Shuffle { .. }
            | ThreadOp::Vote {
                kind: VoteKind::Any | VoteKind::All,
                ..
            }
            | ThreadOp::Extern { pure: true, .. } => Agreement::Operands,
            // Each thread comes at another time, or with another number of lanes.
            _ => Agreement::Nobody,
        }
    }

    /// The type of its result, where it has one.
    pub fn result_type(&self, func: &Func) -> Option<DType> {
        match self {
            ThreadOp::AtomicRmw { buffer, .. } | ThreadOp::AtomicLoad { buffer, .. } => {
                func.buffers.get(*buffer).map(|b| b.dtype)
            }
            ThreadOp::Shuffle { value, .. } | ThreadOp::WarpReduce { value, .. } => {
                Some(value.dtype())
            }
            ThreadOp::Vote { kind, .. } => Some(kind.result_type()),
            ThreadOp::Extern { dtype, .. } => Some(*dtype),
            _ => None,
        }
    }

    /// The variable that the op binds.
    pub fn result(&self) -> Option<Var> {
        let mut found = None;
        self.operands(&mut |operand| {
            if let Operand::Result(var) = operand {
                found = Some(*var);
            }
        });
        found
    }
}

/// How far threads agree on what an op gives them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Agreement {
    /// The whole block receives one answer.
    Block,
    /// As far as on everything that it takes.
    Operands,
    Nobody,
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

impl AtomicOp {
    /// Whether the order among its like counts.
    pub const fn order(self) -> Atomic {
        match self {
            AtomicOp::Exchange => Atomic::InOrder,
            _ => Atomic::AnyOrder,
        }
    }
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

impl MemoryOrder {
    /// Whether who sees the access sees what came before it.
    pub const fn releases(self) -> bool {
        matches!(self, Self::Release | Self::AcqRel | Self::SeqCst)
    }
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

impl VoteKind {
    pub const fn result_type(self) -> DType {
        match self {
            VoteKind::Any | VoteKind::All => DType::BOOL,
            VoteKind::Ballot => DType::U32,
            VoteKind::BlockOr | VoteKind::BlockAnd | VoteKind::BlockCount => DType::I32,
        }
    }

    /// Whether the whole block votes, at a barrier of its own.
    pub const fn is_of_block(self) -> bool {
        match self {
            VoteKind::Any | VoteKind::All | VoteKind::Ballot => false,
            VoteKind::BlockOr | VoteKind::BlockAnd | VoteKind::BlockCount => true,
        }
    }
}

/// A commutative fold given by the user: `(lhs, rhs) -> body`, starting at `identity`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Combiner {
    pub lhs: Var,
    pub rhs: Var,
    pub body: Expr,
    pub identity: Expr,
}
