//! SplitVectorAdds: elements that the machine does not add to at once are added to in parts, or one by
//! one.
//!
//! Machines add to two or four neighbours in one operation, where those are aligned to their number and
//! lie side by side.
//!
//! Before:
//! ```text
//! atomic_vec_add O[tx + i], R[i * 2] lanes=2
//! ```
//! After:
//! ```text
//! atomic_rmw add O[tx + i], R[i * 2] relaxed
//! atomic_rmw add O[tx + i + 1], R[i * 2 + 1] relaxed
//! ```
//!
//! Needs one thread's program. It never splits what is proved to be aligned and wide enough.

use tilewright_arith::Analyzer;
use tilewright_ir::{BufferOrigin, Diagnostics, Expr, Func, Machine, Scope, Target};

use crate::Changed;
use crate::legalize::shared_width::shared_width;
use crate::vector_adds::{self, VectorAdd};

/// Splits the additions.
pub fn split_vector_adds(func: &mut Func, target: Target, _: &mut Diagnostics) -> Changed {
    vector_adds::split_vector_adds(func, |func, analyzer, add| {
        at_once(func, target.machine(), analyzer, add)
    })
}

/// How many of the elements the machine adds to in one operation, which wants them aligned.
fn at_once(func: &Func, machine: &Machine, analyzer: &mut Analyzer, add: VectorAdd<'_>) -> u16 {
    let data = &func.buffers[add.dst];
    if matches!(data.origin, BufferOrigin::Pointer(_)) || data.dtype.lanes != 1 {
        return 1;
    }
    let most = machine.atomic_add_lanes(data.scope, data.dtype.scalar);
    let together = match data.scope {
        Scope::Shared => shared_width(func, add.dst),
        _ => add.lanes.into(),
    };
    // Rows start at multiples of the vector, and so does it in its row.
    let mut multiples: Vec<Expr> = Vec::new();
    match &data.strides {
        None if data.shape.len() > 1 => multiples.extend(data.shape.last().cloned()),
        None => {}
        Some(strides) => match strides.split_last() {
            Some((last, rows)) if last.is_int(1) => multiples.extend(rows.iter().cloned()),
            _ => return 1,
        },
    }
    multiples.extend(add.dst_indices.last().cloned());
    let mut serves = |width: u16| {
        let mut all = multiples.iter();
        u32::from(width) <= most
            && together % i64::from(width) == 0
            && all.all(|e| analyzer.divides(width.into(), e).is_yes())
    };
    let halves = std::iter::successors(Some(add.lanes), |width| Some(width / 2));
    let mut widths = halves.take_while(|width| *width > 1);
    widths.find(|width| serves(*width)).unwrap_or(1)
}
