//! `str`, `repr`, f-strings, format specs.

use std::fmt::Write;
use std::rc::Rc;

use tilewright_ir::Span;

use crate::codes;
use crate::eval::Stage;
use crate::record::MAX_ITEMS;
use crate::syntax::ast::FStringPart;
use crate::value::{Decorator, Value};
use crate::{Error, Result};

/// Levels of containers printed before `...`; a list may contain itself.
const MAX_PRINT_DEPTH: u32 = 20;

impl Stage {
    /// Python's `str(value)`.
    pub(crate) fn display(&self, value: &Value) -> String {
        match value {
            Value::Str(s) => s.to_string(),
            _ => self.repr(value),
        }
    }

    /// Python's `repr(value)`.
    pub(crate) fn repr(&self, value: &Value) -> String {
        let mut out = String::new();
        self.write_repr(value, &mut out, MAX_PRINT_DEPTH);
        out
    }

    fn write_repr(&self, value: &Value, out: &mut String, depth: u32) {
        if depth == 0 || out.len() > MAX_ITEMS {
            out.push_str("...");
            return;
        }
        match value {
            Value::None => out.push_str("None"),
            Value::Ellipsis => out.push_str("Ellipsis"),
            Value::Bool(b) => out.push_str(if *b { "True" } else { "False" }),
            Value::Int(_) | Value::Dim(_) => {
                let _ = write!(out, "{}", value.as_int().unwrap_or(0));
            }
            Value::Float(f) => out.push_str(&float_repr(*f)),
            Value::Str(s) => out.push_str(&quote(s)),
            Value::Tuple(items) => {
                out.push('(');
                self.write_items(items, out, depth);
                out.push_str(if items.len() == 1 { ",)" } else { ")" });
            }
            Value::List(items) => {
                out.push('[');
                self.write_items(&items.borrow(), out, depth);
                out.push(']');
            }
            Value::Dict(items) => {
                out.push('{');
                for (i, entry) in items.borrow().values().enumerate() {
                    if i > 0 {
                        out.push_str(", ");
                    }
                    self.write_repr(&entry.key, out, depth - 1);
                    out.push_str(": ");
                    self.write_repr(&entry.value, out, depth - 1);
                }
                out.push('}');
            }
            Value::Set(items) => {
                let items: Vec<Value> = items.borrow().values().map(|e| e.key.clone()).collect();
                if items.is_empty() {
                    out.push_str("set()");
                } else {
                    out.push('{');
                    self.write_items(&items, out, depth);
                    out.push('}');
                }
            }
            Value::Range(r) => {
                let _ = match r.step {
                    1 => write!(out, "range({}, {})", r.start, r.stop),
                    step => write!(out, "range({}, {}, {step})", r.start, r.stop),
                };
            }
            Value::DType(d) => {
                let _ = write!(out, "{d}");
            }
            Value::Buffer(b) => out.push_str(self.rec.buffer_name(*b).trim_matches('`')),
            Value::Opaque(o) => out.push_str(&o.name),
            Value::Host(object) => out.push_str(&object.text(true)),
            Value::Lang(f) => {
                let _ = write!(out, "T.{}", f.name);
            }
            Value::Function(f) => {
                let _ = write!(out, "<function {}>", self.symbols.text(f.def.name.sym));
            }
            Value::Staged(f) => {
                let _ = write!(out, "<{}>", self.symbols.text(f.closure.def.name.sym));
            }
            Value::Class(c) => {
                let _ = write!(out, "<class {}>", c.name);
            }
            Value::Decorator(d) => {
                let name = match **d {
                    Decorator::PrimFunc => "prim_func",
                    Decorator::Macro => "macro",
                    Decorator::Jit(_) => "jit",
                    Decorator::Autotune(_) => "autotune",
                    Decorator::Ignored => "decorator",
                };
                let _ = write!(out, "<{name}>");
            }
            Value::Slice(_)
            | Value::Expr(_)
            | Value::Element(_)
            | Value::Ref(_)
            | Value::Region(_)
            | Value::Loop(_)
            | Value::Frame(_)
            | Value::Object(_)
            | Value::Builtin(_)
            | Value::Method(_)
            | Value::Module(_) => {
                let _ = write!(out, "<{}>", value.type_name());
            }
        }
    }

