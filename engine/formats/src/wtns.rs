//! Witnesses as circom and snarkjs write them (`.wtns`, version 2).
//!
//! Section 1 holds the size of a value, the prime and the number of values; section 2 the values, little-endian, one
//! for each wire.

use std::fmt;

use crate::container::{Cursor, Sections, expect_length, file_header, push_section};
use crate::field::{self, R_LE, is_canonical_r};
use crate::{FileKind, FormatError};

const FILE: FileKind = FileKind::Wtns;
const HEADER: u32 = 1;
const VALUES: u32 = 2;

/// A witness that lies in memory as a file: every value canonical, the first one 1.
///
/// Its values are secret, so it has no `Debug` that shows them.
#[derive(Clone, Copy)]
pub struct Witness<'a> {
    values: &'a [[u8; 32]],
}

impl fmt::Debug for Witness<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Witness")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl<'a> Witness<'a> {
    /// Reads a witness and checks each value.
    ///
    /// # Errors
    ///
    /// A broken container, another prime, a count that contradicts the size of the file, a value that isn't below r,
    /// a first value other than 1.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let sections = Sections::parse(bytes, "wtns", 2, FILE)?;
        let mut cursor = Cursor::new(FILE, "the header section", sections.get(HEADER, "the header")?);
        let size = cursor.u32()? as usize;
        let prime = cursor.take(size)?;
        if prime != R_LE {
            return Err(FormatError::WrongPrime {
                file: FILE,
                expected: field::CURVE,
                found: field::prime_name(prime),
            });
        }
        let count = cursor.u32()?;
        cursor.finish("the number of bytes after the header")?;

        let body = sections.get(VALUES, "the values")?;
        expect_length(
            FILE,
            "the length of section 2 (values)",
            body,
            u64::from(count) * 32,
        )?;
        let (values, _) = body.as_chunks();
        if let Some(index) = values.iter().position(|value| !is_canonical_r(value)) {
            return Err(FormatError::NonCanonical {
                file: FILE,
                what: "value",
                index: index as u64,
            });
        }
        let mut one = [0; 32];
        one[0] = 1;
        if values.first() != Some(&one) {
            return Err(FormatError::BadWitness { file: FILE });
        }
        Ok(Witness { values })
    }

    /// The number of values, one for each wire.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Never: the constant is always there.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The value of a wire, little-endian and below r.
    ///
    /// # Panics
    ///
    /// As indexing a slice does, when `wire` is not below [`len`](Self::len).
    pub fn get(&self, wire: usize) -> &'a [u8; 32] {
        &self.values[wire]
    }

    /// All values in the order of the wires.
    pub fn values(&self) -> &'a [[u8; 32]] {
        self.values
    }

    /// All values as one string of 32·[`len`](Self::len) bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.values.as_flattened()
    }
}

/// Writes a `.wtns` file from little-endian values. Nothing is checked.
pub fn write(values: &[[u8; 32]]) -> Vec<u8> {
    let mut header = Vec::with_capacity(40);
    header.extend_from_slice(&32_u32.to_le_bytes());
    header.extend_from_slice(&R_LE);
    header.extend_from_slice(&(values.len() as u32).to_le_bytes());

    let mut out = file_header("wtns", 2, 2);
    out.reserve_exact(24 + header.len() + values.len() * 32);
    push_section(&mut out, HEADER, &header);
    push_section(&mut out, VALUES, values.as_flattened());
    out
}
