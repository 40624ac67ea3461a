//! TurnRows: rows of matrix instructions turn round at their ends.
//!
//! Neighbours in a row share the operand of the row. Where the next row starts at the end that
//! the last one came to, its first instruction shares the other operand.
//!
//! Before:
//! ```text
//! mma for mi < 4, ni < 8 do a[0 +: 32] at [mi * 8], b[0 +: 32] at [ni * 4] -> c[0 +: 128] at [(mi * 8 + ni) * 4] …
//! ```
//! After:
//! ```text
//! mma for mi < 4, ni < 8 turning do a[0 +: 32] at [mi * 8], b[0 +: 32] at [ni * 4] -> c[0 +: 128] at [(mi * 8 + ni) * 4] …
//! ```
//!
//! Needs micro-ops. It never changes which instructions there are.

use tilewright_ir::visit::child_blocks_mut;
use tilewright_ir::{Block, Diagnostics, Func, Inst, StmtKind, Target};

use crate::Changed;

/// Turns the rows of every micro-op of matrix instructions that has several.
pub fn turn_rows(func: &mut Func, _: Target, _: &mut Diagnostics) -> Changed {
    let mut changed = Changed::No;
    for kernel in &mut func.kernels {
        turn(&mut kernel.body, &mut changed);
    }
    changed
}

fn turn(block: &mut Block, changed: &mut Changed) {
    for stmt in block {
        if let StmtKind::Micro(op) = &mut stmt.kind
            && matches!(op.inst, Inst::Mma(_))
            && op.axes.windows(2).any(|w| w[0].1 > 1 && w[1].1 > 1)
            && !op.turns
        {
            op.turns = true;
            *changed = Changed::Yes;
        }
        for child in child_blocks_mut(stmt) {
            turn(child, changed);
        }
    }
}
