//! Proving keys: what snarkjs's ceremony wrote is read, what the writer writes is read, and what is broken is refused.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::io::{Cursor, ErrorKind};

use common::{WITH_KEY, bn254, fixture, patched, section, with_section_twice, without_section};
use proofkeep_formats::field::{Q_LE, R_LE};
use proofkeep_formats::r1cs::R1cs;
use proofkeep_formats::zkey::{
    self, ContributionKind, KeyPoints, PointSection, Zkey, ZkeyHeader, ZkeyWriter,
};

fn code(bytes: &[u8]) -> &'static str {
    let walk = |zkey: Zkey<'_>| zkey.coefficients().try_for_each(|entry| entry.map(drop));
    match Zkey::parse(bytes).and_then(walk) {
        Ok(()) => "accepted",
        Err(error) => error.code(),
    }
}

/// Offsets in section 2.
const WIRES: usize = 88;
const PUBLIC: usize = 92;
const DOMAIN: usize = 96;

#[test]
fn keys_of_the_fixtures_belong_to_their_circuits() {
    for name in WITH_KEY {
        let (r1cs, zkey) = (fixture(name, "circuit.r1cs"), fixture(name, "circuit.zkey"));
        let (r1cs, key) = (R1cs::parse(&r1cs).unwrap(), Zkey::parse(&zkey).unwrap());
        let expected = ZkeyHeader {
            wires: r1cs.wires,
            public: r1cs.public(),
            domain: 1 << r1cs.domain_log2(),
            log2: r1cs.domain_log2(),
        };
        assert_eq!(key.header, expected, "{name}");
        assert_eq!(zkey::header(&zkey).unwrap(), expected, "{name}");
        assert!(!key.is_unfinished(), "{name}");

        let [a, b, _] = r1cs.check().unwrap();
        // A has a row for the constant and each public signal besides the constraints.
        let inputs = u64::from(r1cs.public()) + 1;
        assert_eq!(key.coefficients().len() as u64, a + b + inputs, "{name}");
        let last = key.coefficients().last().unwrap().unwrap();
        assert_eq!(
            (last.matrix, last.row, last.wire),
            (0, r1cs.constraints + r1cs.public(), r1cs.public())
        );
    }
}

#[test]
fn the_ceremony_is_read() {
    let bytes = fixture("poseidon2", "circuit.zkey");
    let key = Zkey::parse(&bytes).unwrap();
    let ceremony = key.contributions.clone().unwrap();
    assert_ne!(ceremony.circuit_hash, &[0; 64]);
    let [first, beacon] = ceremony.list.as_slice() else {
        panic!("{:?}", ceremony.list.len())
    };
    assert_eq!(first.name.as_deref(), Some("proofkeep fixture"));
    assert_eq!(first.kind, ContributionKind::Contribution);
    assert_eq!(beacon.name.as_deref(), Some("proofkeep beacon"));
    let hash: Vec<u8> = (1..=32).collect();
    assert_eq!(
        beacon.kind,
        ContributionKind::Beacon {
            hash: &hash,
            iterations_log2: 10
        }
    );
    assert_eq!(beacon.delta_after, key.delta1, "the last step made the key's δ");
}

#[test]
fn a_slice_of_the_coefficients_is_what_a_walk_passes() {
    let bytes = fixture("filled", "circuit.zkey");
    let key = Zkey::parse(&bytes).unwrap();
    let walked: Vec<_> = key.coefficients().map(Result::unwrap).collect();
    let skipped: Vec<_> = key
        .coefficients()
        .skip(100)
        .step_by(7)
        .map(Result::unwrap)
        .collect();
    assert_eq!(
        skipped,
        walked[100..].iter().step_by(7).copied().collect::<Vec<_>>()
    );
    assert!(key.coefficients().nth(walked.len()).is_none());
}

#[test]
fn every_cut_is_refused() {
    let bytes = fixture("multiplier", "circuit.zkey");
    for length in 0..bytes.len() {
        assert_eq!(code(&bytes[..length]), "truncated", "cut at {length}");
    }
}

