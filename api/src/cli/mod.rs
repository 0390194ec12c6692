//! The command line: one file a command. Data goes to stdout, everything else to stderr.

mod arguments;
mod backup;
mod cancel;
mod circuit;
pub(crate) mod data;
mod demo;
mod events;
pub(crate) mod exit;
mod export;
#[cfg(feature = "filecoin")]
mod filecoin;
pub(crate) mod files;
mod fsck;
pub(crate) mod groth16;
mod history;
#[cfg(feature = "filecoin")]
mod keys;
mod ls;
mod migrate;
pub(crate) mod out;
#[cfg(feature = "filecoin")]
mod params;
pub(crate) mod proof;
mod prove;
mod r1cs;
mod retry;
#[cfg(feature = "filecoin")]
mod sample;
mod serve;
pub(crate) mod server;
pub(crate) mod show;
mod status;
mod submit;
mod token;
mod verify;
mod wait;
mod wtns;
mod zkey;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use exit::Exit;
use out::Out;

use crate::options::Options;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "proofkeep",
    version,
    about = "Proves Groth16 circuits over BLS12-381, durably: what was acknowledged survives kill -9 and power cuts",
    after_help = "Start with `proofkeep demo`, or `proofkeep serve` and `proofkeep prove --help`.\n\
                  Exit codes: 0 done, 1 failed, 2 usage, 3 cancelled, 4 timed out, 5 daemon unreachable."
)]
struct Cli {
    /// Write data as JSON, one document or one a line
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// See it all in two minutes: prove, kill -9, resume, verify
    Demo(demo::Demo),
    /// Run the daemon on a data directory
    Serve(serve::Serve),
    /// Prove one input with the daemon and write proof.json and public.json
    Prove(Box<prove::Prove>),
    /// Submit a job of one or several inputs
    Submit(submit::Submit),
    /// Wait until a job has ended
    Wait(wait::Wait),
    /// List jobs
    Ls(ls::Ls),
    /// Show a job, its partitions and every attempt
    Show(show::Show),
    /// Show the journal of a job
    Events(events::Events),
    /// Stop a job
    Cancel(cancel::Cancel),
    /// Try a job again that did not succeed
    Retry(retry::Retry),
    /// Get what a job has proved
    Proof(proof::Proof),
    /// Verify a proof
    Verify(verify::Verify),
    /// Show what the daemon does now
    Status(status::Status),
    /// Register circuits with the daemon, or make a key for tests
    #[command(subcommand)]
    Circuit(circuit::Circuit),
    /// Say who may use the daemon over a network
    #[command(subcommand)]
    Token(token::Token),
    /// Show the journal of a data directory that no daemon uses
    History(history::History),
    /// Check everything that must hold in a data directory that no daemon uses; changes nothing
    Fsck(fsck::Fsck),
    /// Bring a data directory that no daemon uses to this version's schema, into a new database beside the old one
    Migrate(migrate::Migrate),
    /// Give back the space of what was deleted: the same data in a new database beside the old one
    Compact(migrate::Compact),
    /// Copy a data directory as of one moment, also while a daemon uses it
    Backup(backup::Backup),
    /// Make a data directory of a backup
    Restore(backup::Restore),
    /// Write a data directory that no daemon uses into one file
    Export(export::Export),
    /// Make a data directory of such a file
    Import(export::Import),
    /// Prove and verify in this process, without a daemon, in snarkjs's words and order
    #[command(subcommand)]
    Groth16(groth16::Groth16),
    /// Make a witness from an input.json, or check one against its circuit
    #[command(subcommand)]
    Wtns(wtns::Wtns),
    /// Take the verification key out of a proving key
    #[command(subcommand)]
    Zkey(zkey::Zkey),
    /// Show what a circuit consists of
    #[command(subcommand)]
    R1cs(r1cs::R1cs),
    /// Look after the parameters of the Filecoin kinds
    #[cfg(feature = "filecoin")]
    #[command(subcommand)]
    Params(params::Params),
    /// Inputs of the Filecoin kinds
    #[cfg(feature = "filecoin")]
    #[command(subcommand)]
    Filecoin(sample::Filecoin),
}

/// Reads the arguments of this process, runs the command and says how it ended.
pub(crate) fn run(options: Options) -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are data and end well; everything else is a usage error.
            let _ = error.print();
            return if error.use_stderr() {
                Exit::Usage.into()
            } else {
                Exit::Done.into()
            };
        }
    };
    let out = Out::new(cli.json);
    let ended = match cli.command {
        Command::Serve(command) => return serve::run(command, &options, &out),
        Command::Demo(command) => demo::run(&command, &out),
        Command::Prove(command) => prove::run(&command, &out),
        Command::Submit(command) => submit::run(&command, &out),
        Command::Wait(command) => wait::run(&command, &out),
        Command::Ls(command) => ls::run(&command, &out),
        Command::Show(command) => show::run(&command, &out),
        Command::Events(command) => events::run(&command, &out),
        Command::Cancel(command) => cancel::run(&command, &out),
        Command::Retry(command) => retry::run(&command, &out),
        Command::Proof(command) => proof::run(&command, &out),
        Command::Verify(command) => verify::run(&command, &out),
        Command::Status(command) => status::run(&command, &out),
        Command::Token(command) => token::run(&command, &out),
        Command::Circuit(command) => circuit::run(command, &out),
        Command::History(command) => history::run(&command, &out),
        Command::Fsck(command) => fsck::run(&command, &out),
        Command::Migrate(command) => migrate::run(&command, &out),
        Command::Compact(command) => migrate::compact(&command, &out),
        Command::Backup(command) => backup::run(&command, &out),
        Command::Restore(command) => backup::restore(&command, &out),
        Command::Export(command) => export::export(&command, &out),
        Command::Import(command) => export::import(&command, &out),
        Command::Groth16(command) => groth16::run(command, &out),
        Command::Wtns(command) => wtns::run(command, &out),
        Command::Zkey(command) => zkey::run(command, &out),
        Command::R1cs(command) => r1cs::run(command, &out),
        #[cfg(feature = "filecoin")]
        Command::Params(command) => params::run(&command, &out),
        #[cfg(feature = "filecoin")]
        Command::Filecoin(command) => sample::run(&command, &out),
    };
    match ended {
        Ok(exit) => exit.into(),
        Err(error) => {
            out.error(&error);
            error.exit.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    /// Every command, with the words that lead to it.
    fn each(command: &clap::Command, path: &str, visit: &mut dyn FnMut(&str, &clap::Command)) {
        for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
            let path = format!("{path} {}", sub.get_name());
            if sub.has_subcommands() {
                each(sub, &path, visit);
            } else {
                visit(&path, sub);
            }
        }
    }

    #[test]
    fn every_command_explains_itself_with_an_example() {
        each(&Cli::command(), "proofkeep", &mut |path, command| {
            assert!(command.get_about().is_some(), "{path} has no description");
            let after = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(after.contains("Example"), "{path} has no example: {after}");
            assert!(
                after.contains(path),
                "the example of {path} is of another command: {after}"
            );
        });
    }
}
