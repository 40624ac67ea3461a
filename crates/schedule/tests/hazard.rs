//! The hazard checker: published orders, and small programs for each rule, right and wrong.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tilewright_ir::{Diagnostic, FileId, SourceMap, Target, text, verify};
use tilewright_schedule::hazard::{self, HazardKind, HazardReport};
use tilewright_testkit::arbitrary::any_func;

fn check_text(source: &str, target: Target) -> HazardReport {
    let mut sources = SourceMap::new();
    let file: FileId = sources.add("test.tw", source);
    let fail = |d: Vec<Diagnostic>| -> ! {
        let parts: Vec<String> = d.iter().map(|d| d.render(&sources, false)).collect();
        panic!("{}\n{source}", parts.join("\n"))
    };
    let func = text::parse(source, file).unwrap_or_else(|d| fail(d));
    verify::verify(&func).unwrap_or_else(|d| fail(d));
    hazard::check(&func, target)
}

fn order(name: &str) -> HazardReport {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/orders")
        .join(name);
    let source = fs::read_to_string(path).expect("the order exists");
    check_text(&source, Target::Gfx950)
}

/// Kind, buffer and slot of every hazard, each once, sorted.
fn summary(report: &HazardReport) -> Vec<String> {
    assert!(report.proved, "{:?}", report.reasons);
    let mut list: Vec<String> = report
        .hazards
        .iter()
        .map(|h| match h.slot {
            Some(slot) => format!("{} {} {slot}", h.kind, h.buffer),
            None => format!("{} {}", h.kind, h.buffer),
        })
        .collect();
    list.sort();
    list.dedup();
    list
}

/// Lanes of the only wave meet as waves do elsewhere: what was before is not looked at again, and loops of
/// any length come to a steady state.
#[test]
fn a_block_of_one_wave_is_proved() {
    let report = order("one_wave.tw");
    assert_eq!(summary(&report), [""; 0]);
    let text = include_str!("orders/one_wave.tw");
    for (from, to) in [
        ("wait vmcnt(2)", "wait vmcnt(3)"),
        ("wait vmcnt(2)\n", "\n"),
        ("wait vmcnt(1)", "wait vmcnt(2)"),
        ("wait vmcnt(0)", "wait vmcnt(1)"),
        ("slot=(k % 3)", "slot=((k + 1) % 3)"),
        ("slot=((k + 2) % 3)", "slot=((k + 3) % 3)"),
    ] {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        let report = check_text(&text.replace(from, to), Target::Gfx950);
        assert!(!report.hazards.is_empty(), "{from} to {to}: {report:?}");
    }
}

#[test]
fn the_published_bf16_order_reads_b10_too_early() {
    let report = order("bf16_8wave.tw");
    assert_eq!(summary(&report), ["RAW B0 1"]);
    for hazard in &report.hazards {
        assert!(hazard.second.text.starts_with("s2r"), "{hazard}");
        assert!(hazard.first.text.starts_with("g2s"), "{hazard}");
        assert!(hazard.help.contains("vmcnt(10)"), "{hazard}");
    }
    // Once from the prologue, once from the iteration before.
    let distances: Vec<_> = report.hazards.iter().map(|h| h.distance).collect();
    assert_eq!(distances, [None, Some(1)]);
}

#[test]
fn without_lgkmcnt8_the_leading_group_overwrites_what_the_other_reads() {
    let report = order("bf16_8wave_no_lgkmcnt8.tw");
    assert_eq!(summary(&report), ["RAW B0 1", "WAR B0 0", "WAR B0 1"]);
    let overwrites = report
        .hazards
        .iter()
        .filter(|h| h.kind == HazardKind::WriteAfterRead);
    for hazard in overwrites {
        assert_eq!(
            (hazard.first.group, hazard.second.group),
            (Some(1), Some(0))
        );
        assert!(hazard.help.contains("lgkmcnt(8)"), "{hazard}");
    }
}

#[test]
fn the_repaired_bf16_orders_are_proved() {
    for name in ["bf16_8wave_repaired.tw", "bf16_8wave_repaired_late.tw"] {
        let report = order(name);
        assert!(report.is_clean(), "{name}: {:?}", report.diagnostics());
    }
}

#[test]
fn the_published_fp8_order_overwrites_a0_and_reads_b0_too_early() {
    let report = order("fp8_8wave.tw");
    // The epilogue's read of B0, in both parities of the number of tiles.
    let found = summary(&report);
    assert_eq!(found, ["RAW B0 0", "RAW B0 1", "WAR A0 0", "WAR A0 1"]);
    for hazard in &report.hazards {
        match hazard.kind {
            HazardKind::WriteAfterRead => {
                assert_eq!(
                    (hazard.first.group, hazard.second.group),
                    (Some(1), Some(0))
                );
            }
            // In the epilogue: no loop around it.
            _ => assert_eq!(hazard.second.iteration, []),
        }
    }
}

