//! Stop, drop, evict: what ends work early.

use std::time::{Duration, Instant};

use proofkeep_engine::kinds::Kind;
use proofkeep_engine::kinds::groth16::Groth16;
use proofkeep_engine::protocol::{self, CircuitFiles, FromWorker, ToWorker, WireToken, Work};
use proofkeep_store::ids::Digest;
use serde_json::json;

use crate::circuits::{circom, fixture, large};
use crate::daemon::{Daemon, Ended, Options, data_directory};
use crate::proofs::work;

crate::tests![
    a_preempted_proof_ends_at_the_next_edge_and_is_resumed_from_its_pieces,
    a_killed_process_costs_at_most_the_piece_in_work,
    a_cancelled_proof_saves_nothing_more,
    unsaved_pieces_are_saved_when_the_work_can_go_on,
    pieces_are_saved_when_they_cost_more_than_the_limit,
    a_stop_for_a_lease_that_is_over_says_nothing,
    a_synthesis_is_stopped,
    a_calculator_without_end_is_stopped,
    a_dropped_witness_is_gone_and_every_drop_is_answered,
    a_drop_of_running_work_is_answered_when_its_memory_is_free,
    a_key_in_use_is_evicted_when_it_is_free,
];

/// Proves the large circuit, asks it to stop at once, and returns how that ended. On a machine that is faster than the
/// word, the proof is there; then it is tried again.
fn stopped(daemon: &mut Daemon, files: &CircuitFiles, class: &str) -> Ended {
    let input = json!({"witness": daemon.put(&large().witness).to_string()});
    for attempt in 1..=20 {
        let work = Work { attempt, ..work(1) };
        let ready = daemon.synth(work, files, input.clone()).unwrap();
        let token = daemon.ask_prove(work, &ready, Vec::new());
        daemon.say(&ToWorker::Stop {
            token,
            class: class.to_owned(),
        });
        let ended = daemon.hear_end(token);
        if ended.proof.is_none() {
            return ended;
        }
    }
    panic!("twenty proofs ended before they could be stopped");
}

fn a_preempted_proof_ends_at_the_next_edge_and_is_resumed_from_its_pieces() {
    let mut daemon = Daemon::with(Options {
        threads: 1,
        checkpoint_after_ms: 3_600_000,
        ..Options::default()
    });
    let files = large().files(&daemon);
    let files = crate::imports::imported(&mut daemon, &files);
    let ended = stopped(&mut daemon, &files, "preempted");
    assert!(ended.released.is_none());
    assert_eq!(ended.failure.unwrap().class, "preempted");
    assert!(ended.pieces.len() < 5);
    let again = Work {
        attempt: 30,
        ..work(1)
    };
    let input = json!({"witness": daemon.put(&large().witness).to_string()});
    let ready = daemon.synth(again, &files, input).unwrap();
    let resumed = daemon.prove(again, &ready, ended.pieces.clone());
    let names: Vec<String> = ended.pieces.iter().map(|piece| piece.name.clone()).collect();
    assert_eq!(resumed.released.unwrap().0, names);
    let vk = std::fs::read(daemon.object(Digest(files.vk.unwrap()))).unwrap();
    Groth16::new()
        .verify(Some(&vk), &ready.public, &resumed.proof.unwrap())
        .unwrap();
}

fn a_cancelled_proof_saves_nothing_more() {
    let mut daemon = Daemon::with(Options {
        threads: 1,
        checkpoint_after_ms: 3_600_000,
        ..Options::default()
    });
    let files = large().files(&daemon);
    let ended = stopped(&mut daemon, &files, "cancelled");
    assert_eq!(ended.failure.unwrap().class, "cancelled");
    assert!(ended.pieces.is_empty());
}

