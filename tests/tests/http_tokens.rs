//! Who may ask a daemon that wants tokens, what each scope opens, and whose name the journal has.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http_support;

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use http_support::{JSON, Server, id, problem, products};
use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{Answer, Daemon, Launch, Ran, command, proofkeep, run};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A data directory with tokens that a command made before there was a daemon.
struct Desk {
    directory: TempDir,
}

impl Desk {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// `proofkeep token …` on the data directory.
    fn token(&self, words: &[&str]) -> Ran {
        let data = self.data();
        let place = ["--data-dir", data.to_str().unwrap()];
        proofkeep([&["token"], words, &place].concat())
    }

    fn add(&self, name: &str, more: &[&str]) -> String {
        let made = self.token(&[&["add", name], more].concat()).expect(0);
        made.stdout.trim().to_owned()
    }

    fn start(&self, arguments: &[&str]) -> Daemon {
        Daemon::start(&self.data(), arguments)
    }
}

fn ask(daemon: &Daemon, token: &str, method: &str, path: &str, body: Option<&Value>) -> Answer {
    let authorization = format!("Bearer {token}");
    let headers = [("authorization", &authorization[..]), JSON];
    let text = body.map(Value::to_string);
    daemon.send(method, path, &headers, text.as_deref().map(str::as_bytes))
}

#[test]
fn without_a_token_nobody_gets_in_where_one_is_wanted() {
    let desk = Desk::new();
    let token = desk.add("ci", &[]);
    let daemon = desk.start(&["--require-token", "true"]);
    for path in [
        "/v1/status",
        "/status",
        "/v1/jobs",
        "/v1/tokens",
        "/v1/nothing",
        "/",
    ] {
        let answer = daemon.get(path);
        problem(&answer, 401, "token-missing");
        assert_eq!(
            answer.header("www-authenticate"),
            Some("Bearer realm=\"proofkeep\""),
            "{path}"
        );
    }
    for wrong in [
        "pk_00",
        &format!("pk_{}", "0".repeat(64)),
        &token[..token.len() - 1],
        &token.to_uppercase(),
    ] {
        let answer = ask(&daemon, wrong, "GET", "/v1/status", None);
        problem(&answer, 401, "token-unknown");
        assert!(
            answer
                .header("www-authenticate")
                .unwrap()
                .contains("invalid_token")
        );
        assert!(!answer.text().contains(wrong), "{}", answer.text());
    }
    assert_eq!(ask(&daemon, &token, "GET", "/v1/status", None).status, 200);
    // Whether it lives may be asked by whoever watches it.
    assert_eq!(daemon.get("/livez").status, 200);
    assert_eq!(daemon.get("/readyz").status, 200);
}

#[test]
fn what_a_proxy_passes_on_is_not_from_this_machine() {
    let server = Server::start(&[]);
    assert_eq!(server.get("/v1/status").status, 200);
    for header in ["forwarded", "via", "x-forwarded-for", "x-real-ip"] {
        let answer = server.send("GET", "/v1/status", &[(header, "192.0.2.1")], None);
        problem(&answer, 401, "token-missing");
    }
    // Who sends a token means it: a wrong one doesn't turn into none.
    problem(
        &server.send("GET", "/v1/status", &[("authorization", "Bearer pk_1")], None),
        401,
        "token-unknown",
    );
}

