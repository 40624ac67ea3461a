//! Methods of Python's types, and the few of run-time values.

use std::rc::Rc;

use tilewright_ir::Span;

use crate::codes;
use crate::eval::Stage;
use crate::eval::builtins::PyArgs;
use crate::value::{Entry, Key, Method, Value};
use crate::{Error, Result};

const STR: &[&str] = &[
    "capitalize",
    "count",
    "endswith",
    "find",
    "format",
    "index",
    "isdigit",
    "join",
    "lower",
    "lstrip",
    "replace",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "title",
    "upper",
    "zfill",
];
const LIST: &[&str] = &[
    "append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse",
    "sort",
];
const TUPLE: &[&str] = &["count", "index"];
const DICT: &[&str] = &[
    "clear",
    "copy",
    "get",
    "items",
    "keys",
    "pop",
    "setdefault",
    "update",
    "values",
];
const SET: &[&str] = &["add", "discard", "union"];
const INT: &[&str] = &["bit_length"];
const FLOAT: &[&str] = &["is_integer"];
const DTYPE: &[&str] = &["as_torch"];
const BUFFER: &[&str] = &["scope"];
const EXPR: &[&str] = &["astype"];

/// The methods of a value's type.
pub fn names(value: &Value) -> &'static [&'static str] {
    match value {
        Value::Str(_) => STR,
        Value::List(_) => LIST,
        Value::Tuple(_) => TUPLE,
        Value::Dict(_) => DICT,
        Value::Set(_) => SET,
        Value::Int(_) | Value::Dim(_) => INT,
        Value::Float(_) => FLOAT,
        Value::DType(_) => DTYPE,
        Value::Buffer(_) => BUFFER,
        Value::Expr(_) | Value::Element(_) => EXPR,
        _ => &[],
    }
}

pub fn exists(value: &Value, name: &str) -> bool {
    names(value).contains(&name)
}

impl Stage {
    pub(crate) fn call_method(&mut self, method: &Method, a: &PyArgs) -> Result<Value> {
        let name = &*method.name;
        match &method.receiver {
            Value::Str(s) => self.str_method(s, name, a),
            Value::List(items) => self.list_method(items, name, a),
            Value::Tuple(items) => self.sequence_method(items, name, a),
            Value::Dict(_) => self.dict_method(&method.receiver, name, a),
            Value::Set(items) => {
                let mut added = Vec::new();
                for arg in &a.args {
                    match name {
                        "union" => added.extend(self.iterate(arg, a.span())?),
                        _ => added.push(arg.clone()),
                    }
                }
                if name == "union" {
                    let mut all: Vec<Value> =
                        items.borrow().values().map(|e| e.key.clone()).collect();
                    all.extend(added);
                    return self.set_of(all, a.span());
                }
                for key in added {
                    let hash = self.hash(&key, a.span())?;
                    if name == "add" {
                        let value = Value::None;
                        items.borrow_mut().insert(hash, Entry { key, value });
                    } else {
                        items.borrow_mut().shift_remove(&hash);
                    }
                }
                Ok(Value::None)
            }
            Value::Int(_) | Value::Dim(_) => {
                a.positional(self, name, 0, 0)?;
                let v = method.receiver.as_int().unwrap_or(0).unsigned_abs();
                Ok(Value::Int(i128::from(128 - v.leading_zeros())))
            }
            Value::Float(f) => Ok(Value::Bool(f.fract() == 0.0)),
            Value::DType(_) => Ok(method.receiver.clone()),
            Value::Buffer(b) => Ok(Value::str(self.rec.buffer(*b).scope.name())),
            receiver @ (Value::Expr(_) | Value::Element(_)) => {
                let args = a.positional(self, name, 1, 1)?;
                let dtype = self.rec.to_dtype(&args[0], a.span())?;
                Ok(Value::Expr(self.rec.to_expr_as(
                    receiver,
                    dtype,
                    a.span(),
                )?))
            }
            other => Err(self.rec.wrong_type("a value with methods", other, a.span())),
        }
    }