#[test]
fn sections_must_be_there_once_and_have_their_length() {
    let bytes = fixture("arrays", "circuit.zkey");
    for id in 1..=9 {
        assert_eq!(code(&without_section(&bytes, id)), "section-missing", "{id}");
    }
    assert_eq!(code(&without_section(&bytes, 10)), "accepted");
    for id in 1..=10 {
        assert_eq!(code(&with_section_twice(&bytes, id)), "section-twice", "{id}");
        let mut broken = bytes.clone();
        let (at, _) = section(&bytes, id);
        broken[at - 8..at].copy_from_slice(&(5_u64 << 30).to_le_bytes());
        assert_eq!(code(&broken), "truncated", "{id}");
    }
    for id in 3..=9 {
        let (at, length) = section(&bytes, id);
        let mut shorter = bytes.clone();
        shorter[at - 8..at].copy_from_slice(&(length as u64 - 1).to_le_bytes());
        shorter.remove(at + length - 1);
        assert_eq!(code(&shorter), "bad-count", "{id}");
    }
}

#[test]
fn counts_and_lengths_must_agree() {
    let bytes = fixture("arrays", "circuit.zkey");
    for (offset, value) in [
        (WIRES, 0),
        (WIRES, 15),
        (WIRES, 17),
        (WIRES, u32::MAX),
        (PUBLIC, 3),
        (PUBLIC, 16),
        (PUBLIC, u32::MAX),
        (DOMAIN, 0),
        (DOMAIN, 1),
        (DOMAIN, 15),
        (DOMAIN, 32),
        (DOMAIN, 1 << 31),
        (DOMAIN, u32::MAX),
    ] {
        assert_eq!(
            code(&patched(&bytes, 2, offset, &value.to_le_bytes())),
            "bad-count",
            "{value} at {offset}"
        );
    }
    for count in [0, u32::MAX] {
        assert_eq!(code(&patched(&bytes, 4, 0, &count.to_le_bytes())), "bad-count");
    }
    assert_eq!(code(&patched(&bytes, 10, 64, &3_u32.to_le_bytes())), "truncated");
    assert_eq!(
        code(&patched(&bytes, 10, 64, &u32::MAX.to_le_bytes())),
        "truncated"
    );
    assert_eq!(code(&patched(&bytes, 10, 64, &1_u32.to_le_bytes())), "bad-count");
}

