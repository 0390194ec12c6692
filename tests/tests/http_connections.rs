//! Connections that get nowhere are given up, and too many are told so.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http_support;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use http_support::Server;
use proofkeep_tests::harness::{until, until_some};

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.url().trim_start_matches("http://")).unwrap();
    // A failure of this test, not of the daemon: it is to answer or hang up long before.
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Everything until the daemon hangs up.
fn all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the daemon didn't hang up: {error}"),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn ask(stream: &mut TcpStream, path: &str) {
    let host = stream.peer_addr().unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
}

/// The status line and the headers of an answer.
fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

#[test]
fn clients_that_send_no_request_are_hung_up_on() {
    let server = Server::start(&["--client-timeout", "1s"]);
    // Nothing at all; a request line without an end; one whose header never ends; one that got its answer and stays.
    let sent: [&[u8]; 3] = [
        b"",
        b"GET /v1/sta",
        b"GET /v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ",
    ];
    let mut silent: Vec<TcpStream> = sent
        .iter()
        .map(|bytes| {
            let mut stream = connect(&server);
            stream.write_all(bytes).unwrap();
            stream
        })
        .collect();
    let mut served = connect(&server);
    ask(&mut served, "/livez");
    assert!(head(&mut served).starts_with("HTTP/1.1 200 "));
    silent.push(served);
    for mut stream in silent {
        let said = all(&mut stream);
        assert!(!said.contains("HTTP/1.1 200"), "{said}");
    }
    assert_eq!(server.get("/livez").status, 200);
}

#[test]
fn a_connection_too_many_is_told_so_and_the_others_are_served() {
    let server = Server::start(&["--max-connections", "3"]);
    // The support's own requests have closed theirs.
    let mut kept: Vec<TcpStream> = Vec::new();
    let mut refused = until_some("all places are taken", || {
        let mut stream = connect(&server);
        ask(&mut stream, "/livez");
        let answer = head(&mut stream);
        if answer.starts_with("HTTP/1.1 200 ") {
            kept.push(stream);
            return None;
        }
        Some((stream, answer))
    });
    assert!(kept.len() <= 3, "{} connections were served", kept.len());
    let answer = format!("{}{}", refused.1, all(&mut refused.0)).to_lowercase();
    assert!(answer.starts_with("http/1.1 503 "), "{answer}");
    for told in [
        "retry-after: 1",
        "application/problem+json",
        "too-many-connections",
        "max_connections",
    ] {
        assert!(answer.contains(told), "{told} is missing: {answer}");
    }
    // Those that have a place go on; a place that is given back is given away.
    for stream in &mut kept {
        ask(stream, "/livez-unknown");
        // The body of the first answer comes before it.
        until("the second answer", || head(stream).contains("HTTP/1.1 404 "));
    }
    drop(kept);
    until("there is a place again", || {
        let mut stream = connect(&server);
        ask(&mut stream, "/livez");
        head(&mut stream).starts_with("HTTP/1.1 200 ")
    });
}

#[test]
fn a_client_that_does_not_read_its_answers_is_hung_up_on() {
    let server = Server::start(&["--client-timeout", "1s"]);
    let mut stream = connect(&server);
    stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    let host = stream.peer_addr().unwrap();
    let request = format!("GET /v1/status HTTP/1.1\r\nHost: {host}\r\n\r\n").repeat(64);
    // Answers fill the buffers of both sides, and then nobody gets any further.
    let refused = until_some("the daemon hangs up", || {
        stream.write_all(request.as_bytes()).err()
    });
    assert!(
        matches!(refused.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe),
        "{refused}"
    );
    assert_eq!(server.get("/livez").status, 200);
}
