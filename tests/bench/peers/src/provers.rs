//! Everybody who proves, on one key and one witness.

use std::ops::ControlFlow;
use std::sync::Arc;

use bellperson::groth16::Parameters;
use blstrs::{Bls12, Scalar};
use ff::Field;
use proofkeep_groth16::backend::CpuBackend;
use proofkeep_groth16::control::Unwatched;
use proofkeep_groth16::field::{ScalarBytes, scalar_to_bytes};
use proofkeep_groth16::key::ProvingKey;
use proofkeep_groth16::matrices::Matrices;
use proofkeep_groth16::proof::Proof;
use proofkeep_groth16::setup::{ToxicWaste, generate_parameters};
use proofkeep_groth16::stages::Prover;
use proofkeep_groth16::verify::verify;
use proofkeep_groth16::vk::Encoding;
use proofkeep_groth16::witness::Witness;
use rand::SeedableRng;
use rand::rngs::OsRng;
use rand_chacha::ChaCha20Rng;

use crate::ark::Ark;
use crate::system::System;

/// One circuit with its key in every prover's form.
pub struct Bench {
    system: Arc<System>,
    parameters: Parameters<Bls12>,
    bellman: bellman::groth16::Parameters<Bls12>,
    ark: Ark,
    key: ProvingKey,
    witness: Vec<ScalarBytes>,
}

/// Who proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// This prover with that backend.
    Proofkeep(&'static str),
    /// bellperson 0.26, synthesis within the call: it has no other way.
    Bellperson,
    /// bellman 0.14 over blstrs, synthesis within the call.
    Bellman,
    /// ark-groth16 0.5 with prebuilt matrices, built with its assembly.
    Ark,
}

impl Who {
    /// All that this machine can run, ours first.
    pub fn all() -> Vec<Self> {
        let ours = CpuBackend::possible().into_iter().rev().map(Who::Proofkeep);
        ours.chain([Who::Bellperson, Who::Bellman, Who::Ark]).collect()
    }

    /// As it stands in the table.
    pub fn name(self) -> String {
        match self {
            Who::Proofkeep(backend) => format!("proofkeep ({backend})"),
            Who::Bellperson => "bellperson 0.26".to_owned(),
            Who::Bellman => "bellman 0.14".to_owned(),
            Who::Ark => "ark-groth16 0.5".to_owned(),
        }
    }
}

impl Bench {
    /// Makes the key, which takes our own setup, and every prover's form of it.
    pub fn new(system: Arc<System>, threads: usize) -> Self {
        let matrices = Matrices::of_circuit(system.replay()).unwrap();
        let waste = ToxicWaste::random(&mut OsRng).unwrap();
        let backend = CpuBackend::named("auto", threads).unwrap();
        let mut go_on = |_, _| ControlFlow::Continue(());
        let bytes = generate_parameters(&matrices, &waste, Vec::new(), &backend, &mut go_on).unwrap();
        let parameters = Parameters::read(&bytes[..], false).unwrap();
        Self {
            bellman: bellman::groth16::Parameters::read(&bytes[..], false).unwrap(),
            ark: Ark::new(&system, &parameters),
            key: ProvingKey::from_bellperson(&parameters, Arc::new(matrices)).unwrap(),
            witness: system.values.iter().map(scalar_to_bytes).collect(),
            parameters,
            system,
        }
    }

    /// A way to prove: every call makes a proof with fresh blinding factors.
    pub fn prover(&self, who: Who, threads: usize) -> Box<dyn FnMut() -> Vec<u8> + '_> {
        let mut random = ChaCha20Rng::from_entropy();
        let mut factors = move || (Scalar::random(&mut random), Scalar::random(&mut random));
        match who {
            Who::Proofkeep(backend) => {
                let prover = Prover::new(&self.key, CpuBackend::named(backend, threads).unwrap());
                let witness = Witness::new(&self.witness).unwrap();
                Box::new(move || {
                    let mut on_piece = |_, _| ControlFlow::Continue(());
                    let pieces = prover
                        .prove_pieces(&witness, &[], &mut on_piece, &Unwatched)
                        .unwrap();
                    prover
                        .assemble_random(&pieces)
                        .unwrap()
                        .to_bytes(Encoding::Compressed)
                })
            }
            Who::Bellperson => Box::new(move || {
                let (r, s) = factors();
                let proof =
                    bellperson::groth16::create_proof(self.system.replay(), &self.parameters, r, s).unwrap();
                let mut bytes = Vec::new();
                proof.write(&mut bytes).unwrap();
                bytes
            }),
            Who::Bellman => Box::new(move || {
                let (r, s) = factors();
                let proof =
                    bellman::groth16::create_proof(self.system.replay(), &self.bellman, r, s).unwrap();
                let mut bytes = Vec::new();
                proof.write(&mut bytes).unwrap();
                bytes
            }),
            Who::Ark => Box::new(move || {
                let (r, s) = factors();
                self.ark.prove(&r, &s)
            }),
        }
    }

    /// Whether a proof holds, by our verifier and by bellperson's.
    pub fn verify(&self, proof: &[u8]) {
        let public = &self.witness[1..=self.system.public];
        let ours = Proof::from_bytes(proof).unwrap();
        verify(self.key.vk(), public, &ours).unwrap();
        let theirs = bellperson::groth16::Proof::<Bls12>::read(proof).unwrap();
        let vk = bellperson::groth16::prepare_verifying_key(&self.parameters.vk);
        let signals = &self.system.values[1..=self.system.public];
        assert!(bellperson::groth16::verify_proof(&vk, &theirs, signals).unwrap());
    }
}
