//! Where a list goes on: opaque for clients, checked when it comes back.

use std::fmt;

/// A place between two rows of a list. Clients see 28 hex digits and need not know more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The list it belongs to, one byte for each list and order.
    pub(crate) list: u8,
    /// The last row that was looked at.
    pub(crate) last: u64,
}

/// A cursor that this server did not hand out for this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    /// Not a cursor at all.
    #[error("the cursor is not one that this server handed out; leave it out to begin at the first page")]
    Malformed,
    /// One of another list, or of the same list in another order.
    #[error(
        "the cursor belongs to another list or another order; repeat the request it came from, changing only the cursor"
    )]
    OtherList,
}

const VERSION: u8 = 1;

impl Cursor {
    /// Reads what [`Display`](fmt::Display) wrote.
    ///
    /// # Errors
    /// When it was changed on the way, or is none.
    pub fn parse(text: &str) -> Result<Self, CursorError> {
        let mut bytes = [0_u8; 14];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| CursorError::Malformed)?;
        let [version, list, last @ .., a, b, c, d] = bytes;
        if version != VERSION || u32::from_be_bytes([a, b, c, d]) != checksum(list, last) {
            return Err(CursorError::Malformed);
        }
        Ok(Self {
            list,
            last: u64::from_be_bytes(last),
        })
    }

    /// The row to go on after, if this cursor belongs to `list`.
    pub(crate) fn of(self, list: u8) -> Result<u64, CursorError> {
        if self.list == list {
            Ok(self.last)
        } else {
            Err(CursorError::OtherList)
        }
    }
}

fn checksum(list: u8, last: [u8; 8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&[VERSION, list]), &last)
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.last.to_be_bytes();
        let check = checksum(self.list, last);
        write!(
            f,
            "{VERSION:02x}{:02x}{}{check:08x}",
            self.list,
            hex::encode(last)
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_went() {
        let cursor = Cursor {
            list: 3,
            last: u64::MAX - 7,
        };
        assert_eq!(Cursor::parse(&cursor.to_string()).unwrap(), cursor);
    }

    #[test]
    fn a_changed_cursor_is_refused() {
        let text = Cursor { list: 1, last: 42 }.to_string();
        for place in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[place] = if changed[place] == b'0' { b'1' } else { b'0' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(Cursor::parse(&changed), Err(CursorError::Malformed), "{changed}");
        }
        assert_eq!(Cursor::parse(""), Err(CursorError::Malformed));
        assert_eq!(Cursor::parse("zz"), Err(CursorError::Malformed));
    }

    #[test]
    fn a_cursor_of_another_list_is_refused() {
        assert_eq!(Cursor { list: 1, last: 42 }.of(2), Err(CursorError::OtherList));
    }
}
