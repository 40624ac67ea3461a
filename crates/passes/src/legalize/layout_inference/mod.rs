//! LayoutInference: where every element of every fragment lives, and which thread runs which
//! point of every parallel loop.
//!
//! In three steps, from what leaves no choice to what leaves any. *Strict*: a gemm's
//! instruction fixes its accumulator, an annotation fixes its buffer. *Common*: what is known
//! spreads over the uses: a loop runs where the data lies that it touches, and a fragment lies
//! where the loop runs that touches it; a reduction's result lies with the threads that reduced.
//! *Free*: for each group of buffers and loops still undecided, every use is tried as the one
//! to start from, and the assignment with the fewest registers stays. The result depends on
//! nothing but the program.
//!
//! Before:
//! ```text
//! alloc C: fragment float32[128, 128]
//! gemm A[…], B[…] -> C[…]
//! for i, j in parallel(128, 128) { C[i, j] = C[i, j] * 2.0 }
//! ```
//! After:
//! ```text
//! alloc C: fragment float32[128, 128] layout=fragment(i, j -> thread …, slot …)
//! gemm A[…], B[…] -> C[…]
//! for i, j in parallel(128, 128) layout=fragment(i, j -> thread …, slot …) { … }
//! ```
//!
//! Two strict demands on one buffer that disagree are an error. Any other disagreement keeps
//! the fragment in shared memory instead of registers, with a warning that says why.
//! It never changes a value, and never touches code that speaks of threads directly.

mod infer;
mod uses;
mod views;

use tilewright_ir::{
    Buffer, Code, DType, Diagnostic, Diagnostics, Func, LayoutAttr, LoopKind, Scope, StmtKind,
    Target, Var, VarKind, visit,
};
use tilewright_layout::Fragment;

use crate::Changed;
pub use infer::narrowed;
pub use uses::{Touched, const_shape, copy_shape, region_map};

use infer::{Inferred, Problem};

const KEPT_IN_SHARED: Code = Code("fragment-in-shared");

/// Decides the layouts of all kernels.
pub fn layout_inference(func: &mut Func, target: Target, diags: &mut Diagnostics) -> Changed {
    uses::merge_nested_parallel(func);
    let mut changed = Changed::No;
    for at in 0..func.kernels.len() {
        // Every round either succeeds or moves a fragment to shared memory.
        for _ in 0..=func.buffers.len() {
            match infer::infer(func, at, target) {
                Ok(inferred) => {
                    write_back(func, at, inferred);
                    changed = Changed::Yes;
                    break;
                }
                Err(Problem::Demote { buffer, why, span }) => {
                    let name = &func.buffers[buffer].name;
                    diags.push(
                        Diagnostic::warning(
                            KEPT_IN_SHARED,
                            span,
                            format!("fragment `{name}` is kept in shared memory: {why}"),
                        )
                        .also(func.buffers[buffer].span, "allocated here"),
                    );
                    demote(func, buffer);
                }
                Err(Problem::Error(diag)) => {
                    diags.push(*diag);
                    return changed;
                }
            }
        }
    }
    changed
}

/// Moves a fragment to shared memory, and with it all that shows the same storage.
fn demote(func: &mut Func, buffer: Buffer) {
    let of = func.root(buffer);
    let same: Vec<Buffer> = func
        .buffers
        .keys()
        .filter(|&b| func.root(b) == of)
        .collect();
    for buffer in same {
        func.buffers[buffer].scope = Scope::Shared;
        func.buffers[buffer].layout = None;
    }
}

/// Puts the layouts where the IR keeps them.
fn write_back(func: &mut Func, kernel: usize, inferred: Inferred) {
    for (buffer, fragment) in inferred.fragments {
        let attr = fragment_attr(func, &fragment);
        func.buffers[buffer].layout = attr;
    }
    for (buffer, layout) in inferred.shared {
        if func.buffers[buffer].layout.is_none() {
            let attr =
                layout.and_then(|layout| layout.to_attr(&index_vars(func, layout.shape().len())));
            func.buffers[buffer].layout = Some(attr.unwrap_or(LayoutAttr::Swizzled));
        }
    }
    let mut loops = inferred.loops.into_iter();
    let mut body = std::mem::take(&mut func.kernels[kernel].body);
    write_loops(func, &mut body, &mut loops);
    func.kernels[kernel].body = body;
}

/// Gives each parallel loop its layout, in program order.
fn write_loops(
    func: &mut Func,
    block: &mut tilewright_ir::Block,
    loops: &mut impl Iterator<Item = Option<Fragment>>,
) {
    for stmt in block {
        if let StmtKind::For(l) = &mut stmt.kind
            && let LoopKind::Parallel { layout, .. } = &mut l.kind
        {
            let fragment = loops.next().flatten();
            *layout = fragment.and_then(|f| fragment_attr(func, &f));
        } else {
            for child in visit::child_blocks_mut(stmt) {
                write_loops(func, child, loops);
            }
        }
    }
}

/// The fragment as the IR writes it. `None` without a closed form.
pub fn fragment_attr(func: &mut Func, fragment: &Fragment) -> Option<LayoutAttr> {
    let inputs = index_vars(func, fragment.shape().len());
    let replica =
        (fragment.replicas() > 1).then(|| func.add_var("rep", DType::I32, VarKind::Bound));
    let index: Vec<_> = inputs.iter().map(|&v| func.var_expr(v)).collect();
    let copy = replica.map(|v| func.var_expr(v));
    let [thread, slot] = fragment.to_exprs(&index, copy)?;
    Some(LayoutAttr::Fragment(tilewright_ir::FragmentMap {
        inputs,
        replica,
        replicas: u32::try_from(fragment.replicas()).ok()?,
        thread,
        slots: vec![slot],
    }))
}

/// Variables for the indices of a layout, one a dimension.
fn index_vars(func: &mut Func, rank: usize) -> Vec<Var> {
    let names = ["i", "j", "k", "l", "m", "n"];
    let name = |d: usize| names.get(d).copied().unwrap_or("x");
    (0..rank)
        .map(|d| func.add_var(name(d), DType::I32, VarKind::Bound))
        .collect()
}
