//! Arguments that several commands take, and how they are read: what can be told to be wrong without asking anybody is
//! a usage error.

use std::time::Duration;

use clap::builder::{NonEmptyStringValueParser, RangedU64ValueParser};

use crate::config::{DURATION, SIZE, parse_duration, parse_size};

/// A name, an id or a digest: anything but nothing.
pub fn name() -> NonEmptyStringValueParser {
    NonEmptyStringValueParser::new()
}

/// Threads of the processor.
pub fn threads() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=1024)
}

/// `64 KiB`, `2GiB`.
pub fn size(text: &str) -> Result<u64, String> {
    parse_size(text).ok_or_else(|| format!("expected {SIZE}"))
}

/// `250ms`, `20s`.
pub fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| format!("expected {DURATION}"))
}

/// What the daemon takes as an idempotency key.
pub fn idempotency_key(text: &str) -> Result<String, String> {
    let fits = (1..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    if fits {
        Ok(text.to_owned())
    } else {
        Err("expected 1 to 128 visible ASCII characters, without spaces".to_owned())
    }
}

/// `order=7`.
pub fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| "expected KEY=VALUE, like order=7".to_owned())?;
    Ok((key.to_owned(), value.to_owned()))
}
