//! Compiled matrices on disk, so that an import is paid for once.
//!
//! | bytes | holds |
//! | --- | --- |
//! | 8 | `pkmatrix` |
//! | 4 | version, 1 |
//! | 4 × 4 | wires, public signals, log2 of the domain, constraints (2^32 − 1: not known) |
//! | 3 × 3 × 8 | for `A`, `B`, `C`: row starts (0: no such matrix), terms, table entries |
//! | … | for each: row starts, wires, coefficient numbers (4 bytes each), table (32 bytes each, `v·R²`) |
//! | 32 | SHA-256 of everything before |
//!
//! All numbers are little-endian.

use std::io::{self, Write};

use blstrs::Scalar;
use proofkeep_formats::field::is_canonical_r;
use sha2::{Digest, Sha256};

use super::{Csr, Matrices};
use crate::field::{MAX_LOG2, as_bytes, from_limbs};

/// First bytes of the file.
pub const FILE_MAGIC: [u8; 8] = *b"pkmatrix";
/// The version that is written; others are refused.
pub const FILE_VERSION: u32 = 1;
const HEADER: usize = 8 + 4 + 16 + 72;
const UNKNOWN: u32 = u32::MAX;

/// A file of compiled matrices that can't be used. The matrices can be compiled again from the circuit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatrixFileError {
    /// It doesn't start as such a file does.
    #[error("not a file of compiled matrices: compile the circuit again")]
    BadMagic,
    /// It was written by another version.
    #[error(
        "compiled matrices of version {found}, this build reads version {FILE_VERSION}: compile the circuit again"
    )]
    BadVersion {
        /// The file's version.
        found: u32,
    },
    /// The counts don't add up to the file's length.
    #[error("compiled matrices of {found} bytes, their counts ask for {expected}: compile the circuit again")]
    BadLength {
        /// By the counts.
        expected: u64,
        /// The file's length.
        found: u64,
    },
    /// The bytes are not those that were written.
    #[error("compiled matrices with a wrong checksum: the file is damaged, compile the circuit again")]
    BadChecksum,
    /// The checksum is right, the contents are not matrices.
    #[error("compiled matrices with {what} out of range: compile the circuit again")]
    BadContents {
        /// What is out of range.
        what: &'static str,
    },
}

