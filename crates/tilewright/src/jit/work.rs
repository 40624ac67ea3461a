//! How much a call of a function has to do: the operations of its matrix products and the bytes
//! of its tensors, counted from the tile IR. What a bench divides by time.

use rustc_hash::FxHashMap;
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{
    Block, Expr, ExprKind, Func, GemmOp, Kernel, Loop, LoopKind, Region, Stmt, StmtKind, TileOp,
    Var,
};
use tilewright_sim::Resolved;

use crate::call;

/// What a call does at least, whatever it is compiled to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Multiplications and additions of all `gemm`s. None where the sizes of the call do not say
    /// how often one runs.
    pub flops: Option<u128>,
    /// Bytes of all tensor parameters, each once.
    pub bytes: u128,
}

/// Counting gives up on more loop iterations than this.
const STEPS: u64 = 2_000_000;

/// Counts the work of a call with these arguments.
pub fn work(func: &Func, call: &Resolved) -> Work {
    let mut bytes = 0;
    for (buffer, _) in func.tensors() {
        bytes += call::bytes(func, buffer, call) as u128;
    }
    let mut flops = Some(0u128);
    for kernel in &func.kernels {
        let mut counter = Counter {
            func,
            call,
            values: FxHashMap::default(),
            steps: STEPS,
        };
        let found = counter.kernel(kernel);
        flops = flops.zip(found).map(|(a, b)| a + b);
    }
    Work { flops, bytes }
}

struct Counter<'a> {
    func: &'a Func,
    call: &'a Resolved,
    values: FxHashMap<Var, i128>,
    steps: u64,
}

impl Counter<'_> {
    fn kernel(&mut self, kernel: &Kernel) -> Option<u128> {
        if !has_gemm(&kernel.body) {
            return Some(0);
        }
        let mut axes = Vec::new();
        for (var, extent) in &kernel.grid {
            axes.push((*var, 0, self.value(extent)?, 1));
        }
        // Thread indices have no say in how often a block multiplies.
        self.axes(&axes, &kernel.body)
    }

    /// The work of a body at all points of some axes: `(index, start, trips, step)`.
    fn axes(&mut self, axes: &[(Var, i128, i128, i128)], body: &Block) -> Option<u128> {
        let Some((&(var, start, trips, step), rest)) = axes.split_first() else {
            return self.block(body);
        };
        if !decides(body, var) {
            return Some(trips.max(0) as u128 * self.axes(rest, body)?);
        }
        let mut total = 0;
        for n in 0..trips {
            self.steps = self.steps.checked_sub(1)?;
            self.values.insert(var, start + n * step);
            total += self.axes(rest, body)?;
        }
        self.values.remove(&var);
        Some(total)
    }

    fn block(&mut self, block: &Block) -> Option<u128> {
        let mut total = 0;
        for stmt in block {
            total += self.stmt(stmt)?;
        }
        Some(total)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Option<u128> {
        match &stmt.kind {
            StmtKind::Let { var, value } => {
                match self.value(value) {
                    Some(v) => self.values.insert(*var, v),
                    None => self.values.remove(var),
                };
                Some(0)
            }
            StmtKind::Tile(TileOp::Gemm(op)) => self.gemm(op),
            StmtKind::For(l) if has_gemm(&l.body) => self.repeated(l),
            StmtKind::While { body, .. } if has_gemm(body) => None,
            StmtKind::If {
                cond,
                then,
                otherwise,
            } if has_gemm(then) || has_gemm(otherwise) => match self.value(cond)? {
                0 => self.block(otherwise),
                _ => self.block(then),
            },
            StmtKind::WarpGroup { body, .. } => self.block(body),
            _ => Some(0),
        }
    }

    fn repeated(&mut self, l: &Loop) -> Option<u128> {
        if may_leave(&l.body) {
            return None;
        }
        let mut axes = Vec::new();
        for axis in &l.axes {
            let (start, stop) = (self.value(&axis.start)?, self.value(&axis.stop)?);
            let step = self.value(&axis.step)?;
            let distance = if step > 0 { stop - start } else { start - stop };
            if step == 0 {
                return None;
            }
            let trips = (distance.max(0) + step.abs() - 1) / step.abs();
            axes.push((axis.var, start, trips, step));
        }
        let LoopKind::Persistent {
            wave_size, index, ..
        } = &l.kind
        else {
            return self.axes(&axes, &l.body);
        };
        // This block's tiles are those of every wave at its own index.
        let (wave, index) = (self.value(wave_size)?, self.value(index)?);
        if wave <= 0 || axes.iter().any(|(var, ..)| decides(&l.body, *var)) {
            return None;
        }
        let tiles: i128 = axes.iter().map(|a| a.2).product();
        let mine = ((tiles - index).max(0) + wave - 1) / wave;
        Some(mine as u128 * self.block(&l.body)?)
    }

    fn gemm(&mut self, op: &GemmOp) -> Option<u128> {
        let (m, n) = self.matrix(&op.c)?;
        // Not of A, which may have half of its elements.
        let (rows, columns) = self.matrix(&op.b)?;
        let k = if op.trans_b { columns } else { rows };
        Some(2 * m * n * k)
    }

    /// The last two extents.
    fn matrix(&mut self, region: &Region) -> Option<(u128, u128)> {
        let [.., rows, columns] = region.dims.as_slice() else {
            return None;
        };
        let rows = self.value(&rows.extent)?;
        let columns = self.value(&columns.extent)?;
        Some((u128::try_from(rows).ok()?, u128::try_from(columns).ok()?))
    }

    /// The value of an expression over sizes and the indices around it.
    fn value(&self, e: &Expr) -> Option<i128> {
        call::value(self.func, self.call, &self.values, e)
    }
}

fn has_gemm(block: &Block) -> bool {
    let mut found = false;
    walk_stmts(block, &mut |s| {
        found |= matches!(s.kind, StmtKind::Tile(TileOp::Gemm(_)));
    });
    found
}

fn may_leave(block: &Block) -> bool {
    let mut found = false;
    walk_stmts(block, &mut |s| {
        found |= matches!(s.kind, StmtKind::Break | StmtKind::Continue);
    });
    found
}

/// Whether an index takes part in how often something below runs.
fn decides(block: &Block, var: Var) -> bool {
    let mentions = |e: &Expr| {
        let mut found = false;
        e.walk_distinct(&mut |node| found |= matches!(node.kind(), ExprKind::Var(v) if *v == var));
        found
    };
    let mut found = false;
    walk_stmts(block, &mut |s| match &s.kind {
        StmtKind::Let { var: name, value } => {
            found |= mentions(value) && decides(block, *name);
        }
        StmtKind::If { cond, .. } => found |= mentions(cond),
        StmtKind::For(l) => {
            for axis in &l.axes {
                found |= mentions(&axis.start) || mentions(&axis.stop) || mentions(&axis.step);
            }
            if let LoopKind::Persistent {
                wave_size, index, ..
            } = &l.kind
            {
                found |= mentions(wave_size) || mentions(index);
            }
        }
        StmtKind::Tile(TileOp::Gemm(op)) => {
            for region in [&op.a, &op.b, &op.c] {
                found |= region.dims.iter().any(|d| mentions(&d.extent));
            }
        }
        _ => {}
    });
    found
}
