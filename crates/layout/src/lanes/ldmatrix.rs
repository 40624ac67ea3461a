//! `ldmatrix` and `stmatrix`: 8 rows of 16 bytes, spread over a warp.
//!
//! Source: PTX ISA, sections on `ldmatrix` and `stmatrix`. Lane `8i + r` gives the address of
//! row `r` of matrix `i`. The 16 bytes of row `r` go to the lanes `4r .. 4r + 4`, four bytes
//! each, in register `i`. With `.trans` (16-bit elements) the matrix is transposed on the way:
//! lane `l` receives the elements `(2 (l % 4), l / 4)` and `(2 (l % 4) + 1, l / 4)`. `stmatrix`
//! is the same map read backwards.

use crate::Fragment;
use crate::Layout;
use crate::LayoutError;
use crate::radix::Digit;

const MATRIX: usize = 0;
const ROW: usize = 1;
const COL: usize = 2;

/// From `(matrix, row, column)` of what is in memory to the lane and element that receives it.
/// `count` is 1, 2 or 4, `bits` the width of an element; `trans` needs 16-bit elements.
pub fn lane_map(count: i64, bits: i64, trans: bool) -> Result<Fragment, LayoutError> {
    let refuse = |what: String| Err(LayoutError::NotAMap { what });
    if !matches!(count, 1 | 2 | 4) {
        return refuse(format!("ldmatrix.x{count}"));
    }
    if !matches!(bits, 8 | 16 | 32) || (trans && bits != 16) {
        let trans = if trans { ".trans" } else { "" };
        return refuse(format!("ldmatrix{trans} of {bits}-bit elements"));
    }
    let packed = 32 / bits;
    let shape = [count, 8, 4 * packed];
    let (lanes, low) = if trans {
        let lanes = [Digit::new(ROW, 2, 4), Digit::new(COL, 1, 8)];
        (lanes, Digit::new(ROW, 1, 2))
    } else {
        let lanes = [Digit::new(COL, packed, 4), Digit::new(ROW, 1, 8)];
        (lanes, Digit::new(COL, 1, packed))
    };
    let slots = [low, Digit::new(MATRIX, 1, count)];
    Fragment::from_digits(&shape, 1, &lanes, &slots)
}

/// From `(matrix, row)` to the lane that gives the row's address. With fewer than four matrices
/// the other lanes' addresses are ignored.
pub fn address_lanes(count: i64) -> Result<Layout, LayoutError> {
    Layout::linear(&[count, 8])?.within(&[32])
}

/// From `(row, column)` of a tile of `down` by `across` matrices to `(matrix, row, column)`. They
/// are numbered down first, then across: with this order `ldmatrix.x4` fills the A operand of
/// `mma.sync`, register by register.
pub fn tile_order(down: i64, across: i64, bits: i64) -> Result<Layout, LayoutError> {
    let cols = 128 / bits;
    let outer = Layout::strided(&[down, across], &[1, down])?;
    let order = Layout::concat(&outer, &Layout::identity(&[8, cols])?)?;
    // (down, across, row, column) -> (down, row, across, column), then join the pairs.
    let order = order.permute(&[0, 2, 1, 3])?;
    order.reshape(&[8 * down, cols * across])
}
