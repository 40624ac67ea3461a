//! NVIDIA: 32 banks of four bytes, 32 lanes.
//!
//! Source: CUDA C++ Programming Guide, shared memory of compute capability 5.x and later: a
//! warp's access of up to four bytes a lane is one phase, of eight bytes two (the halves of the
//! warp), of sixteen bytes four (its quarters). Lanes that touch one word share it. `ldmatrix`
//! reads eight rows of sixteen bytes a matrix: each matrix is a phase of the eight lanes that
//! give its addresses.

use super::{Cost, Kind, Lanes, in_phases, neighbours};

const BANKS: u32 = 32;

const WHOLE: [Lanes; 1] = neighbours(32);
const HALVES: [Lanes; 2] = neighbours(16);
const QUARTERS: [Lanes; 4] = neighbours(8);

/// The cost of a load or store of `width` bytes a lane.
pub fn cost(kind: Kind, width: u32, lanes: &[Option<u32>]) -> Option<Cost> {
    let phases: &[Lanes] = match (kind, width) {
        (Kind::Read | Kind::Write, 1 | 2 | 4) => &WHOLE,
        (Kind::Read | Kind::Write, 8) => &HALVES,
        (Kind::Read | Kind::Write, 16) => &QUARTERS,
        _ => return None,
    };
    Some(in_phases(BANKS, width, lanes, phases))
}

/// The cost of `ldmatrix` or `stmatrix`: the addresses of eight rows a matrix, at most four.
pub fn matrix_cost(rows: &[u32]) -> Cost {
    let lanes: Vec<Option<u32>> = rows.iter().copied().map(Some).collect();
    in_phases(BANKS, 16, &lanes, &QUARTERS)
}
