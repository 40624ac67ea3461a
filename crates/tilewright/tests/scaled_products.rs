//! `T.gemm_blockscaled`: by mathematics of its own, by the reference evaluator, lowered for every
//! target, and as machine code of AMD's targets. All numbers are such that every sum is exact.

use tilewright::emulate::{Emulator, Options};
use tilewright::frontend::{self, SettingValue};
use tilewright::ir::{DType, Func, Scalar, SourceMap, Target};
use tilewright::jit;
use tilewright::sim::simt::{self, SimtOptions};
use tilewright::sim::{self, Arg, Args, HostTensor, RunOptions};

const KERNEL: &str = r#"
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1])
def product(M, N, K, block_K, a, b, scale, every_a, every_b, trans_a, trans_b, held):
    tiles = K // block_K
    shape_a = (K, M) if trans_a else (M, K)
    shape_b = (N, K) if trans_b else (K, N)
    runs_a = T.ceildiv(block_K, every_a)
    runs_b = T.ceildiv(block_K, every_b)

    @T.prim_func
    def scaled(
        A: T.Tensor(shape_a, a),
        B: T.Tensor(shape_b, b),
        SA: T.Tensor((M, tiles * runs_a), scale),
        SB: T.Tensor((N, tiles * runs_b), scale),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(1, threads=128):
            sa = T.alloc_shared((M, runs_a), scale)
            sb = T.alloc_shared((N, runs_b), scale)
            c = T.alloc_fragment((M, N), "float32")
            tile_a = T.alloc_fragment((block_K, M) if trans_a else (M, block_K), a) if held else T.alloc_shared((block_K, M) if trans_a else (M, block_K), a)
            tile_b = T.alloc_shared((N, block_K) if trans_b else (block_K, N), b)
            T.clear(c)
            for k in T.Pipelined(tiles, num_stages=2):
                if trans_a:
                    T.copy(A[k * block_K, 0], tile_a)
                else:
                    T.copy(A[0, k * block_K], tile_a)
                if trans_b:
                    T.copy(B[0, k * block_K], tile_b)
                else:
                    T.copy(B[k * block_K, 0], tile_b)
                T.copy(SA[0, k * runs_a], sa)
                T.copy(SB[0, k * runs_b], sb)
                T.gemm_blockscaled(
                    tile_a, tile_b, c, sa, sb, transpose_A=trans_a, transpose_B=trans_b,
                    sf_a_granularity_k=every_a, sf_b_granularity_k=every_b,
                )
            T.copy(c, C)
    return scaled
"#;

#[derive(Clone, Copy)]
struct Case {
    /// M, N, K and how much of K a tile has.
    sizes: [usize; 4],
    a: Scalar,
    b: Scalar,
    scale: Scalar,
    every: [usize; 2],
    turned: [bool; 2],
    /// Whether A lies in registers.
    held: bool,
}

const PLAIN: Case = Case {
    sizes: [32, 32, 128, 64],
    a: Scalar::F8E4M3FN,
    b: Scalar::F8E4M3FN,
    scale: Scalar::F8E8M0,
    every: [32, 32],
    turned: [false, true],
    held: false,
};

const CASES: [Case; 9] = [
    PLAIN,
    Case {
        turned: [true, false],
        a: Scalar::F8E5M2,
        ..PLAIN
    },
    Case {
        turned: [true, true],
        a: Scalar::F8E4M3FNUZ,
        b: Scalar::F8E5M2FNUZ,
        ..PLAIN
    },
    Case {
        a: Scalar::F4E2M1,
        b: Scalar::F4E2M1,
        ..PLAIN
    },
    // fp4 with fp8, and scales of 16 of one and of 32 of the other.
    Case {
        a: Scalar::F4E2M1,
        every: [16, 32],
        turned: [false, false],
        ..PLAIN
    },
    Case {
        a: Scalar::F4E2M1,
        b: Scalar::F4E2M1,
        scale: Scalar::F8E4M3FN,
        every: [16, 16],
        ..PLAIN
    },
    // Rows, columns and runs that divide nothing.
    Case {
        sizes: [40, 24, 144, 72],
        ..PLAIN
    },
    Case {
        sizes: [17, 9, 40, 40],
        every: [7, 32],
        turned: [true, false],
        ..PLAIN
    },
    Case {
        held: true,
        ..PLAIN
    },
];

#[test]
fn sums_are_those_of_the_mathematics() {
    for case in CASES {
        let (func, _) = staged(case);
        let mut args = inputs(case);
        sim::run(&func, &mut args, &RunOptions::default()).expect("the evaluator runs it");
        same(&args, case, "the evaluator");
    }
}

#[test]
fn lowered_sums_are_the_same() {
    for case in CASES {
        let (func, _) = staged(case);
        for target in Target::ALL {
            let (lowered, _) = jit::lower(&func, target).expect("it is lowered");
            let mut args = inputs(case);
            let options = SimtOptions::default();
            let report = simt::run(&lowered, target, &mut args, &options).expect("it runs");
            assert!(report.is_clean(), "{target}: {:?}", report.diagnostics());
            same(&args, case, target.name());
        }
    }
}

#[test]
fn compiled_sums_are_the_same() {
    for case in [0, 2, 4, 7].map(|at| CASES[at]) {
        let (func, sources) = staged(case);
        for target in Target::ALL.into_iter().filter(|t| Emulator::runs(*t)) {
            let (lowered, _) = jit::lower(&func, target).expect("it is lowered");
            let emulator = Emulator::new(&lowered, target, &sources).expect("it compiles");
            let mut args = inputs(case);
            let ran = emulator
                .run(&mut args, &Options::default())
                .expect("it runs");
            assert!(ran.findings.is_empty(), "{target}: {:?}", ran.findings);
            same(&args, case, target.name());
        }
    }
}

/// A scale that is no number makes every sum with it one that is none.
#[test]
fn a_scale_that_is_no_number_is_seen() {
    let (func, _) = staged(PLAIN);
    let mut args = inputs(PLAIN);
    let scales = args.tensor_mut("SA").expect("scales");
    scales.set(5, sim::Number::Float(f64::NAN));
    sim::run(&func, &mut args, &RunOptions::default()).expect("the evaluator runs it");
    let [_, n, ..] = PLAIN.sizes;
    let sums = args.tensor("C").expect("the sum").to_f64();
    for (at, sum) in sums.into_iter().enumerate() {
        // Four scales a row: the sixth is one of row 1.
        assert_eq!(sum.is_nan(), at / n == 1, "element {at}: {sum}");
    }
}

fn staged(case: Case) -> (Func, SourceMap) {
    let [m, n, k, block_k] = case.sizes.map(|v| v.to_string());
    let python = |b: bool| if b { "True" } else { "False" }.to_string();
    let name = |s: Scalar| s.name().to_string();
    let settings = [
        ("M", m),
        ("N", n),
        ("K", k),
        ("block_K", block_k),
        ("a", name(case.a)),
        ("b", name(case.b)),
        ("scale", name(case.scale)),
        ("every_a", case.every[0].to_string()),
        ("every_b", case.every[1].to_string()),
        ("trans_a", python(case.turned[0])),
        ("trans_b", python(case.turned[1])),
        ("held", python(case.held)),
    ];
    let value = |text: String| SettingValue::parse(&text).expect("a value");
    let settings = settings.map(|(name, text)| (name.to_string(), value(text)));
    let mut sources = SourceMap::new();
    let file = sources.add("scaled.py", KERNEL);
    let staged = frontend::stage(&sources, file, None, &settings);
    (staged.expect("it stages").func, sources)
}

/// An element of a factor: a number that every type here has.
fn element(seed: usize) -> f64 {
    [0.0, 1.0, -2.0, 3.0, 0.5, -1.0, 4.0, -1.5][seed * 5 % 8]
}

/// A scale: a power of two that every type of scales has.
fn scale(seed: usize) -> f64 {
    [1.0, 4.0, 0.5, 2.0, 0.25][seed * 3 % 5]
}

/// How many scales a row has: tiles along K start new ones.
fn runs(case: Case, every: usize) -> usize {
    let [_, _, k, block_k] = case.sizes;
    k / block_k * block_k.div_ceil(every)
}

fn inputs(case: Case) -> Args {
    let [m, n, k, _] = case.sizes;
    let tensor = |dtype: Scalar, [rows, columns]: [usize; 2], of: &dyn Fn(usize, usize) -> f64| {
        let at = |i: usize| of(i / columns, i % columns);
        let values: Vec<f64> = (0..rows * columns).map(at).collect();
        let tensor = HostTensor::from_f64(DType::scalar(dtype), &[rows, columns], &values);
        Arg::Tensor(tensor.expect("as many values as elements"))
    };
    let of_a = |i: usize, j: usize| element(i * 7 + j);
    let of_b = |i: usize, j: usize| element(i * 3 + j + 1);
    Args::new()
        .with(
            "A",
            match case.turned[0] {
                false => tensor(case.a, [m, k], &of_a),
                true => tensor(case.a, [k, m], &|i, j| of_a(j, i)),
            },
        )
        .with(
            "B",
            match case.turned[1] {
                false => tensor(case.b, [k, n], &of_b),
                true => tensor(case.b, [n, k], &|i, j| of_b(j, i)),
            },
        )
        .with(
            "SA",
            tensor(case.scale, [m, runs(case, case.every[0])], &|i, j| {
                scale(i + 2 * j)
            }),
        )
        .with(
            "SB",
            tensor(case.scale, [n, runs(case, case.every[1])], &|i, j| {
                scale(2 * i + j + 1)
            }),
        )
        .with("C", tensor(Scalar::F32, [m, n], &|_, _| 0.0))
}

fn same(args: &Args, case: Case, who: &str) {
    let [m, n, k, block_k] = case.sizes;
    let run = |k: usize, every: usize| k / block_k * block_k.div_ceil(every) + k % block_k / every;
    let sums = args.tensor("C").expect("the sum").to_f64();
    for i in 0..m {
        for j in 0..n {
            let term = |k: usize| {
                let left = element(i * 7 + k) * scale(i + 2 * run(k, case.every[0]));
                let right = element(k * 3 + j + 1) * scale(2 * j + run(k, case.every[1]) + 1);
                left * right
            };
            let sum: f64 = (0..k).map(term).sum();
            let (a, b, found) = (case.a, case.b, sums[i * n + j]);
            assert_eq!(found, sum, "{who}: {a} by {b}, row {i}, column {j}");
        }
    }
}
