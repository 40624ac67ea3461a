//! What `import` gives: the language, `math`, `itertools`, `functools`, files beside the kernel's;
//! everything else is opaque and fails only when used.

use std::rc::Rc;

use tilewright_ir::Span;

use crate::codes;
use crate::eval::Stage;
use crate::eval::builtins::{Builtin, BuiltinFn, PyArgs};
use crate::lang;
use crate::syntax::Symbol;
use crate::syntax::ast::{FromName, ImportName};
use crate::value::{Decorator, JitOptions, Opaque, OpaqueReason, StagedFn, Value};
use crate::{Error, Result};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ModuleId {
    /// `tilelang`, `tilewright` and their submodules other than the language.
    Root,
    /// `tilelang.language`
    Language,
    /// `tvm.tir`: the language, plus its constants.
    Tir,
    Math,
    Itertools,
    Functools,
    /// A file beside the kernel's, by its number.
    Beside(usize),
}

impl Stage {
    pub(crate) fn import(&mut self, names: &[ImportName], span: Span) -> Result<()> {
        for name in names {
            let path = if name.renamed {
                &*name.path
            } else {
                name.path.split('.').next().unwrap_or(&name.path)
            };
            let value = match (module(path), self.host.clone()) {
                (Value::Opaque(_), None) => match self.beside(path, 0)? {
                    Some(id) => Value::Module(id),
                    None => module(path),
                },
                (Value::Opaque(_), Some(host)) => {
                    // The whole path is imported, whatever part of it is bound.
                    let whole = host.import(self, &name.path, span)?;
                    match name.renamed {
                        true => whole,
                        false => host.import(self, path, span)?,
                    }
                }
                (value, _) => value,
            };
            self.bind(name.bound.sym, value, span);
        }
        Ok(())
    }

    pub(crate) fn import_from(
        &mut self,
        path: &str,
        level: u32,
        names: &[FromName],
        span: Span,
    ) -> Result<()> {
        for name in names.iter().filter(|n| !n.star) {
            let text = self.symbols.text(name.name.sym).clone();
            let value = self.imported(path, level, &text, name.name.span)?;
            self.bind(name.bound.sym, value, span);
        }
        Ok(())
    }

    fn imported(&mut self, path: &str, level: u32, name: &str, span: Span) -> Result<Value> {
        let full = match path.is_empty() {
            true => name.to_string(),
            false => format!("{path}.{name}"),
        };
        if self.host.is_none() && (level > 0 || matches!(module(path), Value::Opaque(_))) {
            if let Some(ModuleId::Beside(slot)) = self.beside(path, level)? {
                return self.of_file(slot, name, span);
            }
            if let Some(id) = self.beside(&full, level)? {
                return Ok(Value::Module(id));
            }
        }
        if level > 0 {
            return Ok(opaque(name, OpaqueReason::ForeignModule));
        }
        if let (Value::Opaque(_), Some(host)) = (module(path), self.host.clone()) {
            let whole = host.import(self, path, span)?;
            return self.attribute(&whole, name, span);
        }
        match module(path) {
            Value::Module(id) => match self.module_attribute(id, name, span) {
                Ok(value) => Ok(value),
                // A file may import what no kernel uses.
                Err(_) => Ok(module(&full)),
            },
            _ => Ok(module(&full)),
        }
    }

    /// A name that a star import gives.
    pub(crate) fn star_import(&mut self, name: Symbol, span: Span) -> Result<Option<Value>> {
        let text = self.symbols.text(name).clone();
        for (path, level) in self.lazy.stars.clone() {
            let known = match (module(&path), level) {
                (Value::Module(ModuleId::Language), 0) => lang::name(&text),
                (Value::Module(ModuleId::Root), 0) => lang::decorator(&text),
                (Value::Module(ModuleId::Math), 0) => math_name(&text),
                (Value::Module(ModuleId::Itertools), 0) => table(ITERTOOLS, &text),
                (Value::Module(ModuleId::Functools), 0) => table(FUNCTOOLS, &text),
                (Value::Module(_), 0) => None,
                _ => match self.beside(&path, level)? {
                    Some(ModuleId::Beside(slot)) if slot != self.active => {
                        self.name_beside(slot, &text, span)?
                    }
                    _ => None,
                },
            };
            if known.is_some() {
                return Ok(known);
            }
        }
        Ok(None)
    }

