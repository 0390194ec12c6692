//! What a power cut can leave on disk, rebuilt from a recorded run.
//!
//! `crash/shim/record.c` logs each change that a run makes under a directory, each sync, and what
//! was acknowledged meanwhile. A [`Recording`] reads the log; a [`Disk`] plays it up to a cut;
//! [`Disk::image`] writes a directory as it may look after the power returns, by a [`Model`] of
//! what the disk had done by then. The program under test is then started on the image, and must
//! hold what [`Recording::acknowledged`] says was promised before the cut.
//!
//! What a sync promises (POSIX, and ext4 as it is mounted by default):
//!
//! * `fsync` and `fdatasync` of a file: its bytes and its size, as they were when it was called.
//!   Not its name, even if it is new: that is the directory's.
//! * `fsync` of a directory: the names in it; a rename belongs to the directory it moves into.
//! * `sync_file_range` promises nothing.
//!
//! ```no_run
//! use proofkeep_tests::powercut::{Disk, Model, Recording};
//! # fn main() -> std::io::Result<()> {
//! # let (log, image) = (std::path::Path::new("log"), std::path::Path::new("image"));
//! let recording = Recording::read(log)?;
//! let mut disk = Disk::empty();
//! for cut in recording.cuts(200, 1) {
//!     disk.advance(&recording, cut)?;
//!     disk.image(&recording, Model::STRICT, image)?;
//!     for promised in recording.acknowledged(cut) {
//!         // Start the program on the image: it must still hold what it promised.
//!     }
//!     std::fs::remove_dir_all(image)?;
//! }
//! # Ok(()) }
//! ```

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

mod disk;
mod image;
mod log;
mod model;
#[cfg(test)]
mod tests;

pub use disk::Disk;
pub use log::{Change, Entry, Place};
pub use model::{Bytes, Model, Names};

/// A recorded run, or several of them one after the other on the same directory.
#[derive(Debug, Clone)]
pub struct Recording {
    log: Vec<u8>,
    entries: Vec<Entry>,
}

impl Recording {
    /// Reads a log.
    ///
    /// # Errors
    ///
    /// When it can't be read or is damaged. A last record that is cut off is left out.
    pub fn read(log: &Path) -> io::Result<Self> {
        let log = std::fs::read(log)?;
        let entries = log::parse(&log)?;
        Ok(Self { log, entries })
    }

    /// The changes, in order. A cut at `i` is after the first `i` of them.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What was acknowledged before a cut.
    pub fn acknowledged(&self, cut: usize) -> impl Iterator<Item = &[u8]> {
        self.entries
            .iter()
            .take(cut)
            .filter_map(|entry| match &entry.change {
                Change::Ack { data } => self.log.get(data.clone()),
                _ => None,
            })
    }

    /// The bytes that a write wrote or an acknowledgement said.
    pub fn data(&self, entry: &Entry) -> &[u8] {
        match &entry.change {
            Change::Write { data, .. } | Change::Ack { data } => self.log.get(data.clone()).unwrap_or(&[]),
            _ => &[],
        }
    }

    /// Up to `count` cuts in rising order, the end among them: half drawn from the moments around
    /// syncs, names and acknowledgements, half from everywhere.
    pub fn cuts(&self, count: usize, seed: u64) -> Vec<usize> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let end = self.entries.len();
        let moments: Vec<usize> = (0..end)
            .filter(|&i| !matches!(self.entries[i].change, Change::Write { .. } | Change::SyncRange))
            .flat_map(|i| [i, i + 1])
            .collect();
        let mut cuts = BTreeSet::from([end]);
        // Draws repeat; a short recording may not have that many cuts at all.
        for _ in 0..20 * count {
            if cuts.len() >= count {
                break;
            }
            let from_moments = !moments.is_empty() && rng.gen_bool(0.5);
            cuts.insert(match from_moments {
                true => moments[rng.gen_range(0..moments.len())],
                false => rng.gen_range(0..=end),
            });
        }
        cuts.into_iter().collect()
    }
}

impl Disk {
    /// Plays the recording up to a cut, from where the disk stands.
    ///
    /// # Errors
    ///
    /// When the cut lies behind, or the recording holds a change without a model.
    pub fn advance(&mut self, recording: &Recording, cut: usize) -> io::Result<()> {
        if cut < self.done || cut > recording.entries.len() {
            return Err(io::Error::other(format!("no cut at {cut} from {}", self.done)));
        }
        while self.done < cut {
            let entry = &recording.entries[self.done];
            self.play(entry)?;
            let Some((nodes, begun)) = self.sync_ends(entry)? else {
                continue;
            };
            for node in nodes {
                let settled = self.take_pending(node, begun);
                if let Some(Some(file)) = self.nodes.get_mut(node) {
                    for at in settled {
                        image::apply(recording, at, &mut file.durable, &mut || true);
                    }
                    let left = file
                        .pending
                        .iter()
                        .map(|&at| recording.data(&recording.entries[at]).len() as u64);
                    let left = left.sum();
                    self.set_pending_bytes(node, left);
                } else {
                    self.sync_names(node, begun);
                }
            }
        }
        Ok(())
    }

    /// Writes the directory as a power cut here could leave it.
    ///
    /// # Errors
    ///
    /// When `out` is there already or can't be written.
    pub fn image(&self, recording: &Recording, model: Model, out: &Path) -> io::Result<()> {
        image::write(self, recording, model, out)
    }

    /// Whether the recording saw everything: played to its end, the disk holds what the directory
    /// holds. Changes that passed the recorder by (raw system calls, mmap) show here.
    ///
    /// # Errors
    ///
    /// The first difference, or what kept the two from being compared.
    pub fn agrees_with(&self, recording: &Recording, dir: &Path) -> io::Result<()> {
        let scratch = tempfile::tempdir()?;
        let image = scratch.path().join("image");
        self.image(recording, Model::KEPT, &image)?;
        same(&image, dir)
    }
}

/// Whether two directories hold the same names and bytes.
fn same(rebuilt: &Path, real: &Path) -> io::Result<()> {
    let list = |dir: &Path| -> io::Result<BTreeSet<_>> {
        std::fs::read_dir(dir)?
            .map(|entry| Ok(entry?.file_name()))
            .collect()
    };
    let (a, b) = (list(rebuilt)?, list(real)?);
    if let Some(name) = a.symmetric_difference(&b).next() {
        let (there, not) = if a.contains(name) {
            (rebuilt, real)
        } else {
            (real, rebuilt)
        };
        return Err(io::Error::other(format!(
            "{} is there, but not {}",
            there.join(name).display(),
            not.join(name).display()
        )));
    }
    for name in a {
        let (a, b) = (rebuilt.join(&name), real.join(&name));
        if a.is_dir() && b.is_dir() {
            same(&a, &b)?;
        } else if std::fs::read(&a)? != std::fs::read(&b)? {
            return Err(io::Error::other(format!(
                "{} and {} differ",
                a.display(),
                b.display()
            )));
        }
    }
    Ok(())
}

/// Appends an acknowledgement to a running recording: what the caller was told, after it was told.
///
/// # Errors
///
/// When the log can't be written.
pub fn acknowledge(log: &Path, what: &[u8]) -> io::Result<()> {
    log::append_ack(log, what)
}

/// Kills a recorded process with SIGKILL at a moment when no change is without its record.
///
/// # Errors
///
/// When the log is not there or the process can't be killed.
pub fn kill(child: &mut std::process::Child, log: &Path) -> io::Result<()> {
    let file = std::fs::File::open(log)?;
    file.lock()?;
    child.kill()?;
    child.wait()?;
    Ok(())
}