    fn write_items(&self, items: &[Value], out: &mut String, depth: u32) {
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            self.write_repr(item, out, depth - 1);
        }
    }

    pub(crate) fn fstring(&mut self, parts: &[FStringPart], span: Span) -> Result<Value> {
        let mut out = String::new();
        self.fstring_into(parts, &mut out, span)?;
        Ok(Value::str(out))
    }

    fn fstring_into(&mut self, parts: &[FStringPart], out: &mut String, span: Span) -> Result<()> {
        for part in parts {
            match part {
                FStringPart::Text(text) => out.push_str(text),
                FStringPart::Value {
                    expr,
                    conversion,
                    spec,
                    debug,
                } => {
                    let value = self.eval(expr)?;
                    if let Some(text) = debug {
                        out.push_str(text);
                    }
                    let mut format = String::new();
                    self.fstring_into(spec, &mut format, span)?;
                    let repr = match conversion {
                        Some('r' | 'a') => true,
                        Some(_) => false,
                        None => debug.is_some() && format.is_empty(),
                    };
                    let text = if repr {
                        self.format_value(&Value::str(self.repr(&value)), &format, expr.span)?
                    } else {
                        self.format_value(&value, &format, expr.span)?
                    };
                    self.rec.check_items(out.len() + text.len(), span)?;
                    out.push_str(&text);
                }
            }
        }
        Ok(())
    }

    /// Python's `format(value, spec)`.
    pub(crate) fn format_value(&mut self, value: &Value, spec: &str, span: Span) -> Result<String> {
        if let Value::Opaque(o) = value {
            return Err(self.rec.opaque_error(o, span));
        }
        if let Value::Host(_) = value
            && let Some(host) = self.host.clone()
            && let Some(Value::Host(format)) = host.builtin(self, "format", span)?
        {
            let args = [value.clone(), Value::str(spec)];
            let text = format.call(self, &args, &[], span)?;
            return Ok(self.display(&text));
        }
        if spec.is_empty() {
            return Ok(self.display(value));
        }
        let Some(spec_) = Spec::parse(spec) else {
            return Err(self.bad_format(spec, span));
        };
        self.rec
            .check_items(spec_.width.max(spec_.precision.unwrap_or(0)), span)?;
        let body = match (value, spec_.kind) {
            (Value::Str(s), None | Some('s')) => match spec_.precision {
                Some(p) => s.chars().take(p).collect(),
                None => s.to_string(),
            },
            (_, Some(kind @ ('d' | 'x' | 'X' | 'b' | 'o'))) => match value.as_int() {
                Some(v) => int_text(v, kind, spec_.alternate, spec_.thousands),
                None => return Err(self.bad_format(spec, span)),
            },
            (_, Some(kind @ ('f' | 'F' | 'e' | 'E' | 'g' | '%'))) => match value.as_float() {
                Some(v) => float_text(v, kind, spec_.precision.unwrap_or(6), spec_.thousands),
                None => return Err(self.bad_format(spec, span)),
            },
            (Value::Float(v), None) => match spec_.precision {
                Some(p) => float_text(*v, 'g', p, spec_.thousands),
                None => float_repr(*v),
            },
            (_, None) => match value.as_int() {
                Some(v) if !matches!(value, Value::Bool(_)) => {
                    int_text(v, 'd', false, spec_.thousands)
                }
                _ => self.display(value),
            },
            _ => return Err(self.bad_format(spec, span)),
        };
        let numeric = value.as_float().is_some();
        Ok(spec_.pad(body, numeric))
    }

    fn bad_format(&self, spec: &str, span: Span) -> Error {
        self.error(
            codes::PYTHON_ERROR,
            span,
            format!("the format `{spec}` does not fit this value"),
        )
        .into()
    }

    /// `"%d x %s" % args`
    pub(crate) fn percent_format(
        &mut self,
        format: &Rc<str>,
        args: &Value,
        span: Span,
    ) -> Result<Value> {
        let args = match args {
            Value::Tuple(items) => items.to_vec(),
            other => vec![other.clone()],
        };
        let mut args = args.iter();
        let mut out = String::new();
        let mut rest = &**format;
        while let Some(at) = rest.find('%') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let end = rest
                .find(|c: char| c.is_ascii_alphabetic() || c == '%')
                .map_or(rest.len(), |i| i + 1);
            let (spec, tail) = rest.split_at(end);
            rest = tail;
            if spec == "%" {
                out.push('%');
                continue;
            }
            let Some(value) = args.next() else {
                let message = "not enough values for the format string";
                return Err(self.error(codes::PYTHON_ERROR, span, message).into());
            };
            let text = match spec {
                "s" => self.display(value),
                "r" => self.repr(value),
                _ => self.format_value(value, &spec.replace('i', "d"), span)?,
            };
            out.push_str(&text);
            self.rec.check_items(out.len(), span)?;
        }
        out.push_str(rest);
        if args.next().is_some() {
            let message = "too many values for the format string";
            return Err(self.error(codes::PYTHON_ERROR, span, message).into());
        }
        Ok(Value::str(out))
    }
}

