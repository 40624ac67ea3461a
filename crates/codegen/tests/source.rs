//! What statements become in CUDA source, on device IR small enough to read.

use tilewright_codegen::{KernelArg, Options, Source, generate};
use tilewright_ir::{Diagnostic, FileId, Target, text, verify};

/// The text after the device header, for a kernel over float16 and float32 tensors whose body is
/// given.
fn kernel(body: &str, target: Target) -> String {
    let source = source(body, target).unwrap_or_else(|e| panic!("{e:?}"));
    let text = source.text;
    let header = text.rfind("}  // namespace tw\n").map_or(0, |at| at + 19);
    text[header..].trim().to_string()
}

fn source(body: &str, target: Target) -> Result<Source, Box<Diagnostic>> {
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
    generate(&func, target, Options::default())
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
fn swizzled_tiles_start_where_the_permutation_does() {
    let body = "
    alloc V: shared float32[64]
    alloc S: shared float16[64, 64] layout=panels(128)
    V[tx] = 1.0
    S[tx, 0] = 1.0:float16
    barrier block
    C[tx] = V[63 - tx] + float32(S[63 - tx, 0])";
    let text = kernel(body, Target::Sm90a);
    has(
        &text,
        "tw::f16* const S = (tw::f16*)(shared_memory + 1024);",
    );
}

/// A bulk load of `box` to `[row, col]` of a shared tile of 64 by 64 with a layout.
fn bulk_load(layout: &str, tile: &str, row: &str, col: &str) -> String {
    format!(
        r#"
    alloc S: shared float16[64, 64] versions=2 {layout}
    alloc bar: barrier uint64[1] arrivals=[1]
    if tx == 0 {{
      for k in serial(0, 4) {{
        mbarrier_expect_tx bar[0] bytes=4096 arrive
        tma_load for p < 2 do A[0 +: 64, 0 +: 64] at [k * 64, p * 32] -> S[0 +: 64, 0 +: 64] slot=(k % 2) at [{row}, {col}] inst="tma.{tile}" width=1 pred=(k < n) counter=mbarrier arrives=bar[0]
      }}
    }}
    mbarrier_arrive bar[0] warp
    C[tx] = float32(S[0, 0, tx])
"#
    )
}

#[test]
fn a_bulk_load_names_a_map_and_a_barrier() {
    let body = bulk_load("layout=panels(64)", "32x32", "k % 2 * 32", "p * 32");
    let text = kernel(&body, Target::Sm90a);
    has(&text, "const __grid_constant__ tw::TensorMap A_map) {");
    has(&text, "tw::show_barriers();");
    has(&text, "tw::prefetch(A_map);");
    has(
        &text,
        "if (k < n) tw::tma_load(S, k % 2 * 4096 + S_at(k % 2 * 32, 0) + p * 2048, A_map, bar, p * 32, k * 64);",
    );
    has(&text, "tw::mbarrier_arrive_warp(0xffffffff, bar);");
    // The address of a tensor that only the copy engine reads is no argument.
    assert!(!text.contains("__restrict__ A"), "{text}");
    let maps = source(&body, Target::Sm90a).expect("it has source");
    let args = &maps.kernels[0].args;
    let [.., KernelArg::Map(map)] = args[..] else {
        panic!("{args:?}");
    };
    assert_eq!((map.tile.extents(), map.swizzle.span), (&[32, 32][..], 64));
}

#[test]
fn a_bulk_load_tells_the_cache_what_goes_first() {
    let body = bulk_load("layout=panels(64)", "32x32", "k % 2 * 32", "p * 32");
    for policy in ["first", "last", "normal"] {
        let told = format!("arrives=bar[0] evict={policy}");
        let text = kernel(&body.replace("arrives=bar[0]", &told), Target::Sm90a);
        let call = format!("tw::tma_load(tw::evict_{policy}(), S, k % 2 * 4096");
        assert!(text.contains(&call), "{text}");
    }
    let text = kernel(&body, Target::Sm90a);
    assert!(!text.contains("evict"), "{text}");
}

#[test]
fn one_tensor_in_two_shapes_of_boxes_has_two_maps() {
    let one = bulk_load("layout=panels(64)", "32x32", "0", "p * 32");
    let other = "tma_load A[0 +: 64, 0 +: 64] at [0, 0] -> S[0 +: 64, 0 +: 64] slot=0 at [0, 0] inst=\"tma.64x32\" width=1 counter=mbarrier arrives=bar[0]\n        tma_load for";
    let text = kernel(&one.replace("tma_load for", other), Target::Sm90a);
    has(&text, "tw::tma_load(S, S_at(0, 0), A_map, bar, 0, 0);");
    assert!(text.contains("A_map_1, bar, p * 32"), "{text}");
}

/// A box lies in shared memory as the engine has it, or there is no source.
#[test]
fn a_box_without_a_place_is_refused() {
    for (layout, tile, row, col) in [
        // Rows with gaps.
        ("layout=padded(8)", "32x64", "0", "0"),
        // Wider and narrower than a panel.
        ("layout=panels(64)", "32x64", "0", "0"),
        ("layout=panels(128)", "32x32", "0", "0"),
        // Within the rows over which the permutation repeats, and within a panel.
        ("layout=panels(64)", "32x32", "k * 4", "0"),
        ("layout=panels(64)", "32x32", "k", "0"),
        ("layout=panels(64)", "32x32", "0", "p * 16"),
        ("", "32x32", "0", "p * 32"),
        // At bytes that are no multiple of what a box starts at.
        (
            "offset=512 bytes=16384 layout=panels(128)",
            "32x64",
            "0",
            "0",
        ),
    ] {
        let body = bulk_load(layout, tile, row, col);
        let error = source(&body, Target::Sm90a).map(|source| source.text);
        let error = error.expect_err(&format!("{layout} {tile} {row} {col}"));
        assert_eq!(error.code.0, "codegen-unsupported");
        assert!(error.message.contains("a bulk copy"), "{}", error.message);
    }
    let wide = bulk_load("", "32x64", "0", "0").replace("S: shared float16", "S: shared bfloat16");
    let error = source(&wide, Target::Sm90a).expect_err("the engine converts nothing");
    assert!(error.message.contains("another type"), "{}", error.message);
    // Whole rows start anywhere at 128 bytes.
    for (layout, tile) in [("", "32x64"), ("layout=panels(128)", "64x64")] {
        let body = bulk_load(layout, tile, "0", "0");
        assert!(source(&body, Target::Sm90a).is_ok(), "{layout} {tile}");
    }
    let body = bulk_load("layout=panels(64)", "32x32", "0", "0");
    let error = source(&body, Target::Sm80).expect_err("sm_80 has none");
    assert_eq!(error.code.0, "codegen-unsupported");
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

/// A loop whose products are issued first, with arithmetic at that priority or behind it.
fn flags_of(product: &str, behind: &str) -> Vec<String> {
    let body = format!(
        "    alloc a: local float16[8]
    alloc s: local float32[4]
    alloc o: local float32[4]
    for k in serial(0, 4) {{
      set_prio 1
      mma for mi < 1 do a[0 +: 8] at [mi * 8], a[0 +: 8] at [mi * 8] -> s[0 +: 4] at [mi * 4] inst=\"mfma.16x16x32.float16.float32\" width=1
{product}
      set_prio 0
{behind}
    }}
    C[tx] = o[0]"
    );
    let source = source(&body, Target::Gfx950).unwrap_or_else(|e| panic!("{e:?}"));
    source.flags
}

#[test]
fn arithmetic_beside_products_is_not_packed() {
    let computes = "      o[0] = o[0] * s[0]";
    assert_eq!(flags_of("", computes), ["-fno-slp-vectorize"]);
    assert_eq!(flags_of(computes, ""), [""; 0]);
    assert_eq!(flags_of("", ""), [""; 0]);
}

#[test]
fn tile_ir_is_refused() {
    let ir = "func @k level=tile {\n  kernel grid(bx: 1) threads(tx: 64, ty: 1, tz: 1) {\n  }\n}\n";
    let func = text::parse(ir, FileId(0)).expect("it parses");
    let error = generate(&func, Target::Sm80, Options::default()).expect_err("not device IR");
    assert_eq!(error.code.0, "codegen-not-device-ir");
}

/// A loop of gfx950 over a row, of iterations whose number only a call knows.
fn over_a_row(bounds: &str, body: &str) -> String {
    let ir = format!(
        "func @k level=device {{
  scalar n: int32
  param A: float16[64, 1024]
  param C: float32[64]
  kernel grid(bx: 2) threads(tx: 64, ty: 1, tz: 1) {{
    alloc staged: local float16[8]
    for k in serial({bounds}) {{
{body}
      wait vmcnt(0)
      C[tx] = float32(staged[0])
    }}
  }}
}}
"
    );
    let func = text::parse(&ir, FileId(0)).unwrap_or_else(|e| panic!("{e:?}"));
    verify::verify(&func).unwrap_or_else(|e| panic!("{e:?}"));
    let source = generate(&func, Target::Gfx950, Options::default());
    source.unwrap_or_else(|e| panic!("{e:?}")).text
}

