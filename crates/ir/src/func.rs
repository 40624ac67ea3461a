//! Functions and kernels.

use std::collections::BTreeMap;

use cranelift_entity::PrimaryMap;

use crate::buffer::{BufferData, BufferOrigin};
use crate::diag::Span;
use crate::dtype::DType;
use crate::expr::Expr;
use crate::ids::{Buffer, Var};
use crate::prints::Prints;
use crate::stmt::{Block, StmtKind};
use crate::thread_op::ThreadOp;
use crate::tile_op::TileOp;
use crate::visit::walk_stmts;

/// How far down a function has come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Level {
    /// What the user said.
    Tile,
    /// One thread's view.
    Loop,
    /// Nothing implicit.
    Device,
}

impl Level {
    pub const ALL: [Level; 3] = [Level::Tile, Level::Loop, Level::Device];

    pub const fn name(self) -> &'static str {
        match self {
            Level::Tile => "tile",
            Level::Loop => "loop",
            Level::Device => "device",
        }
    }

    pub fn from_name(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|l| l.name() == name)
    }
}

/// A function: parameters and the kernels that run one after another when it is called.
#[derive(Clone, Debug)]
pub struct Func {
    pub name: String,
    pub level: Level,
    pub vars: PrimaryMap<Var, VarData>,
    pub buffers: PrimaryMap<Buffer, BufferData>,
    /// Run-time sizes, bound from tensor shapes at the call.
    pub symbols: Vec<Var>,
    pub params: Vec<Param>,
    /// Workspaces that live for the whole call.
    pub workspaces: Vec<Buffer>,
    pub kernels: Vec<Kernel>,
    pub attrs: FuncAttrs,
    pub span: Span,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VarData {
    /// The user's name; made unique by the printer where two variables share one.
    pub name: String,
    pub dtype: DType,
    pub kind: VarKind,
    pub span: Span,
}

/// What binds a variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VarKind {
    /// A run-time size.
    Symbol,
    /// A scalar parameter.
    Param,
    /// The block index of this grid axis.
    BlockIdx(u8),
    /// The number of a block among those of its cluster.
    Rank,
    /// The thread index of this axis.
    ThreadIdx(u8),
    /// An axis of a loop.
    Loop,
    /// A `let`, or the result of a thread op.
    Let,
    /// An argument of a layout map or of a combiner.
    Bound,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Param {
    /// A tensor; an output is allocated by the caller's wrapper and returned.
    Tensor {
        buffer: Buffer,
        output: bool,
    },
    Scalar(Var),
}

/// One launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kernel {
    /// Block index and extent of one to three grid axes, x first.
    pub grid: Vec<(Var, Expr)>,
    /// Threads along x, y, z.
    pub threads: [u32; 3],
    /// The thread indices along x, y, z.
    pub thread_vars: [Var; 3],
    pub attrs: KernelAttrs,
    pub body: Block,
    pub span: Span,
}

impl Kernel {
    pub fn num_threads(&self) -> u32 {
        self.threads.iter().product()
    }

    /// Whether blocks of a cluster reach each other's memory and barriers.
    pub fn reaches_others(&self) -> bool {
        let mut reaches = false;
        walk_stmts(&self.body, &mut |stmt| {
            reaches |= match &stmt.kind {
                StmtKind::Thread(
                    ThreadOp::SyncCluster | ThreadOp::ClusterArrive | ThreadOp::ClusterWait,
                ) => true,
                StmtKind::Thread(ThreadOp::BarrierArrive { at, .. }) => at.reaches_others(),
                StmtKind::Tile(TileOp::Copy(c)) => c.kind.reaches_others(),
                StmtKind::Micro(m) => m.arrives.as_ref().is_some_and(|a| a.multicast.is_some()),
                _ => false,
            };
        });
        reaches
    }

    /// The blocks of a cluster.
    pub fn cluster_blocks(&self) -> u32 {
        let sizes = self.attrs.cluster.unwrap_or([1; 3]);
        sizes.iter().fold(1, |n, size| n.saturating_mul(*size))
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KernelAttrs {
    /// A bijection of block indices for cache locality.
    pub swizzle: Option<Swizzle>,
    pub min_blocks_per_sm: Option<u32>,
    /// Blocks of a cluster along x, y, z.
    pub cluster: Option<[u32; 3]>,
    /// The number of a block in its cluster.
    pub rank: Option<Var>,
    /// Target-language source put before the kernel.
    pub imports: Vec<String>,
    /// The user forbade register reallocation between warp groups.
    pub no_reg_realloc: bool,
    /// Its blocks stay: the outermost loops run once for each block of the program, between which nothing
    /// is ordered.
    pub resident: bool,
    /// L2 hit ratios asked for by buffer.
    pub l2_hit_ratio: Vec<(Buffer, Expr)>,
    /// Buffers that may overlap others although they are separate parameters.
    pub may_alias: Vec<Buffer>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Swizzle {
    pub panel: u32,
    pub order: RasterOrder,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RasterOrder {
    Row,
    Column,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FuncAttrs {
    /// Flags for the target's compiler.
    pub compile_flags: Vec<String>,
    pub pass_configs: BTreeMap<String, AttrValue>,
    /// The configurations that the user gave the autotuner, each a set of parameters.
    pub autotune: Vec<BTreeMap<String, AttrValue>>,
    /// Where kernels leave what they print, on machines that do not print themselves.
    pub prints: Option<Prints>,
}

/// A value of a configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AttrValue {
    Bool(bool),
    Int(i64),
    Float(crate::expr::F64),
    Str(String),
    DType(DType),
    List(Vec<AttrValue>),
    None,
}

impl Func {
    /// An empty function at tile level.
    pub fn new(name: impl Into<String>) -> Func {
        Func {
            name: name.into(),
            level: Level::Tile,
            vars: PrimaryMap::new(),
            buffers: PrimaryMap::new(),
            symbols: Vec::new(),
            params: Vec::new(),
            workspaces: Vec::new(),
            kernels: Vec::new(),
            attrs: FuncAttrs::default(),
            span: Span::NONE,
        }
    }

    pub fn add_var(&mut self, name: impl Into<String>, dtype: DType, kind: VarKind) -> Var {
        self.vars.push(VarData {
            name: name.into(),
            dtype,
            kind,
            span: Span::NONE,
        })
    }

    /// The variable as an expression.
    pub fn var_expr(&self, var: Var) -> Expr {
        Expr::var(var, self.vars[var].dtype)
    }

    /// The buffer that owns the storage of a view; any other buffer itself.
    pub fn root(&self, mut buffer: Buffer) -> Buffer {
        // A chain of views is never longer than the list of buffers.
        for _ in 0..self.buffers.len() {
            match self.buffers[buffer].origin {
                BufferOrigin::View(base) => buffer = base,
                _ => break,
            }
        }
        buffer
    }

    /// The tensors of the signature in order, with whether each is an output.
    pub fn tensors(&self) -> impl Iterator<Item = (Buffer, bool)> + '_ {
        self.params.iter().filter_map(|p| match *p {
            Param::Tensor { buffer, output } => Some((buffer, output)),
            Param::Scalar(_) => None,
        })
    }
}
