//! Backups of a daemon that has a lot to do: each is one moment that holds all that was acknowledged before it began,
//! and the store that is made of it goes on by itself.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod backup_support;

use std::path::Path;
use std::sync::atomic::Ordering;

use backup_support::{
    Pace, assert_kept, backup, client, fsck, launch, open, prove, register, restore, submit,
};
use proofkeep_store::keys::{self, Family};
use proofkeep_tests::harness::{proofkeep, until};
use proofkeep_tests::ledger::{Ledger, Said};
use proofkeep_tests::report::Report;
use proofkeep_tests::setting;
use serde_json::json;

/// At least so many; `PROOFKEEP_BACKUPS` asks for more.
const BACKUPS: u64 = 4;

/// Jobs that each client submits before and during each backup.
const JOBS: usize = 15;

#[test]
fn a_backup_under_load_holds_all_that_was_acknowledged_before_it_and_its_store_finishes_the_work() {
    let seed = setting::seed();
    let count = setting::number("PROOFKEEP_BACKUPS")
        .unwrap_or(BACKUPS)
        .max(BACKUPS);
    println!("seed {seed}, {count} backups");
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let daemon = launch(&data).start();
    let witness = register(&daemon);
    let ledger = Ledger::new();
    prove(&daemon, &ledger, &witness);
    let (pace, mut checked) = (Pace::default(), 0);
    let mut last = None;
    std::thread::scope(|scope| {
        for number in 0..3 {
            let (http, ledger, pace) = (daemon.http(), &ledger, &pace);
            scope.spawn(move || client(&http, ledger, seed.wrapping_add(number), pace));
        }
        // Whatever fails here, the clients have to end.
        let end = End(&pace);
        for number in 0..count {
            pace.jobs.fetch_add(JOBS, Ordering::Relaxed);
            prove(&daemon, &ledger, &witness);
            let before = ledger.copy();
            let journal = daemon.get("/v1/status").expect(200).json()["journal"]
                .as_u64()
                .unwrap();
            let target = root.path().join(format!("backup-{number}"));
            let made = backup(&data, &target).expect(0).json();
            assert!(made["began"].as_u64().unwrap() >= journal, "{made}");
            assert_eq!(made["missing"], json!([]), "{made}");
            // What was asked meanwhile may have happened before the backup's end.
            let known: Vec<_> = before.jobs().into_iter().map(|(id, _)| id).collect();
            for said in ledger.said_of_jobs() {
                if let Said::Asked(id) = said
                    && known.contains(&id)
                {
                    before.note(said);
                }
            }
            let restored = restore(&target);
            fsck(&restored);
            assert_kept(&restored, &before);
            checked += known.len() as u64;
            last = Some((restored, before));
        }
        drop(end);
    });
    assert!(daemon.terminate().success());

    let (restored, before) = last.unwrap();
    let daemon = launch(&restored).start();
    let mut proofs = 0;
    for (id, ends) in before.jobs() {
        let job = daemon.wait_for_end(&id.to_string());
        assert!(
            ends.contains(&job["state"].as_str().unwrap()),
            "expected one of {ends:?}: {job}"
        );
        if job["kind"] == "groth16" {
            let files = ["proof", "public"].map(|file| {
                let path = root.path().join(file);
                let body = daemon.get(&format!("/v1/jobs/{id}/{file}")).expect(200).body;
                std::fs::write(&path, body).unwrap();
                path
            });
            let vk = root.path().join("vk");
            std::fs::write(&vk, daemon.get("/v1/circuits/poseidon2/vk").expect(200).body).unwrap();
            proofkeep([
                "groth16".as_ref(),
                "verify".as_ref(),
                vk.as_os_str(),
                files[1].as_os_str(),
                files[0].as_os_str(),
            ])
            .expect(0);
            proofs += 1;
        }
    }
    assert!(proofs > count, "{proofs} proofs verify");
    assert!(daemon.terminate().success());
    fsck(&restored);
    Report::new("backups-under-load", seed)
        .count("backups", count)
        .count("jobs", checked)
        .count("proofs", proofs)
        .publish();
}

struct End<'a>(&'a Pace);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.done.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_proof_in_work_goes_on_from_a_backup_without_its_checkpoints_and_no_witness_is_in_the_records() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let daemon = launch(&data).start();
    let ledger = Ledger::new();
    let witness = register(&daemon);
    let proved = prove(&daemon, &ledger, &witness);
    daemon.wait_for_end(&proved.to_string());
    let gate = root.path().join("gate");
    let input = json!({ "piece_ms": 1, "gate": { "stage": "b2", "file": gate } });
    let id = submit(&daemon, &ledger, &[input]).unwrap();
    until("the partition has saved pieces", || {
        daemon
            .get(&format!("/v1/jobs/{id}/events"))
            .expect(200)
            .text()
            .contains("checkpointed")
    });
    let target = root.path().join("backup");
    backup(&data, &target).expect(0);
    let stderr = daemon.kill();

    let checkpoints = |data: &Path| {
        let found = open(data).read(|view| view.scan(&keys::family(Family::Checkpoint), None, 10));
        found.unwrap().len()
    };
    assert_eq!(checkpoints(&data), 1);
    let restored = restore(&target);
    fsck(&restored);
    assert_eq!(checkpoints(&restored), 0);
    // The values of the witness stand nowhere but in the object that it is.
    for value in witness[witness.len() - 64..].chunks(32) {
        assert!(
            value.iter().filter(|byte| **byte != 0).count() > 16,
            "a value that isn't everywhere"
        );
        for file in ["dump", "MANIFEST"] {
            let bytes = std::fs::read(target.join(file)).unwrap();
            assert!(!bytes.windows(32).any(|window| window == value), "{file}");
        }
        assert!(!stderr.contains(&hex::encode(value)), "{stderr}");
    }

    std::fs::write(&gate, "").unwrap();
    let daemon = launch(&restored).start();
    assert_eq!(daemon.wait_for_end(&id.to_string())["state"], "succeeded");
    assert!(daemon.terminate().success());
    fsck(&restored);
}