/// A guarded load of 8 elements of row `tx`, from a column.
fn guarded(column: &str) -> String {
    format!(
        "g2r A[0 +: 64, {column} +: 8] at [tx, {column}] -> staged[0 +: 8] at [0] inst=\"load\" width=8 pred=({column} < 1024) otherwise=0.0:float16 counter=vmcnt"
    )
}

#[test]
fn what_lanes_share_of_a_guarded_offset_stands_apart_where_it_cannot_be_below_zero() {
    for (why, column, parts) in [
        (
            "a lane adds less than the shared part is a multiple of",
            "k * 64 + tx % 8 * 8",
            "(unsigned)(tx * 1024 + tx % 8 * 8) * 2 : -1u, ((unsigned)k * 64u) * 2);",
        ),
        (
            "a lane adds more: the shared part may be below zero where the sum is not",
            "k * 32 + tx % 8 * 8",
            "(unsigned)(tx * 1024 + k * 32 + tx % 8 * 8) * 2 : -1u, 0);",
        ),
    ] {
        let text = over_a_row("0, n", &guarded(column));
        assert!(text.contains(parts), "{why}:\n{text}");
    }
}

#[test]
fn clang_is_told_of_loops_that_certainly_run() {
    let told = "__builtin_unreachable();";
    let text = over_a_row("0, max(n, 1)", &guarded("k * 64"));
    has(&text, &format!("if (0 >= tw::max<int>(n, 1)) {told}"));
    for bounds in ["0, n", "0, 8"] {
        let text = over_a_row(bounds, &guarded("k * 64"));
        assert!(!text.contains(told), "{bounds}:\n{text}");
    }
}

