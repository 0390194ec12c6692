//! Section 7: who contributed to the powers of tau.

use super::FILE;
use crate::FormatError;
use crate::ceremony::{ContributionKind, Parameters};
use crate::container::Cursor;
use crate::zkey::{G1_BYTES, G2_BYTES};

/// One step of the first phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtauContribution<'a> {
    /// The name that the contributor gave.
    pub name: Option<String>,
    /// A person's contribution, or a public beacon.
    pub kind: ContributionKind<'a>,
    /// Hash of the challenge for the next step.
    pub next_challenge: &'a [u8; 64],
}

/// τ, α and β after the step in G1, τ and β in G2; then the proof that the contributor knew the shares.
const POINTS: usize = (3 + 6) * G1_BYTES + (2 + 3) * G2_BYTES;
/// The state of BLAKE2b after the response, up to the proof.
const PARTIAL_HASH: usize = 216;
/// What a step takes without parameters: points, two hashes, the type and the length of parameters.
const LEAST: u64 = (POINTS + PARTIAL_HASH + 64 + 8) as u64;

pub(super) fn parse(section: &[u8]) -> Result<Vec<PtauContribution<'_>>, FormatError> {
    let mut cursor = Cursor::new(FILE, "section 7 (contributions)", section);
    let count = cursor.u32()?;
    let needed = u64::from(count) * LEAST;
    if cursor.left() < needed {
        return Err(FormatError::Truncated {
            file: FILE,
            place: format!("section 7 with {count} contributions"),
            needed,
            have: cursor.left(),
        });
    }
    let list = (0..count)
        .map(|index| contribution(&mut cursor, index))
        .collect::<Result<_, _>>()?;
    cursor.finish("the number of bytes after the last contribution")?;
    Ok(list)
}

fn contribution<'a>(cursor: &mut Cursor<'a>, index: u32) -> Result<PtauContribution<'a>, FormatError> {
    cursor.take(POINTS + PARTIAL_HASH)?;
    let next_challenge = cursor.array()?;
    let kind = cursor.u32()?;
    let length = cursor.u32()? as usize;
    let parameters = Parameters::parse(FILE, cursor.take(length)?)?;
    Ok(PtauContribution {
        kind: parameters.kind(FILE, kind, index)?,
        name: parameters.name,
        next_challenge,
    })
}
