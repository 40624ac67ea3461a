//! Every order of the table on products and attention of AMD's targets: refused with a reason, or proved
//! free of hazards, equal to the reference in the simulator and as machine code in every mode of landing,
//! and compiled as it was written: nothing in scratch memory, waits, barriers and clusters in their order.
//!
//! Compiling and running all of them takes long: tests take the sample, and
//! `TILEWRIGHT_TEST_GFX9=all` every order on every loop. `TILEWRIGHT_TEST_GFX9='tiles SEED COUNT'` takes
//! every order on so many loops of random tiles, `'registers SEED COUNT'` prints what they take of
//! registers and runs nothing; `'registers 0 0'` is of the loops that are listed.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use libtest_mimic::{Failed, Trial};
use tilewright::emulate::{Emulator, LANDINGS, Options};
use tilewright::ir::small_float::Number;
use tilewright::ir::visit::child_blocks;
use tilewright::ir::{Func, LoopKind, Severity, SourceMap, Stmt, StmtKind, Target, text};
use tilewright::jit::audit::Budget;
use tilewright::lowering::{Until, lower};
use tilewright::passes::schedules::{SCHEDULES, ask_for_schedule};
use tilewright::sim::simt::{self, Landing, SimtOptions};
use tilewright::sim::{self, Args, Fill, InputSpec, RunOptions};
use tilewright::verdict::{Compared, summation, verdict, verdict_within};

use crate::corpus::stage::{rendered, staged};

/// Tiles of products of 16-bit elements, with the threads of their blocks; of 8-bit elements they are twice
/// as deep.
const GFX942: [([u32; 3], u32); 7] = [
    ([64, 64, 32], 256),
    ([128, 128, 32], 256),
    ([128, 128, 64], 256),
    ([128, 128, 32], 512),
    ([256, 128, 64], 512),
    ([256, 256, 32], 512),
    ([256, 256, 64], 512),
];
const GFX950: [([u32; 3], u32); 9] = [
    ([64, 64, 64], 64),
    ([64, 64, 64], 256),
    ([128, 128, 64], 256),
    ([256, 256, 64], 256),
    ([128, 128, 32], 512),
    ([128, 128, 64], 512),
    ([256, 128, 64], 512),
    ([256, 256, 32], 512),
    ([256, 256, 64], 512),
];

/// Queries, keys, elements of a head, threads.
const ATTENTION: [([u32; 3], u32); 4] = [
    ([64, 64, 64], 256),
    ([128, 64, 64], 512),
    ([128, 64, 128], 512),
    ([256, 64, 128], 512),
];

/// Tiles that few would ask for: in each clang added waits, or spilled, before the schedule said more of its
/// order, or took another instruction.
const ODD: [Loop; 4] = [
    Loop {
        target: Target::Gfx942,
        body: Body::Attention { causal: true },
        dtype: "float16",
        tile: [16, 48, 128],
        threads: 64,
        stages: 3,
    },
    Loop {
        target: Target::Gfx950,
        body: Body::Product { trans_b: false },
        dtype: "bfloat16",
        tile: [48, 128, 128],
        threads: 256,
        stages: 2,
    },
    Loop {
        target: Target::Gfx950,
        body: Body::Product { trans_b: true },
        dtype: "float16",
        tile: [256, 80, 128],
        threads: 512,
        stages: 3,
    },
    Loop {
        target: Target::Gfx950,
        body: Body::Product { trans_b: true },
        dtype: "float8_e4m3fn",
        tile: [208, 96, 96],
        threads: 128,
        stages: 3,
    },
];

