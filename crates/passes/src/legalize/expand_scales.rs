//! ExpandScales: where no matrix instruction takes them, factors of a product that have scales along K
//! are multiplied by these into tiles of bfloat16 in shared memory, and the product is a plain one of
//! those. A float of eight bits or fewer times a power of two, or times another one, is a number of
//! bfloat16.
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
//! What lies in registers goes to shared memory first, and so do scales that an instruction takes.
//! Needs tile IR; afterwards products have scales that an instruction takes, in shared memory, or none.

use tilewright_ir::{
    Block, DType, Diagnostics, Expr, Func, GemmOp, Region, Scales, Span, Stmt, StmtKind, Target,
    VarKind,
};

use crate::Changed;
use crate::legalize::gemm_plan::takes_scales;
use crate::legalize::gemm_tiling::matrix;
use crate::legalize::products::{
    Rewritten, Site, elements, in_memory, new_tile, place, rewrite_products,
};

/// Multiplies the factors of products with scales that no instruction takes.
pub fn expand_scales(func: &mut Func, target: Target, _: &mut Diagnostics) -> Changed {
    rewrite_products(func, &mut |func, g, Site { span, threads }, out| {
        if takes_scales(func, g, threads, target) {
            return to_memory(func, g, span, out);
        }
        let Some(Scales { a, b, every }) = g.scales.take() else {
            return Rewritten::No;
        };
        for (factor, along_rows, scales, every) in [
            (&mut g.a, g.trans_a, a, every[0]),
            (&mut g.b, !g.trans_b, b, every[1]),
        ] {
            let scaled = Scaled {
                factor: in_memory(func, factor, span, out),
                along_rows,
                scales: in_memory(func, &scales, span, out),
                every,
            };
            if let Some(tile) = multiplied(func, scaled, span, out) {
                *factor = tile;
            }
        }
        Rewritten::Yes
    })
}

/// Has an instruction's scales in memory, from where it takes them lane by lane.
fn to_memory(func: &mut Func, g: &mut GemmOp, span: Span, out: &mut Block) -> Rewritten {
    let mut moved = Rewritten::No;
    for scales in g.scales.iter_mut().flat_map(|s| [&mut s.a, &mut s.b]) {
        let tile = in_memory(func, scales, span, out);
        if tile.buffer != scales.buffer {
            *scales = tile;
            moved = Rewritten::Yes;
        }
    }
    moved
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
    let name = format!("{}_scaled", data.name);
    let tile = new_tile(func, name, DType::BF16, [rows, columns], span, out);

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
        buffer: tile.buffer,
        indices: at.to_vec(),
        value: product.cast_to(DType::BF16),
    };
    let body = vec![Stmt::new(store, span)];
    out.push(elements(vars, [rows, columns], body, span));
    Some(tile)
}
