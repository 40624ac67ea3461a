//! Scopes, and what becomes of names when a block of the kernel ends.
//!
//! A name bound to a run-time value inside a loop, a branch or a kernel must not be used after
//! it: the value is not there any more, or was computed on one path only. Of each open
//! block a log is therefore kept of the names bound while it was open. When it closes, the names it
//! leaves behind are marked dead, with the reason; using a dead name is an error that says so.

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use tilewright_ir::{Block, Diagnostic, Span};

use crate::codes;
use crate::eval::Stage;
use crate::host::Namespace;
use crate::record::emit::BlockKind;
use crate::syntax::Symbol;
use crate::value::Value;
use crate::{Error, Result};

/// The names of one function call, comprehension, class body or of the module.
#[derive(Debug)]
pub struct Scope {
    names: RefCell<FxHashMap<Symbol, Binding>>,
    pub parent: Option<Rc<Scope>>,
    /// What a function of the host sees.
    pub space: Option<Rc<dyn Namespace>>,
    /// Names declared `global` or `nonlocal` here, and where they live.
    outer: RefCell<FxHashMap<Symbol, Rc<Scope>>>,
}

#[derive(Clone, Debug)]
pub enum Binding {
    Live(Value),
    Dead(Dead),
}

/// Why a name has no value any more.
#[derive(Clone, Copy, Debug)]
pub struct Dead {
    /// Where it was bound.
    pub bound_at: Span,
    pub block: BlockKind,
}

/// The names bound while a block was open.
#[derive(Debug)]
pub(super) struct Log {
    kind: BlockKind,
    names: Vec<Logged>,
}

impl Log {
    pub(super) fn binds(&self, name: Symbol) -> bool {
        self.names.iter().any(|entry| entry.name == name)
    }
}

/// One name bound while a block was open.
#[derive(Debug)]
pub(super) struct Logged {
    pub scope: Rc<Scope>,
    pub name: Symbol,
    before: Option<Binding>,
    pub span: Span,
}

impl Scope {
    pub fn new(parent: Option<Rc<Scope>>) -> Rc<Scope> {
        Rc::new(Scope {
            names: RefCell::default(),
            parent,
            space: None,
            outer: RefCell::default(),
        })
    }

    /// The scope around a function of the host.
    pub fn of_host(space: Rc<dyn Namespace>) -> Rc<Scope> {
        Rc::new(Scope {
            names: RefCell::default(),
            parent: None,
            space: Some(space),
            outer: RefCell::default(),
        })
    }

    /// The binding in this scope itself.
    pub fn get(&self, name: Symbol) -> Option<Binding> {
        self.names.borrow().get(&name).cloned()
    }

    /// The binding here or in an enclosing scope.
    pub fn find(&self, name: Symbol) -> Option<Binding> {
        let mut scope = self;
        loop {
            if let Some(binding) = scope.names.borrow().get(&name) {
                return Some(binding.clone());
            }
            scope = scope.parent.as_deref()?;
        }
    }

    pub(super) fn set(&self, name: Symbol, binding: Binding) -> Option<Binding> {
        self.names.borrow_mut().insert(name, binding)
    }

    pub(super) fn remove(&self, name: Symbol) -> Option<Binding> {
        self.names.borrow_mut().remove(&name)
    }

    /// Every name bound here, for suggestions.
    pub fn names(&self) -> Vec<Symbol> {
        self.names.borrow().keys().copied().collect()
    }

    pub(super) fn declare_outer(&self, name: Symbol, scope: Rc<Scope>) {
        self.outer.borrow_mut().insert(name, scope);
    }

    /// Drops all bindings, which breaks the cycle of a scope and the closures made in it.
    pub(super) fn clear(&self) {
        self.names.borrow_mut().clear();
        self.outer.borrow_mut().clear();
    }
}

impl Stage {
    /// Binds a name in the current scope, or where `nonlocal` or `global` say.
    pub(crate) fn bind(&mut self, name: Symbol, value: Value, span: Span) {
        let declared = self.scope.outer.borrow().get(&name).cloned();
        let scope = declared.unwrap_or_else(|| self.scope.clone());
        self.name_value(name, &value);
        self.bind_in(scope, name, value, span);
    }

    pub(super) fn bind_in(&mut self, scope: Rc<Scope>, name: Symbol, value: Value, span: Span) {
        let before = scope.set(name, Binding::Live(value));
        self.log(Logged {
            scope,
            name,
            before,
            span,
        });
    }

    /// The value that assigning to `name` would replace, if it is one of this very scope.
    pub(super) fn local_binding(&self, name: Symbol) -> Option<Value> {
        let declared = self.scope.outer.borrow().get(&name).cloned();
        match declared.unwrap_or_else(|| self.scope.clone()).get(name)? {
            Binding::Live(value) => Some(value),
            Binding::Dead(_) => None,
        }
    }

