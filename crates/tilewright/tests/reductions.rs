//! Reductions and scans of every shape, lowered for every target, against the reference evaluator.
//!
//! Which threads hold the parts of a result depends on the extents, on the number of threads and
//! on where the fragment comes from; so cases are drawn from all of them, and every answer is
//! compared exactly: everything here is an integer. `--ignored` draws many more.

mod evaluated;

use evaluated::{check, check_on, ramp};
use tilewright::ir::{DType, Target, text};
use tilewright::sim::HostTensor;

const THREADS: [i64; 8] = [32, 64, 96, 128, 160, 192, 256, 384];
const OPS: [&str; 8] = [
    "sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor",
];
const EXTENTS: [i64; 18] = [
    1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 20, 24, 32, 33, 48, 64, 65, 100,
];

/// A small generator of cases: the same ones every time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 1
    }
}

/// Checks all cases and tells of the first few that fail.
fn all(count: usize, seed: u64, case: impl Fn(&mut Draw) -> (String, Result<(), String>)) {
    let mut draw = Draw(seed);
    let mut failed = Vec::new();
    for _ in 0..count {
        let (name, result) = case(&mut draw);
        if let Err(why) = result {
            failed.push(format!("{name}: {why}"));
        }
    }
    let shown: Vec<&String> = failed.iter().take(3).collect();
    assert!(failed.is_empty(), "{} of {count}\n{shown:#?}", failed.len());
}

fn region(shape: &[i64]) -> String {
    let dims: Vec<String> = shape.iter().map(|e| format!("0 +: {e}")).collect();
    dims.join(", ")
}

fn list(shape: &[i64]) -> String {
    let dims: Vec<String> = shape.iter().map(|e| e.to_string()).collect();
    dims.join(", ")
}

fn without(shape: &[i64], dim: usize) -> Vec<i64> {
    let mut kept = shape.to_vec();
    kept.remove(dim);
    if kept.is_empty() {
        kept.push(1);
    }
    kept
}

/// Reduces a tensor through any scopes, then adds the result to every element that went into it,
/// so that every thread that needs it is asked for it.
fn reduced(
    shape: &[i64],
    dim: usize,
    op: &str,
    keep: bool,
    scopes: [&str; 2],
    threads: i64,
) -> Result<(), String> {
    let kept = without(shape, dim);
    let (all, some) = (region(shape), region(&kept));
    let index: Vec<String> = (0..shape.len()).map(|d| format!("i{d}")).collect();
    let mut at = index.clone();
    at.remove(dim);
    if at.is_empty() {
        at.push("0".into());
    }
    let (index, at) = (index.join(", "), at.join(", "));
    let kept_index: Vec<String> = (0..kept.len()).map(|d| format!("k{d}")).collect();
    let kept_index = kept_index.join(", ");
    let clear = if keep { "" } else { " clear" };
    let [from, to] = scopes;
    let source = format!(
        "func @f level=tile {{
           param X: int32[{dims}]
           output Y: int32[{out}]
           output Z: int32[{dims}]
           kernel grid(bx: 1) threads(tx: {threads}, ty: 1, tz: 1) {{
             alloc x: {from} int32[{dims}]
             alloc y: {to} int32[{out}]
             copy X[{all}] -> x[{all}]
             for {kept_index} in parallel({out}) {{
               y[{kept_index}] = k0 * 3 + 1
             }}
             reduce {op} x[{all}] -> y[{some}] dim={dim}{clear}
             for {index} in parallel({dims}) {{
               x[{index}] = x[{index}] + y[{at}]
             }}
             copy y[{some}] -> Y[{some}]
             copy x[{all}] -> Z[{all}]
           }}
         }}",
        dims = list(shape),
        out = list(&kept),
    );
    let inputs = [
        ("X", ramp(DType::I32, shape)),
        ("Y", ramp(DType::I32, &kept)),
        ("Z", ramp(DType::I32, shape)),
    ];
    check(&source, &inputs, &["Y", "Z"], i64::MAX)
}

