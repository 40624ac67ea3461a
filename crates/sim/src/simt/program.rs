//! The compiled form of a kernel: what a warp runs.
//!
//! The body of a thread becomes one list of instructions ([`Op`]) for a whole warp. Values are
//! registers: one word for all lanes where the compiler can tell that they agree ([`Slot::One`]),
//! else one word a lane. Integers, bools and addresses are the bits of an `i64`, floats those of
//! an `f64`, as in the reference evaluator. Divergent control flow works on the mask of active
//! lanes; a register keeps whatever it had in lanes that are not active.

use std::sync::Arc;

use tilewright_ir::{BinOp, Counter, Inst, MathFn, Scalar, Span};

use super::device::DeviceCode;
use super::threads::ThreadCode;
use crate::grid;
use crate::program::Traffic;

/// An instruction's number.
pub(super) type Pc = u32;

/// Where a value of a warp lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Slot {
    /// One word that all lanes share.
    One(u32),
    /// One word a lane, computed once when the warp starts.
    Fixed(u32),
    /// One word a lane.
    Lanes(u32),
}

impl Slot {
    pub fn is_one(self) -> bool {
        matches!(self, Slot::One(_))
    }
}

/// A compiled kernel.
#[derive(Debug, Default)]
pub(super) struct Program {
    /// Run once by every warp, all lanes active: no memory, no control flow.
    pub prelude: Vec<Op>,
    pub ops: Vec<Op>,
    /// The statement of each instruction of `ops`.
    pub stmt_of: Vec<u32>,
    pub stmts: Vec<StmtInfo>,
    pub accesses: Vec<Access>,
    pub buffers: Vec<BufferInfo>,
    /// Values of the shared words when a warp starts.
    pub ones: Vec<u64>,
    pub fixed: u32,
    pub lanes: u32,
    pub shared_bytes: usize,
    /// Whether shared buffers lie over each other.
    pub shared_overlaps: bool,
    /// Bytes of one thread's private arrays.
    pub local_bytes: usize,
    /// The private arrays of products of warp groups: first bytes and lengths.
    pub group_registers: Vec<(usize, usize)>,
    /// Whether the copy engine writes shared memory.
    pub bulk_copies: bool,
    /// Arrivals that complete a phase, of each barrier; zero before it is initialised.
    pub barriers: Vec<u32>,
    /// Where the block indices go.
    pub block_slots: Vec<u32>,
    /// Where the thread indices go; the words of lanes.
    pub thread_slots: [u32; 3],
    pub threads: [u32; 3],
    pub grid: Vec<u64>,
    /// Blocks along each axis of the grid that run together, and where their number among these goes.
    pub cluster: Option<[u64; 3]>,
    pub rank_slot: Option<u32>,
    pub traffic: Traffic,
}

impl Program {
    pub fn num_threads(&self) -> usize {
        self.threads.iter().map(|&n| n as usize).product()
    }

    pub fn num_blocks(&self) -> u64 {
        self.grid.iter().product()
    }

    /// The blocks of a cluster: those that reach each other's memory.
    pub fn cluster_blocks(&self) -> u64 {
        self.cluster.map_or(1, |sizes| sizes.iter().product())
    }

    /// The numbers in the grid of a cluster's blocks.
    pub fn members(&self, cluster: u64) -> Vec<u64> {
        grid::members(&self.grid, self.cluster, cluster)
    }
}

/// What reports say about a statement.
#[derive(Clone, Debug)]
pub(super) struct StmtInfo {
    pub span: Span,
    /// What it is, in a word or two: `store`, `ldmatrix.x4`.
    pub what: String,
    /// The indices of the loops around it, outermost first.
    pub loops: Arc<[(String, Slot)]>,
}

/// A buffer as a warp sees it.
#[derive(Clone, Debug)]
pub(super) struct BufferInfo {
    pub name: String,
    pub space: Space,
    pub scalar: Scalar,
    /// Scalars in an element: the lanes of a vector type.
    pub lanes: u32,
    pub shape: Vec<i64>,
    pub strides: Vec<i64>,
    /// The physical place of each element, in elements; `None` is row-major.
    pub places: Option<Arc<[u32]>>,
    /// Elements from one version to the next.
    pub version_elements: i64,
    pub versions: u32,
    /// The number of the shared buffer whose storage this is, from one on.
    pub owner: u16,
}

impl BufferInfo {
    pub fn bits(&self) -> u32 {
        self.scalar.bits()
    }
}

/// Where a buffer's elements are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Space {
    /// The number of a global storage.
    Global(u32),
    /// First byte in the block's shared memory.
    Shared(u32),
    /// First byte in each thread's private memory.
    Local(u32),
    /// Number of the first barrier.
    Barrier(u32),
}

