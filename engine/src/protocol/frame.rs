//! How a word travels: a length, an envelope, the word.
//!
//! ```text
//! offset  bytes
//!      0  4      length of what follows, little-endian, at most 16 MiB
//!      4  2      magic, B5 6C
//!      6  2      version of the frame, little-endian
//!      8  length − 8   the word, bincode (fixed-width integers, little-endian)
//!      …  4      CRC-32C over everything from the magic on, little-endian
//! ```
//! The envelope is that of the records: whoever wrote half a frame, or into the wrong pipe, is found out. No error
//! shows any byte of a frame, since frames may hold secrets.

use std::io::{self, Read, Write};

use bincode::Options as _;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The most bytes that may follow the length.
pub const MAX_FRAME: usize = 16 << 20;

const MAGIC: [u8; 2] = [0xb5, 0x6c];
const VERSION: u16 = 1;
const HEADER: usize = 4;
const CHECKSUM: usize = 4;

/// A frame that can't be read or written. The conversation can't go on after it.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The socket failed.
    #[error("the socket between daemon and worker process failed: {0}")]
    Io(#[from] io::Error),
    /// The other side ended in the middle of a frame.
    #[error("the other side ended in the middle of a frame")]
    Truncated,
    /// A length that no frame has.
    #[error("a frame of {length} bytes, expected {} to {MAX_FRAME}", HEADER + CHECKSUM)]
    Length {
        /// As announced, or as it would have to be.
        length: usize,
    },
    /// It doesn't start as a frame does.
    #[error("this is no frame of proofkeep: its first bytes are others")]
    Magic,
    /// A frame of another version.
    #[error("a frame of version {found}, this build speaks version {VERSION}")]
    Version {
        /// The frame's.
        found: u16,
    },
    /// Some bit is not what was sent.
    #[error("a frame with a wrong checksum: it was damaged on its way")]
    Checksum,
    /// The word in it is none, or is followed by other bytes.
    #[error("the word in a frame can't be read: it comes from another build")]
    Word,
}

fn options() -> impl bincode::Options {
    bincode::DefaultOptions::new()
        .with_fixint_encoding()
        .reject_trailing_bytes()
        .with_limit(MAX_FRAME as u64)
}

/// Reads one word; `None` when the other side closed the socket between two frames.
///
/// # Errors
/// When the socket fails or what comes is no frame with a `T` in it.
pub fn read<T: DeserializeOwned>(from: &mut impl Read) -> Result<Option<T>, FrameError> {
    let mut length = [0; 4];
    if !fill_or_end(from, &mut length)? {
        return Ok(None);
    }
    let length = u32::from_le_bytes(length) as usize;
    if !(HEADER + CHECKSUM..=MAX_FRAME).contains(&length) {
        return Err(FrameError::Length { length });
    }
    // Grows with what really comes, so that a wrong length allocates nothing.
    let mut frame = Vec::new();
    if from.take(length as u64).read_to_end(&mut frame)? < length {
        return Err(FrameError::Truncated);
    }
    decode(&frame).map(Some)
}

/// Writes one word and flushes it.
///
/// # Errors
/// When the socket fails, or the word is too long for a frame; nothing is sent then.
pub fn write<T: Serialize>(to: &mut impl Write, word: &T) -> Result<(), FrameError> {
    let frame = encode(word)?;
    to.write_all(&frame)?;
    to.flush()?;
    Ok(())
}

fn encode<T: Serialize>(word: &T) -> Result<Vec<u8>, FrameError> {
    let size = options()
        .serialized_size(word)
        .map_err(|_| FrameError::Length { length: usize::MAX })?;
    let length = usize::try_from(size)
        .unwrap_or(usize::MAX)
        .saturating_add(HEADER + CHECKSUM);
    if length > MAX_FRAME {
        return Err(FrameError::Length { length });
    }
    let mut frame = Vec::with_capacity(4 + length);
    frame.extend_from_slice(&(length as u32).to_le_bytes());
    frame.extend_from_slice(&MAGIC);
    frame.extend_from_slice(&VERSION.to_le_bytes());
    options()
        .serialize_into(&mut frame, word)
        .map_err(|_| FrameError::Length { length })?;
    let checksum = crc32c::crc32c(&frame[4..]);
    frame.extend_from_slice(&checksum.to_le_bytes());
    Ok(frame)
}

