//! The demo, told as it happens.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use proofkeep_formats::json::{ProofJson, VkJson, public_from_json};
use proofkeep_groth16::proof::Proof;
use proofkeep_groth16::verify::verify;
use proofkeep_groth16::vk::VerifyingKey;
use serde_json::{Value, json};

use super::bundle::{self, MESSAGES};
use super::child::{Daemon, FLAGS};
use super::watch::{Seen, Watch};
use crate::cli::exit::CliError;
use crate::cli::files::{self, Audience};
use crate::cli::groth16::make;
use crate::cli::out::Out;
use crate::cli::proof::write_results;
use crate::cli::server::{counted, text};

/// The seed of the demo's key, known to everybody.
const SEED: &[u8] = b"proofkeep demo";

/// Where the demo works and writes.
pub struct Places {
    /// A directory for keys, inputs and the daemon's data.
    pub home: PathBuf,
    /// What is left for the reader.
    pub results: PathBuf,
}

/// A line of the transcript.
pub fn say(line: &str) {
    let mut stdout = io::stdout().lock();
    // A demo that nobody reads any more goes on to its end all the same.
    let _ = writeln!(stdout, "{line}");
}

/// Runs it from the key to the verified proofs.
pub fn tell(places: &Places, out: &Out) -> Result<(), CliError> {
    let start = Instant::now();
    say("proofkeep demo: proves the SHA-256 of four messages, kills the daemon with SIGKILL in the middle,");
    say("and shows what was kept. Everything below really happens.");
    say(&format!(
        "It works in {} and leaves the proofs in {}.",
        places.home.display(),
        places.results.display()
    ));

    make_key(places, out)?;
    say("\n2. The daemon");
    say(&format!(
        "   $ proofkeep serve --data-dir {} {}",
        places.home.join("data").display(),
        FLAGS.join(" ")
    ));
    let daemon = Daemon::start(&places.home)?;
    say(&format!(
        "   pid {}, listening on {}",
        daemon.pid(),
        daemon.client.server()
    ));
    register(&daemon, places)?;
    let job = submit(&daemon, places)?;
    let mut watch = Watch::new(&job);
    let (daemon, kills) = prove(daemon, &mut watch, places)?;
    let status = daemon.client.get("/v1/status", &[])?.body;
    write(&daemon, &job, places)?;
    check(places)?;
    end(daemon, places)?;

    let saved = text(&status["boot"]["recovered"]["saved_ms"]);
    say(&format!(
        "\nDone in {:.0} s: {} proofs, {kills} kill -9 survived; finished pieces of killed attempts that were",
        start.elapsed().as_secs_f64(),
        MESSAGES.len()
    ));
    say(&format!(
        "not computed again: {} ({saved} ms saved). See for yourself:",
        watch.reused
    ));
    let results = places.results.display();
    say(&format!(
        "   npx snarkjs groth16 verify {results}/verification_key.json {results}/public_0.json {results}/proof_0.json"
    ));
    say(&format!(
        "   proofkeep verify {results}/verification_key.json {results}/public_0.json {results}/proof_0.json"
    ));
    Ok(())
}

fn make_key(places: &Places, out: &Out) -> Result<(), CliError> {
    say("\n1. A circuit and its key");
    let damaged = |error: io::Error| CliError::failed("bundle", error.to_string());
    let r1cs = bundle::r1cs().map_err(damaged)?;
    let circuit = proofkeep_formats::r1cs::header(&r1cs)?;
    say(&format!(
        "   SHA-256 of 32 bytes as a circom circuit: {} constraints, {} wires, domain 2^{}",
        circuit.constraints,
        circuit.wires,
        circuit.domain_log2()
    ));
    files::write(&places.home.join("circuit.r1cs"), Audience::Anyone, &r1cs)?;
    for (index, witness) in bundle::witnesses().map_err(damaged)?.iter().enumerate() {
        files::write(
            &places.home.join(format!("message_{index}.wtns")),
            Audience::Owner,
            witness,
        )?;
    }
    say("   $ proofkeep circuit setup circuit.r1cs circuit.zkey --insecure --seed 'proofkeep demo'");
    say("   (an insecure key: whoever knows the seed can forge proofs. Good for a demo, for nothing else.)");
    let start = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let threads = u32::try_from(threads).unwrap_or(1);
    let bytes = make(&r1cs, SEED, &places.home.join("circuit.zkey"), threads, out)?;
    say(&format!(
        "   circuit.zkey: {} MB in {:.1} s",
        bytes / 1_000_000,
        start.elapsed().as_secs_f64()
    ));
    Ok(())
}

fn register(daemon: &Daemon, places: &Places) -> Result<(), CliError> {
    say("\n3. Register the circuit");
    say("   $ proofkeep circuit add sha256 --zkey circuit.zkey --r1cs circuit.r1cs");
    let start = Instant::now();
    let mut body = serde_json::Map::new();
    for name in ["zkey", "r1cs"] {
        let digest = daemon
            .client
            .upload_file(&places.home.join(format!("circuit.{name}")))?;
        body.insert(name.to_owned(), digest.into());
    }
    let mut circuit = daemon
        .client
        .put("/v1/circuits/sha256", &[], &Value::Object(body))?
        .body;
    while circuit["state"] == "importing" {
        circuit = daemon
            .client
            .get("/v1/circuits/sha256", &[("Prefer", "wait=10")])?
            .body;
    }
    if circuit["state"] != "ready" {
        return Err(CliError::failed(
            "circuit",
            crate::cli::show::failure(&circuit["error"]),
        ));
    }
    let seconds = start.elapsed().as_secs_f64();
    say(&format!(
        "   ready in {seconds:.1} s: every point of the key is on the curve and in the subgroup, and the key"
    ));
    say("   belongs to these constraints");
    Ok(())
}

