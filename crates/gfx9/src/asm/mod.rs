//! LLVM's AMDGPU assembly as data: functions, instructions, labels, metadata.
//!
//! The reader takes what `clang -S` prints and what a person writes in that style. Each
//! instruction is decoded once, to its operation in [`crate::isa`]; one that the table does not
//! have, and a line that cannot be taken apart, is an error with that line.

mod access;
pub(crate) mod blocks;
mod descriptor;
mod loops;
mod metadata;
mod operand;
mod parse;
mod scan;
mod text;

use std::collections::BTreeMap;
use std::fmt;

use rustc_hash::FxHashMap;

pub use access::{Access, Counter, Use};
pub use descriptor::Descriptor;
pub use loops::{Loop, weight};
pub use metadata::{Argument, Needs};
pub use operand::{
    Marks, Operand, Operands, PRIVATE_BASE, Register, RegisterFile, Registers, SHARED_BASE, Waited,
};
pub use parse::{ParseError, parse, parse_with_tables};
pub use text::Text;

use crate::isa::{DstUnused, Encoding, Flags, Format, Modifiers, Opcode};

/// One assembly file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// What it was compiled for, `gfx950`.
    pub arch: Option<String>,
    pub functions: Vec<Function>,
    /// The files that [`Place`]s are in, by number.
    pub files: FxHashMap<u32, String>,
    /// Objects in memory that belong to the program, with what they start as.
    pub objects: BTreeMap<String, Vec<u8>>,
}

/// A place in the source that an instruction comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    pub file: u32,
    pub line: u32,
}

/// A kernel, or a function that kernels call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Function {
    pub name: String,
    /// The line of its label.
    pub line: u32,
    pub instructions: Vec<Instruction>,
    /// Where each label points: the index of the instruction behind it.
    pub labels: FxHashMap<String, usize>,
    /// What the metadata says of a kernel.
    pub needs: Option<Needs>,
    /// How a kernel is started.
    pub descriptor: Option<Descriptor>,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// Its line in the file, from 1; see [`parse_with_tables`].
    pub line: u32,
    /// As it is written, without the comment.
    pub text: Text,
    pub op: Opcode,
    pub encoding: Encoding,
    pub operands: Operands,
    pub modifiers: Modifiers,
    /// It comes from inline assembly, where the compiler looks for no hazards.
    pub inline: bool,
    pub place: Option<Place>,
}

/// What an `s_waitcnt` waits for: at most this many operations of a counter may be left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Wait {
    pub vmcnt: Option<u8>,
    pub lgkmcnt: Option<u8>,
}

impl Program {
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|f| f.name == name)
    }

    /// The functions that the metadata lists.
    pub fn kernels(&self) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(|f| f.needs.is_some())
    }
}

impl Instruction {
    pub fn is_mfma(&self) -> bool {
        self.op.is_mfma()
    }

    /// A copy from global memory to LDS that passes no registers.
    pub fn is_lds_copy(&self) -> bool {
        self.op.is(Flags::LDS_COPY) || (self.op.format() == Format::Mubuf && self.modifiers.lds)
    }

    /// A load from LDS; lane permutations use the same counter and are none.
    pub fn is_lds_read(&self) -> bool {
        self.is_lds_access() && !self.op.results().is_empty() && self.data_sources() == 0
    }

    pub fn is_lds_write(&self) -> bool {
        use Opcode::*;
        matches!(
            self.op,
            ds_write_b8
                | ds_write_b16
                | ds_write_b32
                | ds_write_b64
                | ds_write_b96
                | ds_write_b128
                | ds_write_b8_d16_hi
                | ds_write_b16_d16_hi
                | ds_write2_b32
                | ds_write2_b64
                | ds_write2st64_b32
                | ds_write2st64_b64
        )
    }

    /// An operation on LDS other than a load or a store; lane permutations touch no memory.
    pub fn is_lds_atomic(&self) -> bool {
        self.is_lds_access() && !self.is_lds_read() && !self.is_lds_write()
    }

    /// Touches LDS from registers, or to them.
    pub fn is_lds_access(&self) -> bool {
        let lanes = matches!(
            self.op,
            Opcode::ds_bpermute_b32
                | Opcode::ds_permute_b32
                | Opcode::ds_swizzle_b32
                | Opcode::ds_nop
        );
        self.op.format() == Format::Ds && !lanes
    }

    /// Sources behind the address.
    fn data_sources(&self) -> usize {
        self.op.sources().len().saturating_sub(1)
    }

    /// Cache maintenance, which only a fence of more than the block asks for.
    pub fn is_cache_fence(&self) -> bool {
        matches!(self.op, Opcode::buffer_inv | Opcode::buffer_wbl2)
    }

    pub fn is_barrier(&self) -> bool {
        self.op == Opcode::s_barrier
    }

    /// Private memory: spills, and arrays that did not fit registers.
    pub fn is_scratch(&self) -> bool {
        self.op.format() == Format::Scratch
    }

    /// An instruction of the vector unit other than a matrix one.
    pub fn is_valu(&self) -> bool {
        self.op.is_valu()
    }

    /// The label that a branch goes to.
    pub fn target(&self) -> Option<&str> {
        match (self.op.sources(), self.operands.first()) {
            ([crate::isa::Ty::label], Some(operand)) => self.symbol(operand),
            _ => None,
        }
    }

