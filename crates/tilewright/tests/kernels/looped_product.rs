//! A product in a pipelined loop of any length, for tests of its order.

use std::collections::BTreeMap;

use tilewright::ir::small_float::Number;
use tilewright::ir::{FileId, Func, text};
use tilewright::sim::{self, Args, Fill, InputSpec};

/// The most iterations that a loop of these tests has.
pub const MOST: u32 = 5;

/// `C = A · Bᵀ` over `n` tiles of so many elements along K. With 64 rows and columns it is one for
/// warp groups.
pub fn product(threads: u32, rows: u32, tile: u32, stages: u32) -> Func {
    let depth = MOST * tile;
    let source = format!(
        "func @f level=tile {{
  scalar n: int32
  param A: float16[{rows}, {depth}]
  param B: float16[{rows}, {depth}]
  output C: float32[{rows}, {rows}]
  kernel grid(bx: 1) threads(tx: {threads}, ty: 1, tz: 1) {{
    alloc a: shared float16[{rows}, {tile}]
    alloc b: shared float16[{rows}, {tile}]
    alloc acc: fragment float32[{rows}, {rows}]
    fill acc[0 +: {rows}, 0 +: {rows}], 0.0
    for k in pipelined(0, n) stages={stages} {{
      copy A[0 +: {rows}, k * {tile} +: {tile}] -> a[0 +: {rows}, 0 +: {tile}]
      copy B[0 +: {rows}, k * {tile} +: {tile}] -> b[0 +: {rows}, 0 +: {tile}]
      gemm a[0 +: {rows}, 0 +: {tile}], b[0 +: {rows}, 0 +: {tile}] -> acc[0 +: {rows}, 0 +: {rows}] trans_b
    }}
    copy acc[0 +: {rows}, 0 +: {rows}] -> C[0 +: {rows}, 0 +: {rows}]
  }}
}}
"
    );
    text::parse(&source, FileId(0)).expect("valid text")
}

pub fn inputs(func: &Func, n: u32) -> Args {
    let mut spec = InputSpec {
        values: BTreeMap::from([("n".to_string(), Number::Int(n.into()))]),
        ..InputSpec::default()
    };
    for name in ["A", "B"] {
        spec.fills.insert(name.to_string(), Fill::Iota(7));
    }
    sim::make_inputs(func, &spec).expect("inputs")
}
