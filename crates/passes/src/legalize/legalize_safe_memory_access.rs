//! LegalizeSafeMemoryAccess: out-of-bounds accesses of global memory as the language means
//! them. A load outside gives the buffer's safe value, a store is dropped, an atomic skipped.
//!
//! A check is written only for a bound that the prover cannot discharge from the facts of the
//! place, so a tile that divides its tensor costs nothing.
//!
//! Before:
//! ```text
//! B[i] = A[i + n]
//! ```
//! After:
//! ```text
//! B[i] = if_then_else(i + n < 100, A[i + n], 0.0)
//! ```
//!
//! A vector access has one check, of its first element: LegalizeVectorizedLoop and LowerTileOp
//! make vectors only where none reaches over the end of a row. Additions to several elements that the
//! user wrote may do so: those are additions to one element each then.
//!
//! The result of an atomic operation that is skipped is the safe value:
//! ```text
//! x = atomic_load C[i] acquire
//! ```
//! becomes
//! ```text
//! alloc x: local int32[1]
//! if i < 100 {
//!   x.1 = atomic_load C[i] acquire
//!   x[0] = x.1
//! } else {
//!   x[0] = 0
//! }
//! let x.1: int32 = x[0]
//! ```
//!
//! Needs loop IR. It never checks shared or local memory: leaving those is an error.

use rustc_hash::FxHashMap;
use tilewright_arith::{Analyzer, Inside};
use tilewright_ir::visit::{child_blocks_mut, rewrite_block, stmt_exprs_mut};
use tilewright_ir::{
    Block, Buffer, BufferData, DType, Diagnostics, Expr, ExprKind, Func, Inst, MicroOp, Scope,
    Stmt, StmtKind, Target, ThreadOp, Var, VarKind, small_float,
};

use crate::Changed;
use crate::vector_adds::{VectorAdd, split_vector_adds};

/// Guards all accesses of global memory that may leave it.
pub fn legalize_safe_memory_access(
    func: &mut Func,
    _target: Target,
    _diags: &mut Diagnostics,
) -> Changed {
    split_vector_adds(func, |func, analyzer, add| {
        match is_as_one(func, analyzer, add) {
            true => add.lanes,
            false => 1,
        }
    });
    let mut analyzer = Analyzer::for_func(func);
    for at in 0..func.kernels.len() {
        let mut body = std::mem::take(&mut func.kernels[at].body);
        analyzer.enter_kernel(func, &func.kernels[at]);
        let shared: &Func = func;
        let mut results = Results::default();
        analyzer.rewrite_block(shared, &mut body, &mut |analyzer, stmt| {
            guard_stmt(shared, analyzer, stmt, &mut results)
        });
        analyzer.pop();
        if !results.is_empty() {
            body = guard_results(func, body, &results);
        }
        func.kernels[at].body = body;
    }
    Changed::Yes
}

/// Whether all elements that are added to are there where the first is, and so is what is added.
fn is_as_one(func: &Func, analyzer: &mut Analyzer, add: VectorAdd<'_>) -> bool {
    let lanes = i64::from(add.lanes);
    let ends_inside = |analyzer: &mut Analyzer, buffer: Buffer, indices: &[Expr]| {
        let (Some(start), Some(end)) = (indices.last(), func.buffers[buffer].shape.last()) else {
            return false;
        };
        let whole = |analyzer: &mut Analyzer, e: &Expr| analyzer.divides(lanes.into(), e).is_yes();
        whole(analyzer, start) && whole(analyzer, end)
            || analyzer.prove_le(&(start.clone() + lanes), end).is_yes()
    };
    let is_global = |buffer: Buffer| func.buffers[buffer].scope == Scope::Global;
    let to = bounds(func, analyzer, add.dst, add.dst_indices);
    let as_one = |analyzer: &mut Analyzer| {
        let there = !is_global(add.dst) || ends_inside(analyzer, add.dst, add.dst_indices);
        there
            && (!is_global(add.src)
                || bounds(func, analyzer, add.src, add.src_indices).is_none()
                    && ends_inside(analyzer, add.src, add.src_indices))
    };
    match to {
        Some(first_inside) => analyzer.with_assumption(&first_inside, as_one),
        None => as_one(analyzer),
    }
}

