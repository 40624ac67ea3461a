//! Is every LDS access complete where the waves of a block meet?
//!
//! A bare barrier waits for nothing. What a wave has written must be there for the others, and
//! what it reads must be read before another one writes over it, so the schedule waits for the
//! counter of LDS before the barrier. The check runs over the whole function: also a wait that is
//! missing outside of loops, or in one whose waits cannot be compared one by one, is found.

use crate::asm::{Function, Instruction};

use super::flow::{self, State};
use super::{Finding, Kind, finding};

/// The line of an LDS access that may be under way.
#[derive(Clone, Default)]
struct Open(Option<u32>);

pub(super) fn check(function: &Function, findings: &mut Vec<Finding>) {
    flow::visit(function, |state: &Open, instruction| {
        if instruction.is_barrier()
            && let Some(line) = state.0
        {
            let reason = format!("the LDS access of line {line} may still be under way here");
            findings.push(finding(Kind::Undrained, instruction, reason));
        }
    });
}

impl State for Open {
    fn step(&mut self, instruction: &Instruction) {
        if let Some(wait) = instruction.wait()
            && wait.lgkmcnt == Some(0)
        {
            self.0 = None;
        }
        if instruction.is_lds_read() || instruction.is_lds_write() || instruction.is_lds_atomic() {
            self.0 = Some(instruction.line);
        }
    }

    fn meet(&mut self, other: &Self) -> bool {
        let changed = self.0.is_none() && other.0.is_some();
        self.0 = self.0.or(other.0);
        changed
    }
}
