//! The choice of a kernel, its parameters, and the run that records it.

use std::collections::BTreeMap;
use std::rc::Rc;

use tilewright_ir::{AttrValue, Diagnostic, F64, Func, Param, Span};

use crate::codes;
use crate::eval::Stage;
use crate::eval::call::Args;
use crate::eval::scope::Scope;
use crate::eval::settings::setting_error;
use crate::eval::signature::split_names;
use crate::lang::Arg;
use crate::syntax::ast::{Expr, ExprKind, FuncDef, ParamKind, Stmt, StmtKind};
use crate::value::{Closure, Decorator, JitOptions, OpaqueReason, Role, StagedFn, Value};
use crate::{Error, Result};

/// How a function gives a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Style {
    /// `@T.prim_func`: the function is the kernel.
    PrimFunc,
    /// A function that returns one.
    Factory,
    /// `@tilelang.jit` over the kernel's own body.
    Eager,
}

impl Stage {
    /// Finds the kernel, gives it its parameters and records it.
    pub(crate) fn run_entry(&mut self, entry: Option<&str>) -> Result<Func> {
        let def = self.choose_entry(entry)?;
        let name = self.symbols.text(def.name.sym).to_string();
        self.func.name = name;
        self.func.span = def.head;
        let style = self.style(&def);
        self.check_settings(&def, style)?;
        // Module-level code around the function may give it another decoration or value; the
        // definition itself is what counts here.
        let outer = std::mem::replace(&mut self.scope, self.globals.clone());
        let closure = self.closure(&def);
        self.scope = outer;
        let closure = closure?;
        let options = self.entry_options(&def)?;
        match style {
            Style::PrimFunc => self.trace_prim_func(&closure)?,
            Style::Factory => self.run_factory(&closure, &options)?,
            Style::Eager => self.trace_eager(&closure, &options)?,
        }
        if let Some(jit) = &options.jit {
            if let Some((value, span)) = &jit.out_idx {
                if style == Style::Eager && !matches!(value, Value::None) {
                    return Err(self
                        .error(
                            codes::OUT_IDX,
                            *span,
                            "`out_idx` has no meaning on an eager kernel",
                        )
                        .help("return the `T.empty` outputs instead")
                        .into());
                }
                self.apply_out_idx(value, *span)?;
            }
            self.record_jit_options(jit);
        }
        if self.func.kernels.is_empty() {
            return Err(self
                .error(
                    codes::NOT_A_KERNEL,
                    def.head,
                    "the function launches no kernel",
                )
                .help("put the body into `with T.Kernel(...)`")
                .into());
        }
        self.check_unused()?;
        self.name_the_nameless();
        Ok(std::mem::replace(&mut self.func, Func::new("")))
    }

    /// Values that the settings give to run-time sizes.
    pub(crate) fn symbol_values(&mut self) -> BTreeMap<String, i64> {
        let names: Vec<String> = self.signature.symbols.keys().cloned().collect();
        let mut out = BTreeMap::new();
        for name in names {
            if let Some(super::settings::SettingValue::Int(v)) = self.settings.take(&name)
                && let Ok(v) = i64::try_from(v)
            {
                out.insert(name, v);
            }
        }
        out
    }

