//! What `auto` takes for products and attention on AMD, beside the cycles of every order that it may take.
//!
//! `TILEWRIGHT_TEST_GFX9=ranks` prints the table (`scripts/gfx9-corpus ranks`) and fails where another order
//! is much faster; without it nothing is compiled.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tilewright::frontend::{self, SettingValue};
use tilewright::ir::{SourceMap, Target};
use tilewright::lowering::{self, Until};
use tilewright::passes::decisions::SPLIT_K;
use tilewright::passes::schedules::{SCHEDULES, ask_for_schedule};

use Target::{Gfx942, Gfx950};

const BF16: &str = "bfloat16";
const FP8: &str = "float8_e4m3fn";
const FNUZ: &str = "float8_e4m3fnuz";

/// A product by `examples/gemm.py`: target, dtype, tile, operands that are transposed, threads, stages.
type Product = (Target, &'static str, [u32; 3], &'static str, u32, u32);

const PRODUCTS: &[Product] = &[
    (Gfx942, BF16, [64, 64, 32], "B", 128, 2),
    (Gfx942, BF16, [64, 64, 64], "B", 256, 2),
    (Gfx942, BF16, [128, 64, 32], "B", 256, 2),
    (Gfx942, BF16, [128, 128, 32], "B", 256, 2),
    (Gfx942, BF16, [128, 128, 64], "B", 256, 2),
    (Gfx942, BF16, [128, 128, 32], "B", 512, 2),
    (Gfx942, BF16, [128, 256, 32], "B", 512, 2),
    (Gfx942, BF16, [256, 128, 64], "B", 512, 2),
    (Gfx942, BF16, [256, 256, 32], "B", 512, 2),
    (Gfx942, BF16, [256, 256, 32], "", 512, 2),
    (Gfx942, BF16, [256, 256, 64], "B", 512, 2),
    (Gfx942, FNUZ, [128, 128, 64], "B", 256, 2),
    (Gfx942, FNUZ, [256, 256, 64], "B", 512, 2),
    (Gfx950, BF16, [64, 64, 64], "B", 128, 2),
    (Gfx950, BF16, [64, 64, 64], "B", 256, 3),
    (Gfx950, BF16, [128, 64, 64], "B", 256, 2),
    (Gfx950, BF16, [128, 128, 64], "B", 256, 2),
    (Gfx950, BF16, [128, 128, 64], "B", 256, 3),
    (Gfx950, BF16, [128, 128, 64], "", 256, 2),
    (Gfx950, BF16, [128, 128, 64], "B", 512, 2),
    (Gfx950, BF16, [128, 128, 64], "B", 512, 3),
    (Gfx950, BF16, [256, 128, 64], "B", 256, 2),
    (Gfx950, BF16, [256, 128, 64], "B", 512, 2),
    (Gfx950, BF16, [256, 256, 32], "B", 512, 2),
    (Gfx950, BF16, [256, 256, 32], "B", 512, 3),
    (Gfx950, BF16, [256, 256, 64], "B", 256, 2),
    (Gfx950, BF16, [256, 256, 64], "", 256, 2),
    (Gfx950, BF16, [256, 256, 64], "B", 512, 2),
    (Gfx950, BF16, [256, 256, 64], "", 512, 2),
    (Gfx950, BF16, [256, 256, 64], "A", 512, 2),
    (Gfx950, BF16, [256, 256, 64], "AB", 512, 2),
    (Gfx950, FP8, [128, 128, 128], "B", 256, 2),
    (Gfx950, FP8, [128, 128, 128], "B", 512, 2),
    (Gfx950, FP8, [256, 256, 128], "B", 256, 2),
    (Gfx950, FP8, [256, 256, 128], "B", 512, 2),
    (Gfx950, FP8, [256, 256, 128], "", 512, 2),
];

