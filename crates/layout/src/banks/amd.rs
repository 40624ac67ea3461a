//! AMD: gfx942 with 32 banks, gfx950 with 64, 64 lanes.
//!
//! The phases of reads are measured, by HipKittens on MI355X
//! (`analysis/paper_experiments/phases`) and by PYHIP on MI300 (`archive/bank-conflict`); lanes
//! are not taken in order. What is not published is marked *assumed*: neighbouring lanes, as
//! many at a time as the banks are wide.
//!
//! | access | gfx942 (32 banks) | gfx950 |
//! |---|---|---|
//! | read 4 B | 2 × 32 lanes, assumed | 1 × 64 lanes on 64 banks, assumed |
//! | read 8 B | 4 × 16 neighbours | 2 × 32 neighbours on 64 banks |
//! | read 12 B | 8 × 8, as 16 B; assumed | 8 × 8 on 32 banks: 0-3 20-23, 4-7 16-19, … |
//! | read 16 B | 8 × 8: 0-3 20-23, 4-7 16-19, 8-11 28-31, 12-15 24-27, + 32 | 4 × 16 on 64 banks: 0-3 12-15 20-27, 4-11 16-19 28-31, + 32 |
//! | write 4 B | 2 × 32, assumed | 2 × 32 on 32 banks, assumed |
//! | write 8 B | 4 × 16, assumed | 4 × 16 neighbours on 32 banks |
//! | write 12, 16 B | 8 × 8 neighbours, assumed | 8 × 8 neighbours on 32 banks, assumed |
//! | transposed read | none | as the plain read of its width; unpublished, assumed |

use super::{Cost, Kind, Lanes, in_phases, neighbours};

const ONE: [Lanes; 1] = neighbours(64);
const TWO: [Lanes; 2] = neighbours(32);
const FOUR: [Lanes; 4] = neighbours(16);
const EIGHT: [Lanes; 8] = neighbours(8);

/// Lanes 0-3 and 20-23, 4-7 and 16-19, 8-11 and 28-31, 12-15 and 24-27; then the same of the
/// upper half of the wave.
const EIGHT_MIXED: [Lanes; 8] = both_halves([0x00f0_000f, 0x000f_00f0, 0xf000_0f00, 0x0f00_f000]);

/// Lanes 0-3, 12-15 and 20-27, and the others of 0-31; then the same of the upper half.
const FOUR_MIXED: [Lanes; 4] = both_halves([0x0ff0_f00f, 0xf00f_0ff0]);

const fn both_halves<const N: usize, const M: usize>(lower: [Lanes; N]) -> [Lanes; M] {
    let mut all = [0; M];
    let mut i = 0;
    while i < N {
        all[i] = lower[i];
        all[N + i] = lower[i] << 32;
        i += 1;
    }
    all
}

/// The cost of a DS instruction of `width` bytes a lane; `wide` is with reads on 64 banks, as
/// gfx950 has them.
pub(super) fn cost(wide: bool, kind: Kind, width: u32, lanes: &[Option<u32>]) -> Option<Cost> {
    // Three reads of eight bytes one behind the other: no instruction has 24.
    if (kind, width) == (Kind::Read, 24) {
        let read = |at: u32| {
            let lanes: Vec<_> = lanes.iter().map(|lane| lane.map(|b| b + at)).collect();
            cost(wide, kind, 8, &lanes)
        };
        return Some(read(0)? + read(8)? + read(16)?);
    }
    let (banks, phases): (u32, &[Lanes]) = match (kind, width) {
        (Kind::ReadTransposed, _) if !wide => return None,
        (Kind::ReadTransposed, 8) => (64, &TWO),
        (Kind::ReadTransposed, 12) => (32, &EIGHT_MIXED),
        (Kind::Read, 1 | 2 | 4) if wide => (64, &ONE),
        (Kind::Read, 8) if wide => (64, &TWO),
        (Kind::Read, 16) if wide => (64, &FOUR_MIXED),
        (Kind::Read | Kind::Write, 1 | 2 | 4) => (32, &TWO),
        (Kind::Read | Kind::Write, 8) => (32, &FOUR),
        (Kind::Read, 12 | 16) => (32, &EIGHT_MIXED),
        (Kind::Write, 12 | 16) => (32, &EIGHT),
        _ => return None,
    };
    Some(in_phases(banks, width, lanes, phases))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lane_is_in_one_phase() {
        let tables: [&[Lanes]; 6] = [&ONE, &TWO, &FOUR, &EIGHT, &EIGHT_MIXED, &FOUR_MIXED];
        for phases in tables {
            assert_eq!(phases.iter().fold(0, |all, p| all | p), u64::MAX);
            let lanes: u32 = phases.iter().map(|p| p.count_ones()).sum();
            assert_eq!(lanes, 64);
            assert!(
                phases
                    .iter()
                    .all(|p| p.count_ones() == phases[0].count_ones())
            );
        }
        let lanes = |p: Lanes| crate::radix::ones(p).collect::<Vec<_>>();
        assert_eq!(lanes(EIGHT_MIXED[3]), [12, 13, 14, 15, 24, 25, 26, 27]);
        let expected: Vec<usize> = (4..12).chain(16..20).chain(28..32).collect();
        assert_eq!(lanes(FOUR_MIXED[1]), expected);
    }
}