#[test]
fn the_published_four_wave_order_drains_the_reads_of_a1_too_late() {
    let report = order("fp8_4wave.tw");
    assert_eq!(summary(&report), ["WAR A1 0", "WAR A1 1"]);
    let report = order("fp8_4wave_repaired.tw");
    assert!(report.is_clean(), "{:?}", report.diagnostics());
}

/// Loosening any wait, or dropping any wait or barrier, of a proved order is found.
#[test]
fn every_wait_and_barrier_of_the_repaired_order_is_needed_or_covered() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/orders/fp8_4wave_repaired.tw");
    let source = fs::read_to_string(path).expect("the order exists");
    let lines: Vec<&str> = source.lines().collect();
    let mut unneeded = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if !(line.trim().starts_with("wait") || line.trim().starts_with("barrier")) {
            continue;
        }
        let mut fewer = lines.clone();
        fewer.remove(at);
        if check_text(&fewer.join("\n"), Target::Gfx950).is_clean() {
            unneeded.push(format!("{}: {}", at + 1, line.trim()));
        }
    }
    assert_eq!(unneeded, [""; 0]);
}

/// A program of one block of 128 threads with some buffers.
fn program(body: &str) -> String {
    format!(
        "func @f level=device {{
  symbol n: int32
  param A: float16[n, 128]
  param B: float16[n, 128]
  kernel grid(bx: 4) threads(tx: 128, ty: 1, tz: 1) {{
    alloc S: shared float16[128]
    alloc T: shared float16[128] versions=3
    alloc full: barrier uint64[2] arrivals=[64, 64]
    alloc r: local float16[16]
    {}
  }}
}}
",
        body.trim().replace('\n', "\n    ")
    )
}

fn found(body: &str, target: Target) -> Vec<String> {
    summary(&check_text(&program(body), target))
}

const ASYNC: &str = "g2s A[0, 0 +: 128] at [0, tx] -> S[0 +: 128] at [tx] inst=\"load\" width=1";

#[test]
fn block_barriers_order_threads() {
    for target in [Target::Sm80, Target::Gfx950] {
        let none: [&str; 0] = [];
        let both = |a: &str, b: &str| found(&format!("{a}\n{b}"), target);
        let across = "B[0, tx] = S[127 - tx]";
        assert_eq!(both("S[tx] = A[0, tx]", across), ["RAW S"]);
        assert_eq!(both("S[tx] = A[0, tx]\nbarrier block", across), none);
        // A bare barrier waits for no memory; NVIDIA's waits for what was done without a counter.
        let bare = both("S[tx] = A[0, tx]\nbarrier bare", across);
        let counted = target.machine().shared.counter.is_some();
        match counted {
            true => assert_eq!(bare, ["RAW S"]),
            false => assert_eq!(bare, none),
        }
        let waited = "S[tx] = A[0, tx]\nwait lgkmcnt(0)\nbarrier bare";
        if counted {
            assert_eq!(both(waited, across), none);
            let late = "S[tx] = A[0, tx]\nbarrier bare\nwait lgkmcnt(0)";
            assert_eq!(both(late, across), ["RAW S"]);
        }
        assert_eq!(both("S[tx] = A[0, tx]\nsync_threads", across), none);
        assert_eq!(
            both("S[tx] = A[0, tx]\nbarrier named(1, 128)", across),
            none
        );
        // The own element needs none.
        assert_eq!(both("S[tx] = A[0, tx]", "B[0, tx] = S[tx]"), none);
        let write = "S[tx] = A[0, tx]";
        assert_eq!(both("B[0, tx] = S[127 - tx]", write), ["WAR S"]);
        assert_eq!(both("S[127 - tx] = A[0, tx]", write), ["WAW S"]);
        // Halves that do not meet.
        assert_eq!(
            both(
                "if tx < 64 {\n  S[tx] = A[0, tx]\n}",
                "if tx >= 64 {\n  B[0, tx] = S[tx]\n}"
            ),
            none
        );
        assert_eq!(
            both(
                "if tx < 64 {\n  S[tx] = A[0, tx]\n}",
                "if tx >= 64 {\n  B[0, tx] = S[tx - 64]\n}"
            ),
            ["RAW S"]
        );
        // An index that nobody knows may be any.
        assert_eq!(both("S[tx] = A[0, tx]", "B[0, tx] = S[bx]"), ["RAW S"]);
    }
}

