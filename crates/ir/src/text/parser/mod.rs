//! Parsing. Hand written, never panics, and collects what is wrong statement by statement.
//!
//! | file | parses |
//! |---|---|
//! | this one | tokens, names and scopes, errors |
//! | `expr` | expressions, without recursion |
//! | `decls` | functions, buffers, kernels, layouts |
//! | `attrs` | attributes and configuration values |
//! | `stmt` | statements, loops and blocks |
//!
//! Operations are parsed where they are printed: see [`crate::text`].
//!
//! Types of nodes follow from their operands; whether they make sense is the verifier's
//! question. A name is looked up in the enclosing blocks first; one that is bound in a block
//! already closed is found too, so that the verifier can say where it was bound.

mod attrs;
mod decls;
mod expr;
mod layout;
mod stmt;

use rustc_hash::FxHashMap;

use crate::diag::{Code, Diagnostic, FileId, Span};
use crate::dtype::DType;
use crate::func::{Func, VarKind};
use crate::ids::{Buffer, Var};
use crate::nearest::suggestion;
use crate::text::lexer::{Tok, Token, lex, unescape};
use crate::text::names::{Entity, RESERVED, without_number};
use crate::text::words::Word;

/// After so many errors the rest is not worth reading.
const MAX_ERRORS: usize = 20;

/// The one function of a text.
pub fn parse(text: &str, file: FileId) -> Result<Func, Vec<Diagnostic>> {
    let mut funcs = parse_module(text, file)?;
    match (funcs.pop(), funcs.len()) {
        (Some(func), 0) => Ok(func),
        (last, before) => {
            let count = before + last.is_some() as usize;
            let span = last.map_or(Span::new(file, 0, 0), |f| f.span);
            Err(vec![
                Diagnostic::error(
                    Code("text-func-count"),
                    span,
                    format!("expected one function, found {count}"),
                )
                .help("a file starts with `func @name level=tile {`"),
            ])
        }
    }
}

/// All functions of a text, in order.
pub fn parse_module(text: &str, file: FileId) -> Result<Vec<Func>, Vec<Diagnostic>> {
    let tokens = lex(text, file).map_err(|d| vec![*d])?;
    let mut p = Parser {
        text,
        file,
        tokens,
        at: 0,
        func: Func::new(""),
        visible: FxHashMap::default(),
        ever: FxHashMap::default(),
        scopes: Vec::new(),
        depth: 0,
        errors: Vec::new(),
    };
    let funcs = p.module();
    if p.errors.is_empty() {
        Ok(funcs)
    } else {
        Err(p.errors)
    }
}

/// An error that the statement at hand does not survive.
pub(super) type Result1<T> = Result<T, Box<Diagnostic>>;

pub(super) struct Parser<'t> {
    text: &'t str,
    file: FileId,
    /// Ends in [`Tok::End`], which is never passed.
    pub(super) tokens: Vec<Token>,
    pub(super) at: usize,
    pub(super) func: Func,
    /// What each name means here, innermost last, with the scope that says so.
    visible: FxHashMap<&'t str, Vec<(usize, Entity)>>,
    /// The last meaning of each name in the function, visible or not.
    ever: FxHashMap<&'t str, Entity>,
    /// The names declared in each open scope.
    scopes: Vec<Vec<&'t str>>,
    /// Open blocks.
    depth: usize,
    errors: Vec<Diagnostic>,
}

impl<'t> Parser<'t> {
    // ---- tokens

    pub(super) fn peek(&self) -> Tok {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Tok {
        self.tokens.get(self.at + ahead).map_or(Tok::End, |t| t.tok)
    }

    pub(super) fn token(&self) -> Token {
        let last = self.tokens.len() - 1;
        self.tokens[self.at.min(last)]
    }

    pub(super) fn next(&mut self) -> Token {
        let token = self.token();
        if token.tok != Tok::End {
            self.at += 1;
        }
        token
    }

    pub(super) fn text_of(&self, token: Token) -> &'t str {
        &self.text[token.start as usize..token.end as usize]
    }

    pub(super) fn span_of(&self, token: Token) -> Span {
        Span::new(self.file, token.start, token.end)
    }

    /// The place of the next token.
    pub(super) fn here(&self) -> Span {
        self.span_of(self.token())
    }

    /// From `start` to the end of the last token read.
    pub(super) fn since(&self, start: Span) -> Span {
        let last = self.tokens[self.at.saturating_sub(1)];
        start.to(self.span_of(last))
    }

    pub(super) fn is(&self, sign: &str) -> bool {
        matches!(self.peek(), Tok::Sign(s) if s == sign)
    }

    pub(super) fn is_at(&self, ahead: usize, sign: &str) -> bool {
        matches!(self.peek_at(ahead), Tok::Sign(s) if s == sign)
    }