fn draw_reduction(draw: &mut Draw) -> (String, Result<(), String>) {
    let rank = 1 + draw.below(3);
    let mut shape: Vec<i64> = (0..rank).map(|_| draw.of(&EXTENTS)).collect();
    if rank == 3 {
        shape[0] = shape[0].min(8);
        shape[1] = shape[1].min(20);
        shape[2] = shape[2].min(48);
    }
    let dim = draw.below(rank);
    let (op, threads, keep) = (draw.of(&OPS), draw.of(&THREADS), draw.coin());
    let scopes = draw.of(&[
        ["fragment", "fragment"],
        ["fragment", "fragment"],
        ["fragment", "shared"],
        ["shared", "fragment"],
        ["shared", "shared"],
    ]);
    let name = format!("{op} of {shape:?} along {dim}, {scopes:?}, keep {keep}, {threads} threads");
    (name, reduced(&shape, dim, op, keep, scopes, threads))
}

/// An accumulator, shifted so that what is beside the tile would be noticed, reduced along one
/// dimension, and the result along the other.
fn accumulated(
    m: i64,
    n: i64,
    dim: usize,
    op: &str,
    keep: bool,
    threads: i64,
) -> Result<(), String> {
    let kept = if dim == 1 { m } else { n };
    let at = if dim == 1 { "i" } else { "j" };
    let clear = if keep { "" } else { " clear" };
    let source = format!(
        "func @f level=tile {{
           param A: int8[{m}, 32]
           param B: int8[32, {n}]
           output Y: int32[{kept}]
           output Z: int32[{m}, {n}]
           output W: int32[1]
           kernel grid(bx: 1) threads(tx: {threads}, ty: 1, tz: 1) {{
             alloc a: shared int8[{m}, 32]
             alloc b: shared int8[32, {n}]
             alloc c: fragment int32[{m}, {n}]
             alloc y: fragment int32[{kept}]
             alloc w: fragment int32[1]
             copy A[0 +: {m}, 0 +: 32] -> a[0 +: {m}, 0 +: 32]
             copy B[0 +: 32, 0 +: {n}] -> b[0 +: 32, 0 +: {n}]
             fill c[0 +: {m}, 0 +: {n}], 0
             gemm a[0 +: {m}, 0 +: 32], b[0 +: 32, 0 +: {n}] -> c[0 +: {m}, 0 +: {n}]
             for i, j in parallel({m}, {n}) {{
               c[i, j] = c[i, j] + 100000
             }}
             for i in parallel({kept}) {{
               y[i] = i * 3 + 1
             }}
             reduce {op} c[0 +: {m}, 0 +: {n}] -> y[0 +: {kept}] dim={dim}{clear}
             for i, j in parallel({m}, {n}) {{
               c[i, j] = c[i, j] + y[{at}]
             }}
             reduce {op} y[0 +: {kept}] -> w[0 +: 1] dim=0 clear
             copy y[0 +: {kept}] -> Y[0 +: {kept}]
             copy c[0 +: {m}, 0 +: {n}] -> Z[0 +: {m}, 0 +: {n}]
             copy w[0 +: 1] -> W[0 +: 1]
           }}
         }}"
    );
    let inputs = [
        ("A", ramp(DType::I8, &[m, 32])),
        ("B", ramp(DType::I8, &[32, n])),
        ("Y", ramp(DType::I32, &[kept])),
        ("Z", ramp(DType::I32, &[m, n])),
        ("W", ramp(DType::I32, &[1])),
    ];
    check(&source, &inputs, &["Y", "Z", "W"], threads)
}

fn draw_accumulator(draw: &mut Draw) -> (String, Result<(), String>) {
    let (m, n) = (draw.of(&EXTENTS), draw.of(&EXTENTS));
    let (op, dim, keep) = (draw.of(&OPS), draw.below(2), draw.coin());
    let threads = draw.of(&THREADS);
    let name =
        format!("{op} of a product of {m} by {n} along {dim}, keep {keep}, {threads} threads");
    (name, accumulated(m, n, dim, op, keep, threads))
}