#[test]
fn nothing_is_read_where_a_predicate_is_false() {
    let read = |below: u32| {
        let body = format!(
            "S[tx] = A[0, tx]\n\
             s2r S[0 +: 128] at [tx + tx // 64] -> r[0] at [0] inst=\"load\" width=1 pred=(tx < {below}) otherwise=0.0:float16"
        );
        found(&body, Target::Sm80)
    };
    assert_eq!(read(64), [""; 0]);
    assert_eq!(read(65), ["RAW S"]);
    // What is written instead is written by all.
    let fill = "g2s A[0, 0 +: 128] at [0, tx] -> S[0 +: 128] at [tx] inst=\"load\" width=1 pred=(tx < 64) otherwise=0.0:float16";
    let body = format!("{fill}\nif tx < 64 {{\n  B[0, tx] = S[tx + 64]\n}}");
    assert_eq!(found(&body, Target::Sm80), ["RAW S"]);
}

#[test]
fn places_are_known_under_conditions_that_are_not() {
    let own = "if float16(tx) < 7.0:float16 {\n  S[tx] = A[0, tx]\n  B[0, tx] = S[tx]\n}";
    assert_eq!(found(own, Target::Sm80), [""; 0]);
    let other = own.replace("= S[tx]", "= S[127 - tx]");
    assert_eq!(found(&other, Target::Sm80), ["RAW S"]);
}

#[test]
fn lanes_of_a_warp_are_in_step_on_amd_only() {
    let inside = "S[tx] = A[0, tx]\nB[0, tx] = S[tx // 32 * 32 + 31 - tx % 32]";
    assert_eq!(found(inside, Target::Sm80), ["RAW S"]);
    assert_eq!(found(inside, Target::Gfx942), [""; 0]);
    let synced = "S[tx] = A[0, tx]\nsync_warp\nB[0, tx] = S[tx // 32 * 32 + 31 - tx % 32]";
    assert_eq!(found(synced, Target::Sm80), [""; 0]);
    // Not beyond the warp.
    let beyond = "S[tx] = A[0, tx]\nsync_warp\nB[0, tx] = S[127 - tx]";
    assert_eq!(found(beyond, Target::Sm80), ["RAW S"]);
}

#[test]
fn hazards_between_iterations() {
    let once = "for k in serial(0, n) {
  S[tx] = A[k, tx]
  barrier block
  B[k, tx] = S[127 - tx]
}";
    let report = check_text(&program(once), Target::Sm80);
    assert_eq!(summary(&report), ["WAR S"]);
    assert_eq!(report.hazards[0].distance, Some(1));
    let twice = once.replace("127 - tx]\n", "127 - tx]\n  barrier block\n");
    assert_eq!(found(&twice, Target::Sm80), [""; 0]);
    // A single iteration carries nothing.
    let single = once.replace("serial(0, n)", "serial(0, 1)");
    assert_eq!(found(&single, Target::Sm80), [""; 0]);
    // Many iterations come to a steady state.
    let many = once.replace("serial(0, n)", "serial(0, 10000)");
    assert_eq!(found(&many, Target::Sm80), ["WAR S"]);
    // A loop that may not run leaves what was before it open.
    let around =
        "S[tx] = A[0, tx]\nfor k in serial(0, n) {\n  barrier block\n}\nB[0, tx] = S[127 - tx]";
    assert_eq!(found(around, Target::Sm80), ["RAW S"]);
}

/// A pipeline of cp.async with three slots and a distance of two.
fn pipeline(slot: &str, wait: u32, guard: &str) -> String {
    format!(
        "for p in unroll(0, 2) {{
  if p < n {{
    g2s A[p, 0 +: 128] at [p, tx * 2] -> T[0 +: 128] slot=(p % 3) at [tx * 2] inst=\"cp.async\" width=2 pred=(tx < 64) counter=cp_async
  }}
  commit cp_async
}}
for k in serial(0, n) {{
  wait cp_async({wait})
  barrier block
  if {guard} {{
    g2s A[k + 2, 0 +: 128] at [k + 2, tx * 2] -> T[0 +: 128] slot={slot} at [tx * 2] inst=\"cp.async\" width=2 pred=(tx < 64) counter=cp_async
  }}
  commit cp_async
  s2r T[0 +: 128] slot=(k % 3) at [127 - tx] -> r[0 +: 8] at [0] inst=\"load\" width=1
  B[k, tx] = r[0]
}}"
    )
}

