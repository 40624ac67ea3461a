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

/// A part of the product with the reads that are for it first.
pub(super) struct Round {
    pub reads: Vec<Entry>,
    pub product: Entry,
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
            products > 0 && reads > 0 && reads + products == s.ops.len() && last
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

    pub fn piece(&self, at: usize) -> &'a Piece {
        &self.pieces[at]
    }

    /// A copy, as far ahead as it was planned.
    pub fn copy(&self, at: usize) -> Entry {
        Entry::whole(at, self.pieces[at].distance)
    }

    /// The parts of the product in order, step by step along K.
    pub fn rounds(&self) -> Vec<Round> {
        let ops = &self.steps.ops;
        let mut rounds = Vec::new();
        for step in 0..self.steps.count {
            let reads = (0..ops.len()).filter(|&op| ops[op].kind != MicroKind::Mma);
            let mut left: Vec<usize> = reads.collect();
            for product in (0..ops.len()).filter(|&op| ops[op].kind == MicroKind::Mma) {
                let own = self.steps.within[product];
                let needed = |read: &usize| self.steps.within[*read].is_of(own);
                let (now, later) = left.into_iter().partition(needed);
                left = later;
                let now: Vec<usize> = now;
                rounds.push(Round {
                    reads: now.iter().map(|read| self.op(step, *read)).collect(),
                    product: self.op(step, product),
                });
            }
        }
        rounds
    }

    fn op(&self, step: u32, op: usize) -> Entry {
        Entry {
            piece: self.pieces.len() - 1,
            part: Some(Part { step, op }),
            ahead: 0,
        }
    }
}
