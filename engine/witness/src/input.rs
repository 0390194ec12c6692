//! What an `input.json` holds, read exactly.
//!
//! One JSON object; each key names an input signal of the main component.
//!
//! * A value is an integer: a JSON integer of any size (`12`, `-3`), a decimal string (`"12"`,
//!   `"-3"`) or a hexadecimal string (`"0x1f"`). Fractions, exponents, booleans and null are
//!   refused, and so are the other forms that JavaScript's `BigInt` takes (`""`, `"0b1"`, spaces).
//! * Values lie above -r and below r; a negative -v stands for r - v, as in snarkjs. snarkjs also
//!   reduces larger values without a word; here they are refused, since a proof about another
//!   number than the one that was sent helps nobody.
//! * Arrays nest to any shape and are flattened in order; only the count of values is checked.
//!   A signal of no values may be given as `[]` or left out.
//! * Objects give the fields of a bus: `{"b": {"x": 1}}` is the signal `b.x`, and
//!   `{"b": [{"x": 1}, {"x": 2}]}` are `b[0].x` and `b[1].x`, as in circom's own calculator.
//! * A signal given twice is refused; so is anything after the object.
//!
//! The reader keeps no value twice and no more values than the circuit takes. It nests to
//! 64 levels and takes names to 1,024 bytes.

use std::collections::{HashMap, HashSet};

use crate::error::WitnessError;
use crate::value::{self, BadValue};

const MAX_DEPTH: usize = 64;
const MAX_NAME: usize = 1024;

/// One signal as given.
pub(crate) struct Given {
    /// Name as the circuit knows it (with bus fields).
    pub(crate) name: String,
    /// The values in order, canonical little-endian; cut at the reader's limit.
    pub(crate) values: Vec<[u8; 32]>,
    /// How many were given.
    pub(crate) count: usize,
    /// The first value that is none, reported only when the name and the count are right.
    pub(crate) bad: Option<Bad>,
}

/// A value that can't be used, without the value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bad {
    pub(crate) position: usize,
    /// What it is; `None` when it is an integer out of range.
    pub(crate) not_integer: Option<&'static str>,
}

