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
//! make vectors only where none reaches over the end of a row.
//!
//! Needs loop IR. It never checks shared or local memory: leaving those is an error.

use tilewright_arith::{Analyzer, Inside};
use tilewright_ir::visit::stmt_exprs_mut;
use tilewright_ir::{
    Buffer, BufferData, Diagnostics, Expr, ExprKind, Func, Inst, MicroOp, Scope, Stmt, StmtKind,
    Target, ThreadOp,
};

use crate::Changed;

/// Guards all accesses of global memory that may leave it.
pub fn legalize_safe_memory_access(
    func: &mut Func,
    _target: Target,
    _diags: &mut Diagnostics,
) -> Changed {
    let mut analyzer = Analyzer::for_func(func);
    for at in 0..func.kernels.len() {
        let mut body = std::mem::take(&mut func.kernels[at].body);
        analyzer.enter_kernel(func, &func.kernels[at]);
        let shared: &Func = func;
        analyzer.rewrite_block(shared, &mut body, &mut |analyzer, stmt| {
            guard_stmt(shared, analyzer, stmt)
        });
        analyzer.pop();
        func.kernels[at].body = body;
    }
    Changed::Yes
}

fn guard_stmt(func: &Func, analyzer: &mut Analyzer, stmt: &mut Stmt) -> Inside {
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
                buffer,
                indices,
                result: None,
                ..
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
    stmt.wrap(|inner| StmtKind::If {
        cond,
        then: vec![inner],
        otherwise: Vec::new(),
    });
    Inside::Done
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
        .map_or_else(|| Expr::zero(data.dtype), |v| v.cast_to(data.dtype))
}
