//! Is every register waited for before it is used?
//!
//! For each register that a load may still be filling, the age is the number of operations of the
//! same counter issued since: a wait for at most n of them is enough exactly when the age is n or
//! more. Where paths meet, the younger age holds. Scalar loads come back in any order, so while
//! one is under way only a wait for 0 proves anything about its counter.
//!
//! The check runs over the whole function to a fixed point. The compiler keeps this for what it
//! knows; inline assembly it does not know.

use std::collections::BTreeMap;

use crate::asm::{Counter, Function, Instruction, Register, Wait};

use super::flow::{self, State};
use super::{Finding, Kind, finding};

/// Ages past this are all the same to a counter of six bits.
const OLDEST: u8 = 64;

/// Loads under way: for each register the age in the counters that hold it back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Ages {
    vm: BTreeMap<Register, u8>,
    lgkm: BTreeMap<Register, u8>,
    /// A scalar or flat load is under way, so `lgkmcnt` counts in no order.
    unordered: bool,
}

pub(super) fn check(function: &Function, findings: &mut Vec<Finding>) {
    flow::visit(function, |state: &Ages, instruction| {
        if let Some(register) = state.uses_pending(instruction) {
            findings.push(finding(
                Kind::Pending,
                instruction,
                format!("{register} may still be under way from memory: a wait is missing"),
            ));
        }
    });
}

impl Ages {
    /// A register that the instruction reads or writes while a load is under way to it.
    fn uses_pending(&self, instruction: &Instruction) -> Option<Register> {
        let access = instruction.access();
        let touched = access.reads.iter().chain(&access.writes);
        let mut pending = touched
            .filter(|r| self.vm.contains_key(*r) || self.lgkm.contains_key(*r))
            .copied();
        // Loads of one kind come back in order, so one may overwrite another's target.
        let same_order = |r: &Register| match access.counter {
            Some(Counter::Vector) => access.writes.contains(r) && !self.lgkm.contains_key(r),
            Some(Counter::Lds) => {
                access.writes.contains(r) && !self.vm.contains_key(r) && !self.unordered
            }
            _ => false,
        };
        pending.find(|r| access.reads.contains(r) || !same_order(r))
    }

    fn wait(&mut self, wait: Wait) {
        if let Some(count) = wait.vmcnt {
            self.vm.retain(|_, age| *age < count);
        }
        match wait.lgkmcnt {
            Some(0) => {
                self.lgkm.clear();
                self.unordered = false;
            }
            Some(count) if !self.unordered => self.lgkm.retain(|_, age| *age < count),
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
        let writes = instruction.access().writes;
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
            for age in ages.values_mut() {
                *age = (*age + 1).min(OLDEST);
            }
            for register in &writes {
                ages.insert(*register, 0);
            }
        }
    }

    fn meet(&mut self, other: &Self) -> bool {
        let mut changed = !self.unordered && other.unordered;
        self.unordered |= other.unordered;
        for (mine, theirs) in [(&mut self.vm, &other.vm), (&mut self.lgkm, &other.lgkm)] {
            for (register, age) in theirs {
                let known = mine.entry(*register).or_insert(u8::MAX);
                if *age < *known {
                    *known = *age;
                    changed = true;
                }
            }
        }
        changed
    }
}
