//! Tile operations other than gemm: copies, fills, reductions, scans, atomics, reducers.

use tilewright_ir::{AtomicOp, BinOp, ReduceKind, Scalar, ScanKind, small_float};

use crate::error::{Eval, Fault, codes};
use crate::exec::Exec;
use crate::exec::access::{decode, encode, tuple};
use crate::exec::areas::{Area, Outside};
use crate::exec::gemm::transposed;
use crate::program::{AtomicValue, Im2colCode, Rect, Space, TileKind};
use crate::value;

impl Exec<'_, '_> {
    pub(super) fn tile(&mut self, kind: &TileKind) -> Eval<()> {
        match kind {
            TileKind::Copy { src, dst } => {
                let (src, dst) = (self.area(src)?, self.area(dst)?);
                self.pair(&src, &dst)?;
                self.copy(&src, &dst, Outside::Safe)
            }
            TileKind::Fill { dst, value } => {
                let dst = self.area(dst)?;
                let slot = self.num(value)?;
                self.fill(&dst, slot)
            }
            TileKind::Gemm(g) => self.gemm(g),
            TileKind::Reduce {
                kind,
                src,
                dst,
                dim,
                clear,
                nan_propagate,
            } => {
                let (src, dst) = (self.area(src)?, self.area(dst)?);
                self.reduce(*kind, &src, &dst, *dim, *clear, *nan_propagate)
            }
            TileKind::Scan {
                kind,
                src,
                dst,
                dim,
                reverse,
            } => {
                let (src, dst) = (self.area(src)?, self.area(dst)?);
                self.pair(&src, &dst)?;
                self.scan(*kind, &src, &dst, *dim, *reverse)
            }
            TileKind::Atomic { op, dst, value } => self.atomic_tile(*op, dst, value),
            TileKind::Transpose { src, dst } => {
                let (src, dst) = (self.area(src)?, self.area(dst)?);
                self.transpose(&src, &dst)
            }
            TileKind::Im2col(i) => self.im2col(i),
            TileKind::ReducerInit {
                reducer,
                kind,
                init,
            } => {
                let scalar = self.program.buffers[*reducer as usize].scalar;
                let slot = match init {
                    Some(e) => self.num(e)?,
                    None => identity(*kind, scalar),
                };
                if self.is_open(*reducer) {
                    return Err(self.reducer_fault(*reducer, "initialised twice"));
                }
                let whole = self.whole(*reducer);
                self.fill(&whole, slot)
            }
            TileKind::ReducerUpdate {
                kind,
                target,
                value,
            } => {
                let slot = self.num(value)?;
                if !self.is_open(target.buffer) {
                    return Err(self.reducer_fault(target.buffer, "updated before its init"));
                }
                let program = self.program;
                let info = &program.buffers[target.buffer as usize];
                let old = self.load_element(target)?;
                let new = fold(*kind, info.scalar, old, slot, false);
                if let Some(index) = self.element(info, target)? {
                    let raw = encode(info.scalar, new);
                    self.write(info.space, info.bits(), index, raw);
                }
                Ok(())
            }
            TileKind::ReducerFinalize { reducer, dst } => {
                if !self.is_open(*reducer) {
                    return Err(self.reducer_fault(*reducer, "finalised before its init"));
                }
                self.set_open(*reducer, false);
                let Some(dst) = dst else {
                    return Ok(());
                };
                let (src, dst) = (self.whole(*reducer), self.area(dst)?);
                self.pair(&src, &dst)?;
                self.copy(&src, &dst, Outside::Trap)
            }
        }
    }

    /// The non-unit extents of both sides must be equal in order.
    fn pair(&mut self, src: &Area, dst: &Area) -> Eval<()> {
        if src.non_unit() == dst.non_unit() {
            return Ok(());
        }
        let shape = |a: &Area| tuple(&a.extent.iter().map(|&e| e as i64).collect::<Vec<_>>());
        let name = |a: &Area| &self.program.buffers[a.buffer as usize].name;
        let message = format!(
            "regions of unequal extents: {} of `{}` and {} of `{}`",
            shape(src),
            name(src),
            shape(dst),
            name(dst)
        );
        Err(self.fail(
            Fault::new(codes::EXTENTS, message)
                .help("extents other than one must be equal, in order"),
        ))
    }

    fn copy(&mut self, src: &Area, dst: &Area, outside: Outside) -> Eval<()> {
        let scalar = |a: &Area| self.program.buffers[a.buffer as usize].scalar;
        let (from, to) = (scalar(src), scalar(dst));
        match (from.is_float(), to.is_float()) {
            _ if from == to => {
                let values = self.gather::<u64>(src, outside)?;
                self.scatter(dst, &values, outside)
            }
            (true, true) => {
                let values = self.gather::<f64>(src, outside)?;
                self.scatter(dst, &values, outside)
            }
            (false, false) => {
                let values = self.gather::<i64>(src, outside)?;
                self.scatter(dst, &values, outside)
            }
            (true, false) => {
                let values = self.gather::<f64>(src, outside)?;
                let values: Vec<i64> = values
                    .into_iter()
                    .map(|v| value::float_to_int(to, v))
                    .collect();
                self.scatter(dst, &values, outside)
            }
            (false, true) => {
                let values = self.gather::<i64>(src, outside)?;
                let values: Vec<f64> = values
                    .into_iter()
                    .map(|v| value::int_to_float(to, from, v))
                    .collect();
                self.scatter(dst, &values, outside)
            }
        }
    }

