//! Kernels that work along rows or columns: softmax, norms, reductions, running sums, top-k.

use super::{Approx, BF16, Case, EXACT, EXP, F16, F32, Fill, Output, Sum};

/// `exp(x - max) / sum of exp(x - max)` over one row. Numerator and every term of the sum carry the error of
/// an exponential; rescaling the sum once for each tile carries it again.
pub fn softmax(row: &[f64], tiles: usize) -> Vec<Approx> {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let exps: Vec<Approx> = row
        .iter()
        .map(|x| Approx::relative((x - largest).exp(), EXP))
        .collect();
    let total = exps.iter().copied().collect::<Sum>().in_f32();
    let error = EXP + total.slack / total.value + (tiles as f64) * EXP + F32;
    exps.iter()
        .map(|e| Approx::relative(e.value / total.value, error))
        .collect()
}

/// `x / sqrt(mean(x^2) + eps) * w`.
pub fn rms_norm(row: &[f64], weight: &[f64], eps: f64) -> Vec<Approx> {
    let squares = row
        .iter()
        .map(|x| Approx::relative(x * x, F32))
        .collect::<Sum>()
        .in_f32();
    let mean = squares.value / row.len() as f64 + eps;
    // The relative error of the mean halves under the root; division, sum, root and two products round.
    let error = squares.slack / squares.value.max(f64::MIN_POSITIVE) + 8.0 * F32;
    row.iter()
        .zip(weight)
        .map(|(x, w)| Approx::relative(x / mean.sqrt() * w, error))
        .collect()
}

/// Mean and `1 / sqrt(var + eps)` of a row, with the variance taken around the mean.
pub fn layer_stats(row: &[f64], eps: f64) -> (Approx, Approx) {
    let n = row.len() as f64;
    let sum = row.iter().copied().collect::<Sum>().in_f32();
    let mean = Approx {
        value: sum.value / n,
        slack: sum.slack / n + F32 * (sum.value / n).abs(),
    };
    let square = |x: &f64| {
        let centred = Approx {
            value: x - mean.value,
            slack: mean.slack,
        }
        .rounded(F32);
        centred.times(centred).rounded(F32)
    };
    let squares = row.iter().map(square).collect::<Sum>().in_f32();
    let variance = squares.value / n + eps;
    // A relative error r of the variance is r / 2 of its root; four more roundings follow.
    let error = squares.slack / n / variance + 4.0 * F32;
    (mean, Approx::relative(1.0 / variance.sqrt(), error))
}

/// `(x - mean) / sqrt(var + eps) * gamma + beta`.
pub fn layer_norm(row: &[f64], gamma: &[f64], beta: &[f64], eps: f64) -> Vec<Approx> {
    let (mean, rstd) = layer_stats(row, eps);
    let element = |j: usize| {
        let centred = Approx {
            value: row[j] - mean.value,
            slack: mean.slack,
        }
        .rounded(F32);
        let scaled = centred
            .times(rstd)
            .rounded(F32)
            .times(Approx::exact(gamma[j]))
            .rounded(F32);
        Approx {
            value: scaled.value + beta[j],
            ..scaled
        }
        .rounded(F32)
    };
    (0..row.len()).map(element).collect()
}

/// One of the kinds of `reduce.py`. Sums are rounded, the rest only choose.
pub fn reduce(kind: &str, values: impl Iterator<Item = f64>) -> Approx {
    match kind {
        "sum" => values.collect::<Sum>().in_f32(),
        "abssum" => values.map(f64::abs).collect::<Sum>().in_f32(),
        "max" => Approx::exact(values.fold(f64::NEG_INFINITY, f64::max)),
        "min" => Approx::exact(values.fold(f64::INFINITY, f64::min)),
        "absmax" => Approx::exact(values.fold(0.0, |most, v| most.max(v.abs()))),
        other => panic!("no reduction is called {other}"),
    }
}

/// The `k` largest of a row and their columns, equal ones by rising column.
pub fn top_k(row: &[f64], k: usize) -> Vec<(f64, usize)> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));
    order.into_iter().take(k).map(|j| (row[j], j)).collect()
}

