//! Reducers: initialised, updated in parallel loops, finalised, in this order.
//!
//! `reducer-epoch`: that order, and all in the block of the initialisation; `reducer-types`

use crate::buffer::Scope;
use crate::diag::Span;
use crate::dtype::DType;
use crate::expr::Expr;
use crate::ids::Buffer;
use crate::tile_op::TileOp;
use crate::verify::{BlockKind, Verifier};

/// Where a reducer is in its life; one that was never initialised has no state.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Collecting, since the initialisation in the block at this depth.
    Open { depth: usize, at: Span },
    /// Finalised into a destination.
    Closed,
    /// Finalised in place: readable like memory.
    Readable,
}

impl<'a> Verifier<'a> {
    pub(super) fn reducer_op(&mut self, op: &'a TileOp) {
        match op {
            TileOp::ReducerInit { reducer, init } => {
                let Some(dtype) = self.reducer(*reducer) else {
                    return;
                };
                if let Some(init) = init {
                    self.value_of(init, dtype, "reducer-types", "the initial value");
                }
                if let Some(State::Open { at, .. }) = self.reducers.get(reducer).copied() {
                    self.epoch(*reducer, "is initialised again before it is finalised", at);
                }
                let state = State::Open {
                    depth: self.blocks.len(),
                    at: self.at,
                };
                self.reducers.insert(*reducer, state);
            }
            TileOp::ReducerUpdate {
                reducer,
                indices,
                value,
            } => {
                self.exprs(indices);
                let Some(dtype) = self.reducer(*reducer) else {
                    return;
                };
                self.value_of(value, dtype, "reducer-types", "the contribution");
                self.reducer_index(*reducer, indices);
                let open = matches!(self.reducers.get(reducer), Some(State::Open { .. }));
                if !open {
                    self.epoch(
                        *reducer,
                        "is updated but not initialised before",
                        Span::NONE,
                    );
                } else if self.tile_level() && !self.in_parallel() {
                    self.epoch(*reducer, "is updated outside of parallel loops", Span::NONE);
                }
            }
            TileOp::ReducerFinalize { reducer, dst } => {
                let Some(dtype) = self.reducer(*reducer) else {
                    return;
                };
                if let Some(dst) = dst
                    && self.region(dst, false)
                {
                    let to = self.data(dst);
                    if to.dtype != dtype {
                        let message = format!("{dtype} is finalised into {}", to.dtype);
                        self.fail("reducer-types", message);
                    }
                    let scopes = [Scope::Fragment, Scope::Shared, Scope::Global, Scope::Local];
                    self.in_scope(dst, &scopes, "reducer-types", "the destination");
                    let func = self.func;
                    let shape = &func.buffers[*reducer].shape;
                    let size = |list: &mut dyn Iterator<Item = &Expr>| -> Option<i128> {
                        list.map(Expr::as_int)
                            .try_fold(1i128, |n, e| n.checked_mul(e?))
                    };
                    let (ours, theirs) = (
                        size(&mut shape.iter()),
                        size(&mut dst.dims.iter().map(|d| &d.extent)),
                    );
                    if ours != theirs {
                        self.fail("reducer-types", "reducer and destination differ in size");
                    }
                }
                match self.reducers.get(reducer).copied() {
                    Some(State::Open { depth, at }) => {
                        // A condition inside the block of the initialisation is tolerated.
                        let between = self.blocks.get(depth..).unwrap_or_default();
                        let reached = depth <= self.blocks.len()
                            && between.iter().all(|kind| *kind == BlockKind::If);
                        if !reached {
                            self.epoch(*reducer, "is finalised in another block", at);
                        }
                    }
                    _ => {
                        self.epoch(
                            *reducer,
                            "is finalised but not initialised before",
                            Span::NONE,
                        );
                    }
                }
                let state = match dst {
                    Some(_) => State::Closed,
                    None => State::Readable,
                };
                self.reducers.insert(*reducer, state);
            }
            _ => {}
        }
    }

    /// At the end of a block, what was initialised in it is finalised.
    pub(super) fn close_reducers(&mut self) {
        let here = self.blocks.len();
        let mut left: Vec<(Buffer, Span)> = self
            .reducers
            .iter()
            .filter_map(|(buffer, state)| match state {
                State::Open { depth, at } if *depth == here => Some((*buffer, *at)),
                _ => None,
            })
            .collect();
        left.sort_unstable_by_key(|(buffer, _)| *buffer);
        for (buffer, at) in left {
            self.epoch(
                buffer,
                "is never finalised in the block of its initialisation",
                at,
            );
            self.reducers.insert(buffer, State::Closed);
        }
    }

    fn epoch(&mut self, reducer: Buffer, what: &str, first: Span) {
        let name = self.buffer_name(reducer);
        let error = self.fail("reducer-epoch", format!("`{name}` {what}"));
        if !first.is_none() {
            error.secondary.push(crate::Label {
                span: first,
                text: "initialised here".to_string(),
            });
        }
    }

    /// The element type, if it is a reducer.
    fn reducer(&mut self, buffer: Buffer) -> Option<DType> {
        if !self.use_buffer(buffer, self.at) {
            return None;
        }
        self.buffer_in_scope(buffer, &[Scope::Reducer], "reducer-types", "the operand")
            .then(|| self.func.buffers[buffer].dtype)
    }

    fn reducer_index(&mut self, reducer: Buffer, indices: &'a [Expr]) {
        let func = self.func;
        let shape = &func.buffers[reducer].shape;
        if shape.len() != indices.len() {
            let message = format!("{} indices for {} dimensions", indices.len(), shape.len());
            self.fail("index-count", message);
            return;
        }
        for (index, extent) in indices.iter().zip(shape) {
            if !index.dtype().scalar.is_int() || index.dtype().lanes != 1 {
                self.error(
                    "index-type",
                    index.span(),
                    format!("an index of {}", index.dtype()),
                );
            }
            if let (Some(i), Some(n)) = (index.as_int(), extent.as_int())
                && !(0..n).contains(&i)
            {
                self.error(
                    "index-bounds",
                    index.span(),
                    format!("index {i} of {n} elements"),
                );
            }
        }
    }
}