/// `[[fill]align][sign][#][0][width][,][.precision][type]`
#[derive(Debug, Default)]
struct Spec {
    fill: char,
    align: Option<char>,
    plus: bool,
    alternate: bool,
    width: usize,
    thousands: bool,
    precision: Option<usize>,
    kind: Option<char>,
}

impl Spec {
    fn parse(text: &str) -> Option<Spec> {
        let chars: Vec<char> = text.chars().collect();
        let mut at = 0;
        let mut spec = Spec {
            fill: ' ',
            ..Spec::default()
        };
        let is_align = |c: Option<&char>| matches!(c, Some('<' | '>' | '^' | '='));
        if is_align(chars.get(1)) {
            spec.fill = chars[0];
            spec.align = Some(chars[1]);
            at = 2;
        } else if is_align(chars.first()) {
            spec.align = Some(chars[0]);
            at = 1;
        }
        if let Some('+' | '-' | ' ') = chars.get(at) {
            spec.plus = chars[at] == '+';
            at += 1;
        }
        if chars.get(at) == Some(&'#') {
            spec.alternate = true;
            at += 1;
        }
        if chars.get(at) == Some(&'0') {
            if spec.align.is_none() {
                spec.fill = '0';
                spec.align = Some('=');
            }
            at += 1;
        }
        let number = |at: &mut usize| -> Option<usize> {
            let start = *at;
            while chars.get(*at).is_some_and(char::is_ascii_digit) {
                *at += 1;
            }
            let digits: String = chars[start..*at].iter().collect();
            digits.parse().ok()
        };
        spec.width = number(&mut at).unwrap_or(0);
        if let Some(',' | '_') = chars.get(at) {
            spec.thousands = true;
            at += 1;
        }
        if chars.get(at) == Some(&'.') {
            at += 1;
            spec.precision = Some(number(&mut at)?);
        }
        if at < chars.len() {
            spec.kind = Some(chars[at]);
            at += 1;
        }
        (at == chars.len()).then_some(spec)
    }

