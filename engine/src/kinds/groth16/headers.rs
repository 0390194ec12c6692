//! The headers of circom's files, read without the rest: the daemon parses no key and maps no file.
//!
//! The sections of a container stand in any order, so the walk goes from one section's header to the next and keeps
//! the few that are wanted. What it keeps is again a container, which the parsers of `proofkeep-formats` read.

mod params;

use std::io::{self, Read, Seek, SeekFrom};

pub(crate) use params::params;
use proofkeep_formats::container::Sections;
use proofkeep_formats::field::{CURVE, R_LE, prime_name};
use proofkeep_formats::r1cs::{self, R1csHeader};
use proofkeep_formats::zkey::{self, G1_BYTES, G2_BYTES, ZkeyHeader};
use proofkeep_formats::{FileKind, FormatError};
use proofkeep_groth16::vk::{UnfinishedSetup, VerifyingKey};

/// Sections larger than this are none that a header needs.
const MOST_KEPT: u64 = 64 << 10;
/// Where the points begin in the header of a `.zkey`: after two primes with their lengths and three counts come
/// α₁ β₁ β₂ γ₂ δ₁ δ₂.
const ZKEY_POINTS: usize = 4 + 48 + 4 + 32 + 12;
/// No file here has more sections; the parsers refuse more.
const MOST_SECTIONS: u32 = 64;

/// A header that was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HeaderError {
    /// The file can't be read.
    #[error("reading the file failed: {0}")]
    Io(#[from] io::Error),
    /// The file is not what it should be.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// Bytes that can be read from any place; their number is found by seeking to the end.
pub(crate) trait Source: Read + Seek {}

impl<T: Read + Seek> Source for T {}

/// A `.zkey`'s header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Zkey {
    pub counts: ZkeyHeader,
    /// γ₂ = δ₂: anyone can forge proofs.
    pub unfinished: bool,
    /// Terms of the matrices A and B.
    pub terms: u64,
}

/// A `.r1cs`' header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct R1cs {
    pub counts: R1csHeader,
    /// Terms of the matrices A, B and C.
    pub terms: u64,
}

/// Reads the header of a `.wtns`: how many values it holds.
pub(crate) fn wtns(source: &mut dyn Source) -> Result<u64, HeaderError> {
    const FILE: FileKind = FileKind::Wtns;
    let kept = Kept::read(source, FILE, "wtns", 2, &[1])?;
    let header = kept.sections()?.get(1, "the header")?;
    // Size of a value, the prime, the number of values.
    let prime = header.get(4..36).filter(|prime| *prime == R_LE);
    if prime.is_none() || header.get(..4) != Some(&32u32.to_le_bytes()) {
        let size = header
            .first_chunk()
            .map_or(0, |size| u32::from_le_bytes(*size) as usize);
        let found = header
            .get(4..4usize.saturating_add(size))
            .map_or_else(|| format!("a prime of {size} bytes"), prime_name);
        return Err(FormatError::WrongPrime {
            file: FILE,
            expected: CURVE,
            found,
        }
        .into());
    }
    let count = header
        .get(36..40)
        .and_then(|count| count.first_chunk())
        .map(|count| u32::from_le_bytes(*count));
    let Some(count) = count.filter(|_| header.len() == 40).map(u64::from) else {
        let place = "the header section".to_owned();
        let have = header.len() as u64;
        return Err(FormatError::Truncated {
            file: FILE,
            place,
            needed: 40,
            have,
        }
        .into());
    };
    kept.expect(2, "the values", "the length of section 2 (values)", 32 * count)?;
    Ok(count)
}

/// Reads the header of a `.r1cs`.
pub(crate) fn r1cs(source: &mut dyn Source) -> Result<R1cs, HeaderError> {
    let kept = Kept::read(source, FileKind::R1cs, "r1cs", 1, &[1])?;
    let counts = r1cs::header(&kept.bytes)?;
    let length = kept.length(2, "the constraints")?;
    let needed = 12 * u64::from(counts.constraints);
    if length < needed {
        return Err(FormatError::Truncated {
            file: FileKind::R1cs,
            place: format!("section 2 with {} constraints", counts.constraints),
            needed,
            have: length,
        }
        .into());
    }
    Ok(R1cs {
        counts,
        terms: (length - needed) / 36,
    })
}