    /// A name of a file beside the kernel's, which has to be there.
    fn of_file(&mut self, slot: usize, name: &str, span: Span) -> Result<Value> {
        if let Some(value) = self.name_beside(slot, name, span)? {
            return Ok(value);
        }
        let module = self.slots[slot].name.clone();
        if let Some(id) = self.beside(&format!("{module}.{name}"), 0)? {
            return Ok(Value::Module(id));
        }
        let message = format!("the module `{module}` has no `{name}`");
        Err(self.error(codes::UNKNOWN_ATTRIBUTE, span, message).into())
    }

    pub(crate) fn module_attribute(
        &mut self,
        module_id: ModuleId,
        name: &str,
        span: Span,
    ) -> Result<Value> {
        let found = match module_id {
            ModuleId::Language => lang::name(name),
            ModuleId::Root => match name {
                "language" => Some(Value::Module(ModuleId::Language)),
                "layout" | "intrinsics" => Some(Value::Module(ModuleId::Root)),
                _ => lang::decorator(name)
                    .or_else(|| table(ROOT, name))
                    .or_else(|| lang::name(name)),
            },
            ModuleId::Tir => match name {
                "const" => table(TIR, name),
                _ => lang::name(name),
            },
            ModuleId::Math => math_name(name),
            ModuleId::Itertools => table(ITERTOOLS, name),
            ModuleId::Functools => table(FUNCTOOLS, name),
            ModuleId::Beside(slot) => return self.of_file(slot, name, span),
        };
        if let Some(value) = found {
            return Ok(value);
        }
        match module_id {
            ModuleId::Root => Ok(opaque(
                &format!("tilelang.{name}"),
                OpaqueReason::ForeignModule,
            )),
            ModuleId::Tir => Ok(opaque(&format!("tir.{name}"), OpaqueReason::ForeignModule)),
            ModuleId::Language => Err(self.unknown_language_name(name, span)),
            ModuleId::Math | ModuleId::Itertools | ModuleId::Functools if self.host.is_some() => {
                match self.host_attribute(&Value::Module(module_id), name, span)? {
                    Some(value) => Ok(value),
                    None => {
                        let message = format!("the module has no `{name}`");
                        Err(self.error(codes::UNKNOWN_ATTRIBUTE, span, message).into())
                    }
                }
            }
            ModuleId::Math | ModuleId::Itertools | ModuleId::Functools | ModuleId::Beside(_) => {
                let which = match module_id {
                    ModuleId::Math => "math",
                    ModuleId::Itertools => "itertools",
                    _ => "functools",
                };
                let message = format!("`{which}.{name}` is not known here");
                Err(self.error(codes::UNKNOWN_ATTRIBUTE, span, message).into())
            }
        }
    }

    fn unknown_language_name(&self, name: &str, span: Span) -> Error {
        if let Some(error) = lang::unsupported::unsupported_name(&self.rec, name, span) {
            return error;
        }
        let mut d = self.error(
            codes::UNKNOWN_LANGUAGE_NAME,
            span,
            format!("the tile language has no `T.{name}`"),
        );
        let near = tilewright_ir::nearest::nearest(name, lang::all_names());
        if !near.is_empty() {
            let list: Vec<String> = near.iter().map(|n| format!("`T.{n}`")).collect();
            d = d.help(format!("did you mean {}?", list.join(" or ")));
        }
        d.into()
    }
}

