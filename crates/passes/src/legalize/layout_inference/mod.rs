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
//! alloc C: fragment float32[128, 128] layout=fragment[128, 128](i, j) -> [128; 128](thread; slot)
//! gemm A[…], B[…] -> C[…] inst="mma.16x8x16.float16.float32" warps=[2, 2]
//! for i, j in parallel(128, 128) layout=fragment[128, 128](i, j) -> [128; 128](thread; slot) { … }
//! ```
//!
//! Two strict demands on one buffer that disagree are an error. Any other disagreement keeps
//! the fragment in shared memory instead of registers, with a warning that says why.
//! It never changes a value, and never touches code that speaks of threads directly.

mod infer;
mod operands;
mod quadrants;
mod runs;
mod uses;
mod views;

use std::sync::Arc;

use tilewright_ir::{
    Block, Buffer, Code, Diagnostic, Diagnostics, Func, GemmPlan, LayoutAttr, Loop, LoopKind,
    Scope, Severity, Span, StmtKind, Target, TileOp, visit,
};
use tilewright_layout::Fragment;

use crate::Changed;
use crate::legalize::gemm_plan::{Choice, Idle};
pub use infer::narrowed;
pub use uses::{Touched, const_shape, copy_shape, region_map};

use infer::{Inferred, Problem};

const KEPT_IN_SHARED: Code = Code("fragment-in-shared");
const GEMM_POLICY: Code = Code("gemm-policy");
const IDLE_THREADS: Code = Code("idle-threads");

/// Decides the layouts of all kernels.
pub fn layout_inference(func: &mut Func, target: Target, diags: &mut Diagnostics) -> Changed {
    uses::merge_nested_parallel(func);
    let mut changed = Changed::No;
    for at in 0..func.kernels.len() {
        // Every round either succeeds or moves a fragment to shared memory.
        for _ in 0..=func.buffers.len() {
            match infer::infer(func, at, target) {
                Ok(inferred) => {
                    write_back(func, at, inferred, diags);
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
                        .also(func.buffers[buffer].span, "allocated here")
                        .help(
                            "it stays in registers where every use names the thread that holds an \
                             element: index it by indices of parallel loops, in the same way at \
                             each use, or copy what other threads need to shared memory",
                        ),
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
fn write_back(func: &mut Func, kernel: usize, inferred: Inferred, diags: &mut Diagnostics) {
    for (buffer, fragment) in inferred.fragments {
        func.buffers[buffer].layout = Some(LayoutAttr::Held(fitted(fragment)));
    }
    for (buffer, layout) in inferred.shared {
        func.buffers[buffer].layout = Some(layout);
    }
    // What nothing touches needs no layout.
    visit::walk_stmts(&func.kernels[kernel].body, &mut |stmt| {
        if let StmtKind::Alloc(buffer) = stmt.kind {
            let layout = &mut func.buffers[buffer].layout;
            layout.take_if(|l| matches!(l, LayoutAttr::FragmentMap(_)));
        }
    });
    let mut decided = Decided {
        loops: inferred.loops.into_iter(),
        gemms: inferred.gemms.into_iter(),
        diags,
    };
    decided.write(&mut func.kernels[kernel].body);
}

/// The same in no more slots than are used.
fn fitted(fragment: Arc<Fragment>) -> Arc<Fragment> {
    match fragment.slots_used() {
        used if used == fragment.slots() => fragment,
        used => fragment.with_slots(used).map_or(fragment, Arc::new),
    }
}

/// What loops and gemms are given, in program order.
struct Decided<'d> {
    loops: std::vec::IntoIter<Option<Arc<Fragment>>>,
    gemms: std::vec::IntoIter<Choice>,
    diags: &'d mut Diagnostics,
}

impl Decided<'_> {
    fn write(&mut self, block: &mut Block) {
        for stmt in block {
            match &mut stmt.kind {
                StmtKind::For(Loop {
                    kind: LoopKind::Parallel { layout, .. },
                    ..
                }) => {
                    let fragment = self.loops.next().flatten();
                    *layout = fragment.map(|f| LayoutAttr::Held(fitted(f)));
                }
                StmtKind::Tile(TileOp::Gemm(g)) => {
                    if let Some(Choice { plan, unlike, idle }) = self.gemms.next() {
                        g.plan = Some(plan);
                        let note = unlike.map(|all| not_as_wished(&plan, all, stmt.span));
                        let idle = idle.map(|idle| idle_threads(&idle, stmt.span));
                        self.diags.extend(note.into_iter().chain(idle));
                    }
                }
                _ => {
                    for child in visit::child_blocks_mut(stmt) {
                        self.write(child);
                    }
                }
            }
        }
    }
}

/// Says which threads have no part in a product.
fn idle_threads(idle: &Idle, span: Span) -> Diagnostic {
    let Idle {
        used,
        threads,
        warp,
    } = idle;
    let message = format!(
        "threads {used} to {} of {threads} have no part in this product: {threads} threads are no \
         whole warps of {warp}",
        threads - 1
    );
    let (less, more) = (threads / warp * warp, (threads / warp + 1) * warp);
    Diagnostic::warning(IDLE_THREADS, span, message)
        .help(format!("launch with threads={less} or threads={more}"))
}

/// Says where the warps lie, where the policy could not be followed.
fn not_as_wished(plan: &GemmPlan, all: i64, span: Span) -> Diagnostic {
    let [wm, wn] = plan.warps;
    let message = format!("the policy does not divide this gemm: {all} warps lie {wm} by {wn}");
    Diagnostic::new(Severity::Note, GEMM_POLICY, span, message)
        .help("the values are the same; T.GemmWarpPolicy.Square lets the compiler choose")
}
