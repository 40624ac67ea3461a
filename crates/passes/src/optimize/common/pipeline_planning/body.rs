//! The body of a pipelined loop as a list of statements that can be given places.
//!
//! Storage is allocated before the loop. A `let` whose value the loop changes becomes a variable
//! of the thread, so that reading it is a dependence like any other; a `let` that stays is the
//! same wherever it is computed. An `if` around copies and their uses is dealt out over its
//! statements, so that the copies can run ahead of the rest.

use rustc_hash::FxHashSet;
use tilewright_ir::visit::{block_exprs_mut, child_blocks_mut};
use tilewright_ir::{Block, Buffer, BufferData, Expr, Func, Scope, Span, Stmt, StmtKind, Turn};

use super::super::effects::{Effects, is_in};
use super::super::fresh::refresh;

/// The body after normalisation.
pub(super) struct Normal {
    /// Allocations that go before the loop.
    pub allocs: Block,
    pub body: Block,
}

/// Rewrites the body. With turns of the user (`user`) statements that are added have open ones,
/// and conditions stay as they are, because turns speak of whole statements.
pub(super) fn normalise(func: &mut Func, body: Block, user: bool) -> Normal {
    let written = Effects::of_block(func, &body).writes;
    let mut out = Normal {
        allocs: Vec::new(),
        body: Vec::new(),
    };
    let mut pending: std::collections::VecDeque<Stmt> = body.into();
    while let Some(mut stmt) = pending.pop_front() {
        hoist(&mut stmt, &mut out.allocs);
        match stmt.kind {
            StmtKind::Alloc(_) => out.allocs.push(stmt),
            StmtKind::Let { var, value } if changes(func, &value, &written) => {
                let data = &func.vars[var];
                let buffer = variable(func, &data.name.clone(), value.dtype(), stmt.span);
                out.allocs
                    .push(Stmt::new(StmtKind::Alloc(buffer), stmt.span));
                let load = Expr::load(buffer, Vec::new(), value.dtype());
                let mut rest: Block = pending.into();
                block_exprs_mut(&mut rest, &mut |e| {
                    *e = e.rewrite(&mut |n| (n.as_var() == Some(var)).then(|| load.clone()));
                });
                pending = rest.into();
                let mut assign = assign(buffer, value, stmt.span);
                assign.turn = user.then(Turn::default);
                out.body.push(assign);
            }
            StmtKind::If {
                cond,
                then,
                otherwise,
            } if !user
                && !changes(func, &cond, &written)
                && is_divisible(func, &then, &otherwise, &written) =>
            {
                // Conditions inside may be dealt out in turn.
                let mut parts = Vec::new();
                for (cond, arm) in [(cond.clone(), then), (!cond, otherwise)] {
                    deal(func, &cond, arm, &mut parts);
                }
                for part in parts.into_iter().rev() {
                    pending.push_front(part);
                }
            }
            _ => out.body.push(stmt),
        }
    }
    out
}

/// `if cond { stmt }` for each statement of an arm, with the names it uses.
fn deal(func: &mut Func, cond: &Expr, arm: Block, parts: &mut Block) {
    let mut names: Block = Vec::new();
    for stmt in arm {
        if matches!(stmt.kind, StmtKind::Let { .. }) {
            names.push(stmt);
            continue;
        }
        let span = stmt.span;
        let mut then = names.clone();
        then.push(stmt);
        if !names.is_empty() {
            refresh(func, &mut then);
        }
        let kind = StmtKind::If {
            cond: cond.clone(),
            then,
            otherwise: Vec::new(),
        };
        parts.push(Stmt::new(kind, span));
    }
}

/// Whether dealing an `if` out separates a copy to shared memory from something else.
fn is_divisible(func: &Func, then: &Block, otherwise: &Block, written: &FxHashSet<Buffer>) -> bool {
    let stmts = || then.iter().chain(otherwise);
    // What is named inside goes with each statement, if it is the same everywhere.
    let named = stmts().any(|s| match &s.kind {
        StmtKind::Let { value, .. } => changes(func, value, written),
        StmtKind::Thread(op) => op.result().is_some(),
        StmtKind::Alloc(_) | StmtKind::Assume(_) => true,
        _ => false,
    });
    let copies = stmts().any(|s| {
        let effects = Effects::of(func, s);
        let writes = effects.writes.iter();
        effects.reads.iter().any(|b| is_in(func, *b, Scope::Global))
            && writes.clone().count() > 0
            && writes.into_iter().all(|b| is_in(func, *b, Scope::Shared))
    });
    copies && !named && stmts().filter(|s| s.takes_turn()).count() > 1
}

/// Whether the loop may change the value.
fn changes(func: &Func, value: &Expr, written: &FxHashSet<Buffer>) -> bool {
    let reads = Effects::of_expr(func, value).reads;
    reads.iter().any(|b| written.contains(b))
}

/// Takes allocations out of the blocks inside a statement; they are the same storage each time.
fn hoist(stmt: &mut Stmt, allocs: &mut Block) {
    for block in child_blocks_mut(stmt) {
        let mut kept = Vec::with_capacity(block.len());
        for mut inner in std::mem::take(block) {
            hoist(&mut inner, allocs);
            match inner.kind {
                StmtKind::Alloc(_) => allocs.push(inner),
                _ => kept.push(inner),
            }
        }
        *block = kept;
    }
}

fn variable(func: &mut Func, name: &str, dtype: tilewright_ir::DType, span: Span) -> Buffer {
    func.buffers.push(BufferData {
        span,
        ..BufferData::new(name, Scope::Var, dtype, Vec::new())
    })
}

fn assign(buffer: Buffer, value: Expr, span: Span) -> Stmt {
    Stmt::new(
        StmtKind::Store {
            buffer,
            indices: Vec::new(),
            value,
        },
        span,
    )
}