pub fn long_cases() -> Vec<Case> {
    vec![
        rms_norm_case("rms_norm_split", 8, 640),
        reduce_reducer(30, 640),
    ]
}

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend([
        softmax_case(32, 256, "float16", F16),
        softmax_case(21, 333, "bfloat16", BF16),
        softmax_case(1, 129, "float16", F16),
        softmax_row(37, 512, 1),
        softmax_row(10, 96, 4),
    ]);
    for (m, n) in [(16, 256), (13, 300), (5, 129)] {
        cases.extend([
            rms_norm_case("rms_norm", m, n),
            rms_norm_case("rms_norm_split", m, n),
            rms_norm_rows(m, n),
            layer_norm_case(m, n),
            layer_stats_case(m, n),
        ]);
    }
    for (m, n) in [(64, 64), (50, 77), (33, 229)] {
        for kind in ["sum", "max", "min", "abssum", "absmax"] {
            cases.extend([
                reduce_rows(kind, m, n, false),
                reduce_rows(kind, m, n, true),
            ]);
        }
        for kind in ["sum", "max", "min", "absmax"] {
            cases.push(reduce_columns(kind, m, n));
        }
        for kind in ["and", "or", "xor"] {
            cases.push(reduce_bits(kind, m, n));
        }
    }
    cases.extend([
        reduce_reducer(64, 256),
        reduce_reducer(50, 200),
        reduce_reducer(33, 129),
    ]);
    cases.extend([
        reduce_tree(1024, 128),
        reduce_tree(1000, 96),
        reduce_tree(77, 100),
    ]);
    for reverse in [false, true] {
        cases.extend([
            cumsum(32, 128, reverse),
            cumsum(50, 150, reverse),
            cumsum(33, 65, reverse),
        ]);
        cases.extend([
            cumsum_columns(64, 64, reverse),
            cumsum_columns(50, 45, reverse),
            cumsum_columns(33, 33, reverse),
        ]);
    }
    cases.extend([
        top_k_case(32, 64, 6),
        top_k_case(50, 77, 5),
        top_k_ties(20, 30, 8),
    ]);
    cases
}

fn softmax_case(m: usize, n: usize, dtype: &'static str, rounding: f64) -> Case {
    Case::new("online_softmax.py", "softmax")
        .sizes([("M", m), ("N", n)])
        .set("dtype", dtype)
        .input("X", [m, n], Fill::Uniform(-8.0, 8.0))
        .check(move |t| {
            let rows = t
                .get("X")
                .chunks(n)
                .flat_map(|row| softmax(row, n.div_ceil(128)));
            vec![Output::new("Y", rows.collect(), rounding)]
        })
}

/// Rows that are one tile: powers for their sum are those of the result.
fn softmax_row(m: usize, n: usize, block_m: usize) -> Case {
    let sizes = [("M", m), ("N", n), ("block_M", block_m), ("block_N", n)];
    Case::new("online_softmax.py", "softmax")
        .sizes(sizes)
        .input("X", [m, n], Fill::Uniform(-8.0, 8.0))
        .check(move |t| {
            let rows = t.get("X").chunks(n).flat_map(|row| softmax(row, 1));
            vec![Output::new("Y", rows.collect(), F16)]
        })
}

fn rms_norm_case(kernel: &'static str, m: usize, n: usize) -> Case {
    rms_norm_check(
        Case::new("rms_norm.py", kernel).sizes([("M", m), ("N", n)]),
        m,
        n,
    )
}

fn rms_norm_rows(m: usize, n: usize) -> Case {
    rms_norm_check(
        Case::new("rms_norm.py", "rms_norm_rows").sizes([("m", m), ("N", n)]),
        m,
        n,
    )
}

