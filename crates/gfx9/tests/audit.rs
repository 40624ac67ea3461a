//! The audit on compiled kernels, as they are and with planted faults.
//!
//! The `.s` files are what clang 22 makes of `crates/runtime/tests/hip/gemm.hip` for gfx950
//! (comments and directives that nothing reads are cut): `gemm` as it stands, `gemm_halves` with
//! `-DHALVES`, `gemm_builtin_no_aliasing` with `-DBUILTIN_COPY -fno-strict-aliasing`; and of a
//! kernel with 128 live values a lane at eight waves a SIMD, which spills. No compiler is needed here.

use std::collections::BTreeMap;

use tilewright_gfx9::asm::{Program, Wait, parse};
use tilewright_gfx9::audit::{Expectation, Finding, Kind, Mark, Report, Step, audit, vgprs_at};

const GEMM: &str = include_str!("asm/gemm.s");
const HALVES: &str = include_str!("asm/gemm_halves.s");
const BUILTIN: &str = include_str!("asm/gemm_builtin_no_aliasing.s");
const SPILL: &str = include_str!("asm/spill.s");

/// The schedule of the hand-written gemm: a tile is copied while the one before is multiplied.
fn gemm() -> Expectation {
    Expectation {
        steps: vec![
            Step::Copies(8),
            Step::Wait(Wait::vm(8)),
            Step::Barrier,
            Step::Reads(24),
            Step::Wait(Wait::lgkm(0)),
            Step::Barrier,
        ],
        mfma: BTreeMap::from([("v_mfma_f32_16x16x32_bf16".to_owned(), 64)]),
        lds_copies: Some(8),
        lds_reads: Some(24),
        vgprs: Some(vgprs_at(2)),
        address_arithmetic: 4,
        lane_reads: 0,
        half_rate: false,
        drained: true,
        no_fences: true,
        ..Expectation::default()
    }
}

fn halves() -> Expectation {
    let mut expected = gemm();
    expected.steps = vec![
        Step::Copies(8),
        Step::Wait(Wait::vm(8)),
        Step::Barrier,
        Step::Reads(24),
        Step::Wait(Wait::lgkm(12)),
        Step::Wait(Wait::lgkm(0)),
        Step::Barrier,
    ];
    expected
}

fn check(text: &str, expected: &Expectation) -> Report {
    let program: Program = parse(text).unwrap();
    let kernel = program.kernels().next().expect("a kernel");
    audit(kernel, program.arch.as_deref().unwrap_or(""), expected)
}

/// The text with one change in the hot loop: the first line there that contains `old`.
fn plant(text: &str, old: &str, new: &str) -> (String, u32) {
    let program = parse(text).unwrap();
    let kernel = program.kernels().next().expect("a kernel");
    let hot = kernel.hot_loop().expect("a loop");
    let (first, last) = (
        hot.body(kernel)[0].line,
        hot.body(kernel).last().unwrap().line,
    );
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let at = (first - 1..last)
        .find(|i| lines[*i as usize].contains(old))
        .unwrap_or_else(|| panic!("no `{old}` in the loop"));
    lines[at as usize] = lines[at as usize].replace(old, new);
    (lines.join("\n"), at + 1)
}

/// Plants a fault and looks for it on its own line.
#[track_caller]
fn finds(text: &str, expected: &Expectation, old: &str, new: &str, kind: Kind) {
    let (faulty, line) = plant(text, old, new);
    let report = check(&faulty, expected);
    // A change that adds a line in front moves the fault down by one.
    let near = line..=line + 2;
    assert!(
        report
            .findings
            .iter()
            .any(|f| f.kind == kind && near.contains(&f.line)),
        "`{old}` to `{new}` on line {line}: {report}"
    );
}

