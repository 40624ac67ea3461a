//! The hazard checker on bulk loads: a producer's boxes and the products of warp groups that read
//! them.

#[path = "../../sim/tests/simt/bulk_mutants.rs"]
mod bulk_mutants;

use bulk_mutants::{HARMLESS, MUTANTS, plant};
use tilewright_ir::{SourceMap, Target, text, verify};
use tilewright_schedule::hazard::{self, HazardKind, HazardReport};

const GEMM: &str = include_str!("../../sim/tests/simt/bulk_gemm.tw");

const STORES: &str = include_str!("../../sim/tests/simt/bulk_after_stores.tw");

fn check(name: &str, source: &str) -> HazardReport {
    let file = SourceMap::new().add(name, source);
    let funcs = text::parse_module(source, file);
    let funcs = funcs.unwrap_or_else(|e| panic!("{name}: {e:?}"));
    verify::verify(&funcs[0]).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    hazard::check(&funcs[0], Target::Sm90a)
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

#[test]
fn every_planted_fault_is_found() {
    let mut missed = Vec::new();
    for mutant in MUTANTS {
        let report = check(mutant.0, &plant(GEMM, mutant));
        if report.hazards.is_empty() {
            missed.push(format!("{}: {}", mutant.0, lines(&report)));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
