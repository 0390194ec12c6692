//! Looking at a data directory right after a kill, without touching it: what was hit, and whether anything is broken.

mod hits;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use proofkeep_store::event::What;
use proofkeep_store::fsck::{Mode, fsck};
use proofkeep_store::ids::BootNumber;
use proofkeep_store::keys::{self, Family};
use proofkeep_store::query;
use proofkeep_store::records::{Circuit, CircuitState, Job, JobState, Partition};
use proofkeep_store::view::{self, ReadError};
use proofkeep_store::{Options, Store};

pub use hits::{Hits, Row};

use crate::ledger::{History, Ledger};

/// What a killed directory shows.
#[derive(Debug)]
pub struct Autopsy {
    /// States of jobs that hadn't ended and of their partitions, and other things that were going on: rows of [`Hits`].
    pub hit: BTreeSet<Row>,
    /// What is wrong, in words; must be empty.
    pub wrong: Vec<String>,
    /// For the next one.
    pub history: History,
    /// The last boot that is durable.
    pub boot: BootNumber,
    /// The last event that is durable opened that boot: nothing was granted yet.
    pub recovering: bool,
}

/// Copies the directory to `scratch` and opens the copy, so that what the daemon finds is what the kill left.
///
/// # Errors
/// When the copy can't be made. A store that doesn't open is an answer.
pub fn autopsy(data: &Path, scratch: &Path, ledger: &Ledger, before: &History) -> io::Result<Autopsy> {
    if scratch.exists() {
        fs::remove_dir_all(scratch)?;
    }
    copy(data, scratch)?;
    let mut autopsy = Autopsy {
        hit: BTreeSet::new(),
        wrong: Vec::new(),
        history: before.clone(),
        boot: BootNumber(0),
        recovering: false,
    };
    if !data.join("FORMAT").exists() {
        autopsy.hit.insert(Row::Creation);
        return Ok(autopsy);
    }
    if fs::read_dir(data.join("tmp"))?.next().is_some() {
        autopsy.hit.insert(Row::Upload);
    }
    match Store::open(
        scratch,
        &Options {
            create: false,
            ..Options::default()
        },
    ) {
        Ok(store) => {
            if let Err(error) = look(&store, ledger, before, &mut autopsy) {
                autopsy.wrong.push(format!("the store can't be read: {error}"));
            }
        }
        Err(error) => autopsy.wrong.push(format!("the store doesn't open: {error}")),
    }
    Ok(autopsy)
}

fn look(store: &Store, ledger: &Ledger, before: &History, autopsy: &mut Autopsy) -> Result<(), ReadError> {
    let object_ok = |digest| store.objects().verify(digest).is_ok();
    let report = store.read(|view| fsck(view, Mode::Full, Some(&object_ok)))?;
    autopsy
        .wrong
        .extend(report.findings.iter().map(ToString::to_string));
    autopsy.wrong.extend(ledger.losses(store)?);
    autopsy.history = History::read(store)?;
    autopsy.wrong.extend(before.contradicted_by(&autopsy.history));
    store.read(|view| {
        autopsy.boot = query::last_boot(view)?;
        let last = query::event(view, query::last_event(view)?)?;
        autopsy.recovering = last.is_some_and(|event| {
            matches!(event.what, What::BootOpened { .. } | What::AttemptEnded(_))
                && event.boot == autopsy.boot
        });
        for job in view::records::<Job>(view, &keys::family(Family::Job))? {
            if job.state.is_terminal() {
                continue;
            }
            autopsy.hit.insert(Row::Job(job.state.name()));
            if job.state == JobState::Verifying && job.verifying.is_some() {
                autopsy.hit.insert(Row::Verification);
            }
            for partition in view::records::<Partition>(view, &keys::of_job(Family::Partition, job.number))? {
                autopsy.hit.insert(Row::Partition(partition.state.name()));
            }
        }
        for circuit in view::records::<Circuit>(view, &keys::family(Family::Circuit))? {
            if let CircuitState::Importing(import) = circuit.state {
                autopsy.hit.insert(Row::Import);
                if import.done > 0 {
                    autopsy.hit.insert(Row::ImportProgressed);
                }
            }
        }
        Ok(())
    })
}

/// Copies a directory.
///
/// # Errors
/// When something in it can't be read, or written there.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
