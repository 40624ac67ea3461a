//! Orders as text: what is printed can be given back and means the same, and random ones are refused
//! with a reason or free of hazards and equal to the reference, in every mode of asynchrony.

#[path = "kernels/landings.rs"]
mod landings;
#[path = "kernels/looped_product.rs"]
mod looped_product;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use landings::landings;
use looped_product::{MOST, inputs, product};
use tilewright::ir::{FileId, Func, Severity, Target, text};
use tilewright::passes::driver::{self, Options};
use tilewright::passes::order_text;
use tilewright::passes::schedules::{SCHEDULES, ask_for_schedule};
use tilewright::schedule::hazard;
use tilewright::sim::simt::{self, SimtOptions};
use tilewright::sim::{self, Args, RunOptions};

/// Rows and columns.
const ROWS: u32 = 64;

/// The lowered function and its order as text, or the codes of what was said.
fn lowered(func: &Func, target: Target, asked: &str) -> Result<(Func, String), Vec<&'static str>> {
    let mut lowered = func.clone();
    ask_for_schedule(&mut lowered, asked);
    match driver::run(&mut lowered, target, &Options::default()) {
        Ok(report) => {
            let mut orders = report.remarks.iter().filter(|r| r.code.0 == "order");
            let order = orders.next().map(|r| r.message.clone());
            Ok((lowered, order.unwrap_or_default()))
        }
        Err(failed) => {
            let errors = failed.errors.iter();
            let errors = errors.filter(|d| d.severity == Severity::Error);
            Err(errors.map(|d| d.code.0).collect())
        }
    }
}

/// Free of hazards, and equal to the reference however copies land.
fn assert_right(func: &Func, target: Target, lowered: &Func, order: &str) {
    let report = hazard::check(lowered, target);
    assert!(
        report.is_clean(),
        "{target}: {report:?}\n{order}\n{lowered}"
    );
    assert_equal(func, target, lowered, order);
}

fn assert_equal(func: &Func, target: Target, lowered: &Func, order: &str) {
    for n in TRIPS {
        let expected = reference(func, n);
        for (seed, landing) in landings(lowered).into_iter().enumerate() {
            let options = SimtOptions {
                seed: seed as u64,
                landing,
                ..SimtOptions::default()
            };
            let given = inputs(func, n);
            assert_simulated((target, &options), (given, &expected), lowered, order);
        }
    }
}

/// Iterations of the loops that are run.
const TRIPS: [u32; 4] = [0, 1, 2, MOST];

/// What the reference computes.
fn reference(func: &Func, n: u32) -> Vec<f64> {
    let mut args = inputs(func, n);
    sim::run(func, &mut args, &RunOptions::default()).expect("the reference runs");
    values(&args)
}

fn values(args: &Args) -> Vec<f64> {
    args.tensor("C").map(|t| t.to_f64()).expect("a result")
}

fn assert_simulated(
    (target, options): (Target, &SimtOptions),
    (mut args, expected): (Args, &[f64]),
    lowered: &Func,
    order: &str,
) {
    let report = simt::run(lowered, target, &mut args, options).expect("it runs");
    assert!(report.is_clean(), "{target}\n{order}\n{lowered}");
    assert_eq!(values(&args), expected, "{target}\n{order}\n{lowered}");
}

/// An order given back gives the same program and the same text.
#[test]
fn what_is_printed_can_be_given_back() {
    let mut given = 0;
    for target in Target::ALL {
        for (threads, tile, stages) in [(256, 32, 2), (512, 64, 2), (512, 64, 3)] {
            let func = product(threads, ROWS, tile, stages);
            for named in SCHEDULES {
                let Ok((by_name, order)) = lowered(&func, target, named.name) else {
                    continue;
                };
                let again = lowered(&func, target, &order);
                let (by_text, same) = again.unwrap_or_else(|codes| panic!("{codes:?}\n{order}"));
                assert_eq!(same, order);
                assert_eq!(
                    text::print(&by_text),
                    text::print(&by_name).replace(named.name, &order),
                    "{target} {order}"
                );
                given += 1;
            }
        }
    }
    assert!(given >= 20, "{given}");
}

