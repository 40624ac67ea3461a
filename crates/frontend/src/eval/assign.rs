//! Assignment: names, snapshots of run-time values, stores, unpacking.

use std::rc::Rc;

use tilewright_ir::{DType, Expr, ExprKind as IrKind, Scope, Span};

use crate::codes;
use crate::eval::Stage;
use crate::syntax::Symbol;
use crate::syntax::ast::{self, BinOp, ExprKind};
use crate::value::{Element, LoopSpec, Value};
use crate::{Error, Result};

impl Stage {
    /// `target = value` in a statement.
    pub(crate) fn assign(&mut self, target: &ast::Expr, value: Value, span: Span) -> Result<()> {
        match &target.kind {
            ExprKind::Name(name) => self.assign_name(*name, value, span),
            ExprKind::Tuple(targets) | ExprKind::List(targets) => {
                let mut values = self.unpack(&value, targets, span)?;
                if self.snapshots() {
                    // All right-hand values are taken before the first store, so that swaps work.
                    for (value, target) in values.iter_mut().zip(targets) {
                        if value.is_runtime() {
                            let name = self.target_name(target);
                            *value = self.snapshot(value.clone(), &name, span)?;
                        }
                    }
                }
                for (target, value) in targets.iter().zip(values) {
                    let target = match &target.kind {
                        ExprKind::Starred(inner) => inner,
                        _ => target,
                    };
                    self.assign(target, value, span)?;
                }
                Ok(())
            }
            ExprKind::Subscript(container, index) => {
                let container = self.eval(container)?;
                match &container {
                    Value::Buffer(_) | Value::Element(_) => {
                        match self.subscript(&container, index, target.span)? {
                            Value::Element(e) => self.rec.store(&e, &value, span),
                            Value::Region(r) => match self.rec.store_region(&r, &value, span)? {
                                true => Ok(()),
                                false => Err(self.region_store(r.region.buffer, target.span)),
                            },
                            other => Err(self.rec.wrong_type("an element", &other, target.span)),
                        }
                    }
                    _ => {
                        let key = self.eval(index)?;
                        self.set_item(&container, key, value, target.span)
                    }
                }
            }
            ExprKind::Attribute(object, name) if self.host.is_some() => {
                let object = self.eval(object)?;
                let Value::Host(object) = &object else {
                    return Err(self.unsupported("attribute assignment", target.span));
                };
                let name = self.symbols.text(name.sym).clone();
                object.set_attribute(&name, &value, span)
            }
            ExprKind::Attribute(..) => Err(self.unsupported("attribute assignment", target.span)),
            ExprKind::Starred(_) => Err(self.unsupported("a starred target here", target.span)),
            _ => Err(self.unsupported("assignment to this", target.span)),
        }
    }

    /// Binds the names of a pattern without any snapshot: loop variables and comprehensions.
    pub(crate) fn bind_pattern(&mut self, target: &ast::Expr, value: Value) -> Result<()> {
        match &target.kind {
            ExprKind::Name(name) => {
                self.bind(*name, value, target.span);
                Ok(())
            }
            ExprKind::Tuple(targets) | ExprKind::List(targets) => {
                let values = self.unpack(&value, targets, target.span)?;
                for (target, value) in targets.iter().zip(values) {
                    let target = match &target.kind {
                        ExprKind::Starred(inner) => inner,
                        _ => target,
                    };
                    self.bind_pattern(target, value)?;
                }
                Ok(())
            }
            _ => {
                let span = target.span;
                self.assign(target, value, span)
            }
        }
    }

