//! What the caller says of sizes, parameters and the machine: `--set NAME=VALUE`.

use std::fmt;

use rustc_hash::FxHashSet;
use tilewright_ir::small_float::Number;
use tilewright_ir::{Code, DType, Diagnostic, Scalar, Span};

use crate::codes;
use crate::record::Recorder;
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
    pub(crate) fn value(&self) -> Value {
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

impl Recorder {
    /// How many multiprocessors the machine has.
    pub(crate) fn num_sms(&mut self, span: Span) -> Result<Value> {
        let of_target = self.target.machine().multiprocessors;
        let count = self.multiprocessors.unwrap_or(of_target);
        self.fact("num_sms", Value::Int(count.into()), span)
    }

    /// What a setting says, else what is known.
    pub(crate) fn fact(&mut self, name: &str, known: Value, span: Span) -> Result<Value> {
        let Some(setting) = self.settings.take(name) else {
            return Ok(known);
        };
        let takes = match (&setting, name) {
            (SettingValue::Int(n), "num_sms") if *n > 0 => None,
            (_, "num_sms") => Some("a positive int"),
            (SettingValue::Bool(_), "is_available") => None,
            (_, "is_available") => Some("True or False"),
            (SettingValue::Str(_) | SettingValue::None, _) => None,
            _ => Some("a string in quotes, or None"),
        };
        match takes {
            None => Ok(setting.value()),
            Some(takes) => {
                let message = format!("`--set {name}={setting}`: this takes {takes}");
                Err(self.bad_setting(span, message))
            }
        }
    }

    pub(crate) fn bad_setting(&self, span: Span, message: String) -> Error {
        setting_error(codes::BAD_SETTING, span, message).into()
    }
}

pub(crate) fn setting_error(code: Code, span: Span, message: String) -> Diagnostic {
    Diagnostic::error(code, span, message)
}
