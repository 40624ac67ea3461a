//! Pieces in an order: a schedule's answer, and the pieces that come of it.

use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{Buffer, Func, MicroKind, Stmt, StmtKind};
use tilewright_schedule::order::Completion;

use super::super::effects::Effects;
use super::halves;
use super::idle::Iteration;
use super::need;
use super::pairs::product_cycles;
use super::pieces::{Piece, Pieces};
use super::registers::{self, Renamed, Sets};
use super::schedules::{Question, Why};
use super::split::Split;
use super::steps::{Array, Steps, Within};
use super::weave;

/// The clusters of a steady iteration.
#[derive(Clone, Debug)]
pub(super) struct Arrangement {
    pub clusters: Vec<Cluster>,
    /// Versions of what is copied beyond those that the order needs.
    pub spare: u32,
    /// Whether what runs ahead is the part of a thread of its own.
    pub producer: bool,
    /// By how many barriers the second half of the block's waves is behind the first: 0 or 1.
    pub lag: u32,
    /// The parts that products are taken into beside their steps: what entries refer to.
    pub split: Split,
}

/// How long products wait for operands in a steady iteration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Exposed {
    /// So many of them, or steps of them, do.
    Products(u32),
    /// Of the matrix units.
    Cycles(u32),
}

/// Pieces that follow each other.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    pub name: String,
    /// Whether the order asks for a barrier before it.
    pub meet: bool,
    /// Of its instructions, where waves compete to issue theirs.
    pub priority: u8,
    /// Whether the instructions of its pieces stand between each other.
    pub woven: bool,
    pub entries: Vec<Entry>,
}

impl Cluster {
    pub fn new(name: impl Into<String>) -> Cluster {
        Cluster {
            name: name.into(),
            meet: false,
            priority: 0,
            woven: false,
            entries: Vec::new(),
        }
    }
}

/// A place in the order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    /// Index into the pieces.
    pub piece: usize,
    /// Which of its parts; absent is all of it.
    pub part: Option<Part>,
    /// Iterations ahead.
    pub ahead: u32,
}

impl Entry {
    pub fn whole(piece: usize, ahead: u32) -> Entry {
        Entry {
            piece,
            part: None,
            ahead,
        }
    }
}

/// A micro-op of a step of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub step: u32,
    pub op: usize,
}

/// Pieces as they stand in a steady iteration.
pub(super) struct Realised {
    pub pieces: Pieces,
    /// The barriers that the order asks for before each.
    pub barriers: Vec<u32>,
}

