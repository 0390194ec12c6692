//! Whether a parameter file may be used, in the daemon: before a job is taken, and before a key is loaded.

use proofkeep_engine::problem::Problem;
use proofkeep_engine::service::KeyToLoad;

use crate::circuit::Circuit;
use crate::directory::{Content, Directory};
use crate::header::Header;
use crate::params::{self, Entry, Verdict};
use crate::published_params;

/// How parameters for trials come to be.
const GENERATE: &str = "proofkeep params generate --kind … --sector-size …";

/// The head of a file.
///
/// # Errors
/// 422 when there is no such file, or it can't be used.
pub fn header(directory: &Directory, id: &str) -> Result<Header, Problem> {
    let path = directory.named(id, Content::Params);
    Header::read(&path).map_err(|error| {
        let searched = directory.path().display().to_string();
        let detail = format!(
            "{error}; searched {searched}; put the published parameters there, or, for trials with small sectors, make \
             them: {GENERATE}"
        );
        let published = published_params::find(id);
        Problem::input(error.code(), detail)
            .with("expected", published.map(|one| one.blake2b).into())
            .with("file", path.display().to_string().into())
            .with("searched", searched.into())
    })
}

/// What is known of a file; the first time it is read whole.
///
/// # Errors
/// 422 `params-digest` when it has the name of a published one, isn't that, wasn't made here, and nobody allows that.
pub fn known(directory: &Directory, id: &str, allow_unofficial: bool) -> Result<Entry, Problem> {
    let file = directory.named(id, Content::Params).display().to_string();
    let known = params::known(directory, id, &mut |_| Ok(())).map_err(|error| {
        let detail = format!("reading {file} failed: {error}");
        Problem::new(500, "io", "a file can't be read", detail).retryable()
    })?;
    if known.verdict != Verdict::Differs || allow_unofficial {
        return Ok(known);
    }
    let (expected, found) = (
        known.expected.unwrap_or_default(),
        known.found.unwrap_or_default(),
    );
    let searched = directory.path().display().to_string();
    let detail = format!(
        "{file} has the BLAKE2b digest {found}, the published file of this name has {expected}; searched {searched}; get \
         the published one; or, for trials, make one: {GENERATE}; or allow this one: allow_unofficial_params = true"
    );
    Err(Problem::input("params-digest", detail)
        .with("file", file.into())
        .with("expected", expected.into())
        .with("found", found.into())
        .with("searched", searched.into()))
}

/// Bytes that the key of a file takes once it is loaded: its points once, and the matrices.
#[must_use]
pub fn key_bytes(directory: &Directory, id: &str, header: &Header) -> u64 {
    let matrices = std::fs::metadata(directory.named(id, Content::Matrices));
    // Where they aren't compiled yet: about five terms of eight bytes for each wire and matrix.
    let matrices = matrices.map_or(header.wires.saturating_mul(120), |meta| meta.len());
    header.bytes.saturating_add(matrices.saturating_mul(2))
}

/// The key of a file, for whoever loads it ahead.
///
/// # Errors
/// 422 when the file can't be used, or is of no circuit of this build.
pub fn to_load(directory: &Directory, id: &str, allow_unofficial: bool) -> Result<KeyToLoad, Problem> {
    let header = header(directory, id)?;
    let Some((kind, _)) = Circuit::of_id(id) else {
        let detail =
            format!("this build has no circuit whose parameters are called {id}, so nothing can use them");
        return Err(Problem::input("unknown-circuit", detail));
    };
    Ok(KeyToLoad {
        kind,
        key: header.digest(),
        name: id.to_owned(),
        file: known(directory, id, allow_unofficial)?.found,
        bytes: key_bytes(directory, id, &header),
    })
}

/// The files of a directory that an operator's word names: a file, or all of a kind's.
#[must_use]
pub fn named(directory: &Directory, word: &str) -> Vec<String> {
    let of = |id: &String| id == word || Circuit::of_id(id).is_some_and(|(kind, _)| kind == word);
    let all = params::ids(directory).unwrap_or_default();
    all.into_iter().filter(of).collect()
}
