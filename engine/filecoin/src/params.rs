//! The parameter files that are there, and whether they are what they are called.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use proofkeep_store::ids::Digest;
use serde::Serialize;

use crate::checked::Checked;
use crate::circuit::Circuit;
use crate::digest::{Digests, Stamp};
use crate::directory::{Content, Directory};
use crate::header::{Header, HeaderError};
use crate::published_params;

/// What is known of a parameter file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is the published one, by its digest.
    Published,
    /// It was made on this machine: for tests only.
    InsecureLocal,
    /// It has the name of a published one and another digest.
    Differs,
    /// Nothing of that name was published, so nothing is known of its setup.
    Unknown,
    /// Nobody has looked at its digest since it was written.
    Unchecked,
    /// Its counts don't come to its length, or its verifying key is none.
    Damaged,
    /// There is none.
    Missing,
}

/// One parameter file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its name, without `.params`.
    pub id: String,
    /// The kinds that use it, by its name.
    pub kinds: &'static [&'static str],
    /// Bytes of a sector, where it has the name of a published one.
    pub sector_size: Option<u64>,
    /// Bytes of the file.
    pub bytes: u64,
    /// What is known of it.
    pub verdict: Verdict,
    /// The digest of the published one: the first 16 bytes of BLAKE2b-512, in hex.
    pub expected: Option<&'static str>,
    /// The digest that was found when it was last looked at.
    pub found: Option<String>,
    /// What is wrong, in words.
    pub detail: Option<String>,
    /// What names its key in memory: the digest of its verifying key.
    #[serde(skip)]
    pub key: Option<Digest>,
}

/// The parameter files of a directory, by name; none where the directory isn't there.
///
/// # Errors
/// When the directory can't be read.
pub fn list(directory: &Directory) -> io::Result<Vec<Entry>> {
    Ok(ids(directory)?.iter().map(|id| look(directory, id)).collect())
}

/// Their names alone.
///
/// # Errors
/// When the directory can't be read.
pub fn ids(directory: &Directory) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory.path()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut ids = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let id = name.to_str().and_then(|name| name.strip_suffix(".params"));
        ids.extend(id.filter(|id| is_id(id)).map(str::to_owned));
    }
    ids.sort_unstable();
    Ok(ids)
}

/// The same, and those that this build's circuits want and that aren't there.
///
/// # Errors
/// When the directory can't be read.
pub fn list_all(directory: &Directory) -> io::Result<Vec<Entry>> {
    let mut all = list(directory)?;
    let missing = Circuit::ids().filter(|id| all.iter().all(|entry| entry.id != *id));
    let missing: Vec<Entry> = missing.map(|id| look(directory, id)).collect();
    all.extend(missing);
    Ok(all)
}

/// Whether this may name a parameter file: nothing else in the directory, and nothing outside it.
#[must_use]
pub fn is_id(id: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    id.starts_with('v') && id.len() <= 200 && id.chars().all(allowed)
}

/// What is known of a file without reading it whole.
#[must_use]
pub fn look(directory: &Directory, id: &str) -> Entry {
    let published = published_params::find(id);
    let mut entry = Entry {
        id: id.to_owned(),
        kinds: published_params::kinds(id),
        sector_size: published.map(|one| one.sector_size),
        bytes: 0,
        verdict: Verdict::Missing,
        expected: published.map(|one| one.blake2b),
        found: None,
        detail: None,
        key: None,
    };
    match Header::read(&directory.named(id, Content::Params)) {
        Ok(header) => {
            entry.bytes = header.bytes;
            entry.key = Some(header.digest());
            let path = directory.named(id, Content::Params);
            let stamp = File::open(&path).and_then(|file| Stamp::of(&file)).ok();
            entry.note(
                stamp
                    .and_then(|stamp| remembered(directory, id, &path, stamp))
                    .as_ref(),
            );
        }
        Err(HeaderError::Missing(_)) => {}
        Err(error) => {
            let file = fs::metadata(directory.named(id, Content::Params));
            entry.bytes = file.map_or(0, |meta| meta.len());
            entry.verdict = Verdict::Damaged;
            entry.detail = Some(error.to_string());
        }
    }
    entry
}

