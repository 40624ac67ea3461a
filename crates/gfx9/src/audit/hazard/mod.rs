//! Are there enough wait states between two instructions?
//!
//! Some pairs need a distance that the machine does not keep by itself (`table`). The compiler keeps
//! it between its own instructions, and does not look inside inline assembly. The check runs over
//! the whole function and all ways through it: what was issued last, and how long ago, is known
//! before each block, the shortest way counting.
//!
//! Only the last write of a scalar register counts. A scalar instruction that overwrites what a
//! vector instruction wrote waits for that by itself, so behind it the hazard is over.

mod roles;
mod table;

use std::sync::LazyLock;

use crate::asm::blocks::Blocks;
use crate::asm::{Function, Instruction, Operand};
use crate::isa::Opcode;

use super::{Finding, Kind, finding};
use roles::Parts;
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
    /// Of the scalar registers that it wrote, those that were written anew, as bits.
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
    let before = at_starts(code, blocks, &parts);
    for (range, recent) in blocks.ranges.iter().zip(before) {
        let mut recent = recent;
        for index in range.clone() {
            if let Some(found) = conflict(code, &parts, &recent, index, gfx950) {
                findings.push(found);
            }
            step(code, &parts, &mut recent, index);
        }
    }
}

/// What is recent before each block, over all ways to it.
fn at_starts(code: &[Instruction], blocks: &Blocks, parts: &[Parts]) -> Vec<Vec<Recent>> {
    let mut before: Vec<Vec<Recent>> = vec![Vec::new(); blocks.ranges.len()];
    let mut work: Vec<usize> = (0..blocks.ranges.len()).rev().collect();
    while let Some(block) = work.pop() {
        let mut recent = before[block].clone();
        // Of a long block only its end is recent behind it.
        let range = blocks.ranges[block].clone();
        let mut states = 0;
        let long = range.clone().rev().find(|index| {
            states += states_of(&code[*index]);
            states >= MOST
        });
        if long.is_some() {
            recent.clear();
        }
        for index in long.unwrap_or(range.start)..range.end {
            step(code, parts, &mut recent, index);
        }
        for to in &blocks.next[block] {
            if join(&mut before[*to], &recent) && !work.contains(to) {
                work.push(*to);
            }
        }
    }
    before
}

fn step(code: &[Instruction], parts: &[Parts], recent: &mut Vec<Recent>, index: usize) {
    let instruction = &code[index];
    let states = states_of(instruction);
    if instruction.op.is_salu() {
        overwrite(code, recent, instruction);
    }
    for entry in recent.iter_mut() {
        entry.age += states;
    }
    recent.retain(|entry| entry.age < entry.owed && entry.rows != 0);
    let rows = parts[index].from;
    if rows != 0 {
        recent.retain(|entry| entry.index != index);
        recent.push(Recent {
            index,
            age: 0,
            owed: most_owed(rows),
            rows,
            anew: 0,
        });
    }
}

/// No row of these asks for more.
fn most_owed(rows: u64) -> u32 {
    let mut most = 0;
    let mut left = rows;
    while left != 0 {
        most = most.max(ROWS[left.trailing_zeros() as usize].states.most());
        left &= left - 1;
    }
    most
}

/// Forgets scalar registers that a scalar instruction writes anew.
fn overwrite(code: &[Instruction], recent: &mut [Recent], by: &Instruction) {
    let written = by.operands.iter().take(by.destinations());
    for written in written.filter_map(Operand::registers) {
        for entry in recent.iter_mut().filter(|e| e.rows & *TO_SCALAR != 0) {
            let scalars = From::VectorToScalar.runs(&code[entry.index]);
            entry.anew |= scalars.bits_in(written);
            if scalars.all_bits() & !entry.anew == 0 {
                entry.rows &= !*TO_SCALAR;
            }
        }
    }
}

/// The rows about scalar registers that vector instructions write.
static TO_SCALAR: LazyLock<u64> = LazyLock::new(|| {
    let rows = ROWS.iter().enumerate();
    let scalar = rows.filter(|(_, row)| row.from == From::VectorToScalar);
    scalar.fold(0, |bits, (bit, _)| bits | 1 << bit)
});

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

/// The first obligation that is not kept before an instruction.
fn conflict(
    code: &[Instruction],
    parts: &[Parts],
    recent: &[Recent],
    index: usize,
    gfx950: bool,
) -> Option<Finding> {
    let instruction = &code[index];
    for entry in recent.iter().rev() {
        let mut both = entry.rows & parts[index].to;
        while both != 0 {
            let bit = both.trailing_zeros();
            both &= both - 1;
            let row = &ROWS[bit as usize];
            let front = &code[entry.index];
            let owed = row.owed(front, gfx950);
            if entry.age >= owed {
                continue;
            }
            let anew = match row.from {
                From::VectorToScalar => entry.anew,
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
            return Some(finding(Kind::Hazard, instruction, reason));
        }
    }
    None
}

fn states_of(instruction: &Instruction) -> u32 {
    match (instruction.op, instruction.operands.first()) {
        (Opcode::s_nop, Some(Operand::Integer(n))) => {
            u32::try_from(*n).unwrap_or(0).saturating_add(1)
        }
        _ => 1,
    }
}
