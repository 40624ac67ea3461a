//! Operands of matrix instructions whose rows in memory run along M or N, by reads that transpose.
//!
//! Before: `gemm A[…], B[0 +: 64, 0 +: 256]`, whose B has rows of N. After, of each step:
//! ```text
//! s2r for t < 4, r < 2 do B[…] at [ks * 32 + lane // 16 * 8 + r * 4 + lane % 16 // 4, … + t * 16 + lane % 4 * 4] -> b[0 +: 32] at [t * 8 + r * 4] inst="ds_read_tr" width=4
//! ```

use tilewright_ir::{
    Access, Block, Buffer, Expr, Inst, MicroKind, MicroOp, Span, Stmt, StmtKind, VarKind,
};
use tilewright_layout::transposed::TransposedRead;

use super::Lower;
use super::gemm::{Operand, all_slots};
use crate::legalize::gemm_tiling::GemmTiling;

impl Lower<'_> {
    /// The reads of an instruction tile, where the machine and the operand have them.
    pub(super) fn transposed_read(
        &mut self,
        o: &Operand<'_>,
        plan: &GemmTiling,
    ) -> Option<TransposedRead> {
        let is_a = o.k_dim == 1;
        let across = is_a == o.trans && self.target.machine().ds_read_tr;
        let bits = self.dtype(o.region.buffer).bits();
        let read = across.then(|| plan.transposed_read(is_a, bits.into()))??;
        (self.memory_width(o.region, &[]) >= read.elements).then_some(read)
    }

    /// One step of an operand, to registers.
    pub(super) fn read_transposed(
        &mut self,
        o: &Operand<'_>,
        plan: &GemmTiling,
        read: TransposedRead,
        (regs, step): (Buffer, &Expr),
        span: Span,
        out: &mut Block,
    ) {
        let is_a = o.k_dim == 1;
        let side = usize::from(!is_a);
        let (tiles, per_tile) = (plan.tiles[side], plan.slots[side]);
        let columns = i64::from(if is_a { plan.inst.m } else { plan.inst.n });
        let wave_size = i64::from(self.target.machine().warp_size);
        let lane = self.tid.clone().floor_mod(wave_size);
        let wave = self.tid.clone().floor_div(wave_size);
        let part = match is_a {
            true => wave.floor_div(plan.warps[1]),
            false => wave.floor_mod(plan.warps[1]),
        };
        let (tile_axis, t) = self.var("t", VarKind::Loop);
        let (read_axis, r) = self.var("r", VarKind::Loop);
        let group = lane.clone().floor_div(16);
        let own = lane.floor_mod(16);
        let (across, in_row) = (read.groups_across(), read.lanes_a_row());
        let place = t.clone() * columns
            + group.clone().floor_mod(across) * 16
            + own.clone().floor_mod(in_row) * read.elements;
        let column = plan.line(is_a, part, place);
        let in_run = match read.count == read.count_a_run() {
            true => r.clone() * read.elements,
            false => {
                let run = read.count_a_run();
                r.clone().floor_div(run) * read.between_runs()
                    + r.clone().floor_mod(run) * read.elements
            }
        };
        let row = step.clone() * i64::from(plan.inst.k)
            + group.floor_div(across) * read.run()
            + in_run
            + own.floor_div(in_row);
        let rank = o.region.dims.len();
        let mut at: Vec<Expr> = o.region.dims.iter().map(|d| d.start.clone()).collect();
        for (dim, inner) in [(rank - 2, row), (rank - 1, column)] {
            let inner = self.simplify(&inner).cast_to(at[dim].dtype());
            at[dim] = match at[dim].is_int(0) {
                true => inner,
                false => at[dim].clone() + inner,
            };
        }
        let op = MicroOp {
            kind: MicroKind::S2r,
            inst: Inst::DsReadTr,
            axes: vec![(tile_axis, tiles as u32), (read_axis, read.count as u32)],
            turns: false,
            dest: Access {
                region: all_slots(regs, o.slots),
                slot: None,
                at: vec![t * per_tile + r * read.elements],
            },
            sources: vec![Access {
                region: o.region.clone(),
                slot: None,
                at,
            }],
            width: read.elements as u32,
            apart: 1,
            pred: None,
            otherwise: None,
            counter: None,
            arrives: None,
            evict: None,
        };
        out.push(Stmt::new(StmtKind::Micro(op), span));
    }
}
