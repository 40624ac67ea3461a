//! Findings of many runs, each reported once.

use tilewright::ir::{Code, Diagnostic, Severity, Span};

/// Diagnostics without repetition, in the order in which they were first found.
#[derive(Debug, Default)]
pub struct Findings {
    list: Vec<(Diagnostic, u64)>,
}

impl Findings {
    /// Adds what is new; what is known at its place is counted.
    pub fn extend(&mut self, found: impl IntoIterator<Item = Diagnostic>) {
        for diag in found {
            let same = |(known, _): &&mut (Diagnostic, u64)| key(known) == key(&diag);
            match self.list.iter_mut().find(same) {
                Some((_, count)) => *count += 1,
                None => self.list.push((diag, 1)),
            }
        }
    }

    /// Adds what one look found: nothing of it was found twice.
    pub fn append(&mut self, found: impl IntoIterator<Item = Diagnostic>) {
        self.list.extend(found.into_iter().map(|diag| (diag, 1)));
    }

    pub fn has_errors(&self) -> bool {
        let mut all = self.list.iter();
        all.any(|(diag, _)| diag.severity == Severity::Error)
    }

    pub fn into_vec(self) -> Vec<Diagnostic> {
        let counted = |(diag, count): (Diagnostic, u64)| match count {
            1 => diag,
            _ => diag.note(format!("found {count} times, in different runs")),
        };
        self.list.into_iter().map(counted).collect()
    }
}

/// What makes two findings one: the code and the places, and how bad it is. What has no place is told apart by its
/// words.
fn key(diag: &Diagnostic) -> (Severity, Code, Span, Vec<Span>, &str) {
    let span = diag.primary.span;
    let words = if span.is_none() {
        diag.message.as_str()
    } else {
        ""
    };
    let others = diag.secondary.iter().map(|label| label.span).collect();
    (diag.severity, diag.code, span, others, words)
}
