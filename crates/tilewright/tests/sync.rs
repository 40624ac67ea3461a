//! Barriers where control flow, warp groups and variables make them hard to place, and the ways in
//! which the language lets one say things.
//!
//! Each file of `sync/` is a kernel on whole numbers, and so is each of `found/`: what random
//! programs found, made small. `language/` has one for each way to write something. For every target the hazard checker finds nothing in what is
//! compiled, the simulator gets what the reference evaluator gets, in several orders of warps, and
//! source is generated. A first line `# error: CODE` says that the kernel cannot be compiled:
//! the error with that code comes instead, at a place in the file.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use tilewright::codegen;
use tilewright::frontend;
use tilewright::ir::{Diagnostic, Diagnostics, Func, Param, SourceMap, Target};
use tilewright::passes::driver::{self, Cause, Options};
use tilewright::schedule::hazard;
use tilewright::sim::simt::{self, SimtOptions};
use tilewright::sim::{self, Fill, InputSpec, Number, RunOptions};

const SEEDS: u64 = 4;

fn main() {
    let args = Arguments::from_args();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut files: Vec<PathBuf> = ["sync", "found", "language"]
        .into_iter()
        .flat_map(|folder| fs::read_dir(tests.join(folder)).expect("the folder of kernels"))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let mut trials = Vec::new();
    for path in files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        for target in Target::ALL {
            let path = path.clone();
            let title = format!("{name} {target}");
            trials.push(Trial::test(title, move || kernel(&path, target)));
        }
    }
    libtest_mimic::run(&args, trials).exit();
}

fn kernel(path: &Path, target: Target) -> Result<(), Failed> {
    let text = fs::read_to_string(path)?;
    let first = text.lines().next().unwrap_or_default();
    let wanted = first.strip_prefix("# error: ").map(str::to_string);
    let mut sources = SourceMap::new();
    let file = sources.add(path.display().to_string(), text);
    let staged =
        frontend::stage(&sources, file, None, &[]).map_err(|d| render(d.iter(), &sources))?;
    let (lowered, diags) = lower(staged.func.clone(), target);
    if let Some(code) = wanted {
        let mut errors = diags.iter();
        return match errors.find(|d| d.code.0 == code && !d.primary.span.is_none()) {
            Some(_) => Ok(()),
            None => Err(format!("no `{code}`: {}", render(diags.iter(), &sources)).into()),
        };
    }
    if diags.has_errors() {
        return Err(render(diags.iter(), &sources).into());
    }
    let checked = hazard::check(&lowered, target);
    if !checked.hazards.is_empty() {
        let found = render(checked.diagnostics().iter(), &sources);
        return Err(format!("hazards:\n{found}\n{lowered}").into());
    }
    runs_alike(&staged.func, &lowered, target, &sources)?;
    let options = codegen::Options {
        sources: Some(&sources),
        line_directives: false,
    };
    let source = codegen::generate(&lowered, target, options);
    source.map_err(|d| d.render(&sources, false))?;
    Ok(())
}

/// The function as it is compiled, as far as there is no error.
fn lower(mut func: Func, target: Target) -> (Func, Diagnostics) {
    let diags = match driver::run(&mut func, target, &Options::default()) {
        Ok(report) => report.said,
        Err(failed) => {
            let broken = matches!(failed.cause, Cause::Broken(_));
            assert!(!broken, "{:?}\n{func}", failed.errors);
            failed.into_diagnostics()
        }
    };
    (func, diags)
}

fn runs_alike(
    func: &Func,
    lowered: &Func,
    target: Target,
    sources: &SourceMap,
) -> Result<(), Failed> {
    let mut spec = InputSpec::default();
    for (buffer, _) in func.tensors() {
        let name = func.buffers[buffer].name.clone();
        spec.fills.insert(name, Fill::Iota(11));
    }
    for &symbol in &func.symbols {
        let name = func.vars[symbol].name.clone();
        spec.values.insert(name, Number::Int(3));
    }
    let failed = |e: sim::RunError| render(e.diagnostics.iter(), sources);
    let mut expected = sim::make_inputs(func, &spec).map_err(failed)?;
    sim::run(func, &mut expected, &RunOptions::default()).map_err(failed)?;
    for seed in 0..SEEDS {
        let mut args = sim::make_inputs(func, &spec).map_err(failed)?;
        let options = SimtOptions {
            seed,
            ..SimtOptions::default()
        };
        let report = simt::run(lowered, target, &mut args, &options).map_err(failed)?;
        if !report.is_clean() {
            let found = render(report.diagnostics().iter(), sources);
            return Err(format!("seed {seed}:\n{found}\n{lowered}").into());
        }
        for param in &func.params {
            let Param::Tensor { buffer, .. } = param else {
                continue;
            };
            let name = &func.buffers[*buffer].name;
            let [a, b] = [&args, &expected].map(|a| a.tensor(name).map(|t| t.to_f64()));
            if a != b {
                return Err(format!("seed {seed}: `{name}` differs\n{lowered}").into());
            }
        }
    }
    Ok(())
}

fn render<'a>(diags: impl Iterator<Item = &'a Diagnostic>, sources: &SourceMap) -> String {
    let parts: Vec<String> = diags.map(|d| d.render(sources, false)).collect();
    parts.join("\n\n")
}
