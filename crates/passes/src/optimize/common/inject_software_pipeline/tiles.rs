//! Which tile a block takes, where that is not simply its place in the grid: blocks that stay take one
//! after another ([`Resident`]), those of a pair neighbours ([`Pairs`]).
//!
//! Before, for each role:
//! ```text
//! kernel grid(bx: 16, by: 32) … { body }
//! ```
//! After, with blocks that stay, in pairs along y:
//! ```text
//! kernel grid(block: 132) … cluster=(2, 1, 1) rank=rank {
//!   for round in serial(0, (256 + 65 - block // 2) // 66) {
//!     let tile: int32 = round * 66 + block // 2
//!     let bx: int32 = tile % 16
//!     let by: int32 = tile // 16 * 2 + rank
//!     body
//!   }
//! }
//! ```
//! Tiles follow each other in the order in which their blocks would have been launched, re-mapping
//! included ([`swizzled`]); pairs as tiles of twice the size would.

use tilewright_ir::{
    Axis, Block, DType, Expr, ExprKind, Func, Kernel, Loop, LoopKind, RasterOrder, Span, Stmt,
    StmtKind, Swizzle, Var, VarKind,
};

use super::pairs::{self, Pairs};
use super::resident::Resident;
use crate::decisions::PANELS;

/// How blocks find their tiles.
pub(super) struct Tiles<'a> {
    resident: Option<&'a Resident>,
    pairs: Option<&'a Pairs>,
    block: Var,
    /// The grid in tiles, or in pairs of them.
    extents: Vec<u32>,
}

impl<'a> Tiles<'a> {
    /// `None` where the place in the grid says it.
    pub fn of(
        func: &mut Func,
        kernel: &Kernel,
        resident: Option<&'a Resident>,
        pairs: Option<&'a Pairs>,
    ) -> Option<Tiles<'a>> {
        if resident.is_none() && pairs.is_none() {
            return None;
        }
        let extents = kernel.grid.iter();
        let mut extents: Vec<u32> = extents
            .map(|(_, e)| e.as_int().unwrap_or(1) as u32)
            .collect();
        if let Some(pairs) = pairs {
            extents[pairs.axis] /= pairs::BLOCKS;
        }
        Some(Tiles {
            resident,
            pairs,
            block: func.add_var("block", DType::I32, VarKind::BlockIdx(0)),
            extents,
        })
    }

    /// Blocks that find tiles together.
    fn together(&self) -> u32 {
        self.pairs.map_or(1, |_| pairs::BLOCKS)
    }

    /// A role's part for the block's tile, or for one after another.
    pub fn each(&self, func: &mut Func, kernel: &Kernel, body: Block, span: Span) -> Block {
        let together = self.together();
        let mut block = func.var_expr(self.block);
        if together > 1 {
            block = block.floor_div(Expr::i32(together as i32));
        }
        let mut out = Block::new();
        let mut name = |func: &mut Func, var: Var, value: Expr| {
            func.vars[var].kind = VarKind::Let;
            let value = value.cast_to(func.vars[var].dtype);
            out.push(Stmt::new(StmtKind::Let { var, value }, span));
            func.var_expr(var)
        };
        let tile = func.add_var("tile", DType::I32, VarKind::Let);
        let linear = match self.resident {
            Some(resident) => {
                let at_once = Expr::i32((resident.blocks / together) as i32);
                func.var_expr(resident.round) * at_once + block.clone()
            }
            None => block.clone(),
        };
        let mut rest = name(func, tile, linear);
        let mut values = Vec::new();
        if let Some(swizzle) = self.order(func, kernel).filter(|s| s.panel > 0)
            && let [x, y, ..] = self.extents[..]
        {
            let plane = Expr::i32((x * y) as i32);
            let within = match self.extents.len() {
                2 => rest.clone(),
                _ => rest.clone().floor_mod(plane.clone()),
            };
            values.extend(swizzled((x, y), self.panels(swizzle), within));
            rest = rest.floor_div(plane);
        }
        let last = self.extents.len() - 1;
        for (axis, extent) in self.extents.iter().enumerate().skip(values.len()) {
            let extent = Expr::i32(*extent as i32);
            values.push(match axis == last {
                true => rest.clone(),
                false => rest.clone().floor_mod(extent.clone()),
            });
            rest = rest.floor_div(extent);
        }
        if let Some(pairs) = self.pairs {
            let first = values[pairs.axis].clone() * Expr::i32(together as i32);
            values[pairs.axis] = first + func.var_expr(pairs.rank);
        }
        for ((var, _), value) in kernel.grid.iter().zip(values) {
            name(func, *var, value);
        }
        out.extend(body);
        let Some(resident) = self.resident else {
            return out;
        };
        let [blocks, tiles] = [resident.blocks, resident.tiles].map(|n| n / together);
        let [blocks, tiles] = [blocks, tiles].map(|n| Expr::i32(n as i32));
        let own = tiles + (blocks.clone() - Expr::i32(1)) - block;
        let each = Loop {
            kind: LoopKind::Serial,
            axes: vec![Axis::upto(resident.round, own.floor_div(blocks))],
            body: out,
        };
        vec![Stmt::new(StmtKind::For(each), span)]
    }

    /// The order in which tiles are taken: the kernel's own, or panels of rows, for which blocks that
    /// run at once read the same of both operands.
    fn order(&self, func: &Func, kernel: &Kernel) -> Option<Swizzle> {
        // Measured on an H200: 16 rows of tiles of 128x256 against 8, half a percent.
        const ROWS: u32 = 16;
        let by_default = self.resident.is_some() && PANELS.asked(func) != Some(false);
        let panels = Swizzle {
            panel: ROWS,
            order: RasterOrder::Row,
        };
        kernel.attrs.swizzle.or(by_default.then_some(panels))
    }

    /// Panels of as many tiles, where two of them are one.
    fn panels(&self, swizzle: Swizzle) -> Swizzle {
        let across = match swizzle.order {
            RasterOrder::Row => 1,
            RasterOrder::Column => 0,
        };
        match self.pairs {
            Some(pairs) if pairs.axis == across => Swizzle {
                panel: (swizzle.panel / pairs::BLOCKS).max(1),
                ..swizzle
            },
            _ => swizzle,
        }
    }

    /// Launches the kernel so.
    pub fn launch(&self, kernel: &mut Kernel) {
        let tiles = self.extents.iter().product::<u32>() * self.together();
        let blocks = self.resident.map_or(tiles, |r| r.blocks);
        kernel.grid = vec![(self.block, Expr::i32(blocks as i32))];
        kernel.attrs.swizzle = None;
        kernel.attrs.resident = self.resident.is_some();
        if let Some(pairs) = self.pairs {
            kernel.attrs.cluster = Some([pairs::BLOCKS, 1, 1]);
            kernel.attrs.rank = Some(pairs.rank);
        }
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
