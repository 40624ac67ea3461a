//! Matrix instructions on real registers.
//!
//! The operands of a wave are gathered from the lanes' registers by the instruction's lane
//! maps, multiplied as small dense matrices, and spread again. As in the reference evaluator,
//! products of narrow floats are added in float32 in ascending order of `k`, starting at the
//! accumulator, and the sum is rounded to the accumulator's type once an instruction. Elements that
//! have scales are multiplied by them first, in float32. A sparse left factor gets its zeros first, by
//! the metadata of the lanes that the instruction asks; metadata whose places do not rise is undefined
//! where something is stored there.

use tilewright_ir::{MmaInst, Scalar, Sparsity, small_float};
use tilewright_layout::lanes::{Operand, lane_map, mma_sp};

use super::access::byte_of;
use super::counts::InstKind;
use super::env::Env;
use super::program::MicroCode;
use super::report::FindingKind;
use super::warp::{Lanes, Local, WRITTEN, Warp};
use crate::exec::{Term, multiply_row};
use crate::memory::{read_bits, write_bits};
use crate::value;

/// The lane maps of an instruction, as lists.
#[derive(Debug)]
pub(super) struct MmaTable {
    pub inst: MmaInst,
    pub a: Map,
    pub b: Map,
    pub c: Map,
    /// Of a sparse instruction.
    pub metadata: Option<Metadata>,
    /// Those of the scales of A and of B, where the instruction takes them.
    pub scales: Option<[Map; 2]>,
}

/// Where the metadata of each group of each row of A is.
#[derive(Debug)]
pub(super) struct Metadata {
    /// Integers that a lane holds.
    pub per_lane: u32,
    /// Bits of an integer.
    bits: u32,
    sparsity: Sparsity,
    /// The lane, the integer in it and the first bit, of each group, row by row.
    groups: Vec<(u32, u32, u32)>,
}

impl Metadata {
    fn new(inst: &MmaInst, bits: u32) -> Option<Metadata> {
        let sparsity = Sparsity::of(inst.a)?;
        let per_lane = mma_sp::metadata(inst, bits)?.slots() as u32;
        let in_row = i64::from(inst.k) / i64::from(sparsity.group);
        let mut groups = Vec::new();
        for row in 0..i64::from(inst.m) {
            for group in 0..in_row {
                let (lane, slot, shift) = mma_sp::group_at(inst, bits, row, group)?;
                groups.push((lane as u32, slot as u32, shift));
            }
        }
        Some(Metadata {
            per_lane,
            bits,
            sparsity,
            groups,
        })
    }

    /// The places of all groups, row by row, from a byte of each lane on.
    fn gather(&self, local: &Local, starts: &[usize]) -> Vec<u32> {
        let len = (self.per_lane * self.bits).div_ceil(8) as usize;
        let groups = self.groups.iter();
        let places = groups.map(|&(lane, slot, shift)| {
            let bytes = local.load(lane, starts[lane as usize], len);
            let integer = read_bits(bytes, self.bits, slot as usize);
            (integer >> shift) as u32 & ((1 << Sparsity::BITS) - 1)
        });
        places.collect()
    }

    /// The matrix of which these elements are stored.
    fn spread<T: Copy>(&self, stored: &[T], places: &[u32], zero: T) -> Vec<T> {
        let Sparsity { kept, group } = self.sparsity;
        let mut all = vec![zero; places.len() * group as usize];
        let groups = all.chunks_exact_mut(group as usize);
        let stored = stored.chunks_exact(kept as usize);
        for ((group, stored), &places) in groups.zip(stored).zip(places) {
            for (element, value) in stored.iter().enumerate() {
                group[self.sparsity.place_in(element as u32, places) as usize] = *value;
            }
        }
        all
    }
}

/// For each element of each lane, where it is in the row-major matrix.
#[derive(Debug)]
pub(super) struct Map {
    /// Elements that a lane holds.
    pub per_lane: u32,
    at: Vec<u32>,
}

impl MmaTable {
    /// `None` when the instruction does not take both operands from registers, or no metadata in
    /// integers of so many bits.
    pub fn new(inst: &MmaInst, metadata: Option<u32>) -> Option<MmaTable> {
        let metadata = match metadata {
            Some(bits) => Some(Metadata::new(inst, bits)?),
            None => None,
        };
        Some(MmaTable {
            inst: *inst,
            a: Map::new(inst, Operand::A)?,
            b: Map::new(inst, Operand::B)?,
            c: Map::new(inst, Operand::C)?,
            metadata,
            scales: match inst.scaled {
                true => Some([
                    Map::new(inst, Operand::ScaleA)?,
                    Map::new(inst, Operand::ScaleB)?,
                ]),
                false => None,
            },
        })
    }

