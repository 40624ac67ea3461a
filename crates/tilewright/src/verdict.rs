//! Whether a result is the reference's, up to rounding.
//!
//! Machines add in another order than the reference and contract products and sums, so float
//! results differ in their last places. How far they may is worked out from the output's type,
//! the types that the kernel rounds to on the way there, and the size of the values, not chosen
//! kernel by kernel. Integers must be equal.

use tilewright_ir::small_float::Format;
use tilewright_ir::visit::{stmt_exprs, walk_stmts};
use tilewright_ir::{
    Buffer, Code, DType, Diagnostic, ExprKind, Func, Scalar, StmtKind, Target, TileOp,
};
use tilewright_sim::{Args, HostTensor, Tolerance, compare, compare_where, summarize};

/// How a result compares with the reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub ok: bool,
    pub max_abs_err: f64,
    pub max_rel_err: f64,
    /// Tensors with elements out of tolerance.
    pub wrong: Vec<Wrong>,
    /// Elements that were compared.
    pub elements: usize,
    /// Elements that nothing wrote: they have no value to compare.
    pub unwritten: usize,
}

/// A tensor that differs from the reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrong {
    pub tensor: String,
    /// How many elements are out of tolerance.
    pub elements: usize,
    /// The worst of them: its index, what was found and what is right.
    pub worst: Option<(Vec<usize>, f64, f64)>,
}

/// Which elements a result is compared on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compared {
    /// Those that either side wrote: one that only one of them wrote is wrong. For executors that
    /// know what they wrote.
    All,
    /// Those that the reference wrote. For GPUs, which hand back memory whoever wrote it.
    Expected,
    /// Those that both a sample of blocks and the reference wrote, of the tensors that a sample
    /// leaves holes in. A sample that wrote nothing is no verdict in the kernel's favour.
    Sample,
}

/// Sums of float32 in another order: a few hundred units in the last place of the largest
/// partial sum.
const SUMMATION: f64 = 1e-5;

/// How far sums on a GPU may be off, of the largest: where the machine keeps fewer bits of sums of fp8
/// products than the reference, each step of an instruction along K cuts them again.
pub fn summation(func: &Func, target: Target) -> f64 {
    let bits = target.machine().fp8_sum_bits;
    if !multiplies_fp8(func) || bits >= 23 {
        return SUMMATION;
    }
    // No sum is longer than a tensor, and errors of steps are as often up as down.
    const STEP: f64 = 32.0;
    let tensors = func.tensors().filter(|(b, _)| is_fp8(func, *b));
    let extents = tensors.flat_map(|(b, _)| func.buffers[b].shape.iter().map(|e| e.as_int()));
    let longest = extents.map(|e| e.unwrap_or(1 << 13)).max().unwrap_or(1);
    let steps = (longest as f64 / STEP).max(1.0);
    2f64.powi(-(bits as i32)) * steps.sqrt()
}

/// Whether products of the function are of fp8 tiles.
pub fn multiplies_fp8(func: &Func) -> bool {
    let mut multiplied = false;
    for kernel in &func.kernels {
        walk_stmts(&kernel.body, &mut |stmt| {
            if let StmtKind::Tile(TileOp::Gemm(g)) = &stmt.kind {
                multiplied |= is_fp8(func, g.a.buffer);
            }
        });
    }
    multiplied
}

fn is_fp8(func: &Func, buffer: Buffer) -> bool {
    let dtype = func.buffers[buffer].dtype;
    dtype.scalar.is_float() && dtype.bits() == 8
}

/// Compares the tensors of the signature.
pub fn verdict(func: &Func, found: &Args, expected: &Args, which: Compared) -> Verdict {
    verdict_within(func, found, expected, which, SUMMATION)
}

