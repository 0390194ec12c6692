//! Parameters as bellperson and bellman write them (Filecoin's `.params` files).
//!
//! ```text
//! α₁ β₁ β₂ γ₂ δ₁ δ₂ | IC | H | L | A | B in G1 | B in G2        each list: count u32 | points
//! ```
//!
//! Counts are big-endian, and points in ZCash's uncompressed encoding: big-endian coordinates, 96 bytes in G1 and 192 in
//! G2, three flags in the topmost bits, all of them zero here, since no list holds the identity. H has a point less than
//! the evaluation domain, IC one for each public wire, L one for each private wire, and A and B one for each wire that
//! some row of their matrix holds.

use crate::container::Cursor;
use crate::{FileKind, FormatError};

const FILE: FileKind = FileKind::Params;
/// Bytes of a point in G1.
pub const G1_BYTES: usize = 96;
/// Bytes of a point in G2.
pub const G2_BYTES: usize = 192;
/// The field has roots of unity up to this order, 2^32, and the quotient needs one of twice the domain's.
const MAX_DOMAIN: u64 = 1 << 31;

/// Parameters that lie in memory as a file: its counts belong together and to its size. The points are not looked at.
#[derive(Clone, Debug)]
pub struct Params<'a> {
    /// All up to and including IC: what a `.vk` file holds.
    pub vk: &'a [u8],
    /// β in G1.
    pub beta1: &'a [u8; G1_BYTES],
    /// δ in G1.
    pub delta1: &'a [u8; G1_BYTES],
    /// `(β·A_i(τ) + α·B_i(τ) + C_i(τ))/γ` for the constant and the public signals.
    pub ic: &'a [u8],
    /// `τ^j·t(τ)/δ` for `j` up to the domain less two.
    pub h: &'a [u8],
    /// `(β·A_i(τ) + α·B_i(τ) + C_i(τ))/δ` for the private wires.
    pub l: &'a [u8],
    /// `A_i(τ)` for the wires in `A`.
    pub a: &'a [u8],
    /// `B_i(τ)` in G1 for the wires in `B`.
    pub b1: &'a [u8],
    /// `B_i(τ)` in G2 for the same wires.
    pub b2: &'a [u8],
}

/// How many points each list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// In IC.
    pub ic: u64,
    /// In H.
    pub h: u64,
    /// In L.
    pub l: u64,
    /// In A.
    pub a: u64,
    /// In B in G1.
    pub b1: u64,
    /// In B in G2.
    pub b2: u64,
}

impl<'a> Params<'a> {
    /// Finds the lists. Nothing is copied.
    ///
    /// # Errors
    /// A list that reaches past the end, bytes after the last one, counts that can't belong together.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let mut cursor = Cursor::new(FILE, "the points of the verifying key", bytes);
        cursor.array::<G1_BYTES>()?;
        let beta1 = cursor.array()?;
        cursor.array::<{ 2 * G2_BYTES }>()?;
        let delta1 = cursor.array()?;
        cursor.array::<G2_BYTES>()?;
        let ic = list(&mut cursor, "the list IC", G1_BYTES)?;
        let vk = &bytes[..bytes.len() - cursor.rest().len()];
        let h = list(&mut cursor, "the list H", G1_BYTES)?;
        let l = list(&mut cursor, "the list L", G1_BYTES)?;
        let a = list(&mut cursor, "the list A", G1_BYTES)?;
        let b1 = list(&mut cursor, "the list B in G1", G1_BYTES)?;
        let b2 = list(&mut cursor, "the list B in G2", G2_BYTES)?;
        cursor.finish("the number of bytes after the last list")?;
        let params = Params {
            vk,
            beta1,
            delta1,
            ic,
            h,
            l,
            a,
            b1,
            b2,
        };
        params.counts().check()?;
        Ok(params)
    }

    /// How many points each list has.
    pub fn counts(&self) -> Counts {
        let count = |list: &[u8], size: usize| (list.len() / size) as u64;
        Counts {
            ic: count(self.ic, G1_BYTES),
            h: count(self.h, G1_BYTES),
            l: count(self.l, G1_BYTES),
            a: count(self.a, G1_BYTES),
            b1: count(self.b1, G1_BYTES),
            b2: count(self.b2, G2_BYTES),
        }
    }

    /// Public signals, without the constant.
    pub fn public(&self) -> u64 {
        self.counts().public()
    }

    /// Wires, the constant one among them.
    pub fn wires(&self) -> u64 {
        self.counts().wires()
    }

    /// Points of the evaluation domain.
    pub fn domain(&self) -> u64 {
        self.counts().domain()
    }
}

impl Counts {
    /// Public signals, without the constant.
    pub fn public(&self) -> u64 {
        self.ic.saturating_sub(1)
    }

    /// Wires, the constant one among them.
    pub fn wires(&self) -> u64 {
        self.ic + self.l
    }

    /// Points of the evaluation domain.
    pub fn domain(&self) -> u64 {
        self.h + 1
    }

