//! Lines of a word and a value, as manifests, headers and ends of dumps are written.

use std::fmt::Display;
use std::str::FromStr;

/// Lines that are being written.
#[derive(Debug, Default)]
pub(crate) struct Lines(String);

impl Lines {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn add(&mut self, word: &str, value: impl Display) {
        self.0.push_str(&format!("{word} {value}\n"));
    }

    pub fn text(self) -> String {
        self.0
    }
}

/// Lines that are being read, each in its place.
pub(crate) struct Parser<'a>(std::str::Lines<'a>);

impl<'a> Parser<'a> {
    pub fn new(bytes: &'a [u8]) -> Result<Self, String> {
        let text =
            str::from_utf8(bytes).map_err(|_| "expected lines of text, found other bytes".to_owned())?;
        Ok(Self(text.lines()))
    }

    /// The value of the next line, which must begin with this word.
    pub fn word(&mut self, word: &str) -> Result<&'a str, String> {
        let line = self.0.next().unwrap_or("");
        line.strip_prefix(word)
            .and_then(|rest| rest.strip_prefix(' '))
            .ok_or_else(|| format!("expected a line `{word} …`, found {:?}", shown(line)))
    }

    /// The same, read as something.
    pub fn value<T: FromStr>(&mut self, word: &str) -> Result<T, String> {
        let text = self.word(word)?;
        text.parse()
            .map_err(|_| format!("the line `{word}` says {:?}", shown(text)))
    }

    pub fn number(&mut self, word: &str) -> Result<u64, String> {
        self.value(word)
    }

    /// Nothing may follow.
    pub fn end(mut self) -> Result<(), String> {
        self.0.next().map_or(Ok(()), |line| {
            Err(format!("expected no more lines, found {:?}", shown(line)))
        })
    }
}

fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}
