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
    /// Neighbouring rows that a lane holds, along K.
    run: i64,
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
            run: run_of(slots, &held),
        };
        if read.run % elements != 0 {
            return None;
        }
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
        let (group, across) = (lane / GROUP, self.groups_across());
        let row = instruction * self.elements;
        [
            group % across * GROUP,
            group / across * self.run + row % self.run + row / self.run * self.between_runs(),
        ]
    }

    /// Groups of lanes beside each other along the columns.
    pub fn groups_across(&self) -> i64 {
        self.columns / GROUP
    }

    /// Instructions for a run of neighbouring rows of a lane.
    pub fn count_a_run(&self) -> i64 {
        self.run / self.elements
    }

    /// Rows from one run of a lane to its next one: all lanes have one there.
    pub fn between_runs(&self) -> i64 {
        self.run * (4 / self.groups_across())
    }

    /// Neighbouring rows that a lane holds.
    pub fn run(&self) -> i64 {
        self.run
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

/// How many rows follow each other in the first slots of the first lane.
fn run_of(slots: i64, held: impl Fn(i64, i64) -> Option<[i64; 2]>) -> i64 {
    let row = |slot: i64| held(0, slot).map(|[_, row]| row);
    let next = |slot: &i64| row(*slot).is_some() && row(*slot) == row(slot - 1).map(|row| row + 1);
    1 + (1..slots).take_while(next).count() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The operand of a matrix instruction of so many columns: lane `i + columns * (k / slots)`.
    fn held(columns: i64, slots: i64) -> impl Fn(i64, i64) -> Option<[i64; 2]> {
        held_in_runs(columns, slots)
    }

    /// The same of lanes that hold runs, one behind those of the others.
    fn held_in_runs(columns: i64, run: i64) -> impl Fn(i64, i64) -> Option<[i64; 2]> {
        move |lane, slot| {
            let behind = slot / run * run * (64 / columns);
            Some([lane % columns, lane / columns * run + slot % run + behind])
        }
    }

    #[test]
    fn operands_of_matrix_instructions_are_read_so() {
        for (bits, columns, slots, run) in [
            (16, 16, 8, 8),
            (16, 32, 8, 8),
            (16, 16, 4, 4),
            (8, 16, 32, 32),
            (8, 16, 32, 16),
            (8, 32, 32, 16),
        ] {
            let held = held_in_runs(columns, run);
            let read = TransposedRead::of(bits, (columns, slots), &held);
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
                received.extend((0..slots).filter_map(|slot| held(lane, slot)));
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
