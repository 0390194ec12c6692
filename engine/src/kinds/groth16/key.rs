//! The proving key as it is resident in a worker process, and how it is loaded.

use std::sync::Arc;

use memmap2::Mmap;
use proofkeep_groth16::bases::KeyBytes;
use proofkeep_groth16::key::ProvingKey;
use proofkeep_groth16::matrices::Matrices;
use proofkeep_groth16::vk::UnfinishedSetup;
use proofkeep_store::ids::Digest;
use proofkeep_store::records::{Failure, FailureClass};

use super::key_file::is_zkey;
use super::{failure, import};
use crate::kinds::Watch;
use crate::params::{Keys, Pinned};
use crate::protocol::CircuitFiles;
use crate::shelf::Shelf;

/// A proving key in use; a `.zkey` is mapped, the points of parameters were converted into memory.
#[derive(Debug)]
pub struct ResidentKey {
    /// The key.
    pub key: ProvingKey,
    /// The object that it was made from; names the key that pieces belong to.
    pub digest: Digest,
}

/// The file of a circuit's key.
pub(super) fn zkey_of(files: &CircuitFiles) -> Result<Digest, Failure> {
    files.zkey.map(Digest).ok_or_else(|| {
        Failure::coded(
            FailureClass::ParamsMismatch,
            "zkey-missing",
            format!(
                "circuit {} has no proving key, and a groth16 proof needs one",
                files.digest()
            ),
        )
    })
}

/// What the circuit's registration says of an unfinished setup; its digest covers that.
pub(super) fn unfinished(files: &CircuitFiles) -> UnfinishedSetup {
    UnfinishedSetup::accept_if(files.allow_unfinished)
}

/// Pins a circuit's key, and loads it first if it isn't resident.
pub(super) fn pin(
    files: &CircuitFiles,
    shelf: &Shelf,
    keys: &Keys,
    watch: &dyn Watch,
) -> Result<Pinned<ResidentKey>, Failure> {
    let zkey = zkey_of(files)?;
    keys.pin(files.digest(), watch, || {
        watch.progress(0);
        let map = shelf
            .map(zkey, "proving key")
            .map_err(|failure| of_no_other_copy(files, zkey, failure))?;
        let compiled = files
            .matrices
            .map(|digest| matrices(files, shelf, Digest(digest), watch))
            .transpose()?;
        watch.progress(0);
        let of_zkey = is_zkey(&map);
        let (key, mapped) = match (of_zkey, compiled) {
            (true, matrices) => {
                let mapped = map.len() as u64;
                let bytes: KeyBytes = Arc::new(map);
                (
                    ProvingKey::from_zkey_with(bytes, matrices, unfinished(files)),
                    mapped,
                )
            }
            (false, matrices) => {
                let matrices = match matrices {
                    Some(matrices) => matrices,
                    None => Arc::new(import::compile_again(files, shelf, watch)?),
                };
                (ProvingKey::from_params(&map, matrices, unfinished(files)), 0)
            }
        };
        let key = key.map_err(|error| {
            // An import accepted this file once, so it is the disk's fault, if its digest says so too.
            check_file(files, zkey, shelf, watch)
                .err()
                .unwrap_or_else(|| failure::key(&error))
        })?;
        let bytes = mapped + key.owned_bytes();
        Ok((ResidentKey { key, digest: zkey }, bytes))
    })
}

/// After an invalid proof, or when it can't be read: are the key's bytes still those that were imported?
pub(super) fn check_file(
    files: &CircuitFiles,
    zkey: Digest,
    shelf: &Shelf,
    watch: &dyn Watch,
) -> Result<(), Failure> {
    let mut alive = || {
        watch.progress(0);
        watch.stopped().map_or(Ok(()), Err)
    };
    let checked = shelf.map_verified(zkey, "proving key", &mut alive);
    let failed = |failure: Failure| match failure.code.as_str() {
        "blob-damaged" => Failure::coded(FailureClass::ParamsMismatch, "zkey-damaged", failure.detail),
        _ => failure,
    };
    checked
        .map(drop)
        .map_err(|failure| of_no_other_copy(files, zkey, failed(failure)))
}

/// A key that was made here was never uploaded, so nobody can upload it again, and made again it would be another key: what
/// there is to do is said instead.
fn of_no_other_copy(files: &CircuitFiles, zkey: Digest, failure: Failure) -> Failure {
    let lost = matches!(failure.code.as_str(), "blob-missing" | "zkey-damaged");
    if !files.local_setup || !lost {
        return failure;
    }
    let found = if failure.code == "blob-missing" {
        "gone"
    } else {
        "damaged"
    };
    let detail = format!(
        "the key {zkey} of circuit {}, which was made here (setup insecure-local), is {found} on disk and can't be made \
         again as it was: put the file {zkey} back from a backup with PUT /v1/blobs/{zkey} and retry; or delete the circuit \
         and add it again, which makes another key, and submit the jobs anew",
        files.digest()
    );
    Failure::coded(FailureClass::ParamsMismatch, "local-key-lost", detail)
}

/// The compiled matrices. Nobody can upload them again, so those that are gone or damaged are compiled again from what
/// they were made of; they must come out the same.
fn matrices(
    files: &CircuitFiles,
    shelf: &Shelf,
    digest: Digest,
    watch: &dyn Watch,
) -> Result<Arc<Matrices>, Failure> {
    let damage = match read_matrices(shelf, digest) {
        Ok(matrices) => return Ok(matrices),
        // The system is short of something; another try may find the file.
        Err(failure) if failure.class == FailureClass::DeviceError => return Err(failure),
        Err(failure) => failure,
    };
    tracing::warn!("{}; compiling the circuit again", damage.detail);
    if damage.class != FailureClass::InputMissing {
        shelf.put_aside(digest);
    }
    let again = import::compile_again(files, shelf, watch)?;
    let written = shelf.create("compiled matrices", |out| again.write(out))?;
    if written == digest {
        return Ok(Arc::new(again));
    }
    let detail = format!(
        "{}; compiled again they are others ({written}): register the circuit anew under another name",
        damage.detail
    );
    Err(Failure::coded(
        FailureClass::ParamsMismatch,
        "matrices-damaged",
        detail,
    ))
}

fn read_matrices(shelf: &Shelf, digest: Digest) -> Result<Arc<Matrices>, Failure> {
    let map: Mmap = shelf.map(digest, "file of compiled matrices")?;
    let matrices = Matrices::read(&map).map_err(|error| {
        Failure::coded(
            FailureClass::ParamsMismatch,
            "matrices-damaged",
            format!("the compiled matrices {digest} are damaged: {error}"),
        )
    })?;
    Ok(Arc::new(matrices))
}
