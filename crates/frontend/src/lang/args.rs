//! Arguments of language functions: bound and checked from the parameter table.

use std::rc::Rc;

use tilewright_ir::{Buffer, DType, Diagnostic, Expr, Span};

use crate::codes;
use crate::lang::{Arity, LangFn, Ty};
use crate::record::Recorder;
use crate::record::convert::Tile;
use crate::value::{LoopSpec, Value};
use crate::{Error, Result};

/// A value with the place it was written at.
#[derive(Clone, Debug)]
pub struct Arg {
    pub value: Value,
    pub span: Span,
}

/// The arguments of one call, one slot a parameter.
#[derive(Debug)]
pub struct CallArgs {
    function: &'static LangFn,
    slots: Vec<Option<Arg>>,
    rest: Vec<Arg>,
    keywords: Vec<(Rc<str>, Arg)>,
    span: Span,
}

impl CallArgs {
    /// Binds arguments to the parameters of a function, or says what is wrong with them.
    pub(crate) fn bind(
        function: &'static LangFn,
        positional: Vec<Arg>,
        keywords: Vec<(Rc<str>, Arg)>,
        span: Span,
    ) -> Result<CallArgs> {
        let mut bound = CallArgs {
            function,
            slots: vec![None; function.params.len()],
            rest: Vec::new(),
            keywords: Vec::new(),
            span,
        };
        let mut positional = positional.into_iter();
        for (slot, param) in bound.slots.iter_mut().zip(function.params) {
            match param.arity {
                Arity::Required | Arity::Optional => *slot = positional.next(),
                Arity::Rest => bound.rest = positional.by_ref().collect(),
                Arity::KeywordOnly | Arity::KeywordRest => {}
            }
        }
        if let Some(extra) = positional.next() {
            let takes = function
                .params
                .iter()
                .filter(|p| matches!(p.arity, Arity::Required | Arity::Optional))
                .count();
            let given = takes + 1 + positional.len();
            return Err(Diagnostic::error(
                codes::WRONG_ARITY,
                extra.span,
                format!(
                    "`T.{}` takes {takes} positional arguments, {given} are given",
                    function.name
                ),
            )
            .help(bound.usage())
            .into());
        }
        for (name, arg) in keywords {
            let at = function.params.iter().position(|p| {
                p.name == &*name && !matches!(p.arity, Arity::Rest | Arity::KeywordRest)
            });
            match at {
                Some(at) if bound.slots[at].is_some() => {
                    return Err(Diagnostic::error(
                        codes::WRONG_ARITY,
                        arg.span,
                        format!(
                            "the argument `{name}` of `T.{}` is given twice",
                            function.name
                        ),
                    )
                    .into());
                }
                Some(at) => bound.slots[at] = Some(arg),
                None if function
                    .params
                    .iter()
                    .any(|p| p.arity == Arity::KeywordRest) =>
                {
                    bound.keywords.push((name, arg));
                }
                None => return Err(bound.unknown_keyword(&name, arg.span)),
            }
        }
        Ok(bound)
    }

    /// The arguments that were given, each with what it must be.
    pub(crate) fn given_mut(&mut self) -> impl Iterator<Item = (Ty, &mut Arg)> {
        let rest = self.function.params.iter().find(|p| p.arity == Arity::Rest);
        let rest = rest.map_or(Ty::Any, |p| p.ty);
        let slots = self.slots.iter_mut().zip(self.function.params);
        let named = slots.filter_map(|(slot, param)| Some((param.ty, slot.as_mut()?)));
        named.chain(self.rest.iter_mut().map(move |arg| (rest, arg)))
    }

    /// Says what is wrong with the arguments.
    pub(crate) fn check(&mut self, rec: &Recorder) -> Result<()> {
        for (slot, param) in self.slots.iter_mut().zip(self.function.params) {
            match (&*slot, param.arity) {
                (None, Arity::Required) => {
                    return Err(rec
                        .error(
                            codes::WRONG_ARITY,
                            self.span,
                            format!(
                                "`T.{}` is called without its argument `{}`",
                                self.function.name, param.name
                            ),
                        )
                        .help(self.usage())
                        .into());
                }
                (
                    Some(Arg {
                        value: Value::None, ..
                    }),
                    Arity::Optional | Arity::KeywordOnly,
                ) => *slot = None,
                (Some(arg), _) => {
                    let checked = check_type(rec, self.function, param.name, param.ty, arg);
                    if let Err(error) = checked {
                        return Err(self.with_usage(error));
                    }
                }
                (None, _) => {}
            }
        }
        if let Some(param) = self.function.params.iter().find(|p| p.arity == Arity::Rest) {
            for arg in &self.rest {
                check_type(rec, self.function, param.name, param.ty, arg)?;
            }
        }
        Ok(())
    }

