//! `docs/schedule-pictures.md`: a picture of each order for AMD as it comes of a loop, with what is
//! derived of it and what it takes. `BLESS=1` writes the file. Registers and cycles stand in the table
//! here; `TILEWRIGHT_TEST_GFX9=all` compares them with the compiled code and the model.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tilewright::emulate::Emulator;
use tilewright::frontend::{self, SettingValue};
use tilewright::ir::{Func, Scope, SourceMap, StmtKind, Target, visit};
use tilewright::jit::audit::Budget;
use tilewright::lowering::{self, Until};
use tilewright::passes::schedules::{SCHEDULES, ask_for_schedule};

/// Order, target, example, dtype, tile (of attention queries, keys and elements of a head), threads,
/// stages; then VGPRs and cycles of an iteration, and those of them in which matrix units multiply.
type Row = (
    &'static str,
    Target,
    &'static str,
    &'static str,
    [u32; 3],
    u32,
    u32,
    [u32; 3],
);

const BF16: &str = "bfloat16";
const FP8: &str = "float8_e4m3fn";
const GEMM: &str = "gemm.py";
const ATTENTION: &str = "attention_fwd.py";
use Target::{Gfx942, Gfx950};

const ROWS: [Row; 16] = [
    (
        "plain",
        Gfx950,
        GEMM,
        BF16,
        [256, 256, 64],
        512,
        2,
        [206, 3544, 2048],
    ),
    (
        "late_wait",
        Gfx950,
        GEMM,
        BF16,
        [128, 128, 64],
        256,
        3,
        [118, 1316, 512],
    ),
    (
        "ping_pong",
        Gfx950,
        GEMM,
        BF16,
        [256, 256, 64],
        512,
        2,
        [230, 2160, 2048],
    ),
    (
        "ping_pong",
        Gfx942,
        GEMM,
        BF16,
        [256, 256, 32],
        512,
        2,
        [188, 2164, 2048],
    ),
    (
        "half_tiles",
        Gfx950,
        GEMM,
        BF16,
        [256, 256, 64],
        512,
        2,
        [238, 2216, 2048],
    ),
    (
        "half_tiles",
        Gfx950,
        GEMM,
        FP8,
        [256, 256, 128],
        512,
        2,
        [256, 2136, 2048],
    ),
    (
        "between_products",
        Gfx950,
        GEMM,
        FP8,
        [256, 256, 128],
        256,
        2,
        [404, 2140, 2048],
    ),
    (
        "four_stages",
        Gfx950,
        GEMM,
        BF16,
        [256, 256, 64],
        512,
        2,
        [190, 3028, 2048],
    ),
    (
        "one_cluster",
        Gfx942,
        GEMM,
        BF16,
        [128, 128, 64],
        256,
        2,
        [192, 2280, 1024],
    ),
    (
        "two_clusters",
        Gfx942,
        GEMM,
        BF16,
        [256, 128, 64],
        512,
        2,
        [184, 2456, 2048],
    ),
    (
        "four_clusters",
        Gfx942,
        GEMM,
        BF16,
        [256, 256, 64],
        512,
        2,
        [252, 4256, 4096],
    ),
    (
        "reads_and_all",
        Gfx950,
        GEMM,
        BF16,
        [256, 256, 32],
        512,
        3,
        [228, 1196, 1024],
    ),
    (
        "copies_and_all",
        Gfx950,
        GEMM,
        FP8,
        [256, 256, 128],
        512,
        2,
        [234, 3572, 2048],
    ),
    (
        "products_together",
        Gfx950,
        ATTENTION,
        BF16,
        [256, 64, 128],
        512,
        2,
        [188, 3340, 2048],
    ),
    (
        "two_products",
        Gfx950,
        ATTENTION,
        BF16,
        [128, 64, 128],
        512,
        2,
        [166, 2284, 1024],
    ),
    (
        "chained_products",
        Gfx950,
        ATTENTION,
        BF16,
        [128, 32, 128],
        512,
        4,
        [144, 1564, 512],
    ),
];

/// Orders of other machines, and the choice between those above.
const ELSEWHERE: [&str; 4] = [
    "read_ahead",
    "in_flight",
    "producer_consumer",
    "block_pingpong",
];

#[test]
fn pictures_are_what_comes_of_the_orders() {
    let mut text = String::from(ABOUT);
    for row in &ROWS {
        text += &drawn(row);
    }
    let path = root().join("docs/schedule-pictures.md");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &text).expect("the file can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "BLESS=1 writes {}", path.display());
    for named in SCHEDULES {
        let shown = ROWS.iter().any(|row| row.0 == named.name);
        assert_ne!(shown, ELSEWHERE.contains(&named.name), "{}", named.name);
    }
}

