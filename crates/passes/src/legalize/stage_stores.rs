//! StageStores: results of products leave their registers through shared memory.
//!
//! A thread of a product's accumulator holds two neighbours of a row, and a warp eight rows: written
//! as they lie, results of 16 bits go out four bytes a thread, in pieces of half a sector. Through
//! shared memory a warp writes whole rows, 16 bytes a thread.
//!
//! Before:
//! ```text
//! copy C_local[0 +: 128, 0 +: 256] -> C[by * 128 +: 128, bx * 256 +: 256]
//! ```
//! After:
//! ```text
//! alloc C_stage: shared bfloat16[128, 256] layout=swizzled
//! copy C_local[0 +: 128, 0 +: 256] -> C_stage[0 +: 128, 0 +: 256]
//! copy C_stage[0 +: 128, 0 +: 256] -> C[by * 128 +: 128, bx * 256 +: 256]
//! ```
//!
//! For machines on which warp groups multiply: elsewhere the product itself takes too long for the
//! stores to count. Needs tile IR and planned loops, and is left out where fewer blocks would run on
//! a multiprocessor for it.

use rustc_hash::FxHashSet;
use tilewright_ir::visit::{child_blocks_mut, walk_stmts};
use tilewright_ir::{
    Block, Buffer, BufferData, BufferOrigin, CopyHints, CopyKind, CopyOp, Diagnostics, Expr, Func,
    Kernel, LayoutAttr, LoopKind, Machine, Region, RegionDim, Scope, Stmt, StmtKind, Target,
    TileOp, WARP_GROUP,
};

use crate::Changed;
use crate::optimize::common::merge_shared_memory_allocations::{shared_buffers, shared_bytes};

/// Stages the stores of all kernels.
pub fn stage_stores(func: &mut Func, target: Target, _diags: &mut Diagnostics) -> Changed {
    let machine = target.machine();
    let mut changed = Changed::No;
    if !machine.group_mma() {
        return changed;
    }
    for at in 0..func.kernels.len() {
        let kernel = func.kernels[at].clone();
        let mut pass = StageStores {
            accumulators: accumulators(&kernel),
            room: Room::of(func, &kernel, machine),
            machine,
            func,
            changed: false,
        };
        let body = pass.block(kernel.body);
        if pass.changed {
            changed = Changed::Yes;
            func.kernels[at].body = body;
        }
    }
    changed
}

fn accumulators(kernel: &Kernel) -> FxHashSet<Buffer> {
    let mut found = FxHashSet::default();
    walk_stmts(&kernel.body, &mut |stmt| {
        if let StmtKind::Tile(TileOp::Gemm(g)) = &stmt.kind {
            found.insert(g.c.buffer);
        }
    });
    found
}

struct StageStores<'a> {
    func: &'a mut Func,
    machine: &'a Machine,
    accumulators: FxHashSet<Buffer>,
    room: Room,
    changed: bool,
}

