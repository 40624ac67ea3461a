//! NVIDIA: 32 banks of four bytes, 32 lanes.
//!
//! Source: CUDA C++ Programming Guide, shared memory of compute capability 5.x and later: a
//! warp's access of up to four bytes a lane is one phase, of eight bytes two (the halves of the
//! warp), of sixteen bytes four (its quarters). Lanes that touch one word share it. `ldmatrix`
//! reads eight rows of sixteen bytes a matrix: each matrix is a phase of the eight lanes that
//! give its addresses.

use super::{Cost, Kind, in_phases, neighbours};

const BANKS: u32 = 32;
const LANES: usize = 32;

/// The cost of a load or store of `width` bytes a lane.
pub fn cost(kind: Kind, width: u32, lanes: &[Option<u32>]) -> Option<Cost> {
    let phases = match (kind, width) {
        (Kind::Read | Kind::Write, 1 | 2 | 4) => 1,
        (Kind::Read | Kind::Write, 8) => 2,
        (Kind::Read | Kind::Write, 16) => 4,
        _ => return None,
    };
    let phases = neighbours(phases, LANES);
    Some(in_phases(
        BANKS,
        width,
        lanes,
        phases.iter().map(Vec::as_slice),
    ))
}

/// The cost of `ldmatrix` or `stmatrix` of as many matrices as there are runs of eight rows.
pub fn matrix_cost(rows: &[u32]) -> Cost {
    let lanes: Vec<Option<u32>> = rows.iter().copied().map(Some).collect();
    let phases = neighbours(
        rows.len().div_ceil(8).max(1),
        rows.len().next_multiple_of(8),
    );
    in_phases(BANKS, 16, &lanes, phases.iter().map(Vec::as_slice))
}
