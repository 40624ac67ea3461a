//! ExpandSparse: where no sparse instruction of the target takes a product, its left factor gets its
//! zeros in a tile of shared memory, and the product is a plain one of that tile.
//!
//! Before:
//! ```text
//! gemm a[0 +: 64, 0 +: 32], b[0 +: 64, 0 +: 32] -> c[0 +: 64, 0 +: 32] sparse=e[0 +: 64, 0 +: 4]
//! ```
//! After:
//! ```text
//! alloc a_all: shared float16[64, 64]
//! for i, k in parallel(64, 64) {
//!   let places: int32 = int32(e[i, k // 4 // 4]) >> k // 4 % 4 * 4
//!   a_all[i, k] = select(k % 4 == places >> 2 & 3, a[i, k // 4 * 2 + 1], select(k % 4 == places >> 0 & 3, a[i, k // 4 * 2 + 0], 0.0:float16))
//! }
//! gemm a_all[0 +: 64, 0 +: 64], b[0 +: 64, 0 +: 32] -> c[0 +: 64, 0 +: 32]
//! ```
//!
//! What lies in registers goes to shared memory first, also the metadata of a product that stays sparse.
//! Needs tile IR; afterwards a sparse product has an instruction.

use tilewright_ir::{
    Block, DType, Diagnostics, Expr, ExprKind, Func, GemmOp, Region, Scope, Span, Sparse, Sparsity,
    Stmt, StmtKind, Target, VarKind,
};

use crate::Changed;
use crate::legalize::gemm_plan::has_instruction;
use crate::legalize::gemm_tiling::matrix;
use crate::legalize::products::{
    Rewritten, Site, elements, in_memory, new_tile, place, rewrite_products,
};

/// Expands the left factors of sparse products that have no instruction.
pub fn expand_sparse(func: &mut Func, target: Target, _: &mut Diagnostics) -> Changed {
    rewrite_products(func, &mut |func, g, Site { threads, span }, out| {
        if has_instruction(func, g, threads, target) {
            return match &mut g.sparse {
                Some(sparse) if func.buffers[sparse.e.buffer].scope == Scope::Fragment => {
                    sparse.e = in_memory(func, &sparse.e, span, out);
                    Rewritten::Yes
                }
                _ => Rewritten::No,
            };
        }
        let Some(all) = spread(func, g, span, out) else {
            return Rewritten::No;
        };
        (g.a, g.sparse) = (all, None);
        Rewritten::Yes
    })
}

/// The left factor with all of its elements, where the product is sparse.
fn spread(func: &mut Func, g: &GemmOp, span: Span, out: &mut Block) -> Option<Region> {
    let Sparse { e, trans_e } = g.sparse.as_ref()?;
    let dtype = func.buffers[g.a.buffer].dtype;
    let sparsity = Sparsity::of(dtype.scalar)?;
    let metadata = func.buffers[e.buffer].dtype;
    let [m, k] = match (matrix(&g.a)?, g.trans_a) {
        ([rows, columns], false) => [rows, 2 * columns],
        ([rows, columns], true) => [columns, 2 * rows],
    };
    let a = in_memory(func, &g.a, span, out);
    let e = in_memory(func, e, span, out);
    let name = format!("{}_all", func.buffers[a.buffer].name);
    let shape = if g.trans_a { [k, m] } else { [m, k] };
    let all = new_tile(func, name, dtype, shape, span, out);

    let turned = |turn: bool, x: Expr, y: Expr| if turn { [y, x] } else { [x, y] };
    let int = |v: u32| Expr::int(v.into(), DType::I32);
    let [i, j, places] = [
        ("i", VarKind::Loop),
        ("k", VarKind::Loop),
        ("places", VarKind::Let),
    ]
    .map(|(name, kind)| func.add_var(name, DType::I32, kind));
    let [row, column, told] = [i, j, places].map(|var| func.var_expr(var));
    let group = column.clone().floor_div(int(sparsity.group));
    let in_one = metadata.bits() / Sparsity::BITS;
    let integer = turned(*trans_e, row.clone(), group.clone().floor_div(int(in_one)));
    let integer = Expr::load(e.buffer, place(&e, integer), metadata).cast_to(DType::I32);
    let shift = group.clone().floor_mod(int(in_one)) * int(Sparsity::BITS);
    let value = (0..sparsity.kept).fold(Expr::zero(dtype), |otherwise, element| {
        let (first, bits) = sparsity.place(element);
        let at = (told.clone() >> int(first)) & int((1 << bits) - 1);
        let kept = group.clone() * int(sparsity.kept) + int(element);
        let kept = place(&a, turned(g.trans_a, row.clone(), kept));
        let chosen = ExprKind::Select {
            cond: column.clone().floor_mod(int(sparsity.group)).equal(at),
            then: Expr::load(a.buffer, kept, dtype),
            otherwise,
        };
        Expr::new(chosen, dtype, span)
    });
    let kinds = [
        StmtKind::Let {
            var: places,
            value: integer >> shift,
        },
        StmtKind::Store {
            buffer: all.buffer,
            indices: turned(g.trans_a, row, column).to_vec(),
            value,
        },
    ];
    let body = kinds.map(|kind| Stmt::new(kind, span)).into();
    out.push(elements([i, j], [m, k], body, span));
    Some(all)
}
