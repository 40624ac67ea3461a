//! `--set NAME=VALUE`: values for factory parameters, `T.const` dimensions, symbols, and scalars
//! that a kernel takes at its launch.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use rustc_hash::FxHashSet;
use tilewright_ir::small_float::Number;
use tilewright_ir::{Code, DType, Diagnostic, FileId, Param, Scalar, Span};

use crate::codes;
use crate::eval::Stage;
use crate::lang::dtypes;
use crate::syntax::Symbols;
use crate::syntax::ast::{Expr, ExprKind, StmtKind, UnaryOp};
use crate::value::Value;
use crate::{Error, Result};

/// A Python literal, or the name of a dtype.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingValue {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(String),
    DType(DType),
    List(Vec<SettingValue>),
    Tuple(Vec<SettingValue>),
}

impl SettingValue {
    /// Reads `128`, `True`, `"row"`, `(1, 2)`, `float16` or `T.float16`.
    pub fn parse(text: &str) -> std::result::Result<SettingValue, String> {
        let mut symbols = Symbols::default();
        let bad = || format!("`{text}` is neither a Python literal nor the name of a dtype");
        let module =
            crate::syntax::parse_source(text.trim(), FileId(0), &mut symbols).map_err(|_| bad())?;
        match module.body.as_slice() {
            [stmt] => match &stmt.kind {
                StmtKind::Expr(e) => literal(e, &symbols, 0).ok_or_else(bad),
                _ => Err(bad()),
            },
            _ => Err(bad()),
        }
    }

    pub(super) fn value(&self) -> Value {
        match self {
            SettingValue::None => Value::None,
            SettingValue::Bool(b) => Value::Bool(*b),
            SettingValue::Int(v) => Value::Int(*v),
            SettingValue::Float(f) => Value::Float(*f),
            SettingValue::Str(s) => Value::str(s),
            SettingValue::DType(d) => Value::DType(*d),
            SettingValue::List(items) => {
                Value::list(items.iter().map(SettingValue::value).collect())
            }
            SettingValue::Tuple(items) => {
                Value::tuple(items.iter().map(SettingValue::value).collect())
            }
        }
    }
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = |f: &mut fmt::Formatter<'_>, items: &[SettingValue]| {
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    f.write_str(", ")?;
                }
                write!(f, "{item}")?;
            }
            Ok(())
        };
        match self {
            SettingValue::None => f.write_str("None"),
            SettingValue::Bool(true) => f.write_str("True"),
            SettingValue::Bool(false) => f.write_str("False"),
            SettingValue::Int(v) => write!(f, "{v}"),
            SettingValue::Float(v) => write!(f, "{v:?}"),
            SettingValue::Str(s) => write!(f, "{s:?}"),
            SettingValue::DType(d) => write!(f, "{d}"),
            SettingValue::List(list) => {
                f.write_str("[")?;
                items(f, list)?;
                f.write_str("]")
            }
            SettingValue::Tuple(list) => {
                f.write_str("(")?;
                items(f, list)?;
                f.write_str(if list.len() == 1 { ",)" } else { ")" })
            }
        }
    }
}

fn literal(e: &Expr, symbols: &Symbols, depth: u32) -> Option<SettingValue> {
    if depth > 20 {
        return None;
    }
    let items = |list: &[Expr]| {
        list.iter()
            .map(|e| literal(e, symbols, depth + 1))
            .collect::<Option<Vec<_>>>()
    };
    Some(match &e.kind {
        ExprKind::None => SettingValue::None,
        ExprKind::Bool(b) => SettingValue::Bool(*b),
        ExprKind::Int(v) => SettingValue::Int(*v),
        ExprKind::Float(f) => SettingValue::Float(*f),
        ExprKind::Str(s) => SettingValue::Str(s.to_string()),
        ExprKind::Name(name) => SettingValue::DType(dtypes::from_name(symbols.text(*name))?),
        ExprKind::Attribute(_, name) => {
            SettingValue::DType(dtypes::from_name(symbols.text(name.sym))?)
        }
        ExprKind::Unary(UnaryOp::Minus, inner) => match literal(inner, symbols, depth + 1)? {
            SettingValue::Int(v) => SettingValue::Int(v.checked_neg()?),
            SettingValue::Float(f) => SettingValue::Float(-f),
            _ => return None,
        },
        ExprKind::List(list) => SettingValue::List(items(list)?),
        ExprKind::Tuple(list) => SettingValue::Tuple(items(list)?),
        _ => return None,
    })
}

impl SettingValue {
    /// The setting as a scalar of a type; else what the type takes.
    pub fn scalar(&self, dtype: DType) -> std::result::Result<Number, String> {
        let scalar = dtype.scalar;
        let number = match (self, scalar.int_range()) {
            (SettingValue::Bool(b), _) if scalar == Scalar::Bool => {
                Some(Number::Int(i128::from(*b)))
            }
            (SettingValue::Int(v), Some((low, high))) if scalar != Scalar::Bool => {
                if !(low..=high).contains(v) {
                    return Err(format!("{dtype} holds {low} to {high}"));
                }
                Some(Number::Int(*v))
            }
            (SettingValue::Int(v), None) if scalar.is_float() => Some(Number::Float(*v as f64)),
            (SettingValue::Float(v), None) if scalar.is_float() => Some(Number::Float(*v)),
            _ => None,
        };
        number.ok_or_else(|| match scalar {
            Scalar::Bool => "the parameter takes True or False".to_string(),
            Scalar::Handle => "the parameter is a pointer and takes no value".to_string(),
            _ if scalar.is_float() => format!("the parameter takes a number ({dtype})"),
            _ => format!("the parameter takes an int ({dtype})"),
        })
    }
}

