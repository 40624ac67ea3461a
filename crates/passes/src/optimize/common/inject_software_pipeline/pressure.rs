//! How many registers an order takes of a lane, read off its steady iteration.
//!
//! The iteration is cut where nothing is moved across: at barriers, waits, and in front of products, which
//! wait for what was read for them. Between two cuts the compiler issues loads as early as it can, so all that
//! lives there lives at one time. An array lives from the first write of its values to the last read, around
//! the loop where it is read ahead.
//!
//! | what is counted | source |
//! |---|---|
//! | arrays, where they live | the statements of the iteration |
//! | elements narrower than a register, a register each until they are put together | what clang 22 makes of `ds_read_u16` and `ds_read_u8` |
//! | addresses, and bounds that iterations are compared with | [`super::addresses`] |
//! | the sums that move addresses under a condition, while loads are issued | the same |
//! | [`BESIDE`], [`COMPUTED`], [`BETWEEN`] | what clang took beyond that, in 310 random loops and orders |
//! | 256 registers beside as many accumulation registers, shared by the waves of a SIMD | [ISA3] |
//! | sums by number lie in the latter, others with what else there is | `docs/amd-waits.md` |
//!
//! Sums that are the compiler's own may lie in accumulation registers, too. Where it puts them there it
//! moves some to and fro in most loops, so these registers do not count; nor is there a loop of more sums than one
//! kind has registers that it did not spill.

use std::fmt;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::visit::{child_blocks, walk_stmts};
use tilewright_ir::{
    Buffer, Func, Kernel, Loop, LoopKind, Machine, MicroKind, MicroOp, Scope, Stmt, StmtKind, Var,
};
use tilewright_schedule::order::Step;

use super::super::effects::Effects;
use super::addresses::asked;
use super::pieces::Piece;
use super::schedules::Why;
use super::{addresses, arithmetic};

/// What clang has beside: the lane's number, indices, what comparisons need.
const BESIDE: u32 = 12;
/// What it has of a computation between its statements.
const COMPUTED: u32 = 24;
/// What is lost between runs of registers, which operands are.
const BETWEEN: u32 = 8;
/// Registers are handed out by so many ([ISA3]).
const GRANULE: u32 = 8;

/// Registers of a lane where most are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Taken {
    /// What matrix instructions add to.
    sums: u32,
    /// Whether these have accumulation registers by number (`codegen::numbered`).
    numbered: bool,
    /// Operands, what is on its way through registers, and what else is kept in arrays.
    values: u32,
    /// What says where lanes load from and store to.
    addresses: u32,
    other: u32,
    /// Those that there are, beside sums by number.
    room: u32,
    threads: u32,
}

impl Taken {
    /// Those that the compiler has to find places for.
    fn own(&self) -> u32 {
        let sums = if self.numbered { 0 } else { self.sums };
        sums + self.values + self.addresses + self.other
    }

    /// Of how many more there would have to be.
    pub fn excess(&self) -> u32 {
        self.own().saturating_sub(self.room)
    }

    /// Why they are too many, where they are.
    pub fn check(&self) -> Result<(), Why> {
        if self.excess() == 0 {
            return Ok(());
        }
        let threads = self.threads;
        Err(format!(
            "a lane would take {self}, with {threads} threads a block: more threads, a smaller tile or another \
             order take fewer"
        )
        .into())
    }
}

/// `262 of 256 registers (60 sums, 166 values, 24 addresses, 12 others)`
impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Taken {
            sums,
            values,
            addresses,
            other,
            room,
            ..
        } = self;
        let own = self.own();
        let rest = format!("{values} values, {addresses} addresses, {other} others");
        match self.numbered {
            true => write!(
                f,
                "{own} of {room} registers ({rest}) beside {sums} accumulation registers"
            ),
            false => write!(f, "{own} of {room} registers ({sums} sums, {rest})"),
        }
    }
}

/// What a statement does with an array.
#[derive(Clone, Copy)]
struct Use {
    /// The number of the place between two cuts.
    at: usize,
    reads: bool,
    writes: bool,
    /// Registers until what is loaded is put together and used, where that is to be done.
    loaded: u32,
}