#[test]
fn a_pipeline_with_an_unknown_trip_count_is_proved() {
    let right = pipeline("((k + 2) % 3)", 1, "k + 2 < n");
    assert_eq!(found(&right, Target::Sm80), [""; 0]);
    // One group too many in flight.
    let loose = pipeline("((k + 2) % 3)", 2, "k + 2 < n");
    assert_eq!(
        found(&loose, Target::Sm80),
        ["RAW T 0", "RAW T 1", "RAW T 2"]
    );
    // The slot that is being read.
    let slot = pipeline("(k % 3)", 1, "k + 2 < n");
    let hazards = found(&slot, Target::Sm80);
    assert!(hazards.contains(&"WAR T 0".to_string()) || hazards.contains(&"RAW T 0".to_string()));
    // Slots one short: the copy overwrites what the others may still read.
    let short = right.replace("% 3", "% 2");
    assert!(!found(&short, Target::Sm80).is_empty());
    // Without the barrier.
    let bare = right.replace("  barrier block\n", "");
    let report = check_text(&program(&bare), Target::Sm80);
    assert!(!report.hazards.is_empty());
}

#[test]
fn versions_are_written_before_they_are_read() {
    let body =
        |slot: u32| format!("T[{slot}, tx] = A[0, tx]\nbarrier block\nB[0, tx] = T[1, 127 - tx]");
    assert_eq!(found(&body(1), Target::Sm80), [""; 0]);
    assert_eq!(
        found(&body(0), Target::Sm80),
        ["read of an unwritten version T 1"]
    );
}

/// A pipeline whose barriers order everything, whatever the slots.
fn named_pipeline(trips: &str, read: &str, write: &str) -> String {
    format!(
        "iteration 0
T[0, tx] = A[0, tx]
iteration 1
T[1, tx] = A[1, tx]
for k in serial(0, {trips}) {{
  barrier block
  iteration k
  B[k, tx] = T[{read}, 127 - tx]
  barrier block
  iteration k + 2
  T[{write}, tx] = A[k + 2, tx]
}}
end_iteration
barrier block
B[0, tx] = T[0, tx]"
    )
}

#[test]
fn a_read_takes_what_was_written_for_its_iteration() {
    for trips in ["n", "1", "5", "1000"] {
        let right = named_pipeline(trips, "k % 3", "(k + 2) % 3");
        assert_eq!(found(&right, Target::Sm80), [""; 0], "{trips}");
        for (read, write) in [
            ("(k + 1) % 3", "(k + 2) % 3"),
            ("k % 3", "k % 3"),
            ("k % 2", "(k + 2) % 3"),
        ] {
            let wrong = named_pipeline(trips, read, write);
            let hazards = found(&wrong, Target::Sm80);
            let other = |h: &String| h.starts_with("read of another iteration's data T");
            // One iteration alone reads right whatever comes later.
            let alone = trips == "1" && !read.starts_with('(');
            assert_eq!(hazards.iter().any(other), !alone, "{trips} {read} {write}");
            // No barrier is missing: without the names nothing is known of the versions.
            let unnamed = wrong
                .lines()
                .filter(|l| !l.trim_start().starts_with("iteration"));
            let unnamed: Vec<&str> = unnamed.collect();
            let hazards = found(&unnamed.join("\n"), Target::Sm80);
            let unwritten = |h: &String| h.starts_with("read of an unwritten version T");
            assert!(hazards.iter().all(unwritten), "{hazards:?}");
        }
    }
}

#[test]
fn what_a_version_is_follows_the_trip_count_supposed() {
    // The second write goes to the version that is read where `n` is odd, and to another one in
    // the runs before and after.
    let body = "T[0, tx] = A[0, tx]
T[1, tx] = A[0, tx]
barrier block
for k in serial(0, n) {
  S[tx] = A[k, tx]
}
T[n % 2, tx] = A[0, tx]
B[0, tx] = T[1, 127 - tx]";
    assert_eq!(found(body, Target::Sm80), ["RAW T 1"]);
}

#[test]
fn copies_that_may_not_be_issued_help_no_wait() {
    let body = |cond: &str| {
        format!(
            "g2s for c < 1 do A[0, 0 +: 128] at [0, tx] -> S[0 +: 128] at [tx] inst=\"buffer_load_lds\" width=1 counter=vmcnt
{cond}
wait vmcnt(1)
barrier bare
B[0, tx] = S[127 - tx]"
        )
    };
    let second = "g2s A[1, 0 +: 128] at [1, tx] -> T[0 +: 128] slot=0 at [tx] inst=\"buffer_load_lds\" width=1 counter=vmcnt";
    assert_eq!(found(&body(second), Target::Gfx950), [""; 0]);
    let maybe = format!("if A[0, 0] > 0.0:float16 {{\n  {second}\n}}");
    assert_eq!(found(&body(&maybe), Target::Gfx950), ["RAW S"]);
}

