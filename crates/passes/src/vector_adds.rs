//! Atomic additions to several elements, taken apart.

use tilewright_arith::Analyzer;
use tilewright_ir::visit::{child_blocks_mut, walk_stmts};
use tilewright_ir::{AtomicOp, Block, Buffer, Expr, Func, MemoryOrder, Stmt, StmtKind, ThreadOp};

use crate::Changed;

/// An addition to neighbours in the last dimension.
#[derive(Clone, Copy, Debug)]
pub struct VectorAdd<'a> {
    pub dst: Buffer,
    pub dst_indices: &'a [Expr],
    pub src: Buffer,
    pub src_indices: &'a [Expr],
    pub lanes: u16,
}

impl VectorAdd<'_> {
    pub fn of(stmt: &Stmt) -> Option<VectorAdd<'_>> {
        match &stmt.kind {
            StmtKind::Thread(ThreadOp::AtomicVecAdd {
                dst,
                dst_indices,
                src,
                src_indices,
                lanes,
            }) => Some(VectorAdd {
                dst: *dst,
                dst_indices,
                src: *src,
                src_indices,
                lanes: *lanes,
            }),
            _ => None,
        }
    }

    /// The addition to `width` elements of it, from one of them on.
    fn part(&self, func: &Func, first: u16, width: u16) -> ThreadOp {
        let (dst_indices, src_indices) =
            (plus(self.dst_indices, first), plus(self.src_indices, first));
        if width > 1 {
            return ThreadOp::AtomicVecAdd {
                dst: self.dst,
                dst_indices,
                src: self.src,
                src_indices,
                lanes: width,
            };
        }
        let value = Expr::load(self.src, src_indices, func.buffers[self.src].dtype);
        ThreadOp::AtomicRmw {
            op: AtomicOp::Add,
            buffer: self.dst,
            indices: dst_indices,
            value: value.cast_to(func.buffers[self.dst].dtype),
            order: MemoryOrder::Relaxed,
            result: None,
        }
    }
}

/// Takes all additions to several elements apart, into parts of as many as `width` says: a divisor of
/// theirs.
pub fn split_vector_adds(
    func: &mut Func,
    mut width: impl FnMut(&Func, &mut Analyzer, VectorAdd<'_>) -> u16,
) -> Changed {
    let mut any = false;
    for kernel in &func.kernels {
        walk_stmts(&kernel.body, &mut |stmt| {
            any |= VectorAdd::of(stmt).is_some()
        });
    }
    if !any {
        return Changed::No;
    }
    let mut widths = Vec::new();
    let mut changed = Changed::No;
    Analyzer::for_func(func).walk_func(func, &mut |analyzer, stmt| {
        if let Some(add) = VectorAdd::of(stmt) {
            let width = width(func, analyzer, add);
            if width < add.lanes {
                changed = Changed::Yes;
            }
            widths.push(width);
        }
    });
    if matches!(changed, Changed::Yes) {
        // In the order in which they were found.
        let mut widths = widths.into_iter();
        let mut kernels = std::mem::take(&mut func.kernels);
        for kernel in &mut kernels {
            split(func, &mut kernel.body, &mut widths);
        }
        func.kernels = kernels;
    }
    changed
}

fn split(func: &Func, block: &mut Block, widths: &mut impl Iterator<Item = u16>) {
    let mut out = Vec::with_capacity(block.len());
    for mut stmt in std::mem::take(block) {
        for child in child_blocks_mut(&mut stmt) {
            split(func, child, widths);
        }
        let add = VectorAdd::of(&stmt);
        let width = add.and_then(|_| widths.next());
        match (add, width) {
            (Some(add), Some(width)) if width < add.lanes => {
                let parts = (0..add.lanes).step_by(width.max(1).into());
                let parts = parts.map(|first| StmtKind::Thread(add.part(func, first, width)));
                out.extend(parts.map(|kind| Stmt::new(kind, stmt.span)));
            }
            _ => out.push(stmt),
        }
    }
    *block = out;
}

/// The indices so many elements further on in the row.
fn plus(indices: &[Expr], elements: u16) -> Vec<Expr> {
    let mut indices = indices.to_vec();
    if let Some(last) = indices.last_mut()
        && elements > 0
    {
        *last = match last.as_int() {
            Some(first) => Expr::int(first + i128::from(elements), last.dtype()),
            None => last.clone() + Expr::int(elements.into(), last.dtype()),
        };
    }
    indices
}
