//! Diagnostics as Python exceptions.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tilewright::ir::{Diagnostic, SourceMap};
use tilewright::jit;

/// What an exception is about; each is a class of `tilewright._errors`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Syntax,
    Staging,
    Lowering,
    Toolchain,
    Launch,
    Run,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Kind::Syntax => "syntax",
            Kind::Staging => "staging",
            Kind::Lowering => "lowering",
            Kind::Toolchain => "toolchain",
            Kind::Launch => "launch",
            Kind::Run => "run",
        }
    }
}

/// The exception for diagnostics of which the first says what is wrong.
pub fn raise(
    py: Python<'_>,
    kind: Kind,
    diags: &[Diagnostic],
    sources: &SourceMap,
    cause: Option<PyErr>,
) -> PyErr {
    match exception(py, kind, diags, sources) {
        Ok(error) => {
            if let Some(cause) = cause {
                error.set_cause(py, Some(cause));
            }
            error
        }
        Err(error) => error,
    }
}

fn exception(
    py: Python<'_>,
    kind: Kind,
    diags: &[Diagnostic],
    sources: &SourceMap,
) -> PyResult<PyErr> {
    let text: Vec<String> = diags.iter().map(|d| d.render(sources, false)).collect();
    let Some(first) = diags.first() else {
        return Ok(PyRuntimeError::new_err("an error without a diagnostic"));
    };
    let place = sources.line_col(first.primary.span);
    let file = place.map(|_| sources.name(first.primary.span.file));
    let (line, column) = (place.map(|p| p.0), place.map(|p| p.1));
    let make = py.import("tilewright._errors")?.getattr("make")?;
    let error = make.call1((
        kind.name(),
        text.join("\n\n"),
        first.code.0,
        &first.message,
        file,
        line,
        column,
        first.help.clone(),
        first.notes.clone(),
    ))?;
    Ok(PyErr::from_value(error))
}

/// The exception for a kernel that could not be built or launched.
pub fn raise_jit(py: Python<'_>, error: jit::Error, sources: &SourceMap) -> PyErr {
    let kind = match &error {
        jit::Error::Diagnostics(_) => Kind::Lowering,
        jit::Error::Toolchain(_) => Kind::Toolchain,
        jit::Error::Device(_) => Kind::Run,
    };
    raise(py, kind, &error.into_diagnostics(), sources, None)
}
