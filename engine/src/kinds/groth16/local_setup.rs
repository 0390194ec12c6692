//! `"setup": "insecure-local"`: the key of a circuit, made here from fresh randomness, in a worker process.
//!
//! The key becomes an object of its own. It is the circuit's only once the import that made it has ended: an import
//! that is cut off leaves an object that no record names (it is swept), and the next try makes another key.

use std::io::ErrorKind;
use std::ops::ControlFlow;

use proofkeep_formats::r1cs::R1cs;
use proofkeep_groth16::memory::{KeyCounts, TERM_BYTES, key_bytes, setup_bytes};
use proofkeep_groth16::setup::{SetupError, insecure_setup};
use proofkeep_store::ids::Digest;
use proofkeep_store::records::{CircuitFacts, Failure};
use rand::RngCore as _;
use rand::rngs::OsRng;
use zeroize::Zeroizing;

use super::failure;
use crate::device::Threads;
use crate::kinds::Watch;
use crate::shelf::{Shelf, io_failure};

/// The name of this setup in descriptions and answers.
pub const INSECURE_LOCAL: &str = "insecure-local";

/// Bytes of memory that making the key of such a circuit takes at most.
#[must_use]
pub fn local_setup_bytes(facts: &CircuitFacts) -> u64 {
    let bare = KeyCounts {
        wires: facts.wires,
        public: facts.public.into(),
        domain: 1 << facts.domain_log2.min(63),
        terms: 0,
    };
    // The facts don't say the terms, but the size of the key follows from them.
    let terms = facts.key_bytes.saturating_sub(key_bytes(bare)) / TERM_BYTES;
    setup_bytes(KeyCounts { terms, ..bare })
}

/// A key that was made.
pub(super) struct Made {
    /// The object.
    pub zkey: Digest,
    /// Points that were made for it.
    pub points: u64,
}

/// Makes a key; `made` hears how many points are.
///
/// # Errors
/// `circuit_failed` when the constraints are refused, `device_error` when the disk refuses, or the watch's reason.
pub(super) fn make(
    r1cs: Digest,
    shelf: &Shelf,
    threads: &Threads,
    watch: &dyn Watch,
    made: &mut dyn FnMut(u64),
) -> Result<Made, Failure> {
    let mut alive = || {
        watch.progress(0);
        watch.stopped().map_or(Ok(()), Err)
    };
    let map = shelf.map_verified(r1cs, ".r1cs", &mut alive)?;
    let r1cs = R1cs::parse(&map).map_err(|error| failure::circuit(error.code(), error.to_string()))?;
    let mut seed = Zeroizing::new([0; 32]);
    OsRng
        .try_fill_bytes(&mut *seed)
        .map_err(|error| io_failure("asking the system for randomness", &error.into()))?;
    let mut points = 0;
    let mut progress = |done: u64, total: u64| {
        points = total;
        made(done);
        watch.progress(u16::try_from((1000 * done).checked_div(total).unwrap_or(1000)).unwrap_or(1000));
        if watch.stopped().is_some() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let zkey = shelf.create_seeking("proving key", &mut || watch.progress(1000), |file| {
        insecure_setup(&r1cs, &*seed, file, threads.backend(), &mut progress)
            .map_err(|error| refused(&error, watch))
    })?;
    Ok(Made { zkey, points })
}

fn refused(error: &SetupError, watch: &dyn Watch) -> Failure {
    match error {
        SetupError::Matrices(error) => failure::circuit(error.code(), error.to_string()),
        // Not the disk's word but the writer's: a key of such counts doesn't exist.
        SetupError::Io(error)
            if error.kind() == ErrorKind::InvalidInput && error.raw_os_error().is_none() =>
        {
            failure::circuit(
                "no-such-key",
                format!("no key can be made for this circuit: {error}"),
            )
        }
        SetupError::Io(error) => io_failure("writing the proving key", error),
        SetupError::Stopped(_) => failure::stopped(watch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_setup_follows_from_what_is_known_of_the_circuit() {
        let counts = KeyCounts {
            wires: 1000,
            public: 7,
            domain: 2048,
            terms: 12_345,
        };
        let facts = CircuitFacts {
            constraints: 1500,
            wires: counts.wires,
            public: 7,
            domain_log2: 11,
            key_bytes: key_bytes(counts),
            insecure: true,
            setup: String::new(),
        };
        assert_eq!(local_setup_bytes(&facts), setup_bytes(counts));
    }
}
