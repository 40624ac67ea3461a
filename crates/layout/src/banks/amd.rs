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

use tilewright_ir::target::Target;

use super::{Cost, Kind, in_phases, neighbours};

const LANES: usize = 64;

/// Runs of lanes that form a phase, for lanes 0 to 31; the other half of the wave follows.
type Runs = &'static [&'static [(u8, u8)]];

const EIGHT_PHASES: Runs = &[
    &[(0, 4), (20, 24)],
    &[(4, 8), (16, 20)],
    &[(8, 12), (28, 32)],
    &[(12, 16), (24, 28)],
];

const FOUR_PHASES: Runs = &[
    &[(0, 4), (12, 16), (20, 28)],
    &[(4, 12), (16, 20), (28, 32)],
];

/// The cost of a DS instruction of `width` bytes a lane.
pub fn cost(target: Target, kind: Kind, width: u32, lanes: &[Option<u32>]) -> Option<Cost> {
    let wide = match target {
        Target::Gfx942 => false,
        Target::Gfx950 => true,
        Target::Sm80 | Target::Sm90a => return None,
    };
    let (banks, phases) = match (kind, width) {
        (Kind::ReadTransposed, _) if !wide => return None,
        (Kind::ReadTransposed, 8) => (64, neighbours(2, LANES)),
        (Kind::ReadTransposed, 12) => (32, both_halves(EIGHT_PHASES)),
        (Kind::Read, 1 | 2 | 4) if wide => (64, neighbours(1, LANES)),
        (Kind::Read, 8) if wide => (64, neighbours(2, LANES)),
        (Kind::Read, 16) if wide => (64, both_halves(FOUR_PHASES)),
        (Kind::Read | Kind::Write, 1 | 2 | 4) => (32, neighbours(2, LANES)),
        (Kind::Read | Kind::Write, 8) => (32, neighbours(4, LANES)),
        (Kind::Read, 12 | 16) => (32, both_halves(EIGHT_PHASES)),
        (Kind::Write, 12 | 16) => (32, neighbours(8, LANES)),
        _ => return None,
    };
    Some(in_phases(
        banks,
        width,
        lanes,
        phases.iter().map(Vec::as_slice),
    ))
}

fn both_halves(runs: Runs) -> Vec<Vec<u8>> {
    let half = |offset: u8| {
        runs.iter().map(move |phase| {
            let lanes = phase.iter().flat_map(|&(from, to)| from..to);
            lanes.map(|l| l + offset).collect()
        })
    };
    half(0).chain(half(32)).collect()
}
