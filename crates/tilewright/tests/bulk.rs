//! Bulk loads by the copy engine, in kernels written by hand: their source, what the compiler makes
//! of it, and what they compute where there is a GPU (`--ignored`).

use tilewright::codegen::{self, Source};
use tilewright::ir::small_float::round_to;
use tilewright::ir::{DType, FileId, Func, Level, Scalar, Target, text, verify};
use tilewright::jit::{self, Compiler, Flush, KernelMeta, Loaded, Program, Runs, Timings, median};
use tilewright::lowering::{self, Until};
use tilewright::runtime::cache::{Cache, Outcome};
use tilewright::runtime::device::cuda;
use tilewright::runtime::env::Env;
use tilewright::runtime::toolchain::{Binary, CompileOptions, Cubin, Nvrtc};
use tilewright::sim::{Arg, Args, HostTensor};

/// `C = A @ B`.
const GEMM: &str = include_str!("bulk/gemm.tw");

/// `C = A @ B.T`: the tile of B is one box.
fn gemm_nt() -> String {
    let mut ir = GEMM.to_string();
    for (nn, nt) in [
        ("B: bfloat16[k, n]", "B: bfloat16[n, k]"),
        ("shared bfloat16[64, 256]", "shared bfloat16[256, 64]"),
        ("at [ks * 16, 0]", "at [0, ks * 16]"),
        ("B_shared[0 +: 64, 0 +: 256]", "B_shared[0 +: 256, 0 +: 64]"),
        ("float32.k.mn", "float32.k.k"),
        ("tma_load for p < 4 do", "tma_load"),
        (
            "B[i * 64 +: 64, bx * 256 +: 256] at [i * 64, bx * 256 + p * 64]",
            "B[bx * 256 +: 256, i * 64 +: 64] at [bx * 256, i * 64]",
        ),
        (
            "at [0, p * 64] inst=\"tma.64x64\"",
            "at [0, 0] inst=\"tma.256x64\"",
        ),
    ] {
        assert!(ir.contains(nn), "{nn}");
        ir = ir.replace(nn, nt);
    }
    ir
}

/// A box of a tensor of each rank that the engine knows.
const RANKS: &str = r#"func @ranks level=device {
  param A: float32[256]
  param B: float32[64, 32]
  param C: float32[4, 64, 32]
  param D: float32[2, 4, 64, 32]
  param E: float32[2, 2, 4, 64, 32]
  output O: float32[128]
  kernel grid(bx: 1) threads(tx: 128, ty: 1, tz: 1) {
    alloc V: shared float32[256]
    alloc S: shared float32[64, 32] versions=4 layout=panels(128)
    alloc bar: barrier uint64[1] arrivals=[1]
    if tx == 0 {
      mbarrier_expect_tx bar[0] bytes=33792 arrive
      tma_load A[0 +: 256] at [0] -> V[0 +: 256] at [0] inst="tma.256" width=1 counter=mbarrier arrives=bar[0]
      tma_load B[0 +: 64, 0 +: 32] at [0, 0] -> S[0 +: 64, 0 +: 32] slot=0 at [0, 0] inst="tma.64x32" width=1 counter=mbarrier arrives=bar[0]
      tma_load C[3 +: 1, 0 +: 64, 0 +: 32] at [3, 0, 0] -> S[0 +: 64, 0 +: 32] slot=1 at [0, 0] inst="tma.1x64x32" width=1 counter=mbarrier arrives=bar[0]
      tma_load D[1 +: 1, 2 +: 1, 0 +: 64, 0 +: 32] at [1, 2, 0, 0] -> S[0 +: 64, 0 +: 32] slot=2 at [0, 0] inst="tma.1x1x64x32" width=1 counter=mbarrier arrives=bar[0]
      tma_load E[0 +: 1, 1 +: 1, 2 +: 1, 0 +: 64, 0 +: 32] at [0, 1, 2, 0, 0] -> S[0 +: 64, 0 +: 32] slot=3 at [0, 0] inst="tma.1x1x1x64x32" width=1 counter=mbarrier arrives=bar[0]
    }
    mbarrier_wait bar[0] parity=0
    O[tx] = V[tx] + S[0, tx // 2, tx % 32] + S[1, tx // 2, tx % 32] + S[2, tx // 2, tx % 32] + S[3, tx // 2, tx % 32]
  }
}
"#;

