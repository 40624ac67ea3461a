//! Whole rectangles of a buffer: gathered into a row-major list, and scattered back.
//!
//! Every tile operation is written as gather, compute, scatter. Rows that are contiguous in
//! memory are decoded in one go.

use tilewright_ir::{Scalar, Span, small_float};

use crate::error::{Eval, Fault, codes};
use crate::exec::Exec;
use crate::exec::access::{decode, encode};
use crate::memory::{read_bits, write_bits};
use crate::program::{BufferInfo, Rect, Space};
use crate::value;

/// A rectangle with its place known.
#[derive(Clone, Debug)]
pub(super) struct Area {
    pub buffer: u32,
    pub start: Vec<i64>,
    pub extent: Vec<usize>,
}

impl Area {
    pub fn len(&self) -> usize {
        self.extent.iter().product()
    }

    /// The extents that are not one.
    pub fn non_unit(&self) -> Vec<usize> {
        self.extent.iter().copied().filter(|&e| e != 1).collect()
    }

    /// The coordinates of a row-major position.
    pub fn coordinates(&self, position: usize) -> Vec<i64> {
        let mut rest = position;
        let mut at = self.start.clone();
        for (c, &extent) in at.iter_mut().zip(&self.extent).rev() {
            *c += (rest % extent.max(1)) as i64;
            rest /= extent.max(1);
        }
        at
    }
}

/// What elements outside of a buffer mean.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outside {
    /// They read as the safe value and swallow stores.
    Safe,
    /// They are an error, except on global memory.
    Trap,
}

/// A run of elements along the last dimension.
struct Row {
    /// Elements before the part that exists, and how many exist.
    before: usize,
    valid: usize,
    /// Where the first existing one is in storage.
    at: usize,
}

/// What a tile is made of while it is computed with.
pub(crate) trait Element: Copy {
    fn from_raw(scalar: Scalar, raw: u64) -> Self;
    fn to_raw(self, scalar: Scalar) -> u64;
    fn from_slot(scalar: Scalar, slot: u64) -> Self;
}

impl Element for f64 {
    #[inline]
    fn from_raw(scalar: Scalar, raw: u64) -> f64 {
        small_float::float_from_bits(scalar, raw)
    }
    #[inline]
    fn to_raw(self, scalar: Scalar) -> u64 {
        small_float::float_to_bits(scalar, self)
    }
    fn from_slot(_: Scalar, slot: u64) -> f64 {
        f64::from_bits(slot)
    }
}

impl Element for f32 {
    #[inline]
    fn from_raw(scalar: Scalar, raw: u64) -> f32 {
        small_float::float_from_bits(scalar, raw) as f32
    }
    #[inline]
    fn to_raw(self, scalar: Scalar) -> u64 {
        small_float::float_to_bits(scalar, self as f64)
    }
    fn from_slot(_: Scalar, slot: u64) -> f32 {
        f64::from_bits(slot) as f32
    }
}

impl Element for i64 {
    #[inline]
    fn from_raw(scalar: Scalar, raw: u64) -> i64 {
        value::int_from_bits(scalar, raw)
    }
    #[inline]
    fn to_raw(self, scalar: Scalar) -> u64 {
        value::int_to_bits(scalar, self)
    }
    fn from_slot(_: Scalar, slot: u64) -> i64 {
        slot as i64
    }
}

/// Raw bits, for copies that change nothing.
impl Element for u64 {
    #[inline]
    fn from_raw(_: Scalar, raw: u64) -> u64 {
        raw
    }
    #[inline]
    fn to_raw(self, _: Scalar) -> u64 {
        self
    }
    fn from_slot(scalar: Scalar, slot: u64) -> u64 {
        encode(scalar, slot)
    }
}

/// The largest tile that is taken for one, in elements.
const MAX_TILE: usize = 1 << 32;

impl Exec<'_, '_> {
    /// The rectangle with its start and extents evaluated.
    pub(super) fn area(&mut self, rect: &Rect) -> Eval<Area> {
        let mut area = Area {
            buffer: rect.buffer,
            start: Vec::with_capacity(rect.start.len()),
            extent: Vec::with_capacity(rect.extent.len()),
        };
        let mut size = 1usize;
        for (start, extent) in rect.start.iter().zip(&rect.extent) {
            area.start.push(self.int(start)?);
            let extent = self.int(extent)?.max(0) as usize;
            area.extent.push(extent);
            size = size.saturating_mul(extent);
        }
        if size > MAX_TILE {
            let name = &self.program.buffers[rect.buffer as usize].name;
            let message = format!("a region of `{name}` has {size} elements");
            return Err(self.fail(Fault::new(codes::TENSOR_SIZE, message)));
        }
        Ok(area)
    }

    /// The whole buffer.
    pub(super) fn whole(&self, buffer: u32) -> Area {
        let shape = &self.program.buffers[buffer as usize].shape;
        Area {
            buffer,
            start: vec![0; shape.len()],
            extent: shape.iter().map(|&e| e as usize).collect(),
        }
    }

