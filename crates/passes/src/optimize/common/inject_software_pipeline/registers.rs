//! Register arrays for parts that an order runs beside each other.
//!
//! A product's steps fill the same operand registers one after another. Where an order reads a
//! step's operands before an earlier step has used its own, the steps need arrays of their own:
//! each array is a value with a life from its first write to its last read, around the loop where
//! it is read ahead, and values whose lives do not meet share a set.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::visit_ids::stmt_buffers;
use tilewright_ir::{Buffer, Expr, Func, Kernel, Scope, Stmt, StmtKind};

use super::super::effects::Effects;
use super::arrangement::{Arrangement, Entry};
use super::need::even_share_of;
use super::pieces::Pieces;
use super::schedules::{Question, Why};
use super::steps::Array;

/// Registers left for addresses and indices.
const OTHER_REGISTERS: u64 = 48;

/// Which set of registers each step of each array is in.
#[derive(Default)]
pub(super) struct Sets {
    /// By array, of each step.
    of: Vec<(Array, Vec<u32>)>,
}

/// The buffers of the sets.
pub(super) type Renamed = FxHashMap<(Array, u32), Buffer>;

impl Sets {
    /// Adds the arrays of all sets to the function and to what iterations have for themselves; the
    /// first set of a whole array is that.
    pub fn allocate(&self, func: &mut Func, pieces: &mut Pieces) -> Renamed {
        let mut renamed = Renamed::default();
        for (array, sets) in &self.of {
            let span = func.buffers[array.buffer].span;
            let whole = array.part.is_none();
            let mut arrays: Vec<Buffer> = whole.then_some(array.buffer).into_iter().collect();
            while arrays.len() <= sets.iter().copied().max().unwrap_or(0) as usize {
                let mut data = func.buffers[array.buffer].clone();
                if let Some((_, slots)) = array.part {
                    data.shape = vec![Expr::int(slots, data.shape[0].dtype())];
                }
                let twin = func.buffers.push(data);
                pieces.allocs.push(Stmt::new(StmtKind::Alloc(twin), span));
                arrays.push(twin);
            }
            for (step, set) in sets.iter().enumerate() {
                renamed.insert((*array, step as u32), arrays[*set as usize]);
            }
            pieces.versioned.extend(arrays);
        }
        renamed
    }

    /// The buffer that a step has for an array.
    pub fn name(renamed: &Renamed, array: Array, step: u32) -> Option<Buffer> {
        renamed.get(&(array, step)).copied()
    }
}

/// The fewest sets that serve the order.
pub(super) fn assign(question: Question<'_>, order: &Arrangement) -> Result<Sets, Why> {
    let mut sets = Sets::default();
    let entries: Vec<Entry> = order.entries().collect();
    for (at, piece) in question.pieces.list.iter().enumerate() {
        let opened = entries.iter().any(|e| e.piece == at && e.part.is_some());
        let Some(steps) = piece.steps.as_ref().filter(|_| opened) else {
            continue;
        };
        for array in steps.own_registers(question.func) {
            let buffer = array.buffer;
            if !used_only_in(question.kernel, buffer, &piece.stmt) {
                continue;
            }
            let touches = |op: usize| {
                let op = &steps.ops[op];
                let mut accesses = std::iter::once(&op.dest).chain(&op.sources);
                accesses.any(|a| Array::of(question.func, a) == Some(array))
            };
            let lives = (0..steps.count).map(|step| Life::of(&entries, at, step, &touches));
            let Some(lives) = lives.collect::<Option<Vec<Life>>>() else {
                let name = &question.func.buffers[buffer].name;
                return Err(
                    format!("registers `{name}` would live longer than an iteration").into(),
                );
            };
            sets.of.push((array, color(&lives, entries.len() as i64)));
        }
    }
    fits(question, &sets)?;
    Ok(sets)
}

/// The time from the first place that touches a step's array to the last one.
#[derive(Clone, Copy)]
struct Life {
    first: i64,
    last: i64,
}

