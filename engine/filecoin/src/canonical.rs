//! Every element of the scalar field in a vanilla proof is canonical.
//!
//! The published types take any 32 bytes when they are read, and panic later when such bytes are made a number. So a
//! value is walked as a serializer would walk it, and each tuple of 32 bytes in it is looked at.

use std::fmt::{self, Display, Write as _};

use proofkeep_formats::field::is_canonical_r;
use serde::{Serialize, Serializer, ser};

use crate::invalid::Invalid;

/// Checks every tuple of 32 bytes in `value`; `field` names the value.
///
/// # Errors
/// `non-canonical`, with the place in the value.
pub fn check(field: &str, value: &impl Serialize) -> Result<(), Invalid> {
    let mut walk = Walk {
        path: field.to_owned(),
        byte: None,
    };
    match value.serialize(&mut walk) {
        Ok(()) => Ok(()),
        Err(Stop) => Err(Invalid::new(
            "non-canonical",
            walk.path,
            "an element of BLS12-381's scalar field, a little-endian number below its order",
            "a larger one",
        )),
    }
}

/// The walk came to something that isn't canonical; the path says where.
#[derive(Debug)]
struct Stop;

impl Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not canonical")
    }
}

impl std::error::Error for Stop {}

impl ser::Error for Stop {
    fn custom<T: Display>(_: T) -> Self {
        Stop
    }
}

struct Walk {
    path: String,
    /// The last thing that was met was this byte.
    byte: Option<u8>,
}

impl Walk {
    /// Walks one element under its name; the path is left as it is when the walk stops there.
    fn step(&mut self, name: fmt::Arguments<'_>, value: &(impl Serialize + ?Sized)) -> Result<(), Stop> {
        let length = self.path.len();
        // Writing to a string doesn't fail.
        let _ = self.path.write_fmt(name);
        value.serialize(&mut *self)?;
        self.path.truncate(length);
        Ok(())
    }
}

struct Elements<'w> {
    walk: &'w mut Walk,
    index: usize,
    /// The bytes so far, as long as it may still be a tuple of 32.
    bytes: Option<[u8; 32]>,
    tuple: bool,
}

impl Elements<'_> {
    fn element(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Stop> {
        self.walk.byte = None;
        let index = self.index;
        if self.tuple {
            value.serialize(&mut *self.walk)?;
        } else {
            self.walk.step(format_args!("[{index}]"), value)?;
        }
        self.bytes = match (self.bytes, self.walk.byte.take()) {
            (Some(mut bytes), Some(byte)) if index < 32 => {
                bytes[index] = byte;
                Some(bytes)
            }
            _ => None,
        };
        self.index += 1;
        Ok(())
    }

    fn finish(self) -> Result<(), Stop> {
        match self.bytes {
            Some(bytes) if self.tuple && self.index == 32 && !is_canonical_r(&bytes) => Err(Stop),
            _ => Ok(()),
        }
    }
}

impl ser::SerializeSeq for Elements<'_> {
    type Ok = ();
    type Error = Stop;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        self.element(value)
    }
    fn end(self) -> Result<(), Stop> {
        self.finish()
    }
}

impl ser::SerializeTuple for Elements<'_> {
    type Ok = ();
    type Error = Stop;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        self.element(value)
    }
    fn end(self) -> Result<(), Stop> {
        self.finish()
    }
}

impl ser::SerializeTupleStruct for Elements<'_> {
    type Ok = ();
    type Error = Stop;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        self.element(value)
    }
    fn end(self) -> Result<(), Stop> {
        self.finish()
    }
}

impl ser::SerializeTupleVariant for Elements<'_> {
    type Ok = ();
    type Error = Stop;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        self.element(value)
    }
    fn end(self) -> Result<(), Stop> {
        self.finish()
    }
}

struct Members<'w>(&'w mut Walk);

impl ser::SerializeMap for Members<'_> {
    type Ok = ();
    type Error = Stop;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, _: &T) -> Result<(), Stop> {
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        value.serialize(&mut *self.0)
    }
    fn end(self) -> Result<(), Stop> {
        Ok(())
    }
}

impl ser::SerializeStruct for Members<'_> {
    type Ok = ();
    type Error = Stop;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Stop> {
        self.0.step(format_args!(".{name}"), value)
    }
    fn end(self) -> Result<(), Stop> {
        Ok(())
    }
}

impl ser::SerializeStructVariant for Members<'_> {
    type Ok = ();
    type Error = Stop;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Stop> {
        self.0.step(format_args!(".{name}"), value)
    }
    fn end(self) -> Result<(), Stop> {
        Ok(())
    }
}

/// Values that are no bytes and hold none.
macro_rules! nothing {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(fn $method(self, _: $type) -> Result<(), Stop> {
            self.byte = None;
            Ok(())
        })*
    };
}

impl<'w> Serializer for &'w mut Walk {
    type Ok = ();
    type Error = Stop;
    type SerializeSeq = Elements<'w>;
    type SerializeTuple = Elements<'w>;
    type SerializeTupleStruct = Elements<'w>;
    type SerializeTupleVariant = Elements<'w>;
    type SerializeMap = Members<'w>;
    type SerializeStruct = Members<'w>;
    type SerializeStructVariant = Members<'w>;

    nothing! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_f32: f32,
        serialize_f64: f64,
        serialize_char: char,
        serialize_str: &str,
        serialize_bytes: &[u8],
        serialize_unit_struct: &'static str,
    }

    fn serialize_u8(self, byte: u8) -> Result<(), Stop> {
        self.byte = Some(byte);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Stop> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Stop> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Stop> {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Elements<'w>, Stop> {
        Ok(Elements {
            walk: self,
            index: 0,
            bytes: None,
            tuple: false,
        })
    }

    fn serialize_tuple(self, _: usize) -> Result<Elements<'w>, Stop> {
        Ok(Elements {
            walk: self,
            index: 0,
            bytes: Some([0; 32]),
            tuple: true,
        })
    }

    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<Elements<'w>, Stop> {
        self.serialize_tuple(length)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        length: usize,
    ) -> Result<Elements<'w>, Stop> {
        self.serialize_tuple(length)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members<'w>, Stop> {
        Ok(Members(self))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Members<'w>, Stop> {
        Ok(Members(self))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Members<'w>, Stop> {
        Ok(Members(self))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[derive(Serialize)]
    struct Outer {
        number: u64,
        list: Vec<Inner>,
    }

    #[derive(Serialize)]
    struct Inner {
        element: [u8; 32],
        short: [u8; 31],
    }

    #[test]
    fn the_place_of_the_first_larger_number_is_named() {
        let inner = |last: u8| {
            let mut element = [1; 32];
            element[31] = last;
            Inner {
                element,
                short: [0xff; 31],
            }
        };
        let mut outer = Outer {
            number: 7,
            list: vec![inner(1), inner(2)],
        };
        check("x", &outer).unwrap();
        outer.list.push(inner(0x74));
        let refused = check("x", &outer).unwrap_err();
        assert_eq!(refused.field, "x.list[2].element");
        assert_eq!(refused.code, "non-canonical");
    }
}