/// Attention by `examples/attention_fwd.py`, bf16: target; queries, keys, elements of a head; threads,
/// stages, whether causal.
const ATTENTION: &[(Target, [u32; 3], u32, u32, bool)] = &[
    (Gfx942, [128, 64, 128], 256, 2, false),
    (Gfx942, [128, 64, 128], 512, 2, false),
    (Gfx950, [64, 64, 128], 256, 2, false),
    (Gfx950, [128, 64, 64], 256, 2, false),
    (Gfx950, [128, 64, 128], 256, 2, false),
    (Gfx950, [128, 32, 128], 512, 4, false),
    (Gfx950, [128, 64, 128], 512, 2, false),
    (Gfx950, [128, 128, 128], 512, 2, false),
    (Gfx950, [256, 32, 128], 512, 2, false),
    (Gfx950, [256, 64, 128], 512, 2, false),
    (Gfx950, [256, 64, 128], 512, 2, true),
];

/// A loop of an example.
struct Case {
    title: String,
    example: &'static str,
    target: Target,
    settings: Vec<String>,
    options: Vec<&'static str>,
}

/// What came of an order: the cycles of an iteration in the model, and by the estimate.
struct Timed {
    order: &'static str,
    cycles: f64,
    estimate: f64,
}

/// The most that what `auto` takes is slower than the fastest, in percent: what the estimate leaves out
/// (addresses, instructions that the compiler adds) is as much.
const MOST_LOSS: f64 = 6.0;

#[test]
fn auto_takes_the_fastest_order() {
    if std::env::var("TILEWRIGHT_TEST_GFX9").ok().as_deref() != Some("ranks") {
        return;
    }
    // A part of the titles, for a few rows alone.
    let only = std::env::var("TILEWRIGHT_RANKS").unwrap_or_default();
    let mut cases: Vec<Case> = products().chain(attention()).collect();
    cases.retain(|case| case.title.contains(&only));
    println!(
        "| loop | cycles of each order, and by its estimate | `auto` | loss |\n|---|---|---|---|"
    );
    let next = AtomicUsize::new(0);
    let slower: Mutex<Vec<String>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (row, loss) = row(case);
                    println!("{row}");
                    if loss > MOST_LOSS {
                        slower.lock().expect("no row panics").push(row);
                    }
                }
            });
        }
    });
    let slower = slower.into_inner().expect("no row panics");
    assert!(slower.is_empty(), "{slower:#?}");
}

/// The row of a case, and by how many percent `auto` is slower than the fastest.
fn row(case: &Case) -> (String, f64) {
    let mut timed: Vec<Timed> = Vec::new();
    for named in SCHEDULES.iter().filter(|s| s.is_tried()) {
        if let Some((_, idle)) = taken(case, Some(named.name)) {
            let (cycles, matrix) = cycles(case, named.name);
            timed.push(Timed {
                order: named.name,
                cycles,
                estimate: matrix + idle,
            });
        }
    }
    let (auto, _) = taken(case, None).expect("some order is taken");
    let fastest = timed.iter().map(|t| t.cycles).fold(f64::INFINITY, f64::min);
    let own = timed.iter().find(|t| t.order == auto).expect("it is tried");
    let loss = 100.0 * (own.cycles / fastest - 1.0);
    let all = timed.iter().map(|t| {
        let Timed {
            order,
            cycles,
            estimate,
        } = t;
        format!("`{order}` {cycles} ({estimate})")
    });
    let all: Vec<String> = all.collect();
    let title = &case.title;
    let row = format!("| {title} | {} | `{auto}` | {loss:.1} % |", all.join(", "));
    (row, loss)
}

