//! The recorder: the function under construction, and all that the language's functions need to
//! add to it.
//!
//! It knows values and no Python syntax. Who runs a program calls it, and the functions of
//! [`lang`](crate::lang) with it; where one of those must call a function that the program gave
//! it, it asks its [`Program`].
//!
//! | module | holds |
//! |---|---|
//! | [`emit`] | blocks, statements, variables, buffers, kernels |
//! | [`store`] | stores into elements |
//! | [`convert`] | Python values to IR |
//! | [`ops`] | operators on run-time values |
//! | [`bounds`] | intervals of index expressions |
//! | `warp_groups` | arms of an `if` that whole warp groups take |
//! | [`signature`] | parameters, dimensions and outputs |
//! | [`settings`] | what the caller says of them |
//! | `elsewhere` | what other libraries call things, for the help of errors |

pub mod bounds;
pub mod convert;
pub(crate) mod elsewhere;
pub mod emit;
pub mod ops;
pub mod settings;
pub mod signature;
pub mod store;
mod warp_groups;

use std::fmt;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use tilewright_ir::{Code, Diagnostic, Expr, Func, Span, Target, Var};

use crate::value::{Element, Value};
use crate::{Result, codes};

use emit::{KernelState, OpenBlock};
use settings::Settings;
use signature::Signature;

/// Steps of evaluation before a compilation is given up: a second's work at the most.
const MAX_STEPS: u64 = 3_000_000;
/// Steps between two looks at whether the user wants the compilation to end.
const INTERRUPT_STEPS: u64 = 1024;
/// Items of one list, dict or string.
pub(crate) const MAX_ITEMS: usize = 1 << 20;
const MAX_WARNINGS: usize = 50;

/// A function under construction.
#[derive(Debug)]
pub struct Recorder {
    pub(crate) func: Func,
    /// Whether a function body is being recorded, so that `T.const` and the like have meaning.
    pub(crate) building: bool,
    pub(crate) blocks: Vec<OpenBlock>,
    pub(crate) kernel: Option<KernelState>,
    /// The elements that names stand for, so that `p = A[i, j]` can start a copy.
    pub(crate) let_elements: FxHashMap<Var, Rc<Element>>,
    /// Constant bounds of variables, both inclusive.
    pub(crate) var_bounds: FxHashMap<Var, (i128, i128)>,
    /// Integer values that names stand for, to see that `end - start` is a constant.
    pub(crate) let_values: FxHashMap<Var, Expr>,
    /// Indices of the parallel loops around.
    pub(crate) parallel_vars: Vec<Var>,
    /// Statements recorded so far.
    pub(crate) emitted: u64,
    pub(crate) signature: Signature,
    pub(crate) settings: Settings,
    /// What is known of the machine where the program asks.
    pub(crate) target: Target,
    /// Its multiprocessors, where they are known better than by the target.
    pub(crate) multiprocessors: Option<u32>,
    /// What language functions remember.
    pub(crate) lang: crate::lang::LangState,
    /// The call or statement being recorded: the span of what it emits.
    pub(crate) span: Span,
    warnings: Vec<Diagnostic>,
    steps: u64,
    interrupted: Option<Interrupted>,
}

/// The program whose kernel is recorded, for functions of the language that call back into it.
pub trait Program {
    fn recorder(&mut self) -> &mut Recorder;

    /// `function(*args)`
    fn call_value(&mut self, function: &Value, args: Vec<Value>, span: Span) -> Result<Value>;

    /// `break`
    fn leave_loop(&mut self, span: Span) -> Result<()>;
}

/// Says whether the user wants the compilation to end.
struct Interrupted(Box<dyn Fn() -> bool>);

impl fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupted")
    }
}

impl Recorder {
    pub(crate) fn new(settings: Settings) -> Recorder {
        Recorder {
            func: Func::new("kernel"),
            building: false,
            blocks: Vec::new(),
            kernel: None,
            let_elements: FxHashMap::default(),
            var_bounds: FxHashMap::default(),
            let_values: FxHashMap::default(),
            parallel_vars: Vec::new(),
            emitted: 0,
            signature: Signature::default(),
            settings,
            target: Target::DEFAULT,
            multiprocessors: None,
            lang: crate::lang::LangState::default(),
            span: Span::NONE,
            warnings: Vec::new(),
            steps: 0,
            interrupted: None,
        }
    }

    /// Asks from time to time whether the compilation is to end.
    pub(crate) fn end_when(&mut self, interrupted: impl Fn() -> bool + 'static) {
        self.interrupted = Some(Interrupted(Box::new(interrupted)));
    }

    /// An error at a place. Add `.help(…)` and `.note(…)`, then `.into()`.
    pub fn error(&self, code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, span, message)
    }

    /// Tells the user something without stopping.
    pub fn warn(&mut self, warning: Diagnostic) {
        // A loop unrolled at compile time would say the same thing many times.
        if self.warnings.len() < MAX_WARNINGS && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// What was told so far.
    pub fn take_warnings(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.warnings)
    }

    /// The span of the call or statement being recorded.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Ends the compilation where the user wants that.
    pub(crate) fn end_if_interrupted(&self, span: Span) -> Result<()> {
        match self.interrupted.as_ref().is_some_and(|asked| (asked.0)()) {
            true => {
                let message = "the compilation was interrupted";
                Err(self.error(codes::INTERRUPTED, span, message).into())
            }
            false => Ok(()),
        }
    }

    /// Counts `n` units of work against the budget.
    pub(crate) fn charge(&mut self, n: u64, span: Span) -> Result<()> {
        self.steps = self.steps.saturating_add(n);
        if self.steps % INTERRUPT_STEPS < n {
            self.end_if_interrupted(span)?;
        }
        if self.steps > MAX_STEPS {
            return Err(self
                .error(
                    codes::BUDGET,
                    span,
                    format!("compile-time evaluation took more than {MAX_STEPS} steps"),
                )
                .help("move the work into the kernel, or bound the loop")
                .into());
        }
        Ok(())
    }

    /// Refuses collections past the size limit.
    pub(crate) fn check_items(&mut self, n: usize, span: Span) -> Result<()> {
        if n > MAX_ITEMS {
            return Err(self
                .error(
                    codes::BUDGET,
                    span,
                    format!("a compile-time value of {n} items; the limit is {MAX_ITEMS}"),
                )
                .into());
        }
        self.charge(n as u64 / 16, span)
    }
}
