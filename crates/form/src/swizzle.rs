//! Placements of tiles in shared memory that spread rows over the banks.
//!
//! Three families. [`Swizzle`] permutes byte offsets, as the copy engine and the tensor cores
//! of NVIDIA define it and as HipKittens writes its subtiles. [`RowXor`] keeps rows where they
//! are and permutes chunks inside each row by bits of the row's number, which also works for
//! rows of any length. Padding is [`Layout::padded`].

use crate::error::LayoutError;
use crate::form::Form;
use crate::layout::Layout;
use crate::radix::row_major_strides;

/// XORs the bits `from .. from + bits` of a byte offset onto the bits `to .. to + bits`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct XorStep {
    pub from: u32,
    pub to: u32,
    pub bits: u32,
}

/// A permutation of byte offsets by XOR; all steps read the offset as it was.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Swizzle {
    pub steps: &'static [XorStep],
    /// The bytes of one row of the tile it is made for.
    pub span: i64,
}

const fn step(from: u32, to: u32, bits: u32) -> XorStep {
    XorStep { from, to, bits }
}

const fn swizzle(steps: &'static [XorStep], span: i64) -> Swizzle {
    Swizzle { steps, span }
}

impl Swizzle {
    /// NVIDIA's 128-byte swizzle: bits 7-9 onto bits 4-6. Source: PTX ISA, "Shared memory
    /// matrix layout"; the same in `cuTensorMapEncodeTiled`.
    pub const B128: Swizzle = swizzle(&[step(7, 4, 3)], 128);
    /// NVIDIA's 64-byte swizzle: bits 7-8 onto bits 4-5.
    pub const B64: Swizzle = swizzle(&[step(7, 4, 2)], 64);
    /// NVIDIA's 32-byte swizzle: bit 7 onto bit 4.
    pub const B32: Swizzle = swizzle(&[step(7, 4, 1)], 32);
    /// No permutation.
    pub const NONE: Swizzle = swizzle(&[], 16);

    /// The offset after the permutation.
    pub fn apply(&self, offset: i64) -> i64 {
        self.steps.iter().fold(offset, |o, s| {
            o ^ ((offset >> s.from) & ((1 << s.bits) - 1)) << s.to
        })
    }

    /// The permutation of `size` elements of `bits` bits.
    pub fn permutation(&self, size: i64, bits: i64) -> Result<Layout, LayoutError> {
        let element = element_log2(bits)?;
        let linear = Form::strided(&[size], &[1]);
        let mut form = linear.clone();
        for s in self.steps {
            // Bit b of the byte offset is bit b - log2(bytes) of the element offset.
            let (from, to) = (s.from as i32 - element, s.to as i32 - element);
            if to < 0 {
                return Err(LayoutError::NotAMap {
                    what: format!("a swizzle that splits elements of {bits} bits"),
                });
            }
            let split = split_offset(size, from, s.bits);
            let moved = split.and_then(|f| f.then(&Form::strided(&[1 << s.bits], &[1 << to])));
            // Offsets shorter than the source bits never have them set.
            if size > 1 << from {
                let xored = moved.and_then(|m| Form::xor(&form, &m));
                form = xored.ok_or(LayoutError::TooLarge { elements: size })?;
            }
        }
        Layout::new(&[size], &[size], form)
    }

    /// The bytes after which the permutation repeats: what it is applied to is aligned to it.
    pub fn period(&self) -> i64 {
        let top = self.steps.iter().map(|s| s.from + s.bits).max();
        1 << top.unwrap_or(0)
    }

    /// A tile of rows of `cols` elements: panels of [`span`](Swizzle::span) bytes side by side,
    /// each stored row by row and permuted. This is how the copy engine writes boxes no wider
    /// than the span, and what wgmma reads. Panels start at multiples of the
    /// [`period`](Swizzle::period), as both demand: with a number of rows that is no multiple of
    /// eight there are gaps between them. Leading dimensions stack whole tiles.
    pub fn panels(&self, shape: &[i64], bits: i64) -> Result<Layout, LayoutError> {
        let (rows, cols) = rows_and_cols(shape)?;
        let width = self.span * 8 / bits;
        if self.span * 8 % bits != 0 || width == 0 || cols % width != 0 {
            return Err(LayoutError::NotAMap {
                what: format!(
                    "a row of {cols} elements of {bits} bits in panels of {} bytes",
                    self.span
                ),
            });
        }
        let batch = &shape[..shape.len() - 2];
        // (batch…, row, panel, column) -> batch, panel, row, column
        let split = [batch, &[rows, cols / width, width]].concat();
        let mut strides = row_major_strides(&split);
        let rank = strides.len();
        let height = (self.period().max(self.span) / self.span) as u64;
        let panel = (rows as u64).next_multiple_of(height) as i64 * width;
        strides[rank - 3] = width;
        strides[rank - 2] = panel;
        let mut stride = panel * (cols / width);
        for (dim, extent) in batch.iter().enumerate().rev() {
            strides[dim] = stride;
            stride *= extent;
        }
        let placed = Layout::strided(&split, &strides)?.reshape(shape)?;
        placed.then(&self.permutation(placed.span(), bits)?)
    }

