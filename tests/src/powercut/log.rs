//! The log of `crash/shim/record.c`, read into changes.

use std::io;
use std::ops::Range;
use std::path::Path;

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Inode number of the directory.
    pub dir: u64,
    /// Path relative to the recorded directory, at the time.
    pub path: String,
}

impl Place {
    /// The last component.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// What one record says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Change {
    /// A process started; the recorded directory's inode.
    Start { root: u64 },
    /// A file was made, under a name or (`O_TMPFILE`) without.
    Create { inode: u64, at: Option<Place> },
    /// Bytes were written; `data` is a range of the log.
    Write {
        inode: u64,
        offset: u64,
        data: Range<usize>,
    },
    /// The size was set.
    Truncate { inode: u64, size: u64 },
    /// The size was raised to this, if it was below.
    Extend { inode: u64, size: u64 },
    /// A file or directory moved.
    Rename { inode: u64, from: Place, to: Place },
    /// A file got another name.
    Link { inode: u64, to: Place },
    /// A name was removed.
    Unlink { at: Place },
    /// A directory was made.
    Mkdir { inode: u64, at: Place },
    /// `fsync` or `fdatasync` was called.
    SyncBegin { inode: u64, number: i64 },
    /// It succeeded: what was there when it was called is durable.
    SyncEnd { inode: u64, number: i64 },
    /// `sync_file_range`, which promises nothing.
    SyncRange,
    /// `sync` or `syncfs` was called.
    AllBegin { number: i64 },
    /// It returned.
    AllEnd { number: i64 },
    /// Somebody was told something.
    Ack { data: Range<usize> },
    /// A change that images can't be made of.
    Unknown { what: String },
}

/// A change with the process that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The process.
    pub pid: u32,
    /// What it did.
    pub change: Change,
}

/// Reads a log's bytes. A record that is cut off at the very end is left out: its process was
/// killed while writing it.
pub(super) fn parse(log: &[u8]) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut at = 0;
    while let Some(head) = log.get(at..at + 4) {
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let start = at + 4;
        let Some(record) = log.get(start..start + length) else {
            break;
        };
        entries.push(entry(record, start).ok_or_else(|| damaged(at))?);
        at = start + length;
    }
    Ok(entries)
}

fn damaged(at: usize) -> io::Error {
    io::Error::other(format!("the recording is damaged at byte {at}"))
}

/// Appends an acknowledgement to a log, in order with the changes.
pub(super) fn append_ack(log: &Path, data: &[u8]) -> io::Result<()> {
    let file = std::fs::OpenOptions::new().append(true).create(true).open(log)?;
    file.lock()?;
    let mut record = vec![b'A', 0, 0, 0];
    record.extend(std::process::id().to_le_bytes());
    record.extend([0; 48]);
    record.extend(u32::try_from(data.len()).map_err(io::Error::other)?.to_le_bytes());
    record.extend(data);
    let mut whole = u32::try_from(record.len())
        .map_err(io::Error::other)?
        .to_le_bytes()
        .to_vec();
    whole.extend(record);
    io::Write::write_all(&mut &file, &whole)
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self, n: u32) -> Option<String> {
        Some(String::from_utf8_lossy(self.take(n as usize)?).into_owned())
    }
}

fn entry(record: &[u8], start: usize) -> Option<Entry> {
    let mut fields = Fields(record);
    let op = *fields.take(4)?.first()?;
    let pid = fields.u32()?;
    let (inode, dir, dir2) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let (a, _b) = (fields.u64()?, fields.u64()?);
    let (name, name2, size) = (fields.u32()?, fields.u32()?, fields.u32()?);
    let (path, path2) = (fields.text(name)?, fields.text(name2)?);
    if fields.0.len() != size as usize {
        return None;
    }
    let end = start + record.len();
    let data = end - size as usize..end;
    let at = Place { dir, path };
    let to = Place {
        dir: dir2,
        path: path2,
    };
    let number = a.cast_signed();
    let change = match op {
        b'H' => Change::Start { root: inode },
        b'C' => Change::Create {
            inode,
            at: (!at.path.is_empty()).then_some(at),
        },
        b'W' => Change::Write {
            inode,
            offset: a,
            data,
        },
        b'T' => Change::Truncate { inode, size: a },
        b'E' => Change::Extend { inode, size: a },
        b'N' => Change::Rename { inode, from: at, to },
        b'L' => Change::Link { inode, to },
        b'U' => Change::Unlink { at },
        b'D' => Change::Mkdir { inode, at },
        b's' => Change::SyncBegin { inode, number },
        b'S' => Change::SyncEnd { inode, number },
        b'R' => Change::SyncRange,
        b'y' => Change::AllBegin { number },
        b'Y' => Change::AllEnd { number },
        b'A' => Change::Ack { data },
        b'X' => Change::Unknown { what: at.path },
        _ => return None,
    };
    Some(Entry { pid, change })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn acknowledgements_are_read_back_and_a_torn_end_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        append_ack(&log, b"one").unwrap();
        append_ack(&log, b"").unwrap();
        let bytes = std::fs::read(&log).unwrap();
        let entries = parse(&bytes).unwrap();
        assert_eq!(entries.len(), 2);
        assert!(matches!(&entries[0].change, Change::Ack { data } if &bytes[data.clone()] == b"one"));
        assert_eq!(parse(&bytes[..bytes.len() - 1]).unwrap().len(), 1);
        let mut wrong = bytes;
        wrong[4] = b'?';
        assert!(parse(&wrong).is_err());
    }
}
