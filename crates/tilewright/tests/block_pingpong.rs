//! Which order `block_pingpong` takes for a loop: every row of its table, and every reason why it takes
//! none.

#[path = "kernels/landings.rs"]
mod landings;

use landings::landings;
use tilewright::ir::{FileId, Func, Severity, Target, text};
use tilewright::passes::driver::{self, Options};
use tilewright::schedule::hazard;
use tilewright::sim::simt::{self, SimtOptions};
use tilewright::sim::{self, Args, Fill, InputSpec, RunOptions};

/// A loop that brings tiles and multiplies them.
#[derive(Clone, Copy)]
struct Loop {
    target: Target,
    threads: u32,
    /// Rows, columns and depth of a tile.
    tile: [u32; 3],
    stages: u32,
    dtype: &'static str,
    /// The type of the first tensor.
    from: &'static str,
    /// What is left out of the tensors' depth.
    ragged: u32,
    body: Body,
}

#[derive(Clone, Copy)]
enum Body {
    Product,
    /// The first tile is there before the loop.
    OneCopy,
    /// The first tile is brought in two halves.
    Halves,
    /// The first operand is in registers, the second brought in two halves.
    OneRead,
    /// The sums are stored in each iteration.
    Stores,
    /// So many products of the same tiles, each to sums of its own.
    Products(u32),
    /// The result of the first is an operand of the second.
    Chained,
}

const GFX942: Loop = Loop {
    target: Target::Gfx942,
    threads: 512,
    tile: [256, 256, 64],
    stages: 2,
    dtype: "bfloat16",
    from: "bfloat16",
    ragged: 0,
    body: Body::Product,
};

const GFX950: Loop = Loop {
    target: Target::Gfx950,
    stages: 3,
    tile: [256, 256, 32],
    ..GFX942
};

