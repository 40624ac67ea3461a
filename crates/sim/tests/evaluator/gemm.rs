//! Plain kernels: matrix products and elementwise loops against loops written here.

use crate::common::{call, call_with, dtype, output, parse, tensor};
use tilewright_sim::{
    Arg, Fill, HostTensor, InputSpec, Number, Rng, RunOptions, Schedule, make_inputs, run,
};

fn gemm(m: usize, n: usize, k: usize, bm: usize, bn: usize, bk: usize, ty: &str) -> String {
    let acc = match ty {
        "int8" => "int32",
        "float64" => "float64",
        _ => "float32",
    };
    let zero = if ty == "int8" {
        "0".to_string()
    } else {
        format!("0.0:{acc}")
    };
    format!(
        "func @gemm level=tile {{
  param A: {ty}[{m}, {k}]
  param B: {ty}[{k}, {n}]
  output C: {acc}[{m}, {n}]
  kernel grid(bx: {gx}, by: {gy}) threads(tx: 128, ty: 1, tz: 1) swizzle=row(3) {{
    alloc As: shared {ty}[{bm}, {bk}]
    alloc Bs: shared {ty}[{bk}, {bn}]
    alloc Cl: fragment {acc}[{bm}, {bn}]
    fill Cl[0 +: {bm}, 0 +: {bn}], {zero}
    for k in pipelined(0, {ks}) stages=3 {{
      copy A[by * {bm} +: {bm}, k * {bk} +: {bk}] -> As[0 +: {bm}, 0 +: {bk}]
      copy B[k * {bk} +: {bk}, bx * {bn} +: {bn}] -> Bs[0 +: {bk}, 0 +: {bn}]
      gemm As[0 +: {bm}, 0 +: {bk}], Bs[0 +: {bk}, 0 +: {bn}] -> Cl[0 +: {bm}, 0 +: {bn}]
    }}
    copy Cl[0 +: {bm}, 0 +: {bn}] -> C[by * {bm} +: {bm}, bx * {bn} +: {bn}]
  }}
}}",
        gx = n.div_ceil(bn),
        gy = m.div_ceil(bm),
        ks = k.div_ceil(bk),
    )
}

