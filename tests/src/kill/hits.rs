//! How often each thing was hit.

use std::collections::BTreeMap;
use std::fmt;

use proofkeep_store::records::PartitionState;

/// Something that a kill can hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Row {
    /// The data directory is being made.
    Creation,
    /// The daemon listens, its boot isn't durable yet.
    Open,
    /// The boot is durable, nothing is granted yet.
    Recovery,
    /// A job is in that state.
    Job(&'static str),
    /// Its final check holds a lease.
    Verification,
    /// A partition of a job that hasn't ended is in that state.
    Partition(&'static str),
    /// A circuit is being imported.
    Import,
    /// Some of its points are checked, durably.
    ImportProgressed,
    /// An upload hasn't ended.
    Upload,
    /// The daemon is closing after SIGTERM.
    Closing,
    /// Not the daemon: a worker process.
    WorkerProcess,
}

impl Row {
    /// What a full run must hit: the states of a job that hasn't ended, every state of its partitions, and the moments
    /// when no job moves.
    #[must_use]
    pub fn wanted() -> Vec<Self> {
        let jobs = ["queued", "running", "verifying", "stopping"].map(Self::Job);
        let partitions = PartitionState::ALL.map(|state| Self::Partition(state.name()));
        let moments = [Self::Open, Self::Recovery, Self::Import, Self::WorkerProcess];
        moments.into_iter().chain(jobs).chain(partitions).collect()
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Creation => f.write_str("creation of the directory"),
            Self::Open => f.write_str("open"),
            Self::Recovery => f.write_str("recovery"),
            Self::Job(state) => write!(f, "job {state}"),
            Self::Verification => f.write_str("final check under way"),
            Self::Partition(state) => write!(f, "partition {state}"),
            Self::Import => f.write_str("import"),
            Self::ImportProgressed => f.write_str("import with progress kept"),
            Self::Upload => f.write_str("upload"),
            Self::Closing => f.write_str("closing"),
            Self::WorkerProcess => f.write_str("worker process"),
        }
    }
}

/// Kills by what was hit; one kill hits several things.
#[derive(Clone, Debug, Default)]
pub struct Hits {
    kills: u32,
    rows: BTreeMap<Row, u32>,
}

impl Hits {
    /// Counts one kill.
    pub fn count(&mut self, hit: impl IntoIterator<Item = Row>) {
        self.kills += 1;
        for row in hit {
            *self.rows.entry(row).or_default() += 1;
        }
    }

    /// Takes another's counts.
    pub fn add(&mut self, other: &Self) {
        self.kills += other.kills;
        for (row, count) in &other.rows {
            *self.rows.entry(*row).or_default() += count;
        }
    }

    /// Kills in all.
    #[must_use]
    pub fn kills(&self) -> u32 {
        self.kills
    }

    /// Kills that hit one thing.
    #[must_use]
    pub fn of(&self, row: Row) -> u32 {
        self.rows.get(&row).copied().unwrap_or_default()
    }

    /// Every row, and its kills.
    pub fn rows(&self) -> impl Iterator<Item = (Row, u32)> {
        self.rows.iter().map(|(row, count)| (*row, *count))
    }

    /// What was wanted and hit less than `floor` times.
    #[must_use]
    pub fn missing(&self, wanted: &[Row], floor: u32) -> Vec<String> {
        let short = wanted.iter().filter(|row| self.of(**row) < floor);
        short
            .map(|row| format!("{row}: {} of {floor}", self.of(*row)))
            .collect()
    }
}

impl fmt::Display for Hits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| hit | kills |\n| --- | ---: |")?;
        for (row, count) in &self.rows {
            writeln!(f, "| {row} | {count} |")?;
        }
        writeln!(f, "| **kills** | **{}** |", self.kills)
    }
}