/// The module of a dotted path.
pub fn module(path: &str) -> Value {
    let mut parts = path.split('.');
    match (parts.next(), parts.next()) {
        (Some("tilelang" | "tilewright"), Some("language")) => Value::Module(ModuleId::Language),
        (Some("tilelang" | "tilewright"), _) => Value::Module(ModuleId::Root),
        (Some("tvm"), Some("tir" | "tirx")) => Value::Module(ModuleId::Tir),
        (Some("math"), None) => Value::Module(ModuleId::Math),
        (Some("itertools"), None) => Value::Module(ModuleId::Itertools),
        (Some("functools"), None) => Value::Module(ModuleId::Functools),
        _ => opaque(path, OpaqueReason::ForeignModule),
    }
}

pub fn opaque(name: &str, reason: OpaqueReason) -> Value {
    Value::Opaque(Rc::new(Opaque {
        name: name.to_string(),
        reason,
    }))
}

fn table(rows: &'static [BuiltinFn], name: &str) -> Option<Value> {
    let row = rows.iter().find(|b| b.name == name)?;
    Some(Value::Builtin(Builtin(row)))
}

fn math_name(name: &str) -> Option<Value> {
    Some(match name {
        "pi" => Value::Float(std::f64::consts::PI),
        "e" => Value::Float(std::f64::consts::E),
        "tau" => Value::Float(std::f64::consts::TAU),
        "inf" => Value::Float(f64::INFINITY),
        "nan" => Value::Float(f64::NAN),
        _ => return table(MATH, name),
    })
}

const fn row(name: &'static str, call: fn(&mut Stage, &PyArgs) -> Result<Value>) -> BuiltinFn {
    BuiltinFn { name, call }
}

static ROOT: &[BuiltinFn] = &[row("compile", compile)];

static TIR: &[BuiltinFn] = &[row("const", |s, a| {
    let args = a.positional(s, "const", 1, 2)?;
    match args.get(1) {
        Some(dtype) => {
            let dtype = s.rec.to_dtype(dtype, a.span())?;
            Ok(Value::Expr(s.rec.to_expr_as(&args[0], dtype, a.span())?))
        }
        None => Ok(Value::Expr(s.rec.to_expr(&args[0], a.span())?)),
    }
})];

/// `tilelang.compile(kernel, out_idx=…)` is the kernel with those options.
fn compile(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.counted(stage, "compile", 1, 2)?;
    let Value::Staged(f) = &args[0] else {
        return Err(stage.rec.wrong_type("a kernel", &args[0], a.span()));
    };
    let out_idx = args.get(1).or_else(|| a.keyword(stage, "out_idx"));
    let jit = JitOptions {
        out_idx: out_idx.map(|v| (v.clone(), a.span())),
        pass_configs: a.keyword(stage, "pass_configs").cloned(),
        compile_flags: a.keyword(stage, "compile_flags").cloned(),
    };
    Ok(Value::Staged(Rc::new(StagedFn {
        role: f.role,
        closure: f.closure.clone(),
        jit: Some(Rc::new(jit)),
    })))
}

