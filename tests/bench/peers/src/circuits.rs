//! What is proved: a circuit whose wires are all full field elements, and one whose wires are nearly all bits.

use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
use bellperson::gadgets::boolean::{AllocatedBit, Boolean};
use bellperson::gadgets::multipack::pack_into_inputs;
use bellperson::gadgets::sha256::sha256;
use blstrs::Scalar;
use ff::Field;

/// `x ← x² + 1`, over and over; the end is public. With `2^log2 − 2` steps it fills a domain.
pub struct Chain {
    /// How many.
    pub steps: usize,
}

impl Circuit<Scalar> for Chain {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let start = Scalar::from(3).pow_vartime([0x9e37_79b9_7f4a_7c15]);
        let mut values = std::iter::successors(Some(start), |x| Some(x.square() + Scalar::ONE));
        let end = values.nth(self.steps).unwrap_or(start);
        let public = cs.alloc_input(|| "end", || Ok(end))?;
        let mut value = start;
        let mut x = cs.alloc(|| "start", || Ok(value))?;
        for step in 1..=self.steps {
            value = value.square() + Scalar::ONE;
            let next = if step == self.steps {
                public
            } else {
                cs.alloc(|| "x", || Ok(value))?
            };
            cs.enforce(|| "step", |lc| lc + x, |lc| lc + x, |lc| lc + next - CS::one());
            x = next;
        }
        Ok(())
    }
}

/// SHA-256 of a message of `64·blocks − 9` bytes, which fills its blocks; about 26,500 constraints each.
pub struct Hash {
    /// Blocks.
    pub blocks: usize,
}

impl Circuit<Scalar> for Hash {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let bits: Vec<Boolean> = (0..8 * (64 * self.blocks - 9) as u64)
            .map(|index| {
                let bit = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1;
                Ok(AllocatedBit::alloc(cs.namespace(|| format!("bit {index}")), Some(bit))?.into())
            })
            .collect::<Result<_, SynthesisError>>()?;
        let hash = sha256(cs.namespace(|| "hash"), &bits)?;
        pack_into_inputs(cs.namespace(|| "digest"), &hash)
    }
}
