//! Reading kernels: a Python file and an entry, or IR in text form.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use tilewright::frontend::{self, Facts, SettingValue};
use tilewright::ir::nearest::suggestion;
use tilewright::ir::small_float::Number;
use tilewright::ir::{
    Code, Diagnostic, FileId, Func, Param, SourceMap, Span, VarData, text, verify,
};
use tilewright::passes::order_text;
use tilewright::passes::schedules::{SCHEDULES, ask_for_schedule, find_schedule};

use super::KernelArgs;
use super::output::{self, Failure};

const UNREADABLE: Code = Code("unreadable-file");
const ORDER: Code = Code("schedule-text");

/// Run-time sizes by name.
pub type Sizes = BTreeMap<String, i64>;
/// Scalars of a launch by name.
pub type Scalars = BTreeMap<String, Number>;

/// A kernel as loaded, with what is needed to speak of it.
#[derive(Debug)]
pub struct Loaded {
    pub func: Func,
    pub sources: SourceMap,
    /// What the front end said.
    pub warnings: Vec<Diagnostic>,
    /// Settings that name run-time sizes rather than parameters.
    pub sizes: Sizes,
    /// Settings that name scalars of the kernel, given at each launch.
    pub scalars: Scalars,
    /// How long all this took.
    pub took: Duration,
}

/// Why a kernel could not be loaded.
#[derive(Debug)]
pub enum Unloaded {
    Usage(String),
    Diagnostics(Vec<Diagnostic>, SourceMap),
}

/// Loads and verifies a kernel; what it asks of the machine is in the facts. Errors have been
/// reported when this fails.
pub fn load(args: &KernelArgs, facts: impl Into<Facts>, as_json: bool) -> Result<Loaded, Failure> {
    let settings = parse_settings(&args.set)?;
    let loaded = try_load(args, facts.into(), &settings).map_err(|e| refuse(e, as_json))?;
    output::warn(&loaded.warnings, &loaded.sources);
    Ok(loaded)
}

/// Reports why a kernel could not be loaded.
pub fn refuse(why: Unloaded, as_json: bool) -> Failure {
    match why {
        Unloaded::Usage(text) => Failure::Usage(text),
        Unloaded::Diagnostics(diags, sources) => output::fail(&diags, &sources, as_json),
    }
}

/// The same with settings as values, and without a word.
pub fn try_load(
    args: &KernelArgs,
    facts: Facts,
    settings: &[(String, SettingValue)],
) -> Result<Loaded, Unloaded> {
    let mut sources = SourceMap::new();
    match loaded(args, facts, settings, &mut sources) {
        Ok(mut loaded) => {
            loaded.sources = sources;
            Ok(loaded)
        }
        Err(Problem::Usage(text)) => Err(Unloaded::Usage(text)),
        Err(Problem::Diagnostics(diags)) => Err(Unloaded::Diagnostics(diags, sources)),
    }
}

/// What is wrong; places are of the sources that were read so far.
enum Problem {
    Usage(String),
    Diagnostics(Vec<Diagnostic>),
}

impl From<Vec<Diagnostic>> for Problem {
    fn from(diags: Vec<Diagnostic>) -> Problem {
        Problem::Diagnostics(diags)
    }
}

impl From<Box<Diagnostic>> for Problem {
    fn from(diag: Box<Diagnostic>) -> Problem {
        Problem::Diagnostics(vec![*diag])
    }
}

fn loaded(
    args: &KernelArgs,
    facts: Facts,
    settings: &[(String, SettingValue)],
    sources: &mut SourceMap,
) -> Result<Loaded, Problem> {
    let start = Instant::now();
    let (path, entry) = split_entry(&args.kernel);
    let file = read(sources, path)?;
    let mut warnings = Vec::new();
    let (mut func, sizes, scalars) = if path.ends_with(".tw") {
        let func = text::parse(sources.text(file), file)?;
        let (sizes, scalars) = values_of(&func, settings).map_err(Problem::Usage)?;
        (func, sizes, scalars)
    } else {
        read_beside(sources, path, file)?;
        let staged = frontend::stage_for(sources, file, entry, settings, facts)?;
        warnings = staged.warnings;
        (staged.func, staged.symbol_values, staged.scalar_values)
    };
    if args.schedule != super::AUTO {
        let (asked, file) = schedule(&args.schedule, sources)?;
        if let Some(of) = ask_for_schedule(&mut func, &asked).first() {
            let name = &of.name;
            let message = format!("an order is for the loop over `{name}`: no pipelined loop is");
            let span = file.map_or(Span::NONE, |file| {
                Span::new(file, of.start as u32, of.end as u32)
            });
            let error = Diagnostic::error(ORDER, span, message)
                .help("`--emit schedule` prints the orders of all loops that have one");
            return Err(vec![error].into());
        }
    }
    for (decision, on) in &args.decide {
        decision.ask(&mut func, *on);
    }
    verify::verify(&func)?;
    Ok(Loaded {
        func,
        sources: SourceMap::new(),
        warnings,
        sizes,
        scalars,
        took: start.elapsed(),
    })
}

