//! Python iteration and comprehensions.

use std::cmp::Ordering;
use std::rc::Rc;

use tilewright_ir::Span;

use crate::Result;
use crate::codes;
use crate::eval::Stage;
use crate::eval::scope::Scope;
use crate::record::MAX_ITEMS;
use crate::syntax::ast::{Comprehension, ComprehensionKind, Expr, ForClause};
use crate::value::{Dict, Entry, Key, Value};

impl Stage {
    /// The items that Python iteration over the value gives.
    pub(crate) fn iterate(&mut self, value: &Value, span: Span) -> Result<Vec<Value>> {
        let items = match value {
            Value::List(items) => items.borrow().clone(),
            Value::Tuple(items) => items.to_vec(),
            Value::Str(s) => s.chars().map(|c| Value::str(c.to_string())).collect(),
            Value::Dict(items) | Value::Set(items) => {
                items.borrow().values().map(|e| e.key.clone()).collect()
            }
            Value::Range(r) => {
                let len = usize::try_from(r.len()).unwrap_or(usize::MAX);
                self.rec.check_items(len.min(MAX_ITEMS + 1), span)?;
                (0..r.len()).map(|i| Value::Int(r.at(i))).collect()
            }
            Value::Loop(_) => {
                return Err(self
                    .error(
                        codes::BAD_LOOP,
                        span,
                        "a loop of the kernel cannot be gone through at compile time",
                    )
                    .help("write it as a `for` statement, or use a range of compile-time ints")
                    .into());
            }
            Value::Opaque(o) => return Err(self.rec.opaque_error(o, span)),
            Value::Host(object) => object.clone().items(self, span)?,
            _ => {
                return Err(self
                    .error(
                        codes::WRONG_TYPE,
                        span,
                        format!("{} cannot be gone through", value.type_name()),
                    )
                    .into());
            }
        };
        self.rec.check_items(items.len(), span)?;
        Ok(items)
    }

    /// The key of a dict entry or set item.
    pub(crate) fn hash(&self, value: &Value, span: Span) -> Result<Key> {
        value.key().ok_or_else(|| {
            self.error(
                codes::WRONG_TYPE,
                span,
                format!("{} cannot be a key", value.type_name()),
            )
            .into()
        })
    }

    /// Stable sort by key, failing on values without an order.
    pub(crate) fn sort(
        &mut self,
        items: Vec<Value>,
        key: Option<Value>,
        reverse: bool,
        span: Span,
    ) -> Result<Vec<Value>> {
        let n = items.len() as u64;
        self.rec.charge(n * (64 - n.leading_zeros() as u64), span)?;
        let mut keyed = Vec::with_capacity(items.len());
        for item in items {
            let k = match &key {
                Some(f) => self.call_value(f, vec![item.clone()], span)?,
                None => item.clone(),
            };
            keyed.push((k, item));
        }
        let mut failure = None;
        keyed.sort_by(|a, b| {
            let order = match self.order(&a.0, &b.0, span, "<") {
                Ok(order) => order.unwrap_or(Ordering::Equal),
                Err(e) => {
                    failure.get_or_insert(e);
                    Ordering::Equal
                }
            };
            if reverse { order.reverse() } else { order }
        });
        match failure {
            Some(e) => Err(e),
            None => Ok(keyed.into_iter().map(|(_, item)| item).collect()),
        }
    }

    /// A set of the items.
    pub(crate) fn set_of(&mut self, items: Vec<Value>, span: Span) -> Result<Value> {
        let mut set = Dict::default();
        for key in items {
            let hash = self.hash(&key, span)?;
            let value = Value::None;
            set.entry(hash).or_insert(Entry { key, value });
        }
        Ok(Value::Set(Rc::new(set.into())))
    }

    pub(crate) fn comprehension(&mut self, c: &Comprehension, span: Span) -> Result<Value> {
        let scope = Scope::new(Some(self.scope.clone()));
        let outer = std::mem::replace(&mut self.scope, scope);
        let mut collected = Collected {
            items: Vec::new(),
            dict: Dict::default(),
        };
        let result = self.clauses(c, &c.clauses, &mut collected, span);
        self.scope = outer;
        result?;
        match c.kind {
            ComprehensionKind::List | ComprehensionKind::Generator => {
                Ok(Value::list(collected.items))
            }
            ComprehensionKind::Set => self.set_of(collected.items, span),
            ComprehensionKind::Dict => Ok(Value::Dict(Rc::new(collected.dict.into()))),
        }
    }

    fn clauses(
        &mut self,
        c: &Comprehension,
        clauses: &[ForClause],
        out: &mut Collected,
        span: Span,
    ) -> Result<()> {
        let Some((first, rest)) = clauses.split_first() else {
            let element = self.eval(&c.element)?;
            match &c.value {
                Some(value) => {
                    let hash = self.hash(&element, c.element.span)?;
                    let value = self.eval(value)?;
                    let key = element;
                    out.dict.insert(hash, Entry { key, value });
                }
                None => out.items.push(element),
            }
            return self
                .rec
                .check_items(out.items.len().max(out.dict.len()), span);
        };
        let iter = self.eval(&first.iter)?;
        for item in self.iterate(&iter, first.iter.span)? {
            self.rec.charge(1, span)?;
            self.bind_pattern(&first.target, item)?;
            if self.all_true(&first.tests)? {
                self.clauses(c, rest, out, span)?;
            }
        }
        Ok(())
    }

    fn all_true(&mut self, tests: &[Expr]) -> Result<bool> {
        for test in tests {
            let value = self.eval(test)?;
            if !self.rec.truth(&value, test.span)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

struct Collected {
    items: Vec<Value>,
    dict: Dict,
}
