//! What can go wrong when a function is run, and the names of it.

use std::fmt;

use tilewright_ir::{Code, Diagnostic, Diagnostics, Span};

/// Why a run did not finish: at least one diagnostic of severity error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunError {
    pub diagnostics: Diagnostics,
}

impl RunError {
    pub(crate) fn new(code: Code, span: Span, message: impl Into<String>) -> RunError {
        Diagnostic::error(code, span, message).into()
    }

    /// IR that the verifier would refuse.
    pub(crate) fn invalid(span: Span, message: impl Into<String>) -> RunError {
        RunError::new(codes::INVALID_IR, span, message)
    }

    /// Says what would help with the first diagnostic.
    pub(crate) fn help(self, text: impl Into<String>) -> RunError {
        let mut list = self.diagnostics.into_vec();
        if let Some(first) = list.first_mut() {
            first.help.push(text.into());
        }
        let mut diagnostics = Diagnostics::new();
        diagnostics.extend(list);
        RunError { diagnostics }
    }

    /// The code of the first diagnostic.
    pub fn code(&self) -> Option<Code> {
        self.diagnostics.iter().next().map(|d| d.code)
    }
}

impl From<Diagnostic> for RunError {
    fn from(diagnostic: Diagnostic) -> RunError {
        let mut diagnostics = Diagnostics::new();
        diagnostics.push(diagnostic);
        RunError { diagnostics }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.diagnostics.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "error[{}]: {}", d.code, d.message)?;
            for note in &d.notes {
                write!(f, "\n  note: {note}")?;
            }
            for help in &d.help {
                write!(f, "\n  help: {help}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for RunError {}

/// The stable names of what the evaluator reports.
pub mod codes {
    use tilewright_ir::Code;

    pub const ARG_MISSING: Code = Code("arg-missing");
    pub const ARG_UNKNOWN: Code = Code("arg-unknown");
    pub const ARG_NAME: Code = Code("arg-name");
    pub const ARG_KIND: Code = Code("arg-kind");
    pub const ARG_DTYPE: Code = Code("arg-dtype");
    pub const ARG_RANK: Code = Code("arg-rank");
    pub const ARG_SHAPE: Code = Code("arg-shape");
    pub const ARG_STRIDES: Code = Code("arg-strides");
    pub const SYMBOL_UNBOUND: Code = Code("symbol-unbound");
    pub const SYMBOL_CONFLICT: Code = Code("symbol-conflict");
    pub const TENSOR_SIZE: Code = Code("tensor-size");
    pub const OUT_OF_MEMORY: Code = Code("out-of-memory");
    pub const LAUNCH_EXTENT: Code = Code("launch-extent");
    pub const NOT_TILE_IR: Code = Code("not-tile-ir");
    pub const INVALID_IR: Code = Code("invalid-ir");
    pub const EXPR_DEPTH: Code = Code("expr-depth");
    pub const UNSUPPORTED: Code = Code("unsupported");
    pub const FOREIGN_CODE: Code = Code("foreign-code");
    pub const OUT_OF_BOUNDS: Code = Code("out-of-bounds");
    pub const UNINITIALISED: Code = Code("uninitialised-read");
    pub const DATA_RACE: Code = Code("data-race");
    pub const RACE_BLOCKS: Code = Code("race-blocks");
    pub const DIVERGENT_BARRIER: Code = Code("divergent-barrier");
    pub const DIVERGENT_COLLECTIVE: Code = Code("divergent-collective");
    pub const THREAD_IN_PARALLEL: Code = Code("thread-in-parallel");
    pub const NOT_UNIFORM: Code = Code("not-uniform");
    pub const DEADLOCK: Code = Code("deadlock");
    pub const ASSERTION: Code = Code("assertion-failed");
    pub const ASSUMPTION: Code = Code("assumption-failed");
    pub const DIVISION: Code = Code("division-by-zero");
    pub const SHIFT: Code = Code("shift-amount");
    pub const LOOP_STEP: Code = Code("loop-step");
    pub const EXTENTS: Code = Code("unequal-extents");
    pub const METADATA: Code = Code("sparse-metadata");
    pub const BARRIER_COUNT: Code = Code("barrier-count");
    pub const REDUCER: Code = Code("reducer-state");
    pub const STEP_LIMIT: Code = Code("step-limit");
    pub(crate) const STEP_LIMIT_HELP: &str =
        "does a loop never end? `--max-steps` (`step_limit` in Rust) allows for longer ones";
}

/// The marker that evaluation stopped; what happened is kept by the executor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop;

/// A value, or evaluation stopped.
pub(crate) type Eval<T> = Result<T, Stop>;

/// What stopped the evaluation of one block.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub code: Code,
    pub message: String,
    /// The place of the operand at fault; none is the statement's place.
    pub span: Span,
    pub notes: Vec<String>,
    pub help: Option<&'static str>,
}

impl Fault {
    pub fn new(code: Code, message: impl Into<String>) -> Fault {
        Fault {
            code,
            message: message.into(),
            span: Span::NONE,
            notes: Vec::new(),
            help: None,
        }
    }

    pub fn at(mut self, span: Span) -> Fault {
        self.span = span;
        self
    }

    pub fn note(mut self, text: impl Into<String>) -> Fault {
        self.notes.push(text.into());
        self
    }

    pub fn help(mut self, text: &'static str) -> Fault {
        self.help = Some(text);
        self
    }
}
