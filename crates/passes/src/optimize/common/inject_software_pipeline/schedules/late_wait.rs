//! `late_wait`: the plain order with one barrier more, just before the first piece that uses what
//! waves have copied.
//!
//! The fewest barriers put the wait for a tile where its successor is not in flight yet: memory
//! idles while the waves wait. With a barrier just before the tile is read, the wait stands behind
//! the copies of the successor and leaves them in flight.

use tilewright_ir::{Buffer, Scope};
use tilewright_schedule::order::Completion;

use super::super::super::effects::Effects;
use super::super::arrangement::{Arrangement, Cluster};
use super::{Question, Why, plain};

pub(super) fn arrange(question: Question<'_>) -> Result<Arrangement, Why> {
    let pieces = &question.pieces.list;
    let effects: Vec<Effects> = pieces
        .iter()
        .map(|p| Effects::of(question.func, &p.stmt))
        .collect();
    let mut copied: Vec<Buffer> = Vec::new();
    for (piece, effects) in pieces.iter().zip(&effects) {
        if let Completion::Counted { counter, .. } = piece.completion
            && counter.most_in_flight().is_some()
        {
            copied.extend(&effects.writes);
        }
    }
    copied.retain(|b| question.func.buffers[*b].scope == Scope::Shared);
    if copied.is_empty() {
        return Err("no copy to shared memory is counted by itself".into());
    }
    let uses = |piece: usize| {
        let effects = &effects[piece];
        let used = |b: &&Buffer| effects.reads.contains(*b) && !effects.writes.contains(*b);
        copied.iter().any(|b| used(&b))
    };
    let mut clusters = Vec::new();
    let mut met = false;
    for cluster in plain::arrange(question)?.clusters {
        let first = cluster.entries.iter().position(|e| uses(e.piece));
        let Some(first) = first.filter(|_| !met) else {
            clusters.push(cluster);
            continue;
        };
        met = true;
        let (before, after) = cluster.entries.split_at(first);
        if !before.is_empty() {
            clusters.push(Cluster {
                entries: before.to_vec(),
                ..cluster.clone()
            });
        }
        clusters.push(Cluster {
            meet: true,
            entries: after.to_vec(),
            ..cluster.clone()
        });
    }
    match met {
        true => Ok(Arrangement::new(clusters)),
        false => Err("nothing in the loop reads what is copied".into()),
    }
}
