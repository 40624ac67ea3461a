//! Other variables and buffers in the place of those that code mentions.

use rustc_hash::FxHashMap;
use tilewright_ir::visit::{block_exprs_mut, child_blocks_mut};
use tilewright_ir::visit_ids::{IdMut, stmt_ids_mut};
use tilewright_ir::{Block, Buffer, Expr, ExprKind, Var};

/// Puts the new ones where the old ones stand, in statements and in expressions.
pub fn rename(block: &mut Block, vars: &FxHashMap<Var, Var>, buffers: &FxHashMap<Buffer, Buffer>) {
    if vars.is_empty() && buffers.is_empty() {
        return;
    }
    rename_ids(block, vars, buffers);
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