/// The schedule that `--schedule` asks for: a name, or the orders of a file.
fn schedule(asked: &str, sources: &mut SourceMap) -> Result<(String, Option<FileId>), Problem> {
    if find_schedule(asked).is_some() {
        return Ok((asked.to_string(), None));
    }
    if !Path::new(asked).exists() {
        let names = || SCHEDULES.iter().map(|s| s.name);
        let meant = suggestion(asked, names()).map_or_else(String::new, |text| format!("{text} "));
        let names = names().collect::<Vec<_>>().join(", ");
        return Err(Problem::Usage(format!(
            "`--schedule {asked}`: there is no such schedule, nor such a file; {meant}the schedules are {names}"
        )));
    }
    let file = read(sources, asked)?;
    let text = sources.text(file).to_owned();
    match order_text::parse(&text) {
        Ok(_) => Ok((text, Some(file))),
        Err(mistake) => {
            let span = Span::new(file, mistake.start as u32, mistake.end as u32);
            let error = Diagnostic::error(ORDER, span, mistake.message);
            Err(vec![error].into())
        }
    }
}

/// Reads a file into the sources, or says why it cannot.
pub fn read(sources: &mut SourceMap, path: &str) -> Result<FileId, Box<Diagnostic>> {
    let bytes = fs::read(path).map_err(|e| {
        let message = format!("cannot read {path}: {e}");
        Box::new(
            Diagnostic::error(UNREADABLE, Span::NONE, message)
                .help("give the path of a kernel file, such as examples/gemm.py"),
        )
    })?;
    frontend::add_source(sources, path, bytes)
}

/// Reads the files beside a kernel's that it imports, and those that they import.
fn read_beside(sources: &mut SourceMap, path: &str, file: FileId) -> Result<(), Box<Diagnostic>> {
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let mut read_from = vec![(file, folder.to_path_buf())];
    let mut seen = BTreeSet::from([Path::new(path).to_path_buf()]);
    while let Some((file, own)) = read_from.pop() {
        for module in frontend::imports(sources.text(file)) {
            let name = format!("{}.py", module.replace('.', "/"));
            // A name with a dot before it means the folder of the file that has it.
            for folder in [folder, &own] {
                let path = folder.join(&name);
                if !path.is_file() || !seen.insert(path.clone()) {
                    continue;
                }
                if seen.len() > frontend::MAX_FILES {
                    let message = format!("a kernel reads at most {} files", frontend::MAX_FILES);
                    let help = "put what it needs into fewer files";
                    return Err(Box::new(
                        Diagnostic::error(UNREADABLE, Span::new(file, 0, 0), message).help(help),
                    ));
                }
                let other = read(sources, &path.to_string_lossy())?;
                let own = path.parent().unwrap_or(folder).to_path_buf();
                read_from.push((other, own));
            }
        }
    }
    Ok(())
}

/// `file.py:entry` as two parts. A colon that belongs to the path (`C:\…`) stays there.
pub fn split_entry(kernel: &str) -> (&str, Option<&str>) {
    match kernel.rsplit_once(':') {
        Some((path, entry)) if !entry.contains(['/', '\\']) && !path.is_empty() => {
            (path, Some(entry))
        }
        _ => (kernel, None),
    }
}

pub fn parse_settings(set: &[String]) -> Result<Vec<(String, SettingValue)>, Failure> {
    set.iter()
        .map(|item| match item.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                let value = SettingValue::parse(value)
                    .map_err(|why| Failure::Usage(format!("`--set {item}`: {why}")))?;
                Ok((name.trim().to_string(), value))
            }
            _ => Err(Failure::Usage(format!(
                "`--set {item}` is not of the form NAME=VALUE"
            ))),
        })
        .collect()
}

/// In text IR the only settings are the values of symbols and of scalar parameters.
fn values_of(func: &Func, settings: &[(String, SettingValue)]) -> Result<(Sizes, Scalars), String> {
    let (mut sizes, mut scalars) = (Sizes::new(), Scalars::new());
    let symbols: Vec<&VarData> = func.symbols.iter().map(|&v| &func.vars[v]).collect();
    let params: Vec<&VarData> = func
        .params
        .iter()
        .filter_map(|param| match param {
            Param::Scalar(var) => Some(&func.vars[*var]),
            Param::Tensor { .. } => None,
        })
        .collect();
    for (name, value) in settings {
        let usage = |why: String| format!("`--set {name}={value}`: {why}");
        let named = |list: &[&VarData]| list.iter().find(|v| v.name == *name).map(|v| v.dtype);
        if let Some(dtype) = named(&symbols) {
            match value.scalar(dtype).map_err(usage)? {
                Number::Int(n) => {
                    let size = i64::try_from(n).map_err(|_| usage("it is too large".to_string()));
                    sizes.insert(name.clone(), size?);
                }
                Number::Float(_) => return Err(usage("a size is an int".to_string())),
            }
        } else if let Some(dtype) = named(&params) {
            scalars.insert(name.clone(), value.scalar(dtype).map_err(usage)?);
        } else {
            let all = symbols.iter().chain(&params).map(|v| v.name.as_str());
            let all: Vec<&str> = all.collect();
            return Err(usage(format!(
                "text IR takes values for its symbols and scalars ({})",
                all.join(", ")
            )));
        }
    }
    Ok((sizes, scalars))
}
