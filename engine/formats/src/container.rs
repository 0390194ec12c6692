//! The container that iden3's binary files share: a magic word, a version, and numbered sections.
//!
//! ```text
//! magic [u8; 4] | version u32 | section count u32 | ( id u32 | length u64 | length bytes )*
//! ```
//!
//! All numbers are little-endian. Sections stand in any order, each at most once.

use crate::{FileKind, FormatError};

/// No format here has more than ten sections. A bound keeps the search for doubles short whatever the file says.
const MAX_SECTIONS: u32 = 64;

/// The sections of one file, by number.
#[derive(Clone, Debug)]
pub struct Sections<'a> {
    file: FileKind,
    sections: Vec<(u32, &'a [u8])>,
}

impl<'a> Sections<'a> {
    /// Splits a file into sections.
    ///
    /// `magic` is the four letters that it begins with, `max_version` the newest version known.
    ///
    /// # Errors
    ///
    /// Another magic word or version, a section that reaches past the end, a section twice, bytes after the last
    /// section.
    pub fn parse(
        bytes: &'a [u8],
        magic: &'static str,
        max_version: u32,
        file: FileKind,
    ) -> Result<Self, FormatError> {
        let mut cursor = Cursor::new(file, "the file header", bytes);
        if !bytes.starts_with(magic.as_bytes()) {
            // A file shorter than its magic word is cut short only if what is there fits.
            if magic.as_bytes().starts_with(bytes) {
                cursor.take(12)?;
            }
            let start = bytes.get(..4).unwrap_or(bytes);
            return Err(FormatError::BadMagic {
                file,
                expected: magic,
                found: start.escape_ascii().to_string(),
            });
        }
        cursor.take(4)?;
        let version = cursor.u32()?;
        if version == 0 || version > max_version {
            return Err(FormatError::BadVersion {
                file,
                max: max_version,
                found: version,
            });
        }
        let count = cursor.u32()?;
        if count > MAX_SECTIONS {
            return Err(FormatError::BadCount {
                file,
                what: "the number of sections",
                expected: format!("at most {MAX_SECTIONS}"),
                found: count.into(),
            });
        }

        let mut sections: Vec<(u32, &[u8])> = Vec::new();
        for _ in 0..count {
            cursor.place = "the header of a section";
            let id = cursor.u32()?;
            let length = cursor.u64()?;
            let body = cursor.take_u64(length).ok_or_else(|| FormatError::Truncated {
                file,
                place: format!("section {id}"),
                needed: length,
                have: cursor.left(),
            })?;
            if sections.iter().any(|(seen, _)| *seen == id) {
                return Err(FormatError::SectionTwice { file, section: id });
            }
            sections.push((id, body));
        }
        cursor.finish("the number of bytes after the last section")?;
        Ok(Sections { file, sections })
    }

    /// The bytes of section `id`, which holds `name`.
    ///
    /// # Errors
    ///
    /// The section is missing.
    pub fn get(&self, id: u32, name: &'static str) -> Result<&'a [u8], FormatError> {
        self.find(id).ok_or(FormatError::SectionMissing {
            file: self.file,
            section: id,
            name,
        })
    }

    /// The bytes of a section that need not be there.
    pub fn find(&self, id: u32) -> Option<&'a [u8]> {
        self.sections
            .iter()
            .find(|(found, _)| *found == id)
            .map(|(_, body)| *body)
    }
}

