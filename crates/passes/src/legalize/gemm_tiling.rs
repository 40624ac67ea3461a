//! Where the operands of a planned gemm lie in registers: what follows from its plan.

use tilewright_ir::{
    Expr, Func, GemmKind, GemmOp, GemmPlan, GemmPolicy, MmaFamily, MmaInst, Region, Scalar,
};
use tilewright_layout::lanes::{Operand, lane_map, mma_sp};
use tilewright_layout::radix::Digit;
use tilewright_layout::transposed::TransposedRead;
use tilewright_layout::{Fragment, Holder, LayoutError};

use super::group_operands::{GroupOperands, group_operands};
use super::lane_runs::{Deal, LaneRun};

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct GemmShape {
    pub m: i64,
    pub n: i64,
    pub k: i64,
    pub a: Scalar,
    pub b: Scalar,
    pub acc: Scalar,
    pub policy: GemmPolicy,
    pub threads: i64,
    /// Whether each product starts at zero, so that somebody else keeps the sum.
    pub fresh: bool,
    /// How the operands lie, where a warp group's instructions can read them there.
    pub group: Option<GroupOperands>,
    /// Whether the user asks for warp groups' instructions, and for no others.
    pub by_groups: bool,
    /// Bits of an integer of metadata, where the left factor is sparse.
    pub metadata: Option<u32>,
    /// Whether the factors have scales, which the instruction takes.
    pub scaled: bool,
}

/// What follows from a plan. The placements are worked out when asked for: layout inference needs
/// that of C, lowering those of the operands that lie in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GemmTiling {
    shape: GemmShape,
    /// The instruction, with A and B as the product has them.
    pub inst: MmaInst,
    /// Warps, or warp groups, along M and N: whoever runs the instruction together.
    pub warps: [i64; 2],
    /// Instruction tiles of one of them along M and N.
    pub tiles: [i64; 2],
    /// Instruction steps along K.
    pub steps: i64,
    /// Register elements a lane holds of one instruction's A, B and C.
    pub slots: [i64; 3],
    /// Which neighbours of C a lane holds.
    pub run: LaneRun,
    /// Parts of C along M and N, of each of which every warp owns a piece.
    parts: [i64; 2],
    /// Instructions that have neighbouring rows of A, or columns of B, in turn.
    across: [i64; 2],
}

impl GemmTiling {
    /// How reads that transpose bring an instruction tile of A or of B, whose rows in memory run along
    /// M or N: `None` where they cannot, or where it has rows or columns that the matrix does not.
    pub fn transposed_read(&self, is_a: bool, bits: i64) -> Option<TransposedRead> {
        let side = usize::from(!is_a);
        let (extent, tile) = match is_a {
            true => (self.shape.m, i64::from(self.inst.m)),
            false => (self.shape.n, i64::from(self.inst.n)),
        };
        let whole = extent == self.warps[side] * self.tiles[side] * tile;
        if self.inst.family != MmaFamily::Mfma
            || !whole
            || self.shape.k % i64::from(self.inst.k) != 0
        {
            return None;
        }
        let operand = if is_a { Operand::A } else { Operand::B };
        let held = self.lanes(operand).ok()?.inverse()?;
        let read = TransposedRead::of(bits, (tile, self.slots[side]), |lane, slot| {
            let element = held.element(Holder { thread: lane, slot })?;
            let (x, y) = (*element.first()?, *element.get(1)?);
            Some(if is_a { [x, y] } else { [y, x] })
        })?;
        self.deal(side).keeps(read.elements).then_some(read)
    }

    /// Neighbours that a lane has at once of an operand whose rows in memory run along M or N: each in
    /// another instruction. One: those of an instruction are read one by one.
    pub fn read_across(&self, is_a: bool) -> i64 {
        match self.shape.k % i64::from(self.inst.k) {
            0 => self.across[usize::from(!is_a)],
            _ => 1,
        }
    }

    /// How rows of A or columns of B are dealt out to the instructions of a wave.
    fn deal(&self, side: usize) -> Deal {
        let inst = [self.inst.m, self.inst.n][side];
        match side == self.run.dim() {
            true if self.across[side] == 1 => self.run.deal(),
            _ => Deal::across(self.across[side], inst.into()),
        }
    }

    /// The row of A or the column of B of a wave that its instructions have at a place: theirs follow
    /// each other.
    pub fn dealt(&self, is_a: bool, place: Expr) -> Expr {
        self.deal(usize::from(!is_a)).dealt_expr(place)
    }

