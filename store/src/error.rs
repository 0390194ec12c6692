//! Why a data directory can't be opened, said to the person who has to do something about it.

use std::io;
use std::path::{Path, PathBuf};

use crate::ids::JournalNumber;

/// The exit code when the store can't go on and a person is needed.
pub const EXIT_STORE: i32 = 70;

/// Why a data directory was not opened. Nothing in it was changed, except where the text says so.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("the data directory {} is in use: process {pid} has it; stop that process, or use another directory", .path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
        /// The process, as it wrote it there; `?` if it didn't.
        pid: String,
    },
    /// There is none and none was to be made.
    #[error("{} holds no proofkeep data (no FORMAT file); check the path, or start the daemon there once", .path.display())]
    NotThere {
        /// The directory.
        path: PathBuf,
    },
    /// Something else is in the directory.
    #[error("{} holds other things ({found}) and no FORMAT file: expected an empty directory or a proofkeep data directory; \
             choose another one, or put FORMAT back from a backup", .path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// One of the things found.
        found: String,
    },
    /// Something is in a directory that was to be filled.
    #[error("{} is not empty ({found} is in it): expected a directory that is empty or not there yet; nothing was changed, choose another one", .path.display())]
    NotNew {
        /// The directory.
        path: PathBuf,
        /// One of the things found.
        found: String,
    },
    /// A file of ours says something that we never write.
    #[error("{} is damaged: expected {expected}, found {found}; restore it from a backup", .path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// What belongs there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// Written by a newer build.
    #[error("{} has {what} {found}, and this build knows {what} up to {newest}; use the proofkeep that wrote it or a newer one", .path.display())]
    Newer {
        /// The directory.
        path: PathBuf,
        /// `format` or `schema`.
        what: &'static str,
        /// As written.
        found: u64,
        /// The newest known.
        newest: u64,
    },
    /// Written by an older build.
    #[error("{} has schema {found}, this build writes schema {newest}; run `proofkeep migrate --data {}` once", .path.display(), .path.display())]
    Older {
        /// The directory.
        path: PathBuf,
        /// As written.
        found: u16,
        /// The one this build writes.
        newest: u16,
    },
    /// `FORMAT` is there and the database isn't.
    #[error("{} says that there is a store, but {} is gone; it will not be started empty. Put the file back, or restore a backup into a new directory", .format.display(), .database.display())]
    NoDatabase {
        /// The format file.
        format: PathBuf,
        /// The file that is missing.
        database: PathBuf,
    },
    /// The database doesn't open.
    #[error("the database {} can't be opened: {reason}. Nothing was deleted{}. Keep a copy of the directory, then restore the last backup into a new one", .path.display(),
            note(.quarantined))]
    Damaged {
        /// The database's directory.
        path: PathBuf,
        /// What sled said.
        reason: String,
        /// Its snapshot files were moved to `quarantine/`.
        quarantined: bool,
    },
    /// The database opens with less than there was.
    #[error("the store in {} opens at journal entry {found}, but it had reached {reached}: its log is damaged and \
             acknowledged work is missing. Restore the last backup into a new directory; to go on with what is left, \
             remove {}", .path.display(), .mark.display())]
    Lost {
        /// The directory.
        path: PathBuf,
        /// The journal's last number as it is.
        found: JournalNumber,
        /// As it was.
        reached: JournalNumber,
        /// The file that says so.
        mark: PathBuf,
    },
    /// A record that every store has can't be read.
    #[error("the store {} opens, but {source}, and everything needs it: restore the last backup into a new directory (`proofkeep fsck` says what else is damaged)", .path.display())]
    Record {
        /// The database's directory.
        path: PathBuf,
        /// What is wrong.
        source: crate::view::ReadError,
    },
    /// A record that every job needs is not what it must be.
    #[error("the store {} opens, but {place} is damaged: {what}, and every job needs it: restore the last backup into a new directory (`proofkeep fsck` says what else is damaged)", .path.display())]
    Needed {
        /// The database's directory.
        path: PathBuf,
        /// Which record, in words.
        place: String,
        /// What is wrong with it.
        what: String,
    },
    /// No space is left.
    #[error("no space is left on the disk of {} while {doing}; free some and start again", .path.display())]
    DiskFull {
        /// The file or directory.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
    },
    /// The system refused something.
    #[error("{doing} {} failed: {source}; check the disk (dmesg, SMART) and the limits of the process, then start again", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl OpenError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            let path = path.to_path_buf();
            if is_disk_full(&source) {
                Self::DiskFull { path, doing }
            } else {
                Self::Io { path, doing, source }
            }
        }
    }
}

fn note(quarantined: &bool) -> &'static str {
    if *quarantined {
        "; its snapshot files are in quarantine/"
    } else {
        ""
    }
}

/// The disk, or this user's part of it, is full.
pub(crate) fn is_disk_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::objects::ObjectError;

    #[test]
    fn a_full_disk_is_told_from_a_broken_one() {
        let path = Path::new("somewhere");
        for code in [libc::ENOSPC, libc::EDQUOT] {
            let error = || io::Error::from_raw_os_error(code);
            assert!(matches!(
                OpenError::io("writing", path)(error()),
                OpenError::DiskFull { .. }
            ));
            assert!(matches!(
                ObjectError::io("writing", path)(error()),
                ObjectError::DiskFull(_)
            ));
            assert!(crate::commit::fatal::sled_disk_full(&sled::Error::Io(error())));
        }
        let broken = || io::Error::from_raw_os_error(libc::EIO);
        assert!(matches!(
            OpenError::io("writing", path)(broken()),
            OpenError::Io { .. }
        ));
        assert!(matches!(
            ObjectError::io("writing", path)(broken()),
            ObjectError::Io { .. }
        ));
        assert!(!crate::commit::fatal::sled_disk_full(&sled::Error::Io(broken())));
    }
}
