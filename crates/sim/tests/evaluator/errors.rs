//! What the evaluator refuses, by name and place.

use crate::common::{call, call_with, dtype, failure, iota, kernel, parse, tensor, zeros};
use tilewright_sim::{Arg, Args, HostTensor, InputSpec, Number, RunOptions, make_inputs, run};

fn refuses(
    params: &str,
    threads: u32,
    body: &str,
    list: Vec<(&str, HostTensor)>,
    code: &str,
) -> String {
    failure(&kernel(params, threads, body), list, code)
}

#[test]
fn uninitialised_reads() {
    for (body, what) in [
        (
            "alloc S: shared float32[4]\ncopy S[0 +: 4] -> C[0 +: 4]",
            "`S` is read but nothing wrote it: element (0)",
        ),
        (
            "alloc S: shared float32[2, 4]\nfill S[0, 0 +: 4], 1.0\nfor i in parallel(4) {\nC[i] = S[1, i]\n}",
            "element (1, 0)",
        ),
        (
            "alloc F: fragment float32[4, 4]\nalloc S: shared float32[4, 4]\nfill S[0 +: 4, 0 +: 4], 1.0\ngemm S[0 +: 4, 0 +: 4], S[0 +: 4, 0 +: 4] -> F[0 +: 4, 0 +: 4]",
            "`F`",
        ),
        (
            "alloc a: local float32[2]\nC[0] = a[1]",
            "`a` is read but nothing wrote it: element (1)",
        ),
        ("C[0] = C[1]", "`C`"),
        ("atomic_rmw add C[2], 1.0 relaxed", "`C`"),
        (
            "alloc F: fragment float32[4]\nalloc S: shared float32[4]\nfill S[0 +: 4], 1.0\nreduce sum S[0 +: 4] -> F[0 +: 1] dim=0",
            "`F`",
        ),
    ] {
        let text = refuses(
            "output C: float32[4]",
            32,
            body,
            vec![],
            "uninitialised-read",
        );
        assert!(text.contains(what), "{what} not in:\n{text}");
        assert!(text.contains("test.tw:"), "no place in:\n{text}");
    }
}

#[test]
fn an_allocation_in_a_loop_starts_afresh() {
    let body = "for k in serial(0, 2) {
  alloc S: shared float32[1]
  if k == 0 {
    fill S[0 +: 1], 1.0
  }
  copy S[0 +: 1] -> C[0 +: 1]
}";
    refuses(
        "output C: float32[1]",
        32,
        body,
        vec![],
        "uninitialised-read",
    );
}

#[test]
fn the_check_can_be_turned_off() {
    let source = kernel(
        "output C: uint8[4]",
        32,
        "alloc S: shared uint8[4]\ncopy S[0 +: 4] -> C[0 +: 4]",
    );
    let options = RunOptions {
        check_uninitialised: false,
        ..RunOptions::default()
    };
    let (args, _) = call_with(&source, vec![], &options).expect("a run");
    assert_eq!(args.tensor("C").expect("an output").to_f64(), [205.0; 4]);
}

#[test]
fn outputs_left_out_are_known() {
    let body = "for i in parallel(4) {\nif i % 2 == 0 {\nC[i] = i\n}\n}";
    let (args, _) = call(&kernel("output C: int32[4]", 32, body), vec![]).expect("a run");
    let c = args.tensor("C").expect("an output");
    assert_eq!(c.count_unwritten(), 2);
    assert!(c.is_written(2) && !c.is_written(3));
}

#[test]
fn out_of_bounds_in_the_block() {
    for body in [
        "alloc S: shared int32[4]\nfor i in parallel(5) {\nS[i] = i\n}",
        "alloc a: local int32[4]\na[tx - 1] = 0",
        "alloc F: fragment int32[4]\nfill F[2 +: 4], 0",
        "alloc F: fragment int32[4]\nfill F[0 +: 4], 0\nfor i in parallel(4) {\nC[i] = F[i + 1]\n}",
    ] {
        let text = refuses("output C: int32[4]", 32, body, vec![], "out-of-bounds");
        assert!(
            text.contains("has no element") && text.contains("(4)"),
            "{text}"
        );
    }
    let text = refuses(
        "output C: int32[4]",
        32,
        "alloc S: shared int32[4, 4]\nfor i, j in parallel(4, 5) {\nS[i, j] = i\n}",
        vec![],
        "out-of-bounds",
    );
    assert!(
        text.contains("(0, 4)") && text.contains("at the point i = 0, j = 4"),
        "{text}"
    );
}