impl Life {
    /// `None` where it is as long as an iteration: the next one would be written over it.
    fn of(
        entries: &[Entry],
        piece: usize,
        step: u32,
        touches: &dyn Fn(usize) -> bool,
    ) -> Option<Life> {
        let len = entries.len() as i64;
        let mut life: Option<Life> = None;
        for (at, entry) in entries.iter().enumerate() {
            let own = |p: &super::arrangement::Part| p.step == step && touches(p.op);
            if entry.piece != piece || !entry.part.as_ref().is_some_and(own) {
                continue;
            }
            let time = at as i64 - i64::from(entry.ahead) * len;
            let known = life.get_or_insert(Life {
                first: time,
                last: time,
            });
            known.first = known.first.min(time);
            known.last = known.last.max(time);
        }
        life.filter(|l| l.last - l.first < len)
    }

    /// Whether both live at some time, in this iteration or around the loop.
    fn meets(self, other: Life, len: i64) -> bool {
        (-2..=2).any(|turn| {
            let shift = turn * len;
            self.first <= other.last + shift && other.first + shift <= self.last
        })
    }
}

/// A set for each life, the first that is free.
fn color(lives: &[Life], len: i64) -> Vec<u32> {
    let mut sets: Vec<u32> = Vec::new();
    for (at, life) in lives.iter().enumerate() {
        let taken = |set: u32| (0..at).any(|o| sets[o] == set && life.meets(lives[o], len));
        let free = (0..).find(|set| !taken(*set)).unwrap_or(0);
        sets.push(free);
    }
    sets
}

/// Whether the registers of the loop fit a thread, where an order takes more than one set.
fn fits(question: Question<'_>, sets: &Sets) -> Result<(), Why> {
    let words = |array: Array| {
        let data = &question.func.buffers[array.buffer];
        let elements = data.shape.iter().map(|e| e.as_int().unwrap_or(1 << 20));
        let elements = array
            .part
            .map_or_else(|| elements.product(), |(_, slots)| slots);
        let bits = elements * i128::from(data.dtype.bits());
        u64::try_from(bits / 32).unwrap_or(u64::MAX)
    };
    let more = sets.of.iter().map(|(array, sets)| {
        let most = sets.iter().copied().max().unwrap_or(0);
        words(*array).saturating_mul(most.into())
    });
    let more: u64 = more.sum();
    if more == 0 {
        return Ok(());
    }
    let mut held: FxHashSet<Buffer> = FxHashSet::default();
    for piece in &question.pieces.list {
        let effects = Effects::of(question.func, &piece.stmt);
        held.extend(effects.reads.iter().chain(&effects.writes));
    }
    let in_registers = |b: &&Buffer| {
        let scope = question.func.buffers[**b].scope;
        matches!(scope, Scope::Local | Scope::Fragment)
    };
    let whole = |b: &Buffer| Array {
        buffer: *b,
        part: None,
    };
    let held = held.iter().filter(in_registers).map(whole);
    let held: u64 = held.map(words).sum();
    let needed = held + more + OTHER_REGISTERS;
    let threads = question.kernel.num_threads();
    let most = u64::from(even_share_of(question.machine, threads));
    match needed <= most {
        true => Ok(()),
        false => Err(format!(
            "it would take {needed} registers (with {OTHER_REGISTERS} for addresses), a thread of \
             {threads} has {most}"
        )
        .into()),
    }
}

/// Whether the registers are touched in the statement alone.
fn used_only_in(kernel: &Kernel, buffer: Buffer, stmt: &Stmt) -> bool {
    let count = |block: &[Stmt]| {
        let mut count = 0;
        walk_stmts(block, &mut |s| {
            if !matches!(s.kind, StmtKind::Alloc(_)) {
                stmt_buffers(s, &mut |b| count += usize::from(b == buffer));
            }
        });
        count
    };
    count(&kernel.body) == count(std::slice::from_ref(stmt))
}
