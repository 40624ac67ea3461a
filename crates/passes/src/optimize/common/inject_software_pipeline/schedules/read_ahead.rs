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

use tilewright_ir::MicroKind;

use super::super::arrangement::{Arrangement, Cluster, Entry, Part};
use super::{Question, Why};

pub(super) fn arrange(question: Question<'_>) -> Result<Arrangement, Why> {
    if question.machine.shared.counter.is_some() {
        return Err(
            "reads of shared memory are counted, and those ahead would be in flight at the \
             loop's ends"
                .into(),
        );
    }
    let pieces = &question.pieces.list;
    let Some((product, copies)) = pieces.split_last() else {
        return Err("the loop is empty".into());
    };
    if copies.iter().chain([product]).any(|p| p.late) {
        return Err("copies go through registers".into());
    }
    if copies.is_empty() || !copies.iter().all(|c| c.distance > product.distance) {
        return Err("the loop does more than copy ahead and multiply".into());
    }
    let steps = product.steps.as_ref().filter(|s| {
        let (reads, products) = (s.of_kind(MicroKind::S2r), s.of_kind(MicroKind::Mma));
        let last = s.ops.last().is_some_and(|m| m.kind == MicroKind::Mma);
        products == 1 && reads > 0 && reads + products == s.ops.len() && last
    });
    let Some(steps) = steps.filter(|_| product.distance == 0) else {
        return Err("its last statement is no product of tiles in shared memory".into());
    };
    if steps.count < 2 {
        return Err("the product has one step along K".into());
    }
    let at = copies.len();
    let last = steps.ops.len() - 1;
    let clusters = (0..steps.count).map(|step| {
        let next = (step + 1) % steps.count;
        let mut cluster = Cluster::new(format!("c{step}"));
        let part = |step, op| Some(Part { step, op });
        for op in 0..last {
            cluster.entries.push(Entry {
                piece: at,
                part: part(next, op),
                ahead: u32::from(next == 0),
            });
        }
        if step == 0 {
            let copies = copies.iter().enumerate();
            let copies = copies.map(|(piece, copy)| Entry::whole(piece, copy.distance));
            cluster.entries.extend(copies);
        }
        cluster.entries.push(Entry {
            piece: at,
            part: part(step, last),
            ahead: 0,
        });
        cluster
    });
    Ok(Arrangement {
        spare: 0,
        clusters: clusters.collect(),
        producer: false,
    })
}
