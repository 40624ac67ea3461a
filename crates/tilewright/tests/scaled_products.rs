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

const CASES: [Case; 20] = [
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
    // What instructions of 16 rows take: of eight bits and of four, along K and across.
    WIDE,
    Case {
        turned: [true, false],
        a: Scalar::F8E5M2,
        b: Scalar::F8E5M2,
        ..WIDE
    },
    Case {
        a: Scalar::F4E2M1,
        b: Scalar::F4E2M1,
        ..WIDE
    },
    Case {
        a: Scalar::F4E2M1,
        b: Scalar::F4E2M1,
        turned: [true, false],
        held: true,
        ..WIDE
    },
    // Rows and columns that the instruction does not divide.
    Case {
        sizes: [40, 24, 256, 128],
        ..WIDE
    },
    Case {
        sizes: [17, 56, 256, 256],
        a: Scalar::F4E2M1,
        b: Scalar::F4E2M1,
        held: true,
        ..WIDE
    },
    // Elements of six bits: of instructions of 32 rows and of 16, along K and across, in tiles that they
    // do not divide, and rows that end inside of a byte.
    Case {
        a: Scalar::F6E2M3,
        b: Scalar::F6E3M2,
        ..PLAIN
    },
    Case {
        a: Scalar::F6E2M3,
        b: Scalar::F6E2M3,
        ..WIDE
    },
    Case {
        a: Scalar::F6E3M2,
        b: Scalar::F6E3M2,
        turned: [true, false],
        held: true,
        ..WIDE
    },
    Case {
        sizes: [40, 24, 256, 128],
        a: Scalar::F6E3M2,
        b: Scalar::F6E2M3,
        ..WIDE
    },
    Case {
        sizes: [17, 9, 42, 42],
        a: Scalar::F6E2M3,
        b: Scalar::F6E3M2,
        every: [7, 32],
        turned: [true, false],
        ..PLAIN
    },
];

