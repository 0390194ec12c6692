//! Every resource with every method: those that there are do something, the others say which there are. The table below
//! is held against the product's own, so that a new resource is one line here or a failure.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http_support;

use std::collections::BTreeSet;

use http_support::{Server, problem};
use proofkeep_tests::harness::Answer;

/// Paths with something for each open part, and the methods that they have.
const ROUTES: [(&str, &str); 33] = [
    ("/livez", "GET, HEAD"),
    ("/readyz", "GET, HEAD"),
    ("/status", "GET, HEAD"),
    ("/v1/status", "GET, HEAD"),
    ("/v1/blobs", "POST"),
    ("/v1/blobs/{}", "HEAD, PUT"),
    ("/v1/circuits", "GET, HEAD"),
    ("/v1/circuits/{}", "GET, PUT, DELETE, HEAD"),
    ("/v1/circuits/{}/vk", "GET, HEAD"),
    ("/v1/circuits/{}/prove", "POST"),
    ("/v1/admin/backup", "POST"),
    ("/v1/tokens", "GET, POST, HEAD"),
    ("/v1/tokens/{}", "DELETE"),
    ("/v1/params", "GET, HEAD"),
    ("/v1/params/{}", "GET, HEAD"),
    ("/v1/params/{}/evict", "POST"),
    ("/v1/params/{}/pin", "POST"),
    ("/v1/params/{}/preload", "POST"),
    ("/v1/params/{}/unpin", "POST"),
    ("/v1/params/{}/verify", "POST"),
    ("/v1/verify", "POST"),
    ("/v1/jobs", "GET, POST, HEAD"),
    ("/v1/jobs/{}", "GET, HEAD"),
    ("/v1/jobs/{}/cancel", "POST"),
    ("/v1/jobs/{}/retry", "POST"),
    ("/v1/jobs/{}/events", "GET, HEAD"),
    ("/v1/jobs/{}/partitions", "GET, HEAD"),
    ("/v1/jobs/{}/partitions/{}", "GET, HEAD"),
    ("/v1/jobs/{}/partitions/{}/proof", "GET, HEAD"),
    ("/v1/jobs/{}/partitions/{}/public", "GET, HEAD"),
    ("/v1/jobs/{}/proof", "GET, HEAD"),
    ("/v1/jobs/{}/public", "GET, HEAD"),
    ("/v1/jobs/{}/results", "GET, HEAD"),
];

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];

/// What every answer says, whatever it is.
#[track_caller]
fn is_safe(answer: &Answer, asked: &str) {
    for (name, value) in [
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        (
            "content-security-policy",
            "default-src 'none'; frame-ancestors 'none'",
        ),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{asked}: {name}");
    }
    assert!(
        answer.header("access-control-allow-origin").is_none(),
        "{asked}: no page of another origin may read it"
    );
}

#[test]
fn every_resource_answers_its_methods_and_names_them_to_the_others() {
    let server = Server::start(&[]);
    for (pattern, allow) in ROUTES {
        let path = pattern.replace("{}", "0");
        let has: Vec<&str> = allow.split(", ").collect();
        for method in METHODS {
            let asked = format!("{method} {path}");
            let answer = server.send(method, &path, &[], None);
            is_safe(&answer, &asked);
            if has.contains(&method) {
                assert!(
                    answer.status != 405 && answer.status < 500,
                    "{asked}: {} {}",
                    answer.status,
                    answer.text()
                );
                // Nothing of the name 0 is there, but the resource is.
                if answer.status == 404 && method != "HEAD" {
                    assert_ne!(answer.code(), "not-found", "{asked}");
                }
            } else {
                if method == "HEAD" {
                    assert_eq!(answer.status, 405, "{asked}");
                } else {
                    let detail = problem(&answer, 405, "method-not-allowed");
                    assert!(detail.contains(allow), "{asked}: {detail}");
                }
                assert_eq!(answer.header("allow"), Some(allow), "{asked}");
            }
        }
        for nowhere in [
            format!("{path}/"),
            format!("{path}/nowhere"),
            format!("/v2{path}"),
        ] {
            for method in ["GET", "POST", "DELETE"] {
                let answer = server.send(method, &nowhere, &[], None);
                let found = answer.status == 405 || answer.code() != "not-found";
                if found {
                    // `/v1/jobs/nowhere` is a job of that name.
                    assert!(is_listed(&nowhere), "{method} {nowhere}: {}", answer.text());
                } else {
                    problem(&answer, 404, "not-found");
                }
                is_safe(&answer, &nowhere);
            }
        }
    }
}

/// Whether a path has the shape of one in the table.
fn is_listed(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    ROUTES.iter().any(|(pattern, _)| {
        let expected: Vec<&str> = pattern.split('/').collect();
        expected.len() == parts.len()
            && expected
                .iter()
                .zip(&parts)
                .all(|(expected, part)| (*expected == "{}" && !part.is_empty()) || expected == part)
    })
}

#[test]
fn answers_that_no_handler_gives_are_as_safe() {
    let server = Server::start(&["--max-connections", "1"]);
    is_safe(&server.get("/"), "/");
    is_safe(
        &server.send("GET", "/livez", &[("host", "evil.example")], None),
        "a foreign host",
    );
    is_safe(
        &server.send("POST", "/v1/jobs", &[("origin", "null")], Some(b"{}")),
        "a foreign origin",
    );
    // The one place is taken by a connection that says nothing. The first may be turned away itself, while that of the
    // request before it is closed.
    let address = server.url().trim_start_matches("http://").to_owned();
    let mut held = Vec::new();
    let refused = proofkeep_tests::harness::until_some("the place is taken", || {
        held.push(std::net::TcpStream::connect(&address).unwrap());
        Some(server.get("/livez")).filter(|answer| answer.status == 503)
    });
    drop(held);
    assert_eq!(refused.code(), "too-many-connections");
    is_safe(&refused, "a connection too many");
}

#[test]
fn the_table_is_the_products() {
    let source = include_str!("../../api/src/http/route.rs");
    let lines = source.lines().map(str::trim);
    let product: BTreeSet<&str> = lines
        .filter(|line| line.starts_with("\"/") && line.contains(" { "))
        .filter_map(|line| line.split('"').nth(1))
        .chain(["/livez", "/readyz"])
        .collect();
    let listed: BTreeSet<&str> = ROUTES.iter().map(|(pattern, _)| *pattern).collect();
    assert_eq!(product, listed, "left: api/src/http/route.rs; right: this file");
}