    fn pad(&self, mut body: String, numeric: bool) -> String {
        if self.plus && numeric && !body.starts_with('-') {
            body.insert(0, '+');
        }
        let len = body.chars().count();
        let missing = self.width.saturating_sub(len);
        let fill = |n: usize| std::iter::repeat_n(self.fill, n).collect::<String>();
        match self.align.unwrap_or(if numeric { '>' } else { '<' }) {
            '<' => body + &fill(missing),
            '^' => fill(missing / 2) + &body + &fill(missing - missing / 2),
            '=' => {
                let sign = body.len() - body.trim_start_matches(['-', '+']).len();
                let (sign, digits) = body.split_at(sign);
                format!("{sign}{}{digits}", fill(missing))
            }
            _ => fill(missing) + &body,
        }
    }
}

fn int_text(v: i128, kind: char, alternate: bool, thousands: bool) -> String {
    let sign = if v < 0 { "-" } else { "" };
    let abs = v.unsigned_abs();
    let (prefix, digits) = match kind {
        'x' => ("0x", format!("{abs:x}")),
        'X' => ("0X", format!("{abs:X}")),
        'b' => ("0b", format!("{abs:b}")),
        'o' => ("0o", format!("{abs:o}")),
        _ => ("", abs.to_string()),
    };
    let digits = if thousands { group(&digits) } else { digits };
    let prefix = if alternate { prefix } else { "" };
    format!("{sign}{prefix}{digits}")
}

fn float_text(v: f64, kind: char, precision: usize, thousands: bool) -> String {
    if !v.is_finite() {
        return float_repr(v);
    }
    let text = match kind {
        'e' | 'E' => exponent(v, precision),
        'g' => {
            // Significant digits, trailing zeros dropped.
            let p = precision.max(1);
            let exp = if v == 0.0 {
                0
            } else {
                v.abs().log10().floor() as i32
            };
            if exp < -4 || exp >= p as i32 {
                trim_zeros(&exponent(v, p - 1))
            } else {
                trim_zeros(&format!("{v:.*}", (p as i32 - 1 - exp).max(0) as usize))
            }
        }
        '%' => format!("{:.precision$}%", v * 100.0),
        _ => format!("{v:.precision$}"),
    };
    match thousands {
        true => match text.split_once('.') {
            Some((whole, rest)) => format!("{}.{rest}", group(whole)),
            None => group(&text),
        },
        false => text,
    }
}

fn exponent(v: f64, precision: usize) -> String {
    let text = format!("{v:.precision$e}");
    let Some((mantissa, exp)) = text.split_once('e') else {
        return text;
    };
    let exp: i32 = exp.parse().unwrap_or(0);
    let sign = if exp < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exp.abs())
}

fn trim_zeros(text: &str) -> String {
    let (mantissa, exp) = match text.split_once('e') {
        Some((m, e)) => (m, Some(e)),
        None => (text, None),
    };
    let mantissa = match mantissa.contains('.') {
        true => mantissa.trim_end_matches('0').trim_end_matches('.'),
        false => mantissa,
    };
    match exp {
        Some(e) => format!("{mantissa}e{e}"),
        None => mantissa.to_string(),
    }
}

fn group(digits: &str) -> String {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", digits),
    };
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    format!("{sign}{out}")
}

/// Python prints the shortest text that reads back as the same number.
fn float_repr(v: f64) -> String {
    if v.is_nan() {
        return "nan".to_string();
    }
    if v.is_infinite() {
        return if v > 0.0 { "inf" } else { "-inf" }.to_string();
    }
    let abs = v.abs();
    if abs != 0.0 && !(1e-4..1e16).contains(&abs) {
        let text = format!("{v:e}");
        let Some((mantissa, exp)) = text.split_once('e') else {
            return text;
        };
        let exp: i32 = exp.parse().unwrap_or(0);
        let sign = if exp < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exp.abs());
    }
    let text = format!("{v}");
    if text.contains('.') {
        text
    } else {
        text + ".0"
    }
}

fn quote(s: &str) -> String {
    let quote = if s.contains('\'') && !s.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut out = String::new();
    out.push(quote);
    for c in s.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}