    /// The elements that a lane holds of a source.
    pub fn of_source(&self, at: usize) -> u32 {
        match (at, &self.scales) {
            (0, _) => self.a.per_lane,
            (1, _) => self.b.per_lane,
            (_, Some(scales)) => scales[at % 2].per_lane,
            (_, None) => self.metadata.as_ref().map_or(0, |m| m.per_lane),
        }
    }
}

impl Map {
    pub fn new(inst: &MmaInst, operand: Operand) -> Option<Map> {
        let fragment = lane_map(inst, operand)?;
        let [rows, columns] = operand.shape(inst);
        let (lanes, per_lane) = (fragment.threads(), fragment.slots());
        let mut at = vec![u32::MAX; (lanes * per_lane) as usize];
        if at.len() as i64 != rows * columns {
            return None;
        }
        for row in 0..rows {
            for column in 0..columns {
                for holder in fragment.holders(&[row, column]) {
                    let place = holder.thread * per_lane + holder.slot;
                    at[place as usize] = (row * columns + column) as u32;
                }
            }
        }
        // Every place holds an element, or the map is none of a register operand.
        let whole = at.iter().all(|&place| i64::from(place) < rows * columns);
        whole.then_some(Map {
            per_lane: per_lane as u32,
            at,
        })
    }

    /// The matrix that the lanes hold in private memory, from a byte of each lane on.
    pub fn gather<T: Copy>(
        &self,
        local: &Local,
        starts: &[usize],
        bits: u32,
        zero: T,
        read: impl Fn(u64) -> T,
    ) -> Vec<T> {
        let mut matrix = vec![zero; self.at.len()];
        let per_lane = self.per_lane as usize;
        let len = (per_lane * bits as usize).div_ceil(8);
        let lanes = self.at.chunks_exact(per_lane).zip(starts).enumerate();
        for (lane, (places, &start)) in lanes {
            let bytes = local.load(lane as u32, start, len);
            for (i, &at) in places.iter().enumerate() {
                matrix[at as usize] = read(read_bits(bytes, bits, i));
            }
        }
        matrix
    }

    /// The reverse.
    pub fn scatter<T: Copy>(
        &self,
        local: &mut Local,
        starts: &[usize],
        bits: u32,
        matrix: &[T],
        write: impl Fn(T) -> u64,
    ) {
        let per_lane = self.per_lane as usize;
        let len = (per_lane * bits as usize).div_ceil(8);
        let lanes = self.at.chunks_exact(per_lane).zip(starts).enumerate();
        for (lane, (at, &start)) in lanes {
            let range = local.range(lane as u32, start, len);
            let bytes = &mut local.bytes[range];
            for (i, &at) in at.iter().enumerate() {
                write_bits(bytes, bits, i, write(matrix[at as usize]));
            }
        }
    }

    /// The part of a warp group's map that one of its warps holds, on the 16 rows that are its own.
    pub fn of_warp(&self, warp: usize, lanes: usize, columns: usize) -> Map {
        let own = warp * lanes * self.per_lane as usize;
        let first = (warp * 16 * columns) as u32;
        let at = &self.at[own..own + lanes * self.per_lane as usize];
        Map {
            per_lane: self.per_lane,
            at: at.iter().map(|at| at - first).collect(),
        }
    }
}

