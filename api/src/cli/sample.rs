//! `filecoin sample`: an input of a Filecoin kind for trials, and the command that proves it.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use proofkeep_filecoin::circuit::KINDS;
use proofkeep_filecoin::sample::{Sample, SampleError};
use proofkeep_filecoin::sector::size_of;
use serde_json::{Value, json};

use super::exit::{CliError, Exit};
use super::out::Out;

/// What to do for the Filecoin kinds.
#[derive(Debug, Subcommand)]
pub enum Filecoin {
    /// Make an input for trials: seal sectors of random data, and write what a miner would send
    Sample(Words),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example: proofkeep filecoin sample --kind window-post --sector-size 2KiB --out sample\n\n\
                  Writes vanilla.bincode and request.json (the other fields) into the directory, and says on stdout how\n\
                  to have it proved. The sectors are sealed in a directory beside them, which is removed. The published code keeps the parents of\n\
                  its graphs in FIL_PROOFS_PARENT_CACHE (/var/tmp/filecoin-parents if not set)."
)]
pub struct Words {
    /// Which kind
    #[arg(long, value_parser = KINDS)]
    kind: String,
    /// The size of a sector, 16MiB at most
    #[arg(long, value_name = "SIZE")]
    sector_size: String,
    /// Partitions of a PoRep, if not as many as the chain wants; only for porep-c2
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16))]
    partitions: Option<u8>,
    /// Sectors of a WindowPoSt
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1024))]
    sectors: u64,
    /// The directory; made if it is missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

pub fn run(command: &Filecoin, out: &Out) -> Result<Exit, CliError> {
    let Filecoin::Sample(words) = command;
    let size = size_of(&words.sector_size)
        .ok_or_else(|| CliError::usage("--sector-size: expected a sector size, as in 2KiB"))?;
    if words.partitions.is_some() && words.kind != "porep-c2" {
        return Err(CliError::usage("--partitions is for --kind porep-c2"));
    }
    let unwritable =
        |error: std::io::Error| CliError::failed("unwritable", format!("{}: {error}", words.out.display()));
    std::fs::create_dir_all(&words.out).map_err(unwritable)?;
    let scratch = tempfile::tempdir_in(&words.out).map_err(unwritable)?;
    let sample = Sample {
        kind: words.kind.clone(),
        size,
        partitions: words.partitions,
        sectors: words.sectors,
    };
    let made = sample.make(scratch.path()).map_err(failed)?;
    scratch.close().map_err(unwritable)?;
    let file = words.out.join("vanilla.bincode");
    std::fs::write(&file, &made.proofs).map_err(unwritable)?;
    let fields = Value::Object(made.fields.clone());
    std::fs::write(words.out.join("request.json"), format!("{fields:#}\n")).map_err(unwritable)?;
    let flags = made.fields.iter().map(|(name, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!(" --{} {value}", name.replace('_', "-"))
    });
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', "'\\''"));
    let prove = format!(
        "proofkeep prove {} {}{} --proof {}",
        words.kind,
        quoted(&file),
        flags.collect::<String>(),
        quoted(&words.out.join("proof"))
    );
    let value = json!({ "file": file, "bytes": made.proofs.len(), "fields": fields, "prove": prove });
    out.data(&value, || prove.clone());
    Ok(Exit::Done)
}

fn failed(error: SampleError) -> CliError {
    match &error {
        SampleError::Invalid(invalid) => CliError::usage(invalid.to_string()),
        SampleError::Published(_) => CliError::failed("sample", error.to_string()),
        SampleError::Io { .. } => CliError::failed("unwritable", error.to_string()),
    }
}
