//! The machine that the numbers belong to.

use std::fs;

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .map(|rest| rest.trim_start_matches([' ', '\t', ':']))
}

/// One, five and fifteen minutes, and what runs now: numbers from a loaded machine say little.
#[must_use]
pub fn load() -> String {
    read("/proc/loadavg")
}

/// Processor, memory, kernel, file system, load.
#[must_use]
pub fn description() -> String {
    format!(
        "machine: {}, in {}; load at the start: {}",
        processor(),
        std::env::temp_dir().display(),
        load()
    )
}

/// Processor, memory, kernel, and the file system of temporary files.
#[must_use]
pub fn processor() -> String {
    let processor = read("/proc/cpuinfo");
    let model = value(&processor, "model name")
        .or_else(|| value(&processor, "CPU part"))
        .unwrap_or("unknown processor");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = read("/proc/meminfo");
    let total: u64 = value(&memory, "MemTotal")
        .and_then(|text| text.trim_end_matches(" kB").parse().ok())
        .unwrap_or(0);
    format!(
        "{model}, {cores} cores, {:.1} GiB, Linux {}, {}",
        total as f64 / 1048576.0,
        read("/proc/sys/kernel/osrelease"),
        file_system(&std::env::temp_dir())
    )
}

/// The type of the file system that a directory is on: the longest mount point that leads to it.
fn file_system(directory: &std::path::Path) -> String {
    let mounts = read("/proc/self/mounts");
    let fields = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let best = fields
        .filter(|(at, _)| directory.starts_with(at))
        .max_by_key(|(at, _)| at.len());
    best.map_or_else(
        || "an unknown file system".to_owned(),
        |(_, kind)| kind.to_owned(),
    )
}
