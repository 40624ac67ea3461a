//! The driver runs what it is told, checks it, times it and shows it.

use tilewright_ir::{
    Code, Diagnostic, Diagnostics, Func, Level, SourceMap, StmtKind, Target, text,
};
use tilewright_passes::driver::{self, Action, Cause, Hook, Options, Step, Timing, Until};
use tilewright_passes::{Changed, find, pipeline};
use tilewright_schedule::hazard;

/// Two tiles through shared memory, in a pipelined loop: every pass has something to do.
fn kernel() -> Func {
    let source = "func @f level=tile {
      param A: float16[64, 128]
      output O: float32[64, 64]
      kernel grid(bx: 1) threads(tx: 128, ty: 1, tz: 1) {
        alloc s: shared float16[64, 32]
        alloc c: fragment float32[64, 64]
        fill c[0 +: 64, 0 +: 64], 0.0
        for k in pipelined(0, 4) stages=2 {
          copy A[0 +: 64, k * 32 +: 32] -> s[0 +: 64, 0 +: 32]
          gemm s[0 +: 64, 0 +: 32], s[0 +: 64, 0 +: 32] -> c[0 +: 64, 0 +: 64] trans_b
        }
        copy c[0 +: 64, 0 +: 64] -> O[0 +: 64, 0 +: 64]
      }
    }";
    let mut sources = SourceMap::new();
    let file = sources.add("kernel.tw", source);
    text::parse(source, file).expect("it parses")
}

fn names(rows: &[Timing]) -> Vec<&str> {
    rows.iter().map(|row| row.step.name).collect()
}

