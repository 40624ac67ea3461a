//! The device header in CUDA: on the compiler's built-ins and inline PTX alone.

pub(super) mod wgmma;

use std::fmt::Write as _;

use tilewright_ir::{Fp8Formats, Machine, MmaInst, Scalar, Scope};

use super::Piece;

/// The text of a piece, and what must come before it.
pub(super) fn parts(piece: Piece, machine: &Machine) -> (&'static str, &'static [Piece]) {
    let adds_four = |scalar| machine.atomic_add_lanes(Scope::Global, scalar) >= 4;
    match piece {
        Piece::Core => (include_str!("cuda/core.h"), &[]),
        Piece::F16 => (include_str!("cuda/f16.h"), &[Piece::Core]),
        Piece::Bf16 => (include_str!("cuda/bf16.h"), &[Piece::Core]),
        Piece::Small => (include_str!("cuda/small.h"), &[Piece::Core]),
        Piece::Fp8 if machine.fp8_conversions == Some(Fp8Formats::Ocp) => {
            (include_str!("cuda/fp8_hardware.h"), &[Piece::Core])
        }
        Piece::Fp8 => (include_str!("cuda/fp8_software.h"), &[Piece::Small]),
        // Single conversions serve.
        Piece::Fp8Pairs => ("", &[]),
        Piece::Fnuz => (include_str!("cuda/fnuz_software.h"), &[Piece::Small]),
        Piece::Int4 => (include_str!("cuda/int4.h"), &[Piece::Core]),
        Piece::Packed => (include_str!("cuda/packed.h"), &[Piece::Core]),
        Piece::Regs => (include_str!("cuda/regs.h"), &[Piece::Core]),
        Piece::Memory => (include_str!("cuda/memory.h"), &[Piece::Regs]),
        Piece::Runs => (include_str!("cuda/runs.h"), &[Piece::Memory]),
        Piece::Apart => (
            concat!(
                include_str!("cuda/put_row.h"),
                "\n",
                include_str!("cuda/apart.h")
            ),
            &[Piece::Memory],
        ),
        Piece::Place => (include_str!("cuda/place.h"), &[Piece::Core]),
        // No CUDA target has scalar registers, buffer instructions and transposing reads.
        Piece::Version | Piece::Tensor | Piece::BufferLoad | Piece::Transposed => ("", &[]),
        Piece::Shared => (include_str!("cuda/shared.h"), &[Piece::Core]),
        Piece::Async => (include_str!("cuda/async.h"), &[Piece::Shared]),
        Piece::Matrix => (include_str!("cuda/matrix.h"), &[Piece::Shared]),
        Piece::Wgmma => (include_str!("cuda/wgmma.h"), &[Piece::Shared]),
        Piece::StMatrix => (include_str!("cuda/stmatrix.h"), &[Piece::Shared]),
        Piece::Sparse => (include_str!("cuda/sparse.h"), &[Piece::Core]),
        Piece::Integer => (include_str!("cuda/integer.h"), &[Piece::Core]),
        Piece::ToInt => (include_str!("cuda/to_int.h"), &[Piece::Core]),
        Piece::Math => (include_str!("cuda/math.h"), &[Piece::Core]),
        Piece::Atomic => (
            concat!(
                include_str!("cuda/atomic_words.h"),
                "\n",
                include_str!("cuda/atomic.h")
            ),
            &[Piece::Core],
        ),
        Piece::AtomicF16 => (
            include_str!("cuda/atomic_f16.h"),
            &[Piece::F16, Piece::Atomic],
        ),
        // The loop of compare-and-swap serves bfloat16.
        Piece::AtomicBf16 => ("", &[Piece::Bf16, Piece::Atomic]),
        Piece::AddF32 => (include_str!("cuda/add_f32.h"), &[Piece::Core]),
        Piece::AddF16 if !adds_four(Scalar::F16) => (include_str!("cuda/add_two.h"), &[Piece::F16]),
        Piece::AddF16 => (ADD_TWO_OR_FOUR, &[Piece::F16]),
        Piece::AddBf16 if !adds_four(Scalar::BF16) => {
            (include_str!("cuda/add_bf16_sm80.h"), &[Piece::Bf16])
        }
        Piece::AddBf16 => (ADD_TWO_OR_FOUR, &[Piece::Bf16]),
        Piece::StorePacked => (
            include_str!("cuda/store_packed.h"),
            &[Piece::Packed, Piece::Atomic],
        ),
        Piece::Warp => (include_str!("cuda/warp.h"), &[Piece::Core]),
        Piece::Barriers => (include_str!("cuda/barriers.h"), &[Piece::Core]),
        Piece::Bulk => (
            include_str!("cuda/bulk.h"),
            &[Piece::Shared, Piece::Barriers],
        ),
        Piece::BulkEvict => (include_str!("cuda/bulk_evict.h"), &[Piece::Bulk]),
        Piece::Cluster => (include_str!("cuda/cluster.h"), &[Piece::Barriers]),
        Piece::Multicast => (include_str!("cuda/multicast.h"), &[Piece::Bulk]),
        Piece::Prefetch => (include_str!("cuda/prefetch.h"), &[Piece::Core]),
        // What waits are called elsewhere.
        Piece::Waits | Piece::Sums => ("", &[]),
        Piece::Swizzle => (include_str!("cuda/swizzle.h"), &[Piece::Core]),
        Piece::Grid => (include_str!("cuda/grid.h"), &[Piece::Core]),
        // The compiler's own.
        Piece::Print => ("", &[]),
    }
}

