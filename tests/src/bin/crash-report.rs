//! Makes the crash report of what the crash tests wrote.
//!
//! ```text
//! crash-report DIRECTORY               prints the report; fails if a test wrote nothing, or lost something
//! crash-report DIRECTORY REPORT.md     writes it, and the table between the marks in README.md of the directory it is called in
//! ```
//! `tests/crash/report.sh` runs the tests and then this.

#![allow(clippy::print_stdout, reason = "a program that prints")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use proofkeep_tests::crash_report::{self, Found};

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let done = match arguments.as_slice() {
        [directory] => report(directory).inspect(|found| {
            println!("{}", crash_report::page(found));
        }),
        [directory, file] => report(directory).and_then(|found| {
            std::fs::write(file, crash_report::page(&found))
                .map_err(|error| format!("writing {}: {error}", file.display()))?;
            put_into_readme(&found).map(|()| found)
        }),
        _ => Err("usage: crash-report DIRECTORY [REPORT.md]".to_owned()),
    };
    match done.map(|found| crash_report::complaints(&found)) {
        Ok(complaints) if complaints.is_empty() => ExitCode::SUCCESS,
        Ok(complaints) => {
            complaints.iter().for_each(|complaint| eprintln!("{complaint}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn report(directory: &Path) -> Result<Vec<Found>, String> {
    crash_report::read(directory).map_err(|error| format!("reading {}: {error}", directory.display()))
}

fn put_into_readme(found: &[Found]) -> Result<(), String> {
    let path = Path::new("README.md");
    let say = |error: std::io::Error| format!("README.md of this directory: {error}");
    let text = std::fs::read_to_string(path).map_err(say)?;
    let text = crash_report::with_table(&text, found).ok_or_else(|| {
        format!(
            "README.md has no {} and {}",
            crash_report::BEGIN,
            crash_report::END
        )
    })?;
    std::fs::write(path, text).map_err(say)
}
