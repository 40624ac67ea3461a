//! Which lane holds which element of a matrix instruction's operands.
//!
//! Each map is a [`Fragment`] from the operand's indices to the lane and the element of that
//! lane's registers, packed elements counted one by one: slot 5 of an f16 operand is the upper
//! half of the third 32-bit register. A is indexed `(m, k)`, B `(k, n)`, C and D `(m, n)`, and the
//! scales of A and B like these, by runs of K that have one.

pub mod ldmatrix;
pub mod mfma;
pub mod mma;
pub mod mma_sp;
pub mod wgmma;

use tilewright_ir::micro_op::{MmaFamily, MmaInst};

use crate::Fragment;
use crate::radix::Digit;

/// An operand of `D[m, n] = A[m, k] · B[k, n] + C[m, n]`; C and D are placed alike. Instructions that
/// take scales have those of A and of B too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operand {
    A,
    B,
    C,
    ScaleA,
    ScaleB,
}

impl Operand {
    pub const ALL: [Operand; 5] = [
        Operand::A,
        Operand::B,
        Operand::C,
        Operand::ScaleA,
        Operand::ScaleB,
    ];

    /// The shape of the operand of an instruction.
    pub fn shape(self, inst: &MmaInst) -> [i64; 2] {
        let (m, n, k) = (inst.m.into(), inst.n.into(), inst.k.into());
        match self {
            Operand::A => [m, inst.left_k().into()],
            Operand::B => [k, n],
            Operand::C => [m, n],
            Operand::ScaleA => [m, k / i64::from(MmaInst::SCALED)],
            Operand::ScaleB => [k / i64::from(MmaInst::SCALED), n],
        }
    }
}

/// The lane map of an operand. `None` when there is no such instruction, or when it does not
/// take the operand from registers (B of wgmma) or at all (scales).
pub fn lane_map(inst: &MmaInst, operand: Operand) -> Option<Fragment> {
    match inst.family {
        MmaFamily::MmaSync => mma::lane_map(inst, operand),
        MmaFamily::MmaSp => mma_sp::lane_map(inst, operand),
        MmaFamily::Wgmma => wgmma::lane_map(inst, operand),
        MmaFamily::Mfma => mfma::lane_map(inst, operand),
    }
}

/// The indices of a two-dimensional operand.
const ROW: usize = 0;
const COL: usize = 1;

/// A map that this crate's tables spell out.
fn table(shape: [i64; 2], lanes: &[Digit], slots: &[Digit]) -> Fragment {
    Fragment::from_digits(&shape, 1, lanes, slots)
        .expect("the lane tables are bijections, which the tests check one by one")
}
