//! The constraint system compiled once: `A`, `B` and, where the constraints are known, `C`, as sparse matrices.
//!
//! A key's rows are the constraints, then one row for the constant and each public signal, which `A` holds with
//! coefficient 1 (they make the input polynomials independent). Multiplying by a witness replaces synthesis, and shows
//! which constraint a bad witness breaks.

mod circuit;
mod compile;
mod csr;
mod file;
mod products;

use rayon::prelude::*;

pub use csr::Csr;
pub use file::{FILE_MAGIC, FILE_VERSION, MatrixFileError};
pub use products::Products;

use crate::field::MAX_LOG2;
use crate::witness::Witness;

/// A constraint system that can't be compiled.
#[derive(Debug, thiserror::Error)]
pub enum MatrixError {
    /// The file it comes from is broken.
    #[error(transparent)]
    Format(#[from] proofkeep_formats::FormatError),
    /// More than 2^32 terms in a matrix, or a domain above 2^31.
    #[error("the constraint system is too large: at most 2^32 terms in a matrix and 2^31 rows are supported")]
    TooLarge,
    /// A coefficient is not below `r`.
    #[error("a coefficient is not below the order of BLS12-381's scalar field")]
    NonCanonical,
    /// The circuit refused to be synthesized.
    #[error("the circuit could not be synthesized: {0}")]
    Synthesis(String),
}

impl MatrixError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            MatrixError::Format(error) => error.code(),
            MatrixError::TooLarge => "too-large",
            MatrixError::NonCanonical => "non-canonical",
            MatrixError::Synthesis(_) => "circuit-invalid",
        }
    }
}

/// Two constraint systems differ: the key belongs to another circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// A count differs.
    #[error(
        "the key belongs to another circuit: it has {found} {what}, the circuit has {expected}; \
         use the key that was made from this .r1cs"
    )]
    Count {
        /// What is counted.
        what: &'static str,
        /// The circuit's count.
        expected: u64,
        /// The key's count.
        found: u64,
    },
    /// A row differs.
    #[error(
        "the key belongs to another circuit: row {row} of its matrix {matrix} differs from the circuit's \
         (constraints count from 0, {constraints} of them, then the public signals); \
         use the key that was made from this .r1cs"
    )]
    Row {
        /// `'A'` or `'B'`.
        matrix: char,
        /// The first row that differs.
        row: usize,
        /// How many of the rows are constraints.
        constraints: u64,
    },
}

/// The matrices of a circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrices {
    wires: u32,
    public: u32,
    log2: u32,
    constraints: Option<u32>,
    a: Csr,
    b: Csr,
    c: Option<Csr>,
}

impl Matrices {
    /// Wires, the constant one among them.
    pub fn wires(&self) -> u32 {
        self.wires
    }

    /// Public signals, without the constant.
    pub fn public(&self) -> u32 {
        self.public
    }

    /// The exponent of the domain's size.
    pub fn log2(&self) -> u32 {
        self.log2
    }

    /// How many constraints there are, if the constraints are known.
    pub fn constraints(&self) -> Option<u32> {
        self.constraints
    }

    /// The matrix `A`, input rows included.
    pub fn a(&self) -> &Csr {
        &self.a
    }

    /// The matrix `B`.
    pub fn b(&self) -> &Csr {
        &self.b
    }

    /// The matrix `C`, if the constraints are known; a `.zkey` does not hold it.
    pub fn c(&self) -> Option<&Csr> {
        self.c.as_ref()
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> u64 {
        self.a.bytes() + self.b.bytes() + self.c.as_ref().map_or(0, Csr::bytes)
    }

    /// Whether these matrices, compiled from constraints, are those that `key`, compiled from a key, was made from.
    pub fn belongs(&self, key: &Matrices) -> Result<(), Mismatch> {
        let counts = [
            ("wires", self.wires, key.wires),
            ("public signals", self.public, key.public),
            ("as the exponent of its domain", self.log2, key.log2),
        ];
        for (what, expected, found) in counts {
            if expected != found {
                return Err(Mismatch::Count {
                    what,
                    expected: expected.into(),
                    found: found.into(),
                });
            }
        }
        let constraints = self.constraints.unwrap_or(0).into();
        for (matrix, ours, theirs) in [('A', &self.a, &key.a), ('B', &self.b, &key.b)] {
            if let Some(row) = ours.first_difference(theirs) {
                return Err(Mismatch::Row {
                    matrix,
                    row,
                    constraints,
                });
            }
        }
        Ok(())
    }

    /// The first constraint that the witness does not satisfy, counted from 0. `None` if it satisfies all, and also
    /// where the constraints are not known (no `C`). Runs on the current rayon pool.
    ///
    /// # Panics
    /// If the witness has fewer wires than the matrices.
    pub fn first_unsatisfied(&self, witness: &Witness<'_>) -> Option<usize> {
        let (c, values) = (self.c.as_ref()?, witness.values());
        (0..self.constraints? as usize)
            .into_par_iter()
            .with_min_len(256)
            .find_first(|row| self.a.dot(*row, values) * self.b.dot(*row, values) != c.dot(*row, values))
    }
}

fn log2_of_rows(rows: u64) -> Result<u32, MatrixError> {
    // snarkjs makes no domain of one point.
    let log2 = rows
        .checked_next_power_of_two()
        .ok_or(MatrixError::TooLarge)?
        .trailing_zeros()
        .max(1);
    if log2 > MAX_LOG2 {
        Err(MatrixError::TooLarge)
    } else {
        Ok(log2)
    }
}

#[cfg(test)]
mod tests;
