//! Expressions.

use std::rc::Rc;

use tilewright_ir::{Scope as BufferScope, Span};

use crate::codes;
use crate::eval::Stage;
use crate::eval::builtins;
use crate::eval::scope::Binding;
use crate::syntax::Symbol;
use crate::syntax::ast::{Expr, ExprKind};
use crate::value::{Dict, Element, Entry, SliceValue, Value};
use crate::{Error, Result};

impl Stage {
    pub(crate) fn eval(&mut self, expr: &Expr) -> Result<Value> {
        // Leaves need no depth: they evaluate nothing else.
        match &expr.kind {
            ExprKind::Name(name) => self.name(*name, expr.span),
            ExprKind::Int(v) => Ok(Value::Int(*v)),
            ExprKind::Str(s) => Ok(Value::Str(s.clone())),
            ExprKind::Float(f) => Ok(Value::Float(*f)),
            ExprKind::Bool(b) => Ok(Value::Bool(*b)),
            ExprKind::None => Ok(Value::None),
            ExprKind::Ellipsis => Ok(Value::Ellipsis),
            _ => self.deeper(expr.span, |stage| stage.eval_inner(expr)),
        }
    }

    fn eval_inner(&mut self, expr: &Expr) -> Result<Value> {
        let span = expr.span;
        match &expr.kind {
            ExprKind::None
            | ExprKind::Bool(_)
            | ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Str(_)
            | ExprKind::Ellipsis
            | ExprKind::Name(_) => self.eval(expr),
            ExprKind::FString(parts) => self.fstring(parts, span),
            ExprKind::Tuple(items) => Ok(Value::tuple(self.eval_items(items)?)),
            ExprKind::List(items) => Ok(Value::list(self.eval_items(items)?)),
            ExprKind::Set(items) => {
                let items = self.eval_items(items)?;
                self.set_of(items, span)
            }
            ExprKind::Dict(items) => self.eval_dict(items),
            ExprKind::Unary(op, operand) => {
                let value = self.eval(operand)?;
                self.unary(*op, &value, span)
            }
            ExprKind::Binary(op, left, right) => {
                let a = self.eval(left)?;
                let b = self.eval(right)?;
                self.binop(*op, &a, &b, span)
            }
            ExprKind::Bool2(op, values) => self.bool_op(*op, values, span),
            ExprKind::Compare(first, rest) => self.compare_chain(first, rest, span),
            ExprKind::IfElse { test, body, orelse } => self.if_else(test, body, orelse, span),
            ExprKind::Call(call) => self.eval_call(call, span),
            ExprKind::Attribute(value, name) => {
                let value = self.eval(value)?;
                let name = self.symbols.text(name.sym).clone();
                self.attribute(&value, &name, span)
            }
            ExprKind::Subscript(value, index) => {
                let value = self.eval(value)?;
                self.subscript(&value, index, span)
            }
            ExprKind::Slice(slice) => {
                let mut part = |e: &Option<Expr>| match e {
                    Some(e) => self.eval(e),
                    None => Ok(Value::None),
                };
                let lower = part(&slice.lower)?;
                let upper = part(&slice.upper)?;
                let step = part(&slice.step)?;
                Ok(Value::Slice(Rc::new(SliceValue { lower, upper, step })))
            }
            ExprKind::Starred(_) => Err(self.unsupported("a starred expression here", span)),
            ExprKind::Lambda(def) => self.closure(def).map(Value::Function),
            ExprKind::Comprehension(c) => self.comprehension(c, span),
            ExprKind::Named(name, value) => {
                let value = self.eval(value)?;
                self.assign_name(name.sym, value.clone(), span)?;
                self.name(name.sym, name.span)
            }
            ExprKind::Unsupported(what) => Err(self.unsupported(what, span)),
        }
    }

    pub(crate) fn unsupported(&self, what: &str, span: Span) -> Error {
        self.error(
            codes::UNSUPPORTED_SYNTAX,
            span,
            format!("`{what}` is not supported in a kernel file"),
        )
        .into()
    }

