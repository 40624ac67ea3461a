//! What a wave issues in a steady iteration.

use rustc_hash::FxHashSet;
use tilewright_ir::visit::{child_blocks, walk_stmts};
use tilewright_ir::{Buffer, Inst, MicroKind, MicroOp, Stmt, StmtKind};
use tilewright_schedule::order::{Served, Step};

use super::super::super::effects::Effects;
use super::super::arithmetic;
use super::super::arrangement::{Arrangement, Entry};
use super::super::schedules::Question;
use super::super::weave;

/// Instructions in order, of which the last is followed by the first.
pub(super) struct Program {
    pub instructions: Vec<Instruction>,
    /// What matrix instructions wait for.
    pub needs: Vec<Need>,
    /// Reads that are waited for by themselves.
    pub reads: u32,
    /// The most iterations that anything runs ahead.
    pub ahead: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Instruction {
    /// Until reads are there: `first .. end` of the needs.
    Await {
        first: u32,
        end: u32,
    },
    Multiply {
        cycles: u32,
    },
    /// Of the vector unit, on sums of products or not.
    Compute {
        cycles: u32,
        of_sums: bool,
    },
    /// Of shared memory, as one of those that are waited for together.
    Read {
        bytes: u32,
        of: u32,
    },
    Write {
        bytes: u32,
        of: u32,
    },
    /// Of memory: to registers, or where it lands in shared memory.
    Load {
        bytes: u32,
        lands: bool,
    },
    /// Of the scalar unit, which no other wave waits for.
    Scalar,
    Priority(u8),
    /// Until so many loads at most are under way.
    Wait {
        at_most: u32,
    },
    Barrier,
}

/// Reads of this iteration or one before.
#[derive(Clone, Copy)]
pub(super) struct Need {
    pub of: u32,
    pub back: u32,
}

/// Instructions that say where a copy of a wave comes from and goes to: two sums, a move to `m0`.
const COPY_SCALARS: usize = 3;
/// Times that a loop with accesses to memory in the body of the pipelined one is looked at.
const TRIPS: u64 = 64;
/// Instructions that arithmetic is at most: what is longer are longer ones.
const COMPUTED: u64 = 256;

impl Program {
    /// The steps of an iteration, and what its barriers are for.
    pub fn of(
        question: Question<'_>,
        order: &Arrangement,
        (steps, served): (&[Step], &[Served]),
    ) -> Program {
        let entries: Vec<Entry> = order.entries().collect();
        let mut clusters = Vec::new();
        for (number, cluster) in order.clusters.iter().enumerate() {
            clusters.extend(cluster.entries.iter().map(|_| number));
        }
        let mut writer = Writer {
            question,
            sums: sums(question),
            program: Program {
                instructions: Vec::new(),
                needs: Vec::new(),
                reads: entries.len() as u32,
                ahead: entries.iter().map(|e| e.ahead).max().unwrap_or(0),
            },
            issued: vec![false; entries.len()],
            entries,
            out: Vec::new(),
            at: 0,
        };
        let mut priority = 0;
        let mut woven: Option<(usize, Vec<Vec<Instruction>>)> = None;
        for (number, step) in steps.iter().enumerate() {
            let cluster = match step {
                Step::Run(at) => clusters.get(*at).copied(),
                _ => None,
            };
            if let Some((_, strands)) = woven.take_if(|(of, _)| Some(*of) != cluster) {
                writer.program.instructions.extend(weave::spread(strands));
            }
            if cluster.is_none() && priority > 0 {
                priority = 0;
                writer.program.instructions.push(Instruction::Priority(0));
            }
            match step {
                Step::Run(at) => {
                    let Some(number) = cluster else { continue };
                    let cluster = &order.clusters[number];
                    if cluster.priority != priority {
                        priority = cluster.priority;
                        let set = Instruction::Priority(priority);
                        writer.program.instructions.push(set);
                    }
                    writer.entry(*at);
                    let own = std::mem::take(&mut writer.out);
                    if !cluster.woven {
                        writer.program.instructions.extend(own);
                        continue;
                    }
                    let none = || (number, vec![Vec::new(); 4]);
                    let (_, strands) = woven.get_or_insert_with(none);
                    for instruction in own {
                        strands[instruction.strand()].push(instruction);
                    }
                }
                Step::Barrier => {
                    let own = served.iter().filter(|s| s.step == number);
                    writer.hand_over(own.map(|s| s.earlier));
                    writer.program.instructions.push(Instruction::Barrier);
                }
                Step::Wait { at_most, .. } => {
                    let wait = Instruction::Wait { at_most: *at_most };
                    writer.program.instructions.push(wait);
                }
                Step::Commit(_) | Step::WarpSync => {}
            }
        }
        if let Some((_, strands)) = woven {
            writer.program.instructions.extend(weave::spread(strands));
        }
        writer.program
    }
}

impl Instruction {
    /// Which of the strands of a woven cluster it is of.
    fn strand(self) -> usize {
        match self {
            Instruction::Multiply { .. } | Instruction::Await { .. } => 0,
            Instruction::Read { .. } | Instruction::Write { .. } => 1,
            Instruction::Load { .. } => 2,
            _ => 3,
        }
    }
}

/// Writes the instructions of entries.
struct Writer<'a> {
    question: Question<'a>,
    entries: Vec<Entry>,
    /// What products are added up in.
    sums: FxHashSet<Buffer>,
    program: Program,
    out: Vec<Instruction>,
    /// The entry whose instructions are written, and those that were in this iteration.
    at: u32,
    issued: Vec<bool>,
}

