//! The disk fills up while somebody uploads: 507, nothing half is kept, and the daemon goes on when there is room again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod bad_input_support;

use std::path::{Path, PathBuf};
use std::process::Command;

use bad_input_support::{BYTES, JSON, files_below, problem};
use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{Daemon, Launch, proofkeep, sha256_name};
use proofkeep_tests::shim::{Fault, Shims};
use serde_json::json;

/// The bytes that fill the disk; random enough that no file system makes them small.
fn large(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..length)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}

/// A file system of its own, small, gone with this value.
struct Small(PathBuf);

impl Small {
    /// `None` where nothing may be mounted.
    fn mount(at: &Path) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=48m", "tmpfs"])
            .arg(at)
            .output()
            .ok()?;
        mounted.status.success().then(|| Self(at.to_owned()))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

fn upload(daemon: &Daemon, bytes: &[u8]) -> proofkeep_tests::harness::Answer {
    daemon.send(
        "PUT",
        &format!("/v1/blobs/{}", sha256_name(bytes)),
        &[BYTES],
        Some(bytes),
    )
}

#[test]
fn a_disk_that_is_really_full_is_507_and_a_smaller_file_still_fits() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("disk");
    let Some(small) = Small::mount(&at) else {
        println!("nothing can be mounted here; the other test does it with a preload library");
        return;
    };
    let data = at.join("data");
    let daemon = Daemon::start(&data, &[]);
    let objects = files_below(&data.join("objects"));
    for _ in 0..3 {
        let answer = upload(&daemon, &large(60 << 20));
        problem(&answer, 507).says("disk-budget", &["no space", "again"]);
        assert_eq!(answer.json()["retryable"], true);
        assert_eq!(
            (files_below(&data.join("tmp")), files_below(&data.join("objects"))),
            (0, objects)
        );
    }
    // There is room again at once, and for all of it: what was begun is gone.
    assert_eq!(upload(&daemon, &large(4 << 20)).status, 201);
    daemon.register(
        "multiplier",
        &[("zkey", &fixtures::read("multiplier", "circuit.zkey"))],
    );
    let witness = daemon.upload(&fixtures::read("multiplier", "witness.wtns"));
    let body = json!({ "kind": "groth16", "circuit": "multiplier", "inputs": [{ "witness": witness }] });
    let job = daemon.post("/v1/jobs", &body).expect(202).json();
    assert_eq!(
        daemon.wait_for_end(job["id"].as_str().unwrap())["state"],
        "succeeded"
    );
    assert!(daemon.terminate().success());
    let _ = proofkeep([Path::new("fsck"), Path::new("--data-dir"), &data]).expect(0);
    drop(small);
}

/// Every place where an upload touches the disk refuses once: write, sync, rename, open.
#[test]
fn a_disk_that_refuses_anything_of_an_upload_leaves_nothing_and_the_daemon_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    for (operation, place) in [
        ("write", "tmp"),
        ("sync", "tmp"),
        ("rename", "objects"),
        ("open", "tmp"),
    ] {
        let data = directory.path().join(operation);
        let armed = directory.path().join(format!("{operation}-armed"));
        // The preload library wants its directory to be there.
        assert!(Daemon::start(&data, &[]).terminate().success());
        // Only what an upload touches: the store has rules of its own for a disk that refuses.
        let fault = Fault {
            errno: "ENOSPC",
            times: None,
            arm_file: Some(armed.clone()),
            ..Fault::once(data.join(place), operation, 1)
        };
        let daemon = Launch::new(&data)
            .shims(Shims {
                fault: Some(fault),
                ..Shims::default()
            })
            .start();
        let bytes = large(3 << 20);
        std::fs::write(&armed, "").unwrap();
        let answer = upload(&daemon, &bytes);
        problem(&answer, 507).says("disk-budget", &["no space"]);
        let inline = json!({ "kind": "groth16", "circuit": "none", "inputs": [] }).to_string();
        assert_eq!(
            daemon
                .send("POST", "/v1/jobs", &[JSON], Some(inline.as_bytes()))
                .status,
            404,
            "{operation}"
        );
        assert_eq!(files_below(&data.join("tmp")), 0, "{operation}");
        assert_eq!(
            daemon
                .send("HEAD", &format!("/v1/blobs/{}", sha256_name(&bytes)), &[], None)
                .status,
            404
        );
        std::fs::remove_file(&armed).unwrap();
        assert_eq!(upload(&daemon, &bytes).status, 201, "{operation}");
        assert!(daemon.terminate().success());
        let _ = proofkeep([Path::new("fsck"), Path::new("--data-dir"), &data]).expect(0);
    }
}
