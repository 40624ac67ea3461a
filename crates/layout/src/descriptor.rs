//! Tiles in shared memory as matrix instructions of a warp group are told of them.
//!
//! Source: PTX ISA, "Asynchronous warpgroup-level matrix instructions", shared memory matrix
//! layout and matrix descriptor. A tile is made of *atoms*: eight rows of the swizzle's span. Where
//! K runs along the rows, an instruction reads 32 bytes of each row, and atoms of further rows lie
//! `stride` bytes apart. Where M or N runs along them, rows are steps of K, atoms of further steps
//! lie `stride` bytes apart, and atoms of further columns `leading` bytes. The permutation is that
//! of the address itself, so tiles start at multiples of its period.

use tilewright_ir::Major;

use crate::swizzle::Swizzle;
use crate::{Family, Place};

/// How an operand lies in shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MatrixDescriptor {
    pub swizzle: Swizzle,
    /// Bytes between atoms side by side.
    pub leading: i64,
    /// Bytes between atoms one below the other.
    pub stride: i64,
}

/// Rows of an atom.
const ATOM: i64 = 8;

impl MatrixDescriptor {
    /// Of a tile of rows with a place; `None` where instructions cannot be told of that place.
    pub fn of(place: &Place, shape: &[i64], bits: i64) -> Option<MatrixDescriptor> {
        let &[.., rows, cols] = shape else {
            return None;
        };
        let swizzle = match place.family() {
            Family::Panels(swizzle) => *swizzle,
            // Without gaps the next tile starts at an atom only behind whole ones.
            Family::Swizzle(xor) if rows % ATOM == 0 => xor.of_bytes(cols * bits / 8)?,
            _ => return None,
        };
        let known = [Swizzle::B128, Swizzle::B64, Swizzle::B32];
        let height = (rows as u64).next_multiple_of(ATOM as u64) as i64;
        known.contains(&swizzle).then_some(MatrixDescriptor {
            swizzle,
            leading: height * swizzle.span,
            stride: ATOM * swizzle.span,
        })
    }

    /// The place for a tile of which instructions can be told: panels of the widest swizzle that
    /// its rows are a multiple of. `None` where there is none.
    pub fn place(shape: &[i64], bits: i64) -> Option<Place> {
        let &[.., _, cols] = shape else {
            return None;
        };
        let swizzle = Swizzle::widest(cols, bits)?;
        Place::new(Family::Panels(swizzle), shape, bits).ok()
    }

    /// Elements of a row of an atom.
    pub fn width(&self, bits: i64) -> i64 {
        self.swizzle.span * 8 / bits
    }

    /// The byte of an element of the instruction's tile that starts at a byte: so many rows and
    /// bytes of columns from there, as they lie in memory.
    pub fn byte(&self, start: i64, major: Major, row: i64, column: i64) -> i64 {
        let span = self.swizzle.span;
        let atoms = row / ATOM * self.stride + row % ATOM * span;
        let along = match major {
            // One instruction never leaves the atom.
            Major::K => column,
            Major::Mn => column / span * self.leading + column % span,
        };
        self.swizzle.apply(start + atoms + along)
    }

    /// The upper and the lower half of the descriptor without the start address, which is added to
    /// the lower one in units of 16 bytes.
    pub fn words(&self, major: Major) -> [u32; 2] {
        let mode = match self.swizzle.span {
            128 => 1,
            64 => 2,
            _ => 3,
        };
        // Where K runs along the rows, the leading offset says nothing.
        let leading = match major {
            Major::K => 1,
            Major::Mn => self.leading / 16,
        };
        [
            mode << 30 | (self.stride / 16) as u32,
            (leading as u32) << 16,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every element of every instruction's tile is where the layout has it.
    #[test]
    fn descriptors_say_where_elements_lie() {
        for (rows, cols, bits) in [
            (64, 64, 16),
            (128, 128, 16),
            (72, 32, 16),
            (256, 16, 16),
            (64, 192, 16),
            (64, 128, 8),
            (128, 32, 8),
        ] {
            let shape = [rows, cols];
            let place = MatrixDescriptor::place(&shape, bits).unwrap();
            let d = MatrixDescriptor::of(&place, &shape, bits).unwrap();
            let bytes = bits / 8;
            let byte = |row: i64, col: i64| place.offset(&[row, col]) * bytes;
            for k in (0..cols).step_by((32 / bytes) as usize) {
                for first in (0..rows).step_by(64) {
                    let start = byte(first, k);
                    for row in first..rows {
                        for col in k..k + 32 / bytes {
                            let at = d.byte(start, Major::K, row - first, (col - k) * bytes);
                            assert_eq!(at, byte(row, col), "{shape:?} {row} {col}");
                        }
                    }
                }
            }
            let width = d.width(bits);
            for k in (0..rows - rows % 16).step_by(16) {
                for first in (0..cols).step_by(width as usize) {
                    let start = byte(k, first);
                    for row in k..k + 16 {
                        for col in first..cols {
                            let at = d.byte(start, Major::Mn, row - k, (col - first) * bytes);
                            assert_eq!(at, byte(row, col), "{shape:?} {row} {col}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn other_places_have_none() {
        let shape = [64, 64];
        for family in [Family::Linear, Family::Padded(8)] {
            let place = Place::new(family, &shape, 16).unwrap();
            assert_eq!(MatrixDescriptor::of(&place, &shape, 16), None);
        }
    }
}
