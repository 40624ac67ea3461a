//! Arguments of a kernel that are loaded before its loops.
//!
//! Scalar loads share a counter with reads of shared memory and come in no order: with one under way, a wait
//! for some reads would be one for all. The compiler loads an argument where it likes, also just before the
//! loop behind which it is used.
//!
//! ```text
//! tw::loaded(C);
//! ```

use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{Counter, DeviceOp, Kernel, StmtKind};

use crate::device::Piece;
use crate::kernel::Emitter;
use crate::source::KernelArg;

impl Emitter<'_> {
    /// Loads what is not described ([`crate::tensors`]), where a loop waits for some of its reads.
    pub(crate) fn loaded_arguments(&mut self, kernel: &Kernel, args: &[KernelArg]) {
        let counter = self.machine.shared.counter;
        if !counter.is_some_and(|counter| waits_for_some(kernel, counter)) {
            return;
        }
        for arg in args {
            let name = match arg {
                KernelArg::Buffer { buffer, .. } if self.plan.tensors.contains_key(buffer) => None,
                KernelArg::Buffer { buffer, .. } => self.storage.get(buffer).map(|s| &s.name),
                // Narrower ones are no whole scalar register.
                KernelArg::Scalar(var) if self.func.vars[*var].dtype.bits() < 32 => None,
                KernelArg::Scalar(var) => self.var_names.get(var),
                KernelArg::Map(_) => None,
            };
            if let Some(name) = name {
                self.needs.piece(Piece::Waits);
                self.out.line(format!("tw::loaded({name});"));
            }
        }
    }
}

/// Whether a loop waits for some operations of a counter and not for all.
fn waits_for_some(kernel: &Kernel, counted: Counter) -> bool {
    let most = counted.most_in_flight().unwrap_or(u32::MAX);
    let mut found = false;
    walk_stmts(&kernel.body, &mut |stmt| {
        if let StmtKind::For(l) = &stmt.kind {
            walk_stmts(&l.body, &mut |inner| {
                if let StmtKind::Device(DeviceOp::Wait { counter, at_most }) = inner.kind {
                    found |= counter == counted && (1..most).contains(&at_most);
                }
            });
        }
    });
    found
}
