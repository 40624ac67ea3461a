//! The verifier: what is sound passes, and each rule finds its fault.

use proptest::prelude::*;
use tilewright_ir::text::{parse, print};
use tilewright_ir::{Diagnostic, FileId, Func, SourceMap, verify};
use tilewright_testkit::arbitrary::any_func;

fn parsed(text: &str) -> Func {
    parse(text, FileId(0)).unwrap_or_else(|errors| panic!("{}", rendered(text, &errors)))
}

fn rendered(text: &str, errors: &[Diagnostic]) -> String {
    let mut sources = SourceMap::new();
    sources.add("test.tw", text);
    let all: Vec<String> = errors.iter().map(|d| d.render(&sources, false)).collect();
    format!("{text}\n{}", all.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn generated_functions_are_sound(func in any_func()) {
        let text = print(&func);
        let again = parsed(&text);
        if let Err(errors) = verify(&again) {
            prop_assert!(false, "{}", rendered(&text, &errors));
        }
        prop_assert!(verify(&func).is_ok());
    }
}

/// Lines of a kernel with some of everything declared.
fn kernel(lines: &str) -> String {
    format!(
        "func @f level=tile {{
  symbol m: int32
  param A: float16[m, 64]
  param B: float32[64, 64]
  output C: float32[64, 64]
  param Z: int8[64]
  scalar n: int32
  workspace I: int32[64]
  kernel grid(bx: 4) threads(tx: 256, ty: 1, tz: 1) {{
    alloc S: shared float16[64, 64]
    alloc T: shared float16[64, 64]
    alloc F: fragment float32[64, 64]
    alloc R: fragment float32[64]
    alloc L: local float32[8]
    alloc x: var float32
    x[] = 0.0
    alloc bar: barrier uint64[2] arrivals=[128, 128]
    alloc acc: reducer float32[64] op=sum
{lines}
  }}
}}
"
    )
}

/// The text with lines at function level before the kernel.
fn header(lines: &str) -> String {
    kernel("").replace("  kernel", &format!("{lines}\n  kernel"))
}

fn at_level(level: &str, lines: &str) -> String {
    kernel(lines).replace("level=tile", &format!("level={level}"))
}

/// Lines that look like the faults below, and are none.
const SOUND: &[&str] = &[
    "",
    "copy A[bx * 64 +: 64, 0 +: 64] -> S[0 +: 64, 0 +: 64]",
    "copy B[0 +: 64, 0 +: 64] -> S[0 +: 64, 0 +: 64]",
    "copy A[5, 0 +: 64] -> S[0 +: 64, 3]",
    "copy B[32 +: 64, 0 +: 64] -> S[0 +: 64, 0 +: 64]",
    "copy A[0 +: 64, 0 +: 64] -> S[0 +: 64, 0 +: 64] async",
    "copy A[0 +: 64, 0 +: 64] -> S[0 +: 64, 0 +: 64] tma barrier=bar[1]",
    "copy S[0 +: 64, 0 +: 64] -> A[0 +: 64, 0 +: 64] tma",
    "copy S[0 +: 64, 0 +: 64] -> A[0 +: 64, 0 +: 64] tma warps=[1, 2]",
    "copy S[0 +: 32, 0 +: 64] -> S[32 +: 32, 0 +: 64]",
    "gemm S[0 +: 64, 0 +: 64], T[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] clear=(bx == 0)",
    "gemm S[0 +: 64, 0 +: 32], T[0 +: 32, 0 +: 64] -> F[0 +: 64, 0 +: 64]",
    "alloc E: shared int16[4, 64]\ngemm S[0 +: 64, 0 +: 32], T[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] sparse=E[0 +: 4, 0 +: 64] trans_e",
    "alloc P: shared float8_e4m3fn[64, 64]\nalloc Q: shared float4_e2m1fn[64, 64]\nalloc SA: shared float8_e8m0fnu[64, 2]\nalloc SB: shared float8_e8m0fnu[64, 4]\ngemm P[0 +: 64, 0 +: 64], Q[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] trans_b scales=SA[0 +: 64, 0 +: 2], SB[0 +: 64, 0 +: 4] every=[32, 16]",
    "reduce sum F[0 +: 64, 0 +: 64] -> R[0 +: 64] dim=1",
    "reduce sum L[0 +: 8] -> x[] dim=0 clear",
    "if tx == 0 {\nreduce sum L[0 +: 8] -> x[] dim=0 clear\n}",
    "for i in parallel(8) {\nfor j in parallel(8) {\nB[i, j] = 0.0\n}\n}",
    "for i in parallel(64) {\nif i < 3 {\ncontinue\n}\nR[i] = R[63]\n}",
    "for i in parallel(m) {\nB[i, 0] = 1.0\n}",
    "reducer_init acc\nif bx == 0 {\nreducer_finalize acc -> R[0 +: 64]\n}",
    "for k in serial(0, 4) {\nreducer_init acc\nfor i in parallel(64) {\nreducer_update acc[i], 1.0\n}\nreducer_finalize acc\nlet y: float32 = acc[3]\n}",
    "warp_group 0, 1 {\nfill F[0 +: 64, 0 +: 64], 0\n}",
    "wait cp_async(0)\ncommit cp_async\nfence async_proxy",
    "let v: float16x4 = S[0, ramp(0, 1, 4)]\nS[1, ramp(0, 1, 4)] = v",
    "let h: handle = address_of(bar[0])\nlet g: bool = h == h",
    "for k in serial(8, 0, -1) {\nwhile x[] < 1.0 {\nbreak\n}\n}",
    "let y: float32 = ldexp(1.0, 3)\nlet z: int32 = floor(3)",
];

