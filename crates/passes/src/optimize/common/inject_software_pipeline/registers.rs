//! Register arrays for parts that an order runs beside each other.
//!
//! A product's steps fill the same operand registers one after another. Where an order reads a
//! step's operands before an earlier step has used its own, the steps need arrays of their own:
//! each array is a value with a life from its first write to its last read, around the loop where
//! it is read ahead, and values whose lives do not meet share a set. Parts of an operand share sets with
//! each other where the registers of a thread are too few for sets of their own.

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
pub(super) struct Sets {
    /// By array and step, in order.
    of: Vec<(Array, u32)>,
}

/// The buffers of the sets.
pub(super) type Renamed = FxHashMap<(Array, u32), Buffer>;

impl Sets {
    /// A set for each value, the first that is free of those that it may have.
    fn of(values: &[Value], len: i64, share: fn(&Value, &Value) -> bool) -> Sets {
        let mut of: Vec<(Array, u32)> = Vec::new();
        for (at, value) in values.iter().enumerate() {
            let taken = |set: u32| {
                let others = values[..at].iter().zip(&of);
                let mut same = others
                    .filter(|(o, (_, own))| *own == set && o.array.buffer == value.array.buffer);
                same.any(|(o, _)| !share(value, o) || value.life.meets(o.life, len))
            };
            let free = (0..).find(|set| !taken(*set)).unwrap_or(0);
            of.push((value.array, free));
        }
        Sets { of }
    }

    /// The sets, each with an array that it serves.
    fn distinct(&self) -> Vec<(Array, u32)> {
        let mut found: Vec<(Array, u32)> = Vec::new();
        for (array, set) in &self.of {
            let known = |(a, s): &(Array, u32)| a.buffer == array.buffer && s == set;
            if !found.iter().any(known) {
                found.push((*array, *set));
            }
        }
        found
    }

    /// Adds the arrays of all sets to the function and to what iterations have for themselves; the
    /// first set of a whole array is that.
    pub fn allocate(&self, func: &mut Func, pieces: &mut Pieces) -> Renamed {
        let mut arrays: FxHashMap<(Buffer, u32), Buffer> = FxHashMap::default();
        for (array, set) in self.distinct() {
            let own = match array.part {
                None if set == 0 => array.buffer,
                part => {
                    let mut data = func.buffers[array.buffer].clone();
                    if let Some((_, slots)) = part {
                        data.shape = vec![Expr::int(slots, data.shape[0].dtype())];
                    }
                    let span = data.span;
                    let twin = func.buffers.push(data);
                    pieces.allocs.push(Stmt::new(StmtKind::Alloc(twin), span));
                    twin
                }
            };
            arrays.insert((array.buffer, set), own);
            pieces.versioned.push(own);
        }
        let mut steps: FxHashMap<Array, u32> = FxHashMap::default();
        let mut renamed = Renamed::default();
        for (array, set) in &self.of {
            let step = steps.entry(*array).or_insert(0);
            if let Some(own) = arrays.get(&(array.buffer, *set)) {
                renamed.insert((*array, *step), *own);
            }
            *step += 1;
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
    let entries: Vec<Entry> = order.entries().collect();
    let mut values: Vec<Value> = Vec::new();
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
            values.extend(lives.iter().map(|life| Value { array, life: *life }));
        }
    }
    let len = entries.len() as i64;
    let apart = Sets::of(&values, len, Value::is_of_same_array);
    let tight = fits(question, &apart);
    if tight.is_ok() {
        return Ok(apart);
    }
    let together = Sets::of(&values, len, Value::is_alike);
    fits(question, &together).map(|()| together)
}

/// What a step has in an array.
#[derive(Clone, Copy)]
struct Value {
    array: Array,
    life: Life,
}

impl Value {
    fn is_of_same_array(&self, other: &Value) -> bool {
        self.array == other.array
    }

    /// Whether they are parts of one operand, and alike.
    fn is_alike(&self, other: &Value) -> bool {
        let slots = |value: &Value| value.array.part.map(|(_, slots)| slots);
        self.array.buffer == other.array.buffer && slots(self) == slots(other)
    }
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
    // Of each buffer beyond what the step as it was written takes.
    let mut taken: FxHashMap<Buffer, u64> = FxHashMap::default();
    for (array, _) in sets.distinct() {
        let all = taken.entry(array.buffer).or_insert(0);
        *all = all.saturating_add(words(array));
    }
    let more = taken.iter().map(|(buffer, all)| {
        let whole = Array {
            buffer: *buffer,
            part: None,
        };
        all.saturating_sub(words(whole))
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
