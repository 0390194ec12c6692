//! The daemon: HTTP in front, the engine behind it, and an orderly end.
//!
//! 1. The data directory is locked: a second daemon on it ends here and never says that it listens.
//! 2. The listener opens before the database does, so that a client is told "starting" and isn't refused.
//! 3. The engine opens the database and recovers.
//! 4. It works until SIGINT or SIGTERM.
//! 5. It claims nothing new, lets work reach an edge within the grace period, closes the boot, and the process ends with
//!    0. A second signal ends it at once.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proofkeep_engine::service::{Engine, EngineConfig, StartError};
use proofkeep_engine::workers::DeviceConfig;
use proofkeep_store::{EXIT_STORE, OpenError, Store};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::EnvFilter;

use crate::config::{Config, Listen};
use crate::http::{Limits, Listener, Server, Settings, Tls, TlsError};
use crate::options::Options;
use crate::tokens::{TokenError, Tokens};

/// Where in the data directory the daemon notes its address, for commands that find the directory in use.
pub(crate) const ADDRESS: &str = "run/address";

/// What is logged if nobody says: the published Filecoin crates say each step of theirs, and on what, at `info`, and what
/// is wrong with a request, which its sender is told, at `error`, once for each challenge.
const LOGGED: &str = "info,sled=warn,filecoin_proofs=warn,storage_proofs_core=off,storage_proofs_porep=off,\
                      storage_proofs_post=off,storage_proofs_update=off";

/// More descriptors than these nobody needs.
const MOST_DESCRIPTORS: u64 = 65_536;

/// Answers that have begun may take so long after the engine has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(3);

/// Why a daemon didn't start, or ended otherwise than it should.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The address can't be had.
    #[error(
        "{address} can't be listened on: {source}; choose another one with --listen (port 0 picks a free one)"
    )]
    Listen {
        /// Which.
        address: Listen,
        /// Why.
        source: std::io::Error,
    },
    /// No certificates, or not their key.
    #[error("{0}")]
    Tls(String),
    /// Others could reach it, and nobody could be let in.
    #[error(
        "{0} can be reached from other machines, and there is no token: make one with `proofkeep token add NAME --data-dir \
         DIR`, or listen on 127.0.0.1"
    )]
    NoToken(std::net::SocketAddr),
    /// The list of tokens.
    #[error("{0}")]
    Tokens(String, &'static str),
    /// The engine.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The system gave no thread, or no signals.
    #[error("the system refused what the daemon needs: {0}")]
    System(#[from] std::io::Error),
    /// The engine's start panicked; the panic was printed.
    #[error("the daemon failed to start; this is a fault of proofkeep, please report it")]
    Panicked,
    /// The HTTP server ended although nobody told it to.
    #[error(
        "the HTTP server ended by itself; this is a fault of proofkeep, please report it with the lines above, then start \
         again, everything acknowledged is kept"
    )]
    Deaf,
}

impl From<TlsError> for DaemonError {
    fn from(error: TlsError) -> Self {
        Self::Tls(error.to_string())
    }
}

impl From<OpenError> for DaemonError {
    fn from(error: OpenError) -> Self {
        Self::Start(error.into())
    }
}

impl From<TokenError> for DaemonError {
    fn from(error: TokenError) -> Self {
        let text = match &error {
            TokenError::Io { .. } => format!("{error}; then start again"),
            _ => error.to_string(),
        };
        Self::Tokens(text, error.code())
    }
}

impl DaemonError {
    /// The stable code, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Listen { .. } => "not-listening",
            Self::Start(StartError::Open(error)) => crate::cli::data::code(error),
            Self::Start(StartError::Recover(_)) => "not-recovered",
            Self::Start(StartError::NoDevice) | Self::Tls(_) => "config",
            Self::Start(StartError::System(_)) | Self::System(_) => "system",
            Self::NoToken(_) => "no-token",
            Self::Tokens(_, code) => code,
            Self::Panicked => "panic",
            Self::Deaf => "http-ended",
        }
    }

    /// 70 when a person has to look after the data directory, 1 for the rest.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Start(StartError::Open(
                OpenError::BadFile { .. }
                | OpenError::NotEmpty { .. }
                | OpenError::NoDatabase { .. }
                | OpenError::Damaged { .. }
                | OpenError::Lost { .. }
                | OpenError::Record { .. }
                | OpenError::Needed { .. },
            ))
            | Self::Panicked
            | Self::Deaf => u8::try_from(EXIT_STORE).unwrap_or(1),
            _ => 1,
        }
    }
}