/// The orders beside the examples, each on the product it is for.
#[test]
fn the_orders_of_the_examples_are_right() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/orders");
    let mut tried = 0;
    for entry in fs::read_dir(folder).expect("the orders") {
        let path = entry.expect("an entry").path();
        let order = fs::read_to_string(&path).expect("a text");
        let (target, tile) = match order.contains("gfx942") {
            true => (Target::Gfx942, 32),
            false => (Target::Gfx950, 64),
        };
        // Its buffers are called otherwise here.
        let mut own = order.replace("A_shared", "a").replace("B_shared", "b");
        own = own.replace("C_local", "acc");
        let threads = if order.contains("n 2") { 256 } else { 512 };
        let func = product(threads, ROWS, tile, 2);
        let lowered = lowered(&func, target, &own);
        let (lowered, printed) = lowered.unwrap_or_else(|codes| panic!("{path:?}: {codes:?}"));
        assert_right(&func, target, &lowered, &printed);
        tried += 1;
    }
    assert_eq!(tried, 3);
}

/// What is stored to shared memory before the loop is waited for where halves of the block part.
#[test]
fn stores_before_the_loop_are_done_when_halves_part() {
    let source = format!(
        "func @f level=tile {{
  scalar n: int32
  param A: float16[64, 64]
  param B: float16[64, {depth}]
  output C: float32[64, 64]
  kernel grid(bx: 1) threads(tx: 512, ty: 1, tz: 1) {{
    alloc q: shared float16[64, 64]
    alloc b: shared float16[64, 64]
    alloc acc: fragment float32[64, 64]
    copy A[0 +: 64, 0 +: 64] -> q[0 +: 64, 0 +: 64]
    fill acc[0 +: 64, 0 +: 64], 0.0
    for k in pipelined(0, n) stages=2 {{
      copy B[0 +: 64, k * 64 +: 64] -> b[0 +: 64, 0 +: 64]
      gemm q[0 +: 64, 0 +: 64], b[0 +: 64, 0 +: 64] -> acc[0 +: 64, 0 +: 64] trans_b
    }}
    copy acc[0 +: 64, 0 +: 64] -> C[0 +: 64, 0 +: 64]
  }}
}}
",
        depth = MOST * 64
    );
    let func = text::parse(&source, FileId(0)).expect("valid text");
    for target in [Target::Gfx942, Target::Gfx950] {
        let asked = "schedule apart\nstream halves lag 1\n  planned\n";
        let (lowered, order) = lowered(&func, target, asked).expect("it applies");
        assert_right(&func, target, &lowered, &order);
    }
}

/// Copies of half tiles before the loop that go to another version are found, though the other half of each
/// tile is where it should be.
#[test]
fn a_part_of_a_tile_in_another_version_is_found() {
    let func = product(512, 128, 64, 2);
    let (lowered, order) = lowered(&func, Target::Gfx950, "half_tiles").expect("it applies");
    assert_right(&func, Target::Gfx950, &lowered, &order);
    let printed = text::print(&lowered);
    let first = |line: &&str| line.contains("g2s") && line.contains(" slot=0 ");
    let mut planted = 0;
    for line in printed.lines().filter(first) {
        let wrong = line.replace(" slot=0 ", " slot=1 ");
        let wrong = printed.replacen(line, &wrong, 1);
        let wrong = text::parse(&wrong, FileId(0)).expect("valid text");
        let report = hazard::check(&wrong, Target::Gfx950);
        assert!(!report.hazards.is_empty(), "{line}");
        planted += 1;
    }
    assert_eq!(planted, 4);
}

/// Numbers from a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n.max(1)
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// A piece of the loop: what it is called, what of the same iteration comes before it, and how far
/// ahead it runs.
struct Piece {
    text: String,
    after: Vec<usize>,
    ahead: usize,
}

/// How a product is taken apart: parts along M and N, steps along K.
#[derive(Clone, Copy)]
struct Split {
    m: usize,
    n: usize,
    k: usize,
}

/// The place of a part, as an order calls it.
fn place(parts: &[(char, usize, usize)], step: usize) -> String {
    let named = parts.iter().filter(|(_, _, parts)| *parts > 1);
    let named = named.map(|(axis, at, _)| format!("{axis}{at},"));
    format!("[{}k{step}]", named.collect::<String>())
}

