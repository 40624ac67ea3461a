//! Kernels that TileLang's users reported as crashing its compiler or giving wrong results: each
//! file under `tests/tilelang_issues/` says what goes wrong there.

use super::{Approx, Case, EXACT, Fill, Output, Sum};

/// Where the kernels are, from the root of the repository.
pub const FOLDER: &str = "crates/tilewright/tests/tilelang_issues";

/// Kernels that must be refused rather than compiled wrongly, and the name of the error.
pub const REFUSED: [(&str, &str); 2] = [
    ("issue_2556_partial_warp.py", "divergent-hazard"),
    ("issue_2612_guarded_loop.py", "divergent-hazard"),
];

pub fn cases() -> Vec<Case> {
    let mut cases = layouts();
    cases.extend(barriers());
    cases.extend(reductions());
    cases
}

fn issue(file: &'static str) -> Case {
    Case::new(file, "kernel").in_folder(FOLDER)
}

/// Widths that nothing divides.
fn layouts() -> Vec<Case> {
    let mut cases = Vec::new();
    for (n, threads) in [(192, 128), (229, 128), (257, 128), (100, 33)] {
        cases.push(
            issue("issue_2398_fragment_width.py")
                .sizes([("M", 3), ("N", n), ("threads", threads)])
                .input("X", [3, n], Fill::Integers(-100, 100))
                .check(|t| {
                    let y = t.get("X").iter().map(|x| x * 2.0 + 1.0);
                    vec![Output::exact("Y", y.collect())]
                }),
        );
    }
    for n in [24, 40, 48, 96] {
        cases.push(
            issue("issue_2394_column_broadcast.py")
                .sizes([("M", 32), ("N", n)])
                .input("D", [n], Fill::Integers(-100, 100))
                .check(|t| {
                    let row = t.get("D").iter().map(|d| d * 2.0);
                    let rows = std::iter::repeat_n(row, 32).flatten();
                    vec![Output::exact("Y", rows.collect())]
                }),
        );
    }
    for (m, n) in [(16, 448), (1, 7168), (5, 96)] {
        cases.push(
            issue("issue_1374_replication.py")
                .sizes([("M", m), ("N", n)])
                .input("A", [m, n / 32], Fill::Integers(-100, 100))
                .input("B", [m, n], Fill::Integers(-100, 100))
                .check(move |t| {
                    let (a, b) = (t.get("A"), t.get("B"));
                    // A row of B has 32 elements for each of A's, so the flat index does as well.
                    let c = b.iter().enumerate().map(|(at, b)| b * a[at / 32]);
                    vec![Output::exact("C", c.collect())]
                }),
        );
    }
    let (m, n) = (520, 513);
    cases.push(
        issue("issue_2883_many_points.py")
            .sizes([("M", m), ("N", n)])
            .input("X", [m, n], Fill::Integers(-127, 127))
            .check(|t| {
                let y = t.get("X").iter().map(|x| -x);
                vec![Output::exact("Y", y.collect())]
            }),
    );
    for k in [7, 8, 63, 100] {
        cases.push(
            issue("issue_2955_column_modulo.py")
                .sizes([("M", 16), ("N", 64), ("K", k)])
                .input("A", [16, 64], Fill::Integers(-1000, 1000))
                .input("B", [k], Fill::Integers(-1000, 1000))
                .check(move |t| {
                    let (a, b) = (t.get("A"), t.get("B"));
                    let c = a.iter().enumerate().map(|(at, a)| a + b[at % 64 % k]);
                    vec![Output::exact("C", c.collect())]
                }),
        );
    }
    cases
}

