//! The staging evaluator: runs the Python part of a kernel file at compile time and records
//! the rest as tile IR.
//!
//! It walks the tree. What is a Python value is computed; what involves a run-time value is
//! handed to the [`Recorder`]. One file a concern:
//!
//! | module | holds |
//! |---|---|
//! | [`scope`] | names, and their end when a block of the kernel ends |
//! | [`globals`] | module-level names, evaluated only when needed |
//! | [`modules`], [`beside`] | what `import` gives; files beside the kernel's |
//! | `known` | what other libraries say that needs no Python |
//! | [`expr`] | expressions |
//! | [`ops`] | operators on Python values |
//! | [`compare`] | comparisons, truth, `and`, `or` |
//! | [`subscript`] | `a[i]`, slices, buffer elements and regions |
//! | [`attribute`], [`methods`] | `a.b` and the methods of Python types |
//! | [`call`] | calls and argument binding |
//! | [`iterate`] | Python iteration and comprehensions |
//! | [`format`] | `str`, `repr`, f-strings, format specs |
//! | [`builtins`] | `len`, `range`, `min`, `math.…` |
//! | [`stmt`], [`assign`], [`control`] | statements |
//! | [`hosted`] | functions and values of a running Python |
//! | [`entry`] | the choice of a kernel, and the run that records it |
//! | [`options`], [`settings`] | decorators, `--set`, the arguments of an entry |
//! | [`signature`] | parameters and their annotations |

pub mod assign;
pub mod attribute;
pub mod beside;
pub mod builtins;
pub mod call;
pub mod compare;
pub mod control;
pub mod entry;
pub mod expr;
pub mod format;
pub mod globals;
pub mod hosted;
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

use std::collections::BTreeMap;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use tilewright_ir::small_float::Number;
use tilewright_ir::{Buffer, Code, Diagnostic, Span};

use crate::codes;
use crate::host::Host;
use crate::record::settings::Settings;
use crate::record::{Program, Recorder};
use crate::syntax::ast::Module;
use crate::syntax::{Symbol, Symbols};
use crate::value::Value;
use crate::{Error, Result};

use globals::Globals;
use scope::Scope;

/// Nested evaluations; the thread's stack is made for them.
const MAX_DEPTH: u32 = 2_500;
/// Nested calls.
const MAX_CALLS: u32 = 200;

/// The interpreter of one compilation: names, control flow and Python's values. What it records,
/// and the functions of the language with it, is in its [`Recorder`].
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
    /// Scopes that closures captured, cleared at the end to break the cycles.
    captured: Vec<Rc<Scope>>,

    /// The function under construction.
    pub(crate) rec: Recorder,
    /// Whether the code now evaluated is a kernel's or a macro's own body, where assignment
    /// and `range` speak of the kernel; not so in ordinary helper functions.
    pub(crate) traced: bool,
    /// Names bound in each open block of the kernel.
    logs: Vec<scope::Log>,
    pub(crate) loops: Vec<control::LoopContext>,
    /// Blocks that were open when the current function was called.
    pub(crate) return_base: usize,
    /// Parameters that wait for the annotation of their shape, with their position.
    pub(crate) pending_params: FxHashMap<Symbol, usize>,
    /// What the settings give to scalar parameters.
    pub(crate) scalar_values: BTreeMap<String, Number>,
    depth: u32,
    calls: u32,
}

/// Names that the evaluator itself looks for.
#[derive(Debug)]
pub(crate) struct KnownSymbols {
    pub dunder_name: Symbol,
}

impl Stage {
    pub(crate) fn new(module: Module, mut symbols: Symbols, settings: Settings) -> Stage {
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
            texts: beside::Texts::default(),
            slots: vec![beside::Slot::own(&globals)],
            active: 0,
            globals,
            host: None,
            files: FxHashMap::default(),
            captured: Vec::new(),
            rec: Recorder::new(settings),
            traced: false,
            logs: Vec::new(),
            loops: Vec::new(),
            return_base: 0,
            pending_params: FxHashMap::default(),
            scalar_values: BTreeMap::new(),
            depth: 0,
            calls: 0,
        }
    }

    /// An error at a place. Add `.help(…)` and `.note(…)`, then `.into()`.
    pub fn error(&self, code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, span, message)
    }

    /// What was told so far.
    pub fn take_warnings(&mut self) -> Vec<Diagnostic> {
        self.rec.take_warnings()
    }

    pub(crate) fn capture(&mut self) -> Rc<Scope> {
        self.captured.push(self.scope.clone());
        self.scope.clone()
    }

    /// Runs `f` one level deeper.
    pub fn deeper<T>(&mut self, span: Span, f: impl FnOnce(&mut Stage) -> Result<T>) -> Result<T> {
        self.rec.charge(1, span)?;
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
                    && self.rec.func.vars[var].name.is_empty()
                {
                    self.rec.func.vars[var].name = self.symbols.text(name).to_string();
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
        if self.rec.func.buffers[buffer].name.is_empty() {
            let text = self.symbols.text(name);
            self.rec.func.buffers[buffer].name = match index() {
                Some(i) => format!("{text}_{i}"),
                None => text.to_string(),
            };
        }
    }
}

impl Program for Stage {
    fn recorder(&mut self) -> &mut Recorder {
        &mut self.rec
    }

    fn call_value(&mut self, function: &Value, args: Vec<Value>, span: Span) -> Result<Value> {
        self.call(function, call::Args::of(args, span))
    }

    fn leave_loop(&mut self, span: Span) -> Result<()> {
        self.exec_jump(true, span).map(|_| ())
    }
}

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
