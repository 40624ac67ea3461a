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
//! The engine moves boxes: a tile of shared memory must be made of boxes as they lie there
//! ([`tilewright_layout::bulk`]), and the threads' copy must bring the same: each element to where it
//! lies in the tile, and zero from outside of the tensor.

use tilewright_arith::Analyzer;
use tilewright_ir::{
    Access, Axis, BufferOrigin, Counter, DType, Expr, Func, Inst, Kernel, Loop, MicroKind, MicroOp,
    Region, RegionDim, Scope, Stmt, StmtKind, TmaBox, Var, VarKind,
};
use tilewright_layout::bulk::BulkTile;

use super::schedules::Why;

/// A copy as the engine does it.
#[derive(Clone, Debug)]
pub(super) struct Bulk {
    /// It arrives nowhere yet.
    pub op: MicroOp,
    /// What the engine reports of it.
    pub bytes: u32,
}

/// The statement of a loop as the engine's, or why it cannot do it.
pub(super) fn bulk(func: &mut Func, kernel: &Kernel, l: &Loop, stmt: &Stmt) -> Result<Bulk, Why> {
    let StmtKind::Micro(m) = &stmt.kind else {
        return Err("a copy under a condition, or one that does more than copy".into());
    };
    let ([source], MicroKind::G2s, Inst::Load) = (&m.sources[..], m.kind, m.inst) else {
        return Err("not all that is read ahead is copied to shared memory".into());
    };
    tensor(func, source)?;
    let boxes = Boxes::of(func, source, &m.dest)?;
    if !brings_the_same(func, &mut facts(func, kernel, l, m), m, &boxes) {
        let name = &func.buffers[source.region.buffer].name;
        return Err(format!("the copy of `{name}` is more than a box of it").into());
    }
    let (source, dest) = (source.clone(), m.dest.clone());
    Ok(boxes.copy(func, source, dest))
}

/// Whether the engine can be told of a tensor: a parameter in row-major order whose rows start at
/// multiples of 16 bytes.
fn tensor(func: &Func, source: &Access) -> Result<(), Why> {
    let data = &func.buffers[source.region.buffer];
    let refuse = |why: &str| Err(Why::from(format!("`{}` {why}", data.name)));
    if data.scope != Scope::Global || !matches!(data.origin, BufferOrigin::Param) {
        return refuse("is no parameter of the kernel");
    }
    if data.strides.is_some() {
        return refuse("has strides");
    }
    if data.shape.len() > TmaBox::MAX_RANK {
        return refuse("has more dimensions than the copy engine knows");
    }
    // Rows, planes and so on: each is a multiple of what follows it.
    const PITCH: i128 = 16;
    if let Some(row) = data.shape[1..].last() {
        let Some(row) = row.as_int() else {
            return refuse(
                "has rows of a length known at the call, and the copy engine takes multiples of 16 bytes",
            );
        };
        if row * i128::from(data.dtype.bits()) % (8 * PITCH) != 0 {
            return refuse(
                "has rows that are no multiple of 16 bytes, which the copy engine takes",
            );
        }
    }
    Ok(())
}

/// How a region of a tensor and a tile are made of boxes.
struct Boxes {
    tile: BulkTile,
    /// The dimensions of the tensor that are the tile's rows and columns; of one row none.
    rows: Option<usize>,
    cols: usize,
    /// How many boxes there are along each.
    counts: [u32; 2],
}