impl Loop {
    fn func(&self, order: &str) -> Func {
        let [m, n, k] = self.tile;
        let (dtype, from, stages, threads) = (self.dtype, self.from, self.stages, self.threads);
        let depth = 4 * k - self.ragged;
        let copy = |tensor: &str, tile: &str, rows: u32| {
            format!(
                "      copy {tensor}[0 +: {rows}, k * {k} +: {k}] -> {tile}[0 +: {rows}, 0 +: {k}]\n"
            )
        };
        let half = |tensor: &str, tile: &str, rows: u32, from: u32| {
            format!(
                "      copy {tensor}[{from} +: {rows}, k * {k} +: {k}] -> {tile}[{from} +: {rows}, 0 +: {k}]\n"
            )
        };
        let gemm = |a: &str, sums: &str| {
            format!(
                "      gemm {a}[0 +: {m}, 0 +: {k}], b[0 +: {n}, 0 +: {k}] -> {sums}[0 +: {m}, 0 +: {n}] trans_b\n"
            )
        };
        let (a, b) = (copy("A", "a", m), copy("B", "b", n));
        let once = format!("    copy A[0 +: {m}, 0 +: {k}] -> a[0 +: {m}, 0 +: {k}]\n");
        let all = format!("acc[0 +: {m}, 0 +: {n}]");
        let mut allocs = String::new();
        let mut before = String::new();
        let mut after = String::new();
        let body = match self.body {
            Body::Product => format!("{a}{b}{}", gemm("a", "acc")),
            Body::OneCopy => {
                before = once;
                format!("{b}{}", gemm("a", "acc"))
            }
            Body::Halves => {
                let a = half("A", "a", m / 2, 0) + &half("A", "a", m / 2, m / 2);
                format!("{a}{b}{}", gemm("a", "acc"))
            }
            Body::OneRead => {
                allocs = format!("    alloc f: fragment {dtype}[{m}, {k}]\n");
                before = format!("    copy A[0 +: {m}, 0 +: {k}] -> f[0 +: {m}, 0 +: {k}]\n");
                let b = half("B", "b", n / 2, 0) + &half("B", "b", n / 2, n / 2);
                format!("{b}{}", gemm("f", "acc"))
            }
            Body::Stores => {
                let store = format!("      copy {all} -> C[0 +: {m}, 0 +: {n}]\n");
                format!("{a}{b}{}{store}", gemm("a", "acc"))
            }
            Body::Products(count) => {
                let mut products = gemm("a", "acc");
                for other in 1..count {
                    allocs += &format!("    alloc acc{other}: fragment float32[{m}, {n}]\n");
                    before += &format!("    fill acc{other}[0 +: {m}, 0 +: {n}], 0.0\n");
                    products += &gemm("a", &format!("acc{other}"));
                    after += &format!(
                        "    for i, j in parallel({m}, {n}) {{\n      acc[i, j] = acc[i, j] + acc{other}[i, j]\n    }}\n"
                    );
                }
                format!("{a}{b}{products}")
            }
            Body::Chained => {
                allocs = format!(
                    "    alloc s: fragment float32[{m}, {n}]\n    alloc p: shared {dtype}[{m}, {n}]\n"
                );
                before = once;
                let s = format!("      fill s[0 +: {m}, 0 +: {n}], 0.0\n{}", gemm("a", "s"));
                let p = format!("      copy s[0 +: {m}, 0 +: {n}] -> p[0 +: {m}, 0 +: {n}]\n");
                let o =
                    format!("      gemm p[0 +: {m}, 0 +: {n}], v[0 +: {n}, 0 +: {n}] -> {all}\n");
                allocs += &format!("    alloc v: shared {dtype}[{n}, {n}]\n");
                let v =
                    format!("      copy V[k * {n} +: {n}, 0 +: {n}] -> v[0 +: {n}, 0 +: {n}]\n");
                format!("{b}{s}{p}{v}{o}")
            }
        };
        let source = format!(
            "func @f level=tile {{
  param A: {from}[{m}, {depth}]
  param B: {dtype}[{n}, {depth}]
  param V: {dtype}[{}, {n}]
  output C: float32[{m}, {n}]
  kernel grid(bx: 1) threads(tx: {threads}, ty: 1, tz: 1) {{
    alloc a: shared {dtype}[{m}, {k}]
    alloc b: shared {dtype}[{n}, {k}]
    alloc acc: fragment float32[{m}, {n}]
{allocs}    fill {all}, 0.0
{before}    for k in pipelined(0, 4) stages={stages} schedule=\"{order}\" {{
{body}    }}
{after}    copy {all} -> C[0 +: {m}, 0 +: {n}]
  }}
}}
",
            4 * n
        );
        text::parse(&source, FileId(0)).unwrap_or_else(|e| panic!("{e:?}\n{source}"))
    }

    /// The row that is taken, or why none is.
    fn taken(&self) -> Result<String, String> {
        let mut func = self.func("block_pingpong");
        match driver::run(&mut func, self.target, &Options::default()) {
            Ok(report) => {
                let remarks = report.remarks.iter().filter(|r| r.code.0 == "schedule");
                let mut notes = remarks.flat_map(|r| &r.notes);
                let row = notes.find(|note| note.ends_with(": taken")).expect("a row");
                let (_, order) = row.split_once(" takes `").expect("an order");
                Ok(order.split('`').next().unwrap_or_default().to_string())
            }
            Err(failed) => {
                let mut errors = failed.errors.iter();
                let error = errors.find(|d| d.severity == Severity::Error);
                let message = &error.expect("an error").message;
                let (_, why) = message
                    .split_once("fit this loop: ")
                    .unwrap_or(("", message));
                Err(why.to_string())
            }
        }
    }
}

#[test]
fn every_row_is_taken() {
    let rows = [
        ("four_clusters", GFX942),
        (
            "two_clusters",
            Loop {
                tile: [256, 128, 64],
                ..GFX942
            },
        ),
        (
            "one_cluster",
            Loop {
                tile: [128, 128, 64],
                threads: 256,
                ..GFX942
            },
        ),
        (
            "one_cluster",
            Loop {
                tile: [64, 64, 32],
                threads: 256,
                ..GFX942
            },
        ),
        ("reads_and_all", GFX950),
        (
            "reads_and_all",
            Loop {
                dtype: "float16",
                from: "float16",
                tile: [128, 128, 32],
                ..GFX950
            },
        ),
        (
            "copies_and_all",
            Loop {
                dtype: "float8_e4m3fn",
                from: "float8_e4m3fn",
                tile: [256, 256, 128],
                stages: 2,
                ..GFX950
            },
        ),
        (
            "two_products",
            Loop {
                tile: [128, 128, 32],
                stages: 2,
                body: Body::Products(2),
                ..GFX950
            },
        ),
        (
            "chained_products",
            Loop {
                tile: [64, 64, 32],
                stages: 4,
                body: Body::Chained,
                ..GFX950
            },
        ),
    ];
    for (order, tried) in rows {
        assert_eq!(tried.taken(), Ok(order.to_string()));
    }
}

