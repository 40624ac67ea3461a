//! Reading kernels: a Python file and an entry, or IR in text form.

use std::fs;

use std::collections::BTreeMap;

use tilewright::frontend::{self, SettingValue};
use tilewright::ir::{Code, Diagnostic, Func, SourceMap, Span, text, verify};

use super::KernelArgs;
use super::output::{self, Failure};

const UNREADABLE: Code = Code("unreadable-file");

/// A kernel as loaded, with what is needed to speak of it.
#[derive(Debug)]
pub struct Loaded {
    pub func: Func,
    pub sources: SourceMap,
    /// Settings that name run-time sizes rather than parameters.
    pub sizes: BTreeMap<String, i64>,
}

/// Loads and verifies a kernel; errors have been reported when this fails.
pub fn load(args: &KernelArgs, as_json: bool) -> Result<Loaded, Failure> {
    let (path, entry) = split_entry(&args.kernel);
    let settings = parse_settings(&args.set)?;
    let mut sources = SourceMap::new();
    let text = read(path).map_err(|d| output::fail(&[*d], &sources, as_json))?;

    let file = sources.add(path, text.as_str());
    let (func, sizes) = if path.ends_with(".tw") {
        let func = text::parse(&text, file).map_err(|d| output::fail(&d, &sources, as_json))?;
        let sizes = sizes_of(&func, &settings)?;
        (func, sizes)
    } else {
        let staged = frontend::stage(&sources, file, entry, &settings)
            .map_err(|d| output::fail(&d, &sources, as_json))?;
        output::warn(&staged.warnings, &sources);
        (staged.func, staged.symbol_values)
    };
    verify::verify(&func).map_err(|d| output::fail(&d, &sources, as_json))?;
    Ok(Loaded {
        func,
        sources,
        sizes,
    })
}

/// Reads a file as text, or says why it cannot.
pub fn read(path: &str) -> Result<String, Box<Diagnostic>> {
    let bytes = fs::read(path).map_err(|e| {
        let message = format!("cannot read {path}: {e}");
        Box::new(
            Diagnostic::error(UNREADABLE, Span::NONE, message)
                .help("give the path of a kernel file, such as examples/gemm.py"),
        )
    })?;
    frontend::decode(bytes)
}

/// `file.py:entry` as two parts. A colon that belongs to the path (`C:\…`) stays there.
fn split_entry(kernel: &str) -> (&str, Option<&str>) {
    match kernel.rsplit_once(':') {
        Some((path, entry)) if !entry.contains(['/', '\\']) && !path.is_empty() => {
            (path, Some(entry))
        }
        _ => (kernel, None),
    }
}

fn parse_settings(set: &[String]) -> Result<Vec<(String, SettingValue)>, Failure> {
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

/// In text IR the only settings are the values of symbols.
fn sizes_of(
    func: &Func,
    settings: &[(String, SettingValue)],
) -> Result<BTreeMap<String, i64>, Failure> {
    let names: Vec<&str> = func
        .symbols
        .iter()
        .map(|&v| func.vars[v].name.as_str())
        .collect();
    settings
        .iter()
        .map(|(name, value)| match value {
            SettingValue::Int(n) if names.contains(&name.as_str()) => i64::try_from(*n)
                .map(|n| (name.clone(), n))
                .map_err(|_| Failure::Usage(format!("`--set {name}`: {n} is too large"))),
            _ => Err(Failure::Usage(format!(
                "`--set {name}`: text IR takes integers for its symbols ({})",
                names.join(", ")
            ))),
        })
        .collect()
}
