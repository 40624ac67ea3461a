//! Statements.

use std::rc::Rc;

use tilewright_ir::{Diagnostic, Span, StmtKind as IrStmt};

use crate::codes;
use crate::eval::Stage;
use crate::eval::scope::Scope;
use crate::syntax::ast::{Expr, ExprKind, Stmt, StmtKind};
use crate::value::{ClassValue, Frame, Value};
use crate::{Error, Result};

/// How a statement ends.
#[derive(Debug)]
pub enum Flow {
    Next,
    /// `break` of a loop that runs at compile time.
    Break,
    /// `continue` of a loop that runs at compile time.
    Continue,
    /// A jump of the kernel was recorded: what follows in the suite is not reached.
    Jumped,
    Return(Value),
}

impl Stage {
    /// Runs statements in order. Frames entered by bare expression statements stay open to the
    /// end of the suite.
    pub(crate) fn exec_suite(&mut self, suite: &[Stmt]) -> Result<Flow> {
        let mut frames: Vec<(Rc<dyn Frame>, Span)> = Vec::new();
        let mut flow = Flow::Next;
        for (i, stmt) in suite.iter().enumerate() {
            flow = match &stmt.kind {
                StmtKind::Expr(e) => {
                    if let Some(frame) = self.exec_expr(e, stmt.span)? {
                        frame.enter(&mut self.rec, stmt.span)?;
                        self.follow_blocks();
                        frames.push((frame, stmt.span));
                    }
                    Flow::Next
                }
                _ => self.exec(stmt)?,
            };
            if !matches!(flow, Flow::Next) {
                if let (Flow::Jumped, Some(next)) = (&flow, suite.get(i + 1)) {
                    let warning = Diagnostic::warning(
                        codes::UNREACHABLE,
                        next.span,
                        "statements after `break` or `continue` are never reached",
                    );
                    self.rec.warn(warning);
                }
                break;
            }
        }
        for (frame, span) in frames.into_iter().rev() {
            frame.exit(&mut self.rec, span)?;
            self.follow_blocks();
        }
        Ok(flow)
    }

    /// An expression statement; a frame is handed back to be entered.
    fn exec_expr(&mut self, e: &Expr, span: Span) -> Result<Option<Rc<dyn Frame>>> {
        if let ExprKind::Str(_) = e.kind {
            return Ok(None);
        }
        let outer = std::mem::replace(&mut self.rec.span, span);
        let value = self.eval(e);
        self.rec.span = outer;
        match value? {
            Value::Frame(frame) => Ok(Some(frame)),
            _ => Ok(None),
        }
    }

    pub(crate) fn exec(&mut self, stmt: &Stmt) -> Result<Flow> {
        let outer = std::mem::replace(&mut self.rec.span, stmt.span);
        let result = self.deeper(stmt.span, |stage| stage.exec_inner(stmt));
        self.rec.span = outer;
        result
    }

    fn exec_inner(&mut self, stmt: &Stmt) -> Result<Flow> {
        let span = stmt.span;
        match &stmt.kind {
            StmtKind::Expr(e) => {
                self.exec_expr(e, span)?;
            }
            StmtKind::Assign { targets, value } => {
                let value = self.eval(value)?;
                self.assign_all(targets, value, span)?;
            }
            StmtKind::AugAssign { target, op, value } => {
                self.aug_assign(target, *op, value, span)?;
            }
            StmtKind::AnnAssign {
                target,
                annotation,
                value,
            } => match value {
                Some(value) => {
                    let value = self.eval(value)?;
                    self.assign(target, value, span)?;
                }
                None => self.annotate(target, annotation, span)?,
            },
            StmtKind::If { arms, orelse } => return self.exec_if(arms, orelse, span),
            StmtKind::For {
                target,
                iter,
                body,
                orelse,
            } => return self.exec_for(target, iter, body, orelse, span),
            StmtKind::While { test, body, orelse } => {
                return self.exec_while(test, body, orelse, span);
            }
            StmtKind::With { items, body } => return self.exec_with(items, body, span),
            StmtKind::FunctionDef(def) => {
                let closure = self.closure(def)?;
                let value = self.decorate(closure)?;
                self.bind(def.name.sym, value, span);
            }
            StmtKind::ClassDef(def) => {
                let scope = Scope::new(Some(self.scope.clone()));
                let outer = std::mem::replace(&mut self.scope, scope.clone());
                let result = self.exec_suite(&def.body);
                self.scope = outer;
                result?;
                let name = self.symbols.text(def.name.sym).clone();
                let class = Value::Class(Rc::new(ClassValue { name, scope }));
                self.bind(def.name.sym, class, span);
            }
            StmtKind::Return(value) => {
                let value = match value {
                    Some(value) => self.eval(value)?,
                    None => Value::None,
                };
                if self.rec.blocks.len() > self.return_base {
                    return Err(match value {
                        Value::None => self.bare_return_in_block(span),
                        _ => self.return_in_block(span),
                    });
                }
                return Ok(Flow::Return(value));
            }
            StmtKind::Assert { test, message } => self.exec_assert(test, message.as_ref(), span)?,
            StmtKind::Raise(exc) => return Err(self.raised(exc.as_ref(), span)),
            StmtKind::Try {
                body,
                orelse,
                finalbody,
                ..
            } => {
                if self.traced && self.rec.in_kernel() {
                    return Err(self.unsupported("try", span));
                }
                for part in [body, orelse, finalbody] {
                    let flow = self.exec_suite(part)?;
                    if !matches!(flow, Flow::Next) {
                        return Ok(flow);
                    }
                }
            }
            StmtKind::Import(names) => self.import(names, span)?,
            StmtKind::ImportFrom {
                module,
                level,
                names,
            } => self.import_from(module, *level, names, span)?,
            StmtKind::Outer { names, global } => {
                for name in names {
                    self.declare_outer(name.sym, *global, name.span)?;
                }
            }
            StmtKind::Delete(targets) => {
                for target in targets {
                    self.delete(target)?;
                }
            }
            StmtKind::Pass => {}
            StmtKind::Break => return self.exec_jump(true, span),
            StmtKind::Continue => return self.exec_jump(false, span),
            StmtKind::Unsupported(what) => return Err(self.unsupported(what, span)),
        }
        Ok(Flow::Next)
    }