    /// The error with how the function is called, where it says nothing better.
    fn with_usage(&self, mut error: Error) -> Error {
        if error.help.is_empty() {
            error.help.push(self.usage());
        }
        error
    }

    fn unknown_keyword(&self, name: &str, span: Span) -> Error {
        let names = self.function.params.iter().map(|p| p.name);
        let mut d = Diagnostic::error(
            codes::UNKNOWN_KEYWORD,
            span,
            format!("`T.{}` has no parameter `{name}`", self.function.name),
        );
        d = match tilewright_ir::nearest::suggestion(name, names) {
            Some(help) => d.help(help),
            None => d.help(self.usage()),
        };
        d.into()
    }

    /// `T.copy(src, dst, *, disable_tma=None)`
    fn usage(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        let mut starred = false;
        for param in self.function.params {
            match param.arity {
                Arity::Required => parts.push(param.name.to_string()),
                Arity::Optional => parts.push(format!("{}=…", param.name)),
                Arity::Rest => {
                    parts.push(format!("*{}", param.name));
                    starred = true;
                }
                Arity::KeywordOnly => {
                    if !std::mem::replace(&mut starred, true) {
                        parts.push("*".to_string());
                    }
                    parts.push(format!("{}=…", param.name));
                }
                Arity::KeywordRest => parts.push(format!("**{}", param.name)),
            }
        }
        format!(
            "it is called as `T.{}({})`",
            self.function.name,
            parts.join(", ")
        )
    }

    /// The whole call.
    pub fn span(&self) -> Span {
        self.span
    }

    /// The function's name as the user writes it.
    pub fn name(&self) -> String {
        format!("T.{}", self.function.name)
    }

    fn arg(&self, name: &str) -> Option<&Arg> {
        let at = self.function.params.iter().position(|p| p.name == name);
        debug_assert!(
            at.is_some(),
            "T.{} has no parameter {name}",
            self.function.name
        );
        self.slots.get(at?)?.as_ref()
    }

    /// Whether the function has a parameter of this name.
    pub fn is_param(&self, name: &str) -> bool {
        self.function.params.iter().any(|p| p.name == name)
    }

    /// The place of an argument; of the call when it is left out.
    pub fn span_of(&self, name: &str) -> Span {
        self.arg(name).map_or(self.span, |a| a.span)
    }

    pub fn has(&self, name: &str) -> bool {
        self.arg(name).is_some()
    }

    pub fn value(&self, name: &str) -> Option<&Value> {
        self.arg(name).map(|a| &a.value)
    }

    /// A required argument; `None` the value when it is not required and left out.
    pub fn required(&self, name: &str) -> &Value {
        self.value(name).unwrap_or(&Value::None)
    }

    /// Positional arguments that a `*rest` parameter took.
    pub fn rest(&self) -> &[Arg] {
        &self.rest
    }

    /// Keywords that a `**rest` parameter took.
    pub fn keywords(&self) -> &[(Rc<str>, Arg)] {
        &self.keywords
    }

    /// A compile-time int.
    pub fn int(&self, rec: &Recorder, name: &str) -> Result<Option<i64>> {
        let Some(arg) = self.arg(name) else {
            return Ok(None);
        };
        let v = rec.to_int(&arg.value, arg.span, &format!("`{name}`"))?;
        match i64::try_from(v) {
            Ok(v) => Ok(Some(v)),
            Err(_) => {
                let message = format!("`{name}` is {v}, which is too large");
                Err(rec.error(codes::WRONG_VALUE, arg.span, message).into())
            }
        }
    }

    pub fn int_or(&self, rec: &Recorder, name: &str, default: i64) -> Result<i64> {
        Ok(self.int(rec, name)?.unwrap_or(default))
    }

    /// A compile-time bool.
    pub fn bool_or(&self, rec: &Recorder, name: &str, default: bool) -> Result<bool> {
        match self.arg(name) {
            Some(arg) => rec.truth(&arg.value, arg.span),
            None => Ok(default),
        }
    }

    pub fn str(&self, name: &str) -> Option<&str> {
        self.value(name).and_then(Value::as_str).map(|s| &**s)
    }

