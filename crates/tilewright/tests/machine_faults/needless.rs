//! A proof that a wait is needless: loosening it changes nothing, on any way through the code.
//!
//! What the faulty wait leaves under way are the LDS accesses before it. On every way from there,
//! until another wait has ended them, nothing may depend on their being done: no instruction uses a
//! register that they write, no barrier lets another wave go on, nothing is stored or copied that
//! could meet them in memory. The wave's own LDS accesses come in order.

use std::collections::{BTreeMap, BTreeSet};

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

    /// The LDS accesses of which an instruction that waits for all but `left` finds some under way, with
    /// the least number of them that come behind, itself counted; nothing where something else is counted
    /// with them.
    fn under_way(&self, index: usize, left: usize) -> Option<BTreeMap<usize, usize>> {
        let mut accesses: BTreeMap<usize, usize> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        // How many there were since, and how many an earlier wait leaves at most.
        let mut open: Vec<(usize, usize, usize)> = vec![(index, 0, left)];
        while let Some((at, count, left)) = open.pop() {
            for from in &self.before[at] {
                let instruction = &self.code[*from];
                let (mut count, mut left) = (count, left);
                match instruction.counter() {
                    Some(Counter::Lds) => {
                        // More than any counter counts is as good as no number at all.
                        count = (count + 1).min(16);
                        let age = accesses.entry(*from).or_insert(count);
                        *age = count.min(*age);
                    }
                    Some(Counter::Scalar | Counter::Flat) => return None,
                    Some(Counter::Vector) | None => {}
                }
                if let Some(waited) = instruction.wait().and_then(|w| w.lgkmcnt) {
                    left = left.min(count + usize::from(waited));
                }
                if count < left && seen.insert((*from, count, left)) {
                    open.push((*from, count, left));
                }
            }
        }
        Some(accesses)
    }

    /// On every way from an instruction the accesses before it are waited for before anything needs
    /// them done. They are done in their order.
    fn nothing_depends_on(&self, accesses: &BTreeMap<usize, usize>, index: usize) -> bool {
        if accesses.is_empty() {
            return true;
        }
        let mut written: BTreeMap<Register, usize> = BTreeMap::new();
        for (access, age) in accesses {
            for register in self.code[*access].access().writes {
                let least = written.entry(register).or_insert(*age);
                *least = (*age).min(*least);
            }
        }
        let mut seen = BTreeSet::new();
        // How many LDS accesses were made since, and how many of those before are under way at most.
        let mut open: Vec<(usize, u8, usize)> = vec![(index, 0, usize::MAX)];
        while let Some((at, newer, under_way)) = open.pop() {
            for to in &self.behind[at] {
                let instruction = &self.code[*to];
                let mut under_way = under_way;
                if let Some(left) = instruction.wait().and_then(|w| w.lgkmcnt) {
                    under_way = under_way.min(usize::from(left.saturating_sub(newer)));
                }
                if instruction.op == Opcode::s_endpgm || under_way == 0 {
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
                let mut uses = access.reads.iter().chain(&access.writes);
                let calls = instruction.ends_block() && instruction.target().is_none();
                if instruction.is_barrier()
                    || instruction.is_cache_fence()
                    || calls
                    || uses.any(|r| written.get(r).is_some_and(|age| *age <= under_way))
                {
                    return false;
                }
                if seen.insert((*to, newer, under_way)) {
                    open.push((*to, newer, under_way));
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