#[test]
fn a_loop_over_a_tensor_may_not_run_where_the_tensor_is_empty() {
    let over = |stop: &str| {
        let ir = format!(
            "func @k level=device {{
  symbol n: int32
  param A: float32[n, 64]
  output C: float32[64]
  kernel grid(bx: 1) threads(tx: 64, ty: 1, tz: 1) {{
    alloc acc: local float32[1]
    acc[0] = 0.0
    for k in serial(0, {stop}) {{
      acc[0] = acc[0] + A[k % n, tx]
    }}
    C[tx] = acc[0]
  }}
}}
"
        );
        let func = text::parse(&ir, FileId(0)).unwrap_or_else(|e| panic!("{e:?}"));
        verify::verify(&func).unwrap_or_else(|e| panic!("{e:?}"));
        let source = generate(&func, Target::Gfx950, Options::default());
        source.unwrap_or_else(|e| panic!("{e:?}")).text
    };
    let told = "__builtin_unreachable();";
    for (stop, certainly) in [("n", false), ("max(n, 1)", true)] {
        let text = over(stop);
        assert_eq!(text.contains(told), certainly, "{text}");
    }
}

/// A wave's product of 256 sums, and what else is done with them.
fn sums(before: &str, behind: &str) -> String {
    let body = format!(
        "
    alloc a: local float16[32]
    alloc b: local float16[32]
    alloc c: local float32[256]
    {before}
    mma for i < 8, j < 8 do a[0 +: 32] at [i * 4], b[0 +: 32] at [j * 4] -> c[0 +: 256] at [i * 32 + j * 4] inst=\"mfma.16x16x16.float16.float32\" width=1
    {behind}
"
    );
    kernel(&body, Target::Gfx942)
}

#[test]
fn sums_of_most_of_a_waves_registers_have_numbers() {
    let all = "for s in unroll(0, 256) { C[0] = c[s] }";
    let text = sums("for s in unroll(0, 256) { c[s] = 0.0 }", all);
    has(&text, "constexpr int c = 0; // a0 to a255");
    has(&text, "tw::set_sum<float>(c + s, 0.0f);");
    has(
        &text,
        "tw::mfma_16x16x16_float16(c + i * 32 + j * 4, a.at(i * 4), b.at(j * 4));",
    );
    has(&text, "C[0] = tw::sum<float>(c + s);");
    has(&text, "tw::keep_sums();");
    // Written elements are waited for before and behind, read ones before.
    assert_eq!(text.matches("tw::settle_sums();").count(), 3, "{text}");
}

#[test]
fn sums_that_are_used_otherwise_stay_an_array() {
    for (why, behind) in [
        ("an index that no unrolling settles", "C[0] = c[tx]"),
        (
            "a serial loop's index",
            "for s in serial(0, 256) { C[0] = c[s] }",
        ),
        ("an element before a body", "if c[0] > 0.0 { C[0] = 1.0 }"),
        (
            "sums beside it that stay the compiler's",
            "alloc d: local float32[4]
    mma for i < 1 do a[0 +: 32] at [0], b[0 +: 32] at [0] -> d[0 +: 4] at [0] inst=\"mfma.16x16x16.float16.float32\" width=1",
        ),
    ] {
        let text = sums("", behind);
        assert!(text.contains("float c[256];"), "{why}:\n{text}");
    }
}

