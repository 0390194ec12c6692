//! Attacks on the state machine: each test is named after what must hold while somebody tries to break it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

mod boots;
mod isolation;
mod jobs;
mod limits;
mod local_setup;
mod poison;
mod words;
