//! How the daemon is set up: defaults, then `proofkeep.toml`, then `PROOFKEEP_*`, then flags; the later one wins.
//!
//! An unknown key, a bad size or a bad duration is an error that names the file and the line, never a silent default.

mod listen;
mod quantity;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use listen::LISTEN;
pub use listen::Listen;
pub use quantity::{DURATION, SIZE, parse_duration, parse_size};
use serde::Deserialize;

/// Why a configuration can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file can't be read.
    #[error("{}: can't be read: {source}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file has an unknown key, or a value that can't be read; the text names the line.
    #[error("{}: {text}", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// What is wrong, with the line.
        text: String,
    },
    /// An environment variable or a flag can't be read.
    #[error("{name}: expected {expected}, found {found:?}")]
    Value {
        /// The variable or flag.
        name: String,
        /// What would do.
        expected: &'static str,
        /// What was there.
        found: String,
    },
    /// What is sent could be read on the way, tokens too.
    #[error(
        "listen: {0} is not a loopback address, and what is sent there can be read on the way: set tls_cert and tls_key, \
         listen on 127.0.0.1, or set allow_plain_http = true where the network between them is yours"
    )]
    NotLoopback(SocketAddr),
}

/// Everything that can be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where everything is kept.
    pub data_dir: PathBuf,
    /// Where HTTP is served.
    pub listen: Listen,
    /// Certificates for TLS, in PEM, the daemon's own first; with the key.
    pub tls_cert: Option<PathBuf>,
    /// The key of the first of them, in PEM.
    pub tls_key: Option<PathBuf>,
    /// Names in the `Host` header that are answered besides loopback ones.
    pub allowed_hosts: Vec<String>,
    /// Nobody is let in without a token, also on the daemon's own machine.
    pub require_token: bool,
    /// Addresses besides loopback ones are listened on although nothing is encrypted.
    pub allow_plain_http: bool,
    /// CPU devices: slots of each.
    pub cpu_devices: Vec<u32>,
    /// Threads of each CPU device.
    pub threads: u32,
    /// Bytes of memory for proofs and keys.
    pub memory: u64,
    /// Of those, bytes that only critical jobs may use.
    pub reserve_critical: u64,
    /// Ended jobs that are kept.
    pub max_jobs: u64,
    /// Save pieces of a proof when this much work is unsaved.
    pub checkpoint_after: Duration,
    /// How long a stop waits for work to reach an edge.
    pub grace: Duration,
    /// From the end of a check of the whole store to the next; zero: never.
    pub scrub_every: Duration,
    /// Connections at once.
    pub max_connections: usize,
    /// A client that sends no whole header, or reads nothing of its answer, for so long is hung up on.
    pub client_timeout: Duration,
    /// The largest upload, in bytes.
    pub max_upload: u64,
    /// The most memory that a circom calculator may use, in bytes.
    pub wasm_memory: u64,
    /// Fuel for one run of a circom calculator, about one an instruction.
    pub wasm_fuel: u64,
    /// Locally made keys, which anyone who knows the seed can forge proofs for, are accepted and used for new jobs.
    pub allow_insecure_setup: bool,
    /// Where the parameters of the Filecoin kinds lie; `None`: what the environment says.
    pub param_dir: Option<PathBuf>,
    /// Parameter files may have the name of a published one and another digest.
    pub allow_unofficial_params: bool,
    /// Keys that are loaded at the start and kept in memory: names of parameter files, or of kinds.
    pub pinned_params: Vec<String>,
}

/// The file as written; every key is optional.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    data_dir: Option<PathBuf>,
    listen: Option<toml::Spanned<String>>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    allowed_hosts: Option<Vec<String>>,
    require_token: Option<bool>,
    allow_plain_http: Option<bool>,
    cpu_devices: Option<Vec<u32>>,
    threads: Option<u32>,
    memory: Option<toml::Spanned<String>>,
    reserve_critical: Option<toml::Spanned<String>>,
    max_jobs: Option<u64>,
    checkpoint_after: Option<toml::Spanned<String>>,
    grace: Option<toml::Spanned<String>>,
    scrub_every: Option<toml::Spanned<String>>,
    max_connections: Option<usize>,
    client_timeout: Option<toml::Spanned<String>>,
    max_upload: Option<toml::Spanned<String>>,
    wasm_memory: Option<toml::Spanned<String>>,
    wasm_fuel: Option<u64>,
    allow_insecure_setup: Option<bool>,
    param_dir: Option<PathBuf>,
    allow_unofficial_params: Option<bool>,
    pinned_params: Option<Vec<String>>,
}

