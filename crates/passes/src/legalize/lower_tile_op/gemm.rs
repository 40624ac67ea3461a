//! Matrix products: operands to registers step by step along K, and matrix instructions.
//!
//! The plan says which instruction and which warps; here its operands are loaded. Where the machine
//! has `ldmatrix` 16-bit operands come by it, straight or transposed; where it has reads that
//! transpose, operands whose rows run along M or N come by those; everything else by vector
//! loads along the placement of the operand, of which the plan may give a lane neighbours in such rows. Rows, columns and steps past the tile are zero. The
//! metadata of a sparse factor comes by vector loads, too; scales come like operands, one element a lane
//! and tile.

use std::ops::Range;

use tilewright_ir::{
    Access, Block, Buffer, DType, Expr, GemmOp, Inst, MicroKind, MicroOp, MmaFamily, MmaInst,
    Region, RegionDim, Scalar, Scope, Span, Stmt, StmtKind, TileOp, VarKind,
};
use tilewright_layout::{Fragment, LayoutError};

use super::copy::{Memory, RegisterCopy};
use super::{Lower, counted, guarded, store, unroll};
use crate::legalize::gemm_plan::no_placement;
use crate::legalize::gemm_tiling::{GemmTiling, matrix, tiling};

/// One operand of the product.
pub(super) struct Operand<'a> {
    pub region: &'a Region,
    /// Whether memory holds it with the matrix dimensions exchanged.
    pub trans: bool,
    /// Which dimension of its placement is K: the first one of B, the second one of all others.
    pub k_dim: usize,
    /// Elements of one step along K.
    pub k: i64,
    /// Register elements of one step.
    pub slots: i64,
    name: &'static str,
    holds: Holds,
}

/// What an operand has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Factor,
    /// Where the elements of a sparse factor stand.
    Metadata,
    /// Those of A or B.
    Scales,
}

/// Metadata that is valid everywhere: the first of each group, and of each pair.
const SOME_PLACES: i64 = 0x4444_4444;

impl Operand<'_> {
    /// Where the elements of one step are.
    fn step_of(&self, plan: &GemmTiling) -> Result<Fragment, LayoutError> {
        match (self.holds, self.k_dim) {
            (Holds::Metadata, _) => plan.metadata_step(),
            (Holds::Scales, dim) => plan.scale_step(dim == 1),
            (Holds::Factor, 1) => plan.a_step(),
            (Holds::Factor, _) => plan.b_step(),
        }
    }

    /// What registers have where the matrix has nothing.
    fn nothing(&self, dtype: DType) -> Expr {
        match self.holds {
            Holds::Factor => Expr::zero(dtype),
            Holds::Metadata => Expr::int((SOME_PLACES & ((1 << dtype.bits()) - 1)).into(), dtype),
            Holds::Scales => Expr::float(1.0, dtype),
        }
    }

    /// The type that the instruction takes.
    fn taken(&self, plan: &GemmTiling) -> DType {
        DType::scalar(match self.holds {
            Holds::Scales => Scalar::F8E8M0,
            _ if self.k_dim == 1 => plan.inst.a,
            _ => plan.inst.b,
        })
    }

    /// Slots between the steps of an operand that is a fragment.
    fn between_steps(&self, plan: &GemmTiling) -> i64 {
        match self.k_dim {
            1 => plan.slots[0],
            _ => plan.tiles[1] * plan.slots[1],
        }
    }
}

/// Whether some slot of one of the first `threads` threads holds no element.
fn is_padded(placed: &Fragment, threads: i64) -> bool {
    let size: i64 = placed.shape().iter().product();
    placed.slots() * threads != size * placed.replicas()
}