/// By result, the guard of an operation that gives one: it is written once all are known.
type Results = FxHashMap<Var, Expr>;

fn guard_stmt(
    func: &Func,
    analyzer: &mut Analyzer,
    stmt: &mut Stmt,
    results: &mut Results,
) -> Inside {
    if let StmtKind::Micro(m) = &mut stmt.kind {
        guard_micro(func, analyzer, m);
        return Inside::Done;
    }
    // A loop's condition is evaluated with facts that the loop changes; what stands in it is
    // guarded without any.
    if let StmtKind::While { cond, .. } = &mut stmt.kind {
        *cond = guard_expr(func, &mut Analyzer::for_func(func), cond);
        return Inside::Rewrite;
    }
    stmt_exprs_mut(stmt, &mut |e| *e = guard_expr(func, analyzer, e));
    let inside = match &stmt.kind {
        StmtKind::Store {
            buffer, indices, ..
        }
        | StmtKind::Thread(
            ThreadOp::AtomicRmw {
                buffer, indices, ..
            }
            | ThreadOp::AtomicLoad {
                buffer, indices, ..
            }
            | ThreadOp::AtomicStore {
                buffer, indices, ..
            },
        ) => bounds(func, analyzer, *buffer, indices),
        StmtKind::Thread(ThreadOp::AtomicVecAdd {
            dst, dst_indices, ..
        }) => bounds(func, analyzer, *dst, dst_indices),
        _ => None,
    };
    let Some(cond) = inside else {
        return Inside::Rewrite;
    };
    if let StmtKind::Thread(op) = &stmt.kind
        && let Some(result) = op.result()
    {
        results.insert(result, cond);
        return Inside::Done;
    }
    stmt.wrap(|inner| StmtKind::If {
        cond,
        then: vec![inner],
        otherwise: Vec::new(),
    });
    Inside::Done
}

/// Writes the guards of operations with results, which are the safe values where those fail.
fn guard_results(func: &mut Func, block: Block, results: &Results) -> Block {
    rewrite_block(block, |mut stmt, out| {
        for child in child_blocks_mut(&mut stmt) {
            *child = guard_results(func, std::mem::take(child), results);
        }
        let op = match &mut stmt.kind {
            StmtKind::Thread(
                ThreadOp::AtomicRmw {
                    buffer,
                    result: Some(result),
                    ..
                }
                | ThreadOp::AtomicLoad { buffer, result, .. },
            ) => results.get(result).map(|cond| (*buffer, result, cond)),
            _ => None,
        };
        let Some((buffer, result, cond)) = op else {
            out.push(stmt);
            return;
        };
        let (var, span) = (*result, stmt.span);
        let data = func.vars[var].clone();
        *result = func.add_var(&data.name, data.dtype, VarKind::Let);
        let made = func.var_expr(*result);
        let otherwise = safe_value(&func.buffers[buffer]).cast_to(data.dtype);
        let chosen = func.buffers.push(BufferData {
            span,
            ..BufferData::new(data.name, Scope::Local, data.dtype, vec![Expr::i32(1)])
        });
        let at = || vec![Expr::i32(0)];
        let keep = |value: Expr| {
            let kind = StmtKind::Store {
                buffer: chosen,
                indices: at(),
                value,
            };
            Stmt::new(kind, span)
        };
        let kinds = [
            StmtKind::Alloc(chosen),
            StmtKind::If {
                cond: cond.clone(),
                then: vec![stmt, keep(made)],
                otherwise: vec![keep(otherwise)],
            },
            StmtKind::Let {
                var,
                value: Expr::load(chosen, at(), data.dtype),
            },
        ];
        out.extend(kinds.into_iter().map(|kind| Stmt::new(kind, span)));
    })
}

