//! Every example compiles for every NVIDIA target with the real compiler, and keeps its registers:
//! nothing spills and no register array is in memory. No GPU is needed, NVRTC is.

use std::fs;
use std::path::Path;

use libtest_mimic::{Arguments, Failed, Trial};
use tilewright::codegen;
use tilewright::frontend;
use tilewright::ir::{Diagnostic, SourceMap, Target};
use tilewright::jit;
use tilewright::runtime::env::Env;
use tilewright::runtime::toolchain::{CompileOptions, Nvrtc};

fn main() {
    let args = Arguments::from_args();
    let mut trials = Vec::new();
    for target in [Target::Sm80, Target::Sm90a] {
        for name in examples() {
            let title = format!("{target} {name}");
            trials.push(Trial::test(title, move || compiles(&name, target)));
        }
    }
    libtest_mimic::run(&args, trials).exit();
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn examples() -> Vec<String> {
    let files = fs::read_dir(folder()).expect("the examples are there");
    let mut names: Vec<String> = files
        .filter_map(|f| Some(f.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|name| name.ends_with(".py"))
        .collect();
    names.sort();
    assert!(!names.is_empty());
    names
}

fn compiles(name: &str, target: Target) -> Result<(), Failed> {
    let mut sources = SourceMap::new();
    let file = sources.add(name, fs::read_to_string(folder().join(name))?);
    let render = |list: &[Diagnostic], sources: &SourceMap| -> Failed {
        let text: Vec<String> = list.iter().map(|d| d.render(sources, false)).collect();
        text.join("\n").into()
    };
    let staged = frontend::stage(&sources, file, None, &[]).map_err(|d| render(&d, &sources))?;
    let (func, _) =
        jit::lower(&staged.func, target).map_err(|e| render(&e.into_diagnostics(), &sources))?;
    let options = codegen::Options {
        sources: Some(&sources),
        line_directives: false,
    };
    let source = codegen::generate(&func, target, options).map_err(|d| render(&[*d], &sources))?;
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
