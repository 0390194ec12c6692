//! A look at the daemon from outside, each second.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use proofkeep_tests::harness::workers;
use proofkeep_tests::plot::{Chart, svg};
use serde_json::Value;

use super::{Shared, pass};

/// What is sampled: the column's name, and the chart's title.
pub(crate) const COLUMNS: [(&str, &str); 13] = [
    ("jobs_ended", "jobs ended"),
    ("daemon_rss", "memory of the daemon, resident bytes"),
    ("worker_rss", "memory of the worker process, resident bytes"),
    ("daemon_fds", "descriptors of the daemon"),
    ("worker_fds", "descriptors of the worker process"),
    ("daemon_threads", "threads of the daemon, without its pools"),
    ("daemon_pools", "threads of the daemon's pools"),
    ("worker_threads", "threads of the worker process"),
    ("store_bytes", "the database, bytes on disk"),
    ("objects", "objects, files"),
    ("tmp", "temporary files"),
    ("journal", "events so far"),
    ("journal_kept", "events kept"),
];

/// One second.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    second: f64,
    /// The daemon's process.
    pub pid: u32,
    values: [f64; COLUMNS.len()],
}

impl Sample {
    /// One that was never taken; columns that aren't named are 0.
    pub fn made_up(second: f64, pid: u32, columns: &[(&str, f64)]) -> Self {
        let mut values = [0.0; COLUMNS.len()];
        for (name, value) in columns {
            let column = COLUMNS.iter().position(|(column, _)| column == name);
            values[column.unwrap_or_else(|| panic!("there is no column {name}"))] = *value;
        }
        Self { second, pid, values }
    }

    pub fn of(&self, name: &str) -> f64 {
        let column = COLUMNS.iter().position(|(column, _)| *column == name);
        self.values[column.unwrap_or_else(|| panic!("there is no column {name}"))]
    }
}

/// All of them.
pub(crate) struct Samples(pub Vec<Sample>);

impl Samples {
    /// Those of the daemon's last life, the first tenth of it left out: it warms up.
    pub fn settled(&self) -> &[Sample] {
        let last = self.0.last().expect("there is a sample").pid;
        let begin = self.0.iter().position(|sample| sample.pid == last).unwrap();
        let life = &self.0[begin..];
        &life[life.len() / 10..]
    }

    pub fn jobs_ended(&self) -> u64 {
        self.0.last().map_or(0, |sample| sample.of("jobs_ended") as u64)
    }

    /// Writes the table and the drawing.
    pub fn write(&self, directory: &Path) {
        fs::create_dir_all(directory).unwrap();
        let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
        let mut csv = format!("second,pid,{}\n", names.join(","));
        for sample in &self.0 {
            let values: Vec<String> = sample.values.iter().map(|value| format!("{value:.0}")).collect();
            csv += &format!("{:.1},{},{}\n", sample.second, sample.pid, values.join(","));
        }
        fs::write(directory.join("soak.csv"), csv).unwrap();
        let seconds: Vec<f64> = self.0.iter().map(|sample| sample.second).collect();
        let charts = COLUMNS.iter().enumerate().map(|(column, (_, title))| Chart {
            title: (*title).to_owned(),
            values: self.0.iter().map(|sample| sample.values[column]).collect(),
        });
        let starts = self.0.windows(2).filter(|pair| pair[0].pid != pair[1].pid);
        let starts: Vec<(f64, &str)> = starts
            .map(|pair| (pair[1].second, "a start of the daemon"))
            .collect();
        let drawing = svg(&seconds, &charts.collect::<Vec<_>>(), &starts);
        fs::write(directory.join("soak.svg"), drawing).unwrap();
        eprintln!("every second: {}", directory.join("soak.svg").display());
    }
}

/// Until it is over.
pub(crate) fn run(shared: &Shared, started: Instant) -> Samples {
    let mut samples = Vec::new();
    while !shared.over.load(Ordering::Acquire) {
        let next = Instant::now() + Duration::from_secs(1);
        samples.extend(look(shared, started));
        pass(next.saturating_duration_since(Instant::now()), &shared.over);
    }
    Samples(samples)
}

/// `None` while there is no daemon, or when it goes meanwhile.
fn look(shared: &Shared, started: Instant) -> Option<Sample> {
    let (http, pid) = shared.reach()?;
    let answer = http.try_send("GET", "/v1/status", &[], None)?;
    if answer.status != 200 {
        return None;
    }
    let status = answer.json();
    let daemon = process(pid)?;
    // While a worker process starts there is none.
    let worker = workers(pid)
        .first()
        .and_then(|worker| process(*worker))
        .unwrap_or_default();
    let data = shared.data();
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let values = [
        ended(&status["counters"]["jobs"]),
        daemon[0],
        worker[0],
        daemon[1],
        worker[1],
        daemon[2],
        daemon[3],
        worker[2] + worker[3],
        store_bytes(&data),
        files(&data.join("objects")).0,
        files(&data.join("tmp")).0,
        number(&status["journal"]),
        number(&status["store"]["journal_kept"]),
    ];
    Some(Sample {
        second: started.elapsed().as_secs_f64(),
        pid,
        values,
    })
}

/// Jobs that have ended, of all kinds and in all ways.
fn ended(counters: &Value) -> f64 {
    let kinds = counters.as_object().into_iter().flat_map(|kinds| kinds.values());
    let ends = kinds.filter_map(Value::as_object).flat_map(|ends| ends.values());
    ends.filter_map(Value::as_f64).sum()
}

/// Pools have as many threads as were busy at once in the last seconds; a slow disk makes more of them, up to their own
/// limit. The others are there for something: one that stays when it is over is a leak.
const POOLS: [&str; 3] = ["http", "blocking", "sled-io-"];

/// Resident bytes, descriptors, threads outside pools, threads in pools.
fn process(pid: u32) -> Option<[f64; 4]> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| -> Option<f64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count();
    let names = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    // A thread that ends meanwhile has no name any more.
    let names = names.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    let (pools, others): (Vec<_>, Vec<_>) =
        names.partition(|name| POOLS.iter().any(|pool| name.starts_with(pool)));
    Some([
        field("VmRSS:")? * 1024.0,
        descriptors as f64,
        others.len() as f64,
        pools.len() as f64,
    ])
}

fn store_bytes(data: &Path) -> f64 {
    let entries = fs::read_dir(data).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("store."))
        .map(|entry| files(&entry.path()).1)
        .sum()
}

/// Files below a directory, and their bytes; what goes meanwhile isn't counted.
pub(crate) fn files(directory: &Path) -> (f64, f64) {
    let (mut count, mut bytes) = (0.0, 0.0);
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(meta) = entry.metadata() else { continue };
        if meta.is_dir() {
            let below = files(&entry.path());
            (count, bytes) = (count + below.0, bytes + below.1);
        } else {
            (count, bytes) = (count + 1.0, bytes + meta.len() as f64);
        }
    }
    (count, bytes)
}
