//! What daemon and worker process read from each other: streams of frames.

use proofkeep_engine::protocol::{FrameError, FromWorker, ToWorker, read, write};

use super::{Outcome, Shape, Target, accepted, words};

/// Bytes that serde sets aside for a list on the word of its length, for a list in a list.
const LISTS: usize = 2 << 20;

const FRAMES: Target = Target {
    finish: |stream| repair(stream),
    bytes_per_byte: 8,
    slack: LISTS + (64 << 10),
    ..Target::new("", "", Shape::Bytes, |_| Ok(()))
};

pub(super) static ALL: [Target; 2] = [
    Target {
        name: "frames-to-worker",
        made: || streams(&words::to_worker()),
        parse: |stream| listen(stream, |from| read::<ToWorker>(from)),
        check: |stream| repeat(stream, |from| read::<ToWorker>(from)),
        ..FRAMES
    },
    Target {
        name: "frames-from-worker",
        made: || streams(&words::from_worker()),
        parse: |stream| listen(stream, |from| read::<FromWorker>(from)),
        check: |stream| repeat(stream, |from| read::<FromWorker>(from)),
        ..FRAMES
    },
];

fn code(error: &FrameError) -> &'static str {
    match error {
        FrameError::Io(_) => "io",
        FrameError::Truncated => "truncated",
        FrameError::Length { .. } => "length",
        FrameError::Magic => "magic",
        FrameError::Version { .. } => "version",
        FrameError::Checksum => "checksum",
        FrameError::Word => "word",
    }
}

/// Each word alone, and all of them one after the other.
fn streams<W: serde::Serialize>(words: &[W]) -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = words.iter().map(framed).collect();
    seeds.push(seeds.concat());
    seeds
}

fn framed<W: serde::Serialize>(word: &W) -> Vec<u8> {
    let mut frame = Vec::new();
    accepted(write(&mut frame, word));
    frame
}

/// Reads words until the stream ends.
fn listen<W>(mut stream: &[u8], next: impl Fn(&mut &[u8]) -> Result<Option<W>, FrameError>) -> Outcome {
    loop {
        match next(&mut stream) {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(()),
            Err(error) => return Err((code(&error), error.to_string())),
        }
    }
}

/// A word has one spelling: whatever was read is written as the same bytes.
fn repeat<W: serde::Serialize>(stream: &[u8], next: impl Fn(&mut &[u8]) -> Result<Option<W>, FrameError>) {
    let mut rest = stream;
    let mut again = Vec::new();
    while let Some(word) = accepted(next(&mut rest)) {
        accepted(write(&mut again, &word));
    }
    assert!(again == stream, "written again, the stream differs");
}

/// Makes the length of the last frame and each frame's checksum right, so that the words are read.
fn repair(stream: &mut [u8]) {
    let mut rest = stream;
    while let Some((length, after)) = rest.split_first_chunk_mut::<4>() {
        if after.len() < 8 {
            return;
        }
        let mut said = u32::from_le_bytes(*length) as usize;
        if !(8..=after.len()).contains(&said) {
            said = after.len();
            *length = (said as u32).to_le_bytes();
        }
        let (frame, next) = after.split_at_mut(said);
        if let Some((body, checksum)) = frame.split_last_chunk_mut::<4>() {
            *checksum = crc32c::crc32c(body).to_le_bytes();
        }
        rest = next;
    }
}