impl Boxes {
    fn of(func: &Func, source: &Access, dest: &Access) -> Result<Boxes, Why> {
        let data = &func.buffers[dest.region.buffer];
        let other = || {
            Why::from(format!(
                "`{}` does not lie as the copy engine writes",
                data.name
            ))
        };
        let shape = data.const_shape().ok_or_else(other)?;
        let tile = BulkTile::of(data.placed(), &shape, data.dtype.bits().into());
        let tile = tile.ok_or_else(other)?;
        let &[.., rows, cols] = &shape[..] else {
            return Err(other());
        };
        let rank = shape.len();
        // Boxes and versions start where the permutation does.
        let bytes = |elements: i64| elements * i64::from(data.dtype.bits()) / 8;
        let version = data.placed().map_or(rows * cols, |p| p.span());
        if [version, tile.rows * tile.cols]
            .iter()
            .any(|n| bytes(*n) % tile.align() != 0)
        {
            return Err(other());
        }
        let whole = |at: usize| {
            let RegionDim { start, extent } = &dest.region.dims[at];
            start.is_int(0) && extent.is_int(shape[at].into())
        };
        let one = |dim: &RegionDim| dim.extent.is_int(1);
        if !(whole(rank - 2) && whole(rank - 1) && dest.region.dims[..rank - 2].iter().all(one)) {
            return Err(format!("a part of `{}` is copied", data.name).into());
        }
        // The dimensions of more than one index are the rows and the columns, in this order.
        let dims = &source.region.dims;
        let is = |dim: usize, extent: i64| dims[dim].extent.is_int(extent.into());
        let last = dims.len() - 1;
        let many: Vec<usize> = (0..last).filter(|d| !one(&dims[*d])).collect();
        let fits = match many[..] {
            [] => rows == 1,
            [row] => is(row, rows),
            _ => false,
        };
        if !fits || !is(last, cols) {
            let name = &func.buffers[source.region.buffer].name;
            return Err(
                format!("what is copied of `{name}` has another shape than the tile").into(),
            );
        }
        Ok(Boxes {
            tile,
            rows: many.first().copied(),
            cols: last,
            counts: [(rows / tile.rows) as u32, (cols / tile.cols) as u32],
        })
    }

    /// The index of the tile that an index of the tensor's dimension stands for.
    fn of_tile(&self, dim: usize, dest: &Access) -> Option<Expr> {
        let rank = dest.at.len();
        match dim {
            d if Some(d) == self.rows => Some(dest.at[rank - 2].clone()),
            d if d == self.cols => Some(dest.at[rank - 1].clone()),
            _ => None,
        }
    }

    fn copy(&self, func: &mut Func, source: Access, dest: Access) -> Bulk {
        let bits = func.buffers[dest.region.buffer].dtype.bits();
        let [rows, cols] = [self.tile.rows, self.tile.cols];
        let mut axes = Vec::new();
        // The first index of a box along a dimension, from the start of the region.
        let mut along = |func: &mut Func, count: u32, extent: i64, name: &str| match count {
            0 | 1 => Expr::i32(0),
            count => {
                let var = func.add_var(name, DType::I32, VarKind::Loop);
                axes.push((var, count));
                func.var_expr(var) * extent as i32
            }
        };
        let first = along(func, self.counts[0], rows, "r");
        let second = along(func, self.counts[1], cols, "p");
        let region = &source.region;
        let mut extents = vec![1u16; region.dims.len()];
        let mut from: Vec<Expr> = region.dims.iter().map(|d| d.start.clone()).collect();
        let mut place = |dim: usize, extent: i64, by: &Expr| {
            extents[dim] = extent as u16;
            if !by.is_int(0) {
                from[dim] = from[dim].clone() + by.clone().cast_to(from[dim].dtype());
            }
        };
        if let Some(dim) = self.rows {
            place(dim, rows, &first);
        }
        place(self.cols, cols, &second);
        let rank = dest.at.len();
        let mut to: Vec<Expr> = dest.region.dims.iter().map(|d| d.start.clone()).collect();
        to[rank - 2] = first;
        to[rank - 1] = second;
        // The extents come of a tile that is made of boxes.
        let inst = TmaBox::new(&extents).map_or(Inst::Load, Inst::Tma);
        let elements: i64 =
            self.counts.iter().map(|c| i64::from(*c)).product::<i64>() * rows * cols;
        let op = MicroOp {
            kind: MicroKind::TmaLoad,
            inst,
            axes,
            turns: false,
            sources: vec![Access { at: from, ..source }],
            dest: Access { at: to, ..dest },
            width: 1,
            pred: None,
            otherwise: None,
            counter: Some(Counter::Mbarrier),
            arrives: None,
        };
        Bulk {
            op,
            bytes: (elements * i64::from(bits) / 8) as u32,
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
