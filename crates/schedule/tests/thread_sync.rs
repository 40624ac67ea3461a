//! Kernels in text form and where their barriers go.

use tilewright_ir::{Diagnostics, FileId, Severity, text};
use tilewright_schedule::thread_sync;

/// Runs ThreadSync on a loop-level kernel body with 128 threads and returns the body's lines.
fn sync(body: &str) -> (Vec<String>, Diagnostics) {
    let source = format!(
        "func @f level=loop {{\n  param A: float32[1024]\n  param B: float32[1024]\n  scalar n: int32\n  \
         kernel grid(bx: 8) threads(tx: 128, ty: 1, tz: 1) {{\n{body}\n  }}\n}}\n"
    );
    let mut func = match text::parse(&source, FileId(0)) {
        Ok(func) => func,
        Err(diags) => panic!("{:#?}\n{source}", diags),
    };
    let mut diags = Diagnostics::new();
    thread_sync(&mut func, 32, &mut diags);
    let printed = text::print(&func);
    let start = printed.find("kernel").unwrap_or(0);
    let lines = printed[start..].lines().skip(1);
    (lines.map(|l| l.trim().to_string()).collect(), diags)
}

/// The line before which each barrier stands.
fn barriers(body: &str) -> Vec<String> {
    let (lines, diags) = sync(body);
    assert!(diags.is_empty(), "{diags:?}");
    let mut found = Vec::new();
    for pair in lines.windows(2) {
        if pair[0].starts_with("barrier") {
            found.push(pair[1].clone());
        }
    }
    found
}

#[track_caller]
fn check(body: &str, expected: &[&str]) {
    assert_eq!(barriers(body), expected, "in\n{body}");
}

#[test]
fn a_read_of_what_another_thread_wrote_waits() {
    check(
        "alloc S: shared float32[128]\nS[tx] = A[tx]\nB[tx] = S[127 - tx]",
        &["B[tx] = S[127 - tx]"],
    );
}

#[test]
fn a_thread_needs_no_barrier_for_its_own_data() {
    check(
        "alloc S: shared float32[128]\nS[tx] = A[tx]\nB[tx] = S[tx]",
        &[],
    );
}

#[test]
fn threads_of_one_warp_need_no_block_barrier() {
    let body =
        "alloc S: shared float32[128]\nS[tx] = A[tx]\nB[tx] = S[tx // 32 * 32 + 31 - tx % 32]";
    check(body, &[]);
    let (lines, _) = sync(body);
    assert!(lines.contains(&"sync_warp".to_string()), "{lines:?}");
    // Between warps it is not enough.
    check(
        "alloc S: shared float32[128]\nS[tx] = A[tx]\nB[tx] = S[tx // 64 * 64 + 63 - tx % 64]",
        &["B[tx] = S[tx // 64 * 64 + 63 - tx % 64]"],
    );
}

#[test]
fn disjoint_halves_need_no_barrier() {
    check(
        "alloc S: shared float32[256]\nS[tx] = A[tx]\nB[tx] = S[tx + 128]",
        &[],
    );
}

#[test]
fn overwriting_what_others_still_read_waits() {
    check(
        "alloc S: shared float32[128]\nS[tx] = A[tx]\nlet x: float32 = S[127 - tx]\nS[tx] = x",
        &["let x: float32 = S[127 - tx]", "S[tx] = x"],
    );
}

#[test]
fn the_next_iteration_waits_for_this_one() {
    check(
        "alloc S: shared float32[128]\nfor k in serial(0, n) {\nS[tx] = A[k]\nB[tx] = S[127 - tx]\n}",
        &["S[tx] = A[k]", "B[tx] = S[127 - tx]"],
    );
}

#[test]
fn a_barrier_that_another_covers_goes() {
    // The next iteration's write of T needs a barrier, which then covers S as well.
    check(
        "alloc S: shared float32[128]\nalloc T: shared float32[128]\nfor k in serial(0, n) {\n\
         S[tx] = A[k]\nT[tx] = A[k + 1]\nlet x: float32 = S[127 - tx]\nsync_threads\n\
         B[tx] = x + T[127 - tx]\n}",
        &["T[tx] = A[k + 1]"],
    );
}

