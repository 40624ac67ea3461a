//! Checks made before a file is parsed, so that no input can exhaust the stack or the memory.
//!
//! Parsing, walking and dropping a tree all recurse, so its depth is bounded here, by a plain
//! scan of the text. The depth of an expression is at most its open brackets plus the
//! operators, dots, calls and keywords that each add one level; a comma, a new line or a
//! semicolon starts afresh. The blocks a statement stands in count by their indentation.
//! The scan counts a little too much rather than too little.

use std::ops::Range;

/// The longest file read, in bytes. The largest kernel files in use are below 64 KiB.
pub const MAX_SOURCE_BYTES: usize = 1 << 20;
/// The deepest nesting of brackets and of indented blocks, each.
pub const MAX_NESTING: usize = 100;
/// The most levels that operators, calls and brackets together may give one expression.
pub const MAX_CHAIN: usize = 1000;

/// What is nested too deep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooDeep {
    Brackets,
    Blocks,
    Chain,
}

/// The first place where the nesting of `source` passes a limit.
pub fn check_depth(source: &str) -> Result<(), (TooDeep, Range<u32>)> {
    let mut scan = Scan::new(source.as_bytes());
    match scan.run() {
        Ok(()) => Ok(()),
        Err(why) => {
            let start = scan.token.min(source.len().saturating_sub(1));
            Err((why, start as u32..(start + 1).min(source.len()) as u32))
        }
    }
}

/// What encloses the text at the scan's place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    /// A bracket, by its closing byte.
    Bracket(u8),
    /// The literal text of an f-string.
    FString { quote: u8, triple: bool, raw: bool },
}

struct Level {
    open: Option<Open>,
    /// Levels added here since the last comma.
    links: usize,
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    /// Where the token now looked at begins.
    token: usize,
    /// The bottom entry stands for the line itself.
    levels: Vec<Level>,
    total: usize,
    indents: Vec<usize>,
    /// Whether the last token can be called or subscripted.
    after_operand: bool,
}

impl<'a> Scan<'a> {
    fn new(text: &'a [u8]) -> Self {
        Scan {
            text,
            at: 0,
            token: 0,
            levels: vec![Level {
                open: None,
                links: 0,
            }],
            total: 0,
            indents: Vec::new(),
            after_operand: false,
        }
    }

    fn run(&mut self) -> Result<(), TooDeep> {
        self.indentation()?;
        while let Some(&byte) = self.text.get(self.at) {
            self.token = self.at;
            if let Some(Open::FString { quote, triple, raw }) =
                self.levels.last().and_then(|l| l.open)
            {
                self.fstring_text(byte, quote, triple, raw)?;
            } else {
                self.code(byte)?;
            }
            if self.total > MAX_CHAIN {
                return Err(TooDeep::Chain);
            }
        }
        Ok(())
    }

