//! Descriptors or memory run out.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{Answer, Daemon, proofkeep, sha256_name, until, until_some};
use serde_json::{Value, json};

const BYTES: (&str, &str) = ("Content-Type", "application/octet-stream");

fn limit(pid: u32, resource: libc::__rlimit_resource_t, value: u64) {
    let pid = libc::pid_t::try_from(pid).unwrap();
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: reads a limit of a process that this test started; the pointers are valid or null.
    let read = unsafe { libc::prlimit(pid, resource, std::ptr::null(), &raw mut limit) };
    limit.rlim_cur = value.min(limit.rlim_max);
    // SAFETY: sets it; the same.
    let set = unsafe { libc::prlimit(pid, resource, &raw const limit, std::ptr::null_mut()) };
    assert_eq!(
        (read, set),
        (0, 0),
        "prlimit: {}",
        std::io::Error::last_os_error()
    );
}

fn descriptors(pid: u32) -> u64 {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count() as u64
}

/// Waits until the daemon has closed what others left open.
fn settled(pid: u32) -> u64 {
    let mut seen = (descriptors(pid), 0);
    until_some("the descriptors of the daemon settle", || {
        let now = descriptors(pid);
        seen = if now == seen.0 {
            (now, seen.1 + 1)
        } else {
            (now, 0)
        };
        (seen.1 > 40).then_some(now)
    })
}

fn upload(daemon: &Daemon, bytes: &[u8]) -> Answer {
    let path = format!("/v1/blobs/{}", sha256_name(bytes));
    daemon.send("PUT", &path, &[BYTES], Some(bytes))
}

fn connect(daemon: &Daemon) -> TcpStream {
    let stream = TcpStream::connect(daemon.url().trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    stream
}

fn job_of(daemon: &Daemon, witness: &str) -> Value {
    let body = json!({ "kind": "groth16", "circuit": "multiplier", "inputs": [{ "witness": witness }] });
    let job = daemon.post("/v1/jobs", &body).expect(202).json();
    daemon.wait_for_end(job["id"].as_str().unwrap())
}

#[test]
fn a_daemon_without_descriptors_refuses_and_goes_on_once_there_are_some() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let daemon = Daemon::start(&data, &["--cpu-devices", "1"]);
    daemon.register(
        "multiplier",
        &[("zkey", &fixtures::read("multiplier", "circuit.zkey"))],
    );
    let witness = daemon.upload(&fixtures::read("multiplier", "witness.wtns"));
    assert_eq!(job_of(&daemon, &witness)["state"], "succeeded");

    // Nobody more can be let in.
    let pid = daemon.pid();
    let most = settled(pid) + 2;
    limit(pid, libc::RLIMIT_NOFILE, most);
    let idle: Vec<TcpStream> = (0..6).map(|_| connect(&daemon)).collect();
    until("every descriptor is taken", || descriptors(pid) >= most);
    let mut waits = connect(&daemon);
    let host = daemon.url().trim_start_matches("http://");
    write!(
        waits,
        "GET /livez HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = [0; 15];
    assert!(
        waits.read_exact(&mut answer).is_err(),
        "it was let in: {answer:?}"
    );
    // Somebody goes, and whoever waited is answered.
    drop(idle);
    waits.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    waits.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
    drop(waits);

    // Somebody is let in, and then a file can't be opened. On a busy machine a descriptor of what came before may be given
    // back later than it looked, and there is room after all.
    let mut number = 0u16;
    until("an upload runs out of descriptors", || {
        let mut refused = false;
        for room in [1u8, 2, 3] {
            limit(pid, libc::RLIMIT_NOFILE, 1 << 16);
            let most = settled(pid) + u64::from(room);
            limit(pid, libc::RLIMIT_NOFILE, most);
            number += 1;
            let answer = answered(&daemon, &number.to_le_bytes().repeat(2500));
            match answer.status {
                500 => {
                    assert_eq!(answer.code(), "io", "{}", answer.text());
                    refused = true;
                }
                status => assert_eq!(status, 201, "{}", answer.text()),
            }
        }
        refused
    });

    limit(pid, libc::RLIMIT_NOFILE, 1 << 16);
    for number in 0..3u8 {
        assert!(matches!(upload(&daemon, &[number; 5000]).status, 200 | 201));
    }
    assert_eq!(job_of(&daemon, &witness)["state"], "succeeded");
    assert!(daemon.terminate().success());
    let _ = proofkeep(["fsck", "--data-dir", data.to_str().unwrap()]).expect(0);
}

/// Uploads; where there is no room for the connection either, there is some after a while, since nobody is told before.
fn answered(daemon: &Daemon, bytes: &[u8]) -> Answer {
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let sent = scope.spawn(|| upload(daemon, bytes));
        until("the upload is answered", || {
            if begun.elapsed() > Duration::from_secs(5) {
                limit(daemon.pid(), libc::RLIMIT_NOFILE, 1 << 16);
            }
            sent.is_finished()
        });
        sent.join().unwrap()
    })
}

/// Bytes of address space.
fn address_space(pid: u32) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap();
    statm.split(' ').next().unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn a_synthesis_that_gets_no_memory_fails_alone_and_is_done_once_there_is_some() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let daemon = Daemon::start(&data, &["--cpu-devices", "1", "--threads", "1"]);
    let zkey = fixtures::read("poseidon2", "circuit.zkey");
    daemon.register("poseidon2", &[("zkey", &zkey)]);
    let witness = daemon.upload(&fixtures::read("poseidon2", "witness.wtns"));
    let body = json!({ "kind": "groth16", "circuit": "poseidon2", "inputs": [{ "witness": witness }] });
    let worker = || until_some("there is a worker process", || daemon.workers().first().copied());

    // Room for half of the key's file; the task's thread gets the stack of the import's.
    let pid = worker();
    limit(pid, libc::RLIMIT_AS, address_space(pid) + zkey.len() as u64 / 2);
    let job = daemon.post("/v1/jobs", &body).expect(202).json();
    let path = format!("/v1/jobs/{}", job["id"].as_str().unwrap());
    let ended = daemon.wait_for_end(job["id"].as_str().unwrap());
    let attempts = daemon.get(&format!("{path}/partitions/0")).expect(200).json();
    let short = attempts["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|attempt| attempt.to_string().contains("out_of_memory"))
        .count();
    assert!(short > 0, "{attempts}");
    // A process that died of it was followed by one without the limit; one that didn't keeps it.
    match ended["state"].as_str() {
        Some("succeeded") => {}
        Some("failed") => {
            assert!(ended.to_string().contains("out_of_memory"), "{ended}");
            limit(worker(), libc::RLIMIT_AS, libc::RLIM_INFINITY);
            assert_eq!(
                daemon.send("POST", &format!("{path}/retry"), &[], None).status,
                202
            );
            let again = daemon.wait_for_end(job["id"].as_str().unwrap());
            assert_eq!(again["state"], "succeeded", "{again}");
        }
        _ => panic!("{ended}"),
    }
    assert!(daemon.terminate().success());
    let _ = proofkeep(["fsck", "--data-dir", data.to_str().unwrap()]).expect(0);
}
