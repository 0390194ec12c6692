//! Jobs that kill their worker process: they are parked by the rule of the state machine, and nobody beside them is.
//!
//! ```text
//! cargo test --release -p proofkeep-tests --test crash_poison -- --nocapture
//! ```
//! The rule: a death by the process's own fault counts for what was at work in it, in its stage. After two in a row a
//! partition runs alone; two more while it is alone park it. So a guilty one has four attempts (some more if it comes further
//! between two deaths), and an innocent one, which
//! dies with it twice at most before the two are apart, ends as it would have.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod regressions_support;

use std::path::Path;

use proofkeep_scripted::mark_count;
use proofkeep_tests::harness::{kill_process, until, until_some};
use proofkeep_tests::report::Report;
use proofkeep_tests::{fixtures, setting};
use regressions_support::{Scripted, attempts, id};
use serde_json::{Value, json};

/// More than a worker process has resident, so that a SIGKILL is not taken for the kernel's.
const TICKET: u64 = 256 << 20;
/// Pieces are saved after a second of work: none is in these jobs, so that no death comes after progress.
const ARGUMENTS: [&str; 4] = ["--cpu-devices", "2", "--memory", "8GiB"];
/// Each piece is saved: progress.
const SAVING: [&str; 6] = [
    "--cpu-devices",
    "2",
    "--memory",
    "8GiB",
    "--checkpoint-after",
    "0s",
];
/// SIGKILLs from outside that one partition lives through.
const KILLS: u64 = 20;
/// Poisoned jobs on one device, and as many healthy ones.
const POISONED: u64 = 4;
/// What the daemon says when it puts a start off.
const PUT_OFF: &str = "the next start is put off";

/// What a scene saw.
#[derive(Default)]
struct Seen {
    /// Deaths of worker processes.
    deaths: u64,
    parked: u64,
    /// Partitions that were beside it and ended well.
    innocent: u64,
}

fn small() -> Value {
    json!({ "synth_ms": 5, "piece_ms": 5, "finish_ms": 5 })
}

fn body(server: &Scripted, marks: &Path, inputs: &[Value]) -> Value {
    std::fs::create_dir_all(marks).unwrap();
    let mut body = server.body(inputs);
    body["marks"] = json!(marks);
    body["ticket_bytes"] = json!(TICKET);
    body
}

fn classes(job: &Value, index: usize) -> Vec<String> {
    let rows = attempts(job, index).into_iter();
    rows.map(|(_, outcome, class)| class.unwrap_or(outcome)).collect()
}

/// A partition that nothing is wrong with: proved, its attempts interrupted (or out of memory with the one beside it)
/// until the last.
fn innocent(job: &Value, index: usize) {
    let partition = &job["partitions"][index];
    assert_eq!(partition["state"], "proved", "{job}");
    let ends = classes(job, index);
    let (last, before) = ends.split_last().unwrap();
    assert_eq!(last, "ok", "{job}");
    let blameless = |class: &String| matches!(class.as_str(), "interrupted" | "out_of_memory");
    assert!(before.iter().all(blameless), "{job}");
}

