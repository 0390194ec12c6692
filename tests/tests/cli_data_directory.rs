//! The commands on a data directory that no daemon uses.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cli_support;

use cli_support::Desk;
use proofkeep_tests::harness::{Daemon, binary, run};
use serde_json::Value;

#[test]
fn history_and_fsck_tell_what_a_killed_daemon_left_and_a_running_one_has_the_directory() {
    let desk = Desk::new();
    let daemon = Daemon::start(&desk.path().join("data"), &[]);
    desk.take("multiplier", &["circuit.zkey", "circuit.wasm", "input.json"]);
    desk.ask(&daemon, "circuit add m --zkey circuit.zkey --wasm circuit.wasm")
        .expect(0);
    let id = desk
        .ask(&daemon, "submit m --input input.json --wait")
        .expect(0)
        .stdout
        .trim()
        .to_owned();

    for command in ["history", "fsck", "migrate", "compact", "export out"] {
        let ran = desk.run(&format!("{command} --data-dir data")).expect(1);
        let pid = format!("pid {}", daemon.pid());
        assert!(
            ran.stderr.contains(&pid) && ran.stderr.contains("data-dir-in-use"),
            "{command}: {}",
            ran.stderr
        );
    }
    daemon.kill();

    let report = desk.run("fsck --data-dir data --json").expect(0).json();
    assert_eq!(report["clean"], true, "{report}");
    assert!(report["checked"]["objects"].as_u64().unwrap() > 0, "{report}");
    let ran = desk.run("history --data-dir data --events --json").expect(0);
    let lines: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let boot = lines.iter().find(|line| !line["boot"].is_null()).unwrap();
    assert_eq!(boot["boot"]["number"], 1);
    let job = lines.iter().find(|line| !line["job"].is_null()).unwrap();
    assert_eq!(job["job"]["id"], id.as_str());
    assert_eq!(job["job"]["partitions"][0]["state"], "proved");
    assert!(lines.iter().any(|line| line["event"]["event"] == "proof_stored"));
    let text = desk
        .run(&format!("history --data-dir data --job {id}"))
        .expect(0)
        .stdout;
    assert!(
        text.contains("succeeded") && text.contains("proof_stored"),
        "{text}"
    );

    let migrated = desk.run("migrate --data-dir data --json").expect(0).json();
    assert_eq!(migrated["to"], 2);
    desk.run("fsck --data-dir data").expect(0);
    assert!(
        Daemon::start(&desk.path().join("data"), &[])
            .terminate()
            .success()
    );
}

#[test]
fn a_directory_that_holds_no_data_is_not_made_into_one() {
    let desk = Desk::new();
    for command in [
        "history",
        "fsck",
        "migrate",
        "compact",
        "export out",
        "backup out",
    ] {
        let ran = desk.run(&format!("{command} --data-dir nothing")).expect(1);
        assert!(ran.stderr.contains("nothing"), "{command}: {}", ran.stderr);
        assert!(!desk.path().join("nothing").exists(), "{command}");
        assert!(!desk.path().join("out").exists(), "{command}");
    }
}

#[test]
fn a_second_daemon_never_says_that_it_listens_and_names_the_first_one() {
    let desk = Desk::new();
    let daemon = Daemon::start(&desk.path().join("data"), &[]);
    let listen = daemon.url().trim_start_matches("http://").to_owned();
    // On a free port, and on the one that is taken as well: what matters is who has the directory.
    for listen in ["127.0.0.1:0", &listen] {
        let line = format!("serve --data-dir data --listen {listen}");
        let ran = desk.run(&line).expect(1);
        assert_eq!(ran.stdout, "", "it says that it listens");
        assert!(!ran.stderr.contains("listening"), "{}", ran.stderr);
        for part in [
            &format!("process {}", daemon.pid()),
            "stop that process",
            "another directory",
            "data-dir-in-use",
        ] {
            assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
        let ran = desk.run(&format!("{line} --json")).expect(1);
        let error: Value = serde_json::from_str(&ran.stderr).unwrap();
        assert_eq!(error["error"]["code"], "data-dir-in-use", "{error}");
    }
    assert_eq!(daemon.get("/readyz").status, 200);
    desk.take("multiplier", &["circuit.zkey", "circuit.wasm", "input.json"]);
    desk.ask(&daemon, "circuit add m --zkey circuit.zkey --wasm circuit.wasm")
        .expect(0);
    desk.ask(&daemon, "prove m input.json").expect(0);
    assert!(daemon.terminate().success());
    // Nor does one of a directory that is not its own.
    std::fs::create_dir(desk.path().join("other")).unwrap();
    desk.write("other/thing", b"");
    // 70: starting it again helps nobody, a person has to look.
    let ran = desk.run("serve --data-dir other --listen 127.0.0.1:0").expect(70);
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.contains("empty directory"), "{}", ran.stderr);
}