#[test]
fn asynchronous_copies_need_wait_then_barrier() {
    let copy = ASYNC.replace("inst=\"load\"", "inst=\"buffer_load_lds\"") + " counter=vmcnt";
    let with = |rest: &str| found(&format!("{copy}\n{rest}"), Target::Gfx950);
    let read = "B[0, tx] = S[127 - tx]";
    assert_eq!(
        with(&format!("wait vmcnt(0)\nbarrier bare\n{read}")),
        [""; 0]
    );
    assert_eq!(with(&format!("barrier bare\n{read}")), ["RAW S"]);
    assert_eq!(
        with(&format!("barrier bare\nwait vmcnt(0)\n{read}")),
        ["RAW S"]
    );
    assert_eq!(
        with(&format!("wait vmcnt(1)\nbarrier bare\n{read}")),
        ["RAW S"]
    );
    // The block's barrier waits for memory on AMD.
    assert_eq!(with(&format!("barrier block\n{read}")), [""; 0]);
    // Even the own element must be waited for.
    assert_eq!(with("B[0, tx] = S[tx]"), ["RAW S"]);
    assert_eq!(with("S[tx] = A[1, tx]"), ["WAW S"]);
    let report = check_text(
        &program(&format!("{copy}\nbarrier bare\n{read}")),
        Target::Gfx950,
    );
    assert!(
        report.hazards[0]
            .help
            .contains("`wait vmcnt(0)` before the last barrier")
    );
}

#[test]
fn registers_are_used_after_their_wait() {
    let load = "s2r for c < 2 do S[0 +: 128] at [tx] -> r[0 +: 2] at [c] inst=\"load\" width=1 counter=lgkmcnt";
    let with = |rest: &str| {
        let fill = "S[tx] = A[0, tx]\nbarrier block\n";
        found(&format!("{fill}{load}\n{rest}"), Target::Gfx950)
    };
    assert_eq!(with("B[0, tx] = r[0]"), ["register use before wait r"]);
    assert_eq!(with("wait lgkmcnt(0)\nB[0, tx] = r[0]"), [""; 0]);
    assert_eq!(with("r[1] = 0.0:float16"), ["register use before wait r"]);
    // Other elements are free.
    assert_eq!(with("B[0, tx] = r[4]\nr[5] = 0.0:float16"), [""; 0]);
    // Two instructions: leaving one in flight completes none of the whole.
    assert_eq!(
        with("wait lgkmcnt(1)\nB[0, tx] = r[0]"),
        ["register use before wait r"]
    );
    // Reads must be complete before another thread overwrites what they read.
    assert_eq!(
        with("barrier bare\nwait lgkmcnt(0)\nS[127 - tx] = A[1, tx]"),
        ["WAR S"]
    );
    assert_eq!(
        with("wait lgkmcnt(0)\nbarrier bare\nS[127 - tx] = A[1, tx]"),
        [""; 0]
    );
}

#[test]
fn a_full_counter_holds_the_wave_back() {
    let loads = |n: u32, width: u32| {
        format!(
            "S[tx] = A[0, tx]
barrier block
s2r S[0 +: 128] at [tx % 16 * 8] -> r[0 +: 8] at [0] inst=\"load\" width={width} counter=lgkmcnt
s2r for c < {n} do S[0 +: 128] at [tx % 16 * 8] -> r[8 +: 8] at [8] inst=\"load\" width={width} counter=lgkmcnt
B[0, tx] = r[0]"
        )
    };
    assert_eq!(
        found(&loads(14, 8), Target::Gfx950),
        ["register use before wait r"]
    );
    assert_eq!(found(&loads(15, 8), Target::Gfx950), [""; 0]);
    // Narrow ones may be fewer than they look: the compiler joins neighbours.
    assert_eq!(
        found(&loads(15, 4), Target::Gfx950),
        ["register use before wait r"]
    );
}

#[test]
fn barriers_are_for_all_waves() {
    let divergent = "if tx < 10 {\n  barrier block\n}";
    let kinds = |body: &str| {
        let report = check_text(&program(body), Target::Sm80);
        let mut kinds: Vec<HazardKind> = report.hazards.iter().map(|h| h.kind).collect();
        kinds.dedup();
        kinds
    };
    assert!(kinds(divergent).contains(&HazardKind::DivergentBarrier));
    assert!(kinds("if tx < 32 {\n  barrier block\n}").contains(&HazardKind::DivergentBarrier));
    assert_eq!(kinds("if bx < 2 {\n  barrier block\n}"), []);
    // Half of the block at a barrier that is for all of it.
    assert!(kinds("if tx < 64 {\n  barrier named(1, 128)\n}").contains(&HazardKind::Deadlock));
    assert_eq!(kinds("if tx < 64 {\n  barrier named(1, 64)\n}"), []);
    let loaded = "if A[0, tx] > 0.0:float16 {\n  barrier block\n}";
    assert!(!check_text(&program(loaded), Target::Sm80).proved);
}