    /// Takes the sign if it is next.
    pub(super) fn eat(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        if found {
            self.at += 1;
        }
        found
    }

    pub(super) fn expect(&mut self, sign: &str) -> Result1<()> {
        if self.eat(sign) {
            Ok(())
        } else {
            Err(self.expected(&format!("`{sign}`")))
        }
    }

    /// The next token's text if it is a name or a word.
    pub(super) fn peek_word(&self) -> Option<&'t str> {
        (self.peek() == Tok::Ident).then(|| self.text_of(self.token()))
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.peek_word() == Some(word)
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.at += 1;
        }
        found
    }

    pub(super) fn expect_word(&mut self, word: &str) -> Result1<()> {
        if self.eat_word(word) {
            Ok(())
        } else {
            Err(self.expected(&format!("`{word}`")))
        }
    }

    /// Any name or word.
    pub(super) fn ident(&mut self, what: &str) -> Result1<(&'t str, Span)> {
        match self.peek_word() {
            Some(text) => {
                let span = self.here();
                self.at += 1;
                Ok((text, span))
            }
            None => Err(self.expected(what)),
        }
    }

    /// A word of a closed set.
    pub(super) fn word<W: Word>(&mut self) -> Result1<W> {
        let Some(text) = self.peek_word() else {
            return Err(self.expected(W::WHAT));
        };
        match W::from_word(text) {
            Some(value) => {
                self.at += 1;
                Ok(value)
            }
            None => {
                let words: Vec<&str> = W::VALUES.iter().map(|v| v.word()).collect();
                let help = suggestion(text, words.iter().copied())
                    .unwrap_or_else(|| format!("one of: {}", words.join(", ")));
                Err(Box::new(
                    Diagnostic::error(
                        Code("text-word"),
                        self.here(),
                        format!("expected {}, found `{text}`", W::WHAT),
                    )
                    .help(help),
                ))
            }
        }
    }

    pub(super) fn string(&mut self) -> Result1<String> {
        if self.peek() != Tok::Str {
            return Err(self.expected("a string in quotes"));
        }
        let token = self.next();
        unescape(self.text_of(token)).map_err(|escape| {
            Box::new(
                Diagnostic::error(
                    Code("text-string"),
                    self.span_of(token),
                    format!("`{escape}` is no escape"),
                )
                .help("the escapes are \\n \\r \\t \\\" \\\\ and \\u{hex}"),
            )
        })
    }

    /// An integer without a type, in the range of `T`.
    pub(super) fn number<T: TryFrom<i128>>(&mut self, what: &str) -> Result1<T> {
        let start = self.here();
        let negative = self.is("-") && self.peek_at(1) == Tok::Int;
        if negative {
            self.at += 1;
        }
        if self.peek() != Tok::Int {
            return Err(self.expected(what));
        }
        let token = self.next();
        let value = parse_int(self.text_of(token), negative);
        value
            .and_then(|v| T::try_from(v).ok())
            .ok_or_else(|| self.out_of_range(self.since(start), what))
    }

    pub(super) fn out_of_range(&self, span: Span, what: &str) -> Box<Diagnostic> {
        Box::new(Diagnostic::error(
            Code("text-number"),
            span,
            format!("this number is out of range for {what}"),
        ))
    }

    pub(super) fn dtype(&mut self) -> Result1<DType> {
        let Some(text) = self.peek_word() else {
            return Err(self.expected("a type"));
        };
        match DType::from_name(text) {
            Some(dtype) => {
                self.at += 1;
                Ok(dtype)
            }
            None => {
                let names = crate::Scalar::ALL.iter().map(|s| s.name());
                let mut d = Diagnostic::error(
                    Code("text-type"),
                    self.here(),
                    format!("`{text}` is no type"),
                );
                d.help.extend(suggestion(text, names));
                Err(Box::new(d))
            }
        }
    }

    /// `item, item, …` up to a closing sign, which is taken.
    pub(super) fn list<T>(
        &mut self,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Result1<T>,
    ) -> Result1<Vec<T>> {
        let mut items = Vec::new();
        if self.eat(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat(close) {
                return Ok(items);
            }
            if !self.eat(",") {
                return Err(self.expected(&format!("`,` or `{close}`")));
            }
        }
    }

    // ---- errors

    /// The next token is not what has to stand here.
    pub(super) fn expected(&self, what: &str) -> Box<Diagnostic> {
        let found = match self.peek() {
            Tok::End => "the end of the text".to_string(),
            Tok::Newline => "the end of the line".to_string(),
            _ => {
                let text: String = self.text_of(self.token()).chars().take(40).collect();
                format!("`{text}`")
            }
        };
        Box::new(
            Diagnostic::error(
                Code("text-syntax"),
                self.here(),
                format!("expected {what}, found {found}"),
            )
            .label(format!("expected {what}")),
        )
    }

    pub(super) fn error(&mut self, error: Diagnostic) {
        self.errors.push(error);
    }

    pub(super) fn gave_up(&self) -> bool {
        self.errors.len() >= MAX_ERRORS
    }

    /// Goes on behind the statement at hand, and behind its block if it opens one.
    pub(super) fn skip_statement(&mut self) {
        let mut open = 0usize;
        loop {
            match self.peek() {
                Tok::End => return,
                Tok::Newline if open == 0 => {
                    self.at += 1;
                    return;
                }
                Tok::Sign("{") => open += 1,
                Tok::Sign("}") if open == 0 => return,
                Tok::Sign("}") => open -= 1,
                _ => {}
            }
            self.at += 1;
        }
    }

    pub(super) fn skip_newlines(&mut self) {
        while self.peek() == Tok::Newline {
            self.at += 1;
        }
    }

    /// The end of a line, or of the block that the line is the last of.
    pub(super) fn end_of_statement(&mut self) -> Result1<()> {
        match self.peek() {
            Tok::Newline => {
                self.at += 1;
                Ok(())
            }
            Tok::End | Tok::Sign("}") => Ok(()),
            _ => Err(self.expected("the end of the line")),
        }
    }

    // ---- names

    pub(super) fn open_scope(&mut self) {
        self.scopes.push(Vec::new());
    }

    pub(super) fn close_scope(&mut self) {
        for name in self.scopes.pop().unwrap_or_default() {
            if let Some(meanings) = self.visible.get_mut(name) {
                meanings.pop();
            }
        }
    }

    /// Makes the name mean the entity until the scope closes.
    pub(super) fn declare(&mut self, name: &'t str, entity: Entity, span: Span) -> Result1<()> {
        let depth = self.scopes.len();
        let meanings = self.visible.entry(name).or_default();
        if meanings.last().is_some_and(|(at, _)| *at == depth) {
            return Err(Box::new(
                Diagnostic::error(
                    Code("text-duplicate"),
                    span,
                    format!("`{name}` is declared in this block already"),
                )
                .help(format!("add a number: `{}.1`", without_number(name))),
            ));
        }
        meanings.push((depth, entity));
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(name);
        }
        self.ever.insert(name, entity);
        Ok(())
    }

    /// The name of something new.
    pub(super) fn new_name(&mut self, what: &str) -> Result1<(&'t str, Span)> {
        let (text, span) = self.ident(what)?;
        if RESERVED.contains(&text) {
            return Err(Box::new(
                Diagnostic::error(
                    Code("text-syntax"),
                    span,
                    format!("`{text}` is a reserved word"),
                )
                .help(format!("add a number: `{text}.1`")),
            ));
        }
        Ok((text, span))
    }

    /// A new variable that is visible from here on.
    pub(super) fn new_var(
        &mut self,
        (name, span): (&'t str, Span),
        dtype: DType,
        kind: VarKind,
    ) -> Result1<Var> {
        let var = self.func.add_var(without_number(name), dtype, kind);
        self.func.vars[var].span = span;
        self.declare(name, Entity::Var(var), span)?;
        Ok(var)
    }

    pub(super) fn lookup(&self, name: &str) -> Option<Entity> {
        let visible = self.visible.get(name).and_then(|m| m.last());
        let visible = visible.map(|(_, entity)| entity);
        visible.or_else(|| self.ever.get(name)).copied()
    }

    pub(super) fn unknown_name(&self, name: &str, span: Span, what: &str) -> Box<Diagnostic> {
        let known = self.ever.keys().copied();
        let mut d = Diagnostic::error(
            Code("text-unknown-name"),
            span,
            format!("nothing is called `{name}` here"),
        )
        .label(format!("expected {what}"));
        d.help.extend(suggestion(name, known));
        Box::new(d)
    }

    /// A buffer's name.
    pub(super) fn buffer(&mut self) -> Result1<Buffer> {
        let (name, span) = self.ident("a buffer")?;
        self.buffer_named(name, span)
    }

    pub(super) fn buffer_named(&self, name: &str, span: Span) -> Result1<Buffer> {
        match self.lookup(name) {
            Some(Entity::Buffer(buffer)) => Ok(buffer),
            Some(Entity::Var(_)) => Err(Box::new(Diagnostic::error(
                Code("text-name-kind"),
                span,
                format!("`{name}` is a variable, not a buffer"),
            ))),
            None => Err(self.unknown_name(name, span, "a buffer")),
        }
    }
}

/// The value of an integer token.
fn parse_int(text: &str, negative: bool) -> Option<i128> {
    let magnitude = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u128::from_str_radix(hex, 16).ok()?,
        None => text.parse::<u128>().ok()?,
    };
    if negative {
        0i128.checked_sub_unsigned(magnitude)
    } else {
        i128::try_from(magnitude).ok()
    }
}