/// A guilty partition dies in `stage` as often as it may, beside a real proof and scripted ones.
fn parked(how: &str, stage: &str) -> Seen {
    let server = Scripted::start(&ARGUMENTS);
    server.register(
        "multiplier",
        &[
            ("zkey", &fixtures::read("multiplier", "circuit.zkey")),
            ("r1cs", &fixtures::read("multiplier", "circuit.r1cs")),
        ],
    );
    let witness = server.upload(&fixtures::read("multiplier", "witness.wtns"));
    let (go, on) = (server.gate("go"), server.gate("on"));
    let guilty = json!({ "crash": { "stage": stage, "how": how }, "gate": { "stage": stage, "file": go } });
    let beside = json!({ "gate": { "stage": "b1", "file": on } });
    let marks = server.directory.path().join("guilty");
    let job = server.submit(&body(&server, &marks, &[guilty, beside, small(), small()]));
    let neighbour = server.submit(&body(
        &server,
        &server.directory.path().join("neighbour"),
        &[small(), small()],
    ));
    let real = json!({ "kind": "groth16", "circuit": "multiplier", "inputs": [{ "witness": witness }, { "witness": witness }] });
    let real = server.submit(&real);
    until("both work in the same process", || {
        mark_count(&marks, 0, stage) > 0 && mark_count(&marks, 1, "b1") > 0
    });
    std::fs::write(&go, "").unwrap();
    until("the process has died", || {
        let shown = server.get(&format!("/v1/jobs/{job}")).expect(200).json();
        attempts(&shown, 1)[0].1 != "open"
    });
    std::fs::write(&on, "").unwrap();

    let ended = server.wait_for_end(&job);
    assert_eq!(ended["state"], "failed", "{ended}");
    let ends = classes(&ended, 0);
    let class = if how == "allocate" {
        "out_of_memory"
    } else {
        "poison"
    };
    let (last, before) = ends.split_last().unwrap();
    assert_eq!(last, class, "{how} in {stage}: {ended}");
    match class {
        "poison" => assert!(before.iter().all(|end| end == "interrupted"), "{ended}"),
        _ => assert_eq!(before, ["out_of_memory"], "{ended}"),
    }
    let expected = if class == "poison" { 4 } else { 2 };
    assert_eq!(ends.len(), expected, "{how} in {stage}: {ended}");
    let why = &ended["partitions"][0]["error"];
    assert_eq!(why["class"], class, "{ended}");
    if class == "poison" {
        assert_eq!(why["code"], "crashes-its-worker", "{ended}");
        assert!(
            why["detail"].as_str().unwrap().contains("crashes its worker"),
            "{ended}"
        );
    }
    (1..4).for_each(|index| innocent(&ended, index));
    assert!(
        classes(&ended, 1).len() > 1,
        "it was to die with the guilty one: {ended}"
    );
    for other in [&neighbour, &real] {
        let ended = server.wait_for_end(other);
        assert_eq!(ended["state"], "succeeded", "{ended}");
        (0..2).for_each(|index| innocent(&ended, index));
    }
    // The daemon goes on, with the same boot.
    let after = server.wait_for_end(&server.submit(&body(&server, &marks.join("after"), &[small()])));
    assert_eq!(
        (&after["state"], classes(&after, 0)),
        (&json!("succeeded"), vec!["ok".to_owned()]),
        "{after}"
    );
    let status = server.get("/v1/status").expect(200).json();
    assert_eq!(status["boot"]["number"], 1, "{status}");
    server.check();
    Seen {
        deaths: ends.len() as u64,
        parked: 1,
        innocent: 7,
    }
}

/// One that dies now here and now there, and makes no progress, is parked after the deaths that are promised.
fn alternates(turns: &[&str], most: usize) -> Seen {
    let server = Scripted::start(&SAVING);
    let marks = server.directory.path().join("restless");
    let restless = json!({ "crash": { "stage": "turns", "how": "abort", "turns": turns } });
    let job = server.submit(&body(&server, &marks, &[restless, small(), small()]));
    let ended = server.wait_for_end(&job);
    assert_eq!(ended["state"], "failed", "{turns:?}: {ended}");
    assert_eq!(
        ended["partitions"][0]["error"]["code"], "crashes-its-worker",
        "{turns:?}: {ended}"
    );
    let ends = classes(&ended, 0);
    assert!(
        ends.len() <= most,
        "{turns:?}: {} deaths, at most {most} were promised: {ended}",
        ends.len()
    );
    (1..3).for_each(|index| innocent(&ended, index));
    server.check();
    Seen {
        deaths: ends.len() as u64,
        parked: 1,
        innocent: 2,
    }
}

/// Healthy jobs of a device that a poisoned one keeps killing: nobody waits for a back-off between two starts, which is
/// for processes that can't start. Each death is followed by one start, and nothing says that a start was put off.
fn healthy_jobs_have_a_worker_all_the_time() -> Seen {
    let server = Scripted::start(&["--cpu-devices", "1", "--memory", "8GiB"]);
    let directory = server.directory.path().to_owned();
    let poison = json!({ "crash": { "stage": "turns", "how": "abort", "turns": ["synth"] } });
    let poisoned: Vec<String> = (0..POISONED)
        .map(|index| {
            let marks = directory.join(format!("poison-{index}"));
            let mut body = body(&server, &marks, std::slice::from_ref(&poison));
            body["priority"] = json!("high");
            server.submit(&body)
        })
        .collect();
    let healthy: Vec<String> = (0..POISONED)
        .map(|index| {
            let marks = directory.join(format!("healthy-{index}"));
            server.submit(&body(&server, &marks, &[small()]))
        })
        .collect();
    let mut deaths = 0;
    for job in &poisoned {
        let ended = server.wait_for_end(job);
        assert_eq!(ended["state"], "failed", "{ended}");
        deaths += classes(&ended, 0).len() as u64;
    }
    for job in &healthy {
        let ended = server.wait_for_end(job);
        assert_eq!(ended["state"], "succeeded", "{ended}");
        innocent(&ended, 0);
    }
    let log = server.stderr();
    assert!(!log.contains(PUT_OFF), "a start was put off:\n{log}");
    let died = log.matches("the worker process died by SIGABRT").count();
    assert!(
        died > 0,
        "no death is in the log, so this looks at the wrong one:\n{log}"
    );
    // One that dies again and again before anything was given to it can't start as far as anybody knows: that is put off.
    until("a start is put off", || {
        if let Some(worker) = server.workers().first() {
            kill_process(*worker);
        }
        server.stderr().contains(PUT_OFF)
    });
    server.check();
    Seen {
        deaths,
        parked: POISONED,
        innocent: POISONED,
    }
}