    /// The text of one of its operands that is a symbol.
    pub fn symbol(&self, operand: &Operand) -> Option<&str> {
        match operand {
            Operand::Symbol(start, end) => self.text.get(*start as usize..*end as usize),
            _ => None,
        }
    }

    /// Whether other lanes may be active behind it.
    pub fn writes_exec(&self) -> bool {
        let to_exec = |o: &Operand| o.registers().is_some_and(|r| r.file == RegisterFile::Exec);
        self.op.is(Flags::EXEC_OUT) || self.operands.iter().take(self.destinations()).any(to_exec)
    }

    /// Whether it goes on at its label, or behind itself, only where no lane is active: `Some(true)`
    /// for the label.
    pub fn branches_without_lanes(&self) -> Option<bool> {
        match self.op {
            Opcode::s_cbranch_execz => Some(true),
            Opcode::s_cbranch_execnz => Some(false),
            _ => None,
        }
    }

    /// Whether what follows it in the text cannot run next.
    pub fn ends_block(&self) -> bool {
        matches!(
            self.op,
            Opcode::s_branch | Opcode::s_endpgm | Opcode::s_setpc_b64 | Opcode::s_trap
        )
    }

    /// How many of the first operands are written.
    pub fn destinations(&self) -> usize {
        if self.is_lds_copy() {
            return 0;
        }
        match self.op.is(Flags::ATOMIC) {
            true => usize::from(self.modifiers.sc0),
            false => self.op.results().len(),
        }
    }

    /// Whether the destination is also a source: accumulating forms, and those that write part
    /// of a register.
    pub fn keeps_destination(&self) -> bool {
        self.op.is(Flags::KEEPS)
            || (self.op.is(Flags::ATOMIC) && self.op.format() == Format::Mubuf)
            || (self.encoding == Encoding::Dpp && !self.modifiers.bound_ctrl)
            || self.modifiers.dst_unused == DstUnused::Preserve
    }

    /// Bytes of code that it takes.
    pub fn bytes(&self) -> u32 {
        let long = match self.op.format() {
            Format::Vop3
            | Format::Vop3p
            | Format::Mfma
            | Format::Ds
            | Format::Mubuf
            | Format::Global
            | Format::Flat
            | Format::Scratch
            | Format::Smem => true,
            Format::Vop1 | Format::Vop2 | Format::Vopc => {
                !matches!(self.encoding, Encoding::E32 | Encoding::Plain)
            }
            _ => false,
        };
        let scaled = self.op.is_mfma() && self.op.sources().len() > 3;
        let literal = self.op.format() != Format::Sopk
            && self.op.format() != Format::Sopp
            && self.operands.iter().any(Operand::is_literal);
        match long {
            _ if scaled => 16,
            true => 8,
            false => 4 + 4 * u32::from(literal),
        }
    }

    /// What an `s_waitcnt` waits for.
    pub fn wait(&self) -> Option<Wait> {
        if self.op != Opcode::s_waitcnt {
            return None;
        }
        let mut wait = Wait::default();
        for operand in &self.operands {
            match operand {
                Operand::Count { counter, value } => {
                    let value = u8::try_from(*value).unwrap_or(u8::MAX);
                    match counter {
                        Waited::Vmcnt => wait.vmcnt = Some(value),
                        Waited::Lgkmcnt => wait.lgkmcnt = Some(value),
                        Waited::Expcnt => {}
                    }
                }
                // The word itself: vmcnt in bits 3:0 and 15:14, lgkmcnt in 11:8.
                Operand::Integer(word) => {
                    let vm = (word & 15) | ((word >> 14) & 3) << 4;
                    let lgkm = (word >> 8) & 15;
                    wait.vmcnt = (vm < 63).then_some(vm as u8);
                    wait.lgkmcnt = (lgkm < 15).then_some(lgkm as u8);
                }
                _ => {}
            }
        }
        Some(wait)
    }
}

impl Wait {
    pub fn vm(count: u8) -> Self {
        Self {
            vmcnt: Some(count),
            lgkmcnt: None,
        }
    }

    pub fn lgkm(count: u8) -> Self {
        Self {
            vmcnt: None,
            lgkmcnt: Some(count),
        }
    }

    /// Both waits at once.
    pub fn and(self, other: Self) -> Self {
        let least = |a: Option<u8>, b: Option<u8>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, other) => one.or(other),
        };
        Self {
            vmcnt: least(self.vmcnt, other.vmcnt),
            lgkmcnt: least(self.lgkmcnt, other.lgkmcnt),
        }
    }

    /// Whether who waits so has waited for all that another wait asks for.
    pub fn serves(self, asked: Self) -> bool {
        let strict = |got: Option<u8>, asked: Option<u8>| match (got, asked) {
            (_, None) => true,
            (Some(got), Some(asked)) => got <= asked,
            (None, Some(_)) => false,
        };
        strict(self.vmcnt, asked.vmcnt) && strict(self.lgkmcnt, asked.lgkmcnt)
    }

    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.vmcnt, self.lgkmcnt) {
            (Some(vm), Some(lgkm)) => write!(f, "vmcnt({vm}) lgkmcnt({lgkm})"),
            (Some(vm), None) => write!(f, "vmcnt({vm})"),
            (None, Some(lgkm)) => write!(f, "lgkmcnt({lgkm})"),
            (None, None) => write!(f, "nothing"),
        }
    }
}
