//! Every kernel under `examples/` against independent mathematics, with several sets of
//! parameters: sizes that the tiles divide and sizes that they do not.
//!
//! The formulas, the tolerances and why they are what they are stand in `oracle/`.

mod oracle;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use oracle::{Approx, Case, F16, Inputs, Output};
use tilewright::frontend::{self, SettingValue};
use tilewright::ir::{
    BarrierKind, Block, Counter, DeviceOp, Diagnostic, Diagnostics, Func, Param, Scalar, SourceMap, Span,
    StmtKind, Target, small_float, verify, visit,
};
use tilewright::passes;
use tilewright::sim::simt::{self, Landing, SimtOptions};
use tilewright::sim::{self, Arg, Args, HostTensor, RunOptions};

/// Orders of warps that each lowered kernel is run in.
const SEEDS: u64 = 5;

fn main() {
    let args = Arguments::from_args();
    let mut trials = vec![
        Trial::test("every kernel has a case", every_kernel_has_a_case),
        Trial::test("the comparison can fail", the_comparison_can_fail),
    ];
    for case in oracle::all_cases() {
        trials.push(Trial::test(case.title(), move || reference(&case)));
    }
    for target in [Target::Sm80, Target::Gfx942, Target::Gfx950] {
        for case in oracle::all_cases() {
            let title = format!("{target} {}", case.title());
            trials.push(Trial::test(title, move || simulated(&case, target)));
        }
    }
    for target in [Target::Sm80, Target::Gfx942, Target::Gfx950] {
        let mut kernels: BTreeMap<(&str, &str), Vec<Case>> = BTreeMap::new();
        for case in oracle::all_cases() {
            let cases = kernels.entry((case.file, case.kernel)).or_default();
            cases.push(case);
        }
        for ((file, kernel), cases) in kernels {
            let title = format!("barriers {target} {file}:{kernel}");
            let check = move || barriers_are_needed(&cases, target);
            trials.push(Trial::test(title, check));
        }
    }
    libtest_mimic::run(&args, trials).exit();
}