fn guard_micro(func: &Func, analyzer: &mut Analyzer, m: &mut MicroOp) {
    // The copy engine knows where tensors end.
    if matches!(m.inst, Inst::Tma(_)) {
        return;
    }
    analyzer.push();
    for (var, extent) in &m.axes {
        let extent = Expr::int((*extent).into(), func.vars[*var].dtype);
        analyzer.bind_range(*var, &Expr::zero(extent.dtype()), &extent);
    }
    if let Some(pred) = &m.pred {
        analyzer.assume(pred);
    }
    let from = m
        .sources
        .first()
        .and_then(|s| bounds(func, analyzer, s.region.buffer, &s.at));
    let to = bounds(func, analyzer, m.dest.region.buffer, &m.dest.at);
    analyzer.pop();
    if from.is_some() && m.otherwise.is_none() {
        let data = &func.buffers[m.sources[0].region.buffer];
        debug_assert!(matches!(m.inst, Inst::Load | Inst::CpAsync));
        m.otherwise = Some(safe_value(data));
    }
    for cond in [from, to].into_iter().flatten() {
        m.pred = Some(match m.pred.take() {
            None => cond,
            Some(pred) => pred.and(cond),
        });
    }
}

/// The expression with its loads guarded; arms of a condition know it.
fn guard_expr(func: &Func, analyzer: &mut Analyzer, e: &Expr) -> Expr {
    let mut reads = false;
    e.walk(&mut |node| {
        if let ExprKind::Load { buffer, .. } = node.kind() {
            reads |= func.buffers[*buffer].scope == Scope::Global;
        }
    });
    if !reads {
        return e.clone();
    }
    if let ExprKind::IfThenElse {
        cond,
        then,
        otherwise,
    } = e.kind()
    {
        let cond = guard_expr(func, analyzer, cond);
        let then = analyzer.with_assumption(&cond, |a| guard_expr(func, a, then));
        let otherwise = analyzer.with_refutation(&cond, |a| guard_expr(func, a, otherwise));
        return e.with_operands(vec![cond, then, otherwise]);
    }
    let operands: Vec<Expr> = e
        .operands()
        .into_iter()
        .map(|o| guard_expr(func, analyzer, o))
        .collect();
    let e = e.with_operands(operands);
    let ExprKind::Load { buffer, indices } = e.kind() else {
        return e;
    };
    match bounds(func, analyzer, *buffer, indices) {
        None => e,
        Some(cond) => {
            let otherwise = safe_value(&func.buffers[*buffer]).cast_to(e.dtype());
            let (dtype, span) = (e.dtype(), e.span());
            let kind = ExprKind::IfThenElse {
                cond,
                then: e,
                otherwise,
            };
            Expr::new(kind, dtype, span)
        }
    }
}

/// What must hold for an access to be inside, as far as it is not known to.
fn bounds(func: &Func, analyzer: &mut Analyzer, buffer: Buffer, indices: &[Expr]) -> Option<Expr> {
    let data = &func.buffers[buffer];
    if data.scope != Scope::Global {
        return None;
    }
    let mut all: Option<Expr> = None;
    let mut need = |cond: Expr| {
        all = Some(match all.take() {
            None => cond,
            Some(known) => known.and(cond),
        });
    };
    for (index, extent) in indices.iter().zip(&data.shape) {
        let index = match index.kind() {
            ExprKind::Ramp { base, .. } => base,
            _ => index,
        };
        let low = index.clone().ge(0);
        if !analyzer.prove(&low).is_yes() {
            need(low);
        }
        let high = index.clone().lt(extent);
        if !analyzer.prove(&high).is_yes() {
            need(high);
        }
    }
    all
}

fn safe_value(data: &BufferData) -> Expr {
    data.safe_value
        .clone()
        .map_or_else(|| nothing(data.dtype), |v| v.cast_to(data.dtype))
}

/// Zero, or what a type without one has for it.
fn nothing(dtype: DType) -> Expr {
    match dtype.scalar.is_float() {
        true => Expr::float(small_float::round_to(dtype.scalar, 0.0), dtype),
        false => Expr::zero(dtype),
    }
}
