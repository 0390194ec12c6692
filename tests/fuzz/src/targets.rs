//! The parsers, each with what must hold for whatever it accepts.

use proofkeep_formats::FormatError;
use proofkeep_formats::json::{ProofJson, VkJson, public_from_json, public_to_json};
use proofkeep_formats::r1cs::{self, R1cs};
use proofkeep_formats::sym::Sym;
use proofkeep_formats::wtns::{self, Witness};
use proofkeep_formats::zkey::{self, Zkey};

/// What a parser said: nothing if it accepted the input, else its code and its text.
pub type Outcome = Result<(), (&'static str, String)>;

/// How inputs are mutated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Sections in iden3's container.
    Container,
    /// JSON, or lines of text.
    Text,
}

/// A parser under test.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name on the command line, and its folder under `corpus/`.
    pub name: &'static str,
    /// The file of each circom fixture that is a seed.
    pub file: &'static str,
    /// How to mutate.
    pub shape: Shape,
    /// Bytes that may be allocated for each byte of input, besides [`SLACK`](Self::SLACK).
    pub bytes_per_byte: usize,
    /// Parses the input and walks all of it.
    pub parse: fn(&[u8]) -> Outcome,
    /// Panics if an input that was accepted breaks a promise. What it allocates isn't counted.
    pub check: fn(&[u8]),
}

impl Target {
    /// Bytes that may be allocated for any input: error texts, small lists.
    pub const SLACK: usize = 16 << 10;
}

/// Every target.
///
/// A binary file is read in place and nothing may grow with it but the names of a ceremony. Text is read into strings
/// and lists of three of them, which for the shortest strings is many bytes for each byte.
pub static ALL: [Target; 7] = [
    Target {
        name: "r1cs",
        file: "circuit.r1cs",
        shape: Shape::Container,
        bytes_per_byte: 0,
        parse: |bytes| outcome(R1cs::parse(bytes).and_then(|system| system.check())),
        check: check_r1cs,
    },
    Target {
        name: "wtns",
        file: "witness.wtns",
        shape: Shape::Container,
        bytes_per_byte: 0,
        parse: |bytes| outcome(Witness::parse(bytes)),
        check: check_wtns,
    },
    Target {
        name: "zkey",
        file: "circuit.zkey",
        shape: Shape::Container,
        bytes_per_byte: 1,
        parse: |bytes| {
            outcome(
                Zkey::parse(bytes).and_then(|key| key.coefficients().try_for_each(|entry| entry.map(drop))),
            )
        },
        check: check_zkey,
    },
    Target {
        name: "proof-json",
        file: "proof.json",
        shape: Shape::Text,
        bytes_per_byte: 4,
        parse: |bytes| outcome(ProofJson::from_json(bytes)),
        check: check_proof,
    },
    Target {
        name: "public-json",
        file: "public.json",
        shape: Shape::Text,
        bytes_per_byte: 12,
        parse: |bytes| outcome(public_from_json(bytes)),
        check: check_public,
    },
    Target {
        name: "vkey-json",
        file: "vkey.json",
        shape: Shape::Text,
        bytes_per_byte: 24,
        parse: |bytes| outcome(VkJson::from_json(bytes)),
        check: check_vkey,
    },
    Target {
        name: "sym",
        file: "circuit.sym",
        shape: Shape::Text,
        bytes_per_byte: 8,
        parse: |bytes| outcome(Sym::parse(bytes)),
        check: check_sym,
    },
];

/// The target of a name.
pub fn find(name: &str) -> Option<&'static Target> {
    ALL.iter().find(|target| target.name == name)
}

/// Parses one input, and checks it if it is accepted: for fuzzers that bring their own mutants.
///
/// # Panics
///
/// If a promise is broken, or there is no target of that name.
pub fn hold(name: &str, input: &[u8]) {
    let target = find(name).unwrap_or_else(|| panic!("no target {name}"));
    if (target.parse)(input).is_ok() {
        (target.check)(input);
    }
}

fn outcome<T>(result: Result<T, FormatError>) -> Outcome {
    result.map(drop).map_err(|error| {
        let text = error.to_string();
        assert!(text.len() < 2000, "an error text of {} bytes", text.len());
        (error.code(), text)
    })
}

fn accepted<T>(result: Result<T, FormatError>) -> T {
    result.unwrap_or_else(|error| panic!("accepted before, and now: {error}"))
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
    if let Some(labels) = system.wire_to_label() {
        assert_eq!(labels.count(), system.wires as usize);
    }
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