#[test]
fn a_loop_of_one_iteration_carries_nothing() {
    check(
        "alloc S: shared float32[128]\nfor k in serial(0, 1) {\nS[tx] = A[k]\nB[tx] = S[127 - tx]\n}",
        &["B[tx] = S[127 - tx]"],
    );
}

#[test]
fn unrolled_register_loops_are_one_unit() {
    check(
        "alloc S: shared float32[512]\nfor s in unroll(0, 4) {\nS[s * 128 + tx] = A[tx]\n}\n\
         for s in unroll(0, 4) {\nB[tx] = S[tx * 4 + s]\n}",
        &["for s in unroll(0, 4) {"],
    );
    check(
        "alloc S: shared float32[512]\nfor s in unroll(0, 4) {\nS[s * 128 + tx] = A[tx]\n}\n\
         for s in unroll(0, 4) {\nB[tx] = S[s * 128 + tx]\n}",
        &[],
    );
}

#[test]
fn barriers_stand_before_divergent_branches() {
    check(
        "alloc S: shared float32[128]\nS[tx] = A[tx]\nif tx < 64 {\nB[tx] = S[tx + 64]\n}",
        &["if tx < 64 {"],
    );
    // The guard tells who reads: only its own element.
    check(
        "alloc S: shared float32[128]\nif tx < 64 {\nS[tx] = A[tx]\n}\nif tx < 64 {\nB[tx] = S[tx]\n}",
        &[],
    );
}

#[test]
fn conditional_writes_are_writes() {
    check(
        "alloc S: shared float32[128]\nS[tx] = 0.0\nif n < 5 {\nS[127 - tx] = A[tx]\n}\nB[tx] = S[tx]",
        &["S[127 - tx] = A[tx]", "B[tx] = S[tx]"],
    );
}

#[test]
fn views_are_the_same_memory() {
    check(
        "alloc S: shared float32[128]\nview V: shared int32[128] of S\nS[tx] = A[tx]\n\
         let x: int32 = V[127 - tx]\nB[tx] = float32(x)",
        &["let x: int32 = V[127 - tx]"],
    );
}

#[test]
fn a_barrier_of_the_user_counts() {
    check(
        "alloc S: shared float32[128]\nS[tx] = A[tx]\nsync_threads\nB[tx] = S[127 - tx]",
        &[],
    );
}

#[test]
fn atomics_do_not_wait_for_atomics() {
    check(
        "alloc S: shared float32[128]\natomic_rmw add S[0], 1.0 relaxed\natomic_rmw add S[0], 2.0 relaxed\nB[tx] = S[0]",
        &["B[tx] = S[0]"],
    );
}

#[test]
fn an_exchange_inside_a_divergent_branch_is_an_error() {
    let (_, diags) =
        sync("alloc S: shared float32[128]\nif tx < 64 {\nS[tx] = A[tx]\nB[tx] = S[63 - tx]\n}");
    let found: Vec<_> = diags.iter().collect();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].severity, Severity::Error);
    assert_eq!(found[0].code.0, "divergent-hazard");
}

#[test]
fn micro_ops_are_seen() {
    let load = "g2s for c < 4 do A[0 +: 512] at [c * 128 + tx] -> S[0 +: 512] at [c * 128 + tx] inst=\"load\" width=1";
    check(
        &format!("alloc S: shared float32[512]\n{load}\nB[tx] = S[tx * 4]"),
        &["B[tx] = S[tx * 4]"],
    );
    check(
        &format!("alloc S: shared float32[512]\n{load}\nB[tx] = S[tx]"),
        &[],
    );
}

