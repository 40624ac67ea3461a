//! SplitK: sums of few blocks are split along K, and a second kernel adds the parts.
//!
//! Where a product has fewer tiles than the machine has multiprocessors, most of them stand idle for
//! the whole of a long loop. Each tile is given to several blocks, each with its share of the loop; the
//! parts of the sums go through a workspace.
//!
//! Before:
//! ```text
//! kernel grid(bx: 4, by: 4) … {
//!   fill C_local[0 +: 128, 0 +: 128], 0.0
//!   for k in pipelined(0, 256) { copy A[by * 128 +: 128, k * 64 +: 64] -> …  gemm … -> C_local }
//!   copy C_local[0 +: 128, 0 +: 128] -> C[by * 128 +: 128, bx * 128 +: 128]
//! }
//! ```
//! After, in 8 parts:
//! ```text
//! workspace C_parts: float32[8, 4, 4, 128, 128]
//! kernel grid(bx: 4, by: 4, part: 8) … {
//!   fill C_local[0 +: 128, 0 +: 128], 0.0
//!   for k in pipelined(0, 32) { copy A[by * 128 +: 128, (part * 32 + k) * 64 +: 64] -> …  gemm … }
//!   copy C_local[0 +: 128, 0 +: 128] -> C_parts[part +: 1, bx +: 1, by +: 1, 0 +: 128, 0 +: 128]
//! }
//! kernel grid(bx: 4, by: 4, rows: 16) threads(tx: 256) {
//!   copy C_parts[0 +: 1, bx +: 1, by +: 1, rows * 8 +: 8, 0 +: 128] -> C_sum[0 +: 8, 0 +: 128]
//!   for p in unroll(1, 8) factor=8 { for i, j in parallel(8, 128) { C_sum[i, j] = C_sum[i, j] + C_parts[p, …] } }
//!   copy C_sum[0 +: 8, 0 +: 128] -> C[by * 128 + rows * 8 +: 8, bx * 128 +: 128]
//! }
//! ```
//! The parts are added in their order: results are the same in every run.
//!
//! Needs tile IR, a grid and a loop of constants, and a kernel that does nothing but this product.
//! What was decided is a remark (`--explain split-k`).

use std::borrow::Cow;

use tilewright_ir::visit::{block_exprs_mut, stmt_exprs, walk_stmts};
use tilewright_ir::{
    Axis, Block, Buffer, BufferData, BufferOrigin, Code, CopyHints, CopyKind, CopyOp, DType,
    Diagnostic, Diagnostics, Expr, Func, GemmKind, GemmOp, Kernel, KernelAttrs, Loop, LoopKind,
    Machine, Region, RegionDim, Scalar, Scope, Severity, Stmt, StmtKind, Target, TileOp, Var,
    VarKind,
};

use crate::Changed;
use crate::decisions::SPLIT_K;
use crate::legalize::gemm_plan::register_type;

/// The topic of this pass's remarks.
const TOPIC: Code = Code("split-k");

/// Of the time without it, the part that must be saved: below it costs are too rough to tell.
const WORTH: (u64, u64) = (1, 4);

/// Threads of the kernel that adds, and the elements of each.
const THREADS: u32 = 256;
const EACH: i64 = 4;
/// Parts that it loads at once.
const IN_FLIGHT: u32 = 8;

type Why = Cow<'static, str>;

/// Splits the product of a function that is one.
pub fn split_k(func: &mut Func, target: Target, diags: &mut Diagnostics) -> Changed {
    let asked = SPLIT_K.asked(func);
    if asked == Some(false) || func.kernels.len() != 1 {
        return Changed::No;
    }
    let span = func.kernels[0].span;
    let machine = target.machine();
    let found = Product::of(func, &func.kernels[0], target);
    let split = found.and_then(|product| {
        let parts = product.parts(machine, asked == Some(true))?;
        Ok((product, parts))
    });
    let message = match &split {
        Ok((_, parts)) => format!("the sums are split along K in {parts} parts"),
        Err(_) => "the sums are not split along K".to_string(),
    };
    let mut remark = Diagnostic::new(Severity::Remark, TOPIC, span, message);
    let (product, parts) = match split {
        Ok(split) => split,
        Err(why) => {
            if asked.is_some() || multiplies(&func.kernels[0]) {
                remark = remark.note(why.into_owned());
                diags.push(remark);
            }
            return Changed::No;
        }
    };
    diags.push(remark);
    product.write(func, parts);
    Changed::Yes
}