static MATH: &[BuiltinFn] = &[
    row("sqrt", |s, a| float1(s, a, "sqrt", f64::sqrt)),
    row("exp", |s, a| float1(s, a, "exp", f64::exp)),
    row("exp2", |s, a| float1(s, a, "exp2", f64::exp2)),
    row("log2", |s, a| float1(s, a, "log2", f64::log2)),
    row("log10", |s, a| float1(s, a, "log10", f64::log10)),
    row("log1p", |s, a| float1(s, a, "log1p", f64::ln_1p)),
    row("sin", |s, a| float1(s, a, "sin", f64::sin)),
    row("cos", |s, a| float1(s, a, "cos", f64::cos)),
    row("tan", |s, a| float1(s, a, "tan", f64::tan)),
    row("tanh", |s, a| float1(s, a, "tanh", f64::tanh)),
    row("fabs", |s, a| float1(s, a, "fabs", f64::abs)),
    row("log", log),
    row("pow", |s, a| {
        let (x, y) = floats2(s, a, "pow")?;
        finite(s, a, x.powf(y))
    }),
    row("ceil", |s, a| rounded(s, a, "ceil", f64::ceil)),
    row("floor", |s, a| rounded(s, a, "floor", f64::floor)),
    row("trunc", |s, a| rounded(s, a, "trunc", f64::trunc)),
    row("gcd", |s, a| {
        int_fold(s, a, "gcd", 0, |x, y| Some(gcd(x, y)))
    }),
    row("lcm", |s, a| {
        int_fold(s, a, "lcm", 1, |x, y| match gcd(x, y) {
            0 => Some(0),
            g => (x / g).checked_mul(y).map(i128::abs),
        })
    }),
    row("prod", |s, a| {
        let args = a.counted(s, "prod", 1, 1)?;
        let mut total = Value::Int(1);
        for item in s.iterate(&args[0], a.span())? {
            total = s.binop(crate::syntax::ast::BinOp::Mul, &total, &item, a.span())?;
        }
        Ok(total)
    }),
    row("isnan", |s, a| {
        Ok(Value::Bool(float_arg(s, a, "isnan")?.is_nan()))
    }),
    row("isinf", |s, a| {
        Ok(Value::Bool(float_arg(s, a, "isinf")?.is_infinite()))
    }),
    row("isqrt", |s, a| {
        let args = a.positional(s, "isqrt", 1, 1)?;
        let v = s.rec.to_int(&args[0], a.span(), "the argument")?;
        if v < 0 {
            let message = "`isqrt` of a negative number";
            return Err(s.error(codes::PYTHON_ERROR, a.span(), message).into());
        }
        Ok(Value::Int(v.isqrt()))
    }),
];

static ITERTOOLS: &[BuiltinFn] = &[
    row("product", |s, a| {
        let mut rows: Vec<Vec<Value>> = vec![Vec::new()];
        let repeat = match a.keyword(s, "repeat").cloned() {
            Some(v) => usize::try_from(s.rec.to_int(&v, a.span(), "repeat")?).unwrap_or(0),
            None => 1,
        };
        for _ in 0..repeat.min(64) {
            for column in &a.args {
                let items = s.iterate(column, a.span())?;
                s.rec
                    .check_items(rows.len().saturating_mul(items.len()), a.span())?;
                rows = rows
                    .iter()
                    .flat_map(|row| {
                        items.iter().map(move |item| {
                            let mut row = row.clone();
                            row.push(item.clone());
                            row
                        })
                    })
                    .collect();
            }
        }
        Ok(Value::list(rows.into_iter().map(Value::tuple).collect()))
    }),
    row("chain", |s, a| {
        let mut out = Vec::new();
        for part in &a.args {
            out.extend(s.iterate(part, a.span())?);
            s.rec.check_items(out.len(), a.span())?;
        }
        Ok(Value::list(out))
    }),
    row("accumulate", |s, a| {
        let args = a.counted(s, "accumulate", 1, 2)?.to_vec();
        let mut out: Vec<Value> = Vec::new();
        for item in s.iterate(&args[0], a.span())? {
            let next = match (out.last(), args.get(1)) {
                (None, _) => item,
                (Some(total), Some(f)) => s.call_value(f, vec![total.clone(), item], a.span())?,
                (Some(total), None) => {
                    s.binop(crate::syntax::ast::BinOp::Add, total, &item, a.span())?
                }
            };
            out.push(next);
        }
        Ok(Value::list(out))
    }),
];

