//! Who may ask, and what a request that leads nowhere gets.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http_support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use http_support::{JSON, Server, problem};

#[test]
fn a_name_that_is_not_ours_gets_421_unless_it_is_allowed() {
    let server = Server::start(&["--allowed-host", "proofs.example"]);
    let ask = |host: &str| server.send("GET", "/v1/status", &[("host", host)], None);
    let detail = problem(&ask("evil.example"), 421, "unknown-host");
    assert!(
        detail.contains("evil.example") && detail.contains("allowed_hosts"),
        "{detail}"
    );
    assert_eq!(ask("proofs.example:8420").status, 200);
    assert_eq!(ask("localhost").status, 200);
}

#[test]
fn no_web_page_can_drive_it() {
    let server = Server::start(&[]);
    let body = br#"{"kind":"groth16"}"#;
    let post = |headers: &[(&str, &str)]| server.send("POST", "/v1/jobs", headers, Some(body));
    let own = server.url().to_owned();
    problem(
        &post(&[JSON, ("origin", "http://evil.example")]),
        403,
        "foreign-origin",
    );
    problem(&post(&[JSON, ("origin", "null")]), 403, "foreign-origin");
    problem(
        &post(&[JSON, ("sec-fetch-site", "cross-site")]),
        403,
        "foreign-origin",
    );
    problem(&post(&[JSON, ("origin", &own)]), 422, "bad-field");
    // What a form can send is no JSON to us, whatever is in it.
    for form in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ] {
        let detail = problem(&post(&[("content-type", form)]), 415, "media-type");
        assert!(detail.contains("application/json"), "{detail}");
        let blob = server.send("POST", "/v1/blobs", &[("content-type", form)], Some(b"x"));
        problem(&blob, 415, "media-type");
    }
    assert!(
        post(&[JSON, ("origin", &own)])
            .header("access-control-allow-origin")
            .is_none()
    );
}

#[test]
fn paths_that_lead_nowhere_are_404_and_missing_methods_405_with_allow() {
    let server = Server::start(&[]);
    for path in ["/", "/v1", "/v1/jobs/", "/v1/nothing", "/metrics", "/v1/workers"] {
        problem(&server.get(path), 404, "not-found");
    }
    for (method, path, allow) in [
        ("DELETE", "/v1/jobs", "GET, POST, HEAD"),
        ("POST", "/v1/status", "GET, HEAD"),
        ("GET", "/v1/verify", "POST"),
        ("DELETE", "/livez", "GET, HEAD"),
        ("OPTIONS", "/v1/jobs", "GET, POST, HEAD"),
    ] {
        let answer = server.send(method, path, &[], None);
        problem(&answer, 405, "method-not-allowed");
        assert_eq!(answer.header("allow"), Some(allow), "{method} {path}");
    }
    assert_eq!(server.send("HEAD", "/v1/status", &[], None).status, 200);
}

#[test]
fn what_is_malformed_outside_of_the_body_is_400_and_named() {
    let server = Server::start(&[]);
    let named = |path: &str, code: &str, part: &str| {
        let detail = problem(&server.get(path), 400, code);
        assert!(detail.contains(part), "{path}: {detail}");
    };
    named("/v1/jobs?sate=queued", "unknown-parameter", "\"sate\"");
    named("/v1/status?verbose=1", "unknown-parameter", "verbose");
    named("/v1/jobs?limit=0", "malformed-query", "1 to 1000");
    named("/v1/jobs?limit=1&limit=2", "malformed-query", "twice");
    named("/v1/jobs?state=done", "malformed-query", "succeeded");
    named(
        "/v1/jobs?since=yesterday",
        "malformed-query",
        "2026-11-30T15:47:00Z",
    );
    named("/v1/jobs?kind=%zz", "malformed-query", "percent");
    named("/v1/jobs?cursor=ab", "malformed-cursor", "cursor");
    problem(
        &server.send("PUT", "/v1/blobs/sha256:abc", &[], Some(b"x")),
        400,
        "malformed-digest",
    );
    let prefer = server.send("POST", "/v1/jobs", &[JSON, ("prefer", "wait=soon")], Some(b"{}"));
    assert!(problem(&prefer, 400, "malformed-header").contains("wait"));
    let key = server.send(
        "POST",
        "/v1/jobs",
        &[JSON, ("idempotency-key", "two words")],
        Some(b"{}"),
    );
    assert!(problem(&key, 400, "malformed-header").contains("idempotency-key"));
    problem(
        &server.send("POST", "/v1/jobs", &[JSON], Some(b"{\"kind\":")),
        400,
        "malformed-json",
    );
}

#[test]
fn a_json_body_has_a_limit_that_is_named() {
    let server = Server::start(&[]);
    let body = vec![b' '; 3 << 20];
    let answer = server.send("POST", "/v1/jobs", &[JSON], Some(&body));
    assert!(problem(&answer, 413, "too-large").contains("2097152"));
    assert_eq!(answer.json()["limit"], 2_097_152);
    assert_eq!(server.get("/v1/status").status, 200);
}

#[test]
fn every_answer_says_that_it_may_not_be_kept() {
    let server = Server::start(&[]);
    for path in ["/v1/status", "/v1/nothing", "/livez"] {
        let answer = server.get(path);
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
    }
}

#[test]
fn request_lines_of_every_shape_get_an_answer() {
    let server = Server::start(&[]);
    let status = |line: &str, headers: &str| -> u16 {
        let mut stream = TcpStream::connect(server.url().trim_start_matches("http://")).unwrap();
        let request = format!("{line} HTTP/1.1\r\n{headers}connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.split(' ').next());
        status
            .unwrap_or_else(|| panic!("{line}: {answer:?}"))
            .parse()
            .unwrap()
    };
    let host = "host: localhost\r\n";
    assert_eq!(status("GET /livez", host), 200);
    assert_eq!(status("GET http://localhost/livez", host), 200);
    assert_eq!(
        status("GET http://evil.example/livez", "host: evil.example\r\n"),
        421
    );
    assert_eq!(status("GET http://evil.example/livez", host), 421);
    assert_eq!(status("GET /livez", ""), 421);
    assert_eq!(
        status("GET /livez", "host: localhost\r\nhost: evil.example\r\n"),
        421
    );
    for line in [
        "CONNECT localhost",
        "GET localhost",
        "GET http://localhost",
        "OPTIONS *",
        "GET /v1/../livez",
    ] {
        assert_eq!(status(line, host), 404, "{line}");
    }
    assert_eq!(status("GET ?x", host), 400);
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
}
