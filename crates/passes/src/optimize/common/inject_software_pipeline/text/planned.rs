//! `planned`: pieces that an order gives no other place, in the order that was planned.
//!
//! What runs ahead comes first, the rest as it was written, and stores of copies through registers last,
//! unless the iteration itself needs them. `until use` stops before the first piece that uses what waves
//! have copied.

use tilewright_ir::{Buffer, Scope};
use tilewright_schedule::order::Completion;

use super::PlannedText;
use crate::optimize::common::effects::Effects;
use crate::optimize::common::inject_software_pipeline::arrangement::{Cluster, Entry};
use crate::optimize::common::inject_software_pipeline::pieces::Piece;
use crate::optimize::common::inject_software_pipeline::schedules::{Question, Why};

/// The pieces of a loop as they were planned, with those that have a place already.
pub(super) struct Planned<'a> {
    question: Question<'a>,
    effects: Vec<Effects>,
    left: Vec<usize>,
}

impl<'a> Planned<'a> {
    pub fn of(question: Question<'a>) -> Planned<'a> {
        let pieces = question.pieces.list.iter();
        let effects: Vec<Effects> = pieces
            .map(|p| Effects::of(question.func, &p.stmt))
            .collect();
        Planned {
            left: places(&question.pieces.list, &effects),
            question,
            effects,
        }
    }

    /// These have their places elsewhere.
    pub fn without(&mut self, entries: &[Entry]) {
        self.left
            .retain(|at| entries.iter().all(|e| e.piece != *at));
    }

    /// The clusters of the pieces that are left.
    pub fn clusters(&mut self, written: &PlannedText) -> Result<Vec<Cluster>, Why> {
        let behind = match written.until_use {
            true => self.left.split_off(self.first_use()?),
            false => Vec::new(),
        };
        let mut clusters: Vec<Cluster> = Vec::new();
        for piece in std::mem::replace(&mut self.left, behind) {
            let Piece { late, distance, .. } = self.question.pieces.list[piece];
            let name = match (late, distance) {
                (true, _) => "store",
                (false, 0) => "math",
                (false, _) => "load",
            };
            if clusters.last().is_none_or(|c| c.name != name) {
                clusters.push(Cluster::new(name));
            }
            let entry = Entry::whole(piece, distance);
            clusters
                .last_mut()
                .into_iter()
                .for_each(|c| c.entries.push(entry));
        }
        if let Some(first) = clusters.first_mut() {
            first.meet = written.bar;
        }
        Ok(clusters)
    }

    /// Where the first piece stands that reads what was copied.
    fn first_use(&self) -> Result<usize, Why> {
        let mut copied: Vec<Buffer> = Vec::new();
        for (piece, effects) in self.question.pieces.list.iter().zip(&self.effects) {
            if let Completion::Counted { counter, .. } = piece.completion
                && counter.most_in_flight().is_some()
            {
                copied.extend(&effects.writes);
            }
        }
        copied.retain(|b| self.question.func.buffers[*b].scope == Scope::Shared);
        if copied.is_empty() {
            return Err("no copy to shared memory is counted by itself".into());
        }
        let uses = |piece: &usize| {
            let Effects { reads, writes, .. } = &self.effects[*piece];
            copied
                .iter()
                .any(|b| reads.contains(b) && !writes.contains(b))
        };
        let first = self.left.iter().position(uses);
        first.ok_or_else(|| "nothing in the loop reads what is copied".into())
    }
}

/// The pieces in order, with the late ones before the first later piece of their iteration that
/// touches what they write, or last.
fn places(pieces: &[Piece], effects: &[Effects]) -> Vec<usize> {
    let (late, mut placed): (Vec<usize>, Vec<usize>) =
        (0..pieces.len()).partition(|&at| pieces[at].late);
    for store in late {
        let needed = placed.iter().position(|&other| {
            let mut writes = effects[store].writes.iter();
            pieces[other].distance >= pieces[store].distance
                && pieces[other].program > pieces[store].program
                && writes.any(|b| effects[other].touches(*b))
        });
        placed.insert(needed.unwrap_or(placed.len()), store);
    }
    placed
}
