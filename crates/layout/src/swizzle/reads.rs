//! The search for a placement that suits given reads.
//!
//! Candidates are permutations of chunks ([`RowXor`]), linear over the bits of the row. XORing one
//! constant onto the chunks of all lanes moves their banks alike, so a candidate costs a read
//! what it does to the row bits in which the read's lanes differ, and nothing else matters. There
//! are few such bits: hundreds of candidates have a handful of costs, and each is counted once.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use tilewright_ir::target::Target;

use super::{RowXor, orders, room};
use crate::radix::ones;
use crate::{Family, Layout, LayoutError, Place, banks};

/// One access of a warp to a tile: the row and column where each lane's vector starts, `None` for
/// lanes that take no part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WarpRead {
    pub lanes: Vec<Option<[i64; 2]>>,
    /// Elements of a lane's vector, along the row.
    pub vector: i64,
}

impl WarpRead {
    /// The cycles lost to bank conflicts, where `offset` is the first byte of an element.
    fn lost(&self, target: Target, bits: i64, offset: impl Fn(i64, i64) -> i64) -> Option<u32> {
        let at = |[row, col]: [i64; 2]| u32::try_from(offset(row, col)).ok();
        let lanes: Vec<Option<u32>> = self.lanes.iter().map(|l| l.and_then(at)).collect();
        let width = u32::try_from(self.vector * bits / 8).ok()?;
        let cost = banks::cost(target, banks::Kind::Read, width, &lanes)?;
        Some(cost.conflicts())
    }
}

/// The placement of a tile that is read in these ways with the fewest bank conflicts. `None`
/// where no permutation of chunks is better than `than`.
///
/// [`for_matrix`](super::for_matrix) knows how operands with rows of K are read. This is for the
/// others: operands whose rows run along M or N, those that are converted on the way, and those
/// that several products read. As there, widest chunks come first, so that the copy into the tile
/// stays wide.
pub fn for_reads(
    target: Target,
    shape: &[i64],
    bits: i64,
    reads: &[WarpRead],
    than: &Layout,
) -> Result<Option<Place>, LayoutError> {
    let &[.., rows, cols] = shape else {
        return Ok(None);
    };
    let widest = reads.iter().map(|r| r.vector * bits).max().unwrap_or(0) / 8;
    let whole = reads.iter().all(|r| r.vector * bits % 8 == 0);
    if 128 % bits != 0 || cols * bits % 8 != 0 || !whole {
        return Ok(None);
    }
    let placed = |row: i64, col: i64| match shape.len() {
        2 => than.offset(&[row, col]) * bits / 8,
        rank => than.offset(&[&vec![0; rank - 2][..], &[row, col]].concat()) * bits / 8,
    };
    // Products of one shape read alike, and what they lose counts as often.
    let mut distinct: Vec<(&WarpRead, u32)> = Vec::new();
    for read in reads {
        match distinct.iter_mut().find(|(known, _)| *known == read) {
            Some((_, times)) => *times += 1,
            None => distinct.push((read, 1)),
        }
    }
    let lost = distinct.iter().map(|(read, times)| {
        let lost = read.lost(target, bits, placed)?;
        Some(lost * times)
    });
    let Some(mut least) = lost.sum::<Option<u32>>() else {
        return Ok(None);
    };
    if least == 0 {
        return Ok(None);
    }
    let mut best: Option<RowXor> = None;
    let tile = Tile {
        target,
        bits,
        row_bytes: cols * bits / 8,
    };
    let row_bits = (rows as u64).next_power_of_two().trailing_zeros();
    for chunk in [16, 8] {
        let room = room(tile.row_bytes, chunk, target.machine().shared.banks.into());
        // A vector must stay in one piece.
        let Some((first, chunk_bits)) = room.filter(|_| widest <= chunk) else {
            continue;
        };
        let costs = distinct
            .iter()
            .map(|&(r, times)| (tile.costs(r, chunk), times));
        let mut costs: Vec<(Costs, u32)> = costs.collect();
        let many = reads.len() > 1 && chunk == 16;
        let mut candidate = RowXor {
            chunk,
            pairs: Vec::new(),
        };
        let searched = each_pairing(first, chunk_bits, row_bits, many, &mut |pairs| {
            candidate.pairs.clear();
            candidate.pairs.extend_from_slice(pairs);
            // No more than the best so far is worth adding up.
            let lost = costs.iter_mut().try_fold(0, |sum, (costs, times)| {
                let sum = sum + *times * costs.of(&tile, &candidate, chunk_bits)?;
                (sum < least).then_some(sum)
            });
            if let Some(lost) = lost {
                least = lost;
                best = Some(candidate.clone());
            }
            match least {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        if searched.is_break() {
            break;
        }
    }
    let place = best.map(|best| Place::new(Family::Swizzle(best), shape, bits));
    place.transpose()
}

/// What is placed.
struct Tile {
    target: Target,
    bits: i64,
    row_bytes: i64,
}

impl Tile {
    fn costs<'r>(&self, read: &'r WarpRead, chunk: i64) -> Costs<'r> {
        let mut lanes = read.lanes.iter().flatten();
        let first = lanes.clone().next().map_or(0, |&[row, _]| row);
        let rows = lanes.clone().fold(0, |all, [row, _]| all | row ^ first);
        // A vector that reaches into the next chunk is torn by some permutations.
        let inside = lanes.all(|[_, col]| {
            let byte = col * self.bits / 8 % chunk;
            byte + read.vector * self.bits / 8 <= chunk
        });
        Costs {
            read,
            row_bits: inside.then(|| ones(rows as u64).map(|b| b as u32).collect()),
            known: BTreeMap::new(),
        }
    }
}

/// What candidates of one chunk size cost a read.
struct Costs<'r> {
    read: &'r WarpRead,
    /// The bits in which the rows of the lanes differ, where they alone decide.
    row_bits: Option<Vec<u32>>,
    /// By the chunk bits that each of the row bits is XORed onto.
    known: BTreeMap<u64, u32>,
}

