//! The four Filecoin proof kinds: what their inputs are, how they are checked, and their circuits.
//!
//! * [`invalid`]: an input that is refused, with the field, what was expected and what was found.
//! * [`value`], [`sector`]: 32-byte values, miners, sector sizes and registered proofs, as requests write them.
//! * [`encoding`]: vanilla proofs as bincode, as JSON, and as Go writes `[][]byte`.
//! * [`canonical`]: every field element in them is below the order of the field.
//! * [`post`], [`porep`], [`snap`]: one for each circuit. Input is read and its vanilla proofs are verified there before
//!   anything is synthesized, because the published circuits assert on what is malformed.
//! * [`witness`]: a circuit's values; its constraints are compiled by `proofkeep-groth16`, once.
//!
//! The published crates read their settings once, from the environment and from `rust-fil-proofs.config.toml` in the
//! current directory. Nothing here uses those that name directories.
#![cfg(feature = "published")]

mod c1;
pub mod canonical;
pub mod encoding;
pub mod invalid;
mod merkle;
pub mod porep;
pub mod post;
pub mod sector;
pub mod snap;
pub mod value;
pub mod witness;
