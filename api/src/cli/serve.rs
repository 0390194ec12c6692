//! `serve`: the daemon. Defaults, then `proofkeep.toml`, then `PROOFKEEP_*`, then these flags.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::arguments;
use super::exit::{CliError, Exit};
use super::out::Out;
use crate::config::{Config, ConfigError, Listen, parse_slots};
use crate::daemon;
use crate::options::Options;

/// Read without being asked for, if it is there.
const FILE: &str = "proofkeep.toml";

#[derive(Debug, Args)]
#[command(
    after_help = "Example: proofkeep serve --data-dir ./data --listen 127.0.0.1:8420\n\n\
                  Everything can also stand in proofkeep.toml (data_dir = \"./data\") or in the environment\n\
                  (PROOFKEEP_DATA_DIR=./data); flags win. SIGINT or SIGTERM ends it within the grace period, a second\n\
                  one at once. PROOFKEEP_LOG=debug shows more."
)]
pub struct Serve {
    /// A configuration file instead of ./proofkeep.toml
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where everything is kept [default: proofkeep-data]
    #[arg(long, alias = "data", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Where HTTP is served: an address, whose port 0 picks one and prints it, or unix:/path for a
    /// socket of yours alone [default: 127.0.0.1:8420]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<Listen>,
    /// Certificates in PEM, to serve HTTPS; SIGHUP reads them and the key again
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// Their key in PEM
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// A name in the Host header that is answered besides loopback ones
    #[arg(long = "allowed-host", value_name = "NAME")]
    allowed_hosts: Vec<String>,
    /// Whether nobody is let in without a token, also on this machine: for a proxy in front, or several
    /// users [default: false]
    #[arg(long, value_name = "BOOL")]
    require_token: Option<bool>,
    /// Whether addresses besides loopback ones are listened on although nothing is encrypted [default: false]
    #[arg(long, value_name = "BOOL")]
    allow_plain_http: Option<bool>,
    /// Slots of each CPU device: 2, or 1,1 for two devices [default: 2]
    #[arg(long, value_name = "SLOTS", value_parser = slots)]
    cpu_devices: Option<Slots>,
    /// Threads of each CPU device [default: all]
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// Memory for proofs and keys, like 8GiB [default: four fifths of what there is]
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    memory: Option<u64>,
    /// Of it, kept free for critical jobs, like 1GiB [default: 0]
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    reserve_critical: Option<u64>,
    /// Ended jobs that are kept [default: 100000]
    #[arg(long, value_name = "N")]
    max_jobs: Option<u64>,
    /// Save the pieces of a proof once this much work is unsaved [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    checkpoint_after: Option<Duration>,
    /// How long a stop waits for work to reach an edge [default: 20s]
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    grace: Option<Duration>,
    /// The whole store is checked, a little at a time, so long after it was last; 0s: never [default: 24h]
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    scrub_every: Option<Duration>,
    /// Connections at once; one more is told to come back [default: 4096, at most half of the
    /// open files that the system allows]
    #[arg(long, value_name = "N")]
    max_connections: Option<usize>,
    /// A client that sends no whole header, or reads nothing, for so long is hung up on [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    client_timeout: Option<Duration>,
    /// The largest upload [default: 64GiB]
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    max_upload: Option<u64>,
    /// The most memory of a circom calculator [default: 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    wasm_memory: Option<u64>,
    /// The most instructions, about, that a circom calculator may run
    #[arg(long, value_name = "N")]
    wasm_fuel: Option<u64>,
    /// Whether keys that came from no ceremony are accepted and used for new jobs [default: true]
    #[arg(long, value_name = "BOOL")]
    allow_insecure_setup: Option<bool>,
    /// Where the parameters of the Filecoin kinds lie [default: $FIL_PROOFS_PARAMETER_CACHE, else
    /// /var/tmp/filecoin-proof-parameters]
    #[arg(long, value_name = "DIR")]
    param_dir: Option<PathBuf>,
    /// Whether a parameter file may have the name of a published one and another digest [default: false]
    #[arg(long, value_name = "BOOL")]
    allow_unofficial_params: Option<bool>,
    /// A parameter file, or a kind like winning-post, whose keys are loaded at the start and kept in memory
    #[arg(long = "pin-params", value_name = "NAME")]
    pinned_params: Vec<String>,
}

#[derive(Clone, Debug)]
struct Slots(Vec<u32>);

impl Serve {
    fn configuration(self) -> Result<Config, ConfigError> {
        let mut config = Config::defaults();
        match &self.config {
            Some(file) => config = config.with_file(file)?,
            None if Path::new(FILE).is_file() => config = config.with_file(Path::new(FILE))?,
            None => {}
        }
        config = config.with_environment(|name| std::env::var(name).ok())?;
        if !self.allowed_hosts.is_empty() {
            config.allowed_hosts = self.allowed_hosts;
        }
        set(self.data_dir, &mut config.data_dir);
        set(self.listen, &mut config.listen);
        set(self.tls_cert.map(Some), &mut config.tls_cert);
        set(self.tls_key.map(Some), &mut config.tls_key);
        set(self.require_token, &mut config.require_token);
        set(self.allow_plain_http, &mut config.allow_plain_http);
        set(self.cpu_devices.map(|slots| slots.0), &mut config.cpu_devices);
        set(self.threads, &mut config.threads);
        set(self.memory, &mut config.memory);
        set(self.reserve_critical, &mut config.reserve_critical);
        set(self.max_jobs, &mut config.max_jobs);
        set(self.checkpoint_after, &mut config.checkpoint_after);
        set(self.grace, &mut config.grace);
        set(self.scrub_every, &mut config.scrub_every);
        set(self.max_connections, &mut config.max_connections);
        set(self.client_timeout, &mut config.client_timeout);
        set(self.max_upload, &mut config.max_upload);
        set(self.wasm_memory, &mut config.wasm_memory);
        set(self.wasm_fuel, &mut config.wasm_fuel);
        set(self.allow_insecure_setup, &mut config.allow_insecure_setup);
        set(self.param_dir.map(Some), &mut config.param_dir);
        set(self.allow_unofficial_params, &mut config.allow_unofficial_params);
        if !self.pinned_params.is_empty() {
            config.pinned_params = self.pinned_params;
        }
        config.checked()
    }
}

fn set<T>(flag: Option<T>, into: &mut T) {
    if let Some(value) = flag {
        *into = value;
    }
}

pub fn run(command: Serve, options: &Options, out: &Out) -> ExitCode {
    let config = match command.configuration() {
        Ok(config) => config,
        Err(error) => {
            out.error(&CliError {
                code: "config".to_owned(),
                ..CliError::usage(error.to_string())
            });
            return Exit::Usage.into();
        }
    };
    match daemon::run(config, options) {
        Ok(()) => Exit::Done.into(),
        Err(error) => {
            out.error(&CliError::failed(error.code(), error.to_string()));
            ExitCode::from(error.exit_code())
        }
    }
}

fn slots(text: &str) -> Result<Slots, String> {
    parse_slots(text)
        .map(Slots)
        .ok_or_else(|| "expected slots of each device, like 2 or 1,1".to_owned())
}
