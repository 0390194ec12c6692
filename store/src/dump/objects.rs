//! Objects on their way into a dump or out of one: read once, hashed while they are read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::PIECE;
use crate::ids::Digest;

/// What became of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It is in the dump.
    Whole,
    /// It isn't there any more, or its bytes are not what its name says; the dump is without it.
    Lost,
}

/// What was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copied {
    pub digest: Digest,
    pub length: u64,
}

/// Reads to the end, gives every piece to `take`, and answers the digest of all.
pub(crate) fn copy_object<E: From<io::Error>>(
    mut from: impl Read,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<Copied, E> {
    let mut hasher = Sha256::new();
    let mut length = 0;
    let mut buffer = vec![0; PIECE];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        hasher.update(&buffer[..read]);
        length += read as u64;
        take(&buffer[..read])?;
    }
    let digest = Digest(hasher.finalize().into());
    Ok(Copied { digest, length })
}

/// A new file that only its owner can read; synced when it is finished.
pub(crate) struct NewFile {
    file: File,
    hasher: Sha256,
    length: u64,
}

impl NewFile {
    /// Makes it; there must be none of that name.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        Ok(Self {
            file,
            hasher: Sha256::new(),
            length: 0,
        })
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.hasher.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    /// Makes its bytes durable; its name is durable once its directory is synced.
    pub fn finish(self) -> io::Result<Copied> {
        self.file.sync_all()?;
        Ok(Copied {
            digest: Digest(self.hasher.finalize().into()),
            length: self.length,
        })
    }
}

/// The objects that lie in `objects/{first}`, in order.
pub(crate) fn list(objects: &Path, first: u8) -> io::Result<Vec<Digest>> {
    let directory = objects.join(format!("{first:02x}"));
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let digest = name
            .to_str()
            .filter(|name| name.len() == 64)
            .and_then(Digest::parse);
        found.extend(digest.filter(|digest| digest.0[0] == first));
    }
    found.sort_unstable();
    Ok(found)
}
