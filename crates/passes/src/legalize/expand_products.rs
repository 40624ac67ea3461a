//! ExpandProducts: a product of types that no matrix instruction of the target takes is summed by
//! the threads, an element of the result at each point of a parallel loop.
//!
//! Before:
//! ```text
//! gemm a[0 +: 16, 0 +: 32], b[0 +: 32, 0 +: 8] -> c[0 +: 16, 0 +: 8]
//! ```
//! After:
//! ```text
//! for i, j in parallel(16, 8) {
//!   for k in serial(0, 32) {
//!     c[i, j] = c[i, j] + a[i, k] * b[k, j]
//!   }
//! }
//! ```
//!
//! Operands in registers go to shared memory first. Needs tile IR; a warning says which products
//! are done so. It never touches a product that has an instruction, or that asks for one by name.

use tilewright_ir::visit::{child_blocks_mut, rewrite_block};
use tilewright_ir::{
    Axis, Block, BufferData, BufferOrigin, Code, CopyHints, CopyKind, CopyOp, DType, Diagnostic,
    Diagnostics, Expr, ExprKind, Func, GemmKind, GemmOp, Loop, LoopKind, Region, RegionDim, Scope,
    Span, Stmt, StmtKind, Target, TileOp, VarKind, WARP_GROUP,
};

use crate::Changed;
use crate::legalize::gemm_plan::{has_instruction, matrix};

const BY_THREADS: Code = Code("product-by-threads");

/// Expands all products that have no instruction.
pub fn expand_products(func: &mut Func, target: Target, diags: &mut Diagnostics) -> Changed {
    let mut made = Vec::new();
    for at in 0..func.kernels.len() {
        let threads = i64::from(func.kernels[at].num_threads());
        let body = std::mem::take(&mut func.kernels[at].body);
        func.kernels[at].body = expand(func, body, threads, target, &mut made);
    }
    if made.is_empty() {
        return Changed::No;
    }
    diags.extend(made);
    Changed::Yes
}

fn expand(
    func: &mut Func,
    block: Block,
    threads: i64,
    target: Target,
    made: &mut Vec<Diagnostic>,
) -> Block {
    rewrite_block(block, |mut stmt, out| {
        if let StmtKind::Tile(TileOp::Gemm(g)) = &stmt.kind
            && g.kind == GemmKind::Auto
            && !has_instruction(func, g, threads, target)
            && let Some(sizes) = sizes(g)
        {
            made.push(told(func, g, target, stmt.span));
            let g = g.clone();
            by_threads(func, &g, sizes, stmt.span, out);
            return;
        }
        let threads = match &stmt.kind {
            StmtKind::WarpGroup { groups, .. } => groups.len() as i64 * i64::from(WARP_GROUP),
            _ => threads,
        };
        for child in child_blocks_mut(&mut stmt) {
            let inner = std::mem::take(child);
            *child = expand(func, inner, threads, target, made);
        }
        out.push(stmt);
    })
}

fn told(func: &Func, g: &GemmOp, target: Target, span: Span) -> Diagnostic {
    let (ab, acc) = (
        func.buffers[g.a.buffer].dtype,
        func.buffers[g.c.buffer].dtype,
    );
    let message = format!(
        "no matrix instruction of {target} that is generated takes {ab} with {acc} accumulation: \
         the threads compute this product one element after another"
    );
    Diagnostic::warning(BY_THREADS, span, message)
        .help("convert the operands with `T.copy` into tiles of a type that has one")
}

/// M, N and K.
fn sizes(g: &GemmOp) -> Option<[i64; 3]> {
    let [m, n] = matrix(&g.c)?;
    let [rows, columns] = matrix(&g.a)?;
    Some([m, n, if g.trans_a { rows } else { columns }])
}