fn products() -> impl Iterator<Item = Case> {
    let python = |b: bool| if b { "True" } else { "False" };
    PRODUCTS.iter().map(move |product| {
        let (target, dtype, [m, n, k], transposed, threads, stages) = *product;
        let [a, b] = ["A", "B"].map(|side| transposed.contains(side));
        let operands = [("A", a), ("B", b)].map(|(name, across)| match across {
            true => format!("{name}ᵀ"),
            false => name.to_string(),
        });
        Case {
            title: format!(
                "{target} {dtype} {m}x{n}x{k}, {}, {threads} threads, {stages} stages",
                operands.join(" · ")
            ),
            example: "gemm.py",
            target,
            settings: vec![
                format!("M={m}"),
                format!("N={n}"),
                format!("K={}", 12 * k),
                format!("block_M={m}"),
                format!("block_N={n}"),
                format!("block_K={k}"),
                format!("dtype={dtype}"),
                format!("trans_A={}", python(a)),
                format!("trans_B={}", python(b)),
                format!("threads={threads}"),
                format!("num_stages={stages}"),
            ],
            options: vec!["--decide", "split_k=off"],
        }
    })
}

fn attention() -> impl Iterator<Item = Case> {
    ATTENTION.iter().map(|attention| {
        let (target, [queries, keys, dim], threads, stages, causal) = *attention;
        let what = if causal { "causal attention" } else { "attention" };
        // The last block sees all keys.
        let block = match queries {
            64 => "15",
            128 => "7",
            _ => "3",
        };
        Case {
            title: format!(
                "{target} {what} of {queries} queries, {keys} keys, heads of {dim}, {threads} threads, {stages} stages"
            ),
            example: "attention_fwd.py",
            target,
            settings: vec![
                "heads=1".to_string(),
                "seq_len=1024".to_string(),
                format!("dim={dim}"),
                format!("is_causal={}", if causal { "True" } else { "False" }),
                format!("dtype={BF16}"),
                format!("block_M={queries}"),
                format!("block_N={keys}"),
                format!("threads={threads}"),
                format!("num_stages={stages}"),
            ],
            options: vec!["--block", block],
        }
    })
}

fn path(case: &Case) -> PathBuf {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    examples.join(case.example)
}

/// The order that the loop gets and for how many cycles matrix units wait by the estimate, or none where the
/// one that is asked for does not apply.
fn taken(case: &Case, asked: Option<&str>) -> Option<(String, f64)> {
    let mut sources = SourceMap::new();
    let text = fs::read_to_string(path(case)).expect("the example");
    let file = sources.add(case.example, text);
    let settings = case.settings.iter().map(|setting| {
        let (name, value) = setting.split_once('=').expect("a setting");
        let value = SettingValue::parse(value).expect("a value");
        (name.to_string(), value)
    });
    let settings: Vec<(String, SettingValue)> = settings.collect();
    let mut staged = frontend::stage(&sources, file, None, &settings).expect("it is staged");
    if let Some(asked) = asked {
        ask_for_schedule(&mut staged.func, asked);
    }
    SPLIT_K.ask(&mut staged.func, false);
    let until = Until::Level(tilewright::ir::Level::Device);
    let lowered = lowering::lower(&staged.func, case.target, until).ok()?;
    let mut remarks = lowered.remarks.iter();
    let said = remarks.find(|r| r.code.0 == "schedule")?.message.clone();
    let order = said.split('`').nth(1)?.to_string();
    let idle = said.split("matrix units wait ").nth(1);
    let idle = idle.and_then(|text| text.split(' ').next()?.parse().ok());
    Some((order, idle.unwrap_or(0.0)))
}

/// The cycles of an iteration in the model, and those in which matrix units multiply.
fn cycles(case: &Case, order: &str) -> (f64, f64) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    command.arg("cycles").arg(path(case)).arg("--json");
    command.args(["--target", case.target.name(), "--schedule", order]);
    command.args(&case.options);
    for setting in &case.settings {
        command.args(["--set", setting]);
    }
    let output = command.output().expect("the command runs");
    assert!(
        output.status.success(),
        "{} {order}: {output:?}",
        case.title
    );
    let report: Value = serde_json::from_slice(&output.stdout).expect("one object");
    let cycles = |name: &str| report["hot_loop"][name].as_f64().expect("cycles");
    (cycles("cycles"), cycles("matrix_cycles"))
}
