//! Pure scalar expressions, as shared immutable trees.
//!
//! An [`Expr`] is cheap to clone and to compare with itself. It has no effects: what changes
//! memory or talks to other threads is a statement ([`crate::thread_op`]). Equality and hash
//! look at kind and type, never at the span.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::diag::Span;
use crate::dtype::DType;
use crate::ids::{Buffer, Var};

/// A typed expression.
#[derive(Clone)]
pub struct Expr(Arc<Node>);

struct Node {
    kind: ExprKind,
    dtype: DType,
    /// Levels of the tree: one for a leaf.
    depth: u32,
    /// Nodes of the tree, shared ones as often as they are reached.
    size: u32,
    /// Whether a buffer is named in it.
    names_memory: bool,
    span: Span,
}

/// How deep an expression may be. Comparing, hashing and debug printing recurse once a level,
/// and so do analyses, on stacks as small as two megabytes. The text parser, the front end and
/// the verifier refuse deeper ones; [`Expr::walk`], [`Expr::rewrite`], printing and dropping
/// take any depth.
pub const MAX_EXPR_DEPTH: u32 = 500;

/// How many nodes an expression may have, counting a shared node as often as it is reached:
/// everything that walks an expression takes that many steps, and doubling sixty times is
/// easily written. Refused where [`MAX_EXPR_DEPTH`] is.
pub const MAX_EXPR_SIZE: u32 = 100_000;

/// What an expression computes. Operand types are equal unless the variant says otherwise.
///
/// ## Typing rules
/// Arithmetic, bitwise, min and max keep their operands' type. Comparisons give bool with the
/// operands' lanes. `LogicalAnd`/`LogicalOr`/`Not` take bool. Division by zero is undefined.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ExprKind {
    /// An integer or bool constant, within the range of the type.
    Int(i128),
    /// A float constant, already rounded to the type.
    Float(F64),
    /// The value of a variable.
    Var(Var),
    /// An element of a buffer, one index a dimension; a vector when the last index is one.
    /// On global memory an index out of bounds gives the buffer's safe value.
    Load {
        buffer: Buffer,
        indices: Vec<Expr>,
    },
    /// The address of an element.
    AddressOf {
        buffer: Buffer,
        indices: Vec<Expr>,
    },
    Unary(UnOp, Expr),
    Binary(BinOp, Expr, Expr),
    /// Both arms are evaluated; `cond` is bool.
    Select {
        cond: Expr,
        then: Expr,
        otherwise: Expr,
    },
    /// Only the chosen arm is evaluated, so it may guard a load; `cond` is bool.
    IfThenElse {
        cond: Expr,
        then: Expr,
        otherwise: Expr,
    },
    /// Conversion to the expression's type: rounds to nearest even, saturates to fp8 and
    /// smaller, truncates float to int.
    Cast(Expr),
    /// The same bits as the expression's type; widths are equal.
    Reinterpret(Expr),
    /// A mathematical function; the type is that of the arguments unless the function says so.
    Math(MathFn, Vec<Expr>),
    /// The vector `base, base + stride, …`.
    Ramp {
        base: Expr,
        stride: Expr,
    },
    /// A scalar in every lane.
    Broadcast(Expr),
    /// One lane of a vector.
    Lane {
        vector: Expr,
        lane: u16,
    },
}

