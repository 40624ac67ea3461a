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

use tilewright_ir::{
    Block, Code, DType, Diagnostic, Diagnostics, Expr, ExprKind, Func, GemmKind, GemmOp, Loop,
    LoopKind, Region, Span, Stmt, StmtKind, Target, VarKind,
};

use crate::Changed;
use crate::legalize::gemm_plan::has_instruction;
use crate::legalize::gemm_tiling::matrix;
use crate::legalize::products::{
    Rewritten, Site, elements, in_memory, place, rewrite_products, upto,
};

const BY_THREADS: Code = Code("product-by-threads");

/// Expands all products that have no instruction.
pub fn expand_products(func: &mut Func, target: Target, diags: &mut Diagnostics) -> Changed {
    rewrite_products(func, &mut |func, g, Site { threads, span }, out| {
        if g.kind != GemmKind::Auto || has_instruction(func, g, threads, target) {
            return Rewritten::No;
        }
        let Some(sizes) = sizes(g) else {
            return Rewritten::No;
        };
        diags.push(told(func, g, target, span));
        by_threads(func, g, sizes, span, out);
        Rewritten::Replaced
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
    out.push(elements([i, j], [sizes[0], sizes[1]], body, span));
}
