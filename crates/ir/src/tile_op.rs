//! Tile operations: what the block does together with whole tiles.
//!
//! Each is executed once by the threads that reach it, and sees the full effect of the ones
//! before it. The text form of each is the first line of its comment.

use crate::buffer::Region;
use crate::dtype::{Class, Scalar};
use crate::expr::Expr;
use crate::ids::Buffer;
use crate::micro_op::MmaInst;
use crate::operand::{Atomic, How, Mode, Operand, OperandMut, op_words};
use crate::thread_op::{AtomicOp, MemoryOrder};

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TileOp {
    Copy(CopyOp),
    /// `fill C[0 +: 128, 0 +: 128], 0.0`
    /// Writes the value, cast to the buffer's type, to every element of the region.
    Fill {
        dst: Region,
        value: Expr,
    },
    Gemm(GemmOp),
    Reduce(ReduceOp),
    Scan(ScanOp),
    /// `atomic add C[0 +: 64], F[0 +: 64] relaxed`
    /// One atomic element operation for each point of `dst`.
    Atomic {
        op: AtomicOp,
        dst: Region,
        value: AtomicSource,
        order: MemoryOrder,
    },
    /// `transpose S[0 +: 64, 0 +: 32] -> D[0 +: 32, 0 +: 64]`
    /// `dst[j, i] = src[i, j]` on two-dimensional regions.
    Transpose {
        src: Region,
        dst: Region,
    },
    Im2col(Im2colOp),
    /// `reducer_init acc` / `reducer_init acc, 10`
    /// Opens an epoch: the reducer holds the value, or its identity.
    ReducerInit {
        reducer: Buffer,
        init: Option<Expr>,
    },
    /// `reducer_update acc[i], v`
    /// Contributes once for each point of the surrounding parallel loop.
    ReducerUpdate {
        reducer: Buffer,
        indices: Vec<Expr>,
        value: Expr,
    },
    /// `reducer_finalize acc` / `reducer_finalize acc -> dst`
    /// Folds all contributions; without a destination the reducer itself becomes readable.
    ReducerFinalize {
        reducer: Buffer,
        dst: Option<Region>,
    },
}

/// The operands of each op, in the order of its text form, for the shared and the mutable walk.
macro_rules! tile_operands {
    ($self:ident, $f:ident, $Operand:ident, $($mutability:tt)?) => {{
        match $self {
            TileOp::Copy(CopyOp { src, dst, kind, .. }) => {
                $f($Operand::Region { region: src, how: How::READ });
                $f($Operand::Region { region: dst, how: How::WRITE });
                if let CopyKind::Tma { barrier: Some((buffer, index)), .. } = kind {
                    $f($Operand::Barrier { buffer, index });
                }
            }
            TileOp::Fill { dst, value } => {
                $f($Operand::Region { region: dst, how: How::WRITE });
                $f($Operand::Value(value));
            }
            TileOp::Gemm(g) => {
                let how = How::plain(Mode::result(g.clear.is_int(1)));
                $f($Operand::Region { region: &$($mutability)? g.a, how: How::READ });
                $f($Operand::Region { region: &$($mutability)? g.b, how: How::READ });
                $f($Operand::Region { region: &$($mutability)? g.c, how });
                if let Some(sparse) = &$($mutability)? g.sparse {
                    $f($Operand::Region { region: &$($mutability)? sparse.e, how: How::READ });
                }
                if let Some(scales) = &$($mutability)? g.scales {
                    $f($Operand::Region { region: &$($mutability)? scales.a, how: How::READ });
                    $f($Operand::Region { region: &$($mutability)? scales.b, how: How::READ });
                }
                $f($Operand::Value(&$($mutability)? g.clear));
                if let Some((buffer, index)) = &$($mutability)? g.barrier {
                    $f($Operand::Barrier { buffer, index });
                }
            }
            TileOp::Reduce(ReduceOp { src, dst, clear, .. }) => {
                let how = How::plain(Mode::result(*clear));
                $f($Operand::Region { region: src, how: How::READ });
                $f($Operand::Region { region: dst, how });
            }
            TileOp::Scan(ScanOp { src, dst, .. }) | TileOp::Transpose { src, dst } => {
                $f($Operand::Region { region: src, how: How::READ });
                $f($Operand::Region { region: dst, how: How::WRITE });
            }
            TileOp::Atomic { op, dst, value, .. } => {
                let how = How::atomic(Mode::Update, op.order());
                $f($Operand::Region { region: dst, how });
                match value {
                    AtomicSource::Region(region) => {
                        $f($Operand::Region { region, how: How::READ });
                    }
                    AtomicSource::Value(e) => $f($Operand::Value(e)),
                }
            }
            TileOp::Im2col(i) => {
                $f($Operand::Whole { buffer: &$($mutability)? i.image, how: How::READ });
                $f($Operand::Region { region: &$($mutability)? i.dst, how: How::WRITE });
                $f($Operand::Value(&$($mutability)? i.m_step));
                $f($Operand::Value(&$($mutability)? i.k_step));
            }
            TileOp::ReducerInit { reducer, init } => {
                $f($Operand::Whole { buffer: reducer, how: How::WRITE });
                init.into_iter().for_each(|e| $f($Operand::Value(e)));
            }
            TileOp::ReducerUpdate { reducer, indices, value } => {
                let how = How::atomic(Mode::Update, Atomic::AnyOrder);
                $f($Operand::Elements { buffer: reducer, indices, count: 1, how });
                $f($Operand::Value(value));
            }
            TileOp::ReducerFinalize { reducer, dst } => {
                $f($Operand::Whole { buffer: reducer, how: How::UPDATE });
                let how = How::WRITE;
                dst.into_iter().for_each(|region| $f($Operand::Region { region, how }));
            }
        }
    }};
}