/// An element, or several in a row, of a buffer.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub buffer: u32,
    pub indices: Box<[Slot]>,
    /// The version, where the buffer has several.
    pub version: Option<Slot>,
    /// Scalars in a row, from the first one of the element.
    pub width: u32,
}

/// Functions of one value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Fn1 {
    Copy,
    Not,
    BitNot(Scalar),
    /// A cast of a float to an integer type.
    FromFloat(Scalar),
    /// A cast between integer types.
    Wrap(Scalar),
    /// The stored bits of a float of the type.
    BitsOf(Scalar),
    IntMath(MathFn, Scalar),
    Predicate(MathFn),
    /// A cast of an integer of the second type.
    FromInt(Scalar, Scalar),
    /// A cast between float types.
    Round(Scalar),
    /// The float of the type that has these bits.
    FromBits(Scalar),
    Math(MathFn, Scalar),
}

/// Functions of two values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Fn2 {
    Int(BinOp, Scalar),
    Compare(BinOp, Scalar),
    Float(BinOp, Scalar),
    CompareFloat(BinOp),
    Math(MathFn, Scalar),
    Ldexp(Scalar),
}

/// Functions of three values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Fn3 {
    Select,
    Fma(Scalar),
}

/// An instruction.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Alu1 {
        f: Fn1,
        dst: Slot,
        a: Slot,
    },
    Alu2 {
        f: Fn2,
        dst: Slot,
        a: Slot,
        b: Slot,
    },
    Alu3 {
        f: Fn3,
        dst: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
    },
    /// Inside an expression: only lanes where the condition is `when` go on; without any, goes
    /// to `skip`, which is the `MaskPop`.
    MaskPush {
        cond: Slot,
        when: bool,
        skip: Pc,
    },
    MaskPop,
    /// Reads an access; one destination a scalar.
    Load {
        access: u32,
        dst: Box<[Slot]>,
    },
    Store {
        access: u32,
        values: Box<[Slot]>,
    },
    /// A private buffer's contents become undefined.
    Alloc {
        buffer: u32,
    },
    /// The registers of a private buffer may hold something else from here on.
    GiveUp {
        buffer: u32,
    },
    Assert {
        cond: Slot,
        message: String,
        assumed: bool,
    },

    If {
        cond: Slot,
        otherwise: Pc,
    },
    /// As `If`, for the threads of the 128-thread groups in the bit set.
    IfGroup {
        groups: u64,
        otherwise: Pc,
    },
    /// Goes on with the lanes that skipped the first branch; without any, goes to `end`.
    Else {
        end: Pc,
    },
    /// Joins the lanes of both branches; without any, goes to `none`.
    EndIf {
        none: Pc,
    },
    /// Opens a loop: the index starts.
    For {
        var: Slot,
        start: Slot,
        step: Slot,
    },
    /// Lanes that reached the end wait; without any left, the loop is over: goes to `end`.
    ForHead {
        var: Slot,
        stop: Slot,
        step: Slot,
        end: Pc,
    },
    ForNext {
        var: Slot,
        step: Slot,
        head: Pc,
    },
    While,
    WhileHead {
        cond: Slot,
        end: Pc,
    },
    WhileNext {
        head: Pc,
    },
    /// The active lanes leave the loop; goes on where others may be.
    Break {
        to: Pc,
    },
    Continue {
        to: Pc,
    },

    /// The instruction indices of a micro-op start at zero.
    MicroStart {
        axes: Box<[u32]>,
    },
    Micro(Box<MicroCode>),
    /// The next point of a micro-op's instruction indices, last one fastest; where rows turn, an
    /// index runs backwards while the one before it is odd.
    MicroNext {
        axes: Box<[(u32, u32)]>,
        turns: bool,
        body: Pc,
    },
    Thread(Box<ThreadCode>),
    Device(DeviceCode),
    Halt,
}

/// One machine instruction of a micro-op.
#[derive(Clone, Debug)]
pub(super) struct MicroCode {
    pub inst: Inst,
    pub dest: u32,
    pub sources: Box<[u32]>,
    pub pred: Option<Slot>,
    /// What a load writes where the predicate is false; one word a scalar, all the same.
    pub otherwise: Option<Slot>,
    pub counter: Option<Counter>,
    /// Scalars of private memory from each of the elements moved to the next one.
    pub apart: u32,
    /// The barrier that hears of a bulk load.
    pub arrives: Option<super::bulk::Arrival>,
    /// Whether the compiler may join its pieces into fewer instructions.
    pub joined: bool,
    /// The lane maps of a matrix instruction.
    pub mma: Option<Arc<super::mma::MmaTable>>,
    /// What is known of a warp group's product.
    pub group: Option<Arc<super::group_mma::GroupTable>>,
    /// Where the bytes go of a load or store that exchanges them between lanes.
    pub spread: Option<Arc<super::spread::Spread>>,
}
