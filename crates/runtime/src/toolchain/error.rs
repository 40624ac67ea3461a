//! Why a compile failed, in words a user can act on.

use std::fmt;

use super::CompileOptions;
use super::cubin::BadCubin;
use super::hsaco::BadHsaco;
use super::log::{self, Message, MessagePlace, Severity};
use super::search::NotFound;
use crate::library::LoadError;

/// Why there is no cubin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompileError {
    /// No compiler on this machine.
    NotFound(NotFound),
    /// The compiler's library is there but cannot be loaded.
    Load(LoadError),
    /// hiprtc is there but cannot be loaded.
    LoadHiprtc(LoadError),
    /// Not the name of a machine code target.
    BadArch { arch: String },
    /// The compiler does not know this target.
    UnsupportedArch {
        arch: String,
        toolchain: String,
        supported: Vec<u32>,
    },
    /// Not the name of an AMD target.
    BadAmdArch { arch: String },
    /// This clang does not know the AMD target.
    UnsupportedAmdArch { arch: String, toolchain: String },
    /// The assembly could not be assembled and linked.
    Link { toolchain: String, text: String },
    /// The compiler refused an option.
    Option { log: String },
    /// The source was refused.
    Failed(Box<Failure>),
    /// A string with a NUL inside cannot be handed to C.
    Nul { what: &'static str },
    /// The compiler broke.
    Internal { call: &'static str, text: String },
    /// nvcc or clang could not be run.
    Subprocess { text: String },
    /// The compiler's output, or a cache entry, is not a cubin.
    Cubin(BadCubin),
    /// The compiler's output, or a cache entry, is not a code object for AMD.
    Hsaco(BadHsaco),
}

/// A source that the compiler refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the compiler compiles: CUDA or HIP.
    pub language: &'static str,
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
        Self::refused("CUDA", log, source, &options.name, ptx)
    }

    /// A source called `name` that a compiler refused.
    pub(super) fn refused(
        language: &'static str,
        log: String,
        source: &str,
        name: &str,
        ptx: Option<String>,
    ) -> Self {
        let mut messages: Vec<Quoted> = log::messages(&log)
            .into_iter()
            .map(|message| Quoted {
                line: quoted_line(&message, source, name, ptx.as_deref()),
                message,
            })
            .collect();
        messages.sort_by_key(|quoted| std::cmp::Reverse(quoted.message.severity));
        Self::Failed(Box::new(Failure {
            language,
            log,
            messages,
        }))
    }
}

/// The text of the line that a message names. A name from a `#line` is another file's, which is
/// not at hand.
fn quoted_line(message: &Message, source: &str, name: &str, ptx: Option<&str>) -> Option<String> {
    let nth = |text: &str, line: u32| {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        text.lines().nth(index).map(|line| line.trim().to_owned())
    };
    match &message.place {
        MessagePlace::Source { file, line } if *file == name => nth(source, *line),
        MessagePlace::Source { .. } | MessagePlace::Nowhere => None,
        MessagePlace::Ptx { line } => nth(ptx?, *line),
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
            Self::LoadHiprtc(error) => write!(
                f,
                "{error}\nset TILEWRIGHT_HIPRTC to another libhiprtc.so, or repair this one"
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
            Self::BadAmdArch { arch } => {
                write!(
                    f,
                    "`{arch}` is no AMD target; one looks like gfx942 or gfx950"
                )
            }
            Self::UnsupportedAmdArch { arch, toolchain } => write!(
                f,
                "{toolchain} cannot compile for {arch}\n{}",
                super::amd_search::CLANG_HELP
            ),
            Self::Link { toolchain, text } => write!(
                f,
                "{toolchain} could not assemble and link the kernel: {text}\nit needs lld of its \
                 own version (`apt install lld-22` for clang-22)"
            ),
            Self::Option { log } => write!(f, "the compiler refused an option: {}", log.trim()),
            Self::Failed(failure) => failure.fmt(f),
            Self::Nul { what } => write!(f, "{what} contains a NUL character"),
            Self::Internal { call, text } => write!(f, "{call} failed: {text}"),
            Self::Subprocess { text } => f.write_str(text),
            Self::Cubin(error) => error.fmt(f),
            Self::Hsaco(error) => error.fmt(f),
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
            return write!(
                f,
                "the {} compiler failed:\n{}",
                self.language,
                self.log.trim()
            );
        }
        write!(f, "the {} compiler refused the source:", self.language)?;
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
