//! Keys in snarkjs's form: snarkjs's own ceremony, our setup, and keys that must be refused.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use common::*;
use proofkeep_formats::json::{ProofJson, VkJson, public_from_json};
use proofkeep_formats::r1cs::R1cs;
use proofkeep_formats::wtns;
use proofkeep_formats::zkey::Zkey;
use proofkeep_groth16::check::{
    CheckError, PointFault, check_circuit, check_points, check_vk, check_vk_with, point_count,
};
use proofkeep_groth16::key::{KeyError, ProvingKey};
use proofkeep_groth16::matrices::{Matrices, Mismatch};
use proofkeep_groth16::proof::{Proof, ProofError};
use proofkeep_groth16::setup::{SetupError, insecure_setup};
use proofkeep_groth16::stages::Prover;
use proofkeep_groth16::verify::{VerifyError, verify};
use proofkeep_groth16::vk::{Encoding, UnfinishedSetup, VerifyingKey, VkError};
use proofkeep_groth16::witness::{Witness, WitnessError};

/// The circuits whose keys come from snarkjs's own ceremony: domains 2^2, 2^10 and one that is exactly full.
const CEREMONIES: [&str; 3] = ["multiplier", "poseidon2", "filled"];

fn fixture(circuit: &str, file: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/circom")
        .join(circuit)
        .join(file);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn compile(r1cs: &[u8]) -> Matrices {
    Matrices::from_r1cs(&R1cs::parse(r1cs).unwrap()).unwrap()
}

/// Proves with a key and lets both our verifier and the equation of the vk in the key decide.
fn prove(key: &ProvingKey, witness: &Witness<'_>) -> Proof {
    let proof = Prover::new(key, backend(2))
        .assemble_random(&all_pieces(key, witness))
        .unwrap();
    verify(key.vk(), witness.public(key.vk().public()), &proof).unwrap();
    proof
}

#[test]
fn keys_of_snarkjs_ceremonies_are_proved_with_and_verify() {
    for circuit in CEREMONIES {
        let (r1cs, file) = (fixture(circuit, "circuit.r1cs"), fixture(circuit, "circuit.zkey"));
        let zkey = Zkey::parse(&file).unwrap();
        let matrices = compile(&r1cs);
        check_vk(&zkey).unwrap();
        check_circuit(&zkey, &matrices).unwrap();
        check_points(&zkey, 0, &backend(2), &mut go_on).unwrap();

        let wtns = fixture(circuit, "witness.wtns");
        let witness = Witness::from(wtns::Witness::parse(&wtns).unwrap());
        let public = public_from_json(&fixture(circuit, "public.json")).unwrap();
        assert_eq!(witness.public(public.len()), public);
        let vk =
            VerifyingKey::from_json(&VkJson::from_json(&fixture(circuit, "vkey.json")).unwrap()).unwrap();
        let theirs =
            Proof::from_json(&ProofJson::from_json(&fixture(circuit, "proof.json")).unwrap()).unwrap();
        verify(&vk, &public, &theirs).unwrap();

        let with_c = ProvingKey::from_zkey(key_bytes(file.clone()), Some(Arc::new(matrices))).unwrap();
        let without = ProvingKey::from_zkey(key_bytes(file), None).unwrap();
        for key in [&with_c, &without] {
            assert_eq!(*key.vk(), vk);
            verify(&vk, &public, &prove(key, &witness)).unwrap();
        }
    }
}

#[test]
fn keys_from_a_seed_are_proved_with_at_every_domain() {
    for log2 in 2..=12u32 {
        // Once with room in the domain, once exactly full: two public signals and the constant have rows too.
        for constraints in [(1usize << log2) - 3, (1 << log2) * 3 / 4 - 2] {
            let (r1cs, values) = mixed_r1cs(constraints);
            let matrices = compile(&r1cs);
            assert_eq!(matrices.log2(), log2);
            let file = setup(&r1cs, b"seed");
            let zkey = Zkey::parse(&file).unwrap();
            check_vk(&zkey).unwrap();
            check_circuit(&zkey, &matrices).unwrap();
            let witness = Witness::new(&values).unwrap();
            let key = ProvingKey::from_zkey(key_bytes(file), Some(Arc::new(matrices))).unwrap();
            prove(&key, &witness);
        }
    }
}

#[test]
fn points_are_read_in_place_wherever_the_file_lies() {
    let (r1cs, values) = mixed_r1cs(50);
    let witness = Witness::new(&values).unwrap();
    let file = setup(&r1cs, b"place");
    let mut pieces = Vec::new();
    for shift in 0..8 {
        struct Shifted(Vec<u8>, usize);
        impl AsRef<[u8]> for Shifted {
            fn as_ref(&self) -> &[u8] {
                &self.0[self.1..]
            }
        }
        let mut bytes = vec![0; shift];
        bytes.extend_from_slice(&file);
        let key = ProvingKey::from_zkey(Arc::new(Shifted(bytes, shift)), None).unwrap();
        pieces.push(all_pieces(&key, &witness));
    }
    assert!(pieces.iter().all(|others| *others == pieces[0]));
}

#[test]
fn a_mapped_key_is_read_in_place() {
    let (r1cs, values) = mixed_r1cs(300);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), setup(&r1cs, b"map")).unwrap();
    // SAFETY: no one changes the file while it is mapped.
    let map = unsafe { memmap2::Mmap::map(file.as_file()) }.unwrap();
    let key = ProvingKey::from_zkey(Arc::new(map), None).unwrap();
    assert!(format!("{key:?}").contains("root: Snarkjs"));
    prove(&key, &Witness::new(&values).unwrap());
}

