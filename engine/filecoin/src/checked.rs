//! A note beside a parameter file on what was checked of it: points take minutes, digests seconds.

use std::fs;
use std::io::{self, Write as _};

use serde::{Deserialize, Serialize};

use crate::digest::Stamp;
use crate::directory::{Content, Directory};

/// What was checked. Whoever may write to the directory may write this too, as the key itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// Bytes of the file.
    pub bytes: u64,
    /// Its SHA-256, `sha256:` and hex.
    pub sha256: String,
    /// Where it comes from: [`Checked::LOCAL`], [`Checked::PUBLISHED`] or [`Checked::UNKNOWN`].
    pub setup: String,
    /// Its points were checked, or needn't be.
    #[serde(default = "yes")]
    pub points: bool,
    /// The first 16 bytes of its BLAKE2b-512, in hex: what the published table has.
    #[serde(default)]
    pub blake2b: Option<String>,
    /// The file that the digests are of; another one under its name may have others.
    #[serde(default)]
    pub stamp: Option<Stamp>,
}

/// Notes were written only after the points were checked, before they said so.
fn yes() -> bool {
    true
}

impl Checked {
    /// It was made on this machine; its maker may know the secret.
    pub const LOCAL: &str = "insecure-local";
    /// It is the published one.
    pub const PUBLISHED: &str = "published";
    /// Nothing is known of where it comes from.
    pub const UNKNOWN: &str = "unknown";

    /// The note on the file of that name, if there is one that can be read.
    #[must_use]
    pub fn of(directory: &Directory, id: &str) -> Option<Self> {
        let bytes = fs::read(directory.named(id, Content::Checked)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Writes the note on the file of that name.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn write(&self, directory: &Directory, id: &str) -> io::Result<()> {
        let bytes = serde_json::to_vec(self)?;
        directory.write(&directory.named(id, Content::Checked), |out| {
            out.write_all(&bytes)
        })
    }
}
