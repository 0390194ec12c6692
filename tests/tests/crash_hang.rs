//! Partitions and processes that hang: they are noticed, their slots freed, and others go on meanwhile.
//!
//! ```text
//! cargo test --release -p proofkeep-tests --test crash_hang -- --nocapture
//! ```
//! The limits are the released ones: 60 s without progress, then 30 s to answer. The scenes wait for them side by side.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod regressions_support;

use std::io::Write as _;
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use proofkeep_scripted::mark_count;
use proofkeep_tests::harness::{is_alive, signal, until, until_some};
use proofkeep_tests::report::Report;
use proofkeep_tests::setting;
use regressions_support::{Scripted, attempts};
use serde_json::{Value, json};

/// Stall and grace are a minute and a half; a loaded machine may take several times that.
const LONG: Duration = Duration::from_secs(400);

/// A daemon with three slots: one hangs, one is beside it, one is free for others.
struct Scene {
    server: Scripted,
    marks: PathBuf,
    go: PathBuf,
    job: String,
    worker: u32,
    others: u64,
}

impl Scene {
    /// With a job whose first partition does so, and whose second waits in the middle of its proof.
    fn start(first: &Value) -> Self {
        let server = Scripted::start(&[
            "--cpu-devices",
            "3",
            "--memory",
            "8GiB",
            "--checkpoint-after",
            "0s",
        ]);
        let (marks, go) = (server.directory.path().join("marks"), server.gate("go"));
        let mut body = server.body(&[first.clone(), json!({ "gate": { "stage": "a", "file": go } })]);
        body["ticket_bytes"] = json!(256 << 20);
        let job = server.submit(&body);
        until("both are proved", || {
            mark_count(&marks, 0, "l") > 0 && mark_count(&marks, 1, "a") > 0
        });
        let worker = until_some("there is a worker process", || server.workers().first().copied());
        Self {
            server,
            marks,
            go,
            job,
            worker,
            others: 0,
        }
    }

    fn shown(&self) -> Value {
        self.server
            .get(&format!("/v1/jobs/{}", self.job))
            .expect(200)
            .json()
    }

    /// Waits while the daemon answers and, where they can, other jobs are proved.
    fn meanwhile(&mut self, others: bool, over: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + LONG;
        loop {
            let shown = self.shown();
            if over(&shown) {
                return shown;
            }
            assert!(Instant::now() < deadline, "it hangs and nobody minds: {shown}");
            self.server.get("/readyz").expect(200);
            if others {
                let mut body = self.server.body(&[json!({ "piece_ms": 5 })]);
                body.as_object_mut().unwrap().remove("marks");
                let other = self.server.submit(&body);
                assert_eq!(self.server.wait_for_end(&other)["state"], "succeeded");
                self.others += 1;
            }
            std::thread::park_timeout(Duration::from_millis(500));
        }
    }

    /// Lets the second partition go on and waits for the end.
    fn end(&self) -> Value {
        std::fs::write(&self.go, "").unwrap();
        self.server.wait_for_end(&self.job)
    }
}

fn classes(job: &Value, index: usize) -> Vec<String> {
    let rows = attempts(job, index).into_iter();
    rows.map(|(_, outcome, class)| class.unwrap_or(outcome)).collect()
}

fn has_ended(job: &Value, index: usize) -> bool {
    attempts(job, index)[0].1 != "open"
}

/// No progress and no answer: the process is killed, its neighbour isn't blamed.
fn a_hang() -> u64 {
    let mut scene = Scene::start(&json!({ "crash": { "stage": "l", "how": "hang", "times": 1 } }));
    let shown = scene.meanwhile(true, |job| has_ended(job, 0));
    assert_eq!(classes(&shown, 0)[0], "stalled", "{shown}");
    let detail = shown["partitions"][0]["attempts"][0]["error"]["detail"]
        .as_str()
        .unwrap();
    assert!(detail.contains("no progress"), "{detail}");
    let ended = scene.end();
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(
        (classes(&ended, 0), classes(&ended, 1)),
        (words(&["stalled", "ok"]), words(&["interrupted", "ok"])),
        "{ended}"
    );
    // What was finished before is not done again.
    assert_eq!(mark_count(&scene.marks, 0, "h"), 1);
    assert!(
        !is_alive(scene.worker),
        "the process that didn't answer is still there"
    );
    finish(scene)
}