fn multiplies(kernel: &Kernel) -> bool {
    let mut found = false;
    walk_stmts(&kernel.body, &mut |stmt| {
        found |= matches!(stmt.kind, StmtKind::Tile(TileOp::Gemm(_)));
    });
    found
}

/// A kernel that is one product: where things stand in it.
struct Product {
    /// Blocks along the axes of the grid.
    grid: Vec<i64>,
    /// Where the loop and the copy of its sum stand in the body.
    at: usize,
    out: usize,
    trips: u64,
    sum: Buffer,
    /// Rows and columns of the sum.
    tile: [i64; 2],
    /// Multiply-adds of each product of an iteration, and the type of its operands in registers.
    products: Vec<(u64, Scalar)>,
    /// Bytes that an iteration brings.
    bytes: u64,
}

impl Product {
    fn of(func: &Func, kernel: &Kernel, target: Target) -> Result<Product, Why> {
        if kernel.grid.len() > 2 {
            return Err("the grid has no axis left".into());
        }
        if kernel.attrs.cluster.is_some() || kernel.attrs.rank.is_some() {
            return Err("blocks of a cluster know of each other".into());
        }
        let extents = kernel.grid.iter().map(|(_, e)| small(e));
        let grid: Option<Vec<i64>> = extents.collect();
        let grid = grid.ok_or("the grid is not known when the kernel is compiled")?;
        let is_loop = |s: &Stmt| matches!(&s.kind, StmtKind::For(l) if matches!(l.kind, LoopKind::Pipelined(_)));
        let at = kernel.body.iter().position(is_loop);
        let at = at.ok_or("there is no pipelined loop")?;
        let StmtKind::For(l) = &kernel.body[at].kind else {
            return Err("there is no pipelined loop".into());
        };
        let [axis] = &l.axes[..] else {
            return Err("the loop has several indices".into());
        };
        let trips = axis
            .const_trip_count()
            .filter(|_| axis.start.is_int(0) && axis.step.is_int(1));
        let trips =
            trips.ok_or("the length of the loop is not known when the kernel is compiled")?;
        let products = products(func, &l.body)?;
        let sum = products[0].c.buffer;
        let data = &func.buffers[sum];
        let shape = data.const_shape().unwrap_or_default();
        let &[rows, cols] = &shape[..] else {
            return Err("the sum is no matrix".into());
        };
        if data.scope != Scope::Fragment || !matches!(data.dtype.scalar, Scalar::F32 | Scalar::I32)
        {
            return Err("the sum is not a fragment of 32 bits".into());
        }
        before(func, &kernel.body[..at], sum)?;
        let out = after(func, &kernel.body[at + 1..], sum, [rows, cols])? + at + 1;
        let read = read(&l.body);
        if let StmtKind::Tile(TileOp::Copy(c)) = &kernel.body[out].kind
            && read
                .iter()
                .any(|b| func.root(*b) == func.root(c.dst.buffer))
        {
            return Err("the loop reads what the kernel writes".into());
        }
        let elements = |r: &Region| {
            r.dims
                .iter()
                .try_fold(1, |n, d| Some(n * small(&d.extent)?))
        };
        let bytes = l.body.iter().filter_map(|s| match &s.kind {
            StmtKind::Tile(TileOp::Copy(c)) => {
                let bits = u64::from(func.buffers[c.src.buffer].dtype.bits());
                Some(elements(&c.dst)? as u64 * bits / 8)
            }
            _ => None,
        });
        let cost = products.iter().map(|g| {
            let a = &func.buffers[g.a.buffer];
            let all = elements(&g.a).unwrap_or(0) as u64;
            // Rows of A by columns of B by what they share.
            (all * cols as u64, register_type(target, a.dtype.scalar))
        });
        Ok(Product {
            grid,
            at,
            out,
            trips,
            sum,
            tile: [rows, cols],
            bytes: bytes.sum(),
            products: cost.collect(),
        })
    }

