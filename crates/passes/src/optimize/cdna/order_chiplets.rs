//! OrderChiplets: blocks of one die of the GPU work on neighbouring tiles.
//!
//! Blocks are dealt out to the dies in turn, and each die has a cache of its own. Neighbours in the grid,
//! which read the same tiles, so lie on different dies, and each die brings nearly all of both operands.
//! Here each die takes sections of the grid: as many blocks as it runs at a time, in panels of so many
//! rows that they share most.
//!
//! Before:
//! ```text
//! kernel grid(bx: 31, by: 32) … { … }
//! ```
//! After, on 8 dies of 32 compute units, in panels of 8 rows:
//! ```text
//! kernel grid(block: 992) … {
//!   let tile: int32 = select(block < 768, block // 256 * 256 + block % 8 * 32 + block // 8 % 32, block)
//!   let by: int32 = tile // 248 * 8 + tile % 248 % 8
//!   let bx: int32 = tile % 248 // 8
//!   …
//! }
//! ```
//! Blocks behind the last whole round of sections stay where they are.
//!
//! The cost is how many bytes the dies bring for the blocks that run first: for each die, the tiles of
//! each tensor that its blocks read, each once. Tensors are told apart by the grid's indices that their
//! addresses depend on. The order that was written is left where no other costs a twentieth less, where
//! the user gave one, and where the grid is not known (`--decide chiplets=on|off`, `--explain schedule`).
//!
//! Needs loop IR. It never changes what a block computes.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{
    Block, Buffer, Code, DType, Diagnostic, Diagnostics, Expr, ExprKind, Func, Kernel, MicroKind,
    Scope, Severity, Stmt, StmtKind, Target, Var, VarKind,
};

use crate::Changed;
use crate::decisions::CHIPLETS;

const SCHEDULE: Code = Code("schedule");

/// Orders the blocks of all kernels.
pub fn order_chiplets(func: &mut Func, target: Target, diags: &mut Diagnostics) -> Changed {
    let machine = target.machine();
    let mut changed = Changed::No;
    if machine.chiplets < 2 || CHIPLETS.asked(func) == Some(false) {
        return changed;
    }
    let dies = Dies {
        count: machine.chiplets.into(),
        units: i64::from(machine.multiprocessors / machine.chiplets),
    };
    for at in 0..func.kernels.len() {
        let Some(grid) = Grid::of(func, &func.kernels[at], dies) else {
            continue;
        };
        let (order, costs) = grid.cheapest(dies, CHIPLETS.asked(func) == Some(true));
        diags.push(remark(&func.kernels[at], order, costs));
        if let Some(order) = order {
            order.write(&grid, func, at);
            changed = Changed::Yes;
        }
    }
    changed
}

/// Says what was decided.
fn remark(kernel: &Kernel, order: Option<Order>, [before, after]: [i64; 2]) -> Diagnostic {
    let kilobytes = |bytes: i64| (bytes + 1023) / 1024;
    let (before, after) = (kilobytes(before), kilobytes(after));
    let message = match order {
        Some(order) => format!(
            "blocks go to the dies in sections of {}, by panels of {} rows: {after} KB instead of \
             {before} KB for the first blocks of all",
            order.section, order.panel
        ),
        None => format!(
            "blocks go to the dies in turn: sections would bring {after} KB and not {before} KB for \
             the first blocks of all"
        ),
    };
    Diagnostic::new(Severity::Remark, SCHEDULE, kernel.span, message)
}

/// The dies of a GPU.
#[derive(Clone, Copy)]
struct Dies {
    count: i64,
    /// Compute units of one.
    units: i64,
}

/// A grid of known size, and what its blocks read.
struct Grid {
    extents: Vec<i64>,
    /// For each tensor, the axes that its addresses depend on and the bytes of a tile.
    read: Vec<(Vec<usize>, i64)>,
}

impl Grid {
    fn of(func: &Func, kernel: &Kernel, dies: Dies) -> Option<Grid> {
        let attrs = &kernel.attrs;
        if attrs.swizzle.is_some() || attrs.cluster.is_some() || attrs.resident {
            return None;
        }
        let sizes = kernel.grid.iter();
        let sizes = sizes.map(|(_, e)| i64::try_from(e.as_int()?).ok());
        let extents: Vec<i64> = sizes.collect::<Option<_>>()?;
        let blocks = extents.iter().try_fold(1i64, |n, e| n.checked_mul(*e))?;
        // Fewer than two axes leave nothing to choose, nor do fewer blocks than share something.
        let flat = extents.len() < 2 || extents[0] < 2 || extents[1] < 2;
        if flat || blocks < 2 * dies.count || blocks >= 1 << 24 {
            return None;
        }
        let read = read(func, kernel);
        // Blocks share what does not depend on all of the first two axes.
        let shared = |(axes, _): &(Vec<usize>, i64)| !(axes.contains(&0) && axes.contains(&1));
        read.iter().any(shared).then_some(Grid { extents, read })
    }

    fn blocks(&self) -> i64 {
        self.extents.iter().product()
    }