/// No progress, but it ends when asked: only its slot is taken, nobody dies.
fn a_stall_that_ends_when_asked() -> u64 {
    let mut scene = Scene::start(&json!({ "crash": { "stage": "l", "how": "still", "times": 1 } }));
    let shown = scene.meanwhile(true, |job| has_ended(job, 0));
    assert_eq!(classes(&shown, 0)[0], "stalled", "{shown}");
    assert_eq!(scene.server.workers(), [scene.worker], "nothing was to be killed");
    let ended = scene.end();
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(
        (classes(&ended, 0), classes(&ended, 1)),
        (words(&["stalled", "ok"]), words(&["ok"])),
        "{ended}"
    );
    finish(scene)
}

/// Progress, but no answer to a cancel: the process is killed after the grace, and the cancel is done.
fn a_deaf_one() -> u64 {
    let mut scene = Scene::start(&json!({ "crash": { "stage": "l", "how": "deaf" } }));
    // A neighbour of another job must live through it.
    let gate = json!({ "gate": { "stage": "b1", "file": scene.go } });
    let mut body = scene.server.body(&[gate]);
    let marks = scene.server.directory.path().join("neighbour");
    std::fs::create_dir(&marks).unwrap();
    body["marks"] = json!(marks);
    let neighbour = scene.server.submit(&body);
    until("the neighbour is proved", || mark_count(&marks, 0, "b1") > 0);
    scene
        .server
        .post(&format!("/v1/jobs/{}/cancel", scene.job), &json!({}))
        .expect(202);
    let ended = scene.meanwhile(false, |job| job["ended_at"].is_string());
    assert_eq!(ended["state"], "cancelled", "{ended}");
    assert!(
        !is_alive(scene.worker),
        "the process that didn't answer is still there"
    );
    std::fs::write(&scene.go, "").unwrap();
    let ended = scene.server.wait_for_end(&neighbour);
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(classes(&ended, 0), words(&["interrupted", "ok"]), "{ended}");
    finish(scene)
}

/// The whole process is stopped, so that it neither works nor reads its socket; clients that never read are there too.
fn a_stopped_process() -> u64 {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut scene =
        Scene::start(&json!({ "gate": { "stage": "l", "file": file.path().with_extension("go") } }));
    let clients: Vec<TcpStream> = (0..8).map(|_| scene.deaf_client()).collect();
    signal(scene.worker, libc::SIGSTOP);
    let shown = scene.meanwhile(false, |job| has_ended(job, 0) && has_ended(job, 1));
    let first = [classes(&shown, 0)[0].clone(), classes(&shown, 1)[0].clone()];
    assert!(first.contains(&"stalled".to_owned()), "{shown}");
    assert!(
        first
            .iter()
            .all(|class| matches!(class.as_str(), "stalled" | "interrupted")),
        "{shown}"
    );
    assert!(!is_alive(scene.worker), "the stopped process is still there");
    let go = file.path().with_extension("go");
    std::fs::write(&go, "").unwrap();
    let ended = scene.end();
    std::fs::remove_file(go).unwrap();
    assert_eq!(ended["state"], "succeeded", "{ended}");
    // They are still there while the daemon stops.
    let others = finish(scene);
    drop(clients);
    others
}

impl Scene {
    /// Asks for the job so often that the answers fill every buffer, and reads none.
    fn deaf_client(&self) -> TcpStream {
        let host = self.server.url().trim_start_matches("http://");
        let mut stream = TcpStream::connect(host).unwrap();
        stream.set_nonblocking(true).unwrap();
        let request = format!("GET /v1/jobs/{} HTTP/1.1\r\nhost: localhost\r\n\r\n", self.job);
        // Until the daemon takes no more, which is the point.
        while stream.write_all(request.as_bytes()).is_ok() {}
        stream
    }
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

fn finish(scene: Scene) -> u64 {
    let status = scene.server.get("/v1/status").expect(200).json();
    let idle = status["workers"]
        .as_array()
        .unwrap()
        .iter()
        .all(|worker| worker["state"] == "idle");
    assert!(idle, "a slot was not freed: {status}");
    scene.server.check();
    scene.others
}

#[test]
fn what_hangs_is_noticed_and_others_go_on() {
    let scenes: [fn() -> u64; 4] = [
        a_hang,
        a_stall_that_ends_when_asked,
        a_deaf_one,
        a_stopped_process,
    ];
    let others: u64 = std::thread::scope(|scope| {
        let running: Vec<_> = scenes.map(|scene| scope.spawn(scene)).into_iter().collect();
        running
            .into_iter()
            .map(|scene| {
                scene
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .sum()
    });
    assert!(others > 10, "only {others} other jobs were proved meanwhile");
    Report::new("hangs", setting::seed())
        .count("hangs", scenes.len() as u64)
        .count("other jobs proved meanwhile", others)
        .publish();
}
