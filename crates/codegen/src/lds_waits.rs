//! LDS accesses that no counter follows, on AMD.
//!
//! A statement without a counter is complete when the next one starts. The compiler sees to that
//! for the thread itself, but a bare barrier waits for nothing, and other waves must find what
//! was written. Before such a barrier the wait is therefore made explicit.
//!
//! Before:
//! ```text
//! S[tx] = x
//! barrier bare
//! ```
//! After:
//! ```text
//! S[tx] = x
//! wait lgkmcnt(0)
//! barrier bare
//! ```
//!
//! The compiler joins neighbouring accesses of at most eight bytes into one instruction, which the
//! machine counts once. In a kernel that has such accesses a count before a barrier could stand
//! for too many of them, so the barrier waits for all.

use tilewright_ir::visit::{child_blocks_mut, stmt_exprs, walk_stmts};
use tilewright_ir::{
    BarrierKind, Block, Buffer, Counter, DeviceOp, ExprKind, Func, MicroOp, Scope, Stmt, StmtKind,
    ThreadOp,
};

/// The function with every wait for LDS written down that its bare barriers need.
pub fn with_lds_waits(func: &Func) -> Func {
    let mut result = func.clone();
    for at in 0..result.kernels.len() {
        let mut body = std::mem::take(&mut result.kernels[at].body);
        let mut narrow = false;
        walk_stmts(&body, &mut |s| narrow |= is_narrow(func, s));
        block(func, &mut body, narrow, false);
        result.kernels[at].body = body;
    }
    result
}

/// Inserts waits; `open` says whether accesses may be under way, and is given back.
fn block(func: &Func, body: &mut Block, narrow: bool, mut open: bool) -> bool {
    let mut result = Block::with_capacity(body.len());
    for mut stmt in std::mem::take(body) {
        match &stmt.kind {
            StmtKind::Device(DeviceOp::Barrier(BarrierKind::Bare)) => {
                for before in result.iter_mut().rev() {
                    match &mut before.kind {
                        StmtKind::Device(DeviceOp::Wait {
                            counter: Counter::Lgkmcnt,
                            at_most,
                        }) if narrow => *at_most = 0,
                        StmtKind::Device(DeviceOp::Wait { .. }) => {}
                        _ => break,
                    }
                }
                if open {
                    let kind = StmtKind::Device(DeviceOp::Wait {
                        counter: Counter::Lgkmcnt,
                        at_most: 0,
                    });
                    result.push(Stmt {
                        kind,
                        span: stmt.span,
                    });
                }
                open = false;
            }
            StmtKind::Device(
                DeviceOp::Barrier(BarrierKind::Block)
                | DeviceOp::Wait {
                    counter: Counter::Lgkmcnt,
                    at_most: 0,
                },
            ) => open = false,
            _ => {}
        }
        let inside = subtree_touches(func, &stmt);
        let loops = matches!(stmt.kind, StmtKind::For(_) | StmtKind::While { .. });
        let children = child_blocks_mut(&mut stmt);
        let nested = !children.is_empty();
        for child in children {
            // What the end of a loop's body leaves open is open at its start.
            block(func, child, narrow, open || (loops && inside));
        }
        open |= inside && (nested || touches(func, &stmt));
        result.push(stmt);
    }
    *body = result;
    open
}

/// Whether a statement accesses LDS in pieces that the compiler may join.
fn is_narrow(func: &Func, stmt: &Stmt) -> bool {
    let StmtKind::Micro(op) = &stmt.kind else {
        return false;
    };
    let mut ends = op.sources.iter().chain([&op.dest]).map(|a| a.region.buffer);
    let data = ends.find(|&b| func.buffers[b].scope == Scope::Shared);
    data.is_some_and(|b| op.width * func.buffers[b].dtype.bits() <= 64)
}

fn subtree_touches(func: &Func, stmt: &Stmt) -> bool {
    let mut found = touches(func, stmt);
    for child in tilewright_ir::visit::child_blocks(stmt) {
        walk_stmts(child, &mut |s| found |= touches(func, s));
    }
    found
}

/// Whether a statement itself reads or writes LDS without a counter.
pub(crate) fn touches(func: &Func, stmt: &Stmt) -> bool {
    let shared = |buffer: Buffer| func.buffers[buffer].scope == Scope::Shared;
    let mut found = match &stmt.kind {
        StmtKind::Micro(MicroOp {
            dest,
            sources,
            counter: None,
            ..
        }) => sources
            .iter()
            .chain([dest])
            .any(|a| shared(a.region.buffer)),
        StmtKind::Store { buffer, .. } => shared(*buffer),
        StmtKind::Thread(op) => match op {
            ThreadOp::AtomicRmw { buffer, .. }
            | ThreadOp::AtomicLoad { buffer, .. }
            | ThreadOp::AtomicStore { buffer, .. } => shared(*buffer),
            ThreadOp::AtomicVecAdd { dst, src, .. } => shared(*dst) || shared(*src),
            ThreadOp::Dp4a { a, b, c, .. } => shared(*a) || shared(*b) || shared(*c),
            ThreadOp::AllReduce { .. } => true,
            _ => false,
        },
        _ => false,
    };
    stmt_exprs(stmt, &mut |e| {
        e.walk_distinct(&mut |node| {
            if let ExprKind::Load { buffer, .. } = node.kind() {
                found |= shared(*buffer);
            }
        });
    });
    found
}