    fn choose_entry(&self, entry: Option<&str>) -> Result<Rc<FuncDef>> {
        let defs: Vec<Rc<FuncDef>> = self
            .module
            .body
            .iter()
            .filter_map(|s| match &s.kind {
                StmtKind::FunctionDef(def) => Some(def.clone()),
                _ => None,
            })
            .collect();
        if let Some(wanted) = entry {
            // The last definition of a name is the one that Python would see.
            if let Some(def) = defs
                .iter()
                .rev()
                .find(|d| &**self.symbols.text(d.name.sym) == wanted)
            {
                return Ok(def.clone());
            }
            let kernels: Vec<&str> = defs
                .iter()
                .filter(|d| self.is_kernel(d))
                .map(|d| &**self.symbols.text(d.name.sym))
                .collect();
            let mut d = self.error(
                codes::NO_KERNEL,
                Span::NONE,
                format!("the file has no function `{wanted}`"),
            );
            if let Some(help) = tilewright_ir::nearest::suggestion(wanted, kernels.iter().copied())
            {
                d = d.help(help);
            } else if !kernels.is_empty() {
                d = d.help(format!("its kernels are: {}", kernels.join(", ")));
            }
            return Err(d.into());
        }
        match defs.iter().find(|d| self.is_kernel(d)) {
            Some(def) => Ok(def.clone()),
            None => Err(self
                .error(codes::NO_KERNEL, Span::NONE, "the file has no kernel")
                .help(
                    "write a function decorated `@tilelang.jit` or `@T.prim_func`, or one that \
                     returns an inner `@T.prim_func`",
                )
                .into()),
        }
    }

    fn is_kernel(&self, def: &FuncDef) -> bool {
        let decorated = def.decorators.iter().any(|d| {
            matches!(
                self.decorator_name(d),
                Some("jit" | "lazy_jit" | "prim_func" | "autotune")
            )
        });
        decorated || self.has_inner_kernel(def)
    }

    /// The last part of a decorator's name: `jit` of `@tilelang.jit(out_idx=[-1])`.
    fn decorator_name(&self, decorator: &Expr) -> Option<&str> {
        match &decorator.kind {
            ExprKind::Call(call) => self.decorator_name(&call.func),
            ExprKind::Attribute(_, name) => Some(self.symbols.text(name.sym)),
            ExprKind::Name(name) => Some(self.symbols.text(*name)),
            _ => None,
        }
    }

    fn has_inner_kernel(&self, def: &FuncDef) -> bool {
        let mut found = false;
        walk(def.statements(), &mut |stmt| {
            if let StmtKind::FunctionDef(inner) = &stmt.kind {
                let decorators = &inner.decorators;
                found |= decorators
                    .iter()
                    .any(|d| self.decorator_name(d) == Some("prim_func"));
            }
        });
        found
    }

    fn style(&self, def: &FuncDef) -> Style {
        let has = |name: &str| {
            def.decorators
                .iter()
                .any(|d| self.decorator_name(d) == Some(name))
        };
        if has("prim_func") {
            return Style::PrimFunc;
        }
        if self.has_inner_kernel(def) {
            return Style::Factory;
        }
        let mut eager = false;
        let params: Vec<_> = def.params.iter().map(|p| p.name.sym).collect();
        walk(def.statements(), &mut |stmt| {
            eager |= match &stmt.kind {
                StmtKind::With { items, .. } => items.iter().any(
                    |i| matches!(self.decorator_name(&i.context), Some(n) if n.ends_with("Kernel")),
                ),
                StmtKind::AnnAssign {
                    target,
                    value: None,
                    ..
                } => matches!(target.kind, ExprKind::Name(n) if params.contains(&n)),
                StmtKind::Assign { value, .. } => {
                    matches!(self.decorator_name(value), Some("const" | "empty"))
                        && matches!(value.kind, ExprKind::Call(_))
                }
                _ => false,
            };
        });
        if eager { Style::Eager } else { Style::Factory }
    }

    /// Says at once which settings name nothing, before a missing one is complained about.
    fn check_settings(&self, def: &FuncDef, style: Style) -> Result<()> {
        let mut known: Vec<String> = Vec::new();
        if style != Style::PrimFunc {
            known.extend(
                def.params
                    .iter()
                    .map(|p| self.symbols.text(p.name.sym).to_string()),
            );
        }
        let mut loose = def.params.iter().any(|p| p.kind == ParamKind::KeywordRest);
        for name in self.named_dims() {
            match name {
                Some(name) => known.push(name),
                None => loose = true,
            }
        }
        let unused = self.settings.unused();
        let Some(bad) = unused.iter().find(|n| !known.iter().any(|k| k == *n)) else {
            return Ok(());
        };
        if loose {
            return Ok(());
        }
        Err(self.unknown_setting(bad, &known, def.head))
    }

