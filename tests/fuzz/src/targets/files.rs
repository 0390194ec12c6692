//! The files of circom and snarkjs.

use proofkeep_formats::FormatError;
use proofkeep_formats::json::{ProofJson, VkJson, public_from_json, public_to_json};
use proofkeep_formats::params::Params;
use proofkeep_formats::ptau::{Basis, Ptau};
use proofkeep_formats::r1cs::{self, R1cs};
use proofkeep_formats::sym::Sym;
use proofkeep_formats::wtns::{self, Witness};
use proofkeep_formats::zkey::{self, Zkey};

use super::{Outcome, Shape, Target, accepted};
use crate::seeds;

/// A binary file is read in place and nothing may grow with it but the names of a ceremony. Text is read into strings
/// and lists of three of them, which for the shortest strings is many bytes for each byte.
pub(super) static ALL: [Target; 9] = [
    Target {
        check: check_r1cs,
        ..Target::new("r1cs", "circuit.r1cs", Shape::Container, |bytes| {
            outcome(R1cs::parse(bytes).and_then(|system| system.check()))
        })
    },
    Target {
        check: check_wtns,
        ..Target::new("wtns", "witness.wtns", Shape::Container, |bytes| {
            outcome(Witness::parse(bytes))
        })
    },
    Target {
        bytes_per_byte: 1,
        check: check_zkey,
        ..Target::new("zkey", "circuit.zkey", Shape::Container, |bytes| {
            outcome(
                Zkey::parse(bytes).and_then(|key| key.coefficients().try_for_each(|entry| entry.map(drop))),
            )
        })
    },
    Target {
        bytes_per_byte: 1,
        check: check_ptau,
        ..Target::new("ptau", "pot.ptau", Shape::Container, |bytes| {
            outcome(Ptau::parse(bytes))
        })
    },
    Target {
        made: || vec![seeds::PARAMS.to_vec()],
        check: check_params,
        ..Target::new("params", "", Shape::Fixed, |bytes| outcome(Params::parse(bytes)))
    },
    Target {
        bytes_per_byte: 4,
        check: check_proof,
        ..Target::new("proof-json", "proof.json", Shape::Text, |bytes| {
            outcome(ProofJson::from_json(bytes))
        })
    },
    Target {
        bytes_per_byte: 12,
        check: check_public,
        ..Target::new("public-json", "public.json", Shape::Text, |bytes| {
            outcome(public_from_json(bytes))
        })
    },
    Target {
        bytes_per_byte: 24,
        check: check_vkey,
        ..Target::new("vkey-json", "vkey.json", Shape::Text, |bytes| {
            outcome(VkJson::from_json(bytes))
        })
    },
    Target {
        bytes_per_byte: 8,
        check: check_sym,
        ..Target::new("sym", "circuit.sym", Shape::Text, |bytes| {
            outcome(Sym::parse(bytes))
        })
    },
];

fn outcome<T>(result: Result<T, FormatError>) -> Outcome {
    super::outcome(result, FormatError::code)
}

fn check_r1cs(bytes: &[u8]) {
    let system = accepted(R1cs::parse(bytes));
    assert_eq!(r1cs::header(bytes).as_ref(), Ok(system.header()));
    assert!(system.public() < system.wires);
    let rows = u64::from(system.constraints) + u64::from(system.public()) + 1;
    assert!(rows <= 1 << system.domain_log2());
    let terms = accepted(system.check());
    assert_eq!(system.constraints().count(), system.constraints as usize);
    assert!(terms.iter().sum::<u64>() * 36 <= bytes.len() as u64);
    assert_eq!(system.wire_to_label().count(), system.wires as usize);
}

fn check_wtns(bytes: &[u8]) {
    let witness = accepted(Witness::parse(bytes));
    let again = wtns::write(witness.values());
    assert_eq!(accepted(Witness::parse(&again)).bytes(), witness.bytes());
}

fn check_zkey(bytes: &[u8]) {
    let key = accepted(Zkey::parse(bytes));
    assert_eq!(zkey::header(bytes).as_ref(), Ok(&key.header));
    assert_eq!(1 << key.log2, key.domain);
    assert_eq!(key.b2.len(), 192 * key.wires as usize);
    assert_eq!(key.ic.len() + key.c.len(), key.a.len());
    assert_eq!(key.coefficients().len(), key.coefficients().count());
    for entry in key.coefficients().map(accepted) {
        assert!(entry.matrix < 2 && entry.row < key.domain && entry.wire < key.wires);
    }
}

fn check_ptau(bytes: &[u8]) {
    let powers = accepted(Ptau::parse(bytes));
    assert!(powers.ceremony_power >= powers.power);
    assert_eq!(powers.tau_g1.len(), 96 * ((2 << powers.power) - 1));
    assert_eq!(powers.tau_g2.len(), 2 * powers.alpha_tau_g1.len());
    assert_eq!(powers.alpha_tau_g1.len(), powers.beta_tau_g1.len());
    for (basis, size) in [
        (Basis::TauG1, 96),
        (Basis::TauG2, 192),
        (Basis::AlphaTauG1, 96),
        (Basis::BetaTauG1, 96),
    ] {
        let largest = powers.power + u32::from(basis == Basis::TauG1);
        for log2 in 0..=largest {
            assert_eq!(powers.lagrange(basis, log2).map(<[u8]>::len), Some(size << log2));
        }
        assert_eq!(powers.lagrange(basis, largest + 1), None);
    }
}

fn check_params(bytes: &[u8]) {
    let params = accepted(Params::parse(bytes));
    let points = [params.h, params.l, params.a, params.b1, params.b2];
    let lists: usize = points.iter().map(|list| 4 + list.len()).sum();
    assert_eq!(params.vk.len() + lists, bytes.len());
    assert_eq!(params.b2.len(), 2 * params.b1.len());
    assert!(params.public() < params.wires() && params.domain().is_power_of_two());
}

fn check_proof(bytes: &[u8]) {
    let proof = accepted(ProofJson::from_json(bytes));
    let text = accepted(proof.to_json());
    assert_eq!(accepted(ProofJson::from_json(text.as_bytes())), proof);
}

fn check_public(bytes: &[u8]) {
    let signals = accepted(public_from_json(bytes));
    let text = accepted(public_to_json(&signals));
    assert_eq!(accepted(public_from_json(text.as_bytes())), signals);
}

fn check_vkey(bytes: &[u8]) {
    let key = accepted(VkJson::from_json(bytes));
    assert_eq!(key.ic.len() as u64, u64::from(key.n_public) + 1);
    let text = accepted(key.to_json());
    assert_eq!(accepted(VkJson::from_json(text.as_bytes())), key);
}

fn check_sym(bytes: &[u8]) {
    let sym = accepted(Sym::parse(bytes));
    // Some of them: one wire may have very many names.
    for signal in sym.signals().iter().step_by(17) {
        if let Some(wire) = signal.wire {
            assert!(sym.names(wire).any(|name| name == signal.name));
        }
    }
}