#[test]
fn the_compiled_gemm_is_what_its_schedule_says() {
    let report = check(GEMM, &gemm());
    assert!(report.passed(), "{report}");
    assert_eq!(report.vgprs, 232);
    assert_eq!(report.address_arithmetic, 4);
    let text = report.to_string();
    assert!(
        text.contains("8 copies [vmcnt(8)] barrier 24 reads [lgkmcnt(0)] barrier; 64 v_mfma"),
        "{text}"
    );
    let report = check(HALVES, &halves());
    assert!(report.passed(), "{report}");
}

#[test]
fn the_wait_that_the_compiler_adds_is_found() {
    let report = check(BUILTIN, &gemm());
    let kinds: Vec<Kind> = report.findings.iter().map(|f| f.kind).collect();
    assert_eq!(kinds, [Kind::ExtraWait], "{report}");
    let finding = &report.findings[0];
    assert_eq!(finding.text, "s_waitcnt vmcnt(0)");
    assert_eq!(
        finding.to_string(),
        format!(
            "line {}: `s_waitcnt vmcnt(0)`: a wait that the schedule did not ask for",
            finding.line
        )
    );
}

#[test]
fn a_looser_or_stricter_wait_is_found() {
    for (count, kind) in [
        (0, Kind::StricterWait),
        (7, Kind::StricterWait),
        (9, Kind::WrongWait),
        (16, Kind::WrongWait),
    ] {
        let new = format!("vmcnt({count})");
        finds(GEMM, &gemm(), "vmcnt(8)", &new, kind);
    }
    finds(
        HALVES,
        &halves(),
        "lgkmcnt(12)",
        "lgkmcnt(13)",
        Kind::WrongWait,
    );
    finds(
        HALVES,
        &halves(),
        "lgkmcnt(12)",
        "lgkmcnt(11)",
        Kind::StricterWait,
    );
}

#[test]
fn a_dropped_wait_is_found_twice_over() {
    let (faulty, _) = plant(GEMM, "s_waitcnt lgkmcnt(0)", "s_nop 0");
    let report = check(&faulty, &gemm());
    assert!(report.has(Kind::MissingWait), "{report}");
    // The multiplications then use registers that the reads may not have filled.
    assert!(report.has(Kind::Pending), "{report}");
    let (faulty, _) = plant(GEMM, "s_waitcnt vmcnt(8)", "s_nop 0");
    let report = check(&faulty, &gemm());
    assert!(report.has(Kind::MissingWait), "{report}");
    assert!(!report.has(Kind::Pending), "{report}");
}

#[test]
fn a_looser_count_of_reads_leaves_a_register_pending() {
    let (faulty, _) = plant(HALVES, "lgkmcnt(12)", "lgkmcnt(13)");
    let report = check(&faulty, &halves());
    let pending: Vec<_> = report
        .findings
        .iter()
        .filter(|f| f.kind == Kind::Pending)
        .collect();
    assert!(!pending.is_empty(), "{report}");
    assert!(
        pending.iter().all(|f| f.text.starts_with("v_mfma")),
        "{report}"
    );
}

#[test]
fn an_added_fence_or_barrier_is_found() {
    let fence = "s_waitcnt vmcnt(0) lgkmcnt(0)\n\ts_barrier";
    let (faulty, _) = plant(GEMM, "ds_read_b128", &format!("{fence}\n\tds_read_b128"));
    let report = check(&faulty, &gemm());
    assert!(
        report.has(Kind::ExtraWait) || report.has(Kind::ExtraBarrier),
        "{report}"
    );
    finds(
        GEMM,
        &gemm(),
        "s_barrier",
        "s_barrier\n\ts_barrier",
        Kind::ExtraBarrier,
    );
    finds(GEMM, &gemm(), "s_barrier", "s_nop 0", Kind::MissingBarrier);
}

