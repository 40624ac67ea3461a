//! What goes to the user: text or one JSON object on stdout, diagnostics on stderr.

use std::io::{self, IsTerminal as _, Write as _};

use serde_json::{Value, json};
use tilewright::ir::{Diagnostic, Severity, SourceMap};

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

/// Writes to stdout. A reader that went away (`| head`) is no error.
pub fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// Writes to stderr what belongs to a result without being it.
pub fn note(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Reports diagnostics on stderr.
pub fn warn(diags: &[Diagnostic], sources: &SourceMap) {
    let color = io::stderr().is_terminal();
    for diag in diags {
        let _ = writeln!(io::stderr(), "{}\n", diag.render(sources, color));
    }
}

/// Reports errors on stderr, and as the one object on stdout with `--json`.
pub fn fail(diags: &[Diagnostic], sources: &SourceMap, as_json: bool) -> Failure {
    warn(diags, sources);
    if as_json {
        let errors: Vec<Value> = diags.iter().map(|d| to_json(d, sources)).collect();
        print_json(&json!({ "ok": false, "errors": errors }));
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

pub fn print_json(value: &Value) {
    print(&format!("{value}\n"));
}

pub fn to_json(diag: &Diagnostic, sources: &SourceMap) -> Value {
    let span = diag.primary.span;
    let place = sources.line_col(span);
    json!({
        "severity": match diag.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
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