    /// The same of a number.
    pub fn dealt_at(&self, is_a: bool, place: i64) -> i64 {
        self.deal(usize::from(!is_a)).dealt(place)
    }

    /// The row of A or the column of B that a wave has at a place of its own, where the wave is the nth
    /// along M or N.
    pub fn line(&self, is_a: bool, wave: Expr, place: Expr) -> Expr {
        let side = usize::from(!is_a);
        let own = self.tiles[side] * i64::from([self.inst.m, self.inst.n][side]);
        let place = self.dealt(is_a, place);
        if self.parts[side] == 1 {
            return wave * own + place;
        }
        let piece = own / self.parts[side];
        place.clone().floor_div(piece) * (self.warps[side] * piece)
            + wave * piece
            + place.floor_mod(piece)
    }

    /// `None` where nothing is known of the instruction's lanes, or they cannot hold the plan's runs or
    /// warps not a piece of each part.
    pub(super) fn of(shape: &GemmShape, plan: GemmPlan) -> Option<GemmTiling> {
        let GemmPlan { inst, warps, .. } = plan;
        let placed = |bits| mma_sp::metadata(&inst, bits).is_some();
        if inst.is_sparse() != shape.metadata.is_some() || !shape.metadata.is_none_or(placed) {
            return None;
        }
        let warps = warps.map(i64::from);
        let run = LaneRun::of(&plan)?;
        let tiles = tiles(shape, &inst, warps);
        let (extent, side) = [(shape.m, inst.m), (shape.n, inst.n)][run.dim()];
        let own = tiles[run.dim()] * i64::from(side);
        if run.is_joined() && !(run.deal().divides(own) && own * warps[run.dim()] == extent) {
            return None;
        }
        let across = plan.across.map(i64::from);
        for (dim, (extent, side)) in [(shape.m, inst.m), (shape.n, inst.n)].iter().enumerate() {
            let (side, instructions) = (i64::from(*side), across[dim]);
            let whole = instructions.count_ones() == 1
                && inst.family == MmaFamily::Mfma
                && tiles[dim] % instructions == 0
                && tiles[dim] * side * warps[dim] == *extent
                && !(run.is_joined() && run.dim() == dim);
            if instructions != 1 && !whole {
                return None;
            }
        }
        let parts = plan.parts.map(i64::from);
        if parts != [1, 1] {
            let sides = [(shape.m, inst.m), (shape.n, inst.n)];
            let whole = |dim: usize| {
                let (extent, side) = (sides[dim].0, i64::from(sides[dim].1));
                let dealt = tiles[dim] * side / parts[dim].max(1);
                parts[dim] > 0
                    && tiles[dim] % parts[dim] == 0
                    && tiles[dim] * side * warps[dim] == extent
                    && !(run.dim() == dim && run.is_joined() && !run.deal().divides(dealt))
                    && dealt % (across[dim] * side) == 0
            };
            if inst.family != MmaFamily::Mfma || !(whole(0) && whole(1)) {
                return None;
            }
        }
        let slots = |operand| lane_map(&inst, operand).map(|map| map.slots());
        let b = match inst.family {
            // B never comes to registers.
            MmaFamily::Wgmma => 0,
            MmaFamily::MmaSync | MmaFamily::MmaSp | MmaFamily::Mfma => slots(Operand::B)?,
        };
        Some(GemmTiling {
            shape: *shape,
            inst,
            warps,
            tiles,
            run,
            parts,
            across,
            steps: ceil_div(shape.k, inst.k.into()),
            slots: [slots(Operand::A)?, b, slots(Operand::C)?],
        })
    }

    /// How the operands lie, where warp groups read them there.
    pub fn group(&self) -> Option<GroupOperands> {
        self.shape.group
    }

    /// C over (M, N).
    pub fn c(&self) -> Result<Fragment, LayoutError> {
        let grid = Fragment::over_threads(&self.warps)?;
        let lanes = self.lanes(Operand::C)?;
        let extents = [self.shape.m, self.shape.n];
        self.block(&grid, Operand::C, lanes, self.tiles, extents)
    }

    /// Whether tiles of C that stand below each other have slots that follow each other, as runs of
    /// several have them.
    fn down_first(&self) -> bool {
        self.run.is_joined() && self.run.dim() == 0
    }

    /// The first slot of a tile of C.
    pub fn c_slot(&self, m: Expr, n: Expr) -> Expr {
        let [down, across] = self.tiles;
        let tile = match self.down_first() {
            true => n * down + m,
            false => m * across + n,
        };
        tile * self.slots[2]
    }

