//! Powers of tau: what snarkjs prepared is read, and what is broken is refused.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::{fixture, patched, section, with_section_twice, without_section};
use proofkeep_formats::FormatError;
use proofkeep_formats::ptau::{Basis, ContributionKind, Ptau};

const SECTIONS: [u32; 11] = [1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15];

fn powers() -> Vec<u8> {
    fixture("powers", "pot.ptau")
}

fn refusal(bytes: &[u8]) -> FormatError {
    Ptau::parse(bytes).expect_err("this must be refused")
}

/// The file with another body of section `id`.
fn with_body(bytes: &[u8], id: u32, body: &[u8]) -> Vec<u8> {
    let (at, length) = section(bytes, id);
    let size = (body.len() as u64).to_le_bytes();
    [&bytes[..at - 8], &size, body, &bytes[at + length..]].concat()
}

#[test]
fn what_snarkjs_prepared_is_read() {
    let bytes = powers();
    let powers = Ptau::parse(&bytes).unwrap();
    assert_eq!((powers.power, powers.ceremony_power), (2, 2));
    assert_eq!(
        [
            powers.tau_g1,
            powers.tau_g2,
            powers.alpha_tau_g1,
            powers.beta_tau_g1
        ]
        .map(<[u8]>::len),
        [7 * 96, 4 * 192, 4 * 96, 4 * 96]
    );
    let [first, beacon] = powers.contributions.as_slice() else {
        panic!("{} contributions", powers.contributions.len())
    };
    assert_eq!(first.name.as_deref(), Some("proofkeep fixture"));
    assert_eq!(first.kind, ContributionKind::Contribution);
    assert_eq!(beacon.name.as_deref(), Some("proofkeep beacon"));
    let hash: Vec<u8> = (1..=32).collect();
    let kind = ContributionKind::Beacon {
        hash: &hash,
        iterations_log2: 10,
    };
    assert_eq!(beacon.kind, kind);

    // The basis of the domain of one point is 1, so τ^0 and its multiples.
    assert_eq!(powers.lagrange(Basis::TauG1, 0), Some(&powers.tau_g1[..96]));
    assert_eq!(powers.lagrange(Basis::TauG2, 0), Some(&powers.tau_g2[..192]));
    assert_eq!(
        powers.lagrange(Basis::AlphaTauG1, 0),
        Some(&powers.alpha_tau_g1[..96])
    );
    assert_eq!(
        powers.lagrange(Basis::BetaTauG1, 0),
        Some(&powers.beta_tau_g1[..96])
    );
    assert_eq!(powers.lagrange(Basis::TauG1, 3).unwrap().len(), 8 * 96);
    assert_eq!(powers.lagrange(Basis::TauG1, 4), None);
    assert_eq!(powers.lagrange(Basis::BetaTauG1, 3), None);
    let (at, length) = section(&bytes, 2);
    assert_eq!(
        powers.behind_tau_g1.unwrap()[..],
        bytes[at + length..at + length + 96]
    );
}

#[test]
fn every_cut_is_refused() {
    let bytes = powers();
    for length in 0..bytes.len() {
        assert_eq!(refusal(&bytes[..length]).code(), "truncated", "cut at {length}");
    }
}

#[test]
fn another_curve_is_refused_with_both_names() {
    let q = "30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47";
    let mut header = 32_u32.to_le_bytes().to_vec();
    header.extend(
        (0..32)
            .rev()
            .map(|i| u8::from_str_radix(&q[2 * i..2 * i + 2], 16).unwrap()),
    );
    header.extend([2, 0, 0, 0, 2, 0, 0, 0]);
    let error = refusal(&with_body(&powers(), 1, &header));
    assert_eq!(error.code(), "wrong-prime");
    let text = error.to_string();
    for word in ["BN254", "BLS12-381", "snarkjs powersoftau new bls12-381"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn powers_that_are_not_prepared_are_refused_with_the_command_that_prepares_them() {
    let bytes = powers();
    for id in 12..=15 {
        let error = refusal(&without_section(&bytes, id));
        assert_eq!(error.code(), "ptau-not-prepared", "{id}");
        let text = error.to_string();
        assert!(text.contains("snarkjs powersoftau prepare phase2"), "{text}");
        assert!(text.contains(&format!("section {id}")), "{text}");
    }
    let (at, _) = section(&bytes, 12);
    let error = refusal(&with_body(&bytes, 12, &bytes[at..at + 7 * 96]));
    assert_eq!(error.code(), "ptau-not-prepared");
    assert!(
        error.to_string().contains("snarkjs powersoftau convert"),
        "{error}"
    );
}

#[test]
fn sections_must_be_there_once_and_have_their_length() {
    let bytes = powers();
    for id in 1..=7 {
        assert_eq!(
            refusal(&without_section(&bytes, id)).code(),
            "section-missing",
            "{id}"
        );
    }
    for id in SECTIONS {
        assert_eq!(
            refusal(&with_section_twice(&bytes, id)).code(),
            "section-twice",
            "{id}"
        );
        let (at, length) = section(&bytes, id);
        let mut huge = bytes.clone();
        huge[at - 8..at].copy_from_slice(&(5_u64 << 30).to_le_bytes());
        assert_eq!(refusal(&huge).code(), "truncated", "{id}");
        let longer = [&bytes[at..at + length], &[0][..]].concat();
        assert_eq!(
            refusal(&with_body(&bytes, id, &longer)).code(),
            "bad-count",
            "{id}"
        );
        let shorter = refusal(&with_body(&bytes, id, &bytes[at..at + length - 1]));
        assert!(
            ["bad-count", "truncated"].contains(&shorter.code()),
            "{id}: {shorter}"
        );
    }
}

#[test]
fn counts_that_no_file_can_have_are_refused() {
    let bytes = powers();
    for (offset, value) in [
        (52, 0),
        (52, 1),
        (52, 3),
        (52, 32),
        (52, u32::MAX),
        (56, 0),
        (56, 1),
    ] {
        let broken = patched(&bytes, 1, offset, &value.to_le_bytes());
        assert_eq!(refusal(&broken).code(), "bad-count", "{value} at {offset}");
    }
    let cut_from_a_larger_one = patched(&bytes, 1, 56, &28_u32.to_le_bytes());
    assert_eq!(Ptau::parse(&cut_from_a_larger_one).unwrap().ceremony_power, 28);
    for (count, code) in [
        (0_u32, "bad-count"),
        (1, "bad-count"),
        (3, "truncated"),
        (u32::MAX, "truncated"),
    ] {
        let broken = patched(&bytes, 7, 0, &count.to_le_bytes());
        assert_eq!(refusal(&broken).code(), code, "{count} contributions");
    }
    // The type of the first contribution.
    let at = 4 + 9 * 96 + 5 * 192 + 216 + 64;
    assert_eq!(refusal(&patched(&bytes, 7, at, &[2])).code(), "out-of-range");
}
