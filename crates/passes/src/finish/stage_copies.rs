//! StageCopies: a copy to shared memory loads all before it stores the first.
//!
//! A `g2s` of plain loads stores each piece as soon as it has it, and so waits for memory once for
//! each. Where few registers hold all pieces, all loads are under way before the first store.
//!
//! Before:
//! ```text
//! g2s for c < 4 do A[0 +: 64, 0 +: 64] at [c * 16 + tx // 8, tx % 8 * 8] -> S[0 +: 64, 0 +: 64] at [c * 16 + tx // 8, tx % 8 * 8] inst="load" width=8
//! ```
//! After:
//! ```text
//! alloc staged: local float16[32]
//! g2r for c < 4 do A[0 +: 64, 0 +: 64] at [c * 16 + tx // 8, tx % 8 * 8] -> staged[0 +: 32] at [c * 8] inst="load" width=8
//! r2s for c < 4 do staged[0 +: 32] at [c * 8] -> S[0 +: 64, 0 +: 64] at [c * 16 + tx // 8, tx % 8 * 8] inst="store" width=8
//! ```
//!
//! Needs device IR with its waits: the two halves stand together, and both are complete when the
//! next statement starts. It never touches a copy that a counter tracks.

use tilewright_ir::visit::child_blocks_mut;
use tilewright_ir::{Block, Diagnostics, Func, Inst, MicroKind, MicroOp, Stmt, StmtKind, Target};

use crate::Changed;
use crate::optimize::common::stage::stage;

/// Registers that a copy may hold back.
const MAX_WORDS: u32 = 16;

/// Splits the copies.
pub fn stage_copies(func: &mut Func, _: Target, _: &mut Diagnostics) -> Changed {
    let before = func.buffers.len();
    for at in 0..func.kernels.len() {
        let body = std::mem::take(&mut func.kernels[at].body);
        func.kernels[at].body = block(func, body);
    }
    match func.buffers.len() > before {
        true => Changed::Yes,
        false => Changed::No,
    }
}

fn block(func: &mut Func, stmts: Block) -> Block {
    let mut out = Vec::with_capacity(stmts.len());
    for mut stmt in stmts {
        for child in child_blocks_mut(&mut stmt) {
            *child = block(func, std::mem::take(child));
        }
        match staged(func, &stmt) {
            Some(halves) => out.extend(halves),
            None => out.push(stmt),
        }
    }
    out
}

fn staged(func: &mut Func, stmt: &Stmt) -> Option<[Stmt; 3]> {
    let StmtKind::Micro(op) = &stmt.kind else {
        return None;
    };
    let wanted = op.kind == MicroKind::G2s && op.inst == Inst::Load && op.counter.is_none();
    if !wanted || op.count() < 2 || op.count().saturating_mul(words(func, op)?) > MAX_WORDS {
        return None;
    }
    let halves = stage(func, stmt, None)?;
    Some([halves.alloc, halves.load, halves.store])
}

/// The registers of what one instruction moves, where it is one.
fn words(func: &Func, op: &MicroOp) -> Option<u32> {
    let dtype = func.buffers[op.dest.region.buffer].dtype;
    let bits = op.width * dtype.bits();
    matches!(bits, 8 | 16 | 32 | 64 | 128).then(|| bits.div_ceil(32))
}