    /// The elements in row-major order.
    pub(super) fn gather<T: Element>(&mut self, area: &Area, outside: Outside) -> Eval<Vec<T>> {
        let program = self.program;
        let info = &program.buffers[area.buffer as usize];
        let inner = area.extent.last().copied().unwrap_or(1);
        let stride = info.strides.last().copied().unwrap_or(1) as usize;
        let safe = T::from_slot(info.scalar, info.safe);
        let rows = self.rows(info, area, outside)?;
        let mut out = Vec::with_capacity(area.len());
        for (number, row) in rows.iter().enumerate() {
            out.extend(std::iter::repeat_n(safe, row.before));
            let storage = self.storage(info.space);
            let written = if stride == 1 {
                storage.is_written(info.bits(), row.at, row.valid)
            } else {
                (0..row.valid).all(|i| storage.is_written(info.bits(), row.at + i * stride, 1))
            };
            if !written && self.checks.uninitialised {
                return Err(self.unwritten_row(info, area, number * inner + row.before, row));
            }
            if let Space::Global(n) = info.space {
                let (site, bits) = (self.site as u32, info.bits());
                match stride {
                    1 => self.globals.note_read(n, site, bits, row.at, row.valid),
                    _ => (0..row.valid).for_each(|i| {
                        self.globals
                            .note_read(n, site, bits, row.at + i * stride, 1);
                    }),
                }
            }
            let bytes = &self.storage(info.space).bytes;
            read_row(info.scalar, bytes, row.at, row.valid, stride, &mut out);
            out.extend(std::iter::repeat_n(safe, inner - row.before - row.valid));
        }
        Ok(out)
    }

    /// Names the first element of a row that nothing wrote.
    #[cold]
    fn unwritten_row(
        &mut self,
        info: &BufferInfo,
        area: &Area,
        position: usize,
        row: &Row,
    ) -> crate::error::Stop {
        let stride = info.strides.last().copied().unwrap_or(1) as usize;
        let storage = self.storage(info.space);
        let first = (0..row.valid)
            .find(|i| !storage.is_written(info.bits(), row.at + i * stride, 1))
            .unwrap_or(0);
        let at = area.coordinates(position + first);
        self.unwritten_at(info, &at, Span::NONE)
    }