/// Reads the whole text; keeps at most `limit` values.
pub(crate) fn read(text: &[u8], limit: usize) -> Result<Vec<Given>, WitnessError> {
    let mut reader = Reader {
        text,
        at: 0,
        room: limit,
        seen: HashSet::new(),
        index: HashMap::new(),
        signals: Vec::new(),
    };
    reader.space();
    if reader.peek() != Some(b'{') {
        return Err(reader.malformed("an object with a key for each input signal"));
    }
    reader.object("", 0)?;
    reader.space();
    if reader.at < text.len() {
        return Err(reader.malformed("nothing after the object"));
    }
    Ok(reader.signals)
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    room: usize,
    seen: HashSet<String>,
    index: HashMap<String, usize>,
    signals: Vec<Given>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn malformed(&self, expected: &'static str) -> WitnessError {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
        WitnessError::MalformedJson {
            line: before.iter().filter(|&&b| b == b'\n').count() + 1,
            column: before.len() - line_start + 1,
            expected,
            found: match self.peek() {
                None => "the end",
                Some(b'"') => "a string",
                Some(b'{' | b'}' | b'[' | b']' | b',' | b':') => "a punctuation mark",
                Some(b'0'..=b'9' | b'-') => "a number",
                Some(b'a'..=b'z' | b'A'..=b'Z') => "a word",
                Some(_) => "another character",
            },
        }
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), WitnessError> {
        if self.peek() != Some(byte) {
            return Err(self.malformed(expected));
        }
        self.at += 1;
        Ok(())
    }

    /// An object whose keys are signals (`prefix` empty) or the fields of the bus `prefix`.
    fn object(&mut self, prefix: &str, depth: usize) -> Result<(), WitnessError> {
        if depth > MAX_DEPTH {
            return Err(self.malformed("at most 64 levels of nesting"));
        }
        self.expect(b'{', "an object")?;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.space();
            let key_at = self.at;
            let key = self.string("a key in quotation marks")?;
            if prefix.len() + key.len() + 1 > MAX_NAME {
                self.at = key_at;
                return Err(self.malformed("a signal name of at most 1024 bytes"));
            }
            let name = if prefix.is_empty() {
                key
            } else {
                format!("{prefix}.{key}")
            };
            if !self.seen.insert(name.clone()) {
                return Err(WitnessError::DuplicateKey {
                    name: printable(&name),
                });
            }
            self.space();
            self.expect(b':', "a colon after the key")?;
            if !self.value(&name, &mut Vec::new(), depth + 1)? {
                // An empty array is a signal with no values: its count is what's wrong with it.
                self.signal(&name);
            }
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.malformed("a comma or the end of the object")),
            }
        }
    }

    /// One value, array or bus of the signal `name`; tells whether it held a bus.
    fn value(&mut self, name: &str, indices: &mut Vec<usize>, depth: usize) -> Result<bool, WitnessError> {
        if depth > MAX_DEPTH {
            return Err(self.malformed("at most 64 levels of nesting"));
        }
        self.space();
        match self.peek() {
            Some(b'[') => self.array(name, indices, depth),
            Some(b'{') => {
                let mut prefix = name.to_owned();
                for index in indices.iter() {
                    prefix.push_str(&format!("[{index}]"));
                }
                self.object(&prefix, depth + 1)?;
                Ok(true)
            }
            Some(b'"') => {
                let text = self.string("a string")?;
                self.push(name, value::parse(&text), "a string that is no integer");
                Ok(false)
            }
            Some(b'-' | b'0'..=b'9') => {
                self.number(name)?;
                Ok(false)
            }
            Some(b't' | b'f' | b'n') => self.word(name).map(|()| false),
            _ => Err(self.malformed("an integer, a string, an array or an object")),
        }
    }

    fn array(&mut self, name: &str, indices: &mut Vec<usize>, depth: usize) -> Result<bool, WitnessError> {
        self.expect(b'[', "an array")?;
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(false);
        }
        let mut bus = false;
        for position in 0.. {
            indices.push(position);
            bus |= self.value(name, indices, depth + 1)?;
            indices.pop();
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.malformed("a comma or the end of the array")),
            }
        }
        self.at += 1;
        Ok(bus)
    }

    /// A JSON number; its digits are kept as written, never through a float.
    fn number(&mut self, name: &str) -> Result<(), WitnessError> {
        let start = self.at;
        let digits = |reader: &mut Self| {
            let from = reader.at;
            while matches!(reader.peek(), Some(b'0'..=b'9')) {
                reader.at += 1;
            }
            reader.at - from
        };
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let first = self.peek();
        let length = digits(self);
        if length == 0 || (length > 1 && first == Some(b'0')) {
            return Err(self.malformed("the digits of an integer without leading zeros"));
        }
        let integer = self.at;
        if self.peek() == Some(b'.') {
            self.at += 1;
            if digits(self) == 0 {
                return Err(self.malformed("a digit after the point"));
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if digits(self) == 0 {
                return Err(self.malformed("the digits of an exponent"));
            }
        }
        let parsed = if self.at > integer {
            Err(BadValue::NotAnInteger)
        } else {
            let text = self.text.get(start..integer).unwrap_or_default();
            std::str::from_utf8(text)
                .map_err(|_| BadValue::NotAnInteger)
                .and_then(value::parse)
        };
        self.push(name, parsed, "a number with a fraction or an exponent");
        Ok(())
    }

    fn word(&mut self, name: &str) -> Result<(), WitnessError> {
        for (word, kind) in [("true", "a boolean"), ("false", "a boolean"), ("null", "null")] {
            if self.text[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                self.push(name, Err(BadValue::NotAnInteger), kind);
                return Ok(());
            }
        }
        Err(self.malformed("an integer, a string, an array or an object"))
    }

    fn string(&mut self, expected: &'static str) -> Result<String, WitnessError> {
        let start = self.at;
        self.expect(b'"', expected)?;
        loop {
            match self.peek() {
                None => return Err(self.malformed("the end of the string")),
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        // The escapes and the UTF-8 inside the quotation marks are the JSON library's business.
        let quoted = self.text.get(start..self.at).unwrap_or_default();
        serde_json::from_slice(quoted).map_err(|_| {
            self.at = start;
            self.malformed("a string of valid UTF-8 and JSON escapes")
        })
    }

    fn signal(&mut self, name: &str) -> usize {
        if let Some(&i) = self.index.get(name) {
            return i;
        }
        let i = self.signals.len();
        self.index.insert(name.to_owned(), i);
        self.signals.push(Given {
            name: name.to_owned(),
            values: Vec::new(),
            count: 0,
            bad: None,
        });
        i
    }

    fn push(&mut self, name: &str, parsed: Result<[u8; 32], BadValue>, kind: &'static str) {
        let i = self.signal(name);
        let Some(signal) = self.signals.get_mut(i) else {
            return;
        };
        let position = signal.count;
        signal.count += 1;
        match parsed {
            Ok(value) if self.room > 0 => {
                self.room -= 1;
                signal.values.push(value);
            }
            Ok(_) => {}
            Err(bad) => {
                signal.bad.get_or_insert(Bad {
                    position,
                    not_integer: (bad == BadValue::NotAnInteger).then_some(kind),
                });
            }
        }
    }
}

/// A name from outside, fit for an error text: escaped and cut.
pub(crate) fn printable(name: &str) -> String {
    const SHOWN: usize = 64;
    let mut text: String = name.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if name.chars().count() > SHOWN {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shape(text: &str) -> Vec<(String, usize, usize)> {
        read(text.as_bytes(), 1000)
            .unwrap()
            .into_iter()
            .map(|s| (s.name, s.count, s.values.len()))
            .collect()
    }

    fn code(text: &[u8]) -> &'static str {
        read(text, 1000).err().map_or("none", |e| e.code())
    }

    #[test]
    fn arrays_flatten_and_buses_get_their_names() {
        assert_eq!(
            shape(r#" {"a":[[1,"2"],["0x3"]], "b":{"x":1,"y":[2,3]}, "c":[{"x":1},{"x":[2]}], "d":[]} "#),
            [
                ("a".into(), 3, 3),
                ("b.x".into(), 1, 1),
                ("b.y".into(), 2, 2),
                ("c[0].x".into(), 1, 1),
                ("c[1].x".into(), 1, 1),
                ("d".into(), 0, 0),
            ]
        );
        assert_eq!(shape("{}"), []);
    }

    #[test]
    fn integers_keep_their_digits() {
        let text = "{\"a\": 52435875175126190479447740508185965837690552500527637822603658699938581184512}";
        let read = read(text.as_bytes(), 1).unwrap();
        let mut last = proofkeep_formats::field::R_LE;
        last[0] -= 1;
        assert_eq!(read[0].values, [last]);
    }

    #[test]
    fn values_beyond_the_limit_are_counted_not_kept() {
        let given = read(b"{\"a\":[1,2,3,4]}", 2).unwrap();
        assert_eq!((given[0].count, given[0].values.len()), (4, 2));
    }

    #[test]
    fn bad_values_are_told_by_position_and_kind() {
        for (text, kind) in [
            ("1.5", Some("a number with a fraction or an exponent")),
            ("1e3", Some("a number with a fraction or an exponent")),
            ("true", Some("a boolean")),
            ("null", Some("null")),
            ("\"x\"", Some("a string that is no integer")),
            (&"9".repeat(1000), None),
        ] {
            let given = read(format!("{{\"a\":[1,{text},1.5]}}").as_bytes(), 9).unwrap();
            let bad = given[0].bad.unwrap();
            assert_eq!((bad.position, bad.not_integer), (1, kind), "{text}");
        }
    }

    #[test]
    fn malformed_texts_are_refused() {
        let texts: &[&[u8]] = &[
            b"",
            b"[]",
            b"{",
            b"{\"a\"",
            b"{\"a\":",
            b"{\"a\":1",
            b"{\"a\":1,}",
            b"{\"a\":[1,]}",
            b"{\"a\":01}",
            b"{\"a\":-}",
            b"{\"a\":1.}",
            b"{\"a\":1e}",
            b"{\"a\":tru}",
            b"{\"a\":1} x",
            b"{a:1}",
            b"{\"a\\",
            b"{\"\xff\":1}",
            b"{\"\\q\":1}",
            b"{\"a\":\"\n\"}",
            b"{\"a\":+1}",
            b"{\"a\" 1}",
        ];
        for text in texts {
            assert_eq!(code(text), "malformed-json", "{}", text.escape_ascii());
        }
        assert_eq!(
            code(format!("{{\"a\":{}", "[".repeat(1 << 20)).as_bytes()),
            "malformed-json"
        );
        assert_eq!(
            code(format!("{{\"{}\":1}}", "x".repeat(2000)).as_bytes()),
            "malformed-json"
        );
        assert_eq!(code(b"{\"a\":1,\"a\":2}"), "signal-twice");
        assert_eq!(code(b"{\"a\":{\"x\":1},\"a.x\":2}"), "signal-twice");
    }

    #[test]
    fn the_place_of_an_error_is_told() {
        let error = read(b"{\"a\": 1,\n  \"b\" 2}", 9).err().unwrap();
        assert_eq!(
            error.to_string(),
            "input.json, line 2 column 7: expected a colon after the key, found a number"
        );
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let _ = read(&text, 10);
        }

        #[test]
        fn no_text_near_json_makes_it_panic(text in "[{}\\[\\]\",:0-9a-c\\\\ entruxf.-]{0,80}") {
            let _ = read(text.as_bytes(), 10);
            let _ = read(format!("{{\"a\":{text}").as_bytes(), 10);
        }
    }
}
