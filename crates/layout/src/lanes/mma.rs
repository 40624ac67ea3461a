//! `mma.sync.aligned.m16n8k{4,8,16,32}`: 32 lanes, in eight groups of four.
//!
//! Source: PTX ISA, section "Warp-level matrix instructions", the fragment figures of each
//! shape; there `groupID = lane / 4` and `threadID_in_group = lane % 4`. All shapes follow one
//! scheme. A lane's 32-bit register holds `p` packed elements next to each other along K (one
//! of tf32, two of f16 and bf16, four of int8 and fp8); the four lanes of a group stand side by
//! side along K, so registers cover 8 rows by `4p` of K; further registers take the other eight
//! rows first, then the next `4p` of K.

use tilewright_ir::Scalar;
use tilewright_ir::micro_op::MmaInst;

use super::{COL, Operand, ROW, table};
use crate::Fragment;
use crate::radix::Digit;

pub(super) fn lane_map(inst: &MmaInst, operand: Operand) -> Option<Fragment> {
    if !exists(inst) {
        return None;
    }
    let k = inst.k.into();
    Some(match operand {
        Operand::A => a(16, k, packed(inst.ab)),
        Operand::B => b(k, packed(inst.ab)),
        Operand::C => c(16, 8),
    })
}

/// Whether PTX has the shape for the types.
pub fn exists(inst: &MmaInst) -> bool {
    let types = match (inst.ab, inst.k) {
        (Scalar::F16, 8 | 16) => matches!(inst.acc, Scalar::F16 | Scalar::F32),
        (Scalar::BF16, 8 | 16) | (Scalar::TF32, 4 | 8) => inst.acc == Scalar::F32,
        (Scalar::I8 | Scalar::U8, 16 | 32) => inst.acc == Scalar::I32,
        (Scalar::F8E4M3FN | Scalar::F8E5M2, 16 | 32) => {
            matches!(inst.acc, Scalar::F16 | Scalar::F32)
        }
        _ => false,
    };
    types && (inst.m, inst.n) == (16, 8)
}

/// Elements of a 32-bit register.
fn packed(scalar: Scalar) -> i64 {
    (32 / scalar.bits()).into()
}

/// A of `rows` rows, 16 for each warp: also the register operand of wgmma.
pub(super) fn a(rows: i64, k: i64, packed: i64) -> Fragment {
    let mut lanes = vec![Digit::new(COL, packed, 4), Digit::new(ROW, 1, 8)];
    if rows > 16 {
        lanes.push(Digit::new(ROW, 16, rows / 16));
    }
    let mut slots = vec![Digit::new(COL, 1, packed), Digit::new(ROW, 8, 2)];
    if k > 4 * packed {
        slots.push(Digit::new(COL, 4 * packed, k / (4 * packed)));
    }
    table([rows, k], &lanes, &slots)
}

fn b(k: i64, packed: i64) -> Fragment {
    let lanes = [Digit::new(ROW, packed, 4), Digit::new(COL, 1, 8)];
    let mut slots = vec![Digit::new(ROW, 1, packed)];
    if k > 4 * packed {
        slots.push(Digit::new(ROW, 4 * packed, k / (4 * packed)));
    }
    table([k, 8], &lanes, &slots)
}

/// C of `rows` rows, 16 for each warp, and any multiple of eight columns.
pub(super) fn c(rows: i64, cols: i64) -> Fragment {
    let mut lanes = vec![Digit::new(COL, 2, 4), Digit::new(ROW, 1, 8)];
    if rows > 16 {
        lanes.push(Digit::new(ROW, 16, rows / 16));
    }
    let mut slots = vec![Digit::new(COL, 1, 2), Digit::new(ROW, 8, 2)];
    if cols > 8 {
        slots.push(Digit::new(COL, 8, cols / 8));
    }
    table([rows, cols], &lanes, &slots)
}
