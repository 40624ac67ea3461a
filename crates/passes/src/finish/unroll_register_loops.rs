//! UnrollRegisterLoops: loops whose index is a subscript of registers are written out.
//!
//! Registers have no addresses. An array of them that is subscripted by a running index goes to
//! memory; by constants it stays where it is.
//!
//! Before:
//! ```text
//! for i in serial(0, 4) {
//!   R[i] = R[i] * 2.0
//! }
//! ```
//! After:
//! ```text
//! for i in unroll(0, 4) {
//!   R[i] = R[i] * 2.0
//! }
//! ```
//!
//! Needs one thread's program. A loop that says how far it is unrolled, and one of many
//! iterations, stays as it is.

use rustc_hash::FxHashSet;
use tilewright_ir::touched::{Part, touched};
use tilewright_ir::visit::{child_blocks_mut, stmt_exprs, walk_stmts};
use tilewright_ir::{
    Block, Buffer, Diagnostics, Expr, ExprKind, Func, LoopKind, Scope, StmtKind, Target, Var,
};

use crate::Changed;

/// Iterations that are written out at most; registers of a longer loop go to memory.
const MAX_UNROLL: u64 = 128;

/// Makes the loops `unroll`.
pub fn unroll_register_loops(func: &mut Func, _: Target, _: &mut Diagnostics) -> Changed {
    let mut changed = Changed::No;
    for at in 0..func.kernels.len() {
        let subscripts = subscripts(func, &func.kernels[at].body);
        unroll(&mut func.kernels[at].body, &subscripts, &mut changed);
    }
    changed
}

fn unroll(block: &mut Block, subscripts: &FxHashSet<Var>, changed: &mut Changed) {
    for stmt in block {
        if let StmtKind::For(l) = &mut stmt.kind
            && matches!(l.kind, LoopKind::Serial | LoopKind::Pipelined(_))
            && let [axis] = &l.axes[..]
            && axis.const_trip_count().is_some_and(|n| n <= MAX_UNROLL)
            && subscripts.contains(&axis.var)
        {
            l.kind = LoopKind::Unroll { factor: None };
            *changed = Changed::Yes;
        }
        for child in child_blocks_mut(stmt) {
            unroll(child, subscripts, changed);
        }
    }
}

/// The variables in subscripts of registers.
fn subscripts(func: &Func, body: &Block) -> FxHashSet<Var> {
    let mut found = FxHashSet::default();
    let mut note = |buffer: Buffer, indices: &[Expr]| {
        if !matches!(func.buffers[buffer].scope, Scope::Local | Scope::Fragment) {
            return;
        }
        for index in indices {
            index.walk_distinct(&mut |node| found.extend(node.as_var()));
        }
    };
    walk_stmts(body, &mut |stmt| {
        stmt_exprs(stmt, &mut |e| {
            e.walk_distinct(&mut |node| {
                if let ExprKind::Load { buffer, indices }
                | ExprKind::AddressOf { buffer, indices } = node.kind()
                {
                    note(*buffer, indices);
                }
            });
        });
        touched(stmt, &mut |access| match access.part {
            Part::Elements(indices, _) => note(access.buffer, indices),
            Part::Instruction(part) => note(access.buffer, &part.at),
            Part::Region(_) | Part::Whole | Part::Anywhere => {}
        });
    });
    found
}
