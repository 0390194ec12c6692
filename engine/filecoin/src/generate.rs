//! Parameters for trials, made here: whoever ran this could have kept the secret, so they prove nothing to anybody else.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;

use proofkeep_groth16::backend::Backend;
use proofkeep_groth16::matrices::{Matrices, MatrixError};
use proofkeep_groth16::setup::{ParametersError, ToxicWaste, ToxicWasteError, generate_parameters};
use rand::rngs::OsRng;

use crate::checked::Checked;
use crate::circuit::Circuit;
use crate::digest::{Digests, Stamp};
use crate::directory::{Content, Directory};
use crate::header::{Header, HeaderError};
use crate::invalid::Invalid;

/// Parameters that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// There is no such circuit.
    #[error(transparent)]
    Circuit(#[from] Invalid),
    /// It can't be compiled.
    #[error(transparent)]
    Matrices(#[from] MatrixError),
    /// The points can't be made.
    #[error(transparent)]
    Parameters(#[from] ParametersError),
    /// The system's random numbers make none.
    #[error(transparent)]
    Randomness(#[from] ToxicWasteError),
    /// The directory can't be written.
    #[error("the parameter directory can't be written: {0}")]
    Io(#[from] io::Error),
    /// What was written can't be read again.
    #[error(transparent)]
    Header(#[from] HeaderError),
}

/// Makes the parameters of a circuit and writes them, its verifying key and its matrices to the directory. A file that is
/// there is replaced when the new one is whole. `progress` gets how many points are made, of how many.
///
/// # Errors
/// When the circuit can't be compiled, the disk refuses, or `progress` stops it; no `.params` is left then that wasn't
/// there before.
pub fn generate(
    circuit: &Circuit,
    directory: &Directory,
    backend: &dyn Backend,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Header, GenerateError> {
    let identifier = circuit.identifier()?;
    let matrices = circuit.matrices()?;
    write_matrices(directory, &identifier, &matrices)?;
    let waste = ToxicWaste::random(&mut OsRng)?;
    let target = directory.file(&identifier, Content::Params);
    // What was checked of an older file doesn't count for this one.
    remove(directory, &identifier)?;
    directory.write::<GenerateError>(&target, |out| {
        generate_parameters(&matrices, &waste, out, backend, progress)?;
        Ok(())
    })?;
    drop(waste);
    let header = Header::read(&target)?;
    directory.write::<io::Error>(&directory.file(&identifier, Content::Vk), |out| {
        io::Write::write_all(out, &header.vk)
    })?;
    let (mut digests, mut file) = (Digests::default(), File::open(&target)?);
    io::copy(&mut file, &mut digests)?;
    let (sha256, blake2b) = digests.finish();
    Checked {
        bytes: header.bytes,
        sha256,
        setup: Checked::LOCAL.to_owned(),
        points: true,
        blake2b: Some(blake2b),
        stamp: Some(Stamp::of(&file)?),
    }
    .write(directory, &Directory::id(&identifier))?;
    Ok(header)
}

/// Writes compiled matrices to the directory.
///
/// # Errors
/// When the disk refuses.
pub fn write_matrices(directory: &Directory, identifier: &str, matrices: &Matrices) -> io::Result<()> {
    directory.write(&directory.file(identifier, Content::Matrices), |out| {
        matrices.write(out)
    })
}

fn remove(directory: &Directory, identifier: &str) -> io::Result<()> {
    match std::fs::remove_file(directory.file(identifier, Content::Checked)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
