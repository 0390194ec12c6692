//! What may happen to a backup while a daemon makes it: the disk fills, a kill, a client that goes away, a bad request.
//! The daemon and its store are never the worse for it, and nothing unfinished looks like a backup.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod backup_support;

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use backup_support::{assert_kept, backup, fsck, launch, prove, register, restore, submit};
use proofkeep_tests::harness::{Daemon, command, run, until};
use proofkeep_tests::ledger::Ledger;
use proofkeep_tests::report::Report;
use proofkeep_tests::setting;
use proofkeep_tests::shim::{Fault, Kill, Shims, When, counted};
use serde_json::json;

/// At least so many kills; `PROOFKEEP_BACKUP_KILLS` asks for more.
const KILLS: u64 = 6;

/// A daemon with some jobs, of which one still runs.
fn busy(daemon: &Daemon, ledger: &Ledger, gate: &Path) {
    let witness = register(daemon);
    let proved = prove(daemon, ledger, &witness);
    daemon.wait_for_end(&proved.to_string());
    let other = submit(daemon, ledger, &[json!({ "salt": 1 }), json!({ "salt": 2 })]).unwrap();
    daemon.wait_for_end(&other.to_string());
    let waits = json!({ "gate": { "stage": "finish", "file": gate } });
    let waits = submit(daemon, ledger, &[waits]).unwrap();
    until("its proof is being finished", || {
        let job = daemon.get(&format!("/v1/jobs/{waits}")).expect(200).json();
        job["partitions"][0]["state"] == "finishing"
    });
}

#[test]
fn a_disk_that_is_full_ends_the_backup_and_harms_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let (data, saved) = (root.path().join("data"), root.path().join("saved"));
    std::fs::create_dir(&saved).unwrap();
    let arm = root.path().join("armed");
    let ledger = Ledger::new();
    let operations = ["write", "mkdir", "sync", "link", "rename"];
    for (before, operation) in operations.into_iter().enumerate() {
        let fault = Fault {
            times: None,
            errno: "ENOSPC",
            arm_file: Some(arm.clone()),
            ..Fault::once(&saved, operation, 1)
        };
        let shims = Shims {
            fault: Some(fault),
            ..Shims::default()
        };
        let daemon = launch(&data).shims(shims).start();
        if before == 0 {
            busy(&daemon, &ledger, &root.path().join("gate"));
        }
        std::fs::write(&arm, "").unwrap();
        let target = saved.join(operation);
        let answer = daemon.post("/v1/admin/backup", &json!({ "target": target }));
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (507, "disk-budget"),
            "{}",
            answer.text()
        );
        assert_eq!(std::fs::read_dir(&saved).unwrap().count(), before, "{operation}");
        std::fs::remove_file(&arm).unwrap();
        // There is room again: the same daemon works, and makes the backup.
        let job = submit(&daemon, &ledger, &[json!({ "salt": 3 })]).unwrap();
        assert_eq!(daemon.wait_for_end(&job.to_string())["state"], "succeeded");
        let answer = daemon
            .post("/v1/admin/backup", &json!({ "target": target }))
            .expect(201);
        assert_eq!(answer.json()["missing"], json!([]));
        daemon.kill();
        fsck(&data);
    }
    assert_kept(&data, &ledger);
    let restored = restore(&saved.join("rename"));
    fsck(&restored);
    assert_kept(&restored, &ledger);
}