    fn code(&mut self, byte: u8) -> Result<(), TooDeep> {
        match byte {
            b' ' | b'\t' | b'\r' | 0x0c => self.at += 1,
            b'\n' => {
                self.at += 1;
                if self.levels.len() == 1 {
                    self.fresh_line();
                    return self.indentation();
                }
            }
            b';' => {
                self.at += 1;
                if self.levels.len() == 1 {
                    self.fresh_line();
                }
            }
            // A backslash joins two lines: skip both it and the line break.
            b'\\' => self.at += 2,
            b'#' => {
                while self.text.get(self.at).is_some_and(|&b| b != b'\n') {
                    self.at += 1;
                }
            }
            b'(' | b'[' | b'{' => {
                if self.after_operand {
                    self.link();
                }
                let close = match byte {
                    b'(' => b')',
                    b'[' => b']',
                    _ => b'}',
                };
                self.at += 1;
                self.after_operand = false;
                self.open(Open::Bracket(close))?;
            }
            b')' | b']' | b'}' => {
                self.at += 1;
                // A bracket that closes nothing stays open: it counts too much, not too little.
                if self.levels.last().and_then(|l| l.open) == Some(Open::Bracket(byte)) {
                    self.close();
                }
                self.after_operand = true;
            }
            b',' => {
                self.at += 1;
                if let Some(level) = self.levels.last_mut() {
                    self.total -= std::mem::take(&mut level.links);
                }
                self.after_operand = false;
            }
            b'"' | b'\'' => self.string(self.at)?,
            b'0'..=b'9' => {
                while self
                    .text
                    .get(self.at)
                    .is_some_and(|&b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.')
                {
                    self.at += 1;
                }
                self.after_operand = true;
            }
            b'_' | b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => self.word()?,
            b'=' if self.text.get(self.at + 1) != Some(&b'=') => {
                self.at += 1;
                self.after_operand = false;
            }
            _ => {
                self.at += 1;
                self.link();
                self.after_operand = false;
            }
        }
        Ok(())
    }

    /// A name, a keyword, or the prefix of a string.
    fn word(&mut self) -> Result<(), TooDeep> {
        let start = self.at;
        while self
            .text
            .get(self.at)
            .is_some_and(|&b| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80)
        {
            self.at += 1;
        }
        let word = &self.text[start..self.at];
        if matches!(self.text.get(self.at), Some(b'"' | b'\'')) && is_string_prefix(word) {
            return self.string(start);
        }
        let keyword = matches!(
            word,
            b"and"
                | b"or"
                | b"not"
                | b"in"
                | b"is"
                | b"if"
                | b"else"
                | b"lambda"
                | b"await"
                | b"yield"
                | b"for"
        );
        if keyword {
            self.link();
        }
        self.after_operand =
            !keyword && !matches!(word, b"return" | b"assert" | b"elif" | b"while" | b"with");
        Ok(())
    }

    /// A string whose prefix begins at `start` and whose quote is at the scan's place.
    fn string(&mut self, start: usize) -> Result<(), TooDeep> {
        let prefix = &self.text[start..self.at];
        let raw = prefix.iter().any(|b| b.eq_ignore_ascii_case(&b'r'));
        let formatted = prefix
            .iter()
            .any(|b| matches!(b, b'f' | b'F' | b't' | b'T'));
        let quote = self.text[self.at];
        let triple = self.text[self.at..].starts_with(&[quote; 3]);
        self.at += if triple { 3 } else { 1 };
        self.after_operand = true;
        if formatted {
            return self.open(Open::FString { quote, triple, raw });
        }
        while let Some(&byte) = self.text.get(self.at) {
            if byte == b'\\' {
                self.at += 2;
            } else if !triple && (byte == quote || byte == b'\n') {
                // An unterminated string ends with its line, and the parser says so.
                self.at += usize::from(byte == quote);
                return Ok(());
            } else if triple && self.text[self.at..].starts_with(&[quote; 3]) {
                self.at += 3;
                return Ok(());
            } else {
                self.at += 1;
            }
        }
        Ok(())
    }

    /// One step through the literal text of an f-string.
    fn fstring_text(
        &mut self,
        byte: u8,
        quote: u8,
        triple: bool,
        raw: bool,
    ) -> Result<(), TooDeep> {
        let rest = &self.text[self.at..];
        let escaped = byte == b'\\' && !raw;
        if escaped || rest.starts_with(b"{{") || rest.starts_with(b"}}") {
            self.at += 2;
        } else if byte == b'{' {
            self.at += 1;
            self.after_operand = false;
            return self.open(Open::Bracket(b'}'));
        } else if triple && rest.starts_with(&[quote; 3]) {
            self.at += 3;
            self.close();
        } else if !triple && byte == quote {
            self.at += 1;
            self.close();
        } else if !triple && byte == b'\n' {
            self.close();
        } else {
            self.at += 1;
        }
        Ok(())
    }

    fn indentation(&mut self) -> Result<(), TooDeep> {
        let mut width = 0;
        loop {
            match self.text.get(self.at) {
                Some(b' ') => width += 1,
                Some(b'\t') => width = (width / 8 + 1) * 8,
                // A blank or comment line has no say in the indentation.
                Some(b'\n' | b'\r' | b'#') | None => return Ok(()),
                Some(_) => break,
            }
            self.at += 1;
        }
        self.token = self.at;
        while self.indents.last().is_some_and(|&outer| outer > width) {
            self.indents.pop();
        }
        if width > self.indents.last().copied().unwrap_or(0) {
            self.indents.push(width);
        }
        if self.indents.len() > MAX_NESTING {
            return Err(TooDeep::Blocks);
        }
        Ok(())
    }

    fn fresh_line(&mut self) {
        self.total = 0;
        self.levels[0].links = 0;
        self.after_operand = false;
    }

    fn link(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.links += 1;
            self.total += 1;
        }
    }

