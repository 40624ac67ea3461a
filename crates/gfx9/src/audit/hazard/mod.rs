//! Are there enough wait states between two instructions?
//!
//! Some pairs need a distance that the machine does not keep by itself (`table`). The compiler keeps
//! it between its own instructions, and does not look inside inline assembly. The check runs over
//! the whole function and all ways through it: what was issued last, and how long ago, is known
//! before each block, the shortest way counting.
//!
//! Only the last write of a scalar register counts. A scalar instruction that overwrites what a
//! vector instruction wrote waits for that by itself, so behind it the hazard is over. Of the sums of
//! products only the last write counts, too, where both are of one operation: they end in the order in
//! which they were issued, and what is owed behind the later one is more.

mod roles;
mod table;

use crate::asm::blocks::Blocks;
use crate::asm::{Function, Instruction, Operand};
use crate::isa::Opcode;

use super::{Finding, Kind, bits, finding};
use roles::{Parts, SUMS, TO_SCALAR};
use table::{From, MOST, ROWS};

/// An instruction that something may still be owed behind.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Recent {
    index: usize,
    /// Wait states since.
    age: u32,
    /// The most that is owed behind it.
    owed: u32,
    /// The rows that it is in.
    rows: u64,
    /// Of the scalar registers or sums that it wrote, those that were written anew, as bits.
    anew: u32,
}

pub(super) fn check(
    function: &Function,
    blocks: &Blocks,
    gfx950: bool,
    findings: &mut Vec<Finding>,
) {
    let code = &function.instructions;
    let parts: Vec<Parts> = code.iter().map(Parts::of).collect();
    let kernel = Kernel {
        code,
        parts: &parts,
        gfx950,
    };
    let before = kernel.at_starts(blocks);
    for (range, recent) in blocks.ranges.iter().zip(before) {
        let mut recent = recent;
        for index in range.clone() {
            if let Some(found) = kernel.conflict(&recent, index) {
                findings.push(found);
            }
            kernel.step(&mut recent, index);
        }
    }
}

/// What is looked at.
struct Kernel<'a> {
    code: &'a [Instruction],
    /// The rows that each instruction is in.
    parts: &'a [Parts],
    gfx950: bool,
}

impl Kernel<'_> {
    /// What is recent before each block, over all ways to it.
    fn at_starts(&self, blocks: &Blocks) -> Vec<Vec<Recent>> {
        let mut before: Vec<Vec<Recent>> = vec![Vec::new(); blocks.ranges.len()];
        let mut work: Vec<usize> = (0..blocks.ranges.len()).rev().collect();
        while let Some(block) = work.pop() {
            let mut recent = before[block].clone();
            // Of a long block only its end is recent behind it.
            let range = blocks.ranges[block].clone();
            let mut states = 0;
            let long = range.clone().rev().find(|index| {
                states += states_of(&self.code[*index]);
                states >= MOST
            });
            if long.is_some() {
                recent.clear();
            }
            for index in long.unwrap_or(range.start)..range.end {
                self.step(&mut recent, index);
            }
            for to in &blocks.next[block] {
                if join(&mut before[*to], &recent) && !work.contains(to) {
                    work.push(*to);
                }
            }
        }
        before
    }

    fn step(&self, recent: &mut Vec<Recent>, index: usize) {
        let instruction = &self.code[index];
        let states = states_of(instruction);
        if instruction.op.is_salu() {
            self.overwrite(recent, instruction);
        } else if self.parts[index].from & *SUMS != 0 {
            self.multiply_anew(recent, instruction);
        }
        let rows = self.parts[index].from;
        recent.retain_mut(|entry| {
            entry.age += states;
            let anew = rows != 0 && entry.index == index;
            entry.age < entry.owed && entry.rows != 0 && !anew
        });
        if rows != 0 {
            recent.push(Recent {
                index,
                age: 0,
                owed: self.parts[index].owed[usize::from(self.gfx950)].into(),
                rows,
                anew: 0,
            });
        }
    }

    /// Forgets scalar registers that a scalar instruction writes anew.
    fn overwrite(&self, recent: &mut [Recent], by: &Instruction) {
        let written = by.operands.iter().take(by.destinations());
        for written in written.filter_map(Operand::registers) {
            for entry in recent.iter_mut().filter(|e| e.rows & *TO_SCALAR != 0) {
                let scalars = From::VectorToScalar.runs(&self.code[entry.index]);
                entry.anew |= scalars.bits_in(written);
                if scalars.all_bits() & !entry.anew == 0 {
                    entry.rows &= !*TO_SCALAR;
                }
            }
        }
    }

    /// Forgets sums that a product of the same operation writes anew.
    fn multiply_anew(&self, recent: &mut [Recent], by: &Instruction) {
        let Some(written) = by.operands.first().and_then(Operand::registers) else {
            return;
        };
        for entry in recent.iter_mut() {
            let front = &self.code[entry.index];
            if front.op == by.op && front.modifiers == by.modifiers {
                entry.anew |= From::Xdl.runs(front).bits_in(written);
            }
        }
    }

    /// The first obligation that is not kept before an instruction.
    fn conflict(&self, recent: &[Recent], index: usize) -> Option<Finding> {
        let instruction = &self.code[index];
        for entry in recent.iter().rev() {
            let both = self.parts[entry.index].shared_with(entry.rows, &self.parts[index]);
            for bit in bits::members(both) {
                let row = &ROWS[bit];
                let front = &self.code[entry.index];
                let owed = row.owed(front, self.gfx950);
                if entry.age >= owed {
                    continue;
                }
                let anew = match row.from {
                    From::VectorToScalar
                    | From::Xdl
                    | From::Single
                    | From::Double4
                    | From::Double16 => entry.anew,
                    _ => 0,
                };
                let Some(register) = row.meets(front, instruction, anew) else {
                    continue;
                };
                let which = register.map_or_else(String::new, |r| format!(" ({r})"));
                let reason = format!(
                    "{} wait states after `{}` of line {}, and {owed} are needed: {}{which}",
                    entry.age,
                    front.op.name(),
                    front.line,
                    row.what
                );
                return Some(finding(Kind::Hazard, instruction, reason).of_rule(row.what));
            }
        }
        None
    }
}

/// Adds what another way brings; says whether anything is new.
fn join(known: &mut Vec<Recent>, other: &[Recent]) -> bool {
    let mut changed = false;
    for entry in other {
        match known.iter_mut().find(|k| k.index == entry.index) {
            Some(k) => {
                let before = *k;
                k.age = k.age.min(entry.age);
                k.rows |= entry.rows;
                k.anew &= entry.anew;
                changed |= *k != before;
            }
            None => {
                known.push(*entry);
                changed = true;
            }
        }
    }
    changed
}

fn states_of(instruction: &Instruction) -> u32 {
    match (instruction.op, instruction.operands.first()) {
        (Opcode::s_nop, Some(Operand::Integer(n))) => {
            u32::try_from(*n).unwrap_or(0).saturating_add(1)
        }
        _ => 1,
    }
}
