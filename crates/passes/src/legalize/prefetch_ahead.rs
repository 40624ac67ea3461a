//! PrefetchAhead: a block has the L2 cache fetch what a block that starts soon will read.
//!
//! Blocks that read a tile, compute and write it all do so at about the same time, and memory sees reads
//! and writes in short stretches from many places. Asked for as a whole and early, tiles come in the order
//! in which they lie.
//!
//! Before:
//! ```text
//! kernel grid(bx: 8192) threads(tx: 256, ty: 1, tz: 1) {
//!   copy X[bx, 0 +: 8192] -> x[0, 0 +: 8192]
//! ```
//! After, with as many blocks ahead as read what the machine's table has (`prefetch_ahead`), shared by the
//! reads of a block:
//! ```text
//! kernel grid(bx: 8192) threads(tx: 256, ty: 1, tz: 1) {
//!   if tx == 0 && bx + 320 < 8192 {
//!     prefetch address_of(X[bx + 320, 0]) bytes=16384
//!   }
//!   copy X[bx, 0 +: 8192] -> x[0, 0 +: 8192]
//! ```
//! A tile of several rows that are apart is fetched by a thread for each (`if tx < 32 && …`).
//! The fetch is the first thing that a block does, also where it copies the tile later: a softmax reads its
//! row for the maximum before that. What is read again stays in the cache for longer: each statement that
//! reads a tensor has its share of the distance.
//!
//! For kernels of many blocks that each read tiles of their own once, and write about as much: no product,
//! no loop that reads further tiles, blocks in the order of the grid, no rows of few bytes. Values are what they were. What was decided is a remark
//! (`--explain prefetch`).

use std::borrow::Cow;

use tilewright_arith::Analyzer;
use tilewright_ir::visit::{child_blocks, stmt_exprs, walk_stmts};
use tilewright_ir::{
    Block, Buffer, BufferOrigin, Code, CopyKind, CopyOp, DType, DeviceOp, Diagnostic, Diagnostics,
    Expr, ExprKind, Func, Kernel, LoopKind, Machine, Region, Scope, Severity, Span, Stmt, StmtKind,
    Target, ThreadOp, TileOp, Var, VarKind,
};

use crate::Changed;
use crate::decisions::PREFETCH;
use crate::legalize::element_copies::as_copy;
use crate::legalize::once::{Values, at_values, once};
use crate::legalize::own_tiles::is_own;

/// The topic of this pass's remarks.
const TOPIC: Code = Code("prefetch");

/// What the machine fetches is a multiple of so many bytes, from such a multiple on. Source: PTX ISA,
/// `cp.async.bulk.prefetch`.
const PIECE: i64 = 16;

/// Rows that are shorter cost more than they gain. Measured on an H200: 512 bytes pay, 256 do not.
const SHORTEST: i64 = 512;

/// Blocks for each multiprocessor, at least: fewer are all there from the start.
const BLOCKS: i128 = 8;

/// Of what a block reads, the part that it writes at least: reads alone are not in each other's way.
const WRITES: i64 = 4;

type Why = Cow<'static, str>;

/// Has the blocks of all kernels fetch ahead where that pays.
pub fn prefetch_ahead(func: &mut Func, target: Target, diags: &mut Diagnostics) -> Changed {
    let machine = target.machine();
    let asked = PREFETCH.asked(func);
    if machine.prefetch_ahead == 0 || asked == Some(false) {
        return Changed::No;
    }
    let mut changed = Changed::No;
    for at in 0..func.kernels.len() {
        let kernel = &func.kernels[at];
        let span = kernel.span;
        let remark = |message: String| Diagnostic::new(Severity::Remark, TOPIC, span, message);
        match Stream::of(func, kernel, machine, asked == Some(true)) {
            Ok(stream) => {
                diags.push(remark(format!(
                    "each block has the L2 cache fetch the {} bytes that the block {} further on reads",
                    stream.bytes, stream.blocks
                )));
                stream.write(func, at);
                changed = Changed::Yes;
            }
            Err(why) => diags.push(
                remark("no block fetches what another one reads".to_string())
                    .note(why.into_owned()),
            ),
        }
    }
    changed
}

/// The tiles that blocks of a kernel read, each its own.
struct Stream {
    tiles: Vec<Tile>,
    /// What a block reads of them.
    bytes: i64,
    /// How many blocks ahead it fetches.
    blocks: i64,
}

/// A tile of a tensor: rows that are apart, or one.
struct Tile {
    /// The copy that reads it.
    span: Span,
    /// Where it lies, by the block's place alone.
    region: Region,
    /// The dimension of its rows, and how many there are.
    rows: Option<(usize, i64)>,
    /// Bytes of a row.
    bytes: i64,
    /// What must hold for the tile to be inside of its tensor, where that is not known.
    inside: Vec<Expr>,
}

