//! The four Filecoin proof kinds: what their inputs are, how they are checked, and their circuits.
//!
//! * `invalid`: an input that is refused, with the field, what was expected and what was found.
//! * `value`, `sector`: 32-byte values, miners, sector sizes and registered proofs, as requests write them.
//! * `encoding`: vanilla proofs as bincode, as JSON, and as Go writes `[][]byte`.
//! * `canonical`: every field element in them is below the order of the field.
//! * `post`, `porep`, `snap`: one for each circuit. Input is read and its vanilla proofs are verified there before
//!   anything is synthesized, because the published circuits assert on what is malformed.
//! * `circuit`, `shape`: the circuits without values, by kind and sector size.
//! * `counts`, `counted`, `room`: how large they are, for every sector size, and whether a proof fits into memory.
//! * `directory`, `header`, `checked`, `generate`: bellperson's parameter files, where they lie, what they say, and
//!   how those for trials are made.
//! * `digest`, `params`, `published_params`, `ready`: which files are there, whether they are the published ones, and
//!   whether they may be used.
//! * `sample`: inputs for trials.
//! * `read`, `statement`, `kind`: a job of one of the kinds, in the daemon and in a worker process.
//! * `published`: the whole of a job, as the chain verifies it.
//! * `witness`: a circuit's values; its constraints are compiled by `proofkeep-groth16`, once.
//!
//! The published crates read their settings once, from the environment and from `rust-fil-proofs.config.toml` in the
//! current directory. Nothing here uses those that name directories.
#![cfg(feature = "published")]

mod beat;
mod c1;
pub mod canonical;
pub mod checked;
pub mod circuit;
mod counted;
pub mod counts;
pub mod digest;
pub mod directory;
pub mod encoding;
pub mod generate;
pub mod header;
pub mod invalid;
pub mod kind;
mod merkle;
pub mod params;
pub mod porep;
pub mod post;
pub mod published;
pub mod published_params;
mod read;
pub mod ready;
mod resident;
mod room;
pub mod sample;
pub mod sector;
mod shape;
pub mod snap;
pub mod statement;
pub mod value;
pub mod witness;