/// The settings of a compilation and which of them were used.
#[derive(Debug, Default)]
pub struct Settings {
    given: Vec<(String, SettingValue)>,
    used: FxHashSet<String>,
}

impl Settings {
    pub fn new(given: &[(String, SettingValue)]) -> Settings {
        Settings {
            given: given.to_vec(),
            used: FxHashSet::default(),
        }
    }

    /// The last value given for a name, now counted as used.
    pub fn take(&mut self, name: &str) -> Option<SettingValue> {
        let (_, value) = self.given.iter().rev().find(|(n, _)| n == name)?;
        self.used.insert(name.to_string());
        Some(value.clone())
    }

    /// Names that nothing asked for.
    pub fn unused(&self) -> Vec<&str> {
        let names = self.given.iter().map(|(n, _)| n.as_str());
        names.filter(|n| !self.used.contains(*n)).collect()
    }
}

/// What a parameter accepts, judged by its default or annotation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wanted {
    Anything,
    Int,
    Bool,
    Float,
    Str,
    DType,
}

impl Wanted {
    fn name(self) -> &'static str {
        match self {
            Wanted::Anything => "any value",
            Wanted::Int => "an int",
            Wanted::Bool => "True or False",
            Wanted::Float => "a number",
            Wanted::Str => "a string in quotes",
            Wanted::DType => "the name of a dtype, such as float16",
        }
    }
}

impl Stage {
    /// The value that a setting gives a parameter, checked against its default or annotation.
    pub(crate) fn setting_for(
        &mut self,
        name: &str,
        default: Option<&Value>,
        annotation: Option<&Expr>,
        span: Span,
    ) -> Result<Option<Value>> {
        let Some(setting) = self.settings.take(name) else {
            return Ok(None);
        };
        let wanted = self.wanted(default, annotation);
        let value = setting.value();
        let fits = match wanted {
            Wanted::Anything => true,
            Wanted::Int => matches!(value, Value::Int(_)),
            Wanted::Bool => matches!(value, Value::Bool(_)),
            Wanted::Float => matches!(value, Value::Int(_) | Value::Float(_)),
            Wanted::Str => matches!(value, Value::Str(_)),
            Wanted::DType => match &value {
                Value::DType(_) => true,
                Value::Str(s) => dtypes::from_name(s).is_some(),
                _ => false,
            },
        };
        if !fits {
            return Err(self.bad_setting(
                span,
                format!(
                    "`--set {name}={setting}`: the parameter takes {}",
                    wanted.name()
                ),
            ));
        }
        // A dtype parameter whose default is a string is compared with strings, and dtypes
        // equal their names, so either form works.
        Ok(Some(match (wanted, value) {
            (Wanted::Float, Value::Int(v)) => Value::Float(v as f64),
            (_, value) => value,
        }))
    }

    fn wanted(&self, default: Option<&Value>, annotation: Option<&Expr>) -> Wanted {
        match default {
            Some(Value::Bool(_)) => return Wanted::Bool,
            Some(Value::Int(_) | Value::Dim(_)) => return Wanted::Int,
            Some(Value::Float(_)) => return Wanted::Float,
            Some(Value::DType(_)) => return Wanted::DType,
            Some(Value::Str(s)) if dtypes::from_name(s).is_some() => return Wanted::DType,
            Some(Value::Str(_)) => return Wanted::Str,
            _ => {}
        }
        let name = match annotation.map(|a| &a.kind) {
            Some(ExprKind::Name(name)) => self.symbols.text(*name).clone(),
            Some(ExprKind::Attribute(_, name)) => self.symbols.text(name.sym).clone(),
            _ => Rc::from(""),
        };
        match &*name {
            "int" => Wanted::Int,
            "bool" => Wanted::Bool,
            "float" => Wanted::Float,
            "str" => Wanted::Anything,
            "dtype" => Wanted::DType,
            _ => Wanted::Anything,
        }
    }

    /// The kernel's scalar parameters: name, type, and where they stand.
    pub(crate) fn scalar_params(&self) -> Vec<(String, DType, Span)> {
        let vars = self.func.params.iter().filter_map(|param| match param {
            Param::Scalar(var) => Some(&self.func.vars[*var]),
            Param::Tensor { .. } => None,
        });
        vars.map(|v| (v.name.clone(), v.dtype, v.span)).collect()
    }

    /// Gives the kernel's scalar parameters the values that settings name and nothing else took.
    pub(crate) fn bind_scalars(&mut self) -> Result<()> {
        for (name, dtype, span) in self.scalar_params() {
            if !self.settings.unused().contains(&name.as_str()) {
                continue;
            }
            let Some(setting) = self.settings.take(&name) else {
                continue;
            };
            let value = setting.scalar(dtype).map_err(|why| {
                self.bad_setting(span, format!("`--set {name}={setting}`: {why}"))
            })?;
            self.scalar_values.insert(name, value);
        }
        Ok(())
    }

    pub(crate) fn take_scalar_values(&mut self) -> BTreeMap<String, Number> {
        std::mem::take(&mut self.scalar_values)
    }

    pub(crate) fn bad_setting(&self, span: Span, message: String) -> Error {
        setting_error(codes::BAD_SETTING, span, message).into()
    }
}

pub(crate) fn setting_error(code: Code, span: Span, message: String) -> Diagnostic {
    Diagnostic::error(code, span, message)
}
