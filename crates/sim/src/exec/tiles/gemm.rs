//! Matrix products.
//!
//! Products are exact and are added in ascending order of `k`:
//! * operands of at most 11 significant bits (float16, bfloat16, tfloat32, fp8, fp6, fp4) are
//!   multiplied and added in float32, where their products are exact;
//! * float32 and float64 operands are multiplied and added in float64;
//! * integers wrap at the accumulator's width.
//!
//! The sum starts at the accumulator and is rounded to its type once, at the end of the
//! operation. A sparse left factor gets its zeros first; elements with scales are multiplied by them
//! first, in float32.

use tilewright_ir::{Buffer, GemmOp, Region, Scalar, Scales, Span, Sparse, Sparsity};

use crate::compile::expr;
use crate::compile::names::Compiled;
use crate::compile::stmt::Builder;
use crate::error::{Eval, Fault, codes};
use crate::exec::Exec;
use crate::exec::areas::{Area, Element, Outside};
use crate::exec::threads::{BarrierRef, barrier_ref};
use crate::program::{Int, Rect};
use crate::value;

#[derive(Clone, Debug)]
pub(super) struct Code {
    a: Rect,
    b: Rect,
    c: Rect,
    trans_a: bool,
    trans_b: bool,
    sparse: Option<Metadata>,
    scales: Option<[Runs; 2]>,
    clear: Int,
    /// The barrier that completion arrives on, one arrival.
    barrier: Option<BarrierRef>,
}

/// Which elements of a sparse left factor are there.
#[derive(Clone, Debug)]
struct Metadata {
    e: Rect,
    trans_e: bool,
    kept: Sparsity,
    /// Bits of an integer.
    bits: u32,
}

/// The scales of a factor's elements along K.
#[derive(Clone, Debug)]
struct Runs {
    scales: Rect,
    /// How many neighbours have one.
    every: usize,
}

pub(super) fn compile(b: &mut Builder<'_, '_>, g: &GemmOp, span: Span) -> Compiled<Code> {
    let (a, bb, c) = (
        b.names.rect(&g.a, span)?,
        b.names.rect(&g.b, span)?,
        b.names.rect(&g.c, span)?,
    );
    b.names.reads(a.buffer);
    b.names.reads(bb.buffer);
    b.names.reads(c.buffer);
    b.names.writes(c.buffer);
    for rect in [&a, &bb, &c] {
        if rect.start.len() < 2 {
            return Err(b.invalid("a gemm operand of fewer than two dimensions"));
        }
    }
    let float = |rect: &Rect| b.names.buffers[rect.buffer as usize].is_float();
    if float(&a) != float(&bb) || float(&a) != float(&c) {
        return Err(b.invalid("a gemm of floats and integers"));
    }
    let sparse = match &g.sparse {
        Some(sparse) => Some(metadata(b, g, sparse, span)?),
        None => None,
    };
    let scales = match &g.scales {
        Some(Scales { a, b: of_b, every }) => {
            Some([runs(b, a, every[0], span)?, runs(b, of_b, every[1], span)?])
        }
        None => None,
    };
    let barrier = match &g.barrier {
        Some((buffer, index)) => Some(barrier_ref(b, *buffer, index)?),
        None => None,
    };
    Ok(Code {
        a,
        b: bb,
        c,
        trans_a: g.trans_a,
        trans_b: g.trans_b,
        sparse,
        scales,
        clear: expr::int(b.names, &g.clear, 0)?,
        barrier,
    })
}

fn runs(b: &mut Builder<'_, '_>, scales: &Region, every: u32, span: Span) -> Compiled<Runs> {
    let scales = b.names.rect(scales, span)?;
    b.names.reads(scales.buffer);
    let float = b.names.buffers[scales.buffer as usize].is_float();
    if every == 0 || !float || scales.start.len() < 2 {
        return Err(b.invalid("scales that no product takes"));
    }
    Ok(Runs {
        scales,
        every: every as usize,
    })
}

fn metadata(b: &mut Builder<'_, '_>, g: &GemmOp, s: &Sparse, span: Span) -> Compiled<Metadata> {
    let e = b.names.rect(&s.e, span)?;
    b.names.reads(e.buffer);
    let scalar = |buffer: Buffer| b.names.func.buffers[buffer].dtype.scalar;
    let (a, integer) = (scalar(g.a.buffer), scalar(s.e.buffer));
    let kept = Sparsity::of(a).filter(|kept| kept.per_integer(integer).is_some());
    let Some(kept) = kept.filter(|_| e.start.len() >= 2) else {
        return Err(b.invalid("metadata that no sparse product takes"));
    };
    Ok(Metadata {
        e,
        trans_e: s.trans_e,
        kept,
        bits: integer.bits(),
    })
}

