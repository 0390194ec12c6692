//! The numbers that a person may set for a run, and seeds that change with the commit.

use std::process::Command;
use std::str::FromStr;

/// What an environment variable says; `None` where it isn't set.
///
/// # Panics
/// When it says something else than such a number.
#[must_use]
pub fn number<T: FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} must be a number, found {text:?}")),
    )
}

/// What `PROOFKEEP_SEED` says, or else another one for each commit, the same for all runs of one; 1 outside of a
/// repository. The caller prints it.
///
/// # Panics
/// When the variable is no number.
#[must_use]
pub fn seed() -> u64 {
    number("PROOFKEEP_SEED").unwrap_or_else(seed_of_commit)
}

fn seed_of_commit() -> u64 {
    let commit = Command::new("git").args(["rev-parse", "HEAD"]).output();
    let text = commit
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    u64::from_str_radix(text.get(..8).unwrap_or("1"), 16).unwrap_or(1)
}
