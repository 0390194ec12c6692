//! A disk that hangs, a queue that is full, a body that stops coming: what is asked meanwhile is told so, and what was
//! begun goes on when the disk does.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod http_support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;

use http_support::{JSON, problem};
use proofkeep_store::Limits;
use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{Answer, Daemon, Launch, until, until_some};
use proofkeep_tests::shim::{Fault, Shims};
use serde_json::{Value, json};

/// A daemon whose database hangs in its syncs while a file is there.
struct Hanging {
    daemon: Daemon,
    armed: PathBuf,
    job: Value,
    _directory: tempfile::TempDir,
}

impl Hanging {
    /// With the circuit `multiplier` registered, and a job of it that wasn't submitted yet.
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let armed = directory.path().join("armed");
        let fault = Fault::hanging_syncs(directory.path(), armed.clone());
        let daemon = Launch::new(&directory.path().join("data"))
            .shims(Shims {
                fault: Some(fault),
                ..Shims::default()
            })
            .start();
        daemon.register(
            "multiplier",
            &[
                ("zkey", &fixtures::read("multiplier", "circuit.zkey")),
                ("r1cs", &fixtures::read("multiplier", "circuit.r1cs")),
            ],
        );
        let witness = daemon.upload(&fixtures::read("multiplier", "witness.wtns"));
        let job = json!({ "kind": "groth16", "circuit": "multiplier", "inputs": [{ "witness": witness }] });
        Self {
            daemon,
            armed,
            job,
            _directory: directory,
        }
    }

    fn hang(&self) {
        std::fs::write(&self.armed, "").unwrap();
    }

    fn go_on(&self) {
        std::fs::remove_file(&self.armed).unwrap();
    }
}

/// A request that is sent and whose answer is awaited by nobody yet.
struct Sent(TcpStream);

impl Sent {
    fn request(daemon: &Daemon, head: &str, length: usize, body: &[u8]) -> Self {
        let mut stream = TcpStream::connect(daemon.url().trim_start_matches("http://")).unwrap();
        let head = format!(
            "{head} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\
             content-type: {}\r\n\r\n",
            if head.contains("blobs") || head.contains("/prove") {
                "application/octet-stream"
            } else {
                "application/json"
            }
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        Self(stream)
    }

    fn json(daemon: &Daemon, head: &str, body: &Value) -> Self {
        let body = body.to_string();
        Self::request(daemon, head, body.len(), body.as_bytes())
    }

    /// Something of the answer is there.
    fn is_answered(&self) -> bool {
        self.0.set_nonblocking(true).unwrap();
        let seen = self.0.peek(&mut [0]);
        self.0.set_nonblocking(false).unwrap();
        seen.is_ok()
    }

    /// The whole answer, when it comes.
    fn answer(mut self) -> Answer {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes).unwrap();
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(&bytes)));
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        Answer {
            status,
            headers,
            body: bytes[end + 4..].to_vec(),
        }
    }
}

/// A test and its daemon need as many open files as the queue is long.
fn allow_open_files(count: u64) {
    // SAFETY: both calls are given a live struct of the right type, and nothing else.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit), 0);
        limit.rlim_cur = limit.rlim_cur.max(count.min(limit.rlim_max));
        assert!(
            limit.rlim_cur >= count,
            "this machine allows {} open files",
            limit.rlim_max
        );
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &limit), 0);
    }
}

