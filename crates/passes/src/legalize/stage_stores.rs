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
//! for i, j in parallel(128, 256) layout=… {
//!   C[by * 128 + i, bx * 256 + j] = C_stage[i, j]
//! }
//! ```
//! The loop's layout has each warp write the rows that it has of the product, so that warps need not
//! wait for each other.
//!
//! For machines on which warp groups multiply: elsewhere the product itself takes too long for the
//! stores to count. Needs tile IR and planned loops, and is left out where fewer blocks would run on
//! a multiprocessor for it.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tilewright_ir::visit::{child_blocks_mut, walk_stmts};
use tilewright_ir::{
    Axis, Block, Buffer, BufferData, BufferOrigin, CopyHints, CopyKind, CopyOp, DType, Diagnostics,
    Expr, Func, Kernel, LayoutAttr, Loop, LoopKind, Machine, MmaFamily, Region, RegionDim, Scope,
    Span, Stmt, StmtKind, Target, TileOp, VarKind, WARP_GROUP,
};

use tilewright_layout::Fragment;
use tilewright_layout::radix::Digit;

use crate::Changed;
use crate::legalize::gemm_plan::{GemmTiling, plan_gemm};
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
            accumulators: accumulators(func, &kernel, target),
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

/// The fragments that lie as products do: their sums, and what is computed of those element by
/// element; each with who has which part of it where warp groups multiply.
fn accumulators(
    func: &Func,
    kernel: &Kernel,
    target: Target,
) -> FxHashMap<Buffer, Option<GemmTiling>> {
    let mut found: FxHashMap<Buffer, Option<GemmTiling>> = FxHashMap::default();
    let mut made: Vec<(Buffer, &[Expr], &Expr)> = Vec::new();
    walk_stmts(&kernel.body, &mut |stmt| match &stmt.kind {
        StmtKind::Tile(TileOp::Gemm(g)) => {
            let planned = plan_gemm(func, g, kernel.num_threads().into(), target, stmt.span);
            let tiling = planned.ok().map(|(_, tiling)| tiling);
            let of_groups = |t: &GemmTiling| t.inst.family == MmaFamily::Wgmma;
            found.insert(g.c.buffer, tiling.filter(of_groups));
        }
        StmtKind::Store {
            buffer,
            indices,
            value,
        } if func.buffers[*buffer].scope == Scope::Fragment => {
            made.push((*buffer, indices, value));
        }
        _ => {}
    });
    let mut known = 0;
    while known < found.len() {
        known = found.len();
        for (buffer, at, value) in &made {
            let mut of_sum = None;
            value.walk_memory(&mut |_, from, indices| {
                if indices == *at {
                    of_sum = of_sum.take().or_else(|| found.get(&from).cloned());
                }
            });
            if let Some(tiling) = of_sum {
                found.entry(*buffer).or_insert(tiling);
            }
        }
    }
    found
}

/// Each warp of the groups that multiply takes its own rows, lanes along them with `width` elements
/// each. Nothing where they do not come out even.
fn rows_of_warps(tiling: &GemmTiling, [rows, cols]: [i64; 2], width: i64) -> Option<Fragment> {
    const LANES: i64 = 32;
    // [PTX] a warp of a group has 16 rows of the instruction's 64.
    const ROWS: i64 = 16;
    const WARPS: i64 = 4;
    let [down, across] = tiling.warps;
    let (own_rows, own_cols) = (rows / down, cols / across);
    let pieces = own_cols / width;
    let along = pieces.min(LANES);
    let at_once = LANES / along.max(1);
    let even = own_cols % width == 0
        && along > 0
        && LANES % along == 0
        && pieces % along == 0
        && at_once <= ROWS
        && own_rows % (ROWS * WARPS) == 0;
    if !even {
        return None;
    }
    let (row, col) = (0, 1);
    let threads = [
        Digit::new(col, width, along),
        Digit::new(row, 1, at_once),
        Digit::new(row, ROWS, WARPS),
        Digit::new(col, own_cols, across),
        Digit::new(row, own_rows, down),
    ];
    let slots = [
        Digit::new(col, 1, width),
        Digit::new(col, width * along, pieces / along),
        Digit::new(row, at_once, ROWS / at_once),
        Digit::new(row, ROWS * WARPS, own_rows / (ROWS * WARPS)),
    ];
    Fragment::from_digits(&[rows, cols], 1, &threads, &slots).ok()
}

struct StageStores<'a> {
    func: &'a mut Func,
    machine: &'a Machine,
    accumulators: FxHashMap<Buffer, Option<GemmTiling>>,
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
        let taken = self.accumulators.contains_key(&c.src.buffer)
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
        let out = self.by_warps(c, buffer, [rows, cols], stmt.span);
        let kinds = [
            StmtKind::Alloc(buffer),
            copy(c.src.clone(), whole.clone()),
            out.unwrap_or_else(|| copy(whole, c.dst.clone())),
        ];
        self.changed = true;
        Some(kinds.map(|kind| Stmt::new(kind, stmt.span)))
    }
}

impl StageStores<'_> {
    /// The second half of a copy, by the warps that have the rows.
    fn by_warps(
        &mut self,
        c: &CopyOp,
        stage: Buffer,
        [rows, cols]: [i64; 2],
        span: Span,
    ) -> Option<StmtKind> {
        let tiling = self.accumulators.get(&c.src.buffer)?.as_ref()?;
        let to = &self.func.buffers[c.dst.buffer];
        let length = i64::try_from(to.shape.last()?.as_int()?).ok()?;
        // As wide as rows are aligned.
        const VECTOR: i64 = 128;
        let mut width = VECTOR / i64::from(to.dtype.bits());
        while length % width != 0 {
            width /= 2;
        }
        let layout = rows_of_warps(tiling, [rows, cols], width)?;
        let dtype = to.dtype;
        let names = ["i", "j"].map(|name| self.func.add_var(name, DType::I32, VarKind::Loop));
        let points = names.map(|var| self.func.var_expr(var));
        let mut left = points.iter().zip([rows, cols]).peekable();
        let mut at = Vec::new();
        for dim in &c.dst.dims {
            let extent = dim.extent.as_int()?;
            at.push(match left.next_if(|(_, n)| i128::from(*n) == extent) {
                Some((point, _)) => dim.start.clone() + point.clone().cast_to(dim.start.dtype()),
                None if extent == 1 => dim.start.clone(),
                None => return None,
            });
        }
        if left.next().is_some() {
            return None;
        }
        let [i, j] = points;
        let store = StmtKind::Store {
            buffer: c.dst.buffer,
            indices: at,
            value: Expr::load(stage, vec![i, j], dtype),
        };
        let axes = names.into_iter().zip([rows, cols]);
        Some(StmtKind::For(Loop {
            kind: LoopKind::Parallel {
                coalesced_width: None,
                layout: Some(LayoutAttr::Held(Arc::new(layout))),
            },
            axes: axes
                .map(|(var, n)| Axis::upto(var, Expr::i32(n as i32)))
                .collect(),
            body: vec![Stmt::new(store, span)],
        }))
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
