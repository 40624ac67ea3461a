//! Instruction counts and bank conflicts.

use tilewright_ir::Target;
use tilewright_sim::InputSpec;
use tilewright_sim::simt::{Counts, InstKind};

use crate::common::{Module, ways};

/// Counts of a kernel that stores `S[row, column]` and loads it back, 4 bytes a lane, with a
/// row length and a layout.
fn strided(target: Target, threads: u32, row: u32, layout: &str) -> Counts {
    let text = format!(
        "func @f level=loop {{
  output C: float32[{threads}]
  kernel grid(bx: 1) threads(tx: {threads}, ty: 1, tz: 1) {{
    alloc S: shared float32[{threads}, {row}]{layout}
    S[tx, 0] = 1.0
    C[tx] = S[tx, 0]
  }}
}}
"
    );
    let outcome =
        Module::parse("strided", &text).simulate(target, &InputSpec::default(), &ways()[0]);
    outcome.assert_clean();
    outcome.report.counts
}

#[test]
fn strides_conflict_as_the_banks_say() {
    // On NVIDIA a stride of 2^n words is a conflict of 2^n lanes; each costs a turn.
    for (row, turns) in [(1, 1), (2, 2), (4, 4), (32, 32), (33, 1), (3, 1)] {
        let counts = strided(Target::Sm80, 32, row, "");
        assert_eq!(counts.shared_transactions, 2 * turns, "row of {row}");
        assert_eq!(counts.bank_conflicts, 2 * (turns - 1), "row of {row}");
        assert_eq!(counts.instructions(InstKind::SharedLoad), 1);
        assert_eq!(counts.instructions(InstKind::SharedStore), 1);
        assert_eq!(counts.instructions(InstKind::GlobalStore), 1);
    }
    // Padding takes the conflicts away.
    let counts = strided(Target::Sm80, 32, 32, " layout=padded(1)");
    assert_eq!(counts.bank_conflicts, 0);
}

/// What the simulator counts is what the layout crate counts for the same addresses.
#[test]
fn counts_agree_with_the_layout_crate() {
    use tilewright_layout::banks::{Kind, cost};
    for target in Target::ALL {
        let lanes = target.machine().warp_size;
        for row in [1, 2, 3, 5, 8, 16, 31, 32, 64] {
            let addresses: Vec<Option<u32>> = (0..lanes).map(|l| Some(l * row * 4)).collect();
            let price = |kind| cost(target, kind, 4, &addresses).expect("a plain access");
            let both = price(Kind::Read) + price(Kind::Write);
            let counts = strided(target, lanes, row, "");
            assert_eq!(
                counts.shared_transactions,
                u64::from(both.cycles),
                "{target} {row}"
            );
            assert_eq!(
                counts.bank_conflicts,
                u64::from(both.conflicts()),
                "{target} {row}"
            );
        }
    }
}

/// `ldmatrix` of a row-major tile of 64-element rows meets in the banks; the swizzle does not.
#[test]
fn swizzles_free_ldmatrix_of_conflicts() {
    for (layout, conflicts) in [
        ("", 4 * 7),
        (" layout=swizzle(16; 0 -> 0, 1 -> 1, 2 -> 2)", 0),
    ] {
        let text = format!(
            "func @f level=loop {{
  kernel grid(bx: 1) threads(tx: 32, ty: 1, tz: 1) {{
    alloc S: shared float16[16, 64]{layout}
    alloc R: local float16[8]
    for e in unroll(0, 32) {{
      S[e // 2, e % 2 * 32 + tx] = 1.0:float16
    }}
    sync_warp
    s2r S[0 +: 16, 0 +: 64] at [tx % 16, tx // 16 * 8] -> R[0 +: 8] at [0] inst=\"ldmatrix.x4\" width=1
  }}
}}
"
        );
        let module = Module::parse("swizzle", &text);
        let outcome = module.simulate(Target::Sm80, &InputSpec::default(), &ways()[0]);
        outcome.assert_clean();
        let matrix = outcome
            .report
            .statements
            .iter()
            .find(|s| s.what == "ldmatrix.x4");
        let matrix = matrix.expect("it was counted").counts;
        assert_eq!(matrix.bank_conflicts, conflicts, "{layout}");
        assert_eq!(matrix.shared_transactions, 4 + conflicts, "{layout}");
    }
}

/// Work is counted for every warp and turn, under the statement that did it.
#[test]
fn statements_have_counts_of_their_own() {
    let text = "func @f level=loop {
  output C: float32[3, 96]
  kernel grid(bx: 3) threads(tx: 96, ty: 1, tz: 1) {
    alloc S: shared float32[96]
    for k in serial(0, 5) {
      S[tx] = 1.0
    }
    barrier block
    C[bx, tx] = S[tx] + S[95 - tx]
  }
}
";
    let module = Module::parse("statements", text);
    let outcome = module.simulate(Target::Sm80, &InputSpec::default(), &ways()[0]);
    let of = |line: usize, kind| {
        let found = outcome
            .report
            .statements
            .iter()
            .find(|s| module.sources.line_col(s.span).map(|(l, _)| l) == Some(line));
        found.map_or(0, |s| s.counts.instructions(kind))
    };
    assert_eq!(of(6, InstKind::SharedStore), 3 * 3 * 5);
    assert_eq!(of(8, InstKind::Barrier), 3 * 3);
    assert_eq!(of(9, InstKind::SharedLoad), 3 * 3 * 2);
    assert_eq!(of(9, InstKind::GlobalStore), 3 * 3);
}
