//! The IR of Tilewright.
//!
//! One IR, three levels (see [`Level`]): *tile* IR is what the user said, *loop* IR is one
//! thread's view with typed micro-ops, *device* IR has every wait, barrier and fence written
//! down. All levels share these types, one text form and one verifier that knows which level
//! it checks.
//!
//! | module | holds |
//! |---|---|
//! | [`dtype`] | scalar and vector types, their names, ranges and the promotion rules |
//! | [`small_float`] | every number format bit by bit: rounding, encoding, casts |
//! | [`ids`] | typed ids of variables and buffers |
//! | [`expr`] | pure scalar expressions, shared trees |
//! | [`expr_build`] | typed construction of expressions, with constant folding left to `arith` |
//! | [`buffer`] | buffers, scopes, regions, layout annotations |
//! | [`tile_op`] | tile operations: copy, gemm, reduce, … |
//! | [`thread_op`] | what single threads do together: atomics, shuffles, barriers |
//! | [`micro_op`] | loop IR micro-ops: g2s, s2r, mma, … |
//! | [`device_op`] | device IR: waits, barriers, fences, priorities |
//! | [`stmt`] | statements, loops, blocks |
//! | [`func`] | functions and kernels |
//! | [`target`] | the targets and their machines, one table |
//! | [`visit`], [`visit_ids`] | walks and rewrites of expressions and ids |
//! | [`mod@touched`] | what an operation does to memory, one table |
//! | [`uniform`] | what the threads of a block agree on, one analysis |
//! | [`declare`] | where views and pointers are declared |
//! | [`text`] | the text form: printer and parser |
//! | [`mod@verify`] | what every function satisfies, rule by rule |
//! | [`builder`] | writing kernels in Rust |
//! | [`nearest`] | what a misspelt name may have meant |
//! | [`diag`] | spans, sources, diagnostics |

pub mod buffer;
pub mod builder;
pub mod compile_flags;
pub mod declare;
pub mod device_op;
pub mod diag;
pub mod dtype;
pub mod expr;
pub mod expr_build;
pub mod func;
pub mod ids;
mod machine;
pub mod micro_op;
pub mod nearest;
pub mod operand;
pub mod prints;
mod renumber;
pub mod small_float;
pub mod stmt;
pub mod target;
pub mod text;
pub mod thread_op;
pub mod tile_op;
pub mod touched;
pub mod uniform;
pub mod verify;
pub mod visit;
pub mod visit_ids;

pub use buffer::{
    BufferData, BufferOrigin, FragmentMap, IndexMap, LayoutAttr, Region, RegionDim, Scope,
    SharedPlace,
};
pub use device_op::{BarrierKind, Counter, Counting, DeviceOp, FenceKind};
pub use diag::{Code, Diagnostic, Diagnostics, FileId, Label, Severity, SourceMap, Span};
pub use dtype::{DType, Scalar};
pub use expr::{BinOp, Expr, ExprKind, F64, MAX_EXPR_DEPTH, MAX_EXPR_SIZE, MathFn, UnOp};
pub use func::{
    AttrValue, Func, FuncAttrs, Kernel, KernelAttrs, Level, Param, RasterOrder, Swizzle, VarData,
    VarKind,
};
pub use ids::{Buffer, Var};
pub use micro_op::{Access, Arrival, Inst, Major, MicroKind, MicroOp, MmaFamily, MmaInst, TmaBox};
pub use stmt::{Axis, Block, Loop, LoopKind, PipelineSpec, Stmt, StmtKind, Turn};
pub use target::{Dialect, Fp8Formats, Machine, MmaFacts, Target, WARP_GROUP};
pub use thread_op::{ArriveAt, AtomicOp, Combiner, MemoryOrder, ShuffleKind, ThreadOp, VoteKind};
pub use tile_op::{
    AtomicSource, CopyHints, CopyKind, CopyOp, EvictionPolicy, GemmKind, GemmOp, GemmPlan,
    GemmPolicy, Im2colOp, ReduceKind, ReduceOp, Scales, ScanKind, ScanOp, Sparse, Sparsity, TileOp,
};
pub use verify::verify;
