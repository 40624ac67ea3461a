//! Loops that copy tiles ahead and multiply them.

use tilewright_ir::MicroKind;

use super::super::arrangement::{Entry, Part};
use super::super::pieces::Piece;
use super::super::steps::Steps;
use super::{Question, Why};

/// The pieces of such a loop: copies, and the product, which comes last.
pub(super) struct Multiplies<'a> {
    pieces: &'a [Piece],
    /// What brings tiles, by itself or to registers.
    pub copies: Vec<usize>,
    /// What stores tiles from registers.
    pub stores: Vec<usize>,
    /// Of the product: `s2r` of each operand, then `mma`.
    pub steps: &'a Steps,
}

impl<'a> Multiplies<'a> {
    pub fn of(question: Question<'a>) -> Result<Multiplies<'a>, Why> {
        let pieces = &question.pieces.list;
        let Some((product, others)) = pieces.split_last() else {
            return Err("the loop is empty".into());
        };
        if others.is_empty() || !others.iter().all(|c| c.distance > product.distance) {
            return Err("the loop does more than copy ahead and multiply".into());
        }
        let steps = product.steps.as_ref().filter(|s| {
            let (reads, products) = (s.of_kind(MicroKind::S2r), s.of_kind(MicroKind::Mma));
            let last = s.ops.last().is_some_and(|m| m.kind == MicroKind::Mma);
            products == 1 && reads > 0 && reads + products == s.ops.len() && last
        });
        let Some(steps) = steps.filter(|_| product.distance == 0 && !product.late) else {
            return Err("its last statement is no product of tiles in shared memory".into());
        };
        let (stores, copies) = (0..others.len()).partition(|&at| others[at].late);
        Ok(Multiplies {
            pieces,
            copies,
            stores,
            steps,
        })
    }

    /// The ops of a step that read operands.
    pub fn reads(&self) -> std::ops::Range<usize> {
        0..self.steps.ops.len() - 1
    }

    pub fn piece(&self, at: usize) -> &'a Piece {
        &self.pieces[at]
    }

    /// A copy, as far ahead as it was planned.
    pub fn copy(&self, at: usize) -> Entry {
        Entry::whole(at, self.pieces[at].distance)
    }

    /// An op of a step of the product.
    pub fn op(&self, step: u32, op: usize, ahead: u32) -> Entry {
        Entry {
            piece: self.pieces.len() - 1,
            part: Some(Part { step, op }),
            ahead,
        }
    }

    /// The matrix instructions of a step.
    pub fn product(&self, step: u32) -> Entry {
        self.op(step, self.steps.ops.len() - 1, 0)
    }
}