    /// In how many parts it pays to split the sum.
    fn parts(&self, machine: &Machine, asked: bool) -> Result<u64, Why> {
        let tiles: u64 = self.grid.iter().map(|n| *n as u64).product();
        let room = u64::from(machine.multiprocessors) / tiles.max(1);
        let most = room.min(self.trips);
        let parts = (2..=most).rev().filter(|n| self.trips.is_multiple_of(*n));
        let Some(parts) = parts.min_by_key(|n| self.cycles(machine, *n)) else {
            return Err(match room < 2 {
                true => format!("{tiles} blocks leave no {tiles} multiprocessors idle"),
                false => format!(
                    "the {} iterations of the loop have no divisor up to {room}",
                    self.trips
                ),
            }
            .into());
        };
        let [alone, split] = [1, parts].map(|n| self.cycles(machine, n));
        match asked || split + alone * WORTH.0 / WORTH.1 <= alone {
            true => Ok(parts),
            false => {
                Err(format!("in {parts} parts it would take {split} cycles, as one {alone}").into())
            }
        }
    }

    /// Cycles from the first load to the last store, where every multiprocessor has one block.
    fn cycles(&self, machine: &Machine, parts: u64) -> u64 {
        let rate = u64::from(machine.l2_rate);
        let lanes = machine.simds * machine.warp_size;
        let product = |&(work, ab): &(u64, Scalar)| {
            work / u64::from(machine.mma_rate(ab).unwrap_or(lanes).max(1))
        };
        let products: u64 = self.products.iter().map(product).sum();
        let iteration = products.max(self.bytes / rate);
        let own = self.trips / parts * iteration;
        if parts == 1 {
            return own;
        }
        let tiles: u64 = self.grid.iter().map(|n| *n as u64).product();
        let sum = (self.tile[0] * self.tile[1]) as u64 * 4;
        let added = tiles * parts * sum / (rate * u64::from(machine.multiprocessors));
        own + sum / rate + u64::from(machine.next_kernel) + added
    }

    fn write(self, func: &mut Func, parts: u64) {
        let parts = parts as i64;
        let span = func.kernels[0].span;
        let [rows, cols] = self.tile;
        let mut shape = vec![parts];
        shape.extend(&self.grid);
        shape.extend([rows, cols]);
        let name = format!("{}_parts", func.buffers[self.sum].name);
        let workspace = BufferData {
            origin: BufferOrigin::Workspace,
            ..self.buffer(func, name, Scope::Global, &shape)
        };
        let workspace = func.buffers.push(workspace);
        func.workspaces.push(workspace);

        // The kernel that multiplies.
        let axis = self.grid.len() as u8;
        let part = func.add_var("part", DType::I32, VarKind::BlockIdx(axis));
        let indices: Vec<Expr> = {
            let grid = func.kernels[0].grid.iter();
            grid.map(|(v, _)| func.var_expr(*v)).collect()
        };
        let share = self.trips as i64 / parts;
        let first = func.var_expr(part) * int(share);
        let whole = Region::whole(self.sum, &func.buffers[self.sum]);
        let to = tile(
            workspace,
            func.var_expr(part),
            &indices,
            (int(0), rows),
            cols,
        );
        let stmt = &mut func.kernels[0].body[self.at];
        if let StmtKind::For(l) = &mut stmt.kind {
            let axis = &mut l.axes[0];
            axis.stop = int(share);
            let k = axis.var;
            block_exprs_mut(&mut l.body, &mut |e| {
                *e = e.rewrite(&mut |node| {
                    (node.as_var() == Some(k))
                        .then(|| first.clone().cast_to(node.dtype()) + node.clone())
                });
            });
        }
        let out = std::mem::replace(&mut func.kernels[0].body[self.out].kind, copy(whole, to));
        func.kernels[0].grid.push((part, int(parts)));
        self.add_parts(func, workspace, parts, out, span);
    }

