//! `mma.sp.sync.aligned.m16n8k{16,32,64}`: `mma.sync` with a left factor of half its elements.
//!
//! Source: PTX ISA, section "Matrix multiply-accumulate operation using mma.sp instruction with sparse
//! matrix A". What is stored of A lies as the A of the `mma.sync` of half the K does, B and C as
//! those of an `mma.sync` of the whole K would. A row of A has four bits of metadata for each group
//! ([`Sparsity`]), in one 32-bit register of some lanes, with `g = lane / 4` and `t = lane % 4`:
//!
//! | elements | bits | row | which part of K | lanes that are asked |
//! |---|---|---|---|---|
//! | 16 and 32 bits | `0..16` | `g` | half `t % 2` | `t < 2`, with the selector 0 |
//! | | `16..32` | `g + 8` | half `t % 2` | |
//! | 8 bits | `0..32` | `g + 8 · (t % 2)` | half `t / 2` | all |
//!
//! Lanes that nobody asks hold what their neighbours do.

use tilewright_ir::micro_op::{MmaFamily, MmaInst};
use tilewright_ir::{Scalar, Sparsity};

use super::{COL, Operand, ROW, mma};
use crate::Fragment;
use crate::radix::Digit;

pub(super) fn lane_map(inst: &MmaInst, operand: Operand) -> Option<Fragment> {
    if !exists(inst) {
        return None;
    }
    let (m, packed) = (inst.m.into(), mma::packed(inst.a));
    Some(match operand {
        Operand::A => mma::a(m, inst.left_k().into(), packed),
        Operand::B => mma::b(inst.k.into(), packed),
        Operand::C => mma::c(m, inst.n.into()),
        Operand::ScaleA | Operand::ScaleB => return None,
    })
}

/// Whether PTX has the shape for the types; those of half the K are not used.
pub fn exists(inst: &MmaInst) -> bool {
    let types = match (inst.a, inst.k) {
        (Scalar::F16, 32) => matches!(inst.acc, Scalar::F16 | Scalar::F32),
        (Scalar::BF16, 32) | (Scalar::TF32, 16) => inst.acc == Scalar::F32,
        (Scalar::I8 | Scalar::U8, 64) => inst.acc == Scalar::I32,
        _ => false,
    };
    types && inst.family == MmaFamily::MmaSp && (inst.m, inst.n) == (16, 8)
}

/// Metadata as integers of so many bits, over `(m, integers of a row)`. `None` for what is no sparse
/// instruction or no width of metadata. Integers of 32 bits that tell of both halves of K are in all
/// lanes of their row, which take the half that they are asked for ([`takes_halves`]).
pub fn metadata(inst: &MmaInst, bits: u32) -> Option<Fragment> {
    const COPY: usize = 2;
    if !exists(inst) || !matches!(bits, 8 | 16 | 32) {
        return None;
    }
    let integers = row_bits(inst)? / i64::from(bits);
    let row = Digit::new(ROW, 1, 8);
    let (replicas, lanes, slots) = match inst.a.bits() {
        8 => {
            let half = integers / 2;
            let lanes = vec![Digit::new(ROW, 8, 2), Digit::new(COL, half, 2), row];
            (1, lanes, vec![Digit::new(COL, 1, half)])
        }
        _ if takes_halves(inst, bits) => {
            let lanes = vec![Digit::new(COPY, 1, 4), row];
            (4, lanes, vec![Digit::new(ROW, 8, 2)])
        }
        _ => {
            let half = integers / 2;
            let lanes = vec![Digit::new(COL, half, 2), Digit::new(COPY, 1, 2), row];
            let slots = vec![Digit::new(COL, 1, half), Digit::new(ROW, 8, 2)];
            (2, lanes, slots)
        }
    };
    Fragment::from_digits(&[inst.m.into(), integers], replicas, &lanes, &slots).ok()
}

/// Whether an integer of metadata has what two lanes are asked for: lane `t` of four takes half
/// `t % 2` of each integer that it holds.
pub fn takes_halves(inst: &MmaInst, bits: u32) -> bool {
    inst.a.bits() != 8 && bits == 32
}

/// Where the instruction finds the metadata of a group of a row, in a lane's integers of so many bits:
/// the lane, the integer, and how far its bits are shifted there.
pub fn group_at(inst: &MmaInst, bits: u32, row: i64, group: i64) -> Option<(i64, i64, u32)> {
    let groups = row_bits(inst)? / i64::from(Sparsity::BITS);
    let half = group / (groups / 2);
    // Bits of a lane's register, were it one.
    let (t, first) = match inst.a.bits() {
        8 => (row / 8 + 2 * half, 0),
        _ => (half, row / 8 * 16),
    };
    let bit = first + group % (groups / 2) * i64::from(Sparsity::BITS);
    let lane = 4 * (row % 8) + t;
    let (slot, shift) = match takes_halves(inst, bits) {
        true => (row / 8, bit % 16 + 16 * half),
        false => (bit / i64::from(bits), bit % i64::from(bits)),
    };
    Some((lane, slot, shift as u32))
}

/// Bits of metadata of a row.
fn row_bits(inst: &MmaInst) -> Option<i64> {
    let group = Sparsity::of(inst.a)?.group;
    Some(i64::from(inst.k) / i64::from(group) * i64::from(Sparsity::BITS))
}