    fn unknown_setting(&self, name: &str, known: &[String], span: Span) -> Error {
        let mut d = setting_error(
            codes::UNKNOWN_SETTING,
            span,
            format!("`--set {name}` names no parameter of this kernel"),
        );
        if let Some(help) =
            tilewright_ir::nearest::suggestion(name, known.iter().map(String::as_str))
        {
            d = d.help(help);
        }
        d = match known {
            [] => d.note("the kernel has no parameters"),
            _ => d.note(format!("its parameters are: {}", known.join(", "))),
        };
        d.into()
    }

    /// Names in `T.const("…")` and `T.dynamic("…")` anywhere in the file; `None` for one that
    /// is not a plain string.
    fn named_dims(&self) -> Vec<Option<String>> {
        let mut out = Vec::new();
        walk(&self.module.body, &mut |stmt| {
            if let StmtKind::Assign { value, .. } = &stmt.kind
                && let ExprKind::Call(call) = &value.kind
                && matches!(
                    self.decorator_name(&call.func),
                    Some("const" | "dynamic" | "symbolic")
                )
            {
                match call.args.first().map(|a| &a.kind) {
                    Some(ExprKind::Str(names)) => {
                        out.extend(split_names(names).map(|n| Some(n.to_string())));
                    }
                    _ => out.push(None),
                }
            }
        });
        out
    }

    fn check_unused(&mut self) -> Result<()> {
        let symbols: Vec<String> = self.signature.symbols.keys().cloned().collect();
        let unused: Vec<String> = self
            .settings
            .unused()
            .into_iter()
            .filter(|n| !symbols.iter().any(|s| s == n))
            .map(str::to_string)
            .collect();
        match unused.first() {
            None => Ok(()),
            Some(name) => {
                let known: Vec<String> = self
                    .signature
                    .consts
                    .iter()
                    .map(|c| c.name.clone())
                    .collect();
                Err(self.unknown_setting(name, &known, self.func.span))
            }
        }
    }

    fn entry_options(&mut self, def: &FuncDef) -> Result<EntryOptions> {
        let mut options = EntryOptions::default();
        for decorator in &def.decorators {
            match self.decorator_name(decorator) {
                Some("jit" | "lazy_jit") => {
                    if let Value::Decorator(d) = self.eval(decorator)?
                        && let Decorator::Jit(jit) = &*d
                    {
                        options.jit = Some(jit.clone());
                    }
                }
                // Configurations that need a running Python matter only when a parameter has
                // no other value.
                Some("autotune") => match self.eval(decorator) {
                    Ok(Value::Decorator(d)) => {
                        if let Decorator::Autotune(configs) = &*d {
                            self.record_configs(configs);
                            options.configs = configs.clone();
                        }
                    }
                    Ok(_) => {}
                    Err(e) => options.config_error = Some(e),
                },
                _ => {}
            }
        }
        Ok(options)
    }

    fn record_configs(&mut self, configs: &[Value]) {
        for config in configs.iter().take(MAX_CONFIGS) {
            let Value::Dict(items) = config else {
                continue;
            };
            let mut row = BTreeMap::new();
            for entry in items.borrow().values() {
                if let (Value::Str(name), Some(value)) = (&entry.key, attr_value(&entry.value, 0)) {
                    row.insert(name.to_string(), value);
                }
            }
            self.func.attrs.autotune.push(row);
        }
    }