/// Does the same thing at every step of one name.
struct At(&'static str, Action);

impl Hook for At {
    fn before(&mut self, step: Step, _: &Func) -> Action {
        match step.name == self.0 {
            true => self.1,
            false => Action::Run,
        }
    }
}

/// Takes away the places of buffers that are used.
fn break_it(func: &mut Func, _: Target, _: &mut Diagnostics) -> Changed {
    let body = &mut func.kernels[0].body;
    body.retain(|stmt| !matches!(stmt.kind, StmtKind::Alloc(_)));
    Changed::Yes
}

fn refuse_it(func: &mut Func, _: Target, diags: &mut Diagnostics) -> Changed {
    let code = Code("not-today");
    diags.push(Diagnostic::error(code, func.span, "no"));
    Changed::No
}

#[test]
fn rows_and_hooks_follow_the_pipeline() {
    for target in Target::ALL {
        let expected: Vec<&str> = pipeline(target).iter().map(|pass| pass.name).collect();
        let mut seen: Vec<(Step, String)> = Vec::new();
        let mut func = kernel();
        let mut hook = |step: Step, func: &Func| seen.push((step, text::print(func)));
        let report = driver::run_with(&mut func, target, &Options::default(), &mut hook);
        let report = report.expect("it is lowered");
        assert_eq!(names(&report.timings), expected, "{target}");
        let steps: Vec<Step> = report.timings.iter().map(|row| row.step).collect();
        assert_eq!(steps, driver::steps(&pipeline(target)), "{target}");
        let shown: Vec<Step> = seen.iter().map(|(step, _)| *step).collect();
        assert_eq!(shown, steps, "{target}");
        assert_eq!(
            seen.last().map(|(_, text)| text.clone()),
            Some(text::print(&func))
        );
        assert_eq!(func.level, Level::Device);
        for (at, step) in steps.iter().enumerate() {
            let place = (at as u32 + 1, expected.len() as u32);
            assert_eq!((step.number, step.of), place);
        }
    }
}

#[test]
fn a_step_says_which_run_of_its_pass_it_is() {
    let steps = driver::steps(&pipeline(Target::Sm80));
    let runs: Vec<String> = steps
        .iter()
        .filter(|step| step.name == "simplify")
        .map(Step::to_string)
        .collect();
    let of = steps.len();
    assert_eq!(
        runs,
        [
            format!("`simplify` (pass 4 of {of}, run 1 of 3)"),
            format!("`simplify` (pass 22 of {of}, run 2 of 3)"),
            format!("`simplify` (pass 24 of {of}, run 3 of 3)"),
        ]
    );
    assert_eq!(
        steps[0].to_string(),
        format!("`bind-target` (pass 1 of {of})")
    );
}

#[test]
fn it_stops_where_it_is_told() {
    for (until, last, level) in [
        (Until::Level(Level::Tile), "layout-inference", Level::Tile),
        (
            Until::Pass("layout-inference"),
            "layout-inference",
            Level::Tile,
        ),
        (Until::Level(Level::Loop), "simplify", Level::Loop),
        // The first of them.
        (Until::Pass("simplify"), "simplify", Level::Tile),
        (Until::Pass("thread-sync"), "thread-sync", Level::Device),
        (
            Until::Level(Level::Device),
            "merge-shared-memory-allocations",
            Level::Device,
        ),
    ] {
        let mut func = kernel();
        let mut shown = Vec::new();
        let options = Options {
            until,
            ..Options::default()
        };
        let mut hook = |step: Step, _: &Func| shown.push(step.name);
        let report = driver::run_with(&mut func, Target::Gfx950, &options, &mut hook);
        let report = report.expect("it is lowered");
        assert_eq!(shown.last(), Some(&last), "{until:?}");
        assert_eq!(names(&report.timings), shown, "{until:?}");
        assert_eq!(func.level, level, "{until:?}");
    }
    // What is past a level already stays as it is.
    let mut func = kernel();
    driver::run(&mut func, Target::Sm80, &Options::default()).expect("it is lowered");
    let device = func.clone();
    let options = Options {
        until: Until::Level(Level::Loop),
        ..Options::default()
    };
    let report = driver::run(&mut func, Target::Sm80, &options).expect("nothing is done");
    assert!(report.timings.is_empty() && func == device);
}

#[test]
fn a_pass_to_stop_after_must_be_run() {
    let mut func = kernel();
    let options = Options {
        until: Until::Pass("register-waits"),
        ..Options::default()
    };
    let failed = driver::run(&mut func, Target::Sm80, &options).expect_err("there is none");
    assert_eq!(failed.cause, Cause::NoSuchPass);
    assert_eq!(failed.step(), None);
    assert!(failed.report.timings.is_empty() && func == kernel());
}

#[test]
fn the_pass_that_breaks_the_function_is_named() {
    let mut func = kernel();
    let mut seen = Vec::new();
    struct Both<'a>(At, &'a mut Vec<&'static str>);
    impl Hook for Both<'_> {
        fn before(&mut self, step: Step, func: &Func) -> Action {
            self.0.before(step, func)
        }
        fn after(&mut self, step: Step, _: &Func) {
            self.1.push(step.name);
        }
    }
    let mut hook = Both(At("layout-reducer", Action::Replace(break_it)), &mut seen);
    let options = Options::default();
    let failed = driver::run_with(&mut func, Target::Sm80, &options, &mut hook);
    let failed = failed.expect_err("the buffers are gone");
    let step = failed.step().expect("a step");
    assert_eq!(failed.cause, Cause::Broken(step));
    assert_eq!((step.name, step.number), ("layout-reducer", 9));
    let errors: Vec<_> = failed.errors.iter().collect();
    assert_eq!(errors[0].code.0, "broken-ir");
    let of = pipeline(Target::Sm80).len();
    assert_eq!(
        errors[0].message,
        format!("`layout-reducer` (pass 9 of {of}) made IR that the verifier refuses")
    );
    assert!(errors.len() > 1, "what the verifier found: {errors:?}");
    for found in &errors[1..] {
        assert!(
            found
                .notes
                .iter()
                .any(|n| n.contains("after `layout-reducer`"))
        );
    }
    // The hook sees what was made of it, and nothing is run after it.
    assert_eq!(seen.last(), Some(&"layout-reducer"));
    assert_eq!(names(&failed.report.timings), seen);
}

