//! Matrix instructions on real registers.
//!
//! The operands of a wave are gathered from the lanes' registers by the instruction's lane
//! maps, multiplied as small dense matrices, and spread again. As in the reference evaluator,
//! products of narrow floats are added in float32 in ascending order of `k`, starting at the
//! accumulator, and the sum is rounded to the accumulator's type once an instruction.

use tilewright_ir::{MmaInst, Scalar, small_float};
use tilewright_layout::lanes::{Operand, lane_map};

use super::access::byte_of;
use super::counts::InstKind;
use super::env::Env;
use super::program::{BufferInfo, MicroCode};
use super::warp::{Lanes, WRITTEN, Warp};
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
}

/// For each element of each lane, where it is in the row-major matrix.
#[derive(Debug)]
pub(super) struct Map {
    /// Elements that a lane holds.
    pub per_lane: u32,
    pub lanes: u32,
    at: Vec<u32>,
}

impl MmaTable {
    /// `None` when the instruction does not take both operands from registers.
    pub fn new(inst: &MmaInst) -> Option<MmaTable> {
        Some(MmaTable {
            inst: *inst,
            a: Map::new(inst, Operand::A)?,
            b: Map::new(inst, Operand::B)?,
            c: Map::new(inst, Operand::C)?,
        })
    }
}

impl Map {
    fn new(inst: &MmaInst, operand: Operand) -> Option<Map> {
        let fragment = lane_map(inst, operand)?;
        let [rows, columns] = operand.shape(inst);
        let (lanes, per_lane) = (fragment.threads(), fragment.slots());
        let mut at = vec![u32::MAX; (lanes * per_lane) as usize];
        for row in 0..rows {
            for column in 0..columns {
                for holder in fragment.holders(&[row, column]) {
                    let place = holder.thread * per_lane + holder.slot;
                    at[place as usize] = (row * columns + column) as u32;
                }
            }
        }
        Some(Map {
            per_lane: per_lane as u32,
            lanes: lanes as u32,
            at,
        })
    }

    /// The matrix that the lanes hold. `element` reads one.
    fn gather<T: Copy>(&self, zero: T, mut element: impl FnMut(u32, usize) -> T) -> Vec<T> {
        let mut matrix = vec![zero; self.at.len()];
        for lane in 0..self.lanes {
            let first = (lane * self.per_lane) as usize;
            for (i, &at) in self.at[first..first + self.per_lane as usize].iter().enumerate() {
                if let Some(place) = matrix.get_mut(at as usize) {
                    *place = element(lane, i);
                }
            }
        }
        matrix
    }
}

impl Env<'_> {
    /// One matrix instruction of a warp.
    pub(super) fn mma(
        &mut self,
        warp: &mut Warp,
        code: &MicroCode,
        taken: u64,
        table: &MmaTable,
    ) {
        self.count(warp, InstKind::Mma);
        if !self.whole_warp(warp, taken, &code.inst) {
            return;
        }
        let program = self.program;
        let operand = |env: &mut Self, warp: &Warp, access: u32| {
            let access = &program.accesses[access as usize];
            let info = &program.buffers[access.buffer as usize];
            let addresses = env.addresses(warp, access, warp.mask);
            env.check_read(warp, access, &addresses);
            (info, addresses)
        };
        let (a_info, a_at) = operand(self, warp, code.sources[0]);
        let (b_info, b_at) = operand(self, warp, code.sources[1]);
        let (c_info, c_at) = operand(self, warp, code.dest);
        if [a_at.mask, b_at.mask, c_at.mask] != [warp.mask; 3] {
            return;
        }
        let (ab, acc) = (table.inst.ab, table.inst.acc);
        let starts = |info: &BufferInfo, at: &[usize]| -> Vec<usize> {
            at.iter().map(|&at| byte_of(info, at)).collect()
        };
        let places = Places {
            a: starts(a_info, &a_at.at),
            b: starts(b_info, &b_at.at),
            c: starts(c_info, &c_at.at),
        };
        let wide = matches!(ab, Scalar::F32 | Scalar::F64) || acc == Scalar::F64;
        if !acc.is_float() {
            product(warp, table, &places, |bits| value::int_from_bits(ab, bits), Acc {
                read: |bits| value::int_from_bits(acc, bits),
                write: |v| value::int_to_bits(acc, value::wrap(acc, v)),
            });
        } else if wide {
            product(warp, table, &places, |bits| small_float::float_from_bits(ab, bits), Acc {
                read: |bits| small_float::float_from_bits(acc, bits),
                write: |v| small_float::float_to_bits(acc, v),
            });
        } else {
            let read = |bits| {
                let v = small_float::float_from_bits(ab, bits);
                let v = if ab == Scalar::TF32 { value::round(ab, v) } else { v };
                v as f32
            };
            product(warp, table, &places, read, Acc {
                read: |bits| small_float::float_from_bits(acc, bits) as f32,
                write: |v| small_float::float_to_bits(acc, f64::from(v)),
            });
        }
        for lane in Lanes(warp.mask) {
            let len = table.c.per_lane * acc.bits() / 8;
            let start = places.c[lane as usize];
            warp.local.set_flags(lane, start, len as usize, WRITTEN);
        }
    }
}

/// The first private byte of each lane's operands.
struct Places {
    a: Vec<usize>,
    b: Vec<usize>,
    c: Vec<usize>,
}

struct Acc<R, W> {
    read: R,
    write: W,
}

fn product<T: Term>(
    warp: &mut Warp,
    table: &MmaTable,
    places: &Places,
    read: impl Fn(u64) -> T,
    acc: Acc<impl Fn(u64) -> T, impl Fn(T) -> u64>,
) {
    let (n, k) = (usize::from(table.inst.n), usize::from(table.inst.k));
    let (ab, c) = (table.inst.ab.bits(), table.inst.acc.bits());
    let local = &warp.local;
    let element = |starts: &[usize], per_lane: u32, bits: u32, lane: u32, i: usize| {
        let len = (per_lane * bits).div_ceil(8) as usize;
        read_bits(local.load(lane, starts[lane as usize], len), bits, i)
    };
    let left = table.a.gather(T::ZERO, |lane, i| {
        read(element(&places.a, table.a.per_lane, ab, lane, i))
    });
    let right = table.b.gather(T::ZERO, |lane, i| {
        read(element(&places.b, table.b.per_lane, ab, lane, i))
    });
    let mut sum = table.c.gather(T::ZERO, |lane, i| {
        (acc.read)(element(&places.c, table.c.per_lane, c, lane, i))
    });
    for (row, left) in sum.chunks_exact_mut(n).zip(left.chunks_exact(k)) {
        multiply_row(row, left, &right);
    }
    let len = (table.c.per_lane * c).div_ceil(8) as usize;
    for lane in 0..table.c.lanes {
        let range = warp.local.range(lane, places.c[lane as usize], len);
        let bytes = &mut warp.local.bytes[range];
        let first = (lane * table.c.per_lane) as usize;
        for (i, &at) in table.c.at[first..first + table.c.per_lane as usize].iter().enumerate() {
            if let Some(&v) = sum.get(at as usize) {
                write_bits(bytes, c, i, (acc.write)(v));
            }
        }
    }
}