fn generated(ir: &str) -> (Func, Source) {
    let func = text::parse(ir, FileId(0)).unwrap_or_else(|e| panic!("{e:?}"));
    verify::verify(&func).unwrap_or_else(|e| panic!("{e:?}"));
    let options = codegen::Options::default();
    let source = codegen::generate(&func, Target::Sm90a, options);
    (func, source.unwrap_or_else(|e| panic!("{e:?}")))
}

fn compiled(source: &Source) -> Cubin {
    let nvrtc = Nvrtc::find(&Env::process()).unwrap_or_else(|missing| {
        panic!("this test needs NVRTC: run scripts/setup-nvrtc\n{missing}")
    });
    let cubin = nvrtc.compile(&source.text, "sm_90a", &CompileOptions::default());
    cubin.unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn gemm_source() {
    let (_, source) = generated(GEMM);
    let header = source.text.rfind("}  // namespace tw\n");
    let header = header.map_or(0, |at| at + 19);
    insta::assert_snapshot!(source.text[header..].trim_start());
}

#[test]
fn the_compiler_keeps_products_in_registers() {
    for ir in [GEMM, &gemm_nt(), RANKS] {
        let cubin = compiled(&generated(ir).1);
        assert!(cubin.warnings().is_empty(), "{:?}", cubin.warnings());
        for kernel in cubin.kernels() {
            let spills = kernel.spills.map_or(1, |s| s.stores + s.loads);
            assert_eq!((spills, kernel.stack), (0, 0), "{kernel:?}");
        }
    }
}

/// A kernel's launch as the cache keeps it: maps stand behind the other arguments.
#[test]
fn maps_are_arguments() {
    let (func, source) = generated(GEMM);
    let launch = KernelMeta::of(&func, &source.kernels[0]).to_string();
    assert_eq!(
        launch,
        "bulk_gemm 147608 0 p2,s0,s1,s2,m0:128x64:128,m1:64x64:128"
    );
}

/// Device IR has been lowered: no pass runs over it again.
#[test]
fn what_is_lowered_stays_as_it_is() {
    let (func, _) = generated(GEMM);
    let lowered = lowering::lower(&func, Target::Sm90a, Until::Level(Level::Device));
    let lowered = lowered.unwrap_or_else(|refused| panic!("{:?}", refused.errors));
    assert_eq!(lowered.func, func);
    assert!(lowered.hazards.is_some());
}

/// What is wrong with a tensor is said where the user's file names it.
#[test]
fn a_programs_tensors_are_the_users() {
    const COPY: &str = "func @copy level=device {\n  param A: float32[64]\n  output B: float32[64]\n  \
        kernel grid(bx: 1) threads(tx: 64, ty: 1, tz: 1) {\n    B[tx] = A[tx]\n  }\n}\n";
    let (func, _) = generated(&format!("# Far from the start.\n\n{COPY}"));
    let compiler = Compiler::find(Target::Sm90a, &Env::process()).expect("NVRTC");
    let options = jit::Options::default();
    let (target, cache) = (Target::Sm90a, Cache::off());
    let program = jit::build_with(&func, target, &options, None, &compiler, &cache);
    let program = program.unwrap_or_else(|e| panic!("{e}"));
    let spans = |func: &Func| -> Vec<_> {
        let tensors = func.tensors();
        tensors
            .map(|(tensor, _)| func.buffers[tensor].span)
            .collect()
    };
    let of_file = spans(&func);
    assert!(of_file.iter().all(|span| !span.is_none()));
    assert_eq!(spans(&program.signature), of_file);
}

/// The kernel on the first GPU of this machine.
fn loaded(ir: &str) -> Loaded {
    let (func, source) = generated(ir);
    let program = Program {
        target: Target::Sm90a,
        kernels: source
            .kernels
            .iter()
            .map(|k| KernelMeta::of(&func, k))
            .collect(),
        signature: func,
        origins: Vec::new(),
        code: Binary::Cubin(compiled(&source)),
        timings: Timings::default(),
        outcome: Outcome::Built,
    };
    let device = cuda::open(0).unwrap_or_else(|e| panic!("{e}"));
    program.load(&device).unwrap_or_else(|e| panic!("{e}"))
}

/// Whole numbers from -2 to 2, so that sums are exact.
fn numbers(rows: usize, cols: usize, seed: usize) -> (Vec<f64>, HostTensor) {
    let each = (0..rows * cols).map(|at| ((at * 7919 + seed) % 1009 % 5) as f64 - 2.0);
    let values: Vec<f64> = each.collect();
    let tensor = HostTensor::from_f64(DType::BF16, &[rows, cols], &values);
    (values, tensor.expect("there is memory for it"))
}

fn arguments([m, n, k]: [usize; 3], turned: bool) -> (Vec<f64>, Vec<f64>, Args) {
    let (a, a_tensor) = numbers(m, k, 1);
    let (b, b_tensor) = match turned {
        true => numbers(n, k, 5),
        false => numbers(k, n, 5),
    };
    let args = Args::new()
        .with("A", Arg::Tensor(a_tensor))
        .with("B", Arg::Tensor(b_tensor));
    (a, b, args)
}

#[test]
#[ignore = "needs a GPU with a bulk copy engine"]
fn gpu_products_are_right() {
    for (ir, turned) in [(GEMM.to_string(), false), (gemm_nt(), true)] {
        let kernel = loaded(&ir);
        for sizes in [
            [128, 256, 64],
            [128, 256, 640],
            [300, 520, 200],
            [1, 8, 8],
            [257, 1032, 72],
            [130, 264, 0],
            [0, 256, 64],
        ] {
            let [m, n, k] = sizes;
            let (a, b, mut args) = arguments(sizes, turned);
            kernel
                .run(&mut args)
                .unwrap_or_else(|e| panic!("{sizes:?}: {e}"));
            let c = args.tensor("C").expect("it was made").to_f64();
            assert_eq!(c.len(), m * n);
            for (at, found) in c.into_iter().enumerate() {
                let (row, col) = (at / n, at % n);
                let of_b = |i: usize| {
                    if turned {
                        b[col * k + i]
                    } else {
                        b[i * n + col]
                    }
                };
                let sum: f64 = (0..k).map(|i| a[row * k + i] * of_b(i)).sum();
                let wanted = round_to(Scalar::BF16, sum);
                assert_eq!(
                    found, wanted,
                    "{sizes:?}, B turned: {turned}, [{row}, {col}]"
                );
            }
        }
    }
}

#[test]
#[ignore = "needs a GPU with a bulk copy engine"]
fn gpu_odd_rows_are_refused() {
    let (_, _, mut args) = arguments([128, 256, 100], false);
    let error = loaded(GEMM).run(&mut args).expect_err("rows of 200 bytes");
    let text = error.to_string();
    assert!(
        text.contains("`A`") && text.contains("stride of 200 bytes"),
        "{text}"
    );
}

/// Prints how fast the kernel is; `--nocapture` shows it.
#[test]
#[ignore = "needs a GPU with a bulk copy engine"]
fn gpu_rate() {
    let compiler = Compiler::find(Target::Sm90a, &Env::process()).expect("NVRTC");
    let device = cuda::open(0).unwrap_or_else(|e| panic!("{e}"));
    for (ir, turned) in [(GEMM.to_string(), false), (gemm_nt(), true)] {
        let kernel = loaded(&ir);
        let flush = Flush::new(&device, &compiler, kernel.stream()).expect("memory to flush");
        for size in [4096, 8192] {
            let (_, _, mut args) = arguments([size; 3], turned);
            let call = kernel.bind(&mut args).unwrap_or_else(|e| panic!("{e}"));
            let runs = Runs {
                warmup: 5,
                timed: 30,
                ..Runs::default()
            };
            let times = kernel
                .time(&call, &flush, runs)
                .unwrap_or_else(|e| panic!("{e}"));
            let took = median(&times).as_secs_f64();
            let rate = 2.0 * (size as f64).powi(3) / took / 1e12;
            println!(
                "{size}^3, B turned: {turned}: {:.1} us, {rate:.0} TFLOP/s",
                took * 1e6
            );
        }
    }
}