/// An order, and a loop that it is taken for.
const SAMPLE: &[(&str, &str)] = &[
    (
        "plain",
        "gfx942 A·Bᵀ of float16, 128x128x32, 256 threads, 2 stages",
    ),
    (
        "late_wait",
        "gfx950 A·Bᵀ of bfloat16, 64x64x64, 256 threads, 3 stages",
    ),
    (
        "ping_pong",
        "gfx942 A·Bᵀ of float16, 128x128x32, 512 threads, 2 stages",
    ),
    (
        "ping_pong",
        "gfx950 A·B of bfloat16, 128x128x64, 512 threads, 2 stages",
    ),
    (
        "one_cluster",
        "gfx942 A·Bᵀ of bfloat16, 128x128x32, 256 threads, 2 stages",
    ),
    // A block of one wave, whose lanes meet in place of waves, and whose barriers the compiler leaves out.
    (
        "plain",
        "gfx950 A·Bᵀ of bfloat16, 64x64x64, 64 threads, 3 stages",
    ),
    (
        "late_wait",
        "gfx950 A·Bᵀ of bfloat16, 64x64x64, 64 threads, 2 stages",
    ),
    // Copies to the only version of a tile.
    (
        "one_cluster",
        "gfx950 A·Bᵀ of bfloat16, 64x64x64, 256 threads, 2 stages",
    ),
    (
        "two_clusters",
        "gfx942 A·Bᵀ of bfloat16, 256x128x64, 512 threads, 2 stages",
    ),
    (
        "four_clusters",
        "gfx942 A·Bᵀ of float16, 256x256x64, 512 threads, 2 stages",
    ),
    (
        "reads_and_all",
        "gfx950 A·Bᵀ of float8_e4m3fn, 128x128x128, 512 threads, 3 stages",
    ),
    (
        "copies_and_all",
        "gfx950 A·Bᵀ of float8_e4m3fn, 256x256x128, 512 threads, 2 stages",
    ),
    (
        "four_stages",
        "gfx950 A·Bᵀ of bfloat16, 128x128x64, 512 threads, 2 stages",
    ),
    (
        "half_tiles",
        "gfx950 A·Bᵀ of float8_e4m3fn, 128x128x128, 512 threads, 2 stages",
    ),
    // It waits for some of its reads, and a pointer is used behind the loop alone.
    (
        "half_tiles",
        "gfx950 A·Bᵀ of bfloat16, 64x64x64, 256 threads, 2 stages",
    ),
    (
        "between_products",
        "gfx950 A·Bᵀ of float8_e4m3fn, 128x128x128, 256 threads, 2 stages",
    ),
    // Sums that have registers by number.
    (
        "between_products",
        "gfx950 A·Bᵀ of bfloat16, 256x256x64, 256 threads, 2 stages",
    ),
    (
        "two_products",
        "gfx942 attention of float16, 128x64x64, 512 threads, 2 stages",
    ),
    (
        "chained_products",
        "gfx950 attention of bfloat16, 128x64x64, 512 threads, 4 stages",
    ),
    (
        "products_together",
        "gfx950 attention of bfloat16, 128x64x64, 512 threads, 2 stages",
    ),
    (
        "plain",
        "gfx942 causal attention of float16, 16x48x128, 64 threads, 3 stages",
    ),
    (
        "four_clusters",
        "gfx950 A·B of bfloat16, 48x128x128, 256 threads, 2 stages",
    ),
    (
        "one_cluster",
        "gfx950 A·Bᵀ of float16, 256x80x128, 512 threads, 3 stages",
    ),
    (
        "plain",
        "gfx950 A·Bᵀ of float8_e4m3fn, 208x96x96, 128 threads, 3 stages",
    ),
];

/// Orders of other machines, and the choice between those above.
const ELSEWHERE: [&str; 4] = [
    "read_ahead",
    "in_flight",
    "producer_consumer",
    "block_pingpong",
];

/// What is said of an order that a loop is not for, and of tiles that do not fit the target.
const REFUSALS: [&str; 2] = ["schedule-refused", "shared-memory-limit"];

/// Iterations of products, and of those that are run shortest.
const TRIPS: [u32; 2] = [6, 1];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    Product { trans_b: bool },
    Attention { causal: bool },
}

/// A pipelined loop.
#[derive(Clone, Copy)]
struct Loop {
    target: Target,
    body: Body,
    dtype: &'static str,
    tile: [u32; 3],
    threads: u32,
    stages: u32,
}

/// What it computes.
struct Known {
    func: Func,
    sources: SourceMap,
    /// Tensors before and after, for each number of iterations.
    runs: Vec<(Args, Args)>,
    /// The codes that the loop is refused under by the order that the compiler takes.
    refused: Vec<&'static str>,
}

