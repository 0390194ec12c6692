//! From live types to frozen ones and back, field by field, so that the compiler finds a field that one side lacks.

use uuid::Uuid;

use crate::ids::{BootNumber, Digest, JobNumber, JournalNumber, Millis, WorkerId};

/// A live type that has a frozen one.
pub trait Mirror: Sized {
    /// How it lies on disk.
    type Frozen;

    /// To disk.
    fn freeze(&self) -> Self::Frozen;

    /// From disk.
    fn thaw(frozen: Self::Frozen) -> Self;
}

macro_rules! itself {
    ($($plain:ty),*) => {$(
        impl Mirror for $plain {
            type Frozen = Self;

            fn freeze(&self) -> Self {
                self.clone()
            }

            fn thaw(frozen: Self) -> Self {
                frozen
            }
        }
    )*};
}

itself!(bool, u8, u32, u64, i64, String);

macro_rules! wrapped {
    ($($wrapper:ident($inner:ty)),*) => {$(
        impl Mirror for $wrapper {
            type Frozen = $inner;

            fn freeze(&self) -> $inner {
                self.0
            }

            fn thaw(frozen: $inner) -> Self {
                Self(frozen)
            }
        }
    )*};
}

wrapped!(
    BootNumber(u64),
    Digest([u8; 32]),
    JobNumber(u64),
    JournalNumber(u64),
    Millis(u64),
    WorkerId(u32)
);

impl Mirror for Uuid {
    type Frozen = [u8; 16];

    fn freeze(&self) -> [u8; 16] {
        *self.as_bytes()
    }

    fn thaw(frozen: [u8; 16]) -> Self {
        Self::from_bytes(frozen)
    }
}

impl<T: Mirror> Mirror for Option<T> {
    type Frozen = Option<T::Frozen>;

    fn freeze(&self) -> Self::Frozen {
        self.as_ref().map(T::freeze)
    }

    fn thaw(frozen: Self::Frozen) -> Self {
        frozen.map(T::thaw)
    }
}

impl<T: Mirror> Mirror for Vec<T> {
    type Frozen = Vec<T::Frozen>;

    fn freeze(&self) -> Self::Frozen {
        self.iter().map(T::freeze).collect()
    }

    fn thaw(frozen: Self::Frozen) -> Self {
        frozen.into_iter().map(T::thaw).collect()
    }
}

impl<A: Mirror, B: Mirror> Mirror for (A, B) {
    type Frozen = (A::Frozen, B::Frozen);

    fn freeze(&self) -> Self::Frozen {
        (self.0.freeze(), self.1.freeze())
    }

    fn thaw((a, b): Self::Frozen) -> Self {
        (A::thaw(a), B::thaw(b))
    }
}

/// A struct whose fields have the same names on both sides.
macro_rules! mirror_struct {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl Mirror for $name {
            type Frozen = frozen::$name;

            fn freeze(&self) -> frozen::$name {
                let Self { $($field),* } = self;
                frozen::$name { $($field: $field.freeze()),* }
            }

            fn thaw(frozen: frozen::$name) -> Self {
                let frozen::$name { $($field),* } = frozen;
                Self { $($field: Mirror::thaw($field)),* }
            }
        }
    };
}

/// An enum whose variants and fields have the same names on both sides.
macro_rules! mirror_enum {
    ($name:ident { $($variant:ident $(($inner:ident))? $({ $($field:ident),* $(,)? })?),* $(,)? }) => {
        impl Mirror for $name {
            type Frozen = frozen::$name;

            fn freeze(&self) -> frozen::$name {
                match self {$(
                    Self::$variant $(($inner))? $({ $($field),* })? =>
                        frozen::$name::$variant $(($inner.freeze()))? $({ $($field: $field.freeze()),* })?,
                )*}
            }

            fn thaw(frozen: frozen::$name) -> Self {
                match frozen {$(
                    frozen::$name::$variant $(($inner))? $({ $($field),* })? =>
                        Self::$variant $((Mirror::thaw($inner)))? $({ $($field: Mirror::thaw($field)),* })?,
                )*}
            }
        }
    };
}

pub(super) use {mirror_enum, mirror_struct};
