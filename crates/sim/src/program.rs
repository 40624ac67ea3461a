//! The compiled form of a kernel: what the executor runs.
//!
//! A kernel body becomes a list of instructions ([`Op`]) with jumps, over expression trees whose
//! names are resolved to slots. Symbols and scalar parameters are constants here, for a program
//! is compiled for one call. Control flow that threads may disagree about becomes instructions
//! on the mask of active threads; everything else is plain jumps.

use tilewright_ir::{BinOp, MathFn, Scalar, Span};

use crate::exec::{Thread, Tile};

/// An instruction's number.
pub(crate) type Pc = usize;

/// A compiled kernel.
#[derive(Debug)]
pub(crate) struct Program {
    pub ops: Vec<Op>,
    /// The place of each instruction's statement.
    pub spans: Vec<Span>,
    pub buffers: Vec<BufferInfo>,
    /// Sizes in bytes of what the block allocates once.
    pub block_storages: Vec<usize>,
    /// What each thread (or all together, where they agree) allocates.
    pub private_storages: Vec<PrivateInfo>,
    /// Arrivals that complete a phase, of each barrier of the block.
    pub barriers: Vec<u32>,
    /// How many value slots an executing strand needs.
    pub slots: u32,
    /// Where the block indices go.
    pub block_slots: Vec<u32>,
    /// Where the thread indices go, one slot a thread from there on; `None` where the axis has
    /// one thread and the index is the constant zero.
    pub thread_slots: [Option<u32>; 3],
    pub threads: [u32; 3],
    pub grid: Vec<u64>,
    /// Blocks along each axis of the grid that run together, and where their number among these goes.
    pub cluster: Option<[u64; 3]>,
    pub rank_slot: Option<u32>,
    /// Whether the kernel has warp-group regions, so that groups run concurrently.
    pub grouped: bool,
    pub traffic: Traffic,
}

impl Program {
    pub fn num_threads(&self) -> usize {
        self.threads.iter().product::<u32>() as usize
    }

    pub fn num_blocks(&self) -> u64 {
        self.grid.iter().product()
    }

    /// The blocks that run together.
    pub fn cluster_blocks(&self) -> u64 {
        self.cluster.map_or(1, |sizes| sizes.iter().product())
    }
}

/// How the kernel uses global memory, which decides how its blocks may be run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic {
    /// By global storage: read, or updated with a result.
    pub read: Vec<bool>,
    /// By global storage: stored to or updated.
    pub written: Vec<bool>,
    pub sync_grid: bool,
    /// A loop waits for something that another block may write.
    pub spins: bool,
}

impl Traffic {
    /// Whether a block may see what another one writes.
    pub fn blocks_share(&self) -> bool {
        self.read.iter().zip(&self.written).any(|(r, w)| r & w)
    }
}

/// A buffer as the executor sees it.
#[derive(Clone, Debug)]
pub(crate) struct BufferInfo {
    pub name: String,
    pub space: Space,
    pub scalar: Scalar,
    /// Scalars in an element: the lanes of a vector type.
    pub lanes: usize,
    pub shape: Vec<i64>,
    pub strides: Vec<i64>,
    /// Scalars before the first element, for global memory at an address.
    pub offset: usize,
    /// What a load outside of it yields, as a slot.
    pub safe: u64,
}

impl BufferInfo {
    pub fn bits(&self) -> u32 {
        self.scalar.bits()
    }

    pub fn is_float(&self) -> bool {
        self.scalar.is_float()
    }
}

/// Where a buffer's elements are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Space {
    Global(u32),
    Block(u32),
    Private(u32),
    /// Number of the first barrier.
    Barrier(u32),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PrivateInfo {
    /// Bytes of one copy, a multiple of 24 so that copies of every width start on an element.
    pub stride: usize,
    /// Whether threads may hold different contents.
    pub varying: bool,
}

/// Where a variable's value is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// One value.
    Slot(u32),
    /// One value a thread, from this slot on.
    Lane(u32),
}

/// An expression of integer, bool or address type.
#[derive(Clone, Debug)]
pub(crate) enum Int {
    Const(i64),
    Slot(u32),
    Lane(u32),
    Load(Box<Access>),
    Binary(BinOp, Scalar, Box<(Int, Int)>),
    Compare(BinOp, Scalar, Box<(Int, Int)>),
    CompareFloat(BinOp, Box<(Float, Float)>),
    /// Evaluates the right side only when the left is true.
    And(Box<(Int, Int)>),
    /// Evaluates the right side only when the left is false.
    Or(Box<(Int, Int)>),
    Not(Box<Int>),
    BitNot(Scalar, Box<Int>),
    /// Evaluates the chosen arm only.
    Choose(Box<(Int, Int, Int)>),
    /// Evaluates both arms.
    Select(Box<(Int, Int, Int)>),
    FromFloat(Scalar, Box<Float>),
    /// A cast between integer types.
    Wrap(Scalar, Box<Int>),
    /// The stored bits of a float of the type.
    BitsOf(Scalar, Box<Float>),
    Math(MathFn, Scalar, Box<Int>),
    Predicate(MathFn, Box<Float>),
}

