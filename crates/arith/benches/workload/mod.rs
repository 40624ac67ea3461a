//! Index expressions as layouts and legalisation make them: a 128x128x32 GEMM block with 128
//! threads, vectorised copies, swizzled shared memory, and symbolic sizes.

use tilewright_arith::{Analyzer, Interval, Proof};
use tilewright_ir::{BinOp, DType, Expr, Var};

const THREADS: i128 = 128;

/// Thread index, loop indices and block indices with their ranges, and the sizes `m` and `n`.
#[derive(Debug)]
pub struct Kernel {
    pub tx: Expr,
    pub i: Expr,
    pub v: Expr,
    pub k: Expr,
    pub bx: Expr,
    pub by: Expr,
    pub m: Expr,
    pub n: Expr,
}

fn var(index: u32) -> Expr {
    Expr::var(Var::from_u32(index), DType::I32)
}

pub fn kernel() -> Kernel {
    Kernel {
        tx: var(0),
        i: var(1),
        v: var(2),
        k: var(3),
        bx: var(4),
        by: var(5),
        m: var(6),
        n: var(7),
    }
}

pub fn analyzer(kernel: &Kernel) -> Analyzer {
    let mut a = Analyzer::new();
    for (index, lo, hi) in [
        (0, 0, THREADS - 1),
        (1, 0, 3),
        (2, 0, 7),
        (3, 0, 31),
        (6, 1, 1 << 20),
        (7, 1, 1 << 20),
    ] {
        a.bind_interval(Var::from_u32(index), DType::I32, Interval::new(lo, hi));
    }
    let zero = Expr::i32(0);
    a.bind_range(Var::from_u32(4), &zero, &kernel.n.clone().ceil_div(128));
    a.bind_range(Var::from_u32(5), &zero, &kernel.m.clone().ceil_div(128));
    a
}

/// Expressions to simplify.
pub fn expressions(kernel: &Kernel) -> Vec<Expr> {
    let Kernel {
        tx,
        i,
        v,
        k,
        bx,
        by,
        m,
        n,
    } = kernel;
    // The linear position of a thread's vector in a 128x32 tile, and its row and column.
    let linear = i.clone() * (THREADS as i32 * 8) + tx.clone() * 8 + v.clone();
    let (row, column) = (linear.clone().floor_div(32), linear.clone() % 32);
    // Eight-element units, XORed with the row.
    let swizzled = |row: &Expr, column: &Expr| {
        let unit = Expr::bin(
            BinOp::BitXor,
            column.clone().floor_div(8),
            row.clone().floor_div(2) % 4,
        );
        row.clone() * 32 + unit * 8 + column.clone() % 8
    };
    // The fragment of an m16n8k16 accumulator.
    let lane = tx.clone() % 32;
    let warp = tx.clone().floor_div(32);
    let fragment_row = warp.clone() % 2 * 64
        + i.clone() * 16
        + lane.clone().floor_div(4)
        + (v.clone() % 4).floor_div(2) * 8;
    let fragment_column =
        warp.floor_div(2) * 64 + v.clone().floor_div(4) * 8 + lane % 4 * 2 + v.clone() % 2;
    vec![
        row.clone(),
        column.clone(),
        (by.clone() * 128 + row.clone()) * 4096 + k.clone() * 32 + column.clone(),
        swizzled(&row, &column),
        swizzled(&row, &column) % 8,
        swizzled(&row, &column).floor_div(8),
        swizzled(&row, &column).floor_div(32),
        (by.clone() * 128 + fragment_row.clone()) * n.clone()
            + bx.clone() * 128
            + fragment_column.clone(),
        fragment_row.clone() * 128 + fragment_column.clone(),
        (fragment_row.clone() * 128 + fragment_column.clone()) % 128,
        (fragment_row * 128 + fragment_column).floor_div(128),
        (by.clone() * 128 + row.clone()).lt(m.clone()),
        (bx.clone() * 128 + column.clone()).lt(n.clone()),
        (linear.clone().floor_div(32) * 32 + linear % 32) - tx.clone() * 8,
        (k.clone() + 2) % 3,
        Expr::bin(BinOp::Min, k.clone() * 32 + 32, m.clone()) - k.clone() * 32,
        m.clone().ceil_div(128) * 128 - m.clone(),
        row.lt(128).and(column.lt(32)),
    ]
}

/// Claims to prove, with the answer that the prover must reach.
pub fn claims(kernel: &Kernel) -> Vec<(Expr, Proof)> {
    let Kernel {
        tx, i, v, bx, n, ..
    } = kernel;
    let linear = i.clone() * (THREADS as i32 * 8) + tx.clone() * 8 + v.clone();
    let column = bx.clone() * 128 + tx.clone();
    vec![
        (linear.clone().lt(4096), Proof::Yes),
        (linear.clone().floor_div(32).lt(128), Proof::Yes),
        ((linear.clone() % 32).ge(32), Proof::No),
        (((linear.clone() - v.clone()) % 8).equal(0), Proof::Yes),
        // A block that exists starts inside.
        ((bx.clone() * 128).lt(n.clone()), Proof::Yes),
        (column.clone().lt(n.clone() + 127), Proof::Yes),
        (column.lt(n.clone()), Proof::Unknown),
        (tx.clone().floor_div(32).lt(4), Proof::Yes),
    ]
}

/// Simplifies everything once with a fresh analyzer; returns how much that was.
pub fn simplify_all() -> usize {
    let kernel = kernel();
    let mut a = analyzer(&kernel);
    let all = expressions(&kernel);
    all.iter()
        .map(|e| a.simplify(e))
        .filter(|e| e.as_float().is_none())
        .count()
}

/// Proves everything once with a fresh analyzer.
pub fn prove_all() -> usize {
    let kernel = kernel();
    let mut a = analyzer(&kernel);
    let all = claims(&kernel);
    all.iter()
        .filter(|(claim, want)| a.prove(claim) == *want)
        .count()
}
