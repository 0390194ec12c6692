//! Mutation of JSON and of lists of names: tokens are dropped, doubled and replaced by troublesome ones.

use crate::{Rng, binary};

const TOKENS: [&str; 37] = [
    "\"",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "-1",
    "0",
    "1",
    "00",
    "1e400",
    "1.5",
    "-0",
    "18446744073709551616",
    "4294967296",
    "\"0\"",
    "\"1\"",
    "\"\"",
    "\"-1\"",
    "\"01\"",
    "\"0x1\"",
    "null",
    "true",
    "\"groth16\"",
    "\"plonk\"",
    "\"bls12381\"",
    "\"bn128\"",
    "\"\\u0031\"",
    "\"\\ud800\"",
    "\u{661}",
    "\"52435875175126190479447740508185965837690552500527637822603658699938581184513\"",
    "\"4002409555221667393417789825735904156556882819939007885332058136124031650490837864442687629129015664037894272559787\"",
    "\n",
    "\"\",",
    "\"1\",",
    "[\"\",\"\",\"\"],",
];

const MOST: usize = 1 << 18;

/// Changes a text in one place, or with falling odds in more.
pub(crate) fn mutate(rng: &mut Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..rng.few() {
        if rng.one_in(4) {
            binary::flat(rng, bytes, other);
        } else {
            tokens(rng, bytes);
        }
        bytes.truncate(MOST);
    }
}

fn tokens(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let spans = split(bytes);
    if spans.is_empty() {
        bytes.extend_from_slice(rng.pick(&TOKENS).as_bytes());
        return;
    }
    let (start, end) = *rng.pick(&spans);
    match rng.below(6) {
        0 => drop(bytes.drain(start..end)),
        1 => {
            let copy = bytes[start..end].to_vec();
            bytes.splice(end..end, copy);
        }
        2 => {
            let (from, to) = *rng.pick(&spans);
            let copy = bytes[from..to].to_vec();
            bytes.splice(start..end, copy);
        }
        3 => {
            // Nests, or repeats, until a naive reader runs out of stack or memory.
            let times = 1 << rng.below(12);
            let token = rng.pick(&TOKENS).repeat(times);
            bytes.splice(start..start, token.into_bytes());
        }
        _ => {
            let token = rng.pick(&TOKENS);
            bytes.splice(start..end, token.bytes());
        }
    }
}

/// Strings with their quotes, runs of letters and digits, and single signs.
fn split(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut spans = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        let rest = &bytes[at..];
        let length = match rest[0] {
            b'"' => rest[1..]
                .iter()
                .position(|byte| *byte == b'"')
                .map_or(rest.len(), |end| end + 2),
            _ => rest.iter().take_while(|byte| word(byte)).count().max(1),
        };
        if !rest[0].is_ascii_whitespace() {
            spans.push((at, at + length));
        }
        at += length;
    }
    spans
}
