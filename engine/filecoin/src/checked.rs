//! A note beside a parameter file that its points were checked: checking takes minutes, hashing seconds.

use std::fs;
use std::io::{self, Read, Write as _};

use proofkeep_store::ids::Digest;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::directory::{Content, Directory};

/// What was checked. Whoever may write to the directory may write this too, as the key itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// Bytes of the file.
    pub bytes: u64,
    /// Its SHA-256, `sha256:` and hex.
    pub sha256: String,
    /// Where it comes from: [`Checked::LOCAL`] or [`Checked::UNKNOWN`].
    pub setup: String,
}

impl Checked {
    /// It was made on this machine; its maker may know the secret.
    pub const LOCAL: &str = "insecure-local";
    /// Nothing is known of where it comes from.
    pub const UNKNOWN: &str = "unknown";

    /// The note on a file, if there is one that can be read.
    #[must_use]
    pub fn read(directory: &Directory, identifier: &str) -> Option<Self> {
        let bytes = fs::read(directory.file(identifier, Content::Checked)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Writes the note.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn write(&self, directory: &Directory, identifier: &str) -> io::Result<()> {
        let bytes = serde_json::to_vec(self)?;
        directory.write(&directory.file(identifier, Content::Checked), |out| {
            out.write_all(&bytes)
        })
    }

    /// The digest of a file; `alive` is called between slices, and may end it.
    ///
    /// # Errors
    /// When the file can't be read, or `alive` says so.
    pub fn digest_of(mut file: impl Read, alive: &mut dyn FnMut() -> io::Result<()>) -> io::Result<String> {
        let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 20]);
        loop {
            let length = file.read(&mut buffer)?;
            if length == 0 {
                return Ok(Digest(hash.finalize().into()).to_string());
            }
            hash.update(&buffer[..length]);
            alive()?;
        }
    }
}
