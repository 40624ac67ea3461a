//! What cannot be run is refused with a name and a place; what is found says where and when.

use tilewright_ir::Target;
use tilewright_sim::Watch;
use tilewright_sim::simt::{self, FindingKind, SimtOptions};
use tilewright_sim::{InputSpec, make_inputs};

use crate::common::{Module, ways};

/// The code of the refusal, and the line it points to.
fn refused(target: Target, text: &str) -> (String, usize) {
    let module = Module::parse("refused.tw", text);
    let mut args = make_inputs(module.func(), &InputSpec::default()).expect("inputs can be made");
    match simt::run(module.func(), target, &mut args, &SimtOptions::default()) {
        Ok(_) => panic!("it ran"),
        Err(e) => {
            let d = e.diagnostics.iter().next().expect("a diagnostic");
            let line = module
                .sources
                .line_col(d.primary.span)
                .map_or(0, |(l, _)| l);
            (d.code.to_string(), line)
        }
    }
}

fn body(lines: &str) -> String {
    format!(
        "func @f level=loop {{
  param A: float16[64, 64]
  kernel grid(bx: 1) threads(tx: 64, ty: 1, tz: 1) {{
{lines}
  }}
}}
"
    )
}

#[test]
fn what_is_not_lowered_is_refused() {
    let text = "func @f level=tile {
  kernel grid(bx: 1) threads(tx: 64, ty: 1, tz: 1) {
  }
}
";
    assert_eq!(refused(Target::Sm80, text).0, "not-lowered");
    let fragment = body("    alloc F: fragment float32[4]\n    F[0] = 1.0");
    assert_eq!(refused(Target::Sm80, &fragment), ("not-lowered".into(), 4));
    let tile = body(
        "    alloc S: shared float16[64, 64]\n    copy A[0 +: 64, 0 +: 64] -> S[0 +: 64, 0 +: 64]",
    );
    assert_eq!(refused(Target::Sm80, &tile), ("not-lowered".into(), 5));
    let parallel = body("    for i in parallel(64) {\n    }");
    assert_eq!(refused(Target::Sm80, &parallel), ("not-lowered".into(), 4));
}

#[test]
fn targets_have_only_their_own_instructions() {
    let matrix = body(
        "    alloc S: shared float16[64, 64]
    alloc R: local float16[8]
    s2r S[0 +: 64, 0 +: 64] at [tx, 0] -> R[0 +: 8] at [0] inst=\"ldmatrix.x4\" width=1",
    );
    assert_eq!(refused(Target::Gfx942, &matrix), ("unsupported".into(), 6));
    let copy = body(
        "    alloc S: shared float16[64, 64]
    g2s A[0 +: 64, 0 +: 64] at [tx, 0] -> S[0 +: 64, 0 +: 64] at [tx, 0] inst=\"cp.async\" width=8",
    );
    assert_eq!(refused(Target::Gfx950, &copy), ("unsupported".into(), 5));
    let mma = body(
        "    alloc R: local float16[8]
    alloc C: local float32[4]
    mma R[0 +: 8] at [0], R[0 +: 8] at [0] -> C[0 +: 4] at [0] inst=\"mfma.16x16x32.float16.float32\" width=1",
    );
    assert_eq!(refused(Target::Gfx942, &mma), ("unsupported".into(), 6));
    assert_eq!(refused(Target::Sm80, &mma), ("unsupported".into(), 6));
}

#[test]
fn limits_are_kept() {
    let large = body("    alloc S: shared float32[64, 1024]\n    S[tx, 0] = 1.0");
    assert_eq!(refused(Target::Sm80, &large).0, "shared-memory-size");
    let threads = "func @f level=loop {
  kernel grid(bx: 1) threads(tx: 2048, ty: 1, tz: 1) {
  }
}
";
    assert_eq!(refused(Target::Sm80, threads), ("launch-extent".into(), 2));
    let layout = body(
        "    alloc S: shared float32[64, 64] layout=map(i, j) -> (i // 2, j)\n    S[tx, 0] = 1.0",
    );
    assert_eq!(refused(Target::Sm80, &layout), ("buffer-layout".into(), 4));
}

#[test]
fn ill_formed_micro_ops_are_refused() {
    let types = body(
        "    alloc R: local float32[8]
    g2r A[0 +: 64, 0 +: 64] at [tx, 0] -> R[0 +: 8] at [0] inst=\"load\" width=8",
    );
    assert_eq!(refused(Target::Sm80, &types), ("invalid-ir".into(), 5));
    let scopes = body(
        "    alloc R: local float16[8]
    r2g R[0 +: 8] at [0] -> A[0 +: 64, 0 +: 64] at [tx, 0] inst=\"load\" width=8",
    );
    assert_eq!(refused(Target::Sm80, &scopes), ("invalid-ir".into(), 5));
    let rank = body(
        "    alloc R: local float16[8]
    g2r A[0 +: 64, 0 +: 64] at [tx] -> R[0 +: 8] at [0] inst=\"load\" width=8",
    );
    assert_eq!(refused(Target::Sm80, &rank), ("invalid-ir".into(), 5));
    let foreign = body("    extern \"f\"(): handle");
    assert_eq!(refused(Target::Sm80, &foreign), ("foreign-code".into(), 4));
}

