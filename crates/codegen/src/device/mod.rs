//! The device header: what generated kernels call, in pieces.
//!
//! A kernel gets the pieces it uses and those they need, in one order. Everything is in the
//! namespace `tw`, stands on the compiler's built-ins and inline assembly, and includes nothing.
//! The wrappers of matrix instructions are made from the instruction's table.

mod hip;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use tilewright_ir::{MmaFamily, MmaInst, Scalar, Target};

/// A part of the header. The order is that of the text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Piece {
    Core,
    F16,
    Bf16,
    Small,
    Fp8,
    Int4,
    Packed,
    Regs,
    Memory,
    Place,
    Version,
    Tensor,
    BufferLoad,
    Shared,
    Async,
    Matrix,
    StMatrix,
    Transposed,
    Integer,
    ToInt,
    Math,
    Atomic,
    AtomicF16,
    AddF32,
    AddF16,
    AddBf16,
    Warp,
    Barriers,
    Waits,
    Swizzle,
    Grid,
}

impl Piece {
    /// The text on a target.
    fn text(self, target: Target) -> Cow<'static, str> {
        let text = self.parts(target).0;
        match self {
            Piece::AddF16 => text.replace("HALF", "f16").into(),
            Piece::AddBf16 => text.replace("HALF", "bf16").into(),
            _ => text.into(),
        }
    }

    /// The text as it is written, and what must come before it.
    fn parts(self, target: Target) -> (&'static str, &'static [Piece]) {
        if target.is_amd() {
            return hip::parts(self, target);
        }
        let machine_fp8 = target != Target::Sm80;
        match self {
            Piece::Core => (include_str!("cuda/core.h"), &[]),
            Piece::F16 => (include_str!("cuda/f16.h"), &[Piece::Core]),
            Piece::Bf16 => (include_str!("cuda/bf16.h"), &[Piece::Core]),
            Piece::Small => (include_str!("cuda/small.h"), &[Piece::Core]),
            Piece::Fp8 if machine_fp8 => (include_str!("cuda/fp8_hardware.h"), &[Piece::Core]),
            Piece::Fp8 => (include_str!("cuda/fp8_software.h"), &[Piece::Small]),
            Piece::Int4 => (include_str!("cuda/int4.h"), &[Piece::Core]),
            Piece::Packed => (include_str!("cuda/packed.h"), &[Piece::Core]),
            Piece::Regs => (include_str!("cuda/regs.h"), &[Piece::Core]),
            Piece::Memory => (include_str!("cuda/memory.h"), &[Piece::Regs]),
            Piece::Place => (include_str!("cuda/place.h"), &[Piece::Core]),
            // Only AMD has scalar registers, buffer instructions and transposing reads.
            Piece::Version | Piece::Tensor | Piece::BufferLoad | Piece::Transposed => ("", &[]),
            Piece::Shared => (include_str!("cuda/shared.h"), &[Piece::Core]),
            Piece::Async => (include_str!("cuda/async.h"), &[Piece::Shared]),
            Piece::Matrix => (include_str!("cuda/matrix.h"), &[Piece::Shared]),
            Piece::StMatrix => (include_str!("cuda/stmatrix.h"), &[Piece::Shared]),
            Piece::Integer => (include_str!("cuda/integer.h"), &[Piece::Core]),
            Piece::ToInt => (include_str!("cuda/to_int.h"), &[Piece::Core]),
            Piece::Math => (include_str!("cuda/math.h"), &[Piece::Core]),
            Piece::Atomic => (include_str!("cuda/atomic.h"), &[Piece::Core]),
            Piece::AtomicF16 => (
                include_str!("cuda/atomic_f16.h"),
                &[Piece::F16, Piece::Atomic],
            ),
            Piece::AddF32 => (include_str!("cuda/add_f32.h"), &[Piece::Core]),
            Piece::AddF16 if target == Target::Sm80 => {
                (include_str!("cuda/add_two.h"), &[Piece::F16])
            }
            Piece::AddF16 => (ADD_TWO_OR_FOUR, &[Piece::F16]),
            Piece::AddBf16 if target == Target::Sm80 => {
                (include_str!("cuda/add_bf16_sm80.h"), &[Piece::Bf16])
            }
            Piece::AddBf16 => (ADD_TWO_OR_FOUR, &[Piece::Bf16]),
            Piece::Warp => (include_str!("cuda/warp.h"), &[Piece::Core]),
            Piece::Barriers => (include_str!("cuda/barriers.h"), &[Piece::Core]),
            // What waits are called elsewhere.
            Piece::Waits => ("", &[]),
            Piece::Swizzle => (include_str!("cuda/swizzle.h"), &[Piece::Core]),
            Piece::Grid => (include_str!("cuda/grid.h"), &[Piece::Core]),
        }
    }
}

