//! RecordPrints: where kernels cannot print by themselves they get memory for their lines, which the
//! host reads.
//!
//! Before:
//! ```text
//! func @f level=device {
//!   kernel … {
//!     print "x", tx
//! ```
//! After:
//! ```text
//! func @f level=device {
//!   workspace printed: uint32[65536]
//!   attr prints = printed[[0, "x", int32]]
//!   kernel … {
//!     print "x", tx
//! ```
//!
//! It never touches a statement: what a line in memory looks like is the code generator's to write
//! and [`Prints`]' to read.

use tilewright_ir::prints::{self, PrintFormat, Prints};
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{
    BufferData, BufferOrigin, DType, Diagnostics, Expr, Func, Scope, StmtKind, Target, ThreadOp,
};

use crate::Changed;

/// Gives a function that prints a workspace for it.
pub fn record_prints(func: &mut Func, _: Target, _: &mut Diagnostics) -> Changed {
    let mut formats = Vec::new();
    for (kernel, body) in func.kernels.iter().map(|k| &k.body).enumerate() {
        walk_stmts(body, &mut |stmt| {
            let StmtKind::Thread(ThreadOp::Print { message, args }) = &stmt.kind else {
                return;
            };
            let format = PrintFormat {
                kernel: kernel as u32,
                message: message.clone(),
                values: args.iter().map(|arg| arg.dtype().scalar).collect(),
            };
            if !formats.contains(&format) {
                formats.push(format);
            }
        });
    }
    if formats.is_empty() || func.attrs.prints.is_some() {
        return Changed::No;
    }
    let buffer = func.buffers.push(BufferData {
        origin: BufferOrigin::Workspace,
        span: func.span,
        ..BufferData::new(
            "printed",
            Scope::Global,
            Prints::DTYPE,
            vec![Expr::int(prints::WORDS.into(), DType::I32)],
        )
    });
    func.workspaces.push(buffer);
    func.attrs.prints = Some(Prints { buffer, formats });
    Changed::Yes
}