    /// The slots of [`GemmTiling::c`].
    pub fn c_slots(&self) -> i64 {
        self.tiles[0] * self.tiles[1] * self.slots[2]
    }

    /// A over (M, K), all steps: slots of step `s` and tile `i` start at
    /// `(i · steps + s) · slots[0]`.
    pub fn a(&self) -> Result<Fragment, LayoutError> {
        let stored = match self.shape.metadata {
            Some(_) => self.shape.k / 2,
            None => self.shape.k,
        };
        self.rows(Operand::A, self.lanes(Operand::A)?, self.steps, stored)
    }

    /// B over (K, N), all steps: slots of step `s` and tile `j` start at
    /// `(s · tiles[1] + j) · slots[1]`.
    pub fn b(&self) -> Result<Fragment, LayoutError> {
        self.cols(Operand::B, self.steps, self.shape.k)
    }

    /// A over one step, (M, what the instruction has of it along K).
    pub fn a_step(&self) -> Result<Fragment, LayoutError> {
        self.rows(
            Operand::A,
            self.lanes(Operand::A)?,
            1,
            self.inst.left_k().into(),
        )
    }

    /// The metadata of a sparse A over one step, (M, integers of a row): slots of tile `i` start at
    /// `i` times the slots of [`GemmTiling::metadata`].
    pub fn metadata_step(&self) -> Result<Fragment, LayoutError> {
        let lanes = self.metadata().ok_or_else(|| LayoutError::NotAMap {
            what: format!("the metadata of {}", self.inst),
        })?;
        let integers = lanes.shape()[1];
        self.rows(Operand::A, lanes, 1, integers)
    }

    /// The metadata of one instruction.
    pub fn metadata(&self) -> Option<Fragment> {
        mma_sp::metadata(&self.inst, self.shape.metadata?)
    }

    /// B over one step, (instruction K, N).
    pub fn b_step(&self) -> Result<Fragment, LayoutError> {
        self.cols(Operand::B, 1, self.inst.k.into())
    }

    /// The scales of one step, one for each tile and lane: of A over (M, runs), of B over (runs, N).
    pub fn scale_step(&self, is_a: bool) -> Result<Fragment, LayoutError> {
        let runs = i64::from(self.inst.k / MmaInst::SCALED);
        match is_a {
            true => self.rows(Operand::ScaleA, self.lanes(Operand::ScaleA)?, 1, runs),
            false => self.cols(Operand::ScaleB, 1, runs),
        }
    }

    /// Every warp of a row of the grid has the same rows of A, and of what is told of them.
    fn rows(
        &self,
        operand: Operand,
        lanes: Fragment,
        steps: i64,
        k: i64,
    ) -> Result<Fragment, LayoutError> {
        let [wm, wn] = self.warps;
        let (row, copy) = (0, 2);
        let warps = [Digit::new(copy, 1, wn), Digit::new(row, 1, wm)];
        let rows = Fragment::from_digits(&[wm, 1], wn, &warps, &[])?;
        let (times, extents) = ([self.tiles[0], steps], [self.shape.m, k]);
        self.block(&rows, operand, lanes, times, extents)
    }

    /// Every warp of a column of the grid has the same columns of B.
    fn cols(&self, operand: Operand, steps: i64, k: i64) -> Result<Fragment, LayoutError> {
        let [wm, wn] = self.warps;
        let (col, copy) = (1, 2);
        let warps = [Digit::new(col, 1, wn), Digit::new(copy, 1, wm)];
        let cols = Fragment::from_digits(&[1, wn], wm, &warps, &[])?;
        let lanes = self.lanes(operand)?;
        let (times, extents) = ([steps, self.tiles[1]], [k, self.shape.n]);
        self.block(&cols, operand, lanes, times, extents)
    }

    /// The instruction that is issued.
    pub fn issued(&self) -> MmaInst {
        match self.run.turned {
            true => self.inst.turned(),
            false => self.inst,
        }
    }

    /// The lanes of one instruction tile. A product that is done as its transpose has the operands
    /// exchanged.
    fn lanes(&self, operand: Operand) -> Result<Fragment, LayoutError> {
        let held = match (self.run.turned, operand) {
            (true, Operand::A) => Operand::B,
            (true, Operand::B) => Operand::A,
            (true, Operand::ScaleA) => Operand::ScaleB,
            (true, Operand::ScaleB) => Operand::ScaleA,
            _ => operand,
        };
        let inst = self.issued();
        let lanes = lane_map(&inst, held).ok_or_else(|| LayoutError::NotAMap {
            what: format!("the {operand:?} operand of {inst}"),
        })?;
        match self.run.turned {
            true => lanes.permute(&[1, 0]),
            false => Ok(lanes),
        }
    }

