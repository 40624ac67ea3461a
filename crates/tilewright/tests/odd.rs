//! Odd kernels, for the vendors' compilers: every type and function, ragged tiles, loops that a
//! compiler reshapes. Each compiles for every target with the real compiler, and the audit of what
//! clang makes of it finds nothing wrong; what only costs time is not asked for here.
//!
//! Each file of `odd/` is a kernel. Header lines `# set: trips=5 stages=3` set arguments, each line
//! for a run of its own. No GPU is needed; NVRTC and clang are.

#[expect(dead_code, reason = "the list of examples is for other tests")]
mod corpus;

use std::fs;
use std::path::Path;

use libtest_mimic::{Arguments, Failed, Trial};
use tilewright::ir::{Dialect, Target};
use tilewright::jit::audit::{Budget, audit};
use tilewright::runtime::env::Env;
use tilewright::runtime::toolchain::{AmdClang, CompileOptions, HipOptions, Nvrtc};

fn main() {
    let args = Arguments::from_args();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/odd");
    let mut files: Vec<String> = fs::read_dir(folder)
        .expect("the folder of kernels")
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .collect();
    files.sort();
    let mut trials = Vec::new();
    for file in files {
        for target in Target::ALL {
            let file = file.clone();
            let title = format!("{target} {file}");
            trials.push(Trial::test(title, move || kernel(&file, target)));
        }
    }
    libtest_mimic::run(&args, trials).exit();
}

fn kernel(file: &str, target: Target) -> Result<(), Failed> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/odd")
        .join(file);
    let text = fs::read_to_string(&path)?;
    let mut runs: Vec<Vec<(&str, &str)>> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# set: "))
        .map(|line| line.split(' ').filter_map(|s| s.split_once('=')).collect())
        .collect();
    if runs.is_empty() {
        runs.push(Vec::new());
    }
    let path = path.to_string_lossy();
    for settings in runs {
        compiled(&path, &settings, target)?;
    }
    Ok(())
}

fn compiled(path: &str, settings: &[(&str, &str)], target: Target) -> Result<(), Failed> {
    let (func, source) = corpus::generated(path, settings, target)?;
    if target.machine().dialect == Dialect::Cuda {
        let nvrtc = Nvrtc::find(&Env::process()).map_err(|missing| {
            format!("this test needs NVRTC: run scripts/setup-nvrtc\n{missing}")
        })?;
        nvrtc
            .compile(&source.text, target.name(), &CompileOptions::default())
            .map_err(|e| e.to_string())?;
        return Ok(());
    }
    let clang = AmdClang::find(&Env::process())
        .map_err(|missing| format!("this test needs clang: run scripts/setup-clang\n{missing}"))?;
    let asm = clang
        .assembly(&source.text, target.name(), &HipOptions::default())
        .map_err(|e| e.to_string())?;
    let names: Vec<String> = source.kernels.iter().map(|k| k.name.clone()).collect();
    for audit in audit(&func, target, &names, &asm, Budget::default())? {
        let wrong = audit.report.findings.iter().find(|f| !f.kind.is_cost());
        if let Some(finding) = wrong {
            return Err(format!("{settings:?}: {finding}").into());
        }
    }
    Ok(())
}
