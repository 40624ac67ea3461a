//! Plans of whole kernels against code that is laid out in other ways, and with faults.

use tilewright_gfx9::asm::{Wait, parse};
use tilewright_gfx9::audit::{Event, Expectation, Kind, Plan, audit};

/// Two copies, then any number of turns of `copy, vmcnt(1), barrier, read, lgkmcnt(0), barrier`, then
/// `vmcnt(0), barrier, read`.
fn plan() -> (Plan, usize) {
    let mut plan = Plan::default();
    let at = plan.step(Plan::START, Event::Copy);
    let at = plan.step(at, Event::Copy);
    let head = plan.joined(&[at]);
    let out = plan.joined(&[head]);
    let at = plan.step(head, Event::Copy);
    let at = plan.step(at, Event::Wait(Wait::vm(1)));
    let at = plan.step(at, Event::Barrier);
    let at = plan.work(at, Event::Read);
    let at = plan.step(at, Event::Wait(Wait::lgkm(0)));
    let at = plan.step(at, Event::Barrier);
    plan.way(at, head);
    let at = plan.step(out, Event::Wait(Wait::vm(0)));
    let at = plan.step(at, Event::Barrier);
    let end = plan.work(at, Event::Read);
    (plan, end)
}

const COPY: &str = "\tbuffer_load_dword v1, s[0:3], 0 offen lds\n";
const TURN: &str = "\tbuffer_load_dword v1, s[0:3], 0 offen lds\n\ts_waitcnt vmcnt(1)\n\ts_barrier\n\
                    \tds_read_b32 v2, v3\n\ts_waitcnt lgkmcnt(0)\n\ts_barrier\n";
const LAST: &str = "\ts_waitcnt vmcnt(0)\n\ts_barrier\n\tds_read_b32 v2, v3\n";

fn kinds(code: &str) -> Vec<Kind> {
    let program = parse(&format!("f:\n{code}\ts_endpgm\n")).expect("assembly");
    let expected = Expectation {
        plan: Some(plan()),
        reshaped: true,
        ..Expectation::default()
    };
    let report = audit(&program.functions[0], "gfx950", &expected);
    assert_eq!(report.unplanned, None);
    let wrong = report.findings.iter().map(|f| f.kind);
    // The pieces have no metadata.
    wrong.filter(|kind| *kind != Kind::Shape).collect()
}

fn looped(turn: &str) -> String {
    format!("{COPY}{COPY}.LBB0_1:\n{turn}\ts_cbranch_scc0 .LBB0_1\n{LAST}")
}

#[test]
fn turns_may_be_laid_out_in_any_way() {
    for code in [
        looped(TURN),
        looped(&format!("{TURN}{TURN}")),
        format!("{COPY}{COPY}{LAST}"),
        format!("{COPY}{COPY}{TURN}{TURN}{TURN}{LAST}"),
        format!(
            "{COPY}{COPY}\ts_cbranch_scc0 .LBB0_2\n.LBB0_1:\n{TURN}\ts_cbranch_scc1 .LBB0_1\n.LBB0_2:\n{LAST}"
        ),
        // Stricter, and more of them.
        looped(&TURN.replace("vmcnt(1)", "vmcnt(0) lgkmcnt(0)")),
        looped(&TURN.replace("\tds_read", "\ts_waitcnt lgkmcnt(2)\n\tds_read")),
        // Reads that the compiler splits, or leaves out.
        looped(&TURN.replace("\tds_read_b32 v2, v3\n", "")),
        looped(&TURN.replace("\tds_read", "\tds_read_b32 v5, v6\n\tds_read")),
    ] {
        assert_eq!(kinds(&code), [], "{code}");
    }
}

#[test]
fn what_is_missing_is_found_wherever_it_is() {
    let good = looped(TURN);
    for (what, instead, place, kind) in [
        ("vmcnt(1)", "vmcnt(2)", 0, Kind::MissingWait),
        ("\ts_waitcnt vmcnt(1)\n", "", 0, Kind::MissingWait),
        ("lgkmcnt(0)", "lgkmcnt(1)", 0, Kind::MissingWait),
        ("vmcnt(0)", "vmcnt(1)", 0, Kind::MissingWait),
        ("\ts_waitcnt vmcnt(0)\n", "", 0, Kind::MissingWait),
        ("\ts_barrier\n", "", 0, Kind::MissingBarrier),
        ("\ts_barrier\n", "", 1, Kind::MissingBarrier),
        ("\ts_barrier\n", "", 2, Kind::MissingBarrier),
        (
            "\ts_barrier\n",
            "\ts_barrier\n\ts_barrier\n",
            0,
            Kind::MissingWait,
        ),
        (COPY, "", 0, Kind::MissingWait),
    ] {
        let at = good.match_indices(what).nth(place).expect("the place").0;
        let bad = format!("{}{instead}{}", &good[..at], &good[at + what.len()..]);
        let found = kinds(&bad);
        assert!(found.contains(&kind), "{what} {place}: {found:?}");
    }
}

/// One of two ways is wrong.
#[test]
fn every_way_counts() {
    let code = format!(
        "{COPY}{COPY}\ts_cbranch_scc0 .LBB0_2\n{TURN}{LAST}\ts_endpgm\n.LBB0_2:\n{}",
        LAST.replace("\ts_barrier\n", "")
    );
    let found = kinds(&code);
    assert!(!found.is_empty() && found.iter().all(|k| *k == Kind::MissingBarrier));
}
