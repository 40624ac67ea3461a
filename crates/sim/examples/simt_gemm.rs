//! Times the simulator on one block of a 256 x 256 x 256 bfloat16 product with 256 threads, as
//! it would be lowered for sm_80: asynchronous copies into swizzled shared memory, `ldmatrix`,
//! `mma.sync`.
//!
//! `cargo run --release -p tilewright-sim --example simt_gemm`

use std::time::Instant;

use tilewright_ir::{SourceMap, Target, text};
use tilewright_sim::simt::{self, SimtOptions};
use tilewright_sim::{InputSpec, make_inputs};

const KERNEL: &str = r#"
func @gemm level=device {
  param A: bfloat16[256, 256]
  param B: bfloat16[256, 256]
  output C: float32[256, 256]
  kernel grid(bx: 1) threads(tx: 256, ty: 1, tz: 1) {
    alloc SA: shared bfloat16[256, 32] layout=swizzle(16; 1 -> 0, 2 -> 1)
    alloc SB: shared bfloat16[32, 256] layout=swizzle(16; 0 -> 0, 1 -> 1, 2 -> 2)
    alloc RA: local bfloat16[32]
    alloc RB: local bfloat16[64]
    alloc RC: local float32[256]
    for e in unroll(0, 256) {
      RC[e] = 0.0
    }
    for k in pipelined(0, 8) stages=2 {
      g2s for c < 4 do A[0 +: 256, k * 32 +: 32] at [(c * 256 + tx) // 4, k * 32 + tx % 4 * 8] -> SA[0 +: 256, 0 +: 32] at [(c * 256 + tx) // 4, tx % 4 * 8] inst="cp.async" width=8 counter=cp_async
      g2s for c < 4 do B[k * 32 +: 32, 0 +: 256] at [k * 32 + (c * 256 + tx) // 32, tx % 32 * 8] -> SB[0 +: 32, 0 +: 256] at [(c * 256 + tx) // 32, tx % 32 * 8] inst="cp.async" width=8 counter=cp_async
      commit cp_async
      wait cp_async(0)
      barrier block
      for kk in unroll(0, 2) {
        s2r for i < 4 do SA[0 +: 256, 0 +: 32] at [tx // 64 * 64 + i * 16 + tx % 16, kk * 16 + tx % 32 // 16 * 8] -> RA[0 +: 32] at [i * 8] inst="ldmatrix.x4" width=1
        s2r for j < 8 do SB[0 +: 32, 0 +: 256] at [kk * 16 + tx % 16, tx // 32 % 2 * 128 + j * 16 + tx % 32 // 16 * 8] -> RB[0 +: 64] at [j * 8] inst="ldmatrix.x4.trans" width=1
        mma for i < 4, j < 16 do RA[0 +: 32] at [i * 8], RB[0 +: 64] at [j * 4] -> RC[0 +: 256] at [(i * 16 + j) * 4] inst="mma.16x8x16.bfloat16.float32" width=1
      }
      barrier block
    }
    for i in unroll(0, 4) {
      for j in unroll(0, 16) {
        for e in unroll(0, 4) {
          C[tx // 64 * 64 + i * 16 + tx % 32 // 4 + e // 2 * 8, tx // 32 % 2 * 128 + j * 8 + tx % 4 * 2 + e % 2] = RC[(i * 16 + j) * 4 + e]
        }
      }
    }
  }
}
"#;

fn main() {
    let mut sources = SourceMap::new();
    let file = sources.add("gemm.tw", KERNEL);
    let func = match text::parse(KERNEL, file) {
        Ok(func) => func,
        Err(list) => {
            for d in list {
                eprintln!("{}", d.render(&sources, false));
            }
            std::process::exit(1);
        }
    };
    let mut args = match make_inputs(&func, &InputSpec::default()) {
        Ok(args) => args,
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(1);
        }
    };
    for seed in 0..5 {
        let opts = SimtOptions {
            seed,
            ..SimtOptions::default()
        };
        let start = Instant::now();
        match simt::run(&func, Target::Sm80, &mut args, &opts) {
            Ok(report) => {
                println!("seed {seed}: {:.1?}", start.elapsed());
                for finding in &report.findings {
                    println!("{finding}");
                }
                if seed == 0 {
                    println!("{}", report.counts);
                    for s in &report.statements {
                        let c = s.counts;
                        println!(
                            "  {:>12}  {:<24} {:>8} transactions, {:>8} conflicts",
                            sources.locate(s.span),
                            s.what,
                            c.shared_transactions,
                            c.bank_conflicts
                        );
                    }
                }
            }
            Err(e) => {
                eprintln!("{}", e.diagnostics.render(&sources, false));
                std::process::exit(1);
            }
        }
    }
    check(&args);
}

/// Compares the product with a plain one.
fn check(args: &tilewright_sim::Args) {
    let values = |name: &str| args.tensor(name).map(|t| t.to_f64()).unwrap_or_default();
    let (a, b, c) = (values("A"), values("B"), values("C"));
    let mut worst: f64 = 0.0;
    for i in 0..256 {
        for j in 0..256 {
            let sum: f64 = (0..256).map(|k| a[i * 256 + k] * b[k * 256 + j]).sum();
            worst = worst.max((sum - c[i * 256 + j]).abs());
        }
    }
    println!("largest difference to a float64 product: {worst:.3e}");
}
