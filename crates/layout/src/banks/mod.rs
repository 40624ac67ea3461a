//! Counting shared-memory cycles, by the phases in which the hardware serves a warp.
//!
//! Shared memory has banks of four bytes; a bank gives one word a cycle. A warp's access is
//! served in *phases*: fixed sets of lanes whose words are fetched together. Lanes of a phase
//! that read the same word share it; different words of one bank take a cycle each. So a phase
//! costs as many cycles as its busiest bank has words, and an access costs the sum of its
//! phases.
//!
//! | | banks | phases of a 16-byte read |
//! |---|---|---|
//! | NVIDIA | 32 | four, of eight neighbouring lanes |
//! | gfx942 | 32 | eight, of two runs of four lanes |
//! | gfx950 | 64 | four, of three runs of lanes |

pub mod amd;
pub mod nvidia;

use tilewright_ir::target::Target;

/// What lanes do with shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    Read,
    Write,
    /// A read that transposes across lanes (`ds_read_b64_tr_b16` and its kin).
    ReadTransposed,
}

/// The price of one access of a warp.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Cost {
    /// Cycles the banks are busy.
    pub cycles: u32,
    /// Cycles it would take if no two words shared a bank.
    pub ideal: u32,
}

impl Cost {
    /// Cycles lost to words that share a bank.
    pub fn conflicts(self) -> u32 {
        self.cycles - self.ideal
    }
}

impl std::ops::Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost {
            cycles: self.cycles + other.cycles,
            ideal: self.ideal + other.ideal,
        }
    }
}

/// The cost of one access of a warp: the byte address of each lane, `None` for lanes that do
/// not take part, and the bytes each moves. `None` where the target has no such access.
pub fn cost(target: Target, kind: Kind, width: u32, lanes: &[Option<u32>]) -> Option<Cost> {
    match target {
        Target::Sm80 | Target::Sm90a => nvidia::cost(kind, width, lanes),
        Target::Gfx942 | Target::Gfx950 => amd::cost(target, kind, width, lanes),
    }
}

/// The cycles of one phase: the words of its busiest bank, and zero when no lane takes part.
fn phase(banks: u32, width: u32, addresses: impl Iterator<Item = u32>) -> u32 {
    // (bank, word) pairs; a phase has at most 64 lanes of 4 words.
    let mut words: Vec<(u32, u32)> = Vec::new();
    for address in addresses {
        let first = address / 4;
        let last = (address + width.max(1) - 1) / 4;
        words.extend((first..=last).map(|w| (w % banks, w)));
    }
    words.sort_unstable();
    words.dedup();
    let runs = words.chunk_by(|a, b| a.0 == b.0);
    runs.map(|run| run.len() as u32).max().unwrap_or(0)
}

/// Sums phases given as lists of lanes.
fn in_phases<'a>(
    banks: u32,
    width: u32,
    lanes: &[Option<u32>],
    phases: impl IntoIterator<Item = &'a [u8]>,
) -> Cost {
    let mut cost = Cost::default();
    for members in phases {
        let address = |&l: &u8| lanes.get(l as usize).copied().flatten();
        let cycles = phase(banks, width, members.iter().filter_map(address));
        cost.cycles += cycles;
        cost.ideal += cycles.min(1);
    }
    cost
}

/// `count` phases of neighbouring lanes.
fn neighbours(count: usize, lanes: usize) -> Vec<Vec<u8>> {
    let each = lanes / count;
    (0..count)
        .map(|p| (p * each..(p + 1) * each).map(|l| l as u8).collect())
        .collect()
}
