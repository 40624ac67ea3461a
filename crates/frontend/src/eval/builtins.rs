//! Python's built-in functions, as far as kernels use them at compile time.
//!
//! `math`, `itertools` and `functools` are in [`super::modules`].

use std::cmp::Ordering;
use std::rc::Rc;

use tilewright_ir::{BinOp, Diagnostic, Severity, Span};

use crate::codes;
use crate::eval::Stage;
use crate::value::{
    Dict, Entry, Keyword, LoopSpec, Opaque, OpaqueReason, PyRange, SliceValue, Value,
};
use crate::{Error, Result};

/// A built-in function or type, by its row in a table.
#[derive(Clone, Copy)]
pub struct Builtin(pub &'static BuiltinFn);

pub struct BuiltinFn {
    pub name: &'static str,
    pub call: fn(&mut Stage, &PyArgs) -> Result<Value>,
}

impl PartialEq for Builtin {
    fn eq(&self, other: &Builtin) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}
impl Eq for Builtin {}
impl std::fmt::Debug for Builtin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name)
    }
}
impl std::fmt::Debug for BuiltinFn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Evaluated arguments of a call.
#[derive(Debug)]
pub struct PyArgs {
    pub args: Vec<Value>,
    pub keywords: Vec<Keyword>,
    pub span: Span,
}

impl PyArgs {
    pub fn span(&self) -> Span {
        self.span
    }

    /// The arguments, when there are between `min` and `max` of them and no keywords.
    pub fn positional(
        &self,
        stage: &Stage,
        name: &str,
        min: usize,
        max: usize,
    ) -> Result<&[Value]> {
        if let Some(keyword) = self.keywords.first() {
            let text = stage.symbols.text(keyword.name);
            let message = format!("`{name}` takes no keyword `{text}` here");
            return Err(stage
                .error(codes::UNKNOWN_KEYWORD, keyword.span, message)
                .into());
        }
        self.counted(stage, name, min, max)
    }

    /// The positional arguments, when there are between `min` and `max` of them.
    pub fn counted(&self, stage: &Stage, name: &str, min: usize, max: usize) -> Result<&[Value]> {
        let n = self.args.len();
        if n < min || n > max {
            let wanted = match (min, max) {
                (a, b) if a == b => format!("{a}"),
                (a, usize::MAX) => format!("at least {a}"),
                (a, b) => format!("{a} to {b}"),
            };
            let message = format!("`{name}` takes {wanted} arguments, {n} are given");
            return Err(stage.error(codes::WRONG_ARITY, self.span(), message).into());
        }
        Ok(&self.args)
    }

    pub fn keyword(&self, stage: &Stage, name: &str) -> Option<&Value> {
        let keyword = self
            .keywords
            .iter()
            .find(|k| &**stage.symbols.text(k.name) == name)?;
        Some(&keyword.value)
    }
}

/// The built-in of this name.
pub fn lookup(name: &str) -> Option<Value> {
    BUILTINS
        .iter()
        .find(|b| b.name == name)
        .map(|b| Value::Builtin(Builtin(b)))
}

pub fn names() -> impl Iterator<Item = &'static str> {
    BUILTINS.iter().map(|b| b.name)
}

const fn row(name: &'static str, call: fn(&mut Stage, &PyArgs) -> Result<Value>) -> BuiltinFn {
    BuiltinFn { name, call }
}

static BUILTINS: &[BuiltinFn] = &[
    row("abs", abs),
    row("all", all),
    row("any", any),
    row("bin", |s, a| radix(s, a, "bin", 'b')),
    row("bool", bool_),
    row("callable", callable),
    row("chr", chr),
    row("dict", dict),
    row("divmod", divmod),
    row("enumerate", enumerate),
    row("filter", filter),
    row("float", float),
    row("format", format),
    row("frozenset", set),
    row("getattr", getattr),
    row("hasattr", hasattr),
    row("hex", |s, a| radix(s, a, "hex", 'x')),
    row("int", int),
    row("isinstance", isinstance),
    row("iter", |s, a| list_of(s, a, "iter")),
    row("len", len),
    row("list", |s, a| list_of(s, a, "list")),
    row("map", map),
    row("max", |s, a| extreme(s, a, "max", Ordering::Greater)),
    row("min", |s, a| extreme(s, a, "min", Ordering::Less)),
    row("next", next),
    row("oct", |s, a| radix(s, a, "oct", 'o')),
    row("ord", ord),
    row("pow", pow),
    row("print", print),
    row("range", range),
    row("repr", repr),
    row("reversed", reversed),
    row("round", round),
    row("set", set),
    row("slice", slice),
    row("sorted", sorted),
    row("str", str_),
    row("sum", sum),
    row("tuple", tuple),
    row("type", type_),
    row("zip", zip),
];

