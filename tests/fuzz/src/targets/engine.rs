//! What the prover and the witness calculator read: the same files put to use, and formats of our own.

use std::sync::{Arc, LazyLock};

use proofkeep_formats::json::{ProofJson, VkJson};
use proofkeep_formats::r1cs::{R1cs, R1csBuilder};
use proofkeep_formats::zkey::Zkey;
use proofkeep_groth16::key::{KeyError, ProvingKey};
use proofkeep_groth16::matrices::Matrices;
use proofkeep_groth16::proof::Proof;
use proofkeep_groth16::vk::{Encoding, UnfinishedSetup, VerifyingKey};
use proofkeep_witness::{Calculator, Limits};
use sha2::{Digest, Sha256};

use super::{Shape, Target, accepted, outcome};
use crate::seeds;

/// What a mutated circuit may use: enough for the small fixtures, and an endless loop ends soon.
const LIMITS: Limits = Limits {
    fuel: 5_000_000,
    memory_bytes: 16 << 20,
};
/// wasmi's own engine and the translated code, besides the circuit's memory.
const WASM_SLACK: usize = 20 << 20;

pub(super) static ALL: [Target; 8] = [
    Target {
        bytes_per_byte: 12,
        slack: 64 << 10,
        ..Target::new("r1cs-matrices", "circuit.r1cs", Shape::Container, |bytes| {
            let system = match R1cs::parse(bytes) {
                Ok(system) => system,
                Err(error) => return Err((error.code(), error.to_string())),
            };
            outcome(Matrices::from_r1cs(&system), |_| "matrices")
        })
    },
    Target {
        cost: 4,
        bytes_per_byte: 12,
        slack: 64 << 10,
        ..Target::new("zkey-matrices", "circuit.zkey", Shape::Container, |bytes| {
            let key = match Zkey::parse(bytes) {
                Ok(key) => key,
                Err(error) => return Err((error.code(), error.to_string())),
            };
            outcome(VerifyingKey::from_zkey(&key), |error| error.code())?;
            outcome(Matrices::from_zkey(&key), |_| "matrices")
        })
    },
    Target {
        made: || vec![seeds::PARAMS.to_vec()],
        cost: 16,
        bytes_per_byte: 4,
        slack: 64 << 10,
        check: |bytes| assert!(bytes.len() == seeds::PARAMS.len(), "counts are the circuit's"),
        ..Target::new("params-key", "", Shape::Fixed, |bytes| {
            let key = ProvingKey::from_params(bytes, CUBE.clone(), UnfinishedSetup::Refuse);
            outcome(key, KeyError::code)
        })
    },
    Target {
        prepare: |r1cs| {
            let mut file = Vec::new();
            accepted(accepted(Matrices::from_r1cs(&accepted(R1cs::parse(&r1cs)))).write(&mut file));
            file
        },
        finish: |file| {
            if let Some((body, digest)) = file.split_last_chunk_mut::<32>() {
                digest.copy_from_slice(&Sha256::digest(body));
            }
        },
        bytes_per_byte: 4,
        check: |bytes| {
            let mut again = Vec::new();
            accepted(accepted(Matrices::read(bytes)).write(&mut again));
            assert!(again == bytes, "written again, the file differs");
        },
        ..Target::new("matrices-file", "circuit.r1cs", Shape::Bytes, |bytes| {
            outcome(Matrices::read(bytes), |_| "matrices")
        })
    },
    Target {
        prepare: |json| {
            let proof = accepted(Proof::from_json(&accepted(ProofJson::from_json(&json))));
            proof.to_bytes(Encoding::Compressed)
        },
        cost: 4,
        check: |bytes| {
            let proof = accepted(Proof::from_bytes(bytes));
            let encodings = [Encoding::Compressed, Encoding::Uncompressed];
            assert!(
                encodings
                    .into_iter()
                    .any(|encoding| proof.to_bytes(encoding) == bytes),
                "a second encoding"
            );
        },
        ..Target::new("proof-bytes", "proof.json", Shape::Fixed, |bytes| {
            outcome(Proof::from_bytes(bytes), |error| error.code())
        })
    },
    Target {
        prepare: |json| {
            let key = accepted(VerifyingKey::from_json(&accepted(VkJson::from_json(&json))));
            key.to_bytes(Encoding::Uncompressed)
        },
        cost: 4,
        bytes_per_byte: 8,
        check: |bytes| {
            let key = accepted(VerifyingKey::from_bytes(bytes, Encoding::Uncompressed));
            assert_eq!(key.to_bytes(Encoding::Uncompressed), bytes);
        },
        ..Target::new("vk-bytes", "vkey.json", Shape::Fixed, |bytes| {
            outcome(VerifyingKey::from_bytes(bytes, Encoding::Uncompressed), |error| {
                error.code()
            })
        })
    },
    Target {
        cost: 2,
        bytes_per_byte: 64,
        slack: WASM_SLACK,
        ..Target::new("input-json", "input.json", Shape::Text, |bytes| {
            outcome(ARRAYS.calculate(bytes), |error| error.code())
        })
    },
    Target {
        cost: 20,
        bytes_per_byte: 64,
        slack: WASM_SLACK,
        ..Target::new("circuit-wasm", "circuit.wasm", Shape::Fixed, |bytes| {
            let calculated =
                Calculator::new(bytes, LIMITS).and_then(|circuit| circuit.calculate(&ARRAYS_INPUT));
            outcome(calculated, |error| error.code())
        })
    },
];

/// The circuit that [`seeds::PARAMS`] were made for.
static CUBE: LazyLock<Arc<Matrices>> = LazyLock::new(|| {
    let number = |value: u8| {
        let mut bytes = [0; 32];
        bytes[0] = value;
        bytes
    };
    let (one, two) = (number(1), number(2));
    let mut builder = R1csBuilder::new(6, 1, 1, 3);
    builder.constraint(&[(3, one)], &[(3, one)], &[(4, one)]);
    builder.constraint(&[(4, one)], &[(3, one)], &[(5, one)]);
    builder.constraint(&[(5, one), (2, two)], &[(0, one)], &[(1, one)]);
    let r1cs = builder.build();
    Arc::new(accepted(Matrices::from_r1cs(&accepted(R1cs::parse(&r1cs)))))
});

static ARRAYS: LazyLock<Calculator> = LazyLock::new(|| {
    let circuit = accepted(Calculator::new(&seeds::fixture("arrays", "circuit.wasm"), LIMITS));
    accepted(circuit.with_sym(&seeds::fixture("arrays", "circuit.sym")))
});

static ARRAYS_INPUT: LazyLock<Vec<u8>> = LazyLock::new(|| seeds::fixture("arrays", "input.json"));