impl Env<'_> {
    /// One matrix instruction of a warp.
    pub(super) fn mma(&mut self, warp: &mut Warp, code: &MicroCode, taken: u64, table: &MmaTable) {
        self.count(warp, InstKind::Mma);
        if !self.whole_warp(warp, taken, &code.inst) {
            return;
        }
        let program = self.program;
        let operand = |env: &mut Self, warp: &mut Warp, access: u32| {
            let access = &program.accesses[access as usize];
            let info = &program.buffers[access.buffer as usize];
            let addresses = env.addresses(warp, access, warp.mask);
            env.check_read(warp, access, &addresses);
            (info, addresses)
        };
        let mut whole = true;
        let mut starts = |env: &mut Self, warp: &mut Warp, access: u32| -> Vec<usize> {
            let (info, place) = operand(env, warp, access);
            whole &= place.mask == warp.mask;
            let first = |&at: &usize| byte_of(info, at);
            place.at.iter().map(first).collect()
        };
        let mut places = Places {
            sources: (code.sources.iter())
                .map(|&source| starts(self, warp, source))
                .collect(),
            c: starts(self, warp, code.dest),
            told: Vec::new(),
        };
        if !whole {
            return;
        }
        if let (Some(metadata), Some(e)) = (&table.metadata, places.sources.get(2)) {
            places.told = metadata.gather(&warp.local, e);
        }
        self.check_metadata(warp, table, &places);
        let acc = table.inst.acc;
        let mut matrices = InRegisters {
            warp: &mut *warp,
            table,
            places: &places,
        };
        multiply(&table.inst, &mut matrices);
        for lane in Lanes(warp.mask) {
            let len = table.c.per_lane * acc.bits() / 8;
            let start = places.c[lane as usize];
            warp.local.set_flags(lane, start, len as usize, WRITTEN);
        }
    }

    /// Says where metadata has no meaning for what is stored.
    fn check_metadata(&mut self, warp: &Warp, table: &MmaTable, places: &Places) {
        let Some(metadata) = &table.metadata else {
            return;
        };
        let ab = table.inst.a;
        let sign = u64::from(ab.is_float()) << (ab.bits() - 1);
        let read = |bits: u64| bits & !sign;
        let stored = (table.a).gather(&warp.local, &places.sources[0], ab.bits(), 0, read);
        let sparsity = metadata.sparsity;
        let groups = stored.chunks_exact(sparsity.kept as usize);
        let mut wrong = groups.zip(&places.told).filter(|(stored, told)| {
            !sparsity.is_valid(**told) && stored.iter().any(|bits| *bits != 0)
        });
        if let Some((_, told)) = wrong.next() {
            self.report(warp, FindingKind::Metadata, None, || {
                sparsity.refused(*told)
            });
        }
    }
}

/// The first private byte of each lane's operands.
struct Places {
    /// Of A, B, and the scales of both or the metadata of A.
    sources: Vec<Vec<usize>>,
    c: Vec<usize>,
    /// What the metadata of a sparse A says of each group.
    told: Vec<u32>,
}

/// The matrices of an instruction, wherever they lie.
pub(super) trait Matrices {
    /// A, row by row.
    fn left<T: Copy>(&self, zero: T, read: impl Fn(u64) -> T) -> Vec<T>;
    /// B, row by row.
    fn right<T: Copy>(&self, zero: T, read: impl Fn(u64) -> T) -> Vec<T>;
    /// C, row by row.
    fn sum<T: Copy>(&self, zero: T, read: impl Fn(u64) -> T) -> Vec<T>;
    fn store<T: Copy>(&mut self, sum: &[T], write: impl Fn(T) -> u64);
    /// The scales of A and of B, row by row, where elements have some.
    fn scales<T: Copy>(&self, _zero: T, _read: impl Fn(u64) -> T) -> Option<[Vec<T>; 2]> {
        None
    }
}

/// Adds the product to the accumulator.
pub(super) fn multiply(inst: &MmaInst, matrices: &mut impl Matrices) {
    let (a, b, acc) = (inst.a, inst.b, inst.acc);
    let wide = matches!(a, Scalar::F32 | Scalar::F64) || acc == Scalar::F64;
    let float = small_float::float_from_bits;
    if !acc.is_float() {
        let codec = Codec {
            left: |bits| value::int_from_bits(a, bits),
            right: |bits| value::int_from_bits(b, bits),
            scale: |_| 1,
            read: |bits| value::int_from_bits(acc, bits),
            write: |v| value::int_to_bits(acc, value::wrap(acc, v)),
        };
        product(inst, matrices, codec);
    } else if wide {
        let codec = Codec {
            left: |bits| float(a, bits),
            right: |bits| float(b, bits),
            scale: |bits| float(Scalar::F8E8M0, bits),
            read: |bits| float(acc, bits),
            write: |v| small_float::float_to_bits(acc, v),
        };
        product(inst, matrices, codec);
    } else {
        /// The conversions of narrow operands, spelled out so that each is a tight loop.
        macro_rules! narrow {
            ($left:expr, $right:expr) => {{
                let codec = Codec {
                    left: $left,
                    right: $right,
                    scale: |bits| float(Scalar::F8E8M0, bits) as f32,
                    read: |bits| float(acc, bits) as f32,
                    write: |v: f32| small_float::float_to_bits(acc, f64::from(v)),
                };
                product(inst, matrices, codec);
            }};
        }
        let bf16 = |bits| float(Scalar::BF16, bits) as f32;
        let f16 = |bits| float(Scalar::F16, bits) as f32;
        let tf32 = |bits| value::round(Scalar::TF32, float(Scalar::TF32, bits)) as f32;
        match (a, b) {
            (Scalar::BF16, Scalar::BF16) => narrow!(bf16, bf16),
            (Scalar::F16, Scalar::F16) => narrow!(f16, f16),
            (Scalar::TF32, Scalar::TF32) => narrow!(tf32, tf32),
            _ => narrow!(|bits| float(a, bits) as f32, |bits| float(b, bits) as f32),
        }
    }
}

