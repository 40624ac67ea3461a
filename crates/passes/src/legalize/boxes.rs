//! What the bulk copy engine moves: boxes of a tensor, as they lie in a tile of shared memory.
//!
//! A copy between `A[by * 128 +: 128, k * 64 +: 64]` and `S[0 +: 128, 0 +: 64]` is
//! ```text
//! tma_load A[…] at [by * 128, k * 64] -> S[…] at [0, 0] inst="tma.128x64" width=1 counter=mbarrier
//! tma_store S[…] at [0, 0] -> A[…] at [by * 128, k * 64] inst="tma.128x64" width=1 counter=tma_store
//! ```
//! where the tile is made of boxes as they lie there ([`tilewright_layout::bulk`]) and the engine can
//! be told of the tensor. Which barrier hears of a load is said by who asked for it.

use tilewright_ir::{
    Access, BufferOrigin, Counter, DType, Expr, Func, Inst, MicroKind, MicroOp, RegionDim, Scope,
    TmaBox, VarKind,
};
use tilewright_layout::bulk::BulkTile;

/// Bytes that rows of a tensor are a multiple of. Source: CUDA driver API,
/// `cuTensorMapEncodeTiled`.
const PITCH: i128 = 16;

/// A copy as the engine does it.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// A load arrives nowhere yet.
    pub op: MicroOp,
    /// What the engine reports of it.
    pub bytes: u32,
}

/// Why the engine does not do a copy, and what would help.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoBox {
    pub why: String,
    pub help: &'static str,
}

impl NoBox {
    fn new<T>(why: String, help: &'static str) -> Result<T, NoBox> {
        Err(NoBox { why, help })
    }
}

/// Which way a copy goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Load,
    Store,
}

/// How a region of a tensor and a tile are made of boxes.
#[derive(Debug)]
pub struct Boxes {
    tile: BulkTile,
    /// The dimensions of the tensor that are the tile's rows and columns; of one row none.
    rows: Option<usize>,
    cols: usize,
    /// How many boxes there are along each.
    counts: [u32; 2],
}

impl Boxes {
    /// Of what is accessed of a tensor and of a tile of shared memory.
    pub fn of(func: &Func, tensor: &Access, tile: &Access) -> Result<Boxes, NoBox> {
        is_known(func, tensor)?;
        let data = &func.buffers[tile.region.buffer];
        let other = || NoBox {
            why: format!("`{}` does not lie as the copy engine writes", data.name),
            help: "leave its layout to the compiler, with rows of up to 256 elements that are \
                   multiples of 16 bytes",
        };
        if matches!(data.origin, BufferOrigin::View(_)) {
            return Err(other());
        }
        let shape = data.const_shape().ok_or_else(other)?;
        let boxes = BulkTile::of(data.placed(), &shape, data.dtype.bits().into());
        let boxes = boxes.ok_or_else(other)?;
        let (stacked, rows, cols) = match *shape {
            [cols] => (1, 1, cols),
            [ref before @ .., rows, cols] => (before.iter().product(), rows, cols),
            [] => return Err(other()),
        };
        // Boxes, tiles on each other and versions start where the permutation does.
        let bytes = |elements: i64| elements * i64::from(data.dtype.bits()) / 8;
        let one_tile = data.placed().map_or(rows * cols, |p| p.span() / stacked);
        let starts = |elements: i64| bytes(elements) % boxes.align() == 0;
        if !(starts(one_tile) && starts(boxes.rows * boxes.cols)) {
            return Err(other());
        }
        let rank = shape.len();
        let inner = rank.saturating_sub(2)..rank;
        let whole = |at: usize| {
            let RegionDim { start, extent } = &tile.region.dims[at];
            start.is_int(0) && extent.is_int(shape[at].into())
        };
        let one = |dim: &RegionDim| dim.extent.is_int(1);
        if !(inner.clone().all(whole) && tile.region.dims[..inner.start].iter().all(one)) {
            return NoBox::new(
                format!("a part of `{}` is copied", data.name),
                "copy whole tiles: all rows and columns of one index of the dimensions before them",
            );
        }
        // The dimensions of more than one index are the rows and the columns, in this order.
        let dims = &tensor.region.dims;
        let is = |dim: usize, extent: i64| dims[dim].extent.is_int(extent.into());
        let last = dims.len() - 1;
        let many: Vec<usize> = (0..last).filter(|d| !one(&dims[*d])).collect();
        let fits = match many[..] {
            [] => rows == 1,
            [row] => is(row, rows),
            _ => false,
        };
        if !fits || !is(last, cols) {
            let name = &func.buffers[tensor.region.buffer].name;
            return NoBox::new(
                format!("what is copied of `{name}` has another shape than the tile"),
                "the tile's columns are the tensor's last dimension, its rows one dimension before \
                 it",
            );
        }
        Ok(Boxes {
            tile: boxes,
            rows: many.first().copied(),
            cols: last,
            counts: [(rows / boxes.rows) as u32, (cols / boxes.cols) as u32],
        })
    }

