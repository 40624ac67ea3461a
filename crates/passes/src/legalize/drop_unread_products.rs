//! DropUnreadProducts: products whose sum nobody reads are left out, with a warning.
//!
//! Before:
//! ```text
//! fill C_local[0 +: 64, 0 +: 64], 0.0
//! for k in pipelined(0, 8) { copy … -> a  copy … -> b  gemm a[…], b[…] -> C_local[0 +: 64, 0 +: 64] }
//! ```
//! After:
//! ```text
//! fill C_local[0 +: 64, 0 +: 64], 0.0
//! for k in pipelined(0, 8) { copy … -> a  copy … -> b }
//! ```
//! They cost time for nothing. And ptxas (CUDA 13) leaves a product of a warp group whose registers are
//! not read in the program, with the zero register for its result, which is not zero afterwards.
//!
//! Needs tile IR.

use rustc_hash::FxHashSet;
use tilewright_ir::touched::touched;
use tilewright_ir::visit::{child_blocks_mut, stmt_exprs, walk_stmts};
use tilewright_ir::{
    Block, Buffer, Code, Diagnostic, Diagnostics, Func, Kernel, Scope, Span, StmtKind, Target,
    TileOp,
};

use crate::Changed;

const UNREAD_PRODUCT: Code = Code("unread-product");

/// Leaves them out of all kernels.
pub fn drop_unread_products(func: &mut Func, _target: Target, diags: &mut Diagnostics) -> Changed {
    let mut unread = Vec::new();
    for at in 0..func.kernels.len() {
        let read = read(func, &func.kernels[at]);
        let mut body = std::mem::take(&mut func.kernels[at].body);
        keep_read(func, &read, &mut body, &mut unread);
        func.kernels[at].body = body;
    }
    for (sum, span) in &unread {
        let name = &func.buffers[*sum].name;
        let message = format!("nobody reads what this product adds to `{name}`: it is left out");
        let warning = Diagnostic::warning(UNREAD_PRODUCT, *span, message);
        diags.push(warning.help(format!("copy `{name}` to a tensor")));
    }
    match unread.is_empty() {
        true => Changed::No,
        false => Changed::Yes,
    }
}

fn keep_read(
    func: &Func,
    read: &FxHashSet<Buffer>,
    block: &mut Block,
    unread: &mut Vec<(Buffer, Span)>,
) {
    block.retain_mut(|stmt| {
        for child in child_blocks_mut(stmt) {
            keep_read(func, read, child, unread);
        }
        match &stmt.kind {
            StmtKind::Tile(TileOp::Gemm(g))
                if func.buffers[g.c.buffer].scope == Scope::Fragment
                    && !read.contains(&func.root(g.c.buffer)) =>
            {
                unread.push((g.c.buffer, stmt.span));
                false
            }
            _ => true,
        }
    });
}

/// The buffers whose values end up somewhere: in memory that others see, in a decision, or in another
/// such buffer.
fn read(func: &Func, kernel: &Kernel) -> FxHashSet<Buffer> {
    let mut found: FxHashSet<Buffer> = FxHashSet::default();
    // Statements that do nothing but write fragments: what those are, and what they are made of.
    let mut made: Vec<(Vec<Buffer>, Vec<Buffer>)> = Vec::new();
    walk_stmts(&kernel.body, &mut |stmt| {
        let (mut written, mut used) = (Vec::new(), Vec::new());
        let adds_to = match &stmt.kind {
            StmtKind::Tile(TileOp::Gemm(g)) => Some(g.c.buffer),
            _ => None,
        };
        touched(stmt, &mut |access| {
            let root = func.root(access.buffer);
            if access.mode.writes() {
                written.push(root);
            }
            if access.mode.reads() && !(access.mode.writes() && adds_to == Some(access.buffer)) {
                used.push(root);
            }
        });
        stmt_exprs(stmt, &mut |e| {
            e.walk_memory(&mut |_, buffer, _| used.push(func.root(buffer)));
        });
        let private = |b: &Buffer| func.buffers[*b].scope == Scope::Fragment;
        let plain = matches!(stmt.kind, StmtKind::Tile(_) | StmtKind::Store { .. });
        match plain && !written.is_empty() && written.iter().all(private) {
            true => made.push((written, used)),
            false => found.extend(used),
        }
    });
    let mut known = usize::MAX;
    while known != found.len() {
        known = found.len();
        for (written, used) in &made {
            if written.iter().any(|b| found.contains(b)) {
                found.extend(used);
            }
        }
    }
    found
}
