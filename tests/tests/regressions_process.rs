//! Faults of other systems that show in the daemon as a process: signals, ports, configuration.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod regressions_support;

use std::net::TcpListener;
use std::path::Path;

use proofkeep_tests::harness::{command, is_alive, run, until};
use regressions_support::Scripted;
use serde_json::json;

/// SIGTERM was unhandled, SIGINT left a zombie port: both end it with 0, keep what was done, and leave no process and no
/// port behind.
#[test]
fn sigterm_and_sigint_end_it_and_leave_neither_port_nor_process() {
    let mut server = Scripted::start(&["--checkpoint-after", "0s", "--grace", "20s"]);
    let gate = server.gate("go");
    let job =
        server.submit(&server.body(&[json!({ "gate": { "stage": "b2", "file": gate }, "piece_ms": 5 })]));
    for signal in [libc::SIGTERM, libc::SIGINT] {
        until("pieces are saved", || {
            let shown = server.get(&format!("/v1/jobs/{job}")).expect(200).json();
            let pieces = shown["partitions"][0]["checkpoint"]
                .as_array()
                .map_or(0, Vec::len);
            shown["partitions"][0]["state"] == "proving" && pieces >= 3
        });
        let (workers, address) = (
            server.workers(),
            server.url().trim_start_matches("http://").to_owned(),
        );
        let pid = server.pid();
        assert!(!workers.is_empty());
        server.signal(signal);
        until("the daemon has ended", || !is_alive(pid));
        until("its worker processes have ended", || {
            workers.iter().all(|worker| !is_alive(*worker))
        });
        drop(TcpListener::bind(&address).expect("its port is free again"));
        server.start_again();
        assert_eq!(server.get("/v1/status").json()["boot"]["before"], "clean");
    }
    std::fs::write(&gate, "").unwrap();
    let ended = server.wait_for_end(&job);
    assert_eq!(ended["state"], "succeeded", "{ended}");
    let rows = ended["partitions"][0]["attempts"].as_array().unwrap();
    let shut = rows
        .iter()
        .filter(|row| row["error"]["class"] == "shutdown")
        .count();
    assert!(shut >= 2, "{ended}");
    assert!(
        !rows.last().unwrap()["reused"].as_array().unwrap().is_empty(),
        "what was done before is used: {ended}"
    );
    server.check();
}

/// Bad sizes and durations in the configuration silently became defaults.
#[test]
fn an_error_in_the_configuration_names_the_file_the_line_and_what_would_do() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("proofkeep.toml");
    let cases: [(&str, &[&str]); 7] = [
        (
            "max_jobs = 3\nmemory = \"12 gigs\"\n",
            &["line 2", "memory", "12 gigs", "GiB"],
        ),
        ("\n\ngrace = \"soon\"\n", &["line 3", "grace", "soon"]),
        (
            "max_jobs = 3\nmax_jbos = 4\n",
            &["line 2", "max_jbos", "max_jobs"],
        ),
        ("max_jobs = \"many\"\n", &["line 1", "max_jobs"]),
        ("max_upload = \"-5MiB\"\n", &["line 1", "max_upload", "-5MiB"]),
        (
            "checkpoint_after = \"10 parsecs\"\n",
            &["line 1", "checkpoint_after", "10 parsecs"],
        ),
        ("listen = \"nowhere\"\n", &["listen", "nowhere"]),
    ];
    let data = directory.path().join("data");
    let serve = |configure: &dyn Fn(&mut std::process::Command)| {
        let mut command = command([
            Path::new("serve"),
            Path::new("--data-dir"),
            &data,
            Path::new("--listen"),
            Path::new("127.0.0.1:0"),
        ]);
        configure(&mut command);
        run(&mut command)
    };
    for (text, parts) in cases {
        std::fs::write(&file, text).unwrap();
        // Named, and found by itself in the current directory.
        let named = serve(&|command| _ = command.arg("--config").arg(&file));
        let found = serve(&|command| _ = command.current_dir(directory.path()));
        for ran in [named, found] {
            let ran = ran.expect(2);
            assert!(ran.stderr.contains("proofkeep.toml"), "{text}: {}", ran.stderr);
            for part in parts {
                assert!(
                    ran.stderr.contains(part),
                    "{part:?} for {text:?} is not in: {}",
                    ran.stderr
                );
            }
            assert_eq!(ran.stdout, "");
        }
    }
    std::fs::remove_file(&file).unwrap();
    let ran = serve(&|command| _ = command.env("PROOFKEEP_MEMORY", "lots")).expect(2);
    assert!(
        ran.stderr.contains("PROOFKEEP_MEMORY") && ran.stderr.contains("lots"),
        "{}",
        ran.stderr
    );
    let ran = serve(&|command| _ = command.args(["--grace", "1 fortnight"])).expect(2);
    assert!(
        ran.stderr.contains("--grace") && ran.stderr.contains("fortnight"),
        "{}",
        ran.stderr
    );
    let ran = run(command(["serve", "--listen", "0.0.0.0:0", "--data-dir"]).arg(&data)).expect(2);
    assert!(ran.stderr.contains("loopback"), "{}", ran.stderr);
    assert!(
        !data.exists(),
        "a daemon that can't be configured made a data directory"
    );
}
