//! What `import` and `restore` read: everything that a store keeps as one stream of frames.

use proofkeep_store::codec::number;
use proofkeep_store::dump::{DumpError, examine, repeat};
use sha2::{Digest as _, Sha256};

use super::{Shape, Target, accepted, outcome};

const MAGIC: &[u8] = b"proofkeep dump\n";
/// A frame's kind and length, and its checksum.
const AROUND: usize = 9;
/// The largest payload, which is set aside on the word of its length.
const PAYLOAD: usize = 1 << 20;

pub(super) static ALL: [Target; 1] = [Target {
    made: seeds,
    finish: repair,
    bytes_per_byte: 2,
    slack: PAYLOAD + (64 << 10),
    check,
    ..Target::new("dump", "", Shape::Bytes, |stream| {
        outcome(examine(stream, "dump"), code)
    })
}];

fn code(error: &DumpError) -> &'static str {
    match error {
        DumpError::NotOne { .. } => "not-one",
        DumpError::Newer { .. } => "newer",
        DumpError::Damaged { .. } => "damaged",
        DumpError::Io { .. } => "io",
    }
}

/// Dumps as a backup holds them and as an export is one: nothing in it, and one of everything.
fn seeds() -> Vec<Vec<u8>> {
    let header = |objects: &str| {
        let store = "store 00000000-0000-0000-0000-000000000007";
        frame(
            b'H',
            format!("version 1\nschema 1\n{store}\nbegan 3\nat 5\nobjects {objects}\n").as_bytes(),
        )
    };
    let put = |key: &[u8], value: &[u8]| {
        let length = (key.len() as u16).to_le_bytes();
        frame(b'P', &[&length, key, value].concat())
    };
    let object = |bytes: &[u8]| {
        let digest: [u8; 32] = Sha256::digest(bytes).into();
        frame(b'O', &[&digest[..], &(bytes.len() as u64).to_le_bytes()].concat())
    };
    let records = [
        put(&[1, 1], &number(9)),
        put(&[20, 0, 0, 0, 0, 0, 0, 0, 1], b""),
        frame(b'D', &[20, 1]),
    ]
    .concat();
    let missing = frame(b'M', &[7; 32]);
    let end = frame(b'E', b"journal 9\n");
    let beside = [
        header("beside"),
        records.clone(),
        object(b"somewhere else"),
        missing.clone(),
        end.clone(),
    ];
    let inline = [
        header("inline"),
        records,
        object(b"here"),
        frame(b'B', b"he"),
        frame(b'B', b"re"),
        missing,
        end.clone(),
    ];
    [vec![header("beside"), end], beside.to_vec(), inline.to_vec()]
        .map(|frames| {
            let mut dump = [MAGIC, &frames.concat()].concat();
            repair(&mut dump);
            dump
        })
        .to_vec()
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind];
    frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&crc32c::crc32c(&frame).to_le_bytes());
    frame
}

/// Makes each checksum right, and the counts and the digest at the end, so that what the frames say is read.
fn repair(stream: &mut Vec<u8>) {
    if stream.len() < MAGIC.len() {
        return;
    }
    stream[..MAGIC.len()].copy_from_slice(MAGIC);
    let (mut at, mut counts) = (MAGIC.len(), [0_u64; 5]);
    while at + AROUND <= stream.len() {
        let kind = stream[at];
        let room = stream.len() - at - AROUND;
        let mut length =
            u32::from_le_bytes([stream[at + 1], stream[at + 2], stream[at + 3], stream[at + 4]]) as usize;
        if length > room {
            length = room;
        }
        if kind == b'E' {
            let text = String::from_utf8_lossy(&stream[at + 5..at + 5 + length]).into_owned();
            let journal = text.lines().next().unwrap_or_default().to_owned();
            let [records, deletions, objects, bytes, missing] = counts;
            let digest = hex::encode(Sha256::digest(&stream[..at]));
            let end = format!(
                "{journal}\nrecords {records}\ndeletions {deletions}\nobjects {objects}\nobject_bytes {bytes}\nmissing {missing}\nsha256 {digest}\n"
            );
            stream.truncate(at);
            stream.extend_from_slice(&frame(b'E', end.as_bytes()));
            return;
        }
        let payload = stream[at + 5..at + 5 + length].to_vec();
        match kind {
            b'P' => counts[0] += 1,
            b'D' => counts[1] += 1,
            b'O' => {
                counts[2] += 1;
                let bytes = payload.get(32..40).and_then(|bytes| bytes.try_into().ok());
                counts[3] = counts[3].saturating_add(bytes.map_or(0, u64::from_le_bytes));
            }
            b'M' => counts[4] += 1,
            _ => {}
        }
        let again = frame(kind, &payload);
        stream[at..at + again.len()].copy_from_slice(&again);
        at += again.len();
    }
}

/// What a reader takes is what a writer makes of it, and its own account of it is right.
fn check(stream: &[u8]) {
    let told = accepted(examine(stream, "dump"));
    assert_eq!(told.bytes, stream.len() as u64);
    assert_eq!(told.sha256.0, <[u8; 32]>::from(Sha256::digest(stream)));
    let again = accepted(repeat(stream));
    let mut repeated = accepted(examine(again.as_slice(), "dump"));
    // Numbers and ids have more than one spelling; what they say is the same.
    (repeated.bytes, repeated.sha256) = (told.bytes, told.sha256);
    assert_eq!(repeated, told, "written again, it says something else");
    assert_eq!(
        accepted(repeat(&again)),
        again,
        "written a third time, it differs"
    );
}