/// The pieces of a product, whole or taken apart, copied straight to shared memory or through
/// registers.
fn pieces(
    numbers: &mut Numbers,
    staged: bool,
    (split, parts): (Option<Split>, usize),
) -> Vec<Piece> {
    let mut all: Vec<Piece> = Vec::new();
    let product = usize::from(numbers.one_in(12));
    let furthest = product + 1 + numbers.below(2);
    let mut copies: Vec<Vec<usize>> = Vec::new();
    for (tensor, tile) in [("A", "a"), ("B", "b")] {
        let ahead = product + numbers.below(3);
        if !staged && parts > 1 {
            let alike = numbers.one_in(3);
            let part = |at: usize| Piece {
                text: format!("g2s {tile}[p{at}]"),
                after: vec![],
                ahead: match alike {
                    true => ahead,
                    false => product + numbers.below(3),
                },
            };
            let first = all.len();
            all.extend((0..parts).map(part));
            copies.push((first..all.len()).collect());
            continue;
        }
        let mut add = |text: String, after: Vec<usize>| {
            all.push(Piece { text, after, ahead });
            all.len() - 1
        };
        copies.push(match staged {
            false => vec![add(format!("g2s {tile}"), vec![])],
            true => {
                let load = add(format!("g2r {tensor}"), vec![]);
                vec![add(format!("r2s {tile}"), vec![load])]
            }
        });
    }
    let Some(Split { m, n, k }) = split else {
        all.push(Piece {
            text: "mma acc".into(),
            after: copies.concat(),
            ahead: product,
        });
        return all;
    };
    let mut before: Option<usize> = None;
    for step in 0..k {
        let mut reads: [Vec<usize>; 2] = [Vec::new(), Vec::new()];
        for (operand, (axis, parts)) in [('m', m), ('n', n)].into_iter().enumerate() {
            for part in 0..parts {
                let copied = copies[operand].iter().map(|at| all[*at].ahead);
                let most = copied.min().unwrap_or(0).min(furthest);
                let ahead = match numbers.one_in(3) {
                    true => most.min(product + 1),
                    false => product,
                };
                let tile = ["a", "b"][operand];
                let at = place(&[(axis, part, parts)], step);
                all.push(Piece {
                    text: format!("s2r {tile}{at}"),
                    after: copies[operand].clone(),
                    ahead,
                });
                reads[operand].push(all.len() - 1);
            }
        }
        for part in 0..m * n {
            let (of_m, of_n) = (part / n, part % n);
            let at = place(&[('m', of_m, m), ('n', of_n, n)], step);
            let mut after = vec![reads[0][of_m], reads[1][of_n]];
            after.extend(before);
            all.push(Piece {
                text: format!("mma acc{at}"),
                after,
                ahead: product,
            });
            before = Some(all.len() - 1);
        }
    }
    all
}

/// An order of the pieces. Most keep what the loop means.
fn random_order(
    numbers: &mut Numbers,
    staged: bool,
    (split, parts): (Option<Split>, usize),
) -> String {
    let pieces = pieces(numbers, staged, (split, parts));
    let careless = numbers.one_in(8);
    let mut left: Vec<usize> = (0..pieces.len()).collect();
    let mut order = String::from("schedule random\n");
    if let Some(Split { m, n, k }) = split {
        order += &format!("split m {m}, n {n}, k {k}\n");
    }
    if parts > 1 {
        order += &format!("split p {parts}\n");
    }
    let halves = numbers.one_in(2);
    if halves {
        order += "stream halves lag 1\n";
    }
    if numbers.one_in(6) {
        order += "spare 1\n";
    }
    let weaves = numbers.one_in(5);
    let mut clusters = 0;
    let mut open = false;
    while !left.is_empty() {
        let ready = |at: &usize| {
            let own = &pieces[*at];
            let waits = |b: &usize| left.contains(b) && pieces[*b].ahead == own.ahead;
            careless || !own.after.iter().any(waits)
        };
        let free: Vec<usize> = left.iter().copied().filter(|at| ready(at)).collect();
        let next = free[numbers.below(free.len())];
        left.retain(|at| *at != next);
        if open && numbers.one_in(3) {
            order += " }\n";
            open = false;
        }
        if open {
            order += "; ";
        } else {
            let bar = if numbers.one_in(2) { " bar" } else { "" };
            let priority = ["", "", "", " prio 1"][numbers.below(4)];
            let woven = if weaves && numbers.one_in(2) {
                " woven"
            } else {
                ""
            };
            order += &format!("cluster c{clusters}{bar}{priority}{woven} {{ ");
            clusters += 1;
            open = true;
        }
        order += &pieces[next].text;
        if pieces[next].ahead > 0 {
            order += &format!(" ahead {}", pieces[next].ahead);
        }
    }
    order + " }\n"
}

/// A product, with what comes of it for each number of iterations.
struct Known {
    func: Func,
    inputs: Vec<Args>,
    expected: Vec<Vec<f64>>,
}

