//! Every kernel under `examples/` against independent mathematics, with several sets of
//! parameters: sizes that the tiles divide and sizes that they do not.
//!
//! The formulas, the tolerances and why they are what they are stand in `oracle/`. Beside the
//! examples: kernels that other compilers fail on (`tilelang_issues/`), and the bank conflicts of
//! matrix operands.

mod kernels;
mod oracle;

use std::collections::{BTreeMap, BTreeSet};

use kernels::{
    TARGETS, arguments, banks, emulator, gpu, issues, lower, mutants, reference, render, shapes,
    simulated, stage, stages,
};
use libtest_mimic::{Arguments, Failed, Trial};
use oracle::{Approx, Case, F16, Output};
use tilewright::ir::{
    BarrierKind, Block, DeviceOp, Func, SourceMap, Span, StmtKind, Target, visit,
};
use tilewright::schedule::hazard;
use tilewright::sim::simt::{self, SimtOptions};

fn main() {
    let args = Arguments::from_args();
    let mut trials = vec![
        Trial::test("every kernel has a case", shapes::every_kernel_has_a_case),
        Trial::test(
            "every kernel has three shapes",
            shapes::every_kernel_has_three_shapes,
        ),
        Trial::test("the comparison can fail", the_comparison_can_fail),
    ];
    for case in oracle::all_cases() {
        trials.push(Trial::test(case.title(), move || reference(case)));
    }
    for target in TARGETS.into_iter().chain([Target::Sm90a]) {
        for case in oracle::all_cases().iter().filter(|c| c.is_for(target)) {
            let title = format!("{target} {}", case.title());
            trials.push(Trial::test(title, move || simulated(case, target)));
        }
    }
    for target in TARGETS {
        let mut kernels: BTreeMap<(&str, &str), Vec<&Case>> = BTreeMap::new();
        for case in oracle::all_cases().iter().filter(|c| c.is_for(target)) {
            let cases = kernels.entry((case.file, case.kernel)).or_default();
            cases.push(case);
        }
        for ((file, kernel), cases) in kernels {
            let title = format!("barriers {target} {file}:{kernel}");
            let check = move || barriers_are_needed(&cases, target);
            trials.push(Trial::test(title, check));
        }
    }
    trials.extend(banks::trials());
    trials.extend(issues::trials());
    trials.extend(emulator::trials());
    trials.extend(gpu::trials());
    trials.extend(stages::trials());
    trials.extend(mutants::trials());
    libtest_mimic::run(&args, trials).exit();
}

/// Every barrier that was inserted is needed: without it the simulator finds something wrong, in
/// one of the kernel's cases at least (a loop that runs once in a small case carries nothing), and
/// whenever it does, so does the hazard checker.
fn barriers_are_needed(cases: &[&Case], target: Target) -> Result<(), Failed> {
    let mut needed = BTreeSet::new();
    let mut idle = BTreeMap::new();
    for case in cases {
        let mut sources = SourceMap::new();
        let func = lower(stage(case, &mut sources)?, target, &sources)?;
        let (given, _) = arguments(&func, case)?;
        let mut nth = 0;
        while let Some((mutant, span)) = without_barrier(&func, nth) {
            nth += 1;
            let mut args = given.clone();
            let options = SimtOptions {
                first_only: true,
                threads: 1,
                ..SimtOptions::default()
            };
            let report = simt::run(&mutant, target, &mut args, &options)
                .map_err(|e| render(e.diagnostics.iter(), &sources))?;
            let place = sources.locate(span);
            let checked = hazard::check(&mutant, target);
            if !report.is_clean() && checked.hazards.is_empty() {
                let found = render(report.diagnostics().iter(), &sources);
                let title = case.title();
                return Err(
                    format!("the checker misses barrier {nth} of {title}:\n{found}").into(),
                );
            }
            if report.is_clean() {
                idle.insert(
                    place,
                    format!("barrier {nth} of {} in\n{func}", case.title()),
                );
            } else {
                needed.insert(place);
            }
        }
    }
    idle.retain(|place, _| !needed.contains(place));
    match idle.pop_first() {
        None => Ok(()),
        Some((place, what)) => Err(format!("not needed, before {place}: {what}").into()),
    }
}

/// The function without its nth block barrier, and what stood after it.
fn without_barrier(func: &Func, nth: usize) -> Option<(Func, Span)> {
    fn remove(block: &mut Block, left: &mut usize) -> Option<Span> {
        for at in 0..block.len() {
            if let StmtKind::Device(DeviceOp::Barrier(BarrierKind::Block)) = block[at].kind {
                if *left == 0 {
                    return Some(block.remove(at).span);
                }
                *left -= 1;
            }
            for child in visit::child_blocks_mut(&mut block[at]) {
                if let Some(span) = remove(child, left) {
                    return Some(span);
                }
            }
        }
        None
    }
    let mut mutant = func.clone();
    let mut left = nth;
    for kernel in &mut mutant.kernels {
        if let Some(span) = remove(&mut kernel.body, &mut left) {
            return Some((mutant, span));
        }
    }
    None
}

/// A bound that accepts everything would make the whole file worthless.
fn the_comparison_can_fail() -> Result<(), Failed> {
    let element = Approx {
        value: 3.0,
        slack: 0.001,
    };
    let output = Output::new("C", vec![element; 4], F16);
    let bound = element.rounded(F16).slack;
    let with = |third: f64| output.mismatch(&[3.0, 3.0, third, 3.0], 1.0);
    let accepted = [3.0, 3.0 + 0.99 * bound, 3.0 - 0.99 * bound];
    let refused = [
        3.0 + 1.01 * bound,
        3.0 - 1.01 * bound,
        f64::NAN,
        f64::INFINITY,
        -3.0,
    ];
    for value in accepted {
        if let Some(complaint) = with(value) {
            return Err(format!("{value} should pass: {complaint}").into());
        }
    }
    for value in refused {
        if with(value).is_none() {
            return Err(format!("{value} should not pass for 3").into());
        }
    }
    if output.mismatch(&[3.0], 1.0).is_none() {
        return Err("a result of another size should not pass".into());
    }
    Ok(())
}
