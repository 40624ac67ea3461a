//! LowerL2Persistent: which tensors a launch keeps in the L2 cache.
//!
//! `T.annotate_l2_hit_ratio` speaks of buffers by any name; the runtime sets an access window on
//! the memory of a tensor when it launches. Here each annotation becomes one of the tensor
//! itself, with a constant ratio, and stands as the kernel's `l2` attribute down to device
//! level, where the runtime finds it. Code generators need not look at it.
//!
//! Before:
//! ```text
//! view V: global float16[4096] of A
//! kernel … l2=[V: 0.5, A: 0.25 + 0.5] { … }
//! ```
//! After:
//! ```text
//! kernel … l2=[A: 0.75] { … }
//! ```
//!
//! Of two ratios for one tensor the later holds. A target without windows on its cache drops
//! the annotation with a warning: results are the same. It never changes the body.

use tilewright_arith::Analyzer;
use tilewright_ir::{
    Buffer, BufferOrigin, Code, Diagnostic, Diagnostics, Expr, Func, Scope, Span, Target,
};

use crate::Changed;

const L2_HIT_RATIO: Code = Code("l2-hit-ratio");

/// Puts the annotations of all kernels into the form that the runtime reads.
pub fn lower_l2_persistent(func: &mut Func, target: Target, diags: &mut Diagnostics) -> Changed {
    let mut changed = Changed::No;
    for at in 0..func.kernels.len() {
        let asked = std::mem::take(&mut func.kernels[at].attrs.l2_hit_ratio);
        if asked.is_empty() {
            continue;
        }
        changed = Changed::Yes;
        let span = func.kernels[at].span;
        if !target.machine().l2_windows {
            diags.push(
                Diagnostic::warning(
                    L2_HIT_RATIO,
                    span,
                    format!(
                        "{target} has no way to keep a tensor in L2, the hit ratio has no effect"
                    ),
                )
                .help("remove T.annotate_l2_hit_ratio for this target"),
            );
            continue;
        }
        let mut kept: Vec<(Buffer, Expr)> = Vec::new();
        for (buffer, ratio) in asked {
            match window(func, buffer, &ratio, span) {
                Ok((tensor, ratio)) => {
                    kept.retain(|(b, _)| *b != tensor);
                    kept.push((tensor, ratio));
                }
                Err(diag) => diags.push(*diag),
            }
        }
        func.kernels[at].attrs.l2_hit_ratio = kept;
    }
    changed
}

/// The tensor and its ratio.
fn window(
    func: &Func,
    buffer: Buffer,
    ratio: &Expr,
    span: Span,
) -> Result<(Buffer, Expr), Box<Diagnostic>> {
    let buffer = func.root(buffer);
    let data = &func.buffers[buffer];
    let name = &data.name;
    let kept = matches!(data.origin, BufferOrigin::Param | BufferOrigin::Workspace);
    if data.scope != Scope::Global || !kept {
        let what = format!(
            "`{name}` is {} memory of its own, L2 can keep tensors and workspaces only",
            data.scope.name()
        );
        return Err(Box::new(Diagnostic::error(L2_HIT_RATIO, span, what)));
    }
    let ratio = Analyzer::for_func(func).simplify(ratio);
    match ratio.as_float() {
        Some(value) if (0.0..=1.0).contains(&value) => Ok((buffer, ratio)),
        Some(value) => Err(Box::new(Diagnostic::error(
            L2_HIT_RATIO,
            span,
            format!("the hit ratio of `{name}` is {value}, it must be between 0 and 1"),
        ))),
        None => Err(Box::new(
            Diagnostic::error(
                L2_HIT_RATIO,
                span,
                format!("the hit ratio of `{name}` is not a constant"),
            )
            .help("write a fraction, such as 0.8"),
        )),
    }
}