/// The arrays that an iteration uses, in order.
struct Uses<'f> {
    kernel: &'f Kernel,
    turn: Var,
    of: FxHashMap<Buffer, Vec<Use>>,
    sums: FxHashSet<Buffer>,
    /// What was read of shared memory since the last cut.
    fresh: FxHashSet<Buffer>,
    at: usize,
    /// Sums that say where lanes load from in this iteration, by place.
    moved: FxHashMap<usize, u32>,
}

/// Of an iteration's steps. None where nothing is multiplied by matrix instructions that add to such registers.
pub(super) fn taken(
    func: &Func,
    (kernel, machine): (&Kernel, &Machine),
    l: &Loop,
    (list, steps): (&[Piece], &[Step]),
) -> Option<Taken> {
    let registers = machine.registers;
    if registers.accumulation == 0 {
        return None;
    }
    let mut uses = Uses::of(kernel, l.axes[0].var);
    for step in steps {
        match step {
            Step::Run(op) => uses.stmt(func, &list[*op].stmt),
            Step::Wait { .. } | Step::Barrier => uses.cut(),
            Step::Commit(_) | Step::WarpSync => {}
        }
    }
    let least = uses.sums.iter().map(|sum| words(func, *sum)).min()?;
    let places = uses.at + 1;
    let (mut sums, mut values) = (vec![0; places], vec![0; places]);
    let mut all = uses.of.values().flatten();
    let together = all.any(|used| used.loaded > 0);
    for (buffer, own) in &uses.of {
        let of = match uses.sums.contains(buffer) {
            true => &mut sums,
            false => &mut values,
        };
        add(own, words(func, *buffer), together, of);
    }
    for (at, moved) in &uses.moved {
        values[*at] += moved;
    }
    let both = sums.into_iter().zip(values);
    let (sums, values) = both.max_by_key(|(sums, values)| sums + values)?;
    let threads = kernel.num_threads();
    let blocks = kernel.attrs.min_blocks_per_sm.unwrap_or(1);
    let waves = machine.waves_on_simd(threads, blocks);
    let all = registers.per_thread / waves / GRANULE * GRANULE;
    let plain = registers.per_thread - registers.accumulation;
    let numbered = least > registers.accumulation / 2 && sums <= registers.accumulation;
    let room = match numbered {
        true => plain.min(all.saturating_sub(sums)),
        false => plain.min(all),
    };
    let computed = list.iter().any(|piece| arithmetic::cycles(&piece.stmt) > 0);
    Some(Taken {
        sums,
        numbered,
        values,
        addresses: addresses::registers(func, kernel, l, list),
        other: if computed { BESIDE + COMPUTED } else { BESIDE },
        room: room.saturating_sub(BETWEEN),
        threads,
    })
}

/// Adds the lives of an array to what is taken at each place. What is loaded anew behind the products that used
/// it is in the same registers, but where operands are put `together`: these are loaded before.
fn add(uses: &[Use], words: u32, together: bool, taken: &mut [u32]) {
    let places = taken.len();
    let fills = |at: usize| uses[at].writes && !uses[at].reads;
    let before = |at: usize| (at + uses.len() - 1) % uses.len();
    let starts: Vec<usize> = (0..uses.len())
        .filter(|at| fills(*at) && !fills(before(*at)))
        .collect();
    if starts.is_empty() {
        taken.iter_mut().for_each(|taken| *taken += words);
        return;
    }
    let mut most = vec![0; places];
    for (nth, start) in starts.iter().enumerate() {
        let next = starts.get(nth + 1).copied();
        let next = next.unwrap_or(starts[0] + uses.len());
        let of_life = (*start..next).map(|at| (at / uses.len(), uses[at % uses.len()]));
        let place = |(turn, used): (usize, Use)| turn * places + used.at;
        let mut reads = of_life.clone().filter(|(_, used)| used.reads);
        let begin = uses[*start].at;
        let first = reads.clone().next().map_or(begin, place);
        let last = reads.next_back().map_or(first, place);
        let loaded = of_life.map(|(_, used)| used.loaded).max().unwrap_or(0);
        for at in begin..=last.min(begin + places - 1) {
            let apart = at < first || first == begin;
            let here = &mut most[at % places];
            *here = match (together, apart) {
                (false, _) => words.max(*here),
                (true, true) => *here + words.max(loaded),
                (true, false) => *here + words,
            };
        }
    }
    taken
        .iter_mut()
        .zip(most)
        .for_each(|(taken, own)| *taken += own);
}