    /// The cheapest order, if it costs less than the one that was written, or `anyway`; with what that
    /// one costs, and the cheapest.
    fn cheapest(&self, dies: Dies, anyway: bool) -> (Option<Order>, [i64; 2]) {
        let written = self.cost(dies, None);
        let panels = [1, 2, 4, 8, 16].into_iter();
        let orders = panels.filter(|n| *n <= self.extents[1]).map(|panel| Order {
            dies: dies.count,
            section: dies.units.min(self.blocks() / dies.count),
            panel,
        });
        let costs = orders.map(|order| (self.cost(dies, Some(order)), order));
        let Some((least, order)) = costs.min_by_key(|(cost, _)| *cost) else {
            return (None, [written, written]);
        };
        let pays = least * 20 <= written * 19;
        let order = (pays || anyway).then_some(order);
        (order, [written, least])
    }

    /// Bytes that all dies bring for the blocks that run first.
    fn cost(&self, dies: Dies, order: Option<Order>) -> i64 {
        let mut brought: FxHashSet<(i64, usize, Vec<i64>)> = FxHashSet::default();
        let mut bytes = 0;
        for block in 0..self.blocks().min(dies.count * dies.units) {
            let index = match order {
                Some(order) => order.index(self, block),
                None => self.index(block),
            };
            for (tensor, (axes, size)) in self.read.iter().enumerate() {
                let tile: Vec<i64> = axes.iter().map(|&axis| index[axis]).collect();
                if brought.insert((block % dies.count, tensor, tile)) {
                    bytes += size;
                }
            }
        }
        bytes
    }

    /// The indices of a block by its number, the first axis fastest.
    fn index(&self, mut block: i64) -> Vec<i64> {
        let each = self.extents.iter().map(|extent| {
            let index = block % extent;
            block /= extent;
            index
        });
        each.collect()
    }
}

/// Sections for each die, panels of rows in them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Order {
    dies: i64,
    /// Blocks that follow each other on a die.
    section: i64,
    /// Rows of a panel.
    panel: i64,
}

impl Order {
    /// The blocks that make whole rounds of sections.
    fn whole(self, grid: &Grid) -> i64 {
        let round = self.dies * self.section;
        grid.blocks() / round * round
    }

    /// The indices of a block by its number.
    fn index(self, grid: &Grid, block: i64) -> Vec<i64> {
        let turn = block / self.dies;
        let sections = turn / self.section * self.dies + block % self.dies;
        let tile = match block < self.whole(grid) {
            true => sections * self.section + turn % self.section,
            false => block,
        };
        let [columns, rows] = [grid.extents[0], grid.extents[1]];
        let mut index = grid.index(tile);
        let tile = tile % (columns * rows);
        let first = tile / (columns * self.panel) * self.panel;
        let height = self.panel.min(rows - first);
        let inside = tile % (columns * self.panel);
        index[0] = inside / height;
        index[1] = first + inside % height;
        index
    }

    fn write(self, grid: &Grid, func: &mut Func, at: usize) {
        let axes = std::mem::take(&mut func.kernels[at].grid);
        let span = func.kernels[at].span;
        let int = |n: i64| Expr::i32(n as i32);
        let var = func.add_var("block", DType::I32, VarKind::BlockIdx(0));
        let block = func.var_expr(var);
        let mut names = Block::new();
        let mut name = |func: &mut Func, name: &str, value: Expr| {
            let var = func.add_var(name, DType::I32, VarKind::Let);
            names.push(Stmt::new(StmtKind::Let { var, value }, span));
            func.var_expr(var)
        };
        let (dies, section) = (int(self.dies), int(self.section));
        let turn = block.clone().floor_div(dies.clone());
        let round = turn.clone().floor_div(section.clone()) * int(self.dies * self.section);
        let own = block.clone().floor_mod(dies) * section.clone() + turn.floor_mod(section);
        let whole = self.whole(grid);
        let tile = match whole == grid.blocks() {
            true => round + own,
            false => Expr::new(
                ExprKind::Select {
                    cond: block.clone().lt(int(whole)),
                    then: round + own,
                    otherwise: block,
                },
                DType::I32,
                span,
            ),
        };
        let tile = name(func, "tile", tile);
        let [columns, rows] = [grid.extents[0], grid.extents[1]];
        let in_plane = tile.clone().floor_mod(int(columns * rows));
        let in_plane = name(func, "in_plane", in_plane);
        let panel = int(columns * self.panel);
        let first = in_plane.clone().floor_div(panel.clone()) * int(self.panel);
        let first = name(func, "first", first);
        let inside = name(func, "inside", in_plane.floor_mod(panel));
        let height = match rows % self.panel {
            0 => int(self.panel),
            _ => int(self.panel).min(int(rows) - first.clone()),
        };
        let mut rest = tile.floor_div(int(columns * rows));
        for (axis, (index, _)) in axes.iter().enumerate() {
            let value = match axis {
                0 => inside.clone().floor_div(height.clone()),
                1 => first.clone() + inside.clone().floor_mod(height.clone()),
                _ => {
                    let extent = int(grid.extents[axis]);
                    let value = rest.clone().floor_mod(extent.clone());
                    rest = rest.floor_div(extent);
                    value
                }
            };
            func.vars[*index].kind = VarKind::Let;
            let value = value.cast_to(func.vars[*index].dtype);
            names.push(Stmt::new(StmtKind::Let { var: *index, value }, span));
        }
        let kernel = &mut func.kernels[at];
        kernel.grid = vec![(var, int(grid.blocks()))];
        kernel.body.splice(0..0, names);
    }
}

