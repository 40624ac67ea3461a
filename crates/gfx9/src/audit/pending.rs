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
use super::{Finding, Kind, finding};

/// Ages past this are all the same to a counter of six bits.
const OLDEST: u8 = 64;

/// Nothing is under way.
const NONE: u8 = u8::MAX;

/// The registers that loads fill, in a row: vector, accumulation, scalar ones, `vcc`.
const REGISTERS: usize = 256 + 256 + 128 + 2;

/// Loads under way: for each register the age in the counters that hold it back.
#[derive(Clone, Debug)]
struct Ages {
    vm: [u8; REGISTERS],
    lgkm: [u8; REGISTERS],
    /// A scalar or flat load is under way, so `lgkmcnt` counts in no order.
    unordered: bool,
}

impl Default for Ages {
    fn default() -> Self {
        Self {
            vm: [NONE; REGISTERS],
            lgkm: [NONE; REGISTERS],
            unordered: false,
        }
    }
}

pub(super) fn check(function: &Function, blocks: &Blocks, findings: &mut Vec<Finding>) {
    flow::visit(function, blocks, |state: &Ages, instruction| {
        if let Some(register) = state.uses_pending(instruction) {
            findings.push(finding(
                Kind::Pending,
                instruction,
                format!("{register} may still be under way from memory: a wait is missing"),
            ));
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
        let counter = instruction.counter();
        let mut pending = None;
        instruction.each_use(|run, how| {
            let (vm, lgkm) = (&self.vm[places(run)], &self.lgkm[places(run)]);
            let both = vm.iter().zip(lgkm).zip(run.iter());
            for ((vm, lgkm), register) in both {
                let (vm, lgkm) = (*vm != NONE, *lgkm != NONE);
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
        let done = |ages: &mut [u8], count: u8| {
            for age in ages.iter_mut() {
                if *age >= count {
                    *age = NONE;
                }
            }
        };
        if let Some(count) = wait.vmcnt {
            done(&mut self.vm, count);
        }
        match wait.lgkmcnt {
            Some(0) => {
                done(&mut self.lgkm, 0);
                self.unordered = false;
            }
            Some(count) if !self.unordered => done(&mut self.lgkm, count),
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
        for (raised, ages) in [(vm, &mut self.vm), (lgkm, &mut self.lgkm)] {
            if !raised {
                continue;
            }
            for age in ages.iter_mut() {
                *age += u8::from(*age < OLDEST);
            }
            instruction.each_use(|run, how| {
                if how != Use::Read {
                    ages[places(run)].fill(0);
                }
            });
        }
    }

    fn meet(&mut self, other: &Self) -> bool {
        let mut changed = !self.unordered && other.unordered;
        self.unordered |= other.unordered;
        for (mine, theirs) in [(&mut self.vm, &other.vm), (&mut self.lgkm, &other.lgkm)] {
            for (age, new) in mine.iter_mut().zip(theirs) {
                changed |= new < age;
                *age = (*age).min(*new);
            }
        }
        changed
    }
}