#[test]
fn races_between_points() {
    for (body, what) in [
        ("for i in parallel(4) {\nC[0] = i\n}", "two points"),
        ("for i in parallel(4) {\nC[i // 2] = i\n}", "two points"),
        (
            "fill C[0 +: 4], 0\nfor i in parallel(4) {\nC[0] = C[0] + 1\n}",
            "reads what another",
        ),
        (
            "fill C[0 +: 4], 0\nfor i in parallel(3) {\nC[i] = C[i + 1]\n}",
            "reads what another",
        ),
        (
            "fill C[0 +: 4], 0\nfor i in parallel(3) {\nC[i + 1] = C[i]\n}",
            "reads what another",
        ),
        (
            "for i in parallel(2) {\nfor k in serial(0, 2) {\nC[i + k] = i\n}\n}",
            "two points",
        ),
    ] {
        let text = refuses("output C: int32[4]", 32, body, vec![], "data-race");
        assert!(text.contains(what), "{text}");
    }
    // One value from all points, and one's own element by two names, are fine.
    for body in [
        "for i in parallel(4) {\nC[0] = 7\n}",
        "for i in parallel(4) {\nC[i] = i\nC[i + 0] = C[i * 1] + 1\n}",
        "for i in parallel(2) {\nfor k in serial(0, 2) {\nC[i * 2 + k] = i\n}\n}",
    ] {
        call(&kernel("output C: int32[4]", 32, body), vec![]).expect("no race");
    }
    let options = RunOptions {
        check_races: false,
        ..RunOptions::default()
    };
    let source = kernel(
        "output C: int32[4]",
        32,
        "for i in parallel(4) {\nC[0] = i\n}",
    );
    call_with(&source, vec![], &options).expect("not checked");
}

#[test]
fn races_between_threads_and_blocks() {
    refuses("output C: int32[4]", 32, "C[0] = tx", vec![], "data-race");
    let source = "func @k level=tile {
  output C: int32[1]
  kernel grid(bx: 3) threads(tx: 32, ty: 1, tz: 1) {
    C[0] = bx
  }
}";
    let (_, report) = call(source, vec![]).expect("a run");
    let codes: Vec<&str> = report.races.iter().map(|d| d.code.0).collect();
    assert_eq!(codes, ["race-blocks"]);
    assert!(report.races.has_errors());
    let (_, report) = call(&source.replace("= bx", "= 5"), vec![]).expect("a run");
    assert!(!report.races.has_errors());
}

#[test]
fn barriers_and_collectives_that_threads_miss() {
    let text = refuses(
        "",
        64,
        "if tx < 32 {\nsync_threads\n}",
        vec![],
        "divergent-barrier",
    );
    assert!(text.contains("32 of 64 threads"), "{text}");
    for body in [
        "if tx < 32 {\nfill C[0 +: 4], 0\n}",
        "for i in serial(0, tx) {\nfor j in parallel(4) {\nC[j] = 0\n}\n}",
        "if tx == 0 {\nw = warp_reduce sum tx\nC[0] = w\n}",
        "if tx == 0 {\ns = shuffle down tx, 1 width=32\nC[0] = s\n}",
    ] {
        refuses(
            "output C: int32[4]",
            64,
            body,
            vec![],
            "divergent-collective",
        );
    }
    // Nobody goes there, or everybody does.
    let body = "if tx < 0 {\nsync_threads\n}\nif tx < 64 {\nsync_threads\n}";
    call(&kernel("", 64, body), vec![]).expect("uniform after all");
}