fn product(a: &HostTensor, b: &HostTensor, m: usize, n: usize, k: usize) -> Vec<f64> {
    let (a, b) = (a.to_f64(), b.to_f64());
    let mut c = vec![0.0; m * n];
    for i in 0..m {
        for j in 0..n {
            c[i * n + j] = (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum();
        }
    }
    c
}

#[test]
fn gemm_with_partial_tiles_in_every_type() {
    let (m, n, k) = (50, 41, 37);
    for (ty, bound) in [
        ("float16", 1e-5),
        ("bfloat16", 1e-5),
        ("float32", 1e-6),
        ("float64", 1e-14),
        ("float8_e4m3fn", 1e-5),
        ("int8", 0.0),
    ] {
        let source = gemm(m, n, k, 32, 16, 16, ty);
        let mut rng = Rng::new(5);
        let a = HostTensor::random(dtype(ty), &[m, k], Fill::Default, &mut rng).expect("small");
        let b = HostTensor::random(dtype(ty), &[k, n], Fill::Default, &mut rng).expect("small");
        let expected = product(&a, &b, m, n, k);
        let got = output(&source, vec![("A", a), ("B", b)], "C");
        for (i, (x, y)) in got.iter().zip(&expected).enumerate() {
            assert!((x - y).abs() <= bound * k as f64, "{ty} {i}: {x} {y}");
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_workers() {
    let func = parse(&gemm(70, 90, 64, 16, 16, 16, "float16"));
    let spec = InputSpec {
        seed: 11,
        ..InputSpec::default()
    };
    let mut results = Vec::new();
    for threads in [1, 2, 5] {
        let mut args = make_inputs(&func, &spec).expect("inputs");
        let options = RunOptions {
            threads,
            ..RunOptions::default()
        };
        let report = run(&func, &mut args, &options).expect("a run");
        assert_eq!(report.kernels[0].schedule, Schedule::Parallel);
        assert_eq!(report.kernels[0].blocks, 6 * 5);
        results.push(args.tensor("C").expect("an output").bytes().to_vec());
    }
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
}

#[test]
fn elementwise_over_symbolic_sizes() {
    let source = "func @add level=tile {
  symbol m: int32
  symbol n: int32
  param A: float16[m, n]
  param B: float16[m, n]
  scalar scale: float32
  output C: float16[m, n]
  kernel grid(bx: (n + 15) // 16, by: (m + 7) // 8) threads(tx: 64, ty: 1, tz: 1) {
    for i, j in parallel(8, 16) {
      C[by * 8 + i, bx * 16 + j] = float16(float32(A[by * 8 + i, bx * 16 + j] + B[by * 8 + i, bx * 16 + j]) * scale)
    }
  }
}";
    let func = parse(source);
    let mut spec = InputSpec::default();
    spec.values.insert("m".to_string(), Number::Int(19));
    spec.values.insert("n".to_string(), Number::Int(33));
    spec.values.insert("scale".to_string(), Number::Float(0.3));
    let mut args = make_inputs(&func, &spec).expect("inputs");
    run(&func, &mut args, &RunOptions::default()).expect("a run");
    let value = |name: &str, i| args.tensor(name).expect("a tensor").get_f64(i);
    for i in 0..19 * 33 {
        let sum = half::f16::from_f64(value("A", i) + value("B", i)).to_f32();
        let expected = half::f16::from_f32(sum * 0.3f32).to_f64();
        assert_eq!(value("C", i), expected, "element {i}");
    }
    assert_eq!(args.tensor("C").expect("an output").shape(), [19, 33]);
}

#[test]
fn transposed_operands_and_clearing() {
    // C[m, n] += Σ A[k, m]·B[n, k], cleared by the first of four steps.
    let source = "func @k level=tile {
  param A: float32[8, 3]
  param B: float32[5, 8]
  output C: float32[3, 5]
  kernel grid(bx: 1) threads(tx: 32, ty: 1, tz: 1) {
    alloc S: shared float32[8, 3]
    alloc T: shared float32[5, 8]
    alloc F: fragment float32[3, 5]
    copy A[0 +: 8, 0 +: 3] -> S[0 +: 8, 0 +: 3]
    copy B[0 +: 5, 0 +: 8] -> T[0 +: 5, 0 +: 8]
    for k in serial(0, 4) {
      gemm S[k * 2 +: 2, 0 +: 3], T[0 +: 5, k * 2 +: 2] -> F[0 +: 3, 0 +: 5] trans_a trans_b clear=(k == 0)
    }
    copy F[0 +: 3, 0 +: 5] -> C[0 +: 3, 0 +: 5]
  }
}";
    let a: Vec<f64> = (0..24).map(|i| (i % 7) as f64 - 3.0).collect();
    let b: Vec<f64> = (0..40).map(|i| (i % 5) as f64 - 2.0).collect();
    let got = output(
        source,
        vec![
            ("A", tensor("float32", &[8, 3], &a)),
            ("B", tensor("float32", &[5, 8], &b)),
        ],
        "C",
    );
    for m in 0..3 {
        for n in 0..5 {
            let expected: f64 = (0..8).map(|k| a[k * 3 + m] * b[n * 8 + k]).sum();
            assert_eq!(got[m * 5 + n], expected, "({m}, {n})");
        }
    }
}

#[test]
fn progress_is_told_and_outputs_may_be_given() {
    use std::sync::atomic::{AtomicU64, Ordering};
    let seen = AtomicU64::new(0);
    let tell = |p: tilewright_sim::Progress| {
        assert_eq!((p.kernel, p.kernels, p.blocks), (0, 1, 8));
        seen.store(p.blocks_done, Ordering::Relaxed);
    };
    let options = RunOptions {
        progress: Some(&tell),
        ..RunOptions::default()
    };
    let source = gemm(32, 64, 16, 16, 16, 16, "float16");
    let one = |shape: &[usize]| {
        let n = shape.iter().product();
        tensor("float16", shape, &vec![1.0; n])
    };
    let mine = HostTensor::uninit(dtype("float32"), &[32, 64]).expect("small");
    let list = vec![("A", one(&[32, 16])), ("B", one(&[16, 64])), ("C", mine)];
    let (args, _) = call_with(&source, list, &options).expect("a run");
    assert_eq!(seen.load(Ordering::Relaxed), 8);
    assert_eq!(args.tensor("C").expect("an output").to_f64(), [16.0; 2048]);
    assert!(matches!(args.get("A"), Some(Arg::Tensor(a)) if !a.is_empty()));
}

#[test]
fn two_kernels_share_a_workspace() {
    let source = "func @k level=tile {
  param A: float32[6]
  output B: float32[6]
  workspace W: float32[6]
  kernel grid(bx: 6) threads(tx: 32, ty: 1, tz: 1) {
    for i in parallel(1) {
      W[bx] = A[bx] * 2.0
    }
  }
  kernel grid(bx: 6) threads(tx: 32, ty: 1, tz: 1) {
    for i in parallel(1) {
      B[bx] = W[5 - bx] + 1.0
    }
  }
}";
    let got = output(
        source,
        vec![("A", tensor("float32", &[6], &[0., 1., 2., 3., 4., 5.]))],
        "B",
    );
    assert_eq!(got, [11., 9., 7., 5., 3., 1.]);
}

#[test]
fn a_grid_of_nothing_runs_nothing() {
    let source = "func @k level=tile {
  symbol m: int32
  param A: float32[m]
  kernel grid(bx: m) threads(tx: 32, ty: 1, tz: 1) {
    for i in parallel(1) {
      A[bx] = 1.0
    }
  }
}";
    let (_, report) = call(source, vec![("A", tensor("float32", &[0], &[]))]).expect("a run");
    assert_eq!(report.kernels[0].blocks, 0);
}
