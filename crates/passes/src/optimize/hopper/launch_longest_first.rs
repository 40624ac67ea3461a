//! LaunchLongestFirst: blocks that have more to do start before those that have less.
//!
//! Where the last blocks to start are long ones, most of the machine waits for a few of them. So the
//! long ones go first. Blocks that read the same tensors stay together as far as the L2 cache
//! holds what they read: the other indices go in sections, and within a section the longest of all of
//! them come first.
//!
//! Before:
//! ```text
//! kernel grid(bx: 32, by: 16, bz: 4) … { for k in pipelined(0, bx + 1) { … } }
//! ```
//! After, in sections of 16:
//! ```text
//! kernel grid(block: 2048) … {
//!   let bx: int32 = 31 - block // 16 % 32
//!   let by: int32 = (block // 512 * 16 + block % 16) % 16
//!   let bz: int32 = (block // 512 * 16 + block % 16) // 16
//!   for k in pipelined(0, bx + 1) { … }
//! }
//! ```
//!
//! Needs loop IR with planned loops, and a grid of constants that the user has not ordered.

use rustc_hash::FxHashMap;
use tilewright_arith::Analyzer;
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{
    Block, Buffer, DType, Diagnostics, Expr, Func, Kernel, Machine, Scope, Stmt, StmtKind, Target,
    Var, VarKind,
};

use crate::Changed;

/// Orders the blocks of all kernels.
pub fn launch_longest_first(func: &mut Func, target: Target, _diags: &mut Diagnostics) -> Changed {
    let mut changed = Changed::No;
    for at in 0..func.kernels.len() {
        if let Some(order) = Order::of(func, &func.kernels[at], target.machine()) {
            order.write(func, at);
            changed = Changed::Yes;
        }
    }
    changed
}

/// Which blocks come first.
struct Order {
    /// The axis of the grid that a block's work grows or shrinks with.
    axis: usize,
    grows: bool,
    extents: Vec<i64>,
    /// How many of the other indices go together.
    section: i64,
}

impl Order {
    fn of(func: &Func, kernel: &Kernel, machine: &Machine) -> Option<Order> {
        if kernel.attrs.swizzle.is_some() || kernel.attrs.cluster.is_some() {
            return None;
        }
        let extents = kernel
            .grid
            .iter()
            .map(|(_, e)| i64::try_from(e.as_int()?).ok());
        let extents: Vec<i64> = extents.collect::<Option<_>>()?;
        let blocks = extents.iter().try_fold(1i64, |n, e| n.checked_mul(*e))?;
        if blocks <= machine.multiprocessors.into() || blocks >= 1 << 24 {
            return None;
        }
        let (trips, body) = planned(&kernel.body)?;
        let mut used: Vec<Var> = Vec::new();
        trips.walk(&mut |node| used.extend(node.as_var()));
        let of_grid = |var: &Var| kernel.grid.iter().position(|(v, _)| v == var);
        let mut axes = used.iter().filter_map(of_grid);
        let axis = axes.next()?;
        if extents[axis] < 2 || axes.any(|other| other != axis) {
            return None;
        }
        let others = blocks / extents[axis];
        let each = read(func, body)? / others as u64;
        // As much as the cache holds beside what else goes through it.
        let most = (machine.l2 / each.max(1)).max(1);
        let most = others.min(i64::try_from(most).unwrap_or(others));
        Some(Order {
            axis,
            grows: grows(func, kernel, &trips, kernel.grid[axis].0)?,
            section: (1..=most).rev().find(|n| others % n == 0)?,
            extents,
        })
    }

    fn write(&self, func: &mut Func, at: usize) {
        let grid = std::mem::take(&mut func.kernels[at].grid);
        let span = func.kernels[at].span;
        let int = |n: i64| Expr::i32(n as i32);
        let blocks: i64 = self.extents.iter().product();
        let var = func.add_var("block", DType::I32, VarKind::BlockIdx(0));
        let block = func.var_expr(var);
        let length = self.extents[self.axis];
        let turn = block.clone().floor_div(int(self.section));
        let turn = turn.floor_mod(int(length));
        let own = match self.grows {
            true => int(length - 1) - turn,
            false => turn,
        };
        let first = block.clone().floor_div(int(self.section * length));
        let mut rest = first * int(self.section) + block.floor_mod(int(self.section));
        let mut names = Block::new();
        for (axis, (name, _)) in grid.iter().enumerate() {
            let value = match axis == self.axis {
                true => own.clone(),
                false => {
                    let extent = int(self.extents[axis]);
                    let value = rest.clone().floor_mod(extent.clone());
                    rest = rest.floor_div(extent);
                    value
                }
            };
            func.vars[*name].kind = VarKind::Let;
            let value = value.cast_to(func.vars[*name].dtype);
            names.push(Stmt::new(StmtKind::Let { var: *name, value }, span));
        }
        let kernel = &mut func.kernels[at];
        kernel.grid = vec![(var, int(blocks))];
        kernel.body.splice(0..0, names);
    }
}

/// How often the only planned loop of a kernel runs, if it stands in nothing, and its body.
fn planned(body: &Block) -> Option<(Expr, &Block)> {
    let mut lets: FxHashMap<Var, Expr> = FxHashMap::default();
    let expanded = |e: &Expr, lets: &FxHashMap<Var, Expr>| {
        e.rewrite(&mut |node| lets.get(&node.as_var()?).cloned())
    };
    let mut found = None;
    for stmt in body {
        match &stmt.kind {
            StmtKind::Let { var, value } => {
                lets.insert(*var, expanded(value, &lets));
            }
            StmtKind::For(l) if l.has_turns() => {
                let axis = &l.axes[0];
                if found.is_some() || !axis.start.is_int(0) || !axis.step.is_int(1) {
                    return None;
                }
                found = Some((expanded(&axis.stop, &lets), &l.body));
            }
            _ => {}
        }
    }
    found
}

/// Bytes of the tensors that a loop's body copies from.
fn read(func: &Func, body: &Block) -> Option<u64> {
    let mut tensors: Vec<Buffer> = Vec::new();
    walk_stmts(body, &mut |stmt| {
        if let StmtKind::Micro(m) = &stmt.kind {
            let of = m.sources.iter().map(|s| s.region.buffer);
            tensors.extend(of.filter(|b| func.buffers[*b].scope == Scope::Global));
        }
    });
    tensors.sort_unstable();
    tensors.dedup();
    let bytes = tensors.iter().map(|b| {
        let data = &func.buffers[*b];
        let elements: i64 = data.const_shape()?.iter().product();
        Some(elements as u64 * u64::from(data.dtype.bits()) / 8)
    });
    bytes.sum()
}

/// Whether the number grows with the index, or shrinks; nothing where neither is known.
fn grows(func: &Func, kernel: &Kernel, trips: &Expr, index: Var) -> Option<bool> {
    let mut analyzer = Analyzer::for_func(func);
    analyzer.enter_kernel(func, kernel);
    let own = func.var_expr(index);
    let next = own.clone() + Expr::int(1, own.dtype());
    let later = trips.rewrite(&mut |node| (node.as_var() == Some(index)).then(|| next.clone()));
    match analyzer.prove_le(trips, &later).is_yes() {
        true => Some(true),
        false => analyzer.prove_ge(trips, &later).is_yes().then_some(false),
    }
}
