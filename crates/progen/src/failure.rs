//! How a program can fail.

use std::fmt;

/// What went wrong, where, and in which words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// What is compared when a program is made smaller, and counted in tables: `sim-value`,
    /// `refused:CODE`.
    pub kind: String,
    /// The target, where it is about one.
    pub target: Option<&'static str>,
    /// For people.
    pub detail: String,
}

impl Failure {
    pub fn new(kind: impl Into<String>, detail: impl Into<String>) -> Failure {
        Failure {
            kind: kind.into(),
            target: None,
            detail: detail.into(),
        }
    }

    pub fn on(mut self, target: &'static str) -> Failure {
        self.target = Some(target);
        self
    }

    /// The kind with the target, like `sim-value sm_80`.
    pub fn title(&self) -> String {
        match self.target {
            Some(target) => format!("{} {target}", self.kind),
            None => self.kind.clone(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.title(), self.detail)
    }
}
