//! Elementwise addition, transposition, histograms and the cast to fp8.

use super::{Approx, Case, E4M3, F16, F32, Fill, Output, ceil_div};

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (m, n) in [(64, 128), (50, 77), (1, 129)] {
        cases.extend([
            add("elementwise_add", m, n, "float32", F32),
            add("elementwise_add", m, n, "float16", F16),
            add("elementwise_add_sizes", m, n, "float32", F32),
            axpby(m, n),
            transpose(m, n, "float16"),
            transpose(m, n, "int8"),
        ]);
    }
    cases.extend([
        histogram(4096, 1024),
        histogram(1000, 192),
        histogram(255, 256),
    ]);
    cases.extend([
        histogram_bins(2048, 16),
        histogram_bins(1000, 10),
        histogram_bins(513, 16),
    ]);
    cases.extend([cast_fp8(32, 256), cast_fp8(50, 300), cast_fp8(7, 129)]);
    cases
}

/// The sum is rounded once, to the dtype it is computed in.
fn add(kernel: &'static str, m: usize, n: usize, dtype: &'static str, rounding: f64) -> Case {
    Case::new("elementwise_add.py", kernel)
        .sizes([("M", m), ("N", n)])
        .set("dtype", dtype)
        .input("A", [m, n], Fill::Uniform(-4.0, 4.0))
        .input("B", [m, n], Fill::Uniform(-4.0, 4.0))
        .check(move |t| {
            let sum = t
                .get("A")
                .iter()
                .zip(t.get("B"))
                .map(|(a, b)| Approx::exact(a + b));
            vec![Output::new("C", sum.collect(), rounding)]
        })
}

fn axpby(m: usize, n: usize) -> Case {
    Case::new("elementwise_add.py", "axpby")
        .sizes([("M", m), ("N", n)])
        .input("alpha", [], Fill::Given(vec![2.5]))
        .input("beta", [], Fill::Given(vec![-0.3]))
        .input("A", [m, n], Fill::Uniform(-4.0, 4.0))
        .input("B", [m, n], Fill::Uniform(-4.0, 4.0))
        .check(move |t| {
            let (alpha, beta) = (t.get("alpha")[0], t.get("beta")[0]);
            let element = |(a, b): (&f64, &f64)| {
                // Each product may be rounded before the sum is.
                let slack = F32 * ((alpha * a).abs() + (beta * b).abs());
                Approx {
                    value: alpha * a + beta * b,
                    slack,
                }
            };
            vec![Output::new(
                "C",
                t.get("A").iter().zip(t.get("B")).map(element).collect(),
                F32,
            )]
        })
}

fn transpose(m: usize, n: usize, dtype: &'static str) -> Case {
    Case::new("transpose.py", "transpose")
        .sizes([("M", m), ("N", n)])
        .set("dtype", dtype)
        .input("A", [m, n], Fill::Integers(-128, 127))
        .check(move |t| {
            let a = t.get("A");
            let columns = (0..n).flat_map(|j| (0..m).map(move |i| a[i * n + j]));
            vec![Output::exact("B", columns.collect())]
        })
}

fn histogram(count: usize, block: usize) -> Case {
    Case::new("histogram.py", "histogram")
        .sizes([("N", count), ("block", block)])
        .input("data", [count], Fill::Integers(0, 255))
        .check(|t| {
            let mut counts = vec![0.0; 256];
            for &value in t.get("data") {
                counts[value as usize] += 1.0;
            }
            vec![Output::exact("counts", counts)]
        })
}

/// The data stand in the middle between multiples of 1/64 in [-1.5, 1.5), so that rounding in the kernel cannot move
/// one over the border of a bin: with 16 bins a border is a multiple of 1/8, with 10 one of 1/5,
/// which is never closer than 1/640 to an odd multiple of 1/128.
fn histogram_bins(count: usize, bins: usize) -> Case {
    let data = (0..count)
        .map(|i| ((i * 7919) % 192) as f64 / 64.0 - 1.5 + 1.0 / 128.0)
        .collect();
    Case::new("histogram.py", "histogram_bins")
        .sizes([("N", count), ("bins", bins)])
        .input("data", [count], Fill::Given(data))
        .check(move |t| {
            let mut counts = vec![0.0; bins];
            for &value in t.get("data") {
                let bin = ((value + 1.0) / 2.0 * bins as f64)
                    .floor()
                    .clamp(0.0, bins as f64 - 1.0);
                counts[bin as usize] += 1.0;
            }
            vec![Output::exact("counts", counts)]
        })
}

/// The scale is one f32 division. The quotient that is cast then carries the errors of the scale and of its own
/// division, and below 2^-6 the steps of e4m3 are 2^-9 apart.
fn cast_fp8(m: usize, n: usize) -> Case {
    let group = 128;
    let groups = ceil_div(n, group);
    Case::new("cast_fp8.py", "cast_to_fp8")
        .sizes([("M", m), ("N", n)])
        .input("X", [m, n], Fill::Uniform(-3.0, 3.0))
        .check(move |t| {
            let x = t.get("X");
            let largest = |i: usize, g: usize| {
                let row = &x[i * n + g * group..i * n + n.min((g + 1) * group)];
                row.iter().fold(0.0_f64, |most, v| most.max(v.abs()))
            };
            let scale = |i: usize, g: usize| largest(i, g).max(1e-4) / 448.0;
            let mut y = Vec::with_capacity(m * n);
            let mut scales = Vec::with_capacity(m * groups);
            for i in 0..m {
                scales.extend((0..groups).map(|g| Approx::relative(scale(i, g), F32)));
                for j in 0..n {
                    let value = x[i * n + j] / scale(i, j / group);
                    y.push(Approx {
                        value,
                        slack: value.abs() * 3.0 * F32 + 1.0 / 1024.0,
                    });
                }
            }
            vec![
                Output::new("Y", y, E4M3),
                Output::new("scales", scales, F32),
            ]
        })
}
