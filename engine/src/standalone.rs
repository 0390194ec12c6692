//! A proof without a daemon: for the command line's `groth16 prove` and for benches.
//!
//! This is the one place besides a decoded `Prove` frame that makes a lease; the supervisor and the worker process
//! never name it.

use std::fmt::Display;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;
use proofkeep_formats::r1cs::R1cs;
use proofkeep_formats::wtns;
use proofkeep_groth16::bases::KeyBytes;
use proofkeep_groth16::check::check_circuit;
use proofkeep_groth16::control::Control;
use proofkeep_groth16::key::ProvingKey;
use proofkeep_groth16::matrices::Matrices;
use proofkeep_groth16::proof::Proof;
use proofkeep_groth16::stages::{PieceResult, Prover};
use proofkeep_groth16::verify::verify;
use proofkeep_groth16::vk::{UnfinishedSetup, VerifyingKey};
use proofkeep_groth16::witness::Witness;
use proofkeep_store::records::{Failure, FailureClass};

use crate::device;
use crate::lease::Lease;
use crate::protocol::WireToken;
use crate::shelf::map_file;

/// A proof and what it is about.
#[derive(Debug)]
pub struct Proved {
    /// The proof, verified.
    pub proof: Proof,
    /// The public signals, little-endian.
    pub public: Vec<[u8; 32]>,
    /// The key that verifies it.
    pub vk: VerifyingKey,
}

/// A key that is loaded, on a device that is leased until this is dropped.
pub struct Local {
    key: ProvingKey,
    /// The constraints are at hand, and every witness is held against them first.
    checked: bool,
    lease: Lease,
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Local")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl Local {
    /// Loads a key and opens the processor with that many threads. With the `.r1cs`, it must be the key's, and a bad
    /// witness is found before it is proved. A key that nobody contributed to is loaded only where that is accepted.
    ///
    /// # Errors
    /// `params_mismatch` when a file can't be used, `device_error` when the system refuses.
    pub fn open(
        zkey: &Path,
        r1cs: Option<&Path>,
        threads: u32,
        unfinished: UnfinishedSetup,
    ) -> Result<Self, Failure> {
        let unusable = |path: &Path, code: &str, error: &dyn Display| {
            let detail = format!("{}: {error}", path.display());
            Failure::coded(FailureClass::ParamsMismatch, code, detail)
        };
        let matrices = match r1cs {
            Some(path) => {
                let map = map(path)?;
                let r1cs = R1cs::parse(&map).map_err(|error| unusable(path, error.code(), &error))?;
                let matrices =
                    Matrices::from_r1cs(&r1cs).map_err(|error| unusable(path, error.code(), &error))?;
                Some(Arc::new(matrices))
            }
            None => None,
        };
        let file = map(zkey)?;
        if let Some(matrices) = &matrices {
            let parsed = proofkeep_formats::zkey::Zkey::parse(&file)
                .map_err(|error| unusable(zkey, error.code(), &error))?;
            check_circuit(&parsed, matrices).map_err(|error| unusable(zkey, error.code(), &error))?;
        }
        let checked = matrices.is_some();
        let bytes: KeyBytes = Arc::new(file);
        let key = ProvingKey::from_zkey_with(bytes, matrices, unfinished)
            .map_err(|error| unusable(zkey, error.code(), &error))?;
        let device = device::open("cpu:0", threads)
            .map_err(|error| Failure::new(FailureClass::DeviceUnavailable, error.to_string()))?;
        // Nobody waits to hear how this lease ends.
        let lease = Lease::new(WireToken { boot: 0, grant: 0 }, device, Box::new(|_| {}));
        Ok(Self { key, checked, lease })
    }

    /// Proves a witness (`.wtns`) and verifies the proof. `progress` hears, in permille of each piece, that work goes
    /// on, and may stop it.
    ///
    /// # Errors
    /// `input_invalid`, `unsatisfied`, `invalid_proof`; `cancelled` when stopped.
    pub fn prove(&self, witness: &[u8], progress: &dyn Control) -> Result<Proved, Failure> {
        let input = |code: &str, detail: String| Failure::coded(FailureClass::InputInvalid, code, detail);
        let witness =
            wtns::Witness::parse(witness).map_err(|error| input(error.code(), error.to_string()))?;
        let witness = Witness::from(witness);
        let prover = Prover::new(&self.key, self.lease.backend());
        let mut pieces: Vec<PieceResult> = Vec::new();
        let mut on_piece = |piece, _| {
            pieces.push(piece);
            ControlFlow::Continue(())
        };
        prover
            .prove_pieces(&witness, &[], &mut on_piece, progress)
            .map_err(|error| {
                let class = match error.code() {
                    "unsatisfied" => FailureClass::Unsatisfied,
                    "stopped" => FailureClass::Cancelled,
                    _ => FailureClass::InputInvalid,
                };
                Failure::coded(class, error.code(), error.to_string())
            })?;
        let invalid = |error: &dyn Display| {
            Failure::coded(FailureClass::InvalidProof, "invalid-proof", self.invalid(error))
        };
        let proof = prover.assemble_random(&pieces).map_err(|error| invalid(&error))?;
        let vk = self.key.vk().clone();
        let public = witness.public(vk.public()).to_vec();
        verify(&vk, &public, &proof).map_err(|error| invalid(&error))?;
        Ok(Proved { proof, public, vk })
    }

    /// What a proof that doesn't verify means to whoever asked for it. Without the constraints a witness that breaks one
    /// is only found here.
    fn invalid(&self, error: &dyn Display) -> String {
        if self.checked {
            return format!(
                "a proof of a witness that satisfies every constraint does not verify ({error}): the key is damaged, or \
                 this machine's memory is; check the key's file, and report this if it is whole"
            );
        }
        format!(
            "the witness does not satisfy the circuit of this key: the proof made from it does not verify ({error}), and \
             is thrown away; give the circuit's .r1cs as well (--r1cs circuit.r1cs) to learn which constraint it breaks, \
             or make the witness again"
        )
    }
}

fn map(path: &Path) -> Result<Mmap, Failure> {
    let open = File::open(path).and_then(|file| {
        if file.metadata()?.is_file() {
            map_file(&file)
        } else {
            Err(io::Error::other(
                "expected a file, found a directory, a pipe or a device",
            ))
        }
    });
    open.map_err(|error| {
        let detail = format!("{} can't be read: {error}", path.display());
        Failure::coded(FailureClass::ParamsMismatch, "unreadable", detail)
    })
}