static FUNCTOOLS: &[BuiltinFn] = &[
    row("reduce", |s, a| {
        let args = a.positional(s, "reduce", 2, 3)?.to_vec();
        let mut items = s.iterate(&args[1], a.span())?.into_iter();
        let mut total = match args.get(2).cloned().or_else(|| items.next()) {
            Some(v) => v,
            None => {
                let message = "`reduce` of nothing";
                return Err(s.error(codes::PYTHON_ERROR, a.span(), message).into());
            }
        };
        for item in items {
            total = s.call_value(&args[0], vec![total, item], a.span())?;
        }
        Ok(total)
    }),
    // As decorators these change nothing here.
    row("lru_cache", identity_decorator),
    row("cache", identity_decorator),
    row("wraps", identity_decorator),
];

fn identity_decorator(_: &mut Stage, a: &PyArgs) -> Result<Value> {
    match a.args.first() {
        Some(f @ (Value::Function(_) | Value::Staged(_))) if a.keywords.is_empty() => Ok(f.clone()),
        _ => Ok(Value::Decorator(Rc::new(Decorator::Ignored))),
    }
}

fn float_arg(stage: &mut Stage, a: &PyArgs, name: &str) -> Result<f64> {
    let args = a.positional(stage, name, 1, 1)?;
    match args[0].as_float() {
        Some(v) => Ok(v),
        None if args[0].is_runtime() => Err(stage
            .error(
                codes::WRONG_TYPE,
                a.span(),
                format!("`math.{name}` works at compile time, this is a run-time value"),
            )
            .help(format!("write `T.{name}(x)`"))
            .into()),
        None => Err(stage.rec.wrong_type("a number", &args[0], a.span())),
    }
}

fn floats2(stage: &mut Stage, a: &PyArgs, name: &str) -> Result<(f64, f64)> {
    let args = a.positional(stage, name, 2, 2)?;
    match (args[0].as_float(), args[1].as_float()) {
        (Some(x), Some(y)) => Ok((x, y)),
        (None, _) => Err(stage.rec.wrong_type("a number", &args[0], a.span())),
        (_, None) => Err(stage.rec.wrong_type("a number", &args[1], a.span())),
    }
}

/// Python raises where a function has no value.
fn finite(stage: &Stage, a: &PyArgs, v: f64) -> Result<Value> {
    let given = a
        .args
        .iter()
        .all(|v| v.as_float().is_none_or(f64::is_finite));
    if given && !v.is_finite() {
        let message = "the function has no value there";
        return Err(stage.error(codes::PYTHON_ERROR, a.span(), message).into());
    }
    Ok(Value::Float(v))
}

fn float1(stage: &mut Stage, a: &PyArgs, name: &str, f: fn(f64) -> f64) -> Result<Value> {
    let v = f(float_arg(stage, a, name)?);
    finite(stage, a, v)
}

fn log(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    if a.args.len() == 1 {
        return float1(stage, a, "log", f64::ln);
    }
    let (x, base) = floats2(stage, a, "log")?;
    finite(stage, a, x.ln() / base.ln())
}

fn rounded(stage: &mut Stage, a: &PyArgs, name: &str, f: fn(f64) -> f64) -> Result<Value> {
    if let [v] = a.args.as_slice()
        && let Some(i) = v.as_int()
    {
        return Ok(Value::Int(i));
    }
    let v = f(float_arg(stage, a, name)?);
    if v.abs() < 1e30 {
        Ok(Value::Int(v as i128))
    } else {
        let message = format!("`{v}` has no integer value");
        Err(stage.error(codes::PYTHON_ERROR, a.span(), message).into())
    }
}

fn int_fold(
    stage: &mut Stage,
    a: &PyArgs,
    name: &str,
    start: i128,
    f: fn(i128, i128) -> Option<i128>,
) -> Result<Value> {
    let mut total = start;
    for v in a.positional(stage, name, 0, usize::MAX)? {
        let v = stage.rec.to_int(v, a.span(), "the argument")?;
        total = f(total, v).ok_or_else(|| {
            let message = "the integer needs more than 127 bits";
            Error::from(stage.error(codes::INT_OVERFLOW, a.span(), message))
        })?;
    }
    Ok(Value::Int(total))
}

fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a as i128
}
