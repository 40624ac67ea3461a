//! Reading kernels: a Python file and an entry, or IR in text form.

use std::fs;

use tilewright::frontend;
use tilewright::ir::{Code, Diagnostic, Func, SourceMap, Span, text, verify};

use super::KernelArgs;
use super::output::{self, Failure};

const UNREADABLE: Code = Code("unreadable-file");
const NOT_UTF8: Code = Code("not-utf8");

/// A kernel as loaded, with what is needed to speak of it.
#[derive(Debug)]
pub struct Loaded {
    pub func: Func,
    pub sources: SourceMap,
    /// Settings that name run-time sizes rather than parameters.
    pub sizes: Vec<(String, i64)>,
}

/// Loads and verifies a kernel; errors have been reported when this fails.
pub fn load(args: &KernelArgs, as_json: bool) -> Result<Loaded, Failure> {
    let (path, entry) = split_entry(&args.kernel);
    let settings = parse_settings(&args.set)?;
    let mut sources = SourceMap::new();
    let text = read(path).map_err(|d| output::fail(&[d], &sources, as_json))?;

    let (func, sizes) = if path.ends_with(".tw") {
        let file = sources.add(path, text.as_str());
        let func = text::parse(&text, file).map_err(|d| output::fail(&d, &sources, as_json))?;
        let sizes = sizes_of(&func, &settings)?;
        (func, sizes)
    } else {
        let staged = frontend::stage_source(&mut sources, path, &text, entry, &settings)
            .map_err(|d| output::fail(&d, &sources, as_json))?;
        output::warn(&staged.warnings, &sources);
        (staged.func, staged.sizes)
    };
    verify::verify(&func).map_err(|d| output::fail(&d, &sources, as_json))?;
    Ok(Loaded {
        func,
        sources,
        sizes,
    })
}

/// Reads a file as text, or says why it cannot.
pub fn read(path: &str) -> Result<String, Diagnostic> {
    let bytes = fs::read(path).map_err(|e| {
        Diagnostic::error(UNREADABLE, Span::NONE, format!("cannot read {path}: {e}"))
            .help("give the path of a kernel file, such as examples/gemm.py")
    })?;
    String::from_utf8(bytes).map_err(|e| {
        Diagnostic::error(
            NOT_UTF8,
            Span::NONE,
            format!(
                "{path} is not UTF-8 text (byte {} is not)",
                e.utf8_error().valid_up_to()
            ),
        )
        .help("save the file as UTF-8")
    })
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

fn parse_settings(set: &[String]) -> Result<Vec<(String, String)>, Failure> {
    set.iter()
        .map(|item| match item.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok((name.trim().to_string(), value.to_string()))
            }
            _ => Err(Failure::Usage(format!(
                "`--set {item}` is not of the form NAME=VALUE"
            ))),
        })
        .collect()
}

/// In text IR the only settings are the values of symbols.
fn sizes_of(func: &Func, settings: &[(String, String)]) -> Result<Vec<(String, i64)>, Failure> {
    settings
        .iter()
        .map(|(name, value)| {
            let known = func.symbols.iter().any(|&v| func.vars[v].name == *name);
            match value.trim().parse() {
                Ok(value) if known => Ok((name.clone(), value)),
                _ => {
                    let names: Vec<&str> = func
                        .symbols
                        .iter()
                        .map(|&v| func.vars[v].name.as_str())
                        .collect();
                    Err(Failure::Usage(format!(
                        "`--set {name}={value}`: text IR takes integers for its symbols ({})",
                        names.join(", ")
                    )))
                }
            }
        })
        .collect()
}