    fn str_method(&mut self, s: &Rc<str>, name: &str, a: &PyArgs) -> Result<Value> {
        if name == "format" {
            return self.str_format(s, a);
        }
        let args = a.positional(self, name, 0, 2)?.to_vec();
        let text = |i: usize| -> Result<Rc<str>> {
            match args.get(i) {
                Some(Value::Str(t)) => Ok(t.clone()),
                Some(v) => Err(self.rec.wrong_type("a string", v, a.span())),
                None => Err(self.missing_argument(name, a.span())),
            }
        };
        let strip_set = |i: usize| -> Result<Vec<char>> {
            match args.get(i) {
                Some(_) => Ok(text(i)?.chars().collect()),
                None => Ok(vec![' ', '\t', '\n', '\r']),
            }
        };
        Ok(match name {
            "upper" => Value::str(s.to_uppercase()),
            "lower" => Value::str(s.to_lowercase()),
            "capitalize" | "title" => {
                let mut out = String::new();
                let mut start = true;
                for c in s.chars() {
                    if start {
                        out.extend(c.to_uppercase());
                    } else {
                        out.extend(c.to_lowercase());
                    }
                    start = name == "title" && !c.is_alphanumeric();
                }
                Value::str(out)
            }
            "strip" => Value::str(s.trim_matches(strip_set(0)?.as_slice())),
            "lstrip" => Value::str(s.trim_start_matches(strip_set(0)?.as_slice())),
            "rstrip" => Value::str(s.trim_end_matches(strip_set(0)?.as_slice())),
            "isdigit" => Value::Bool(!s.is_empty() && s.chars().all(|c| c.is_ascii_digit())),
            "startswith" | "endswith" => {
                let options = match args.first().and_then(Value::sequence) {
                    Some(options) => options,
                    None => vec![Value::Str(text(0)?)],
                };
                Value::Bool(options.iter().filter_map(Value::as_str).any(|o| {
                    if name == "startswith" {
                        s.starts_with(&**o)
                    } else {
                        s.ends_with(&**o)
                    }
                }))
            }
            "count" => Value::Int(s.matches(&*text(0)?).count() as i128),
            "find" | "index" => match s.find(&*text(0)?) {
                Some(at) => Value::Int(s[..at].chars().count() as i128),
                None if name == "find" => Value::Int(-1),
                None => {
                    let message = "the substring is not there";
                    return Err(self.error(codes::PYTHON_ERROR, a.span(), message).into());
                }
            },
            "replace" => {
                let (from, to) = (text(0)?, text(1)?);
                let grown = s.len().saturating_mul(to.len().max(1)).max(s.len());
                self.rec.check_items(grown, a.span())?;
                Value::str(s.replace(&*from, &to))
            }
            "zfill" => {
                let width = match args.first() {
                    Some(v) => self.rec.to_int(v, a.span(), "the width")?,
                    None => return Err(self.missing_argument(name, a.span())),
                };
                Value::str(self.format_value(
                    &Value::Str(s.clone()),
                    &format!("0>{width}"),
                    a.span(),
                )?)
            }
            "split" | "rsplit" => {
                let parts: Vec<Value> = match (args.first(), args.get(1)) {
                    (None | Some(Value::None), None) => {
                        s.split_whitespace().map(Value::str).collect()
                    }
                    (_, limit) => {
                        let sep = text(0)?;
                        if sep.is_empty() {
                            let message = "an empty separator";
                            return Err(self.error(codes::PYTHON_ERROR, a.span(), message).into());
                        }
                        let limit = match limit {
                            Some(v) => self.rec.to_int(v, a.span(), "the limit")?,
                            None => -1,
                        };
                        let n = usize::try_from(limit).map_or(usize::MAX, |n| n.saturating_add(1));
                        if name == "split" {
                            s.splitn(n, &*sep).map(Value::str).collect()
                        } else {
                            let mut parts: Vec<Value> =
                                s.rsplitn(n, &*sep).map(Value::str).collect();
                            parts.reverse();
                            parts
                        }
                    }
                };
                self.rec.check_items(parts.len(), a.span())?;
                Value::list(parts)
            }
            "splitlines" => Value::list(s.lines().map(Value::str).collect()),
            "join" => {
                let Some(parts) = args.first() else {
                    return Err(self.missing_argument(name, a.span()));
                };
                let mut out = String::new();
                for (i, part) in self.iterate(parts, a.span())?.iter().enumerate() {
                    let Value::Str(part) = part else {
                        return Err(self.rec.wrong_type("strings", part, a.span()));
                    };
                    if i > 0 {
                        out.push_str(s);
                    }
                    out.push_str(part);
                    self.rec.check_items(out.len(), a.span())?;
                }
                Value::str(out)
            }
            _ => return Err(self.missing_argument(name, a.span())),
        })
    }

