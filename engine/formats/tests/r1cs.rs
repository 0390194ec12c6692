//! Constraint systems: what circom wrote is read, and what is broken is refused by name.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::{LARGE, WITH_KEY, bn254, fixture, patched, section, with_section_twice, without_section};
use proofkeep_formats::field::R_LE;
use proofkeep_formats::r1cs::{self, R1cs, R1csBuilder};

fn code(bytes: &[u8]) -> &'static str {
    match R1cs::parse(bytes).and_then(|r1cs| r1cs.check()) {
        Ok(_) => "accepted",
        Err(error) => error.code(),
    }
}

fn number(n: u8) -> [u8; 32] {
    let mut value = [0; 32];
    value[0] = n;
    value
}

#[test]
fn counts_of_the_fixtures() {
    // Name, wires, outputs, public inputs, private inputs, constraints, log2 of the domain.
    for (name, counts) in [
        ("multiplier", [4, 1, 1, 1, 1, 2]),
        ("arrays", [16, 1, 3, 6, 6, 4]),
        ("filled", [256, 1, 1, 1, 253, 8]),
        ("poseidon2", [520, 1, 0, 2, 517, 10]),
        ("sha256_rounds4", [1353, 8, 0, 16, 1744, 11]),
        ("sha256_rounds16", [3801, 8, 0, 16, 5368, 13]),
        ("sha256", [18467, 2, 0, 32, 27866, 15]),
    ] {
        let bytes = fixture(name, "circuit.r1cs");
        let r1cs = R1cs::parse(&bytes).unwrap();
        let found = [
            r1cs.wires,
            r1cs.outputs,
            r1cs.public_inputs,
            r1cs.private_inputs,
            r1cs.constraints,
            r1cs.domain_log2(),
        ];
        assert_eq!(found, counts, "{name}");
        assert_eq!(r1cs::header(&bytes).unwrap(), *r1cs.header(), "{name}");
        assert_eq!(r1cs.constraints().count(), r1cs.constraints as usize, "{name}");
        assert_eq!(r1cs.wire_to_label().len(), r1cs.wires as usize, "{name}");
        assert!(r1cs.check().unwrap().iter().all(|terms| *terms > 0), "{name}");
    }
}

#[test]
fn the_multiplier_is_minus_a_times_b_is_minus_c() {
    let bytes = fixture("multiplier", "circuit.r1cs");
    let r1cs = R1cs::parse(&bytes).unwrap();
    let [a, b, c] = r1cs.constraints().next().unwrap().unwrap();
    let mut minus_one = R_LE;
    minus_one[0] = 0;
    assert_eq!(a.iter().collect::<Vec<_>>(), [(2, &minus_one)]);
    assert_eq!(b.iter().collect::<Vec<_>>(), [(3, &number(1))]);
    assert_eq!(c.iter().collect::<Vec<_>>(), [(1, &minus_one)]);
}

