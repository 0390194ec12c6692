//! Making a store of a dump: every checksum and digest is checked on the way, what was written is read again from the
//! disk, and only then the directory becomes a store.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::{Copied, Counts, DumpError, Item, MAX_PAYLOAD, NewFile, Reader, copy_object};
use crate::codec::{Damage, MAX_RECORD, reencode};
use crate::commit::Weight;
use crate::error::{OpenError, is_disk_full};
use crate::format::{DataDir, sync_dir};
use crate::ids::{Digest, JournalNumber};
use crate::keys::{self, Family, Key};
use crate::open::{check_journal, open_at};
use crate::tree::{Database, SyncError};
use crate::view::{ReadError, View as _, for_each};

/// Why no store was made. Nothing is left of what was begun.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The dump.
    #[error(transparent)]
    Dump(#[from] DumpError),
    /// The new data directory.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It is no backup.
    #[error("{} holds no backup (no MANIFEST): check the path; one that was never finished has a name that ends in .part", .0.display())]
    NoBackup(PathBuf),
    /// An export where a backup belongs, or the other way round.
    #[error("{file} is {found}: use `proofkeep {instead}`")]
    OtherKind {
        /// The file.
        file: String,
        /// What it is.
        found: &'static str,
        /// The command for it.
        instead: &'static str,
    },
    /// A file of the backup isn't what was written.
    #[error("{} is damaged: {what}. Use another backup{}", .path.display(), hint(.object))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was expected and what was found.
        what: String,
        /// It is an object, which any other copy of it can replace.
        object: bool,
    },
    /// A record can't be read.
    #[error("the dump's record at key {key} is damaged: {damage}; use another backup or export")]
    Record {
        /// The key, in hex.
        key: String,
        /// What is wrong.
        damage: Damage,
    },
    /// The new database could not be written, or reads back as something else.
    #[error("writing {path} failed: {reason}; free some space or check the disk, then run it again")]
    Write {
        /// The new database.
        path: String,
        /// What was said.
        reason: String,
    },
    /// What was written can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The system refused something.
    #[error("{doing} {} failed: {source}", .path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

fn hint(object: &bool) -> &'static str {
    if *object {
        "; or put a good copy there: the same file of any other backup or data directory will do"
    } else {
        ""
    }
}

impl LoadError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            if is_disk_full(&source) {
                return OpenError::io(doing, path)(source).into();
            }
            let path = path.to_path_buf();
            Self::Io { doing, path, source }
        }
    }
}

/// A store that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Its id, which is new.
    pub store: Uuid,
    /// The id of the store that was dumped.
    pub from: Uuid,
    /// The journal number of its state.
    pub journal: JournalNumber,
    /// Records in it.
    pub records: u64,
    /// What was read.
    pub counts: Counts,
    /// Objects that the store which was dumped had lost, or had damaged: they are missing here as there.
    pub missing: Vec<Digest>,
}

/// Makes a store at `path`. `beside` is where the objects lie if their bytes aren't in the stream. `whole` is asked when
/// all of it was read, before the directory becomes a store.
pub(crate) fn load<R: Read>(
    mut reader: Reader<R>,
    beside: Option<&Path>,
    path: &Path,
    cache_bytes: u64,
    whole: impl FnOnce(&Reader<R>) -> Result<(), LoadError>,
) -> Result<Restored, LoadError> {
    let filling = DataDir::restoring(path)?;
    let data = &filling.data;
    let store = data.store(1);
    let mut missing = BTreeSet::new();
    let database = open_at(data, &store, cache_bytes)?;
    let mut table = Table::new(&database, &store);
    let journal = loop {
        match reader.next()? {
            Item::Put(key, value) => table.set(key, Some(value))?,
            Item::Delete(key) => table.set(key, None)?,
            Item::Object { digest, length } => receive(&mut reader, beside, &data.objects(), digest, length)?,
            Item::Bytes(_) => return Err(reader.damaged("bytes that belong to no object").into()),
            Item::Missing(digest) => drop(missing.insert(digest)),
            Item::End(journal) => break journal,
        }
    };
    whole(&reader)?;
    let written = table.finish()?;
    drop(database);
    for first in 0..=u8::MAX {
        sync_dir(&data.objects().join(format!("{first:02x}")))?;
    }
    sync_dir(&data.objects())?;

    // As it will be read from now on: opened again, from the disk.
    let database = open_at(data, &store, cache_bytes)?;
    let mut found = Contents::default();
    for_each(&database.view(), &[], |key, value| {
        found.add(key, value);
        Ok(())
    })?;
    if found != written {
        return Err(LoadError::Write {
            path: store.display().to_string(),
            reason: "it reads back as something else".to_owned(),
        });
    }
    let (last, _) = check_journal(data, 1, &database)?;
    if last != journal {
        let what = format!("its end says journal {journal}, its records say {last}");
        return Err(reader.damaged(what).into());
    }
    let lost = check_references(&database, data, &missing, &reader)?;
    drop(database);
    let restored = Restored {
        store: data.format().store,
        from: reader.header.store,
        journal,
        records: found.records,
        counts: reader.counts(),
        missing: lost,
    };
    filling.finish()?;
    Ok(restored)
}

