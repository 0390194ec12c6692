//! Why a backup or an export was not made.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::is_disk_full;
use crate::view::ReadError;

/// Why a backup or an export was not made. What had been written of it is gone again.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// Another one is being made.
    #[error("another backup of this store is being made; wait until it has ended")]
    Busy,
    /// Somebody asked for an end.
    #[error("the backup was broken off; nothing was kept of it")]
    Stopped,
    /// Something is there already.
    #[error("{} is there already: expected a name that isn't taken; choose another one, or move that away", .0.display())]
    Exists(PathBuf),
    /// It can't be made there.
    #[error("{} can't be the name of a backup: {reason}", .path.display())]
    Target {
        /// As given.
        path: PathBuf,
        /// What is wrong.
        reason: &'static str,
    },
    /// More changes wait than may.
    #[error(
        "the store is written far faster than {} is, so the backup can't keep up; nothing was kept of it: make it on a \
         faster disk, or when there is less to do",
        .0.display()
    )]
    TooSlow(PathBuf),
    /// A record of the store.
    #[error("{0}; nothing was kept of the backup. Run `proofkeep fsck`")]
    Read(#[from] ReadError),
    /// No space is left, or so little that the store needs it.
    #[error("no space is left for {}; nothing was kept of it: free some, or choose another disk", .0.display())]
    DiskFull(PathBuf),
    /// The system refused something.
    #[error("{doing} {} failed: {source}; nothing was kept of the backup", .path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl SaveError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            let path = path.to_path_buf();
            if is_disk_full(&source) {
                Self::DiskFull(path)
            } else {
                Self::Io { doing, path, source }
            }
        }
    }
}
