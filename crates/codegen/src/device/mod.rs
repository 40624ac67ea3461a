//! The device header: what generated kernels call, in pieces.
//!
//! A kernel gets the pieces it uses and those they need, in one order. Everything is in the
//! namespace `tw`, stands on the compiler's built-ins and inline assembly, and includes nothing.
//! The wrappers of matrix instructions are made from the instruction's table.

mod cuda;
mod hip;

use std::borrow::Cow;
use std::collections::BTreeSet;

use tilewright_ir::{Dialect, Machine, Major, MmaFamily, MmaInst};

/// A part of the header. The order is that of the text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Piece {
    Core,
    F16,
    Bf16,
    Small,
    Fp8,
    Fnuz,
    Int4,
    Packed,
    Regs,
    Fp8Pairs,
    Memory,
    Runs,
    Apart,
    Place,
    Version,
    Tensor,
    BufferLoad,
    Shared,
    Async,
    Matrix,
    StMatrix,
    Sparse,
    Wgmma,
    Transposed,
    Integer,
    ToInt,
    Math,
    Atomic,
    AddF32,
    AddF16,
    AddBf16,
    AtomicF16,
    AtomicBf16,
    StorePacked,
    Warp,
    Barriers,
    Bulk,
    BulkEvict,
    Prefetch,
    Cluster,
    Multicast,
    Waits,
    Sums,
    Swizzle,
    Grid,
    Print,
}

impl Piece {
    /// The text for a machine.
    fn text(self, machine: &Machine) -> Cow<'static, str> {
        let text = self.parts(machine).0;
        match self {
            Piece::AtomicF16 | Piece::AddF16 => half(text, "f16", "_Float16"),
            Piece::AtomicBf16 | Piece::AddBf16 => half(text, "bf16", "short"),
            Piece::Sums => {
                let all = 0..machine.registers.accumulation;
                let names: Vec<String> = all.map(|n| format!("\"a{n}\"")).collect();
                text.replace("ACCUMULATION_REGISTERS", &names.join(", "))
                    .into()
            }
            _ => text.into(),
        }
    }

    /// The text as it is written, and what must come before it.
    fn parts(self, machine: &Machine) -> (&'static str, &'static [Piece]) {
        match machine.dialect {
            Dialect::Cuda => cuda::parts(self, machine),
            Dialect::Hip => hip::parts(self, machine),
        }
    }
}

/// A text for both 16-bit floats, for the one of this name; `native` is the type that builtins take.
fn half(text: &str, name: &str, native: &str) -> Cow<'static, str> {
    text.replace("HALF", name).replace("NATIVE", native).into()
}

/// What a program needs of the header.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    pieces: BTreeSet<Piece>,
    mma: Vec<MmaInst>,
    /// Those that add to sums by number, and whether vector instructions make their operands.
    numbered_mma: Vec<(MmaInst, bool)>,
    group_mma: Vec<GroupMma>,
}

/// A warp group's matrix instruction, and how its operands lie; A is absent where it lies in
/// registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GroupMma {
    pub mma: MmaInst,
    pub a: Option<Major>,
    pub b: Major,
    pub fresh: bool,
}

impl GroupMma {
    /// The name of its wrapper.
    pub fn name(&self) -> String {
        cuda::wgmma::name(self)
    }
}

impl Needs {
    pub fn piece(&mut self, piece: Piece) {
        self.pieces.insert(piece);
    }

    /// Returns the name of its wrapper.
    pub fn mma(&mut self, inst: MmaInst) -> String {
        self.pieces.insert(match inst.is_sparse() {
            true => Piece::Sparse,
            false => Piece::Core,
        });
        if !self.mma.contains(&inst) {
            self.mma.push(inst);
        }
        mma_name(&inst)
    }

    /// Returns the name of its wrapper.
    pub fn numbered_mma(&mut self, inst: MmaInst, computed: bool) -> String {
        self.pieces.insert(Piece::Sums);
        let wrapper = (inst, computed);
        if !self.numbered_mma.contains(&wrapper) {
            self.numbered_mma.push(wrapper);
        }
        hip::numbered_mma_name(&inst, computed)
    }

    pub fn group_mma(&mut self, op: GroupMma) {
        self.pieces.insert(Piece::Wgmma);
        if !self.group_mma.contains(&op) {
            self.group_mma.push(op);
        }
    }

    /// The header's text.
    pub fn text(&self, machine: &Machine) -> String {
        let mut all = BTreeSet::from([Piece::Core]);
        let mut open: Vec<Piece> = self.pieces.iter().copied().collect();
        while let Some(piece) = open.pop() {
            all.insert(piece);
            open.extend(piece.parts(machine).1);
        }
        let mut text = String::new();
        for piece in all {
            text += &piece.text(machine);
            text.push('\n');
        }
        for inst in &self.mma {
            text += &match inst.family {
                MmaFamily::Mfma => hip::mma_wrapper(inst),
                MmaFamily::MmaSync | MmaFamily::MmaSp | MmaFamily::Wgmma => cuda::mma_wrapper(inst),
            };
        }
        for (inst, computed) in &self.numbered_mma {
            text += &hip::numbered_mma_wrapper(inst, *computed);
        }
        for op in &self.group_mma {
            text += &cuda::wgmma::wrapper(op);
        }
        text
    }
}

/// The name of a matrix instruction's wrapper.
pub(crate) fn mma_name(inst: &MmaInst) -> String {
    match inst.family {
        MmaFamily::Mfma => hip::mma_name(inst),
        MmaFamily::MmaSync | MmaFamily::MmaSp | MmaFamily::Wgmma => cuda::mma_name(inst),
    }
}