impl Config {
    /// What is set when nobody sets anything: one CPU device with two slots and every core, four fifths of the
    /// memory that this process may have, loopback.
    #[must_use]
    pub fn defaults() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
        Self {
            data_dir: PathBuf::from("proofkeep-data"),
            listen: Listen::Tcp(SocketAddr::from(([127, 0, 0, 1], 8420))),
            tls_cert: None,
            tls_key: None,
            allowed_hosts: Vec::new(),
            require_token: false,
            allow_plain_http: false,
            cpu_devices: vec![2],
            threads: u32::try_from(threads).unwrap_or(1),
            memory: proofkeep_engine::budget::machine_memory().default_budget(),
            reserve_critical: 0,
            max_jobs: 100_000,
            checkpoint_after: Duration::from_secs(1),
            grace: Duration::from_secs(20),
            scrub_every: Duration::from_secs(24 * 3600),
            max_connections: 4096,
            client_timeout: Duration::from_secs(60),
            max_upload: 64 << 30,
            wasm_memory: 256 << 20,
            wasm_fuel: 100_000_000_000,
            allow_insecure_setup: true,
            param_dir: None,
            allow_unofficial_params: false,
            pinned_params: Vec::new(),
        }
    }

    /// The same with what a file says.
    ///
    /// # Errors
    /// When the file can't be read or says something that isn't known.
    pub fn with_file(mut self, path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let malformed = |text: String| ConfigError::Malformed {
            path: path.to_owned(),
            text,
        };
        let file: File = toml::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        let at_line = |span: &toml::Spanned<String>, name: &str, expected: &str| {
            let line = text[..span.span().start].lines().count().max(1);
            malformed(format!(
                "line {line}: {name}: expected {expected}, found {:?}",
                span.get_ref()
            ))
        };
        let size = |value: Option<toml::Spanned<String>>, name: &str, into: &mut u64| match value {
            Some(span) => parse_size(span.get_ref())
                .map(|bytes| *into = bytes)
                .ok_or_else(|| at_line(&span, name, SIZE)),
            None => Ok(()),
        };
        let duration = |value: Option<toml::Spanned<String>>, name: &str, into: &mut Duration| match value {
            Some(span) => parse_duration(span.get_ref())
                .map(|duration| *into = duration)
                .ok_or_else(|| at_line(&span, name, DURATION)),
            None => Ok(()),
        };
        size(file.memory, "memory", &mut self.memory)?;
        size(
            file.reserve_critical,
            "reserve_critical",
            &mut self.reserve_critical,
        )?;
        size(file.max_upload, "max_upload", &mut self.max_upload)?;
        size(file.wasm_memory, "wasm_memory", &mut self.wasm_memory)?;
        duration(
            file.checkpoint_after,
            "checkpoint_after",
            &mut self.checkpoint_after,
        )?;
        duration(file.grace, "grace", &mut self.grace)?;
        duration(file.scrub_every, "scrub_every", &mut self.scrub_every)?;
        duration(file.client_timeout, "client_timeout", &mut self.client_timeout)?;
        if let Some(listen) = file.listen {
            self.listen = listen
                .get_ref()
                .parse()
                .map_err(|_| at_line(&listen, "listen", LISTEN))?;
        }
        self.data_dir = file.data_dir.unwrap_or(self.data_dir);
        self.tls_cert = file.tls_cert.or(self.tls_cert);
        self.tls_key = file.tls_key.or(self.tls_key);
        self.allowed_hosts = file.allowed_hosts.unwrap_or(self.allowed_hosts);
        self.require_token = file.require_token.unwrap_or(self.require_token);
        self.allow_plain_http = file.allow_plain_http.unwrap_or(self.allow_plain_http);
        self.cpu_devices = file.cpu_devices.unwrap_or(self.cpu_devices);
        self.threads = file.threads.unwrap_or(self.threads);
        self.max_connections = file.max_connections.unwrap_or(self.max_connections);
        self.max_jobs = file.max_jobs.unwrap_or(self.max_jobs);
        self.wasm_fuel = file.wasm_fuel.unwrap_or(self.wasm_fuel);
        self.allow_insecure_setup = file.allow_insecure_setup.unwrap_or(self.allow_insecure_setup);
        self.param_dir = file.param_dir.or(self.param_dir);
        self.allow_unofficial_params = file
            .allow_unofficial_params
            .unwrap_or(self.allow_unofficial_params);
        self.pinned_params = file.pinned_params.unwrap_or(self.pinned_params);
        Ok(self)
    }

    /// The same with what `PROOFKEEP_*` variables say; `get` reads one.
    ///
    /// # Errors
    /// When a value can't be read.
    pub fn with_environment(mut self, get: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        set(
            &get,
            "PROOFKEEP_DATA_DIR",
            "a directory",
            |text| Some(text.into()),
            &mut self.data_dir,
        )?;
        set(
            &get,
            "PROOFKEEP_LISTEN",
            LISTEN,
            |text| text.parse().ok(),
            &mut self.listen,
        )?;
        for (name, into) in [
            ("PROOFKEEP_TLS_CERT", &mut self.tls_cert),
            ("PROOFKEEP_TLS_KEY", &mut self.tls_key),
            ("PROOFKEEP_PARAM_DIR", &mut self.param_dir),
        ] {
            set(&get, name, "a path", |text| Some(Some(text.into())), into)?;
        }
        set(
            &get,
            "PROOFKEEP_ALLOWED_HOSTS",
            "names, with commas between them",
            names,
            &mut self.allowed_hosts,
        )?;
        for (name, into) in [
            ("PROOFKEEP_REQUIRE_TOKEN", &mut self.require_token),
            ("PROOFKEEP_ALLOW_PLAIN_HTTP", &mut self.allow_plain_http),
            ("PROOFKEEP_ALLOW_INSECURE_SETUP", &mut self.allow_insecure_setup),
            (
                "PROOFKEEP_ALLOW_UNOFFICIAL_PARAMS",
                &mut self.allow_unofficial_params,
            ),
        ] {
            set(&get, name, "true or false", |text| text.parse().ok(), into)?;
        }
        set(
            &get,
            "PROOFKEEP_CPU_DEVICES",
            "slots of each device, like 2 or 1,1",
            parse_slots,
            &mut self.cpu_devices,
        )?;
        set(
            &get,
            "PROOFKEEP_THREADS",
            "a number of threads",
            |text| text.parse().ok(),
            &mut self.threads,
        )?;
        set(&get, "PROOFKEEP_MEMORY", SIZE, parse_size, &mut self.memory)?;
        set(
            &get,
            "PROOFKEEP_RESERVE_CRITICAL",
            SIZE,
            parse_size,
            &mut self.reserve_critical,
        )?;
        set(
            &get,
            "PROOFKEEP_MAX_JOBS",
            "a number of jobs",
            |text| text.parse().ok(),
            &mut self.max_jobs,
        )?;
        set(
            &get,
            "PROOFKEEP_CHECKPOINT_AFTER",
            DURATION,
            parse_duration,
            &mut self.checkpoint_after,
        )?;
        set(&get, "PROOFKEEP_GRACE", DURATION, parse_duration, &mut self.grace)?;
        set(
            &get,
            "PROOFKEEP_SCRUB_EVERY",
            DURATION,
            parse_duration,
            &mut self.scrub_every,
        )?;
        set(
            &get,
            "PROOFKEEP_MAX_CONNECTIONS",
            "a number of connections",
            |text| text.parse().ok(),
            &mut self.max_connections,
        )?;
        set(
            &get,
            "PROOFKEEP_CLIENT_TIMEOUT",
            DURATION,
            parse_duration,
            &mut self.client_timeout,
        )?;
        set(
            &get,
            "PROOFKEEP_MAX_UPLOAD",
            SIZE,
            parse_size,
            &mut self.max_upload,
        )?;
        set(
            &get,
            "PROOFKEEP_WASM_MEMORY",
            SIZE,
            parse_size,
            &mut self.wasm_memory,
        )?;
        set(
            &get,
            "PROOFKEEP_WASM_FUEL",
            "a number",
            |text| text.parse().ok(),
            &mut self.wasm_fuel,
        )?;
        set(
            &get,
            "PROOFKEEP_PINNED_PARAMS",
            "names, with commas between them",
            names,
            &mut self.pinned_params,
        )?;
        Ok(self)
    }

    /// Checks what only the whole can tell.
    ///
    /// # Errors
    /// When the address isn't loopback and nothing says that this is meant, or a number is out of range.
    pub fn checked(self) -> Result<Self, ConfigError> {
        if let Listen::Tcp(address) = self.listen
            && !address.ip().is_loopback()
            && !self.allow_plain_http
            && self.tls_cert.is_none()
        {
            return Err(ConfigError::NotLoopback(address));
        }
        let value = |name: &str, expected, found: String| {
            Err(ConfigError::Value {
                name: name.to_owned(),
                expected,
                found,
            })
        };
        match (&self.tls_cert, &self.tls_key) {
            (None, None) => {}
            (Some(_), Some(_)) if matches!(self.listen, Listen::Tcp(_)) => {}
            (Some(_), Some(_)) => {
                let expected = "none for a socket in the file system, whose owner alone can use it";
                return value("tls_cert", expected, self.listen.to_string());
            }
            (Some(found), None) => {
                return value("tls_key", "the key of tls_cert", found.display().to_string());
            }
            (None, Some(found)) => {
                return value(
                    "tls_cert",
                    "the certificates of tls_key",
                    found.display().to_string(),
                );
            }
        }
        let slots = self
            .cpu_devices
            .iter()
            .fold(0, |sum: u32, slots| sum.saturating_add(*slots));
        if self.cpu_devices.is_empty() || self.cpu_devices.contains(&0) || slots > MAX_SLOTS {
            let expected = "at least one slot for each device, at most 32 in all";
            return value("cpu_devices", expected, format!("{:?}", self.cpu_devices));
        }
        if !(1..=1024).contains(&self.threads) {
            return value("threads", "1 to 1024", self.threads.to_string());
        }
        if !(1..=MAX_CONNECTIONS).contains(&self.max_connections) {
            return value("max_connections", "1 to 100000", self.max_connections.to_string());
        }
        if self.client_timeout < Duration::from_secs(1) {
            return value(
                "client_timeout",
                "at least 1s",
                format!("{:?}", self.client_timeout),
            );
        }
        if self.reserve_critical > self.memory {
            let expected = "at most what memory says, of which it is a part";
            return value(
                "reserve_critical",
                expected,
                format!("{} bytes", self.reserve_critical),
            );
        }
        Ok(self)
    }
}

/// Each takes a descriptor and some memory.
const MAX_CONNECTIONS: usize = 100_000;

/// Slots of all devices together; so many open attempts still end in one transaction when the daemon starts again.
const MAX_SLOTS: u32 = 32;

/// Slots of each CPU device: `2`, or `1,1`.
#[must_use]
pub fn parse_slots(text: &str) -> Option<Vec<u32>> {
    text.split(',').map(|part| part.trim().parse().ok()).collect()
}

fn names(text: &str) -> Option<Vec<String>> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    Some(names.map(str::to_owned).collect())
}

fn set<T>(
    get: impl Fn(&str) -> Option<String>,
    name: &str,
    expected: &'static str,
    parse: impl Fn(&str) -> Option<T>,
    into: &mut T,
) -> Result<(), ConfigError> {
    if let Some(found) = get(name) {
        *into = parse(&found).ok_or(ConfigError::Value {
            name: name.to_owned(),
            expected,
            found,
        })?;
    }
    Ok(())
}
