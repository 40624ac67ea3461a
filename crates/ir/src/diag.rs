//! Spans, source files and diagnostics.
//!
//! "Cannot" is a [`Diagnostic`]: a named code, the place in the user's file, the reason, and
//! what would help. Passes and the front end only collect them; they become text at the edge,
//! in [`Diagnostic::render`].

use std::fmt;

use annotate_snippets::{AnnotationKind, Group, Level as SnippetLevel, Renderer, Snippet};

/// A source file known to a [`SourceMap`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// A byte range of a source file, or nothing ([`Span::NONE`]) for synthesised nodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    pub file: FileId,
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// The span of what no source made.
    pub const NONE: Span = Span {
        file: FileId(u32::MAX),
        start: 0,
        end: 0,
    };

    pub const fn new(file: FileId, start: u32, end: u32) -> Span {
        Span { file, start, end }
    }

    pub fn is_none(self) -> bool {
        self.file == Span::NONE.file
    }

    /// The smallest span that covers both; spans of different files keep the first.
    pub fn to(self, other: Span) -> Span {
        if self.is_none() {
            other
        } else if other.is_none() || other.file != self.file {
            self
        } else {
            Span::new(
                self.file,
                self.start.min(other.start),
                self.end.max(other.end),
            )
        }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            f.write_str("-")
        } else {
            write!(f, "{}:{}..{}", self.file.0, self.start, self.end)
        }
    }
}

/// The texts that spans point into.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

#[derive(Clone, Debug)]
struct SourceFile {
    name: String,
    text: String,
    /// Byte offset of the start of each line.
    lines: Vec<u32>,
}

impl SourceMap {
    pub fn new() -> SourceMap {
        SourceMap::default()
    }

    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        let text = text.into();
        let starts = text.bytes().enumerate().filter(|(_, b)| *b == b'\n');
        let lines = std::iter::once(0)
            .chain(starts.map(|(i, _)| i as u32 + 1))
            .collect();
        self.files.push(SourceFile {
            name: name.into(),
            text,
            lines,
        });
        FileId(self.files.len() as u32 - 1)
    }

    /// Every file, in the order added.
    pub fn files(&self) -> impl Iterator<Item = FileId> + use<> {
        (0..self.files.len() as u32).map(FileId)
    }

    pub fn name(&self, file: FileId) -> &str {
        self.files
            .get(file.0 as usize)
            .map_or("<unknown>", |f| &f.name)
    }

    pub fn text(&self, file: FileId) -> &str {
        self.files.get(file.0 as usize).map_or("", |f| &f.text)
    }

    /// Line and column of the span's start, both from one; the column counts characters.
    pub fn line_col(&self, span: Span) -> Option<(usize, usize)> {
        let file = self.files.get(span.file.0 as usize)?;
        let line = file.lines.partition_point(|&s| s <= span.start).max(1);
        let start = file.lines[line - 1] as usize;
        let upto = file.text.get(start..span.start as usize).unwrap_or("");
        Some((line, upto.chars().count() + 1))
    }

    /// The text of a line, counted from one, without the white space around it.
    pub fn line_span(&self, file: FileId, line: usize) -> Span {
        let Some(source) = self.files.get(file.0 as usize) else {
            return Span::NONE;
        };
        let at = line.clamp(1, source.lines.len()) - 1;
        let start = source.lines[at] as usize;
        let end = source
            .lines
            .get(at + 1)
            .map_or(source.text.len(), |n| *n as usize);
        let text = source.text.get(start..end).unwrap_or("");
        let start = start + (text.len() - text.trim_start().len());
        Span::new(file, start as u32, (start + text.trim().len()) as u32)
    }

    /// `file.py:12:5`, or `-` for [`Span::NONE`].
    pub fn locate(&self, span: Span) -> String {
        match self.line_col(span) {
            Some((line, col)) => format!("{}:{line}:{col}", self.name(span.file)),
            None => "-".to_string(),
        }
    }
}

/// The stable name of a kind of diagnostic, in kebab case: `copy-extents`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Code(pub &'static str);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Severity {
    /// What was decided and why; shown to who asks.
    Remark,
    Note,
    Warning,
    Error,
}

/// A place and what is to be said about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    pub span: Span,
    pub text: String,
}

/// Something to tell the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    pub severity: Severity,
    pub code: Code,
    /// One line: what is wrong.
    pub message: String,
    /// Where; the text may be empty.
    pub primary: Label,
    /// Other places that matter, such as the second of two conflicting operations.
    pub secondary: Vec<Label>,
    /// Facts that explain the message.
    pub notes: Vec<String>,
    /// What would help.
    pub help: Vec<String>,
}