/// Threads that exchange data.
fn barriers() -> Vec<Case> {
    let mut cases = Vec::new();
    for (steps, stride, threads) in [(4, 4, 128), (1, 2, 96), (3, 64, 256)] {
        cases.push(
            Case::new("issue_2612_guarded_loop.py", "uniform")
                .in_folder(FOLDER)
                .sizes([("steps", steps), ("stride", stride), ("threads", threads)])
                .check(move |_| {
                    let total = |tx: usize| match tx % stride {
                        0 => (0..steps).map(|k| (tx + stride) % threads + k).sum(),
                        _ => 0,
                    };
                    let y = (0..threads).map(|tx| total(tx) as f64);
                    vec![Output::exact("Y", y.collect())]
                }),
        );
    }
    for (active, threads) in [(48, 64), (33, 96), (130, 192)] {
        cases.push(
            Case::new("issue_2556_partial_warp.py", "uniform")
                .in_folder(FOLDER)
                .sizes([("active", active), ("threads", threads)])
                .input("X", [active], Fill::Integers(-1000, 1000))
                .check(|t| {
                    let y = t.get("X").iter().rev().copied();
                    vec![Output::exact("Y", y.collect())]
                }),
        );
    }
    for (n, threads) in [(5, 128), (7, 100)] {
        cases.push(
            issue("issue_1604_conditional_write.py")
                .sizes([("N", n), ("threads", threads)])
                .input("X", [n], Fill::Integers(-1000, 1000))
                .check(move |t| {
                    let told = |(k, x): (usize, &f64)| x + (k * 29 % threads) as f64;
                    let told = t.get("X").iter().enumerate().map(told);
                    let y = told.flat_map(|v| std::iter::repeat_n(v, threads));
                    vec![Output::exact("Y", y.collect())]
                }),
        );
    }
    for (batch, length, threads) in [(3, 40, 64), (2, 129, 128)] {
        let picks = 8;
        let picked = |b: usize, p: usize| (b * 17 + p * 11) % length;
        // A negative index picks nothing.
        let indices = (0..batch * picks).map(|at| match at % picks {
            3 => -1.0,
            p => picked(at / picks, p) as f64,
        });
        let indices = indices.collect();
        cases.push(
            issue("issue_1822_mask_from_shared.py")
                .sizes([("B", batch), ("S", length), ("threads", threads)])
                .input("Indices", [batch, picks], Fill::Given(indices))
                .check(move |t| {
                    let mut mask = vec![0.0; batch * length];
                    for (at, &index) in t.get("Indices").iter().enumerate() {
                        if index >= 0.0 {
                            mask[at / picks * length + length - 1 - index as usize] = 1.0;
                        }
                    }
                    vec![Output::exact("Mask", mask)]
                }),
        );
    }
    for (m, n) in [(3, 100), (2, 257)] {
        cases.push(
            issue("issue_2699_fill_is_a_write.py")
                .sizes([("M", m), ("N", n)])
                .input("X", [m, n], Fill::Integers(-1000, 1000))
                .check(move |t| {
                    // What is stored is the row moved up by one, a zero before and after it.
                    let row = |x: &[f64]| {
                        let at = |j: usize| if j == 0 || j == n { 0.0 } else { x[j - 1] };
                        (0..n).map(|j| at(j) + at(j + 1)).collect::<Vec<_>>()
                    };
                    let y = t.get("X").chunks(n).flat_map(row);
                    vec![Output::exact("Y", y.collect())]
                }),
        );
    }
    for k in [32, 100, 160] {
        let (m, n) = (64, 64);
        cases.push(
            issue("issue_2613_unpipelined_gemm.py")
                .sizes([("K", k)])
                .input("A", [m, k], Fill::Integers(-8, 8))
                .input("B", [k, n], Fill::Integers(-8, 8))
                .check(move |t| {
                    // Whole numbers this small are exact in float16, and so are their sums in float32.
                    let (a, b) = (t.get("A"), t.get("B"));
                    let dot = |at: usize| {
                        let (i, j) = (at / n, at % n);
                        (0..k).map(|x| a[i * k + x] * b[x * n + j]).sum()
                    };
                    vec![Output::exact("C", (0..m * n).map(dot).collect())]
                }),
        );
    }
    for threads in [32, 96, 100] {
        cases.push(
            issue("issue_1026_divergent_barrier.py")
                .sizes([("threads", threads)])
                .input("X", [threads], Fill::Integers(-1000, 1000))
                .check(|t| {
                    let x = t.get("X");
                    let y = (0..x.len()).map(|tx| x[tx / 2 * 2]);
                    vec![Output::exact("Y", y.collect())]
                }),
        );
    }
    cases
}

