//! Shapes that divide nothing, lowered for every target, against the reference evaluator: tensors
//! shorter than a vector, tiles past the end, policies that do not fit.

mod evaluated;
mod resident;
mod split_k;

use evaluated::{check, check_on, ramp};
use tilewright::ir::{DType, Scalar, Target};

const THREADS: [i64; 5] = [32, 64, 96, 128, 256];

fn passes(what: &str, result: Result<(), String>) {
    if let Err(why) = result {
        panic!("{what}: {why}");
    }
}

#[test]
fn tensors_shorter_than_a_vector() {
    for length in 1..=9 {
        for (dtype, name) in [(DType::I32, "int32"), (DType::I8, "int8")] {
            let source = format!(
                "func @f level=tile {{
                   param X: {name}[{length}]
                   output Y: {name}[64, 16]
                   output Z: {name}[{length}]
                   kernel grid(bx: 1) threads(tx: 256, ty: 1, tz: 1) {{
                     alloc s: shared {name}[{length}]
                     alloc f: fragment {name}[{length}]
                     for i, j in parallel(64, 16) {{
                       Y[i, j] = X[j]
                     }}
                     copy X[0 +: {length}] -> s[0 +: {length}]
                     copy s[0 +: {length}] -> f[0 +: {length}]
                     copy f[0 +: {length}] -> Z[0 +: {length}]
                   }}
                 }}"
            );
            let inputs = [
                ("X", ramp(dtype, &[length])),
                ("Y", ramp(dtype, &[64, 16])),
                ("Z", ramp(dtype, &[length])),
            ];
            let result = check(&source, &inputs, &["Y", "Z"], i64::MAX);
            passes(&format!("{length} of {name}"), result);
        }
    }
}

#[test]
fn stores_at_indices_that_registers_hold() {
    let source = "func @f level=tile {
           param X: int32[64]
           output Y: int32[32]
           kernel grid(bx: 64) threads(tx: 32, ty: 1, tz: 1) {
             alloc at: local int32[1]
             at[0] = X[bx]
             if at[0] % 7 == 0 {
               Y[at[0]] = 1
             }
           }
         }";
    let inputs = [
        ("X", ramp(DType::I32, &[64])),
        ("Y", ramp(DType::I32, &[32])),
    ];
    passes("a local index", check(source, &inputs, &["Y"], i64::MAX));
}

#[test]
fn pipelined_copies_that_start_past_the_end() {
    for (rows, stages) in [(63, 2), (63, 3), (64, 3), (1, 4), (129, 3)] {
        let source = format!(
            "func @f level=tile {{
               param X: int32[{rows}, 32]
               output Y: int32[4, 32]
               kernel grid(bx: 4) threads(tx: 128, ty: 1, tz: 1) {{
                 alloc s: shared int32[64, 32]
                 alloc c: fragment int32[64, 32]
                 alloc y: fragment int32[32]
                 fill c[0 +: 64, 0 +: 32], 0
                 for k in pipelined(0, bx) stages={stages} {{
                   copy X[k * 64 +: 64, 0 +: 32] -> s[0 +: 64, 0 +: 32]
                   for i, j in parallel(64, 32) {{
                     c[i, j] = c[i, j] + s[i, j] * 3
                   }}
                 }}
                 reduce sum c[0 +: 64, 0 +: 32] -> y[0 +: 32] dim=0 clear
                 copy y[0 +: 32] -> Y[bx, 0 +: 32]
               }}
             }}"
        );
        let inputs = [
            ("X", ramp(DType::I32, &[rows, 32])),
            ("Y", ramp(DType::I32, &[4, 32])),
        ];
        let result = check(&source, &inputs, &["Y"], i64::MAX);
        passes(&format!("{rows} rows, {stages} stages"), result);
    }
}

/// A product of tiles in shared memory, added to ones.
struct Product {
    sizes: [i64; 3],
    types: [DType; 2],
    trans: [bool; 2],
    policy: &'static str,
    threads: i64,
}