impl Known {
    fn of(threads: u32, tile: u32) -> Known {
        let func = product(threads, ROWS, tile, 2);
        Known {
            inputs: TRIPS.iter().map(|n| inputs(&func, *n)).collect(),
            expected: TRIPS.iter().map(|n| reference(&func, *n)).collect(),
            func,
        }
    }

    /// Free of hazards, and equal to the reference for some number of iterations in some mode of
    /// asynchrony: the checker has looked at all of them.
    fn assert_right(&self, numbers: &mut Numbers, target: Target, lowered: &Func, order: &str) {
        let report = hazard::check(lowered, target);
        assert!(
            report.is_clean(),
            "{target}: {report:?}\n{order}\n{lowered}"
        );
        let modes = landings(lowered);
        let at = match numbers.one_in(2) {
            true => numbers.below(TRIPS.len() - 1),
            false => TRIPS.len() - 1,
        };
        let options = SimtOptions {
            seed: numbers.below(1 << 16) as u64,
            landing: modes[numbers.below(modes.len())],
            threads: 1,
            ..SimtOptions::default()
        };
        let given = (self.inputs[at].clone(), &self.expected[at][..]);
        assert_simulated((target, &options), given, lowered, order);
    }
}

/// How many orders are tried.
const ORDERS: u64 = 2_000;

#[test]
fn random_orders_are_refused_or_right() {
    let mut known: BTreeMap<(u32, u32), Known> = BTreeMap::new();
    let mut taken: BTreeMap<(&str, bool), u32> = BTreeMap::new();
    let mut taken_apart = 0;
    let mut copied_in_parts = 0;
    let mut woven = 0;
    for seed in 0..ORDERS {
        let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15 ^ (seed + 1).wrapping_mul(0x2545_f491));
        for _ in 0..8 {
            numbers.below(2);
        }
        let targets = [Target::Sm80, Target::Gfx942, Target::Gfx950, Target::Gfx950];
        let target = targets[numbers.below(targets.len())];
        let threads = [128, 256, 512][numbers.below(3)];
        let step = if target == Target::Gfx950 { 32 } else { 16 };
        let steps = [1, 2, 4][numbers.below(3)];
        let own = known.entry((threads, step * steps));
        let own = own.or_insert_with(|| Known::of(threads, step * steps));
        let staged = target == Target::Gfx942;
        let split = (!numbers.one_in(5)).then(|| Split {
            m: 1 + numbers.below(2),
            n: 1 + numbers.below(2),
            k: steps as usize,
        });
        let parts = match target {
            Target::Gfx950 if numbers.one_in(3) => 2,
            _ => 1,
        };
        let order = random_order(&mut numbers, staged, (split, parts));
        assert!(order_text::parse(&order).is_ok(), "{order}");
        match lowered(&own.func, target, &order) {
            Ok((lowered, printed)) => {
                own.assert_right(&mut numbers, target, &lowered, &printed);
                let halves = order.contains("halves");
                *taken.entry((target.name(), halves)).or_default() += 1;
                copied_in_parts += u32::from(parts > 1);
                woven += u32::from(order.contains(" woven "));
                let parts = split.is_some_and(|s| s.m * s.n > 1);
                taken_apart += u32::from(parts);
            }
            Err(codes) => assert_eq!(codes, ["schedule-refused"], "{seed} {target}\n{order}"),
        }
    }
    println!(
        "{taken:?}, {taken_apart} in parts along M or N, {copied_in_parts} copied in parts, {woven} woven"
    );
    assert!(woven >= 20, "{woven}");
    assert!(copied_in_parts >= 40, "{copied_in_parts}");
    assert!(taken_apart >= 160, "{taken_apart}");
    for kind in [
        ("sm_80", false),
        ("gfx942", false),
        ("gfx950", false),
        ("gfx950", true),
    ] {
        assert!(taken.get(&kind).is_some_and(|n| *n >= 40), "{taken:?}");
    }
}

