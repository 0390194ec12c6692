//! What must not grow, and by how much it may seem to.

use std::fs::FileTimes;
use std::path::Path;
use std::time::Duration;

use proofkeep_store::keys;
use proofkeep_store::view::ReadError;
use proofkeep_tests::harness::{proofkeep, until};
use proofkeep_tests::report::Report;
use proofkeep_tests::trend::growth;

use super::sample::{COLUMNS, Samples, files};
use super::{KEPT, Shared, open};

const MIB: f64 = 1024.0 * 1024.0;

/// What a line through the samples of the daemon's last life may rise by in all, from its beginning to its end. Workers
/// die and start again, so that only their greatest values say something.
pub(crate) const RISES: [(&str, f64); 3] = [
    // Connections come and go; each is one.
    ("daemon_fds", 8.0),
    // Two for each worker process, of which at most two are there at once.
    ("daemon_threads", 4.0),
    // The database's cache fills; what leaks for each job would be more in a long run.
    ("daemon_rss", 32.0 * MIB),
];

/// What no sample may be above.
pub(crate) const LIMITS: [(&str, f64); 8] = [
    ("daemon_rss", 400.0 * MIB),
    ("worker_rss", 600.0 * MIB),
    ("daemon_fds", 200.0),
    ("daemon_threads", 32.0),
    // Requests that wait for the disk, one thread each, and few clients are at work.
    ("daemon_pools", 128.0),
    ("worker_fds", 64.0),
    ("worker_threads", 64.0),
    ("store_bytes", 256.0 * MIB),
];

/// Events of one kept job, on average, and those that belong to none: of boots, processes, circuits.
const EVENTS_OF_A_JOB: f64 = 200.0;

/// Says what grew, and fails if something did.
pub(crate) fn check(samples: &Samples) {
    let wrong = wrong(samples);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What grew, or came too high, in words.
pub(crate) fn wrong(samples: &Samples) -> Vec<String> {
    let settled = samples.settled();
    let jobs = |sample: &super::sample::Sample| sample.of("jobs_ended");
    let ended = settled.last().map_or(0.0, jobs) - settled.first().map_or(0.0, jobs);
    assert!(ended > 20.0, "only {ended} jobs ended in the daemon's last life");
    let mut wrong = Vec::new();
    for (name, allowed) in RISES {
        let rise = rise(samples, name);
        eprintln!("{name}: {rise:+.0} over {ended:.0} jobs, at most {allowed:.0}");
        if rise > allowed {
            wrong.push(format!(
                "{name} rose by {rise:.0} over {ended:.0} jobs ({:.1} each); it may rise by {allowed:.0}",
                rise / ended
            ));
        }
    }
    for (name, limit) in LIMITS {
        let most = most(samples, name);
        eprintln!("{name}: {most:.0} at most, limit {limit:.0}");
        if most > limit {
            wrong.push(format!("{name} came to {most:.0}; it may come to {limit:.0}"));
        }
    }
    let kept = settled.last().map_or(0.0, |sample| sample.of("journal_kept"));
    let all = settled.last().map_or(0.0, |sample| sample.of("journal"));
    eprintln!("{kept:.0} of {all:.0} events are kept");
    // A job that was removed leaves that it was, for as long as its id is remembered. What belongs to no job stays: a
    // process that dies leaves three or so, a pause one.
    let removed = settled.last().map_or(0.0, jobs);
    let daemons = all / 20.0 + 1000.0;
    if kept > KEPT as f64 * EVENTS_OF_A_JOB + removed + daemons {
        wrong.push(format!("{kept:.0} of {all:.0} events are kept, with {KEPT} jobs"));
    }
    wrong
}

/// By how much the line through a column rises, over the jobs that ended meanwhile.
fn rise(samples: &Samples, name: &str) -> f64 {
    let points: Vec<(f64, f64)> = samples
        .settled()
        .iter()
        .map(|sample| (sample.of("jobs_ended"), sample.of(name)))
        .collect();
    growth(&points)
}

fn most(samples: &Samples, name: &str) -> f64 {
    samples.0.iter().map(|sample| sample.of(name)).fold(0.0, f64::max)
}

/// The greatest values, for the report.
pub(crate) fn add(samples: &Samples, report: Report) -> Report {
    let report = COLUMNS.iter().skip(1).fold(report, |report, (name, title)| {
        report.count(&format!("most: {title}"), most(samples, name) as u64)
    });
    RISES.iter().fold(report, |report, (name, _)| {
        report.count(
            &format!("rise of {name} in the last life"),
            rise(samples, name).max(0.0) as u64,
        )
    })
}

/// After a last start and stop no temporary file is left. A day later no object is but those that records name: the
/// files are made older, and the next start sweeps.
pub(crate) fn leftovers(shared: &Shared) {
    let data = shared.data();
    assert_eq!(files(&data.join("tmp")).0, 0.0, "temporary files were left");
    let before = objects(&data, true);
    let daemon = shared.start();
    until("what nobody needs is removed", || {
        files(&data.join("objects")).0 <= before.needed as f64
    });
    assert!(daemon.terminate().success());
    // Jobs are forgotten meanwhile, so fewer may be needed now.
    let after = objects(&data, false);
    eprintln!("{before:?}, after the sweep {after:?}");
    assert!(0 < before.needed && before.needed < before.there, "{before:?}");
    assert!(
        after.needed <= after.there && after.there <= before.needed,
        "{before:?} {after:?}"
    );
    let _ = proofkeep([Path::new("fsck"), Path::new("--data-dir"), &data]).expect(0);
}

/// Objects there are, and those that records name.
#[derive(Debug)]
struct Objects {
    there: usize,
    needed: usize,
}

/// Counts them; makes their files older than they may become where nobody needs them.
fn objects(data: &Path, age: bool) -> Objects {
    let store = open(data);
    let all = store.objects().list().unwrap();
    for digest in all.iter().filter(|_| age) {
        let file = std::fs::File::open(store.objects().path(*digest)).unwrap();
        let earlier = file.metadata().unwrap().modified().unwrap() - Duration::from_secs(25 * 3600);
        file.set_times(FileTimes::new().set_modified(earlier)).unwrap();
    }
    let count = store.read(|view| {
        let mut needed = 0;
        for digest in &all {
            needed += view.scan(&keys::references(*digest), None, 1)?.len();
        }
        Ok::<_, ReadError>(needed)
    });
    Objects {
        there: all.len(),
        needed: count.unwrap(),
    }
}
