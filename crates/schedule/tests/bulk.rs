//! The hazard checker on bulk loads: a producer's boxes and the products of warp groups that read
//! them.

#[path = "../../sim/tests/simt/bulk_mutants.rs"]
mod bulk_mutants;
#[path = "../../sim/tests/simt/bulk_rows_mutants.rs"]
mod bulk_rows_mutants;
#[path = "../../sim/tests/simt/pair_mutants.rs"]
mod pair_mutants;

use bulk_mutants::{HARMLESS, MUTANTS, RELEASE, plant};
use pair_mutants::{PAIR_HARMLESS, PAIR_MUTANTS};
use tilewright_ir::{Func, SourceMap, Target, text, verify};
use tilewright_schedule::hazard::{self, Hazard, HazardKind, HazardReport};
use tilewright_schedule::product_waits;

const GEMM: &str = include_str!("../../sim/tests/simt/bulk_gemm.tw");

const PAIRS: &str = include_str!("../../sim/tests/simt/bulk_pairs.tw");

const OUT: &str = include_str!("../../sim/tests/simt/bulk_store.tw");

const STORES: &str = include_str!("../../sim/tests/simt/bulk_after_stores.tw");

fn parse(name: &str, source: &str) -> Func {
    let file = SourceMap::new().add(name, source);
    let funcs = text::parse_module(source, file);
    let funcs = funcs.unwrap_or_else(|e| panic!("{name}: {e:?}"));
    verify::verify(&funcs[0]).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    funcs[0].clone()
}

fn check(name: &str, source: &str) -> HazardReport {
    hazard::check(&parse(name, source), Target::Sm90a)
}

fn lines(report: &HazardReport) -> String {
    let list: Vec<String> = report.hazards.iter().map(|h| h.to_string()).collect();
    let reasons: Vec<&str> = report.reasons.iter().map(|r| r.text.as_str()).collect();
    [list.join("\n"), reasons.join("\n")].join("\n")
}

/// Whatever the number of iterations.
#[test]
fn the_pipeline_is_proved() {
    let report = check("bulk_gemm", GEMM);
    assert!(report.is_clean(), "{}", lines(&report));
    for harmless in HARMLESS {
        let report = check(harmless.0, &plant(GEMM, harmless));
        assert!(report.is_clean(), "{}: {}", harmless.0, lines(&report));
    }
}

#[test]
fn blocks_that_bring_each_other_halves_are_proved() {
    let report = check("bulk_pairs", PAIRS);
    assert!(report.is_clean(), "{}", lines(&report));
    for harmless in PAIR_HARMLESS {
        let report = check(harmless.0, &plant(PAIRS, harmless));
        assert!(report.is_clean(), "{}: {}", harmless.0, lines(&report));
    }
}

/// With as many versions as there are barriers of each kind.
fn with_stages(stages: usize) -> String {
    let list = |count: u32| format!("arrivals={:?}", vec![count; stages]);
    let text = GEMM.replace("arrivals=[1, 1, 1]", &list(1));
    let text = text.replace("arrivals=[8, 8, 8]", &list(8));
    let text = text.replace("uint64[3]", &format!("uint64[{stages}]"));
    let text = text.replace("versions=3", &format!("versions={stages}"));
    let text = text.replace("% 3", &format!("% {stages}"));
    text.replace("// 3", &format!("// {stages}"))
}

#[test]
fn other_numbers_of_versions_are_proved() {
    for stages in [2, 4, 7] {
        let report = check("bulk_gemm", &with_stages(stages));
        assert!(report.is_clean(), "{stages}: {}", lines(&report));
    }
    // The tile is handed on an iteration later: with one there is no room for the next.
    let report = check("bulk_gemm", &with_stages(1));
    let deadlock = |h: &Hazard| h.kind == HazardKind::Deadlock;
    assert!(report.hazards.iter().any(deadlock), "{}", lines(&report));
}

#[test]
fn known_numbers_of_iterations_are_proved() {
    for n in [0, 1, 2, 3, 7, 64, 1000] {
        let report = check("bulk_gemm", &GEMM.replace("(k + 63) // 64", &n.to_string()));
        assert!(report.is_clean(), "{n}: {}", lines(&report));
    }
}

/// What threads stored before is ordered before the box by a fence and a barrier.
#[test]
fn stores_before_a_load_are_fenced() {
    let kinds = |without: &str| {
        let report = check("bulk_after_stores", &STORES.replacen(without, "", 1));
        assert!(report.proved, "{}", lines(&report));
        let mut kinds: Vec<HazardKind> = report.hazards.iter().map(|h| h.kind).collect();
        kinds.dedup();
        kinds
    };
    assert_eq!(kinds(""), []);
    assert_eq!(kinds("fence async_proxy"), [HazardKind::MissingFence]);
    assert!(kinds("barrier block").contains(&HazardKind::WriteAfterWrite));
    let unwaited = kinds("mbarrier_wait full[0] parity=0");
    assert!(unwaited.contains(&HazardKind::ReadAfterWrite));
    assert!(unwaited.contains(&HazardKind::Phase));
}