impl Entry {
    /// What a note says of it.
    fn note(&mut self, noted: Option<&Checked>) {
        self.found = noted.and_then(|noted| noted.blake2b.clone());
        self.verdict = match (noted, self.found.as_deref(), self.expected) {
            (None, ..) | (_, None, _) => Verdict::Unchecked,
            (_, Some(found), Some(expected)) if found == expected => Verdict::Published,
            (Some(noted), ..) if noted.setup == Checked::LOCAL => Verdict::InsecureLocal,
            (_, Some(_), None) => Verdict::Unknown,
            (_, Some(_), Some(_)) => Verdict::Differs,
        };
    }
}

/// What is known of a file whose digest somebody needs: read whole if nobody did since it was written, which takes a minute
/// for the largest. `alive` hears how many bytes were read, and may end it.
///
/// # Errors
/// When the file can't be read, or `alive` says so.
pub fn known(
    directory: &Directory,
    id: &str,
    alive: &mut dyn FnMut(u64) -> io::Result<()>,
) -> io::Result<Entry> {
    asked(directory, id, alive, false)
}

/// Reads a file whole, whatever is known of it, and holds its digest against the published one. What comes out is noted
/// beside it.
///
/// # Errors
/// As [`known`].
pub fn verify(
    directory: &Directory,
    id: &str,
    alive: &mut dyn FnMut(u64) -> io::Result<()>,
) -> io::Result<Entry> {
    asked(directory, id, alive, true)
}

fn asked(
    directory: &Directory,
    id: &str,
    alive: &mut dyn FnMut(u64) -> io::Result<()>,
    again: bool,
) -> io::Result<Entry> {
    let mut entry = look(directory, id);
    let settled = !again && entry.verdict != Verdict::Unchecked;
    if settled || matches!(entry.verdict, Verdict::Missing | Verdict::Damaged) {
        return Ok(entry);
    }
    let path = directory.named(id, Content::Params);
    let place = place(&path);
    // Whoever asks for the same file meanwhile waits, and then knows it.
    let mut last = place.lock().unwrap_or_else(PoisonError::into_inner);
    let mut file = File::open(&path)?;
    let stamp = Stamp::of(&file)?;
    let meanwhile = last.as_ref().filter(|noted| !again && noted.stamp == Some(stamp));
    if let Some(noted) = meanwhile {
        entry.note(Some(noted));
        return Ok(entry);
    }
    let (mut digests, mut buffer, mut bytes) = (Digests::default(), vec![0; 1 << 20], 0);
    loop {
        let length = file.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        digests.update(&buffer[..length]);
        bytes += length as u64;
        alive(bytes)?;
    }
    let noted = noted(directory, id, digests, stamp, false);
    entry.note(Some(&noted));
    *last = Some(noted);
    Ok(entry)
}

/// Notes what the digests of a file came to, and whether its points were checked with them. A file that was only moved or
/// copied keeps what was known of it before.
pub(crate) fn noted(
    directory: &Directory,
    id: &str,
    digests: Digests,
    stamp: Stamp,
    points: bool,
) -> Checked {
    let (sha256, blake2b) = digests.finish();
    let before = Checked::of(directory, id).filter(|noted| noted.sha256 == sha256);
    let expected = published_params::find(id).map(|one| one.blake2b);
    let published = expected == Some(blake2b.as_str());
    let local = before.as_ref().is_some_and(|noted| noted.setup == Checked::LOCAL);
    let setup = match (published, local) {
        (true, _) => Checked::PUBLISHED,
        (false, true) => Checked::LOCAL,
        (false, false) => Checked::UNKNOWN,
    };
    let note = Checked {
        bytes: stamp.bytes,
        sha256,
        setup: setup.to_owned(),
        // The published file's points are good; those of another are as good as they were.
        points: points || published || before.as_ref().is_some_and(|noted| noted.points),
        blake2b: Some(blake2b),
        stamp: Some(stamp),
    };
    if before.as_ref() != Some(&note)
        && let Err(error) = note.write(directory, id)
    {
        tracing::warn!(%error, "the parameter directory can't be written, so this is found out again by each process");
    }
    note
}

