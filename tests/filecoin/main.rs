//! The Filecoin kinds through the real daemon, from what clients send to what the chain takes.
//!
//! Needs the binary with them: `cargo build --release -p proofkeep -p proofkeep-tests --features
//! proofkeep-tests/filecoin --bins`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cancel;
mod malformed;
mod memory;
mod params;
mod post;
mod sealed;
mod support;
