//! How a case is run: staged, lowered, given its inputs, and compared with its oracle.

pub mod banks;
pub mod emulator;
pub mod gpu;
pub mod issues;
pub mod landings;
pub mod mutants;
pub mod shapes;
pub mod stages;

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::Failed;
use tilewright::frontend::{self, SettingValue};
use tilewright::ir::{
    Diagnostic, Func, Param, Scalar, SourceMap, Target, small_float, verify, visit,
};
use tilewright::passes::driver::{self, Options};
use tilewright::schedule::hazard;
use tilewright::sim::simt::{self, Landing, SimtOptions};
use tilewright::sim::{self, Arg, Args, HostTensor, RunOptions};

use crate::oracle::{Case, Inputs};
use landings::landings;

/// The targets that every kernel is lowered for.
pub const TARGETS: [Target; 3] = [Target::Sm80, Target::Gfx942, Target::Gfx950];

/// Orders of warps that each lowered kernel is run in, and with other landings of what is asynchronous.
const SEEDS: u64 = 5;
const SEEDS_LANDING: u64 = 2;

/// The kernel on the reference evaluator gives what the formula gives.
pub fn reference(case: &Case) -> Result<(), Failed> {
    let mut sources = SourceMap::new();
    let func = stage(case, &mut sources)?;
    let (mut args, inputs) = arguments(&func, case)?;
    sim::run(&func, &mut args, &RunOptions::default())
        .map_err(|e| render(e.diagnostics.iter(), &sources))?;
    compare(case, &args, &inputs)
}

/// The kernel, lowered for a target, gives the same in the SIMT simulator, whatever the order of
/// its warps, and nothing is wrong with it; the hazard checker proves it free of hazards.
pub fn simulated(case: &Case, target: Target) -> Result<(), Failed> {
    let mut sources = SourceMap::new();
    let func = lower(stage(case, &mut sources)?, target, &sources)?;
    // Without products of warp groups it is the program of sm_80.
    if target == Target::Sm90a && !has_group_products(&func) {
        return Ok(());
    }
    let landings = landings(&func).into_iter().enumerate();
    let runs = landings.flat_map(|(nth, landing)| {
        let seeds = match landing == Landing::default() {
            true => 0..SEEDS,
            // Others for each.
            false => {
                let first = SEEDS + nth as u64 * SEEDS_LANDING;
                first..first + SEEDS_LANDING
            }
        };
        seeds.map(move |seed| (landing, seed))
    });
    simulate(&func, case, target, &sources, runs)
}

/// Whether warp groups multiply from shared memory somewhere.
pub fn has_group_products(func: &Func) -> bool {
    let mut found = false;
    for kernel in &func.kernels {
        visit::walk_stmts(&kernel.body, &mut |stmt| {
            found |= stmt.as_group_product().is_some();
        });
    }
    found
}

/// Runs a lowered case in these modes of asynchrony and orders of warps.
pub fn simulate(
    func: &Func,
    case: &Case,
    target: Target,
    sources: &SourceMap,
    runs: impl IntoIterator<Item = (Landing, u64)>,
) -> Result<(), Failed> {
    // What the checker cannot follow to the end it does not prove; what it finds is there.
    let checked = hazard::check(func, target);
    if !checked.hazards.is_empty() {
        return Err(render(checked.diagnostics().iter(), sources).into());
    }
    let (given, inputs) = arguments(func, case)?;
    let inputs = as_multiplied(case, target, inputs);
    for (landing, seed) in runs {
        let mut args = given.clone();
        let options = SimtOptions {
            seed,
            landing,
            threads: 1,
            ..SimtOptions::default()
        };
        let report = simt::run(func, target, &mut args, &options)
            .map_err(|e| render(e.diagnostics.iter(), sources))?;
        let at = format!("seed {seed}, {landing:?}:\n");
        if !report.is_clean() {
            return Err((at + &render(report.diagnostics().iter(), sources)).into());
        }
        compare(case, &args, &inputs).map_err(|e| at + e.message().unwrap_or_default())?;
    }
    Ok(())
}

/// float32 operands are multiplied as tf32 where the target has no float32 instruction; then
/// the formula gets what the instruction sees.
fn as_multiplied(case: &Case, target: Target, mut inputs: Inputs) -> Inputs {
    let float32 = case
        .set
        .iter()
        .any(|(n, v)| *n == "dtype" && v == "float32");
    let multiplies = target.machine().mma.iter().any(|m| m.inst.a == Scalar::F32);
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
pub fn lower(mut func: Func, target: Target, sources: &SourceMap) -> Result<Func, Failed> {
    match driver::run(&mut func, target, &Options::default()) {
        Ok(_) => Ok(func),
        Err(failed) => Err(render(failed.into_diagnostics().iter(), sources).into()),
    }
}

fn compare(case: &Case, args: &Args, inputs: &Inputs) -> Result<(), Failed> {
    compare_within(case, args, inputs, 1.0)
}

/// Where each addition of a sum may be off by so many times as much as in float32.
fn compare_within(case: &Case, args: &Args, inputs: &Inputs, by: f64) -> Result<(), Failed> {
    for output in case.expected(inputs).iter() {
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
        if let Some(complaint) = output.mismatch(&tensor.to_f64(), by) {
            return Err(complaint.into());
        }
    }
    Ok(())
}

pub fn stage(case: &Case, sources: &mut SourceMap) -> Result<Func, Failed> {
    let text = fs::read_to_string(root().join(case.folder).join(case.file))?;
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
pub fn arguments(func: &Func, case: &Case) -> Result<(Args, Inputs), Failed> {
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

pub fn render<'a>(diags: impl Iterator<Item = &'a Diagnostic>, sources: &SourceMap) -> String {
    let parts: Vec<String> = diags.map(|d| d.render(sources, false)).collect();
    parts.join("\n\n")
}

/// The checkout; a test binary that was carried to another machine is told where it is.
pub fn root() -> PathBuf {
    match std::env::var_os("TILEWRIGHT_ROOT") {
        Some(root) => PathBuf::from(root),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
    }
}
