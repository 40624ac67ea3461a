//! Matrix products of warp groups: one micro-op, whose instructions read B, and A unless it lies in
//! registers, from shared memory.
//!
//! Before:
//! ```text
//! gemm A[…], B[…] -> C[…] trans_b inst="wgmma.64x128x16.bfloat16.float32" warps=[2, 1]
//! ```
//! After:
//! ```text
//! mma for ks < 4, mi < 1, ni < 1 do A[…] at [tx // 128 * 64 + mi * 64, ks * 16],
//!   B[…] at [ni * 128, ks * 16] -> C[…] at [(mi + ni) * 64] inst="wgmma.64x128x16.bfloat16.float32.k.k" counter=wgmma
//! ```

use tilewright_ir::{
    Access, Block, Buffer, Counter, DeviceOp, Expr, FenceKind, GemmKind, GemmOp, MicroKind,
    MicroOp, Region, Span, Stmt, StmtKind, VarKind,
};

use super::Lower;
use super::gemm::all_slots;
use crate::legalize::gemm_tiling::GemmTiling;

impl Lower<'_> {
    /// The product of all steps, added to C or to nothing.
    pub(super) fn group_multiply(
        &mut self,
        g: &GemmOp,
        (c, fresh): (Buffer, bool),
        plan: &GemmTiling,
        span: Span,
        out: &mut Block,
    ) {
        let Some(lies) = plan.group() else {
            return self.give_up(
                span,
                "the operands of this gemm do not lie as its plan says",
            );
        };
        let inst = plan.inst;
        let [mt, nt] = plan.tiles;
        let (ks, step) = self.var("ks", VarKind::Loop);
        let (mi, m) = self.var("mi", VarKind::Loop);
        let (ni, n) = self.var("ni", VarKind::Loop);
        let threads = inst.threads(self.target.machine().warp_size);
        let (group_var, group) = self.var("group", VarKind::Let);
        let value = self.tid.clone().floor_div(i64::from(threads));
        let let_group = StmtKind::Let {
            var: group_var,
            value,
        };
        out.push(Stmt::new(let_group, span));
        let row = (group.clone().floor_div(plan.warps[1]) * mt + m.clone()) * i64::from(inst.m);
        let col = (group.floor_mod(plan.warps[1]) * nt + n.clone()) * i64::from(inst.n);
        let depth = step.clone() * i64::from(inst.k);
        let a = if lies.a.is_none() {
            let slots = plan.slots[0];
            let at = (m.clone() * plan.steps + step) * slots;
            self.needs_registers(g.a.buffer, mt * plan.steps * slots);
            Access {
                region: all_slots(g.a.buffer, mt * plan.steps * slots),
                slot: None,
                at: vec![self.simplify(&at)],
            }
        } else if g.trans_a {
            self.tile_at(&g.a, [depth.clone(), row])
        } else {
            self.tile_at(&g.a, [row, depth.clone()])
        };
        let b = if g.trans_b {
            self.tile_at(&g.b, [col, depth])
        } else {
            self.tile_at(&g.b, [depth, col])
        };
        let c_at = (m * nt + n) * plan.slots[2];
        let dest = Access {
            region: all_slots(c, plan.c_slots()),
            slot: None,
            at: vec![self.simplify(&c_at)],
        };
        // The user waits for a group of its own.
        let by_hand = g.kind == GemmKind::Wgmma;
        let device = |op: DeviceOp| Stmt::new(StmtKind::Device(op), span);
        if by_hand {
            out.push(device(DeviceOp::Fence(FenceKind::Wgmma)));
        }
        out.push(Stmt::new(
            StmtKind::Micro(MicroOp {
                kind: MicroKind::Mma,
                inst: lies.inst(inst, fresh),
                axes: vec![(ks, plan.steps as u32), (mi, mt as u32), (ni, nt as u32)],
                turns: false,
                dest,
                sources: vec![a, b],
                width: 1,
                apart: 1,
                pred: None,
                otherwise: None,
                counter: Some(Counter::Wgmma),
                arrives: None,
                evict: None,
            }),
            span,
        ));
        if by_hand {
            out.push(device(DeviceOp::Commit(Counter::Wgmma)));
        }
    }

    /// The tile of a region that starts so far into its last two dimensions.
    fn tile_at(&mut self, region: &Region, inner: [Expr; 2]) -> Access {
        let mut at: Vec<Expr> = region.dims.iter().map(|d| d.start.clone()).collect();
        let first = at.len() - 2;
        for (dim, inner) in inner.iter().enumerate() {
            let start = at[first + dim].clone();
            let inner = self.simplify(inner).cast_to(start.dtype());
            at[first + dim] = match start.is_int(0) {
                true => inner,
                false => start + inner,
            };
        }
        Access {
            region: region.clone(),
            slot: None,
            at,
        }
    }
}
