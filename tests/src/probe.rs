//! A data directory is opened in a process of its own, checked whole, and held against what callers were told.
//!
//! In a process of its own, because a store that can't be read ends the process, and because a child that a test starts
//! meanwhile would hold the locks of a store that is open in the test.
//!
//! The process is the running test binary once more, with one of its tests: that test calls [`answer_if_asked`] first and
//! returns if it says so.

use std::path::{Path, PathBuf};
use std::process::Command;

use proofkeep_store::fsck::{Mode, fsck};
use proofkeep_store::{Options, Store};
use serde::{Deserialize, Serialize};

use crate::ledger::{Ledger, Said};

const QUESTION: &str = "PROOFKEEP_TEST_PROBE";
const ANSWER: &str = "PROBE ";

#[derive(Serialize, Deserialize)]
struct Question {
    data: PathBuf,
    said: Vec<Said>,
    prunes: bool,
}

/// What an open store shows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Seen {
    /// What `fsck` finds in the records.
    pub findings: Vec<String>,
    /// What was answered once and isn't there.
    pub losses: Vec<String>,
}

/// What came of opening it.
#[derive(Clone, Debug)]
pub enum Probed {
    /// It opened and was read to its end.
    Opened(Seen),
    /// It did not open; the error's text.
    Refused(String),
    /// The process ended while it read, with that code and that on stderr.
    Stopped(Option<i32>, String),
}

impl Probed {
    /// What is wrong, in words; nothing if all is there and in order.
    #[must_use]
    pub fn wrong(&self) -> Vec<String> {
        match self {
            Self::Opened(seen) => seen.findings.iter().chain(&seen.losses).cloned().collect(),
            Self::Refused(why) => vec![format!("the store doesn't open: {why}")],
            Self::Stopped(code, stderr) => vec![format!("reading it ended the process ({code:?}): {stderr}")],
        }
    }
}

/// Answers and says `true` in the process that [`probe`] starts.
///
/// # Panics
/// When the question can't be read.
#[must_use]
#[expect(clippy::print_stdout, reason = "the answer goes to the one who asked")]
pub fn answer_if_asked() -> bool {
    let Some(file) = std::env::var_os(QUESTION) else {
        return false;
    };
    let question = std::fs::read(file).unwrap_or_else(|error| panic!("the question: {error}"));
    let question: Question =
        serde_json::from_slice(&question).unwrap_or_else(|error| panic!("the question: {error}"));
    let ledger = if question.prunes {
        Ledger::of_a_store_that_prunes()
    } else {
        Ledger::new()
    };
    question.said.into_iter().for_each(|said| ledger.note(said));
    let answer = look(&question.data, &ledger);
    let text = serde_json::to_string(&answer).unwrap_or_else(|error| panic!("the answer: {error}"));
    println!("\n{ANSWER}{text}");
    true
}

fn look(data: &Path, ledger: &Ledger) -> Result<Seen, String> {
    let options = Options {
        create: false,
        ..Options::default()
    };
    let store = Store::open(data, &options).map_err(|error| error.to_string())?;
    let unreadable = |error: proofkeep_store::view::ReadError| error.to_string();
    let object_ok = |digest| store.objects().verify(digest).is_ok();
    let report = store
        .read(|view| fsck(view, Mode::Full, Some(&object_ok)))
        .map_err(unreadable)?;
    // A damaged record that the ledger meets is a finding already.
    let losses = ledger
        .losses(&store)
        .unwrap_or_else(|error| vec![error.to_string()]);
    Ok(Seen {
        findings: report.findings.iter().map(ToString::to_string).collect(),
        losses,
    })
}

/// Opens `data`, which no daemon uses, in a process that runs `test` of the running test binary.
///
/// # Panics
/// When the process can't be started, or says nothing although it ended well.
#[must_use]
pub fn probe(test: &str, data: &Path, ledger: &Ledger) -> Probed {
    let question = Question {
        data: data.to_owned(),
        said: ledger.said(),
        prunes: ledger.prunes(),
    };
    let file = tempfile::NamedTempFile::new().unwrap_or_else(|error| panic!("a file: {error}"));
    serde_json::to_writer(&file, &question).unwrap_or_else(|error| panic!("the question: {error}"));
    let program = std::env::current_exe().unwrap_or_else(|error| panic!("the test's own path: {error}"));
    let output = Command::new(program)
        .args(["--exact", test, "--nocapture"])
        .env(QUESTION, file.path())
        .output()
        .unwrap_or_else(|error| panic!("the test once more: {error}"));
    let stdout = String::from_utf8_lossy(&output.stdout);
    let answer = stdout.lines().find_map(|line| line.strip_prefix(ANSWER));
    match answer.map(serde_json::from_str::<Result<Seen, String>>) {
        Some(Ok(Ok(seen))) => Probed::Opened(seen),
        Some(Ok(Err(why))) => Probed::Refused(why),
        Some(Err(error)) => panic!("the answer: {error}"),
        None => {
            assert!(!output.status.success(), "{test} answered nothing: {stdout}");
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            Probed::Stopped(output.status.code(), stderr)
        }
    }
}
