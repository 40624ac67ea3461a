//! The device header in HIP: its words and the machine's instructions, on the compiler's
//! built-ins alone. Pieces that are plain C++ are shared with CUDA.

use std::fmt::Write as _;

use tilewright_ir::{Fp8Formats, Machine, MmaInst, Scalar};

use super::Piece;

/// The text of a piece, and what must come before it.
pub(super) fn parts(piece: Piece, machine: &Machine) -> (&'static str, &'static [Piece]) {
    match piece {
        Piece::Core => (
            concat!(
                include_str!("hip/core.h"),
                "\n",
                include_str!("cuda/core.h")
            ),
            &[],
        ),
        Piece::F16 => (include_str!("hip/f16.h"), &[Piece::Core]),
        Piece::Bf16 => (include_str!("hip/bf16.h"), &[Piece::Core]),
        Piece::Small => (include_str!("cuda/small.h"), &[Piece::Core]),
        Piece::Fp8 => match machine.fp8_conversions {
            Some(Fp8Formats::Ocp) => (
                concat!(
                    include_str!("hip/fp8_conversions.h"),
                    "\n",
                    include_str!("hip/fp8_hardware.h")
                ),
                &[Piece::Core],
            ),
            Some(Fp8Formats::Fnuz) => (include_str!("hip/fp8_by_fnuz.h"), &[Piece::Core]),
            None => (include_str!("cuda/fp8_software.h"), &[Piece::Small]),
        },
        Piece::Fnuz => match machine.fp8_conversions {
            Some(Fp8Formats::Fnuz) => (
                concat!(
                    include_str!("hip/fp8_conversions.h"),
                    "\n",
                    include_str!("hip/fnuz_hardware.h")
                ),
                &[Piece::Core],
            ),
            _ => (include_str!("cuda/fnuz_software.h"), &[Piece::Small]),
        },
        Piece::Int4 => (include_str!("cuda/int4.h"), &[Piece::Core]),
        Piece::Packed => (include_str!("cuda/packed.h"), &[Piece::Core]),
        Piece::Regs => (
            concat!(
                include_str!("cuda/regs.h"),
                "\n",
                include_str!("hip/pairs.h")
            ),
            &[Piece::Core],
        ),
        Piece::Fp8Pairs => (include_str!("hip/fp8_pairs.h"), &[Piece::Fp8, Piece::Regs]),
        Piece::Memory => (
            concat!(
                include_str!("cuda/memory.h"),
                "\n",
                include_str!("hip/wide.h")
            ),
            &[Piece::Regs],
        ),
        Piece::Runs => (include_str!("cuda/runs.h"), &[Piece::Memory]),
        Piece::Apart => (
            concat!(
                include_str!("hip/put_row.h"),
                "\n",
                include_str!("cuda/apart.h")
            ),
            &[Piece::Memory],
        ),
        Piece::Place => (include_str!("cuda/place.h"), &[Piece::Core]),
        Piece::Version => (include_str!("hip/version.h"), &[Piece::Core]),
        Piece::Tensor => (include_str!("hip/tensor.h"), &[Piece::Core]),
        Piece::BufferLoad => (
            include_str!("hip/buffer_load.h"),
            &[Piece::Memory, Piece::Tensor],
        ),
        Piece::Async => (include_str!("hip/copy.h"), &[Piece::Tensor]),
        Piece::Transposed => (include_str!("hip/transposed.h"), &[Piece::Core]),
        Piece::Integer => (include_str!("cuda/integer.h"), &[Piece::Core]),
        Piece::ToInt => (include_str!("cuda/to_int.h"), &[Piece::Core]),
        Piece::Math => (
            concat!(
                include_str!("hip/math64.h"),
                "\n",
                include_str!("hip/math.h")
            ),
            &[Piece::Core],
        ),
        Piece::Atomic => (
            concat!(
                include_str!("hip/atomic_words.h"),
                "\n",
                include_str!("cuda/atomic.h")
            ),
            &[Piece::Core],
        ),
        Piece::AtomicF16 => (
            include_str!("hip/atomic_half.h"),
            &[Piece::AddF16, Piece::Atomic],
        ),
        Piece::AtomicBf16 => (
            include_str!("hip/atomic_half.h"),
            &[Piece::AddBf16, Piece::Atomic],
        ),
        Piece::AddF16 => (include_str!("hip/add_two.h"), &[Piece::F16]),
        Piece::AddBf16 => (include_str!("hip/add_two.h"), &[Piece::Bf16]),
        // Those are added to one by one.
        Piece::AddF32 => ("", &[]),
        Piece::StorePacked => (
            include_str!("cuda/store_packed.h"),
            &[Piece::Packed, Piece::Atomic],
        ),
        Piece::Warp => (include_str!("hip/warp.h"), &[Piece::Core]),
        Piece::Barriers => (include_str!("hip/barriers.h"), &[Piece::Core]),
        Piece::Waits => (include_str!("hip/waits.h"), &[Piece::Core]),
        Piece::Sums => (include_str!("hip/sums.h"), &[Piece::Core]),
        Piece::Swizzle => (include_str!("cuda/swizzle.h"), &[Piece::Core]),
        Piece::Grid => (include_str!("hip/grid.h"), &[Piece::Atomic]),
        Piece::Print => (include_str!("hip/print.h"), &[Piece::Atomic]),
        // No AMD target has them; the emitter refuses what would ask for them.
        Piece::Shared
        | Piece::Matrix
        | Piece::StMatrix
        | Piece::Sparse
        | Piece::Wgmma
        | Piece::Bulk
        | Piece::BulkEvict
        | Piece::Cluster
        | Piece::Multicast
        | Piece::Prefetch => ("", &[]),
    }
}

