//! A proof kind for tests: it does what its request says, with the times and the failures that stand there.
//!
//! ```json
//! { "kind": "scripted", "marks": "/dir", "ticket_bytes": 1048576,
//!   "inputs": [ { "synth_ms": 5, "piece_ms": 5, "finish_ms": 5,
//!                 "fail": {"stage": "prove", "class": "device_error", "times": 1},
//!                 "crash": {"stage": "synth", "how": "abort", "times": 2},
//!                 "gate": {"stage": "l", "file": "/dir/go"} } ] }
//! ```
//! A stage is `synth`, `prove`, `finish`, or a piece (`h l a b1 b2`, reached when that piece is about to be made).
//! A crash in stage `any` comes in each of them, once its time is over. `how` is `abort`, `segv`, `exit`, `kill`,
//! `overflow` (of the stack), `hang` (no progress, no answer), `still` (no progress, but it ends when asked), `deaf`
//! (progress, no answer), `allocate` (until nothing is left of 256 MiB), `panic` or `invalid_proof` (a finished proof that doesn't verify). `times` counts
//! across processes and restarts, by files in the `marks` directory; each stage that is reached leaves one there too,
//! so that a test can count what was done again.
//!
//! Its proof is 192 bytes that follow from the public signals; its own verifier accepts those and nothing else.

mod act;
mod kind;
mod script;

pub use kind::{Scripted, mark_count, proof_of, witness_of};
pub use script::{Crash, Fail, Gate, Request, Script};
