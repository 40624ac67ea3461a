//! The targets and their machines: one table, each fact with its source.
//!
//! Nothing else in the compiler holds a number of a target or knows its vendor: passes, schedule,
//! checker, simulator and code generator ask the [`Machine`] for what they need to know. A
//! capability that is not in the table does not exist: asking for it is a diagnostic, never a
//! guess. What counters count to is [`crate::device_op::Counter::counting`].
//!
//! What is said of a machine is in the module `machine`, with a file for each vendor's.
//!
//! Sources: \[CUDA\] CUDA C++ Programming Guide, compute capabilities table; \[PTX\] PTX ISA,
//! matrix, barrier and async-copy sections; \[ISA3\], \[ISA4\] AMD CDNA3 and CDNA4 instruction
//! set manuals; \[LLVM\] what clang 22 accepts for the target.

use std::fmt;

use crate::machine::{amd, nvidia};

pub use crate::machine::{
    AsyncCopy, BankPhases, BlockBarrier, Dialect, Fp8Formats, MAX_CLUSTER, Machine, MmaFacts,
    NAMED_BARRIERS, RegisterMoves, Registers, SharedMemory, WARP_GROUP,
};

/// A GPU architecture.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// NVIDIA Ampere.
    Sm80,
    /// NVIDIA Hopper with its architecture-specific instructions.
    Sm90a,
    /// AMD CDNA3 (MI300X).
    Gfx942,
    /// AMD CDNA4 (MI355X).
    Gfx950,
}

impl Target {
    /// Every target; of those of one vendor the older first.
    pub const ALL: [Target; 4] = [Target::Sm80, Target::Sm90a, Target::Gfx942, Target::Gfx950];

    /// What kernels are lowered for where nobody says.
    pub const DEFAULT: Target = Target::Gfx950;

    pub const fn name(self) -> &'static str {
        match self {
            Target::Sm80 => "sm_80",
            Target::Sm90a => "sm_90a",
            Target::Gfx942 => "gfx942",
            Target::Gfx950 => "gfx950",
        }
    }

    pub fn from_name(name: &str) -> Option<Target> {
        Target::ALL.into_iter().find(|t| t.name() == name)
    }

    /// What the target has.
    pub const fn machine(self) -> &'static Machine {
        match self {
            Target::Sm80 => &nvidia::SM80,
            Target::Sm90a => &nvidia::SM90A,
            Target::Gfx942 => &amd::GFX942,
            Target::Gfx950 => &amd::GFX950,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for t in Target::ALL {
            assert_eq!(Target::from_name(t.name()), Some(t));
        }
    }

    #[test]
    fn full_rate_forms_do_no_less_work_a_cycle() {
        for target in Target::ALL {
            let facts = target.machine().mma;
            for (at, a) in facts.iter().enumerate() {
                let rate = |f: &MmaFacts| {
                    let i = f.inst;
                    (i.m as u32 * i.n as u32 * i.k as u32) / f.cycles
                };
                let later = facts[at + 1..].iter();
                let alike = |f: &MmaFacts| {
                    let i = f.inst;
                    (i.family, i.a, i.b, i.acc, i.scaled)
                };
                for b in later.filter(|b| alike(b) == alike(a)) {
                    assert!(rate(a) >= rate(b), "{target}: {} before {}", a.inst, b.inst);
                }
            }
        }
    }

    #[test]
    fn what_a_machine_claims_fits_together() {
        for target in Target::ALL {
            let machine = target.machine();
            let counted = machine.load_counter;
            // A spill would be among what a wait counts.
            assert!(counted.is_none() || !machine.registers.spill, "{target}");
            // Who writes every wait down needs a barrier that adds none.
            assert_eq!(machine.barrier.drains, machine.barrier.bare, "{target}");
            for counter in [counted, machine.shared.counter].into_iter().flatten() {
                assert!(counter.most_in_flight().is_some(), "{target}");
                assert!(machine.counts(counter), "{target}");
            }
            if let Some(copy) = machine.async_copy {
                assert!(machine.has(copy.inst) && machine.counts(copy.counter));
                assert!(copy.bytes.is_sorted_by(|a, b| a > b), "{target}");
            }
            let banks = machine.shared.banks * 4;
            assert!(machine.shared.swizzle_align.is_multiple_of(banks));
            assert!(WARP_GROUP.is_multiple_of(machine.warp_size), "{target}");
        }
    }
}
