//! Counted loads from tensors to registers on AMD, by buffer instructions.
//!
//! A buffer instruction takes a description of the tensor, an offset for each lane and one that all
//! lanes share ([`crate::tensor_offset`]). With plain pointers the compiler adds them up in 64 bits
//! for each lane and load, in the loop.
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

use rustc_hash::FxHashMap;
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{Buffer, BufferOrigin, Counter, Func, Inst, Kernel, MicroOp, Scope, StmtKind};

use crate::Emit;
use crate::device::Piece;
use crate::kernel::Emitter;

/// The tensors of a kernel that are loaded so.
#[derive(Debug, Default)]
pub(crate) struct Tensors {
    names: FxHashMap<Buffer, String>,
}

impl Emitter<'_> {
    /// Describes the tensors that counted loads read, once.
    pub(crate) fn described_tensors(&mut self, kernel: &Kernel) {
        self.tensors = Tensors::default();
        if !self.target.is_amd() {
            return;
        }
        let mut read: Vec<(Buffer, i64)> = Vec::new();
        walk_stmts(&kernel.body, &mut |stmt| {
            if let StmtKind::Micro(op) = &stmt.kind
                && let Some((tensor, bytes)) = counted_load(self.func, op)
                && !read.iter().any(|(known, _)| *known == tensor)
            {
                read.push((tensor, bytes));
            }
        });
        if read.is_empty() {
            return;
        }
        self.amd.find_varying(self.func, kernel);
        self.needs.piece(Piece::BufferLoad);
        for (tensor, bytes) in read {
            let Some(start) = self.storage.get(&tensor).map(|s| s.name.clone()) else {
                continue;
            };
            let name = &self.func.buffers[tensor].name;
            let name = self.names.take(&format!("{name}_tensor"));
            self.out.line(format!(
                "const tw::Tensor {name} = tw::tensor({start}, {bytes});"
            ));
            self.tensors.names.insert(tensor, name);
        }
    }

    /// The statement that loads what the micro-op does at a point, where it can be one of these.
    pub(crate) fn buffer_load(&mut self, op: &MicroOp) -> Emit<Option<String>> {
        let Some((tensor, _)) = counted_load(self.func, op) else {
            return Ok(None);
        };
        let (Some(name), Some(source)) =
            (self.tensors.names.get(&tensor).cloned(), op.sources.first())
        else {
            return Ok(None);
        };
        let (Some(bytes @ (4 | 8 | 16)), _) = self.pieces(op) else {
            return Ok(None);
        };
        let Some(offset) = self.offset_of(source) else {
            return Ok(None);
        };
        let size = self.func.buffers[tensor].dtype.bits() / 8;
        let lane = self.in_bytes(&offset.lane, size)?;
        let shared = self.in_bytes(&offset.shared, size)?;
        let to = self.access(&op.dest, tilewright_ir::Span::NONE)?;
        Ok(Some(format!(
            "tw::load_buffer<{bytes}>({}, {}, {name}, {lane}, {shared});",
            to.name, to.offset.text
        )))
    }
}

/// The tensor that a counted load to registers reads, and its bytes, where 32 bits count them.
fn counted_load(func: &Func, op: &MicroOp) -> Option<(Buffer, i64)> {
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
        && from.dtype.bits() >= 8
        && from.dtype == to.dtype;
    let mut bytes = i64::from(from.dtype.bits() / 8);
    for extent in &from.shape {
        bytes = bytes.checked_mul(i64::try_from(extent.as_int()?).ok()?)?;
    }
    (plain && bytes <= i64::from(i32::MAX)).then_some((source, bytes))
}
