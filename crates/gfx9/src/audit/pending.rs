//! Is every register waited for before it is used?
//!
//! For each register that a load may still be filling, the age is the number of operations of the
//! same counter issued since: a wait for at most n of them is enough exactly when the age is n or
//! more. Where paths meet, the younger age holds. Scalar loads come back in any order, so while
//! one is under way only a wait for 0 proves anything about its counter.
//!
//! The check runs over the whole function to a fixed point. The compiler keeps this for what it
//! knows; inline assembly it does not know.

use std::ops::Range;

use crate::asm::blocks::Blocks;
use crate::asm::{Counter, Function, Instruction, Register, RegisterFile, Registers, Use, Wait};

use super::flow::{self, State};
use super::{Finding, Kind, bits, finding};

/// Ages past this are all the same to a counter of six bits.
const OLDEST: u8 = 64;

/// Nothing is under way.
const NONE: u8 = u8::MAX;

/// The registers that loads fill, in a row: vector, accumulation, scalar ones, `vcc`.
const REGISTERS: usize = 256 + 256 + 128 + 2;

/// Loads under way: for each register the age in the counters that hold it back.
#[derive(Clone, Debug, Default)]
struct Ages {
    vm: Counted,
    lgkm: Counted,
    /// A scalar or flat load is under way, so `lgkmcnt` counts in no order.
    unordered: bool,
}

/// The loads of one counter.
#[derive(Clone, Debug)]
struct Counted {
    ages: [u8; REGISTERS],
    /// The registers that have an age, as bits, and how many those are.
    under_way: [u64; REGISTERS.div_ceil(64)],
    count: u32,
}

impl Default for Counted {
    fn default() -> Self {
        Self {
            ages: [NONE; REGISTERS],
            under_way: [0; REGISTERS.div_ceil(64)],
            count: 0,
        }
    }
}

impl Counted {
    /// A load is issued, which fills the registers that it is told of next.
    fn issue(&mut self) {
        if self.count > 0 {
            for age in &mut self.ages {
                *age += u8::from(*age < OLDEST);
            }
        }
    }

    fn fill(&mut self, run: Range<usize>) {
        self.ages[run.clone()].fill(0);
        for (at, bits) in bits::words(run) {
            self.count += (bits & !self.under_way[at]).count_ones();
            self.under_way[at] |= bits;
        }
    }

    /// At most this many loads are left.
    fn wait(&mut self, count: u8) {
        if self.count == 0 {
            return;
        }
        for at in 0..self.under_way.len() {
            for bit in bits::members(self.under_way[at]) {
                let age = &mut self.ages[at * 64 + bit];
                if *age >= count {
                    *age = NONE;
                    self.under_way[at] &= !(1 << bit);
                    self.count -= 1;
                }
            }
        }
    }

    /// Takes in another way; says whether anything changed.
    fn meet(&mut self, other: &Self) -> bool {
        if other.count == 0 {
            return false;
        }
        let mut changed = false;
        for (age, new) in self.ages.iter_mut().zip(&other.ages) {
            changed |= new < age;
            *age = (*age).min(*new);
        }
        for (word, new) in self.under_way.iter_mut().zip(other.under_way) {
            self.count += (new & !*word).count_ones();
            *word |= new;
        }
        changed
    }
}

pub(super) fn check(function: &Function, blocks: &Blocks, findings: &mut Vec<Finding>) {
    flow::visit(function, blocks, |state: &Ages, instruction| {
        if let Some(register) = state.uses_pending(instruction) {
            let reason =
                format!("{register} may still be under way from memory: a wait is missing");
            let found = finding(Kind::Pending, instruction, reason);
            findings.push(found.of_rule("a register under way"));
        }
    });
}

/// Where a run of registers stands in the row; of others than those nothing.
fn places(run: Registers) -> Range<usize> {
    let (base, count) = match run.file {
        RegisterFile::Vector => (0, 256),
        RegisterFile::Accumulator => (256, 256),
        RegisterFile::Scalar => (512, 128),
        RegisterFile::Vcc => (640, 2),
        _ => return 0..0,
    };
    let first = usize::from(run.first).min(count);
    let end = (usize::from(run.first) + usize::from(run.count)).min(count);
    base + first..base + end.max(first)
}

impl Ages {
    /// A register that the instruction reads or writes while a load is under way to it.
    fn uses_pending(&self, instruction: &Instruction) -> Option<Register> {
        if self.vm.count + self.lgkm.count == 0 {
            return None;
        }
        let counter = instruction.counter();
        let mut pending = None;
        instruction.each_use(|run, how| {
            let range = places(run);
            let under_way = |at: usize| self.vm.under_way[at] | self.lgkm.under_way[at];
            if !bits::words(range.clone()).any(|(at, bits)| under_way(at) & bits != 0) {
                return;
            }
            for (place, register) in range.zip(run.iter()) {
                let vm = self.vm.ages[place] != NONE;
                let lgkm = self.lgkm.ages[place] != NONE;
                // Loads of one kind come back in order, so one may overwrite another's target.
                let in_order = match counter {
                    Some(Counter::Vector) => !lgkm,
                    Some(Counter::Lds) => !vm && !self.unordered,
                    _ => false,
                };
                if (vm || lgkm) && (how != Use::Write || !in_order) {
                    pending.get_or_insert(register);
                }
            }
        });
        pending
    }

    fn wait(&mut self, wait: Wait) {
        if let Some(count) = wait.vmcnt {
            self.vm.wait(count);
        }
        match wait.lgkmcnt {
            Some(0) => {
                self.lgkm.wait(0);
                self.unordered = false;
            }
            Some(count) if !self.unordered => self.lgkm.wait(count),
            _ => {}
        }
    }
}

impl State for Ages {
    fn step(&mut self, instruction: &Instruction) {
        if let Some(wait) = instruction.wait() {
            self.wait(wait);
        }
        let Some(counter) = instruction.counter() else {
            return;
        };
        let (vm, lgkm) = match counter {
            Counter::Vector => (true, false),
            Counter::Lds | Counter::Scalar => (false, true),
            Counter::Flat => (true, true),
        };
        if matches!(counter, Counter::Scalar | Counter::Flat) {
            self.unordered = true;
        }
        for (raised, counted) in [(vm, &mut self.vm), (lgkm, &mut self.lgkm)] {
            if !raised {
                continue;
            }
            counted.issue();
            instruction.each_use(|run, how| {
                if how != Use::Read {
                    counted.fill(places(run));
                }
            });
        }
    }

    fn meet(&mut self, other: &Self) -> bool {
        let mut changed = !self.unordered && other.unordered;
        self.unordered |= other.unordered;
        changed |= self.vm.meet(&other.vm);
        changed |= self.lgkm.meet(&other.lgkm);
        changed
    }
}
