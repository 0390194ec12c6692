//! An answer that says no, in the words of a user: what was expected, what was found, what to do.

use std::fmt;

/// Becomes `application/problem+json` at the HTTP border and a sentence on stderr in the CLI. Never holds a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// A stable code, `kebab-case`; the first ones stand in API.md.
    pub code: String,
    /// One line: what is wrong, the same for every instance of the code.
    pub title: String,
    /// What was expected, what was found, what to do.
    pub detail: String,
    /// The same request may succeed later, unchanged.
    pub retryable: bool,
    /// More members of the answer, such as `missing: [digests]`.
    pub members: Vec<(String, serde_json::Value)>,
}

impl Problem {
    /// A problem that the same request will always have.
    #[must_use]
    pub fn new(status: u16, code: &str, title: &str, detail: impl Into<String>) -> Self {
        Self {
            status,
            code: code.to_owned(),
            title: title.to_owned(),
            detail: detail.into(),
            retryable: false,
            members: Vec::new(),
        }
    }

    /// The input is wrong: 422.
    #[must_use]
    pub fn input(code: &str, detail: impl Into<String>) -> Self {
        Self::new(422, code, "the input can't be used", detail)
    }

    /// It may work later.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// With one more member in the answer.
    #[must_use]
    pub fn with(mut self, name: &str, value: serde_json::Value) -> Self {
        self.members.push((name.to_owned(), value));
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.detail, self.code)
    }
}

impl std::error::Error for Problem {}