#[test]
fn work_on_the_wrong_side_of_a_wait_is_found() {
    // The last copy moves behind the wait that counts it.
    let program = parse(GEMM).unwrap();
    let kernel = program.kernels().next().unwrap();
    let hot = kernel.hot_loop().unwrap();
    let copy = hot
        .body(kernel)
        .into_iter()
        .rfind(|i| i.is_lds_copy())
        .unwrap();
    let mut lines: Vec<&str> = GEMM.lines().collect();
    let line = lines.remove(copy.line as usize - 1);
    let wait = (copy.line as usize - 1..lines.len())
        .find(|i| lines[*i].contains("vmcnt(8)"))
        .unwrap();
    lines.insert(wait + 1, line);
    let report = check(&lines.join("\n"), &gemm());
    assert!(report.has(Kind::MovedWork), "{report}");
}

/// A matrix instruction before the barrier that it belongs behind, and a priority that nobody asked for.
#[test]
fn products_of_other_clusters_are_found() {
    let expected = Expectation {
        clusters: vec![Mark::Barrier, Mark::Barrier, Mark::Products(64)],
        ..gemm()
    };
    assert!(check(GEMM, &expected).passed());
    let mut lines: Vec<&str> = GEMM.lines().collect();
    let product = lines.iter().position(|l| l.contains("v_mfma")).unwrap();
    let barriers = lines[..product].iter().enumerate();
    let mut barriers = barriers.filter(|(_, l)| l.contains("s_barrier")).rev();
    let last = barriers.next().unwrap().0;
    let moved = lines.remove(product);
    lines.insert(last, moved);
    let report = check(&lines.join("\n"), &expected);
    let at = |kind| {
        report
            .findings
            .iter()
            .find(|f| f.kind == kind)
            .map(|f| f.line)
    };
    assert_eq!(at(Kind::MovedProduct), Some(last as u32 + 1), "{report}");
    let (faulty, _) = plant(GEMM, "s_barrier", "s_barrier\n\ts_setprio 1");
    assert!(check(&faulty, &expected).has(Kind::MovedProduct));
}

#[test]
fn slow_instructions_are_found() {
    finds(
        GEMM,
        &gemm(),
        "v_mfma_f32_16x16x32_bf16",
        "v_mfma_f32_16x16x16_bf16",
        Kind::HalfRate,
    );
    let (faulty, _) = plant(GEMM, "v_mfma_f32_16x16x32_bf16", "v_mfma_f32_16x16x16_bf16");
    assert!(check(&faulty, &gemm()).has(Kind::Count));
    finds(
        GEMM,
        &gemm(),
        "s_barrier",
        "s_barrier\n\tv_accvgpr_write_b32 a0, v0",
        Kind::AccumulatorMove,
    );
    finds(
        GEMM,
        &gemm(),
        "s_barrier",
        "s_barrier\n\tv_readfirstlane_b32 s40, v0",
        Kind::LaneRead,
    );
}

#[test]
fn address_arithmetic_is_counted_through_registers_and_around_the_loop() {
    let mut expected = gemm();
    expected.address_arithmetic = 3;
    let report = check(GEMM, &expected);
    assert!(report.has(Kind::AddressArithmetic), "{report}");
    // A copy's own offset that changes in the loop, written behind its use.
    let program = parse(GEMM).unwrap();
    let kernel = program.kernels().next().unwrap();
    let body = kernel.hot_loop().unwrap().body(kernel);
    let copy = body.iter().find(|i| i.is_lds_copy()).unwrap();
    let offset = copy
        .text
        .split_whitespace()
        .nth(1)
        .unwrap()
        .trim_end_matches(',');
    let added = format!("s_barrier\n\tv_add_u32_e32 {offset}, 0x80, {offset}");
    let (faulty, _) = plant(GEMM, "s_barrier", &added);
    let report = check(&faulty, &gemm());
    assert_eq!(report.address_arithmetic, 5, "{report}");
    // Arithmetic that reaches no address is free.
    let (other, _) = plant(
        GEMM,
        "s_barrier",
        "s_barrier\n\tv_add_u32_e32 v255, 1, v255",
    );
    assert_eq!(check(&other, &gemm()).address_arithmetic, 4);
}

