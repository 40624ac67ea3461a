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
//! What is only made of such a sum goes with it.
//!
//! Needs tile IR.

use rustc_hash::FxHashSet;
use tilewright_ir::touched::{touched, written};
use tilewright_ir::visit::{child_blocks_mut, stmt_exprs, walk_stmts};
use tilewright_ir::{
    Block, Buffer, Code, Diagnostic, Diagnostics, Func, Kernel, Scope, Span, Stmt, StmtKind,
    Target, TileOp,
};

use crate::Changed;

const UNREAD_PRODUCT: Code = Code("unread-product");

/// Leaves them out of all kernels.
pub fn drop_unread_products(func: &mut Func, _target: Target, diags: &mut Diagnostics) -> Changed {
    let mut unread = Vec::new();
    for at in 0..func.kernels.len() {
        let read = read(func, &func.kernels[at]);
        let before = unread.len();
        unread_products(func, &read, &func.kernels[at], &mut unread);
        if unread.len() > before {
            let mut body = std::mem::take(&mut func.kernels[at].body);
            keep_read(func, &read, &mut body);
            func.kernels[at].body = body;
        }
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

fn unread_products(
    func: &Func,
    read: &FxHashSet<Buffer>,
    kernel: &Kernel,
    found: &mut Vec<(Buffer, Span)>,
) {
    walk_stmts(&kernel.body, &mut |stmt| {
        if let StmtKind::Tile(TileOp::Gemm(g)) = &stmt.kind
            && func.buffers[g.c.buffer].scope == Scope::Fragment
            && !read.contains(&func.root(g.c.buffer))
        {
            found.push((g.c.buffer, stmt.span));
        }
    });
}

/// Leaves out what only writes fragments that are not read, and loops with nothing else in them.
fn keep_read(func: &Func, read: &FxHashSet<Buffer>, block: &mut Block) {
    block.retain_mut(|stmt| {
        for child in child_blocks_mut(stmt) {
            keep_read(func, read, child);
        }
        match &stmt.kind {
            StmtKind::For(l) => !l.body.is_empty(),
            _ => only_makes(func, stmt).is_none_or(|made| made.iter().any(|b| read.contains(b))),
        }
    });
}

/// The fragments that a statement writes, where it does nothing else.
fn only_makes(func: &Func, stmt: &Stmt) -> Option<Vec<Buffer>> {
    let mut made = Vec::new();
    written(stmt, &mut |buffer| made.push(func.root(buffer)));
    let plain = matches!(stmt.kind, StmtKind::Tile(_) | StmtKind::Store { .. });
    let private = |b: &Buffer| func.buffers[*b].scope == Scope::Fragment;
    (plain && !made.is_empty() && made.iter().all(private)).then_some(made)
}

/// The buffers whose values end up somewhere: in memory that others see, in a decision, or in another
/// such buffer.
fn read(func: &Func, kernel: &Kernel) -> FxHashSet<Buffer> {
    let mut found: FxHashSet<Buffer> = FxHashSet::default();
    // Statements that do nothing but write fragments: what those are, and what they are made of.
    let mut made: Vec<(Vec<Buffer>, Vec<Buffer>)> = Vec::new();
    walk_stmts(&kernel.body, &mut |stmt| {
        let mut used = Vec::new();
        let adds_to = match &stmt.kind {
            StmtKind::Tile(TileOp::Gemm(g)) => Some(g.c.buffer),
            _ => None,
        };
        touched(stmt, &mut |access| {
            let adds = access.mode.writes() && adds_to == Some(access.buffer);
            if access.mode.reads() && !adds {
                used.push(func.root(access.buffer));
            }
        });
        stmt_exprs(stmt, &mut |e| {
            e.walk_memory(&mut |_, buffer, _| used.push(func.root(buffer)));
        });
        match only_makes(func, stmt) {
            Some(written) => made.push((written, used)),
            None => found.extend(used),
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
