//! StageStores: results of products leave their registers through shared memory.
//!
//! A thread of a product's accumulator holds two neighbours of a row, and a warp eight rows: written
//! as they lie, results of 16 bits go out four bytes a thread, in pieces of half a sector. From
//! shared memory the copy engine takes whole rows, while the warps go on.
//!
//! Before:
//! ```text
//! copy C_local[0 +: 128, 0 +: 256] -> C[by * 128 +: 128, bx * 256 +: 256]
//! ```
//! After:
//! ```text
//! alloc C_stage: shared bfloat16[128, 256] layout=panels(128)
//! copy C_local[0 +: 128, 0 +: 256] -> C_stage[0 +: 128, 0 +: 256]
//! copy C_stage[0 +: 128, 0 +: 256] -> C[by * 128 +: 128, bx * 256 +: 256] tma warps=[2, 1]
//! ```
//! Each warp has the rows stored that it has of the product, so that warps need not wait for each
//! other. Where the copy engine does not know the tensor, as one whose rows are no multiple of 16
//! bytes, or nothing would order its stores with others, each warp writes its rows itself, as wide as
//! they are aligned:
//! ```text
//! alloc C_stage: shared bfloat16[128, 256] layout=swizzled
//! copy C_local[0 +: 128, 0 +: 256] -> C_stage[0 +: 128, 0 +: 256]
//! for i, j in parallel(128, 256) layout=… {
//!   C[by * 128 + i, bx * 256 + j] = C_stage[i, j]
//! }
//! ```
//! Which it is, and why, is a remark (`--explain stores`).
//!
//! Where shared memory has no room for all results beside the tiles of the product, or fewer blocks would
//! run on a multiprocessor for it, they go out some columns at a time, through the same place:
//! ```text
//! alloc C_stage: shared bfloat16[128, 160] layout=…
//! copy C_local[0 +: 128, 0 +: 160] -> C_stage[0 +: 128, 0 +: 160]
//! copy C_stage[0 +: 128, 0 +: 160] -> C[by * 128 +: 128, bx * 320 +: 160] tma warps=[2, 1]
//! copy C_local[0 +: 128, 160 +: 160] -> C_stage[0 +: 128, 0 +: 160]
//! copy C_stage[0 +: 128, 0 +: 160] -> C[by * 128 +: 128, bx * 320 + 160 +: 160] tma warps=[2, 1]
//! ```
//! where each warp has whole rows of the product.
//!
//! For machines on which warp groups multiply: elsewhere the product itself takes too long for the
//! stores to count. Needs tile IR and planned loops.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tilewright_ir::touched::touched;
use tilewright_ir::visit::{child_blocks_mut, stmt_exprs, walk_stmts};
use tilewright_ir::{
    Access, Axis, Block, Buffer, BufferData, Code, CopyHints, CopyKind, CopyOp, DType, Diagnostic,
    Diagnostics, Expr, Func, Kernel, LayoutAttr, Loop, LoopKind, Machine, MmaFamily, Region,
    RegionDim, Scope, Severity, Span, Stmt, StmtKind, Target, TileOp, VarKind, WARP_GROUP,
};

use tilewright_layout::radix::Digit;
use tilewright_layout::swizzle::Swizzle;
use tilewright_layout::{Family, Fragment, Place};

use crate::Changed;
use crate::decisions::BULK_STORES;
use crate::legalize::boxes::Boxes;
use crate::legalize::gemm_plan::plan_gemm;
use crate::legalize::gemm_tiling::{GemmTiling, tiling_by};
use crate::optimize::common::merge_shared_memory_allocations::{shared_buffers, shared_bytes};

/// The topic of this pass's remarks.
const STORES: Code = Code("stores");

