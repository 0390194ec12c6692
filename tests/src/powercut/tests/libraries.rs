//! The preload libraries: kills and faults come where they should, and the recorder sees all.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Bench, files, tree};
use crate::powercut::{Disk, Model, Recording, acknowledge, kill};
use crate::shim::{self, Fault, Kill, Role, Shims, When};

#[test]
fn kills_come_at_the_operation_asked_for() {
    let script = "create a
                  fsync a
                  rename a b
                  mkdir d
                  rename b d/c
                  fsync d
                  unlink d/c";
    let bench = Bench::new();
    let count_file = bench.path("count");
    let mut kill = Kill {
        count_file: Some(count_file.clone()),
        ..Kill::counting(&bench.dir)
    };
    let printed = bench.run(
        &Shims {
            kill: Some(kill.clone()),
            ..Shims::default()
        },
        script,
    );
    assert_eq!(printed.len(), 7);
    let operations: Vec<_> = shim::counted(&count_file).unwrap();
    let words: Vec<_> = operations.iter().map(|o| o.operation.as_str()).collect();
    assert_eq!(words, ["fsync", "rename", "mkdir", "rename", "fsync", "unlink"]);
    assert_eq!(
        operations[3].path,
        std::fs::canonicalize(&bench.dir).unwrap().join("d/c")
    );
    for (at, when, expected) in [
        (2, When::Before, tree(&[("a", "")])),
        (2, When::After, tree(&[("b", "")])),
        (6, When::Before, tree(&[("d/", ""), ("d/c", "")])),
    ] {
        let bench = Bench::new();
        (kill.dir, kill.at, kill.when) = (bench.dir.clone(), at, when);
        // With a recorder behind it: what it saw is what happened.
        let shims = Shims {
            kill: Some(kill.clone()),
            ..bench.recorder()
        };
        let printed = bench.run(&shims, script);
        assert_eq!(printed.len() as u64, if at == 6 { 6 } else { at });
        assert_eq!(files(&bench.dir), expected);
        let recording = Recording::read(&bench.path("log")).unwrap();
        assert_eq!(
            bench.image(&recording, recording.entries().len(), Model::KEPT),
            expected
        );
    }
}

#[test]
fn kills_can_be_narrowed() {
    let bench = Bench::new();
    let script = "create a\nfsync a\nfsync .\nfsync a";
    let base = Kill {
        at: 1,
        ..Kill::counting(&bench.dir)
    };
    let printed = |kill: Kill, arguments: &[&str]| {
        bench
            .run_as(
                &Shims {
                    kill: Some(kill),
                    ..Shims::default()
                },
                script,
                arguments,
            )
            .len()
    };
    assert_eq!(printed(base.clone(), &[]), 1);
    assert_eq!(
        printed(
            Kill {
                matching: Some("/nothing".into()),
                ..base.clone()
            },
            &[]
        ),
        4
    );
    assert_eq!(
        printed(
            Kill {
                operations: vec!["rename", "unlink"],
                ..base.clone()
            },
            &[]
        ),
        4
    );
    assert_eq!(
        printed(
            Kill {
                dir: bench.home.path().join("dir"),
                at: 3,
                ..base.clone()
            },
            &[]
        ),
        3
    );
    let worker = Kill {
        role: Some(Role::Worker),
        ..base.clone()
    };
    assert_eq!(printed(worker.clone(), &["serve"]), 4);
    assert_eq!(printed(worker, &["worker", "--device", "cpu:0"]), 1);
    let once = Kill {
        once_file: Some(bench.path("once")),
        ..base
    };
    assert_eq!(printed(once.clone(), &[]), 1);
    assert_eq!(printed(once, &[]), 4, "the second run is spared");
}

#[test]
fn faults_come_at_the_operation_asked_for() {
    let bench = Bench::new();
    let run = |fault: Fault, script: &str| {
        bench.run(
            &Shims {
                fault: Some(fault),
                ..bench.recorder()
            },
            script,
        )
    };
    let writes = "create a\nwrite a 0 one\nwrite a 0 two\nwrite a 0 six";
    assert_eq!(
        run(Fault::once(&bench.dir, "write", 2), writes),
        ["ok 0", "ok 3", "error 5", "ok 3"]
    );
    let full = Fault {
        errno: "ENOSPC",
        times: None,
        short: true,
        ..Fault::once(&bench.dir, "write", 1)
    };
    assert_eq!(run(full, "write a 0 eleven\nwrite a 0 two"), ["ok 3", "error 28"]);
    let syncs = "fsync a\nfdatasync a\nrange a";
    let all = Fault {
        times: None,
        ..Fault::once(&bench.dir, "sync", 1)
    };
    assert_eq!(run(all, syncs), ["error 5", "error 5", "error 5"]);
    let names = "rename a b\nrename a b\nunlink b";
    assert_eq!(
        run(Fault::once(&bench.dir, "rename", 1), names),
        ["error 5", "ok 0", "ok 0"]
    );
    let other = Fault {
        matching: Some("/b".into()),
        ..Fault::once(&bench.dir, "open", 1)
    };
    assert_eq!(
        run(other, "create a\ncreate b\ncreate b"),
        ["ok 0", "error 5", "ok 0"]
    );
    let hits = bench.path("hits");
    let access = Fault {
        errno: "EMFILE",
        hit_file: Some(hits.clone()),
        ..Fault::once(&bench.dir, "access", 2)
    };
    // Those that make a file are of another kind.
    assert_eq!(
        run(
            access,
            "create a\nwrite a 0 x\ncreate a\nwrite a 0 x\nwrite a 0 x"
        ),
        ["ok 0", "ok 1", "ok 0", "error 24", "ok 1"]
    );
    let hit = shim::counted(&hits).unwrap();
    assert_eq!(
        (hit.len(), hit[0].number, hit[0].operation.as_str()),
        (1, 2, "access")
    );
    let armed = Fault {
        arm_file: Some(bench.path("full")),
        ..Fault::once(&bench.dir, "write", 1)
    };
    assert_eq!(run(armed.clone(), "write a 0 x"), ["ok 1"]);
    std::fs::write(bench.path("full"), "").unwrap();
    assert_eq!(run(armed, "write a 0 x"), ["error 5"]);
    // The recorder behind the faults saw what was really done.
    let recording = Recording::read(&bench.path("log")).unwrap();
    let mut disk = Disk::empty();
    disk.advance(&recording, recording.entries().len()).unwrap();
    disk.agrees_with(&recording, &bench.dir).unwrap();
}