impl Stream {
    fn of(func: &Func, kernel: &Kernel, machine: &Machine, asked: bool) -> Result<Stream, Why> {
        only_reads_tiles(kernel)?;
        if kernel.attrs.swizzle.is_some() || kernel.attrs.cluster.is_some() {
            return Err("blocks do not start in the order of the grid".into());
        }
        let mut analyzer = Analyzer::for_func(func);
        analyzer.enter_kernel(func, kernel);
        let mut tiles = Vec::new();
        let mut values = Values::new();
        find(
            (func, &mut analyzer, &mut values),
            &kernel.body,
            &mut |analyzer, values, copy, span| {
                let tile = Tile::of(func, kernel, (analyzer, values), copy, span);
                let new = |tile: &Tile| !tiles.iter().any(|t: &Tile| t.region == tile.region);
                tiles.extend(tile.filter(new));
            },
        )?;
        if tiles.is_empty() {
            return Err("no block copies a tile of its own from a parameter".into());
        }
        let bytes: i64 = tiles.iter().map(Tile::bytes).sum();
        let ahead = machine.prefetch_ahead as i64 / reads(kernel, &tiles);
        let blocks = (ahead / bytes).max(1);
        let all = kernel.grid.iter().map(|(_, extent)| extent.as_int());
        let all: Option<i128> = all.product();
        let few = BLOCKS * i128::from(machine.multiprocessors);
        if !asked && all.is_some_and(|all| all < few) {
            return Err(format!("the grid has fewer than {few} blocks").into());
        }
        if !asked && tiles.iter().any(|tile| tile.bytes < SHORTEST) {
            return Err(format!("rows of a tile have fewer than {SHORTEST} bytes").into());
        }
        if !asked && written(func, kernel) < bytes / WRITES {
            return Err("blocks write little of what they read".into());
        }
        Ok(Stream {
            tiles,
            bytes,
            blocks,
        })
    }

    fn write(self, func: &mut Func, at: usize) {
        let mut body = std::mem::take(&mut func.kernels[at].body);
        let kernel = &func.kernels[at];
        let ahead = Ahead::of(func, kernel, self.blocks);
        let thread = thread(func, kernel);
        let is_alloc = |stmt: &Stmt| matches!(stmt.kind, StmtKind::Alloc(_));
        let allocs = body.iter().take_while(|stmt| is_alloc(stmt)).count();
        let fetches = self
            .tiles
            .iter()
            .map(|tile| tile.fetch(func, &ahead, &thread));
        body.splice(allocs..allocs, fetches);
        func.kernels[at].body = body;
    }
}

/// Refuses kernels whose blocks do more than read tiles and write others.
fn only_reads_tiles(kernel: &Kernel) -> Result<(), Why> {
    let mut why = None;
    walk_stmts(&kernel.body, &mut |stmt| {
        let found: Option<&'static str> = match &stmt.kind {
            StmtKind::Tile(TileOp::Gemm(_)) => Some("the kernel multiplies"),
            StmtKind::WarpGroup { .. } => Some("warp groups go ways of their own"),
            StmtKind::While { .. } => Some("a loop has no known number of iterations"),
            StmtKind::Thread(ThreadOp::SyncGrid) => Some("blocks wait for each other"),
            _ => None,
        };
        why = why.or(found);
    });
    why.map_or(Ok(()), |why| Err(why.into()))
}

/// Calls `f` on the copies that each block does once, with the loops of one iteration around them.
fn find(
    (func, analyzer, values): (&Func, &mut Analyzer, &mut Values),
    block: &Block,
    f: &mut dyn FnMut(&mut Analyzer, &Values, &CopyOp, Span),
) -> Result<(), Why> {
    for stmt in block {
        match &stmt.kind {
            StmtKind::Tile(TileOp::Copy(copy)) if copy.kind == CopyKind::Sync => {
                f(analyzer, values, copy, stmt.span);
            }
            StmtKind::For(l) if let Some(value) = once(l) => {
                analyzer.enter_loop(func, l);
                values.push(value);
                let found = find((func, analyzer, values), &l.body, f);
                values.pop();
                analyzer.pop();
                found?;
            }
            StmtKind::For(l) if matches!(l.kind, LoopKind::Parallel { .. }) => {
                if let Some(copy) = as_copy(func, analyzer, l) {
                    f(analyzer, values, &copy, stmt.span);
                }
            }
            _ => {
                let mut more = false;
                for inner in child_blocks(stmt) {
                    find((func, analyzer, values), inner, &mut |_, _, _, _| {
                        more = true
                    })?;
                }
                if more {
                    return Err("a loop or a branch copies tiles".into());
                }
            }
        }
    }
    Ok(())
}

