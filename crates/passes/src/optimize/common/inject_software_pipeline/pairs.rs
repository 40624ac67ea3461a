//! Two blocks that bring each other halves of what both read.
//!
//! Blocks beside each other in the grid read the same rows of one operand. As a cluster each has the
//! copy engine bring half of such a tile, to both: the cache hands it out once for two blocks.
//!
//! Before, in each block:
//! ```text
//! tma_load B[bx * 256 +: 256, k * 64 +: 64] at … -> S[0 +: 256, 0 +: 64] at [0, 0] inst="tma.256x64" … arrives=full[…]
//! mbarrier_arrive empty[…] warp
//! ```
//! After, in clusters of two:
//! ```text
//! tma_load B[bx * 256 + rank * 128 +: 128, …] at … -> S[rank * 128 +: 128, …] at [rank * 128, 0] inst="tma.128x64" … arrives=full[…] multicast=3
//! mbarrier_arrive empty[…] warp cluster
//! ```
//! Each block still waits for all bytes of its tiles; a tile is free when both have done with theirs.

use rustc_hash::FxHashSet;
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{
    Access, DType, Expr, Func, Inst, Kernel, Loop, Machine, MicroOp, StmtKind, TmaBox, Var,
    VarKind, WARP_GROUP,
};

use super::super::effects::Effects;
use super::pieces::Piece;
use super::schedules::Why;
use crate::decisions::PAIRS;

/// A bit for each block.
pub(super) const BOTH: u16 = 0b11;
/// Blocks of a cluster.
pub(super) const BLOCKS: u32 = 2;

/// Which blocks are a pair.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    /// The axis of the grid along which they are neighbours.
    pub axis: usize,
    /// The number of a block in its pair.
    pub rank: Var,
    /// The pieces that bring what both read.
    pub shared: Vec<usize>,
}

impl Pairs {
    /// Decides for a loop that stands in nothing, with its pieces that copy and those that do not,
    /// or says why not.
    pub fn of(
        func: &mut Func,
        (kernel, machine): (&Kernel, &Machine),
        l: &Loop,
        (copies, others): (&[&Piece], &[&Piece]),
    ) -> Result<Pairs, Why> {
        if machine.clusters.is_none() {
            return Err("the machine has no clusters".into());
        }
        let copied: Vec<(usize, &MicroOp)> = copies
            .iter()
            .enumerate()
            .filter_map(|(at, p)| Some((at, &p.bulk.as_deref()?.as_ref().ok()?.op)))
            .collect();
        let asked = PAIRS.asked(func);
        if asked == Some(false) {
            return Err("it is switched off".into());
        }
        let wanted = bytes_a_cycle(func, (kernel, machine), (&copied, others));
        if asked.is_none() && wanted <= f64::from(machine.l2_rate) {
            return Err(format!(
                "a block reads {wanted:.0} bytes a cycle, which the cache hands out to each"
            )
            .into());
        }
        if kernel
            .grid
            .iter()
            .any(|(_, extent)| extent.as_int().is_none())
        {
            return Err("how many blocks there are is known at the call".into());
        }
        let axis = &l.axes[0];
        let mut range = FxHashSet::default();
        for e in [&axis.start, &axis.stop, &axis.step] {
            range.extend(depends_on(func, kernel, e));
        }
        let mut best: Option<(u32, usize, Vec<usize>)> = None;
        for (at, (var, extent)) in kernel.grid.iter().enumerate() {
            let even = extent.as_int().is_some_and(|n| n % i128::from(BLOCKS) == 0);
            if !even || range.contains(var) {
                continue;
            }
            let (shared, own): (Vec<_>, Vec<_>) = copied.iter().partition(|(_, op)| {
                let starts = op.sources.iter().flat_map(|s| &s.region.dims);
                let mut starts = starts.map(|d| depends_on(func, kernel, &d.start));
                !starts.any(|vars| vars.contains(var))
            });
            let halves = shared
                .iter()
                .all(|(_, op)| half(op, &Expr::i32(0)).is_some());
            if shared.is_empty() || own.is_empty() || !halves {
                continue;
            }
            let bytes = shared.iter().map(|(_, op)| bytes_of(func, op)).sum();
            if best.as_ref().is_none_or(|(most, ..)| bytes > *most) {
                let shared = shared.iter().map(|(at, _)| *at).collect();
                best = Some((bytes, at, shared));
            }
        }
        let Some((_, axis, shared)) = best else {
            return Err("no neighbours read the same of one operand".into());
        };
        Ok(Pairs {
            axis,
            shared,
            rank: func.add_var("rank", DType::I32, VarKind::Rank),
        })
    }

    /// A block's half of a copy that both need.
    pub fn half(&self, func: &Func, op: &MicroOp) -> Option<MicroOp> {
        half(op, &func.var_expr(self.rank))
    }
}

