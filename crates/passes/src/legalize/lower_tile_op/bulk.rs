//! Bulk copies that the user asked for: one thread of those that take part has the copy engine move
//! boxes ([`crate::legalize::boxes`]).
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

use tilewright_ir::{
    Access, Arrival, Block, Buffer, Code, CopyOp, Diagnostic, Expr, Region, Span, Stmt, StmtKind,
    ThreadOp,
};

use super::{Lower, guarded};
use crate::legalize::boxes::{Boxes, NoBox, Way};

const BULK_COPY: Code = Code("bulk-copy");

impl Lower<'_> {
    pub(super) fn bulk_copy(
        &mut self,
        c: &CopyOp,
        barrier: Option<&(Buffer, Expr)>,
        span: Span,
        out: &mut Block,
    ) {
        let (way, tensor, tile) = match barrier {
            Some(_) => (Way::Load, &c.src, &c.dst),
            None => (Way::Store, &c.dst, &c.src),
        };
        let [tensor, tile] = [tensor, tile].map(|region: &Region| Access {
            region: region.clone(),
            slot: None,
            at: region.dims.iter().map(|d| d.start.clone()).collect(),
        });
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
            Err(NoBox { why, help }) => {
                let message = format!("the copy engine cannot do this: {why}");
                let diag = Diagnostic::error(BULK_COPY, span, message).help(help);
                return self.diags.push(diag);
            }
        };
        let mut bulk = boxes.copy(self.func, tensor, tile, way);
        let mut body = Vec::new();
        if let Some((barrier, index)) = barrier {
            let expect = ThreadOp::BarrierExpect {
                barrier: *barrier,
                index: index.clone(),
                bytes: Expr::i32(bulk.bytes as i32),
                arrive: false,
            };
            body.push(Stmt::new(StmtKind::Thread(expect), span));
            bulk.op.arrives = Some(Arrival {
                barrier: *barrier,
                index: index.clone(),
                multicast: false,
            });
        }
        body.push(Stmt::new(StmtKind::Micro(bulk.op), span));
        let first = self.tid.clone().equal(0);
        let first = self.simplify(&first);
        guarded(Some(first), body, span, out);
    }

    /// The name of a tensor that does not read as zero outside.
    fn safe_value(&self, tensor: &Access) -> Option<String> {
        let data = &self.func.buffers[tensor.region.buffer];
        let zero = |e: &Expr| e.is_int(0) || e.as_float().is_some_and(|v| v.to_bits() == 0);
        let other = data.safe_value.as_ref().is_some_and(|value| !zero(value));
        other.then(|| data.name.clone())
    }
}
