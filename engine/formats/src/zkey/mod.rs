//! Proving keys as snarkjs writes them (`.zkey`, version 1, Groth16).
//!
//! | section | holds | length in bytes |
//! | --- | --- | --- |
//! | 1 | protocol, 1 for Groth16 | 4 |
//! | 2 | q, r, wires, public signals, domain, α₁ β₁ β₂ γ₂ δ₁ δ₂ | 100 + 3·96 + 3·192 |
//! | 3 | IC: (β·A_i + α·B_i + C_i)/γ for the constant and the public signals | 96·(public + 1) |
//! | 4 | the nonzero entries of the matrices A and B | 4 + 44·entries |
//! | 5, 6 | A_i(τ) in G1, B_i(τ) in G1 | 96·wires each |
//! | 7 | B_i(τ) in G2 | 192·wires |
//! | 8 | (β·A_i + α·B_i + C_i)/δ for the other wires | 96·(wires − public − 1) |
//! | 9 | H: Lagrange basis of the odd coset, over δ | 96·domain |
//! | 10 | who contributed to the ceremony | |
//!
//! Points are affine, x then y, in little-endian Montgomery form; the identity is all zeros. G2 coordinates are c0, c1.
//! A coefficient is stored as v·R², R = 2^256. Row nConstraints + i of A holds input i.

mod contributions;
mod writer;

use std::ops::Deref;

pub use contributions::{Contribution, Contributions};
pub use writer::{CoefficientSink, KeyPoints, PointSection, ZkeyWriter};

pub use crate::ceremony::ContributionKind;
use crate::container::{Cursor, Sections, expect_length};
use crate::field::{self, Q_LE, R_LE, is_canonical_q, is_canonical_r};
use crate::{FileKind, FormatError};

const FILE: FileKind = FileKind::Zkey;
const MAGIC: &str = "zkey";
const VERSION: u32 = 1;
/// Bytes of a point in G1.
pub const G1_BYTES: usize = 96;
/// Bytes of a point in G2.
pub const G2_BYTES: usize = 192;
/// Matrix, row, wire, value.
const COEFFICIENT_BYTES: usize = 4 + 4 + 4 + 32;
/// The field has roots of unity up to this order, 2^32; a domain is counted in 32 bits.
const MAX_DOMAIN: u32 = 1 << 31;

/// The counts at the head of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZkeyHeader {
    /// Wires, the constant one among them.
    pub wires: u32,
    /// Public signals.
    pub public: u32,
    /// Rows of the evaluation domain, a power of two.
    pub domain: u32,
    /// Its base-2 logarithm.
    pub log2: u32,
}

impl ZkeyHeader {
    /// The length that each section of points must have, in bytes.
    fn section_bytes(&self, section: PointSection) -> u64 {
        let (wires, public) = (u64::from(self.wires), u64::from(self.public));
        match section {
            PointSection::Ic => (public + 1) * G1_BYTES as u64,
            PointSection::A | PointSection::B1 => wires * G1_BYTES as u64,
            PointSection::B2 => wires * G2_BYTES as u64,
            PointSection::C => (wires - public - 1) * G1_BYTES as u64,
            PointSection::H => u64::from(self.domain) * G1_BYTES as u64,
        }
    }

    /// Whether the counts can belong together.
    fn check(&self) -> Result<(), FormatError> {
        if u64::from(self.wires) < u64::from(self.public) + 1 {
            return Err(FormatError::BadCount {
                file: FILE,
                what: "the number of wires",
                expected: format!(
                    "at least {} (the constant and the public signals)",
                    u64::from(self.public) + 1
                ),
                found: self.wires.into(),
            });
        }
        if !self.domain.is_power_of_two() || !(2..=MAX_DOMAIN).contains(&self.domain) {
            return Err(FormatError::BadCount {
                file: FILE,
                what: "the size of the domain",
                expected: format!("a power of two from 2 to {MAX_DOMAIN}"),
                found: self.domain.into(),
            });
        }
        Ok(())
    }
}