impl TileOp {
    op_words! {
        Copy "copy",
        Fill "fill",
        Gemm "gemm",
        Reduce "reduce",
        Scan "scan",
        Atomic "atomic",
        Transpose "transpose",
        Im2col "im2col",
        ReducerInit "reducer_init",
        ReducerUpdate "reducer_update",
        ReducerFinalize "reducer_finalize",
    }

    /// Calls `f` on every operand.
    pub fn operands<'a>(&'a self, f: &mut dyn FnMut(Operand<'a>)) {
        tile_operands!(self, f, Operand,);
    }

    /// Calls `f` on every operand.
    pub fn operands_mut(&mut self, f: &mut dyn FnMut(OperandMut<'_>)) {
        tile_operands!(self, f, OperandMut, mut);
    }
}

/// `copy A[by * 128 +: 128, k * 32 +: 32] -> S[0 +: 128, 0 +: 32]`, then any of `async`,
/// `tma`, `tma barrier=bar[0] multicast=3`, `coalesced=8`, `no_tma`, `evict=first`, `prefer="inst"`
///
/// For every point `dst[d0 + p] = cast(src[s0 + p])`. The non-unit extents of both sides are
/// equal in order. Loads outside the source give its safe value; stores outside are dropped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopyOp {
    pub src: Region,
    pub dst: Region,
    pub kind: CopyKind,
    pub hints: CopyHints,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CopyKind {
    /// Afterwards every thread sees the data.
    Sync,
    /// Seen only after commit and wait groups.
    Async,
    /// By the bulk copy engine. A load names the barrier element that its bytes complete;
    /// a store has none and is waited for by store groups.
    Tma {
        barrier: Option<(Buffer, Expr)>,
        /// `tma barrier=bar[0] multicast=3`: of these blocks of the cluster, a bit for each, the first
        /// loads for all of them, to the same place in each. Each block that comes here announces its
        /// own bytes; one that is not among them loads for itself.
        multicast: Option<u16>,
        /// `tma alone barrier=bar[0]`: each thread that comes here has the tile moved, and the program
        /// announces the bytes. Else all threads come here, one of them does it and announces them.
        alone: bool,
    },
    /// `tma warps=[2, 1]`: from shared memory by the bulk copy engine, where so many warp groups along
    /// rows and columns have written the tile as the sum of their product: each warp has the rows
    /// stored that it has of it. The compiler closes the groups of these stores and waits for them.
    TmaRows { warps: [u32; 2] },
}

impl CopyKind {
    /// Whether it is a thread's work, not that of all threads together.
    pub fn is_alone(&self) -> bool {
        matches!(self, CopyKind::Tma { alone: true, .. })
    }

    /// Whether memory of other blocks of the cluster is written.
    pub fn reaches_others(&self) -> bool {
        matches!(
            self,
            CopyKind::Tma {
                multicast: Some(_),
                ..
            }
        )
    }
}

/// Performance wishes; values are unaffected.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CopyHints {
    pub coalesced_width: Option<u32>,
    pub disable_tma: bool,
    pub eviction: Option<EvictionPolicy>,
    pub prefer_instruction: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EvictionPolicy {
    Normal,
    First,
    Last,
}

/// `gemm A[…], B[…] -> C[…] trans_a trans_b sparse=E[…] trans_e scales=SA[…], SB[…] every=[32, 32]
/// policy=full_row clear=(k == 0) k_pack=2 kind=wgmma barrier=bar[0] inst="mma.16x8x16.float16.float32" warps=[2, 2] run=[1, 4] parts=[2, 2] across=[1, 4]`,
/// what is default left out
///
/// `C[m, n] = (clear ? 0 : C[m, n]) + Σ_k opA(A)[m, k] · opB(B)[k, n]`; the last two dimensions
/// are the matrix, leading extents are one. Products are exact, the sum is in C's type.
/// With `sparse`, A has half of K and opA(A) is what [`Sparsity`] makes of it. With `scales`, elements
/// are multiplied by those of their rows of A and columns of B.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GemmOp {
    pub a: Region,
    pub b: Region,
    pub c: Region,
    pub trans_a: bool,
    pub trans_b: bool,
    /// `sparse=E[0 +: 64, 0 +: 4] trans_e`: which elements of A are there.
    pub sparse: Option<Sparse>,
    /// `scales=SA[0 +: 64, 0 +: 4], SB[0 +: 32, 0 +: 4] every=[32, 32]`: what elements are times.
    pub scales: Option<Scales>,
    pub policy: GemmPolicy,
    /// A bool, evaluated once.
    pub clear: Expr,
    pub k_pack: u8,
    pub kind: GemmKind,
    /// The barrier element that completion arrives on (tcgen05).
    pub barrier: Option<(Buffer, Expr)>,
    /// How it is done, once layout inference has decided.
    pub plan: Option<GemmPlan>,
}