/// Vector atomics of a type of 16 bits, which stands in place of `HALF`.
const ADD_TWO_OR_FOUR: &str = concat!(
    include_str!("cuda/add_two.h"),
    "\n",
    include_str!("cuda/add_four.h")
);

/// What a program needs of the header.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    pieces: BTreeSet<Piece>,
    mma: Vec<MmaInst>,
}

impl Needs {
    pub fn piece(&mut self, piece: Piece) {
        self.pieces.insert(piece);
    }

    pub fn mma(&mut self, inst: MmaInst) {
        self.pieces.insert(Piece::Core);
        if !self.mma.contains(&inst) {
            self.mma.push(inst);
        }
    }

    /// The header's text.
    pub fn text(&self, target: Target) -> String {
        let mut all = BTreeSet::from([Piece::Core]);
        let mut open: Vec<Piece> = self.pieces.iter().copied().collect();
        while let Some(piece) = open.pop() {
            all.insert(piece);
            open.extend(piece.parts(target).1);
        }
        let mut text = String::new();
        for piece in all {
            text += &piece.text(target);
            text.push('\n');
        }
        for inst in &self.mma {
            text += &match inst.family {
                MmaFamily::Mfma => hip::mma_wrapper(inst),
                MmaFamily::MmaSync | MmaFamily::Wgmma => mma_wrapper(inst),
            };
        }
        text
    }
}

/// The name of a matrix instruction's wrapper.
pub(crate) fn mma_name(inst: &MmaInst) -> String {
    if inst.family == MmaFamily::Mfma {
        return hip::mma_name(inst);
    }
    let (ab, acc) = (ptx_type(inst.ab), ptx_type(inst.acc));
    format!("mma_m{}n{}k{}_{ab}_{acc}", inst.m, inst.n, inst.k)
}

/// `D += A · B` of one warp, on the registers of each operand.
fn mma_wrapper(inst: &MmaInst) -> String {
    let words = |rows: u16, columns: u16, scalar: Scalar| {
        u32::from(rows) * u32::from(columns) * scalar.bits() / 32 / 32
    };
    let (a, b) = (
        words(inst.m, inst.k, inst.ab),
        words(inst.k, inst.n, inst.ab),
    );
    let c = words(inst.m, inst.n, inst.acc);
    let tf32 = inst.ab == Scalar::TF32;
    let (element, class) = match inst.acc {
        Scalar::F32 => ("float", "f"),
        Scalar::I32 => ("int", "r"),
        _ => ("unsigned", "r"),
    };
    let operand = if tf32 { "float" } else { "unsigned" };
    let list = |first: u32, count: u32| {
        let names: Vec<String> = (first..first + count).map(|i| format!("%{i}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let bind = |constraint: &str, name: &str, count: u32| {
        let each: Vec<String> = (0..count)
            .map(|i| match tf32 && name != "c" {
                true => format!("\"{constraint}\"(round_{name}[{i}])"),
                false => format!("\"{constraint}\"({name}[{i}])"),
            })
            .collect();
        each.join(", ")
    };
    let (ab, acc) = (ptx_type(inst.ab), ptx_type(inst.acc));
    let mut text = String::from("namespace tw {\n\n");
    let _ = writeln!(
        text,
        "TW_FN void {}({element}* c, const {operand}* a, const {operand}* b) {{",
        mma_name(inst)
    );
    if tf32 {
        // The machine drops the low bits of a float32; rounding is nearer.
        for (name, count) in [("a", a), ("b", b)] {
            let _ = writeln!(text, "  unsigned round_{name}[{count}];");
            let _ = writeln!(
                text,
                "  for (int i = 0; i < {count}; ++i)\n    asm(\"cvt.rna.tf32.f32 %0, %1;\" : \
                 \"=r\"(round_{name}[i]) : \"f\"({name}[i]));"
            );
        }
    }
    let _ = writeln!(
        text,
        "  asm(\"mma.sync.aligned.m{}n{}k{}.row.col.{acc}.{ab}.{ab}.{acc} \"\n      \
         \"{}, {}, {}, {};\"\n      : {}\n      : {}, {});",
        inst.m,
        inst.n,
        inst.k,
        list(0, c),
        list(c, a),
        list(c + a, b),
        list(0, c),
        bind(&format!("+{class}"), "c", c),
        bind("r", "a", a),
        bind("r", "b", b),
    );
    text += "}\n\n}  // namespace tw\n\n";
    text
}

/// The type's word in instruction names.
fn ptx_type(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::F16 => "f16",
        Scalar::BF16 => "bf16",
        Scalar::TF32 => "tf32",
        Scalar::F32 => "f32",
        Scalar::I8 => "s8",
        Scalar::U8 => "u8",
        Scalar::I32 => "s32",
        Scalar::F8E4M3FN => "e4m3",
        Scalar::F8E5M2 => "e5m2",
        other => other.name(),
    }
}