fn unsaved_pieces_are_saved_when_the_work_can_go_on() {
    // Nothing is saved by itself within an hour, so what comes is what the stop saved.
    let mut daemon = Daemon::with(Options {
        threads: 1,
        checkpoint_after_ms: 3_600_000,
        ..Options::default()
    });
    for (class, saved) in [("preempted", 1), ("shutdown", 1), ("cancelled", 0)] {
        let token = trial(&mut daemon, work(1), b"prove one piece and wait");
        let ready = daemon.hear_synth(token).unwrap();
        let token = daemon.ask_prove(work(1), &ready, Vec::new());
        hear_progress(&mut daemon, token, 500);
        daemon.say(&ToWorker::Stop {
            token,
            class: class.to_owned(),
        });
        let ended = daemon.hear_end(token);
        assert_eq!(ended.failure.unwrap().class, class);
        assert_eq!(ended.pieces.len(), saved, "{class}");
    }
}

fn pieces_are_saved_when_they_cost_more_than_the_limit() {
    for (checkpoint_after_ms, saved) in [(0, 1), (20, 1), (21, 0)] {
        let mut daemon = Daemon::with(Options {
            threads: 1,
            checkpoint_after_ms,
            ..Options::default()
        });
        let token = trial(&mut daemon, work(1), b"prove one piece and wait");
        let ready = daemon.hear_synth(token).unwrap();
        let token = daemon.ask_prove(work(1), &ready, Vec::new());
        if saved == 1 {
            assert!(matches!(daemon.hear(), FromWorker::Pieces { pieces, .. } if pieces.len() == 1));
        } else {
            hear_progress(&mut daemon, token, 500);
        }
        daemon.say(&ToWorker::Stop {
            token,
            class: "cancelled".to_owned(),
        });
        assert!(daemon.hear_end(token).pieces.is_empty());
    }
}

fn a_killed_process_costs_at_most_the_piece_in_work() {
    let directory = tempfile::tempdir().unwrap();
    data_directory(directory.path());
    let own = large();
    let options = || Options {
        threads: 1,
        checkpoint_after_ms: 0,
        ..Options::default()
    };
    let mut first = Daemon::spawn(directory.path());
    first.welcome(options());
    let files = own.files(&first);
    let input = json!({"witness": first.put(&own.witness).to_string()});
    let ready = first.synth(work(1), &files, input.clone()).unwrap();
    first.ask_prove(work(1), &ready, Vec::new());
    let FromWorker::Pieces { pieces: saved, .. } = first.hear() else {
        panic!("expected a piece")
    };
    first.kill();
    let mut second = Daemon::spawn(directory.path());
    second.welcome(options());
    let again = Work {
        attempt: 2,
        ..work(1)
    };
    let ready = second.synth(again, &files, input).unwrap();
    let ended = second.prove(again, &ready, saved);
    assert_eq!(ended.released.unwrap().0, ["H"]);
    assert!(ended.proof.is_some());
}

fn hear_progress(daemon: &mut Daemon, of: WireToken, least: u16) {
    loop {
        match protocol::read(&mut daemon.socket)
            .unwrap()
            .expect("the worker process is gone")
        {
            FromWorker::Progress { token, permille } if token == of && permille >= least => return,
            FromWorker::Progress { .. } | FromWorker::Rss { .. } | FromWorker::Key { .. } => {}
            other => panic!("expected progress, heard {other:?}"),
        }
    }
}

fn a_stop_for_a_lease_that_is_over_says_nothing() {
    let mut daemon = Daemon::new();
    let files = circom(&daemon, "multiplier");
    let input = json!({"witness": daemon.put(&fixture("multiplier", "witness.wtns")).to_string()});
    let over = daemon.ask_synth(work(1), &files, input, false);
    let ready = daemon.hear_synth(over).unwrap();
    daemon.say(&ToWorker::Stop {
        token: over,
        class: "cancelled".to_owned(),
    });
    daemon.say(&ToWorker::Stop {
        token: WireToken { boot: 9, grant: 9 },
        class: "cancelled".to_owned(),
    });
    assert!(
        daemon.prove(work(1), &ready, Vec::new()).proof.is_some(),
        "the next word is about the proof"
    );
}