/// Statements of a kernel that read the tensors of its tiles.
fn reads(kernel: &Kernel, tiles: &[Tile]) -> i64 {
    let mut reads = 0;
    walk_stmts(&kernel.body, &mut |stmt| {
        let mut read = |buffer: Buffer| {
            reads += i64::from(tiles.iter().any(|tile| tile.region.buffer == buffer));
        };
        if let StmtKind::Tile(TileOp::Copy(copy)) = &stmt.kind {
            read(copy.src.buffer);
        }
        stmt_exprs(stmt, &mut |e| e.walk_loads(&mut |buffer, _| read(buffer)));
    });
    reads.max(1)
}

/// Bytes that a block copies to parameters, as far as they are known.
fn written(func: &Func, kernel: &Kernel) -> i64 {
    let mut bytes = 0;
    walk_stmts(&kernel.body, &mut |stmt| {
        let StmtKind::Tile(TileOp::Copy(copy)) = &stmt.kind else {
            return;
        };
        let data = &func.buffers[copy.dst.buffer];
        let extents = copy.dst.dims.iter().map(|dim| constant(&dim.extent));
        let elements: Option<i64> = extents.product();
        if data.scope == Scope::Global {
            bytes += elements.unwrap_or(0) * i64::from(data.dtype.bits()) / 8;
        }
    });
    bytes
}

impl Tile {
    /// Of a copy that reads what no other block reads, if it does.
    fn of(
        func: &Func,
        kernel: &Kernel,
        (analyzer, values): (&mut Analyzer, &Values),
        copy: &CopyOp,
        span: Span,
    ) -> Option<Tile> {
        let mut region = copy.src.clone();
        for dim in &mut region.dims {
            let start = at_values(&dim.start, values);
            if start != dim.start {
                dim.start = analyzer.simplify(&start);
            }
        }
        let region = &region;
        let data = &func.buffers[region.buffer];
        if data.scope != Scope::Global
            || !matches!(data.origin, BufferOrigin::Param)
            || data.strides.is_some()
        {
            return None;
        }
        for dim in &region.dims {
            if dim.start.names_memory() {
                return None;
            }
        }
        let mut grid = kernel.grid.iter();
        if !grid.all(|(var, extent)| extent.is_int(1) || is_own(func, analyzer, region, *var)) {
            return None;
        }
        // From the last dimension on, what is whole lies in a row.
        let extents: Vec<i64> = region
            .dims
            .iter()
            .map(|d| constant(&d.extent))
            .collect::<Option<_>>()?;
        let mut elements = 1;
        let mut row = extents.len();
        while row > 0 {
            row -= 1;
            elements *= extents[row];
            let dim = &region.dims[row];
            let whole = dim.start.is_int(0) && data.shape[row].is_int(extents[row].into());
            if !whole {
                break;
            }
        }
        let mut apart = (0..row).filter(|dim| extents[*dim] != 1);
        let rows = apart.next().map(|dim| (dim, extents[dim]));
        let threads = i64::from(kernel.num_threads());
        if apart.next().is_some() || rows.is_some_and(|(_, count)| count > threads) {
            return None;
        }
        let bits = i64::from(data.dtype.bits());
        let bytes = elements * bits / 8;
        if bits % 8 != 0 || bytes % PIECE != 0 || bytes > i64::from(u32::MAX) {
            return None;
        }
        // Where rows start; whole ones before them have such a length too.
        let piece = PIECE * 8 / bits;
        let mut stride = Expr::i32(1);
        for (dim, extent) in region.dims.iter().zip(&data.shape).rev() {
            let start = dim.start.clone().cast_to(DType::I64);
            let at = start * stride.clone().cast_to(DType::I64);
            let left = at.floor_mod(Expr::int(piece.into(), DType::I64));
            if !analyzer.prove_eq(&left, &Expr::int(0, DType::I64)).is_yes() {
                return None;
            }
            stride = stride.cast_to(DType::I64) * extent.clone().cast_to(DType::I64);
        }
        if let Some((dim, _)) = rows {
            let pitch = data.shape[dim + 1..].iter().map(|e| e.as_int());
            let pitch: Option<i128> = pitch.product();
            if pitch.is_none_or(|pitch| pitch % i128::from(piece) != 0) {
                return None;
            }
        }
        let mut inside = Vec::new();
        for (dim, shape) in region.dims.iter().zip(&data.shape) {
            let start = dim.start.clone().cast_to(shape.dtype());
            let end = start.clone() + dim.extent.clone().cast_to(shape.dtype());
            if !analyzer.prove_le(&end, shape).is_yes() {
                inside.push(end.le(shape.clone()));
            }
            let zero = Expr::zero(shape.dtype());
            if !analyzer.prove_le(&zero, &start).is_yes() {
                return None;
            }
        }
        let of_block = |var: Var| {
            let kind = &func.vars[var].kind;
            matches!(
                kind,
                VarKind::BlockIdx(_) | VarKind::Symbol | VarKind::Param
            )
        };
        let mut known = true;
        for dim in &region.dims {
            dim.start.walk(&mut |node| {
                known &= node.as_var().is_none_or(of_block);
            });
        }
        if !known {
            return None;
        }
        Some(Tile {
            span,
            region: region.clone(),
            rows,
            bytes,
            inside,
        })
    }