    /// `"{} x {n:04d}".format(…)`
    fn str_format(&mut self, s: &str, a: &PyArgs) -> Result<Value> {
        let mut out = String::new();
        let mut next = 0;
        let mut rest = s;
        while let Some(at) = rest.find(['{', '}']) {
            out.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if rest.starts_with(brace) {
                out.push_str(brace);
                rest = &rest[1..];
                continue;
            }
            let Some(end) = rest.find('}').filter(|_| brace == "{") else {
                let message = "a single brace in the format string";
                return Err(self.error(codes::PYTHON_ERROR, a.span(), message).into());
            };
            let (field, tail) = rest.split_at(end);
            rest = &tail[1..];
            let (field, spec) = field.split_once(':').unwrap_or((field, ""));
            let value = if field.is_empty() {
                next += 1;
                a.args.get(next - 1).cloned()
            } else if let Ok(index) = field.parse::<usize>() {
                a.args.get(index).cloned()
            } else {
                a.keyword(self, field).cloned()
            };
            let Some(value) = value else {
                let message = format!("no value for `{{{field}}}` in the format string");
                return Err(self.error(codes::PYTHON_ERROR, a.span(), message).into());
            };
            out.push_str(&self.format_value(&value, spec, a.span())?);
            self.rec.check_items(out.len(), a.span())?;
        }
        out.push_str(rest);
        Ok(Value::str(out))
    }

    fn list_method(
        &mut self,
        items: &Rc<std::cell::RefCell<Vec<Value>>>,
        name: &str,
        a: &PyArgs,
    ) -> Result<Value> {
        let args = match name {
            "sort" => a.counted(self, name, 0, 0)?,
            _ => a.positional(self, name, 0, 2)?,
        };
        match (name, args) {
            ("append", [v]) => {
                self.rec.check_items(items.borrow().len() + 1, a.span())?;
                items.borrow_mut().push(v.clone());
            }
            ("extend", [v]) => {
                let more = self.iterate(v, a.span())?;
                self.rec
                    .check_items(items.borrow().len() + more.len(), a.span())?;
                items.borrow_mut().extend(more);
            }
            ("insert", [at, v]) => {
                let len = items.borrow().len() as i128;
                let at = self.rec.to_int(at, a.span(), "the position")?;
                let at = if at < 0 {
                    (at + len).max(0)
                } else {
                    at.min(len)
                };
                self.rec.check_items(len as usize + 1, a.span())?;
                items.borrow_mut().insert(at as usize, v.clone());
            }
            ("pop", []) if !items.borrow().is_empty() => {
                return Ok(items.borrow_mut().pop().unwrap_or(Value::None));
            }
            ("pop", [at]) => {
                let len = items.borrow().len() as i128;
                let at = self.rec.to_int(at, a.span(), "the position")?;
                let at = if at < 0 { at + len } else { at };
                if !(0..len).contains(&at) {
                    return Err(self.out_of_range(at, len, a.span()));
                }
                return Ok(items.borrow_mut().remove(at as usize));
            }
            ("pop", []) => return Err(self.out_of_range(0, 0, a.span())),
            ("remove", [v]) => {
                let at = items.borrow().iter().position(|i| self.equal(i, v));
                match at {
                    Some(at) => drop(items.borrow_mut().remove(at)),
                    None => {
                        let message = "the value is not in the list";
                        return Err(self.error(codes::PYTHON_ERROR, a.span(), message).into());
                    }
                }
            }
            ("reverse", []) => items.borrow_mut().reverse(),
            ("clear", []) => items.borrow_mut().clear(),
            ("copy", []) => return Ok(Value::list(items.borrow().clone())),
            ("sort", _) => {
                let key = a.keyword(self, "key").cloned();
                let reverse = match a.keyword(self, "reverse").cloned() {
                    Some(v) => self.rec.truth(&v, a.span())?,
                    None => false,
                };
                let unsorted = items.borrow().clone();
                let sorted = self.sort(unsorted, key, reverse, a.span())?;
                *items.borrow_mut() = sorted;
            }
            ("index" | "count", _) => {
                let copy = items.borrow().clone();
                return self.sequence_method(&copy, name, a);
            }
            _ => return Err(self.missing_argument(name, a.span())),
        }
        Ok(Value::None)
    }

