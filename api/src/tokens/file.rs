//! `tokens` in the data directory: one JSON document, replaced as a whole.
//!
//! It is no record of the store, so that dumps, backups and exports can't carry it along by mistake: who may ask a daemon
//! is said where it runs.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use proofkeep_store::ids::Millis;
use serde::{Deserialize, Serialize};

use super::{Hash, Scope, Token, TokenError};

/// Its name.
pub(super) const NAME: &str = "tokens";

/// The shape below.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    tokens: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    scopes: Vec<String>,
    rate: u32,
    created_at: u64,
    sha256: String,
}

/// What is there; nothing if there is no file.
pub(super) fn read(path: &Path) -> Result<Vec<Token>, TokenError> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(failed(path, source)),
    };
    let damaged = |what: &str| TokenError::Damaged {
        path: path.to_owned(),
        what: what.to_owned(),
    };
    // serde's own words show what is in the file.
    let document: Document =
        serde_json::from_slice(&text).map_err(|_| damaged("this is no list of tokens"))?;
    if document.version != VERSION {
        return Err(damaged("the list of tokens is of another version of proofkeep"));
    }
    let entry = |entry: Entry| {
        let scopes: Option<Vec<Scope>> = entry.scopes.iter().map(|name| Scope::parse(name)).collect();
        Some(Token {
            name: entry.name,
            scopes: scopes?,
            rate: entry.rate.max(1),
            created_at: Millis(entry.created_at),
            hash: Hash::parse(&entry.sha256)?,
        })
    };
    let list: Option<Vec<Token>> = document.tokens.into_iter().map(entry).collect();
    list.ok_or_else(|| damaged("a token in the list can't be read"))
}

/// Replaces the file: what is there after a power cut is the old list or the new one, and after the return the new one.
pub(super) fn write(path: &Path, list: &[Token]) -> Result<(), TokenError> {
    let entry = |token: &Token| Entry {
        name: token.name.clone(),
        scopes: token.scopes.iter().map(|scope| scope.name().to_owned()).collect(),
        rate: token.rate,
        created_at: token.created_at.0,
        sha256: token.hash.hex(),
    };
    let document = Document {
        version: VERSION,
        tokens: list.iter().map(entry).collect(),
    };
    let text = serde_json::to_vec(&document).map_err(|error| failed(path, error.into()))?;
    let temporary = path.with_extension("new");
    let written = replace(path, &temporary, &text);
    written.map_err(|source| failed(path, source))
}

fn replace(path: &Path, temporary: &Path, text: &[u8]) -> io::Result<()> {
    // One that a crash left may have other permissions, and is nobody's.
    match fs::remove_file(temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(temporary)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(temporary, path)?;
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

fn failed(path: &Path, source: io::Error) -> TokenError {
    TokenError::Io {
        path: path.to_owned(),
        source,
    }
}
