//! What an op names, listed once for each op: values, places in memory, variables that it binds.
//!
//! [`ThreadOp::operands`](crate::ThreadOp::operands) and [`TileOp::operands`](crate::TileOp::operands)
//! are the lists. Walks over expressions and ids ([`crate::visit`], [`crate::visit_ids`]), the table of
//! accesses ([`crate::touched`]), renaming and the naming of versions go by them, so a new op is known to
//! all of those once its list is written.

use crate::buffer::Region;
use crate::expr::Expr;
use crate::ids::{Buffer, Var};

/// What is done at a place in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Read,
    Write,
    /// What is written depends on what was there.
    Update,
}

impl Mode {
    pub const fn reads(self) -> bool {
        matches!(self, Mode::Read | Mode::Update)
    }

    pub const fn writes(self) -> bool {
        matches!(self, Mode::Write | Mode::Update)
    }

    /// A result that starts anew, or goes on from what is there.
    pub const fn result(clears: bool) -> Mode {
        if clears { Mode::Write } else { Mode::Update }
    }
}

/// Whether no other access comes between the parts of this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Atomic {
    No,
    /// And no order among its like is asked for: additions give the same in any, and who loads
    /// and stores flags waits for them by himself.
    AnyOrder,
    /// And the order counts: each takes what the last one left.
    InOrder,
}

/// How an op meets others at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct How {
    pub mode: Mode,
    pub atomic: Atomic,
}

impl How {
    pub const READ: How = How::plain(Mode::Read);
    pub const WRITE: How = How::plain(Mode::Write);
    pub const UPDATE: How = How::plain(Mode::Update);

    pub const fn plain(mode: Mode) -> How {
        How {
            mode,
            atomic: Atomic::No,
        }
    }

    pub const fn atomic(mode: Mode, atomic: Atomic) -> How {
        How { mode, atomic }
    }
}

/// Inside the `impl` of an op: the word that each begins with in the text form.
macro_rules! op_words {
    ($($variant:ident $word:literal,)*) => {
        /// The words that ops of this kind begin with.
        pub const WORDS: &'static [&'static str] = &[$($word,)*];

        /// The word that the op begins with.
        pub const fn word(&self) -> &'static str {
            match self { $(Self::$variant { .. } => $word,)* }
        }
    };
}
pub(crate) use op_words;

/// Generates the shared and the mutable operand from one list of kinds.
macro_rules! operand {
    ($(#[$doc:meta])* $name:ident, $list:ty, $($mutability:tt)?) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $name<'a> {
            /// A value that the op takes.
            Value(&'a $($mutability)? Expr),
            /// So many consecutive elements of a buffer from this one on, by each thread.
            Elements {
                buffer: &'a $($mutability)? Buffer,
                indices: $list,
                count: u32,
                how: How,
            },
            /// A rectangle, by the block together.
            Region {
                region: &'a $($mutability)? Region,
                how: How,
            },
            /// All of a buffer.
            Whole {
                buffer: &'a $($mutability)? Buffer,
                how: How,
            },
            /// An arrival barrier.
            Barrier {
                buffer: &'a $($mutability)? Buffer,
                index: &'a $($mutability)? Expr,
            },
            /// The variable that the op binds for the rest of the block.
            Result(&'a $($mutability)? Var),
            /// A variable that it binds for an expression of its own.
            Bound(&'a $($mutability)? Var),
        }

        impl<'a> $name<'a> {
            pub fn elements(
                buffer: &'a $($mutability)? Buffer,
                indices: $list,
                count: u32,
                how: How,
            ) -> Self {
                Self::Elements { buffer, indices, count, how }
            }
        }
    };
}

operand!(
    /// One operand of an op.
    Operand, &'a [Expr],
);
operand!(
    /// One operand of an op, to be changed.
    OperandMut, &'a mut Vec<Expr>, mut
);

impl<'a> Operand<'a> {
    /// Calls `f` on the expressions of the operand.
    pub fn exprs(self, f: &mut dyn FnMut(&'a Expr)) {
        match self {
            Operand::Value(e) => f(e),
            Operand::Elements { indices, .. } => indices.iter().for_each(f),
            Operand::Region { region, .. } => {
                for dim in &region.dims {
                    f(&dim.start);
                    f(&dim.extent);
                }
            }
            Operand::Barrier { index, .. } => f(index),
            Operand::Whole { .. } | Operand::Result(_) | Operand::Bound(_) => {}
        }
    }
}

impl OperandMut<'_> {
    /// Calls `f` on the expressions of the operand.
    pub fn exprs(self, f: &mut dyn FnMut(&mut Expr)) {
        match self {
            OperandMut::Value(e) => f(e),
            OperandMut::Elements { indices, .. } => indices.iter_mut().for_each(f),
            OperandMut::Region { region, .. } => {
                for dim in &mut region.dims {
                    f(&mut dim.start);
                    f(&mut dim.extent);
                }
            }
            OperandMut::Barrier { index, .. } => f(index),
            OperandMut::Whole { .. } | OperandMut::Result(_) | OperandMut::Bound(_) => {}
        }
    }
}
