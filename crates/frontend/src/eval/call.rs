//! Calls: argument evaluation, parameter binding, functions, macros.

use std::rc::Rc;

use tilewright_ir::Span;

use crate::codes;
use crate::eval::Stage;
use crate::eval::builtins::PyArgs;
use crate::eval::scope::Scope;
use crate::eval::stmt::Flow;
use crate::lang::{Arg, Body, CallArgs, LangFn};
use crate::syntax::Symbol;
use crate::syntax::ast::{Call, Expr, ExprKind, FuncBody, FuncDef, ParamKind};
use crate::value::{Closure, Keyword, Role, StagedFn, Value};
use crate::{Error, Result};

/// Evaluated arguments of a call, each with its place.
#[derive(Debug)]
pub struct Args {
    pub positional: Vec<Arg>,
    pub keywords: Vec<Keyword>,
    pub span: Span,
}

impl Args {
    /// Positional values that share one place.
    pub fn of(values: Vec<Value>, span: Span) -> Args {
        Args {
            positional: values
                .into_iter()
                .map(|value| Arg { value, span })
                .collect(),
            keywords: Vec::new(),
            span,
        }
    }

    pub(super) fn into_py(self) -> PyArgs {
        PyArgs {
            args: self.positional.into_iter().map(|a| a.value).collect(),
            keywords: self.keywords,
            span: self.span,
        }
    }
}

impl Stage {
    pub(crate) fn eval_call(&mut self, call: &Call, span: Span) -> Result<Value> {
        let func = self.eval(&call.func)?;
        let args = self.eval_args(&call.args, &call.keywords, span)?;
        self.call(&func, args)
    }

    fn eval_args(
        &mut self,
        args: &[Expr],
        keywords: &[crate::syntax::ast::Keyword],
        span: Span,
    ) -> Result<Args> {
        let mut positional = Vec::with_capacity(args.len());
        for arg in args {
            match &arg.kind {
                ExprKind::Starred(inner) => {
                    let value = self.eval(inner)?;
                    for value in self.iterate(&value, inner.span)? {
                        let span = arg.span;
                        positional.push(Arg { value, span });
                    }
                }
                _ => positional.push(Arg {
                    value: self.eval(arg)?,
                    span: arg.span,
                }),
            }
        }
        let mut named = Vec::with_capacity(keywords.len());
        for keyword in keywords {
            let value = self.eval(&keyword.value)?;
            match keyword.name {
                Some(name) => named.push(Keyword {
                    name: name.sym,
                    value,
                    span: keyword.span,
                }),
                None => self.spread(value, keyword.span, &mut named)?,
            }
        }
        for (i, keyword) in named.iter().enumerate() {
            if named[..i].iter().any(|k| k.name == keyword.name) {
                let text = self.symbols.text(keyword.name);
                let message = format!("the argument `{text}` is given twice");
                return Err(self.error(codes::WRONG_ARITY, keyword.span, message).into());
            }
        }
        Ok(Args {
            positional,
            keywords: named,
            span,
        })
    }

    /// `**dict` in a call.
    fn spread(&mut self, value: Value, span: Span, out: &mut Vec<Keyword>) -> Result<()> {
        let value = self.own_container(value, span)?;
        let Value::Dict(items) = &value else {
            return Err(self.rec.wrong_type("a dict after `**`", &value, span));
        };
        for entry in items.borrow().values() {
            let Value::Str(name) = &entry.key else {
                return Err(self.rec.wrong_type(
                    "a string as the name of an argument",
                    &entry.key,
                    span,
                ));
            };
            out.push(Keyword {
                name: self.symbols.intern(name),
                value: entry.value.clone(),
                span,
            });
        }
        Ok(())
    }