/// Lines and the rule they break.
const FAULTS: &[(&str, &str)] = &[
    // names and scopes
    ("for i in serial(0, 4) {\n}\nlet y: int32 = i", "var-scope"),
    (
        "if bx == 0 {\nalloc Q: shared float16[4]\n}\nQ[0] = 0.0:float16",
        "buffer-scope",
    ),
    // types
    ("let y: int8 = 200:int8", "constant-range"),
    ("let y: float16 = 0.1:float16", "constant-range"),
    ("let y: float32 = 3:float32", "constant-range"),
    ("let y: int32 = 1.0:int32", "constant-range"),
    ("let y: bool = 2:bool", "constant-range"),
    ("let y: int8 = typed<int8>(bx + 1)", "expr-type"),
    ("let y: int32 = bx + 1:int64", "operand-types"),
    ("let y: int32 = bx / bx", "operand-types"),
    ("let y: float32 = x[] // x[]", "operand-types"),
    ("let y: bool = bx && bx", "operand-types"),
    ("let y: int32 = !bx", "operand-types"),
    ("let y: float32 = ~x[]", "operand-types"),
    ("let y: int32 = exp(bx)", "operand-types"),
    ("let y: float32 = pow(x[], 1.0:float64)", "operand-types"),
    ("let y: float32 = popcount(x[])", "operand-types"),
    ("let y: float32 = select(true, x[], 1)", "operand-types"),
    (
        "let y: handle = address_of(B[0, 0]) + address_of(B[0, 0])",
        "operand-types",
    ),
    ("let y: int32 = bx % 0", "division-by-zero"),
    ("let y: int32 = bx << 32", "shift-range"),
    ("let y: int32 = select(bx, 1, 2)", "select-condition"),
    ("let y: int32 = if_then_else(bx, 1, 2)", "select-condition"),
    ("let y: int64 = int64(address_of(B[0, 0]))", "cast-types"),
    ("let y: int32x4 = int32x4(bx)", "cast-types"),
    ("let y: int64 = reinterpret<int64>(bx)", "reinterpret-width"),
    (
        "let y: int32x4 = ramp(broadcast(bx, 4), broadcast(bx, 4), 4)",
        "vector-lanes",
    ),
    ("let y: int32 = broadcast(bx, 1)", "vector-lanes"),
    ("let y: int32 = lane(broadcast(bx, 4), 4)", "vector-lanes"),
    ("let y: int64 = bx", "let-type"),
    ("B[0, 0] = 1", "store-type"),
    ("y: int64 = shuffle xor bx, 1 width=32", "result-type"),
    ("if bx {\n}", "condition-type"),
    ("while 1.0 {\n}", "condition-type"),
    ("assume bx", "condition-type"),
    ("assert bx, \"m\"", "condition-type"),
    // memory
    ("alloc Q: shared float16[0]", "buffer-shape"),
    ("alloc Q: shared float16[m]", "buffer-shape"),
    ("alloc Q: shared float16[1.5]", "buffer-shape"),
    ("alloc Q: shared float16[4] strides=[1, 1]", "buffer-shape"),
    ("alloc Q: shared float16[4] versions=0", "buffer-shape"),
    ("alloc Q: global float16[4]", "buffer-origin"),
    ("alloc Q: var float16[2]", "buffer-origin"),
    ("alloc Q: barrier uint64[2]", "buffer-origin"),
    ("alloc Q: barrier uint64[2] arrivals=[1]", "buffer-origin"),
    ("alloc Q: barrier uint64[1] arrivals=[0]", "buffer-origin"),
    ("alloc Q: reducer float32[2]", "buffer-origin"),
    ("alloc Q: reducer float32[2] op=absmax", "buffer-origin"),
    ("alloc Q: reducer float32[2] op=bitor", "buffer-origin"),
    ("pointer Q: float16[4] at bx", "buffer-origin"),
    ("view Q: shared float16[64] of S", "view-bits"),
    ("view Q: local float16[64, 64] of S", "view-scope"),
    ("view Q: barrier uint64[2] of bar", "view-scope"),
    (
        "alloc Q: shared float16[4] layout=map(i, j) -> (i)",
        "layout-rank",
    ),
    (
        "alloc Q: shared float16[4] layout=fragment(i) -> (i; 0)",
        "layout-scope",
    ),
    (
        "alloc Q: fragment float16[4] layout=swizzled",
        "layout-scope",
    ),
    (
        "alloc Q: shared float16[4] layout=map[8](i) -> [8](i)",
        "layout-shape",
    ),
    (
        "alloc Q: fragment float16[4] layout=fragment[8](i) -> [8; 1](i; 0)",
        "layout-shape",
    ),
    (
        "for i in parallel(8) layout=fragment[4](i) -> [8; 1](i; 0) {\n}",
        "layout-shape",
    ),
    (
        "alloc Q: shared float16[4] layout=fragment[4](i) -> [8; 1](i; 0)",
        "layout-scope",
    ),
    ("alloc Q: shared float16[4] safe=0.0:float16", "safe-value"),
    ("B[0] = 0.0", "index-count"),
    ("let y: float32 = B[0, 0, 0]", "index-count"),
    ("let y: float32 = B[0, 1.0]", "index-type"),
    ("let y: float32 = B[ramp(0, 1, 4), 0]", "index-type"),
    ("let y: float32 = B[0, 64]", "index-bounds"),
    ("let y: float16 = S[-1, 0]", "index-bounds"),
    ("mbarrier_arrive bar[2]", "index-bounds"),
    ("let y: uint64 = bar[0]", "barrier-as-data"),
    ("bar[0] = 0:uint64", "barrier-as-data"),
    ("let y: float32 = acc[0]", "reducer-access"),
    ("acc[0] = 0.0", "reducer-access"),
    ("let y: float32 = F[1, 0]", "fragment-access"),
    ("R[3] = 1.0", "fragment-access"),
    (
        "for i in parallel(8) {\nL[i] = 1.0\n}",
        "local-parallel-index",
    ),
    (
        "for i in parallel(m) {\nR[i] = 1.0\n}",
        "parallel-fragment-extent",
    ),
    ("fill S[0 +: 64], 0", "region-rank"),
    ("fill S[0 +: 64, 32 +: 64], 0", "region-bounds"),
    ("fill S[bx +: 65, 0 +: 64], 0", "region-bounds"),
    ("fill S[0 +: 0, 0 +: 64], 0", "region-bounds"),
    ("fill C[0 +: 65, 0 +: 64], 0", "region-bounds"),
    (
        "copy B[64 +: 64, 0 +: 64] -> S[0 +: 64, 0 +: 64]",
        "region-bounds",
    ),
    (
        "copy B[-1 +: 64, 0 +: 64] -> S[0 +: 64, 0 +: 64]",
        "region-bounds",
    ),
    (
        "copy B[1.0 +: 64, 0 +: 64] -> S[0 +: 64, 0 +: 64]",
        "index-type",
    ),
    // control flow
    ("for i in serial(0, 4:int64) {\n}", "loop-range"),
    ("for i in serial(0.0, 4.0) {\n}", "loop-range"),
    ("for i in serial(0, 4, 0) {\n}", "loop-range"),
    ("for i in pipelined(4, 0, -1) stages=2 {\n}", "loop-range"),
    ("for i in unroll(0, 4) factor=0 {\n}", "loop-range"),
    (
        "for i in persistent(2..4) wave=1 index=bx group=1 {\n}",
        "loop-range",
    ),
    (
        "for i in persistent(4) wave=0 index=bx group=1 {\n}",
        "loop-range",
    ),
    ("for i, j in serial(0..4, 0..4) {\n}", "loop-axes"),
    ("for in parallel() {\n}", "loop-axes"),
    ("@(stage=0, order=0) B[0, 0] = 0.0", "turn-place"),
    (
        "for i in serial(0, 4) {\n@(stage=0, order=0) B[i, 0] = 0.0\n}",
        "turn-place",
    ),
    (
        "for i in pipelined(0, 4) stages=2 {\nif i < 2 {\n@(order=0) B[i, 0] = 0.0\n}\n}",
        "turn-place",
    ),
    (
        "for i in pipelined(0, 4) stages=2 {\n@() let y: int32 = i\n}",
        "turn-place",
    ),
    (
        "for i in pipelined(0, 4) stages=2 {\n@(stage=0) B[i, 0] = 0.0\nB[i, 1] = 0.0\n}",
        "turn-missing",
    ),
    (
        "for i in parallel(4) {\nfill R[0 +: 64], 0\n}",
        "parallel-nesting",
    ),
    (
        "for i in parallel(4) {\nfor k in pipelined(0, 4) stages=2 {\n}\n}",
        "parallel-nesting",
    ),
    (
        "for i in parallel(4) {\nfor k in persistent(4) wave=1 index=0 group=1 {\n}\n}",
        "parallel-nesting",
    ),
    (
        "for i in parallel(4) {\nB[i, 0] = 0.0\nfor j in parallel(4) {\n}\n}",
        "parallel-nesting",
    ),
    (
        "for i in parallel(4) {\nif i == 0 {\nfor j in parallel(4) {\n}\n}\n}",
        "parallel-nesting",
    ),
    (
        "for i in parallel(4) {\nalloc Q: shared float16[4]\n}",
        "parallel-nesting",
    ),
    (
        "for i in parallel(4) {\nwarp_group 0 {\n}\n}",
        "parallel-nesting",
    ),
    ("break", "break-outside"),
    ("continue", "break-outside"),
    ("for i in parallel(4) {\nbreak\n}", "break-parallel"),
    ("if tx < 32 {\nfill R[0 +: 64], 0\n}", "tile-op-divergent"),
    (
        "let y: bool = tx < 32\nif y {\nsync_threads\n}",
        "tile-op-divergent",
    ),
    (
        "for i in serial(tx, 64) {\nfor j in parallel(4) {\n}\n}",
        "tile-op-divergent",
    ),
    ("warp_group 2 {\n}", "warp-group"),
    ("warp_group 0, 0 {\n}", "warp-group"),
    ("warp_group 0 {\nwarp_group 1 {\n}\n}", "warp-group"),
    // copies
    ("copy acc[0 +: 64] -> R[0 +: 64]", "copy-scope"),
    ("copy bar[0 +: 2] -> R[0 +: 2]", "copy-scope"),
    ("copy x[] -> R[0]", "copy-scope"),
    (
        "copy B[0 +: 32, 0 +: 64] -> S[0 +: 64, 0 +: 64]",
        "copy-extents",
    ),
    ("copy B[0 +: 64, 0] -> S[0 +: 64, 0 +: 64]", "copy-extents"),
    (
        "copy S[0 +: 33, 0 +: 64] -> S[31 +: 33, 0 +: 64]",
        "copy-overlap",
    ),
    (
        "copy S[0 +: 64, 0 +: 64] -> T[0 +: 64, 0 +: 64] async",
        "copy-async",
    ),
    (
        "copy A[0 +: 64, 0 +: 64] -> S[0 +: 64, 0 +: 64] tma",
        "copy-tma",
    ),
    (
        "copy S[0 +: 64, 0 +: 64] -> A[0 +: 64, 0 +: 64] tma barrier=bar[0]",
        "copy-tma",
    ),
    (
        "copy A[0 +: 64, 0 +: 64] -> S[0 +: 64, 0 +: 64] tma warps=[1, 1]",
        "copy-tma",
    ),
    (
        "copy S[0 +: 64, 0 +: 64] -> A[0 +: 64, 0 +: 64] tma warps=[2, 1]",
        "copy-tma",
    ),
    (
        "copy S[0 +: 64, 0 +: 64] -> A[0 +: 64, 0 +: 64] tma warps=[1, 0]",
        "copy-tma",
    ),
    (
        "copy B[0 +: 64, 0 +: 64] -> S[0 +: 64, 0 +: 64] tma barrier=bar[0]",
        "copy-tma",
    ),
    (
        "copy A[0 +: 64, 0 +: 64] -> S[0 +: 64, 0 +: 64] tma barrier=x[0]",
        "barrier-operand",
    ),
    (
        "alloc Q: local handle[64]\ncopy Q[0 +: 64] -> R[0 +: 64]",
        "copy-types",
    ),
    (
        "copy A[0 +: 64, 0 +: 64] -> S[0 +: 64, 0 +: 64] coalesced=0",
        "copy-types",
    ),
    ("fill acc[0 +: 64], 0", "fill-scope"),
    ("fill R[0 +: 64], address_of(B[0, 0])", "fill-type"),
    ("fill R[0 +: 64], broadcast(1.0, 4)", "fill-type"),
    // products
    (
        "gemm S[0 +: 64, 0 +: 32], T[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64]",
        "gemm-shape",
    ),
    (
        "gemm S[0 +: 64, 0 +: 64], T[0 +: 64, 0 +: 32] -> F[0 +: 64, 0 +: 64] trans_b",
        "gemm-shape",
    ),
    (
        "gemm S[0 +: n, 0 +: 64], T[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64]",
        "gemm-shape",
    ),
    (
        "gemm R[0 +: 64], T[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64]",
        "gemm-types",
    ),
    (
        "gemm B[0 +: 64, 0 +: 64], T[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64]",
        "gemm-scope",
    ),
    (
        "gemm S[0 +: 64, 0 +: 64], T[0 +: 64, 0 +: 64] -> C[0 +: 64, 0 +: 64]",
        "gemm-scope",
    ),
    (
        "alloc Q: fragment int32[64, 64]\ngemm S[0 +: 64, 0 +: 64], T[0 +: 64, 0 +: 64] -> Q[0 +: 64, 0 +: 64]",
        "gemm-types",
    ),
    (
        "gemm S[0 +: 32, 0 +: 64], T[0 +: 64, 0 +: 64] -> F[0 +: 32, 0 +: 64]",
        "gemm-region",
    ),
    (
        "alloc E: shared int16[64, 4]\ngemm S[0 +: 64, 0 +: 64], T[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] sparse=E[0 +: 64, 0 +: 4]",
        "gemm-shape",
    ),
    (
        "alloc E: shared int16[64, 4]\ngemm S[0 +: 64, 0 +: 32], T[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] sparse=E[0 +: 64, 0 +: 2]",
        "gemm-sparse",
    ),
    (
        "alloc E: shared int16[64, 4]\ngemm S[0 +: 64, 0 +: 32], T[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] sparse=E[0 +: 64, 0 +: 4] trans_e",
        "gemm-sparse",
    ),
    (
        "alloc E: shared int64[64, 1]\ngemm S[0 +: 64, 0 +: 32], T[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] sparse=E[0 +: 64, 0 +: 1]",
        "gemm-sparse",
    ),
    (
        "alloc E: shared int16[64, 4]\ngemm S[0 +: 64, 0 +: 32], T[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] sparse=E[0 +: 64, 0 +: 4] inst=\"mma.16x8x16.float16.float32\" warps=[2, 2]",
        "gemm-sparse",
    ),
    (
        "gemm S[0 +: 64, 0 +: 64], T[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] inst=\"mma_sp.16x8x32.float16.float32\" warps=[2, 2]",
        "gemm-sparse",
    ),
    (
        "alloc E: local int16[64, 4]\ngemm S[0 +: 64, 0 +: 32], T[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] sparse=E[0 +: 64, 0 +: 4]",
        "gemm-scope",
    ),
    (
        "alloc P: shared float8_e4m3fn[64, 64]\nalloc Q: shared float4_e2m1fn[64, 64]\nalloc SA: shared float8_e8m0fnu[64, 2]\nalloc SB: shared float8_e8m0fnu[64, 4]\ngemm P[0 +: 64, 0 +: 64], Q[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] scales=SA[0 +: 64, 0 +: 2], SB[0 +: 64, 0 +: 4] every=[32, 32]",
        "gemm-scales",
    ),
    (
        "alloc P: shared float8_e4m3fn[64, 64]\nalloc Q: shared float4_e2m1fn[64, 64]\nalloc SA: shared float8_e8m0fnu[64, 2]\nalloc SB: shared float8_e8m0fnu[64, 4]\ngemm P[0 +: 64, 0 +: 64], Q[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] scales=SA[0 +: 64, 0 +: 2], SB[0 +: 64, 0 +: 4] every=[32, 0]",
        "gemm-scales",
    ),
    (
        "alloc P: shared float8_e4m3fn[64, 64]\nalloc Q: shared float4_e2m1fn[64, 64]\nalloc SA: shared float8_e8m0fnu[64, 2]\nalloc SB: shared float8_e8m0fnu[64, 4]\ngemm P[0 +: 64, 0 +: 64], Q[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] scales=SA[0 +: 64, 0 +: 2], SB[0 +: 32, 0 +: 4] every=[32, 16]",
        "gemm-scales",
    ),
    (
        "alloc P: shared float8_e4m3fn[64, 64]\nalloc Q: shared float4_e2m1fn[64, 64]\nalloc SA: shared float8_e8m0fnu[64, 2]\nalloc SB: shared float8_e8m0fnu[64, 4]\ngemm P[0 +: 64, 0 +: 64], Q[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] scales=P[0 +: 64, 0 +: 2], Q[0 +: 64, 0 +: 4] every=[32, 16]",
        "gemm-scales",
    ),
    (
        "alloc P: shared float8_e4m3fn[64, 64]\nalloc Q: shared float4_e2m1fn[64, 64]\nalloc SA: shared float8_e8m0fnu[64, 2]\nalloc SB: shared float8_e8m0fnu[64, 4]\ngemm P[0 +: 64, 0 +: 64], Q[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] scales=SA[0 +: 64, 0 +: 2], SB[0 +: 64, 0 +: 4] every=[32, 16] kind=wgmma",
        "gemm-scales",
    ),
    (
        "alloc P: shared float8_e4m3fn[64, 64]\nalloc Q: shared float4_e2m1fn[64, 64]\nalloc SA: shared float8_e8m0fnu[64, 2]\nalloc SB: shared float8_e8m0fnu[64, 4]\ngemm P[0 +: 64, 0 +: 64], Q[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] scales=SA[0 +: 64, 0 +: 2], SB[0 +: 64, 0 +: 4] every=[32, 16] inst=\"mma.16x8x16.float16.float32\" warps=[2, 2]",
        "gemm-scales",
    ),
    (
        "alloc P: shared float8_e4m3fn[64, 64]\nalloc Q: shared float4_e2m1fn[64, 64]\nalloc SA: shared float8_e8m0fnu[64, 2]\nalloc SB: shared float8_e8m0fnu[64, 4]\ngemm S[0 +: 64, 0 +: 64], Q[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] scales=SA[0 +: 64, 0 +: 2], SB[0 +: 64, 0 +: 4] every=[32, 16]",
        "gemm-types",
    ),
    (
        "alloc P: shared float8_e4m3fn[64, 64]\nalloc Q: shared float4_e2m1fn[64, 64]\nalloc SA: shared float8_e8m0fnu[64, 2]\nalloc SB: shared float8_e8m0fnu[64, 4]\ngemm P[0 +: 64, 0 +: 64], Q[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64]",
        "gemm-types",
    ),
    (
        "alloc P: shared float8_e4m3fn[64, 64]\nalloc Q: shared float4_e2m1fn[64, 64]\nalloc SA: shared float8_e8m0fnu[64, 2]\nalloc SB: shared float8_e8m0fnu[64, 4]\nalloc LS: local float8_e8m0fnu[64, 2]\ngemm P[0 +: 64, 0 +: 64], Q[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] scales=LS[0 +: 64, 0 +: 2], SB[0 +: 64, 0 +: 4] every=[32, 16]",
        "gemm-scope",
    ),
    (
        "alloc P: shared float8_e4m3fn[64, 64]\nalloc Q: shared float4_e2m1fn[64, 64]\nalloc SA: shared float8_e8m0fnu[64, 2]\nalloc SB: shared float8_e8m0fnu[64, 4]\nalloc H: fragment float16[64, 64]\ngemm P[0 +: 64, 0 +: 64], Q[0 +: 64, 0 +: 64] -> H[0 +: 64, 0 +: 64] scales=SA[0 +: 64, 0 +: 2], SB[0 +: 64, 0 +: 4] every=[32, 16]",
        "gemm-types",
    ),
    (
        "gemm S[0 +: 64, 0 +: 64], T[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] k_pack=3",
        "gemm-k-pack",
    ),
    (
        "gemm S[0 +: 64, 0 +: 64], T[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] inst=\"mma.16x8x16.float16.float32\" warps=[0, 4]",
        "gemm-plan",
    ),
    (
        "gemm S[0 +: 64, 0 +: 64], T[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] inst=\"mma.16x8x16.float16.float32\" warps=[64, 64]",
        "gemm-plan",
    ),
    (
        "gemm S[0 +: 64, 0 +: 64], T[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] clear=1",
        "gemm-clear",
    ),
    (
        "gemm S[0 +: 64, 0 +: 64], T[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] barrier=bar[0]",
        "gemm-barrier",
    ),
    // reductions
    (
        "reduce sum F[0 +: 64, 0 +: 64] -> R[0 +: 64] dim=2",
        "reduce-dim",
    ),
    (
        "reduce sum F[0 +: 64, 0 +: 64] -> R[0 +: 32] dim=1",
        "reduce-shape",
    ),
    (
        "reduce sum B[0 +: 64, 0 +: 64] -> R[0 +: 64] dim=1",
        "reduce-scope",
    ),
    (
        "reduce sum F[0 +: 64, 0 +: 64] -> L[0 +: 8] dim=1",
        "reduce-scope",
    ),
    (
        "reduce bitor F[0 +: 64, 0 +: 64] -> R[0 +: 64] dim=1",
        "reduce-types",
    ),
    (
        "scan sum F[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] dim=2",
        "scan-dim",
    ),
    (
        "scan sum F[0 +: 64, 0 +: 64] -> R[0 +: 64] dim=0",
        "scan-shape",
    ),
    (
        "scan sum B[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] dim=0",
        "scan-scope",
    ),
    (
        "scan sum S[0 +: 64, 0 +: 64] -> F[0 +: 64, 0 +: 64] dim=0",
        "scan-types",
    ),
    ("y = warp_reduce bitand 1.0", "reduce-types"),
    // reducers
    (
        "for i in parallel(64) {\nreducer_update acc[i], 1.0\n}",
        "reducer-epoch",
    ),
    (
        "reducer_init acc\nreducer_update acc[0], 1.0\nreducer_finalize acc",
        "reducer-epoch",
    ),
    (
        "reducer_init acc\nreducer_init acc\nreducer_finalize acc",
        "reducer-epoch",
    ),
    ("reducer_init acc", "reducer-epoch"),
    ("reducer_finalize acc", "reducer-epoch"),
    (
        "reducer_init acc\nfor i in serial(0, 4) {\nreducer_finalize acc\n}",
        "reducer-epoch",
    ),
    ("reducer_init acc, 1\nreducer_finalize acc", "reducer-types"),
    (
        "reducer_init acc\nreducer_finalize acc -> R[0 +: 32]",
        "reducer-types",
    ),
    ("reducer_init R", "reducer-types"),
    (
        "reducer_init acc\nreducer_finalize acc -> R[0 +: 64]\nlet y: float32 = acc[0]",
        "reducer-access",
    ),
    // atomics
    (
        "atomic add F[0 +: 64, 0 +: 64], 1.0 relaxed",
        "atomic-scope",
    ),
    ("atomic add Z[0 +: 64], 1 relaxed", "atomic-types"),
    ("atomic or C[0 +: 64, 0 +: 64], 1.0 relaxed", "atomic-types"),
    (
        "atomic add C[0 +: 64, 0 +: 64], R[0 +: 64] relaxed",
        "copy-extents",
    ),
    ("atomic_rmw add C[0, 0], 1 relaxed", "atomic-types"),
    ("atomic_rmw add L[0], 1.0 relaxed", "atomic-scope"),
    ("y = atomic_load I[0] release", "atomic-order"),
    ("atomic_store I[0], 1 acquire", "atomic-order"),
    ("atomic_vec_add C[0, 0], L[0] lanes=3", "vec-add"),
    // other tile operations
    (
        "transpose S[0 +: 64, 0 +: 32] -> T[0 +: 64, 0 +: 32]",
        "transpose-shape",
    ),
    (
        "transpose B[0 +: 64, 0 +: 64] -> T[0 +: 64, 0 +: 64]",
        "transpose-scope",
    ),
    (
        "im2col B -> S[0 +: 64, 0 +: 64] m=0 k=0 kernel=3 stride=1 dilation=1 pad=0",
        "im2col-operands",
    ),
    // threads
    ("mbarrier_arrive S[0]", "barrier-operand"),
    ("mbarrier_wait bar[0] parity=1.0", "barrier-operand"),
    ("mbarrier_expect_tx bar[0] bytes=1.0", "barrier-operand"),
    ("sync_threads id=16 count=32", "sync-named"),
    ("sync_threads id=1 count=512", "sync-named"),
    ("y = shuffle xor bx, 1 width=24", "shuffle-width"),
    ("y = vote any bx", "vote-type"),
    (
        "allreduce (a: int32, b: int32) -> a + b, identity=0, x[] if true -> L[0] axes=[x]",
        "allreduce-types",
    ),
    (
        "allreduce (a: float32, b: float32) -> a + b, identity=0.0, x[] if true -> L[0] axes=[y, x]",
        "allreduce-types",
    ),
    (
        "allreduce (a: float32, b: float32) -> a + b, identity=0.0, x[] if true -> S[0, 0] axes=[x]",
        "allreduce-types",
    ),
    ("dp4a Z[0], Z[4] -> C[0, 0]", "dp4a-types"),
    // levels
    (
        "g2s B[0 +: 64, 0 +: 64] at [0, 0] -> S[0 +: 64, 0 +: 64] at [0, 0] inst=\"load\" width=1",
        "level",
    ),
    ("barrier block", "level"),
    ("set_prio 1", "level"),
    ("sched_barrier 0", "level"),
    ("iteration 1", "level"),
];