    fn open(&mut self, open: Open) -> Result<(), TooDeep> {
        self.levels.push(Level {
            open: Some(open),
            links: 0,
        });
        if self.levels.len() > MAX_NESTING {
            return Err(TooDeep::Brackets);
        }
        Ok(())
    }

    fn close(&mut self) {
        if self.levels.len() > 1
            && let Some(level) = self.levels.pop()
        {
            self.total -= level.links;
        }
        self.after_operand = true;
    }
}

fn is_string_prefix(word: &[u8]) -> bool {
    word.len() <= 2 && word.iter().all(|b| b"rbuftRBUFT".contains(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(source: &str) -> Option<TooDeep> {
        check_depth(source).err().map(|(why, _)| why)
    }

    #[test]
    fn ordinary_code_passes() {
        assert_eq!(
            refused("def f(a, b):\n    return [a + b * c for c in (1, 2)]\n"),
            None
        );
        let long_list = format!("x = [{}]\n", "1 + 2, ".repeat(10_000));
        assert_eq!(refused(&long_list), None);
        let long_file = "x = a.b.c(d)[e] + 1\n".repeat(5_000);
        assert_eq!(refused(&long_file), None);
        let strings = "x = '((((' + \"[[[\" + f'((({a})' + '''{{{\n(((''' # (((\n".repeat(500);
        assert_eq!(refused(&strings), None);
    }

    #[test]
    fn deep_nesting_is_refused_by_kind() {
        assert_eq!(refused(&"(".repeat(10_000)), Some(TooDeep::Brackets));
        assert_eq!(
            refused(&format!("x = {}", "f(".repeat(10_000))),
            Some(TooDeep::Brackets)
        );
        assert_eq!(
            refused(&format!("x = {}", "f\"{".repeat(10_000))),
            Some(TooDeep::Brackets)
        );
        assert_eq!(
            refused(&format!("x = f'{{{}'", "(".repeat(10_000))),
            Some(TooDeep::Brackets)
        );
        let blocks: String = (0..1_000)
            .map(|i| format!("{}if a:\n", " ".repeat(i)))
            .collect();
        assert_eq!(refused(&blocks), Some(TooDeep::Blocks));
        for link in [
            "+a",
            ".b",
            "()",
            "[0]",
            " if a else b",
            " and b",
            " - - b",
            " < b",
        ] {
            let chain = format!("x = a{}\n", link.repeat(10_000));
            assert_eq!(refused(&chain), Some(TooDeep::Chain), "{link}");
        }
        for prefix in ["- ", "-", "not ", "lambda: ", "~", "await "] {
            let chain = format!("x = {}a\n", prefix.repeat(10_000));
            assert_eq!(refused(&chain), Some(TooDeep::Chain), "{prefix}");
        }
    }

    #[test]
    fn the_place_is_the_first_past_the_limit() {
        let (why, range) = check_depth(&"[".repeat(500)).unwrap_err();
        assert_eq!(why, TooDeep::Brackets);
        assert_eq!(range, 99..100);
    }
}