    pub(crate) fn call(&mut self, func: &Value, args: Args) -> Result<Value> {
        let span = args.span;
        match func {
            Value::Function(closure) => self.call_function(closure, args),
            Value::Staged(staged) => self.call_staged(staged, args),
            Value::Builtin(builtin) => {
                self.rec.charge(1, span)?;
                if let Some(object) = self.host_builtin(*builtin, &args)? {
                    return self.host_call(&object, args);
                }
                (builtin.0.call)(self, &args.into_py())
            }
            Value::Method(method) => self.call_method(method, &args.into_py()),
            Value::Lang(function) => {
                let bound = self.language_args(function, args)?;
                let outer = std::mem::replace(&mut self.rec.span, span);
                let result = match function.body {
                    Body::Records(body) => body(&mut self.rec, &bound),
                    Body::Calls(body) => body(self, &bound),
                };
                self.rec.span = outer;
                result
            }
            Value::DType(dtype) => self.call_dtype(*dtype, args),
            Value::Decorator(decorator) => self.call_decorator(decorator, args),
            Value::Object(object) => {
                let object = object.clone();
                let values: Vec<Value> = args.positional.into_iter().map(|a| a.value).collect();
                match object.call(&mut self.rec, &values, span) {
                    Some(result) => result,
                    None => Err(self.not_callable(func, span)),
                }
            }
            Value::Opaque(o) => match self.known_call(&o.name, args)? {
                Some(value) => Ok(value),
                None => Err(self.rec.opaque_error(o, span)),
            },
            Value::Host(object) => self.host_call(object, args),
            Value::Class(class) => Err(self
                .error(
                    codes::UNSUPPORTED_SYNTAX,
                    span,
                    format!(
                        "objects of the class `{}` cannot be made at compile time",
                        class.name
                    ),
                )
                .help("use a function or a dict")
                .into()),
            _ => Err(self.not_callable(func, span)),
        }
    }

    /// Calls a value with positional arguments: the lambda of a layout, say.
    pub fn call_value(&mut self, func: &Value, args: Vec<Value>, span: Span) -> Result<Value> {
        self.call(func, Args::of(args, span))
    }

    /// The arguments of a function of the language, with values of the host as what it takes.
    fn language_args(&mut self, function: &'static LangFn, args: Args) -> Result<CallArgs> {
        let keywords = args.keywords.into_iter().map(|keyword| {
            let name = self.symbols.text(keyword.name).clone();
            let (value, span) = (keyword.value, keyword.span);
            (name, Arg { value, span })
        });
        let mut bound = CallArgs::bind(function, args.positional, keywords.collect(), args.span)?;
        for (ty, arg) in bound.given_mut() {
            self.host_argument(ty, arg)?;
        }
        bound.check(&self.rec)?;
        Ok(bound)
    }

    fn not_callable(&self, func: &Value, span: Span) -> Error {
        let message = format!("{} cannot be called", func.type_name());
        self.error(codes::NOT_CALLABLE, span, message).into()
    }

    /// `T.float32(x)`: a constant or a cast; without an argument, the dtype itself.
    fn call_dtype(&mut self, dtype: tilewright_ir::DType, args: Args) -> Result<Value> {
        match args.positional.as_slice() {
            [] if args.keywords.is_empty() => Ok(Value::DType(dtype)),
            [arg] if args.keywords.is_empty() => Ok(Value::Expr(
                self.rec.to_expr_as(&arg.value, dtype, args.span)?,
            )),
            lanes if args.keywords.is_empty() && lanes.len() == usize::from(dtype.lanes) => self
                .rec
                .make_vector(dtype, lanes, args.span)
                .map(Value::Expr),
            _ => Err(self
                .error(
                    codes::WRONG_ARITY,
                    args.span,
                    match dtype.lanes {
                        1 => format!("`{dtype}` converts one value"),
                        n => format!("`{dtype}` takes one value or {n}"),
                    },
                )
                .into()),
        }
    }

    pub(crate) fn closure(&mut self, def: &Rc<FuncDef>) -> Result<Rc<Closure>> {
        let mut defaults = Vec::with_capacity(def.params.len());
        for param in &def.params {
            defaults.push(match &param.default {
                Some(default) => Some(self.eval(default)?),
                None => None,
            });
        }
        Ok(Rc::new(Closure {
            def: def.clone(),
            scope: self.capture(),
            defaults,
        }))
    }

    /// An ordinary function: Python inside, although it may record statements.
    pub(crate) fn call_function(&mut self, closure: &Rc<Closure>, args: Args) -> Result<Value> {
        let span = args.span;
        let bound = self.bind_params(closure, args)?;
        let scope = Scope::new(Some(closure.scope.clone()));
        self.in_function(scope, false, span, |stage| {
            for (name, value) in bound {
                stage.bind(name, value, span);
            }
            stage.run_body(&closure.def)
        })
    }

