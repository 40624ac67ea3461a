//! Stores into elements, and the loads that nobody needs.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use tilewright_ir::{Block, DType, Scope, Span, StmtKind, Var, visit};

use crate::Result;
use crate::codes;
use crate::record::Recorder;
use crate::value::{Element, Value};

impl Recorder {
    /// `buffer[indices] = value`, converted to the element's type.
    pub(crate) fn store(&mut self, element: &Element, value: &Value, span: Span) -> Result<()> {
        let data = self.buffer(element.buffer);
        let (scope, dtype) = (data.scope, data.dtype);
        match scope {
            Scope::Barrier | Scope::Tmem => {
                return Err(self
                    .error(
                        codes::BUFFER_SCOPE,
                        span,
                        format!("elements of {} memory cannot be assigned", scope.name()),
                    )
                    .into());
            }
            Scope::Fragment if !self.in_parallel() => self.check_fragment_store(element, span)?,
            Scope::Global
            | Scope::Shared
            | Scope::Fragment
            | Scope::Local
            | Scope::Var
            | Scope::Reducer => {}
        }
        if let Value::Buffer(b) = value
            && self.buffer(*b).scope != Scope::Var
        {
            let name = self.buffer_name(*b);
            return Err(self
                .error(
                    codes::BAD_STORE,
                    span,
                    format!("{name} is a whole buffer and cannot be stored into one element"),
                )
                .help("use `T.copy`")
                .into());
        }
        if scope == Scope::Reducer {
            let value = self.to_expr(value, span)?;
            let indices = element.indices.clone();
            return crate::lang::reducer::reducer_store(
                self,
                element.buffer,
                indices,
                &value,
                span,
            );
        }
        self.warn_lossy(value, dtype, span);
        let value = self.to_expr_as(value, dtype, span)?;
        self.emit_at(
            StmtKind::Store {
                buffer: element.buffer,
                indices: element.indices.clone(),
                value,
            },
            span,
        )
    }

    /// Storing a float into an integer drops its fraction, which is seldom meant.
    fn warn_lossy(&mut self, value: &Value, dtype: DType, span: Span) {
        let from = match value {
            Value::Float(f) if f.fract() != 0.0 => "a float".to_string(),
            Value::Expr(e) if e.dtype().scalar.is_float() => e.dtype().to_string(),
            Value::Element(e) if self.buffer(e.buffer).dtype.scalar.is_float() => {
                self.buffer(e.buffer).dtype.to_string()
            }
            _ => return,
        };
        if dtype.scalar.is_int() {
            let warning = tilewright_ir::Diagnostic::warning(
                codes::LOSSY_STORE,
                span,
                format!("{from} is stored as {dtype}; its fraction is dropped"),
            )
            .help(format!("write `T.cast(x, \"{dtype}\")` if that is meant"));
            self.warn(warning);
        }
    }

    /// Outside a parallel loop no thread owns a given fragment element, except the first.
    fn check_fragment_store(&self, element: &Element, span: Span) -> Result<()> {
        let outside = element
            .indices
            .iter()
            .any(|i| self.const_int(i).is_some_and(|v| v != 0));
        if !outside {
            return Ok(());
        }
        Err(self
            .error(
                codes::BUFFER_SCOPE,
                span,
                format!(
                    "{} is spread over the threads; one element of it can be stored only \
                     inside `T.Parallel`",
                    self.buffer_name(element.buffer)
                ),
            )
            .help("write `for i in T.Parallel(n): …`, or use `T.fill`")
            .into())
    }
}

/// Drops the loads of names that only ever served as start points of tile operations: reading
/// there would be reading memory that the program never reads.
pub(super) fn drop_unused_lets(body: &mut Block, elements: &FxHashMap<Var, Rc<Element>>) {
    if elements.is_empty() {
        return;
    }
    let mut used: FxHashMap<Var, ()> = FxHashMap::default();
    visit::walk_stmts(body, &mut |stmt| {
        visit::stmt_exprs(stmt, &mut |e| {
            e.walk(&mut |e| {
                if let Some(var) = e.as_var() {
                    used.insert(var, ());
                }
            });
        });
    });
    sweep(body, elements, &used);
}

fn sweep(body: &mut Block, elements: &FxHashMap<Var, Rc<Element>>, used: &FxHashMap<Var, ()>) {
    body.retain(|stmt| match stmt.kind {
        StmtKind::Let { var, .. } => used.contains_key(&var) || !elements.contains_key(&var),
        _ => true,
    });
    for stmt in body {
        for child in visit::child_blocks_mut(stmt) {
            sweep(child, elements, used);
        }
    }
}