    fn fill(&mut self, dst: &Area, slot: u64) -> Eval<()> {
        let scalar = self.program.buffers[dst.buffer as usize].scalar;
        self.set_open(dst.buffer, true);
        let raw = encode(scalar, slot);
        self.scatter(dst, &vec![raw; dst.len()], Outside::Trap)
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
    fn unequal_fold(&mut self, src: &Area, dst: &Area, dim: usize) -> crate::error::Stop {
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

    fn transpose(&mut self, src: &Area, dst: &Area) -> Eval<()> {
        let (from, to) = (src.non_unit(), dst.non_unit());
        // A row or column of one is its own transpose.
        let fits = match (from.as_slice(), to.as_slice()) {
            ([a, b], [c, d]) => a == d && b == c,
            (a, b) => a.len() < 2 && a == b,
        };
        if !fits {
            return Err(self.fail(Fault::new(
                codes::EXTENTS,
                "the destination of a transpose has not the transposed extents",
            )));
        }
        let scalar = |a: &Area| self.program.buffers[a.buffer as usize].scalar;
        let (sf, st) = (scalar(src), scalar(dst));
        let values = self.gather::<u64>(src, Outside::Trap)?;
        let values = match from.as_slice() {
            [rows, columns] => transposed(&values, *rows, *columns),
            _ => values,
        };
        let values: Vec<u64> = values
            .into_iter()
            .map(|raw| encode(st, cast_slot(sf, st, decode(sf, raw))))
            .collect();
        self.scatter(dst, &values, Outside::Trap)
    }

    /// One atomic operation for each element of the destination.
    fn atomic_tile(&mut self, op: AtomicOp, dst: &Rect, value: &AtomicValue) -> Eval<()> {
        let dst = self.area(dst)?;
        let program = self.program;
        let info = &program.buffers[dst.buffer as usize];
        let values = match value {
            AtomicValue::Value(e) => vec![self.num(e)?; dst.len()],
            AtomicValue::Rect(src) => {
                let src = self.area(src)?;
                self.pair(&src, &dst)?;
                let from = program.buffers[src.buffer as usize].scalar;
                let raw = self.gather::<u64>(&src, Outside::Trap)?;
                raw.into_iter()
                    .map(|raw| cast_slot(from, info.scalar, decode(from, raw)))
                    .collect()
            }
        };
        let elements = self.elements(&dst, Outside::Trap)?;
        for (position, (index, value)) in elements.into_iter().zip(values).enumerate() {
            if let Some(index) = index {
                self.atomic(op, info, index, value, false, |_| {
                    Ok(dst.coordinates(position))
                })?;
            }
        }
        Ok(())
    }

    fn im2col(&mut self, code: &Im2colCode) -> Eval<()> {
        let dst = self.area(&code.dst)?;
        let (m_step, k_step) = (self.int(&code.m_step)?, self.int(&code.k_step)?);
        let program = self.program;
        let (image, target) = (
            &program.buffers[code.image as usize],
            &program.buffers[dst.buffer as usize],
        );
        let [_, height, width, channels] = image.shape[..] else {
            return Ok(());
        };
        let rank = dst.extent.len();
        let (bm, bk) = (dst.extent[rank - 2] as i64, dst.extent[rank - 1] as i64);
        let size =
            |x: i64| (x + 2 * code.pad - (code.kernel - 1) * code.dilation - 1) / code.stride + 1;
        let (oh, ow) = (size(height), size(width));
        if oh < 1 || ow < 1 || channels < 1 || dst.len() as i64 != bm * bk {
            let message = "an image and a kernel that give no output";
            return Err(self.fail(Fault::new(codes::EXTENTS, message)));
        }
        let mut values = Vec::with_capacity(dst.len());
        for i in 0..bm {
            for j in 0..bk {
                let (m, k) = (m_step * bm + i, k_step * bk + j);
                let n = m.div_euclid(oh * ow);
                let h = m.rem_euclid(oh * ow) / ow * code.stride
                    + k / (code.kernel * channels) * code.dilation
                    - code.pad;
                let w = m.rem_euclid(ow) * code.stride
                    + (k / channels) % code.kernel * code.dilation
                    - code.pad;
                let inside = (0..height).contains(&h) && (0..width).contains(&w);
                let slot = if inside {
                    self.element_at(code.image, &[n, h, w, k % channels])?
                } else {
                    0
                };
                values.push(encode(
                    target.scalar,
                    cast_slot(image.scalar, target.scalar, slot),
                ));
            }
        }
        self.scatter(&dst, &values, Outside::Trap)
    }

    fn is_open(&self, reducer: u32) -> bool {
        match self.program.buffers[reducer as usize].space {
            Space::Block(n) => self.block.open[n as usize],
            Space::Global(_) | Space::Private(_) | Space::Barrier(_) => false,
        }
    }

    /// Notes whether a reducer takes contributions; other buffers do not care.
    fn set_open(&mut self, buffer: u32, open: bool) {
        if let Space::Block(n) = self.program.buffers[buffer as usize].space {
            self.block.open[n as usize] = open;
        }
    }

    #[cold]
    fn reducer_fault(&mut self, reducer: u32, what: &str) -> crate::error::Stop {
        let name = &self.program.buffers[reducer as usize].name;
        let message = format!("the reducer `{name}` is {what}");
        self.fail(Fault::new(codes::REDUCER, message))
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

/// A slot of one type converted to another.
pub(crate) fn cast_slot(from: Scalar, to: Scalar, slot: u64) -> u64 {
    match (from.is_float(), to.is_float()) {
        _ if from == to => slot,
        (true, true) => value::round(to, f64::from_bits(slot)).to_bits(),
        (true, false) => value::float_to_int(to, f64::from_bits(slot)) as u64,
        (false, true) => value::int_to_float(to, from, slot as i64).to_bits(),
        (false, false) => value::wrap(to, slot as i64) as u64,
    }
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
