//! Bytes that were written once and must be read for ever.
//!
//! `golden.txt` holds a line for each sample: its name and its bytes in hex. A test that fails here says that a frozen
//! shape changed; undo that, and make a new schema instead. Lines are only ever added.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod events;
mod samples;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::wire;

/// Samples by name: their bytes, and whether those read back as what they were made from.
pub(super) struct Samples(BTreeMap<&'static str, (Vec<u8>, bool)>);

impl Samples {
    /// Adds a sample.
    pub(super) fn add<T: Serialize + DeserializeOwned + PartialEq>(
        &mut self,
        name: &'static str,
        sample: &T,
    ) {
        let bytes = wire::encode(sample);
        let whole = wire::decode::<T>(&bytes).as_ref() == Ok(sample);
        assert!(
            self.0.insert(name, (bytes, whole)).is_none(),
            "two samples are named {name}"
        );
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

#[test]
fn shapes_are_what_they_were() {
    let mut samples = Samples(BTreeMap::new());
    samples::add(&mut samples);
    events::add(&mut samples);
    let golden: BTreeMap<&str, &str> = include_str!("golden.txt")
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    let mut lines = String::new();
    for (name, (bytes, whole)) in &samples.0 {
        assert!(whole, "{name} does not read back");
        writeln!(lines, "{name} {}", hex(bytes)).unwrap();
    }
    for (name, (bytes, _)) in &samples.0 {
        assert_eq!(
            golden.get(name).copied(),
            Some(hex(bytes).as_str()),
            "{name}; all samples:\n{lines}"
        );
    }
    assert_eq!(golden.len(), samples.0.len(), "a sample was taken out");
}