/// How a matrix instruction is called in C.
struct Call {
    /// What follows `__builtin_amdgcn_mfma_`.
    builtin: String,
    /// The C type of A's and B's registers in a lane.
    operand: &'static str,
    /// Words of A's and of B's.
    words: [u32; 2],
    /// What follows the accumulator.
    rest: String,
}

/// The name of a matrix instruction's wrapper.
pub(super) fn mma_name(inst: &MmaInst) -> String {
    let scale = if inst.scaled { "scale_" } else { "" };
    let (m, n, k) = (inst.m, inst.n, inst.k);
    let element = |scalar: Scalar| scalar.name().replace("float8_", "");
    let mut name = format!("mfma_{scale}{m}x{n}x{k}_{}", element(inst.a));
    if inst.b != inst.a {
        let _ = write!(name, "_{}", element(inst.b));
    }
    name
}

fn call(inst: &MmaInst) -> Call {
    let items = u32::from(inst.m) * u32::from(inst.k) / 64;
    let words = [inst.a, inst.b].map(|factor| items * factor.bits() / 32);
    let shape = format!("{}x{}x{}", inst.m, inst.n, inst.k);
    let (builtin, operand) = match (inst.a, words[0]) {
        (Scalar::F16, 2) => (format!("f32_{shape}f16"), "_Float16"),
        (Scalar::F16, _) => (format!("f32_{shape}_f16"), "_Float16"),
        (Scalar::BF16, 2) => (format!("f32_{shape}bf16_1k"), "short"),
        (Scalar::BF16, _) => (format!("f32_{shape}_bf16"), "__bf16"),
        (Scalar::F32 | Scalar::TF32, _) => (format!("f32_{shape}f32"), "float"),
        (Scalar::F64, _) => (format!("f64_{shape}f64"), "double"),
        (Scalar::I8, 2) => (format!("i32_{shape}_i8"), "long"),
        (Scalar::I8, _) => (format!("i32_{shape}_i8"), "int"),
        (Scalar::F8E4M3FN | Scalar::F8E4M3FNUZ, 2) => (format!("f32_{shape}_fp8_fp8"), "long"),
        (Scalar::F8E5M2 | Scalar::F8E5M2FNUZ, 2) => (format!("f32_{shape}_bf8_bf8"), "long"),
        _ => (format!("scale_f32_{shape}_f8f6f4"), "int"),
    };
    // Formats of A and B, then the scales of each behind the byte that they are in; all zero where
    // they are not used.
    let rest = match builtin.starts_with("scale") {
        false => ", 0, 0, 0".to_string(),
        true => {
            let [a, b] = [inst.a, inst.b].map(format_number);
            let scales = match inst.scaled {
                true => "0, sa, 0, sb",
                false => "0, 0, 0, 0",
            };
            format!(", {a}, {b}, {scales}")
        }
    };
    Call {
        builtin,
        operand,
        words,
        rest,
    }
}

/// How the f8f6f4 instructions number the formats of their factors.
fn format_number(factor: Scalar) -> u32 {
    match factor {
        Scalar::F8E5M2 => 1,
        Scalar::F6E2M3 => 2,
        Scalar::F6E3M2 => 3,
        Scalar::F4E2M1 => 4,
        _ => 0,
    }
}