    fn record_jit_options(&mut self, jit: &JitOptions) {
        if let Some(Value::Dict(items)) = &jit.pass_configs {
            for entry in items.borrow().values() {
                let name = match &entry.key {
                    Value::Str(s) => s.to_string(),
                    Value::Opaque(o) => o.name.rsplit('.').next().unwrap_or_default().to_string(),
                    _ => continue,
                };
                if let Some(value) = attr_value(&entry.value, 0) {
                    self.func.attrs.pass_configs.insert(name, value);
                }
            }
        }
        let flags = jit.compile_flags.as_ref().map(|v| match v {
            Value::Str(s) => vec![s.to_string()],
            v => v
                .sequence()
                .unwrap_or_default()
                .iter()
                .filter_map(|v| v.as_str().map(|s| s.to_string()))
                .collect(),
        });
        self.func
            .attrs
            .compile_flags
            .extend(flags.unwrap_or_default());
    }

    /// One value a parameter: setting, default, first autotune configuration.
    fn entry_args(
        &mut self,
        closure: &Closure,
        options: &EntryOptions,
        tensors: &[crate::syntax::Symbol],
    ) -> Result<Vec<(crate::syntax::Symbol, Option<Value>)>> {
        let def = closure.def.clone();
        let mut out = Vec::new();
        let mut missing: Vec<String> = Vec::new();
        for (param, default) in def.params.iter().zip(&closure.defaults) {
            let sym = param.name.sym;
            let name = self.symbols.text(sym).clone();
            match param.kind {
                ParamKind::Rest => {
                    out.push((sym, Some(Value::tuple(Vec::new()))));
                    continue;
                }
                ParamKind::KeywordRest => {
                    out.push((sym, Some(Value::Dict(Rc::default()))));
                    continue;
                }
                ParamKind::PositionalOnly => {
                    return Err(self
                        .error(
                            codes::PARAM_ANNOTATION,
                            param.name.span,
                            "a kernel cannot have positional-only parameters",
                        )
                        .into());
                }
                ParamKind::Normal | ParamKind::KeywordOnly => {}
            }
            if tensors.contains(&sym) {
                out.push((sym, None));
                continue;
            }
            let set = self.setting_for(
                &name,
                default.as_ref(),
                param.annotation.as_ref(),
                param.name.span,
            )?;
            let value = set
                .or_else(|| default.clone())
                .or_else(|| first_config(&options.configs, &name));
            if value.is_none() {
                missing.push(name.to_string());
            }
            out.push((sym, value));
        }
        if missing.is_empty() {
            return Ok(out);
        }
        let names: Vec<String> = def
            .params
            .iter()
            .map(|p| self.symbols.text(p.name.sym).to_string())
            .collect();
        let list: Vec<String> = missing.iter().map(|m| format!("`{m}`")).collect();
        let sets: Vec<String> = missing.iter().map(|m| format!("--set {m}=…")).collect();
        let mut d = self
            .error(
                codes::MISSING_SETTING,
                def.head,
                format!(
                    "{} {} no value",
                    list.join(", "),
                    if missing.len() == 1 { "has" } else { "have" }
                ),
            )
            .note(format!("the parameters are: {}", names.join(", ")))
            .help(format!("pass {}", sets.join(" ")));
        if let Some(e) = &options.config_error {
            d = d.note(format!(
                "the autotune configurations gave none: {}",
                e.message
            ));
        }
        Err(d.into())
    }

    fn run_factory(&mut self, closure: &Rc<Closure>, options: &EntryOptions) -> Result<()> {
        let head = closure.def.head;
        let args = self.entry_args(closure, options, &[])?;
        let mut call = Args {
            positional: Vec::new(),
            keywords: Vec::new(),
            span: head,
        };
        for (param, (name, value)) in closure.def.params.iter().zip(args) {
            let Some(value) = value else { continue };
            match param.kind {
                ParamKind::Rest | ParamKind::KeywordRest => {}
                ParamKind::Normal | ParamKind::PositionalOnly => {
                    call.positional.push(Arg { value, span: head });
                }
                ParamKind::KeywordOnly => call.keywords.push(crate::value::Keyword {
                    name,
                    value,
                    span: head,
                }),
            }
        }
        let result = self.call_function(closure, call)?;
        match result {
            Value::Staged(f) if f.role == Role::PrimFunc => self.trace_prim_func(&f.closure),
            Value::Opaque(o) => Err(self.opaque_error(&o, head)),
            other => Err(self
                .error(
                    codes::NOT_A_KERNEL,
                    head,
                    format!("the factory returned {}, not a kernel", other.type_name()),
                )
                .help("return the inner function decorated `@T.prim_func`")
                .into()),
        }
    }