fn a_synthesis_is_stopped() {
    let mut daemon = Daemon::new();
    for class in ["shutdown", "preempted", "cancelled"] {
        let token = endless(&mut daemon, work(1));
        daemon.say(&ToWorker::Stop {
            token,
            class: class.to_owned(),
        });
        assert_eq!(daemon.hear_synth(token).unwrap_err().class, class);
    }
}

fn a_calculator_without_end_is_stopped() {
    let mut daemon = Daemon::with(Options {
        wasm: (1 << 30, u64::MAX),
        ..Options::default()
    });
    let files = CircuitFiles {
        wasm: Some(daemon.put(include_bytes!("endless.wasm")).0),
        sym: None,
        ..circom(&daemon, "multiplier")
    };
    let input = json!({"input_blob": daemon.put(&fixture("multiplier", "input.json")).to_string()});
    for class in ["cancelled", "shutdown"] {
        let token = daemon.ask_synth(work(1), &files, input.clone(), false);
        hear_progress(&mut daemon, token, 200);
        let asked = Instant::now();
        daemon.say(&ToWorker::Stop {
            token,
            class: class.to_owned(),
        });
        assert_eq!(daemon.hear_synth(token).unwrap_err().class, class);
        // A second on a machine that does nothing else.
        assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    }
}

/// A synthesis that ends only when it is stopped; it runs when this returns.
fn endless(daemon: &mut Daemon, work: Work) -> WireToken {
    let token = trial(daemon, work, b"wait to be stopped");
    hear_progress(daemon, token, 0);
    token
}

fn trial(daemon: &mut Daemon, work: Work, request: &[u8]) -> WireToken {
    let token = daemon.token();
    daemon.say(&ToWorker::Synth {
        token,
        work,
        kind: "trial".to_owned(),
        circuit: None,
        request: request.to_vec(),
        ticket_bytes: 0,
        recheck: false,
    });
    token
}

fn a_dropped_witness_is_gone_and_every_drop_is_answered() {
    let mut daemon = Daemon::new();
    let files = circom(&daemon, "multiplier");
    let input = json!({"witness": daemon.put(&fixture("multiplier", "witness.wtns")).to_string()});
    let ready = daemon.synth(work(1), &files, input).unwrap();
    for _ in 0..2 {
        daemon.say(&ToWorker::Drop { work: work(1) });
        assert_eq!(daemon.hear(), FromWorker::Dropped { work: work(1) });
    }
    let ended = daemon.prove(work(1), &ready, Vec::new());
    assert_eq!(ended.failure.unwrap().code, "witness-gone");
    daemon.say(&ToWorker::Evict {
        circuit: files.circuit,
    });
    daemon.hear_key((files.digest(), 0));
}

fn a_drop_of_running_work_is_answered_when_its_memory_is_free() {
    let mut daemon = Daemon::new();
    let token = endless(&mut daemon, work(1));
    daemon.say(&ToWorker::Drop { work: work(1) });
    assert_eq!(daemon.hear_synth(token).unwrap_err().class, "cancelled");
    assert_eq!(daemon.hear(), FromWorker::Dropped { work: work(1) });
}

fn a_key_in_use_is_evicted_when_it_is_free() {
    let mut daemon = Daemon::new();
    let files = circom(&daemon, "multiplier");
    let input = json!({"witness": daemon.put(&fixture("multiplier", "witness.wtns")).to_string()});
    let ready = daemon.synth(work(1), &files, input).unwrap();
    daemon.say(&ToWorker::Evict {
        circuit: files.circuit,
    });
    assert!(
        daemon.prove(work(1), &ready, Vec::new()).proof.is_some(),
        "the witness has its key still"
    );
    daemon.hear_key((files.digest(), 0));
}