/// Where a product reads which elements of a left factor are there that has half of its elements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sparse {
    /// A row for each row of A, or a column where `trans_e`: integers of [`Sparsity::BITS`] for each
    /// group, from the least significant ones on.
    pub e: Region,
    pub trans_e: bool,
}

/// Scales of runs of elements along K: of a product `M x K` by `K x N`, `a` is `M x ceil(K / every[0])`
/// and `b` is `N x ceil(K / every[1])`. Element k of row m of opA(A) is multiplied by
/// `a[m, k / every[0]]`, element k of column n of opB(B) by `b[n, k / every[1]]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scales {
    pub a: Region,
    pub b: Region,
    /// How many neighbours along K have one scale.
    pub every: [u32; 2],
}

impl Scales {
    /// Whether elements of this type may have scales.
    pub fn of(element: Scalar) -> bool {
        element != Scalar::F8E8M0 && matches!(element.class(), Class::F8 | Class::F6 | Class::F4)
    }

    /// Whether scales may be of this type. All of their products with elements are numbers of bfloat16,
    /// as far as its exponents go.
    pub fn may_be(scale: Scalar) -> bool {
        matches!(scale, Scalar::F8E8M0 | Scalar::F8E4M3FN)
    }

    /// How many scales a row of this many elements has.
    pub fn count(k: i128, every: u32) -> i128 {
        let every = i128::from(every.max(1));
        (k + every - 1) / every
    }
}

/// How a left factor of half its elements is stored: of each `group` neighbours along K `kept`, of which
/// bits of the metadata give the places, in rising order. What is at no place is zero. Where all that is
/// stored of a group is zero, metadata may be anything.
///
/// Of four neighbours two are kept, each with a place of two bits, the first one's below. Of two that
/// are as wide as four halves one is kept, with the places of its halves: 4 (0 and 1) for the first
/// neighbour, 14 (2 and 3) for the second, of which the upper bit of the first place says which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sparsity {
    pub kept: u32,
    pub group: u32,
}

impl Sparsity {
    /// Metadata of a group.
    pub const BITS: u32 = 4;

    /// How left factors of this type are stored, where they may be sparse.
    pub fn of(scalar: Scalar) -> Option<Sparsity> {
        match scalar {
            Scalar::F32 | Scalar::TF32 => Some(Sparsity { kept: 1, group: 2 }),
            Scalar::F16
            | Scalar::BF16
            | Scalar::I8
            | Scalar::U8
            | Scalar::F8E4M3FN
            | Scalar::F8E4M3FNUZ
            | Scalar::F8E5M2
            | Scalar::F8E5M2FNUZ => Some(Sparsity { kept: 2, group: 4 }),
            _ => None,
        }
    }

    /// Elements along K that one integer of this type speaks of, where metadata may be of it.
    pub fn per_integer(self, metadata: Scalar) -> Option<u32> {
        match metadata {
            Scalar::I8 | Scalar::U8 | Scalar::I16 | Scalar::U16 | Scalar::I32 | Scalar::U32 => {
                Some(metadata.bits() / Sparsity::BITS * self.group)
            }
            _ => None,
        }
    }

    /// The neighbour at which an element that is kept is, by the metadata of its group.
    pub fn place_in(self, element: u32, metadata: u32) -> u32 {
        let (first, bits) = self.place(element);
        (metadata >> first) & ((1 << bits) - 1)
    }

    /// Whether metadata of a group says where each element is: two places of four in rising order, or
    /// both halves of one of two.
    pub fn is_valid(self, metadata: u32) -> bool {
        match self.group {
            4 => self.place_in(0, metadata) < self.place_in(1, metadata),
            _ => matches!(metadata, 4 | 14),
        }
    }

