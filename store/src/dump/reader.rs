//! Reading a dump, and believing none of it before its checksums said so.

use std::io::{self, Read};

use proofkeep_migrations::LATEST;
use sha2::{Digest as _, Sha256};

use super::lines::Parser;
use super::{Counts, Header, Kind, MAGIC, MAX_PAYLOAD, VERSION};
use crate::ids::{Digest, JournalNumber, Millis};
use crate::keys::Key;

/// Why a dump can't be read.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// It is none.
    #[error("{file} is no dump of proofkeep: {found}")]
    NotOne {
        /// The file.
        file: String,
        /// What is there.
        found: String,
    },
    /// Written by a newer build.
    #[error(
        "{file} has {what} {found}, and this build knows {what} up to {newest}; use the proofkeep that wrote it or a newer one"
    )]
    Newer {
        /// The file.
        file: String,
        /// `version` or `schema`.
        what: &'static str,
        /// As written.
        found: u16,
        /// The newest known.
        newest: u16,
    },
    /// It isn't what was written.
    #[error("{file} is damaged at byte {at}: {what}; use another backup or export")]
    Damaged {
        /// The file.
        file: String,
        /// Where, in bytes from its start.
        at: u64,
        /// What was expected and what was found.
        what: String,
    },
    /// The system refused something.
    #[error("reading {file} failed: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
}

/// One thing in a dump.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Put(Key, Vec<u8>),
    Delete(Key),
    Object {
        digest: Digest,
        length: u64,
    },
    Bytes(Vec<u8>),
    Missing(Digest),
    /// All is there, as it was written; the journal number whose state it is.
    End(JournalNumber),
}

/// A dump that is being read.
pub(crate) struct Reader<R> {
    input: R,
    file: String,
    hasher: Sha256,
    bytes: u64,
    counts: Counts,
    pub header: Header,
}

impl<R: Read> Reader<R> {
    /// Reads the header. `file` is what errors call it.
    pub fn begin(input: R, file: String) -> Result<Self, DumpError> {
        let header = Header {
            schema: 0,
            store: uuid::Uuid::nil(),
            began: JournalNumber(0),
            at: Millis(0),
            inline: false,
        };
        let mut reader = Self {
            input,
            file,
            hasher: Sha256::new(),
            bytes: 0,
            counts: Counts::default(),
            header,
        };
        let mut magic = [0; MAGIC.len()];
        let length = reader.fill(&mut magic)?;
        if magic != *MAGIC {
            let found = format!("it begins with {:?}", String::from_utf8_lossy(&magic[..length]));
            let file = reader.file;
            return Err(DumpError::NotOne { file, found });
        }
        let (kind, payload) = reader.frame()?;
        if kind != Kind::Header {
            return Err(reader.damaged("the first frame is no header"));
        }
        reader.header = reader.parse_header(&payload)?;
        Ok(reader)
    }

    fn parse_header(&self, payload: &[u8]) -> Result<Header, DumpError> {
        let newer = |what, found, newest| DumpError::Newer {
            file: self.file.clone(),
            what,
            found,
            newest,
        };
        let wrong = |what: String| self.damaged(what);
        let mut lines = Parser::new(payload).map_err(wrong)?;
        let version: u16 = lines.value("version").map_err(wrong)?;
        if version > VERSION {
            return Err(newer("version", version, VERSION));
        }
        let schema: u16 = lines.value("schema").map_err(wrong)?;
        if schema > LATEST {
            return Err(newer("schema", schema, LATEST));
        }
        let header = Header {
            schema,
            store: lines.value("store").map_err(wrong)?,
            began: JournalNumber(lines.number("began").map_err(wrong)?),
            at: Millis(lines.number("at").map_err(wrong)?),
            inline: match lines.word("objects").map_err(wrong)? {
                "inline" => true,
                "beside" => false,
                other => return Err(wrong(format!("the line `objects` says {other:?}"))),
            },
        };
        lines.end().map_err(wrong)?;
        Ok(header)
    }

