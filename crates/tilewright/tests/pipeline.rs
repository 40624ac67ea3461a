//! Pipelined loops of every kind, with one to six stages, against the reference evaluator.
//!
//! Each file of `pipeline/` is a kernel on whole numbers, so results are equal to the last bit.
//! The hazard checker finds nothing, and it runs for every target, in every mode of asynchrony and several orders of warps. Header
//! lines say what it runs on: `# run: n=3` sets arguments (once more for each line), `# iota:
//! table=6` fills a tensor with 0, 1, … below six (others count to eleven), and `# warns: CODE`
//! names the warning that must come where more than one stage is asked for; any other warning
//! is a failure.

#[path = "kernels/landings.rs"]
mod landings;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use tilewright::frontend::{self, SettingValue};
use tilewright::ir::small_float::Number;
use tilewright::ir::{Diagnostic, Func, Param, Severity, SourceMap, Target};
use tilewright::passes::driver::{self, Options};
use tilewright::schedule::hazard;
use tilewright::sim::simt::{self, SimtOptions};
use tilewright::sim::{self, Args, Fill, InputSpec, RunOptions};

use landings::landings;

const TARGETS: [Target; 3] = [Target::Sm80, Target::Gfx942, Target::Gfx950];
const STAGES: [u32; 6] = [1, 2, 3, 4, 5, 6];
const SEEDS: u64 = 5;

fn main() {
    let args = Arguments::from_args();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pipeline");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder of kernels")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let mut trials = Vec::new();
    for path in files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        for target in TARGETS {
            let path = path.clone();
            let title = format!("{name} {target}");
            trials.push(Trial::test(title, move || kernel(&path, target)));
        }
    }
    libtest_mimic::run(&args, trials).exit();
}

/// What the header of a file says.
struct Header {
    runs: Vec<BTreeMap<String, Number>>,
    fills: BTreeMap<String, Fill>,
    warns: Option<String>,
}

fn header(text: &str) -> Result<Header, Failed> {
    let mut header = Header {
        runs: Vec::new(),
        fills: BTreeMap::new(),
        warns: None,
    };
    let pairs = |line: &str| -> Result<Vec<(String, i64)>, Failed> {
        let each = line.split_whitespace().map(|word| {
            let (name, value) = word.split_once('=').ok_or("a setting is NAME=VALUE")?;
            Ok((name.to_string(), value.parse()?))
        });
        each.collect()
    };
    for line in text.lines() {
        if let Some(line) = line.strip_prefix("# run: ") {
            let values = pairs(line)?.into_iter();
            let run = values.map(|(name, value)| (name, Number::Int(value.into())));
            header.runs.push(run.collect());
        } else if let Some(line) = line.strip_prefix("# iota: ") {
            for (name, below) in pairs(line)? {
                header.fills.insert(name, Fill::Iota(below as u64));
            }
        } else if let Some(code) = line.strip_prefix("# warns: ") {
            header.warns = Some(code.to_string());
        }
    }
    if header.runs.is_empty() {
        header.runs.push(BTreeMap::new());
    }
    Ok(header)
}

fn kernel(path: &Path, target: Target) -> Result<(), Failed> {
    let text = fs::read_to_string(path)?;
    let header = header(&text)?;
    let mut sources = SourceMap::new();
    let file = sources.add(path.display().to_string(), text);
    for stages in STAGES {
        let settings = [(
            "num_stages".to_string(),
            SettingValue::parse(&stages.to_string())?,
        )];
        let staged = frontend::stage(&sources, file, Some("kernel"), &settings)
            .map_err(|d| render(d.iter(), &sources))?;
        let (lowered, diags) = lower(staged.func.clone(), target, &sources)?;
        let wanted = header.warns.as_deref().filter(|_| stages > 1);
        // A note says how something is done, not that it is not.
        let warned = diags.iter().filter(|d| d.severity > Severity::Note);
        let codes: Vec<&str> = warned.map(|d| d.code.0).collect();
        if codes.first().copied() != wanted || codes.iter().any(|c| Some(*c) != wanted) {
            return Err(format!("{stages} stages: {}", render(diags.iter(), &sources)).into());
        }
        let checked = hazard::check(&lowered, target);
        if !checked.hazards.is_empty() {
            let found = render(checked.diagnostics().iter(), &sources);
            return Err(format!("{stages} stages, hazards:\n{found}\n{lowered}").into());
        }
        for run in &header.runs {
            runs_alike(&staged.func, &lowered, target, &header, run, &sources)
                .map_err(|e| format!("{stages} stages, {run:?}: {}", e.message().unwrap_or("")))?;
        }
    }
    Ok(())
}

fn runs_alike(
    func: &Func,
    lowered: &Func,
    target: Target,
    header: &Header,
    run: &BTreeMap<String, Number>,
    sources: &SourceMap,
) -> Result<(), Failed> {
    let mut spec = InputSpec {
        values: run.clone(),
        ..InputSpec::default()
    };
    for (buffer, _) in func.tensors() {
        let name = &func.buffers[buffer].name;
        let fill = header.fills.get(name).copied().unwrap_or(Fill::Iota(11));
        spec.fills.insert(name.clone(), fill);
    }
    let inputs =
        || sim::make_inputs(func, &spec).map_err(|e| render(e.diagnostics.iter(), sources));
    let mut expected = inputs()?;
    sim::run(func, &mut expected, &RunOptions::default())
        .map_err(|e| render(e.diagnostics.iter(), sources))?;
    for landing in landings(lowered) {
        for seed in 0..SEEDS {
            let mut args = inputs()?;
            let options = SimtOptions {
                seed,
                landing,
                ..SimtOptions::default()
            };
            let report = simt::run(lowered, target, &mut args, &options)
                .map_err(|e| render(e.diagnostics.iter(), sources))?;
            if !report.is_clean() {
                let found = render(report.diagnostics().iter(), sources);
                return Err(format!("{landing:?}, seed {seed}:\n{found}\n{lowered}").into());
            }
            if let Some(difference) = difference(func, &args, &expected) {
                let at = format!("{landing:?}, seed {seed}: {difference}");
                return Err(format!("{at}\n{lowered}").into());
            }
        }
    }
    Ok(())
}

/// The first element that differs.
fn difference(func: &Func, found: &Args, expected: &Args) -> Option<String> {
    for param in &func.params {
        let Param::Tensor { buffer, .. } = param else {
            continue;
        };
        let name = &func.buffers[*buffer].name;
        let (a, b) = (
            found.tensor(name)?.to_f64(),
            expected.tensor(name)?.to_f64(),
        );
        if let Some(at) = (0..b.len()).find(|&i| a[i].to_bits() != b[i].to_bits()) {
            return Some(format!("{name}[{at}] is {} and not {}", a[at], b[at]));
        }
    }
    None
}

fn lower(
    mut func: Func,
    target: Target,
    sources: &SourceMap,
) -> Result<(Func, Vec<Diagnostic>), Failed> {
    match driver::run(&mut func, target, &Options::default()) {
        Ok(report) => Ok((func, report.said.into_vec())),
        Err(failed) => {
            let found = render(failed.into_diagnostics().iter(), sources);
            Err(format!("{found}\n{func}").into())
        }
    }
}

fn render<'a>(diags: impl Iterator<Item = &'a Diagnostic>, sources: &SourceMap) -> String {
    let parts: Vec<String> = diags.map(|d| d.render(sources, false)).collect();
    parts.join("\n\n")
}
