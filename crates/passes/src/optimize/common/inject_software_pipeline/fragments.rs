//! Operands of a product read one step ahead of the matrix instructions that use them.
//!
//! A loop whose only work beside copies is one product spends its time between reads of shared
//! memory and the matrix instructions that wait for them. Taken apart into its steps along K,
//! with two sets of operand registers in turn, the reads of a step run beside the instructions
//! of the step before, and those of the first step beside the last instructions of the iteration
//! before: they are one iteration ahead, and the schedule engine derives what that takes.
//!
//! Before:
//! ```text
//! copies; for ks in unroll(0, 4) { s2r -> a; s2r -> b; mma a, b }
//! ```
//! After:
//! ```text
//! s2r[1] -> a.1; s2r[1] -> b.1; copies; mma[0] a, b; s2r[2] -> a; …; s2r[0] of the next
//! iteration -> a; …; mma[3] a.1, b.1
//! ```
//!
//! Done where the registers are there (accumulators, both sets and what addresses take) and reads of
//! shared memory are not counted.

use rustc_hash::FxHashMap;
use tilewright_ir::visit::{stmt_exprs_mut, walk_stmts};
use tilewright_ir::{
    Buffer, Expr, Func, Kernel, LoopKind, MicroKind, MicroOp, Scope, Stmt, StmtKind, Target, Var,
};
use tilewright_schedule::order::Completion;

use super::super::fresh::refresh;
use super::units::{Unit, Units};

/// Registers left for addresses and indices.
const OTHER_REGISTERS: u64 = 48;

/// The parts of a product's step.
struct Steps<'a> {
    index: Var,
    count: i128,
    reads: Vec<&'a MicroOp>,
    product: &'a MicroOp,
    names: FxHashMap<Var, Expr>,
}

/// Takes the loop's product apart, if that is all it computes.
pub(super) fn read_ahead(func: &mut Func, kernel: &Kernel, target: Target, all: &mut Units) {
    let Some((product, copies)) = all.units.split_last() else {
        return;
    };
    let ahead = |u: &Unit| u.distance > 0 && u.distance > product.distance;
    // Where reads of shared memory are counted, those ahead would be in flight at the loop's edges.
    let counted = target.machine().shared.counter.is_some();
    if counted || product.distance != 0 || copies.is_empty() || !copies.iter().all(ahead) {
        return;
    }
    let product = product.clone();
    let Some(steps) = steps(&product.stmt) else {
        return;
    };
    let registers: Vec<Buffer> = steps.reads.iter().map(|m| m.dest.region.buffer).collect();
    if steps.count < 2
        || steps.count % 2 != 0
        || !registers
            .iter()
            .all(|b| used_only_in(func, kernel, *b, &product.stmt))
        || !fits(func, target, &steps, &registers)
    {
        return;
    }
    // Places of the body have room between them for the steps.
    const APART: usize = 1 << 16;
    for unit in &mut all.units {
        unit.program *= APART;
    }
    let first = product.program * APART;
    let mut second: FxHashMap<Buffer, Buffer> = FxHashMap::default();
    for &buffer in &registers {
        let data = func.buffers[buffer].clone();
        let twin = func.buffers.push(data);
        second.insert(buffer, twin);
        let alloc = StmtKind::Alloc(twin);
        all.allocs.push(Stmt::new(alloc, product.stmt.span));
        all.spec.versioned.extend([buffer, twin]);
    }
    let per_step = steps.reads.len() + 1;
    let unit = |func: &mut Func, micro: &MicroOp, step: i128, place: usize, distance: u32| {
        let mut stmt = Stmt::new(StmtKind::Micro(micro.clone()), product.stmt.span);
        let at = Expr::int(step, func.vars[steps.index].dtype);
        stmt_exprs_mut(&mut stmt, &mut |e| {
            *e = e.rewrite(&mut |node| {
                let var = node.as_var()?;
                if var == steps.index {
                    return Some(at.clone());
                }
                steps.names.get(&var).cloned()
            });
        });
        if let StmtKind::Micro(m) = &mut stmt.kind
            && step % 2 == 1
        {
            for access in std::iter::once(&mut m.dest).chain(&mut m.sources) {
                let buffer = &mut access.region.buffer;
                *buffer = second.get(buffer).copied().unwrap_or(*buffer);
            }
        }
        let mut fresh = vec![stmt];
        refresh(func, &mut fresh);
        fresh.pop().map(|stmt| Unit {
            stmt,
            distance,
            program: first + step as usize * per_step + place,
            completion: Completion::Sync,
            late: false,
        })
    };
    let mut order: Vec<Unit> = Vec::new();
    all.units.pop();
    let copies: Vec<Unit> = all.units.drain(..).collect();
    for step in 0..steps.count {
        let next = (step + 1) % steps.count;
        for (place, read) in steps.reads.iter().enumerate() {
            order.extend(unit(func, read, next, place, u32::from(next == 0)));
        }
        if step == 0 {
            order.extend(copies.iter().cloned());
        }
        order.extend(unit(func, steps.product, step, per_step - 1, 0));
    }
    all.units = order;
}

/// The steps of a product in shared memory, if the statement is nothing else.
fn steps(stmt: &Stmt) -> Option<Steps<'_>> {
    let StmtKind::For(l) = &stmt.kind else {
        return None;
    };
    let [axis] = &l.axes[..] else {
        return None;
    };
    if !matches!(l.kind, LoopKind::Unroll { .. }) || !axis.start.is_int(0) || !axis.step.is_int(1) {
        return None;
    }
    let mut names: FxHashMap<Var, Expr> = FxHashMap::default();
    let mut reads = Vec::new();
    let mut product = None;
    for stmt in &l.body {
        match &stmt.kind {
            StmtKind::Let { var, value } => {
                let value = value.rewrite(&mut |node| names.get(&node.as_var()?).cloned());
                names.insert(*var, value);
            }
            StmtKind::Micro(m) if m.kind == MicroKind::S2r && product.is_none() => reads.push(m),
            StmtKind::Micro(m) if m.kind == MicroKind::Mma && product.is_none() => {
                product = Some(m);
            }
            _ => return None,
        }
    }
    Some(Steps {
        index: axis.var,
        count: axis.stop.as_int()?,
        reads,
        product: product?,
        names,
    })
}

/// Whether the registers are touched in the statement alone.
fn used_only_in(func: &Func, kernel: &Kernel, buffer: Buffer, stmt: &Stmt) -> bool {
    let count = |block: &[Stmt]| {
        let mut count = 0;
        walk_stmts(&block.to_vec(), &mut |s| {
            if let StmtKind::Micro(m) = &s.kind {
                let accesses = std::iter::once(&m.dest).chain(&m.sources);
                count += accesses.filter(|a| a.region.buffer == buffer).count();
            }
        });
        count
    };
    func.buffers[buffer].scope == Scope::Local
        && count(&kernel.body) == count(std::slice::from_ref(stmt))
}

fn fits(func: &Func, target: Target, steps: &Steps<'_>, operands: &[Buffer]) -> bool {
    let words = |buffer: Buffer| {
        let data = &func.buffers[buffer];
        let elements = data.shape.iter().map(|e| e.as_int().unwrap_or(1 << 20));
        let bits = elements.product::<i128>() * i128::from(data.dtype.bits());
        u64::try_from(bits / 32).unwrap_or(u64::MAX)
    };
    let operands: u64 = operands.iter().map(|b| words(*b)).sum();
    let accumulator = words(steps.product.dest.region.buffer);
    2 * operands + accumulator + OTHER_REGISTERS <= u64::from(target.machine().registers.per_thread)
}
