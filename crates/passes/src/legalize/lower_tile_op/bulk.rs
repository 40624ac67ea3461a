//! Bulk copies: a thread has the copy engine move boxes ([`crate::legalize::boxes`]). Those that the
//! user asked for are one thread's of those that take part.
//!
//! Before:
//! ```text
//! copy A[by * 128 +: 128, k * 64 +: 64] -> S[0 +: 128, 0 +: 64] tma barrier=full[0]
//! ```
//! After; the arrivals that complete the phase are the user's:
//! ```text
//! if tx == 0 {
//!   mbarrier_expect_tx full[0] bytes=16384
//!   tma_load A[…] at [by * 128, k * 64] -> S[…] at [0, 0] inst="tma.128x64" width=1 counter=mbarrier arrives=full[0]
//! }
//! ```
//! A load to several blocks of a cluster is one thread's of the first of them; each announces the
//! bytes that come to it:
//! ```text
//! if tx == 0 {
//!   mbarrier_expect_tx full[0] bytes=16384
//!   if rank == 0 {
//!     tma_load … arrives=full[0] multicast=3
//!   }
//! }
//! ```
//! A thread alone (`tma alone`) does what it says where it says it, and the bytes are announced by
//! the program.
//!
//! Results of products go out by one thread of each warp, which has the warp's rows stored and closes
//! their group. Before:
//! ```text
//! copy S[0 +: 128, 0 +: 256] -> C[by * 128 +: 128, bx * 256 +: 256] tma warps=[2, 1]
//! ```
//! After; the waits come with StoreWaits:
//! ```text
//! if tx % 32 == 0 {
//!   tma_store for p < 4 do S[…] at [tx // 32 * 16, p * 64] -> C[…] at [by * 128 + tx // 32 * 16, bx * 256 + p * 64] inst="tma.16x64" width=1 counter=tma_store
//!   commit tma_store
//! }
//! ```

use tilewright_ir::{
    Access, Arrival, Block, Code, CopyKind, CopyOp, Counter, DType, DeviceOp, Diagnostic, Expr,
    MicroOp, Region, Span, Stmt, StmtKind, ThreadOp, VarKind,
};

use super::{Lower, guarded};
use crate::legalize::boxes::{Boxes, NoBox, Way};

const BULK_COPY: Code = Code("bulk-copy");