/// The tensors that a kernel reads: the axes of the grid that their addresses depend on, and the bytes
/// of a tile, as copies have them.
fn read(func: &Func, kernel: &Kernel) -> Vec<(Vec<usize>, i64)> {
    let mut depends: FxHashMap<Var, Vec<usize>> = FxHashMap::default();
    for (axis, (var, _)) in kernel.grid.iter().enumerate() {
        depends.insert(*var, vec![axis]);
    }
    let mut tensors: Vec<(Buffer, Vec<usize>, i64)> = Vec::new();
    walk_stmts(&kernel.body, &mut |stmt| {
        if let StmtKind::Let { var, value } = &stmt.kind {
            let axes = axes_of(&depends, [value]);
            depends.insert(*var, axes);
        }
        let StmtKind::Micro(m) = &stmt.kind else {
            return;
        };
        if !matches!(m.kind, MicroKind::G2s | MicroKind::G2r) {
            return;
        }
        let Some(source) = m.sources.first() else {
            return;
        };
        let buffer = source.region.buffer;
        if func.buffers[buffer].scope != Scope::Global {
            return;
        }
        let mut extents = source.region.dims.iter().map(|d| d.extent.as_int());
        let elements = extents.try_fold(1, |n, extent| Some(n * i64::try_from(extent?).ok()?));
        let bytes = elements.unwrap_or(1) * i64::from(func.buffers[buffer].dtype.bits()) / 8;
        let starts = source.region.dims.iter().map(|d| &d.start);
        let axes = axes_of(&depends, source.at.iter().chain(starts));
        match tensors.iter_mut().find(|(b, ..)| *b == buffer) {
            Some((_, known, size)) => {
                known.extend(axes);
                *size = bytes.max(*size);
            }
            None => tensors.push((buffer, axes, bytes)),
        }
    });
    let tensors = tensors.into_iter().map(|(_, mut axes, bytes)| {
        axes.sort_unstable();
        axes.dedup();
        (axes, bytes)
    });
    tensors.collect()
}

/// The axes that expressions depend on.
fn axes_of<'e>(
    depends: &FxHashMap<Var, Vec<usize>>,
    of: impl IntoIterator<Item = &'e Expr>,
) -> Vec<usize> {
    let mut axes = Vec::new();
    for e in of {
        e.walk(&mut |node| {
            let known = node.as_var().and_then(|var| depends.get(&var));
            axes.extend(known.into_iter().flatten());
        });
    }
    axes
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIES: Dies = Dies {
        count: 8,
        units: 32,
    };

    /// A product's grid: A by rows, B by columns.
    fn grid(extents: &[i64]) -> Grid {
        let extents = extents.to_vec();
        let read = vec![(vec![1], 1), (vec![0], 1)];
        Grid { extents, read }
    }

    #[test]
    fn every_block_has_its_own_tile() {
        for columns in [2, 3, 8, 31, 40] {
            for rows in [2, 5, 16, 33] {
                for batches in [1, 3] {
                    let grid = grid(&[columns, rows, batches]);
                    for (section, panel) in [(1, 1), (4, 2), (32, 8), (38, 16), (7, 4)] {
                        let order = Order {
                            dies: 8,
                            section,
                            panel,
                        };
                        let tiles = (0..grid.blocks()).map(|block| order.index(&grid, block));
                        let mut tiles: Vec<Vec<i64>> = tiles.collect();
                        let inside = |tile: &Vec<i64>| {
                            let mut sizes = tile.iter().zip(&grid.extents);
                            sizes.all(|(at, extent)| (0..*extent).contains(at))
                        };
                        assert!(tiles.iter().all(inside));
                        tiles.sort();
                        tiles.dedup();
                        assert_eq!(
                            tiles.len() as i64,
                            grid.blocks(),
                            "{columns} {rows} {order:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn sections_are_taken_where_they_bring_less() {
        // A die's 32 blocks lie in 8 or 9 rows, and nearly all of 31 columns.
        let (order, [written, least]) = grid(&[31, 32]).cheapest(DIES, false);
        assert!(order.is_some() && least * 2 < written, "{written} {least}");
        // In 8 rows and 4 columns of 32, the columns of the die.
        let (order, [written, least]) = grid(&[32, 32]).cheapest(DIES, false);
        assert_eq!((order, written), (None, 8 * (8 + 4)));
        assert!(least * 20 > written * 19);
    }
}