impl Product {
    fn is_right(&self) {
        let Product {
            sizes: [m, n, k],
            types: [ab, acc],
            trans,
            policy,
            threads,
        } = *self;
        let shape = |turn: bool, x: i64, y: i64| if turn { [y, x] } else { [x, y] };
        let (a, b) = (shape(trans[0], m, k), shape(trans[1], k, n));
        let whole = |[x, y]: [i64; 2]| format!("[0 +: {x}, 0 +: {y}]");
        let (at, bt, ct) = (whole(a), whole(b), whole([m, n]));
        let turned = |operand: &str, turn| match turn {
            true => format!(" trans_{operand}"),
            false => String::new(),
        };
        let one = if acc == DType::I32 {
            "1"
        } else {
            "1.0:float64"
        };
        let source = format!(
            "func @f level=tile {{
               param A: {ab}{a:?}
               param B: {ab}{b:?}
               output Y: {acc}[{m}, {n}]
               kernel grid(bx: 1) threads(tx: {threads}, ty: 1, tz: 1) {{
                 alloc a: shared {ab}{a:?}
                 alloc b: shared {ab}{b:?}
                 alloc c: fragment {acc}[{m}, {n}]
                 copy A{at} -> a{at}
                 copy B{bt} -> b{bt}
                 fill c{ct}, {one}
                 gemm a{at}, b{bt} -> c{ct}{}{} policy={policy}
                 copy c{ct} -> Y{ct}
               }}
             }}",
            turned("a", trans[0]),
            turned("b", trans[1]),
        );
        let inputs = [
            ("A", ramp(ab, &a)),
            ("B", ramp(ab, &b)),
            ("Y", ramp(acc, &[m, n])),
        ];
        let result = check(&source, &inputs, &["Y"], threads);
        let what = format!("{m} by {n} by {k} of {ab}, {trans:?}, {policy}, {threads}");
        passes(&what, result);
    }
}

const SIZES: [[i64; 3]; 5] = [
    [48, 64, 64],
    [48, 8, 32],
    [17, 33, 5],
    [1, 100, 7],
    [80, 24, 16],
];

#[test]
fn products_of_any_policy() {
    for sizes in SIZES {
        for policy in ["square", "full_row", "full_col"] {
            for threads in THREADS {
                let product = Product {
                    sizes,
                    types: [DType::I8, DType::I32],
                    trans: [false; 2],
                    policy,
                    threads,
                };
                product.is_right();
            }
        }
    }
}

#[test]
fn products_of_float64() {
    for (sizes, policy) in SIZES
        .into_iter()
        .zip(["square", "full_row", "full_col"].into_iter().cycle())
    {
        for trans in [[false, false], [false, true], [true, false], [true, true]] {
            for threads in THREADS {
                let product = Product {
                    sizes,
                    types: [DType::F64; 2],
                    trans,
                    policy,
                    threads,
                };
                product.is_right();
            }
        }
    }
}

const FOUR_BITS: [DType; 2] = [DType::scalar(Scalar::I4), DType::scalar(Scalar::U4)];

#[test]
fn products_of_int4() {
    for sizes in SIZES {
        for trans in [[false, false], [false, true], [true, false], [true, true]] {
            for (threads, ab) in THREADS.into_iter().zip(FOUR_BITS.into_iter().cycle()) {
                let product = Product {
                    sizes,
                    types: [ab, DType::I32],
                    trans,
                    policy: "square",
                    threads,
                };
                product.is_right();
            }
        }
    }
}