fn scanned(
    shape: &[i64],
    dim: usize,
    how: &str,
    scopes: [&str; 2],
    threads: i64,
) -> Result<(), String> {
    let all = region(shape);
    let (kind, reverse) = how.split_once(' ').unwrap_or((how, ""));
    let [from, to] = scopes;
    let source = format!(
        "func @f level=tile {{
           param X: int32[{dims}]
           output Y: int32[{dims}]
           kernel grid(bx: 1) threads(tx: {threads}, ty: 1, tz: 1) {{
             alloc x: {from} int32[{dims}]
             alloc y: {to} int32[{dims}]
             copy X[{all}] -> x[{all}]
             scan {kind} x[{all}] -> y[{all}] dim={dim} {reverse}
             copy y[{all}] -> Y[{all}]
           }}
         }}",
        dims = list(shape),
    );
    let inputs = [
        ("X", ramp(DType::I32, shape)),
        ("Y", ramp(DType::I32, shape)),
    ];
    check(&source, &inputs, &["Y"], i64::MAX)
}

fn draw_scan(draw: &mut Draw) -> (String, Result<(), String>) {
    let rank = 1 + draw.below(2);
    let shape: Vec<i64> = (0..rank).map(|_| draw.of(&EXTENTS)).collect();
    let dim = draw.below(rank);
    let how = draw.of(&["sum", "sum reverse", "max", "max reverse"]);
    let scopes = draw.of(&[
        ["fragment", "fragment"],
        ["fragment", "shared"],
        ["shared", "fragment"],
        ["shared", "shared"],
    ]);
    let threads = draw.of(&THREADS);
    let name = format!("{how} of {shape:?} along {dim}, {scopes:?}, {threads} threads");
    (name, scanned(&shape, dim, how, scopes, threads))
}

fn collected(m: i64, n: i64, op: &str, threads: i64) -> Result<(), String> {
    let source = format!(
        "func @f level=tile {{
           param X: int32[{m}, {n}]
           output Y: int32[{n}]
           kernel grid(bx: 1) threads(tx: {threads}, ty: 1, tz: 1) {{
             alloc x: fragment int32[{m}, {n}]
             alloc y: fragment int32[{n}]
             alloc acc: reducer int32[{n}] op={op}
             copy X[0 +: {m}, 0 +: {n}] -> x[0 +: {m}, 0 +: {n}]
             reducer_init acc
             for i, j in parallel({m}, {n}) {{
               reducer_update acc[j], x[i, j]
             }}
             reducer_finalize acc -> y[0 +: {n}]
             copy y[0 +: {n}] -> Y[0 +: {n}]
           }}
         }}"
    );
    let inputs = [
        ("X", ramp(DType::I32, &[m, n])),
        ("Y", ramp(DType::I32, &[n])),
    ];
    check(&source, &inputs, &["Y"], i64::MAX)
}

fn draw_reducer(draw: &mut Draw) -> (String, Result<(), String>) {
    let (m, n, threads) = (draw.of(&EXTENTS), draw.of(&EXTENTS), draw.of(&THREADS));
    let op = draw.of(&["sum", "max", "min", "bitand", "bitor", "bitxor"]);
    let name = format!("a reducer of {op} over {m} by {n}, {threads} threads");
    (name, collected(m, n, op, threads))
}

#[test]
fn part_of_a_field_of_warps_or_lanes_is_one_line() {
    for (m, n, threads) in [
        (32, 48, 256),
        (16, 5, 128),
        (64, 20, 128),
        (8, 7, 128),
        (48, 16, 384),
    ] {
        for dim in 0..2 {
            accumulated(m, n, dim, "sum", false, threads)
                .unwrap_or_else(|why| panic!("{m} by {n} along {dim}: {why}"));
        }
    }
}

#[test]
fn what_is_kept_is_kept_where_lanes_are_ragged() {
    for shape in [[17, 64], [33, 64], [5, 8]] {
        for dim in 0..2 {
            reduced(&shape, dim, "sum", true, ["fragment", "fragment"], 128)
                .unwrap_or_else(|why| panic!("{shape:?} along {dim}: {why}"));
        }
    }
}