impl Lower<'_> {
    pub(super) fn bulk_copy(&mut self, c: &CopyOp, span: Span, out: &mut Block) {
        let CopyKind::Tma {
            barrier,
            multicast,
            alone,
        } = &c.kind
        else {
            return;
        };
        let (way, tensor, tile) = match barrier {
            Some(_) => (Way::Load, &c.src, &c.dst),
            None => (Way::Store, &c.dst, &c.src),
        };
        let [tensor, tile] = [tensor, tile].map(whole);
        let found = Boxes::of(self.func, &tensor, &tile).and_then(|boxes| {
            match (way, self.safe_value(&tensor)) {
                (Way::Load, Some(name)) => Err(NoBox {
                    why: format!(
                        "outside of `{name}` the copy engine reads zero, not its safe value"
                    ),
                    help: "leave `T.annotate_safe_value` out, or use `T.copy`",
                }),
                _ => Ok(boxes),
            }
        });
        let boxes = match found {
            Ok(boxes) => boxes,
            Err(no_box) => return self.no_box(no_box, span),
        };
        let mut bulk = boxes.copy(self.func, tensor, tile, way);
        bulk.op.evict = c.hints.eviction;
        let mut body = Vec::new();
        if let Some((barrier, index)) = barrier {
            if !alone {
                let expect = ThreadOp::BarrierExpect {
                    barrier: *barrier,
                    index: index.clone(),
                    bytes: Expr::i32(bulk.bytes as i32),
                    arrive: false,
                };
                body.push(Stmt::new(StmtKind::Thread(expect), span));
            }
            bulk.op.arrives = Some(Arrival {
                barrier: *barrier,
                index: index.clone(),
                multicast: None,
            });
        }
        match multicast {
            Some(mask) => self.multicast(bulk.op, *mask, span, &mut body),
            None => body.push(Stmt::new(StmtKind::Micro(bulk.op), span)),
        }
        let first = self.tid.clone().equal(0);
        let first = self.simplify(&first);
        guarded((!alone).then_some(first), body, span, out);
    }

    /// The first of the blocks loads for all of them, each of the others of the cluster for itself.
    fn multicast(&mut self, op: MicroOp, mask: u16, span: Span, out: &mut Block) {
        let func = &mut *self.func;
        let rank = self
            .rank
            .get_or_insert_with(|| func.add_var("rank", DType::I32, VarKind::Rank));
        let rank = func.var_expr(*rank);
        let mut to_all = op.clone();
        if let Some(arrival) = &mut to_all.arrives {
            arrival.multicast = Some(mask);
        }
        let is_first = rank.clone().equal(mask.trailing_zeros() as i64);
        let load = |op: MicroOp| vec![Stmt::new(StmtKind::Micro(op), span)];
        guarded(Some(is_first), load(to_all), span, out);
        let others = (0..self.blocks).filter(|rank| mask.checked_shr(*rank).unwrap_or(0) & 1 == 0);
        let others = others.map(|other| rank.clone().equal(i64::from(other)));
        if let Some(is_other) = others.reduce(Expr::or) {
            guarded(Some(is_other), load(op), span, out);
        }
    }

    /// Each warp has its rows stored.
    pub(super) fn bulk_rows(&mut self, c: &CopyOp, warps: [u32; 2], span: Span, out: &mut Block) {
        let [tensor, tile] = [&c.dst, &c.src].map(whole);
        let shape = self.func.buffers[c.src.buffer].const_shape();
        let &[rows, cols] = shape.as_deref().unwrap_or_default() else {
            return self.give_up(span, "a tile of another rank than two");
        };
        let boxes = Boxes::of(self.func, &tensor, &tile);
        let boxes = match boxes.and_then(|b| b.of_warp([rows, cols], warps, &self.tid)) {
            Ok(boxes) => boxes,
            Err(no_box) => return self.no_box(no_box, span),
        };
        let mut op = boxes.copy(self.func, tensor, tile, Way::Store).op;
        op.evict = c.hints.eviction;
        for index in op.sources[0].at.iter_mut().chain(&mut op.dest.at) {
            *index = self.simplify(index);
        }
        let commit = DeviceOp::Commit(Counter::TmaStore);
        let body = [StmtKind::Micro(op), StmtKind::Device(commit)];
        let body = body.map(|kind| Stmt::new(kind, span)).into();
        let lanes = i64::from(self.target.machine().warp_size);
        let first = self.tid.clone().floor_mod(lanes).equal(0);
        let first = self.simplify(&first);
        guarded(Some(first), body, span, out);
    }

    fn no_box(&mut self, NoBox { why, help }: NoBox, span: Span) {
        let message = format!("the copy engine cannot do this: {why}");
        let diag = Diagnostic::error(BULK_COPY, span, message).help(help);
        self.diags.push(diag);
    }

    /// The name of a tensor that does not read as zero outside.
    fn safe_value(&self, tensor: &Access) -> Option<String> {
        let data = &self.func.buffers[tensor.region.buffer];
        let zero = |e: &Expr| e.is_int(0) || e.as_float().is_some_and(|v| v.to_bits() == 0);
        let other = data.safe_value.as_ref().is_some_and(|value| !zero(value));
        other.then(|| data.name.clone())
    }
}

/// All of a region.
fn whole(region: &Region) -> Access {
    Access {
        region: region.clone(),
        slot: None,
        at: region.dims.iter().map(|d| d.start.clone()).collect(),
    }
}