fn abs(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "abs", 1, 1)?;
    match &args[0] {
        Value::Float(f) => Ok(Value::Float(f.abs())),
        v => match v.as_int() {
            Some(i) => match i.checked_abs() {
                Some(i) => Ok(Value::Int(i)),
                None => Err(stage
                    .error(codes::INT_OVERFLOW, a.span(), "abs overflows")
                    .into()),
            },
            None if v.is_runtime() => {
                let help = "write `T.abs(x)`";
                Err(stage
                    .error(codes::WRONG_TYPE, a.span(), "`abs` of a run-time value")
                    .help(help)
                    .into())
            }
            None => Err(stage.rec.wrong_type("a number", v, a.span())),
        },
    }
}

fn all(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "all", 1, 1)?;
    for item in stage.iterate(&args[0], a.span())? {
        if !stage.rec.truth(&item, a.span())? {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn any(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "any", 1, 1)?;
    for item in stage.iterate(&args[0], a.span())? {
        if stage.rec.truth(&item, a.span())? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn radix(stage: &mut Stage, a: &PyArgs, name: &str, kind: char) -> Result<Value> {
    let args = a.positional(stage, name, 1, 1)?;
    let text = stage.format_value(&args[0], &format!("#{kind}"), a.span())?;
    Ok(Value::str(text))
}

fn bool_(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "bool", 0, 1)?;
    match args.first() {
        Some(v) => Ok(Value::Bool(stage.rec.truth(v, a.span())?)),
        None => Ok(Value::Bool(false)),
    }
}

fn callable(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "callable", 1, 1)?;
    if let Value::Host(object) = &args[0] {
        return Ok(Value::Bool(object.callable()));
    }
    Ok(Value::Bool(matches!(
        args[0],
        Value::Function(_)
            | Value::Builtin(_)
            | Value::Method(_)
            | Value::Lang(_)
            | Value::Staged(_)
            | Value::Class(_)
            | Value::DType(_)
    )))
}

fn chr(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "chr", 1, 1)?;
    let code = stage.rec.to_int(&args[0], a.span(), "the code point")?;
    match u32::try_from(code).ok().and_then(char::from_u32) {
        Some(c) => Ok(Value::str(c.to_string())),
        None => {
            let message = format!("{code} is no code point");
            Err(stage.error(codes::PYTHON_ERROR, a.span(), message).into())
        }
    }
}

pub(super) fn dict(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.counted(stage, "dict", 0, 1)?;
    let mut dict = Dict::default();
    match args.first() {
        Some(Value::Dict(other)) => dict = other.borrow().clone(),
        Some(pairs) => {
            for pair in stage.iterate(pairs, a.span())? {
                let Some([key, value]) =
                    pair.sequence().and_then(|p| <[Value; 2]>::try_from(p).ok())
                else {
                    return Err(stage
                        .rec
                        .wrong_type("pairs of key and value", &pair, a.span()));
                };
                let hash = stage.hash(&key, a.span())?;
                dict.insert(hash, Entry { key, value });
            }
        }
        None => {}
    }
    for keyword in &a.keywords {
        let key = Value::Str(stage.symbols.text(keyword.name).clone());
        let hash = stage.hash(&key, keyword.span)?;
        let value = keyword.value.clone();
        dict.insert(hash, Entry { key, value });
    }
    stage.rec.check_items(dict.len(), a.span())?;
    Ok(Value::Dict(Rc::new(dict.into())))
}