impl Arrangement {
    /// Clusters whose pieces all waves run together.
    pub fn new(clusters: Vec<Cluster>) -> Arrangement {
        Arrangement {
            clusters,
            spare: 0,
            producer: false,
            lag: 0,
            split: Split::NONE,
        }
    }

    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        self.clusters.iter().flat_map(|c| c.entries.iter().copied())
    }

    /// The pieces in this order, parts as statements of their own on registers that serve the
    /// order. `func` gets those registers.
    pub fn realise(&self, question: Question<'_>, func: &mut Func) -> Result<Realised, Why> {
        self.check(question)?;
        let sets = registers::assign(question, self)?;
        let mut pieces = question.pieces.clone();
        let mut barriers = Vec::new();
        let mut issued = Vec::new();
        for (number, cluster) in self.clusters.iter().enumerate() {
            let places = 0..cluster.entries.len();
            barriers.extend(places.map(|at| u32::from(at == 0 && cluster.meet)));
            let woven = cluster.woven.then_some(number);
            issued.extend(cluster.entries.iter().map(|_| (cluster.priority, woven)));
        }
        let renamed = sets.allocate(func, &mut pieces);
        let mut as_run: Vec<Vec<Part>> = Vec::new();
        for (at, piece) in question.pieces.list.iter().enumerate() {
            let steps = piece.steps.as_deref();
            let parts = steps.map(|steps| self.as_run((question.func, at), steps, &renamed));
            as_run.push(parts.unwrap_or(Ok(Vec::new()))?);
        }
        // Places of the body have room between them for parts.
        const APART: usize = 1 << 16;
        let list = self
            .entries()
            .zip(issued)
            .map(|(entry, (priority, woven))| {
                let whole = &question.pieces.list[entry.piece];
                let program = whole.program * APART;
                let piece = Piece {
                    distance: entry.ahead,
                    priority,
                    woven,
                    program,
                    ..whole.clone()
                };
                let (Some(part), Some(steps)) = (entry.part, &whole.steps) else {
                    return piece;
                };
                let name = |array| Sets::name(&renamed, array, part.step);
                Piece {
                    stmt: steps.op(func, part.step, part.op, &name),
                    program: program
                        + match as_run[entry.piece].iter().position(|own| *own == part) {
                            Some(place) => place,
                            None => part.step as usize * steps.ops.len() + part.op,
                        },
                    completion: match whole.completion {
                        Completion::Counted {
                            counter,
                            instructions,
                        } => Completion::Counted {
                            counter,
                            instructions: instructions / steps.ops.len() as u32,
                        },
                        Completion::Sync => Completion::Sync,
                    },
                    ..piece
                }
            });
        pieces.list = list.collect();
        weave::check(func, &pieces.list)?;
        Ok(Realised { pieces, barriers })
    }

    /// The parts of a product in the order in which they run for an iteration, which is what they mean: sums
    /// of different parts of C are apart, and steps have registers of their own. None where they have not.
    fn as_run(
        &self,
        (func, piece): (&Func, usize),
        steps: &Steps,
        renamed: &Renamed,
    ) -> Result<Vec<Part>, Why> {
        let len = self.entries().count() as i64;
        let placed = self.entries().enumerate();
        let placed = placed.filter(|(_, entry)| entry.piece == piece);
        let timed = placed.filter_map(|(at, entry)| {
            let time = at as i64 - i64::from(entry.ahead) * len;
            Some((time, entry.part?))
        });
        let mut parts: Vec<(i64, Part)> = timed.collect();
        parts.sort_by_key(|(time, _)| *time);
        let op = |part: Part| &steps.ops[part.op];
        let own = |&(_, part): &(i64, Part)| match op(part).kind {
            MicroKind::Mma => true,
            MicroKind::S2r => Array::of(func, &op(part).dest)
                .is_some_and(|array| Sets::name(renamed, array, part.step).is_some()),
            _ => false,
        };
        if !parts.iter().all(own) {
            return Ok(Vec::new());
        }
        let breaks = |buffer: Buffer| -> Why {
            let name = &func.buffers[buffer].name;
            format!("its order breaks a dependence through `{name}`").into()
        };
        for (at, &(_, later)) in parts.iter().enumerate() {
            if op(later).kind != MicroKind::Mma {
                continue;
            }
            // What it multiplies is read before it.
            let used = |read: Part| {
                let array = Array::of(func, &op(read).dest);
                let mut sources = op(later).sources.iter();
                read.step == later.step && sources.any(|s| Array::of(func, s) == array)
            };
            let reads = |part: &Part| op(*part).kind == MicroKind::S2r;
            let behind = parts[at..].iter().map(|(_, part)| *part);
            if let Some(read) = behind.filter(reads).find(|read| used(*read)) {
                return Err(breaks(op(read).dest.region.buffer));
            }
            // Steps are added up in turn.
            let sum = op(later).dest.region.buffer;
            let same = |part: Part| {
                let [own, other] = [part, later].map(|p| steps.within[p.op]);
                let apart = own != other && ![own, other].contains(&Within::default());
                op(part).kind == MicroKind::Mma && op(part).dest.region.buffer == sum && !apart
            };
            let after = |part: Part| (part.step, part.op) > (later.step, later.op);
            let before = parts[..at].iter().map(|(_, part)| *part);
            if before.filter(|part| same(*part)).any(after) {
                return Err(breaks(sum));
            }
        }
        Ok(parts.into_iter().map(|(_, part)| part).collect())
    }

    /// Whether every piece has one place, itself or each of its parts, and the machine can do what
    /// the order asks for.
    fn check(&self, question: Question<'_>) -> Result<(), Why> {
        for (at, piece) in question.pieces.list.iter().enumerate() {
            let own: Vec<Entry> = self.entries().filter(|e| e.piece == at).collect();
            let twice = |e: &Entry| own.iter().filter(|o| o.part == e.part).count() > 1;
            let steps = piece.steps.as_ref();
            let parts = steps.map_or(0, |s| s.count as usize * s.ops.len());
            let opened = own.iter().filter(|e| e.part.is_some()).count();
            let whole = own.len() == 1 && opened == 0;
            let in_parts = opened > 0 && opened == own.len() && opened == parts;
            if own.iter().any(twice) || !(whole || in_parts) {
                let name = label(question.func, &piece.stmt);
                let whole = match parts {
                    0 => "",
                    _ => ", or for each part of it",
                };
                return Err(format!("it has not one place for `{name}`{whole}").into());
            }
        }
        let prioritised = self.clusters.iter().any(|c| c.priority > 0);
        if prioritised && !question.machine.wave_priority {
            return Err("the waves of this machine have no priorities".into());
        }
        match self.lag {
            0 => Ok(()),
            _ => halves::check(question),
        }
    }

    /// How long products wait for operands: in cycles where halves of a block can run apart, whose
    /// orders differ in that, else how many do.
    pub fn exposed(&self, question: Question<'_>) -> Exposed {
        match question.machine.barrier.bare {
            true => Exposed::Cycles(Iteration::asked(question, self).idle),
            false => Exposed::Products(self.waiting(question)),
        }
    }

    /// Matrix instructions of a step whose operands are read with no others between: they wait for
    /// the reads. A product that runs while the program goes on waits for the meeting of the block if
    /// no version is spare.
    fn waiting(&self, question: Question<'_>) -> u32 {
        let pieces = question.pieces;
        let entries: Vec<Entry> = self.entries().collect();
        let len = entries.len() as i64;
        let time = |at: usize| at as i64 - i64::from(entries[at].ahead) * len;
        let kind = |entry: &Entry| -> Option<MicroKind> {
            let steps = pieces.list[entry.piece].steps.as_ref()?;
            Some(steps.ops[entry.part?.op].kind)
        };
        let is_product = |at: &usize| kind(&entries[*at]) == Some(MicroKind::Mma);
        let products: Vec<usize> = (0..entries.len()).filter(is_product).collect();
        let mut exposed = 0;
        for &at in &products {
            let own = |other: &usize| {
                let (a, b) = (&entries[at], &entries[*other]);
                let step = |e: &Entry| e.part.map(|p| p.step);
                a.piece == b.piece && step(a) == step(b) && kind(b) == Some(MicroKind::S2r)
            };
            let reads = (0..entries.len()).filter(own).map(time).max();
            // The last product before this one, of this iteration or the one before.
            let others = products
                .iter()
                .map(|&p| time(p) - if p < at { 0 } else { len });
            let before = others.max().unwrap_or(i64::MIN);
            exposed += u32::from(reads.is_some_and(|read| before < read));
        }
        let in_flight = |e: &Entry| pieces.list[e.piece].is_product_in_flight();
        let waits = self.spare == 0 && !self.producer;
        exposed += u32::from(waits && entries.iter().any(in_flight));
        // Where several blocks would share a multiprocessor, waiting for the block to meet is cheaper.
        exposed += 2 * u32::from(self.producer && starves(question));
        for entry in entries.iter().filter(|e| e.part.is_none()) {
            let steps = pieces.list[entry.piece].steps.as_ref();
            let product =
                steps.filter(|s| s.of_kind(MicroKind::Mma) > 0 && s.of_kind(MicroKind::S2r) > 0);
            exposed += product.map_or(0, |s| s.count);
        }
        exposed
    }

    /// What stands at a place, as the explanations call it: `s2r A_shared[k1]`.
    pub fn label(&self, func: &Func, pieces: &Pieces, entry: Entry) -> String {
        let piece = &pieces.list[entry.piece];
        let text = match (entry.part, &piece.steps) {
            (Some(part), Some(steps)) => {
                let op = StmtKind::Micro(steps.ops[part.op].clone());
                let label = label(func, &Stmt::new(op, piece.stmt.span));
                label + &place(steps.within[part.op], steps.along_k(part.step))
            }
            _ => label(func, &piece.stmt),
        };
        match entry.ahead {
            0 => text,
            n => format!("{text} ahead {n}"),
        }
    }
}

