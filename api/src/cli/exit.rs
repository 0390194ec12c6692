//! How a command ends, and why it failed.

use std::fmt;
use std::process::ExitCode;

use proofkeep_engine::problem::Problem;
use proofkeep_formats::FormatError;
use proofkeep_store::records::{Failure, FailureClass};

/// How a command ended, as its exit code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: done.
    Done,
    /// 1: failed.
    Failed,
    /// 2: the arguments are wrong.
    Usage,
    /// 3: the job was cancelled.
    Cancelled,
    /// 4: it took longer than was to be waited for.
    TimedOut,
    /// 5: no daemon answers.
    Unreachable,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Cancelled => 3,
            Exit::TimedOut => 4,
            Exit::Unreachable => 5,
        })
    }
}

/// Why a command failed: one clear sentence and a stable code.
#[derive(Clone, Debug)]
pub struct CliError {
    /// The exit code.
    pub exit: Exit,
    /// For programs.
    pub code: String,
    /// For people: what was expected, what was found, what to do.
    pub detail: String,
}

impl CliError {
    /// A failure of the work itself.
    pub fn failed(code: &str, detail: impl Into<String>) -> Self {
        Self {
            exit: Exit::Failed,
            code: code.to_owned(),
            detail: detail.into(),
        }
    }

    /// Arguments that don't fit together.
    pub fn usage(detail: impl Into<String>) -> Self {
        Self {
            exit: Exit::Usage,
            code: "usage".to_owned(),
            detail: detail.into(),
        }
    }

    /// The same, with what it was about in front.
    pub fn about(mut self, subject: impl fmt::Display) -> Self {
        self.detail = format!("{subject}: {}", self.detail);
        self
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.detail, self.code)
    }
}

impl std::error::Error for CliError {}

impl From<FormatError> for CliError {
    fn from(error: FormatError) -> Self {
        Self::failed(error.code(), error.to_string())
    }
}

impl From<proofkeep_witness::WitnessError> for CliError {
    fn from(error: proofkeep_witness::WitnessError) -> Self {
        Self::failed(error.code(), error.to_string())
    }
}

impl From<Failure> for CliError {
    fn from(failure: Failure) -> Self {
        let exit = if failure.class == FailureClass::Cancelled {
            Exit::Cancelled
        } else {
            Exit::Failed
        };
        let code = if failure.code.is_empty() {
            failure.class.name().replace('_', "-")
        } else {
            failure.code
        };
        Self {
            exit,
            code,
            detail: failure.detail,
        }
    }
}

impl From<Problem> for CliError {
    fn from(problem: Problem) -> Self {
        Self::failed(&problem.code, problem.detail)
    }
}
