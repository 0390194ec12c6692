//! Uploads: streamed, checked, durable, and gone when they are cut off.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http_support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use http_support::{Server, problem};
use proofkeep_tests::harness::{Daemon, Launch, sha256_name, until};
use proofkeep_tests::shim::{Fault, Shims};

const BYTES: (&str, &str) = ("content-type", "application/octet-stream");

#[test]
fn a_blob_is_named_by_what_is_in_it() {
    let server = Server::start(&[]);
    let bytes = vec![7; 3_000_000];
    let name = sha256_name(&bytes);
    let path = format!("/v1/blobs/{name}");
    assert_eq!(server.send("HEAD", &path, &[], None).status, 404);
    let answer = server.send("PUT", &path, &[], Some(&bytes)).expect(201);
    assert_eq!(answer.json()["digest"], name);
    assert_eq!(answer.json()["size"], 3_000_000);
    assert_eq!(answer.header("location"), Some(&path[..]));
    let there = server.send("HEAD", &path, &[], None).expect(200);
    assert_eq!(there.header("content-length"), Some("3000000"));
    assert_eq!(server.send("PUT", &path, &[], Some(&bytes)).status, 200);
    assert_eq!(
        server
            .send("POST", "/v1/blobs", &[BYTES], Some(&bytes))
            .expect(200)
            .json()["digest"],
        name
    );
    let other = server
        .send("POST", "/v1/blobs", &[BYTES], Some(b"other"))
        .expect(201);
    assert_eq!(other.json()["digest"], sha256_name(b"other"));
    // Inputs are secret: what was uploaded is not given out.
    assert_eq!(server.get(&path).status, 405);
}

#[test]
fn other_bytes_than_announced_are_refused_and_leave_nothing() {
    let server = Server::start(&[]);
    let path = format!("/v1/blobs/{}", sha256_name(b"these"));
    let answer = server.send("PUT", &path, &[], Some(b"those"));
    let detail = problem(&answer, 422, "digest-mismatch");
    assert!(
        detail.contains(&sha256_name(b"these")) && detail.contains(&sha256_name(b"those")),
        "{detail}"
    );
    assert_eq!(server.send("HEAD", &path, &[], None).status, 404);
    assert_eq!(files_below(&server.directory.path().join("data/tmp")), 0);
    assert_eq!(files_below(&server.directory.path().join("data/objects")), 0);
}

#[test]
fn an_upload_has_a_limit_that_is_named() {
    let server = Server::start(&["--max-upload", "1MiB"]);
    let bytes = vec![1; (1 << 20) + 1];
    let announced = server.send(
        "PUT",
        &format!("/v1/blobs/{}", sha256_name(&bytes)),
        &[],
        Some(&bytes),
    );
    assert!(problem(&announced, 413, "too-large").contains("1048576"));
    assert_eq!(announced.json()["limit"], 1 << 20);
    // A body without a length is cut at the limit.
    let mut stream = TcpStream::connect(server.url().trim_start_matches("http://")).unwrap();
    let head = format!(
        "POST /v1/blobs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/octet-stream\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n",
        bytes.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&bytes).unwrap();
    stream.write_all(b"\r\n0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert_eq!(files_below(&server.directory.path().join("data/tmp")), 0);
}

#[test]
fn an_upload_that_is_cut_off_leaves_nothing() {
    let server = Server::start(&[]);
    let tmp = server.directory.path().join("data/tmp");
    let mut stream = TcpStream::connect(server.url().trim_start_matches("http://")).unwrap();
    let head = "POST /v1/blobs HTTP/1.1\r\nhost: localhost\r\n\
                content-type: application/octet-stream\r\ncontent-length: 1000000\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&[3; 400_000]).unwrap();
    until("the upload has begun", || files_below(&tmp) == 1);
    drop(stream);
    until("what was written of it is gone", || files_below(&tmp) == 0);
    assert_eq!(files_below(&server.directory.path().join("data/objects")), 0);
    assert_eq!(server.get("/readyz").status, 200);
}

#[test]
fn a_full_disk_is_507_and_the_daemon_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let armed = directory.path().join("armed");
    let fault = Fault {
        errno: "ENOSPC",
        times: None,
        arm_file: Some(armed.clone()),
        matching: Some("/data/tmp/".to_owned()),
        ..Fault::once(directory.path(), "write", 1)
    };
    let daemon = Launch::new(&data)
        .shims(Shims {
            fault: Some(fault),
            ..Shims::default()
        })
        .start();
    std::fs::write(&armed, "").unwrap();
    let bytes = vec![9; 2_000_000];
    let path = format!("/v1/blobs/{}", sha256_name(&bytes));
    let answer = daemon.send("PUT", &path, &[], Some(&bytes));
    problem(&answer, 507, "disk-budget");
    assert_eq!(answer.json()["retryable"], true);
    assert_eq!(files_below(&data.join("tmp")), 0);
    std::fs::remove_file(&armed).unwrap();
    assert_eq!(daemon.send("PUT", &path, &[], Some(&bytes)).status, 201);
}

/// A name whose directory could not be synced may be gone after a power cut: nobody may be told that it is there, neither
/// while the sync is under way, nor after it failed, nor by the next daemon.
#[test]
fn a_name_that_is_not_durable_is_not_there() {
    for hang in [false, true] {
        let root = tempfile::tempdir().unwrap();
        let (data, armed) = (root.path().join("data"), root.path().join("armed"));
        std::fs::create_dir(&data).unwrap();
        let fault = Fault {
            arm_file: Some(armed.clone()),
            matching: Some("/objects/".to_owned()),
            hang,
            times: None,
            ..Fault::once(&data, "sync", u64::from(!hang))
        };
        let shims = Shims {
            fault: Some(fault),
            ..Shims::default()
        };
        let daemon = Launch::new(&data).shims(shims).start();
        let bytes = vec![9; 200_000];
        let path = format!("/v1/blobs/{}", sha256_name(&bytes));
        let is_there = |daemon: &Daemon| daemon.send("HEAD", &path, &[], None).status;
        std::fs::write(&armed, "").unwrap();
        if hang {
            std::thread::scope(|scope| {
                let put = scope.spawn(|| daemon.send("PUT", &path, &[], Some(&bytes)).status);
                // It has its name, and its directory is being synced.
                until("the file has its name", || {
                    files_below(&data.join("objects")) == 1
                });
                assert_eq!(is_there(&daemon), 404);
                std::fs::remove_file(&armed).unwrap();
                assert_eq!(put.join().unwrap(), 201);
            });
        } else {
            let refused = daemon.send("PUT", &path, &[], Some(&bytes));
            problem(&refused, 500, "io");
            assert_eq!(is_there(&daemon), 404);
            std::fs::remove_file(&armed).unwrap();
            assert_eq!(is_there(&daemon), 404);
            // The next daemon knows nothing of the failure.
            daemon.kill();
            let daemon = Launch::new(&data).start();
            assert_eq!(is_there(&daemon), 404);
            assert_eq!(daemon.send("PUT", &path, &[], Some(&bytes)).status, 201);
            assert_eq!(is_there(&daemon), 200);
            continue;
        }
        assert_eq!(is_there(&daemon), 200);
    }
}

fn files_below(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .map(|path| if path.is_dir() { files_below(&path) } else { 1 })
        .sum()
}
