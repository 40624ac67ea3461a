//! `plain`: the planned order. What runs ahead comes first, the rest as it was written, and stores
//! of copies through registers last, unless the iteration itself needs them.

use super::super::super::effects::Effects;
use super::super::arrangement::{Arrangement, Cluster, Entry};
use super::super::pieces::Piece;
use super::{Question, Why};

pub(super) fn arrange(question: Question<'_>) -> Result<Arrangement, Why> {
    let pieces = &question.pieces.list;
    let mut clusters: Vec<Cluster> = Vec::new();
    for piece in places(question) {
        let Piece { late, distance, .. } = pieces[piece];
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
    Ok(Arrangement::new(clusters))
}

/// The pieces in order, with the late ones before the first later piece of their iteration that
/// touches what they write, or last.
fn places(question: Question<'_>) -> Vec<usize> {
    let pieces = &question.pieces.list;
    let effects = |at: usize| Effects::of(question.func, &pieces[at].stmt);
    let (late, mut placed): (Vec<usize>, Vec<usize>) =
        (0..pieces.len()).partition(|&at| pieces[at].late);
    for store in late {
        let writes = effects(store).writes;
        let needed = placed.iter().position(|&other| {
            pieces[other].distance >= pieces[store].distance
                && pieces[other].program > pieces[store].program
                && writes.iter().any(|b| effects(other).touches(*b))
        });
        placed.insert(needed.unwrap_or(placed.len()), store);
    }
    placed
}
