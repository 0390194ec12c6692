//! Everything as one stream.

use std::io::Write;
use std::path::Path;

use super::{Broken, check, open};
use crate::dump::{Dumped, Kept, SaveError, Sink, Writer, copy_object, dump};
use crate::ids::{Digest, Millis};
use crate::open::Store;

impl Store {
    /// Writes an export. `name` is what errors call the stream. Whoever keeps it makes it durable.
    ///
    /// # Errors
    /// See [`SaveError`]. What was written until then has no end, so that nobody takes it for whole.
    pub fn export(
        &self,
        out: impl Write,
        name: &Path,
        at: Millis,
        stop: &dyn Fn() -> bool,
    ) -> Result<Dumped, SaveError> {
        let go_on = || if stop() { Err(SaveError::Stopped) } else { Ok(()) };
        let source = self.source(at, &go_on)?;
        let mut sink = Inline { name, go_on: &go_on };
        dump(&source, out, name, &mut sink).map(|(_, dumped)| dumped)
    }
}

/// Objects in the stream.
struct Inline<'a> {
    name: &'a Path,
    go_on: &'a dyn Fn() -> Result<(), SaveError>,
}

impl<W: Write> Sink<W> for Inline<'_> {
    const INLINE: bool = true;

    fn keep(&mut self, dump: &mut Writer<W>, digest: Digest, path: &Path) -> Result<Kept, SaveError> {
        // What is in the stream can't be taken back, so the bytes are checked first.
        let Some(length) = check(digest, path, self.go_on)? else {
            return Ok(Kept::Lost);
        };
        let Some(from) = open(path)? else {
            return Ok(Kept::Lost);
        };
        dump.object(digest, length)
            .map_err(SaveError::io("writing", self.name))?;
        let read = copy_object(from, |bytes| {
            (self.go_on)()
                .and_then(|()| dump.piece(bytes).map_err(SaveError::io("writing", self.name)))
                .map_err(Broken::Other)
        });
        let read = read.map_err(|error| error.reading(path))?;
        if read.digest != digest {
            let changed =
                std::io::Error::other("its bytes changed while they were read; run `proofkeep fsck`");
            return Err(SaveError::io("reading", path)(changed));
        }
        Ok(Kept::Whole)
    }
}
