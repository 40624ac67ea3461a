//! `mma.sync.aligned.m16n8k{4,8,16,32}` and `m8n8k4`: 32 lanes, in eight groups of four.
//!
//! Source: PTX ISA, section "Warp-level matrix instructions", the fragment figures of each
//! shape; there `groupID = lane / 4` and `threadID_in_group = lane % 4`. All shapes follow one
//! scheme. A lane's register holds `p` elements next to each other along K (one of tf32 and, in
//! 64 bits, of f64, two of f16 and bf16, four of int8 and fp8); the four lanes of a group stand
//! side by side along K, so registers cover 8 rows by `4p` of K; further registers take the other
//! eight rows first, where there are 16, then the next `4p` of K.

use tilewright_ir::Scalar;
use tilewright_ir::micro_op::MmaInst;

use super::{COL, Operand, ROW, table};
use crate::Fragment;
use crate::radix::Digit;

pub(super) fn lane_map(inst: &MmaInst, operand: Operand) -> Option<Fragment> {
    if !exists(inst) {
        return None;
    }
    let (m, k) = (inst.m.into(), inst.k.into());
    Some(match operand {
        Operand::A => a(m, k, packed(inst.a)),
        Operand::B => b(k, packed(inst.a)),
        Operand::C => c(m, 8),
        Operand::ScaleA | Operand::ScaleB => return None,
    })
}

/// Whether PTX has the shape for the types.
pub fn exists(inst: &MmaInst) -> bool {
    let types = match (inst.a, inst.k) {
        (Scalar::F16, 8 | 16) => matches!(inst.acc, Scalar::F16 | Scalar::F32),
        (Scalar::BF16, 8 | 16) | (Scalar::TF32, 4 | 8) => inst.acc == Scalar::F32,
        (Scalar::I8 | Scalar::U8, 16 | 32) => inst.acc == Scalar::I32,
        (Scalar::F8E4M3FN | Scalar::F8E5M2, 16 | 32) => {
            matches!(inst.acc, Scalar::F16 | Scalar::F32)
        }
        (Scalar::F64, 4 | 8 | 16) => inst.acc == Scalar::F64,
        _ => false,
    };
    let eight_rows = (inst.a, inst.m, inst.k) == (Scalar::F64, 8, 4);
    types && inst.n == 8 && (inst.m == 16 || eight_rows)
}

/// Elements of a register: of 32 bits, or of as many as one element has.
pub(super) fn packed(scalar: Scalar) -> i64 {
    (32 / scalar.bits()).max(1).into()
}

/// The digits of so many rows, at most 16 for each warp, that lanes have and that slots have.
fn rows_of(rows: i64) -> (Vec<Digit>, Vec<Digit>) {
    let mut lanes = vec![Digit::new(ROW, 1, 8)];
    let mut slots = Vec::new();
    if rows > 8 {
        slots.push(Digit::new(ROW, 8, 2));
    }
    if rows > 16 {
        lanes.push(Digit::new(ROW, 16, rows / 16));
    }
    (lanes, slots)
}

/// A of 8 rows, or of 16 for each warp: also the register operand of wgmma.
pub(super) fn a(rows: i64, k: i64, packed: i64) -> Fragment {
    let (in_lanes, in_slots) = rows_of(rows);
    let lanes = [vec![Digit::new(COL, packed, 4)], in_lanes].concat();
    let mut slots = [vec![Digit::new(COL, 1, packed)], in_slots].concat();
    if k > 4 * packed {
        slots.push(Digit::new(COL, 4 * packed, k / (4 * packed)));
    }
    table([rows, k], &lanes, &slots)
}

/// B of eight columns.
pub(super) fn b(k: i64, packed: i64) -> Fragment {
    let lanes = [Digit::new(ROW, packed, 4), Digit::new(COL, 1, 8)];
    let mut slots = vec![Digit::new(ROW, 1, packed)];
    if k > 4 * packed {
        slots.push(Digit::new(ROW, 4 * packed, k / (4 * packed)));
    }
    table([k, 8], &lanes, &slots)
}

/// C of 8 rows, or of 16 for each warp, and any multiple of eight columns.
pub(super) fn c(rows: i64, cols: i64) -> Fragment {
    let (in_lanes, in_slots) = rows_of(rows);
    let lanes = [vec![Digit::new(COL, 2, 4)], in_lanes].concat();
    let mut slots = [vec![Digit::new(COL, 1, 2)], in_slots].concat();
    if cols > 8 {
        slots.push(Digit::new(COL, 8, cols / 8));
    }
    table([rows, cols], &lanes, &slots)
}