impl ExprKind {
    /// Calls `f` on each operand, left to right.
    pub fn each_operand<'a>(&'a self, mut f: impl FnMut(&'a Expr)) {
        match self {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Var(_) => {}
            ExprKind::Load { indices: list, .. }
            | ExprKind::AddressOf { indices: list, .. }
            | ExprKind::Math(_, list) => list.iter().for_each(f),
            ExprKind::Unary(_, a)
            | ExprKind::Cast(a)
            | ExprKind::Reinterpret(a)
            | ExprKind::Broadcast(a)
            | ExprKind::Lane { vector: a, .. } => f(a),
            ExprKind::Binary(_, a, b) => {
                f(a);
                f(b);
            }
            ExprKind::Ramp { base, stride } => {
                f(base);
                f(stride);
            }
            ExprKind::Select {
                cond,
                then,
                otherwise,
            }
            | ExprKind::IfThenElse {
                cond,
                then,
                otherwise,
            } => {
                f(cond);
                f(then);
                f(otherwise);
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum UnOp {
    /// Logical not of a bool.
    Not,
    /// Bitwise complement of an integer.
    BitNot,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    /// Division of floats.
    Div,
    /// Integer division rounding down.
    FloorDiv,
    /// Remainder with the divisor's sign.
    FloorMod,
    /// Integer division rounding toward zero.
    TruncDiv,
    /// Remainder with the dividend's sign.
    TruncMod,
    Min,
    Max,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    /// Arithmetic for signed operands, logical for unsigned ones.
    Shr,
    /// Evaluates the right side only when the left is true.
    LogicalAnd,
    /// Evaluates the right side only when the left is false.
    LogicalOr,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl BinOp {
    pub const ALL: [BinOp; 23] = [
        BinOp::Add,
        BinOp::Sub,
        BinOp::Mul,
        BinOp::Div,
        BinOp::FloorDiv,
        BinOp::FloorMod,
        BinOp::TruncDiv,
        BinOp::TruncMod,
        BinOp::Min,
        BinOp::Max,
        BinOp::BitAnd,
        BinOp::BitOr,
        BinOp::BitXor,
        BinOp::Shl,
        BinOp::Shr,
        BinOp::LogicalAnd,
        BinOp::LogicalOr,
        BinOp::Eq,
        BinOp::Ne,
        BinOp::Lt,
        BinOp::Le,
        BinOp::Gt,
        BinOp::Ge,
    ];

    pub const fn is_comparison(self) -> bool {
        matches!(
            self,
            BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge
        )
    }

    pub const fn is_logical(self) -> bool {
        matches!(self, BinOp::LogicalAnd | BinOp::LogicalOr)
    }

    /// The type of the result for operands of this type.
    pub const fn result(self, operands: DType) -> DType {
        if self.is_comparison() {
            DType::BOOL.with_lanes(operands.lanes)
        } else {
            operands
        }
    }
}

macro_rules! math_fns {
    ($($variant:ident $name:literal $arity:literal,)*) => {
        /// Mathematical functions. The result has the arguments' type, except that
        /// `isnan`, `isinf` and `isfinite` give bool, and `popcount` and `clz` take integers.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        pub enum MathFn { $($variant,)* }

        impl MathFn {
            pub const ALL: &[MathFn] = &[$(MathFn::$variant,)*];

            /// The name in the text form and in the tile language.
            pub const fn name(self) -> &'static str {
                match self { $(MathFn::$variant => $name,)* }
            }

            pub const fn arity(self) -> usize {
                match self { $(MathFn::$variant => $arity,)* }
            }

            pub fn from_name(name: &str) -> Option<MathFn> {
                match name { $($name => Some(MathFn::$variant),)* _ => None }
            }
        }
    };
}

math_fns! {
    Exp "exp" 1, Exp2 "exp2" 1, Exp10 "exp10" 1, Expm1 "expm1" 1,
    Log "log" 1, Log2 "log2" 1, Log10 "log10" 1, Log1p "log1p" 1,
    Sqrt "sqrt" 1, Rsqrt "rsqrt" 1, Recip "recip" 1,
    Sin "sin" 1, Cos "cos" 1, Tan "tan" 1, Asin "asin" 1, Acos "acos" 1, Atan "atan" 1,
    Sinh "sinh" 1, Cosh "cosh" 1, Tanh "tanh" 1,
    Asinh "asinh" 1, Acosh "acosh" 1, Atanh "atanh" 1,
    Erf "erf" 1, Sigmoid "sigmoid" 1,
    Floor "floor" 1, Ceil "ceil" 1, Trunc "trunc" 1, Round "round" 1, RoundAway "round_away" 1,
    Abs "abs" 1,
    IsNan "isnan" 1, IsInf "isinf" 1, IsFinite "isfinite" 1,
    Popcount "popcount" 1, Clz "clz" 1,
    Pow "pow" 2, Fmod "fmod" 2, Atan2 "atan2" 2, Hypot "hypot" 2,
    Copysign "copysign" 2, Nextafter "nextafter" 2, Ldexp "ldexp" 2,
    Fma "fma" 3,
}

impl MathFn {
    /// Whether the result is bool rather than the arguments' type.
    pub const fn is_predicate(self) -> bool {
        matches!(self, MathFn::IsNan | MathFn::IsInf | MathFn::IsFinite)
    }
}

/// A float constant compared by its bits, so that expressions have an equality.
#[derive(Clone, Copy)]
pub struct F64(pub f64);

impl PartialEq for F64 {
    fn eq(&self, other: &F64) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}
impl Eq for F64 {}
impl Hash for F64 {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}
impl fmt::Debug for F64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Expr {
    /// An expression as given; nothing is checked here, the verifier does that.
    pub fn new(kind: ExprKind, dtype: DType, span: Span) -> Expr {
        let (mut deepest, mut size) = (0u32, 1u32);
        let mut names_memory = matches!(kind, ExprKind::Load { .. } | ExprKind::AddressOf { .. });
        kind.each_operand(|operand| {
            deepest = deepest.max(operand.depth());
            size = size.saturating_add(operand.size());
            names_memory |= operand.names_memory();
        });
        Expr(Arc::new(Node {
            kind,
            dtype,
            depth: deepest.saturating_add(1),
            size,
            names_memory,
            span,
        }))
    }

    /// Levels of the tree, one for a leaf; see [`MAX_EXPR_DEPTH`].
    pub fn depth(&self) -> u32 {
        self.0.depth
    }

    pub fn kind(&self) -> &ExprKind {
        &self.0.kind
    }

    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    pub fn span(&self) -> Span {
        self.0.span
    }

    /// Nodes of the tree, a shared one as often as it is reached; see [`MAX_EXPR_SIZE`].
    pub fn size(&self) -> u32 {
        self.0.size
    }

    /// Whether a load or an address is in it.
    pub fn names_memory(&self) -> bool {
        self.0.names_memory
    }

    /// The same expression, said to come from `span`.
    pub fn with_span(self, span: Span) -> Expr {
        if self.span() == span {
            return self;
        }
        Expr::new(self.kind().clone(), self.dtype(), span)
    }

    /// Whether both are one shared node; implies equality.
    pub fn same_node(&self, other: &Expr) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether other expressions may share the node, and a number that only it has while it
    /// lives.
    pub(crate) fn identity(&self) -> (bool, usize) {
        (Arc::strong_count(&self.0) > 1, Arc::as_ptr(&self.0).addr())
    }

    /// The value of an integer or bool constant.
    pub fn as_int(&self) -> Option<i128> {
        match *self.kind() {
            ExprKind::Int(value) => Some(value),
            _ => None,
        }
    }

    /// The value of a float constant.
    pub fn as_float(&self) -> Option<f64> {
        match *self.kind() {
            ExprKind::Float(value) => Some(value.0),
            _ => None,
        }
    }

    /// The conditions that hold together where this one does: the parts of an `&&`.
    pub fn conjuncts(&self) -> Vec<&Expr> {
        let (mut parts, mut pending) = (Vec::new(), vec![self]);
        while let Some(e) = pending.pop() {
            match e.kind() {
                ExprKind::Binary(BinOp::LogicalAnd, a, b) => pending.extend([b, a]),
                _ => parts.push(e),
            }
        }
        parts
    }

    pub fn as_var(&self) -> Option<Var> {
        match *self.kind() {
            ExprKind::Var(var) => Some(var),
            _ => None,
        }
    }

    pub fn is_int(&self, value: i128) -> bool {
        self.as_int() == Some(value)
    }
}

impl PartialEq for Expr {
    fn eq(&self, other: &Expr) -> bool {
        self.same_node(other) || (self.dtype() == other.dtype() && self.kind() == other.kind())
    }
}
impl Eq for Expr {}
impl Hash for Expr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.dtype().hash(state);
        self.kind().hash(state);
    }
}
impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}:{}", self.kind(), self.dtype())
    }
}

