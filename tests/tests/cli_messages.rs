//! What somebody at a terminal is told: every message says what was expected, what was found and what to do, in words of
//! the command line.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod cli_support;

use cli_support::Desk;
use proofkeep_tests::harness::{Daemon, Ran};

/// Asserts that stderr says these things.
#[track_caller]
fn says(ran: &Ran, parts: &[&str]) {
    for part in parts {
        assert!(ran.stderr.contains(part), "{part:?} is not in {:?}", ran.stderr);
    }
}

fn desk_with(fixtures: &[(&str, &[&str])]) -> Desk {
    let desk = Desk::new();
    for (fixture, files) in fixtures {
        desk.take(fixture, files);
    }
    desk
}

const MULTIPLIER: (&str, &[&str]) = (
    "multiplier",
    &[
        "circuit.zkey",
        "circuit.r1cs",
        "circuit.wasm",
        "circuit.sym",
        "input.json",
        "witness.wtns",
        "vkey.json",
        "public.json",
        "proof.json",
    ],
);

/// A directory could not be mapped and was "no such device"; without a name nobody knew which file was meant.
#[test]
fn a_file_that_does_not_do_is_named_with_what_was_expected() {
    let desk = desk_with(&[MULTIPLIER]);
    std::fs::create_dir(desk.path().join("dir")).unwrap();
    let cases: [(&str, &[&str]); 13] = [
        (
            "groth16 prove dir witness.wtns",
            &["dir can't be read", "expected a file", "directory"],
        ),
        (
            "groth16 prove circuit.zkey dir",
            &["dir can't be read", "expected a file, found a directory"],
        ),
        ("groth16 prove none witness.wtns", &["none can't be read"]),
        ("groth16 prove circuit.zkey none", &["none can't be read"]),
        (
            "groth16 prove circuit.r1cs witness.wtns",
            &["circuit.r1cs: ", "not a .zkey file", "r1cs"],
        ),
        (
            "groth16 prove circuit.zkey circuit.wasm",
            &["circuit.wasm: ", "not a .wtns file"],
        ),
        (
            "groth16 prove circuit.zkey witness.wtns --r1cs circuit.sym",
            &["circuit.sym: ", "not a .r1cs file"],
        ),
        (
            "groth16 setup circuit.zkey out.zkey --insecure",
            &["circuit.zkey: ", "not a .r1cs file"],
        ),
        (
            "wtns calculate circuit.zkey input.json",
            &["circuit.zkey: ", "must begin with", "begins with \"zkey\""],
        ),
        (
            "wtns calculate circuit.wasm input.json --sym input.json",
            &["input.json: ", "label,wire,component,name"],
        ),
        (
            "groth16 verify circuit.zkey public.json proof.json",
            &["circuit.zkey: ", "this is no JSON"],
        ),
        (
            "groth16 verify public.json vkey.json proof.json",
            &["public.json: ", "expected an object, found a list"],
        ),
        (
            "r1cs info dir",
            &["dir can't be read", "expected a file, found a directory"],
        ),
    ];
    for (line, parts) in cases {
        println!("{line}");
        let ran = desk.run(line).expect(1);
        says(&ran, parts);
        assert!(
            !ran.stderr.contains("0x"),
            "the parts of a library are no help: {}",
            ran.stderr
        );
    }
}

/// An hour of proving must not end with a file that can't be written.
#[test]
fn a_place_that_cannot_be_written_is_refused_before_the_work() {
    let desk = desk_with(&[MULTIPLIER]);
    std::fs::create_dir(desk.path().join("dir")).unwrap();
    // Each of these would fail on its input as well, which is looked at later.
    for line in [
        "groth16 prove none none no/proof.json",
        "groth16 prove none none proof.json dir",
        "groth16 fullprove none none none no/proof.json",
        "groth16 setup none no/out.zkey --insecure",
        "wtns calculate none none no/witness.wtns",
        "zkey export verificationkey none dir",
        "prove m none --proof no/proof.json --server http://127.0.0.1:1",
    ] {
        let ran = desk.run(line).expect(1);
        says(&ran, &["can't be written", "(unwritable)"]);
        assert!(ran.stderr.contains("directory"), "{line}: {}", ran.stderr);
    }
}

/// What can be told without asking anybody is a usage error, and nothing is sent for it.
#[test]
fn arguments_that_can_be_nothing_are_usage_errors() {
    let desk = desk_with(&[MULTIPLIER]);
    let away = "--server http://127.0.0.1:1";
    for (line, part) in [
        ("submit m --input input.json --priority urgent", "critical"),
        ("submit m --input input.json --on-failure never", "continue"),
        ("submit m --input input.json --max-attempts 0", "1..=100"),
        ("submit m --input input.json --label x", "KEY=VALUE"),
        (
            "submit m --input input.json --idempotency-key \u{fc}",
            "visible ASCII",
        ),
        ("submit m --input input.json --timeout 5", "ms, s, m or h"),
        ("ls --limit -1", "-1"),
        ("events 1 --after -1", "-1"),
        ("retry 1 --replace x=1", "PARTITION=FILE"),
        ("verify public.json proof.json", "--circuit"),
    ] {
        let ran = desk.run(&format!("{line} {away}")).expect(2);
        says(&ran, &[part]);
    }
    for command in [
        "show",
        "events",
        "cancel",
        "retry",
        "wait",
        "proof",
        "circuit show",
        "circuit rm",
    ] {
        let words: Vec<&str> = command
            .split(' ')
            .chain(["", "--server", "http://127.0.0.1:1"])
            .collect();
        let ran = proofkeep_tests::harness::run_in(desk.path(), words).expect(2);
        says(&ran, &["a value is required"]);
    }
    for line in [
        "groth16 prove circuit.zkey witness.wtns --threads 0",
        "wtns calculate circuit.wasm input.json --wasm-memory lots",
    ] {
        desk.run(line).expect(2);
    }
    for server in [
        "127.0.0.1:1",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:8420/v1",
    ] {
        says(
            &desk.run(&format!("ls --server {server}")).expect(2),
            &["http://127.0.0.1:8420"],
        );
    }
}