impl<'f> Uses<'f> {
    fn of(kernel: &'f Kernel, turn: Var) -> Self {
        Uses {
            kernel,
            turn,
            of: FxHashMap::default(),
            sums: FxHashSet::default(),
            fresh: FxHashSet::default(),
            at: 0,
            moved: FxHashMap::default(),
        }
    }

    fn cut(&mut self) {
        self.at += 1;
        self.fresh.clear();
    }

    fn stmt(&mut self, func: &Func, stmt: &Stmt) {
        const TURNS: u64 = 3;
        match &stmt.kind {
            StmtKind::Micro(op) => self.micro(func, op),
            StmtKind::For(l) if has_micro_ops(stmt) => {
                let trips = l
                    .axes
                    .iter()
                    .map(|axis| axis.const_trip_count().unwrap_or(TURNS));
                let turns = match l.kind {
                    LoopKind::Unroll { .. } | LoopKind::Serial => trips.product::<u64>().min(TURNS),
                    _ => 1,
                };
                for _ in 0..turns {
                    l.body.iter().for_each(|stmt| self.stmt(func, stmt));
                }
            }
            StmtKind::If { .. } if has_micro_ops(stmt) => {
                for block in child_blocks(stmt) {
                    block.iter().for_each(|stmt| self.stmt(func, stmt));
                }
            }
            _ => {
                let Effects { reads, writes, .. } = Effects::of(func, stmt);
                for buffer in reads.union(&writes) {
                    let (reads, writes) = (reads.contains(buffer), writes.contains(buffer));
                    self.note(func, *buffer, (reads, writes), 0);
                }
            }
        }
    }

    fn micro(&mut self, func: &Func, op: &MicroOp) {
        let dest = op.dest.region.buffer;
        let sources = op
            .sources
            .iter()
            .map(|source| func.root(source.region.buffer));
        let sources: Vec<Buffer> = sources.collect();
        let multiplies = op.kind == MicroKind::Mma;
        if multiplies && sources.iter().any(|source| self.fresh.contains(source)) {
            self.cut();
        }
        for source in sources {
            self.note(func, source, (true, false), 0);
        }
        if multiplies {
            self.sums.insert(func.root(dest));
        }
        let asked = op
            .pred
            .as_ref()
            .map(|pred| asked(self.kernel, self.turn, pred));
        if op.kind == MicroKind::G2r && asked.is_some_and(|asked| asked.lanes && asked.turns) {
            *self.moved.entry(self.at).or_insert(0) += op.count();
        }
        if op.kind == MicroKind::S2r {
            self.fresh.insert(func.root(dest));
        }
        let bits = op.width * func.buffers[dest].dtype.bits();
        let loads = matches!(op.kind, MicroKind::S2r | MicroKind::G2r);
        let loaded = match bits < 32 {
            _ if !loads || op.pred.is_some() => 0,
            true => words(func, dest) * 32 / bits,
            false if op.apart > 1 => words(func, dest),
            false => 0,
        };
        self.note(func, dest, (multiplies, true), loaded);
    }

    fn note(&mut self, func: &Func, buffer: Buffer, (reads, writes): (bool, bool), loaded: u32) {
        let root = func.root(buffer);
        if matches!(func.buffers[root].scope, Scope::Local | Scope::Fragment) {
            let used = Use {
                at: self.at,
                reads,
                writes,
                loaded,
            };
            self.of.entry(root).or_default().push(used);
        }
    }
}

fn has_micro_ops(stmt: &Stmt) -> bool {
    let mut found = false;
    walk_stmts(std::slice::from_ref(stmt), &mut |s| {
        found |= matches!(s.kind, StmtKind::Micro(_));
    });
    found
}

/// 32-bit registers of an array.
fn words(func: &Func, buffer: Buffer) -> u32 {
    let data = &func.buffers[buffer];
    let elements = data.const_shape().map_or(0, |shape| shape.iter().product());
    let bits = elements * i64::from(data.dtype.bits());
    u32::try_from(bits.div_euclid(32) + i64::from(bits % 32 != 0)).unwrap_or(u32::MAX)
}
