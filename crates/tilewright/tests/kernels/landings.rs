//! When asynchronous operations land, in the simulator.

use tilewright::ir::{Counter, Func, StmtKind, visit};
use tilewright::sim::simt::Landing;

/// The modes of asynchrony that make a difference to a function.
pub fn landings(func: &Func) -> Vec<Landing> {
    let (mut lds, mut dma) = (false, false);
    for kernel in &func.kernels {
        visit::walk_stmts(&kernel.body, &mut |stmt| {
            if let StmtKind::Micro(m) = &stmt.kind {
                lds |= m.counter == Some(Counter::Lgkmcnt);
                dma |= m.counter.is_some_and(|c| c != Counter::Lgkmcnt);
            }
        });
    }
    let default = Landing::default();
    let mut modes = Landing::ALL.to_vec();
    modes.retain(|m| (lds || m.lds == default.lds) && (dma || m.dma == default.dma));
    modes
}