#[test]
fn each_scope_opens_what_it_says_and_a_refusal_names_the_one_that_is_needed() {
    let desk = Desk::new();
    let tokens = ["read", "submit", "admin"].map(|scope| (scope, desk.add(scope, &["--scope", scope])));
    let daemon = desk.start(&["--require-token", "true"]);
    let body = json!({});
    let backup = json!({ "target": "relative" });
    let token = json!({ "name": "local" });
    let cases: [(&str, &str, Option<&Value>, &str); 12] = [
        ("GET", "/v1/status", None, "read"),
        ("GET", "/status", None, "read"),
        ("GET", "/v1/jobs", None, "read"),
        ("GET", "/v1/circuits", None, "read"),
        ("POST", "/v1/verify", Some(&body), "read"),
        ("POST", "/v1/jobs", Some(&body), "submit"),
        ("POST", "/v1/jobs/x/cancel", Some(&body), "submit"),
        ("HEAD", "/v1/blobs/sha256:0", None, "submit"),
        ("PUT", "/v1/circuits/c", Some(&body), "admin"),
        ("DELETE", "/v1/circuits/c", None, "admin"),
        ("POST", "/v1/admin/backup", Some(&backup), "admin"),
        ("POST", "/v1/tokens", Some(&token), "admin"),
    ];
    for (method, path, body, needed) in cases {
        for (scope, token) in &tokens {
            let answer = ask(&daemon, token, method, path, body);
            let allowed = *scope == needed || *scope == "admin";
            assert_eq!(
                answer.status == 403,
                !allowed,
                "{method} {path} with {scope}: {}",
                answer.status
            );
            assert_ne!(answer.status, 401, "{method} {path} with {scope}");
            if !allowed && method != "HEAD" {
                let detail = problem(&answer, 403, "scope");
                assert!(detail.contains(needed), "{detail}");
                assert_eq!(answer.json()["scope"], needed);
                assert!(
                    answer
                        .header("www-authenticate")
                        .unwrap()
                        .contains("insufficient_scope")
                );
            }
        }
    }
}

#[test]
fn the_journal_names_whose_token_it_was() {
    let desk = Desk::new();
    let ops = desk.add("ops", &["--scope", "admin"]);
    let shop = desk.add("shop.eu-1", &[]);
    let daemon = desk.start(&[]);
    // Without a token, from this machine: that is how the circuit gets there.
    let files =
        ["r1cs", "zkey", "wasm"].map(|file| (file, fixtures::read("multiplier", &format!("circuit.{file}"))));
    let files: Vec<(&str, &[u8])> = files.iter().map(|(file, bytes)| (*file, &bytes[..])).collect();
    let circuit = daemon.register("multiplier", &files);
    assert_eq!(circuit["actor"], "local");
    let submit = |token: &str| ask(&daemon, token, "POST", "/v1/jobs", Some(&products(&[(3, 5)])));
    let job = submit(&shop).expect(202).json();
    assert_eq!(job["actor"], "shop.eu-1");
    let cancelled = ask(
        &daemon,
        &ops,
        "POST",
        &format!("/v1/jobs/{}/cancel", id(&job)),
        Some(&json!({})),
    );
    let local = daemon.post("/v1/jobs", &products(&[(2, 7)])).expect(202).json();
    assert_eq!(local["actor"], "local");
    daemon.wait_for_end(id(&job));
    let events = daemon
        .get(&format!("/v1/jobs/{}/events", id(&job)))
        .expect(200)
        .text();
    assert!(events.contains("\"actor\":\"shop.eu-1\""), "{events}");
    // It may have been proved before the wish came; then there is nothing to name.
    if cancelled.status == 202 && daemon.get(&format!("/v1/jobs/{}", id(&job))).json()["state"] == "cancelled"
    {
        assert!(events.contains("\"actor\":\"ops\""), "{events}");
    }
    let list = ask(&daemon, &ops, "GET", "/v1/jobs?actor=shop.eu-1", None)
        .expect(200)
        .json();
    assert_eq!(list["jobs"].as_array().unwrap().len(), 1);
    // A retry names who asked for it.
    let bad = json!({ "kind": "groth16", "circuit": "multiplier", "max_attempts": 1,
                      "inputs": [{ "input": { "a": "1" } }] });
    let refused = ask(&daemon, &shop, "POST", "/v1/jobs", Some(&bad));
    if refused.status == 202 {
        let failed = refused.json();
        daemon.wait_for_end(id(&failed));
        ask(
            &daemon,
            &ops,
            "POST",
            &format!("/v1/jobs/{}/retry", id(&failed)),
            Some(&json!({})),
        )
        .expect(202);
        let events = daemon.get(&format!("/v1/jobs/{}/events", id(&failed))).text();
        assert!(events.contains("\"actor\":\"ops\""), "{events}");
    }
}