    /// Stores the elements, given in row-major order.
    pub(super) fn scatter<T: Element>(
        &mut self,
        area: &Area,
        values: &[T],
        outside: Outside,
    ) -> Eval<()> {
        let program = self.program;
        let info = &program.buffers[area.buffer as usize];
        let inner = area.extent.last().copied().unwrap_or(1);
        let stride = info.strides.last().copied().unwrap_or(1) as usize;
        let rows = self.rows(info, area, outside)?;
        let width = info.bits() as usize / 8;
        let mut bytes = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            let first = number * inner + row.before;
            let part = &values[first..first + row.valid];
            if stride != 1 || info.bits() < 8 {
                for (i, v) in part.iter().enumerate() {
                    let raw = v.to_raw(info.scalar);
                    self.write(info.space, info.bits(), row.at + i * stride, raw);
                }
                continue;
            }
            bytes.clear();
            bytes.resize(part.len() * width, 0);
            encode_row(info.scalar, part, &mut bytes);
            self.write_bytes(info.space, row.at * width, &bytes);
        }
        Ok(())
    }

    fn write_bytes(&mut self, space: Space, start: usize, bytes: &[u8]) {
        match space {
            Space::Global(n) => {
                let site = self.site as u32;
                self.globals.store_bytes(n, site, start, bytes);
            }
            Space::Block(n) => self.block.storages[n as usize].write_bytes(start, bytes),
            Space::Private(n) | Space::Barrier(n) => {
                self.strand.privates[n as usize].write_bytes(start, bytes);
            }
        }
    }

    /// The rows of an area, clipped to the buffer.
    fn rows(&mut self, info: &BufferInfo, area: &Area, outside: Outside) -> Eval<Vec<Row>> {
        let global = matches!(info.space, Space::Global(_));
        let inside = area
            .start
            .iter()
            .zip(&area.extent)
            .zip(&info.shape)
            .all(|((&s, &e), &n)| s >= 0 && s + e as i64 <= n);
        // Where elements may lie outside, they do so along the region, never beside it.
        let beside = || {
            let dims = area.start.iter().zip(&area.extent).zip(&info.shape);
            let mut units = dims.filter(|((_, e), _)| **e == 1);
            units.any(|((s, _), n)| !(0..*n).contains(s))
        };
        let traps = outside == Outside::Trap || beside();
        if !inside && !global && traps && area.len() > 0 {
            let at = self.first_outside(info, area);
            return Err(self.out_of_bounds(info, &at, Span::NONE));
        }
        let base = self.base(info);
        let Some((&inner, outer)) = area.extent.split_last() else {
            return Ok(vec![Row {
                before: 0,
                valid: 1,
                at: base,
            }]);
        };
        let last = outer.len();
        let (start, shape) = (area.start[last], info.shape[last]);
        let before = (-start).clamp(0, inner as i64);
        let end = (shape - start).clamp(before, inner as i64);
        let count: usize = outer.iter().product();
        let mut rows = Vec::with_capacity(count);
        let mut index = vec![0usize; last];
        for _ in 0..count {
            let mut exists = true;
            let mut at = (start + before) * info.strides[last];
            for (d, &within) in index.iter().enumerate() {
                let i = area.start[d] + within as i64;
                exists &= (0..info.shape[d]).contains(&i);
                at += i * info.strides[d];
            }
            rows.push(if exists && end > before {
                Row {
                    before: before as usize,
                    valid: (end - before) as usize,
                    at: at as usize + base,
                }
            } else {
                Row {
                    before: inner,
                    valid: 0,
                    at: 0,
                }
            });
            for d in (0..last).rev() {
                index[d] += 1;
                if index[d] < area.extent[d] {
                    break;
                }
                index[d] = 0;
            }
        }
        Ok(rows)
    }

    fn first_outside(&self, info: &BufferInfo, area: &Area) -> Vec<i64> {
        let corner = |d: usize| {
            let (s, e, n) = (area.start[d], area.extent[d] as i64, info.shape[d]);
            if s < 0 || s >= n { s } else { n.min(s + e - 1) }
        };
        (0..area.start.len()).map(corner).collect()
    }

    /// Where each element of an area is in storage; `None` outside of the buffer.
    pub(super) fn elements(&mut self, area: &Area, outside: Outside) -> Eval<Vec<Option<usize>>> {
        let program = self.program;
        let info = &program.buffers[area.buffer as usize];
        let inner = area.extent.last().copied().unwrap_or(1);
        let stride = info.strides.last().copied().unwrap_or(1) as usize;
        let rows = self.rows(info, area, outside)?;
        let mut out = Vec::with_capacity(area.len());
        for row in rows {
            out.extend(std::iter::repeat_n(None, row.before));
            out.extend((0..row.valid).map(|i| Some(row.at + i * stride)));
            out.extend(std::iter::repeat_n(None, inner - row.before - row.valid));
        }
        Ok(out)
    }

    /// The element at global or shared coordinates, as a slot; the safe value outside.
    pub(super) fn element_at(&mut self, buffer: u32, at: &[i64]) -> Eval<u64> {
        let program = self.program;
        let info = &program.buffers[buffer as usize];
        let mut offset = 0;
        for (d, &i) in at.iter().enumerate() {
            if !(0..info.shape[d]).contains(&i) {
                if matches!(info.space, Space::Global(_)) {
                    return Ok(info.safe);
                }
                return Err(self.out_of_bounds(info, at, Span::NONE));
            }
            offset += i * info.strides[d];
        }
        let index = offset as usize + self.base(info);
        self.note_read(info, index);
        match self.storage(info.space).load(info.bits(), index) {
            Some(raw) => Ok(decode(info.scalar, raw)),
            None if self.checks.uninitialised => Err(self.unwritten_at(info, at, Span::NONE)),
            None => {
                let bytes = &self.storage(info.space).bytes;
                Ok(decode(info.scalar, read_bits(bytes, info.bits(), index)))
            }
        }
    }
}

/// Decodes a run of elements.
fn read_row<T: Element>(
    scalar: Scalar,
    bytes: &[u8],
    at: usize,
    count: usize,
    stride: usize,
    out: &mut Vec<T>,
) {
    // The type is settled outside of the loops, so that each is a loop over one format.
    macro_rules! run {
        ($($scalar:ident $width:literal),*) => {
            match scalar {
                $(Scalar::$scalar if stride == 1 => {
                    let part = &bytes[at * $width..(at + count) * $width];
                    out.extend(part.chunks_exact($width).map(|c| {
                        let mut word = [0; 8];
                        word[..$width].copy_from_slice(c);
                        T::from_raw(Scalar::$scalar, u64::from_le_bytes(word))
                    }));
                })*
                _ => out.extend((0..count).map(|i| {
                    T::from_raw(scalar, read_bits(bytes, scalar.bits(), at + i * stride))
                })),
            }
        };
    }
    run!(F32 4, F16 2, BF16 2, F64 8, I32 4, I8 1, U8 1, I64 8, F8E4M3FN 1);
}

/// Encodes a run of elements, packed.
fn encode_row<T: Element>(scalar: Scalar, values: &[T], bytes: &mut [u8]) {
    macro_rules! run {
        ($($scalar:ident $width:literal),*) => {
            match scalar {
                $(Scalar::$scalar => {
                    for (c, v) in bytes.chunks_exact_mut($width).zip(values) {
                        c.copy_from_slice(&v.to_raw(Scalar::$scalar).to_le_bytes()[..$width]);
                    }
                })*
                _ => {
                    for (i, v) in values.iter().enumerate() {
                        write_bits(bytes, scalar.bits(), i, v.to_raw(scalar));
                    }
                }
            }
        };
    }
    run!(F32 4, F16 2, BF16 2, F64 8, I32 4, I8 1, U8 1, I64 8);
}