pub fn trials() -> Vec<Trial> {
    let asked = std::env::var("TILEWRIGHT_TEST_GFX9").ok();
    let all = asked.is_some();
    let after = |word: &str| asked.as_deref().and_then(|text| text.strip_prefix(word));
    let measured = after("registers ");
    let random = measured.or(after("tiles ")).map(|text| {
        let numbers = text.split_once(' ');
        let numbers = numbers.and_then(|(s, n)| Some((s.parse().ok()?, n.parse().ok()?)));
        match numbers.expect("a seed and how many loops, both numbers") {
            (_, 0) => loops(),
            (seed, count) => random_loops(seed, count),
        }
    });
    let mut trials = vec![Trial::test("the sample has every order", sample_is_whole)];
    for l in random.unwrap_or_else(loops) {
        let known = Arc::new(OnceLock::new());
        for named in SCHEDULES {
            let sampled = SAMPLE.contains(&(named.name, l.title().as_str()));
            if all || sampled {
                let known = known.clone();
                let title = format!("{} by {}", l.title(), named.name);
                let measured = measured.is_some();
                trials.push(Trial::test(title, move || match measured {
                    true => registers(&l, named.name),
                    false => is_refused_or_right(&l, named.name, sampled, &known),
                }));
            }
        }
    }
    trials
}

fn loops() -> Vec<Loop> {
    let mut loops = Vec::new();
    for (target, tiles, fp8) in [
        (Target::Gfx942, &GFX942[..], "float8_e4m3fnuz"),
        (Target::Gfx950, &GFX950[..], "float8_e4m3fn"),
    ] {
        for stages in [2, 3] {
            for &([m, n, k], threads) in tiles {
                for dtype in ["bfloat16", "float16", fp8] {
                    let deep = if dtype == fp8 { 2 * k } else { k };
                    for trans_b in [true, false] {
                        loops.push(Loop {
                            target,
                            body: Body::Product { trans_b },
                            dtype,
                            tile: [m, n, deep],
                            threads,
                            stages,
                        });
                    }
                }
            }
        }
        for stages in [2, 4] {
            for (tile, threads) in ATTENTION {
                for (dtype, causal) in [("bfloat16", false), ("float16", false), ("float16", true)]
                {
                    loops.push(Loop {
                        target,
                        body: Body::Attention { causal },
                        dtype,
                        tile,
                        threads,
                        stages,
                    });
                }
            }
        }
    }
    // Across rows of B one type stands for all.
    let across = Body::Product { trans_b: false };
    loops.retain(|l| l.body != across || (l.dtype == "bfloat16" && l.stages == 2));
    loops.extend(ODD);
    loops
}

/// Loops of tiles that few would ask for: those that the compiler refuses are passed over.
fn random_loops(seed: u64, count: usize) -> Vec<Loop> {
    let mut state = seed;
    let mut below = |n: usize| {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    };
    let mut loops = Vec::with_capacity(count);
    while loops.len() < count {
        let target = [Target::Gfx942, Target::Gfx950][below(2)];
        let stages = 2 + below(3) as u32;
        let threads = [64, 128, 256, 256, 512, 512][below(6)];
        let mut tile = [0; 3].map(|_| 16 * (1 + below(16) as u32));
        if below(4) == 0 {
            let causal = below(2) == 0;
            let dtype = ["bfloat16", "float16"][below(2)];
            tile[2] = tile[2].min(128);
            loops.push(Loop {
                target,
                body: Body::Attention { causal },
                dtype,
                tile,
                threads,
                stages,
            });
            continue;
        }
        let fp8 = match target {
            Target::Gfx942 => "float8_e4m3fnuz",
            _ => "float8_e4m3fn",
        };
        let dtype = ["bfloat16", "float16", fp8][below(3)];
        tile[2] = [16, 32, 64, 64, 96, 128][below(6)];
        let trans_b = below(3) > 0;
        loops.push(Loop {
            target,
            body: Body::Product { trans_b },
            dtype,
            tile,
            threads,
            stages,
        });
    }
    loops
}

