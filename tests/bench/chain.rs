//! A circuit of any size, for both provers: x ← x² + 1 over and over. Every wire is a full field element, so nothing is
//! cheaper here than it would be elsewhere.

use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
use blstrs::Scalar;
use ff::{Field as _, PrimeField as _};
use proofkeep_formats::r1cs::R1csBuilder;
use proofkeep_formats::wtns;

/// So many squarings; the start is private, the end is public.
#[derive(Clone, Copy)]
pub struct Chain {
    steps: usize,
    known: bool,
}

impl Chain {
    /// The longest whose domain is 2^`log2`: constraints, one public signal and the constant.
    pub fn filling(log2: usize) -> Self {
        Self {
            steps: (1 << log2) - 2,
            known: true,
        }
    }

    /// Without a witness, to make parameters.
    pub fn blank(self) -> Self {
        Self { known: false, ..self }
    }

    /// The public signal.
    pub fn end(self) -> Scalar {
        self.values()[self.steps]
    }

    /// The start and all that follow from it.
    fn values(self) -> Vec<Scalar> {
        let start = Scalar::from(3).pow_vartime([0x9e37_79b9_7f4a_7c15]);
        std::iter::successors(Some(start), |x| Some(x.square() + Scalar::ONE))
            .take(self.steps + 1)
            .collect()
    }

    /// As circom would write it: wire 0 the constant, 1 the end, 2 the start, then the rest.
    pub fn files(self) -> (Vec<u8>, Vec<u8>) {
        let one = Scalar::ONE.to_repr();
        let minus_one = (-Scalar::ONE).to_repr();
        let wire = |step: usize| -> u32 {
            let wire = if step == self.steps { 1 } else { step + 2 };
            wire.try_into().unwrap()
        };
        let wires = u32::try_from(self.steps + 2).unwrap();
        let mut circuit = R1csBuilder::new(wires, 1, 0, 1);
        for step in 0..self.steps {
            let x = [(wire(step), one)];
            circuit.constraint(&x, &x, &[(wire(step + 1), one), (0, minus_one)]);
        }
        let values = self.values();
        let mut witness = vec![one, values[self.steps].to_repr()];
        witness.extend(values[..self.steps].iter().map(|value| value.to_repr()));
        (circuit.build(), wtns::write(&witness))
    }
}

impl Circuit<Scalar> for Chain {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let values = self.known.then(|| self.values());
        let value = |step: usize| {
            values
                .as_ref()
                .map(|values| values[step])
                .ok_or(SynthesisError::AssignmentMissing)
        };
        let end = cs.alloc_input(|| "end", || value(self.steps))?;
        let mut x = cs.alloc(|| "start", || value(0))?;
        for step in 1..=self.steps {
            let next = if step == self.steps {
                end
            } else {
                cs.alloc(|| "x", || value(step))?
            };
            cs.enforce(|| "step", |lc| lc + x, |lc| lc + x, |lc| lc + next - CS::one());
            x = next;
        }
        Ok(())
    }
}
