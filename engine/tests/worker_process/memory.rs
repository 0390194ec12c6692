//! What a proof takes is at most what its ticket says.

use proofkeep_engine::kinds::groth16::import_bytes;
use proofkeep_engine::protocol::FromWorker;
use proofkeep_groth16::memory::ticket_bytes;
use proofkeep_store::ids::{Digest, Millis};
use proofkeep_store::records::{Circuit, CircuitState, SourceFiles};
use serde_json::json;

use crate::circuits::{LARGE_LOG2, large};
use crate::daemon::{Daemon, Options};
use crate::imports::import;
use crate::proofs::work;

crate::tests![
    the_peak_of_a_process_is_within_ticket_and_key,
    the_peak_of_an_import_is_within_its_estimate
];

fn the_peak_of_a_process_is_within_ticket_and_key() {
    let own = large();
    for threads in [1, 2] {
        let mut daemon = Daemon::with(Options {
            threads,
            checkpoint_after_ms: 0,
            ..Options::default()
        });
        let files = own.files(&daemon);
        let witness = daemon.put(&own.witness);
        let ready = daemon
            .synth(work(1), &files, json!({"witness": witness.to_string()}))
            .unwrap();
        let token = daemon.ask_prove(work(1), &ready, Vec::new());
        let peak = loop {
            match daemon.hear() {
                FromWorker::Proof { peak_bytes, .. } => break peak_bytes.unwrap(),
                FromWorker::Pieces { .. } | FromWorker::Released { .. } => {}
                other => panic!("expected the proof of {token:?}, heard {other:?}"),
            }
        };
        let (circuit, key) = *daemon.keys.last().unwrap();
        assert_eq!(circuit, Digest(files.circuit));
        let domain = 1u64 << LARGE_LOG2;
        let ticket = ticket_bytes(domain, domain - 1, threads as usize) + own.witness.len() as u64;
        println!("{threads} threads: peak {peak}, ticket {ticket}, key {key}");
        assert!(peak <= ticket + key, "{threads} threads");
        assert!(daemon.high_water() <= ticket + key, "{threads} threads");
    }
}

fn the_peak_of_an_import_is_within_its_estimate() {
    let mut daemon = Daemon::new();
    let files = large().files(&daemon);
    let (facts, ..) = import(&mut daemon, &files, 0).unwrap();
    let circuit = Circuit {
        digest: files.digest(),
        name: "own".to_owned(),
        files: SourceFiles::default(),
        allow_unfinished: false,
        local_setup: false,
        facts: facts.into(),
        state: CircuitState::Ready,
        vk: None,
        matrices: None,
        actor: "test".to_owned(),
        added_at: Millis(0),
        ready_at: None,
    };
    let (peak, estimate) = (daemon.high_water(), import_bytes(&circuit));
    println!("import: peak {peak}, estimate {estimate}");
    assert!(peak <= estimate, "peak {peak}, estimate {estimate}");
}