/// Every barrier that was inserted is needed: without it the simulator finds something wrong, in
/// one of the kernel's cases at least (a loop that runs once in a small case carries nothing).
fn barriers_are_needed(cases: &[Case], target: Target) -> Result<(), Failed> {
    let mut needed = BTreeSet::new();
    let mut idle = BTreeMap::new();
    for case in cases {
        let mut sources = SourceMap::new();
        let func = lower(stage(case, &mut sources)?, target, &sources)?;
        let mut nth = 0;
        while let Some((mutant, span)) = without_barrier(&func, nth) {
            nth += 1;
            let (mut args, _) = arguments(&func, case)?;
            let report = simt::run(&mutant, target, &mut args, &SimtOptions::default())
                .map_err(|e| render(e.diagnostics.iter(), &sources))?;
            let place = sources.locate(span);
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

/// The kernel on the reference evaluator gives what the formula gives.
fn reference(case: &Case) -> Result<(), Failed> {
    let mut sources = SourceMap::new();
    let func = stage(case, &mut sources)?;
    let (mut args, inputs) = arguments(&func, case)?;
    sim::run(&func, &mut args, &RunOptions::default())
        .map_err(|e| render(e.diagnostics.iter(), &sources))?;
    compare(case, &args, &inputs)
}

/// The kernel, lowered for a target, gives the same in the SIMT simulator, whatever the order of
/// its warps, and nothing is wrong with it.
fn simulated(case: &Case, target: Target) -> Result<(), Failed> {
    let mut sources = SourceMap::new();
    let func = lower(stage(case, &mut sources)?, target, &sources)?;
    for landing in landings(&func) {
        for seed in 0..SEEDS {
            let (mut args, inputs) = arguments(&func, case)?;
            let options = SimtOptions {
                seed,
                landing,
                ..SimtOptions::default()
            };
            let report = simt::run(&func, target, &mut args, &options)
                .map_err(|e| render(e.diagnostics.iter(), &sources))?;
            let at = format!("seed {seed}, {landing:?}:\n");
            if !report.is_clean() {
                return Err((at + &render(report.diagnostics().iter(), &sources)).into());
            }
            compare(case, &args, &as_multiplied(case, target, inputs))
                .map_err(|e| at + e.message().unwrap_or_default())?;
        }
    }
    Ok(())
}

/// The modes of asynchrony that make a difference to a function.
fn landings(func: &Func) -> Vec<Landing> {
    let mut counters = BTreeSet::new();
    for kernel in &func.kernels {
        visit::walk_stmts(&kernel.body, &mut |stmt| {
            if let StmtKind::Micro(m) = &stmt.kind {
                counters.extend(m.counter.map(|c| c == Counter::Lgkmcnt));
            }
        });
    }
    let mut modes = Landing::ALL.to_vec();
    let default = Landing::default();
    modes.retain(|m| {
        (counters.contains(&true) || m.lds == default.lds)
            && (counters.contains(&false) || m.dma == default.dma)
    });
    modes
}

/// float32 operands are multiplied as tf32 where the target has no float32 instruction; then
/// the formula gets what the instruction sees.
fn as_multiplied(case: &Case, target: Target, mut inputs: Inputs) -> Inputs {
    let float32 = case
        .set
        .iter()
        .any(|(n, v)| *n == "dtype" && v == "float32");
    let multiplies = target.facts().mma.iter().any(|m| m.inst.ab == Scalar::F32);
    if case.file == "gemm.py" && float32 && !multiplies {
        for values in inputs.0.values_mut() {
            for v in values {
                *v = small_float::round_to(Scalar::TF32, *v);
            }
        }
    }
    inputs
}

/// Runs all passes of the target, each checked by the verifier.
fn lower(mut func: Func, target: Target, sources: &SourceMap) -> Result<Func, Failed> {
    let mut diags = Diagnostics::new();
    for pass in passes::pipeline(target) {
        (pass.run)(&mut func, target, &mut diags);
        if diags.has_errors() {
            return Err(render(diags.iter(), sources).into());
        }
        verify::verify(&func)
            .map_err(|d| format!("after {}:\n{}", pass.name, render(d.iter(), sources)))?;
    }
    Ok(func)
}

fn compare(case: &Case, args: &Args, inputs: &Inputs) -> Result<(), Failed> {
    for output in (case.oracle)(inputs) {
        let Some(tensor) = args.tensor(output.name) else {
            return Err(format!("the kernel has no tensor named {}", output.name).into());
        };
        if tensor.count_unwritten() > 0 {
            return Err(format!(
                "{} elements of {} were never written",
                tensor.count_unwritten(),
                output.name
            )
            .into());
        }
        if let Some(complaint) = output.mismatch(&tensor.to_f64()) {
            return Err(complaint.into());
        }
    }
    Ok(())
}

fn stage(case: &Case, sources: &mut SourceMap) -> Result<Func, Failed> {
    let text = fs::read_to_string(examples().join(case.file))?;
    let file = sources.add(case.file, text);
    let settings = case
        .set
        .iter()
        .map(|(name, value)| Ok((name.to_string(), SettingValue::parse(value)?)))
        .collect::<Result<Vec<_>, String>>()?;
    let staged = frontend::stage(sources, file, Some(case.kernel), &settings)
        .map_err(|d| render(d.iter(), sources))?;
    verify::verify(&staged.func).map_err(|d| render(d.iter(), sources))?;
    Ok(staged.func)
}

/// The case's inputs as arguments, and as the kernel sees them after rounding. Parameters that
/// are neither inputs nor outputs by declaration are written by the kernel.
fn arguments(func: &Func, case: &Case) -> Result<(Args, Inputs), Failed> {
    let mut args = Args::new();
    let mut rounded = Inputs::default();
    for param in &func.params {
        match param {
            Param::Scalar(var) => {
                let data = &func.vars[*var];
                let Some(input) = case.inputs.iter().find(|i| i.name == data.name) else {
                    continue;
                };
                let one = HostTensor::from_f64(data.dtype, &[1], &input.values)
                    .ok_or_else(|| format!("{} is one value", data.name))?;
                let value = if data.dtype.scalar.is_float() {
                    Arg::Float(one.get_f64(0))
                } else {
                    Arg::Int(one.get_f64(0) as i128)
                };
                args.insert(&data.name, value);
                rounded.0.insert(data.name.clone(), one.to_f64());
            }
            Param::Tensor { buffer, output } => {
                let data = &func.buffers[*buffer];
                let tensor = match case.inputs.iter().find(|i| i.name == data.name) {
                    Some(input) => {
                        let tensor = HostTensor::from_f64(data.dtype, &input.shape, &input.values)
                            .ok_or_else(|| format!("{} has the wrong size", data.name))?;
                        rounded.0.insert(data.name.clone(), tensor.to_f64());
                        tensor
                    }
                    None if *output => continue,
                    None => {
                        let shape: Option<Vec<usize>> = data
                            .shape
                            .iter()
                            .map(|e| usize::try_from(e.as_int()?).ok())
                            .collect();
                        shape
                            .and_then(|shape| HostTensor::uninit(data.dtype, &shape))
                            .ok_or_else(|| format!("the case has no input named {}", data.name))?
                    }
                };
                args.insert(&data.name, Arg::Tensor(tensor));
            }
        }
    }
    Ok((args, rounded))
}

fn render<'a>(diags: impl Iterator<Item = &'a Diagnostic>, sources: &SourceMap) -> String {
    let parts: Vec<String> = diags.map(|d| d.render(sources, false)).collect();
    parts.join("\n\n")
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// A kernel that nobody checks is not an example of anything.
fn every_kernel_has_a_case() -> Result<(), Failed> {
    let checked: BTreeSet<(String, String)> = oracle::all_cases()
        .iter()
        .map(|case| (case.file.to_string(), case.kernel.to_string()))
        .collect();
    let mut present = BTreeSet::new();
    for entry in fs::read_dir(examples())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "py") {
            let file = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            for kernel in kernels_in(&fs::read_to_string(&path)?) {
                present.insert((file.clone(), kernel));
            }
        }
    }
    let unchecked: Vec<_> = present.difference(&checked).collect();
    let missing: Vec<_> = checked.difference(&present).collect();
    if unchecked.is_empty() && missing.is_empty() {
        return Ok(());
    }
    Err(
        format!("kernels without a case: {unchecked:?}; cases without a kernel: {missing:?}")
            .into(),
    )
}

/// The top-level functions that are kernels: those under `@tilelang.jit` and those that hold an
/// inner `@T.prim_func`.
fn kernels_in(source: &str) -> Vec<String> {
    let mut kernels = Vec::new();
    let mut decorated = false;
    let mut current: Option<&str> = None;
    for line in source.lines() {
        if let Some(definition) = line.strip_prefix("def ") {
            current = definition.split('(').next();
            if decorated {
                kernels.extend(current.take().map(str::to_string));
            }
            decorated = false;
        } else if line.starts_with("@tilelang.jit") {
            decorated = true;
        } else if line.trim() == "@T.prim_func" {
            kernels.extend(current.take().map(str::to_string));
        }
    }
    kernels
}

/// A bound that accepts everything would make the whole file worthless.
fn the_comparison_can_fail() -> Result<(), Failed> {
    let element = Approx {
        value: 3.0,
        slack: 0.001,
    };
    let output = Output::new("C", vec![element; 4], F16);
    let bound = element.rounded(F16).slack;
    let with = |third: f64| output.mismatch(&[3.0, 3.0, third, 3.0]);
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
    if output.mismatch(&[3.0]).is_none() {
        return Err("a result of another size should not pass".into());
    }
    Ok(())
}
