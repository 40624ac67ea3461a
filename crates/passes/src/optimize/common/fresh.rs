//! Copies of code, each with variables of its own.

use rustc_hash::FxHashMap;
use tilewright_ir::visit::{block_exprs_mut, child_blocks_mut, walk_stmts};
use tilewright_ir::visit_ids::{IdMut, stmt_ids_mut};
use tilewright_ir::{Block, Buffer, Expr, ExprKind, Func, StmtKind, ThreadOp, Var};

/// Gives every variable and buffer that the statements bind a new one of the same name, so that
/// they can stand beside what they were copied from.
pub(super) fn refresh(func: &mut Func, block: &mut Block) {
    let mut vars: FxHashMap<Var, Var> = FxHashMap::default();
    let mut buffers: FxHashMap<Buffer, Buffer> = FxHashMap::default();
    let mut bound = Vec::new();
    let mut allocated = Vec::new();
    walk_stmts(block, &mut |stmt| match &stmt.kind {
        StmtKind::Let { var, .. } => bound.push(*var),
        StmtKind::For(l) => bound.extend(l.axes.iter().map(|a| a.var)),
        StmtKind::Micro(m) => bound.extend(m.axes.iter().map(|(v, _)| *v)),
        StmtKind::Alloc(buffer) => allocated.push(*buffer),
        StmtKind::Thread(op) => {
            bound.extend(op.result());
            if let ThreadOp::AllReduce { combiner, .. } = op {
                bound.extend([combiner.lhs, combiner.rhs]);
            }
        }
        _ => {}
    });
    for var in bound {
        let data = func.vars[var].clone();
        vars.insert(var, func.vars.push(data));
    }
    for buffer in allocated {
        let data = func.buffers[buffer].clone();
        buffers.insert(buffer, func.buffers.push(data));
    }
    if vars.is_empty() && buffers.is_empty() {
        return;
    }
    rename_ids(block, &vars, &buffers);
    block_exprs_mut(block, &mut |e| {
        *e = e.rewrite(&mut |node| match node.kind() {
            ExprKind::Var(var) => {
                let new = vars.get(var)?;
                Some(Expr::var(*new, node.dtype()).with_span(node.span()))
            }
            ExprKind::Load { buffer, indices } => {
                let new = buffers.get(buffer)?;
                Some(Expr::load(*new, indices.clone(), node.dtype()).with_span(node.span()))
            }
            ExprKind::AddressOf { buffer, indices } => {
                let kind = ExprKind::AddressOf {
                    buffer: *buffers.get(buffer)?,
                    indices: indices.clone(),
                };
                Some(Expr::new(kind, node.dtype(), node.span()))
            }
            _ => None,
        });
    });
}

fn rename_ids(block: &mut Block, vars: &FxHashMap<Var, Var>, buffers: &FxHashMap<Buffer, Buffer>) {
    for stmt in block {
        stmt_ids_mut(stmt, &mut |id| match id {
            IdMut::Var(var) => *var = vars.get(var).copied().unwrap_or(*var),
            IdMut::Buffer(buffer) => *buffer = buffers.get(buffer).copied().unwrap_or(*buffer),
        });
        for child in child_blocks_mut(stmt) {
            rename_ids(child, vars, buffers);
        }
    }
}
