//! Making a dump of a store while commits go on.
//!
//! 1. From now on the commit thread hands over what it changes, and nothing is swept.
//! 2. The records are read in slices of at most 5 ms or 1 MiB; behind each slice goes what was changed meanwhile.
//! 3. Between two groups the last changes are taken: the dump is the state after that group.
//! 4. Every object is read, checked against its name, and kept. Objects that came later do no harm.
//!
//! Checkpoints are left out. They are secrets that live as long as a proof in work; without them it starts again.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use uuid::Uuid;

use proofkeep_migrations::LATEST;

use super::{Dumped, Header, Kept, SaveError, Writer, objects};
use crate::codec::envelope;
use crate::commit::{Overflow, Recording, Shared};
use crate::ids::{Digest, Millis};
use crate::keys::{self, Family, Key};
use crate::objects::Objects;
use crate::view::ReadError;

/// How long a slice may hold up the commit thread.
const SLICE: Duration = Duration::from_millis(5);

/// Bytes of a slice, about.
const SLICE_BYTES: usize = 1 << 20;

/// Pairs between two looks at the clock.
const PAGE: usize = 64;

/// What is dumped, and when it has to end.
pub(crate) struct Source<'a> {
    pub recording: Recording,
    pub objects: &'a Objects,
    pub store: Uuid,
    pub at: Millis,
    /// Asked again and again: may it go on?
    pub go_on: &'a dyn Fn() -> Result<(), SaveError>,
}

/// Where the bytes of objects go.
pub(crate) trait Sink<W> {
    /// The bytes go into the stream.
    const INLINE: bool;

    /// Keeps an object that lies at `path`, and names it in the dump.
    fn keep(&mut self, dump: &mut Writer<W>, digest: Digest, path: &Path) -> Result<Kept, SaveError>;
}

/// Writes everything. `target` is what errors of writing name.
pub(crate) fn dump<W: Write, S: Sink<W>>(
    source: &Source<'_>,
    out: W,
    target: &Path,
    sink: &mut S,
) -> Result<(W, Dumped), SaveError> {
    let header = Header {
        schema: LATEST,
        store: source.store,
        began: source.recording.began,
        at: source.at,
        inline: S::INLINE,
    };
    let writer = Writer::begin(out, &header).map_err(SaveError::io("writing", target))?;
    let mut making = Making {
        source,
        target,
        writer,
        last: None,
        missing: BTreeSet::new(),
    };
    let journal = making.records()?;
    making.objects(sink)?;
    let Making {
        mut writer, missing, ..
    } = making;
    let written = missing
        .iter()
        .try_for_each(|digest| writer.missing(*digest))
        .and_then(|()| writer.end(journal));
    let (out, counts, bytes, sha256) = written.map_err(SaveError::io("writing", target))?;
    let dumped = Dumped {
        store: source.store,
        at: source.at,
        began: source.recording.began,
        journal,
        counts,
        bytes,
        sha256,
        missing: missing.into_iter().collect(),
    };
    Ok((out, dumped))
}

struct Making<'a, W> {
    source: &'a Source<'a>,
    target: &'a Path,
    writer: Writer<W>,
    /// The object that was looked for last.
    last: Option<Digest>,
    missing: BTreeSet<Digest>,
}

impl<W: Write> Making<'_, W> {
    fn records(&mut self) -> Result<crate::ids::JournalNumber, SaveError> {
        let recording = &self.source.recording;
        let too_slow = |Overflow| SaveError::TooSlow(self.target.to_path_buf());
        let mut after: Option<Key> = None;
        loop {
            (self.source.go_on)()?;
            let slice = read_slice(recording.shared(), &[], after.as_deref())?;
            for (key, value) in &slice.pairs {
                self.put(key, value)?;
            }
            for changes in recording.take().map_err(too_slow)? {
                self.changes(&changes)?;
            }
            match slice.pairs.into_iter().next_back() {
                Some((key, _)) if slice.more => after = Some(key),
                _ => break,
            }
        }
        let (last, journal) = recording.close().map_err(too_slow)?;
        for changes in last {
            self.changes(&changes)?;
        }
        Ok(journal)
    }

    fn changes(&mut self, changes: &crate::commit::Changes) -> Result<(), SaveError> {
        for (key, value) in changes {
            match value {
                Some(value) => self.put(key, value)?,
                None if is_checkpoint(key) => {}
                None => self
                    .writer
                    .delete(key)
                    .map_err(SaveError::io("writing", self.target))?,
            }
        }
        Ok(())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), SaveError> {
        if is_checkpoint(key) {
            return Ok(());
        }
        if !value.is_empty() {
            envelope::open_any(value).map_err(|damage| ReadError::damaged(key, damage))?;
        }
        if let Some(digest) = keys::parse_reference(key) {
            self.look_for(digest)?;
        }
        self.writer
            .put(key, value)
            .map_err(SaveError::io("writing", self.target))
    }

    /// Notes an object that a record names and that isn't there.
    fn look_for(&mut self, digest: Digest) -> Result<(), SaveError> {
        if self.last.replace(digest) == Some(digest) {
            return Ok(());
        }
        let path = self.source.objects.path(digest);
        if !fs::exists(&path).map_err(SaveError::io("looking at", &path))? {
            self.missing.insert(digest);
        }
        Ok(())
    }

    fn objects(&mut self, sink: &mut impl Sink<W>) -> Result<(), SaveError> {
        let directory = self.source.objects.directory();
        for first in 0..=u8::MAX {
            (self.source.go_on)()?;
            let found = objects::list(directory, first).map_err(SaveError::io("reading", directory))?;
            for digest in found {
                let path = self.source.objects.path(digest);
                match sink.keep(&mut self.writer, digest, &path)? {
                    Kept::Whole => self.missing.remove(&digest),
                    Kept::Lost => self.missing.insert(digest),
                };
            }
        }
        // What was found damaged meanwhile, and moved away, was there when its record was read.
        let prefix = keys::family(Family::Reference);
        let mut after: Option<Key> = None;
        self.last = None;
        loop {
            (self.source.go_on)()?;
            let slice = read_slice(self.source.recording.shared(), &prefix, after.as_deref())?;
            for (key, _) in &slice.pairs {
                if let Some(digest) = keys::parse_reference(key) {
                    self.look_for(digest)?;
                }
            }
            match slice.pairs.into_iter().next_back() {
                Some((key, _)) if slice.more => after = Some(key),
                _ => return Ok(()),
            }
        }
    }
}

fn is_checkpoint(key: &[u8]) -> bool {
    key.first() == Some(&(Family::Checkpoint as u8))
}

struct Slice {
    pairs: Vec<(Key, Vec<u8>)>,
    more: bool,
}

/// Reads on for one slice, under the read side of the store's lock.
fn read_slice(shared: &Shared, prefix: &[u8], after: Option<&[u8]>) -> Result<Slice, ReadError> {
    shared.read(|view| {
        let start = Instant::now();
        let (mut pairs, mut bytes) = (Vec::<(Key, Vec<u8>)>::new(), 0);
        loop {
            let from = pairs.last().map_or(after, |(key, _)| Some(key.as_slice()));
            let page = view.scan(prefix, from, PAGE)?;
            let more = page.len() == PAGE;
            bytes += page
                .iter()
                .map(|(key, value)| key.len() + value.len())
                .sum::<usize>();
            pairs.extend(page);
            if !more || bytes >= SLICE_BYTES || start.elapsed() >= SLICE {
                return Ok(Slice { pairs, more });
            }
        }
    })
}