#[test]
fn what_a_daemon_refuses_is_said_in_words_of_the_command_line() {
    let desk = desk_with(&[MULTIPLIER]);
    let daemon = Daemon::start(&desk.path().join("data"), &[]);
    desk.ask(&daemon, "circuit add m --zkey circuit.zkey --wasm circuit.wasm")
        .expect(0);
    desk.take("filled", &["circuit.zkey"]);
    let no_job = "00000000-0000-4000-8000-000000000000";
    let cases: [(&str, i32, &[&str]); 6] = [
        (
            "circuit add m --zkey circuit.zkey",
            1,
            &["name-taken", "--replace"],
        ),
        (
            "circuit show other",
            1,
            &["there is no circuit \"other\"", "proofkeep circuit ls"],
        ),
        ("submit other --input input.json", 1, &["proofkeep circuit add"]),
        (&format!("show {no_job}"), 1, &["there is no job", "proofkeep ls"]),
        ("ls --state done", 2, &["expected active", "found \"done\""]),
        (
            "verify --circuit m input.json circuit.wasm",
            1,
            &["circuit.wasm: ", "no JSON"],
        ),
    ];
    for (line, code, parts) in cases {
        println!("{line}");
        says(&desk.ask(&daemon, line).expect(code), parts);
    }
    let job = desk
        .ask(&daemon, "submit m --input input.json --wait")
        .expect(0)
        .stdout
        .trim()
        .to_owned();
    let cancelled = desk.ask(&daemon, &format!("cancel {job}")).expect(1);
    says(
        &cancelled,
        &[&job, "succeeded", "can't be cancelled any more", "(job-state)"],
    );
    let retried = desk.ask(&daemon, &format!("retry {job}")).expect(1);
    says(
        &retried,
        &[&job, "succeeded", "only a job that failed", "submit another job"],
    );
    let kept = desk
        .ask(&daemon, &format!("proof {job} --out input.json"))
        .expect(1);
    says(&kept, &["input.json can't be made a directory"]);
    let migrate = desk.run("migrate --data-dir data").expect(1);
    says(
        &migrate,
        &["stop it first, a migration needs the directory for itself"],
    );
}

#[test]
fn one_is_no_plural() {
    let desk = desk_with(&[MULTIPLIER, ("poseidon2", &["circuit.zkey"])]);
    let said = |line: &str| desk.run(line).expect(0).stdout;
    assert_eq!(
        said("wtns check circuit.r1cs witness.wtns --json"),
        "{\"constraints\":1,\"satisfied\":true}\n"
    );
    let text = said("wtns check circuit.r1cs witness.wtns");
    assert!(text.contains("(1 constraint)"), "{text}");
    let text = said("zkey export verificationkey circuit.zkey one.json");
    assert!(text.contains("for 1 public signal\n"), "{text}");
    let text = desk
        .run("verify one.json public.json proof.json")
        .expect(1)
        .stdout;
    assert!(text.contains("1 public signal, found 2"), "{text}");
}

/// Without the constraints a witness that breaks one is only found by the proof that doesn't verify.
#[test]
fn a_witness_that_breaks_a_constraint_is_said_to_when_only_its_proof_shows_it() {
    let desk = desk_with(&[MULTIPLIER]);
    let mut bytes = desk.read("witness.wtns");
    let last = bytes.len() - 32;
    bytes[last] ^= 1;
    desk.write("bad.wtns", &bytes);
    let ran = desk.run("groth16 prove circuit.zkey bad.wtns new.json").expect(1);
    says(
        &ran,
        &[
            "bad.wtns: the witness does not satisfy the circuit of this key",
            "does not verify",
            "--r1cs circuit.r1cs",
            "which constraint",
            "(invalid-proof)",
        ],
    );
    let ran = desk
        .run("groth16 prove circuit.zkey bad.wtns new.json --r1cs circuit.r1cs")
        .expect(1);
    says(&ran, &["bad.wtns: ", "constraint 0", "(unsatisfied)"]);
    assert!(!desk.path().join("new.json").exists());
}

/// A directory that was never proofkeep's got a lock file from every command that only looked at it.
#[test]
fn a_directory_of_something_else_stays_as_it_is() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path().join("other")).unwrap();
    desk.write("other/thesis.tex", b"");
    for (line, code, part) in [
        ("history --data-dir other", 1, "holds no proofkeep data"),
        ("fsck --data-dir other", 1, "holds no proofkeep data"),
        ("migrate --data-dir other", 1, "holds no proofkeep data"),
        ("serve --data-dir other --listen 127.0.0.1:0", 70, "thesis.tex"),
    ] {
        says(&desk.run(line).expect(code), &[part]);
        let left = std::fs::read_dir(desk.path().join("other")).unwrap().count();
        assert_eq!(left, 1, "{line} put something into it");
    }
}

#[test]
fn a_configuration_names_its_line_whatever_is_wrong() {
    let desk = Desk::new();
    for (text, parts) in [
        ("\nlisten = \"8420\"\n", ["line 2", "127.0.0.1:8420"]),
        ("memory = \"lots\"\n", ["line 1", "GiB"]),
        ("\n\ngrace = \"5\"\n", ["line 3", "ms, s, m or h"]),
    ] {
        desk.write("proofkeep.toml", text.as_bytes());
        says(&desk.run("serve --data-dir data").expect(2), &parts);
    }
}
