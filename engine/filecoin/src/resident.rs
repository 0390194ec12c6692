//! A proving key as it is resident in a worker process: the parameters, their points checked once, and the matrices.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::sync::Arc;

use bellperson::groth16::Parameters;
use blstrs::Bls12;
use proofkeep_engine::kinds::Watch;
use proofkeep_engine::kinds::groth16::ResidentKey;
use proofkeep_groth16::key::ProvingKey;
use proofkeep_groth16::matrices::Matrices;
use proofkeep_store::ids::Digest;
use proofkeep_store::records::{Failure, FailureClass};
use sha2::{Digest as _, Sha256};

use crate::checked::Checked;
use crate::circuit::Circuit;
use crate::directory::{Content, Directory};
use crate::generate::write_matrices;
use crate::header::Header;

/// Loads the key of a circuit; answers it with the bytes that it holds.
///
/// # Errors
/// `params_mismatch` when the file isn't what it was at submit, or no key of this circuit; the watch's reason.
pub fn load(
    directory: &Directory,
    circuit: &Circuit,
    pinned: Digest,
    watch: &dyn Watch,
) -> Result<(ResidentKey, u64), Failure> {
    let mismatch = |code: &str, detail: String| Failure::coded(FailureClass::ParamsMismatch, code, detail);
    let identifier = circuit
        .identifier()
        .map_err(|invalid| mismatch(invalid.code, invalid.to_string()))?;
    let header = header(directory, &identifier, pinned)?;
    let matrices = Arc::new(matrices(directory, &identifier, circuit, watch)?);
    let path = directory.file(&identifier, Content::Params);
    let unreadable = |error: io::Error| {
        watch.stopped().unwrap_or_else(|| {
            let detail = format!("{} can't be used: {error}; get it again", path.display());
            mismatch("params-damaged", detail)
        })
    };
    let noted = Checked::read(directory, &identifier);
    let read = |check: bool| -> io::Result<(Parameters<Bls12>, String)> {
        let mut source = Watched {
            file: File::open(&path)?,
            hash: Sha256::new(),
            watch,
        };
        let mut buffered = BufReader::with_capacity(1 << 20, &mut source);
        let parameters = Parameters::read(&mut buffered, check)?;
        drop(buffered);
        Ok((parameters, Digest(source.hash.finalize().into()).to_string()))
    };
    let (mut parameters, mut digest) = read(noted.is_none()).map_err(unreadable)?;
    if noted.as_ref().is_none_or(|noted| noted.sha256 != digest) {
        if noted.is_some() {
            // Another file than the one whose points were checked.
            (parameters, digest) = read(true).map_err(unreadable)?;
        }
        let note = Checked {
            bytes: header.bytes,
            sha256: digest,
            setup: Checked::UNKNOWN.to_owned(),
        };
        if let Err(error) = note.write(directory, &identifier) {
            tracing::warn!(%error, "the parameter directory can't be written, so the key's points are checked each time");
        }
    }
    let key = ProvingKey::from_bellperson(&parameters, matrices)
        .map_err(|error| mismatch(error.code(), format!("{}: {error}", path.display())))?;
    drop(parameters);
    let bytes = header.bytes + key.owned_bytes();
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
    watch: &dyn Watch,
) -> Result<Matrices, Failure> {
    if let Ok(bytes) = fs::read(directory.file(identifier, Content::Matrices)) {
        match Matrices::read(&bytes) {
            Ok(matrices) => return Ok(matrices),
            Err(error) => tracing::warn!("{identifier}: {error}"),
        }
    }
    let compiled = crate::beat::with_beats(watch, || circuit.matrices());
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
    hash: Sha256,
    watch: &'w dyn Watch,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.watch.progress(50);
        if self.watch.stopped().is_some() {
            return Err(io::Error::other("stopped"));
        }
        let length = self.file.read(buffer)?;
        self.hash.update(&buffer[..length]);
        Ok(length)
    }
}
