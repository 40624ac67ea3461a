//! Every example compiles for every NVIDIA target with the real compiler, and keeps its registers:
//! nothing spills and no register array is in memory. No GPU is needed, NVRTC is.

mod corpus;

use libtest_mimic::{Arguments, Failed};
use tilewright::ir::Target;
use tilewright::runtime::env::Env;
use tilewright::runtime::toolchain::{CompileOptions, Nvrtc};

fn main() {
    let args = Arguments::from_args();
    let trials = corpus::trials(&[Target::Sm80, Target::Sm90a], compiles);
    libtest_mimic::run(&args, trials.collect()).exit();
}

fn compiles(name: &str, target: Target) -> Result<(), Failed> {
    let (_, source) = corpus::generated(name, &[], target)?;
    let nvrtc = Nvrtc::find(&Env::process())
        .map_err(|missing| format!("this test needs NVRTC: run scripts/setup-nvrtc\n{missing}"))?;
    let cubin = nvrtc
        .compile(&source.text, target.name(), &CompileOptions::default())
        .map_err(|e| e.to_string())?;
    let warnings = cubin.warnings();
    if !warnings.is_empty() {
        return Err(format!("the compiler warns: {warnings:?}").into());
    }
    for kernel in cubin.kernels() {
        let spills = kernel.spills.map_or(1, |s| s.stores + s.loads);
        if spills > 0 || kernel.stack > 0 {
            return Err(format!(
                "{}: {} bytes of stack, {:?}, {} registers",
                kernel.name, kernel.stack, kernel.spills, kernel.registers
            )
            .into());
        }
    }
    Ok(())
}