    /// Records a `@T.prim_func`.
    fn trace_prim_func(&mut self, closure: &Rc<Closure>) -> Result<()> {
        let def = closure.def.clone();
        let scope = Scope::new(Some(closure.scope.clone()));
        self.building = true;
        self.in_function(scope, true, def.head, |stage| {
            for (position, param) in def.params.iter().enumerate() {
                stage.prim_func_param(position, param)?;
            }
            stage.finish_params();
            match stage.run_body(&def)? {
                Value::None => Ok(()),
                other => Err(stage
                    .error(
                        codes::OUTPUTS,
                        def.head,
                        format!("a `@T.prim_func` returned {}", other.type_name()),
                    )
                    .help("write its results into tensor parameters")
                    .into()),
            }
        })
    }

    fn prim_func_param(
        &mut self,
        position: usize,
        param: &crate::syntax::ast::Param,
    ) -> Result<()> {
        let span = param.name.span;
        if param.kind != ParamKind::Normal {
            return Err(self
                .error(
                    codes::PARAM_ANNOTATION,
                    span,
                    "a kernel takes plain parameters only",
                )
                .into());
        }
        let Some(annotation) = &param.annotation else {
            let name = self.symbols.text(param.name.sym);
            return Err(self
                .error(
                    codes::PARAM_ANNOTATION,
                    span,
                    format!("the parameter `{name}` has no annotation"),
                )
                .help(format!("write `{name}: T.Tensor((M, N), T.float16)`"))
                .into());
        };
        let value = self.eval(annotation)?;
        self.declare_param(param.name.sym, position, &value, span, annotation.span)
    }

    /// Records an eager kernel: its own body states the shapes.
    fn trace_eager(&mut self, closure: &Rc<Closure>, options: &EntryOptions) -> Result<()> {
        let def = closure.def.clone();
        let tensors = self.tensor_params(&def);
        let args = self.entry_args(closure, options, &tensors)?;
        let scope = Scope::new(Some(closure.scope.clone()));
        self.building = true;
        self.signature.eager = true;
        self.in_function(scope, true, def.head, |stage| {
            for (position, (param, (name, value))) in def.params.iter().zip(args).enumerate() {
                let span = param.name.span;
                if let Some(value) = value {
                    stage.bind(name, value, span);
                    continue;
                }
                stage.signature.pending.insert(name, position);
                let text = stage.symbols.text(name).clone();
                let waiting = super::modules::opaque(&text, OpaqueReason::Tensor);
                stage.bind(name, waiting, span);
            }
            // Annotations in the signature itself may speak of nothing but dtypes and
            // parameters; those that only say "a tensor" wait for the body.
            for (position, param) in def.params.iter().enumerate() {
                let name = param.name.sym;
                if let Some(annotation) = &param.annotation
                    && stage.signature.pending.contains_key(&name)
                    && matches!(annotation.kind, ExprKind::Call(_) | ExprKind::Subscript(..))
                {
                    let value = stage.eval(annotation)?;
                    stage.declare_param(
                        name,
                        position,
                        &value,
                        param.name.span,
                        annotation.span,
                    )?;
                    stage.signature.pending.remove(&name);
                }
            }
            let returned = stage.run_body(&def)?;
            let waiting: Vec<_> = stage.signature.pending.keys().copied().collect();
            if let Some(name) = waiting.first() {
                let text = stage.symbols.text(*name);
                return Err(stage
                    .error(
                        codes::PARAM_ANNOTATION,
                        def.head,
                        format!("the shape of the tensor `{text}` is never stated"),
                    )
                    .help(format!(
                        "write `{text}: T.Tensor[[M, N], T.float16]` in the body"
                    ))
                    .into());
            }
            stage.finish_eager(&returned, def.head)
        })
    }

