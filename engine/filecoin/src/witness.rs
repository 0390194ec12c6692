//! The values of a circuit's wires, and nothing else of it: constraints were compiled once, and are checked against these
//! values as matrices.
//!
//! The circuit of a WindowPoSt is synthesized in parts at once by constraint systems that can be joined, so this one can.
//! As bellperson's, a new one is empty: whoever starts a synthesis gives it the constant one, the parts too.

use std::fmt;

use bellpepper_core::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use ff::Field;
use proofkeep_groth16::control::Halt;
use proofkeep_groth16::field::{ScalarBytes, scalar_to_bytes};
use zeroize::{Zeroize, Zeroizing};

/// Wipes what it holds when it is dropped.
struct Values {
    inputs: Vec<ScalarBytes>,
    others: Vec<ScalarBytes>,
    halt: Halt,
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Values").finish_non_exhaustive()
    }
}

impl Drop for Values {
    fn drop(&mut self) {
        self.inputs.zeroize();
        self.others.zeroize();
    }
}

/// Synthesizes a circuit for its values: the constant one, the inputs, then the rest. Runs on the current rayon pool.
///
/// # Errors
/// When the circuit refuses its own values, as on a division by zero; or the [`Halt`] of the threads is set.
pub fn witness_of(circuit: impl Circuit<Scalar>) -> Result<Zeroizing<Vec<ScalarBytes>>, SynthesisError> {
    let mut values = <Values as ConstraintSystem<Scalar>>::new();
    ConstraintSystem::<Scalar>::alloc_input(&mut values, || "one", || Ok(Scalar::ONE))?;
    circuit.synthesize(&mut values)?;
    let mut all = Zeroizing::new(Vec::with_capacity(values.inputs.len() + values.others.len()));
    all.extend_from_slice(&values.inputs);
    all.extend_from_slice(&values.others);
    Ok(all)
}

impl ConstraintSystem<Scalar> for Values {
    type Root = Self;

    fn new() -> Self {
        Self {
            inputs: Vec::new(),
            others: Vec::new(),
            halt: Halt::of_this_thread(),
        }
    }

    fn alloc<F, A, AR>(&mut self, _annotation: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.halt.check()?;
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

    fn is_extensible() -> bool {
        true
    }

    fn extend(&mut self, other: &Self) {
        // Each part has a constant one of its own.
        self.inputs
            .extend_from_slice(other.inputs.get(1..).unwrap_or(&[]));
        self.others.extend_from_slice(&other.others);
    }
}