    pub fn dtype(&self, rec: &Recorder, name: &str) -> Result<Option<DType>> {
        match self.arg(name) {
            Some(arg) => Ok(Some(rec.to_dtype(&arg.value, arg.span)?)),
            None => Ok(None),
        }
    }

    /// A run-time scalar.
    pub fn expr(&self, rec: &Recorder, name: &str) -> Result<Option<Expr>> {
        match self.arg(name) {
            Some(arg) => Ok(Some(rec.to_expr(&arg.value, arg.span)?)),
            None => Ok(None),
        }
    }

    /// A required tile operand.
    pub fn tile(&self, rec: &Recorder, name: &str) -> Result<Tile> {
        rec.to_tile(self.required(name), self.span_of(name))
    }

    /// A required whole buffer.
    pub fn buffer(&self, rec: &Recorder, name: &str) -> Result<Buffer> {
        match self.required(name) {
            Value::Buffer(b) => Ok(*b),
            Value::Element(e) if e.indices.is_empty() => Ok(e.buffer),
            other => Err(rec.wrong_type("a buffer", other, self.span_of(name))),
        }
    }

    pub fn shape(&self, rec: &mut Recorder, name: &str) -> Result<Vec<Expr>> {
        rec.to_shape(self.required(name), self.span_of(name))
    }
}

fn check_type(rec: &Recorder, function: &LangFn, param: &str, ty: Ty, arg: &Arg) -> Result<()> {
    let v = &arg.value;
    if ty != Ty::Any
        && let Value::Opaque(o) = v
        && ty != Ty::DType
    {
        return Err(rec.opaque_error(o, arg.span));
    }
    let constant = |e: &Expr| rec.const_int(e).is_some();
    let (fits, wanted) = match ty {
        Ty::Any => return Ok(()),
        Ty::Int => (
            v.as_int().is_some() || matches!(v, Value::Expr(e) if constant(e)),
            "a compile-time int",
        ),
        Ty::Bool => (
            v.as_int().is_some() || matches!(v, Value::Expr(e) if constant(e)),
            "a compile-time bool",
        ),
        Ty::Number => (
            v.as_float().is_some() || matches!(v, Value::Expr(_)),
            "a number",
        ),
        Ty::Str => (matches!(v, Value::Str(_)), "a string"),
        Ty::DType => (
            matches!(
                v,
                Value::DType(_) | Value::Str(_) | Value::Builtin(_) | Value::Opaque(_)
            ) || matches!(v, Value::Lang(f) if f.name == "ptr"),
            "a dtype",
        ),
        Ty::Shape => (
            matches!(v, Value::Tuple(_) | Value::List(_)) || is_scalar(rec, v),
            "a shape",
        ),
        Ty::Scalar => (is_scalar(rec, v), "a number"),
        Ty::Buffer => (
            matches!(v, Value::Buffer(_)) || matches!(v, Value::Element(e) if e.indices.is_empty()),
            "a buffer",
        ),
        Ty::Tile => (
            matches!(
                v,
                Value::Buffer(_) | Value::Region(_) | Value::Element(_) | Value::Expr(_)
            ),
            "a buffer, a region or an element",
        ),
        Ty::Callable => (
            match v {
                Value::Host(object) => object.callable(),
                _ => matches!(
                    v,
                    Value::Function(_) | Value::Builtin(_) | Value::Lang(_) | Value::Staged(_)
                ),
            },
            "a function",
        ),
        Ty::Dict => (matches!(v, Value::Dict(_)), "a dict"),
        Ty::Sequence => (
            matches!(v, Value::Tuple(_) | Value::List(_)),
            "a list or tuple",
        ),
    };
    if fits {
        return Ok(());
    }
    let found = match v {
        v if v.is_runtime() => "a value known at run time only",
        v => v.type_name(),
    };
    Err(rec
        .error(
            codes::WRONG_TYPE,
            arg.span,
            format!(
                "`{param}` of `T.{}` must be {wanted}, this is {found}",
                function.name
            ),
        )
        .into())
}

fn is_scalar(rec: &Recorder, v: &Value) -> bool {
    match v {
        Value::Buffer(b) => rec.buffer(*b).scope == tilewright_ir::Scope::Var,
        Value::Loop(spec) => matches!(&**spec, LoopSpec::Bound(i) if i.len() == 1),
        v => v.as_float().is_some() || v.is_runtime(),
    }
}