#[test]
fn a_token_that_is_used_too_often_waits_and_others_do_not() {
    let desk = Desk::new();
    let slow = desk.add("slow", &["--rate", "2"]);
    let fast = desk.add("fast", &["--rate", "100000"]);
    let daemon = desk.start(&[]);
    // However slow this machine is, of so many at once some come too early.
    let answers: Vec<u16> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..40)
            .map(|_| scope.spawn(|| ask(&daemon, &slow, "GET", "/v1/circuits", None)))
            .collect();
        asked
            .into_iter()
            .map(|answer| {
                let answer = answer.join().unwrap();
                if answer.status == 429 {
                    problem(&answer, 429, "rate-limit");
                    assert_eq!(answer.header("retry-after"), Some("1"));
                    assert_eq!(answer.json()["retryable"], true);
                }
                answer.status
            })
            .collect()
    });
    assert!(
        answers.iter().all(|status| [200, 429].contains(status)),
        "{answers:?}"
    );
    assert!(answers.contains(&200) && answers.contains(&429), "{answers:?}");
    for _ in 0..40 {
        assert_eq!(ask(&daemon, &fast, "GET", "/v1/circuits", None).status, 200);
    }
    assert_eq!(daemon.get("/v1/circuits").status, 200);
}

#[test]
fn tokens_are_made_and_removed_over_http_and_survive_a_kill() {
    let desk = Desk::new();
    let daemon = desk.start(&[]);
    let made = daemon.post(
        "/v1/tokens",
        &json!({ "name": "one", "scopes": ["read"], "rate": 50 }),
    );
    let one = made.expect(201).json();
    assert_eq!(one["scopes"], json!(["read"]));
    let two = daemon
        .post("/v1/tokens", &json!({ "name": "two" }))
        .expect(201)
        .json();
    assert_eq!(two["scopes"], json!(["read", "submit"]));
    problem(
        &daemon.post("/v1/tokens", &json!({ "name": "one" })),
        409,
        "name-in-use",
    );
    for bad in [
        json!({ "name": "local" }),
        json!({ "name": "a b" }),
        json!({ "name": "x", "scopes": ["root"] }),
        json!({ "name": "x", "scopes": [] }),
        json!({ "name": "x", "rate": 0 }),
        json!({ "name": "x", "color": 1 }),
        json!({}),
    ] {
        problem(&daemon.post("/v1/tokens", &bad), 422, "bad-field");
    }
    let secret = |token: &Value| token["token"].as_str().unwrap().to_owned();
    daemon.kill();
    let daemon = desk.start(&["--require-token", "true"]);
    assert_eq!(ask(&daemon, &secret(&one), "GET", "/v1/status", None).status, 200);
    assert_eq!(ask(&daemon, &secret(&two), "GET", "/v1/status", None).status, 200);
    let admin = {
        daemon.kill();
        desk.add("admin", &["--scope", "admin"])
    };
    let daemon = desk.start(&["--require-token", "true"]);
    let list = ask(&daemon, &admin, "GET", "/v1/tokens", None).expect(200);
    let names: Vec<_> = list.json()["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .map(|token| token["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["admin", "one", "two"]);
    assert!(
        !list.text().contains("pk_") && !list.text().contains("sha256"),
        "{}",
        list.text()
    );
    assert_eq!(ask(&daemon, &admin, "DELETE", "/v1/tokens/one", None).status, 204);
    problem(
        &ask(&daemon, &secret(&one), "GET", "/v1/status", None),
        401,
        "token-unknown",
    );
    problem(
        &ask(&daemon, &admin, "DELETE", "/v1/tokens/one", None),
        404,
        "unknown-token",
    );
    daemon.kill();
    let daemon = desk.start(&["--require-token", "true"]);
    problem(
        &ask(&daemon, &secret(&one), "GET", "/v1/status", None),
        401,
        "token-unknown",
    );
    assert_eq!(ask(&daemon, &secret(&two), "GET", "/v1/status", None).status, 200);
}