    /// Whether they can belong together.
    ///
    /// # Errors
    /// [`FormatError::BadCount`] of the first that doesn't.
    pub fn check(&self) -> Result<(), FormatError> {
        let bad = |what, expected: String, found: u64| {
            Err(FormatError::BadCount {
                file: FILE,
                what,
                expected,
                found,
            })
        };
        if self.ic == 0 {
            return bad("the number of points in IC", "at least 1".to_owned(), 0);
        }
        let domain = self.domain();
        if !domain.is_power_of_two() || !(2..=MAX_DOMAIN).contains(&domain) {
            let expected = format!("one less than a power of two from 2 to {MAX_DOMAIN}");
            return bad("the number of points in H", expected, domain - 1);
        }
        for (what, count) in [
            ("the number of points in A", self.a),
            ("the number of points in B in G1", self.b1),
        ] {
            if count > self.wires() {
                let expected = format!("at most {}, as many as there are wires", self.wires());
                return bad(what, expected, count);
            }
        }
        if self.b2 != self.b1 {
            let expected = format!("{}, as in G1", self.b1);
            return bad("the number of points in B in G2", expected, self.b2);
        }
        Ok(())
    }
}

/// A count, held against what is left before it is used, and so many points.
fn list<'a>(cursor: &mut Cursor<'a>, name: &'static str, size: usize) -> Result<&'a [u8], FormatError> {
    cursor.place = name;
    let count = cursor.array().copied().map(u32::from_be_bytes)?;
    let needed = u64::from(count) * size as u64;
    cursor.take_u64(needed).ok_or_else(|| FormatError::Truncated {
        file: FILE,
        place: format!("{name} of {}", crate::count(count, "point")),
        needed,
        have: cursor.left(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;

    fn file(counts: [u32; 6]) -> Vec<u8> {
        let mut bytes = vec![7; 3 * G1_BYTES + 3 * G2_BYTES];
        for (list, count) in counts.iter().enumerate() {
            bytes.extend(count.to_be_bytes());
            let size = if list == 5 { G2_BYTES } else { G1_BYTES };
            bytes.resize(bytes.len() + *count as usize * size, list as u8);
        }
        bytes
    }

    #[test]
    fn lists_are_found_where_they_lie() {
        let bytes = file([2, 7, 4, 5, 3, 3]);
        let params = Params::parse(&bytes).unwrap();
        assert_eq!((params.public(), params.wires(), params.domain()), (1, 6, 8));
        assert_eq!(params.vk.len(), 3 * G1_BYTES + 3 * G2_BYTES + 4 + 2 * G1_BYTES);
        for (list, (bytes, length)) in [
            (params.ic, 2 * G1_BYTES),
            (params.h, 7 * G1_BYTES),
            (params.l, 4 * G1_BYTES),
            (params.a, 5 * G1_BYTES),
            (params.b1, 3 * G1_BYTES),
            (params.b2, 3 * G2_BYTES),
        ]
        .iter()
        .enumerate()
        {
            assert_eq!(bytes.len(), *length);
            assert!(bytes.iter().all(|byte| usize::from(*byte) == list));
        }
    }

    #[test]
    fn counts_that_contradict_the_file_or_each_other_are_refused_in_words() {
        let refusal = |bytes: &[u8]| {
            let error = Params::parse(bytes).unwrap_err();
            (error.code(), error.to_string())
        };
        let good = file([2, 7, 4, 5, 3, 3]);
        for end in 0..good.len() {
            assert_eq!(refusal(&good[..end]).0, "truncated", "{end}");
        }
        let longer = [&good[..], &[0]].concat();
        assert_eq!(refusal(&longer).0, "bad-count");
        let mut huge = good.clone();
        let count_of_h = good.len() - 3 * G2_BYTES - 12 * G1_BYTES - 16 - 7 * G1_BYTES - 4;
        huge[count_of_h..count_of_h + 4].copy_from_slice(&[0xff; 4]);
        let (code, text) = refusal(&huge);
        assert_eq!(code, "truncated");
        assert!(
            text.contains("the list H of 4294967295 points needs 412316860320 bytes"),
            "{text}"
        );
        for (counts, says) in [
            ([0, 7, 4, 4, 3, 3], "points in IC must be at least 1, and is 0"),
            (
                [2, 6, 4, 5, 3, 3],
                "points in H must be one less than a power of two",
            ),
            ([2, 0, 4, 5, 3, 3], "points in H"),
            ([2, 7, 4, 7, 3, 3], "points in A must be at most 6"),
            ([2, 7, 4, 5, 7, 7], "points in B in G1 must be at most 6"),
            (
                [2, 7, 4, 5, 3, 2],
                "points in B in G2 must be 3, as in G1, and is 2",
            ),
        ] {
            let (code, text) = refusal(&file(counts));
            assert_eq!(code, "bad-count");
            assert!(text.contains(says), "{text}");
        }
    }
}
