//! How long matrix units wait, read off an order.
//!
//! Shared memory hands out so many bytes a cycle, one read after another, each some time after it was
//! asked; the matrix units of all SIMDs multiply, one instruction after another; a wave issues in order,
//! so what stands behind matrix instructions is issued when the last of them is, and where a SIMD has
//! several waves, one reads or computes while another multiplies. Halves of a block a
//! barrier apart are in neighbouring phases and share shared memory, and where each SIMD has waves of both
//! its units. What is copied passes memory's width, one copy
//! after another, and is there some time later; it is waited for at the barrier before it is read. No bank
//! is asked twice, and memory serves nobody else: this ranks orders, it is no time.

use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{Buffer, Inst, MicroKind, MicroOp, StmtKind};
use tilewright_schedule::order::{Schedule, Step};

use super::super::effects::Effects;
use super::arithmetic;
use super::arrangement::{Arrangement, Entry};
use super::schedules::Question;

/// Cycles until what a copy asks for is there, where caches have it (`docs/amd-cycles.md`: the lower end
/// of what was measured).
const COPY: u64 = 500;
/// Bytes a cycle that a compute unit gets of memory (the same: documented, a little less on gfx942).
const WIDTH: u64 = 64;
/// For so long what memory was asked for waits in its queue; what is issued behind more than that waits too
/// (the same: ten instructions of 1 KiB).
const QUEUE: u64 = 160;
/// Until what is read of shared memory is there (the same: measured).
const READ: u64 = 64;
/// From the last wave's arrival at a barrier until all issue again.
const BARRIER: u64 = 32;

/// What an iteration takes.
#[derive(Clone, Copy)]
pub(super) struct Iteration {
    /// Cycles in which the matrix units have nothing to do.
    pub idle: u32,
    /// Whether it is as long as copies take, so that a wait for all that were issued an iteration ago
    /// is for nothing.
    pub hides_copies: bool,
}

impl Iteration {
    /// With the barriers that the order asks for: with those that it needs beside them it takes longer.
    pub fn asked(question: Question<'_>, order: &Arrangement) -> Iteration {
        let mut phases: Vec<Vec<Entry>> = Vec::new();
        for cluster in &order.clusters {
            match phases.last_mut().filter(|_| !cluster.meet) {
                Some(phase) => phase.extend(&cluster.entries),
                None => phases.push(cluster.entries.clone()),
            }
        }
        Iteration::of(question, order, phases, true)
    }

    /// With all barriers of its steady iteration.
    pub fn derived(question: Question<'_>, order: &Arrangement, schedule: &Schedule) -> Iteration {
        let entries: Vec<Entry> = order.entries().collect();
        let mut phases: Vec<Vec<Entry>> = vec![Vec::new()];
        let mut meets = false;
        for step in &schedule.steady.steps {
            match step {
                Step::Barrier => {
                    meets = true;
                    phases.push(Vec::new());
                }
                Step::Run(op) => phases.iter_mut().last().into_iter().for_each(|phase| {
                    phase.extend(entries.get(*op));
                }),
                _ => {}
            }
        }
        if phases.len() > 1 && phases[0].is_empty() {
            phases.remove(0);
        }
        Iteration::of(question, order, phases, meets)
    }

    fn of(
        question: Question<'_>,
        order: &Arrangement,
        phases: Vec<Vec<Entry>>,
        meets: bool,
    ) -> Iteration {
        let threads = question.kernel.num_threads();
        let placed = match order.lag {
            0 => alone(question, threads, &phases, meets),
            _ => beside(question, threads / 2, &phases),
        };
        let took = placed.took + placed.late(question, order);
        // Where nothing is multiplied, matrix units that idle say nothing of the order.
        let idle = match placed.busy {
            0 => 0,
            busy => took.saturating_sub(busy),
        };
        Iteration {
            idle: u32::try_from(idle).unwrap_or(u32::MAX),
            hides_copies: placed.took >= COPY,
        }
    }
}

/// An iteration with the time of each of its entries.
struct Placed {
    took: u64,
    /// For so long the matrix units multiply.
    busy: u64,
    /// When each is issued, and when memory is through with what it asks for.
    issued: Vec<u64>,
    asked: Vec<u64>,
    /// Where what each entry reads is waited for: where its phase begins; of halves a barrier apart, the
    /// phase before; where nobody meets, the entry itself.
    waits: Vec<i64>,
}

/// All waves together.
fn alone(question: Question<'_>, threads: u32, phases: &[Vec<Entry>], meets: bool) -> Placed {
    let entries: Vec<Entry> = phases.iter().flatten().copied().collect();
    let time = Time::of(question, threads, &entries);
    let mut waits: Vec<i64> = Vec::new();
    for phase in phases {
        let begin = time.issued.get(waits.len()).map_or(0, |at| *at as i64);
        waits.extend(phase.iter().map(|_| begin));
    }
    if !meets {
        // Waves that read what they copied themselves wait where they read.
        waits = time.issued.iter().map(|at| *at as i64).collect();
    }
    Placed {
        took: (time.end + BARRIER * phases.len() as u64).max(time.memory),
        busy: time.matrix,
        waits,
        issued: time.issued,
        asked: time.asked,
    }
}

