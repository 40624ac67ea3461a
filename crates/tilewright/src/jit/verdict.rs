//! Whether a result is the reference's, up to rounding.
//!
//! Machines add in another order than the reference and contract products and sums, so float
//! results differ in their last places. How far they may is worked out from the output's type,
//! the types that the kernel rounds to on the way there, and the size of the values, not chosen
//! kernel by kernel. Integers must be equal.

use tilewright_ir::visit::{stmt_exprs, walk_stmts};
use tilewright_ir::{Buffer, DType, ExprKind, Func, Scalar, StmtKind, TileOp, small_float::Format};
use tilewright_sim::{Args, Tolerance, compare, compare_written, summarize};

/// How a result compares with the reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub ok: bool,
    pub max_abs_err: f64,
    pub max_rel_err: f64,
    /// Elements out of tolerance, by tensor, where there are any.
    pub wrong: Vec<(String, usize)>,
    /// Elements that were compared.
    pub elements: usize,
}

/// Sums of float32 in another order: a few hundred units in the last place of the largest
/// partial sum.
const SUMMATION: f64 = 1e-5;

/// Compares every tensor of the signature.
pub fn verdict(func: &Func, found: &Args, expected: &Args) -> Verdict {
    judge(func, found, expected, false)
}

/// Compares what a sample of blocks wrote: outputs, where they are written in `expected`. A
/// sample that wrote nothing is no verdict in the kernel's favour.
pub fn verdict_of_sample(func: &Func, found: &Args, expected: &Args) -> Verdict {
    let mut result = judge(func, found, expected, true);
    result.ok &= result.elements > 0;
    result
}

fn judge(func: &Func, found: &Args, expected: &Args, sample: bool) -> Verdict {
    let mut result = Verdict {
        ok: true,
        max_abs_err: 0.0,
        max_rel_err: 0.0,
        wrong: Vec::new(),
        elements: 0,
    };
    let on_the_way = coarsest_rounding(func);
    for (buffer, output) in func.tensors() {
        if sample && !output {
            continue;
        }
        let name = &func.buffers[buffer].name;
        let (Some(a), Some(b)) = (found.tensor(name), expected.tensor(name)) else {
            continue;
        };
        let scalar = func.buffers[buffer].dtype.scalar;
        let tolerance = if scalar.is_float() {
            let s = summarize(b);
            let largest = s.min.abs().max(s.max.abs());
            let typical = s.mean.abs() + s.deviation;
            let step = epsilon(scalar);
            // A value that lies between two of the coarser type goes to either of them.
            let coarsest = step.max(on_the_way);
            Tolerance {
                absolute: 2.0 * coarsest * typical + SUMMATION * largest,
                relative: 2.0 * step,
            }
        } else {
            Tolerance {
                absolute: 0.0,
                relative: 0.0,
            }
        };
        let compared = match sample {
            true => compare_written(a, b, tolerance),
            false => compare(a, b, tolerance),
        };
        match compared {
            Some(c) => {
                result.elements += c.elements;
                result.max_abs_err = result.max_abs_err.max(c.max_abs_err);
                result.max_rel_err = result.max_rel_err.max(c.max_rel_err);
                if !c.ok() {
                    result.ok = false;
                    result.wrong.push((name.clone(), c.mismatches));
                }
            }
            None => {
                result.ok = false;
                result.wrong.push((name.clone(), a.len()));
            }
        }
    }
    result
}

/// The step of the coarsest float type that the kernel rounds values to before they reach an
/// output; zero where it rounds to none. Outputs themselves round by their own type.
fn coarsest_rounding(func: &Func) -> f64 {
    let inner = |b: Buffer| !func.tensors().any(|(tensor, _)| tensor == b);
    let rounded = |from: DType, to: DType| match (from.scalar, to.scalar) {
        (a, b) if a.is_float() && b.is_float() && epsilon(b) > epsilon(a) => epsilon(b),
        _ => 0.0,
    };
    let mut coarsest = 0.0f64;
    for kernel in &func.kernels {
        walk_stmts(&kernel.body, &mut |stmt| {
            let mut outer = None;
            match &stmt.kind {
                StmtKind::Tile(TileOp::Copy(c)) if inner(c.dst.buffer) => {
                    let of = |b: Buffer| func.buffers[b].dtype;
                    coarsest = coarsest.max(rounded(of(c.src.buffer), of(c.dst.buffer)));
                }
                StmtKind::Store { buffer, value, .. } if !inner(*buffer) => outer = Some(value),
                _ => {}
            }
            stmt_exprs(stmt, &mut |expr| {
                expr.walk_distinct(&mut |node| {
                    if let ExprKind::Cast(from) = node.kind()
                        && outer != Some(node)
                    {
                        coarsest = coarsest.max(rounded(from.dtype(), node.dtype()));
                    }
                });
            });
        });
    }
    coarsest
}

/// The distance from one to the next value of the type.
fn epsilon(scalar: Scalar) -> f64 {
    let bits = match scalar {
        Scalar::F64 => 52,
        Scalar::F32 => 23,
        _ => Format::of(scalar).map_or(23, |f| f.mantissa_bits),
    };
    2f64.powi(-(bits as i32))
}
