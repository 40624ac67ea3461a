//! Lines of source: indentation, comments that quote the user's lines, the line map.

use tilewright_ir::{FileId, SourceMap, Span};

use crate::source::LineOrigin;

#[derive(Debug)]
pub(crate) struct Writer<'a> {
    sources: Option<&'a SourceMap>,
    line_directives: bool,
    text: String,
    line: u32,
    depth: usize,
    /// The user's line that the last comment quoted.
    current: Option<(FileId, usize)>,
    pub origins: Vec<LineOrigin>,
}

impl<'a> Writer<'a> {
    pub fn new(sources: Option<&'a SourceMap>, line_directives: bool) -> Writer<'a> {
        Writer {
            sources,
            line_directives,
            text: String::new(),
            line: 0,
            depth: 0,
            current: None,
            origins: Vec::new(),
        }
    }

    /// One line at the current depth.
    pub fn line(&mut self, text: impl AsRef<str>) {
        let text = text.as_ref();
        if !text.is_empty() {
            for _ in 0..self.depth {
                self.text.push_str("  ");
            }
            self.text.push_str(text);
        }
        self.text.push('\n');
        self.line += 1 + text.matches('\n').count() as u32;
    }

    /// A directive, which starts at the margin.
    pub fn directive(&mut self, text: impl AsRef<str>) {
        self.text.push_str(text.as_ref());
        self.text.push('\n');
        self.line += 1;
    }

    /// Puts in what was not known when its line was written.
    pub fn fill_in(&mut self, mark: &str, text: &str) {
        self.text = self.text.replace(mark, text);
    }

    pub fn indent(&mut self) {
        self.depth += 1;
    }

    pub fn dedent(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// What follows comes from this place: quotes its line, unless the last comment did.
    pub fn quote(&mut self, span: Span) {
        let Some(sources) = self.sources.filter(|_| !span.is_none()) else {
            return;
        };
        let Some((line, _)) = sources.line_col(span) else {
            return;
        };
        if self.current == Some((span.file, line)) {
            return;
        }
        self.current = Some((span.file, line));
        let file = sources.name(span.file);
        let file = file.rsplit(['/', '\\']).next().unwrap_or(file);
        let file = one_line(file);
        let quoted = sources.text(span.file).lines().nth(line - 1).unwrap_or("");
        // A backslash at its end would join the next line to the comment.
        let quoted: String = quoted.trim().chars().take(100).collect();
        let quoted = one_line(&quoted);
        let quoted = quoted.trim_end_matches('\\').replace("??/", "");
        self.line(format!("// {file}:{line}: {quoted}"));
        if self.line_directives {
            let file = file.replace(['"', '\\'], "");
            self.directive(format!("#line {line} \"{file}\""));
        }
        self.origins.push(LineOrigin {
            line: self.line + 1,
            span,
        });
    }

    /// Forgets which line was quoted last: the next statement says it again.
    pub fn quote_again(&mut self) {
        self.current = None;
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

/// Text that stays in its comment: what would end the line, or hide it, is escaped.
fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // Some compilers take the last two for ends of lines.
        match c.is_control() && c != '\t' || matches!(c, '\u{2028}' | '\u{2029}') {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn a_comment_stays_on_its_line() {
        assert_eq!(
            one_line("new\nline\r\u{2028}.py"),
            "new\\nline\\r\\u{2028}.py"
        );
        assert_eq!(one_line("größe 1.py"), "größe 1.py");
    }
}