    /// What is said of metadata that is not.
    pub fn refused(self, metadata: u32) -> String {
        let wanted = match self.group {
            4 => "two places of four, the second above the first",
            _ => "4 or 14, the halves of one of two",
        };
        format!("metadata {metadata} of a sparse factor's group; it gives {wanted}")
    }

    /// How far the place of an element that is kept lies above the first bit of its group, and how many
    /// bits it has.
    pub fn place(self, element: u32) -> (u32, u32) {
        match self.group {
            4 => (2 * element, 2),
            _ => (1, 1),
        }
    }
}

/// The instruction of a product and who does which part; where operands lie in registers follows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct GemmPlan {
    pub inst: MmaInst,
    /// Warps along M and N; warp `i · warps[1] + j` owns part (i, j).
    pub warps: [u32; 2],
    /// `run=[1, 8]`: so many rows by so many columns of C follow each other in a lane's registers.
    /// `None`: as the instruction has them.
    pub run: Option<[u32; 2]>,
    /// `parts=[2, 2]`: C is in so many parts along M and N, and each warp owns a piece of every part, so that
    /// a part of A or B serves all warps. One: what a warp owns is in one piece.
    pub parts: [u32; 2],
    /// `across=[1, 4]`: so many rows of A by so many columns of B that stand beside each other are a lane's
    /// in as many instructions, so that it reads them at once where rows in memory run along M or N.
    pub across: [u32; 2],
}

/// How warps tile C; no effect on values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GemmPolicy {
    Square,
    FullRow,
    FullCol,
}

/// Which instruction family the user asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GemmKind {
    /// The target's best, completed before the next statement.
    Auto,
    /// Split-phase warp-group MMA; C is undefined until the wait.
    Wgmma,
    /// Split-phase tcgen05 MMA; C is undefined until the wait.
    Tcgen05,
}

/// `reduce max S[0 +: 64, 0 +: 128] -> m[0 +: 64] dim=1 clear`
///
/// `dst = fold(op, clear ? identity : dst, f(cast(x)))` along `dim` of `src`; the shape of
/// `dst` is that of `src` without `dim`, or with one there. NaN loses against numbers in
/// max and min unless `nan_propagate`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReduceOp {
    pub kind: ReduceKind,
    pub src: Region,
    pub dst: Region,
    pub dim: u32,
    pub clear: bool,
    pub nan_propagate: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReduceKind {
    Sum,
    AbsSum,
    Max,
    Min,
    AbsMax,
    BitAnd,
    BitOr,
    BitXor,
}

impl ReduceKind {
    pub const ALL: [ReduceKind; 8] = [
        ReduceKind::Sum,
        ReduceKind::AbsSum,
        ReduceKind::Max,
        ReduceKind::Min,
        ReduceKind::AbsMax,
        ReduceKind::BitAnd,
        ReduceKind::BitOr,
        ReduceKind::BitXor,
    ];

    /// The word in the text form, and after `reduce_` in the tile language.
    pub const fn name(self) -> &'static str {
        match self {
            ReduceKind::Sum => "sum",
            ReduceKind::AbsSum => "abssum",
            ReduceKind::Max => "max",
            ReduceKind::Min => "min",
            ReduceKind::AbsMax => "absmax",
            ReduceKind::BitAnd => "bitand",
            ReduceKind::BitOr => "bitor",
            ReduceKind::BitXor => "bitxor",
        }
    }

    pub fn from_name(name: &str) -> Option<ReduceKind> {
        ReduceKind::ALL.into_iter().find(|k| k.name() == name)
    }

    pub const fn is_bitwise(self) -> bool {
        matches!(
            self,
            ReduceKind::BitAnd | ReduceKind::BitOr | ReduceKind::BitXor
        )
    }
}

/// `scan sum S[…] -> D[…] dim=0 reverse`
///
/// Inclusive scan along `dim`, from the end when `reverse`; source and destination may be one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScanOp {
    pub kind: ScanKind,
    pub src: Region,
    pub dst: Region,
    pub dim: u32,
    pub reverse: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ScanKind {
    Sum,
    Max,
}

/// What a tile atomic applies: a region, point by point, or one value everywhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AtomicSource {
    Region(Region),
    Value(Expr),
}

/// `im2col X -> C[0 +: 64, 0 +: 32] m=bx k=ko kernel=3 stride=1 dilation=1 pad=1`
///
/// Gathers rows of the implicit matrix of an NHWC image: with (BM, BK) the last two extents of
/// `dst`, row `m·BM + i` is an output pixel, column `k·BK + j` a filter tap and channel;
/// padding reads as zero.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Im2colOp {
    pub image: Buffer,
    pub dst: Region,
    pub m_step: Expr,
    pub k_step: Expr,
    pub kernel: u32,
    pub stride: u32,
    pub dilation: u32,
    pub pad: u32,
}
