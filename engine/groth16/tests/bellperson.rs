//! Byte for byte the proofs that bellperson makes, on bellperson's own parameters.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;

use bellperson::groth16::{
    Parameters, create_proof, generate_random_parameters, prepare_verifying_key, verify_proof,
};
use blstrs::{Bls12, Scalar};
use common::*;
use ff::Field;
use proofkeep_groth16::control::Unwatched;
use proofkeep_groth16::field::{scalar_from_bytes, scalar_to_bytes};
use proofkeep_groth16::key::ProvingKey;
use proofkeep_groth16::matrices::Matrices;
use proofkeep_groth16::proof::Proof;
use proofkeep_groth16::stages::{Piece, PieceResult, ProveError, Prover};
use proofkeep_groth16::synthesis::{Assignment, Constraints};
use proofkeep_groth16::verify::{VerifyError, verify};
use proofkeep_groth16::vk::{Encoding, VerifyingKey};
use proofkeep_groth16::witness::Witness;

fn parameters(chain: &Chain) -> (Parameters<Bls12>, ProvingKey) {
    let parameters = generate_random_parameters::<Bls12, _, _>(chain.blank(), &mut rng(1)).unwrap();
    let matrices = Matrices::from_constraints(&Constraints::of(chain.blank()).unwrap()).unwrap();
    let streamed = Matrices::of_circuit(chain.blank()).unwrap();
    assert_eq!(
        streamed, matrices,
        "compiled row by row, the matrices are the same"
    );
    let key = ProvingKey::from_bellperson(&parameters, Arc::new(matrices)).unwrap();
    (parameters, key)
}

fn bellperson_bytes(proof: &bellperson::groth16::Proof<Bls12>) -> Vec<u8> {
    let mut bytes = Vec::new();
    proof.write(&mut bytes).unwrap();
    bytes
}

#[test]
fn proofs_with_the_same_r_and_s_are_byte_identical() {
    // 2·rounds constraints and 2 or 3 input rows: domains 2^2 to 2^12, one of them exactly full.
    for (rounds, idle) in [
        (1, false),
        (3, false),
        (5, true),
        (100, true),
        (127, false),
        (150, false),
        (2000, true),
    ] {
        let chain = Chain {
            idle,
            ..Chain::new(rounds)
        };
        let (parameters, key) = parameters(&chain);
        let assignment = Assignment::of(chain.clone()).unwrap();
        let witness = assignment.witness().unwrap();
        // Each backend's pieces, which are the same points.
        let all: Vec<_> = every_backend(2)
            .into_iter()
            .map(|backend| all_pieces_on(backend, &key, &witness))
            .collect();
        assert!(all.iter().all(|pieces| *pieces == all[0]), "{rounds} rounds");
        let mut rng = rng(rounds as u64);
        for (r, s) in [
            (Scalar::random(&mut rng), Scalar::random(&mut rng)),
            (Scalar::ZERO, Scalar::ZERO),
        ] {
            let theirs = create_proof(chain.clone(), &parameters, r, s).unwrap();
            let prover = Prover::new(&key, backend(1));
            for pieces in &all {
                let ours = prover
                    .assemble(pieces, &scalar_to_bytes(&r), &scalar_to_bytes(&s))
                    .unwrap();
                assert_eq!(
                    ours.to_bytes(Encoding::Compressed),
                    bellperson_bytes(&theirs),
                    "{rounds} rounds"
                );
                assert_eq!(Proof::from_bytes(&bellperson_bytes(&theirs)).unwrap(), ours);
                verify(key.vk(), witness.public(key.vk().public()), &ours).unwrap();
            }
        }
    }
}