#[test]
fn the_verifier_is_asked_unless_it_is_told_not_to() {
    let last = Options {
        until: Until::Pass("layout-reducer"),
        ..Options::default()
    };
    let unverified = Options {
        verify: false,
        ..last.clone()
    };
    let mut hook = At("layout-reducer", Action::Replace(break_it));
    assert!(driver::run_with(&mut kernel(), Target::Sm80, &last, &mut hook).is_err());
    let report = driver::run_with(&mut kernel(), Target::Sm80, &unverified, &mut hook);
    let report = report.expect("nobody looks");
    assert!(report.timings.iter().all(|row| row.verify.is_zero()));
}

#[test]
fn a_pass_that_refuses_ends_it() {
    let mut hook = At("check-resources", Action::Replace(refuse_it));
    let options = Options::default();
    let failed = driver::run_with(&mut kernel(), Target::Sm80, &options, &mut hook);
    let failed = failed.expect_err("it is refused");
    assert!(matches!(failed.cause, Cause::Refused(step) if step.name == "check-resources"));
    let codes: Vec<&str> = failed.errors.iter().map(|d| d.code.0).collect();
    assert_eq!(codes, ["not-today"]);
    assert_eq!(
        names(&failed.report.timings).last(),
        Some(&"check-resources")
    );
}

#[test]
fn a_hook_can_leave_a_pass_out() {
    let mut func = kernel();
    let mut hook = At("inject-software-pipeline", Action::Skip);
    let report = driver::run_with(&mut func, Target::Sm80, &Options::default(), &mut hook);
    let report = report.expect("it is lowered");
    assert!(!names(&report.timings).contains(&"inject-software-pipeline"));
    assert_eq!(report.timings.len() + 1, pipeline(Target::Sm80).len());
    let whole = {
        let mut func = kernel();
        driver::run(&mut func, Target::Sm80, &Options::default()).expect("it is lowered");
        func
    };
    assert_ne!(func, whole);
}

#[test]
fn any_list_of_passes_is_run() {
    let list = ["simplify", "simplify", "bind-target"];
    let options = Options {
        passes: Some(list.iter().filter_map(|name| find(name)).collect()),
        ..Options::default()
    };
    let report = driver::run(&mut kernel(), Target::Gfx942, &options).expect("it is sound");
    assert_eq!(names(&report.timings), list);
    assert_eq!(report.timings[1].step.run, 2);
}

/// What the checker was asked for in a pass is known of the function as that pass left it, and of no
/// other.
#[test]
fn what_was_checked_is_what_the_last_pass_left() {
    const MERGE: &str = "merge-shared-memory-allocations";
    let after = |list: &[&str], between: &str| {
        let source = format!(
            "func @f level=device {{
              param X: float32[128]
              output Y: float32[128]
              output Z: float32[128]
              kernel grid(bx: 1) threads(tx: 128, ty: 1, tz: 1) {{
                alloc A: shared float32[128]
                alloc B: shared float32[128]
                A[tx] = X[tx]
                barrier block
                Y[tx] = A[127 - tx]
                barrier block
                B[tx] = X[tx]
                barrier block
                Z[tx] = B[127 - tx]
              }}
              kernel grid(cx: 1) threads(ux: 128, uy: 1, uz: 1) {{
                alloc C: shared float32[128]
                C[ux] = X[ux]
                {between}
                Y[ux] = C[127 - ux]
              }}
            }}"
        );
        let mut sources = SourceMap::new();
        let file = sources.add("kernel.tw", source.clone());
        let mut func = text::parse(&source, file).expect("it parses");
        let options = Options {
            passes: Some(list.iter().filter_map(|name| find(name)).collect()),
            ..Options::default()
        };
        let report = driver::run(&mut func, Target::Sm80, &options).expect("it is sound");
        let offsets = func.buffers.values().filter_map(|data| data.place);
        let offsets: Vec<u32> = offsets.map(|place| place.offset).collect();
        assert_eq!(offsets, [0, 0, 0], "A and B share");
        let checked = hazard::check(&func, Target::Sm80);
        (report.hazards, checked)
    };
    let (known, checked) = after(&[MERGE], "barrier block");
    let known = known.expect("the checker was asked");
    assert!(known.is_clean() && checked.is_clean());
    assert_eq!(known.runs, checked.runs);
    let (known, _) = after(&[MERGE, "simplify"], "barrier block");
    assert!(known.is_none(), "another pass has run");
    // The hazard of one kernel leaves the other its places, and is still to be found.
    let (known, checked) = after(&[MERGE], "");
    assert!(known.is_none() && !checked.hazards.is_empty());
}

