//! Tokens of the text form.
//!
//! A line break ends a statement, so it is a token, except inside parentheses and brackets.

use crate::diag::{Code, Diagnostic, FileId, Span};
use crate::text::names::{is_continue, is_start};

/// What a token is; its text is in the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tok {
    /// A name, with its number if it has one: `i`, `i.1`.
    Ident,
    /// Digits, or `0x` and hexadecimal digits.
    Int,
    /// Digits with a point or an exponent.
    Float,
    /// In quotes, escapes not yet resolved.
    Str,
    /// A sign of [`SIGNS`].
    Sign(&'static str),
    Newline,
    End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) tok: Tok,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// All signs; a longer one comes before its beginnings.
const SIGNS: [&str; 35] = [
    "->", "+:", "..", "//", "&&", "||", "<<", ">>", "==", "!=", "<=", ">=", "(", ")", "[", "]",
    "{", "}", "<", ">", "=", "+", "-", "*", "/", "%", "&", "|", "^", "!", "~", ",", ":", ";", "@",
];

/// The tokens of the text, ending in [`Tok::End`], or the first place that is none.
pub(crate) fn lex(text: &str, file: FileId) -> Result<Vec<Token>, Box<Diagnostic>> {
    if u32::try_from(text.len()).is_err() {
        return Err(Box::new(Diagnostic::error(
            Code("text-size"),
            Span::NONE,
            "the text is longer than 4 GiB",
        )));
    }
    let mut tokens = Vec::new();
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let start = at;
        let rest = &text[at..];
        let tok = match c {
            '\n' => {
                at += 1;
                if depth > 0 {
                    continue;
                }
                Tok::Newline
            }
            '#' => {
                at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            c if is_start(c) => {
                at += ident_len(rest);
                Tok::Ident
            }
            '0'..='9' => {
                let (len, tok) = number(rest);
                at += len;
                tok
            }
            '"' => match string_len(rest) {
                Some(len) => {
                    at += len;
                    Tok::Str
                }
                None => {
                    let line = rest.find('\n').unwrap_or(rest.len());
                    let span = Span::new(file, start as u32, (start + line) as u32);
                    return Err(Box::new(
                        Diagnostic::error(
                            Code("text-string"),
                            span,
                            "this string has no closing quote",
                        )
                        .help("close it on the same line; a line break in it is written `\\n`"),
                    ));
                }
            },
            _ => match SIGNS.iter().find(|s| rest.starts_with(**s)) {
                Some(sign) => {
                    at += sign.len();
                    match *sign {
                        "(" | "[" => depth += 1,
                        ")" | "]" => depth = depth.saturating_sub(1),
                        // A block inside a parenthesis that was never closed starts lines anew.
                        "{" | "}" => depth = 0,
                        _ => {}
                    }
                    Tok::Sign(sign)
                }
                None => {
                    let span = Span::new(file, start as u32, (start + c.len_utf8()) as u32);
                    return Err(Box::new(
                        Diagnostic::error(
                            Code("text-character"),
                            span,
                            format!("{c:?} has no meaning here"),
                        )
                        .help("a comment starts with `#`, a string with `\"`"),
                    ));
                }
            },
        };
        tokens.push(Token {
            tok,
            start: start as u32,
            end: at as u32,
        });
    }
    let end = text.len() as u32;
    tokens.push(Token {
        tok: Tok::End,
        start: end,
        end,
    });
    Ok(tokens)
}

/// The length of a name and the number after it.
fn ident_len(rest: &str) -> usize {
    let word = |s: &str| s.find(|c| !is_continue(c)).unwrap_or(s.len());
    let len = word(rest);
    match rest[len..].strip_prefix('.') {
        Some(suffix) if word(suffix) > 0 => len + 1 + word(suffix),
        _ => len,
    }
}

fn number(rest: &str) -> (usize, Tok) {
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    if rest.starts_with("0x") || rest.starts_with("0X") {
        let hex = rest[2..].bytes().take_while(u8::is_ascii_hexdigit).count();
        return (2 + hex, Tok::Int);
    }
    let mut len = digits(rest);
    let mut tok = Tok::Int;
    // A point belongs to the number only if a digit follows: `0..4` is a range.
    if let Some(fraction) = rest[len..].strip_prefix('.')
        && digits(fraction) > 0
    {
        len += 1 + digits(fraction);
        tok = Tok::Float;
    }
    if let Some(exponent) = rest[len..].strip_prefix(['e', 'E']) {
        let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if digits(unsigned) > 0 {
            len += 1 + (exponent.len() - unsigned.len()) + digits(unsigned);
            tok = Tok::Float;
        }
    }
    (len, tok)
}

/// The length of a string with both quotes; it may not go over a line.
fn string_len(rest: &str) -> Option<usize> {
    let mut escaped = false;
    for (i, c) in rest.char_indices().skip(1) {
        match c {
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(i + 1),
            _ => {}
        }
    }
    None
}

/// The string that a token of kind [`Tok::Str`] stands for, or the escape that has no meaning.
pub(crate) fn unescape(token: &str) -> Result<String, String> {
    let inner = token
        .strip_prefix('"')
        .and_then(|s| s.strip_suffix('"'))
        .unwrap_or(token);
    let mut out = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some(c @ ('"' | '\\')) => out.push(c),
            Some('u') => {
                let code = chars
                    .as_str()
                    .strip_prefix('{')
                    .and_then(|s| s.split_once('}'));
                let (hex, rest) = code.ok_or("\\u")?;
                let scalar = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32);
                out.push(scalar.ok_or_else(|| format!("\\u{{{hex}}}"))?);
                chars = rest.chars();
            }
            Some(other) => return Err(format!("\\{other}")),
            None => return Err("\\".to_string()),
        }
    }
    Ok(out)
}