/// Somebody kills the process again and again: nobody is to blame, and work goes on beside what was hit.
fn killed_from_outside() -> Seen {
    let server = Scripted::start(&ARGUMENTS);
    let go = server.gate("go");
    let marks = server.directory.path().join("victim");
    let gated = json!({ "gate": { "stage": "l", "file": go } });
    let victim = server.submit(&body(&server, &marks, &[gated]));
    for round in 1..=KILLS {
        until("it proves again", || mark_count(&marks, 0, "l") >= round);
        // That this one is proved beside it shows that the victim doesn't have to run alone.
        let beside = server.submit(&body(
            &server,
            &server.directory.path().join("beside"),
            &[small()],
        ));
        assert_eq!(server.wait_for_end(&beside)["state"], "succeeded");
        let worker = until_some("there is a worker process", || server.workers().first().copied());
        kill_process(worker);
    }
    std::fs::write(&go, "").unwrap();
    let ended = server.wait_for_end(&victim);
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(ended["partitions"][0]["attempts_total"], KILLS + 1, "{ended}");
    assert_ne!(ended["partitions"][0]["alone"], true, "{ended}");
    innocent(&ended, 0);
    server.check();
    Seen {
        deaths: KILLS,
        parked: 0,
        innocent: 1 + KILLS,
    }
}

/// One that dies in each of its stages, but comes further each time, is never parked.
fn progress_clears_the_count() -> Seen {
    let server = Scripted::start(&SAVING);
    let marks = server.directory.path().join("unlucky");
    let unlucky =
        json!({ "crash": { "stage": "any", "how": "abort", "times": 1 }, "piece_ms": 150, "synth_ms": 5 });
    let job = server.submit(&body(&server, &marks, &[unlucky]));
    let ended = server.wait_for_end(&job);
    assert_eq!(ended["state"], "succeeded", "{ended}");
    let deaths = ["synth", "prove", "h", "l", "a", "b1", "b2", "finish"];
    for stage in deaths {
        assert_eq!(mark_count(&marks, 0, &format!("crash-{stage}")), 1, "{stage}");
    }
    let ends = classes(&ended, 0);
    assert_eq!(ends.len(), deaths.len() + 1, "{ended}");
    innocent(&ended, 0);
    server.check();
    Seen {
        deaths: deaths.len() as u64,
        parked: 0,
        innocent: 1,
    }
}

/// A parked job can be tried again by its owner, and has its four attempts again.
fn a_retry_starts_anew() -> Seen {
    let server = Scripted::start(&ARGUMENTS);
    let marks = server.directory.path().join("guilty");
    let guilty = json!({ "crash": { "stage": "l", "how": "abort", "times": 4 } });
    let job = server.submit(&body(&server, &marks, &[guilty, small()]));
    let ended = server.wait_for_end(&job);
    assert_eq!(ended["state"], "failed", "{ended}");
    let answer = server.post(&format!("/v1/jobs/{job}/retry"), &json!({}));
    assert!(matches!(answer.status, 200 | 202), "{}", answer.text());
    assert_eq!(id(&answer.json()), job);
    let ended = server.wait_for_end(&job);
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(ended["partitions"][0]["attempts_total"], 5, "{ended}");
    assert_eq!(classes(&ended, 1).last().unwrap(), "ok", "{ended}");
    server.check();
    Seen {
        deaths: 4,
        parked: 1,
        innocent: 1,
    }
}

#[test]
fn who_kills_its_worker_is_parked_and_nobody_else() {
    let scenes: Vec<Box<dyn Fn() -> Seen + Send>> = vec![
        Box::new(|| parked("abort", "synth")),
        Box::new(|| parked("segv", "l")),
        Box::new(|| parked("exit", "finish")),
        Box::new(|| parked("overflow", "a")),
        Box::new(|| parked("allocate", "h")),
        Box::new(|| alternates(&["synth", "l"], 6)),
        Box::new(|| alternates(&["finish", "synth", "prove"], 6)),
        Box::new(healthy_jobs_have_a_worker_all_the_time),
        Box::new(killed_from_outside),
        Box::new(progress_clears_the_count),
        Box::new(a_retry_starts_anew),
    ];
    let mut total = Seen::default();
    // They wait most of their time: all at once.
    std::thread::scope(|scope| {
        let running: Vec<_> = scenes.into_iter().map(|scene| scope.spawn(scene)).collect();
        for scene in running {
            let seen = scene
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            total.deaths += seen.deaths;
            total.parked += seen.parked;
            total.innocent += seen.innocent;
        }
    });
    Report::new("poison", setting::seed())
        .count("deaths", total.deaths)
        .count("partitions parked", total.parked)
        .count("innocent partitions proved beside them", total.innocent)
        .publish();
}