    fn call_staged(&mut self, staged: &Rc<StagedFn>, args: Args) -> Result<Value> {
        match staged.role {
            Role::Macro => self.call_macro(&staged.closure, args),
            // A factory that another factory calls is a function that returns a kernel.
            Role::Jit if !self.rec.building => self.call_factory(&staged.closure, args),
            Role::Jit | Role::PrimFunc => {
                let name = self.symbols.text(staged.closure.def.name.sym);
                Err(self
                    .error(
                        codes::NOT_CALLABLE,
                        args.span,
                        format!("the kernel `{name}` cannot be called from Python code here"),
                    )
                    .help("decorate shared code `@T.macro` and call that")
                    .into())
            }
        }
    }

    /// A macro: traced in place, numbers by value, `T.Ref` parameters by reference.
    fn call_macro(&mut self, closure: &Rc<Closure>, args: Args) -> Result<Value> {
        let span = args.span;
        let name = self.symbols.text(closure.def.name.sym).clone();
        if !self.rec.building {
            return Err(self
                .rec
                .outside_kernel(&format!("the macro `{name}`"), span));
        }
        let bound = self.bind_params(closure, args)?;
        let mut values = Vec::with_capacity(bound.len());
        for (symbol, value) in bound {
            let by_ref = closure.def.params.iter().any(|p| {
                p.name.sym == symbol && p.annotation.as_ref().is_some_and(|a| self.is_ref(a))
            });
            let value = if by_ref {
                self.reference(value, symbol, span)?
            } else if self.rec.in_kernel() && value.is_runtime() {
                let text = self.symbols.text(symbol).clone();
                self.snapshot(value, &text, span)?
            } else {
                value
            };
            values.push((symbol, value));
        }
        let scope = Scope::new(Some(closure.scope.clone()));
        self.in_function(scope, true, span, |stage| {
            for (name, value) in values {
                stage.bind(name, value, span);
            }
            stage.run_body(&closure.def)
        })
    }

    /// `T.Ref`, or its old name `T.Var`.
    fn is_ref(&self, annotation: &Expr) -> bool {
        let name = match &annotation.kind {
            ExprKind::Attribute(_, name) => name.sym,
            ExprKind::Name(name) => *name,
            ExprKind::Subscript(inner, _) => return self.is_ref(inner),
            ExprKind::Call(call) => return self.is_ref(&call.func),
            _ => return false,
        };
        matches!(&**self.symbols.text(name), "Ref" | "Var")
    }

    fn reference(&mut self, value: Value, name: Symbol, span: Span) -> Result<Value> {
        match value {
            Value::Element(e) if e.indices.is_empty() => Ok(Value::Buffer(e.buffer)),
            Value::Element(e) => {
                // The indices are evaluated once, at the call.
                let mut element = (*e).clone();
                if self.rec.in_kernel() {
                    for index in &mut element.indices {
                        *index = self.snapshot_expr(index.clone(), "index", span)?;
                    }
                }
                Ok(Value::Ref(Rc::new(element)))
            }
            v @ (Value::Region(_) | Value::Buffer(_)) => Ok(v),
            other => {
                let text = self.symbols.text(name);
                Err(self
                    .error(
                        codes::BAD_MACRO,
                        span,
                        format!(
                            "`{text}` is passed by reference and needs a variable or an element, \
                             this is {}",
                            other.type_name()
                        ),
                    )
                    .help("pass a `T.alloc_var` or an element such as `A[i]`")
                    .into())
            }
        }
    }

    /// Runs a function body in its own scope.
    pub(crate) fn in_function<T>(
        &mut self,
        scope: Rc<Scope>,
        traced: bool,
        span: Span,
        f: impl FnOnce(&mut Stage) -> Result<T>,
    ) -> Result<T> {
        let outer_scope = std::mem::replace(&mut self.scope, scope);
        let outer_traced = std::mem::replace(&mut self.traced, traced);
        let outer_loops = std::mem::take(&mut self.loops);
        let outer_base = std::mem::replace(&mut self.return_base, self.rec.blocks.len());
        let result = self.nested_call(span, |stage| stage.deeper(span, f));
        self.scope = outer_scope;
        self.traced = outer_traced;
        self.loops = outer_loops;
        self.return_base = outer_base;
        result
    }