/// Halves, one in the phase that the other has left.
fn beside(question: Question<'_>, threads: u32, phases: &[Vec<Entry>]) -> Placed {
    let times = phases.iter().map(|p| Time::of(question, threads, p));
    let times: Vec<Time> = times.collect();
    let before = times.iter().cycle().skip(times.len().saturating_sub(1));
    let machine = question.machine;
    let together = 2 * threads > machine.simds * machine.warp_size;
    let (mut busy, mut begin, mut memory) = (0, 0, 0);
    let mut begins = Vec::new();
    for (a, b) in times.iter().zip(before) {
        memory += a.memory + b.memory;
        let shared = a.shared + b.shared;
        // Of a SIMD, which has waves of both halves or of one.
        let (matrix, vector) = match together {
            true => (a.matrix + b.matrix, a.vector + b.vector),
            false => (a.matrix, a.vector),
        };
        begins.push(begin);
        begin += BARRIER + a.end.max(b.end).max(matrix).max(vector).max(shared);
        busy += matrix;
    }
    let mut placed = Placed {
        took: begin.max(memory),
        busy,
        issued: Vec::new(),
        asked: Vec::new(),
        waits: Vec::new(),
    };
    for (phase, (entries, time)) in phases.iter().zip(&times).enumerate() {
        let wait = match phase.checked_sub(1) {
            Some(before) => begins[before] as i64,
            None => begins.last().map_or(0, |last| *last as i64 - begin as i64),
        };
        let within = |at: &u64| begins[phase] + at;
        placed.issued.extend(time.issued.iter().map(within));
        placed.asked.extend(time.asked.iter().map(within));
        placed.waits.extend(entries.iter().map(|_| wait));
    }
    placed
}

impl Placed {
    /// How much longer than the iteration the latest copy takes: from where it is issued to where it is
    /// waited for, that is before the store from its registers, or the first read of its tile.
    fn late(&self, question: Question<'_>, order: &Arrangement) -> u64 {
        let entries: Vec<Entry> = order.entries().collect();
        let list = &question.pieces.list;
        let took = self.took as i64;
        let effects = |entry: &Entry| Effects::of(question.func, &list[entry.piece].stmt);
        let mut late = 0;
        for (at, entry) in entries.iter().enumerate() {
            let piece = &list[entry.piece];
            if entry.ahead == 0 || piece.late || !brings(question, entry) {
                continue;
            }
            let written: Vec<Buffer> = effects(entry).writes.into_iter().collect();
            let needs = |other: &Entry| {
                other.piece != entry.piece
                    && written.iter().any(|b| effects(other).reads.contains(b))
                    && !is_product(question, other)
            };
            let needed = entries.iter().enumerate().filter(|(_, other)| needs(other));
            let given = needed.map(|(other, of)| {
                let stored = list[of.piece].late;
                let waited = if stored {
                    self.issued[other] as i64
                } else {
                    self.waits[other]
                };
                let iterations = i64::from(entry.ahead) - i64::from(of.ahead);
                iterations * took + waited - self.asked[at] as i64
            });
            let given = given.min().unwrap_or(took);
            late = late.max(COPY as i64 - given);
        }
        late.max(0) as u64
    }
}

/// Whether an entry asks memory for something.
fn brings(question: Question<'_>, entry: &Entry) -> bool {
    let mut brings = false;
    each_op(question, entry, &mut |op, _| {
        brings |= matches!(op.kind, MicroKind::G2s | MicroKind::G2r);
    });
    brings
}

/// Whether an entry is matrix instructions alone, which read registers.
fn is_product(question: Question<'_>, entry: &Entry) -> bool {
    let steps = question.pieces.list[entry.piece].steps.as_ref();
    let op = entry
        .part
        .zip(steps)
        .map(|(part, steps)| &steps.ops[part.op]);
    op.is_some_and(|op| op.kind == MicroKind::Mma)
}

/// What some waves take for entries in order, with nobody beside them.
struct Time {
    /// Of the matrix unit of each SIMD.
    matrix: u64,
    /// Of its vector unit.
    vector: u64,
    /// Of shared memory.
    shared: u64,
    /// Of memory.
    memory: u64,
    /// When each entry is issued, and when memory is through with what it asks for.
    issued: Vec<u64>,
    asked: Vec<u64>,
    end: u64,
}