#[test]
fn too_many_registers_for_the_occupancy_are_found() {
    let mut expected = gemm();
    expected.vgprs = Some(vgprs_at(3));
    let report = check(GEMM, &expected);
    assert!(report.has(Kind::Registers), "{report}");
    assert_eq!(
        (vgprs_at(1), vgprs_at(2), vgprs_at(3), vgprs_at(8)),
        (512, 256, 168, 64)
    );
}

#[test]
fn spills_and_scratch_are_found() {
    let report = check(SPILL, &Expectation::default());
    assert!(
        report.has(Kind::Scratch) && report.has(Kind::Spill),
        "{report}"
    );
    let first = report.findings.iter().find(|f| f.line > 0).unwrap();
    assert!(first.text.starts_with("scratch_"), "{first}");
    // What is said of the kernel as a whole is not one more instruction.
    let of_scratch = |g: &&Vec<&Finding>| g[0].kind == Kind::Scratch;
    let groups = report.alike();
    let (lines, whole): (Vec<_>, Vec<_>) =
        (groups.iter().filter(of_scratch)).partition(|g| g[0].line > 0);
    let accesses = SPILL.matches("scratch_").count();
    assert_eq!((lines.len(), whole.len()), (1, 1), "{report}");
    assert!(accesses > 1 && lines[0].len() == accesses, "{report}");
    assert_eq!(groups.iter().flatten().count(), report.findings.len());
}

/// The lines of each rule that was broken.
fn groups(report: &Report, kind: Kind) -> Vec<Vec<u32>> {
    let groups = report.alike().into_iter().filter(|g| g[0].kind == kind);
    groups.map(|g| g.iter().map(|f| f.line).collect()).collect()
}

#[test]
fn each_rule_that_is_broken_is_said() {
    // Two of one row of the table, one of another.
    let text = "\
f:
\tv_readfirstlane_b32 s4, v0
\tglobal_load_dword v1, v2, s[4:5]
\tv_readlane_b32 s6, v0, 3
\tglobal_load_dword v1, v2, s[6:7]
\tv_readfirstlane_b32 s8, v0
\tv_readlane_b32 s5, v1, s8
\ts_endpgm
";
    let program = parse(text).unwrap();
    let report = audit(
        &program.functions[0],
        "gfx950",
        &Expectation {
            drained: false,
            ..Expectation::default()
        },
    );
    assert_eq!(
        groups(&report, Kind::Hazard),
        [vec![3, 5], vec![7]],
        "{report}"
    );
    // Waits for different counters.
    let (faulty, _) = plant(GEMM, "s_waitcnt vmcnt(8)", "s_nop 0");
    let (faulty, _) = plant(&faulty, "s_waitcnt lgkmcnt(0)", "s_nop 0");
    let report = check(&faulty, &gemm());
    assert_eq!(groups(&report, Kind::MissingWait).len(), 2, "{report}");
}

/// A wave that has more copies under way than the counter holds has a wait that asks for nothing.
#[test]
fn a_wait_for_nothing_is_none() {
    let all = "s_waitcnt vmcnt(63) expcnt(7) lgkmcnt(15)";
    let (text, _) = plant(GEMM, "s_barrier", &format!("{all}\n\ts_barrier"));
    let mut expected = gemm();
    for wait in [None, Some(Wait::vm(63)), Some(Wait::lgkm(15))] {
        if let Some(wait) = wait {
            expected.steps.insert(2, Step::Wait(wait));
        }
        let report = check(&text, &expected);
        assert!(report.passed(), "{report}");
    }
}

