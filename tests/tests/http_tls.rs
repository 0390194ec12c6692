//! HTTPS: who is trusted, what is refused, and certificates that are renewed while the daemon works.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proofkeep::client::{Client, ClientError};
use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{Daemon, Launch, proofkeep, until};
use tempfile::TempDir;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/tls")
        .join(name)
}

/// A daemon with the first certificate, in files that a test may change.
struct Secure {
    daemon: Daemon,
    directory: TempDir,
}

impl Secure {
    fn start(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let this = |name: &str| directory.path().join(name);
        fs::copy(fixture("daemon-1.pem"), this("chain.pem")).unwrap();
        fs::copy(fixture("daemon-1.key"), this("key.pem")).unwrap();
        let daemon = Launch::new(&this("data"))
            .args([
                "--tls-cert".into(),
                this("chain.pem"),
                "--tls-key".into(),
                this("key.pem"),
            ])
            .args(arguments)
            .try_start()
            .unwrap_or_else(|failed| panic!("{}", failed.stderr));
        assert!(daemon.url().starts_with("https://127.0.0.1:"), "{}", daemon.url());
        let secure = Self { daemon, directory };
        until("it is ready", || secure.asks(1).is_ok());
        secure
    }

    /// Asks trusting one of the authorities.
    fn asks(&self, authority: u32) -> Result<(), ClientError> {
        let trusted = fixture(&format!("authority-{authority}.pem"));
        let client = Client::trusting(self.daemon.url(), Some(&trusted)).unwrap();
        client.get("/readyz", &[]).map(drop)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.daemon.url().trim_start_matches("https://")).unwrap();
        // A failure of this test, not of the daemon.
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }
}

/// What comes until the daemon hangs up.
fn all(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the daemon didn't hang up: {error}"),
    }
    bytes
}

#[test]
fn the_command_line_does_its_work_by_https_with_an_authority_that_it_is_told() {
    let secure = Secure::start(&[]);
    let server = secure.daemon.url();
    let authority = fixture("authority-1.pem").display().to_string();
    let file = |name: &str| fixtures::path("multiplier", name).display().to_string();
    let zkey = file("circuit.zkey");
    let daemon = ["--server", server, "--ca", &authority];
    proofkeep([&["circuit", "add", "multiplier", "--zkey", &zkey][..], &daemon].concat()).expect(0);
    let out = |name: &str| secure.directory.path().join(name).display().to_string();
    let (witness, proof, public) = (file("witness.wtns"), out("proof.json"), out("public.json"));
    let prove = [
        "prove",
        "multiplier",
        &witness,
        "--proof",
        &proof,
        "--public",
        &public,
    ];
    proofkeep([&prove[..], &daemon].concat()).expect(0);
    assert!(fs::read_to_string(&proof).unwrap().contains("pi_a"));

    // Nobody else is believed: neither what this system trusts nor another authority knows the certificate.
    let ran = proofkeep(["status", "--server", server]).expect(5);
    assert!(ran.stderr.contains("certificate"), "{}", ran.stderr);
    let other = fixture("authority-2.pem").display().to_string();
    proofkeep(["status", "--server", server, "--ca", &other]).expect(5);
    let ran = proofkeep([
        "status",
        "--server",
        server,
        "--ca",
        &fixture("daemon-1.key").display().to_string(),
    ]);
    assert!(ran.expect(1).stderr.contains("found none"));
}

#[test]
fn who_speaks_no_tls_gets_nothing_and_keeps_no_place() {
    let secure = Secure::start(&["--client-timeout", "1s"]);
    let mut plain = secure.connect();
    plain
        .write_all(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let said = all(&mut plain);
    assert!(
        !said.starts_with(b"HTTP/"),
        "{:?}",
        String::from_utf8_lossy(&said)
    );
    let mut silent = secure.connect();
    assert!(all(&mut silent).is_empty());
    secure.asks(1).unwrap();
}

#[test]
fn a_page_of_the_daemon_itself_is_one_by_https() {
    let secure = Secure::start(&[]);
    let client = Client::trusting(secure.daemon.url(), Some(&fixture("authority-1.pem"))).unwrap();
    let origin = |origin: &str| {
        client
            .get("/v1/status", &[("origin", origin)])
            .map(|reply| reply.status)
    };
    assert_eq!(origin(secure.daemon.url()).unwrap(), 200);
    let plain = secure.daemon.url().replacen("https", "http", 1);
    let refused = origin(&plain).unwrap_err();
    assert!(
        matches!(refused, ClientError::Problem { status: 403, .. }),
        "{refused}"
    );
}

#[test]
fn renewed_certificates_are_read_at_sighup_and_bad_ones_change_nothing() {
    let secure = Secure::start(&[]);
    let this = |name: &str| secure.directory.path().join(name);
    assert!(secure.asks(2).is_err());
    fs::copy(fixture("daemon-2.pem"), this("chain.pem")).unwrap();
    // The key is still the old one's.
    secure.daemon.signal(libc::SIGHUP);
    until("it says that they can't be used", || {
        secure
            .daemon
            .stderr()
            .contains("the certificates stay as they were")
    });
    secure.asks(1).unwrap();

    fs::copy(fixture("daemon-2.key"), this("key.pem")).unwrap();
    secure.daemon.signal(libc::SIGHUP);
    until("the new one is shown", || secure.asks(2).is_ok());
    assert!(secure.asks(1).is_err());
    assert!(secure.daemon.terminate().success());
}

#[test]
fn certificates_that_can_not_be_used_end_the_start_and_the_key_is_not_shown() {
    let directory = tempfile::tempdir().unwrap();
    let start = |certificate: &Path, key: &Path| {
        let failed = Launch::new(&directory.path().join("data"))
            .args([Path::new("--tls-cert"), certificate, Path::new("--tls-key"), key])
            .try_start()
            .expect_err("it must not start");
        assert_eq!(failed.status.code(), Some(1), "{}", failed.stderr);
        for line in fs::read_to_string(fixture("daemon-1.key")).unwrap().lines() {
            assert!(!failed.stderr.contains(line), "{}", failed.stderr);
        }
        failed.stderr
    };
    let (chain, key) = (fixture("daemon-1.pem"), fixture("daemon-1.key"));
    let broken = directory.path().join("broken.pem");
    let text = fs::read_to_string(&key).unwrap().replace("-----END", "----END");
    fs::write(&broken, text).unwrap();
    for (certificate, key, expected) in [
        (&key, &key, "expected certificates in PEM"),
        (&chain, &chain, "expected a private key in PEM"),
        (&chain, &broken, "expected a private key in PEM"),
        (&chain, &fixture("daemon-2.key"), "can't be used together"),
        (&chain, &fixture("nothing.key"), "expected a private key in PEM"),
    ] {
        let stderr = start(certificate, key);
        assert!(stderr.contains(expected), "{stderr}");
    }
    assert!(!directory.path().join("data").exists(), "nothing was begun");
    let ran = proofkeep(["serve", "--tls-cert", &chain.display().to_string()]).expect(2);
    assert!(ran.stderr.contains("tls_key"), "{}", ran.stderr);
}
