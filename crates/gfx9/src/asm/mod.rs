//! LLVM's AMDGPU assembly as data: functions, instructions, labels, metadata.
//!
//! The reader takes what `clang -S` prints and what a person writes in that style. It keeps every
//! instruction it meets, known or not, with its line; a line it cannot take apart is an error
//! with that line.

mod access;
mod blocks;
mod loops;
mod metadata;
mod operand;
mod parse;

use std::collections::BTreeMap;
use std::fmt;

pub use access::{Access, Counter};
pub use loops::Loop;
pub use metadata::{Argument, Needs};
pub use operand::{Operand, Register, RegisterFile, Registers};
pub use parse::{ParseError, parse};

/// One assembly file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// What it was compiled for, `gfx950`.
    pub arch: Option<String>,
    pub functions: Vec<Function>,
}

/// A kernel, or a function that kernels call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Function {
    pub name: String,
    /// The line of its label.
    pub line: u32,
    pub instructions: Vec<Instruction>,
    /// Where each label points: the index of the instruction behind it.
    pub labels: BTreeMap<String, usize>,
    /// What the metadata says of a kernel.
    pub needs: Option<Needs>,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// Its line in the file, from 1.
    pub line: u32,
    /// As it is written, without the comment.
    pub text: String,
    pub mnemonic: String,
    pub operands: Vec<Operand>,
    pub modifiers: Vec<Modifier>,
    /// It comes from inline assembly, where the compiler looks for no hazards.
    pub inline: bool,
}

/// A word behind the operands: `lds`, `offset:16`, `quad_perm:[1,0,3,2]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modifier {
    pub name: String,
    pub value: Option<String>,
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
    pub fn has(&self, modifier: &str) -> bool {
        self.modifiers.iter().any(|m| m.name == modifier)
    }

    pub fn modifier(&self, name: &str) -> Option<&str> {
        let found = self.modifiers.iter().find(|m| m.name == name)?;
        found.value.as_deref()
    }

    pub fn is_mfma(&self) -> bool {
        self.mnemonic.starts_with("v_mfma_") || self.mnemonic.starts_with("v_smfmac_")
    }

    /// A copy from global memory to LDS that passes no registers.
    pub fn is_lds_copy(&self) -> bool {
        (self.mnemonic.starts_with("buffer_load_") && self.has("lds"))
            || self.mnemonic.starts_with("global_load_lds_")
    }

    /// A load from LDS; lane permutations use the same counter and are none.
    pub fn is_lds_read(&self) -> bool {
        self.mnemonic.starts_with("ds_read")
    }

    pub fn is_lds_write(&self) -> bool {
        self.mnemonic.starts_with("ds_write")
    }

    /// An operation on LDS other than a load or a store; lane permutations touch no memory.
    pub fn is_lds_atomic(&self) -> bool {
        let name = self.mnemonic.as_str();
        let other = ["ds_bpermute", "ds_permute", "ds_swizzle", "ds_nop"];
        name.starts_with("ds_")
            && !other.iter().any(|p| name.starts_with(p))
            && !self.is_lds_read()
            && !self.is_lds_write()
    }

    /// Cache maintenance, which only a fence of more than the block asks for.
    pub fn is_cache_fence(&self) -> bool {
        let names = ["buffer_inv", "buffer_wbl2", "buffer_wbinvl1"];
        names.iter().any(|p| self.mnemonic.starts_with(p))
    }

    pub fn is_barrier(&self) -> bool {
        self.mnemonic == "s_barrier"
    }

    /// Private memory: spills, and arrays that did not fit registers.
    pub fn is_scratch(&self) -> bool {
        self.mnemonic.starts_with("scratch_")
    }

    /// An instruction of the vector unit other than a matrix one.
    pub fn is_valu(&self) -> bool {
        self.mnemonic.starts_with("v_") && !self.is_mfma()
    }

    /// The label that a branch goes to.
    pub fn target(&self) -> Option<&str> {
        let branch =
            self.mnemonic.starts_with("s_cbranch_") || matches!(self.mnemonic.as_str(), "s_branch");
        match (branch, self.operands.first()) {
            (true, Some(Operand::Symbol(label))) => Some(label),
            _ => None,
        }
    }

    /// Whether other lanes may be active behind it.
    pub fn writes_exec(&self) -> bool {
        let to_exec = |o: &Operand| o.registers().is_some_and(|r| r.file == RegisterFile::Exec);
        self.mnemonic.contains("saveexec")
            || self.mnemonic.starts_with("v_cmpx")
            || self.operands.first().is_some_and(to_exec)
    }

    /// Whether it goes on at its label, or behind itself, only where no lane is active: `Some(true)`
    /// for the label.
    pub fn branches_without_lanes(&self) -> Option<bool> {
        match self.mnemonic.as_str() {
            "s_cbranch_execz" => Some(true),
            "s_cbranch_execnz" => Some(false),
            _ => None,
        }
    }

    /// Whether what follows it in the text cannot run next.
    pub fn ends_block(&self) -> bool {
        matches!(
            self.mnemonic.as_str(),
            "s_branch" | "s_endpgm" | "s_setpc_b64" | "s_trap"
        )
    }

    /// What an `s_waitcnt` waits for.
    pub fn wait(&self) -> Option<Wait> {
        if self.mnemonic != "s_waitcnt" {
            return None;
        }
        let mut wait = Wait::default();
        for operand in &self.operands {
            match operand {
                Operand::Count { name, value } => {
                    let value = u8::try_from(*value).unwrap_or(u8::MAX);
                    match name.as_str() {
                        "vmcnt" => wait.vmcnt = Some(value),
                        "lgkmcnt" => wait.lgkmcnt = Some(value),
                        _ => {}
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