#[test]
fn every_rejection_has_its_reason() {
    let none = "none of its orders is for this loop";
    let cases = [
        (
            Loop {
                target: Target::Sm80,
                threads: 256,
                tile: [64, 64, 32],
                ..GFX950
            },
            "its waves have no priorities",
        ),
        (
            Loop {
                from: "float32",
                ..GFX950
            },
            "copies go through registers on a machine",
        ),
        (
            Loop {
                stages: 1,
                ..GFX942
            },
            "nothing in the loop runs ahead",
        ),
        (
            Loop {
                tile: [64, 64, 32],
                body: Body::Products(3),
                ..GFX950
            },
            "the loop has 3 products",
        ),
        (
            Loop {
                body: Body::OneCopy,
                ..GFX950
            },
            "1 of its tiles is brought ahead",
        ),
        (
            Loop {
                body: Body::OneRead,
                tile: [128, 128, 32],
                ..GFX942
            },
            "1 operand is read from a tile",
        ),
        (
            Loop {
                body: Body::Stores,
                tile: [128, 128, 64],
                ..GFX942
            },
            "`r2g C` reads or writes global memory",
        ),
        (
            Loop {
                body: Body::Halves,
                ..GFX942
            },
            "3 tiles are brought and 2 operands read",
        ),
        (
            Loop {
                ragged: 8,
                ..GFX942
            },
            "what a copy leaves out depends on the iteration",
        ),
        // Rows of the second table, none of which holds.
        (
            Loop {
                tile: [64, 64, 32],
                stages: 2,
                threads: 256,
                body: Body::Products(2),
                ..GFX950
            },
            none,
        ),
        (
            Loop {
                tile: [64, 64, 32],
                stages: 4,
                threads: 256,
                body: Body::Chained,
                ..GFX950
            },
            none,
        ),
        (
            Loop {
                stages: 2,
                ..GFX950
            },
            none,
        ),
        (
            Loop {
                tile: [64, 64, 32],
                ..GFX950
            },
            none,
        ),
        (
            Loop {
                threads: 256,
                tile: [128, 128, 32],
                ..GFX950
            },
            none,
        ),
        (
            Loop {
                tile: [128, 128, 64],
                ..GFX942
            },
            none,
        ),
        (
            Loop {
                stages: 3,
                ..GFX942
            },
            none,
        ),
        (
            Loop {
                threads: 256,
                tile: [256, 128, 64],
                ..GFX942
            },
            none,
        ),
        (
            Loop {
                tile: [64, 64, 32],
                stages: 3,
                body: Body::Products(2),
                ..GFX950
            },
            none,
        ),
    ];
    let mut wrong = Vec::new();
    for (tried, why) in cases {
        let found = tried.taken();
        if !found.as_ref().is_err_and(|found| found.starts_with(why)) {
            wrong.push((found, why));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Two products of an iteration, by name, in values.
#[test]
fn orders_of_two_products_are_right() {
    for target in [Target::Gfx942, Target::Gfx950] {
        for body in [Body::Products(2), Body::Chained] {
            for stages in [2, 3, 4] {
                let tile = [64, 64, 32];
                let tried = Loop {
                    target,
                    tile,
                    stages,
                    body,
                    dtype: "float16",
                    from: "float16",
                    ..GFX950
                };
                for order in ["two_products", "chained_products"] {
                    is_right(&tried, order);
                }
                // Of waves that copy straight to LDS, and of what stands between the products.
                if target == Target::Gfx950 && matches!(body, Body::Chained) {
                    is_right(&tried, "products_together");
                }
            }
        }
    }
}

/// The order applies, is free of hazards, and gives what the reference does however copies land.
fn is_right(tried: &Loop, order: &str) {
    let func = tried.func(order);
    let mut lowered = func.clone();
    if let Err(failed) = driver::run(&mut lowered, tried.target, &Options::default()) {
        panic!("{order}: {failed:?}");
    }
    let report = hazard::check(&lowered, tried.target);
    assert!(report.is_clean(), "{order}: {report:?}\n{lowered}");
    let mut spec = InputSpec::default();
    for name in ["A", "B", "V"] {
        spec.fills.insert(name.to_string(), Fill::Iota(7));
    }
    let inputs = || sim::make_inputs(&func, &spec).expect("inputs");
    let mut expected = inputs();
    sim::run(&func, &mut expected, &RunOptions::default()).expect("the reference runs");
    for (seed, landing) in landings(&lowered).into_iter().enumerate() {
        let mut args = inputs();
        let options = SimtOptions {
            seed: seed as u64,
            landing,
            ..SimtOptions::default()
        };
        let report = simt::run(&lowered, tried.target, &mut args, &options).expect("it runs");
        assert!(report.is_clean(), "{order}\n{lowered}");
        let values = |args: &Args| args.tensor("C").map(|t| t.to_f64());
        assert_eq!(values(&args), values(&expected), "{order}\n{lowered}");
    }
}