    /// `x = value`
    pub(crate) fn assign_name(&mut self, name: Symbol, value: Value, span: Span) -> Result<()> {
        let value = match value {
            Value::Loop(spec) => match &*spec {
                LoopSpec::Bound(indices) => match indices.as_slice() {
                    [one] => Value::Expr(one.clone()),
                    many => Value::tuple(many.iter().cloned().map(Value::Expr).collect()),
                },
                LoopSpec::Axes { .. } => Value::Loop(spec.clone()),
            },
            other => other,
        };
        // A name that stands for storage is stored to, unless it is given new storage.
        if self.rec.in_kernel() && !matches!(value, Value::Buffer(_)) {
            match self.local_binding(name) {
                Some(Value::Buffer(b)) if self.rec.buffer(b).scope == Scope::Var => {
                    let element = Element {
                        buffer: b,
                        indices: Vec::new(),
                        span,
                    };
                    return self.rec.store(&element, &value, span);
                }
                Some(Value::Ref(element)) => return self.rec.store(&element, &value, span),
                Some(Value::Expr(old)) if value.is_runtime() && old.as_int().is_none() => {
                    self.warn_rebound(name, span);
                }
                _ => {}
            }
        }
        let value = if self.snapshots() && value.is_runtime() {
            let text = self.symbols.text(name).clone();
            self.snapshot(value, &text, span)?
        } else {
            self.plain(value)
        };
        self.bind(name, value, span);
        Ok(())
    }

    /// Whether assigning a run-time value takes a snapshot: in the kernel's own code. Before
    /// the kernel a pure expression stays symbolic, and helper functions are plain Python.
    fn snapshots(&self) -> bool {
        self.traced && self.rec.in_kernel()
    }

    /// An int32 or bool constant bound to a name is a Python value.
    fn plain(&self, value: Value) -> Value {
        match value {
            Value::Expr(e) if e.dtype() == DType::I32 || e.dtype() == DType::BOOL => {
                self.expr_value(e)
            }
            other => other,
        }
    }

    /// The run-time value as it is now, under a name.
    pub(crate) fn snapshot(&mut self, value: Value, name: &str, span: Span) -> Result<Value> {
        let element = match &value {
            Value::Element(e) => {
                // A barrier or tensor-memory element is a place, not a value.
                if matches!(
                    self.rec.buffer(e.buffer).scope,
                    Scope::Barrier | Scope::Tmem
                ) {
                    return Ok(value);
                }
                Some(e.clone())
            }
            _ => None,
        };
        let expr = self.rec.to_expr(&value, span)?;
        let expr = self.snapshot_expr(expr, name, span)?;
        if let (Some(element), Some(var)) = (element, expr.as_var()) {
            self.rec.let_elements.insert(var, element);
        }
        Ok(self.plain(Value::Expr(expr)))
    }

    pub(crate) fn snapshot_expr(&mut self, expr: Expr, name: &str, span: Span) -> Result<Expr> {
        match expr.kind() {
            IrKind::Int(_) | IrKind::Float(_) | IrKind::Var(_) => Ok(expr),
            _ => self.rec.let_value(name, expr, span),
        }
    }

    fn warn_rebound(&mut self, name: Symbol, span: Span) {
        let here = self.logs.last().is_some_and(|log| log.binds(name));
        let nested = self.rec.blocks.len() > self.return_base.max(1);
        if here || !nested {
            return;
        }
        let text = self.symbols.text(name).clone();
        let warning = tilewright_ir::Diagnostic::warning(
            codes::REBOUND,
            span,
            format!(
                "`{text}` is bound to a new value here; the old one stays for other iterations"
            ),
        )
        .help(format!(
            "declare `{text} = T.alloc_var(dtype)` for a variable that changes"
        ));
        self.rec.warn(warning);
    }

    fn region_store(&self, buffer: tilewright_ir::Buffer, span: Span) -> Error {
        self.error(
            codes::BAD_STORE,
            span,
            format!(
                "a region of {} cannot be assigned",
                self.rec.buffer_name(buffer)
            ),
        )
        .help("use `T.copy(src, A[a:b])` or `T.fill(A[a:b], value)`")
        .into()
    }