impl Exec<'_, '_> {
    pub(super) fn gemm(&mut self, g: &Code) -> Eval<()> {
        let (a, b, c) = (self.area(&g.a)?, self.area(&g.b)?, self.area(&g.c)?);
        let clear = self.int(&g.clear)? != 0;
        let shape = self.gemm_shape(g, &a, &b, &c)?;
        let scalar = |area: &Area| self.program.buffers[area.buffer as usize].scalar;
        let (sa, sb, sc) = (scalar(&a), scalar(&b), scalar(&c));
        let narrow = |s| !matches!(s, Scalar::F32 | Scalar::F64);
        if !sc.is_float() {
            self.product::<i64>(g, &a, &b, &c, shape, clear, |v| value::wrap(sc, v))?;
        } else if narrow(sa) && narrow(sb) && sc != Scalar::F64 {
            self.product::<f32>(g, &a, &b, &c, shape, clear, |v| v)?;
        } else {
            self.product::<f64>(g, &a, &b, &c, shape, clear, |v| v)?;
        }
        if let Some(barrier) = &g.barrier {
            self.arrive_at(barrier, None, 1)?;
        }
        Ok(())
    }

    /// M, N and K, checked against all three operands.
    fn gemm_shape(
        &mut self,
        g: &Code,
        a: &Area,
        b: &Area,
        c: &Area,
    ) -> Eval<(usize, usize, usize)> {
        let matrix = |area: &Area, transposed: bool| {
            let rank = area.extent.len();
            let unit = area.extent[..rank - 2].iter().all(|&e| e == 1);
            let (rows, columns) = (area.extent[rank - 2], area.extent[rank - 1]);
            unit.then_some(if transposed {
                (columns, rows)
            } else {
                (rows, columns)
            })
        };
        let stored = if g.sparse.is_some() { 2 } else { 1 };
        match (matrix(a, g.trans_a), matrix(b, g.trans_b), matrix(c, false)) {
            (Some((m, k2)), Some((k, n)), Some((m2, n2)))
                if k == stored * k2 && m == m2 && n == n2 =>
            {
                Ok((m, n, k))
            }
            _ => {
                let message = format!(
                    "matrices that do not fit: A {:?}{}, B {:?}{}, C {:?}",
                    a.extent,
                    if g.trans_a { " transposed" } else { "" },
                    b.extent,
                    if g.trans_b { " transposed" } else { "" },
                    c.extent
                );
                Err(self.fail(Fault::new(codes::EXTENTS, message)))
            }
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the operands of one operation, passed once"
    )]
    fn product<T: Term>(
        &mut self,
        g: &Code,
        a: &Area,
        b: &Area,
        c: &Area,
        (m, n, k): (usize, usize, usize),
        clear: bool,
        finish: impl Fn(T) -> T,
    ) -> Eval<()> {
        let mut left = self.gather::<T>(a, Outside::Trap)?;
        let mut right = self.gather::<T>(b, Outside::Trap)?;
        for (area, values) in [(a, &mut left), (b, &mut right)] {
            if self.program.buffers[area.buffer as usize].scalar == Scalar::TF32 {
                values.iter_mut().for_each(|v| *v = v.to_tf32());
            }
        }
        if g.trans_a {
            left = transposed(&left, left.len() / m.max(1), m);
        }
        if let Some(metadata) = &g.sparse {
            left = self.spread(metadata, &left, [m, k])?;
        }
        if g.trans_b {
            right = transposed(&right, n, k);
        }
        if let Some([of_a, of_b]) = &g.scales {
            let scales = self.scales::<T>(of_a, [m, k])?;
            for (at, value) in left.iter_mut().enumerate() {
                *value = value.mul(scales[at]);
            }
            let scales = self.scales::<T>(of_b, [n, k])?;
            for (at, value) in right.iter_mut().enumerate() {
                *value = value.mul(scales[at % n * k + at / n]);
            }
        }
        let mut sum = if clear {
            vec![T::ZERO; m * n]
        } else {
            self.gather::<T>(c, Outside::Trap)?
        };
        if n > 0 && k > 0 {
            for (row, left) in sum.chunks_exact_mut(n).zip(left.chunks_exact(k)) {
                multiply_row(row, left, &right);
            }
        }
        sum.iter_mut().for_each(|v| *v = finish(*v));
        self.scatter(c, &sum, Outside::Trap)
    }
}

