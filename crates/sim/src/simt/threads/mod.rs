//! Thread operations, a file a family: what each becomes, and what a warp does.

mod atomics;
mod barriers;
mod lanes;
mod plain;

use tilewright_ir::{Buffer, Expr, Span, ThreadOp, Var, thread_ops};

use super::access::{byte_len, byte_of};
use super::compile::Compiler;
use super::env::Env;
use super::program::{Access, Slot, Space};
use super::report::FindingKind;
use super::step::Pause;
use super::warp::Warp;
use crate::compile::names::Compiled;
use crate::error::RunError;
use crate::memory::read_bits;

#[derive(Clone, Debug)]
pub(super) enum ThreadCode {
    Atomic(atomics::Code),
    Lanes(lanes::Code),
    Barrier(barriers::Code),
    Plain(plain::Code),
}

impl Compiler<'_> {
    pub(super) fn thread_op(&mut self, op: &ThreadOp, span: Span) -> Compiled<()> {
        self.statement(span, op.word().to_string());
        if let Some(var) = op.result() {
            let slot = self.fresh_lanes();
            self.vars.insert(var, vec![slot]);
        }
        let kept = self.next;
        let code = match op {
            thread_ops!(atomics) => atomics::compile(self, op, span)?,
            thread_ops!(lanes) => lanes::compile(self, op, span)?,
            thread_ops!(barriers) => barriers::compile(self, op, span)?,
            thread_ops!(plain) => plain::compile(self, op, span)?,
        };
        self.emit(code);
        self.next = kept;
        Ok(())
    }

    /// The register that takes an operation's result.
    fn result(&self, var: Var) -> Slot {
        self.vars[&var][0]
    }

    /// An element that a thread operation works on.
    fn element(
        &mut self,
        buffer: Buffer,
        indices: &[Expr],
        width: u32,
        writes: bool,
        span: Span,
    ) -> Compiled<u32> {
        let number = self.buffer(buffer)?;
        let (version, indices) = self.version(number, indices)?;
        let (slots, _) = self.indices(number, indices, 0, span)?;
        self.note_traffic(number, writes);
        Ok(self.add_access(Access {
            buffer: number,
            indices: slots,
            version,
            width,
        }))
    }
}

/// What a family says of an operation that is not its own.
fn stray(span: Span) -> RunError {
    RunError::invalid(span, "an operation of another family")
}

impl Env<'_> {
    pub fn thread(&mut self, warp: &mut Warp, code: &ThreadCode) -> Pause {
        match code {
            ThreadCode::Atomic(code) => self.atomic_op(warp, code),
            ThreadCode::Lanes(code) => self.lanes_op(warp, code),
            ThreadCode::Barrier(code) => self.barrier_op(warp, code),
            ThreadCode::Plain(code) => self.plain_op(warp, code),
        }
    }

    /// Reports a collective that some threads of the warp do not take part in.
    fn converged(&mut self, warp: &Warp, what: &str) {
        if !warp.converged() {
            self.report(warp, FindingKind::DivergentCollective, None, || {
                format!(
                    "{what} in divergent control flow: {} of {} threads of the warp are here",
                    warp.mask.count_ones(),
                    warp.all.count_ones()
                )
            });
        }
    }

    /// The stored bits of a scalar.
    fn raw(&self, warp: &Warp, access: &Access, lane: u32, at: usize) -> u64 {
        let info = &self.program.buffers[access.buffer as usize];
        let bits = info.bits();
        match info.space {
            Space::Shared(base) => read_bits(&self.shared.bytes[base as usize..], bits, at),
            Space::Global(n) => read_bits(&self.globals.storage(n).bytes, bits, at),
            Space::Local(base) => {
                let (start, len) = (byte_of(info, at), byte_len(info, at, 1));
                let bytes = warp
                    .local
                    .load(lane, base as usize, start + len - base as usize);
                read_bits(bytes, bits, at)
            }
            Space::Barrier(_) => 0,
        }
    }
}
