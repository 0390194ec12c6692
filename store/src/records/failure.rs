//! Why something ended without success.

use std::fmt;

/// The class decides what happens next; see the table in `STATES`' failure classes and `machine::verdict`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureClass {
    /// The input can't be read, or doesn't fit the circuit.
    InputInvalid,
    /// The witness breaks a constraint.
    Unsatisfied,
    /// The key is not the one the circuit needs.
    ParamsMismatch,
    /// A file that a record names is gone.
    InputMissing,
    /// The circuit's import failed.
    CircuitFailed,
    /// The joined proof was refused by its verifier.
    JoinInvalid,
    /// The kernel or the allocator refused memory.
    OutOfMemory,
    /// The device reported an error.
    DeviceError,
    /// The finished proof did not verify.
    InvalidProof,
    /// It took longer than allowed.
    TimedOut,
    /// No progress was seen for too long.
    Stalled,
    /// The process that held the lease died.
    Interrupted,
    /// The daemon was asked to stop.
    Shutdown,
    /// The device went away.
    DeviceUnavailable,
    /// A more urgent partition took its place.
    Preempted,
    /// It crashed its worker process again and again.
    Poison,
    /// The job was stopped while this ran.
    Cancelled,
}

impl FailureClass {
    /// Every class, for tables and tests.
    pub const ALL: [Self; 17] = [
        Self::InputInvalid,
        Self::Unsatisfied,
        Self::ParamsMismatch,
        Self::InputMissing,
        Self::CircuitFailed,
        Self::JoinInvalid,
        Self::OutOfMemory,
        Self::DeviceError,
        Self::InvalidProof,
        Self::TimedOut,
        Self::Stalled,
        Self::Interrupted,
        Self::Shutdown,
        Self::DeviceUnavailable,
        Self::Preempted,
        Self::Poison,
        Self::Cancelled,
    ];

    /// The name in answers and logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::InputInvalid => "input_invalid",
            Self::Unsatisfied => "unsatisfied",
            Self::ParamsMismatch => "params_mismatch",
            Self::InputMissing => "input_missing",
            Self::CircuitFailed => "circuit_failed",
            Self::JoinInvalid => "join_invalid",
            Self::OutOfMemory => "out_of_memory",
            Self::DeviceError => "device_error",
            Self::InvalidProof => "invalid_proof",
            Self::TimedOut => "timed_out",
            Self::Stalled => "stalled",
            Self::Interrupted => "interrupted",
            Self::Shutdown => "shutdown",
            Self::DeviceUnavailable => "device_unavailable",
            Self::Preempted => "preempted",
            Self::Poison => "poison",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A failure as users see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure; decides about retries.
    pub class: FailureClass,
    /// A stable code, `kebab-case`, at most 64 bytes.
    pub code: String,
    /// One sentence for a person: what was expected, found, and what to do. At most 1 KiB; never a secret.
    pub detail: String,
}

impl Failure {
    /// A failure whose code is its class's name with dashes. Text past 1 KiB is cut at a character boundary.
    #[must_use]
    pub fn new(class: FailureClass, detail: impl Into<String>) -> Self {
        Self::coded(class, class.name().replace('_', "-"), detail)
    }

    /// The same with a code of its own.
    #[must_use]
    pub fn coded(class: FailureClass, code: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            class,
            code: cut(code.into(), 64),
            detail: cut(detail.into(), 1024),
        }
    }
}

fn cut(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let mut end = limit;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    text
}
