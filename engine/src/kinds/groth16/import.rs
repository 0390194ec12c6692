//! The import of a circuit, in a worker process: everything is checked once, so that proofs needn't.
//!
//! A key that is to be made is made first. Constraints are compiled and compared with the key; every point of the key is
//! checked, in slices, from where an earlier try came to; then the compiled matrices and the verification key become
//! objects.

use std::ops::ControlFlow;

use memmap2::Mmap;
use proofkeep_formats::count;
use proofkeep_formats::r1cs::R1cs;
use proofkeep_formats::sym::Sym;
use proofkeep_groth16::matrices::{Matrices, MatrixError};
use proofkeep_groth16::memory::{KeyCounts, SLACK, key_bytes};
use proofkeep_groth16::vk::VerifyingKey;
use proofkeep_store::ids::Digest;
use proofkeep_store::records::{Circuit, CircuitFacts, Failure};
use proofkeep_witness::{Calculator, Limits};

use super::key_file::KeyFile;
use super::{failure, key, local_setup};
use crate::device::Threads;
use crate::kinds::Watch;
use crate::protocol::CircuitFiles;
use crate::shelf::Shelf;

/// What an import came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// What is known of the circuit now.
    pub facts: CircuitFacts,
    /// The object with the key, if the import made it.
    pub zkey: Option<Digest>,
    /// The object with the verification key: snarkjs's `verification_key.json`.
    pub vk: Digest,
    /// The object with the compiled matrices.
    pub matrices: Digest,
}

/// Memory that an import takes beside the mapped files: matrices from the constraints and from the key, and the list
/// that the latter are sorted with.
#[must_use]
pub fn import_bytes(circuit: &Circuit) -> u64 {
    // Resident matrices are the larger part of what a key owns; their terms are counted in `key_bytes`, so twice that
    // is more than enough for both sides, also where coefficients are all distinct.
    let check = SLACK + 2 * circuit.facts.key_bytes;
    let make = match circuit.local_setup {
        true => local_setup::local_setup_bytes(&circuit.facts),
        false => 0,
    };
    // What making the key took is free before it is checked.
    check.max(make)
}

