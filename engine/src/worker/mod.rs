//! The worker process: the child of the daemon that holds one device.
//!
//! It is started as `proofkeep worker --device cpu:0 --fd 0 --data DIR` with one end of a socket pair as its standard
//! input, and does what the words of [`crate::protocol`] ask: makes witnesses ahead, proves them on its device, imports
//! circuits. It decides nothing and remembers nothing: whatever it holds is lost with it, and the daemon knows what
//! that was.
//!
//! Threads: this one reads; one writes; one measures memory; and each task has one of its own, so that a task that
//! waits keeps none back. How many there are is the daemon's to say, by its leases.
//!
//! It ends when the daemon's end of the socket closes, when the daemon's thread that started it ends, or after `Quit`.

mod birth;
mod import;
mod load;
mod memory;
mod outbox;
mod panics;
mod prove;
mod shared;
mod synth;
mod tasks;

use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

pub use birth::lock_path;
pub use memory::Allocator;

use crate::device;
use crate::kinds::Kinds;
use crate::protocol::{self, BUILD, FromWorker, ToWorker};
use outbox::Outbox;
use shared::Worker;

/// The daemon is gone, or said `Quit`.
pub const EXIT_DONE: i32 = 0;
/// The arguments are wrong.
pub const EXIT_USAGE: i32 = 2;
/// A panic that no task could answer for.
pub const EXIT_PANIC: i32 = 70;
/// An allocation failed.
pub const EXIT_MEMORY: i32 = 71;
/// The daemon and this process don't understand each other.
pub const EXIT_PROTOCOL: i32 = 72;
/// The device can't be opened.
pub const EXIT_DEVICE: i32 = 74;
/// Another worker process holds the device.
pub const EXIT_TAKEN: i32 = 75;

/// A process that can't go on.
pub(crate) struct Fatal {
    code: i32,
    text: String,
}

impl Fatal {
    fn new(code: i32, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
        }
    }
}

/// Runs the worker process to its end; the result is its exit code. `args` are those after the program's name; the
/// first may be `worker`.
#[must_use]
pub fn main(args: &[String], kinds: Kinds) -> i32 {
    match run(args, kinds) {
        Ok(()) => EXIT_DONE,
        Err(fatal) => {
            eprintln!("proofkeep worker: {}", fatal.text);
            fatal.code
        }
    }
}

fn run(args: &[String], kinds: Kinds) -> Result<(), Fatal> {
    let arguments = Arguments::parse(args)?;
    let description =
        device::describe(&arguments.device).map_err(|error| Fatal::new(EXIT_DEVICE, error.to_string()))?;
    let socket = socket()?;
    if !birth::bind_to_parent(&socket)? {
        // The daemon died before this process could ask to die with it.
        return Ok(());
    }
    panics::install();
    memory::exit_when_it_runs_out();
    memory::give_back_at_once();
    let _lock = birth::take_device(&arguments.data, &arguments.device)?;
    let mut reader = socket;
    let outbox = reader.try_clone().and_then(Outbox::start);
    let outbox =
        outbox.map_err(|error| Fatal::new(EXIT_PROTOCOL, format!("the socket can't be used: {error}")))?;
    outbox.say(FromWorker::Hello {
        build: BUILD.to_owned(),
        device: arguments.device.clone(),
        description,
    });
    let Some(welcome) = read(&mut reader)? else {
        return Ok(());
    };
    let worker = Worker::start(&arguments.device, kinds, outbox, welcome)?;
    while let Some(word) = read(&mut reader)? {
        worker.hear(word)?;
    }
    // Without a daemon nothing that runs here can be told to anybody.
    Ok(())
}

fn read(from: &mut UnixStream) -> Result<Option<ToWorker>, Fatal> {
    protocol::read(from).map_err(|error| Fatal::new(EXIT_PROTOCOL, error.to_string()))
}

fn socket() -> Result<UnixStream, Fatal> {
    let stdin: OwnedFd = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map_err(|error| Fatal::new(EXIT_USAGE, format!("standard input can't be used: {error}")))?;
    Ok(UnixStream::from(stdin))
}

/// `--device NAME --fd 0 --data DIR`.
struct Arguments {
    device: String,
    data: PathBuf,
}

impl Arguments {
    fn parse(args: &[String]) -> Result<Self, Fatal> {
        let usage = |text: String| {
            Fatal::new(
                EXIT_USAGE,
                format!("{text}; this command is started by the daemon, with --device, --fd 0 and --data"),
            )
        };
        let (mut device, mut data) = (None, None);
        let mut rest = args.iter().skip_while(|arg| *arg == "worker");
        while let Some(flag) = rest.next() {
            let value = rest
                .next()
                .ok_or_else(|| usage(format!("{flag} needs a value")))?;
            match flag.as_str() {
                "--device" => device = Some(value.clone()),
                "--data" => data = Some(PathBuf::from(value)),
                "--fd" if value == "0" => {}
                "--fd" => return Err(usage(format!("expected --fd 0, found {value}"))),
                _ => return Err(usage(format!("{flag} is not known"))),
            }
        }
        match (device, data) {
            (Some(device), Some(data)) => Ok(Self { device, data }),
            _ => Err(usage("--device or --data is missing".to_owned())),
        }
    }
}

/// Ends the process from a thread that is not the reading one.
fn exit(outbox: &Arc<Outbox>, code: i32) -> ! {
    outbox.finish();
    std::process::exit(code)
}