/// What `std_is_seen_whole` does under the recorder, in a process of its own.
fn use_std(dir: &Path) {
    use std::fs;
    use std::os::unix::fs::FileExt;
    fs::create_dir_all(dir.join("x/y")).unwrap();
    fs::write(dir.join("x/a"), "text").unwrap();
    fs::copy(dir.join("x/a"), dir.join("x/copy")).unwrap();
    fs::rename(dir.join("x/a"), dir.join("x/y/a")).unwrap();
    fs::hard_link(dir.join("x/copy"), dir.join("linked")).unwrap();
    let file = fs::File::options()
        .read(true)
        .write(true)
        .open(dir.join("linked"))
        .unwrap();
    file.write_all_at(b"XT", 2).unwrap();
    file.set_len(3).unwrap();
    file.sync_all().unwrap();
    file.sync_data().unwrap();
    (&file).write_all(b"seek").unwrap();
    file.sync_data().unwrap();
    fs::File::open(dir).unwrap().sync_all().unwrap();
    fs::create_dir(dir.join("gone")).unwrap();
    fs::write(dir.join("gone/file"), "").unwrap();
    fs::remove_dir_all(dir.join("gone")).unwrap();
    let mut log = fs::File::options()
        .append(true)
        .create(true)
        .open(dir.join("log"))
        .unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let mut log = log.try_clone().unwrap();
            scope.spawn(move || {
                for _ in 0..50 {
                    log.write_all(b"0123456789").unwrap();
                    log.sync_data().unwrap();
                }
            });
        }
    });
    assert_eq!(
        log.write_vectored(&[std::io::IoSlice::new(b"a"), std::io::IoSlice::new(b"b")])
            .unwrap(),
        2
    );
    fs::remove_file(dir.join("x/copy")).unwrap();
}

#[test]
fn std_is_seen_whole() {
    // The test runs itself as the recorded process.
    if let Some(dir) = std::env::var_os("PROOFKEEP_TEST_STD_DIR") {
        return use_std(Path::new(&dir));
    }
    let bench = Bench::new();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "powercut::tests::libraries::std_is_seen_whole"]);
    command
        .env("PROOFKEEP_TEST_STD_DIR", &bench.dir)
        .stdout(Stdio::null());
    bench.recorder().apply(&mut command).unwrap();
    assert!(command.status().unwrap().success());
    let recording = Recording::read(&bench.path("log")).unwrap();
    let end = recording.entries().len();
    let kept = bench.image(&recording, end, Model::KEPT);
    assert_eq!((kept["linked"].as_str(), kept["log"].len()), ("seek", 2002));
    let mut disk = Disk::empty();
    disk.advance(&recording, end).unwrap();
    disk.agrees_with(&recording, &bench.dir).unwrap();
    let strict = bench.image(&recording, end, Model::STRICT);
    assert_eq!(
        strict,
        tree(&[("linked", "seek"), ("x/", "")]),
        "x's own names were never synced"
    );
}

#[test]
fn a_child_killed_from_outside_leaves_a_whole_recording() {
    let bench = Bench::new();
    let mut command = Command::new(shim::build("script").unwrap());
    command
        .current_dir(&bench.dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    bench.recorder().apply(&mut command).unwrap();
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || {
        let _ = input.write_all(b"create a\n");
        while input.write_all(b"append a 0123456789\nfdatasync a\n").is_ok() {}
    });
    // The child is at work once its changes are logged.
    while std::fs::metadata(bench.path("log")).map_or(0, |m| m.len()) < 100_000 {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    kill(&mut child, &bench.path("log")).unwrap();
    feeder.join().unwrap();
    acknowledge(&bench.path("log"), b"dead").unwrap();
    let recording = Recording::read(&bench.path("log")).unwrap();
    let end = recording.entries().len();
    assert_eq!(recording.acknowledged(end).last(), Some(b"dead".as_slice()));
    let mut disk = Disk::empty();
    disk.advance(&recording, end).unwrap();
    disk.agrees_with(&recording, &bench.dir).unwrap();
    // The next run goes on in the same log.
    bench.run(&bench.recorder(), "append a more\nrename a b");
    let recording = Recording::read(&bench.path("log")).unwrap();
    disk.advance(&recording, recording.entries().len()).unwrap();
    disk.agrees_with(&recording, &bench.dir).unwrap();
}
