//! Code generation: device IR to C-family source that a vendor's compiler takes.
//!
//! The emitter is one for all dialects. What a statement means on a machine is written in the
//! *device header*, small pieces of source text of which a kernel gets those it calls
//! ([`device`]); the emitter itself prints structure, expressions and addresses. A dialect is
//! therefore a set of header pieces and a few words.
//!
//! ```text
//! device Func ──walk with the analyzer's facts──> kernel text ──pieces it needs──> Source
//! ```
//!
//! The source is meant to be read: buffers and variables have the user's names, each statement
//! has its line, and a comment before it quotes the user's line it comes from.
//!
//! What the emitter relies on: the function is verified device IR, and every access is inside
//! its buffer (`legalize-safe-memory-access` guards those that are not provably so). Hence
//! arithmetic that makes indices does not overflow and is printed plainly; arithmetic on data
//! wraps, and is printed with helpers where the analyzer cannot rule that out.
//!
//! | module | holds |
//! |---|---|
//! | [`source`] | the result: text, kernels, their arguments and launch shape, line map |
//! | [`device`] | the device header, piece by piece |
//! | `kernel` | a kernel's signature and what comes before its body |
//! | `stmt`, `micro`, `thread` | statements, micro-ops, thread operations |
//! | `dialect` | where CUDA and HIP part |
//! | `cuda`, `hip` | what each says its own way: signatures, votes, waits, barriers |
//! | `expr`, `cast`, `ctype` | expressions, conversions, types and constants |
//! | `buffer_load`, `wave_copy` | counted loads from tensors to registers, copies to LDS |
//! | `tensors` | the tensors that these read, described once |
//! | `bulk` | bulk copies, and the maps of the tensors that they read |
//! | `tensor_offset` | what lanes share of an offset, and what each has |
//! | `place`, `address` | buffers: where they lie, addresses of their elements |
//! | `numbered` | sums whose registers have numbers |
//! | `uses`, `plan` | what a kernel reads, writes and needs |
//! | `names`, `writer` | identifiers; lines, indentation, comments |

mod address;
mod arguments;
mod buffer_load;
mod bulk;
mod cast;
mod ctype;
mod cuda;
pub mod device;
mod dialect;
mod expr;
mod group_mma;
mod hip;
mod kernel;
mod late_sums;
mod micro;
mod names;
mod numbered;
mod place;
mod plan;
pub mod source;
mod stmt;
mod tensor_offset;
mod tensors;
mod thread;
mod uses;
mod wave_copy;
mod writer;

use tilewright_ir::visit::child_blocks_mut;
use tilewright_ir::{
    Block, Code, DeviceOp, Diagnostic, Func, Level, SourceMap, Span, StmtKind, Target,
};

pub use numbered::{Numbered, numbered};
pub use source::{KernelArg, KernelSource, LineOrigin, Source, TensorMap};

/// Names of the diagnostics of this crate.
pub mod codes {
    use tilewright_ir::Code;

    /// The function is not at device level, or was not verified.
    pub const NOT_DEVICE_IR: Code = Code("codegen-not-device-ir");
    /// The target has no way to do it.
    pub const UNSUPPORTED: Code = Code("codegen-unsupported");
}

/// How source is generated.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// Where spans point, for comments that quote the user's lines.
    pub sources: Option<&'a SourceMap>,
    /// Print `#line` directives, so that the compiler and profilers speak of the user's file.
    pub line_directives: bool,
}

/// The source of all kernels of a device-level function.
pub fn generate(
    func: &Func,
    target: Target,
    options: Options<'_>,
) -> Result<Source, Box<Diagnostic>> {
    if func.level != Level::Device {
        return Err(error(
            codes::NOT_DEVICE_IR,
            func.span,
            format!(
                "code is generated from device IR; `{}` is {} IR",
                func.name,
                func.level.name()
            ),
        ));
    }
    let mut plain = func.clone();
    for kernel in &mut plain.kernels {
        drop_iterations(&mut kernel.body);
    }
    kernel::generate(&plain, target, options)
}

/// Takes out what names iterations for the checker: it would stand between statements that are
/// generated together.
fn drop_iterations(block: &mut Block) {
    block.retain(|stmt| !matches!(stmt.kind, StmtKind::Device(DeviceOp::Iteration(_))));
    for stmt in block {
        child_blocks_mut(stmt).into_iter().for_each(drop_iterations);
    }
}

pub(crate) type Emit<T> = Result<T, Box<Diagnostic>>;

pub(crate) fn error(code: Code, span: Span, message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(code, span, message))
}

/// What the target cannot do.
pub(crate) fn unsupported<T>(span: Span, message: impl Into<String>) -> Emit<T> {
    Err(error(codes::UNSUPPORTED, span, message))
}
