//! A small but complete life of a daemon: uploads, an import, proofs, a cancel, a failure and its retry, pruning. It can be
//! begun again where another one was cut off.

use std::sync::LazyLock;

use proofkeep_tests::fixtures;
use serde_json::{Value, json};
use uuid::Uuid;

use super::client::Client;

/// Ended jobs that are kept, so that some are pruned.
pub const MAX_JOBS: &str = "4";

pub struct Files {
    pub r1cs: Vec<u8>,
    pub zkey: Vec<u8>,
    pub witness: Vec<u8>,
    /// It doesn't satisfy the circuit.
    pub wrong: Vec<u8>,
}

pub static FILES: LazyLock<Files> = LazyLock::new(|| {
    let read = |file| fixtures::read("multiplier", file);
    let witness = read("witness.wtns");
    let mut wrong = witness.clone();
    let value = wrong.len() - 32;
    wrong[value] ^= 1;
    Files {
        r1cs: read("circuit.r1cs"),
        zkey: read("circuit.zkey"),
        witness,
        wrong,
    }
});

/// How far it has come.
#[derive(Default)]
pub struct Steps {
    registered: bool,
    small: Option<Uuid>,
    doomed: Option<Uuid>,
    bad: Option<Uuid>,
    cancelled: bool,
}

pub fn job(circuit: &str, witnesses: &[&str]) -> Value {
    let inputs: Vec<Value> = witnesses
        .iter()
        .map(|witness| json!({ "witness": witness }))
        .collect();
    json!({ "kind": "groth16", "circuit": circuit, "inputs": inputs })
}

/// Lives as far as it can; `None`: the daemon is gone.
pub fn live(client: &Client<'_>, steps: &mut Steps) -> Option<()> {
    let uploads = [&FILES.zkey, &FILES.r1cs, &FILES.witness, &FILES.wrong];
    let mut names = Vec::new();
    for bytes in uploads {
        match client.upload(bytes)? {
            Some(name) => names.push(name),
            None => return Some(()),
        }
    }
    let [zkey, r1cs, good, wrong] = &names[..] else {
        unreachable!("four uploads")
    };
    if !steps.registered {
        let body = json!({ "zkey": zkey, "r1cs": r1cs });
        steps.registered = client.register("another", &body)?.is_some();
    }
    if !steps.registered {
        return Some(());
    }
    if steps.small.is_none() {
        steps.small = client.submit("small", &job("another", &[good, good]), true)?;
    }
    if steps.doomed.is_none() {
        steps.doomed = client.submit("doomed", &job("another", &[good.as_str(); 8]), true)?;
    }
    if let (Some(doomed), false) = (steps.doomed, steps.cancelled) {
        client.cancel(doomed)?;
        steps.cancelled = true;
    }
    if steps.bad.is_none() {
        steps.bad = client.submit("bad", &job("another", &[wrong]), false)?;
    }
    if let Some(small) = steps.small
        && client.end_for_good(small)?.as_deref() == Some("succeeded")
    {
        client.proof(small)?;
    }
    if let Some(bad) = steps.bad {
        retried(client, bad, good)?;
    }
    if let Some(doomed) = steps.doomed {
        client.end_for_good(doomed)?;
    }
    for key in ["one-more", "two-more", "three-more"] {
        if let Some(id) = client.submit(key, &job("first", &[good]), true)? {
            client.end_for_good(id)?;
        }
    }
    Some(())
}

/// The job with a bad witness fails, gets a good one, and succeeds.
fn retried(client: &Client<'_>, bad: Uuid, good: &str) -> Option<()> {
    if client.end(bad)?.as_deref() == Some("failed") {
        client.retry(bad, &json!({ "replace": { "0": { "witness": good } } }))?;
    }
    if let Some(state) = client.end(bad)?
        && !matches!(state.as_str(), "succeeded" | "pruned" | "failed")
    {
        client.book.wrong(format!("the job that was retried is {state}"));
    }
    Some(())
}
