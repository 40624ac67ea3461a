//! `read_ahead`: operands of a product read one step ahead of the matrix instructions that use them.
//!
//! A loop whose only work beside copies is one product spends its time between reads of shared
//! memory and the matrix instructions that wait for them. In its steps along K, the reads of a step
//! run beside the instructions of the step before, and those of the first step beside the last
//! instructions of the iteration before: they are one iteration ahead.
//!
//! ```text
//! c0: s2r A[k1], B[k1]; copies; mma C[k0]
//! c1: s2r A[k2], B[k2]; mma C[k1]
//! c2: s2r A[k3], B[k3]; mma C[k2]
//! c3: s2r A[k0] ahead 1, B[k0] ahead 1; mma C[k3]
//! ```

use super::super::arrangement::{Arrangement, Cluster, Entry};
use super::multiplies::Multiplies;
use super::{Question, Why};

pub(super) fn arrange(question: Question<'_>) -> Result<Arrangement, Why> {
    if question.machine.shared.counter.is_some() {
        return Err(
            "reads of shared memory are counted, and those ahead would be in flight at the \
             loop's ends"
                .into(),
        );
    }
    let work = Multiplies::of(question)?;
    if !work.stores.is_empty() {
        return Err("copies go through registers".into());
    }
    let rounds = work.rounds();
    if rounds.len() < 2 {
        return Err("the product has one step along K".into());
    }
    let clusters = rounds.iter().enumerate().map(|(at, round)| {
        let next = (at + 1) % rounds.len();
        let mut cluster = Cluster::new(format!("c{at}"));
        let ahead = u32::from(next == 0);
        let reads = rounds[next].reads.iter();
        cluster
            .entries
            .extend(reads.map(|read| Entry { ahead, ..*read }));
        if at == 0 {
            let copies = work.copies.iter();
            cluster.entries.extend(copies.map(|at| work.copy(*at)));
        }
        cluster.entries.push(round.product);
        cluster
    });
    Ok(Arrangement::new(clusters.collect()))
}