fn sample_is_whole() -> Result<(), Failed> {
    let titles: Vec<String> = loops().iter().map(Loop::title).collect();
    for (order, title) in SAMPLE {
        if !titles.iter().any(|own| own == title) {
            return Err(format!("{order}: there is no loop `{title}`").into());
        }
    }
    for named in SCHEDULES {
        let sampled = SAMPLE.iter().any(|(order, _)| *order == named.name);
        if sampled == ELSEWHERE.contains(&named.name) {
            return Err(format!("`{}` is not sampled, or not only", named.name).into());
        }
    }
    Ok(())
}

impl Loop {
    fn title(&self) -> String {
        let Loop {
            target,
            dtype,
            tile: [m, n, k],
            threads,
            stages,
            ..
        } = self;
        let body = match self.body {
            Body::Product { trans_b: true } => "A·Bᵀ",
            Body::Product { trans_b: false } => "A·B",
            Body::Attention { causal: false } => "attention",
            Body::Attention { causal: true } => "causal attention",
        };
        format!("{target} {body} of {dtype}, {m}x{n}x{k}, {threads} threads, {stages} stages")
    }

    fn source(&self) -> Result<(Func, SourceMap), Failed> {
        match self.body {
            Body::Product { trans_b } => self.product(trans_b),
            Body::Attention { causal } => self.attention(causal),
        }
    }

    fn known(&self) -> Result<Known, Failed> {
        let (func, sources) = self.source()?;
        let mut runs = Vec::new();
        for n in TRIPS {
            let mut spec = InputSpec::default();
            if let Body::Product { .. } = self.body {
                spec.values = BTreeMap::from([("n".to_string(), Number::Int(n.into()))]);
                for name in ["A", "B"] {
                    spec.fills.insert(name.to_string(), Fill::Iota(7));
                }
            } else if !runs.is_empty() {
                break;
            }
            let inputs = sim::make_inputs(&func, &spec).map_err(|e| e.to_string())?;
            let mut right = inputs.try_clone(&func).map_err(|e| e.to_string())?;
            sim::run(&func, &mut right, &RunOptions::default()).map_err(|e| e.to_string())?;
            runs.push((inputs, right));
        }
        let until = Until::Level(tilewright::ir::Level::Device);
        let refused = match lower(&func, self.target, until) {
            Ok(_) => Vec::new(),
            Err(refused) => refused.errors.iter().map(|d| d.code.0).collect(),
        };
        Ok(Known {
            func,
            sources,
            runs,
            refused,
        })
    }

    /// `n` tiles along K, of small whole numbers: sums are exact.
    fn product(&self, trans_b: bool) -> Result<(Func, SourceMap), Failed> {
        let Loop {
            dtype,
            tile: [m, n, k],
            threads,
            stages,
            ..
        } = self;
        let depth = k * TRIPS[0];
        let (whole, tile, at, trans) = match trans_b {
            true => (format!("{n}, {depth}"), [n, k], [0, 1], "trans_b"),
            false => (format!("{depth}, {n}"), [k, n], [1, 0], ""),
        };
        let start = |axis: usize| {
            if at[axis] == 1 {
                format!("k * {k}")
            } else {
                "0".into()
            }
        };
        let (rows, columns) = (start(0), start(1));
        let [tall, wide] = tile;
        let source = format!(
            "func @f level=tile {{
  scalar n: int32
  param A: {dtype}[{m}, {depth}]
  param B: {dtype}[{whole}]
  output C: float32[{m}, {n}]
  kernel grid(bx: 1) threads(tx: {threads}, ty: 1, tz: 1) {{
    alloc a: shared {dtype}[{m}, {k}]
    alloc b: shared {dtype}[{tall}, {wide}]
    alloc acc: fragment float32[{m}, {n}]
    fill acc[0 +: {m}, 0 +: {n}], 0.0
    for k in pipelined(0, n) stages={stages} {{
      copy A[0 +: {m}, k * {k} +: {k}] -> a[0 +: {m}, 0 +: {k}]
      copy B[{rows} +: {tall}, {columns} +: {wide}] -> b[0 +: {tall}, 0 +: {wide}]
      gemm a[0 +: {m}, 0 +: {k}], b[0 +: {tall}, 0 +: {wide}] -> acc[0 +: {m}, 0 +: {n}] {trans}
    }}
    copy acc[0 +: {m}, 0 +: {n}] -> C[0 +: {m}, 0 +: {n}]
  }}
}}
"
        );
        let mut sources = SourceMap::new();
        let file = sources.add("product.tw", source);
        match text::parse(sources.text(file), file) {
            Ok(func) => Ok((func, sources)),
            Err(list) => Err(rendered(&list, &sources)),
        }
    }

    fn attention(&self, causal: bool) -> Result<(Func, SourceMap), Failed> {
        let [queries, keys, dim] = self.tile.map(|e| e.to_string());
        let (threads, stages) = (self.threads.to_string(), self.stages.to_string());
        let length = (6 * self.tile[1]).max(self.tile[0]).to_string();
        let settings = [
            ("heads", "1"),
            ("seq_len", &length),
            ("dim", &dim),
            ("is_causal", if causal { "True" } else { "False" }),
            ("block_M", &queries),
            ("block_N", &keys),
            ("threads", &threads),
            ("num_stages", &stages),
            ("dtype", self.dtype),
        ];
        staged("attention_fwd.py", None, &settings)
    }
}

