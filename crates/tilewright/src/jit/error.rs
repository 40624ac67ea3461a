//! Why a kernel could not be built or run.

use std::fmt;

use tilewright_ir::{Code, Diagnostic, Diagnostics, Func, Span};
use tilewright_runtime::device::DeviceError;
use tilewright_runtime::toolchain::CompileError;
use tilewright_sim::RunError;

#[derive(Debug)]
pub enum Error {
    /// The function cannot be compiled, or the arguments do not fit it.
    Diagnostics(Diagnostics),
    /// No compiler, or it refused the source.
    Toolchain(CompileError),
    /// No GPU, or it failed.
    Device(DeviceError),
}

impl Error {
    /// As located diagnostics, for callers that report those.
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        let plain = |code: &'static str, text: String| {
            vec![Diagnostic::error(Code(code), Span::NONE, text)]
        };
        match self {
            Error::Diagnostics(diags) => diags.into_vec(),
            Error::Toolchain(e) => plain("toolchain", e.to_string()),
            Error::Device(e) => plain("device", e.to_string()),
        }
    }

    pub(crate) fn plain(code: &'static str, span: Span, text: impl Into<String>) -> Error {
        let mut diags = Diagnostics::new();
        diags.push(Diagnostic::error(Code(code), span, text));
        Error::Diagnostics(diags)
    }

    pub(super) fn half_lowered(func: &Func) -> Error {
        let level = func.level.name();
        let text = format!(
            "kernels are built from tile or device IR; `{}` is {level} IR",
            func.name
        );
        Error::plain("jit-half-lowered", func.span, text)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Diagnostics(diags) => {
                for diag in diags.iter() {
                    writeln!(f, "{}", diag.message)?;
                }
                Ok(())
            }
            Error::Toolchain(e) => e.fmt(f),
            Error::Device(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<Diagnostic> for Error {
    fn from(diag: Diagnostic) -> Error {
        let mut diags = Diagnostics::new();
        diags.push(diag);
        Error::Diagnostics(diags)
    }
}

impl From<DeviceError> for Error {
    fn from(e: DeviceError) -> Error {
        Error::Device(e)
    }
}

impl From<RunError> for Error {
    fn from(e: RunError) -> Error {
        Error::Diagnostics(e.diagnostics)
    }
}
