//! A whole job as the chain verifies it: by the published verifiers over the joined proofs, with the key of our parameter
//! directory. The published calls by name keep keys by sector size alone, in a cache of their own, so their parts are
//! called here.

use bellperson::groth16::{PreparedVerifyingKey, VerifyingKey, prepare_verifying_key};
use blstrs::Bls12;
use filecoin_hashers::Hasher;
use filecoin_proofs::constants::DefaultPieceHasher;
use filecoin_proofs::parameters::{setup_params, window_post_setup_params, winning_post_setup_params};
use filecoin_proofs::{TreeRHasher, as_safe_commitment};
use storage_proofs_core::compound_proof::{CompoundProof, SetupParams};
use storage_proofs_core::multi_proof::MultiProof;
use storage_proofs_core::sector::SectorId;
use storage_proofs_porep::stacked::{self, StackedCompound, StackedDrg};
use storage_proofs_post::fallback::{self, FallbackPoSt, FallbackPoStCompound, PublicSector};
use storage_proofs_update::{EmptySectorUpdate, EmptySectorUpdateCompound};

use crate::invalid::{Invalid, caught};
use crate::porep::Commit;
use crate::post::Post;
use crate::shape::with_tree;
use crate::snap::Update;

type Domain = <TreeRHasher as Hasher>::Domain;

/// A sector's number and what commits to its replica.
pub type PublicReplica = (u64, [u8; 32]);

/// Verifies all partitions of a PoSt.
///
/// # Errors
/// When the proofs or the key can't be read; a proof that doesn't hold is `Ok(false)`.
pub fn verify_post(
    post: &Post,
    sectors: &[PublicReplica],
    vk: &[u8],
    proofs: &[u8],
) -> Result<bool, Invalid> {
    let domain = |field: &str, bytes: &[u8; 32]| -> Result<Domain, Invalid> {
        as_safe_commitment(bytes, field).map_err(|error| refused(&error))
    };
    let copies = match post.is_winning() {
        true => post.config.challenge_count,
        false => 1,
    };
    let mut public = Vec::with_capacity(sectors.len() * copies);
    for (number, comm_r) in sectors {
        let sector = PublicSector {
            id: SectorId::from(*number),
            comm_r: domain("comm_r", comm_r)?,
        };
        public.extend(std::iter::repeat_n(sector, copies));
    }
    let inputs = fallback::PublicInputs {
        randomness: domain("randomness", &post.randomness)?,
        prover_id: domain("prover_id", &post.prover)?,
        sectors: public,
        k: None,
    };
    let vanilla_params = match post.is_winning() {
        true => winning_post_setup_params(&post.config).map_err(|error| refused(&error))?,
        false => window_post_setup_params(&post.config),
    };
    let key = prepared(vk)?;
    with_tree!(post.config.sector_size.into(), Tree => caught("proof", || {
        type Compound = FallbackPoStCompound<Tree>;
        let params = <Compound as CompoundProof<FallbackPoSt<'_, Tree>, _>>::setup(&SetupParams {
            vanilla_params,
            partitions: Some(proofs.len() / 192),
            priority: false,
        })
        .map_err(|error| refused(&error))?;
        let joined = MultiProof::new_from_bytes(Some(proofs.len() / 192), proofs, &key)
            .map_err(|error| refused(&error))?;
        let requirements = fallback::ChallengeRequirements {
            minimum_challenge_count: post.config.challenge_count * post.config.sector_count,
        };
        <Compound as CompoundProof<FallbackPoSt<'_, Tree>, _>>::verify(
            &params,
            &inputs,
            &joined,
            &requirements,
        )
        .map_err(|error| refused(&error))
    }))
}

/// Verifies all partitions of a PoRep.
///
/// # Errors
/// As [`verify_post`].
pub fn verify_porep(commit: &Commit, vk: &[u8], proofs: &[u8]) -> Result<bool, Invalid> {
    let partitions = usize::from(commit.config.partitions);
    let key = prepared(vk)?;
    with_tree!(commit.seal.size, Tree => caught("proof", || {
        type Compound = StackedCompound<Tree, DefaultPieceHasher>;
        let vanilla_params = setup_params(&commit.config).map_err(|error| refused(&error))?;
        let params =
            <Compound as CompoundProof<StackedDrg<'_, Tree, DefaultPieceHasher>, _>>::setup(&SetupParams {
                vanilla_params,
                partitions: Some(partitions),
                priority: false,
            })
            .map_err(|error| refused(&error))?;
        let joined =
            MultiProof::new_from_bytes(Some(partitions), proofs, &key).map_err(|error| refused(&error))?;
        let requirements = stacked::ChallengeRequirements {
            minimum_challenges: commit.config.minimum_challenges(),
        };
        <Compound as CompoundProof<StackedDrg<'_, Tree, DefaultPieceHasher>, _>>::verify(
            &params,
            &commit.inputs()?,
            &joined,
            &requirements,
        )
        .map_err(|error| refused(&error))
    }))
}

/// Verifies all partitions of an update.
///
/// # Errors
/// As [`verify_post`].
pub fn verify_update(update: &Update, vk: &[u8], proofs: &[u8]) -> Result<bool, Invalid> {
    let partitions = update.partitions();
    let key = prepared(vk)?;
    with_tree!(update.size, Tree => caught("proof", || {
        type Compound = EmptySectorUpdateCompound<Tree>;
        let params = <Compound as CompoundProof<'_, EmptySectorUpdate<Tree>, _>>::setup(&SetupParams {
            vanilla_params: storage_proofs_update::SetupParams {
                sector_bytes: update.size,
            },
            partitions: Some(partitions),
            priority: false,
        })
        .map_err(|error| refused(&error))?;
        let joined =
            MultiProof::new_from_bytes(Some(partitions), proofs, &key).map_err(|error| refused(&error))?;
        <Compound as CompoundProof<'_, EmptySectorUpdate<Tree>, _>>::verify(
            &params,
            &update.inputs(partitions)?,
            &joined,
            &(),
        )
        .map_err(|error| refused(&error))
    }))
}

fn prepared(vk: &[u8]) -> Result<PreparedVerifyingKey<Bls12>, Invalid> {
    let key = VerifyingKey::<Bls12>::read(vk).map_err(|error| refused(&error))?;
    Ok(prepare_verifying_key(&key))
}

fn refused(error: &impl std::fmt::Display) -> Invalid {
    let found = format!("something else ({error})");
    Invalid::new(
        "join-refused",
        "proof",
        "what the published verifier can read",
        found,
    )
}