impl Exec<'_, '_> {
    /// The scale of every element of some rows of k elements.
    fn scales<T: Term>(&mut self, of: &Runs, [rows, k]: [usize; 2]) -> Eval<Vec<T>> {
        let area = self.area(&of.scales)?;
        let scales = self.gather::<T>(&area, Outside::Trap)?;
        let count = k.div_ceil(of.every);
        if scales.len() != rows * count {
            let message = format!("scales {:?} of {rows} rows of {k}", area.extent);
            return Err(self.fail(Fault::new(codes::EXTENTS, message)));
        }
        let of_element = |at: usize| scales[at / k * count + at % k / of.every];
        Ok((0..rows * k).map(of_element).collect())
    }

    /// A left factor with all of its elements, by rows, from those that are kept.
    fn spread<T: Term>(&mut self, by: &Metadata, kept: &[T], [m, k]: [usize; 2]) -> Eval<Vec<T>> {
        let area = self.area(&by.e)?;
        let mut integers = self.gather::<i64>(&area, Outside::Trap)?;
        let (count, group) = (by.kept.kept as usize, by.kept.group as usize);
        let in_one = (by.bits / Sparsity::BITS) as usize;
        if integers.len() * in_one * group != m * k {
            let message = format!("metadata {:?} of a factor of {m} by {k}", area.extent);
            return Err(self.fail(Fault::new(codes::EXTENTS, message)));
        }
        if by.trans_e {
            integers = transposed(&integers, integers.len() / m.max(1), m);
        }
        let mut all = vec![T::ZERO; m * k];
        for (at, group) in all.chunks_exact_mut(group).enumerate() {
            let told = integers[at / in_one] >> (at % in_one * Sparsity::BITS as usize);
            let told = told as u32 & ((1 << Sparsity::BITS) - 1);
            let stored = &kept[at * count..(at + 1) * count];
            if !by.kept.is_valid(told) && stored.iter().any(|value| *value != T::ZERO) {
                let message = by.kept.refused(told);
                return Err(self.fail(Fault::new(codes::METADATA, message)));
            }
            for (element, value) in stored.iter().enumerate() {
                group[by.kept.place_in(element as u32, told) as usize] = *value;
            }
        }
        Ok(all)
    }
}

/// `row += left · right`, four rows of `right` at a time, in ascending order of `k`.
pub(crate) fn multiply_row<T: Term>(row: &mut [T], left: &[T], right: &[T]) {
    let n = row.len();
    let mut factors = left.chunks_exact(4);
    let mut blocks = right.chunks_exact(4 * n);
    for (f, block) in factors.by_ref().zip(blocks.by_ref()) {
        let (b0, rest) = block.split_at(n);
        let (b1, rest) = rest.split_at(n);
        let (b2, b3) = rest.split_at(n);
        for ((((c, &b0), &b1), &b2), &b3) in row.iter_mut().zip(b0).zip(b1).zip(b2).zip(b3) {
            let s = c.add(f[0].mul(b0)).add(f[1].mul(b1));
            *c = s.add(f[2].mul(b2)).add(f[3].mul(b3));
        }
    }
    let left_over = right.len() / (4 * n) * (4 * n);
    for (&f, b) in factors
        .remainder()
        .iter()
        .zip(right[left_over..].chunks_exact(n))
    {
        for (c, &b) in row.iter_mut().zip(b) {
            *c = c.add(f.mul(b));
        }
    }
}

/// The columns of a row-major matrix as rows.
pub(super) fn transposed<T: Copy>(values: &[T], rows: usize, columns: usize) -> Vec<T> {
    let mut out = Vec::with_capacity(values.len());
    for column in 0..columns {
        out.extend((0..rows).map(|row| values[row * columns + column]));
    }
    out
}

/// What is multiplied and added.
pub(crate) trait Term: Element + PartialEq {
    const ZERO: Self;
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn to_tf32(self) -> Self;
}

impl Term for f32 {
    const ZERO: f32 = 0.0;
    #[inline]
    fn add(self, other: f32) -> f32 {
        self + other
    }
    #[inline]
    fn mul(self, other: f32) -> f32 {
        self * other
    }
    fn to_tf32(self) -> f32 {
        value::round(Scalar::TF32, self as f64) as f32
    }
}

impl Term for f64 {
    const ZERO: f64 = 0.0;
    #[inline]
    fn add(self, other: f64) -> f64 {
        self + other
    }
    #[inline]
    fn mul(self, other: f64) -> f64 {
        self * other
    }
    fn to_tf32(self) -> f64 {
        value::round(Scalar::TF32, self)
    }
}

impl Term for i64 {
    const ZERO: i64 = 0;
    #[inline]
    fn add(self, other: i64) -> i64 {
        self.wrapping_add(other)
    }
    #[inline]
    fn mul(self, other: i64) -> i64 {
        self.wrapping_mul(other)
    }
    fn to_tf32(self) -> i64 {
        self
    }
}
