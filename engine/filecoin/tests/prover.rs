//! A real Filecoin circuit through our stages: with the same r and s the same 192 bytes as bellperson's prover.
#![cfg(feature = "published")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use bellperson::groth16::{Parameters, create_proof};
use blstrs::{Bls12, Scalar};
use ff::Field;
use filecoin_proofs::SectorShapeBase;
use proofkeep_filecoin::post::Post;
use proofkeep_filecoin::published::verify_post;
use proofkeep_filecoin::statement::Statement;
use proofkeep_groth16::backend::CpuBackend;
use proofkeep_groth16::control::Unwatched;
use proofkeep_groth16::field::scalar_to_bytes;
use proofkeep_groth16::key::ProvingKey;
use proofkeep_groth16::matrices::Matrices;
use proofkeep_groth16::setup::{ToxicWaste, generate_parameters};
use proofkeep_groth16::stages::Prover;
use proofkeep_groth16::synthesis::Constraints;
use proofkeep_groth16::vk::Encoding;
use proofkeep_groth16::witness::Witness;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use serde_json::{Value, json};

type Tree = SectorShapeBase;

fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/filecoin")
        .join(name);
    std::fs::read(path).unwrap()
}

/// A seed that is new each time, and printed.
fn rng() -> ChaCha20Rng {
    let seed = match std::env::var("PROOFKEEP_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => rand::rngs::OsRng.next_u64(),
    };
    eprintln!("PROOFKEEP_SEED={seed}");
    ChaCha20Rng::seed_from_u64(seed)
}

#[test]
fn window_post_proofs_are_bellpersons_byte_for_byte_and_the_published_verifier_takes_them() {
    let meta: Value = serde_json::from_slice(&fixture("window-2k-3sectors/post-meta.json")).unwrap();
    let fields = json!({
        "registered_proof": "StackedDrgWindow2KiBV1",
        "prover_id": meta["prover_id"],
        "randomness": meta["randomness"],
    });
    let Value::Object(mut fields) = fields else {
        unreachable!()
    };
    let post = Post::take(&mut fields, false).unwrap();
    let partitions = post
        .read::<Tree>(&fixture("window-2k-3sectors/vanilla.bincode"))
        .unwrap();
    assert_eq!(partitions.len(), 2);

    let blank = || post.blank::<Tree>().unwrap();
    let matrices = Matrices::of_circuit(blank()).unwrap();
    let slowly = Matrices::from_constraints(&Constraints::of(blank()).unwrap()).unwrap();
    assert_eq!(matrices, slowly, "compiled row by row, the matrices are the same");
    assert_eq!(
        matrices.constraints(),
        Some(21_866),
        "the count of the published circuit"
    );

    let mut rng = rng();
    let backend = CpuBackend::new(2).unwrap();
    let waste = ToxicWaste::random(&mut rng).unwrap();
    let mut go_on = |_, _| ControlFlow::Continue(());
    let file = generate_parameters(&matrices, &waste, Vec::new(), &backend, &mut go_on).unwrap();
    let parameters = Parameters::<Bls12>::read(&file[..], false).unwrap();
    let mut vk = Vec::new();
    parameters.vk.write(&mut vk).unwrap();
    let key = ProvingKey::from_bellperson(&parameters, Arc::new(matrices)).unwrap();
    let prover = Prover::new(&key, backend);

    let sectors: Vec<(u64, [u8; 32])> = partitions
        .iter()
        .flat_map(|partition| &partition.sectors)
        .map(|sector| {
            let comm_r: &[u8] = sector.comm_r.as_ref();
            (sector.sector_id.into(), comm_r.try_into().unwrap())
        })
        .collect();
    let statement = Statement::Post {
        post: Box::new(post.clone()),
        sectors: sectors.clone(),
    };
    let mut joined = Vec::new();
    for (k, partition) in partitions.iter().enumerate() {
        let input = bincode::serialize(&partition.sectors).unwrap();
        let made = statement.witness(k, &input).unwrap();
        let witness = Witness::new(&made.values).unwrap();
        assert_eq!(witness.public(made.public.len()), made.public);
        let (r, s) = (Scalar::random(&mut rng), Scalar::random(&mut rng));
        let pieces = prover
            .prove_checked(
                &witness,
                key.matrices().products(&witness).unwrap(),
                &[],
                &mut |_, _| ControlFlow::Continue(()),
                &Unwatched,
            )
            .unwrap();
        let ours = prover
            .assemble(&pieces, &scalar_to_bytes(&r), &scalar_to_bytes(&s))
            .unwrap();
        let theirs = create_proof(post.circuit(partition).unwrap(), &parameters, r, s).unwrap();
        let mut bytes = Vec::new();
        theirs.write(&mut bytes).unwrap();
        assert_eq!(ours.to_bytes(Encoding::Compressed), bytes, "partition {k}");
        joined.extend(bytes);
    }
    assert!(verify_post(&post, &sectors, &vk, &joined).unwrap());
    assert!(statement.verify_joined(&vk, &joined).unwrap());
    // Partitions in another order, another sector, another randomness: no.
    let swapped = [&joined[192..], &joined[..192]].concat();
    assert!(!verify_post(&post, &sectors, &vk, &swapped).unwrap());
    let mut others = sectors.clone();
    others[2].1 = others[1].1;
    assert!(!verify_post(&post, &others, &vk, &joined).unwrap());
    let mut otherwise = post.clone();
    otherwise.randomness[0] ^= 1;
    assert!(!verify_post(&otherwise, &sectors, &vk, &joined).unwrap());
    // Garbage is an answer too.
    assert!(!verify_post(&post, &sectors, &vk, &[0xab; 384]).unwrap_or(false));
}
