//! Which version of a buffer an access means.
//!
//! A micro-op says it as `slot=`; any other access of a buffer with versions has it as an index
//! before the others.

use tilewright_ir::operand::OperandMut;
use tilewright_ir::visit::{child_blocks_mut, stmt_exprs_mut};
use tilewright_ir::{Buffer, Expr, ExprKind, Func, Stmt, StmtKind};

/// Names the version in every access of the statements. `slot` gives it for a buffer that has
/// several.
pub(super) fn add_slots(func: &Func, block: &mut [Stmt], slot: &dyn Fn(Buffer) -> Expr) {
    let of = |buffer: Buffer| (func.buffers[buffer].versions > 1).then(|| slot(buffer));
    each(block, &of);
}

fn each(block: &mut [Stmt], of: &dyn Fn(Buffer) -> Option<Expr>) {
    for stmt in block {
        stmt_exprs_mut(stmt, &mut |e| {
            *e = e.rewrite(&mut |node| match node.kind() {
                ExprKind::Load { buffer, indices } => {
                    let indices = with_slot(of(*buffer)?, indices);
                    Some(Expr::load(*buffer, indices, node.dtype()).with_span(node.span()))
                }
                ExprKind::AddressOf { buffer, indices } => {
                    let kind = ExprKind::AddressOf {
                        buffer: *buffer,
                        indices: with_slot(of(*buffer)?, indices),
                    };
                    Some(Expr::new(kind, node.dtype(), node.span()))
                }
                _ => None,
            });
        });
        let put = |buffer: Buffer, indices: &mut Vec<Expr>| {
            if let Some(slot) = of(buffer) {
                indices.insert(0, slot);
            }
        };
        match &mut stmt.kind {
            StmtKind::Store {
                buffer, indices, ..
            } => put(*buffer, indices),
            StmtKind::Micro(m) => {
                for access in std::iter::once(&mut m.dest).chain(&mut m.sources) {
                    if let Some(slot) = of(access.region.buffer) {
                        access.slot = Some(slot);
                    }
                }
            }
            StmtKind::Thread(op) => op.operands_mut(&mut |operand| {
                if let OperandMut::Elements {
                    buffer, indices, ..
                } = operand
                {
                    put(*buffer, indices);
                }
            }),
            _ => {}
        }
        for child in child_blocks_mut(stmt) {
            each(child, of);
        }
    }
}

fn with_slot(slot: Expr, indices: &[Expr]) -> Vec<Expr> {
    let mut all = Vec::with_capacity(indices.len() + 1);
    all.push(slot);
    all.extend_from_slice(indices);
    all
}