#[test]
fn compacting_keeps_the_history_to_the_letter_and_says_what_it_saved() {
    let desk = Desk::new();
    let data = desk.path().join("data");
    let daemon = Daemon::start(&data, &["--max-jobs", "2"]);
    desk.take("multiplier", &["circuit.zkey", "circuit.wasm", "input.json"]);
    desk.ask(&daemon, "circuit add m --zkey circuit.zkey --wasm circuit.wasm")
        .expect(0);
    for _ in 0..4 {
        desk.ask(&daemon, "submit m --input input.json --wait").expect(0);
    }
    daemon.kill();
    let history = || {
        desk.run("history --data-dir data --events --json")
            .expect(0)
            .stdout
    };
    let before = history();

    let done = desk.run("compact --data-dir data --json").expect(0).json();
    let size = |number: u64| -> u64 {
        let files = std::fs::read_dir(data.join(format!("store.{number}"))).unwrap();
        files
            .map(|file| file.unwrap().metadata().unwrap())
            .filter(|file| file.is_file())
            .map(|file| file.len())
            .sum()
    };
    assert_eq!(
        (done["from"].as_u64(), done["to"].as_u64()),
        (Some(1), Some(2)),
        "{done}"
    );
    assert_eq!(done["size_before"], size(1), "{done}");
    assert_eq!(done["size_after"], size(2), "{done}");
    assert_eq!(history(), before);
    desk.run("fsck --data-dir data").expect(0);
    let text = desk.run("compact --data-dir data").expect(0).stdout;
    assert!(
        text.contains("bytes before") && text.contains("bytes after"),
        "{text}"
    );
    assert_eq!(history(), before);

    // The old ones go when the daemon boots after a clean end.
    assert!(Daemon::start(&data, &[]).terminate().success());
    assert!(Daemon::start(&data, &[]).terminate().success());
    let stores: Vec<String> = std::fs::read_dir(&data)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("store."))
        .collect();
    assert_eq!(stores, ["store.3"]);
    desk.run("fsck --data-dir data").expect(0);
}

#[test]
fn what_was_backed_up_or_exported_is_all_there_again_under_another_id() {
    let desk = Desk::new();
    let daemon = Daemon::start(&desk.path().join("data"), &[]);
    desk.take("multiplier", &["circuit.zkey", "circuit.wasm", "input.json"]);
    desk.ask(&daemon, "circuit add m --zkey circuit.zkey --wasm circuit.wasm")
        .expect(0);
    desk.ask(&daemon, "submit m --input input.json --wait").expect(0);
    assert!(daemon.terminate().success());
    let history = |data: &str| {
        desk.run(&format!("history --data-dir {data} --events --json"))
            .expect(0)
            .stdout
    };
    let id = |data: &str| {
        let text = String::from_utf8(desk.read(&format!("{data}/FORMAT"))).unwrap();
        text.lines()
            .find(|line| line.starts_with("store "))
            .unwrap()
            .to_owned()
    };
    let before = history("data");
    desk.run("backup --data-dir data saved").expect(0);
    desk.run("export --data-dir data file").expect(0);
    let mode = std::fs::metadata(desk.path().join("file")).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
    desk.run("restore saved --data-dir restored").expect(0);
    desk.run("import file --data-dir imported").expect(0);
    for data in ["restored", "imported"] {
        desk.run(&format!("fsck --data-dir {data}")).expect(0);
        assert_eq!(history(data), before, "{data}");
        assert_ne!(id(data), id("data"), "{data}");
        let daemon = Daemon::start(&desk.path().join(data), &[]);
        desk.ask(&daemon, "prove m input.json").expect(0);
        assert!(daemon.terminate().success());
    }
    assert_ne!(id("restored"), id("imported"));
    // Through a pipe: the same without a file in between.
    let mut shell = std::process::Command::new("sh");
    let line = r#""$0" export --data-dir data - | "$0" import - --data-dir piped --json"#;
    let piped = run(shell.current_dir(desk.path()).args(["-c", line]).arg(binary())).expect(0);
    assert_eq!(piped.json()["missing"], serde_json::json!([]));
    assert_eq!(history("piped"), before);

    // What can't be is refused, and changes nothing.
    for (line, code) in [
        ("backup --data-dir data saved", "target-exists"),
        ("export --data-dir data file", "target-exists"),
        ("restore saved --data-dir data", "data-dir-not-empty"),
        ("import file --data-dir data", "data-dir-not-empty"),
        ("restore nothing --data-dir new", "no-backup"),
        ("restore data --data-dir new", "no-backup"),
        ("import saved/dump --data-dir new", "no-backup"),
        ("import input.json --data-dir new", "backup-damaged"),
        ("import nothing --data-dir new", "unreadable"),
    ] {
        let ran = desk.run(line).expect(1);
        assert!(ran.stderr.contains(code), "{line}: {}", ran.stderr);
        assert!(!desk.path().join("new").exists(), "{line}");
    }
    assert_eq!(history("data"), before);
}
