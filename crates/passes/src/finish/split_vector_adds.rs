//! SplitVectorAdds: elements that the machine does not add to at once are added to one by one.
//!
//! Machines add to two or four neighbours in global memory in one operation, where those are
//! aligned to their number.
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
use tilewright_ir::visit::{child_blocks_mut, walk_stmts};
use tilewright_ir::{
    AtomicOp, Block, Buffer, BufferOrigin, Diagnostics, Expr, Func, Machine, MemoryOrder, Scope,
    Stmt, StmtKind, Target, ThreadOp,
};

use crate::Changed;

/// Splits the additions.
pub fn split_vector_adds(func: &mut Func, target: Target, _: &mut Diagnostics) -> Changed {
    let mut any = false;
    for kernel in &func.kernels {
        walk_stmts(&kernel.body, &mut |stmt| any |= is_vector_add(stmt));
    }
    if !any {
        return Changed::No;
    }
    let mut whole = Vec::new();
    Analyzer::for_func(func).walk_func(func, &mut |analyzer, stmt| {
        if let StmtKind::Thread(ThreadOp::AtomicVecAdd {
            dst,
            dst_indices,
            lanes,
            ..
        }) = &stmt.kind
        {
            let at_once = adds_at_once(func, target.machine(), analyzer, *dst, dst_indices, *lanes);
            whole.push(at_once);
        }
    });
    if whole.iter().all(|at_once| *at_once) {
        return Changed::No;
    }
    // In the order in which they were found.
    let mut whole = whole.into_iter();
    let mut kernels = std::mem::take(&mut func.kernels);
    for kernel in &mut kernels {
        split(func, &mut kernel.body, &mut whole);
    }
    func.kernels = kernels;
    Changed::Yes
}

fn is_vector_add(stmt: &Stmt) -> bool {
    matches!(stmt.kind, StmtKind::Thread(ThreadOp::AtomicVecAdd { .. }))
}

fn split(func: &Func, block: &mut Block, whole: &mut impl Iterator<Item = bool>) {
    let mut out = Vec::with_capacity(block.len());
    for mut stmt in std::mem::take(block) {
        for child in child_blocks_mut(&mut stmt) {
            split(func, child, whole);
        }
        match &stmt.kind {
            StmtKind::Thread(ThreadOp::AtomicVecAdd {
                dst,
                dst_indices,
                src,
                src_indices,
                lanes,
            }) if whole.next() == Some(false) => {
                for lane in 0..*lanes {
                    let from = Expr::load(*src, plus(src_indices, lane), func.buffers[*src].dtype);
                    let add = ThreadOp::AtomicRmw {
                        op: AtomicOp::Add,
                        buffer: *dst,
                        indices: plus(dst_indices, lane),
                        value: from.cast_to(func.buffers[*dst].dtype),
                        order: MemoryOrder::Relaxed,
                        result: None,
                    };
                    out.push(Stmt::new(StmtKind::Thread(add), stmt.span));
                }
            }
            _ => out.push(stmt),
        }
    }
    *block = out;
}

/// The indices so many elements further on in the row.
fn plus(indices: &[Expr], lane: u16) -> Vec<Expr> {
    let mut indices = indices.to_vec();
    if let Some(last) = indices.last_mut()
        && lane > 0
    {
        *last = match last.as_int() {
            Some(first) => Expr::int(first + i128::from(lane), last.dtype()),
            None => last.clone() + Expr::int(lane.into(), last.dtype()),
        };
    }
    indices
}

/// Whether the machine adds to these elements in one operation, which wants them aligned.
fn adds_at_once(
    func: &Func,
    machine: &Machine,
    analyzer: &mut Analyzer,
    dst: Buffer,
    indices: &[Expr],
    lanes: u16,
) -> bool {
    let data = &func.buffers[dst];
    let known_start = !matches!(data.origin, BufferOrigin::Pointer(_));
    if data.scope != Scope::Global
        || !known_start
        || data.dtype.lanes != 1
        || u32::from(lanes) > machine.atomic_add_lanes(data.dtype.scalar)
    {
        return false;
    }
    // Rows start at multiples of the vector, and so does it in its row.
    let mut multiples: Vec<Expr> = Vec::new();
    match &data.strides {
        None if data.shape.len() > 1 => multiples.extend(data.shape.last().cloned()),
        None => {}
        Some(strides) => match strides.split_last() {
            Some((last, rows)) if last.is_int(1) => multiples.extend(rows.iter().cloned()),
            _ => return false,
        },
    }
    multiples.extend(indices.last().cloned());
    let mut aligned = multiples.iter();
    aligned.all(|e| analyzer.divides(lanes.into(), e).is_yes())
}
