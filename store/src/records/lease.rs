//! The right to work.

use crate::ids::{Digest, JobNumber, Millis, ProcessId, Token, WorkerId};

/// What a lease is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Making the witness.
    Synth,
    /// On the device.
    Prove,
    /// Assembling and self-verifying, off the device.
    Finish,
}

impl Stage {
    /// The name in answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Synth => "synth",
            Self::Prove => "prove",
            Self::Finish => "finish",
        }
    }
}

/// What is being worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// One partition in one stage.
    Partition {
        /// Whose.
        job: JobNumber,
        /// Which.
        partition: u32,
        /// In which stage.
        stage: Stage,
    },
    /// The final check of a job.
    Verify {
        /// Whose.
        job: JobNumber,
    },
    /// The import of a circuit.
    Import {
        /// Which.
        circuit: Digest,
    },
}

/// A lease in force. Its record is gone when it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Its name, never used again.
    pub token: Token,
    /// For what.
    pub subject: Subject,
    /// The process that works under it; `None` for work of the daemon itself.
    pub process: Option<ProcessId>,
    /// The device slot that it holds, in stage prove.
    pub worker: Option<WorkerId>,
    /// When the current stage was granted.
    pub granted_at: Millis,
}
