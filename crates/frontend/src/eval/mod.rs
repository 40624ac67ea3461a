//! The staging evaluator: runs the Python part of a kernel file at compile time and records
//! the rest as tile IR.
//!
//! It walks the tree. What is a Python value is computed; what involves a run-time value is
//! recorded in the function under construction. One file a concern:
//!
//! | module | holds |
//! |---|---|
//! | [`scope`] | names, and their end when a block of the kernel ends |
//! | [`globals`] | module-level names, evaluated only when needed |
//! | [`modules`], [`beside`] | what `import` gives; files beside the kernel's |
//! | `known` | what other libraries say that needs no Python |
//! | [`expr`] | expressions |
//! | [`ops`] | operators on Python values |
//! | [`ir_ops`] | operators on run-time values |
//! | [`compare`] | comparisons, truth, `and`, `or` |
//! | [`subscript`] | `a[i]`, slices, buffer elements and regions |
//! | [`attribute`], [`methods`] | `a.b` and the methods of Python types |
//! | [`call`] | calls and argument binding |
//! | [`iterate`] | Python iteration and comprehensions |
//! | [`format`] | `str`, `repr`, f-strings, format specs |
//! | [`builtins`] | `len`, `range`, `min`, `math.…` |
//! | [`stmt`], [`assign`], [`control`] | statements |
//! | `warp_groups` | arms of an `if` that whole warp groups take |
//! | [`emit`] | the function under construction |
//! | [`convert`] | Python values to IR |
//! | [`bounds`] | intervals of index expressions |
//! | [`hosted`] | functions and values of a running Python |
//! | [`entry`] | the choice of a kernel, and the run that records it |
//! | [`options`], [`settings`] | decorators, `--set`, the arguments of an entry |
//! | [`signature`] | parameters, dimensions and outputs |

pub mod assign;
pub mod attribute;
pub mod beside;
pub mod bounds;
pub mod builtins;
pub mod call;
pub mod compare;
pub mod control;
pub mod convert;
mod elsewhere;
pub mod emit;
pub mod entry;
pub mod expr;
pub mod format;
pub mod globals;
pub mod hosted;
pub mod ir_ops;
pub mod iterate;
mod known;
pub mod methods;
pub mod modules;
pub mod ops;
pub mod options;
pub mod scope;
pub mod settings;
pub mod signature;
pub mod stmt;
pub mod subscript;
#[cfg(test)]
mod tests;
mod warp_groups;

use std::collections::BTreeMap;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use tilewright_ir::small_float::Number;
use tilewright_ir::{Buffer, Code, Diagnostic, Func, Span, Target, Var};

use crate::codes;
use crate::host::Host;
use crate::syntax::ast::Module;
use crate::syntax::{Symbol, Symbols};
use crate::value::{Element, Value};
use crate::{Error, Result};

use emit::{KernelState, OpenBlock};
use globals::Globals;
use scope::Scope;

/// Steps of evaluation before a compilation is given up: a second's work at the most.
const MAX_STEPS: u64 = 3_000_000;
/// Steps between two looks at whether the host wants the compilation to end.
const INTERRUPT_STEPS: u64 = 1024;
/// Nested evaluations; the thread's stack is made for them.
const MAX_DEPTH: u32 = 2_500;
/// Nested calls.
const MAX_CALLS: u32 = 200;
/// Items of one list, dict or string.
pub(crate) const MAX_ITEMS: usize = 1 << 20;

/// The state of one compilation. Language functions reach everything through it.
#[derive(Debug)]
pub struct Stage {
    pub(crate) symbols: Symbols,
    pub(crate) module: Rc<Module>,
    pub(crate) lazy: Globals,
    pub(crate) globals: Rc<Scope>,
    /// The running Python, where there is one.
    pub(crate) host: Option<Rc<dyn Host>>,
    /// Files of the host that were parsed.
    pub(crate) files: FxHashMap<tilewright_ir::FileId, Rc<Module>>,
    pub(crate) scope: Rc<Scope>,
    /// Texts of the files beside the kernel's.
    pub(crate) texts: beside::Texts,
    /// The kernel's own file, then those beside it that were asked for.
    slots: Vec<beside::Slot>,
    /// Which of them the module-level names are now.
    active: usize,
    /// What is known of the machine where Python code asks.
    pub(crate) target: Target,
    /// Scopes that closures captured, cleared at the end to break the cycles.
    captured: Vec<Rc<Scope>>,