fn divmod(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "divmod", 2, 2)?.to_vec();
    use crate::syntax::ast::BinOp;
    let q = stage.binop(BinOp::FloorDiv, &args[0], &args[1], a.span())?;
    let r = stage.binop(BinOp::Mod, &args[0], &args[1], a.span())?;
    Ok(Value::tuple(vec![q, r]))
}

fn enumerate(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.counted(stage, "enumerate", 1, 2)?;
    let start = match args.get(1).or_else(|| a.keyword(stage, "start")) {
        Some(v) => stage.rec.to_int(v, a.span(), "the start")?,
        None => 0,
    };
    let items = stage.iterate(&args[0], a.span())?;
    let pairs = items
        .into_iter()
        .enumerate()
        .map(|(i, v)| Value::tuple(vec![Value::Int(start + i as i128), v]));
    Ok(Value::list(pairs.collect()))
}

fn filter(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "filter", 2, 2)?;
    let mut kept = Vec::new();
    for item in stage.iterate(&args[1], a.span())? {
        let test = match &args[0] {
            Value::None => item.clone(),
            f => stage.call_value(f, vec![item.clone()], a.span())?,
        };
        if stage.rec.truth(&test, a.span())? {
            kept.push(item);
        }
    }
    Ok(Value::list(kept))
}

fn float(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "float", 0, 1)?;
    match args.first() {
        None => Ok(Value::Float(0.0)),
        Some(Value::Str(s)) => match s.trim().replace('_', "").parse::<f64>() {
            Ok(f) => Ok(Value::Float(f)),
            Err(_) => {
                let message = format!("`{s}` is no float");
                Err(stage.error(codes::PYTHON_ERROR, a.span(), message).into())
            }
        },
        Some(v) if v.is_runtime() => {
            let e = stage
                .rec
                .to_expr_as(v, tilewright_ir::DType::F32, a.span())?;
            Ok(Value::Expr(e))
        }
        Some(v) => match v.as_float() {
            Some(f) => Ok(Value::Float(f)),
            None => Err(stage.rec.wrong_type("a number", v, a.span())),
        },
    }
}

fn format(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "format", 1, 2)?;
    let spec = match args.get(1) {
        Some(Value::Str(s)) => s.clone(),
        Some(v) => return Err(stage.rec.wrong_type("a format string", v, a.span())),
        None => Rc::from(""),
    };
    Ok(Value::str(stage.format_value(&args[0], &spec, a.span())?))
}

fn getattr(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "getattr", 2, 3)?;
    let Value::Str(name) = &args[1] else {
        return Err(stage.rec.wrong_type("a string", &args[1], a.span()));
    };
    match (stage.attribute(&args[0], name, a.span()), args.get(2)) {
        (Err(_), Some(default)) => Ok(default.clone()),
        (result, _) => result,
    }
}

fn hasattr(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "hasattr", 2, 2)?;
    let Value::Str(name) = &args[1] else {
        return Err(stage.rec.wrong_type("a string", &args[1], a.span()));
    };
    let found = stage.attribute(&args[0], name, a.span()).is_ok();
    Ok(Value::Bool(found))
}

fn int(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "int", 0, 2)?;
    let bad = |stage: &Stage, text: String| -> Error {
        stage.error(codes::PYTHON_ERROR, a.span(), text).into()
    };
    match args.first() {
        None => Ok(Value::Int(0)),
        Some(Value::Str(s)) => {
            let radix = match args.get(1) {
                Some(v) => stage.rec.to_int(v, a.span(), "the base")?,
                None => 10,
            };
            let text = s.trim().replace('_', "");
            let digits = text.trim_start_matches("0x").trim_start_matches("0b");
            let parsed = match radix {
                10 => text.parse().ok(),
                2..=36 => i128::from_str_radix(digits, radix as u32).ok(),
                _ => None,
            };
            parsed
                .map(Value::Int)
                .ok_or_else(|| bad(stage, format!("`{s}` is no integer of base {radix}")))
        }
        Some(Value::Float(f)) if f.is_finite() && f.abs() < 1e37 => Ok(Value::Int(*f as i128)),
        Some(Value::Float(f)) => Err(bad(stage, format!("`{f}` has no integer value"))),
        Some(v) if v.is_runtime() => {
            let e = stage
                .rec
                .to_expr_as(v, tilewright_ir::DType::I32, a.span())?;
            Ok(Value::Expr(e))
        }
        Some(v) => match v.as_int() {
            Some(i) => Ok(Value::Int(i)),
            None => Err(stage.rec.wrong_type("a number", v, a.span())),
        },
    }
}