    /// Parameters of an eager kernel that are tensors: annotated in the body, or in the
    /// signature as `T.Tensor` or a dtype of the language.
    fn tensor_params(&self, def: &FuncDef) -> Vec<crate::syntax::Symbol> {
        let mut out = Vec::new();
        walk(def.statements(), &mut |stmt| {
            if let StmtKind::AnnAssign {
                target,
                value: None,
                ..
            } = &stmt.kind
                && let ExprKind::Name(name) = target.kind
            {
                out.push(name);
            }
        });
        for param in &def.params {
            let mut annotation = param.annotation.as_ref();
            while let Some(Expr {
                kind: ExprKind::Subscript(inner, _),
                ..
            }) = annotation
            {
                annotation = Some(inner);
            }
            if let Some(a) = annotation
                && let Some("Tensor" | "StridedTensor" | "Buffer") = self.decorator_name(a)
            {
                out.push(param.name.sym);
            }
        }
        let params: Vec<_> = def.params.iter().map(|p| p.name.sym).collect();
        out.retain(|name| params.contains(name));
        out
    }

    /// A function with its decorators applied.
    pub(crate) fn decorate(&mut self, closure: Rc<Closure>) -> Result<Value> {
        let def = closure.def.clone();
        let mut value = Value::Function(closure.clone());
        for decorator in def.decorators.iter().rev() {
            // Only the decorators of the language matter; a test marker or cache need not even
            // be importable here.
            let role = match self.decorator_name(decorator) {
                Some("prim_func") => Role::PrimFunc,
                Some("macro" | "inline") => Role::Macro,
                Some("jit" | "lazy_jit") => Role::Jit,
                _ => continue,
            };
            value = Value::Staged(Rc::new(StagedFn {
                role,
                closure: closure.clone(),
            }));
        }
        Ok(value)
    }

    /// `jit(out_idx=[-1])`, `autotune(configs=…)`, or a decorator used as a function.
    pub(crate) fn call_decorator(&mut self, decorator: &Decorator, args: Args) -> Result<Value> {
        let span = args.span;
        if let Some(Arg {
            value: Value::Function(closure),
            ..
        }) = args.positional.first()
        {
            let role = match decorator {
                Decorator::PrimFunc => Role::PrimFunc,
                Decorator::Macro => Role::Macro,
                Decorator::Jit(_) => Role::Jit,
                Decorator::Autotune(_) | Decorator::Ignored => {
                    return Ok(Value::Function(closure.clone()));
                }
            };
            let closure = closure.clone();
            return Ok(Value::Staged(Rc::new(StagedFn { role, closure })));
        }
        let keyword = |name: &str| {
            args.keywords
                .iter()
                .find(|k| &**self.symbols.text(k.name) == name)
                .map(|k| (k.value.clone(), k.span))
        };
        let made = match decorator {
            Decorator::Jit(_) => Decorator::Jit(JitOptions {
                out_idx: keyword("out_idx").or_else(|| {
                    let first = args.positional.first()?;
                    Some((first.value.clone(), first.span))
                }),
                pass_configs: keyword("pass_configs").map(|(v, _)| v),
                compile_flags: keyword("compile_flags").map(|(v, _)| v),
            }),
            Decorator::Autotune(_) => {
                let configs = keyword("configs").map(|(v, _)| v).or_else(|| {
                    let first = args.positional.first()?;
                    Some(first.value.clone())
                });
                Decorator::Autotune(match configs {
                    Some(configs) => self.configs(configs, span)?,
                    None => Vec::new(),
                })
            }
            Decorator::PrimFunc => Decorator::PrimFunc,
            Decorator::Macro => Decorator::Macro,
            Decorator::Ignored => Decorator::Ignored,
        };
        Ok(Value::Decorator(Rc::new(made)))
    }

