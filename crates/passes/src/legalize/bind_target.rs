//! BindTarget: what the target cannot do is said before anything is lowered.
//!
//! Checks each kernel against the target's table: bytes of shared memory that the user
//! allocated, tensor memory, split-phase matrix instructions. It changes nothing.
//!
//! Before and after are the same function; what comes out is a diagnostic such as
//! ```text
//! error[shared-memory-limit]: the kernel allocates 98304 bytes of shared memory, gfx942 has 65536 a block
//! ```
//!
//! Needs tile IR. It never refuses what a later pass can lower by other means.

use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{
    BufferOrigin, Code, Diagnostic, Diagnostics, Func, GemmKind, Kernel, Scope, StmtKind, Target,
    TileOp,
};

use crate::Changed;

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
    let limit = target.facts().shared_bytes as i128;
    let mut total = 0i128;
    let mut largest = None;
    walk_stmts(&kernel.body, &mut |stmt| {
        let StmtKind::Alloc(buffer) = stmt.kind else {
            return;
        };
        let data = &func.buffers[buffer];
        if data.scope != Scope::Shared || matches!(data.origin, BufferOrigin::View(_)) {
            return;
        }
        let elements: Option<i128> = data
            .shape
            .iter()
            .map(|e| e.as_int())
            .try_fold(1i128, |n, e| n.checked_mul(e?));
        let bits = elements.and_then(|n| n.checked_mul(data.dtype.bits() as i128));
        let bytes = bits.map_or(0, |b| (b + 7) / 8);
        total += bytes;
        if largest.is_none_or(|(most, _)| bytes > most) {
            largest = Some((bytes, buffer));
        }
    });
    if let Some((bytes, buffer)) = largest
        && total > limit
    {
        let data = &func.buffers[buffer];
        diags.push(
            Diagnostic::error(
                SHARED_MEMORY_LIMIT,
                data.span,
                format!(
                    "the kernel allocates {total} bytes of shared memory, {target} has {limit} a block"
                ),
            )
            .label(format!("`{}` takes {bytes} of them", data.name))
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