/// How stored bits become numbers and back.
struct Codec<A, B, S, R, W> {
    left: A,
    right: B,
    scale: S,
    /// For the accumulator.
    read: R,
    write: W,
}

fn product<T: Term>(
    inst: &MmaInst,
    matrices: &mut impl Matrices,
    codec: Codec<
        impl Fn(u64) -> T,
        impl Fn(u64) -> T,
        impl Fn(u64) -> T,
        impl Fn(u64) -> T,
        impl Fn(T) -> u64,
    >,
) {
    let (n, k) = (usize::from(inst.n), usize::from(inst.k));
    let mut left = matrices.left(T::ZERO, &codec.left);
    let mut right = matrices.right(T::ZERO, &codec.right);
    if let Some([of_left, of_right]) = matrices.scales(T::ZERO, &codec.scale) {
        let each = usize::from(MmaInst::SCALED);
        for (at, element) in left.iter_mut().enumerate() {
            *element = element.mul(of_left[at / each]);
        }
        for (at, element) in right.iter_mut().enumerate() {
            *element = element.mul(of_right[at / n / each * n + at % n]);
        }
    }
    let mut sum = matrices.sum(T::ZERO, &codec.read);
    for (row, left) in sum.chunks_exact_mut(n).zip(left.chunks_exact(k)) {
        multiply_row(row, left, &right);
    }
    matrices.store(&sum, codec.write);
}

/// The matrices of an instruction whose operands all lie in registers.
struct InRegisters<'a> {
    warp: &'a mut Warp,
    table: &'a MmaTable,
    places: &'a Places,
}

impl Matrices for InRegisters<'_> {
    fn left<T: Copy>(&self, zero: T, read: impl Fn(u64) -> T) -> Vec<T> {
        let bits = self.table.inst.a.bits();
        let map = &self.table.a;
        let stored = map.gather(&self.warp.local, &self.places.sources[0], bits, zero, read);
        match &self.table.metadata {
            Some(metadata) => metadata.spread(&stored, &self.places.told, zero),
            None => stored,
        }
    }

    fn right<T: Copy>(&self, zero: T, read: impl Fn(u64) -> T) -> Vec<T> {
        let bits = self.table.inst.b.bits();
        let map = &self.table.b;
        map.gather(&self.warp.local, &self.places.sources[1], bits, zero, read)
    }

    fn scales<T: Copy>(&self, zero: T, read: impl Fn(u64) -> T) -> Option<[Vec<T>; 2]> {
        let bits = Scalar::F8E8M0.bits();
        let maps = self.table.scales.as_ref()?;
        let gather = |at: usize| {
            let starts = &self.places.sources[2 + at];
            maps[at].gather(&self.warp.local, starts, bits, zero, &read)
        };
        Some([gather(0), gather(1)])
    }

    fn sum<T: Copy>(&self, zero: T, read: impl Fn(u64) -> T) -> Vec<T> {
        let bits = self.table.inst.acc.bits();
        let map = &self.table.c;
        map.gather(&self.warp.local, &self.places.c, bits, zero, read)
    }

    fn store<T: Copy>(&mut self, sum: &[T], write: impl Fn(T) -> u64) {
        let bits = self.table.inst.acc.bits();
        let map = &self.table.c;
        map.scatter(&mut self.warp.local, &self.places.c, bits, sum, write);
    }
}
