#![allow(clippy::unwrap_used, clippy::expect_used)]

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::ids::{BootNumber, Digest, JobNumber, JournalNumber, Millis, ProcessId, Token, WorkerId};
use crate::records::{
    AttemptRef, Failure, FailureClass, JobState, OnFailure, Outcome, PartitionState, Piece, Priority, Stage,
    StopTarget, Tally,
};

fn job(number: u64, label: &str, deadline: Option<u64>) -> Job {
    Job {
        number: JobNumber(number),
        id: Uuid::from_u128(u128::from(number) << 64 | 7),
        kind: "circom".into(),
        circuit: Some(Digest([3; 32])),
        request: Digest([4; 32]),
        request_inline: true,
        idempotency_key: Some(format!("key-{label}")),
        actor: "local".into(),
        labels: vec![("name".into(), label.into())],
        priority: Priority::High,
        max_attempts: 3,
        on_failure: OnFailure::Stop,
        partitions: 4,
        ticket_bytes: number.rotate_left(7),
        deadline: deadline.map(Millis),
        created_at: Millis(number),
        generation: 1,
        state: JobState::Stopping(StopTarget::Expired),
        tally: Tally {
            proved: 1,
            failed: 1,
            cancelled: 0,
            leases: 2,
        },
        verifying: Some(Token {
            boot: BootNumber(2),
            grant: JournalNumber(number),
        }),
        journal: JournalNumber(number),
    }
}

fn attempt(number: u32) -> Attempt {
    Attempt {
        of: AttemptRef {
            job: JobNumber(9),
            partition: 3,
            number,
        },
        generation: 2,
        opened_in: BootNumber(4),
        closed_in: Some(BootNumber(5)),
        process: ProcessId {
            boot: BootNumber(4),
            spawn: 1,
        },
        device: "cpu:0".into(),
        worker: Some(WorkerId(1)),
        stage: Stage::Prove,
        outcome: Some(Outcome::Ended(Failure::new(
            FailureClass::Interrupted,
            "the process died",
        ))),
        started_at: Millis(10),
        ended_at: Some(Millis(20)),
        synth_ms: Some(5),
        gpu_started_at: Some(Millis(16)),
        gpu_ms: None,
        ticket_bytes: 1 << 30,
        process_peak_bytes: None,
        witness: Some(Digest([1; 32])),
        public: Some(Digest([2; 32])),
        reused: vec!["h".into()],
        saved_ms: 77,
    }
}

fn flips_are_found<R: Record + PartialEq>(record: &R) {
    let sealed = record.encode();
    assert!(R::decode(&sealed).as_ref() == Ok(record), "the record itself");
    for bit in 0..sealed.len() * 8 {
        let mut flipped = sealed.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(
            R::decode(&flipped).is_err(),
            "bit {bit} of {} was not missed",
            sealed.len() * 8
        );
    }
    for length in 0..sealed.len() {
        assert!(R::decode(&sealed[..length]).is_err(), "cut to {length} bytes");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_flipped_bit_of_a_record_is_found(
        number in any::<u64>(), label in ".{0,40}", deadline in any::<Option<u64>>(), bytes in any::<[u8; 32]>(),
    ) {
        flips_are_found(&job(number, &label, deadline));
        flips_are_found(&attempt(number as u32));
        let mut partition = Partition::new(JobNumber(number), 5);
        partition.state = PartitionState::Finishing;
        partition.avoid_device = Some(label.clone());
        flips_are_found(&partition);
        flips_are_found(&Checkpoint {
            job: JobNumber(number), partition: 1, witness: Digest(bytes), key: Digest([9; 32]),
            pieces: vec![Piece { name: "b2".into(), bytes: bytes.repeat(6), millis: 3, attempt: 1 }],
        });
    }

    #[test]
    fn every_flipped_bit_of_a_small_value_is_found(value in any::<u64>(), bytes in any::<[u8; 32]>()) {
        for sealed in [number(value), digest(Digest(bytes)), super::bytes(&bytes)] {
            for bit in 0..sealed.len() * 8 {
                let mut flipped = sealed.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                prop_assert!(read_number(&flipped).is_err());
                prop_assert!(read_digest(&flipped).is_err());
                prop_assert!(read_bytes(&flipped).is_err());
            }
        }
        prop_assert_eq!(read_number(&number(value)), Ok(value));
        prop_assert_eq!(read_digest(&digest(Digest(bytes))), Ok(Digest(bytes)));
        prop_assert_eq!(read_bytes(&super::bytes(&bytes)), Ok(bytes.to_vec()));
    }
}

#[test]
fn another_kind_is_named() {
    let damage = Queue::decode(&number(3)).unwrap_err();
    assert_eq!(
        damage,
        Damage::Kind {
            expected: RecordKind::Queue,
            found: "Number".into()
        }
    );
}

#[test]
fn a_newer_schema_is_refused() {
    let payload = migrations::wire::encode(&(true, false));
    let sealed = envelope::seal(RecordKind::Queue, migrations::LATEST + 1, &payload);
    let newest = migrations::LATEST;
    assert_eq!(
        Queue::decode(&sealed),
        Err(Damage::Schema {
            found: newest + 1,
            newest
        })
    );
}

#[test]
fn a_longer_payload_is_refused_even_with_a_right_checksum() {
    let payload = migrations::wire::encode(&(true, false, 1_u8));
    let sealed = envelope::seal(RecordKind::Queue, 1, &payload);
    assert!(matches!(Queue::decode(&sealed), Err(Damage::Payload(_))));
}

#[test]
fn the_largest_records_fit() {
    let mut job = job(u64::MAX, &"l".repeat(1020), Some(u64::MAX));
    job.idempotency_key = Some("k".repeat(128));
    job.kind = "k".repeat(64);
    job.actor = "a".repeat(64);
    assert!(job.encode().len() + 9 <= MAX_RECORD);
    let piece = Piece {
        name: "p".repeat(16),
        bytes: vec![7; 192],
        millis: u64::MAX,
        attempt: u32::MAX,
    };
    let checkpoint = Checkpoint {
        job: JobNumber(u64::MAX),
        partition: u32::MAX,
        witness: Digest([1; 32]),
        key: Digest([1; 32]),
        pieces: vec![piece; 16],
    };
    assert!(checkpoint.encode().len() + 13 <= MAX_RECORD);
    let replaced = crate::event::What::Retried {
        generation: u32::MAX,
        actor: "a".repeat(64),
        request: Digest([1; 32]),
        request_inline: false,
        replaced: (0..1024).collect(),
    };
    let event = Event {
        number: JournalNumber(u64::MAX),
        boot: BootNumber(u64::MAX),
        at: Millis(u64::MAX),
        job: Some(JobNumber(u64::MAX)),
        what: replaced,
    };
    assert!(event.encode().len() + 9 <= MAX_RECORD);
}
