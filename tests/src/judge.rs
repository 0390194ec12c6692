//! What a crash must leave: a directory that opens, that is clean before and after its recovery, that holds what was
//! promised, and whose proofs verify.
//!
//! The directory is opened by other processes: by the released binary's `fsck`, and by `proofkeep-judge`, which is
//! [`main`] here. sled panics and the store ends its process where what it reads can't be trusted; both are a verdict
//! on the directory, and neither may take the test along.

mod look;

use std::io::{self, BufRead as _, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use proofkeep_store::machine::Rules;
use proofkeep_store::{OpenError, Options, Store};

use crate::harness;
use crate::ledger::{Ledger, Said};
use look::Wanted;

/// What ends the answer of a judge that came to its end.
const DONE: &str = "that is all";

/// What stands before the digest of all records.
const RECORDS: &str = "records ";

/// The setting that names a rule to be left out.
pub const WITHOUT: &str = "PROOFKEEP_WITHOUT_RULE";

/// The name of the one rule of the store that a test may leave out: [`Options::log_fits_segment`].
pub const LOG_FITS_SEGMENT: &str = "log_fits_segment";

/// The rules of the state machine, and how a store is opened, in a process whose environment may name one rule to be
/// left out.
///
/// # Errors
/// When there is no such rule; with a sentence that names all.
pub fn rules() -> Result<(Rules, Options), String> {
    let mut store = Options::default();
    let name = match std::env::var(WITHOUT) {
        Ok(name) => name,
        Err(_) => return Ok((Rules::ALL, store)),
    };
    if name == LOG_FITS_SEGMENT {
        store.log_fits_segment = false;
        return Ok((Rules::ALL, store));
    }
    Rules::without(&name).map(|rules| (rules, store)).ok_or_else(|| {
        format!(
            "{WITHOUT}={name}: there is no such rule; there are {LOG_FITS_SEGMENT} and {:?}",
            Rules::NAMES
        )
    })
}

/// How a directory is judged.
#[derive(Debug, Clone, Copy, Default)]
pub struct Judge {
    /// Ended jobs may have been pruned.
    pub prunes: bool,
    /// Every job must have ended.
    pub ended: bool,
    /// Its proofs are made up, as a fixture's are: they aren't verified.
    pub made_up: bool,
    /// It was written without the rule [`LOG_FITS_SEGMENT`].
    pub without: bool,
}

impl Judge {
    /// What is wrong with a directory, given what callers had been told; nothing, if all is well.
    ///
    /// # Panics
    /// When the judges can't be run.
    pub fn judge<'a>(&self, image: &Path, said: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut wrong = Vec::new();
        // A directory whose making was cut off is none yet; the judge makes it anew.
        if image.join("FORMAT").exists() && !self.without {
            let fsck = harness::proofkeep(["fsck".as_ref(), "--data-dir".as_ref(), image.as_os_str()]);
            if fsck.code != 0 {
                wrong.push(format!(
                    "proofkeep fsck ends with {}: {}{}",
                    fsck.code, fsck.stdout, fsck.stderr
                ));
            }
        }
        wrong.extend(self.own(image, said));
        wrong
    }

    /// The digest of every record there is, keys and values; `None` if the schema is an older one.
    ///
    /// # Panics
    /// When the directory doesn't open.
    #[must_use]
    pub fn records(image: &Path) -> Option<String> {
        let ran = harness::run(
            Command::new(harness::judge_binary())
                .arg(image)
                .arg("--records")
                .stdin(Stdio::null()),
        );
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        let line = ran.stdout.lines().next().unwrap_or_default();
        line.strip_prefix(RECORDS).map(str::to_owned)
    }

    fn own<'a>(&self, image: &Path, said: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut command = Command::new(harness::judge_binary());
        command.arg(image).env_remove(WITHOUT);
        for (flag, set) in [
            ("--prunes", self.prunes),
            ("--ended", self.ended),
            ("--made-up", self.made_up),
        ] {
            command.args(set.then_some(flag));
        }
        if self.without {
            command.env(WITHOUT, LOG_FITS_SEGMENT);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut lines: Vec<u8> = Vec::new();
        for said in said {
            lines.extend(said);
            lines.push(b'\n');
        }
        if let Some(mut stdin) = child.stdin.take() {
            // A judge that ended before it read all says why below.
            let _ = stdin.write_all(&lines);
        }
        let output = child
            .wait_with_output()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let text = String::from_utf8_lossy(&output.stdout);
        let mut wrong: Vec<String> = text.lines().map(str::to_owned).collect();
        if wrong.pop().as_deref() != Some(DONE) || !output.status.success() {
            wrong.push(format!(
                "the store ended the process that looked at it ({}): {}{}",
                output.status,
                text.trim_end(),
                String::from_utf8_lossy(&output.stderr)
            ));
        }
        wrong
    }
}

/// Whether a line of a verdict says that an answer is lost, and not only that a store is unusable.
#[must_use]
pub fn is_a_loss(wrong: &str) -> bool {
    ["job ", "circuit ", "the upload "]
        .iter()
        .any(|start| wrong.starts_with(start))
}

/// `proofkeep-judge DIRECTORY [--prunes] [--ended] [--made-up] [--records]`, with what callers were told on its input, a [`Said`] in JSON a line.
/// A line of its output is something that is wrong; with `--records`, the digest of all records and nothing else.
#[must_use]
pub fn main() -> ExitCode {
    match judged() {
        Ok(wrong) => {
            let mut out = io::stdout().lock();
            let lines = wrong.iter().map(|text| text.replace('\n', " "));
            let written = lines
                .chain([DONE.to_owned()])
                .try_for_each(|line| writeln!(out, "{line}"));
            written.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
        }
        Err(error) => {
            // Nobody is left to hear of a failure to write this.
            let _ = writeln!(io::stderr(), "proofkeep-judge: {error}");
            ExitCode::from(2)
        }
    }
}

fn judged() -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let image = arguments
        .next()
        .ok_or("usage: proofkeep-judge DIRECTORY [--prunes] [--ended] [--made-up]")?;
    let flags: Vec<String> = arguments.collect();
    let given = |wanted: &str| flags.iter().any(|flag| flag == wanted);
    let ledger = if given("--prunes") {
        Ledger::of_a_store_that_prunes()
    } else {
        Ledger::new()
    };
    for line in io::stdin().lock().lines() {
        ledger.note(serde_json::from_str::<Said>(&line?)?);
    }
    let (_, options) = rules()?;
    let store = match Store::open(Path::new(&image), &options) {
        Ok(store) => store,
        Err(OpenError::Older { .. }) if given("--records") => return Ok(Vec::new()),
        Err(error) => return Ok(vec![format!("{image} doesn't open: {error}")]),
    };
    if given("--records") {
        return Ok(vec![format!("{RECORDS}{}", look::digest(&store)?)]);
    }
    let wanted = Wanted {
        ended: given("--ended"),
        proofs: !given("--made-up"),
    };
    let mut wrong = look::at(&store, &ledger, wanted);
    if !wanted.ended {
        look::recover(&store)?;
        let after = look::at(&store, &ledger, wanted);
        wrong.extend(after.iter().map(|text| format!("{text} (after the recovery)")));
    }
    Ok(wrong)
}
