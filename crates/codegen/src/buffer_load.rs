//! Counted loads from tensors to registers, by buffer instructions.
//!
//! A buffer instruction takes a description of the tensor ([`crate::tensors`]), an offset for each
//! lane and one that all lanes share ([`crate::tensor_offset`]). With plain pointers the compiler
//! adds them up in 64 bits for each lane and load, in the loop.
//!
//! Before:
//! ```text
//! tw::load<16>(staged, c * 8, &A[(by * 128 + c * 32 + tx / 4) * 1024 + k * 32 + tx % 4 * 8]);
//! ```
//! After:
//! ```text
//! tw::load_buffer<16>(staged, c * 8, A_tensor,
//!     (unsigned)(tx / 4 * 1024 + tx % 4 * 8) * 2, (unsigned)((by * 128 + c * 32) * 1024 + k * 32) * 2);
//! ```
//!
//! Where a condition says whether a lane loads or has zeros, a lane that does not reads past the end:
//! no branch, and no address in 64 bits for it.

use tilewright_ir::{
    Access, Buffer, BufferOrigin, Counter, ExprKind, Func, Inst, MicroOp, Scope, Span, VarKind,
};

use crate::Emit;
use crate::device::Piece;
use crate::kernel::Emitter;
use crate::micro::is_zero;
use crate::tensor_offset::bytes_of;
use crate::tensors::const_bytes;

impl Emitter<'_> {
    /// The statement that loads what the micro-op does at a point, where it can be one of these, and whether
    /// it says itself which lanes have zeros.
    pub(crate) fn buffer_load(&mut self, op: &MicroOp) -> Emit<Option<(String, bool)>> {
        let Some(tensor) = counted_load(self.func, op) else {
            return Ok(None);
        };
        let (Some(name), Some(source)) =
            (self.plan.tensors.get(&tensor).cloned(), op.sources.first())
        else {
            return Ok(None);
        };
        let bits = op.width * self.func.buffers[tensor].dtype.bits();
        if !matches!(bits, 32 | 64 | 96 | 128) || op.apart > 1 {
            return Ok(None);
        }
        let bytes = bits / 8;
        let bits = self.func.buffers[tensor].dtype.bits();
        let zeros = op.otherwise.as_ref().is_some_and(is_zero);
        // From where the kernel works out a start, the compiler does better with pointers that it keeps.
        let guarded = op.pred.is_some() && zeros && !self.starts_at_a_value(source);
        let offset = self.offset_of(source);
        let offset = match offset.is_none() && guarded {
            true => self.offset_where_read(source),
            false => offset,
        };
        let (lane, shared) = match offset {
            Some(offset) => (
                self.in_bytes(&offset.lane, bits)?,
                self.in_bytes(&offset.shared, bits)?,
            ),
            // Where the condition holds the whole offset is in the tensor, though parts may not be.
            None if guarded => {
                let place = self.access(source, Span::NONE)?;
                (bytes_of(&place.offset.text, bits), "0".to_string())
            }
            None => return Ok(None),
        };
        let lane = match &op.pred {
            Some(pred) if zeros && !self.settled(pred).is_int(1) => {
                format!("{} ? {lane} : -1u", self.scalar(pred)?)
            }
            _ => lane,
        };
        let to = self.access(&op.dest, Span::NONE)?;
        self.needs.piece(Piece::BufferLoad);
        let line = format!(
            "tw::load_buffer<{bytes}>({}, {}, {name}, {lane}, {shared});",
            to.name, to.offset.text
        );
        Ok(Some((line, zeros)))
    }

    /// Whether a value that has a name, or one from memory, is in the place of an access.
    fn starts_at_a_value(&self, access: &Access) -> bool {
        let mut found = false;
        for e in &access.at {
            e.walk_distinct(&mut |node| match node.kind() {
                ExprKind::Var(var) => found |= self.func.vars[*var].kind == VarKind::Let,
                ExprKind::Load { .. } => found = true,
                _ => {}
            });
        }
        found
    }
}

/// The tensor that a counted load to registers reads, where 32 bits count its bytes.
pub(crate) fn counted_load(func: &Func, op: &MicroOp) -> Option<Buffer> {
    let source = op.sources.first()?.region.buffer;
    let (from, to) = (&func.buffers[source], &func.buffers[op.dest.region.buffer]);
    let plain = op.inst == Inst::Load
        && op.counter == Some(Counter::Vmcnt)
        && from.scope == Scope::Global
        && from.strides.is_none()
        && !matches!(
            from.origin,
            BufferOrigin::View(_) | BufferOrigin::Pointer(_)
        )
        && matches!(to.scope, Scope::Local | Scope::Fragment)
        && from.dtype.lanes == 1
        && (from.dtype.bits() >= 8 || from.dtype.bits() == 6)
        && from.dtype == to.dtype;
    let counted = const_bytes(from).is_some_and(|bytes| bytes <= i64::from(i32::MAX));
    (plain && counted).then_some(source)
}