    /// `target op= value`
    pub(crate) fn aug_assign(
        &mut self,
        target: &ast::Expr,
        op: BinOp,
        value: &ast::Expr,
        span: Span,
    ) -> Result<()> {
        match &target.kind {
            ExprKind::Name(name) => {
                let old = self.eval(target)?;
                if let Value::Buffer(b) = old {
                    let name = self.rec.buffer_name(b);
                    return Err(self
                        .error(
                            codes::BAD_STORE,
                            span,
                            format!("`{}=` on the whole buffer {name}", op.text()),
                        )
                        .help("update its elements inside `T.Parallel`")
                        .into());
                }
                let value = self.eval(value)?;
                // `list += items` changes the list itself.
                if let (BinOp::Add, Value::List(items)) = (op, &old) {
                    let more = self.iterate(&value, span)?;
                    self.rec
                        .check_items(items.borrow().len() + more.len(), span)?;
                    items.borrow_mut().extend(more);
                    return Ok(());
                }
                let new = match old {
                    Value::Host(_) => self.host_aug(op, &old, &value, span)?,
                    _ => self.binop(op, &old, &value, span)?,
                };
                self.assign_name(*name, new, span)
            }
            ExprKind::Attribute(object, name) if self.host.is_some() => {
                let object = self.eval(object)?;
                let Value::Host(object) = &object else {
                    return Err(self.unsupported("attribute assignment", target.span));
                };
                let name = self.symbols.text(name.sym).clone();
                let old = self.attribute(&Value::Host(object.clone()), &name, target.span)?;
                let value = self.eval(value)?;
                let new = match old {
                    Value::Host(_) => self.host_aug(op, &old, &value, span)?,
                    _ => self.binop(op, &old, &value, span)?,
                };
                object.set_attribute(&name, &new, span)
            }
            ExprKind::Subscript(container_expr, index) => {
                let container = self.eval(container_expr)?;
                if let Value::Buffer(_) = container {
                    // The place is evaluated once, then loaded and stored.
                    let place = self.subscript(&container, index, target.span)?;
                    let Value::Element(element) = &place else {
                        let Value::Region(r) = &place else {
                            return Err(self.rec.wrong_type("an element", &place, span));
                        };
                        return Err(self.region_store(r.region.buffer, target.span));
                    };
                    let value = self.eval(value)?;
                    let new = self.binop(op, &place, &value, span)?;
                    return self.rec.store(element, &new, span);
                }
                let key = self.eval(index)?;
                let old = self.subscript(&container, index, target.span)?;
                let value = self.eval(value)?;
                let new = self.binop(op, &old, &value, span)?;
                self.set_item(&container, key, new, target.span)
            }
            _ => Err(self.unsupported("this kind of augmented assignment", span)),
        }
    }

    /// The values for a tuple of targets, one of which may be starred.
    fn unpack(&mut self, value: &Value, targets: &[ast::Expr], span: Span) -> Result<Vec<Value>> {
        let items = match value {
            // One grid dimension binds to `bx` and to `(bx,)` alike.
            Value::Expr(_) if targets.len() == 1 => vec![value.clone()],
            Value::Loop(spec) => match &**spec {
                LoopSpec::Bound(indices) => indices.iter().cloned().map(Value::Expr).collect(),
                LoopSpec::Axes { .. } => self.iterate(value, span)?,
            },
            _ => self.iterate(value, span)?,
        };
        let starred = targets
            .iter()
            .position(|t| matches!(t.kind, ExprKind::Starred(_)));
        match starred {
            Some(at) if items.len() + 1 >= targets.len() => {
                let tail = targets.len() - at - 1;
                let mut out = items[..at].to_vec();
                out.push(Value::list(items[at..items.len() - tail].to_vec()));
                out.extend_from_slice(&items[items.len() - tail..]);
                Ok(out)
            }
            None if items.len() == targets.len() => Ok(items),
            _ => Err(self
                .error(
                    codes::WRONG_ARITY,
                    span,
                    format!("{} values for {} names", items.len(), targets.len()),
                )
                .into()),
        }
    }

    fn target_name(&self, target: &ast::Expr) -> Rc<str> {
        match &target.kind {
            ExprKind::Name(name) => self.symbols.text(*name).clone(),
            _ => Rc::from("tmp"),
        }
    }
}
