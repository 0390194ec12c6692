//! The crash report: one page and one table of what the crash tests wrote through [`crate::report`].

mod catalogue;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::Deserialize;

use crate::machine;
use catalogue::{TESTS, Test};

/// Before the table in the README.
pub const BEGIN: &str = "<!-- crash:begin -->";
/// After it.
pub const END: &str = "<!-- crash:end -->";

/// What one test wrote.
#[derive(Debug, Clone, Deserialize)]
pub struct Found {
    name: String,
    seed: u64,
    counts: serde_json::Map<String, serde_json::Value>,
    lost: u64,
    failed: u64,
}

impl Found {
    fn counted(&self, what: &str) -> u64 {
        self.counts
            .get(what)
            .and_then(serde_json::Value::as_u64)
            .unwrap_or(0)
    }
}

/// Reads what the tests wrote, in the order of the report; what it doesn't know comes last.
///
/// # Errors
/// When the directory or a file in it can't be read, or a file is no report.
pub fn read(directory: &Path) -> io::Result<Vec<Found>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let one: Found = serde_json::from_slice(&std::fs::read(&path)?).map_err(io::Error::other)?;
            found.insert(one.name.clone(), one);
        }
    }
    let known: Vec<Found> = TESTS.iter().filter_map(|test| found.remove(test.name)).collect();
    Ok(known.into_iter().chain(found.into_values()).collect())
}

/// What keeps the report from being good: a test without a result, an answer lost, a trial that ended badly.
#[must_use]
pub fn complaints(found: &[Found]) -> Vec<String> {
    let missing = TESTS
        .iter()
        .filter(|test| found.iter().all(|one| one.name != test.name))
        .map(|test| format!("{}: no result; run `bash tests/crash/report.sh`", test.name));
    let bad = found.iter().filter_map(|one| {
        let wrong = one.lost + one.failed;
        match (test(one).is_some_and(|test| test.control), wrong) {
            (false, 0) | (true, 1..) => None,
            (false, _) => Some(format!(
                "{}: {} answers lost, {} trials ended badly",
                one.name, one.lost, one.failed
            )),
            (true, 0) => Some(format!(
                "{}: nothing is lost without the rule, so it shows nothing",
                one.name
            )),
        }
    });
    missing.chain(bad).collect()
}

fn test(found: &Found) -> Option<&'static Test> {
    TESTS.iter().find(|test| test.name == found.name)
}

/// One row a test; a second table for the controls, which must lose something.
#[must_use]
pub fn table(found: &[Found]) -> String {
    let (controls, tests): (Vec<_>, Vec<_>) = found
        .iter()
        .partition(|one| test(one).is_some_and(|test| test.control));
    let mut text = rows("", &tests);
    if !controls.is_empty() {
        text += "\nThat it can fail, with a rule taken out:\n\n";
        text += &rows("without a rule", &controls);
    }
    text
}

fn rows(heading: &str, found: &[&Found]) -> String {
    let mut text =
        format!("| {heading} | tried | answers lost | ended badly |\n| --- | ---: | ---: | ---: |\n");
    for one in found {
        let test = test(one);
        let title = test.map_or(one.name.as_str(), |test| test.title);
        let tried = test.map_or(String::new(), |test| {
            format!("{} {}", grouped(one.counted(test.tried)), test.tried)
        });
        text += &format!("| {title} | {tried} | {} | {} |\n", one.lost, one.failed);
    }
    text
}

/// The whole report, in Markdown.
#[must_use]
pub fn page(found: &[Found]) -> String {
    let mut text = format!(
        "# Crash report\n\nWritten by `bash tests/crash/report.sh write` with the counts that CI has, or by `full` in place of \
         `write` with larger ones (hours). What was run by hand beside it stands in [RESULTS.md](RESULTS.md). {}.\n\n{}",
        machine::processor(),
        table(found)
    );
    for one in found {
        let test = test(one);
        text += &format!("\n## {}\n\n", test.map_or(one.name.as_str(), |test| test.title));
        if let Some(test) = test {
            text += &format!("{}\n\n```text\n{}\n```\n\n", test.text, test.command);
        }
        text += &format!("Seed {}.\n\n| | |\n| --- | ---: |\n", one.seed);
        for (what, number) in &one.counts {
            let number = number.as_u64().map_or_else(|| number.to_string(), grouped);
            text += &format!("| {what} | {number} |\n");
        }
        if one.name == "soak" {
            text += "\n![Memory, descriptors, threads and disk over the time of the soak](soak.svg)\n";
        }
    }
    text
}

/// The text with the table between its marks; `None` when it has no marks.
#[must_use]
pub fn with_table(text: &str, found: &[Found]) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{}\n{END}{after}", table(found)))
}

/// 20000 as 20,000.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn found(name: &str, lost: u64) -> Found {
        serde_json::from_str(&format!(
            r#"{{"name":"{name}","seed":7,"counts":{{"kills":20000,"images":3}},"lost":{lost},"failed":0}}"#
        ))
        .unwrap()
    }

    #[test]
    fn the_table_has_a_row_for_each_test_and_stands_between_the_marks() {
        let all = [found("kills", 0), found("other", 0)];
        let text = with_table(&format!("a\n{BEGIN}\nold\n{END}\nz\n"), &all).unwrap();
        assert!(
            text.contains("| `kill -9` of daemon and workers | 20,000 kills | 0 | 0 |"),
            "{text}"
        );
        assert!(text.contains("| other |  | 0 | 0 |"), "{text}");
        assert!(
            text.starts_with("a\n") && text.ends_with("\nz\n") && !text.contains("old"),
            "{text}"
        );
    }

    #[test]
    fn a_test_that_wrote_nothing_and_a_lost_answer_are_complaints() {
        let all: Vec<Found> = TESTS
            .iter()
            .map(|test| found(test.name, u64::from(test.control)))
            .collect();
        assert_eq!(complaints(&all), Vec::<String>::new());
        assert_eq!(complaints(&all[1..]).len(), 1);
        assert_eq!(
            complaints(&[all.as_slice(), &[found("other", 2)]].concat()).len(),
            1
        );
    }
}
