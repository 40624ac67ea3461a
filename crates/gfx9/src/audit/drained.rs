//! Is every LDS access complete where the waves of a block meet?
//!
//! A bare barrier waits for nothing. What a wave has written must be there for the others, and
//! what it reads must be read before another one writes over it, so the schedule waits for the
//! counter of LDS before the barrier. The check runs over the whole function: also a wait that is
//! missing outside of loops, or in one whose waits cannot be compared one by one, is found.

use crate::asm::blocks::Blocks;
use crate::asm::{Function, Instruction};

use super::flow::{self, State};
use super::{Finding, Kind, finding};

/// The lines of LDS accesses that may be under way.
#[derive(Clone, Default)]
struct Open {
    /// Done by the lanes that are active here: `exec` has not been written since.
    by_these: Option<u32>,
    by_others: Option<u32>,
}

pub(super) fn check(function: &Function, blocks: &Blocks, findings: &mut Vec<Finding>) {
    flow::visit(function, blocks, |state: &Open, instruction| {
        if instruction.is_barrier()
            && let Some(line) = state.by_these.or(state.by_others)
        {
            let reason = format!("the LDS access of line {line} may still be under way here");
            let found = finding(Kind::Undrained, instruction, reason);
            findings.push(found.of_rule("an access under way"));
        }
    });
}

impl State for Open {
    fn step(&mut self, instruction: &Instruction) {
        if let Some(wait) = instruction.wait()
            && wait.lgkmcnt == Some(0)
        {
            *self = Open::default();
        }
        if instruction.writes_exec() {
            self.by_others = self.by_these.take().or(self.by_others);
        }
        if instruction.is_lds_access() {
            self.by_these = Some(instruction.line);
        }
    }

    fn without_lanes(&mut self) {
        self.by_these = None;
    }

    fn meet(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (known, new) in [
            (&mut self.by_these, other.by_these),
            (&mut self.by_others, other.by_others),
        ] {
            changed |= known.is_none() && new.is_some();
            *known = known.or(new);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use crate::asm::blocks::Blocks;
    use crate::asm::parse;

    /// The findings in a kernel that may go on, with no lane active, from an LDS write to a barrier.
    fn found(between: &str) -> usize {
        let text = format!(
            "k:\n\tds_write_b32 v2, v6\n{between}\ts_cbranch_execnz .LBB0_2\n\ts_barrier\n\
             .LBB0_2:\n\ts_waitcnt lgkmcnt(0)\n\ts_barrier\n\ts_endpgm\n"
        );
        let program = parse(&text).expect("assembly");
        let mut findings = Vec::new();
        let function = &program.functions[0];
        super::check(function, &Blocks::of(function), &mut findings);
        findings.len()
    }

    #[test]
    fn what_no_lane_wrote_is_not_under_way() {
        assert_eq!(found(""), 0);
        assert_eq!(found("\ts_mov_b64 exec, s[0:1]\n"), 1);
        assert_eq!(found("\ts_and_saveexec_b64 s[0:1], vcc\n"), 1);
        assert_eq!(found("\ts_cbranch_vccnz .LBB0_2\n\ts_barrier\n"), 1);
    }
}