fn rms_norm_check(case: Case, m: usize, n: usize) -> Case {
    case.input("X", [m, n], Fill::Uniform(-3.0, 3.0))
        .input("W", [n], Fill::Uniform(-1.0, 1.0))
        .check(move |t| {
            let rows = t
                .get("X")
                .chunks(n)
                .flat_map(|row| rms_norm(row, t.get("W"), 1e-6));
            vec![Output::new("Y", rows.collect(), F16)]
        })
}

fn layer_norm_case(m: usize, n: usize) -> Case {
    Case::new("layernorm.py", "layernorm")
        .sizes([("M", m), ("N", n)])
        .input("X", [m, n], Fill::Uniform(1.0, 5.0))
        .input("gamma", [n], Fill::Uniform(-1.0, 1.0))
        .input("beta", [n], Fill::Uniform(-1.0, 1.0))
        .check(move |t| {
            let (gamma, beta) = (t.get("gamma"), t.get("beta"));
            let rows = t
                .get("X")
                .chunks(n)
                .flat_map(|row| layer_norm(row, gamma, beta, 1e-5));
            vec![Output::new("Y", rows.collect(), F16)]
        })
}

fn layer_stats_case(m: usize, n: usize) -> Case {
    Case::new("layernorm.py", "layernorm_stats")
        .sizes([("M", m), ("N", n)])
        .input("X", [m, n], Fill::Uniform(1.0, 5.0))
        .check(move |t| {
            let stats = t.get("X").chunks(n).map(|row| layer_stats(row, 1e-5));
            let (mean, rstd) = stats.unzip();
            vec![
                Output::new("mean", mean, F32),
                Output::new("rstd", rstd, F32),
            ]
        })
}

fn reduce_rows(kind: &'static str, m: usize, n: usize, keep_dim: bool) -> Case {
    Case::new("reduce.py", "reduce_rows")
        .set("kind", format!("\"{kind}\""))
        .sizes([("M", m), ("N", n)])
        .flag("keep_dim", keep_dim)
        .input("X", [m, n], Fill::Uniform(-2.0, 2.0))
        .check(move |t| {
            let rows = t
                .get("X")
                .chunks(n)
                .map(|row| reduce(kind, row.iter().copied()));
            vec![Output::new("Y", rows.collect(), EXACT)]
        })
}

/// All the data have one sign, so that a row counted as zero past the end would show in `max` or `min`.
fn reduce_columns(kind: &'static str, m: usize, n: usize) -> Case {
    let (low, high) = if kind == "max" {
        (-3.0, -1.0)
    } else {
        (1.0, 3.0)
    };
    Case::new("reduce.py", "reduce_columns")
        .set("kind", format!("\"{kind}\""))
        .sizes([("M", m), ("N", n)])
        .input("X", [m, n], Fill::Uniform(low, high))
        .check(move |t| {
            let x = t.get("X");
            let columns = (0..n).map(|j| reduce(kind, (0..m).map(|i| x[i * n + j])));
            vec![Output::new("Y", columns.collect(), EXACT)]
        })
}

/// `and` gets numbers that lack a few bits and `or` numbers that have a few, other ones in each row, so that a result is
/// neither all ones nor all zeros.
fn reduce_bits(kind: &'static str, m: usize, n: usize) -> Case {
    let single = move |at: usize| 1_i32 << ((at / n + at % n % 5) * 3 % 31);
    let fill = match kind {
        "and" => Fill::Given((0..m * n).map(|at| f64::from(!single(at))).collect()),
        "or" => Fill::Given((0..m * n).map(|at| f64::from(single(at))).collect()),
        _ => Fill::Integers(-1_000_000, 1_000_000),
    };
    Case::new("reduce.py", "reduce_bits")
        .set("kind", format!("\"{kind}\""))
        .sizes([("M", m), ("N", n)])
        .input("X", [m, n], fill)
        .check(move |t| {
            let fold = |row: &[f64]| {
                let bits = row.iter().map(|&v| v as i32);
                f64::from(match kind {
                    "and" => bits.fold(-1, |all, b| all & b),
                    "or" => bits.fold(0, |all, b| all | b),
                    _ => bits.fold(0, |all, b| all ^ b),
                })
            };
            vec![Output::exact("Y", t.get("X").chunks(n).map(fold).collect())]
        })
}

