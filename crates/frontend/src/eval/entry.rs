//! The choice of a kernel, its parameters, and the run that records it.

use std::collections::BTreeMap;
use std::rc::Rc;

use tilewright_ir::{Func, Param, Span};

use crate::codes;
use crate::eval::Stage;
use crate::eval::call::Args;
use crate::eval::options::{EntryOptions, first_config, settings_of};
use crate::eval::scope::Scope;
use crate::lang::Arg;
use crate::syntax::ast::{Expr, ExprKind, FuncDef, ParamKind, Stmt, StmtKind};
use crate::value::{Closure, JitOptions, Keyword, OpaqueReason, Role, StagedFn, Value};
use crate::{Result, Survey};

/// How a function gives a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Style {
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
        self.rec.func.name = name;
        self.rec.func.span = def.head;
        self.check_language(&def)?;
        let style = self.style(&def);
        self.check_settings(&def, style)?;
        // Module-level code around the function may give it another decoration or value; the
        // definition itself is what counts here.
        let outer = std::mem::replace(&mut self.scope, self.globals.clone());
        let closure = self.closure(&def);
        self.scope = outer;
        let closure = closure?;
        let options = self.entry_options(&def)?;
        let mut inner = None;
        match style {
            Style::PrimFunc => self.trace_prim_func(&closure)?,
            Style::Factory => {
                let result = self.run_factory(&closure, &options);
                inner = result.map_err(|e| self.not_meant(&def, e))?;
            }
            Style::Eager => self.trace_eager(&closure, &options, &[], false)?,
        }
        if let Some(jit) = options.jit.as_ref().or(inner.as_deref()) {
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
                self.rec.apply_out_idx(value, *span)?;
            }
            self.record_jit_options(jit);
        }
        self.check_launches(&def)?;
        self.bind_scalars()?;
        self.check_unused()?;
        self.name_the_nameless();
        Ok(std::mem::replace(&mut self.rec.func, Func::new("")))
    }

    /// What the kernel leaves open, without running it.
    pub(crate) fn survey(&mut self, entry: Option<&str>) -> Result<Survey> {
        let def = self.choose_entry(entry)?;
        let outer = std::mem::replace(&mut self.scope, self.globals.clone());
        let closure = self.closure(&def);
        self.scope = outer;
        let closure = closure?;
        let options = self.entry_options(&def)?;
        if let Some(error) = options.config_error {
            return Err(error);
        }
        let mut survey = Survey {
            auto: options.auto,
            ..Survey::default()
        };
        for (param, default) in def.params.iter().zip(&closure.defaults) {
            if matches!(param.kind, ParamKind::Normal | ParamKind::KeywordOnly) {
                let name = self.symbols.text(param.name.sym).to_string();
                let given = !matches!(default, None | Some(Value::None));
                survey.parameters.push((name, given));
            }
        }
        for (at, config) in options.configs.iter().enumerate() {
            let settings = settings_of(config).ok_or_else(|| {
                self.error(
                    codes::BAD_SETTING,
                    def.head,
                    format!("configuration {at} is no dict of names and plain values"),
                )
            })?;
            survey.configs.push(settings);
        }
        Ok(survey)
    }

    pub(super) fn check_launches(&self, def: &FuncDef) -> Result<()> {
        if !self.rec.func.kernels.is_empty() {
            return Ok(());
        }
        Err(self
            .error(
                codes::NOT_A_KERNEL,
                def.head,
                "the function launches no kernel",
            )
            .help("put the body into `with T.Kernel(...)`")
            .into())
    }

    /// An error in a function that shows no sign of being a kernel says so.
    fn not_meant(&self, def: &FuncDef, mut error: crate::Error) -> crate::Error {
        if !self.is_kernel(def) {
            let name = self.symbols.text(def.name.sym);
            error.notes.push(format!(
                "`{name}` is neither decorated as a kernel nor contains one"
            ));
        }
        error
    }

    /// Values that the settings give to run-time sizes.
    pub(crate) fn symbol_values(&mut self) -> BTreeMap<String, i64> {
        let names: Vec<String> = self.rec.signature.symbols.keys().cloned().collect();
        let mut out = BTreeMap::new();
        for name in names {
            if let Some(crate::record::settings::SettingValue::Int(v)) =
                self.rec.settings.take(&name)
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
                self.file_start(),
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
        // A decorated function says that it is meant; a factory may be a helper of others.
        let decorated = defs.iter().find(|d| self.is_decorated(d));
        match decorated.or_else(|| defs.iter().find(|d| self.is_kernel(d))) {
            Some(def) => Ok(def.clone()),
            None => Err(self.no_kernel(&defs)),
        }
    }

    /// The file has no kernel; one in a class, or functions that may give one, are named.
    fn no_kernel(&self, defs: &[Rc<FuncDef>]) -> crate::Error {
        let mut in_class = None;
        for stmt in &self.module.body {
            let StmtKind::ClassDef(class) = &stmt.kind else {
                continue;
            };
            for inner in &class.body {
                if let StmtKind::FunctionDef(def) = &inner.kind
                    && self.is_kernel(def)
                {
                    in_class.get_or_insert((class.name.sym, def.clone()));
                }
            }
        }
        let named = defs.first().map(|def| {
            let name = self.symbols.text(def.name.sym);
            format!(
                "if a function gives a kernel that it does not hold itself, name it: `FILE.py:{name}`"
            )
        });
        let mut d = match in_class {
            Some((class, def)) => {
                let (class, method) = (self.symbols.text(class), self.symbols.text(def.name.sym));
                let message = format!("the kernel is made by `{class}.{method}`, a method");
                self.error(codes::NO_KERNEL, def.head, message)
                    .note("objects of classes are not made at compile time")
                    .help("make it a function of the file that takes the sizes and returns the kernel")
            }
            None => self
                .error(
                    codes::NO_KERNEL,
                    self.file_start(),
                    "the file has no kernel",
                )
                .help(
                    "write a function decorated `@tilelang.jit` or `@T.prim_func`, or one that \
                     returns an inner `@T.prim_func`",
                ),
        };
        d.help.extend(named);
        d.into()
    }

    /// Where what is said of the whole file stands.
    fn file_start(&self) -> Span {
        let first = self.module.body.first().map(|s| s.span);
        first.map_or(Span::NONE, |s| Span::new(s.file, 0, 0))
    }

    /// A function that is decorated as a kernel of another language.
    fn check_language(&mut self, def: &FuncDef) -> Result<()> {
        for decorator in &def.decorators {
            let function = match &decorator.kind {
                ExprKind::Call(call) => &call.func,
                _ => decorator,
            };
            if !matches!(self.decorator_name(decorator), Some("jit" | "autotune")) {
                continue;
            }
            if let Ok(Value::Opaque(o)) = self.eval(function)
                && let Some(language) = crate::record::elsewhere::language(&o.name)
            {
                let name = self.symbols.text(def.name.sym);
                let message = format!("`{name}` is a kernel of {language}, another language");
                return Err(self
                    .error(codes::NOT_A_KERNEL, decorator.span, message)
                    .help(
                        "write it with `T.Kernel`, `T.copy` and `T.Parallel`; docs/language.md \
                         and examples/ show how",
                    )
                    .into());
            }
        }
        Ok(())
    }

    fn is_kernel(&self, def: &FuncDef) -> bool {
        self.is_decorated(def) || self.has_inner_kernel(def)
    }

    fn is_decorated(&self, def: &FuncDef) -> bool {
        def.decorators.iter().any(|d| {
            matches!(
                self.decorator_name(d),
                Some("jit" | "lazy_jit" | "prim_func" | "autotune")
            )
        })
    }

    /// The last part of a decorator's name: `jit` of `@tilelang.jit(out_idx=[-1])`.
    pub(super) fn decorator_name(&self, decorator: &Expr) -> Option<&str> {
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

    pub(super) fn style(&self, def: &FuncDef) -> Style {
        let has = |name: &str| {
            def.decorators
                .iter()
                .any(|d| self.decorator_name(d) == Some(name))
        };
        if has("prim_func") {
            return match self.states_itself(def) {
                true => Style::Eager,
                false => Style::PrimFunc,
            };
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

    /// Whether the body of a `@T.prim_func` says what its tensors are: by annotations of
    /// parameters, `T.const` or `T.empty`.
    fn states_itself(&self, def: &FuncDef) -> bool {
        let params: Vec<_> = def.params.iter().map(|p| p.name.sym).collect();
        let mut found = false;
        walk(def.statements(), &mut |stmt| {
            found |= match &stmt.kind {
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
        found
    }

    /// Whether the parameters that are no tensors are given at each launch.
    fn is_prim_func(&self, def: &FuncDef) -> bool {
        let mut all = def.decorators.iter();
        all.any(|d| self.decorator_name(d) == Some("prim_func"))
    }

    /// Calls a factory, and what it returns if that is another one, and records the kernel in
    /// the end. Returns the options of an inner `@tilelang.jit`.
    fn run_factory(
        &mut self,
        closure: &Rc<Closure>,
        options: &EntryOptions,
    ) -> Result<Option<Rc<JitOptions>>> {
        let head = closure.def.head;
        let mut result = self.call_entry(closure, options)?;
        for _ in 0..MAX_FACTORIES {
            result = match &result {
                Value::Function(inner) => self.call_entry(inner, &EntryOptions::default())?,
                Value::Staged(f) if f.role == Role::Jit => {
                    let options = self.entry_options(&f.closure.def)?;
                    let made = self.call_entry(&f.closure, &options)?;
                    with_options(made, options.jit)
                }
                _ => break,
            };
        }
        match result {
            Value::Staged(f) if f.role == Role::PrimFunc => {
                match self.states_itself(&f.closure.def) {
                    true => {
                        let options = EntryOptions::default();
                        self.trace_eager(&f.closure, &options, &[], false)?;
                    }
                    false => self.trace_prim_func(&f.closure)?,
                }
                Ok(f.jit.clone())
            }
            Value::Opaque(o) => Err(self.rec.opaque_error(&o, head)),
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

    /// Calls a function with the values that settings, defaults and configurations give.
    fn call_entry(&mut self, closure: &Rc<Closure>, options: &EntryOptions) -> Result<Value> {
        let head = closure.def.head;
        let args = self.entry_args(closure, options, &[])?;
        let mut call = Args::of(Vec::new(), head);
        for (param, (name, value)) in closure.def.params.iter().zip(args) {
            let Some(value) = value else { continue };
            match param.kind {
                ParamKind::Rest | ParamKind::KeywordRest => {}
                ParamKind::Normal | ParamKind::PositionalOnly => {
                    call.positional.push(Arg { value, span: head });
                }
                ParamKind::KeywordOnly => call.keywords.push(Keyword {
                    name,
                    value,
                    span: head,
                }),
            }
        }
        self.call_function(closure, call)
    }

    /// Calls a factory from Python code: what its own decorators say holds as well.
    pub(crate) fn call_factory(&mut self, closure: &Rc<Closure>, mut args: Args) -> Result<Value> {
        let options = self.entry_options(&closure.def)?;
        let def = closure.def.clone();
        let mut first = Vec::new();
        for (i, param) in def.params.iter().enumerate().skip(args.positional.len()) {
            let given = args.keywords.iter().any(|k| k.name == param.name.sym);
            let open = matches!(closure.defaults[i], None | Some(Value::None));
            let name = self.symbols.text(param.name.sym);
            if let Some(value) = first_config(&options.configs, name)
                && open
                && !given
            {
                first.push(format!("{name}={}", self.repr(&value)));
                args.keywords.push(Keyword {
                    name: param.name.sym,
                    value,
                    span: args.span,
                });
            }
        }
        self.warn_first_config(&def, &options.configs, &first);
        let made = self.call_function(closure, args)?;
        Ok(with_options(made, options.jit))
    }

    /// Records a `@T.prim_func`.
    fn trace_prim_func(&mut self, closure: &Rc<Closure>) -> Result<()> {
        let def = closure.def.clone();
        let scope = Scope::new(Some(closure.scope.clone()));
        self.rec.building = true;
        self.in_function(scope, true, def.head, |stage| {
            for (position, param) in def.params.iter().enumerate() {
                stage.prim_func_param(position, param)?;
            }
            stage.finish_prim_func(&def)
        })
    }

    /// Runs the body of a `@T.prim_func` whose parameters are declared.
    pub(super) fn finish_prim_func(&mut self, def: &FuncDef) -> Result<()> {
        self.rec.finish_params();
        match self.run_body(def)? {
            Value::None => Ok(()),
            other => Err(self
                .error(
                    codes::OUTPUTS,
                    def.head,
                    format!("a `@T.prim_func` returned {}", other.type_name()),
                )
                .help("write its results into tensor parameters")
                .into()),
        }
    }

    pub(super) fn prim_func_param(
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

    /// Records an eager kernel: its own body states the shapes. `annotations` are those of the
    /// signature, as far as a host has evaluated them. With `shapes_only` the run ends where the
    /// last tensor is annotated.
    pub(super) fn trace_eager(
        &mut self,
        closure: &Rc<Closure>,
        options: &EntryOptions,
        annotations: &[Option<Value>],
        shapes_only: bool,
    ) -> Result<()> {
        let def = closure.def.clone();
        let launched = self.is_prim_func(&def);
        let tensors = match launched {
            true => def.params.iter().map(|p| p.name.sym).collect(),
            false => self.tensor_params(&def),
        };
        let args = self.entry_args(closure, options, &tensors)?;
        let scope = Scope::new(Some(closure.scope.clone()));
        self.rec.building = true;
        self.rec.signature.eager = true;
        self.in_function(scope, true, def.head, |stage| {
            for (position, (param, (name, value))) in def.params.iter().zip(args).enumerate() {
                let span = param.name.span;
                if let Some(value) = value {
                    stage.bind(name, value, span);
                    continue;
                }
                stage.pending_params.insert(name, position);
                let text = stage.symbols.text(name).clone();
                let waiting = super::modules::opaque(&text, OpaqueReason::Tensor);
                stage.bind(name, waiting, span);
            }
            // Annotations in the signature itself may speak of nothing but dtypes and
            // parameters; those that only say "a tensor" wait for the body.
            for (position, param) in def.params.iter().enumerate() {
                let name = param.name.sym;
                let stated = |a: &Expr| {
                    matches!(a.kind, ExprKind::Call(_) | ExprKind::Subscript(..))
                        || launched && !stage.is_bare_tensor(a)
                };
                if let Some(annotation) = &param.annotation
                    && stage.pending_params.contains_key(&name)
                    && stated(annotation)
                {
                    let value = match annotations.get(position) {
                        Some(Some(value)) => value.clone(),
                        _ => stage.eval(annotation)?,
                    };
                    stage.declare_param(
                        name,
                        position,
                        &value,
                        param.name.span,
                        annotation.span,
                    )?;
                    stage.pending_params.remove(&name);
                }
            }
            let returned = match shapes_only {
                true => stage.run_annotations(&def)?,
                false => stage.run_body(&def)?,
            };
            let waiting: Vec<_> = stage.pending_params.keys().copied().collect();
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
            match shapes_only {
                true => {
                    stage.rec.finish_params();
                    Ok(())
                }
                false => stage.rec.finish_eager(&returned, def.head),
            }
        })
    }

    /// `T.Tensor` without a shape.
    fn is_bare_tensor(&self, annotation: &Expr) -> bool {
        matches!(annotation.kind, ExprKind::Name(_) | ExprKind::Attribute(..))
            && matches!(
                self.decorator_name(annotation),
                Some("Tensor" | "StridedTensor" | "Buffer")
            )
    }

    /// Runs the body as far as tensors are annotated.
    fn run_annotations(&mut self, def: &FuncDef) -> Result<Value> {
        for stmt in def.statements() {
            if self.pending_params.is_empty() {
                break;
            }
            self.exec(stmt)?;
        }
        Ok(Value::None)
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

    pub(super) fn name_the_nameless(&mut self) {
        for data in self.rec.func.buffers.values_mut() {
            if data.name.is_empty() {
                data.name = data.scope.name().to_string();
            }
        }
        for data in self.rec.func.vars.values_mut() {
            if data.name.is_empty() {
                data.name = "x".to_string();
            }
        }
        // A symbol that no tensor and no kernel speaks of is of no interest to a caller.
        let used: Vec<_> = self.used_symbols();
        self.rec.func.symbols.retain(|v| used.contains(v));
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
        for param in &self.rec.func.params {
            if let Param::Tensor { buffer, .. } = param {
                let data = &self.rec.func.buffers[*buffer];
                data.shape.iter().for_each(&mut note);
                data.strides.iter().flatten().for_each(&mut note);
            }
        }
        for kernel in &self.rec.func.kernels {
            kernel.grid.iter().for_each(|(_, e)| note(e));
            tilewright_ir::visit::walk_stmts(&kernel.body, &mut |stmt| {
                tilewright_ir::visit::stmt_exprs(stmt, &mut note);
            });
        }
        used
    }
}

/// Factories that return factories, at the most.
const MAX_FACTORIES: usize = 4;

/// A kernel that a decorated factory made, with what the decorator said.
fn with_options(made: Value, jit: Option<JitOptions>) -> Value {
    match (made, jit) {
        (Value::Staged(f), Some(jit)) if f.jit.is_none() => Value::Staged(Rc::new(StagedFn {
            role: f.role,
            closure: f.closure.clone(),
            jit: Some(Rc::new(jit)),
        })),
        (made, _) => made,
    }
}

/// Calls `f` on every statement, those of inner functions included.
pub(super) fn walk<'a>(body: &'a [Stmt], f: &mut impl FnMut(&'a Stmt)) {
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
