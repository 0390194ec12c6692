//! Witnesses: what snarkjs wrote is read, and what is broken is refused without saying any value.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::{LARGE, WITH_KEY, bn254, fixture, patched, section, with_section_twice, without_section};
use proofkeep_formats::field::R_LE;
use proofkeep_formats::r1cs;
use proofkeep_formats::wtns::{Witness, write};

fn code(bytes: &[u8]) -> &'static str {
    match Witness::parse(bytes) {
        Ok(_) => "accepted",
        Err(error) => error.code(),
    }
}

#[test]
fn fixtures_have_a_value_for_each_wire_and_come_out_as_they_went_in() {
    for name in WITH_KEY.iter().chain(&LARGE) {
        let bytes = fixture(name, "witness.wtns");
        let witness = Witness::parse(&bytes).unwrap();
        let header = r1cs::header(&fixture(name, "circuit.r1cs")).unwrap();
        assert_eq!(witness.len(), header.wires as usize, "{name}");
        assert_eq!(write(witness.values()), bytes, "{name}");
        assert_eq!(witness.bytes().len(), 32 * witness.len());
    }
}

#[test]
fn the_multiplier_knows_thirty_three() {
    let bytes = fixture("multiplier", "witness.wtns");
    let witness = Witness::parse(&bytes).unwrap();
    let small: Vec<u8> = (0..witness.len()).map(|wire| witness.get(wire)[0]).collect();
    assert_eq!(small, [1, 33, 3, 11]);
}

#[test]
fn debug_output_shows_no_value() {
    let mut secret = [0; 32];
    secret[..2].copy_from_slice(&[0xad, 0x0b]);
    let mut one = [0; 32];
    one[0] = 1;
    let bytes = write(&[one, secret]);
    assert_eq!(
        format!("{:?}", Witness::parse(&bytes).unwrap()),
        "Witness { len: 2, .. }"
    );
}

#[test]
fn every_cut_is_refused() {
    let bytes = fixture("multiplier", "witness.wtns");
    for length in 0..bytes.len() {
        assert_eq!(code(&bytes[..length]), "truncated", "cut at {length}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert_eq!(code(&longer), "bad-count");
}

#[test]
fn counts_and_lengths_must_agree() {
    let bytes = fixture("arrays", "witness.wtns");
    for count in [0, 1, 15, 17, u32::MAX] {
        assert_eq!(
            code(&patched(&bytes, 1, 36, &u32::to_le_bytes(count))),
            "bad-count",
            "{count}"
        );
    }
    for id in 1..=2 {
        let mut broken = bytes.clone();
        let (at, _) = section(&bytes, id);
        broken[at - 8..at].copy_from_slice(&(5_u64 << 30).to_le_bytes());
        assert_eq!(code(&broken), "truncated");
        assert_eq!(code(&without_section(&bytes, id)), "section-missing");
        assert_eq!(code(&with_section_twice(&bytes, id)), "section-twice");
    }
    assert_eq!(code(&write(&[])), "bad-witness");
}

#[test]
fn another_prime_is_named() {
    let error = Witness::parse(&patched(&fixture("multiplier", "witness.wtns"), 1, 4, &bn254())).unwrap_err();
    assert_eq!(error.code(), "wrong-prime");
    assert!(error.to_string().contains("BN254"), "{error}");
}

#[test]
fn values_must_be_canonical_and_the_first_one() {
    let bytes = fixture("multiplier", "witness.wtns");
    let broken = patched(&bytes, 2, 64, &R_LE);
    let error = Witness::parse(&broken).unwrap_err();
    assert_eq!(error.code(), "non-canonical");
    assert!(error.to_string().contains("value 2"), "{error}");
    assert_eq!(code(&patched(&bytes, 2, 0, &[0; 32])), "bad-witness");
}