/// Copies one object into the new directory.
fn receive<R: Read>(
    reader: &mut Reader<R>,
    beside: Option<&Path>,
    objects: &Path,
    digest: Digest,
    length: u64,
) -> Result<(), LoadError> {
    let place = |root: &Path| root.join(&digest.hex()[..2]).join(digest.hex());
    let path = place(objects);
    let mut file = NewFile::create(&path).map_err(LoadError::io("making", &path))?;
    let expected = Copied { digest, length };
    let Some(beside) = beside else {
        while file.length() < length {
            let Item::Bytes(bytes) = reader.next()? else {
                return Err(reader.damaged(format!("object {digest} is cut off")).into());
            };
            file.write(&bytes).map_err(LoadError::io("writing", &path))?;
        }
        let copied = file.finish().map_err(LoadError::io("syncing", &path))?;
        if copied != expected {
            let what = format!(
                "object {digest} has digest {} and {} bytes",
                copied.digest, copied.length
            );
            return Err(reader.damaged(what).into());
        }
        return Ok(());
    };
    let from = place(beside);
    let damaged = |what| LoadError::Damaged {
        path: from.clone(),
        what,
        object: true,
    };
    let input = File::open(&from).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => damaged("it is gone".to_owned()),
        _ => LoadError::io("opening", &from)(error),
    })?;
    let reading = copy_object(input, |bytes| {
        file.write(bytes)
            .map_err(|error| Copying::Writing(LoadError::io("writing", &path)(error)))
    });
    let copied = reading.map_err(|error| match error {
        Copying::Reading(error) => LoadError::io("reading", &from)(error),
        Copying::Writing(error) => error,
    })?;
    if copied != expected {
        let what = format!(
            "expected {length} bytes with digest {digest}, found {} bytes with digest {}",
            copied.length, copied.digest
        );
        return Err(damaged(what));
    }
    file.finish().map_err(LoadError::io("syncing", &path))?;
    Ok(())
}

/// Which side of a copy failed.
enum Copying {
    Reading(io::Error),
    Writing(LoadError),
}

impl From<io::Error> for Copying {
    fn from(error: io::Error) -> Self {
        Self::Reading(error)
    }
}

/// Every object that a record names is there, or was said to be lost. Answers those that are.
fn check_references<R: Read>(
    database: &Database,
    data: &DataDir,
    missing: &BTreeSet<Digest>,
    reader: &Reader<R>,
) -> Result<Vec<Digest>, LoadError> {
    let mut absent = BTreeSet::new();
    let mut last = None;
    for_each(&database.view(), &keys::family(Family::Reference), |key, _| {
        let digest = keys::parse_reference(key);
        if digest != last {
            last = digest;
            let name = digest.map(|digest| digest.hex()).unwrap_or_default();
            let there = fs::exists(data.objects().join(name.get(..2).unwrap_or_default()).join(&name));
            if !there.unwrap_or(false) {
                absent.extend(digest);
            }
        }
        Ok(())
    })?;
    match absent.iter().find(|digest| !missing.contains(digest)) {
        Some(digest) => {
            let what = format!("its records need object {digest}, which isn't in it");
            Err(reader.damaged(what).into())
        }
        None => Ok(absent.into_iter().collect()),
    }
}

/// What a table holds, whatever the order in which it came there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Contents {
    records: u64,
    sum: u128,
}

impl Contents {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.records += 1;
        self.sum = self.sum.wrapping_add(of_pair(key, value));
    }

    fn take(&mut self, key: &[u8], value: &[u8]) {
        self.records -= 1;
        self.sum = self.sum.wrapping_sub(of_pair(key, value));
    }
}

fn of_pair(key: &[u8], value: &[u8]) -> u128 {
    let mut pair = (key.len() as u64).to_le_bytes().to_vec();
    pair.extend_from_slice(key);
    pair.extend_from_slice(value);
    let Digest(digest) = Digest::of(&pair);
    let (half, _) = digest.split_first_chunk().unwrap_or((&[0; 16], &[]));
    u128::from_le_bytes(*half)
}

/// The database that is being written, in groups as the commit thread's.
struct Table<'a> {
    database: &'a Database,
    path: &'a Path,
    group: BTreeMap<Key, Option<Vec<u8>>>,
    weight: Weight,
    contents: Contents,
}

impl<'a> Table<'a> {
    fn new(database: &'a Database, path: &'a Path) -> Self {
        Self {
            database,
            path,
            group: BTreeMap::new(),
            weight: Weight::default(),
            contents: Contents::default(),
        }
    }

    /// Takes a record, in whatever schema it was written, or its deletion.
    fn set(&mut self, key: Key, value: Option<Vec<u8>>) -> Result<(), LoadError> {
        let damaged = |damage| LoadError::Record {
            key: hex::encode(&key),
            damage,
        };
        let value = value.map(|value| reencode(&value)).transpose().map_err(damaged)?;
        let length = key.len() + value.as_ref().map_or(0, Vec::len);
        if key.is_empty() || length > MAX_RECORD {
            let what = format!(
                "a key of {} bytes, {length} with its value; the limit is {MAX_RECORD}",
                key.len()
            );
            return Err(damaged(Damage::Payload(what)));
        }
        self.weight += Weight {
            records: 1,
            bytes: length as u64,
        };
        self.group.insert(key, value);
        if self.weight.is_full() {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), LoadError> {
        let view = self.database.view();
        for (key, value) in &self.group {
            if let Some(old) = view.get(key)? {
                self.contents.take(key, &old);
            }
            if let Some(value) = value {
                self.contents.add(key, value);
            }
        }
        let written = self
            .database
            .apply(&self.group)
            .map_err(SyncError::Flush)
            .and_then(|()| self.database.sync());
        written.map_err(|error| LoadError::Write {
            path: self.path.display().to_string(),
            reason: error.to_string(),
        })?;
        self.group.clear();
        self.weight = Weight::default();
        Ok(())
    }

    fn finish(mut self) -> Result<Contents, LoadError> {
        self.flush()?;
        Ok(self.contents)
    }
}

const _: () = assert!(MAX_RECORD < MAX_PAYLOAD);