#[test]
fn the_same_seed_makes_the_same_key_and_another_another() {
    let (r1cs, _) = mixed_r1cs(20);
    let key = setup(&r1cs, b"one");
    assert_eq!(key, setup(&r1cs, b"one"));
    assert_ne!(key, setup(&r1cs, b"two"));
    let zkey = Zkey::parse(&key).unwrap();
    let contributions = zkey.contributions.as_ref().unwrap();
    assert_eq!(
        (contributions.circuit_hash, contributions.list.len()),
        (&[0; 64], 0)
    );
    check_points(&zkey, 0, &backend(2), &mut go_on).unwrap();

    let out = std::io::Cursor::new(Vec::new());
    let r1cs = R1cs::parse(&r1cs).unwrap();
    let stopped = insecure_setup(
        &r1cs,
        b"one",
        out,
        &backend(1),
        &mut |_, _| ControlFlow::Break(()),
    );
    assert!(matches!(stopped, Err(SetupError::Stopped(_))));
}

#[test]
fn proofs_under_another_key_or_witness_are_rejected() {
    let (r1cs, values) = mixed_r1cs(20);
    let witness = Witness::new(&values).unwrap();
    let [one, two] =
        [b"one", b"two"].map(|seed| ProvingKey::from_zkey(key_bytes(setup(&r1cs, seed)), None).unwrap());
    let proof = prove(&one, &witness);
    assert_eq!(
        verify(two.vk(), witness.public(2), &proof),
        Err(VerifyError::Rejected)
    );
    // This key knows no C, so the witness is not refused beforehand, but its proof holds for nothing.
    let mut bad = values.clone();
    bad[5][0] ^= 1;
    let bad = Witness::new(&bad).unwrap();
    let proof = Prover::new(&one, backend(1))
        .assemble_random(&all_pieces(&one, &bad))
        .unwrap();
    assert_eq!(
        verify(one.vk(), bad.public(2), &proof),
        Err(VerifyError::Rejected)
    );
}

