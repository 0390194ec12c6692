//! By hand: a kill before and one after each single durable operation of a small job, none left out.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use proofkeep_tests::kill::Hits;
use proofkeep_tests::shim::{Counted, Kill, When, counted};

use super::scene::{Scene, Workload};
use super::sweep;

/// Runs don't all have the same number of operations, as commands meet in groups: one that so many runs did not come to
/// is past the end.
const TRIES: u32 = 12;

/// Which operations were hit.
#[derive(Debug, Default)]
pub struct Covered {
    /// Operations until the daemon is ready, in a run that nothing killed.
    start: u64,
    /// Operations in all, in that run.
    operations: u64,
    /// Numbers that were hit; each with what the operation was.
    hit: BTreeMap<u64, String>,
    /// What the kills met.
    pub hits: Hits,
}

impl Covered {
    /// Up to which number every one was hit.
    fn gapless(&self) -> u64 {
        self.hit.keys().zip(1..).take_while(|(k, i)| **k == *i).count() as u64
    }
}

impl fmt::Display for Covered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            start,
            operations,
            hit,
            hits,
        } = self;
        let last = self.gapless();
        writeln!(
            f,
            "{operations} operations in a run that nothing killed, {start} of them until the daemon is ready; \
             every k from 1 to {last} was hit, {} in all\n",
            hit.len()
        )?;
        let mut kinds: BTreeMap<&str, u32> = BTreeMap::new();
        hit.values().for_each(|what| *kinds.entry(what).or_default() += 1);
        writeln!(f, "| operation | numbers hit |\n| --- | ---: |")?;
        for (what, count) in kinds {
            writeln!(f, "| {what} | {count} |")?;
        }
        write!(f, "\n{hits}")
    }
}

/// A kill at each operation, before it (it doesn't happen) or after it, until none of [`TRIES`] runs comes that far.
/// Runs wait for the disk and for processes most of their time, so there is one for each core at once.
pub fn run(workload: &dyn Workload, when: When) -> Covered {
    let template = sweep::template(workload);
    let (start, operations) = sweep::count(&template);
    let root = tempfile::tempdir().unwrap();
    let (next, end) = (AtomicU64::new(1), AtomicU64::new(u64::MAX));
    let covered = Mutex::new(Covered {
        start,
        operations,
        ..Covered::default()
    });
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let k = next.fetch_add(1, Ordering::Relaxed);
                    if k >= end.load(Ordering::Acquire) {
                        return;
                    }
                    let Some((what, hits)) = (0..TRIES).find_map(|i| {
                        let count_file = root.path().join(format!("{k}-{i}"));
                        killed_at(&template, k, when, &count_file)
                    }) else {
                        end.fetch_min(k, Ordering::AcqRel);
                        return;
                    };
                    let mut covered = covered.lock().unwrap();
                    covered.hit.insert(k, what);
                    covered.hits.add(&hits);
                    if covered.hit.len().is_multiple_of(25) {
                        eprintln!("{} operations were hit, the last was {k}", covered.hit.len());
                    }
                }
            });
        }
    });
    let covered = covered.into_inner().unwrap();
    let (last, missed) = (covered.gapless(), end.into_inner());
    assert_eq!(last + 1, missed, "not each operation was hit: {:?}", covered.hit);
    assert!(last > start, "no run came past its start: {covered}");
    covered
}

/// One kill and what it hit; nothing, if the run was over before.
fn killed_at(template: &Scene<'_>, k: u64, when: When, count_file: &Path) -> Option<(String, Hits)> {
    let scene = template.fork();
    let data = scene.data.clone();
    let kill = Kill {
        at: k,
        when,
        count_file: Some(count_file.to_owned()),
        ..Kill::counting("")
    };
    let hits = sweep::at(scene, kill);
    if hits.kills() == 0 {
        return None;
    }
    // Another thread may count one more after the operation that the kill comes after.
    let operations = counted(count_file).unwrap();
    let hit = operations.iter().find(|operation| operation.number == k).unwrap();
    Some((what(hit, &data), hits))
}

/// An operation and where in the directory, without names that differ from run to run.
fn what(operation: &Counted, data: &Path) -> String {
    let below = operation.path.strip_prefix(data).unwrap();
    let mut parts = below.iter().map(|part| part.to_string_lossy());
    let place = match (parts.next(), parts.next()) {
        (None, _) => "the directory itself".to_owned(),
        (Some(first), None) => first.into_owned(),
        (Some(first), Some(second)) if first.starts_with("store.") && !second.starts_with("snap.") => {
            format!("{first}/{second}")
        }
        (Some(first), Some(_)) => format!("{first}/…"),
    };
    format!("{} {place}", operation.operation)
}