#[test]
fn both_verifiers_say_the_same() {
    let chain = Chain {
        idle: true,
        ..Chain::new(10)
    };
    let (parameters, key) = parameters(&chain);
    let assignment = Assignment::of(chain).unwrap();
    let witness = assignment.witness().unwrap();
    let prover = Prover::new(&key, backend(2));
    let pieces = all_pieces(&key, &witness);
    let proof = prover.assemble_random(&pieces).unwrap();
    let again = prover.assemble_random(&pieces).unwrap();
    assert_ne!(proof, again, "r and s are fresh");
    let public = witness.public(2);
    let prepared = prepare_verifying_key(&parameters.vk);
    let theirs = |proof: &Proof, public: &[[u8; 32]]| {
        let proof =
            bellperson::groth16::Proof::<Bls12>::read(&proof.to_bytes(Encoding::Compressed)[..]).unwrap();
        let public: Vec<Scalar> = public
            .iter()
            .map(|value| scalar_from_bytes(value).unwrap())
            .collect();
        verify_proof(&prepared, &proof, &public).unwrap()
    };
    for proof in [&proof, &again] {
        assert_eq!(verify(key.vk(), public, proof), Ok(()));
        assert!(theirs(proof, public));
    }
    let mut other = public.to_vec();
    other[1] = scalar_to_bytes(&Scalar::from(78u64));
    assert_eq!(verify(key.vk(), &other, &proof), Err(VerifyError::Rejected));
    assert!(!theirs(&proof, &other));
    assert_eq!(
        verify(key.vk(), &public[..1], &proof),
        Err(VerifyError::PublicCount {
            expected: 2,
            found: 1
        })
    );
    other[1] = [0xff; 32];
    assert_eq!(
        verify(key.vk(), &other, &proof),
        Err(VerifyError::NonCanonical { index: 1 })
    );

    let mut bytes = Vec::new();
    parameters.vk.write(&mut bytes).unwrap();
    let vk = VerifyingKey::from_bellperson_bytes(&bytes).unwrap();
    assert_eq!(vk.digest(), key.vk().digest());
    for encoding in [Encoding::Compressed, Encoding::Uncompressed] {
        assert_eq!(
            VerifyingKey::from_bytes(&vk.to_bytes(encoding), encoding).unwrap(),
            vk
        );
    }
    assert_eq!(VerifyingKey::from_json(&vk.to_json()).unwrap(), vk);
    assert_eq!(Proof::from_json(&proof.to_json()).unwrap(), proof);
    assert_eq!(
        Proof::from_bytes(&proof.to_bytes(Encoding::Uncompressed)).unwrap(),
        proof
    );
}

#[test]
fn any_subset_of_known_pieces_gives_the_same_points() {
    let chain = Chain::new(40);
    let (_, key) = parameters(&chain);
    let assignment = Assignment::of(chain).unwrap();
    let witness = assignment.witness().unwrap();
    let all = all_pieces(&key, &witness);
    let prover = Prover::new(&key, backend(2));
    for subset in 0u32..32 {
        let stored = Piece::ALL
            .iter()
            .zip(&all)
            .enumerate()
            .filter(|(bit, _)| subset >> bit & 1 == 1);
        let known: Vec<PieceResult> = stored
            .map(|(_, (piece, result))| PieceResult::from_bytes(*piece, &result.to_bytes()).unwrap())
            .collect();
        let mut made = Vec::new();
        let pieces = prover
            .prove_pieces(
                &witness,
                &known,
                &mut |piece, _| {
                    made.push(piece.piece());
                    ControlFlow::Continue(())
                },
                &Unwatched,
            )
            .unwrap();
        assert!(pieces == all, "subset {subset:b}");
        let missing: Vec<Piece> = Piece::ALL
            .into_iter()
            .enumerate()
            .filter(|(bit, _)| subset >> bit & 1 == 0)
            .map(|(_, p)| p)
            .collect();
        assert_eq!(made, missing, "known pieces are not made again");
    }
}

