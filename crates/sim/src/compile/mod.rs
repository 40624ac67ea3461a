//! Compilation of a kernel for one call: names become slots, structure becomes jumps.

pub(crate) mod expr;
pub(crate) mod loops;
pub(crate) mod names;
mod races;
pub(crate) mod stmt;

use tilewright_ir::small_float::Number;
use tilewright_ir::uniform::{Points, Uniformity};
use tilewright_ir::{Func, Kernel};

use crate::error::{RunError, codes};
use crate::program::{Op, Place, Program};
use names::{Bound, Compiled, Names};

/// Threads of a block, at most: what every target allows.
pub(crate) const MAX_THREADS: u32 = 1024;

/// Compiles one kernel of the function for the bound arguments.
pub(crate) fn compile<'f>(
    func: &'f Func,
    kernel: &'f Kernel,
    bound: &'f Bound,
) -> Compiled<Program> {
    let threads = kernel
        .threads
        .iter()
        .try_fold(1u32, |n, &t| n.checked_mul(t));
    let threads = match threads {
        Some(n) if (1..=MAX_THREADS).contains(&n) => n,
        _ => {
            return Err(RunError::new(
                codes::LAUNCH_EXTENT,
                kernel.span,
                format!(
                    "a block has 1 to {MAX_THREADS} threads, not {:?}",
                    kernel.threads
                ),
            ));
        }
    };
    let mut names = Names::new(func, bound);
    names.threads = threads;
    let grid = grid(&mut names, kernel)?;
    names.uniformity = Some(Uniformity::of(func, kernel, Points::OfBlock));

    let block_slots = kernel.grid.iter().map(|(var, _)| {
        let slot = names.fresh();
        names.place_at(*var, Place::Slot(slot));
        slot
    });
    let block_slots: Vec<u32> = block_slots.collect();
    let rank_slot = kernel.attrs.rank.map(|var| {
        let slot = names.fresh();
        names.place_at(var, Place::Slot(slot));
        slot
    });
    let mut thread_slots = [None; 3];
    for (axis, slots) in thread_slots.iter_mut().enumerate() {
        let var = kernel.thread_vars[axis];
        if kernel.threads[axis] > 1 {
            let first = names.fresh_lanes();
            names.place_at(var, Place::Lane(first));
            *slots = Some(first);
        } else {
            // The slot keeps the zero it starts with.
            let slot = names.fresh();
            names.place_at(var, Place::Slot(slot));
        }
    }

    let code = stmt::body(&mut names, kernel)?;
    Ok(Program {
        ops: code.ops,
        spans: code.spans,
        buffers: names.buffers,
        block_storages: names.block_storages,
        private_storages: names.private_storages,
        barriers: names.barriers,
        slots: names.slots,
        block_slots,
        thread_slots,
        threads: kernel.threads,
        cluster: crate::grid::cluster(kernel, &grid)?,
        rank_slot,
        grid,
        grouped: code.grouped,
        traffic: names.traffic,
    })
}

/// The instructions of a body.
#[derive(Debug, Default)]
pub(crate) struct Code {
    pub ops: Vec<Op>,
    pub spans: Vec<tilewright_ir::Span>,
    pub grouped: bool,
}

fn grid(names: &mut Names<'_>, kernel: &Kernel) -> Compiled<Vec<u64>> {
    let mut grid = Vec::new();
    for (_, extent) in &kernel.grid {
        match names.constant(extent)? {
            Number::Int(n) if (0..1 << 31).contains(&n) => grid.push(n as u64),
            _ => {
                return Err(RunError::new(
                    codes::LAUNCH_EXTENT,
                    extent.span(),
                    "a grid extent is negative or too large",
                ));
            }
        }
    }
    Ok(grid)
}