impl StageStores<'_> {
    fn block(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for mut stmt in block {
            for child in child_blocks_mut(&mut stmt) {
                *child = self.block(std::mem::take(child));
            }
            match &stmt.kind {
                StmtKind::Tile(TileOp::Copy(c)) if stmt.turn.is_none() => {
                    match self.stage(c, &stmt) {
                        Some(staged) => out.extend(staged),
                        None => out.push(stmt),
                    }
                }
                _ => out.push(stmt),
            }
        }
        out
    }

    /// The copy in two, where it pays.
    fn stage(&mut self, c: &CopyOp, stmt: &Stmt) -> Option<[Stmt; 3]> {
        let [from, to] = [&c.src, &c.dst].map(|r| &self.func.buffers[r.buffer]);
        // Of wider results a quad of threads writes whole sectors.
        const WIDE: u32 = 16;
        let taken = self.accumulators.contains(&c.src.buffer)
            && c.src.is_whole(from)
            && from.scope == Scope::Fragment
            && to.scope == Scope::Global
            && (8..=WIDE).contains(&to.dtype.bits())
            // Rows of another length may have to go out element by element.
            && to.shape.last().is_some_and(|row| row.as_int().is_some())
            && c.kind == CopyKind::Sync
            && c.hints == CopyHints::default();
        let &[rows, cols] = &from.const_shape()?[..] else {
            return None;
        };
        let bytes = (rows * cols) as u64 * u64::from(to.dtype.bits()) / 8;
        if !taken || !self.room.takes(self.machine, bytes) {
            return None;
        }
        let stage = BufferData {
            name: format!("{}_stage", to.name),
            scope: Scope::Shared,
            dtype: to.dtype,
            shape: from.shape.clone(),
            strides: None,
            origin: BufferOrigin::Alloc,
            layout: Some(LayoutAttr::Swizzled),
            versions: 1,
            place: None,
            safe_value: None,
            span: stmt.span,
        };
        let dims = stage.shape.iter().map(|extent| RegionDim {
            start: Expr::zero(extent.dtype()),
            extent: extent.clone(),
        });
        let dims = dims.collect();
        let buffer = self.func.buffers.push(stage);
        let whole = Region { buffer, dims };
        let copy = |src: Region, dst: Region| {
            StmtKind::Tile(TileOp::Copy(CopyOp {
                src,
                dst,
                ..c.clone()
            }))
        };
        let kinds = [
            StmtKind::Alloc(buffer),
            copy(c.src.clone(), whole.clone()),
            copy(whole, c.dst.clone()),
        ];
        self.changed = true;
        Some(kinds.map(|kind| Stmt::new(kind, stmt.span)))
    }
}

/// What a block takes of a multiprocessor.
struct Room {
    shared: u64,
    registers: u64,
}

impl Room {
    fn of(func: &Func, kernel: &Kernel, machine: &Machine) -> Room {
        let mut stages = Vec::new();
        walk_stmts(&kernel.body, &mut |stmt| {
            if let StmtKind::For(l) = &stmt.kind
                && let LoopKind::Pipelined(spec) = &l.kind
            {
                stages.extend(spec.versioned.iter().map(|b| (*b, spec.stages)));
            }
        });
        let versions = |buffer: Buffer| {
            let own = stages.iter().filter(|(b, _)| *b == buffer);
            own.map(|(_, n)| *n).max().unwrap_or(1)
        };
        let shared = shared_buffers(func, kernel).into_iter();
        let fragments = func.buffers.values().filter(|b| b.scope == Scope::Fragment);
        let held = fragments.map(|b| {
            let elements = b.const_shape().map_or(0, |s| s.iter().product::<i64>()) as u64;
            elements * u64::from(b.dtype.bits()) / 32
        });
        // As much as addresses and operands take beside the fragments.
        const OTHER: u64 = 40;
        let threads = u64::from(kernel.num_threads()).max(1);
        // Copies of a pipelined loop may get a warp group of their own.
        let more = u64::from(!stages.is_empty()) * u64::from(WARP_GROUP);
        let registers = (held.sum::<u64>() / threads + OTHER) * (threads + more);
        Room {
            shared: shared.map(|b| shared_bytes(func, b, versions(b))).sum(),
            registers: registers.min(machine.registers.file.into()).max(1),
        }
    }

    /// Takes so many bytes more, unless fewer blocks fit with them.
    fn takes(&mut self, machine: &Machine, bytes: u64) -> bool {
        let blocks = |shared: u64| {
            let by_memory = u64::from(machine.shared.bytes) / shared.max(1);
            by_memory.min(u64::from(machine.registers.file) / self.registers)
        };
        let more = self.shared + bytes;
        let fits = blocks(more) > 0 && blocks(more) >= blocks(self.shared);
        if fits {
            self.shared = more;
        }
        fits
    }
}
