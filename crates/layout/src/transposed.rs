//! Reads of shared memory that transpose across lanes (gfx950 `ds_read_b64_tr_b16`, `_b8`).
//!
//! Each group of 16 lanes reads the rows of a tile of 16 columns, 8 bytes a lane, and lane `i` of the
//! group receives column `i`. An operand of a matrix instruction whose rows in memory run along M or N
//! comes to registers by it, if its placement gives the lanes of a group neighbouring columns and the
//! slots of a lane neighbouring rows.

/// The lanes that exchange.
const GROUP: i64 = 16;

/// How a wave reads one instruction tile of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransposedRead {
    /// Elements that a lane reads, and rows that it receives.
    pub elements: i64,
    /// Instructions for the tile.
    pub count: i64,
    /// Columns of the tile, along M or N.
    columns: i64,
    /// Rows that a lane holds, along K.
    rows: i64,
}

impl TransposedRead {
    /// The reads of a tile of so many `columns` whose lanes hold `slots` elements each, where `held`
    /// says which element, its column and its row, a lane holds in a slot. `None` where such reads do
    /// not give the lanes what they hold.
    pub fn of(
        bits: i64,
        (columns, slots): (i64, i64),
        held: impl Fn(i64, i64) -> Option<[i64; 2]>,
    ) -> Option<TransposedRead> {
        if !matches!(bits, 8 | 16) {
            return None;
        }
        let elements = 64 / bits;
        if columns % GROUP != 0 || slots % elements != 0 {
            return None;
        }
        let read = TransposedRead {
            elements,
            count: slots / elements,
            columns,
            rows: slots,
        };
        let fits = |lane: i64, slot: i64| {
            let [column, row] = read.first(lane, slot / elements);
            let wanted = [column + lane % GROUP, row + slot % elements];
            held(lane, slot) == Some(wanted)
        };
        let lanes = 0..4 * GROUP;
        let all = lanes.flat_map(|lane| (0..slots).map(move |slot| (lane, slot)));
        let mut all = all.map(|(lane, slot)| fits(lane, slot));
        all.all(|fits| fits).then_some(read)
    }

    /// The first column and row of what a lane's group reads by one of the instructions.
    fn first(&self, lane: i64, instruction: i64) -> [i64; 2] {
        let group = lane / GROUP;
        let across = self.columns / GROUP;
        [
            group % across * GROUP,
            group / across * self.rows + instruction * self.elements,
        ]
    }

    /// Groups of lanes beside each other along the columns.
    pub fn groups_across(&self) -> i64 {
        self.columns / GROUP
    }

    /// Rows that a lane holds.
    pub fn rows(&self) -> i64 {
        self.rows
    }

    /// Lanes that read a row of a group's tile.
    pub fn lanes_a_row(&self) -> i64 {
        GROUP / self.elements
    }

    /// The column and row whose address a lane gives.
    pub fn given(&self, lane: i64, instruction: i64) -> [i64; 2] {
        let [column, row] = self.first(lane, instruction);
        let (own, in_row) = (lane % GROUP, self.lanes_a_row());
        [column + own % in_row * self.elements, row + own / in_row]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The operand of a matrix instruction of so many columns: lane `i + columns * (k / slots)`.
    fn held(columns: i64, slots: i64) -> impl Fn(i64, i64) -> Option<[i64; 2]> {
        move |lane, slot| Some([lane % columns, lane / columns * slots + slot])
    }

    #[test]
    fn operands_of_matrix_instructions_are_read_so() {
        for (bits, columns, slots) in [(16, 16, 8), (16, 32, 8), (16, 16, 4), (8, 16, 32)] {
            let read = TransposedRead::of(bits, (columns, slots), held(columns, slots));
            let read = read.expect("it fits");
            // What the lanes of a group give is the tile that they receive, each element once.
            let mut given = Vec::new();
            for instruction in 0..read.count {
                for lane in 0..64 {
                    let [column, row] = read.given(lane, instruction);
                    given.extend((0..read.elements).map(|e| [column + e, row]));
                }
            }
            let mut received = Vec::new();
            for lane in 0..64 {
                received.extend((0..slots).filter_map(|slot| held(columns, slots)(lane, slot)));
            }
            given.sort_unstable();
            received.sort_unstable();
            assert_eq!(given, received);
        }
    }

    #[test]
    fn other_placements_are_not() {
        assert_eq!(TransposedRead::of(32, (16, 8), held(16, 8)), None);
        assert_eq!(TransposedRead::of(16, (16, 2), held(16, 2)), None);
        let turned = |lane: i64, slot: i64| Some([15 - lane % 16, lane / 16 * 8 + slot]);
        assert_eq!(TransposedRead::of(16, (16, 8), turned), None);
    }
}
