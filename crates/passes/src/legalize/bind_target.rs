//! BindTarget: what the target cannot do is said before anything is lowered.
//!
//! Checks each kernel against the target's table: bytes of shared memory that the user's
//! buffers take at once, tensor memory, split-phase matrix instructions. It changes nothing.
//!
//! Before and after are the same function; what comes out is a diagnostic such as
//! ```text
//! error[shared-memory-limit]: the kernel uses 98304 bytes of shared memory at once, gfx942 has 65536 a block
//! ```
//!
//! Needs tile IR. It never refuses what a later pass can lower by other means.

use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{
    Buffer, Code, Diagnostic, Diagnostics, Func, GemmKind, Kernel, Scope, StmtKind, Target, TileOp,
};

use crate::Changed;
use crate::legalize::check_resources::most_shared;

const SHARED_MEMORY_LIMIT: Code = Code("shared-memory-limit");
const NOT_ON_TARGET: Code = Code("not-on-target");

/// Checks all kernels against the target.
pub fn bind_target(func: &mut Func, target: Target, diags: &mut Diagnostics) -> Changed {
    for kernel in &func.kernels {
        shared_memory(func, kernel, target, diags);
        instructions(func, kernel, target, diags);
    }
    Changed::No
}

fn shared_memory(func: &Func, kernel: &Kernel, target: Target, diags: &mut Diagnostics) {
    let limit = i64::from(target.facts().shared_bytes);
    let bytes_of = |buffer: Buffer| {
        let data = &func.buffers[buffer];
        let mut extents = data.shape.iter().map(|e| e.as_int());
        let elements = extents.try_fold(1i128, |n, e| n.checked_mul(e?));
        let bits = elements.and_then(|n| n.checked_mul(data.dtype.bits() as i128));
        i64::try_from(bits.map_or(0, |b| (b + 7) / 8)).unwrap_or(i64::MAX)
    };
    let (total, parts) = most_shared(func, kernel, &bytes_of);
    if let Some(&buffer) = parts.first()
        && total > limit
    {
        let data = &func.buffers[buffer];
        diags.push(
            Diagnostic::error(
                SHARED_MEMORY_LIMIT,
                data.span,
                format!(
                    "the kernel uses {total} bytes of shared memory at once, {target} has {limit} a block"
                ),
            )
            .label(format!("`{}` takes {} of them", data.name, bytes_of(buffer)))
            .help("use smaller tiles, or a type of fewer bits"),
        );
    }
}

fn instructions(func: &Func, kernel: &Kernel, target: Target, diags: &mut Diagnostics) {
    let facts = target.facts();
    walk_stmts(&kernel.body, &mut |stmt| {
        let lacking = match &stmt.kind {
            StmtKind::Alloc(b) if func.buffers[*b].scope == Scope::Tmem => Some("tensor memory"),
            StmtKind::Tile(TileOp::Gemm(g)) => match g.kind {
                GemmKind::Auto => None,
                GemmKind::Wgmma if facts.tma => None,
                GemmKind::Wgmma => Some("wgmma"),
                GemmKind::Tcgen05 => Some("tcgen05"),
            },
            _ => None,
        };
        if let Some(what) = lacking {
            diags.push(
                Diagnostic::error(NOT_ON_TARGET, stmt.span, format!("{target} has no {what}"))
                    .help("use T.gemm and fragments, which every target lowers"),
            );
        }
    });
}
