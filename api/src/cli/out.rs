//! Where a command's words go: data to stdout, everything else to stderr.

use std::io::{self, IsTerminal as _, Write as _};

use serde_json::{Value, json};

use super::exit::CliError;

/// Writes what a command has to say, as text or as JSON.
#[derive(Debug)]
pub struct Out {
    json: bool,
}

impl Out {
    pub fn new(json: bool) -> Self {
        Self { json }
    }

    /// One result: its JSON, or the text for people.
    pub fn data(&self, value: &Value, text: impl FnOnce() -> String) {
        if self.json {
            self.line(&value.to_string());
        } else {
            self.line(&text());
        }
    }

    /// Raw bytes to stdout.
    pub fn bytes(&self, bytes: &[u8]) {
        let mut stdout = io::stdout().lock();
        leave_if_closed(stdout.write_all(bytes).and_then(|()| stdout.flush()));
    }

    /// A sentence for whoever watches.
    pub fn note(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        // There is nobody left to tell when stderr is closed.
        let _ = writeln!(stderr, "{text}");
    }

    /// A line that the next one replaces, where somebody watches at a terminal.
    pub fn progress(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        if stderr.is_terminal() {
            let _ = write!(stderr, "\r\x1b[K{text}");
            let _ = stderr.flush();
        }
    }

    /// Removes the last progress line.
    pub fn progress_done(&self) {
        self.progress("");
    }

    /// Why the command failed.
    pub fn error(&self, error: &CliError) {
        self.progress_done();
        if self.json {
            self.note(&json!({ "error": { "code": error.code, "detail": error.detail } }).to_string());
        } else {
            self.note(&format!("error: {error}"));
        }
    }

    fn line(&self, text: &str) {
        let mut stdout = io::stdout().lock();
        leave_if_closed(writeln!(stdout, "{text}"));
    }
}

/// `proofkeep ls | head` is no error: the reader has what it wanted.
fn leave_if_closed(written: io::Result<()>) {
    if written.is_err() {
        std::process::exit(1);
    }
}