/// Runs a daemon until it is told to end. The address that it listens on is the one line on stdout; everything else goes
/// to stderr. Blocks; makes its own runtime.
///
/// # Errors
/// When it doesn't start, or ends otherwise than it was told to.
pub fn run(config: Config, options: &Options) -> Result<(), DaemonError> {
    log_to_stderr();
    let descriptors = raise_descriptors();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("http")
        .build()?;
    let ended = runtime.block_on(serve(config, options, descriptors));
    // A request that still reads or writes on a thread of its own is not waited for.
    runtime.shutdown_timeout(Duration::from_secs(1));
    ended
}

async fn serve(config: Config, options: &Options, descriptors: usize) -> Result<(), DaemonError> {
    let mut stop = signals()?;
    let tls = match (&config.tls_cert, &config.tls_key) {
        (Some(certificate), Some(key)) => Some(Arc::new(Tls::read(certificate, key)?)),
        _ => None,
    };
    let mut renewed = tls.as_ref().map(|_| signal(SignalKind::hangup())).transpose()?;
    let data = Store::lock(&config.data_dir, true)?;
    let tokens = Tokens::load(data.path())?;
    if let Listen::Tcp(address) = config.listen
        && !address.ip().is_loopback()
        && tokens.list().is_empty()
    {
        return Err(DaemonError::NoToken(address));
    }
    let listener = Listener::bind(&config.listen, tls.clone())
        .await
        .map_err(|source| DaemonError::Listen {
            address: config.listen.clone(),
            source,
        })?;
    announce(&listener.url()?)?;
    let address = listener.local_url()?;
    let server = Server::new(
        Settings {
            scheme: listener.scheme(),
            allowed_hosts: config.allowed_hosts.clone(),
            listen: listener.ip()?,
            require_token: config.require_token,
            max_upload: config.max_upload,
            connections: Limits {
                most: config.max_connections.min(descriptors / 2),
                patience: config.client_timeout,
            },
            test_build: options.test_build,
        },
        tokens,
    );
    let (end, mut ending) = watch::channel(false);
    let mut answers = tokio::spawn(server.clone().run(listener, async move {
        // The other end is dropped only after this was sent.
        let _ = ending.wait_for(|end| *end).await;
    }));
    let grace = config.grace;
    #[cfg(feature = "filecoin")]
    let pinned_params = config.pinned_params.clone();
    let engine_config = engine_config(config, options);
    let started = tokio::task::spawn_blocking(move || Engine::start_in(data, engine_config)).await;
    let engine = Arc::new(started.map_err(|_| DaemonError::Panicked)??);
    if let Err(error) = note_address(&engine.data_dir().join(ADDRESS), &address) {
        tracing::warn!(%error, "the address could not be noted in the data directory; commands need --server");
    }
    server.serve(Arc::clone(&engine));
    #[cfg(feature = "filecoin")]
    let pinning = tokio::spawn(crate::pinned::keep(Arc::clone(&engine), pinned_params));
    tracing::info!(store = %engine.store().id(), data = %engine.data_dir().display(), "ready");

    let deaf = loop {
        tokio::select! {
            // Only a signal says so; the sender lives as long as the process.
            _ = stop.wait_for(|stop| *stop) => break false,
            // It ends only when it is told to.
            _ = &mut answers => break true,
            () = asked(&mut renewed) => read_again(tls.as_deref()),
        }
    };
    tracing::info!(
        grace_s = grace.as_secs(),
        "stopping: nothing new is started, work in progress is finished or saved"
    );
    #[cfg(feature = "filecoin")]
    pinning.abort();
    server.stop();
    engine.shutdown(grace).await;
    if deaf {
        return Err(DaemonError::Deaf);
    }
    end.send_replace(true);
    if tokio::time::timeout(LAST_ANSWERS, answers).await.is_err() {
        tracing::warn!("some clients did not read their answers");
    }
    tracing::info!("stopped");
    Ok(())
}

