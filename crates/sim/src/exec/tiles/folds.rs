//! Reductions and scans, and the steps of a fold.

use tilewright_ir::{BinOp, ReduceKind, ReduceOp, Scalar, ScanKind, ScanOp, Span, small_float};

use super::cast_slot;
use crate::compile::names::Compiled;
use crate::compile::stmt::Builder;
use crate::error::{Eval, Fault, Stop, codes};
use crate::exec::Exec;
use crate::exec::access::{decode, encode, tuple};
use crate::exec::areas::{Area, Outside};
use crate::program::Rect;
use crate::value;

/// A fold along a dimension.
#[derive(Clone, Debug)]
pub(super) struct Code {
    kind: Kind,
    src: Rect,
    dst: Rect,
    dim: usize,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Reduce {
        kind: ReduceKind,
        clear: bool,
        nan_propagate: bool,
    },
    Scan {
        kind: ScanKind,
        reverse: bool,
    },
}

pub(super) fn reduce(b: &mut Builder<'_, '_>, r: &ReduceOp, span: Span) -> Compiled<Code> {
    let (src, dst) = b.rects(&r.src, &r.dst, span)?;
    if !r.clear {
        b.names.reads(dst.buffer);
    }
    let float = b.names.buffers[dst.buffer as usize].is_float();
    if r.kind.is_bitwise() && float {
        return Err(b.invalid("a bitwise reduction of floats"));
    }
    Ok(Code {
        kind: Kind::Reduce {
            kind: r.kind,
            clear: r.clear,
            nan_propagate: r.nan_propagate,
        },
        dim: dimension(b, r.dim, &src)?,
        src,
        dst,
    })
}

pub(super) fn scan(b: &mut Builder<'_, '_>, s: &ScanOp, span: Span) -> Compiled<Code> {
    let (src, dst) = b.rects(&s.src, &s.dst, span)?;
    Ok(Code {
        kind: Kind::Scan {
            kind: s.kind,
            reverse: s.reverse,
        },
        dim: dimension(b, s.dim, &src)?,
        src,
        dst,
    })
}

fn dimension(b: &Builder<'_, '_>, dim: u32, src: &Rect) -> Compiled<usize> {
    if (dim as usize) < src.start.len() {
        Ok(dim as usize)
    } else {
        Err(b.invalid("the dimension to fold does not exist"))
    }
}

impl Exec<'_, '_> {
    pub(super) fn fold(&mut self, code: &Code) -> Eval<()> {
        let (src, dst) = (self.area(&code.src)?, self.area(&code.dst)?);
        match code.kind {
            Kind::Reduce {
                kind,
                clear,
                nan_propagate,
            } => self.reduce(kind, &src, &dst, code.dim, clear, nan_propagate),
            Kind::Scan { kind, reverse } => {
                self.pair(&src, &dst)?;
                self.scan(kind, &src, &dst, code.dim, reverse)
            }
        }
    }

    /// Folds along a dimension. Sums of floats are kept in float64 and rounded once, which
    /// lies within what any order of additions may give.
    fn reduce(
        &mut self,
        kind: ReduceKind,
        src: &Area,
        dst: &Area,
        dim: usize,
        clear: bool,
        nan_propagate: bool,
    ) -> Eval<()> {
        let (outer, n, inner) = split(&src.extent, dim);
        if outer * inner != dst.len() {
            return Err(self.unequal_fold(src, dst, dim));
        }
        let scalar = |a: &Area| self.program.buffers[a.buffer as usize].scalar;
        let (from, to) = (scalar(src), scalar(dst));
        let values = self.gather::<u64>(src, Outside::Trap)?;
        let old = if clear {
            vec![identity(kind, to); outer * inner]
        } else {
            let old = self.gather::<u64>(dst, Outside::Trap)?;
            old.into_iter().map(|raw| decode(to, raw)).collect()
        };
        // Only these two types propagate NaN where they are asked to.
        let nan_wins = nan_propagate && matches!(to, Scalar::F16 | Scalar::BF16);
        let sums = to.is_float() && matches!(kind, ReduceKind::Sum | ReduceKind::AbsSum);
        let mut out = Vec::with_capacity(outer * inner);
        for (position, &start) in old.iter().enumerate() {
            let (o, i) = (position / inner, position % inner);
            let mut acc = start;
            let mut sum = if sums { f64::from_bits(start) } else { 0.0 };
            for k in 0..n {
                let raw = values[(o * n + k) * inner + i];
                let x = cast_slot(from, to, decode(from, raw));
                if sums {
                    let x = f64::from_bits(x);
                    sum += if kind == ReduceKind::AbsSum {
                        x.abs()
                    } else {
                        x
                    };
                } else {
                    acc = fold(kind, to, acc, x, nan_wins);
                }
            }
            out.push(encode(to, if sums { sum.to_bits() } else { acc }));
        }
        self.scatter(dst, &out, Outside::Trap)
    }