#[test]
fn thread_dependent_values_in_collectives() {
    for body in [
        "for i in parallel(4) {\nC[i] = tx\n}",
        "fill C[0 +: 4], tx",
        "alloc x: var int32\nx[] = tx\nfor i in parallel(4) {\nC[i] = x[]\n}",
        "alloc F: fragment int32[64]\nfill F[0 +: 64], 1\ncopy F[tx +: 4] -> C[0 +: 4]",
    ] {
        let text = refuses("output C: int32[4]", 64, body, vec![], "not-uniform");
        assert!(text.contains("differs from thread to thread"), "{text}");
    }
    for body in [
        "for i in parallel(4) {\nsync_threads\n}",
        "for i in parallel(4) {\nw = warp_reduce sum i\nC[i] = w\n}",
    ] {
        refuses("output C: int32[4]", 64, body, vec![], "thread-in-parallel");
    }
}

#[test]
fn what_points_disagree_about_is_undefined_afterwards() {
    let body = "alloc x: var int32
for i in parallel(4) {
  x[] = i
}
C[0] = x[]";
    refuses("output C: int32[1]", 32, body, vec![], "uninitialised-read");
}

#[test]
fn deadlocks_name_what_is_waited_for() {
    let body = "alloc bar: barrier uint64[2] arrivals=[128, 64]
warp_group 0 {
  mbarrier_wait bar[1] parity=0
}
warp_group 1 {
  mbarrier_arrive bar[0]
  sync_threads id=2 count=256
}";
    let text = refuses("", 256, body, vec![], "deadlock");
    for part in [
        "warp group 0 waits for `bar[1]` to complete its phase 0: 64 more arrivals",
        "warp group 1 waits for barrier 2 that 128 of 256 threads reached",
    ] {
        assert!(text.contains(part), "{part} not in:\n{text}");
    }
    let text = refuses(
        "output C: int32[4]",
        256,
        "alloc b: barrier uint64[1] arrivals=[1]\nwarp_group 0 {\nmbarrier_wait b[0] parity=0\n}\nfill C[0 +: 4], 0",
        vec![],
        "deadlock",
    );
    assert!(
        text.contains("warp groups 0, 1 to reach the same statement"),
        "{text}"
    );
    let source = "func @k level=tile {
  kernel grid(bx: 2) threads(tx: 32, ty: 1, tz: 1) {
    if bx == 0 {
      sync_grid
    }
  }
}";
    let text = failure(source, vec![], "deadlock");
    assert!(text.contains("grid barrier"), "{text}");
    refuses(
        "",
        32,
        "alloc b: barrier uint64[1] arrivals=[1]\nmbarrier_expect_tx b[0] bytes=16\nmbarrier_arrive b[0]",
        vec![],
        "barrier-count",
    );
}

#[test]
fn arithmetic_that_has_no_result() {
    let params = "param A: int32[1]\noutput C: int32[1]";
    let a = |v: f64| vec![("A", tensor("int32", &[1], &[v]))];
    refuses(params, 32, "C[0] = 1 // A[0]", a(0.0), "division-by-zero");
    refuses(params, 32, "C[0] = 1 << A[0]", a(32.0), "shift-amount");
    refuses(
        params,
        32,
        "for i in serial(0, 4, A[0]) {\nC[0] = i\n}",
        a(0.0),
        "loop-step",
    );
    let text = refuses(
        params,
        32,
        "assert A[0] > 3, \"too small\"",
        a(0.0),
        "assertion-failed",
    );
    assert!(text.contains("too small"), "{text}");
    refuses(params, 32, "assume A[tx] > 3", a(0.0), "assumption-failed");
}

#[test]
fn foreign_code_and_other_levels() {
    let text = refuses("", 32, "extern \"f\"(): int32", vec![], "foreign-code");
    assert!(text.contains("only a GPU can run it"), "{text}");
    let source = "func @k level=device {\nkernel grid(bx: 1) threads(tx: 1, ty: 1, tz: 1) {\n}\n}";
    failure(source, vec![], "not-tile-ir");
}