    /// `a = b = value`: the value is evaluated once.
    fn assign_all(&mut self, targets: &[Expr], value: Value, span: Span) -> Result<()> {
        let Some((last, rest)) = targets.split_last() else {
            return Ok(());
        };
        for target in rest {
            self.assign(target, value.clone(), span)?;
        }
        // What the first name was bound to is what the others get, so that a load is one load.
        let value = match rest.first().map(|t| &t.kind) {
            Some(ExprKind::Name(name)) if value.is_runtime() => match self.local_binding(*name) {
                Some(bound @ Value::Expr(_)) => bound,
                _ => value,
            },
            _ => value,
        };
        self.assign(last, value, span)
    }

    fn exec_assert(&mut self, test: &Expr, message: Option<&Expr>, span: Span) -> Result<()> {
        let cond = self.eval(test)?;
        let runtime = self.runtime_bool(&cond)?.is_some();
        if !runtime && self.rec.truth(&cond, test.span)? {
            return Ok(());
        }
        let text = match message {
            Some(message) => {
                let value = self.eval(message)?;
                self.display(&value)
            }
            None => String::new(),
        };
        if runtime {
            let cond = self.rec.condition(&cond, test.span)?;
            return self.rec.emit_at(
                IrStmt::Assert {
                    cond,
                    message: text,
                },
                span,
            );
        }
        let mut d = self
            .error(
                codes::ASSERTION,
                span,
                "an assertion failed at compile time",
            )
            .label("this is false");
        if !text.is_empty() {
            d = d.note(text);
        }
        Err(d.into())
    }

    fn raised(&mut self, exc: Option<&Expr>, span: Span) -> Error {
        let (name, message) = match exc.map(|e| &e.kind) {
            Some(ExprKind::Call(call)) => {
                let name = self.exception_name(&call.func);
                let message = match call.args.first() {
                    Some(arg) => match self.eval(arg) {
                        Ok(value) => self.display(&value),
                        Err(e) => return e,
                    },
                    None => String::new(),
                };
                (name, message)
            }
            Some(_) => (
                exc.map(|e| self.exception_name(e)).unwrap_or_default(),
                String::new(),
            ),
            None => (String::new(), String::new()),
        };
        let text = match (name.is_empty(), message.is_empty()) {
            (true, _) => "the program raised an error at compile time".to_string(),
            (false, true) => format!("the program raised {name} at compile time"),
            (false, false) => format!("the program raised {name}: {message}"),
        };
        self.error(codes::RAISED, span, text).into()
    }

    fn exception_name(&self, e: &Expr) -> String {
        match &e.kind {
            ExprKind::Name(name) => self.symbols.text(*name).to_string(),
            ExprKind::Attribute(_, name) => self.symbols.text(name.sym).to_string(),
            _ => "an exception".to_string(),
        }
    }

    fn delete(&mut self, target: &Expr) -> Result<()> {
        match &target.kind {
            ExprKind::Name(name) => {
                if self.scope.remove(*name).is_none() {
                    let text = self.symbols.text(*name);
                    let message = format!("`{text}` is not bound here");
                    return Err(self.error(codes::UNKNOWN_NAME, target.span, message).into());
                }
                Ok(())
            }
            ExprKind::Subscript(container, index) => {
                let container = self.eval(container)?;
                let key = self.eval(index)?;
                match &container {
                    Value::Dict(items) => {
                        let hash = self.hash(&key, target.span)?;
                        match items.borrow_mut().shift_remove(&hash) {
                            Some(_) => Ok(()),
                            None => Err(self.missing_key(&key, target.span)),
                        }
                    }
                    Value::List(items) => {
                        let at = self.rec.to_int(&key, target.span, "the index")?;
                        let len = items.borrow().len() as i128;
                        let wrapped = if at < 0 { at + len } else { at };
                        if !(0..len).contains(&wrapped) {
                            return Err(self.out_of_range(at, len, target.span));
                        }
                        items.borrow_mut().remove(wrapped as usize);
                        Ok(())
                    }
                    other => Err(self.rec.wrong_type("a dict or a list", other, target.span)),
                }
            }
            _ => Err(self.unsupported("del of this", target.span)),
        }
    }
}