/// Reads the header of a `.zkey`, and holds the lengths of its sections against it.
pub(crate) fn zkey(source: &mut dyn Source) -> Result<Zkey, HeaderError> {
    const FILE: FileKind = FileKind::Zkey;
    const GAMMA2: usize = ZKEY_POINTS + 2 * G1_BYTES + G2_BYTES;
    const DELTA2: usize = GAMMA2 + G2_BYTES + G1_BYTES;
    let kept = Kept::read(source, FILE, "zkey", 1, &[1, 2])?;
    let counts = zkey::header(&kept.bytes)?;
    let header = kept.sections()?.get(2, "the header")?;
    let (Some(gamma2), Some(delta2)) = (
        header.get(GAMMA2..GAMMA2 + G2_BYTES),
        header.get(DELTA2..DELTA2 + G2_BYTES),
    ) else {
        return Err(FormatError::Truncated {
            file: FILE,
            place: "section 2".to_owned(),
            needed: (DELTA2 + G2_BYTES) as u64,
            have: header.len() as u64,
        }
        .into());
    };
    let (g1, g2) = (G1_BYTES as u64, G2_BYTES as u64);
    let (wires, public, domain) = (
        u64::from(counts.wires),
        u64::from(counts.public),
        u64::from(counts.domain),
    );
    for (id, name, what, length) in [
        (3, "IC", "the length of section 3 (IC)", g1 * (public + 1)),
        (5, "A", "the length of section 5 (A)", g1 * wires),
        (6, "B in G1", "the length of section 6 (B in G1)", g1 * wires),
        (7, "B in G2", "the length of section 7 (B in G2)", g2 * wires),
        (8, "C", "the length of section 8 (C)", g1 * (wires - public - 1)),
        (9, "H", "the length of section 9 (H)", g1 * domain),
    ] {
        kept.expect(id, name, what, length)?;
    }
    let terms = kept.length(4, "the matrices")?.saturating_sub(4) / 44;
    Ok(Zkey {
        counts,
        unfinished: gamma2 == delta2,
        terms,
    })
}

/// The verification key in a proving key of either format, as an import writes it (snarkjs's `verification_key.json`).
pub(crate) fn verification_key(
    source: &mut dyn Source,
    unfinished: UnfinishedSetup,
) -> Result<Vec<u8>, String> {
    if !params::is_zkey(source).map_err(|error| error.to_string())? {
        return params::verification_key(source, unfinished);
    }
    let found = zkey(source).map_err(|error| error.to_string())?;
    let wanted = [
        (2, MOST_KEPT),
        (3, G1_BYTES as u64 * (u64::from(found.counts.public) + 1)),
    ];
    let kept =
        Kept::read_up_to(source, FileKind::Zkey, "zkey", 1, &wanted).map_err(|error| error.to_string())?;
    let sections = kept.sections().map_err(|error| error.to_string())?;
    let section = |id, name| sections.get(id, name).map_err(|error| error.to_string());
    let header = section(2, "the header")?.get(ZKEY_POINTS..).unwrap_or_default();
    VerifyingKey::from_zkey_parts(header, section(3, "IC")?, unfinished)
        .ok_or("its header has another length")?
        .map_err(|error| error.to_string())?
        .to_json()
        .to_json()
        .map(String::into_bytes)
        .map_err(|error| error.to_string())
}

/// The sections that were wanted, as a container, and the lengths of all.
struct Kept {
    file: FileKind,
    magic: &'static str,
    version: u32,
    bytes: Vec<u8>,
    lengths: Vec<(u32, u64)>,
}

impl Kept {
    fn read(
        source: &mut dyn Source,
        file: FileKind,
        magic: &'static str,
        version: u32,
        wanted: &[u32],
    ) -> Result<Self, HeaderError> {
        let wanted: Vec<(u32, u64)> = wanted.iter().map(|id| (*id, MOST_KEPT)).collect();
        Self::read_up_to(source, file, magic, version, &wanted)
    }

    /// Each wanted section with how much of it is kept at most.
    fn read_up_to(
        source: &mut dyn Source,
        file: FileKind,
        magic: &'static str,
        version: u32,
        wanted: &[(u32, u64)],
    ) -> Result<Self, HeaderError> {
        let total = source.seek(SeekFrom::End(0))?;
        source.seek(SeekFrom::Start(0))?;
        let mut start = Vec::new();
        source.take(12).read_to_end(&mut start)?;
        let count = start
            .get(8..12)
            .and_then(|count| count.first_chunk())
            .map(|count| u32::from_le_bytes(*count));
        // What is no container of this kind is refused in the parser's words: it sees one without sections.
        let empty = [
            start.get(..8).unwrap_or(&start),
            if start.len() < 12 { &[] } else { &[0; 4] },
        ]
        .concat();
        Sections::parse(&empty, magic, version, file)?;
        let count = count.unwrap_or(0);
        if count > MOST_SECTIONS {
            return Err(FormatError::BadCount {
                file,
                what: "the number of sections",
                expected: format!("at most {MOST_SECTIONS}"),
                found: count.into(),
            }
            .into());
        }
        let (mut body, mut lengths, mut kept, mut position) = (Vec::new(), Vec::new(), 0u32, 12u64);
        for _ in 0..count {
            let mut header = [0; 12];
            truncated(file, "the header of a section", 12, total - position)?;
            source.read_exact(&mut header)?;
            position += 12;
            let [i0, i1, i2, i3, length @ ..] = header;
            let (id, length) = (u32::from_le_bytes([i0, i1, i2, i3]), u64::from_le_bytes(length));
            truncated(file, &format!("section {id}"), length, total - position)?;
            if lengths.iter().any(|(seen, _)| *seen == id) {
                return Err(FormatError::SectionTwice { file, section: id }.into());
            }
            if let Some((_, most)) = wanted.iter().find(|(wanted, _)| *wanted == id) {
                let most = length.min(*most);
                body.extend_from_slice(&id.to_le_bytes());
                body.extend_from_slice(&most.to_le_bytes());
                source.take(most).read_to_end(&mut body)?;
                kept += 1;
            }
            lengths.push((id, length));
            position += length;
            source.seek(SeekFrom::Start(position))?;
        }
        let bytes = [&start[..8], &kept.to_le_bytes(), &body].concat();
        Ok(Self {
            file,
            magic,
            version,
            bytes,
            lengths,
        })
    }