/// What a steady iteration of the loop does: ops with how many instructions each is, in order.
fn steady(lowered: &Func) -> Vec<String> {
    let text = text::print(lowered);
    let lines = text.lines().skip_while(|l| !l.contains(" in serial("));
    let body = lines.skip(1).take_while(|l| l.trim() != "}");
    let mut found = Vec::new();
    for line in body.map(str::trim) {
        let word = line.split(' ').next().unwrap_or_default();
        if matches!(word, "wait" | "barrier" | "set_prio") {
            found.push(line.to_string());
        } else if matches!(word, "g2s" | "s2r" | "mma") && !line.contains(" do ") {
            found.push(format!("{word} 1"));
        } else if let Some((op, rest)) = line.split_once(" for ") {
            let axes = rest.split(" do ").next().unwrap_or_default();
            let axes = axes.trim_end_matches(" turning");
            let extent = |axis: &str| axis.split(" < ").nth(1)?.parse::<u32>().ok();
            let count: u32 = axes.split(", ").filter_map(extent).product();
            found.push(format!("{op} {count}"));
        }
    }
    found
}

/// `four_stages` on 256 x 256 x 64: sixteen matrix instructions a stage behind the reads that are for
/// them and two of the eight copies; the block waits and meets once, in the last stage.
#[test]
fn four_stages_have_a_quarter_of_the_copies_each() {
    let func = tile_of_256();
    let target = Target::Gfx950;
    let (lowered, order) = lowered(&func, target, "four_stages").expect("it applies");
    assert!(hazard::check(&lowered, target).is_clean(), "{order}");
    let stage = |reads: &[&str], meet: &[&str]| {
        let mut steps: Vec<String> = reads.iter().map(|read| read.to_string()).collect();
        steps.push("g2s 2".into());
        steps.extend(meet.iter().map(|step| step.to_string()));
        steps.extend(["set_prio 1", "mma 16", "set_prio 0"].map(String::from));
        steps
    };
    // Waits for reads follow from who uses the registers.
    let mut found = steady(&lowered);
    found.retain(|step| !step.starts_with("wait lgkmcnt"));
    let expected = [
        stage(&["s2r 8", "s2r 2"], &[]),
        stage(&["s2r 2"], &[]),
        stage(&["s2r 8", "s2r 2"], &[]),
        stage(&["s2r 2"], &["wait vmcnt(0)", "barrier bare"]),
    ];
    assert_eq!(found, expected.concat(), "{order}");
}

/// `half_tiles` on 256 x 256 x 64: seven halves of tiles are brought before the loop, two versions hold
/// copies two iterations ahead, and each wait leaves five of them in flight. The published order of these
/// clusters waits once for all but three, and not for the half of B that it reads ahead.
#[test]
fn half_tiles_have_distances_of_their_own() {
    let func = tile_of_256();
    let target = Target::Gfx950;
    let (lowered, order) = lowered(&func, target, "half_tiles").expect("it applies");
    assert!(hazard::check(&lowered, target).is_clean(), "{order}");
    let text = text::print(&lowered);
    assert_eq!(text.matches("bfloat16[256, 64] versions=2").count(), 2);
    let before = text.lines().take_while(|l| !l.contains("in serial("));
    let copies = before.filter(|l| l.trim_start().starts_with("g2s for"));
    assert_eq!(copies.count(), 7, "{text}");
    // Reads of A are still under way where the other half of the waves may overwrite B.
    let mut found = steady(&lowered);
    let place = |step: &str| found.iter().position(|own| own == step);
    assert!(place("wait lgkmcnt(8)") < place("mma 8"), "{found:?}");
    found.retain(|step| !step.starts_with("wait lgkmcnt"));
    let phase = |reads: &'static str| {
        let steps = [
            "barrier bare",
            reads,
            reads,
            "g2s 2",
            "wait vmcnt(10)",
            "barrier bare",
        ];
        [&steps[..], &["set_prio 1", "mma 8", "mma 8", "set_prio 0"]].concat()
    };
    let expected = ["s2r 4", "s2r 2", "s2r 4", "s2r 2"].map(phase).concat();
    assert_eq!(found, expected, "{order}");
    // On a tile of 128 the same order computes what the reference does.
    let small = product(512, 128, 64, 2);
    let (lowered, order) = self::lowered(&small, target, "half_tiles").expect("it applies");
    assert_right(&small, target, &lowered, &order);
}

