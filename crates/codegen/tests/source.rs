//! What statements become in CUDA source, on device IR small enough to read.

use tilewright_codegen::{Options, generate};
use tilewright_ir::{FileId, Target, text, verify};

/// The text after the device header, for a kernel over float16 and float32 tensors whose body is
/// given.
fn kernel(body: &str, target: Target) -> String {
    let ir = format!(
        "func @k level=device {{
  symbol n: int32
  param A: float16[n, 64]
  param C: float32[64]
  kernel grid(bx: 2) threads(tx: 64, ty: 1, tz: 1) {{
{body}
  }}
}}
"
    );
    let func = text::parse(&ir, FileId(0)).unwrap_or_else(|e| panic!("{e:?}"));
    verify::verify(&func).unwrap_or_else(|e| panic!("{e:?}"));
    let source = generate(&func, target, Options::default()).unwrap_or_else(|e| panic!("{e:?}"));
    let text = source.text;
    let header = text.rfind("}  // namespace tw\n").map_or(0, |at| at + 19);
    text[header..].trim().to_string()
}

#[track_caller]
fn has(text: &str, line: &str) {
    assert!(
        text.lines().any(|l| l.trim() == line),
        "no `{line}` in\n{text}"
    );
}

const PIPELINED: &str = r#"
    alloc S: shared float16[8, 64] versions=3
    for k in serial(0, 4) {
      g2s A[k * 8 +: 8, 0 +: 64] at [k * 8 + tx // 8, tx % 8 * 8] -> S[0 +: 8, 0 +: 64] slot=(k % 3) at [tx // 8, tx % 8 * 8] inst="cp.async" width=8 pred=(k * 8 + tx // 8 < n) otherwise=0.0:float16 counter=cp_async
      commit cp_async
      wait cp_async(1)
      barrier block
      C[tx] = float32(S[(k + 1) % 3, 0, tx])
    }
"#;

#[test]
fn asynchronous_copies_fill_with_zeros_and_name_their_version() {
    let text = kernel(PIPELINED, Target::Sm80);
    has(
        &text,
        "tw::cp_async_or_zero<16>(S, k % 3 * 512 + tx / 8 * 64 + tx % 8 * 8, &A[(long long)(k * 8 + tx / 8) * 64 + tx % 8 * 8], k * 8 + tx / 8 < n);",
    );
    has(&text, "tw::cp_async_commit();");
    has(&text, "tw::cp_async_wait<1>();");
    // A plain access names the version first.
    has(&text, "C[tx] = float(S[(k + 1) % 3 * 512 + tx]);");
}

#[test]
fn the_signature_has_what_the_body_mentions() {
    let text = kernel("    C[tx] = 1.0", Target::Sm90a);
    has(
        &text,
        "extern \"C\" __global__ void __launch_bounds__(64, 1)",
    );
    has(&text, "k(float* __restrict__ C) {");
    assert!(!text.contains("shared_memory"), "{text}");
}

#[test]
fn arithmetic_on_data_wraps_and_arithmetic_on_indices_is_plain() {
    let body = "
    let x: int32 = int32(C[tx])
    C[tx] = float32(x * x)
    C[tx] = float32(tx * 3)";
    let text = kernel(body, Target::Sm80);
    has(&text, "C[tx] = float(tw::wrap_mul(x, x));");
    has(&text, "C[tx] = float(tx * 3);");
}

#[test]
fn amd_targets_get_hip() {
    let text = kernel("    C[tx] = 1.0", Target::Gfx942);
    assert!(
        text.contains("amdgpu_flat_work_group_size(64, 64)"),
        "{text}"
    );
    assert!(!text.contains("asm volatile(\"cp.async"), "{text}");
}

#[test]
fn tile_ir_is_refused() {
    let ir = "func @k level=tile {\n  kernel grid(bx: 1) threads(tx: 64, ty: 1, tz: 1) {\n  }\n}\n";
    let func = text::parse(ir, FileId(0)).expect("it parses");
    let error = generate(&func, Target::Sm80, Options::default()).expect_err("not device IR");
    assert_eq!(error.code.0, "codegen-not-device-ir");
}