/// Reductions over widths and thread counts that are not powers of two.
fn reductions() -> Vec<Case> {
    let mut cases = Vec::new();
    for (n, threads) in [(96, 128), (100, 128), (127, 128), (120, 96)] {
        cases.push(
            issue("issue_2399_reduce_width.py")
                .sizes([("M", 4), ("N", n), ("threads", threads)])
                .input("X", [4, n], Fill::Uniform(-2.0, 2.0))
                .check(move |t| {
                    let rows = t.get("X").chunks(n);
                    let sums = rows.map(|row| row.iter().copied().collect::<Sum>().in_f32());
                    vec![Output::new("Y", sums.collect(), EXACT)]
                }),
        );
    }
    for (n, threads) in [(48, 48), (96, 96), (80, 40), (100, 128)] {
        let rising = (1..=n).map(|x| x as f64).collect();
        cases.push(
            issue("issue_2542_reduce_threads.py")
                .sizes([("N", n), ("threads", threads)])
                .input("X", [n], Fill::Given(rising))
                .check(move |_| {
                    let sum = (n * (n + 1) / 2) as f64;
                    vec![
                        Output::exact("S", vec![sum]),
                        Output::exact("L", vec![n as f64]),
                    ]
                }),
        );
    }
    for (n, block_n, threads) in [(96, 48, 128), (100, 48, 128), (90, 30, 100)] {
        let m = 8;
        cases.push(
            issue("issue_2408_reducer_width.py")
                .sizes([
                    ("M", m),
                    ("N", n),
                    ("block_N", block_n),
                    ("threads", threads),
                ])
                .input("A", [m, n], Fill::Uniform(-1.0, 1.0))
                .input("X", [n], Fill::Uniform(-1.0, 1.0))
                .check(move |t| {
                    let (a, x) = (t.get("A"), t.get("X"));
                    let row = |row: &[f64]| {
                        let terms = row.iter().zip(x).map(|(a, x)| a * x);
                        terms.collect::<Sum>().in_f32()
                    };
                    let y: Vec<Approx> = a.chunks(n).map(row).collect();
                    vec![Output::new("Y", y, EXACT)]
                }),
        );
    }
    for (rounds, vec, threads) in [(5, 4, 32), (3, 2, 64), (1, 4, 96)] {
        let (m, n) = (16, rounds * vec * threads);
        // One large element in each row, at places that cover all slots of a thread.
        let x = (0..m * n).map(|at| match (at / n * 37 + 5) % n == at % n {
            true => -64.0 - (at / n) as f64 / 2.0,
            false => ((at * 7919) % 64) as f64 / 4.0 - 8.0,
        });
        cases.push(
            issue("issue_2294_strided_absmax.py")
                .sizes([
                    ("M", m),
                    ("rounds", rounds),
                    ("vec", vec),
                    ("threads", threads),
                ])
                .input("X", [m, n], Fill::Given(x.collect()))
                .check(move |t| {
                    let rows = t.get("X").chunks(n);
                    let y = rows.map(|row| row.iter().fold(0.0_f64, |most, v| most.max(v.abs())));
                    vec![Output::exact("Y", y.collect())]
                }),
        );
    }
    for (m, n) in [(64, 40), (32, 8), (96, 200)] {
        cases.push(
            issue("issue_1105_vectorized_max.py")
                .sizes([("M", m), ("N", n)])
                .input("X", [m, n], Fill::Integers(-100_000, 100_000))
                .check(move |t| {
                    let rows = t.get("X").chunks(n);
                    let y = rows.map(|row| row.iter().copied().fold(f64::NEG_INFINITY, f64::max));
                    vec![Output::exact("Y", y.collect())]
                }),
        );
    }
    cases
}