/// A place in a product: `[m0,k1]`.
pub(super) fn place(within: Within, step: Option<u32>) -> String {
    let named = [
        ('m', within.m),
        ('n', within.n),
        ('k', step),
        ('p', within.p),
    ];
    let parts = named
        .iter()
        .filter_map(|(axis, at)| Some(format!("{axis}{}", (*at)?)));
    let parts: Vec<String> = parts.collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!("[{}]", parts.join(",")),
    }
}

/// What a statement is about: the micro-op that it is made of, or what it writes.
pub(super) fn label(func: &Func, stmt: &Stmt) -> String {
    let mut micro = None;
    walk_stmts(std::slice::from_ref(stmt), &mut |s| {
        if let StmtKind::Micro(m) = &s.kind {
            let access = match m.kind {
                MicroKind::S2r | MicroKind::G2r => m.sources.first().unwrap_or(&m.dest),
                _ => &m.dest,
            };
            let name = &func.buffers[access.region.buffer].name;
            // A product is what its reads are for.
            if micro.is_none() || m.kind == MicroKind::Mma {
                micro = Some(format!("{} {name}", m.kind.name()));
            }
        }
    });
    micro.unwrap_or_else(|| {
        let effects = Effects::of(func, stmt);
        let mut written: Vec<_> = effects.writes.iter().copied().collect();
        written.sort_unstable();
        let names = written.iter().map(|b| func.buffers[*b].name.as_str());
        format!("compute {}", names.collect::<Vec<_>>().join(", "))
    })
}

/// Whether a producer has too few versions to keep products busy, and a block is small enough that
/// others could run beside it without one.
fn starves(question: Question<'_>) -> bool {
    let Question {
        func,
        kernel,
        machine,
        pieces,
        l,
        ..
    } = question;
    let ahead = pieces.list.iter().map(|p| p.distance).max().unwrap_or(0);
    let cycles = product_cycles((kernel, machine), pieces.list.iter());
    let registers = need::registers(func) * kernel.num_threads();
    // Of a loop that is over when the loads come, the first ones are what is waited for.
    let trips = l.axes[0].const_trip_count();
    let long = trips.is_none_or(|n| n * u64::from(cycles) >= 4 * u64::from(machine.bulk_latency));
    long && ahead * cycles < machine.bulk_latency && 2 * registers <= machine.registers.file
}
