//! `prove winning-post vanilla.json` and the like: a job of a Filecoin kind, from a file to the bytes that the chain takes.

use std::path::Path;

use clap::Args;
use proofkeep_filecoin::circuit::KINDS;
use serde_json::{Map, Value, json};

use super::exit::{CliError, Exit};
use super::files::{self, Audience};
use super::out::Out;
use super::server::{exit_of, text};
use super::show;
use super::submit::{How, common};
use super::wait::until_ended;

/// What a Filecoin job is about. Which fields a kind takes, the daemon says.
#[derive(Debug, Args)]
#[command(next_help_heading = "Filecoin kinds")]
pub struct Fields {
    /// The miner: 1000, f01000 or t01000
    #[arg(long = "miner", value_name = "ID")]
    miner_id: Option<String>,
    /// The prover's id instead: 32 bytes in hex or base64
    #[arg(long, value_name = "BYTES")]
    prover_id: Option<String>,
    /// The chain's randomness: 32 bytes in hex or base64
    #[arg(long, value_name = "BYTES")]
    randomness: Option<String>,
    /// The registered proof, by its name
    #[arg(long, value_name = "NAME")]
    registered_proof: Option<String>,
    /// The size of a sector instead, as in 2KiB
    #[arg(long, value_name = "SIZE")]
    sector_size: Option<String>,
    /// The sector's number
    #[arg(long, value_name = "N")]
    sector_number: Option<u64>,
    /// Exactly this partition of a WindowPoSt
    #[arg(long, value_name = "N")]
    partition_index: Option<u64>,
    /// Partitions of a PoRep, if not as many as the chain wants
    #[arg(long, value_name = "N")]
    partitions: Option<u64>,
    /// What commits to the old replica
    #[arg(long, value_name = "BYTES")]
    comm_r_old: Option<String>,
    /// What commits to the new one
    #[arg(long, value_name = "BYTES")]
    comm_r_new: Option<String>,
    /// What commits to the new data
    #[arg(long, value_name = "BYTES")]
    comm_d_new: Option<String>,
}

/// Whether a circuit's name is that of a Filecoin kind.
pub fn is_kind(name: &str) -> bool {
    KINDS.contains(&name)
}

/// Uploads the vanilla proofs, submits, waits, and writes the joined proof: 192 bytes for each partition.
pub fn prove(
    kind: &str,
    fields: &Fields,
    input: &Path,
    proof: &Path,
    how: &How,
    out: &Out,
) -> Result<Exit, CliError> {
    files::expect_places(&[proof])?;
    let client = how.server.client()?;
    let mut body = fields.to_json();
    let name = match kind {
        "porep-c2" => "vanilla_proof",
        _ => "vanilla_proofs",
    };
    body.insert("kind".to_owned(), kind.into());
    body.insert(name.to_owned(), client.upload_file(input)?.into());
    let id = text(&common(&client, body, how)?["id"]);
    out.note(&format!("job {id}"));
    let ended = until_ended(&client, &id, how.patience.timeout, out)?;
    if exit_of(&ended) != Exit::Done {
        out.data(&ended, || show::text(&ended));
        return Ok(exit_of(&ended));
    }
    let bytes = client.get_bytes(&format!("/v1/jobs/{id}/proof?format=bytes"))?;
    files::write(proof, Audience::Anyone, &bytes)?;
    let value = json!({ "job": id, "proof": proof, "bytes": bytes.len() });
    out.data(&value, || {
        format!("{}: {} bytes, proved by job {id}", proof.display(), bytes.len())
    });
    Ok(Exit::Done)
}

impl Fields {
    fn to_json(&self) -> Map<String, Value> {
        let texts = [
            ("miner_id", &self.miner_id),
            ("prover_id", &self.prover_id),
            ("randomness", &self.randomness),
            ("registered_proof", &self.registered_proof),
            ("sector_size", &self.sector_size),
            ("comm_r_old", &self.comm_r_old),
            ("comm_r_new", &self.comm_r_new),
            ("comm_d_new", &self.comm_d_new),
        ];
        let numbers = [
            ("sector_number", self.sector_number),
            ("partition_index", self.partition_index),
            ("partitions", self.partitions),
        ];
        let texts = texts
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_deref()?.into())));
        let numbers = numbers
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?.into())));
        texts
            .chain(numbers)
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}