const WIDE: Case = Case {
    sizes: [64, 96, 256, 128],
    ..PLAIN
};

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
    for case in [0, 2, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19].map(|at| CASES[at]) {
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

/// Factors of every two formats that one instruction takes, along K and across, as machine code too.
#[test]
fn factors_of_two_formats() {
    let formats = [
        Scalar::F8E4M3FN,
        Scalar::F8E5M2,
        Scalar::F6E2M3,
        Scalar::F6E3M2,
        Scalar::F4E2M1,
    ];
    let pairs = formats.into_iter().flat_map(|a| formats.map(|b| (a, b)));
    let mixed = pairs.filter(|(a, b)| a != b);
    // Instructions of 16 rows, and of 32.
    let sizes = [[64, 48, 256, 128], [64, 64, 128, 64]];
    let turned = [[false, true], [true, false], [false, false]];
    let target = Target::Gfx950;
    for (at, (a, b)) in mixed.enumerate() {
        let case = Case {
            a,
            b,
            sizes: sizes[at % 2],
            turned: turned[at % 3],
            held: at % 4 == 3,
            ..WIDE
        };
        let (func, sources) = staged(case);
        let (lowered, _) = jit::lower(&func, target).expect("it is lowered");
        let mut args = inputs(case);
        sim::run(&func, &mut args, &RunOptions::default()).expect("the evaluator runs it");
        same(&args, case, "the evaluator");
        let mut args = inputs(case);
        let report = simt::run(&lowered, target, &mut args, &SimtOptions::default());
        let report = report.expect("it runs");
        assert!(report.is_clean(), "{:?}", report.diagnostics());
        same(&args, case, "the simulator");
        let emulator = Emulator::new(&lowered, target, &sources).expect("it compiles");
        let mut args = inputs(case);
        let ran = emulator.run(&mut args, &Options::default());
        let ran = ran.expect("it runs");
        assert!(ran.findings.is_empty(), "{:?}", ran.findings);
        same(&args, case, "the emulator");
        let text = tilewright::ir::text::print(&lowered);
        assert!(text.contains(".float32.scaled\""), "{a} by {b}");
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

/// Scales at both ends of their range, and those that are no numbers, where instructions take them: the
/// evaluator, the simulator and machine code have the same sums.
#[test]
fn scales_at_the_ends_of_their_range() {
    let (least, most) = (2f64.powi(-127), 2f64.powi(127));
    // Of rows and of columns, even and odd; of rows also of the second run of K.
    let scales: [[f64; 5]; 6] = [
        [most, most, least, least, most],
        [least, least, most, most, least],
        [least, 1.0, 1.0, 0.5, least],
        [least, 1.0, least, 1.0, 1.0],
        [1.0, 1.0, 1.0, 1.0, f64::NAN],
        [1.0, 1.0, 1.0, f64::NAN, 1.0],
    ];
    for format in [Scalar::F8E4M3FN, Scalar::F6E3M2, Scalar::F4E2M1] {
        let case = Case {
            a: format,
            b: format,
            ..WIDE
        };
        let (func, sources) = staged(case);
        let target = Target::Gfx950;
        let (lowered, _) = jit::lower(&func, target).expect("it is lowered");
        let emulator = Emulator::new(&lowered, target, &sources).expect("it compiles");
        for [even_row, odd_row, even_column, odd_column, second] in scales {
            let args = || {
                let mut args = inputs(case);
                // Times the largest scale these are numbers of float32.
                for name in ["A", "B"] {
                    let tensor = args.tensor_mut(name).expect("a factor");
                    for (at, value) in tensor.to_f64().into_iter().enumerate() {
                        tensor.set(at, sim::Number::Float(value.clamp(-1.0, 1.5)));
                    }
                }
                let runs = runs(case, 32);
                for (name, lines, of) in [
                    ("SA", case.sizes[0], [even_row, odd_row]),
                    ("SB", case.sizes[1], [even_column, odd_column]),
                ] {
                    let tensor = args.tensor_mut(name).expect("scales");
                    for at in 0..lines * runs {
                        let scale = match (name, at % runs) {
                            ("SA", 1) if (at / runs).is_multiple_of(4) => second,
                            _ => of[at / runs % 2],
                        };
                        tensor.set(at, sim::Number::Float(scale));
                    }
                }
                args
            };
            let bits = |args: &Args| -> Vec<u64> {
                let sums = args.tensor("C").expect("the sum").to_f64();
                // Of one kind, both what is no number and zero.
                let plain = |v: f64| if v.is_nan() { f64::NAN } else { v + 0.0 };
                sums.into_iter().map(|v| plain(v).to_bits()).collect()
            };
            let (mut wanted, mut simulated, mut emulated) = (args(), args(), args());
            sim::run(&func, &mut wanted, &RunOptions::default()).expect("the evaluator runs it");
            let wanted = bits(&wanted);
            simt::run(&lowered, target, &mut simulated, &SimtOptions::default()).expect("it runs");
            assert!(
                bits(&simulated) == wanted,
                "{format}, simulated: {scales:?}"
            );
            emulator
                .run(&mut emulated, &Options::default())
                .expect("it runs");
            assert!(bits(&emulated) == wanted, "{format}, emulated: {scales:?}");
            let nan = |v: &&u64| f64::from_bits(**v).is_nan();
            let count = wanted.iter().filter(nan).count();
            let [m, n, ..] = case.sizes;
            let expected = match (second.is_nan(), odd_column.is_nan()) {
                (true, _) => m / 4 * n,
                (_, true) => m * n / 2,
                _ => 0,
            };
            assert_eq!(count, expected);
        }
    }
}

/// Which products instructions with scales take, and which are expanded.
#[test]
fn instructions_take_scales_where_they_can() {
    let of = |format: Scalar| Case {
        a: format,
        b: format,
        ..WIDE
    };
    let [_, _, k, _] = WIDE.sizes;
    let cases = [
        (of(Scalar::F8E4M3FN), true),
        (of(Scalar::F8E5M2), true),
        (of(Scalar::F4E2M1), true),
        (of(Scalar::F8E4M3FNUZ), false),
        (
            Case {
                sizes: [64, 64, k, 64],
                ..WIDE
            },
            true,
        ),
        (
            Case {
                sizes: [64, 64, k, 32],
                ..WIDE
            },
            false,
        ),
        (
            Case {
                sizes: [64, 64, 192, 96],
                ..WIDE
            },
            false,
        ),
        (
            Case {
                every: [16, 32],
                ..WIDE
            },
            false,
        ),
        (
            Case {
                scale: Scalar::F8E4M3FN,
                ..WIDE
            },
            false,
        ),
        (
            Case {
                a: Scalar::F4E2M1,
                ..WIDE
            },
            true,
        ),
        (
            Case {
                b: Scalar::F8E4M3FNUZ,
                ..WIDE
            },
            false,
        ),
        (of(Scalar::F6E2M3), true),
    ];
    for (case, taken) in cases {
        let (func, _) = staged(case);
        for target in Target::ALL {
            let (lowered, _) = jit::lower(&func, target).expect("it is lowered");
            let text = tilewright::ir::text::print(&lowered);
            let found = text.contains(".float32.scaled\"");
            let sizes = case.sizes;
            let (a, b) = (case.a, case.b);
            assert_eq!(
                found,
                taken && target == Target::Gfx950,
                "{target} {a} {b} {sizes:?}"
            );
            assert_eq!(
                text.contains("_scaled:"),
                !found,
                "{target} {a} {b} {sizes:?}"
            );
        }
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