    fn sequence_method(&mut self, items: &[Value], name: &str, a: &PyArgs) -> Result<Value> {
        let args = a.positional(self, name, 1, 1)?;
        let mut found = items
            .iter()
            .enumerate()
            .filter(|(_, i)| self.equal(i, &args[0]));
        match name {
            "count" => Ok(Value::Int(found.count() as i128)),
            _ => match found.next() {
                Some((at, _)) => Ok(Value::Int(at as i128)),
                None => {
                    let message = "the value is not in the sequence";
                    Err(self.error(codes::PYTHON_ERROR, a.span(), message).into())
                }
            },
        }
    }

    fn dict_method(&mut self, receiver: &Value, name: &str, a: &PyArgs) -> Result<Value> {
        let Value::Dict(items) = receiver else {
            return Err(self.rec.wrong_type("a dict", receiver, a.span()));
        };
        let key_of = |stage: &Stage| -> Result<Key> {
            match a.args.first() {
                Some(key) => stage.hash(key, a.span()),
                None => Err(stage.missing_argument(name, a.span())),
            }
        };
        let list = |f: fn(&Entry) -> Value| Value::list(items.borrow().values().map(f).collect());
        Ok(match name {
            "keys" => list(|e| e.key.clone()),
            "values" => list(|e| e.value.clone()),
            "items" => list(|e| Value::tuple(vec![e.key.clone(), e.value.clone()])),
            "copy" => Value::Dict(Rc::new(items.borrow().clone().into())),
            "clear" => {
                items.borrow_mut().clear();
                Value::None
            }
            "get" => {
                let key = key_of(self)?;
                let found = items.borrow().get(&key).map(|e| e.value.clone());
                found.unwrap_or_else(|| a.args.get(1).cloned().unwrap_or(Value::None))
            }
            "pop" => {
                let key = key_of(self)?;
                let found = items.borrow_mut().shift_remove(&key);
                match (found, a.args.get(1)) {
                    (Some(e), _) => e.value,
                    (None, Some(default)) => default.clone(),
                    (None, None) => return Err(self.missing_key(&a.args[0], a.span())),
                }
            }
            "setdefault" => {
                let hash = key_of(self)?;
                let key = a.args[0].clone();
                let value = a.args.get(1).cloned().unwrap_or(Value::None);
                let mut items = items.borrow_mut();
                items
                    .entry(hash)
                    .or_insert(Entry { key, value })
                    .value
                    .clone()
            }
            "update" => {
                let more = (crate::eval::builtins::dict)(self, a)?;
                if let Value::Dict(more) = more {
                    let more = more.borrow().clone();
                    self.rec
                        .check_items(items.borrow().len() + more.len(), a.span())?;
                    items.borrow_mut().extend(more);
                }
                Value::None
            }
            _ => return Err(self.missing_argument(name, a.span())),
        })
    }

    pub(crate) fn missing_key(&self, key: &Value, span: Span) -> Error {
        let message = format!("the dict has no key {}", self.repr(key));
        self.error(codes::PYTHON_ERROR, span, message).into()
    }

    pub(crate) fn out_of_range(&self, at: i128, len: i128, span: Span) -> Error {
        let message = format!("index {at} is outside a sequence of {len} items");
        self.error(codes::PYTHON_ERROR, span, message).into()
    }

    fn missing_argument(&self, name: &str, span: Span) -> Error {
        let message = format!("`{name}` is called with the wrong number of arguments");
        self.error(codes::WRONG_ARITY, span, message).into()
    }
}