    /// The index of the tile that an index of the tensor's dimension stands for.
    pub fn of_tile(&self, dim: usize, tile: &Access) -> Option<Expr> {
        match dim {
            d if Some(d) == self.rows => tile.at.iter().nth_back(1).cloned(),
            d if d == self.cols => tile.at.last().cloned(),
            _ => None,
        }
    }

    /// The copy between them.
    pub fn copy(&self, func: &mut Func, tensor: Access, tile: Access, way: Way) -> Bulk {
        let bits = func.buffers[tile.region.buffer].dtype.bits();
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
        let region = &tensor.region;
        let mut extents = vec![1u16; region.dims.len()];
        let mut at: Vec<Expr> = region.dims.iter().map(|d| d.start.clone()).collect();
        let mut place = |dim: usize, extent: i64, by: &Expr| {
            extents[dim] = extent as u16;
            if !by.is_int(0) {
                at[dim] = at[dim].clone() + by.clone().cast_to(at[dim].dtype());
            }
        };
        if let Some(dim) = self.rows {
            place(dim, rows, &first);
        }
        place(self.cols, cols, &second);
        let mut lies: Vec<Expr> = tile.region.dims.iter().map(|d| d.start.clone()).collect();
        for (index, inner) in lies.iter_mut().rev().zip([second, first]) {
            *index = inner;
        }
        // The extents come of a tile that is made of boxes.
        let inst = TmaBox::new(&extents).map_or(Inst::Load, Inst::Tma);
        let elements: i64 =
            self.counts.iter().map(|c| i64::from(*c)).product::<i64>() * rows * cols;
        let tensor = Access { at, ..tensor };
        let tile = Access { at: lies, ..tile };
        let (kind, counter, source, dest) = match way {
            Way::Load => (MicroKind::TmaLoad, Counter::Mbarrier, tensor, tile),
            Way::Store => (MicroKind::TmaStore, Counter::TmaStore, tile, tensor),
        };
        let op = MicroOp {
            kind,
            inst,
            axes,
            turns: false,
            sources: vec![source],
            dest,
            width: 1,
            pred: None,
            otherwise: None,
            counter: Some(counter),
            arrives: None,
        };
        Bulk {
            op,
            bytes: (elements * i64::from(bits) / 8) as u32,
        }
    }
}

/// Whether rows of a tensor are known only at the call, which then checks them.
pub fn rows_of_the_call(func: &Func, tensor: &Access) -> bool {
    let shape = &func.buffers[tensor.region.buffer].shape;
    shape.len() > 1 && shape.last().is_some_and(|row| row.as_int().is_none())
}

/// Whether the engine can be told of a tensor: a parameter in row-major order whose rows start at
/// multiples of 16 bytes. Rows whose length the call says are checked there.
fn is_known(func: &Func, tensor: &Access) -> Result<(), NoBox> {
    let data = &func.buffers[tensor.region.buffer];
    let refuse = |why: &str, help| NoBox::new(format!("`{}` {why}", data.name), help);
    if data.scope != Scope::Global || !matches!(data.origin, BufferOrigin::Param) {
        return refuse(
            "is no parameter of the kernel",
            "copy from or to a parameter of the kernel",
        );
    }
    if data.strides.is_some() {
        return refuse("has strides", "pass a tensor in row-major order");
    }
    if !(1..=TmaBox::MAX_RANK).contains(&data.shape.len()) {
        return refuse(
            "has no number of dimensions that the copy engine knows",
            "pass a tensor of one to five dimensions",
        );
    }
    // Rows, planes and so on: each is a multiple of what follows it.
    let row = data.shape[1..].last().and_then(|row| row.as_int());
    if row.is_some_and(|row| row * i128::from(data.dtype.bits()) % (8 * PITCH) != 0) {
        return refuse(
            "has rows that are no multiple of 16 bytes, which the copy engine takes",
            "pad the rows of the tensor, or use `T.copy`",
        );
    }
    Ok(())
}
