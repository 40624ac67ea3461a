//! Which copies the bulk copy engine can do by itself, and what they are then.
//!
//! Before:
//! ```text
//! g2s for c < 4 do A[by * 128 +: 128, k * 64 +: 64] at […] -> S[0 +: 128, 0 +: 64] at […] inst="load" width=8
//! ```
//! After; which barrier hears of it is said when that is known:
//! ```text
//! tma_load A[by * 128 +: 128, k * 64 +: 64] at [by * 128, k * 64] -> S[0 +: 128, 0 +: 64] at [0, 0] inst="tma.128x64" width=1 counter=mbarrier
//! ```
//! The engine moves boxes ([`crate::legalize::boxes`]), and the threads' copy must bring the same:
//! each element to where it lies in the tile, and zero from outside of the tensor.

use tilewright_arith::Analyzer;
use tilewright_ir::{
    Axis, Expr, Func, Inst, Kernel, Loop, MicroKind, MicroOp, Region, RegionDim, Stmt, StmtKind,
    Var,
};

use super::super::effects::Effects;
use super::schedules::Why;
use crate::legalize::boxes::{Boxes, Bulk, Way, rows_of_the_call};

/// The statement of a loop as the engine's, or why it cannot do it.
pub(super) fn bulk(func: &mut Func, kernel: &Kernel, l: &Loop, stmt: &Stmt) -> Result<Bulk, Why> {
    let mut takers = Takers::default();
    let Some(m) = takers.copy_in(func, kernel, stmt) else {
        return Err("a copy under a condition, or one that does more than copy".into());
    };
    let ([source], MicroKind::G2s, Inst::Load) = (&m.sources[..], m.kind, m.inst) else {
        return Err("not all that is read ahead is copied to shared memory".into());
    };
    let boxes = Boxes::of(func, source, &m.dest).map_err(|no| Why::from(no.why))?;
    let name = &func.buffers[source.region.buffer].name;
    // The call would have to refuse what threads can copy.
    if rows_of_the_call(func, source) {
        return Err(format!(
            "`{name}` has rows of a length known at the call, and the copy engine takes multiples of 16 bytes"
        )
        .into());
    }
    let mut facts = facts(func, kernel, l, m);
    takers.assume(&mut facts);
    if !brings_the_same(func, &mut facts, m, &boxes) {
        return Err(format!("the copy of `{name}` is more than a box of it").into());
    }
    let (source, dest, evict) = (source.clone(), m.dest.clone(), m.evict);
    let mut bulk = boxes.copy(func, source, dest, Way::Load);
    bulk.op.evict = evict;
    Ok(bulk)
}

/// Which threads copy, where not all do: a tile may have fewer vectors than the block threads.
#[derive(Default)]
struct Takers<'a> {
    axes: Vec<&'a Axis>,
    conditions: Vec<&'a Expr>,
}

impl<'a> Takers<'a> {
    /// The copy that is all that a statement does, in loops and under conditions that are about
    /// threads alone.
    fn copy_in(&mut self, func: &Func, kernel: &Kernel, stmt: &'a Stmt) -> Option<&'a MicroOp> {
        let inside = match &stmt.kind {
            StmtKind::Micro(m) => {
                let start = |d: &RegionDim| Effects::of_expr(func, &d.start).vars;
                let regions = m.sources.iter().chain([&m.dest]).map(|a| &a.region);
                let mut starts = regions.flat_map(|r| &r.dims).flat_map(start);
                let own = |var: Var| self.axes.iter().any(|a| a.var == var);
                return (!starts.any(own)).then_some(m);
            }
            StmtKind::For(Loop { axes, body, .. }) => {
                let [axis] = &axes[..] else { return None };
                self.axes.push(axis);
                body
            }
            StmtKind::If {
                cond,
                then,
                otherwise,
            } if otherwise.is_empty() => {
                let Effects { vars, reads, .. } = Effects::of_expr(func, cond);
                let of_threads = |var: &Var| {
                    kernel.thread_vars.contains(var) || self.axes.iter().any(|a| a.var == *var)
                };
                if !reads.is_empty() || !vars.iter().all(of_threads) {
                    return None;
                }
                self.conditions.push(cond);
                then
            }
            _ => return None,
        };
        match &inside[..] {
            [stmt] => self.copy_in(func, kernel, stmt),
            _ => None,
        }
    }

    fn assume(&self, analyzer: &mut Analyzer) {
        for axis in &self.axes {
            analyzer.bind_range(axis.var, &axis.start, &axis.stop);
        }
        for cond in &self.conditions {
            analyzer.assume(cond);
        }
    }
}

/// What is known of the indices of a copy.
fn facts(func: &Func, kernel: &Kernel, l: &Loop, m: &MicroOp) -> Analyzer {
    let mut analyzer = Analyzer::new();
    let mut upto = |var: Var, extent: &Expr| {
        let extent = extent.clone().cast_to(func.vars[var].dtype);
        analyzer.bind_range(var, &Expr::zero(extent.dtype()), &extent);
    };
    for (var, extent) in &kernel.grid {
        upto(*var, extent);
    }
    let threads = kernel.thread_vars.iter().zip(kernel.threads);
    for (var, extent) in threads.chain(m.axes.iter().map(|(var, extent)| (var, *extent))) {
        upto(*var, &Expr::int(extent.into(), func.vars[*var].dtype));
    }
    let Axis {
        var, start, stop, ..
    } = &l.axes[0];
    analyzer.bind_range(*var, start, stop);
    analyzer
}

/// Whether the threads bring every element to its place in the tile, and zero from outside.
fn brings_the_same(func: &Func, analyzer: &mut Analyzer, m: &MicroOp, boxes: &Boxes) -> bool {
    let source = &m.sources[0];
    let Region { buffer, dims } = &source.region;
    for (dim, (at, RegionDim { start, .. })) in source.at.iter().zip(dims).enumerate() {
        let wanted = match boxes.of_tile(dim, &m.dest) {
            Some(index) => start.clone() + index.cast_to(start.dtype()),
            None => start.clone(),
        };
        if !analyzer.prove_eq(at, &wanted).is_yes() {
            return false;
        }
    }
    let zero = |e: &Expr| e.is_int(0) || e.as_float().is_some_and(|v| v.to_bits() == 0);
    match (&m.pred, &m.otherwise) {
        (None, _) => true,
        (Some(pred), Some(value)) if zero(value) => {
            // Nothing but bounds is asked for.
            for (at, extent) in source.at.iter().zip(&func.buffers[*buffer].shape) {
                analyzer.assume(&at.clone().ge(Expr::zero(at.dtype())));
                analyzer.assume(&at.clone().lt(extent.clone().cast_to(at.dtype())));
            }
            analyzer.prove(pred).is_yes()
        }
        _ => false,
    }
}