#[test]
fn a_warp_that_synchronised_on_one_way_only_has_not() {
    let body = "alloc S: shared float32[128]\nS[tx] = A[tx]\nif n > 3 { sync_warp }\n\
                B[tx] = S[tx // 32 * 32 + 31 - tx % 32]";
    let (lines, diags) = sync(body);
    assert!(diags.is_empty(), "{diags:?}");
    let syncs = lines.iter().filter(|l| l.contains("sync_warp")).count();
    assert_eq!(syncs, 2, "{lines:?}");
}

#[test]
fn a_divergent_hazard_is_said_once() {
    let body = "alloc S: shared float32[128]\nfor i in serial(0, 4) {\n\
                if tx < 64 {\nS[tx] = A[tx]\nB[tx] = S[63 - tx]\n}\n\
                S[127 - tx] = A[tx]\nB[tx] = S[tx]\n}";
    let (_, diags) = sync(body);
    assert_eq!(diags.iter().count(), 1, "{diags:?}");
}

/// The lines before which barriers stand, each with its barrier, in a kernel of 256 threads.
fn in_two_groups(body: &str) -> Vec<(String, String)> {
    let source = format!(
        "func @f level=loop {{\n  param A: float32[1024]\n  param B: float32[1024]\n  \
         kernel grid(bx: 8) threads(tx: 256, ty: 1, tz: 1) {{\n{body}\n  }}\n}}\n"
    );
    let mut func = text::parse(&source, FileId(0)).expect("it parses");
    let mut diags = Diagnostics::new();
    thread_sync(&mut func, 32, &mut diags);
    let printed = text::print(&func);
    let lines: Vec<&str> = printed.lines().map(str::trim).collect();
    lines
        .windows(2)
        .filter(|pair| pair[0].starts_with("barrier"))
        .map(|pair| (pair[0].to_string(), pair[1].to_string()))
        .collect()
}

#[test]
fn a_region_waits_with_the_block_for_what_the_block_has_done() {
    // The group's own barrier would not wait for the other group's writes.
    let found = in_two_groups(
        "alloc S: shared float32[256]\nS[tx] = A[tx]\nwarp_group 0 {\n  B[tx] = S[255 - tx]\n}",
    );
    let wanted = [("barrier block".to_string(), "warp_group 0 {".to_string())];
    assert_eq!(found, wanted);
}

#[test]
fn what_a_region_does_stays_open_to_the_block() {
    let found = in_two_groups(
        "alloc S: shared float32[128]\nalloc T: shared float32[128]\nwarp_group 0 {\n  \
         S[tx] = A[tx]\n  T[127 - tx] = S[127 - tx]\n}\nB[tx] = S[tx % 128]",
    );
    let kinds: Vec<(&str, &str)> = found
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    assert_eq!(
        kinds,
        [
            ("barrier named(1, 128)", "T[127 - tx] = S[127 - tx]"),
            ("barrier block", "B[tx] = S[tx % 128]"),
        ]
    );
}

#[test]
fn regions_beside_each_other_meet_at_the_users_barriers() {
    let found = in_two_groups(
        "alloc S: shared float32[128]\nwarp_group 0 {\n  S[tx] = A[tx]\n  sync_threads id=1 count=256\n}\n\
         warp_group 1 {\n  sync_threads id=1 count=256\n  B[tx] = S[255 - tx]\n}",
    );
    assert_eq!(found, []);
}

#[test]
fn the_block_waits_before_the_first_of_regions_side_by_side() {
    let regions = "warp_group 1 {\n  mbarrier_wait full[0] parity=0\n}\n\
                   warp_group 0 {\n  B[tx] = S[255 - tx]\n  mbarrier_arrive full[0]\n}";
    let wanted = [("barrier block".to_string(), "warp_group 1 {".to_string())];
    let before = "alloc S: shared float32[256]\n\
                  alloc full: barrier uint64[1] arrivals=[128]\nS[tx] = A[tx]";
    assert_eq!(in_two_groups(&format!("{before}\n{regions}")), wanted);
    // Between two regions nobody waits, whatever the second needs.
    let found = in_two_groups(&format!(
        "{before}\nfor k in serial(0, 4) {{\n{regions}\n}}"
    ));
    let wanted = [(
        "barrier block".to_string(),
        "for k in serial(0, 4) {".to_string(),
    )];
    assert_eq!(found, wanted);
}