#[test]
fn an_unfinished_setup_is_refused() {
    let (r1cs, _) = mixed_r1cs(5);
    let mut file = setup(&r1cs, b"seed");
    let zkey = Zkey::parse(&file).unwrap();
    let place = |point: &[u8]| point.as_ptr() as usize - file.as_ptr() as usize;
    let (gamma, delta) = (place(zkey.gamma2), place(zkey.delta2));
    file.copy_within(delta..delta + 192, gamma);
    let error = check_vk(&Zkey::parse(&file).unwrap()).unwrap_err();
    assert_eq!(error.code(), "setup-unfinished");
    let error = ProvingKey::from_zkey(key_bytes(file), None).unwrap_err();
    assert!(matches!(error, KeyError::VerifyingKey(VkError::SetupUnfinished)));
}

#[test]
fn a_key_before_its_ceremony_is_used_only_where_it_is_asked_for() {
    let file: &[u8] = include_bytes!("fixtures/multiplier_0000.zkey");
    let zkey = Zkey::parse(file).unwrap();
    let refused = VkError::SetupUnfinished;
    assert!(zkey.is_unfinished());
    assert_eq!(VerifyingKey::from_zkey(&zkey), Err(refused.clone()));
    assert!(check_vk(&zkey).is_err() && check_vk_with(&zkey, UnfinishedSetup::default()).is_err());
    assert!(ProvingKey::from_zkey(key_bytes(file.to_vec()), None).is_err());

    let vk = check_vk_with(&zkey, UnfinishedSetup::Accept).unwrap();
    assert!(vk.is_unfinished());
    let matrices = Arc::new(compile(&fixture("multiplier", "circuit.r1cs")));
    check_circuit(&zkey, &matrices).unwrap();
    check_points(&zkey, 0, &backend(1), &mut go_on).unwrap();
    let bytes = key_bytes(file.to_vec());
    let key = ProvingKey::from_zkey_with(bytes, Some(matrices), UnfinishedSetup::Accept).unwrap();
    let wtns = fixture("multiplier", "witness.wtns");
    prove(&key, &Witness::from(wtns::Witness::parse(&wtns).unwrap()));

    let json = vk.to_json();
    assert_eq!(VerifyingKey::from_json(&json), Err(refused.clone()));
    assert_eq!(
        VerifyingKey::from_json_with(&json, UnfinishedSetup::Accept),
        Ok(vk.clone())
    );
    for encoding in [Encoding::Compressed, Encoding::Uncompressed] {
        assert_eq!(
            VerifyingKey::from_bytes(&vk.to_bytes(encoding), encoding),
            Err(refused.clone())
        );
    }
    // Accepting it accepts nothing else.
    let mut other = json;
    other.gamma2[191] ^= 1;
    other.delta2[191] ^= 1;
    assert!(matches!(
        VerifyingKey::from_json_with(&other, UnfinishedSetup::Accept),
        Err(VkError::NotOnCurve { .. })
    ));
}

