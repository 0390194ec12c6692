//! A witness as the prover takes it: borrowed, checked, and shown to no one.

use std::fmt;

use proofkeep_formats::field::is_canonical_r;
use proofkeep_formats::wtns;

use crate::field::ScalarBytes;

/// The values of all wires: the constant one, the public signals, then the rest.
#[derive(Clone, Copy)]
pub struct Witness<'a> {
    values: &'a [ScalarBytes],
}

impl fmt::Debug for Witness<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Witness")
            .field("wires", &self.values.len())
            .finish_non_exhaustive()
    }
}

/// Values that no circuit has as its witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WitnessError {
    /// Wire 0 is the constant one.
    #[error("the first value of a witness must be 1")]
    NoConstant,
    /// A value is not below `r`.
    #[error("the value of wire {wire} is not below the order of BLS12-381's scalar field")]
    NonCanonical {
        /// The first such wire.
        wire: usize,
    },
}

impl WitnessError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            WitnessError::NoConstant => "bad-witness",
            WitnessError::NonCanonical { .. } => "non-canonical",
        }
    }
}

impl<'a> Witness<'a> {
    /// Checks that every value is canonical and that wire 0 is one.
    pub fn new(values: &'a [ScalarBytes]) -> Result<Self, WitnessError> {
        if let Some(wire) = values.iter().position(|value| !is_canonical_r(value)) {
            return Err(WitnessError::NonCanonical { wire });
        }
        match values.first() {
            Some([1, rest @ ..]) if rest.iter().all(|byte| *byte == 0) => Ok(Witness { values }),
            _ => Err(WitnessError::NoConstant),
        }
    }

    /// How many wires it has.
    pub fn wires(&self) -> usize {
        self.values.len()
    }

    /// All values.
    pub fn values(&self) -> &'a [ScalarBytes] {
        self.values
    }

    /// The values of the first `count` signals after the constant: the public ones.
    pub fn public(&self, count: usize) -> &'a [ScalarBytes] {
        self.values.get(1..1 + count).unwrap_or(&[])
    }
}

impl<'a> From<wtns::Witness<'a>> for Witness<'a> {
    /// The parser has checked the same.
    fn from(witness: wtns::Witness<'a>) -> Self {
        Witness {
            values: witness.values(),
        }
    }
}
