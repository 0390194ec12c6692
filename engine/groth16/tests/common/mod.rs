//! Circuits, keys and helpers that the tests share.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::ops::ControlFlow;
use std::sync::Arc;

use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
use blstrs::Scalar;
use ff::Field;
use proofkeep_formats::r1cs::{R1cs, R1csBuilder};
use proofkeep_groth16::backend::CpuBackend;
use proofkeep_groth16::bases::KeyBytes;
use proofkeep_groth16::control::Unwatched;
use proofkeep_groth16::field::{ScalarBytes, scalar_to_bytes};
use proofkeep_groth16::key::ProvingKey;
use proofkeep_groth16::setup::insecure_setup;
use proofkeep_groth16::stages::{PieceResult, Prover};
use proofkeep_groth16::witness::Witness;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

pub fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// The backend of a user who sets nothing.
pub fn backend(threads: usize) -> CpuBackend {
    CpuBackend::new(threads).unwrap()
}

/// Every backend that this machine can run; says which it can't.
pub fn every_backend(threads: usize) -> Vec<CpuBackend> {
    let names = CpuBackend::possible();
    if !names.contains(&"ifma") {
        eprintln!("not run with the backend ifma: this processor has no AVX-512 IFMA");
    }
    names
        .into_iter()
        .map(|name| CpuBackend::named(name, threads).unwrap())
        .collect()
}

pub fn go_on(_done: u64, _total: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// All pieces, with nothing known.
pub fn all_pieces(key: &ProvingKey, witness: &Witness<'_>) -> Vec<PieceResult> {
    all_pieces_on(backend(2), key, witness)
}

/// The same on this backend.
pub fn all_pieces_on(backend: CpuBackend, key: &ProvingKey, witness: &Witness<'_>) -> Vec<PieceResult> {
    Prover::new(key, backend)
        .prove_pieces(witness, &[], &mut |_, _| ControlFlow::Continue(()), &Unwatched)
        .unwrap()
}

/// `x ← (x + k)³` for `rounds` rounds, all values dense; two constraints a round, the last `x` is public, and so is
/// one more signal that nothing but its input row uses when `idle` is set.
#[derive(Clone)]
pub struct Chain {
    pub rounds: usize,
    pub start: Option<Scalar>,
    pub idle: bool,
}

fn key(round: usize) -> Scalar {
    Scalar::from(round as u64 + 3).square().square()
}

impl Chain {
    pub fn new(rounds: usize) -> Self {
        Chain {
            rounds,
            start: Some(Scalar::from(0x1234_5678u64).square().square()),
            idle: false,
        }
    }

    pub fn blank(&self) -> Self {
        Chain {
            start: None,
            ..self.clone()
        }
    }

    fn end(&self) -> Option<Scalar> {
        self.start
            .map(|start| (0..self.rounds).fold(start, |x, round| (x + key(round)).cube()))
    }
}

trait Cube {
    fn cube(self) -> Self;
}

impl Cube for Scalar {
    fn cube(self) -> Self {
        self.square() * self
    }
}

impl Circuit<Scalar> for Chain {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let missing = SynthesisError::AssignmentMissing;
        let end = self.end();
        let mut value = self.start;
        let mut x = cs.alloc(|| "start", || value.ok_or(SynthesisError::AssignmentMissing))?;
        for round in 0..self.rounds {
            let k = key(round);
            let square = value.map(|v| (v + k).square());
            let s = cs.alloc(
                || format!("square {round}"),
                || square.ok_or(SynthesisError::AssignmentMissing),
            )?;
            cs.enforce(
                || format!("square {round}"),
                |lc| lc + x + (k, CS::one()),
                |lc| lc + x + (k, CS::one()),
                |lc| lc + s,
            );
            let cube = value.map(|v| (v + k).cube());
            let next = if round + 1 == self.rounds {
                cs.alloc_input(|| "end", || end.ok_or(SynthesisError::AssignmentMissing))?
            } else {
                cs.alloc(
                    || format!("cube {round}"),
                    || cube.ok_or(SynthesisError::AssignmentMissing),
                )?
            };
            cs.enforce(
                || format!("cube {round}"),
                |lc| lc + s,
                |lc| lc + x + (k, CS::one()),
                |lc| lc + next,
            );
            x = next;
            value = cube;
        }
        if self.idle {
            cs.alloc_input(
                || "idle",
                || self.start.map(|_| Scalar::from(77u64)).ok_or(missing),
            )?;
        }
        Ok(())
    }
}

