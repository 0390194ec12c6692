//! `groth16 setup circuit.r1cs pot.ptau`: the first key of a ceremony.

use std::io::{BufWriter, Write as _};
use std::ops::ControlFlow;
use std::path::Path;

use proofkeep_formats::ptau::Ptau;
use proofkeep_formats::r1cs::R1cs;
use proofkeep_groth16::backend::BlstBackend;
use proofkeep_groth16::setup::{CeremonyError, ceremony_setup};
use serde_json::json;

use super::super::exit::{CliError, Exit};
use super::super::files::{self, Audience};
use super::super::out::Out;

/// Makes the first key and says that it isn't finished.
pub fn run(r1cs: &Path, ptau: &Path, zkey: &Path, threads: u32, out: &Out) -> Result<Exit, CliError> {
    files::expect_places(&[zkey])?;
    let (r1cs_bytes, ptau_bytes) = (files::map(r1cs)?, files::map(ptau)?);
    let circuit = R1cs::parse(&r1cs_bytes).map_err(|error| CliError::from(error).about(r1cs.display()))?;
    let powers = Ptau::parse(&ptau_bytes).map_err(|error| CliError::from(error).about(ptau.display()))?;
    let backend = BlstBackend::new(threads as usize)
        .map_err(|error| CliError::failed("device-unavailable", error.to_string()))?;
    let failed = |error: CeremonyError| {
        let about = match &error {
            CeremonyError::Circuit(_) => r1cs,
            CeremonyError::Io(_) | CeremonyError::Stopped(_) => zkey,
            _ => ptau,
        };
        CliError::failed(error.code(), error.to_string()).about(about.display())
    };
    let (mut length, mut hash) = (0, String::new());
    files::replace(zkey, Audience::Anyone, |file| {
        let mut show = |done: u64, total: u64| {
            out.progress(&format!(
                "making the key: {done} of {total} points checked or made"
            ));
            ControlFlow::Continue(())
        };
        let mut made =
            ceremony_setup(&circuit, &powers, BufWriter::new(file), &backend, &mut show).map_err(failed)?;
        made.out.flush().map_err(|error| failed(error.into()))?;
        out.progress_done();
        hash = made
            .circuit_hash
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let metadata = made.out.get_ref().metadata();
        length = metadata.map_err(|error| failed(error.into()))?.len();
        Ok(())
    })?;
    out.note(&unfinished(zkey));
    let value = json!({
        "zkey": zkey, "bytes": length, "unfinished": true, "circuit_hash": hash,
        "ptau_power": powers.power, "ptau_contributions": powers.contributions.len(),
    });
    out.data(&value, || {
        format!(
            "{}: the first key of a ceremony, {length} bytes, not to be used yet\ncircuit hash: {hash}",
            zkey.display()
        )
    });
    Ok(Exit::Done)
}

/// What such a key is good for, and what comes next.
fn unfinished(zkey: &Path) -> String {
    format!(
        "warning: {key} is unfinished: anyone can forge proofs under it until somebody contributes to it, and proofkeep \
         does not take it before. Next: snarkjs zkey contribute {key} circuit_0001.zkey",
        key = zkey.display()
    )
}
