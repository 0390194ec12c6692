//! A stored piece is replaced through the store itself, by a daemon that was never there.

use std::path::Path;

use proofkeep_store::clock::Clock;
use proofkeep_store::machine::{Command, Machine, Reply, Rules, SynthEnd};
use proofkeep_store::records::{AttemptRef, Checkpoint, Piece};
use proofkeep_store::{Limits, Options, Store, query};

/// Puts the point of one piece in place of another's of the same group, under a lease of a boot that then crashes;
/// answers which piece that was.
pub fn another_point(data: &Path, checkpoint: &Checkpoint) -> String {
    let store = Store::open(
        data,
        &Options {
            create: false,
            ..Options::default()
        },
    )
    .unwrap();
    let handle = store
        .start(Machine { rules: Rules::ALL }, Clock::start(), Limits::default())
        .unwrap();
    let run = |command: Command| handle.commit_blocking(command).unwrap().reply;
    let (job, partition) = (checkpoint.job, checkpoint.partition);
    let detail = store
        .read(|view| query::partition(view, job, partition, 1))
        .unwrap()
        .unwrap();
    let last = detail.attempts.last().unwrap().clone();

    run(Command::BootOpen {
        version: "forger".to_owned(),
        devices: vec![("cpu:0".to_owned(), 1)],
    });
    let Reply::Process(process) = run(Command::ProcessStart {
        device: "cpu:0".to_owned(),
    }) else {
        panic!()
    };
    let Reply::Granted { token, attempt } = run(Command::SynthStart {
        job,
        partition,
        process,
    }) else {
        panic!()
    };
    assert_eq!(
        AttemptRef {
            number: attempt - 1,
            ..last.of
        },
        last.of
    );
    let (witness, public) = (last.witness.unwrap(), last.public.unwrap());
    run(Command::SynthEnd(SynthEnd {
        token,
        synth_ms: 1,
        witness,
        public,
    }));
    let worker = store.read(query::workers).unwrap()[0].id;
    let Reply::Granted { token, .. } = run(Command::GpuStart {
        job,
        partition,
        attempt,
        worker,
    }) else {
        panic!()
    };

    let pieces = &checkpoint.pieces;
    let pair = pieces
        .iter()
        .flat_map(|one| pieces.iter().map(move |other| (one, other)));
    let mut pair =
        pair.filter(|(one, other)| one.bytes.len() == other.bytes.len() && one.bytes != other.bytes);
    let (one, other) = pair.next().expect("two durable pieces of one group");
    let forged = Piece {
        bytes: other.bytes.clone(),
        ..one.clone()
    };
    run(Command::Checkpoint {
        token,
        witness,
        key: checkpoint.key,
        pieces: vec![forged],
    });
    handle.stop();
    one.name.clone()
}