/// Stages the stores of all kernels.
pub fn stage_stores(func: &mut Func, target: Target, diags: &mut Diagnostics) -> Changed {
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
            uses: uses(func, &kernel),
            machine,
            func,
            diags,
            changed: false,
        };
        let around = Around {
            aliased: &kernel.attrs.may_alias,
            ..Around::default()
        };
        let body = pass.block(kernel.body, around);
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
            let threads = kernel.num_threads().into();
            let planned = plan_gemm(func, g, threads, target, stmt.span).ok();
            let tiling = planned.and_then(|choice| tiling_by(func, g, threads, choice.plan));
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

/// How many statements of a kernel touch each tensor.
fn uses(func: &Func, kernel: &Kernel) -> FxHashMap<Buffer, usize> {
    let mut uses: FxHashMap<Buffer, usize> = FxHashMap::default();
    walk_stmts(&kernel.body, &mut |stmt| {
        let mut own = Vec::new();
        touched(stmt, &mut |access| own.push(func.root(access.buffer)));
        stmt_exprs(stmt, &mut |e| {
            e.walk_loads(&mut |buffer, _| own.push(func.root(buffer)));
        });
        own.sort_unstable();
        own.dedup();
        own.into_iter()
            .for_each(|b| *uses.entry(b).or_default() += 1);
    });
    uses
}

/// Where a copy stands.
#[derive(Clone, Copy, Default)]
struct Around<'a> {
    /// In a loop whose iterations are not tiles of the result.
    repeated: bool,
    /// In a region of some warp groups.
    grouped: bool,
    /// Tensors that may overlap others.
    aliased: &'a [Buffer],
}

impl Around<'_> {
    fn inside(self, stmt: &Stmt) -> Self {
        let repeats = match &stmt.kind {
            StmtKind::For(l) => !matches!(l.kind, LoopKind::Persistent { .. }),
            StmtKind::While { .. } => true,
            _ => false,
        };
        Around {
            repeated: self.repeated || repeats,
            grouped: self.grouped || matches!(stmt.kind, StmtKind::WarpGroup { .. }),
            ..self
        }
    }
}

struct StageStores<'a> {
    func: &'a mut Func,
    machine: &'a Machine,
    diags: &'a mut Diagnostics,
    accumulators: FxHashMap<Buffer, Option<GemmTiling>>,
    uses: FxHashMap<Buffer, usize>,
    room: Room,
    changed: bool,
}