/// An expression of float type.
#[derive(Clone, Debug)]
pub(crate) enum Float {
    Const(f64),
    Slot(u32),
    Lane(u32),
    Load(Box<Access>),
    Binary(BinOp, Scalar, Box<(Float, Float)>),
    Choose(Box<(Int, Float, Float)>),
    Select(Box<(Int, Float, Float)>),
    /// A cast of an integer of the second type.
    FromInt(Scalar, Scalar, Box<Int>),
    /// A cast between float types.
    Round(Scalar, Box<Float>),
    /// The float of the type that has these bits.
    FromBits(Scalar, Box<Int>),
    Math1(MathFn, Scalar, Box<Float>),
    Math2(MathFn, Scalar, Box<(Float, Float)>),
    Ldexp(Scalar, Box<(Float, Int)>),
    Fma(Scalar, Box<(Float, Float, Float)>),
}

/// An expression of either kind.
#[derive(Clone, Debug)]
pub(crate) enum Num {
    I(Int),
    F(Float),
}

/// An element of a buffer.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub buffer: u32,
    pub indices: Box<[Int]>,
    /// Which lane of a vector element.
    pub lane: u32,
    /// Whether the race check follows it: two points of a parallel loop might meet here.
    pub tracked: bool,
    pub span: Span,
}

/// A rectangle of a buffer.
#[derive(Clone, Debug)]
pub(crate) struct Rect {
    pub buffer: u32,
    pub start: Vec<Int>,
    pub extent: Vec<Int>,
}

/// A loop axis; the type is that of the variable.
#[derive(Clone, Debug)]
pub(crate) struct AxisCode {
    pub var: Place,
    pub name: String,
    pub scalar: Scalar,
    pub start: Int,
    pub stop: Int,
    pub step: Int,
}

/// An instruction. Thread-level ones that say `varying` are done for each active thread,
/// otherwise once for all, because all would do the same.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Let {
        place: Place,
        value: Num,
        varying: bool,
    },
    /// All values are computed, then all are stored; more than one only for vectors.
    Store {
        stores: Box<[(Access, Num)]>,
        varying: bool,
    },
    /// Contents become undefined, those of a variable zero.
    Alloc {
        buffer: u32,
        zero: bool,
        varying: bool,
    },
    Assert {
        cond: Int,
        message: Option<String>,
        varying: bool,
    },
    Jump(Pc),
    /// Jumps when the condition is false.
    Branch {
        cond: Int,
        otherwise: Pc,
    },
    /// Starts a serial loop: three slots hold start, step and trips left.
    ForStart {
        axis: Box<AxisCode>,
        state: u32,
    },
    /// Sets the index of the next iteration, or jumps past the end.
    ForNext {
        axis: Box<AxisCode>,
        state: u32,
        end: Pc,
    },
    /// Sets the slot of the wave number to zero.
    WaveStart {
        state: u32,
    },
    WaveNext(Box<Wave>),

    /// Deactivates the threads whose condition is false; without any left, goes to `otherwise`.
    MaskIf {
        cond: Int,
        otherwise: Pc,
    },
    /// Activates the others instead; without any, goes to `end`.
    MaskElse {
        end: Pc,
    },
    /// Back to those that were active before and have not left the loop; without any, goes on
    /// at `none`.
    MaskEnd {
        none: Pc,
    },
    MaskFor {
        axis: Box<AxisCode>,
    },
    MaskForNext {
        axis: Box<AxisCode>,
        end: Pc,
    },
    MaskWhile,
    MaskWhileNext {
        cond: Int,
        end: Pc,
    },
    /// The active threads leave the loop; goes on where the others may be.
    MaskBreak {
        to: Pc,
    },
    MaskContinue {
        to: Pc,
    },
    MaskLoopEnd {
        none: Pc,
    },

    /// All points of a parallel loop; the body follows and ends with `EndPoint`.
    Parallel(Box<Parallel>),
    EndPoint,
    /// Done once by the warp groups in the bit set together.
    Collective {
        tile: Box<Tile>,
        groups: u64,
    },
    /// A tile operation on private memory: done by each thread.
    PerThread {
        tile: Box<Tile>,
        varying: bool,
    },
    Thread(Box<Thread>),
    /// Warp groups outside of the bit set skip the region.
    Group {
        groups: u64,
        skip: Pc,
    },
    Halt,
}

/// The next tile of a persistent loop.
#[derive(Clone, Debug)]
pub(crate) struct Wave {
    pub state: u32,
    pub axes: Vec<AxisCode>,
    pub wave_size: Int,
    pub index: Int,
    pub group_size: Int,
    pub end: Pc,
}

#[derive(Clone, Debug)]
pub(crate) struct Parallel {
    pub axes: Vec<AxisCode>,
    pub end: Pc,
    pub groups: u64,
    /// Private buffers that the body writes but does not allocate: one instance a point.
    pub carried: Vec<u32>,
    /// What the loop reads that threads may disagree about; they must not.
    pub uniform: Uniform,
    /// Whether some accesses are tracked for races.
    pub tracked: bool,
}

/// Variables and private buffers that must be the same for all threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uniform {
    /// First slot and name.
    pub lanes: Vec<(u32, String)>,
    pub buffers: Vec<u32>,
}