fn by_threads(func: &mut Func, g: &GemmOp, sizes: [i64; 3], span: Span, out: &mut Block) {
    let a = in_memory(func, &g.a, span, out);
    let b = in_memory(func, &g.b, span, out);
    let [i, j, k] = ["i", "j", "k"].map(|name| func.add_var(name, DType::I32, VarKind::Loop));
    let [row, column, step] = [i, j, k].map(|var| func.var_expr(var));
    let acc = func.buffers[g.c.buffer].dtype;
    // Products are exact: those of small floats are in float32.
    let wide = match acc.scalar.is_float() && acc != DType::F64 {
        true => DType::F32,
        false => acc,
    };
    let turned = |turn: bool, x: &Expr, y: &Expr| match turn {
        false => [x.clone(), y.clone()],
        true => [y.clone(), x.clone()],
    };
    let element = |func: &Func, region: &Region, at: [Expr; 2]| {
        let dtype = func.buffers[region.buffer].dtype;
        Expr::load(region.buffer, place(region, at), dtype)
    };
    let at = place(&g.c, [row.clone(), column.clone()]);
    let old = Expr::load(g.c.buffer, at.clone(), acc);
    let store = |value: Expr| {
        let indices = at.clone();
        let buffer = g.c.buffer;
        Stmt::new(
            StmtKind::Store {
                buffer,
                indices,
                value,
            },
            span,
        )
    };
    let mut body = Vec::new();
    match g.clear.as_int() {
        Some(0) => {}
        Some(_) => body.push(store(Expr::zero(acc))),
        None => {
            let cleared = ExprKind::Select {
                cond: g.clear.clone(),
                then: Expr::zero(acc),
                otherwise: old.clone(),
            };
            body.push(store(Expr::new(cleared, acc, span)));
        }
    }
    let x = element(func, &a, turned(g.trans_a, &row, &step)).cast_to(wide);
    let y = element(func, &b, turned(g.trans_b, &step, &column)).cast_to(wide);
    let sum = (old.cast_to(wide) + x * y).cast_to(acc);
    let sums = Loop {
        kind: LoopKind::Serial,
        axes: vec![upto(k, sizes[2])],
        body: vec![store(sum)],
    };
    body.push(Stmt::new(StmtKind::For(sums), span));
    let points = Loop {
        kind: LoopKind::Parallel {
            coalesced_width: None,
            layout: None,
        },
        axes: vec![upto(i, sizes[0]), upto(j, sizes[1])],
        body,
    };
    out.push(Stmt::new(StmtKind::For(points), span));
}

pub(super) fn upto(var: tilewright_ir::Var, extent: i64) -> Axis {
    Axis::upto(var, Expr::int(extent.into(), DType::I32))
}

/// The indices of an element of the matrix that a region is.
pub(super) fn place(region: &Region, at: [Expr; 2]) -> Vec<Expr> {
    let matrix = region.dims.len() - 2;
    let mut at = at.into_iter();
    let dims = region.dims.iter().enumerate();
    dims.map(|(dim, d)| match at.len() > 0 && dim >= matrix {
        true => match (d.start.is_int(0), at.next()) {
            (true, Some(index)) => index,
            (false, Some(index)) => &d.start + &index,
            (_, None) => d.start.clone(),
        },
        false => d.start.clone(),
    })
    .collect()
}

/// The operand where every thread can read it.
pub(super) fn in_memory(func: &mut Func, region: &Region, span: Span, out: &mut Block) -> Region {
    let data = &func.buffers[region.buffer];
    if data.scope != Scope::Fragment {
        return region.clone();
    }
    let shape: Vec<Expr> = region.dims.iter().map(|d| d.extent.clone()).collect();
    let buffer = func.buffers.push(BufferData {
        name: format!("{}_tile", data.name),
        scope: Scope::Shared,
        origin: BufferOrigin::Alloc,
        shape: shape.clone(),
        layout: None,
        span,
        ..data.clone()
    });
    out.push(Stmt::new(StmtKind::Alloc(buffer), span));
    let dims = shape.into_iter().map(|extent| RegionDim {
        start: Expr::zero(extent.dtype()),
        extent,
    });
    let tile = Region {
        buffer,
        dims: dims.collect(),
    };
    let copy = CopyOp {
        src: region.clone(),
        dst: tile.clone(),
        kind: CopyKind::Sync,
        hints: CopyHints::default(),
    };
    out.push(Stmt::new(StmtKind::Tile(TileOp::Copy(copy)), span));
    tile
}
