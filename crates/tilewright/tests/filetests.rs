//! Runs every file under `filetests/` and `examples/` as a test of its own.
//!
//! A filetest is a text with a header that says what to run, the input, and the whole
//! expected output as comments at the end:
//!
//! ```text
//! # test: opt simplify
//! func @f level=tile { … }
//! # expect:
//! # func @f level=tile { … }
//! ```
//!
//! Commands: `parse` prints what was parsed, `verify` prints the verifier's findings,
//! `opt PASS,…` runs passes and prints the function, `explain PASS,…` what they decided, and for Python files `stage NAME=VALUE …`
//! stages the first kernel, or `stage :entry NAME=VALUE …` another, and prints it.
//! `BLESS=1` rewrites the expectations; nobody edits them by hand.
//!
//! Every example is staged, verified and round-tripped through its text form.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use libtest_mimic::{Arguments, Failed, Trial};
use tilewright::frontend::{self, SettingValue};
use tilewright::ir::{self, Diagnostic, Func, SourceMap, Target, text, verify};
use tilewright::passes;
use tilewright::passes::driver::{self, Options};

/// The line after which the expected output stands. Text IR and Python comment alike.
const MARKER: &str = "# expect:";

fn main() {
    let args = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut trials = Vec::new();
    for path in files_below(&root.join("filetests")) {
        let name = path
            .strip_prefix(&root)
            .unwrap_or(&path)
            .display()
            .to_string();
        trials.push(Trial::test(name, move || filetest(&path)));
    }
    for path in files_below(&root.join("examples")) {
        if path.extension().is_some_and(|e| e == "py") {
            let name = format!(
                "round-trip {}",
                path.file_name().unwrap_or_default().to_string_lossy()
            );
            trials.push(Trial::test(name, move || round_trip(&path)));
        }
    }
    trials.push(Trial::test("every pass has its folder", move || {
        pass_folders(&root.join("filetests"))
    }));
    libtest_mimic::run(&args, trials).exit();
}

fn filetest(path: &Path) -> Result<(), Failed> {
    let content = fs::read_to_string(path)?;
    let input = match content.find(&format!("\n{MARKER}")) {
        Some(at) => &content[..=at],
        None => &content,
    };
    let header = input.lines().next().unwrap_or("");
    let Some(command) = header.strip_prefix("# test: ") else {
        return Err("the first line must be `# test: COMMAND`".into());
    };
    let output = run_command(command, path, input)?;

    let mut expected = format!("{}\n{MARKER}\n", input.trim_end());
    for line in output.lines() {
        let line = format!("# {line}");
        let _ = writeln!(expected, "{}", line.trim_end());
    }
    if expected == content {
        return Ok(());
    }
    if env::var_os("BLESS").is_some() {
        fs::write(path, expected)?;
        return Ok(());
    }
    Err(format!(
        "the output is not what {} expects; run with BLESS=1 and read the change.\n{}",
        path.display(),
        first_difference(&content, &expected)
    )
    .into())
}

fn run_command(command: &str, path: &Path, input: &str) -> Result<String, Failed> {
    let mut words = command.split_whitespace();
    let mut sources = SourceMap::new();
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    match words.next() {
        Some("parse") => Ok(match parse(&mut sources, &name, input) {
            Ok(func) => text::print(&func),
            Err(diags) => render(&diags, &sources),
        }),
        Some("verify") => Ok(match parse(&mut sources, &name, input) {
            Ok(func) => match verify::verify(&func) {
                Ok(()) => "ok".to_string(),
                Err(diags) => render(&diags, &sources),
            },
            Err(diags) => render(&diags, &sources),
        }),
        Some(command @ ("opt" | "explain")) => {
            let mut func = match parse(&mut sources, &name, input) {
                Ok(func) => func,
                Err(diags) => return Err(render(&diags, &sources).into()),
            };
            let names = words.next().unwrap_or("");
            let target = match words.next() {
                Some(t) => Target::from_name(t).ok_or(format!("unknown target {t}"))?,
                None => Target::Gfx950,
            };
            let find = |name| passes::find(name).ok_or(format!("unknown pass {name}"));
            let list: Result<Vec<_>, String> = names.split(',').map(find).collect();
            let options = Options {
                passes: Some(list?),
                ..Options::default()
            };
            let diags = match driver::run(&mut func, target, &options) {
                Ok(report) if command == "explain" => {
                    return Ok(report.remarks.render(&sources, false));
                }
                Ok(report) => report.said,
                Err(failed) => {
                    // What a pass refuses is sound all the same.
                    if verify::verify(&func).is_err() {
                        return Err(failed.errors.render(&sources, false).into());
                    }
                    failed.into_diagnostics()
                }
            };
            let mut out = String::new();
            if !diags.is_empty() {
                let _ = writeln!(out, "{}", diags.render(&sources, false));
            }
            out.push_str(&text::print(&func));
            Ok(out)
        }
        Some("stage") => stage(&name, input, words),
        other => Err(format!("unknown command {other:?}").into()),
    }
}

fn stage<'a>(
    name: &str,
    input: &str,
    words: impl Iterator<Item = &'a str>,
) -> Result<String, Failed> {
    let mut entry = None;
    let mut settings = Vec::new();
    for word in words {
        if let Some(name) = word.strip_prefix(':') {
            entry = Some(name);
        } else {
            let (key, value) = word.split_once('=').ok_or(format!("bad setting {word}"))?;
            settings.push((key.to_string(), SettingValue::parse(value)?));
        }
    }
    let mut sources = SourceMap::new();
    let file = sources.add(name, input);
    Ok(match frontend::stage(&sources, file, entry, &settings) {
        Ok(staged) => text::print(&staged.func),
        Err(diags) => render(&diags, &sources),
    })
}

fn round_trip(path: &Path) -> Result<(), Failed> {
    let content = fs::read_to_string(path)?;
    let mut sources = SourceMap::new();
    let name = path.display().to_string();
    let file = sources.add(name, content);
    let staged = frontend::stage(&sources, file, None, &[]).map_err(|d| render(&d, &sources))?;
    verify::verify(&staged.func).map_err(|d| render(&d, &sources))?;
    let printed = text::print(&staged.func);
    let parsed = parse(&mut sources, "printed.tw", &printed).map_err(|d| render(&d, &sources))?;
    if parsed != staged.func {
        return Err(format!("parse(print(f)) != f for\n{printed}").into());
    }
    Ok(())
}

/// One pass, one folder, one name.
fn pass_folders(root: &Path) -> Result<(), Failed> {
    for pass in passes::PASSES {
        if !root.join(pass.name).is_dir() {
            return Err(format!("filetests/{} is missing", pass.name).into());
        }
    }
    Ok(())
}

fn parse(sources: &mut SourceMap, name: &str, input: &str) -> Result<Func, Vec<Diagnostic>> {
    let file: ir::FileId = sources.add(name, input);
    text::parse(input, file)
}

fn render(diags: &[Diagnostic], sources: &SourceMap) -> String {
    let parts: Vec<String> = diags.iter().map(|d| d.render(sources, false)).collect();
    parts.join("\n\n")
}

fn first_difference(was: &str, is: &str) -> String {
    for (number, (a, b)) in was.lines().zip(is.lines()).enumerate() {
        if a != b {
            return format!("line {}:\n  expected {a}\n  found    {b}", number + 1);
        }
    }
    format!(
        "one ends early: {} lines expected, {} found",
        was.lines().count(),
        is.lines().count()
    )
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else {
        return found;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}