/// Products in a loop and behind it, the block meeting after each.
fn clusters(inst: &str, [sums, operands]: [u32; 2]) -> String {
    let mma = format!(
        "mma for mi < 2 do a[0 +: {operands}] at [0], a[0 +: {operands}] at [0] -> c[0 +: {}] at [mi * {sums}] inst=\"{inst}\" width=1",
        2 * sums
    );
    format!(
        "
    alloc a: local float16[{operands}]
    alloc c: local float32[{}]
    for k in serial(0, 4) {{
      {mma}
      barrier bare
    }}
    {mma}
    barrier bare
    C[tx] = c[0]
",
        2 * sums
    )
}

#[test]
fn products_behind_a_loop_are_held_in_the_registers_of_their_sums() {
    let text = kernel(
        &clusters("mfma.16x16x16.float16.float32", [4, 4]),
        Target::Gfx942,
    );
    let (inside, behind) = text.split_once("tw::barrier();").expect("a barrier");
    assert!(!inside.contains("multiplied"), "{text}");
    has(behind, "tw::multiplied<4>(c + mi * 4);");
    let text = kernel(
        &clusters("mma.16x8x16.float16.float32", [4, 8]).replace("bare", "block"),
        Target::Sm80,
    );
    assert!(!text.contains("multiplied"), "{text}");
}

#[test]
fn sums_of_long_instructions_are_read_a_state_later() {
    let text = |inst: &str, [sums, operands]: [u32; 2]| {
        let body = format!(
            "
    alloc a: local float8_e4m3fn[{operands}]
    alloc c: local float32[{}]
    for s in unroll(0, {}) {{ c[s] = 0.0 }}
    mma for mi < 2 do a[0 +: {operands}] at [0], a[0 +: {operands}] at [0] -> c[0 +: {}] at [mi * {sums}] inst=\"{inst}\" width=1
    C[tx] = c[0]
    C[tx] = c[1]
",
            2 * sums,
            2 * sums,
            2 * sums
        );
        kernel(&body, Target::Gfx950)
    };
    let long = text("mfma.32x32x64.float8_e4m3fn.float32", [16, 32]);
    let (products, read) = long
        .split_once("tw::late_sum<16>(c + s);")
        .expect("a state");
    assert!(products.contains("tw::mfma_32x32x64_e4m3fn"), "{long}");
    assert!(!read.contains("late_sum"), "{long}");
    has(&long, "for (int s = 0; s < 32; s += 16) {");
    let short = text("mfma.16x16x128.float8_e4m3fn.float32", [4, 32]);
    assert!(!short.contains("late_sum"), "{short}");
}

/// A product of such an instruction, and statements behind it; the states in front of reads.
fn states_behind(behind: &str) -> (usize, String) {
    let product = "mma for mi < 1 do a[0 +: 32] at [0], a[0 +: 32] at [0] -> c[0 +: 16] at [0] inst=\"mfma.32x32x64.float8_e4m3fn.float32\" width=1";
    let body = format!(
        "
    alloc a: local float8_e4m3fn[32]
    alloc c: local float32[16]
    for s in unroll(0, 16) {{ c[s] = 0.0 }}
    {product}
    {}
",
        behind.replace("PRODUCT", product)
    );
    let text = kernel(&body, Target::Gfx950);
    (text.matches("tw::late_sum<16>(c + s);").count(), text)
}

#[test]
fn sums_of_long_instructions_are_read_a_state_later_on_every_way() {
    for (why, behind, states) in [
        (
            "what one arm reads is read behind the condition too, where the other multiplied",
            "if tx < 32 { PRODUCT } else { c[0] = c[0] * 2.0 }\n C[tx] = c[0]",
            2,
        ),
        (
            "what both arms read is waited for",
            "if tx < 32 { C[0] = c[1] } else { c[0] = c[0] * 2.0 }\n C[tx] = c[0]",
            1,
        ),
        (
            "the condition itself reads",
            "if c[0] > 1.0 { PRODUCT }\n C[tx] = c[0]",
            2,
        ),
        (
            "a loop that may not run",
            "for k in serial(0, tx) { C[0] = c[0]\n PRODUCT\n C[1] = c[0] }\n C[tx] = c[0]",
            3,
        ),
        (
            "a loop that is left behind its product",
            "for k in serial(0, 4) { PRODUCT\n if tx < k { break }\n C[1] = c[0] }\n C[tx] = c[0]",
            2,
        ),
        (
            "another name of the sums",
            "view v: local float32[4, 4] of c\n C[tx] = v[0, 0]",
            1,
        ),
    ] {
        let (found, text) = states_behind(behind);
        assert_eq!(found, states, "{why}:\n{text}");
    }
}
