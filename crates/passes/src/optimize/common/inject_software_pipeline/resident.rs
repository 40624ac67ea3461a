//! Blocks that stay on their multiprocessor and take one tile after another.
//!
//! Where one block fills a multiprocessor, a launch with a block for each tile leaves the matrix unit
//! idle between two of them: the results of one are stored before the next begins to copy. With
//! blocks that stay the producer copies the next tile's operands meanwhile.
//!
//! Before, for each role:
//! ```text
//! kernel grid(bx: 16, by: 32) … { body }
//! ```
//! After:
//! ```text
//! kernel grid(block: 132) … {
//!   for round in serial(0, (643 - block) // 132) {
//!     let tile: int32 = round * 132 + block
//!     let bx: int32 = tile % 16
//!     let by: int32 = tile // 16
//!     body
//!   }
//! }
//! ```
//! Tiles follow each other in the order in which their blocks would have been launched, re-mapping
//! included ([`swizzled`]).

use tilewright_ir::{
    Axis, Block, Buffer, DType, Expr, ExprKind, Func, Kernel, Loop, LoopKind, Machine, RasterOrder,
    Span, Stmt, StmtKind, Swizzle, Var, VarKind,
};

use super::schedules::Why;

/// What becomes of the grid.
#[derive(Clone, Debug)]
pub(super) struct Resident {
    /// Blocks that are launched.
    pub blocks: u32,
    pub tiles: u32,
    /// The number of a block's tile among its own.
    pub round: Var,
    block: Var,
}

impl Resident {
    /// The most tiles that a block takes.
    pub fn rounds(&self) -> u32 {
        self.tiles.div_ceil(self.blocks)
    }

    /// Decides for a kernel whose loop stands in nothing, or says why not. `at_once` blocks have room
    /// on a multiprocessor, and these tensors are copied.
    pub fn of(
        func: &mut Func,
        (kernel, machine): (&Kernel, &Machine),
        l: &Loop,
        (at_once, copied): (u64, &[Buffer]),
    ) -> Result<Resident, Why> {
        let extents = kernel
            .grid
            .iter()
            .map(|(_, e)| u32::try_from(e.as_int()?).ok());
        let Some(extents) = extents.collect::<Option<Vec<u32>>>() else {
            return Err("how many blocks there are is known at the call".into());
        };
        let tiles = extents.iter().try_fold(1u32, |n, e| n.checked_mul(*e));
        let blocks = machine.multiprocessors;
        let Some(tiles) = tiles.filter(|n| *n > blocks && *n < 1 << 24) else {
            return Err("all blocks run at once".into());
        };
        if at_once > 1 {
            return Err(format!("{at_once} blocks share a multiprocessor").into());
        }
        let axis = &l.axes[0];
        if axis.const_trip_count().is_none() {
            return Err("tiles may differ in how long they take".into());
        }
        // Then copies are what the kernel waits for, and blocks that come as others go share more of what
        // the cache holds: measured at 4000x4100x4104, 569 TFLOP/s against 525.
        const LINE: i128 = 128;
        let cut = |b: &&Buffer| {
            let data = &func.buffers[**b];
            let row = data.shape.last().and_then(|e| e.as_int()).unwrap_or(1);
            row * i128::from(data.dtype.bits()) / 8 % LINE != 0
        };
        if let Some(tensor) = copied.iter().find(cut) {
            let name = &func.buffers[*tensor].name;
            return Err(format!("rows of `{name}` start inside of cache lines").into());
        }
        Ok(Resident {
            blocks,
            tiles,
            round: func.add_var("round", DType::I32, VarKind::Loop),
            block: func.add_var("block", DType::I32, VarKind::BlockIdx(0)),
        })
    }

    /// A role's part, once for each tile of the block.
    pub fn each_tile(&self, func: &mut Func, kernel: &Kernel, body: Block, span: Span) -> Block {
        let [blocks, tiles] = [self.blocks, self.tiles].map(|n| Expr::i32(n as i32));
        let block = func.var_expr(self.block);
        let mut out = Block::new();
        let mut name = |func: &mut Func, var: Var, value: Expr| {
            func.vars[var].kind = VarKind::Let;
            let value = value.cast_to(func.vars[var].dtype);
            out.push(Stmt::new(StmtKind::Let { var, value }, span));
            func.var_expr(var)
        };
        let tile = func.add_var("tile", DType::I32, VarKind::Let);
        let linear = func.var_expr(self.round) * blocks.clone() + block.clone();
        let mut rest = name(func, tile, linear);
        let extents = kernel
            .grid
            .iter()
            .map(|(_, e)| e.as_int().unwrap_or(1) as u32);
        let extents: Vec<u32> = extents.collect();
        let mut values = Vec::new();
        if let Some(swizzle) = kernel.attrs.swizzle.filter(|s| s.panel > 0)
            && let [x, y, ..] = extents[..]
        {
            let plane = Expr::i32((x * y) as i32);
            let within = match extents.len() {
                2 => rest.clone(),
                _ => rest.clone().floor_mod(plane.clone()),
            };
            values.extend(swizzled((x, y), swizzle, within));
            rest = rest.floor_div(plane);
        }
        let last = extents.len() - 1;
        for (axis, extent) in extents.iter().enumerate().skip(values.len()) {
            let extent = Expr::i32(*extent as i32);
            values.push(match axis == last {
                true => rest.clone(),
                false => rest.clone().floor_mod(extent.clone()),
            });
            rest = rest.floor_div(extent);
        }
        for ((var, _), value) in kernel.grid.iter().zip(values) {
            name(func, *var, value);
        }
        out.extend(body);
        let own = tiles + (blocks.clone() - Expr::i32(1)) - block;
        let each = Loop {
            kind: LoopKind::Serial,
            axes: vec![Axis::upto(self.round, own.floor_div(blocks))],
            body: out,
        };
        vec![Stmt::new(StmtKind::For(each), span)]
    }

    /// The grid that is launched.
    pub fn grid(&self) -> Vec<(Var, Expr)> {
        vec![(self.block, Expr::i32(self.blocks as i32))]
    }
}

/// The column and row of a block by its number, where blocks go through panels of a few rows (or
/// columns), back and forth.
fn swizzled((x, y): (u32, u32), swizzle: Swizzle, linear: Expr) -> [Expr; 2] {
    let int = |n: u32| Expr::i32(n as i32);
    let (along, across) = match swizzle.order {
        RasterOrder::Row => (x, y),
        RasterOrder::Column => (y, x),
    };
    let width = swizzle.panel.min(across);
    let size = width * along;
    let panel = linear.clone().floor_div(int(size));
    let offset = linear.floor_mod(int(size));
    let (panels, rest) = (across / width, across % width);
    // The last panel may be narrower.
    let stride = match rest {
        0 => int(width),
        rest => {
            let full = panel.clone().lt(int(panels));
            choice(full, int(width), int(rest))
        }
    };
    let there = offset.clone().floor_div(stride.clone());
    let main = match panels + u32::from(rest > 0) {
        1 => there,
        _ => {
            let back = panel.clone().floor_mod(int(2)).equal(int(1));
            choice(back, int(along - 1) - there.clone(), there)
        }
    };
    let cross = offset.floor_mod(stride) + panel * int(width);
    match swizzle.order {
        RasterOrder::Row => [main, cross],
        RasterOrder::Column => [cross, main],
    }
}

fn choice(cond: Expr, then: Expr, otherwise: Expr) -> Expr {
    let dtype = then.dtype();
    let kind = ExprKind::Select {
        cond,
        then,
        otherwise,
    };
    Expr::new(kind, dtype, Span::NONE)
}
