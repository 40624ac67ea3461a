//! Why a compile failed, in words a user can act on.

use std::fmt;

use super::CompileOptions;
use super::cubin::BadCubin;
use super::log::{self, Message, Place, Severity};
use super::search::NotFound;
use crate::library::LoadError;

/// Why there is no cubin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompileError {
    /// No compiler on this machine.
    NotFound(NotFound),
    /// The compiler's library is there but cannot be loaded.
    Load(LoadError),
    /// Not the name of a machine code target.
    BadArch { arch: String },
    /// The compiler does not know this target.
    UnsupportedArch {
        arch: String,
        toolchain: String,
        supported: Vec<u32>,
    },
    /// The compiler refused an option.
    Option { log: String },
    /// The source was refused.
    Failed(Box<Failure>),
    /// A string with a NUL inside cannot be handed to C.
    Nul { what: &'static str },
    /// The compiler broke.
    Internal { call: &'static str, text: String },
    /// nvcc could not be run.
    Subprocess { text: String },
    /// The compiler's output, or a cache entry, is not a cubin.
    Cubin(BadCubin),
}

/// A source that the compiler refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// All that the compiler printed.
    pub log: String,
    /// Its messages, errors first.
    pub messages: Vec<Quoted>,
}

/// A message and the line it speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quoted {
    pub message: Message,
    pub line: Option<String>,
}

impl CompileError {
    pub(super) fn failed(
        log: String,
        source: &str,
        options: &CompileOptions,
        ptx: Option<String>,
    ) -> Self {
        let mut messages: Vec<Quoted> = log::messages(&log)
            .into_iter()
            .map(|message| Quoted {
                line: quoted_line(&message, source, options, ptx.as_deref()),
                message,
            })
            .collect();
        messages.sort_by_key(|quoted| std::cmp::Reverse(quoted.message.severity));
        Self::Failed(Box::new(Failure { log, messages }))
    }
}

/// The text of the line that a message names. A name from a `#line` is another file's, which is
/// not at hand.
fn quoted_line(
    message: &Message,
    source: &str,
    options: &CompileOptions,
    ptx: Option<&str>,
) -> Option<String> {
    let nth = |text: &str, line: u32| {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        text.lines().nth(index).map(|line| line.trim().to_owned())
    };
    match &message.place {
        Place::Source { file, line } if *file == options.name => nth(source, *line),
        Place::Source { .. } | Place::Nowhere => None,
        Place::Ptx { line } => nth(ptx?, *line),
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(missing) => missing.fmt(f),
            Self::Load(error) => write!(
                f,
                "{error}\nset TILEWRIGHT_NVRTC to another libnvrtc.so, or repair this one"
            ),
            Self::BadArch { arch } => {
                write!(
                    f,
                    "`{arch}` is no CUDA target; one looks like sm_80 or sm_90a"
                )
            }
            Self::UnsupportedArch {
                arch,
                toolchain,
                supported,
            } => {
                write!(f, "{toolchain} cannot compile for {arch}")?;
                if !supported.is_empty() {
                    let list: Vec<_> = supported.iter().map(|sm| format!("sm_{sm}")).collect();
                    write!(f, "; it knows {}", list.join(", "))?;
                }
                write!(f, "\ninstall a newer CUDA toolkit or NVRTC")
            }
            Self::Option { log } => write!(f, "the compiler refused an option: {}", log.trim()),
            Self::Failed(failure) => failure.fmt(f),
            Self::Nul { what } => write!(f, "{what} contains a NUL character"),
            Self::Internal { call, text } => write!(f, "{call} failed: {text}"),
            Self::Subprocess { text } => f.write_str(text),
            Self::Cubin(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors: Vec<&Quoted> = self
            .messages
            .iter()
            .filter(|quoted| quoted.message.severity == Severity::Error)
            .collect();
        if errors.is_empty() {
            return write!(f, "the CUDA compiler failed:\n{}", self.log.trim());
        }
        write!(f, "the CUDA compiler refused the source:")?;
        for quoted in errors {
            write!(f, "\n  {}", quoted.message)?;
            if let Some(line) = &quoted.line {
                write!(f, "\n    | {line}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for CompileError {}