/// [`tilewright_passes::PassInfo::makes`] is what a function is after the pass.
#[test]
fn passes_make_the_level_that_they_say() {
    for target in Target::ALL {
        let mut level = Level::Tile;
        let mut hook = |step: Step, func: &Func| {
            level = find(step.name).and_then(|pass| pass.makes).unwrap_or(level);
            assert_eq!(func.level, level, "{target}: {step}");
        };
        let ran = driver::run_with(&mut kernel(), target, &Options::default(), &mut hook);
        assert!(ran.is_ok(), "{target}: {ran:?}");
    }
}

/// A kernel whose buffers fit LDS only where they share it: what comes of the passes behind
/// `inject-software-pipeline` decides how many stages it has.
fn tight_kernel() -> Func {
    let source = "func @f level=tile {
      param A: float16[128, 256]
      output O: float32[128, 128]
      kernel grid(bx: 1) threads(tx: 256, ty: 1, tz: 1) {
        alloc s: shared float16[128, 64]
        alloc o: shared float32[128, 128]
        alloc c: fragment float32[128, 128]
        fill c[0 +: 128, 0 +: 128], 0.0
        for k in pipelined(0, 4) stages=2 {
          copy A[0 +: 128, k * 64 +: 64] -> s[0 +: 128, 0 +: 64]
          gemm s[0 +: 128, 0 +: 64], s[0 +: 128, 0 +: 64] -> c[0 +: 128, 0 +: 128] trans_b
        }
        sync_threads
        copy c[0 +: 128, 0 +: 128] -> o[0 +: 128, 0 +: 128]
        copy o[0 +: 128, 0 +: 128] -> O[0 +: 128, 0 +: 128]
      }
    }";
    let mut sources = SourceMap::new();
    let file = sources.add("kernel.tw", source);
    text::parse(source, file).expect("it parses")
}

/// Has every pass run by itself, and asks one what it foresees.
struct Each(Vec<Changed>);

impl Hook for Each {
    fn before(&mut self, step: Step, func: &Func) -> Action {
        let pass = find(step.name).expect("a pass");
        if step.name == "inject-software-pipeline" {
            let mut said = Diagnostics::new();
            let changed = (pass.run)(&mut func.clone(), Target::Gfx942, &mut said);
            self.0.push(changed);
        }
        Action::Replace(pass.run)
    }
}

#[test]
fn what_was_foreseen_is_what_comes() {
    let options = Options::default();
    let (mut func, mut anew) = (tight_kernel(), tight_kernel());
    let report = driver::run(&mut func, Target::Gfx942, &options).expect("it is lowered");
    let mut each = Each(Vec::new());
    let plain = driver::run_with(&mut anew, Target::Gfx942, &options, &mut each);
    let plain = plain.expect("it is lowered");
    assert!(matches!(each.0[..], [Changed::Foreseen(_)]), "{:?}", each.0);
    assert_eq!(text::print(&func), text::print(&anew));
    let said = |list: Diagnostics| -> Vec<String> {
        let list = list.into_vec().into_iter();
        list.map(|d| format!("{} {}", d.code, d.message)).collect()
    };
    assert_eq!(said(report.said), said(plain.said));
    assert_eq!(said(report.remarks), said(plain.remarks));
}