fn reduce_reducer(m: usize, n: usize) -> Case {
    Case::new("reduce.py", "reduce_reducer")
        .sizes([("M", m), ("N", n)])
        .input("X", [m, n], Fill::Uniform(-2.0, 2.0))
        .check(move |t| {
            let rows = t
                .get("X")
                .chunks(n)
                .map(|row| reduce("sum", row.iter().copied()));
            vec![Output::new("Y", rows.collect(), EXACT)]
        })
}

/// 96 threads: the tree is not a power of two wide.
fn reduce_tree(n: usize, threads: usize) -> Case {
    Case::new("reduce.py", "reduce_tree")
        .sizes([("N", n), ("threads", threads)])
        .input("X", [n], Fill::Uniform(-2.0, 2.0))
        .check(move |t| {
            vec![Output::new(
                "Y",
                vec![reduce("sum", t.get("X").iter().copied())],
                EXACT,
            )]
        })
}

/// The carry from earlier tiles is itself a rounded sum, which the bound on any order of additions covers.
fn cumsum(m: usize, n: usize, reverse: bool) -> Case {
    Case::new("cumsum.py", "cumsum")
        .sizes([("M", m), ("N", n)])
        .flag("reverse", reverse)
        .input("X", [m, n], Fill::Uniform(-1.0, 1.0))
        .check(move |t| {
            let rows = t
                .get("X")
                .chunks(n)
                .flat_map(|row| running_sums(row, reverse));
            vec![Output::new("Y", rows.collect(), EXACT)]
        })
}

fn cumsum_columns(m: usize, n: usize, reverse: bool) -> Case {
    Case::new("cumsum.py", "cumsum_columns")
        .sizes([("M", m), ("N", n)])
        .flag("reverse", reverse)
        .input("X", [m, n], Fill::Uniform(-1.0, 1.0))
        .check(move |t| {
            let x = t.get("X");
            let mut y = vec![Approx::default(); m * n];
            for j in 0..n {
                let column: Vec<f64> = (0..m).map(|i| x[i * n + j]).collect();
                for (i, sum) in running_sums(&column, reverse).into_iter().enumerate() {
                    y[i * n + j] = sum;
                }
            }
            vec![Output::new("Y", y, EXACT)]
        })
}

/// Element j is the sum of the elements up to j, or with `reverse` from j on.
fn running_sums(row: &[f64], reverse: bool) -> Vec<Approx> {
    let part = |j: usize| if reverse { &row[j..] } else { &row[..=j] };
    // A machine may add the whole row to get one prefix (a carry is a difference of no sums, but a
    // tree scan pads with zeros), so every prefix is granted the roundings of the longest.
    let all = row.len() as f64 * F32;
    (0..row.len())
        .map(|j| {
            let magnitude: f64 = part(j).iter().map(|v| v.abs()).sum();
            Approx {
                value: part(j).iter().sum(),
                slack: all * magnitude,
            }
        })
        .collect()
}

fn top_k_case(m: usize, n: usize, k: usize) -> Case {
    top_k_check(m, n, k, Fill::Uniform(-1.0, 1.0))
}

/// Few distinct values, so that most rows have equal entries.
fn top_k_ties(m: usize, n: usize, k: usize) -> Case {
    top_k_check(m, n, k, Fill::Integers(-3, 3))
}

fn top_k_check(m: usize, n: usize, k: usize, fill: Fill) -> Case {
    Case::new("topk.py", "topk_select")
        .sizes([("M", m), ("N", n), ("topk", k)])
        .input("logits", [m, n], fill)
        .check(move |t| {
            let chosen = t.get("logits").chunks(n).flat_map(|row| top_k(row, k));
            let (values, columns): (Vec<f64>, Vec<usize>) = chosen.unzip();
            let indices = columns.into_iter().map(|j| j as f64).collect();
            vec![
                Output::exact("values", values),
                Output::exact("indices", indices),
            ]
        })
}
