//! Compiles matrices from an `.r1cs`, from the coefficients of a `.zkey`, or from a circuit in memory.

use proofkeep_formats::r1cs::R1cs;
use proofkeep_formats::zkey::Zkey;

use super::csr::{CsrBuilder, Form};
use super::{Matrices, MatrixError, log2_of_rows};
use crate::field::ScalarBytes;
use crate::synthesis::Constraints;

const ONE: ScalarBytes = {
    let mut one = [0; 32];
    one[0] = 1;
    one
};

impl Matrices {
    /// Compiles the constraints of an `.r1cs`, and the input rows that a key adds to them.
    pub fn from_r1cs(r1cs: &R1cs<'_>) -> Result<Self, MatrixError> {
        let header = *r1cs.header();
        let rows = header.constraints as usize;
        let mut builders = [(); 3].map(|()| CsrBuilder::new(Form::Canonical, rows));
        for constraint in r1cs.constraints() {
            for (builder, combination) in builders.iter_mut().zip(constraint?) {
                for (wire, coefficient) in combination {
                    builder.term(wire, *coefficient);
                }
                builder.end_row()?;
            }
        }
        finish(builders, header.wires, header.public(), header.constraints)
    }

    /// Compiles the matrices that a `.zkey` holds: `A` with the input rows, and `B`.
    pub fn from_zkey(zkey: &Zkey<'_>) -> Result<Self, MatrixError> {
        let mut terms: [Vec<(u32, u32, &ScalarBytes)>; 2] = [Vec::new(), Vec::new()];
        for coefficient in zkey.coefficients() {
            let coefficient = coefficient?;
            let terms = if coefficient.matrix == 0 {
                &mut terms[0]
            } else {
                &mut terms[1]
            };
            terms.push((coefficient.row, coefficient.wire, coefficient.value));
        }
        let [a, b] = terms.map(|mut terms| {
            if !terms.is_sorted_by_key(|term| term.0) {
                terms.sort_by_key(|term| term.0);
            }
            let rows = terms.last().map_or(0, |term| term.0 + 1);
            let mut builder = CsrBuilder::new(Form::DoubleMontgomery, rows as usize);
            let mut terms = terms.into_iter().peekable();
            for row in 0..rows {
                while let Some((_, wire, value)) = terms.next_if(|term| term.0 == row) {
                    builder.term(wire, *value);
                }
                builder.end_row()?;
            }
            Ok::<_, MatrixError>(builder.finish())
        });
        let header = zkey.header;
        Ok(Matrices {
            wires: header.wires,
            public: header.public,
            log2: header.log2,
            constraints: None,
            a: a?,
            b: b?,
            c: None,
        })
    }

    /// Compiles the constraints of a circuit in memory. Wire 0 is the constant, then the inputs, then the rest.
    pub fn from_constraints(constraints: &Constraints) -> Result<Self, MatrixError> {
        let rows = constraints.rows();
        let mut builders = [(); 3].map(|()| CsrBuilder::new(Form::Canonical, rows.len()));
        for row in rows {
            for (builder, terms) in builders.iter_mut().zip(row) {
                for (variable, coefficient) in terms {
                    builder.term(
                        constraints.wire(*variable).ok_or(MatrixError::TooLarge)?,
                        coefficient.to_bytes_le(),
                    );
                }
                builder.end_row()?;
            }
        }
        let count = |count: usize| u32::try_from(count).map_err(|_| MatrixError::TooLarge);
        let (inputs, others) = (constraints.inputs(), constraints.others());
        // The constant is bellperson's input 0.
        finish(
            builders,
            count(inputs + others)?,
            count(inputs - 1)?,
            count(rows.len())?,
        )
    }
}

pub(super) fn finish(
    [mut a, b, c]: [CsrBuilder; 3],
    wires: u32,
    public: u32,
    constraints: u32,
) -> Result<Matrices, MatrixError> {
    for input in 0..=public {
        a.term(input, ONE);
        a.end_row()?;
    }
    Ok(Matrices {
        wires,
        public,
        log2: log2_of_rows(u64::from(constraints) + u64::from(public) + 1)?,
        constraints: Some(constraints),
        a: a.finish(),
        b: b.finish(),
        c: Some(c.finish()),
    })
}