#[test]
fn the_builder_writes_what_the_reader_reads() {
    let mut builder = R1csBuilder::new(5, 1, 1, 1);
    builder.constraint(
        &[(2, number(1)), (0, number(7))],
        &[(3, number(2))],
        &[(1, number(1))],
    );
    builder.constraint(&[], &[], &[]);
    let bytes = builder.build();
    let r1cs = R1cs::parse(&bytes).unwrap();
    assert_eq!(
        (r1cs.wires, r1cs.public(), r1cs.constraints, r1cs.domain_log2()),
        (5, 2, 2, 3)
    );
    assert_eq!(r1cs.check().unwrap(), [2, 1, 1]);
    let [a, b, _] = r1cs.constraints().next().unwrap().unwrap();
    assert_eq!(a.into_iter().last(), Some((0, &number(7))));
    assert!(!b.is_empty());
    assert_eq!(r1cs.wire_to_label().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

#[test]
fn an_empty_circuit_has_a_domain_of_two() {
    let bytes = R1csBuilder::new(1, 0, 0, 0).build();
    assert_eq!(R1cs::parse(&bytes).unwrap().domain_log2(), 1);
}

#[test]
fn another_prime_is_named() {
    let bytes = patched(&fixture("multiplier", "circuit.r1cs"), 1, 4, &bn254());
    let error = R1cs::parse(&bytes).unwrap_err();
    assert_eq!(error.code(), "wrong-prime");
    let text = error.to_string();
    assert!(text.contains("BN254") && text.contains("BLS12-381"), "{text}");
    // A field of another size is no reason to misread what follows.
    assert_eq!(
        code(&patched(
            &fixture("multiplier", "circuit.r1cs"),
            1,
            0,
            &8_u32.to_le_bytes()
        )),
        "wrong-prime"
    );
    assert_eq!(
        code(&patched(&fixture("multiplier", "circuit.r1cs"), 1, 0, &[0xff; 4])),
        "truncated"
    );
}

#[test]
fn every_cut_is_refused() {
    for name in ["multiplier", "arrays"] {
        let bytes = fixture(name, "circuit.r1cs");
        for length in 0..bytes.len() {
            assert_eq!(code(&bytes[..length]), "truncated", "{name} cut at {length}");
        }
    }
}

#[test]
fn a_length_of_five_gibibytes_is_refused() {
    let bytes = fixture("multiplier", "circuit.r1cs");
    for id in 1..=3 {
        let mut broken = bytes.clone();
        let (at, _) = section(&bytes, id);
        broken[at - 8..at].copy_from_slice(&(5_u64 << 30).to_le_bytes());
        assert_eq!(code(&broken), "truncated");
    }
}

#[test]
fn sections_must_be_there_once() {
    let bytes = fixture("arrays", "circuit.r1cs");
    for id in [1, 2, 3] {
        assert_eq!(code(&without_section(&bytes, id)), "section-missing");
    }
    for id in [1, 2, 3] {
        assert_eq!(code(&with_section_twice(&bytes, id)), "section-twice");
    }
}

#[test]
fn counts_past_the_bytes_are_refused() {
    let bytes = fixture("arrays", "circuit.r1cs");
    let wires = 36;
    let (outputs, constraints) = (wires + 4, wires + 24);
    for (offset, value, expected) in [
        (wires, u32::MAX, "bad-count"),
        (wires, 3, "bad-count"),
        (wires, 0, "bad-count"),
        (outputs, u32::MAX, "bad-count"),
        (outputs + 4, u32::MAX, "bad-count"),
        (constraints, u32::MAX, "truncated"),
        (constraints, 7, "truncated"),
        (constraints, 5, "bad-count"),
    ] {
        let broken = patched(&bytes, 1, offset, &u32::to_le_bytes(value));
        assert_eq!(code(&broken), expected, "{value} at {offset}");
    }
    // The number of terms in the first linear combination.
    assert_eq!(code(&patched(&bytes, 2, 0, &[0xff; 4])), "truncated");
    assert_eq!(code(&patched(&bytes, 2, 0, &3_u32.to_le_bytes())), "truncated");
}

#[test]
fn terms_must_name_a_wire_and_a_canonical_coefficient() {
    let bytes = fixture("multiplier", "circuit.r1cs");
    assert_eq!(code(&patched(&bytes, 2, 4, &4_u32.to_le_bytes())), "out-of-range");
    assert_eq!(code(&patched(&bytes, 2, 8, &R_LE)), "non-canonical");
    assert_eq!(code(&patched(&bytes, 2, 8, &[0xff; 32])), "non-canonical");
    let broken = patched(&bytes, 2, 8, &R_LE);
    let r1cs = R1cs::parse(&broken).unwrap();
    let mut constraints = r1cs.constraints();
    assert!(constraints.next().unwrap().is_err());
    assert!(constraints.next().is_none(), "nothing follows an error");
}

#[test]
fn custom_gates_are_refused() {
    let mut bytes = fixture("multiplier", "circuit.r1cs");
    bytes.extend_from_slice(&4_u32.to_le_bytes());
    bytes.extend_from_slice(&8_u64.to_le_bytes());
    bytes.extend_from_slice(&[1, 0, 0, 0, b'g', 0, 0, 0]);
    bytes[8] += 1;
    assert_eq!(code(&bytes), "custom-gates");
}

#[test]
fn other_files_are_refused_by_their_magic() {
    for (file, name) in [("witness.wtns", "wtns"), ("circuit.zkey", "zkey")] {
        let error = R1cs::parse(&fixture("multiplier", file)).unwrap_err();
        assert_eq!(error.code(), "bad-magic");
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn all_fixtures_are_listed_here() {
    for name in WITH_KEY.iter().chain(&LARGE) {
        assert_eq!(code(&fixture(name, "circuit.r1cs")), "accepted", "{name}");
    }
}
