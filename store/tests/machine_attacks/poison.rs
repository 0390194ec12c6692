//! Partitions that kill their process in any pattern are parked, after a number of deaths that is known before.

use crate::common::*;
use proofkeep_store::ids::{Digest, JobNumber};
use proofkeep_store::machine::{Command, MOST_DEATHS, SynthEnd};
use proofkeep_store::records::{FailureClass, PartitionState, Piece};

/// Where the process of an attempt dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    Synth,
    Waiting,
    Prove,
    /// After so many pieces were saved.
    Pieces(usize),
    Finish,
}

const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

/// One attempt that ends in a death.
fn die(world: &mut World, job: JobNumber, death: Death) {
    let token = world.synth(job, 0);
    if death != Death::Synth {
        world.run(synth_end(token));
    }
    if !matches!(death, Death::Synth | Death::Waiting) {
        let token = world.gpu(job, 0, 0);
        if let Death::Pieces(count) = death {
            world.run(checkpoint(token, &NAMES[..count]));
        }
        if death == Death::Finish {
            world.run(gpu_end(token));
        }
    }
    world.crash("cpu:0");
}

/// Deaths until it is parked.
fn deaths(mut next: impl FnMut(u32) -> Death) -> u32 {
    let mut world = world();
    let job = world.new_job(1);
    for death in 0..MOST_DEATHS {
        die(&mut world, job, next(death));
        let partition = world.partition(job, 0);
        if partition.state == PartitionState::Failed {
            assert_eq!(partition.failure.unwrap().class, FailureClass::Poison);
            return death + 1;
        }
    }
    panic!("it killed {MOST_DEATHS} processes and is not parked");
}

/// Found by thinking: progress in one stage cleared the count of the other, so that this went on for ever.
#[test]
fn deaths_that_alternate_between_stages_park_too() {
    use Death::{Finish, Pieces, Prove, Synth, Waiting};
    let patterns: [(&[Death], u32); 9] = [
        (&[Synth], 4),
        (&[Waiting], 5),
        (&[Finish], 5),
        (&[Synth, Prove], 5),
        (&[Prove, Synth], 5),
        (&[Prove, Finish], 5),
        (&[Synth, Prove, Finish], 6),
        (&[Finish, Prove, Synth], 5),
        (&[Pieces(1), Synth, Finish, Waiting], 6),
    ];
    for (pattern, limit) in patterns {
        let index = |death: u32| death as usize % pattern.len();
        let found = deaths(|death| pattern[index(death)]);
        assert!(
            found <= limit,
            "{pattern:?}: {found} deaths, at most {limit} were to be"
        );
    }
}

#[test]
fn deaths_in_any_pattern_end() {
    let mut most = 0;
    for seed in 0..200 {
        let mut drawn: u64 = seed;
        most = most.max(deaths(|_| {
            drawn = drawn
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let drawn = (drawn >> 33) as usize;
            match drawn % 5 {
                0 => Death::Synth,
                1 => Death::Waiting,
                2 => Death::Prove,
                3 => Death::Pieces(1 + drawn / 5 % NAMES.len()),
                _ => Death::Finish,
            }
        }));
    }
    // The worst there is: as little progress as there can be, after every third death.
    let worst = deaths(|death| match (death / 3, death % 3) {
        (1, 0) => Death::Waiting,
        (pieces @ 2..14, 0) => Death::Pieces(pieces as usize - 1),
        (14, 0) => Death::Finish,
        _ => Death::Synth,
    });
    assert!(most < worst && worst == MOST_DEATHS, "{most} {worst}");
}

#[test]
fn who_comes_further_each_time_is_never_parked() {
    let mut world = world();
    let job = world.new_job(1);
    die(&mut world, job, Death::Synth);
    die(&mut world, job, Death::Waiting);
    for count in 1..=NAMES.len() {
        for _ in 0..2 {
            die(&mut world, job, Death::Prove);
        }
        die(&mut world, job, Death::Pieces(count));
    }
    world.prove(job, 0);
    assert!(world.partition(job, 0).poison.is_none());
}

/// A witness that changes throws the pieces of the last one away; to make them again is no progress.
#[test]
fn new_pieces_of_a_witness_that_changes_are_no_progress() {
    let mut world = world();
    let job = world.new_job(1);
    for death in 0..6_u8 {
        let token = world.synth(job, 0);
        let witness = Digest::of(&[death]);
        world.run(Command::SynthEnd(SynthEnd {
            token,
            synth_ms: 1,
            witness,
            public: Digest::of(b"public"),
        }));
        let token = world.gpu(job, 0, 0);
        let pieces = NAMES[..3].iter().map(|name| Piece {
            bytes: vec![death; 48],
            ..piece(name)
        });
        world.run(Command::Checkpoint {
            token,
            witness,
            key: Digest::of(b"key"),
            pieces: pieces.collect(),
        });
        world.crash("cpu:0");
        if world.state(job, 0) == PartitionState::Failed {
            return;
        }
    }
    panic!("it is never parked");
}

/// Whose witness waits beside somebody at work is not suspected when the process dies.
#[test]
fn a_witness_that_waits_is_blamed_only_where_nothing_is_at_work() {
    let mut world = world();
    let job = world.new_job(2);
    for _ in 0..2 {
        world.synthesized(job, 0);
        world.synth(job, 1);
        world.crash("cpu:0");
    }
    assert!(world.partition(job, 0).poison.is_none() && !world.partition(job, 0).alone);
    assert!(world.partition(job, 1).alone);
    world.synthesized(job, 0);
    world.crash("cpu:0");
    assert_eq!(world.partition(job, 0).poison.unwrap().deaths, 1);
}
