//! The tests that the report is made of, in its order.

/// A test of the report.
pub(super) struct Test {
    /// The report's name.
    pub name: &'static str,
    /// As a heading.
    pub title: &'static str,
    /// What is done and what must hold.
    pub text: &'static str,
    /// The count that says how much was tried.
    pub tried: &'static str,
    /// How to run it alone, with more.
    pub command: &'static str,
    /// A rule is taken out, and something must be lost.
    pub control: bool,
}

/// Every test that must have written something.
pub(super) const TESTS: &[Test] = &[
    Test {
        name: "kills",
        title: "`kill -9` of daemon and workers",
        text: "Half of the kills come at the k-th durable operation of a small job, half under load, also while the directory is made, opened, recovered and closed. After each, a copy is opened: `fsck` clean, every acknowledged answer kept, no attempt missing or rewritten, no proof made twice, no innocent job parked; in the end every proof verifies.",
        tried: "kills",
        command: "PROOFKEEP_KILLS=300 cargo test --release -p proofkeep-tests --test crash_kill -- --nocapture",
        control: false,
    },
    Test {
        name: "power-cuts-crowd",
        title: "Power cuts while a crowd submits",
        text: "Every write, truncation, change of a name and sync of a daemon with full groups, jobs of 1,024 partitions, pruning and segments of the log that are used again is recorded, and images are made of what a power cut may leave: only what was synced; any subset of unsynced sectors, torn; names not yet durable. Each opens, is clean, has every acknowledged answer, recovers, and is clean again; some are gone on with until every job has ended.",
        tried: "images",
        command: "PROOFKEEP_POWER_CUTS=20000 cargo test --release -p proofkeep-tests --test crash_power -- --nocapture",
        control: false,
    },
    Test {
        name: "power-cuts-life",
        title: "Power cuts in a whole life",
        text: "The same of one directory from its making on: an import, uploads, jobs of both kinds, cancels, failures, retries, kills, starts killed while they open, migrations and compactions, some of them killed.",
        tried: "images",
        command: "PROOFKEEP_POWER_CUTS=20000 cargo test --release -p proofkeep-tests --test crash_power -- --nocapture",
        control: false,
    },
    Test {
        name: "power-cuts-saved",
        title: "Power cuts while a store is saved and made again",
        text: "A backup of a daemon at work, a circuit that is removed and its files that are swept, an export, a restore and \
               an import are recorded together. In each image the data directory has every acknowledged answer, what is \
               called a backup or an export is whole, and what was being made of one is a whole store or none.",
        tried: "images",
        command: "PROOFKEEP_POWER_CUTS=4000 cargo test --release -p proofkeep-tests --test crash_power -- --nocapture half_made",
        control: false,
    },
    Test {
        name: "power-cuts-without-fdatasync",
        title: "A disk that ignores `fdatasync`",
        text: "The crowd once more; `fdatasync` does nothing and says that it has.",
        tried: "images",
        command: "cargo test --release -p proofkeep-tests --test crash_power -- --nocapture without_fdatasync",
        control: true,
    },
    Test {
        name: "power-cuts-without-segments",
        title: "Groups that outgrow sled's segments",
        text: "The crowd once more with sled's own segment size and groups without a bound.",
        tried: "images",
        command: "cargo test --release -p proofkeep-tests --test crash_power -- --nocapture outgrow",
        control: true,
    },
    Test {
        name: "migration-kills",
        title: "Migrations killed at each operation",
        text: "A store of each schema and one that lived are migrated, killed before and after every durable operation: one of two whole databases is in use, and a daemon goes on.",
        tried: "kills",
        command: "cargo test --release -p proofkeep-tests --test crash_migration -- --nocapture",
        control: false,
    },
    Test {
        name: "faults",
        title: "The disk refuses",
        text: "`EIO`, `ENOSPC` and `EMFILE` at the k-th write, sync, rename and directory sync, while opening, too. The request is refused or the daemon stops with one clear sentence; a failed sync is never tried again; afterwards everything acknowledged is there.",
        tried: "faults",
        command: "PROOFKEEP_FAULTS=all cargo test --release -p proofkeep-tests --test crash_faults -- --nocapture",
        control: false,
    },
    Test {
        name: "damage",
        title: "Damaged files",
        text: "Bits flipped, files cut, emptied, deleted: sled's files, objects, keys, matrices, records. It is detected, named, and costs the jobs it touches; never a wrong proof, a silent loss or an empty start.",
        tried: "damages",
        command: "cargo test --release -p proofkeep-tests --test crash_damage -- --nocapture",
        control: false,
    },
    Test {
        name: "backups-under-load",
        title: "Backups under load",
        text: "Backups of a daemon that is submitted to and cancels are restored: whatever was acknowledged before is there, `fsck` is clean, and the jobs end.",
        tried: "backups",
        command: "cargo test --release -p proofkeep-tests --test backup_load -- --nocapture",
        control: false,
    },
    Test {
        name: "backup-kills",
        title: "Backups that are killed",
        text: "A daemon is killed while it makes a backup: what looks like one is whole, and the store lost nothing.",
        tried: "kills",
        command: "cargo test --release -p proofkeep-tests --test backup_faults -- --nocapture",
        control: false,
    },
    Test {
        name: "circuit-import-kills",
        title: "Imports of circuits that are killed",
        text: "The daemon, or its worker process, is killed at its k-th durable operation while it imports a circuit: the \
               import goes on or begins again, and a job that was submitted meanwhile succeeds.",
        tried: "kills",
        command: "PROOFKEEP_IMPORT_KILLS=1000 cargo test --release -p proofkeep-tests --test crash_import -- --nocapture",
        control: false,
    },
    Test {
        name: "restore-kills",
        title: "Restores and imports that are killed",
        text: "`proofkeep restore` and `import` are killed at their k-th durable operation: what is left is refused with a \
               sentence by `fsck` and the daemon, and the same command again makes the whole store.",
        tried: "kills",
        command: "PROOFKEEP_IMPORT_KILLS=1000 cargo test --release -p proofkeep-tests --test crash_import -- --nocapture",
        control: false,
    },
    Test {
        name: "simulation",
        title: "A deterministic simulation",
        text: "Scheduler, workers, commit and recovery with simulated time, disk, processes and crashes at any step; the invariants after each step, the ledger after each boot, and when trouble stops every job ends.",
        tried: "steps",
        command: "PROOFKEEP_SIM_STEPS=20000000 cargo test --release -p proofkeep-simulation -- --nocapture",
        control: false,
    },
    Test {
        name: "poison",
        title: "Poison: jobs that kill their worker",
        text: "By abort, segmentation fault, stack overflow, exit code and endless allocation, in each stage, beside real \
               and scripted proofs in the same process. The guilty partition is parked after its four deaths (memory: \
               after one more try alone), everybody else succeeds, the daemon goes on. Kills from outside count nothing; \
               progress clears the count.",
        tried: "deaths",
        command: "cargo test --release -p proofkeep-tests --test crash_poison -- --nocapture",
        control: false,
    },
    Test {
        name: "hangs",
        title: "Hangs",
        text: "A partition without progress, one that doesn't hear a cancel, a worker process stopped by SIGSTOP, clients \
               that never read: noticed after 60 s, asked, killed 30 s later if they don't answer. Their slots are freed, \
               other jobs are proved meanwhile, nobody beside them is blamed.",
        tried: "hangs",
        command: "cargo test --release -p proofkeep-tests --test crash_hang -- --nocapture",
        control: false,
    },
    Test {
        name: "clock-jumps",
        title: "Clock jumps",
        text: "The time of day jumps back an hour and forward a year, and past a night's sleep, while jobs wait, prove, \
               back off and are pruned, and between two boots. Jobs keep their order, back-offs end, no duration is \
               negative, keys lead to their jobs, no needed or young upload goes, the journal's times never go back \
               within a boot, each jump has its event.",
        tried: "jumps",
        command: "cargo test --release -p proofkeep-tests --test crash_clock -- --nocapture",
        control: false,
    },
    Test {
        name: "soak",
        title: "Soak",
        text: "Mixed jobs of both kinds with kills of daemon and workers, stops, cancels, retries, uploads cut off and \
               clients that don't read. The answers that callers had are checked at every restart; after the first half \
               the daemon lives on, and its memory, descriptors, threads and files must not grow with the jobs: \
               [every second of it](soak.svg).",
        tried: "jobs ended",
        command: "PROOFKEEP_SOAK_SECS=7200 cargo test --release -p proofkeep-tests --test crash_soak -- --nocapture",
        control: false,
    },
];
