//! Whether the threads of a block write places of a shared buffer in a row.
//!
//! A wave's copy to LDS writes its lanes' data one after another. Whether the places that a
//! micro-op names are such is decided on closed forms: the map from instruction and thread to the
//! place is composed, and its weights are compared with those of a row. Weights over one radix are
//! unique, so this is a proof, and what has no closed form is not proved.

use tilewright_ir::{BufferOrigin, Func, MicroOp, Var};

use crate::Layout;
use crate::from_expr;

/// The threads of a block: their indices and extents along x, y, z.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    pub vars: [Var; 3],
    pub extents: [u32; 3],
}

/// Whether, at every instruction of the micro-op and every iteration of the loops around (each
/// with its extent), the destination of thread `t` is `width · t` elements after that of thread 0.
pub fn in_a_row(func: &Func, threads: Threads, loops: &[(Var, i64)], m: &MicroOp) -> bool {
    proved(func, threads, loops, m).unwrap_or(false)
}

fn proved(func: &Func, threads: Threads, loops: &[(Var, i64)], m: &MicroOp) -> Option<bool> {
    let axes = m.axes.iter().map(|(v, extent)| (*v, i64::from(*extent)));
    let own = threads.vars.iter().zip(threads.extents);
    let own = own.map(|(var, extent)| (*var, i64::from(extent)));
    let (inputs, shape): (Vec<Var>, Vec<i64>) =
        loops.iter().copied().chain(axes).chain(own).unzip();
    let places = places(func, &inputs, &shape, m)?;
    let form = places.form()?;
    let sum = form.outs.first()?;
    let first = shape.len() - threads.extents.len();
    let mut strides = Vec::new();
    let mut stride = i64::from(m.width);
    for extent in threads.extents {
        strides.push(stride);
        stride *= i64::from(extent);
    }
    let digits = form.radix.digits();
    let of_threads = digits.iter().enumerate().filter(|(_, d)| d.dim >= first);
    let mask = of_threads.fold(0u64, |mask, (at, _)| mask | 1 << at);
    let rows = sum.terms.iter().map(|t| t.row);
    let alone = rows
        .into_iter()
        .all(|r| r & mask == 0 || r.is_power_of_two());
    let counted = digits
        .iter()
        .enumerate()
        .all(|(at, d)| d.dim < first || sum.weight(1 << at) == d.div * strides[d.dim - first]);
    Some(alone && counted)
}

/// The place of the first element that each thread writes, over the inputs.
fn places(func: &Func, inputs: &[Var], shape: &[i64], m: &MicroOp) -> Option<Layout> {
    let data = &func.buffers[m.dest.region.buffer];
    if matches!(data.origin, BufferOrigin::View(_)) {
        return None;
    }
    let buffer = data.const_shape()?;
    let elements = from_expr::access(inputs, &m.dest.at, shape, &buffer)?;
    let layout = match data.placed() {
        Some(place) => place.flatten(),
        None => Layout::linear(&buffer),
    };
    elements.then(&layout.ok()?).ok()
}