    /// Notes a name in the innermost block.
    pub(super) fn log(&mut self, entry: Logged) {
        if let Some(log) = self.logs.last_mut() {
            log.names.push(entry);
        }
    }

    pub(super) fn open_block(&mut self, kind: BlockKind, span: Span) -> Result<()> {
        self.rec.open_block(kind, span)?;
        self.follow_blocks();
        Ok(())
    }

    /// Ends the innermost block and the names bound in it.
    pub(super) fn close_block(&mut self) -> Block {
        let block = self.rec.close_block();
        self.follow_blocks();
        block
    }

    /// Ends the innermost block. The names bound in it live on.
    pub(super) fn take_block(&mut self) -> (Block, Vec<Logged>) {
        let block = self.rec.close_block();
        let log = self.logs.pop();
        (block, log.map_or_else(Vec::new, |log| log.names))
    }

    /// Starts to note names for blocks that were opened, and ends those of blocks that were
    /// closed.
    pub(super) fn follow_blocks(&mut self) {
        for block in self.rec.blocks.iter().skip(self.logs.len()) {
            self.logs.push(Log {
                kind: block.kind,
                names: Vec::new(),
            });
        }
        while self.logs.len() > self.rec.blocks.len()
            && let Some(log) = self.logs.pop()
        {
            self.retire_names(log.kind, log.names);
        }
    }

    /// Ends the life of names that a block leaves behind.
    fn retire_names(&mut self, kind: BlockKind, log: Vec<Logged>) {
        for entry in log {
            let Some(Binding::Live(value)) = entry.scope.get(entry.name) else {
                continue;
            };
            // A Python value bound in a branch would hold on one path only; in a loop or a
            // kernel it was bound while tracing, once, and stays.
            if kind == BlockKind::Branch || value.is_block_bound() {
                let dead = Dead {
                    bound_at: entry.span,
                    block: kind,
                };
                entry.scope.set(entry.name, Binding::Dead(dead));
            }
            self.log(entry);
        }
    }

    /// Puts every name back to what it was when the block opened, so that the next arm of an
    /// `if` starts from the same state.
    pub(super) fn undo_names(&mut self, log: &[Logged]) {
        for entry in log.iter().rev() {
            match &entry.before {
                Some(before) => entry.scope.set(entry.name, before.clone()),
                None => entry.scope.remove(entry.name),
            };
        }
    }

    /// What to say about the use of a dead name.
    pub(super) fn dead_name(&self, name: Symbol, dead: Dead, span: Span) -> Error {
        let text = self.symbols.text(name);
        let (place, help) = match dead.block {
            BlockKind::Branch => (
                "a branch that is decided at run time",
                "declare `{} = T.alloc_var(dtype)` before the `if` and assign to it inside",
            ),
            BlockKind::Loop | BlockKind::Parallel | BlockKind::While => (
                "a loop that has ended",
                "declare `{} = T.alloc_var(dtype)` before the loop and assign to it inside",
            ),
            BlockKind::Kernel => (
                "a kernel that has ended",
                "use `{}` inside its `with T.Kernel` suite only",
            ),
            BlockKind::Frame => (
                "a `with` suite that has ended",
                "bind `{}` before the `with` statement",
            ),
        };
        Box::new(
            Diagnostic::error(
                codes::NAME_OUT_OF_REGION,
                span,
                format!("`{text}` was bound inside {place}"),
            )
            .label("used here")
            .also(dead.bound_at, "bound here")
            .help(help.replace("{}", text)),
        )
    }

    /// `global` and `nonlocal`.
    pub(super) fn declare_outer(&mut self, name: Symbol, global: bool, span: Span) -> Result<()> {
        let target = if global {
            if self.host.is_some() {
                // The names of a module are Python's, and what a kernel is recorded from is read.
                return Err(self.unsupported("global", span));
            }
            let mut root = self.scope.clone();
            while let Some(parent) = root.parent.clone() {
                root = parent;
            }
            root
        } else {
            let mut scope = self.scope.parent.clone();
            loop {
                match scope {
                    Some(s) if s.get(name).is_some() && !Rc::ptr_eq(&s, &self.globals) => break s,
                    Some(s) => scope = s.parent.clone(),
                    None => {
                        let text = self.symbols.text(name);
                        return Err(self
                            .error(
                                codes::UNKNOWN_NAME,
                                span,
                                format!("no enclosing function binds `{text}`"),
                            )
                            .into());
                    }
                }
            }
        };
        self.scope.declare_outer(name, target);
        Ok(())
    }
}