    /// The kernel that adds the parts, some rows a block.
    fn add_parts(
        &self,
        func: &mut Func,
        workspace: Buffer,
        parts: i64,
        out: StmtKind,
        span: tilewright_ir::Span,
    ) {
        let StmtKind::Tile(TileOp::Copy(mut out)) = out else {
            return;
        };
        let [rows, cols] = self.tile;
        let own = (1..=rows)
            .filter(|n| rows % n == 0 && n * cols <= i64::from(THREADS) * EACH)
            .max()
            .unwrap_or(1);
        let old: Vec<Var> = func.kernels[0].grid.iter().map(|(v, _)| *v).collect();
        let mut grid = Vec::new();
        for (axis, extent) in self.grid.iter().chain([&(rows / own)]).enumerate() {
            let name = match axis < self.grid.len() {
                true => func.vars[old[axis]].name.clone(),
                false => "rows".to_string(),
            };
            let var = func.add_var(name, DType::I32, VarKind::BlockIdx(axis as u8));
            grid.push((var, int(*extent)));
        }
        let indices: Vec<Expr> = grid.iter().map(|(v, _)| func.var_expr(*v)).collect();
        let (row, indices) = indices.split_last().expect("rows");
        let row = row.clone() * int(own);
        let name = format!("{}_sum", func.buffers[self.sum].name);
        let sum = self.buffer(func, name, Scope::Fragment, &[own, cols]);
        let sum = func.buffers.push(sum);
        let whole = Region::whole(sum, &func.buffers[sum]);

        let mut loop_var = |name| func.add_var(name, DType::I32, VarKind::Loop);
        let [p, i, j] = ["p", "i", "j"].map(&mut loop_var);
        let [p_at, i_at, j_at] = [p, i, j].map(|v| func.var_expr(v));
        let mut from = vec![p_at];
        from.extend(indices.iter().cloned());
        from.extend([row.clone() + i_at.clone(), j_at.clone()]);
        let dtype = func.buffers[sum].dtype;
        let value = Expr::load(sum, vec![i_at.clone(), j_at.clone()], dtype)
            + Expr::load(workspace, from, dtype);
        let add = StmtKind::Store {
            buffer: sum,
            indices: vec![i_at, j_at],
            value,
        };
        let points = Loop {
            kind: LoopKind::Parallel {
                coalesced_width: None,
                layout: None,
            },
            axes: vec![Axis::upto(i, int(own)), Axis::upto(j, int(cols))],
            body: vec![Stmt::new(add, span)],
        };
        let mut rest = Axis::upto(p, int(parts));
        rest.start = int(1);
        let rest = Loop {
            kind: LoopKind::Unroll {
                factor: Some(IN_FLIGHT),
            },
            axes: vec![rest],
            body: vec![Stmt::new(StmtKind::For(points), span)],
        };

        // The copy of the result, of these rows, by this kernel's blocks.
        let blocks = |e: &Expr| {
            e.rewrite(&mut |node| {
                let at = old.iter().position(|v| Some(*v) == node.as_var())?;
                Some(indices.get(at)?.clone().cast_to(node.dtype()))
            })
        };
        for dim in &mut out.dst.dims {
            dim.start = blocks(&dim.start);
        }
        let at = out.dst.dims.len() - 2;
        let dim = &mut out.dst.dims[at];
        dim.start = dim.start.clone() + row.clone().cast_to(dim.start.dtype());
        dim.extent = int(own);
        out.src = whole.clone();
        let first = tile(workspace, int(0), indices, (row, own), cols);
        let kinds = [
            StmtKind::Alloc(sum),
            copy(first, whole),
            StmtKind::For(rest),
            StmtKind::Tile(TileOp::Copy(out)),
        ];
        let thread_vars = std::array::from_fn(|axis| {
            let name = ["tx", "ty", "tz"][axis];
            func.add_var(name, DType::I32, VarKind::ThreadIdx(axis as u8))
        });
        func.kernels.push(Kernel {
            grid,
            threads: [THREADS, 1, 1],
            thread_vars,
            attrs: KernelAttrs::default(),
            body: kinds.map(|kind| Stmt::new(kind, span)).into(),
            span,
        });
    }

    fn buffer(&self, func: &Func, name: String, scope: Scope, shape: &[i64]) -> BufferData {
        BufferData {
            span: func.kernels[0].span,
            ..BufferData::new(
                name,
                scope,
                func.buffers[self.sum].dtype,
                shape.iter().map(|n| int(*n)).collect(),
            )
        }
    }
}

/// The products of a loop that does nothing but bring tiles and multiply them to one sum.
fn products<'a>(func: &Func, body: &'a Block) -> Result<Vec<&'a GemmOp>, Why> {
    let mut found: Vec<&GemmOp> = Vec::new();
    let mut brought: Vec<Buffer> = Vec::new();
    for stmt in body {
        match &stmt.kind {
            StmtKind::Let { .. } => {}
            StmtKind::Tile(TileOp::Copy(c))
                if func.buffers[c.src.buffer].scope == Scope::Global
                    && c.kind == CopyKind::Sync
                    && c.dst.is_whole(&func.buffers[c.dst.buffer]) =>
            {
                brought.push(c.dst.buffer);
            }
            StmtKind::Tile(TileOp::Gemm(g)) => {
                let metadata = g.sparse.iter().map(|sparse| &sparse.e);
                let mut factors = [&g.a, &g.b].into_iter().chain(metadata);
                let own = factors.all(|r| brought.contains(&r.buffer));
                let keeps = g.clear.is_int(0);
                let plain = g.kind == GemmKind::Auto && g.barrier.is_none();
                let whole = g.c.is_whole(&func.buffers[g.c.buffer]);
                let same = found.iter().all(|f| f.c.buffer == g.c.buffer);
                if !(own && keeps && plain && whole && same) {
                    return Err("the product is not a sum of tiles that the loop brings".into());
                }
                found.push(g);
            }
            _ => return Err("the loop does more than bring tiles and multiply them".into()),
        }
    }
    match found.is_empty() || found.iter().any(|g| brought.contains(&g.c.buffer)) {
        true => Err("the loop has no product".into()),
        false => Ok(found),
    }
}