/// A proving key that lies in memory as a file. Its counts are those of [`ZkeyHeader`].
///
/// Coordinates of the six points of the header and of IC are known to be below q; those of the long sections are not
/// looked at.
#[derive(Clone, Debug)]
pub struct Zkey<'a> {
    /// The counts.
    pub header: ZkeyHeader,
    /// α in G1.
    pub alpha1: &'a [u8; G1_BYTES],
    /// β in G1.
    pub beta1: &'a [u8; G1_BYTES],
    /// δ in G1.
    pub delta1: &'a [u8; G1_BYTES],
    /// β in G2.
    pub beta2: &'a [u8; G2_BYTES],
    /// γ in G2.
    pub gamma2: &'a [u8; G2_BYTES],
    /// δ in G2.
    pub delta2: &'a [u8; G2_BYTES],
    /// Points for the constant and the public signals, 96·(public + 1) bytes.
    pub ic: &'a [u8],
    /// A in G1, 96·wires bytes.
    pub a: &'a [u8],
    /// B in G1, 96·wires bytes.
    pub b1: &'a [u8],
    /// B in G2, 192·wires bytes.
    pub b2: &'a [u8],
    /// Points for the wires that are not public, 96·(wires − public − 1) bytes.
    pub c: &'a [u8],
    /// Points for the quotient, 96·domain bytes.
    pub h: &'a [u8],
    /// The ceremony, if the file tells of one.
    pub contributions: Option<Contributions<'a>>,
    coefficients: &'a [[u8; COEFFICIENT_BYTES]],
}

impl Deref for Zkey<'_> {
    type Target = ZkeyHeader;

    fn deref(&self) -> &ZkeyHeader {
        &self.header
    }
}

/// Reads the counts alone. The file must be whole as a container.
///
/// # Errors
///
/// As [`Zkey::parse`], as far as the header goes.
pub fn header(bytes: &[u8]) -> Result<ZkeyHeader, FormatError> {
    let sections = sections(bytes)?;
    read_header(&mut header_cursor(&sections)?)
}

fn sections(bytes: &[u8]) -> Result<Sections<'_>, FormatError> {
    Sections::parse(bytes, MAGIC, VERSION, FILE)
}

fn header_cursor<'a>(sections: &Sections<'a>) -> Result<Cursor<'a>, FormatError> {
    let protocol = Cursor::new(FILE, "section 1", sections.get(1, "the proof system")?).u32()?;
    if protocol != 1 {
        let found = match protocol {
            2 => "plonk".to_owned(),
            10 => "fflonk".to_owned(),
            other => format!("number {other}"),
        };
        return Err(FormatError::NotGroth16 { file: FILE, found });
    }
    Ok(Cursor::new(FILE, "section 2", sections.get(2, "the header")?))
}

fn read_header(cursor: &mut Cursor<'_>) -> Result<ZkeyHeader, FormatError> {
    for (modulus, expected) in [(&Q_LE[..], field::BASE_FIELD), (&R_LE[..], field::CURVE)] {
        let size = cursor.u32()? as usize;
        let prime = cursor.take(size)?;
        if prime != modulus {
            let found = field::prime_name(prime);
            return Err(FormatError::WrongPrime {
                file: FILE,
                expected,
                found,
            });
        }
    }
    let (wires, public, domain) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
    let header = ZkeyHeader {
        wires,
        public,
        domain,
        log2: domain.trailing_zeros(),
    };
    header.check()?;
    Ok(header)
}

impl<'a> Zkey<'a> {
    /// Reads the header and finds the sections, whose lengths must be those that the header asks for.
    ///
    /// # Errors
    ///
    /// A broken container, another proof system or curve, counts that contradict each other or the size of the file.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let sections = sections(bytes)?;
        let mut cursor = header_cursor(&sections)?;
        let header = read_header(&mut cursor)?;
        let (alpha1, beta1) = (cursor.array()?, cursor.array()?);
        let (beta2, gamma2) = (cursor.array()?, cursor.array()?);
        let (delta1, delta2) = (cursor.array()?, cursor.array()?);
        cursor.finish("the number of bytes after the header")?;