    /// The part of each warp, `times` instruction tiles, cut to what there is.
    fn block(
        &self,
        warps: &Fragment,
        operand: Operand,
        lanes: Fragment,
        times: [i64; 2],
        extents: [i64; 2],
    ) -> Result<Fragment, LayoutError> {
        let mut warp = match operand == Operand::C && self.down_first() {
            true => {
                let [down, across] = times;
                let turned = lanes.permute(&[1, 0])?.repeat_in_slots(&[across, down])?;
                turned.permute(&[1, 0])?
            }
            false => lanes.repeat_in_slots(&times)?,
        };
        let is_along = |dim: usize| match operand {
            Operand::A | Operand::ScaleA => dim == 0,
            Operand::B | Operand::ScaleB => dim == 1,
            Operand::C => true,
        };
        for dim in [0, 1].into_iter().filter(|dim| is_along(*dim)) {
            warp = self.deal(dim).part(&warp, dim)?;
        }
        let mut whole = Fragment::product(warps, &warp)?;
        for dim in [0, 1] {
            if is_along(dim) && self.parts[dim] > 1 {
                whole = in_parts(&whole, dim, [self.warps[dim], self.parts[dim]])?;
            }
        }
        let whole = whole.with_threads(self.shape.threads)?;
        whole.slice(&[0, 0], &extents)
    }
}

/// What warps own in one piece each along a dimension, as a piece of every part.
fn in_parts(
    whole: &Fragment,
    dim: usize,
    [warps, parts]: [i64; 2],
) -> Result<Fragment, LayoutError> {
    let shape = whole.shape().to_vec();
    let apart = [warps, parts, shape[dim] / (warps * parts)];
    let finer = [&shape[..dim], &apart[..], &shape[dim + 1..]].concat();
    let mut order: Vec<usize> = (0..finer.len()).collect();
    order.swap(dim, dim + 1);
    whole.reshape(&finer)?.permute(&order)?.reshape(&shape)
}

/// What a gemm asks of the target. How its operands lie is asked only where `groups` may read them there.
pub(super) fn gemm_shape(func: &Func, g: &GemmOp, threads: i64, groups: bool) -> Option<GemmShape> {
    let [m, n] = matrix(&g.c)?;
    // Not of A, which has half of its elements where it is sparse.
    let [x, y] = matrix(&g.b)?;
    Some(GemmShape {
        m,
        n,
        k: if g.trans_b { y } else { x },
        a: func.buffers[g.a.buffer].dtype.scalar,
        b: func.buffers[g.b.buffer].dtype.scalar,
        acc: func.buffers[g.c.buffer].dtype.scalar,
        policy: g.policy,
        threads,
        fresh: g.clear.is_int(1),
        group: groups.then(|| group_operands(func, g)).flatten(),
        by_groups: g.kind == GemmKind::Wgmma,
        metadata: (g.sparse.as_ref()).map(|sparse| func.buffers[sparse.e.buffer].dtype.bits()),
        scaled: g.scales.is_some(),
    })
}

/// The last two extents of a region.
pub fn matrix(region: &Region) -> Option<[i64; 2]> {
    let [.., rows, cols] = &region.dims[..] else {
        return None;
    };
    let extent = |e: &Expr| i64::try_from(e.as_int()?).ok();
    Some([extent(&rows.extent)?, extent(&cols.extent)?])
}

/// The tiling of a gemm that has a plan.
pub fn tiling(func: &Func, g: &GemmOp, threads: i64) -> Option<GemmTiling> {
    tiling_by(func, g, threads, g.plan?)
}

/// The tiling of a gemm by a plan, if it can be done so.
pub fn tiling_by(func: &Func, g: &GemmOp, threads: i64, plan: GemmPlan) -> Option<GemmTiling> {
    let groups = plan.inst.family == MmaFamily::Wgmma;
    GemmTiling::of(&gemm_shape(func, g, threads, groups)?, plan)
}

pub(super) fn ceil_div(a: i64, b: i64) -> i64 {
    (a + b - 1) / b
}

pub(super) fn tiles(shape: &GemmShape, inst: &MmaInst, grid: [i64; 2]) -> [i64; 2] {
    [
        ceil_div(shape.m, inst.m as i64 * grid[0]),
        ceil_div(shape.n, inst.n as i64 * grid[1]),
    ]
}
