//! Module-level names, bound lazily.
//!
//! A file holds much that no kernel needs: torch, benchmarks, `__main__`. A module-level
//! statement is therefore run only when a name that it binds or changes is looked up, and then
//! at most once. All statements that touch a name run in the order they are written.

use rustc_hash::FxHashMap;

use crate::Result;
use crate::eval::scope::Binding;
use crate::eval::{KnownSymbols, Stage};
use crate::syntax::Symbol;
use crate::syntax::ast::{Expr, ExprKind, Module, Stmt, StmtKind};
use crate::value::Value;

/// Which statements bind or change a module-level name, and which of them have run.
#[derive(Debug, Default)]
pub struct Globals {
    touching: FxHashMap<Symbol, Vec<usize>>,
    started: Vec<bool>,
    /// Module-level code sees only what stands above it: the statement being run.
    limit: usize,
    /// Modules of which `from m import *` stands in the file, with the dots before their names.
    pub stars: Vec<(std::rc::Rc<str>, u32)>,
}

impl Globals {
    pub(super) fn index(module: &Module, known: &KnownSymbols) -> Globals {
        let mut globals = Globals {
            started: vec![false; module.body.len()],
            limit: module.body.len(),
            ..Globals::default()
        };
        for (i, stmt) in module.body.iter().enumerate() {
            let mut names = Vec::new();
            globals.touched(stmt, known, &mut names);
            for name in names {
                let list = globals.touching.entry(name).or_default();
                if list.last() != Some(&i) {
                    list.push(i);
                }
            }
        }
        globals
    }

    /// Every name that the module binds.
    pub fn names(&self) -> impl Iterator<Item = Symbol> + '_ {
        self.touching.keys().copied()
    }

    fn touched(&mut self, stmt: &Stmt, known: &KnownSymbols, out: &mut Vec<Symbol>) {
        match &stmt.kind {
            StmtKind::Assign { targets, .. } => targets.iter().for_each(|t| target_names(t, out)),
            StmtKind::AugAssign { target, .. } | StmtKind::AnnAssign { target, .. } => {
                target_names(target, out);
            }
            StmtKind::FunctionDef(def) => out.push(def.name.sym),
            StmtKind::ClassDef(def) => out.push(def.name.sym),
            StmtKind::Import(names) => out.extend(names.iter().map(|n| n.bound.sym)),
            StmtKind::ImportFrom {
                module,
                level,
                names,
            } => {
                out.extend(names.iter().filter(|n| !n.star).map(|n| n.bound.sym));
                if names.iter().any(|n| n.star) {
                    self.stars.push((module.clone(), *level));
                }
            }
            StmtKind::If { arms, orelse } => {
                if arms.iter().any(|arm| is_main_guard(&arm.test, known)) {
                    return;
                }
                for arm in arms {
                    arm.body.iter().for_each(|s| self.touched(s, known, out));
                }
                orelse.iter().for_each(|s| self.touched(s, known, out));
            }
            StmtKind::For {
                target,
                body,
                orelse,
                ..
            } => {
                target_names(target, out);
                let parts = body.iter().chain(orelse);
                parts.for_each(|s| self.touched(s, known, out));
            }
            StmtKind::While { body, orelse, .. } => {
                let parts = body.iter().chain(orelse);
                parts.for_each(|s| self.touched(s, known, out));
            }
            StmtKind::With { items, body } => {
                for item in items {
                    item.target.iter().for_each(|t| target_names(t, out));
                }
                body.iter().for_each(|s| self.touched(s, known, out));
            }
            StmtKind::Try {
                body,
                orelse,
                finalbody,
                ..
            } => {
                let parts = body.iter().chain(orelse).chain(finalbody);
                parts.for_each(|s| self.touched(s, known, out));
            }
            // `configs.append(…)` changes what `configs` is.
            StmtKind::Expr(e) => {
                if let ExprKind::Call(call) = &e.kind
                    && let ExprKind::Attribute(receiver, _) = &call.func.kind
                    && let ExprKind::Name(name) = receiver.kind
                {
                    out.push(name);
                }
            }
            StmtKind::Return(_)
            | StmtKind::Assert { .. }
            | StmtKind::Raise(_)
            | StmtKind::Outer { .. }
            | StmtKind::Delete(_)
            | StmtKind::Pass
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Unsupported(_) => {}
        }
    }
}

/// The names that an assignment to `target` binds or changes.
fn target_names(target: &Expr, out: &mut Vec<Symbol>) {
    match &target.kind {
        ExprKind::Name(name) => out.push(*name),
        ExprKind::Tuple(items) | ExprKind::List(items) => {
            items.iter().for_each(|t| target_names(t, out));
        }
        ExprKind::Starred(inner)
        | ExprKind::Subscript(inner, _)
        | ExprKind::Attribute(inner, _) => {
            target_names(inner, out);
        }
        _ => {}
    }
}

/// `__name__ == "__main__"`
fn is_main_guard(test: &Expr, known: &KnownSymbols) -> bool {
    let is_name = |e: &Expr| matches!(e.kind, ExprKind::Name(n) if n == known.dunder_name);
    match &test.kind {
        ExprKind::Compare(left, rest) => is_name(left) || rest.iter().any(|(_, e)| is_name(e)),
        _ => false,
    }
}

impl Stage {
    /// The module-level binding of a name, after running the statements that make it.
    pub(crate) fn global(&mut self, name: Symbol) -> Result<Option<Binding>> {
        let mut next = 0;
        // Looked up anew each time: running a statement may run others.
        while let Some(&index) = self
            .lazy
            .touching
            .get(&name)
            .and_then(|list| list.get(next))
        {
            next += 1;
            if index >= self.lazy.limit {
                break;
            }
            if std::mem::replace(&mut self.lazy.started[index], true) {
                continue;
            }
            let module = self.module.clone();
            let stmt = &module.body[index];
            // A call on a name that no module-level statement made is somebody's side effect.
            if let StmtKind::Expr(_) = stmt.kind
                && !self.is_python_container(name)
            {
                continue;
            }
            let limit = std::mem::replace(&mut self.lazy.limit, index);
            let result = self.at_module_level(|stage| stage.exec(stmt));
            self.lazy.limit = limit;
            result?;
        }
        Ok(self.globals.get(name))
    }

    fn is_python_container(&self, name: Symbol) -> bool {
        matches!(
            self.globals.get(name),
            Some(Binding::Live(
                Value::List(_) | Value::Dict(_) | Value::Set(_)
            ))
        )
    }

    /// Runs `f` as module-level code, whatever is being traced.
    fn at_module_level<T>(&mut self, f: impl FnOnce(&mut Stage) -> Result<T>) -> Result<T> {
        let scope = std::mem::replace(&mut self.scope, self.globals.clone());
        let blocks = std::mem::take(&mut self.rec.blocks);
        let logs = std::mem::take(&mut self.logs);
        let kernel = self.rec.kernel.take();
        let loops = std::mem::take(&mut self.loops);
        let traced = std::mem::replace(&mut self.traced, false);
        let building = std::mem::replace(&mut self.rec.building, false);
        let result = f(self);
        self.scope = scope;
        self.rec.blocks = blocks;
        self.logs = logs;
        self.rec.kernel = kernel;
        self.loops = loops;
        self.traced = traced;
        self.rec.building = building;
        result
    }
}