struct Hashing<W> {
    out: W,
    hash: Sha256,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Matrices {
    /// Writes the file. Does not sync it.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut out = Hashing {
            out,
            hash: Sha256::new(),
        };
        let all = [Some(&self.a), Some(&self.b), self.c.as_ref()];
        out.write_all(&FILE_MAGIC)?;
        for number in [
            FILE_VERSION,
            self.wires,
            self.public,
            self.log2,
            self.constraints.unwrap_or(UNKNOWN),
        ] {
            out.write_all(&number.to_le_bytes())?;
        }
        for csr in all {
            let counts = csr.map_or([0; 3], |csr| [csr.starts.len(), csr.wires.len(), csr.table.len()]);
            for count in counts {
                out.write_all(&(count as u64).to_le_bytes())?;
            }
        }
        for csr in all.into_iter().flatten() {
            for numbers in [&csr.starts, &csr.wires, &csr.coefficients] {
                write_numbers(&mut out, numbers)?;
            }
            out.write_all(as_bytes(&csr.table).as_flattened())?;
        }
        let digest = out.hash.clone().finalize();
        out.out.write_all(&digest)?;
        out.out.flush()
    }

    /// Reads a file, mapped or in memory, and checks all of it.
    pub fn read(bytes: &[u8]) -> Result<Self, MatrixFileError> {
        if bytes.get(..8) != Some(&FILE_MAGIC) {
            return Err(MatrixFileError::BadMagic);
        }
        let found = bytes.get(8..12).map_or(0, |version| numbers(version)[0]);
        if found != FILE_VERSION {
            return Err(MatrixFileError::BadVersion { found });
        }
        let short = MatrixFileError::BadLength {
            expected: HEADER as u64 + 32,
            found: bytes.len() as u64,
        };
        let header: &[u8; HEADER] = bytes.first_chunk().ok_or_else(|| short.clone())?;
        let counts: Vec<u64> = header[28..]
            .as_chunks::<8>()
            .0
            .iter()
            .map(|count| u64::from_le_bytes(*count))
            .collect();
        let expected = counts.chunks_exact(3).fold(HEADER as u64 + 32, |sum, counts| {
            let size = |count: u64, size: u64| count.saturating_mul(size);
            sum.saturating_add(size(counts[0], 4))
                .saturating_add(size(counts[1], 8))
                .saturating_add(size(counts[2], 32))
        });
        if expected != bytes.len() as u64 {
            return Err(MatrixFileError::BadLength {
                expected,
                found: bytes.len() as u64,
            });
        }
        let (body, digest) = bytes.split_last_chunk::<32>().ok_or(short)?;
        if Sha256::digest(body)[..] != digest[..] {
            return Err(MatrixFileError::BadChecksum);
        }
        let fields = numbers(&header[12..28]);
        let [wires, public, log2, constraints] = fields[..] else {
            return Err(MatrixFileError::BadMagic);
        };
        let known = if constraints == UNKNOWN { 0 } else { constraints };
        let rows = u64::from(known) + u64::from(public) + 1;
        if log2 > MAX_LOG2 || public >= wires || rows > 1 << log2 {
            return Err(MatrixFileError::BadContents { what: "a count" });
        }
        let mut rest = &body[HEADER..];
        let mut next =
            |index: usize| read_csr(&mut rest, &counts[3 * index..3 * index + 3], wires, 1u64 << log2);
        let (a, b, c) = (next(0)?, next(1)?, next(2)?);
        let missing = MatrixFileError::BadContents { what: "a matrix" };
        let constraints = (constraints != UNKNOWN).then_some(constraints);
        Ok(Matrices {
            wires,
            public,
            log2,
            constraints,
            a: a.ok_or(missing.clone())?,
            b: b.ok_or(missing)?,
            c,
        })
    }
}

fn write_numbers(out: &mut impl Write, numbers: &[u32]) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(4 * numbers.len().min(16_384));
    for numbers in numbers.chunks(16_384) {
        buffer.clear();
        numbers
            .iter()
            .for_each(|number| buffer.extend_from_slice(&number.to_le_bytes()));
        out.write_all(&buffer)?;
    }
    Ok(())
}

fn numbers(bytes: &[u8]) -> Vec<u32> {
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|number| u32::from_le_bytes(*number))
        .collect()
}

/// Reads one matrix; the lengths have been checked against the file's.
fn read_csr(
    rest: &mut &[u8],
    counts: &[u64],
    wires: u32,
    domain: u64,
) -> Result<Option<Csr>, MatrixFileError> {
    let mut take = |count: u64, size: u64| {
        let (bytes, after) = rest.split_at((count * size) as usize);
        *rest = after;
        bytes
    };
    let (starts, terms, table) = (counts[0], counts[1], counts[2]);
    if starts == 0 && terms == 0 && table == 0 {
        return Ok(None);
    }
    let bad = |what| Err(MatrixFileError::BadContents { what });
    let csr = Csr {
        starts: numbers(take(starts, 4)),
        wires: numbers(take(terms, 4)),
        coefficients: numbers(take(terms, 4)),
        table: {
            let table = take(table, 32).as_chunks::<32>().0;
            if !table.iter().all(is_canonical_r) {
                return bad("a coefficient");
            }
            table.iter().map(from_limbs).collect::<Vec<Scalar>>()
        },
    };
    if csr.starts.first() != Some(&0)
        || csr.starts.last().map(|end| u64::from(*end)) != Some(terms)
        || !csr.starts.is_sorted()
        || csr.rows() as u64 > domain
    {
        return bad("a row");
    }
    if csr.wires.iter().any(|wire| *wire >= wires) {
        return bad("a wire");
    }
    if csr.table.len() < 2
        || csr
            .coefficients
            .iter()
            .any(|number| *number as usize >= csr.table.len())
    {
        return bad("a coefficient number");
    }
    Ok(Some(csr))
}