/// A race names both statements, both threads, and the iterations they were in.
#[test]
fn races_say_who_and_when() {
    let text = "func @f level=loop {
  output C: int32[3, 64]
  kernel grid(bx: 2) threads(tx: 64, ty: 1, tz: 1) {
    alloc S: shared int32[64]
    for k in serial(0, 3) {
      S[tx] = tx + k
      barrier block
      C[k, tx] = S[(tx + 32) % 64]
    }
  }
}
";
    let module = Module::parse("race.tw", text);
    for opts in ways() {
        let outcome = module.simulate(Target::Sm80, &InputSpec::default(), &opts);
        let [finding] = outcome.report.findings.as_slice() else {
            panic!("{:?}", outcome.report.findings);
        };
        assert_eq!(finding.kind, FindingKind::ReadWriteRace);
        let [other] = finding.others.as_slice() else {
            panic!("{finding}");
        };
        let (a, b) = (finding.place.thread, other.thread);
        let apart = a.zip(b).map(|(a, b)| a.abs_diff(b));
        assert_eq!(apart, Some(32), "{finding}");
        assert_eq!(finding.place.block, [0]);
        // The write is one iteration later than the read that it spoils.
        let turn = |p: &simt::FindingPlace| p.iteration[0].1;
        let (first, second) = (turn(&finding.place), turn(other));
        assert_eq!(first.abs_diff(second), 1, "{finding}");
        assert_eq!(finding.place.iteration[0].0, "k");
        // Two iterations, two blocks, 64 elements.
        assert_eq!(finding.count, 2 * 2 * 64, "{finding}");
        let shown = finding.to_diagnostic().render(&module.sources, false);
        for part in ["race.tw", "S[tx] = tx + k", "C[k, tx] =", "k = 0", "thread"] {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
    }
}

#[test]
fn a_loop_without_end_is_cut_off() {
    let text =
        body("    alloc x: var int32\n    x[] = 1\n    while x[] > 0 {\n      x[] = 1\n    }");
    let module = Module::parse("endless.tw", &text);
    let opts = SimtOptions {
        step_limit: 10_000,
        ..SimtOptions::default()
    };
    let outcome = module.simulate(Target::Sm80, &InputSpec::default(), &opts);
    let kinds: Vec<FindingKind> = outcome.report.findings.iter().map(|f| f.kind).collect();
    assert_eq!(kinds, [FindingKind::StepLimit]);
}

#[test]
fn reports_are_limited() {
    let lines: String = (0..10)
        .map(|i| format!("    S[tx + {}] = 1.0\n", i + 64))
        .collect();
    let text = body(&format!("    alloc S: shared float32[64]\n{lines}"));
    let module = Module::parse("many.tw", &text);
    let opts = SimtOptions {
        max_reports: 3,
        ..SimtOptions::default()
    };
    let outcome = module.simulate(Target::Sm80, &InputSpec::default(), &opts);
    assert_eq!(outcome.report.findings.len(), 3);
    assert_eq!(outcome.report.dropped, 7 * 2);
    let opts = SimtOptions {
        first_only: true,
        ..SimtOptions::default()
    };
    let outcome = module.simulate(Target::Sm80, &InputSpec::default(), &opts);
    assert_eq!(outcome.report.findings.len(), 1);
    assert_eq!(outcome.report.dropped, 0);
}

/// The races between blocks that the simulator finds, by message.
fn block_races(body: &str) -> Vec<String> {
    let text = format!(
        "func @f level=loop {{
  param A: int32[128]
  output O: int32[128]
  kernel grid(bx: 2) threads(tx: 64, ty: 1, tz: 1) {{
{body}
  }}
}}"
    );
    let module = Module::parse("blocks.tw", &text);
    let outcome = module.simulate(Target::Sm80, &InputSpec::default(), &SimtOptions::default());
    assert_eq!(outcome.report.kernels[0].watch, Watch::Watched);
    let found = outcome.report.races.iter().map(|d| d.message.clone());
    found.collect()
}

#[test]
fn races_between_blocks_are_found_in_lowered_code() {
    assert_eq!(
        block_races("O[tx] = bx"),
        ["two blocks write different values to one element of `O`"]
    );
    let reads = "a block reads an element of `A` that another one writes";
    assert_eq!(
        block_races("A[bx * 64 + tx] = A[(bx * 64 + tx + 64) % 128] + 1"),
        [reads]
    );
    assert_eq!(block_races("O[bx * 64 + tx] = A[tx]"), [""; 0]);
    let apart = "O[bx * 64 + tx] = tx\nsync_grid\nA[bx * 64 + tx] = O[127 - bx * 64 - tx]";
    assert_eq!(block_races(apart), [""; 0]);
    assert_eq!(block_races(&apart.replace("sync_grid\n", "")).len(), 1);
}

#[test]
fn a_sample_writes_a_part_of_the_result() {
    let text = "func @f level=loop {
  param A: int32[256]
  param O: int32[256]
  kernel grid(bx: 8) threads(tx: 32, ty: 1, tz: 1) {
    O[bx * 32 + tx] = A[bx * 32 + tx] + 1
  }
}";
    let module = Module::parse("sample.tw", text);
    let whole = module.simulate(Target::Sm80, &InputSpec::default(), &SimtOptions::default());
    let opts = SimtOptions {
        sample: Some(2),
        ..SimtOptions::default()
    };
    let part = module.simulate(Target::Sm80, &InputSpec::default(), &opts);
    let cover = part.report.kernels[0];
    assert_eq!((cover.ran, cover.blocks), (2, 8));
    let (whole, part) = (whole.args.tensor("O"), part.args.tensor("O"));
    let (whole, part) = (whole.expect("O"), part.expect("O"));
    assert_eq!(part.count_unwritten(), 6 * 32);
    for i in (0..32).chain(7 * 32..256) {
        assert_eq!(part.get(i), whole.get(i));
    }
}