#[test]
fn a_condition_that_is_not_counted_out_is_no_certain_exchange() {
    check(
        "alloc S: shared float32[128]\nif float32(tx) < 64.0 {\nS[tx] = A[tx]\n}\nif float32(tx) < 1.0 {\nS[0] = A[tx]\n}",
        &["if float32(tx) < 1.0 {"],
    );
}

#[test]
fn nothing_is_read_where_a_predicate_is_false() {
    let read = |below: u32| {
        format!(
            "alloc S: shared float32[128]\nalloc r: local float32[1]\nS[tx] = A[tx]\n\
             s2r S[0 +: 128] at [tx + tx // 64 * 32] -> r[0] at [0] inst=\"load\" width=1 pred=(tx < {below}) otherwise=0.0\n\
             B[tx] = r[0]"
        )
    };
    check(&read(64), &[]);
    check(
        &read(65),
        &[
            "s2r S[0 +: 128] at [tx + tx // 64 * 32] -> r[0] at [0] inst=\"load\" width=1 pred=(tx < 65) otherwise=0.0",
        ],
    );
}

#[test]
fn a_region_waits_for_what_its_own_groups_did_before() {
    let found = in_two_groups(
        "alloc S: shared float32[128]\nalloc full: barrier uint64[1] arrivals=[128]\n\
         warp_group 0 {\n  S[tx] = A[tx]\n  mbarrier_arrive full[0]\n}\n\
         warp_group 1 {\n  mbarrier_wait full[0] parity=0\n}\n\
         warp_group 0 {\n  B[tx] = S[127 - tx]\n  mbarrier_arrive full[0]\n}",
    );
    let wanted = [(
        "barrier named(1, 128)".to_string(),
        "B[tx] = S[127 - tx]".to_string(),
    )];
    assert_eq!(found, wanted);
}

#[test]
fn a_variable_of_some_groups_is_not_the_blocks() {
    let body = "alloc S: shared float32[256]\nalloc v: var int32\nv[] = 0\n\
                warp_group 0 {\n  v[] = 1\n}\nS[tx] = A[tx]\nif v[] == 1 {\n  B[tx] = S[255 - tx]\n}";
    let wanted = [("barrier block".to_string(), "if v[] == 1 {".to_string())];
    assert_eq!(in_two_groups(body), wanted);
}

#[test]
fn no_barrier_stands_in_a_loop_that_threads_leave_apart() {
    let around = |leave: &str, rest: &str| {
        format!(
            "alloc S: shared float32[128]\nS[tx] = A[tx]\nfor i in serial(0, 4) {{\n\
             if tx < i * 16 {{\n{leave}\n}}\n{rest}\n}}"
        )
    };
    // What others wrote before the loop is waited for before it.
    check(
        &around("break", "B[tx] = S[127 - tx]"),
        &["for i in serial(0, 4) {"],
    );
    check(&around("break", "S[tx] = A[i]\nB[tx] = S[tx]"), &[]);
    for leave in ["break", "continue"] {
        let (lines, diags) = sync(&around(leave, "S[tx] = A[i]\nB[tx] = S[127 - tx]"));
        let codes: Vec<&str> = diags.iter().map(|d| d.code.0).collect();
        assert_eq!(codes, ["divergent-hazard"], "{lines:?}");
    }
}

#[test]
fn threads_that_go_on_early_come_to_the_next_iterations_barrier() {
    check(
        "alloc S: shared float32[128]\nfor i in serial(0, 4) {\nS[tx] = A[i]\n\
         if tx < i * 16 {\ncontinue\n}\nB[tx] = S[127 - tx]\n}",
        &["S[tx] = A[i]", "if tx < i * 16 {"],
    );
}

