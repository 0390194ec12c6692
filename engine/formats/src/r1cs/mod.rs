//! Constraint systems as circom writes them (`.r1cs`, version 1).
//!
//! Section 1 is the header, 2 the constraints, 3 the label of each wire. Wires are numbered: 0 is the constant one,
//! then outputs, public inputs, private inputs, and what is left. A constraint is three linear combinations with
//! ⟨A,w⟩·⟨B,w⟩ = ⟨C,w⟩; each is a count and that many pairs of a wire and a coefficient.

mod builder;

use std::ops::Deref;

pub use builder::R1csBuilder;

use crate::container::{Cursor, Sections, expect_length};
use crate::field::{self, R_LE, is_canonical_r};
use crate::{FileKind, FormatError};

const FILE: FileKind = FileKind::R1cs;
const HEADER: u32 = 1;
const CONSTRAINTS: u32 = 2;
const WIRE_TO_LABEL: u32 = 3;
const CUSTOM_GATES: [u32; 2] = [4, 5];
/// A wire and a coefficient.
const TERM: usize = 4 + 32;

/// The counts at the head of a constraint system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct R1csHeader {
    /// Wires, the constant one among them.
    pub wires: u32,
    /// Public outputs.
    pub outputs: u32,
    /// Public inputs, without the outputs.
    pub public_inputs: u32,
    /// Private inputs.
    pub private_inputs: u32,
    /// Labels: signals before circom left any out.
    pub labels: u64,
    /// Constraints.
    pub constraints: u32,
}

impl R1csHeader {
    /// Public signals: outputs, then public inputs.
    pub fn public(&self) -> u32 {
        // Can't overflow: `parse` holds 1 + outputs + public inputs against the number of wires.
        self.outputs + self.public_inputs
    }

    /// The base-2 logarithm of the smallest domain that Groth16 can use: a power of two with room for each
    /// constraint, each public signal and the constant. It is what snarkjs chooses, and at least 1.
    pub fn domain_log2(&self) -> u32 {
        let rows = u64::from(self.constraints) + u64::from(self.public()) + 1;
        rows.next_power_of_two().trailing_zeros().max(1)
    }

    fn parse(section: &[u8]) -> Result<Self, FormatError> {
        let mut cursor = Cursor::new(FILE, "the header section", section);
        let size = cursor.u32()? as usize;
        let prime = cursor.take(size)?;
        if prime != R_LE {
            return Err(FormatError::WrongPrime {
                file: FILE,
                expected: field::CURVE,
                found: field::prime_name(prime),
            });
        }
        let header = R1csHeader {
            wires: cursor.u32()?,
            outputs: cursor.u32()?,
            public_inputs: cursor.u32()?,
            private_inputs: cursor.u32()?,
            labels: cursor.u64()?,
            constraints: cursor.u32()?,
        };
        cursor.finish("the number of bytes after the header")?;

        let least = 1 + u64::from(header.outputs) + u64::from(header.public_inputs);
        if u64::from(header.wires) < least {
            return Err(FormatError::BadCount {
                file: FILE,
                what: "the number of wires",
                expected: format!("at least {least} (the constant and the public signals)"),
                found: header.wires.into(),
            });
        }
        Ok(header)
    }
}

/// A constraint system that lies in memory as a file. Its counts are those of [`R1csHeader`].
#[derive(Clone, Debug)]
pub struct R1cs<'a> {
    header: R1csHeader,
    constraints: &'a [u8],
    labels: &'a [u8],
}

impl Deref for R1cs<'_> {
    type Target = R1csHeader;

    fn deref(&self) -> &R1csHeader {
        &self.header
    }
}

/// Reads the header alone.
///
/// # Errors
///
/// As [`R1cs::parse`], as far as the header goes.
pub fn header(bytes: &[u8]) -> Result<R1csHeader, FormatError> {
    sections(bytes).and_then(|sections| R1csHeader::parse(sections.get(HEADER, "the header")?))
}

fn sections(bytes: &[u8]) -> Result<Sections<'_>, FormatError> {
    Sections::parse(bytes, "r1cs", 1, FILE)
}

