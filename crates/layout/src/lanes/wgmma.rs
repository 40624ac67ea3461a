//! `wgmma.mma_async.m64nNk{8,16,32}`: four warps, each with 16 of the 64 rows.
//!
//! Source: PTX ISA, section "Asynchronous warpgroup-level matrix instructions", register
//! fragments. Warp `w` of the group has rows `16w..16w+16`. Inside, the accumulator is that of
//! `mma.sync` repeated along N in blocks of eight columns, and A from registers is the A of
//! `mma.sync` with the same K. B comes from shared memory only. N is any multiple of eight up
//! to 256; integer instructions take 8, 24 and the multiples of 16.

use tilewright_ir::Scalar;
use tilewright_ir::micro_op::MmaInst;

use super::{Operand, mma};
use crate::Fragment;

pub(super) fn lane_map(inst: &MmaInst, operand: Operand) -> Option<Fragment> {
    if !exists(inst) {
        return None;
    }
    match operand {
        Operand::A => Some(mma::a(64, inst.k.into(), (32 / inst.a.bits()).into())),
        Operand::B | Operand::ScaleA | Operand::ScaleB => None,
        Operand::C => Some(mma::c(64, inst.n.into())),
    }
}

/// Whether PTX has the shape for the types.
pub fn exists(inst: &MmaInst) -> bool {
    let types = match (inst.a, inst.k) {
        (Scalar::F16, 16) | (Scalar::F8E4M3FN | Scalar::F8E5M2, 32) => {
            matches!(inst.acc, Scalar::F16 | Scalar::F32)
        }
        (Scalar::BF16, 16) | (Scalar::TF32, 8) => inst.acc == Scalar::F32,
        (Scalar::I8 | Scalar::U8, 32) => inst.acc == Scalar::I32,
        _ => false,
    };
    let n = inst.n;
    let width = if inst.a.is_int() {
        n == 8 || n == 24 || n.is_multiple_of(16)
    } else {
        n.is_multiple_of(8)
    };
    types && width && inst.m == 64 && (8..=256).contains(&n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::{MmaFamily, Target};

    #[test]
    fn the_machine_has_what_exists() {
        let all = Target::Sm90a.machine().mma.iter().map(|m| m.inst);
        let groups: Vec<MmaInst> = all.filter(|i| i.family == MmaFamily::Wgmma).collect();
        assert!(groups.iter().all(exists));
        // Of floats every width, of integers those of PTX, each once.
        let count = |ab| groups.iter().filter(|i| i.a == ab).count();
        assert_eq!(count(Scalar::BF16), 32);
        assert_eq!(count(Scalar::F16), 64);
        assert_eq!(count(Scalar::F8E4M3FN), 32);
        assert_eq!(count(Scalar::F8E5M2), 32);
        assert_eq!(count(Scalar::I8), 18);
    }
}
