//! ExpandScales: factors of a product that have scales along K are multiplied by them into tiles of
//! bfloat16 in shared memory, and the product is a plain one of those. A float of eight bits or fewer
//! times a power of two, or times another one, is a number of bfloat16.
//!
//! Before:
//! ```text
//! gemm a[0 +: 32, 0 +: 64], b[0 +: 16, 0 +: 64] -> c[0 +: 32, 0 +: 16] trans_b scales=sa[0 +: 32, 0 +: 2], sb[0 +: 16, 0 +: 2] every=[32, 32]
//! ```
//! After:
//! ```text
//! alloc a_scaled: shared bfloat16[32, 64]
//! for i, k in parallel(32, 64) {
//!   a_scaled[i, k] = bfloat16(float32(a[i, k]) * float32(sa[i, k // 32]))
//! }
//! alloc b_scaled: shared bfloat16[16, 64]
//! for i, k in parallel(16, 64) {
//!   b_scaled[i, k] = bfloat16(float32(b[i, k]) * float32(sb[i, k // 32]))
//! }
//! gemm a_scaled[0 +: 32, 0 +: 64], b_scaled[0 +: 16, 0 +: 64] -> c[0 +: 32, 0 +: 16] trans_b
//! ```
//!
//! What lies in registers goes to shared memory first. Needs tile IR; afterwards no product has scales.

use tilewright_ir::visit::{child_blocks_mut, rewrite_block};
use tilewright_ir::{
    Block, BufferData, DType, Diagnostics, Expr, Func, Loop, LoopKind, Region, Scales, Scope, Span,
    Stmt, StmtKind, Target, TileOp, VarKind,
};

use crate::Changed;
use crate::legalize::expand_products::{in_memory, place, upto};
use crate::legalize::gemm_plan::matrix;

/// Multiplies the factors of all products with scales.
pub fn expand_scales(func: &mut Func, _: Target, _: &mut Diagnostics) -> Changed {
    let mut changed = false;
    for at in 0..func.kernels.len() {
        let body = std::mem::take(&mut func.kernels[at].body);
        func.kernels[at].body = expand(func, body, &mut changed);
    }
    match changed {
        true => Changed::Yes,
        false => Changed::No,
    }
}

fn expand(func: &mut Func, block: Block, changed: &mut bool) -> Block {
    rewrite_block(block, |mut stmt, out| {
        if let StmtKind::Tile(TileOp::Gemm(g)) = &mut stmt.kind
            && let Some(Scales { a, b, every }) = g.scales.take()
        {
            for (factor, along_rows, scales, every) in [
                (&mut g.a, g.trans_a, a, every[0]),
                (&mut g.b, !g.trans_b, b, every[1]),
            ] {
                let factor_and_scales = Scaled {
                    factor: in_memory(func, factor, stmt.span, out),
                    along_rows,
                    scales: in_memory(func, &scales, stmt.span, out),
                    every,
                };
                if let Some(tile) = multiplied(func, factor_and_scales, stmt.span, out) {
                    *factor = tile;
                }
            }
            *changed = true;
        }
        for child in child_blocks_mut(&mut stmt) {
            let inner = std::mem::take(child);
            *child = expand(func, inner, changed);
        }
        out.push(stmt);
    })
}

/// A factor and its scales, both in memory.
struct Scaled {
    factor: Region,
    /// Whether K is the first dimension of the factor.
    along_rows: bool,
    scales: Region,
    every: u32,
}

/// A tile of the factor's elements times their scales.
fn multiplied(func: &mut Func, scaled: Scaled, span: Span, out: &mut Block) -> Option<Region> {
    let Scaled {
        factor,
        along_rows,
        scales,
        every,
    } = scaled;
    let [rows, columns] = matrix(&factor)?;
    let int = |v: i64| Expr::int(v.into(), DType::I32);
    let data = &func.buffers[factor.buffer];
    let (element, scale) = (data.dtype, func.buffers[scales.buffer].dtype);
    let tile = BufferData {
        span,
        ..BufferData::new(
            format!("{}_scaled", data.name),
            Scope::Shared,
            DType::BF16,
            vec![int(rows), int(columns)],
        )
    };
    let buffer = func.buffers.push(tile);
    let tile = Region::whole(buffer, &func.buffers[buffer]);

    let names = if along_rows { ["k", "i"] } else { ["i", "k"] };
    let vars = names.map(|name| func.add_var(name, DType::I32, VarKind::Loop));
    let at = vars.map(|var| func.var_expr(var));
    let [k, i] = match along_rows {
        true => at.clone(),
        false => [at[1].clone(), at[0].clone()],
    };
    let run = k.floor_div(int(every.into()));
    let element = Expr::load(factor.buffer, place(&factor, at.clone()), element);
    let scale = Expr::load(scales.buffer, place(&scales, [i, run]), scale);
    let product = element.cast_to(DType::F32) * scale.cast_to(DType::F32);
    let store = StmtKind::Store {
        buffer,
        indices: at.to_vec(),
        value: product.cast_to(DType::BF16),
    };
    let points = Loop {
        kind: LoopKind::Parallel {
            coalesced_width: None,
            layout: None,
        },
        axes: vec![upto(vars[0], rows), upto(vars[1], columns)],
        body: vec![Stmt::new(store, span)],
    };
    out.push(Stmt::new(StmtKind::Alloc(buffer), span));
    out.push(Stmt::new(StmtKind::For(points), span));
    Some(tile)
}