impl Time {
    fn of(question: Question<'_>, threads: u32, entries: &[Entry]) -> Time {
        let machine = question.machine;
        let waves = threads.div_ceil(machine.warp_size);
        let on_a_simd = u64::from(waves.div_ceil(machine.simds)).max(1);
        let (mut matrix, mut vector, mut shared, mut memory) = (0, 0, 0, 0);
        // When the matrix unit, the vector unit, shared memory and memory are through with what was issued.
        let (mut multiplied, mut computed, mut handed, mut brought) = (0u64, 0u64, 0u64, 0u64);
        // Until when each wave of a SIMD has issued what it multiplies and computes: they take turns.
        let mut clocks = vec![0u64; on_a_simd as usize];
        let mut reads: Vec<Read> = Vec::new();
        // What all waves read before they multiply again, each for itself: of what, cycles, from when on.
        let mut wanted: Vec<(Of, u64, u64)> = Vec::new();
        let (mut issued, mut asked) = (Vec::new(), Vec::new());
        for entry in entries {
            let queued = |brought: u64| brought.saturating_sub(QUEUE);
            issued.push(last(&clocks).max(queued(brought)));
            let of = (entry.piece, entry.part.map(|p| p.step), entry.ahead);
            each_op(question, entry, &mut |op, times| {
                let count = times * u64::from(op.count());
                match op.kind {
                    MicroKind::Mma => {
                        let cycles = count * instruction_cycles(question, op.inst);
                        matrix += cycles * on_a_simd;
                        hand_out(&mut wanted, &clocks, &mut handed, &mut reads);
                        for (wave, clock) in clocks.iter_mut().enumerate() {
                            let own = reads.iter().filter(|r| r.of == of && r.wave == wave);
                            let ready = own.map(|r| r.ready).max().unwrap_or(0);
                            multiplied = multiplied.max(*clock).max(ready) + cycles;
                            *clock = multiplied;
                        }
                    }
                    MicroKind::G2s | MicroKind::G2r => {
                        let cycles = bytes(question, op, count, threads) / WIDTH;
                        brought = brought.max(last(&clocks)) + cycles;
                        memory += cycles;
                    }
                    MicroKind::S2r | MicroKind::R2s => {
                        let bytes = bytes(question, op, count, threads);
                        let cycles = bytes / u64::from(4 * machine.shared.banks);
                        shared += cycles;
                        wanted.push((of, cycles / on_a_simd, queued(brought)));
                    }
                    _ => {}
                }
            });
            let piece = &question.pieces.list[entry.piece];
            if piece.steps.is_none() {
                let cycles = arithmetic::cycles(&piece.stmt);
                vector += cycles * on_a_simd;
                for clock in clocks.iter_mut().filter(|_| cycles > 0) {
                    computed = computed.max(*clock) + cycles;
                    *clock = computed;
                }
            }
            asked.push(brought.max(last(&clocks)));
        }
        hand_out(&mut wanted, &clocks, &mut handed, &mut reads);
        let read = reads.iter().map(|r| r.ready).max().unwrap_or(0);
        Time {
            matrix,
            vector,
            shared,
            memory,
            issued,
            asked,
            end: last(&clocks).max(read),
        }
    }
}

/// Piece, step and iterations ahead.
type Of = (usize, Option<u32>, u32);

/// Shared memory serves one wave of each SIMD after the other.
fn hand_out(
    wanted: &mut Vec<(Of, u64, u64)>,
    clocks: &[u64],
    handed: &mut u64,
    reads: &mut Vec<Read>,
) {
    for (wave, clock) in clocks.iter().enumerate() {
        for &(of, cycles, from) in &*wanted {
            *handed = (*handed).max(*clock).max(from) + cycles;
            let ready = *handed + READ;
            reads.push(Read { of, wave, ready });
        }
    }
    wanted.clear();
}

/// What a wave of each SIMD reads.
struct Read {
    of: Of,
    wave: usize,
    /// When it is there.
    ready: u64,
}

fn last(clocks: &[u64]) -> u64 {
    clocks.iter().copied().max().unwrap_or(0)
}

/// What so many instructions of all threads move.
fn bytes(question: Question<'_>, op: &MicroOp, count: u64, threads: u32) -> u64 {
    let data = &question.func.buffers[op.dest.region.buffer];
    let bits = count * u64::from(op.width) * u64::from(data.dtype.bits());
    bits / 8 * u64::from(threads)
}

/// The micro-ops that stand at a place, and how often each runs.
fn each_op(question: Question<'_>, entry: &Entry, f: &mut impl FnMut(&MicroOp, u64)) {
    let piece = &question.pieces.list[entry.piece];
    match (entry.part, &piece.steps) {
        (Some(part), Some(steps)) => f(&steps.ops[part.op], 1),
        (None, Some(steps)) => {
            for _ in 0..steps.count {
                steps.ops.iter().for_each(|op| f(op, 1));
            }
        }
        _ => walk_stmts(std::slice::from_ref(&piece.stmt), &mut |stmt| {
            if let StmtKind::Micro(op) = &stmt.kind {
                f(op, 1);
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