#[test]
fn other_curves_and_proof_systems_are_named() {
    let bytes = fixture("multiplier", "circuit.zkey");
    let error = Zkey::parse(&patched(&bytes, 2, 56, &bn254())).unwrap_err();
    assert_eq!(error.code(), "wrong-prime");
    assert!(error.to_string().contains("BN254"), "{error}");
    assert_eq!(code(&patched(&bytes, 2, 4, &[1; 48])), "wrong-prime");
    for (protocol, name) in [(2_u32, "plonk"), (10, "fflonk"), (77, "77")] {
        let error = Zkey::parse(&patched(&bytes, 1, 0, &protocol.to_le_bytes())).unwrap_err();
        assert_eq!(error.code(), "not-groth16");
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn entries_of_the_matrices_must_be_in_range() {
    let bytes = fixture("multiplier", "circuit.zkey");
    for (offset, value) in [(4, 2_u32), (8, 4), (12, 4), (12, u32::MAX)] {
        assert_eq!(
            code(&patched(&bytes, 4, offset, &value.to_le_bytes())),
            "out-of-range",
            "{value} at {offset}"
        );
    }
    let error = Zkey::parse(&patched(&bytes, 4, 16 + 44, &R_LE))
        .unwrap()
        .coefficients()
        .find_map(Result::err)
        .unwrap();
    assert_eq!(
        (error.code(), error.to_string().contains("entry 1 ")),
        ("non-canonical", true),
        "{error}"
    );
}

#[test]
fn coordinates_of_the_verification_key_must_be_canonical() {
    let bytes = fixture("multiplier", "circuit.zkey");
    assert_eq!(code(&patched(&bytes, 2, 100, &Q_LE)), "non-canonical");
    assert_eq!(
        code(&patched(&bytes, 2, 100 + 3 * 96 + 3 * 192 - 48, &[0xff; 48])),
        "non-canonical"
    );
    assert_eq!(code(&patched(&bytes, 3, 96, &Q_LE)), "non-canonical");
}

#[test]
fn a_key_without_a_contribution_is_unfinished() {
    let bytes = fixture("multiplier", "circuit.zkey");
    let gamma = 100 + 2 * 96 + 192;
    let (at, _) = section(&bytes, 2);
    let key = patched(&bytes, 2, gamma + 192 + 96, &bytes[at + gamma..at + gamma + 192]);
    assert!(Zkey::parse(&key).unwrap().is_unfinished());
}

#[test]
fn broken_contributions_are_refused() {
    let bytes = fixture("multiplier", "circuit.zkey");
    // Circuit hash, count, then of the first contribution four points and the transcript.
    let kind = 68 + 3 * 96 + 192 + 64;
    assert_eq!(
        code(&patched(&bytes, 10, kind, &2_u32.to_le_bytes())),
        "out-of-range"
    );
    assert_eq!(
        code(&patched(&bytes, 10, kind + 4, &u32::MAX.to_le_bytes())),
        "truncated"
    );
    // Tag and length of the name.
    assert_eq!(code(&patched(&bytes, 10, kind + 8, &[4])), "bad-count");
    assert_eq!(code(&patched(&bytes, 10, kind + 8, &[0])), "bad-count");
    assert_eq!(code(&patched(&bytes, 10, kind + 9, &[0xff])), "truncated");
}

/// Writes the key that was read, and leaves its ceremony out.
fn rewrite(key: &Zkey<'_>, hash: &[u8; 64]) -> Vec<u8> {
    let points = KeyPoints {
        alpha1: *key.alpha1,
        beta1: *key.beta1,
        beta2: *key.beta2,
        gamma2: *key.gamma2,
        delta1: *key.delta1,
        delta2: *key.delta2,
    };
    let mut writer = ZkeyWriter::new(Cursor::new(Vec::new()), key.header, &points).unwrap();
    writer
        .coefficients(|sink| {
            key.coefficients()
                .map(Result::unwrap)
                .try_for_each(|e| sink.push(e.matrix, e.row, e.wire, e.value))
        })
        .unwrap();
    let rest = [
        (PointSection::Ic, key.ic),
        (PointSection::H, key.h),
        (PointSection::C, key.c),
        (PointSection::A, key.a),
        (PointSection::B1, key.b1),
        (PointSection::B2, key.b2),
    ];
    for (section, bytes) in rest {
        writer
            .points(section, |out| {
                bytes.chunks(1000).try_for_each(|chunk| out.write_all(chunk))
            })
            .unwrap();
    }
    writer.finish(hash).unwrap().into_inner()
}

#[test]
fn the_writer_writes_what_the_reader_reads() {
    for name in WITH_KEY {
        let bytes = fixture(name, "circuit.zkey");
        let key = Zkey::parse(&bytes).unwrap();
        let written = rewrite(&key, &[7; 64]);
        let again = Zkey::parse(&written).unwrap();
        assert_eq!(again.header, key.header);
        assert_eq!(
            (again.ic, again.a, again.b1, again.b2),
            (key.ic, key.a, key.b1, key.b2),
            "{name}"
        );
        assert_eq!(
            (again.c, again.h, again.delta2),
            (key.c, key.h, key.delta2),
            "{name}"
        );
        assert!(again.coefficients().eq(key.coefficients()), "{name}");
        let ceremony = again.contributions.unwrap();
        assert_eq!((ceremony.circuit_hash, ceremony.list.len()), (&[7; 64], 0));
    }
}

#[test]
fn the_writer_refuses_to_write_a_broken_key() {
    let bytes = fixture("multiplier", "circuit.zkey");
    let key = Zkey::parse(&bytes).unwrap();
    let points = KeyPoints {
        alpha1: *key.alpha1,
        beta1: *key.beta1,
        beta2: *key.beta2,
        gamma2: *key.gamma2,
        delta1: *key.delta1,
        delta2: *key.delta2,
    };
    let begun = || ZkeyWriter::new(Cursor::new(Vec::new()), key.header, &points).unwrap();
    let start = || {
        let mut writer = begun();
        writer.coefficients(|_| Ok(())).unwrap();
        writer
    };
    let kind = |result: std::io::Result<()>| result.unwrap_err().kind();

    assert_eq!(
        kind(begun().points(PointSection::Ic, |out| out.write_all(key.ic))),
        ErrorKind::InvalidInput,
        "out of order"
    );
    let short = &key.ic[96..];
    assert_eq!(
        kind(start().points(PointSection::Ic, |out| out.write_all(short))),
        ErrorKind::InvalidInput
    );
    let long = [key.ic, short].concat();
    assert_eq!(
        kind(start().points(PointSection::Ic, |out| out.write_all(&long))),
        ErrorKind::InvalidInput
    );
    assert_eq!(
        start().finish(&[0; 64]).unwrap_err().kind(),
        ErrorKind::InvalidInput,
        "sections left out"
    );
    let header = ZkeyHeader {
        domain: 3,
        ..key.header
    };
    assert!(ZkeyWriter::new(Cursor::new(Vec::new()), header, &points).is_err());
}