fn is_refused_or_right(
    l: &Loop,
    order: &str,
    taken: bool,
    known: &OnceLock<Result<Known, String>>,
) -> Result<(), Failed> {
    let known = known.get_or_init(|| {
        let known = l.known();
        known.map_err(|e| e.message().unwrap_or_default().to_string())
    });
    let known = known.as_ref().map_err(|e| e.to_string())?;
    let mut func = known.func.clone();
    ask_for_schedule(&mut func, order);
    let said = |list: &[_]| rendered(list, &known.sources);
    let until = Until::Level(tilewright::ir::Level::Device);
    let lowered = match lower(&func, l.target, until) {
        Ok(lowered) => lowered,
        Err(refused) => {
            let errors = refused.errors.iter();
            let errors = errors.filter(|d| d.severity == Severity::Error);
            let errors: Vec<_> = errors.cloned().collect();
            let said_of = |code: &str| REFUSALS.contains(&code) || known.refused.contains(&code);
            let asked = errors.iter().all(|d| said_of(d.code.0));
            return match asked && !taken {
                true => Ok(()),
                false => Err(said(&errors)),
            };
        }
    };
    if !lowered.hazards.is_some_and(|hazards| hazards.is_clean()) {
        return Err("it is not proved free of hazards".into());
    }
    let lowered = lowered.func;
    for (mode, landing) in Landing::ALL.into_iter().enumerate() {
        for (given, right) in &known.runs {
            let options = SimtOptions {
                seed: mode as u64,
                landing,
                threads: 1,
                ..SimtOptions::default()
            };
            let mut found = given.try_clone(&lowered).map_err(|e| e.to_string())?;
            let report = simt::run(&lowered, l.target, &mut found, &options);
            let report = report.map_err(|e| e.to_string())?;
            let wrong = verdict(&known.func, &found, right, Compared::All);
            if !report.is_clean() || !wrong.ok {
                return Err(format!("{landing:?}: {:?} {wrong:?}", report.findings).into());
            }
        }
    }
    is_compiled_right(l, known, &lowered)
}

fn is_compiled_right(l: &Loop, known: &Known, lowered: &Func) -> Result<(), Failed> {
    let said = |e: tilewright::jit::Error| rendered(&e.into_diagnostics(), &known.sources);
    let emulator = Emulator::new(lowered, l.target, &known.sources).map_err(said)?;
    for audit in emulator.audit(budget(lowered)).map_err(said)? {
        if !audit.passed() || audit.uncompared.is_some() {
            return Err(format!("{}\n{:?}", audit.report, audit.uncompared).into());
        }
    }
    for (name, landing) in LANDINGS {
        for (given, right) in &known.runs {
            let options = Options {
                landing,
                threads: 1,
                ..Options::default()
            };
            let mut found = given.try_clone(lowered).map_err(|e| e.to_string())?;
            let ran = emulator.run(&mut found, &options).map_err(said)?;
            if !ran.findings.is_empty() {
                return Err(rendered(&ran.findings, &known.sources));
            }
            let sums = summation(&known.func, l.target);
            let wrong = verdict_within(&known.func, &found, right, Compared::Expected, sums);
            if !wrong.ok {
                return Err(format!("landing {name}: {wrong:?}").into());
            }
        }
    }
    Ok(())
}