/// Comes when somebody says that the certificates were renewed; never without TLS.
async fn asked(renewed: &mut Option<Signal>) {
    let came = match renewed {
        Some(signal) => signal.recv().await,
        None => None,
    };
    if came.is_none() {
        std::future::pending().await
    }
}

fn read_again(tls: Option<&Tls>) {
    match tls.map(Tls::read_again) {
        Some(Err(error)) => tracing::error!(%error, "the certificates stay as they were"),
        _ => tracing::info!("the certificates were read again"),
    }
}

/// Takes as many descriptors as the system allows, since a shell's usual limit is meant for programs with few files; the
/// number of them. Connections get at most half: the store and the workers need theirs.
fn raise_descriptors() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(MOST_DESCRIPTORS).min(MOST_DESCRIPTORS);
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = Some(wanted);
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, wanted, "the limit of open files could not be raised");
        }
    }
    let current = getrlimit(Resource::Nofile).current.unwrap_or(MOST_DESCRIPTORS);
    usize::try_from(current).unwrap_or(usize::MAX)
}

/// Tells the Filecoin kinds where their parameters lie: those of this process, and by a variable those of the workers.
fn param_dir(config: &Config) -> Vec<(OsString, OsString)> {
    let Some(directory) = &config.param_dir else {
        return Vec::new();
    };
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.clone());
    #[cfg(feature = "filecoin")]
    proofkeep_filecoin::directory::Directory::choose(directory.clone());
    vec![("PROOFKEEP_PARAM_DIR".into(), directory.into_os_string())]
}

fn engine_config(config: Config, options: &Options) -> EngineConfig {
    let environment = param_dir(&config);
    let threads = config.threads;
    let device = |(number, slots): (usize, u32)| DeviceConfig {
        name: format!("cpu:{number}"),
        slots,
        threads,
    };
    EngineConfig {
        devices: config.cpu_devices.into_iter().enumerate().map(device).collect(),
        rules: options.rules,
        store: options.store,
        budget: Some(config.memory),
        reserve_critical: config.reserve_critical,
        max_jobs: Some(config.max_jobs),
        checkpoint_after: config.checkpoint_after,
        scrub_every: config.scrub_every,
        wasm_memory_bytes: config.wasm_memory,
        wasm_fuel: config.wasm_fuel,
        allow_insecure_setup: config.allow_insecure_setup,
        allow_unofficial_params: config.allow_unofficial_params,
        environment,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..EngineConfig::new(config.data_dir, options.kinds.clone())
    }
}

/// For commands that find the data directory in use.
fn note_address(path: &Path, address: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    writeln!(file, "{address}")
}

/// Prints where the daemon listens, for people and for those who asked for port 0.
fn announce(address: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "listening on {address}")?;
    stdout.flush()
}

/// Turns to `true` at the first SIGINT or SIGTERM. The second ends the process at once, as a kill would: what is durable
/// stays, and worker processes die with it.
fn signals() -> std::io::Result<watch::Receiver<bool>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        let first = either(&mut interrupt, &mut terminate).await;
        tracing::info!(signal = first, "asked to stop; once more ends it at once");
        stop.send_replace(true);
        let second = either(&mut interrupt, &mut terminate).await;
        tracing::warn!(signal = second, "ended at once");
        std::process::exit(128 + second);
    });
    Ok(stopped)
}

/// The number of the signal that comes first.
async fn either(interrupt: &mut Signal, terminate: &mut Signal) -> i32 {
    tokio::select! {
        _ = interrupt.recv() => libc::SIGINT,
        _ = terminate.recv() => libc::SIGTERM,
    }
}

/// `PROOFKEEP_LOG` chooses what is logged, as in `debug` or `proofkeep=trace`. A subscriber that is there already stays.
fn log_to_stderr() {
    let filter = EnvFilter::try_from_env("PROOFKEEP_LOG").unwrap_or_else(|_| EnvFilter::new(LOGGED));
    // It fails only if there is one.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal())
        .try_init();
}