    pub(crate) fn run_body(&mut self, def: &FuncDef) -> Result<Value> {
        match &def.body {
            FuncBody::Lambda(body) => self.eval(body),
            FuncBody::Def(body) => match self.exec_suite(body)? {
                Flow::Return(value) => Ok(value),
                Flow::Next | Flow::Break | Flow::Continue | Flow::Jumped => Ok(Value::None),
            },
        }
    }

    /// Binds arguments to parameters as Python does.
    pub(crate) fn bind_params(
        &mut self,
        closure: &Closure,
        args: Args,
    ) -> Result<Vec<(Symbol, Value)>> {
        let def = &closure.def;
        let span = args.span;
        let mut bound: Vec<Option<Value>> = vec![None; def.params.len()];
        let mut positional = args.positional.into_iter();
        let mut keywords = args.keywords;
        for (i, param) in def.params.iter().enumerate() {
            match param.kind {
                ParamKind::PositionalOnly | ParamKind::Normal => {
                    if let Some(arg) = positional.next() {
                        bound[i] = Some(arg.value);
                    }
                }
                ParamKind::Rest => {
                    let rest = positional.by_ref().map(|a| a.value).collect();
                    bound[i] = Some(Value::tuple(rest));
                }
                ParamKind::KeywordOnly | ParamKind::KeywordRest => {}
            }
        }
        let name = self.symbols.text(def.name.sym).clone();
        if let Some(extra) = positional.next() {
            let takes = def
                .params
                .iter()
                .filter(|p| matches!(p.kind, ParamKind::PositionalOnly | ParamKind::Normal));
            let message = format!(
                "`{name}` takes {} positional arguments, {} more are given",
                takes.count(),
                positional.len() + 1
            );
            return Err(self
                .error(codes::WRONG_ARITY, extra.span, message)
                .also(def.head, "defined here")
                .into());
        }
        let rest_at = def
            .params
            .iter()
            .position(|p| p.kind == ParamKind::KeywordRest);
        let mut extra = crate::value::Dict::default();
        for keyword in keywords.drain(..) {
            let at = def.params.iter().position(|p| {
                p.name.sym == keyword.name
                    && matches!(p.kind, ParamKind::Normal | ParamKind::KeywordOnly)
            });
            match at {
                Some(at) if bound[at].is_some() => {
                    let text = self.symbols.text(keyword.name);
                    let message = format!("the argument `{text}` of `{name}` is given twice");
                    return Err(self.error(codes::WRONG_ARITY, keyword.span, message).into());
                }
                Some(at) => bound[at] = Some(keyword.value),
                None if rest_at.is_some() => {
                    let key = Value::Str(self.symbols.text(keyword.name).clone());
                    let hash = self.hash(&key, keyword.span)?;
                    let value = keyword.value;
                    extra.insert(hash, crate::value::Entry { key, value });
                }
                None => return Err(self.unknown_parameter(def, keyword.name, keyword.span)),
            }
        }
        if let Some(at) = rest_at {
            bound[at] = Some(Value::Dict(Rc::new(extra.into())));
        }
        let mut out = Vec::with_capacity(bound.len());
        for ((param, value), default) in def.params.iter().zip(bound).zip(&closure.defaults) {
            match value.or_else(|| default.clone()) {
                Some(value) => out.push((param.name.sym, value)),
                None => {
                    let text = self.symbols.text(param.name.sym);
                    let message = format!("`{name}` is called without its argument `{text}`");
                    return Err(self
                        .error(codes::WRONG_ARITY, span, message)
                        .also(def.head, "defined here")
                        .into());
                }
            }
        }
        Ok(out)
    }

    fn unknown_parameter(&self, def: &FuncDef, keyword: Symbol, span: Span) -> Error {
        let text = self.symbols.text(keyword);
        let name = self.symbols.text(def.name.sym);
        let params = def.params.iter().map(|p| &**self.symbols.text(p.name.sym));
        let mut d = self
            .error(
                codes::UNKNOWN_KEYWORD,
                span,
                format!("`{name}` has no parameter `{text}`"),
            )
            .also(def.head, "defined here");
        if let Some(help) = tilewright_ir::nearest::suggestion(text, params) {
            d = d.help(help);
        }
        d.into()
    }
}
