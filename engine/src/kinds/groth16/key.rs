//! The proving key as it is resident in a worker process, and how it is loaded.

use std::sync::Arc;

use memmap2::Mmap;
use proofkeep_groth16::bases::KeyBytes;
use proofkeep_groth16::key::ProvingKey;
use proofkeep_groth16::matrices::Matrices;
use proofkeep_groth16::vk::UnfinishedSetup;
use proofkeep_store::ids::Digest;
use proofkeep_store::records::{Failure, FailureClass};

use super::failure;
use crate::kinds::Watch;
use crate::params::{Keys, Pinned};
use crate::protocol::CircuitFiles;
use crate::shelf::Shelf;

/// A proving key in use; its `.zkey` is mapped.
#[derive(Debug)]
pub struct ResidentKey {
    /// The key.
    pub key: ProvingKey,
    /// The object that it was made from; names the key that pieces belong to.
    pub digest: Digest,
}

/// The `.zkey` of a circuit.
pub(super) fn zkey_of(files: &CircuitFiles) -> Result<Digest, Failure> {
    files.zkey.map(Digest).ok_or_else(|| {
        Failure::coded(
            FailureClass::ParamsMismatch,
            "zkey-missing",
            format!(
                "circuit {} has no .zkey, and a groth16 proof needs one",
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
        let map = shelf.map(zkey, ".zkey")?;
        let mapped = map.len() as u64;
        let matrices = files
            .matrices
            .map(|digest| read_matrices(shelf, Digest(digest)))
            .transpose()?;
        watch.progress(0);
        let bytes: KeyBytes = Arc::new(map);
        let key = ProvingKey::from_zkey_with(bytes, matrices, unfinished(files))
            .map_err(|error| failure::key(&error))?;
        let bytes = mapped + key.owned_bytes();
        Ok((ResidentKey { key, digest: zkey }, bytes))
    })
}

fn read_matrices(shelf: &Shelf, digest: Digest) -> Result<Arc<Matrices>, Failure> {
    let map: Mmap = shelf.map(digest, "file of compiled matrices")?;
    let matrices = Matrices::read(&map).map_err(|error| {
        Failure::coded(
            FailureClass::ParamsMismatch,
            "matrices-damaged",
            format!("{digest}: {error}"),
        )
    })?;
    Ok(Arc::new(matrices))
}
