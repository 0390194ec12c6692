//! A proving key as it is resident in a worker process: the parameters, their points checked once, and the matrices.
//!
//! The parameters are read once from front to back into the form that the prover works on, hashed and, unless that was
//! done, checked on the way: what is in memory is one copy of the points.

use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::Arc;

use proofkeep_engine::device::Threads;
use proofkeep_engine::kinds::Watch;
use proofkeep_engine::kinds::groth16::ResidentKey;
use proofkeep_groth16::backend::Backend;
use proofkeep_groth16::key::{ProvingKey, ReadParamsError};
use proofkeep_groth16::matrices::Matrices;
use proofkeep_groth16::vk::UnfinishedSetup;
use proofkeep_store::ids::Digest;
use proofkeep_store::records::{Failure, FailureClass};

use crate::beat::watched;
use crate::checked::Checked;
use crate::circuit::Circuit;
use crate::digest::{Digests, Stamp};
use crate::directory::{Content, Directory};
use crate::generate::write_matrices;
use crate::header::Header;
use crate::params;

/// Loads the key of a circuit, from the file with this BLAKE2b digest if one is named; answers it with the bytes that it
/// holds.
///
/// # Errors
/// `params_mismatch` when the file isn't what it was at submit, or no key of this circuit; the watch's reason.
pub fn load(
    directory: &Directory,
    circuit: &Circuit,
    pinned: Digest,
    file: Option<&str>,
    threads: &Threads,
    watch: &dyn Watch,
) -> Result<(ResidentKey, u64), Failure> {
    let mismatch = |code: &str, detail: String| Failure::coded(FailureClass::ParamsMismatch, code, detail);
    let identifier = circuit
        .identifier()
        .map_err(|invalid| mismatch(invalid.code, invalid.to_string()))?;
    header(directory, &identifier, pinned)?;
    let matrices = Arc::new(matrices(directory, &identifier, circuit, threads, watch)?);
    let path = directory.file(&identifier, Content::Params);
    let stopped = || watch.stopped();
    let unusable = |error: ReadParamsError| {
        if let Some(failure) = stopped() {
            return failure;
        }
        let code = match &error {
            ReadParamsError::Key(error) => error.code(),
            _ => "params-damaged",
        };
        mismatch(
            code,
            format!("{} can't be used: {error}; get it again", path.display()),
        )
    };
    let id = Directory::id(&identifier);
    let noted = Checked::of(directory, &id).filter(|noted| noted.points);
    let read = |check: bool| -> Result<(ProvingKey, Digests, Stamp), Failure> {
        let file = File::open(&path).map_err(|error| unusable(error.into()))?;
        let stamp = Stamp::of(&file).map_err(|error| unusable(error.into()))?;
        let mut source = Watched {
            file,
            digests: Digests::default(),
            watch,
        };
        let check = check.then_some(threads.backend() as &dyn Backend);
        let mut go_on = |_| match stopped() {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        };
        let refuse = UnfinishedSetup::Refuse;
        let key = threads
            .run(|| ProvingKey::read_params(&mut source, matrices.clone(), refuse, check, &mut go_on))
            .ok_or_else(|| {
                Failure::coded(
                    FailureClass::DeviceError,
                    "no-thread",
                    "no thread read the parameters",
                )
            })?
            .map_err(unusable)?;
        Ok((key, source.digests, stamp))
    };
    let (mut key, digests, stamp) = read(noted.is_none())?;
    let before = noted.as_ref().map(|noted| noted.sha256.clone());
    let mut found = params::noted(directory, &id, digests, stamp, noted.is_none());
    if before.is_some_and(|before| before != found.sha256) && !found.points {
        // Another file than the one whose points were checked.
        drop(key);
        let (again, digests, stamp) = read(true)?;
        key = again;
        found = params::noted(directory, &id, digests, stamp, true);
    }
    if let Some(expected) = file.filter(|expected| found.blake2b.as_deref() != Some(expected)) {
        let detail = format!(
            "{} has the BLAKE2b digest {}, when the job was submitted it had {expected}; put the old one back, or submit \
             again",
            path.display(),
            found.blake2b.unwrap_or_default()
        );
        return Err(mismatch("params-changed", detail));
    }
    let bytes = key.owned_bytes();
    Ok((ResidentKey { key, digest: pinned }, bytes))
}

/// The head of a circuit's parameter file, which must still be the pinned one.
///
/// # Errors
/// `params_mismatch`.
pub fn header(directory: &Directory, identifier: &str, pinned: Digest) -> Result<Header, Failure> {
    let path = directory.file(identifier, Content::Params);
    let header = Header::read(&path)
        .map_err(|error| Failure::coded(FailureClass::ParamsMismatch, error.code(), error.to_string()))?;
    if header.digest() == pinned {
        return Ok(header);
    }
    let detail = format!(
        "{} holds another key than when the job was submitted; put the old one back, or submit again",
        path.display()
    );
    Err(Failure::coded(
        FailureClass::ParamsMismatch,
        "params-changed",
        detail,
    ))
}

/// The compiled matrices from the directory; compiled now, and kept there, where they are missing or damaged.
fn matrices(
    directory: &Directory,
    identifier: &str,
    circuit: &Circuit,
    threads: &Threads,
    watch: &dyn Watch,
) -> Result<Matrices, Failure> {
    if let Ok(bytes) = fs::read(directory.file(identifier, Content::Matrices)) {
        match Matrices::read(&bytes) {
            Ok(matrices) => return Ok(matrices),
            Err(error) => tracing::warn!("{identifier}: {error}"),
        }
    }
    let compiled = watched(watch, threads.backend().threads(), || circuit.matrices())?;
    let matrices = compiled
        .map_err(|error| Failure::coded(FailureClass::ParamsMismatch, error.code(), error.to_string()))?;
    if let Err(error) = write_matrices(directory, identifier, &matrices) {
        tracing::warn!(%error, "the parameter directory can't be written, so the circuit is compiled each time");
    }
    Ok(matrices)
}

/// Reads a file, hashes it, shows that it goes on, and stops when it should.
struct Watched<'w> {
    file: File,
    digests: Digests,
    watch: &'w dyn Watch,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.watch.progress(50);
        if self.watch.stopped().is_some() {
            return Err(io::Error::other("stopped"));
        }
        let length = self.file.read(buffer)?;
        self.digests.update(&buffer[..length]);
        Ok(length)
    }
}
