//! Writing a dump.

use std::io::{self, Write};

use sha2::{Digest as _, Sha256};

use super::{Counts, Header, Kind, Lines, MAGIC, VERSION};
use crate::ids::{Digest, JournalNumber};

/// A dump that is being written.
pub(crate) struct Writer<W> {
    out: W,
    hasher: Sha256,
    bytes: u64,
    counts: Counts,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    pub fn begin(out: W, header: &Header) -> io::Result<Self> {
        let mut writer = Self {
            out,
            hasher: Sha256::new(),
            bytes: 0,
            counts: Counts::default(),
        };
        writer.write(MAGIC)?;
        let mut lines = Lines::new();
        lines.add("version", VERSION);
        lines.add("schema", header.schema);
        lines.add("store", header.store);
        lines.add("began", header.began);
        lines.add("at", header.at);
        lines.add("objects", if header.inline { "inline" } else { "beside" });
        writer.frame(Kind::Header, &[lines.text().as_bytes()])?;
        Ok(writer)
    }

    pub fn put(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.counts.records += 1;
        let length = u16::try_from(key.len()).map_err(io::Error::other)?;
        self.frame(Kind::Put, &[&length.to_le_bytes(), key, value])
    }

    pub fn delete(&mut self, key: &[u8]) -> io::Result<()> {
        self.counts.deletions += 1;
        self.frame(Kind::Delete, &[key])
    }

    /// Names an object. With `objects inline` its bytes follow.
    pub fn object(&mut self, digest: Digest, length: u64) -> io::Result<()> {
        self.counts.objects += 1;
        self.counts.object_bytes = self.counts.object_bytes.saturating_add(length);
        self.frame(Kind::Object, &[&digest.0, &length.to_le_bytes()])
    }

    pub fn piece(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.frame(Kind::Bytes, &[bytes])
    }

    pub fn missing(&mut self, digest: Digest) -> io::Result<()> {
        self.counts.missing += 1;
        self.frame(Kind::Missing, &[&digest.0])
    }

    /// Writes the end. Answers the counts, the bytes and the digest of all of it.
    pub fn end(mut self, journal: JournalNumber) -> io::Result<(W, Counts, u64, Digest)> {
        let before = Digest(self.hasher.clone().finalize().into());
        let mut lines = Lines::new();
        lines.add("journal", journal);
        self.counts.write(&mut lines);
        lines.add("sha256", before.hex());
        self.frame(Kind::End, &[lines.text().as_bytes()])?;
        self.out.flush()?;
        Ok((
            self.out,
            self.counts,
            self.bytes,
            Digest(self.hasher.finalize().into()),
        ))
    }

    fn frame(&mut self, kind: Kind, parts: &[&[u8]]) -> io::Result<()> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if length > super::MAX_PAYLOAD {
            return Err(io::Error::other(format!(
                "a frame of {length} bytes is too large"
            )));
        }
        let mut frame = Vec::with_capacity(length + 9);
        frame.push(kind as u8);
        // Checked above.
        frame.extend_from_slice(&(length as u32).to_le_bytes());
        parts.iter().for_each(|part| frame.extend_from_slice(part));
        let checksum = crc32c::crc32c(&frame);
        frame.extend_from_slice(&checksum.to_le_bytes());
        self.write(&frame)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}
