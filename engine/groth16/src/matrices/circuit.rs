//! Compiles a circuit in memory while it is synthesized, row by row, so that its constraints are never all in memory as
//! lists of terms: those of a Filecoin circuit would take ten times what the matrices take.

use bellpepper_core::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use ff::Field;

use super::compile::finish;
use super::csr::{CsrBuilder, Form};
use super::{Matrices, MatrixError};
use crate::control::Halt;

/// Set in the number of a wire that is no input. How many inputs come before those is known at the end only.
const OTHER: u32 = 1 << 31;

struct Compiler {
    builders: [CsrBuilder; 3],
    inputs: u32,
    others: u32,
    rows: u32,
    /// The first thing that went wrong; the rest of the synthesis is for nothing.
    failed: Option<MatrixError>,
    halt: Halt,
}

impl Compiler {
    fn next(count: &mut u32) -> Result<usize, SynthesisError> {
        if *count >= OTHER {
            return Err(SynthesisError::PolynomialDegreeTooLarge);
        }
        *count += 1;
        Ok(*count as usize - 1)
    }

    fn row(&mut self, combinations: [LinearCombination<Scalar>; 3]) -> Result<(), MatrixError> {
        self.rows = self.rows.checked_add(1).ok_or(MatrixError::TooLarge)?;
        for (builder, combination) in self.builders.iter_mut().zip(&combinations) {
            for (variable, coefficient) in combination.iter().filter(|(_, c)| !c.is_zero_vartime()) {
                // Below 2^31, since `next` gave it.
                let wire = match variable.get_unchecked() {
                    Index::Input(input) => input as u32,
                    Index::Aux(other) => other as u32 | OTHER,
                };
                builder.term(wire, coefficient.to_bytes_le());
            }
            builder.end_row()?;
        }
        Ok(())
    }
}

impl ConstraintSystem<Scalar> for Compiler {
    type Root = Self;

    fn new() -> Self {
        Compiler {
            builders: [(); 3].map(|()| CsrBuilder::new(Form::Canonical, 0)),
            inputs: 1,
            others: 0,
            rows: 0,
            failed: None,
            halt: Halt::of_this_thread(),
        }
    }

    fn alloc<F, A, AR>(&mut self, _annotation: A, _value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.halt.check()?;
        Ok(Variable::new_unchecked(Index::Aux(Self::next(&mut self.others)?)))
    }

    fn alloc_input<F, A, AR>(&mut self, _annotation: A, _value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        Ok(Variable::new_unchecked(Index::Input(Self::next(
            &mut self.inputs,
        )?)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _annotation: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LB: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LC: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
        if self.failed.is_some() {
            return;
        }
        let zero = LinearCombination::zero;
        let row = self.row([a(zero()), b(zero()), c(zero())]);
        self.failed = row.err();
    }

    fn push_namespace<NR, N>(&mut self, _name: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
    }

    fn pop_namespace(&mut self) {}

    fn get_root(&mut self) -> &mut Self::Root {
        self
    }
}

impl Matrices {
    /// Compiles a circuit in memory; its values are never asked for. The same as compiling its
    /// [`Constraints`](crate::synthesis::Constraints), in much less memory. Ends when this thread's [`Halt`] is set.
    pub fn of_circuit(circuit: impl Circuit<Scalar>) -> Result<Self, MatrixError> {
        let mut compiler = <Compiler as ConstraintSystem<Scalar>>::new();
        circuit
            .synthesize(&mut compiler)
            .map_err(|error| MatrixError::Synthesis(error.to_string()))?;
        if let Some(failed) = compiler.failed {
            return Err(failed);
        }
        let (inputs, others) = (compiler.inputs, compiler.others);
        let wires = inputs.checked_add(others).ok_or(MatrixError::TooLarge)?;
        let mut matrices = finish(compiler.builders, wires, inputs - 1, compiler.rows)?;
        let all = [Some(&mut matrices.a), Some(&mut matrices.b), matrices.c.as_mut()];
        for matrix in all.into_iter().flatten() {
            for wire in &mut matrix.wires {
                if *wire & OTHER != 0 {
                    *wire = (*wire & !OTHER) + inputs;
                }
            }
        }
        Ok(matrices)
    }
}
