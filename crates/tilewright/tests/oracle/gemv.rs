//! Matrix times vector, dense, integer and with 4-bit weights.

use super::gemm::unpack_weights;
use super::{Approx, Case, F16, F32, Fill, Output, Sum, ceil_div};

/// `C[i] = sum over k of B[i, k] * A[k]`.
fn gemv(n: usize, k: usize, a: &[f64], b: &[f64]) -> Vec<Approx> {
    let row = |i: usize| {
        (0..k)
            .map(|x| a[x] * b[i * k + x])
            .collect::<Sum>()
            .in_f32()
    };
    (0..n).map(row).collect()
}

fn plain(kernel: &'static str, n: usize, k: usize) -> Case {
    Case::new("gemv.py", kernel)
        .sizes([("N", n), ("K", k)])
        .input("A", [k], Fill::Uniform(-1.0, 1.0))
        .input("B", [n, k], Fill::Uniform(-1.0, 1.0))
        .check(move |t| vec![Output::new("C", gemv(n, k, t.get("A"), t.get("B")), F16)])
}

pub fn long_case() -> Case {
    plain("gemv", 7, 320)
}

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    // K = 333 is no multiple of any tile, vector or thread count.
    for (n, k) in [(64, 256), (50, 333), (7, 1000)] {
        for kernel in ["gemv", "gemv_splitk", "gemv_vectorized", "gemv_shuffle"] {
            cases.push(plain(kernel, n, k));
        }
    }
    for (n, k) in [(64, 128), (50, 100), (65, 36)] {
        cases.push(
            Case::new("gemv.py", "gemv_int8")
                .sizes([("N", n), ("K", k)])
                .input("A", [k], Fill::Integers(-128, 127))
                .input("B", [n, k], Fill::Integers(-128, 127))
                .check(move |t| {
                    // 100 products of at most 2^14 stay far below 2^31: exact.
                    let c = gemv(n, k, t.get("A"), t.get("B"));
                    vec![Output::exact("C", c.iter().map(|e| e.value).collect())]
                }),
        );
    }
    for (n, k) in [(32, 128), (27, 90), (9, 34)] {
        let group = 32;
        cases.push(
            Case::new("dequant_gemm.py", "dequant_gemv")
                .sizes([("N", n), ("K", k)])
                .input("A", [k], Fill::Uniform(-1.0, 1.0))
                .input("B", [n, k / 2], Fill::Integers(0, 255))
                .input("scales", [n, ceil_div(k, group)], Fill::Uniform(0.01, 0.1))
                .check(move |t| {
                    let a = t.get("A");
                    let weights = unpack_weights((n, k, group), t.get("B"), t.get("scales"));
                    // Weight and product are each rounded to f32 once.
                    let term =
                        |i: usize, x: usize| Approx::relative(a[x] * weights[i * k + x], 2.0 * F32);
                    let row = |i: usize| (0..k).map(|x| term(i, x)).collect::<Sum>().in_f32();
                    vec![Output::new("C", (0..n).map(row).collect(), F16)]
                }),
        );
    }
    cases
}
