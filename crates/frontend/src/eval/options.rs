//! What decorators and settings say about a kernel: options, configurations, arguments.

use std::collections::BTreeMap;
use std::rc::Rc;

use tilewright_ir::{AttrValue, Diagnostic, F64, Severity, Span};

use crate::codes;
use crate::eval::Stage;
use crate::eval::call::Args;
use crate::eval::entry::{Style, walk};
use crate::lang::Arg;
use crate::record::settings::{SettingValue, setting_error};
use crate::record::signature::split_names;
use crate::syntax::Symbol;
use crate::syntax::ast::{ExprKind, FuncDef, Param, ParamKind, StmtKind};
use crate::value::{Closure, Decorator, JitOptions, Role, StagedFn, Value};
use crate::{Error, Result};

/// More configurations than this are not recorded.
const MAX_CONFIGS: usize = 4096;

/// What the decorators of an entry say.
#[derive(Debug, Default)]
pub(super) struct EntryOptions {
    pub jit: Option<JitOptions>,
    pub configs: Vec<Value>,
    /// The tuner is to choose the configurations.
    pub auto: bool,
    /// Why the configurations could not be evaluated.
    pub config_error: Option<Box<Diagnostic>>,
}

impl Stage {
    /// Says at once which settings name nothing, before a missing one is complained about.
    pub(super) fn check_settings(&self, def: &FuncDef, style: Style) -> Result<()> {
        let mut known: Vec<String> = Vec::new();
        let mut add = |def: &FuncDef, of_kernel: bool| {
            let of_kernel = |p: &&Param| !of_kernel || self.may_be_scalar(p);
            let params = def.params.iter().filter(of_kernel);
            known.extend(params.map(|p| self.symbols.text(p.name.sym).to_string()));
        };
        add(def, style == Style::PrimFunc);
        // A factory may return another one, with parameters of its own, and the kernel's own
        // scalars are given at its launch.
        walk(def.statements(), &mut |stmt| {
            if let StmtKind::FunctionDef(inner) = &stmt.kind {
                let is = |name| {
                    let mut all = inner.decorators.iter();
                    all.any(|d| self.decorator_name(d) == Some(name))
                };
                if !is("macro") {
                    add(inner, is("prim_func"));
                }
            }
        });
        let mut loose = def.params.iter().any(|p| p.kind == ParamKind::KeywordRest);
        for name in self.named_dims() {
            match name {
                Some(name) => known.push(name),
                None => loose = true,
            }
        }
        let unused = self.rec.settings.unused();
        let named = |n: &str| known.iter().any(|k| k == n) || super::known::is_setting(n);
        let Some(bad) = unused.iter().find(|n| !named(n)) else {
            return Ok(());
        };
        if loose {
            return Ok(());
        }
        Err(self.unknown_setting(bad, &known, def.head))
    }

    /// Whether a parameter of a kernel can be a scalar: it is not annotated as a tensor.
    fn may_be_scalar(&self, param: &Param) -> bool {
        let Some(annotation) = &param.annotation else {
            return false;
        };
        match &annotation.kind {
            ExprKind::Call(call) => self.decorator_name(&call.func) == Some("dtype"),
            ExprKind::Subscript(..) => false,
            _ => true,
        }
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

    pub(super) fn check_unused(&mut self) -> Result<()> {
        let symbols: Vec<String> = self.rec.signature.symbols.keys().cloned().collect();
        let unused: Vec<String> = self
            .rec
            .settings
            .unused()
            .into_iter()
            .filter(|n| !symbols.iter().any(|s| s == n))
            .map(str::to_string)
            .collect();
        match unused.first() {
            None => Ok(()),
            Some(name) => {
                let consts = self.rec.signature.consts.iter().map(|c| c.name.clone());
                let scalars = self.scalar_params();
                let scalars = scalars.into_iter().map(|(name, ..)| name);
                let known: Vec<String> = consts.chain(scalars).collect();
                Err(self.unknown_setting(name, &known, self.rec.func.span))
            }
        }
    }

    pub(super) fn entry_options(&mut self, def: &FuncDef) -> Result<EntryOptions> {
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
                            if let [Value::Str(word)] = configs.as_slice() {
                                options.auto = &**word == "auto";
                                continue;
                            }
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
            self.rec.func.attrs.autotune.push(row);
        }
    }

