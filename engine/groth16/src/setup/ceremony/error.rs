//! Why no key could be made of powers of tau.

use std::{fmt, io};

use proofkeep_formats::{FormatError, count};

use crate::control::Stopped;

/// A first key that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CeremonyError {
    /// The circuit's constraints can't be read.
    #[error(transparent)]
    Circuit(#[from] FormatError),
    /// The circuit needs a larger domain than the powers of tau serve.
    #[error(
        "the circuit has {} and {} and needs powers of tau of power {needed} or more; this file has power {power}: \
         use a larger .ptau file",
        count(*constraints, "constraint"),
        count(*public, "public signal")
    )]
    TooLarge {
        /// Constraints of the circuit.
        constraints: u32,
        /// Its public signals.
        public: u32,
        /// The power that it needs.
        needed: u32,
        /// The power of the file.
        power: u32,
    },
    /// τ, α and β are 1.
    #[error(
        "nobody has contributed to these powers of tau, so their secrets are known (all are 1) and anyone could forge \
         proofs: run `snarkjs powersoftau contribute`, then `snarkjs powersoftau prepare phase2`, or use the file of a \
         public ceremony"
    )]
    NobodyContributed,
    /// A point is none.
    #[error(
        "point {index} of {section} of the powers of tau {fault}: the file is damaged or made to cheat, get it again \
         and check it with `snarkjs powersoftau verify`"
    )]
    Point {
        /// Where it stands.
        section: &'static str,
        /// Its number in the section, from 0.
        index: u64,
        /// What is wrong.
        fault: PtauPointFault,
    },
    /// β in G1 is not β in G2.
    #[error(
        "beta of the powers of tau is not the same in G1 and in G2: the file is damaged or made to cheat, get it again \
         and check it with `snarkjs powersoftau verify`"
    )]
    Unequal,
    /// Nothing follows a section that snarkjs reads past the end of.
    #[error(
        "section 2 of the powers of tau must be followed by another one, and ends the file: write it again with \
         `snarkjs powersoftau prepare phase2`"
    )]
    NothingBehind,
    /// The key can't be written.
    #[error("the key could not be written: {0}")]
    Io(#[from] io::Error),
    /// Stopped by the caller.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl CeremonyError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            CeremonyError::Circuit(error) => error.code(),
            CeremonyError::TooLarge { .. } => "ptau-too-small",
            CeremonyError::NobodyContributed => "ptau-unfinished",
            CeremonyError::Point { fault, .. } => fault.code(),
            CeremonyError::Unequal => "ptau-inconsistent",
            CeremonyError::NothingBehind => "section-missing",
            CeremonyError::Io(_) => "unwritable",
            CeremonyError::Stopped(_) => "stopped",
        }
    }
}

/// What is wrong with a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PtauPointFault {
    /// As a point of a key may be wrong.
    Key(crate::check::PointFault),
    /// The point is the identity, which no ceremony arrives at.
    Identity,
}

impl PtauPointFault {
    fn code(self) -> &'static str {
        match self {
            PtauPointFault::Key(fault) => fault.code(),
            PtauPointFault::Identity => "point-identity",
        }
    }
}

impl fmt::Display for PtauPointFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PtauPointFault::Key(fault) => fault.fmt(f),
            PtauPointFault::Identity => f.write_str("is the identity"),
        }
    }
}
