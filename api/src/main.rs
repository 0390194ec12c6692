//! Durable, resumable proving: a daemon, its workers and its command line in one binary.

use proofkeep_engine::worker::Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> std::process::ExitCode {
    proofkeep::run(proofkeep::Options::default())
}
