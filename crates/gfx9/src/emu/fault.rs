//! What stops a wave.

use std::fmt;

use crate::asm::{Register, RegisterFile};

/// Why an instruction could not be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The instruction is known and the emulator does not run it.
    Unsupported,
    /// An operand that the instruction cannot have.
    Operand,
    /// A register that the kernel was not given.
    Register(RegisterFile, u16),
    /// A matrix instruction with lanes that are not active.
    InactiveLanes,
    /// An address that belongs to nothing.
    Address(u64),
    /// An address that is not a multiple of what it is used for.
    Unaligned(u64),
    /// More scalar loads are under way than there are registers to load.
    Unwaited,
    /// `s_trap`.
    Trap,
    /// It ran past its last instruction, or jumped to nowhere.
    Nowhere,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported => f.write_str("the emulator does not run this instruction"),
            Self::Operand => f.write_str("the instruction cannot have this operand"),
            Self::Register(file, index) => {
                let register = Register {
                    file: *file,
                    index: *index,
                };
                write!(f, "the kernel was not given {register}")
            }
            Self::InactiveLanes => {
                f.write_str("a matrix instruction runs with lanes that are not active")
            }
            Self::Address(address) => write!(f, "address {address:#x} belongs to no memory"),
            Self::Unaligned(address) => write!(f, "address {address:#x} is not aligned"),
            Self::Unwaited => f.write_str("scalar loads are never waited for"),
            Self::Trap => f.write_str("the kernel trapped"),
            Self::Nowhere => f.write_str("the wave runs past the kernel's last instruction"),
        }
    }
}