#[test]
fn the_command_line_brings_its_token_in_a_file() {
    let desk = Desk::new();
    let file = desk.directory.path().join("ops.token");
    let made = desk
        .token(&["add", "ops", "--scope", "admin", "--out", file.to_str().unwrap()])
        .expect(0);
    assert!(
        !made.stdout.contains("pk_") && !made.stderr.contains("pk_"),
        "{made:?}"
    );
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let again = desk
        .token(&["add", "other", "--out", file.to_str().unwrap()])
        .expect(1);
    assert!(again.stderr.contains("unwritable"), "{}", again.stderr);
    let daemon = desk.start(&["--require-token", "true"]);
    let none = proofkeep(["ls", "--server", daemon.url()]).expect(1);
    assert!(none.stderr.contains("--token-file"), "{}", none.stderr);
    let with = |words: &[&str]| {
        let mut command = command(words);
        run(command
            .env("PROOFKEEP_TOKEN_FILE", &file)
            .args(["--server", daemon.url()]))
    };
    with(&["ls"]).expect(0);
    with(&["status"]).expect(0);
    // The data directory is the daemon's now, so it is asked.
    let path = file.to_str().unwrap();
    let made = desk.token(&["add", "late", "--token-file", path]).expect(0);
    assert!(made.stderr.contains("asking it"), "{}", made.stderr);
    let late = made.stdout.trim().to_owned();
    assert_eq!(ask(&daemon, &late, "GET", "/v1/status", None).status, 200);
    let list = desk.token(&["ls", "--token-file", path]).expect(0).stdout;
    assert!(list.contains("late") && list.contains("read,submit"), "{list}");
    desk.token(&["rm", "late", "--token-file", path]).expect(0);
    assert_eq!(ask(&daemon, &late, "GET", "/v1/status", None).status, 401);
    desk.token(&["rm", "late", "--token-file", path]).expect(1);
    fs::write(&file, "not a token").unwrap();
    let bad = with(&["ls"]).expect(1);
    assert!(
        !bad.stderr.contains("not a token") && bad.stderr.contains("ops.token"),
        "{}",
        bad.stderr
    );
}

#[test]
fn other_machines_are_served_only_with_a_token_and_when_plain_http_is_meant() {
    let desk = Desk::new();
    let serve = |more: &[&str]| {
        let data = desk.data();
        let words = [
            "serve",
            "--listen",
            "0.0.0.0:0",
            "--data-dir",
            data.to_str().unwrap(),
        ];
        proofkeep([&words, more].concat())
    };
    let plain = serve(&[]).expect(2);
    assert!(plain.stderr.contains("allow_plain_http"), "{}", plain.stderr);
    let tokenless = serve(&["--allow-plain-http", "true"]).expect(1);
    assert!(
        tokenless.stderr.contains("no-token") && tokenless.stderr.contains("proofkeep token add"),
        "{}",
        tokenless.stderr
    );
    let token = desk.add("far", &["--scope", "read"]);
    let daemon = desk.start(&["--listen", "0.0.0.0:0", "--allow-plain-http", "true"]);
    let port = daemon.url().rsplit(':').next().unwrap().to_owned();
    let here = proofkeep_tests::harness::Http::new(&format!("http://127.0.0.1:{port}"));
    assert_eq!(here.get("/v1/status").status, 200);
    // The command finds the daemon of the directory although it listens everywhere.
    desk.token(&["ls"]).expect(0);
    let Some(address) = own_address() else {
        eprintln!("this machine has no address but loopback; requests from elsewhere were not tried");
        return;
    };
    let far = proofkeep_tests::harness::Http::new(&format!("http://{address}:{port}"));
    problem(&far.get("/v1/status"), 401, "token-missing");
    let bearer = format!("Bearer {token}");
    assert_eq!(
        far.send("GET", "/v1/status", &[("authorization", &bearer)], None)
            .status,
        200
    );
    let rebound = [("authorization", &bearer[..]), ("host", "evil.example")];
    problem(
        &far.send("GET", "/v1/status", &rebound, None),
        421,
        "unknown-host",
    );
}

/// An address of this machine that isn't loopback. Nothing is sent.
fn own_address() -> Option<std::net::IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

#[test]
fn a_list_of_tokens_that_is_damaged_ends_the_start_and_lets_nobody_in() {
    let desk = Desk::new();
    desk.add("ci", &[]);
    let file = desk.data().join("tokens");
    damage(&file);
    let failed = Launch::new(&desk.data()).try_start().unwrap_err();
    assert!(failed.stderr.contains("tokens-damaged"), "{}", failed.stderr);
    let listed = desk.token(&["ls"]).expect(1);
    assert!(listed.stderr.contains("tokens-damaged"), "{}", listed.stderr);
    // One that can't be read at all: a directory is in its place.
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let failed = Launch::new(&desk.data()).try_start().unwrap_err();
    for part in [file.to_str().unwrap(), "Is a directory", "then start again"] {
        assert!(failed.stderr.contains(part), "{part}: {}", failed.stderr);
    }
}

fn damage(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    bytes.truncate(bytes.len() / 2);
    fs::write(file, bytes).unwrap();
}