    /// The function under construction.
    pub(crate) func: Func,
    /// Whether a function body is being recorded, so that `T.const` and the like have meaning.
    pub(crate) building: bool,
    /// Whether the code now evaluated is a kernel's or a macro's own body, where assignment
    /// and `range` speak of the kernel; not so in ordinary helper functions.
    pub(crate) traced: bool,
    pub(crate) blocks: Vec<OpenBlock>,
    pub(crate) kernel: Option<KernelState>,
    /// The elements that names stand for, so that `p = A[i, j]` can start a copy.
    pub(crate) let_elements: FxHashMap<Var, Rc<Element>>,
    /// Constant bounds of variables, both inclusive.
    pub(crate) var_bounds: FxHashMap<Var, (i128, i128)>,
    /// Integer values that names stand for, to see that `end - start` is a constant.
    pub(crate) let_values: FxHashMap<Var, tilewright_ir::Expr>,
    /// Indices of the parallel loops around.
    pub(crate) parallel_vars: Vec<Var>,
    /// Statements recorded so far.
    pub(crate) emitted: u64,
    pub(crate) loops: Vec<control::LoopContext>,
    /// Blocks that were open when the current function was called.
    pub(crate) return_base: usize,
    pub(crate) signature: signature::Signature,
    pub(crate) settings: settings::Settings,
    /// What the settings give to scalar parameters.
    pub(crate) scalar_values: BTreeMap<String, Number>,
    /// What language functions remember.
    pub(crate) lang: crate::lang::LangState,

    /// The call or statement being evaluated: the span of what it emits.
    pub(crate) span: Span,
    warnings: Vec<Diagnostic>,
    steps: u64,
    depth: u32,
    calls: u32,
}

/// Names that the evaluator itself looks for.
#[derive(Debug)]
pub(crate) struct KnownSymbols {
    pub dunder_name: Symbol,
}

impl Stage {
    pub(crate) fn new(module: Module, mut symbols: Symbols, settings: settings::Settings) -> Stage {
        let known = KnownSymbols {
            dunder_name: symbols.intern("__name__"),
        };
        let globals = Scope::new(None);
        let lazy = Globals::index(&module, &known);
        Stage {
            symbols,
            module: Rc::new(module),
            lazy,
            scope: globals.clone(),
            texts: beside::Texts::new(),
            slots: vec![beside::Slot::own(&globals)],
            active: 0,
            target: Target::DEFAULT,
            globals,
            host: None,
            files: FxHashMap::default(),
            captured: Vec::new(),
            func: Func::new("kernel"),
            building: false,
            traced: false,
            blocks: Vec::new(),
            kernel: None,
            let_elements: FxHashMap::default(),
            var_bounds: FxHashMap::default(),
            let_values: FxHashMap::default(),
            parallel_vars: Vec::new(),
            emitted: 0,
            loops: Vec::new(),
            return_base: 0,
            signature: signature::Signature::default(),
            settings,
            scalar_values: BTreeMap::new(),
            lang: crate::lang::LangState::default(),
            span: Span::NONE,
            warnings: Vec::new(),
            steps: 0,
            depth: 0,
            calls: 0,
        }
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

    /// The span of the call or statement being evaluated.
    pub fn span(&self) -> Span {
        self.span
    }

    pub(crate) fn capture(&mut self) -> Rc<Scope> {
        self.captured.push(self.scope.clone());
        self.scope.clone()
    }

    /// Ends the compilation where the user wants that.
    pub(crate) fn end_if_interrupted(&self, span: Span) -> Result<()> {
        match self.host.as_ref().is_some_and(|host| host.interrupted()) {
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

    /// Runs `f` one level deeper.
    pub fn deeper<T>(&mut self, span: Span, f: impl FnOnce(&mut Stage) -> Result<T>) -> Result<T> {
        self.charge(1, span)?;
        if self.depth >= MAX_DEPTH {
            return Err(self.too_deep(span));
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    /// Runs `f` as the body of a call.
    pub(crate) fn nested_call<T>(
        &mut self,
        span: Span,
        f: impl FnOnce(&mut Stage) -> Result<T>,
    ) -> Result<T> {
        if self.calls >= MAX_CALLS {
            return Err(self.too_deep(span));
        }
        self.calls += 1;
        let result = f(self);
        self.calls -= 1;
        result
    }

    fn too_deep(&self, span: Span) -> Error {
        self.error(
            codes::BUDGET,
            span,
            "compile-time evaluation is nested too deep",
        )
        .help("check that the recursion ends; recursion unrolls at compile time")
        .into()
    }

    /// Gives an unnamed buffer or result the name it is assigned to.
    fn name_value(&mut self, name: Symbol, value: &Value) {
        match value {
            Value::Buffer(b) => self.name_buffer(*b, || None, name),
            Value::Expr(e) => {
                if let Some(var) = e.as_var()
                    && self.func.vars[var].name.is_empty()
                {
                    self.func.vars[var].name = self.symbols.text(name).to_string();
                }
            }
            Value::List(items) => {
                for (i, item) in items.borrow().iter().enumerate() {
                    if let Value::Buffer(b) = item {
                        self.name_buffer(*b, || Some(i), name);
                    }
                }
            }
            _ => {}
        }
    }

    fn name_buffer(&mut self, buffer: Buffer, index: impl Fn() -> Option<usize>, name: Symbol) {
        if self.func.buffers[buffer].name.is_empty() {
            let text = self.symbols.text(name);
            self.func.buffers[buffer].name = match index() {
                Some(i) => format!("{text}_{i}"),
                None => text.to_string(),
            };
        }
    }
}

const MAX_WARNINGS: usize = 50;

impl Drop for Stage {
    fn drop(&mut self) {
        for scope in self.captured.drain(..) {
            scope.clear();
        }
        for slot in &self.slots {
            slot.globals.clear();
        }
        self.globals.clear();
    }
}
