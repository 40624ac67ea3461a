//! What goes to the user: text or one JSON object on stdout, diagnostics on stderr.

use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tilewright::ir::{Code, Diagnostic, Severity, SourceMap, Span};
use tilewright::verdict::Verdict;

/// Why a command did not succeed. What the user must know has been printed already, except
/// for bad usage, whose message `main` prints.
#[derive(Debug)]
pub enum Failure {
    /// Exit 1.
    User,
    /// Exit 2.
    Usage(String),
    /// What a worker process exited with, after it said why.
    Worker(u8),
}

pub type Outcome = Result<(), Failure>;

/// Whether something could not be written to stdout.
static CUT_SHORT: AtomicBool = AtomicBool::new(false);

/// Writes to stdout. A reader that went away (`| head`) is no error; a full disk is, and ends the
/// command with exit 1.
pub fn print(text: &str) {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
        && !CUT_SHORT.swap(true, Ordering::Relaxed)
    {
        note(&format!("tilewright: cannot write to stdout: {error}\n"));
    }
}

/// Whether stdout has all that was printed.
pub fn is_whole() -> bool {
    !CUT_SHORT.load(Ordering::Relaxed)
}

/// Writes a file, or says why it cannot; then no part of one is left.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Box<Diagnostic>> {
    fs::write(path, bytes).map_err(|error| {
        if fs::metadata(path).is_ok_and(|meta| meta.is_file()) {
            // Where it cannot be removed it could not be written either.
            let _ = fs::remove_file(path);
        }
        Box::new(unwritable(path, &error))
    })
}

pub fn unwritable(path: &Path, error: &io::Error) -> Diagnostic {
    let message = format!("cannot write {}: {error}", path.display());
    Diagnostic::error(Code("unwritable-file"), Span::NONE, message)
}

/// Writes to stderr what belongs to a result without being it.
pub fn note(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Reports diagnostics on stderr.
pub fn warn(diags: &[Diagnostic], sources: &SourceMap) {
    let color = io::stderr().is_terminal();
    for diag in diags {
        if diag.severity < Severity::Error
            && let Ok(mut said) = SAID.lock()
        {
            said.push(to_json(diag, sources));
        }
        let _ = writeln!(io::stderr(), "{}\n", diag.render(sources, color));
    }
}

/// Reports errors on stderr, and as the one object on stdout with `--json`.
pub fn fail(diags: &[Diagnostic], sources: &SourceMap, as_json: bool) -> Failure {
    fail_with(diags, sources, as_json, json!({}))
}

/// The same, with what else the object is to say.
pub fn fail_with(
    diags: &[Diagnostic],
    sources: &SourceMap,
    as_json: bool,
    mut object: Value,
) -> Failure {
    warn(diags, sources);
    if as_json {
        let errors = diags.iter().filter(|d| d.severity == Severity::Error);
        let errors: Vec<Value> = errors.map(|d| to_json(d, sources)).collect();
        object["ok"] = json!(false);
        object["errors"] = json!(errors);
        print_json(&object);
    } else {
        let errors = diags
            .iter()
            .filter(|d| d.severity == Severity::Error)
            .count();
        let plural = if errors == 1 { "" } else { "s" };
        let _ = writeln!(io::stderr(), "tilewright: {errors} error{plural}");
    }
    Failure::User
}

/// What a comparison with the reference says, for the object of a command.
pub fn verdict_json(verdict: &Verdict) -> Value {
    json!({
        "max_abs_err": verdict.max_abs_err,
        "max_rel_err": verdict.max_rel_err,
        "elements_compared": verdict.elements,
        "elements_wrong": verdict.wrong.iter().map(|w| w.elements).sum::<usize>(),
        "elements_unwritten": verdict.unwritten,
    })
}

/// Reports that a result is not the reference's.
pub fn wrong(diag: &Diagnostic, verdict: &Verdict, sources: &SourceMap, as_json: bool) -> Failure {
    let diags = std::slice::from_ref(diag);
    fail_with(diags, sources, as_json, verdict_json(verdict))
}

/// The version of the objects that `--json` prints; it changes where a field does.
pub const SCHEMA: u32 = 1;

/// What was said beside the result, for the object.
static SAID: Mutex<Vec<Value>> = Mutex::new(Vec::new());

/// Prints the one object of a command. `schema`, `version`, `ok` and `warnings` are in all of them.
pub fn print_json(value: &Value) {
    let mut value = value.clone();
    if let Value::Object(object) = &mut value {
        let said = SAID.lock().map(|mut said| std::mem::take(&mut *said));
        object.insert("schema".to_string(), json!(SCHEMA));
        object.insert("version".to_string(), json!(env!("CARGO_PKG_VERSION")));
        object.insert("warnings".to_string(), json!(said.unwrap_or_default()));
        object.entry("ok").or_insert(json!(true));
    }
    print(&format!("{value}\n"));
}

/// The object of a command that could not be begun or ended: bad usage, a mistake of ours.
pub fn print_failure(code: Code, message: &str) {
    let diag = Diagnostic::error(code, Span::NONE, message);
    let error = to_json(&diag, &SourceMap::new());
    print_json(&json!({ "ok": false, "errors": [error] }));
}

pub fn to_json(diag: &Diagnostic, sources: &SourceMap) -> Value {
    let span = diag.primary.span;
    let place = sources.line_col(span);
    json!({
        "severity": match diag.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
            Severity::Remark => "remark",
        },
        "code": diag.code.0,
        "message": diag.message,
        "label": diag.primary.text,
        "file": place.map(|_| sources.name(span.file)),
        "line": place.map(|p| p.0),
        "column": place.map(|p| p.1),
        "notes": diag.notes,
        "help": diag.help,
    })
}
