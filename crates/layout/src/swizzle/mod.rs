//! Placements of tiles in shared memory that spread rows over the banks.
//!
//! Three families. [`Swizzle`] permutes byte offsets, as the copy engine and the tensor cores
//! of NVIDIA define it and as HipKittens writes its subtiles. [`row_xor`] keeps rows where they
//! are and permutes chunks inside each row by bits of the row's number, which also works for
//! rows of any length. Padding is [`Layout::padded`].
//!
//! [`for_matrix`] picks for a target, [`for_reads`] for given reads. That their choices are free of
//! conflicts is counted by the tests with the phases of [`banks`].

mod reads;

use tilewright_ir::micro_op::{MmaFamily, MmaInst};
use tilewright_ir::target::Target;

use crate::banks;
use crate::error::LayoutError;
use crate::form::Form;
use crate::layout::Layout;
use crate::radix::row_major_strides;

pub use reads::{WarpRead, for_reads};

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
        if self.span * 8 % bits != 0 || cols % width != 0 {
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

/// The placement of an operand tile, rows of K, that the instruction reads without bank
/// conflicts. Rows that are no whole number of chunks stay row-major.
///
/// NVIDIA needs one rule: `ldmatrix` takes eight rows of 16 bytes in a phase, so rows that start
/// at the same bank must differ in their chunk. AMD's phases mix rows of several chunks, so there
/// the permutation is chosen by counting: the first of a short list, widest chunks first, that
/// costs nothing extra (or the cheapest, if none is free).
pub fn for_matrix(target: Target, shape: &[i64], inst: &MmaInst) -> Result<Layout, LayoutError> {
    let (_, cols) = rows_and_cols(shape)?;
    let bits: i64 = inst.ab.bits().into();
    if 128 % bits != 0 {
        return Layout::linear(shape);
    }
    let row_bytes = cols * bits / 8;
    let best = match inst.family {
        MmaFamily::MmaSync | MmaFamily::Wgmma => RowXor::simple(row_bytes, 16, 32),
        MmaFamily::Mfma => RowXor::for_mfma(target, row_bytes, inst),
    };
    match best {
        Some(best) if cols * bits % 8 == 0 => row_xor(shape, best.chunk * 8 / bits, &best.pairs),
        _ => Layout::linear(shape),
    }
}

/// A permutation of the chunks of each row.
#[derive(Clone, PartialEq, Eq, Debug)]
struct RowXor {
    /// Bytes of a chunk.
    chunk: i64,
    /// Row bit and the chunk bit it is XORed onto.
    pairs: Vec<(u32, u32)>,
}

impl RowXor {
    /// Row bits onto chunk bits in order: the rows that start at one bank differ in their
    /// chunks. `None` when a row is no whole number of chunks.
    fn simple(row_bytes: i64, chunk: i64, banks: i64) -> Option<RowXor> {
        let (first, width) = RowXor::room(row_bytes, chunk, banks)?;
        let pairs = (0..width).map(|b| (first + b, b)).collect();
        Some(RowXor { chunk, pairs })
    }

    /// The first row bit that matters and how many chunk bits there are: rows closer than
    /// `2^first` start at different banks anyway.
    fn room(row_bytes: i64, chunk: i64, banks: i64) -> Option<(u32, u32)> {
        let units = (banks * 4 / chunk).trailing_zeros();
        if row_bytes % chunk != 0 {
            return None;
        }
        let width = (row_bytes / chunk).trailing_zeros().min(units);
        Some((units - width, width))
    }

    fn for_mfma(target: Target, row_bytes: i64, inst: &MmaInst) -> Option<RowXor> {
        let banks: i64 = target.machine().shared.banks.into();
        let reads = MfmaReads::new(row_bytes, inst);
        let mut best: Option<(u32, RowXor)> = None;
        for chunk in [16, 8] {
            let Some((first, width)) = RowXor::room(row_bytes, chunk, banks) else {
                continue;
            };
            let orders = orders(width);
            for start in [first, first + 1] {
                for order in &orders {
                    let pairs = order.iter().zip(start..).map(|(&b, row)| (row, b));
                    let candidate = RowXor {
                        chunk,
                        pairs: pairs.collect(),
                    };
                    let lost = candidate.mfma_conflicts(target, row_bytes, &reads)?;
                    if best.as_ref().is_none_or(|(least, _)| lost < *least) {
                        best = Some((lost, candidate));
                    }
                    if lost == 0 {
                        return best.map(|(_, b)| b);
                    }
                }
            }
        }
        best.map(|(_, b)| b)
    }

    /// What is XORed onto the numbers of a row's chunks.
    fn moved(&self, row: i64) -> i64 {
        let pairs = self.pairs.iter();
        pairs.fold(0, |acc, &(from, to)| acc ^ (row >> from & 1) << to)
    }

    /// The byte offset of a byte of a row.
    fn offset(&self, row_bytes: i64, row: i64, byte: i64) -> i64 {
        row * row_bytes + (byte ^ (self.moved(row) * self.chunk))
    }

    /// The cycles lost to a wave's reads of the first operand of a tile.
    fn mfma_conflicts(&self, target: Target, row_bytes: i64, reads: &MfmaReads) -> Option<u32> {
        let moved: Vec<i64> = (0..reads.rows).map(|row| self.moved(row)).collect();
        let lost = reads.each.iter().map(|lanes| {
            let at = |&(row, byte): &(i64, i64)| {
                (row * row_bytes + (byte ^ (moved[row as usize] * self.chunk))) as u32
            };
            let lanes: Vec<Option<u32>> = lanes.iter().map(|l| l.as_ref().map(at)).collect();
            let cost = banks::cost(target, banks::Kind::Read, reads.width, &lanes);
            cost.map(banks::Cost::conflicts)
        });
        lost.sum()
    }
}

/// How a wave reads the first operand of a tile: lane `l` has row `l % M` and its own run of K.
/// Other operands of the tile differ by a constant XOR of banks.
struct MfmaReads {
    rows: i64,
    /// Bytes that a lane reads at once.
    width: u32,
    /// By read and lane, the row and the byte in it.
    each: Vec<Vec<Option<(i64, i64)>>>,
}

impl MfmaReads {
    fn new(row_bytes: i64, inst: &MmaInst) -> MfmaReads {
        let (m, k, bits): (i64, i64, i64) = (inst.m.into(), inst.k.into(), inst.ab.bits().into());
        let run = k * m / 64 * bits / 8;
        let width = run.min(16);
        let read = |read: i64| {
            let lane = |l: i64| {
                let byte = run * (l / m) + read * width;
                // Rows shorter than one K step hold part of it; the rest is elsewhere.
                (byte < row_bytes).then_some((l % m, byte))
            };
            (0..64).map(lane).collect()
        };
        MfmaReads {
            rows: m,
            width: width as u32,
            each: (0..run / width.max(1)).map(read).collect(),
        }
    }
}

/// The orders of `0..width`, the rising one first.
fn orders(width: u32) -> Vec<Vec<u32>> {
    let mut all = vec![vec![]];
    for _ in 0..width {
        let longer = all.iter().flat_map(|order: &Vec<u32>| {
            let unused = (0..width).filter(|b| !order.contains(b));
            unused.map(|b| [order.as_slice(), &[b]].concat())
        });
        all = longer.collect();
    }
    all
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

    fn inst(name: &str) -> MmaInst {
        MmaInst::from_name(name).unwrap()
    }

    #[test]
    fn row_xor_permutes_chunks_of_odd_tiles() {
        // 229 rows of 96 elements: nothing here is a power of two.
        let mma = inst("mma.16x8x16.float16.float32");
        let layout = for_matrix(Target::Sm80, &[229, 96], &mma).unwrap();
        assert!(layout.raw_form().is_some() && layout.is_bijective());
        for i in indices(&[229, 96]) {
            let chunk = (i[1] / 8) ^ (i[0] / 2 % 4);
            assert_eq!(layout.offset(&i), i[0] * 96 + chunk * 8 + i[1] % 8);
        }
        assert_eq!(layout.vector_width(1), 8);
        // Rows that are no whole number of chunks stay as they are.
        let ragged = for_matrix(Target::Sm80, &[16, 20], &mma).unwrap();
        assert_eq!(ragged, Layout::linear(&[16, 20]).unwrap());
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
    fn row_xor_of_128_byte_rows_is_the_128_byte_swizzle() {
        let mma = inst("wgmma.64x128x16.bfloat16.float32");
        let rows = for_matrix(Target::Sm90a, &[64, 64], &mma).unwrap();
        assert_eq!(rows, Swizzle::B128.panels(&[64, 64], 16).unwrap());
    }
}