/// Levels below: level, lines and the rule they break.
const LOWER_FAULTS: &[(&str, &str, &str)] = &[
    ("device", "fill S[0 +: 64, 0 +: 64], 0", "level"),
    ("device", "for i in parallel(4) {\n}", "level"),
    ("device", "for i in pipelined(0, 4) stages=2 {\n}", "level"),
    ("loop", "sched_group_barrier mask=8 size=1 group=0", "level"),
    (
        "loop",
        "for i in pipelined(0, 4) stages=2 {\n@(stage=0) B[i, 0] = 0.0\n}",
        "turn-open",
    ),
    (
        "loop",
        "for i in pipelined(0, 4) stages=2 {\n@(order=0) B[i, 0] = 0.0\n}",
        "turn-open",
    ),
    (
        "loop",
        "for i in pipelined(0, 4) stages=2 {\n@(stage=0, order=0) B[i, 0] = 0.0\nB[i, 1] = 0.0\n}",
        "turn-missing",
    ),
    (
        "loop",
        "g2s S[0 +: 64, 0 +: 64] at [0, 0] -> T[0 +: 64, 0 +: 64] at [0, 0] inst=\"load\" width=1",
        "micro-scope",
    ),
    (
        "loop",
        "s2r S[0 +: 64, 0 +: 64] at [0, 0] -> T[0 +: 64, 0 +: 64] at [0, 0] inst=\"load\" width=1",
        "micro-scope",
    ),
    (
        "loop",
        "mma S[0 +: 64, 0 +: 64] at [0, 0] -> F[0 +: 64, 0 +: 64] at [0, 0] inst=\"load\" width=1",
        "micro-count",
    ),
    (
        "loop",
        "mma S[0 +: 64, 0 +: 64] at [0, 0], S[0 +: 64, 0 +: 64] at [0, 0] -> F[0 +: 64, 0 +: 64] at [0, 0] inst=\"mma_sp.16x8x32.float16.float32\" width=1",
        "micro-count",
    ),
    (
        "loop",
        "s2r S[0 +: 64, 0 +: 64] at [0, 0] -> F[0 +: 64, 0 +: 64] at [0, 0] inst=\"load\" width=0",
        "micro-count",
    ),
    (
        "loop",
        "s2r S[0 +: 64, 0 +: 64] slot=1 at [0, 0] -> F[0 +: 64, 0 +: 64] at [0, 0] inst=\"load\" width=1",
        "micro-slot",
    ),
    (
        "loop",
        "alloc Q: shared float16[4] versions=2\ns2r Q[0 +: 4] at [0] -> R[0 +: 4] at [0] inst=\"load\" width=1",
        "micro-slot",
    ),
    (
        "loop",
        "alloc Q: shared float16[64] offset=0 bytes=128",
        "shared-place",
    ),
    (
        "device",
        "alloc Q: shared float16[64] offset=8 bytes=128",
        "shared-place",
    ),
    (
        "device",
        "alloc Q: shared float16[64] versions=2 offset=0 bytes=128",
        "shared-place",
    ),
    (
        "device",
        "alloc Q: shared float16[64] offset=4294967280 bytes=128",
        "shared-place",
    ),
    (
        "device",
        "alloc Q: local float16[64] offset=0 bytes=128",
        "shared-place",
    ),
    (
        "loop",
        "s2r S[0 +: 64, 0 +: 64] at [0] -> F[0 +: 64, 0 +: 64] at [0, 0] inst=\"load\" width=1",
        "index-count",
    ),
    (
        "loop",
        "s2r for c < 0 do S[0 +: 64, 0 +: 64] at [c, 0] -> F[0 +: 64, 0 +: 64] at [0, 0] inst=\"load\" width=1",
        "micro-count",
    ),
    (
        "loop",
        "mma S[0 +: 64, 0 +: 64] at [0, 0], S[0 +: 64, 0 +: 64] at [0, 0] -> F[0 +: 64, 0 +: 64] at [0, 0] inst=\"wgmma.64x64x16.float16.float32.k.k.fresh\" width=1",
        "micro-count",
    ),
    (
        "loop",
        "s2r for c < 4 turning do S[0 +: 64, 0 +: 64] at [c, 0] -> F[0 +: 64, 0 +: 64] at [c, 0] inst=\"load\" width=1",
        "micro-count",
    ),
    (
        "loop",
        "s2r S[0 +: 64, 0 +: 64] at [0, 0] -> F[0 +: 64, 0 +: 64] at [0, 0] inst=\"load\" width=1 apart=0",
        "micro-count",
    ),
    (
        "loop",
        "mma F[0 +: 64, 0 +: 64] at [0, 0], F[0 +: 64, 0 +: 64] at [0, 0] -> F[0 +: 64, 0 +: 64] at [0, 0] inst=\"mfma.16x16x16.float16.float32\" width=1 apart=4",
        "micro-count",
    ),
    (
        "loop",
        "s2r S[0 +: 64, 0 +: 64] at [0, 0] -> F[0 +: 64, 0 +: 64] at [0, 0] inst=\"load\" width=1 otherwise=0",
        "micro-otherwise",
    ),
    (
        "loop",
        "s2r S[0 +: 64, 0 +: 64] at [0, 0] -> F[0 +: 64, 0 +: 64] at [0, 0] inst=\"load\" width=1 pred=0",
        "condition-type",
    ),
    (
        "loop",
        "tma_load A[0 +: 64, 0 +: 64] at [0, 0] -> S[0 +: 64, 0 +: 64] at [0, 0] inst=\"tma.64x64\" width=1",
        "micro-bulk",
    ),
    (
        "loop",
        "tma_store S[0 +: 64, 0 +: 64] at [0, 0] -> A[0 +: 64, 0 +: 64] at [0, 0] inst=\"tma.64\" width=1",
        "micro-bulk",
    ),
    (
        "loop",
        "tma_store S[0 +: 64, 0 +: 64] at [0, 0] -> A[0 +: 64, 0 +: 64] at [0, 0] inst=\"load\" width=1",
        "micro-bulk",
    ),
    (
        "loop",
        "alloc Q: shared float16[64, 64] layout=swizzled",
        "layout-undecided",
    ),
    (
        "loop",
        "alloc Q: shared float16[4] layout=map(i) -> (3 - i)",
        "layout-undecided",
    ),
    (
        "device",
        "alloc Q: local float16[4] layout=fragment(i) -> (0; i)",
        "layout-undecided",
    ),
    ("device", "wait vmcnt(64)", "wait-range"),
    ("device", "wait lgkmcnt(16)", "wait-range"),
    ("device", "commit vmcnt", "commit-counter"),
    ("device", "barrier named(16, 32)", "barrier-named"),
    ("device", "barrier named(1, 0)", "barrier-named"),
    ("device", "barrier_init bar[0] count=0", "barrier-named"),
    ("device", "barrier cond(bx)", "condition-type"),
    ("device", "set_prio 4", "priority-range"),
    ("device", "iteration 1.5", "iteration-type"),
];