    /// NVIDIA's widest swizzle whose span divides a row.
    pub fn widest(cols: i64, bits: i64) -> Option<Swizzle> {
        let all = [Swizzle::B128, Swizzle::B64, Swizzle::B32];
        all.into_iter().find(|s| (cols * bits) % (s.span * 8) == 0)
    }
}

/// A subtile of HipKittens: its rows and columns, the width of the elements it is made for, and
/// the permutation inside. Source: HipKittens, `include/types/shared/st_shape.cuh`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Subtile {
    pub name: &'static str,
    pub rows: i64,
    pub cols: i64,
    pub bits: i64,
    pub swizzle: Swizzle,
}

impl Subtile {
    pub const ST_16X16: Subtile = subtile("st_16x16", 16, 16, 16, &[]);
    pub const ST_16X16_SWIZZLED: Subtile =
        subtile("st_16x16_swizzled", 16, 16, 16, &[step(7, 3, 2)]);
    pub const ST_16X32: Subtile = subtile("st_16x32", 16, 32, 16, &[step(9, 5, 1)]);
    pub const ST_32X16: Subtile = subtile("st_32x16", 32, 16, 16, &[step(9, 4, 1)]);
    pub const ST_32X32: Subtile = subtile("st_32x32", 32, 32, 16, &[step(9, 5, 1), step(10, 4, 1)]);
    pub const ST_8X32: Subtile = subtile("st_8x32", 8, 32, 16, &[]);
    pub const ST_16X128: Subtile = subtile("st_16x128", 16, 128, 8, &[step(8, 4, 3)]);

    pub const ALL: [Subtile; 7] = [
        Subtile::ST_16X16,
        Subtile::ST_16X16_SWIZZLED,
        Subtile::ST_16X32,
        Subtile::ST_32X16,
        Subtile::ST_32X32,
        Subtile::ST_8X32,
        Subtile::ST_16X128,
    ];

    /// A tile of subtiles, stored one after the other in row-major order.
    pub fn tile(&self, rows: i64, cols: i64) -> Result<Layout, LayoutError> {
        if rows % self.rows != 0 || cols % self.cols != 0 {
            return Err(LayoutError::Shape {
                expected: vec![self.rows, self.cols],
                found: vec![rows, cols],
            });
        }
        let inner = Layout::linear(&[self.rows, self.cols])?;
        let inner = inner.then(&self.swizzle.permutation(inner.span(), self.bits)?)?;
        let outer = Layout::linear(&[rows / self.rows, cols / self.cols])?;
        Layout::product(&outer, &inner)
    }
}

const fn subtile(
    name: &'static str,
    rows: i64,
    cols: i64,
    bits: i64,
    steps: &'static [XorStep],
) -> Subtile {
    Subtile {
        name,
        rows,
        cols,
        bits,
        swizzle: swizzle(steps, cols * bits / 8),
    }
}

