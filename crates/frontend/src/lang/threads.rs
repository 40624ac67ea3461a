//! Loop nests of single threads, for tile operations on memory that each thread has of its own.
//!
//! A fill, copy or reduction of `local` buffers is no collective: every thread does it alone.
//! It is written out here as thread-level statements, so that nothing later has to tell the
//! two meanings of one operation apart.

use tilewright_ir::{Axis, Buffer, Expr, Loop, LoopKind, Region, Scope, StmtKind, VarKind};

use crate::Result;
use crate::record::Recorder;
use crate::record::emit::BlockKind;

/// Points up to which a nest is written out.
const UNROLLED: i128 = 64;

/// Whether each thread has its own copy of the buffer.
pub fn is_private(rec: &Recorder, buffer: Buffer) -> bool {
    matches!(rec.buffer(buffer).scope, Scope::Local | Scope::Var)
}

/// Runs `body` in loops over the extents that are not one; it gets one index an extent.
pub fn nest(
    rec: &mut Recorder,
    extents: &[Expr],
    body: impl FnOnce(&mut Recorder, &[Expr]) -> Result<()>,
) -> Result<()> {
    nest_inside(rec, 0, extents, body)
}

/// As [`nest`], inside `inside` loops of the same operation, whose names are taken.
pub fn nest_inside(
    rec: &mut Recorder,
    inside: usize,
    extents: &[Expr],
    body: impl FnOnce(&mut Recorder, &[Expr]) -> Result<()>,
) -> Result<()> {
    let points = super::extents::const_product(rec, extents);
    let kind = match points {
        Some(points) if points <= UNROLLED => LoopKind::Unroll { factor: None },
        _ => LoopKind::Serial,
    };
    let span = rec.span();
    let mut axes = Vec::new();
    let mut indices = Vec::new();
    for extent in extents {
        if extent.is_int(1) {
            indices.push(Expr::zero(extent.dtype()));
            continue;
        }
        let depth = axes.len() + inside;
        let name = ["i", "j", "k", "l"].get(depth).copied().unwrap_or("m");
        let var = rec.new_var(name, extent.dtype(), VarKind::Loop, span);
        if let Some((_, hi)) = rec.range_of(extent) {
            rec.var_bounds.insert(var, (0, (hi - 1).max(0)));
        }
        rec.open_block(BlockKind::Loop, span)?;
        indices.push(rec.var_expr(var));
        axes.push(Axis::upto(var, extent.clone()));
    }
    let result = body(rec, &indices);
    for axis in axes.into_iter().rev() {
        let body = rec.close_block();
        rec.emit(StmtKind::For(Loop {
            kind: kind.clone(),
            axes: vec![axis],
            body,
        }))?;
    }
    result
}

/// The indices of a region's point, from one offset a dimension.
pub fn point(region: &Region, offsets: &[Expr]) -> Vec<Expr> {
    region
        .dims
        .iter()
        .zip(offsets)
        .map(|(dim, offset)| add(&dim.start, offset))
        .collect()
}

/// The indices of a region's point, from one offset a dimension that is not one.
pub fn point_of_non_unit(region: &Region, offsets: &[Expr]) -> Vec<Expr> {
    let mut next = offsets.iter();
    region
        .dims
        .iter()
        .map(|dim| match dim.extent.is_int(1) {
            true => dim.start.clone(),
            false => match next.next() {
                Some(offset) => add(&dim.start, offset),
                None => dim.start.clone(),
            },
        })
        .collect()
}

/// `a + b` without the additions of zero.
fn add(a: &Expr, b: &Expr) -> Expr {
    if a.is_int(0) {
        b.clone()
    } else if b.is_int(0) {
        a.clone()
    } else {
        a + b
    }
}
