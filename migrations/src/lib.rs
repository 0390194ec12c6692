//! The shapes that lie on disk, one module for each schema version.
//!
//! A shape that was ever written is frozen: its fields never change, its enums only grow at the end, and golden bytes
//! hold it to that. A changed record is a new module with its own shapes and a step from the older ones; the step is
//! run as an export into a new store, never in place. This crate knows no live types: `proofkeep-store` converts.

pub mod m0001_initial;
pub mod wire;

/// A version of the shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Its number, as it stands in each record's envelope.
    pub number: u16,
    /// The module that holds it.
    pub name: &'static str,
}

/// Every schema version, oldest first.
pub const SCHEMAS: [Schema; 1] = [Schema {
    number: 1,
    name: "m0001_initial",
}];

/// The schema that this build writes. A store with a newer one is refused.
pub const LATEST: u16 = 1;

/// The shapes of [`LATEST`].
pub use m0001_initial as latest;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_numbered_without_gaps_and_end_at_the_latest() {
        for (index, schema) in SCHEMAS.iter().enumerate() {
            assert_eq!(usize::from(schema.number), index + 1, "{}", schema.name);
        }
        assert_eq!(SCHEMAS.last().map(|schema| schema.number), Some(LATEST));
    }
}