/// Reads numbers and byte strings one after another, and says what was being read when the bytes ran out.
pub(crate) struct Cursor<'a> {
    file: FileKind,
    pub(crate) place: &'static str,
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(file: FileKind, place: &'static str, bytes: &'a [u8]) -> Self {
        Cursor {
            file,
            place,
            rest: bytes,
        }
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], FormatError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or_else(|| self.truncated(length as u64))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn take_u64(&mut self, length: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.rest = rest;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], FormatError> {
        let (taken, rest) = self
            .rest
            .split_first_chunk()
            .ok_or_else(|| self.truncated(N as u64))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, FormatError> {
        self.array().map(|[byte]| *byte)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, FormatError> {
        self.array().copied().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, FormatError> {
        self.array().copied().map(u64::from_le_bytes)
    }

    pub(crate) fn left(&self) -> u64 {
        self.rest.len() as u64
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Nothing may be left over: `what` says what the left-over bytes are counted as.
    pub(crate) fn finish(&self, what: &'static str) -> Result<(), FormatError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(FormatError::BadCount {
            file: self.file,
            what,
            expected: "0".to_owned(),
            found: self.left(),
        })
    }

    fn truncated(&self, needed: u64) -> FormatError {
        FormatError::Truncated {
            file: self.file,
            place: self.place.to_owned(),
            needed,
            have: self.left(),
        }
    }
}

/// Checks the length of a section whose size follows from the header.
pub(crate) fn expect_length(
    file: FileKind,
    what: &'static str,
    bytes: &[u8],
    expected: u64,
) -> Result<(), FormatError> {
    if bytes.len() as u64 == expected {
        return Ok(());
    }
    Err(FormatError::BadCount {
        file,
        what,
        expected: expected.to_string(),
        found: bytes.len() as u64,
    })
}

/// Appends one section to a file in memory.
pub(crate) fn push_section(out: &mut Vec<u8>, id: u32, body: &[u8]) {
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&(body.len() as u64).to_le_bytes());
    out.extend_from_slice(body);
}

/// Begins a file in memory.
pub(crate) fn file_header(magic: &str, version: u32, sections: u32) -> Vec<u8> {
    let mut out = magic.as_bytes().to_vec();
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(&sections.to_le_bytes());
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;

    fn file(sections: &[(u32, &[u8])]) -> Vec<u8> {
        let mut out = file_header("wtns", 2, sections.len() as u32);
        for (id, body) in sections {
            push_section(&mut out, *id, body);
        }
        out
    }

    fn parse(bytes: &[u8]) -> Result<Sections<'_>, FormatError> {
        Sections::parse(bytes, "wtns", 2, FileKind::Wtns)
    }

    #[test]
    fn sections_come_in_any_order() {
        let bytes = file(&[(7, b"seven"), (1, b""), (2, b"two")]);
        let sections = parse(&bytes).unwrap();
        assert_eq!(sections.get(2, "x").unwrap(), b"two");
        assert_eq!(sections.get(1, "x").unwrap(), b"");
        assert_eq!(sections.find(7), Some(&b"seven"[..]));
        assert_eq!(sections.get(3, "x").unwrap_err().code(), "section-missing");
    }

    #[test]
    fn a_section_twice_is_refused() {
        assert_eq!(
            parse(&file(&[(1, b"a"), (1, b"a")])).unwrap_err().code(),
            "section-twice"
        );
    }

    #[test]
    fn every_cut_is_refused() {
        let bytes = file(&[(1, b"abc"), (2, b"de")]);
        for length in 0..bytes.len() {
            assert_eq!(
                parse(&bytes[..length]).unwrap_err().code(),
                "truncated",
                "cut at {length}"
            );
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert_eq!(parse(&longer).unwrap_err().code(), "bad-count");
    }

    #[test]
    fn a_length_of_five_gibibytes_is_refused() {
        let mut bytes = file(&[(1, b"abc")]);
        for length in [5_u64 << 30, u64::MAX, 4] {
            bytes[16..24].copy_from_slice(&length.to_le_bytes());
            let error = parse(&bytes).unwrap_err();
            let FormatError::Truncated { needed, have, .. } = error else {
                panic!("{error}")
            };
            assert_eq!((needed, have), (length, 3));
        }
    }

    #[test]
    fn magic_version_and_section_count_are_checked() {
        assert_eq!(parse(b"zkey\x01\0\0\0\0\0\0\0").unwrap_err().code(), "bad-magic");
        assert_eq!(parse(b"").unwrap_err().code(), "truncated");
        assert_eq!(parse(b"wx").unwrap_err().code(), "bad-magic");
        for version in [0_u32, 3, u32::MAX] {
            assert_eq!(
                parse(&file_header("wtns", version, 0)).unwrap_err().code(),
                "bad-version"
            );
        }
        assert_eq!(
            parse(&file_header("wtns", 2, u32::MAX)).unwrap_err().code(),
            "bad-count"
        );
    }
}