impl Writer<'_> {
    /// What others overwrite or read behind a barrier is read and stored before it.
    fn hand_over(&mut self, earlier: impl Iterator<Item = usize>) {
        let first = self.program.needs.len();
        for at in earlier {
            let entry = self.entries[at];
            let piece = &self.question.pieces.list[entry.piece];
            let op = entry.part.zip(piece.steps.as_ref());
            let reads = op.is_some_and(|(part, steps)| steps.ops[part.op].kind == MicroKind::S2r);
            if reads || piece.late {
                self.program.needs.push(Need {
                    of: at as u32,
                    back: u32::from(!self.issued[at]),
                });
            }
        }
        let (first, end) = (first as u32, self.program.needs.len() as u32);
        let wait = (end > first).then_some(Instruction::Await { first, end });
        self.program.instructions.extend(wait);
    }

    fn entry(&mut self, at: usize) {
        self.at = at as u32;
        self.issued[at] = true;
        let entry = self.entries[at];
        let question = self.question;
        let piece = &question.pieces.list[entry.piece];
        match (entry.part, &piece.steps) {
            (Some(part), Some(steps)) => {
                let own = steps.within[part.op];
                let first = self.program.needs.len();
                for (other, read) in self.entries.iter().enumerate() {
                    let Some(of) = read.part.filter(|_| read.piece == entry.piece) else {
                        continue;
                    };
                    let is_read = steps.ops[of.op].kind == MicroKind::S2r;
                    if is_read && of.step == part.step && steps.within[of.op].is_of(own) {
                        self.program.needs.push(Need {
                            of: other as u32,
                            back: read.ahead.saturating_sub(entry.ahead),
                        });
                    }
                }
                self.op(&steps.ops[part.op], at as u32, first);
            }
            (None, Some(steps)) => {
                for _ in 0..steps.count {
                    self.group(steps.ops.iter());
                }
            }
            _ => self.stmt(&piece.stmt),
        }
    }

    /// Ops of which products need all reads before them.
    fn group<'b>(&mut self, ops: impl Iterator<Item = &'b MicroOp>) {
        let first = self.program.needs.len();
        ops.for_each(|op| self.of_group(op, first));
    }

    /// One of them; what the group reads are the needs from `first` on.
    fn of_group(&mut self, op: &MicroOp, first: usize) {
        let of = self.program.reads;
        if op.kind == MicroKind::S2r {
            self.program.reads += 1;
            self.program.needs.push(Need { of, back: 0 });
        }
        self.op(op, of, first);
    }

    /// The instructions of an op: reads are `of` those that are waited for together, products wait for the
    /// needs from `first` on.
    fn op(&mut self, op: &MicroOp, of: u32, first: usize) {
        let end = self.program.needs.len() as u32;
        let bytes = self.bytes(op);
        let before = match op.kind {
            MicroKind::Mma => Some(Instruction::Await {
                first: first as u32,
                end,
            }),
            // Where the version of the tile begins.
            MicroKind::S2r => Some(Instruction::Compute {
                cycles: arithmetic::PLAIN as u32,
                of_sums: false,
            }),
            _ => None,
        };
        self.out.extend(before.filter(|_| op.count() > 0));
        for _ in 0..op.count() {
            let scalars = match op.kind {
                MicroKind::G2s => COPY_SCALARS,
                _ => 0,
            };
            self.out
                .extend(std::iter::repeat_n(Instruction::Scalar, scalars));
            self.out.push(match op.kind {
                MicroKind::Mma => Instruction::Multiply {
                    cycles: self.instruction_cycles(op.inst),
                },
                MicroKind::S2r => Instruction::Read { bytes, of },
                MicroKind::R2s => Instruction::Write { bytes, of: self.at },
                MicroKind::G2s => Instruction::Load { bytes, lands: true },
                MicroKind::G2r => Instruction::Load {
                    bytes,
                    lands: false,
                },
                MicroKind::R2g | MicroKind::TmaLoad | MicroKind::TmaStore => continue,
            });
        }
    }

    /// What has no parts.
    fn stmt(&mut self, stmt: &Stmt) {
        let mut micro = false;
        walk_stmts(std::slice::from_ref(stmt), &mut |s| {
            micro |= matches!(s.kind, StmtKind::Micro(_));
        });
        if !micro {
            return self.compute(stmt);
        }
        if let StmtKind::Micro(op) = &stmt.kind {
            return self.group(std::iter::once(op));
        }
        let trips = match &stmt.kind {
            StmtKind::For(l) => {
                let trips = l.axes.iter().map(|a| a.const_trip_count().unwrap_or(1));
                trips.product::<u64>().min(TRIPS)
            }
            _ => 1,
        };
        for _ in 0..trips {
            let first = self.program.needs.len();
            for inner in child_blocks(stmt).into_iter().flatten() {
                match &inner.kind {
                    StmtKind::Micro(op) => self.of_group(op, first),
                    _ => self.stmt(inner),
                }
            }
        }
    }

    fn compute(&mut self, stmt: &Stmt) {
        let cycles = arithmetic::cycles(stmt);
        let each = arithmetic::PLAIN.max(cycles / COMPUTED);
        let effects = Effects::of(self.question.func, stmt);
        let of_sums = effects.reads.iter().any(|b| self.sums.contains(b));
        let instruction = Instruction::Compute {
            cycles: each as u32,
            of_sums,
        };
        let count = (cycles / each) as usize;
        self.out.extend(std::iter::repeat_n(instruction, count));
    }

    /// What an instruction of a wave moves.
    fn bytes(&self, op: &MicroOp) -> u32 {
        let data = &self.question.func.buffers[op.dest.region.buffer];
        op.width * data.dtype.bits() * self.question.machine.warp_size / 8
    }

    /// Cycles that a matrix instruction takes.
    fn instruction_cycles(&self, inst: Inst) -> u32 {
        let mut known = self.question.machine.mma.iter();
        let facts = known.find(|m| inst == Inst::Mma(m.inst));
        facts.map_or(0, |m| m.cycles)
    }
}

/// The buffers that products of the loop are added up in.
fn sums(question: Question<'_>) -> FxHashSet<Buffer> {
    let mut sums = FxHashSet::default();
    for piece in &question.pieces.list {
        walk_stmts(std::slice::from_ref(&piece.stmt), &mut |stmt| {
            if let StmtKind::Micro(op) = &stmt.kind
                && op.kind == MicroKind::Mma
            {
                sums.insert(op.dest.region.buffer);
            }
        });
    }
    sums
}