impl Diagnostic {
    pub fn new(
        severity: Severity,
        code: Code,
        span: Span,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic {
            severity,
            code,
            message: message.into(),
            primary: Label {
                span,
                text: String::new(),
            },
            secondary: Vec::new(),
            notes: Vec::new(),
            help: Vec::new(),
        }
    }

    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, code, span, message)
    }

    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, code, span, message)
    }

    /// Says what is at the primary place.
    pub fn label(mut self, text: impl Into<String>) -> Diagnostic {
        self.primary.text = text.into();
        self
    }

    pub fn also(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.secondary.push(Label {
            span,
            text: text.into(),
        });
        self
    }

    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(text.into());
        self
    }

    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help.push(text.into());
        self
    }

    /// The diagnostic as a reader sees it, with the source lines it speaks of.
    pub fn render(&self, sources: &SourceMap, color: bool) -> String {
        let level = match self.severity {
            Severity::Error => SnippetLevel::ERROR,
            Severity::Warning => SnippetLevel::WARNING,
            Severity::Note => SnippetLevel::NOTE,
            Severity::Remark => SnippetLevel::INFO.with_name("remark"),
        };
        let mut group: Group<'_> = level
            .primary_title(self.message.as_str())
            .id(self.code.0)
            .elements(self.snippets(sources));
        for note in &self.notes {
            group = group.element(SnippetLevel::NOTE.message(note.as_str()));
        }
        for help in &self.help {
            group = group.element(SnippetLevel::HELP.message(help.as_str()));
        }
        let renderer = if color {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        renderer.render(&[group])
    }

    fn snippets<'a>(
        &'a self,
        sources: &'a SourceMap,
    ) -> Vec<Snippet<'a, annotate_snippets::Annotation<'a>>> {
        let mut files: Vec<FileId> = Vec::new();
        let labels = || {
            std::iter::once((&self.primary, AnnotationKind::Primary)).chain(
                self.secondary
                    .iter()
                    .map(|label| (label, AnnotationKind::Context)),
            )
        };
        for (label, _) in labels() {
            if !label.span.is_none() && !files.contains(&label.span.file) {
                files.push(label.span.file);
            }
        }
        files
            .into_iter()
            .map(|file| {
                let text = sources.text(file);
                let mut snippet = Snippet::source(text).path(sources.name(file)).fold(true);
                for (label, kind) in labels().filter(|(label, _)| label.span.file == file) {
                    let range = clamp(text, label.span);
                    let mut annotation = kind.span(range);
                    if !label.text.is_empty() {
                        annotation = annotation.label(label.text.as_str());
                    }
                    snippet = snippet.annotation(annotation);
                }
                snippet
            })
            .collect()
    }
}

/// The span as a range of the text that is certain to lie on character borders.
fn clamp(text: &str, span: Span) -> std::ops::Range<usize> {
    let border = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = border(span.start as usize);
    start..border(span.end as usize).max(start)
}

/// Diagnostics collected on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    pub fn new() -> Diagnostics {
        Diagnostics::default()
    }

    /// Takes the remarks out.
    pub fn take_remarks(&mut self) -> Vec<Diagnostic> {
        let is_remark = |d: &mut Diagnostic| d.severity == Severity::Remark;
        self.list.extract_if(.., is_remark).collect()
    }

    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    pub fn extend(&mut self, more: impl IntoIterator<Item = Diagnostic>) {
        self.list.extend(more);
    }

    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Error)
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    pub fn into_vec(self) -> Vec<Diagnostic> {
        self.list
    }

    pub fn render(&self, sources: &SourceMap, color: bool) -> String {
        let parts: Vec<String> = self.iter().map(|d| d.render(sources, color)).collect();
        parts.join("\n\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_place_reason_and_help() {
        let mut sources = SourceMap::new();
        let file = sources.add("k.py", "x = 1\nT.copy(A, B)\n");
        let d = Diagnostic::error(
            Code("copy-extents"),
            Span::new(file, 6, 18),
            "copy of unequal extents",
        )
        .label("128 elements into 64")
        .help("slice the source: `A[0:64]`");
        let text = d.render(&sources, false);
        for part in [
            "error[copy-extents]",
            "k.py:2:1",
            "128 elements into 64",
            "slice the source",
        ] {
            assert!(text.contains(part), "{part} not in:\n{text}");
        }
    }

    #[test]
    fn a_span_past_the_end_still_renders() {
        let mut sources = SourceMap::new();
        let file = sources.add("k.py", "é");
        let d = Diagnostic::error(Code("x"), Span::new(file, 1, 900), "m");
        assert!(d.render(&sources, false).contains("k.py"));
    }

    #[test]
    fn lines_and_columns_count_from_one() {
        let mut sources = SourceMap::new();
        let file = sources.add("k.py", "ab\ncd\n");
        assert_eq!(sources.line_col(Span::new(file, 0, 1)), Some((1, 1)));
        assert_eq!(sources.line_col(Span::new(file, 4, 5)), Some((2, 2)));
        assert_eq!(sources.locate(Span::NONE), "-");
    }
}