    /// A list of configurations, or a function that makes one.
    fn configs(&mut self, configs: Value, span: Span) -> Result<Vec<Value>> {
        let list = match &configs {
            Value::Function(_) => self.call_value(&configs, Vec::new(), span)?,
            _ => configs,
        };
        self.iterate(&list, span)
    }

    fn name_the_nameless(&mut self) {
        for data in self.func.buffers.values_mut() {
            if data.name.is_empty() {
                data.name = data.scope.name().to_string();
            }
        }
        for data in self.func.vars.values_mut() {
            if data.name.is_empty() {
                data.name = "x".to_string();
            }
        }
        // A symbol that no tensor and no kernel speaks of is of no interest to a caller.
        let used: Vec<_> = self.used_symbols();
        self.func.symbols.retain(|v| used.contains(v));
    }

    fn used_symbols(&self) -> Vec<tilewright_ir::Var> {
        let mut used = Vec::new();
        let mut note = |e: &tilewright_ir::Expr| {
            e.walk(&mut |e| {
                if let Some(var) = e.as_var() {
                    used.push(var);
                }
            });
        };
        for param in &self.func.params {
            if let Param::Tensor { buffer, .. } = param {
                let data = &self.func.buffers[*buffer];
                data.shape.iter().for_each(&mut note);
                data.strides.iter().flatten().for_each(&mut note);
            }
        }
        for kernel in &self.func.kernels {
            kernel.grid.iter().for_each(|(_, e)| note(e));
            tilewright_ir::visit::walk_stmts(&kernel.body, &mut |stmt| {
                tilewright_ir::visit::stmt_exprs(stmt, &mut note);
            });
        }
        used
    }
}

/// More configurations than this are not recorded.
const MAX_CONFIGS: usize = 4096;

#[derive(Debug, Default)]
struct EntryOptions {
    jit: Option<JitOptions>,
    configs: Vec<Value>,
    /// Why the configurations could not be evaluated.
    config_error: Option<Box<Diagnostic>>,
}

fn first_config(configs: &[Value], name: &str) -> Option<Value> {
    let Some(Value::Dict(items)) = configs.first() else {
        return None;
    };
    let key = Value::str(name).key()?;
    items.borrow().get(&key).map(|e| e.value.clone())
}

/// A configuration's value; what has no such form, or nests too deep, is left out.
fn attr_value(value: &Value, depth: u32) -> Option<AttrValue> {
    if depth > 8 {
        return None;
    }
    Some(match value {
        Value::None => AttrValue::None,
        Value::Bool(b) => AttrValue::Bool(*b),
        Value::Int(_) | Value::Dim(_) => AttrValue::Int(i64::try_from(value.as_int()?).ok()?),
        Value::Float(f) => AttrValue::Float(F64(*f)),
        Value::Str(s) => AttrValue::Str(s.to_string()),
        Value::DType(d) => AttrValue::DType(*d),
        Value::Tuple(_) | Value::List(_) => {
            let items = value.sequence()?;
            let items = items.iter().map(|v| attr_value(v, depth + 1));
            AttrValue::List(items.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// Calls `f` on every statement, those of inner functions included.
fn walk<'a>(body: &'a [Stmt], f: &mut impl FnMut(&'a Stmt)) {
    for stmt in body {
        f(stmt);
        match &stmt.kind {
            StmtKind::If { arms, orelse } => {
                arms.iter().for_each(|arm| walk(&arm.body, f));
                walk(orelse, f);
            }
            StmtKind::For { body, orelse, .. } | StmtKind::While { body, orelse, .. } => {
                walk(body, f);
                walk(orelse, f);
            }
            StmtKind::With { body, .. } => walk(body, f),
            StmtKind::FunctionDef(def) => walk(def.statements(), f),
            StmtKind::ClassDef(def) => walk(&def.body, f),
            StmtKind::Try {
                body,
                orelse,
                finalbody,
                ..
            } => {
                walk(body, f);
                walk(orelse, f);
                walk(finalbody, f);
            }
            _ => {}
        }
    }
}
