//! A daemon on a socket in the file system, and the command line over it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{Daemon, Launch, proofkeep, until};

fn start(data: &Path, socket: &Path) -> Daemon {
    let listen = format!("unix:{}", socket.display());
    let daemon = Launch::new(data)
        .args(["--listen", &listen])
        .try_start()
        .unwrap_or_else(|failed| panic!("{}", failed.stderr));
    assert_eq!(daemon.url(), listen, "it says where it listens");
    until("it is ready", || {
        ask(socket, "/readyz", "localhost").starts_with("HTTP/1.1 200 ")
    });
    daemon
}

fn ask(socket: &Path, path: &str, host: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_command_line_does_its_work_over_a_socket_of_its_owner_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (data, socket) = (directory.path().join("data"), directory.path().join("socket"));
    let daemon = start(&data, &socket);
    let found = std::fs::symlink_metadata(&socket).unwrap();
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    assert!(ask(&socket, "/livez", "evil.example").starts_with("HTTP/1.1 421 "));

    let server = format!("unix:{}", socket.display());
    let file = |name: &str| fixtures::path("multiplier", name).display().to_string();
    let zkey = file("circuit.zkey");
    proofkeep([
        "circuit",
        "add",
        "multiplier",
        "--zkey",
        &zkey,
        "--server",
        &server,
    ])
    .expect(0);
    let proof = directory.path().join("proof.json");
    let proof_path = proof.display().to_string();
    proofkeep([
        "prove",
        "multiplier",
        &file("witness.wtns"),
        "--proof",
        &proof_path,
        "--public",
        &directory.path().join("public.json").display().to_string(),
        "--server",
        &server,
    ])
    .expect(0);
    assert!(std::fs::read_to_string(&proof).unwrap().contains("pi_a"));
    // What finds the data directory in use asks the daemon, wherever it listens.
    let backup = directory.path().join("backup").display().to_string();
    proofkeep(["backup", "--data-dir", &data.display().to_string(), &backup]).expect(0);

    assert!(daemon.terminate().success());
    assert!(!socket.exists(), "a socket that nobody serves is removed");
    let ran = proofkeep(["status", "--server", &server]).expect(5);
    assert!(ran.stderr.contains(&server), "{}", ran.stderr);
}

#[test]
fn what_a_killed_daemon_left_is_taken_over_and_what_is_served_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let listen = format!("unix:{}", socket.display());
    let refused = |data: &str| {
        let failed = Launch::new(&directory.path().join(data))
            .args(["--listen", &listen])
            .try_start()
            .expect_err("it must not listen");
        assert_eq!(failed.status.code(), Some(1), "{}", failed.stderr);
        failed.stderr
    };
    let daemon = start(&directory.path().join("data"), &socket);
    let stderr = refused("other");
    assert!(stderr.contains("somebody else listens there"), "{stderr}");
    assert!(ask(&socket, "/livez", "localhost").starts_with("HTTP/1.1 200 "));

    daemon.kill();
    assert!(socket.exists(), "a kill removes nothing");
    drop(start(&directory.path().join("data"), &socket));

    std::fs::remove_file(&socket).unwrap();
    std::fs::write(&socket, "precious").unwrap();
    let stderr = refused("other");
    assert!(stderr.contains("no socket"), "{stderr}");
    assert_eq!(std::fs::read(&socket).unwrap(), b"precious");
}