fn submit(daemon: &Daemon, places: &Places) -> Result<String, CliError> {
    say("\n4. Submit a job of four partitions");
    say("   $ proofkeep submit sha256 --input message_0.wtns … --input message_3.wtns");
    let mut inputs = Vec::new();
    for index in 0..MESSAGES.len() {
        let digest = daemon
            .client
            .upload_file(&places.home.join(format!("message_{index}.wtns")))?;
        inputs.push(json!({ "witness": digest }));
    }
    let body = json!({ "kind": "groth16", "circuit": "sha256", "inputs": inputs });
    let job = text(&daemon.client.post("/v1/jobs", &[], &body)?.body["id"]);
    say(&format!("   job {job}: on disk before the answer came"));
    Ok(job)
}

/// Follows the job to its end and kills the daemon on the way; answers how often.
fn prove(mut daemon: Daemon, watch: &mut Watch, places: &Places) -> Result<(Daemon, u32), CliError> {
    let mut kills = 0;
    loop {
        match watch.follow(&daemon.client, kills > 0)? {
            Seen::Ended(state) if state == "succeeded" => return Ok((daemon, kills)),
            Seen::Ended(state) => return Err(CliError::failed("demo", format!("the job ended {state}"))),
            Seen::WorthAKill { partition } => {
                let pieces = watch
                    .pieces
                    .get(&partition)
                    .map(|pieces| pieces.join(" "))
                    .unwrap_or_default();
                let pid = daemon.pid();
                daemon
                    .kill()
                    .map_err(|error| CliError::failed("demo", error.to_string()))?;
                kills += 1;
                say("\n5. kill -9");
                say(&format!(
                    "   $ kill -9 {pid}   ({} of {} partitions are proved, partition {partition} is in the middle: {pieces} on disk)",
                    watch.proved.len(),
                    MESSAGES.len()
                ));
                watch.killed(partition);
                daemon = restart(places)?;
            }
        }
    }
}

fn restart(places: &Places) -> Result<Daemon, CliError> {
    say("\n6. The same daemon again, on the same directory");
    let start = Instant::now();
    let daemon = Daemon::start(&places.home)?;
    let boot = &daemon.client.get("/v1/status", &[])?.body["boot"];
    let recovered = &boot["recovered"];
    say(&format!(
        "   boot {}, ready after {:.1} s: the boot before it {}; cut off and tried again: {},",
        text(&boot["number"]),
        start.elapsed().as_secs_f64(),
        text(&boot["before"]),
        counted(&recovered["interrupted"], "attempt")
    ));
    say(&format!(
        "   kept and not proved again: {}",
        counted(&recovered["partitions_kept"], "partition")
    ));
    Ok(daemon)
}

fn write(daemon: &Daemon, job: &str, places: &Places) -> Result<(), CliError> {
    say("\n7. The proofs");
    say(&format!(
        "   $ proofkeep proof {job} --out {}",
        places.results.display()
    ));
    write_results(&daemon.client, job, None, &places.results)?;
    let key = daemon.client.get_bytes("/v1/circuits/sha256/vk")?;
    files::write(
        &places.results.join("verification_key.json"),
        Audience::Anyone,
        &key,
    )
}

/// Verifies what lies in the files, and that it is about the messages.
fn check(places: &Places) -> Result<(), CliError> {
    let read = |name: &str| files::read(&places.results.join(name));
    let bad = |error: &dyn std::fmt::Display| CliError::failed("proof-invalid", error.to_string());
    let key = VkJson::from_json(&read("verification_key.json")?)?;
    let key = VerifyingKey::from_json(&key).map_err(|error| bad(&error))?;
    for (index, message) in MESSAGES.iter().enumerate() {
        let proof = ProofJson::from_json(&read(&format!("proof_{index}.json"))?)?;
        let proof = Proof::from_json(&proof).map_err(|error| bad(&error))?;
        let public = read(&format!("public_{index}.json"))?;
        verify(&key, &public_from_json(&public)?, &proof).map_err(|error| bad(&error))?;
        let signals: Vec<String> = serde_json::from_slice(&public).map_err(|error| bad(&error))?;
        if signals != bundle::signals(message) {
            return Err(bad(&format!(
                "proof {index} is about something else than its message"
            )));
        }
        let digest = bundle::digest(message);
        say(&format!(
            "   proof_{index}.json  valid: somebody knows a message with SHA-256 {}…",
            &digest[..32]
        ));
    }
    Ok(())
}

fn end(daemon: Daemon, places: &Places) -> Result<(), CliError> {
    let failed = |error: io::Error| CliError::failed("demo", error.to_string());
    let status = daemon.stop().map_err(failed)?;
    say("\n8. Stop the daemon and check its directory");
    say(&format!("   SIGTERM: {status}"));
    say(&format!(
        "   $ proofkeep fsck --data-dir {}",
        places.home.join("data").display()
    ));
    let fsck = Command::new(std::env::current_exe().map_err(failed)?)
        .args(["fsck", "--data-dir"])
        .arg(places.home.join("data"))
        .output()
        .map_err(failed)?;
    say(&format!(
        "   {}",
        String::from_utf8_lossy(&fsck.stdout)
            .trim_end()
            .replace('\n', "\n   ")
    ));
    if fsck.status.success() {
        Ok(())
    } else {
        Err(CliError::failed("demo", "fsck found something wrong"))
    }
}

/// Removes what the demo worked on.
pub fn clean(home: &Path) {
    // A temporary directory that stays behind is no failure of the demo.
    let _ = fs::remove_dir_all(home);
}
