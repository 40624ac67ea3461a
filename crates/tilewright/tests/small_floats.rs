//! Conversions of floats of eight bits and fewer as machine code of AMD's targets: every code, and
//! numbers at and beside every tie, are what the reference evaluator makes of them. How many
//! instructions a conversion takes is counted. No GPU is needed; clang is.

use tilewright::emulate::{Emulator, Options};
use tilewright::frontend::{self, SettingValue};
use tilewright::ir::small_float::Format;
use tilewright::ir::{DType, Func, Scalar, SourceMap, Target};
use tilewright::jit;
use tilewright::sim::{self, Arg, Args, HostTensor, RunOptions};

const SMALL: [Scalar; 8] = [
    Scalar::F8E4M3FN,
    Scalar::F8E5M2,
    Scalar::F8E4M3FNUZ,
    Scalar::F8E5M2FNUZ,
    Scalar::F8E8M0,
    Scalar::F6E2M3,
    Scalar::F6E3M2,
    Scalar::F4E2M1,
];

const WIDE: [Scalar; 3] = [Scalar::F32, Scalar::F16, Scalar::BF16];

const KERNEL: &str = r#"
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1])
def casts(n, source, target):
    @T.prim_func
    def cast(A: T.Tensor((n,), source), B: T.Tensor((n,), target)):
        with T.Kernel(T.ceildiv(n, 1024), threads=64) as bx:
            for i in T.Parallel(1024):
                if bx * 1024 + i < n:
                    B[bx * 1024 + i] = T.cast(A[bx * 1024 + i], target)
    return cast
"#;

#[test]
fn every_code_is_its_value() {
    for target in amd() {
        for from in SMALL {
            let bytes: Vec<u8> = (0..=255).collect();
            let codes = 1usize << from.bits();
            let input = match from.bits() {
                8 => HostTensor::from_bytes(DType::scalar(from), &[codes], bytes),
                _ => {
                    let format = Format::of(from).expect("a small float");
                    let values: Vec<f64> = (0..codes as u32).map(|c| format.decode(c)).collect();
                    HostTensor::from_f64(DType::scalar(from), &[codes], &values)
                }
            };
            let input = input.expect("a tensor");
            for to in WIDE {
                is_the_reference(target, &input, from, to);
            }
        }
    }
}

#[test]
fn numbers_are_rounded_to_the_nearest() {
    for target in amd() {
        for to in SMALL {
            let values = about(to);
            for from in WIDE {
                let input = HostTensor::from_f64(DType::scalar(from), &[values.len()], &values);
                is_the_reference(target, &input.expect("a tensor"), from, to);
            }
        }
    }
}

/// Vector instructions that clang makes of a kernel that converts sixteen elements a thread, at most,
/// where no instruction knows the format, or one knows it.
#[test]
fn conversions_take_few_instructions() {
    for (from, to, most) in [
        (Scalar::F8E4M3FN, Scalar::F16, 56),
        (Scalar::F8E4M3FN, Scalar::F32, 72),
        (Scalar::F8E4M3FN, Scalar::BF16, 88),
        (Scalar::F8E5M2, Scalar::F16, 25),
        (Scalar::F8E5M2, Scalar::F32, 40),
        (Scalar::F8E4M3FNUZ, Scalar::F32, 40),
        (Scalar::F32, Scalar::F8E4M3FN, 160),
        (Scalar::F32, Scalar::F8E5M2, 160),
        (Scalar::F32, Scalar::F8E4M3FNUZ, 110),
        (Scalar::F16, Scalar::F8E4M3FN, 176),
    ] {
        let target = Target::Gfx942;
        let (func, sources) = staged(1024, from, to);
        let (func, _) = jit::lower(&func, target).expect("it is lowered");
        let emulator = Emulator::new(&func, target, &sources).expect("it compiles");
        let all = emulator.program().functions.iter();
        let all = all.flat_map(|f| &f.instructions);
        let count = all.filter(|i| i.text.starts_with("v_")).count();
        assert!(count <= most, "{target} {from} to {to}: {count}");
    }
}

fn staged(n: usize, from: Scalar, to: Scalar) -> (Func, SourceMap) {
    let mut sources = SourceMap::new();
    let file = sources.add("casts.py", KERNEL);
    let settings = [
        ("n", n.to_string()),
        ("source", from.name().to_string()),
        ("target", to.name().to_string()),
    ];
    let value = |text: String| SettingValue::parse(&text).expect("a value");
    let settings = settings.map(|(name, text)| (name.to_string(), value(text)));
    let staged = frontend::stage(&sources, file, None, &settings).expect("it stages");
    (staged.func, sources)
}

fn amd() -> impl Iterator<Item = Target> {
    Target::ALL.into_iter().filter(|t| Emulator::runs(*t))
}

/// Every value of a format, the middle of each and the next, and what lies beside these; numbers too
/// large and too small for it; random ones; zeros, infinities and NaN. All of both signs.
fn about(scalar: Scalar) -> Vec<f64> {
    let format = Format::of(scalar).expect("a small float");
    let mut own: Vec<f64> = (0..1u32 << scalar.bits())
        .map(|c| format.decode(c).abs())
        .collect();
    own.retain(|v| v.is_finite());
    own.sort_by(f64::total_cmp);
    own.dedup();
    let mut values = vec![0.0, f64::INFINITY, f64::NAN, 1e-45, 1e-30, 3e38, 65504.0];
    for pair in own.windows(2) {
        let middle = (pair[0] + pair[1]) / 2.0;
        for near in [pair[0] as f32, middle as f32] {
            values.extend([near, near.next_up(), near.next_down()].map(f64::from));
        }
    }
    let largest = own.last().copied().unwrap_or_default();
    for factor in [
        1.0, 1.0001, 1.03, 1.04, 1.0625, 1.07, 1.125, 1.25, 1.5, 2.0, 3.0,
    ] {
        values.push(f64::from((largest * factor) as f32));
    }
    let mut state = 1u32;
    for _ in 0..4000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // Exponents around those of the format, any fraction.
        let exponent = (state >> 24) % 48 + 127 - 26;
        let bits = exponent << 23 | state.rotate_left(9) & 0x7f_ffff;
        values.push(f64::from(f32::from_bits(bits)));
    }
    let negative: Vec<f64> = values.iter().map(|v| -v).collect();
    values.extend(negative);
    values
}

/// The machine's result is the evaluator's: the same number, sign of zero included, or NaN.
fn is_the_reference(target: Target, input: &HostTensor, from: Scalar, to: Scalar) {
    let (func, sources) = staged(input.len(), from, to);
    let output = HostTensor::zeros(DType::scalar(to), &[input.len()]).expect("a tensor");
    let mut right = Args::new()
        .with("A", Arg::Tensor(input.try_clone().expect("memory")))
        .with("B", Arg::Tensor(output));
    let mut args = right.try_clone(&func).expect("memory");
    sim::run(&func, &mut right, &RunOptions::default()).expect("the evaluator runs it");
    let (lowered, _) = jit::lower(&func, target).expect("it is lowered");
    let emulator = Emulator::new(&lowered, target, &sources).expect("it compiles");
    let ran = emulator
        .run(&mut args, &Options::default())
        .expect("it runs");
    assert!(ran.findings.is_empty(), "{:?}", ran.findings);
    let values = |args: &Args| args.tensor("B").expect("the result").to_f64();
    for (at, (got, want)) in values(&args).into_iter().zip(values(&right)).enumerate() {
        let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
        let value = input.get_f64(at);
        assert!(
            same,
            "{target}: {value:e} of {from} to {to} is {got:e}, not {want:e}"
        );
    }
}
