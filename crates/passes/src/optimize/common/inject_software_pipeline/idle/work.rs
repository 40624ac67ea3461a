//! What the entries of an order ask of a compute unit.

use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{Inst, MicroKind, MicroOp, StmtKind};

use super::super::arithmetic;
use super::super::arrangement::{Arrangement, Entry};
use super::super::schedules::Question;
use super::super::steps::Within;

/// Bytes a cycle that a compute unit gets of memory (`docs/amd-cycles.md`: documented, a little less on
/// gfx942).
const WIDTH: u64 = 64;

/// What a wave of each SIMD asks for, in cycles.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    /// So many matrix instructions, and what one takes.
    Multiply { count: u64, each: u64 },
    /// Of the vector unit.
    Compute(u64),
    /// Of shared memory, which hands out or takes so much.
    Access(u64),
    /// Of memory, by so many instructions.
    Bring {
        count: u32,
        cycles: u64,
        /// Whether it lands in shared memory.
        lands: bool,
    },
}

/// Of an entry.
#[derive(Clone, Debug)]
pub(super) struct Work {
    /// With where what they read or multiply belongs.
    pub tasks: Vec<(Task, Of)>,
    /// Whether its instructions stand between others.
    pub woven: bool,
    /// For so many iterations later.
    pub ahead: u32,
}

/// Where what is read or multiplied belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Of {
    piece: usize,
    step: Option<u32>,
    within: Within,
}

impl Of {
    pub fn piece(piece: usize) -> Of {
        Of {
            piece,
            step: None,
            within: Within::default(),
        }
    }

    /// Whether what is read is multiplied there.
    pub fn is_for(self, product: Of) -> bool {
        (self.piece, self.step) == (product.piece, product.step)
            && self.within.is_of(product.within)
    }
}

impl Work {
    /// Of all entries of an order.
    pub fn of(question: Question<'_>, order: &Arrangement) -> Vec<Work> {
        let clusters = order.clusters.iter();
        let entries = clusters.flat_map(|c| c.entries.iter().map(|entry| (entry, c.woven)));
        let works = entries.map(|(entry, woven)| Work::of_entry(question, entry, woven));
        works.collect()
    }

    fn of_entry(question: Question<'_>, entry: &Entry, woven: bool) -> Work {
        let machine = question.machine;
        let waves = u64::from(machine.simds.min(waves(question)).max(1));
        let piece = &question.pieces.list[entry.piece];
        let mut tasks = Vec::new();
        each_op(question, entry, &mut |op, of| {
            let count = u64::from(op.count());
            let data = &question.func.buffers[op.dest.region.buffer];
            let bits = count * u64::from(op.width) * u64::from(data.dtype.bits());
            let bytes = bits / 8 * u64::from(machine.warp_size) * waves;
            let task = match op.kind {
                MicroKind::Mma => Task::Multiply {
                    count,
                    each: instruction_cycles(question, op.inst),
                },
                MicroKind::G2s | MicroKind::G2r => Task::Bring {
                    count: op.count(),
                    cycles: bytes / WIDTH,
                    lands: op.kind == MicroKind::G2s,
                },
                MicroKind::S2r | MicroKind::R2s => {
                    Task::Access(bytes / u64::from(4 * machine.shared.banks))
                }
                MicroKind::R2g | MicroKind::TmaLoad | MicroKind::TmaStore => return,
            };
            tasks.push((task, of));
        });
        // The compiler has the operands of a whole product read before it multiplies.
        tasks.sort_by_key(|(task, _)| matches!(task, Task::Multiply { .. }));
        if piece.steps.is_none() {
            let cycles = arithmetic::cycles(&piece.stmt);
            let of = Of::piece(entry.piece);
            tasks.extend((cycles > 0).then_some((Task::Compute(cycles), of)));
        }
        Work {
            tasks,
            woven,
            ahead: entry.ahead,
        }
    }
}

/// Waves of the block.
pub(super) fn waves(question: Question<'_>) -> u32 {
    let threads = question.kernel.num_threads();
    threads.div_ceil(question.machine.warp_size)
}

/// The micro-ops that stand at a place, as often as they run.
fn each_op(question: Question<'_>, entry: &Entry, f: &mut impl FnMut(&MicroOp, Of)) {
    let piece = &question.pieces.list[entry.piece];
    let of = |step: u32, within: Within| Of {
        piece: entry.piece,
        step: Some(step),
        within,
    };
    match (entry.part, &piece.steps) {
        (Some(part), Some(steps)) => {
            f(&steps.ops[part.op], of(part.step, steps.within[part.op]));
        }
        (None, Some(steps)) => {
            for step in 0..steps.count {
                for (op, within) in steps.ops.iter().zip(&steps.within) {
                    f(op, of(step, *within));
                }
            }
        }
        _ => walk_stmts(std::slice::from_ref(&piece.stmt), &mut |stmt| {
            if let StmtKind::Micro(op) = &stmt.kind {
                f(op, Of::piece(entry.piece));
            }
        }),
    }
}

/// Cycles that a matrix instruction takes.
fn instruction_cycles(question: Question<'_>, inst: Inst) -> u64 {
    let mut known = question.machine.mma.iter();
    let facts = known.find(|m| inst == Inst::Mma(m.inst));
    facts.map_or(0, |m| m.cycles.into())
}