/// What is known of the file with this stamp: by this process, or by the note beside it.
fn remembered(directory: &Directory, id: &str, path: &Path, stamp: Stamp) -> Option<Checked> {
    let is_this = |noted: &Checked| noted.stamp == Some(stamp);
    let place = place(path);
    // Somebody who reads the file holds the lock; until then nothing is known.
    let last = place.try_lock().ok().and_then(|last| last.clone());
    let note = Checked::of(directory, id).filter(is_this);
    note.or(last.filter(is_this))
}

/// What this process knows of the file of that path.
type Place = Arc<Mutex<Option<Checked>>>;

/// So that a directory that can't be written is read once too.
fn place(path: &Path) -> Place {
    static PLACES: LazyLock<Mutex<HashMap<PathBuf, Place>>> = LazyLock::new(Mutex::default);
    let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(places.entry(path.to_owned()).or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn published() -> &'static str {
        published_params::all().next().unwrap().id
    }

    fn digests(bytes: &[u8]) -> Digests {
        let mut digests = Digests::default();
        digests.update(bytes);
        digests
    }

    #[test]
    fn a_note_goes_with_the_bytes_and_not_with_the_name() {
        let home = tempfile::tempdir().unwrap();
        let directory = Directory::new(home.path());
        let stamp = |nanoseconds| Stamp {
            bytes: 1,
            device: 1,
            inode: 1,
            seconds: 1,
            nanoseconds,
        };
        let local = |bytes: &[u8]| {
            let (sha256, blake2b) = digests(bytes).finish();
            Checked {
                bytes: 1,
                sha256,
                setup: Checked::LOCAL.to_owned(),
                points: true,
                blake2b: Some(blake2b),
                stamp: Some(stamp(1)),
            }
        };
        local(b"a").write(&directory, published()).unwrap();
        // The same bytes elsewhere, or written again: still made here, and checked.
        let moved = noted(&directory, published(), digests(b"a"), stamp(2), false);
        assert_eq!((moved.setup.as_str(), moved.points), (Checked::LOCAL, true));
        assert_eq!(Checked::of(&directory, published()), Some(moved));
        // Other bytes: nothing is known of them but their digest.
        let other = noted(&directory, published(), digests(b"b"), stamp(2), false);
        assert_eq!((other.setup.as_str(), other.points), (Checked::UNKNOWN, false));
        let mut entry = look(&directory, published());
        entry.note(Some(&other));
        assert_eq!(entry.verdict, Verdict::Differs);
        // Checked by a worker process, later.
        assert!(noted(&directory, published(), digests(b"b"), stamp(2), true).points);
        // Under a name that nobody published there is nothing to differ from.
        let nobody = noted(&directory, "v28-x", digests(b"b"), stamp(2), true);
        let mut entry = look(&directory, "v28-x");
        entry.note(Some(&nobody));
        assert_eq!((entry.verdict, entry.expected), (Verdict::Unknown, None));
        entry.note(Some(&Checked {
            blake2b: None,
            ..nobody
        }));
        assert_eq!(entry.verdict, Verdict::Unchecked);
    }

    #[test]
    fn only_names_of_parameter_files_are_ids() {
        assert!(is_id(published()));
        for id in ["", "x", "v/../x", "v28.params", "../v28", "v\u{e9}"] {
            assert!(!is_id(id), "{id}");
        }
    }
}