#[test]
fn every_thread_gets_the_one_result_of_a_vector() {
    for length in [1, 3, 4, 5, 16, 100] {
        for threads in THREADS {
            reduced(
                &[length],
                0,
                "sum",
                false,
                ["fragment", "fragment"],
                threads,
            )
            .unwrap_or_else(|why| panic!("{length} on {threads}: {why}"));
        }
    }
}

#[test]
fn reductions_of_any_shape() {
    all(120, 1, draw_reduction);
}

#[test]
fn reductions_of_accumulators() {
    all(80, 2, draw_accumulator);
}

#[test]
fn scans_of_any_shape() {
    all(60, 3, draw_scan);
}

/// Rows of numbers of which the largest is below zero, zero of either sign, infinite, or none: by integers
/// a maximum of float32 is found only where it is not below zero, and NaNs lose.
#[test]
fn maxima_of_any_numbers() {
    const ROWS: i64 = 32;
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let kinds: [&dyn Fn(i64) -> f64; 8] = [
        &|n| -1.0 - ((n * 37) % 101) as f64,
        &|n| {
            if n % 3 == 0 {
                nan
            } else {
                -((n % 7) as f64) - 0.5
            }
        },
        &|_| nan,
        &|n| if n % 2 == 0 { -0.0 } else { 0.0 },
        &|_| -0.0,
        &|n| {
            if n % 5 == 0 {
                nan
            } else {
                ((n * 29) % 53) as f64
            }
        },
        &|n| if n % 50 == 7 { inf } else { n as f64 },
        &|n| if n % 4 == 0 { nan } else { -inf },
    ];
    for (cols, threads, op) in [
        (128, 128, "max"),
        (64, 64, "max"),
        (96, 64, "absmax"),
        (256, 128, "absmax"),
    ] {
        let values: Vec<f64> = (0..ROWS * cols)
            .map(|n| kinds[(n / cols % 8) as usize](n % cols))
            .collect();
        let shape = [ROWS as usize, cols as usize];
        // A thread has a run of one row: so many numbers of one maximum are found by integers.
        let (sharers, run) = (threads / ROWS, cols * ROWS / threads);
        let place = format!(
            "fragment[{ROWS}, {cols}](i, j) -> [{threads}; {run}](i * {sharers} + j // {run}; j % {run})"
        );
        let numbers = HostTensor::from_f64(DType::F32, &shape, &values).expect("all elements");
        let source = format!(
            "func @f level=tile {{
               param X: float32[{ROWS}, {cols}]
               output Y: float32[{ROWS}]
               kernel grid(bx: 1) threads(tx: {threads}, ty: 1, tz: 1) {{
                 alloc x: fragment float32[{ROWS}, {cols}] layout={place}
                 alloc y: fragment float32[{ROWS}]
                 copy X[0 +: {ROWS}, 0 +: {cols}] -> x[0 +: {ROWS}, 0 +: {cols}]
                 reduce {op} x[0 +: {ROWS}, 0 +: {cols}] -> y[0 +: {ROWS}] dim=1 clear
                 copy y[0 +: {ROWS}] -> Y[0 +: {ROWS}]
               }}
             }}"
        );
        let inputs = [("X", numbers), ("Y", ramp(DType::F32, &[ROWS]))];
        let made = check_on(&Target::ALL, &source, &inputs, &["Y"])
            .unwrap_or_else(|why| panic!("{op} of {cols} by {threads}: {why}"));
        for (target, lowered) in Target::ALL.into_iter().zip(made) {
            let by_integers = text::print(&lowered).contains("alloc bits: local int32");
            assert_eq!(
                by_integers,
                target.machine().max_of_three,
                "{target}\n{lowered}"
            );
        }
    }
}

#[test]
fn reducers_of_any_shape() {
    all(30, 4, draw_reducer);
}

#[test]
#[ignore = "2,400 cases, minutes of time: run when reductions or their layouts change"]
fn many_more() {
    all(1000, 11, draw_reduction);
    all(800, 12, draw_accumulator);
    all(400, 13, draw_scan);
    all(200, 14, draw_reducer);
}