#[test]
fn work_stops_after_a_piece_or_within_one_and_goes_on_from_there() {
    let chain = Chain::new(40);
    let (_, key) = parameters(&chain);
    let assignment = Assignment::of(chain).unwrap();
    let witness = assignment.witness().unwrap();
    let prover = Prover::new(&key, backend(1));
    let mut saved = Vec::new();
    let stopped = prover.prove_pieces(
        &witness,
        &[],
        &mut |piece, _| {
            saved.push(piece);
            if saved.len() == 2 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        },
        &Unwatched,
    );
    assert!(matches!(stopped, Err(ProveError::Stopped(_))));
    assert_eq!(
        saved.iter().map(PieceResult::piece).collect::<Vec<_>>(),
        [Piece::H, Piece::L]
    );
    let at_once = |_: u64, _: u64| ControlFlow::Break(());
    let stopped = prover.prove_pieces(&witness, &saved, &mut |_, _| ControlFlow::Continue(()), &at_once);
    assert!(matches!(stopped, Err(ProveError::Stopped(_))));
    let pieces = prover
        .prove_pieces(
            &witness,
            &saved,
            &mut |_, _| ControlFlow::Continue(()),
            &Unwatched,
        )
        .unwrap();
    assert!(pieces == all_pieces(&key, &witness));
}

#[test]
fn a_wrong_piece_makes_a_proof_that_is_rejected() {
    let chain = Chain::new(20);
    let (_, key) = parameters(&chain);
    let assignment = Assignment::of(chain).unwrap();
    let witness = assignment.witness().unwrap();
    let good = all_pieces(&key, &witness);
    let prover = Prover::new(&key, backend(1));
    for index in 0..good.len() {
        let piece = good[index].piece();
        let mut bytes = good[index].to_bytes();
        // The other root of the curve equation: a valid point, the wrong sign.
        bytes[0] ^= 0x20;
        let mut pieces = good.clone();
        pieces[index] = PieceResult::from_bytes(piece, &bytes).unwrap();
        let proof = prover.assemble_random(&pieces).unwrap();
        assert_eq!(
            verify(key.vk(), witness.public(1), &proof),
            Err(VerifyError::Rejected),
            "{piece}"
        );
        bytes[10] ^= 1;
        bytes[0] &= 0x7f;
        assert!(PieceResult::from_bytes(piece, &bytes).is_err());
        assert!(PieceResult::from_bytes(piece, &bytes[1..]).is_err());
        pieces.remove(index);
        assert!(
            prover
                .assemble_random(&pieces)
                .unwrap_err()
                .to_string()
                .contains(piece.name())
        );
    }
}

#[test]
fn an_unsatisfied_witness_names_its_constraint_before_any_piece() {
    let chain = Chain::new(20);
    let (_, key) = parameters(&chain);
    let assignment = Assignment::of(chain).unwrap();
    let mut values = assignment.witness().unwrap().values().to_vec();
    // Wires: one, end, start, then square and cube of each round: this is the square of round 7, constraint 14.
    values[3 + 2 * 7] = scalar_to_bytes(&Scalar::from(9u64));
    let prover = Prover::new(&key, backend(2));
    let error = prover
        .prove_pieces(
            &Witness::new(&values).unwrap(),
            &[],
            &mut |_, _| panic!("no piece may be made"),
            &Unwatched,
        )
        .unwrap_err();
    assert_eq!(error, ProveError::Unsatisfied { constraint: 14 });
    assert_eq!(error.code(), "unsatisfied");
    values.pop();
    let error = prover.check_witness(&Witness::new(&values).unwrap()).unwrap_err();
    assert_eq!(
        error,
        ProveError::Wires {
            expected: 42,
            found: 41
        }
    );
}

#[test]
fn parameters_of_another_circuit_are_refused() {
    let (parameters, _) = parameters(&Chain::new(10));
    let other = Matrices::from_constraints(&Constraints::of(Chain::new(11).blank()).unwrap()).unwrap();
    assert!(ProvingKey::from_bellperson(&parameters, Arc::new(other)).is_err());
}
