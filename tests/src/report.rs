//! What a crash test found, in a form that `tests/crash/REPORT.md` is made of.
//!
//! A test that has come to its end writes one [`Report`]. It prints a line `REPORT <name> <json>`; where the setting
//! `PROOFKEEP_REPORT_DIR` names a directory, the same JSON is written there as `<name>.json`:
//!
//! ```json
//! {"name":"power-cuts","seed":7,"counts":{"images":200},"lost":0,"failed":0}
//! ```
//! `counts` says how much was tried, each number by its name. `lost` is how many answers that callers had were gone,
//! `failed` how many trials ended badly in any other way. A test that fails writes none, or one with such numbers: a
//! missing file is a failure.
//!
//! ```
//! use proofkeep_tests::report::Report;
//! let report = Report::new("power-cuts", 7).count("images", 200).count("strict", 100);
//! assert_eq!(
//!     report.json(),
//!     r#"{"name":"power-cuts","seed":7,"counts":{"images":200,"strict":100},"lost":0,"failed":0}"#
//! );
//! ```

use std::path::PathBuf;

use serde::Serialize;

/// What is counted, in the order in which it was said.
#[derive(Debug, Clone, Default)]
struct Counts(Vec<(String, u64)>);

impl Serialize for Counts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, count)| (name, count)))
    }
}

/// What one test found.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    name: String,
    seed: u64,
    counts: Counts,
    lost: u64,
    failed: u64,
}

impl Report {
    /// An empty one. The name becomes a file's: lower-case letters, digits and `-`.
    ///
    /// # Panics
    /// When the name has something else in it.
    #[must_use]
    pub fn new(name: &str, seed: u64) -> Self {
        let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        assert!(
            !name.is_empty() && name.chars().all(plain),
            "a report's name has lower-case letters, digits and -, found {name:?}"
        );
        Self {
            name: name.to_owned(),
            seed,
            counts: Counts::default(),
            lost: 0,
            failed: 0,
        }
    }

    /// With so many of something; said twice, they are added.
    #[must_use]
    pub fn count(mut self, what: &str, number: u64) -> Self {
        match self.counts.0.iter_mut().find(|(name, _)| name == what) {
            Some((_, count)) => *count += number,
            None => self.counts.0.push((what.to_owned(), number)),
        }
        self
    }

    /// With so many answers lost.
    #[must_use]
    pub fn lost(mut self, number: u64) -> Self {
        self.lost += number;
        self
    }

    /// With so many trials that ended badly.
    #[must_use]
    pub fn failed(mut self, number: u64) -> Self {
        self.failed += number;
        self
    }

    /// The whole of it, on one line.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| panic!("a report is plain numbers: {error}"))
    }

    /// Prints it, and writes it where `PROOFKEEP_REPORT_DIR` says.
    ///
    /// # Panics
    /// When it can't be written there.
    #[expect(
        clippy::print_stdout,
        reason = "the line is for whoever reads the test's output"
    )]
    pub fn publish(&self) {
        let json = self.json();
        println!("REPORT {} {json}", self.name);
        let Some(directory) = std::env::var_os("PROOFKEEP_REPORT_DIR").filter(|name| !name.is_empty()) else {
            return;
        };
        let directory = PathBuf::from(directory);
        let file = directory.join(format!("{}.json", self.name));
        std::fs::create_dir_all(&directory)
            .and_then(|()| std::fs::write(&file, json + "\n"))
            .unwrap_or_else(|error| panic!("PROOFKEEP_REPORT_DIR: writing {}: {error}", file.display()));
    }
}
