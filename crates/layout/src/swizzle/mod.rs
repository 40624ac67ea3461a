//! The choice of a swizzle: [`for_matrix`] picks for a target, [`for_reads`] for given reads. That
//! their choices are free of conflicts is counted by the tests with the phases of [`banks`].

mod reads;

use tilewright_ir::Scalar;
use tilewright_ir::micro_op::{MmaFamily, MmaInst};
use tilewright_ir::target::Target;

use crate::banks;
use crate::{Family, LayoutError, Place};

pub use reads::{WarpRead, for_reads};
pub use tilewright_form::swizzle::{RowXor, Subtile, Swizzle, XorStep, row_xor};

/// What [`for_matrix`] has for the target's first instruction on elements of this type; row-major
/// where there is none, or where there are no rows.
pub fn for_elements(target: Target, shape: &[i64], element: Scalar) -> Result<Place, LayoutError> {
    let mut all = target.machine().mma.iter().map(|m| m.inst);
    match all.find(|inst| inst.a == element) {
        Some(inst) => for_matrix(target, shape, &inst),
        None => Place::new(Family::Linear, shape, element.bits().into()),
    }
}

/// The placement of an operand tile, rows of K, that the instruction reads without bank
/// conflicts. Rows that are no whole number of chunks stay row-major.
///
/// NVIDIA needs one rule: `ldmatrix` takes eight rows of 16 bytes in a phase, so rows that start
/// at the same bank must differ in their chunk. AMD's phases mix rows of several chunks, so there
/// the permutation is chosen by counting: the first of a short list, widest chunks first, that
/// costs nothing extra (or the cheapest, if none is free).
pub fn for_matrix(target: Target, shape: &[i64], inst: &MmaInst) -> Result<Place, LayoutError> {
    let bits: i64 = inst.a.bits().into();
    let rows = match shape {
        [.., _, cols] if (128 % bits == 0 || bits == 6) && cols * bits % 8 == 0 => {
            let row_bytes = cols * bits / 8;
            match inst.family {
                MmaFamily::MmaSync | MmaFamily::MmaSp | MmaFamily::Wgmma => {
                    simple(row_bytes, 16, 32)
                }
                MmaFamily::Mfma => for_mfma(target, row_bytes, inst),
            }
        }
        _ => None,
    };
    Place::new(family(rows), shape, bits)
}

/// Without anything to permute rows lie as they are.
fn family(rows: Option<RowXor>) -> Family {
    let rows = rows.filter(|r| !r.pairs.is_empty());
    rows.map_or(Family::Linear, Family::Swizzle)
}

/// Row bits onto chunk bits in order: the rows that start at one bank differ in their
/// chunks. `None` when a row is no whole number of chunks.
fn simple(row_bytes: i64, chunk: i64, banks: i64) -> Option<RowXor> {
    let (first, width) = room(row_bytes, chunk, banks)?;
    let pairs = (0..width).map(|b| (first + b, b)).collect();
    Some(RowXor { chunk, pairs })
}

/// The first row bit that matters and how many chunk bits there are: rows closer than
/// `2^first` start at different banks anyway.
fn room(row_bytes: i64, chunk: i64, banks: i64) -> Option<(u32, u32)> {
    if row_bytes % chunk != 0 {
        return None;
    }
    let line = banks * 4;
    let width = (row_bytes / chunk)
        .trailing_zeros()
        .min((line / chunk).ilog2());
    // So many rows start at different banks: as many as make a whole number of lines.
    let first = (line >> row_bytes.trailing_zeros()).max(1).ilog2();
    Some((first, width))
}

fn for_mfma(target: Target, row_bytes: i64, inst: &MmaInst) -> Option<RowXor> {
    let banks: i64 = target.machine().shared.banks.into();
    let reads = MfmaReads::new(row_bytes, inst);
    let mut best: Option<(u32, RowXor)> = None;
    // A chunk holds whole elements: of six bits what a lane reads.
    let chunks: &[i64] = if inst.a.bits() == 6 { &[24] } else { &[16, 8] };
    for &chunk in chunks {
        let Some((first, width)) = room(row_bytes, chunk, banks) else {
            continue;
        };
        let orders = orders(width);
        // The row bit behind them too, where lanes read runs with a gap.
        let more = || std::iter::once(None).chain((0..width).map(Some));
        let starts = || more().flat_map(|more| [(first, more), (first + 1, more)]);
        for (start, more) in starts() {
            for order in &orders {
                let pairs = order.iter().zip(start..).map(|(&b, row)| (row, b));
                let candidate = RowXor {
                    chunk,
                    pairs: pairs.chain(more.map(|b| (start + width, b))).collect(),
                };
                let lost = mfma_conflicts(&candidate, target, row_bytes, &reads)?;
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

/// The cycles lost to a wave's reads of the first operand of a tile.
fn mfma_conflicts(rows: &RowXor, target: Target, row_bytes: i64, reads: &MfmaReads) -> Option<u32> {
    let moved: Vec<i64> = (0..reads.rows).map(|row| rows.moved(row)).collect();
    let lost = reads.each.iter().map(|lanes| {
        let at = |&(row, byte): &(i64, i64)| {
            let chunk = (byte / rows.chunk) ^ moved[row as usize];
            (row * row_bytes + chunk * rows.chunk + byte % rows.chunk) as u32
        };
        let lanes: Vec<Option<u32>> = lanes.iter().map(|l| l.as_ref().map(at)).collect();
        let cost = banks::cost(target, banks::Kind::Read, reads.width, &lanes);
        cost.map(banks::Cost::conflicts)
    });
    lost.sum()
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
        let (m, k, bits): (i64, i64, i64) = (inst.m.into(), inst.k.into(), inst.a.bits().into());
        let run = k * m / 64 * bits / 8;
        let width = if bits == 6 { run } else { run.min(16) };
        let read = |read: i64| {
            let lane = |l: i64| {
                // Lanes of a row have neighbouring runs of 16 bytes; the next ones are behind them.
                let byte = width * (l / m + read * (64 / m));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radix::indices;

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
        assert_eq!(ragged.family(), &Family::Linear);
    }

    #[test]
    fn row_xor_of_128_byte_rows_is_the_128_byte_swizzle() {
        let mma = inst("wgmma.64x128x16.bfloat16.float32");
        let rows = for_matrix(Target::Sm90a, &[64, 64], &mma).unwrap();
        let panels = Swizzle::B128.panels(&[64, 64], 16).unwrap();
        assert_eq!(rows.layout(), &panels);
        let Family::Swizzle(rows) = rows.family() else {
            panic!("{rows:?}");
        };
        assert_eq!(rows.of_bytes(128), Some(Swizzle::B128));
    }
}
