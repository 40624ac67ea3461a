//! How fast kernels run on this machine: tile by tile in the reference evaluator, thread by
//! thread in the SIMT simulator.

use tilewright_ir::{Func, SourceMap, Target, text};
use tilewright_passes::driver;
use tilewright_sim::simt::{self, SimtOptions};
use tilewright_sim::{Args, InputSpec, RunOptions, make_inputs, run};
use tilewright_testkit::bench::time_with;

/// A matrix product of one tile a block.
fn gemm(size: usize, tile: usize, step: usize, threads: usize, ty: &str) -> String {
    format!(
        "func @gemm level=tile {{
  param A: {ty}[{size}, {size}]
  param B: {ty}[{size}, {size}]
  output C: float32[{size}, {size}]
  kernel grid(bx: {blocks}, by: {blocks}) threads(tx: {threads}, ty: 1, tz: 1) {{
    alloc As: shared {ty}[{tile}, {step}]
    alloc Bs: shared {ty}[{step}, {tile}]
    alloc Cl: fragment float32[{tile}, {tile}]
    fill Cl[0 +: {tile}, 0 +: {tile}], 0.0
    for k in serial(0, {steps}) {{
      copy A[by * {tile} +: {tile}, k * {step} +: {step}] -> As[0 +: {tile}, 0 +: {step}]
      copy B[k * {step} +: {step}, bx * {tile} +: {tile}] -> Bs[0 +: {step}, 0 +: {tile}]
      gemm As[0 +: {tile}, 0 +: {step}], Bs[0 +: {step}, 0 +: {tile}] -> Cl[0 +: {tile}, 0 +: {tile}]
    }}
    copy Cl[0 +: {tile}, 0 +: {tile}] -> C[by * {tile} +: {tile}, bx * {tile} +: {tile}]
  }}
}}",
        blocks = size / tile,
        steps = size / step,
    )
}

/// `C = A * 2 + B`, a point at a time.
fn elementwise(points: usize) -> String {
    format!(
        "func @add level=tile {{
  param A: float32[{points}]
  param B: float32[{points}]
  output C: float32[{points}]
  kernel grid(bx: {blocks}) threads(tx: 128, ty: 1, tz: 1) {{
    for i in parallel(4096) {{
      C[bx * 4096 + i] = A[bx * 4096 + i] * 2.0 + B[bx * 4096 + i]
    }}
  }}
}}",
        blocks = points / 4096
    )
}

fn parse(source: &str) -> Func {
    let mut sources = SourceMap::new();
    let file = sources.add("bench.tw", source);
    text::parse(source, file).expect("a kernel")
}

fn inputs(func: &Func) -> Args {
    make_inputs(func, &InputSpec::default()).expect("inputs")
}

fn main() {
    reference();
    simulator();
}

/// 2^30 multiply-adds, then 2^22 points.
fn reference() {
    for (name, source) in [
        ("gemm 1024", gemm(1024, 128, 32, 128, "float16")),
        ("elementwise 2^22", elementwise(1 << 22)),
    ] {
        let func = parse(&source);
        let args = inputs(&func);
        time_with(
            &format!("reference {name}"),
            || args.clone(),
            |mut args| run(&func, &mut args, &RunOptions::default()).expect("a run"),
        );
    }
}

/// One block of 256 threads: a 256 x 256 tile of bfloat16, 256 deep. It must take less than two
/// seconds.
fn simulator() {
    for target in [Target::Sm80, Target::Gfx942, Target::Gfx950] {
        let mut func = parse(&gemm(256, 256, 32, 256, "bfloat16"));
        let ran = driver::run(&mut func, target, &driver::Options::default());
        assert!(ran.is_ok(), "{target} refuses the kernel: {ran:?}");
        let args = inputs(&func);
        time_with(
            &format!("simulator gemm 256 {target}"),
            || args.clone(),
            |mut args| {
                let options = SimtOptions::default();
                let report = simt::run(&func, target, &mut args, &options).expect("a run");
                assert!(report.is_clean());
            },
        );
    }
}
