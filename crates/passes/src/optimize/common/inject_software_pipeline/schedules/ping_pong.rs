//! `ping_pong`: one half of the block's waves reads operands while the other multiplies.
//!
//! Waves of a SIMD share its matrix unit. Where all of them read a step's operands and then
//! multiply, the unit idles while they read. Here the product is taken into its steps along K (where
//! there is one, into two halves along M), each a cluster of reads and a cluster of matrix instructions with a barrier between, and the second
//! half of the waves, which has a wave on each SIMD beside one of the first, is one cluster behind:
//! the halves change places at each barrier. Matrix instructions come first where both have
//! something to issue.
//!
//! ```text
//! r0:        g2s A ahead 1; s2r A[k0]; g2s B ahead 1; s2r B[k0]
//! m0 prio 1: mma C[k0]
//! r1:        s2r A[k1]; s2r B[k1]
//! m1 prio 1: mma C[k1]
//! ```
//!
//! Copies that run one iteration ahead come with the first reads, so that the most time is left
//! until they are waited for, two barriers before they are read; where they run further ahead, all
//! reads have some beside them. Copies through registers are loaded with the first reads and stored
//! with the last.

use tilewright_schedule::order::Completion;

use super::super::arrangement::{Arrangement, Cluster, Entry};
use super::super::split::Split;
use super::multiplies::Multiplies;
use super::{Question, Why};

pub(super) fn arrange(question: Question<'_>) -> Result<Arrangement, Why> {
    let machine = question.machine;
    if !machine.barrier.bare {
        return Err("the block has no barrier that leaves copies in flight".into());
    }
    let threads = question.kernel.num_threads();
    let pairs = 2 * machine.simds * machine.warp_size;
    if !threads.is_multiple_of(pairs) {
        return Err(format!(
            "a block of {threads} threads has no two halves with waves on all SIMDs; one of {pairs} has"
        )
        .into());
    }
    let whole = Multiplies::of(question)?;
    let in_flight = |at: &usize| matches!(whole.piece(*at).completion, Completion::Counted { .. });
    if !whole.copies.iter().all(in_flight) {
        return Err("a copy is done before the program goes on".into());
    }
    // What is copied or stored in the only round would be waited for at once.
    let split = match whole.steps.count {
        1 => HALVES,
        _ => Split::NONE,
    };
    let pieces = split.of(question.func, question.pieces).map_err(|_| {
        "the product has one step along K and no two halves along M, so what is copied would be \
         waited for at once"
    })?;
    let work = Multiplies::of(Question {
        pieces: &pieces,
        ..question
    })?;
    let rounds = work.rounds();
    let mut clusters = Vec::new();
    for (at, round) in rounds.iter().enumerate() {
        let mut reads = cluster("r", at, 0);
        reads.entries = woven(brought_beside(&work, (at, rounds.len())), &round.reads);
        let mut products = cluster("m", at, 1);
        products.entries = vec![round.product];
        clusters.extend([reads, products]);
    }
    Ok(Arrangement {
        lag: 1,
        split,
        ..Arrangement::new(clusters)
    })
}

/// A product of one step in two rounds.
const HALVES: Split = Split {
    m: 2,
    ..Split::NONE
};

fn cluster(name: &str, round: usize, priority: u8) -> Cluster {
    Cluster {
        meet: true,
        priority,
        ..Cluster::new(format!("{name}{round}"))
    }
}

/// The copies that are issued with the reads of a round.
fn brought_beside(work: &Multiplies<'_>, (round, rounds): (usize, usize)) -> Vec<Entry> {
    let all = work.copies.len();
    let early = |at: usize| work.piece(at).distance < 2 || !work.stores.is_empty();
    let place = |nth: usize| match early(work.copies[nth]) {
        true => 0,
        false => nth * rounds / all,
    };
    let here = (0..all).filter(|&nth| place(nth) == round);
    let mut brought: Vec<usize> = here.map(|nth| work.copies[nth]).collect();
    if round + 1 == rounds {
        brought.extend(&work.stores);
    }
    brought.into_iter().map(|at| work.copy(at)).collect()
}

/// Copies and reads in turn: neither fills its queue while the other's is empty.
fn woven(copies: Vec<Entry>, reads: &[Entry]) -> Vec<Entry> {
    let mut reads = reads.iter().copied();
    let mut entries = Vec::new();
    for copy in copies {
        entries.push(copy);
        entries.extend(reads.next());
    }
    entries.extend(reads);
    entries
}