/// Faults of the function itself: what is replaced, by what, and the rule.
const HEADER_FAULTS: &[(&str, &str, &str)] = &[
    (
        "  kernel grid",
        "  attr compile_flags = [\"-fplugin=x.so\"]\n  kernel grid",
        "compile-flag",
    ),
    ("grid(bx: 4)", "grid(bx: 0)", "kernel-grid"),
    ("grid(bx: 4)", "grid(bx: 1.0)", "kernel-grid"),
    ("grid(bx: 4)", "grid(bx int64: 4)", "kernel-grid"),
    ("grid(bx: 4)", "grid()", "kernel-grid"),
    (
        "grid(bx: 4)",
        "grid(bx: 4, by: 4, bz: 4, bw: 4)",
        "kernel-grid",
    ),
    ("tz: 1)", "tz: 1) cluster=(0, 1, 1)", "kernel-grid"),
    ("tz: 1)", "tz: 1) swizzle=row(0)", "kernel-grid"),
    ("tx: 256", "tx: 0", "kernel-threads"),
    ("tx: 256", "tx: 2048", "kernel-threads"),
    (
        "symbol m: int32",
        "symbol m: int32\n  symbol k: int32",
        "symbol-unbound",
    ),
    (
        "scalar n: int32",
        "param D: float32[4] safe=1",
        "safe-value",
    ),
    (
        "scalar n: int32",
        "param D: shared float32[4]",
        "buffer-origin",
    ),
];

