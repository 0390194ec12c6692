//! Circuits in memory (bellpepper): their constraints, and their witness.

use std::fmt;

use bellpepper_core::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use ff::Field;
use zeroize::Zeroize;

use crate::field::{ScalarBytes, scalar_to_bytes};
use crate::matrices::MatrixError;
use crate::witness::Witness;

/// The terms of one linear combination.
pub(crate) type Combination = Vec<(Index, Scalar)>;

/// What a circuit enforces, without values.
#[derive(Default)]
pub struct Constraints {
    rows: Vec<[Combination; 3]>,
    inputs: usize,
    others: usize,
}

impl fmt::Debug for Constraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Constraints")
            .field("rows", &self.rows.len())
            .field("inputs", &self.inputs)
            .field("others", &self.others)
            .finish()
    }
}

impl Constraints {
    /// Collects the constraints of a circuit; values are never asked for.
    pub fn of(circuit: impl Circuit<Scalar>) -> Result<Self, MatrixError> {
        let mut collected = <Self as ConstraintSystem<Scalar>>::new();
        circuit
            .synthesize(&mut collected)
            .map_err(|error| MatrixError::Synthesis(error.to_string()))?;
        Ok(collected)
    }

    /// The constraints: `A`, `B` and `C` of each.
    pub(crate) fn rows(&self) -> &[[Combination; 3]] {
        &self.rows
    }

    /// Inputs, the constant one among them.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// All other wires.
    pub fn others(&self) -> usize {
        self.others
    }

    /// The wire of a variable.
    pub(crate) fn wire(&self, index: Index) -> Option<u32> {
        u32::try_from(match index {
            Index::Input(input) => input,
            Index::Aux(other) => self.inputs + other,
        })
        .ok()
    }
}

fn terms(combination: &LinearCombination<Scalar>) -> Combination {
    combination
        .iter()
        .filter(|(_, c)| !c.is_zero_vartime())
        .map(|(variable, c)| (variable.get_unchecked(), *c))
        .collect()
}

impl ConstraintSystem<Scalar> for Constraints {
    type Root = Self;

    fn new() -> Self {
        Constraints {
            inputs: 1,
            ..Constraints::default()
        }
    }

    fn alloc<F, A, AR>(&mut self, _annotation: A, _value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.others += 1;
        Ok(Variable::new_unchecked(Index::Aux(self.others - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _annotation: A, _value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.inputs += 1;
        Ok(Variable::new_unchecked(Index::Input(self.inputs - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _annotation: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LB: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LC: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
        let zero = LinearCombination::zero;
        self.rows
            .push([terms(&a(zero())), terms(&b(zero())), terms(&c(zero()))]);
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

/// The values of all wires of a circuit in memory. Wiped when dropped.
pub struct Assignment {
    inputs: Vec<ScalarBytes>,
    others: Vec<ScalarBytes>,
}

impl fmt::Debug for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Assignment")
            .field("wires", &(self.inputs.len() + self.others.len()))
            .finish_non_exhaustive()
    }
}

impl Drop for Assignment {
    fn drop(&mut self) {
        self.inputs.zeroize();
        self.others.zeroize();
    }
}

impl Assignment {
    /// Runs a circuit with its values; constraints are not looked at.
    pub fn of(circuit: impl Circuit<Scalar>) -> Result<Self, MatrixError> {
        let mut assignment = <Self as ConstraintSystem<Scalar>>::new();
        circuit
            .synthesize(&mut assignment)
            .map_err(|error| MatrixError::Synthesis(error.to_string()))?;
        let mut others = std::mem::take(&mut assignment.others);
        assignment.inputs.extend_from_slice(&others);
        others.zeroize();
        Ok(assignment)
    }

    /// As the prover takes it.
    pub fn witness(&self) -> Result<Witness<'_>, crate::witness::WitnessError> {
        Witness::new(&self.inputs)
    }
}

impl ConstraintSystem<Scalar> for Assignment {
    type Root = Self;

    fn new() -> Self {
        Assignment {
            inputs: vec![scalar_to_bytes(&Scalar::ONE)],
            others: Vec::new(),
        }
    }

    fn alloc<F, A, AR>(&mut self, _annotation: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.others.push(scalar_to_bytes(&value()?));
        Ok(Variable::new_unchecked(Index::Aux(self.others.len() - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _annotation: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.inputs.push(scalar_to_bytes(&value()?));
        Ok(Variable::new_unchecked(Index::Input(self.inputs.len() - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _annotation: A, _a: LA, _b: LB, _c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LB: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LC: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
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