/// The variables that a value depends on, names of the kernel looked up.
fn depends_on(func: &Func, kernel: &Kernel, e: &Expr) -> FxHashSet<Var> {
    let mut vars: FxHashSet<Var> = Effects::of_expr(func, e).vars.into_iter().collect();
    let mut named: Vec<(Var, &Expr)> = Vec::new();
    walk_stmts(&kernel.body, &mut |stmt| {
        if let StmtKind::Let { var, value } = &stmt.kind {
            named.push((*var, value));
        }
    });
    // Names stand behind those that they use.
    for (var, value) in named.into_iter().rev() {
        if vars.contains(&var) {
            vars.extend(Effects::of_expr(func, value).vars);
        }
    }
    vars
}

fn bytes_of(func: &Func, op: &MicroOp) -> u32 {
    let Inst::Tma(tile) = op.inst else { return 0 };
    let bits = func.buffers[op.dest.region.buffer].dtype.bits();
    op.count() * tile.elements() * bits / 8
}

/// Bytes that a multiprocessor reads from the cache in a cycle of its matrix unit, whole lines
/// counted, while the products of an iteration keep that busy.
fn bytes_a_cycle(
    func: &Func,
    (kernel, machine): (&Kernel, &Machine),
    (copied, others): (&[(usize, &MicroOp)], &[&Piece]),
) -> f64 {
    const LINE: i128 = 128;
    let read = copied.iter().map(|(_, op)| {
        let Inst::Tma(tile) = op.inst else { return 0 };
        let data = &func.buffers[op.sources[0].region.buffer];
        let bits = i128::from(data.dtype.bits());
        let row = data.shape.last().and_then(|e| e.as_int()).unwrap_or(1) * bits / 8;
        let part = i128::from(tile.extents().last().copied().unwrap_or(1)) * bits / 8;
        // Rows that start inside of a line reach into one more.
        let more = if row % LINE == 0 { 0 } else { 1 };
        let lines = (part + LINE - 1) / LINE + more;
        i128::from(bytes_of(func, op)) / part.max(1) * lines * LINE
    });
    let read: i128 = read.sum();
    let cycles = product_cycles((kernel, machine), others.iter().copied());
    read as f64 / f64::from(cycles.max(1))
}

/// Cycles that the matrix unit takes for the products of warp groups in an iteration.
pub(super) fn product_cycles<'a>(
    (kernel, machine): (&Kernel, &Machine),
    pieces: impl Iterator<Item = &'a Piece>,
) -> u32 {
    let mut cycles = 0;
    for piece in pieces {
        walk_stmts(std::slice::from_ref(&piece.stmt), &mut |stmt| {
            if let Some(op) = stmt.as_group_product()
                && let Inst::GroupMma { mma, .. } = op.inst
            {
                let facts = machine.mma.iter().find(|f| f.inst == mma);
                cycles += op.count() * facts.map_or(0, |f| f.cycles);
            }
        });
    }
    // Warp groups have it one after another.
    cycles * (kernel.num_threads() / WARP_GROUP).max(1)
}

/// The rows of a copy that one block of a pair brings, where they can be halved.
fn half(op: &MicroOp, rank: &Expr) -> Option<MicroOp> {
    // [PTX] eight rows of a swizzle of 128 bytes are its period.
    const PERIOD: i64 = 8;
    let (Inst::Tma(tile), [source]) = (op.inst, &op.sources[..]) else {
        return None;
    };
    let mut extents = tile.extents().to_vec();
    let from = (0..extents.len() - 1).find(|d| !source.region.dims[*d].extent.is_int(1))?;
    let to = op.dest.at.len().checked_sub(2)?;
    let rows = i64::try_from(op.dest.region.dims[to].extent.as_int()?).ok()?;
    let own = rows / i64::from(BLOCKS);
    if rows % (i64::from(BLOCKS) * PERIOD) != 0 {
        return None;
    }
    let boxes = rows / i64::from(extents[from]).max(1);
    let mut half = op.clone();
    if boxes > 1 {
        // Whole boxes, fewer of them.
        let count = u32::try_from(boxes).ok()?;
        let mut axes = half.axes.iter_mut();
        let axis = axes.find(|(var, n)| *n == count && mentions(&op.dest.at[to], *var))?;
        if count % BLOCKS != 0 {
            return None;
        }
        axis.1 /= BLOCKS;
    } else {
        extents[from] = u16::try_from(own).ok()?;
        half.inst = Inst::Tma(TmaBox::new(&extents)?);
    }
    let first = rank.clone() * own as i32;
    move_rows(&mut half.sources[0], from, &first, own);
    move_rows(&mut half.dest, to, &first, own);
    Some(half)
}

fn mentions(e: &Expr, var: Var) -> bool {
    let mut found = false;
    e.walk(&mut |node| found |= node.as_var() == Some(var));
    found
}

/// An access that starts so many rows later and has so many.
fn move_rows(access: &mut Access, dim: usize, by: &Expr, rows: i64) {
    let later = |e: &Expr| {
        let by = by.clone().cast_to(e.dtype());
        if e.is_int(0) { by } else { e.clone() + by }
    };
    access.at[dim] = later(&access.at[dim]);
    let dims = &mut access.region.dims[dim];
    dims.start = later(&dims.start);
    dims.extent = Expr::int(rows.into(), dims.extent.dtype());
}