/// Before the loop the sum is cleared, and nothing else is done.
fn before(func: &Func, body: &[Stmt], sum: Buffer) -> Result<(), Why> {
    let mut cleared = false;
    for stmt in body {
        match &stmt.kind {
            StmtKind::Alloc(_) | StmtKind::Let { .. } => {}
            StmtKind::Tile(TileOp::Fill { dst, value })
                if dst.buffer == sum
                    && dst.is_whole(&func.buffers[sum])
                    && (value.as_float() == Some(0.0) || value.is_int(0)) =>
            {
                cleared = true;
            }
            _ => return Err("the kernel does something before its loop".into()),
        }
    }
    match cleared {
        true => Ok(()),
        false => Err("the sum does not start with zeros".into()),
    }
}

/// Behind the loop the whole sum goes out, and nothing else is done. Where that copy stands.
fn after(func: &Func, body: &[Stmt], sum: Buffer, tile: [i64; 2]) -> Result<usize, Why> {
    let why = "behind the loop the kernel does more than copy the sum to a tensor";
    let [
        Stmt {
            kind: StmtKind::Tile(TileOp::Copy(c)),
            ..
        },
    ] = body
    else {
        return Err(why.into());
    };
    let extents: Option<Vec<i64>> = c.dst.dims.iter().map(|d| small(&d.extent)).collect();
    let extents = extents.unwrap_or_default();
    let fits = c.src.buffer == sum
        && c.src.is_whole(&func.buffers[sum])
        && c.kind == CopyKind::Sync
        && c.hints == CopyHints::default()
        && func.buffers[c.dst.buffer].scope == Scope::Global
        && extents.ends_with(&tile)
        && extents.iter().rev().skip(2).all(|n| *n == 1);
    // The other kernel knows what the function knows, and its own blocks.
    let mut known = true;
    stmt_exprs(&body[0], &mut |e| {
        known &= !e.names_memory();
        e.walk(&mut |node| {
            known &= node.as_var().is_none_or(|v| {
                let kind = func.vars[v].kind;
                matches!(
                    kind,
                    VarKind::Symbol | VarKind::Param | VarKind::BlockIdx(_)
                )
            });
        });
    });
    match fits && known {
        true => Ok(0),
        false => Err(why.into()),
    }
}

/// The tensors that a block reads.
fn read(body: &Block) -> Vec<Buffer> {
    let mut read = Vec::new();
    walk_stmts(body, &mut |stmt| {
        if let StmtKind::Tile(TileOp::Copy(c)) = &stmt.kind {
            read.push(c.src.buffer);
        }
        stmt_exprs(stmt, &mut |e| e.walk_loads(&mut |b, _| read.push(b)));
    });
    read
}

/// The part of a tile in the workspace.
fn tile(buffer: Buffer, part: Expr, block: &[Expr], rows: (Expr, i64), cols: i64) -> Region {
    let one = |start: &Expr| RegionDim {
        start: start.clone(),
        extent: int(1),
    };
    let mut dims = vec![one(&part)];
    dims.extend(block.iter().map(one));
    dims.push(RegionDim {
        start: rows.0,
        extent: int(rows.1),
    });
    dims.push(RegionDim {
        start: int(0),
        extent: int(cols),
    });
    Region { buffer, dims }
}

fn copy(src: Region, dst: Region) -> StmtKind {
    StmtKind::Tile(TileOp::Copy(CopyOp {
        src,
        dst,
        kind: CopyKind::Sync,
        hints: CopyHints::default(),
    }))
}

fn int(n: i64) -> Expr {
    Expr::i32(n as i32)
}

fn small(e: &Expr) -> Option<i64> {
    let value = i64::try_from(e.as_int()?).ok()?;
    (0..=i64::from(i32::MAX)).contains(&value).then_some(value)
}
