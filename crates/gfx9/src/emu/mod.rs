//! Runs compiled kernels: every lane of every wave, with all that is asynchronous.
//!
//! - `code`: a kernel made ready; `launch`: how it starts; `grid`: all blocks; `block`: one, with
//!   its waves in an order chosen by a seed, its barriers and waits;
//! - `wave`: registers; `salu`, `valu`, `mfma`: what instructions do to them;
//! - `lds`, `vmem`, `smem`, `atomics`, `transfer`: what memory instructions do; `queue`: those that
//!   are under way, and when they land;
//! - `order`: what happens before what, and who touched LDS; `memory`: global memory, and who
//!   touched it; `suspects` and `unknown`: loads that may not be used, and what becomes of them;
//! - `float`: small floats and their bits; `fault`: what stops a wave; `report`: what is found;
//! - `room`: what a launch takes of this machine's memory.

mod atomics;
mod block;
mod code;
mod fault;
mod float;
mod grid;
mod launch;
mod lds;
mod memory;
mod mfma;
mod order;
mod queue;
mod random;
mod report;
mod room;
mod salu;
mod smem;
mod suspects;
mod transfer;
mod unknown;
mod valu;
mod vmem;
mod wave;

use crate::asm::Instruction;

pub use fault::Fault;
pub use grid::{Outcome, run};
pub use launch::{Argument, Launch, STEPS};
pub use memory::{Buffer, Memory};
pub use queue::Landing;
pub use report::{Finding, Kind};
pub use room::{Needs, Refused};
pub use wave::{LANES, Lanes, Wave, Wide};

/// What a program was compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arch {
    Gfx942,
    Gfx950,
}

impl Arch {
    /// The machine of this name, as [`crate::asm::Program::arch`] has it.
    pub fn named(name: &str) -> Option<Arch> {
        match name {
            "gfx942" => Some(Arch::Gfx942),
            "gfx950" => Some(Arch::Gfx950),
            _ => None,
        }
    }
}

impl Wave {
    /// Does what an instruction of the scalar, vector or matrix unit does to the registers. The
    /// next instruction, memory and what is counted are the caller's.
    pub fn compute(&mut self, instruction: &Instruction, arch: Arch) -> Result<(), Fault> {
        match instruction.op {
            op if op.is_salu() => self.salu(instruction),
            op if op.is_valu() => self.valu(instruction, arch),
            op if op.is_mfma() => self.mfma(instruction, arch),
            _ => Err(Fault::Unsupported),
        }
    }
}
