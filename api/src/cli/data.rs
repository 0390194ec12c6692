//! A data directory, opened by a command while no daemon has it.

use std::path::{Path, PathBuf};

use clap::Args;
use proofkeep_store::{OpenError, Options, Store};

use super::exit::CliError;

/// Which data directory.
#[derive(Debug, Args)]
pub struct DataDir {
    /// The data directory [default: $PROOFKEEP_DATA_DIR, else proofkeep-data]
    #[arg(long, alias = "data", value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl DataDir {
    /// Its path.
    pub fn path(&self) -> PathBuf {
        let environment = || std::env::var_os("PROOFKEEP_DATA_DIR").map(PathBuf::from);
        self.data_dir
            .clone()
            .or_else(environment)
            .unwrap_or_else(|| PathBuf::from("proofkeep-data"))
    }

    /// Opens what is there; `instead` names the commands that ask a running daemon for the same.
    pub fn open(&self, instead: &str) -> Result<Store, CliError> {
        let path = self.path();
        Store::open(&path, &options()).map_err(|error| refused(error, &path, instead))
    }
}

/// Bytes of memory for a database that a command opens.
pub const CACHE: u64 = 64 << 20;

/// How a command opens a store.
pub fn options() -> Options {
    Options {
        create: false,
        cache_bytes: CACHE,
        ..Options::default()
    }
}

/// Why a data directory can't be opened; if a daemon has it, with what to use instead.
pub fn refused(error: OpenError, path: &Path, instead: &str) -> CliError {
    let detail = match &error {
        OpenError::Locked { pid, .. } => {
            format!("pid {pid} has {}; {instead}", path.display())
        }
        _ => error.to_string(),
    };
    CliError::failed(code(&error), detail)
}

/// The stable code of that.
pub fn code(error: &OpenError) -> &'static str {
    match error {
        OpenError::Locked { .. } => "data-dir-in-use",
        OpenError::NotThere { .. } => "data-dir-missing",
        OpenError::Older { .. } => "schema-older",
        OpenError::Newer { .. } => "schema-newer",
        _ => "data-dir-unusable",
    }
}