fn isinstance(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "isinstance", 2, 2)?;
    let types = match args[1].sequence() {
        Some(types) => types,
        None => vec![args[1].clone()],
    };
    for t in &types {
        if instance_of(&args[0], t) {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn instance_of(value: &Value, class: &Value) -> bool {
    let name = match class {
        Value::Builtin(b) => b.0.name,
        Value::Lang(f) => f.name,
        Value::Opaque(o) => o.name.rsplit('.').next().unwrap_or_default(),
        _ => return false,
    };
    match name {
        "int" => matches!(value, Value::Int(_) | Value::Dim(_) | Value::Bool(_)),
        "bool" => matches!(value, Value::Bool(_)),
        "float" => matches!(value, Value::Float(_)),
        "str" => matches!(value, Value::Str(_)),
        "list" => matches!(value, Value::List(_)),
        "tuple" => matches!(value, Value::Tuple(_)),
        "dict" => matches!(value, Value::Dict(_)),
        "set" => matches!(value, Value::Set(_)),
        "slice" => matches!(value, Value::Slice(_)),
        "range" => matches!(value, Value::Range(_)),
        "dtype" => matches!(value, Value::DType(_)),
        "Buffer" | "Tensor" => matches!(value, Value::Buffer(_)),
        "PrimExpr" | "Expr" | "Var" => value.is_runtime(),
        "BufferRegion" => matches!(value, Value::Region(_)),
        "Callable" => matches!(value, Value::Function(_) | Value::Staged(_)),
        _ => false,
    }
}

fn len(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "len", 1, 1)?;
    let n = match &args[0] {
        Value::Str(s) => s.chars().count(),
        Value::Tuple(items) => items.len(),
        Value::List(items) => items.borrow().len(),
        Value::Dict(items) | Value::Set(items) => items.borrow().len(),
        Value::Range(r) => usize::try_from(r.len()).unwrap_or(usize::MAX),
        Value::Buffer(b) => match stage.rec.buffer(*b).shape.first() {
            Some(extent) => return Ok(stage.expr_value(extent.clone())),
            None => {
                return Err(stage
                    .rec
                    .wrong_type("something with a length", &args[0], a.span()));
            }
        },
        v => return Err(stage.rec.wrong_type("something with a length", v, a.span())),
    };
    Ok(Value::Int(n as i128))
}

fn list_of(stage: &mut Stage, a: &PyArgs, name: &str) -> Result<Value> {
    let args = a.positional(stage, name, 0, 1)?;
    match args.first() {
        Some(v) => Ok(Value::list(stage.iterate(v, a.span())?)),
        None => Ok(Value::list(Vec::new())),
    }
}

fn map(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "map", 2, usize::MAX)?;
    let columns = args[1..]
        .iter()
        .map(|v| stage.iterate(v, a.span()))
        .collect::<Result<Vec<_>>>()?;
    let rows = columns.iter().map(Vec::len).min().unwrap_or(0);
    let mut out = Vec::with_capacity(rows);
    for i in 0..rows {
        let row = columns.iter().map(|c| c[i].clone()).collect();
        out.push(stage.call_value(&args[0], row, a.span())?);
    }
    Ok(Value::list(out))
}