/// `D += A · B` of one wave, on the registers of each operand.
pub(super) fn mma_wrapper(inst: &MmaInst) -> String {
    let Call {
        builtin,
        operand,
        words: [of_a, of_b],
        rest,
    } = call(inst);
    let registers = u32::from(inst.m) * u32::from(inst.n) / 64;
    let element = match inst.acc {
        Scalar::I32 => "int",
        Scalar::F64 => "double",
        _ => "float",
    };
    let whole = matches!(inst.a, Scalar::F32 | Scalar::TF32 | Scalar::F64);
    let pointer = if whole { operand } else { "unsigned" };
    // The operand of the formats of 8, 6 and 4 bits has eight words, of which some are unused.
    let wide = builtin.starts_with("scale");
    let taken = if wide { 8 } else { of_a };
    let bytes = match operand {
        "long" | "double" => 8,
        "short" | "_Float16" | "__bf16" => 2,
        _ => 4,
    };
    let operand_type = match taken * 4 / bytes {
        1 => operand.to_string(),
        _ => "Operand".to_string(),
    };
    let mut text = String::from("namespace tw {\n\n");
    let _ = writeln!(
        text,
        "TW_FN void {}({element}* c, const {pointer}* a, const {pointer}* b{}) {{",
        mma_name(inst),
        if inst.scaled { ", int sa, int sb" } else { "" }
    );
    let _ = writeln!(
        text,
        "  typedef {element} Sum __attribute__((ext_vector_type({registers})));"
    );
    if operand_type == "Operand" {
        let _ = writeln!(
            text,
            "  typedef {operand} Operand __attribute__((ext_vector_type({})));",
            taken * 4 / bytes
        );
    }
    if whole {
        let _ = writeln!(text, "  {operand} x = *a, y = *b;");
    } else {
        let start = |words: u32| if taken > words { "{}" } else { "" };
        let _ = writeln!(
            text,
            "  unsigned aw[{taken}]{}, bw[{taken}]{};",
            start(of_a),
            start(of_b)
        );
        let each = |words: u32, copied: &str| {
            format!("#pragma unroll\n  for (int i = 0; i < {words}; ++i) {copied};\n")
        };
        text += &match of_a == of_b {
            true => each(of_a, "aw[i] = a[i], bw[i] = b[i]"),
            false => each(of_a, "aw[i] = a[i]") + &each(of_b, "bw[i] = b[i]"),
        };
        let _ = writeln!(
            text,
            "  {operand_type} x, y;\n  memcpy(&x, aw, sizeof(x));\n  memcpy(&y, bw, sizeof(y));"
        );
    }
    // The compiler may move this instruction behind a condition that not all lanes meet, where its
    // scales are not those of all lanes; what is made of its result it leaves in place.
    let held = match inst.scaled {
        true => "  asm(\"\" : \"+v\"(sum));\n",
        false => "",
    };
    let _ = writeln!(
        text,
        "  Sum sum;\n#pragma unroll\n  for (int i = 0; i < {registers}; ++i) sum[i] = c[i];\n  sum \
         = __builtin_amdgcn_mfma_{builtin}(x, y, sum{rest});\n{held}#pragma unroll\n  for (int i = 0; i < \
         {registers}; ++i) c[i] = sum[i];\n}}\n\n}}  // namespace tw\n"
    );
    text
}

/// The same of sums that have accumulation registers by number. The compiler does not see what instruction
/// this is: a register that a vector instruction wrote is read two wait states later (the manuals, 4.5).
pub(super) fn numbered_mma_wrapper(inst: &MmaInst, computed: bool) -> String {
    let Call { builtin, words, .. } = call(inst);
    let registers = u32::from(inst.m) * u32::from(inst.n) / 64;
    let pointer = match inst.a {
        Scalar::F32 | Scalar::TF32 => "float",
        _ => "unsigned",
    };
    let (scales, of_scales, behind) = match (inst.scaled, builtin.starts_with("scale")) {
        (true, _) => (
            ", int sa, int sb",
            ", \"v\"(sa), \"v\"(sb)",
            ", %4, %5 op_sel_hi:[0,0,0]",
        ),
        (false, _) => ("", "", ""),
    };
    let formats = match builtin.starts_with("scale") {
        true => {
            let [a, b] = [inst.a, inst.b].map(format_number);
            format!("{behind} cbsz:{a} blgp:{b}")
        }
        false => String::new(),
    };
    let mut text = String::from("namespace tw {\n\n");
    let _ = writeln!(
        text,
        "TW_FN void {}(int c, const {pointer}* a, const {pointer}* b{scales}) {{",
        numbered_mma_name(inst, computed),
    );
    let before = if computed { "s_nop 1\\n\\t" } else { "" };
    for (name, from, words) in [("x", "a", words[0]), ("y", "b", words[1])] {
        let _ = match words {
            1 => writeln!(text, "  {pointer} {name} = *{from};"),
            _ => writeln!(
                text,
                "  typedef {pointer} Of{from} __attribute__((ext_vector_type({words})));\n  Of{from} \
                 {name};\n#pragma unroll\n  for (int i = 0; i < {words}; ++i) {name}[i] = {from}[i];",
            ),
        };
    }
    let _ = writeln!(
        text,
        "  asm volatile(\"{before}{} a[%c2:%c3], %0, %1, a[%c2:%c3]{formats}\" ::\"v\"(x), \"v\"(y), \"i\"(c), \
         \"i\"(c + {}){of_scales});\n}}\n\n}}  // namespace tw\n",
        instruction(inst, &builtin),
        registers - 1,
    );
    text
}

pub(super) fn numbered_mma_name(inst: &MmaInst, computed: bool) -> String {
    let after = if computed { "_of_computed" } else { "" };
    mma_name(inst) + after
}

/// The instruction that a builtin is.
fn instruction(inst: &MmaInst, builtin: &str) -> String {
    let shape = format!("{}x{}x{}", inst.m, inst.n, inst.k);
    let (before, after) = builtin.split_once(&shape).unwrap_or((builtin, ""));
    let before = match inst.scaled {
        true => before,
        false => before.strip_prefix("scale_").unwrap_or(before),
    };
    let types = after.trim_start_matches('_').trim_end_matches("_1k");
    format!("v_mfma_{before}{shape}_{types}")
}