    pub(super) fn record_jit_options(&mut self, jit: &JitOptions) {
        if let Some(Value::Dict(items)) = &jit.pass_configs {
            for entry in items.borrow().values() {
                let name = match &entry.key {
                    Value::Str(s) => s.to_string(),
                    Value::Opaque(o) => o.name.rsplit('.').next().unwrap_or_default().to_string(),
                    _ => continue,
                };
                if let Some(value) = attr_value(&entry.value, 0) {
                    self.rec.func.attrs.pass_configs.insert(name, value);
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
        self.rec
            .func
            .attrs
            .compile_flags
            .extend(flags.unwrap_or_default());
    }

    /// One value a parameter: setting, default, first autotune configuration.
    pub(super) fn entry_args(
        &mut self,
        closure: &Closure,
        options: &EntryOptions,
        tensors: &[Symbol],
    ) -> Result<Vec<(Symbol, Option<Value>)>> {
        let def = closure.def.clone();
        let mut out = Vec::new();
        let mut missing: Vec<String> = Vec::new();
        // What the first configuration decided.
        let mut first: Vec<String> = Vec::new();
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
            // A default of None in a tuned kernel stands for the tuner's choice.
            let default = default.clone();
            let open = set.is_none() && matches!(default, None | Some(Value::None));
            let chosen = first_config(&options.configs, &name).filter(|_| open);
            if let Some(value) = &chosen {
                first.push(format!("{name}={}", self.repr(value)));
            }
            let value = set.or(chosen).or(default);
            if value.is_none() {
                missing.push(name.to_string());
            }
            out.push((sym, value));
        }
        if missing.is_empty() {
            self.warn_first_config(&def, &options.configs, &first);
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

    /// Says that the first of several configurations is compiled: nothing is tuned here.
    pub(super) fn warn_first_config(
        &mut self,
        def: &FuncDef,
        configs: &[Value],
        chosen: &[String],
    ) {
        if chosen.is_empty() || configs.len() < 2 {
            return;
        }
        let message = format!(
            "the first of {} autotune configurations is taken: {}",
            configs.len(),
            chosen.join(", ")
        );
        let sets: Vec<String> = chosen.iter().map(|c| format!("--set {c}")).collect();
        self.rec.warn(
            Diagnostic::new(Severity::Note, codes::FIRST_CONFIG, def.head, message).help(format!(
                "`tilewright tune` finds the fastest; or choose with `{}`",
                sets.join(" ")
            )),
        );
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
                jit: None,
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
            let jit = None;
            return Ok(Value::Staged(Rc::new(StagedFn { role, closure, jit })));
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
            // The tuner's to choose.
            Value::Str(_) => return Ok(vec![configs]),
            Value::Function(_) => self.call_value(&configs, Vec::new(), span)?,
            _ => configs,
        };
        self.iterate(&list, span)
    }
}

/// What the first configuration gives a parameter.
pub(super) fn first_config(configs: &[Value], name: &str) -> Option<Value> {
    let Some(Value::Dict(items)) = configs.first() else {
        return None;
    };
    let key = Value::str(name).key()?;
    items.borrow().get(&key).map(|e| e.value.clone())
}

/// A configuration's value; what has no such form, or nests too deep, is left out.
/// A configuration as settings; none where a name or value is no literal.
pub(super) fn settings_of(config: &Value) -> Option<Vec<(String, SettingValue)>> {
    let Value::Dict(items) = config else {
        return None;
    };
    let mut settings = Vec::new();
    for entry in items.borrow().values() {
        let Value::Str(name) = &entry.key else {
            return None;
        };
        settings.push((name.to_string(), setting(&entry.value, 0)?));
    }
    Some(settings)
}

fn setting(value: &Value, depth: u32) -> Option<SettingValue> {
    if depth > 8 {
        return None;
    }
    let items = || {
        let items = value.sequence()?;
        let items = items.iter().map(|v| setting(v, depth + 1));
        items.collect::<Option<Vec<_>>>()
    };
    Some(match value {
        Value::None => SettingValue::None,
        Value::Bool(b) => SettingValue::Bool(*b),
        Value::Int(_) | Value::Dim(_) => SettingValue::Int(value.as_int()?),
        Value::Float(f) => SettingValue::Float(*f),
        Value::Str(s) => SettingValue::Str(s.to_string()),
        Value::DType(d) => SettingValue::DType(*d),
        Value::Tuple(_) => SettingValue::Tuple(items()?),
        Value::List(_) => SettingValue::List(items()?),
        _ => return None,
    })
}

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
