//! A tile program as data: what the generator makes, the printer prints, the plain evaluator runs
//! and the shrinker cuts down. It knows nothing of the compiler's IR.

use crate::types::Type;

/// A size by its number in [`Program::sizes`]. Shapes, loops and indices that belong together
/// name one size, so that it can be made smaller everywhere at once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Dim(pub usize);

/// A buffer by its number in [`Program::buffers`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Buf(pub usize);

/// A name for an index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Var {
    /// The block's index along a grid axis.
    Block(usize),
    /// The thread's number in its block.
    Thread,
    /// An index of a loop.
    Loop(usize),
}

#[derive(Clone, PartialEq, Debug)]
pub struct Size {
    pub value: i64,
    /// Known at run time only: a symbol, bound by a tensor's shape.
    pub dynamic: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Scope {
    Global,
    Shared,
    Fragment,
    /// An array of each thread.
    Local,
    /// A scalar of each thread.
    Var,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Buffer {
    pub scope: Scope,
    pub ty: Type,
    pub shape: Vec<Dim>,
    /// Every value that is ever stored lies between these two.
    pub range: (i64, i64),
    /// The buffer whose storage this is another name for.
    pub view_of: Option<Buf>,
    /// What a tensor holds at the start: between these two.
    pub start: (i64, i64),
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Program {
    pub seed: u64,
    pub sizes: Vec<Size>,
    pub buffers: Vec<Buffer>,
    /// One or two.
    pub grid: Vec<Dim>,
    pub threads: Option<Dim>,
    pub body: Vec<Stmt>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    FloorDiv,
    Mod,
    Min,
    Max,
    Shl,
    Shr,
    And,
    Or,
    Xor,
    Lt,
    Le,
    Eq,
    Ne,
    Both,
    Either,
}

impl BinOp {
    /// Whether the result is a bool.
    pub const fn is_test(self) -> bool {
        use BinOp::*;
        matches!(self, Lt | Le | Eq | Ne | Both | Either)
    }
}

#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    Lit(i64, Type),
    Var(Var),
    Size(Dim),
    /// An element; no index for a scalar of a thread.
    Load(Buf, Vec<Expr>),
    Abs(Box<Expr>),
    Binary(BinOp, Box<Expr>, Box<Expr>),
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    Cast(Type, Box<Expr>),
}

/// How a tile is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Style {
    /// The buffer's name.
    Whole,
    /// Its first element; the extents are the other side's.
    Start,
    /// Slices.
    Slice,
    /// The first index, then all of the others.
    Slot,
}

/// A rectangle of a buffer. An extent of `None` is a single index.
#[derive(Clone, PartialEq, Debug)]
pub struct Tile {
    pub buf: Buf,
    pub start: Vec<Expr>,
    pub extent: Vec<Option<Dim>>,
    pub style: Style,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Fold {
    Sum,
    AbsSum,
    Max,
    Min,
    AbsMax,
    BitAnd,
    BitOr,
    BitXor,
}

impl Fold {
    pub const ALL: [Fold; 8] = [
        Fold::Sum,
        Fold::AbsSum,
        Fold::Max,
        Fold::Min,
        Fold::AbsMax,
        Fold::BitAnd,
        Fold::BitOr,
        Fold::BitXor,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Fold::Sum => "sum",
            Fold::AbsSum => "abssum",
            Fold::Max => "max",
            Fold::Min => "min",
            Fold::AbsMax => "absmax",
            Fold::BitAnd => "bitand",
            Fold::BitOr => "bitor",
            Fold::BitXor => "bitxor",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum AtomicOp {
    Add,
    Max,
    Min,
}

impl AtomicOp {
    pub const fn name(self) -> &'static str {
        match self {
            AtomicOp::Add => "add",
            AtomicOp::Max => "max",
            AtomicOp::Min => "min",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Policy {
    Square,
    FullRow,
    FullCol,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LoopKind {
    Serial,
    Unroll,
    Vectorized,
    Pipelined(u32),
    /// With the schedule `plain`, of one stage or more.
    Plain(u32),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LayoutKind {
    Swizzled,
    Linear,
    /// Rows that are longer by this many elements.
    Padded(i64),
}

#[derive(Clone, PartialEq, Debug)]
pub struct Gemm {
    pub a: Tile,
    pub b: Tile,
    pub c: Tile,
    pub trans_a: bool,
    pub trans_b: bool,
    pub policy: Policy,
    pub clear: bool,
}

/// Two warp groups that hand tiles to each other through mbarriers.
#[derive(Clone, PartialEq, Debug)]
pub struct Handshake {
    /// The loop's index, in both groups.
    pub var: Var,
    pub trips: i64,
    /// Tiles that may be under way.
    pub slots: i64,
    /// The warp group that fills tiles; the consumer is the other one of groups 0 and 1.
    pub producer_group: u32,
    /// Whether the consumer's code comes first in the text.
    pub consumer_first: bool,
    pub produce: Vec<Stmt>,
    /// The consumer's code before its loop.
    pub before: Vec<Stmt>,
    pub consume: Vec<Stmt>,
    pub after: Vec<Stmt>,
}

/// A statement of the block, of one point of a parallel loop, or of each thread.
#[derive(Clone, PartialEq, Debug)]
pub enum Stmt {
    /// Shared memory, a fragment, or a local array.
    Alloc(Buf),
    /// A scalar of each thread.
    AllocVar(Buf, Option<Expr>),
    View(Buf),
    Layout(Buf, LayoutKind),
    /// The width of panels; by columns.
    UseSwizzle(i64, bool),
    Copy(Tile, Tile),
    Fill(Buf, i64),
    Parallel(Vec<(Var, Dim)>, Vec<Stmt>),
    /// To an element, or to a scalar of the thread where there is no index.
    Store(Buf, Vec<Expr>, Expr),
    Atomic(AtomicOp, Buf, Vec<Expr>, Expr),
    AtomicTile(AtomicOp, Tile, Tile),
    Reduce {
        fold: Fold,
        src: Buf,
        dst: Buf,
        dim: usize,
        clear: bool,
    },
    /// Running maxima where it says so, else sums.
    Scan {
        max: bool,
        src: Buf,
        dst: Option<Buf>,
        dim: usize,
        reverse: bool,
    },
    Transpose(Buf, Buf),
    Gemm(Gemm),
    For {
        kind: LoopKind,
        var: Var,
        count: Expr,
        body: Vec<Stmt>,
    },
    While(Expr, Vec<Stmt>),
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    Break,
    Continue,
    Sync,
    /// One warp group does this; others go on.
    Group(u32, Vec<Stmt>),
    Handshake(Handshake),
}

impl Program {
    pub fn size(&self, dim: Dim) -> i64 {
        self.sizes[dim.0].value
    }

    pub fn shape(&self, buf: Buf) -> Vec<i64> {
        let dims = &self.buffers[buf.0].shape;
        dims.iter().map(|d| self.size(*d)).collect()
    }

    pub fn thread_count(&self) -> i64 {
        self.threads.map_or(1, |d| self.size(d))
    }

    /// The tensors that statements mention: the kernel's parameters, in order.
    pub fn tensors(&self) -> impl Iterator<Item = Buf> {
        let mut used = vec![false; self.buffers.len()];
        self.walk(&mut |stmt| stmt.buffers(&mut |b| used[b.0] = true));
        // A kernel has a tensor at least where a size must be bound.
        let tensors: Vec<Buf> = self
            .buffers
            .iter()
            .enumerate()
            .filter(|(n, b)| b.scope == Scope::Global && used[*n])
            .map(|(n, _)| Buf(n))
            .collect();
        tensors.into_iter()
    }

    /// What tensors hold at the start, by their names, seed and position alone.
    pub fn start_values(&self, buf: Buf) -> Vec<i64> {
        let count: i64 = self.shape(buf).iter().product();
        let (low, high) = self.buffers[buf.0].start;
        let mut rng = crate::rng::Rng::new(self.seed.wrapping_mul(31) ^ buf.0 as u64);
        (0..count).map(|_| rng.int(low, high)).collect()
    }

    /// The statements, each before what it holds.
    pub fn walk<'a>(&'a self, each: &mut impl FnMut(&'a Stmt)) {
        walk(&self.body, each);
    }
}

/// Every statement of a list, each before what it holds.
pub fn walk<'a>(list: &'a [Stmt], each: &mut impl FnMut(&'a Stmt)) {
    for stmt in list {
        each(stmt);
        for inner in stmt.children() {
            walk(inner, each);
        }
    }
}

impl Stmt {
    pub fn children(&self) -> Vec<&Vec<Stmt>> {
        match self {
            Stmt::Parallel(_, body)
            | Stmt::For { body, .. }
            | Stmt::While(_, body)
            | Stmt::Group(_, body) => vec![body],
            Stmt::If(_, then, otherwise) => vec![then, otherwise],
            Stmt::Handshake(h) => vec![&h.produce, &h.before, &h.consume, &h.after],
            _ => Vec::new(),
        }
    }

    pub fn children_mut(&mut self) -> Vec<&mut Vec<Stmt>> {
        match self {
            Stmt::Parallel(_, body)
            | Stmt::For { body, .. }
            | Stmt::While(_, body)
            | Stmt::Group(_, body) => vec![body],
            Stmt::If(_, then, otherwise) => vec![then, otherwise],
            Stmt::Handshake(h) => vec![&mut h.produce, &mut h.before, &mut h.consume, &mut h.after],
            _ => Vec::new(),
        }
    }

    /// The buffers that this statement itself names.
    pub fn buffers(&self, each: &mut impl FnMut(Buf)) {
        match self {
            Stmt::Alloc(b)
            | Stmt::AllocVar(b, _)
            | Stmt::View(b)
            | Stmt::Layout(b, _)
            | Stmt::Fill(b, _)
            | Stmt::Store(b, ..)
            | Stmt::Atomic(_, b, ..) => each(*b),
            Stmt::Copy(a, b) | Stmt::AtomicTile(_, a, b) => {
                each(a.buf);
                each(b.buf);
            }
            Stmt::Reduce { src, dst, .. } | Stmt::Transpose(src, dst) => {
                each(*src);
                each(*dst);
            }
            Stmt::Scan { src, dst, .. } => {
                each(*src);
                dst.iter().for_each(|d| each(*d));
            }
            Stmt::Gemm(g) => [&g.a, &g.b, &g.c].into_iter().for_each(|t| each(t.buf)),
            Stmt::UseSwizzle(..)
            | Stmt::Parallel(..)
            | Stmt::For { .. }
            | Stmt::While(..)
            | Stmt::If(..)
            | Stmt::Break
            | Stmt::Continue
            | Stmt::Sync
            | Stmt::Group(..)
            | Stmt::Handshake(_) => {}
        }
        for e in self.exprs() {
            e.walk(&mut |e| {
                if let Expr::Load(b, _) = e {
                    each(*b);
                }
            });
        }
    }

    /// The expressions of this statement itself.
    pub fn exprs(&self) -> Vec<&Expr> {
        match self {
            Stmt::AllocVar(_, init) => init.iter().collect(),
            Stmt::Copy(a, b) | Stmt::AtomicTile(_, a, b) => {
                a.start.iter().chain(&b.start).collect()
            }
            Stmt::Store(_, index, value) | Stmt::Atomic(_, _, index, value) => {
                index.iter().chain([value]).collect()
            }
            Stmt::Gemm(g) => {
                let all = g.a.start.iter().chain(&g.b.start);
                all.chain(&g.c.start).collect()
            }
            Stmt::For { count, .. } => vec![count],
            Stmt::While(cond, _) | Stmt::If(cond, ..) => vec![cond],
            _ => Vec::new(),
        }
    }

    pub fn exprs_mut(&mut self) -> Vec<&mut Expr> {
        fn tile(t: &mut Tile) -> std::slice::IterMut<'_, Expr> {
            t.start.iter_mut()
        }
        match self {
            Stmt::AllocVar(_, init) => init.iter_mut().collect(),
            Stmt::Copy(a, b) | Stmt::AtomicTile(_, a, b) => tile(a).chain(tile(b)).collect(),
            Stmt::Store(_, index, value) | Stmt::Atomic(_, _, index, value) => {
                index.iter_mut().chain([value]).collect()
            }
            Stmt::Gemm(g) => {
                let all = tile(&mut g.a).chain(tile(&mut g.b));
                all.chain(tile(&mut g.c)).collect()
            }
            Stmt::For { count, .. } => vec![count],
            Stmt::While(cond, _) | Stmt::If(cond, ..) => vec![cond],
            _ => Vec::new(),
        }
    }
}

impl Expr {
    pub fn int(value: i64) -> Expr {
        Expr::Lit(value, Type::I32)
    }

    pub fn binary(op: BinOp, a: Expr, b: Expr) -> Expr {
        Expr::Binary(op, Box::new(a), Box::new(b))
    }

    pub fn children(&self) -> Vec<&Expr> {
        match self {
            Expr::Lit(..) | Expr::Var(_) | Expr::Size(_) => Vec::new(),
            Expr::Load(_, index) => index.iter().collect(),
            Expr::Abs(a) | Expr::Cast(_, a) => vec![a],
            Expr::Binary(_, a, b) => vec![a, b],
            Expr::Select(c, a, b) => vec![c, a, b],
        }
    }

    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Expr::Lit(..) | Expr::Var(_) | Expr::Size(_) => Vec::new(),
            Expr::Load(_, index) => index.iter_mut().collect(),
            Expr::Abs(a) | Expr::Cast(_, a) => vec![a],
            Expr::Binary(_, a, b) => vec![a, b],
            Expr::Select(c, a, b) => vec![c, a, b],
        }
    }

    pub fn walk<'a>(&'a self, each: &mut impl FnMut(&'a Expr)) {
        each(self);
        for child in self.children() {
            child.walk(each);
        }
    }

    /// The type of its value.
    pub fn ty(&self, program: &Program) -> Type {
        match self {
            Expr::Lit(_, ty) | Expr::Cast(ty, _) => *ty,
            Expr::Var(_) | Expr::Size(_) => Type::I32,
            Expr::Load(buf, _) => program.buffers[buf.0].ty,
            Expr::Abs(a) => a.ty(program),
            Expr::Binary(op, ..) if op.is_test() => Type::Bool,
            // The amount of a shift has the other operand's type as well.
            Expr::Binary(_, a, b) | Expr::Select(_, a, b) => a.ty(program).promote(b.ty(program)),
        }
    }
}
