//! Tiles in shared memory as the bulk copy engine writes and reads them.
//!
//! Source: CUDA driver API, `cuTensorMapEncodeTiled`; PTX ISA, "Tensor copy restrictions". A box
//! lies in shared memory row by row without gaps, its bytes permuted by the swizzle of the tensor's
//! map. A swizzled box is as wide as the swizzle's span, and starts where the permutation does.

use tilewright_ir::TmaBox;

use crate::swizzle::Swizzle;
use crate::{Family, Place};

/// How boxes of a tile lie in shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BulkTile {
    pub swizzle: Swizzle,
    /// The box that the tile is made of, in elements.
    pub rows: i64,
    pub cols: i64,
}

/// Bytes that a row of a box is a multiple of.
const PIECE: i64 = 16;

/// Bytes that the start of any box is a multiple of.
const ALIGN: i64 = 128;

impl BulkTile {
    /// The swizzles that the engine has.
    pub const SWIZZLES: [Swizzle; 4] = [Swizzle::NONE, Swizzle::B32, Swizzle::B64, Swizzle::B128];

    /// Of a tile of rows with a place (none is row-major): the largest box that it is made of.
    /// Dimensions before the last two stack whole tiles. `None` where no box lies like that.
    pub fn of(place: Option<&Place>, shape: &[i64], bits: i64) -> Option<BulkTile> {
        let (rows, cols) = match *shape {
            [cols] => (1, cols),
            [.., rows, cols] => (rows, cols),
            [] => return None,
        };
        let row = cols * bits / 8;
        let swizzle = match place.map_or(&Family::Linear, |p| p.family()) {
            Family::Linear => Swizzle::NONE,
            Family::Panels(swizzle) => *swizzle,
            Family::Swizzle(xor) => xor.of_bytes(row)?,
            Family::Padded(_) | Family::Other => return None,
        };
        if !BulkTile::SWIZZLES.contains(&swizzle) {
            return None;
        }
        let swizzled = swizzle != Swizzle::NONE;
        let width = if swizzled {
            swizzle.span * 8 / bits
        } else {
            cols
        };
        let most = i64::from(TmaBox::MAX_EXTENT);
        if bits % 8 != 0 || width > most || width * bits / 8 % PIECE != 0 || cols % width != 0 {
            return None;
        }
        // Boxes below each other start where the permutation does.
        let step = if swizzled {
            swizzle.period() / swizzle.span
        } else {
            1
        };
        let fits = |r: &i64| rows % r == 0 && (*r == rows || r % step == 0);
        Some(BulkTile {
            swizzle,
            rows: (1..=rows.min(most)).rev().find(fits)?,
            cols: width,
        })
    }

    /// Whether a box of these last two extents lies in the tile as the engine has it: one of the
    /// tile's own, or fewer rows of it.
    pub fn takes(&self, rows: i64, cols: i64) -> bool {
        cols == self.cols && rows <= self.rows
    }

    /// What boxes start at multiples of, in bytes of shared memory.
    pub fn align(&self) -> i64 {
        self.swizzle.period().max(ALIGN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every element of every box is where the layout has it.
    #[test]
    fn boxes_lie_as_the_engine_has_them() {
        let panels = |swizzle| Some(Family::Panels(swizzle));
        for (shape, bits, family) in [
            ([128, 64], 16, panels(Swizzle::B128)),
            ([256, 128], 16, panels(Swizzle::B128)),
            ([512, 64], 16, panels(Swizzle::B128)),
            ([72, 32], 16, panels(Swizzle::B64)),
            ([100, 64], 16, panels(Swizzle::B32)),
            ([320, 128], 8, panels(Swizzle::B128)),
            ([64, 72], 16, None),
        ] {
            let place = family.map(|f| Place::new(f, &shape, bits).unwrap());
            let tile = BulkTile::of(place.as_ref(), &shape, bits).unwrap();
            let place = place.unwrap_or_else(|| Place::new(Family::Linear, &shape, bits).unwrap());
            let bytes = bits / 8;
            for first_row in (0..shape[0]).step_by(tile.rows as usize) {
                for first_col in (0..shape[1]).step_by(tile.cols as usize) {
                    let start = place.offset(&[first_row, first_col]) * bytes;
                    for r in 0..tile.rows {
                        for c in 0..tile.cols {
                            let at = start + (r * tile.cols + c) * bytes;
                            let wanted = place.offset(&[first_row + r, first_col + c]) * bytes;
                            assert_eq!(tile.swizzle.apply(at), wanted, "{shape:?} {r} {c}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn boxes_are_no_larger_than_the_engine_takes() {
        let place = Place::new(Family::Panels(Swizzle::B128), &[512, 64], 16).unwrap();
        let tile = BulkTile::of(Some(&place), &[512, 64], 16).unwrap();
        assert_eq!((tile.rows, tile.cols), (256, 64));
        // Rows of 512 elements have no box, and padded rows lie in none.
        assert_eq!(BulkTile::of(None, &[16, 512], 16), None);
        let padded = Place::new(Family::Padded(8), &[64, 64], 16).unwrap();
        assert_eq!(BulkTile::of(Some(&padded), &[64, 64], 16), None);
        // One row is a tile, too.
        let row = BulkTile::of(None, &[256], 32).unwrap();
        assert_eq!((row.rows, row.cols, row.align()), (1, 256, 128));
        assert_eq!(tile.align(), 1024);
    }
}
