//! Copies of code, each with variables of its own.

use rustc_hash::FxHashMap;
use tilewright_ir::operand::Operand;
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{Block, Buffer, Func, StmtKind, Var};

use crate::rename::rename;

/// Gives every variable and buffer that the statements bind a new one of the same name, so that
/// they can stand beside what they were copied from.
pub(crate) fn refresh(func: &mut Func, block: &mut Block) {
    let mut vars: FxHashMap<Var, Var> = FxHashMap::default();
    let mut buffers: FxHashMap<Buffer, Buffer> = FxHashMap::default();
    let mut bound = Vec::new();
    let mut allocated = Vec::new();
    walk_stmts(block, &mut |stmt| match &stmt.kind {
        StmtKind::Let { var, .. } => bound.push(*var),
        StmtKind::For(l) => bound.extend(l.axes.iter().map(|a| a.var)),
        StmtKind::Micro(m) => bound.extend(m.axes.iter().map(|(v, _)| *v)),
        StmtKind::Alloc(buffer) => allocated.push(*buffer),
        StmtKind::Thread(op) => op.operands(&mut |operand| {
            if let Operand::Result(var) | Operand::Bound(var) = operand {
                bound.push(*var);
            }
        }),
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
    rename(block, &vars, &buffers);
}