/// Row-major rows whose chunks are permuted: bit `chunk_bit` of the chunk's number is XORed with
/// bit `row_bit` of the row's, for every pair `(row_bit, chunk_bit)`. Rows are the second to last dimension.
pub fn row_xor(shape: &[i64], chunk: i64, pairs: &[(u32, u32)]) -> Result<Layout, LayoutError> {
    let (rows, cols) = rows_and_cols(shape)?;
    let linear = Layout::linear(shape)?;
    let (row, col) = (shape.len() - 2, shape.len() - 1);
    let refuse = || LayoutError::NotAMap {
        what: format!("a row of {cols} elements in permuted chunks of {chunk}"),
    };
    let Some(mut form) = linear.form() else {
        return Err(refuse());
    };
    let at = |row_bit: u32, chunk_bit: u32| (1i64 << row_bit, chunk << chunk_bit);
    let pairs = pairs.iter().map(|&(r, c)| at(r, c));
    let pairs: Vec<(i64, i64)> = pairs.filter(|(row_at, _)| rows > *row_at).collect();
    for &(row_at, col_at) in &pairs {
        if cols % (2 * col_at) != 0 {
            return Err(refuse());
        }
        for (dim, at) in [
            (row, row_at),
            (row, 2 * row_at),
            (col, col_at),
            (col, 2 * col_at),
        ] {
            form.cut(dim, at).ok_or_else(refuse)?;
        }
    }
    let bit = |form: &Form, dim, at| form.radix.position(dim, at).ok_or_else(refuse);
    let mut chunk_bits: Vec<i64> = pairs.iter().map(|&(_, col_at)| col_at).collect();
    chunk_bits.sort_unstable();
    chunk_bits.dedup();
    for col_at in chunk_bits {
        // The chunk bit stands in a row of its own so far: put the parity with all of its row
        // bits in its place.
        let c = bit(&form, col, col_at)?;
        let mut parity = 1 << c;
        for &(row_at, _) in pairs.iter().filter(|(_, at)| *at == col_at) {
            parity ^= 1 << bit(&form, row, row_at)?;
        }
        let weight = form.outs[0].weight(1 << c);
        form.outs[0].add(1 << c, -weight);
        form.outs[0].add(parity, weight);
    }
    form.coalesce();
    Layout::new(shape, linear.codomain(), form)
}

/// A permutation of the chunks of each row.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RowXor {
    /// Bytes of a chunk.
    pub chunk: i64,
    /// Row bit and the chunk bit it is XORed onto.
    pub pairs: Vec<(u32, u32)>,
}

impl RowXor {
    /// The rows of a tile of elements of `bits` bits, permuted.
    pub fn layout(&self, shape: &[i64], bits: i64) -> Result<Layout, LayoutError> {
        let whole = (1..1 << 20).contains(&self.chunk) && bits > 0 && self.chunk * 8 % bits == 0;
        let small = |&(row, chunk): &(u32, u32)| row < 40 && chunk < 20;
        if !whole || !self.pairs.iter().all(small) {
            return Err(LayoutError::NotAMap {
                what: format!("a permutation of chunks of {} bytes", self.chunk),
            });
        }
        row_xor(shape, self.chunk * 8 / bits, &self.pairs)
    }

    /// Which of NVIDIA's swizzles this is, for rows of so many bytes: one whose span is the row.
    pub fn of_bytes(&self, row_bytes: i64) -> Option<Swizzle> {
        let all = [Swizzle::B128, Swizzle::B64, Swizzle::B32];
        all.into_iter().find(|s| {
            let [step] = s.steps else { return false };
            let row = s.span.trailing_zeros();
            let pairs = (0..step.bits).map(|b| (step.from - row + b, b));
            s.span == row_bytes
                && self.chunk == 1 << step.to
                && pairs.eq(self.pairs.iter().copied())
        })
    }

    /// What is XORed onto the numbers of a row's chunks.
    pub fn moved(&self, row: i64) -> i64 {
        let pairs = self.pairs.iter();
        pairs.fold(0, |acc, &(from, to)| acc ^ (row >> from & 1) << to)
    }

    /// The byte offset of a byte of a row.
    pub fn offset(&self, row_bytes: i64, row: i64, byte: i64) -> i64 {
        let chunk = (byte / self.chunk) ^ self.moved(row);
        row * row_bytes + chunk * self.chunk + byte % self.chunk
    }
}

/// From an offset below `size` to its bits `from .. from + bits`.
fn split_offset(size: i64, from: i32, bits: u32) -> Option<Form> {
    let mut form = Form::identity(&[size]);
    form.cut(0, 1 << from)?;
    form.cut(0, 1 << (from + bits as i32))?;
    form.outs[0].terms.clear();
    for (at, d) in form.radix.digits().to_vec().iter().enumerate() {
        if d.div >= 1 << from && d.div < 1 << (from + bits as i32) {
            form.outs[0].add(1 << at, d.div >> from);
        }
    }
    Some(form)
}

/// log2 of an element's bytes; negative for elements shorter than a byte.
fn element_log2(bits: i64) -> Result<i32, LayoutError> {
    if bits > 0 && (bits as u64).is_power_of_two() {
        Ok(bits.trailing_zeros() as i32 - 3)
    } else {
        Err(LayoutError::NotAMap {
            what: format!("a swizzle of elements of {bits} bits"),
        })
    }
}

