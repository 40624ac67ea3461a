//! Tiles of a tensor that only one block reads, and that once: so much is known from where they start.

use rustc_hash::FxHashSet;
use tilewright_arith::Analyzer;
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::visit_ids::stmt_buffers;
use tilewright_ir::{Expr, Func, Kernel, Loop, Region, RegionDim, Var};

/// Whether the block behind it along an axis of the grid starts where this one ends, or later.
pub fn is_own(func: &Func, analyzer: &mut Analyzer, region: &Region, var: Var) -> bool {
    let own = func.var_expr(var);
    let next = own.clone() + Expr::int(1, own.dtype());
    region.dims.iter().any(|RegionDim { start, extent }| {
        let later = start.rewrite(&mut |node| (node.as_var() == Some(var)).then(|| next.clone()));
        let end = start.clone() + extent.clone().cast_to(start.dtype());
        analyzer.prove_le(&end, &later).is_yes()
    })
}

/// Whether a copy in a loop brings what neither another copy nor another block nor another iteration
/// reads. Blocks that differ along `shared` read it together.
pub fn is_read_once(
    func: &Func,
    kernel: &Kernel,
    l: &Loop,
    region: &Region,
    shared: Option<Var>,
) -> bool {
    let mut readers = 0;
    let root = func.root(region.buffer);
    walk_stmts(&kernel.body, &mut |stmt| {
        let mut of_stmt: FxHashSet<_> = FxHashSet::default();
        stmt_buffers(stmt, &mut |buffer| {
            of_stmt.insert(func.root(buffer));
        });
        readers += usize::from(of_stmt.contains(&root));
    });
    let mut analyzer = Analyzer::for_func(func);
    analyzer.enter_kernel(func, kernel);
    analyzer.enter_loop(func, l);
    let several = kernel.grid.iter().filter(|(_, extent)| !extent.is_int(1));
    let blocks: Vec<Var> = several.map(|(var, _)| *var).collect();
    let own = blocks.iter().filter(|var| Some(**var) != shared);
    let mut vars = own.chain(l.axes.iter().map(|axis| &axis.var));
    readers == 1 && !blocks.is_empty() && vars.all(|var| is_own(func, &mut analyzer, region, *var))
}
