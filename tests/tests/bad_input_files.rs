//! Files that are broken: each is refused with a code and a sentence that says what was expected and what was found, by
//! HTTP and on the command line, and nothing of it stays.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod bad_input_support;

use std::path::{Path, PathBuf};

use bad_input_support::file::{File, outside_g1, outside_g2};
use bad_input_support::{Refused, Target, refused_command};
use proofkeep_tests::fixtures;
use serde_json::json;

type Case = (&'static str, Vec<u8>, &'static str, &'static [&'static str]);

/// What can be wrong with each container; `body` is a section that has a length to lie about.
fn broken(name: &str, file: &str, header: u32, body: u32) -> Vec<Case> {
    let fixture = || File::fixture(name, file);
    let mut other = fixtures::read(name, file);
    other[..4].copy_from_slice(b"\x7fELF");
    let mut version = fixtures::read(name, file);
    version[4..8].copy_from_slice(&99_u32.to_le_bytes());
    vec![
        (
            "another prime",
            fixture().of_bn254(),
            "wrong-prime",
            &["BN254", "BLS12-381", "--prime bls12381"],
        ),
        ("another file", other, "bad-magic", &["must begin with", "ELF"]),
        ("another version", version, "bad-version", &["99", "not known"]),
        (
            "cut short",
            fixture().cut(7),
            "truncated",
            &["bytes", "left", "cut short"],
        ),
        ("empty", Vec::new(), "truncated", &["cut short"]),
        (
            "a header alone",
            fixtures::read(name, file)[..12].to_vec(),
            "truncated",
            &["cut short"],
        ),
        (
            "no header",
            fixture().without(header),
            "section-missing",
            &["section", "missing"],
        ),
        (
            "no body",
            fixture().without(body),
            "section-missing",
            &["section", "missing"],
        ),
        (
            "a section twice",
            fixture().twice(body),
            "section-twice",
            &["occurs twice"],
        ),
        (
            "a section of 5 GiB",
            fixture().of_five_gibibytes(body),
            "truncated",
            &["5368709120", "only"],
        ),
        (
            "too many sections",
            fixture().of_many_sections(),
            "bad-count",
            &["sections", "4294967295"],
        ),
    ]
}

fn witnesses() -> Vec<Case> {
    let fixture = || File::fixture("multiplier", "witness.wtns");
    let mut cases = broken("multiplier", "witness.wtns", 1, 2);
    let not_below_r = |file: &mut File| file.section(2)[64..96].fill(0xff);
    cases.extend([
        (
            "more values than there are",
            fixture().with(|file| file.section(1)[36] = 200),
            "bad-count",
            &["must be"][..],
        ),
        (
            "2^32 - 1 values",
            fixture().with(|file| file.section(1)[36..40].fill(0xff)),
            "bad-count",
            &["must be"],
        ),
        (
            "a value of r or more",
            fixture().with(not_below_r),
            "non-canonical",
            &["2", "below the modulus"],
        ),
        (
            "no constant",
            fixture().with(|file| file.section(2)[0] = 2),
            "bad-witness",
            &["must be 1"],
        ),
        (
            "another circuit's",
            fixtures::read("poseidon2", "witness.wtns"),
            "witness-length",
            &["4", "another circuit"],
        ),
    ]);
    cases
}

fn constraints() -> Vec<Case> {
    let fixture = || File::fixture("multiplier", "circuit.r1cs");
    let mut cases = broken("multiplier", "circuit.r1cs", 1, 2);
    // The first constraint's A: a count, then wire and coefficient.
    let wire = |file: &mut File| file.section(2)[4..8].copy_from_slice(&77_u32.to_le_bytes());
    let coefficient = |file: &mut File| file.section(2)[8..40].fill(0xff);
    let terms = |file: &mut File| file.section(2)[..4].fill(0xff);
    cases.extend([
        (
            "a wire that isn't there",
            fixture().with(wire),
            "out-of-range",
            &["wire", "77", "below 4"][..],
        ),
        (
            "a coefficient of r or more",
            fixture().with(coefficient),
            "non-canonical",
            &["below the modulus"],
        ),
        (
            "2^32 - 1 terms",
            fixture().with(terms),
            "truncated",
            &["needs", "only"],
        ),
        (
            "custom gates",
            fixture().with(|file| file.sections.push((4, vec![1, 0, 0, 0]))),
            "custom-gates",
            &[],
        ),
    ]);
    cases
}

