//! The cases on a GPU of this machine.

use libtest_mimic::{Failed, Trial};
use tilewright::ir::{SourceMap, Target};
use tilewright::jit;
use tilewright::runtime::device::cuda;
use tilewright::runtime::env::Env;
use tilewright::verdict::multiplies_fp8;

use super::{arguments, as_multiplied, compare_within, render, stage};
use crate::oracle::{self, Case};

/// Every case for every NVIDIA target, where someone asks for it: machines that run the tests
/// mostly have no GPU. Where it is asked for, a missing one is a failure.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    if std::env::var_os("TILEWRIGHT_TEST_GPU").is_none() {
        return trials;
    }
    for target in [Target::Sm80, Target::Sm90a] {
        for case in oracle::all_cases().iter().filter(|c| c.is_for(target)) {
            let title = format!("gpu {target} {}", case.title());
            trials.push(Trial::test(title, move || on_gpu(case, target)));
        }
    }
    trials
}

/// The kernel, compiled for a target, gives the same on the first GPU of this machine.
fn on_gpu(case: &Case, target: Target) -> Result<(), Failed> {
    let mut sources = SourceMap::new();
    let func = stage(case, &mut sources)?;
    let (mut args, inputs) = arguments(&func, case)?;
    let told = |e: jit::Error| render(e.into_diagnostics().iter(), &sources);
    let device = cuda::open(0).map_err(|e| e.to_string())?;
    let info = device.info();
    let options = jit::Options {
        arch: (!info.runs(target.name())).then(|| info.arch()),
        ..jit::Options::default()
    };
    let program = jit::build(&func, target, &options, Some(&sources), &Env::process());
    let loaded = program.and_then(|p| p.load(&device)).map_err(told)?;
    loaded.run(&mut args).map_err(told)?;
    // Sums of fp8 products have fewer bits there.
    let by = match multiplies_fp8(&func) {
        true => 2f64.powi(23 - target.machine().fp8_sum_bits as i32),
        false => 1.0,
    };
    compare_within(case, &args, &as_multiplied(case, target, inputs), by)
}