impl Drop for Node {
    /// Unlinks deep chains one by one: the derived drop would recurse once a level and
    /// overflow the stack on an expression of a hundred thousand terms. Shallow ones are left
    /// to it, which needs no list.
    fn drop(&mut self) {
        const SHALLOW: u32 = 64;
        if self.depth <= SHALLOW {
            return;
        }
        let mut pending = Vec::new();
        take_children(&mut self.kind, &mut pending);
        while let Some(child) = pending.pop() {
            if let Some(mut node) = Arc::into_inner(child.0) {
                take_children(&mut node.kind, &mut pending);
            }
        }
    }
}

/// Moves the operands that have operands of their own out of a dying node.
fn take_children(kind: &mut ExprKind, out: &mut Vec<Expr>) {
    match std::mem::replace(kind, ExprKind::Int(0)) {
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Var(_) => {}
        ExprKind::Load { indices, .. } | ExprKind::AddressOf { indices, .. } => out.extend(indices),
        ExprKind::Math(_, args) => out.extend(args),
        ExprKind::Unary(_, a)
        | ExprKind::Cast(a)
        | ExprKind::Reinterpret(a)
        | ExprKind::Broadcast(a)
        | ExprKind::Lane { vector: a, .. } => out.push(a),
        ExprKind::Binary(_, a, b) => out.extend([a, b]),
        ExprKind::Ramp { base, stride } => out.extend([base, stride]),
        ExprKind::Select {
            cond,
            then,
            otherwise,
        }
        | ExprKind::IfThenElse {
            cond,
            then,
            otherwise,
        } => out.extend([cond, then, otherwise]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_chains_drop_without_recursion() {
        let mut e = Expr::int(0, DType::I32);
        for _ in 0..1_000_000 {
            e = e + 1;
        }
        drop(e);
    }

    #[test]
    fn equality_ignores_spans() {
        let a = Expr::int(1, DType::I32);
        let b = a.clone().with_span(Span::new(crate::FileId(0), 1, 2));
        assert_eq!(a, b);
        assert_ne!(a, Expr::int(1, DType::I64));
    }
}