#[test]
fn groups_a_barrier_apart() {
    let body = |extra: &str| {
        format!(
            "barrier cond(tx // 64 == 1)
S[tx] = A[0, tx]
wait lgkmcnt(0)
barrier bare
{extra}B[0, tx] = S[127 - tx]
barrier bare
barrier cond(tx // 64 == 0)"
        )
    };
    // The lagging group writes after the leading one's barrier.
    let report = check_text(&program(&body("")), Target::Gfx950);
    assert_eq!(summary(&report), ["RAW S"]);
    let hazard = &report.hazards[0];
    assert_ne!(hazard.first.group, hazard.second.group);
    assert_eq!(found(&body("barrier bare\n"), Target::Gfx950), [""; 0]);
    // Without the opposite barrier some waves end while others wait.
    let open = body("barrier bare\n").replace("barrier cond(tx // 64 == 0)", "");
    let report = check_text(&program(&open), Target::Gfx950);
    assert!(
        report
            .hazards
            .iter()
            .any(|h| h.kind == HazardKind::DivergentBarrier)
    );
}

#[test]
fn arrival_barriers_order_producers_and_consumers() {
    let body = "if tx < 64 {
  S[tx] = A[0, tx]
  mbarrier_arrive full[0]
} else {
  mbarrier_wait full[0] parity=0
  B[0, tx] = S[tx - 64]
}";
    assert_eq!(found(body, Target::Sm80), [""; 0]);
    let early = body.replace(
        "S[tx] = A[0, tx]\n  mbarrier_arrive full[0]",
        "mbarrier_arrive full[0]\n  S[tx] = A[0, tx]",
    );
    assert_eq!(found(&early, Target::Sm80), ["RAW S"]);
    let other = body.replace("mbarrier_wait full[0]", "mbarrier_wait full[1]");
    let report = check_text(&program(&other), Target::Sm80);
    assert_eq!(report.hazards[0].kind, HazardKind::Deadlock);
}

#[test]
fn conditions_that_change_are_tried_in_every_pattern() {
    let body = |second: &str| {
        format!(
            "for k in serial(0, n) {{
  if B[k, 0] > 0.0:float16 {{
    S[tx] = A[k, tx]
    barrier block
    B[k, tx] = S[127 - tx]
    {second}
  }}
}}"
        )
    };
    assert_eq!(found(&body("barrier block"), Target::Sm80), [""; 0]);
    assert_eq!(found(&body(""), Target::Sm80), ["WAR S"]);
}

#[test]
fn scalars_decide_loops() {
    let tree = "alloc width: var int32
width[] = 128
S[tx] = A[0, tx]
barrier block
while width[] > 1 {
  let half: int32 = width[] // 2
  if tx < half {
    S[tx] = S[tx] + S[tx + half]
  }
  barrier block
  width[] = half
}";
    assert_eq!(found(tree, Target::Sm80), [""; 0]);
    let unordered = tree.replace("  barrier block\n", "  sync_warp\n");
    assert_eq!(found(&unordered, Target::Sm80), ["RAW S"]);
}

/// What happens in an iteration that the first and the last ones do not show is not left out.
#[test]
fn loops_without_rhythm_are_run_as_a_whole() {
    let body = |place: &str| {
        format!(
            "for k in serial(0, 100) {{
  S[tx] = A[k, tx]
  B[k, tx] = S[{place}]
  barrier block
}}"
        )
    };
    assert_eq!(found(&body("tx"), Target::Sm80), [""; 0]);
    let late = body("(tx + k // 50 % 2 * k // 60 * 64) % 128");
    assert!(found(&late, Target::Sm80).contains(&"RAW S".to_string()));
    let early = "for k in serial(0, 100) {
  if k == 50 {
    S[tx] = A[k, tx]
  } else {
    barrier block
  }
  B[k, tx] = S[127 - tx]
}";
    assert!(found(early, Target::Sm80).contains(&"RAW S".to_string()));
    let dynamic = "for k in serial(0, n) {
  S[(k * 32 + tx) % 128] = A[k, tx]
  barrier block
}
for k in serial(0, n) {
  S[k + tx] = A[k, tx]
  barrier block
}";
    assert!(!check_text(&program(dynamic), Target::Sm80).proved);
}

/// Narrow elements share bytes.
#[test]
fn packed_elements_of_one_byte_meet() {
    let body = "alloc P: shared uint4[256]
P[tx * 2] = uint4(tx)
P[tx * 2 + 1] = uint4(tx)";
    assert_eq!(found(body, Target::Sm80), [""; 0]);
    let split = "alloc P: shared uint4[128]
if tx % 2 == 0 {
  P[tx] = uint4(tx)
}
if tx % 2 == 1 {
  P[tx] = uint4(tx)
}";
    assert_eq!(found(split, Target::Sm80), ["WAW P"]);
    assert_eq!(found(split, Target::Gfx942), [""; 0]);
}