#[test]
fn structure_that_has_no_meaning() {
    for (body, code) in [
        ("for i in parallel(4) {\nfill C[0 +: 4], 0\n}", "invalid-ir"),
        ("for i in parallel(4) {\nbreak\n}", "invalid-ir"),
        ("break", "invalid-ir"),
        ("warp_group 3 {\nC[0] = 1\n}", "launch-extent"),
        (
            "alloc r: reducer int32[1] op=sum\nreducer_update r[0], 1",
            "reducer-state",
        ),
        (
            "alloc r: reducer int32[1] op=sum\nreducer_finalize r",
            "reducer-state",
        ),
    ] {
        refuses("output C: int32[4]", 128, body, vec![], code);
    }
    refuses("", 2048, "sync_threads", vec![], "launch-extent");
}

#[test]
fn operands_that_do_not_fit() {
    // B is stored (N, K) but not said to be transposed.
    let body = "alloc S: shared float32[4, 8]
alloc T: shared float32[6, 8]
alloc F: fragment float32[4, 6]
gemm S[0 +: 4, 0 +: 8], T[0 +: 6, 0 +: 8] -> F[0 +: 4, 0 +: 6] clear=true";
    let text = refuses("", 32, body, vec![], "unequal-extents");
    assert!(text.contains("[6, 8]"), "{text}");
    let fits = body.replace(" clear", " trans_b clear");
    let text = refuses("", 32, &fits, vec![], "uninitialised-read");
    assert!(text.contains("`S`"), "{text}");
    let body = "alloc S: shared int32[4, 8]
alloc O: shared int32[5]
fill S[0 +: 4, 0 +: 8], 1
reduce sum S[0 +: 4, 0 +: 8] -> O[0 +: 5] dim=1 clear";
    refuses("", 32, body, vec![], "unequal-extents");
}

#[test]
fn copies_may_reach_out_along_the_region_only() {
    let body = "alloc S: shared int32[2, 4]
fill S[0 +: 2, 0 +: 4], 5
copy S[0, 2 +: 4] -> C[0 +: 4]";
    let got = crate::common::output(&kernel("output C: int32[4]", 32, body), vec![], "C");
    assert_eq!(got, [5., 5., 0., 0.]);
    let beside = body.replace("S[0, 2", "S[2, 0");
    refuses("output C: int32[4]", 32, &beside, vec![], "out-of-bounds");
}

#[test]
fn endless_loops_can_be_limited() {
    let source = kernel(
        "output C: int32[1]",
        32,
        "C[0] = 1\nwhile C[0] == 1 {\nC[0] = 1\n}",
    );
    let options = RunOptions {
        step_limit: 1000,
        ..RunOptions::default()
    };
    let e = call_with(&source, vec![], &options).expect_err("it never ends");
    assert_eq!(e.code().map(|c| c.0), Some("step-limit"));
}

#[test]
fn what_memory_cannot_hold_is_refused() {
    let source = kernel("param A: int8[60000, 1000000]", 32, "A[0, 0] = 1");
    let e = make_inputs(&parse(&source), &InputSpec::default()).expect_err("it does not fit");
    assert_eq!(e.code().map(|c| c.0), Some("out-of-memory"));
    // Each tensor fits, all copies of it do not.
    let source = kernel("param A: int8[100000]", 32, "A[0] = 1");
    let spec = InputSpec {
        copies: u32::MAX,
        ..InputSpec::default()
    };
    let e = make_inputs(&parse(&source), &spec).expect_err("they do not fit");
    assert_eq!(e.code().map(|c| c.0), Some("out-of-memory"));
    let message = e.to_string();
    assert!(message.contains("no memory for `A`"), "{message}");
}

const PARAMS: &str = "func @k level=tile {
  symbol m: int32
  param A: float32[m, 4]
  param B: float32[m * 2]
  scalar s: int8
  output C: float32[m]
  kernel grid(bx: 1) threads(tx: 1, ty: 1, tz: 1) {
    for i in parallel(m) {
      C[i] = A[i, 0] + B[i * 2] + float32(s)
    }
  }
}";

