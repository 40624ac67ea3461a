//! Settings as Python literals, and the parameters of functions that take them.

use std::collections::BTreeMap;
use std::rc::Rc;

use tilewright_ir::small_float::Number;
use tilewright_ir::{DType, FileId, Param, Span};

use crate::Result;
use crate::eval::Stage;
use crate::lang::dtypes;
use crate::record::settings::SettingValue;
use crate::syntax::Symbols;
use crate::syntax::ast::{Expr, ExprKind, StmtKind, UnaryOp};
use crate::value::Value;

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
        let Some(setting) = self.rec.settings.take(name) else {
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
            return Err(self.rec.bad_setting(
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
        let vars = self.rec.func.params.iter().filter_map(|param| match param {
            Param::Scalar(var) => Some(&self.rec.func.vars[*var]),
            Param::Tensor { .. } => None,
        });
        vars.map(|v| (v.name.clone(), v.dtype, v.span)).collect()
    }

    /// Gives the kernel's scalar parameters the values that settings name and nothing else took.
    pub(crate) fn bind_scalars(&mut self) -> Result<()> {
        for (name, dtype, span) in self.scalar_params() {
            if !self.rec.settings.unused().contains(&name.as_str()) {
                continue;
            }
            let Some(setting) = self.rec.settings.take(&name) else {
                continue;
            };
            let value = setting.scalar(dtype).map_err(|why| {
                self.rec
                    .bad_setting(span, format!("`--set {name}={setting}`: {why}"))
            })?;
            self.scalar_values.insert(name, value);
        }
        Ok(())
    }

    pub(crate) fn take_scalar_values(&mut self) -> BTreeMap<String, Number> {
        std::mem::take(&mut self.scalar_values)
    }
}
