//! `proof`: what a job has proved.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::arguments;
use super::exit::{CliError, Exit};
use super::files::{self, Audience};
use super::out::Out;
use super::server::Server;
use crate::client::{Client, escape};

#[derive(Debug, Args)]
#[command(after_help = "Example: proofkeep proof 0197c4a2-… --out proofs\n\n\
                  Without --out the proof is on stdout: of a job of one input an object, else a list. With --out DIR each\n\
                  partition that is proved so far becomes proof.json and public.json (proof_K.json and public_K.json if\n\
                  there are several).")]
pub struct Proof {
    /// The job's id
    #[arg(value_parser = arguments::name())]
    job: String,
    /// Only this partition
    #[arg(long, value_name = "K")]
    partition: Option<u32>,
    /// The public signals instead of the proof
    #[arg(long)]
    public: bool,
    /// How it is written; for public signals snarkjs is JSON and bytes are big-endian
    #[arg(long, value_enum, default_value_t = Format::Snarkjs)]
    format: Format,
    /// Write snarkjs's files into this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["public", "format"])]
    out: Option<PathBuf>,
    #[command(flatten)]
    server: Server,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// JSON as snarkjs writes it
    Snarkjs,
    /// 192 bytes of compressed points
    Bytes,
    /// The same in hexadecimal
    Hex,
    /// 384 bytes of uncompressed points
    Uncompressed,
}

pub fn run(command: &Proof, out: &Out) -> Result<Exit, CliError> {
    let client = command.server.client()?;
    if let Some(directory) = &command.out {
        return write_all(&client, command, directory, out);
    }
    let what = if command.public { "public" } else { "proof" };
    let format = match (command.public, command.format) {
        (true, Format::Snarkjs) => "json",
        (true, Format::Bytes) => "bytes-be",
        (true, _) => return Err(CliError::usage("public signals come as snarkjs or bytes")),
        (false, Format::Snarkjs) => "snarkjs",
        (false, Format::Bytes) => "bytes",
        (false, Format::Hex) => "hex",
        (false, Format::Uncompressed) => "uncompressed",
    };
    let of = command
        .partition
        .map_or_else(String::new, |index| format!("/partitions/{index}"));
    let path = format!("/v1/jobs/{}{of}/{what}?format={format}", escape(&command.job));
    let bytes = client.get_bytes(&path)?;
    if matches!(command.format, Format::Bytes | Format::Uncompressed) {
        out.bytes(&bytes);
        return Ok(Exit::Done);
    }
    // The hexadecimal of one proof is plain text, everything else is JSON.
    let plain = || Value::String(String::from_utf8_lossy(&bytes).trim().to_owned());
    let value = match bytes.first() {
        Some(b'[' | b'{') => serde_json::from_slice(&bytes).unwrap_or_else(|_| plain()),
        _ => plain(),
    };
    out.data(&value, || {
        value.as_str().map_or_else(|| format!("{value:#}"), str::to_owned)
    });
    Ok(Exit::Done)
}

/// One proved partition.
#[derive(Debug)]
pub struct Proved {
    /// Which.
    pub index: u64,
    proof: Value,
    public: Value,
}

impl Proved {
    /// Writes both files as snarkjs reads them.
    pub fn write(&self, proof: &Path, public: &Path) -> Result<(), CliError> {
        files::write(proof, Audience::Anyone, format!("{:#}\n", self.proof).as_bytes())?;
        files::write(
            public,
            Audience::Anyone,
            format!("{:#}\n", self.public).as_bytes(),
        )
    }
}

/// What a job has proved so far.
pub fn results(client: &Client, job: &str) -> Result<Vec<Proved>, CliError> {
    let text = client.get_bytes(&format!("/v1/jobs/{}/results?format=ndjson", escape(job)))?;
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| {
            let strange = || {
                CliError::failed(
                    "not-proofkeep",
                    "the daemon's results are not what this build knows",
                )
            };
            let mut value: Value = serde_json::from_slice(line).map_err(|_| strange())?;
            let index = value["index"].as_u64().ok_or_else(strange)?;
            Ok(Proved {
                index,
                proof: value["proof"].take(),
                public: value["publicSignals"].take(),
            })
        })
        .collect()
}

/// Writes a job's proofs into a directory; answers the files' names.
pub fn write_results(
    client: &Client,
    job: &str,
    only: Option<u32>,
    directory: &Path,
) -> Result<Vec<Value>, CliError> {
    let shown = client.get(&format!("/v1/jobs/{}", escape(job)), &[])?.body;
    let single = shown["summary"]["total"].as_u64() == Some(1);
    fs::create_dir_all(directory).map_err(|error| {
        let detail = format!("{} can't be made a directory: {error}", directory.display());
        CliError::failed("unwritable", detail)
    })?;
    let mut written = Vec::new();
    for proved in results(client, job)?
        .iter()
        .filter(|proved| only.is_none_or(|only| u64::from(only) == proved.index))
    {
        let name = |what: &str| {
            directory.join(if single {
                format!("{what}.json")
            } else {
                format!("{what}_{}.json", proved.index)
            })
        };
        let (proof, public) = (name("proof"), name("public"));
        proved.write(&proof, &public)?;
        written.push(json!({ "partition": proved.index, "proof": proof, "public": public }));
    }
    Ok(written)
}

fn write_all(client: &Client, command: &Proof, directory: &Path, out: &Out) -> Result<Exit, CliError> {
    let written = write_results(client, &command.job, command.partition, directory)?;
    if written.is_empty() {
        return Err(CliError::failed(
            "not-ready",
            "nothing of that is proved yet; proofkeep wait waits for it",
        ));
    }
    let lines: Vec<String> = written
        .iter()
        .map(|files| {
            format!(
                "{}  {}",
                super::server::text(&files["proof"]),
                super::server::text(&files["public"])
            )
        })
        .collect();
    out.data(&Value::Array(written), || lines.join("\n"));
    Ok(Exit::Done)
}
