//! The head of bellperson's parameters: the points of the verifying key, and how long each list is.

use std::io::{self, Read as _, SeekFrom};

use proofkeep_formats::params::{Counts, G1_BYTES, G2_BYTES};
use proofkeep_formats::{FileKind, FormatError};
use proofkeep_groth16::vk::{UnfinishedSetup, VerifyingKey};

use super::{HeaderError, Source, truncated};

const FILE: FileKind = FileKind::Params;
const G1: u64 = G1_BYTES as u64;
const G2: u64 = G2_BYTES as u64;
/// α₁ β₁ β₂ γ₂ δ₁ δ₂ stand before the lists.
const POINTS: u64 = 3 * G1 + 3 * G2;
const GAMMA2: usize = 2 * G1_BYTES + G2_BYTES;
const DELTA2: usize = GAMMA2 + G2_BYTES + G1_BYTES;

/// What a parameter file says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParamsHead {
    pub counts: Counts,
    /// γ₂ = δ₂: anyone can forge proofs.
    pub unfinished: bool,
}

/// Whether a proving key is snarkjs's. No parameter file begins like one: its first bits would be flags that no
/// uncompressed point has.
pub(super) fn is_zkey(source: &mut dyn Source) -> io::Result<bool> {
    source.seek(SeekFrom::Start(0))?;
    let mut start = Vec::new();
    (&mut *source).take(4).read_to_end(&mut start)?;
    Ok(start == *b"zkey")
}

/// Reads the head of a parameter file, and holds its counts against its length.
pub(crate) fn params(source: &mut dyn Source) -> Result<ParamsHead, HeaderError> {
    if is_zkey(source)? {
        return Err(FormatError::BadMagic {
            file: FILE,
            expected: "a point of G1",
            found: "zkey".to_owned(),
        }
        .into());
    }
    let total = source.seek(SeekFrom::End(0))?;
    truncated(FILE, "the points of the verifying key", POINTS, total)?;
    let mut points = vec![0; POINTS as usize];
    source.seek(SeekFrom::Start(0))?;
    source.read_exact(&mut points)?;
    let mut place = POINTS;
    let mut list = |name: &str, size: u64| -> Result<u64, HeaderError> {
        truncated(FILE, &format!("the length of the list {name}"), 4, total - place)?;
        let mut count = [0; 4];
        source.seek(SeekFrom::Start(place))?;
        source.read_exact(&mut count)?;
        place += 4;
        let count = u64::from(u32::from_be_bytes(count));
        let whole = format!("the list {name} of {}", proofkeep_formats::count(count, "point"));
        truncated(FILE, &whole, count * size, total - place)?;
        place += count * size;
        Ok(count)
    };
    let counts = Counts {
        ic: list("IC", G1)?,
        h: list("H", G1)?,
        l: list("L", G1)?,
        a: list("A", G1)?,
        b1: list("B in G1", G1)?,
        b2: list("B in G2", G2)?,
    };
    if place != total {
        return Err(FormatError::BadCount {
            file: FILE,
            what: "the number of bytes after the last list",
            expected: "0".to_owned(),
            found: total - place,
        }
        .into());
    }
    counts.check()?;
    Ok(ParamsHead {
        counts,
        unfinished: points[GAMMA2..GAMMA2 + G2_BYTES] == points[DELTA2..DELTA2 + G2_BYTES],
    })
}

/// The verification key in a parameter file, as an import writes it.
pub(super) fn verification_key(
    source: &mut dyn Source,
    unfinished: UnfinishedSetup,
) -> Result<Vec<u8>, String> {
    let found = params(source).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    source
        .seek(SeekFrom::Start(0))
        .and_then(|_| {
            let length = POINTS + 4 + found.counts.ic * G1;
            (&mut *source).take(length).read_to_end(&mut bytes)
        })
        .map_err(|error| error.to_string())?;
    VerifyingKey::from_bellperson_bytes_with(&bytes, unfinished)
        .map_err(|error| error.to_string())?
        .to_json()
        .to_json()
        .map(String::into_bytes)
        .map_err(|error| error.to_string())
}
