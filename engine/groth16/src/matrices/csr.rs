//! One sparse matrix, by rows, with its distinct coefficients in a table of their own.

use std::collections::HashMap;

use blstrs::Scalar;
use ff::Field;

use super::MatrixError;
use crate::field::{ScalarBytes, from_limbs, limbs, scalar_from_bytes, to_double_montgomery};

/// Number of the coefficient 1 in every table.
const ONE: u32 = 0;
/// Number of the coefficient −1 in every table.
const MINUS_ONE: u32 = 1;

/// A sparse matrix: row `i` has the terms `starts[i]..starts[i + 1]`, by rising wire, no wire twice, none of them zero.
///
/// Coefficients stand as `v·R²` (see [`crate::field`]); 8 bytes a term, 32 for each distinct coefficient.
#[derive(Clone, PartialEq, Eq)]
pub struct Csr {
    pub(super) starts: Vec<u32>,
    pub(super) wires: Vec<u32>,
    pub(super) coefficients: Vec<u32>,
    pub(super) table: Vec<Scalar>,
}

impl std::fmt::Debug for Csr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Csr")
            .field("rows", &self.rows())
            .field("terms", &self.terms())
            .finish_non_exhaustive()
    }
}

impl Csr {
    /// How many rows are stored; rows after them are empty.
    pub fn rows(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// How many terms there are.
    pub fn terms(&self) -> usize {
        self.wires.len()
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> u64 {
        (4 * self.starts.len() + 8 * self.wires.len() + 32 * self.table.len()) as u64
    }

    fn range(&self, row: usize) -> std::ops::Range<usize> {
        match self.starts.get(row..row + 2) {
            Some(&[start, end]) => start as usize..end as usize,
            _ => 0..0,
        }
    }

    /// The terms of a row: wire, and coefficient as `v·R²`.
    pub fn row(&self, row: usize) -> impl ExactSizeIterator<Item = (u32, &Scalar)> {
        let range = self.range(row);
        let coefficients = self.coefficients[range.clone()]
            .iter()
            .map(|number| &self.table[*number as usize]);
        self.wires[range].iter().copied().zip(coefficients)
    }

    /// The first row that is not the same in both, of all rows that either has.
    pub fn first_difference(&self, other: &Csr) -> Option<usize> {
        (0..self.rows().max(other.rows()))
            .find(|row| self.row(*row).len() != other.row(*row).len() || self.row(*row).ne(other.row(*row)))
    }

    /// For each of `wires` wires, whether any row has it.
    pub fn columns(&self, wires: usize) -> Vec<bool> {
        let mut used = vec![false; wires];
        for wire in &self.wires {
            used[*wire as usize] = true;
        }
        used
    }

    /// The value of one row.
    pub(crate) fn dot(&self, row: usize, values: &[ScalarBytes]) -> Scalar {
        let range = self.range(row);
        let mut general = Scalar::ZERO;
        // Sum of the values with coefficients 1 and −1, as plain limbs.
        let mut plain = Scalar::ZERO;
        for (wire, number) in self.wires[range.clone()].iter().zip(&self.coefficients[range]) {
            let value = &values[*wire as usize];
            match *number {
                ONE => plain += from_limbs(value),
                MINUS_ONE => plain -= from_limbs(value),
                number if *value != [0; 32] => general += self.table[number as usize] * from_limbs(value),
                _ => {}
            }
        }
        general + plain * self.table[ONE as usize]
    }

    /// The matrix times the witness, with zeros up to `length` rows.
    #[cfg(test)]
    pub(super) fn times(&self, values: &[ScalarBytes], length: usize) -> Vec<Scalar> {
        (0..length).map(|row| self.dot(row, values)).collect()
    }
}

/// In what form a builder gets its coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As they are: `.r1cs`, circuits in memory.
    Canonical,
    /// As `v·R²`: `.zkey`.
    DoubleMontgomery,
}

/// Makes a matrix row by row.
pub(super) struct CsrBuilder {
    form: Form,
    numbers: HashMap<ScalarBytes, u32>,
    row: Vec<(u32, ScalarBytes)>,
    csr: Csr,
}

impl CsrBuilder {
    pub fn new(form: Form, rows: usize) -> Self {
        let table: Vec<Scalar> = [Scalar::ONE, -Scalar::ONE]
            .iter()
            .map(to_double_montgomery)
            .collect();
        let key = |plain: Scalar, stored: &Scalar| match form {
            Form::Canonical => plain.to_bytes_le(),
            Form::DoubleMontgomery => limbs(stored),
        };
        let numbers = HashMap::from([
            (key(Scalar::ONE, &table[0]), ONE),
            (key(-Scalar::ONE, &table[1]), MINUS_ONE),
        ]);
        let mut starts = Vec::with_capacity(rows + 1);
        starts.push(0);
        CsrBuilder {
            form,
            numbers,
            row: Vec::new(),
            csr: Csr {
                starts,
                wires: Vec::new(),
                coefficients: Vec::new(),
                table,
            },
        }
    }

    /// Adds a term to the row in work. The coefficient is below `r`.
    pub fn term(&mut self, wire: u32, coefficient: ScalarBytes) {
        self.row.push((wire, coefficient));
    }

    /// Ends the row in work: terms of one wire are added up, zeros dropped.
    pub fn end_row(&mut self) -> Result<(), MatrixError> {
        if !self.row.is_sorted_by(|a, b| a.0 < b.0) {
            self.row.sort_by_key(|term| term.0);
            // Addition is the same in every form of the scalars.
            self.row.dedup_by(|later, kept| {
                let same = later.0 == kept.0;
                if same {
                    kept.1 = limbs(&(from_limbs(&kept.1) + from_limbs(&later.1)));
                }
                same
            });
        }
        let mut row = std::mem::take(&mut self.row);
        for (wire, coefficient) in row.drain(..) {
            if coefficient == [0; 32] {
                continue;
            }
            let number = self.number(coefficient)?;
            self.csr.wires.push(wire);
            self.csr.coefficients.push(number);
        }
        self.row = row;
        let end = u32::try_from(self.csr.wires.len()).map_err(|_| MatrixError::TooLarge)?;
        self.csr.starts.push(end);
        Ok(())
    }

    fn number(&mut self, coefficient: ScalarBytes) -> Result<u32, MatrixError> {
        if let Some(number) = self.numbers.get(&coefficient) {
            return Ok(*number);
        }
        let stored = match self.form {
            Form::Canonical => {
                to_double_montgomery(&scalar_from_bytes(&coefficient).ok_or(MatrixError::NonCanonical)?)
            }
            Form::DoubleMontgomery => from_limbs(&coefficient),
        };
        let number = u32::try_from(self.csr.table.len()).map_err(|_| MatrixError::TooLarge)?;
        self.csr.table.push(stored);
        self.numbers.insert(coefficient, number);
        Ok(number)
    }

    /// The finished matrix, without empty rows at its end.
    pub fn finish(mut self) -> Csr {
        while let [.., before, last] = self.csr.starts[..] {
            if before != last {
                break;
            }
            self.csr.starts.pop();
        }
        self.csr.starts.shrink_to_fit();
        self.csr.wires.shrink_to_fit();
        self.csr.coefficients.shrink_to_fit();
        self.csr
    }
}