fn decode<T: DeserializeOwned>(frame: &[u8]) -> Result<T, FrameError> {
    let (body, checksum) = frame.split_last_chunk().ok_or(FrameError::Truncated)?;
    let (magic, rest) = body.split_first_chunk::<2>().ok_or(FrameError::Truncated)?;
    let (version, word) = rest.split_first_chunk().ok_or(FrameError::Truncated)?;
    if *magic != MAGIC {
        return Err(FrameError::Magic);
    }
    if crc32c::crc32c(body) != u32::from_le_bytes(*checksum) {
        return Err(FrameError::Checksum);
    }
    let found = u16::from_le_bytes(*version);
    if found != VERSION {
        return Err(FrameError::Version { found });
    }
    options().deserialize(word).map_err(|_| FrameError::Word)
}

/// Fills `buffer`; `false` if the stream ends before its first byte.
fn fill_or_end(from: &mut impl Read, buffer: &mut [u8]) -> Result<bool, FrameError> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => return Err(FrameError::Truncated),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::protocol::{FromWorker, ToWorker, WireToken};

    fn word() -> FromWorker {
        FromWorker::Progress {
            token: WireToken { boot: 3, grant: 77 },
            permille: 500,
        }
    }

    fn framed() -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, &word()).unwrap();
        bytes
    }

    #[test]
    fn words_come_out_as_they_went_in() {
        let mut bytes = framed();
        write(
            &mut bytes,
            &FromWorker::Rss {
                bytes: 1,
                peak_bytes: 2,
            },
        )
        .unwrap();
        let mut from = &bytes[..];
        assert_eq!(read::<FromWorker>(&mut from).unwrap(), Some(word()));
        assert_eq!(
            read::<FromWorker>(&mut from).unwrap(),
            Some(FromWorker::Rss {
                bytes: 1,
                peak_bytes: 2
            })
        );
        assert_eq!(
            read::<FromWorker>(&mut from).unwrap(),
            None,
            "closed between frames"
        );
    }

    #[test]
    fn every_cut_is_noticed() {
        let bytes = framed();
        for end in 1..bytes.len() {
            let error = read::<FromWorker>(&mut &bytes[..end]).unwrap_err();
            assert!(matches!(error, FrameError::Truncated), "{end}: {error}");
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = framed();
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(read::<FromWorker>(&mut &bytes[..]).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn an_absurd_length_is_refused_before_anything_is_read() {
        for length in [0u32, 7, MAX_FRAME as u32 + 1, u32::MAX] {
            let error = read::<FromWorker>(&mut &length.to_le_bytes()[..]).unwrap_err();
            assert!(matches!(error, FrameError::Length { .. }), "{length}: {error}");
        }
    }

    #[test]
    fn a_word_that_is_too_long_is_not_sent() {
        let long = FromWorker::Proof {
            token: WireToken { boot: 1, grant: 1 },
            bytes: vec![0; MAX_FRAME],
            peak_bytes: None,
        };
        let mut out = Vec::new();
        assert!(matches!(write(&mut out, &long), Err(FrameError::Length { .. })));
        assert!(out.is_empty());
    }

    #[test]
    fn another_word_and_trailing_bytes_are_refused() {
        let mut out = Vec::new();
        write(&mut out, &(word(), 1u8)).unwrap();
        assert!(matches!(read::<FromWorker>(&mut &out[..]), Err(FrameError::Word)));
        let mut out = Vec::new();
        write(&mut out, &ToWorker::Quit).unwrap();
        out[6] = 9;
        let end = out.len() - 4;
        let checksum = crc32c::crc32c(&out[4..end]);
        out[end..].copy_from_slice(&checksum.to_le_bytes());
        assert!(matches!(
            read::<ToWorker>(&mut &out[..]),
            Err(FrameError::Version { found: 9 })
        ));
    }
}