fn extreme(stage: &mut Stage, a: &PyArgs, name: &str, wanted: Ordering) -> Result<Value> {
    let args = a.counted(stage, name, 1, usize::MAX)?;
    let items = match args {
        [one] => stage.iterate(one, a.span())?,
        many => many.to_vec(),
    };
    let key = a.keyword(stage, "key").cloned();
    let mut items = items.into_iter();
    let Some(mut best) = items.next() else {
        return match a.keyword(stage, "default") {
            Some(v) => Ok(v.clone()),
            None => {
                let message = format!("`{name}` of nothing");
                Err(stage.error(codes::PYTHON_ERROR, a.span(), message).into())
            }
        };
    };
    for item in items {
        if best.is_runtime() || item.is_runtime() {
            // On run-time numbers `max` means the language's maximum.
            let op = if wanted == Ordering::Greater {
                BinOp::Max
            } else {
                BinOp::Min
            };
            best = stage.rec.binary(op, &best, &item, a.span())?;
            continue;
        }
        let (x, y) = match &key {
            Some(f) => (
                stage.call_value(f, vec![item.clone()], a.span())?,
                stage.call_value(f, vec![best.clone()], a.span())?,
            ),
            None => (item.clone(), best.clone()),
        };
        if stage.order(&x, &y, a.span(), "<")? == Some(wanted) {
            best = item;
        }
    }
    Ok(best)
}

fn next(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "next", 1, 2)?;
    let first = match &args[0] {
        // An iterator here is a list that is used up from its front.
        Value::List(items) if !items.borrow().is_empty() => Some(items.borrow_mut().remove(0)),
        Value::List(_) => None,
        v => return Err(stage.rec.wrong_type("an iterator", v, a.span())),
    };
    match (first, args.get(1)) {
        (Some(v), _) => Ok(v),
        (None, Some(default)) => Ok(default.clone()),
        (None, None) => {
            let message = "the iterator is used up";
            Err(stage.error(codes::PYTHON_ERROR, a.span(), message).into())
        }
    }
}

fn ord(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "ord", 1, 1)?;
    let mut chars = args[0].as_str().map(|s| s.chars());
    match chars.as_mut().and_then(|c| Some((c.next()?, c.next()))) {
        Some((c, None)) => Ok(Value::Int(i128::from(u32::from(c)))),
        _ => Err(stage
            .rec
            .wrong_type("a string of one character", &args[0], a.span())),
    }
}

/// What Python prints while the kernel is built, handed to the user as a note. Values that are
/// known only when the kernel runs are shown as what they are, with a warning.
fn print(stage: &mut Stage, args: &PyArgs) -> Result<Value> {
    let text: Vec<String> = args.args.iter().map(|v| stage.display(v)).collect();
    let text = text.join(" ");
    let late = args.args.iter().any(Value::is_block_bound);
    let said = match late {
        true => Diagnostic::warning(
            codes::PYTHON_PRINT,
            args.span,
            format!("`print` shows the expression, not its value: {text}"),
        )
        .note("it runs once, when the kernel is built")
        .help("write `T.print(x)` to see a value when the kernel runs"),
        false => Diagnostic::new(
            Severity::Note,
            codes::PYTHON_PRINT,
            args.span,
            format!("printed when the kernel is built: {text}"),
        ),
    };
    stage.rec.warn(said);
    Ok(Value::None)
}

fn pow(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "pow", 2, 2)?.to_vec();
    stage.binop(crate::syntax::ast::BinOp::Pow, &args[0], &args[1], a.span())
}

/// A Python range, or a serial loop when a bound is a run-time value.
fn range(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "range", 1, 3)?.to_vec();
    if let Some(f) = args.iter().find(|v| matches!(v, Value::Float(_))) {
        return Err(stage.rec.wrong_type("an int", f, a.span()));
    }
    if let Some(ints) = args.iter().map(Value::as_int).collect::<Option<Vec<_>>>() {
        let (start, stop, step) = match *ints.as_slice() {
            [stop] => (0, stop, 1),
            [start, stop] => (start, stop, 1),
            _ => (ints[0], ints[1], ints[2]),
        };
        if step == 0 {
            return Err(stage
                .error(codes::BAD_LOOP, a.span(), "a range with step zero")
                .into());
        }
        return Ok(Value::Range(PyRange { start, stop, step }));
    }
    let axis = stage.rec.axis(&args, a.span())?;
    let kind = tilewright_ir::LoopKind::Serial;
    Ok(Value::Loop(Rc::new(LoopSpec::new(kind, vec![axis]))))
}

