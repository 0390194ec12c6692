//! What the store reads back from its disk: records in their envelopes.

use proofkeep_store::codec::envelope::{self, OVERHEAD};
use proofkeep_store::codec::{Damage, RecordKind, bytes, digest, number, reencode};
use proofkeep_store::ids::Digest;

use super::{Shape, Target, accepted, outcome};

/// A sample of every shape that was ever written, as `name hex`. They are frozen, so they make good seeds.
const GOLDEN: &str = include_str!("../../../../migrations/src/m0001_initial/golden.txt");

/// Bytes that serde sets aside for a list on the word of its length, for a list in a list.
const LISTS: usize = 2 << 20;

pub(super) static ALL: [Target; 1] = [Target {
    made: seeds,
    finish: |value| repair(value),
    bytes_per_byte: 8,
    slack: LISTS + (64 << 10),
    check,
    ..Target::new("record", "", Shape::Bytes, |value| outcome(reencode(value), code))
}];

fn code(damage: &Damage) -> &'static str {
    match damage {
        Damage::TooShort { .. } => "too-short",
        Damage::Magic => "magic",
        Damage::Length { .. } => "length",
        Damage::Checksum { .. } => "checksum",
        Damage::Kind { .. } => "kind",
        Damage::Schema { .. } => "schema",
        Damage::Gone => "gone",
        Damage::Payload(_) => "payload",
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![number(7), digest(Digest([3; 32])), bytes(b"{\"inputs\":[]}")];
    for line in GOLDEN.lines() {
        let (name, payload) = accepted(line.split_once(' ').ok_or("no hex"));
        if let Some(kind) = kind(name) {
            seeds.push(envelope::seal(kind, 1, &accepted(hex::decode(payload))));
        }
    }
    assert!(seeds.len() > 50, "the golden bytes are named otherwise now");
    seeds
}

/// The kind of record that a sample's name starts with; none for a part of a record.
fn kind(name: &str) -> Option<RecordKind> {
    let first = name.split('.').next()?;
    let known = |kind: &RecordKind| match kind {
        RecordKind::StoredProof => first == "proof",
        kind => format!("{kind:?}").eq_ignore_ascii_case(first),
    };
    RecordKind::ALL.into_iter().find(known)
}

/// Makes length and checksum right, so that what is inside is read.
fn repair(value: &mut [u8]) {
    if value.len() < OVERHEAD {
        return;
    }
    let payload = (value.len() - OVERHEAD) as u32;
    value[5..9].copy_from_slice(&payload.to_le_bytes());
    if let Some((body, checksum)) = value.split_last_chunk_mut::<4>() {
        *checksum = crc32c::crc32c(body).to_le_bytes();
    }
}

fn check(value: &[u8]) {
    let again = accepted(reencode(value));
    assert!(accepted(reencode(&again)) == again, "written again, it differs");
    if value.is_empty() {
        return;
    }
    assert_eq!(envelope::kind_of(value), envelope::kind_of(&again));
    let kind = accepted(envelope::kind_of(value));
    let (schema, payload) = accepted(envelope::open(kind, value));
    assert!(
        envelope::seal(kind, schema, payload) == value,
        "two envelopes of one payload"
    );
    for other in RecordKind::ALL.into_iter().filter(|other| *other != kind) {
        assert!(
            envelope::open(other, value).is_err(),
            "a {kind:?} passes for a {other:?}"
        );
    }
}