impl Costs<'_> {
    /// The cycles lost; `None` where the target has no such read.
    fn of(&mut self, tile: &Tile, candidate: &RowXor, chunk_bits: u32) -> Option<u32> {
        let key = self.key(candidate, chunk_bits);
        if let Some(known) = key.and_then(|key| self.known.get(&key)) {
            return Some(*known);
        }
        let offset = |row, col: i64| candidate.offset(tile.row_bytes, row, col * tile.bits / 8);
        let lost = self.read.lost(tile.target, tile.bits, offset)?;
        self.known.extend(key.map(|key| (key, lost)));
        Some(lost)
    }

    fn key(&self, candidate: &RowXor, chunk_bits: u32) -> Option<u64> {
        let row_bits = self.row_bits.as_ref()?;
        if row_bits.len() as u32 * chunk_bits > u64::BITS {
            return None;
        }
        let mut key = 0;
        for &(row_bit, chunk_bit) in &candidate.pairs {
            if let Some(at) = row_bits.iter().position(|b| *b == row_bit) {
                key ^= 1 << (at as u32 * chunk_bits + chunk_bit);
            }
        }
        Some(key)
    }
}

/// Calls `f` with ways to XOR row bits from `first` up onto the chunk bits: neighbouring row bits
/// onto all chunk bits in turn, from each start; then with the row bit after them onto each chunk bit as
/// well, which is what lanes take that read runs of rows with a gap between them. With `many` that is
/// in every order, for reads along rows and across them together.
fn each_pairing(
    first: u32,
    chunk_bits: u32,
    row_bits: u32,
    many: bool,
    f: &mut impl FnMut(&[(u32, u32)]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(chunk_bits as usize + 1);
    let starts = first..row_bits.max(first + 1);
    for start in starts.clone() {
        for turn in 0..chunk_bits {
            pairs.clear();
            pairs.extend((0..chunk_bits).map(|b| (start + b, (b + turn) % chunk_bits)));
            f(&pairs)?;
        }
    }
    let in_turn = |turn: u32| (0..chunk_bits).map(|b| (b + turn) % chunk_bits).collect();
    let orders = match many {
        true => orders(chunk_bits),
        false => (0..chunk_bits).map(in_turn).collect(),
    };
    for start in starts {
        for order in &orders {
            pairs.clear();
            pairs.extend(order.iter().zip(start..).map(|(&c, r)| (r, c)));
            for extra in 0..chunk_bits {
                pairs.truncate(order.len());
                pairs.push((start + chunk_bits, extra));
                f(&pairs)?;
            }
        }
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use tilewright_ir::micro_op::MmaInst;

    use super::super::for_matrix;
    use super::*;

    fn inst(name: &str) -> MmaInst {
        MmaInst::from_name(name).unwrap()
    }

    /// Rows of N instead of K: 16 columns of two bytes from each of four rows, eight apart.
    #[test]
    fn reads_across_rows_are_free() {
        let mfma = inst("mfma.16x16x32.float16.float32");
        let shape = [32, 128];
        let rows_of_k = for_matrix(Target::Gfx950, &shape, &mfma).unwrap();
        let lanes: Vec<_> = (0..64).map(|l| Some([l / 16 * 8, l % 16])).collect();
        let lost = |layout: &Layout| {
            let at = |l: &Option<[i64; 2]>| l.map(|i| 2 * layout.offset(&i) as u32);
            let lanes: Vec<_> = lanes.iter().map(at).collect();
            let cost = banks::cost(Target::Gfx950, banks::Kind::Read, 2, &lanes).unwrap();
            cost.conflicts()
        };
        assert!(lost(&rows_of_k) > 0);
        let reads = [WarpRead {
            lanes: lanes.clone(),
            vector: 1,
        }];
        let found = for_reads(Target::Gfx950, &shape, 16, &reads, &rows_of_k).unwrap();
        let found = found.expect("a better one");
        assert_eq!(lost(&found), 0);
        assert!(found.is_bijective() && found.vector_width(1) == 8);
        // Nothing is better than free.
        let none = for_reads(Target::Gfx950, &shape, 16, &reads, &found).unwrap();
        assert_eq!(none, None);
    }

    /// A tile that one product reads along its rows and another across them.
    #[test]
    fn one_place_serves_both_directions() {
        let mfma = inst("mfma.16x16x32.float16.float32");
        let shape = [64, 64];
        let along = (0..64).map(|l| Some([l % 16, l / 16 * 8]));
        let across = (0..64).map(|l| Some([l / 16 * 8, l % 16]));
        let reads = [(along.collect(), 8), (across.collect(), 1)];
        let reads = reads.map(|(lanes, vector)| WarpRead { lanes, vector });
        let rows_of_k = for_matrix(Target::Gfx950, &shape, &mfma).unwrap();
        let found = for_reads(Target::Gfx950, &shape, 16, &reads, &rows_of_k).unwrap();
        let found = found.expect("a better one");
        for read in reads {
            let lost = read.lost(Target::Gfx950, 16, |row, col| 2 * found.offset(&[row, col]));
            assert_eq!(lost, Some(0));
        }
    }

    /// What is remembered of a read is what counting anew gives, for every candidate: reads along
    /// rows and across them, some lanes idle, rows that start anywhere, vectors over two chunks.
    #[test]
    fn remembered_costs_are_counted_costs() {
        let along = |vector: i64| (0..64).map(move |l| Some([l % 16, l / 16 * vector]));
        let across = (0..64).map(|l| Some([l / 16 * 8, l % 16]));
        let shifted = (0..64).map(|l| Some([5 + l % 32, l / 32 * 8]));
        let idle = (0..64).map(|l| (l % 3 != 0).then_some([l, 0]));
        let torn = (0..64).map(|l| Some([l % 16, 4 + l / 16 * 8]));
        let reads = [
            (along(8).collect(), 8),
            (along(4).collect(), 4),
            (across.collect(), 1),
            (shifted.collect(), 8),
            (idle.collect(), 4),
            (torn.collect(), 8),
        ];
        let reads = reads.map(|(lanes, vector)| WarpRead { lanes, vector });
        let (mut counted, mut remembered) = (0, 0);
        for target in [Target::Gfx942, Target::Gfx950] {
            for (row_bytes, chunk) in [(128, 16), (256, 16), (192, 8), (64, 8)] {
                let tile = Tile {
                    target,
                    bits: 16,
                    row_bytes,
                };
                let banks = target.machine().shared.banks.into();
                let (first, chunk_bits) = room(row_bytes, chunk, banks).unwrap();
                for read in &reads {
                    let mut costs = tile.costs(read, chunk);
                    let all = each_pairing(first, chunk_bits, 6, true, &mut |pairs| {
                        let pairs = pairs.to_vec();
                        let candidate = RowXor { chunk, pairs };
                        let offset = |row, col: i64| candidate.offset(row_bytes, row, 2 * col);
                        let anew = read.lost(target, 16, offset);
                        assert_eq!(costs.of(&tile, &candidate, chunk_bits), anew);
                        counted += 1;
                        ControlFlow::Continue(())
                    });
                    assert!(all.is_continue());
                    remembered += costs.known.len();
                }
            }
        }
        assert!(remembered * 4 < counted, "{remembered} of {counted}");
    }
}