/// The same where sums may be off by this much of the largest.
pub fn verdict_within(
    func: &Func,
    found: &Args,
    expected: &Args,
    which: Compared,
    summation: f64,
) -> Verdict {
    let mut result = Verdict {
        ok: true,
        max_abs_err: 0.0,
        max_rel_err: 0.0,
        wrong: Vec::new(),
        elements: 0,
        unwritten: 0,
    };
    let on_the_way = coarsest_rounding(func);
    for (buffer, output) in func.tensors() {
        let name = &func.buffers[buffer].name;
        let (Some(a), Some(b)) = (found.tensor(name), expected.tensor(name)) else {
            continue;
        };
        let partial = output || !a.is_whole() || !b.is_whole();
        if which == Compared::Sample && !partial {
            continue;
        }
        let scalar = func.buffers[buffer].dtype.scalar;
        let tolerance = tolerance_of(scalar, b, on_the_way, summation);
        let compared = match which {
            Compared::All => compare(a, b, tolerance),
            Compared::Expected => compare_where(a, b, tolerance, |i| b.is_written(i)),
            Compared::Sample => {
                compare_where(a, b, tolerance, |i| a.is_written(i) && b.is_written(i))
            }
        };
        let Some(c) = compared else {
            result.ok = false;
            result.wrong.push(Wrong {
                tensor: name.clone(),
                elements: a.len(),
                worst: None,
            });
            continue;
        };
        result.elements += c.elements;
        result.unwritten += c.left_out;
        result.max_abs_err = result.max_abs_err.max(c.max_abs_err);
        result.max_rel_err = result.max_rel_err.max(c.max_rel_err);
        if !c.ok() {
            result.ok = false;
            result.wrong.push(Wrong {
                tensor: name.clone(),
                elements: c.mismatches,
                worst: c.worst.map(|(i, x, y)| (b.coordinates(i), x, y)),
            });
        }
    }
    result.ok &= which != Compared::Sample || result.elements > 0;
    result
}

/// How far a tensor may be from what is expected of it.
pub fn tolerance(func: &Func, buffer: Buffer, expected: &HostTensor) -> Tolerance {
    let scalar = func.buffers[buffer].dtype.scalar;
    tolerance_of(scalar, expected, coarsest_rounding(func), SUMMATION)
}

fn tolerance_of(
    scalar: Scalar,
    expected: &HostTensor,
    on_the_way: f64,
    summation: f64,
) -> Tolerance {
    if !scalar.is_float() {
        return Tolerance {
            absolute: 0.0,
            relative: 0.0,
        };
    }
    let s = summarize(expected);
    let largest = s.min.abs().max(s.max.abs());
    let typical = s.mean.abs() + s.deviation;
    let step = epsilon(scalar);
    // A value that lies between two of the coarser type goes to either of them.
    let coarsest = step.max(on_the_way);
    Tolerance {
        absolute: 2.0 * coarsest * typical + summation * largest,
        relative: 2.0 * step,
    }
}

impl Verdict {
    /// The difference as an error at the first tensor that is wrong; `None` where there is none.
    pub fn diagnostic(&self, func: &Func) -> Option<Diagnostic> {
        if self.ok {
            return None;
        }
        let list: Vec<String> = self
            .wrong
            .iter()
            .map(|w| format!("{} elements of `{}`", w.elements, w.tensor))
            .collect();
        let what = match list.is_empty() {
            true => "nothing that can be compared was written".to_owned(),
            false => format!(
                "differs from the reference evaluator in {}",
                list.join(", ")
            ),
        };
        let span = self.wrong.first().and_then(|w| {
            let named = |b: &Buffer| func.buffers[*b].name == w.tensor;
            func.tensors().map(|(b, _)| b).find(named)
        });
        let span = span.map_or(func.span, |b| func.buffers[b].span);
        let message = format!("`{}`: {what}", func.name);
        let mut diag = Diagnostic::error(Code("wrong-result"), span, message).note(format!(
            "largest difference {:.3e}, {:.3e} relative",
            self.max_abs_err, self.max_rel_err
        ));
        for w in &self.wrong {
            if let Some((at, found, expected)) = &w.worst {
                diag = diag.note(format!(
                    "`{}`{at:?} is {found}, and should be {expected}",
                    w.tensor
                ));
            }
        }
        Some(diag)
    }
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