        let points = |section: PointSection| {
            let body = sections.get(section.id(), section.name())?;
            expect_length(FILE, section.length_name(), body, header.section_bytes(section))?;
            Ok::<_, FormatError>(body)
        };
        let key = Zkey {
            header,
            alpha1,
            beta1,
            delta1,
            beta2,
            gamma2,
            delta2,
            ic: points(PointSection::Ic)?,
            a: points(PointSection::A)?,
            b1: points(PointSection::B1)?,
            b2: points(PointSection::B2)?,
            c: points(PointSection::C)?,
            h: points(PointSection::H)?,
            coefficients: coefficient_entries(sections.get(4, "the matrices")?)?,
            contributions: sections.find(10).map(Contributions::parse).transpose()?,
        };
        canonical_coordinates(
            "coordinate of header point",
            &[&alpha1[..], beta1, beta2, gamma2, delta1, delta2].concat(),
        )?;
        canonical_coordinates("coordinate of IC", key.ic)?;
        Ok(key)
    }

    /// The nonzero entries of A and B in the order of the file.
    pub fn coefficients(&self) -> Coefficients<'a> {
        Coefficients {
            header: self.header,
            next: 0,
            entries: self.coefficients,
        }
    }

    /// Whether γ₂ = δ₂, as in a key that no one has contributed to: whoever holds it can forge proofs.
    pub fn is_unfinished(&self) -> bool {
        self.gamma2 == self.delta2
    }
}

fn coefficient_entries(section: &[u8]) -> Result<&[[u8; COEFFICIENT_BYTES]], FormatError> {
    let mut cursor = Cursor::new(FILE, "section 4", section);
    let count = u64::from(cursor.u32()?);
    expect_length(
        FILE,
        "the length of the entries in section 4",
        cursor.rest(),
        count * COEFFICIENT_BYTES as u64,
    )?;
    Ok(cursor.rest().as_chunks().0)
}

fn canonical_coordinates(what: &'static str, points: &[u8]) -> Result<(), FormatError> {
    match points
        .as_chunks()
        .0
        .iter()
        .position(|coordinate| !is_canonical_q(coordinate))
    {
        Some(index) => Err(FormatError::NonCanonical {
            file: FILE,
            what,
            index: index as u64,
        }),
        None => Ok(()),
    }
}

/// An entry of the matrix A or B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coefficient<'a> {
    /// 0 for A, 1 for B.
    pub matrix: u32,
    /// The constraint, below the size of the domain.
    pub row: u32,
    /// The wire, below the number of wires.
    pub wire: u32,
    /// The entry times R², R = 2^256, little-endian and below r.
    pub value: &'a [u8; 32],
}

/// Iterator over the entries of A and B. Going on after an error is possible; [`nth`](Iterator::nth) takes constant
/// time, so that slices of the entries can be walked at once.
#[derive(Clone, Debug)]
pub struct Coefficients<'a> {
    header: ZkeyHeader,
    next: u64,
    entries: &'a [[u8; COEFFICIENT_BYTES]],
}

impl<'a> Coefficients<'a> {
    fn read(&self, index: u64, entry: &'a [u8; COEFFICIENT_BYTES]) -> Result<Coefficient<'a>, FormatError> {
        let mut cursor = Cursor::new(FILE, "an entry of section 4", entry);
        let (matrix, row, wire) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
        let value = cursor.array()?;
        let limits = [
            ("the matrix", matrix, 2),
            ("the row", row, self.header.domain),
            ("the wire", wire, self.header.wires),
        ];
        for (field, found, limit) in limits {
            if found >= limit {
                return Err(FormatError::OutOfRange {
                    file: FILE,
                    what: "entry of section 4",
                    index,
                    field,
                    found: found.into(),
                    limit: limit.into(),
                });
            }
        }
        if !is_canonical_r(value) {
            return Err(FormatError::NonCanonical {
                file: FILE,
                what: "the value of entry",
                index,
            });
        }
        Ok(Coefficient {
            matrix,
            row,
            wire,
            value,
        })
    }
}

impl<'a> Iterator for Coefficients<'a> {
    type Item = Result<Coefficient<'a>, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.nth(0)
    }

    fn nth(&mut self, skip: usize) -> Option<Self::Item> {
        let Some((_, [entry, rest @ ..])) = self.entries.split_at_checked(skip) else {
            self.entries = &[];
            return None;
        };
        let index = self.next + skip as u64;
        self.entries = rest;
        self.next = index + 1;
        Some(self.read(index, entry))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.entries.len(), Some(self.entries.len()))
    }
}

impl ExactSizeIterator for Coefficients<'_> {}