#[test]
fn what_is_not_modelled_is_not_proved() {
    let init = "alloc bar: barrier uint64[1] arrivals=[1]\nbarrier_init bar[0] count=128";
    let report = check_text(&program(init), Target::Sm90a);
    assert!(!report.proved);
    assert!(!report.reasons.is_empty());
}

/// More iterations are tried than there are numbers for.
#[test]
fn bounds_at_the_end_of_their_type_are_not_proved() {
    let body = "for k in serial(9223372036854775806:int64, int64(n)) {
  S[tx] = A[0, tx]
  barrier block
}";
    let report = check_text(&program(body), Target::Sm80);
    let said = |reason: &hazard::Reason| reason.text.contains("too large");
    assert!(report.reasons.iter().any(said), "{report:?}");
}

#[test]
fn diagnostics_name_both_statements() {
    let report = check_text(
        &program("S[tx] = A[0, tx]\nB[0, tx] = S[127 - tx]"),
        Target::Sm80,
    );
    let diagnostics = report.diagnostics().into_vec();
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(diagnostics[0].code.0, "hazard-raw");
    let text = format!("{:?}", diagnostics[0]);
    assert!(
        text.contains("S[tx] = A[0, tx]") && text.contains("S[127 - tx]"),
        "{text}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever it is given, it answers.
    #[test]
    fn any_function_gets_an_answer(func in any_func()) {
        for target in [Target::Sm80, Target::Gfx950] {
            let report = hazard::check(&func, target);
            prop_assert!(report.proved || !report.reasons.is_empty());
        }
    }
}

/// Two buffers, the second at this offset, and what is done with them.
fn overlapping(offset: u32, body: &str) -> HazardReport {
    let source = format!(
        "func @f level=device {{
           param X: float32[128]
           output Y: float32[128]
           kernel grid(bx: 1) threads(tx: 128, ty: 1, tz: 1) {{
             alloc A: shared float32[128] offset=0 bytes=512
             alloc B: shared float32[128] offset={offset} bytes=512
             {body}
           }}
         }}"
    );
    check_text(&source, Target::Sm80)
}

#[test]
fn buffers_that_lie_over_each_other_are_one_memory() {
    let body = "A[tx] = X[tx]\nbarrier block\nY[tx] = A[127 - tx]\n\
                B[tx] = 1.0\nbarrier block\nY[tx] = B[127 - tx]";
    assert_eq!(summary(&overlapping(384, body)), ["WAR B"]);
    let hazard = &overlapping(384, body).hazards[0];
    assert_eq!(hazard.over.as_deref(), Some("A"));
    assert!(overlapping(512, body).is_clean());
    let ordered = body.replace("\nB[tx]", "\nbarrier block\nB[tx]");
    assert!(overlapping(0, &ordered).is_clean());
}

#[test]
fn what_another_buffer_replaced_is_gone() {
    let body = "A[tx] = X[tx]\nbarrier block\nB[tx] = 1.0\nbarrier block\nY[tx] = A[127 - tx]";
    assert_eq!(
        summary(&overlapping(0, body)),
        ["read of overwritten data A"]
    );
    assert!(overlapping(512, body).is_clean());
    // Written again, all of it or a part.
    let again = body.replace("\nY[", "\nA[tx] = 2.0\nbarrier block\nY[");
    assert!(overlapping(0, &again).is_clean());
    let part = again.replace("A[tx] = 2.0", "if tx < 64 {\nA[tx] = 2.0\n}");
    assert_eq!(
        summary(&overlapping(0, &part)),
        ["read of overwritten data A"]
    );
    // Not in every case.
    let case = "if X[0] > 0.0 {\nA[tx] = 2.0\n}";
    let sometimes = again.replace("A[tx] = 2.0", case);
    assert_eq!(
        summary(&overlapping(0, &sometimes)),
        ["read of overwritten data A"]
    );
    // But wherever it is read, or one way or another.
    let there = sometimes.replace(
        "Y[tx] = A[127 - tx]",
        "if X[0] > 0.0 {\nY[tx] = A[127 - tx]\n}",
    );
    assert!(overlapping(0, &there).is_clean());
    let either = again.replace("A[tx] = 2.0", &format!("{case} else {{\nA[tx] = 3.0\n}}"));
    assert!(overlapping(0, &either).is_clean());
    // In a loop the content of the iteration before is gone too.
    let carried = "A[tx] = X[tx]\nfor k in serial(0, 40) {\nbarrier block\nY[tx] = A[127 - tx]\n\
                   barrier block\nB[tx] = 1.0\n}";
    assert_eq!(
        summary(&overlapping(0, carried)),
        ["read of overwritten data A"]
    );
}