    /// Items of a tuple, list or set display, with `*rest` spread out.
    pub(crate) fn eval_items(&mut self, items: &[Expr]) -> Result<Vec<Value>> {
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            match &item.kind {
                ExprKind::Starred(inner) => {
                    let value = self.eval(inner)?;
                    out.extend(self.iterate(&value, inner.span)?);
                }
                _ => out.push(self.eval(item)?),
            }
        }
        Ok(out)
    }

    fn eval_dict(&mut self, items: &[(Option<Expr>, Expr)]) -> Result<Value> {
        let mut dict = Dict::default();
        for (key, value) in items {
            let Some(key_expr) = key else {
                let given = self.eval(value)?;
                match self.own_container(given, value.span)? {
                    Value::Dict(other) => {
                        let other = other.borrow();
                        dict.extend(other.iter().map(|(k, v)| (k.clone(), v.clone())));
                    }
                    other => return Err(self.rec.wrong_type("a dict", &other, value.span)),
                }
                continue;
            };
            let key = self.eval_key(key_expr)?;
            let hash = self.hash(&key, key_expr.span)?;
            let value = self.eval(value)?;
            dict.insert(hash, Entry { key, value });
        }
        Ok(Value::Dict(Rc::new(dict.into())))
    }

    /// A key may be a name that stands for an `alloc_var` buffer; keys mean the buffer.
    fn eval_key(&mut self, expr: &Expr) -> Result<Value> {
        match self.eval(expr)? {
            Value::Element(e) if e.indices.is_empty() => Ok(Value::Buffer(e.buffer)),
            other => Ok(other),
        }
    }

    /// The value of a name: local, enclosing, module level, built in.
    pub(crate) fn name(&mut self, name: Symbol, span: Span) -> Result<Value> {
        let mut scope = self.scope.clone();
        loop {
            if Rc::ptr_eq(&scope, &self.globals) {
                break;
            }
            if let Some(slot) = self.file_of(&scope) {
                return self.in_file(slot, |stage| stage.outer_name(name, span));
            }
            if let Some(binding) = scope.get(name) {
                return self.read(name, binding, span);
            }
            if let Some(space) = scope.space.clone() {
                let text = self.symbols.text(name).clone();
                if let Some(value) = space.get(self, &text, span)? {
                    return Ok(value);
                }
            }
            match &scope.parent {
                Some(parent) => scope = parent.clone(),
                None => break,
            }
        }
        self.outer_name(name, span)
    }

    /// The value of a name outside functions: module level, built in.
    fn outer_name(&mut self, name: Symbol, span: Span) -> Result<Value> {
        if let Some(binding) = self.global(name)? {
            return self.read(name, binding, span);
        }
        let text = self.symbols.text(name).clone();
        if let Some(value) = builtins::lookup(&text) {
            return Ok(value);
        }
        if let Some(value) = self.star_import(name, span)? {
            return Ok(value);
        }
        if let Some(host) = self.host.clone()
            && let Some(value) = host.builtin(self, &text, span)?
        {
            return Ok(value);
        }
        Err(self.unknown_name(&text, span))
    }

    pub(super) fn read(&self, name: Symbol, binding: Binding, span: Span) -> Result<Value> {
        match binding {
            // Reading a mutable scalar is a load at this point.
            Binding::Live(Value::Buffer(b)) if self.rec.buffer(b).scope == BufferScope::Var => {
                Ok(Value::Element(Rc::new(Element {
                    buffer: b,
                    indices: Vec::new(),
                    span,
                })))
            }
            Binding::Live(Value::Ref(element)) => Ok(Value::Element(element)),
            Binding::Live(Value::Expr(e)) => Ok(Value::Expr(e.with_span(span))),
            Binding::Live(value) => Ok(value),
            Binding::Dead(dead) => Err(self.dead_name(name, dead, span)),
        }
    }

    fn unknown_name(&self, text: &str, span: Span) -> Error {
        let mut known = Vec::new();
        let mut scope = Some(self.scope.clone());
        while let Some(s) = scope {
            known.extend(s.names().into_iter().map(|n| self.symbols.text(n).clone()));
            let hosted = s.space.iter().flat_map(|space| space.names());
            known.extend(hosted.map(Rc::from));
            scope = s.parent.clone();
        }
        known.extend(self.lazy.names().map(|n| self.symbols.text(n).clone()));
        let mut candidates: Vec<&str> = known.iter().map(|s| &**s).collect();
        for name in builtins::names() {
            candidates.push(name);
        }
        let mut d = self.error(
            codes::UNKNOWN_NAME,
            span,
            format!("the name `{text}` is not defined"),
        );
        if let Some(help) = tilewright_ir::nearest::suggestion(text, candidates) {
            d = d.help(help);
        }
        d.into()
    }

    /// `body if test else orelse`: decided now on a Python value, else both arms are recorded
    /// and the chosen one is evaluated at run time.
    fn if_else(&mut self, test: &Expr, body: &Expr, orelse: &Expr, span: Span) -> Result<Value> {
        let cond = self.eval(test)?;
        if self.runtime_bool(&cond)?.is_none() {
            return match self.rec.truth(&cond, test.span)? {
                true => self.eval(body),
                false => self.eval(orelse),
            };
        }
        let cond = self.rec.condition(&cond, test.span)?;
        let then = self.pure_arm(body)?;
        let otherwise = self.pure_arm(orelse)?;
        let then = self.rec.to_expr(&then, body.span)?;
        let otherwise = self.rec.to_expr(&otherwise, orelse.span)?;
        Ok(Value::Expr(
            self.rec.if_then_else(cond, then, otherwise, span)?,
        ))
    }

    /// Evaluates what runs only if a run-time condition says so: it must not record statements,
    /// which would run always.
    pub(crate) fn pure_arm(&mut self, expr: &Expr) -> Result<Value> {
        let before = self.rec.emitted;
        let value = self.eval(expr)?;
        if self.rec.emitted != before {
            return Err(self
                .error(
                    codes::BAD_MACRO,
                    expr.span,
                    "a macro call inside a conditional expression",
                )
                .note("its statements would run whatever the condition")
                .help("call it first and use its result, or write an `if` statement")
                .into());
        }
        Ok(value)
    }
}
