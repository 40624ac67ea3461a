//! What passes that write a product as other code share: the walk over products, tiles in shared
//! memory, loops over the elements of a matrix.

use tilewright_ir::visit::{child_blocks_mut, rewrite_block};
use tilewright_ir::{
    Axis, Block, BufferData, BufferOrigin, CopyHints, CopyKind, CopyOp, DType, Expr, Func, GemmOp,
    Loop, LoopKind, Region, RegionDim, Scope, Span, Stmt, StmtKind, TileOp, Var, WARP_GROUP,
};

use crate::Changed;

/// Where a product stands.
#[derive(Clone, Copy)]
pub(super) struct Site {
    /// How many threads compute it.
    pub threads: i64,
    pub span: Span,
}

/// What became of a product.
pub(super) enum Rewritten {
    No,
    Yes,
    /// Other statements stand for it.
    Replaced,
}

type Rewrite<'a> = dyn FnMut(&mut Func, &mut GemmOp, Site, &mut Block) -> Rewritten + 'a;

/// Calls `rewrite` on all products; what it puts into the block stands before the product.
pub(super) fn rewrite_products(func: &mut Func, rewrite: &mut Rewrite) -> Changed {
    let mut changed = Changed::No;
    for at in 0..func.kernels.len() {
        let threads = i64::from(func.kernels[at].num_threads());
        let body = std::mem::take(&mut func.kernels[at].body);
        func.kernels[at].body = rewrite_in(func, body, threads, rewrite, &mut changed);
    }
    changed
}

fn rewrite_in(
    func: &mut Func,
    block: Block,
    threads: i64,
    rewrite: &mut Rewrite,
    changed: &mut Changed,
) -> Block {
    rewrite_block(block, |mut stmt, out| {
        let span = stmt.span;
        if let StmtKind::Tile(TileOp::Gemm(gemm)) = &mut stmt.kind {
            match rewrite(func, gemm, Site { threads, span }, out) {
                Rewritten::No => {}
                Rewritten::Yes => *changed = Changed::Yes,
                Rewritten::Replaced => {
                    *changed = Changed::Yes;
                    return;
                }
            }
        }
        let threads = match &stmt.kind {
            StmtKind::WarpGroup { groups, .. } => groups.len() as i64 * i64::from(WARP_GROUP),
            _ => threads,
        };
        for child in child_blocks_mut(&mut stmt) {
            let inner = std::mem::take(child);
            *child = rewrite_in(func, inner, threads, rewrite, changed);
        }
        out.push(stmt);
    })
}

/// A new matrix in shared memory.
pub(super) fn new_tile(
    func: &mut Func,
    name: String,
    dtype: DType,
    shape: [i64; 2],
    span: Span,
    out: &mut Block,
) -> Region {
    let shape = shape.map(|extent| Expr::int(extent.into(), DType::I32));
    let buffer = func.buffers.push(BufferData {
        span,
        ..BufferData::new(name, Scope::Shared, dtype, shape.to_vec())
    });
    out.push(Stmt::new(StmtKind::Alloc(buffer), span));
    Region::whole(buffer, &func.buffers[buffer])
}

/// A loop over all elements of a matrix, in any order.
pub(super) fn elements(vars: [Var; 2], extents: [i64; 2], body: Block, span: Span) -> Stmt {
    let points = Loop {
        kind: LoopKind::Parallel {
            coalesced_width: None,
            layout: None,
        },
        axes: vec![upto(vars[0], extents[0]), upto(vars[1], extents[1])],
        body,
    };
    Stmt::new(StmtKind::For(points), span)
}

pub(super) fn upto(var: Var, extent: i64) -> Axis {
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
