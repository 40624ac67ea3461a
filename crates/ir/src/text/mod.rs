//! The text form, extension `.tw`: one syntax for all three levels.
//!
//! [`print()`] and [`parse`] are inverse: `parse(print(x)) == x` for every function whose names
//! are bound before they are used. Spans are not printed; a parsed node has the span of its
//! text.
//!
//! ```text
//! func @scale level=tile {
//!   symbol m: int32
//!   param A: float16[m, 64] safe=-1.0:float16
//!   output B: float16[m, 64]
//!   kernel grid(bx: (m + 31) // 32) threads(tx: 128, ty: 1, tz: 1) {
//!     alloc S: shared float16[32, 64] layout=swizzled
//!     copy A[bx * 32 +: 32, 0 +: 64] -> S[0 +: 32, 0 +: 64]
//!     for i, j in parallel(32, 64) {
//!       B[bx * 32 + i, j] = S[i, j] * 2.0:float16
//!     }
//!   }
//! }
//! ```
//!
//! - A line is a statement; inside parentheses and brackets a line may go on. `#` starts a
//!   comment.
//! - Names: the user's. Where two of them are visible together, or one is a reserved word, a
//!   number tells them apart (`i.1`); the number is not part of the name.
//! - Literals: `5` is int32, `1.5` float32, `true` bool; other types are said: `5:int64`,
//!   `1.5:float16`, `inf:float16`, `nan`, `nan(0x7ff8000000000001)`.
//! - Operators, loosest first: `||`, `&&`, comparisons (which do not chain), `|`, `^`, `&`,
//!   `<< >>`, `+ -`, `* / // %`, then `!` and `~`. `//` and `%` round down. `min`, `max`,
//!   `truncdiv`, `truncmod`, `select`, `if_then_else`, `ramp(base, stride, lanes)`,
//!   `broadcast(x, lanes)`, `lane(v, n)`, `address_of(A[i])`, `reinterpret<T>(x)` and the
//!   mathematical functions are calls; a cast is a call of the type: `float16(x)`.
//! - The type of every other node follows from its operands. An ill-typed node, which the
//!   verifier refuses, says its type: `typed<int8>(a + b)`.
//! - Regions: `A[start +: extent, …]`; a lone index has extent one.
//! - Operations: as on the first line of their comments in [`crate::tile_op`],
//!   [`crate::thread_op`], [`crate::micro_op`] and [`crate::device_op`].
//!
//! How each operation is printed and parsed stands in one file: `tile`, `thread`, `micro`, `device`
//! (`place` for what they name in buffers). The rest is in `printer` and `parser`.

mod device;
mod lexer;
mod micro;
mod names;
mod parser;
mod place;
mod printer;
mod thread;
mod tile;
mod words;

pub use names::{NamesInText, identifier};
pub use parser::{parse, parse_module};
pub use printer::{print, print_expr, print_stmt};
pub use words::Word;

use crate::dtype::DType;
use crate::expr::{BinOp, Expr, ExprKind};
use crate::func::Func;

/// How deep blocks may nest in blocks: passes recurse once a block.
pub const MAX_BLOCK_DEPTH: usize = 200;

/// How a binary operation is written.
enum Spelling {
    /// Between its operands, with how tightly it binds.
    Infix(&'static str, u8),
    Call(&'static str),
}

fn spelling(op: BinOp) -> Spelling {
    match op {
        BinOp::LogicalOr => Spelling::Infix("||", 1),
        BinOp::LogicalAnd => Spelling::Infix("&&", 2),
        BinOp::Eq => Spelling::Infix("==", 3),
        BinOp::Ne => Spelling::Infix("!=", 3),
        BinOp::Lt => Spelling::Infix("<", 3),
        BinOp::Le => Spelling::Infix("<=", 3),
        BinOp::Gt => Spelling::Infix(">", 3),
        BinOp::Ge => Spelling::Infix(">=", 3),
        BinOp::BitOr => Spelling::Infix("|", 4),
        BinOp::BitXor => Spelling::Infix("^", 5),
        BinOp::BitAnd => Spelling::Infix("&", 6),
        BinOp::Shl => Spelling::Infix("<<", 7),
        BinOp::Shr => Spelling::Infix(">>", 7),
        BinOp::Add => Spelling::Infix("+", 8),
        BinOp::Sub => Spelling::Infix("-", 8),
        BinOp::Mul => Spelling::Infix("*", 9),
        BinOp::Div => Spelling::Infix("/", 9),
        BinOp::FloorDiv => Spelling::Infix("//", 9),
        BinOp::FloorMod => Spelling::Infix("%", 9),
        BinOp::TruncDiv => Spelling::Call("truncdiv"),
        BinOp::TruncMod => Spelling::Call("truncmod"),
        BinOp::Min => Spelling::Call("min"),
        BinOp::Max => Spelling::Call("max"),
    }
}

/// The type that follows from a node's operands and names; `None` where the node itself says
/// its type.
pub(crate) fn implied_dtype(func: &Func, expr: &Expr) -> Option<DType> {
    let lanes = expr.dtype().lanes;
    Some(match expr.kind() {
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Cast(_) | ExprKind::Reinterpret(_) => {
            return None;
        }
        ExprKind::Var(var) => func.vars.get(*var)?.dtype,
        ExprKind::Load { buffer, indices } => {
            let element = func.buffers.get(*buffer)?.dtype;
            let lanes = indices.last().map_or(1, |i| i.dtype().lanes);
            element.with_lanes(element.lanes.saturating_mul(lanes))
        }
        ExprKind::AddressOf { .. } => DType::HANDLE,
        ExprKind::Unary(_, a) => a.dtype(),
        ExprKind::Binary(op, a, _) => op.result(a.dtype()),
        ExprKind::Select { then, .. } | ExprKind::IfThenElse { then, .. } => then.dtype(),
        ExprKind::Math(f, args) => {
            let arg = args.first().map_or(DType::F32, Expr::dtype);
            if f.is_predicate() {
                DType::BOOL.with_lanes(arg.lanes)
            } else {
                arg
            }
        }
        ExprKind::Ramp { base, .. } => base.dtype().with_lanes(lanes),
        ExprKind::Broadcast(a) => a.dtype().with_lanes(lanes),
        ExprKind::Lane { vector, .. } => vector.dtype().with_lanes(1),
    })
}
