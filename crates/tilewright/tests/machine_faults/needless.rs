//! A proof that a wait is needless: loosening it changes nothing, on any way through the code.
//!
//! What the faulty wait leaves under way are the LDS accesses before it. On every way from there,
//! until another wait has ended them, nothing may depend on their being done: no instruction uses a
//! register that they write, no barrier lets another wave go on, nothing is stored or copied that
//! could meet them in memory. The wave's own LDS accesses come in order.

use std::collections::BTreeSet;

use tilewright::gfx9::asm::{self, Counter, Function, Instruction, Register};
use tilewright::gfx9::isa::{Flags, Opcode};

/// Whether the wait in `line` of `text` may be what it is in `faulty`.
pub fn is_needless(text: &str, faulty: &str, line: usize) -> bool {
    let at = |text: &str| {
        let program = asm::parse(text).expect("assembly");
        let mut functions = program.functions.into_iter();
        functions.find_map(|f| {
            let index = f
                .instructions
                .iter()
                .position(|i| i.line as usize == line)?;
            Some((f, index))
        })
    };
    let Some((function, index)) = at(text) else {
        return false;
    };
    let wait = |instruction: &Instruction| instruction.wait().unwrap_or_default();
    let before = wait(&function.instructions[index]);
    // A wait that is left out altogether leaves no instruction.
    let after = at(faulty).map_or_else(Default::default, |(f, i)| wait(&f.instructions[i]));
    if before.vmcnt != after.vmcnt {
        return false;
    }
    let left = after.lgkmcnt.map_or(usize::MAX, usize::from);
    let ways = Ways::of(&function);
    let Some(under_way) = ways.under_way(index, left) else {
        return false;
    };
    ways.nothing_depends_on(&under_way, index)
}

/// The instructions before and behind each one.
struct Ways<'f> {
    code: &'f [Instruction],
    before: Vec<Vec<usize>>,
    behind: Vec<Vec<usize>>,
}

impl<'f> Ways<'f> {
    fn of(function: &'f Function) -> Self {
        let code = &function.instructions;
        let mut before = vec![Vec::new(); code.len()];
        let mut behind = vec![Vec::new(); code.len()];
        for (index, instruction) in code.iter().enumerate() {
            let next = (!instruction.ends_block()).then_some(index + 1);
            let label = instruction.target().map(|label| function.labels[label]);
            for to in next.into_iter().chain(label) {
                if to < code.len() {
                    before[to].push(index);
                    behind[index].push(to);
                }
            }
        }
        Ways {
            code,
            before,
            behind,
        }
    }

    /// The last `left` LDS accesses before an instruction; nothing where something else is counted
    /// with them.
    fn under_way(&self, index: usize, left: usize) -> Option<BTreeSet<usize>> {
        let mut accesses = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut open: Vec<(usize, usize)> = vec![(index, 0)];
        while let Some((at, count)) = open.pop() {
            for from in &self.before[at] {
                let instruction = &self.code[*from];
                let mut count = count;
                match instruction.counter() {
                    Some(Counter::Lds) => {
                        accesses.insert(*from);
                        // More than any counter counts is as good as no number at all.
                        count = (count + 1).min(16);
                    }
                    Some(Counter::Scalar | Counter::Flat) => return None,
                    Some(Counter::Vector) | None => {}
                }
                let waited = instruction.wait().and_then(|w| w.lgkmcnt) == Some(0);
                if !waited && count < left && seen.insert((*from, count)) {
                    open.push((*from, count));
                }
            }
        }
        Some(accesses)
    }

    /// On every way from an instruction the accesses before it are waited for before anything needs
    /// them done.
    fn nothing_depends_on(&self, accesses: &BTreeSet<usize>, index: usize) -> bool {
        if accesses.is_empty() {
            return true;
        }
        let written = accesses.iter().flat_map(|a| self.code[*a].access().writes);
        let registers: BTreeSet<Register> = written.collect();
        let mut seen = BTreeSet::new();
        // How many LDS accesses were made since.
        let mut open: Vec<(usize, u8)> = vec![(index, 0)];
        while let Some((at, newer)) = open.pop() {
            for to in &self.behind[at] {
                let instruction = &self.code[*to];
                let waited = instruction.wait().and_then(|w| w.lgkmcnt);
                if instruction.op == Opcode::s_endpgm || waited.is_some_and(|left| left <= newer) {
                    continue;
                }
                let mut newer = newer;
                match instruction.counter() {
                    Some(Counter::Lds) => newer = (newer + 1).min(15),
                    Some(Counter::Vector) if is_plain_load(instruction) => {}
                    Some(_) => return false,
                    None => {}
                }
                let access = instruction.access();
                let uses = access.reads.iter().chain(&access.writes);
                let calls = instruction.ends_block() && instruction.target().is_none();
                if instruction.is_barrier()
                    || instruction.is_cache_fence()
                    || calls
                    || uses.into_iter().any(|r| registers.contains(r))
                {
                    return false;
                }
                if seen.insert((*to, newer)) {
                    open.push((*to, newer));
                }
            }
        }
        true
    }
}

/// A load to registers, which no LDS access can meet.
fn is_plain_load(instruction: &Instruction) -> bool {
    let stores = instruction.op.is(Flags::ATOMIC) || instruction.destinations() == 0;
    !stores && !instruction.is_lds_copy()
}
