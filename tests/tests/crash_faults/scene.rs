//! One data directory: a life under a fault, then one without, then a look.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use proofkeep_tests::harness::{Daemon, Launch, until_some};
use proofkeep_tests::kill::copy;
use proofkeep_tests::probe::probe;
use proofkeep_tests::shim::{Counted, Fault, Shims, counted};
use tempfile::TempDir;

use super::client::{Book, Client};
use super::life::{FILES, MAX_JOBS, Steps, job, live};

/// The test that answers in a process of its own.
const PROBED: &str = "nothing_is_lost_when_the_disk_refuses";

/// A directory whose daemon was killed with work half done.
pub struct Template {
    root: TempDir,
    book: Book,
}

/// What came of a fault.
pub struct Outcome {
    /// The operation that failed first, if there was one.
    pub hit: Option<Counted>,
    /// How the daemon took it.
    pub end: End,
    /// What is wrong; must be nothing.
    pub wrong: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// Somebody was refused, or nobody noticed.
    WentOn,
    /// With a sentence and 70.
    Stopped,
    /// With a sentence, before it was ready.
    NotStarted,
    /// Not as it should.
    Otherwise,
}

fn launch(data: &Path) -> Launch {
    Launch::new(data)
        .args(["--cpu-devices", "1", "--threads", "1", "--memory", "4GiB"])
        .args([
            "--checkpoint-after",
            "0ms",
            "--grace",
            "5s",
            "--max-jobs",
            MAX_JOBS,
        ])
}

impl Template {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let (data, book) = (root.path().join("data"), Book::new());
        let daemon = launch(&data).start();
        let client = Client {
            http: daemon.http(),
            book: &book,
        };
        let begun = || {
            let zkey = client.upload(&FILES.zkey)??;
            let witness = client.upload(&FILES.witness)??;
            client.register("first", &serde_json::json!({ "zkey": zkey }))??;
            client.submit("cut-off", &job("first", &[witness.as_str(); 6]), true)?
        };
        let begun = begun();
        assert_eq!(*book.wrong.lock().unwrap(), [""; 0]);
        assert!(begun.is_some());
        daemon.kill();
        // An upload that was cut off: recovery removes it.
        std::fs::write(data.join("tmp/1-cut-off"), "half of it").unwrap();
        Self { root, book }
    }

    /// Every operation of a life without faults, by process: the daemon's, then its worker's.
    pub fn operations(&self, groups: &[&'static str]) -> [Vec<Counted>; 2] {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        copy(&self.root.path().join("data"), &data).unwrap();
        let file = root.path().join("count");
        let fault = Fault {
            operations: groups.to_vec(),
            count_file: Some(file.clone()),
            ..Fault::once(&data, "write", 0)
        };
        let daemon = launch(&data).shims(shims(fault)).start();
        let (pid, book) = (daemon.pid(), self.book.fork());
        let client = Client {
            http: daemon.http(),
            book: &book,
        };
        live(&client, &mut Steps::default()).unwrap();
        assert_eq!(*book.wrong.lock().unwrap(), [""; 0]);
        assert!(daemon.terminate().success());
        let below = |mut one: Counted| {
            one.path = one.path.strip_prefix(&data).unwrap().to_owned();
            one
        };
        let all = counted(&file).unwrap().into_iter().map(below);
        let (daemon, worker) = all.partition(|one| one.pid == pid);
        [daemon, worker]
    }

    /// A life under a fault and one without.
    pub fn run(&self, fault: &Fault) -> Outcome {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        copy(&self.root.path().join("data"), &data).unwrap();
        let (hits, counts) = (root.path().join("hits"), root.path().join("counts"));
        let fault = Fault {
            dir: data.clone(),
            hit_file: Some(hits.clone()),
            count_file: Some(counts.clone()),
            // Each process counts for itself, and another worker process follows one that died.
            once_file: (fault.times == Some(1)).then(|| root.path().join("once")),
            ..fault.clone()
        };
        let (book, mut steps) = (self.book.fork(), Steps::default());
        let end = under_fault(&data, &fault, &book, &mut steps);
        let failed = counted(&hits).unwrap();
        tried_again(&failed, &counted(&counts).unwrap(), &book);
        if failed.is_empty() && end != End::WentOn {
            book.wrong(format!("nothing failed, yet the daemon ended: {end:?}"));
        }
        afterwards(&data, &book, &mut steps);
        let probed = probe(PROBED, &data, &book.ledger);
        let mut wrong = book.wrong.into_inner().unwrap();
        wrong.extend(probed.wrong());
        if !wrong.is_empty() {
            wrong.push(format!("kept in {}", keep(root)));
        }
        let hit = failed.into_iter().next().map(|mut hit| {
            hit.path = hit
                .path
                .strip_prefix(&data)
                .map_or_else(|_| hit.path.clone(), Path::to_owned);
            hit
        });
        Outcome { hit, end, wrong }
    }
}