/// Boxes of a part of each row: whichever thread has them brought, what was stored there is in their way.
#[test]
fn any_thread_may_have_boxes_of_columns_brought() {
    let rows = "at [p * 32 - 8, 3] -> S[0 +: 64, 0 +: 64] at [p * 32, 0] inst=\"tma.32x64\"";
    let columns = "at [-8, p * 32 + 3] -> S[0 +: 64, 0 +: 64] at [0, p * 32] inst=\"tma.64x32\"";
    assert!(STORES.contains(rows));
    let text = STORES.replace(rows, columns);
    for issuer in [0, 32, 33, 127] {
        let text = text.replace("if tx == 0", &format!("if tx == {issuer}"));
        let report = check("bulk_after_stores", &text);
        assert!(report.is_clean(), "{issuer}: {}", lines(&report));
        let report = check("bulk_after_stores", &text.replace("barrier block", ""));
        let races = |h: &Hazard| h.kind == HazardKind::WriteAfterWrite;
        assert!(
            report.hazards.iter().any(races),
            "{issuer}: {}",
            lines(&report)
        );
    }
}

/// What goes out is handed to the copy engine, and is not written again, nor does the kernel end,
/// before it has been read.
#[test]
fn stores_have_read_before_they_are_overwritten() {
    let kinds = |without: &str| {
        assert!(OUT.contains(without), "{without}");
        let report = check("bulk_store", &OUT.replacen(without, "", 1));
        assert!(report.proved, "{}", lines(&report));
        let mut kinds: Vec<HazardKind> = report.hazards.iter().map(|h| h.kind).collect();
        kinds.dedup();
        kinds
    };
    assert_eq!(kinds(""), []);
    assert_eq!(kinds("fence async_proxy"), [HazardKind::MissingFence]);
    assert!(kinds("wait tma_store(1) read").contains(&HazardKind::WriteAfterRead));
    assert!(kinds("barrier block").contains(&HazardKind::WriteAfterRead));
    assert_eq!(kinds("wait tma_store(0) read"), [HazardKind::EndsBefore]);
    assert!(kinds("commit tma_store").contains(&HazardKind::EndsBefore));
    // To have been read is enough, to be complete is more.
    let waits = OUT.replace(") read", ")");
    let report = check("bulk_store", &waits);
    assert!(report.is_clean(), "{}", lines(&report));
}

/// What is written to a tensor is there when its group is waited for, not when it has been read.
#[test]
fn what_a_store_writes_is_waited_for_apart() {
    let read = |wait: &str| {
        let body = format!(
            "      commit tma_store\n      {wait}\n      barrier block\n      C[tx] = B[0, tx]\n    }}"
        );
        let text = OUT.replace("      commit tma_store\n    }", &body);
        let text = text.replace("kernel grid", "output C: float32[128]\n  kernel grid");
        let report = check("bulk_store", &text);
        report.hazards.iter().map(|h| h.kind).collect::<Vec<_>>()
    };
    assert_eq!(read("wait tma_store(0)"), []);
    let early = read("wait tma_store(0) read");
    assert!(early.contains(&HazardKind::ReadAfterWrite), "{early:?}");
}

/// A barrier that is taken for another: the help says what it counts, and what comes.
#[test]
fn what_a_phase_lacks_is_said() {
    let helps = |from: &str, to: &str| {
        assert_eq!(GEMM.matches(from).count(), 1, "{from}");
        let report = check("bulk_gemm", &GEMM.replace(from, to));
        report
            .hazards
            .into_iter()
            .map(|h| h.help)
            .collect::<Vec<_>>()
    };
    let says = |helps: Vec<String>, wanted: &str| {
        assert!(helps.iter().any(|h| h.contains(wanted)), "{helps:?}");
    };
    let counts = "arrivals=[8, 8, 8]";
    says(
        helps(counts, "arrivals=[9, 9, 9]"),
        "counts 9 arrivals a phase, and 8 come",
    );
    says(
        helps(counts, "arrivals=[7, 7, 7]"),
        "counts 7 arrivals a phase, and 8 come",
    );
    let bytes = helps("bytes=24576", "bytes=24592");
    says(
        bytes,
        "24592 bytes are announced to the phase that is waited for, and 24576 land",
    );
}

/// Nothing races, but what is read was brought for another iteration.
#[test]
fn reads_of_another_iteration_are_found() {
    let other = |from: &str, to: &str| {
        assert_eq!(GEMM.matches(from).count(), 1, "{from}");
        let report = check("bulk_gemm", &GEMM.replace(from, to));
        let kinds: Vec<HazardKind> = report.hazards.iter().map(|h| h.kind).collect();
        assert!(
            kinds.contains(&HazardKind::OtherIteration),
            "{}",
            lines(&report)
        );
    };
    other(
        "iteration i\n        fence",
        "iteration i + 1\n        fence",
    );
    other(
        "iteration i\n          tma",
        "iteration i + 1\n          tma",
    );
}

