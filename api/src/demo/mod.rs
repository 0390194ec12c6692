//! `proofkeep demo`: the main job on this machine, from a circuit to verified proofs, with a `kill -9` in between.

mod bundle;
mod child;
mod story;
mod watch;

use std::path::Path;

use uuid::Uuid;

use crate::cli::exit::CliError;
use crate::cli::out::Out;
use story::Places;

/// Runs it; the proofs are left in `results`, and what it worked on is removed unless it is to be kept or it failed.
///
/// # Errors
/// When something in it fails, with where to look.
pub(crate) fn run(results: &Path, keep: bool, out: &Out) -> Result<(), CliError> {
    let home = std::env::temp_dir().join(format!("proofkeep-demo-{}", Uuid::new_v4().simple()));
    for directory in [&home, results] {
        std::fs::create_dir_all(directory).map_err(|error| {
            CliError::failed(
                "unwritable",
                format!("{} can't be made: {error}", directory.display()),
            )
        })?;
    }
    let places = Places {
        home,
        results: results.to_owned(),
    };
    match story::tell(&places, out) {
        Ok(()) if keep => story::say(&format!("Everything is still in {}.", places.home.display())),
        Ok(()) => story::clean(&places.home),
        Err(error) => {
            let kept = format!("what it worked on is still in {}", places.home.display());
            return Err(CliError {
                detail: format!("{}; {kept}", error.detail),
                ..error
            });
        }
    }
    Ok(())
}