impl StageStores<'_> {
    fn block(&mut self, block: Block, around: Around<'_>) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for mut stmt in block {
            let inside = around.inside(&stmt);
            for child in child_blocks_mut(&mut stmt) {
                *child = self.block(std::mem::take(child), inside);
            }
            match &stmt.kind {
                StmtKind::Tile(TileOp::Copy(c)) if stmt.turn.is_none() => {
                    match self.stage(c, &stmt, around) {
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
    fn stage(&mut self, c: &CopyOp, stmt: &Stmt, around: Around<'_>) -> Option<Vec<Stmt>> {
        let [from, to] = [&c.src, &c.dst].map(|r| &self.func.buffers[r.buffer]);
        let wishes = CopyHints {
            disable_tma: false,
            eviction: None,
            ..c.hints.clone()
        };
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
            && wishes == CopyHints::default();
        let &[rows, cols] = &from.const_shape()?[..] else {
            return None;
        };
        if !taken {
            return None;
        }
        let may = self.engine_may(c, around);
        let width = self.columns(c, [rows, cols], may.is_ok())?;
        let shape = [rows, width];
        let to = &self.func.buffers[c.dst.buffer];
        let stage = BufferData {
            layout: Some(LayoutAttr::Swizzled),
            span: stmt.span,
            ..BufferData::new(
                format!("{}_stage", to.name),
                Scope::Shared,
                to.dtype,
                shape.map(|n| Expr::i32(n as i32)).to_vec(),
            )
        };
        let stage = whole(self.func, stage);
        let mut out = vec![StmtKind::Alloc(stage.buffer)];
        for first in (0..cols).step_by(width as usize) {
            let part = CopyOp {
                src: some_columns(&c.src, first, width),
                dst: some_columns(&c.dst, first, width),
                ..c.clone()
            };
            let bulk = may.clone().and_then(|warps| {
                self.by_engine(&part, &stage, shape, warps)?;
                Ok(warps)
            });
            let by_warps = match &bulk {
                Ok(_) => None,
                Err(_) => self.by_warps(&part, stage.buffer, shape, stmt.span),
            };
            if first == 0 {
                let parts = (width < cols).then_some(cols / width);
                let how = match (&bulk, &by_warps) {
                    (Ok(_), _) => "by the copy engine, each warp's rows by themselves",
                    (_, Some(_)) => "by stores of each warp",
                    // Threads of the block would meet for every part.
                    _ if parts.is_some() => return None,
                    _ => "by the block's threads, through shared memory",
                };
                self.explain(c, (parts, how), bulk.as_ref().err(), stmt.span);
            }
            out.push(copy(&part.src, &stage, CopyKind::Sync));
            out.push(match (bulk, by_warps) {
                (Ok(warps), _) => StmtKind::Tile(TileOp::Copy(CopyOp {
                    src: stage.clone(),
                    kind: CopyKind::TmaRows { warps },
                    ..part
                })),
                (_, Some(stores)) => stores,
                _ => copy(&stage, &part.dst, CopyKind::Sync),
            });
        }
        self.changed = true;
        let stmts = out.into_iter().map(|kind| Stmt::new(kind, stmt.span));
        Some(stmts.collect())
    }

    /// How many columns go out at a time: all, or as many as there is room for, each warp's rows by
    /// themselves.
    fn columns(&mut self, c: &CopyOp, [rows, cols]: [i64; 2], engine: bool) -> Option<i64> {
        let bits = self.func.buffers[c.dst.buffer].dtype.bits();
        let bytes = |width: i64| (rows * width) as u64 * u64::from(bits) / 8;
        if self.room.takes(self.machine, bytes(cols)) {
            return Some(cols);
        }
        // Two sectors of a row.
        const PIECE: i64 = 512;
        let tiling = self.accumulators.get(&c.src.buffer)?.as_ref()?;
        let along = c.dst.dims.last()?;
        if tiling.warps[1] != 1 || !along.extent.is_int(cols.into()) {
            return None;
        }
        let (vector, narrow) = self.vector(c.dst.buffer)?;
        let by_warps = narrow || !engine;
        let mut widths = (2..=cols)
            .filter(|parts| cols % parts == 0)
            .map(|parts| cols / parts);
        widths.find(|width| {
            width * i64::from(bits) % PIECE == 0
                && (!by_warps || rows_of_warps(tiling, [rows, *width], vector).is_some())
                && self.room.takes(self.machine, bytes(*width))
        })
    }

    /// Elements of one store of a thread, as wide as rows are aligned; and whether these are less than
    /// the copy engine takes.
    fn vector(&self, tensor: Buffer) -> Option<(i64, bool)> {
        const VECTOR: i64 = 128;
        let to = &self.func.buffers[tensor];
        let length = i64::try_from(to.shape.last()?.as_int()?).ok()?;
        let most = VECTOR / i64::from(to.dtype.bits());
        let mut width = most;
        while length % width != 0 {
            width /= 2;
        }
        Some((width, width < most))
    }

    fn explain(
        &mut self,
        c: &CopyOp,
        (parts, how): (Option<i64>, &str),
        why_not: Option<&String>,
        span: Span,
    ) {
        let [from, to] = [&c.src, &c.dst].map(|r| &self.func.buffers[r.buffer].name);
        let parts = parts.map_or_else(String::new, |n| format!(" in {n} parts"));
        let message = format!("`{from}` goes out to `{to}`{parts} {how}");
        let mut remark = Diagnostic::new(Severity::Remark, STORES, span, message);
        if let Some(why) = why_not {
            remark = remark.note(format!("not by the copy engine: {why}"));
        }
        self.diags.push(remark);
    }
}

impl StageStores<'_> {
    /// The warps along rows and columns that may have the copy engine do the second half of a copy; or why
    /// they may not.
    fn engine_may(&self, c: &CopyOp, around: Around<'_>) -> Result<[u32; 2], String> {
        let refuse = |why: &str| Err(why.to_string());
        let tensor = c.dst.buffer;
        let name = &self.func.buffers[tensor].name;
        if c.hints.disable_tma || BULK_STORES.asked(self.func) == Some(false) {
            return refuse("the kernel says so");
        }
        if !self.machine.bulk_copies {
            return refuse("the target has none");
        }
        let tiling = self
            .accumulators
            .get(&c.src.buffer)
            .and_then(Option::as_ref);
        let Some(tiling) = tiling.filter(|_| !around.grouped) else {
            return refuse("it is not the sum of a product of the block's warp groups");
        };
        // Nothing orders a store of the engine with what else is done to the same place, but a wait
        // until it has been written.
        if around.repeated || around.aliased.contains(&tensor) {
            return Err(format!("the same place of `{name}` may be written again"));
        }
        if self.uses.get(&self.func.root(tensor)) != Some(&1) {
            return Err(format!("something else touches `{name}`, too"));
        }
        Ok(tiling.warps.map(|n| n as u32))
    }

    /// Has these do it, with the stage as the engine reads it; or why it does not know the tensor.
    fn by_engine(
        &mut self,
        c: &CopyOp,
        stage: &Region,
        shape: [i64; 2],
        warps: [u32; 2],
    ) -> Result<(), String> {
        let bits = i64::from(self.func.buffers[c.dst.buffer].dtype.bits());
        let swizzle = Swizzle::widest(shape[1], bits);
        let place = swizzle.and_then(|s| Place::new(Family::Panels(s), &shape, bits).ok());
        let place = place.ok_or("its rows are no multiple of 32 bytes")?;
        let wish = self.func.buffers[stage.buffer].layout.replace(place.into());
        let [to, from] = [&c.dst, stage].map(|region: &Region| Access {
            region: region.clone(),
            slot: None,
            at: region.dims.iter().map(|d| d.start.clone()).collect(),
        });
        let boxes = Boxes::of(self.func, &to, &from);
        let boxes = boxes.and_then(|b| b.of_warp(shape, warps, &Expr::i32(0)));
        boxes.map(|_| ()).map_err(|no_box| {
            self.func.buffers[stage.buffer].layout = wish;
            no_box.why
        })
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
        let (width, _) = self.vector(c.dst.buffer)?;
        let layout = rows_of_warps(tiling, [rows, cols], width)?;
        let dtype = self.func.buffers[c.dst.buffer].dtype;
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

/// All of a new buffer.
fn whole(func: &mut Func, data: BufferData) -> Region {
    let dims = data.shape.iter().map(|extent| RegionDim {
        start: Expr::zero(extent.dtype()),
        extent: extent.clone(),
    });
    let dims = dims.collect();
    let buffer = func.buffers.push(data);
    Region { buffer, dims }
}

/// Some columns of a region of whole rows.
fn some_columns(region: &Region, first: i64, width: i64) -> Region {
    let mut part = region.clone();
    if let Some(along) = part.dims.last_mut() {
        let dtype = along.start.dtype();
        if first > 0 {
            let first = Expr::int(first.into(), dtype);
            along.start = match along.start.is_int(0) {
                true => first,
                false => along.start.clone() + first,
            };
        }
        along.extent = Expr::int(width.into(), along.extent.dtype());
    }
    part
}

fn copy(src: &Region, dst: &Region, kind: CopyKind) -> StmtKind {
    StmtKind::Tile(TileOp::Copy(CopyOp {
        src: src.clone(),
        dst: dst.clone(),
        kind,
        hints: CopyHints::default(),
    }))
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