/// A compiler that has values of its own to wait for does so between the copies of a cluster.
#[test]
fn own_waits_stand_between_copies() {
    let mut expected = gemm();
    expected.own_waits.vmcnt = true;
    let (split, _) = plant(GEMM, "offen lds", "offen lds\n\ts_waitcnt vmcnt(0)");
    assert!(check(&split, &gemm()).has(Kind::ExtraWait));
    let report = check(&split, &expected);
    assert!(report.passed(), "{report}");
    for (old, new) in [
        ("s_waitcnt vmcnt(8)", "s_waitcnt vmcnt(9)"),
        ("s_waitcnt vmcnt(8)", "s_nop 0"),
        ("s_waitcnt lgkmcnt(0)", "s_nop 0"),
        ("s_barrier", "s_nop 0"),
    ] {
        let (faulty, _) = plant(&split, old, new);
        let report = check(&faulty, &expected);
        let wrong = report.findings.iter().any(|f| !f.kind.is_cost());
        assert!(wrong, "`{old}`: {report}");
    }
}

#[test]
fn a_hazard_inside_inline_assembly_is_found() {
    // The copy's scalar offset straight from a vector instruction.
    let copy = |before: &str| {
        format!(
            "\t.amdgcn_target \"amdgcn-amd-amdhsa--gfx950\"\nf:\n\ts_mov_b32 m0, s9\n{before}\
             \t;;#ASMSTART\n\ts_nop 0\n\tbuffer_load_dwordx4 v1, s[0:3], s4 offen lds\n\
             \t;;#ASMEND\n\ts_endpgm\n"
        )
    };
    let hazards = |text: &str| {
        let program = parse(text).unwrap();
        let report = audit(&program.functions[0], "gfx950", &Expectation::default());
        report
            .findings
            .iter()
            .filter(|f| f.kind == Kind::Hazard)
            .count()
    };
    assert_eq!(hazards(&copy("")), 0);
    assert_eq!(hazards(&copy("\tv_readfirstlane_b32 s4, v0\n")), 1);
    assert_eq!(
        hazards(&copy("\tv_readfirstlane_b32 s4, v0\n\ts_nop 2\n")),
        1
    );
    assert_eq!(
        hazards(&copy("\tv_readfirstlane_b32 s4, v0\n\ts_nop 3\n")),
        0
    );
    assert_eq!(hazards(&copy("\tv_readfirstlane_b32 s8, v0\n")), 0);
    // A scalar instruction in between waits by itself.
    assert_eq!(
        hazards(&copy("\tv_readfirstlane_b32 s4, v0\n\ts_mov_b32 s4, s9\n")),
        0
    );
    let no_nop = copy("").replace("\ts_nop 0\n", "");
    assert_eq!(hazards(&no_nop), 1);
}

/// Damaged text is an error or read as something else, and never a panic.
#[test]
fn any_text_can_be_read() {
    let lines: Vec<&str> = GEMM.lines().collect();
    let junk = [
        "]",
        "(",
        "v[",
        "s[9:0]",
        "-",
        "0x",
        ":",
        ",,",
        "é",
        "vmcnt(",
        "\t.amdgpu_metadata",
    ];
    for (at, line) in lines.iter().enumerate().step_by(7) {
        let piece = junk[at % junk.len()];
        for cut in [0, line.len() / 2, line.len()] {
            let mut damaged: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
            damaged[at] = format!("{}{piece}{}", &line[..cut], &line[cut..]);
            if let Ok(program) = parse(&damaged.join("\n")) {
                for function in &program.functions {
                    audit(function, "gfx950", &gemm());
                }
            }
        }
    }
}

#[test]
fn a_kernel_without_the_expected_loop_is_named() {
    let text = GEMM.replace("s_cbranch_scc0 .LBB0_", "s_cbranch_scc0 .LBB9_");
    let text = text.replace("s_cbranch_scc1 .LBB0_", "s_cbranch_scc1 .LBB9_");
    let report = check(&text, &gemm());
    assert!(report.has(Kind::Shape), "{report}");
}