impl Lower<'_> {
    pub(super) fn gemm(&mut self, g: GemmOp, span: Span, out: &mut Block) {
        let Some(plan) = tiling(self.func, &g, self.threads) else {
            return self.give_up(
                span,
                "this gemm has no plan; layout-inference must run before",
            );
        };
        let c = self.accumulator(&g, &plan, span, out);
        let group = plan.inst.family == MmaFamily::Wgmma;
        // Steps of a warp group start a sum themselves.
        let fresh = group && g.clear.is_int(1);
        if !fresh {
            self.clear(&g, c, &plan, span, out);
        }
        if group {
            self.group_multiply(&g, (c, fresh), &plan, span, out);
            if c != g.c.buffer {
                self.move_accumulator(&g, c, &plan, false, span, out);
            }
            return;
        }
        let (step_var, step) = self.var("ks", VarKind::Loop);
        let mut body = Vec::new();
        let a = Operand {
            region: &g.a,
            trans: g.trans_a,
            k_dim: 1,
            k: plan.inst.left_k().into(),
            slots: plan.tiles[0] * plan.slots[0],
            name: "a",
            holds: Holds::Factor,
        };
        let b = Operand {
            region: &g.b,
            trans: g.trans_b,
            k_dim: 0,
            k: plan.inst.k.into(),
            slots: plan.tiles[1] * plan.slots[1],
            name: "b",
            holds: Holds::Factor,
        };
        let factors = [&a, &b].map(|o| self.operand(o, &plan, &step, span, &mut body));
        let mut told: Vec<(Buffer, i64)> = Vec::new();
        told.extend(self.metadata(&g, &plan, &step, span, &mut body));
        if let Some(scales) = &g.scales {
            let k = i64::from(plan.inst.k / MmaInst::SCALED);
            let sa = Operand {
                region: &scales.a,
                trans: false,
                k_dim: 1,
                k,
                slots: plan.tiles[0],
                name: "sa",
                holds: Holds::Scales,
            };
            let sb = Operand {
                region: &scales.b,
                trans: true,
                k_dim: 0,
                slots: plan.tiles[1],
                name: "sb",
                ..sa
            };
            told.extend([&sa, &sb].map(|o| (self.operand(o, &plan, &step, span, &mut body).0, 1)));
        }
        self.multiply(c, factors, &told, &plan, span, &mut body);

        // Warps beyond the plan's take no part.
        let used = self.used(&plan);
        let taking_part = (used < self.threads).then(|| self.tid.clone().lt(used));
        let mut inner = Vec::new();
        guarded(taking_part, body, span, &mut inner);
        out.push(counted(step_var, plan.steps, unroll(), inner, span));
        if c != g.c.buffer {
            self.move_accumulator(&g, c, &plan, false, span, out);
        }
    }

    /// The threads that take part: those of the plan's warps.
    fn used(&self, plan: &GemmTiling) -> i64 {
        let unit = plan.inst.threads(self.target.machine().warp_size);
        plan.warps[0] * plan.warps[1] * i64::from(unit)
    }

    /// The registers that accumulate: C itself, or a copy of it from memory.
    fn accumulator(
        &mut self,
        g: &GemmOp,
        plan: &GemmTiling,
        span: Span,
        out: &mut Block,
    ) -> Buffer {
        if self.scope(g.c.buffer) == Scope::Fragment {
            self.needs_registers(g.c.buffer, plan.c_slots());
            if self
                .placement(plan.c(), span)
                .is_some_and(|c| c.slots() < plan.c_slots() || is_padded(&c, self.used(plan)))
            {
                self.padded.insert(self.func.root(g.c.buffer));
            }
            return g.c.buffer;
        }
        let dtype = self.dtype(g.c.buffer);
        let c = self.temp("c", Scope::Local, dtype, &[plan.c_slots()]);
        self.zero(c, 0..plan.c_slots(), span, out);
        if !g.clear.is_int(1) {
            self.move_accumulator(g, c, plan, true, span, out);
        }
        c
    }

    /// Copies C from memory to its registers, or back.
    fn move_accumulator(
        &mut self,
        g: &GemmOp,
        c: Buffer,
        plan: &GemmTiling,
        to_registers: bool,
        span: Span,
        out: &mut Block,
    ) {
        let Some(fragment) = self.placement(plan.c(), span) else {
            return;
        };
        self.register_copy(
            RegisterCopy {
                memory: Memory {
                    region: &g.c,
                    order: non_unit(&g.c, [0, 1]),
                },
                fragment: &fragment,
                registers: c,
                offset: None,
                to_registers,
                otherwise: None,
                inside: Vec::new(),
            },
            span,
            out,
        );
    }

    /// The placement, or the diagnostic that says why there is none.
    fn placement(&mut self, placed: Result<Fragment, LayoutError>, span: Span) -> Option<Fragment> {
        placed
            .map_err(|e| self.diags.push(no_placement(&e, span)))
            .ok()
    }

    fn clear(&mut self, g: &GemmOp, c: Buffer, plan: &GemmTiling, span: Span, out: &mut Block) {
        if g.clear.is_int(0) {
            return;
        }
        let mut fill = Vec::new();
        if c == g.c.buffer {
            let value = Expr::zero(self.dtype(c));
            self.tile_op(
                TileOp::Fill {
                    dst: g.c.clone(),
                    value,
                },
                span,
                &mut fill,
            );
        } else {
            self.zero(c, 0..plan.c_slots(), span, &mut fill);
        }
        let cond = (!g.clear.is_int(1)).then(|| g.clear.clone());
        guarded(cond, fill, span, out);
    }

    /// Fills registers of an array with zero.
    pub(super) fn zero(&mut self, buffer: Buffer, slots: Range<i64>, span: Span, out: &mut Block) {
        let zero = Expr::zero(self.dtype(buffer));
        self.fill_slots(buffer, slots, zero, span, out);
    }

    fn fill_slots(
        &mut self,
        buffer: Buffer,
        slots: Range<i64>,
        value: Expr,
        span: Span,
        out: &mut Block,
    ) {
        let dtype = self.dtype(buffer);
        let (var, n) = self.var("s", VarKind::Loop);
        let slot = match slots.start {
            0 => n,
            start => n + start,
        };
        let body = vec![store(buffer, vec![slot], value, dtype, span)];
        out.push(counted(var, slots.end - slots.start, unroll(), body, span));
    }

    /// The registers of one step of an operand, and where the step starts in them.
    fn operand(
        &mut self,
        o: &Operand<'_>,
        plan: &GemmTiling,
        step: &Expr,
        span: Span,
        out: &mut Block,
    ) -> (Buffer, Expr) {
        let dtype = self.dtype(o.region.buffer);
        let wanted = o.taken(plan);
        let converts = dtype != wanted;
        if self.scope(o.region.buffer) == Scope::Fragment {
            return self.fragment_operand(o, plan, step, span, out);
        }
        let regs = self.temp(o.name, Scope::Local, dtype, &[o.slots]);
        if self.can_ldmatrix(o, plan) {
            self.ldmatrix(o, plan, regs, step, span, out);
        } else if let Some(read) = self.transposed_read(o, plan) {
            self.read_transposed(o, plan, read, (regs, step), span, out);
        } else {
            self.load_operand(o, plan, regs, step, span, out);
        }
        if !converts {
            return (regs, Expr::i32(0));
        }
        let to = self.temp(o.name, Scope::Local, wanted, &[o.slots]);
        self.convert(regs, to, o.slots, span, out);
        (to, Expr::i32(0))
    }

    /// The registers of one step of a sparse factor's metadata.
    fn metadata(
        &mut self,
        g: &GemmOp,
        plan: &GemmTiling,
        step: &Expr,
        span: Span,
        out: &mut Block,
    ) -> Option<(Buffer, i64)> {
        let (sparse, one) = (g.sparse.as_ref()?, plan.metadata()?);
        let e = Operand {
            region: &sparse.e,
            trans: sparse.trans_e,
            k_dim: 1,
            k: one.shape()[1],
            slots: plan.tiles[0] * one.slots(),
            name: "e",
            holds: Holds::Metadata,
        };
        if self.scope(sparse.e.buffer) == Scope::Fragment {
            self.give_up(span, "metadata in registers; expand-sparse must run before");
            return None;
        }
        let regs = self.temp(
            e.name,
            Scope::Local,
            self.dtype(sparse.e.buffer),
            &[e.slots],
        );
        self.load_operand(&e, plan, regs, step, span, out);
        Some((regs, one.slots()))
    }

    /// One step of an operand that is a fragment: where it is, or in registers of its own, of the
    /// instruction's type, and zero past the ends of the matrix, where the fragment holds nothing.
    fn fragment_operand(
        &mut self,
        o: &Operand<'_>,
        plan: &GemmTiling,
        step: &Expr,
        span: Span,
        out: &mut Block,
    ) -> (Buffer, Expr) {
        let buffer = o.region.buffer;
        let in_place = (buffer, step.clone() * o.between_steps(plan));
        self.needs_registers(buffer, plan.steps * o.slots);
        let Some(placed) = self.placement(o.step_of(plan), span) else {
            return in_place;
        };
        let wanted = o.taken(plan);
        let padded = placed.slots() < o.slots || is_padded(&placed, self.used(plan));
        let ragged = self.ragged(o);
        if self.dtype(buffer) == wanted && !padded && ragged.is_none() {
            return in_place;
        }
        let to = self.temp(o.name, Scope::Local, wanted, &[o.slots]);
        let (var, slot) = self.var("s", VarKind::Loop);
        let from = step.clone() * o.between_steps(plan);
        let from = if o.k_dim == 1 {
            // All steps of a tile of A are together.
            let per_tile = plan.slots[0];
            let tile = slot.clone().floor_div(per_tile) * (plan.steps * per_tile);
            from + tile + slot.clone().floor_mod(per_tile)
        } else {
            from + &slot
        };
        let mut inside = None;
        if ragged.is_some() || padded {
            let Some(points) = self.points(&placed, &slot) else {
                self.give_up(span, "the layout of this operand has no closed form");
                return in_place;
            };
            inside = points.guard;
            if let Some(depth) = ragged {
                let left = Expr::int(depth.into(), DType::I32) - step.clone() * o.k;
                let below = points.index[o.k_dim].clone().lt(left);
                inside = Some(match inside {
                    None => below,
                    Some(guard) => guard.and(below),
                });
            }
            self.zero(to, 0..o.slots, span, out);
        }
        let from = self.simplify(&from);
        let value = self.load(buffer, vec![from]);
        let copy = vec![store(to, vec![slot], value, wanted, span)];
        let mut body = Vec::new();
        guarded(inside, copy, span, &mut body);
        // Slots that the placement does not have are zero.
        let slots = placed.slots().min(o.slots);
        out.push(counted(var, slots, unroll(), body, span));
        (to, Expr::i32(0))
    }

    /// The depth of an operand, where the steps reach past it.
    fn ragged(&self, o: &Operand<'_>) -> Option<i64> {
        let [x, y] = matrix(o.region)?;
        let depth = if (o.k_dim == 1) != o.trans { y } else { x };
        (depth % o.k != 0).then_some(depth)
    }

    fn convert(&mut self, from: Buffer, to: Buffer, slots: i64, span: Span, out: &mut Block) {
        let dtype = self.dtype(to);
        let (var, slot) = self.var("s", VarKind::Loop);
        let value = self.load(from, vec![slot.clone()]);
        let body = vec![store(to, vec![slot], value, dtype, span)];
        out.push(counted(var, slots, unroll(), body, span));
    }

    /// By vector loads along the operand's placement.
    fn load_operand(
        &mut self,
        o: &Operand<'_>,
        plan: &GemmTiling,
        regs: Buffer,
        step: &Expr,
        span: Span,
        out: &mut Block,
    ) {
        let Some([x, y]) = matrix(o.region) else {
            return self.give_up(span, "the operands of a gemm need constant sizes");
        };
        let Some(placed) = self.placement(o.step_of(plan), span) else {
            return;
        };
        let k = o.k;
        let depth = if (o.k_dim == 1) != o.trans { y } else { x };
        // The rows or columns of this step in memory.
        let rank = o.region.dims.len();
        let k_at = if (o.k_dim == 1) != o.trans {
            rank - 1
        } else {
            rank - 2
        };
        let region = o.region.clone();
        let order = if o.trans { [1, 0] } else { [0, 1] };
        let dtype = self.dtype(regs);
        let ragged_k = depth % k != 0;
        let nothing = o.nothing(dtype);
        if is_padded(&placed, placed.threads()) || ragged_k {
            self.fill_slots(regs, 0..o.slots, nothing.clone(), span, out);
        }
        let inside = if ragged_k {
            let left = Expr::int(depth.into(), DType::I32) - step.clone() * k;
            vec![(o.k_dim, left)]
        } else {
            Vec::new()
        };
        let otherwise = ragged_k.then_some(nothing);
        self.register_copy(
            RegisterCopy {
                memory: Memory {
                    order: non_unit(&region, order),
                    region: &region,
                },
                fragment: &placed,
                registers: regs,
                offset: Some((k_at, step.clone() * k)),
                to_registers: true,
                otherwise,
                inside,
            },
            span,
            out,
        );
    }

    /// Whether `ldmatrix` brings the operand: 16-bit elements in whole, aligned tiles.
    fn can_ldmatrix(&mut self, o: &Operand<'_>, plan: &GemmTiling) -> bool {
        let bits = self.dtype(o.region.buffer).bits();
        let (Some([x, y]), true) = (
            matrix(o.region),
            self.target.machine().ldmatrix
                && bits == 16
                && matches!(plan.inst.family, MmaFamily::MmaSync | MmaFamily::MmaSp)
                && matches!(o.k, 16 | 32),
        ) else {
            return false;
        };
        let (mn, k) = if (o.k_dim == 1) != o.trans {
            (x, y)
        } else {
            (y, x)
        };
        let side = if o.k_dim == 1 {
            plan.warps[0] * plan.tiles[0] * plan.inst.m as i64
        } else {
            plan.warps[1] * plan.tiles[1] * plan.inst.n as i64
        };
        mn == side && k % o.k == 0 && self.memory_width(o.region, &[]) >= 8
    }

    /// One `ldmatrix.x4` for each instruction tile of A and for each two of B, or for one of B with
    /// 32 along K; x2 where B has an odd one out. Each lane gives the address of one row of eight
    /// elements.
    fn ldmatrix(
        &mut self,
        o: &Operand<'_>,
        plan: &GemmTiling,
        regs: Buffer,
        step: &Expr,
        span: Span,
        out: &mut Block,
    ) {
        let warp = self.target.machine().warp_size as i64;
        let lane = self.tid.clone().floor_mod(warp);
        let (warp_var, w) = self.var("warp", VarKind::Let);
        let value = self.tid.clone().floor_div(warp);
        out.push(Stmt::new(
            StmtKind::Let {
                var: warp_var,
                value,
            },
            span,
        ));
        let is_a = o.k_dim == 1;
        let tiles = if is_a { plan.tiles[0] } else { plan.tiles[1] };
        let side = if is_a { plan.inst.m } else { plan.inst.n } as i64;
        let part = if is_a {
            w.floor_div(plan.warps[1])
        } else {
            w.floor_mod(plan.warps[1])
        };
        let per_tile = if is_a { plan.slots[0] } else { plan.slots[1] };
        // Tiles that one instruction brings.
        let along_k = o.k / 8;
        let joined = if !is_a && along_k == 2 && tiles % 2 == 0 {
            2
        } else {
            1
        };
        let (axis, t) = self.var("t", VarKind::Loop);
        let first = (part * tiles + t.clone() * joined) * side;
        let row_in = lane.clone().floor_mod(8);
        let matrix_of = lane.floor_div(8);
        // Fragment register r holds the 8x8 matrix r. A: matrices go down M, then along K.
        // B: along K, then to the next tile. Straight memory has the non-K index as row of each
        // 8x8 matrix.
        let (mn_part, k_part) = if is_a {
            (
                matrix_of.clone().floor_mod(2) * 8,
                matrix_of.floor_div(2).floor_mod(2) * 8,
            )
        } else {
            (
                matrix_of.clone().floor_div(along_k).floor_mod(joined) * 8,
                matrix_of.floor_mod(along_k) * 8,
            )
        };
        // In memory with K last, a row of eight runs along K; exchanged, along M or N, and the
        // instruction transposes.
        let k_last = is_a != o.trans;
        let (mn, k) = if k_last {
            (first + mn_part + row_in, k_part)
        } else {
            (first + mn_part, k_part + row_in)
        };
        let k = k + step.clone() * o.k;
        let rank = o.region.dims.len();
        let mut at: Vec<Expr> = o.region.dims.iter().map(|d| d.start.clone()).collect();
        let (k_at, mn_at) = if k_last {
            (rank - 1, rank - 2)
        } else {
            (rank - 2, rank - 1)
        };
        for (dim, inner) in [(k_at, k), (mn_at, mn)] {
            let inner = self.simplify(&inner);
            let start = at[dim].clone();
            at[dim] = if start.is_int(0) {
                inner.cast_to(start.dtype())
            } else {
                start.clone() + inner.cast_to(start.dtype())
            };
        }
        out.push(Stmt::new(
            StmtKind::Micro(MicroOp {
                kind: MicroKind::S2r,
                inst: Inst::LdMatrix {
                    tiles: (joined * per_tile / 2) as u8,
                    trans: !k_last,
                },
                axes: vec![(axis, (tiles / joined) as u32)],
                turns: false,
                dest: Access {
                    region: all_slots(regs, o.slots),
                    slot: None,
                    at: vec![t * (joined * per_tile)],
                },
                sources: vec![Access {
                    region: o.region.clone(),
                    slot: None,
                    at,
                }],
                width: 8,
                apart: 1,
                pred: None,
                otherwise: None,
                counter: None,
                arrives: None,
                evict: None,
            }),
            span,
        ));
    }

    fn multiply(
        &mut self,
        c: Buffer,
        [a, b]: [(Buffer, Expr); 2],
        told: &[(Buffer, i64)],
        plan: &GemmTiling,
        span: Span,
        out: &mut Block,
    ) {
        let [mt, nt] = plan.tiles;
        let (mi, m) = self.var("mi", VarKind::Loop);
        let (ni, n) = self.var("ni", VarKind::Loop);
        // A fragment operand keeps all steps of a row of tiles together.
        let a_stride = if self.scope(a.0) == Scope::Fragment {
            plan.steps * plan.slots[0]
        } else {
            plan.slots[0]
        };
        let a_at = a.1 + m.clone() * a_stride;
        let b_at = b.1 + n.clone() * plan.slots[1];
        let c_at = plan.c_slot(m.clone(), n.clone());
        let access = |buffer: Buffer, slots: i64, at: Expr| Access {
            region: all_slots(buffer, slots),
            slot: None,
            at: vec![at],
        };
        let (a_at, b_at) = (self.simplify(&a_at), self.simplify(&b_at));
        let mut sources = vec![
            access(a.0, mt * a_stride, a_at),
            access(b.0, nt * plan.slots[1], b_at),
        ];
        // What is told of A, then of B.
        for (&(buffer, slots), (tile, tiles)) in told.iter().zip([(m, mt), (n, nt)]) {
            let at = self.simplify(&(tile * slots));
            sources.push(access(buffer, tiles * slots, at));
        }
        // The transposed product.
        if plan.run.turned {
            sources.chunks_exact_mut(2).for_each(<[Access]>::reverse);
        }
        out.push(Stmt::new(
            StmtKind::Micro(MicroOp {
                kind: MicroKind::Mma,
                inst: Inst::Mma(plan.issued()),
                axes: vec![(mi, mt as u32), (ni, nt as u32)],
                turns: false,
                dest: access(c, plan.c_slots(), c_at),
                sources,
                width: 1,
                apart: 1,
                pred: None,
                otherwise: None,
                counter: None,
                arrives: None,
                evict: None,
            }),
            span,
        ));
    }
}

pub(super) fn all_slots(buffer: Buffer, slots: i64) -> Region {
    Region {
        buffer,
        dims: vec![RegionDim {
            start: Expr::i32(0),
            extent: Expr::int(slots.into(), DType::I32),
        }],
    }
}

/// The fragment dimensions that the non-unit ones of the last two of a region follow.
fn non_unit(region: &Region, order: [usize; 2]) -> Vec<usize> {
    let rank = region.dims.len();
    let last_two = region.dims[rank.saturating_sub(2)..].iter().zip(order);
    last_two
        .filter(|(dim, _)| !dim.extent.is_int(1))
        .map(|(_, o)| o)
        .collect()
}
