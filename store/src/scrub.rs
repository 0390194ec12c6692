//! Looks at what a start leaves out, a little at a time while the daemon works: every value, every job that has ended with
//! its journal, and the bytes of every object that is needed.
//!
//! The store's lock is held for one page or 5 ms at most, never for a whole job: an ended job doesn't change, so it is read
//! piece by piece, and what was found of it counts only if it is the same job afterwards. Jobs that haven't ended were looked
//! at by the start, and whatever acts on them reads their records.

use std::cell::Cell;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use crate::commit::Handle;
use crate::fsck::{Finding, Invariant, check_job, check_values, describe};
use crate::ids::{Digest, JobNumber};
use crate::keys::{self, Family, Key};
use crate::objects::{ObjectError, Objects};
use crate::view::{ReadError, View};

/// The longest that the lock is held, and that is worked without a rest.
const SLICE: Duration = Duration::from_millis(5);
/// Pairs read at once.
const PAGE: usize = 64;
/// Bytes of an object that are read between two rests.
const PIECE: usize = 1 << 20;

/// How far a round has come: everything before it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// Among all values; the last key.
    Values(Key),
    /// Among the jobs that have ended; the last one.
    Jobs(JobNumber),
    /// Among the objects; the last one.
    Objects(Digest),
}

impl Position {
    /// The beginning of a round.
    #[must_use]
    pub fn begin() -> Self {
        Self::Values(Key::new())
    }

    /// What is looked at there.
    #[must_use]
    pub fn phase(&self) -> &'static str {
        match self {
            Self::Values(_) => "records",
            Self::Jobs(_) => "jobs",
            Self::Objects(_) => "objects",
        }
    }

    /// The place in that phase.
    #[must_use]
    pub fn place(&self) -> String {
        match self {
            Self::Values(key) => hex::encode(key),
            Self::Jobs(job) => job.0.to_string(),
            Self::Objects(digest) => digest.hex(),
        }
    }

    /// Reads what [`phase`](Self::phase) and [`place`](Self::place) say.
    #[must_use]
    pub fn parse(phase: &str, place: &str) -> Option<Self> {
        match phase {
            "records" => hex::decode(place).ok().map(Self::Values),
            "jobs" => place.parse().ok().map(JobNumber).map(Self::Jobs),
            "objects" => Digest::parse(place).map(Self::Objects),
            _ => None,
        }
    }
}

/// How much a round has looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// Values.
    pub records: u64,
    /// Jobs that have ended.
    pub jobs: u64,
    /// Objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Whoever lets a scrub run.
pub trait Overseer {
    /// Called after each slice: rests a while, or ends it.
    fn rest(&self) -> ControlFlow<()>;
    /// Something is wrong.
    fn found(&self, finding: Finding);
    /// So far it came.
    fn reached(&self, position: &Position, scrubbed: Scrubbed);
}

/// One round, or the rest of one.
pub struct Scrub<'a> {
    handle: &'a Handle,
    objects: &'a Objects,
    overseer: &'a dyn Overseer,
    scrubbed: Scrubbed,
}

/// Why a round isn't at its end.
enum Stop {
    /// It was told to.
    Told,
    /// The storage can't be read.
    Read(ReadError),
}

impl From<ReadError> for Stop {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl<'a> Scrub<'a> {
    /// A round over a store and its objects.
    #[must_use]
    pub fn new(handle: &'a Handle, objects: &'a Objects, overseer: &'a dyn Overseer) -> Self {
        Self {
            handle,
            objects,
            overseer,
            scrubbed: Scrubbed::default(),
        }
    }

    /// Goes on from `from`, where `scrubbed` was looked at already. `true`: it came to its end.
    ///
    /// # Errors
    /// When the storage can't be read.
    pub fn run(mut self, from: Position, scrubbed: Scrubbed) -> Result<bool, ReadError> {
        self.scrubbed = scrubbed;
        let run = |scrub: &mut Self| -> Result<(), Stop> {
            let (jobs, objects) = match from {
                Position::Values(after) => {
                    scrub.values(after)?;
                    (Some(JobNumber(0)), None)
                }
                Position::Jobs(after) => (Some(after), None),
                Position::Objects(after) => (None, Some(after)),
            };
            if let Some(after) = jobs {
                scrub.jobs(after)?;
            }
            scrub.all_objects(objects)
        };
        match run(&mut self) {
            Ok(()) => Ok(true),
            Err(Stop::Told) => Ok(false),
            Err(Stop::Read(error)) => Err(error),
        }
    }

    fn rest(&self) -> Result<(), Stop> {
        match self.overseer.rest() {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stop::Told),
        }
    }

    fn values(&mut self, mut after: Key) -> Result<(), Stop> {
        loop {
            let (findings, checked, last, end) = self.handle.read(|view| -> Result<_, ReadError> {
                let (mut findings, mut checked, mut last) = (Vec::new(), 0, after.clone());
                let start = Instant::now();
                loop {
                    let page = view.scan(&[], Some(&last), PAGE)?;
                    findings.extend(check_values(view, &page)?);
                    checked += page.len() as u64;
                    let end = page.len() < PAGE;
                    if let Some((key, _)) = page.into_iter().next_back() {
                        last = key;
                    }
                    if end || start.elapsed() >= SLICE {
                        return Ok((findings, checked, last, end));
                    }
                }
            })?;
            findings
                .into_iter()
                .for_each(|finding| self.overseer.found(finding));
            self.scrubbed.records += checked;
            after = last;
            self.overseer
                .reached(&Position::Values(after.clone()), self.scrubbed);
            if end {
                return Ok(());
            }
            self.rest()?;
        }
    }

