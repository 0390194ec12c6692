//! Section 10: the circuit's hash and the contributions to the ceremony.

use super::{FILE, G1_BYTES, G2_BYTES};
use crate::FormatError;
use crate::ceremony::{ContributionKind, Parameters};
use crate::container::Cursor;

/// What the key says about its ceremony. It proves nothing by itself: `snarkjs zkey verify` checks it against a file
/// of powers of tau.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contributions<'a> {
    /// BLAKE2b hash of the circuit and the powers of tau. All zero in a key that came from no ceremony.
    pub circuit_hash: &'a [u8; 64],
    /// The contributions in order.
    pub list: Vec<Contribution<'a>>,
}

/// One step of a ceremony.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contribution<'a> {
    /// The name that the contributor gave.
    pub name: Option<String>,
    /// A person's contribution, or a public beacon.
    pub kind: ContributionKind<'a>,
    /// δ in G1 after this step.
    pub delta_after: &'a [u8; G1_BYTES],
    /// Hash of the transcript up to this step.
    pub transcript: &'a [u8; 64],
}

/// The least that a contribution takes: four points, the transcript's hash, the type and the length of parameters.
const LEAST: u64 = 3 * G1_BYTES as u64 + G2_BYTES as u64 + 64 + 8;

impl<'a> Contributions<'a> {
    pub(super) fn parse(section: &'a [u8]) -> Result<Self, FormatError> {
        let mut cursor = Cursor::new(FILE, "section 10 (contributions)", section);
        let circuit_hash = cursor.array()?;
        let count = cursor.u32()?;
        let needed = u64::from(count) * LEAST;
        if cursor.left() < needed {
            return Err(FormatError::Truncated {
                file: FILE,
                place: format!("section 10 with {count} contributions"),
                needed,
                have: cursor.left(),
            });
        }
        let list = (0..count)
            .map(|index| Contribution::parse(&mut cursor, index))
            .collect::<Result<_, _>>()?;
        cursor.finish("the number of bytes after the last contribution")?;
        Ok(Contributions { circuit_hash, list })
    }
}

impl<'a> Contribution<'a> {
    fn parse(cursor: &mut Cursor<'a>, index: u32) -> Result<Self, FormatError> {
        let delta_after = cursor.array()?;
        // The proof that this step knew its share: s and s·x in G1, s'·x in G2.
        cursor.take(2 * G1_BYTES + G2_BYTES)?;
        let transcript = cursor.array()?;
        let kind = cursor.u32()?;
        let length = cursor.u32()? as usize;
        let parameters = Parameters::parse(FILE, cursor.take(length)?)?;
        let kind = parameters.kind(FILE, kind, index)?;
        Ok(Contribution {
            name: parameters.name,
            kind,
            delta_after,
            transcript,
        })
    }
}