#[test]
fn copies_under_way_hold_what_lies_over_them() {
    let body = "g2s X[0 +: 128] at [tx] -> A[0 +: 128] at [tx] inst=\"cp.async\" width=1 \
                counter=cp_async\ncommit cp_async\nbarrier block\nB[tx] = 1.0\nwait cp_async(0)";
    assert_eq!(summary(&overlapping(0, body)), ["WAW B"]);
    let waited = body.replace("barrier block", "wait cp_async(0)\nbarrier block");
    assert!(overlapping(0, &waited).is_clean());
}

/// One thread's copy, read by its own warp: no wave but the first is there.
#[test]
fn a_copy_under_a_condition_of_threads_is_theirs_alone() {
    let body = |who: &str, reader: &str| {
        format!(
            "if {who} {{
  g2s A[0, tx] at [0, tx] -> T[tx] slot=0 at [tx] inst=\"cp.async\" width=1 counter=cp_async
}}
commit cp_async
wait cp_async(0)
sync_warp
if {reader} {{
  B[0, tx] = T[0, 0]
}}"
        )
    };
    assert_eq!(found(&body("tx < 1", "tx < 8"), Target::Sm80), [""; 0]);
    assert_eq!(found(&body("tx < 1", "tx < 40"), Target::Sm80), ["RAW T 0"]);
}

#[test]
fn threads_that_exchange_data_through_a_tensor_need_a_barrier() {
    for target in [Target::Sm80, Target::Gfx950] {
        let none: [&str; 0] = [];
        let both = |a: &str, between: &str, b: &str| found(&format!("{a}\n{between}\n{b}"), target);
        let write = "A[bx, tx] = S[tx]";
        let turned = "B[bx, tx] = A[bx, 127 - tx]";
        let over = "A[bx, 127 - tx] = S[tx]";
        assert_eq!(both(write, "", turned), ["RAW A"]);
        assert_eq!(both(turned, "", write), ["WAR A"]);
        assert_eq!(both(write, "", over), ["WAW A"]);
        for second in [turned, over] {
            assert_eq!(both(write, "barrier block", second), none);
        }
        // A thread's own element, and another row.
        assert_eq!(both(write, "", "B[bx, tx] = A[bx, tx]"), none);
        assert_eq!(both(write, "", "B[bx, tx] = A[bx + 1, 127 - tx]"), none);
        // In each iteration, and from one to the next.
        let turns = |trips: &str, inside: &str| {
            let body = format!("A[k, tx] = S[tx]\n{inside}\nB[k, tx] = A[k, 127 - tx]");
            let body = format!("for k in serial(0, {trips}) {{\n{body}\n}}");
            check_text(&program(&body), target)
        };
        assert_eq!(summary(&turns("4", "")), ["RAW A"]);
        assert!(!turns("n", "").proved);
        for trips in ["4", "n"] {
            assert_eq!(summary(&turns(trips, "barrier block")), none);
        }
        let again = "barrier block\nB[0, tx] = A[0, 127 - tx]\nA[0, tx] = S[tx]";
        let looped = |trips: &str| {
            found(
                &format!("for k in serial(0, {trips}) {{\n{again}\n}}"),
                target,
            )
        };
        assert_eq!(looped("n"), ["WAR A"]);
    }
}

#[test]
fn what_is_not_known_of_a_tensor_is_said() {
    let scatter = "alloc I: local int32[1]\nA[0, I[0]] = S[tx]\nB[0, tx] = A[0, tx]";
    let report = check_text(&program(scatter), Target::Sm80);
    assert!(report.hazards.is_empty() && !report.proved);
    let said = |reason: &hazard::Reason| reason.text.contains("which elements of `A`");
    assert!(report.reasons.iter().any(said), "{:?}", report.reasons);
    let report = check_text(
        &program(&scatter.replace("\nB", "\nbarrier block\nB")),
        Target::Sm80,
    );
    assert!(report.is_clean(), "{:?}", report.reasons);
    // Tensors that may lie over each other.
    let aliases = program("A[0, tx] = S[tx]\nS[tx] = B[0, 127 - tx]");
    assert!(check_text(&aliases, Target::Sm80).is_clean());
    let aliases = aliases.replace("tz: 1) {", "tz: 1) may_alias=[A, B] {");
    assert!(!check_text(&aliases, Target::Sm80).proved);
}

/// Every thread comes to one element as often as it can: the answer does not take that long.
#[test]
fn many_accesses_of_one_element_are_counted_once() {
    let body = "for c in unroll(0, 4000) {\nA[0, c // 4000] = S[tx]\n}\nfor c in unroll(0, 4000) {\nB[0, tx] = A[0, c // 4000]\n}";
    assert_eq!(found(body, Target::Sm80), ["RAW A"]);
}