#[test]
fn arguments_are_checked_by_name() {
    let good = || {
        Args::new()
            .with("A", Arg::Tensor(iota("float32", &[3, 4])))
            .with("B", Arg::Tensor(iota("float32", &[6])))
            .with("s", Arg::Int(1))
    };
    let func = parse(PARAMS);
    let mut args = good();
    run(&func, &mut args, &RunOptions::default()).expect("a run");
    assert_eq!(args.tensor("C").expect("an output").to_f64(), [1., 7., 13.]);

    let strided = HostTensor::with_strides(dtype("float32"), &[3, 4], &[8, 1]).expect("small");
    let cases: Vec<(Args, &str, &str)> = vec![
        (good().with("x", Arg::Int(1)), "arg-unknown", "A, B, s, C"),
        (Args::new(), "arg-missing", "`s`"),
        (Args::new().with("s", Arg::Int(0)), "symbol-unbound", "`m`"),
        (good().with("s", Arg::Int(300)), "arg-dtype", "300"),
        (good().with("s", Arg::Float(0.5)), "arg-dtype", "`s`"),
        (
            good().with("s", Arg::Tensor(zeros("int8", &[1]))),
            "arg-kind",
            "`s`",
        ),
        (good().with("A", Arg::Int(3)), "arg-kind", "`A`"),
        (
            good().with("A", Arg::Tensor(iota("float16", &[3, 4]))),
            "arg-dtype",
            "float16",
        ),
        (
            good().with("A", Arg::Tensor(iota("float32", &[12]))),
            "arg-rank",
            "`A`",
        ),
        (
            good().with("A", Arg::Tensor(iota("float32", &[3, 5]))),
            "arg-shape",
            "`A`",
        ),
        (
            good().with("B", Arg::Tensor(iota("float32", &[5]))),
            "arg-shape",
            "`B`",
        ),
        (
            good().with("C", Arg::Tensor(iota("float32", &[4]))),
            "symbol-conflict",
            "`m`",
        ),
        (good().with("A", Arg::Tensor(strided)), "arg-strides", "`A`"),
    ];
    for (mut args, code, part) in cases {
        let e = run(&func, &mut args, &RunOptions::default()).expect_err(code);
        assert_eq!(e.code().map(|c| c.0), Some(code), "{e}");
        assert!(e.to_string().contains(part), "{part} not in {e}");
        // A refused call leaves the tensors as they were.
        if let Some(b) = args.tensor("B") {
            assert!(!b.bytes().is_empty());
        }
    }
    let e = make_inputs(&func, &InputSpec::default()).expect_err("`m` is not known");
    assert_eq!(e.code().map(|c| c.0), Some("symbol-unbound"));
    let mut spec = InputSpec::default();
    spec.values.insert("m".to_string(), Number::Int(-1));
    let e = make_inputs(&func, &spec).expect_err("a negative size");
    assert_eq!(e.code().map(|c| c.0), Some("tensor-size"));
}

#[test]
fn a_failing_run_gives_the_tensors_back() {
    let source = kernel("param A: int32[4]", 32, "A[1] = 9\nassert false, \"stop\"");
    let func = parse(&source);
    let mut args = Args::new().with("A", Arg::Tensor(iota("int32", &[4])));
    run(&func, &mut args, &RunOptions::default()).expect_err("the assertion");
    assert_eq!(args.tensor("A").expect("A").len(), 4);
    assert_eq!(args.tensor("A").expect("A").bytes().len(), 16);
}

#[test]
fn the_first_block_that_fails_is_reported() {
    let source = "func @k level=tile {
  output C: int32[64]
  kernel grid(bx: 64) threads(tx: 32, ty: 1, tz: 1) {
    assert bx < 17, \"stop\"
    C[bx] = 1
  }
}";
    for _ in 0..3 {
        let text = failure(source, vec![], "assertion-failed");
        assert!(text.contains("in block (17)"), "{text}");
    }
}