impl<'a> R1cs<'a> {
    /// Reads the header and finds the sections. Constraints are checked when they are walked.
    ///
    /// # Errors
    ///
    /// A broken container, another prime, counts that contradict each other or the size of the file, custom gates.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let sections = sections(bytes)?;
        let header = R1csHeader::parse(sections.get(HEADER, "the header")?)?;
        let constraints = sections.get(CONSTRAINTS, "the constraints")?;
        // An empty section is what circom leaves behind where a circuit could have custom gates and has none.
        if CUSTOM_GATES.iter().any(|id| {
            sections
                .find(*id)
                .is_some_and(|body| !body.is_empty() && body != [0; 4])
        }) {
            return Err(FormatError::Unsupported {
                file: FILE,
                what: "custom gates",
            });
        }
        // Each constraint takes three counts at least.
        let needed = u64::from(header.constraints) * 12;
        if (constraints.len() as u64) < needed {
            return Err(FormatError::Truncated {
                file: FILE,
                place: format!("section 2 with {} constraints", header.constraints),
                needed,
                have: constraints.len() as u64,
            });
        }
        // The format asks for this section, and it is the only one whose length bounds the number of wires.
        let labels = sections.get(WIRE_TO_LABEL, "the labels of the wires")?;
        expect_length(
            FILE,
            "the length of section 3 (labels)",
            labels,
            u64::from(header.wires) * 8,
        )?;
        Ok(R1cs {
            header,
            constraints,
            labels,
        })
    }

    /// The counts.
    pub fn header(&self) -> &R1csHeader {
        &self.header
    }

    /// Walks the constraints in order. After the first error nothing follows.
    pub fn constraints(&self) -> Constraints<'a> {
        Constraints {
            cursor: Cursor::new(FILE, "a constraint", self.constraints),
            wires: self.header.wires,
            count: self.header.constraints,
            next: 0,
        }
    }

    /// Walks all constraints, and returns the number of terms in A, B and C.
    ///
    /// # Errors
    ///
    /// The first fault in the section of constraints.
    pub fn check(&self) -> Result<[u64; 3], FormatError> {
        let mut terms = [0; 3];
        for constraint in self.constraints() {
            for (total, combination) in terms.iter_mut().zip(constraint?) {
                *total += combination.len() as u64;
            }
        }
        Ok(terms)
    }

    /// The label of each wire, as in the `.sym` file.
    pub fn wire_to_label(&self) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        let (labels, _) = self.labels.as_chunks();
        labels.iter().map(|label| u64::from_le_bytes(*label))
    }
}

/// Iterator over constraints: `[A, B, C]` each time.
pub struct Constraints<'a> {
    cursor: Cursor<'a>,
    wires: u32,
    count: u32,
    next: u32,
}

impl<'a> Constraints<'a> {
    fn combination(&mut self) -> Result<LinearCombination<'a>, FormatError> {
        let count = self.cursor.u32()? as usize;
        let bytes = self.cursor.take(count.saturating_mul(TERM))?;
        let (terms, _) = bytes.as_chunks();
        let combination = LinearCombination { terms };
        for (wire, coefficient) in combination {
            if wire >= self.wires {
                return Err(FormatError::OutOfRange {
                    file: FILE,
                    what: "constraint",
                    index: self.next.into(),
                    field: "a wire",
                    found: wire.into(),
                    limit: self.wires.into(),
                });
            }
            if !is_canonical_r(coefficient) {
                return Err(FormatError::NonCanonical {
                    file: FILE,
                    what: "a coefficient of constraint",
                    index: self.next.into(),
                });
            }
        }
        Ok(combination)
    }

    fn constraint(&mut self) -> Result<[LinearCombination<'a>; 3], FormatError> {
        let constraint = [self.combination()?, self.combination()?, self.combination()?];
        if self.next + 1 == self.count {
            self.cursor
                .finish("the number of bytes after the last constraint")?;
        }
        Ok(constraint)
    }
}

impl<'a> Iterator for Constraints<'a> {
    type Item = Result<[LinearCombination<'a>; 3], FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.count {
            return None;
        }
        let constraint = self.constraint();
        self.next = if constraint.is_ok() {
            self.next + 1
        } else {
            self.count
        };
        Some(constraint)
    }
}

/// Σ coefficient · wire: wires below the number of wires, canonical coefficients.
#[derive(Clone, Copy, Debug)]
pub struct LinearCombination<'a> {
    terms: &'a [[u8; TERM]],
}

impl<'a> LinearCombination<'a> {
    /// The number of terms.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Whether the sum is empty, hence zero.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The terms in the order of the file: a wire and a coefficient, little-endian and below r.
    pub fn iter(&self) -> Terms<'a> {
        Terms {
            terms: self.terms.iter(),
        }
    }
}

impl<'a> IntoIterator for LinearCombination<'a> {
    type Item = (u32, &'a [u8; 32]);
    type IntoIter = Terms<'a>;

    fn into_iter(self) -> Terms<'a> {
        self.iter()
    }
}

/// Iterator over the terms of a [`LinearCombination`].
#[derive(Clone, Debug)]
pub struct Terms<'a> {
    terms: std::slice::Iter<'a, [u8; TERM]>,
}

impl<'a> Iterator for Terms<'a> {
    type Item = (u32, &'a [u8; 32]);

    fn next(&mut self) -> Option<Self::Item> {
        let (wire, coefficient) = self.terms.next()?.split_first_chunk()?;
        Some((u32::from_le_bytes(*wire), coefficient.first_chunk()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.terms.size_hint()
    }
}

impl ExactSizeIterator for Terms<'_> {}