fn rows_and_cols(shape: &[i64]) -> Result<(i64, i64), LayoutError> {
    match shape {
        [.., rows, cols] => Ok((*rows, *cols)),
        _ => Err(LayoutError::Shape {
            expected: vec![1, 1],
            found: shape.to_vec(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radix::indices;

    #[test]
    fn permutations_are_the_xor_of_byte_offsets() {
        let nvidia = [Swizzle::B128, Swizzle::B64, Swizzle::B32, Swizzle::NONE];
        let subtiles = Subtile::ALL.map(|s| s.swizzle);
        for s in nvidia.into_iter().chain(subtiles) {
            for bits in [4, 8, 16, 32, 64] {
                // Three periods: sizes need not be powers of two.
                let size = 3 * 2048 * 8 / bits;
                let p = s.permutation(size, bits).unwrap();
                assert!(p.raw_form().is_some() && p.is_bijective());
                for e in 0..size {
                    assert_eq!(
                        p.offset(&[e]) * bits,
                        s.apply(e * bits / 8) * 8 + e * bits % 8
                    );
                }
                assert_eq!(p.then(&p).unwrap(), Layout::identity(&[size]).unwrap());
            }
        }
        assert!(Swizzle::B128.permutation(4096, 6).is_err());
        assert!(Swizzle::B128.permutation(4096, 256).is_err());
    }

    #[test]
    fn panels_lie_one_after_the_other() {
        let layout = Swizzle::B128.panels(&[2, 24, 192], 16).unwrap();
        assert!(layout.is_bijective());
        for i in indices(&[2, 24, 192]) {
            let panel = i[2] / 64;
            let byte = 2 * (((i[0] * 3 + panel) * 24 + i[1]) * 64 + i[2] % 64);
            assert_eq!(2 * layout.offset(&i), Swizzle::B128.apply(byte));
        }
        // 229 rows take the room of 232 in each panel but the last.
        let gaps = Swizzle::B64.panels(&[229, 96], 16).unwrap();
        assert!(gaps.raw_form().is_some() && gaps.is_injective());
        assert_eq!(gaps.span(), (2 * 232 + 229) * 32);
        for i in indices(&[229, 96]) {
            let byte = 2 * ((i[1] / 32 * 232 + i[0]) * 32 + i[1] % 32);
            assert_eq!(2 * gaps.offset(&i), Swizzle::B64.apply(byte));
        }
        assert_eq!(Swizzle::widest(96, 16), Some(Swizzle::B64));
        assert_eq!(Swizzle::widest(24, 8), None);
        assert!(Swizzle::B128.panels(&[8, 96], 16).is_err());
    }

    #[test]
    fn several_row_bits_on_one_chunk_bit() {
        let layout = row_xor(&[32, 64], 8, &[(1, 0), (2, 1), (3, 2), (4, 1)]).unwrap();
        assert!(layout.is_bijective() && layout.vector_width(1) == 8);
        for i in indices(&[32, 64]) {
            let chunk = (i[1] / 8) ^ (i[0] / 2 % 8) ^ (i[0] / 16 % 2 * 2);
            assert_eq!(layout.offset(&i), i[0] * 64 + chunk * 8 + i[1] % 8);
        }
    }

    #[test]
    fn chunks_of_elements_of_six_bits() {
        let rows = RowXor {
            chunk: 24,
            pairs: vec![(3, 1), (4, 0)],
        };
        let layout = rows.layout(&[32, 128], 6).unwrap();
        assert!(layout.is_bijective() && layout.vector_width(1) == 32);
        for i in indices(&[32, 128]) {
            let chunk = (i[1] / 32) ^ (i[0] / 8 % 2 * 2) ^ (i[0] / 16);
            assert_eq!(layout.offset(&i), i[0] * 128 + chunk * 32 + i[1] % 32);
            if i[1] % 4 == 0 {
                let byte = rows.offset(96, i[0], i[1] * 6 / 8);
                assert_eq!(byte, layout.offset(&i) * 6 / 8);
            }
        }
    }

    #[test]
    fn rows_of_the_span_are_swizzles_of_bytes() {
        for (swizzle, first) in [(Swizzle::B128, 0), (Swizzle::B64, 1), (Swizzle::B32, 2)] {
            let rows = RowXor {
                chunk: 16,
                pairs: (first..3).map(|row| (row, row - first)).collect(),
            };
            assert_eq!(rows.of_bytes(swizzle.span), Some(swizzle));
            assert_eq!(rows.of_bytes(swizzle.span * 2), None);
            for bits in [8, 16, 32] {
                let shape = [24, swizzle.span * 8 / bits];
                let panels = swizzle.panels(&shape, bits).unwrap();
                assert_eq!(rows.layout(&shape, bits).unwrap(), panels);
            }
            let mut other = rows.clone();
            other.pairs[0].0 += 1;
            assert_eq!(other.of_bytes(swizzle.span), None);
        }
    }
}