/// An arrival hands on the version that its barrier stands for: the product that reads another one
/// goes on.
#[test]
fn arrivals_wait_for_the_products_whose_tiles_they_hand_on() {
    let synchronises = |line: &&str| {
        let words = ["fence wgmma", "commit wgmma", "wait wgmma"];
        !words.iter().any(|w| line.trim().starts_with(w))
    };
    let bare: Vec<&str> = GEMM.lines().filter(synchronises).collect();
    let waits = |source: &str| {
        let mut func = parse("bulk_gemm", source);
        product_waits(&mut func);
        let report = hazard::check(&func, Target::Sm90a);
        assert!(report.is_clean(), "{}", lines(&report));
        let text = text::print(&func);
        let waits = text.lines().map(str::trim);
        let waits = waits.filter(|l| l.starts_with("wait wgmma"));
        waits.map(str::to_string).collect::<Vec<_>>()
    };
    let source = bare.join("\n");
    assert_eq!(waits(&source), ["wait wgmma(1)", "wait wgmma(0)"]);
    // Who arrives for what it reads itself waits for that.
    let own = "mbarrier_arrive empty[i % 3] warp";
    let source = plant(&source, &("its own", RELEASE, own));
    assert_eq!(waits(&source), ["wait wgmma(0)"]);
}

#[test]
fn every_planted_fault_is_found() {
    let mut missed = Vec::new();
    let single = MUTANTS.iter().map(|mutant| (GEMM, mutant));
    let paired = PAIR_MUTANTS.iter().map(|mutant| (PAIRS, mutant));
    for (text, mutant) in single.chain(paired) {
        let report = check(mutant.0, &plant(text, mutant));
        if report.hazards.is_empty() {
            missed.push(format!("{}: {}", mutant.0, lines(&report)));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// Where blocks of a cluster may take different ways, nothing is claimed.
#[test]
fn ways_that_blocks_of_a_cluster_may_not_share_are_not_proved() {
    let trips = "for i in serial(0, (k + 63) // 64) {";
    let proved = |bound: &str| {
        let text = PAIRS.replace(trips, &format!("for i in serial(0, {bound}) {{"));
        let report = check("bulk_pairs", &text);
        assert!(report.hazards.is_empty(), "{}", lines(&report));
        report.proved
    };
    assert!(proved("by // 2 % 3 + 1"));
    assert!(!proved("by % 3 + 1"));
}

/// Warps that have their own rows stored.
const ROWS: &str = include_str!("../../sim/tests/simt/bulk_rows.tw");

#[test]
fn stores_of_rows_are_proved() {
    let report = check("bulk_rows", ROWS);
    assert!(report.is_clean(), "{}", lines(&report));
    for harmless in bulk_rows_mutants::HARMLESS {
        let report = check(harmless.0, &plant(ROWS, harmless));
        assert!(report.is_clean(), "{}: {}", harmless.0, lines(&report));
    }
}

#[test]
fn every_fault_in_stores_of_rows_is_found() {
    let mut missed = Vec::new();
    for mutant in bulk_rows_mutants::MUTANTS {
        let report = check(mutant.0, &plant(ROWS, mutant));
        if report.hazards.is_empty() {
            missed.push(format!("{}: {}", mutant.0, lines(&report)));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// What is found of stores of rows, and where it helps.
#[test]
fn faults_in_stores_of_rows_are_named() {
    let kinds = |name: &str| {
        let mutants = bulk_rows_mutants::MUTANTS.iter();
        let mutant = mutants.clone().find(|m| m.0 == name);
        let mutant = mutant.unwrap_or_else(|| panic!("no {name}"));
        let report = check(name, &plant(ROWS, mutant));
        let mut kinds: Vec<HazardKind> = report.hazards.iter().map(|h| h.kind).collect();
        kinds.dedup();
        kinds
    };
    let wait = kinds("no wait before the tile is written");
    assert_eq!(wait, [HazardKind::WriteAfterRead]);
    let barrier = kinds("other lanes do not hear of the wait");
    assert_eq!(barrier, [HazardKind::WriteAfterRead]);
    assert_eq!(kinds("no fence"), [HazardKind::MissingFence]);
    let lanes = kinds("no barrier of the warp");
    assert!(lanes.contains(&HazardKind::ReadAfterWrite), "{lanes:?}");
    assert_eq!(kinds("the kernel ends before"), [HazardKind::EndsBefore]);
}

/// The registers of a sum that nobody reads are given up when its products are done, not before, also
/// where a loop is left by a `break`.
#[test]
fn a_sum_that_nobody_reads_is_waited_for() {
    for text in [
        include_str!("../../sim/tests/simt/unread_sum.tw"),
        include_str!("../../sim/tests/simt/sum_left_by_a_break.tw"),
    ] {
        let report = check("sum", text);
        assert!(report.is_clean(), "{}", lines(&report));
        for instead in ["", "wait wgmma(1)"] {
            let report = check("sum", &text.replace("wait wgmma(0)", instead));
            let mut kinds = report.hazards.iter().map(|h| h.kind);
            let only = kinds.all(|k| k == HazardKind::RegisterBeforeWait);
            assert!(only && !report.hazards.is_empty(), "{}", lines(&report));
        }
    }
}
