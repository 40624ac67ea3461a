//! Loads and stores that exchange bytes between lanes: `ldmatrix`, `stmatrix`, `ds_read_tr`.

use tilewright_layout::lanes::ldmatrix;

/// The exchange of one instruction.
#[derive(Debug)]
pub(super) struct Spread {
    pub pieces: Vec<Piece>,
}

/// Bytes that one lane gives the address of and another one receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// The lane that gives the address.
    pub giver: u8,
    /// The byte from that address on.
    pub from: u8,
    /// The lane that has the bytes in registers.
    pub lane: u8,
    /// The byte of its registers.
    pub to: u8,
    pub len: u8,
}

impl Spread {
    /// `ldmatrix` of some matrices, or `stmatrix` read backwards: lane `8i + r` gives row `r` of
    /// matrix `i`. `None` where there is no such instruction.
    pub fn matrix(tiles: u8, bits: u32, trans: bool) -> Option<Spread> {
        let map = ldmatrix::lane_map(tiles.into(), bits.into(), trans).ok()?;
        let (columns, bytes) = (128 / i64::from(bits), bits as u8 / 8);
        let mut pieces = Vec::new();
        for tile in 0..i64::from(tiles) {
            for row in 0..8 {
                for column in 0..columns {
                    for holder in map.holders(&[tile, row, column]) {
                        pieces.push(Piece {
                            giver: (8 * tile + row) as u8,
                            from: column as u8 * bytes,
                            lane: holder.thread as u8,
                            to: holder.slot as u8 * bytes,
                            len: bytes,
                        });
                    }
                }
            }
        }
        Some(Spread::joined(pieces))
    }

    /// gfx950's transposing reads: groups of 16 lanes read 8 bytes each, together the rows of a
    /// tile of 16 columns; lane `i` of the group receives column `i`. Four lanes read a row of
    /// 16-bit elements, two a row of 8-bit ones.
    pub fn ds_read_tr(bits: u32) -> Option<Spread> {
        if !matches!(bits, 8 | 16) {
            return None;
        }
        let bytes = (bits / 8) as u8;
        let elements = 8 / bytes;
        let per_row = 16 / elements;
        let mut pieces = Vec::new();
        for lane in 0..64 {
            let (group, column) = (lane / 16 * 16, lane % 16);
            for row in 0..elements {
                pieces.push(Piece {
                    giver: group + row * per_row + column / elements,
                    from: column % elements * bytes,
                    lane,
                    to: row * bytes,
                    len: bytes,
                });
            }
        }
        Some(Spread::joined(pieces))
    }

    /// Pieces that follow each other on both sides become one.
    fn joined(mut pieces: Vec<Piece>) -> Spread {
        pieces.sort_by_key(|p| (p.giver, p.from));
        let mut joined: Vec<Piece> = Vec::with_capacity(pieces.len());
        for piece in pieces {
            match joined.last_mut() {
                Some(last)
                    if (last.giver, last.lane) == (piece.giver, piece.lane)
                        && last.from + last.len == piece.from
                        && last.to + last.len == piece.to =>
                {
                    last.len += piece.len;
                }
                _ => joined.push(piece),
            }
        }
        Spread { pieces: joined }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exchange of `ldmatrix` in the words of the PTX manual: lane `l` receives bytes
    /// `4 (l % 4) ..` of row `l / 4`, in register `i` for matrix `i`.
    #[test]
    fn ldmatrix_is_the_manuals() {
        for bits in [8, 16, 32] {
            let spread = Spread::matrix(4, bits, false).expect("it exists");
            assert_eq!(spread.pieces.len(), 4 * 32, "words are whole");
            for p in &spread.pieces {
                let (tile, row) = (p.giver / 8, p.giver % 8);
                assert_eq!(p.lane, 4 * row + p.from / 4);
                assert_eq!((p.to, p.len), (4 * tile, 4));
            }
        }
        let spread = Spread::matrix(2, 16, true).expect("it exists");
        for p in &spread.pieces {
            let (tile, row, column) = (p.giver / 8, p.giver % 8, p.from / 2);
            assert_eq!(p.lane, 4 * column + row / 2);
            assert_eq!(p.to, 4 * tile + row % 2 * 2);
        }
        assert!(Spread::matrix(4, 32, true).is_none());
        assert!(Spread::matrix(3, 16, false).is_none());
    }

    /// Every byte that is read is received once.
    #[test]
    fn exchanges_are_bijections() {
        let tables = [
            (Spread::matrix(1, 16, false), 8, 16, 4),
            (Spread::matrix(2, 16, true), 16, 16, 8),
            (Spread::matrix(4, 8, false), 32, 16, 16),
            (Spread::ds_read_tr(16), 64, 8, 8),
            (Spread::ds_read_tr(8), 64, 8, 8),
        ];
        for (spread, givers, row, registers) in tables {
            let spread = spread.expect("it exists");
            let mut given = vec![false; givers * row];
            let mut received = vec![false; 64 * registers];
            for p in &spread.pieces {
                for i in 0..usize::from(p.len) {
                    let from = usize::from(p.giver) * row + usize::from(p.from) + i;
                    let to = usize::from(p.lane) * registers + usize::from(p.to) + i;
                    assert!(!std::mem::replace(&mut given[from], true));
                    assert!(!std::mem::replace(&mut received[to], true));
                }
            }
            assert!(given.iter().all(|&g| g));
        }
    }
}
