//! AMD MFMA with one block (B = 1): 64 lanes.
//!
//! Source: AMD CDNA3 and CDNA4 instruction set manuals, section 7.1.4 "Matrix element to
//! register mapping". For all shapes here, with `K_L = K · M / 64` consecutive elements of K in
//! each lane:
//!
//! | operand | lane | item or register |
//! |---|---|---|
//! | `A[i][k]` | `i + M · (k / K_L)` | `k % K_L` |
//! | `B[k][j]` | `j + N · (k / K_L)` | `k % K_L` |
//! | `C[i][j]` | `j + N · (i / R % (64 / N))` | `i % R + R · (i / (R · 64 / N))` |
//!
//! A lane holds runs of `R` rows of C: four, and of float64 one, so that its rows are four apart.
//!
//! The f8f6f4 instructions are put down with the same rule, K contiguous in a lane. The manual
//! shows it for fp4 and the rule is the general one, but the figure for fp8 has not been seen;
//! a permutation of K that A and B share changes no unscaled product, so kernels without block
//! scales do not depend on it.

use tilewright_ir::Scalar;
use tilewright_ir::micro_op::MmaInst;

use super::{COL, Operand, ROW, table};
use crate::Fragment;
use crate::radix::Digit;

const LANES: i64 = 64;

pub(super) fn lane_map(inst: &MmaInst, operand: Operand) -> Option<Fragment> {
    if !exists(inst) {
        return None;
    }
    // The instructions are square: M = N.
    let (m, k): (i64, i64) = (inst.m.into(), inst.k.into());
    let k_l = k * m / LANES;
    let groups = LANES / m;
    let run = rows_in_a_run(inst);
    Some(match operand {
        Operand::A => table(
            [m, k],
            &[Digit::new(ROW, 1, m), Digit::new(COL, k_l, groups)],
            &[Digit::new(COL, 1, k_l)],
        ),
        Operand::B => table(
            [k, m],
            &[Digit::new(COL, 1, m), Digit::new(ROW, k_l, groups)],
            &[Digit::new(ROW, 1, k_l)],
        ),
        Operand::C => table(
            [m, m],
            &[Digit::new(COL, 1, m), Digit::new(ROW, run, groups)],
            &[
                Digit::new(ROW, 1, run),
                Digit::new(ROW, run * groups, m / (run * groups)),
            ],
        ),
    })
}

/// Neighbouring rows of C that a lane holds.
pub fn rows_in_a_run(inst: &MmaInst) -> i64 {
    match inst.acc {
        Scalar::F64 => 1,
        _ => 4,
    }
}

/// Whether gfx942 or gfx950 has the instruction.
pub fn exists(inst: &MmaInst) -> bool {
    let acc = match inst.ab {
        Scalar::I8 => Scalar::I32,
        Scalar::F64 => Scalar::F64,
        _ => Scalar::F32,
    };
    let ks: &[u16] = match (inst.ab, inst.m) {
        (Scalar::F16 | Scalar::BF16, 16) => &[16, 32],
        (Scalar::F16 | Scalar::BF16, 32) => &[8, 16],
        (Scalar::F32 | Scalar::F64, 16) => &[4],
        (Scalar::F32, 32) => &[2],
        (Scalar::TF32, 16) => &[8],
        (Scalar::TF32, 32) => &[4],
        (Scalar::I8, 16) => &[32, 64],
        (Scalar::I8, 32) => &[16, 32],
        (Scalar::F8E4M3FNUZ | Scalar::F8E5M2FNUZ, 16) => &[32],
        (Scalar::F8E4M3FNUZ | Scalar::F8E5M2FNUZ, 32) => &[16],
        (Scalar::F8E4M3FN | Scalar::F8E5M2, 16) => &[32, 128],
        (Scalar::F8E4M3FN | Scalar::F8E5M2, 32) => &[16, 64],
        (Scalar::F6E2M3 | Scalar::F6E3M2 | Scalar::F4E2M1, 16) => &[128],
        (Scalar::F6E2M3 | Scalar::F6E3M2 | Scalar::F4E2M1, 32) => &[64],
        _ => &[],
    };
    inst.acc == acc && inst.m == inst.n && ks.contains(&inst.k)
}