fn shims(fault: Fault) -> Shims {
    Shims {
        fault: Some(fault),
        ..Shims::default()
    }
}

fn under_fault(data: &Path, fault: &Fault, book: &Book, steps: &mut Steps) -> End {
    let mut daemon = match launch(data).shims(shims(fault.clone())).try_start() {
        Ok(daemon) => daemon,
        Err(failed) => return judge(failed.status, &failed.stderr, false, book),
    };
    let ready = is_ready(&mut daemon);
    if ready {
        let client = Client {
            http: daemon.http(),
            book,
        };
        let alive = live(&client, steps).is_some();
        if alive {
            daemon.signal(libc::SIGTERM);
        }
    }
    // One that answered nothing is about to end, or it is one that doesn't answer.
    let deadline = Instant::now() + Duration::from_secs(60);
    let status = until_some("the daemon ends", || {
        if Instant::now() > deadline {
            daemon.signal(libc::SIGABRT);
        }
        daemon.ended()
    });
    judge(status, &daemon.kill(), ready, book)
}

/// Waits until it is ready; `false`: it ended before.
fn is_ready(daemon: &mut Daemon) -> bool {
    until_some("the daemon is ready", || {
        if daemon.ended().is_some() {
            return Some(false);
        }
        let answer = daemon.try_send("GET", "/readyz", &[], None);
        answer.is_some_and(|answer| answer.status == 200).then_some(true)
    })
}

/// Whether a daemon ended as promised: by itself and in order, or with one sentence that says what to do.
fn judge(status: ExitStatus, stderr: &str, ready: bool, book: &Book) -> End {
    let ours = |line: &&str| line.contains("panicked at") && !line.contains("sled-0.34");
    if let Some(line) = stderr.lines().find(ours) {
        book.wrong(format!("a panic: {line}"));
    }
    // A worker process writes to the same place that its daemon is gone, and sled's threads go on to say what failed there.
    let by_daemon = |line: &&str| {
        !line.starts_with("proofkeep worker: ") && !line.contains("hit error while writing iobuf")
    };
    let what_to_do = ["start again", "free some", "restore", "report it"];
    let tells = |line: &&str| what_to_do.iter().any(|words| line.contains(words));
    // One sentence, and what comes after it is nobody's.
    let ours: Vec<&str> = stderr
        .lines()
        .filter(|line| !line.trim().is_empty())
        .filter(by_daemon)
        .collect();
    let said = ours.last().is_some_and(tells)
        && ours.iter().filter(|line| line.contains("stopping, so")).count() <= 1;
    match status.code() {
        Some(0) => End::WentOn,
        Some(70) if said => End::Stopped,
        Some(1) if said && !ready => End::NotStarted,
        _ => {
            book.wrong(format!("it ended with {status} (ready: {ready}):\n{stderr}"));
            End::Otherwise
        }
    }
}

/// After a sync of a file that failed, the same process must not sync it again: the kernel has forgotten what was dirty,
/// and says that all is well. (A `sync_file_range` promises nothing; a thread of sled's may be at one of another range.)
fn tried_again(failed: &[Counted], all: &[Counted], book: &Book) {
    let is_sync = |one: &&Counted| one.operation.contains("sync") && !one.path.is_dir();
    for failure in failed.iter().filter(is_sync) {
        let mut later = all.iter().filter(is_sync).filter(|one| {
            (one.pid, &one.path) == (failure.pid, &failure.path) && one.number > failure.number
        });
        if let Some(again) = later.find(|one| one.operation != "sync_file_range") {
            book.wrong(format!(
                "a failed sync was tried again: {failure:?}, then {again:?}"
            ));
        }
    }
}

/// The same directory without faults: everything goes on to its end.
fn afterwards(data: &Path, book: &Book, steps: &mut Steps) {
    let mut daemon = match launch(data).try_start() {
        Ok(daemon) => daemon,
        Err(failed) => {
            return book.wrong(format!(
                "no start afterwards: {}\n{}",
                failed.status, failed.stderr
            ));
        }
    };
    if !is_ready(&mut daemon) {
        return book.wrong(format!("no start afterwards:\n{}", daemon.kill()));
    }
    let client = Client {
        http: daemon.http(),
        book,
    };
    let mut go_on = || {
        live(&client, steps)?;
        for (id, ends) in book.ledger.jobs() {
            let state = client.end(id)?.unwrap_or_default();
            if state != "pruned" && !ends.contains(&state.as_str()) {
                book.wrong(format!("job {id} is {state:?}, expected one of {ends:?}"));
            }
        }
        Some(())
    };
    if go_on().is_none() {
        return book.wrong(format!("it ended afterwards:\n{}", daemon.kill()));
    }
    let status = daemon.terminate();
    if !status.success() {
        book.wrong(format!("SIGTERM afterwards: {status}"));
    }
}

/// Leaves what shows a fault where somebody can look at it.
fn keep(root: TempDir) -> String {
    let kept: PathBuf = root.keep();
    kept.display().to_string()
}
