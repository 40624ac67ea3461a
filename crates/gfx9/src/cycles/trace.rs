//! What the waves of a block executed: the input of the timing model.
//!
//! A trace has an order and no times. Each step is an instruction of the function; an access of
//! LDS also has its lanes' addresses, and one of global memory the bytes it moves. The way of
//! branches is in the order of the steps; waits, barriers and priorities are replayed by the
//! model.

use rustc_hash::FxHashMap;

use crate::asm::{Function, Instruction};

/// Lanes of a wave.
pub const LANES: usize = 64;

/// The address register of each lane and the lanes that were active.
pub type LaneAddresses = ([u32; LANES], u64);

/// One block's execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// What each wave executed, in order.
    pub waves: Vec<Vec<Step>>,
    addresses: Vec<LaneAddresses>,
    known: FxHashMap<LaneAddresses, u32>,
}

/// One executed instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its index in [`Function::instructions`].
    pub instruction: u32,
    pub detail: Detail,
}

/// What the timing of an instruction depends on besides its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Nothing, or nothing known: LDS accesses count as free of conflicts, and memory accesses
    /// as those of all lanes.
    #[default]
    None,
    /// The lanes of an LDS access: an index for [`Trace::lanes`].
    Lanes(u32),
    /// The bytes that an access of global memory moves: those of the 64-byte pieces that its
    /// active lanes touch.
    Bytes(u32),
}

impl Trace {
    pub fn new(waves: usize) -> Self {
        Self {
            waves: vec![Vec::new(); waves],
            ..Self::default()
        }
    }

    /// Notes a step of a wave; one of a wave that the block does not have is lost.
    pub fn push(&mut self, wave: usize, instruction: usize, detail: Detail) {
        if let Some(steps) = self.waves.get_mut(wave)
            && let Ok(instruction) = u32::try_from(instruction)
        {
            steps.push(Step {
                instruction,
                detail,
            });
        }
    }

    /// The detail of an LDS access: each lane's address register, without what the instruction
    /// adds to it, and the lanes that are active. The same lanes are kept once.
    pub fn lanes_detail(&mut self, addresses: [u32; LANES], active: u64) -> Detail {
        let lanes = (addresses, active);
        if let Some(index) = self.known.get(&lanes) {
            return Detail::Lanes(*index);
        }
        let Ok(index) = u32::try_from(self.addresses.len()) else {
            return Detail::None;
        };
        self.addresses.push(lanes);
        self.known.insert(lanes, index);
        Detail::Lanes(index)
    }

    pub fn lanes(&self, index: u32) -> Option<&LaneAddresses> {
        self.addresses.get(index as usize)
    }

    /// Different sets of lanes' addresses.
    pub fn address_sets(&self) -> usize {
        self.addresses.len()
    }

    /// What it takes of memory.
    pub fn bytes(&self) -> u64 {
        // The same lanes are also what they are found by.
        let lanes = self.addresses.len() * 2 * size_of::<LaneAddresses>();
        (self.len() * size_of::<Step>() + lanes) as u64
    }

    /// Steps of all waves.
    pub fn len(&self) -> usize {
        self.waves.iter().map(Vec::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Traces without running anything: straight code and loops whose ways are given.
#[expect(missing_debug_implementations, reason = "it holds functions")]
pub struct Walk<'a> {
    pub waves: usize,
    /// Whether a wave's conditional branch is taken: the wave, the label, and how often the wave
    /// has come to this branch before.
    pub taken: &'a dyn Fn(usize, &str, u32) -> bool,
    /// The lanes' address registers at an LDS access of a wave, where they are known.
    pub addresses: &'a dyn Fn(usize, &Instruction) -> Option<[u32; LANES]>,
    /// A wave's steps at most; a walk that goes on is an error.
    pub limit: usize,
}

impl Walk<'_> {
    /// Walks all waves through a function.
    pub fn trace(&self, function: &Function) -> Result<Trace, String> {
        let mut trace = Trace::new(self.waves);
        for wave in 0..self.waves {
            let mut visits: FxHashMap<usize, u32> = FxHashMap::default();
            let mut at = 0;
            for steps in 0.. {
                let Some(instruction) = function.instructions.get(at) else {
                    break;
                };
                if steps == self.limit {
                    let limit = self.limit;
                    return Err(format!(
                        "wave {wave} is not at its end after {limit} instructions, at line {}",
                        instruction.line
                    ));
                }
                let detail = match (self.addresses)(wave, instruction) {
                    Some(addresses) if instruction.is_lds_access() => {
                        trace.lanes_detail(addresses, u64::MAX)
                    }
                    _ => Detail::None,
                };
                trace.push(wave, at, detail);
                if instruction.op == crate::isa::Opcode::s_endpgm {
                    break;
                }
                let Some(label) = instruction.target() else {
                    at += 1;
                    continue;
                };
                let visit = visits.entry(at).or_default();
                let goes = instruction.ends_block() || (self.taken)(wave, label, *visit);
                *visit += 1;
                at = match (goes, function.labels.get(label)) {
                    (false, _) => at + 1,
                    (true, Some(to)) => *to,
                    (true, None) => {
                        return Err(format!("line {}: no label `{label}`", instruction.line));
                    }
                };
            }
        }
        Ok(trace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::parse;

    #[test]
    fn a_walk_follows_branches() {
        let program = parse(
            "f:\n.L1:\n s_cbranch_scc1 .L2\n s_nop 0\n.L2:\n s_cbranch_scc0 .L1\n s_endpgm\n s_nop 5\n",
        )
        .unwrap();
        // Wave 1 skips the s_nop; both run the loop three times.
        let walk = Walk {
            waves: 2,
            taken: &|wave, label, visit| match label {
                ".L2" => wave == 1,
                _ => visit < 2,
            },
            addresses: &|_, _| None,
            limit: 100,
        };
        let trace = walk.trace(&program.functions[0]).unwrap();
        let order =
            |wave: usize| -> Vec<u32> { trace.waves[wave].iter().map(|s| s.instruction).collect() };
        assert_eq!(order(0), [0, 1, 2, 0, 1, 2, 0, 1, 2, 3]);
        assert_eq!(order(1), [0, 2, 0, 2, 0, 2, 3]);
        let endless = Walk {
            taken: &|_, _, _| true,
            ..walk
        };
        assert!(endless.trace(&program.functions[0]).is_err());
    }

    #[test]
    fn equal_lanes_are_kept_once() {
        let mut trace = Trace::new(1);
        let a = trace.lanes_detail([0; LANES], u64::MAX);
        let b = trace.lanes_detail([4; LANES], u64::MAX);
        assert_eq!(trace.lanes_detail([0; LANES], u64::MAX), a);
        assert_ne!(trace.lanes_detail([0; LANES], 1), a);
        assert_ne!(a, b);
        assert_eq!(trace.address_sets(), 3);
    }
}