    fn jobs(&mut self, mut after: JobNumber) -> Result<(), Stop> {
        let sliced = Sliced {
            handle: self.handle,
            overseer: self.overseer,
            begun: Cell::new(Instant::now()),
            told: Cell::new(false),
        };
        loop {
            let (family, from) = (keys::family(Family::Done), keys::done(after));
            let next = sliced.scan(&family, Some(&from), 1);
            let next = next.map_err(|error| sliced.stop(error))?;
            let Some(job) = next.first().and_then(|(key, _)| keys::parse_job(key)) else {
                return Ok(());
            };
            let findings = job_findings(&sliced, job).map_err(|error| sliced.stop(error))?;
            findings
                .into_iter()
                .for_each(|finding| self.overseer.found(finding));
            self.scrubbed.jobs += 1;
            after = job;
            self.overseer.reached(&Position::Jobs(after), self.scrubbed);
        }
    }

    fn all_objects(&mut self, after: Option<Digest>) -> Result<(), Stop> {
        let family = keys::family(Family::Reference);
        let mut after = after;
        loop {
            // Behind everybody who needs the last one.
            let from = after.map(|digest| [family.as_slice(), &digest.0, &[0xff; 33]].concat());
            let next = self.handle.read(|view| view.scan(&family, from.as_deref(), 1))?;
            let Some((key, _)) = next.into_iter().next() else {
                return Ok(());
            };
            let Some(object) = keys::parse_reference(&key) else {
                return Ok(());
            };
            if let Some(wrong) = self.object(object)? {
                // Whoever needed it may have been forgotten meanwhile.
                let needed = self.handle.read(|view| view.get(&key))?.is_some();
                if needed {
                    self.overseer.found(Finding {
                        invariant: Invariant::Object,
                        place: describe(&key),
                        key: hex::encode(&key),
                        text: wrong,
                    });
                }
            }
            self.scrubbed.objects += 1;
            after = Some(object);
            self.overseer.reached(&Position::Objects(object), self.scrubbed);
            self.rest()?;
        }
    }

    /// What is wrong with an object, if anything is. One with other bytes goes to quarantine, as when it is read.
    fn object(&mut self, object: Digest) -> Result<Option<String>, Stop> {
        let mut file = match self.objects.open(object) {
            Ok(file) => file,
            Err(ObjectError::Missing(_)) => {
                return Ok(Some("the object is gone; upload it again".to_owned()));
            }
            Err(error) => return Ok(Some(error.to_string())),
        };
        let (mut hash, mut piece) = (Sha256::new(), vec![0; PIECE]);
        loop {
            let length = match file.read(&mut piece) {
                Ok(length) => length,
                Err(error) => return Ok(Some(format!("the object can't be read: {error}"))),
            };
            if length == 0 {
                break;
            }
            hash.update(&piece[..length]);
            self.scrubbed.bytes += length as u64;
            if length == PIECE {
                self.rest()?;
            }
        }
        if Digest(hash.finalize().into()) == object {
            return Ok(None);
        }
        // Once more, since an upload may have replaced it meanwhile.
        Ok(self.objects.verify(object).err().map(|error| error.to_string()))
    }
}

/// What is wrong with a job that has ended; nothing if it isn't the same one any more when that is known.
fn job_findings(view: &dyn View, job: JobNumber) -> Result<Vec<Finding>, ReadError> {
    let key = keys::job(job);
    let before = view.get(&key)?;
    let found = match &before {
        Some(_) => check_job(view, job)?.findings,
        None => vec![Finding {
            invariant: Invariant::Record,
            place: describe(&key),
            key: hex::encode(&key),
            text: "it is gone".to_owned(),
        }],
    };
    let same = view.get(&key)? == before && view.get(&keys::done(job))?.is_some();
    Ok(if same { found } else { Vec::new() })
}

/// The store, read piece by piece: each read takes the lock for itself.
struct Sliced<'a> {
    handle: &'a Handle,
    overseer: &'a dyn Overseer,
    begun: Cell<Instant>,
    told: Cell<bool>,
}

impl Sliced<'_> {
    fn piece<T>(&self, read: impl FnOnce(&dyn View) -> Result<T, ReadError>) -> Result<T, ReadError> {
        if self.begun.get().elapsed() >= SLICE {
            if self.overseer.rest().is_break() {
                self.told.set(true);
            }
            self.begun.set(Instant::now());
        }
        if self.told.get() {
            return Err(ReadError::Storage("told to stop".to_owned()));
        }
        self.handle.read(read)
    }

    fn stop(&self, error: ReadError) -> Stop {
        if self.told.get() {
            Stop::Told
        } else {
            Stop::Read(error)
        }
    }
}

impl View for Sliced<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, ReadError> {
        self.piece(|view| view.get(key))
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Key, Vec<u8>)>, ReadError> {
        self.piece(|view| view.scan(prefix, after, limit))
    }

    fn scan_back(
        &self,
        prefix: &[u8],
        before: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Key, Vec<u8>)>, ReadError> {
        self.piece(|view| view.scan_back(prefix, before, limit))
    }
}
