//! The life of a reducer: opened, contributed to, folded, each in this order.
//!
//! Checked on the finished body of a kernel, where the order of statements is plain. An epoch
//! opens and closes in one block (a branch inside it may close it), so that a loop around it
//! opens it anew each time.

use std::collections::BTreeMap;

use tilewright_ir::{Block, Buffer, Expr, ExprKind, Scope, Span, Stmt, StmtKind, TileOp, visit};

use crate::record::Recorder;
use crate::{Result, codes};

/// Where a reducer stands.
#[derive(Clone, Copy, Debug)]
enum State {
    /// Never opened.
    Fresh,
    /// Takes contributions; opened here, at this nesting.
    Open { at: Span, depth: usize },
    /// Folded here; its own elements can be read when it was folded in place.
    Done { at: Span, readable: bool },
}

/// Checks every reducer of a kernel's body.
pub(super) fn check(rec: &Recorder, body: &Block) -> Result<()> {
    let mut checker = Checker {
        rec,
        states: BTreeMap::new(),
    };
    checker.block(body, 0)
}

struct Checker<'a> {
    rec: &'a Recorder,
    states: BTreeMap<Buffer, State>,
}

impl Checker<'_> {
    fn block(&mut self, block: &Block, depth: usize) -> Result<()> {
        for stmt in block {
            self.reads(stmt)?;
            match &stmt.kind {
                StmtKind::Tile(TileOp::ReducerInit { reducer, .. }) => {
                    self.open(*reducer, stmt.span, depth)?;
                }
                StmtKind::Tile(TileOp::ReducerUpdate { reducer, .. }) => {
                    self.update(*reducer, stmt.span)?;
                }
                StmtKind::Tile(TileOp::ReducerFinalize { reducer, dst }) => {
                    self.finish(*reducer, stmt.span, dst.is_none())?;
                }
                // A branch stays in the epoch of the block around it.
                StmtKind::If {
                    then, otherwise, ..
                } => {
                    let before = self.states.clone();
                    self.block(then, depth + 1)?;
                    let after_then = std::mem::replace(&mut self.states, before);
                    self.block(otherwise, depth + 1)?;
                    self.join(after_then);
                }
                _ => {
                    for child in visit::child_blocks(stmt) {
                        self.loop_body(child, depth + 1)?;
                    }
                }
            }
        }
        self.close(depth)
    }

    /// A body that may run again: an epoch from outside must not end in it.
    fn loop_body(&mut self, body: &Block, depth: usize) -> Result<()> {
        let before = self.states.clone();
        self.block(body, depth)?;
        for (reducer, state) in &before {
            if let (State::Open { .. }, Some(State::Done { at, .. })) =
                (state, self.states.get(reducer))
            {
                return Err(self
                    .error(
                        *reducer,
                        *at,
                        "is opened outside this loop and folded inside it",
                    )
                    .help("open and fold it in one block, both inside or both outside the loop")
                    .into());
            }
        }
        Ok(())
    }

    /// After a branch: what one arm folded counts as folded.
    fn join(&mut self, other: BTreeMap<Buffer, State>) {
        for (reducer, state) in other {
            if let State::Done { .. } = state {
                self.states.insert(reducer, state);
            }
        }
    }

    fn open(&mut self, reducer: Buffer, at: Span, depth: usize) -> Result<()> {
        if let Some(State::Open { at: first, .. }) = self.states.get(&reducer) {
            return Err(self
                .error(reducer, at, "is opened again before it was folded")
                .also(*first, "opened here")
                .help("fold it with `T.finalize_reducer` first")
                .into());
        }
        self.states.insert(reducer, State::Open { at, depth });
        Ok(())
    }

    fn update(&mut self, reducer: Buffer, at: Span) -> Result<()> {
        match self.state(reducer) {
            State::Open { .. } => Ok(()),
            State::Fresh => Err(self
                .error(reducer, at, "gets a contribution before it is opened")
                .help("write `T.reducer_init(acc)` or `T.clear(acc)` before the loop")
                .into()),
            State::Done { at: done, .. } => Err(self
                .error(reducer, at, "gets a contribution after it was folded")
                .also(done, "folded here")
                .help("open it again with `T.reducer_init(acc)` or `T.clear(acc)`")
                .into()),
        }
    }

    fn finish(&mut self, reducer: Buffer, at: Span, readable: bool) -> Result<()> {
        match self.state(reducer) {
            State::Open { .. } => {
                self.states.insert(reducer, State::Done { at, readable });
                Ok(())
            }
            State::Fresh => Err(self
                .error(reducer, at, "is folded but was never opened")
                .help("write `T.reducer_init(acc)` or `T.clear(acc)` before the contributions")
                .into()),
            State::Done { at: done, .. } => Err(self
                .error(reducer, at, "is folded twice")
                .also(done, "folded here already")
                .help("leave one of them out, or open it again in between")
                .into()),
        }
    }

    /// At the end of a block, what was opened in it must have been folded.
    fn close(&mut self, depth: usize) -> Result<()> {
        for (reducer, state) in &self.states {
            if let State::Open { at, depth: opened } = state
                && *opened == depth
            {
                return Err(self
                    .error(
                        *reducer,
                        *at,
                        "is opened here and not folded in the same block",
                    )
                    .help("end the epoch with `T.finalize_reducer(acc, dst)` in this block")
                    .into());
            }
        }
        Ok(())
    }

    /// Elements of a reducer can be read only after it was folded in place.
    fn reads(&self, stmt: &Stmt) -> Result<()> {
        let span = stmt.span;
        let mut bad = None;
        visit::stmt_exprs(stmt, &mut |root| {
            root.walk(&mut |e: &Expr| {
                if let ExprKind::Load { buffer, .. } = e.kind()
                    && self.rec.buffer(*buffer).scope == Scope::Reducer
                    && !matches!(self.state(*buffer), State::Done { readable: true, .. })
                {
                    bad = Some((*buffer, if e.span().is_none() { span } else { e.span() }));
                }
            });
        });
        match bad {
            None => Ok(()),
            Some((reducer, at)) => Err(self
                .error(reducer, at, "is read before it was folded")
                .help("read `dst` after `T.finalize_reducer(acc, dst)`, or `acc` after `T.finalize_reducer(acc)`")
                .into()),
        }
    }

    fn state(&self, reducer: Buffer) -> State {
        self.states.get(&reducer).copied().unwrap_or(State::Fresh)
    }

    fn error(&self, reducer: Buffer, at: Span, what: &str) -> tilewright_ir::Diagnostic {
        let name = self.rec.buffer_name(reducer);
        self.rec.error(
            codes::REDUCER_LIFECYCLE,
            at,
            format!("the reducer {name} {what}"),
        )
    }
}
