//! Which neighbours of C a lane of a wave holds.
//!
//! A lane has four rows of a column of C from one MFMA. Of the transposed product, `Cᵀ = Bᵀ · Aᵀ`, these
//! are four columns of a row: the same instruction with its operands exchanged. More than four it has
//! where the columns (or rows) are dealt out to the instructions so that what a lane has from one stands
//! beside what it has from the next:
//! ```text
//! run=[1, 4]   columns of lanes 0, 16, 32, 48:  0..4  4..8  8..12  12..16  of each instruction
//! run=[1, 8]                                    0..4  8..12 16..20 24..28  of the first
//!                                               4..8 12..16 20..24 28..32  of the second
//! ```
//! So results are stored 16 bytes a lane, and a product is the operand of the next one where it lies.
//!
//! An operand whose rows in memory run along columns (or rows) of C is read so many of them at a time
//! where they are dealt out one by one:
//! ```text
//! across=[1, 4]   columns of lanes 0, 1, 2, …:  0 4 8 …  1 5 9 …  2 6 10 …  3 7 11 …  of four instructions
//! ```
//! A lane has four columns of each row that its instructions take then: it reads them at once, and puts
//! what follows each other along K together in its own registers.
//!
//! Of float64 a lane has four rows that are four apart, so its runs are of one, and the rows of one
//! instruction are dealt out as those of four are above.

use tilewright_ir::{Expr, GemmPlan, MmaFamily, MmaInst};
use tilewright_layout::lanes::mfma::rows_in_a_run;
use tilewright_layout::{Fragment, LayoutError};

/// The lanes of a wave.
const LANES: i64 = 64;

/// Which neighbours a lane holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LaneRun {
    /// Along columns of C, by the transposed product.
    pub turned: bool,
    /// Neighbours of C that a lane has in any case.
    least: i64,
    /// How many of those stand beside each other.
    joined: i64,
    /// Lanes of a wave that hold parts of one row (or column).
    lanes: i64,
}

impl LaneRun {
    /// As the instruction has it.
    fn plain(inst: &MmaInst) -> LaneRun {
        LaneRun {
            turned: false,
            least: rows_in_a_run(inst),
            joined: 1,
            lanes: LANES / i64::from(inst.m).max(1),
        }
    }

    /// What a plan says, if its instruction can have it.
    pub fn of(plan: &GemmPlan) -> Option<LaneRun> {
        let plain = LaneRun::plain(&plan.inst);
        let (turned, run) = match plan.run {
            None => return Some(plain),
            Some(_) if plan.inst.family != MmaFamily::Mfma => return None,
            Some([1, run]) => (true, i64::from(run)),
            Some([run, 1]) => (false, i64::from(run)),
            Some(_) => return None,
        };
        let joined = run / plain.least;
        let whole = run % plain.least == 0 && joined > 0 && joined.count_ones() == 1;
        whole.then_some(LaneRun {
            turned,
            joined,
            ..plain
        })
    }

    /// How columns (or rows) of a wave are dealt out to its instructions.
    pub fn deal(&self) -> Deal {
        Deal {
            least: self.least,
            lanes: self.lanes,
            joined: self.joined,
        }
    }

    /// Whether runs of C are longer than the instruction has them.
    pub fn is_joined(&self) -> bool {
        self.joined > 1
    }

    /// The dimension of C along which neighbours follow each other.
    pub fn dim(&self) -> usize {
        usize::from(self.turned)
    }
}

/// How the columns (or rows) of a wave are dealt out to its instructions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Deal {
    /// Neighbours that stay together.
    least: i64,
    /// How many of those an instruction has.
    lanes: i64,
    /// How many instructions have one of those each, in turn.
    joined: i64,
}

impl Deal {
    /// To so many instructions in turn, one by one: a lane has a neighbour of each.
    pub fn across(instructions: i64, side: i64) -> Deal {
        Deal {
            least: 1,
            lanes: side,
            joined: instructions,
        }
    }

    /// Whether so many columns (or rows) of a wave can be dealt out so.
    pub fn divides(&self, extent: i64) -> bool {
        extent % (self.least * self.lanes * self.joined) == 0
    }

    /// Whether instructions have what they would have anyway.
    fn is_plain(&self) -> bool {
        self.joined == 1
    }

    /// Whether reads of so many neighbours at a time find them beside each other.
    pub fn keeps(&self, neighbours: i64) -> bool {
        self.is_plain() || self.least % neighbours == 0
    }

    /// The part of a wave, whose instructions follow each other along a dimension, dealt out.
    pub fn part(&self, part: &Fragment, dim: usize) -> Result<Fragment, LayoutError> {
        if self.is_plain() {
            return Ok(part.clone());
        }
        let shape = part.shape().to_vec();
        let own = self.least * self.lanes;
        let apart = [
            shape[dim] / (own * self.joined),
            self.joined,
            self.lanes,
            self.least,
        ];
        let finer = [&shape[..dim], &apart[..], &shape[dim + 1..]].concat();
        let mut order: Vec<usize> = (0..finer.len()).collect();
        order.swap(dim + 1, dim + 2);
        part.reshape(&finer)?.permute(&order)?.reshape(&shape)
    }

    /// Where the column (or row) of a wave is that an instruction has at a place of its own: the
    /// instructions of the wave count as one row of places.
    pub fn dealt(&self, place: i64) -> i64 {
        let own = self.least * self.lanes;
        let (instruction, lane) = (place / own, place % own / self.least);
        let run = lane * self.joined + instruction % self.joined;
        instruction / self.joined * (own * self.joined) + run * self.least + place % self.least
    }

    /// The same of an expression.
    pub fn dealt_expr(&self, place: Expr) -> Expr {
        if self.is_plain() {
            return place;
        }
        let own = self.least * self.lanes;
        let instruction = place.clone().floor_div(own);
        let lane = place.clone().floor_mod(own).floor_div(self.least);
        let run = lane * self.joined + instruction.clone().floor_mod(self.joined);
        instruction.floor_div(self.joined) * (own * self.joined)
            + run * self.least
            + place.floor_mod(self.least)
    }
}
