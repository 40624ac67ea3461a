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

use tilewright_ir::target::{BankPhases, Target};

use crate::radix::ones;

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
    match target.machine().shared.phases {
        BankPhases::Neighbours => nvidia::cost(kind, width, lanes),
        BankPhases::Mixed32 => amd::cost(false, kind, width, lanes),
        BankPhases::Mixed64 => amd::cost(true, kind, width, lanes),
    }
}

/// The lanes of a phase, one bit a lane.
type Lanes = u64;

/// The cycles of one phase: the words of its busiest bank, and zero when no lane takes part.
fn phase(banks: u32, width: u32, lanes: &[Option<u32>], members: Lanes) -> u32 {
    let addresses = || ones(members).filter_map(|lane| lanes.get(lane).copied().flatten());
    // Vectors at multiples of their width have the same banks or none in common, so that they
    // count as words of wider banks.
    let wide = width > 4 && width.is_power_of_two() && banks.is_multiple_of(width / 4);
    let aligned = wide && addresses().fold(0, |all, address| all | address) % width == 0;
    let (unit, banks) = match aligned {
        true => (width, banks * 4 / width),
        false => (4, banks),
    };
    // The first word of each bank; further ones are conflicts and go on a list, each once.
    let mut first = [None; MAX_BANKS];
    let mut count = [0u32; MAX_BANKS];
    let mut further: Vec<u32> = Vec::new();
    for address in addresses() {
        for word in address / unit..=(address + width.max(1) - 1) / unit {
            let bank = (word % banks) as usize;
            let known = match first[bank] {
                None => {
                    first[bank] = Some(word);
                    false
                }
                Some(w) if w == word => true,
                Some(_) => {
                    let known = count[bank] > 1 && further.contains(&word);
                    if !known {
                        further.push(word);
                    }
                    known
                }
            };
            count[bank] += u32::from(!known);
        }
    }
    count.into_iter().max().unwrap_or(0)
}

const MAX_BANKS: usize = 64;

/// The sum of the phases.
fn in_phases(banks: u32, width: u32, lanes: &[Option<u32>], phases: &[Lanes]) -> Cost {
    phases.iter().fold(Cost::default(), |cost, &members| {
        let cycles = phase(banks, width, lanes, members);
        cost + Cost {
            cycles,
            ideal: cycles.min(1),
        }
    })
}

/// `N` phases of `each` neighbouring lanes.
const fn neighbours<const N: usize>(each: u32) -> [Lanes; N] {
    let mut phases = [0; N];
    let mut i = 0;
    while i < N {
        phases[i] = (u64::MAX >> (64 - each)) << (i as u32 * each);
        i += 1;
    }
    phases
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of the busiest bank, listed one by one.
    fn plain(banks: u32, width: u32, lanes: &[Option<u32>], members: Lanes) -> u32 {
        let addresses = ones(members).filter_map(|lane| lanes[lane]);
        let words = addresses.flat_map(|a| a / 4..=(a + width - 1) / 4);
        let words: std::collections::BTreeSet<u32> = words.collect();
        let of_bank = |b: u32| words.iter().filter(|w| **w % banks == b).count() as u32;
        (0..banks).map(of_bank).max().unwrap_or(0)
    }

    #[test]
    fn a_phase_costs_the_words_of_its_busiest_bank() {
        let mut random = 0x9e37_79b9u32;
        let mut next = |below: u32| {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            random % below
        };
        for round in 0..4000 {
            let width = [1, 2, 4, 8, 12, 16][round % 6];
            let align = [1, 4, 8, 16, width][next(5) as usize];
            let range = [64, 512, 8192][next(3) as usize];
            let lane = |_| (next(8) > 0).then(|| next(range) * align);
            let lanes: Vec<Option<u32>> = (0..64).map(lane).collect();
            let members = u64::from(next(u32::MAX)) << 32 | u64::from(next(u32::MAX));
            for banks in [32, 64] {
                let expected = plain(banks, width, &lanes, members);
                assert_eq!(phase(banks, width, &lanes, members), expected);
            }
        }
    }
}