/// Checks and compiles a circuit; `done` points were checked before, `checked` hears how many are now. If the key is to be
/// made it is made first: then nothing was done before, and the points that are made count too.
///
/// # Errors
/// `circuit_failed` when it is refused for good, `device_error` when the disk refuses, or the watch's reason.
pub fn import(
    files: &CircuitFiles,
    shelf: &Shelf,
    threads: &Threads,
    wasm: (u64, u64),
    done: u64,
    watch: &dyn Watch,
    checked: &mut dyn FnMut(u64),
) -> Result<Imported, Failure> {
    let made = match files.r1cs {
        Some(r1cs) if files.local_setup && files.zkey.is_none() => {
            Some(local_setup::make(Digest(r1cs), shelf, threads, watch, checked)?)
        }
        _ => None,
    };
    let files = &CircuitFiles {
        zkey: made.as_ref().map(|made| made.zkey.0).or(files.zkey),
        ..files.clone()
    };
    let (done, before) = made.as_ref().map_or((done, 0), |made| (0, made.points));
    let map = verified(shelf, key::zkey_of(files)?, "proving key", watch)?;
    let key = KeyFile::parse(&map)?;
    let vk = key
        .check_vk(key::unfinished(files))
        .map_err(|error| failure::check(&error, watch))?;
    go_on(watch, 0)?;
    let circuit = files
        .r1cs
        .map(|digest| compile(Digest(digest), shelf, watch))
        .transpose()?;
    go_on(watch, 0)?;
    let matrices = key.matrices(circuit, watch)?;
    go_on(watch, 0)?;
    if let Some(digest) = files.wasm {
        check_wasm(Digest(digest), key.wires(), shelf, wasm, watch)?;
    }
    if let Some(digest) = files.sym {
        let map = verified(shelf, Digest(digest), ".sym", watch)?;
        Sym::parse(&map).map_err(|error| failure::circuit(error.code(), error.to_string()))?;
    }
    let mut progress = |done: u64, total: u64| {
        checked(before + done);
        watch.progress(u16::try_from((1000 * done).checked_div(total).unwrap_or(1000)).unwrap_or(1000));
        if watch.stopped().is_some() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    key.check_points(done.min(key.point_count()), threads.backend(), &mut progress)
        .map_err(|error| failure::check(&error, watch))?;
    let facts = facts(key.setup(&vk), &matrices);
    let vk = write_vk(&vk, shelf)?;
    watch.progress(1000);
    let matrices = shelf.create("compiled matrices", |out| matrices.write(out))?;
    Ok(Imported {
        facts,
        zkey: made.map(|made| made.zkey),
        vk,
        matrices,
    })
}

fn go_on(watch: &dyn Watch, permille: u16) -> Result<(), Failure> {
    watch.progress(permille);
    watch.stopped().map_or(Ok(()), Err)
}

fn matrix(error: &MatrixError) -> Failure {
    failure::circuit(error.code(), error.to_string())
}

/// What is imported must be what was uploaded: a damaged file could be a circuit too, another one.
fn verified(shelf: &Shelf, file: Digest, what: &str, watch: &dyn Watch) -> Result<Mmap, Failure> {
    shelf.map_verified(file, what, &mut || go_on(watch, 0))
}

/// The matrices once more, as an import made them.
pub(super) fn compile_again(
    files: &CircuitFiles,
    shelf: &Shelf,
    watch: &dyn Watch,
) -> Result<Matrices, Failure> {
    if let Some(r1cs) = files.r1cs {
        return compile(Digest(r1cs), shelf, watch);
    }
    let map = verified(shelf, key::zkey_of(files)?, "proving key", watch)?;
    KeyFile::parse(&map)?.matrices(None, watch)
}

fn compile(r1cs: Digest, shelf: &Shelf, watch: &dyn Watch) -> Result<Matrices, Failure> {
    let map = verified(shelf, r1cs, ".r1cs", watch)?;
    let r1cs = R1cs::parse(&map).map_err(|error| failure::circuit(error.code(), error.to_string()))?;
    Matrices::from_r1cs(&r1cs).map_err(|error| matrix(&error))
}

fn check_wasm(
    wasm: Digest,
    wires: u64,
    shelf: &Shelf,
    (memory, fuel): (u64, u64),
    watch: &dyn Watch,
) -> Result<(), Failure> {
    let map = verified(shelf, wasm, ".wasm", watch)?;
    let limits = Limits {
        fuel,
        memory_bytes: usize::try_from(memory).unwrap_or(usize::MAX),
    };
    let calculator =
        Calculator::new(&map, limits).map_err(|error| failure::circuit(error.code(), error.to_string()))?;
    let (expected, found) = (wires, calculator.witness_size() as u64);
    if expected == found {
        return Ok(());
    }
    let detail = format!(
        "the .wasm makes witnesses of {}, the key has {expected}: they belong to different circuits",
        count(found, "wire")
    );
    Err(failure::circuit("circuit-mismatch", detail))
}

fn write_vk(vk: &VerifyingKey, shelf: &Shelf) -> Result<Digest, Failure> {
    let json = vk
        .to_json()
        .to_json()
        .map_err(|error| failure::circuit(error.code(), error.to_string()))?;
    shelf.create("verification key", |out| out.write_all(json.as_bytes()))
}

fn facts((setup, insecure): (serde_json::Value, bool), matrices: &Matrices) -> CircuitFacts {
    let csr = |csr: Option<&proofkeep_groth16::matrices::Csr>| csr.map_or(0, |csr| csr.terms() as u64);
    let terms = csr(Some(matrices.a())) + csr(Some(matrices.b())) + csr(matrices.c());
    CircuitFacts {
        constraints: matrices.constraints().unwrap_or(0).into(),
        wires: matrices.wires().into(),
        public: matrices.public(),
        domain_log2: matrices.log2(),
        key_bytes: key_bytes(KeyCounts {
            wires: matrices.wires().into(),
            public: matrices.public().into(),
            domain: 1 << matrices.log2(),
            terms,
        }),
        insecure,
        setup: setup.to_string(),
    }
}
