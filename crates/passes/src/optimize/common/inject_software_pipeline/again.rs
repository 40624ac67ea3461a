//! Loops that a block runs again and again: how many of its iterations came before this run.
//!
//! Barriers and versions go on from run to run, so iteration `it` of a run takes those of
//! `before + it`:
//!
//! ```text
//! for t in serial(0, tiles) {          # before = t * 64
//!   for k in pipelined(0, 64) { … }    # iteration k has slot (t * 64 + k) % 3
//! }
//! ```

use tilewright_ir::visit::child_blocks;
use tilewright_ir::{Axis, DType, Expr, Loop, LoopKind, Stmt, StmtKind};

/// Iterations of a loop before the run of it that is looked at.
#[derive(Clone, Debug)]
pub(super) enum Before {
    /// The block runs it once.
    None,
    /// Once, or under a condition not at all.
    NoneIfAny,
    /// So many, of the indices around it.
    Counted(Expr),
    /// Not known from the indices: conditions decide, or runs differ in length.
    Unknown,
}

impl Before {
    /// Of a loop in a kernel's body, with what it stands in from the inside out.
    pub fn of(l: &Loop, around: &[&Stmt]) -> Before {
        if around.is_empty() {
            return Before::None;
        }
        let condition = |s: &&Stmt| matches!(s.kind, StmtKind::If { .. });
        if around.iter().all(condition) {
            return Before::NoneIfAny;
        }
        before(l, around).map_or(Before::Unknown, Before::Counted)
    }
}

fn before(l: &Loop, around: &[&Stmt]) -> Option<Expr> {
    let dtype = l.axes[0].stop.dtype();
    // Runs of what lies inside of the loops that have been looked at, in one iteration of the next.
    let mut runs = trips(&l.axes[0], dtype)?;
    let mut sum: Option<Expr> = None;
    for stmt in around {
        let StmtKind::For(outer) = &stmt.kind else {
            return None;
        };
        let axis = &outer.axes[0];
        let term = index(axis, dtype)? * runs.clone();
        sum = Some(match sum {
            Some(inner) => term + inner,
            None => term,
        });
        runs = match trips(axis, dtype) {
            Some(n) => runs * n,
            // Nothing counts the outermost.
            None if std::ptr::eq(*stmt, *around.last()?) => break,
            None => return None,
        };
    }
    sum
}

fn trips(axis: &Axis, dtype: DType) -> Option<Expr> {
    Some(Expr::int(axis.const_trip_count()?.into(), dtype))
}

/// The number of the iteration.
fn index(axis: &Axis, dtype: DType) -> Option<Expr> {
    (axis.start.is_int(0) && axis.step.is_int(1))
        .then(|| Expr::var(axis.var, axis.stop.dtype()).cast_to(dtype))
}

/// The statements that a loop stands in, from the inside out, if a thread of its own can run them
/// without the rest.
pub(super) fn around<'a>(block: &'a [Stmt], l: &Loop) -> Option<Vec<&'a Stmt>> {
    for stmt in block {
        if stmt.is_loop(l) {
            return Some(Vec::new());
        }
        for child in child_blocks(stmt) {
            let Some(mut inside) = around(child, l) else {
                continue;
            };
            let alone = match &stmt.kind {
                StmtKind::For(l) => l.kind == LoopKind::Serial && !leaves(&l.body),
                StmtKind::If { .. } => true,
                _ => false,
            };
            if !alone {
                return None;
            }
            inside.push(stmt);
            return Some(inside);
        }
    }
    None
}

/// Whether an iteration with this body may end early.
fn leaves(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match &stmt.kind {
        StmtKind::Break | StmtKind::Continue => true,
        StmtKind::For(_) | StmtKind::While { .. } => false,
        _ => child_blocks(stmt).into_iter().any(|child| leaves(child)),
    })
}
