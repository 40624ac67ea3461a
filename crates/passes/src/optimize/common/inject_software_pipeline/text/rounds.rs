//! `rounds`: clusters for each part of a loop's product, step by step along K.
//!
//! Inside, `read` is what a round multiplies and no round before it has read, `read next` the same of the
//! round behind it (behind the last the first of the next iteration, one iteration ahead), `multiply` its
//! matrix instructions. `bring first` are the copies, in the first round. `bring spread` are those too,
//! where they run one iteration ahead or go through registers; further ahead they are dealt out to all
//! rounds. `store last` are stores from registers, in the last. In a `paired` cluster what brings tiles
//! and what reads them stand in turn, so that neither fills its queue while the other's is empty.

use tilewright_ir::MicroKind;

use super::{RoundCluster, RoundEntry, RoundsText};
use crate::optimize::common::inject_software_pipeline::arrangement::{Cluster, Entry, Part};
use crate::optimize::common::inject_software_pipeline::pieces::Piece;
use crate::optimize::common::inject_software_pipeline::schedules::{Question, Why};
use crate::optimize::common::inject_software_pipeline::split::Split;
use crate::optimize::common::inject_software_pipeline::steps::Steps;

/// Into how many parts a product of one step is taken for so many rounds.
pub(super) fn split(rounds: &RoundsText, question: Question<'_>) -> Result<Split, Why> {
    let steps = Multiplies::of(question)?.steps.count;
    if steps >= rounds.least {
        return Ok(Split::NONE);
    }
    let split = Split {
        m: rounds.least.div_ceil(steps.max(1)),
        ..Split::NONE
    };
    let enough = question.splits.of(split, question.func, question.pieces);
    enough.map(|_| split).map_err(|_| {
        let (parts, most) = (split.m, rounds.least);
        let steps = match steps {
            1 => "one step".to_string(),
            n => format!("{n} steps"),
        };
        let why = format!(
            "the product has {steps} along K and no {parts} parts along M, the order is for {most} rounds or more"
        );
        why.into()
    })
}

/// The clusters of all rounds.
pub(super) fn clusters(rounds: &RoundsText, question: Question<'_>) -> Result<Vec<Cluster>, Why> {
    let work = Multiplies::of(question)?;
    let all = work.rounds();
    let mut clusters = Vec::new();
    for at in 0..all.len() {
        for written in &rounds.clusters {
            clusters.push(Cluster {
                meet: written.bar,
                priority: written.priority,
                entries: entries(written, &work, (&all, at)),
                ..Cluster::new(format!("{}{at}", written.name))
            });
        }
    }
    Ok(clusters)
}

fn entries(cluster: &RoundCluster, work: &Multiplies<'_>, round: (&[Round], usize)) -> Vec<Entry> {
    let of = |entry: &RoundEntry| work.placed(*entry, round);
    if !cluster.paired {
        return cluster.entries.iter().flat_map(of).collect();
    }
    let brings = |e: &&RoundEntry| !matches!(e, RoundEntry::Read | RoundEntry::ReadNext);
    let (brings, reads): (Vec<&RoundEntry>, Vec<&RoundEntry>) =
        cluster.entries.iter().partition(brings);
    let mut reads = reads.into_iter().flat_map(of);
    let mut entries = Vec::new();
    for entry in brings.into_iter().flat_map(of) {
        entries.push(entry);
        entries.extend(reads.next());
    }
    entries.extend(reads);
    entries
}

/// A loop that copies tiles ahead and multiplies them: copies, and the product, which comes last.
pub(in super::super) struct Multiplies<'a> {
    pieces: &'a [Piece],
    /// What brings tiles, by itself or to registers.
    pub copies: Vec<usize>,
    /// What stores tiles from registers.
    pub stores: Vec<usize>,
    /// Of the product: `s2r` of each operand, then `mma`.
    pub steps: &'a Steps,
}

/// A part of the product with the reads that are for it first.
struct Round {
    reads: Vec<Entry>,
    product: Entry,
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

    /// What stands for an entry in a round.
    fn placed(&self, entry: RoundEntry, (all, at): (&[Round], usize)) -> Vec<Entry> {
        let planned = |at: &usize| Entry::whole(*at, self.pieces[*at].distance);
        let last = at + 1 == all.len();
        match entry {
            RoundEntry::Read => all[at].reads.clone(),
            RoundEntry::ReadNext => {
                let next = all[(at + 1) % all.len()].reads.iter();
                let ahead = u32::from(last);
                next.map(|read| Entry { ahead, ..*read }).collect()
            }
            RoundEntry::Multiply => vec![all[at].product],
            RoundEntry::BringFirst if at == 0 => self.copies.iter().map(planned).collect(),
            RoundEntry::StoreLast if last => self.stores.iter().map(planned).collect(),
            RoundEntry::BringFirst | RoundEntry::StoreLast => Vec::new(),
            RoundEntry::BringSpread => {
                let early = |at: usize| self.pieces[at].distance < 2 || !self.stores.is_empty();
                let round = |nth: usize| match early(self.copies[nth]) {
                    true => 0,
                    false => nth * all.len() / self.copies.len(),
                };
                let here = (0..self.copies.len()).filter(|nth| round(*nth) == at);
                here.map(|nth| planned(&self.copies[nth])).collect()
            }
        }
    }

    /// The parts of the product in order, step by step along K.
    fn rounds(&self) -> Vec<Round> {
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
