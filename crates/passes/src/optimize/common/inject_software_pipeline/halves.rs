//! Orders whose second half of the block's waves is a barrier behind the first.

use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{Buffer, Inst, MicroKind, MicroOp, Scope, StmtKind};

use super::super::effects::Effects;
use super::arrangement::{Arrangement, Cluster, Entry};
use super::schedules::{Question, Why};

/// Whether the block's waves can be such halves.
pub(super) fn check(question: Question<'_>) -> Result<(), Why> {
    let Question { func, machine, .. } = question;
    if !machine.barrier.bare {
        return Err("a barrier of this machine's blocks waits for all copies".into());
    }
    let threads = question.kernel.num_threads();
    if !threads.is_multiple_of(2 * machine.warp_size) {
        return Err(format!("{threads} threads are no two halves of whole waves").into());
    }
    // Its own barriers would be met by others of the other half.
    for piece in &question.pieces.list {
        let effects = Effects::of(func, &piece.stmt);
        let shared = |b: &&Buffer| func.buffers[**b].scope == Scope::Shared;
        let mut both = effects.writes.intersection(&effects.reads).filter(shared);
        if let Some(buffer) = both.next() {
            let name = &func.buffers[*buffer].name;
            return Err(format!("a statement of the loop writes and reads `{name}`").into());
        }
    }
    Ok(())
}

/// How often in an iteration the matrix units wait: while one half is in a cluster, the other in the
/// one before, and what both do with shared memory takes longer than what they multiply.
pub(super) fn exposed(question: Question<'_>, order: &Arrangement) -> u32 {
    let clusters = order.clusters.iter();
    let times: Vec<Time> = clusters.map(|c| Time::of(question, c)).collect();
    let before = times.iter().cycle().skip(times.len().saturating_sub(1));
    let beside = times.iter().zip(before);
    let waits = beside.filter(|(a, b)| a.shared + b.shared > a.matrix + b.matrix);
    waits.count() as u32
}

/// Cycles that the waves of a half take.
struct Time {
    /// Of the matrix unit of each SIMD.
    matrix: u64,
    /// Of shared memory, where no bank is asked for twice.
    shared: u64,
}

impl Time {
    fn of(question: Question<'_>, cluster: &Cluster) -> Time {
        let machine = question.machine;
        let threads = u64::from(question.kernel.num_threads() / 2);
        let waves = threads.div_ceil(u64::from(machine.warp_size));
        let on_a_simd = waves.div_ceil(u64::from(machine.simds));
        let (mut matrix, mut bits) = (0, 0);
        for entry in &cluster.entries {
            each_op(question, entry, &mut |op, times| {
                let count = times * u64::from(op.count());
                let width = u64::from(op.width);
                match op.kind {
                    MicroKind::Mma => matrix += count * cycles(question, op.inst) * on_a_simd,
                    MicroKind::S2r | MicroKind::R2s => {
                        let data = &question.func.buffers[op.dest.region.buffer];
                        bits += count * width * u64::from(data.dtype.bits()) * threads;
                    }
                    _ => {}
                }
            });
        }
        Time {
            matrix,
            shared: bits / 8 / u64::from(4 * machine.shared.banks),
        }
    }
}

/// The micro-ops that stand at a place, and how often each runs.
fn each_op(question: Question<'_>, entry: &Entry, f: &mut impl FnMut(&MicroOp, u64)) {
    let piece = &question.pieces.list[entry.piece];
    match (entry.part, &piece.steps) {
        (Some(part), Some(steps)) => f(&steps.ops[part.op], 1),
        (None, Some(steps)) => steps.ops.iter().for_each(|op| f(op, steps.count.into())),
        _ => walk_stmts(std::slice::from_ref(&piece.stmt), &mut |stmt| {
            if let StmtKind::Micro(op) = &stmt.kind {
                f(op, 1);
            }
        }),
    }
}

/// Cycles that a matrix instruction takes.
fn cycles(question: Question<'_>, inst: Inst) -> u64 {
    let mut known = question.machine.mma.iter();
    let facts = known.find(|m| inst == Inst::Mma(m.inst));
    facts.map_or(0, |m| m.cycles.into())
}