fn keys() -> Vec<Case> {
    let fixture = || File::fixture("multiplier", "circuit.zkey");
    let mut cases = broken("multiplier", "circuit.zkey", 2, 9);
    let not_groth16 = |file: &mut File| *file.section(1) = 2_u32.to_le_bytes().to_vec();
    let point = |id: u32, at: usize, point: Vec<u8>| {
        move |file: &mut File| file.section(id)[at..at + point.len()].copy_from_slice(&point)
    };
    cases.extend([
        (
            "a PLONK key",
            fixture().with(not_groth16),
            "not-groth16",
            &["groth16"][..],
        ),
        (
            "an unfinished setup",
            fixture().unfinished(),
            "setup-unfinished",
            &["γ₂", "δ₂", "contribute", "forge"],
        ),
        (
            "a point off the curve",
            fixture().with(|file| file.section(9)[0] ^= 1),
            "point-off-curve",
            &["section 9", "not on the curve"],
        ),
        (
            "a point outside of G1",
            fixture().with(point(9, 0, outside_g1())),
            "point-outside-subgroup",
            &["section 9", "subgroup"],
        ),
        (
            "a point outside of G2",
            fixture().with(point(7, 192 * 3, outside_g2())),
            "point-outside-subgroup",
            &["section 7", "subgroup"],
        ),
        (
            "a coordinate of q or more",
            fixture().with(|file| file.section(9)[..48].fill(0xff)),
            "non-canonical",
            &["section 9"],
        ),
        (
            "another circuit's",
            fixtures::read("filled", "circuit.zkey"),
            "circuit-mismatch",
            &["another circuit", "wires"],
        ),
    ]);
    cases
}

/// Of several files in one request, the one that is meant.
#[track_caller]
fn names_what_is_broken(refused: &Refused, names: &[&str]) {
    assert!(
        names.iter().any(|name| refused.detail.contains(name)),
        "it names none of {names:?}: {}",
        refused.detail
    );
}

#[test]
fn a_broken_witness_is_refused_over_http() {
    let target = Target::with_circuit("multiplier", &[]);
    for (name, bytes, code, parts) in witnesses() {
        println!("{name}");
        let refused = target.refused_input("multiplier", &json!({ "witness": target.upload(&bytes) }));
        refused.says(code, parts);
        names_what_is_broken(&refused, &["witness", ".wtns"]);
    }
    target.check_unharmed();
}

#[test]
fn a_broken_constraint_system_is_refused_over_http() {
    let target = Target::start(&[]);
    let key = fixtures::read("multiplier", "circuit.zkey");
    for (name, bytes, code, parts) in constraints() {
        println!("{name}");
        let refused = target.refused_circuit(&[("zkey", &key), ("r1cs", &bytes)]);
        refused.says(code, parts);
        names_what_is_broken(&refused, &["r1cs"]);
    }
    target.check_unharmed();
}

#[test]
fn a_broken_key_is_refused_over_http() {
    let target = Target::start(&[]);
    let constraints = fixtures::read("multiplier", "circuit.r1cs");
    for (name, bytes, code, parts) in keys() {
        println!("{name}");
        let refused = target.refused_circuit(&[("zkey", &bytes), ("r1cs", &constraints)]);
        refused.says(code, parts);
        names_what_is_broken(&refused, &["zkey", "the key", "setup"]);
    }
    target.check_unharmed();
}

/// Files in a directory.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Runs a command that would write two more files, and holds that it wrote none.
    fn refused(&self, arguments: &[&Path], code: &str, parts: &[&str]) {
        refused_command(arguments).says(code, parts);
        for output in ["proof.json", "public.json"] {
            assert!(!self.0.path().join(output).exists(), "{output} was written");
        }
    }
}

#[test]
fn broken_files_are_refused_on_the_command_line() {
    let files = Files::new();
    let key = files.put("good.zkey", &fixtures::read("multiplier", "circuit.zkey"));
    let constraints_file = files.put("good.r1cs", &fixtures::read("multiplier", "circuit.r1cs"));
    let witness = files.put("good.wtns", &fixtures::read("multiplier", "witness.wtns"));
    let (proof, public) = (
        files.0.path().join("proof.json"),
        files.0.path().join("public.json"),
    );
    let path = Path::new;
    for (name, bytes, code, parts) in witnesses() {
        println!("witness: {name}");
        let bad = files.put("bad.wtns", &bytes);
        if name != "another circuit's" {
            files.refused(
                &[path("groth16"), path("prove"), &key, &bad, &proof, &public],
                code,
                parts,
            );
        }
        files.refused(
            &[path("wtns"), path("check"), &constraints_file, &bad],
            code,
            parts,
        );
    }
    for (name, bytes, code, parts) in constraints() {
        println!("constraints: {name}");
        let bad = files.put("bad.r1cs", &bytes);
        files.refused(&[path("r1cs"), path("info"), &bad], code, parts);
        let with = [
            path("groth16"),
            path("prove"),
            &key,
            &witness,
            &proof,
            &public,
            path("--r1cs"),
            &bad,
        ];
        files.refused(&with, code, parts);
    }
    for (name, bytes, code, parts) in keys() {
        println!("key: {name}");
        // A key that doesn't fit is known by its constraints only; a point is known bad once points are checked.
        if code.starts_with("point-") || name == "a coordinate of q or more" {
            continue;
        }
        let bad = files.put("bad.zkey", &bytes);
        let with = [
            path("groth16"),
            path("prove"),
            &bad,
            &witness,
            &proof,
            &public,
            path("--r1cs"),
            &constraints_file,
        ];
        files.refused(&with, code, parts);
    }
}