/// `between_products` on 256 x 256 x 128 of fp8, four waves: a quadrant of C is 16 matrix instructions, with
/// the four copies of a half tile and the eight reads of another between them; the block meets twice.
#[test]
fn copies_and_reads_stand_between_products() {
    let func = tile_of("float8_e4m3fn", [256, 128], 256);
    let target = Target::Gfx950;
    let (lowered, order) = lowered(&func, target, "between_products").expect("it applies");
    assert!(hazard::check(&lowered, target).is_clean(), "{order}");
    let mut found = steady(&lowered);
    found.retain(|step| !step.starts_with("wait lgkmcnt"));
    let quadrant = || {
        let words = "mma s2r mma g2s mma s2r mma ".repeat(4);
        let words = words.split_whitespace().map(|word| format!("{word} 1"));
        words.collect::<Vec<String>>()
    };
    let meeting = ["wait vmcnt(16)", "barrier bare"]
        .map(String::from)
        .to_vec();
    let half = [meeting, quadrant(), quadrant()].concat();
    assert_eq!(found, [half.clone(), half].concat(), "{order}");
    // On a tile of 128 the same order computes what the reference does.
    let small = product(256, 128, 64, 2);
    let (lowered, order) = self::lowered(&small, target, "between_products").expect("it applies");
    assert_right(&small, target, &lowered, &order);
}

/// What is multiplied where it is read cannot be woven.
#[test]
fn what_needs_each_other_is_not_woven() {
    let func = product(256, 64, 32, 2);
    let order = "schedule s\nsplit k 1\n  cluster c woven { g2s a ahead 1; g2s b ahead 1; \
                 s2r a[k0]; s2r b[k0]; mma acc[k0] }\n";
    let refused = lowered(&func, Target::Gfx950, order);
    assert_eq!(refused.err(), Some(vec!["schedule-refused"]));
}

fn tile_of_256() -> Func {
    tile_of("bfloat16", [256, 64], 512)
}

/// Four tiles of so many rows and columns along K, in a block of so many threads.
fn tile_of(dtype: &str, [rows, k]: [u32; 2], threads: u32) -> Func {
    let source = format!(
        "func @f level=tile {{
  param A: {dtype}[{rows}, {depth}]
  param B: {dtype}[{rows}, {depth}]
  output C: float32[{rows}, {rows}]
  kernel grid(bx: 1) threads(tx: {threads}, ty: 1, tz: 1) {{
    alloc a: shared {dtype}[{rows}, {k}]
    alloc b: shared {dtype}[{rows}, {k}]
    alloc acc: fragment float32[{rows}, {rows}]
    fill acc[0 +: {rows}, 0 +: {rows}], 0.0
    for k in pipelined(0, 4) stages=2 {{
      copy A[0 +: {rows}, k * {k} +: {k}] -> a[0 +: {rows}, 0 +: {k}]
      copy B[0 +: {rows}, k * {k} +: {k}] -> b[0 +: {rows}, 0 +: {k}]
      gemm a[0 +: {rows}, 0 +: {k}], b[0 +: {rows}, 0 +: {k}] -> acc[0 +: {rows}, 0 +: {rows}] trans_b
    }}
    copy acc[0 +: {rows}, 0 +: {rows}] -> C[0 +: {rows}, 0 +: {rows}]
  }}
}}
",
        depth = 4 * k
    );
    text::parse(&source, FileId(0)).expect("valid text")
}

/// Every wait and barrier of halves a barrier apart, left out one at a time, and every wait loosened
/// by one: the hazard checker says so, or the simulator still finds nothing and the same result.
#[test]
fn what_is_derived_for_halves_is_needed() {
    let (mut found, mut all) = (0, 0);
    for (tile, stages) in [(64, 2), (64, 3), (32, 3)] {
        let func = product(512, ROWS, tile, stages);
        let (lowered, order) = lowered(&func, Target::Gfx950, "ping_pong").expect("it applies");
        let whole = text::print(&lowered);
        let lines: Vec<&str> = whole.lines().collect();
        for at in 0..lines.len() {
            for fault in faults(lines[at]) {
                let mut changed: Vec<String> = lines.iter().map(|l| l.to_string()).collect();
                changed[at] = fault;
                let planted = text::parse(&changed.join("\n"), FileId(0)).expect("valid text");
                all += 1;
                match hazard::check(&planted, Target::Gfx950).is_clean() {
                    true => assert_equal(&func, Target::Gfx950, &planted, &order),
                    false => found += 1,
                }
            }
        }
    }
    assert_eq!((found, all), (69, 78));
}

/// The line with a wait or a barrier less, or with a looser wait.
fn faults(line: &str) -> Vec<String> {
    let word = line.trim_start();
    if word.starts_with("barrier") {
        return vec![String::new()];
    }
    let count = word.strip_prefix("wait ").and_then(|w| w.split_once('('));
    let Some((counter, count)) = count else {
        return Vec::new();
    };
    let count: u32 = count.trim_end_matches(')').parse().expect("a count");
    vec![String::new(), format!("wait {counter}({})", count + 1)]
}