#[test]
fn a_variable_varies_that_only_some_threads_have_gone_on_counting() {
    check(
        "alloc S: shared float32[128]\nalloc v: var int32\nv[] = 0\nfor i in serial(0, 4) {\n\
         if tx < i * 16 {\nbreak\n}\nv[] = i\n}\nS[tx] = A[tx]\nif v[] == 1 {\nB[tx] = S[127 - tx]\n}",
        &["if v[] == 1 {"],
    );
}

#[test]
fn a_place_moves_with_the_variable_that_it_is_computed_from() {
    let body = |between: &str| {
        format!(
            "alloc S: shared float32[256]\nalloc v: var int32\nv[] = n\n\
             S[v[] + tx] = A[tx]\n{between}\nB[tx] = S[v[] + tx]"
        )
    };
    check(&body("v[] = v[] + 1"), &["B[tx] = S[v[] + tx]"]);
    check(&body("B[tx] = 0.0"), &[]);
}

#[test]
fn an_initial_value_from_shared_memory_waits() {
    check(
        "alloc S: shared float32[128]\nS[tx] = A[tx]\nalloc v: var float32\nv[] = S[127 - tx]\nB[tx] = v[]",
        &["v[] = S[127 - tx]"],
    );
}

#[test]
fn what_is_open_where_a_loop_is_left_early_is_open_behind_it() {
    check(
        "alloc S: shared float32[128]\nfor k in serial(0, n) {\nS[tx] = A[k]\nif n < k + k {\nbreak\n}\n\
         sync_threads\n}\nB[tx] = S[127 - tx]",
        &["B[tx] = S[127 - tx]"],
    );
    check(
        "alloc S: shared float32[128]\nfor k in serial(0, n) {\nB[tx] = S[127 - tx]\nsync_threads\n\
         S[tx] = A[k]\nif n < k + k {\ncontinue\n}\nsync_threads\n}",
        &["B[tx] = S[127 - tx]"],
    );
}

/// A loop of `t` iterations, two in flight: written two ahead into two versions.
fn pipelined(epilogue: &str) -> String {
    format!(
        "alloc S: shared float32[128] versions=2\nlet t: int32 = (n + 31) // 32\n\
         if t >= 1 {{\nS[0, tx] = A[0]\n}}\nsync_threads\n\
         if t >= 2 {{\nS[1, tx] = A[1]\n}}\nfor k in serial(0, t - 2) {{\n\
         B[tx] = S[k % 2, 127 - tx]\nsync_threads\nS[k % 2, tx] = A[k + 2]\n}}\n\
         if t >= 2 {{\nB[tx] = S[t % 2, 127 - tx]\n{epilogue}}}\n\
         if t >= 1 {{\nB[tx] = S[(t + 1) % 2, 127 - tx]\n}}"
    )
}

#[test]
fn the_epilogue_of_a_loop_that_may_be_skipped_waits_once() {
    // Two trips: the first version was closed by the prologue's barrier, and the one before
    // the last read closes the second. One trip: there is nothing but the first version.
    check(&pipelined("sync_threads\n"), &[]);
    check(&pipelined(""), &["B[tx] = S[(t + 1) % 2, 127 - tx]"]);
}

#[test]
fn conditions_that_exclude_each_other_need_no_barrier() {
    let between = |first: &str, second: &str| {
        barriers(&format!(
            "alloc S: shared float32[128]\nif {first} {{\nS[tx] = A[tx]\n}}\n\
             if {second} {{\nB[tx] = S[127 - tx]\n}}"
        ))
        .len()
    };
    assert_eq!(between("n >= 2", "n < 2"), 0);
    assert_eq!(between("n >= 2", "n < 3"), 1);
    assert_eq!(between("n == 2", "n > 2"), 0);
    assert_eq!(between("n >= 2 && bx < 3", "bx >= 3"), 0);
    // Either may be why the first did not hold.
    assert_eq!(between("n >= 2 || bx < 3", "bx >= 3"), 1);
    // The sum may wrap, and then both hold.
    assert_eq!(between("n + 5 < 0", "n > 5"), 1);
    // Memory may hold something else by then.
    assert_eq!(between("A[0] > 1.0", "A[0] < 1.0"), 1);
}