    fn bytes(&self) -> i64 {
        self.bytes * self.rows.map_or(1, |(_, count)| count)
    }

    /// The fetch of the tile of a later block.
    fn fetch(&self, func: &Func, ahead: &Ahead, thread: &Expr) -> Stmt {
        let mut at: Vec<Expr> = self
            .region
            .dims
            .iter()
            .map(|d| ahead.of_block(&d.start))
            .collect();
        let mut cond = match self.rows {
            None => thread.clone().equal(0),
            Some((dim, count)) => {
                at[dim] = at[dim].clone() + thread.clone().cast_to(at[dim].dtype());
                thread.clone().lt(Expr::int(count.into(), thread.dtype()))
            }
        };
        cond = cond.and(ahead.exists.clone());
        for inside in &self.inside {
            cond = cond.and(ahead.of_block(inside));
        }
        let buffer = self.region.buffer;
        debug_assert_eq!(at.len(), func.buffers[buffer].shape.len());
        let kind = ExprKind::AddressOf {
            buffer,
            indices: at,
        };
        let fetch = DeviceOp::Prefetch {
            address: Expr::new(kind, DType::HANDLE, self.span),
            bytes: self.bytes as u32,
        };
        let kind = StmtKind::If {
            cond,
            then: vec![Stmt::new(StmtKind::Device(fetch), self.span)],
            otherwise: Vec::new(),
        };
        Stmt::new(kind, self.span)
    }
}

/// A block some way ahead in the order of the grid.
struct Ahead {
    /// Whether there is one.
    exists: Expr,
    /// Its indices.
    indices: Vec<(Var, Expr)>,
}

impl Ahead {
    fn of(func: &Func, kernel: &Kernel, blocks: i64) -> Ahead {
        let axes: Vec<(Var, &Expr)> = kernel
            .grid
            .iter()
            .filter(|(_, extent)| !extent.is_int(1))
            .map(|(var, extent)| (*var, extent))
            .collect();
        // The number of the block, x fastest.
        let mut number = Expr::i32(blocks as i32);
        let mut all = Expr::i32(1);
        for (var, extent) in &axes {
            let index = func.var_expr(*var).cast_to(DType::I32);
            let extent = (*extent).clone().cast_to(DType::I32);
            (number, all) = match all.is_int(1) {
                true => (index + number, extent),
                false => (number + index * all.clone(), all * extent),
            };
        }
        let mut rest = number.clone();
        let mut indices = Vec::new();
        for (at, (var, extent)) in axes.iter().enumerate() {
            let extent = (*extent).clone().cast_to(DType::I32);
            let index = match at + 1 == axes.len() {
                true => rest.clone(),
                false => rest.clone().floor_mod(extent.clone()),
            };
            rest = rest.floor_div(extent);
            indices.push((*var, index.cast_to(func.vars[*var].dtype)));
        }
        Ahead {
            exists: number.lt(all),
            indices,
        }
    }

    /// What an expression is in that block.
    fn of_block(&self, e: &Expr) -> Expr {
        at_values(e, &self.indices)
    }
}

/// An expression with values in place of variables.
/// The number of the thread in its block.
fn thread(func: &Func, kernel: &Kernel) -> Expr {
    let mut number = Expr::i32(0);
    let mut before = 1i32;
    for (var, count) in kernel.thread_vars.iter().zip(kernel.threads) {
        if count > 1 {
            let index = func.var_expr(*var).cast_to(DType::I32);
            number = match before {
                1 => index,
                _ => number + index * before,
            };
        }
        before *= count as i32;
    }
    number
}

fn constant(e: &Expr) -> Option<i64> {
    i64::try_from(e.as_int()?).ok()
}