    fn sections(&self) -> Result<Sections<'_>, FormatError> {
        Sections::parse(&self.bytes, self.magic, self.version, self.file)
    }

    fn length(&self, id: u32, name: &'static str) -> Result<u64, FormatError> {
        let found = self.lengths.iter().find(|(found, _)| *found == id);
        found
            .map(|(_, length)| *length)
            .ok_or(FormatError::SectionMissing {
                file: self.file,
                section: id,
                name,
            })
    }

    fn expect(
        &self,
        id: u32,
        name: &'static str,
        what: &'static str,
        expected: u64,
    ) -> Result<(), FormatError> {
        let found = self.length(id, name)?;
        if found == expected {
            return Ok(());
        }
        Err(FormatError::BadCount {
            file: self.file,
            what,
            expected: expected.to_string(),
            found,
        })
    }
}

fn truncated(file: FileKind, place: &str, needed: u64, have: u64) -> Result<(), FormatError> {
    if needed <= have {
        return Ok(());
    }
    Err(FormatError::Truncated {
        file,
        place: place.to_owned(),
        needed,
        have,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use std::io::Cursor;
    use std::path::PathBuf;

    use proofkeep_formats::{r1cs as constraints, wtns as witnesses, zkey as keys};

    use super::*;

    fn fixture(circuit: &str, file: &str) -> Vec<u8> {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/circom");
        std::fs::read(root.join(circuit).join(file)).unwrap()
    }

    fn code<T: std::fmt::Debug>(result: Result<T, HeaderError>) -> &'static str {
        match result.unwrap_err() {
            HeaderError::Format(error) => error.code(),
            HeaderError::Io(error) => panic!("{error}"),
        }
    }

    #[test]
    fn headers_say_what_the_whole_file_says() {
        for circuit in ["multiplier", "poseidon2", "filled", "arrays"] {
            let (key, cons) = (fixture(circuit, "circuit.zkey"), fixture(circuit, "circuit.r1cs"));
            let witness = fixture(circuit, "witness.wtns");
            let whole = keys::Zkey::parse(&key).unwrap();
            let header = zkey(&mut Cursor::new(&key)).unwrap();
            assert_eq!(header.counts, whole.header);
            assert!(!header.unfinished);
            assert_eq!(header.terms, whole.coefficients().len() as u64);
            let whole = constraints::R1cs::parse(&cons).unwrap();
            let header = r1cs(&mut Cursor::new(&cons)).unwrap();
            assert_eq!(header.counts, *whole.header());
            assert_eq!(header.terms, whole.check().unwrap().iter().sum::<u64>());
            let values = witnesses::Witness::parse(&witness).unwrap().len();
            assert_eq!(wtns(&mut Cursor::new(&witness)).unwrap(), values as u64);
        }
    }

    #[test]
    fn a_broken_header_is_refused_with_the_parsers_code() {
        let witness = fixture("multiplier", "witness.wtns");
        for end in 0..witness.len() {
            assert_eq!(
                code(wtns(&mut Cursor::new(&witness[..end]))),
                "truncated",
                "{end}"
            );
        }
        assert_eq!(
            code(wtns(&mut Cursor::new(b"zkey\x01\0\0\0\0\0\0\0"))),
            "bad-magic"
        );
        assert_eq!(
            code(wtns(&mut Cursor::new(b"wtns\x09\0\0\0\0\0\0\0"))),
            "bad-version"
        );
        assert_eq!(
            code(wtns(&mut Cursor::new(b"wtns\x02\0\0\0\xff\xff\xff\xff"))),
            "bad-count"
        );
        assert_eq!(
            code(wtns(&mut Cursor::new(b"wtns\x02\0\0\0\0\0\0\0"))),
            "section-missing"
        );
        let mut other = witness.clone();
        let prime = other.windows(32).position(|window| window == R_LE).unwrap();
        other[prime] ^= 2;
        assert_eq!(code(wtns(&mut Cursor::new(&other))), "wrong-prime");
        let mut counted = witness.clone();
        counted[prime + 32] += 1;
        assert_eq!(code(wtns(&mut Cursor::new(&counted))), "bad-count");
        let mut huge = witness;
        huge[16..24].copy_from_slice(&(5u64 << 30).to_le_bytes());
        assert_eq!(
            code(wtns(&mut Cursor::new(&huge))),
            "truncated",
            "a length of 5 GiB"
        );
    }
}
