//! AMD MFMA with one block (B = 1): 64 lanes.
//!
//! Source: AMD CDNA3 and CDNA4 instruction set manuals, section 7.1.4 "Matrix element to
//! register mapping". For all shapes here, with runs of `L` consecutive elements of K in each lane
//! and `G = 64 / M` groups of lanes:
//!
//! | operand | lane | item or register |
//! |---|---|---|
//! | `A[i][k]` | `i + M · (k / L % G)` | `k % L + L · (k / (L · G))` |
//! | `B[k][j]` | `j + N · (k / L % G)` | `k % L + L · (k / (L · G))` |
//! | `C[i][j]` | `j + N · (i / R % G)` | `i % R + R · (i / (R · G))` |
//! | scale of `A[i][k]` | `i + M · (k / 32)` | 0 |
//! | scale of `B[k][j]` | `j + N · (k / 32)` | 0 |
//!
//! A lane holds one run of K, `L = K / G`, but two of 16 where the f8f6f4 instructions take floats of
//! eight bits. It holds runs of `R` rows of C: four, and of float64 one, so that its rows are four apart.
//!
//! A permutation of K that A and B share changes no plain product; with scales, or with elements of
//! eight bits on one side and of four on the other, it does. What is known of both, and from where,
//! is in `docs/amd-emulator.md`.

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
    let groups = LANES / m;
    let run = rows_in_a_run(inst);
    // Lines are the rows of A, or the columns of B.
    let held = |lines: usize, along_k: usize, element: Scalar| {
        let run_of_k = run_of_k(inst, element);
        let lanes = [
            Digit::new(lines, 1, m),
            Digit::new(along_k, run_of_k, groups),
        ];
        let runs = k / (run_of_k * groups);
        let slots = [
            Digit::new(along_k, 1, run_of_k),
            Digit::new(along_k, run_of_k * groups, runs),
        ];
        (lanes, slots)
    };
    let scales = |lines: usize, along_k: usize| {
        let parts = k / i64::from(MmaInst::SCALED);
        [Digit::new(lines, 1, m), Digit::new(along_k, 1, parts)]
    };
    Some(match operand {
        Operand::A => {
            let (lanes, slots) = held(ROW, COL, inst.a);
            table([m, k], &lanes, &slots)
        }
        Operand::B => {
            let (lanes, slots) = held(COL, ROW, inst.b);
            table([k, m], &lanes, &slots)
        }
        Operand::ScaleA | Operand::ScaleB if !inst.scaled => return None,
        Operand::ScaleA => table(operand.shape(inst), &scales(ROW, COL), &[]),
        Operand::ScaleB => table(operand.shape(inst), &scales(COL, ROW), &[]),
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

/// Neighbours along K of a row of A, or a column of B, that a lane holds.
fn run_of_k(inst: &MmaInst, element: Scalar) -> i64 {
    let all = i64::from(inst.k) * i64::from(inst.m) / LANES;
    match element.bits() {
        8 => all.min(16),
        _ => all,
    }
}

/// Neighbouring rows of C that a lane holds.
pub fn rows_in_a_run(inst: &MmaInst) -> i64 {
    match inst.acc {
        Scalar::F64 => 1,
        _ => 4,
    }
}

/// Whether gfx942 or gfx950 has the instruction. Those on 128 or 64 of K take scales, and factors of two
/// types.
pub fn exists(inst: &MmaInst) -> bool {
    let of_b = MmaInst { a: inst.b, ..*inst };
    takes(inst) && (inst.a == inst.b || is_wide(inst) && takes(&of_b))
}

/// Whether the operands of a lane are 32 floats of at most eight bits each.
fn is_wide(inst: &MmaInst) -> bool {
    let items = i64::from(inst.k) * i64::from(inst.m) / LANES;
    inst.a.bits() <= 8 && inst.a != Scalar::I8 && items == 32
}

/// Whether there is the instruction for factors of the type of A.
fn takes(inst: &MmaInst) -> bool {
    let acc = match inst.a {
        Scalar::I8 => Scalar::I32,
        Scalar::F64 => Scalar::F64,
        _ => Scalar::F32,
    };
    let ks: &[u16] = match (inst.a, inst.m) {
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
    let known = inst.m == inst.n && ks.contains(&inst.k);
    inst.acc == acc && known && (is_wide(inst) || !inst.scaled)
}