#[test]
fn figures_of_the_pictures_are_the_models() {
    if std::env::var_os("TILEWRIGHT_TEST_GFX9").is_none() {
        return;
    }
    let mut wrong = Vec::new();
    for row in &ROWS {
        let found = figures(row);
        if found != row.7 {
            wrong.push(format!("{} {:?} {:?}: {found:?}", row.0, row.1, row.4));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

const ABOUT: &str = "\
# Pictures of the schedules

Each order for AMD on a loop of an example: from top to bottom what waves issue in a steady iteration, \
from one barrier to the next. Where halves of a block are a barrier apart, both stand beside each other, \
the second in the phase that the first has left. Waits stand at the lines that they are before: \
`vmcnt(4)` leaves four copies of a wave under way. `first` is issued before what other waves have. Waits for reads follow from who uses the registers, \
and are not drawn. LDS is what the versions of all tiles take; cycles are those of an iteration in the \
model of a compute unit ([amd-cycles.md](amd-cycles.md)), with the share of the matrix units.

What the orders are for, and their texts, is in [schedules.md](schedules.md). A test draws these \
pictures again and compares.
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What the example is set to, of a product with so many tiles along K.
fn settings(row: &Row, tiles: u32) -> Vec<String> {
    let (_, _, example, dtype, [m, n, k], threads, stages, _) = row;
    let own = match *example {
        GEMM => vec![
            format!("M={m}"),
            format!("N={n}"),
            format!("K={}", tiles * k),
            format!("block_M={m}"),
            format!("block_N={n}"),
            format!("block_K={k}"),
            "trans_B=True".to_string(),
        ],
        _ => vec![
            "heads=1".to_string(),
            "seq_len=1024".to_string(),
            format!("dim={k}"),
            format!("block_M={m}"),
            format!("block_N={n}"),
        ],
    };
    let more = [
        format!("dtype={dtype}"),
        format!("threads={threads}"),
        format!("num_stages={stages}"),
    ];
    own.into_iter().chain(more).collect()
}

/// The lowered function, and the order of its loop as text.
fn lowered(row: &Row) -> (Func, String) {
    let (order, target, example, ..) = row;
    let mut sources = SourceMap::new();
    let path = root().join("examples").join(example);
    let file = sources.add(*example, fs::read_to_string(path).expect("the example"));
    let settings = settings(row, 4).into_iter().map(|setting| {
        let (name, value) = setting.split_once('=').expect("a setting");
        let value = SettingValue::parse(value).expect("a value");
        (name.to_string(), value)
    });
    let settings: Vec<(String, SettingValue)> = settings.collect();
    let mut staged = frontend::stage(&sources, file, None, &settings).expect("it is staged");
    ask_for_schedule(&mut staged.func, order);
    let until = Until::Level(tilewright::ir::Level::Device);
    let lowered = match lowering::lower(&staged.func, *target, until) {
        Ok(lowered) => lowered,
        Err(refused) => panic!("{order}: {:?}", refused.errors),
    };
    let mut orders = lowered.remarks.iter().filter(|r| r.code.0 == "order");
    let text = orders.next().expect("an order").message.clone();
    (lowered.func, text)
}

fn drawn(row: &Row) -> String {
    let (order, target, example, dtype, [m, n, k], threads, stages, [vgprs, cycles, matrix]) = row;
    let (func, text) = lowered(row);
    let what = match *example {
        GEMM => format!("a product of {dtype}, {m}x{n}x{k}, A · Bᵀ"),
        _ => format!("attention of {dtype}, {m} queries, {n} keys, heads of {k}"),
    };
    let share = 100.0 * f64::from(*matrix) / f64::from((*cycles).max(1));
    let mut out = format!("\n## `{order}`, {target}\n\n");
    let _ = writeln!(
        out,
        "{what}, {threads} threads, {stages} stages: {} bytes of LDS, {vgprs} VGPRs, {cycles} cycles, {share:.1} %\n",
        shared_bytes(&func)
    );
    let _ = writeln!(out, "```\n{}```", picture(&text, threads / 64));
    out
}

/// The bytes of all tiles, where they stand.
fn shared_bytes(func: &Func) -> u32 {
    let mut end = 0;
    for kernel in &func.kernels {
        visit::walk_stmts(&kernel.body, &mut |stmt| {
            if let StmtKind::Alloc(buffer) = &stmt.kind
                && func.buffers[*buffer].scope == Scope::Shared
                && let Some(place) = func.buffers[*buffer].place
            {
                end = end.max(place.end());
            }
        });
    }
    end
}

/// What waves do from one barrier to the next: waits and barriers before it, then what is issued.
#[derive(Default)]
struct Phase {
    waits: Vec<String>,
    lines: Vec<String>,
}

/// The clusters of an order, from top to bottom.
fn picture(text: &str, waves: u32) -> String {
    let mut phases: Vec<Phase> = vec![Phase::default()];
    let mut waits = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(derived) = line.strip_prefix("# ") {
            let what = derived.split([' ', ':']).next().unwrap_or_default();
            match what {
                "barrier" => phases.push(Phase {
                    waits: std::mem::take(&mut waits),
                    ..Phase::default()
                }),
                _ => waits.push(derived.split(' ').nth(1).unwrap_or_default().to_string()),
            }
        } else if let Some(cluster) = line.strip_prefix("cluster ") {
            let (head, pieces) = cluster.split_once(" { ").expect("pieces");
            let pieces = in_words(pieces.trim_end_matches(" }"));
            let phase = phases.last_mut().expect("a phase");
            phase
                .lines
                .extend(waits.drain(..).map(|wait| format!("({wait})")));
            let priority = if head.contains(" prio ") {
                "first: "
            } else {
                ""
            };
            let woven = if head.ends_with(" woven") {
                "woven: "
            } else {
                ""
            };
            let mut begin = format!("{priority}{woven}");
            for piece in pieces.split("; ") {
                phase.lines.push(format!("{begin}{piece}"));
                begin = " ".repeat(begin.len());
            }
        }
    }
    // What stands before the first barrier is behind the last one.
    let first = phases.remove(0);
    match phases.last_mut() {
        Some(last) => last.lines.extend(first.lines),
        None => phases.push(first),
    }
    let halves = text.contains("stream halves");
    let wide = phases
        .iter()
        .flat_map(|p| &p.lines)
        .map(|l| l.chars().count());
    let wide = wide.max().unwrap_or(0) + 2;
    let mut out = String::new();
    let half = waves / 2;
    match halves {
        true => {
            let first = format!("waves 0-{}", half - 1);
            let _ = writeln!(out, "{first:<wide$}| waves {half}-{}", waves - 1);
        }
        false => {
            let _ = writeln!(out, "waves 0-{}", waves - 1);
        }
    }
    let count = phases.len();
    for (at, phase) in phases.iter().enumerate() {
        let waits: String = phase.waits.iter().map(|wait| format!(" {wait}")).collect();
        let line = "-".repeat(wide.max(16));
        match phase.waits.is_empty() {
            true => out += &format!("{line} barrier\n"),
            false => out += &format!("{line}{waits}, barrier\n"),
        }
        let none = Vec::new();
        let beside = match halves {
            true => &phases[(at + count - 1) % count].lines,
            false => &none,
        };
        for row in 0..phase.lines.len().max(beside.len()) {
            let own = phase.lines.get(row).map_or("", String::as_str);
            let line = match (halves, beside.get(row)) {
                (true, other) => format!("{own:<wide$}| {}", other.map_or("", String::as_str)),
                (false, _) => own.to_string(),
            };
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }
    out
}

/// Pieces as a reader calls them.
fn in_words(pieces: &str) -> String {
    let words = [
        ("g2s ", "copy "),
        ("g2r ", "load "),
        ("r2s ", "store "),
        ("s2r ", "read "),
        ("mma ", "multiply "),
        ("_shared", ""),
        ("_local", ""),
    ];
    let mut text = pieces.to_string();
    for (from, to) in words {
        text = text.replace(from, to);
    }
    text
}

fn vgprs(row: &Row) -> u32 {
    let (func, _) = lowered(row);
    let emulator = Emulator::new(&func, row.1, &SourceMap::new()).expect("it is compiled");
    let audits = emulator.audit(Budget::default()).expect("it is audited");
    audits
        .iter()
        .map(|audit| audit.report.vgprs)
        .max()
        .unwrap_or(0)
}

/// VGPRs, cycles of an iteration, and those in which matrix units multiply.
fn figures(row: &Row) -> [u32; 3] {
    let (order, target, example, ..) = row;
    let json = |command: &str, more: &[&str]| -> Value {
        let mut run = Command::new(env!("CARGO_BIN_EXE_tilewright"));
        run.arg(command).arg(root().join("examples").join(example));
        run.args(["--json", "--target", target.name(), "--schedule", order]);
        run.args(["--decide", "split_k=off"]);
        for setting in settings(row, 16) {
            run.args(["--set", &setting]);
        }
        let output = run.args(more).output().expect("the command runs");
        assert!(output.status.success(), "{order} {output:?}");
        serde_json::from_slice(&output.stdout).expect("one object")
    };
    let block = if *example == ATTENTION { "3" } else { "0" };
    let timed = json("cycles", &["--block", block]);
    let cycles = |name: &str| timed["hot_loop"][name].as_f64().unwrap_or(0.0).round() as u32;
    [vgprs(row), cycles("cycles"), cycles("matrix_cycles")]
}
