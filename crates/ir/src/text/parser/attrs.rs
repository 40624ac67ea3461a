//! Attributes (`name=value` and flags) and configuration values.

use crate::diag::{Code, Diagnostic, Span};
use crate::dtype::DType;
use crate::expr::{Expr, ExprKind, F64};
use crate::func::AttrValue;
use crate::nearest::suggestion;
use crate::text::lexer::Tok;
use crate::text::parser::{Parser, Result1};

/// How deep lists may nest in configuration values.
const MAX_LIST_DEPTH: usize = 32;

impl<'t> Parser<'t> {
    /// The name of a further attribute, if one follows.
    pub(in crate::text) fn attr_name(&mut self) -> Option<(&'t str, Span)> {
        let name = self.peek_word()?;
        let span = self.here();
        self.at += 1;
        Some((name, span))
    }

    pub(in crate::text) fn unknown_attr(
        &self,
        name: &str,
        span: Span,
        known: &[&str],
    ) -> Box<Diagnostic> {
        let help = suggestion(name, known.iter().copied())
            .unwrap_or_else(|| format!("one of: {}", known.join(", ")));
        Box::new(
            Diagnostic::error(
                Code("text-unknown-attr"),
                span,
                format!("`{name}` is no attribute here"),
            )
            .help(help),
        )
    }

    /// `=expression`
    pub(in crate::text) fn eq_expr(&mut self) -> Result1<Expr> {
        self.expect("=")?;
        self.expr()
    }

    /// `=number`
    pub(in crate::text) fn eq_number<T: TryFrom<i128>>(&mut self, what: &str) -> Result1<T> {
        self.expect("=")?;
        self.number(what)
    }

    /// `[1, 2]`
    pub(super) fn numbers<T: TryFrom<i128>>(&mut self, what: &str) -> Result1<Vec<T>> {
        self.expect("[")?;
        self.list("]", |p| p.number(what))
    }

    /// A name that is no variable's: as it is, or quoted.
    pub(super) fn key(&mut self, what: &str) -> Result1<String> {
        if self.peek() == Tok::Str {
            return self.string();
        }
        self.ident(what).map(|(text, _)| text.to_string())
    }

    pub(super) fn attr_value(&mut self) -> Result1<AttrValue> {
        self.attr_value_in(0)
    }

    fn attr_value_in(&mut self, depth: usize) -> Result1<AttrValue> {
        if depth > MAX_LIST_DEPTH {
            return Err(Box::new(Diagnostic::error(
                Code("text-depth"),
                self.here(),
                format!("lists nest more than {MAX_LIST_DEPTH} levels deep"),
            )));
        }
        if self.eat("[") {
            let items = self.list("]", |p| p.attr_value_in(depth + 1))?;
            return Ok(AttrValue::List(items));
        }
        if self.peek() == Tok::Str {
            return self.string().map(AttrValue::Str);
        }
        if let Some(word) = self.peek_word() {
            let value = match word {
                "none" => Some(AttrValue::None),
                "true" => Some(AttrValue::Bool(true)),
                "false" => Some(AttrValue::Bool(false)),
                _ => DType::from_name(word).map(AttrValue::DType),
            };
            if let Some(value) = value {
                self.at += 1;
                return Ok(value);
            }
        }
        if self.is("-") || matches!(self.peek(), Tok::Int | Tok::Float | Tok::Ident) {
            let number = self.expr()?;
            match *number.kind() {
                ExprKind::Int(value) if number.dtype() == DType::I32 => {
                    if let Ok(value) = i64::try_from(value) {
                        return Ok(AttrValue::Int(value));
                    }
                    return Err(self.out_of_range(number.span(), "a setting"));
                }
                ExprKind::Float(F64(value)) if number.dtype() == DType::F32 => {
                    return Ok(AttrValue::Float(F64(value)));
                }
                _ => {}
            }
        }
        Err(self.expected("a number, string, type, list, `true`, `false` or `none`"))
    }
}