#[test]
fn beta_and_delta_must_be_the_same_in_both_groups() {
    let (r1cs, _) = mixed_r1cs(5);
    let file = setup(&r1cs, b"seed");
    let zkey = Zkey::parse(&file).unwrap();
    let place = |point: &[u8]| point.as_ptr() as usize - file.as_ptr() as usize;
    let alpha = place(zkey.alpha1);
    for (name, at) in [("β", place(zkey.beta1)), ("δ", place(zkey.delta1))] {
        let mut bad = file.clone();
        bad.copy_within(alpha..alpha + 96, at);
        match check_vk(&Zkey::parse(&bad).unwrap()) {
            Err(CheckError::Unequal { name: found }) => assert_eq!(found, name),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_key_of_another_circuit_is_refused_and_the_row_named() {
    let (r1cs, _) = mixed_r1cs(21);
    let (other, _) = mixed_r1cs(22);
    let file = setup(&r1cs, b"seed");
    let zkey = Zkey::parse(&file).unwrap();
    let error = check_circuit(&zkey, &compile(&other)).unwrap_err();
    assert!(
        matches!(error, CheckError::Mismatch(Mismatch::Count { what: "wires", .. })),
        "{error}"
    );
    // One coefficient of one row: the same counts.
    let mut builder = proofkeep_formats::r1cs::R1csBuilder::new(25, 2, 0, 22);
    let parsed = R1cs::parse(&r1cs).unwrap();
    for (index, constraint) in parsed.constraints().enumerate() {
        let [a, mut b, c] = constraint
            .unwrap()
            .map(|terms| terms.iter().map(|(w, v)| (w, *v)).collect::<Vec<_>>());
        if index == 7 {
            b[0].1[0] ^= 4;
        }
        builder.constraint(&a, &b, &c);
    }
    let error = check_circuit(&zkey, &compile(&builder.build())).unwrap_err();
    assert_eq!(error.code(), "circuit-mismatch");
    assert!(
        matches!(
            error,
            CheckError::Mismatch(Mismatch::Row {
                matrix: 'B',
                row: 7,
                constraints: 21
            })
        ),
        "{error}"
    );
    let with_other = ProvingKey::from_zkey(key_bytes(file.clone()), Some(Arc::new(compile(&other))));
    assert!(matches!(with_other, Err(KeyError::Points { .. })));
}

#[test]
fn bad_points_are_found_and_named() {
    let (r1cs, _) = mixed_r1cs(30);
    let file = setup(&r1cs, b"seed");
    let zkey = Zkey::parse(&file).unwrap();
    let place = |section: &[u8]| section.as_ptr() as usize - file.as_ptr() as usize;
    let not_zero = |section: &[u8], size: usize| {
        (3..)
            .find(|index| {
                section[index * size..(index + 1) * size]
                    .iter()
                    .any(|byte| *byte != 0)
            })
            .unwrap()
    };
    let sections = [
        ("section 5 (A)", zkey.a, 96),
        ("section 6 (B in G1)", zkey.b1, 96),
        ("section 7 (B in G2)", zkey.b2, 192),
        ("section 8 (C)", zkey.c, 96),
        ("section 9 (H)", zkey.h, 96),
    ];
    for (name, section, size) in sections {
        let index = not_zero(section, size);
        let at = place(section) + index * size;
        for expected in [
            PointFault::NonCanonical,
            PointFault::OffCurve,
            PointFault::OutsideSubgroup,
        ] {
            let mut bad = file.clone();
            match expected {
                PointFault::NonCanonical => bad[at + 40..at + 48].fill(0xff),
                PointFault::OffCurve => bad[at] ^= 1,
                PointFault::OutsideSubgroup => bad[at..at + size].copy_from_slice(&outside_subgroup(size)),
                PointFault::Identity | PointFault::Encoding => unreachable!("keys of this form know neither"),
            }
            let zkey = Zkey::parse(&bad).unwrap();
            match check_points(&zkey, 0, &backend(2), &mut go_on) {
                Err(CheckError::Point {
                    section,
                    index: found,
                    fault,
                }) => {
                    assert_eq!((section, found, fault), (name, index as u64, expected));
                }
                other => panic!("{name}, {expected:?}: {other:?}"),
            }
        }
    }
}

/// A point on the curve but not of order r, as a `.zkey` stores it.
fn outside_subgroup(size: usize) -> Vec<u8> {
    for x in 1u8..=255 {
        let mut encoded = vec![0u8; size / 2];
        encoded[0] = 0x80;
        encoded[size / 2 - 1] = x;
        // SAFETY: the encodings are 48 and 96 bytes long, the points plain limbs.
        unsafe {
            if size == 96 {
                let mut point = blst::blst_p1_affine::default();
                let found =
                    blst::blst_p1_uncompress(&mut point, encoded.as_ptr()) == blst::BLST_ERROR::BLST_SUCCESS;
                if found && !blst::blst_p1_affine_in_g1(&point) {
                    return std::slice::from_raw_parts((&raw const point).cast::<u8>(), size).to_vec();
                }
            } else {
                let mut point = blst::blst_p2_affine::default();
                let found =
                    blst::blst_p2_uncompress(&mut point, encoded.as_ptr()) == blst::BLST_ERROR::BLST_SUCCESS;
                if found && !blst::blst_p2_affine_in_g2(&point) {
                    return std::slice::from_raw_parts((&raw const point).cast::<u8>(), size).to_vec();
                }
            }
        }
    }
    panic!("some x below 256 is on the curve and outside the subgroup");
}

#[test]
fn checking_points_goes_on_where_it_was_stopped() {
    let (r1cs, _) = mixed_r1cs(2000);
    let file = setup(&r1cs, b"seed");
    let zkey = Zkey::parse(&file).unwrap();
    let total = point_count(&zkey);
    let (mut at, mut calls) = (0, 0);
    loop {
        let result = check_points(&zkey, at, &backend(2), &mut |done, of| {
            assert!(done > at && of == total);
            at = done;
            calls += 1;
            ControlFlow::Break(())
        });
        match result {
            Ok(()) => break,
            Err(CheckError::Stopped(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(at, total);
    assert!(calls >= 5);
}

#[test]
fn bytes_that_are_no_proof_are_refused() {
    let (r1cs, values) = mixed_r1cs(10);
    let key = ProvingKey::from_zkey(key_bytes(setup(&r1cs, b"seed")), None).unwrap();
    let proof = prove(&key, &Witness::new(&values).unwrap());
    let bytes = proof.to_bytes(Encoding::Compressed);
    assert_eq!(bytes.len(), 192);
    assert_eq!(
        Proof::from_bytes(&bytes[1..]),
        Err(ProofError::Length { found: 191 })
    );
    for (point, at, length) in [('A', 0, 48), ('B', 48, 96), ('C', 144, 48)] {
        let mut bad = bytes.clone();
        bad[at..at + length].fill(0);
        assert_eq!(Proof::from_bytes(&bad), Err(ProofError::NotOnCurve { point }));
        bad[at] = 0xc0;
        assert_eq!(Proof::from_bytes(&bad), Err(ProofError::Identity { point }));
        bad[at..at + length].fill(0xff);
        assert_eq!(Proof::from_bytes(&bad), Err(ProofError::NotOnCurve { point }));
        let outside = outside_subgroup(2 * length);
        // SAFETY: plain limbs of the right length, written where an encoding of that length goes.
        unsafe {
            if length == 48 {
                let limbs: blst::blst_p1_affine = std::ptr::read_unaligned(outside.as_ptr().cast());
                blst::blst_p1_affine_compress(bad[at..].as_mut_ptr(), &limbs);
            } else {
                let limbs: blst::blst_p2_affine = std::ptr::read_unaligned(outside.as_ptr().cast());
                blst::blst_p2_affine_compress(bad[at..].as_mut_ptr(), &limbs);
            }
        }
        assert_eq!(Proof::from_bytes(&bad), Err(ProofError::NotInSubgroup { point }));
    }
}

#[test]
fn values_that_are_no_witness_are_refused_and_nothing_is_shown() {
    let (r1cs, values) = mixed_r1cs(10);
    let mut bad = values.clone();
    bad[4] = [0xff; 32];
    assert_eq!(
        Witness::new(&bad).unwrap_err(),
        WitnessError::NonCanonical { wire: 4 }
    );
    assert_eq!(Witness::new(&values[1..]).unwrap_err(), WitnessError::NoConstant);
    assert_eq!(Witness::new(&[]).unwrap_err(), WitnessError::NoConstant);
    let witness = Witness::new(&values).unwrap();
    let key = ProvingKey::from_zkey(key_bytes(setup(&r1cs, b"seed")), None).unwrap();
    let pieces = all_pieces(&key, &witness);
    assert_eq!(format!("{witness:?}"), "Witness { wires: 14, .. }");
    assert_eq!(format!("{:?}", pieces[0]), "PieceResult { piece: H, .. }");
}