#[test]
fn a_branch_of_the_first_iteration_is_not_open_to_itself() {
    let body = |cond: &str| {
        format!(
            "alloc S: shared float32[128]\nfor k in serial(0, 3) {{\nlet last: int32 = 6 - 6 * k\n\
             if {cond} {{\nS[tx] = A[k]\nB[tx] = S[127 - tx]\n}}\n}}"
        )
    };
    check(&body("0 < last"), &["B[tx] = S[127 - tx]"]);
    check(&body("0 <= last"), &["S[tx] = A[k]", "B[tx] = S[127 - tx]"]);
}

#[test]
fn a_tensor_that_threads_exchange_data_through_is_waited_for() {
    check(
        "A[tx] = B[tx]\nB[tx] = A[127 - tx]",
        &["B[tx] = A[127 - tx]"],
    );
    // Their own elements, and tensors that are only read.
    check("A[tx] = B[tx] + A[tx]\nB[tx] = A[tx]", &[]);
    check("A[tx] = B[127 - tx]\nA[tx + 128] = B[tx]", &[]);
}

#[test]
fn each_iteration_that_writes_its_own_tile_goes_on() {
    check("for k in serial(0, 8) {\nA[k * 128 + tx] = B[tx]\n}", &[]);
    check(
        "for k in serial(0, n) {\nA[k * 127 + tx] = B[tx]\n}",
        &["A[k * 127 + tx] = B[tx]"],
    );
    // The tile of an inner loop comes again in the next iteration of the outer one.
    check(
        "for i in serial(0, n) {\nfor k in serial(0, 4) {\nA[k * 128 + 127 - tx] = B[i]\n}\nB[tx + 8] = A[tx]\n}",
        &["for k in serial(0, 4) {", "B[tx + 8] = A[tx]"],
    );
    // An iteration writes its own tile, and reads it turned round; the next one of the `while`
    // comes to the same tiles again, and nothing counts it: it waits once, before its tiles.
    let tiles =
        "for k in serial(0, 4) {\nA[k * 128 + tx] = B[tx]\nB[tx + 512] = A[k * 128 + 127 - tx]\n}";
    check(tiles, &["B[tx + 512] = A[k * 128 + 127 - tx]"]);
    check(
        &format!(
            "alloc v: var int32[1]\nv[0] = 0\nwhile v[0] < n {{\n{tiles}\nv[0] = v[0] + 1\n}}"
        ),
        &[
            "for k in serial(0, 4) {",
            "B[tx + 512] = A[k * 128 + 127 - tx]",
        ],
    );
}

#[test]
fn a_scatter_waits_for_readers_and_not_for_itself() {
    check(
        "alloc I: local int32[4]\nfor c in unroll(0, 4) {\nA[I[c]] = A[I[c]] + B[tx]\n}\nB[tx + 512] = A[tx]",
        &["B[tx + 512] = A[tx]"],
    );
    check(
        "alloc I: local int32[4]\nfor k in serial(0, n) {\nfor c in unroll(0, 4) {\nA[I[c]] = B[tx]\n}\nI[0] = k\n}",
        &["for c in unroll(0, 4) {"],
    );
}

#[test]
fn tensors_that_may_overlap_are_one() {
    let body = "A[tx] = B[tx + 512]\nA[tx + 128] = B[tx]";
    check(body, &[]);
    let source = format!(
        "func @f level=loop {{\n  param A: float32[1024]\n  param B: float32[1024]\n  \
         kernel grid(bx: 8) threads(tx: 128, ty: 1, tz: 1) may_alias=[A, B] {{\n{body}\n  }}\n}}\n"
    );
    let mut func = text::parse(&source, FileId(0)).expect("valid text");
    assert_eq!(thread_sync(&mut func, 32, &mut Diagnostics::new()), 1);
}