    /// The next thing. After [`Item::End`] there is nothing to be read.
    pub fn next(&mut self) -> Result<Item, DumpError> {
        let before = self.hasher.clone();
        let (kind, payload) = self.frame()?;
        match kind {
            Kind::Header => Err(self.damaged("a second header")),
            Kind::Put => {
                let (length, rest) = payload
                    .split_first_chunk::<2>()
                    .ok_or_else(|| self.damaged("a record without a key"))?;
                let (key, value) = rest
                    .split_at_checked(usize::from(u16::from_le_bytes(*length)))
                    .ok_or_else(|| self.damaged("a record whose key is cut off"))?;
                self.counts.records += 1;
                Ok(Item::Put(key.to_vec(), value.to_vec()))
            }
            Kind::Delete => {
                self.counts.deletions += 1;
                Ok(Item::Delete(payload))
            }
            Kind::Object => {
                let (digest, length) = payload
                    .split_first_chunk::<32>()
                    .ok_or_else(|| self.damaged("an object without a name"))?;
                let length: [u8; 8] = length
                    .try_into()
                    .map_err(|_| self.damaged("an object without a length"))?;
                let length = u64::from_le_bytes(length);
                self.counts.objects += 1;
                self.counts.object_bytes = self.counts.object_bytes.saturating_add(length);
                Ok(Item::Object {
                    digest: Digest(*digest),
                    length,
                })
            }
            Kind::Bytes => Ok(Item::Bytes(payload)),
            Kind::Missing => {
                let digest = payload
                    .as_slice()
                    .try_into()
                    .map_err(|_| self.damaged("a missing object without a name"))?;
                self.counts.missing += 1;
                Ok(Item::Missing(Digest(digest)))
            }
            Kind::End => self.end(&payload, before),
        }
    }

    fn end(&mut self, payload: &[u8], before: Sha256) -> Result<Item, DumpError> {
        let parse = || -> Result<_, String> {
            let mut lines = Parser::new(payload)?;
            let journal = JournalNumber(lines.number("journal")?);
            let counts = Counts::read(&mut lines)?;
            let sha256 = lines.word("sha256")?;
            lines.end()?;
            Ok((journal, counts, sha256))
        };
        let (journal, counts, sha256) = parse().map_err(|what| self.damaged(what))?;
        let found = Digest(before.finalize().into()).hex();
        if sha256 != found {
            return Err(self.damaged(format!("its end says sha256 {sha256}, its bytes have {found}")));
        }
        if counts != self.counts {
            return Err(self.damaged(format!("its end counts {counts:?}, it has {:?}", self.counts)));
        }
        if self.fill(&mut [0])? > 0 {
            return Err(self.damaged("something follows its end"));
        }
        Ok(Item::End(journal))
    }

    /// How much was read.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Bytes read, and their digest.
    pub fn read_so_far(&self) -> (u64, Digest) {
        (self.bytes, Digest(self.hasher.clone().finalize().into()))
    }

    /// Something that the bytes themselves don't show.
    pub fn damaged(&self, what: impl Into<String>) -> DumpError {
        DumpError::Damaged {
            file: self.file.clone(),
            at: self.bytes,
            what: what.into(),
        }
    }

    fn frame(&mut self) -> Result<(Kind, Vec<u8>), DumpError> {
        let mut head = [0; 5];
        self.exact(&mut head)?;
        let [kind, length @ ..] = head;
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_PAYLOAD {
            let what = format!("a frame of {length} bytes, expected at most {MAX_PAYLOAD}");
            return Err(self.damaged(what));
        }
        let mut payload = vec![0; length];
        self.exact(&mut payload)?;
        let mut checksum = [0; 4];
        self.exact(&mut checksum)?;
        let said = u32::from_le_bytes(checksum);
        let found = crc32c::crc32c_append(crc32c::crc32c(&head), &payload);
        if said != found {
            let what = format!(
                "the checksum of the frame that ends here is {found:08x} where {said:08x} was written"
            );
            return Err(self.damaged(what));
        }
        let kind = Kind::of(kind).ok_or_else(|| self.damaged(format!("a frame of unknown kind {kind}")))?;
        Ok((kind, payload))
    }

    fn exact(&mut self, buffer: &mut [u8]) -> Result<(), DumpError> {
        let read = self.fill(buffer)?;
        if read < buffer.len() {
            return Err(self.damaged("it ends here, in the middle"));
        }
        Ok(())
    }

    /// Reads until the buffer is full or the input ends.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, DumpError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.input.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    let file = self.file.clone();
                    return Err(DumpError::Io { file, source });
                }
            }
        }
        self.hasher.update(&buffer[..filled]);
        self.bytes += filled as u64;
        Ok(filled)
    }
}