/// An `.r1cs` and its witness: wires hold bits, small numbers and dense values, some wires stand in no row of `A` or
/// `B`, one in no row at all; `constraints` rows, two public outputs.
pub fn mixed_r1cs(constraints: usize) -> (Vec<u8>, Vec<ScalarBytes>) {
    let mut rng = rng(constraints as u64);
    let value = |v: Scalar| scalar_to_bytes(&v);
    let small = |v: u64| scalar_to_bytes(&Scalar::from(v));
    let first = 3u32;
    let wires = first + constraints as u32 + 1;
    let mut values = vec![Scalar::ONE, Scalar::ZERO, Scalar::ZERO];
    let mut rows = Vec::new();
    for index in 0..constraints {
        let wire = first + index as u32;
        match index % 4 {
            // A bit: w·(w − 1) = 0.
            0 => {
                values.push(Scalar::from((index / 4 % 2) as u64));
                rows.push((
                    vec![(wire, small(1))],
                    vec![(wire, small(1)), (0, value(-Scalar::ONE))],
                    vec![],
                ));
            }
            // A sum that is only in C.
            1 => {
                let bit = values[wire as usize - 1];
                let coefficient = Scalar::random(&mut rng);
                values.push(bit * coefficient + Scalar::from(5u64));
                rows.push((
                    vec![(wire - 1, value(coefficient)), (0, small(5))],
                    vec![(0, small(1))],
                    vec![(wire, small(1))],
                ));
            }
            // A product of dense values.
            2 => {
                values.push(values[wire as usize - 1].square());
                rows.push((
                    vec![(wire - 1, small(1))],
                    vec![(wire - 1, small(1))],
                    vec![(wire, small(1))],
                ));
            }
            // A short number.
            _ => {
                values.push(Scalar::from(1000 + index as u64));
                rows.push((
                    vec![(wire, small(1))],
                    vec![(0, small(2))],
                    vec![(0, small(2 * (1000 + index as u64)))],
                ));
            }
        }
    }
    // The last wire is free.
    values.push(Scalar::random(&mut rng));
    // The outputs: the first two rows also define them, through C of rows that are products with one.
    if constraints >= 4 {
        values[1] = values[first as usize + 2];
        values[2] = values[first as usize + 3];
        rows[0] = (
            vec![(1, small(1)), (first + 2, value(-Scalar::ONE))],
            vec![(0, small(1))],
            vec![],
        );
        rows[3] = (
            vec![(2, small(1))],
            vec![(0, small(1))],
            vec![(first + 3, small(1))],
        );
    }
    let mut builder = R1csBuilder::new(wires, 2, 0, wires - 3);
    for (a, b, c) in &rows {
        builder.constraint(a, b, c);
    }
    (builder.build(), values.iter().map(scalar_to_bytes).collect())
}

/// The bytes of an insecure key.
pub fn setup(r1cs: &[u8], seed: &[u8]) -> Vec<u8> {
    let r1cs = R1cs::parse(r1cs).unwrap();
    insecure_setup(
        &r1cs,
        seed,
        std::io::Cursor::new(Vec::new()),
        &backend(2),
        &mut go_on,
    )
    .unwrap()
    .into_inner()
}

pub fn key_bytes(bytes: Vec<u8>) -> KeyBytes {
    Arc::new(bytes)
}