/// Vector atomics of a type of 16 bits, which stands in place of `HALF`.
const ADD_TWO_OR_FOUR: &str = concat!(
    include_str!("cuda/add_two.h"),
    "\n",
    include_str!("cuda/add_four.h")
);

/// The name of a matrix instruction's wrapper.
pub(super) fn mma_name(inst: &MmaInst) -> String {
    let (ab, acc) = (ptx_type(inst.a), ptx_type(inst.acc));
    let sparse = if inst.is_sparse() { "_sp" } else { "" };
    format!("mma{sparse}_m{}n{}k{}_{ab}_{acc}", inst.m, inst.n, inst.k)
}

/// `D += A · B` of one warp, on the registers of each operand; of a sparse A also on its metadata.
pub(super) fn mma_wrapper(inst: &MmaInst) -> String {
    // Registers of a lane: of 32 bits, or of 64 where an element has as many.
    let words = |rows: u16, columns: u16, scalar: Scalar| {
        u32::from(rows) * u32::from(columns) * scalar.bits() / scalar.bits().max(32) / 32
    };
    let (a, b) = (
        words(inst.m, inst.left_k(), inst.a),
        words(inst.k, inst.n, inst.a),
    );
    let c = words(inst.m, inst.n, inst.acc);
    let tf32 = inst.a == Scalar::TF32;
    let fp8 = matches!(inst.a, Scalar::F8E4M3FN | Scalar::F8E5M2);
    let (element, class) = match inst.acc {
        Scalar::F32 => ("float", "f"),
        Scalar::F64 => ("double", "d"),
        Scalar::I32 => ("int", "r"),
        _ => ("unsigned", "r"),
    };
    let (operand, operand_class) = match inst.a {
        Scalar::TF32 => ("float", "r"),
        Scalar::F64 => ("double", "d"),
        _ => ("unsigned", "r"),
    };
    let list = |first: u32, count: u32| {
        let names: Vec<String> = (first..first + count).map(|i| format!("%{i}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let bind = |constraint: &str, name: &str, count: u32| {
        let each: Vec<String> = (0..count)
            .map(|i| match (tf32 || fp8) && name != "c" {
                true => format!("\"{constraint}\"(own_{name}[{i}])"),
                false => format!("\"{constraint}\"({name}[{i}])"),
            })
            .collect();
        each.join(", ")
    };
    let (ab, acc) = (ptx_type(inst.a), ptx_type(inst.acc));
    let mut text = String::from("namespace tw {\n\n");
    let _ = writeln!(
        text,
        "TW_FN void {}({element}* c, const {operand}* a, const {operand}* b{}) {{",
        mma_name(inst),
        if inst.is_sparse() { ", unsigned e" } else { "" }
    );
    if tf32 {
        // The machine drops the low bits of a float32; rounding is nearer.
        for (name, count) in [("a", a), ("b", b)] {
            let _ = writeln!(text, "  unsigned own_{name}[{count}];");
            let _ = writeln!(
                text,
                "  for (int i = 0; i < {count}; ++i)\n    asm(\"cvt.rna.tf32.f32 %0, %1;\" : \
                 \"=r\"(own_{name}[i]) : \"f\"({name}[i]));"
            );
        }
    }
    if fp8 {
        // ptxas 13.0 converts the upper half of an operand that it knows to be zero to 2^-6. Of the
        // lanes before one it knows nothing; the last bit of their mask is never set.
        text += "  unsigned zero;\n  asm(\"mov.u32 %0, %%lanemask_lt;\" : \"=r\"(zero));\n  \
                 zero >>= 31;\n";
        for (name, count) in [("a", a), ("b", b)] {
            let _ = writeln!(text, "  unsigned own_{name}[{count}];");
            let _ = writeln!(
                text,
                "  for (int i = 0; i < {count}; ++i) own_{name}[i] = {name}[i] | zero;"
            );
        }
    }
    // The metadata is that of the lanes that the selector 0 names.
    let (name, told, metadata) = match inst.is_sparse() {
        true => (
            "TW_SPARSE \"",
            format!(", %{}, 0x0", c + a + b),
            ", \"r\"(e)",
        ),
        false => ("\"mma.sync.aligned.", String::new(), ""),
    };
    let _ = writeln!(
        text,
        "  asm({name}m{}n{}k{}.row.col.{acc}.{ab}.{ab}.{acc} \"\n      \
         \"{}, {}, {}, {}{told};\"\n      : {}\n      : {}, {}{metadata});",
        inst.m,
        inst.n,
        inst.k,
        list(0, c),
        list(c, a),
        list(c + a, b),
        list(0, c),
        bind(&format!("+{class}"), "c", c),
        bind(operand_class, "a", a),
        bind(operand_class, "b", b),
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
        Scalar::F64 => "f64",
        Scalar::I8 => "s8",
        Scalar::U8 => "u8",
        Scalar::I32 => "s32",
        Scalar::F8E4M3FN => "e4m3",
        Scalar::F8E5M2 => "e5m2",
        other => other.name(),
    }
}