#[test]
fn transposes_of_any_shape() {
    for (m, n) in [(64, 1), (1, 64), (1, 1), (3, 5), (64, 33), (16, 16)] {
        for (from, to) in [
            ("shared", "shared"),
            ("fragment", "shared"),
            ("shared", "fragment"),
            ("fragment", "fragment"),
        ] {
            for threads in [96, 128] {
                let source = format!(
                    "func @f level=tile {{
                       param X: int32[{m}, {n}]
                       output Y: int32[{n}, {m}]
                       kernel grid(bx: 1) threads(tx: {threads}, ty: 1, tz: 1) {{
                         alloc s: {from} int32[{m}, {n}]
                         alloc t: {to} int32[{n}, {m}]
                         copy X[0 +: {m}, 0 +: {n}] -> s[0 +: {m}, 0 +: {n}]
                         transpose s[0 +: {m}, 0 +: {n}] -> t[0 +: {n}, 0 +: {m}]
                         copy t[0 +: {n}, 0 +: {m}] -> Y[0 +: {n}, 0 +: {m}]
                       }}
                     }}"
                );
                let inputs = [
                    ("X", ramp(DType::I32, &[m, n])),
                    ("Y", ramp(DType::I32, &[n, m])),
                ];
                let result = check(&source, &inputs, &["Y"], i64::MAX);
                passes(&format!("{m} by {n}, {from} to {to}, {threads}"), result);
            }
        }
    }
}

#[test]
fn fragments_that_only_fills_and_scans_touch() {
    for (m, n) in [(64, 64), (5, 229), (1, 3)] {
        let source = format!(
            "func @f level=tile {{
               output Y: int32[{m}, {n}]
               kernel grid(bx: 1) threads(tx: 128, ty: 1, tz: 1) {{
                 alloc dead: fragment int32[{m}, {n}]
                 alloc x: fragment int32[{m}, {n}]
                 alloc y: shared int32[{m}, {n}]
                 fill dead[0 +: {m}, 0 +: {n}], 7
                 fill x[0 +: {m}, 0 +: {n}], 1
                 scan sum x[0 +: {m}, 0 +: {n}] -> y[0 +: {m}, 0 +: {n}] dim=1
                 copy y[0 +: {m}, 0 +: {n}] -> Y[0 +: {m}, 0 +: {n}]
               }}
             }}"
        );
        let inputs = [("Y", ramp(DType::I32, &[m, n]))];
        let result = check(&source, &inputs, &["Y"], i64::MAX);
        passes(&format!("{m} by {n}"), result);
    }
}

/// Dies take sections of the grid, and what is left of it behind the last round stays where it is.
#[test]
fn blocks_that_dies_take_in_sections() {
    let (rows, cols, depth) = (19 * 16 - 3, 17 * 16 - 5, 20);
    let source = format!(
        "func @product level=tile {{
           param A: float16[{rows}, {depth}]
           param B: float16[{cols}, {depth}]
           output C: float32[{rows}, {cols}]
           attr pass_config \"tilewright.chiplets\" = true
           kernel grid(bx: 17, by: 19) threads(tx: 64, ty: 1, tz: 1) {{
             alloc a: shared float16[16, 32]
             alloc b: shared float16[16, 32]
             alloc c: fragment float32[16, 16]
             fill c[0 +: 16, 0 +: 16], 0.0
             copy A[by * 16 +: 16, 0 +: 32] -> a[0 +: 16, 0 +: 32]
             copy B[bx * 16 +: 16, 0 +: 32] -> b[0 +: 16, 0 +: 32]
             gemm a[0 +: 16, 0 +: 32], b[0 +: 16, 0 +: 32] -> c[0 +: 16, 0 +: 16] trans_b
             copy c[0 +: 16, 0 +: 16] -> C[by * 16 +: 16, bx * 16 +: 16]
           }}
         }}"
    );
    let inputs = [
        ("A", ramp(DType::F16, &[rows, depth])),
        ("B", ramp(DType::F16, &[cols, depth])),
        ("C", ramp(DType::F32, &[rows, cols])),
    ];
    let made = check_on(&[Target::Gfx942, Target::Gfx950], &source, &inputs, &["C"]);
    for func in made.unwrap_or_else(|why| panic!("{why}")) {
        let grid = &func.kernels[0].grid;
        assert_eq!(
            (grid.len(), grid[0].1.as_int()),
            (1, Some(17 * 19)),
            "{func}"
        );
    }
}
