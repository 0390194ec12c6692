#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;

fn sample() -> Vec<u8> {
    let header = Header {
        schema: 1,
        store: Uuid::from_u128(7),
        began: JournalNumber(3),
        at: Millis(5),
        inline: true,
    };
    let mut writer = Writer::begin(Vec::new(), &header).unwrap();
    writer.put(b"key", b"value").unwrap();
    writer.put(b"index", b"").unwrap();
    writer.delete(b"key").unwrap();
    writer.object(Digest::of(b"object"), 6).unwrap();
    writer.piece(b"object").unwrap();
    writer.missing(Digest::of(b"lost")).unwrap();
    let (bytes, counts, length, sha256) = writer.end(JournalNumber(9)).unwrap();
    assert_eq!((counts.records, counts.deletions, counts.objects), (2, 1, 1));
    assert_eq!((counts.object_bytes, counts.missing), (6, 1));
    assert_eq!((length, sha256), (bytes.len() as u64, Digest::of(&bytes)));
    bytes
}

fn read(bytes: &[u8]) -> Result<Vec<Item>, DumpError> {
    let mut reader = Reader::begin(bytes, "sample".to_owned())?;
    let mut items = Vec::new();
    loop {
        let item = reader.next()?;
        let end = matches!(item, Item::End(_));
        items.push(item);
        if end {
            assert_eq!(reader.read_so_far(), (bytes.len() as u64, Digest::of(bytes)));
            return Ok(items);
        }
    }
}

#[test]
fn a_dump_reads_back() {
    let expected = [
        Item::Put(b"key".to_vec(), b"value".to_vec()),
        Item::Put(b"index".to_vec(), Vec::new()),
        Item::Delete(b"key".to_vec()),
        Item::Object {
            digest: Digest::of(b"object"),
            length: 6,
        },
        Item::Bytes(b"object".to_vec()),
        Item::Missing(Digest::of(b"lost")),
        Item::End(JournalNumber(9)),
    ];
    assert_eq!(read(&sample()).unwrap(), expected);
}

#[test]
fn every_flipped_bit_every_cut_and_every_addition_is_found() {
    let bytes = sample();
    for byte in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[byte] ^= 1 << bit;
            assert!(read(&flipped).is_err(), "bit {bit} of byte {byte}");
        }
        assert!(read(&bytes[..byte]).is_err(), "cut at {byte}");
    }
    let longer = [bytes.as_slice(), b"\n"].concat();
    assert!(read(&longer).unwrap_err().to_string().contains("follows its end"));
}

#[test]
fn frames_that_are_left_out_or_come_twice_are_found() {
    let bytes = sample();
    let mut frames = Vec::new();
    let mut at = MAGIC.len();
    while at < bytes.len() {
        let length: [u8; 4] = bytes[at + 1..at + 5].try_into().unwrap();
        let end = at + 9 + u32::from_le_bytes(length) as usize;
        frames.push(at..end);
        at = end;
    }
    assert_eq!(frames.len(), 8);
    for frame in frames {
        let without = [&bytes[..frame.start], &bytes[frame.end..]].concat();
        assert!(read(&without).is_err(), "without {frame:?}");
        let twice = [&bytes[..frame.end], &bytes[frame.start..]].concat();
        assert!(read(&twice).is_err(), "twice {frame:?}");
    }
}

#[test]
fn a_frame_that_says_it_is_huge_is_not_believed() {
    let mut bytes = sample();
    bytes[MAGIC.len() + 1..MAGIC.len() + 5].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(read(&bytes).unwrap_err().to_string().contains("at most"));
    assert!(matches!(read(b"something else"), Err(DumpError::NotOne { .. })));
}

#[test]
fn a_newer_dump_is_refused_by_its_version() {
    for (word, what) in [("version 1", "version"), ("schema 1", "schema")] {
        let text = "version 1\nschema 1\nstore 00000000-0000-0000-0000-000000000007\nbegan 3\nat 5\nobjects inline\n";
        let text = text.replace(word, &format!("{what} 999"));
        let mut frame = vec![b'H'];
        frame.extend_from_slice(&(text.len() as u32).to_le_bytes());
        frame.extend_from_slice(text.as_bytes());
        let checksum = crc32c::crc32c(&frame);
        let bytes = [MAGIC.as_slice(), &frame, &checksum.to_le_bytes()].concat();
        assert!(
            matches!(read(&bytes), Err(DumpError::Newer { found: 999, .. })),
            "{what}"
        );
    }
}