fn repr(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "repr", 1, 1)?;
    Ok(Value::str(stage.repr(&args[0])))
}

fn reversed(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "reversed", 1, 1)?;
    let mut items = stage.iterate(&args[0], a.span())?;
    items.reverse();
    Ok(Value::list(items))
}

fn round(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "round", 1, 2)?;
    let Some(v) = args[0].as_float() else {
        return Err(stage.rec.wrong_type("a number", &args[0], a.span()));
    };
    match args.get(1) {
        None if args[0].as_int().is_some() => Ok(args[0].clone()),
        None if v.abs() < 1e30 => Ok(Value::Int(v.round_ties_even() as i128)),
        None => {
            let message = format!("`{v}` has no integer value");
            Err(stage.error(codes::PYTHON_ERROR, a.span(), message).into())
        }
        Some(n) => {
            let n = stage
                .rec
                .to_int(n, a.span(), "the number of digits")?
                .clamp(0, 17);
            let text = format!("{v:.*}", n as usize);
            Ok(Value::Float(text.parse().unwrap_or(v)))
        }
    }
}

fn set(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "set", 0, 1)?;
    let items = match args.first() {
        Some(v) => stage.iterate(v, a.span())?,
        None => Vec::new(),
    };
    stage.set_of(items, a.span())
}

fn slice(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "slice", 1, 3)?;
    let at = |i: usize| args.get(i).cloned().unwrap_or(Value::None);
    let (lower, upper, step) = match args.len() {
        1 => (Value::None, at(0), Value::None),
        _ => (at(0), at(1), at(2)),
    };
    Ok(Value::Slice(Rc::new(SliceValue { lower, upper, step })))
}

fn sorted(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.counted(stage, "sorted", 1, 1)?;
    let items = stage.iterate(&args[0], a.span())?;
    let key = a.keyword(stage, "key").cloned();
    let reverse = match a.keyword(stage, "reverse") {
        Some(v) => stage.rec.truth(v, a.span())?,
        None => false,
    };
    Ok(Value::list(stage.sort(items, key, reverse, a.span())?))
}

fn str_(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "str", 0, 1)?;
    match args.first() {
        Some(v) => Ok(Value::str(stage.display(v))),
        None => Ok(Value::str("")),
    }
}

fn sum(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.counted(stage, "sum", 1, 2)?;
    let mut total = match args.get(1).or_else(|| a.keyword(stage, "start")) {
        Some(v) => v.clone(),
        None => Value::Int(0),
    };
    for item in stage.iterate(&args[0], a.span())? {
        total = stage.binop(crate::syntax::ast::BinOp::Add, &total, &item, a.span())?;
    }
    Ok(total)
}

fn tuple(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "tuple", 0, 1)?;
    match args.first() {
        Some(v) => Ok(Value::tuple(stage.iterate(v, a.span())?)),
        None => Ok(Value::tuple(Vec::new())),
    }
}

fn type_(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let args = a.positional(stage, "type", 1, 1)?;
    let name = match &args[0] {
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Dim(_) => "int",
        Value::Float(_) => "float",
        Value::Str(_) => "str",
        Value::Tuple(_) => "tuple",
        Value::List(_) => "list",
        Value::Dict(_) => "dict",
        other => {
            return Ok(Value::Opaque(Rc::new(Opaque {
                name: format!("type({})", other.type_name()),
                reason: OpaqueReason::ForeignModule,
            })));
        }
    };
    lookup(name).ok_or_else(|| {
        stage
            .rec
            .wrong_type("a value with a type", &args[0], a.span())
    })
}

fn zip(stage: &mut Stage, a: &PyArgs) -> Result<Value> {
    let columns = a
        .args
        .iter()
        .map(|v| stage.iterate(v, a.span()))
        .collect::<Result<Vec<_>>>()?;
    let rows = columns.iter().map(Vec::len).min().unwrap_or(0);
    stage
        .rec
        .check_items(rows * columns.len().max(1), a.span())?;
    let tuples = (0..rows).map(|i| Value::tuple(columns.iter().map(|c| c[i].clone()).collect()));
    Ok(Value::list(tuples.collect()))
}