#[test]
fn a_daemon_killed_during_a_backup_leaves_its_store_whole_and_no_backup() {
    let seed = setting::seed();
    let kills = setting::number("PROOFKEEP_BACKUP_KILLS")
        .unwrap_or(KILLS)
        .max(KILLS);
    println!("seed {seed}, {kills} kills");
    let root = tempfile::tempdir().unwrap();
    let (data, saved) = (root.path().join("data"), root.path().join("saved"));
    std::fs::create_dir(&saved).unwrap();
    let count_file = root.path().join("count");
    let ledger = Ledger::new();
    let shims = |kill| Shims {
        kill: Some(kill),
        ..Shims::default()
    };
    let counting = Kill {
        count_file: Some(count_file.clone()),
        ..Kill::counting(&saved)
    };
    let daemon = launch(&data).shims(shims(counting)).start();
    busy(&daemon, &ledger, &root.path().join("gate"));
    backup(&data, &saved.join("counted")).expect(0);
    daemon.kill();
    let total = counted(&count_file).unwrap().len() as u64;
    assert!(total > 10, "{total} operations");
    // Before and after the rename that makes it one, and anywhere before from the seed.
    let kill = |at, when, operations| Kill {
        at,
        when,
        operations,
        ..Kill::counting(&saved)
    };
    let mut points = vec![
        kill(1, When::Before, vec!["rename"]),
        kill(1, When::After, vec!["rename"]),
        kill(1, When::After, Vec::new()),
    ];
    while (points.len() as u64) < kills {
        let at = 1 + seed.wrapping_mul(31).wrapping_add(points.len() as u64 * 7919) % (total * 3 / 4);
        points.push(kill(at, When::Before, Vec::new()));
    }
    let (target, part) = (saved.join("target"), saved.join("target.part"));
    let mut whole = 0;
    for point in points {
        let renamed = point.when == When::After && !point.operations.is_empty();
        let which = format!("operation {} {:?} {:?}", point.at, point.operations, point.when);
        let daemon = launch(&data).shims(shims(point)).start();
        let ran = backup(&data, &target);
        let status = daemon.wait();
        assert_eq!(status.signal(), Some(libc::SIGKILL), "{which}: {}", ran.stderr);
        assert_eq!(ran.code, 5, "{which}: {}", ran.stderr);
        fsck(&data);
        assert_kept(&data, &ledger);
        assert_eq!(target.exists(), renamed, "{which}");
        if renamed {
            let restored = restore(&target);
            assert_kept(&restored, &ledger);
            std::fs::remove_dir_all(restored).unwrap();
            std::fs::remove_dir_all(&target).unwrap();
            whole += 1;
        } else if part.exists() {
            // The count of the next one begins with nothing to remove.
            std::fs::rename(&part, root.path().join("left")).unwrap();
            std::fs::remove_dir_all(root.path().join("left")).unwrap();
        }
    }
    assert_eq!(whole, 1);
    // The same name can be used again; what was left is gone then.
    std::fs::create_dir(&part).unwrap();
    std::fs::write(part.join("dump"), "half").unwrap();
    backup(&data, &target).expect(0);
    assert!(!part.exists());
    assert_kept(&restore(&target), &ledger);
    Report::new("backup-kills", seed).count("kills", kills).publish();
}

#[test]
fn a_request_for_a_backup_that_can_not_be_is_refused_with_what_to_do() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let daemon = launch(&data).start();
    let taken = root.path().join("taken");
    std::fs::create_dir(&taken).unwrap();
    let other = uuid::Uuid::new_v4();
    let fine = root.path().join("fine");
    for (body, status, code) in [
        (json!({}), 422, "bad-target"),
        (json!({ "target": "relative/path" }), 422, "bad-target"),
        (json!({ "target": 7 }), 422, "bad-target"),
        (
            json!({ "target": root.path().join("no/such/place") }),
            422,
            "bad-target",
        ),
        (json!({ "target": taken }), 409, "target-exists"),
        (json!({ "target": fine, "store": other }), 409, "other-store"),
        (json!({ "target": fine, "store": "mine" }), 422, "bad-store"),
        (json!({ "target": fine, "name": "x" }), 422, "unknown-field"),
        (json!(["target"]), 400, "malformed-json"),
    ] {
        let answer = daemon.post("/v1/admin/backup", &body);
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (status, code),
            "{body}: {}",
            answer.text()
        );
    }
    assert_eq!(daemon.get("/v1/admin/backup").status, 405);
    let untyped = daemon.send("POST", "/v1/admin/backup", &[], Some(b"{}"));
    assert_eq!(untyped.status, 415);
    let entries = |path: &Path| std::fs::read_dir(path).unwrap().count();
    assert_eq!((entries(root.path()), entries(&taken)), (2, 0));

    // The command names who has the directory, and what the daemon said.
    let ran = backup(&data, &taken).expect(1);
    let pid = format!("pid {}", daemon.pid());
    assert!(
        ran.stderr.contains(&pid) && ran.stderr.contains("target-exists"),
        "{}",
        ran.stderr
    );
    // A daemon that is named makes it too; without its data directory.
    let mut named = command(["backup", "--json", "--server", daemon.url()]);
    let ran = run(named.arg(&fine)).expect(0);
    assert_eq!(ran.json()["target"], fine.to_str().unwrap());
    restore(&fine);
}
