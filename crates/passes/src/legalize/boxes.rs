//! What the bulk copy engine moves: boxes of a tensor, as they lie in a tile of shared memory.
//!
//! A copy between `A[by * 128 +: 128, k * 64 +: 64]` and `S[0 +: 128, 0 +: 64]` is
//! ```text
//! tma_load A[…] at [by * 128, k * 64] -> S[…] at [0, 0] inst="tma.128x64" width=1 counter=mbarrier
//! tma_store S[…] at [0, 0] -> A[…] at [by * 128, k * 64] inst="tma.128x64" width=1 counter=tma_store
//! ```
//! where the tile is made of boxes as they lie there ([`tilewright_layout::bulk`]) and the engine can
//! be told of the tensor. Which barrier hears of a load is said by who asked for it.

use tilewright_arith::Analyzer;
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
    /// Those of a thread, along each.
    along: [Row; 2],
}

/// Boxes in a row.
#[derive(Clone, Debug)]
struct Row {
    /// Where the first of them is, from the start of the region.
    first: Expr,
    /// Where the region starts in the tile.
    start: Expr,
    count: u32,
    step: i64,
}

impl Row {
    fn of_all(extent: i64, step: i64) -> Row {
        Row {
            first: Expr::i32(0),
            start: Expr::i32(0),
            count: (extent / step) as u32,
            step,
        }
    }
}

impl Row {
    fn extent(&self) -> i64 {
        i64::from(self.count) * self.step
    }
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
        // Whole boxes of the tile, along each of its dimensions.
        let part = |at: usize, step: i64| {
            let RegionDim { start, extent } = &tile.region.dims[at];
            let extent = i64::try_from(extent.as_int()?).ok()?;
            let starts = Analyzer::new()
                .prove_eq(&start.clone().floor_mod(step), &Expr::zero(start.dtype()));
            let whole = extent > 0 && extent % step == 0 && starts.is_yes();
            whole.then(|| Row {
                start: start.clone(),
                ..Row::of_all(extent, step)
            })
        };
        let one = |dim: &RegionDim| dim.extent.is_int(1);
        let down = match rank {
            1 => Some(Row::of_all(1, 1)),
            _ => part(rank - 2, boxes.rows),
        };
        let along = down.zip(part(rank - 1, boxes.cols));
        let along = along.filter(|_| tile.region.dims[..inner.start].iter().all(one));
        let Some((down, across)) = along else {
            return NoBox::new(
                format!("no whole boxes of `{}` are copied", data.name),
                "copy whole tiles: all rows and columns of one index of the dimensions before \
                 them, or columns of 128 bytes from a multiple of that on",
            );
        };
        let (rows, cols) = (down.extent(), across.extent());
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
            along: [down, across],
        })
    }

    /// The boxes of one warp's rows, where the tile is dealt out to warp groups as the sum of their
    /// product: by the number of the thread.
    pub fn of_warp(self, shape: [i64; 2], warps: [u32; 2], thread: &Expr) -> Result<Boxes, NoBox> {
        // [PTX] wgmma: each of a group's four warps has 16 of an instruction's 64 rows.
        const ROWS: i64 = 16;
        const WARPS: i64 = 4;
        const LANES: i64 = 32;
        let [down, across] = warps.map(i64::from);
        let (rows, cols) = (shape[0] / down, shape[1] / across);
        let tile = BulkTile {
            rows: ROWS,
            ..self.tile
        };
        let apart = rows % (ROWS * WARPS) == 0 && cols % tile.cols == 0;
        if self.rows.is_none() || !apart || ROWS > self.tile.rows {
            return NoBox::new(
                "rows of a warp are no whole boxes".to_string(),
                "leave the store to the compiler",
            );
        }
        let warp = thread.clone().floor_div(LANES);
        let group = warp.clone().floor_div(WARPS);
        let first_row = group.clone().floor_div(across) * rows + warp.floor_mod(WARPS) * ROWS;
        let first_col = group.floor_mod(across) * cols;
        let row = |first, extent, step| Row {
            first,
            ..Row::of_all(extent, step)
        };
        Ok(Boxes {
            along: [
                row(first_row, rows, ROWS * WARPS),
                row(first_col, cols, tile.cols),
            ],
            tile,
            ..self
        })
    }

    /// How far from the region's start the index of the tile is that an index of the tensor's dimension
    /// stands for.
    pub fn of_tile(&self, dim: usize, tile: &Access) -> Option<Expr> {
        let [down, across] = &self.along;
        let (at, row) = match dim {
            d if Some(d) == self.rows => (tile.at.iter().nth_back(1)?, down),
            d if d == self.cols => (tile.at.last()?, across),
            _ => return None,
        };
        Some(match row.start.is_int(0) {
            true => at.clone(),
            false => at.clone() - row.start.clone().cast_to(at.dtype()),
        })
    }

    /// The copy between them.
    pub fn copy(&self, func: &mut Func, tensor: Access, tile: Access, way: Way) -> Bulk {
        let bits = func.buffers[tile.region.buffer].dtype.bits();
        let [rows, cols] = [self.tile.rows, self.tile.cols];
        let mut axes = Vec::new();
        // The first index of a box along a dimension, from the start of the region.
        let mut along = |func: &mut Func, row: &Row, name: &str| match row.count {
            0 | 1 => row.first.clone(),
            count => {
                let var = func.add_var(name, DType::I32, VarKind::Loop);
                axes.push((var, count));
                let by = func.var_expr(var) * row.step as i32;
                match row.first.is_int(0) {
                    true => by,
                    false => row.first.clone() + by,
                }
            }
        };
        let first = along(func, &self.along[0], "r");
        let second = along(func, &self.along[1], "p");
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
        for ((index, inner), row) in lies
            .iter_mut()
            .rev()
            .zip([second, first])
            .zip(self.along.iter().rev())
        {
            *index = match row.start.is_int(0) {
                true => inner,
                false => row.start.clone() + inner.cast_to(row.start.dtype()),
            };
        }
        // The extents come of a tile that is made of boxes.
        let inst = TmaBox::new(&extents).map_or(Inst::Load, Inst::Tma);
        let counts = self.along.iter().map(|row| i64::from(row.count));
        let elements: i64 = counts.product::<i64>() * rows * cols;
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
            apart: 1,
            pred: None,
            otherwise: None,
            counter: Some(counter),
            arrives: None,
            evict: None,
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
