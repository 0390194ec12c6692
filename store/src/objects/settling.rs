//! Names that are not durable yet. Between the rename of an upload and the sync of its directory the file has its name,
//! and a power cut may still take that away: until the sync has succeeded nobody is told that the object is there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use parking_lot::Mutex;

use crate::ids::Digest;

/// The uploads between their rename and the sync of their directory.
#[derive(Debug, Default)]
pub(super) struct Settling(Mutex<BTreeMap<Digest, Name>>);

#[derive(Debug)]
struct Name {
    /// Uploads of it that are at their rename or at their sync.
    uploads: u32,
    /// It was there before, or a sync after one of the renames succeeded.
    durable: bool,
}

impl Settling {
    /// The name may be durable: no upload of it is between rename and sync, or another one had made it so.
    pub fn is_durable(&self, digest: Digest) -> bool {
        self.0.lock().get(&digest).is_none_or(|name| name.durable)
    }

    /// An upload is about to get its name, which is `path`.
    pub fn begin(&self, digest: Digest, path: &Path) {
        let mut names = self.0.lock();
        let name = names.entry(digest).or_insert_with(|| Name {
            uploads: 0,
            durable: path.exists(),
        });
        name.uploads += 1;
    }

    /// It came to its end; `synced`: its directory was synced after the rename. A file whose name nobody could make durable
    /// goes again, so that the next start, which knows nothing of this, doesn't find it either.
    pub fn end(&self, digest: Digest, path: &Path, synced: bool) {
        let mut names = self.0.lock();
        let Some(name) = names.get_mut(&digest) else {
            return;
        };
        name.uploads -= 1;
        name.durable |= synced;
        if name.uploads > 0 {
            return;
        }
        let gone = || fs::remove_file(path).is_ok() || !path.exists();
        if name.durable || gone() {
            names.remove(&digest);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn a_name_is_there_once_one_of_its_uploads_was_synced() {
        let dir = tempfile::tempdir().unwrap();
        let (path, digest) = (dir.path().join("name"), Digest([7; 32]));
        let settling = Settling::default();
        assert!(settling.is_durable(digest));
        // Two uploads of the same bytes at once; the sync of the first fails.
        settling.begin(digest, &path);
        fs::write(&path, "bytes").unwrap();
        assert!(!settling.is_durable(digest));
        settling.begin(digest, &path);
        settling.end(digest, &path, false);
        assert!(!settling.is_durable(digest));
        settling.end(digest, &path, true);
        assert!(settling.is_durable(digest) && path.exists());
        // What was there stays, whatever becomes of its next upload.
        settling.begin(digest, &path);
        assert!(settling.is_durable(digest));
        settling.end(digest, &path, false);
        assert!(settling.is_durable(digest) && path.exists());
    }

    #[test]
    fn a_name_that_was_never_synced_goes_again() {
        let dir = tempfile::tempdir().unwrap();
        let (path, digest) = (dir.path().join("name"), Digest([7; 32]));
        let settling = Settling::default();
        settling.begin(digest, &path);
        fs::write(&path, "bytes").unwrap();
        settling.end(digest, &path, false);
        assert!(!path.exists());
        // Nothing of it is remembered: the next upload begins like the first.
        settling.begin(digest, &path);
        assert!(!settling.is_durable(digest));
    }
}
