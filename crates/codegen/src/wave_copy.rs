//! The wave's copy from a tensor to LDS: what is the same for all lanes is kept in scalar
//! registers.
//!
//! The machine takes a description of the tensor ([`crate::tensors`]), an offset for each lane and
//! one that all lanes share ([`crate::tensor_offset`]), and the place in LDS of the first lane (m0).
//! Where threads write in a row that place is thread 0's plus the number of the wave's first thread,
//! which is read once at the start of the kernel.

use tilewright_ir::{Expr, MicroOp, Span};
use tilewright_layout::wave_places::{Threads, in_a_row};

use crate::device::Piece;
use crate::kernel::Emitter;
use crate::micro::is_zero;
use crate::tensor_offset::bytes_of;
use crate::{Emit, unsupported};

impl Emitter<'_> {
    /// The number of the wave's first thread, read once.
    pub(crate) fn wave_number(&mut self) {
        self.needs.piece(Piece::Async);
        let name = self.names.take("wave");
        let thread = self.linear_thread();
        self.out.line(format!(
            "const unsigned {name} = tw::wave_value({thread} & ~{});",
            self.machine.warp_size - 1
        ));
        self.plan.wave = name;
    }

    /// A wave's copy from a tensor to LDS.
    pub(crate) fn buffer_load_lds(&mut self, op: &MicroOp, span: Span) -> Emit<()> {
        let [source] = op.sources.as_slice() else {
            return unsupported(span, format!("`{}` takes one source", op.inst));
        };
        if op.otherwise.as_ref().is_some_and(|e| !is_zero(e)) {
            return unsupported(span, format!("`{}` fills with zeros only", op.inst));
        }
        let bits = op.width * self.func.buffers[op.dest.region.buffer].dtype.bits();
        let widths = self.machine.async_copy.map_or(&[][..], |copy| copy.bytes);
        let Some(bytes) = widths.iter().copied().find(|b| b * 8 == bits) else {
            return unsupported(
                span,
                format!(
                    "`{}` of {bits} bits a lane: {} has it for {widths:?} bytes",
                    op.inst, self.target
                ),
            );
        };
        let tensor = source.region.buffer;
        self.needs.piece(Piece::Async);
        let Some(from) = self.plan.tensors.get(&tensor).cloned() else {
            let name = &self.func.buffers[tensor].name;
            return unsupported(span, format!("`{name}` is no tensor of the kernel"));
        };
        let to = self.first_place(op, bytes, span)?;
        let bits = self.func.buffers[tensor].dtype.bits();
        let offset = self.offset_of(source);
        let (lane, shared) = match offset.or_else(|| self.offset_where_read(source)) {
            Some(offset) => {
                let lane = self.in_bytes(&offset.lane, bits)?;
                (lane, self.in_bytes(&offset.shared, bits)?)
            }
            None => {
                let place = self.access(source, span)?;
                let lane = bytes_of(&place.offset.text, bits);
                (lane, "0".to_string())
            }
        };
        let copy =
            |lane: String| format!("tw::copy_to_lds<{bytes}>({to}, {from}, {lane}, {shared});");
        let line = match (&op.pred, &op.otherwise) {
            (None, _) => copy(lane),
            (Some(pred), Some(_)) => copy(format!("{} ? {lane} : -1u", self.scalar(pred)?)),
            (Some(pred), None) => format!("if ({}) {}", self.scalar(pred)?, copy(lane)),
        };
        self.out.line(line);
        Ok(())
    }

    /// Where the data of the wave's first lane lands.
    fn first_place(&mut self, op: &MicroOp, bytes: u32, span: Span) -> Emit<String> {
        let threads = self.plan.thread_vars.map(|vars| Threads {
            vars,
            extents: self.threads,
        });
        let row = threads.filter(|t| in_a_row(self.func, *t, &[], op));
        let Some(threads) = row else {
            let to = self.access(&op.dest, span)?;
            return Ok(format!("tw::first_lane_address<{bytes}>({})", to.address()));
        };
        // Thread 0's place, which knows no thread, and then in a row.
        let mut first = op.dest.clone();
        for e in &mut first.at {
            let zero = e.rewrite(&mut |node| {
                let var = node.as_var()?;
                threads
                    .vars
                    .contains(&var)
                    .then(|| Expr::zero(node.dtype()))
            });
            *e = self.analyzer.simplify(&zero);
        }
        // What a loop does not change would be kept for it in a vector register.
        let mut kept = self.loops > 0;
        for e in first.at.iter().chain(&first.slot) {
            e.walk(&mut |node| {
                let constant = |v| self.unrolled.contains(&v) || self.settled.contains_key(&v);
                kept &= node.as_var().is_none_or(constant);
            });
        }
        let to = self.access(&first, span)?;
        let wave = &self.plan.wave;
        let wave = match kept {
            true => format!("tw::again({wave} * {bytes})"),
            false => format!("{wave} * {bytes}"),
        };
        Ok(format!("tw::lds_address({}) + {wave}", to.address()))
    }
}