/// Reads wait while the disk syncs, so requests used to pile up in front of the bounded queue, without an end.
#[test]
fn a_full_queue_is_429_with_retry_after_and_what_it_refused_is_no_job() {
    const TOO_MANY: usize = 40;
    let most = Limits::default().requests;
    allow_open_files(2 * most as u64 + 1000);
    let hanging = Hanging::start();
    hanging.hang();
    let sent: Vec<Sent> = (0..most + TOO_MANY)
        .map(|_| Sent::json(&hanging.daemon, "POST /v1/jobs", &hanging.job))
        .collect();
    let mut waiting = sent;
    let mut refused = Vec::new();
    until("what is too much is refused", || {
        let (answered, rest): (Vec<Sent>, Vec<Sent>) = std::mem::take(&mut waiting)
            .into_iter()
            .partition(Sent::is_answered);
        refused.extend(answered.into_iter().map(Sent::answer));
        waiting = rest;
        refused.len() >= TOO_MANY
    });
    for answer in &refused {
        let detail = problem(answer, 429, "queue-full");
        assert!(detail.contains("again"), "{detail}");
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert_eq!(answer.json()["retryable"], true);
    }
    assert_eq!(refused.len(), TOO_MANY, "the queue has room for {most}");
    hanging.go_on();
    for taken in waiting {
        assert_eq!(taken.answer().status, 202);
    }
    let mut jobs = 0;
    let mut cursor = String::new();
    loop {
        let page = hanging
            .daemon
            .get(&format!("/v1/jobs?limit=1000{cursor}"))
            .expect(200)
            .json();
        jobs += page["jobs"].as_array().unwrap().len();
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(jobs, most, "a job for each 202 and for nothing else");
    assert_eq!(hanging.daemon.post("/v1/jobs", &hanging.job).status, 202);
}

#[test]
fn while_the_disk_hangs_livez_fails_requests_are_503_and_the_status_is_the_last_one() {
    let hanging = Hanging::start();
    let daemon = &hanging.daemon;
    assert!(daemon.get("/v1/status").expect(200).json()["stale_ms"].is_null());
    hanging.hang();
    let first = Sent::json(daemon, "POST /v1/jobs", &hanging.job);
    let stale = until_some("the disk hangs", || {
        let status = daemon.get("/v1/status").expect(200);
        (!status.json()["stale_ms"].is_null()).then_some(status)
    });
    assert!(stale.header("proofkeep-stale-ms").is_some());
    // More of each than there are threads: none of them may keep the others from being answered.
    let unknown = "00000000-0000-4000-8000-000000000000";
    let mut asked = Vec::new();
    for _ in 0..40 {
        for head in [
            "DELETE /v1/circuits/multiplier",
            &format!("POST /v1/jobs/{unknown}/cancel"),
            &format!("POST /v1/jobs/{unknown}/retry"),
            "GET /v1/jobs",
        ] {
            asked.push(Sent::request(daemon, head, 0, b""));
        }
    }
    assert_eq!(daemon.get("/livez").status, 200, "a sync may be slow");
    let livez = until_some("the commit thread counts as stuck", || {
        Some(daemon.get("/livez")).filter(|answer| answer.status != 200)
    });
    let detail = problem(&livez, 503, "stuck");
    assert!(detail.contains("disk") && detail.contains("restart"), "{detail}");
    assert!(livez.header("retry-after").is_some());
    let body = hanging.job.to_string();
    for (method, path) in [("POST", "/v1/jobs"), ("GET", "/v1/jobs"), ("GET", "/readyz")] {
        let body = (method == "POST").then_some(body.as_bytes());
        let answer = daemon.send(method, path, &[JSON], body);
        problem(&answer, 503, "stuck");
        assert!(answer.header("retry-after").is_some(), "{method} {path}");
    }
    for path in ["/v1/status", "/status"] {
        let answer = daemon.get(path).expect(200);
        assert!(answer.header("proofkeep-stale-ms").is_some(), "{path}");
    }
    assert!(
        !first.is_answered(),
        "nothing is acknowledged before it is durable"
    );
    hanging.go_on();
    until("it is alive again", || daemon.get("/livez").status == 200);
    let job = first.answer().expect(202).json();
    for sent in asked {
        let answer = sent.answer();
        // 200: a list that was asked for so late that the disk went on first.
        assert!(
            matches!(answer.status, 200 | 204 | 404 | 409 | 503),
            "{} {}",
            answer.status,
            answer.text()
        );
    }
    assert_eq!(daemon.wait_for_end(http_support::id(&job))["state"], "succeeded");
    assert_eq!(daemon.get("/v1/jobs").json()["jobs"].as_array().unwrap().len(), 1);
}

#[test]
fn a_body_that_stops_coming_is_408_and_leaves_nothing() {
    let server = http_support::Server::with_multiplier(&[]);
    let bytes = vec![7; 1000];
    let stalled = [
        "POST /v1/jobs",
        "POST /v1/verify",
        "POST /v1/blobs",
        "POST /v1/circuits/multiplier/prove",
    ]
    .map(|head| (head, Sent::request(&server, head, 2 * bytes.len(), &bytes)));
    for (head, sent) in stalled {
        let answer = sent.answer();
        let detail = problem(&answer, 408, "body-timeout");
        assert!(detail.contains("again"), "{head}: {detail}");
        assert_eq!(answer.json()["retryable"], true);
    }
    let left = std::fs::read_dir(server.directory.path().join("data/tmp")).unwrap();
    assert_eq!(left.count(), 0, "what arrived of it is gone");
    assert_eq!(server.get("/v1/jobs").json()["jobs"], json!([]));
}