fn expect(text: &str, code: &str) {
    let errors = verify(&parsed(text)).expect_err(&format!("[{code}] in\n{text}"));
    assert_eq!(errors[0].code.0, code, "{}", rendered(text, &errors));
    assert!(
        !errors[0].primary.span.is_none(),
        "{}",
        rendered(text, &errors)
    );
}

#[test]
fn sound_lines_pass() {
    for lines in SOUND {
        let text = kernel(lines);
        if let Err(errors) = verify(&parsed(&text)) {
            panic!("{}", rendered(&text, &errors));
        }
    }
}

#[test]
fn each_rule_finds_its_fault() {
    for (lines, code) in FAULTS {
        expect(&kernel(lines), code);
    }
    for (level, lines, code) in LOWER_FAULTS {
        expect(&at_level(level, lines), code);
    }
    for (old, new, code) in HEADER_FAULTS {
        let text = kernel("").replacen(old, new, 1);
        assert_ne!(text, kernel(""));
        expect(&text, code);
    }
    expect(
        &header("  alloc Q: shared float16[4]").replace(
            "bar: barrier",
            "Y: shared float16[4]\n    fill Q[0 +: 4], 0\n    alloc bar: barrier",
        ),
        "buffer-scope",
    );
}

/// Faults that no text has.
#[test]
fn what_only_a_broken_pass_makes() {
    use tilewright_ir::{Buffer, DType, Expr, ExprKind, Span, Stmt, StmtKind, Var, VarKind};
    let base = || parsed(&kernel("let y: int32 = bx\nlet z: int32 = y"));
    let check = |func: &Func, code: &str| {
        let errors = verify(func).expect_err(code);
        assert_eq!(errors[0].code.0, code, "{}", print(func));
    };
    let lets = |func: &Func| -> Vec<usize> {
        let body = &func.kernels[0].body;
        let is_let = |s: &Stmt| matches!(s.kind, StmtKind::Let { .. });
        (0..body.len()).filter(|i| is_let(&body[*i])).collect()
    };
    let set_value = |func: &mut Func, value: Expr| {
        let last = lets(func)[1];
        if let StmtKind::Let { value: old, .. } = &mut func.kernels[0].body[last].kind {
            *old = value;
        }
    };

    let mut f = base();
    set_value(&mut f, Expr::var(Var::from_u32(999), DType::I32));
    check(&f, "dangling-id");

    let mut f = base();
    f.kernels[0].body.push(Stmt::new(
        StmtKind::Alloc(Buffer::from_u32(999)),
        Span::NONE,
    ));
    check(&f, "dangling-id");

    let mut f = base();
    let at = lets(&f)[0];
    let copy = f.kernels[0].body[at].clone();
    f.kernels[0].body.push(copy);
    check(&f, "var-twice");

    let mut f = base();
    let copy = f.kernels[0].body[0].clone();
    f.kernels[0].body.push(copy);
    check(&f, "buffer-twice");

    let mut f = base();
    let bx = f.kernels[0].grid[0].0;
    f.vars[bx].kind = VarKind::Loop;
    check(&f, "var-kind");

    let mut f = base();
    set_value(&mut f, Expr::var(bx, DType::I32.with_lanes(0)));
    check(&f, "dtype-lanes");

    let mut f = base();
    let deep = (0..1000).fold(Expr::i32(1), |e, _| e + 1);
    set_value(&mut f, deep);
    check(&f, "expr-depth");

    let mut f = base();
    // Thirty doublings are a billion nodes, though only thirty are stored.
    let wide = (0..30).fold(Expr::i32(1), |e, _| {
        Expr::bin(tilewright_ir::BinOp::Add, e.clone(), e)
    });
    set_value(&mut f, wide);
    check(&f, "expr-depth");

    let mut f = base();
    let no_args = ExprKind::Math(tilewright_ir::MathFn::Exp, Vec::new());
    set_value(&mut f, Expr::new(no_args, DType::F32, Span::NONE));
    check(&f, "math-arity");

    let mut f = base();
    let mut block = Vec::new();
    for _ in 0..300 {
        block = vec![Stmt::new(
            StmtKind::If {
                cond: Expr::bool(true),
                then: block,
                otherwise: Vec::new(),
            },
            Span::NONE,
        )];
    }
    f.kernels[0].body.extend(block);
    check(&f, "block-depth");
}

