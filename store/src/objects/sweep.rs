//! Deleting what no record names.

use std::fs;
use std::time::Duration;

use super::{ObjectError, Objects};
use crate::clock;
use crate::ids::Digest;

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Objects deleted.
    pub removed: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Objects {
    /// Every object there is, in no order. Files with other names are passed over.
    ///
    /// # Errors
    /// When a directory can't be read.
    pub fn list(&self) -> Result<Vec<Digest>, ObjectError> {
        let mut found = Vec::new();
        for first in 0..=u8::MAX {
            let directory = self.paths.objects.join(format!("{first:02x}"));
            for entry in fs::read_dir(&directory).map_err(ObjectError::io("reading", &directory))? {
                let name = entry.map_err(ObjectError::io("reading", &directory))?.file_name();
                let digest = name
                    .to_str()
                    .filter(|name| name.len() == 64)
                    .and_then(Digest::parse);
                found.extend(digest.filter(|digest| digest.0[0] == first));
            }
        }
        Ok(found)
    }

    /// The objects that nobody has uploaded again for `older_than`.
    ///
    /// # Errors
    /// When a directory can't be read.
    pub fn older(&self, older_than: Duration) -> Result<Vec<Digest>, ObjectError> {
        let mut old = Vec::new();
        for digest in self.list()? {
            if self.is_older(digest, older_than)? {
                old.push(digest);
            }
        }
        Ok(old)
    }

    /// Deletes those of `candidates` that are still older than `older_than` and that `is_needed` lets go. The caller
    /// holds the commit lock, so that no command can come to need one meanwhile.
    ///
    /// # Errors
    /// When one can't be looked at or deleted, or `is_needed` fails.
    pub fn sweep<E: From<ObjectError>>(
        &self,
        candidates: &[Digest],
        older_than: Duration,
        mut is_needed: impl FnMut(Digest) -> Result<bool, E>,
    ) -> Result<Swept, E> {
        let mut swept = Swept::default();
        for digest in candidates {
            let Some(stat) = self.stat(*digest)? else { continue };
            if !self.is_older(*digest, older_than)? || is_needed(*digest)? {
                continue;
            }
            let path = self.path(*digest);
            fs::remove_file(&path).map_err(ObjectError::io("deleting", &path))?;
            swept.removed += 1;
            swept.bytes += stat.length;
        }
        Ok(swept)
    }

    /// Removes the temporary files of other boots; returns how many.
    ///
    /// # Errors
    /// When one can't be removed.
    pub fn remove_abandoned(&self) -> Result<u64, ObjectError> {
        let ours = format!("{}-", self.paths.boot);
        let tmp = &self.paths.tmp;
        let mut removed = 0;
        for entry in fs::read_dir(tmp).map_err(ObjectError::io("reading", tmp))? {
            let entry = entry.map_err(ObjectError::io("reading", tmp))?;
            if !entry.file_name().to_string_lossy().starts_with(&ours) {
                fs::remove_file(entry.path()).map_err(ObjectError::io("removing", &entry.path()))?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    fn is_older(&self, digest: Digest, older_than: Duration) -> Result<bool, ObjectError> {
        let Some(stat) = self.stat(digest)? else {
            return Ok(false);
        };
        // A file from the future is young. A wall clock that jumped forward since the boot makes nothing older.
        let now = clock::wall().min(self.paths.clock.time());
        Ok(now
            .duration_since(stat.touched)
            .is_ok_and(|age| age >= older_than))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use std::sync::Arc;
    use std::time::Instant;

    use super::super::Paths;
    use super::*;
    use crate::clock::Clock;
    use crate::ids::{BootNumber, Millis};

    /// Nothing that was uploaded a moment ago went when the wall clock jumped forward by a year meanwhile.
    #[test]
    fn a_wall_clock_that_jumped_forward_makes_no_upload_old() {
        let root = tempfile::tempdir().unwrap();
        let [objects, tmp, quarantine] = ["objects", "tmp", "quarantine"].map(|name| root.path().join(name));
        for first in 0..=u8::MAX {
            fs::create_dir_all(objects.join(format!("{first:02x}"))).unwrap();
        }
        fs::create_dir_all(&tmp).unwrap();
        let year = Duration::from_secs(365 * 24 * 3600);
        let day = Duration::from_secs(24 * 3600);
        // The boot began a year ago by the wall clock, and a moment ago by the monotonic one.
        let before = clock::wall() - year;
        let since = before.duration_since(std::time::UNIX_EPOCH).unwrap();
        let boot = Millis(u64::try_from(since.as_millis()).unwrap());
        let objects = Objects {
            paths: Arc::new(Paths {
                objects,
                tmp,
                quarantine,
                boot: BootNumber(1),
                clock: Clock::starting(boot, Instant::now()),
                settling: crate::objects::Settling::default(),
            }),
        };
        let [at_boot, after_the_jump, old] =
            [b"at boot".as_slice(), b"after the jump", b"old"].map(|bytes| objects.put(bytes).unwrap());
        for (digest, touched) in [(at_boot, before), (old, before - day)] {
            let file = fs::File::open(objects.path(digest)).unwrap();
            file.set_times(fs::FileTimes::new().set_modified(touched))
                .unwrap();
        }
        assert_eq!(objects.older(day).unwrap(), [old]);
        assert!(objects.stat(after_the_jump).unwrap().is_some());
    }
}
