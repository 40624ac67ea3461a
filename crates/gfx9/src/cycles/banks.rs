//! How long the banks of LDS are busy with an access: its phases, and the words of one bank that
//! meet in a phase.
//!
//! The hardware serves a wave in phases, fixed sets of lanes. Lanes of a phase that touch the
//! same word share it; different words of a bank take a cycle each. Which lanes make a phase was
//! measured for reads of 8, 12 and 16 bytes on gfx950 (HipKittens) and of 8 and 16 on gfx942
//! (PyHIP); the others are neighbours, as many as the banks hold.
//!
//! The layout crate has the same facts for the choice of a swizzle, and knows the IR, which this
//! crate does not; a test of the facade compares the two.

use super::trace::LaneAddresses;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    Read,
    Write,
    /// `ds_read_b64_tr_b16` and its kin.
    ReadTransposed,
}

/// Lanes 0-3 and 20-23, 4-7 and 16-19, 8-11 and 28-31, 12-15 and 24-27.
const MIXED_8: [u64; 4] = [0x00f0_000f, 0x000f_00f0, 0xf000_0f00, 0x0f00_f000];
/// Lanes 0-3, 12-15 and 20-27, and the others of the lower half.
const MIXED_16: [u64; 2] = [0x0ff0_f00f, 0xf00f_0ff0];
const MOST_BANKS: usize = 64;

/// The cycles that the banks are busy with `width` bytes a lane, at each lane's address plus
/// `offset`; zero where no lane is active.
pub fn bank_cycles(
    gfx950: bool,
    direction: Direction,
    width: u32,
    lanes: &LaneAddresses,
    offset: u32,
) -> u32 {
    let read = direction != Direction::Write;
    let of = |banks, phase| phase_cycles(banks, width, lanes, offset, phase);
    let neighbours = |banks: u32, lanes: u32| -> u32 {
        let phase = u64::MAX >> (64 - lanes);
        (0..64 / lanes)
            .map(|i| of(banks, phase << (i * lanes)))
            .sum()
    };
    let mixed = |banks: u32, phases: &[u64]| -> u32 {
        let halves = phases.iter().flat_map(|p| [*p, *p << 32]);
        halves.map(|phase| of(banks, phase)).sum()
    };
    match width {
        0..=4 if read && gfx950 => neighbours(64, 64),
        0..=4 => neighbours(32, 32),
        5..=8 if read && gfx950 => neighbours(64, 32),
        5..=8 => neighbours(32, 16),
        13.. if read && gfx950 => mixed(64, &MIXED_16),
        _ if read => mixed(32, &MIXED_8),
        _ => neighbours(32, 8),
    }
}

/// The cycles without conflicts.
pub fn least_bank_cycles(gfx950: bool, direction: Direction, width: u32) -> u32 {
    let read = direction != Direction::Write;
    match width {
        0..=4 => 1 + u32::from(!(read && gfx950)),
        5..=8 if read && gfx950 => 2,
        5..=8 => 4,
        13.. if read && gfx950 => 4,
        _ => 8,
    }
}

/// The most words that one bank gives in a phase.
fn phase_cycles(banks: u32, width: u32, lanes: &LaneAddresses, offset: u32, phase: u64) -> u32 {
    let (addresses, active) = lanes;
    let mut words: [Vec<u32>; MOST_BANKS] = [const { Vec::new() }; MOST_BANKS];
    let mut most = 0;
    for (lane, address) in addresses.iter().enumerate() {
        if (phase & active) >> lane & 1 == 0 {
            continue;
        }
        let first = address.wrapping_add(offset);
        for word in first / 4..=first.wrapping_add(width.max(1) - 1) / 4 {
            let bank = &mut words[(word % banks) as usize];
            if !bank.contains(&word) {
                bank.push(word);
                most = most.max(bank.len());
            }
        }
    }
    u32::try_from(most).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_16(gfx950: bool, address: impl Fn(u32) -> u32) -> u32 {
        let mut lanes = [0; 64];
        for (lane, at) in (0..).zip(&mut lanes) {
            *at = address(lane);
        }
        bank_cycles(gfx950, Direction::Read, 16, &(lanes, u64::MAX), 0)
    }

    /// A fragment of a 16x16x32 product: lane l has row l % 16 and 16 bytes at l / 16.
    #[test]
    fn rows_swizzled_and_plain() {
        let short = |lane: u32| (lane % 16) * 64 + lane / 16 * 16;
        let swizzled = |lane: u32| {
            let at = short(lane);
            at ^ (at % 1024) >> 9 << 5
        };
        let long = |lane: u32| (lane % 16) * 128 + lane / 16 * 16;
        assert_eq!(read_16(true, swizzled), 4);
        assert_eq!(read_16(true, short), 8);
        assert_eq!(read_16(true, long), 16);
        assert_eq!(read_16(true, |lane| lane * 16), 4);
        assert_eq!(read_16(false, |lane| lane * 16), 8);
    }

    #[test]
    fn one_word_is_shared_and_inactive_lanes_cost_nothing() {
        assert_eq!(read_16(true, |_| 64), 4);
        assert_eq!(bank_cycles(true, Direction::Read, 16, &([0; 64], 0), 0), 0);
        // A column of 256-byte rows lies in one bank.
        let mut column = [0; 64];
        for (lane, at) in (0..).zip(&mut column) {
            *at = lane * 256;
        }
        let all = (column, u64::MAX);
        assert_eq!(bank_cycles(true, Direction::Read, 4, &all, 0), 64);
        assert_eq!(bank_cycles(false, Direction::Write, 4, &all, 0), 64);
    }

    #[test]
    fn neighbours_have_no_conflicts() {
        for gfx950 in [false, true] {
            for direction in [Direction::Read, Direction::Write] {
                // Twelve bytes a lane meet in the mixed phases of reads.
                for width in [4, 8, 16] {
                    let mut lanes = [0; 64];
                    for (lane, at) in (0..).zip(&mut lanes) {
                        *at = lane * width;
                    }
                    let cycles = bank_cycles(gfx950, direction, width, &(lanes, u64::MAX), 0);
                    assert_eq!(
                        cycles,
                        least_bank_cycles(gfx950, direction, width),
                        "{gfx950} {direction:?} {width}"
                    );
                }
            }
        }
    }
}