/// A rule without a fault above, or without a line in a module comment, is found here.
#[test]
fn every_rule_is_tested_and_documented() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/src/verify");
    let this = include_str!("verify.rs");
    let mut docs = String::new();
    let mut rules = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir(dir).expect("the verifier's folder") {
        let path = entry.expect("an entry").path();
        let source = std::fs::read_to_string(path).expect("a source file");
        docs.extend(source.lines().filter(|line| line.starts_with("//!")));
        // A rule is a string literal in kebab case.
        for literal in source.split('"').skip(1).step_by(2) {
            let kebab = literal.contains('-')
                && literal
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c == '-' || c.is_ascii_digit());
            if kebab || literal == "level" {
                rules.insert(literal.to_string());
            }
        }
    }
    assert!(rules.len() > 60, "{rules:?}");
    for rule in rules {
        assert!(
            this.contains(&format!("\"{rule}\"")),
            "`{rule}` has no test"
        );
        assert!(
            docs.contains(&format!("`{rule}`")),
            "`{rule}` is not documented"
        );
    }
}

#[test]
fn lines_that_are_printed_need_words_and_a_kernel() {
    let func = |workspace: &str, formats: &str| {
        format!(
            "func @f level=device {{\n  workspace W: {workspace}\n  attr prints = W[{formats}]\n  \
             kernel grid(bx: 1) threads(tx: 64, ty: 1, tz: 1) {{\n  }}\n}}\n"
        )
    };
    let right = func("uint32[65536]", "[0, \"x\", int8]");
    assert!(verify(&parsed(&right)).is_ok());
    for wrong in [
        func("int32[65536]", "[0, \"x\", int8]"),
        func("uint32[64]", "[0, \"x\", int8]"),
        func("uint32[65536]", "[1, \"x\"]"),
    ] {
        let errors = verify(&parsed(&wrong)).expect_err("it is wrong");
        assert!(errors.iter().all(|d| d.code.0 == "prints"), "{errors:?}");
    }
}
