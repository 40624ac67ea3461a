//! The vector unit: what its instructions do to the registers of the active lanes.
//!
//! - `sources`: what an instruction reads and where its result goes; `map`: loops over the lanes;
//! - `float`, `double`, `int`: arithmetic by type; `divide`: the steps of a division;
//! - `convert`, `scaled`: from type to type; `packed`: two results at once;
//! - `compare`: bits a lane; `lanes`: from lane to lane.
//!
//! Rounding is to nearest, ties to even, which is how kernels start. NaN of results are some NaN.
//! [`Fault::Unsupported`] are, of what the table has:
//!
//! - `v_mad_f16`, `v_mac_f16`, `v_madmk_f16` and `v_madak_f16`, which lose small floats, so that
//!   compilers avoid them;
//! - `v_cvt_sr_*`, which round by random bits in ways that the manual leaves open;
//! - `v_cvt_pk_u8_f32`, `v_trig_preop_f64`;
//! - `clamp` on integer operations other than sums and differences.

mod compare;
mod convert;
mod divide;
mod double;
mod float;
mod int;
mod lanes;
mod map;
mod packed;
mod scaled;
mod sources;

pub(super) use sources::keeps_high_half;

use crate::asm::Instruction;
use crate::isa::{Flags, Format, Opcode, Ty};

use super::Arch;
use super::fault::Fault;
use super::wave::Wave;

impl Wave {
    pub(super) fn valu(&mut self, instruction: &Instruction, arch: Arch) -> Result<(), Fault> {
        let op = instruction.op;
        match op.format() {
            Format::Vopc => return self.compare(instruction),
            Format::Vop3p if !is_accumulator_move(op) => return self.packed(instruction),
            _ => {}
        }
        if is_plain(op) {
            let sources = self.sources(instruction)?;
            let modifiers = &instruction.modifiers;
            let values = match op.results() {
                [Ty::f32] => float::single(op, &sources).or_else(|| convert::word(op, &sources)),
                [Ty::f16] => float::half(op, &sources).or_else(|| convert::word(op, &sources)),
                [Ty::p16] => packed::both_halves(op, &sources, modifiers.clamp),
                _ => int::word(op, &sources, modifiers.clamp, modifiers.bitop3)
                    .or_else(|| float::single(op, &sources))
                    .or_else(|| float::half(op, &sources))
                    .or_else(|| convert::word(op, &sources)),
            };
            if let Some(values) = values {
                return self.put(instruction, values);
            }
        }
        let done = self.carries_and_wide(instruction)?.is_some()
            || self.lane_moves(instruction)?.is_some()
            || self.divide(instruction)?.is_some()
            || self.convert_bytes(instruction, arch)?.is_some()
            || self.convert_scaled(instruction)?.is_some()
            || (op.is(Flags::DOUBLE) && self.double(instruction)?.is_some());
        match done {
            true => Ok(()),
            false => Err(Fault::Unsupported),
        }
    }
}

/// Whether an operation reads registers of the lanes and writes one of them.
fn is_plain(op: Opcode) -> bool {
    let single = |ty: &Ty| ty.registers() == 1;
    op.results().len() == 1
        && op.results().iter().all(single)
        && op.sources().iter().all(single)
        && !op.is(Flags::SCALAR_RESULT)
        && !op.is(Flags::VCC_IN)
}

fn is_accumulator_move(op: Opcode) -> bool {
    matches!(op, Opcode::v_accvgpr_read_b32 | Opcode::v_accvgpr_write_b32)
}