/// What some lanes leave out has its address compared and chosen: four instructions more for each that does so
/// in the loop that multiplies.
fn budget(lowered: &Func) -> Budget {
    const EACH: u32 = 4;
    let most = Budget::default();
    let left_out = lowered.kernels.iter().map(|k| guarded(&k.body, None));
    let left_out = left_out.max().unwrap_or(0);
    Budget {
        address_arithmetic: most.address_arithmetic + EACH * left_out,
        ..most
    }
}

/// Memory instructions under a condition, in the loop that has most; `inside` says how often one runs.
fn guarded(block: &[Stmt], inside: Option<u32>) -> u32 {
    let (mut sum, mut most) = (0, 0);
    for stmt in block {
        match &stmt.kind {
            StmtKind::Micro(op) if op.pred.is_some() => {
                sum += inside.map_or(0, |turns| turns * op.count());
            }
            StmtKind::For(l) => {
                let trips = l
                    .axes
                    .iter()
                    .map(|a| a.const_trip_count().unwrap_or(1) as u32);
                let trips: u32 = trips.product();
                match (&l.kind, inside) {
                    (LoopKind::Serial, _) => most = most.max(guarded(&l.body, Some(1))),
                    (_, None) => most = most.max(guarded(&l.body, None)),
                    (_, Some(turns)) => sum += guarded(&l.body, Some(turns * trips)),
                }
            }
            _ => {
                for child in child_blocks(stmt) {
                    match inside {
                        Some(_) => sum += guarded(child, inside),
                        None => most = most.max(guarded(child, None)),
                    }
                }
            }
        }
    }
    most.max(sum)
}

/// Prints what a loop takes of registers by an order, and what that costs beyond what was written.
fn registers(l: &Loop, order: &str) -> Result<(), Failed> {
    let (mut func, sources) = l.source()?;
    ask_for_schedule(&mut func, order);
    let until = Until::Level(tilewright::ir::Level::Device);
    let said = |what: String| println!("registers\t{}\t{order}\t{what}", l.title());
    let (lowered, foreseen) = match lower(&func, l.target, until) {
        Ok(lowered) => {
            let notes = lowered.remarks.iter().flat_map(|d| &d.notes);
            let notes = notes.filter(|n| n.starts_with("a lane takes "));
            (lowered.func, notes.cloned().collect::<Vec<_>>().join("; "))
        }
        Err(refused) => {
            let errors = refused.errors.iter();
            let errors = errors.filter(|d| d.severity == Severity::Error);
            let codes: Vec<String> = errors
                .map(|d| format!("{}: {}", d.code.0, d.message))
                .collect();
            said(format!("refused\t{}", codes.join("; ")));
            return Ok(());
        }
    };
    let failed = |e: tilewright::jit::Error| rendered(&e.into_diagnostics(), &sources);
    let emulator = Emulator::new(&lowered, l.target, &sources).map_err(failed)?;
    for audit in emulator.audit(budget(&lowered)).map_err(failed)? {
        let needs = emulator.program().function(&audit.name);
        let needs = needs.and_then(|f| f.needs.clone()).unwrap_or_default();
        let mut kinds = BTreeMap::new();
        for finding in &audit.report.findings {
            *kinds.entry(format!("{:?}", finding.kind)).or_insert(0) += 1;
        }
        let kinds: Vec<String> = kinds
            .iter()
            .map(|(kind, n)| format!("{kind}={n}"))
            .collect();
        said(format!(
            "taken\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{foreseen}",
            needs.vgprs,
            needs.agprs,
            needs.vgpr_spills,
            needs.scratch_bytes,
            audit.report.address_arithmetic,
            audit.uncompared.is_some(),
            kinds.join(" "),
        ));
    }
    Ok(())
}
