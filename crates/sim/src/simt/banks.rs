//! What accesses cost the banks of shared memory: the layout crate's counting, for any width.

use tilewright_ir::Target;
use tilewright_layout::banks::{self, Cost};

pub(super) use tilewright_layout::banks::Kind;

/// The cost of one access of a warp. A width that the target has no instruction for is served
/// in pieces, widest first.
pub(super) fn cost(target: Target, kind: Kind, bytes: u32, lanes: &[Option<u32>]) -> Cost {
    if let Some(cost) = banks::cost(target, kind, bytes, lanes) {
        return cost;
    }
    let mut total = Cost::default();
    let mut done = 0;
    while done < bytes {
        let piece = [16, 8, 4, 2, 1].into_iter().find_map(|piece: u32| {
            if piece > bytes - done {
                return None;
            }
            let moved: Vec<Option<u32>> = lanes.iter().map(|a| a.map(|a| a + done)).collect();
            Some((piece, banks::cost(target, kind, piece, &moved)?))
        });
        let Some((piece, cost)) = piece else { break };
        total = total + cost;
        done += piece;
    }
    total
}

/// The cost of `ldmatrix` or `stmatrix` with these row addresses.
pub(super) fn matrix_cost(rows: &[u32]) -> Cost {
    banks::nvidia::matrix_cost(rows)
}
