//! The head of a bellperson parameter file: its verifying key, and how many points follow.
//!
//! `α₁ β₁ β₂ γ₂ δ₁ δ₂ count IC`, then `count` and points of H, L, A, B in G1 and B in G2; counts in four bytes, big-endian,
//! points uncompressed. The counts must come to the file's length.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use proofkeep_groth16::vk::{VerifyingKey, VkError};
use proofkeep_store::ids::Digest;

/// Bytes of a point.
const G1: u64 = 96;
const G2: u64 = 192;
/// Bytes before the count of IC.
const FIXED: u64 = 3 * G1 + 3 * G2;
/// The most public signals: no circuit has more, and IC is read whole.
const MOST_IC: u64 = 1 << 18;

/// A parameter file that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum HeaderError {
    /// There is none.
    #[error("there is no file {0}")]
    Missing(PathBuf),
    /// It can't be read.
    #[error("reading {path} failed: {error}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Its counts don't come to its length.
    #[error("{path} is no bellperson parameter file, or only a part of one: {what}")]
    Length {
        /// Which.
        path: PathBuf,
        /// What was expected and found.
        what: String,
    },
    /// Its verifying key is no key.
    #[error("{path}: {error}")]
    Vk {
        /// Which.
        path: PathBuf,
        /// Why.
        error: VkError,
    },
}

impl HeaderError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing(_) => "params-missing",
            Self::Io { .. } => "io",
            Self::Length { .. } => "params-truncated",
            Self::Vk { error, .. } => error.code(),
        }
    }
}

/// What a parameter file says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// The verifying key as it stands there.
    pub vk: Vec<u8>,
    /// The same, every point checked, γ₂ ≠ δ₂.
    pub key: VerifyingKey,
    /// Points of the domain.
    pub domain: u64,
    /// Wires, the constant one among them.
    pub wires: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

impl Header {
    /// Names this key: another one of the same circuit has another verifying key.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&self.vk)
    }

    /// Reads the head of a file, and holds its counts against its length.
    ///
    /// # Errors
    /// When it is missing, cut off, longer than it says, or its verifying key is none.
    pub fn read(path: &Path) -> Result<Self, HeaderError> {
        let io = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => HeaderError::Missing(path.to_owned()),
            _ => HeaderError::Io {
                path: path.to_owned(),
                error,
            },
        };
        let mut file = File::open(path).map_err(io)?;
        let bytes = file.metadata().map_err(io)?.len();
        let length = |what: String| HeaderError::Length {
            path: path.to_owned(),
            what,
        };
        let mut place = FIXED;
        // The number of points in a list of which at most `most` may be, if they fit into the file.
        let mut count = |name: &str, size: u64, most: u64| -> Result<u64, HeaderError> {
            if place + 4 > bytes {
                return Err(length(format!(
                    "it ends after {bytes} bytes, before the count of {name}"
                )));
            }
            let mut number = [0; 4];
            file.seek(SeekFrom::Start(place)).map_err(io)?;
            file.read_exact(&mut number).map_err(io)?;
            let found = u64::from(u32::from_be_bytes(number));
            let end = place + 4 + found * size;
            if found > most || end > bytes {
                let what = format!("{found} points of {name} would end at byte {end}, it has {bytes}");
                return Err(length(what));
            }
            place = end;
            Ok(found)
        };
        let ic = count("IC", G1, MOST_IC)?;
        let h = count("H", G1, u64::MAX)?;
        let l = count("L", G1, u64::MAX)?;
        count("A", G1, u64::MAX)?;
        count("B in G1", G1, u64::MAX)?;
        count("B in G2", G2, u64::MAX)?;
        if place != bytes {
            return Err(length(format!("its points end at byte {place}, it has {bytes}")));
        }
        let mut vk = vec![0; (FIXED + 4 + ic * G1) as usize];
        file.seek(SeekFrom::Start(0)).map_err(io)?;
        file.read_exact(&mut vk).map_err(io)?;
        let key = VerifyingKey::from_bellperson_bytes(&vk).map_err(|error| HeaderError::Vk {
            path: path.to_owned(),
            error,
        })?;
        Ok(Self {
            vk,
            key,
            domain: h + 1,
            wires: ic + l,
            bytes,
        })
    }
}