    #[cold]
    fn unequal_fold(&mut self, src: &Area, dst: &Area, dim: usize) -> Stop {
        let shape = |a: &Area| tuple(&a.extent.iter().map(|&e| e as i64).collect::<Vec<_>>());
        let message = format!(
            "folding {} along dimension {dim} does not give {}",
            shape(src),
            shape(dst)
        );
        self.fail(Fault::new(codes::EXTENTS, message))
    }

    /// An inclusive scan. Running sums of floats are kept in float64 and rounded where they
    /// are stored.
    fn scan(
        &mut self,
        kind: ScanKind,
        src: &Area,
        dst: &Area,
        dim: usize,
        reverse: bool,
    ) -> Eval<()> {
        let (outer, n, inner) = split(&src.extent, dim);
        let scalar = |a: &Area| self.program.buffers[a.buffer as usize].scalar;
        let (from, to) = (scalar(src), scalar(dst));
        let values = self.gather::<u64>(src, Outside::Trap)?;
        let mut out = vec![0u64; values.len()];
        for line in 0..outer * inner {
            let (o, i) = (line / inner, line % inner);
            let mut acc = 0u64;
            for step in 0..n {
                let k = if reverse { n - 1 - step } else { step };
                let at = (o * n + k) * inner + i;
                let x = decode(from, values[at]);
                acc = match (kind, from.is_float()) {
                    _ if step == 0 => x,
                    (ScanKind::Sum, true) => (f64::from_bits(acc) + f64::from_bits(x)).to_bits(),
                    (ScanKind::Sum, false) => fold(ReduceKind::Sum, from, acc, x, false),
                    (ScanKind::Max, _) => fold(ReduceKind::Max, from, acc, x, false),
                };
                out[at] = encode(to, cast_slot(from, to, acc));
            }
        }
        self.scatter(dst, &out, Outside::Trap)
    }
}

/// Elements before, along and after a dimension.
fn split(extent: &[usize], dim: usize) -> (usize, usize, usize) {
    (
        extent[..dim].iter().product(),
        extent[dim],
        extent[dim + 1..].iter().product(),
    )
}

/// What a fold starts with.
pub(crate) fn identity(kind: ReduceKind, scalar: Scalar) -> u64 {
    let lowest = match scalar.int_range() {
        Some((low, _)) => low as i64 as u64,
        None => small_float::round_to(scalar, f64::NEG_INFINITY).to_bits(),
    };
    let highest = match scalar.int_range() {
        Some((_, high)) => high as i64 as u64,
        None => small_float::round_to(scalar, f64::INFINITY).to_bits(),
    };
    match kind {
        ReduceKind::Sum
        | ReduceKind::AbsSum
        | ReduceKind::AbsMax
        | ReduceKind::BitOr
        | ReduceKind::BitXor => 0,
        ReduceKind::Max => lowest,
        ReduceKind::Min => highest,
        ReduceKind::BitAnd => value::wrap(scalar, -1) as u64,
    }
}

/// One step of a fold on slots of the type. NaN loses against numbers, or wins.
pub(crate) fn fold(kind: ReduceKind, scalar: Scalar, acc: u64, x: u64, nan_wins: bool) -> u64 {
    if scalar.is_float() {
        let (acc, x) = (f64::from_bits(acc), f64::from_bits(x));
        let number = match kind {
            ReduceKind::Sum => value::round(scalar, acc + x),
            ReduceKind::AbsSum => value::round(scalar, acc + x.abs()),
            _ if nan_wins && (acc.is_nan() || x.is_nan()) => f64::NAN,
            ReduceKind::Max => acc.max(x),
            ReduceKind::Min => acc.min(x),
            ReduceKind::AbsMax => acc.max(x.abs()),
            // Refused by the compiler.
            ReduceKind::BitAnd | ReduceKind::BitOr | ReduceKind::BitXor => acc,
        };
        return number.to_bits();
    }
    let x = x as i64;
    // |x| is max(x, -x), which leaves the smallest integer as it is.
    let absolute = if scalar.is_signed_int() {
        x.max(value::wrap(scalar, x.wrapping_neg()))
    } else {
        x
    };
    let (op, x) = match kind {
        ReduceKind::Sum => (BinOp::Add, x),
        ReduceKind::AbsSum => (BinOp::Add, absolute),
        ReduceKind::Max => (BinOp::Max, x),
        ReduceKind::Min => (BinOp::Min, x),
        ReduceKind::AbsMax => (BinOp::Max, absolute),
        ReduceKind::BitAnd => (BinOp::BitAnd, x),
        ReduceKind::BitOr => (BinOp::BitOr, x),
        ReduceKind::BitXor => (BinOp::BitXor, x),
    };
    value::int_binary(op, scalar, acc as i64, x).map_or(acc, |v| v as u64)
}
